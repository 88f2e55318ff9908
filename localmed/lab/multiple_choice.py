"""A multiple-choice question to a chat model (LINS): the choice is read from probabilities, never from text.

The options' letters are the labels of a choice. The options are shown in several orders, each option equally often in
each place, and an option's probability is its mean over the orders, so that the model's preference for a place cancels
out; it is reported. Each order is also shown reversed, because the preceding options matter too: on 41 PubMedQA
questions with three options and a 135M model, rotations alone changed 38 % of choices with another seed, with reversals
none.
"""

from __future__ import annotations

import csv
import io
import json
import random
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from itertools import permutations
from math import fsum
from pathlib import Path
from typing import Any

from localmed.answering import evidence as shown
from localmed.answering.chat import TEMPERATURE, TURN_TOKENS, fit
from localmed.answering.roles import instructions
from localmed.domain import Evidence
from localmed.domain.codec import Codec
from localmed.domain.errors import InputError, ModelError, UsageError
from localmed.domain.ports import CountingChat, Message, Request
from localmed.lab.sets import blankless, draw_sample, read_text
from localmed.text.language import clean, detect

Orders = tuple[tuple[int, ...], ...]  # places of the options, in each order that they are shown in

LETTERS = "ABCDEFGHIJ"
MOST_OPTIONS = len(LETTERS)
MOST_IN_EVERY_ORDER = 4  # options: 24 orders; of five there would be 120
REASONING_TOKENS = 256  # of a chain of thought: longer ones of small models repeat themselves
_ANSWER, _CHOOSE, _REASON, _AGAINST = map(instructions, ("mcq_letter", "mcq_choose", "mcq_reason", "mcq_against"))


@dataclass(frozen=True, slots=True)
class Chosen:
    """The probability of each option in the question's order, and the mean probability of each place.

    ``flips`` is the share of orders whose best option differs from that of the mean. ``measured`` is false where the
    model only names letters.
    """

    probabilities: tuple[float, ...]
    places: tuple[float, ...]
    flips: float
    measured: bool

    @property
    def best(self) -> int:
        """The most probable option; the first of equals."""
        return self.probabilities.index(max(self.probabilities))


def orders(count: int, seed: str, every: bool = False) -> Orders:
    """Orders of ``count`` options with each option equally often in each place: rotations and their reversals.

    For two and three options these are all orders. For more, ``seed`` draws the first rotation; with ``every`` and at
    most ``MOST_IN_EVERY_ORDER`` options all permutations are returned.
    """
    if every and count <= MOST_IN_EVERY_ORDER:
        return tuple(permutations(range(count)))
    first = random.Random(seed).sample(range(count), count)  # noqa: S311  (an order, not a secret)
    rotations = [tuple(first[shift:] + first[:shift]) for shift in range(count)]
    return tuple(dict.fromkeys((*rotations, *(order[::-1] for order in rotations))))


def undecided(count: int) -> Chosen:
    """No choice among ``count`` options."""
    return Chosen((1 / count,) * count, (1 / count,) * count, 0.0, True)


def listed(options: Sequence[str], order: Sequence[int]) -> str:
    """The options in ``order``, each after its letter."""
    return "\n".join(f"{letter}. {options[place]}" for letter, place in zip(LETTERS, order, strict=False))


def reasoning(chat: CountingChat, question: str, options: Sequence[str], order: Sequence[int], sample: int = 0) -> str:
    """A chain of thought, perhaps cut off; samples from 1 on are drawn with a temperature."""
    language = detect(question)
    messages = (Message("system", _REASON[language]), Message("user", f"{question}\n{listed(options, order)}"))
    return chat.complete(Request(messages, REASONING_TOKENS, None, TEMPERATURE if sample else 0.0, sample)).text


