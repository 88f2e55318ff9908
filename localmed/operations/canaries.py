"""Canary questions: what the library must go on showing first, and what a model may write no answer to.

The program's own are about the starter corpus (``canaries.toml`` beside this file) and hold where that is imported; a
site's own stand in ``<data>/canaries.toml``. One is *lost* by a change if it passed on what is served and fails on what
would be. A question that fails already is no reason to keep a change back; it is told.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any

from localmed import hooks
from localmed.bounds import names, text
from localmed.domain import Answer, AnswerStatus, Evidence, Message, message
from localmed.errors import BadSettings, InputError, toml_place
from localmed.files import contents
from localmed.language import detect
from localmed.library import layout

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

    before: Mapping[str, Asked] = field(default_factory=dict)
    after: Mapping[str, Asked] = field(default_factory=dict)
    accepted: Collection[str] = ()

    @property
    def lost(self) -> tuple[str, ...]:
        """Those that passed, fail now, and keep the change from being served."""
        return tuple(name for name in self.failing if name not in self.accepted and self._passed(name))

    @property
    def failing(self) -> tuple[str, ...]:
        """Those that fail now, whatever they did before."""
        return tuple(name for name, result in self.after.items() if not result.passed)

    @property
    def moved(self) -> tuple[str, ...]:
        """Those that ended otherwise than before, or cite something else."""
        return tuple(name for name, result in self.after.items() if self.before.get(name, result) != result)

    def _passed(self, name: str) -> bool:
        return name in self.before and self.before[name].passed


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
    return tuple(dict.fromkeys(_file_name(known[marker].source) for marker in markers))


def ask_all(chosen: Sequence[Canary], answer: Callable[[str], Answer]) -> dict[str, Asked]:
    """Ask ``chosen`` of ``answer``; one at which the workflow fails has failed, with the error's name as its status.

    Whoever this thread works for is told which one is asked.
    """
    results, caller = {}, hooks.active()
    with hooks.following(caller.cancel_only()):  # what answers counts a progress of its own
        for number, canary in enumerate(chosen):
            hooks.check()
            caller.progress(number, len(chosen), canary.id)
            try:
                results[canary.id] = judged(canary, answer(canary.question))
            except InputError as error:
                results[canary.id] = Asked(canary.id, False, type(error).__name__)
    return results


def lost_message(names_lost: Sequence[str]) -> Message:
    """What is told of a change that was kept back."""
    return message("canary.lost.what", count=len(names_lost), ids=tuple(names_lost))


def _file_name(source: str) -> str:
    return source.rstrip("/").rpartition("/")[2]


def _even(words: str) -> str:
    """Without what differs between prints of the same words: case and blanks."""
    return re.sub(r"\s+", "", words.casefold())
