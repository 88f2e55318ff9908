"""One a caller: who asks (user, groups, role, language) and what they may do. Runs workflows, is audited as that user.

Every workflow runs the same way: is it allowed, what is it given, drive the flow, note that it ran (never what was
asked). An answer is not handed over that rests on a document which was withdrawn, or hidden from the caller, while it
was made: the workflow runs again. What changes the library, the access to it or the models goes through ``change``,
which checks the role and notes the intent before and the outcome after (``site/changes.py``).

Sections that are seen before their answer is whole are passed on only while they are in force and open to the reader,
and an answer that is cut off after that was seen in part: the audit log must have it.

A withdrawal, a stop, the access to a collection and the rights of an account are changed by one transaction with their
row of the journal (``changing``): either both are there or neither is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from localmed.domain import Answer, AnswerStatus, Badge, Evidence, Kind, Message, SearchFilter, Status, message
from localmed.domain.accounts import NEEDS, RIGHTS, Account, Right, SessionRole
from localmed.domain.answers import FORMAT, LARGEST, AlteredAnswer, answer_of
from localmed.domain.errors import Busy, Damaged, InputError, NoLibrary, NotAllowed, UnknownName, UsageError
from localmed.library import in_force
from localmed.library.access import Groups, groups_of, hidden_from, narrowed
from localmed.library.generations import guarded
from localmed.library.journal import Entry
from localmed.process.files import contents
from localmed.process.hooks import SILENT, Hooks, following
from localmed.site import canary_gate, stops
from localmed.site.audit import BEGUN, Audit, actor, enter, entry_of, make_room
from localmed.text.identifiers import unnamed
from localmed.text.language import clean
from localmed.workflows.flow import Driver, flow_named

if TYPE_CHECKING:
    from localmed.answering.answer_file import VerifyInput
    from localmed.config import Settings
    from localmed.domain.findings import Finding
    from localmed.domain.patient import PatientRecord
    from localmed.domain.ports import Embedder
    from localmed.library.in_force import Changing
    from localmed.library.journal import InForce
    from localmed.library.library import Library
    from localmed.retrieval.concepts import Card
    from localmed.site.site import Site
    from localmed.site.workspace import Workspace
    from localmed.workflows.explain import ExplainInput


DOCUMENTS, DOCUMENT_CHARACTERS = 20, 12  # cited ones that the audit log names, and of each one's id: 48 bits
CUT_OFF = "cut off"  # the outcome of an answer of which sections were seen and no more came


def subject_of(answer: Answer, answer_id: str) -> str:
    """What the audit log says of an answer: its length and badge, the id that it is kept by, the documents it cites."""
    badge = answer.verification.badge
    return _subject(len(answer.statements), f", badge {badge}" if badge is not Badge.NONE else "", answer_id,
                    answer.evidence)  # fmt: skip


def _subject(count: int, badge: str, answer_id: str, evidence: Iterable[Evidence]) -> str:
    documents = dict.fromkeys(piece.passage.document_id[:DOCUMENT_CHARACTERS] for piece in evidence)
    sources = " ".join(("documents", *list(documents)[:DOCUMENTS])) if documents else ""
    return "; ".join(filter(None, (f"{count} statements{badge}", f"answer {answer_id}" if answer_id else "", sources)))


@dataclass(slots=True)
class Early:
    """What the reader of one answer has seen of it so far: its sections, while a model reads them."""

    hooks: Hooks
    seen: Answer | None = None

    def watched(self, holds: Callable[[Sequence[Evidence]], bool]) -> Hooks:
        """The caller's hooks; sections are passed on only if what they cite ``holds``."""
        if self.hooks.sections is SILENT.sections:
            return self.hooks

        def sections(answer: Answer) -> None:
            if holds(answer.evidence):
                self.seen = answer
                self.hooks.sections(answer)

        return replace(self.hooks, sections=sections)

    def take_back(self) -> None:
        """What was seen rests on something that is not in force any more."""
        if self.seen:
            self.hooks.sections(replace(self.seen, evidence=(), receipts=None))

    def subject(self) -> str:
        """What the audit log says of it; "" where nothing was seen."""
        return _subject(0, "", self.hooks.answer_id, self.seen.evidence) if self.seen else ""


