"""Which medicines a question is about, and whether a sentence of a source is about them or about others."""

from __future__ import annotations

import re
from dataclasses import dataclass

from localmed.clinical import medicines
from localmed.clinical.medicines import Mention
from localmed.clinical.tables import listed, table
from localmed.clinical.units import dose as dosed
from localmed.domain import Passage
from localmed.language import fold

_ASKS_DOSE = re.compile(r"\bdos(?:e|es|age|ing)\b|how much|剂量|用量|多少", re.IGNORECASE)
_CELL = re.compile("[;；]")  # ends the first cell of a table's row


@dataclass(frozen=True, slots=True)
class Subject:
    """The medicines that a question is about: its ``ingredients`` with their classes, and ``classes`` named as such."""

    ingredients: frozenset[str] = frozenset()
    own_classes: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    asks_dose: bool = False

    @classmethod
    def of(cls, *texts: str) -> Subject:
        """What ``texts`` name."""
        mentions = [mention for text in texts for mention in medicines.mentions(text)]
        named = [name for mention in mentions if not mention.ingredients for name in mention.classes]
        return cls(
            frozenset(name for mention in mentions for name in mention.ingredients),
            frozenset(name for mention in mentions if mention.ingredients for name in mention.classes),
            frozenset(filter(_narrows, named)),
            bool(_ASKS_DOSE.search(texts[0])),
        )

    def fits(self, passage: Passage, start: int, end: int) -> bool:
        """Whether the sentence ``start:end`` is about one of the medicines, and gives no other's dose for theirs."""
        if not (self.ingredients or self.classes):
            return True
        text = passage.text[start:end]
        if not any(self._is(mention) for mention in _spoken_of(passage, start, text)):
            return False
        dose = dosed().search(folded := fold(text)) if self.asks_dose else None
        owners = medicines.mentions(folded[: dose.start()])[-1:] if dose else []
        return all(self._is(owner) for owner in owners)

    def another(self, passage: Passage, start: int, end: int) -> bool:
        """Whether the sentence, or the table row by its first cell, is about another medicine than the question."""
        if not (self.ingredients or self.classes):
            return False
        text = passage.text[start:end]
        cell = medicines.mentions(_CELL.split(text, maxsplit=1)[0]) if passage.table else []
        mentions = cell or _spoken_of(passage, start, text)
        return bool(mentions) and not any(self._is(mention) for mention in mentions)

    def _is(self, mention: Mention) -> bool:
        """Whether a sentence's medicine is one of the question's, or a class named for it, or in the class asked of."""
        named, classes = set(mention.ingredients), set(mention.classes)
        if named & self.ingredients or classes & (self.classes | self.ingredients):
            return True
        return not named and bool(classes & self.own_classes)


def _narrows(name: str) -> bool:
    """Whether the class ``name`` has members by which another medicine can be told; "antibiotics" has none."""
    return any(member != name for member in medicines.members(name))


def _spoken_of(passage: Passage, start: int, text: str) -> list[Mention]:
    """The medicines of a sentence; of one that names none, those that it may be about.

    These are the last named before it and those of the nearest heading that names any. What a medicine is given in
    (``asking.toml``: vehicles) is not spoken of.
    """
    if own := _medicines(text):
        return own
    before = [] if passage.table else _medicines(passage.text[:start])[-1:]
    headings = (_medicines(heading) for heading in (*reversed(passage.headings), passage.title))
    return [*before, *next((mentions for mentions in headings if mentions), [])]


def _medicines(text: str) -> list[Mention]:
    vehicles = set(listed(table("asking")["vehicles"]))
    return [mention for mention in medicines.mentions(text) if vehicles.isdisjoint(mention.ingredients)]
