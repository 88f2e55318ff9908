"""What an abstention costs beside an answer: processor time over the five tiers of the starter corpus.

    python -m tests.benchmarks.abstention

An answer from the first tier reads that tier alone; an abstention reads all five, and the other language's documents.
Questions are asked once each, warm, in one process without a model host. Processor time of the whole process, since
the wall time says more of what else the machine does.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from localmed.config import Settings
from localmed.domain import Answer, AnswerStatus, SearchFilter
from localmed.session import Session
from tests.benchmarks.common import Place, Row, met
from tests.benchmarks.plain import FOLDER, imported, questions
from tests.fakes import opened

UNKNOWN = Path(__file__).parent / "dev"  # its questions are about documents that are not in this library
FIRST = {"starter-guidelines", "ward"}  # the collections of the first tier
MOST = 2.0  # an abstention's processor time against an answer's
WARM = 3  # questions before the clock counts


def run(place: Place) -> list[Row]:
    """The row of the starter corpus with three guidelines, without a language model."""
    with opened(Settings(Path(tempfile.mkdtemp(dir=place.work)))) as session:
        imported(session, place.work, FOLDER)
        return [measured(session)]


def measured(session: Session) -> Row:
    """Answers from the first tier against abstentions over all of them."""
    answerable = [one["text"] for one in questions("answerable", FOLDER) if one.get("language", "en") == "en"]
    unknown = [one["text"] for one in questions("answerable", UNKNOWN)]
    for text in answerable[:WARM]:
        session.ask(text, SearchFilter())
    answered = [seconds for answer, seconds in _timed_answers(session, answerable) if _from_the_first_tier(answer)]
    refused = [
        seconds for answer, seconds in _timed_answers(session, unknown) if answer.status is AnswerStatus.ABSTAINED
    ]
    ratio = statistics.median(refused) / statistics.median(answered)
    how = (
        f"processor seconds, medians: {len(refused)} abstentions {statistics.median(refused):.2f} s "
        f"(slowest {max(refused):.2f}), {len(answered)} answers {statistics.median(answered):.2f} s "
        f"(slowest {max(answered):.2f})"
    )
    return Row("abstention over five tiers against an answer from the first", f"<= {MOST:.0f}x", f"{ratio:.2f}x",
               met(ratio <= MOST), how)  # fmt: skip


def _timed_answers(session: Session, texts: list[str]) -> list[tuple[Answer, float]]:
    made = []
    for text in texts:
        began = time.process_time()
        answer: Any = session.ask(text, SearchFilter())
        made.append((answer, time.process_time() - began))
    return made


def _from_the_first_tier(answer: Answer) -> bool:
    """Whether it was answered from the first tier, of all tiers that were searched."""
    used = {piece.passage.collection for piece in answer.evidence}
    return answer.status is AnswerStatus.ANSWERED and used <= FIRST


if __name__ == "__main__":
    work = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
    for row in run(Place(work, work)):
        print(row.what, "|", row.measured, "|", row.how)
