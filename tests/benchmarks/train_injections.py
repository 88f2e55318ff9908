"""Fit the likeness to text that speaks to a program on our sentences, spent sets and plain guidelines.

    python -m tests.benchmarks.train_injections

Read are the sets that are spent (``FITTED``); what is held back after them is not.

Two ridge regressions a language, on kinds of words, their pairs, and words, and on these beside the encoder's vector,
solved in the examples' inner products. Each example's score without itself is known in closed form; the bound is the
score that at most ``OVER`` of the ordinary examples exceed so, and suspected is what scores above all but ``SUSPECTED``
of them. Weights too small to matter are dropped.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from localmed.models.e5 import E5, Uncentred
from localmed.safety.prompt_injection import BY_MEANING, LANGUAGES, LEAST, MEANING, WEIGHTS, Weights, features
from localmed.text.language import detect, sentences

Vectors = npt.NDArray[np.float64]
PENALTY = 1.0
INJECTED_WEIGHS = 2.0  # an injected example counts against an ordinary one: there are far fewer
# Share of the ordinary examples that may score above the bound without themselves; there are fewer Chinese ones, of
# which the hard look-alikes are a larger part.
OVER: Mapping[str, float] = {"en": 0.004, "zh": 0.008}
SUSPECTED = 0.1  # of the ordinary examples: with more no further injected one was noticed
SMALLEST = 0.004  # a weight below it moves no score by a hundredth


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence, its language, and whether it speaks to a program."""

    text: str
    language: str
    injected: bool


def fit(examples: Sequence[Example], vectors: Vectors | None = None) -> Mapping[str, tuple[Weights, float]]:
    """The weights of each language by words, and (``BY_MEANING``) beside the ``vectors`` (N, D) of the examples.

    With each the share of its injected examples that are seen without themselves.
    """
    fitted = {}
    for language in LANGUAGES:
        places = [place for place, one in enumerate(examples) if one.language == language]
        own = [examples[place] for place in places]
        fitted[language] = _fit(own, language, np.zeros((len(own), 0)))
        if vectors is not None:
            fitted[f"{language}{BY_MEANING}"] = _fit(own, language, vectors[places])
    return fitted


def _fit(examples: Sequence[Example], language: str, vectors: Vectors) -> tuple[Weights, float]:
    rows = [features(example.text, language) for example in examples]
    names = {name: place for place, name in enumerate(sorted(set().union(*rows)))}
    values = np.zeros((len(rows), len(names)), dtype=np.float32)
    for row, held in enumerate(rows):
        for name, value in held.items():
            values[row, names[name]] = value
    injected = np.array([example.injected for example in examples])
    labels = np.where(injected, 1.0, -1.0)
    penalty = np.diag(np.where(injected, PENALTY / INJECTED_WEIGHS, PENALTY))
    centre = vectors.mean(axis=0)  # e5's vectors lie in a narrow cone: what they share says nothing
    vectors = MEANING * (vectors - centre)
    products = values.astype(np.float64) @ values.T + vectors @ vectors.T
    inverse: npt.NDArray[np.float64] = np.linalg.inv(products + 1.0 + penalty)
    dual = inverse @ labels
    alone = labels - dual / np.diag(inverse)
    bound, suspects = (float(np.quantile(alone[~injected], 1 - over)) for over in (OVER[language], SUSPECTED))
    by_name = values.T @ dual
    kept = {name: float(by_name[place]) for name, place in names.items() if abs(by_name[place]) >= SMALLEST}
    by_meaning = MEANING * (vectors.T @ dual)
    seen = float((alone[injected] > bound).mean())
    return Weights(kept, float(dual.sum() - centre @ by_meaning) - bound, by_meaning, suspects - bound), seen


def stored(fitted: Mapping[str, tuple[Weights, float]], encoder: str) -> dict[str, Any]:
    """The arrays of an ``.npz`` that ``prompt_injection.loaded`` reads; ``encoder`` is the slug of the vectors'."""
    arrays: dict[str, Any] = {"encoder": np.array(encoder)}
    for name, (weights, _) in fitted.items():
        arrays[f"{name}.names"] = np.array("\n".join(weights.by_feature))
        arrays[f"{name}.weights"] = np.array(list(weights.by_feature.values()), dtype=np.float16)
        arrays[f"{name}.meaning"] = weights.by_meaning.astype(np.float32)
        arrays[f"{name}.bias"] = np.array(weights.bias)
        arrays[f"{name}.suspects"] = np.array(weights.suspects)
    return arrays


# --- what it is fitted on ---------------------------------------------------------------------------------------------


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
    bank = tomllib.loads((HERE / "injection_sentences.toml").read_text("utf-8"))
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
