"""Red flags in a complaint: what people say for which the Emergency Department comes first. English and Chinese.

A sign counts if somebody has it now: not what is denied ("no chest pain", 无胸痛), nor what was in the past ("last
year", 去年) unless the same clause says that it is back, nor what is only asked about ("how do I prevent a clot"). Some
signs are a red flag by themselves, others only together. Nothing here is a diagnosis: a flag is named by what was said.

The table is ``red_flags.toml``. Rules see wording, not people: what they miss looks like an ordinary complaint, so
every answer says when to go to the Emergency Department all the same. Other languages are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from localmed.clinical import medicines, negation
from localmed.clinical.tables import in_characters, listed, table
from localmed.clinical.wordings import MEDICINE, Clause, Lexicon, Wording, wordings
from localmed.language import fold

LONGEST = 20  # characters of what is listed as "longer" in the table
TRIED = 20  # places of a sign in a clause that are looked at: where so many are denied, all are

_WITHOUT_APOSTROPHE = re.compile(r"\b(ca|wo|do|does|did|is|are|was|were|has|have|had|could|would|should)nt\b")
_BOUNDARY = re.compile(
    r"[!?;。！？；\n]|\.(?!\d)|,? (?:but|however|although)\b"
    r"|,(?= (?:and |then )?(?:i|he|she|it|they|we|my|his|her|now|suddenly|with|has|have|having)\b)|但|却|不过"
)


@dataclass(frozen=True, slots=True)
class _Sign:
    wordings: tuple[Wording, ...]
    unless: str = ""


@dataclass(frozen=True, slots=True)
class _Table:
    lexicon: Lexicon
    signs: Mapping[str, _Sign]
    context: Mapping[str, tuple[Wording, ...]]
    flags: Mapping[str, tuple[tuple[str, ...], ...]]


@cache
def _table() -> _Table:
    data, lexicon = table("red_flags"), Lexicon()
    lexicon.add(MEDICINE)

    def of(entry: Mapping[str, str]) -> tuple[Wording, ...]:
        both = (
            wordings(entry.get(language, ""), language, data["words"][language], lexicon) for language in ("en", "zh")
        )
        return tuple(wording for made in both for wording in made)

    signs = {name: _Sign(of(entry), entry.get("unless", "")) for name, entry in data["signs"].items()}
    context = {name: of(entry) for name, entry in data["context"].items()}
    flags = {
        name: tuple(tuple(part.strip() for part in one.split("+")) for one in combinations)
        for name, combinations in data["flags"].items()
    }
    return _Table(lexicon, signs, context, flags)


def names() -> tuple[str, ...]:
    """Every flag there is, the first to be named first."""
    return tuple(_table().flags)


def red_flags(text: str) -> tuple[str, ...]:
    """The names of the red flags of ``text``, in the order of the table; none for a text in another language."""
    present = signs(text)
    return tuple(
        name
        for name, combinations in _table().flags.items()
        if any(all(sign in present for sign in combination) for combination in combinations)
    )


def specialties(flags: Sequence[str], language: str) -> tuple[str, ...]:
    """The names of departments that the signs of ``flags`` belong to beside the Emergency Department."""
    entry = table("red_flags")["departments"]
    return tuple(dict.fromkeys(name for flag in flags for name in listed(entry.get(flag, {}).get(language, ""))))


def fits(department: str, flags: Sequence[str]) -> bool:
    """Whether the signs of ``flags`` belong to the ``department`` of that name."""
    folded = fold(department)
    return any(name in folded for language in ("en", "zh") for name in specialties(flags, language))


def signs(text: str) -> frozenset[str]:
    """The signs that somebody has now."""
    made = _table()
    present: set[str] = set()
    for clause in dict.fromkeys(_clauses(text)):
        read = Clause(clause, made.lexicon)
        if _says(read, made.context["asking"]) or (
            _says(read, made.context["past"]) and not _says(read, made.context["again"])
        ):
            continue
        for name, sign in made.signs.items():
            if name in present or not _counts(clause, read, sign):
                continue
            if not (sign.unless and _says(read, made.signs[sign.unless].wordings)):
                present.add(name)
    return frozenset(present)


def _counts(clause: str, read: Clause, sign: _Sign) -> bool:
    """Whether a wording of the sign stands in the clause where nothing denies it."""
    for wording in sign.wordings:
        for number, match in enumerate(read.matches(wording)):
            if number == TRIED:
                break
            if not negation.denied(clause, match.start) and not _cut(clause, match.end):
                return True
    return False


@cache
def _longer() -> re.Pattern[str]:
    entry = table("red_flags")["longer"]
    return re.compile(rf"\b(?:{in_characters(entry['en'])})|{in_characters(entry['zh'])}")


def _cut(clause: str, end: int) -> bool:
    """Whether a wording that ends at ``end`` is the beginning of a longer one of another meaning."""
    return any(match.start() < end < match.end() for match in _longer().finditer(clause, max(0, end - LONGEST)))


def _says(read: Clause, of: tuple[Wording, ...]) -> bool:
    return any(True for wording in of for _ in read.matches(wording))


def _clauses(text: str) -> Iterator[str]:
    """The clauses of the text, folded, each name of a medicine marked."""
    folded = _WITHOUT_APOSTROPHE.sub(r"\1n't", fold(text.replace("’", "'")))
    pieces, done = [], 0
    for mention in medicines.mentions(folded):
        pieces += [folded[done : mention.start], MEDICINE]
        done = mention.start
    marked = "".join((*pieces, folded[done:]))
    start = 0
    for boundary in _BOUNDARY.finditer(marked):
        yield marked[start : boundary.start()]
        start = boundary.start() if boundary[0][0] in "但却不, b" else boundary.end()
    yield marked[start:]
