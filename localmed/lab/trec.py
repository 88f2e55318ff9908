"""Any set in TREC format: lines of ``id<TAB>text`` are questions, of ``question iteration document grade`` judgements.

A judged document is named by its id here, its key, the record's own key in its file, one of its identifiers (with the
scheme or without: ``pmid:123``, ``123``) or its file's name without the ending; a passage id stands for its document.
A name that fits several documents is an error. Of several judgements of one document the highest counts; grades below
0 (junk, in TREC) count as 0. Judged documents that the library does not hold are left out and counted.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from localmed.domain import ID_LENGTH, Document, Message, SearchFilter, message
from localmed.domain.errors import InputError
from localmed.lab.sets import Question, QuestionSet, read_text
from localmed.library.library import Library
from localmed.text.language import clean

MOST_GRADE = 100  # trec_eval counts every grade up to the highest
LISTED = 20  # line numbers named in a message (never what stands there); the rest are counted
_PASSAGE = re.compile(rf"[0-9a-f]{{{ID_LENGTH}}}")
_GRADE = re.compile(r"-?[0-9]{1,4}")

_Row = TypeVar("_Row")


@dataclass(frozen=True, slots=True)
class Judgement:
    """One line of a judgement file."""

    line: int
    question: str
    document: str
    gain: int


def load(
    queries: Path, qrels: Path, library: Library, search_filter: SearchFilter, relevant_from: int = 1
) -> QuestionSet:
    """The set of two files over what ``library`` holds; raise ``InputError`` with the lines that are wrong."""
    questions, judged = read_queries(queries), read_qrels(qrels)
    known = {question.id for question in questions}
    unknown = [judgement.line for judgement in judged if judgement.question not in known]
    if unknown:
        raise InputError(
            "evaluation.judged_lines", count=len(unknown), file=qrels.name, queries=queries.name, lines=listed(unknown)
        )
    owners = resolve(judged, library, search_filter, qrels.name)
    judgements: dict[str, dict[str, int]] = defaultdict(dict)
    for judgement in judged:
        if document := owners.get(judgement.document):
            judgements[judgement.question][document] = max(
                judgement.gain, judgements[judgement.question].get(document, 0)
            )
    lost = len({judgement.document for judgement in judged} - set(owners))
    notes = [message("evaluation.note.unjudged")]
    if lost:
        notes.append(message("evaluation.note.lost", count=lost))
    graded = any(judgement.gain > 1 for judgement in judged)
    measure = "nDCG@10" if graded else "MRR@10"
    return QuestionSet(queries.stem, questions, judgements, search_filter, relevant_from, measure, tuple(notes))


def read_queries(file: Path) -> tuple[Question, ...]:
    """The questions of a file of ``id<TAB>text`` lines; ids hold no blank and do not repeat."""
    seen: set[str] = set()

    def row(number: int, line: str) -> Question | None:
        del number
        name, tab, text = line.partition("\t")
        if not tab or not clean(text).strip() or name != "".join(name.split()) or not name or name in seen:
            return None
        seen.add(name)
        return Question(name, clean(text).strip())

    return tuple(_rows(file, Message("evaluation.form.queries"), row))


def read_qrels(file: Path) -> list[Judgement]:
    """The judgements of a file of four columns, separated by blanks or tabs."""

    def row(number: int, line: str) -> Judgement | None:
        columns = line.split()
        if len(columns) != 4 or not _GRADE.fullmatch(columns[3]) or int(columns[3]) > MOST_GRADE:
            return None
        return Judgement(number, columns[0], columns[2], max(0, int(columns[3])))

    return _rows(file, message("evaluation.form.judgements", most=MOST_GRADE), row)


def _rows(file: Path, form: Message, row: Callable[[int, str], _Row | None]) -> list[_Row]:
    """Every line but blank ones through ``row``; raise ``InputError`` naming the lines it refuses."""
    rows, bad = [], []
    for number, line in enumerate(read_text(file).split("\n"), 1):
        if line.strip():
            read = row(number, line.rstrip("\r"))
            rows.append(read) if read is not None else bad.append(number)
    if bad:
        raise InputError("evaluation.lines", count=len(bad), file=file.name, form=form, lines=listed(bad))
    if not rows:
        raise InputError("evaluation.empty", form=form, file=file.name)
    return [record for record in rows if record is not None]


def resolve(judged: Sequence[Judgement], library: Library, search_filter: SearchFilter, file: str) -> Mapping[str, str]:
    """Judged name -> document id, for the names that fit a document or a passage of what is searched."""
    names = _names(
        document
        for document in library.catalogue.documents()
        if not search_filter.collections or document.collection in search_filter.collections
    )
    ambiguous = sorted({judgement.line for judgement in judged if len(names.get(judgement.document, ())) > 1})
    if ambiguous:
        raise InputError("evaluation.ambiguous", file=file, count=len(ambiguous), lines=listed(ambiguous))
    by_name = {name: document for name, fitting in names.items() for document in fitting if len(fitting) == 1}
    judged_names = {judgement.document for judgement in judged}
    passages = library.passages(sorted(name for name in judged_names - set(by_name) if _PASSAGE.fullmatch(name)))
    owners = {
        name: passage.document_id
        for name, passage in passages.items()
        if not search_filter.collections or passage.collection in search_filter.collections
    }
    kept = {name: by_name[name] for name in judged_names & set(by_name)} | owners
    if not kept:
        raise InputError("evaluation.none_judged", count=len(judged_names), file=file)
    return kept


def _names(documents: Iterable[Document]) -> dict[str, set[str]]:
    """What each document may be called -> the ids of those that are called so."""
    names: dict[str, set[str]] = defaultdict(set)
    for document in documents:
        bare = (known.partition(":")[2] for known in document.identifiers)
        own = document.key.removeprefix(document.source).removeprefix("#")
        for name in (document.id, document.key, own, *document.identifiers, *bare, Path(document.source).stem):
            if name:
                names[name].add(document.id)
    return names


def listed(lines: Sequence[int]) -> str:
    """The first line numbers, and how many more there are."""
    more = len(lines) - LISTED
    return ", ".join(map(str, lines[:LISTED])) + (f" ... (+{more})" if more > 0 else "")
