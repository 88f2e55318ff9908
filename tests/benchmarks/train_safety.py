"""Fit the safety screen's likeness on our sentences and the development cases, and write its weights.

    python -m tests.benchmarks.train_safety

Held-back cases are never read here.

Two ridge regressions on the same features (words, and the encoder's vector in English): is the message due, and does
the writer speak of themselves. Solved in the examples' inner products (Saunders, Gammerman and Vovk 1998), so that each
example's score without itself (leave-one-out) is known in closed form; a bound is the least score that at most the
named share of those examples exceeds which must not count.

What was tried (English, ten folds, area under the curve of development sentences): the vector alone 0.94, with words
0.96; the nearest sentence of each side, or the mean of the nearest three, let through 12 to 18 % of what is harmless at
the recall of 0.7 for which this lets through 4 %. Inverse document frequencies and a Gaussian kernel changed nothing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from localmed.domain.ports import Embedder
from localmed.models.e5 import E5
from localmed.safety.safety import SafetyInput
from localmed.safety.safety_likeness import WEIGHTS, Floats, Weights, stored
from localmed.safety.safety_rules import screen
from localmed.text.language import terms

PENALTY = 1.0  # 0.1 to 1 are alike
DUE_WEIGHS = 1.5  # an example that counts against one that does not: there are fewer
OVER = np.array([0.05, 0.02])  # share of examples that may count wrongly: patients' texts, then anybody's disclosures


@dataclass(frozen=True, slots=True)
class Example:
    """A text, whether a patient gets the message for it, and whether anybody does."""

    text: str
    due: bool
    disclosed: bool = False


def fit(examples: Sequence[Example], language: str, encoder: Embedder | None) -> tuple[Weights, Floats]:
    """The weights, and the leave-one-out scores above their bounds, (N, 2); without ``encoder`` by words alone."""
    texts = [example.text for example in examples]
    held = [terms(text, language) for text in texts]
    names = {name: place for place, name in enumerate(sorted(set().union(*held)))}
    words = np.zeros((len(texts), len(names)))
    for row, held_terms in enumerate(held):
        words[row, [names[name] for name in held_terms]] = 1 / np.sqrt(len(held_terms) or 1)
    vectors = encoder.encode(texts, "query").astype(np.float64) if encoder else np.zeros((len(texts), 0))
    so = np.array([(example.due, example.disclosed) for example in examples])
    products = words @ words.T + vectors @ vectors.T + 1.0
    solved = [ridge(products, column, DUE_WEIGHS, np.arange(len(texts))) for column in so.T]
    dual, alone = (np.column_stack(part) for part in zip(*solved, strict=True))
    bounds = np.array([np.quantile(alone[~so[:, column], column], 1 - OVER[column]) for column in range(2)])
    slug = encoder.identity.slug if encoder else ""
    return Weights(names, words.T @ dual, vectors.T @ dual, dual.sum(axis=0), bounds, slug), alone - bounds


def ridge(
    products: Floats, labels: npt.NDArray[np.bool_], weighs: float, groups: npt.NDArray[Any]
) -> tuple[Floats, Floats]:
    """The dual coefficients and the scores without an example's own group, both (N,).

    ``products`` are the inner products (N, N); an example with a true label weighs ``weighs``, another 1.
    """
    targets = np.where(labels, 1.0, -1.0)
    inverse = np.linalg.inv(products + np.diag(PENALTY / np.where(labels, weighs, 1.0)))
    dual: Floats = inverse @ targets
    alone = targets.copy()
    for group in np.unique(groups):
        own = np.flatnonzero(groups == group)
        alone[own] -= np.linalg.solve(inverse[np.ix_(own, own)], dual[own])
    return dual, alone


# --- what it is fitted on ---------------------------------------------------------------------------------------------


CASES = Path(__file__).parents[1] / "workflows" / "cases"
# Who complains says "I" as often as who wants to die: a complaint that names nobody stands there with it too.
SPEAKERS = ("我", "你", "他", "她", "孩子", "宝宝", "患者", "病人")
BANKS, COMPLAINTS = (
    tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text("utf-8"))
    for name in ("safety_sentences", "emergency_sentences")
)


def examples(language: str) -> list[Example]:
    """The sentences, the development cases of the safety screen, and ordinary complaints: departments' and our own.

    What staff may ask and a patient may not is left out: it is neither.
    """
    bank = BANKS[language]
    bank_examples = [Example(text, due=True, disclosed=True) for text in bank["disclosed"].splitlines()]
    bank_examples += [Example(text, due=True) for text in bank["means"].splitlines()]
    bank_examples += [Example(text, due=False) for text in bank["harmless"].splitlines()]
    cases = [case for case in _cases("safety", language) if case["split"] == "development"]
    for case in cases:
        if case["safety_message"] or case["audience"] == "patient":
            disclosed = screen(SafetyInput(case["text"], case["audience"])).concern == "disclosure"
            bank_examples.append(Example(case["text"], case["safety_message"], disclosed))
    complaints = _cases("departments_development", language)
    texts = [complaint["complaint"] for complaint in complaints] + COMPLAINTS[language]["ordinary"].splitlines()
    ordinary = tomllib.loads((CASES.parents[1] / "safety" / "cases" / "ordinary_development.toml").read_text("utf-8"))
    texts += [case["text"] for case in ordinary["ordinary"] if case["language"] == language]
    if language == "zh":
        texts += [f"我{text}" for text in texts if not text.startswith(SPEAKERS)]
    return bank_examples + [Example(text, due=False) for text in texts]


def _cases(name: str, language: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = tomllib.loads((CASES / f"{name}.toml").read_text("utf-8"))["case"]
    return [case for case in cases if case["language"] == language]


def main() -> None:
    """Fit and write."""
    encoder, weights = E5(), {}
    for name, used in (("en", encoder), ("en_words", None), ("zh", None)):
        trained_on = examples(name[:2])
        weights[name], alone = fit(trained_on, name[:2], used)
        due = np.array([example.due for example in trained_on])
        disclosed = np.array([example.disclosed for example in trained_on])
        print(
            f"{name}: {len(trained_on)} examples, {len(weights[name].terms)} terms; leave-one-out: due "
            f"{(alone[due, 0] > 0).mean():.3f}, not due {(alone[~due, 0] > 0).mean():.3f}; disclosed "
            f"{(alone[disclosed, 1] > 0).mean():.3f}, not {(alone[~disclosed, 1] > 0).mean():.3f}"
        )
    np.savez_compressed(WEIGHTS, **stored(weights))
    print(f"{WEIGHTS.name}: {WEIGHTS.stat().st_size} bytes")


if __name__ == "__main__":
    main()
