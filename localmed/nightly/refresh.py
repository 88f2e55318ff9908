"""``localmed refresh``: the nightly update of everything that is watched, as one change of the library.

The stages in order: take new content packs and put their withdrawals in force; compare every stored byte with its hash
and mend damage, or stop; build **one** generation from the watched folders of all collections and the packs' documents;
ask the canaries (``canary_gate.py``); serve it; make a backup, if configured; keep the report. A failure before the
swap leaves the served generation unchanged; unless the refresh was cancelled, the backup is still made. The next
refresh reuses encoded vectors. Another running change of the library is waited for (``wait_seconds``).
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from localmed.domain import Message, errors, message
from localmed.domain.errors import Busy, CanariesLost, Cancelled, Damaged, LibraryError, LocalmedError, NoLibrary
from localmed.domain.nights import CHANGES, FAILED, KEPT_BACK, SERVED, UNCHANGED, FileLine, Night
from localmed.ingest import pipeline
from localmed.ingest.pipeline import Report
from localmed.library import generations, layout
from localmed.library.generations import Patience
from localmed.library.in_force import in_force
from localmed.nightly import nights
from localmed.people.history import count_citing
from localmed.process import files
from localmed.process.hooks import SILENT, Hooks
from localmed.site import alerts, canary_gate, holds, lookups
from localmed.site.importing import Intake, import_together, imported, manifest_of
from localmed.upkeep import backup, check, fit, packs, repair

if TYPE_CHECKING:
    from localmed.site.session import Session

LOCK = layout.REFRESH_LOCK
BLOCK = 512  # bytes, which ``st_blocks`` counts
CHANGE_OF = {"read": "changed", "removed": "removed", "quarantined": "quarantined", "left": "left", "note": "note"}


@dataclass(slots=True)
class _Stages:
    hooks: Hooks
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Run the block as stage ``name``."""
        self.hooks.cancel.check()
        self.hooks.started(message(f"refresh.stage_{name}"))
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = time.monotonic() - start


def refresh(session: Session, hooks: Hooks = SILENT, by_hand: bool = False) -> Night:
    """Run all stages; return the report, which notes whether somebody started it ``by_hand``.

    Raise ``Busy`` if a refresh is running, else the error that ended it. Once begun, its report is always kept. A
    collection that cannot be updated is left as it is and named in the report's errors.
    """
    session.may_change()
    with _alone(session.data):
        begun = replace(nights.begin(session.data, session.settings.refresh.keep_reports), by_hand=by_hand)
        stages = _Stages(hooks)
        try:
            night = _run_stages(session, begun, stages)
        except LocalmedError as error:
            outcome = KEPT_BACK if isinstance(error, CanariesLost) else FAILED
            alerts.tell(session.settings, "refresh", message("refresh.failed", why=error.messages[0]))
            if isinstance(error, errors.DiskFull):
                alerts.tell(session.settings, "disk", error.full_message)
            if isinstance(error, CanariesLost) and (count := len(holds.holds(session.data))):
                alerts.tell(session.settings, "holds", message("hold.standing", count=count))
            night = replace(begun, outcome=outcome, errors=(error.full_message,))
            _keep_report(
                session, night if isinstance(error, Cancelled) else _make_backup(session, night, stages), stages
            )
            raise
        except KeyboardInterrupt:
            _keep_report(session, begun, stages)
            raise
        except Exception as error:  # a program error: reported and backed up like any failed night
            why = message("job.unforeseen", kind=type(error).__name__)
            alerts.tell(session.settings, "refresh", message("refresh.failed", why=why))
            _keep_report(session, _make_backup(session, replace(begun, outcome=FAILED, errors=(why,)), stages), stages)
            raise
        return _keep_report(session, night, stages)


@contextmanager
def _alone(data: Path) -> Iterator[None]:
    """Prevent a second refresh; the lock ends with the process."""
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (data / LOCK).open("a+") as stream:
        if not files.lock(stream):
            raise Busy("refresh.busy", data=str(data))
        yield


