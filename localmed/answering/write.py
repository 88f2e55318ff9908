"""Writes an answer in one call from the question and numbered sentences of sections, under a schema.

A model cites by number, so it cannot name a sentence that it was not shown. It also reports whether the sources cover
this patient, what they leave open, and what to search for. "Not covered, do this instead" is an answer.

Sections are given whole and in order, up to ``TOKENS``, with the sentences in which a document states whom it is for.
Text that addresses a language model is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from localmed.answering import evidence as shown
from localmed.answering.asking import QuestionInput
from localmed.answering.roles import Fitted, Role, Writing, asked_by, words
from localmed.domain import Citation, Evidence, Message, Origin, Passage, ShownSection, Statement, Status
from localmed.domain.errors import Rejected
from localmed.text.furniture import furniture
from localmed.text.language import sentences

TOKENS = 3_000  # of sections in a prompt: more does not help small models, and two cores read 15 a second
STATEMENTS, CHARACTERS = 8, 500  # of a reply, and of one statement
CITED = 6  # sentences that one statement may cite
MISSING, MISSING_CHARACTERS = 4, 160  # open points
LOOK_FOR = 120  # characters of the second search
REPLY_TOKENS = 700
SCOPE = 10  # sentences of one document on its scope: a whole list of exclusions

# Headings and sentences in which a document states its scope, which a model must not overlook.
_SCOPE_HEADING = re.compile(
    r"\b(?:scope|who (?:this|it) is for|applies to|exclu\w+|inclusion|not for|not covered|population)\b"
    r"|适用|除外|排除标准|纳入|^范围",
    re.IGNORECASE,
)
_SCOPE_SENTENCE = re.compile(
    r"\b(?:does|do) not (?:apply|cover)\b|\b(?:is|are) excluded\b|\bnot for use in\b|\bapplies (?:only )?to\b"
    r"|\boutside (?:the|its) scope\b|不适用|适用于|不包括",
    re.IGNORECASE,
)


class Covers(StrEnum):
    """Whether the sources apply to the patient of the question."""

    YES = "yes"
    NO = "no"
    NOT_SAID = "not_said"


@dataclass(frozen=True, slots=True)
class Numbered:
    """The sentence ``start:end`` of evidence ``marker``, with the number by which a model cites it."""

    number: int
    marker: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """A section for a model: its title and sentences."""

    title: str
    sentences: tuple[Numbered, ...]

    @property
    def text(self) -> str:
        """The numbered sentences."""
        return "\n".join(f"[{one.number}] {' '.join(one.text.split())}" for one in self.sentences)


@dataclass(frozen=True, slots=True)
class WriteInput(QuestionInput):
    """A question and the ``blocks`` to answer it from; the result is a ``Written``.

    ``earlier``: previous questions; ``patient``: the record, which no statement can cite; ``wrong``: faults of the
    previous reply.
    """

    blocks: tuple[Block, ...]
    audience: str = "staff"
    day: str = ""
    earlier: tuple[str, ...] = ()
    patient: str = ""
    wrong: str = ""
    left_out: Message | None = None


@dataclass(frozen=True, slots=True)
class Drafted:
    """A model's sentence, the numbers it cites, and whether it is calculated."""

    text: str
    numbers: tuple[int, ...]
    calculated: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """A model's unchecked reply."""

    covers: Covers
    drafted: tuple[Drafted, ...]
    missing: tuple[str, ...] = ()
    look_for: str = ""
    left_out: Message | None = None


# --- prompt -----------------------------------------------------------------------------------------------------------


def blocks(
    sections: Iterable[ShownSection],
    evidence: Sequence[Evidence],
    scopes: Mapping[str, Sequence[Passage]],
    minted: Mapping[str, Evidence],
) -> tuple[Block, ...]:
    """The first of ``sections`` that fit into ``TOKENS``, each document's scope first.

    ``scopes`` is by document id, ``minted`` the evidence of scope passages by passage id.
    """
    known = {piece.marker: piece for piece in evidence}
    chosen = [section for section in sections if all(_readable(known[marker]) for marker in section.markers)]
    number, made, left, told = 0, list[Block](), float(TOKENS), set[str]()
    for section in chosen:
        lines = [(known[line.marker], line.start, line.end) for line in section.lines]
        document = known[section.best].passage.document_id
        before = [] if document in told else _scope(scopes.get(document, ()), minted, lines)
        cost = sum(tokens(piece.passage.text[start:end]) for piece, start, end in (*before, *lines))
        if made and cost > left:
            break
        told.add(document)
        left -= cost
        block = Block(_title(known[section.best]), tuple(_numbered((*before, *lines), number)))
        number += len(block.sentences)
        made.append(block)
    return tuple(made)


def of_evidence(evidence: Sequence[Evidence]) -> tuple[Block, ...]:
    """A block of all sentences for each piece of ``evidence`` that a model may read."""
    number, made = 0, list[Block]()
    for piece in evidence:
        if not _readable(piece):
            continue
        spans = [(piece, start, end) for start, end in sentences(piece.passage.text)]
        made.append(Block(_title(piece), tuple(_numbered(spans, number))))
        number += len(spans)
    return tuple(block for block in made if block.sentences)


def _readable(piece: Evidence) -> bool:
    """Whether a model may read ``piece``: it does not address a model and is not withdrawn."""
    return piece.for_models and piece.status is not Status.WITHDRAWN


