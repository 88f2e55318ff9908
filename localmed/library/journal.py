"""The journal in ``site.sqlite``: who did what, one row an action, and the state in force that results from it.

Rows are only appended. Each has the digest of the entry before and a ``mac``: an HMAC-SHA256 (RFC 2104) over its
number, its digest and the previous mac, keyed by ``$LOCALMED_AUDIT_KEY`` (a file readable by the server's account
only), else by ``<data>/audit.key``. A row that is altered, removed or moved breaks both chains. The digest includes a
random salt, so an erased entry cannot be guessed from its digest. Not covered: an attacker who has the key, and rows
cut off after the last ``Head`` that was copied off the machine.

A row with ``facts`` changes the state in force: withdrawals, access, stops, the accounts' digest. Its facts name the
previous row with facts, so the state is read from these few rows alone. A checkpoint has the whole state; rows before
the newest checkpoint are not needed. No row has a question, an answer or a patient's record.
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
WITH_FACTS = "instr(entry, '\"facts\": {') > 0"  # the index's condition; quotes within a text are escaped
WITH_ANOTHER_KEY = "with another key"  # outcome of the first checkpoint with a new key
ERASED = ("audit erase", "entries")  # action and subject of the entry that names erased rows
KEY, ENVIRONMENT = layout.AUDIT_KEY, "LOCALMED_AUDIT_KEY"
KEY_BYTES = 32
SALT_BYTES = 16
PREFIX = "localmed-audit-head"  # start of a head's line


def now() -> str:
    """Return the current time (ISO, UTC, seconds)."""
    return datetime.now(UTC).isoformat(timespec="seconds")


# --- entries ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """Who did what to which thing, and the outcome.

    ``subject`` is an id, a count or one of our names. ``previous`` is the digest of the entry before, ``intent`` that
    of the entry whose outcome this one reports. ``entered`` is the time of entry if later than ``time``. An ``erased``
    entry has lost actor, subject and salt, and no longer matches its digest. ``facts`` is its change of the state in
    force (see ``InForce.after``).
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
        """Return the digest that the next entry has as ``previous``."""
        pairs = [f"model {name}={value}" for name, value in self.models]
        pairs += [f"prompt {name}={value}" for name, value in self.prompts]
        pairs += [f"intent {self.intent}"] if self.intent else []  # absent from older entries
        pairs += [f"entered {self.entered}"] if self.entered else []
        pairs += [f"salt {self.salt}"] if self.salt else []
        facts_text = json.dumps(self.facts, sort_keys=True, ensure_ascii=False)
        pairs += [f"facts {facts_text}"] if self.facts else []
        facts = (self.time, self.actor, self.action, self.subject, self.outcome, self.generation)
        return digest(*facts, *pairs, self.previous)

    def text(self) -> str:
        """Return the entry as its row stores it."""
        values = asdict(self)
        if not self.facts:
            del values["facts"]
        return json.dumps(values, ensure_ascii=False)


def entry_from(text: str) -> Entry:
    """Return the entry of a row; raise one of ``MALFORMED`` for malformed text."""
    values = json.loads(text)
    for name in ("models", "prompts"):
        values[name] = tuple((key, value) for key, value in values[name])
    return Entry(**values)


MALFORMED = (ValueError, TypeError, AttributeError, LookupError)  # what ``entry_from`` raises


# --- key and head -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Head:
    """The newest row of a journal at some time: its number, the digest of its entry, its mac."""

    number: int
    digest: str
    mac: str

    def __str__(self) -> str:
        """The line to be kept off the machine."""
        return f"{PREFIX} {self.number} {self.digest} {self.mac}"


START = Head(0, "", "")  # before the first entry


def head_of(line: str) -> Head:
    """Return the head in ``line``; raise ``InputError`` for anything else."""
    fields = line.split()
    if len(fields) != 4 or fields[0] != PREFIX or not fields[1].isdecimal():
        raise InputError("audit.no_head")
    return Head(int(fields[1]), fields[2], fields[3])


def key(data: Path) -> bytes | None:
    """Return the key, ``None`` if it is missing or too short."""
    with suppress(OSError):
        content = files.own_bytes(place(data))
        return content if len(content) >= KEY_BYTES else None
    return None


