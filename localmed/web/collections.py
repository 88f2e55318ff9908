"""Collections: what there is, in which order it answers, who may read it; making, changing, deleting one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import APIRouter, Depends, Form
from starlette.responses import Response

from localmed.domain import Collection, Kind, Message, message
from localmed.errors import NoLibrary, UsageError
from localmed.hooks import Hooks
from localmed.messages import LANGUAGES
from localmed.operations import changes, importing, jobs, lookups
from localmed.operations.lookups import CollectionRow
from localmed.web import pages
from localmed.web.visits import Librarian

router = APIRouter(prefix="/library/collections")
LONGEST = 300  # characters of a title or a licence
MOST_PRIORITY = 10_000


@dataclass(frozen=True, slots=True)
class CollectionForm:
    """What the form says of a collection."""

    title: str
    kind: str
    priority: str
    language: str
    licence: str
    groups: tuple[str, ...]

    def applied(self, collection: Collection) -> Collection:
        """``collection`` with what the form says; raise ``UsageError`` for what cannot be."""
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
    rows: list[CollectionRow] = []
    with suppress(NoLibrary):
        rows = lookups.collections(visit.session)
    return pages.page(visit, "collections.html", rows=rows, kinds=list(Kind))


@router.post("")
def create(visit: Librarian, described: Described, name: Annotated[str, Form()] = "") -> Response:
    """Make one."""
    changes.create_collection(visit.session, described.applied(Collection(name, name)), described.groups)
    return pages.redirect(f"/library/collections/{name}", notice="saved")


@router.get("/{name}")
def one(visit: Librarian, name: str) -> Response:
    """One collection, to be changed."""
    return pages.page(visit, "collection.html", row=_row(visit, name), kinds=list(Kind))


@router.post("/{name}")
def change(visit: Librarian, name: str, described: Described) -> Response:
    """Change what is said of it and who may read it."""
    row = _row(visit, name)
    if set(row.groups) != set(described.groups):
        changes.set_access(visit.session, name, described.groups)
    if (changed := described.applied(row.collection)) != row.collection:
        changes.put_collection(visit.session, changed)
    return pages.redirect(f"/library/collections/{name}", notice="saved")


@router.post("/{name}/update")
def update(visit: Librarian, name: str) -> Response:
    """Bring it in step with what it was imported from."""
    return _updated(visit, name, retry=False)


@router.post("/{name}/retry")
def retry(visit: Librarian, name: str) -> Response:
    """The same, reading also what is in quarantine."""
    return _updated(visit, name, retry=True)


def _updated(visit: Librarian, name: str, retry: bool) -> Response:
    _row(visit, name)
    session = visit.session

    def work(hooks: Hooks) -> Message:
        report = importing.update(session, name, retry, hooks)
        return message("upload.published", documents=report.counts["documents"], refused=report.count("quarantined"))

    return pages.redirect(f"/jobs/{jobs.start(session, 'import', work)}")


@router.post("/{name}/delete")
def delete(visit: Librarian, name: str) -> Response:
    """Remove it with its documents."""
    _row(visit, name)
    changes.delete_collection(visit.session, name)
    return pages.redirect("/library/collections", notice="deleted")


def _row(visit: Librarian, name: str) -> CollectionRow:
    collection = lookups.collection(visit.session, name)
    return next(row for row in lookups.collections(visit.session) if row.collection.name == collection.name)
