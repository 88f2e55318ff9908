"""The gate before a change is served: the canaries are asked of it, and a loss keeps it back (``CanariesLost``).

What was answered on what is served is kept (``<data>/canaries.json``) with what it was answered by: generation, models,
prompts, settings, withdrawals and day. It is asked again only where one of these has changed. What a candidate changed
goes on the hold list when it is kept back, so that the next night leaves it alone (``holds.py``).

The settings under which the canaries passed are kept too (``PASSED``): settings that lose one do not begin to serve,
those go on (``before_serving``). Of another version or another model there is nothing older to serve by, so that the
service does not begin; the installer asks before it switches.
"""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localmed import files
from localmed.config import Settings, file_of, load
from localmed.domain import Answer, digest, message
from localmed.errors import (
    Busy,
    CanariesLost,
    Damaged,
    LocalmedError,
    ModelError,
    NoLibrary,
    UnknownName,
    UsageError,
    WrongEncoder,
)
from localmed.library import generations, layout
from localmed.library.anchors import access_extent, ledger_extent
from localmed.library.candidate import differences
from localmed.library.catalogue import FILE as CATALOGUE
from localmed.library.catalogue import Catalogue
from localmed.library.migrations import as_ours
from localmed.library.state import rows, selected
from localmed.operations import alerts, holds, stops
from localmed.operations.canaries import Asked, Canary, Comparison, ask_all, canaries, lost_message

if TYPE_CHECKING:
    from localmed.session import Session
    from localmed.site import Site

KEPT = layout.CANARY_RESULTS
PASSED = layout.SETTINGS_PASSED  # the settings under which they passed
LAST = layout.CANARY_LAST
ROUNDS = 3  # a withdrawal while they are asked changes what is served too: both are asked again
BUILDING = "building"  # the folder of a generation that was not served yet
LONGEST_REASON = 500  # characters
UNSETTLED = {"data", "reader", "host", "web", "refresh", "backup", "alerts", "ingest", "library"}  # change no answer


def look(session: Session, candidate: Path) -> Comparison:
    """Compare ``candidate`` with what is served; raise ``CanariesLost`` where it must not be served."""
    before = _before(session)
    if not before:
        return Comparison()
    compared = _compared(session, before, candidate)
    _keep_last(session.data, compared)
    if compared.lost:
        if candidate.name == BUILDING:
            with generations.lease(session.data) as served:
                changed = differences(served, candidate)
            holds.hold(session.data, changed, lost_message(compared.lost), session.caller.user)
        _kept_back(session, compared)
    _keep(session, _basis(session, candidate), compared.after)
    return compared


def _before(session: Session) -> dict[str, Asked]:
    """What is served now, asked or remembered; nothing where no canary holds, or there is no library yet.

    Of a library that is damaged or of another encoder, which a change must be able to leave, what was remembered. Where
    nobody answers, such as a model host that has ended or is busy, the error is raised: what was not asked is not
    served.
    """
    try:
        return baseline(session) if of_served(session) else {}
    except NoLibrary:
        return {}
    except (Damaged, WrongEncoder):
        return _known(session.data)[1]


def look_at_models(session: Session, role: str, name: str) -> None:
    """Ask the canaries with ``name`` in ``role``; raise ``CanariesLost`` if it must not serve.

    Another encoder is looked at when the library is brought to it (``reindex``).
    """
    if role == "encoder":
        return
    with suppress(NoLibrary), session.site.with_models({role: name}) as other:
        _look_at(session, other)


def _look_at(session: Session, other: Site) -> None:
    before = _before(session)
    compared = Comparison(before, _ask(session, other, None) if before else {}, accepted(session.data))
    if compared.lost:
        _kept_back(session, compared)


def standing(session: Session) -> Comparison:
    """What is served now, asked again if settings, models, prompts or the generation are others than when it passed.

    A loss is told by the banner; what was lost stays so until it passes or somebody accepts it.
    """
    with suppress(NoLibrary):
        basis, (known, before) = _basis(session), _known(session.data)
        after = before if known == basis else _ask(session, session.site, None)
        compared = Comparison(before, after, accepted(session.data))
        if compared.lost:
            alerts.tell(session.settings, "canaries", lost_message(compared.lost))
        else:
            alerts.clear(session.data, "canaries")
            _keep(session, basis, after)
        return compared
    return Comparison()


