"""Whether localmed answers by a site's own labelled questions (``evaluation.calibrating``): kept, or taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localmed.errors import UsageError
from localmed.operations import canary_gate
from localmed.retrieval import calibration
from localmed.retrieval.calibration import Calibration

if TYPE_CHECKING:
    from localmed.session import Session


def keep(session: Session, rows: tuple[Calibration, ...]) -> None:
    """Answer by ``rows`` from the next question on, in place of those of the same combinations.

    Raise ``CanariesLost`` where a canary question would be lost: then what was in force stays.
    """
    names = " ".join(row.language for row in rows)
    with session.change("calibrate", names) as change:
        replaced = {row.key for row in rows}
        whole = (*(row for row in calibration.calibrations(session.data) if row.key not in replaced), *rows)
        canary_gate.look_at_calibrations(session, whole)
        calibration.keep(session.data, whole)
        change.outcome = f"{sum(row.question_count for row in rows)} questions"


def reset(session: Session) -> None:
    """Answer by localmed's own calibration again; raise ``UsageError`` where the site has none of its own.

    A damaged file goes too: that is how one is mended.
    """
    if not (session.data / calibration.FILE).exists():
        raise UsageError("calibration.none")
    with session.change("calibrate", "reset"):
        canary_gate.look_at_calibrations(session, ())
        calibration.keep(session.data, ())
