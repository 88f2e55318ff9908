"""Reads MedQuAD: question and answer pairs from health institutes, one XML file a topic.

Rules: one record a pair with an answer. Its key is the ``qid``, else the file's and the pair's number; its title is the
topic (``Focus``); its first block is the question as a heading, unless the option ``index_questions`` is false
(known-item evaluations must not find a question by itself). Answers are split at blank lines. Pairs without an answer
are skipped; a file without any is a fault, because whole subsets had their answers removed for copyright. Five of the
5,497 files use other names: ``DiseaseFile`` for ``Document``, or ``doc`` with lower-case names.

Not covered: semantic types, synonyms and question types of the annotations.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from localmed.domain import message
from localmed.ingest.parsed import FILE, Block, Fault, FieldMapping, SourceRecord
from localmed.ingest.readers import MEDQUAD_ROOTS
from localmed.ingest.readers.encoding import clean
from localmed.ingest.readers.markup import elements, flat, texts
from localmed.ingest.readers.text import paragraphs
from localmed.ingest.readers.values import one_line

_PAIRS = ("QAPairs/QAPair", "qaPairs/pair")
_FOCUS = ("Focus", "doctitle-focus")
_CUIS = (".//CUI", ".//cui")


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:
    """Yield a record for each answered question of the file, and faults."""
    questions = mapping.options.get("index_questions", True) is not False
    for document in elements(path, MEDQUAD_ROOTS):
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
