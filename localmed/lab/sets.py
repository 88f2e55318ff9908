"""Question sets: files of questions, and of relevance judgements (TREC).

Question files by extension: ``.toml`` (``[[question]]`` tables) and ``.jsonl``, with ``text`` (or ``question``) and
optionally ``id`` and the right answer ``gold`` (or ``evidence``); others have lines ``ID<TAB>QUESTION``, optionally
with a third column for the gold answer.

Judgements are lines of ``question iteration document grade``. A document is named by its id, its key, the record's key
in its file, an identifier (with or without scheme: ``pmid:123``, ``123``), its file's name without extension, or the id
of a passage. A name that fits several documents is an error. The highest of several judgements counts; grades below 0
(TREC's junk) count as 0, and unjudged documents as not relevant. Judged documents outside the library, and questions
without a relevant document in it, are skipped and counted. Messages name the invalid line, never its content.
"""

from __future__ import annotations

import json
import random
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from localmed.domain import ID_LENGTH, Message, SearchFilter, message
from localmed.domain.errors import InputError
from localmed.library.library import Library
from localmed.process.files import contents
from localmed.text.language import clean

LEAST_QUESTIONS = 2  # of one question there is no interval
MOST_QUESTIONS = 100_000  # of one batch: a day's work on starter
MOST_BYTES = 256 * 2**20  # of one file of questions or judgements; MS MARCO's largest has 220 MiB
MOST_GRADE = 100  # trec_eval counts every grade up to the highest
ID_CHARACTERS = 100
LISTED = 20  # line numbers named in a message; the rest are counted
_PASSAGE = re.compile(rf"[0-9a-f]{{{ID_LENGTH}}}")
_GRADE = re.compile(r"-?[0-9]{1,4}")

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its id, which has no blanks. Texts are excluded from ``repr``, so that no log shows them."""

    id: str
    text: str = field(repr=False)
    gold: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions with the gain of each judged document: ``judgements[question id][document id]``.

    ``relevant_from`` is the gain from which a document is relevant for binary measures, ``measure`` the leading measure
    of a report. A judged document outside the library counts as a miss.
    """

    name: str
    questions: tuple[Question, ...]
    judgements: Mapping[str, Mapping[str, int]]
    search_filter: SearchFilter = field(default_factory=SearchFilter)
    relevant_from: int = 1
    measure: str = "MRR@10"
    notes: tuple[Message, ...] = ()

    def answerable(self) -> QuestionSet:
        """Only questions with a relevant document; raise ``InputError`` if fewer than two are left."""
        kept = tuple(question for question in self.questions if self._answered(question))
        if len(kept) < LEAST_QUESTIONS:
            raise InputError("evaluation.few", questions=len(self.questions), count=len(kept), least=LEAST_QUESTIONS)
        left_out = len(self.questions) - len(kept)
        note = message("evaluation.note.left_out", count=left_out, questions=len(self.questions))
        judged = {question.id: self.judgements[question.id] for question in kept}
        return replace(self, questions=kept, judgements=judged, notes=(*self.notes, *([note] if left_out else ())))

    def _answered(self, question: Question) -> bool:
        return any(gain >= self.relevant_from for gain in self.judgements.get(question.id, {}).values())


def draw_sample(values: Sequence[_Value], size: int | None, seed: int) -> tuple[_Value, ...]:
    """At most ``size`` of ``values``, drawn by ``seed``, in their order; all without a size."""
    places = range(len(values))
    chosen = random.Random(seed).sample(places, min(size or len(places), len(places)))  # noqa: S311  (a sample)
    return tuple(values[place] for place in sorted(chosen))


# --- files ------------------------------------------------------------------------------------------------------------


def read_bytes(file: Path) -> bytes:
    """The bytes of a file; raise ``InputError`` if it cannot be read or is too large."""
    return contents(file, MOST_BYTES)


def read_text(file: Path) -> str:
    """The text of a file; raise ``InputError`` as ``read_bytes``, or if it is not UTF-8."""
    try:
        return read_bytes(file).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("file.no_utf8", name=file.name) from None


