"""MedQuAD: its own questions as a known-item set, and the LiveQA questions with judgements of MedQuAD's answers.

Record ids repeat between MedQuAD's folders, so a record's name is ``folder/file#qid``. The judgements (Ben Abacha &
Demner-Fushman 2019) name answers as ``SOURCE_ID_SecN.txt``, where ``N`` counts also sections that the published files
hold no longer. An answer is therefore found by its text, which the judgements' archive carries, among those of its
document: by number 81 of 446 would be missed or mistaken. Texts are compared in memory and kept nowhere.

Grades are 1 (incorrect), 2 (related), 3 (incomplete) and 4 (excellent); the gain is the grade less one, and relevant is
3 or more. Of several judgements of one document the highest counts. Judged answers of subsets that MedQuAD no longer
holds are left out and counted.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException

from localmed.domain import Document, SearchFilter, message
from localmed.domain.errors import InputError, LimitExceeded
from localmed.lab.sets import MOST_BYTES, Pair, Question, QuestionSet, read_bytes
from localmed.text.language import clean

COLLECTION = "medquad"
RELEVANT_FROM = 2  # a gain: "incomplete" and "excellent" answer the question
WORDINGS = {"summary": "NLM-Summary", "paraphrase": "NIST-PARAPHRASE", "original": "Original-Question/MESSAGE"}
ANSWER_CHARACTERS = 10_000_000  # of one field of the judgements' table; the longest answer has 100,000
_GRADE = re.compile(r"([1-4])\b")
_JUDGED = re.compile(r"(.+)_Sec\d+")
_ANSWER = re.compile(r"\n\s*Answer:", re.IGNORECASE)
_NOT_A_WORD = re.compile(r"\W+")


@dataclass(frozen=True, slots=True)
class Answered:
    """An answered pair: its record's name, the document it comes from as judgements call it, and its texts."""

    record: str
    judged_as: str
    question: str = field(repr=False)
    answer: str = field(repr=False)


def answered(folder: Path) -> Iterator[Answered]:
    """Every pair with a question and an answer in the XML files under ``folder``, in the order of their names."""
    if not folder.is_dir():
        raise InputError("evaluation.no_folder", folder=str(folder))
    for file in sorted(folder.rglob("*.xml")):
        root = _parsed(read_bytes(file), file.name)
        for pair in root.iter("QAPair"):
            answer, question = pair.findtext("Answer"), pair.find("Question")
            if answer and answer.strip() and question is not None and question.text:
                text = " ".join(question.text.split())
                name = f"{root.get('source', '')}_{root.get('id', '')}"
                yield Answered(record_of(file, str(question.get("qid"))), name, text, answer)


def questions(folder: Path) -> list[Pair]:
    """Every (question, record name) with an answer."""
    return [(pair.question, pair.record) for pair in answered(folder)]


def record_of(file: Path, qid: str) -> str:
    """A record's name: question ids repeat between MedQuAD's folders."""
    return f"{file.parent.name}/{file.name}#{qid}"


def records(documents: list[Document]) -> Mapping[str, str]:
    """Record name -> document id of the collection's documents."""
    return {record_of(Path(document.source), document.key.rpartition("#")[2]): document.id for document in documents}


def liveqa(
    folder: Path, queries: Path, archive: Path, documents: list[Document], search_filter: SearchFilter, wording: str
) -> QuestionSet:
    """The LiveQA questions of ``queries``, judged by ``archive``, over MedQuAD's records from ``folder``."""
    queried = _liveqa_questions(queries, wording)
    judged, texts = _opened(archive)
    unknown = {question for question, _, _ in judged} - {query.id for query in queried}
    if unknown:
        raise InputError("evaluation.judged", count=len(unknown), file=archive.name, queries=queries.name)
    find = _finder(folder, texts, records(documents))
    judgements: dict[str, dict[str, int]] = defaultdict(dict)
    unmatched = 0
    for question, answer, gain in judged:
        matches = find(answer)
        unmatched += not matches
        for document in matches:
            judgements[question][document] = max(gain, judgements[question].get(document, 0))
    notes = (
        message("evaluation.note.judgements", count=len(judged) - unmatched, judgements=len(judged)),
        message("evaluation.note.grades"),
        message("evaluation.note.wording", wording=wording),
    )
    return QuestionSet("LiveQA on MedQuAD", queried, judgements, search_filter, RELEVANT_FROM, "nDCG@10", notes)


