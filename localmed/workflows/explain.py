"""Explain: a medical order in plain words, its terms with cited explanations, and answers to follow-up questions.

LINS, medical order explanation (Fig. 4a and Methods): terms of the order as written (MTEA), evidence and an explanation
for each, follow-up questions made self-contained by the order and the patient's information (QEA), cited answers. Here
the order itself is said in plain words too: each line holds every number, dose and negation of the order's, or it is
quoted (``verification.survival``). Sources are the patient's tiers, leaflets first; a definition of the concept graph
is a fact with its source's name, the usual meaning of an abbreviation a fact of ours. What the library does not explain
is said to be unexplained; nothing is made up. Order and questions are screened first, as a patient's.

Bounds: ``CHARACTERS`` of an order, ``EXPLAINED`` terms (the others are named), ``QUESTIONS`` follow-up questions, one
search for each.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Any

from localmed.agents.asking import AnswerInput
from localmed.agents.order_abbreviations import is_direction, usual_meaning
from localmed.agents.orders import (
    LINES,
    MEDICAL_TERMS,
    PLAIN_ORDER,
    RETRIEVAL_QUESTION,
    TERM_EXPLANATION,
    OrderInput,
    OrderTerm,
    PlainInput,
    RetrievalInput,
    TermInput,
    without_identity,
)
from localmed.agents.orders_rules import names_for
from localmed.agents.restating import lines, plain_line, quoted, survives
from localmed.domain import Answer, AnswerStatus, Evidence, Hit, Part, Provenance, SearchFilter, Statement, TextPart
from localmed.domain.patient import PatientRecord
from localmed.language import detect
from localmed.library.terms import folded
from localmed.retrieval.concepts import Card
from localmed.retrieval.search import Found
from localmed.verification.readability import reading_level
from localmed.workflows import finding
from localmed.workflows.answering import Written, overdue, write
from localmed.workflows.finding import Notes, Plan, Searched
from localmed.workflows.flow import Asked, Cite, Flow, LookUp, Search, attempt
from localmed.workflows.safety import refused, screened

CHARACTERS = 12_000  # of an order: some four pages; what is longer is cut, and said
EXPLAINED = 20  # terms, the first of the order: each costs a search
QUESTIONS = 5  # follow-up questions at once
PASSAGES = 8  # read for a term
CARD_CHARACTERS = 400  # of a definition that a graph gives

CUT = "The order has {all} characters; the first {read} were read"
LINES_CUT = "The order has {all} lines; the first {read} are said in plain words"
NOT_EXPLAINED = "Not explained, as at most {most} terms are: {names}"
QUESTIONS_CUT = "{all} questions were asked; the first {read} were answered"
NOTHING_MEDICAL = "No medical term was found in the order"
BY_RULES = "The order was said in plain words by rule; what could not be is quoted. It is no advice"


@dataclass(frozen=True, slots=True)
class ExplainInput:
    """What is explained: ``patient`` is the record if there is one, ``released_by`` who gives the explanation out."""

    order: str
    patient: PatientRecord | None = None
    questions: tuple[str, ...] = ()
    released_by: str = ""

    @property
    def known(self) -> str:
        """What is known of the patient's health, without what identifies, a line a list."""
        if self.patient is None:
            return ""
        lists = (self.patient.problems, self.patient.medications, self.patient.allergies)
        return without_identity("\n".join(["; ".join(each) for each in lists if each] or [self.patient.text]))


@dataclass(slots=True)
class _Cited:
    """The evidence cited so far; a passage keeps its marker."""

    evidence: dict[str, Evidence] = field(default_factory=dict)

    def minted(self, hits: tuple[Hit, ...]) -> Generator[Asked, Any, tuple[Evidence, ...]]:
        """Evidence for ``hits``: what was cited before under its old marker, the rest under new ones."""
        fresh = tuple(hit for hit in hits if hit.passage.id not in self.evidence)
        first = max((int(each.marker) for each in self.evidence.values()), default=0) + 1
        minted: tuple[Evidence, ...] = (yield Cite(fresh, first)) if fresh else ()
        known = {each.passage.id: each for each in minted} | self.evidence
        return tuple(known[hit.passage.id] for hit in hits)

    def keep(self, evidence: tuple[Evidence, ...], statements: tuple[Statement, ...]) -> None:
        """Remember what ``statements`` cite."""
        cited = {citation.marker for each in statements for citation in each.citations}
        self.evidence |= {each.passage.id: each for each in evidence if each.marker in cited}


