"""Content packs: signed, versioned sets of documents and withdrawals that a hospital imports from a stick.

A pack's ``content/`` (format and rules: ``verifier.py``)::

    pack.toml                  name, title
    withdrawals.toml           [[withdrawn]] by content, file (sha256 of the original) or identifier; title, reason
    retractions.txt            identifiers of retracted studies (pmid:..., doi:...), one a line
    collections/NAME.toml      the manifest of a collection
    documents/NAME/...         its documents

Everything is copied into ``<data>/packs/`` and verified first. Withdrawals come into force before the documents are
imported. The documents of all collections become one generation, in step with the pack: documents that a later version
lacks are removed. An expired pack is not imported; earlier imports stay. Importing a version again resumes an
interrupted import. The nightly refresh takes packs from the folders ``refresh.packs``: their withdrawals first, their
documents with the night's one generation (``<name>.pending`` beside the copy exists until they are served).

``<data>/trust/trust.json`` has the root that the site trusts, accepted once by somebody who compared its fingerprint,
and the newest accepted version of each pack.

Not covered: withdrawing a document that the site does not have, except by its content digest; precomputed vectors.
"""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localmed.domain import Document, Status, digest
from localmed.domain.errors import InputError, LocalmedError, NoLibrary, UsageError, toml_place
from localmed.ingest import manifest as manifests
from localmed.library import generations, layout
from localmed.library.in_force import in_force
from localmed.process import files
from localmed.process.files import told_if_full
from localmed.process.hooks import SILENT, Hooks
from localmed.site import changes, importing, lookups
from localmed.site.audit import Audit
from localmed.site.importing import Intake
from localmed.upkeep import signing, verifier
from localmed.upkeep.verifier import CONTENT, MANIFEST, Manifest, Refused, Trust

if TYPE_CHECKING:
    from localmed.ingest.sources import Report
    from localmed.site.session import Session

FOLDER, PENDING = layout.PACKS, ".pending"
TRUST = Path(layout.TRUST) / "trust.json"
DESCRIPTION, *LISTS = "pack.toml", "withdrawals.toml", "retractions.txt"
TIES = ("content", "file", "identifier")  # how a withdrawal identifies its document
LISTS_MOST = 16 * 2**20  # bytes of a list of withdrawals or retractions: some 500,000 lines
SPARE = 2.5  # free space needed, as a multiple of the pack's size: its copy, the originals, the indexes


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A document that the publisher withdraws, identified ``by`` one of ``TIES``."""

    by: str
    value: str
    title: str
    reason: str

    def names(self, document: Document) -> bool:
        """Whether it identifies ``document``."""
        if self.by == "identifier":
            return self.value.casefold() in {identifier.casefold() for identifier in document.identifiers}
        return self.value == (document.content if self.by == "content" else document.file_sha256)


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack with a verified manifest."""

    title: str
    manifest: Manifest
    withdrawals: tuple[Withdrawal, ...] = ()

    @property
    def collections(self) -> list[str]:
        """The collections of its documents."""
        return sorted({name.split("/")[1] for name in self.documents})

    @property
    def documents(self) -> list[str]:
        """The names of its documents' files."""
        return [name for name in self.manifest.files if name.startswith("documents/")]


@dataclass(slots=True)
class Imported:
    """The result of importing a pack."""

    pack: Pack
    withdrawn: list[str] = field(default_factory=list)  # titles
    reports: dict[str, Report] = field(default_factory=dict)


# --- the publisher's side ---------------------------------------------------------------------------------------------


def build(source: Path, out: Path, root: Path, keys: Sequence[Path], version: int, days: int) -> int:
    """Make the pack ``out`` from the folder ``source``, valid for ``days``; return its number of files."""
    if out.exists():
        raise UsageError("file.exists", file=str(out))
    name = _description(files.contents(source / DESCRIPTION)).get("name")
    if not isinstance(name, str) or not verifier.NAME.fullmatch(name):
        raise InputError("pack.name")
    signers = [signing.load_key(key) for key in keys]
    _check_source(source)
    try:
        shutil.copytree(source, out / CONTENT)
        return signing.sign_folder(out, root, signers, "pack", name, version, days)
    except BaseException:
        shutil.rmtree(out, ignore_errors=True)
        raise


def _check_source(source: Path) -> None:
    from localmed.library.intact import sha256_of

    names = signing.names_in(source)
    _check_names(names)
    withdrawn = {entry.value for entry in _withdrawals(source) if entry.by == "file"}
    for name in names:
        if name.startswith("documents/") and sha256_of(source / name) in withdrawn:
            raise InputError("pack.contradiction", name=name)
        if name.startswith("collections/") and name[12:] != f"{manifests.load(source / name).collection.name}.toml":
            raise InputError("pack.no_manifest", name=name)


