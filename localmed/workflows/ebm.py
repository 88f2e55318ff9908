"""Evidence-based practice: a clinical question about a patient, searched by the tiers of HERD.

After LINS (Methods, "Workflow of LINS assisting in evidence-based medicine practice"): the question becomes a PICO
question and is searched for in each tier of the hierarchical evidence database (preset ``ebm``). Sections on a medicine
of the question come first, then nearer tiers before further ones, then the tiers' order: guidelines, literature, books.
A chat model writes an answer for this patient from the sections; it is checked, and no sentence can cite the record.
Also shown: PICO elements, entries read from the record, allergies and interactions by name, table rows whose range
contains a value of the record, and each source with type, date and level.

Rules say nothing else about the patient: no finding is no proof that advice fits. Of the record only the medicines are
searched for, together with those of question and answer, and with a short question the first problems.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace

from localmed.answering.practice import ELEMENTS, PICO, Pico, PicoInput, by_labels, in_words
from localmed.answering.write import WRITE
from localmed.domain import (
    Answer,
    AnswerStatus,
    Evidence,
    Hit,
    Part,
    Passage,
    Provenance,
    SearchFilter,
    ShownSection,
    Statement,
    message,
)
from localmed.domain.findings import Finding, Line
from localmed.domain.parts import (
    AllergyPart,
    CautionPart,
    InteractionPart,
    NotJudgedPart,
    PicoPart,
    RecordPart,
    SourceLevelPart,
    ValuePart,
)
from localmed.domain.patient import EntryKind, Measured, PatientRecord, RecordEntry
from localmed.library.graph import Relation
from localmed.retrieval.concepts import Card
from localmed.retrieval.conflicts import differences
from localmed.retrieval.sections import begins_with_a_medicine
from localmed.retrieval.tiers import Tier
from localmed.text import measures, medicines, synonyms
from localmed.text.language import aligned, content_words, detect, fold
from localmed.text.negation import warns
from localmed.text.publications import level
from localmed.text.tables import Names, cues
from localmed.workflows import finding
from localmed.workflows.ask import answered
from localmed.workflows.finding import Plan, refused, screened
from localmed.workflows.flow import Find, Flow, LookUp, Step, asked
from localmed.workflows.receipts import NEAREST, PASSAGES, SECTIONS, best_of, merged, own, receipts, renumbered

SEARCHED = 12  # medicines searched for together with those of the record
SEARCHED_WITH = 8  # medicines of the record searched for with the kind of treatment asked about
LOOKED_UP = 4  # medicines looked up for interactions with those of the record
OF_TIER = 5  # sections of each tier
SEARCHED_PROBLEMS = 2  # problems of the record that are searched with a short question
_BETWEEN = re.compile(r"[;；]\s*")  # cells of a row
_AND = re.compile(r"\s*(?:and\b|并?且|和|及)\s*", re.IGNORECASE)  # a cell between two ranges, or before the second
_CELL = re.compile(r"(?P<header>[^:：]+)[:：]\s*(?P<text>.+)", re.DOTALL)
SHORT = 2  # content words beside medicines; a question with fewer is short


@dataclass(frozen=True, slots=True)
class Case:
    """A clinician's question, its PICO elements, and the record."""

    question: str
    pico: Pico
    record: PatientRecord | None

    @property
    def searched(self) -> str:
        """The text to search for: the question; for a short one, with the record's first problems."""
        others = self.question
        for one in medicines.mentions(self.question):
            others = others.replace(one.written, " ")
        if self.record is None or len(content_words(others)) >= SHORT:
            return self.question
        return " ".join((self.question, *self.record.problems[:SEARCHED_PROBLEMS]))

    @property
    def medicines(self) -> frozenset[str]:
        """The ingredients of the medicines that the question names."""
        return medicines.ingredients(self.question)

    @property
    def patient(self) -> str:
        """The PICO elements that the user did not label, and the quoted record, for a model."""
        elements = [text for name in ELEMENTS if (text := getattr(self.pico, name)) and not self.pico.labelled]
        record = [in_words(self.record, detect(self.question))] if self.record else []
        return "\n".join((*elements, *record))


