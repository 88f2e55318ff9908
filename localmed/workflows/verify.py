"""Verify: an answer, ours or another's, held against the library. Its citations first, then its claims (M-Eval).

Citations in every usual style are read and looked up; of each sentence with citations it is checked whether they
support it (as for an answer of ours: rules first, then the judge). With a question the answer gets its badge, unless
nobody could judge some sentence; a sentence without a citation keeps it from being green. Then M-Eval (``m_eval``):
claims, studies, votes. Where no model judges, each claim stands beside the sentences of the library nearest to it.
The result is an ``Answer`` without statements of its own; what was found stands in its parts. It is abstained where no
study said anything on any claim and nothing cited could be checked.

Bounds: 200 sentences, 200 references, five claims, the settings' number of studies. The answer's text, like a
question's, is in no trace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from localmed.answering import citations, judging
from localmed.answering.answer_file import VerifyInput
from localmed.answering.check import MODEL
from localmed.answering.claims import MOST, Claim, Read, candidates, premise
from localmed.answering.evidence import citation
from localmed.answering.judging import Vote
from localmed.answering.marked_text import REFERENCES, Marked, MarkedText, read
from localmed.answering.reliability import DOUBTED, NOTICE, doubted, excluded
from localmed.answering.verbatim import find_verbatim
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
)
from localmed.domain.findings import Finding, Line
from localmed.domain.parts import (
    AlertPart,
    CitationsPart,
    CitedReference,
    ClaimPart,
    EvidenceQualityPart,
    Label,
    ResponsePart,
    StudiesPart,
    StudyRow,
    SupportPart,
    Titled,
)
from localmed.retrieval.studies import Reference, Study
from localmed.retrieval.titles import years
from localmed.text.language import detect
from localmed.workflows.ask import ask, held
from localmed.workflows.finding import Notes, Plan, minted, overdue, refused, screened
from localmed.workflows.flow import Cite, Find, Flow, Resolve, Step
from localmed.workflows.m_eval import Assessment, Bounds, ClaimResult, ExcludedStudy, WeighedStudy, assess, standing
from localmed.workflows.receipts import PASSAGES
from localmed.workflows.thorough import votes_on

# --- verify parts -----------------------------------------------------------------------------------------------------

# What a verification came to, as the parts of an answer.

QUOTED = 5  # of a claim's main evidence; the rest is in the table of studies
NEAREST = 3  # sentences quoted for a claim that nobody judged
NEAR = 0.6  # share of the claim's words from which one of a study is near it

Minted = Mapping[str, Evidence]  # by passage id


def parts(assessment: Assessment, minted: Minted, carried: bool) -> tuple[Part, ...]:
    """The response's label, alerts, each claim, what the evidence given with the answer is worth, and the studies.

    Without ``carried`` what the answer cites does not carry it.
    """
    if not assessment.claims:
        return _alerts(assessment)
    quality, studies = assessment.quality, _studies(assessment)
    return (
        ResponsePart(response(assessment.labels, carried), tuple(Counter(assessment.labels).items()), carried),
        *_alerts(assessment),
        *(_claim(held, assessment.studies, minted) for held in assessment.claims),
        *((EvidenceQualityPart(quality),) if quality else ()),
        *((StudiesPart(studies),) if studies else ()),
    )


def cited_parts(named: Sequence[tuple[Reference, Study | None]], statements: tuple[Statement, ...]) -> tuple[Part, ...]:
    """What each citation names, and each sentence with the verdict on it."""
    references = tuple(CitedReference(one.marker, _document(study), _other_years(one, study)) for one, study in named)
    support = (SupportPart(statements),) if statements else ()
    return (*((CitationsPart(references),) if references else ()), *support)


def _document(study: Study | None) -> Titled | None:
    return Titled(study.document.title, study.document.edition, True) if study else None


def _other_years(reference: Reference, study: Study | None) -> tuple[str, ...]:
    """The years of the reference where none of them is the year of the document that was found."""
    own = years(f"{study.document.edition} {study.document.title}") if study else frozenset()
    cited = years(reference.text)
    return tuple(sorted(cited)) if own and not own & cited else ()


def _alerts(assessment: Assessment) -> tuple[Part, ...]:
    """What of the studies a reader must know before anything else."""
    alerts = [(left.reason, _titled(left)) for left in assessment.left_out if _notable(left)]
    alerts += [(DOUBTED, _titled(one)) for one in assessment.studies if doubted(one.study.document)]
    return (AlertPart(tuple(alerts)),) if alerts else ()


def _notable(left: ExcludedStudy) -> bool:
    """A notice found beside the studies is no news."""
    return left.provided or left.reason != NOTICE


def _titled(entry: WeighedStudy | ExcludedStudy) -> Titled:
    return Titled(entry.study.document.title, entry.study.document.edition, entry.provided)


def _claim(held: ClaimResult, studies: Sequence[WeighedStudy], minted: Minted) -> ClaimPart:
    """Label, votes and spread, then the sentences that decided, or that are nearest where nothing was decided."""
    outcome, claim = held.outcome, held.claim
    plus, minus, none = (outcome.votes.count(vote) for vote in (1, -1, 0))
    main, dropped = (
        tuple(_titled(studies[place]) for place in _best(places, studies)) for places in (outcome.main, outcome.dropped)
    )
    return ClaimPart(
        claim.text,
        outcome.label,
        (plus, minus, none),
        outcome.total,
        outcome.heterogeneity.q,
        outcome.heterogeneity.tau2,
        outcome.heterogeneity.k,
        held.unjudged,
        main,
        dropped,
        tuple(_quotation(held, studies, place, minted) for place in quoted(held, studies)),
        claim.whole,
        claim.start,
        claim.end,
    )


def quoted(held: ClaimResult, studies: Sequence[WeighedStudy]) -> list[int]:
    """The places of the studies that are quoted for a claim: the most reliable of the winning group.

    Where nobody judged, those with the sentences that are nearest to the claim.
    """
    if held.outcome.label is Label.NOT_JUDGED:
        near = [place for place, premise in enumerate(held.premises) if premise.share >= NEAR]
        return sorted(_best(near, studies), key=lambda place: -held.premises[place].share)[:NEAREST]
    return _best(held.outcome.main, studies)[:QUOTED]


def _best(places: Sequence[int], studies: Sequence[WeighedStudy]) -> list[int]:
    return sorted(places, key=lambda place: -studies[place].reliability.score)


def _quotation(held: ClaimResult, studies: Sequence[WeighedStudy], place: int, minted: Minted) -> Statement:
    premise = held.premises[place]
    passage = studies[place].study.passages[premise.place]
    return minted[passage.id].quotation(premise.start, premise.end)


def _studies(assessment: Assessment) -> tuple[StudyRow, ...]:
    """The studies, most reliable first; votes only where there were any."""
    rows = sorted(enumerate(assessment.studies), key=lambda row: -row[1].reliability.score)
    decided = [held for held in assessment.claims if held.outcome.label is not Label.NOT_JUDGED]
    return tuple(
        StudyRow(
            _titled(one),
            one.reliability.score,
            one.reliability.base,
            one.reliability.bonus,
            one.reliability.failed,
            tuple(held.outcome.votes[place] for held in decided),
        )
        for place, one in rows
    )


def statement(text: str, evidence: Sequence[Evidence]) -> Statement:
    """A sentence that somebody submitted, as a statement; it cites what says it word for word, else all of it."""
    for source in evidence:
        if place := find_verbatim(source.passage.text, text, source.passage.table):
            return Statement(text, (source.citation(*place),), Origin.SUBMITTED)
    return Statement(text, tuple(citation(source, text) for source in evidence), Origin.SUBMITTED)


def supported(statements: Sequence[Statement]) -> int:
    """How many of ``statements`` what they cite supports."""
    return sum(
        one.verdict is not None and one.verdict.support in (Support.VERBATIM, Support.SUPPORTED) for one in statements
    )


# --- verify -----------------------------------------------------------------------------------------------------------

MOST_SENTENCES = 200  # of one answer; what an essay has
CLAIMS, BESIDE = 10, 3  # claims that nobody judges, and sections beside each
MOST_CHARACTERS = 100_000  # read of it: 200 sentences of 500

LOOKED_UP = message("support.judge.looked_up")


@dataclass(frozen=True, slots=True)
class _Cited:
    """The answer's citations: what each marker names, the checked sentences, and the evidence minted for them."""

    named: tuple[tuple[Reference, Study | None], ...]
    statements: tuple[Statement, ...] = ()
    evidence: tuple[Evidence, ...] = ()

    @property
    def provided(self) -> tuple[Study, ...]:
        """What the answer rests on, each once."""
        return tuple({study.document.id: study for _, study in self.named if study}.values())

    @property
    def missing(self) -> tuple[str, ...]:
        """The markers that name no document of the library."""
        return tuple(reference.marker for reference, study in self.named if study is None)

    @property
    def open(self) -> bool:
        """Whether nobody could judge some of the sentences, and nothing was found against any: a badge would guess."""
        unchecked = any(one.verdict is not None and one.verdict.support is Support.UNCHECKED for one in self.statements)
        return unchecked and self.carried

    @property
    def carried(self) -> bool:
        """Whether no sentence was found to say something else than what it cites."""
        return not any(_unsupported_one(one) for one in self.statements)


