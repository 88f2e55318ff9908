"""Fit the likeness to text that speaks to a program on our sentences, the development set and plain guidelines.

    python -m tests.benchmarks.train_injections

The held-back sets (``gate/held``) are never read here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np

from localmed.language import detect, sentences
from localmed.training.injections import Example, fit
from localmed.verification.injection_likeness import LANGUAGES, LEAST, WEIGHTS

HERE = Path(__file__).parent
CORPORA = HERE.parents[1] / "corpora"
DEVELOPMENT = HERE / "gate" / "dev"
GUIDELINES = (CORPORA / "starter", CORPORA / "starter_sources", HERE / "dev", HERE / "plain", DEVELOPMENT / "docs")


def examples() -> list[Example]:
    """Our sentences, the development set, and the sentences of guidelines that come with the project."""
    bank = tomllib.loads(files("localmed.training").joinpath("injection_sentences.toml").read_text("utf-8"))
    own = [
        Example(line, language, name == "injected")
        for language in LANGUAGES
        for name in ("injected", "ordinary")
        for line in bank[language][name].splitlines()
        if line
    ]
    development = [
        Example(item["text"], item["language"], name == "injection")
        for name in ("injection", "benign")
        for item in tomllib.loads((DEVELOPMENT / f"{name}.toml").read_text("utf-8"))["text"]
    ]
    plain = [Example(line, detect(line), False) for line in dict.fromkeys(_guideline_sentences())]
    return own + development + plain


def _guideline_sentences() -> Iterator[str]:
    for folder in GUIDELINES:
        for path in sorted((*folder.rglob("*.md"), *folder.rglob("*.txt"))):
            for line in path.read_text("utf-8").splitlines():
                text = line.strip("#|-* ")
                for start, end in sentences(text):
                    if len(text[start:end].strip()) >= LEAST:
                        yield text[start:end].strip()


def main() -> None:
    """Fit and write; print how many of the injected sentences are seen without themselves."""
    arrays = {}
    for language, (weights, seen) in fit(examples()).items():
        arrays[f"{language}.names"] = np.array("\n".join(weights.by_feature))
        arrays[f"{language}.weights"] = np.array(list(weights.by_feature.values()), dtype=np.float16)
        arrays[f"{language}.bias"] = np.array(weights.bias)
        print(f"{language}: {seen:.1%} of the injected sentences seen, each without itself")
    np.savez_compressed(WEIGHTS, **arrays)


if __name__ == "__main__":
    main()
