"""Link-Eval: how well the sentences of an answer are tied to their sources (LINS, "Construction of Link-Eval", Fig. 5).

Counts, from which the metrics are taken:

- citation set precision = correct sets / sets. A set is all that one statement cites; it is correct if the texts of its
  sources, put together, entail the statement. A statement that one of them says word for word is entailed by rule, and
  counted as verbatim: without a model nothing else is judged.
- citation precision = correct citations / citations. A citation is correct if its set is, and is no longer when this
  citation alone is left out. So a second source that says the same lowers it: then neither is irreplaceable.
- citation recall = valid references cited correctly / valid references. A reference (whatever was retrieved, cited or
  not) is valid if its score for the question is above ``VALID_FROM``.
- statement correctness = 0 if two statements contradict each other, else 1 if the statements hold the gold answer and 0
  if not. Consistency is its first half, which needs no gold answer.
- fluency = the mean probability that a statement reads well, by a chat model.

A metric of nothing is undefined (None): an answer that cites nothing has no precision, and statements without citation
are counted apart. What the judge does not know the language of is not judged: such sets, pairs and references count
nowhere and are reported. A marker that names no source is a citation, and never a correct one.

The references of an answer of the library's are looked for again, as ``ask`` did: the sections found, and what is cited
besides. Of an answer from elsewhere they are the sources given with it. Two rounds of judging: all sets, pairs and the
gold answer; then the correct sets, each without one citation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from localmed.answering import check
from localmed.answering.asking import FLUENCY, RELEVANCE, FluencyInput, RelevanceInput
from localmed.answering.check import CONTRADICTED
from localmed.domain import Answer, Passage, SearchFilter
from localmed.domain.findings import Finding
from localmed.domain.ports import Stance
from localmed.text.language import detect, words
from localmed.text.verbatim import find_verbatim, holds
from localmed.workflows.finding import Plan
from localmed.workflows.flow import Find, Judge, Step, asked
from localmed.workflows.receipts import PASSAGES, SECTIONS

VALID_FROM = 0.6  # LINS's threshold, here of the label "relevant"; not measured on a chat model
MOST_COMPARED = 60  # statements compared with one another: 3,540 ordered pairs, about 2 s on starter

Pairs = tuple[tuple[str, str], ...]  # (premise, hypothesis)
Stances = Mapping[tuple[str, str], Stance]


@dataclass(frozen=True, slots=True)
class LinkCounts:
    """The counts of one answer, and its metrics. Counts of sets, pairs and references are of those that were judged.

    ``gold`` is 1 where the statements hold the gold answer, 0 where not, None where there is none or nobody judged.
    """

    statements: int = 0
    uncited: int = 0
    sets: int = 0
    correct_sets: int = 0
    verbatim_sets: int = 0
    citations: int = 0
    correct_citations: int = 0
    unresolved: int = 0
    malformed: int = 0
    unjudged_sets: int = 0
    references: int = 0
    valid: int = 0
    valid_cited: int = 0
    unjudged_references: int = 0
    pairs: int = 0
    conflicts: int = 0
    unjudged_pairs: int = 0
    gold: int | None = None
    fluency: float | None = None

    @property
    def citation_set_precision(self) -> float | None:
        """LINS, equation 1."""
        return _share(self.correct_sets, self.sets)

    @property
    def citation_precision(self) -> float | None:
        """LINS, equation 2."""
        return _share(self.correct_citations, self.citations)

    @property
    def citation_recall(self) -> float | None:
        """LINS, equation 3."""
        return _share(self.valid_cited, self.valid)

    @property
    def consistency(self) -> float | None:
        """1 if no two statements contradict each other, 0 if some do; None where fewer than two were compared."""
        return float(not self.conflicts) if self.pairs else None

    @property
    def statement_correctness(self) -> float | None:
        """A contradiction is wrong whatever the gold answer; without one it is the gold answer that decides."""
        if self.conflicts and self.gold is not None:
            return 0.0
        return None if self.gold is None or self.unjudged_pairs else float(self.gold)

    def metrics(self) -> dict[str, float | None]:
        """All of them by name, in the order in which they are shown."""
        return {name: getattr(self, name) for name in METRICS}


METRICS = ("citation_set_precision", "citation_precision", "citation_recall", "consistency", "statement_correctness",
           "fluency")  # fmt: skip


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


@dataclass(frozen=True, slots=True)
class LinkStatement:
    """A sentence and the markers that it carries."""

    text: str
    markers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkSource:
    """What a marker stands for; "" for a reference that was retrieved and not cited."""

    marker: str
    passage: Passage


@dataclass(frozen=True, slots=True)
class LinkInput:
    """What is evaluated. ``retrieved`` says that the references are to be looked for in the library again.

    Without it ``sources`` are all the references that there were. ``gold`` is the answer known to be right, if one is;
    ``malformed`` counts what looks like a citation in its text and cannot be read as one.
    """

    question: str
    statements: tuple[LinkStatement, ...]
    sources: tuple[LinkSource, ...] = ()
    gold: str = ""
    retrieved: bool = False
    malformed: int = 0


@dataclass(frozen=True, slots=True)
class CitationSet:
    """What a statement cites: the sources that there are, in the input's order, and the markers without one.

    ``judged`` says that it can be decided on: by the judge, or since its one source says it word for word.
    """

    statement: str
    sources: tuple[LinkSource, ...]
    unresolved: int
    judged: bool

    @property
    def size(self) -> int:
        """How many citations it has."""
        return len(self.sources) + self.unresolved

    @property
    def verbatim(self) -> bool:
        """Whether one of its sources says the statement word for word."""
        return any(find_verbatim(one.passage.text, self.statement, one.passage.table) for one in self.sources)

    @property
    def premise(self) -> str:
        """The texts of its sources; "" if there is not a word in them."""
        kept = [source.passage for source in self.sources]
        return "\n".join(passage.in_context for passage in kept) if any(words(passage.text) for passage in kept) else ""

    @property
    def needs_judge(self) -> bool:
        """Whether the judge is asked: not where a rule decides."""
        return self.judged and bool(self.premise) and not self.verbatim

    def without(self, source: LinkSource) -> CitationSet:
        """The set without one of its citations."""
        return replace(self, sources=tuple(cited for cited in self.sources if cited != source))


def of_answer(answer: Answer, gold: str = "") -> LinkInput:
    """An answer of the library's: its sentences that are shown, and what they cite."""
    shown = answer.shown
    statements = tuple(
        LinkStatement(statement.text, tuple(c.marker for c in statement.citations)) for statement in shown
    )
    sources = tuple(LinkSource(piece.marker, piece.passage) for piece in check.cited(shown, answer.evidence))
    return LinkInput(answer.question, statements, sources, gold, retrieved=True)


