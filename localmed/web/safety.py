"""The safety officer's page: stops, how often nothing is found, reports of readers, answers exported to look into.

Rates come from the audit log, which names no question: they outlast the history of those who asked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Form
from starlette.responses import Response

from localmed.nightly import weekly
from localmed.people import feedback, history
from localmed.presentation.answer import view
from localmed.presentation.plain import plain
from localmed.site import lookups, stops
from localmed.site.audit import NEWEST, Audit, Head
from localmed.upkeep import incident
from localmed.web import ask, pages
from localmed.web.visits import Safety

router = APIRouter(prefix="/safety")
_VERIFIED: dict[Path, Head] = {}  # up to where this process has verified the log of a data folder
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
    with Audit(session.data) as log:
        head = log.head()
        faults, verified = log.verify_newest(_VERIFIED.get(session.data))
        if verified:
            _VERIFIED[session.data] = verified
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
        verified=min(NEWEST, head.number) if head else 0,
    )


@router.post("/incident")
def export(visit: Safety, answer_id: Annotated[str, Form()] = "") -> Response:
    """The archive of an answer to look into."""
    made = incident.export(visit.session, answer_id.strip(), lambda answer: plain(view(answer, visit.language)))
    headers = {"content-disposition": f'attachment; filename="incident-{answer_id.strip()}.zip"'}
    return Response(made.archive, media_type="application/zip", headers=headers)


@router.get("/reports/{answer_id}")
def reported_answer(visit: Safety, answer_id: str) -> Response:
    """An answer as it was shown to whoever reported it, also once something that it cites was withdrawn."""
    _, kept = history.reported(visit.session, answer_id)
    values = ask.values_of(visit, kept) | {"holds": True, "sheet": True}
    return pages.page(visit, "answer.html", **values, asks=True, back="/safety")


@router.post("/reports/seen")
def see_report(visit: Safety, answer_id: Annotated[str, Form()] = "", user: Annotated[str, Form()] = "") -> Response:
    """Note that a report was seen."""
    feedback.see(visit.session, answer_id, user)
    return pages.redirect("/safety", notice="saved")


@router.post("/reports/delete")
def delete_report(visit: Safety, answer_id: Annotated[str, Form()] = "", user: Annotated[str, Form()] = "") -> Response:
    """Delete a report, with the question and the answer that it holds."""
    feedback.delete(visit.session, answer_id, user)
    return pages.redirect("/safety", notice="forgotten")


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