def explain(given: ExplainInput, wanted: SearchFilter, plan: Plan, provenance: Provenance) -> Flow:
    """The flow of one order over the tiers of ``plan``."""
    for place, text in enumerate((given.order, *given.questions)):
        concern = yield from screened(text, plan, own_words=place > 0)
        if concern:
            return refused(text, plan, provenance, "explain")
    order, notes = given.order[:CHARACTERS], _bounded(given)
    language, cited = detect(order), _Cited()
    terms, more = yield from _terms(order, plan)
    told, by_rules = yield from _plain(order, language, plan)
    once = _once(terms)
    known: list[Part] = []
    for term in once[:EXPLAINED]:
        known.append((yield from _explained(term, given, wanted, plan, cited)))
    asked = yield from _answers(given, terms, wanted, plan, cited)
    parts = (*told, *known, *asked)
    notes += (*more, *by_rules)
    notes += (NOT_EXPLAINED.format(most=EXPLAINED, names=_named(once[EXPLAINED:])),) if once[EXPLAINED:] else ()
    names = tuple(dict.fromkeys(name for tier in plan.tiers for name in tier.collections))
    status = AnswerStatus.ANSWERED if terms else AnswerStatus.ABSTAINED
    notes += () if terms else (NOTHING_MEDICAL,)
    shown = tuple(cited.evidence.values())
    answer = Answer(status, order, language, (), shown, names, provenance, notes=notes + overdue(shown))
    return replace(
        answer, workflow="explain", parts=(*parts, *_level(parts)), released_by=" ".join(given.released_by.split())
    )


def _bounded(given: ExplainInput) -> Notes:
    """What of the input was left out."""
    notes: Notes = ()
    if len(given.order) > CHARACTERS:
        notes += (CUT.format(all=len(given.order), read=CHARACTERS),)
    if len(given.questions) > QUESTIONS:
        notes += (QUESTIONS_CUT.format(all=len(given.questions), read=QUESTIONS),)
    return notes


def _terms(text: str, plan: Plan) -> Generator[Asked, Any, tuple[tuple[OrderTerm, ...], Notes]]:
    if MEDICAL_TERMS.name not in plan.roles or not text.strip():
        return (), ()
    return (yield from attempt(MEDICAL_TERMS, OrderInput(text)))


def _once(terms: tuple[OrderTerm, ...]) -> list[OrderTerm]:
    """Each term where it first stands."""
    first: dict[str, OrderTerm] = {}
    for each in terms:
        first.setdefault(folded(each.text), each)
    return list(first.values())


def _named(terms: list[OrderTerm]) -> str:
    return ", ".join(each.text for each in terms)


# --- the order in plain words -----------------------------------------------------------------------------------------


def _plain(order: str, language: str, plan: Plan) -> Generator[Asked, Any, tuple[tuple[Part, ...], Notes]]:
    """A part for each line: said by the role, else by rule, else quoted; each holds all of its line."""
    spans = list(lines(order))
    if PLAIN_ORDER.name not in plan.roles or not spans:
        return (), ()
    notes: Notes = (LINES_CUT.format(all=len(spans), read=LINES),) if len(spans) > LINES else ()
    written = tuple(order[start:end] for start, end in spans[:LINES])
    told, more = yield from attempt(PLAIN_ORDER, PlainInput(written))
    parts = (_line(line, each, language, *span) for line, each, span in zip(written, told, spans, strict=False))
    return tuple(parts), (*notes, *more, BY_RULES)


def _line(line: str, told: str, language: str, start: int, end: int) -> Part:
    by_rule = plain_line(line, language)
    told = told if survives(line, told) else ""  # whoever said it
    how = "quoted" if not (told or by_rule) else "by rule" if told in ("", by_rule) else "by a language model"
    return TextPart("line", line, (), (("plain", told or by_rule or quoted(line, language)), ("how", how)), start, end)


# --- terms ------------------------------------------------------------------------------------------------------------


def _explained(
    term: OrderTerm, given: ExplainInput, wanted: SearchFilter, plan: Plan, cited: _Cited
) -> Generator[Asked, Any, Part]:
    """A part for ``term``: facts (usual meaning, definition of the graph, negation) and its cited explanation."""
    language = detect(given.order)
    names = names_for(term, language)
    card: Card | None = yield LookUp(term.text)
    facts = [("kind", term.kind), *((("in the order", term.negation),) if term.negation else ())]
    meaning = usual_meaning(term.text, language)
    facts += [("usual meaning", meaning)] if meaning else []
    facts += _definition(card, language)
    statements: tuple[Statement, ...] = ()
    if TERM_EXPLANATION.name in plan.roles and not is_direction(term.text):
        statements = yield from _quoted_or_written(term, names, given, wanted, plan, cited)
    if not statements and not meaning and not _definition(card, language):
        facts.append(("not explained", "the library holds no explanation"))
    return TextPart("term", term.text, statements, tuple(facts), term.start, term.end)