def _check_names(names: Collection[str]) -> None:
    for name in names:
        top, _, rest = name.partition("/")
        if name not in (DESCRIPTION, *LISTS) and top not in ("collections", "documents"):
            raise InputError("pack.unknown_file", name=name)
        if top == "documents" and f"collections/{rest.split('/')[0]}.toml" not in names:
            raise InputError("pack.no_manifest", name=name)


# --- the hospital's side ----------------------------------------------------------------------------------------------


def inspect(session: Session, folder: Path) -> Pack:
    """Verify the pack in ``folder`` and return it, without storing anything. Raise ``InputError`` for a broken rule."""
    with signing.as_errors():
        return _verify(session, folder)


def import_pack(session: Session, folder: Path, hooks: Hooks = SILENT) -> Imported:
    """Verify and copy the pack in ``folder``, put its withdrawals in force and import its documents.

    Raise ``InputError`` for a broken rule, ``UsageError`` without a root or if the site's clock is behind.
    """
    done = _take_pack(session, folder, hooks)
    name = done.pack.manifest.name
    parts = parts_of(session.data, name)
    intakes = {
        key: Intake(importing.manifest_of(session, key, part.manifest), (part.documents,), file=part.manifest)
        for key, part in parts.items()
    }
    if intakes:
        outcomes = importing.import_together(session, intakes, hooks=hooks, action="import", whole=True)
        done.reports = {key: report for key, report in outcomes.items() if not isinstance(report, LocalmedError)}
    done.withdrawn += finish(session, name)
    return done


def _take_pack(session: Session, folder: Path, hooks: Hooks) -> Imported:
    """Verify and copy the pack in ``folder`` and put its withdrawals in force; its documents are pending."""
    session.may_change()
    with signing.as_errors(), told_if_full(session.data):
        pack = _verify(session, folder)
        with session.change("pack", f"{pack.manifest.name} {pack.manifest.version}") as change:
            _copy_pack(session, pack.manifest, hooks)
            change.outcome = f"{len(pack.manifest.files)} files verified"
    return Imported(pack, _withdraw(session, pack.manifest.name, pack.withdrawals))


# --- packs that the nightly refresh takes in --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """A pack's documents and manifest of one collection."""

    documents: Path
    manifest: Path


def take_new(session: Session, hooks: Hooks) -> Iterator[LocalmedError]:
    """Take new packs from the folders ``refresh.packs``; yield the error of each that failed."""
    places = [Path(place) for place in session.settings.refresh.packs]  # each a pack itself (a stick), or with packs
    for folder in (one for place in places for one in (place, *sorted(place.glob("*"))) if (one / MANIFEST).is_file()):
        try:
            with signing.as_errors():
                known = verifier.taken_already(folder, _trust(session.data))
            if not known:
                _take_pack(session, folder, hooks)
        except LocalmedError as error:
            yield error


def pending_packs(data: Path) -> list[str]:
    """Return the packs whose documents are not all served yet."""
    return sorted(path.stem for path in (data / FOLDER).glob(f"*{PENDING}"))


def parts_of(data: Path, name: str) -> dict[str, Part]:
    """Return the collections of the pack ``name``, which was taken."""
    folder = data / FOLDER / name
    names = sorted(path.name for path in (folder / "documents").glob("*"))
    return {one: Part(folder / "documents" / one, folder / "collections" / f"{one}.toml") for one in names}


def finish(session: Session, name: str) -> list[str]:
    """Complete the pack ``name`` after its documents are served: withdraw documents that this import added."""
    folder = session.data / FOLDER / name
    withdrawn = _withdraw(session, name, tuple(_withdrawals(folder)))
    _pending_mark(session.data, name).unlink(missing_ok=True)
    return withdrawn


def _pending_mark(data: Path, name: str) -> Path:
    return data / FOLDER / f"{name}{PENDING}"


def trust_root(session: Session, root: Path) -> None:
    """Trust the keys of the file ``root``.

    An older root of the same publisher changes nothing; another publisher's root discards the record of accepted packs.
    """
    trust = signing.read_root(root)
    with session.change("trust", signing.fingerprint(root)[:17]) as change:
        with suppress(LocalmedError, Refused):
            trust = _trust(session.data).follow(trust.roots)
        _store_trust(session.data, trust)
        change.outcome = "trusted"


def _trust(data: Path) -> Trust:
    if not (data / TRUST).exists():
        raise UsageError("pack.no_root")
    return Trust.of(files.contents(data / TRUST))