def _unsupported_one(statement: Statement) -> bool:
    verdict = statement.verdict
    return verdict is not None and verdict.support in (Support.UNSUPPORTED, Support.CONTRADICTED)


def verify(task: VerifyInput, bounds: Bounds, plan: Plan, provenance: Provenance) -> Flow:
    """The flow of one answer."""
    if task.question and (yield from screened(task.question, plan)):
        return refused(task.question, plan, provenance, "verify")
    marked = read(task.text[:MOST_CHARACTERS])
    language = detect(f"{task.question}\n{task.text[:MOST_CHARACTERS]}")
    notes = _input_notes(task, marked)
    known = (*task.references, *marked.references)[:REFERENCES]
    marked = replace(marked, sentences=marked.sentences[:MOST_SENTENCES], references=known)
    cited = yield from _cited(marked, bounds)
    stated = [sentence for sentence in marked.sentences if not sentence.heading]
    sentences = [Claim(sentence.text, sentence.start, sentence.end) for sentence in stated]
    if not bounds.judged:
        return (yield from _unjudged(task, sentences, cited, notes, provenance, language))
    assessment = yield from assess(task.question, sentences, cited.provided, bounds)
    notes += _unweighed(len(sentences), assessment)
    evidence = yield from _evidence(assessment, cited.evidence)
    account = Verification(len(cited.statements), 0, len(cited.missing), (_judge(bounds),))
    everything = _all_sentences(marked, cited)
    if task.question.strip() and everything and not cited.open:
        votes: list[Vote] = yield from votes_on(task.question, everything, cited.evidence, bounds.jury)
        if votes:
            criteria = judging.majority([vote.criteria for vote in votes])
            account = replace(
                account,
                badge=judging.badge(criteria),
                badge_before=judging.badge(criteria),
                reason=judging.reason(criteria),
                badge_judges=tuple(vote.judge for vote in votes),
            )
    answer = Answer(
        AnswerStatus.ANSWERED if _decided(assessment, cited) else AnswerStatus.ABSTAINED,
        task.question, language, (), evidence, bounds.collections, provenance,
        account,
        notes + _result_notes(assessment, cited, bounds) + overdue(evidence),
        workflow="verify",
        parts=(*parts(assessment, _by_passage(evidence), cited.carried and account.badge is not Badge.RED),
               *cited_parts(cited.named, cited.statements)),
    )  # fmt: skip
    return answer


