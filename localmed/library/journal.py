"""The journal in ``site.sqlite``: who did what, one row an action, and what is in force by it.

Rows are only appended. Each carries the digest of the entry before, and a ``mac``: an HMAC-SHA256 (RFC 2104) over its
number, its digest and the mac before, which only the key can make. A row altered, removed or moved breaks both chains.
The digest is over a random salt too: once an entry was erased, nobody can guess what it said from what is left of it.
The key is ``$LOCALMED_AUDIT_KEY`` (a file that the server's account may only read), else ``<data>/audit.key``. Not
covered: who has the key as well, and rows cut off behind the last ``Head`` that somebody took off the machine.

A row with ``facts`` changes what is in force: withdrawals, access, stops, the accounts' digest. Its facts name the row
with facts before it, so what is in force is read from these few rows alone. A checkpoint holds all that is in force;
nothing before the newest one is needed. No row holds a question, an answer or a patient's record.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from localmed.domain import Message, digest, message
from localmed.domain.errors import Damaged, InputError
from localmed.library import layout
from localmed.process import files

TABLE = """
CREATE TABLE journal (id INTEGER PRIMARY KEY, entry TEXT NOT NULL, digest TEXT NOT NULL, mac TEXT NOT NULL DEFAULT '');
CREATE INDEX journal_facts ON journal (id) WHERE instr(entry, '"facts": {') > 0;
"""
WITH_FACTS = "instr(entry, '\"facts\": {') > 0"  # as the index has it; a quote within a text stands escaped
WITH_ANOTHER_KEY = "with another key"  # outcome of the checkpoint from which on another key is in use
ERASED = ("audit erase", "entries")  # action and subject of the entry that names erased rows
KEY, ENVIRONMENT = layout.AUDIT_KEY, "LOCALMED_AUDIT_KEY"
KEY_BYTES = 32
SALT_BYTES = 16
PREFIX = "localmed-audit-head"  # what the line of a head begins with


def now() -> str:
    """This moment (ISO, UTC, seconds)."""
    return datetime.now(UTC).isoformat(timespec="seconds")


# --- entries ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """Who did what to which thing, and how it ended.

    ``subject`` is an id, a count or a name of ours; ``previous`` is the digest of the entry before. ``intent`` is the
    digest of the entry of which this one tells the outcome. ``entered`` is when it was entered, if later than ``time``.
    ``erased`` ones have lost actor, subject and salt, and so have not the digest that they had. ``facts`` is what it
    puts in force (see ``InForce``).
    """

    time: str
    actor: str
    action: str
    subject: str
    outcome: str
    generation: str = ""
    models: tuple[tuple[str, str], ...] = ()
    prompts: tuple[tuple[str, str], ...] = ()
    previous: str = ""
    intent: str = ""
    entered: str = ""
    salt: str = ""
    erased: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)

    def digest(self) -> str:
        """The digest that the next entry carries as ``previous``."""
        pairs = [f"model {name}={value}" for name, value in self.models]
        pairs += [f"prompt {name}={value}" for name, value in self.prompts]
        pairs += [f"intent {self.intent}"] if self.intent else []  # entries of before had none
        pairs += [f"entered {self.entered}"] if self.entered else []
        pairs += [f"salt {self.salt}"] if self.salt else []
        pairs += [f"facts {_canonical(self.facts)}"] if self.facts else []
        facts = (self.time, self.actor, self.action, self.subject, self.outcome, self.generation)
        return digest(*facts, *pairs, self.previous)

    def text(self) -> str:
        """The entry as its row holds it."""
        values = asdict(self)
        if not self.facts:
            del values["facts"]
        return json.dumps(values, ensure_ascii=False)


def entry_from(text: str) -> Entry:
    """The entry of a row; raise ``ValueError`` and the like for what is none."""
    values = json.loads(text)
    for name in ("models", "prompts"):
        values[name] = tuple((key, value) for key, value in values[name])
    return Entry(**values)


NO_ENTRY = (ValueError, TypeError, AttributeError, LookupError)  # what ``entry_from`` raises


def _canonical(values: object) -> str:
    return json.dumps(values, sort_keys=True, ensure_ascii=False)


# --- key and head -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Head:
    """The newest row of a journal at some time: its number, the digest of its entry, its mac."""

    number: int
    digest: str
    mac: str

    def __str__(self) -> str:
        """The line that is taken off the machine."""
        return f"{PREFIX} {self.number} {self.digest} {self.mac}"


START = Head(0, "", "")  # what stands before the first entry


def head_of(line: str) -> Head:
    """The head that ``line`` states; raise ``InputError`` for anything else."""
    fields = line.split()
    if len(fields) != 4 or fields[0] != PREFIX or not fields[1].isdecimal():
        raise InputError("audit.no_head")
    return Head(int(fields[1]), fields[2], fields[3])


def key(data: Path) -> bytes | None:
    """The key; None where it is missing or too short."""
    with suppress(OSError):
        content = files.own_bytes(place(data))
        return content if len(content) >= KEY_BYTES else None
    return None


def make_key(data: Path) -> bytes | None:
    """A new key, where there is none; of two processes at once one makes it. None where it cannot be written."""
    with suppress(OSError):
        handle = os.open(place(data), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as stream:
            stream.write(secrets.token_bytes(KEY_BYTES))
            stream.flush()
            os.fsync(stream.fileno())
    return key(data)


def place(data: Path) -> Path:
    """Where the key is."""
    named = os.environ.get(ENVIRONMENT, "")
    return Path(named) if named else data / KEY


def mac(chosen: bytes, number: int, digest: str, previous: str) -> str:
    """The mac of row ``number``, whose entry has ``digest``, after a row with the mac ``previous``."""
    return hmac.new(chosen, f"{number} {digest} {previous}".encode(), hashlib.sha256).hexdigest()


def append(state: sqlite3.Connection, data: Path, entry: Entry) -> tuple[int, Entry]:
    """Add ``entry`` within the caller's transaction; return its number and the entry as it stands in the chain.

    The key is made where no row was written with one; a lost key is not made up for by another.
    """
    query = "SELECT id, digest, mac FROM journal ORDER BY id DESC LIMIT 1"
    number, before, mac_before = state.execute(query).fetchone() or (0, "", "")
    entry = replace(entry, previous=before, salt=secrets.token_hex(SALT_BYTES))
    keyed = state.execute("SELECT 1 FROM journal WHERE mac <> '' LIMIT 1").fetchone() is not None
    chosen = key(data) or (None if keyed else make_key(data))
    if keyed and not chosen and entry.facts:
        raise Damaged("state.no_key", path=str(place(data)))  # with the key back, it would look like somebody else's
    made = mac(chosen, number + 1, entry.digest(), mac_before) if chosen else ""
    values = (number + 1, entry.text(), entry.digest(), made)
    state.execute("INSERT INTO journal (id, entry, digest, mac) VALUES (?, ?, ?, ?)", values)
    return number + 1, entry


# --- what is in force -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """That a document is withdrawn or, to reverse it, not. ``sketch`` is that of its text, "" where it was not at hand.

    It is withdrawn by its id and by the digest of its content, so that neither a rollback nor the same text under
    another file name brings it back.
    """

    time: str
    document: str
    content: str
    title: str
    withdrawn: bool
    reason: str
    actor: str
    sketch: str = ""


@dataclass(frozen=True, slots=True)
class Stop:
    """What a safety officer has taken out of use (a workflow, model or collection), why, by whom and since when."""

    kind: str
    name: str
    reason: str
    user: str
    time: str


@dataclass(frozen=True, slots=True)
class InForce:
    """What is in force by the row ``number`` with ``digest``, the newest that has facts.

    ``withdrawals`` holds the newest of each document and content, oldest first: an id stays when its file is imported
    with another text. ``access`` has the groups of each restricted collection, ``rights`` what each account may do,
    ``accounts`` the digest of all accounts ("": not noted yet). ``generation`` was served at the checkpoint that it
    begins with.
    """

    number: int = 0
    digest: str = ""
    withdrawals: Mapping[tuple[str, str], Withdrawal] = field(default_factory=dict)
    access: Mapping[str, frozenset[str]] = field(default_factory=dict)
    stops: tuple[Stop, ...] = ()
    accounts: str = ""
    rights: Mapping[str, str] = field(default_factory=dict)
    generation: int = 0

    def newest(self) -> dict[str, Withdrawal]:
        """The newest withdrawal of each document, or what reversed it, by the document's id."""
        return {one.document: one for one in self.withdrawals.values()}

    def withdrawn(self) -> tuple[frozenset[str], frozenset[str]]:
        """The document ids and the content digests that are withdrawn now."""
        contents = {one.content: one.withdrawn for one in self.withdrawals.values()}
        ids = frozenset(one.document for one in self.newest().values() if one.withdrawn)
        return ids, frozenset(content for content, withdrawn in contents.items() if withdrawn and content)

    def withdrawal(self, document: str, content: str) -> Withdrawal | None:
        """How ``document``, or another with its ``content``, is withdrawn now; None where none is."""
        own = [one for one in self.withdrawals.values() if one.document == document][-1:]
        same = [one for one in self.withdrawals.values() if content and one.content == content][-1:]
        return next((one for one in (*own, *same) if one.withdrawn), None)

    def sketched(self) -> list[Withdrawal]:
        """What is withdrawn now and can be compared with other texts."""
        return [one for one in self.withdrawals.values() if one.withdrawn and one.sketch]

    def facts(self) -> dict[str, Any]:
        """The facts of a checkpoint that puts all of it in force."""
        return {
            "kind": "checkpoint",
            "withdrawals": [asdict(one) for one in self.withdrawals.values()],
            "access": {name: sorted(groups) for name, groups in self.access.items()},
            "stops": [asdict(one) for one in self.stops],
            "accounts": self.accounts,
            "rights": [{"user": user, "rights": rights} for user, rights in self.rights.items()],
            "generation": self.generation,
        }

    @classmethod
    def of(cls, facts: Mapping[str, Any], number: int = 0, digest: str = "") -> Self:
        """What a checkpoint puts in force; raise ``ValueError`` or ``TypeError`` for other facts."""
        if facts.get("kind") != "checkpoint":
            raise ValueError(facts.get("kind"))
        return cls(
            number,
            digest,
            {(one["document"], one["content"]): Withdrawal(**one) for one in facts["withdrawals"]},
            {name: frozenset(groups) for name, groups in facts["access"].items()},
            tuple(Stop(**one) for one in facts["stops"]),
            facts["accounts"],
            {one["user"]: one["rights"] for one in facts["rights"]},
            facts["generation"],
        )

    def after(self, number: int, entry: Entry, digest: str, owned: bool = False) -> InForce:
        """What is in force once the row ``number`` is there; raise ``ValueError`` and the like for facts unknown.

        ``owned``: nobody else holds this value, whose withdrawals may be changed where they stand.
        """
        facts = entry.facts
        if facts["kind"] == "checkpoint":
            return InForce.of(facts, number, digest)
        if facts["before"] != self.digest:
            raise ValueError(number)
        changed = replace(self, number=number, digest=digest)
        if facts["kind"] == "withdrawal":
            return replace(changed, withdrawals=_withdrawn(self.withdrawals, entry, owned))
        if facts["kind"] == "access":
            kept = {name: groups for name, groups in self.access.items() if name != facts["collection"]}
            groups = frozenset(facts["groups"])
            return replace(changed, access=kept | ({facts["collection"]: groups} if groups else {}))
        if facts["kind"] == "stop":
            others = [one for one in self.stops if (one.kind, one.name) != (facts["what"], facts["name"])]
            made = [Stop(facts["what"], facts["name"], facts["reason"], entry.actor, entry.time)]
            return replace(changed, stops=(*others, *(made if facts["stopped"] else ())))
        if facts["kind"] == "accounts":
            known = {facts["user"]: facts["rights"]} if facts["rights"] else {}
            return replace(changed, accounts=facts["sha256"], rights={**self.rights, **known})
        if facts["kind"] == "erasure":
            return changed
        raise ValueError(facts["kind"])


