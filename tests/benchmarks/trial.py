"""The first look at public documents that were not used before: as a new user meets them, without a chat model.

``trial`` of the data holds the PDFs, none of which is part of the project; ``trial/questions.toml`` names two of them,
with the questions that an author wrote who had read them and asked nothing. The starter corpus stands beside them. A
section counts as right if it holds the words that answer. "Taken away" is what a page shows first, while a model reads,
and no longer shows in its place when the model has said that it found nothing. ``trial.txt`` of the work folder takes
the sentences that were taken for text addressed to a program, and every table with its rows, to be read.

Which extracts are rubbish a person reads: ``trial/read.toml`` says what was found of each file, by its name.
"""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from localmed.config import Settings
from localmed.domain import Answer, SearchFilter
from localmed.domain.findings import Finding
from localmed.models.e5 import E5, Uncentred
from localmed.process.hooks import Hooks
from localmed.safety.prompt_injection import has_injection
from localmed.site.session import Session
from tests.benchmarks.alarms import split
from tests.benchmarks.common import Place, Row, library, met
from tests.benchmarks.sections import imported
from tests.benchmarks.sections import place as place_of
from tests.fakes import ANY, opened
from tests.scripted import ScriptedChat

HERE = Path(__file__).parent / "trial"
FIRST = 3  # sections on the first screen
ASKED = tomllib.loads((HERE / "questions.toml").read_text("utf-8"))
NOTHING = {"covers_patient": "unknown", "statements": [], "not_covered": [], "look_for": ""}


def places(session: Session) -> Iterator[tuple[str, int, Finding]]:
    """Each question's name, the place of the right section among ten (99: none), and what was found."""
    for one in ASKED["question"]:
        finding = session.find(one["text"], SearchFilter(), 50, 10)
        yield one["id"], place_of(finding.sections, one["must"]), finding


def taken_away(settings: Settings) -> int:
    """How many questions show other first sections at the end than while the model read."""
    gone = 0
    with opened(settings, chat=ScriptedChat(lambda _: NOTHING)) as session:
        for one in ASKED["question"]:
            before: list[Answer] = []
            after = session.ask(one["text"], ANY, hooks=Hooks(sections=before.append))
            gone += bool(before) and _first(before[0]) != _first(after)
    return gone


def _first(answer: Answer) -> list[str]:
    return [answer.by_marker[one.best].passage.id for one in answer.sections[:FIRST]]


def alarms(session: Session) -> tuple[list[str], int]:
    """The sentences of the documents that are taken for text addressed to a program, and how many there are."""
    passages = library(session).lexical.all_passages()
    sentences = list(dict.fromkeys(split(one.text for one in passages if one.collection == "ward")))
    encoder = Uncentred(E5())
    return [one for one in sentences if has_injection(one, encoder)], len(sentences)


def rows(found: Sequence[tuple[str, int, Finding]], gone: int, noticed: int, total: int) -> list[Row]:
    """The rows of RESULTS.md."""
    read = tomllib.loads((HERE / "read.toml").read_text("utf-8"))["file"]
    first, now = (sum(one["rubbish"] and not one[when] for one in read) for when in ("first", "now"))
    count = len(found)
    shares = "; ".join(
        f"first {most}: {sum(at <= most for _, at, _ in found)} ({sum(at <= most for _, at, _ in found) / count:.1%})"
        for most in (1, FIRST, 5, 10)
    )
    how = "two NICE guidelines as PDF beside the starter corpus, questions typed as on a ward, first look"
    return [
        Row("section that answers, two guidelines not used before", "-", f"{shares}; of {count}", "-", how),
        Row("first sections taken away when the model had read", "0", f"{gone} of {count}", met(not gone), how),
        Row(
            "sentences of documents not used before taken for text that speaks to a program",
            "<= 1 in 5,000",
            f"{noticed} of {total}",
            met(noticed * 5000 <= total),
            "public PDFs (NICE, WHO, FDA), has_injection with e5",
        ),
        Row("extracts of PDFs not used before in which something is torn without a warning", "<= 1 of 20",
            f"{first} of {len(read)} at first look, {now} now", met(now <= 1),
            "read by eye; trial/read.toml"),
    ]  # fmt: skip


def run(place: Place) -> list[Row]:
    """All of it over one library."""
    settings = Settings(Path(tempfile.mkdtemp(dir=place.work)))
    with opened(settings) as session:
        imported(session, sorted((place.data / "trial").glob("*.pdf")))
        found = list(places(session))
        noticed, total = alarms(session)
        _write(place.work / "trial.txt", session, found, noticed)
    return rows(found, taken_away(settings), len(noticed), total)


def _write(path: Path, session: Session, found: Sequence[tuple[str, int, Finding]], noticed: Sequence[str]) -> None:
    with path.open("w", encoding="utf-8") as out:
        for name, at, finding in found:
            out.write(f"== {name}: {at}\n")
            for section in finding.sections[:FIRST]:
                out.write(f"   {section.best.passage.title} > {' > '.join(section.headings)}\n")
                out.writelines(f"      * {line.text}\n" for line in section.marks)
        out.writelines(f"ALARM {one}\n" for one in noticed)
        for passage in library(session).lexical.all_passages():
            if passage.collection == "ward" and passage.table:
                out.write(f"-- {passage.title}, page {passage.page}\n{passage.text}\n")