def scope_spans(passage: Passage) -> Iterator[tuple[int, int]]:
    """The sentences of ``passage`` that state the document's scope."""
    around = furniture(passage)
    under, more = _headed(passage), False
    for start, end in sentences(passage.text):
        text = passage.text[start:end]
        if start not in around and (under or more or _SCOPE_SENTENCE.search(text)):
            more = text.endswith((":", "：", ";", "；"))  # "It does not cover:" needs its list
            yield start, end
        else:
            more = False


def _headed(passage: Passage) -> bool:
    """Whether a heading of ``passage`` is about the document's scope."""
    return any(_SCOPE_HEADING.search(heading) for heading in passage.headings if heading != passage.title)


def tokens(text: str) -> float:
    """A text's approximate number of tokens: about 1.3 for a word, 0.8 for a Chinese character."""
    plain = sum(character.isascii() for character in text)
    return plain / 4 + (len(text) - plain) * 0.8 + 6


def _scope(
    passages: Sequence[Passage], minted: Mapping[str, Evidence], lines: Sequence[tuple[Evidence, int, int]]
) -> list[tuple[Evidence, int, int]]:
    there = {(piece.passage.id, start) for piece, start, _ in lines}
    usable = [one for one in passages if one.id in minted and _readable(minted[one.id])]
    usable.sort(key=lambda one: not _headed(one))
    spans = [(minted[one.id], start, end) for one in usable for start, end in scope_spans(one)]
    return [(piece, start, end) for piece, start, end in spans if (piece.passage.id, start) not in there][:SCOPE]


def _numbered(lines: Iterable[tuple[Evidence, int, int]], before: int) -> Iterator[Numbered]:
    for number, (piece, start, end) in enumerate(lines, before + 1):
        yield Numbered(number, piece.marker, start, end, piece.passage.text[start:end])


def _title(piece: Evidence) -> str:
    names = dict.fromkeys((piece.document_title, *piece.passage.headings))
    return " › ".join(name for name in (*names, piece.edition) if name)


def _prompt(task: WriteInput) -> str:
    called = words("quoted_names", task.language)
    lines = [asked_by(task.language, task.audience, task.day)]
    lines += [f"{called['earlier']}: {question}" for question in task.earlier]
    lines.append(f"{called['question']}: {task.question}")
    lines += [shown.quoted("patient", task.patient, task.language)] if task.patient else []
    lines += [task.wrong] if task.wrong else []
    return "\n".join(lines)


def _passages(task: WriteInput) -> tuple[str, ...]:
    return tuple(shown.between_marks(block.title, block.text) for block in task.blocks)


def _shortened(task: WriteInput, fitted: Fitted) -> WriteInput:
    return replace(task, blocks=tuple(task.blocks[place] for place in fitted.kept), left_out=fitted.note)


# --- reply ------------------------------------------------------------------------------------------------------------


def _schema(task: WriteInput) -> Mapping[str, Any]:
    numbers = [one.number for block in task.blocks for one in block.sentences]
    text = {"type": "string", "minLength": 1, "maxLength": CHARACTERS}
    cited = {"type": "array", "items": {"enum": numbers}, "minItems": 1, "maxItems": CITED}
    item = shown.object_of({"text": text, "sentences": cited, "calculated": {"type": "boolean"}})
    missing = {"type": "string", "minLength": 1, "maxLength": MISSING_CHARACTERS}
    return shown.object_of(
        {
            "covers_patient": {"enum": [one.value for one in Covers]},
            "statements": {"type": "array", "items": item, "maxItems": STATEMENTS},
            "not_covered": {"type": "array", "items": missing, "maxItems": MISSING},
            "look_for": {"type": "string", "maxLength": LOOK_FOR},
        }
    )


def _reply(task: WriteInput, value: Any) -> Written:
    known = {one.number for block in task.blocks for one in block.sentences}
    drafted: dict[str, Drafted] = {}
    for item in value["statements"]:
        text = shown.in_language(" ".join(str(item["text"]).split()), task.language)
        numbers = tuple(dict.fromkeys(item["sentences"]))
        if not numbers or set(numbers) - known:
            raise Rejected("agents.unknown_source")
        drafted.setdefault(text, Drafted(text, numbers, bool(item["calculated"])))
    missing = dict.fromkeys(" ".join(str(one).split()) for one in value["not_covered"])
    return Written(
        Covers(value["covers_patient"]),
        tuple(drafted.values()),
        tuple(one for one in missing if one),
        " ".join(str(value["look_for"]).split()),
        task.left_out,
    )


def statements(reply: Written, given: Sequence[Block], evidence: Sequence[Evidence]) -> tuple[Statement, ...]:
    """The sentences of ``reply`` with citations in the sections' order."""
    by_number = {one.number: one for block in given for one in block.sentences}
    known = {piece.marker: piece for piece in evidence}

    def citation(number: int) -> Citation:
        one = by_number[number]
        return known[one.marker].citation(one.start, one.end)

    return tuple(
        Statement(one.text, tuple(map(citation, sorted(one.numbers))), Origin.GENERATED) for one in reply.drafted
    )


def quoted(statement: Statement, evidence: Sequence[Evidence]) -> tuple[Statement, ...]:
    """Quotations of the sentences that ``statement`` cites, which replace an unchecked statement."""
    known = {piece.marker: piece for piece in evidence}
    return tuple(known[one.marker].quotation(one.start, one.end) for one in statement.citations)


# LINS, MAIRAG: generator.
WRITE = Role(
    "write",
    "1",
    Writing(_schema, _prompt, _reply, _passages, _shortened, REPLY_TOKENS),
)
ROLES = (WRITE,)
