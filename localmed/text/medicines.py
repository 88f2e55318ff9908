"""Finds medicines in text by nonproprietary name, brand, Chinese name or combination.

An unlisted name is recognised by the ending of an international nonproprietary name (-pril, 普利). A class ("an ACE
inhibitor") names none of its members. The table is ``medicines.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, pairwise

from localmed.text.language import HAN, fold
from localmed.text.tables import Names, in_characters, in_words, key, listed, rows, table

STEM = 2  # letters before an ending at least; Chinese characters that count with it
_SHORT_STEMS = {"pril": 3, "arin": 3}  # April
_SETTINGS = ("reviewed", "salts", "wider", "reactions", "combinations")
_GIVEN = re.compile(
    r"\b(?:needed|needing|required|requiring|given|gave|treated with|got|received)\b[^,;]*|(?:给予|使用|予以)[^，；]*",
    re.IGNORECASE,
)
_ALLERGIC_TO = re.compile(r"\ballerg(?:y|ies|ic) to $")
_ALLERGY = re.compile(r"[- ]*(?:allerg(?:y|ies|ic)\b(?! to\b)(?!\s*:)|过敏|皮试阳性)")
_TO_CHINESE = re.compile(r"[^，。；,;对]{0,8}过敏")  # behind 对 and a list
_ONE_AND = re.compile(r"\s*(?:,?\s*(?:\band\b|\bor\b)|[&/]|及|和|与|或)\s*")
_COMMA = re.compile(r"\s*[,，、]\s*")
_SENTENCE, _MASK = re.compile(r"[^.。;；\n]+"), "\0"
_NO_ENDING = frozenset(["nystatin", "cholesterol", "histidine", "program", "vir", "phenazone"])


@dataclass(frozen=True, slots=True)
class Mention:
    """A name at ``start:end`` of the folded text.

    ``ingredients`` are nonproprietary names, empty for a class; ``classes`` are theirs.
    """

    start: int
    end: int
    written: str
    ingredients: tuple[str, ...]
    classes: tuple[str, ...]

    @property
    def is_medicine(self) -> bool:
        """Whether it is one medicine or combination: a class has no ingredient, what is also measured no class."""
        return bool(self.ingredients and self.classes)


@dataclass(slots=True)
class _Table:
    """``ingredients`` of each name as it may be written; ``classes`` of each ingredient and class name."""

    ingredients: dict[str, tuple[str, ...]] = field(default_factory=dict)
    classes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    endings: dict[str, tuple[str, ...]] = field(default_factory=dict)
    prefixes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    names: Names = field(default_factory=lambda: Names(()))
    salts: Names = field(default_factory=lambda: Names(()))
    unlisted: re.Pattern[str] = re.compile("(?!)")
    stems: re.Pattern[str] = re.compile("(?!)")  # quick test for unlisted names, ten times as fast


@cache
def _table() -> _Table:
    data, made, written = table("medicines"), _Table(), list[str]()
    for section, entry in data.items():
        if section in _SETTINGS:
            continue
        mixed, shown = entry.get("mixed", False), () if entry.get("measured") else (section,)
        for name in listed(entry.get("named", "")):
            made.ingredients[key(name)] = ()
            made.classes[key(name)] = (key(name),) if mixed else (section,)
            written.append(name)
        for ending in listed(entry.get("endings", "")):
            made.endings[ending] = () if mixed else shown
        for prefix in listed(entry.get("prefixes", "")):
            made.prefixes[prefix] = shown
        for cells in rows(entry.get("members", "")):
            names = [cells[0], *(name for cell in cells[1:3] for name in listed(cell))]
            made.ingredients.update((key(name), (cells[0],)) for name in names)
            made.classes[cells[0]] = (cells[0],) if mixed else shown
            written += names
    for cells in rows(data["combinations"]["members"]):
        names = [cells[0], *(name for cell in cells[1:3] for name in listed(cell))]
        made.ingredients.update((key(name), tuple(listed(cells[3]))) for name in names)
        written += names
    made.names, made.salts = Names(written), Names(listed(data["salts"]["english"]))
    made.unlisted = _unlisted(made)
    ends = "|".join(name for name in made.endings if name.isascii())
    others = "|".join(
        (*(rf"(?<![a-z]){name}" for name in made.prefixes), *(it for it in made.endings if not it.isascii()))
    )
    made.stems = re.compile(rf"(?:{ends})s?(?![a-z])|{others}")
    return made


def _unlisted(made: _Table) -> re.Pattern[str]:
    """Names recognised by their ending or beginning."""
    english = [name for name in made.endings if name.isascii()]
    chinese = [name for name in made.endings if not name.isascii()]
    ended = "|".join(
        rf"[a-z]{{{_SHORT_STEMS.get(name, STEM)},25}}(?P<{name}>{name})s?(?![a-z])"
        for name in sorted(english, key=len, reverse=True)
    )
    begun = "|".join(rf"(?P<_{name}>{name})[a-z]{{3,25}}(?![a-z])" for name in made.prefixes)
    han = "|".join(sorted(chinese, key=len, reverse=True))
    return re.compile(rf"(?<![a-z])(?:{ended}|{begun})|[{HAN}]{{{STEM}}}(?P<han>{han})")


_OF_A_MAN = ("elderly ", "old ", "young ", " yo ", "y/o ", "nice ")  # "an elderly gent" is no gentamicin


def mentions(text: str) -> list[Mention]:
    """The medicines of ``text``, in order."""
    made, folded = _table(), fold(text)
    listed_mentions = list(_listed(made, folded))
    blanked = _without(folded, [(mention.start, mention.end) for mention in listed_mentions])
    return sorted(chain(listed_mentions, _by_ending(made, blanked)), key=lambda mention: mention.start)


def _listed(made: _Table, folded: str) -> Iterator[Mention]:
    salts = {match.start: match.end for match in made.salts.matches(folded)}
    covered = 0
    for match in made.names.matches(folded):
        if match.start < covered:
            continue  # the salt of the one before
        if match.name == "gent" and folded.endswith(_OF_A_MAN, 0, match.start):
            continue
        covered = end = match.end
        while (after := end + 1) in salts and folded[end] in " -/":
            covered = end = salts[after]
        ingredients = made.ingredients[match.name]
        named = ingredients or (match.name,)
        classes = dict.fromkeys(name for one in named for name in made.classes.get(one, ()))
        yield Mention(match.start, match.end, folded[match.start : match.end], ingredients, tuple(classes))


def _by_ending(made: _Table, folded: str) -> Iterator[Mention]:
    for match in made.unlisted.finditer(folded) if made.stems.search(folded) else ():
        ending = match["han"] or next(name for name, part in match.groupdict().items() if part)
        written = match[0] if match["han"] or ending.endswith("s") else match[0].removesuffix("s")
        if written in _NO_ENDING:
            continue
        name = written[1:] if match["han"] else written  # the first of two characters may be another word's
        classes = made.prefixes[ending[1:]] if ending.startswith("_") else made.endings[ending]
        yield Mention(match.start(), match.end(), match[0], (name,), classes or (name,))


def _without(folded: str, spans: list[tuple[int, int]]) -> str:
    """``folded`` with blanks for ``spans``."""
    pieces, done = [], 0
    for start, end in spans:
        pieces += [folded[done:start], " " * (end - start)]
        done = end
    return "".join((*pieces, folded[done:]))


def words(text: str, by_ending: bool = True) -> frozenset[str]:
    """The words of ``text`` in names of medicines or salts; without ``by_ending`` only listed ones."""
    made, folded = _table(), fold(text)
    salts = (match.name for match in made.salts.matches(folded))
    found = mentions(text) if by_ending else _listed(made, folded)
    return frozenset(" ".join((*salts, *(mention.written for mention in found))).split())


def ingredients(text: str) -> frozenset[str]:
    """The ingredients of ``text`` by nonproprietary name."""
    return frozenset(name for mention in mentions(text) for name in mention.ingredients)


def names(text: str) -> frozenset[str]:
    """The ingredients of ``text`` and their classes."""
    return frozenset(name for mention in mentions(text) for name in (*mention.ingredients, *mention.classes))


def meant(text: str) -> frozenset[str]:
    """The ingredients that ``text`` names, and the classes that it names by themselves or by a wider word."""
    words, of = _wider(False)
    wider = (name for match in words.matches(fold(text)) for name in of[match.name])
    return frozenset(chain(wider, *(it.ingredients or it.classes for it in mentions(text))))


def met_by(allergy: str, text: str) -> tuple[str, ...]:
    """The names in ``text`` with an ingredient or class of ``allergy``, or of a class that may react like it.

    What was given for it is no allergen: "penicillin (anaphylaxis, needed adrenaline)". It is in "rash when
    given penicillin".
    """
    allergic = mentions(_GIVEN.sub(" ", allergy)) or mentions(allergy)
    classes = {name for mention in allergic for name in mention.classes}
    own = classes.union(*(_related()[name] for name in classes & _related().keys()))
    taken = {name for mention in allergic for name in mention.ingredients}
    met = (it for it in mentions(text) if own & {*it.classes} or taken & {*it.ingredients})
    return tuple(dict.fromkeys(mention.written for mention in met))


def allergens(text: str) -> tuple[Mention, ...]:
    """The medicines that ``text`` says somebody is allergic to: "allergic to A, B and C", "A allergy", "对A、B过敏"."""
    folded = fold(text)
    return tuple(it for one in _lists(folded) for it in _allergens(folded, one))


def without_denied_allergens(text: str, said: str) -> str:
    """``text`` without the medicines to which ``said`` everywhere denies an allergy, or tells of a relative's."""
    folded = fold(said)
    every = [one.written for one in mentions(folded)]
    denied = [one for sentence in _SENTENCE.findall(folded) for one in _denied_allergens(sentence)]
    away = {name for name in denied if denied.count(name) == every.count(name)}
    return _without(fold(text), [(one.start, one.end) for one in mentions(text) if one.written in away])