def ebm(
    question: str,
    filters: SearchFilter,
    plan: Plan,
    provenance: Provenance,
    record: PatientRecord | None = None,
    is_pico: bool = False,
) -> Flow:
    """The flow for one clinical question; ``is_pico``: ``question`` is a PICO question already."""
    if (yield from screened(question, plan)):
        return refused(question, plan, provenance, "ebm")
    question, cut = finding.bounded(question)
    case = Case(question, (yield from _pico(question, record, is_pico, plan)), record)
    answer: Answer = yield from _by_tiers(case, filters, plan, provenance)
    notes = (*answer.notes, *cut, *(record.notes if record else ()))
    answer = replace(answer, question=question, language=detect(question), notes=notes)
    answer = yield from answered(answer, plan, filters, case.patient)
    warnings, evidence = yield from _warnings(case, answer, filters)  # of any collection, leaflets too
    answer = replace(answer, evidence=evidence)
    parts = (*warnings, *_of_case(case), _not_judged(case, plan), *_sources(best_of(answer, own(answer))))
    return replace(answer, parts=parts)


def _pico(question: str, record: PatientRecord | None, is_pico: bool, plan: Plan) -> Step[Pico]:
    """The PICO question by the user's labels, else by a chat model."""
    labelled = by_labels(question)
    if labelled or is_pico:
        return labelled or Pico(labelled=True)
    return (yield from asked(PICO, PicoInput(question, record), plan.chat, Pico()))


def _by_tiers(case: Case, filters: SearchFilter, plan: Plan, provenance: Provenance) -> Flow:
    """The sections of all tiers as one answer, nearer tiers first (LINS, HERD)."""
    found: list[Answer] = []
    for tier in [tier for tier in plan.tiers if tier.collections] or [Tier(())]:
        one: Answer = yield from receipts(
            case.searched, tier.limit(filters), tier.collections, provenance, workflow="ebm", sections=OF_TIER
        )
        found.append(renumbered(one, sum(len(before.evidence) for before in found)))
    whole = replace(
        found[0],
        searched=plan.searched,
        notes=(*dict.fromkeys(note for one in found for note in one.notes), *plan.lacking),
    )
    of_tiers = sorted((it.receipts for it in found if it.receipts), key=lambda it: NEAREST.index(it.closeness))
    if not of_tiers:
        return whole
    every, evidence = merged(of_tiers), tuple(piece for one in found for piece in one.evidence)
    every = replace(every, sections=_sort_by_medicine(every.sections, evidence, case.medicines))
    return replace(
        whole,
        status=AnswerStatus.SECTIONS if every.sections or every.others else whole.status,
        evidence=evidence,
        receipts=every,
        conflicts=tuple(differences(every.sections, evidence)),
    )


def _sort_by_medicine(
    sections: Sequence[ShownSection], evidence: Sequence[Evidence], asked: Set[str]
) -> tuple[ShownSection, ...]:
    """``sections``, first those with an ``asked`` medicine in the heading, then in the text."""
    known = {piece.marker: piece.passage for piece in evidence}

    def without(section: ShownSection) -> tuple[bool, bool]:
        heading = " ".join(known[section.best].headings[-1:])
        lines = " ".join(known[line.marker].text[line.start : line.end] for line in section.lines)
        return not asked & medicines.ingredients(heading), not asked & medicines.ingredients(lines)

    return tuple(sorted(sections, key=without) if asked else sections)


def _of_case(case: Case) -> tuple[Part, ...]:
    """The PICO elements, if any, and the record's entries."""
    pico = case.pico
    elements = PicoPart(pico.population, pico.intervention, pico.comparison, pico.outcome)
    parts: tuple[Part, ...] = (elements,) if any(getattr(pico, name) for name in ELEMENTS) else ()
    return (*parts, RecordPart(case.record.entries)) if case.record else parts


def _not_judged(case: Case, plan: Plan) -> NotJudgedPart:
    """The matters that nobody judged."""
    if case.record is None:
        return NotJudgedPart((message("ebm.no_record"),))
    why = message("ebm.fit_not_written" if plan.chat else "ebm.fit_not_judged")
    unread = () if WRITE.name in plan.chat else (why,)
    return NotJudgedPart((*unread, message("ebm.reactions_not_judged"), message("ebm.not_looked_for")))


def _sources(evidence: Sequence[Evidence]) -> tuple[Part, ...]:
    """Type, date and level of evidence of each document."""
    documents: dict[str, list[Evidence]] = {}
    for source in evidence:
        documents.setdefault(source.passage.document_id, []).append(source)
    made = []
    for cited in documents.values():
        design, number = level(cited[0])
        markers = tuple(source.marker for source in cited)
        made.append(SourceLevelPart(markers, cited[0].document_title, design, number, cited[0].edition))
    return tuple(made)


