"""Fit the likeness to emergencies on our sentences and the development cases, and write its weights.

    python -m tests.benchmarks.train_emergencies

Of the cases of tests/clinical all that are spent; the set of the last look, *_last_look.toml, is never read here, nor
any held-back case of departments.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from localmed.agents.emergency_likeness import LANGUAGES, WEIGHTS
from localmed.agents.safety_likeness import stored
from localmed.clinical.red_flags import red_flags
from localmed.language import detect
from localmed.models.e5 import E5, Uncentred
from localmed.retrieval.guide import is_emergency
from localmed.training.emergencies import OTHERS, Example, fit

TESTS = Path(__file__).parents[1]
OTHER_SETS = (
    ("emergencies_development", "first"), ("ordinary_development", "first"),
    ("emergencies_held_back", "first"), ("ordinary_held_back", "first"),
    ("emergencies_second_author", "second"), ("ordinary_second_author", "second"),
)  # fmt: skip
SENTENCES = tomllib.loads(files("localmed.training").joinpath("emergency_sentences.toml").read_text("utf-8"))


def examples() -> list[Example]:
    """The sentences, the development cases by another author, the cases of the table, the departments' complaints."""
    cases = TESTS / "clinical" / "cases"
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
    np.savez_compressed(WEIGHTS, **stored(weights))
    print(f"{len(trained_on)} examples; {WEIGHTS.name}: {WEIGHTS.stat().st_size} bytes")


if __name__ == "__main__":
    main()
