"""Evidence-based practice: a clinical question about a patient, searched by the tiers of HERD.

After LINS (Methods, "Workflow of LINS assisting in evidence-based medicine practice"): the question becomes a PICO
question and is searched for in each tier of the hierarchical evidence database (preset ``ebm``). Sections on a medicine
of the question come first, then nearer tiers before further ones, then the tiers' order: guidelines, literature, books.
A chat model writes an answer for this patient from the sections; it is checked, and no sentence can cite the record.
Also shown: PICO elements, the record with the names found in it, what the library says where it names them
(``answering.record``), and each source with type, date and level.

Rules compare nothing with the patient: no finding is no proof that advice fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from localmed.answering import record
from localmed.answering.practice import ELEMENTS, PICO, SHOWN, Pico, PicoInput, by_labels, in_words
from localmed.answering.record import Quote, Thing
from localmed.answering.write import WRITE
from localmed.domain import (
    Answer,
    AnswerStatus,
    Citation,
    Evidence,
    Hit,
    Message,
    Origin,
    Part,
    Passage,
    Provenance,
    SearchFilter,
    ShownSection,
    Statement,
    message,
)
from localmed.domain.findings import Line
from localmed.domain.parts import (
    AllergyPart,
    InteractionPart,
    NotJudgedPart,
    PicoPart,
    RangePart,
    RecordPart,
    SourceLevelPart,
    TogetherPart,
)
from localmed.domain.patient import NameKind, PatientRecord, RecordName
from localmed.retrieval.concepts import Card
from localmed.retrieval.conflicts import differences
from localmed.retrieval.marks import PARAGRAPH, begins_with_a_medicine, paragraphs
from localmed.retrieval.sections import lines_of
from localmed.retrieval.tiers import Tier
from localmed.safety.red_flags import red_flags
from localmed.text import measures, medicines, synonyms
from localmed.text.language import content_words, detect, fold
from localmed.text.publications import level
from localmed.workflows import finding
from localmed.workflows.ask import answered
from localmed.workflows.finding import Plan, cared, refused, screened
from localmed.workflows.flow import Flow, LookUp, Naming, Step, asked
from localmed.workflows.receipts import NEAREST, best_of, merged, own, receipts, renumbered

SEARCHED = 100  # medicines of the record, and values, that are searched for
LOOKED_UP = 4  # medicines looked up for interactions with those of the record
OF_TIER = 8  # sections of each tier: a ward's protocol has several
OF_NAME = 40  # passages for each name
RANGE = ("reference", "range", "target", "参考范围", "目标")  # searched with a value
SEARCHED_CONDITIONS = 2  # of the record, searched with a short question
PROPOSING = 3  # marked sections that propose medicines
UNMARKED = 3  # first sections that count without a mark: people read them
SHORT = 2  # content words beside medicines; a question with fewer is short


@dataclass(frozen=True)
class Case:
    """A clinician's question, its PICO elements, and the record."""

    question: str
    pico: Pico
    record: PatientRecord | None

    @property
    def searched(self) -> str:
        """The text to search for: the question; a short one on no condition with the record's first conditions."""
        others = self.question
        for one in medicines.mentions(self.question):
            others = others.replace(one.written, " ")
        if self.record is None or self._conditions or len(content_words(others)) >= SHORT:
            return self.question
        of_record = (it.words for it in self.own if it.kind is NameKind.CONDITION)
        named = [words for words in of_record if not words[0].isdigit()]  # "27+4 weeks" is no search
        return " ".join((self.question, *named[:SEARCHED_CONDITIONS]))

    @cached_property
    def names(self) -> tuple[RecordName, ...]:
        """The names in the record."""
        return record.names_in(self.record.text) if self.record else ()

    @cached_property
    def own(self) -> tuple[Thing, ...]:
        """What the record names."""
        return record.things_of(self.record.text, self.names) if self.record else ()

    @property
    def is_a_child(self) -> bool:
        """Whether record or question speak of a child."""
        return record.speaks_of_a_child(f"{self.record.text if self.record else ''}\n{self.question}")

    @cached_property
    def asked(self) -> tuple[Thing, ...]:
        """What the question names."""
        return record.things_of(self.question, record.names_in(self.question))

    @property
    def _conditions(self) -> list[synonyms.Named]:
        return [one for one in synonyms.named(fold(self.question)) if synonyms.is_in("conditions", one.written)]

    @property
    def named(self) -> tuple[medicines.Mention, ...]:
        """The medicines and classes that the question names; "high potassium" names none."""
        folded = fold(self.question)
        for one in self._conditions:
            folded = folded[: one.start] + " " * (one.end - one.start) + folded[one.end :]
        return tuple(it for it in medicines.mentions(folded) if not measures.mentioned(it.written))

    @property
    def medicines(self) -> frozenset[str]:
        """The ingredients of the medicines that the question names, and the members of its classes."""
        of_classes = (it for one in self.named if not one.ingredients for it in one.classes)
        members = (name for it in of_classes for name in medicines.members(it))
        return frozenset(chain(members, *(one.ingredients for one in self.named)))

    @property
    def patient(self) -> str:
        """The PICO elements that the user did not label, and the quoted record, for a model."""
        elements = [text for name in ELEMENTS if (text := getattr(self.pico, name)) and not self.pico.labelled]
        quoted = [in_words(self.record, detect(self.question))] if self.record else []
        return "\n".join((*elements, *quoted))


