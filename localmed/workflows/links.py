"""Link-Eval of one answer (LINS, "Construction of Link-Eval"): which references there were, and who cites what.

The references of an answer of the library's are looked for again, as ``ask`` did: all that the tier that leads gave (of
all tiers where none leads), and what is cited besides. Of an answer from elsewhere they are the sources given with it.
Two rounds of judging: all sets, pairs and the gold answer; then the correct sets, each without one citation.
The counts come back in the answer's first part (``link_eval.of_facts`` reads them), then one part a citation set.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

from localmed.agents.linking import FLUENCY, VALIDITY, FluencyInput, ValidityInput
from localmed.domain import Answer, AnswerStatus, Part, Provenance, SearchFilter, TextPart, Verification
from localmed.language import detect
from localmed.ports import Stance
from localmed.verification import link_eval
from localmed.verification.link_eval import CitationSet, LinkBasis, LinkCounts, LinkInput, LinkSource
from localmed.workflows import finding
from localmed.workflows.finding import Notes, Plan, Searched
from localmed.workflows.flow import Asked, Flow, Judge, Perform, attempt

COUNTS, SET = "link_eval", "citation_set"  # kinds of parts
NOT_FLUENT = "Statement fluency was not measured: no chat model serves that role"
NOTHING_SAID = "There is no statement to evaluate"
FEWER = "Only the first {number} statements were compared with one another"


def links(given: LinkInput, wanted: SearchFilter, plan: Plan, basis: LinkBasis, provenance: Provenance) -> Flow:
    """The flow that evaluates ``given``; ``wanted`` and ``plan`` say how its references are looked for again."""
    if given.retrieved:
        given = yield from _with_references(given, wanted, plan)
    scores: tuple[float | None, ...] = yield Perform(
        VALIDITY, ValidityInput(given.question, tuple(each.passage for each in given.sources))
    )
    sets = link_eval.citation_sets(given, basis.languages)
    wholes, opposed = link_eval.wholes(sets), link_eval.opposed(given, basis.languages)
    stances: tuple[Stance, ...] = yield Judge((*wholes, *opposed, *link_eval.golden(given, basis.languages)))
    right = link_eval.correct(sets, stances[: len(wholes)])
    between, of_gold = stances[len(wholes) : len(wholes) + len(opposed)], stances[len(wholes) + len(opposed) :]
    left: tuple[Stance, ...] = yield Judge(link_eval.remainders(right))
    cited = link_eval.irreplaceable(right, left)
    fluency, notes = yield from _fluency(given, plan)
    found = (link_eval.conflicts(between), link_eval.holds_gold(given, of_gold), fluency)
    counts = link_eval.counted(given, basis, sets, cited, scores, found)
    return _answer(given, counts, _parts(sets, right, cited), basis, provenance, notes)


def _with_references(given: LinkInput, wanted: SearchFilter, plan: Plan) -> Generator[Asked, Any, LinkInput]:
    """``given`` with the passages that were retrieved for its question and are not cited."""
    request, _ = yield from finding.request(given.question, wanted, plan)
    searched: Searched = yield from finding.search(request, iter(plan.tiers), plan)
    tried = (searched.leading,) if searched.leading else searched.tried
    cited = {each.passage.id for each in given.sources}
    others = {hit.passage.id: hit.passage for each in tried for hit in each.found.hits if hit.passage.id not in cited}
    return replace(given, sources=(*given.sources, *(LinkSource("", each) for each in others.values())))


def _fluency(given: LinkInput, plan: Plan) -> Generator[Asked, Any, tuple[float | None, Notes]]:
    texts = tuple(each.text for each in given.statements)
    if not texts:
        return None, (NOTHING_SAID,)
    values: tuple[float, ...] = ()
    notes = Notes()
    if FLUENCY.name in plan.roles:
        values, notes = yield from attempt(FLUENCY, FluencyInput(texts))
    if len(texts) > link_eval.MOST_COMPARED:
        notes += (FEWER.format(number=link_eval.MOST_COMPARED),)
    return link_eval.mean(values), notes if values else (*notes, NOT_FLUENT)


def _parts(
    sets: Sequence[CitationSet], right: Sequence[CitationSet], cited: Sequence[Sequence[LinkSource]]
) -> tuple[Part, ...]:
    """Each set by its number: whether it carries its statement, and which citations are irreplaceable. No text."""
    kept = {one: " ".join(each.marker for each in sources) for one, sources in zip(right, cited, strict=True)}
    parts = []
    for number, each in enumerate(sets, 1):
        carries = "not judged" if not each.judged else "yes" if each in kept else "no"
        facts = (
            ("citations", str(each.size)),
            ("correct", carries),
            ("irreplaceable", kept.get(each, "")),
            ("without source", str(each.unresolved)),
        )
        parts.append(TextPart(SET, f"Citation set {number}", facts=facts))
    return tuple(parts)


def _answer(
    given: LinkInput,
    counts: LinkCounts,
    sets: tuple[Part, ...],
    basis: LinkBasis,
    provenance: Provenance,
    notes: Notes,
) -> Answer:
    return Answer(
        AnswerStatus.ANSWERED,
        given.question,
        detect(given.question),
        (),
        (),
        (),
        provenance,
        Verification(counts.statements, judge=basis.judge),
        notes,
        workflow="links",
        parts=(TextPart(COUNTS, "Link-Eval", facts=link_eval.facts(counts)), *sets),
    )


def counts_of(answer: Answer) -> LinkCounts:
    """The counts that the flow put into ``answer``."""
    return next(link_eval.of_facts(each.facts) for each in answer.parts if each.kind == COUNTS)
