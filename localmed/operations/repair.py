"""Putting right what is damaged, from what is whole. Nothing is guessed: what has no whole copy comes from a backup."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from localmed.domain import Message, message
from localmed.errors import Damaged, NoLibrary
from localmed.library import generations, served

if TYPE_CHECKING:
    from localmed.session import Session


@dataclass(frozen=True, slots=True)
class Step:
    """What was ``found``, and the generation to be served in place of what is."""

    found: Message
    number: int


def plan(data: Path) -> Step | None:
    """What can be put right; None if nothing is wrong with what is served. Every byte of it is read.

    Served is then what was served last and is whole. Raise ``Damaged`` where no generation is.
    """
    try:
        path = generations.current(data)
        found = _problem(path)
        if found is None:
            return None
    except NoLibrary:
        return None
    except Damaged as error:
        found = error.messages[0]
    for number in _candidates(data):
        if _problem(generations.path_of(data, number)) is None:
            return Step(found, number)
    raise Damaged("generation.none_whole", data=str(data))


def repair(session: Session, step: Step) -> None:
    """Do what ``plan`` has shown."""
    with session.change("repair", f"generation {step.number}") as change:
        with generations.lock_writer(session.data):
            generations.switch(session.data, step.number)
        change.generation, change.outcome = step.number, "served"


def _problem(generation: Path) -> Message | None:
    """What is wrong with ``generation``, if anything."""
    try:
        problems = generations.check(generation, whole=True)
    except Damaged as error:
        return error.messages[0]
    return message("generation.damaged.what", name=generation.name, problem=problems[0]) if problems else None


def _candidates(data: Path) -> list[int]:
    """The generations there are: the one that was served last, then the newest first."""
    there, last = generations.numbers(data), 0
    with suppress(Damaged):
        swaps = served.swaps(generations.folder(data))
        last = swaps[-1].number if swaps else 0
    return sorted(there, key=lambda number: (number != last, -number))
