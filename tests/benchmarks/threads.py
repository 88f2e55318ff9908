"""Many threads at one site ask, search and look up for two groups of readers while the library changes below them.

Every document of a collection is imported again and again with the same new stamp in all of them, and rolled back; some
are withdrawn and reinstated, two collections are closed to one group and opened again. Each publication prunes, while
another thread reads every byte of all generations. Wrong is: any error; damage that is told of any of them; a document
in an answer that was withdrawn, or whose collection was closed to that reader, from before the question was asked until
after it was answered; an answer that rests on documents of different stamps, so of different generations. Not wrong is
a question that is refused because what its answer rests on was withdrawn in each of its runs: it is counted.

    python -m tests.benchmarks.run --only threads            five minutes
"""

from __future__ import annotations

import random
import re
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from localmed.config import LibrarySettings, Settings
from localmed.domain import Collection, Kind, Passage, SearchFilter
from localmed.domain.accounts import SessionRole
from localmed.domain.errors import Busy, UnknownName
from localmed.domain.ports import Embedder
from localmed.ingest.manifest import Manifest
from localmed.site import changes, importing, lookups
from localmed.site.session import Caller, Session
from localmed.site.site import Site
from localmed.upkeep import check
from tests.benchmarks.common import Place, Row, met
from tests.fakes import HashedWords, write

THREADS = 16
SECONDS = 300
MEDICINES = ("amoxicillin", "heparin", "insulin", "metformin", "morphine", "warfarin")
OPEN, CLOSED, TERMS = "ward", "pharmacy", "terms"  # the latter two are closed to nurses now and then
STAMP = re.compile(r"Stamp (\d+)")
TERM = '[Term]\nid: MED:{number}\nname: {name}\ndef: "A medicine. Stamp {stamp}." []\n'
LIBRARIAN = Caller("librarian", None, SessionRole.LIBRARIAN)
READERS = tuple(Caller(name, frozenset({name}), SessionRole.READER) for name in ("doctors", "nurses"))


@dataclass
class Log:
    """What was done, what went wrong, and what is forbidden now: (who, what) -> since which change."""

    done: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    forbidden: dict[tuple[str, str], int] = field(default_factory=dict)
    changes: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def forbid(self, *kept: tuple[str, str]) -> None:
        """The change that forbids has returned."""
        with self.lock:
            self.changes += 1
            self.forbidden |= dict.fromkeys(kept, self.changes)

    def allow(self, *kept: tuple[str, str]) -> None:
        """The change that allows again is about to be made."""
        with self.lock:
            for identity in kept:
                self.forbidden.pop(identity, None)

    def now(self) -> dict[tuple[str, str], int]:
        """What is forbidden, for the comparison of before with after."""
        with self.lock:
            return dict(self.forbidden)


def run(_: Place) -> list[Row]:
    """Five minutes of it, with the encoder that needs no model: what is measured is the library below it."""
    with tempfile.TemporaryDirectory() as folder:
        log = hammer(Path(folder), SECONDS)
    counts = ", ".join(f"{count} {name}" for name, count in sorted(log.done.items()))
    wrong = f"{len(log.wrong)} wrong"
    how = f"{THREADS} threads of two groups, {SECONDS} s: {counts}"
    return [Row("threads that ask, search and look up while the library changes", "0 wrong", wrong,
                met(not log.wrong), how)]  # fmt: skip


def hammer(folder: Path, seconds: float, encoder: Embedder | None = None, threads: int = THREADS) -> Log:
    """``threads`` readers against two librarians for ``seconds``; what was done and what went wrong."""
    settings = Settings(folder / "data", library=LibrarySettings(writer_memory_bytes=15_000_000))
    log, over = Log(), time.monotonic() + seconds
    with Site(settings, encoder or HashedWords()) as site:
        librarian = Session(site, LIBRARIAN)
        _import(librarian, folder, 1)
        steps = (_building(librarian, folder), _forbidding(librarian, log), _looking(librarian, log))
        work = [_Work(log, over, step) for step in steps]
        for number in range(threads):
            session = Session(site, READERS[number % len(READERS)])
            work.append(_Work(log, over, _reading(session, log, random.Random(number))))
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
    return log


class _Work(threading.Thread):
    """Does ``step`` again and again; an error is noted and ends it."""

    def __init__(self, log: Log, over: float, step: Callable[[], str]) -> None:
        super().__init__()
        self._log, self._over, self._step = log, over, step

    def run(self) -> None:
        while time.monotonic() < self._over:
            try:
                name = self._step()
            except Exception as error:
                with self._log.lock:
                    self._log.wrong.append(f"{type(error).__name__}: {error}")
                return
            with self._log.lock:
                self._log.done[name] += 1


# --- librarians ------------------------------------------------------------------------------------------------------


