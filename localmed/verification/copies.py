"""Whether two sentences say the same in nearly the same words, as two editions of a document do.

Not a copy is what differs in a number, a medicine, a negation or in whom it is about, however few words that takes.
"""

from __future__ import annotations

from localmed.clinical import medicines
from localmed.clinical.negation import denies
from localmed.clinical.qualifiers import located
from localmed.clinical.tables import cues
from localmed.language import fold, words

COPY = 0.8  # of the words of both that both have, at least


def copies(one: str, other: str) -> bool:
    """Whether ``one`` and ``other`` are copies."""
    first, second = frozenset(words(one)), frozenset(words(other))
    union = first | second
    return len(first & second) >= COPY * len(union) and _decisive(one) == _decisive(other)


def _decisive(text: str) -> tuple[object, ...]:
    """What no copy may change."""
    folded = fold(text)
    return (
        [word for word in words(text) if any(character.isdigit() for character in word)],
        sorted(name for mention in medicines.mentions(text) for name in mention.ingredients or mention.classes),
        sorted(row for _, rows in located(text) for row in rows),
        denies(folded),
        len(cues("negation", "warns").findall(text)),
    )
