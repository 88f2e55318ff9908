"""Verify: an answer, ours or another's, held against the library. Its citations first, then its claims (M-Eval).

Citations in every usual style are read and looked up; of each sentence with citations it is checked whether they
support it (as for an answer of ours: rules first, then the judge), and with a question the answer gets its badge; a
sentence without a citation keeps it from being green. Then M-Eval (``m_eval``): claims, studies, votes.
The result is an ``Answer`` without statements of its own; what was found stands in its parts. It is abstained where no
study said anything on any claim and nothing cited could be checked.

Bounds: 200 sentences, 200 references, five claims, the settings' number of studies. The answer's text, like a
question's, is in no trace.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from localmed.domain import (
    Answer,
    AnswerStatus,
    Evidence,
    Hit,
    Part,
    Provenance,
    SearchFilter,
    Statement,
    Support,
    TextPart,
    Verdict,
    Verification,
)
from localmed.language import detect
from localmed.retrieval.studies import Reference, Study
from localmed.verification import citations, support
from localmed.verification.answer_file import VerifyInput
from localmed.verification.claims import Claim, Read, premise
from localmed.verification.m_eval_texts import TEXTS
from localmed.verification.marked_text import REFERENCES, Marked, MarkedText, read
from localmed.verification.standing import excluded
from localmed.verification.vote import Label
from localmed.workflows import gate
from localmed.workflows.answering import overdue
from localmed.workflows.ask import ask
from localmed.workflows.finding import Plan
from localmed.workflows.flow import Asked, Cite, Flow, Judge, Resolve
from localmed.workflows.m_eval import Assessment, Bounds, assess
from localmed.workflows.verify_parts import parts, quoted, statement, supported

MOST_SENTENCES = 200  # of one answer; what an essay has
MOST_CHARACTERS = 100_000  # read of it: 200 sentences of 500

NOTHING = "The text holds no sentence that a study could be held against"
NO_QUESTION = "No question was given: the first sentences are the claims, and whether they answer is not looked at"
NO_CITATIONS = "The answer cites nothing"
MALFORMED = "Citations that could not be read: {number}"
UNRESOLVED = "Cited, but not in the library: {markers}"
CUT = "Only the first {most} of {number} characters were read"
TOO_LONG = "Only the first {most} of {number} sentences were read"
NO_LITERATURE = "The library holds no literature: only what the answer cites was judged"
NO_STUDY = "No study in the library speaks of the claims"
NOT_KNOWN = "Not judged, as the judge does not know the language of claim and study: {number} pairs"
JUDGED_BY = "Judged by {judge}. A label weighs studies for a reader; it is no clinical finding"
CHECKED = "Of {number} sentences with citations, what they cite supports {supported}"
WHAT_IT_CITES = "what it cites may not count: it is {reason}"
NOT_THERE = "what it cites is not in the library"
LOOKED_UP = "rule: citations looked up in the library"


@dataclass(frozen=True, slots=True)
class _Cited:
    """The answer's citations: what each marker names, the checked sentences, and the evidence minted for them."""

    studies: dict[str, Study | None]
    statements: tuple[Statement, ...] = ()
    evidence: tuple[Evidence, ...] = ()

    @property
    def given(self) -> tuple[Study, ...]:
        """What the answer rests on, each once."""
        return tuple({each.document.id: each for each in self.studies.values() if each}.values())


def verify(given: VerifyInput, bounds: Bounds, provenance: Provenance) -> Flow:
    """The flow of one answer."""
    marked = read(given.text[:MOST_CHARACTERS])
    language = detect(f"{given.question}\n{given.text[:MOST_CHARACTERS]}")
    notes = _reading(given, marked)
    known = (*given.references, *marked.references)[:REFERENCES]
    marked = replace(marked, sentences=marked.sentences[:MOST_SENTENCES], references=known)
    cited = yield from _cited(marked)
    said = [Claim(each.text, each.start, each.end) for each in marked.sentences]
    assessment = yield from assess(given.question, said, cited.given, bounds)
    minted = yield from _minted(assessment, cited.evidence)
    account = Verification(len(cited.statements), 0, _unknown(cited), _judge(provenance))
    if given.question.strip():
        account = yield from gate.badged(given.question, _all(marked, cited), cited.evidence, account, bounds.jury)
    answer = Answer(
        AnswerStatus.ANSWERED if _decided(assessment, cited) else AnswerStatus.ABSTAINED,
        given.question, language, (), minted, bounds.collections, provenance,
        account,
        notes + _noted(assessment, cited, bounds, provenance) + overdue(minted),
        workflow="verify",
        parts=(*parts(assessment, _by_passage(minted), language), *_sentences(cited, language)),
    )  # fmt: skip
    return answer