def _unjudged(
    task: VerifyInput, sentences: Sequence[Claim], cited: _Cited, notes: Notes, provenance: Provenance, language: str
) -> Flow:
    """Where no model judges: each claim beside the sentences of the library that are nearest to it; no verdict."""
    claims = candidates(sentences)
    lines: list[tuple[Line, ...]] = []
    searched = tuple(claim.text for claim in claims[:CLAIMS])
    findings: tuple[Finding, ...] = (
        (yield tuple(Find(text, SearchFilter(), PASSAGES, BESIDE) for text in searched)) if searched else ()
    )
    for found in findings:
        lines.append(tuple(next(filter(_marked, section.lines), section.lines[0]) for section in found.sections))
    hits = [Hit(line.passage, 0.0) for of_claim in lines for line in of_claim]
    pieces = yield from minted(hits, cited.evidence)
    evidence = tuple(dict.fromkeys((*cited.evidence, *pieces)))
    known = {piece.passage.id: piece for piece in evidence if piece.for_models}
    beside = tuple(
        ClaimPart(
            claim.text,
            Label.NOT_JUDGED,
            (0, 0, 0),
            0.0,
            statements=tuple(
                known[line.passage.id].quotation(line.start, line.end) for line in of_claim if line.passage.id in known
            ),
            start=claim.start,
            end=claim.end,
        )
        for claim, of_claim in zip(claims, lines, strict=False)
    )
    left = len(sentences) - len(beside)
    notes += (message("verify.not_compared", count=left, most=CLAIMS),) if left and beside else ()
    notes += (message("verify.nothing"),) if not beside else (message("verify.no_judge"),)
    notes += (message("verify.unresolved", markers=cited.missing),) if cited.missing else ()
    return Answer(
        AnswerStatus.ANSWERED if beside or cited.statements else AnswerStatus.ABSTAINED,
        task.question, language, (), evidence, tuple(sorted({piece.passage.collection for piece in evidence})),
        provenance, Verification(len(cited.statements), 0, len(cited.missing)),
        (*notes, *overdue(evidence)), workflow="verify",
        parts=(*parts(standing(cited.provided), {}, True), *beside, *cited_parts(cited.named, cited.statements)),
    )  # fmt: skip


