"""The requests of a flow, and the driver that answers them.

A flow is a generator: it yields requests, receives their results and returns an ``Answer``. It does no I/O, so command
line, web and tests (which replay a list of results) run the same flow. Independent requests are yielded as a tuple;
their results come back as a tuple.

The driver throws an unusable reply of a model into the flow as ``Rejected``; ``attempt`` then asks the rules. It does
not ask a failed model again in the same run: rules take its roles, its judgements are missing, and a note says so. The
trace has the time of every request with names, counts and ids, never text of a question or a patient.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from localmed.answering.asking import Coherence
from localmed.answering.judging import Vote
from localmed.answering.roles import Role
from localmed.answering.write import Written
from localmed.domain import Answer, Evidence, Hit, Message, Passage, SearchFilter, TraceStep, message
from localmed.domain.errors import Busy, Cancelled, ModelError, NotServed, Rejected, TooLong
from localmed.domain.findings import Finding, Found
from localmed.domain.ports import NOT_JUDGED, Stance
from localmed.process.hooks import SILENT, Hooks, following
from localmed.retrieval.concepts import Card
from localmed.retrieval.studies import Reference, Study

if TYPE_CHECKING:
    from localmed.answering.role_table import RoleTable

_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


class _Request:
    """A request; its name is that of the service that answers it."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The class's name in snake case."""
        return _CAPITAL.sub("_", type(self).__name__).lower()


@dataclass(frozen=True, slots=True)
class Search(_Request):
    """Find passages; the result is a ``Found``."""

    question: str
    filters: SearchFilter
    limit: int


@dataclass(frozen=True, slots=True)
class Find(_Request):
    """Find sections on a question; the result is a ``Finding``.

    ``limit`` bounds the passages, ``sections`` those shown. ``earlier`` are previous questions, whose subject it keeps;
    ``left_out`` names readings that are not searched for.
    """

    question: str
    filters: SearchFilter
    limit: int
    sections: int
    left_out: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Naming(_Request):
    """Find at most ``most`` passages that name one of each group of ``names``; a tuple of tuples of ``Passage``."""

    names: tuple[tuple[str, ...], ...]
    filters: SearchFilter
    most: int


@dataclass(frozen=True, slots=True)
class Scopes(_Request):
    """Find the passages in which each document states its patients; the result is a tuple of ``Passage`` for each."""

    documents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LookUp(_Request):
    """Look a term up in the concept graph; the result is a ``Card`` or ``None``."""

    term: str
    question: str = ""
    context: str = ""


@dataclass(frozen=True, slots=True)
class Cite(_Request):
    """Make evidence of hits with markers from ``first`` on; the result is a tuple of ``Evidence``."""

    hits: tuple[Hit, ...]
    first: int = 1


@dataclass(frozen=True, slots=True)
class Judge(_Request):
    """Judge (premise, hypothesis) pairs; the result is a tuple of ``Stance``."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Compare(_Request):
    """Compare texts with ``question``; a tuple of similarities, empty if no model knows the language."""

    question: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Studies(_Request):
    """Find studies by BM25 over title, abstract and MeSH; a tuple of ``Study``, excluded ones included."""

    query: str
    most: int
    collections: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Resolve(_Request):
    """Find the study of each reference; a tuple of ``Study`` or ``None``."""

    references: tuple[Reference, ...]


@dataclass(frozen=True, slots=True)
class Perform(_Request):
    """Perform a role, or only its rules; the result is the role's output."""

    role: Role
    task: Any
    by_rules: bool = False

    @property
    def name(self) -> str:
        """The role's name."""
        return self.role.name


@dataclass(frozen=True, slots=True)
class Shown(_Request):
    """Show the sections while a model reads them; no result. Neither traced nor recorded."""

    answer: Answer


T = TypeVar("T")
Request = Search | Find | Naming | Scopes | LookUp | Cite | Judge | Compare | Studies | Resolve | Perform | Shown
Requests = Request | tuple[Request, ...]
Flow = Generator[Requests, Any, Answer]
Step = Generator[Requests, Any, T]  # a part of a flow, that returns T

# Module and function of each flow. Importing all of them costs a command 0.1 s, so only the chosen one is imported.
FLOWS: Mapping[str, tuple[str, str]] = {
    "ask": ("ask", "ask"),
    "ask_and_verify": ("verify", "ask_and_verify"),
    "departments": ("departments", "departments"),
    "ebm": ("ebm", "ebm"),
    "explain": ("explain", "explain"),
    "plan": ("plan", "plan_sources"),
    "search": ("ask", "search"),
    "thorough": ("thorough", "thorough"),
    "verify": ("verify", "verify"),
}


