"""Whether a sentence that a model wrote, or a person submitted, is carried by what it cites: by rule, then by a judge.

What the source says word for word is carried (``verbatim``). What a rule finds (``comparison``: a number, unit,
medicine, negation, too few shared words), a contradiction, or an exception of the source that is left out
(``exceptions``): the sentence is withheld or marked, as the site says. What is neither shown to be supported nor to be
wrong stays, marked as unchecked; of an answer that nobody but rules checks it is withheld, and the source's own words
stand in its place. For rules see words, not meaning: of wrong sentences that others wrote they let three to four in ten
pass (tests/benchmarks/gate).
Sentences of one answer that say otherwise than one another, and those that leave out an exception which no sentence
that is shown says, count as unsupported too. A judge of entailment may say that what shares few words is supported, or
that something is not said; no judge overrules a number, a medicine or a negation.
Measured in tests/benchmarks/planted_faults.py and tests/verification/altered.py.

A quotation needs no judging; beside what is shown ``with_exceptions`` puts the neighbouring sentence that limits it,
and ``in_place`` the source's own sentence where a model's was withheld.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from localmed.clinical import measures, qualifiers
from localmed.domain import (
    AnswerSection,
    Citation,
    Evidence,
    Message,
    Origin,
    Passage,
    Statement,
    Support,
    Verdict,
    Verification,
    message,
)
from localmed.ports import Stance
from localmed.verification import agreement, bindings, cases, for_value
from localmed.verification.comparison import MORE, OMITTED, fault, rests_on
from localmed.verification.exceptions import omitted
from localmed.verification.matching import window
from localmed.verification.verbatim import find_verbatim

JUDGE = message("support.judge.rules")
CONTRADICTED = 0.6  # least probability at which a sentence counts as contradicted
# A judge's probability of support from which it is supported, and below which it is not said. Not fitted: no judge of
# real weights was at hand.
SAID, NOT_SAID = 0.7, 0.3
QUOTED = message("support.said")
UNSHOWN = message("support.unshown")
LIMITS = message("support.limits")
AGAINST = message("support.against_another")
IN_PLACE = message("support.in_place")
FOR_VALUE = message("support.for_value")
OTHER_ROW = message("support.other_row")
NOT_SHOWN = message("support.not_shown")  # of a sentence that a person submitted
NOT_JUDGED = message("support.not_judged")
ADDED = 3  # exceptions put beside the quotations of one answer, at most: more would bury them

Policy = Literal["withhold", "mark"]  # what is done with a sentence that is not supported


def pairs(statements: Sequence[Statement], evidence: Sequence[Evidence]) -> tuple[tuple[str, str], ...]:
    """What is judged: (the sentences of a cited passage that matter, statement), in the order of its citations."""
    known = {piece.marker: piece.passage for piece in evidence}
    return tuple(
        (window(statement.text, [known[marker]]).in_context, statement.text)
        for statement in statements
        if _judged(statement)
        for marker in _markers(statement)
    )


def check(
    statements: Sequence[Statement],
    evidence: Sequence[Evidence],
    stances: Sequence[Stance],
    before: Verification,
    policy: Policy = "withhold",
    judge: str = "",
    context: Sequence[str] = (),
    replaceable: bool = False,
) -> tuple[tuple[Statement, ...], Verification]:
    """The statements with their verdicts; ``stances`` are those of ``pairs``, ``before`` the account so far.

    ``judge`` names a judge of entailment whose "supported" and "not said" count; ``context`` are the question and the
    record, whose numbers a statement may repeat. ``replaceable``: the sources can be quoted in place of a sentence, so
    that a model's is withheld if no judge is there and rules cannot tell.
    """
    known = {piece.marker: piece.passage for piece in evidence}
    waiting = iter(stances)
    checked = []
    for statement in statements:
        if _judged(statement):
            passages = [known[marker] for marker in _markers(statement)]
            documents = {passage.document_id for passage in passages}
            beside = [piece.passage for piece in evidence if piece.passage.document_id in documents]
            task = _Task(statement, passages, [next(waiting) for _ in passages], judge, context, beside)
            statement = _withheld(replace(statement, verdict=_verdict(task)), policy, replaceable and not judge)
        checked.append(statement)
    checked = _complete(_consistent(checked, policy), known, policy)
    withheld = sum(statement.withheld for statement in checked)
    judges = (*before.judges, JUDGE, *((_name(judge),) if judge and stances else ()))
    return tuple(checked), replace(before, statements_withheld=withheld, judges=judges)


def unsupported(statement: Statement) -> bool:
    """Whether the check found that the statement's citations do not carry it, withheld or not."""
    support = statement.verdict.support if statement.verdict else Support.UNCHECKED
    return support in (Support.UNSUPPORTED, Support.CONTRADICTED)


def _judged(statement: Statement) -> bool:
    return statement.origin in (Origin.GENERATED, Origin.SUBMITTED) and not statement.withheld


def _markers(statement: Statement) -> tuple[str, ...]:
    return tuple(dict.fromkeys(citation.marker for citation in statement.citations))


def _name(judge: str) -> Message:
    return message("support.judge.entailment", name=judge)