# --- citation sets ----------------------------------------------------------------------------------------------------


def citation_sets(task: LinkInput, languages: Sequence[str]) -> tuple[CitationSet, ...]:
    """The set of each statement that cites, a marker once; ``languages`` are the judge's."""
    return tuple(_set(statement, task.sources, languages) for statement in task.statements if statement.markers)


def _set(statement: LinkStatement, sources: Sequence[LinkSource], languages: Sequence[str]) -> CitationSet:
    markers = set(statement.markers)
    cited = tuple({source.marker: source for source in sources if source.marker in markers}.values())
    made = CitationSet(statement.text, cited, len(markers) - len(cited), True)
    known = all(detect(text) in languages for text in (statement.text, *(source.passage.text for source in cited)))
    return replace(made, judged=not cited or known or (len(cited) == 1 and made.verbatim))


def _set_pairs(sets: Iterable[CitationSet]) -> Pairs:
    return tuple((one.premise, one.statement) for one in sets if one.needs_judge)


def pairs(task: LinkInput, languages: Sequence[str]) -> Pairs:
    """What is judged first: each set's sources against its statement, statements against each other, the gold answer.

    Every two statements that differ are compared in both orders, of a long answer the first ``MOST_COMPARED``.
    """
    between = (pair for one, other in _compared(task, languages) for pair in ((one, other), (other, one)))
    gold = _gold_pair(task, languages)
    return (*_set_pairs(citation_sets(task, languages)), *between, *((gold,) if gold else ()))


def correct(sets: Sequence[CitationSet], stances: Stances) -> tuple[CitationSet, ...]:
    """The sets that carry their statements."""
    return tuple(one for one in sets if one.judged and _entailed(one, stances))


def _entailed(one: CitationSet, stances: Stances) -> bool:
    """By rule, else by the stance; nothing entails nothing."""
    return stances[one.premise, one.statement].label == "entailment" if one.needs_judge else one.verbatim


def reduced_pairs(right: Sequence[CitationSet]) -> Pairs:
    """What is judged next: each correct set without one of its citations, where no rule decides."""
    return _set_pairs(one.without(source) for one in right for source in one.sources)


def irreplaceable(right: Sequence[CitationSet], stances: Stances) -> tuple[tuple[LinkSource, ...], ...]:
    """The correct citations of each correct set."""
    return tuple(
        tuple(source for source in one.sources if not _entailed(one.without(source), stances)) for one in right
    )


def _texts(task: LinkInput) -> list[str]:
    return list(dict.fromkeys(statement.text for statement in task.statements))


