"""Exceptions that stand beside a cited sentence, and whether a statement carries them: "unless", "not in pregnancy".

A sentence that says to give, use or aim at something brings along what limits it: in the sentence itself, or in one of
its two neighbours in the passage where that speaks of the same medicine or names nothing of its own; of a table the
same row. Looked for are words of exception (unless, except, but not, provided, 除非, 除外), orders not to (avoid,
contraindicated, 禁用, 慎用) or to give less, with a condition of the patient (pregnancy, kidneys, liver, allergy, age,
weight). A limit two sentences away, or in other words, is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from localmed.clinical.medicines import names
from localmed.domain import Passage
from localmed.language import fold
from localmed.verification.matching import Sentence, Window, split, words

CARRIED = 0.5  # share of an exception's words from which a statement says it

_GIVES = re.compile(
    r"\b(?:give|given|gives|take|taken|takes|use|used|start|starts|started|inject\w*|receives?|recommend\w*|offer\w*"
    r"|treat\w*|doses?|continue\w*|target|aim|add|adding|prescribe\w*|combin\w*|may|can|laid|kept|stop|observed|prevent|lower|come"
    r"|reason)\b|\d\s?(?:mg|g|ml|mcg|units?)\b"
    r"|给予|服用|使用|用于|应|可|注射|开始|口服|毫克|降到|降至|禁食"
)
# An order not to, or to look at something: it gives nothing that an exception could limit.
_OTHER = re.compile(
    r"\b(?:not|never|avoid\w*|contraindicated|cannot|check\w*|measur\w*|monitor\w*|review\w*|record\w*)\b|n't\b"
    r"|不|勿|禁用|复查"
)
_CLAUSE = re.compile(r"[;；。，]|,(?!\d)|\.\s|\b(?:and|but)\b(?= (?:at|in|for|after|not|then)\b)")
_EXCEPT = re.compile(
    r"\b(?:unless|except|excluding|other than|provided that|only if|as long as|not in\b"
    r"|if (?:\w+ ){0,3}(?:tolerated|allow)|if this does not|with caution|more carefully)"
    r"|除非|除外|前提|如能|能够耐受|慎用|延长"
)
_LESS = re.compile(
    r"\b(?:avoid|contraindicated|do(?:es)? not|not|never|reduce|halve|lower|less|maximum|stop|caution|works less"
    r"|different)\b|禁|慎|不(?:宜|要|得|能|可|推荐)|减量|停用"
)
_CONDITION = re.compile(
    r"\bpregnan|breast-?feed|\brenal|kidney|egfr|crcl|creatinine clearance|\bliver|hepat|allerg|\bchild|elderly|\bfrail"
    r"|older|heart failure|mechanical heart|asthma|body weight|at risk of|breathing difficulty|normal kidney"
    r"|妊娠|孕|哺乳|肾|肝|过敏|儿童|老年|衰弱|哮喘|排空延迟|排除脑出血"
)
_HEADER = re.compile(r"^\s*[a-z][a-z ]{1,30}: ")  # of a table's cell
_POINTS_BACK = re.compile(r"^(?:it|they|this|these|then|do not|avoid|reduce|stop|for patients|in patients|不|但|有)\b")


def omitted(
    statement: str, window: Window, passages: Sequence[Passage], beside: Sequence[str] = (), neighbours: bool = True
) -> Sentence | None:
    """The sentence with an exception that neither ``statement`` nor what stands ``beside`` it says; None if none.

    Without ``neighbours`` only the sentence itself is looked at.
    """
    first = _CLAUSE.split(fold(statement))[0]
    if not window.sentences or not _GIVES.search(fold(statement)) or _OTHER.search(first):
        return None
    texts = [statement, *beside]
    best = window.sentences[0]
    beside_it = _neighbours(best, passages) if neighbours else []
    for sentence in [best, *beside_it]:
        if sentence is not best and not _same_matter(statement, sentence):
            continue
        for clause in clauses(sentence.text):
            if not any(_carries(text, clause) for text in texts):
                return sentence
    return None


def clauses(sentence: str) -> list[str]:
    """The clauses of ``sentence`` that limit what it says."""
    pieces = [_HEADER.sub("", part) for part in _CLAUSE.split(fold(sentence)) if part]
    return [piece for piece in pieces if _limits(piece)]


def _limits(clause: str) -> bool:
    return bool(_EXCEPT.search(clause) or (_CONDITION.search(clause) and _LESS.search(clause)))


def _neighbours(sentence: Sentence, passages: Sequence[Passage]) -> list[Sentence]:
    """The sentences before and after, in the same passage; a row of a table has none."""
    passage = passages[sentence.place]
    if passage.table:
        return []
    all_of_it = split(passage, sentence.place)
    at = all_of_it.index(sentence)
    return [*all_of_it[at + 1 : at + 2], *all_of_it[max(0, at - 1) : at]]


def _same_matter(statement: str, sentence: Sentence) -> bool:
    theirs = names(sentence.text)
    return bool(names(statement) & theirs) or (not theirs and bool(_POINTS_BACK.match(fold(sentence.text))))


def _carries(text: str, clause: str) -> bool:
    """Whether ``text`` has the clause's condition, or at least half of its words."""
    folded, terms = fold(text), words(clause)
    named = {match[0] for match in _CONDITION.finditer(clause)}
    if named:
        return any(condition in folded for condition in named)
    return len(terms & words(text)) >= CARRIED * len(terms)
