"""Blinded human review: codes, forms, and reading filled forms.

Each reviewer gets every case; cases, and the answers of each, are in an order of the reviewer's own (LINS, "Evaluation
methodology").
Forms identify answers by codes; a separate key maps codes to systems. Quality-control cases have an answer with a known
rating; a reviewer who misses one is excluded (LINS, AEBMP stage 1). On every dimension a higher value is better.

This module does no file access; ``lab/review.py`` and the pages do.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import random
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from localmed.domain import Message
from localmed.domain.errors import InputError, UsageError
from localmed.lab.sets import objects
from localmed.process.files import csv_text
from localmed.text.language import clean

Option = tuple[int, str]  # the stored value, and the end of its message code

MOST_CASES = 5000
MOST_REVIEWERS = 200  # LINS had 100 resident physicians
MOST_CHARACTERS = 20_000  # of one answer
FIXED = ("code", "number", "question", "answer")  # the columns of a form before those of its dimensions
CONTROL = "control:"  # prefix of quality-control cases in the key
_MARKER = re.compile(r"\s?[\[［【]\d{1,3}(?:\s?[,，、;-]\s?\d{1,3})*[\]］】]")  # [1], [2, 3], ［4］


@dataclass(frozen=True, slots=True)
class Dimension:
    """A rated property with its options, worst first."""

    name: str
    options: tuple[Option, ...]

    @property
    def values(self) -> tuple[int, ...]:
        """The stored values, worst first."""
        return tuple(value for value, _ in self.options)

    @property
    def question(self) -> Message:
        """The question to the reviewer."""
        return Message(f"review.question.{self.name}")


def _forms() -> dict[str, tuple[Dimension, ...]]:
    table = tomllib.loads(resources.files("localmed.lab").joinpath("review_forms.toml").read_text("utf-8"))
    scales = {name: tuple((value, word) for word, value in words.items()) for name, words in table["scales"].items()}
    named = {form: [text.split() for text in texts] for form, texts in table["forms"].items()}
    return {
        form: tuple(Dimension(name, scales[scale[0] if scale else "yes_no"]) for name, *scale in texts)
        for form, texts in named.items()
    }


FORMS: Mapping[str, tuple[Dimension, ...]] = _forms()


@dataclass(frozen=True, slots=True)
class Case:
    """A question with the answer of each system. ``control``: (system, dimension) -> right value."""

    id: str
    question: str = field(repr=False)
    answers: Mapping[str, str] = field(repr=False)
    control: Mapping[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the key: the answer of a code. ``control``: dimension -> right value."""

    code: str
    reviewer: str
    case: str
    system: str
    control: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Block:
    """A case as shown to a reviewer: number, question, and (code, answer) in the reviewer's order."""

    number: int
    question: str = field(repr=False)
    answers: tuple[tuple[str, str], ...] = field(repr=False)


Sheets = Mapping[str, tuple[Block, ...]]  # the sheet of each reviewer


