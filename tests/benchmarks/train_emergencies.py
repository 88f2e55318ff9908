"""Fit the likeness to emergencies on our sentences and the development cases, and write its weights.

    python -m tests.benchmarks.train_emergencies

Of the cases of tests/safety all that are spent; the set of the last look, *_last_look.toml, is never read here, nor
any held-back case of departments.

One ridge regression for both languages on words, vectors and products of two places of a vector, solved in the
examples' inner products as in ``safety``. Each example's score is also known without any by its author, in closed form.
The bound of a language is chosen on the complaints of ``OTHERS``, each scored by what all but its author wrote: our own
look-alikes say too little of what others type.

What was tried, on the complaints of two other authors, each scored without its author (area under the curve, English
and Chinese together with our own): words with e5's vector 0.981 and 0.992, with a Gaussian kernel 0.985 and 0.993, with
runs of characters in the place of words 0.984 and 0.993, with the products of places 0.988 and 0.994. Centring the
vectors in place of that, for both languages or for each, changed nothing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from localmed.domain.ports import Embedder
from localmed.models.e5 import E5, Uncentred
from localmed.retrieval.guide import is_emergency
from localmed.safety.red_flags import red_flags
from localmed.safety.safety_likeness import EMERGENCIES, LANGUAGES, Floats, Weights, stored
from localmed.text.language import detect, terms
from tests.benchmarks.train_safety import ridge

VECTORS, WORDS = sqrt(6.0), sqrt(2.0)  # e5's vectors lie near one another
OTHERS = ("first", "second")  # sources that are by other authors than ours
OVER = 0.05  # share of their ordinary complaints that may score above the bound; the table adds up to as many


@dataclass(frozen=True, slots=True)
class Example:
    """A complaint, its language, the family of presentations that it is of ("" for ordinary ones), its author."""

    text: str
    language: str
    family: str
    author: str


def fit(examples: Sequence[Example], encoder: Embedder) -> tuple[Mapping[str, Weights], Floats]:
    """The weights by language, and each example's score above its bound without its author's examples, (N,)."""
    held = [terms(example.text, example.language) for example in examples]
    names = {name: place for place, name in enumerate(sorted(set().union(*held)))}
    words = np.zeros((len(examples), len(names)))
    for row, held_terms in enumerate(held):
        words[row, [names[name] for name in held_terms]] = WORDS / sqrt(len(held_terms) or 1)
    vectors = encoder.encode([example.text for example in examples], "query").astype(np.float64)
    centre = vectors.mean(axis=0)
    scale = np.mean(np.sum((vectors - centre) ** 2, axis=1))
    centred = (vectors - centre) / np.sqrt(scale)
    urgent = np.array([bool(example.family) for example in examples])
    authors = np.array([example.author for example in examples])
    products = words @ words.T + VECTORS**2 * (vectors @ vectors.T) + (centred @ centred.T) ** 2 + 1.0
    dual, alone = ridge(products, urgent, 1.0, authors)
    languages = np.array([example.language for example in examples])
    judged = ~urgent & np.isin(authors, OTHERS)
    bounds = {name: np.quantile(alone[judged & (languages == name)], 1 - OVER) for name in sorted({*languages})}
    by_term, by_meaning = WORDS * (words.T @ dual), VECTORS**2 * (vectors.T @ dual)
    by_pair = (centred.T * dual) @ centred / scale
    bias, slug, weights = np.array([dual.sum()]), encoder.identity.slug, {}
    for language, bound in bounds.items():
        own = sorted(
            set().union(*(held_terms for held_terms, at in zip(held, languages, strict=True) if at == language))
        )
        rows = [names[name] for name in own]
        numbered = {name: row for row, name in enumerate(own)}
        columns = (by_term[rows, None], by_meaning[:, None], bias, np.array([bound]))
        weights[language] = Weights(numbered, *columns, slug, by_pair, centre)
    return weights, alone - np.array([bounds[language] for language in languages])


# --- what it is fitted on ---------------------------------------------------------------------------------------------


TESTS = Path(__file__).parents[1]
OTHER_SETS = (
    ("emergencies_development", "first"), ("ordinary_development", "first"),
    ("emergencies_held_back", "first"), ("ordinary_held_back", "first"),
    ("emergencies_second_author", "second"), ("ordinary_second_author", "second"),
)  # fmt: skip
SENTENCES = tomllib.loads((TESTS / "benchmarks" / "emergency_sentences.toml").read_text("utf-8"))


def examples() -> list[Example]:
    """The sentences, the development cases by another author, the cases of the table, the departments' complaints."""
    cases = TESTS / "safety" / "cases"
    gathered = []
    for language in LANGUAGES:
        bank = SENTENCES[language]
        gathered += [Example(text, language, name, "own") for name, text in _lines(bank["emergency"])]
        for name in ("ordinary", "everyday"):
            gathered += [Example(text, language, "", "own") for text in bank[name].splitlines()]
    for name, author in OTHER_SETS:
        for case in (case for lists in _table(cases / f"{name}.toml").values() for case in lists):
            family = case["presentation"] if name.startswith("emergencies") else ""
            gathered.append(Example(case["text"], case["language"], family, author))
    for name, entry in _table(cases / "emergencies.toml").items():
        gathered += [Example(text, key[:2], name, "own") for key, text in _lines(entry)]
    for lists in _table(cases / "ordinary.toml").values():
        gathered += [Example(text, detect(text), "", "own") for _, text in _lines(lists)]
    second = _table(cases / "second_look.toml")
    gathered += [Example(text, detect(text), text, "own") for text in second["emergencies"].splitlines()]
    gathered += [Example(text, detect(text), "", "own") for text in second["ordinary"].splitlines()]
    for case in _table(TESTS / "workflows" / "cases" / "departments_development.toml")["case"]:
        family = case["complaint"] if any(map(is_emergency, case["departments"])) else ""
        gathered.append(Example(case["complaint"], case["language"], family, "own"))
    return [example for example in gathered if example.text]


def _table(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text("utf-8"))


def _lines(lists: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, line) for name, text in lists.items() for line in text.splitlines() if line]


def main() -> None:
    """Fit and write; print what is seen of the other authors' cases without any of theirs, alone and with the table."""
    trained_on = examples()
    weights, alone = fit(trained_on, Uncentred(E5()))
    for author in OTHERS:
        for language in LANGUAGES:
            for urgent in (True, False):
                rows = [
                    row
                    for row, example in enumerate(trained_on)
                    if (example.language, example.author, bool(example.family)) == (language, author, urgent)
                ]
                ruled = np.array([bool(red_flags(trained_on[row].text)) for row in rows])
                print(
                    f"{author} author, {language} {'emergencies' if urgent else 'ordinary'}: {len(rows)}; likeness "
                    f"{(alone[rows] > 0).mean():.3f}, with the table {((alone[rows] > 0) | ruled).mean():.3f}"
                )
    np.savez_compressed(EMERGENCIES, **stored(weights))
    print(f"{len(trained_on)} examples; {EMERGENCIES.name}: {EMERGENCIES.stat().st_size} bytes")


if __name__ == "__main__":
    main()
