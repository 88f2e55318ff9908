"""Pairs to train the starter entailment model on, drawn from our own frames (``frames.toml``). Seeded.

What a claim and a finding say of the same two names gives the label. Other names of the same kind, a finding of another
kind about one of the names, or one that nobody knows yet, make the pair neutral.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Label = Literal["entailment", "neutral", "contradiction"]
LABELS: tuple[Label, ...] = ("entailment", "neutral", "contradiction")

FRAMES = Path(__file__).with_name("frames.toml")
_NOT_FAMILIES = ("fillers", "names")
_CONTEXT = 0.35  # of the findings stand in a sentence or two of context, as in an abstract


@dataclass(frozen=True, slots=True)
class Example:
    """A pair with its label."""

    premise: str
    hypothesis: str
    label: Label


def relation(claim: str, finding: str) -> Label:
    """What a ``finding`` (yes, no, opposite, unknown) does to a ``claim`` of the same two names."""
    if finding == "unknown":
        return "neutral"
    return "entailment" if claim == finding or (claim, finding) == ("no", "opposite") else "contradiction"


class Frames:
    """Draws pairs from the families of ``frames.toml``."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._all: dict[str, Any] = tomllib.loads(FRAMES.read_text("utf-8"))
        self._families = [name for name in self._all if name not in _NOT_FAMILIES]

    def pairs(self, count: int) -> list[Example]:
        """``count`` pairs, a third of them of each label, as far as the frames go."""
        makers = (self._labelled("entailment"), self._labelled("contradiction"), self._neutral)
        return [makers[number % 3]() for number in range(count)]

    def _labelled(self, label: Label) -> Callable[[], Example]:
        def make() -> Example:
            while True:
                family = self._all[self._draw.choice(self._families)]
                claim, finding = self._draw.choice(list(family["claims"])), self._draw.choice(list(family["findings"]))
                if relation(claim, finding) == label:
                    names = self._names(family)
                    return self._example(family, claim, names, family, finding, names, label)

        return make

    def _neutral(self) -> Example:
        family = self._all[self._draw.choice(self._families)]
        claim = self._draw.choice(list(family["claims"]))
        names = self._names(family)
        finding = self._draw.choice(list(family["findings"]))
        others = dict(names)
        way = self._draw.random()
        if way < 0.3:
            finding = "unknown"
        elif way < 0.85:
            for slot in self._draw.choice((("a",), ("b",), ("a", "b"))):
                others[slot] = self._other(family[slot], names[slot])
        else:
            return self._elsewhere(family, claim, names)
        return self._example(family, claim, names, family, finding, others, "neutral")

    def _elsewhere(self, family: Mapping[str, Any], claim: str, names: Mapping[str, str]) -> Example:
        """A finding of another kind about one of the same names, where some family has it."""
        kinds = {family["a"]: names["a"], family["b"]: names["b"]}
        found = [
            other
            for each in self._families
            if (other := self._all[each]) is not family and (other["a"] in kinds or other["b"] in kinds)
        ] or [family]
        other = self._draw.choice(found)
        theirs = self._names(other)
        for slot in ("a", "b"):
            theirs[slot] = kinds.get(other[slot], theirs[slot])
        finding = self._draw.choice(list(other["findings"]))
        if other is family:
            finding = "unknown"
        return self._example(family, claim, names, other, finding, theirs, "neutral")

    def _example(
        self, family: Mapping[str, Any], claim: str, names: Mapping[str, str],
        other: Mapping[str, Any], finding: str, theirs: Mapping[str, str], label: Label,
    ) -> Example:  # fmt: skip
        fillers = self._all["fillers"]
        hypothesis = self._filled(family["claims"][claim], names, fillers["claim_before"], fillers["claim_after"])
        premise = self._filled(other["findings"][finding], theirs, fillers["finding_before"], fillers["finding_after"])
        premise = premise.rstrip(".") + "."
        if self._draw.random() < _CONTEXT:
            around = self._draw.choice(fillers["context"])
            premise = f"{around} {premise}" if self._draw.random() < 0.5 else f"{premise} {around}"
        return Example(premise, hypothesis, label)

    def _filled(
        self, frames: Sequence[str], names: Mapping[str, str], before: Sequence[str], after: Sequence[str]
    ) -> str:
        text = self._draw.choice(before) + self._draw.choice(frames).format(**names) + self._draw.choice(after)
        return text[:1].upper() + text[1:]

    def _names(self, family: Mapping[str, Any]) -> dict[str, str]:
        return {slot: self._draw.choice(self._all["names"][family[slot]]) for slot in ("a", "b")}

    def _other(self, kind: str, name: str) -> str:
        """Another name of ``kind`` that is not part of this one, nor this of it."""
        all_names = self._all["names"][kind]
        return str(self._draw.choice([each for each in all_names if each not in name and name not in each]))
