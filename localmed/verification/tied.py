"""Whether what rules quote can be tied to what is asked; if not, it is shown as nearest, and no answer.

Rules choose by likeness, and likeness does not see that a guideline leaves somebody out, that the disease or purpose
asked about is another one, or that the value asked for is not there. Three things speak against a quotation: its
document says that it is not for whom or what the question is about; what narrows the question and is nowhere in what is
quoted is a name (a medicine, a disease, a procedure, by table or by its ending) or governed by a preposition ("for
wheeze"); no sentence of what answers gives the value asked for, of the medicine asked about.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache

from localmed.clinical import ages, asking, measures, medicines, synonyms
from localmed.clinical.qualifiers import located, rows_named
from localmed.clinical.tables import cues, in_words, key, listed, table
from localmed.domain import Message, Passage, Statement, message
from localmed.language import fold, sentences
from localmed.verification import cases
from localmed.verification.matching import stems

_BEHIND = re.compile(r"\s*(?:of\s+)?(?:\w+\s+)?")  # between an amount and what it is of
SURE_SLOTS = ("dose", "duration", "frequency", "phone", "price", "person", "count")


@dataclass(frozen=True, slots=True)
class Covers:
    """The sentences by which a document says whom and what it is ``not_for``, and whom it is ``only_for``."""

    not_for: tuple[str, ...] = ()
    only_for: tuple[str, ...] = ()

    @classmethod
    def of(cls, document: Sequence[Passage]) -> Covers:
        """Of a document's passages."""
        excludes, covers = cues("qualifiers", "excludes"), cues("qualifiers", "covers")
        texts = [passage.text[start:end] for passage in document for start, end in sentences(passage.text)]
        not_for = tuple(text for text in texts if excludes.search(text))
        return cls(not_for, tuple(text for text in texts if text not in not_for and covers.search(text)))


def limits(question: str) -> bool:
    """Whether ``question`` names somebody, a condition or a value that a document may leave out."""
    conditions = any(synonyms.is_condition(name.written) for name in synonyms.named(question))
    values = any(True for _ in measures.measured(question)) or any(True for _ in ages.named_ages(question))
    return conditions or values or bool(rows_named(question) & _narrowing())


def excluded(question: str, covers: Covers, quoted: str, title: str) -> tuple[str, ...]:
    """What ``question`` names that its source says it is not for, and neither ``quoted`` nor its title names.

    Dialysis and transplants are treatments as well: that one is named does not say that it is for those who have it.
    """
    left_out, absent = covers.not_for, cases.absent(question)
    if values := [value for text in covers.only_for for value in cases.outside(question, text)]:
        return tuple(dict.fromkeys(values))
    named = [(match.name, frozenset(rows)) for match, rows in located(question) if absent.isdisjoint(rows)]
    theirs, own = rows_named("\n".join(left_out)), (rows_named(quoted) - {"dialysis", "transplant"}) | rows_named(title)
    words = [word for word, rows in named if rows & theirs & _narrowing() and not rows & own]
    texts, shown = fold("\n".join(left_out)), fold(f"{title}\n{quoted}")
    for name in synonyms.named(question):
        names = [one for one in name.names if len(one) > 3 or not one.isascii()]
        condition = synonyms.is_condition(name.written)
        if condition and any(one in texts for one in names) and not any(one in shown for one in names):
            words.append(name.written)
    return tuple(dict.fromkeys(words))


def another(question: str, unnamed: Sequence[str]) -> tuple[str, ...]:
    """Those of the words of ``question`` that what is quoted does not name by which it is about another thing."""
    absent = cases.absent(question)
    return tuple(word for word in unnamed if absent.isdisjoint(rows_named(word)) and _is_name(word, question))


def others_than(question: str, lacking: Sequence[str]) -> tuple[str, ...]:
    """Those of the words that the first thing quoted lacks without which it is no answer: medicines, ages, people."""
    absent = cases.absent(question)
    populations = listed(table("qualifiers")["populations"])
    return tuple(
        word
        for word in lacking
        if absent.isdisjoint(rows := rows_named(word))
        and ((_is_listed(word) and not rows) or not rows.isdisjoint(populations))
    )


