"""Plain questions whose answer stands in a guideline, and questions about another disease, population or purpose.

The starter corpus beside three documents of our own (``plain/``), asked without a language model. An answer is right if
it is given and holds the words that answer; refused if none is given; else wrong. Of answers from a section with a
warning ("do not", "never") it is counted whether the warning is shown. Questions about something else are counted by
what became of them: green is wrong.

    python -m tests.benchmarks.plain FOLDER   (documents, answerable.toml and elsewhere.toml of another author)
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
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
HELD = Path(__file__).parent / "held"  # another author's; nothing is tuned on it
MANIFEST = (
    'name = "ward"\ntitle = "Ward guidelines"\npriority = 10\nkind = "guideline"\nlicence = "own"\nsource = "own"\n'
)
RIGHT, WRONG, ELSEWHERE = 0.75, 0.02, 0


@dataclass(frozen=True)
class Measured:
    """What became of the questions of a folder.

    ``outcomes`` counts right, wrong and refused answers, ``green`` the right ones with a green badge. ``warnings``
    counts, of answers that quote the section with a warning, whether they show it. ``elsewhere`` counts what became of
    questions about something else: refused, or the badge.
    """

    outcomes: Counter[str]
    green: int
    warnings: Counter[bool]
    elsewhere: Counter[str]


def measured(folder: Path, work: Path) -> Measured:
    """Ask everything of ``folder`` over a fresh library."""
    with opened(Settings(Path(tempfile.mkdtemp(dir=work)))) as session:
        imported(session, work, folder)
        pairs = [
            (question, session.ask(question["text"], SearchFilter())) for question in questions("answerable", folder)
        ]
        others = [session.ask(question["text"], SearchFilter()) for question in questions("elsewhere", folder)]
    right = [answer for question, answer in pairs if outcome(question, answer) == "right"]
    warned = [
        (question, answer) for question, answer in pairs if "safety" in question and quotes(question, answer, folder)
    ]
    return Measured(
        Counter(outcome(question, answer) for question, answer in pairs),
        sum(badge(answer) == Badge.GREEN for answer in right),
        Counter(held(answer, question["safety"]) for question, answer in warned),
        Counter(badge(answer) for answer in others),
    )


def badge(answer: Answer) -> str:
    """The badge of what is shown; "refused" where nothing is."""
    return answer.verification.badge.value if answer.status is AnswerStatus.ANSWERED else "refused"


def quotes(question: Mapping[str, Any], answer: Answer, folder: Path) -> bool:
    """Whether an answer quotes the section in which the question's warning stands."""
    texts = [path.read_text("utf-8") for path in sorted(folder.rglob("*.md"))]
    before = next(text for text in texts if question["safety"] in text).partition(question["safety"])[0]
    headings = [line.lstrip("# ") for line in before.split("\n") if line.startswith("#")]
    return any(
        answer.status is AnswerStatus.ANSWERED
        and (piece.document_title, piece.passage.headings[-1:]) == (headings[0], (headings[-1],))
        for piece in answer.evidence
    )


def run(place: Place) -> list[Row]:
    """The questions of whoever wrote the rules, and those of another author, held back from them."""
    own = "three documents and questions of our own, written before the change, looked at once"
    another = "three documents and questions of another author, held back, looked at once"
    rows = _rows(measured(FOLDER, place.work), "", f"{own}; the questions' author wrote the table of qualifiers")
    if HELD.exists():
        rows += _rows(measured(HELD, place.work), ", held back", another)
    return rows


def _rows(counts: Measured, which: str, how: str) -> list[Row]:
    total, right = counts.outcomes.total(), counts.outcomes["right"]
    dropped, green, elsewhere = counts.warnings[False], counts.elsewhere["green"], counts.elsewhere.total()
    return [
        Row(f"Plain questions answered rightly{which}", f"{RIGHT:.0%}", f"{right / total:.0%} of {total}",
            met(right >= RIGHT * total), f"{how}; {counts.outcomes['refused']} refused"),
        Row(f"Plain questions answered wrongly{which}", f"{WRONG:.0%}", f"{counts.outcomes['wrong'] / total:.1%}",
            met(counts.outcomes["wrong"] <= WRONG * total), how),
        Row(f"Right answers with a green badge{which}", "-", f"{counts.green} of {right}", "-", how),
        Row(f"Warnings of a quoted section that were dropped{which}", "0", f"{dropped} of {counts.warnings.total()}",
            met(not dropped), how),
        Row(f"Questions about something else with a green badge{which}", f"{ELSEWHERE}", f"{green} of {elsewhere}",
            met(green == ELSEWHERE), f"{how}; {elsewhere - counts.elsewhere['refused']} answered"),
    ]  # fmt: skip


def imported(session: Session, work: Path, folder: Path = FOLDER) -> None:
    """Import the starter corpus and the documents of ``folder``."""
    for file in sorted(CORPORA.glob("starter-*.toml")):
        importing.import_paths(session, [CORPORA / "starter" / file.stem.removeprefix("starter-")], manifest.load(file))
    ward = work / "ward.toml"
    ward.write_text(MANIFEST, "utf-8")
    importing.import_paths(session, sorted(folder.rglob("*.md")), manifest.load(ward))


def questions(name: str, folder: Path = FOLDER) -> list[dict[str, Any]]:
    """Those of a file beside the documents."""
    questions: list[dict[str, Any]] = tomllib.loads((folder / f"{name}.toml").read_text("utf-8"))["question"]
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


if __name__ == "__main__":
    print(measured(Path(sys.argv[1]), Path(tempfile.mkdtemp())))
