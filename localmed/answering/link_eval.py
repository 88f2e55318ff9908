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
nowhere and are reported. A marker that names no source is a citation, and never a correct one. Stances come in as
values; nothing here reads a file or asks a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from localmed.answering import citations
from localmed.answering.check import CONTRADICTED
from localmed.answering.verbatim import find_verbatim, holds
from localmed.domain import Answer, Passage
from localmed.domain.link_counts import LinkCounts
from localmed.domain.ports import Stance
from localmed.text.language import detect, words

VALID_FROM = 0.6  # LINS's threshold, here of the label "relevant"; not measured on a chat model
MOST_COMPARED = 60  # statements compared with one another: 3,540 ordered pairs, about 2 s on starter

Pairs = tuple[tuple[str, str], ...]  # (premise, hypothesis)


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
class LinkBasis:
    """What it is evaluated by: the judge's name and languages."""

    judge: str
    languages: tuple[str, ...]


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
    shown = citations.shown(answer.statements)
    statements = tuple(
        LinkStatement(statement.text, tuple(c.marker for c in statement.citations)) for statement in shown
    )
    sources = tuple(LinkSource(piece.marker, piece.passage) for piece in citations.cited(shown, answer.evidence))
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


def set_pairs(sets: Sequence[CitationSet]) -> Pairs:
    """What is judged first: each set's sources together, against its statement."""
    return tuple((set_.premise, set_.statement) for set_ in sets if set_.needs_judge)


def correct(sets: Sequence[CitationSet], stances: Sequence[Stance]) -> tuple[CitationSet, ...]:
    """The sets that carry their statements, by the stances of ``set_pairs``."""
    judged = iter(stances)
    return tuple(set_ for set_ in sets if set_.judged and _entailed(set_, judged))


def _entailed(one: CitationSet, judged: Iterator[Stance]) -> bool:
    """By rule, else by the next stance; nothing entails nothing."""
    return next(judged).label == "entailment" if one.needs_judge else one.verbatim


def reduced_pairs(right: Sequence[CitationSet]) -> Pairs:
    """What is judged next: each correct set without one of its citations, where no rule decides."""
    return set_pairs([set_.without(source) for set_ in right for source in set_.sources])


def irreplaceable(right: Sequence[CitationSet], stances: Sequence[Stance]) -> tuple[tuple[LinkSource, ...], ...]:
    """The correct citations of each correct set, by the stances of ``reduced_pairs``."""
    judged = iter(stances)
    return tuple(
        tuple(source for source in set_.sources if not _entailed(set_.without(source), judged)) for set_ in right
    )


# --- statements against each other and against the gold answer --------------------------------------------------------


def contradiction_pairs(task: LinkInput, languages: Sequence[str]) -> Pairs:
    """Both orders of every two statements that differ; of a long answer the first ``MOST_COMPARED`` statements."""
    texts = _comparable(task, languages)[:MOST_COMPARED]
    return tuple(pair for one, other in combinations(texts, 2) for pair in ((one, other), (other, one)))


def _comparable(task: LinkInput, languages: Sequence[str]) -> list[str]:
    return [text for text in _texts(task) if detect(text) in languages]


def _texts(task: LinkInput) -> list[str]:
    return list(dict.fromkeys(statement.text for statement in task.statements))


def conflicts(stances: Sequence[Stance]) -> int:
    """How many two statements contradict each other in either order, by the stances of ``contradiction_pairs``."""
    against = [stance.contradiction >= CONTRADICTED for stance in stances]
    return sum(one or other for one, other in zip(against[::2], against[1::2], strict=True))


def gold_pairs(task: LinkInput, languages: Sequence[str]) -> Pairs:
    """All statements together against the gold answer; nothing where there is none, or none in a language known."""
    texts = _texts(task)
    known = all(detect(text) in languages for text in (*texts, task.gold))
    return ((" ".join(texts), task.gold),) if task.gold and texts and known else ()


def holds_gold(task: LinkInput, stances: Sequence[Stance]) -> int | None:
    """Whether the statements entail the gold answer, or say it word for word and do not contradict it."""
    if not stances:
        return None
    held = holds(" ".join(_texts(task)), task.gold)
    against = stances[0].contradiction >= CONTRADICTED
    return int(stances[0].label == "entailment" or (held and not against))


# --- all of it --------------------------------------------------------------------------------------------------------


def counted(
    task: LinkInput,
    basis: LinkBasis,
    sets: Sequence[CitationSet],
    cited: Sequence[Sequence[LinkSource]],
    scores: Sequence[float | None],
    measures: tuple[int, int | None, float | None],
) -> LinkCounts:
    """The counts. ``cited`` are the correct citations of each correct set, ``scores`` those of ``task.sources``.

    ``measures`` are the conflicts, whether the gold answer is held, and the fluency.
    """
    judged = [set_ for set_ in sets if set_.judged]
    right = {source.passage.id for citations in cited for source in citations}
    open_ids = {source.passage.id for set_ in sets if not set_.judged for source in set_.sources} - right
    scored = _scores(task, scores)
    known = {name: score for name, score in scored.items() if score is not None and name not in open_ids}
    valid = {name for name, score in known.items() if score > VALID_FROM}
    compared, all_pairs = len(contradiction_pairs(task, basis.languages)) // 2, len(_texts(task))
    return LinkCounts(
        statements=len(task.statements),
        uncited=sum(not statement.markers for statement in task.statements),
        sets=len(judged),
        correct_sets=len(cited),
        verbatim_sets=sum(set_.verbatim for set_ in judged),
        citations=sum(set_.size for set_ in judged),
        correct_citations=sum(map(len, cited)),
        unresolved=sum(set_.unresolved for set_ in judged),
        malformed=task.malformed,
        unjudged_sets=len(sets) - len(judged),
        references=len(known),
        valid=len(valid),
        valid_cited=len(valid & right),
        unjudged_references=len(scored) - len(known),
        pairs=compared,
        conflicts=measures[0],
        unjudged_pairs=all_pairs * (all_pairs - 1) // 2 - compared,
        gold=measures[1],
        fluency=measures[2],
    )


def _scores(task: LinkInput, scores: Sequence[float | None]) -> dict[str, float | None]:
    """The score of each reference, by its passage: one passage under two markers is one reference."""
    return {source.passage.id: score for source, score in zip(task.sources, scores, strict=True)}


def mean(values: Sequence[float]) -> float | None:
    """The mean, None of nothing."""
    return sum(values) / len(values) if values else None
