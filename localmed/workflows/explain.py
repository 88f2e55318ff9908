"""Explain: the lines of a medical order, its terms with cited definitions, and answers to follow-up questions.

LINS, medical order explanation (Fig. 4a and Methods): terms of the order as written (MTEA), evidence and an explanation
for each, follow-up questions made self-contained by the order and the patient's information (QEA), cited answers.
Every line is quoted as it stands, alone: nothing is inferred across lines, and no status of a medicine is ever derived.
Beside it stand its abbreviations with what they usually mean. Plain words are a chat model's; each line of it must hold
every number, dose and negation of the order's (``verification.faithfulness``), or the order's own words stand alone and
that is said. Without a chat model it is said that there are no plain words, and how to get them. A term is explained by
a cited sentence that defines it, or a definition of the concept graph; else it is said to be unexplained. Order and
questions are screened first, as a patient's.

Bounds: ``CHARACTERS`` of an order, ``EXPLAINED`` terms (the others are named with those that nothing explains),
``QUESTIONS`` follow-up questions, one search for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from localmed.agents.orders import (
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
from localmed.agents.orders_rules import definition_of, names_for
from localmed.answering.write import WRITE
from localmed.clinical.abbreviations import abbreviations
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
    message,
)
from localmed.domain.findings import Found
from localmed.domain.parts import (
    Definition,
    Expansion,
    LinePart,
    QuestionPart,
    ReadingLevelPart,
    ReadingScale,
    Restated,
    TermPart,
    UnexplainedPart,
)
from localmed.domain.patient import PatientRecord
from localmed.errors import Rejected
from localmed.language import HAN, detect, sentences
from localmed.library.terms import folded
from localmed.retrieval.concepts import Card
from localmed.verification import citations, faithfulness
from localmed.workflows import finding
from localmed.workflows.ask import written_from
from localmed.workflows.finding import Notes, Plan
from localmed.workflows.flow import Flow, LookUp, Perform, Search, Step, attempt
from localmed.workflows.receipts import receipts, renumbered
from localmed.workflows.screening import overdue, refused, screened

CHARACTERS = 12_000  # of an order: some four pages; what is longer is cut, and said
WRITTEN = (
    6  # terms that a model explains, the first that no sentence of a source defines: each costs two calls or three
)
EXPLAINED = 20  # terms, the first of the order: each costs a search
QUESTIONS = 5  # follow-up questions at once
PASSAGES = 8  # read for a term
OF_QUESTION = 3  # sections shown for a follow-up question
CARD_CHARACTERS = 400  # of a definition that a graph gives

_LINE = re.compile(r"[^\n]*\S")
_LETTER = re.compile(r"[^\W\d_]")


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
        return without_identity("\n".join(["; ".join(names) for names in lists if names] or [self.patient.text]))


@dataclass(slots=True)
class _Cited:
    """The evidence cited so far, of which a passage keeps its marker, and how much a model was asked for."""

    evidence: tuple[Evidence, ...] = ()
    written: int = 0  # terms that a model was asked to explain
    receipts: list[Receipts] = field(default_factory=list)  # of the follow-up questions

    @property
    def next_marker(self) -> int:
        """The highest marker that is taken."""
        return max((int(piece.marker) for piece in self.evidence), default=0)

    @property
    def sections(self) -> Receipts | None:
        """The sections of all follow-up questions."""
        if not self.receipts:
            return None
        return Receipts(
            sections=tuple(one for found in self.receipts for one in found.sections),
            others=tuple(one for found in self.receipts for one in found.others),
            dense=all(found.dense for found in self.receipts),
        )

    def keep(self, evidence: tuple[Evidence, ...], statements: tuple[Statement, ...]) -> None:
        """Remember what ``statements`` cite."""
        self.evidence = tuple(dict.fromkeys((*self.evidence, *citations.cited(statements, evidence))))


def explain(task: ExplainInput, filters: SearchFilter, plan: Plan, provenance: Provenance) -> Flow:
    """The flow of one order over the tiers of ``plan``."""
    for place, text in enumerate((task.order, *task.questions)):
        concern = yield from screened(text, plan, own_words=place > 0)
        if concern:
            return refused(text, plan, provenance, "explain")
    order, notes = task.order[:CHARACTERS], _bounded(task)
    language, cited = detect(order), _Cited()
    terms, more = yield from _terms(order, plan)
    lines, of_lines = yield from _lines(order, language, plan)
    explained, unexplained = yield from _explained(_first_occurrences(terms), task, filters, plan, cited)
    questions, cut = _questions(task)
    answered = yield from _answers(replace(task, questions=questions), terms, filters, plan, provenance, cited)
    unexplained = tuple(term for term in unexplained if not _is_plain(term, language))
    parts = (*lines, *explained, *((UnexplainedPart(unexplained),) if unexplained else ()), *answered)
    searched = tuple(dict.fromkeys(name for tier in plan.tiers for name in tier.collections))
    shown = cited.evidence
    answer = Answer(AnswerStatus.ANSWERED, order, language, (), shown, searched, provenance, workflow="explain")
    return replace(
        answer,
        notes=(*notes, *cut, *more, *of_lines, *overdue(shown)),
        parts=(*parts, *_level(parts)),
        receipts=cited.sections,
        released_by=" ".join(task.released_by.split()),
    )


def _bounded(task: ExplainInput) -> Notes:
    """What of the order was left out."""
    note = message("explain.order_cut", characters=len(task.order), read=CHARACTERS)
    return (note,) if len(task.order) > CHARACTERS else ()


def _questions(task: ExplainInput) -> tuple[tuple[str, ...], Notes]:
    """The questions that are answered, and what of them was left out."""
    bounded = [finding.bounded(question) for question in task.questions[:QUESTIONS]]
    notes = tuple(note for _, cut in bounded for note in cut)
    if len(task.questions) > QUESTIONS:
        notes += (message("explain.questions_cut", questions=len(task.questions), read=QUESTIONS),)
    return tuple(question for question, _ in bounded), notes


def _terms(text: str, plan: Plan) -> Step[tuple[tuple[OrderTerm, ...], Notes]]:
    if MEDICAL_TERMS.name not in plan.roles or not text.strip():
        return (), ()
    return (yield from attempt(MEDICAL_TERMS, OrderInput(text)))


def _first_occurrences(terms: tuple[OrderTerm, ...]) -> list[OrderTerm]:
    """Each term where it first stands."""
    first: dict[str, OrderTerm] = {}
    for term in terms:
        first.setdefault(folded(term.text), term)
    return list(first.values())


# --- lines ------------------------------------------------------------------------------------------------------------


def lines_of(order: str) -> Iterator[tuple[int, int]]:
    """The lines of an order that hold words, ``start:end``, without the blanks around them."""
    for match in _LINE.finditer(order):
        if _LETTER.search(match[0]):
            yield match.end() - len(match[0].lstrip()), match.end()


def _lines(order: str, language: str, plan: Plan) -> Step[tuple[tuple[Part, ...], Notes]]:
    """Each line as it stands, with its abbreviations; and in plain words where a chat model serves the role."""
    spans = list(lines_of(order))
    written = [order[start:end] for start, end in spans]
    plain, restated, notes = [""] * len(spans), Restated.QUOTED, Notes()
    if PLAIN_ORDER.name not in plan.roles:
        notes = (message("explain.no_plain_words"),)
    elif spans:
        restated = Restated.REJECTED
        plain[:LINES], notes = yield from _in_plain_words(written[:LINES])
    if len(spans) > LINES and restated is Restated.REJECTED:
        notes += (message("explain.lines_cut", lines=len(spans), read=LINES),)
    parts = (
        LinePart(line, _expansions(line, language), words, Restated.MODEL if words else restated, *span)
        for line, words, span in zip(written, plain, spans, strict=True)
    )
    return tuple(parts), notes


def _in_plain_words(lines: list[str]) -> Step[tuple[list[str], Notes]]:
    """What the model says for each line, "" where that did not keep all of the line; nothing takes its place."""
    try:
        plain = yield Perform(PLAIN_ORDER, PlainInput(tuple(lines)))
    except Rejected:
        return [""] * len(lines), (message("explain.plain_words_rejected"),)
    rejected = sum(not words for words in plain)
    notes = (message("explain.lines_rejected", count=rejected),) if rejected else ()
    return list(plain), notes


def _expansions(line: str, language: str) -> tuple[Expansion, ...]:
    """The abbreviations of a line, each once."""
    first = {abbreviation.written: abbreviation for abbreviation in reversed(abbreviations(line, language))}
    return tuple(Expansion(abbreviation.written, abbreviation.meanings) for abbreviation in reversed(first.values()))


def _is_plain(term: str, language: str) -> bool:
    """Whether the line of ``term`` says what it means, or it is an order's own word: how, when, hold, stop."""
    if any(expansion.written == term for expansion in _expansions(term, language)):
        return True
    kinds = {kind for kind, _ in faithfulness.facts(term)}
    return bool(kinds) and kinds <= {"way", "time", "sense"}


