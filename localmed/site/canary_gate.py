"""The gate before a change is served: the canaries are asked of it, and a loss keeps it back (``CanariesLost``).

What was answered on what is served is kept (``<data>/canaries.json``) with what it was answered by: generation, models,
prompts, settings, withdrawals and day. It is asked again only where one of these has changed. What a candidate changed
goes on the hold list when it is kept back, so that the next night leaves it alone (``holds.py``).

The settings under which the canaries passed are kept too (``PASSED``): settings that lose one do not begin to serve,
those go on (``before_serving``). Of another version or another model there is nothing older to serve by, so that the
service does not begin; the installer asks before it switches.

The program's own canaries are about the starter corpus (``canaries.toml`` beside this file) and hold where that is
imported; a site's own stand in ``<data>/canaries.toml``. Each says what the library must go on showing first, or what a
model may write no answer to. One is *lost* by a change if it passed on what is served and fails on what would be. A
question that fails already is no reason to keep a change back; it is told.
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
    UsageError,
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
    """A question and what must become of it. ``documents`` are file names or titles.

    One of them must be among the first sections, or be cited, with the words that it ``says``.
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
        """What it watches, as codes of ``canary.kind``."""
        language = ("zh",) if detect(self.question) == "zh" else ()
        return (self.must, *(("dosing",) if self.dosing else ()), *language)


@dataclass(frozen=True, slots=True)
class Asked:
    """How a canary ended.

    Whether it ``passed``, how the answer ended, and the files of the first section and of what was cited.
    """

    id: str
    passed: bool
    status: str
    cited: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Comparison:
    """The canaries before and after a change; ``accepted`` are those of which somebody has accepted the loss."""

    before: dict[str, Asked] = field(default_factory=dict)
    after: dict[str, Asked] = field(default_factory=dict)
    accepted: Collection[str] = ()

    @property
    def lost(self) -> tuple[str, ...]:
        """Those that passed, fail now, and keep the change from being served."""
        passed = {name for name, result in self.before.items() if result.passed}
        return tuple(name for name in self.failing if name not in self.accepted and name in passed)

    @property
    def failing(self) -> tuple[str, ...]:
        """Those that fail now, whatever they did before."""
        return tuple(name for name, result in self.after.items() if not result.passed)

    @property
    def moved(self) -> tuple[str, ...]:
        """Those that ended otherwise than before, or cite something else."""
        return tuple(name for name, result in self.after.items() if self.before.get(name, result) != result)


def canaries(data: Path, collections: Collection[str]) -> tuple[Canary, ...]:
    """The canaries of a library with these ``collections``; raise ``BadSettings`` for a file that cannot be taken."""
    own = read(package_files(__package__).joinpath(FILE).read_bytes(), FILE)
    site = read(contents(data / FILE), str(data / FILE)) if (data / FILE).exists() else ()
    if len(site) > MOST:
        raise BadSettings("canary.many", file=str(data / FILE), most=MOST)
    known = {canary.id: canary for canary in (*own, *site)}  # a site may give one of ours another form
    return tuple(canary for canary in known.values() if not canary.collection or canary.collection in collections)


def read(content: bytes, file: str) -> tuple[Canary, ...]:
    """The canaries of a file; raise ``BadSettings``."""
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


def judged(canary: Canary, answer: Answer) -> Asked:
    """How ``answer`` stands to what its canary asks."""
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
    words = _even(" ".join((*quotes, *(statement.text for statement in claimed))))
    passed = not named.isdisjoint(canary.documents) and all(_even(part) in words for part in canary.says)
    first = dict.fromkeys(section.best for section in found[:1])
    return Asked(canary.id, passed, answer.status.value, _files(known, first | cited))


def _files(known: Mapping[str, Evidence], markers: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(known[marker].source.rstrip("/").rpartition("/")[2] for marker in markers))


def ask_all(chosen: Sequence[Canary], answer: Callable[[Canary], Answer]) -> dict[str, Asked]:
    """Ask ``chosen`` of ``answer``; one at which the workflow fails has failed, with the error's name as its status.

    Whoever this thread works for is told which one is asked.
    """
    results, caller = {}, hooks.active()
    with hooks.following(caller.cancel_only()):  # what answers counts a progress of its own
        for number, canary in enumerate(chosen):
            hooks.check()
            caller.progress(number, len(chosen), canary.id)
            try:
                results[canary.id] = judged(canary, answer(canary))
            except InputError as error:
                results[canary.id] = Asked(canary.id, False, type(error).__name__)
    return results


def lost_message(names_lost: Sequence[str]) -> Message:
    """What is told of a change that was kept back."""
    return message("canary.lost.what", count=len(names_lost), ids=tuple(names_lost))


def _even(words: str) -> str:
    """Without what differs between prints of the same words: case and blanks."""
    return re.sub(r"\s+", "", words.casefold())


KEPT = layout.CANARY_RESULTS
PASSED = layout.SETTINGS_PASSED  # the settings under which they passed
LAST = layout.CANARY_LAST
ROUNDS = 3  # a withdrawal while they are asked changes what is served too: both are asked again
BUILDING = "building"  # the folder of a generation that was not served yet
LONGEST_REASON = 500  # characters
UNSETTLED = {"data", "reader", "host", "web", "refresh", "backup", "alerts", "ingest", "library"}  # change no answer


