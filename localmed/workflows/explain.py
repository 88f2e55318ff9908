"""Explain: explains the lines and terms of a medical order with citations, and answers follow-up questions.

LINS, medical order explanation (Fig. 4a and Methods): terms as written (MTEA), evidence and an explanation for each,
follow-up questions made self-contained with the order and the patient's information (QEA), cited answers.

- Every line is quoted alone. Nothing is inferred across lines, and no status of a medicine is derived. A line that
  stops or pauses something says so, and how often and which way are not explained. Nor is how often where a line says
  it in two ways.
- An allergy that the record, a question or the order tells of stands first if a medicine of the order may meet it.
- Abbreviations stand beside the line with their usual meanings.
- Plain words come from a chat model. Each line must keep every number, dose and negation (``text.faithfulness``), else
  the order's words stand alone and a note says so, as it does without a model.
- A term is explained by a cited sentence that defines it, or by the concept graph. What a line says besides is named
  beside it as not explained.
- Questions are screened first, as a patient's words; the order as staff's. Names and numbers of patients are struck
  from both.

Bounds: ``CHARACTERS`` of an order, ``EXPLAINED`` terms, ``QUESTIONS`` follow-up
questions; one search for each question, one for each term and language. Calls of a chat model: one for the lines, one
for all terms that no source defines, one for each question, and one check.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product

from localmed.answering import check
from localmed.answering.orders import (
    LINES,
    MEDICAL_TERMS,
    PLAIN_ORDER,
    RETRIEVAL_QUESTION,
    OrderInput,
    OrderTerm,
    PlainInput,
    RetrievalInput,
    without_identity,
)
from localmed.answering.orders_rules import (
    above,
    allergies,
    definition_of,
    disagrees,
    frequencies,
    holds,
    is_for,
    is_stopped,
    lines_of,
    medicines_of,
    names_for,
)
from localmed.answering.record import names_in, things_of
from localmed.answering.write import WRITE
from localmed.domain import (
    Answer,
    AnswerStatus,
    Badge,
    Evidence,
    Hit,
    Part,
    Provenance,
    Receipts,
    SearchFilter,
    Statement,
    Verification,
    message,
)
from localmed.domain.findings import Found
from localmed.domain.parts import (
    Definition,
    Expansion,
    LinePart,
    QuestionPart,
    Restated,
    TermPart,
)
from localmed.domain.patient import NameKind, PatientRecord
from localmed.ingest.records.parts import STRUCK, strike_identifiers
from localmed.library.terms import folded
from localmed.messages import LANGUAGES
from localmed.retrieval.concepts import Card
from localmed.safety.red_flags import red_flags
from localmed.text import faithfulness
from localmed.text.abbreviations import explainable
from localmed.text.language import detect
from localmed.text.readability import reading_level
from localmed.workflows import finding
from localmed.workflows.ask import Draft, checked_drafts, write_draft
from localmed.workflows.finding import Notes, Plan, overdue, refused, screened
from localmed.workflows.flow import Flow, LookUp, Search, Step, asked, attempt
from localmed.workflows.receipts import best_of, merged, own, receipts, renumbered

CHARACTERS = 12_000  # of an order: some four pages; what is longer is cut, and said
WRITTEN = 6  # terms without a definition in a source that a model explains in one reply
OF_TERM = 2  # passages that it reads for each
EXPLAINED = 20  # first terms of the order: each costs a search in each language
QUESTIONS = 5  # follow-up questions at once
PASSAGES = 8  # read for a term
OF_QUESTION = 3  # sections shown for a follow-up question
CARD_CHARACTERS = 400  # of a definition that a graph gives


@dataclass(frozen=True, slots=True)
class ExplainInput:
    """An order with the patient's record, questions, and the name of the person who releases the explanation."""

    order: str
    patient: PatientRecord | None = None
    questions: tuple[str, ...] = ()
    released_by: str = ""

    @property
    def known(self) -> str:
        """The record without identifying words."""
        return without_identity(self.patient.text) if self.patient else ""


