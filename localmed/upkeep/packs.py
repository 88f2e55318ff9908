"""Content packs: signed, versioned sets of documents and withdrawals that a hospital takes in from a stick.

What a publisher arranges, and what lies in the pack's ``content/`` (its form and rules: ``verifier.py``)::

    pack.toml                  name, title
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

``<data>/trust/trust.json`` is whom the site trusts, taken over once by somebody who compared the fingerprint of a
root, and the newest version of each pack that was taken.

Not covered: a withdrawal of a document that the site has not got, by anything but the digest of its content;
precomputed vectors (a site encodes what it imports, with whatever encoder it has).
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
    from localmed.ingest.report import Report
    from localmed.site.session import Session

FOLDER, PENDING = layout.PACKS, ".pending"
TRUST = Path(layout.TRUST) / "trust.json"
DESCRIPTION, *LISTS = "pack.toml", "withdrawals.toml", "retractions.txt"
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
    """A pack whose manifest was verified."""

    title: str
    manifest: Manifest
    withdrawals: tuple[Withdrawal, ...] = ()

    @property
    def collections(self) -> list[str]:
        """The collections that it has documents of."""
        return sorted({name.split("/")[1] for name in self.documents})

    @property
    def documents(self) -> list[str]:
        """Its files of documents."""
        return [name for name in self.manifest.files if name.startswith("documents/")]


@dataclass(slots=True)
class Imported:
    """What an import of a pack did."""

    pack: Pack
    withdrawn: list[str] = field(default_factory=list)  # titles
    reports: dict[str, Report] = field(default_factory=dict)


# --- the publisher's side ---------------------------------------------------------------------------------------------


def build(source: Path, out: Path, root: Path, keys: Sequence[Path], version: int, days: int) -> int:
    """Make ``out`` of what is arranged in ``source``, good for ``days``; return its number of files."""
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
    """Raise ``InputError`` for what no site could import."""
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
    """What the pack in ``folder`` is, verified; nothing is kept. Raise ``InputError`` for what breaks a rule."""
    with signing.as_errors():
        return _verified(session, folder)


def import_pack(session: Session, folder: Path, hooks: Hooks = SILENT) -> Imported:
    """Verify the pack in ``folder``, copy it, put its withdrawals in force and import its documents.

    Raise ``InputError`` for what breaks a rule, ``UsageError`` where the site has no root or its clock is behind.
    """
    done = _taken(session, folder, hooks)
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


def _taken(session: Session, folder: Path, hooks: Hooks) -> Imported:
    """Verify and copy the pack in ``folder`` and put its withdrawals in force; its documents are pending then."""
    session.may_change()
    with signing.as_errors(), told_if_full(session.data):
        pack = _verified(session, folder)
        with session.change("pack", f"{pack.manifest.name} {pack.manifest.version}") as change:
            _take(session, pack.manifest, hooks)
            change.outcome = f"{len(pack.manifest.files)} files verified"
    return Imported(pack, _withdraw(session, pack.manifest.name, pack.withdrawals))


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
            with signing.as_errors():
                known = verifier.taken_already(folder, _trust(session.data))
            if not known:
                _taken(session, folder, hooks)
        except LocalmedError as error:
            yield error


def _laid_ready(places: Sequence[str]) -> Iterator[Path]:
    """The packs in ``places``: such a folder itself (a stick), or folders in it."""
    for place in map(Path, places):
        for folder in (place, *sorted(place.glob("*"))):
            if (folder / MANIFEST).is_file():
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
    withdrawn = _withdraw(session, name, tuple(_withdrawals(folder)))
    _mark(session.data, name).unlink(missing_ok=True)
    return withdrawn


def _mark(data: Path, name: str) -> Path:
    return data / FOLDER / f"{name}{PENDING}"


def trust_root(session: Session, root: Path) -> None:
    """Trust the keys of the file ``root`` from now on.

    A publisher's older root changes nothing. With another publisher's, what was known of packs is forgotten.
    """
    trust = signing.read_root(root)
    with session.change("trust", signing.fingerprint(root)[:17]) as change:
        with suppress(LocalmedError, Refused):
            trust = _trust(session.data).follow(trust.roots)
        _keep(session.data, trust)
        change.outcome = "trusted"


def _trust(data: Path) -> Trust:
    """Whom the site trusts; raise ``UsageError`` where that is nobody."""
    if not (data / TRUST).exists():
        raise UsageError("pack.no_root")
    return Trust.of(files.contents(data / TRUST))


def _keep(data: Path, trust: Trust) -> None:
    (data / TRUST).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    files.replace(data / TRUST, trust.kept())


def earliest(session: Session) -> datetime:
    """A time that has passed for certain: of the generation being served, and of the audit log's last entry."""
    times = [datetime(2026, 1, 1, tzinfo=UTC)]
    with suppress(LocalmedError, OSError, ValueError):
        times.append(datetime.fromisoformat(generations.served_manifest(session.data).created))
    with suppress(LocalmedError, OSError, ValueError), Audit(session.data) as log:
        times += [datetime.fromisoformat(entry.time) for entry in log.entries()[-1:]]
    return max(time if time.tzinfo else time.replace(tzinfo=UTC) for time in times)


