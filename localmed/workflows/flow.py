"""What a flow may ask for, and the one driver that answers.

A flow is a generator: it yields requests, receives their results and returns an ``Answer``; it does no I/O, so the
command line, the web and the tests (which replay a list of results) run the same one. Several requests that do not wait
for each other are yielded as a tuple and come back as one. A model's reply that cannot be used is thrown into the flow
as ``Rejected``, which ``attempt`` answers by asking the rules. The driver times every request and keeps the trace:
names, counts and ids, never a question's or a patient's text.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, Protocol

from localmed.agents.asking import Coherence, Draft, Keywords
from localmed.agents.cast import Cast
from localmed.agents.roles import Role
from localmed.domain import Answer, Evidence, Hit, Message, Passage, SearchFilter, TraceStep, message
from localmed.errors import Rejected
from localmed.ports import Stance
from localmed.retrieval.concepts import Card
from localmed.retrieval.search import Found
from localmed.retrieval.studies import Reference, Study
from localmed.verification.badge import Vote


@dataclass(frozen=True, slots=True)
class Search:
    """Find passages; the result is a ``Found``."""

    question: str
    wanted: SearchFilter
    limit: int
    keywords: tuple[str, ...] = ()

    name = "search"


@dataclass(frozen=True, slots=True)
class LookUp:
    """Look a term up in the concept graph; the result is a ``Card``, ``None`` where the graph does not know it."""

    term: str
    question: str = ""
    context: str = ""

    name = "look_up"


@dataclass(frozen=True, slots=True)
class Read:
    """Read a document of which ``hits`` were found: whole if it is short, else its best; a tuple of ``Passage``."""

    document: str
    hits: tuple[Hit, ...]

    name = "read"


@dataclass(frozen=True, slots=True)
class Cite:
    """Mint evidence for hits, in their order, with markers from ``first`` on; the result is a tuple of ``Evidence``."""

    hits: tuple[Hit, ...]
    first: int = 1

    name = "cite"


@dataclass(frozen=True, slots=True)
class Judge:
    """How each premise stands to its hypothesis; the result is a tuple of ``Stance``."""

    pairs: tuple[tuple[str, str], ...]

    name = "judge"


@dataclass(frozen=True, slots=True)
class Compare:
    """How like ``question`` each text is; a tuple of numbers, empty where no model knows the language."""

    question: str
    texts: tuple[str, ...]

    name = "compare"


@dataclass(frozen=True, slots=True)
class Studies:
    """Find studies by BM25 over title, abstract and MeSH; a tuple of ``Study``, with those that may not count."""

    query: str
    most: int
    collections: tuple[str, ...]

    name = "studies"


@dataclass(frozen=True, slots=True)
class Resolve:
    """Which study each reference names; a tuple of ``Study``, ``None`` where the library does not hold it."""

    references: tuple[Reference, ...]

    name = "resolve"


@dataclass(frozen=True, slots=True)
class Perform:
    """Ask a role, or its rules alone; the result is the role's output."""

    role: Role
    given: Any
    by_rules: bool = False

    @property
    def name(self) -> str:
        """The role's name."""
        return self.role.name


Request = Search | LookUp | Read | Cite | Judge | Compare | Studies | Resolve | Perform
Asked = Request | tuple[Request, ...]
Flow = Generator[Asked, Any, Answer]
Step = Generator[Asked, Any, Any]  # a part of a flow


def attempt(role: Role, given: Any) -> Generator[Asked, Any, tuple[Any, tuple[Message, ...]]]:
    """Ask ``role``; where the model's reply cannot be used, its rules. Returns the output, and notes for the reader."""
    try:
        return (yield Perform(role, given)), ()
    except Rejected:
        note = rejected(role.name)
    return (yield Perform(role, given, by_rules=True)), (note,)


def rejected(role: str) -> Message:
    """The note that rules took the place of the model in ``role``."""
    return message("agents.rejected", role=Message(f"agents.role.{role}"))


class Finder(Protocol):
    """Searches."""

    def search(self, question: str, wanted: SearchFilter, limit: int, keywords: Sequence[str] = ()) -> Found:
        """See ``HybridSearch.search``."""
        ...


