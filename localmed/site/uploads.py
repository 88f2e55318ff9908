"""Uploads: files sent by a browser, kept apart from the library until somebody has checked what was read of them.

A waiting file is ``<data>/uploads/waiting/<id>/<name>``, with a preview in each language. A published file is
``<data>/uploads/<collection>/<name>`` and imported from there: a file of the same name replaces the previous one, and
an update of the collection finds it again. With ``web.second_person`` the uploader cannot publish it, and the publisher
becomes its approver.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
import time
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import IO, TYPE_CHECKING

from localmed.domain import Document, Message, Passage, Status, message
from localmed.domain.accounts import Right
from localmed.domain.errors import InputError, LimitExceeded, LocalmedError, NotAllowed, UnknownName, UsageError
from localmed.ingest.sources import Source
from localmed.library import layout
from localmed.library.state import rows
from localmed.messages import from_text, to_text
from localmed.process import files
from localmed.process.files import told_if_full
from localmed.process.hooks import SILENT, Hooks
from localmed.site import changes, governing, importing, lookups
from localmed.text import differences
from localmed.text.differences import Line

if TYPE_CHECKING:
    from localmed.site.session import Session

FOLDER, WAITING = layout.UPLOADS, "waiting"
PREVIEW = ".preview."  # prefix of preview files; no upload's name begins with a dot
LINES = ".lines"  # headings and sentences of a file with a single document
BEFORE = ".before"  # the file that a publication replaces, until it is done
LONGEST_NAME = 180  # bytes of a file's name; file systems take 255
COPY = "stored"  # key of ``Upload.proposed``: id of the stored document that has its text
NEAR = "near"  # key of ``Upload.proposed``: ids of documents with nearly its text
ASKED = ("title", "edition", "owner", "review_by")  # before it is published
TURN = 0.2  # seconds between tries to get the lock
PIECE = 2**20  # bytes copied at a time


@dataclass(frozen=True, slots=True)
class Upload:
    """A waiting file. ``look`` is the outcome of reading it (None: not read yet), ``reads`` whether it can be imported.

    ``proposed`` has title and edition as read from a file with a single document, and ``NEAR``; else it is empty.
    """

    id: str
    collection: str
    name: str
    bytes: int
    user: str
    time: float
    look: Message | None = None
    reads: bool = False
    proposed: Mapping[str, str] = field(default_factory=dict)


def safe_name(name: str) -> str:
    """The name of an uploaded file without folders; raise ``UsageError`` if none is left."""
    plain = unicodedata.normalize("NFC", name.replace("\\", "/").rpartition("/")[2]).strip().lstrip(".")
    if not plain or not plain.isprintable() or len(plain.encode("utf-8", "replace")) > LONGEST_NAME:
        raise UsageError("upload.name", most=LONGEST_NAME)
    return plain


def accept(session: Session, collection: str, name: str, content: IO[bytes]) -> Upload:
    """Store ``content`` as a waiting file; raise ``UsageError`` for its name, ``LimitExceeded`` for its size."""
    session.may_change()
    lookups.collection(session, collection)
    file, id_ = safe_name(name), secrets.token_hex(8)
    with session.change("upload", id_) as change, told_if_full(session.data):
        folder = _waiting(session.data) / id_
        folder.mkdir(parents=True, mode=0o700)
        try:
            size = _copied(content, folder / file, session.settings.read.file_bytes)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        made = Upload(id_, collection, file, size, session.caller.user, time.time())
        with rows(session.data) as state:
            query = "INSERT INTO uploads (id, collection, name, bytes, user, time) VALUES (?, ?, ?, ?, ?, ?)"
            state.execute(query, (made.id, made.collection, made.name, made.bytes, made.user, made.time))
        change.outcome = f"{size} bytes"
    return made


def _copied(content: IO[bytes], target: Path, most: int) -> int:
    size = 0
    with target.open("xb") as stream:
        while piece := content.read(PIECE):
            size += len(piece)
            if size > most:
                raise LimitExceeded("web.error.body", most=most)
            stream.write(piece)
        stream.flush()
        os.fsync(stream.fileno())
    if not size:
        raise InputError("upload.empty")
    return size


def listing(session: Session) -> list[Upload]:
    """The waiting uploads, newest first."""
    session.require(Right.LIBRARY)
    with rows(session.data) as state:
        query = "SELECT id, collection, name, bytes, user, time, look, reads, proposed FROM uploads ORDER BY time DESC"
        return [
            replace(
                Upload(*known), look=from_text(look) if look else None, reads=bool(reads), proposed=json.loads(said)
            )
            for *known, look, reads, said in state.execute(query)
        ]


def upload(session: Session, id_: str) -> Upload:
    """The upload ``id_``; raise ``UnknownName``."""
    waiting = next((one for one in listing(session) if one.id == id_), None)
    if waiting is None:
        raise UnknownName("choice.unknown")
    return waiting


def file_of(session: Session, waiting: Upload) -> Path:
    """The waiting file."""
    return _waiting(session.data) / waiting.id / waiting.name


def preview_of(session: Session, waiting: Upload, language: str) -> Path:
    """The page with the text read from it, in ``language``."""
    return _waiting(session.data) / waiting.id / f"{PREVIEW}{language}"


def note_lines(session: Session, waiting: Upload, passages: Sequence[Passage]) -> None:
    """Keep the headings and sentences of its only document, to compare with another edition."""
    files.replace(_waiting(session.data) / waiting.id / LINES, json.dumps(differences.lines(passages)).encode())


def lines_of(session: Session, waiting: Upload) -> list[Line]:
    """Its headings and sentences; empty if it was not read, or has several documents."""
    try:
        return [Line(*line) for line in json.loads((_waiting(session.data) / waiting.id / LINES).read_bytes())]
    except FileNotFoundError:
        return []


def note_look(
    session: Session, waiting: Upload, look: Message, reads: bool, proposed: Mapping[str, str] | None = None
) -> None:
    """Store the outcome of reading it."""
    values = (to_text(look), reads, json.dumps(proposed or {}), waiting.id)
    with rows(session.data) as state:
        state.execute("UPDATE uploads SET look = ?, reads = ?, proposed = ? WHERE id = ?", values)


def asked(session: Session, waiting: Upload) -> dict[str, str]:
    """The fields to confirm before publication, with the values of the document that it replaces, or its own.

    An edition that the file itself states comes first. A file with several documents has no title field.
    """
    there, own = _documents(session, waiting), waiting.proposed
    known = lookups.settable_values(there[0]) if len(there) == 1 else own
    known = {**known, "edition": own.get("edition") or known.get("edition", "")}
    return {name: known.get(name, "") for name in ASKED if name != "title" or waiting.proposed}


def replaced_documents(session: Session, waiting: Upload) -> tuple[Document, ...]:
    """The documents of the stored file of this name, which publication removes; none for a file of several."""
    return _documents(session, waiting) if waiting.proposed and waiting.reads else ()


def is_another(session: Session, waiting: Upload, beside: Sequence[Upload]) -> bool:
    """Whether a stored file, or one of ``beside`` (which includes it), has its name and another title."""
    stored = {one.title for one in replaced_documents(session, waiting)}
    sent = {one.proposed["title"] for one in beside if one.name == waiting.name and one.proposed}
    return len({_normalised_title(title) for title in (*stored, *sent)}) > 1


_APART = re.compile(r"\W|_|(?<!\d)(?:19|20)\d\d(?!\d)")  # differences between editions of a title: punctuation, a year


def predecessors(session: Session, waiting: Upload, title: str) -> list[tuple[Document, bool]]:
    """The current documents of the collection that it may supersede: same title, or nearly the same text.

    Each with whether the title is the same, those first. None for a file with several documents.
    """
    if not waiting.proposed:
        return []
    own, near = {it.id for it in _documents(session, waiting)}, waiting.proposed.get(NEAR, "").split()
    stored = lookups.documents(session, waiting.collection)
    current = [one for one in stored if one.status is Status.CURRENT and one.id not in own]
    same = [one for one in current if is_titled_alike(one.title, title)]
    return [(one, True) for one in same] + [(one, False) for one in current if one.id in near and one not in same]


def is_misnamed_again(session: Session, old: Document, title: str) -> bool:
    """Whether the text of ``old`` has ``title`` as a heading too, so that a librarian has corrected that one."""
    _, before = lookups.lines_of(session, old.id)
    printed = any(is_titled_alike(title, heading) for heading in {line.heading for line in before})
    return printed and not is_titled_alike(old.title, title)


def is_titled_alike(title: str, other: str) -> bool:
    """Whether two titles differ in punctuation and the year of an edition at most."""
    return _normalised_title(title) == _normalised_title(other)


def _normalised_title(title: str) -> str:
    """``title`` without punctuation and the year of an edition."""
    return _APART.sub("", title.casefold())


def is_older(edition: str, other: str) -> bool:
    """Whether ``edition`` is earlier than ``other``, at their common precision; False if one is unknown."""
    least = min(len(edition), len(other))
    return edition[:least] < other[:least]


def require_settable(session: Session, waiting: Upload, values: Mapping[str, str]) -> None:
    """Raise ``UsageError`` for values that cannot be set on its documents."""
    facts = importing.manifest_of(session, waiting.collection, None).facts(Source(_place(session, waiting), ""))
    for name, value in values.items():
        if wrong := governing.problem(name, value):
            raise UsageError(wrong)
        if facts.get(name, value) != value:
            raise UsageError("governance.stated", field=name)


def discard(session: Session, waiting: Upload) -> None:
    """Delete the upload."""
    with session.change("upload discard", waiting.id):
        _forget(session, waiting)


def may_publish(session: Session, waiting: Upload) -> bool:
    """Whether the user may publish it: another person than the uploader, if the site requires that."""
    return not session.settings.web.second_person or waiting.user != session.caller.user


def publish(
    session: Session,
    waiting: Sequence[Upload],
    values: Mapping[str, Mapping[str, str]] | None = None,
    replaces: Sequence[str] = (),
    hooks: Hooks = SILENT,
) -> Message:
    """Import files of one collection together and set ``values`` (by upload); return the outcome.

    Current documents with an id in ``replaces`` are superseded. Waits for another publication into the collection.
    Raise ``NotAllowed`` where a second person must publish.
    """
    if not all(may_publish(session, one) for one in waiting):
        raise NotAllowed("upload.second_person")
    if not all(one.reads for one in waiting):
        raise UsageError("upload.not_looked")
    collection = waiting[0].collection
    manifest = importing.manifest_of(session, collection, None)
    with _publication_lock(session, collection, hooks), ExitStack() as stack:
        targets = [stack.enter_context(_put_in_place(session, upload(session, one.id))) for one in waiting]
        report = importing.import_paths(session, list(dict.fromkeys(targets)), manifest, hooks=hooks)
    approval = {"approver": session.caller.user} if session.settings.web.second_person else {}
    set_ = [_change(session, one, {**(values or {}).get(one.id, {}), **approval}) for one in waiting]
    if planned := [change for change in set_ if change]:
        changes.govern(session, planned)
    for one in waiting:
        _forget(session, one)
    told = message("upload.published", documents=report.counts["documents"], refused=report.count("quarantined"))
    if passed := _passed_reviews(session, waiting):
        told = message("upload.review_passed", published=told, dates=passed)
    for one in waiting:
        told = _supersede(session, one, replaces, told)
    return told


def _passed_reviews(session: Session, waiting: Sequence[Upload]) -> tuple[str, ...]:
    """The review dates of what was published that have passed already."""
    today = date.today().isoformat()
    governed = (document.governance for one in waiting for document in _documents(session, one))
    return tuple(dict.fromkeys(one.review_by for one in governed if one.overdue(today)))


def chosen_predecessors(session: Session, waiting: Upload, replaces: Sequence[str]) -> list[Document]:
    """The current documents of its collection among the ids ``replaces``."""
    stored = lookups.documents(session, waiting.collection)
    return [one for one in stored if one.id in replaces and one.status is Status.CURRENT]


def _supersede(session: Session, published: Upload, replaces: Sequence[str], told: Message) -> Message:
    """Supersede ``replaces``; return ``told`` with the outcome and other current documents of its title."""
    made = _documents(session, published)
    if len(made) != 1:
        return told
    for old in chosen_predecessors(session, published, replaces):
        try:
            changes.mark(session, old, Status.SUPERSEDED, made[0].id)
            told = message("upload.replaced", published=told, old=dated(old), new=dated(made[0]))
        except LocalmedError as error:  # a canary question would fail, say
            told = message("upload.not_replaced", published=told, old=dated(old), reason=error.full_message)
    if left := [one for one, same in predecessors(session, published, made[0].title) if same]:
        told = message("upload.also_current", published=told, titles=tuple(map(dated, left)))
    return told


def dated(document: Document) -> str:
    """The title of ``document`` with its edition."""
    return f"{document.title} ({document.edition})" if document.edition else document.title


@contextmanager
def _publication_lock(session: Session, collection: str, hooks: Hooks) -> Iterator[None]:
    """Lock publication into ``collection`` for the length of the block, waiting for others.

    Two publications of one name would overwrite each other's backup file.
    """
    folder = session.data / FOLDER / collection
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                hooks.cancel.check()
                time.sleep(TURN)
        yield
    finally:
        os.close(handle)


@contextmanager
def _put_in_place(session: Session, waiting: Upload) -> Iterator[Path]:
    """Put the file where it is imported from; restore the previous one on failure or cancellation."""
    target = _place(session, waiting)
    before = _waiting(session.data) / waiting.id / BEFORE
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        if target.exists() and not before.exists():  # else it was put aside by one that was killed
            target.replace(before)
        with told_if_full(session.data):
            shutil.copyfile(file_of(session, waiting), target)
        yield target
    except BaseException:
        target.unlink(missing_ok=True)
        if before.exists():
            before.replace(target)
        raise


def _place(session: Session, waiting: Upload) -> Path:
    return session.data / FOLDER / waiting.collection / waiting.name


def _documents(session: Session, waiting: Upload) -> tuple[Document, ...]:
    place = str(_place(session, waiting))
    return tuple(one for one in lookups.documents(session, waiting.collection) if one.source == place)


def _change(session: Session, waiting: Upload, values: Mapping[str, str]) -> governing.Change | None:
    documents = _documents(session, waiting)
    known = lookups.settable_values(documents[0]) if len(documents) == 1 else {}
    changed = {name: value for name, value in values.items() if known.get(name) != value or name == "approver"}
    return governing.Change(documents, changed) if documents and changed else None


def _forget(session: Session, waiting: Upload) -> None:
    with rows(session.data) as state:
        state.execute("DELETE FROM uploads WHERE id = ?", (waiting.id,))
    shutil.rmtree(_waiting(session.data) / waiting.id, ignore_errors=True)


def _waiting(data: Path) -> Path:
    return data / FOLDER / WAITING
