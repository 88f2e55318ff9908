"""Medical orders: their text, and the audited release of an explanation to a patient by a named person."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date
from itertools import groupby
from typing import TYPE_CHECKING

from localmed.answering.orders_rules import is_entry, is_for
from localmed.domain import Kind, Status, message
from localmed.domain.errors import InputError, LimitExceeded, UsageError
from localmed.domain.parts import AllergyPart, Expansion, LinePart, QuestionPart, TermPart
from localmed.ingest.readers.encoding import decode
from localmed.ingest.records.parts import strike_identifiers
from localmed.text.language import clean, fold
from localmed.workflows.ask import asked_term

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from localmed.domain import Answer, Message, Part, ShownSection, Statement
    from localmed.people.history import Kept
    from localmed.site.session import Session

LARGEST = 2**20  # bytes of an order: some 300 pages, of which the flow reads four
OTHER_SCRIPTS = 0.5  # of the letters: an order in a script that is neither Latin nor Chinese is not read
LONGEST_NAME = 100  # characters of a releasing person's name
LONGEST_REPLY = 600  # characters of this person's answer to a patient's question


def text_of(data: bytes) -> str:
    """The order as text; raise ``InputError`` if it is not text, too long, or in an unsupported script."""
    if len(data) > LARGEST:
        raise LimitExceeded("explain.bytes", most=LARGEST >> 20)
    if data.startswith((b"%PDF", b"PK\x03\x04", b"\x89PNG", b"\xff\xd8\xff")):
        raise InputError("explain.no_text")
    text = decode(data) if data.strip() else ""
    if not any(character.isalpha() for character in text):
        raise InputError("explain.no_words")
    letters = [character for character in text if character.isalpha()]
    others = sum(not (letter < "\u0250" or "\u2e80" <= letter <= "\u9fff" or letter in "μαβγδ") for letter in letters)
    if others > OTHER_SCRIPTS * len(letters):
        raise InputError("explain.language")
    return text


def asked_questions(text: str) -> tuple[str, ...]:
    """A patient's questions, one a line or up to each question mark, without labelled names and personal numbers."""
    lines = re.split(r"\n|(?<=[?？])\s*(?=\S)", clean(text))
    return tuple(strike_identifiers(line.strip()) for line in lines if line.strip())


def ambiguous(answer: Answer) -> list[tuple[LinePart, Expansion]]:
    """The abbreviations with several meanings, which a patient must not have to choose from, in their lines."""
    lines = [part for part in answer.parts if isinstance(part, LinePart)]
    return [(line, one) for line in lines for one in line.expansions if one.is_ambiguous]


def why_unclear(answer: Answer) -> Message | None:
    """Why no choice makes the order clear: a line that writes such an abbreviation twice, perhaps in two senses."""
    twice = [one.written for line, one in ambiguous(answer) if _times(line, one) > 1]
    return message("explain.ambiguous", names=tuple(dict.fromkeys(twice))) if twice else None


def _times(line: LinePart, one: Expansion) -> int:
    return len(re.findall(rf"(?<![A-Za-z0-9]){re.escape(one.written)}(?![A-Za-z0-9])", line.text, re.IGNORECASE))


def _with_meanings(answer: Answer, chosen: Sequence[str]) -> Answer:
    """``answer`` with the meanings ``chosen`` for its ``ambiguous`` abbreviations, in order: a number, or "" for none.

    Raise ``UsageError`` for a number that is none of them.
    """
    places = {(line.start, one.written): (place, one.meanings)
              for (line, one), place in zip(ambiguous(answer), chosen, strict=False)
              if _times(line, one) == 1}  # fmt: skip
    if any(place and place not in map(str, range(len(of))) for place, of in places.values()):
        raise UsageError("web.error.malformed")
    meant = {written: fold(meanings[int(place)]) for (_, written), (place, meanings) in places.items() if place}
    terms = [part for part in answer.parts if isinstance(part, TermPart)]
    explained = {it.term for it in terms if meant.get(it.term, "") in [fold(name) for name in it.also]}

    def made(part: Part) -> Part:
        if not isinstance(part, LinePart):
            return part
        found = [(one, places.get((part.start, one.written), ("", ()))[0]) for one in part.expansions]
        return replace(part, expansions=tuple(replace(one, chosen=int(at)) if at else one for one, at in found))

    others = meant.keys() - explained  # a definition may be of another meaning
    kept = (part for part in answer.parts if not (isinstance(part, TermPart) and part.term in others))
    return replace(answer, parts=tuple(map(made, kept)))


def needs_check(answer: Answer) -> bool:
    """Whether a person must check the order before release: an allergy, or a line with several medicines or times."""
    lines = any(isinstance(part, LinePart) and (part.medicines or part.disagrees) for part in answer.parts)
    return lines or any(isinstance(part, AllergyPart) for part in answer.parts)