# --- terms ------------------------------------------------------------------------------------------------------------


def _explained(
    terms: list[OrderTerm], task: ExplainInput, filters: SearchFilter, plan: Plan, cited: _Cited
) -> Step[tuple[tuple[Part, ...], tuple[str, ...]]]:
    """The first terms, each with cited sentences or the graph's definition; and the names of all others."""
    parts: list[TermPart] = []
    language = detect(task.order)
    for term in terms[:EXPLAINED]:
        names = names_for(term, language)
        card: Card | None = yield LookUp(term.text)
        statements = yield from _quoted_or_written(term, names, task, filters, plan, cited)
        definition = None if statements else _definition(card, language)
        if statements or definition:
            parts.append(TermPart(term.text, statements, names, definition, term.start, term.end))
    there = {part.term for part in parts}
    return tuple(parts), tuple(term.text for term in terms if term.text not in there)


def _definition(card: Card | None, language: str) -> Definition | None:
    """The graph's, where it is of that very name alone and in the reader's language, with who says so."""
    if card is None or card.others or card.matched.kind not in ("name", "exact"):
        return None
    text, source = card.concept.definition, card.concept.defined_in
    if not text or detect(text) != language:
        return None
    text = text if len(text) <= CARD_CHARACTERS else text[: CARD_CHARACTERS - 1] + "…"
    return Definition(text, f"{source.collection}, {card.concept.id}" if source else card.concept.id)