@dataclass(slots=True)
class _Cited:
    """Evidence with markers so far: cited, or read by a model."""

    evidence: tuple[Evidence, ...] = ()
    read: tuple[Evidence, ...] = ()  # by a model, for terms
    receipts: list[Receipts] = field(default_factory=list)  # of the follow-up questions

    @property
    def next_marker(self) -> int:
        """The highest marker in use."""
        return max((int(piece.marker) for piece in (*self.evidence, *self.read)), default=0)

    def keep(self, evidence: tuple[Evidence, ...], statements: tuple[Statement, ...]) -> None:
        """Add the evidence that ``statements`` cite."""
        self.evidence = tuple(dict.fromkeys((*self.evidence, *check.cited(statements, evidence))))

    def keep_sections(self, found: Answer) -> tuple[str, ...]:
        """Add the sections of a question but those that an earlier one found; the markers of all in its language."""
        known = {piece.marker: piece.passage.id for piece in (*self.evidence, *found.evidence)}
        before = {known[it.best]: it.best for one in self.receipts for it in (*one.sections, *one.others)}
        self.evidence = (*self.evidence, *found.evidence)
        if found.receipts:
            ours, others = (
                tuple(it for it in sections if known[it.best] not in before)
                for sections in (found.receipts.sections, found.receipts.others)
            )
            self.receipts.append(replace(found.receipts, sections=ours, others=others))
        return tuple(before.get(known[it.best], it.best) for it in own(found))


def explain(task: ExplainInput, filters: SearchFilter, plan: Plan, provenance: Provenance) -> Flow:
    """The flow for one order over the tiers of ``plan``."""
    staff = replace(plan, audience="staff")
    # An order is no patient's words: as those, "125 mcg PO alt die" beside "PO OD" would tell of an overdose.
    for text, reader in ((task.order, staff), *((question, plan) for question in task.questions)):
        if (yield from screened(text, reader, own_words=False)):
            return refused(text, plan, provenance, "explain")
    length, questions = len(task.order), tuple(map(strike_identifiers, task.questions))
    task = replace(task, order=strike_identifiers(task.order), questions=questions)
    order = task.order[:CHARACTERS]
    notes: Notes = (message("explain.order_cut", characters=length, read=CHARACTERS),) if length > CHARACTERS else ()
    if any(STRUCK in text for text in (task.order, *task.questions)):
        notes += (message("explain.struck", mark=STRUCK),)
    language, cited = detect(order), _Cited()
    terms, more = yield from _terms(order, plan)
    lines, of_lines = yield from _lines(order, language, plan)
    looked_up = yield from _looked_up(
        _first_occurrences(terms, partial(is_stopped, order)), language, filters, plan, cited
    )
    of_terms = yield from _drafted_terms(looked_up, language, plan, task.known, cited)
    questions, cut = _questions(task)
    asked = yield from _asked(replace(task, questions=questions), terms, filters, plan, provenance, cited)
    drafts = (of_terms, *(draft for _, draft in asked))
    checked = iter((yield from checked_drafts([draft for draft in drafts if draft], plan)))
    written, _ = next(checked) if of_terms else ((), None)
    explained = tuple(_explained(looked_up, _standing(written), cited))
    translated = yield from _translated(looked_up, language, filters, plan, cited)
    answered = tuple(_answered(part, next(checked) if draft else None) for part, draft in asked)
    lines = tuple(with_terms(part, explained) if isinstance(part, LinePart) else part for part in lines)
    own = (*lines, *explained)
    first = tuple(allergies(order, task.patient, task.questions))
    parts = (*first, *own, *translated, *answered)
    searched = tuple(dict.fromkeys(name for tier in plan.tiers for name in tier.collections))
    shown = tuple(sorted(cited.evidence, key=lambda piece: int(piece.marker)))
    every = merged(cited.receipts) if cited.receipts else None  # the sections of all follow-up questions
    answer = Answer(AnswerStatus.ANSWERED, order, language, (), shown, searched, provenance, workflow="explain")
    return replace(
        answer,
        notes=(*notes, *cut, *more, *of_lines, *overdue(shown)),
        parts=(*parts, *_level((*own, *answered))),
        receipts=Receipts(sections=every.sections, others=every.others, dense=every.dense) if every else None,
        released_by=" ".join(task.released_by.split()),
    )


def _questions(task: ExplainInput) -> tuple[tuple[str, ...], Notes]:
    """The questions to answer, and notes on cut ones."""
    bounded = [finding.bounded(question) for question in task.questions[:QUESTIONS]]
    notes = tuple(note for _, cut in bounded for note in cut)
    if len(task.questions) > QUESTIONS:
        notes += (message("explain.questions_cut", questions=len(task.questions), read=QUESTIONS),)
    return tuple(question for question, _ in bounded), notes