def _store_trust(data: Path, trust: Trust) -> None:
    (data / TRUST).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    files.replace(data / TRUST, trust.kept())


def latest_known_time(session: Session) -> datetime:
    """Return a time that has certainly passed: of the served generation and of the audit log's last entry."""
    times = [datetime(2026, 1, 1, tzinfo=UTC)]
    with suppress(LocalmedError, OSError, ValueError):
        times.append(datetime.fromisoformat(generations.served_manifest(session.data).created))
    with suppress(LocalmedError, OSError, ValueError), Audit(session.data) as log:
        times += [datetime.fromisoformat(entry.time) for entry in log.entries()[-1:]]
    return max(time if time.tzinfo else time.replace(tzinfo=UTC) for time in times)


def _verify(session: Session, folder: Path) -> Pack:
    if not (folder / MANIFEST).exists():
        raise InputError("pack.incomplete", name=str(folder / MANIFEST))
    manifest = verifier.verify(folder, "pack", _trust(session.data), latest_known_time(session))
    described = _description(manifest.read(DESCRIPTION))
    lists = [manifest.read(name, LISTS_MOST) if name in manifest.files else b"" for name in LISTS]
    _check_names(manifest.files)
    return Pack(str(described.get("title", "")), manifest, tuple(_parse_lists(*lists)))


def _description(content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise InputError("pack.malformed", name=DESCRIPTION) from None


def _withdrawals(folder: Path) -> Iterator[Withdrawal]:
    return _parse_lists(
        *(files.contents(folder / name, LISTS_MOST) if (folder / name).exists() else b"" for name in LISTS)
    )


def _parse_lists(withdrawals: bytes, retractions: bytes) -> Iterator[Withdrawal]:
    try:
        rows: Sequence[Mapping[str, Any]] = tomllib.loads(withdrawals.decode()).get("withdrawn", ())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError("settings.toml", file=LISTS[0], place=toml_place(error)) from None
    for number, row in enumerate(rows, 1):
        ties = [name for name in TIES if isinstance(row.get(name), str) and row[name]]
        if len(ties) != 1 or not row.get("reason"):
            raise InputError("pack.withdrawal", number=number)
        yield Withdrawal(ties[0], row[ties[0]], str(row.get("title", "")), str(row["reason"]))
    for line in retractions.decode("utf-8", "replace").splitlines():
        if identifier := line.partition("#")[0].strip():
            yield Withdrawal("identifier", identifier, "", "retracted")


def _copy_pack(session: Session, manifest: Manifest, hooks: Hooks) -> None:
    """Copy every file into ``<data>/packs/<name>``, which is replaced once all are verified."""
    kept = session.data / FOLDER / manifest.name
    fresh, old = kept.with_name(f".{manifest.name}.new"), kept.with_name(f".{manifest.name}.old")
    if shutil.disk_usage(session.data).free < manifest.size * SPARE:
        raise UsageError("pack.no_room", needed=round(manifest.size * SPARE / 2**20) + 1)
    for left in (fresh, old):
        shutil.rmtree(left, ignore_errors=True)
    fresh.mkdir(parents=True, mode=0o700)
    try:
        done = 0
        for name, (size, _) in sorted(manifest.files.items()):
            hooks.cancel.check()
            hooks.progress(done, manifest.size, Path(name).name)
            manifest.copy(name, fresh / name)
            os.utime(fresh / name, (0, 0))  # complete, so a refresh must not skip it as just written
            done += size
        files.replace(_pending_mark(session.data, manifest.name), b"")
        if kept.exists():
            kept.rename(old)
        fresh.rename(kept)
        files.sync(kept.parent)
    finally:
        for left in (fresh, old):
            shutil.rmtree(left, ignore_errors=True)
    _store_trust(session.data, _trust(session.data).after(manifest))


def _withdraw(session: Session, name: str, withdrawals: Sequence[Withdrawal]) -> list[str]:
    """Put the pack's new ``withdrawals`` in force; return the titles."""
    documents, titles = list[Document](), list[str]()
    with suppress(NoLibrary):
        documents = lookups.documents(session)
    withdrawn = in_force(session.data).withdrawn()
    for entry in withdrawals:
        matching = [document for document in documents if entry.names(document)]
        if not matching and entry.by == "content":  # withdrawn in advance, should the site import it
            matching = [
                Document(digest(FOLDER, entry.value), "", entry.value, entry.title, "", name, "", entry.value, "")
            ]
        for document in matching:
            if document.id not in withdrawn[0] and document.status is not Status.WITHDRAWN:
                changes.withdraw(session, document, True, entry.reason)
                titles.append(document.title)
                withdrawn = in_force(session.data).withdrawn()
    return titles