def _marked(line: Line) -> bool:
    return line.marked


def ask_and_verify(
    question: str,
    filters: SearchFilter,
    plan: Plan,
    provenance: Provenance,
    earlier: tuple[str, ...],
    left_out: tuple[str, ...],
    bounds: Bounds,
) -> Flow:
    """``ask``, and the claims of an answer that stands held against its evidence and further studies."""
    answer = yield from ask(question, filters, plan, provenance, earlier, left_out)
    shown = citations.shown(answer.statements)
    if answer.status is not AnswerStatus.ANSWERED or not shown:
        return answer
    names = tuple(Reference(piece.marker, id=piece.passage.id) for piece in citations.cited(shown, answer.evidence))
    studies: tuple[Study | None, ...] = yield Resolve(names)
    rests = tuple({study.document.id: study for study in studies if study}.values())
    assessment = yield from assess(answer.question, [Claim(statement.text) for statement in shown], rests, bounds)
    evidence = yield from _evidence(assessment, answer.evidence)
    cited = _Cited(tuple(zip(names, studies, strict=True)))
    assessed = parts(assessment, _by_passage(evidence), answer.verification.badge is not Badge.RED)
    fresh = tuple(piece for piece in evidence if piece not in answer.evidence)
    notes = answer.notes + _unweighed(len(shown), assessment)
    notes += _result_notes(assessment, cited, bounds) + overdue(fresh)
    return replace(answer, evidence=evidence, parts=(*answer.parts, *assessed), notes=notes)


# --- the citations ----------------------------------------------------------------------------------------------------


def _cited(marked: MarkedText, bounds: Bounds) -> Step[_Cited]:
    """The citations looked up, and the sentences that carry them checked against what was found."""
    named = yield from _looked_up(marked)
    studies = {reference.marker: study for reference, study in named}
    citing = [sentence for sentence in marked.sentences if sentence.markers]
    usable = {name: study for name, study in studies.items() if study and not excluded(study.document, study.planted)}
    reads = {name: [Read.of(passage.text) for passage in study.passages] for name, study in usable.items()}
    hits = {sentence: _hits(sentence, usable, reads) for sentence in citing}
    ordered = tuple({hit.passage.id: hit for sentence in citing for hit in hits[sentence]}.values())
    evidence: tuple[Evidence, ...] = (yield Cite(ordered)) if ordered else ()
    by_passage = _by_passage(evidence)
    # Two markers may name one document.
    sources = {
        sentence: list(dict.fromkeys(by_passage[hit.passage.id] for hit in hits[sentence])) for sentence in citing
    }
    written = [statement(sentence.text, sources[sentence]) for sentence in citing if sources[sentence]]
    checked, _ = yield from held("", written, evidence, bounds.judge, bounds.chat)
    waiting = iter(checked)
    statements = tuple(next(waiting) if sources[sentence] else _unsupported(sentence, studies) for sentence in citing)
    return _Cited(named, statements, evidence)


