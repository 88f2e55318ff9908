"""The canary questions: they are asked before a change is served, and a loss blocks it (``CanariesLost``).

The results of the generation in use are stored (``<data>/canaries.json``) with everything that determines them:
generation, models, prompts, settings, withdrawals, day. They are asked again only when one of these changes. Files of a
blocked candidate go on hold, so that the next night leaves them (``holds.py``).

The settings under which the canaries passed are stored too (``PASSED``). If new settings lose a canary, the server runs
with the stored ones (``before_serving``). There is no such fallback for a new version or model: the server does not
start; the installer asks the canaries before it switches.

The program's canaries (``canaries.toml`` in this folder) are about the starter corpus and apply where it is imported; a
site's own are in ``<data>/canaries.toml``. A canary is *lost* if it passed before the change and fails after it. One
that already failed blocks nothing; it is reported.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sqlite3
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field
from importlib.resources import files as package_files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localmed.config import Settings, file_of, load, names, text
from localmed.domain import Answer, AnswerStatus, Evidence, Message, digest, message
from localmed.domain.errors import (
    BadSettings,
    Busy,
    CanariesLost,
    Damaged,
    InputError,
    LocalmedError,
    ModelError,
    NoLibrary,
    UnknownName,
    WrongEncoder,
    toml_place,
)
from localmed.library import generations, layout
from localmed.library.catalogue import FILE as CATALOGUE
from localmed.library.catalogue import Catalogue, differences, only_empty_collections
from localmed.library.in_force import in_force
from localmed.library.journal import now
from localmed.library.migrations import translate_error
from localmed.library.state import rows, selected
from localmed.messages import to_text
from localmed.process import files, hooks
from localmed.process.files import contents
from localmed.site import alerts, holds, stops
from localmed.text.language import detect

if TYPE_CHECKING:
    from localmed.site.session import Session
    from localmed.site.site import Site


FILE = layout.CANARIES  # of the program, and of a site in its data folder
MOST = 500  # questions of a site: each takes about a tenth of a second to a second
ID = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
CITE, ABSTAIN = MUST = ("cite", "abstain")
FIRST = 3  # sections among which a document must be
KEYS = {"id", "question", "must", "documents", "says", "dosing", "collection"}


@dataclass(frozen=True, slots=True)
class Canary:
    """A question and its required outcome. ``documents`` are file names or titles.

    One of them must be among the first sections or be cited, with the words that it ``says``.
    """

    id: str
    question: str
    must: str  # one of ``MUST``
    documents: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    dosing: bool = False
    collection: str = ""  # asked only where the library has it ("": always)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Its kinds, as codes of ``canary.kind``."""
        language = ("zh",) if detect(self.question) == "zh" else ()
        return (self.must, *(("dosing",) if self.dosing else ()), *language)


@dataclass(frozen=True, slots=True)
class Asked:
    """The result of a canary: the answer's status, and the files of the first section and of the citations."""

    id: str
    passed: bool
    status: str
    cited: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """The canaries before and after a change; the loss of ``accepted`` ones is permitted."""

    before: dict[str, Asked] = field(default_factory=dict)
    after: dict[str, Asked] = field(default_factory=dict)
    accepted: Collection[str] = ()

    @property
    def lost(self) -> tuple[str, ...]:
        """Those that passed before and fail now, without an accepted loss."""
        passed = {name for name, result in self.before.items() if result.passed}
        return tuple(name for name in self.failing if name not in self.accepted and name in passed)

    @property
    def failing(self) -> tuple[str, ...]:
        """Those that fail now."""
        return tuple(name for name, result in self.after.items() if not result.passed)

    @property
    def moved(self) -> tuple[str, ...]:
        """Those with another result than before."""
        return tuple(name for name, result in self.after.items() if self.before.get(name, result) != result)


def canaries(data: Path, collections: Collection[str]) -> tuple[Canary, ...]:
    """The canaries of a library with these ``collections``; raise ``BadSettings`` for an invalid file."""
    own = read(package_files(__package__).joinpath(FILE).read_bytes(), FILE)
    site = read(contents(data / FILE), str(data / FILE)) if (data / FILE).exists() else ()
    if len(site) > MOST:
        raise BadSettings("canary.many", file=str(data / FILE), most=MOST)
    known = {canary.id: canary for canary in (*own, *site)}  # a site may give one of ours another form
    return tuple(canary for canary in known.values() if not canary.collection or canary.collection in collections)


def read(content: bytes, file: str) -> tuple[Canary, ...]:
    """The canaries of a file; raise ``BadSettings`` if it is invalid."""
    try:
        values = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSettings("settings.toml", file=file, place=toml_place(error)) from None
    rows = values.get("canary", [])
    if set(values) - {"canary"} or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BadSettings("canary.form", file=file)
    read_rows = tuple(_canary(row, file) for row in rows)
    if len({canary.id for canary in read_rows}) < len(read_rows):
        raise BadSettings("canary.form", file=file)
    return read_rows


