"""Refreshes: their reports, starting one, files on hold and their release, canary questions."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Form
from starlette.responses import HTMLResponse, Response

from localmed.domain import Message, message
from localmed.domain.errors import Damaged
from localmed.nightly import nights, refresh
from localmed.presentation import night_page
from localmed.site import canary_gate, holds, lookups
from localmed.web import job_pages, pages
from localmed.web.protection import DOCUMENT_POLICY
from localmed.web.visits import Librarian

if TYPE_CHECKING:
    from localmed.nightly.refresh import Watched
    from localmed.process.hooks import Hooks
    from localmed.site.session import Session

router = APIRouter(prefix="/library/refreshes")
MOST = 200  # documents listed as they were and are: what somebody reads in a morning


@router.get("")
def listing(visit: Librarian) -> Response:
    """The refreshes, newest first, with the watched folders, the files on hold and the last canary results."""
    data = visit.site.data
    compared = canary_gate.last(data)
    moved = nights.canary_lines(compared)
    shown = [night_page.canary(line) for line in moved]
    held, listed = holds.holds(data), [(night, night_page.counts(night)) for night in nights.nights(data)]
    return pages.page(
        visit,
        "refreshes.html",
        nights=listed,
        timed=nights.is_timed(data),
        held=held,
        moved=shown,
        watched=_watched(visit.session),
    )


def _watched(session: Session) -> list[Watched] | None:
    """The watched folders; None where the library is damaged, which Health tells."""
    with suppress(Damaged):
        return refresh.watched(session)
    return None


@router.get("/{number}")
def one(visit: Librarian, number: int) -> Response:
    """A refresh: its report, and earlier versions of the documents that it changed."""
    night = nights.night(visit.site.data, number)
    compared = night.before and night.generation and night.before != night.generation
    changed = lookups.changed_between(visit.session, night.before, night.generation, MOST) if compared else []
    return pages.page(visit, "refresh.html", night=night, changed=changed, most=MOST)


@router.get("/{number}/report")
def report(visit: Librarian, number: int) -> Response:
    """The report of a refresh, to print."""
    page = night_page.page(nights.night(visit.site.data, number), visit.language)
    return HTMLResponse(page, headers={"content-security-policy": DOCUMENT_POLICY})


@router.post("/begin")
def begin(visit: Librarian) -> Response:
    """Start a refresh as a job."""
    visit.session.may_change()
    return job_pages.begin(visit, "refresh", "/library/refreshes", _refresh)


@router.post("/release")
def release(visit: Librarian, path: Annotated[str, Form()] = "") -> Response:
    """Release ``path`` ("": everything on hold) to the next refresh."""
    holds.release(visit.session, [path] if path else [])
    return pages.redirect("/library/refreshes", notice="saved")


def _refresh(session: Session, hooks: Hooks) -> Message:
    night = refresh.refresh(session, hooks, by_hand=True)
    return message("job.refreshed", number=night.number, outcome=message(f"refresh.outcome_{night.outcome}"))
