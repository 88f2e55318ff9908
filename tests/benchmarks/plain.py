"""Plain questions whose answer stands in a guideline, and questions about another disease, population or purpose.

The starter corpus beside three documents of our own (``plain/``), asked without a language model. An answer is right if
it is given and holds the words that answer; refused if none is given; else wrong. Of answers from a section with a
warning ("do not", "never") it is counted whether the warning is shown. Questions about something else are counted by
what became of them: green is wrong.
"""

from __future__ import annotations

import tempfile
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from localmed.config import Settings
from localmed.domain import Answer, AnswerStatus, Badge, SearchFilter
from localmed.ingest import manifest
from localmed.operations import importing
from localmed.session import Session
from tests.benchmarks.common import Place, Row, met
from tests.fakes import opened

CORPORA = Path(__file__).parents[2] / "corpora"
FOLDER = Path(__file__).parent / "plain"
MANIFEST = (
    'name = "ward"\ntitle = "Ward guidelines"\npriority = 10\nkind = "guideline"\nlicence = "own"\nsource = "own"\n'
)
RIGHT, WRONG, ELSEWHERE = 0.75, 0.02, 0


def run(place: Place) -> list[Row]:
    """Ask everything over a fresh library."""
    with opened(Settings(Path(tempfile.mkdtemp(dir=place.work)))) as session:
        imported(session, place.work)
        answers = [(question, session.ask(question["text"], SearchFilter())) for question in questions("answerable")]
        others = [session.ask(question["text"], SearchFilter()) for question in questions("elsewhere")]
    counts = Counter(outcome(question, answer) for question, answer in answers)
    total = len(answers)
    safety = Counter(
        held(answer, question["safety"]) for question, answer in answers if "safety" in question and answer.statements
    )
    green = sum(bool(answer.statements) and answer.verification.badge is Badge.GREEN for answer in others)
    answered = sum(answer.status is AnswerStatus.ANSWERED for answer in others)
    how = "three documents and questions of our own, written before the change, looked at once"
    return [
        Row("Plain questions answered rightly", f"{RIGHT:.0%}", f"{counts['right'] / total:.0%} of {total}",
            met(counts["right"] >= RIGHT * total), f"{how}; {counts['refused']} refused"),
        Row("Plain questions answered wrongly", f"{WRONG:.0%}", f"{counts['wrong'] / total:.1%}",
            met(counts["wrong"] <= WRONG * total), how),
        Row("Warnings of a quoted section that were dropped", "0", f"{safety[False]} of {safety.total()}",
            met(not safety[False]), how),
        Row("Questions about something else with a green badge", f"{ELSEWHERE}", f"{green} of {len(others)}",
            met(green == ELSEWHERE), f"{answered} answered; the questions' author wrote the table of qualifiers"),
    ]  # fmt: skip


def imported(session: Session, work: Path) -> None:
    """Import the starter corpus and the three documents."""
    for file in sorted(CORPORA.glob("starter-*.toml")):
        importing.import_paths(session, [CORPORA / "starter" / file.stem.removeprefix("starter-")], manifest.load(file))
    ward = work / "ward.toml"
    ward.write_text(MANIFEST, "utf-8")
    importing.import_paths(session, sorted(FOLDER.glob("*.md")), manifest.load(ward))


def questions(name: str) -> list[dict[str, Any]]:
    """Those of a file beside the documents."""
    questions: list[dict[str, Any]] = tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))["question"]
    return questions


def outcome(question: Mapping[str, Any], answer: Answer) -> str:
    """What became of a question: right, wrong or refused."""
    if answer.status is not AnswerStatus.ANSWERED:
        return "refused"
    return "right" if all(held(answer, words) for words in question["evidence"]) else "wrong"


def held(answer: Answer, words: str) -> bool:
    """Whether the sentences shown hold ``words``."""
    shown = " ".join(statement.text for statement in answer.statements if not statement.withheld)
    return _plain(words) in _plain(shown)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
