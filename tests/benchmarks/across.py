"""Questions in one language over guidelines in the other, half of them without an answer there.

    python -m tests.benchmarks.across FOLDER [LIBRARY]   (documents and cross.toml; a library that holds them)

Of the questions with an answer it is counted whether the right document is among the first five of a search across
languages; of all of them what became of the answer: right if it quotes the words that answer, wrong if it is given
otherwise, else refused. An answer across languages with a green badge is a fault.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localmed.config import Settings
from localmed.domain import AnswerStatus, Badge, SearchFilter
from localmed.session import Session
from tests.benchmarks.common import Place, Row, met
from tests.benchmarks.plain import badge, held, imported, questions
from tests.fakes import opened

SETS = Path(__file__).parent / "across"
OTHER = {"en": "zh", "zh": "en"}
FIRST, AMONG, WRONG = 0.85, 5, 0.05


@dataclass(frozen=True)
class Measured:
    """Of the questions in one language: those whose document was ``among`` the first five, and what became of all."""

    language: str
    answerable: int
    among: int
    outcomes: Counter[str]
    green: int


def measured(session: Session, items: list[dict[str, Any]]) -> list[Measured]:
    """Ask all of ``items``."""
    return [_measured(session, language, [one for one in items if one["language"] == language]) for language in OTHER]


def _measured(session: Session, language: str, items: list[dict[str, Any]]) -> Measured:
    answers = [(question, session.ask(question["text"], SearchFilter())) for question in items]
    answerable = [question for question in items if question["answerable"]]
    return Measured(
        language,
        len(answerable),
        sum(_among(session, question) for question in answerable),
        Counter(f"{kind(question)} {outcome(question, answer)}" for question, answer in answers),
        sum(badge(answer) == Badge.GREEN for _, answer in answers),
    )


def kind(question: dict[str, Any]) -> str:
    """Whether it has an answer."""
    return "with an answer" if question["answerable"] else "without"


def outcome(question: dict[str, Any], answer: Any) -> str:
    """What became of a question."""
    if answer.status is not AnswerStatus.ANSWERED:
        return "refused"
    return "right" if question["answerable"] and all(held(answer, words) for words in question["must"]) else "wrong"


def _among(session: Session, question: dict[str, Any]) -> bool:
    """Whether the right document is among the first five of the other language."""
    with session.workspace() as workspace:
        filters = SearchFilter(language=OTHER[question["language"]])
        hits = workspace.search(question["text"], filters, 50).hits
        names = list(dict.fromkeys(hit.passage.document_id for hit in hits))[:AMONG]
        documents = workspace.library.catalogue.by_ids(names)
    return any(document.source.endswith(question["document"]) for document in documents.values())


def rows(name: str, results: list[Measured]) -> list[Row]:
    """The rows of one set."""
    made = []
    for one in results:
        total, answered = one.outcomes.total(), one.outcomes
        wrong = answered["with an answer wrong"] + answered["without wrong"]
        how = f"{name}; " + ", ".join(f"{what} {count}" for what, count in sorted(answered.items()))
        made += [
            Row(f"across languages, asked in {one.language}: right document among the first five", f">= {FIRST:.0%}",
                f"{one.among} of {one.answerable}", met(one.among >= FIRST * one.answerable), name),
            Row(f"across languages, asked in {one.language}: answered rightly", "-",
                f"{answered['with an answer right']} of {one.answerable}", "-", how),
            Row(f"across languages, asked in {one.language}: answered wrongly, of all asked", f"<= {WRONG:.0%}",
                f"{wrong} of {total}", met(wrong <= WRONG * total), f"{how}; green {one.green}"),
        ]  # fmt: skip
    return made


def run(place: Place) -> list[Row]:
    """The sets that lie here and beside the ward questions, each over a fresh library; all are spent."""
    made = []
    for folder in sorted({path.parent for path in SETS.parent.glob("*/**/cross.toml")}):
        with opened(Settings(Path(tempfile.mkdtemp(dir=place.work)))) as session:
            imported(session, place.work, folder)
            made += rows(folder.name, measured(session, questions("cross", folder)))
    return made


if __name__ == "__main__":
    at = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(tempfile.mkdtemp())
    with opened(Settings(at)) as asking:
        if len(sys.argv) < 3:
            imported(asking, Path(tempfile.mkdtemp()), Path(sys.argv[1]))
        for row in rows(sys.argv[1], measured(asking, questions("cross", Path(sys.argv[1])))):
            print(row.what, "|", row.measured, "|", row.how)
