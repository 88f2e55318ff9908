"""Content packs: signed, versioned sets of documents and withdrawals that a hospital takes in from a stick.

What a publisher arranges, and what lies in the pack's ``targets/``::

    pack.toml                  format, name, version, title, created
    withdrawals.toml           [[withdrawn]] by content, file (sha256 of the original) or identifier; title, reason
    retractions.txt            identifiers of retracted studies (pmid:..., doi:...), one a line
    collections/NAME.toml      the manifest of a collection
    documents/NAME/...         its documents; whatever else a collection holds are documents of it

Rules: everything is copied into ``<data>/packs/`` and its hashes compared before anything happens. Withdrawals go to
the ledger before the documents are imported, and hold at once. The documents of all collections become one
generation, in step with the pack: what a later version lacks is removed. An expired pack is not imported; what was
imported from it goes on serving. A second import of one version goes on where the first was cut off. Packs in the
folders of the setting ``refresh.packs`` are taken in by the nightly refresh: its withdrawals first, then its documents
within the night's one generation (``<name>.pending`` beside the copy stands until they are served).

Not covered: a withdrawal of a document that the site has not got, by anything but the digest of its content;
precomputed vectors (a site encodes what it imports, with whatever encoder it has).
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localmed.domain import Document, Status, digest
from localmed.domain.errors import InputError, LocalmedError, NoLibrary, UsageError, toml_place
from localmed.ingest import manifest as manifests
from localmed.library import generations, layout
from localmed.library.withdrawals import Withdrawals
from localmed.process import files
from localmed.process.files import told_if_full
from localmed.process.hooks import SILENT, Hooks
from localmed.site import changes, importing, lookups
from localmed.site.audit import Audit
from localmed.site.importing import Intake
from localmed.upkeep import signing, trust

if TYPE_CHECKING:
    from localmed.ingest.report import Report
    from localmed.site.session import Session

FOLDER, PENDING = layout.PACKS, ".pending"
DESCRIPTION, WITHDRAWALS, RETRACTIONS = "pack.toml", "withdrawals.toml", "retractions.txt"
FORMAT = 1
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")  # it becomes a folder's name
TIES = ("content", "file", "identifier")  # what a withdrawal names its document by
LISTS_MOST = 16 * 2**20  # bytes of a list of withdrawals or retractions: some 500,000 lines
SPARE = 2.5  # times the pack's size that must be free: its copy, the originals kept, the indexes


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A document that the publisher withdraws: named ``by`` one of ``TIES``, as ``value``."""

    by: str
    value: str
    title: str
    reason: str

    def names(self, document: Document) -> bool:
        """Whether it is ``document``."""
        if self.by == "identifier":
            return self.value.casefold() in {identifier.casefold() for identifier in document.identifiers}
        return self.value == (document.content if self.by == "content" else document.file_sha256)


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack whose metadata was verified."""

    name: str
    title: str
    version: int
    created: str
    verified: trust.Verified
    withdrawals: tuple[Withdrawal, ...] = ()

    @property
    def collections(self) -> list[str]:
        """The collections that it has documents of."""
        return sorted({name.split("/")[1] for name in self.verified.described if name.startswith("documents/")})

    @property
    def documents(self) -> int:
        """How many files of documents it has."""
        return sum(name.startswith("documents/") for name in self.verified.described)


@dataclass(slots=True)
class Imported:
    """What an import of a pack did."""

    pack: Pack
    withdrawn: list[str] = field(default_factory=list)  # titles
    reports: dict[str, Report] = field(default_factory=dict)


# --- the publisher's side ---------------------------------------------------------------------------------------------


def build(source: Path, out: Path, roots: Sequence[Path], keys: Sequence[Path], version: int, days: int) -> int:
    """Make ``out`` of what is arranged in ``source``, good for ``days``; return its number of files."""
    if out.exists():
        raise UsageError("file.exists", file=str(out))
    described = _description(files.contents(source / DESCRIPTION))
    signers = [signing.load_key(key) for key in keys]
    _check_source(source)
    targets = out / signing.TARGETS
    try:
        for name in signing.names_in(source):
            (targets / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, targets / name)
        now = datetime.now(UTC).replace(microsecond=0)
        lines = (f"format = {FORMAT}", f"name = {_quoted(described['name'])}", f"version = {version}",
                 f"title = {_quoted(described.get('title', ''))}", f"created = {_quoted(now.isoformat())}")  # fmt: skip
        (targets / DESCRIPTION).write_text("\n".join(lines) + "\n", "utf-8")
        return signing.sign_folder(out, roots, signers, version, now + timedelta(days=days))
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)
        raise


def _quoted(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False)


def _check_source(source: Path) -> None:
    """Raise ``InputError`` for what no site could import."""
    names = signing.names_in(source)
    for name in names:
        top = name.split("/")[0]
        if name not in (DESCRIPTION, WITHDRAWALS, RETRACTIONS) and top not in ("collections", "documents"):
            raise InputError("pack.unknown_file", name=name)
    withdrawn = set(_withdrawals(source / WITHDRAWALS, source / RETRACTIONS))
    held = {entry.value for entry in withdrawn if entry.by == "file"}
    from localmed.library.intact import sha256_of

    for name in (name for name in names if name.startswith("documents/")):
        parts = name.split("/")
        if len(parts) < 3 or f"collections/{parts[1]}.toml" not in names:
            raise InputError("pack.no_manifest", name=name)
        if sha256_of(source / name) in held:
            raise InputError("pack.contradiction", name=name)
    for name in (name for name in names if name.startswith("collections/")):
        if f"collections/{manifests.load(source / name).collection.name}.toml" != name:
            raise InputError("pack.no_manifest", name=name)


# --- the hospital's side ----------------------------------------------------------------------------------------------


def inspect(session: Session, folder: Path) -> Pack:
    """What the pack in ``folder`` is, verified; nothing is kept. Raise ``InputError`` for what breaks a rule."""
    name = _claimed(folder)[0]
    with trust.known_of(session.data, name, keep=False) as known:
        return _verified(session, folder, name, known)


def import_pack(session: Session, folder: Path, hooks: Hooks = SILENT) -> Imported:
    """Verify the pack in ``folder``, copy it, put its withdrawals in force and import its documents.

    Raise ``InputError`` for what breaks a rule, ``UsageError`` where the site has no root or its clock is behind.
    """
    done = _taken(session, folder, _claimed(folder)[0], hooks)
    parts = parts_of(session.data, done.pack.name)
    intakes = {
        name: Intake(importing.manifest_of(session, name, part.manifest), (part.documents,), file=part.manifest)
        for name, part in parts.items()
    }
    if intakes:
        outcomes = importing.import_together(session, intakes, hooks=hooks, action="import", whole=True)
        done.reports = {name: report for name, report in outcomes.items() if not isinstance(report, LocalmedError)}
    done.withdrawn += finish(session, done.pack.name)
    return done


def _taken(session: Session, folder: Path, name: str, hooks: Hooks) -> Imported:
    """Verify and copy the pack in ``folder`` and put its withdrawals in force; its documents are pending then."""
    session.may_change()
    with trust.known_of(session.data, name, keep=True) as known, told_if_full(session.data):
        pack = _verified(session, folder, name, known)
        with session.change("pack", f"{pack.name} {pack.version}") as change:
            _take(session, pack, hooks)
            change.outcome = f"{len(pack.verified.described)} files verified"
    return Imported(pack, _withdraw(session, pack.name, pack.withdrawals))


# --- packs that the nightly refresh takes in --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """What a pack holds of one collection."""

    documents: Path
    manifest: Path


def take_new(session: Session, hooks: Hooks) -> Iterator[LocalmedError]:
    """Take what is new in the folders ``refresh.packs``: withdrawals are in force then, documents pending.

    Yield why a pack could not be taken; the others are.
    """
    for folder in _laid_ready(session.settings.refresh.packs):
        try:
            name, version = _claimed(folder)
            if version != _kept_version(session.data, name):
                _taken(session, folder, name, hooks)
        except LocalmedError as error:
            yield error


def _laid_ready(places: Sequence[str]) -> Iterator[Path]:
    """The packs in ``places``: such a folder itself (a stick), or folders in it."""
    for place in map(Path, places):
        for folder in (place, *sorted(place.glob("*"))):
            if (folder / signing.TARGETS / DESCRIPTION).is_file():
                yield folder


def pending(data: Path) -> list[str]:
    """The packs that were taken and whose documents are not all served yet."""
    return sorted(path.stem for path in (data / FOLDER).glob(f"*{PENDING}"))


def parts_of(data: Path, name: str) -> dict[str, Part]:
    """The collections that the pack ``name``, which was taken, has documents of."""
    folder = data / FOLDER / name
    names = sorted(path.name for path in (folder / "documents").glob("*"))
    return {one: Part(folder / "documents" / one, folder / "collections" / f"{one}.toml") for one in names}


def finish(session: Session, name: str) -> list[str]:
    """The documents of the pack ``name`` are served: withdraw what has only now come in under another name."""
    folder = session.data / FOLDER / name
    withdrawn = _withdraw(session, name, tuple(_withdrawals(folder / WITHDRAWALS, folder / RETRACTIONS)))
    _mark(session.data, name).unlink(missing_ok=True)
    return withdrawn


def _mark(data: Path, name: str) -> Path:
    return data / FOLDER / f"{name}{PENDING}"


def _kept_version(data: Path, name: str) -> object:
    with suppress(InputError):
        return _description(files.contents(data / FOLDER / name / DESCRIPTION)).get("version")
    return None


def trust_root(session: Session, root: Path) -> None:
    """Trust the keys of the file ``root`` from now on."""
    with session.change("trust", signing.fingerprint(root)[:17]) as change:
        trust.set_root(session.data, root)
        change.outcome = "trusted"


def earliest(session: Session) -> datetime:
    """A time that has passed for certain: of the generation being served, and of the audit log's last entry."""
    times = [datetime(2026, 1, 1, tzinfo=UTC)]
    with suppress(LocalmedError, OSError, ValueError):
        times.append(datetime.fromisoformat(generations.served_manifest(session.data).created))
    with suppress(LocalmedError, OSError, ValueError), closing(Audit(session.data)) as log:
        times += [datetime.fromisoformat(entry.time) for entry in log.entries()[-1:]]
    return max(time if time.tzinfo else time.replace(tzinfo=UTC) for time in times)