def _withdrawn(
    before: Mapping[tuple[str, str], Withdrawal], entry: Entry, owned: bool
) -> Mapping[tuple[str, str], Withdrawal]:
    names = ("document", "content", "title", "withdrawn", "reason", "sketch")
    made = Withdrawal(time=entry.time, actor=entry.actor, **{name: entry.facts[name] for name in names})
    if type(made.withdrawn) is not bool:
        raise TypeError
    after = before if owned and isinstance(before, dict) else {**before}
    after.pop((made.document, made.content), None)  # the newest stands last
    after[made.document, made.content] = made
    return after


Row = tuple[int, str, str, str]  # number, entry, digest, mac
FactRow = tuple[int, str, str, str, str]  # and the mac of the row before
NEWEST_FACTS = f"SELECT id, digest FROM journal WHERE {WITH_FACTS} ORDER BY id DESC LIMIT 1"  # noqa: S608
ROWS_WITH_FACTS = f"""
SELECT id, entry, digest, mac, coalesce((SELECT mac FROM journal p WHERE p.id = j.id - 1), '') FROM journal j
WHERE {WITH_FACTS} AND id >= FIRST ORDER BY id
"""  # noqa: S608  (names of ours)
_NEWEST_CHECKPOINT = (
    f"SELECT max(id) FROM journal WHERE {WITH_FACTS} AND "  # noqa: S608
    'instr(entry, \'"facts": {"kind": "checkpoint"\') > 0'
)
NEWEST_ROWS = """
SELECT id, entry, digest, mac, coalesce((SELECT mac FROM journal p WHERE p.id = j.id - 1), '') FROM journal j
ORDER BY id DESC LIMIT 100
"""
SINCE_CHECKPOINT = ROWS_WITH_FACTS.replace("FIRST", f"coalesce(({_NEWEST_CHECKPOINT}), 0)")


