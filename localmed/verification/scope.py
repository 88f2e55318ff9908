"""Whose answer it is: what narrows a question, and whether what is quoted speaks of that.

A question is narrowed by its medicines, by whom and what it names (disease, subtype, population, purpose, setting,
route: ``clinical/qualifiers.toml``), by an age, and by every other word that is not among the general ones of that
table. A quotation speaks of what its sentence, its headings or its title name, and of what the prose around it names;
not of what a sentence names in order to leave it out ("does not cover children"). Of opposites (acute, chronic; by
mouth, into a vein) the nearest decides: a sentence that names another of the row speaks of no other.

Rules see words: another word for the same thing counts as missing, unless the table has it. That costs a right answer
its green badge; the other way round a wrong one would keep it. More than half of what is quoted must speak of it all:
one sentence that happens to hold the words is no answer. A word that is in no table is spoken of also where another
sentence that is quoted from the same document holds it, or where its passage defines an abbreviation by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from localmed.clinical import ages, medicines, moments, negation, synonyms
from localmed.clinical.qualifiers import located, opposites, people, rows_named, usual
from localmed.clinical.tables import cues, listed, table
from localmed.domain import Evidence, Passage, Statement
from localmed.language import HAN, content_words, detect, fold, sentences
from localmed.verification.matching import alike, stems

MOST = 3  # words told of one answer
LEAD = 2  # sentences before a quotation that may say of whom it speaks

_HAN = re.compile(f"[{HAN}]")
_DEFINES = re.compile(
    r"\b[A-Za-z]*[A-Z][a-z]*[A-Z][A-Za-z]*(?:\s(?:is|are|means|stands for|denotes)\s|\s?(?:=|即|指|是|为))"
)


@dataclass(frozen=True, slots=True)
class Place:
    """What a quotation speaks of: its sentence, what leads in to it, its headings with the title, the prose around.

    ``terms`` are its passage's table header and definitions of abbreviations.
    """

    title: str
    sentence: str
    before: str
    headings: str
    around: str
    terms: str

    @classmethod
    def of(cls, statement: Statement, passage: Passage) -> Place:
        """Of ``statement`` in ``passage``; the other rows of a table are not around a row."""
        headings = "\n".join(dict.fromkeys((passage.title, *passage.headings)))
        sentence, terms = _kept(statement.text), _terms(passage)
        if passage.table:
            return cls(passage.title, sentence, "", headings, "", terms)
        start = statement.citations[0].start
        before = [passage.text[one:end] for one, end in sentences(passage.text) if end <= start][-LEAD:]
        return cls(passage.title, sentence, _kept("\n".join(before)), headings, _kept(passage.text), terms)

    @property
    def whole(self) -> str:
        """All of it."""
        return "\n".join((self.headings, self.sentence, self.around))


def lacking(
    question: str,
    statements: Sequence[Statement],
    evidence: Sequence[Evidence],
    beside: Sequence[Statement] = (),
) -> tuple[str, ...]:
    """The words that narrow ``question`` and of which what is quoted does not speak; empty if it may be meant.

    Ages are also told by what is quoted ``beside`` the statements: where bands stand there, one must hold the age.
    """
    places = _places(statements, evidence)
    if outside := _outside(question, (*statements, *beside)):
        return outside
    lacks = [tuple(dict.fromkeys(_lacking(question, place, _spoken(place, places)))) for place in places]
    if 2 * sum(not words for words in lacks) > len(lacks):
        return ()
    fewest = min((words for words in lacks if words), key=len, default=())
    return tuple(dict.fromkeys(fewest))[:MOST]


def against(question: str, statements: Sequence[Statement], evidence: Sequence[Evidence]) -> bool:
    """Whether all that is quoted speaks of another than ``question``: a medicine, an opposite, an age, a moment.

    Only what is named counts: what a quotation leaves open is no evidence against it.
    """
    places = _places(statements, evidence)
    return bool(places) and all(any(_against(question, place)) for place in places)


def _against(question: str, place: Place) -> Iterator[str]:
    near = "\n".join((place.sentence, place.headings))
    if any(mention.ingredients for mention in medicines.mentions(near)):
        yield from _other_medicines(question, place)
    rows = rows_named(near)
    for match, own in located(question):
        if rows.isdisjoint(own) and any(not opposites(row).isdisjoint(rows) for row in own):
            yield match.name
    if _ages(place):
        yield from _other_age(question, place)
    yield from _other_moment(question, place)


def _outside(question: str, statements: Sequence[Statement]) -> tuple[str, ...]:
    """The ages of ``question`` that no band holds, where ``statements`` name any."""
    texts = [one.text for one in statements if not one.withheld and not negation.denies(fold(one.text))]
    bands = [band for text in texts for band in ages.bands(text)]
    return tuple(
        written
        for age, written in ages.named_ages(question)
        if bands and not any(low <= age < high for low, high in bands)
    )


def named(words: Sequence[str], statements: Sequence[Statement], evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """Those of ``words`` (of ``lacking``) of which some of what is quoted speaks, or that stand in it."""
    places = _places(statements, evidence)
    return tuple(word for word in words if any(_stands(word, place) for place in places))


def _places(statements: Sequence[Statement], evidence: Sequence[Evidence]) -> list[Place]:
    known = {piece.marker: piece.passage for piece in evidence}
    return [
        Place.of(statement, known[statement.citations[0].marker])
        for statement in statements
        if statement.citations and statement.citations[0].marker in known and not statement.withheld
    ]


def _spoken(place: Place, places: Sequence[Place]) -> str:
    """The text in which the words of no table count for ``place``: its own, and what its document is quoted with."""
    same = (f"{other.sentence}\n{other.terms}" for other in places if other.title == place.title)
    return "\n".join((place.whole, *same))


def _stands(word: str, place: Place) -> bool:
    near = "\n".join((place.sentence, place.headings, place.terms))
    literal = fold(word) in fold(near) if _HAN.search(word) else bool(stems(word)) and stems(word) <= stems(near)
    return literal or not rows_named(word).isdisjoint(rows_named(near)) or not any(_lacking(word, place, place.whole))


def _terms(passage: Passage) -> str:
    """The header of a table that has one of its own, and the sentences that say what an abbreviation means."""
    header = passage.text.split("\n", 1)[0] if passage.table else ""
    parts = [passage.text[start:end] for start, end in sentences(passage.text)]
    defining = [part for part in parts if _DEFINES.search(part) and not (passage.table and ": " in part)]
    return _kept("\n".join((*(() if ": " in header else (header,)), *defining)))


def _lacking(question: str, place: Place, spoken: str) -> Iterator[str]:
    yield from _other_medicines(question, place)
    yield from _other_rows(question, place)
    yield from _other_age(question, place)
    yield from _other_moment(question, place)
    if detect(question) == detect(spoken):  # another language's words are not compared, but by the tables above
        yield from _unnamed(question, spoken)


def _other_medicines(question: str, place: Place) -> Iterator[str]:
    mentions = medicines.mentions(place.whole)
    named = {name for mention in mentions for name in (*mention.ingredients, *mention.classes)}
    which = medicines.asks_which(question)
    for mention in medicines.mentions(question):
        if which and not mention.ingredients:
            continue  # "which antibiotic": that is for the answer to say
        if named.isdisjoint((*mention.ingredients, *mention.classes)):
            yield mention.written


def _other_rows(question: str, place: Place) -> Iterator[str]:
    near, before, headings, around = map(rows_named, (place.sentence, place.before, place.headings, place.around))
    for match, rows in located(question):
        if not any(row in _nearest(row, near, before, headings, around) for row in rows) and not any(
            usual(row, near | headings | around) for row in rows
        ):
            yield match.name


def _nearest(row: str, *named: frozenset[str]) -> frozenset[str]:
    """The first of ``named`` that holds ``row`` or one of its opposites.

    The prose around counts for what has none, and is no population.
    """
    others = opposites(row)
    far = frozenset() if others or row in listed(table("qualifiers")["populations"]) else named[-1]
    return next((rows for rows in named[:-1] if not rows.isdisjoint(others | {row})), far)


def _other_age(question: str, place: Place) -> Iterator[str]:
    spans = _ages(place)
    for age, written in ages.named_ages(question):
        if not any(low <= age < high for low, high in spans):
            yield written


def _ages(place: Place) -> list[tuple[float, float]]:
    """The ages, from and below, that the sentence, else what is before it, else the headings name."""
    for text in (place.sentence, place.before, place.headings):
        named = rows_named(text)
        by_name = [(0.0, ages.CHILDHOOD)] if "child" in named else []
        by_name += [(ages.CHILDHOOD, ages.OLDEST)] if "adult" in named else []
        if spans := ages.bands(text) or by_name:
            return spans
    return []


def _other_moment(question: str, place: Place) -> Iterator[str]:
    """The moment of ``question`` where the quotation stands on the other side of it."""
    near = "\n".join((place.sentence, place.headings.removeprefix(place.title)))
    yield from moments.opposed(question, near)
    yield from moments.other_ordinals(question, near)


def _unnamed(question: str, whole: str) -> Iterator[str]:
    """The other words of ``question`` that ``whole`` does not hold, in its words or others for the same."""
    folded = fold(question)
    read = {at for start, end in _spans(folded) for at in range(start, end)}
    rest = "".join(" " if at in read else character for at, character in enumerate(folded))
    held = stems(whole)
    forms = frozenset(map(alike, held))
    pairs = frozenset(whole[at : at + 2] for at in range(len(whole) - 1))
    general = _general()
    for word in content_words(rest):
        if _HAN.match(word):
            bare = _bare(word)
            if len(bare) > 1 and bare not in general and not _holds(bare, whole, pairs):
                yield bare
        elif len(word) > 1 and not word[0].isdigit() and word not in general:
            own = stems(word)
            if own.isdisjoint(held) and forms.isdisjoint(map(alike, own)):
                yield word


def _bare(word: str) -> str:
    """A Chinese word without the characters that narrow nothing; with what heads a name of one (高钾血症)."""
    bare = word.strip(table("qualifiers")["general"]["zh_characters"])
    head = word[: word.find(bare)][-1:] if bare else ""
    return head + bare if len(bare) > 1 and head in _heads() else bare


def _holds(word: str, whole: str, pairs: frozenset[str]) -> bool:
    """Whether ``whole`` has a part of a Chinese word; of one that is headed its head, or another name for it."""
    if word[0] not in _heads():
        return not pairs.isdisjoint(word[at : at + 2] for at in range(len(word) - 1))
    names = {name for named in synonyms.named(word) if named.written == word for name in named.names}
    return word[:2] in pairs or any(name in fold(whole) for name in names)


@cache
def _heads() -> frozenset[str]:
    return frozenset(table("qualifiers")["general"]["zh_heads"])


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Where a folded question is read by its medicines, rows and ages already."""
    yield from ((mention.start, mention.end) for mention in medicines.mentions(text))
    yield from ((match.start, match.end) for match, _ in located(text))
    yield from (match.span() for match in ages.spans(text))
    yield from people(text)


def _kept(text: str) -> str:
    """``text`` without the sentences that name something to leave it out."""
    parts = (text[start:end] for start, end in sentences(text))
    return "\n".join(part for part in parts if not cues("qualifiers", "left_out").search(part))


@cache
def _general() -> frozenset[str]:
    section = table("qualifiers")["general"]
    return frozenset((*listed(section["en"]), *listed(section["zh"])))
