"""The safety officer's page: what is stopped, stopping and lifting; how often the system abstains; reports of readers.

Rates come from the audit log, which names no question: they outlast the history of those who asked.
"""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

from fastapi import APIRouter, Form
from starlette.responses import Response

from localmed.operations import feedback, lookups, stops, weekly
from localmed.operations.audit import Audit
from localmed.web import pages
from localmed.web.visits import Safety

router = APIRouter(prefix="/safety")
ENTRIES = 200  # of the audit log shown; ``localmed audit export`` has all


@router.get("")
def overview(visit: Safety) -> Response:
    """Stops, rates by week, reports."""
    session = visit.session
    names = {
        stops.WORKFLOW: stops.WORKFLOWS,
        stops.MODEL: stops.MODELS,
        stops.COLLECTION: sorted(lookups.collection_names(session)),
    }
    with closing(Audit(session.data)) as log:
        head, faults = log.head(), log.verify()
        entries = list(log.numbered(max(0, head.number - ENTRIES) if head else 0))
    return pages.page(
        visit,
        "safety.html",
        names=names,
        weeks=weekly.weeks(session),
        reports=feedback.reports(session),
        head=str(head or ""),
        audit_faults=faults,
        entries=entries[::-1],
        entries_count=head.number if head else 0,
    )


@router.post("/stop")
def stop(visit: Safety, what: Annotated[str, Form()] = "", reason: Annotated[str, Form()] = "") -> Response:
    """Stop ``what``: its kind and its name."""
    kind, _, name = what.partition(" ")
    stops.stop(visit.session, kind, name, reason)
    return pages.redirect("/safety", notice="stopped")


@router.post("/lift")
def lift(visit: Safety, what: Annotated[str, Form()] = "") -> Response:
    """Let it be used again."""
    kind, _, name = what.partition(" ")
    stops.lift(visit.session, kind, name)
    return pages.redirect("/safety", notice="saved")