def look(session: Session, candidate: Path) -> Comparison:
    """Compare ``candidate`` with what is served; raise ``CanariesLost`` where it must not be served."""
    with suppress(NoLibrary, Damaged, sqlite3.Error), generations.lease(session.data) as served:
        if only_empty_collections(served, candidate):  # it answers as what is served
            return Comparison()
    before = _before(session)
    if not before:
        return Comparison()
    compared = _compared(session, before, candidate)
    last_values = asdict(compared) | {"accepted": sorted(compared.accepted)}
    files.replace(session.data / LAST, json.dumps(last_values).encode())
    if compared.lost:
        if candidate.name == BUILDING:
            with generations.lease(session.data) as served:
                changed = differences(served, candidate)
            holds.hold(session.data, changed, lost_message(compared.lost), session.caller.user)
        _kept_back(session, compared)
    if not Comparison(_noted(session.data).results, compared.after, compared.accepted).lost:
        alerts.clear(session.data, "canaries")  # what was kept back before is over
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
        return _noted(session.data).results


def look_at_models(session: Session, role: str, name: str) -> None:
    """Ask the canaries with ``name`` in ``role``; raise ``CanariesLost`` if it must not serve.

    Another encoder is looked at when the library is brought to it (``reindex``).
    """
    if role == "encoder":
        return
    with suppress(NoLibrary), session.site.with_models({role: name}) as other:
        before = _before(session)
        compared = Comparison(before, _ask(session, other, None) if before else {}, accepted(session.data))
        if compared.lost:
            _kept_back(session, compared)


def standing(session: Session) -> Comparison:
    """What is served now, asked again if settings, models, prompts or the generation are others than when it passed.

    A loss is told by the banner; what was lost stays so until it passes or somebody accepts it.
    """
    with suppress(NoLibrary):
        basis, noted = _basis(session), _noted(session.data)
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
    """The settings to serve by: the session's, or those under which the canaries passed where these lose one.

    They are asked only where settings, models, prompts or version are others than then. Raise ``CanariesLost`` where
    models, prompts or version lose one, and what kept them from being asked where there are no settings of before.
    """
    try:
        if _noted(session.data).answering in ("", _answering(session)):
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
    if _noted(session.data).made != _made(session):
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
    basis, noted = _basis(session), _noted(session.data)
    if noted.basis == basis:
        return noted.results
    after = _ask(session, session.site, None)
    _keep(session, basis, after)
    return after


def _compared(session: Session, before: dict[str, Asked], candidate: Path) -> Comparison:
    for _ in range(ROUNDS):
        known = in_force(session.data)
        after = _ask(session, session.site, candidate)
        if in_force(session.data) is known:
            break
        before = baseline(session)
    return Comparison(before, after, accepted(session.data))


def _ask(session: Session, site: Site, candidate: Path | None) -> dict[str, Asked]:
    """The canaries of what is served, or of ``candidate``, by the models of ``site``."""
    hidden = stops.stopped(session.data, stops.COLLECTION)
    opened = site.candidate(candidate, hidden) if candidate else site.workspace(hidden)
    with opened as workspace:

        def answer(canary: Canary) -> Answer:
            """Of what must be found the sections, since a small model needs minutes a question on few cores."""
            return session.tried(canary.question, workspace, written=canary.must == ABSTAIN)

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
                    raise translate_error(path / CATALOGUE, error) from error
    return canaries(session.data, collections)


def _basis(session: Session, candidate: Path | None = None) -> str:
    """What answers: generation, withdrawals, access, stops, canaries, day, settings, models, prompts, as a digest."""
    manifest = generations.read_manifest(candidate) if candidate else generations.served_manifest(session.data)
    questions = repr(of_served(session, candidate))
    facts = in_force(session.data).facts() | {"accounts": ""}  # who may sign in changes no answer
    outside = json.dumps(facts, sort_keys=True), questions
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


@dataclass(frozen=True, slots=True)
class Noted:
    """The results that were kept, and digests of what answered (``_basis``, ``_answering``, ``_made``)."""

    basis: str = ""
    answering: str = ""
    made: str = ""
    results: dict[str, Asked] = field(default_factory=dict)


def _noted(data: Path) -> Noted:
    """What was kept; nothing where it cannot be read."""
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        values = json.loads(files.own_bytes(data / KEPT))
        return Noted(**{**values, "results": _results(values["results"])})
    return Noted()


def _results(values: Mapping[str, Any]) -> dict[str, Asked]:
    return {name: Asked(**{**row, "cited": tuple(row["cited"])}) for name, row in values.items()}


def _keep(session: Session, basis: str, results: dict[str, Asked]) -> None:
    """Keep the results with what they were answered by, and the settings; a loss that nobody accepted is no result."""
    if Comparison(_noted(session.data).results, results, accepted(session.data)).lost:
        return
    files.replace(session.data / PASSED, _settings_file(session))
    values = asdict(Noted(basis, _answering(session), _made(session), results))
    files.replace(session.data / KEPT, json.dumps(values).encode())


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
        for name in names:
            values = (name, reason.strip(), session.caller.user, now())
            state.execute("INSERT OR REPLACE INTO accepted VALUES (?, ?, ?, ?)", values)
        change.outcome = "accepted"


def watch_again(session: Session, names: Sequence[str]) -> None:
    """Take an acceptance back."""
    with session.change("canary watch", " ".join(names)), rows(session.data) as state:
        for name in names:
            state.execute("DELETE FROM accepted WHERE canary = ?", (name,))