def _denied_allergens(sentence: str) -> list[str]:
    found, masked, (frame, answered, reaction, but) = mentions(sentence), sentence, _no_allergy()
    if but.search(sentence):
        return []
    for one in found:
        masked = masked[: one.start] + _MASK * (one.end - one.start) + masked[one.end :]
    spans = [
        match.span("items")
        for match in frame.finditer(masked)
        if match["denies"] or match["after"] or reaction.search(match["between"])
    ]
    spans += [match.span("items") for match in answered.finditer(masked)]
    return [one.written for one in found if any(start <= one.start < end for start, end in spans)]


@cache
def _no_allergy() -> tuple[re.Pattern[str], ...]:
    """What denies an allergy or tells of a relative's, what answers a label, a word for an allergy, what undoes it."""
    entry = {**table("records")["no_allergy"], "relative_en": table("records")["relative"]["en"]}
    words = {name: in_words(one) if name.endswith("en") else in_characters(one) for name, one in entry.items()}
    joint = rf"(?:[、/]|[或及和与]|,?\s*\b(?:or|nor|and)\b|[,，](?=(?:\s*{_MASK}+\s*[,，]?)*\s*\b(?:or|nor)\b))"
    before = rf"(?P<denies>\b(?:{words['denies_en']})|{words['denies_zh']})|\b(?:{words['no_en']})|{words['no_zh']}"
    of_relative = rf"(?<!my )\b(?:{words['relative_en']})(?:\s*[:：-])?|(?:{words['relative_zh']})\s*[:：]?"
    between = rf"(?:\s*(?:\b(?:{words['between_en']}|{words['has_en']})|{words['between_zh']}))*"
    return (
        re.compile(
            rf"(?<!not )(?:{before}|{of_relative})(?P<between>{between})\s*"
            rf"(?P<items>{_MASK}+(?:\s*{joint}\s*{_MASK}+)*)"
            r"(?P<after>\s*(?:allerg(?:y|ies)\b|hypersensitivity\b|sensitivity\b|类?药?物?过敏))?"
        ),
        re.compile(
            rf"(?P<items>{_MASK}+)\s*(?:allerg(?:y|ies)|过敏史?)\s*[:：]\s*(?:no|none|nil|denied|denies|无|否认)\s*$"
        ),
        re.compile(r"allerg|reacti|rash|sensitiv|intoleran|anaphyla|过敏"),
        re.compile(rf"\b(?:{words['but_en']})|{words['but_zh']}"),
    )


