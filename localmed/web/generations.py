"""Generations: the kept states of the library, their verification, and returning to one."""

from __future__ import annotations

from contextlib import suppress

from fastapi import APIRouter
from starlette.responses import Response

from localmed.domain import Message, message
from localmed.domain.errors import NoLibrary
from localmed.process.hooks import Hooks
from localmed.site import changes, lookups
from localmed.site.lookups import GenerationRow
from localmed.site.session import Session
from localmed.upkeep import check
from localmed.web import pages
from localmed.web.job_pages import begin
from localmed.web.visits import Librarian

router = APIRouter(prefix="/library/generations")
EARLY = 20  # documents named that a rollback has put in force early
FAULTS = 20  # named of a check


@router.get("")
def listing(visit: Librarian) -> Response:
    """The generations kept, newest first."""
    rows: list[GenerationRow] = []
    with suppress(NoLibrary):
        rows = lookups.generations_kept(visit.session)
    return pages.page(visit, "generations.html", rows=rows[::-1])


@router.get("/{number}")
def preview_rollback(visit: Librarian, number: int) -> Response:
    """The changes that a return would undo."""
    return pages.page(visit, "rollback.html", undone=lookups.undone_by_rollback(visit.session, number))


@router.post("/{number}/rollback")
def rollback(visit: Librarian, number: int) -> Response:
    """Return to a generation."""
    visit.session.may_change()
    return begin(visit, "rollback", "/library/generations", _return_to, number)


def _return_to(session: Session, number: int, hooks: Hooks) -> Message:
    """Return to it; name documents that answer now before their effective date."""
    del hooks  # they reach it by ``hooks.active``
    waiting = lookups.pending_documents(session)
    changes.rollback(session, number)
    rolled_back = message("job.rolled_back")
    early = lookups.effective_among(session, waiting or frozenset())
    if waiting is not None and not early:
        return rolled_back
    named = message("generation.early", count=len(early), ids=tuple(id_[:12] for id_ in early[:EARLY]))
    unknown = message("generation.dates_unknown")
    return message("job.rolled_back_early", rolled_back=rolled_back, early=unknown if waiting is None else named)


@router.post("/verify")
def verify(visit: Librarian) -> Response:
    """Read every byte of the kept generations."""
    return begin(visit, "check", "/library/generations", _verified)


def _verified(session: Session, hooks: Hooks) -> Message:
    del hooks
    faults = [fault for of_generation in check.find_all_faults(session, None).values() for fault in of_generation]
    session.note("check", "", "damaged" if faults else "intact")
    if not faults:
        return message("web.generations.whole")
    more = (message("job.more", count=len(faults) - FAULTS),) if len(faults) > FAULTS else ()
    return message("job.faults", faults=(*faults[:FAULTS], *more))


@router.post("/confirm")
def confirm(visit: Librarian) -> Response:
    """Confirm that the served generation is good."""
    changes.confirm(visit.session)
    return pages.redirect("/library/generations", notice="saved")