def ask_and_verify(
    question: str, wanted: SearchFilter, plan: Plan, provenance: Provenance, earlier: tuple[str, ...], bounds: Bounds
) -> Flow:
    """``ask``, and the claims of an answer that stands held against its evidence and further studies."""
    answer = yield from ask(question, wanted, plan, provenance, earlier)
    shown = [each.text for each in answer.statements if not each.withheld]
    if answer.status is not AnswerStatus.ANSWERED or not shown:
        return answer
    used = {each.marker for one in answer.statements if not one.withheld for each in one.citations}
    names = tuple(Reference(each.marker, id=each.passage.id) for each in answer.evidence if each.marker in used)
    studies: tuple[Study | None, ...] = yield Resolve(names)
    rests = tuple({each.document.id: each for each in studies if each}.values())
    assessment = yield from assess(answer.question, [Claim(each) for each in shown], rests, bounds)
    minted = yield from _minted(assessment, answer.evidence)
    cited = _Cited(dict(zip((each.marker for each in names), studies, strict=True)))
    found = parts(assessment, _by_passage(minted), answer.language)
    fresh = tuple(each for each in minted if each not in answer.evidence)
    notes = answer.notes + _noted(assessment, cited, bounds, provenance) + overdue(fresh)
    return replace(answer, evidence=minted, parts=(*answer.parts, *found), notes=notes)


# --- the citations ----------------------------------------------------------------------------------------------------


def _cited(marked: MarkedText) -> Generator[Asked, Any, _Cited]:
    """The citations looked up, and the sentences that carry them checked against what was found."""
    studies: dict[str, Study | None] = yield from _looked_up(marked)
    carrying = [each for each in marked.sentences if each.markers]
    usable = {name: each for name, each in studies.items() if each and not excluded(each.document, each.text)}
    reads = {name: [Read.of(passage.text) for passage in each.passages] for name, each in usable.items()}
    hits = {each: _hits(each, usable, reads) for each in carrying}
    ordered = tuple({hit.passage.id: hit for each in carrying for hit in hits[each]}.values())
    evidence: tuple[Evidence, ...] = (yield Cite(ordered)) if ordered else ()
    by_passage = _by_passage(evidence)
    # Two markers may name one document.
    sources = {each: list(dict.fromkeys(by_passage[hit.passage.id] for hit in hits[each])) for each in carrying}
    checked = yield from _checked([statement(each.text, sources[each]) for each in carrying if sources[each]], evidence)
    waiting = iter(checked)
    statements = tuple(next(waiting) if sources[each] else _unfounded(each, studies) for each in carrying)
    return _Cited(studies, statements, evidence)


def _looked_up(marked: MarkedText) -> Generator[Asked, Any, dict[str, Study | None]]:
    """What each marker names; what is listed and never cited is given with the answer all the same."""
    markers = tuple(dict.fromkeys(name for each in marked.sentences for name in each.markers))
    names = {marker: marked.reference(marker) for marker in markers}
    for each in marked.references:
        if each not in names.values():
            names.setdefault(each.marker, each)
    found: tuple[Study | None, ...] = (yield Resolve(tuple(names.values()))) if names else ()
    return dict(zip(names, found, strict=True))


def _hits(sentence: Marked, usable: dict[str, Study], reads: dict[str, list[Read]]) -> list[Hit]:
    """Of each study that ``sentence`` cites the passage that bears on it."""
    cited = [marker for marker in sentence.markers if marker in usable and usable[marker].passages]
    places = [premise(reads[marker], sentence.text).place for marker in cited]
    return [Hit(usable[marker].passages[place], 0.0) for marker, place in zip(cited, places, strict=True)]


def _checked(
    statements: Sequence[Statement], evidence: tuple[Evidence, ...]
) -> Generator[Asked, Any, tuple[Statement, ...]]:
    """The statements with verdicts, marked and not withheld: whoever asks has the text, and is told what is wrong."""
    if not statements:
        return ()
    checked, verification = citations.check(statements, evidence)
    stances = yield Judge(support.pairs(checked, evidence))
    judged, _ = support.check(checked, evidence, stances, verification, policy="mark")
    return judged