@dataclass(frozen=True, slots=True)
class _Task:
    """A statement, the passages that it cites, how each stands to it, who judged, and the question and the record.

    ``beside`` is what was found of the cited documents: the row for a value may be in another passage.
    """

    statement: Statement
    passages: Sequence[Passage]
    stances: Sequence[Stance]
    judge: str
    context: Sequence[str]
    beside: Sequence[Passage]


def _verdict(task: _Task) -> Verdict:
    """By rule and by the judge; what the statement leaves out is looked at after it."""
    text, submitted = task.statement.text, task.statement.origin is Origin.SUBMITTED
    if for_value.of_another(text, task.context, task.beside):
        return Verdict(Support.UNSUPPORTED, JUDGE, OTHER_ROW)
    if any(find_verbatim(passage.text, text, passage.table) for passage in task.passages):
        return Verdict(Support.VERBATIM if submitted else Support.SUPPORTED, JUDGE, QUOTED)
    likeness = max((stance.likeness for stance in task.stances), default=0.0)
    difference = fault(text, window(text, task.passages), likeness, bindings.numbers_of(task.context))
    entailed = max(stance.entailment for stance in task.stances)
    supported = any(stance.label == "entailment" for stance in task.stances)
    supported = supported and (not task.judge or entailed >= SAID)
    # Few shared words are a guess: enough to withhold, not to accuse, and nothing against a judge who says otherwise.
    guessed = difference == MORE and (submitted or (supported and bool(task.judge)))
    if difference and not guessed:
        return Verdict(Support.UNSUPPORTED, JUDGE, difference)
    judge = _name(task.judge) if task.judge else JUDGE
    if max(stance.contradiction for stance in task.stances) >= CONTRADICTED:
        return Verdict(Support.CONTRADICTED, judge, message("support.contradicted"))
    if supported:
        return Verdict(Support.SUPPORTED, judge, message("support.supported"))
    judged = [stance for stance in task.stances if stance.judged]
    if submitted:
        return Verdict(Support.UNCHECKED, judge if judged else JUDGE, NOT_SHOWN if judged else NOT_JUDGED)
    if task.judge and judged and entailed < NOT_SAID:
        return Verdict(Support.UNSUPPORTED, judge, _not_said(task))
    return Verdict(Support.UNCHECKED, JUDGE, UNSHOWN)


def _not_said(task: _Task) -> Message:
    """The words that the judge marked, of the passage that says most of the statement; else that it is not said."""
    marked = max(task.stances, key=lambda stance: stance.entailment).marked
    words = tuple(task.statement.text[start:end] for start, end in marked)
    return message("support.words_not_said", words=words) if words else message("support.not_said")


def _withheld(statement: Statement, policy: Policy, by_rules_alone: bool = False) -> Statement:
    unchecked = statement.verdict is not None and statement.verdict.support is Support.UNCHECKED
    untold = by_rules_alone and unchecked and statement.origin is Origin.GENERATED
    return replace(statement, withheld=policy == "withhold" and (unsupported(statement) or untold))


def _consistent(statements: Sequence[Statement], policy: Policy) -> list[Statement]:
    """The statements, of which those that say otherwise than one another count as unsupported."""
    standing = [place for place, one in enumerate(statements) if _model_wrote(one) and not unsupported(one)]
    pairs = agreement.disagreeing([statements[place] for place in standing])
    against = {standing[place] for place in agreement.places(pairs)}
    return [_faulted(one, AGAINST, policy) if place in against else one for place, one in enumerate(statements)]


def _model_wrote(statement: Statement) -> bool:
    return statement.origin is Origin.GENERATED and bool(statement.citations)


def _faulted(statement: Statement, reason: Message, policy: Policy) -> Statement:
    if statement.verdict and statement.verdict.support is Support.SUPPORTED and statement.verdict.reason == QUOTED:
        return statement  # what the source says word for word is not what is wrong
    return _withheld(replace(statement, verdict=Verdict(Support.UNSUPPORTED, JUDGE, reason)), policy)


def _complete(statements: Sequence[Statement], known: dict[str, Passage], policy: Policy) -> list[Statement]:
    """The statements, of which those that omit an exception of their sentence that no shown one says are unsupported.

    What another sentence says counts only while that is shown: the look is repeated until nothing changes.
    """
    checked = list(statements)
    for _ in checked:
        omitting = [place for place, one in enumerate(checked) if _omits(one, checked, known)]
        if not omitting:
            break
        checked[omitting[0]] = _withheld(
            replace(checked[omitting[0]], verdict=Verdict(Support.UNSUPPORTED, JUDGE, OMITTED)), policy
        )
    return checked


def _omits(statement: Statement, statements: Sequence[Statement], known: dict[str, Passage]) -> bool:
    quoted = statement.verdict is not None and statement.verdict.support is Support.VERBATIM
    if not _judged(statement) or unsupported(statement) or quoted or not statement.citations:
        return False
    passages = [known[marker] for marker in _markers(statement)]
    beside = [one.text for one in statements if one is not statement and not one.withheld and not unsupported(one)]
    return bool(omitted(statement.text, window(statement.text, passages), passages, beside, neighbours=False))