@dataclass(frozen=True, slots=True)
class Driver:
    """Answers a flow's requests with a real system; ``watch`` is told of each finished step (for progress).

    ``record`` is given every request with its result or the ``Rejected`` it ended in: a recording replays the flow.
    """

    finder: Finder
    cast: Cast
    mint: Callable[[tuple[Hit, ...], int], tuple[Evidence, ...]]
    look_up: Callable[[str, str, str], Card | None]
    judge: Callable[[Sequence[tuple[str, str]]], Sequence[Stance]]
    watch: Callable[[TraceStep], object] = lambda _: None
    record: Callable[[Request, Any], object] = lambda _, __: None
    read: Callable[[str, tuple[Hit, ...]], tuple[Passage, ...]] = lambda _, __: ()
    compare: Callable[[str, Sequence[str]], tuple[float, ...]] = lambda _, __: ()
    studies: Callable[[str, int, tuple[str, ...]], tuple[Study, ...]] = lambda *_: ()
    resolve: Callable[[tuple[Reference, ...]], tuple[Study | None, ...]] = lambda given: (None,) * len(given)

    def run(self, flow: Flow) -> Answer:
        """Drive ``flow`` to its answer, with the trace put in."""
        steps: list[TraceStep] = []
        result: Any = None
        while True:
            try:
                asked = flow.throw(result) if isinstance(result, Rejected) else flow.send(result)
            except StopIteration as end:
                return traced(end.value, tuple(steps))
            result = self._all(asked, steps)

    def _all(self, asked: Asked, steps: list[TraceStep]) -> Any:
        if not isinstance(asked, tuple):
            return self._timed(asked, steps)
        results = tuple(self._timed(each, steps) for each in asked)
        return next((each for each in results if isinstance(each, Rejected)), results)

    def _timed(self, request: Request, steps: list[TraceStep]) -> Any:
        began = time.perf_counter()
        try:
            result = self._serve(request)
        except Rejected as error:
            result = error
        detail = summary(result) + _where(request) + self._by(request)
        steps.append(TraceStep(request.name, detail, round(time.perf_counter() - began, 4)))
        self.watch(steps[-1])
        self.record(request, result)
        return result

    def _serve(self, request: Request) -> Any:
        if isinstance(request, Search):
            return self.finder.search(request.question, request.wanted, request.limit, request.keywords)
        if isinstance(request, LookUp):
            return self.look_up(request.term, request.question, request.context)
        if isinstance(request, Read):
            return self.read(request.document, request.hits)
        if isinstance(request, Cite):
            return self.mint(request.hits, request.first)
        if isinstance(request, Judge):
            return tuple(self.judge(request.pairs)) if request.pairs else ()
        if isinstance(request, Compare):
            return self.compare(request.question, request.texts)
        if isinstance(request, Studies):
            return self.studies(request.query, request.most, request.collections)
        if isinstance(request, Resolve):
            return self.resolve(request.references)
        cast = self.cast.without_chat() if request.by_rules else self.cast
        return cast.perform(request.role, request.given)

    def _by(self, request: Request) -> tuple[tuple[str, str], ...]:
        """Who served a role."""
        if not isinstance(request, Perform):
            return ()
        return (("by", "rules" if request.by_rules else self.cast.by(request.role)),)


def traced(answer: Answer, steps: tuple[TraceStep, ...]) -> Answer:
    """``answer`` with its trace, and of all roles' prompts those that took part."""
    performed = {step.name for step in steps}
    prompts = tuple(each for each in answer.provenance.prompts if each[0] in performed)
    return replace(answer, trace=steps, provenance=replace(answer.provenance, prompts=prompts))


def _where(request: Request) -> tuple[tuple[str, str], ...]:
    """The collections of a search; none are named where all are searched."""
    names = request.wanted.collections if isinstance(request, Search) else ()
    return (("collections", " ".join(names)),) if names else ()


def summary(result: Any) -> tuple[tuple[str, str], ...]:
    """What the trace says of a result: no text. ``keywords`` are steps of a degradation, as ``required:hits``."""
    if isinstance(result, Rejected):
        return (("rejected", result.message.code),)
    if isinstance(result, Draft):
        return (("statements", str(len(result.statements))),)
    if isinstance(result, Card):
        return (("concept", result.concept.id), ("relations", str(len(result.relations))))
    if isinstance(result, Found):
        ids = " ".join(hit.passage.id[:8] for hit in result.hits)
        steps = " ".join(f"{step.keywords}:{step.hits}" for step in result.keywords)
        required = (("keywords", steps),) if steps else ()
        mapped = (("guidelines", " ".join(each[:8] for each in result.guidelines)),) if result.guidelines else ()
        counts = (("hits", str(len(result.hits))), ("dense", str(result.dense).lower()))
        return (*counts, ("passages", ids), *required, *mapped)
    if isinstance(result, Keywords):
        return (("count", str(len(result.words))), ("unknown", str(len(result.unknown))))
    if isinstance(result, Coherence):
        return (("agrees", str(result.agrees).lower()),)
    if isinstance(result, Vote):
        return (("criteria", " ".join(str(each).lower() for each in astuple(result.criteria))),)
    if isinstance(result, tuple):
        passed = (("passed", str(sum(result))),) if result and all(isinstance(each, bool) for each in result) else ()
        return (("count", str(len(result))), *passed)
    probability = getattr(result, "probability", None)
    if probability is not None:
        return (("probability", f"{probability:.3f}"), ("threshold", f"{result.threshold:.2f}"))
    return ()
