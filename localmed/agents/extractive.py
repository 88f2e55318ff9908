"""The roles without a language model: keywords by rule, and answers made of the best sentences, verbatim.

A sentence scores by its similarity to the question (read with its title and heading, since "it" needs a name), by the
weighted share of the question's words in it and in its context (title, headings, the sentence before), and by holding
what is asked for (a number, a dose) or standing under a heading of it (signs, treatment, the question's own words).
Copies of a chosen one are left out. What is chosen stands in a few sections, the best first, so that it reads. Every
statement is a quotation: text, offsets, page and boxes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from localmed import language
from localmed.agents import asking
from localmed.agents.decomposing import DECOMPOSITION, SUB_QUESTIONS, SYNTHESIS, SynthesisInput
from localmed.agents.roles import Rules
from localmed.agents.subject import Subject
from localmed.clinical import ages, moments
from localmed.clinical.asking import Kind, Slot, filled, kinds, slots
from localmed.clinical.tables import cues, listed, table
from localmed.config import AskSettings, KeywordSettings
from localmed.domain import Evidence, Passage, Statement, Support, message
from localmed.library.lexical import LexicalIndex
from localmed.ports import Embedder
from localmed.retrieval.keywords import BOUND, READ, NGram, candidates, outermost, ranked
from localmed.retrieval.relevance import searched_text, weigh
from localmed.retrieval.topics import HALF, terms_of, topics
from localmed.verification import cases
from localmed.verification.copies import copies
from localmed.verification.furniture import furniture, imprint
from localmed.verification.matching import alike, stems

ENCODED = 24  # sentences compared by meaning: 0.1 s on two cores; the others cannot win on words alone
CLOSE_TO_BEST = 0.75  # of the best sentence's score, its heading left out: what is further off is not quoted
PLACE_WEIGHT = 0.15  # what the first-ranked source's sentences gain over the last one's
NUMBER_WEIGHT = 0.1  # what a sentence with a number gains when the question asks for a quantity
SLOT_WEIGHT = 0.2  # what one gains that gives the very values asked for: a dose, a duration
HEADING_WEIGHT, KIND_WEIGHT = 0.4, 0.1  # where the heading, or the sentence, is of the kind asked for: signs, treatment
NAMED_WEIGHT = 0.4  # of the question's words that the title does not hold, the share that the heading holds
OPPOSED_WEIGHT = 0.3  # what a sentence loses that is for other ages, or of before what the question is after
RESTRICTED_WEIGHT = 0.25  # and one for patients with something that the question does not speak of
ROW_WEIGHT = 0.3  # what a table's row gains whose first cell the question names
ENDS = tuple('.!?。！？…;；:：)）”"')  # of a sentence
SECTIONS = 3  # that are quoted: 248 questions with an answer among the candidates had it in the best 220 times, in the
# best two 239 times, in the best three 245 times
PER_SECTION = 3  # sentences chosen; what else belongs to them comes with their section (``verification.sections``)
SHORTEST = 12  # characters, Chinese ones twice; shorter fragments are list markers and captions

_ASKS_QUANTITY = re.compile(
    r"\b(dos(e|es|age)|how (much|many|long|often|old|high|low|soon)|maximum|minimum|target|threshold|level|range)\b"
    r"|\bwhen\b"
    "|多少|多久|多长|多大|几|剂量|用量|上限|下限|范围|标准|什么时候",
    re.IGNORECASE,
)
_AFTER_QUESTION = re.compile(r"(?<=[?？])(?![?？])")
_FURNITURE = re.compile(r"第\s*\d+\s*页|\bpage \d+ of \d+|^\W*\d+\W*$", re.IGNORECASE)  # what a footer left behind
_NUMBERED = re.compile(r"^[\d.、\s]+")  # before a heading
_VOLUME = re.compile(r"\b(?:19|20)\d\d\s?;\s?\d+")  # year;volume of a reference
_ROW = re.compile(r"[^\n]+")
_NUMBER = re.compile(r"\d|[一二三四五六七八九十百]+[层楼天周月年岁次片粒]")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence of a piece of evidence and its score."""

    evidence: Evidence
    place: int
    start: int
    end: int
    score: float
    heading: float = 0.0  # what of the score its heading gave
    fills: bool = False  # whether it gives the values that are asked for

    @property
    def text(self) -> str:
        """The sentence."""
        return self.evidence.passage.text[self.start : self.end]

    @property
    def section(self) -> tuple[str, ...]:
        """Where it stands: its document and headings."""
        return (self.evidence.passage.document_id, *self.evidence.passage.headings)

    @property
    def quotation(self) -> Statement:
        """A statement that is nothing but the sentence, cited."""
        return self.evidence.quotation(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question asks for: a quantity, certain values, kinds of things."""

    question: str
    quantity: bool
    slots: tuple[Slot, ...]
    kinds: tuple[Kind, ...]

    @classmethod
    def of(cls, question: str) -> Asked:
        """What ``question`` asks for."""
        return cls(question, bool(_ASKS_QUANTITY.search(question)), slots(question), kinds(question))

    def elsewhen(self, passage: Passage) -> bool:
        """Whether ``passage`` stands under what comes after a moment that the question is before, or the reverse."""
        return bool(moments.opposed(self.question, " ".join(passage.headings[-1:])))

    def heading(self, passage: Passage) -> float:
        """What the sentences of ``passage`` gain by their heading."""
        heading = " ".join(passage.headings[-1:])
        fits = any(kind.headings.search(language.fold(heading)) for kind in self.kinds)
        rest = _stems(self.question) - _stems(passage.title)
        named = len(rest & _stems(heading)) / len(rest) if rest else 0.0
        return HEADING_WEIGHT * (fits or moments.agreed(self.question, heading)) + NAMED_WEIGHT * named

    def fills(self, text: str) -> bool:
        """Whether ``text`` gives the very values asked for; False where none are."""
        return bool(self.slots) and filled(self.slots, [text])

    def sentence(self, text: str, *, fills: bool) -> float:
        """What the sentence ``text`` gains by giving it; ``fills`` says whether it does."""
        folded = language.fold(text)
        number = NUMBER_WEIGHT * bool(self.quantity and _NUMBER.search(text))
        values = SLOT_WEIGHT * fills
        says = KIND_WEIGHT * any(kind.says and kind.says.search(folded) for kind in self.kinds)
        opposed = bool(moments.opposed(self.question, text)) or ages.outside(self.question, text)
        exception = RESTRICTED_WEIGHT * cases.restricted(self.question, text)
        return number + values + says - OPPOSED_WEIGHT * opposed - exception


class Extractive:
    """The roles of a question by rule."""

    def __init__(
        self,
        index: LexicalIndex,
        encoder: Embedder,
        settings: AskSettings,
        keywords: KeywordSettings = KeywordSettings(),  # noqa: B008  (frozen)
    ) -> None:
        """``index`` weighs words; ``encoder`` compares sentences in the languages it knows."""
        self._index, self._encoder, self._settings, self._compare = index, encoder, settings, keywords.compared

    def rules(self) -> Rules:
        """The roles it serves."""
        return {
            asking.KEYWORDS.name: self.extract_keywords,
            asking.CITED_ANSWER.name: self.answer,
            DECOMPOSITION.name: sub_questions,
            SYNTHESIS.name: self.synthesise,
            asking.COHERENCE.name: coherence,
            asking.SELF_CONTAINED.name: self_contained,
        }

    def extract_keywords(self, task: asking.KeywordsInput) -> asking.Keywords:
        """N-grams that the library holds, by rarity and likeness to the question."""
        question = task.question[:READ]
        known = [candidate for candidate in candidates(question) if self._index.holds(candidate)]
        terms = [self._weighed(text) for text in known if " " not in text or self._index.binding(text) >= BOUND]
        grams = outermost(terms, self._compare)
        if grams and language.detect(question) in self._encoder.identity.languages:
            # The question alone, as a search reads it: beside others its vector has other last bits.
            vector = self._encoder.encode([question], "query")[0]
            similarities = self._encoder.encode([gram.text for gram in grams], "query") @ vector
            grams = [replace(gram, similarity=float(near)) for gram, near in zip(grams, similarities, strict=True)]
        unknown = [term for term in dict.fromkeys(language.content_words(question)) if not self._index.holds(term)]
        return asking.Keywords(ranked(grams, task.most), tuple(unknown))

    def _weighed(self, text: str) -> NGram:
        terms = tuple(self._index.analyse(text, for_query=True))
        return NGram(text, terms, sum(self._index.rarity(terms)) / len(terms))

    def answer(self, task: asking.AnswerInput) -> asking.Draft:
        """The best sentences, verbatim; with a reference those that were put into it."""
        chosen: Iterable[Candidate]
        if task.reference:
            candidates = self._candidates(task.question, task.evidence)
            chosen = (candidate for candidate in candidates if candidate.text in task.reference)
        else:
            chosen = self._best(task)
        return asking.Draft(tuple(candidate.quotation for candidate in chosen))

    def synthesise(self, task: SynthesisInput) -> str:
        """The best sentences for each sub-question, verbatim."""
        dense = task.language in self._encoder.identity.languages
        tasks = (asking.AnswerInput(question, evidence, dense) for question, evidence in task.parts)
        best = (candidate for part in tasks for candidate in self._best(part))
        return "\n".join(dict.fromkeys(candidate.text for candidate in best))

    def _best(self, task: asking.AnswerInput) -> list[Candidate]:
        return self.chosen(self.scored(task))

    def scored(self, task: asking.AnswerInput) -> list[Candidate]:
        """The sentences of the evidence, best first; by meaning as well where it counts."""
        candidates = sorted(self._candidates(task.question, task.evidence), key=_rank)
        if task.dense:
            candidates = sorted(self._compared(task.question, candidates[:ENCODED]), key=_rank)
        return candidates

    def chosen(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Those of ``candidates`` (best first) that are quoted: near the best, of few sections, no copies.

        The best comes first, or where it lacks the value asked for the best of its passage that gives it; then what
        is of that section, each section in reading order.
        """
        chosen: list[Candidate] = []
        sections: list[tuple[str, ...]] = []
        least = CLOSE_TO_BEST * (candidates[0].score - candidates[0].heading) if candidates else 0.0
        for candidate in candidates:
            if len(chosen) == self._settings.sentences or candidate.score < least:
                break
            fresh = candidate.section not in sections
            if [one.section for one in chosen].count(candidate.section) == PER_SECTION:
                continue
            if (fresh and len(sections) == SECTIONS) or any(copies(candidate.text, other.text) for other in chosen):
                continue
            sections += [candidate.section] if fresh else []
            chosen.append(candidate)
        lead = next((one for one in chosen if one.fills and one.place == chosen[0].place), None)
        first = [lead] if lead else chosen[:1]
        rest = [one for one in chosen if one not in first]
        return first + sorted(rest, key=lambda one: (sections.index(one.section), one.place, one.start))

    def _candidates(self, question_text: str, evidence: Sequence[Evidence]) -> Iterator[Candidate]:
        """Every sentence of the evidence, scored by its words and whether it holds the number asked for."""
        question, subject = weigh(question_text, self._index), Subject.of(question_text)
        request = Asked.of(question_text)
        kept = self._of_what_is_asked(question_text, evidence)
        for place, piece in enumerate(evidence):
            passage = piece.passage
            if place not in kept:
                continue
            context = self._index.analyse(" ".join((passage.title, *passage.headings)))
            bonus = PLACE_WEIGHT * (1 - place / len(evidence))
            before: list[str] = []
            around = furniture(passage)
            heading = request.heading(passage)
            rows = cases.rows_of(question_text, _ROW.findall(passage.text)) if passage.table else frozenset()
            if request.elsewhen(passage):
                continue
            for start, end in units(passage):
                text = passage.text[start:end]
                own = self._index.analyse(text)
                says = _long_enough(text) and start not in around and _says(text, passage)
                says = says and not cases.other(question_text, text) and not (rows and text not in rows)
                if says and not subject.another(passage, start, end):
                    in_context = question.coverage((*own, *before, *context))
                    score = (question.coverage(own) + in_context) / 2 + bonus
                    fills = request.fills(text)
                    score += request.sentence(text, fills=fills) + heading + ROW_WEIGHT * (text in rows)
                    yield Candidate(piece, place, start, end, score, heading, fills)
                before = own if _long_enough(text) else before

    def _of_what_is_asked(self, question: str, evidence: Sequence[Evidence]) -> set[int]:
        """The places of the passages that lack nothing which another has besides all of their own.

        Of the things asked about that the tables know: a target of blood pressure is none of HbA1c.
        """
        listed = [topic for topic in topics(question, self._index).topics if topic.listed and topic.subject]
        words = [frozenset(terms_of(searched_text(piece.passage), self._index)) for piece in evidence]
        held = [frozenset(at for at, topic in enumerate(listed) if topic.held(terms) >= HALF) for terms in words]
        return {place for place, own in enumerate(held) if not any(own < other for other in held)}

    def _compared(self, question: str, candidates: Sequence[Candidate]) -> Iterator[Candidate]:
        """The candidates with the similarity to the question added to their scores."""
        if not candidates:
            return
        texts = [
            ". ".join((candidate.evidence.passage.title, *candidate.evidence.passage.headings[-1:], candidate.text))
            for candidate in candidates
        ]
        vectors = self._encoder.encode([question, *texts], "passage")
        for candidate, similarity in zip(candidates, vectors[1:] @ vectors[0], strict=True):
            yield replace(candidate, score=candidate.score + float(similarity))


def sub_questions(task: asking.QuestionInput) -> tuple[str, ...]:
    """Each question that is asked, where several are asked at once; else none (LINS, QDA, without a model).

    A single question is not cut at its "and": what is joined there is as often one thing.
    """
    pieces = [piece.strip() for piece in _AFTER_QUESTION.split(task.question) if piece.endswith(("?", "？"))]
    questions = [question for question in pieces if language.question_words(question)]
    return tuple(dict.fromkeys(questions))[:SUB_QUESTIONS] if len(questions) > 1 else ()


def coherence(task: asking.CoherenceInput) -> asking.Coherence:
    """Quotations agree with what they quote; a model's words were compared by entailment when they were checked."""
    contradicted = any(
        statement.verdict and statement.verdict.support is Support.CONTRADICTED for statement in task.statements
    )
    return asking.Coherence(not contradicted, "rules", message("agents.sentence_contradicts") if contradicted else None)


def self_contained(task: asking.FollowUp) -> str:
    """The question with the one before it, which names what it is about."""
    return f"{task.earlier[-1]} {task.question}" if task.earlier else task.question


def _long_enough(text: str) -> bool:
    return len(text) * (1 if text.isascii() or language.detect(text) == "en" else 2) >= SHORTEST


def _says(text: str, passage: Passage) -> bool:
    """Whether ``text`` is a statement: no reference, heading, fragment or what a header or footer left behind."""
    if (
        _FURNITURE.search(text)
        or (text.isascii() and imprint(text))
        or _VOLUME.search(text)
        or cues("publications", "references").search(text)
    ):
        return False
    names = {_bare(name) for name in (passage.title, *passage.headings)}
    if _bare(text) in names or not names.isdisjoint(listed(table("publications")["references"]["headings"])):
        return False
    ended = passage.table or text.rstrip().endswith(ENDS)
    named = {word for name in names for word in language.words(name)}
    return ended or not (text[:1].islower() or named.issuperset(_without_numbers(text)))


def _bare(name: str) -> str:
    return _NUMBERED.sub("", language.fold(name)).strip(" .:：。")


def _without_numbers(text: str) -> list[str]:
    return [word for word in language.words(text) if not word.isdigit()]


def units(passage: Passage) -> list[tuple[int, int]]:
    """What may be quoted of a passage: its sentences; of a table its rows, which carry their headers."""
    if not passage.table:
        return language.sentences(passage.text)
    return [match.span() for match in _ROW.finditer(passage.text)]


def _stems(text: str) -> frozenset[str]:
    """The words of ``text`` as they are compared; Chinese in pairs of characters."""
    return frozenset(map(alike, stems(text))) | frozenset(
        pair
        for word in language.content_words(text)
        if not word.isascii()
        for pair in language.words(word, for_query=True)
    )


def _rank(candidate: Candidate) -> tuple[float, int, int]:
    return -candidate.score, candidate.place, candidate.start
