"""Documents: the list with its filters, and one document with what is known of it, its text, and what can be done.

Withdrawing holds from the next question on, and in answers that are open. Who was given an answer that cites the
document is named, so that they can be told; what they asked is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from localmed.domain import Document, Message, Status
from localmed.errors import UsageError
from localmed.operations import changes, cited, lookups
from localmed.operations.governing import Change
from localmed.web import pages
from localmed.web.job_pages import change
from localmed.web.visits import Librarian

router = APIRouter(prefix="/library/documents")
SHOWN = 200  # rows of the list
PASSAGES = 60  # shown of a document
FIELDS = ("edition", "owner", "approver", "effective_from", "review_by")
LONGEST_REASON = 500  # characters, of why a document is withdrawn


@dataclass(frozen=True, slots=True)
class DocumentFilter:
    """What the list is limited to; an empty field does not limit."""

    collection: str = ""
    status: str = ""
    title: str = ""

    def takes(self, document: Document) -> bool:
        """Whether the list has ``document``."""
        title = document.title.casefold()
        return (not self.status or document.status == self.status) and all(
            word in title for word in self.title.casefold().split()
        )


@router.get("")
def listing(visit: Librarian, collection: str = "", status: str = "") -> Response:
    """The documents of a collection or a status."""
    return _listed(visit, DocumentFilter(collection, status))


@router.post("")
def filtered(
    visit: Librarian,
    collection: Annotated[str, Form()] = "",
    status: Annotated[str, Form()] = "",
    title: Annotated[str, Form()] = "",
) -> Response:
    """The same, with words of the title."""
    return _listed(visit, DocumentFilter(collection, status, title))


def _listed(visit: Librarian, chosen: DocumentFilter) -> Response:
    stored = lookups.documents_overdue(visit.session, chosen.collection)
    rows = [(document, overdue) for document, overdue in stored if chosen.takes(document)]
    names = sorted(lookups.collection_names(visit.session))
    return pages.page(
        visit,
        "documents.html",
        rows=rows[:SHOWN],
        more=max(0, len(rows) - SHOWN),
        chosen=chosen,
        names=names,
        statuses=list(Status),
    )


@router.get("/{document_id}")
def one(visit: Librarian, document_id: str) -> Response:
    """One document."""
    return _shown(visit, document_id)


def _shown(
    visit: Librarian, document_id: str, typed: dict[str, str] | None = None, fault: Message | None = None
) -> Response:
    """One document; with what was ``typed`` of its governance and not set, because of ``fault``."""
    details = lookups.document_details(visit.session, document_id)
    answers = cited.answers_citing(visit.session, details.document.id)
    shown = details.passages[:PASSAGES]
    more = len(details.passages) - len(shown)
    return pages.page(
        visit,
        "document.html",
        400 if fault else 200,
        details=details,
        passages=shown,
        more=more,
        answers=answers,
        values=_stated(details.document) | (typed or {}),
        fault=fault,
    )


@router.post("/{document_id}/withdraw")
def withdraw(visit: Librarian, document_id: str, reason: Annotated[str, Form()] = "") -> Response:
    """It never answers again."""
    return _withdrawn(visit, document_id, True, reason)


@router.post("/{document_id}/reinstate")
def reinstate(visit: Librarian, document_id: str, reason: Annotated[str, Form()] = "") -> Response:
    """Take a withdrawal back."""
    return _withdrawn(visit, document_id, False, reason)


def _withdrawn(visit: Librarian, document_id: str, withdrawn: bool, reason: str) -> Response:
    document = lookups.document(visit.session, document_id)
    if not reason.strip() or len(reason) > LONGEST_REASON:
        raise UsageError("web.documents.reason", most=LONGEST_REASON)
    changes.withdraw(visit.session, document, withdrawn, reason.strip())
    return _back(document, "withdrawn" if withdrawn else "reinstated")


@router.post("/{document_id}/supersede")
def supersede(visit: Librarian, document_id: str, successor: Annotated[str, Form()] = "") -> Response:
    """Another document takes its place ("": one that is not named)."""
    document = lookups.document(visit.session, document_id)
    after = lookups.document(visit.session, successor.strip()).id if successor.strip() else ""
    return change(visit, "mark", _page_of(document), changes.mark, document, Status.SUPERSEDED, after)


@router.post("/{document_id}/current")
def current(visit: Librarian, document_id: str) -> Response:
    """It is not superseded."""
    document = lookups.document(visit.session, document_id)
    return change(visit, "mark", _page_of(document), changes.mark, document, Status.CURRENT)


@router.post("/{document_id}/govern")
async def govern(visit: Librarian, document_id: str, request: Request) -> Response:
    """Set edition, owner, approver, effective-from, review-by."""
    from starlette.concurrency import run_in_threadpool

    form = await request.form()
    values = {field: value.strip() for field in FIELDS if isinstance(value := form.get(field), str)}
    return await run_in_threadpool(_governed, visit, document_id, values)


def _governed(visit: Librarian, document_id: str, values: dict[str, str]) -> Response:
    document = lookups.document(visit.session, document_id)
    stored = _stated(document)
    changed = {name: value for name, value in values.items() if value != stored[name]}
    if not changed:
        return _back(document, "saved")
    planned = Change((document,), changed)
    try:
        changes.require_governable(visit.session, planned)
    except UsageError as error:
        return _shown(visit, document_id, values, error.full_message)
    return change(visit, "govern", _page_of(document), changes.govern, [planned])


@router.post("/{document_id}/remove")
def remove(visit: Librarian, document_id: str) -> Response:
    """Take it out of every index until its file is imported again."""
    document = lookups.document(visit.session, document_id)
    return change(visit, "remove", address(document.collection), changes.remove, [document])


def address(collection: str) -> str:
    """The page that lists the documents of ``collection``."""
    return f"/library/documents?{urlencode({'collection': collection})}"


def _stated(document: Document) -> dict[str, str]:
    """What is set of it, by the field."""
    return {"edition": document.edition} | {name: getattr(document.governance, name) for name in FIELDS[1:]}


def _page_of(document: Document) -> str:
    return f"/library/documents/{document.id}"


def _back(document: Document, notice: str) -> Response:
    return pages.redirect(_page_of(document), notice=notice)
