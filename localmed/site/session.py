"""A caller's session: user, groups, role and language. It runs workflows and changes, audited as that user.

Every workflow is checked against the stops, driven, and noted in the audit log without its question. If evidence is
withdrawn or hidden from the caller during a run, the workflow runs again. Sections shown before their answer is
complete are passed on only while they are in force, and an answer cut off after that is noted.

A change of the library, access or models goes through ``change``: it checks the role and notes intent and outcome
(``site/changes.py``). A change of what is in force (withdrawals, stops, access, rights) goes through ``changing``: the
change and its row of the journal are one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from localmed.domain import Answer, AnswerStatus, Badge, Evidence, Kind, Message, SearchFilter, Status, message
from localmed.domain.accounts import ENOUGH, NEEDS, RIGHTS, Account, Right, SessionRole
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


DOCUMENTS, DOCUMENT_CHARACTERS = 20, 12  # cited documents named in the audit log; hex digits of each id: 48 bits
CUT_OFF = "cut off"  # outcome in the audit log: sections were seen, no answer followed


def audit_subject(answer: Answer, answer_id: str) -> str:
    """The audit log's line on an answer: number of statements, badge, stored id, first cited documents."""
    badge = answer.verification.badge
    documents = dict.fromkeys(piece.passage.document_id[:DOCUMENT_CHARACTERS] for piece in answer.evidence)
    parts = (
        f"{len(answer.statements)} statements" + (f", badge {badge}" if badge is not Badge.NONE else ""),
        f"answer {answer_id}" if answer_id else "",
        " ".join(("documents", *list(documents)[:DOCUMENTS])) if documents else "",
    )
    return "; ".join(filter(None, parts))


@dataclass(slots=True)
class EarlySections:
    """The sections that a reader has already seen while the answer above them is being written."""

    hooks: Hooks
    seen: Answer | None = None

    def watch(self, is_valid: Callable[[Sequence[Evidence]], bool]) -> Hooks:
        """The caller's hooks, which receive sections only while their evidence ``is_valid``."""
        if self.hooks.sections is SILENT.sections:
            return self.hooks

        def sections(answer: Answer) -> None:
            if is_valid(answer.evidence):
                self.seen = answer
                self.hooks.sections(answer)

        return replace(self.hooks, sections=sections)

    def take_back(self) -> None:
        """Empty the sections on the reader's screen, because their evidence is no longer in force."""
        if self.seen:
            self.hooks.sections(replace(self.seen, evidence=(), receipts=None))


SEARCHES = {"ask", "search", "ebm"}  # workflows whose sections come from all collections
NOTHING_THERE = message("workflow.no_tier")  # untrue where a collection is stopped
RUNS = 3  # of a workflow whose evidence is withdrawn during each


@dataclass(frozen=True, slots=True)
class Caller:
    """A user. ``groups`` are those whose collections the user may read; None: every collection."""

    user: str
    groups: Groups
    role: SessionRole
    language: str = "en"


@dataclass(slots=True)
class Outcome:
    """How a change ended, for the audit log; the change sets it."""

    subject: str
    outcome: str = "done"
    generation: int = 0


def for_reader(settings: Settings, granted: Sequence[str], chosen: Sequence[str]) -> Settings:
    """``settings`` for a reader of the ``granted`` groups, narrowed by the settings' own groups and ``chosen``."""
    groups = narrowed(groups_of(granted, settings.data), settings.reader.groups, chosen)
    return replace(settings, reader=replace(settings.reader, groups=tuple(sorted(groups or ()))))


def local_caller(settings: Settings, language: str = "en") -> Caller:
    """The caller of a command: the operating system's account, with the groups of the settings or its file rights."""
    groups = groups_of(settings.reader.groups, settings.data)
    return Caller(actor(), groups, SessionRole.ADMIN if groups is None else SessionRole.READER, language)


def caller_of(account: Account, language: str) -> Caller:
    """The caller who signed in as ``account``."""
    return Caller(account.user, None if account.reads_all else frozenset(account.groups), account.role, language)