def replay(rows: Sequence[FactRow], chosen: bytes | None) -> InForce:
    """What is in force by ``rows`` (as ``SINCE_CHECKPOINT`` gives them, each with the mac before it).

    Raise ``ValueError`` with the number of the first row that is not as it was entered.
    """
    announced = {pair for number, text, *_ in rows for pair in _announced((number, text, "", ""))}
    state = InForce()
    for number, text, recorded, made, before in rows:
        try:
            entry = entry_from(text)
            erased = entry.erased and f"{number}:{digest(text)}" in announced
            if not (erased or entry.digest() == recorded) or not _genuine(chosen, number, recorded, made, before):
                raise ValueError
            state = state.after(number, entry, recorded, owned=True)
        except NO_ENTRY:
            raise ValueError(number) from None
    return state


def go_on(state: InForce, rows: Sequence[FactRow], chosen: bytes | None) -> InForce:
    """``state`` after those of ``rows`` that can be read and were entered by us, whatever lies between them."""
    for number, text, recorded, made, before in rows:
        entry = readable(text)
        if entry and entry.digest() == recorded and _genuine(chosen, number, recorded, made, before):
            with suppress(*NO_ENTRY):
                state = state.after(number, replace(entry, facts={**entry.facts, "before": state.digest}), recorded)
    return state


