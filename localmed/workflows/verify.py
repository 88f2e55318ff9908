"""Verify: checks an answer written here or elsewhere against the library, citations first, then claims (M-Eval).

1. Citations in the usual styles are read and looked up. Rules, then the judge, check whether they support their
   sentence. With a question the answer gets a badge, unless a sentence could not be judged; a sentence without a
   citation keeps it from being green.
2. M-Eval (``m_eval``): claims, studies, votes. Without a judge each claim is shown beside the nearest sentences of the
   library.

The result is an ``Answer`` without statements; the findings are its parts. It abstains if no study said anything on any
claim and no citation could be checked. Bounds: 200 sentences, 200 references, five claims, the settings' number of
studies. The answer's text is in no trace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from localmed.answering import check, judging
from localmed.answering.answer_file import VerifyInput
from localmed.answering.check import MODEL
from localmed.answering.claims import MOST, Claim, Read, candidates, premise
from localmed.answering.evidence import citation
from localmed.answering.marked_text import REFERENCES, Marked, MarkedText, read
from localmed.answering.reliability import DOUBTED, NOTICE, doubted, excluded
from localmed.answering.vote import response
from localmed.domain import (
    Answer,
    AnswerStatus,
    Badge,
    Evidence,
    Hit,
    Message,
    Origin,
    Part,
    Provenance,
    SearchFilter,
    Statement,
    Support,
    Verdict,
    Verification,
    message,
    parts,
)
from localmed.domain.findings import Finding
from localmed.domain.parts import Label, Titled
from localmed.retrieval.studies import Reference, Study
from localmed.retrieval.titles import years
from localmed.text.language import detect
from localmed.text.verbatim import find_verbatim
from localmed.workflows.ask import ask, check_statements
from localmed.workflows.finding import Notes, Plan, cared, minted, overdue, refused, screened
from localmed.workflows.flow import Find, Flow, Resolve, Step
from localmed.workflows.m_eval import Assessment, Bounds, ClaimResult, Weighed, assess, standing
from localmed.workflows.receipts import PASSAGES
from localmed.workflows.thorough import votes_on

MOST_SENTENCES = 200  # of one answer; what an essay has
CLAIMS, BESIDE = 10, 3  # claims without a judge, and sections beside each
MOST_CHARACTERS = 100_000  # read of it: 200 sentences of 500
QUOTED = 5  # of a claim's main evidence; the rest is in the table of studies
NEAREST = 3  # sentences quoted for an unjudged claim
NEAR = 0.6  # least share of the claim's words in a near sentence of a study

LOOKED_UP = message("support.judge.looked_up")


@dataclass(frozen=True, slots=True)
class _Cited:
    """The answer's citations: the study of each marker, the checked sentences and their evidence."""

    named: tuple[tuple[Reference, Study | None], ...]
    statements: tuple[Statement, ...] = ()
    evidence: tuple[Evidence, ...] = ()

    @property
    def provided(self) -> tuple[Study, ...]:
        """The studies that the answer cites, each once."""
        return tuple({study.document.id: study for _, study in self.named if study}.values())

    @property
    def missing(self) -> tuple[str, ...]:
        """The markers without a document of the library."""
        return tuple(reference.marker for reference, study in self.named if study is None)

    @property
    def verdicts(self) -> list[Support]:
        """The verdict of each sentence."""
        return [one.verdict.support for one in self.statements if one.verdict]

    @property
    def supported(self) -> bool:
        """Whether no sentence is unsupported or contradicted."""
        return {Support.UNSUPPORTED, Support.CONTRADICTED}.isdisjoint(self.verdicts)


