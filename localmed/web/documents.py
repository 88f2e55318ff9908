"""Documents: the list with its filters, and one document with its facts, its text and its actions.

A withdrawal is in force from the next question on, and in open answers. The page shows how many answers cite a
document; the audit log tells safety officers who received them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Form
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from localmed.domain import Document, Message, SearchFilter, Status, message
from localmed.domain.errors import UsageError
from localmed.people import history
from localmed.process.hooks import Hooks
from localmed.site import changes, lookups
from localmed.site.governing import Change
from localmed.site.session import Session
from localmed.text.differences import Line, differences
from localmed.text.language import clean
from localmed.web import pages
from localmed.web.job_pages import begin, change
from localmed.web.visits import Librarian, Visit

router = APIRouter(prefix="/library/documents")
SHOWN = 200  # rows of the list
PASSAGES = 60  # shown of a document
HEADINGS = 300  # shown of a document, to be corrected
FIELDS = ("title", "edition", "owner", "approver", "effective_from", "review_by", "tags")
CHANGES = 200  # shown between two editions
SHARED = FIELDS[1:]  # set of many documents at once
CLEAR = "-"
TYPED, TRIED = 400, 10  # characters of a question that a passage is tried by; sections that are looked through
LACKING = ("unowned", "undated")  # of documents in use, as Review counts them


@dataclass(frozen=True, slots=True)
class DocumentFilter:
    """The limits of the list; an empty field does not limit."""

    collection: str = ""
    status: str = ""
    title: str = ""
    language: str = ""
    only: str = ""
    sort: str = ""

    def takes(self, document: Document, overdue: str, remarked: Set[str]) -> bool:
        """Whether the list includes ``document``, whose review is ``overdue`` since that date.

        ``remarked`` are the documents with a note on a passage.
        """
        return (
            (not self.status or document.status == self.status)
            and (not self.language or document.language == self.language)
            and (self.only != "overdue" or (bool(overdue) and document.status is not Status.SUPERSEDED))
            and (self.only != "notes" or bool(document.notes) or document.id in remarked)
            and (self.only not in LACKING or document.status is Status.CURRENT)
            and (self.only != "unowned" or not document.governance.owner)
            and (self.only != "undated" or not document.governance.review_by)
            and lookups.matches_words(document, self.title)
        )

    @classmethod
    def of(cls, form: FormData) -> DocumentFilter:
        """The limits in the form of the list."""
        return cls(*(str(form.get(name.name, "")) for name in fields(cls)))


ONLY = ("overdue", "unowned", "undated", "notes")
SORTS: dict[str, tuple[Callable[[Document], Any], bool]] = {  # key, newest first
    "title": (lambda it: it.title.casefold(), False),
    "edition": (lambda it: it.edition, True),
    "owner": (lambda it: it.governance.owner.casefold(), False),
    "review_by": (lambda it: it.governance.review_by or "9999", False),
}


@router.get("")
def listing(visit: Librarian, collection: str = "", status: str = "", only: str = "") -> Response:
    """The documents of a collection or a status, or those that lack something."""
    return _list_page(visit, DocumentFilter(collection, status, only=only))


@router.post("")
async def filter_list(visit: Librarian, request: Request) -> Response:
    """The list with every limit, in another order, or with titles to edit."""
    form = await request.form()
    return await run_in_threadpool(_list_page, visit, DocumentFilter.of(form), edits="edits" in form)


@router.post("/set")
async def set_many(visit: Librarian, request: Request) -> Response:
    """Set edited titles, and fields of the chosen documents: an empty field changes nothing, "-" clears."""
    form = await request.form()
    chosen = tuple(str(it) for it in form.getlist("document"))
    titles = {
        name.removeprefix("title-"): typed.strip()
        for name, typed in form.items()
        if name.startswith("title-") and isinstance(typed, str) and typed != form.get(f"was-{name[6:]}")
    }
    given = {field: value.strip() for field in SHARED if isinstance(value := form.get(field), str) and value.strip()}
    values = {field: "" if value == CLEAR else value for field, value in given.items()}
    limits = DocumentFilter.of(form)
    limits = replace(limits, title=str(form.get("words", "")))
    return await run_in_threadpool(_set_many, visit, chosen, values, given, limits, titles)


def _set_many(
    visit: Librarian,
    chosen: tuple[str, ...],
    values: dict[str, str],
    given: dict[str, str],
    limits: DocumentFilter,
    titles: dict[str, str],
) -> Response:
    try:
        planned = [Change((lookups.document(visit.session, it),), {"title": title}) for it, title in titles.items()]
        if chosen and values:
            planned.append(Change(tuple(lookups.document(visit.session, it) for it in chosen), values))
        if not planned:
            raise UsageError("web.documents.none_chosen")
        for one in planned:
            changes.require_governable(visit.session, one)
    except UsageError as error:
        return _list_page(visit, limits, given, chosen, error.full_message, bool(titles), titles)
    return change(visit, "govern", address(limits.collection), changes.govern, planned)


def _list_page(
    visit: Librarian,
    chosen: DocumentFilter,
    typed: dict[str, str] | None = None,
    marked: tuple[str, ...] = (),
    fault: Message | None = None,
    edits: bool = False,
    titles: dict[str, str] | None = None,
) -> Response:
    """The documents that ``chosen`` includes. After a ``fault``: what was ``typed`` for the documents ``marked``.

    ``edits``: their titles are fields, with the ``titles`` that were typed.
    """
    stored = lookups.documents_overdue(visit.session, chosen.collection)
    remarked = {row.remark.document for row in lookups.remarked(visit.session)}
    rows = [(document, overdue) for document, overdue in stored if chosen.takes(document, overdue, remarked)]
    if order := SORTS.get(chosen.sort):
        rows.sort(key=lambda row: order[0](row[0]), reverse=order[1])
    names = sorted(lookups.collection_names(visit.session))
    return pages.page(
        visit,
        "documents.html",
        values={name: (typed or {}).get(name, "") for name in SHARED},
        marked=marked,
        fault=fault,
        rows=rows[:SHOWN],
        more=max(0, len(rows) - SHOWN),
        chosen=chosen,
        names=names,
        statuses=list(Status),
        only=ONLY,
        sorts=list(SORTS),
        edits=edits,
        titles=titles or {},
    )


@router.get("/{document_id}")
def one(visit: Librarian, document_id: str) -> Response:
    """One document."""
    return _document_page(visit, document_id)


@router.get("/{document_id}/changes/{old_id}")
def changed(visit: Librarian, document_id: str, old_id: str) -> Response:
    """What the document says otherwise than an older one."""
    document, after = lookups.lines_of(visit.session, document_id)
    return changes_page(visit, f"/library/documents/{document_id}", document.title, document.edition, after, old_id)


def changes_page(visit: Visit, back: str, title: str, edition: str, after: Sequence[Line], old_id: str) -> Response:
    """What ``after``, the lines of a document or of an upload, say otherwise than the document ``old_id``."""
    old, before = lookups.lines_of(visit.session, old_id)
    found = differences(before, after)
    return pages.page(
        visit,
        "changes.html",
        back=back,
        title=title,
        edition=edition,
        old=old,
        rows=found[:CHANGES],
        more=len(found) - CHANGES,
    )


def _document_page(
    visit: Librarian,
    document_id: str,
    typed: dict[str, str] | None = None,
    fault: Message | None = None,
    reason: str = "",
    reason_fault: Message | None = None,
    tried: dict[str, Any] | None = None,
) -> Response:
    """One document. After a ``fault`` with what was ``typed``; after a ``reason_fault`` with the ``reason``.

    ``tried`` is the passage that a question was to find.
    """
    details = lookups.document_details(visit.session, document_id)
    stored = lookups.settable_values(details.document)
    headings = details.headings[:HEADINGS]
    shown = details.passages[:PASSAGES]
    more = len(details.passages) - len(shown)
    remarks = {row.passage.id: row.remark for row in lookups.remarked(visit.session, details.document.id)}
    remarked = [passage for passage in details.passages if passage.id in remarks]
    return pages.page(
        visit,
        "document.html",
        400 if reason_fault else 0,
        details=details,
        successors=lookups.successors(visit.session, details.document)[:SHOWN],
        reason=reason,
        reason_fault=reason_fault,
        passages=shown,
        remarks=remarks,
        remarked=remarked,
        headings=headings,
        more_headings=len(details.headings) - len(headings),
        more=more,
        answers=history.count_citing(visit.session.data, [details.document.id]),
        stored=stored,
        values=stored | (typed or {}),
        fault=fault,
        fixed=lookups.stated_fields(visit.session, details.document),
        tried=tried or {"passage": ""},
    )


@router.post("/{document_id}/withdraw")
def withdraw(visit: Librarian, document_id: str, reason: Annotated[str, Form()] = "") -> Response:
    """Withdraw the document from use."""
    return _set_withdrawal(visit, document_id, True, reason)


@router.post("/{document_id}/reinstate")
def reinstate(visit: Librarian, document_id: str, reason: Annotated[str, Form()] = "") -> Response:
    """Take a withdrawal back."""
    return _set_withdrawal(visit, document_id, False, reason)


def _set_withdrawal(visit: Librarian, document_id: str, withdrawn: bool, reason: str) -> Response:
    document = lookups.document(visit.session, document_id)
    try:
        changes.withdraw(visit.session, document, withdrawn, reason)
    except UsageError as error:
        return _document_page(visit, document_id, reason=reason, reason_fault=error.full_message)
    return _redirect_to(document, "withdrawn" if withdrawn else "reinstated")


@router.post("/{document_id}/supersede")
def supersede(visit: Librarian, document_id: str, successor: Annotated[str, Form()] = "") -> Response:
    """Mark the document as superseded by ``successor`` ("": not named)."""
    document = lookups.document(visit.session, document_id)
    after = lookups.document(visit.session, successor.strip()).id if successor.strip() else ""
    return _mark(visit, document, Status.SUPERSEDED, after)


@router.post("/{document_id}/current")
def current(visit: Librarian, document_id: str) -> Response:
    """Mark the document as current."""
    document = lookups.document(visit.session, document_id)
    return _mark(visit, document, Status.CURRENT)


def _mark(visit: Visit, document: Document, status: Status, after: str = "") -> Response:
    visit.session.may_change()
    return begin(visit, "mark", _page_of(document), _set_status, document, status, after)


def _set_status(session: Session, document: Document, status: Status, after: str, hooks: Hooks) -> Message:  # noqa: ARG001
    """Set the status and report the one now in force."""
    changes.mark(session, document, status, after)
    now = lookups.document(session, document.id).status
    return message("documents.marked", title=document.title, status=Message(f"documents.status_{now.value}"))


@router.post("/{document_id}/govern")
async def govern(visit: Librarian, document_id: str, request: Request) -> Response:
    """Set title, edition, tags and governance."""
    form = await request.form()
    values = {field: value.strip() for field in FIELDS if isinstance(value := form.get(field), str)}
    before = {field: str(form.get(f"was-{field}", "")) for field in values if f"was-{field}" in form}
    return await run_in_threadpool(_set_governance, visit, document_id, values, before)


def _set_governance(visit: Librarian, document_id: str, values: dict[str, str], before: dict[str, str]) -> Response:
    """Set the ``values`` that differ from ``before``: a form made before an earlier save ended does not undo it."""
    document = lookups.document(visit.session, document_id)
    shown = lookups.settable_values(document) | before
    changed = {name: value for name, value in values.items() if value != shown[name]}
    try:
        return _set(visit, document, changed)
    except UsageError as error:
        return _document_page(visit, document_id, values, error.full_message)


def _set(visit: Visit, document: Document, changed: dict[str, str]) -> Response:
    if not changed:
        return _redirect_to(document, "saved")
    planned = Change((document,), changed)
    changes.require_governable(visit.session, planned)
    return change(visit, "govern", _page_of(document), changes.govern, [planned])


@router.post("/{document_id}/headings")
async def correct_headings(visit: Librarian, document_id: str, request: Request) -> Response:
    """Rename headings or mark them as none; ``undo`` restores one."""
    form = {name: value.strip() for name, value in (await request.form()).items() if isinstance(value, str)}
    return await run_in_threadpool(_set_headings, visit, document_id, form)


def _set_headings(visit: Visit, document_id: str, form: dict[str, str]) -> Response:
    details, changed = lookups.document_details(visit.session, document_id), {}
    for heading in details.headings:
        value = heading.set_to(form.get(heading.field, ""), f"no {heading.field}" in form)
        value = "" if form.get("undo") == heading.field else value
        if heading.field in form and value != heading.value:
            changed[heading.field] = value
    return _set(visit, details.document, changed)


@router.post("/{document_id}/passages/{passage_id}")
def remark(
    visit: Librarian,
    document_id: str,
    passage_id: str,
    act: Annotated[str, Form()] = "",
    note: Annotated[str, Form()] = "",
) -> Response:
    """Switch a passage off or on, clear a suspicion, or attach a note."""
    acts: dict[str, dict[str, bool | str]] = {
        "off": {"off": True},
        "on": {"off": False},
        "clear": {"cleared": True},
        "suspect": {"cleared": False},
        "note": {"note": note},
    }
    if act not in acts:
        raise UsageError("web.error.malformed")
    document, passage = lookups.document(visit.session, document_id), lookups.passage(visit.session, passage_id)
    changes.remark(visit.session, passage, **acts[act])  # type: ignore[arg-type]
    return _redirect_to(document, "saved")


@router.post("/{document_id}/passages/{passage_id}/try")
def try_passage(visit: Librarian, document_id: str, passage_id: str, question: Annotated[str, Form()] = "") -> Response:
    """Whether a question finds the passage, and as which section."""
    text = clean(question).strip()[:TYPED]
    answer = visit.session.search(text, SearchFilter(), TRIED) if text else None
    known = answer.by_marker if answer else {}
    sections = answer.receipts.sections if answer and answer.receipts else ()
    places = (
        number
        for number, section in enumerate(sections, 1)
        if passage_id in {known[marker].passage.id for marker in section.markers}
    )
    tried = {"passage": passage_id, "question": text, "place": next(places, 0), "most": TRIED}
    return _document_page(visit, document_id, tried=tried)


@router.post("/{document_id}/pages/{page}/wrong")
def read_wrongly(visit: Librarian, document_id: str, page: int, what: Annotated[str, Form()] = "") -> Response:
    """Attach a note to every passage of a page (0: of a document without pages) that was misread.

    The note ends with ``what`` is wrong. No language model reads these passages from then on.
    """
    details = lookups.document_details(visit.session, document_id)
    note = f"{pages.texts(visit.language)('web.documents.read_wrongly_note')} {clean(what)[:TYPED]}".rstrip()
    for passage in details.passages:
        if page in (passage.pages or (0,)):
            changes.remark(visit.session, passage, note=note)
    return _redirect_to(details.document, "saved")


@router.post("/{document_id}/remove")
def remove(visit: Librarian, document_id: str) -> Response:
    """Remove the document from every index until its file is imported again."""
    document = lookups.document(visit.session, document_id)
    return change(visit, "remove", address(document.collection), changes.remove, [document])


def address(collection: str) -> str:
    """The page with the documents of ``collection``."""
    return f"/library/documents?{urlencode({'collection': collection})}"


def _page_of(document: Document) -> str:
    return f"/library/documents/{document.id}"


def _redirect_to(document: Document, notice: str) -> Response:
    return pages.redirect(_page_of(document), notice=notice)