def _canary(row: Mapping[str, Any], file: str) -> Canary:
    must, documents = row.get("must"), names(row.get("documents", []), "canary.documents", file)
    fits = isinstance(row.get("id"), str) and ID.fullmatch(row["id"]) and must in MUST and not set(row) - KEYS
    if not fits or (must == CITE) != bool(documents) or type(row.get("dosing", False)) is not bool:
        raise BadSettings("canary.form", file=file)
    return Canary(
        id=row["id"],
        question=text(row.get("question"), "canary.question", file),
        must=str(must),
        documents=documents,
        says=names(row.get("says", []), "canary.says", file),
        dosing=row.get("dosing", False),
        collection=text(row.get("collection", "-"), "canary.collection", file).strip("-"),
    )


def judge(canary: Canary, answer: Answer) -> Asked:
    """The result of ``canary`` from its ``answer``."""
    claimed = [statement for statement in answer.statements if not statement.withheld]
    known = answer.by_marker
    cited = dict.fromkeys(citation.marker for statement in claimed for citation in statement.citations)
    if canary.must == ABSTAIN:
        return Asked(canary.id, answer.status is not AnswerStatus.ANSWERED, answer.status.value, _files(known, cited))
    found = answer.receipts.sections[:FIRST] if answer.receipts else ()
    lines = [line for section in found for line in section.lines]
    markers = dict.fromkeys(line.marker for line in lines) | cited
    named = {*_files(known, markers), *(known[marker].document_title for marker in markers)}
    quotes = (known[line.marker].passage.text[line.start : line.end] for line in lines)
    words = _normalised(" ".join((*quotes, *(statement.text for statement in claimed))))
    passed = not named.isdisjoint(canary.documents) and all(_normalised(part) in words for part in canary.says)
    first = dict.fromkeys(section.best for section in found[:1])
    return Asked(canary.id, passed, answer.status.value, _files(known, first | cited))


def _files(known: Mapping[str, Evidence], markers: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(known[marker].source.rstrip("/").rpartition("/")[2] for marker in markers))


def ask_all(chosen: Sequence[Canary], answer: Callable[[Canary], Answer]) -> dict[str, Asked]:
    """Ask ``chosen`` of ``answer``; a workflow's error counts as a failure with the error's name as status.

    Reports its progress to the hooks of this thread.
    """
    results, caller = {}, hooks.active()
    with hooks.following(caller.cancel_only()):  # a workflow reports its own progress
        for number, canary in enumerate(chosen):
            hooks.check()
            caller.progress(number, len(chosen), to_text(message("canary.asking", question=canary.question)))
            try:
                results[canary.id] = judge(canary, answer(canary))
            except InputError as error:
                results[canary.id] = Asked(canary.id, False, type(error).__name__)
    return results


def lost_message(names_lost: Sequence[str]) -> Message:
    """The alert on a change that was blocked."""
    return message("canary.lost.what", count=len(names_lost), ids=tuple(names_lost))


def _normalised(words: str) -> str:
    return re.sub(r"\s+", "", words.casefold())


KEPT = layout.CANARY_RESULTS
PASSED = layout.SETTINGS_PASSED  # the settings under which they passed
LAST = layout.CANARY_LAST
ROUNDS = 3  # of comparing: a withdrawal meanwhile affects both sides, so both are asked again
BUILDING = "building"  # the folder of a generation before it is served
UNSETTLED = {"data", "reader", "host", "web", "refresh", "backup", "alerts", "ingest", "library"}  # change no answer


def look(session: Session, candidate: Path) -> Comparison:
    """Compare ``candidate`` with the generation in use; raise ``CanariesLost`` where it must not be served."""
    with suppress(NoLibrary, Damaged, sqlite3.Error), generations.lease(session.data) as served:
        if only_empty_collections(served, candidate):  # an empty collection changes no answer
            return Comparison()
    before = _results_before(session)
    if not before:
        return Comparison()
    for _ in range(ROUNDS):
        known = in_force(session.data)
        after = _ask(session, session.site, candidate)
        if in_force(session.data) is known:
            break
        before = baseline(session)
    compared = Comparison(before, after, accepted(session.data))
    last_values = asdict(compared) | {"accepted": sorted(compared.accepted)}
    files.replace(session.data / LAST, json.dumps(last_values).encode())
    if compared.lost:
        if candidate.name == BUILDING:
            with generations.lease(session.data) as served:
                changed = differences(served, candidate)
            holds.hold(session.data, changed, lost_message(compared.lost), session.caller.user)
        _block(session, compared)
    if not Comparison(_stored_results(session.data).results, compared.after, compared.accepted).lost:
        alerts.clear(session.data, "canaries")  # earlier blocked changes are resolved
    _keep(session, _results_basis(session, candidate), compared.after)
    return compared


