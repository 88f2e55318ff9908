"""Fit the likeness to text that speaks to a program on our sentences, the development set and plain guidelines.

    python -m tests.benchmarks.train_injections [SENTENCES]

The sets are those of two authors, all spent. ``SENTENCES`` has one ordinary sentence of medicine a line, of public
guidelines that do not come with the project; of each language the ``MOST`` that look most like an order are taken. The
weights that are shipped were fitted with sentences of CDC's guide to infection prevention for outpatient settings
(2016), the Chinese National Health Commission's guides to COVID-19 (7th edition, both languages) and to diet in
hypertension (2023), and MedQuAD.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

from localmed.language import detect, sentences
from localmed.training.injections import Example, fit
from localmed.verification.injection_likeness import LANGUAGES, LEAST, WEIGHTS, score

HERE = Path(__file__).parent
CORPORA = HERE.parents[1] / "corpora"
DEVELOPMENT = HERE / "gate" / "dev"
SPENT = (DEVELOPMENT, HERE / "gate" / "held", HERE / "across" / "dev")
MOST = 700  # the products of all examples are held in memory
GUIDELINES = (CORPORA / "starter", CORPORA / "starter_sources", HERE / "dev", HERE / "plain", DEVELOPMENT / "docs")


def examples(others: Sequence[str] = ()) -> list[Example]:
    """Our sentences, the spent sets, the sentences of guidelines that come with the project, and of ``others``."""
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
        for folder in SPENT
        for name in ("injection", "benign")
        for item in _items(folder / f"{name}.toml")
    ]
    plain = [
        Example(line, detect(line), False) for line in dict.fromkeys((*_guideline_sentences(), *_like_orders(others)))
    ]
    return own + development + plain


def _items(path: Path) -> list[dict[str, str]]:
    sets = tomllib.loads(path.read_text("utf-8")).values()
    return [item for items in sets if isinstance(items, list) for item in items]


def _like_orders(sentences: Sequence[str]) -> list[str]:
    """Of each language the sentences that the weights of before score highest."""
    scored = [(score(line, language), line) for line in sentences if (language := detect(line)) in LANGUAGES]
    ranked = [line for _, line in sorted(scored, reverse=True)]
    return [line for language in LANGUAGES for line in [one for one in ranked if detect(one) == language][:MOST]]


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
    others = Path(sys.argv[1]).read_text("utf-8").splitlines() if len(sys.argv) > 1 else []
    for language, (weights, seen) in fit(examples(others)).items():
        arrays[f"{language}.names"] = np.array("\n".join(weights.by_feature))
        arrays[f"{language}.weights"] = np.array(list(weights.by_feature.values()), dtype=np.float16)
        arrays[f"{language}.bias"] = np.array(weights.bias)
        print(f"{language}: {seen:.1%} of the injected sentences seen, each without itself")
    np.savez_compressed(WEIGHTS, **arrays)


if __name__ == "__main__":
    main()