def require_clear(answer: Answer, checked: bool) -> None:
    """Raise ``UsageError`` for an order that cannot be given to a patient; ``checked``: a person checked it.

    Without a line there is nothing to give: the message for somebody in danger stands in its place.
    """
    if not any(isinstance(part, LinePart) for part in answer.parts):
        raise UsageError("explain.no_order")
    if names := tuple(dict.fromkeys(one.written for _, one in ambiguous(answer))):
        raise UsageError("explain.ambiguous", names=names)
    if needs_check(answer) and not checked:
        raise UsageError("explain.lines_unchecked")


# --- answers to the patient's questions -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Offer:
    """A whole section of a document for patients that may be put on a leaflet below a question.

    ``value`` is what the form sends, ``name`` its document and heading, ``statements`` its text, a paragraph each.
    """

    value: str
    name: str
    edition: str
    statements: tuple[Statement, ...]


def questions_of(answer: Answer) -> list[tuple[QuestionPart, tuple[Offer, ...]]]:
    """The patient's questions, each with the sections that its leaflet may quote."""
    asked = [part for part in answer.parts if isinstance(part, QuestionPart)]
    return [(part, tuple(_offers(answer, part, place))) for place, part in enumerate(asked)]


def _offers(answer: Answer, part: QuestionPart, place: int) -> Iterator[Offer]:
    """The sections found for a question that lack nothing of it and are whole, current, surely read and for patients.

    An entry of a dictionary answers only who asks what it means; a section on a medicine that the order lacks nobody.
    """
    meant = asked_term(part.question)
    for section in answer.sections:
        pieces = [answer.by_marker[marker] for marker in section.markers]
        sound = all(
            it.kind is Kind.LEAFLET and it.status is Status.CURRENT and it.for_models and not it.passage.doubtful
            for it in pieces
        )
        entry = is_entry(pieces[0].passage, meant) or not is_for(pieces[0].passage, answer.question)
        if section.best in part.sections and sound and not (section.cut or section.lacks or entry):
            title = pieces[0].document_title
            headings = [heading for heading in pieces[0].passage.headings if heading != title]
            yield Offer(
                f"{place}:{section.best}",
                " · ".join((title, *headings)),
                pieces[0].edition,
                _paragraphs(answer, section),
            )


def _paragraphs(answer: Answer, section: ShownSection) -> tuple[Statement, ...]:
    begun = 0
    numbered = [(begun := begun + line.breaks, line) for line in section.lines]
    runs = ([line for _, line in group] for _, group in groupby(numbered, key=lambda pair: (pair[0], pair[1].marker)))
    return tuple(answer.by_marker[run[0].marker].quotation(run[0].start, run[-1].end) for run in runs)


def with_replies(answer: Answer, replies: Sequence[str], sections: Sequence[str]) -> Answer:
    """``answer`` with the ``replies`` to its questions, in order, and the chosen ``sections`` below them.

    Raise ``UsageError`` for a section that is not offered or a reply that cannot be printed.
    """
    asked = questions_of(answer)
    unknown = {*sections} - {offer.value for _, offers in asked for offer in offers}
    written = [" ".join(reply.split()) for reply in replies]
    if unknown or len(written) > len(asked):
        raise UsageError("web.error.malformed")
    if any(len(reply) > LONGEST_REPLY or not reply.isprintable() for reply in written):
        raise UsageError("explain.reply_long", most=LONGEST_REPLY)
    told = iter(
        _replied(part, written[place] if place < len(written) else "", [it for it in offers if it.value in sections])
        for place, (part, offers) in enumerate(asked)
    )
    return replace(answer, parts=tuple(next(told) if isinstance(part, QuestionPart) else part for part in answer.parts))


def _replied(part: QuestionPart, reply: str, chosen: Sequence[Offer]) -> QuestionPart:
    drafted = part.statements[: len(part.statements) - part.quoted]
    quoted = tuple(statement for offer in chosen for statement in offer.statements)
    printed = tuple(offer.name for offer in chosen)
    return replace(part, statements=(*drafted, *quoted), reply=reply, printed=printed, quoted=len(quoted))


def release(
    session: Session,
    kept: Kept,
    name: str,
    checked: bool,
    meanings: Sequence[str] = (),
    replies: Sequence[str] = (),
    sections: Sequence[str] = (),
) -> Answer:
    """The explanation with the name of the person who releases it, and the meanings, answers to the patient's questions
    and sections that this person chose.

    Audited beforehand, else not released.
    """
    by = " ".join(name.split())
    if not by or len(by) > LONGEST_NAME or not by.isprintable():
        raise UsageError("explain.released_by_name", most=LONGEST_NAME)
    if kept.answer.workflow != "explain":
        raise UsageError("explain.no_order")
    answer = with_replies(_with_meanings(kept.answer, meanings), replies, sections)
    require_clear(answer, checked)
    session.note_before("release", kept.id, f"by {by}")
    return replace(answer, released_by=by, released_on=date.today().isoformat())
