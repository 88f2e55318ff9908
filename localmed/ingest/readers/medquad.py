"""MedQuAD: question and answer pairs from health institutes, one XML file a topic.

Rules: one record a pair that has an answer; its key is the pair's ``qid``, its title the topic (``Focus``), its first
block the question as a heading, unless the option ``index_questions`` is false (known-item evaluations must not find a
question by itself). An answer's paragraphs are split at blank lines. Pairs without an answer are passed over; a file
in which every answer is missing is reported, because whole subsets had theirs removed for copyright.

The same content stands in three vocabularies, of which five of the 5,497 files use the rarer two: ``DiseaseFile`` for
``Document``, and ``doc`` with lower-case names throughout. A pair without a ``qid`` is keyed by its file's and its own
number.

Not covered: the semantic types, synonyms and question types of the annotations.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from localmed.domain import message
from localmed.ingest.parsed import FILE, Block, Fault, FieldMapping, SourceRecord
from localmed.ingest.readers.encoding import clean
from localmed.ingest.readers.markup import elements, flat, texts
from localmed.ingest.readers.text import paragraphs
from localmed.ingest.readers.values import one_line

ROOTS = frozenset({"Document", "DiseaseFile", "doc"})
_PAIRS = ("QAPairs/QAPair", "qaPairs/pair")
_FOCUS = ("Focus", "doctitle-focus")
_CUIS = (".//CUI", ".//cui")


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:
    """A record for each answered question of each document in the file."""
    questions = mapping.options.get("index_questions", True) is not False
    for document in elements(path, ROOTS):
        pairs = [pair for name in _PAIRS for pair in document.iterfind(name)]
        answered = [pair for pair in pairs if flat(_part(pair, "Answer"))]
        if pairs and not answered:
            yield Fault(FILE, message("reader.answers_empty", count=len(pairs)))
        for pair in answered:
            yield _record(document, pair, questions)


def _record(document: Element, pair: Element, with_question: bool) -> SourceRecord:
    question, answer = _part(pair, "Question"), _part(pair, "Answer")
    qid = "" if question is None else question.get("qid", "")
    wording = flat(question)
    runs = paragraphs(clean("".join(answer.itertext()))) if answer is not None else ()
    blocks = [block for lines in runs for block in Block.paragraph(map(one_line, lines))]
    if with_question and wording:
        blocks.insert(0, Block.of("heading", wording, 1))
    cuis = (cui for path in _CUIS for cui in texts(document, path))
    return SourceRecord(
        key=qid or f"{document.get('id', '')}-{pair.get('pid', '')}",
        title=next((title for path in _FOCUS for title in texts(document, path)), wording if with_question else ""),
        blocks=tuple(blocks),
        language="en",
        url=document.get("url", ""),
        identifiers=(*(f"cui:{cui}" for cui in cuis), *((f"qid:{qid}",) if qid else ())),
    )


def _part(pair: Element, name: str) -> Element | None:
    part = pair.find(name)
    return pair.find(name.lower()) if part is None else part