def _genuine(chosen: bytes | None, number: int, recorded: str, made: str, before: str) -> bool:
    """Whether the mac of a row is the key's; without a key, or before the first row with a mac, there is no telling."""
    if not chosen or not (made or before):
        return True
    return hmac.compare_digest(made, mac(chosen, number, recorded, before))


def another_key(facts: Sequence[FactRow], newest: Sequence[FactRow], chosen: bytes | None) -> bool:
    """Whether ``facts`` are as they were entered, and all macs of them and of the ``newest`` rows are another key's."""
    with suppress(ValueError):
        replay(facts, None)
        entered = [(number, recorded, made, before) for number, _, recorded, made, before in (*facts, *newest)]
        return all(row[3] for row in facts) and not any(row[2] and _genuine(chosen, *row) for row in entered)
    return False


def as_copy(state: InForce) -> bytes:
    """The copy of what is in force, which names its row."""
    values = {"number": state.number, "digest": state.digest, "facts": state.facts()}
    text = json.dumps(values, sort_keys=True)
    return f'{{"sum": "{digest(text)}", "in_force": {text}}}\n'.encode()


def from_copy(content: bytes) -> InForce | None:
    """What a copy says; None where it is not as it was written."""
    with suppress(*NO_ENTRY):
        outer = json.loads(content)
        values = outer["in_force"]
        if digest(json.dumps(values, sort_keys=True)) == outer["sum"]:
            return InForce.of(values["facts"], values["number"], values["digest"])
    return None


