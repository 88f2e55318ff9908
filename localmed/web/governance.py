"""Governance of a collection as a table to edit, reviews that are due, the quarantine with its reasons, open questions.

Open questions are shown without their askers and patients.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from localmed.domain.errors import UsageError
from localmed.people import feedback, history
from localmed.site import changes, lookups
from localmed.site.lookups import EditedRow
from localmed.text.identifiers import unnamed
from localmed.web import pages
from localmed.web.job_pages import change
from localmed.web.visits import Librarian

router = APIRouter(prefix="/library")
ROWS = 100  # files of a table: a form of more fields is refused by the server
FAULTS = 50  # wrong rows shown
WITHIN = (0, 30, 90, 365)  # days until a review


@router.get("/governance")
def choose(visit: Librarian) -> Response:
    """The choice of a collection."""
    names = sorted(lookups.collection_names(visit.session))
    return pages.page(visit, "governance.html", names=names, name="", header=(), rows=(), faults=(), page=1, last=1)


@router.get("/governance/{name}")
def table(visit: Librarian, name: str, page: int = 1) -> Response:
    """The files of a collection with their governance."""
    return _table(visit, name, page)


def _table(
    visit: Librarian, name: str, page: int, faults: Any = (), status: int = 200, edited: Sequence[EditedRow] = ()
) -> Response:
    """The stored table, with what was ``edited`` but not saved."""
    header, *rows = lookups.sheet_rows(visit.session, name)
    last = max(1, -(-len(rows) // ROWS))
    first = (min(max(page, 1), last) - 1) * ROWS
    names = sorted(lookups.collection_names(visit.session))
    typed, before = {row.number: row.typed for row in edited}, {row.number: row.shown for row in edited}
    numbered = enumerate(rows[first : first + ROWS], first + 1)
    shown = [(number, typed.get(number, row), json.dumps(before.get(number, row))) for number, row in numbered]
    return pages.page(
        visit,
        "governance.html",
        status,
        names=names,
        name=name,
        header=header,
        rows=shown,
        faults=faults[:FAULTS],
        page=page,
        last=last,
    )


@router.post("/governance/{name}")
async def edit(visit: Librarian, name: str, request: Request, page: int = 1) -> Response:
    """Save the changed cells: all of them, or none if a row is wrong."""
    rows = _changed_rows(await request.form())
    return await run_in_threadpool(_set, visit, name, page, rows)


def _changed_rows(form: FormData) -> list[EditedRow]:
    """The rows with a changed cell; each row carries its old values."""
    rows = []
    for field, stated in form.multi_items():
        kind, _, number = field.partition("-")
        if kind != "row" or not number.isdecimal() or not isinstance(stated, str):
            continue
        shown = _cells(stated)
        typed = [str(form.get(f"cell-{number}-{column}", before)) for column, before in enumerate(shown)]
        if typed[1:] != shown[1:]:
            rows.append(EditedRow(int(number), tuple(shown), (shown[0], *(cell.strip() for cell in typed[1:]))))
    return rows


def _cells(stated: str) -> list[str]:
    with suppress(ValueError, RecursionError):
        cells = json.loads(stated)
        if isinstance(cells, list) and cells and all(isinstance(cell, str) for cell in cells):
            return cells
    raise UsageError("web.error.malformed")


def _set(visit: Librarian, name: str, page: int, rows: list[EditedRow]) -> Response:
    planned = lookups.planned_edits(visit.session, name, rows)
    if planned.faults:
        return _table(visit, name, page, planned.faults, 400, rows)
    back = f"/library/governance/{name}"
    if planned.changes:
        return change(visit, "govern", f"{back}?page={page}", changes.govern, planned.changes)
    return pages.redirect(back, page=str(page), notice="saved")


@router.get("/review")
def review(visit: Librarian, collection: str = "", within: int = 90) -> Response:
    """Documents whose review is due, and those whose text is not the approved one."""
    within = within if within in WITHIN else WITHIN[2]
    documents, lapsed = lookups.to_review(visit.session, collection, within)
    names = sorted(lookups.collection_names(visit.session))
    return pages.page(
        visit,
        "review.html",
        lacking=lookups.count_lacking(visit.session, collection),
        documents=documents,
        lapsed=lapsed,
        remarked=lookups.remarked(visit.session),
        names=names,
        collection=collection,
        within=within,
        choices=WITHIN,
    )


@router.get("/quarantine")
def quarantine(visit: Librarian, collection: str = "") -> Response:
    """The files that imports refused, with the reasons."""
    refused = lookups.quarantine(visit.session, collection)
    names = sorted(lookups.collection_names(visit.session))
    rows = [(Path(entry.path).name, entry) for entry in refused]
    return pages.page(visit, "quarantine.html", rows=rows, names=names, collection=collection)


@router.get("/questions")
def questions(visit: Librarian) -> Response:
    """The questions that the library could not answer, or not well."""
    session = visit.session
    found_nothing = [(kept.time, "nothing", kept.asked_text) for kept in history.list_unanswered(session)]
    bad = [(report.time, "bad", report.asked_text) for report in feedback.marked_bad(session) if report.asked_text]
    rows = [(pages.day(time), why, unnamed(text)) for time, why, text in sorted((*found_nothing, *bad), reverse=True)]
    return pages.page(visit, "questions.html", rows=list(dict.fromkeys(rows)))