def _terms(text: str, plan: Plan) -> Step[tuple[tuple[OrderTerm, ...], Notes]]:
    if MEDICAL_TERMS.name not in plan.roles or not text.strip():
        return (), ()
    return (yield from attempt(MEDICAL_TERMS, OrderInput(text)))


def _first_occurrences(
    terms: tuple[OrderTerm, ...], without: Callable[[OrderTerm], bool] = lambda _: False
) -> list[OrderTerm]:
    """Each term where it first stands, except occurrences that ``without`` excludes."""
    first: dict[str, OrderTerm] = {}
    for term in terms:
        if (name := folded(term.text)) not in first and not without(term):
            first[name] = term
    return list(first.values())


# --- lines ------------------------------------------------------------------------------------------------------------


def _lines(order: str, language: str, plan: Plan) -> Step[tuple[tuple[Part, ...], Notes]]:
    """Each line as written, with abbreviations and, with a chat model, in plain words.

    Of a line with several medicines one abbreviation at most is explained: which words belong to which is not judged.
    """
    spans = list(lines_of(order))
    written = [order[start:end] for start, end in spans]
    plain, restated, notes = [""] * len(spans), Restated.QUOTED, Notes()
    if PLAIN_ORDER.name not in plan.roles:
        notes = (message("explain.plain_words_unfit" if plan.chat else "explain.no_plain_words"),)
    elif spans:
        restated = Restated.REJECTED
        plain[:LINES], notes = yield from _in_plain_words(written[:LINES])
    if len(spans) > LINES and restated is Restated.REJECTED:
        notes += (message("explain.lines_cut", lines=len(spans), read=LINES),)
    parts: list[Part] = []
    for line, words, span in zip(written, plain, spans, strict=True):
        over = above(order, span[0])
        stopped, named = holds(line, over), medicines_of(line)
        several = named if len(named) > 1 else ()
        differs = not several and disagrees(line)
        expansions = tuple(
            one
            for one in _expansions(line, language, over)
            if not (stopped and _tells_how(one)) and not (differs and any(map(frequencies, one.meanings)))
        )
        if several:
            expansions, words = _single(expansions, line, several), ""
        written_by = Restated.MODEL if words else Restated.QUOTED if several else restated
        parts.append(LinePart(line, expansions, words, written_by, *span, several, stopped, differs))
    return tuple(parts), notes


def _in_plain_words(lines: list[str]) -> Step[tuple[list[str], Notes]]:
    """The model's words for each line, "" where they do not keep all of it."""
    nothing: tuple[str, ...] = ()
    plain = yield from asked(PLAIN_ORDER, PlainInput(tuple(lines)), (PLAIN_ORDER.name,), nothing)
    if not plain:
        return [""] * len(lines), (message("explain.plain_words_rejected"),)
    rejected = sum(not words for words in plain)
    notes = (message("explain.lines_rejected", count=rejected),) if rejected else ()
    return list(plain), notes


def _expansions(line: str, language: str, over: str) -> tuple[Expansion, ...]:
    """The abbreviations of a line, each once."""
    first = {abbreviation.written: abbreviation for abbreviation in reversed(explainable(line, language, over))}
    return tuple(Expansion(abbreviation.written, abbreviation.meanings) for abbreviation in reversed(first.values()))


def _single(expansions: tuple[Expansion, ...], line: str, medicines: tuple[str, ...]) -> tuple[Expansion, ...]:
    """Of a line with several medicines the only unambiguous abbreviation that names none of them, if it stands once."""
    left = [one for one in expansions if not one.is_ambiguous and one.written not in medicines]
    return tuple(left) if len(left) == 1 and line.count(left[0].written) == 1 else ()


def _tells_how(expansion: Expansion) -> bool:
    """Whether a meaning is how often or which way something is taken."""
    return any(kind in ("time", "way") for meaning in expansion.meanings for kind, _ in faithfulness.facts(meaning))