def _lists(folded: str) -> list[list[Mention]]:
    """The medicines of ``folded``, in lists that only commas, "and" or "or" part."""
    lists = list[list[Mention]]()
    for one in mentions(folded):
        end = lists[-1][-1].end if lists else len(folded)
        if _COMMA.fullmatch(folded, end, one.start) or _ONE_AND.fullmatch(folded, end, one.start):
            lists[-1].append(one)
        else:
            lists.append([one])
    return lists


def _allergens(folded: str, listed: list[Mention]) -> list[Mention]:
    """Those of a list beside a word for an allergy, as far as "and" goes on: another medicine may follow a comma."""
    joint = [bool(_ONE_AND.fullmatch(folded, one.end, other.start)) for one, other in pairwise(listed)]
    before, end = folded[: listed[0].start].rstrip(), listed[-1].end
    if before.endswith("对") and _TO_CHINESE.match(folded, end):
        return listed
    to, of = _ALLERGIC_TO.search(f"{before[-20:]} "), _ALLERGY.match(folded, end)
    last = max((place + 1 for place, is_joint in enumerate(joint) if is_joint), default=0)
    first = max((place + 1 for place, is_joint in enumerate(joint) if not is_joint), default=0)
    return listed[: last + 1] if to else listed[first:] if of else []