def choose(
    chat: CountingChat,
    question: str,
    options: Sequence[str],
    option_orders: Orders,
    evidence: Sequence[Evidence] = (),
    thought: str = "",
    against: str = "",
) -> Chosen:
    """The choice of ``chat`` over the ``option_orders``.

    ``thought`` is its reasoning, ``against`` the option that the evidence contradicts. Evidence that exceeds the
    context is dropped from the end, if needed all. Raise ``ModelError`` where the question alone does not fit.
    """
    language = detect(question)
    branches = [f"\n\n{listed(options, order)}\n\n{_ANSWER[language]}" for order in option_orders]
    lines = [question, shown.quoted("notes", thought, language) if thought else ""]
    lines += [_AGAINST[language].format(option=against)] if against else []
    text = "\n".join(filter(None, lines))
    passages = [shown.evidence_text((piece,), language) for piece in evidence]
    if passages:
        counts = chat.count([_CHOOSE[language], text, max(branches, key=len), *passages])
        with suppress(ModelError):  # not even the first fits
            kept = fit(counts[:3], counts[3:], TURN_TOKENS * len(options), chat.identity.context).kept
            text = "\n".join((*(passages[place] for place in kept), text))
    prefix = (Message("system", _CHOOSE[language]), Message("user", text))
    choices = chat.choose(prefix, branches, tuple(LETTERS[: len(options)]))
    by_order = [
        {place: choice.probabilities[at] for at, place in enumerate(order)}
        for order, choice in zip(option_orders, choices, strict=True)
    ]
    means = tuple(fsum(values[place] for values in by_order) / len(by_order) for place in range(len(options)))
    best = means.index(max(means))
    return Chosen(
        means,
        tuple(sum(choice.probabilities[at] for choice in choices) / len(choices) for at in range(len(options))),
        sum(max(values, key=lambda place: values[place]) != best for values in by_order) / len(by_order),
        all(choice.measured for choice in choices),
    )


# --- sets of questions ------------------------------------------------------------------------------------------------

# Sets in public or custom formats are read by a table of field locations (mcq_formats.toml). A record without exactly
# one right option of at least two is skipped and counted.


LAYOUTS = ("lines", "object", "table")
GIVES = ("letter", "key", "number", "text")
MOST_FIELD = 2**20  # characters of one field of a table
_NUMBER = re.compile(r"([0-9]{1,2})(?:\.0)?")  # the place of an option, as a table writes it


@dataclass(frozen=True, slots=True)
class Format:
    """The locations of a record's fields; see mcq_formats.toml."""

    layout: str
    question: str
    answer: str
    gives: str
    options: str | tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    id: str = "id"


@dataclass(frozen=True, slots=True)
class McqQuestion:
    """A question with its options and the place of the right one. Texts are excluded from ``repr``."""

    id: str
    text: str = field(repr=False)
    options: tuple[str, ...] = field(repr=False)
    answer: int


@dataclass(frozen=True, slots=True)
class McqSet:
    """The questions of a file; ``left_out`` counts skipped records."""

    name: str
    questions: tuple[McqQuestion, ...]
    left_out: int


def set_named(name: str, size: int | None, seed: int) -> McqSet:
    """The set ``FORMAT:PATH``, or ``size`` of its questions drawn by ``seed``."""
    shape, colon, file = name.partition(":")
    if not colon or not file:
        raise UsageError("evaluation.mcq_set", name=name)
    whole = load(Path(file), format_named(shape))
    return replace(whole, questions=draw_sample(whole.questions, size, seed))


@cache
def formats() -> Mapping[str, Format]:
    """The public formats by name."""
    text = files("localmed.lab").joinpath("mcq_formats.toml").read_text("utf-8")
    return {name: _format(values, name) for name, values in tomllib.loads(text).items()}


def _format(values: Any, name: str) -> Format:
    with suppress(ValueError):
        made: Format = Codec(()).decode(values, Format)
        if made.layout in LAYOUTS and made.gives in GIVES and bool(made.options) != bool(made.choices):
            return made
    raise InputError("evaluation.mcq_format", file=name)


def format_named(name: str) -> Format:
    """A public format, or a site's own (a TOML file with a [format] table)."""
    if name in formats():
        return formats()[name]
    if not name.endswith(".toml"):
        raise UsageError("evaluation.mcq_unknown", known=tuple(formats()), name=name)
    file, values = Path(name), None
    with suppress(tomllib.TOMLDecodeError):
        values = tomllib.loads(read_text(file)).get("format")
    return _format(values, file.name)


