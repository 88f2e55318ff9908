"""Generations: the library's states that are kept, whether each is whole, and going back to one."""

from __future__ import annotations

import re
from contextlib import suppress

from fastapi import APIRouter
from starlette.responses import Response

from localmed.errors import NoLibrary
from localmed.operations import changes, lookups
from localmed.operations.lookups import GenerationRow
from localmed.web import pages
from localmed.web.visits import Librarian

router = APIRouter(prefix="/library/generations")
EARLY = 20  # documents named that a rollback has put in force early
ID = re.compile(r"[0-9a-f]{32}")


@router.get("")
def listing(visit: Librarian, early: str = "") -> Response:
    """The generations kept, newest first; ``early`` names what a rollback has put in force before its day."""
    rows: list[GenerationRow] = []
    with suppress(NoLibrary):
        rows = lookups.generations_kept(visit.session)
    ids = [name for name in early.split(",") if ID.fullmatch(name)]
    return pages.page(visit, "generations.html", rows=rows[::-1], early=ids)


@router.get("/{number}")
def going_back(visit: Librarian, number: int) -> Response:
    """What going back to it would undo."""
    return pages.page(visit, "rollback.html", undone=lookups.undone_by_rollback(visit.session, number))


@router.post("/{number}/rollback")
def rollback(visit: Librarian, number: int) -> Response:
    """Serve it; the documents that answer now before the day that was set are named."""
    waiting = lookups.waiting(visit.session)
    changes.rollback(visit.session, number)
    early = lookups.effective_among(visit.session, waiting or frozenset())
    notice = "dates_unknown" if waiting is None else "rolled_back"
    return pages.redirect("/library/generations", notice=notice, early=",".join(early[:EARLY]))


@router.post("/verify")
def verify(visit: Librarian) -> Response:
    """Read every byte of what is kept."""
    faults = [fault for found_faults in lookups.verified(visit.session, None).values() for fault in found_faults]
    return pages.page(visit, "verified.html", faults=faults)


@router.post("/confirm")
def confirm(visit: Librarian) -> Response:
    """The generation being served was found good."""
    changes.confirm(visit.session)
    return pages.redirect("/library/generations", notice="saved")
