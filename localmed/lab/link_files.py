"""The files of a Link-Eval batch: questions, answers written elsewhere, and the rows that are finished.

Questions, told apart by the file's ending:

- ``.toml``: ``[[question]]`` tables with ``text`` (or ``question``), and where they are known ``id`` and ``gold`` (or
  ``evidence``): the answer known to be right, as a sentence or as words that must be said;
- ``.jsonl``: one object a line with the same names;
- anything else: ``ID<TAB>QUESTION`` lines, after which a third column may give the gold answer.

Answers are JSON lines with ``answer`` (text with citations, in any style that ``verification.marked_text`` reads) and
``id`` (or ``question``) of their question; ``sources`` are the references, cited or not: texts, or objects with
``text`` and, where they are known, ``marker`` (else its place in the list) and ``title``; ``gold`` as above.
A message names the line that is wrong, never what stands there. Rows hold ids and counts, no text.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from localmed.answering import marked_text
from localmed.answering.link_eval import LinkInput, LinkSource, LinkStatement
from localmed.domain import Passage, digest
from localmed.domain.errors import InputError
from localmed.domain.link_counts import LinkCounts
from localmed.lab import rows
from localmed.lab.sets import blankless, read_bytes, read_text
from localmed.text.language import clean, detect

MOST_QUESTIONS = 100_000  # of one batch: a day's work on starter
MOST_SOURCES = 200  # references of one answer
ID_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class LinkQuestion:
    """A question and what it is called in the results; the texts are in no representation, so that no log shows them.

    ``answer`` is the one to evaluate; without one the library is asked.
    """

    id: str
    text: str = field(repr=False)
    gold: str = field(default="", repr=False)
    answer: LinkInput | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class LinkRow:
    """The outcome of one question: how it ended (``answered``, ``abstained``, ``no answer given``) and the counts."""

    id: str
    language: str
    status: str
    counts: LinkCounts = field(default_factory=LinkCounts)


# --- questions --------------------------------------------------------------------------------------------------------


def questions(file: Path) -> tuple[LinkQuestion, ...]:
    """The questions of ``file``; raise ``InputError`` naming the one that is wrong."""
    batch = tuple(_questions(file))
    if not 0 < len(batch) <= MOST_QUESTIONS:
        raise InputError("evaluation.questions", count=len(batch), most=MOST_QUESTIONS, file=file.name)
    if len({question.id for question in batch}) < len(batch):
        raise InputError("evaluation.id_twice", file=file.name)
    return batch


def _questions(file: Path) -> Iterator[LinkQuestion]:
    for number, record in enumerate(records(file), 1):
        text = clean(text_of(record, "text") or text_of(record, "question")).strip()
        if not text:
            raise InputError("evaluation.no_text", number=number, file=file.name)
        yield LinkQuestion(_id(record, number), text, _gold(record))


def records(file: Path) -> Iterator[Mapping[str, Any]]:
    """The questions of ``file`` as they stand there."""
    text = read_text(file)
    if file.suffix == ".toml":
        try:
            yield from (record for record in tomllib.loads(text).get("question", []) if isinstance(record, dict))
        except (tomllib.TOMLDecodeError, AttributeError, TypeError):
            raise InputError("evaluation.toml", file=file.name) from None
    elif file.suffix == ".jsonl":
        yield from _objects(file.name, text, "evaluation.no_question_object")
    else:
        for line in text.splitlines():
            if line.strip():
                name, question, gold, *_ = (*line.split("\t"), "", "")
                yield {"id": name, "text": question, "gold": gold}


def _objects(name: str, text: str, refused: str) -> Iterator[Mapping[str, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                record = None
            if not isinstance(record, dict):
                raise InputError(refused).within(f"{name}:{number}")
            yield record


def text_of(record: Mapping[str, Any], name: str) -> str:
    """A text of a record, "" where it has none."""
    value = record.get(name)
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def _id(record: Mapping[str, Any], number: int) -> str:
    return blankless(text_of(record, "id"))[:ID_CHARACTERS] or str(number)


def _gold(record: Mapping[str, Any]) -> str:
    return clean(text_of(record, "gold") or text_of(record, "evidence")).strip()


# --- answers ----------------------------------------------------------------------------------------------------------


def with_answers(questions: Sequence[LinkQuestion], file: Path) -> tuple[LinkQuestion, ...]:
    """Those of ``asked`` that ``file`` answers, by id or by the question's text; the others stay without an answer.

    Raise ``InputError`` for an answer of no question, for two of one, and for what is no answer.
    """
    places = {
        name: place
        for place, question in enumerate(questions)
        for name in (("text", question.text), ("id", question.id))
    }
    inputs: dict[int, LinkInput] = {}
    for number, record in enumerate(_objects(file.name, read_text(file), "evaluation.no_object"), 1):
        name = ("id", _id(record, 0)) if text_of(record, "id") else ("text", clean(text_of(record, "question")).strip())
        place = places.get(name)
        if place is None or place in inputs:
            code = "evaluation.answer_of_none" if place is None else "evaluation.answer_twice"
            raise InputError(code).within(f"{file.name}:{number}")
        inputs[place] = answer(record, questions[place], f"{file.name}:{number}")
    return tuple(replace(question, answer=inputs.get(place)) for place, question in enumerate(questions))


def answer(record: Mapping[str, Any], question: LinkQuestion, where: str) -> LinkInput:
    """The answer of ``record`` with its sources; an entry of the references in its text is none, it has no text."""
    sources = record.get("sources") or []
    if not isinstance(record.get("answer"), str) or not isinstance(sources, list) or len(sources) > MOST_SOURCES:
        raise InputError("evaluation.no_answer", place=where, most=MOST_SOURCES)
    read = marked_text.read(clean(record["answer"]))
    statements = tuple(LinkStatement(sentence.text, sentence.markers) for sentence in read.sentences)
    references = tuple(_source(source, place, where) for place, source in enumerate(sources, 1))
    return LinkInput(question.text, statements, references, _gold(record) or question.gold, malformed=read.malformed)


def _source(source: Any, place: int, where: str) -> LinkSource:
    record = {"text": source} if isinstance(source, str) else source
    if not isinstance(record, dict):
        raise InputError("evaluation.source", number=place, place=where)
    text, title = clean(text_of(record, "text")), clean(text_of(record, "title"))
    marker = text_of(record, "marker").strip("[]() ").lower() or str(place)
    name = digest("given", marker, title, text)
    return LinkSource(marker, Passage(name, name, "", detect(text), "", title, (), text, f"0-{len(text)}"))


# --- rows -------------------------------------------------------------------------------------------------------------


def digest_of(file: Path) -> str:
    """The sha256 of ``file``: a batch goes on only with the same questions and answers."""
    return sha256(read_bytes(file)).hexdigest()


def begin(file: Path, made_with: Mapping[str, str], resume: bool) -> dict[str, LinkRow]:
    """The rows that ``file`` holds if ``resume``, which must have been ``made_with`` the same (see ``rows.begin``)."""
    whole = [piece for piece in rows.begin(file, made_with, resume) if isinstance(piece, dict)]
    kept = [LinkRow(**{**piece, "counts": LinkCounts(**piece["counts"])}) for piece in whole]
    return {row.id: row for row in kept}


def keep(file: Path, row: LinkRow) -> None:
    """Add a finished row, so that it outlives an interruption."""
    rows.keep(file, asdict(row))