def _warnings(case: Case, answer: Answer, filters: SearchFilter) -> Step[tuple[tuple[Part, ...], tuple[Evidence, ...]]]:
    """Allergies, interactions, cautions and ranges for the record, that they are no all-clear, and the evidence quoted.

    Allergies: to medicines in the answer or in sections with marks, other than lines of a list of medicines.
    Interactions: of the graph, with medicines in the question, the answer or marked lines; of library lines that name
    both, with those of the question or, if it names none, of any line of these sections. In the first sections without
    marks, and in the first of the other language, every line counts. Cautions: of the first sections only.
    """
    if case.record is None:
        return (), answer.evidence
    known = answer.by_marker
    others = answer.receipts.others[:UNMARKED] if answer.receipts else ()
    near = [section for place, section in enumerate(own(answer)) if section.marks or place < UNMARKED]
    near += [section for section in others if section not in near]
    quoted = [
        (line.marked or not section.marks, known[line.marker].quotation(line.start, line.end))
        for section in near
        for line in section.lines
    ]
    shown = " ".join(it.text for it in (*answer.shown, *(text for marked, text in quoted if marked)))
    read = [text for marked, text in quoted if marked or not begins_with_a_medicine(text.text)]
    nearest = {line.marker for section in near[:UNMARKED] for line in section.lines}
    first = [text for text in read if {it.marker for it in text.citations} <= nearest]
    ingredients = (*sorted(medicines.ingredients(case.question)), *sorted(medicines.ingredients(shown)))
    has_medicines = any(entry.kind in NAMED for entry in case.record.entries)
    named = tuple(dict.fromkeys(ingredients))[:LOOKED_UP] if has_medicines else ()
    cards: tuple[Card | None, ...] = (yield tuple(LookUp(name) for name in named)) if named else ()
    interacting: list[InteractionPart] = []
    for name, card in zip(named, cards, strict=True):
        interacting += interactions(case.record, name, card.relations if card else ())
    listed = sorted(medicines.ingredients(" ".join(text.text for text in read)))
    proposed = sorted(case.medicines) or list(dict.fromkeys((*ingredients, *listed)))[:SEARCHED]
    evidence: tuple[Evidence, ...] = ()
    if has_medicines:
        evidence, naming, of_kinds = yield from _search_together(case, case.record, proposed, filters, answer)
        among = frozenset(proposed) | _all_taken(case.record)
        interacting += together(case.record, among, (*(text for _, text in quoted), *naming))
        interacting += of_kinds
    told = {(part.entry, one.text) for part in interacting for one in part.statements}
    parts: tuple[Part, ...] = (
        *allergies(case.record, (*answer.shown, *read)),
        *dict.fromkeys(interacting),
        *cautions(case.record, case.medicines, (*answer.shown, *first), told),
        *rows(case.record, answer, case.medicines, frozenset(proposed)),
    )
    rest = message("ebm.others_not_compared" if parts else "ebm.no_match")
    return (*parts, NotJudgedPart((rest,), first=True)), (*answer.evidence, *evidence)


def _search_together(
    case: Case, record: PatientRecord, named: Sequence[str], filters: SearchFilter, answer: Answer
) -> Step[tuple[tuple[Evidence, ...], tuple[Statement, ...], list[InteractionPart]]]:
    """The library's lines that name a medicine of the record and a ``named`` one or another of the record.

    And the evidence that is new.

    Interactions: of a medicine of the record, with lines under its name on a kind of treatment that the question names
    ("Some antibiotics raise the INR").
    """
    own = dict.fromkeys(name for entry in record.entries for name in _taken(entry))
    kinds = [
        one
        for one in synonyms.named(case.question)
        if any(synonyms.is_in("treatments", name) for name in one.names) and not medicines.ingredients(one.written)
    ]
    each = [f"{' '.join(one.written for one in kinds)} {name}" for name in [*own][:SEARCHED_WITH]] if kinds else []
    lines: list[Line] = []
    pairs = [" ".join(dict.fromkeys((*named, *own)))] if named else []
    pairs += [" ".join(own)] if len(own) > 1 else []
    for text in (*dict.fromkeys(pairs), *each):
        found: Finding = yield Find(text, filters, PASSAGES, SECTIONS)
        lines += [line for section in (*found.sections, *found.others) for line in section.lines]
    lines = list(dict.fromkeys(lines))
    asked = own.keys() | {*named}
    both = [
        line
        for line in lines
        if len((names := medicines.ingredients(line.text)) & asked) > 1
        and names & own.keys()
        and not _is_on_another(line.text, asked)
    ]
    under = [(line, one) for line in lines for one in kinds if _is_on(one, line) and _above(line.passage) & own.keys()]
    quoted = [*both, *(line for line, _ in under)]
    pieces = yield from finding.minted([Hit(line.passage) for line in quoted], answer.evidence)
    statements = [piece.quotation(line.start, line.end) for piece, line in zip(pieces, quoted, strict=True)]
    parts = []
    for entry in record.entries:
        for kind in kinds:
            told = [
                statement
                for statement, (line, one) in zip(statements[len(both) :], under, strict=True)
                if one is kind and _above(line.passage) & _taken(entry)
            ]
            parts += [InteractionPart(entry, kind.written, "", tuple(dict.fromkeys(told))[:QUOTED])] if told else []
    known = {piece.marker for piece in answer.evidence}
    fresh = {piece.marker: piece for piece in pieces if piece.marker not in known}
    return tuple(fresh.values()), tuple(statements[: len(both)]), parts