def clean_question(text: str) -> str:
    """``text`` without a patient's identifiers, because a name that no document has makes a question abstain."""
    return unnamed(clean(text))


class Session:
    """The questions and changes of one caller at a site. Thread-safe."""

    def __init__(self, site: Site, caller: Caller, day: Callable[[], str] | None = None) -> None:
        """``day`` returns the date of a question (ISO); default: the site's."""
        self.site, self.caller, self.day = site, caller, day or site.day
        self.settings, self.data = site.settings, site.data
        self.unaudited: list[Message] = []  # changes that the audit log lacks, to be shown to the caller

    @property
    def encoder(self) -> Embedder:
        """The encoder with low priority, for long work."""
        return self.site.patient_encoder

    def restricted(self) -> frozenset[str]:
        """The collections that the caller's groups may not read."""
        return hidden_from(self.caller.groups, self.data)

    def hidden(self) -> frozenset[str]:
        """The collections whose content is not shown to the caller: restricted ones, for readers also stopped ones."""
        if self.may(Right.LIBRARY) or self.may(Right.SAFETY):
            return self.restricted()
        return self.restricted() | stops.stopped(self.data, stops.COLLECTION)

    def workspace(self) -> AbstractContextManager[Workspace]:
        """The generation in use, as the caller may read it, leased for the length of the block."""
        return self.site.workspace(self.hidden(), self.day())

    def answering(self) -> AbstractContextManager[Workspace]:
        """As ``workspace``, without stopped collections."""
        return self.site.workspace(self.hidden() | stops.stopped(self.data, stops.COLLECTION), self.day())

    def stopped_too(self) -> AbstractContextManager[Workspace]:
        """As ``workspace``, with the stopped collections that the caller's groups may read."""
        return self.site.workspace(self.restricted(), self.day())

    def collection_titles(self) -> dict[str, str]:
        """The titles by name of all collections that the caller may read, stopped ones too; empty without a library."""
        with suppress(NoLibrary), self.stopped_too() as workspace:
            return {collection.name: collection.title for collection in workspace.library.catalogue.collections()}
        return {}

    def collection_sources(self) -> dict[str, str]:
        """What the manifests of the same collections state as their source, by name."""
        with suppress(NoLibrary), self.stopped_too() as workspace:
            return {collection.name: collection.source for collection in workspace.library.catalogue.collections()}
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

        ``earlier`` are the questions before it. ``check`` verifies the answer's claims against further studies
        (M-Eval); ``thorough`` uses every role of MAIRAG (``workflows.thorough``); both together raise ``UsageError``.
        ``left_out`` names readings that are not searched for. Raise ``UnknownName`` for an unknown preset or
        collection.
        """
        if check and thorough:
            raise UsageError("workflow.check_or_thorough")
        for workflow in ("ask", "verify") if check else ("ask",):
            self.allow(workflow)

        def arguments(workspace: Workspace) -> tuple[Any, ...]:
            plan, provenance = workspace.plan(filters, preset), workspace.provenance(judged=check)
            before, names = tuple(map(clean_question, earlier)), tuple(map(clean, left_out))
            basis = (clean_question(question), filters, plan, provenance, before, names)
            return (*basis, workspace.bounds()) if check else basis

        return self._run(
            "ask_and_verify" if check else "thorough" if thorough else "ask", arguments, hooks, filters.collections
        )

    def verify(self, task: VerifyInput, hooks: Hooks = SILENT) -> Answer:
        """Check an answer written elsewhere: its citations, then its claims (M-Eval)."""
        filters = SearchFilter()
        return self._run(
            "verify",
            lambda it: (task.cleaned(), it.bounds(), it.plan(filters), it.provenance(judged=True)),
            hooks,
        )

    def plan_sources(
        self, question: str, filters: SearchFilter, strategy: str = "prompting", hooks: Hooks = SILENT
    ) -> Answer:
        """Answer ``question`` from a source plan made by ``strategy`` (``workflows.strategies``).

        Raise ``UnknownName`` for an unknown strategy or collection.
        """
        from localmed.workflows.strategies import STRATEGIES

        if strategy not in STRATEGIES:
            raise UnknownName("workflow.strategy", strategies=tuple(STRATEGIES), name=strategy)

        def arguments(it: Workspace) -> tuple[Any, ...]:
            return clean_question(question), filters, it.plan(filters), it.sources(filters), strategy, it.provenance()

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
            return clean_question(question), filters, it.plan(filters, "ebm"), it.provenance(), record, is_pico

        return self._run("ebm", arguments, hooks, filters.collections)

    def departments(self, complaint: str, hooks: Hooks = SILENT) -> Answer:
        """The department for ``complaint``, a patient's own words, from the guide: collections of kind local."""

        from localmed.safety.red_flags import red_flags
        from localmed.workflows.departments import always_told

        try:
            self.allow("departments")
        except NotAllowed as error:  # a stop takes away the guide, not the warning
            if signs := tuple(Message(f"departments.flag.{one}") for one in red_flags(complaint)):
                raise NotAllowed("departments.stopped", signs=signs, reason=error.full_message) from None
            always = always_told(self.settings.workflows.emergency_number)
            raise NotAllowed("departments.stopped_unread", reason=error.full_message, always=always) from None

        def arguments(it: Workspace) -> tuple[Any, ...]:
            filters = SearchFilter(it.of_kinds((Kind.LOCAL,)))
            return clean_question(complaint), filters, replace(it.plan(filters), audience="patient"), it.provenance()

        return self._run("departments", arguments, hooks)

    def search(
        self,
        question: str,
        filters: SearchFilter,
        sections: int,
        left_out: Sequence[str] = (),
        hooks: Hooks = SILENT,
    ) -> Answer:
        """At most ``sections`` sections about ``question``; no model writes or judges."""
        names = tuple(map(clean, left_out))

        def arguments(it: Workspace) -> tuple[Any, ...]:
            return clean_question(question), filters, it.plan(filters, ""), it.provenance(), sections, names

        return self._run("search", arguments, hooks, filters.collections)

    def find(
        self,
        question: str,
        filters: SearchFilter,
        limit: int,
        sections: int,
        reranked: bool = True,
    ) -> Finding:
        """See ``Workspace.find``; for measurements: the finding is not screened, shown or audited."""
        with self.answering() as workspace:
            return workspace.find(clean_question(question), filters, limit, sections, reranked=reranked)

    def concept(self, term: str, question: str = "", by_meaning: bool = False) -> Card:
        """See ``Workspace.concept``; raise ``UsageError`` with the site's safety message for a person in danger."""
        with self.answering() as workspace:
            workspace.screen(f"{term}\n{question}".strip())
            return workspace.concept(term, question, by_meaning)

    def kept_evidence(self, answer: Path, marker: str) -> tuple[Evidence, bool]:
        """A source of the answer in a file, with its current status; and whether the library lacks its text."""
        from localmed.library.graph import with_prefix

        evidence = kept_source(answer, marker, self.hidden())
        with suppress(NoLibrary), self.workspace() as workspace:
            library = workspace.library
            known, passage = with_current_status(evidence, library), evidence.passage.id
            return known, not (library.passages([passage]) or with_prefix(library.graph, passage))
        return evidence, True

    def standing(self, evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
        """The ``evidence`` of a kept answer with the current status of its documents."""
        with suppress(NoLibrary), self.workspace() as workspace:
            first = {piece.passage.document_id: piece for piece in reversed(evidence)}
            now = {name: with_current_status(piece, workspace.library) for name, piece in first.items()}
            states = (now[piece.passage.document_id] for piece in evidence)
            return tuple(
                replace(piece, status=it.status, overdue=it.overdue) for piece, it in zip(evidence, states, strict=True)
            )
        return tuple(evidence)

    def replay(self, text: str) -> tuple[Answer, bool]:
        """See ``workflows.recording.replay``; raise ``UsageError`` for a recording that cites a hidden collection."""
        from localmed.workflows.recording import recorded, replay

        if self.hidden():
            with self.workspace() as workspace:
                if cites_hidden(recorded(text), workspace.library):
                    raise UsageError("replay.hidden")
        return replay(text)

    def try_question(
        self, question: str, workspace: Workspace, preset: str | None = None, *, written: bool = True
    ) -> Answer:
        """Answer ``question`` from ``workspace`` as ``ask`` does, unaudited, even where ``ask`` is off or stopped.

        Without ``written`` only the sections are made. Raise ``ModelError`` where the encoder does not respond, because
        a search by words alone would not represent the service.
        """
        filters = SearchFilter()
        plan = workspace.plan(filters, preset)
        plan = plan if written else replace(plan, chat=frozenset())
        values = (clean_question(question), filters, plan, workspace.provenance(), ())
        hooks = replace(SILENT, models_until=monotonic() + self.settings.chat.question_seconds)
        return Driver(workspace.services(hooks, by_words_too=False), hooks).run(flow_named("ask")(*values))

    def allow(self, workflow: str) -> None:
        """Raise ``NotAllowed`` where the settings or a safety officer have switched ``workflow`` off."""
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
        early = EarlySections(hooks)
        try:
            answer = self._drive(workflow, arguments, early)
        except BaseException:
            if early.seen:
                self.note(workflow, audit_subject(replace(early.seen, statements=()), hooks.answer_id), CUT_OFF)
            raise
        ended = AnswerStatus.ABSTAINED if answer.found_nothing else answer.status
        self.note(answer.workflow, audit_subject(answer, hooks.answer_id), ended.value, answer=answer)
        stopped = tuple(self._not_searched(answer, limited_to))
        own = (note for note in answer.notes if not stopped or note != NOTHING_THERE)
        return replace(answer, notes=(*own, *stopped, *self.remarks()))

    def _not_searched(self, answer: Answer, limited_to: Sequence[str]) -> Iterator[Message]:
        """A note for each stopped collection that ``answer`` would have come from too.

        Workflows of ``SEARCHES`` name each, unless they were limited to others; the rest only if they found nothing.
        """
        if answer.status is AnswerStatus.SAFETY:
            return
        if answer.workflow in SEARCHES or answer.found_nothing or (answer.receipts and answer.receipts.absent):
            for name, note in stops.collection_messages(self, "workflow.not_searched").items():
                if not limited_to or name in limited_to:
                    yield note

    def remarks(self) -> list[Message]:
        """Messages about entries missing from the audit log, each returned once."""
        remarks: list[Message] = []
        with suppress(IndexError):
            while True:  # pops one by one: another thread may append meanwhile
                remarks.append(self.unaudited.pop(0))
        return remarks

    def _drive(self, workflow: str, arguments: Callable[[Workspace], tuple[Any, ...]], early: EarlySections) -> Answer:
        """Run the flow until no evidence of its answer was withdrawn or hidden meanwhile, at most ``RUNS`` times."""
        recorder = early.hooks.recorder
        for _ in range(RUNS):
            with following(early.hooks), self.answering() as workspace:
                is_valid = partial(self._is_valid, workspace)
                hooks, values = early.watch(is_valid), arguments(workspace)
                if recorder:
                    recorder.begin(workflow, values)
                answer = Driver(workspace.services(hooks), hooks).run(flow_named(workflow)(*values))
                if is_valid(answer.evidence):
                    return answer
                early.take_back()
        raise Busy("library.changing")

    def _is_valid(self, workspace: Workspace, evidence: Sequence[Evidence]) -> bool:
        withdrawn, hidden = workspace.withdrawn(), self.hidden() | stops.stopped(self.data, stops.COLLECTION)
        cited = [source.passage for source in evidence if source.status is not Status.WITHDRAWN]
        return not any(passage.document_id in withdrawn or passage.collection in hidden for passage in cited)

    # --- changes -----------------------------------------------------------------------------------------------------

    def may(self, right: Right) -> bool:
        """Whether the caller's role has ``right``."""
        return right in RIGHTS[self.caller.role]

    def require(self, right: Right) -> None:
        """Raise ``NotAllowed`` for a caller who lacks ``right`` or does not see the whole library."""
        if self.caller.groups is not None:
            if groups_of((), self.data) is not None:
                raise NotAllowed("access.not_writable", folder=str(self.data))
            raise NotAllowed("access.not_for_groups")
        if not self.may(right):
            raise NotAllowed("session.role", role=Message(f"session.right.{right}"))

    def may_change(self) -> None:
        """Raise ``NotAllowed`` for a caller who may not change the library."""
        self.require(Right.LIBRARY)

    @contextmanager
    def change(self, action: str, subject: str) -> Iterator[Outcome]:
        """Audit a change that the block makes: its intent before, its outcome after.

        Nothing is begun if the intent cannot be entered. An intent without outcome marks a change that was cut off and
        may have taken effect. An outcome that cannot be entered is reported in ``unaudited``.
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
        """A change of what is in force and its audit entry, in one transaction (``in_force.changing``).

        Raise ``LocalmedError``, with nothing changed, where the journal cannot be written.
        """
        kind = action.partition(" ")[0]
        right, enough = NEEDS.get(kind, Right.LIBRARY), ENOUGH.get(kind)
        self.require(enough if enough and self.may(enough) else right)
        try:
            make_room(self.data)
            with in_force.changing(self.data, before) as change:
                yield change, entry_of(action, subject, outcome, user=self.caller.user)
        except BaseException as error:
            self.note(action, subject, f"failed: {type(error).__name__}")
            raise

    def note_before(self, action: str, subject: str, outcome: str) -> Entry:
        """Enter a line in the audit log before something takes effect; raise ``LocalmedError`` where that fails."""
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
        """Enter a line in the audit log as the caller; ``unaudited`` reports a failure."""
        served = f"{generation:04d}" if generation else ""
        entry = entry_of(action, subject, outcome, served, answer, self.caller.user, intent)
        if missed := enter(self.data, entry):
            self.unaudited.append(missed)


# --- the sources of an answer that was kept ---------------------------------------------------------------------------

# A kept answer (``kept/``), the output of ``--json`` and a recording contain text, file, page and boxes of all their
# sources, so a source can be shown after its document is gone. Access is decided by the catalogue, because the file may
# have been altered. The original of a page is kept while an answer under ``kept/`` names it (``library/originals.py``).


def kept_source(file: Path, marker: str, hidden: frozenset[str]) -> Evidence:
    """The evidence ``marker`` of the answer in ``file``, unless its collection is ``hidden``.

    Raise ``InputError`` for a file without an answer, ``Damaged`` for an altered one, ``UnknownName`` for an
    unknown marker.
    """
    try:
        values = json.loads(contents(file, LARGEST))
        answer = answer_of(values["answer"] if "workflow" in values and "steps" in values else values)
    except AlteredAnswer:
        raise Damaged("kept.altered", name=file.name) from None
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise InputError("kept.none", name=file.name, format=FORMAT) from None
    visible = {name: one for name, one in answer.by_marker.items() if one.passage.collection not in hidden}
    if marker not in visible:
        raise UnknownName("kept.no_source", sources=tuple(visible))
    return visible[marker]


def with_current_status(evidence: Evidence, library: Library) -> Evidence:
    """``evidence`` as cited, with the current status and overdue review of its document.

    One that was removed, or whose file has another text now, counts as superseded unless it was withdrawn. Raise
    ``UnknownName`` where the catalogue hides the document, whatever collection the evidence claims.
    """
    document = evidence.passage.document_id
    if library.catalogue.hides(document):
        raise UnknownName("kept.no_source", sources=())
    there = bool(library.catalogue.by_ids([document]))
    status = library.holding.statuses().get(document, Status.CURRENT if there else Status.SUPERSEDED)
    overdue = library.holding.overdue(document) if there else evidence.overdue
    return replace(evidence, status=status, overdue=overdue)


def cites_hidden(values: object, library: Library) -> bool:
    """Whether a recording names a document or a collection that is hidden from the reader of ``library``."""
    if isinstance(values, list):
        return any(cites_hidden(value, library) for value in values)
    if not isinstance(values, dict):
        return False
    if values.get("collection") in library.hidden or library.catalogue.hides(str(values.get("document_id", ""))):
        return True
    return any(cites_hidden(value, library) for value in values.values())