def flow_named(name: str) -> Callable[..., Flow]:
    """The flow called ``name``; raise ``KeyError`` for an unknown one."""
    module, attribute = FLOWS[name]
    function: Callable[..., Flow] = getattr(import_module(f"localmed.workflows.{module}"), attribute)
    return function


def attempt(role: Role, task: Any) -> Step[tuple[Any, tuple[Message, ...]]]:
    """Perform ``role``, by its rules if the model's reply is unusable. Returns the output and notes for the reader."""
    try:
        return (yield Perform(role, task)), ()
    except Rejected:
        note = rejected(role.name)
    return (yield Perform(role, task, by_rules=True)), (note,)


def asked(role: Role, task: Any, served: Collection[str], otherwise: T) -> Step[T]:
    """The output of ``role``; ``otherwise`` if it is not ``served`` or the reply is unusable."""
    if role.name not in served:
        return otherwise
    try:
        reply: T = yield Perform(role, task)
    except Rejected:
        return otherwise
    return reply


def rejected(role: str) -> Message:
    """The note that rules replaced the model in ``role``."""
    return message("agents.rejected", role=Message(f"workflow.step.{role}"))


@dataclass(frozen=True, slots=True)
class Services:
    """The services that answer requests: one callable per request type, called with its fields; ``roles`` for roles."""

    search: Callable[[str, SearchFilter, int], Found]
    find: Callable[[str, SearchFilter, int, int, bool, tuple[str, ...]], Finding]
    naming: Callable[[tuple[tuple[str, ...], ...], SearchFilter, int], tuple[tuple[Passage, ...], ...]]
    scopes: Callable[[tuple[str, ...]], tuple[tuple[Passage, ...], ...]]
    look_up: Callable[[str, str, str], Card | None]
    cite: Callable[[tuple[Hit, ...], int], tuple[Evidence, ...]]
    judge: Callable[[Sequence[tuple[str, str]]], Sequence[Stance]]
    compare: Callable[[str, Sequence[str]], tuple[float, ...]]
    studies: Callable[[str, int, tuple[str, ...]], tuple[Study, ...]]
    resolve: Callable[[tuple[Reference, ...]], tuple[Study | None, ...]]
    roles: RoleTable


FAILED = "workflow.model_failed"
OUT_OF_TIME = "workflow.model_out_of_time"