def verify(task: VerifyInput, bounds: Bounds, plan: Plan, provenance: Provenance) -> Flow:
    """The flow for one answer."""
    if task.question and (yield from screened(task.question, plan)):
        return refused(task.question, plan, provenance, "verify")
    care = yield from cared(task.question, plan)
    marked = read(task.text[:MOST_CHARACTERS])
    notes = (*care, *_input_notes(task, marked))
    known = (*task.references, *marked.references)[:REFERENCES]
    marked = replace(marked, sentences=marked.sentences[:MOST_SENTENCES], references=known)
    cited = yield from _cited(marked, plan)
    sentences = [Claim(one.text, one.start, one.end) for one in marked.sentences if not one.heading]
    language = detect(f"{task.question}\n{task.text[:MOST_CHARACTERS]}")
    answer = Answer(
        AnswerStatus.ABSTAINED, task.question, language, (), cited.evidence, bounds.collections, provenance,
        Verification(len(cited.statements), 0, len(cited.missing)), notes, workflow="verify",
    )  # fmt: skip
    if not plan.judged:
        return (yield from _unjudged(answer, sentences, cited))
    assessment = yield from assess(task.question, sentences, cited.provided, bounds, plan)
    evidence = yield from _evidence(assessment, cited.evidence)
    account = replace(answer.verification, judges=(_judge(plan),))
    everything = _all_sentences(marked, cited)
    # A badge would guess if a sentence was not judged and none was refuted.
    is_open = Support.UNCHECKED in cited.verdicts and cited.supported
    if task.question.strip() and everything and not is_open:
        votes = yield from votes_on(task.question, everything, cited.evidence, plan.jury)
        account = judging.voted(account, votes)
    undecided = {Label.NOT_ENOUGH, Label.NOT_JUDGED}.issuperset(assessment.labels)
    notes += _unweighed(len(sentences), assessment) + _result_notes(assessment, cited, bounds, plan)
    return replace(
        answer,
        status=AnswerStatus.ABSTAINED if undecided and not cited.statements else AnswerStatus.ANSWERED,
        evidence=evidence,
        verification=account,
        notes=notes + overdue(evidence),
        parts=(
            *_parts(assessment, evidence, cited.supported and account.badge is not Badge.RED),
            *_cited_parts(cited),
        ),
    )


def _unjudged(answer: Answer, sentences: Sequence[Claim], cited: _Cited) -> Flow:
    """``answer`` without a judge: each claim beside the nearest sentences of the library, without a verdict."""
    claims = candidates(sentences)[:CLAIMS]
    finds = tuple(Find(claim.text, SearchFilter(), PASSAGES, BESIDE) for claim in claims)
    findings: tuple[Finding, ...] = (yield finds) if finds else ()
    lines = [[section.nearest for section in found.sections] for found in findings]
    pieces = yield from minted([Hit(line.passage) for of_claim in lines for line in of_claim], cited.evidence)
    evidence = tuple(dict.fromkeys((*cited.evidence, *pieces)))
    known = {piece.passage.id: piece for piece in evidence if piece.for_models}
    beside = []
    for claim, of_claim in zip(claims, lines, strict=True):
        there = ((known[line.passage.id], line) for line in of_claim if line.passage.id in known)
        quotations = tuple(piece.quotation(line.start, line.end) for piece, line in there)
        beside.append(
            parts.ClaimPart(
                claim.text, Label.NOT_JUDGED, (0, 0, 0), 0.0, statements=quotations, start=claim.start, end=claim.end
            )
        )
    left = len(sentences) - len(beside)
    notes: Notes = (message("verify.not_compared", count=left, most=CLAIMS),) if left and beside else ()
    notes += (message("verify.no_judge") if beside else message("verify.nothing"),)
    notes += (message("verify.unresolved", markers=cited.missing),) if cited.missing else ()
    return replace(
        answer,
        status=AnswerStatus.ANSWERED if beside or cited.statements else AnswerStatus.ABSTAINED,
        evidence=evidence,
        searched=tuple(sorted({piece.passage.collection for piece in evidence})),
        notes=(*answer.notes, *notes, *overdue(evidence)),
        parts=(*_alerts(standing(cited.provided)), *beside, *_cited_parts(cited)),
    )