def _unfounded(sentence: Marked, studies: dict[str, Study | None]) -> Statement:
    """A sentence that cites nothing which could support it."""
    found = [each for marker in sentence.markers if (each := studies.get(marker))]
    reasons = [excluded(each.document, each.text) for each in found]
    reason = WHAT_IT_CITES.format(reason=reasons[0]) if reasons else NOT_THERE
    plain = statement(sentence.text, ())
    return replace(plain, verdict=Verdict(Support.UNSUPPORTED, LOOKED_UP, reason))


def _all(marked: MarkedText, cited: _Cited) -> tuple[Statement, ...]:
    """Every sentence, those without a citation too; none where nothing cited is there to judge by."""
    if not cited.evidence:
        return ()
    waiting = iter(cited.statements)
    return tuple(next(waiting) if each.markers else statement(each.text, ()) for each in marked.sentences)


def _sentences(cited: _Cited, language: str) -> tuple[Part, ...]:
    """What each citation names, and each sentence with the verdict on it."""
    texts = TEXTS[language]
    facts = tuple((f"[{marker}]", _named(study, texts)) for marker, study in cited.studies.items())
    found = (TextPart("citations", texts["citations"], facts=facts),) if facts else ()
    return (*found, TextPart("support", texts["support"], cited.statements)) if cited.statements else found


def _named(study: Study | None, texts: Any) -> str:
    if study is None:
        return str(texts["unresolved"])
    date = f" ({study.document.edition})" if study.document.edition else ""
    return str(texts["resolved"].format(title=study.document.title, date=date))


def _unknown(cited: _Cited) -> int:
    return sum(each is None for each in cited.studies.values())


# --- evidence and notes -----------------------------------------------------------------------------------------------


def _minted(assessment: Assessment, known: tuple[Evidence, ...]) -> Generator[Asked, Any, tuple[Evidence, ...]]:
    """``known`` and evidence for the passages of every study that had a vote."""
    there = {each.passage.id for each in known}
    voting = (
        assessment.studies[place].study.passages[held.premises[place].place]
        for held in assessment.claims
        for place in quoted(held, assessment.studies)
    )
    fresh = tuple({each.id: Hit(each, 0.0) for each in voting if each.id not in there}.values())
    first = max((int(each.marker) for each in known), default=0) + 1
    minted: tuple[Evidence, ...] = (yield Cite(fresh, first)) if fresh else ()
    return known + minted


def _by_passage(evidence: Sequence[Evidence]) -> dict[str, Evidence]:
    return {each.passage.id: each for each in evidence}


def _decided(assessment: Assessment, cited: _Cited) -> bool:
    """Whether anything came of it."""
    return bool(cited.statements) or any(each.outcome.label is not Label.NOT_ENOUGH for each in assessment.claims)


def _reading(given: VerifyInput, marked: MarkedText) -> tuple[str, ...]:
    """What a reader must know of how the text was read."""
    count = len(marked.sentences)
    cites = any(each.markers for each in marked.sentences)
    told = (
        (not given.question.strip() and count, NO_QUESTION),
        (len(given.text) > MOST_CHARACTERS, CUT.format(most=MOST_CHARACTERS, number=len(given.text))),
        (count > MOST_SENTENCES, TOO_LONG.format(most=MOST_SENTENCES, number=count)),
        (count and not cites and not given.references, NO_CITATIONS),
        (marked.malformed, MALFORMED.format(number=marked.malformed)),
    )
    return tuple(note for holds, note in told if holds)


def _noted(assessment: Assessment, cited: _Cited, bounds: Bounds, provenance: Provenance) -> tuple[str, ...]:
    unjudged = sum(each.unjudged for each in assessment.claims)
    missing = [marker for marker, study in cited.studies.items() if study is None]
    count = len(cited.statements)
    told = (
        (missing, UNRESOLVED.format(markers=", ".join(missing))),
        (count, CHECKED.format(number=count, supported=supported(cited.statements))),
        (not assessment.claims, NOTHING),
        (assessment.claims and not bounds.collections, NO_LITERATURE),
        (assessment.claims and bounds.collections and not assessment.studies, NO_STUDY),
        (unjudged, NOT_KNOWN.format(number=unjudged)),
        (assessment.claims, JUDGED_BY.format(judge=_judge(provenance))),
    )
    return tuple(note for holds, note in told if holds)


def _judge(provenance: Provenance) -> str:
    return dict(provenance.models).get("entailment", "")