SEARCHES = {"ask", "search"}  # workflows whose sections come from all collections
NOTHING_THERE = message("workflow.no_tier")  # not so of what is stopped
RUNS = 3  # of a workflow while what it rests on is withdrawn again and again


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. ``groups`` are those whose collections may be read; None: every collection."""

    user: str
    groups: Groups
    role: SessionRole
    language: str = "en"


@dataclass(slots=True)
class Outcome:
    """How a change ended, for the audit log; set by the change itself."""

    subject: str
    outcome: str = "done"
    generation: int = 0


def for_reader(settings: Settings, granted: Sequence[str], chosen: Sequence[str]) -> Settings:
    """``settings`` with the groups that the site has ``granted``, as they and those ``chosen`` narrow them."""
    groups = narrowed(groups_of(granted, settings.data), settings.reader.groups, chosen)
    return replace(settings, reader=replace(settings.reader, groups=tuple(sorted(groups or ()))))


def local_caller(settings: Settings, language: str = "en") -> Caller:
    """Whoever runs a command: the account of the operating system, the groups of the settings or of its rights."""
    groups = groups_of(settings.reader.groups, settings.data)
    return Caller(actor(), groups, SessionRole.ADMIN if groups is None else SessionRole.READER, language)


def caller_of(account: Account, language: str) -> Caller:
    """Whoever signed in as ``account``."""
    return Caller(account.user, None if account.reads_all else frozenset(account.groups), account.role, language)


def typed(text: str) -> str:
    """``text`` as somebody typed it, without who a patient is: a name that no document has makes a question abstain."""
    return unnamed(clean(text))


class Session:
    """What one caller may ask and change at a site. Several threads may use one."""

    def __init__(self, site: Site, caller: Caller, day: Callable[[], str] | None = None) -> None:
        """``day`` tells the date of what is asked (ISO), if it is not the site's."""
        self.site, self.caller, self.day = site, caller, day or site.day
        self.unaudited: list[Message] = []  # what was done and is not in the audit log, for whoever shows it

    @property
    def settings(self) -> Settings:
        """The site's settings."""
        return self.site.settings

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.site.data

    @property
    def encoder(self) -> Embedder:
        """The encoder, for work that waits for everybody else."""
        return self.site.patient_encoder

    def restricted(self) -> frozenset[str]:
        """The collections that the caller's groups may not read."""
        return hidden_from(self.caller.groups, self.data)

    def hidden(self) -> frozenset[str]:
        """The collections of which the caller is shown nothing: restricted ones, for readers also what is stopped."""
        if self.may(Right.LIBRARY) or self.may(Right.SAFETY):
            return self.restricted()
        return self.restricted() | stops.stopped(self.data, stops.COLLECTION)

    def workspace(self) -> AbstractContextManager[Workspace]:
        """The generation being served now, as the caller may read it, leased for the length of the block."""
        return self.site.workspace(self.hidden(), self.day())

    def answering(self) -> AbstractContextManager[Workspace]:
        """As ``workspace``, without the collections that a safety officer has stopped."""
        return self.site.workspace(self.hidden() | stops.stopped(self.data, stops.COLLECTION), self.day())

    def stopped_too(self) -> AbstractContextManager[Workspace]:
        """As ``workspace``, with the stopped collections that the caller's groups may read: to say that they are."""
        return self.site.workspace(self.restricted(), self.day())

    def collection_titles(self) -> dict[str, str]:
        """The titles of the collections that the caller may read, stopped ones too, by name; none without a library."""
        with suppress(NoLibrary), self.stopped_too() as workspace:
            return {collection.name: collection.title for collection in workspace.library.catalogue.collections()}
        return {}

    # --- the workflows -----------------------------------------------------------------------------------------------

    def ask(
        self,
        question: str,
        filters: SearchFilter,
        preset: str | None = None,
        earlier: Sequence[str] = (),
        hooks: Hooks = SILENT,
        check: bool = False,
        thorough: bool = False,
        left_out: Sequence[str] = (),
    ) -> Answer:
        """The sections for ``question`` in the collections of ``preset`` (default: the settings'), and an answer.

        ``earlier`` are the questions before it. With ``check`` the answer's claims are held against further studies
        (M-Eval); ``thorough``: every role of MAIRAG takes part (``workflows.thorough``). ``left_out`` names readings
        that are not searched for. Raise ``UnknownName`` for a preset or collection not known, ``UsageError`` for
        ``check`` and ``thorough`` together.
        """
        if check and thorough:
            raise UsageError("workflow.check_or_thorough")
        for workflow in ("ask", "verify") if check else ("ask",):
            self.allow(workflow)

        def arguments(workspace: Workspace) -> tuple[Any, ...]:
            plan, provenance = workspace.plan(filters, preset), workspace.provenance(judged=check)
            before, names = tuple(map(typed, earlier)), tuple(map(clean, left_out))
            basis = (typed(question), filters, plan, provenance, before, names)
            return (*basis, workspace.bounds()) if check else basis

        return self._run(
            "ask_and_verify" if check else "thorough" if thorough else "ask", arguments, hooks, filters.collections
        )

    def verify(self, task: VerifyInput, hooks: Hooks = SILENT) -> Answer:
        """Hold an answer from anywhere against the library: its citations, then its claims (M-Eval)."""
        filters = SearchFilter()
        return self._run(
            "verify",
            lambda it: (task.cleaned(), it.bounds(), it.plan(filters), it.provenance(judged=True)),
            hooks,
        )

    def plan_sources(
        self, question: str, filters: SearchFilter, strategy: str = "prompting", hooks: Hooks = SILENT
    ) -> Answer:
        """Answer ``question`` from a source plan made by ``strategy`` (see ``workflows.strategies``).

        Raise ``UnknownName`` for a strategy or collection not known.
        """
        from localmed.workflows.strategies import STRATEGIES

        if strategy not in STRATEGIES:
            raise UnknownName("workflow.strategy", strategies=tuple(STRATEGIES), name=strategy)

        def arguments(it: Workspace) -> tuple[Any, ...]:
            return typed(question), filters, it.plan(filters), it.sources(filters), strategy, it.provenance()

        return self._run("plan", arguments, hooks)

    def explain(self, task: ExplainInput, filters: SearchFilter, hooks: Hooks = SILENT) -> Answer:
        """Explain a medical order from the patient's tiers, and answer questions about it."""
        cleaned = replace(task, order=clean(task.order), questions=tuple(map(clean, task.questions)))

        def arguments(it: Workspace) -> tuple[Any, ...]:
            return cleaned, filters, replace(it.plan(filters, "patient"), audience="patient"), it.provenance()

        return self._run("explain", arguments, hooks)

    def ebm(
        self,
        question: str,
        filters: SearchFilter,
        record: PatientRecord | None = None,
        is_pico: bool = False,
        hooks: Hooks = SILENT,
    ) -> Answer:
        """Answer a clinical question about the patient of ``record`` from the tiers of HERD (preset ``ebm``)."""

        def arguments(it: Workspace) -> tuple[Any, ...]:
            return typed(question), filters, it.plan(filters, "ebm"), it.provenance(), record, is_pico

        return self._run("ebm", arguments, hooks)

    def departments(self, complaint: str, hooks: Hooks = SILENT) -> Answer:
        """Where to go with ``complaint`` (in a patient's own words), by the guide: the collections of kind local."""

        def arguments(it: Workspace) -> tuple[Any, ...]:
            filters = SearchFilter(it.of_kinds((Kind.LOCAL,)))
            return typed(complaint), filters, replace(it.plan(filters), audience="patient"), it.provenance()

        return self._run("departments", arguments, hooks)

    def search(
        self,
        question: str,
        filters: SearchFilter,
        sections: int,
        left_out: Sequence[str] = (),
        hooks: Hooks = SILENT,
    ) -> Answer:
        """The ``sections`` that speak of ``question``, at most so many; no model writes or judges."""
        names = tuple(map(clean, left_out))

        def arguments(it: Workspace) -> tuple[Any, ...]:
            return typed(question), filters, it.plan(filters, ""), it.provenance(), sections, names

        return self._run("search", arguments, hooks, filters.collections)

    def find(
        self,
        question: str,
        filters: SearchFilter,
        limit: int,
        sections: int,
        reranked: bool = True,
    ) -> Finding:
        """See ``Workspace.find``; for measuring: what was found, before anything of it is shown or noted."""
        with self.answering() as workspace:
            return workspace.find(typed(question), filters, limit, sections, reranked=reranked)

    def concept(self, term: str, question: str = "", by_meaning: bool = False) -> Card:
        """See ``Workspace.concept``; raise ``UsageError`` with the site's message for somebody in danger."""
        with self.answering() as workspace:
            workspace.screen(f"{term}\n{question}".strip())
            return workspace.concept(term, question, by_meaning)

    def kept_evidence(self, answer: Path, marker: str) -> tuple[Evidence, bool]:
        """The source as the answer in a file cited it, with its status now; and whether the library lacks its text."""
        from localmed.library.graph import with_prefix

        evidence = kept_source(answer, marker, self.hidden())
        with suppress(NoLibrary), self.workspace() as workspace:
            library = workspace.library
            known, passage = kept_standing(evidence, library), evidence.passage.id
            return known, not (library.passages([passage]) or with_prefix(library.graph, passage))
        return evidence, True

    def standing(self, evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
        """``evidence`` of a kept answer, as it was cited, with its documents' status now (``kept_standing``)."""
        with suppress(NoLibrary), self.workspace() as workspace:
            return tuple(kept_standing(piece, workspace.library) for piece in evidence)
        return tuple(evidence)

    def replay(self, text: str) -> tuple[Answer, bool]:
        """See ``workflows.recording.replay``; raise ``UsageError`` for what rests on a collection that is hidden."""
        from localmed.workflows.recording import recorded, replay

        if self.hidden():
            with self.workspace() as workspace:
                if rests_on_hidden(recorded(text), workspace.library):
                    raise UsageError("replay.hidden")
        return replay(text)

    def tried(self, question: str, workspace: Workspace, preset: str | None = None, *, written: bool = True) -> Answer:
        """What ``ask`` answers ``question`` from ``workspace``, for a look at it: noted nowhere, not allowed or not.

        Not ``written``: the sections alone, whatever chat model serves. Raise ``ModelError`` where the encoder does not
        answer: what words alone find says nothing of what is served.
        """
        filters = SearchFilter()
        plan = workspace.plan(filters, preset)
        plan = plan if written else replace(plan, chat=frozenset())
        values = (typed(question), filters, plan, workspace.provenance(), ())
        hooks = replace(SILENT, models_until=monotonic() + self.settings.chat.question_seconds)
        return Driver(workspace.services(hooks, by_words_too=False), hooks).run(flow_named("ask")(*values))

    def allow(self, workflow: str) -> None:
        """Raise ``UsageError`` if the site has switched ``workflow`` off."""
        if workflow in self.settings.workflows.off:
            raise NotAllowed("workflow.off", workflow=message(f"workflow_name.{workflow}"))
        for stop in stops.stops(self.data):
            if (stop.kind, stop.name) == (stops.WORKFLOW, workflow):
                raise NotAllowed("workflow.stopped", workflow=message(f"workflow_name.{workflow}"), reason=stop.reason)

    def _run(
        self,
        workflow: str,
        arguments: Callable[[Workspace], tuple[Any, ...]],
        hooks: Hooks,
        limited_to: Sequence[str] = (),
    ) -> Answer:
        """Drive the flow called ``workflow`` to its answer, from all collections or those it is ``limited_to``."""
        self.allow(workflow)
        hooks = replace(hooks, models_until=monotonic() + self.settings.chat.question_seconds)
        early = Early(hooks)
        try:
            answer = self._driven(workflow, arguments, early)
        except BaseException:
            if seen := early.subject():
                self.note(workflow, seen, CUT_OFF)
            raise
        ended = AnswerStatus.ABSTAINED if answer.found_nothing else answer.status
        self.note(answer.workflow, subject_of(answer, hooks.answer_id), ended.value, answer=answer)
        stopped = tuple(self._not_searched(answer, limited_to))
        own = (note for note in answer.notes if not stopped or note != NOTHING_THERE)
        return replace(answer, notes=(*own, *stopped, *self.remarks()))

    def _not_searched(self, answer: Answer, limited_to: Sequence[str]) -> Iterator[Message]:
        """A note for each stopped collection that ``answer`` would have come from too.

        A question is told of each, unless it was limited to others; other workflows only where they found nothing.
        """
        if answer.status is AnswerStatus.SAFETY:
            return
        if answer.workflow in SEARCHES or answer.found_nothing or (answer.receipts and answer.receipts.absent):
            for name, note in stops.of_collections(self, "workflow.not_searched").items():
                if not limited_to or name in limited_to:
                    yield note

    def remarks(self) -> list[Message]:
        """What was done and is not in the audit log, told once."""
        remarks: list[Message] = []
        with suppress(IndexError):
            while True:  # one after another: what another thread adds meanwhile is told too, or left
                remarks.append(self.unaudited.pop(0))
        return remarks

    def _driven(self, workflow: str, arguments: Callable[[Workspace], tuple[Any, ...]], early: Early) -> Answer:
        """The answer, once it rests on nothing that was withdrawn or hidden while it was made."""
        recorder = early.hooks.recorder
        for _ in range(RUNS):
            with following(early.hooks), self.answering() as workspace:
                hooks = early.watched(partial(self._hold, workspace))
                values = arguments(workspace)
                if recorder:
                    recorder.begin(workflow, values)
                answer = Driver(workspace.services(hooks), hooks).run(flow_named(workflow)(*values))
                if self._hold(workspace, answer.evidence):
                    return answer
                early.take_back()
        raise Busy("library.changing")

    def _hold(self, workspace: Workspace, evidence: Sequence[Evidence]) -> bool:
        """Whether nothing of ``evidence`` was withdrawn or hidden from the caller since it was cited."""
        withdrawn, hidden = workspace.withdrawn(), self.hidden() | stops.stopped(self.data, stops.COLLECTION)
        cited = [source.passage for source in evidence if source.status is not Status.WITHDRAWN]
        return not any(passage.document_id in withdrawn or passage.collection in hidden for passage in cited)

    # --- changes -----------------------------------------------------------------------------------------------------

    def may(self, right: Right) -> bool:
        """Whether the caller's role has ``right``."""
        return right in RIGHTS[self.caller.role]

    def require(self, right: Right) -> None:
        """Raise ``UsageError`` for a caller without ``right``, or who does not see the whole library."""
        if self.caller.groups is not None:
            if groups_of((), self.data) is not None:
                raise NotAllowed("access.not_writable", folder=str(self.data))
            raise NotAllowed("access.not_for_groups")
        if not self.may(right):
            raise NotAllowed("session.role", role=Message(f"session.right.{right}"))

    def may_change(self) -> None:
        """Raise ``UsageError`` for a caller who may not change the library."""
        self.require(Right.LIBRARY)

    @contextmanager
    def change(self, action: str, subject: str) -> Iterator[Outcome]:
        """A change that the block makes: noted before it begins and when it has ended, however it ends.

        An intent without an outcome in the audit log is a change that was cut off: it may have taken effect. A change
        whose intent cannot be entered is not begun; where its outcome cannot, ``unaudited`` says so.
        """
        self.require(NEEDS.get(action.partition(" ")[0], Right.LIBRARY))
        intent = self.note_before(action, subject, BEGUN)
        change = Outcome(subject)
        try:
            with guarded(partial(canary_gate.look, self)):
                yield change
        except BaseException as error:
            self.note(action, subject, f"failed: {type(error).__name__}", intent=intent)
            raise
        self.note(action, change.subject, change.outcome, change.generation, intent=intent)

    @contextmanager
    def changing(
        self, action: str, subject: str, outcome: str = "in force", before: InForce | None = None
    ) -> Iterator[tuple[Changing, Entry]]:
        """A change of what is in force, and the entry to note it by: one transaction (``in_force.changing``).

        Raise ``LocalmedError`` where the journal cannot be written: nothing is changed then.
        """
        self.require(NEEDS.get(action.partition(" ")[0], Right.LIBRARY))
        try:
            make_room(self.data)
            with in_force.changing(self.data, before) as change:
                yield change, entry_of(action, subject, outcome, user=self.caller.user)
        except BaseException as error:
            self.note(action, subject, f"failed: {type(error).__name__}")
            raise

    def note_before(self, action: str, subject: str, outcome: str) -> Entry:
        """One line in the audit log before something takes effect; raise ``LocalmedError`` where it cannot be made."""
        with Audit(self.data) as audit:
            return audit.add(entry_of(action, subject, outcome, user=self.caller.user))

    def note(
        self,
        action: str,
        subject: str,
        outcome: str,
        generation: int = 0,
        answer: Answer | None = None,
        intent: Entry | None = None,
    ) -> None:
        """One line in the audit log, as the caller, of what was done; ``unaudited`` says where it cannot be made."""
        served = f"{generation:04d}" if generation else ""
        entry = entry_of(action, subject, outcome, served, answer, self.caller.user, intent)
        if missed := enter(self.data, entry):
            self.unaudited.append(missed)


# --- the sources of an answer that was kept ---------------------------------------------------------------------------

# Shown from the answer itself, after its generation and its document are gone. What a reader may not read is decided by
# the catalogue, not by what the file says of itself: it may have been altered. A kept answer (``kept/``), the output of
# ``--json`` and a recording hold the text, file, page and boxes of everything they cite. The original that a page is
# drawn from stays as long as an answer under ``kept/`` names it (``library/originals.py``); of another file it may have
# been pruned.


def kept_source(file: Path, marker: str, hidden: frozenset[str] = frozenset()) -> Evidence:
    """The evidence called ``marker`` in the answer in ``file``; raise ``InputError`` for what is no answer of ours.

    Of the collections ``hidden`` nothing is shown.
    """
    visible = {
        name: evidence for name, evidence in _kept_evidence(file).items() if evidence.passage.collection not in hidden
    }
    if marker not in visible:
        raise UnknownName("kept.no_source", sources=tuple(visible))
    return visible[marker]


def kept_standing(evidence: Evidence, library: Library) -> Evidence:
    """``evidence`` with its text as it was cited, and with the status and the overdue review of its document now.

    Of a document that is gone the withdrawals are still asked; else what was known when it was cited stays. Raise
    ``UnknownName`` for one that is hidden from the reader, whatever the answer says of its collection.
    """
    document = evidence.passage.document_id
    if library.catalogue.hides(document):
        raise UnknownName("kept.no_source", sources=())
    there = bool(library.catalogue.by_ids([document]))
    status = library.holding.statuses().get(document, Status.CURRENT if there else evidence.status)
    overdue = library.holding.overdue(document) if there else evidence.overdue
    return replace(evidence, status=status, overdue=overdue)


def rests_on_hidden(values: object, library: Library) -> bool:
    """Whether a recording names a document or a collection that is hidden from the reader of ``library``."""
    if isinstance(values, list):
        return any(rests_on_hidden(value, library) for value in values)
    if not isinstance(values, dict):
        return False
    if values.get("collection") in library.hidden or library.catalogue.hides(str(values.get("document_id", ""))):
        return True
    return any(rests_on_hidden(value, library) for value in values.values())


def _kept_evidence(file: Path) -> dict[str, Evidence]:
    try:
        values = json.loads(contents(file, LARGEST))
        answer = answer_of(values["answer"] if "workflow" in values and "steps" in values else values)
    except AlteredAnswer:
        raise Damaged("kept.altered", name=file.name) from None
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise InputError("kept.none", name=file.name, format=FORMAT) from None
    return answer.by_marker
