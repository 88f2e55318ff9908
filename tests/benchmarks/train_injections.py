"""Fit the likeness to text that speaks to a program on our sentences, spent sets and plain guidelines.

    python -m tests.benchmarks.train_injections

Read are the sets that are spent (``FITTED``); what is held back after them is not.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np

from localmed.language import detect, sentences
from localmed.models.e5 import E5, Uncentred
from localmed.training.injections import Example, fit, stored
from localmed.verification.injection_likeness import LANGUAGES, LEAST, WEIGHTS

HERE = Path(__file__).parent
CORPORA = HERE.parents[1] / "corpora"
FITTED = tuple(HERE / "gate" / name for name in ("dev", "held", "dev2", "held2", "held3"))
GUIDELINES = (
    CORPORA / "starter",
    CORPORA / "starter_sources",
    HERE / "dev",
    HERE / "plain",
    *(folder / "docs" for folder in FITTED),
)


def examples() -> list[Example]:
    """Our sentences, the sets that are spent, and the sentences of guidelines that come with the project."""
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
        for folder in FITTED
        for name in ("injection", "benign")
        for item in tomllib.loads((folder / f"{name}.toml").read_text("utf-8"))["text"]
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
    encoder, shown = Uncentred(E5()), examples()
    fitted = fit(shown, encoder.encode([one.text for one in shown], "passage").astype(np.float64))
    for name, (_, seen) in fitted.items():
        print(f"{name}: {seen:.1%} of the injected sentences seen, each without itself")
    np.savez_compressed(WEIGHTS, **stored(fitted, encoder.identity.slug))


if __name__ == "__main__":
    main()