class Driver:
    """Answers a flow's requests by ``services``. One driver serves one run.

    ``hooks`` follow each step and may cancel between two. Their recorder gets every request with its result or
    ``Rejected``, for a replay.
    """

    def __init__(self, services: Services, hooks: Hooks = SILENT) -> None:
        """After ``hooks.models_until`` no model is asked: rules finish the answer, and a note says so."""
        self.services, self.hooks = services, hooks
        self._failures: dict[str, Message] = {}  # by model: the note on its failure or timeout
        self._began = time.monotonic()

    def run(self, flow: Flow) -> Answer:
        """Drive ``flow`` to its answer and add the trace."""
        steps: list[TraceStep] = []
        with following(self.hooks):
            answer = traced(self._driven(flow, steps), tuple(steps))
        return replace(answer, notes=tuple(dict.fromkeys((*answer.notes, *self._failures.values()))))

    def part(self, step: Step[T]) -> T:
        """Drive ``step``, a part of a flow, to its result."""
        with following(self.hooks):
            return self._driven(step, [])

    def _driven(self, step: Step[T], steps: list[TraceStep]) -> T:
        result: Any = None
        while True:
            try:
                requests = step.throw(result) if isinstance(result, Rejected) else step.send(result)
            except StopIteration as end:
                made: T = end.value
                return made
            result = self._all(requests, steps)

    def _all(self, requests: Requests, steps: list[TraceStep]) -> Any:
        if not isinstance(requests, tuple):
            return self._timed(requests, steps)
        results = tuple(self._timed(request, steps) for request in requests)
        return next((result for result in results if isinstance(result, Rejected)), results)

    def _timed(self, request: Request, steps: list[TraceStep]) -> Any:
        self.hooks.cancel.check()
        if isinstance(request, Shown):
            return self.hooks.sections(request.answer)
        self.hooks.started(step_name(request))
        began = time.perf_counter()
        try:
            result = self._serve(request)
        except Rejected as error:
            result = error
        detail = summary(result) + _where(request) + self._by(request)
        steps.append(TraceStep(request.name, detail, round(time.perf_counter() - began, 4)))
        self.hooks.finished(steps[-1])
        if self.hooks.recorder:
            self.hooks.recorder.step(request, result)
        return result

    def _serve(self, request: Request) -> Any:
        services = self.services
        if isinstance(request, Judge):
            return self._judged(request)
        if not isinstance(request, Perform):
            service = getattr(services, request.name)
            return service(*(getattr(request, field.name) for field in fields(request)))
        model = services.roles.model(request.role)
        if not request.by_rules and services.roles.by(request.role) == "chat" and self._in_time(model):
            try:
                return services.roles.perform(request.role, request.task)
            except Rejected:
                raise
            except Cancelled:
                self._out_of_time(model)
            except TooLong as error:
                raise Rejected(error.message) from None
            except (ModelError, Busy) as error:
                self._failures[model] = message(FAILED, role=step_name(request), reason=error.full_message)
        rules, failure = services.roles.without_chat(), self._failures.get(model)
        if rules.by(request.role) == "off" and (request.by_rules or failure):
            if failure:
                raise NotServed(failure)
            raise Rejected("agents.role_off", role=request.role.name)
        return rules.perform(request.role, request.task)

    def _in_time(self, model: str) -> bool:
        """Whether ``model`` may be asked: it has not failed, and time is left."""
        if model not in self._failures and self.hooks.models_over():
            self._out_of_time(model)
        return model not in self._failures

    def _out_of_time(self, model: str) -> None:
        """Note the model's timeout; raise ``Cancelled`` if the caller has cancelled."""
        self.hooks.cancel.check()
        self._failures[model] = message(OUT_OF_TIME, seconds=int(time.monotonic() - self._began))

    def _judged(self, request: Judge) -> tuple[Stance, ...]:
        """The stances; ``NOT_JUDGED`` if the judge fails or has failed."""
        if request.pairs and self._in_time("judge"):
            try:
                return tuple(self.services.judge(request.pairs))
            except Cancelled:
                self._out_of_time("judge")
            except (ModelError, Busy) as error:
                self._failures["judge"] = message(FAILED, role=step_name(request), reason=error.full_message)
        return (NOT_JUDGED,) * len(request.pairs)

    def _by(self, request: Request) -> tuple[tuple[str, str], ...]:
        """Who served a role."""
        if not isinstance(request, Perform):
            return ()
        by_rules = request.by_rules or self.services.roles.model(request.role) in self._failures
        return (("by", "rules" if by_rules else self.services.roles.by(request.role)),)


def step_name(request: Request) -> Message:
    """The step's name for a progress display, with the number of texts judged or compared."""
    texts = request.pairs if isinstance(request, Judge) else request.texts if isinstance(request, Compare) else ()
    return message(f"workflow.step.{request.name}", **({"count": len(texts)} if texts else {}))


def traced(answer: Answer, steps: tuple[TraceStep, ...]) -> Answer:
    """``answer`` with its trace, and only the prompts of roles that were performed."""
    performed = {step.name for step in steps}
    prompts = tuple(prompt for prompt in answer.provenance.prompts if prompt[0] in performed)
    return replace(answer, trace=steps, provenance=replace(answer.provenance, prompts=prompts))


def _where(request: Request) -> tuple[tuple[str, str], ...]:
    """The collections of a search, if limited."""
    names = request.filters.collections if isinstance(request, Search) else ()
    return (("collections", " ".join(names)),) if names else ()


def summary(result: Any) -> tuple[tuple[str, str], ...]:
    """The trace's summary of a result, without text."""
    if isinstance(result, Rejected):
        return (("rejected", result.message.code),)
    if isinstance(result, Written):
        return (("statements", str(len(result.drafted))), ("covers", result.covers.value))
    if isinstance(result, Card):
        return (("concept", result.concept.id), ("relations", str(len(result.relations))))
    if isinstance(result, Found):
        ids = " ".join(hit.passage.id[:8] for hit in result.hits)
        counts = (("hits", str(len(result.hits))), ("dense", str(result.dense).lower()))
        return (*counts, ("passages", ids))
    if isinstance(result, Finding):
        ids = " ".join(section.best.passage.id[:8] for section in (*result.sections, *result.others))
        counts = (("sections", str(len(result.sections))), ("others", str(len(result.others))))
        return (*counts, ("dense", str(result.found.dense).lower()), ("passages", ids))
    if isinstance(result, Coherence):
        return (("agrees", str(result.agrees).lower()),)
    if isinstance(result, Vote):
        return (("criteria", " ".join(str(criterion).lower() for criterion in astuple(result.criteria))),)
    if isinstance(result, tuple):
        passed = (("passed", str(sum(result))),) if result and all(isinstance(value, bool) for value in result) else ()
        return (("count", str(len(result))), *passed)
    return ()