def _verified(session: Session, folder: Path, name: str, known: Path) -> Pack:
    verified = trust.verify(folder, trust.root_of(session.data), known, earliest(session))
    described = _description(verified.read(DESCRIPTION))
    created = datetime.fromisoformat(str(described.get("created", "")))
    trust.check_clock(created)
    if (described["name"], described.get("version"), described.get("format")) != (name, verified.version, FORMAT):
        raise InputError("pack.metadata", name=DESCRIPTION)
    for path in verified.described:
        if path.startswith("documents/") and f"collections/{path.split('/')[1]}.toml" not in verified.described:
            raise InputError("pack.no_manifest", name=path)
    return Pack(name, str(described.get("title", "")), verified.version, created.isoformat(), verified,
                tuple(_lists(verified)))  # fmt: skip


def _lists(verified: trust.Verified) -> Iterator[Withdrawal]:
    if WITHDRAWALS in verified.described:
        yield from _entries(verified.read(WITHDRAWALS, LISTS_MOST))
    if RETRACTIONS in verified.described:
        yield from _retracted(verified.read(RETRACTIONS, LISTS_MOST))


def _claimed(folder: Path) -> tuple[str, object]:
    """The name and version that the pack states, which are believed once the signed description states the same."""
    try:
        content = trust.first_bytes_of(folder, f"{signing.TARGETS}/{DESCRIPTION}")
    except OSError:
        raise InputError("pack.incomplete", folder=str(folder)) from None
    described = _description(content)
    return str(described["name"]), described.get("version")