def before_serving(session: Session) -> Settings:
    """The settings to serve by: the session's, or those under which the canaries passed where these lose one.

    They are asked only where settings, models, prompts or version are others than then. Raise ``CanariesLost`` where
    models, prompts or version lose one, and what kept them from being asked where there are no settings of before.
    """
    try:
        if _noted(session.data, "answering") in ("", _answering(session)):
            return session.settings
        compared = standing(session)
    except (ModelError, Busy) as error:  # nobody answers: what was not asked does not begin to serve
        earlier = _earlier(session)
        if earlier is None:
            raise
        alerts.tell(session.settings, "settings", message("canary.unasked", reason=error.full_message))
        return earlier
    except LocalmedError:  # nothing whole is served: the pages say so
        return session.settings
    alerts.clear(session.data, "settings")
    if not compared.lost:
        return session.settings
    if earlier := _better(session, compared):
        alerts.tell(
            session.settings, "settings", message("canary.settings", count=len(compared.lost), ids=compared.lost)
        )
        return earlier
    if _noted(session.data, "made") != _made(session):
        raise CanariesLost("canary.start", count=len(compared.lost), ids=compared.lost)
    return session.settings  # it is the library's: a withdrawal, which holds


def _better(session: Session, compared: Comparison) -> Settings | None:
    """The settings under which the canaries passed, if fewer are lost by them."""
    earlier = _earlier(session)
    if earlier is None:
        return None
    with session.site.with_models({}, earlier) as other:
        after = _ask(session, other, None)
    return earlier if len(Comparison(compared.before, after, compared.accepted).lost) < len(compared.lost) else None


def _earlier(session: Session) -> Settings | None:
    """The settings under which the canaries passed; None where these are the ones of now."""
    file = session.data / PASSED
    if not file.exists() or files.own_bytes(file) == _settings_file(session):
        return None
    own = {name: getattr(session.settings, name) for name in UNSETTLED}
    return dataclasses.replace(load(session.data, file=file), **own)


def _settings_file(session: Session) -> bytes:
    file = file_of(session.data)
    return files.contents(file) if file.exists() else b""


def baseline(session: Session) -> dict[str, Asked]:
    """What is served now, asked or remembered."""
    basis, (known, before) = _basis(session), _known(session.data)
    if known == basis:
        return before
    after = _ask(session, session.site, None)
    _keep(session, basis, after)
    return after


def _compared(session: Session, before: dict[str, Asked], candidate: Path) -> Comparison:
    for _ in range(ROUNDS):
        extent = ledger_extent(session.data), access_extent(session.data)
        after = _ask(session, session.site, candidate)
        if (ledger_extent(session.data), access_extent(session.data)) == extent:
            break
        before = baseline(session)
    return Comparison(before, after, accepted(session.data))


def _ask(session: Session, site: Site, candidate: Path | None) -> dict[str, Asked]:
    """The canaries of what is served, or of ``candidate``, by the models of ``site``."""
    hidden = stops.stopped(session.data, stops.COLLECTION)
    opened = site.candidate(candidate, hidden) if candidate else site.workspace(hidden)
    with opened as workspace:

        def answer(question: str) -> Answer:
            return session.tried(question, workspace)

        return ask_all(of_served(session, candidate), answer)


def of_served(session: Session, candidate: Path | None = None) -> Sequence[Canary]:
    """The canaries of what is served: they hold for a ``candidate`` too that has lost a collection of theirs.

    Those of collections that it brings are asked of it as well, and have nothing to lose yet.
    """
    collections: set[str] = set()
    with generations.lease(session.data) as served:
        for path in (served, *([candidate] if candidate else [])):
            try:
                with closing(Catalogue(path / CATALOGUE)) as catalogue:
                    collections |= {collection.name for collection in catalogue.collections()}
            except sqlite3.DatabaseError as error:
                if path == (candidate or path):  # what is served may be damaged, and left by going back
                    raise as_ours(path / CATALOGUE, error) from error
    return canaries(session.data, collections)


