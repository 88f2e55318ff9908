"""Units in English and Chinese, and their conversion (``units.toml``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from localmed.text.tables import listed, rows, table

_COUNTED = ("tablet", "capsule", "puff", "drop")  # what a dose may be counted in
READ = ("amounts", "times", "counts")  # sections whose units sources are read by; orders use the rest as well


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: ``scale`` of it make one of its ``kind``; ``written`` are its names, ``in_orders`` further ones."""

    name: str
    kind: str
    scale: float
    written: tuple[str, ...]
    in_orders: tuple[str, ...]


@cache
def units(section: str) -> tuple[Unit, ...]:
    """The units of a section of the table."""
    return tuple(_unit(*cells) for cells in rows(table("units")[section]))


def _unit(name: str, kind: str, scale: str, written: str, in_orders: str = "") -> Unit:
    return Unit(name, kind, float(scale), tuple(listed(written)), tuple(listed(in_orders)))


@cache
def by_name(section: str) -> Mapping[str, tuple[str, float]]:
    """Kind and scale of each name of a section's units; a plural s included."""
    return {form: (unit.kind, unit.scale) for unit in units(section) for name in unit.written for form in _forms(name)}


def _forms(name: str) -> tuple[str, ...]:
    return (name, f"{name}s") if len(name) > 3 and name.isascii() and name[-1].isalpha() else (name,)


def pattern(names: Mapping[str, object]) -> str:
    """The ``names`` as alternatives of a regular expression, the longest first; none that begins another word."""
    not_before = table("units")["not_before"]
    return "|".join(
        re.escape(name) + (f"(?![{not_before[name]}])" if name in not_before else "")
        for name in sorted(names, key=lambda name: (-len(name), name))
    )


@cache
def divisors() -> Mapping[str, str]:
    """Divisors of amounts by name."""
    return {name: shown for shown, names in rows(table("units")["divisors"]) for name in listed(names)}


@cache
def rates() -> tuple[str, ...]:
    """Names of times in rates."""
    return tuple(listed(table("units")["rates"]))


def shown(name: str) -> str:
    """The usual spelling of a folded unit."""
    return str(table("units")["shown"].get(name, name))


@cache
def dose_names(counted: bool = False) -> str:
    """How a dose's unit is written, as a regular expression: a mass, a volume or units; tablets too if ``counted``."""
    sections = ("amounts", "counts") if counted else ("amounts",)
    every = (unit for section in sections for unit in units(section) if section == "amounts" or unit.name in _COUNTED)
    kinds = ("mg", "mL", "units")
    chosen = (unit for unit in every if unit.kind in kinds or unit.name in _COUNTED)
    return pattern(dict.fromkeys(name for unit in chosen for name in (*unit.written, *unit.in_orders)))


@cache
def dose(counted: bool = False) -> re.Pattern[str]:
    """A number with the unit of a dose, in folded text or as written in small letters."""
    return re.compile(rf"\d[\d.,]{{0,12}}\s?(?:{dose_names(counted)})s?(?![a-z/])", re.IGNORECASE)


def in_orders() -> Iterator[tuple[str, str]]:
    """Each unit that an order may name, and how it is written there, as a regular expression."""
    for section in (*READ, "packs"):
        for unit in units(section):
            yield unit.name, pattern(dict.fromkeys((*unit.written, *unit.in_orders)))