def _description(content: bytes) -> dict[str, Any]:
    try:
        values = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise InputError("pack.metadata", name=DESCRIPTION) from None
    if not isinstance(values.get("name"), str) or not NAME.fullmatch(values["name"]):
        raise InputError("pack.name")
    return values


def _withdrawals(listed: Path, retractions: Path) -> Iterator[Withdrawal]:
    if listed.exists():
        yield from _entries(files.contents(listed, LISTS_MOST))
    if retractions.exists():
        yield from _retracted(files.contents(retractions, LISTS_MOST))


def _entries(content: bytes) -> Iterator[Withdrawal]:
    try:
        rows: Sequence[Mapping[str, Any]] = tomllib.loads(content.decode()).get("withdrawn", ())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError("pack.list", name=WITHDRAWALS, place=toml_place(error)) from None
    for number, row in enumerate(rows, 1):
        ties = [name for name in TIES if isinstance(row.get(name), str) and row[name]]
        if len(ties) != 1 or not row.get("reason"):
            raise InputError("pack.withdrawal", number=number)
        yield Withdrawal(ties[0], row[ties[0]], str(row.get("title", "")), str(row["reason"]))


def _retracted(content: bytes) -> Iterator[Withdrawal]:
    for line in content.decode("utf-8", "replace").splitlines():
        if identifier := line.partition("#")[0].strip():
            yield Withdrawal("identifier", identifier, "", "retracted")


