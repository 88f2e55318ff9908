"""Link-Eval of one answer (LINS, "Construction of Link-Eval"): which references there were, and who cites what.

The references of an answer of the library's are looked for again, as ``ask`` did: the sections found, and what is
cited besides. Of an answer from elsewhere they are the sources given with it.
Two rounds of judging: all sets, pairs and the gold answer; then the correct sets, each without one citation.
The counts come back in the answer's first part, then one part a citation set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from localmed.answering import link_eval
from localmed.answering.asking import FLUENCY, RELEVANCE, FluencyInput, RelevanceInput
from localmed.answering.link_eval import CitationSet, LinkBasis, LinkInput, LinkSource
from localmed.domain import Answer, AnswerStatus, Provenance, SearchFilter, Verification, message
from localmed.domain.findings import Finding
from localmed.domain.link_counts import LinkCounts
from localmed.domain.parts import LinkCountsPart, LinkSetPart
from localmed.domain.ports import Stance
from localmed.text.language import detect
from localmed.workflows.finding import Notes, Plan
from localmed.workflows.flow import Find, Flow, Judge, Step, asked
from localmed.workflows.receipts import PASSAGES, SECTIONS


def links(task: LinkInput, filters: SearchFilter, plan: Plan, basis: LinkBasis, provenance: Provenance) -> Flow:
    """The flow that evaluates ``task``; ``filters`` and ``plan`` say how its references are looked for again."""
    if task.retrieved:
        task = yield from _with_references(task, filters, plan)
    scores = yield from _validity(task, plan)
    languages = basis.languages
    first = link_eval.pairs(task, languages)
    stances: dict[tuple[str, str], Stance] = dict(zip(first, (yield Judge(first)), strict=True))
    sets = link_eval.citation_sets(task, languages)
    right = link_eval.correct(sets, stances)
    less = link_eval.reduced_pairs(right)
    stances |= zip(less, (yield Judge(less)), strict=True)
    fluency, notes = yield from _fluency(task, plan)
    counts = link_eval.counted(task, languages, stances, scores, fluency)
    cited = link_eval.irreplaceable(right, stances)
    account = Verification(counts.statements, judges=(message("support.judge.entailment", name=basis.judge),))
    answer = Answer(AnswerStatus.ANSWERED, task.question, detect(task.question), (), (), (), provenance, account, notes)
    return replace(answer, workflow="links", parts=(LinkCountsPart(counts), *_parts(sets, right, cited)))


def _with_references(task: LinkInput, filters: SearchFilter, plan: Plan) -> Step[LinkInput]:
    """``task`` with the passages that were retrieved for its question and are not cited."""
    found: Finding = yield Find(task.question, plan.within(filters), PASSAGES, SECTIONS)
    cited = {source.passage.id for source in task.sources}
    passages = (passage for section in (*found.sections, *found.others) for passage in section.passages)
    others = {passage.id: passage for passage in passages if passage.id not in cited}
    return replace(task, sources=(*task.sources, *(LinkSource("", other) for other in others.values())))


def _validity(task: LinkInput, plan: Plan) -> Step[tuple[float | None, ...]]:
    """How likely each reference helps to answer (LINS, correlation scorer); None of each where no model judges."""
    passages = tuple(source.passage for source in task.sources)
    nobody: tuple[float | None, ...] = (None,) * len(passages)
    about = RelevanceInput(task.question, passages)
    return (yield from asked(RELEVANCE, about, plan.chat, nobody)) if passages else ()


def _fluency(task: LinkInput, plan: Plan) -> Step[tuple[float | None, Notes]]:
    texts = tuple(statement.text for statement in task.statements)
    if not texts:
        return None, (message("links.nothing_said"),)
    values: tuple[float, ...] = yield from asked(FLUENCY, FluencyInput(texts), plan.chat, ())
    fewer = len(texts) > link_eval.MOST_COMPARED
    notes: Notes = (message("links.fewer_compared", number=link_eval.MOST_COMPARED),) if fewer else ()
    mean = sum(values) / len(values) if values else None
    return mean, notes if values else (*notes, message("links.not_fluent"))


def _parts(
    sets: Sequence[CitationSet], right: Sequence[CitationSet], cited: Sequence[Sequence[LinkSource]]
) -> tuple[LinkSetPart, ...]:
    """Each set by its number: whether it carries its statement, and which citations are irreplaceable. No text."""
    kept = {one: tuple(source.marker for source in sources) for one, sources in zip(right, cited, strict=True)}
    return tuple(
        LinkSetPart(number, one.size, one in kept if one.judged else None, kept.get(one, ()), one.unresolved)
        for number, one in enumerate(sets, 1)
    )


def counts_of(answer: Answer) -> LinkCounts:
    """The counts that the flow put into ``answer``."""
    return next(part.counts for part in answer.parts if isinstance(part, LinkCountsPart))
