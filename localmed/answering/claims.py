"""Extracts the claims of an answer (M-Eval, III-B), and the premise of a study for a claim.

The sentences most similar to the question, by a reranker or encoder, are claims, at most ``MOST``; without a model for
the language the first sentences are. One more claim is the question with the answer, so that a true but irrelevant
sentence does not pass. Questions, headings and sentences of hardly a word are no claims.
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
    """A claim at ``start:end`` of the answer; ``whole``: the question with the answer."""

    text: str
    start: int = 0
    end: int = 0
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Premise:
    """A study's premise for a claim: text of the passage at ``place``, with its best sentence ``start:end``.

    ``text`` is empty if no sentence shares a word with the claim; ``share``: the share of the claim's words in it.
    """

    text: str = ""
    place: int = 0
    start: int = 0
    end: int = 0
    share: float = 0.0


def candidates(stated: Sequence[Claim]) -> tuple[Claim, ...]:
    """The sentences that state something, in order."""
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
    """The question with the answer as one claim; of a long answer only the ``best`` sentence."""
    answer = " ".join(sentence.text for sentence in stated)
    if len(answer) <= WHOLE_CHARACTERS:
        return Claim(f"{question} {answer}", stated[0].start, stated[-1].end, whole=True)
    return Claim(f"{question} {best.text[:WHOLE_CHARACTERS]}", best.start, best.end, whole=True)


@dataclass(frozen=True, slots=True)
class Read:
    """The sentences of a text with their content words, made once for all claims."""

    text: str
    spans: tuple[tuple[int, int], ...]
    words: tuple[frozenset[str], ...]

    @classmethod
    def of(cls, text: str) -> Read:
        """``text`` for comparison with claims."""
        spans = tuple(sentences(text))
        return cls(text, spans, tuple(frozenset(content_words(text[start:end])) for start, end in spans))


def premise(passages: Sequence[Read], claim: str) -> Premise:
    """The premise for ``claim``: sentences of the passage that share most words with it."""
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
