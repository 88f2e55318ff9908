"""The claims of an answer that are worth checking (M-Eval, III-B), and what of a study bears on a claim.

An answer is cut into sentences (Chinese ones too); those that are most like the question are claims, at most ``MOST``;
one more is the question with the answer, so that a true sentence beside the point does not pass. Likeness is what a
reranker or encoder says; where neither knows the language the first sentences are taken. Questions, headings and
sentences of hardly a word are no claims.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localmed.text.language import content_words, sentences

MOST = 4  # of an answer's sentences; the paper's
LEAST_WORDS = 2  # content words of a claim; "Yes, it is." states nothing that a study could be held against
WHOLE_CHARACTERS = 200  # of the answer beside the question: about a sentence, as a judge of sentences reads it
PREMISE_SENTENCES = 2  # of a study before a judge that was made for single statements
PREMISE_CHARACTERS = 600
_NO_CLAIM = ("?", "？", ":", "：")  # a question, or what a list stands under


@dataclass(frozen=True, slots=True)
class Claim:
    """What is checked; ``start:end`` is where it stands in the answer. ``whole`` is the question with the answer."""

    text: str
    start: int = 0
    end: int = 0
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Premise:
    """What of a study is held against a claim: a stretch of the passage at ``place``, its best sentence ``start:end``.

    ``text`` is empty where no sentence shares a word with the claim; ``share`` is the share of its words there.
    """

    text: str = ""
    place: int = 0
    start: int = 0
    end: int = 0
    share: float = 0.0


def candidates(stated: Sequence[Claim]) -> tuple[Claim, ...]:
    """Those of an answer's sentences that state something, in order."""
    return tuple(
        sentence
        for sentence in stated
        if len(set(content_words(sentence.text))) >= LEAST_WORDS
        and not sentence.text.startswith("#")
        and not sentence.text.rstrip("*_ ").endswith(_NO_CLAIM)
    )


def extract(question: str, stated: Sequence[Claim], scores: Sequence[float], most: int = MOST) -> tuple[Claim, ...]:
    """The ``most`` of the ``candidates`` of ``stated`` with the highest ``scores``, in order; then the whole.

    ``scores`` are those of the candidates; of equals the first counts. Without a question there is no whole.
    """
    possible = candidates(stated)
    ranked = sorted(range(len(possible)), key=lambda place: -scores[place])
    chosen = tuple(possible[place] for place in sorted(ranked[:most]))
    if not question.strip() or not stated:
        return chosen
    return (*chosen, _whole(question.strip(), stated, possible[ranked[0]] if ranked else stated[0]))


def _whole(question: str, stated: Sequence[Claim], best: Claim) -> Claim:
    """The question and the answer as one claim: all of a short answer, of a longer one the ``best`` sentence."""
    answer = " ".join(sentence.text for sentence in stated)
    if len(answer) <= WHOLE_CHARACTERS:
        return Claim(f"{question} {answer}", stated[0].start, stated[-1].end, whole=True)
    return Claim(f"{question} {best.text[:WHOLE_CHARACTERS]}", best.start, best.end, whole=True)


@dataclass(frozen=True, slots=True)
class Read:
    """A text cut into sentences, with the content words of each; made once for all claims."""

    text: str
    spans: tuple[tuple[int, int], ...]
    words: tuple[frozenset[str], ...]

    @classmethod
    def of(cls, text: str) -> Read:
        """``text`` as it is compared with claims."""
        spans = tuple(sentences(text))
        return cls(text, spans, tuple(frozenset(content_words(text[start:end])) for start, end in spans))


def premise(passages: Sequence[Read], claim: str) -> Premise:
    """What of a study's ``passages`` bears on ``claim``: of one passage the sentences that share most words with it."""
    terms = frozenset(content_words(claim))
    shares = [
        (len(terms & words), -place, -number)
        for place, read in enumerate(passages)
        for number, words in enumerate(read.words)
    ]
    best = max(shares, default=(0, 0, 0))
    if not best[0]:
        return Premise()
    read = passages[-best[1]]
    ranked = sorted(range(len(read.spans)), key=lambda number: (-len(terms & read.words[number]), number))
    kept = sorted(number for number in ranked[:PREMISE_SENTENCES] if terms & read.words[number])
    start, end = read.spans[-best[2]]
    text = " ".join(read.text[slice(*read.spans[number])] for number in kept)
    text = text if len(text) <= PREMISE_CHARACTERS else read.text[start : min(end, start + PREMISE_CHARACTERS)]
    return Premise(text, -best[1], start, end, best[0] / len(terms))
