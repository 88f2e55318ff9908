"""Plain questions of a third to a ninth author over ward guidelines, and questions that these do not answer.

Each set: two or three documents (English, one Chinese) beside the starter corpus, asked without a chat model, with the
default encoder and with abstention. A plain question is right if its answer shows every one of ``must``, and
nothing of ``must_not`` (``may_not``) in front of "The section goes on"; wrong if another answer is given, else refused.
It is right in front if every one of ``must`` stands there. An answer to a question about something else is counted
by its badge; green is wrong. A warning is a sentence of ours below (``WARNS``); it is dropped if the answer cites
its section and does not show it. ``ward_dev`` was open while the rules were written, ``ward_held`` was looked at once.

    python -m tests.benchmarks.ward FOLDER [LIBRARY]   (documents, plain.toml and elsewhere.toml; prints every outcome)
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from localmed.config import Settings
from localmed.domain import Answer, AnswerSection, AnswerStatus, SearchFilter
from localmed.language import sentences
from localmed.session import Session
from tests.benchmarks import plain
from tests.benchmarks.common import Place, Row, met
from tests.fakes import opened

HERE = Path(__file__).parent
SETS = {
    "ward_dev": "third author, open while the rules were written",
    "ward_held": "third author, held back, looked at once",
    "ward2_dev": "fourth author, open while the rules were written",
    "ward2_held": "fourth author, held back, looked at once",
    "ward3_held": "fifth author, held back, looked at once",
    "ward4_held": "sixth author, held back, looked at once",
    "ward5_held": "seventh author, held back, looked at once",
    "ward6_held": "eighth author, held back, looked at once",
    "ward7_held": "ninth author, held back, looked at once",
}
RIGHT, WRONG = 0.75, 0.02
WARNS = re.compile(
    r"\b(do not|never|must not|should not|avoid|stop|contraindicated|nothing by mouth)\b"
    "|不得|不要|不能|不宜|禁|切勿|停用|立即停|避免",
    re.IGNORECASE,
)
MARKUP = re.compile(r"(?<!\w)[*_`]+|[*_`]+(?!\w)|^\s*(?:[-+]|\d+\.)\s+|^#+\s+")  # not the star of HLA-B*58:01


@dataclass(frozen=True)
class Asked:
    """What became of one question, and which warnings of the sections cited are shown and which dropped."""

    question: Mapping[str, Any]
    outcome: str
    badge: str
    shown: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    in_front: bool = False


def measured(folder: Path, library: Path) -> dict[str, list[Asked]]:
    """The questions of ``folder``, plain ones and those about something else, over ``library``, made if new."""
    fresh = not library.exists()
    with opened(Settings(library)) as session:
        if fresh:
            plain.imported(session, Path(tempfile.mkdtemp()), folder)
        warnings = dict(sections(folder))
        return {
            name: [one(session, question, warnings) for question in plain.questions(name, folder)]
            for name in ("plain", "elsewhere")
            if (folder / f"{name}.toml").exists()
        }


def one(session: Session, question: Mapping[str, Any], warnings: Mapping[tuple[str, str], list[str]]) -> Asked:
    """Ask it."""
    answer = session.ask(question["text"], SearchFilter())
    badge = plain.badge(answer)
    due = [line for section in cited(answer) for line in warnings.get(section, ())]
    shown = tuple(line for line in due if plain.held(answer, line))
    dropped = tuple(line for line in due if line not in shown)
    ended, front = outcome(question, answer), _front(answer)
    in_front = ended == "right" and all(plain.held(front, words) for words in question["must"])
    return Asked(question, ended, badge, shown, dropped, in_front)


def _front(answer: Answer) -> Answer:
    """``answer`` without what only goes on with its sections."""
    kept = tuple(one for one in answer.statements if one.section is not AnswerSection.CONTINUES)
    return replace(answer, statements=kept)


def outcome(question: Mapping[str, Any], answer: Answer) -> str:
    """Right (and whole), wrong or refused; of a question without ``must`` answered or refused."""
    if answer.status is not AnswerStatus.ANSWERED:
        return "refused"
    if "must" not in question:
        return "answered"
    whole = all(plain.held(answer, words) for words in question["must"])
    others = (*question.get("must_not", ()), *question.get("may_not", ()))
    return "right" if whole and not any(plain.held(_front(answer), words) for words in others) else "wrong"


def cited(answer: Answer) -> set[tuple[str, str]]:
    """Title and last heading of each section that what is shown cites."""
    if answer.status is not AnswerStatus.ANSWERED:
        return set()
    markers = {one.marker for statement in answer.statements if not statement.withheld for one in statement.citations}
    pieces = [piece for piece in answer.evidence if piece.marker in markers]
    return {(piece.document_title, (piece.passage.headings or ("",))[-1]) for piece in pieces}


def sections(folder: Path) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """The warnings of each section of the documents, by title and heading; tables left out, they are shown in cells."""
    for path in sorted(folder.rglob("*.md")):
        title, *parts = re.split(r"^#+ +", path.read_text("utf-8"), flags=re.MULTILINE)[1:]
        for part in parts:
            heading, _, body = part.partition("\n")
            lines = [MARKUP.sub("", line).strip() for line in body.split("\n") if not line.startswith("|")]
            texts = [line[start:end] for line in lines for start, end in sentences(line)]
            yield (title.split("\n")[0].strip(), heading.strip()), [text for text in texts if WARNS.search(text)]


def run(place: Place) -> list[Row]:
    """Both sets."""
    rows = []
    for name, how in SETS.items():
        if (HERE / name).exists():
            rows += _rows(measured(HERE / name, Path(tempfile.mkdtemp(dir=place.work)) / "data"), name, how)
    return rows


def _rows(questions: Mapping[str, list[Asked]], name: str, how: str) -> list[Row]:
    outcomes, others = (
        Counter(one.outcome for one in questions["plain"]),
        Counter(one.badge for one in questions["elsewhere"]),
    )
    shown, dropped = (sum(len(getattr(one, field)) for one in questions["plain"]) for field in ("shown", "dropped"))
    total, right, wrong = outcomes.total(), outcomes["right"], outcomes["wrong"]
    green = sum(one.outcome == "right" and one.badge == "green" for one in questions["plain"])
    front = sum(one.in_front for one in questions["plain"])
    how = f"{name}, {how}"
    return [
        Row(f"Plain ward questions right and whole, {name}", f"{RIGHT:.0%}", f"{right} of {total}",
            met(right >= RIGHT * total),
            f"{how}; {outcomes['refused']} refused; of the right {green} green, {front} in front"),
        Row(f"Plain ward questions answered wrongly or in part, {name}", f"{WRONG:.0%}", f"{wrong} of {total}",
            met(wrong <= WRONG * total), how),
        Row(f"Ward questions about something else, green, {name}", "0", f"{others['green']} of {others.total()}",
            met(not others["green"]), f"{how}; {others['refused']} refused, the rest answered otherwise"),
        Row(f"Warnings of cited ward sections dropped, {name}", "0", f"{dropped} of {shown + dropped}",
            met(not dropped), f"{how}; by words of warning in running text, tables left out"),
    ]  # fmt: skip


if __name__ == "__main__":
    place = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(tempfile.mkdtemp()) / "data"
    for name, rows in measured(Path(sys.argv[1]), place).items():
        for row in rows:
            print(
                name, row.question.get("id", ""), row.outcome, row.badge, row.question["text"], *row.dropped, sep="\t"
            )
        print(name, Counter(row.outcome for row in rows), Counter(row.badge for row in rows))
        print("warnings shown", sum(len(row.shown) for row in rows), "dropped", sum(len(row.dropped) for row in rows))