def make_key(data: Path) -> bytes | None:
    """Create a key if there is none and return it; ``None`` if it cannot be written. Safe for two processes at once."""
    with suppress(OSError):
        handle = os.open(place(data), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as stream:
            stream.write(secrets.token_bytes(KEY_BYTES))
            stream.flush()
            os.fsync(stream.fileno())
    return key(data)


def place(data: Path) -> Path:
    """Return the path of the key."""
    named = os.environ.get(ENVIRONMENT, "")
    return Path(named) if named else data / KEY


def mac(chosen: bytes, number: int, digest: str, previous: str) -> str:
    """Return the mac of row ``number``, whose entry has ``digest``, after a row with the mac ``previous``."""
    return hmac.new(chosen, f"{number} {digest} {previous}".encode(), hashlib.sha256).hexdigest()


def append(state: sqlite3.Connection, data: Path, entry: Entry) -> tuple[int, Entry]:
    """Add ``entry`` within the caller's transaction; return its number and the entry as stored.

    A key is created only for a journal without macs: a lost key is not replaced.
    """
    query = "SELECT id, digest, mac FROM journal ORDER BY id DESC LIMIT 1"
    number, before, mac_before = state.execute(query).fetchone() or (0, "", "")
    entry = replace(entry, previous=before, salt=secrets.token_hex(SALT_BYTES))
    keyed = state.execute("SELECT 1 FROM journal WHERE mac <> '' LIMIT 1").fetchone() is not None
    chosen = key(data) or (None if keyed else make_key(data))
    if keyed and not chosen and entry.facts:
        raise Damaged("state.no_key", path=str(place(data)))  # once the key is back, the row would look forged
    made = mac(chosen, number + 1, entry.digest(), mac_before) if chosen else ""
    values = (number + 1, entry.text(), entry.digest(), made)
    state.execute("INSERT INTO journal (id, entry, digest, mac) VALUES (?, ?, ?, ?)", values)
    return number + 1, entry


# --- the state in force -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A document's withdrawal or its reversal. ``sketch`` is that of the document's text, "" if it was not available.

    It covers the document's id and its content digest, so neither a rollback nor the same text under another file name
    restores the document.
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
    """A workflow, model or collection that a safety officer has taken out of use."""

    kind: str
    name: str
    reason: str
    user: str
    time: str


@dataclass(frozen=True, slots=True)
class InForce:
    """The state in force after row ``number`` with ``digest``, the newest that has facts.

    ``withdrawals`` has the newest one of each document and content, oldest first: an id stays when its file is imported
    with another text. ``access`` has the groups of each restricted collection, ``rights`` the rights of each account,
    ``accounts`` the digest of all accounts ("": not recorded yet). ``generation`` was served at the latest checkpoint.
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
        """Return the newest withdrawal or reversal of each document, by the document's id."""
        return {one.document: one for one in self.withdrawals.values()}

    def withdrawn(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return the document ids and the content digests that are withdrawn now."""
        contents = {one.content: one.withdrawn for one in self.withdrawals.values()}
        ids = frozenset(one.document for one in self.newest().values() if one.withdrawn)
        return ids, frozenset(content for content, withdrawn in contents.items() if withdrawn and content)

    def withdrawal(self, document: str, content: str) -> Withdrawal | None:
        """Return the withdrawal that covers ``document`` or its ``content`` now; ``None`` if there is none."""
        own = [one for one in self.withdrawals.values() if one.document == document][-1:]
        same = [one for one in self.withdrawals.values() if content and one.content == content][-1:]
        return next((one for one in (*own, *same) if one.withdrawn), None)

    def sketched(self) -> list[Withdrawal]:
        """Return the withdrawals in force that have a sketch to compare with other texts."""
        return [one for one in self.withdrawals.values() if one.withdrawn and one.sketch]

    def facts(self) -> dict[str, Any]:
        """Return the facts of a checkpoint that puts the whole state in force."""
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
        """Return the state that a checkpoint puts in force; raise ``ValueError`` or ``TypeError`` for other facts."""
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
        """Return the state after row ``number``; raise one of ``MALFORMED`` for unknown facts.

        ``owned``: the caller alone holds this value, and its withdrawals may be changed in place.
        """
        facts = entry.facts
        if facts["kind"] == "checkpoint":
            return InForce.of(facts, number, digest)
        if facts["before"] != self.digest:
            raise ValueError(number)
        changed = replace(self, number=number, digest=digest)
        if facts["kind"] == "withdrawal":
            return replace(changed, withdrawals=_with_withdrawal(self.withdrawals, entry, owned))
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


def _with_withdrawal(
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
    """Return the state that ``rows`` (from ``SINCE_CHECKPOINT``, each with the mac before it) put in force.

    Raise ``ValueError`` with the number of the first altered row.
    """
    announced = {pair for number, text, *_ in rows for pair in _announced_rows((number, text, "", ""))}
    state = InForce()
    for number, text, recorded, made, before in rows:
        try:
            entry = entry_from(text)
            erased = entry.erased and f"{number}:{digest(text)}" in announced
            if not (erased or entry.digest() == recorded) or not _is_genuine(chosen, number, recorded, made, before):
                raise ValueError
            state = state.after(number, entry, recorded, owned=True)
        except MALFORMED:
            raise ValueError(number) from None
    return state


def apply_readable(state: InForce, rows: Sequence[FactRow], chosen: bytes | None) -> InForce:
    """Apply to ``state`` those of ``rows`` that are readable and authentic, across gaps in the chain."""
    for number, text, recorded, made, before in rows:
        entry = read_entry(text)
        if entry and entry.digest() == recorded and _is_genuine(chosen, number, recorded, made, before):
            with suppress(*MALFORMED):
                state = state.after(number, replace(entry, facts={**entry.facts, "before": state.digest}), recorded)
    return state


def _is_genuine(chosen: bytes | None, number: int, recorded: str, made: str, before: str) -> bool:
    """Whether the mac of a row was made with the key; true if this cannot be told (no key, or no mac so far)."""
    if not chosen or not (made or before):
        return True
    return hmac.compare_digest(made, mac(chosen, number, recorded, before))


def has_other_key(facts: Sequence[FactRow], newest: Sequence[FactRow], chosen: bytes | None) -> bool:
    """Whether ``facts`` are intact and all macs of them and of the ``newest`` rows were made with a different key."""
    with suppress(ValueError):
        replay(facts, None)
        entered = [(number, recorded, made, before) for number, _, recorded, made, before in (*facts, *newest)]
        return all(row[3] for row in facts) and not any(row[2] and _is_genuine(chosen, *row) for row in entered)
    return False


def copy_bytes(state: InForce) -> bytes:
    """Return the copy of the state in force (``in_force.json``), which names its row."""
    values = {"number": state.number, "digest": state.digest, "facts": state.facts()}
    text = json.dumps(values, sort_keys=True)
    return f'{{"sum": "{digest(text)}", "in_force": {text}}}\n'.encode()


def read_copy(content: bytes) -> InForce | None:
    """Return the state in a copy, ``None`` if the copy was altered."""
    with suppress(*MALFORMED):
        outer = json.loads(content)
        values = outer["in_force"]
        if digest(json.dumps(values, sort_keys=True)) == outer["sum"]:
            return InForce.of(values["facts"], values["number"], values["digest"])
    return None


HALF = 32  # hexadecimal digits: 128 bits of a digest
ACCOUNTS = "SELECT user, role, groups, source, subject, disabled, password FROM accounts ORDER BY user"


def accounts_digest(rows: Sequence[Sequence[object]]) -> str:
    """Return the digest of all accounts (rows of ``ACCOUNTS``), "" without any: half of it covers rights, half
    passwords.
    """
    return _half([row[:-1] for row in rows]) + _half([(row[0], row[-1]) for row in rows]) if rows else ""


def _half(rows: Sequence[Sequence[object]]) -> str:
    return hashlib.sha256(json.dumps(rows, ensure_ascii=False).encode()).hexdigest()[:HALF]


# --- faults -----------------------------------------------------------------------------------------------------------


def chain_faults(rows: Sequence[Row], after: Head = START) -> Iterator[Message]:
    """Yield the faults of the digest chain: altered entries, and rows that do not follow ``after`` or each other."""
    announced = {pair for row in rows for pair in _announced_rows(row)}
    previous = after.digest
    for number, text, recorded, _ in rows:
        entry = read_entry(text)
        if entry is None or (not entry.erased and entry.digest() != recorded):
            yield message("doctor.audit_altered", number=number)
        elif entry.erased and f"{number}:{digest(text)}" not in announced:
            yield message("doctor.audit_erased", number=number)
        if entry is not None and entry.previous != previous:
            yield message("doctor.audit_before", number=number)
        previous = recorded


def mac_faults(rows: Sequence[Row], chosen: bytes | None, after: Head = START) -> Iterator[Message]:
    """Yield the rows with a forged mac, and rows without a mac after the first that has one."""
    places = [place for place, row in enumerate(rows) if _with_another_key(row)]
    if places:  # earlier rows were entered with the earlier key
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
    entry = read_entry(row[1]) if WITH_ANOTHER_KEY in row[1] else None
    return entry is not None and entry.outcome == WITH_ANOTHER_KEY


def head_faults(rows: Sequence[Row], head: Head) -> Iterator[Message]:
    """Yield a fault if the row of ``head`` is missing or altered."""
    if (head.number, head.digest, head.mac) not in {(number, recorded, made) for number, _, recorded, made in rows}:
        yield message("doctor.audit_head", number=head.number)


def read_entry(text: str) -> Entry | None:
    """Return the entry of a row, ``None`` if it is malformed."""
    with suppress(*MALFORMED):
        return entry_from(text)
    return None


def _announced_rows(row: Row) -> Sequence[str]:
    """Return the rows that an erasure's entry names, each with the digest of its remaining text."""
    entry = read_entry(row[1])
    return entry.outcome.split() if entry and (entry.action, entry.subject) == ERASED else ()
