"""A site's own calibration: what its labelled questions came to at each threshold of the relevance judge.

Kept in ``<data>/calibration.json``, a row for each encoder, reranker and language, with the fingerprint of the judge
that was calibrated and a digest over all. A row holds for its combination alone: with another one, or when a later
version brings other weights, the reader is told that the site is not calibrated until its questions are asked again
(``localmed calibrate``). No question stands in it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from localmed import files
from localmed.domain import digest
from localmed.errors import Damaged, LocalmedError
from localmed.retrieval.relevance import Fitted, Outcome, fitted

FILE = "calibration.json"


@dataclass(frozen=True, slots=True)
class Calibration:
    """The ``outcomes`` of ``question_count`` questions of a file (``questions``: its digest), highest threshold first.

    ``judge`` is the fingerprint of what judged them; ``user`` and ``time`` (ISO 8601) say who had them asked, and when.
    """

    encoder: str
    reranker: str
    language: str
    judge: str
    outcomes: tuple[Outcome, ...]
    question_count: int
    questions: str
    user: str
    time: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What it holds for."""
        return self.encoder, self.reranker, self.language


def calibrations(data: Path) -> tuple[Calibration, ...]:
    """What the site calibrated; raise ``Damaged`` for a file that is not as it was written."""
    path = data / FILE
    if not path.exists():
        return ()
    try:
        values = json.loads(files.contents(path))
        rows = tuple(
            Calibration(**{**row, "outcomes": tuple(Outcome(*one) for one in row["outcomes"])})
            for row in values["calibrations"]
        )
    except (LocalmedError, ValueError, LookupError, TypeError, AttributeError):
        raise Damaged("calibration.damaged", file=str(path)) from None
    if values.get("sum") != _sum(rows):
        raise Damaged("calibration.damaged", file=str(path))
    return rows


def keep(data: Path, rows: Sequence[Calibration]) -> None:
    """Let ``rows`` be the site's; none of them: it has not got any calibration of its own any more."""
    if not rows:
        (data / FILE).unlink(missing_ok=True)
        return
    written = [{**asdict(row), "outcomes": [(one.level, one.right, one.wrong) for one in row.outcomes]} for row in rows]
    content = json.dumps({"calibrations": written, "sum": _sum(rows)}, ensure_ascii=False, indent=1)
    files.replace(data / FILE, content.encode())


def _sum(rows: Sequence[Calibration]) -> str:
    return digest(*map(repr, rows))


def served(rows: Sequence[Calibration], encoder: str, reranker: str, language: str) -> Fitted:
    """The judge for this combination, with the site's outcomes if it has any of just this one."""
    judge = fitted(encoder, reranker, language)
    own = [row for row in rows if row.language == language]
    for row in own:
        if row.key == (encoder, reranker, language) and row.judge == judge.fingerprint:
            return replace(judge, own=row.outcomes, calibrated=True)
    return replace(judge, calibrated=judge.calibrated and not own)