def _take(session: Session, pack: Pack, hooks: Hooks) -> None:
    """Copy every file of ``pack`` into ``<data>/packs/<name>``, which is replaced when all of them are right."""
    kept = session.data / FOLDER / pack.name
    fresh, old = kept.with_name(f".{pack.name}.new"), kept.with_name(f".{pack.name}.old")
    if shutil.disk_usage(session.data).free < pack.verified.size * SPARE:
        raise UsageError("pack.no_room", needed=round(pack.verified.size * SPARE / 2**20) + 1)
    for left in (fresh, old):
        shutil.rmtree(left, ignore_errors=True)
    fresh.mkdir(parents=True, mode=0o700)
    try:
        done = 0
        for name, file in sorted(pack.verified.described.items()):
            hooks.cancel.check()
            hooks.progress(done, pack.verified.size, Path(name).name)
            pack.verified.copy(name, fresh / name)
            os.utime(fresh / name, (0, 0))  # a refresh leaves what was written just now; this is whole
            done += file.bytes
        files.replace(_mark(session.data, pack.name), b"")
        if kept.exists():
            kept.rename(old)
        fresh.rename(kept)
        files.sync(kept.parent)
    finally:
        for left in (fresh, old):
            shutil.rmtree(left, ignore_errors=True)


def _withdraw(session: Session, name: str, withdrawals: Sequence[Withdrawal]) -> list[str]:
    """Put the ``withdrawals`` of the pack ``name`` in the ledger, unless they are there; return the titles."""
    documents = _stored(session)
    titles = []
    in_force = Withdrawals(session.data).in_force()
    for entry in withdrawals:
        matching = [document for document in documents if entry.names(document)]
        if not matching and entry.by == "content":
            matching = [_unseen(name, entry)]
        for document in matching:
            if document.id not in in_force[0] and document.status is not Status.WITHDRAWN:
                changes.withdraw(session, document, True, entry.reason)
                titles.append(document.title)
                in_force = Withdrawals(session.data).in_force()
    return titles


def _stored(session: Session) -> list[Document]:
    try:
        return lookups.documents(session)
    except NoLibrary:
        return []


def _unseen(name: str, entry: Withdrawal) -> Document:
    """A document that the site has not got: withdrawn by its content, should it come."""
    return Document(digest(FOLDER, entry.value), "", entry.value, entry.title, "", name, "", entry.value, "")