def named_in(taken: str, text: str) -> tuple[str, ...]:
    """The names in ``text`` of the medicines ``taken``, of their classes, or of several classes ("anticoagulant")."""
    own, found = mentions(taken), mentions(text)
    known, classes = {name for it in own for name in it.ingredients}, {name for it in own for name in it.classes}
    known |= {name.split()[0] for name in known}  # "insulin" of insulin glargine
    words, of = _wider(False)
    met = [it.written for it in found if (known & {*it.ingredients} if it.ingredients else classes & {*it.classes})]
    rest = _without(
        fold(text), [(it.start, it.end) for it in found if it.written not in of]
    )  # "direct oral anticoagulants" are one class
    met += [match.name for match in words.matches(rest) if classes & of[match.name]]
    return tuple(dict.fromkeys(met))


def classes_meant(text: str, many: bool = False) -> frozenset[str]:
    """The classes that ``text`` names, by themselves or by a word for several (or ``many``) outside of other names."""
    words, of = _wider(many)
    found = mentions(text)
    rest = _without(fold(text), [(it.start, it.end) for it in found if it.written not in of])
    wider = (name for match in words.matches(rest) for name in of[match.name])
    return frozenset(chain(wider, *(it.classes for it in found if not it.ingredients)))


@cache
def _wider(many: bool) -> tuple[Names, Mapping[str, frozenset[str]]]:
    """Words for several classes, and the classes of each; with ``many`` words for very many too ("antibiotic")."""
    entry = table("medicines")["wider"]
    of = {
        key(name): frozenset(listed(cells[1]))
        for cells in rows("\n".join((entry["words"], entry["many"] if many else "")))
        for name in listed(cells[0])
    }
    return Names(of), of


@cache
def _related() -> Mapping[str, frozenset[str]]:
    """Of a class: the classes that may react like it, either way."""
    pairs = [
        (one, other) for one, others in rows(table("medicines")["reactions"]["classes"]) for other in listed(others)
    ]
    both = (*pairs, *((other, one) for one, other in pairs))
    return {name: frozenset(other for one, other in both if one == name) for name, _ in both}


def is_combination(ingredients: Iterable[str]) -> bool:
    """Whether a listed product has exactly these ingredients."""
    wanted = frozenset(ingredients)
    return any(len(held) > 1 and wanted == {*held} for held in _table().ingredients.values())


def name_in(language: str, *ingredients: str) -> str:
    """The name of an ingredient, or of a combination, in ``language``, or ""."""
    if language == "en" and len(ingredients) == 1:
        return ingredients[0]
    return next((name for name in same(ingredients) if name.isascii() is (language == "en")), "")


def members(name: str) -> tuple[str, ...]:
    """The ingredients of the class ``name``."""
    return tuple(ingredient for ingredient, classes in _table().classes.items() if name in classes)


def class_names(name: str) -> tuple[str, ...]:
    """The listed names of the class ``name``; none if it is its only member."""
    made = _table()
    written = (word for word, held in made.ingredients.items() if not held and name in made.classes.get(word, ()))
    return tuple(written) if any(member != name for member in members(name)) else ()


def same(ingredients: tuple[str, ...]) -> tuple[str, ...]:
    """The listed names of the medicine with these ``ingredients``, nonproprietary first."""
    return _by_ingredients().get(ingredients, ()) if ingredients else ()


@cache
def _by_ingredients() -> Mapping[tuple[str, ...], tuple[str, ...]]:
    names: dict[tuple[str, ...], tuple[str, ...]] = {}
    for name, ingredients in listed_names().items():
        names[ingredients] = (*names.get(ingredients, ()), name)
    return names


def listed_names() -> Mapping[str, tuple[str, ...]]:
    """All listed names with their ingredients; classes have none."""
    return _table().ingredients