def _liveqa_questions(file: Path, wording: str) -> tuple[Question, ...]:
    """The questions of a LiveQA test file, by their numbers; the judgements call ``TQ1`` 1."""
    queried = []
    for query in _parsed(read_bytes(file), file.name).iter("NLM-QUESTION"):
        text = clean(" ".join((query.findtext(WORDINGS[wording]) or "").split()))
        if text:
            queried.append(Question(query.get("qid", "").removeprefix("TQ"), text))
    if not queried:
        raise InputError("evaluation.wording", wording=wording, file=file.name)
    return tuple(queried)


def _opened(archive: Path) -> tuple[list[tuple[str, str, int]], dict[str, str]]:
    """The judgements as (question, answer, gain), and the judged answers' texts, from the archive as published."""
    try:
        with zipfile.ZipFile(io.BytesIO(read_bytes(archive))) as opened:
            judgements, texts = (_member(opened, ending) for ending in (".txt", ".csv"))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError):  # damaged, or a kind that is not read
        raise InputError("evaluation.no_zip", file=archive.name) from None
    csv.field_size_limit(ANSWER_CHARACTERS)
    try:
        rows = [row for row in csv.reader(io.StringIO(texts, newline="")) if len(row) > 1]
    except csv.Error:
        raise InputError("evaluation.table", file=archive.name) from None
    return _judgements(judgements, archive.name), {row[0]: row[1] for row in rows}


def _member(archive: zipfile.ZipFile, ending: str) -> str:
    """The one file of the archive with ``ending``."""
    names = [
        member
        for member in archive.infolist()
        if member.filename.endswith(ending) and not member.filename.startswith("__")
    ]
    if len(names) != 1:
        raise InputError("evaluation.archive_files", count=len(names), ending=ending)
    if names[0].file_size > MOST_BYTES:
        raise LimitExceeded("evaluation.archive_bytes", most=MOST_BYTES)
    return archive.read(names[0]).decode("utf-8", "replace")


def _judgements(text: str, name: str) -> list[tuple[str, str, int]]:
    judgements, bad = [], []
    for number, line in enumerate(text.splitlines(), 1):
        columns = line.split()
        grade = _GRADE.match(columns[1]) if len(columns) == 3 else None
        if grade:
            judgements.append((columns[0], columns[2], int(grade[1]) - 1))
        elif columns:
            bad.append(number)
    if bad or not judgements:
        raise InputError(
            "evaluation.lines", count=len(bad), file=name, form="QUESTION GRADE ANSWER", lines=tuple(bad[:10])
        )
    return judgements


def _finder(folder: Path, texts: Mapping[str, str], documents: Mapping[str, str]) -> Callable[[str], tuple[str, ...]]:
    """A function from a judged answer's name to the documents that hold its text (one, or several alike)."""
    held: dict[tuple[str, str], list[str]] = defaultdict(list)
    for pair in answered(folder):
        if pair.record in documents:
            held[pair.judged_as, _letters(pair.answer)].append(documents[pair.record])

    def find(answer: str) -> tuple[str, ...]:
        source = _JUDGED.match(answer)
        parts = _ANSWER.split(texts.get(answer, ""), maxsplit=1)
        return tuple(held.get((source[1], _letters(parts[1])), ())) if source and len(parts) == 2 else ()

    return find


def _letters(text: str) -> str:
    return _NOT_A_WORD.sub("", text).casefold()


def _parsed(content: bytes, name: str) -> Element:
    try:
        root: Element = ElementTree.fromstring(content)
    except (ParseError, DefusedXmlException, ValueError, LookupError):
        raise InputError("evaluation.xml", name=name) from None
    return root