def ask_and_verify(
    question: str,
    filters: SearchFilter,
    plan: Plan,
    provenance: Provenance,
    earlier: tuple[str, ...],
    left_out: tuple[str, ...],
    bounds: Bounds,
) -> Flow:
    """``ask``, then check the answer's claims against its evidence and further studies."""
    answer = yield from ask(question, filters, plan, provenance, earlier, left_out)
    shown = answer.shown
    if answer.status is not AnswerStatus.ANSWERED or not shown:
        return answer
    names = tuple(Reference(piece.marker, id=piece.passage.id) for piece in check.cited(shown, answer.evidence))
    studies: tuple[Study | None, ...] = yield Resolve(names)
    cited, sentences = _Cited(tuple(zip(names, studies, strict=True))), [Claim(one.text) for one in shown]
    assessment = yield from assess(answer.question, sentences, cited.provided, bounds, plan)
    evidence = yield from _evidence(assessment, answer.evidence)
    assessed = _parts(assessment, evidence, answer.verification.badge is not Badge.RED)
    fresh = tuple(piece for piece in evidence if piece not in answer.evidence)
    notes = _unweighed(len(shown), assessment) + _result_notes(assessment, cited, bounds, plan) + overdue(fresh)
    return replace(answer, evidence=evidence, parts=(*answer.parts, *assessed), notes=answer.notes + notes)


# --- the citations ----------------------------------------------------------------------------------------------------


def _cited(marked: MarkedText, plan: Plan) -> Step[_Cited]:
    """Look the citations up and check their sentences against them."""
    named = yield from _looked_up(marked)
    studies = {reference.marker: study for reference, study in named}
    citing = [sentence for sentence in marked.sentences if sentence.markers]
    usable = {name: study for name, study in studies.items() if study and not excluded(study.document, study.planted)}
    reads = {name: [Read.of(passage.text) for passage in study.passages] for name, study in usable.items()}
    hits = {sentence: _hits(sentence, usable, reads) for sentence in citing}
    ordered = {hit.passage.id: hit for sentence in citing for hit in hits[sentence]}
    evidence = yield from minted(tuple(ordered.values()))
    by_passage = {piece.passage.id: piece for piece in evidence}
    # Two markers may name one document.
    sources = {
        sentence: list(dict.fromkeys(by_passage[hit.passage.id] for hit in hits[sentence])) for sentence in citing
    }
    written = [_statement(sentence.text, sources[sentence]) for sentence in citing if sources[sentence]]
    checked, _ = yield from check_statements("", written, evidence, plan)
    waiting = iter(checked)
    statements = tuple(next(waiting) if sources[sentence] else _unsupported(sentence, studies) for sentence in citing)
    return _Cited(named, statements, evidence)


def _looked_up(marked: MarkedText) -> Step[tuple[tuple[Reference, Study | None], ...]]:
    """The study of each marker, references that are listed but not cited included."""
    markers = tuple(dict.fromkeys(name for sentence in marked.sentences for name in sentence.markers))
    names = {marker: marked.reference(marker) for marker in markers}
    for entry in marked.references:
        if entry not in names.values():
            names.setdefault(entry.marker, entry)
    studies: tuple[Study | None, ...] = (yield Resolve(tuple(names.values()))) if names else ()
    called = (replace(reference, marker=marker) for marker, reference in names.items())
    return tuple(zip(called, studies, strict=True))


def _hits(sentence: Marked, usable: dict[str, Study], reads: dict[str, list[Read]]) -> list[Hit]:
    """The most relevant passage of each study that ``sentence`` cites."""
    cited = [marker for marker in sentence.markers if marker in usable and usable[marker].passages]
    places = [premise(reads[marker], sentence.text).place for marker in cited]
    return [Hit(usable[marker].passages[place]) for marker, place in zip(cited, places, strict=True)]


def _statement(text: str, evidence: Sequence[Evidence]) -> Statement:
    """A submitted sentence as a statement; it cites the source that has it word for word, else all sources."""
    for source in evidence:
        if place := find_verbatim(source.passage.text, text, source.passage.table):
            return Statement(text, (source.citation(*place),), Origin.SUBMITTED)
    return Statement(text, tuple(citation(source, text) for source in evidence), Origin.SUBMITTED)