def _quoted_or_written(
    term: OrderTerm, names: tuple[str, ...], task: ExplainInput, filters: SearchFilter, plan: Plan, cited: _Cited
) -> Step[tuple[Statement, ...]]:
    question = _question(term, names, detect(task.order))
    hits = yield from _by_tier_priority(question, filters, plan)
    if not hits:
        return ()
    evidence = yield from finding.minted(hits, cited.evidence)
    quoted = definition_of((term.text, *names), (piece for piece in evidence if not piece.planted))
    if not quoted and cited.written < WRITTEN and WRITE.name in plan.chat:
        cited.written += 1
        written, _ = yield from written_from(question, evidence, plan, task.known)
        quoted = tuple(one for one in written if _about(one.text, (term.text, *names)))
    cited.keep(evidence, quoted)
    return quoted


def _about(text: str, names: tuple[str, ...]) -> bool:
    """Whether ``text`` names the term: a small model explains whatever the sources are about."""
    return any(name.casefold() in text.casefold() for name in names)


def _question(term: OrderTerm, names: tuple[str, ...], language: str) -> str:
    also = f" ({names[0]})" if names and language == "en" else f"（{names[0]}）" if names else ""
    return f"{term.text}{also}是什么？" if language == "zh" else f"What is {term.text}{also}?"


def _by_tier_priority(question: str, filters: SearchFilter, plan: Plan) -> Step[tuple[Hit, ...]]:
    """The best passages of all tiers at once, those in the question's language first, ordered by tier."""
    tier_of = {name: place for place, tier in enumerate(plan.tiers) for name in tier.collections}
    if not tier_of:
        return ()
    result: Found = yield Search(question, replace(filters, collections=tuple(tier_of)), PASSAGES)
    own = detect(question)

    def place(hit: Hit) -> tuple[bool, int]:
        return hit.passage.language != own, tier_of.get(hit.passage.collection, len(tier_of))

    return tuple(sorted(result.hits, key=place))


# --- follow-up questions ----------------------------------------------------------------------------------------------