def _verified(session: Session, folder: Path) -> Pack:
    if not (folder / MANIFEST).exists():
        raise InputError("pack.incomplete", name=str(folder / MANIFEST))
    manifest = verifier.verify(folder, "pack", _trust(session.data), earliest(session))
    described = _description(manifest.read(DESCRIPTION))
    lists = [manifest.read(name, LISTS_MOST) if name in manifest.files else b"" for name in LISTS]
    _check_names(manifest.files)
    return Pack(str(described.get("title", "")), manifest, tuple(_listed(*lists)))


def _description(content: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise InputError("pack.malformed", name=DESCRIPTION) from None


def _withdrawals(folder: Path) -> Iterator[Withdrawal]:
    """What the lists in ``folder`` withdraw."""
    return _listed(*(files.contents(folder / name, LISTS_MOST) if (folder / name).exists() else b"" for name in LISTS))


def _listed(withdrawals: bytes, retractions: bytes) -> Iterator[Withdrawal]:
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


def _take(session: Session, manifest: Manifest, hooks: Hooks) -> None:
    """Copy every file into ``<data>/packs/<name>``, which is replaced when all of them are right."""
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
            os.utime(fresh / name, (0, 0))  # a refresh leaves what was written just now; this is whole
            done += size
        files.replace(_mark(session.data, manifest.name), b"")
        if kept.exists():
            kept.rename(old)
        fresh.rename(kept)
        files.sync(kept.parent)
    finally:
        for left in (fresh, old):
            shutil.rmtree(left, ignore_errors=True)
    _keep(session.data, _trust(session.data).after(manifest))


def _withdraw(session: Session, name: str, withdrawals: Sequence[Withdrawal]) -> list[str]:
    """Put the ``withdrawals`` of the pack ``name`` in the ledger, unless they are there; return the titles."""
    documents, titles = list[Document](), list[str]()
    with suppress(NoLibrary):
        documents = lookups.documents(session)
    withdrawn = in_force(session.data).withdrawn()
    for entry in withdrawals:
        matching = [document for document in documents if entry.names(document)]
        if not matching and entry.by == "content":  # the site has not got it: withdrawn should it come
            matching = [
                Document(digest(FOLDER, entry.value), "", entry.value, entry.title, "", name, "", entry.value, "")
            ]
        for document in matching:
            if document.id not in withdrawn[0] and document.status is not Status.WITHDRAWN:
                changes.withdraw(session, document, True, entry.reason)
                titles.append(document.title)
                withdrawn = in_force(session.data).withdrawn()
    return titles