def _results_before(session: Session) -> dict[str, Asked]:
    """The results before a change; empty without canaries or library.

    For a library that is damaged or of another encoder the stored results count, because a change must be able to
    replace it. Other errors, such as a busy model host, are raised: a change is not served without the canaries.
    """
    try:
        return baseline(session) if of_served(session) else {}
    except NoLibrary:
        return {}
    except (Damaged, WrongEncoder):
        return _stored_results(session.data).results


def look_at_models(session: Session, role: str, name: str) -> None:
    """Ask the canaries with ``name`` in ``role``; raise ``CanariesLost`` if it must not serve.

    A new encoder is checked when the library is converted to it (``reindex``).
    """
    if role == "encoder":
        return
    with suppress(NoLibrary), session.site.with_models({role: name}) as other:
        before = _results_before(session)
        compared = Comparison(before, _ask(session, other, None) if before else {}, accepted(session.data))
        if compared.lost:
            _block(session, compared)


def standing(session: Session) -> Comparison:
    """The results for the generation in use, asked again if anything that determines them has changed.

    A loss raises an alert and stays a loss until the canary passes or its loss is accepted.
    """
    with suppress(NoLibrary):
        basis, noted = _results_basis(session), _stored_results(session.data)
        after = noted.results if noted.basis == basis else _ask(session, session.site, None)
        compared = Comparison(noted.results, after, accepted(session.data))
        if compared.lost:
            alerts.tell(session.settings, "canaries", lost_message(compared.lost))
        else:
            alerts.clear(session.data, "canaries")
            _keep(session, basis, after)
        return compared
    return Comparison()


def before_serving(session: Session) -> Settings:
    """The settings to serve with: the session's, or the stored ones if the session's lose more canaries.

    Asks the canaries only if settings, models, prompts or version differ from those they passed with. Raise
    ``CanariesLost`` where models, prompts or version lose one, ``ModelError`` or ``Busy`` where they cannot be asked
    and no other settings are stored.
    """
    try:
        if _stored_results(session.data).answering in ("", _answering_digest(session)):
            return session.settings
        compared = standing(session)
    except (ModelError, Busy) as error:  # no response: settings that were not checked must not serve
        earlier = _stored_settings(session)
        if earlier is None:
            raise
        alerts.tell(session.settings, "settings", message("canary.unasked", reason=error.full_message))
        return earlier
    except LocalmedError:  # nothing whole is served: the pages say so
        return session.settings
    alerts.clear(session.data, "settings")
    if not compared.lost:
        return session.settings
    if earlier := _better_settings(session, compared):
        alerts.tell(
            session.settings, "settings", message("canary.settings", count=len(compared.lost), ids=compared.lost)
        )
        return earlier
    if _stored_results(session.data).made != _made_digest(session):
        raise CanariesLost("canary.start", count=len(compared.lost), ids=compared.lost)
    return session.settings  # caused by the library: a withdrawal, which stays in force


def _better_settings(session: Session, compared: Comparison) -> Settings | None:
    """The stored settings, if they lose fewer canaries."""
    earlier = _stored_settings(session)
    if earlier is None:
        return None
    with session.site.with_models({}, earlier) as other:
        after = _ask(session, other, None)
    return earlier if len(Comparison(compared.before, after, compared.accepted).lost) < len(compared.lost) else None


def _stored_settings(session: Session) -> Settings | None:
    """The stored settings; None if they are the current ones."""
    file = session.data / PASSED
    if not file.exists() or files.own_bytes(file) == _settings_file(session):
        return None
    own = {name: getattr(session.settings, name) for name in UNSETTLED}
    return dataclasses.replace(load(session.data, file=file), **own)


def _settings_file(session: Session) -> bytes:
    file = file_of(session.data)
    return files.contents(file) if file.exists() else b""


def baseline(session: Session) -> dict[str, Asked]:
    """The stored results for the generation in use, asked anew if they are outdated."""
    basis, noted = _results_basis(session), _stored_results(session.data)
    if noted.basis == basis:
        return noted.results
    after = _ask(session, session.site, None)
    _keep(session, basis, after)
    return after


def _ask(session: Session, site: Site, candidate: Path | None) -> dict[str, Asked]:
    """The results for the generation in use, or for ``candidate``, with the models of ``site``."""
    hidden = stops.stopped(session.data, stops.COLLECTION)
    opened = site.candidate(candidate, hidden) if candidate else site.workspace(hidden)
    with opened as workspace:

        def answer(canary: Canary) -> Answer:
            """Only sections where a document must be found: a small model needs minutes for a question on few cores."""
            return session.try_question(canary.question, workspace, written=canary.must == ABSTAIN)

        return ask_all(of_served(session, candidate), answer)