def _basis(session: Session, candidate: Path | None = None) -> str:
    """What answers: generation, withdrawals, access, stops, canaries, day, settings, models, prompts, as a digest."""
    manifest = generations.read_manifest(candidate) if candidate else generations.served_manifest(session.data)
    questions = repr(of_served(session, candidate))
    outside = (ledger_extent(session.data), access_extent(session.data), repr(stops.stops(session.data)), questions)
    return digest(str(manifest.number), manifest.created, session.day(), _answering(session), *outside)


def _answering(session: Session) -> str:
    """Settings, thresholds, models, prompts and version that answer, as a digest."""
    settings = {
        item.name: getattr(session.settings, item.name)
        for item in dataclasses.fields(session.settings)
        if item.name not in UNSETTLED
    }
    return digest(repr(settings), _made(session))


def _made(session: Session) -> str:
    """Models, prompts and version, as a digest."""
    with session.site.workspace() as workspace:
        return digest(repr(dataclasses.replace(workspace.provenance(), generation="", day="")))


def _known(data: Path) -> tuple[str, dict[str, Asked]]:
    """What was kept; nothing where it cannot be read."""
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        values = json.loads(files.own_bytes(data / KEPT))
        return str(values["basis"]), _results(values["results"])
    return "", {}


def _noted(data: Path, name: str) -> str:
    """What was noted beside the results; "" where nothing was."""
    with suppress(OSError, ValueError, AttributeError):
        return str(json.loads(files.own_bytes(data / KEPT)).get(name, ""))
    return ""


def _results(values: Mapping[str, Any]) -> dict[str, Asked]:
    return {name: Asked(**{**row, "cited": tuple(row["cited"])}) for name, row in values.items()}


def _keep(session: Session, basis: str, results: Mapping[str, Asked]) -> None:
    """Keep the results with what they were answered by, and the settings; a loss that nobody accepted is no result."""
    if Comparison(_known(session.data)[1], results, accepted(session.data)).lost:
        return
    values = {
        "basis": basis,
        "answering": _answering(session),
        "made": _made(session),
        "results": {name: asdict(result) for name, result in results.items()},
    }
    files.replace(session.data / PASSED, _settings_file(session))
    files.replace(session.data / KEPT, json.dumps(values).encode())


def _keep_last(data: Path, compared: Comparison) -> None:
    values = {name: {key: asdict(result) for key, result in rows_of.items()}
              for name, rows_of in (("before", compared.before), ("after", compared.after))}  # fmt: skip
    files.replace(data / LAST, json.dumps({**values, "accepted": sorted(compared.accepted)}).encode())


def last(data: Path) -> Comparison:
    """What the canaries came to before and after the last change that they were asked of, served or kept back."""
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        values = json.loads(files.own_bytes(data / LAST))
        return Comparison(_results(values["before"]), _results(values["after"]), frozenset(values["accepted"]))
    return Comparison()


def _kept_back(session: Session, compared: Comparison) -> None:
    alerts.tell(session.settings, "canaries", lost_message(compared.lost))
    raise CanariesLost("canary.lost", count=len(compared.lost), ids=compared.lost)


# --- accepting a loss -------------------------------------------------------------------------------------------------


def accepted(data: Path) -> frozenset[str]:
    """The canaries of which somebody has accepted the loss."""
    return frozenset(row[0] for row in selected(data, "SELECT canary FROM accepted"))


def accept(session: Session, names: Sequence[str], reason: str) -> None:
    """Let changes lose the canaries ``names`` from now on, because of ``reason``; noted in the audit log."""
    if not reason.strip() or len(reason) > LONGEST_REASON:
        raise UsageError("web.documents.reason", most=LONGEST_REASON)
    known = {canary.id for canary in of_served(session)}
    if unknown := [name for name in names if name not in known]:
        raise UnknownName("canary.unknown", name=unknown[0])
    with session.change("canary accept", " ".join(names)) as change, rows(session.data) as state:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        for name in names:
            values = (name, reason.strip(), session.caller.user, now)
            state.execute("INSERT OR REPLACE INTO accepted VALUES (?, ?, ?, ?)", values)
        change.outcome = "accepted"


def watch_again(session: Session, names: Sequence[str]) -> None:
    """Take an acceptance back."""
    with session.change("canary watch", " ".join(names)), rows(session.data) as state:
        for name in names:
            state.execute("DELETE FROM accepted WHERE canary = ?", (name,))
