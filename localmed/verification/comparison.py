"""What a statement and the sentences that it rests on say differently, by rule: the first fault found.

In this order: a number or unit that the source does not hold (``quantities``); a medicine that it does not name there;
an amount that it gives of another medicine; the other side of a limit; another way of giving or frequency; a negation
(``polarity``); words that it does not hold. Rules compare what is written: a fault in other words is for the judge of
entailment.
"""

from __future__ import annotations

import re
from itertools import pairwise

from localmed.clinical import medicines
from localmed.domain import Message, message
from localmed.language import detect, fold
from localmed.verification import faithfulness, quantities, subjects
from localmed.verification.amounts import Amount, amounts
from localmed.verification.matching import Window
from localmed.verification.polarity import turned

MEDICINE = message("support.medicine")
OWNER = message("support.other_medicine")
MANNER = message("support.manner")
SIDE = message("support.side")
NEGATION = message("support.negation")
MORE = message("support.more")
# Least share of a statement's weighted words in its sources; less is enough where numbers or medicines agreed as well.
# Chosen on paraphrases of ours (tests/benchmarks/planted_faults.py); Chinese pairs of characters meet less often.
SHARED = {"en": 0.58, "zh": 0.3}
SHARED_BESIDE = {"en": 0.45, "zh": 0.26}
# Where meanings are compared: likeness and the shared words above a floor, weighed together. Words below it say
# little, but with fewer than the least shared a sentence of the same subject passes for its neighbour: that costs right
# sentences, and a wrong citation is worse than a gap. Chosen on our development paraphrases, as above.
FLOOR, WORDS, ALIKE, LEAST_SHARED = 0.5, 0.9, 1.09, 0.28
_SOLD = re.compile(r"tablet|capsule|strength|form\b|[片粒]|胶囊|剂型|规格", re.IGNORECASE)
# A cell of a table that says as what a medicine is sold: none of its numbers is a dose.
_SOLD_AS = re.compile(r"(?:forms?|strengths?|剂型|规格)\s?[:：][^;；\n]*", re.IGNORECASE)
_GENERIC = frozenset(("antibiotic", "corticosteroids"))  # what a sentence may call the medicine that another one names
_NEXT = re.compile(r"\s*or \w+ \d")
_DOSES = ("mg", "mL", "units", "mmol")


def fault(statement: str, window: Window, likeness: float = 0.0) -> Message | None:
    """Why ``statement`` is not carried by ``window``; None where no rule finds anything. Other languages: no words.

    ``likeness`` is how near in meaning its nearest sentence is, 0.0 where nobody compared: then words alone decide.
    """
    source, language = window.in_context, detect(statement)
    dosed = source if _SOLD.search(statement) else _SOLD_AS.sub(" ", source)
    if difference := quantities.missing(statement, dosed):
        return difference
    if not _named(statement, window):
        return MEDICINE
    if not _owned(statement, window):
        return OWNER
    if _other_side(statement, source):
        return SIDE
    if not _given_so(statement, source):
        return MANNER
    if language != detect(window.text):
        return None
    if turned(statement, window.text):
        return NEGATION
    if likeness:
        shared = min(1.0, max(FLOOR, window.coverage))
        far = likeness + WORDS * shared < ALIKE or window.coverage < LEAST_SHARED
        return MORE if far else None
    beside = quantities.quantities(statement).written or medicines.names(statement)
    return MORE if window.coverage < (SHARED_BESIDE if beside else SHARED)[language] else None


def _named(statement: str, window: Window) -> bool:
    """Whether a title or the best sentence names all of the statement's, or another that names one of the best's.

    Where the best sentence names none ("repeat it"), the passage must.
    """
    names = medicines.names(statement) - (_GENERIC & medicines.names(window.around))
    sentences = [medicines.names(sentence.text) for sentence in window.sentences]
    if not sentences or not sentences[0]:
        return names <= medicines.names(window.around)
    best = medicines.ingredients(window.sentences[0].text) or sentences[0]  # a class has other members too
    near = frozenset().union(*(named for named in sentences if named & best))
    return names <= near | medicines.names(window.titles)


def _owned(statement: str, window: Window) -> bool:
    """Whether each amount that the statement gives of a medicine is one that a sentence gives of it, or of none."""
    theirs = [dose for sentence in window.sentences for dose in _doses(sentence.text)]
    return all(
        any(name == other or not other for other, there in theirs if dose in there)
        for name, doses in _doses(statement)
        for dose in doses
        if name
    )


def _doses(text: str) -> list[tuple[str, frozenset[tuple[str, float]]]]:
    """Each medicine with the amounts up to the next one; amounts before the first one are its own."""
    folded = fold(text)
    places = medicines.places(text)
    starts = [0, *(start for start, _ in places[1:]), len(folded)] if places else [0, len(folded)]
    doses = []
    for number, (start, end) in enumerate(pairwise(starts)):
        read = quantities.quantities(folded[start:end]).measured
        name = places[number][1] if places else ""
        doses.append((name, frozenset(quantity for quantity in read if quantity[0] in _DOSES)))
    return doses


def _other_side(statement: str, source: str) -> bool:
    """Whether the statement is on the other side of an amount than the source wherever that names it with a side."""
    theirs = [(amount, _side(amount)) for amount in amounts(source)]
    for mine in amounts(statement):
        side = _side(mine)
        sides = {other for amount, other in theirs if other and amount.kind == mine.kind and amount.agrees(mine)}
        if side and sides and side not in sides:
            return True
    return False


def _side(amount: Amount) -> str:
    """On which side of it; "or above" before another number is that number's."""
    after = amount.clause[amount.end :]
    return subjects.side(amount.clause[: amount.at], "" if _NEXT.match(after) else after)


def _given_so(statement: str, source: str) -> bool:
    """Whether the source has the statement's ways of giving and its frequencies, where it has any."""
    mine, theirs = (faithfulness.facts(quantities.spelt(fold(text))) for text in (statement, source))
    for what in ("way", "time"):
        there = {name for kind, name in theirs if kind == what}
        if there and not {name for kind, name in mine if kind == what} <= there:
            return False
    return True