def _run_stages(session: Session, night: Night, stages: _Stages) -> Night:
    fit.watch(session.settings, fit.inspect_machine())
    _require_room(session)
    refused: tuple[Message, ...] = ()
    if session.settings.refresh.packs:
        with stages.stage("packs"):
            failed = list(packs.take_new(session, stages.hooks))
        refused = tuple(message("refresh.pack_left", why=error.full_message) for error in failed)
    patience = Patience(  # a librarian's import is waited for
        session.settings.refresh.wait_seconds,
        lambda holder: stages.hooks.started(message("refresh.waiting", holder=holder)),
    )
    if session.settings.refresh.verify:
        with stages.stage("check"):
            night = _verify(session, night, stages.hooks, patience)
    before, known, scans = _served_number(session.data), _stored_files(session), _scanned(session.data)
    with stages.stage("import"):
        intakes, failures = intakes_of(session)
        outcomes = import_together(session, intakes, hooks=stages.hooks, action="refresh", patience=patience)
        reports = {name: one for name, one in outcomes.items() if isinstance(one, Report)}
        errors = failures | {name: one for name, one in outcomes.items() if isinstance(one, LocalmedError)}
        for name in packs.pending_packs(session.data):
            if set(packs.parts_of(session.data, name)) <= set(reports):
                packs.finish(session, name)
        compared = canary_gate.standing(session)
    now = _served_number(session.data)
    night = replace(
        night,
        outcome=SERVED if now != before else UNCHANGED,
        before=before,
        generation=now,
        files=tuple(line for name, report in reports.items() for line in _file_lines(name, report, known)),
        errors=(*refused, *(message("refresh.collection_left", name=name, why=error.full_message)
                            for name, error in errors.items())),
        scans=len(_scanned(session.data) - scans),
        canaries=len(compared.after),
        moved=nights.canary_lines(canary_gate.last(session.data) if now != before else compared),
    )  # fmt: skip
    # alerts are set before the backup, which would otherwise store outdated ones
    left, held = len(night.errors), len(holds.holds(session.data))
    _set_alert(session, "refresh", message("refresh.in_part", number=night.number, count=left) if left else None)
    _set_alert(session, "holds", message("hold.standing", count=held) if held else None)
    night = _make_backup(session, night, stages)
    return replace(night, counts=tuple((one, sum(line.change == one for line in night.files)) for one in CHANGES))


def _require_room(session: Session) -> None:
    free, least = shutil.disk_usage(session.data).free, session.settings.refresh.free_bytes
    if free < least:
        error = LibraryError("refresh.no_room", free=free / 2**30, least=least / 2**30, data=str(session.data))
        alerts.tell(session.settings, "disk", error.full_message)
        raise error
    alerts.clear(session.data, "disk")


def _verify(session: Session, night: Night, hooks: Hooks, patience: Patience) -> Night:
    """Compare every byte with its hash, mend or rebuild; raise ``Damaged`` if the served generation stays damaged."""
    found_faults, mended, left = check.verify_and_mend(session, hooks)
    _set_alert(session, "damage", message("refresh.damaged", count=len(left), fault=left[0]) if left else None)
    with suppress(NoLibrary):
        number = generations.served_number(session.data)
        if problems := check.generation_faults(session.data, None, whole=False):
            if not repair.can_rebuild(session.data, number):
                raise Damaged("generation.damaged", name=f"{number:04d}", problem=problems[0])
            repair.rebuild(session, number, hooks, patience)
            mended += (message("generation.made.rebuild", number=number),)
    return replace(night, faults=found_faults, mended=mended)


@dataclass(frozen=True, slots=True)
class Watched:
    """A folder that the next refresh reads for ``collection``: all of it, or only ``files`` of it, if any.

    ``refused`` counts its files in quarantine; ``fault`` says why the refresh will leave the collection as it is.
    """

    collection: str
    folder: str
    files: int
    refused: int
    fault: Message | None = None


def watched(session: Session) -> list[Watched]:
    """The folders that the next refresh reads, by collection, without those of uploads, in the data folder."""
    session.may_change()
    intakes, failures = intakes_of(session)
    refused = {(one.collection, one.path) for one in lookups.quarantine(session)}
    shown = []
    for name, intake in intakes.items():
        outside = [path for path in intake.paths if not path.is_relative_to(session.data)]
        singly = Counter(path.parent for path in outside if path.is_file())
        for folder in (*(path for path in outside if not path.is_file()), *singly):
            inside = [path for of, path in refused if of == name and Path(path).is_relative_to(folder)]
            gone = None if folder.is_dir() else message("source.missing", path=str(folder))
            shown.append(Watched(name, str(folder), singly[folder], len(inside), gone))
    for name, error in failures.items():
        for stated in session.settings.refresh.folders.get(name) or ("",):
            shown.append(Watched(name, stated, 0, 0, error.messages[0]))
    return shown


