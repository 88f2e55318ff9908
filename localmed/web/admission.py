"""Admission: how many answers are made at once, and who waits. Others are refused with an estimate of the wait.

A place is taken before the reply begins, so that a refusal is a status (429). Places are served in order of arrival,
and each user has few, so that nobody fills the queue. Search and pages take no place. Each worker process has its
own queue.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from localmed.config import WebSettings
from localmed.domain import message
from localmed.domain.errors import QueueFull
from localmed.process.hooks import Hooks

LOOK = 0.25  # seconds between two looks whether whoever waits has given up
BEGUN_WITHIN = 30.0  # seconds: a place that nobody takes up is given away
FIRST_GUESS = 2.0  # seconds of an answer, until some were timed
SMOOTHING = 0.2  # of the mean over the latest answers


@dataclass(eq=False)
class _Place:
    user: str
    entered: float
    begun: bool = False


@dataclass
class Queue:
    """The places of one process, active ones first."""

    at_once: int
    waiting: int
    for_one: int
    seconds: float = FIRST_GUESS  # that an answer takes, lately
    _places: list[_Place] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    @classmethod
    def of(cls, settings: WebSettings) -> Queue:
        """The queue that the settings describe."""
        return cls(settings.answers_at_once, settings.answers_waiting, settings.answers_for_one)

    def enter(self, user: str) -> _Place:
        """A place for ``user``; raise ``QueueFull`` with an estimate in seconds if there is none."""
        with self._changed:
            now = time.monotonic()
            self._places = [one for one in self._places if one.begun or now - one.entered < BEGUN_WITHIN]
            own = sum(one.user == user for one in self._places)
            if own >= self.for_one or len(self._places) >= self.at_once + self.waiting:
                raise QueueFull("web.error.queue", seconds=self.estimate())
            place = _Place(user, now)
            self._places.append(place)
            return place

    def estimate(self) -> int:
        """Seconds until a place is likely to be free."""
        ahead = max(1, len(self._places) - self.at_once + 1)
        return max(1, math.ceil(self.seconds * ahead / self.at_once))

    @contextmanager
    def turn(self, place: _Place, hooks: Hooks) -> Iterator[None]:
        """Wait for the place's turn, and free it at the end; raise ``Cancelled`` for a user who has left."""
        with self._changed:
            place.begun = True
        begun = 0.0
        try:
            self._wait(place, hooks)
            begun = time.monotonic()
            yield
        finally:
            with self._changed:
                if place in self._places:
                    self._places.remove(place)
                if begun:
                    self.seconds += SMOOTHING * (time.monotonic() - begun - self.seconds)
                self._changed.notify_all()

    def _wait(self, place: _Place, hooks: Hooks) -> None:
        told_count = -1
        while True:
            with self._changed:
                if place not in self._places:  # it was given away before its thread came
                    self._places.append(place)
                ahead = self._places.index(place) - self.at_once + 1
                if ahead <= 0:
                    return
            if ahead != told_count:
                hooks.started(message("web.ask.waiting", count=ahead))
                told_count = ahead
            with self._changed:
                self._changed.wait(LOOK)
            hooks.cancel.check()