def _answers(
    task: ExplainInput,
    terms: tuple[OrderTerm, ...],
    filters: SearchFilter,
    plan: Plan,
    provenance: Provenance,
    cited: _Cited,
) -> Step[tuple[Part, ...]]:
    """A part for each follow-up question; the sections that speak of it stand in the answer, for staff.

    A patient is shown what a chat model writes only where its badge is green.
    """
    parts: list[Part] = []
    problems = task.patient.problems if task.patient else ()
    terms = (*terms, *(OrderTerm(problem, 0, 0, "condition") for problem in problems))
    for question in task.questions:
        alone = question
        if RETRIEVAL_QUESTION.name in plan.roles:
            alone, _ = yield from attempt(RETRIEVAL_QUESTION, RetrievalInput(question, task.known, task.order, terms))
        found: Answer = yield from receipts(
            alone, plan.within(filters), plan.searched, provenance, sections=OF_QUESTION
        )
        found = renumbered(found, cited.next_marker)
        if found.receipts:
            cited.receipts.append(found.receipts)
        cited.evidence = (*cited.evidence, *found.evidence)
        best = {section.best for section in found.receipts.sections} if found.receipts else set()
        pieces = tuple(piece for piece in found.evidence if piece.marker in best)
        written, account = yield from written_from(alone, pieces, plan, task.known)
        sure = account.badge is Badge.GREEN
        shown = written if sure else ()
        parts.append(QuestionPart(question, shown, alone if alone != question else "", bool(written) and not sure))
    return tuple(parts)


# --- reading level ----------------------------------------------------------------------------------------------------


def _level(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """How hard the explanations are that a patient would read, beside the order's own words."""
    texts = [part.plain for part in parts if isinstance(part, LinePart)]
    texts += [part.definition.text for part in parts if isinstance(part, TermPart) and part.definition]
    texts += [statement.text for part in parts for statement in part.statements if not statement.withheld]
    level = reading_level("\n".join(texts))
    if level is None:
        return ()
    scale = ReadingScale.CHARACTERS if level.language == "zh" else ReadingScale.GRADE
    return (ReadingLevelPart(scale, level.value, level.sentences),)


# --- how hard a text is to read ---------------------------------------------------------------------------------------

# English: the Flesch-Kincaid grade (Kincaid, Fishburne, Rogers & Chissom 1975), the school year in the United States
# that the text suits. Syllables are counted by rule (runs of vowels, a silent e at the end), right for about nine words
# in ten. Chinese has no formula that is agreed on: the mean length of a sentence in characters, under 25 being short.
# Neither knows whether the words are understood; a short Latin name counts as easy.
FORMULA = (0.39, 11.8, 15.59)
_WORD = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)?")
_VOWELS = re.compile(r"[aeiouy]+")
_HAN = re.compile(f"[{HAN}]")
_SILENT = re.compile(r"(?:[^laeiouy]e|[^aeiouytd]ed|[^aeiouysxz]es)$")


@dataclass(frozen=True, slots=True)
class ReadingLevel:
    """``value`` is a school grade in English, characters a sentence in Chinese; ``sentences`` how many were read."""

    language: str
    value: float
    sentences: int


def reading_level(text: str) -> ReadingLevel | None:
    """The level of ``text``, as prose in its main language; None where it holds no words."""
    spans = sentences(text)
    if detect(text) == "zh":
        counts = [len(_HAN.findall(text[start:end])) for start, end in spans]
        counts = [count for count in counts if count]
        return ReadingLevel("zh", round(sum(counts) / len(counts), 1), len(counts)) if counts else None
    read = [sentence for start, end in spans if (sentence := _WORD.findall(text[start:end]))]
    words = [word for sentence in read for word in sentence]
    if not words:
        return None
    a_sentence, a_word, less = FORMULA
    grade = a_sentence * len(words) / len(read) + a_word * sum(map(syllables, words)) / len(words) - less
    return ReadingLevel("en", round(max(grade, 0.0), 1), len(read))


def syllables(word: str) -> int:
    """How many syllables an English word has, by rule; at least one."""
    plain = word.lower().replace("'", "").replace("’", "")
    count = len(_VOWELS.findall(plain))
    if count > 1 and _SILENT.search(plain):
        count -= 1
    return max(count, 1)
