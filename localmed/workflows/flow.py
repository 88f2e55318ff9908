"""What a flow may ask for, and the one driver that answers.

A flow is a generator: it yields requests, receives their results and returns an ``Answer``; it does no I/O, so the
command line, the web and the tests (which replay a list of results) run the same one. The driver times every request
and keeps the trace: names, counts and ids, never a question's or a patient's text.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from localmed.agents.roles import Keywords, Performer, Role
from localmed.domain import Answer, Evidence, Hit, SearchFilter, TraceStep
from localmed.retrieval.search import Found


@dataclass(frozen=True, slots=True)
class Search:
    """Find passages; the result is a ``Found``."""

    question: str
    wanted: SearchFilter
    limit: int
    keywords: tuple[str, ...] = ()

    name = "search"


@dataclass(frozen=True, slots=True)
class Cite:
    """Mint evidence for hits, in their order; the result is a tuple of ``Evidence``."""

    hits: tuple[Hit, ...]

    name = "cite"


@dataclass(frozen=True, slots=True)
class Perform:
    """Ask a role; the result is the role's output."""

    role: Role
    given: Any

    @property
    def name(self) -> str:
        """The role's name."""
        return self.role.name


Request = Search | Cite | Perform
Flow = Generator[Request, Any, Answer]


class Finder(Protocol):
    """Searches."""

    def search(self, question: str, wanted: SearchFilter, limit: int, keywords: Sequence[str] = ()) -> Found:
        """See ``HybridSearch.search``."""
        ...


@dataclass(frozen=True, slots=True)
class Driver:
    """Answers a flow's requests with a real system; ``watch`` is told of each finished step (for progress)."""

    finder: Finder
    performer: Performer
    mint: Callable[[tuple[Hit, ...]], tuple[Evidence, ...]]
    watch: Callable[[TraceStep], None]

    def run(self, flow: Flow) -> Answer:
        """Drive ``flow`` to its answer, with the trace put in."""
        steps: list[TraceStep] = []
        result: Any = None
        while True:
            try:
                request = flow.send(result)
            except StopIteration as end:
                answer: Answer = end.value
                return replace(answer, trace=tuple(steps))
            began = time.perf_counter()
            result = self._serve(request)
            step = TraceStep(request.name, summary(result) + _where(request), round(time.perf_counter() - began, 4))
            steps.append(step)
            self.watch(step)

    def _serve(self, request: Request) -> Any:
        if isinstance(request, Search):
            return self.finder.search(request.question, request.wanted, request.limit, request.keywords)
        if isinstance(request, Cite):
            return self.mint(request.hits)
        return self.performer.perform(request.role, request.given)


def _where(request: Request) -> tuple[tuple[str, str], ...]:
    """The collections of a search; none are named where all are searched."""
    names = request.wanted.collections if isinstance(request, Search) else ()
    return (("collections", " ".join(names)),) if names else ()


def summary(result: Any) -> tuple[tuple[str, str], ...]:
    """What the trace says of a result: no text. ``keywords`` are steps of a degradation, as ``required:hits``."""
    if isinstance(result, Found):
        ids = " ".join(hit.passage.id[:8] for hit in result.hits)
        steps = " ".join(f"{step.keywords}:{step.hits}" for step in result.keywords)
        required = (("keywords", steps),) if steps else ()
        mapped = (("guidelines", " ".join(each[:8] for each in result.guidelines)),) if result.guidelines else ()
        counts = (("hits", str(len(result.hits))), ("dense", str(result.dense).lower()))
        return (*counts, ("passages", ids), *required, *mapped)
    if isinstance(result, Keywords):
        return (("count", str(len(result.words))), ("unknown", str(len(result.unknown))))
    if isinstance(result, tuple):
        return (("count", str(len(result))),)
    probability = getattr(result, "probability", None)
    if probability is not None:
        return (("probability", f"{probability:.3f}"), ("threshold", f"{result.threshold:.2f}"))
    return ()