def _unsupported(sentence: Marked, studies: dict[str, Study | None]) -> Statement:
    """A sentence whose citations cannot support it."""
    cited = [study for marker in sentence.markers if (study := studies.get(marker))]
    reasons = [excluded(study.document, study.planted) for study in cited]
    why = Message(f"verify.standing.{reasons[0]}") if reasons else None
    reason = message("verify.may_not_count", why=why) if why else message("verify.not_there")
    return replace(_statement(sentence.text, ()), verdict=Verdict(Support.UNSUPPORTED, LOOKED_UP, reason))


def _all_sentences(marked: MarkedText, cited: _Cited) -> tuple[Statement, ...]:
    """All sentences, uncited ones included; none if no cited source was found."""
    if not cited.evidence:
        return ()
    waiting = iter(cited.statements)
    return tuple(next(waiting) if sentence.markers else _statement(sentence.text, ()) for sentence in marked.sentences)


# --- parts and notes -------------------------------------------------------------------------------------------------


def _parts(assessment: Assessment, evidence: Sequence[Evidence], supported: bool) -> tuple[Part, ...]:
    """The response's label, alerts, claims, quality of the given evidence, and studies.

    ``supported``: the answer's citations support it.
    """
    if not assessment.claims:
        return _alerts(assessment)
    known = {piece.passage.id: piece for piece in evidence}
    studies = _studies(assessment)
    labels = assessment.labels
    return (
        parts.ResponsePart(response(labels, supported), tuple(Counter(labels).items()), supported),
        *_alerts(assessment),
        *(_claim(result, assessment.studies, known) for result in assessment.claims),
        *((parts.EvidenceQualityPart(assessment.quality),) if assessment.quality else ()),
        *((parts.StudiesPart(studies),) if studies else ()),
    )


def _cited_parts(cited: _Cited) -> tuple[Part, ...]:
    """The document of each citation, and each sentence with its verdict."""
    references = tuple(
        parts.CitedReference(one.marker, _titled(Weighed(study, True)) if study else None, _other_years(one, study))
        for one, study in cited.named
    )
    support = (parts.SupportPart(cited.statements),) if cited.statements else ()
    return (*((parts.CitationsPart(references),) if references else ()), *support)


def _other_years(reference: Reference, study: Study | None) -> tuple[str, ...]:
    """The reference's years if none of them is the found document's."""
    own = years(f"{study.document.edition} {study.document.title}") if study else frozenset()
    cited = years(reference.text)
    return tuple(sorted(cited)) if own and not own & cited else ()


def _alerts(assessment: Assessment) -> tuple[Part, ...]:
    """Studies that a reader must know about first; a notice that only the search found is left out."""
    notable = (one for one in assessment.left_out if one.provided or one.excluded != NOTICE)
    alerts = [(one.excluded, _titled(one)) for one in notable]
    alerts += [(DOUBTED, _titled(one)) for one in assessment.studies if doubted(one.study.document)]
    return (parts.AlertPart(tuple(alerts)),) if alerts else ()


def _titled(one: Weighed) -> Titled:
    return Titled(one.study.document.title, one.study.document.edition, one.provided)


def _claim(result: ClaimResult, studies: Sequence[Weighed], known: dict[str, Evidence]) -> parts.ClaimPart:
    """Label, votes and spread, with the deciding sentences or, if undecided, the nearest ones."""
    outcome, claim = result.outcome, result.claim
    plus, minus, none = (outcome.votes.count(vote) for vote in (1, -1, 0))
    main, dropped = (
        tuple(_titled(studies[place]) for place in _best(places, studies)) for places in (outcome.main, outcome.dropped)
    )
    shown = [(result.premises[place], studies[place].study) for place in _quoted(result, studies)]
    quotations = tuple(known[study.passages[it.place].id].quotation(it.start, it.end) for it, study in shown)
    return parts.ClaimPart(
        claim.text, outcome.label, (plus, minus, none), outcome.total, *outcome.heterogeneity, result.unjudged,
        main, dropped, quotations, claim.whole, claim.start, claim.end,
    )  # fmt: skip