def _import(librarian: Session, folder: Path, stamp: int) -> None:
    for name in (OPEN, CLOSED):
        texts = {
            f"{medicine}.txt": f"{medicine.title()}\n\nThe dose of {medicine} in {name} is 5 mg a day. Stamp {stamp}.\n"
            for medicine in MEDICINES
        }
        importing.import_paths(librarian, [write(folder / name, texts)], Manifest(Collection(name, name.title())))
    terms = "\n".join(
        TERM.format(number=number, name=medicine, stamp=stamp) for number, medicine in enumerate(MEDICINES)
    )
    described = Manifest(Collection(TERMS, "Terms", kind=Kind.GRAPH))
    importing.import_paths(librarian, [write(folder / TERMS, {"terms.obo": terms})], described)


def _building(librarian: Session, folder: Path) -> Callable[[], str]:
    """New stamps, one collection at a time, and now and then a step back."""
    stamp = 1

    def step() -> str:
        nonlocal stamp
        stamp += 1
        if stamp % 4 == 0:
            changes.rollback(librarian, None)
            return "rollbacks"
        _import(librarian, folder, stamp)
        return "imports of three collections"

    return step


def _forbidding(librarian: Session, log: Log) -> Callable[[], str]:
    """Documents withdrawn and reinstated, collections closed to nurses and opened again."""
    drawn = random.Random(0)

    def step() -> str:
        time.sleep(drawn.uniform(0.05, 0.4))
        if drawn.random() < 0.5:
            return _withdrawn(librarian, log, drawn)
        name = drawn.choice((CLOSED, TERMS))
        changes.set_access(librarian, name, ["doctors"])
        log.forbid(("nurses", name))
        time.sleep(drawn.uniform(0.05, 0.4))
        log.allow(("nurses", name))
        changes.set_access(librarian, name, [])
        return "restrictions"

    return step


def _withdrawn(librarian: Session, log: Log, drawn: random.Random) -> str:
    document = drawn.choice([stored for stored in lookups.documents(librarian) if stored.passages])
    changes.withdraw(librarian, document, True, "test")
    log.forbid(*((reader.user, document.id) for reader in READERS))
    time.sleep(drawn.uniform(0.05, 0.4))
    log.allow(*((reader.user, document.id) for reader in READERS))
    changes.withdraw(librarian, document, False, "test")
    return "withdrawals"


def _looking(librarian: Session, log: Log) -> Callable[[], str]:
    """Every byte of every generation read while they come and go, and the list of them: damage is wrong."""

    def step() -> str:
        rows = lookups.generations_kept(librarian)
        faults = [fault for faults in check.all_generation_faults(librarian.data).values() for fault in faults]
        with log.lock:
            log.wrong += [f"damage: {fault.code}" for fault in faults]
            log.wrong += [] if sum(row.served for row in rows) <= 1 else ["two generations are served"]
        return "whole checks"

    return step


# --- readers ---------------------------------------------------------------------------------------------------------


def _reading(session: Session, log: Log, drawn: random.Random) -> Callable[[], str]:
    """A question, a search, a look-up or a list, and whether what came back may be shown."""
    user = session.caller.user

    def step() -> str:
        medicine, before = drawn.choice(MEDICINES), log.now()
        name, passages, rests_on = _question(session, medicine, drawn.random())
        stamps = {_stamp(passage.text) for passage in passages if passage.collection == OPEN}
        after = log.now()
        shown = [id_ for id_ in rests_on if after.get((user, id_), -1) == before.get((user, id_), -2)]
        with log.lock:
            log.wrong += [f"{name} by {user}: {id_[:12]} is withdrawn or closed" for id_ in shown]
            if len(stamps) > 1:
                log.wrong.append(f"{name} by {user}: torn between {sorted(stamps)}")
        return name

    return step


def _question(session: Session, medicine: str, share: float) -> tuple[str, list[Passage], set[str]]:
    """What was done, the passages that came back, and the documents and collections that they are of."""
    question = f"What is the dose of {medicine}?"
    if share < 0.4:
        try:
            passages = [evidence.passage for evidence in session.ask(question, SearchFilter()).evidence]
        except Busy as error:
            if error.message.code != "library.changing":
                raise
            return "refusals", [], set()
        return "answers" if passages else "questions", passages, _of(passages)
    if share < 0.7:
        passages = [hit.passage for hit in session.find(question, SearchFilter(), 20, 20).found.hits]
        return "searches", passages, _of(passages)
    if share < 0.9:
        try:
            card = session.concept(medicine)
        except UnknownName:
            return "look-ups", [], set()
        return "look-ups", [], {TERMS, *((card.concept.collection,) if card.concept else ())}
    documents = [document for document in lookups.documents(session) if document.status.value == "current"]
    return "lists", [], {document.id for document in documents} | {document.collection for document in documents}


def _of(passages: Iterable[Passage]) -> set[str]:
    return {name for passage in passages for name in (passage.document_id, passage.collection)}


def _stamp(text: str) -> str:
    match = STAMP.search(text)
    return match[1] if match else "none"