def with_terms(line: LinePart, explained: Iterable[TermPart]) -> LinePart:
    """``line`` with the terms in it that are ``explained``, here or at another line."""
    names = (part.term for part in explained)
    held = (name for name in names if re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", line.text, re.I))
    return replace(line, terms=tuple(dict.fromkeys(held)))


# --- terms ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _LookedUp:
    """A term with other names, defining sentences, the graph's definition, and hits."""

    term: OrderTerm
    names: tuple[str, ...]
    quoted: tuple[Statement, ...]
    definition: Definition | None
    hits: tuple[Hit, ...]

    @property
    def called(self) -> tuple[str, ...]:
        """All its names."""
        return (self.term.text, *self.names)


def _looked_up(
    terms: list[OrderTerm], language: str, filters: SearchFilter, plan: Plan, cited: _Cited
) -> Step[list[_LookedUp]]:
    """Look up the first terms in sources and the graph."""
    made: list[_LookedUp] = []
    for term in terms[:EXPLAINED]:
        names = names_for(term, language)
        card: Card | None = yield LookUp(term.text)
        question = _question(term, names, language)
        quoted, hits = yield from _defined(question, (term.text, *names), language, filters, plan, cited)
        made.append(_LookedUp(term, names, quoted, _definition(card, language), hits))
    return made


def _defined(
    question: str, called: tuple[str, ...], language: str, filters: SearchFilter, plan: Plan, cited: _Cited
) -> Step[tuple[tuple[Statement, ...], tuple[Hit, ...]]]:
    """A sentence that defines a term by one of its names, in the order's language first; and the hits."""
    found: dict[str, Hit] = {}
    for limit in (replace(filters, language=language), filters) if not filters.language else (filters,):
        hits = yield from _by_tier_priority(question, limit, plan)
        if found.keys() >= {hit.passage.id for hit in hits}:
            continue
        found |= {hit.passage.id: hit for hit in hits}
        evidence = yield from finding.minted(hits, cited.evidence)
        quoted = definition_of(called, (piece for piece in evidence if piece.for_models))
        cited.keep(evidence, quoted)
        if quoted:
            return quoted, tuple(found.values())
    return (), tuple(found.values())


def _drafted_terms(
    terms: Sequence[_LookedUp], language: str, plan: Plan, known: str, cited: _Cited
) -> Step[Draft | None]:
    """A model's draft for the first terms that no source defines, in one reply."""
    waiting = [one for one in terms if one.hits and not one.quoted][:WRITTEN]
    if not waiting or WRITE.name not in plan.chat:
        return None
    hits = tuple({hit.passage.id: hit for one in waiting for hit in one.hits[:OF_TERM]}.values())
    cited.read = yield from finding.minted(hits, cited.evidence)
    question = " ".join(_question(one.term, one.names, language) for one in waiting)
    return (yield from write_draft(question, cited.read, plan, known))


def _explained(terms: Sequence[_LookedUp], written: Sequence[Statement], cited: _Cited) -> Iterator[TermPart]:
    """The terms explained by a source's sentence, a model's sentence or the graph."""
    for one in terms:
        names = [name.casefold() for name in one.called]  # a small model explains whatever the sources are about
        about = (it for it in written if any(name in it.text.casefold() for name in names))
        statements = one.quoted or tuple(about)
        cited.keep(cited.read, statements)
        if statements or one.definition:
            definition = None if statements else one.definition
            yield TermPart(one.term.text, statements, one.names, definition, one.term.start, one.term.end)


def _translated(
    terms: Sequence[_LookedUp], language: str, filters: SearchFilter, plan: Plan, cited: _Cited
) -> Step[tuple[TermPart, ...]]:
    """Definitions in the other language for its leaflet, of terms with a name in it."""
    parts: list[TermPart] = []
    for one, other in product(terms, LANGUAGES):
        names = names_for(one.term, other)
        told = other == language or any(detect(it.text) == other for it in one.quoted)
        if told or not names or filters.language:
            continue
        limit, question = replace(filters, language=other), _question(one.term, names, other)
        quoted, _ = yield from _defined(question, (one.term.text, *names), other, limit, plan, cited)
        if quoted:
            parts.append(TermPart(one.term.text, quoted, names, None, one.term.start, one.term.end))
    return tuple(parts)


def _standing(written: Sequence[Statement]) -> tuple[Statement, ...]:
    """The sentences that a patient may see: judged and not withheld."""
    return tuple(one for one in written if not one.withheld and one.verdict is not None)


def _definition(card: Card | None, language: str) -> Definition | None:
    """The graph's definition with source, if its name matches uniquely and its language is the reader's."""
    if card is None or card.others or card.matched.kind not in ("name", "exact"):
        return None
    text, source = card.concept.definition, card.concept.defined_in
    if not text or detect(text) != language:
        return None
    text = text if len(text) <= CARD_CHARACTERS else text[: CARD_CHARACTERS - 1] + "…"
    return Definition(text, f"{source.collection}, {card.concept.id}" if source else card.concept.id)


def _question(term: OrderTerm, names: tuple[str, ...], language: str) -> str:
    also = f" ({names[0]})" if names and language == "en" else f"（{names[0]}）" if names else ""
    return f"{term.text}{also}是什么？" if language == "zh" else f"What is {term.text}{also}?"


def _by_tier_priority(question: str, filters: SearchFilter, plan: Plan) -> Step[tuple[Hit, ...]]:
    """The best passages of all tiers, sorted by the question's language, then by tier."""
    tier_of = {name: place for place, tier in enumerate(plan.tiers) for name in tier.collections}
    if not tier_of:
        return ()
    result: Found = yield Search(question, replace(filters, collections=tuple(tier_of)), PASSAGES)
    own = detect(question)

    def place(hit: Hit) -> tuple[bool, int]:
        return hit.passage.language != own, tier_of.get(hit.passage.collection, len(tier_of))

    return tuple(sorted(result.hits, key=place))


# --- follow-up questions ----------------------------------------------------------------------------------------------


def _asked(
    task: ExplainInput,
    terms: tuple[OrderTerm, ...],
    filters: SearchFilter,
    plan: Plan,
    provenance: Provenance,
    cited: _Cited,
) -> Step[list[tuple[QuestionPart, Draft | None]]]:
    """Each follow-up question with its nearest sections, and a model's draft; adds the sections to ``cited``."""
    made: list[tuple[QuestionPart, Draft | None]] = []
    medicines = {folded(term.text): term.text for term in terms if term.kind == "medicine"}.values()
    patient = task.patient.text if task.patient else ""
    problems = [it.words for it in things_of(patient, names_in(patient)) if it.kind is NameKind.CONDITION]
    # "It" may mean the only medicine or problem, so both are searched for too; with several nothing is guessed.
    subject = (*(medicines if len(medicines) == 1 else ()), *(problems if len(problems) == 1 else ()))
    for question in task.questions:
        alone = question
        if RETRIEVAL_QUESTION.name in plan.roles:
            alone, _ = yield from attempt(RETRIEVAL_QUESTION, RetrievalInput(question, task.known, task.order, terms))
        found: Answer = yield from receipts(
            alone, plan.within(filters), plan.searched, provenance, subject, sections=OF_QUESTION
        )
        found = renumbered(found, cited.next_marker)
        sections = cited.keep_sections(found)
        pieces = best_of(found, own(found))
        marked = best_of(found, [section for section in own(found) if section.marks and not section.lacks])
        fitting = [piece.passage for piece in marked if is_for(piece.passage, task.order)]
        nearest = tuple(dict.fromkeys((passage.headings or (passage.title,))[-1] for passage in fitting))
        # A mere likeness to a disclosure refuses no order: "What if I forget the tablet?" is like one. Staff are told.
        like = yield from finding.likened(question, plan)
        part = QuestionPart(
            question,
            searched_as=alone if alone != question else "",
            nearest=nearest,
            signs=red_flags(question),
            emergency_number=provenance.emergency_number,
            talk=bool(like),
            sections=sections,
        )
        made.append((part, (yield from write_draft(alone, pieces, plan, task.known))))
    return made


def _answered(part: QuestionPart, checked: tuple[tuple[Statement, ...], Verification] | None) -> QuestionPart:
    """The part with its answer; a patient sees a model's sentences only with a green badge."""
    written, account = checked or ((), Verification())
    stands, sure = _standing(written), account.badge is Badge.GREEN
    return replace(part, statements=stands if sure else (), left_out=bool(stands) and not sure)


# --- reading level ----------------------------------------------------------------------------------------------------


def _level(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The reading level of the explanations, without the order's own words."""
    texts = [part.plain for part in parts if isinstance(part, LinePart)]
    texts += [part.definition.text for part in parts if isinstance(part, TermPart) and part.definition]
    texts += [statement.text for part in parts for statement in part.statements if not statement.withheld]
    level = reading_level("\n".join(texts))
    return (level,) if level else ()