@dataclass(frozen=True, slots=True)
class Key:
    """The mapping of all codes, kept from the reviewers until all forms are back."""

    form: str
    seed: int
    entries: tuple[Entry, ...]

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions of the form."""
        return FORMS[self.form]


@dataclass(frozen=True, slots=True)
class Rating:
    """A value given by a reviewer."""

    reviewer: str
    case: str
    system: str
    dimension: str
    value: int


# --- cases ------------------------------------------------------------------------------------------------------------


def cases(text: str, name: str, form: str) -> tuple[Case, ...]:
    """The cases of JSON lines; raise ``InputError`` naming the line, without its text.

    A line has an id, a question, and ``answers`` (system -> text) or a ``system`` with its ``answer``; lines with the
    same id are one case. ``control``: system -> dimension -> right value.
    """
    rows: dict[str, tuple[str, dict[str, str], dict[tuple[str, str], int]]] = {}
    offered = {dimension.name: dimension.values for dimension in FORMS[form]}
    try:
        for place, value in objects(text, name):
            _add(rows, value, place, offered)
    except (ValueError, TypeError, KeyError):
        raise InputError("review.line", place=place) from None
    if not 1 <= len(rows) <= MOST_CASES:
        raise InputError("review.cases", file=name, count=len(rows), most=MOST_CASES)
    made = tuple(Case(key, *row) for key, row in rows.items())
    if strange := [case.id for case in made if {system for system, _ in case.control} - set(case.answers)]:
        raise InputError("review.control", place=f"{name}: {strange[0]}")
    systems = {frozenset(case.answers) for case in made if not case.control}
    if len(systems) != 1 or len(next(iter(systems))) < 2:
        raise InputError("review.systems", file=name)
    return made


def _add(rows: dict[str, Any], value: dict[str, Any], place: str, offered: Mapping[str, Sequence[int]]) -> None:
    """Add a line to its case; raise ``ValueError``, ``TypeError`` or ``KeyError`` if it is invalid."""
    json.dumps(value, ensure_ascii=False).encode()  # half a character is in no file
    question, new = str(value["question"]), dict(value.get("answers") or {value["system"]: value["answer"]})
    asked, answers, control = rows.setdefault(str(value["id"]), (question, {}, {}))
    usable = all(isinstance(text, str) and 0 < len(text.strip()) <= MOST_CHARACTERS for text in new.values())
    if not usable or question != asked or set(answers) & set(new):
        raise ValueError
    answers.update(new)
    for system, values in dict(value.get("control") or {}).items():
        for dimension, right in dict(values).items():
            if right not in offered.get(dimension, ()):
                raise InputError("review.control", place=place)
            control[system, dimension] = int(right)


def without_markers(text: str) -> str:
    """``text`` without citation markers, which would reveal the system."""
    return _MARKER.sub("", clean(text))


# --- blinding ---------------------------------------------------------------------------------------------------------


def make_sheets(
    every_case: Sequence[Case], reviewers: Sequence[str], form: str, seed: int, markers: bool = False
) -> tuple[Sheets, Key]:
    """A sheet for each of ``reviewers`` and the key of all, deterministic for a seed."""
    if len(set(reviewers)) != len(reviewers) or not 1 <= len(reviewers) <= MOST_REVIEWERS:
        raise UsageError("review.reviewers", most=MOST_REVIEWERS)
    sheets: dict[str, tuple[Block, ...]] = {}
    entries: list[Entry] = []
    for place, reviewer in enumerate(reviewers, 1):
        chance = random.Random(f"{seed} {reviewer}")  # noqa: S311  (an order, not a secret)
        blocks = []
        for number, case in enumerate(_shuffled(every_case, chance), 1):
            systems = _shuffled(sorted(case.answers), chance)
            codes = [f"{place}-{number}-{chr(ord('a') + letter)}" for letter in range(len(systems))]
            entries += [_entry(code, reviewer, case, system) for code, system in zip(codes, systems, strict=True)]
            texts = [case.answers[system] if markers else without_markers(case.answers[system]) for system in systems]
            blocks.append(Block(number, case.question, tuple(zip(codes, texts, strict=True))))
        sheets[reviewer] = tuple(blocks)
    return sheets, Key(form, seed, tuple(entries))


def _shuffled(values: Sequence[Any], chance: random.Random) -> list[Any]:
    return chance.sample(list(values), len(values))


def _entry(code: str, reviewer: str, case: Case, system: str) -> Entry:
    control = {dimension: value for (of, dimension), value in case.control.items() if of == system}
    return Entry(code, reviewer, f"{CONTROL}{case.id}" if case.control else case.id, system, control)


# --- forms and key as text --------------------------------------------------------------------------------------------


def sheet_csv(sheet: Sequence[Block], form: str) -> str:
    """The form as a table: a row for each answer, an empty column for each dimension."""
    names = [dimension.name for dimension in FORMS[form]]
    rows: list[Sequence[object]] = [(*FIXED, *names)]
    for block in sheet:
        rows += [(code, block.number, block.question, text, *([""] * len(names))) for code, text in block.answers]
    return csv_text(rows)


def key_of(text: str, name: str) -> Key:
    """The key in a JSON file; raise ``InputError`` if it is invalid."""
    with suppress(ValueError, TypeError, KeyError, OverflowError, RecursionError):
        value = json.loads(text)
        entries = tuple(Entry(**row) for row in value["entries"])
        whole = all(isinstance(part, str) for one in entries for part in (one.code, one.reviewer, one.case, one.system))
        whole = whole and all(isinstance(entry.control, dict) for entry in entries)
        if whole and value["form"] in FORMS and len({entry.code for entry in entries}) == len(entries) > 0:
            return Key(value["form"], int(value["seed"]), entries)
    raise InputError("review.key", file=name)


def ratings(text: str, name: str, key: Key) -> dict[str, dict[str, int]]:
    """The ratings in a filled form: code -> dimension -> value; an empty cell is no rating.

    Raise ``InputError`` naming the line for an unknown code or value.
    """
    entries = {entry.code: entry for entry in key.entries}
    filled: dict[str, dict[str, int]] = {}
    for number, row in enumerate(_table(text, name), 2):
        code = (row.get("code") or "").strip().lstrip("'")
        if code not in entries or code in filled:
            raise InputError("review.code", place=f"{name}:{number}")
        filled[code] = {
            dimension.name: _value(cell, dimension, f"{name}:{number}")
            for dimension in key.dimensions
            if (cell := (row.get(dimension.name) or "").strip().lstrip("'"))
        }
    return filled


def decode(content: bytes) -> str:
    """The text of a filled form in the encoding of any spreadsheet program.

    Codes and values are ASCII in all of them; other text is not read.
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", "replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _table(text: str, name: str) -> list[dict[str, str]]:
    """The rows of a table separated by commas, semicolons or tabs."""
    head = text.partition("\n")[0]
    delimiter = max(",;\t", key=head.count)
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        rows = list(reader)
    except csv.Error:
        raise InputError("review.table", file=name) from None
    if "code" not in (reader.fieldnames or ()):
        raise InputError("review.table", file=name)
    return [row for row in rows if any(isinstance(cell, str) and cell.strip() for cell in row.values())]


def _value(cell: str, dimension: Dimension, place: str) -> int:
    for value in dimension.values:
        if cell in (str(value), f"{value}.0", f"+{value}"):
            return value
    raise InputError("review.value", place=place, dimension=dimension.name, offered=tuple(map(str, dimension.values)))


def merge_ratings(
    forms: Iterable[Mapping[str, Mapping[str, int]]], key: Key
) -> tuple[tuple[Rating, ...], tuple[str, ...]]:
    """All ratings of reviewers who passed every control case, and the reviewers who did not.

    A reviewer without any rating is in neither.
    """
    values: dict[str, Mapping[str, int]] = {}
    for form in forms:
        if twice := set(form) & set(values):
            raise InputError("review.twice", code=min(twice))
        values.update(form)
    present = {entry.reviewer for entry in key.entries if values.get(entry.code)}
    missed = {
        entry.reviewer
        for entry in key.entries
        if any(values.get(entry.code, {}).get(name) != right for name, right in entry.control.items())
    }
    kept = tuple(
        Rating(entry.reviewer, entry.case, entry.system, dimension, value)
        for entry in key.entries
        if entry.reviewer in present - missed and not entry.case.startswith(CONTROL)
        for dimension, value in values.get(entry.code, {}).items()
    )
    return kept, tuple(sorted(present & missed))
