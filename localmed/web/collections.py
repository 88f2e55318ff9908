"""Collections: their order and readers; creating, changing and deleting one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Depends, Form
from starlette.responses import Response

from localmed.domain import Collection, Kind, Message, message
from localmed.domain.errors import NoLibrary, UsageError
from localmed.messages import LANGUAGES
from localmed.process.hooks import Hooks
from localmed.site import changes, importing, lookups
from localmed.site.lookups import CollectionRow
from localmed.site.session import Session
from localmed.web import job_pages, pages
from localmed.web.visits import Librarian

router = APIRouter(prefix="/library/collections")
LONGEST = 300  # characters of a title or a licence
MOST_PRIORITY = 10_000


@dataclass(frozen=True, slots=True)
class CollectionForm:
    """The fields of a collection's form, as typed."""

    title: str
    kind: str
    priority: str
    language: str
    licence: str
    groups: tuple[str, ...]
    name: str = ""

    @classmethod
    def of(cls, row: CollectionRow) -> CollectionForm:
        """The form of a stored collection."""
        it = row.collection
        return cls(it.title, it.kind, str(it.priority), it.language, it.licence, row.groups, it.name)

    def applied(self, collection: Collection) -> Collection:
        """``collection`` with the typed values; raise ``UsageError`` for an invalid one."""
        if not self.priority.isdecimal() or int(self.priority) > MOST_PRIORITY:
            raise UsageError("web.collections.priority_wrong", most=MOST_PRIORITY)
        if self.kind not in tuple(Kind) or self.language not in ("", *LANGUAGES):
            raise UsageError("web.error.malformed")
        if max(len(self.title), len(self.licence)) > LONGEST:
            raise UsageError("web.collections.long", most=LONGEST)
        return replace(
            collection,
            title=self.title.strip() or collection.name,
            kind=Kind(self.kind),
            priority=int(self.priority),
            language=self.language,
            licence=self.licence.strip(),
        )


def form_of(
    title: Annotated[str, Form()] = "",
    kind: Annotated[str, Form()] = "",
    priority: Annotated[str, Form()] = "100",
    language: Annotated[str, Form()] = "",
    licence: Annotated[str, Form()] = "",
    groups: Annotated[str, Form()] = "",
) -> CollectionForm:
    """The fields of a collection's form."""
    return CollectionForm(title, kind, priority, language, licence, tuple(groups.replace(",", " ").split()))


Described = Annotated[CollectionForm, Depends(form_of)]


@router.get("")
def listing(visit: Librarian) -> Response:
    """All collections, first priority first."""
    return _list_page(visit, CollectionForm("", "", "100", "", "", ()))


def _list_page(visit: Librarian, typed: CollectionForm, fault: Message | None = None) -> Response:
    """The collections, and the form as it was ``typed`` before the ``fault``."""
    rows: list[CollectionRow] = []
    with suppress(NoLibrary):
        rows = lookups.collections(visit.session)
    return pages.page(visit, "collections.html", rows=rows, kinds=list(Kind), typed=typed, fault=fault)


@router.post("")
def create(visit: Librarian, described: Described, name: Annotated[str, Form()] = "") -> Response:
    """Create a collection."""
    try:
        collection = described.applied(Collection(name, name))
        changes.require_new(visit.session, name, described.groups)
    except UsageError as error:
        return _list_page(visit, replace(described, name=name), error.full_message)
    return job_pages.change(
        visit, "collection", "/library/collections", changes.create_collection, collection, described.groups
    )


@router.get("/{name}")
def one(visit: Librarian, name: str) -> Response:
    """A collection to change."""
    row = _row(visit, name)
    return _shown(visit, row, CollectionForm.of(row))


def _shown(visit: Librarian, row: CollectionRow, typed: CollectionForm, fault: Message | None = None) -> Response:
    return pages.page(visit, "collection.html", row=row, kinds=list(Kind), typed=typed, fault=fault)


@router.post("/{name}")
def change(visit: Librarian, name: str, described: Described) -> Response:
    """Change a collection and who may read it."""
    row = _row(visit, name)
    try:
        changed = described.applied(row.collection)
        changes.checked(described.groups)
    except UsageError as error:
        return _shown(visit, row, described, error.full_message)
    if set(row.groups) != set(described.groups):
        changes.set_access(visit.session, name, described.groups)
    if changed != row.collection:
        return job_pages.change(visit, "collection", _page_of(name), changes.put_collection, changed)
    return pages.redirect(_page_of(name), notice="saved")


@router.post("/{name}/update")
def update(visit: Librarian, name: str) -> Response:
    """Import its changed files again."""
    return _updated(visit, name, retry=False)


@router.post("/{name}/retry")
def retry(visit: Librarian, name: str) -> Response:
    """The same, including files in quarantine."""
    return _updated(visit, name, retry=True)


def _updated(visit: Librarian, name: str, retry: bool) -> Response:
    _row(visit, name)
    return job_pages.begin(visit, "import", _page_of(name), _in_step, name, retry)


def _in_step(session: Session, name: str, retry: bool, hooks: Hooks) -> Message:
    report = importing.update(session, name, retry, hooks)
    return message("upload.published", documents=report.counts["documents"], refused=report.count("quarantined"))


@router.post("/{name}/delete")
def delete(visit: Librarian, name: str) -> Response:
    """Delete it with its documents."""
    _row(visit, name)
    return job_pages.change(visit, "delete", "/library/collections", changes.delete_collection, name)


def _page_of(name: str) -> str:
    return f"/library/collections/{name}"


def _row(visit: Librarian, name: str) -> CollectionRow:
    collection = lookups.collection(visit.session, name)
    return next(row for row in lookups.collections(visit.session) if row.collection.name == collection.name)