# --- quotations -------------------------------------------------------------------------------------------------------


def with_exceptions(statements: Sequence[Statement], evidence: Sequence[Evidence]) -> tuple[Statement, ...]:
    """``statements``, after each that is shown the neighbouring sentence that limits it, if none shown says that."""
    known = {piece.marker: piece for piece in evidence}
    texts = [statement.text for statement in statements if not statement.withheld]
    shown: list[Statement] = []
    added = 0
    for statement in statements:
        shown.append(statement)
        beside = _limiting(statement, known, texts) if added < ADDED else None
        if beside:
            added += 1
            texts.append(beside.text)
            shown.append(beside)
    return tuple(shown)


def _limiting(statement: Statement, known: dict[str, Evidence], texts: Sequence[str]) -> Statement | None:
    markers = [marker for marker in _markers(statement) if marker in known]
    if statement.origin not in (Origin.EXTRACTIVE, Origin.GENERATED) or statement.withheld or not markers:
        return None
    source = known[markers[0]]
    passages = [source.passage]
    sentence = omitted(statement.text, window(statement.text, passages), passages, texts)
    quoted = source.quotation(sentence.start, sentence.end) if sentence else None
    if quoted is None:
        return None
    return replace(quoted, verdict=Verdict(Support.VERBATIM, JUDGE, LIMITS), section=statement.section)


# --- in place of what is withheld -------------------------------------------------------------------------------------


def in_place(
    statements: Sequence[Statement], evidence: Sequence[Evidence], question: str = "", record: str = ""
) -> tuple[Statement, ...]:
    """``statements``, behind each of a model's that is withheld the source's own sentence, where one is like it.

    One that is for another case or another patient than ``question`` is about, or for other values than those of the
    ``record``, is not quoted. Nothing is added where nothing else is shown: then the flow quotes what answers the
    question. At the end stands what the sources say for a value that was given (``for_value``).
    """
    shown = {statement.text for statement in statements if not statement.withheld}
    known = {piece.marker: piece for piece in evidence}
    if not shown:
        return tuple(statements)
    complete, values = list[Statement](), list(measures.measured(record))
    for statement in statements:
        complete.append(statement)
        quoted = _own_words(statement, known) if statement.withheld else None
        fits = quoted and _fits(question, quoted, known) and not cases.for_another(values, quoted.text)
        if quoted and fits and quoted.text not in shown:
            shown.add(quoted.text)
            complete.append(quoted)
    verdict = Verdict(Support.VERBATIM, JUDGE, FOR_VALUE)
    beside = (one for one in for_value.missing((question, record), complete, evidence) if _fits(question, one, known))
    return (*complete, *(replace(one, verdict=verdict, section=AnswerSection.DOSES) for one in beside))


def _fits(question: str, quoted: Statement, known: dict[str, Evidence]) -> bool:
    source = known[quoted.citations[0].marker].passage
    return not cases.other(question, quoted.text) and not qualifiers.differing(question, source)


def stands_in(statement: Statement) -> bool:
    """Whether ``statement`` is quoted in place of one that was withheld, or of none for a value that was given."""
    return statement.verdict is not None and statement.verdict.reason in (IN_PLACE, FOR_VALUE)


def uses(statement: Statement, quoted: Citation, passages: Mapping[str, Passage]) -> bool:
    """Whether ``statement`` rests on what is ``quoted``, going by the sentences of that passage most like it."""
    passage = passages.get(quoted.passage_id)
    if passage is None or quoted.passage_id not in {citation.passage_id for citation in statement.citations}:
        return False
    return any(one.start < quoted.end and quoted.start < one.end for one in window(statement.text, [passage]).sentences)


def gaps(statements: Sequence[Statement], evidence: Sequence[Evidence]) -> int:
    """How many of a model's sentences are withheld of which what is shown does not quote the source.

    Going by words alone: a quotation found by meaning is shown, but is not taken for what the sentence said.
    """
    known = {piece.marker: piece for piece in evidence}
    shown = {statement.text for statement in statements if not statement.withheld}
    withheld = [one for one in statements if one.withheld and one.origin is Origin.GENERATED]
    return sum((quoted := _own_words(one, known, False)) is None or quoted.text not in shown for one in withheld)


def _own_words(statement: Statement, known: dict[str, Evidence], by_meaning: bool = True) -> Statement | None:
    """The sentence of the cited sources that is most like ``statement``, quoted.

    ``by_meaning``: also where few words are shared, of a sentence that was found to rest on its source by likeness.
    """
    sources = [known[marker] for marker in _markers(statement) if marker in known]
    if statement.origin is not Origin.GENERATED or not sources:
        return None
    best = window(statement.text, [source.passage for source in sources])
    rests = by_meaning and statement.verdict is not None and statement.verdict.reason == UNSHOWN
    if not best.sentences or not (rests or rests_on(statement.text, best)):
        return None
    sentence = best.sentences[0]
    quoted = sources[sentence.place].quotation(sentence.start, sentence.end)
    return replace(quoted, verdict=Verdict(Support.VERBATIM, JUDGE, IN_PLACE), section=statement.section)