def _quoted(result: ClaimResult, studies: Sequence[Weighed]) -> list[int]:
    """The places of the studies to quote for a claim: the most reliable of the winning group, or the nearest ones if
    nobody judged.
    """
    if result.outcome.label is Label.NOT_JUDGED:
        near = [place for place, premise in enumerate(result.premises) if premise.share >= NEAR]
        return sorted(_best(near, studies), key=lambda place: -result.premises[place].share)[:NEAREST]
    return _best(result.outcome.main, studies)[:QUOTED]


def _best(places: Sequence[int], studies: Sequence[Weighed]) -> list[int]:
    return sorted(places, key=lambda place: -studies[place].reliability.score)


def _studies(assessment: Assessment) -> tuple[parts.StudyRow, ...]:
    """The studies, most reliable first, with their votes."""
    decided = [result for result in assessment.claims if result.outcome.label is not Label.NOT_JUDGED]
    rows = []
    for place in _best(range(len(assessment.studies)), assessment.studies):
        one, votes = assessment.studies[place], tuple(result.outcome.votes[place] for result in decided)
        of = one.reliability
        rows.append(parts.StudyRow(_titled(one), of.score, of.base, of.bonus, of.failed, votes))
    return tuple(rows)


def _evidence(assessment: Assessment, known: tuple[Evidence, ...]) -> Step[tuple[Evidence, ...]]:
    """``known`` and evidence for the quoted passages of studies."""
    voting = (
        assessment.studies[place].study.passages[result.premises[place].place]
        for result in assessment.claims
        for place in _quoted(result, assessment.studies)
    )
    pieces = yield from minted([Hit(passage) for passage in dict.fromkeys(voting)], known)
    return tuple(dict.fromkeys((*known, *pieces)))


def _input_notes(task: VerifyInput, marked: MarkedText) -> Notes:
    """Notes on how the text was read."""
    count = len(marked.sentences)
    cites = any(sentence.markers for sentence in marked.sentences)
    candidates = (
        (not task.question.strip() and count, message("verify.no_question")),
        (len(task.text) > MOST_CHARACTERS, message("verify.cut", most=MOST_CHARACTERS, number=len(task.text))),
        (count > MOST_SENTENCES, message("verify.too_long", most=MOST_SENTENCES, number=count)),
        (count and not cites and not task.references, message("verify.no_citations")),
        (marked.malformed, message("verify.malformed", count=marked.malformed)),
    )
    return tuple(note for holds, note in candidates if holds)


def _unweighed(sentences: int, assessment: Assessment) -> Notes:
    """A note on the number of sentences that were not weighed."""
    weighed = sum(not result.claim.whole for result in assessment.claims)
    left = sentences - weighed
    return (message("verify.not_weighed", count=left, most=MOST),) if left > 0 and weighed else ()


def _result_notes(assessment: Assessment, cited: _Cited, bounds: Bounds, plan: Plan) -> Notes:
    unjudged = sum(result.unjudged for result in assessment.claims)
    overruled = sum(result.overruled for result in assessment.claims)
    count, claims = len(cited.statements), assessment.claims
    supported = sum(support in (Support.VERBATIM, Support.SUPPORTED) for support in cited.verdicts)
    candidates = (
        (cited.missing, message("verify.unresolved", markers=cited.missing)),
        (count, message("verify.checked", count=count, supported=supported)),
        (not claims, message("verify.nothing")),
        (claims and not bounds.collections, message("verify.no_literature")),
        (claims and bounds.collections and not assessment.studies, message("verify.no_study")),
        ((claims or count) and not plan.judged, message("verify.no_judge")),
        (unjudged and plan.judged, message("verify.language_unknown", count=unjudged)),
        (overruled, message("verify.overruled", count=overruled)),
        (claims and plan.judged, message("verify.judged_by", judge=_judge(plan))),
    )
    return tuple(note for holds, note in candidates if holds)


def _judge(plan: Plan) -> Message:
    return message("support.judge.entailment", name=plan.judge) if plan.judge else MODEL