def ebm(
    question: str,
    filters: SearchFilter,
    plan: Plan,
    provenance: Provenance,
    patient: PatientRecord | None = None,
    is_pico: bool = False,
) -> Flow:
    """The flow for one clinical question; ``is_pico``: ``question`` is a PICO question already."""
    if (yield from screened(question, plan)):
        return refused(question, plan, provenance, "ebm")
    care = yield from cared(question, plan)
    question, cut = finding.bounded(question)
    case = Case(question, (yield from _pico(question, patient, is_pico, plan)), patient)
    answer: Answer = yield from _by_tiers(case, filters, plan, provenance)
    notes = (*care, *answer.notes, *cut, *_of_record(patient, plan))
    answer = replace(answer, question=question, language=detect(question), notes=notes)
    answer = yield from answered(answer, plan, filters, case.patient)
    told, evidence = yield from _beside_record(case, answer, filters)  # of any collection, leaflets too
    answer = replace(answer, evidence=evidence)
    first = [it for it in told if _is_first(it)]
    rest = [it for it in told if it not in first]
    parts = (
        *first,
        _not_judged(case, plan, _absent(told)),
        *rest,
        *_pico_part(case),
        *_sources(best_of(answer, own(answer))),
    )
    return replace(answer, parts=parts)


def _of_record(patient: PatientRecord | None, plan: Plan) -> tuple[Message, ...]:
    """The notes on a record, and that a model reads only a part of a long one."""
    if patient is None:
        return ()
    length = len(patient.text)
    cut = message("record.text_cut", kept=SHOWN, characters=length)
    return (*patient.notes, cut) if plan.chat and length > SHOWN else patient.notes


def _pico(question: str, patient: PatientRecord | None, is_pico: bool, plan: Plan) -> Step[Pico]:
    """The PICO question by the user's labels, else by a chat model."""
    labelled = by_labels(question)
    if labelled or is_pico:
        return labelled or Pico(labelled=True)
    return (yield from asked(PICO, PicoInput(question, patient), plan.chat, Pico()))