def _is_on_another(text: str, asked: Set[str]) -> bool:
    """Whether ``text`` is a table's row on another medicine."""
    first = medicines.ingredients(_BETWEEN.split(text)[0])
    return begins_with_a_medicine(text) and bool(first) and not first & asked


def _is_on(kind: synonyms.Named, line: Line) -> bool:
    return bool(Names(kind.names).matches(fold(line.text)))


def _above(passage: Passage) -> frozenset[str]:
    """The ingredients in the title and headings of a passage."""
    return medicines.ingredients(" ; ".join((passage.title, *passage.headings)))


# --- warnings from the record -----------------------------------------------------------------------------------------

# Allergy: a sentence names the ingredient, or a member of the class that the allergy names. Both are quoted; the reader
# decides whether the sentence advises it. Interaction: the concept graph names it. Entries that are only quoted from
# the record count too. Limits, ages, pregnancy and other reactions across classes are not judged.

INTERACTS = "interacts_with"
UNMARKED = 3  # first sections that count without a mark: people read them
QUOTED = 5  # sentences below an allergy; all names stand above them
NAMED = (EntryKind.MEDICINE, EntryKind.NAMED)
_REACTION = cues("records", "quoted")


def allergies(record: PatientRecord, statements: Sequence[Statement]) -> Iterator[AllergyPart]:
    """The record's allergies to medicines in ``statements``, with these sentences."""
    told = set[tuple[str, ...]]()
    for entry in record.entries:
        quoted = entry.kind in (EntryKind.UNREAD, EntryKind.NAMED) and _REACTION.search(entry.words)
        if entry.kind is EntryKind.ALLERGY or quoted:
            named = [(statement, medicines.met_by(entry.text, statement.text)) for statement in statements]
            names = dict.fromkeys(name for _, matches in named for name in matches)
            if names and (entry.words, *names) not in told:
                told.add((entry.words, *names))
                matching = tuple(statement for statement, matches in named if matches)
                yield AllergyPart(entry, tuple(names), matching[:QUOTED])


def interactions(record: PatientRecord, named: str, relations: Sequence[Relation]) -> Iterator[InteractionPart]:
    """The record's medicines that interact with ``named`` by ``relations`` of the concept graph."""
    own = medicines.ingredients(named)
    for relation in relations:
        if relation.predicate != INTERACTS:
            continue
        partners = medicines.ingredients(f"{relation.subject_name}; {relation.object_name}") - own
        for entry in record.entries:
            if entry.kind in NAMED and partners & medicines.ingredients(entry.text):
                yield InteractionPart(entry, named, relation.source.collection)


def _taken(entry: RecordEntry) -> frozenset[str]:
    """The ingredients of an entry that names a medicine, as taken or not."""
    return medicines.ingredients(entry.text) if entry.kind in NAMED else frozenset()


def _all_taken(record: PatientRecord) -> frozenset[str]:
    return frozenset[str]().union(*map(_taken, record.entries))


def together(record: PatientRecord, asked: Set[str], statements: Sequence[Statement]) -> Iterator[InteractionPart]:
    """The record's medicines that ``statements`` name together with an ``asked`` one; no table's row on a third."""
    either = asked | _all_taken(record)
    named = [(one, medicines.ingredients(one.text)) for one in statements if not _is_on_another(one.text, either)]
    for entry in record.entries:
        own = _taken(entry)
        others = asked - own  # a combination is no partner of what it holds
        both = [(one, others & names) for one, names in named if own & names and others & names]
        if both:
            names = sorted({name for _, matches in both for name in matches})
            yield InteractionPart(entry, ", ".join(names), "", tuple(dict.fromkeys(one for one, _ in both))[:QUOTED])


