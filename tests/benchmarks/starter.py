"""The starter corpus's own questions: answered or abstained, the right document, the words that answer; and Chinese
multiple-choice questions, which the starter corpus cannot answer, as questions to abstain from.
"""

from __future__ import annotations

import csv
import re
import tempfile
import tomllib
from collections import Counter
from pathlib import Path

from localmed.config import Settings
from localmed.domain import Answer, SearchFilter
from localmed.ingest import manifest
from localmed.operations import importing
from localmed.session import Session
from tests.benchmarks import plain
from tests.benchmarks.common import Place, Row
from tests.fakes import opened

HERE = Path(__file__).parent
CORPORA = HERE.parents[1] / "corpora"
A_SUBJECT = 100
NAMELESS_SET = "tests/benchmarks/nameless.toml over the starter corpus, spent"


def run(place: Place) -> list[Row]:
    """Ask everything over a fresh library of the starter corpus."""
    questions = tomllib.loads((CORPORA / "starter_questions.toml").read_text("utf-8"))["question"]
    with opened(Settings(Path(tempfile.mkdtemp(dir=place.work)))) as session:
        for file in sorted(CORPORA.glob("starter-*.toml")):
            importing.import_paths(
                session, [CORPORA / "starter" / file.stem.removeprefix("starter-")], manifest.load(file)
            )
        rows = []
        for language, name in (("en", "English"), ("zh", "Chinese")):
            answers = [
                (entry, session.ask(entry["text"], SearchFilter()))
                for entry in questions
                if entry["language"] == language
            ]
            rows.append(_row(name, answers))
        foreign = _foreign(place)
        answered = sum(bool(session.ask(question, SearchFilter()).statements) for question in foreign)
        how = f"{len(foreign)} questions of six CMMLU subjects over the starter corpus; the threshold was set on these"
        rows.append(
            Row(
                "Chinese questions of other subjects that were answered", "", f"{answered / len(foreign):.1%}", "-", how
            )
        )
        return [*rows, *_nameless(session)]


def _nameless(session: Session) -> list[Row]:
    """What becomes of questions that do not say what they are about, and of those that barely do."""
    entries = tomllib.loads((HERE / "nameless.toml").read_text("utf-8"))["question"]
    answers = [(entry["nameless"], plain.badge(session.ask(entry["text"], SearchFilter()))) for entry in entries]
    rows = []
    for nameless, which in ((True, "do not say what they are about"), (False, "barely say what they are about")):
        badges = Counter(badge for kind, badge in answers if kind == nameless)
        measured = f"{badges.total() - badges['refused']} of {badges.total()}, {badges['green']} green"
        rows.append(Row(f"Questions answered that {which}", "0" if nameless else "", measured, "-", NAMELESS_SET))
    return rows


def _row(name: str, answers: list[tuple[dict[str, str], Answer]]) -> Row:
    yes = [(entry, answer) for entry, answer in answers if entry["answerable"]]
    no = [(entry, answer) for entry, answer in answers if not entry["answerable"]]
    answered = [(entry, answer) for entry, answer in yes if answer.statements]
    right = sum(
        entry["document"] in {Path(source.source).name for source in answer.evidence} for entry, answer in answered
    )
    held = sum(
        _bare(entry["evidence"]) in _bare(" ".join(s.text for s in answer.statements)) for entry, answer in answered
    )
    wrong = sum(bool(answer.statements) for _, answer in no)
    measured = (
        f"{len(answered)} of {len(yes)} answered, {right} citing the right document, {held} with the very words; "
        f"{wrong} of {len(no)} unanswerable answered"
    )
    how = "the corpus's own questions; sentence scoring was developed on them"
    return Row(f"starter corpus, {name} questions", "", measured, "-", how)


def _bare(text: str) -> str:
    return re.sub(r"\s", "", text).lower()


def _foreign(place: Place) -> list[str]:
    questions = []
    for file in sorted((place.data / "mcq" / "zh" / "test").glob("*.csv")):
        with file.open(encoding="utf-8") as stream:
            questions += [row["Question"] for row in list(csv.DictReader(stream))[:A_SUBJECT]]
    return questions