def intakes_of(session: Session) -> tuple[dict[str, Intake], dict[str, LocalmedError]]:
    """Return the inputs of each watched collection, and the errors of the others."""
    watched = session.settings.refresh.folders
    try:
        earlier = imported(session)
    except NoLibrary:
        earlier = []
    intakes, failures = dict[str, Intake](), dict[str, LocalmedError]()
    parts = {
        key: part
        for pack in packs.pending_packs(session.data)
        for key, part in packs.parts_of(session.data, pack).items()
    }
    for name in dict.fromkeys((*earlier, *watched, *parts)):
        try:
            intake = _intake(session, name, name in earlier, tuple(map(Path, watched.get(name, ()))), parts.get(name))
            held = intake.leaving.held  # a new collection whose files are all on hold would be imported empty
            if (
                name in earlier
                or name in watched
                or any(str(path) not in held for folder in intake.paths for path in folder.rglob("*"))
            ):
                intakes[name] = intake
        except LocalmedError as error:
            failures[name] = error
    return intakes, failures


def _intake(
    session: Session, name: str, known: bool, folders: tuple[Path, ...], part: packs.Part | None = None
) -> Intake:
    file = part.manifest if part else None
    manifest = manifest_of(session, name, file)
    paths, missing = (*folders, part.documents) if part else folders, tuple[str, ...]()
    if known:
        with session.workspace() as workspace:
            origins = pipeline.origins_of(session.data, workspace.library.catalogue, name)
        paths, missing = tuple(dict.fromkeys((*origins.paths, *paths))), origins.missing
    leaving = holds.leaving(session.data, name, time.time() - session.settings.refresh.settle_seconds)
    return Intake(manifest, paths, missing, file, leaving)


def _served_number(data: Path) -> int:
    with suppress(NoLibrary):
        return generations.served_number(data)
    return 0


def _stored_files(session: Session) -> frozenset[tuple[str, str]]:
    with suppress(NoLibrary), session.workspace() as workspace:
        catalogue = workspace.library.catalogue
        names = [collection.name for collection in catalogue.collections()]
        return frozenset((name, path) for name in names for path in catalogue.files(name))
    return frozenset()


def _scanned(data: Path) -> frozenset[str]:
    with suppress(OSError):
        return frozenset(path.name for path in (data / layout.SCANS).iterdir())
    return frozenset()


def _file_lines(name: str, report: Report, known: frozenset[tuple[str, str]]) -> Iterator[FileLine]:
    for line in report.lines:
        if change := CHANGE_OF.get(line.outcome):
            change = "added" if change == "changed" and (name, line.path) not in known else change
            yield FileLine(name, line.path, change, line.detail, line.documents)


def _make_backup(session: Session, night: Night, stages: _Stages) -> Night:
    """Make the configured backup, if any. A failure becomes an error of the report and an alert, no more."""
    folder = backup.folder_of(session.settings)
    if folder is None:
        return night
    with stages.stage("backup"):
        try:
            made = backup.make(session, folder, stages.hooks)
        except LocalmedError as error:
            text = error.full_message
        except OSError as error:
            text = message("backup.failed", kind=str(error.errno))
        else:
            night = replace(night, backup=made.name)
            if not made.damaged:
                alerts.clear(session.data, "backup")
                return night
            text = message("backup.originals", count=len(made.damaged), names=made.damaged)
    alerts.tell(session.settings, "backup", text)
    return replace(night, errors=(*night.errors, text))


def _set_alert(session: Session, name: str, text: Message | None) -> None:
    alerts.tell(session.settings, name, text) if text else alerts.clear(session.data, name)


def _keep_report(session: Session, night: Night, stages: _Stages) -> Night:
    if night.outcome == KEPT_BACK:
        compared = canary_gate.last(session.data)
        night = replace(night, canaries=len(compared.after), moved=nights.canary_lines(compared))
    since = next((one.started for one in nights.nights(session.data) if one.outcome in (SERVED, UNCHANGED)), "")
    withdrawn = [one for one in in_force(session.data).newest().values() if one.withdrawn and one.time >= since]
    night = replace(
        night,
        withdrawn=tuple(one.title for one in withdrawn),
        recalled=count_citing(session.data, [one.document for one in withdrawn]),
        seconds=tuple((name, round(value, 2)) for name, value in stages.seconds.items()),
        free_bytes=shutil.disk_usage(session.data).free,
        data_bytes=_bytes_of(session.data),
    )
    return nights.end(session.data, night)


def _bytes_of(data: Path) -> int:
    """Return the disk use of ``data``; files shared by generations count once."""
    sizes: dict[int, int] = {}
    for path in data.rglob("*"):
        with suppress(OSError):  # removed meanwhile
            state = path.lstat()
            sizes[state.st_ino] = state.st_blocks * BLOCK
    return sum(sizes.values())