HALF = 32  # hexadecimal digits: 128 bits of a digest
ACCOUNTS = "SELECT user, role, groups, source, subject, disabled, password FROM accounts ORDER BY user"


def accounts_digest(rows: Sequence[Sequence[object]]) -> str:
    """The digest of all accounts (rows of ``ACCOUNTS``): half of it is of rights, half of passwords ("" of none)."""
    return _half([row[:-1] for row in rows]) + _half([(row[0], row[-1]) for row in rows]) if rows else ""


def _half(rows: Sequence[Sequence[object]]) -> str:
    return hashlib.sha256(json.dumps(rows, ensure_ascii=False).encode()).hexdigest()[:HALF]


# --- faults -----------------------------------------------------------------------------------------------------------


def chained(rows: Sequence[Row], after: Head = START) -> Iterator[Message]:
    """Entries that are not as their digests say, and rows that do not follow each other, ``after`` first."""
    announced = {pair for row in rows for pair in _announced(row)}
    previous = after.digest
    for number, text, recorded, _ in rows:
        entry = readable(text)
        if entry is None or (not entry.erased and entry.digest() != recorded):
            yield message("doctor.audit_altered", number=number)
        elif entry.erased and f"{number}:{digest(text)}" not in announced:
            yield message("doctor.audit_erased", number=number)
        if entry is not None and entry.previous != previous:
            yield message("doctor.audit_before", number=number)
        previous = recorded


def keyed(rows: Sequence[Row], chosen: bytes | None, after: Head = START) -> Iterator[Message]:
    """Rows whose mac only somebody without the key can have made, and rows without one after the first that has."""
    places = [place for place, row in enumerate(rows) if _with_another_key(row)]
    if places:  # what came before it was entered with the key that was in use then
        for number, _, recorded, made in rows[max(0, places[-1] - 1) : places[-1]]:
            after = Head(number, recorded, made)
        rows = rows[places[-1] :]
    begun, previous = bool(after.mac), after.mac
    if chosen is None and any(row[3] for row in rows):
        yield message("doctor.audit_no_key")
        return
    for number, _, recorded, made in rows:
        begun = begun or bool(made)
        if chosen and begun and not hmac.compare_digest(made, mac(chosen, number, recorded, previous)):
            yield message("doctor.audit_forged", number=number)
        previous = made
    if chosen and rows and not begun:
        yield message("doctor.audit_forged", number=rows[-1][0])


def _with_another_key(row: Row) -> bool:
    entry = readable(row[1]) if WITH_ANOTHER_KEY in row[1] else None
    return entry is not None and entry.outcome == WITH_ANOTHER_KEY


def beyond(rows: Sequence[Row], head: Head) -> Iterator[Message]:
    """Whether the row of ``head`` is there as it was."""
    if (head.number, head.digest, head.mac) not in {(number, recorded, made) for number, _, recorded, made in rows}:
        yield message("doctor.audit_head", number=head.number)


def readable(text: str) -> Entry | None:
    """The entry of a row; None for what is none."""
    with suppress(*NO_ENTRY):
        return entry_from(text)
    return None


def _announced(row: Row) -> Sequence[str]:
    """The rows that an entry of an erasure names, each with the digest of what was left of it."""
    entry = readable(row[1])
    return entry.outcome.split() if entry and (entry.action, entry.subject) == ERASED else ()