def cautions(
    record: PatientRecord, asked: Set[str], statements: Sequence[Statement], told: Set[tuple[RecordEntry, str]]
) -> Iterator[CautionPart]:
    """The record's medicines that warnings among ``statements`` name, or whose class they name.

    Left out are a table's rows on a medicine that was not ``asked`` about, what an interaction has ``told`` of an
    entry, and what is for another range of the results.
    """
    results = [(measures.by_name(one.name), one.value) for one in record.results]
    warnings = [
        one
        for one in statements
        if warns(_cells(one.text)) and not _is_on_another(one.text, asked) and not measures.excludes(one.text, results)
    ]
    for entry in record.entries:
        fresh = [one for one in warnings if entry.kind in NAMED and (entry, one.text) not in told]
        named = [(one, medicines.named_in(entry.text, one.text)) for one in fresh]
        if names := dict.fromkeys(name for _, written in named for name in written):
            yield CautionPart(entry, tuple(names), tuple(one for one, written in named if written)[:QUOTED])


def _cells(text: str) -> str:
    """A row without its headers: "Notes" warns of nothing. Other text as it is."""
    cells = [_CELL.match(cell) for cell in _BETWEEN.split(text)]
    return " ; ".join(cell["text"] for cell in cells if cell) if len(cells) > 1 and all(cells) else text


def _values(record: PatientRecord) -> dict[tuple[str, float], tuple[Measured, str]]:
    """The record's results, then with its words the values that it only quotes, measured nobody knows when."""
    quoted = [entry for entry in record.entries if entry.kind is EntryKind.UNREAD]
    found = [(one, entry.words) for entry in quoted for one in measures.measured(fold(aligned(entry.text)))]
    once = dict[tuple[str, float], tuple[Measured, str]]()
    for one, words in (*((one, "") for one in record.results), *found):
        once.setdefault((one.name, one.value), (one, words))
    return once


def rows(
    record: PatientRecord, answer: Answer, asked: Set[str], proposed: Set[str] = frozenset()
) -> Iterator[ValuePart]:
    """The record's values, each with the shown table rows and sentences whose range contains the value.

    Those on other medicines than the ``asked`` ones are left out. Sentences in table rows count only on a ``proposed``
    medicine. One kidney value stands for the other where only one is known.
    """
    lines = [(answer.by_marker[line.marker], line) for section in answer.sections for line in section.lines]
    known = _values(record)
    both_kidneys = {*measures.KIDNEYS} <= {name for name, _ in known}
    told = set[tuple[str, tuple[Statement, ...]]]()
    for result, words in known.values():
        measure = measures.by_name(result.name)
        quoted = tuple(
            piece.quotation(line.start, line.end)
            for piece, line in lines
            if (text := piece.passage.text[line.start : line.end])
            and (
                (piece.passage.table and _is_row_of(measure, text, result.value, known))
                or (
                    (not piece.passage.table or proposed & medicines.ingredients(text))
                    and measures.falls_in_sentence(text, measure, result.value, both_kidneys)
                )
            )
            and not (
                asked
                and (named := medicines.ingredients(text))
                and not asked & named
                and (begins_with_a_medicine(text) or not asked & medicines.ingredients(piece.passage.text))
            )
        )
        of = "kidneys" if measure.name in measures.KIDNEYS else f"{measure.name} {result.value}"
        if quoted and (alike := (of, quoted)) not in told:
            told.add(alike)
            yield ValuePart(result, quoted, words)


def _is_row_of(measure: measures.Measure, row: str, value: float, known: Iterable[tuple[str, float]]) -> bool:
    """Whether a cell of ``row`` ("Header: cell; Header: cell") has a range of ``measure`` that contains ``value``.

    With a cell or a header "and", a range of another measure must contain what is ``known`` of that: "systolic 140 or
    more; and diastolic: below 90".
    """
    cells = [cell for cell in map(_CELL.match, _BETWEEN.split(row)) if cell]
    both = any(_AND.fullmatch(cell["text"]) or _AND.match(cell["header"]) for cell in cells)
    found = False
    for cell in cells:
        of = measures.mentioned(cell["header"])
        holds = measures.within(of[0], cell["header"], cell["text"]) if len(of) == 1 else None
        others = [number for name, number in known if of and name == of[0].name]
        if holds and of == [measure]:
            found = found or holds(value)
        elif holds and both and others and not any(map(holds, others)):
            return False
    return found