def other_conditions(question: str, quoted: Sequence[Passage]) -> tuple[str, ...]:
    """The conditions that ``question`` names and none of the passages ``quoted`` does, under any name."""
    conditions = {name.written: name.names for name in synonyms.named(question) if synonyms.is_condition(name.written)}
    if not conditions:
        return ()
    text = fold("\n".join(part for passage in quoted for part in (passage.title, *passage.headings, passage.text)))
    read = {key(name.written) for name in synonyms.named(text)}
    absent = cases.absent(question)
    return tuple(
        written
        for written, names in conditions.items()
        if absent.isdisjoint(rows_named(written))
        and read.isdisjoint(map(key, names))
        and not any(name in text for name in names if len(name) > 3 or not name.isascii())
    )


def unfilled(question: str, answering: Sequence[Statement]) -> Message | None:
    """That none of the statements gives the value that ``question`` asks for, of the medicine asked about."""
    ingredients = {name for mention in medicines.mentions(question) for name in mention.ingredients}
    texts = [fold(statement.text) for statement in answering if not statement.withheld]
    for slot in asking.slots(question):
        own = ingredients if slot.name == "dose" else set()
        if slot.name in SURE_SLOTS and not any(
            _is_of(own, match, texts[max(0, at - 1)])
            for at, text in enumerate(texts)
            for match in slot.fills.finditer(text)
        ):
            return message("workflow.slot_missing", slot=Message(f"workflow.slot.{slot.name}"))
    return None


def _is_of(ingredients: Collection[str], value: re.Match[str], before: str) -> bool:
    """Whether a value is one of the ``ingredients`` asked about: by the name behind it, else before it, else none."""
    behind, ahead = value.string[value.end() :], value.string[: value.start()]
    following = [mention for mention in medicines.mentions(behind) if _BEHIND.fullmatch(behind[: mention.start])]
    owners = following[:1] or medicines.mentions(ahead)[-1:] or medicines.mentions(behind)[:1]
    owners = owners or medicines.mentions(before)
    named = {name for mention in owners for name in (*mention.ingredients, *mention.classes)}
    return not ingredients or not named or not named.isdisjoint(ingredients)


def answered(question: str, first: str, text: str) -> bool:
    """Whether ``first`` gives every value that is asked for, and ``text`` names nothing more of the question."""
    slots = asking.slots(question)
    full = bool(slots) and asking.filled(slots, [first])
    words, mine = stems(question), medicines.names(question)
    return full and mine.isdisjoint(medicines.names(text)) and words & stems(text) <= words & stems(first)


def _is_listed(word: str) -> bool:
    """Whether ``word`` names a medicine, an age, or whom or what something is about."""
    if measures.mentioned(word):  # "high potassium" is no potassium to be given
        return False
    return bool(medicines.mentions(word) or next(ages.named_ages(word), None) or rows_named(word) & _narrowing())


def _is_name(word: str, question: str) -> bool:
    folded = fold(word)
    if _is_listed(word) or _endings().search(folded):
        return True
    match = re.search(_governed().format(re.escape(folded)), fold(question))
    done = folded.endswith(("ing", "ed"))  # "somebody weighing 52 kg" is no disease
    return bool(match) and not done and folded.capitalize() not in question  # so written it may be somebody's name


@cache
def _narrowing() -> frozenset[str]:
    sections = table("qualifiers")
    return frozenset((*sections["names"], *sections["nearby"])) - {"none"}


@cache
def _endings() -> re.Pattern[str]:
    entry = table("qualifiers")["endings"]
    english, chinese = ("|".join(map(re.escape, listed(entry[name]))) for name in ("en", "zh"))
    return re.compile(rf"[a-z]{{3}}(?:{english})s?$|.(?:{chinese})$")


@cache
def _governed() -> str:
    before = in_words(table("qualifiers")["governs"]["en"])
    return rf"\b(?:{before})\s+(?:[a-z-]+\s+){{{{0,2}}}}{{0}}\b"
