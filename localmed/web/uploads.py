"""Uploads: files sent by a browser, a preview of what was read, and publication into a collection.

The preview is the page of a dry run, in a frame without scripts (``protection.DOCUMENT_POLICY``).
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, File, Form, UploadFile
from starlette.responses import HTMLResponse, Response

from localmed import __version__
from localmed.domain import Document, Message, message
from localmed.domain.errors import NotAllowed, UnknownName, UsageError
from localmed.domain.previews import FilePreview
from localmed.messages import LANGUAGES
from localmed.presentation.preview import PreviewPage
from localmed.process.files import replace
from localmed.process.hooks import Hooks
from localmed.site import importing, jobs, lookups, uploads
from localmed.site.session import Session
from localmed.site.uploads import Upload
from localmed.web import documents, pages
from localmed.web.job_pages import begin
from localmed.web.protection import DOCUMENT_POLICY
from localmed.web.visits import Librarian, Visit

router = APIRouter(prefix="/library/upload")
KEEP = "keep "  # and an id: the choice to leave a document of nearly the same text in use
MOST = 50  # files at a time
TAKEN = ("new", "changed", "same", "moved")  # outcomes of a dry run in which the file is read


@router.get("")
def form(visit: Librarian, collection: str = "") -> Response:
    """The form, and the uploads that wait."""
    names, waiting = sorted(lookups.collection_names(visit.session)), uploads.listing(visit.session)
    most, apart = visit.site.settings.read.file_bytes, _to_choose(visit.session)
    ready = Counter(one.collection for one in _ready(visit.session) if one not in apart)
    running = [job for job in jobs.jobs(visit.session) if job.kind == "import" and job.outcome is None]
    return pages.page(
        visit,
        "upload.html",
        names=names,
        chosen=collection,
        waiting=waiting,
        most=most,
        ready=ready,
        apart=apart,
        running=running,
    )


@router.post("")
def send(
    visit: Librarian,
    files: Annotated[list[UploadFile], File()],
    collection: Annotated[str, Form()] = "",
) -> Response:
    """Store the files apart from the library and begin to read them."""
    if not files or len(files) > MOST:
        raise UsageError("upload.files", most=MOST)
    session = visit.session
    waiting = [uploads.accept(session, collection, file.filename or "", file.file) for file in files]
    back = f"/library/upload/{waiting[0].id}" if len(waiting) == 1 else "/library/upload"
    return begin(visit, "look", back, read_uploads, waiting)


def read_uploads(session: Session, waiting: list[Upload], hooks: Hooks) -> Message:
    """Read each file as an import would, and keep preview pages in each language: another person may publish it."""
    for upload in waiting:
        title, day = importing.previewed_title(session, upload.collection, None), date.today().isoformat()
        with ExitStack() as stack:
            shown = {
                language: stack.enter_context(PreviewPage(title, language, importing.thumbnails, day, __version__))
                for language in LANGUAGES
            }
            file, copy = None, None
            for file in importing.preview(session, [uploads.file_of(session, upload)], upload.collection, None, hooks):
                if copy := _stored_already(session, file):  # its note names the document by its hash
                    file = dataclasses.replace(file, reason=_outcome(file, copy), notes=())
                for page in shown.values():
                    page.add(dataclasses.replace(file, path=upload.name))  # where it waits is nobody's business
            for language, page in shown.items():
                content = "".join(page.chunks()).encode(errors="replace")
                replace(uploads.preview_of(session, upload, language), content)
        reads = file is not None and file.outcome in TAKEN and bool(file.documents)
        if file and len(file.documents) == 1:
            ((_, passages), _) = file.documents[0]
            uploads.note_lines(session, upload, passages)
        proposed = {uploads.COPY: copy.id} if copy else _proposal(session, upload, file)
        uploads.note_look(session, upload, _outcome(file, copy), reads, proposed)
    return message("upload.looked", count=len(waiting))


def _stored_already(session: Session, file: FilePreview) -> Document | None:
    """The document whose text ``file`` repeats, if it has nothing else."""
    ids = tuple(str(value) for note in file.notes for name, value in note.parameters if name == "document")
    return next((it for it in lookups.documents(session) if ids and not file.documents and it.id.startswith(ids)), None)


def _outcome(file: FilePreview | None, copy: Document | None) -> Message:
    if copy:
        return message("upload.copy", title=uploads.dated(copy))
    if file is None or file.outcome not in TAKEN or not file.documents:
        return message("upload.refused", reason=(file.reason if file else None) or message("upload.unread"))
    return message("upload.read", documents=len(file.documents), passages=file.passages, left=len(file.faults))


def _proposal(session: Session, waiting: Upload, file: FilePreview | None) -> dict[str, str]:
    """Title and edition of the only document in ``file``, and the ids of documents with nearly its text.

    If the title is the file's name, the first heading replaces it.
    """
    if file is None or len(file.documents) != 1:
        return {}
    ((document, passages), _), name = file.documents[0], Path(waiting.name).stem
    titles = (document.title, *(heading for passage in passages for heading in passage.headings), name)
    title, near = next(filter(lambda title: title != name, titles), name), lookups.near_documents(session, passages)
    return {"title": title, "edition": document.edition, uploads.NEAR: " ".join(it.id for it in near)}


@router.get("/{upload_id}")
def one(visit: Librarian, upload_id: str) -> Response:
    """One upload: its preview, and the form to publish it."""
    return _upload_page(visit, uploads.upload(visit.session, upload_id))


def _upload_page(
    visit: Visit,
    waiting: Upload,
    typed: dict[str, str] | None = None,
    fault: Message | None = None,
    chosen: Sequence[str] = (),
) -> Response:
    """The page of ``waiting``; after a ``fault`` with what was ``typed``, and ``chosen`` to be replaced.

    A document of its title is chosen unless it is the newer edition. What the first document that it may supersede has
    is filled in.
    """
    session, inherited = visit.session, dict[str, str]()
    values = typed or uploads.asked(session, waiting)
    edition = values.get("edition", "")
    found = uploads.predecessors(session, waiting, values.get("title", ""))
    if before := [old for old, _ in found if not typed and not uploads.is_older(edition, old.edition)]:
        inherited = _values_of_edition_before(session, before[0], values)
        values = {**values, **inherited}
        found = uploads.predecessors(session, waiting, values.get("title", ""))
    olds = [
        (old, same, old.id in chosen if typed else same and not uploads.is_older(edition, old.edition))
        for old, same in found
    ]
    gone = uploads.replaced_documents(session, waiting)
    return pages.page(
        visit,
        "uploaded.html",
        upload=waiting,
        allowed=uploads.may_publish(session, waiting),
        there=uploads.preview_of(session, waiting, visit.language).is_file(),
        compared=uploads.lines_of(session, waiting),
        values=values,
        inherited=inherited,
        fault=fault,
        olds=olds,
        gone=gone,
        keep=KEEP,
        kept=[one.removeprefix(KEEP) for one in chosen if one.startswith(KEEP)],
    )


def _values_of_edition_before(session: Session, old: Document, values: dict[str, str]) -> dict[str, str]:
    """Owner and review date of ``old`` that ``values`` lack; no review date that has passed.

    And its title if a librarian has corrected it, or the file has it in capitals.
    """
    governance, today = old.governance, date.today().isoformat()
    known = {"owner": governance.owner, "review_by": "" if governance.overdue(today) else governance.review_by}
    inherited = {name: value for name, value in known.items() if value and not values.get(name)}
    if lookups.is_title_set(session, old) and uploads.is_misnamed_again(session, old, values.get("title", "")):
        inherited["title"] = old.title
    if values.get("title", "").isupper() and values["title"].casefold() == old.title.casefold():
        inherited["title"] = old.title
    return inherited


@router.get("/{upload_id}/changes/{old_id}")
def changed(visit: Librarian, upload_id: str, old_id: str) -> Response:
    """What the upload says otherwise than a document of the library."""
    waiting = uploads.upload(visit.session, upload_id)
    values, lines = uploads.asked(visit.session, waiting), uploads.lines_of(visit.session, waiting)
    title = values.get("title") or waiting.name
    back = f"/library/upload/{upload_id}"
    return documents.changes_page(visit, back, title, values.get("edition", ""), lines, old_id)


@router.get("/{upload_id}/preview")
def preview(visit: Librarian, upload_id: str) -> Response:
    """The page of its preview."""
    path = uploads.preview_of(visit.session, uploads.upload(visit.session, upload_id), visit.language)
    if not path.is_file():
        raise UnknownName("choice.unknown")
    return HTMLResponse(path.read_bytes(), headers={"content-security-policy": DOCUMENT_POLICY})


@router.post("/{upload_id}/publish")
def publish(
    visit: Librarian,
    upload_id: str,
    title: Annotated[str, Form()] = "",
    edition: Annotated[str, Form()] = "",
    owner: Annotated[str, Form()] = "",
    review_by: Annotated[str, Form()] = "",
    replaces: Annotated[tuple[str, ...], Form()] = (),
    offered: Annotated[tuple[str, ...], Form()] = (),
) -> Response:
    """Import it under this title. It supersedes the documents that it ``replaces``.

    A document of this title that was not ``offered`` to be replaced came later: the page is shown again, with it. So it
    is while nobody chose what becomes of one of nearly this text.
    """
    session, waiting = visit.session, uploads.upload(visit.session, upload_id)
    kept = {one.removeprefix(KEEP) for one in replaces if one.startswith(KEEP)}
    replaces = tuple(one for one in replaces if one and not one.startswith(KEEP))
    if not uploads.may_publish(session, waiting):
        raise NotAllowed("upload.second_person")
    known = uploads.asked(session, waiting)
    typed = {"title": title, "edition": edition, "owner": owner, "review_by": review_by}
    values = {name: typed[name].strip() for name in known}
    # nothing typed clears what is known, and changes nothing of several documents
    given = {name: value for name, value in values.items() if value or known[name] or name == "title"}
    olds = uploads.chosen_predecessors(session, waiting, replaces)
    try:
        uploads.require_settable(session, waiting, given)
        if newer := next((old for old in olds if uploads.is_older(values.get("edition", ""), old.edition)), None):
            raise UsageError("upload.newer", title=newer.title, edition=newer.edition)
        of_title = [old for old, same in uploads.predecessors(session, waiting, values.get("title", "")) if same]
        if later := [old for old in of_title if old.id not in (*offered, *replaces)]:
            replaces = (*replaces, *(old.id for old in later if not uploads.is_older(edition, old.edition)))
            raise UsageError("upload.came_later", titles=tuple(map(uploads.dated, later)))
        near = [old for old, same in uploads.predecessors(session, waiting, values.get("title", "")) if not same]
        if undecided := [old for old in near if old.id not in {*replaces, *kept}]:
            raise UsageError("upload.undecided", titles=tuple(map(uploads.dated, undecided)))
    except UsageError as error:
        return _upload_page(visit, waiting, values, error.full_message, (*replaces, *(KEEP + it for it in kept)))
    back, by_id = documents.address(waiting.collection), {upload_id: given}
    return begin(visit, "import", back, uploads.publish, [waiting], by_id, replaces)


@router.post("/publish")
def publish_all(visit: Librarian, collection: Annotated[str, Form()]) -> Response:
    """Publish, as one change, every readable upload of a collection that the visitor may publish.

    Those with something to choose (``_to_choose``) wait on; refuse if no other is there.
    """
    session = visit.session
    every = [one for one in reversed(_ready(session)) if one.collection == collection]  # of one name the newest stays
    if not every:
        raise UsageError("upload.not_looked")
    apart = _to_choose(session)
    ready = [one for one in every if one not in apart]
    if not ready:
        raise UsageError("upload.one_by_one", names=tuple(dict.fromkeys(one.name for one in every)))
    values = {one.id: {name: value for name, value in uploads.asked(session, one).items() if value} for one in ready}
    return begin(visit, "import", documents.address(collection), uploads.publish, ready, values, ())


def _to_choose(session: Session) -> list[Upload]:
    """The uploads for which somebody must choose: another document has the file name, the title or nearly the text."""
    ready = _ready(session)
    return [
        one
        for one in ready
        if uploads.is_another(session, one, [it for it in ready if it.collection == one.collection])
        or uploads.predecessors(session, one, uploads.asked(session, one).get("title", ""))
    ]


def _ready(session: Session) -> list[Upload]:
    there = lookups.collection_names(session)
    listed = (one for one in uploads.listing(session) if one.collection in there)  # else it was deleted since
    return [one for one in listed if one.reads and uploads.may_publish(session, one)]


@router.post("/{upload_id}/discard")
def discard(visit: Librarian, upload_id: str) -> Response:
    """Delete the upload."""
    uploads.discard(visit.session, uploads.upload(visit.session, upload_id))
    return pages.redirect("/library/upload", notice="deleted")