def objects(text: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of JSON lines or of a JSON list, each with its place; raise ``InputError`` for other content."""
    try:
        pieces = json.loads(text) if text.lstrip().startswith("[") else text.split("\n")
    except (ValueError, RecursionError):
        raise InputError("evaluation.no_object").within(name) from None
    for number, piece in enumerate(pieces, 1):
        if isinstance(piece, str) and not piece.strip():
            continue
        try:
            record = json.loads(piece) if isinstance(piece, str) else piece
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise InputError("evaluation.no_object").within(f"{name}:{number}")
        yield f"{name}:{number}", record


def text_of(record: Mapping[str, Any], *names: str) -> str:
    """The first text among the fields ``names`` of a record, "" if there is none."""
    values = (record.get(name) for name in names)
    texts = (str(value) for value in values if isinstance(value, (str, int)) and not isinstance(value, bool))
    return clean(next(filter(None, texts), "")).strip()


def blankless(name: str) -> str:
    """``name`` without blanks, which separate the columns of a run file."""
    return "_".join(name.split())


def id_of(record: Mapping[str, Any], place: int) -> str:
    """The record's id, else its place."""
    return blankless(text_of(record, "id"))[:ID_CHARACTERS] or str(place)


def questions(file: Path) -> tuple[Question, ...]:
    """The questions of ``file``; raise ``InputError`` naming an invalid one."""
    batch: list[Question] = []
    for number, record in enumerate(_records(file), 1):
        text = text_of(record, "text", "question")
        if not text:
            raise InputError("evaluation.no_text", number=number, file=file.name)
        batch.append(Question(id_of(record, number), text, text_of(record, "gold", "evidence")))
    if not 0 < len(batch) <= MOST_QUESTIONS:
        raise InputError("evaluation.questions", count=len(batch), most=MOST_QUESTIONS, file=file.name)
    if len({question.id for question in batch}) < len(batch):
        raise InputError("evaluation.id_twice", file=file.name)
    return tuple(batch)


def _records(file: Path) -> Iterator[Mapping[str, Any]]:
    text = read_text(file)
    if file.suffix == ".toml":
        try:
            yield from (record for record in tomllib.loads(text).get("question", []) if isinstance(record, dict))
        except (tomllib.TOMLDecodeError, AttributeError, TypeError):
            raise InputError("evaluation.toml", file=file.name) from None
    elif file.suffix == ".jsonl":
        yield from (record for _, record in objects(text, file.name))
    else:
        for line in text.splitlines():
            if line.strip():
                yield dict(zip(("id", "text", "gold"), line.split("\t"), strict=False))


# --- judgements -------------------------------------------------------------------------------------------------------


def read_judged(
    queries: Path, qrels: Path, library: Library, search_filter: SearchFilter, relevant_from: int = 1
) -> QuestionSet:
    """The question set of two files over ``library``; raise ``InputError`` with the numbers of invalid lines."""
    asked, lines = questions(queries), read_qrels(qrels)
    known = {question.id for question in asked}
    if unknown := [number for number, (question, _, _) in lines.items() if question not in known]:
        raise InputError("evaluation.judged_lines", file=qrels.name, queries=queries.name, **_line_list(unknown))
    owners = _owners(lines, library, search_filter, qrels.name)
    judgements: dict[str, dict[str, int]] = defaultdict(dict)
    for question, name, gain in lines.values():
        if document := owners.get(name):
            judgements[question][document] = max(gain, judgements[question].get(document, 0))
    lost = len({name for _, name, _ in lines.values()} - set(owners))
    notes = (message("evaluation.note.unjudged"), *([message("evaluation.note.lost", count=lost)] if lost else ()))
    measure = "nDCG@10" if any(gain > 1 for _, _, gain in lines.values()) else "MRR@10"
    return QuestionSet(queries.stem, asked, judgements, search_filter, relevant_from, measure, notes)


def read_qrels(file: Path) -> dict[int, tuple[str, str, int]]:
    """(question, document, gain) by line number; the four columns are separated by blanks or tabs."""
    lines, bad = {}, []
    for number, line in enumerate(read_text(file).split("\n"), 1):
        columns = line.split()
        if len(columns) == 4 and _GRADE.fullmatch(columns[3]) and int(columns[3]) <= MOST_GRADE:
            lines[number] = columns[0], columns[2], max(0, int(columns[3]))
        elif columns:
            bad.append(number)
    form = message("evaluation.form.judgements", most=MOST_GRADE)
    if bad:
        raise InputError("evaluation.lines", file=file.name, form=form, **_line_list(bad))
    if not lines:
        raise InputError("evaluation.empty", form=form, file=file.name)
    return lines


def _owners(
    lines: Mapping[int, tuple[str, str, int]], library: Library, search_filter: SearchFilter, file: str
) -> Mapping[str, str]:
    """Judged name -> document id, for names of searched documents or passages."""
    names, within = _names(library, search_filter), search_filter.collections
    if ambiguous := [number for number, (_, name, _) in lines.items() if len(names.get(name, ())) > 1]:
        raise InputError("evaluation.ambiguous", file=file, **_line_list(ambiguous))
    wanted = {name for _, name, _ in lines.values()}
    passages = library.passages(sorted(name for name in wanted - set(names) if _PASSAGE.fullmatch(name)))
    owners = {name: document for name in wanted & set(names) for document in names[name]}
    owners |= {name: one.document_id for name, one in passages.items() if not within or one.collection in within}
    if not owners:
        raise InputError("evaluation.none_judged", count=len(wanted), file=file)
    return owners


def _names(library: Library, search_filter: SearchFilter) -> dict[str, set[str]]:
    """Every name of a document -> the ids of the documents with that name."""
    names: dict[str, set[str]] = defaultdict(set)
    for document in library.catalogue.documents():
        if search_filter.collections and document.collection not in search_filter.collections:
            continue
        bare = (known.partition(":")[2] for known in document.identifiers)
        own = document.key.removeprefix(document.source).removeprefix("#")
        for name in (document.id, document.key, own, *document.identifiers, *bare, Path(document.source).stem):
            if name:
                names[name].add(document.id)
    return names


def _line_list(lines: Sequence[int]) -> dict[str, Any]:
    more = len(lines) - LISTED
    return {"count": len(lines), "lines": ", ".join(map(str, lines[:LISTED])) + (f" ... (+{more})" if more > 0 else "")}
