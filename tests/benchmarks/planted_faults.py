"""Planted faults: English and Chinese paraphrases of the starter corpus and of passages of our own beside it, each
cited to its passage, right and then with a fault of each kind (``tests/verification/planting.py``); verbatim
comparison is off, as for a model.

A fault is caught where the sentence would be withheld; a right sentence that would be withheld is a false alarm. Rules
were developed on 200 of the English statements (and 85 more that are not reported) and half of the Chinese ones, then
on 50 others and on 52 and 34 over subjects that the corpus does not have. The held back ones were written before that
last round. Only their totals were seen: once before it, once after it, when nothing was changed any more.

The paraphrases and the faults are by the author of the rules. A wrong citation is the most similar other passage (by
words) of the corpus, apart from documents that say the same; the other kinds of fault are written by rule, "nowhere" by
hand.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from localmed.agents.evidence import citation
from localmed.config import Settings
from localmed.domain import Evidence, Origin, Passage, Statement, Status, Verification
from localmed.ingest import manifest
from localmed.operations import importing
from localmed.session import Session
from localmed.verification import support
from tests.benchmarks.common import Place, Row, library, met
from tests.fakes import opened
from tests.verification.planting import KINDS, faults, pairs, written

CORPORA = Path(__file__).parents[2] / "corpora"
CAUGHT, ALARMS = 0.95, 0.05
TARGETED = ("number", "unit", "drug", "citation")
SETS = {
    "statements_en": "the 200 that the rules were developed on",
    "statements_fresh_en": "50 written after them, read one by one since",
    "statements_other_en": "52 on other subjects, to develop on",
    "statements_held_en": "74 held back, over the corpus and other passages",
    "statements_zh": "40 Chinese ones, half of them for development",
    "statements_other_zh": "34 Chinese ones on other subjects, to develop on",
    "statements_held_zh": "42 Chinese ones held back, over the corpus and other passages",
}
_ROUND = {"fresh": "fresh", "other": "other subjects", "held": "held back"}
HOW = "statements: {which}; withheld by rules and likeness"


def run(place: Place) -> list[Row]:
    """The sets of statements over a fresh library of the starter corpus."""
    with opened(Settings(Path(tempfile.mkdtemp(dir=place.work)))) as session:
        for file in sorted(CORPORA.glob("starter-*.toml")):
            importing.import_paths(
                session, [CORPORA / "starter" / file.stem.removeprefix("starter-")], manifest.load(file)
            )
        passages = sorted(library(session).lexical.all_passages(), key=lambda passage: passage.id)
        return [row for name in SETS for row in _rows(name, _measured(session, name, [*passages, *written(name)]))]


def withheld(session: Session, items: Sequence[tuple[str, Passage]]) -> list[bool]:
    """Whether each (statement, cited passage) would be withheld."""
    evidence = [_evidence(passage) for _, passage in items]
    statements = [
        Statement(text, (citation(source, text),), Origin.GENERATED)
        for (text, _), source in zip(items, evidence, strict=True)
    ]
    verdicts = []
    with session.workspace() as workspace:
        stances_of = [workspace.judge(support.pairs((statement,), (source,)))
                      for statement, source in zip(statements, evidence, strict=True)]  # fmt: skip
    for statement, source, stances in zip(statements, evidence, stances_of, strict=True):
        (checked,), _ = support.check((statement,), (source,), stances, Verification(1, 0))
        verdicts.append(checked.withheld)
    return verdicts


def _evidence(passage: Passage) -> Evidence:
    return Evidence("1", passage, passage.title, "", Status.CURRENT, "", "", "", "")


def _measured(session: Session, name: str, passages: Sequence[Passage]) -> dict[str, tuple[int, int]]:
    """Kind -> withheld, all; "right" are the untouched statements."""
    right = pairs(name, passages)
    planted = list(faults(right, passages))
    items = [(item.text, item.passage) for item in right] + [(item.text, item.passage) for item in planted]
    kinds = ["right"] * len(right) + [item.kind for item in planted]
    caught = Counter(kind for kind, no in zip(kinds, withheld(session, items), strict=True) if no)
    return {kind: (caught[kind], kinds.count(kind)) for kind in ("right", *KINDS) if kind in kinds}


def _rows(name: str, counts: dict[str, tuple[int, int]]) -> list[Row]:
    alarms, size = counts.pop("right")
    how = HOW.format(which=SETS[name])
    note = f"{size} {'Chinese' if name.endswith('zh') else 'English'} statements"
    note += next((f", {called}" for part, called in _ROUND.items() if f"_{part}_" in name), "")
    rows = [Row(f"false alarms, {note}", f"<= {ALARMS:.0%}", _share(alarms, size), met(alarms <= ALARMS * size), how)]
    for kind, (caught, planted) in counts.items():
        targeted = kind in TARGETED and name.endswith("en")
        enough = met(caught >= CAUGHT * planted) if targeted else "-"
        target = f">= {CAUGHT:.0%}" if targeted else ""
        rows.append(Row(f"planted faults caught, {note}: {kind}", target, _share(caught, planted), enough, how))
    return rows


def _share(count: int, total: int) -> str:
    return f"{count} of {total} ({count / total:.1%})"