def of_served(session: Session, candidate: Path | None = None) -> Sequence[Canary]:
    """The canaries that apply to the generation in use, and to ``candidate``.

    A candidate that has lost a collection is asked its canaries too; those of new collections have nothing to lose yet.
    """
    collections: set[str] = set()
    with generations.lease(session.data) as served:
        for path in (served, *([candidate] if candidate else [])):
            try:
                with closing(Catalogue(path / CATALOGUE)) as catalogue:
                    collections |= {collection.name for collection in catalogue.collections()}
            except sqlite3.DatabaseError as error:
                if path == (candidate or path):  # the served one may be damaged: a rollback must still work
                    raise translate_error(path / CATALOGUE, error) from error
    return canaries(session.data, collections)


def _results_basis(session: Session, candidate: Path | None = None) -> str:
    """Digest of generation, withdrawals, access, stops, canaries, day, settings, models and prompts."""
    manifest = generations.read_manifest(candidate) if candidate else generations.served_manifest(session.data)
    questions = repr(of_served(session, candidate))
    facts = in_force(session.data).facts() | {"accounts": ""}  # who may sign in changes no answer
    outside = json.dumps(facts, sort_keys=True), questions
    return digest(str(manifest.number), manifest.created, session.day(), _answering_digest(session), *outside)


def _answering_digest(session: Session) -> str:
    """Digest of settings that change answers, models, prompts and version."""
    settings = {
        item.name: getattr(session.settings, item.name)
        for item in dataclasses.fields(session.settings)
        if item.name not in UNSETTLED
    }
    return digest(repr(settings), _made_digest(session))


def _made_digest(session: Session) -> str:
    """Digest of models, prompts and version."""
    with session.site.workspace() as workspace:
        return digest(repr(dataclasses.replace(workspace.provenance(), generation="", day="")))


@dataclass(frozen=True, slots=True)
class Noted:
    """The stored results with the digests ``_results_basis``, ``_answering_digest`` and ``_made_digest``."""

    basis: str = ""
    answering: str = ""
    made: str = ""
    results: dict[str, Asked] = field(default_factory=dict)


def _stored_results(data: Path) -> Noted:
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        values = json.loads(files.own_bytes(data / KEPT))
        return Noted(**{**values, "results": _results(values["results"])})
    return Noted()


def _results(values: Mapping[str, Any]) -> dict[str, Asked]:
    return {name: Asked(**{**row, "cited": tuple(row["cited"])}) for name, row in values.items()}


def _keep(session: Session, basis: str, results: dict[str, Asked]) -> None:
    """Store the results and the settings, unless a loss is not accepted."""
    if Comparison(_stored_results(session.data).results, results, accepted(session.data)).lost:
        return
    files.replace(session.data / PASSED, _settings_file(session))
    values = asdict(Noted(basis, _answering_digest(session), _made_digest(session), results))
    files.replace(session.data / KEPT, json.dumps(values).encode())


def last(data: Path) -> Comparison:
    """The comparison of the last change that asked the canaries, served or blocked."""
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        values = json.loads(files.own_bytes(data / LAST))
        return Comparison(_results(values["before"]), _results(values["after"]), frozenset(values["accepted"]))
    return Comparison()


def _block(session: Session, compared: Comparison) -> None:
    alerts.tell(session.settings, "canaries", lost_message(compared.lost))
    raise CanariesLost("canary.lost", count=len(compared.lost), ids=compared.lost)


# --- accepting a loss -------------------------------------------------------------------------------------------------


def accepted(data: Path) -> frozenset[str]:
    """The canaries whose loss is accepted."""
    return frozenset(row[0] for row in selected(data, "SELECT canary FROM accepted"))


def accept(session: Session, names: Sequence[str], reason: str) -> None:
    """Accept the loss of the canaries ``names`` for ``reason``; audited."""
    why = stops.require_reason(reason)
    known = {canary.id for canary in of_served(session)}
    if unknown := [name for name in names if name not in known]:
        raise UnknownName("canary.unknown", name=unknown[0])
    with session.change("canary accept", " ".join(names)) as change, rows(session.data) as state:
        for name in names:
            values = (name, why, session.caller.user, now())
            state.execute("INSERT OR REPLACE INTO accepted VALUES (?, ?, ?, ?)", values)
        change.outcome = "accepted"


def watch_again(session: Session, names: Sequence[str]) -> None:
    """Undo ``accept``."""
    with session.change("canary watch", " ".join(names)), rows(session.data) as state:
        for name in names:
            state.execute("DELETE FROM accepted WHERE canary = ?", (name,))