def load(file: Path, shape: Format) -> McqSet:
    """The questions of ``file``; raise ``InputError`` for another format or without questions."""
    try:
        records = _records(file, shape)
    except (ValueError, csv.Error, RecursionError):
        raise InputError("evaluation.mcq_file", file=file.name, layout=shape.layout) from None
    answers = [record.get(shape.answer) for _, record in records]
    first = _first_number(answers, len(shape.options), file) if shape.gives == "number" else 0
    questions: dict[str, McqQuestion] = {}
    for name, record in records:
        if question := _question(blankless(clean(name)), record, shape, first):
            questions.setdefault(question.id, question)
    if not questions:
        raise InputError("evaluation.mcq_none", file=file.name)
    return McqSet(file.stem, tuple(questions.values()), len(records) - len(questions))


def _records(file: Path, shape: Format) -> list[tuple[str, Mapping[str, Any]]]:
    """The records with their names; raise ``ValueError`` or ``csv.Error`` for another layout."""
    text, rows = read_text(file), []
    if shape.layout == "object":
        return [(str(name), row) for name, row in dict(json.loads(text)).items() if isinstance(row, dict)]
    if shape.layout == "table":
        csv.field_size_limit(MOST_FIELD)
        rows = list(csv.DictReader(io.StringIO(text, newline=""), fieldnames=shape.columns or None))
    else:
        rows = [json.loads(line) for line in text.split("\n") if line.strip()]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError
    return [(str(row.get(shape.id) or place), row) for place, row in enumerate(rows, 1)]


def _first_number(answers: Sequence[Any], most: int, file: Path) -> int:
    """0 or 1, the number of the first of ``most`` options; raise ``InputError`` where the file shows neither."""
    numbers = {_number(answer) for answer in answers}
    if (0 in numbers) == (most in numbers):
        raise InputError("evaluation.mcq_numbers", file=file.name)
    return int(most in numbers)


def _number(answer: Any) -> int:
    number = _NUMBER.fullmatch(str(answer).strip())
    return int(number[1]) if number else -1


def _question(name: str, record: Mapping[str, Any], shape: Format, first: int) -> McqQuestion | None:
    text = record.get(shape.question)
    keyed = _options(record, shape)
    if not isinstance(text, str) or not text.strip() or not 2 <= len(keyed) <= MOST_OPTIONS:
        return None
    options = tuple(clean(value) for value in keyed.values())
    place = _answer(record.get(shape.answer), list(keyed), options, shape.gives, first)
    if not 0 <= place < len(options) or len(set(options)) < len(options):
        return None
    return McqQuestion(name, clean(text), options, place)


def _options(record: Mapping[str, Any], shape: Format) -> dict[str, str]:
    """The non-empty options by their keys, in order."""
    if shape.choices:
        return dict(zip(shape.choices, shape.choices, strict=True))
    if isinstance(shape.options, tuple):
        keyed: Any = {key: record.get(name) for key, name in zip(_keys(len(shape.options)), shape.options, strict=True)}
    else:
        keyed = record.get(shape.options)
        with suppress(ValueError):
            keyed = json.loads(keyed) if isinstance(keyed, str) else keyed
        keyed = dict(zip(_keys(len(keyed)), keyed, strict=True)) if isinstance(keyed, list) else keyed
    if not isinstance(keyed, dict):
        return {}
    return {str(key): str(value) for key, value in keyed.items() if value is not None and str(value).strip()}


def _keys(count: int) -> Sequence[str]:
    """Keys for ``count`` options: letters, or numbers above ``MOST_OPTIONS``, where the question is skipped."""
    return LETTERS[:count] if count <= MOST_OPTIONS else [str(place) for place in range(count)]


def _answer(stated: Any, keys: Sequence[str], options: Sequence[str], gives: str, first: int) -> int:
    """The place of the right option; negative if unknown."""
    value = "" if stated is None else str(stated).strip()
    if gives == "number":
        return _number(value) - first
    if gives == "text":
        return options.index(clean(value)) if clean(value) in options else -1
    key = value.upper() if gives == "letter" else value
    if gives == "letter" and key not in keys:
        return LETTERS.find(key) if len(key) == 1 else -1
    return keys.index(key) if key in keys else -1