def _by_tiers(case: Case, filters: SearchFilter, plan: Plan, provenance: Provenance) -> Flow:
    """The sections of all tiers as one answer, nearer tiers first (LINS, HERD), but those with marks before others."""
    found: list[Answer] = []
    for tier in [tier for tier in plan.tiers if tier.collections] or [Tier(())]:
        one: Answer = yield from receipts(
            case.searched, tier.limit(filters), tier.collections, provenance, workflow="ebm", sections=OF_TIER
        )
        found.append(renumbered(one, sum(len(before.evidence) for before in found)))
    whole = replace(
        found[0],
        searched=plan.searched,
        notes=(*dict.fromkeys(note for one in found for note in one.notes), *plan.lacking, *plan.outside),
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
    """``sections``, first those with an ``asked`` medicine in heading or text."""
    known = {piece.marker: piece.passage for piece in evidence}

    def without(section: ShownSection) -> bool:
        lines = (known[line.marker].text[line.start : line.end] for line in section.lines)
        return not asked & medicines.ingredients(" ".join((*known[section.best].headings[-1:], *lines)))

    return tuple(sorted(sections, key=without) if asked else sections)


def _absent(parts: Iterable[Part]) -> tuple[str, ...]:
    """The names of the record that no document has, as written."""
    records = (part for part in parts if isinstance(part, RecordPart))
    absent = ((one.text, it) for one in records for it in one.names if it.start in one.absent)
    named = (text[it.start : it.end] for text, it in absent if it.kind is not NameKind.VALUE)
    return tuple({fold(name): " ".join(name.split()) for name in named}.values())


def _is_first(part: Part) -> bool:
    """Whether a part is to be seen before anything else."""
    urgent = isinstance(part, RangePart) and part.urgent
    return (
        urgent
        or isinstance(part, AllergyPart | InteractionPart)
        or (isinstance(part, TogetherPart) and part.is_warning)
    )


def _pico_part(case: Case) -> tuple[Part, ...]:
    """The PICO elements, if any."""
    pico = case.pico
    elements = PicoPart(pico.population, pico.intervention, pico.comparison, pico.outcome)
    return (elements,) if any(getattr(pico, name) for name in ELEMENTS) else ()


def _not_judged(case: Case, plan: Plan, absent: tuple[str, ...]) -> NotJudgedPart:
    """What was read of allergies, what no document names (``absent``), and that nothing else was judged."""
    if case.record is None:
        return NotJudgedPart((message("ebm.no_record"),))
    unread = (message("ebm.fit_not_written"),) if plan.chat and WRITE.name not in plan.chat else ()
    said = tuple(f"“{words}”" for words in record.said_of_allergies(case.record.text))
    read = message("ebm.allergies_read", words=said) if said else message("ebm.no_allergies_read")
    lacking = (message("ebm.absent", names=absent),) if absent else ()
    return NotJudgedPart((read, *lacking, message("ebm.looked_up"), *unread), first=True)


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


def _beside_record(
    case: Case, answer: Answer, filters: SearchFilter
) -> Step[tuple[tuple[Part, ...], tuple[Evidence, ...]]]:
    """What the library says where it names what the record names, the record, and the evidence.

    For allergies the shown sections count, but not unmarked rows of lists of medicines.
    """
    if case.record is None:
        return (), answer.evidence
    language = detect(case.question)
    on_question = [one for place, one in enumerate(own(answer)) if not one.lacks and (one.marks or place < UNMARKED)]
    near = _quotes(answer, on_question)
    marked = [one for one in on_question if one.marks][:PROPOSING]
    asked = (*case.asked, *record.proposed(_quotes(answer, marked), (*case.own, *case.asked)))
    library, absent = yield from _search_library(case, asked, filters)
    listed = yield from _interactions(case)
    shown = _told(answer, [one for one in answer.sections if one in on_question or not one.lacks])
    written = [Quote(one.text, one) for one in answer.shown]
    lines, near_texts = (*near, *library), {one.text for one in near}
    found: tuple[TogetherPart | RangePart, ...] = (
        *record.pairs(case.own, asked, lines, language),
        *record.together(case.own, asked, lines, near_texts, language, case.is_a_child),
        *record.ranges(case.own, lines, language, lambda words: bool(red_flags(words))),
    )
    missing = {it.words for it in absent}
    alone = [it.words for it in found if isinstance(it, TogetherPart) and not it.statements and it.words not in missing]
    found = tuple(it for it in found if it.statements or isinstance(it, RangePart))
    found, evidence = yield from _cited(found, library, answer.evidence)
    unknown = {one.keys for one in absent}
    places = tuple(it.start for it in case.names if frozenset(it.keys) in unknown)
    parts: tuple[Part, ...] = (
        *record.allergies(case.record.text, (*written, *shown), language),
        *dict.fromkeys(listed),
        *(it for it in found if isinstance(it, RangePart) and it.urgent),
        *(it for it in found if isinstance(it, TogetherPart) and it.is_warning),
        *(it for it in found if isinstance(it, TogetherPart) and it.is_own and not it.is_warning),
        *([TogetherPart(" · ".join(alone), (), ())] if alone else []),
        *(it for it in found if isinstance(it, TogetherPart) and not it.is_own),
        *(it for it in found if isinstance(it, RangePart) and not it.urgent),
        RecordPart(case.record.text, case.names, places),
    )
    return parts, evidence


def _quotes(answer: Answer, sections: Iterable[ShownSection], marked: bool = False) -> list[Quote]:
    """The lines of ``sections``, or only the ``marked`` ones."""
    known = answer.by_marker
    pieces = {piece.passage.id: piece for piece in answer.evidence}
    quotes: list[Quote] = []
    for section in sections:
        lines = [Line(known[it.marker].passage, it.start, it.end, it.marked, it.breaks) for it in section.lines]
        cited = _in_paragraphs(lines, lambda passage, start, end: pieces[passage.id].quotation(start, end))
        quotes += [one for line, one in cited.items() if line.marked or not marked]
    return quotes


def _in_paragraphs(lines: Sequence[Line], quoted: Callable[[Passage, int, int], Statement]) -> dict[Line, Quote]:
    """Each of ``lines`` as a quotation: of its paragraph, if that is short."""
    made: dict[Line, Quote] = {}
    for places in paragraphs(lines):
        of = [lines[place] for place in places]
        whole = of[0].start, of[-1].end
        for line in of:
            start, end = whole if whole[1] - whole[0] <= PARAGRAPH else (line.start, line.end)
            made[line] = Quote(line.text, quoted(line.passage, start, end), line.passage)
    return made


def _told(answer: Answer, sections: Iterable[ShownSection]) -> list[Quote]:
    """The lines of ``sections``, without rows of a list of medicines that are not marked."""
    marked = _quotes(answer, sections := [*sections], marked=True)
    return [one for one in _quotes(answer, sections) if one in marked or not begins_with_a_medicine(one.text)]


def _interactions(case: Case) -> Step[list[InteractionPart]]:
    """The interactions of the question's medicines with those of the record, by lists of terms."""
    named = sorted({name for it in case.asked if it.kind is NameKind.MEDICINE for name in it.keys})[:LOOKED_UP]
    named = named if case.own else []
    cards: tuple[Card | None, ...] = (yield tuple(LookUp(name) for name in named)) if named else ()
    return [
        part
        for name, card in zip(named, cards, strict=True)
        for part in record.interactions(case.own, name, card.relations if card else ())
    ]


def _search_library(case: Case, asked: Sequence[Thing], filters: SearchFilter) -> Step[tuple[list[Quote], list[Thing]]]:
    """The lines that name what the record names, without markers, and what no passage names.

    A medicine is searched for alone, and with what else the record and the question name.
    """
    own_medicines = [it for it in case.own if it.kind is NameKind.MEDICINE][:SEARCHED]
    values = [it for it in case.own if it.kind is NameKind.VALUE][:SEARCHED]
    others = tuple(name for it in (*values, *asked) for name in it.searched[:2])
    groups = [it.searched for it in own_medicines] + [(*it.searched, *others) for it in own_medicines if others]
    groups += [(*it.searched, *RANGE) for it in values]
    if not groups:
        return [], []
    found: tuple[tuple[Passage, ...], ...] = yield Naming(tuple(groups), filters, OF_NAME)
    passages = {passage.id: passage for passage in chain.from_iterable(found)}
    quotes = _in_paragraphs([*lines_of(passages.values())], _without_marker).values()
    searched = (*own_medicines, *values)
    naming = [one for one in quotes if any(one.names(it) for it in searched)]
    return naming, [it for it in searched if not any(one.names(it) for one in naming)]


def _without_marker(passage: Passage, start: int, end: int) -> Statement:
    quote = passage.text[start:end]
    return Statement(quote, (Citation("", passage.id, passage.document_id, start, end, quote),), Origin.EXTRACTIVE)


def _cited(
    parts: tuple[TogetherPart | RangePart, ...], library: Iterable[Quote], evidence: tuple[Evidence, ...]
) -> Step[tuple[tuple[TogetherPart | RangePart, ...], tuple[Evidence, ...]]]:
    """``parts`` with markers for the lines of the ``library``, and the evidence with theirs."""
    passages = {one.passage.id: one.passage for one in library if one.passage}
    citations = [it for part in parts for one in part.statements for it in one.citations if not it.marker]
    hits = [Hit(passages[name]) for name in dict.fromkeys(it.passage_id for it in citations)]
    pieces = yield from finding.minted(hits, evidence)
    known = {piece.passage.id: piece for piece in pieces}

    def with_marker(one: Statement) -> Statement:
        it = one.citations[0]
        return one if it.marker else known[it.passage_id].quotation(it.start, it.end)

    marked = tuple(replace(part, statements=tuple(map(with_marker, part.statements))) for part in parts)
    return marked, tuple({piece.marker: piece for piece in (*evidence, *pieces)}.values())