def _compared(task: LinkInput, languages: Sequence[str]) -> list[tuple[str, str]]:
    return list(combinations([text for text in _texts(task) if detect(text) in languages][:MOST_COMPARED], 2))


def _gold_pair(task: LinkInput, languages: Sequence[str]) -> tuple[str, str] | None:
    """All statements together against the gold answer; None where there is none, or none in a language known."""
    texts = _texts(task)
    known = all(detect(text) in languages for text in (*texts, task.gold))
    return (" ".join(texts), task.gold) if task.gold and texts and known else None


def _holds_gold(pair: tuple[str, str] | None, stances: Stances) -> int | None:
    """Whether the statements entail the gold answer, or say it word for word and do not contradict it."""
    if pair is None:
        return None
    against = stances[pair].contradiction >= CONTRADICTED
    return int(stances[pair].label == "entailment" or (holds(*pair) and not against))


def counted(
    task: LinkInput,
    languages: Sequence[str],
    stances: Stances,
    scores: Sequence[float | None],
    fluency: float | None = None,
) -> LinkCounts:
    """The counts, by the ``stances`` of ``pairs`` and ``reduced_pairs``; ``scores`` are those of ``task.sources``.

    One passage under two markers is one reference.
    """
    sets = citation_sets(task, languages)
    cited = irreplaceable(correct(sets, stances), stances)
    judged = [one for one in sets if one.judged]
    right = {source.passage.id for citations in cited for source in citations}
    open_ids = {source.passage.id for one in sets if not one.judged for source in one.sources} - right
    scored = {source.passage.id: score for source, score in zip(task.sources, scores, strict=True)}
    known = {name: score for name, score in scored.items() if score is not None and name not in open_ids}
    valid = {name for name, score in known.items() if score > VALID_FROM}
    compared, texts = _compared(task, languages), len(_texts(task))
    return LinkCounts(
        statements=len(task.statements),
        uncited=sum(not statement.markers for statement in task.statements),
        sets=len(judged),
        correct_sets=len(cited),
        verbatim_sets=sum(one.verbatim for one in judged),
        citations=sum(one.size for one in judged),
        correct_citations=sum(map(len, cited)),
        unresolved=sum(one.unresolved for one in judged),
        malformed=task.malformed,
        unjudged_sets=len(sets) - len(judged),
        references=len(known),
        valid=len(valid),
        valid_cited=len(valid & right),
        unjudged_references=len(scored) - len(known),
        pairs=len(compared),
        conflicts=sum(
            any(stances[pair].contradiction >= CONTRADICTED for pair in ((one, other), (other, one)))
            for one, other in compared
        ),
        unjudged_pairs=texts * (texts - 1) // 2 - len(compared),
        gold=_holds_gold(_gold_pair(task, languages), stances),
        fluency=fluency,
    )


# --- asking for it ----------------------------------------------------------------------------------------------------


def evaluated(task: LinkInput, filters: SearchFilter, plan: Plan, languages: Sequence[str]) -> Step[LinkCounts]:
    """The counts of ``task``, judged in ``languages``; its references are looked for by ``filters`` and ``plan``."""
    if task.retrieved:
        task = yield from _with_references(task, filters, plan)
    passages = tuple(source.passage for source in task.sources)
    scores: Sequence[float | None] = (None,) * len(passages)
    if passages:  # how likely each helps to answer (LINS, correlation scorer)
        scores = yield from asked(RELEVANCE, RelevanceInput(task.question, passages), plan.chat, scores)
    first = pairs(task, languages)
    stances: dict[tuple[str, str], Stance] = dict(zip(first, (yield Judge(first)), strict=True))
    less = reduced_pairs(correct(citation_sets(task, languages), stances))
    stances |= zip(less, (yield Judge(less)), strict=True)
    texts, nothing = tuple(statement.text for statement in task.statements), tuple[float, ...]()
    fluent = (yield from asked(FLUENCY, FluencyInput(texts), plan.chat, nothing)) if texts else nothing
    return counted(task, languages, stances, scores, sum(fluent) / len(fluent) if fluent else None)


def _with_references(task: LinkInput, filters: SearchFilter, plan: Plan) -> Step[LinkInput]:
    """``task`` with the passages that were retrieved for its question and are not cited."""
    found: Finding = yield Find(task.question, plan.within(filters), PASSAGES, SECTIONS)
    cited = {source.passage.id for source in task.sources}
    passages = (passage for section in (*found.sections, *found.others) for passage in section.passages)
    others = {passage.id: passage for passage in passages if passage.id not in cited}
    return replace(task, sources=(*task.sources, *(LinkSource("", other) for other in others.values())))