def _looked_up(marked: MarkedText) -> Step[tuple[tuple[Reference, Study | None], ...]]:
    """What each marker names; what is listed and never cited is given with the answer all the same."""
    markers = tuple(dict.fromkeys(name for sentence in marked.sentences for name in sentence.markers))
    names = {marker: marked.reference(marker) for marker in markers}
    for entry in marked.references:
        if entry not in names.values():
            names.setdefault(entry.marker, entry)
    studies: tuple[Study | None, ...] = (yield Resolve(tuple(names.values()))) if names else ()
    called = (replace(reference, marker=marker) for marker, reference in names.items())
    return tuple(zip(called, studies, strict=True))


def _hits(sentence: Marked, usable: dict[str, Study], reads: dict[str, list[Read]]) -> list[Hit]:
    """Of each study that ``sentence`` cites the passage that bears on it."""
    cited = [marker for marker in sentence.markers if marker in usable and usable[marker].passages]
    places = [premise(reads[marker], sentence.text).place for marker in cited]
    return [Hit(usable[marker].passages[place], 0.0) for marker, place in zip(cited, places, strict=True)]


def _unsupported(sentence: Marked, studies: dict[str, Study | None]) -> Statement:
    """A sentence that cites nothing which could support it."""
    cited = [study for marker in sentence.markers if (study := studies.get(marker))]
    reasons = [excluded(study.document, study.planted) for study in cited]
    why = Message(f"verify.standing.{reasons[0]}") if reasons else None
    reason = message("verify.may_not_count", why=why) if why else message("verify.not_there")
    plain = statement(sentence.text, ())
    return replace(plain, verdict=Verdict(Support.UNSUPPORTED, LOOKED_UP, reason))


def _all_sentences(marked: MarkedText, cited: _Cited) -> tuple[Statement, ...]:
    """Every sentence, those without a citation too; none where nothing cited is there to judge by."""
    if not cited.evidence:
        return ()
    waiting = iter(cited.statements)
    return tuple(next(waiting) if sentence.markers else statement(sentence.text, ()) for sentence in marked.sentences)


# --- evidence and notes -----------------------------------------------------------------------------------------------


def _evidence(assessment: Assessment, known: tuple[Evidence, ...]) -> Step[tuple[Evidence, ...]]:
    """``known`` and evidence for the passages of every study that had a vote."""
    voting = (
        assessment.studies[place].study.passages[held.premises[place].place]
        for held in assessment.claims
        for place in quoted(held, assessment.studies)
    )
    hits = [Hit(passage, 0.0) for passage in dict.fromkeys(voting)]
    pieces = yield from minted(hits, known)
    return tuple(dict.fromkeys((*known, *pieces)))


def _by_passage(evidence: Sequence[Evidence]) -> dict[str, Evidence]:
    return {piece.passage.id: piece for piece in evidence}


def _decided(assessment: Assessment, cited: _Cited) -> bool:
    """Whether anything came of it."""
    undecided = {Label.NOT_ENOUGH, Label.NOT_JUDGED}
    return bool(cited.statements) or not undecided.issuperset(assessment.labels)


def _input_notes(task: VerifyInput, marked: MarkedText) -> Notes:
    """What a reader must know of how the text was read."""
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
    """How many sentences were not weighed, and why: every sentence is accounted for."""
    weighed = sum(not held.claim.whole for held in assessment.claims)
    left = sentences - weighed
    return (message("verify.not_weighed", count=left, most=MOST),) if left > 0 and weighed else ()


def _result_notes(assessment: Assessment, cited: _Cited, bounds: Bounds) -> Notes:
    unjudged = sum(held.unjudged for held in assessment.claims)
    overruled = sum(held.overruled for held in assessment.claims)
    count, claims = len(cited.statements), assessment.claims
    candidates = (
        (cited.missing, message("verify.unresolved", markers=cited.missing)),
        (count, message("verify.checked", count=count, supported=supported(cited.statements))),
        (not claims, message("verify.nothing")),
        (claims and not bounds.collections, message("verify.no_literature")),
        (claims and bounds.collections and not assessment.studies, message("verify.no_study")),
        ((claims or count) and not bounds.judged, message("verify.no_judge")),
        (unjudged and bounds.judged, message("verify.language_unknown", count=unjudged)),
        (overruled, message("verify.overruled", count=overruled)),
        (claims and bounds.judged, message("verify.judged_by", judge=_judge(bounds))),
    )
    return tuple(note for holds, note in candidates if holds)


def _judge(bounds: Bounds) -> Message:
    return message("support.judge.entailment", name=bounds.judge) if bounds.judge else MODEL