def _definition(card: Card | None, language: str) -> list[tuple[str, str]]:
    """The graph's definition, where it is in the reader's language, with who says so."""
    if card is None or not card.concept.definition or detect(card.concept.definition) != language:
        return []
    source = card.concept.defined_in
    by = f"{source.collection}, {card.concept.id}" if source else card.concept.id
    text = card.concept.definition
    text = text if len(text) <= CARD_CHARACTERS else text[: CARD_CHARACTERS - 1] + "…"
    return [("definition", text), ("defined by", by)]


def _quoted_or_written(
    term: OrderTerm, names: tuple[str, ...], given: ExplainInput, wanted: SearchFilter, plan: Plan, cited: _Cited
) -> Generator[Asked, Any, tuple[Statement, ...]]:
    question = _question(term, names, detect(given.order))
    hits, dense = yield from _leaflets_first(question, wanted, plan)
    if not hits:
        return ()
    evidence = yield from cited.minted(hits)
    asked = TermInput(question, evidence, dense, term=term.text, names=names, patient=given.known)
    written: Written = yield from write(asked, plan, TERM_EXPLANATION)
    if not written.stands:
        return ()
    cited.keep(evidence, written.statements)
    return written.statements


def _question(term: OrderTerm, names: tuple[str, ...], language: str) -> str:
    also = f" ({names[0]})" if names and language == "en" else f"（{names[0]}）" if names else ""
    return f"{term.text}{also}是什么？" if language == "zh" else f"What is {term.text}{also}?"


def _leaflets_first(
    question: str, wanted: SearchFilter, plan: Plan
) -> Generator[Asked, Any, tuple[tuple[Hit, ...], bool]]:
    """The best passages of all tiers at once, ordered by tier: a term is explained by whatever source defines it."""
    tier_of = {name: place for place, tier in enumerate(plan.tiers) for name in tier.collections}
    if not tier_of:
        return (), False
    found: Found = yield Search(question, replace(wanted, collections=tuple(tier_of)), PASSAGES)
    return tuple(sorted(found.hits, key=lambda hit: tier_of.get(hit.passage.collection, len(tier_of)))), found.dense


# --- follow-up questions ----------------------------------------------------------------------------------------------


def _answers(
    given: ExplainInput,
    terms: tuple[OrderTerm, ...],
    wanted: SearchFilter,
    plan: Plan,
    cited: _Cited,
) -> Generator[Asked, Any, tuple[Part, ...]]:
    """A part for each follow-up question, asked of the patient's tiers in their order (LINS, HRD)."""
    parts: list[Part] = []
    if given.questions and given.known:
        of_patient, _ = yield from _terms(given.known, plan)
        terms = (*terms, *of_patient)
    for question in given.questions[:QUESTIONS]:
        alone = question
        if RETRIEVAL_QUESTION.name in plan.roles:
            alone, _ = yield from attempt(RETRIEVAL_QUESTION, RetrievalInput(question, given.known, given.order, terms))
        parts.append((yield from _answer(question, alone, wanted, plan, cited)))
    return tuple(parts)


def _answer(question: str, alone: str, wanted: SearchFilter, plan: Plan, cited: _Cited) -> Generator[Asked, Any, Part]:
    facts = (("asked as", alone),) if alone != question else ()
    request, _ = yield from finding.request(alone, wanted, plan)
    searched: Searched = yield from finding.search(request, iter(plan.tiers), plan)
    if searched.leading:
        evidence = yield from cited.minted(searched.leading.hits)
        written: Written = yield from write(AnswerInput(alone, evidence, searched.leading.found.dense), plan)
        if written.stands:
            cited.keep(evidence, written.statements)
            return TextPart("question", question, written.statements, facts)
    return TextPart(
        "question", question, (), (*facts, ("no answer", "the library does not hold enough to answer this"))
    )


# --- reading level ----------------------------------------------------------------------------------------------------


def _level(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """How hard all that a patient would read is, as a part of its own."""
    texts = [value for part in parts for name, value in part.facts if name in ("plain", "usual meaning", "definition")]
    texts += [each.text for part in parts for each in part.statements if not each.withheld]
    level = reading_level("\n".join(texts))
    if level is None:
        return ()
    unit = "characters a sentence" if level.language == "zh" else "grade"
    return (
        TextPart(
            "reading level", "reading level", (), ((unit, f"{level.value:g}"), ("sentences", str(level.sentences)))
        ),
    )
