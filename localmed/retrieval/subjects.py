"""Finds the medicines, unlisted names and populations of a question that a section must name too.

A condition of one group names a population ("pre-eclampsia"); an overdose counts as one. Medicines count as they are
read; one that only the expansion of an abbreviation adds ("inr") does not.

By words alone. A section has a medicine under any listed name. An unlisted word counts if it is written as a name
("Erdheim-Chester") or ends like a substance ("penicillamine") and no document has it. Of 680 questions of twelve
authors that their documents answer 2 have such a word, a name and a medicine; of 423 others 9, of them 6 such.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass

from localmed.domain.findings import Closeness, Question
from localmed.library.library import Library
from localmed.retrieval.weights import searched_text
from localmed.text import medicines, synonyms
from localmed.text.identifiers import identifiers
from localmed.text.language import detect, fold
from localmed.text.tables import Names

NEAR = 20  # characters before a name that may say that it is not asked for
ADULT = 16  # years
LIGHT = 30  # kilograms
AGES = ("age", "ages", "aged", "岁", "月龄")  # a section that goes by age is one for children too
READ = 3  # passages that hold the words of a name and are read for it
_UNLISTED = re.compile(
    r"(?<=[a-z,] )(?<!\b[MD]r )(?<!\bMrs )(?<!\bMs )[A-Z][a-z]{3,}(?:-[A-Z]?[a-z]{3,})*(?![\w-])"
    r"|\b[A-Za-z]{5,}(?:in|ine|ide|ole|ane|ene|one|ol|am|il|ium|ac)\b"
)
_AGE = re.compile(  # "3y" only at the start: "AF 3y"
    r"\b(\d{1,2})(?:[- ]?(?:years?|yrs?|y)[- ]?old\b| ?y/?o\b)|^\W*(\d{1,2}) ?y(?:rs?)?\b(?! ?ago)"
    r"|(?<!\d)(\d{1,3}) ?岁",
    re.IGNORECASE,
)
_WEIGHT = re.compile(r"(?<![\d.])(\d{1,2})(?:\.\d)? ?(?:kg\b|公斤|千克)(?! ?\w*loss)", re.IGNORECASE)
_NO = re.compile(r"(\bnon[- ]?|\bnot (a )?|非)$")  # not about such people
_RESISTS = re.compile(r"[- ]*(?:resist|耐药)")  # not asked for


@dataclass(frozen=True, slots=True)
class Subject:
    """A medicine with ``ingredients``, or a population with ``names``, as ``written``."""

    written: str
    ingredients: tuple[str, ...] = ()
    names: Names | None = None

    def is_in(self, text: str) -> bool:
        """Whether ``text`` names it."""
        return bool(self.names.matches(fold(text))) if self.names else self.is_among(medicines.names(text))

    def is_among(self, named: Set[str]) -> bool:
        """Whether it is a medicine, and one of those ``named``."""
        return bool(self.ingredients) and named >= {*self.ingredients}


def subjects(read: Question) -> tuple[Subject, ...]:
    """The distinct medicines and populations of a question as it was read."""
    found: dict[object, Subject] = {}
    means = {fold(one.written): one.means for one in read.readings if one.written and not one.left_out}
    spelt = {name: one for name, one in means.items() if {*fold(one).split()} <= medicines.words(one)}
    text = " ".join((read.typed, *spelt.values()))
    folded, allergens = fold(text), medicines.allergens(text)
    for one in medicines.mentions(text):
        asked = one.ingredients != (one.written,) or one.written not in spelt  # "gentamycin" is read as gentamicin
        resisted = folded[: one.start].endswith("耐") or _RESISTS.match(folded, one.end)
        asked = asked and not resisted and one not in allergens
        if asked and one.is_medicine:
            found.setdefault(one.ingredients, Subject(spelt.get(one.written, one.written), one.ingredients))
    folded = fold(f"{read.typed} {read.further}")
    for named in synonyms.named(folded):
        names = (
            () if _NO.search(folded[max(0, named.start - NEAR) : named.start]) else synonyms.population(named.written)
        )
        if names:
            found.setdefault(names, Subject(named.written, names=Names(names)))
    if (child := _child(read.typed)) and not any(one.names for one in found.values()):
        found[child] = Subject(child, names=Names((*synonyms.population(child), *AGES)))
    return tuple(found.values())


def _child(typed: str) -> str:
    """The word for a child in the language of ``typed``, by its ages in years, or by a weight if it has none."""
    ages = [int(one) for match in _AGE.finditer(typed) for one in match.groups() if one]
    said = {"en": "child", "zh": "孩子"}
    light = not ages and any(0 < int(match[1]) < LIGHT for match in _WEIGHT.finditer(typed))
    return said.get(detect(typed), "") if light or (ages and all(0 < age < ADULT for age in ages)) else ""


def absent(read: Question, asked: Sequence[Subject], library: Library) -> tuple[str, ...]:
    """The medicines and unlisted words of a question that no readable document has."""
    held = [one.written for one in asked if one.ingredients and not _is_held(one, library)]
    return (*held, *_unlisted(read, lambda word: bool(library.search_all(word, 1))))


def _is_held(subject: Subject, library: Library) -> bool:
    for name in (subject.written, *medicines.same(subject.ingredients)):
        rows = library.search_all(name, READ)
        passages = library.passages([row[0] for row in rows]).values()
        if any(subject.is_in(searched_text(one)) for one in passages):
            return True
    return False


def _unlisted(read: Question, holds: Callable[[str], bool]) -> Iterator[str]:
    written = (one.written for one in read.readings)
    known = fold(" ".join((*written, *medicines.words(read.typed), *identifiers(read.typed))))
    for match in _UNLISTED.finditer(read.typed) if detect(read.typed) == "en" else ():
        parts = match[0].split("-")
        if not any(holds(one) or fold(one) in known or synonyms.named(one) for one in parts):
            yield match[0]


def closeness(said: Closeness, read: Question, lacking: Sequence[str], asked: Sequence[Subject]) -> Closeness:
    """The closeness of the first section if the library lacks something of the question: nothing near, unless the
    question names another medicine or a condition.
    """
    if not lacking or said is Closeness.NOTHING_NEAR:
        return said
    other = any(one.ingredients and one.written not in lacking for one in asked)
    other = other or any(synonyms.is_in("conditions", one.written) for one in synonyms.named(read.typed))
    return Closeness.SOME_WAY if other else Closeness.NOTHING_NEAR
