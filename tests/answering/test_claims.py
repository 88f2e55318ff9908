"""Which sentences of an answer are claims, and what of a study is held against one."""

from __future__ import annotations

from localmed.answering.claims import MOST, Claim, Read, candidates, extract, premise
from localmed.text.language import sentences

ANSWER = (
    "Good question! Warfarin prevents stroke in atrial fibrillation. Aspirin alone does not prevent it. Are you sure? "
    "Bleeding in the skull is rarer with apixaban. Mitral stenosis is an exception. The hospital has a clinic. Yes."
)
QUESTION = "What prevents stroke in atrial fibrillation?"


def claims_of(text: str) -> list[Claim]:
    return [Claim(text[start:end], start, end) for start, end in sentences(text)]


def claims(question: str, text: str) -> list[str]:
    return [claim.text for claim in extract(question, claims_of(text), scores(question, text))]


def scores(question: str, text: str) -> list[float]:
    """How many of the question's words each candidate has."""
    asked = set(question.lower().split())
    return [float(len(asked & set(one.text.lower().split()))) for one in candidates(claims_of(text))]


def test_questions_and_sentences_of_hardly_a_word_are_no_claims() -> None:
    texts = [candidate.text for candidate in candidates(claims_of(ANSWER))]
    assert "Are you sure?" not in texts
    assert "Yes." not in texts
    assert "Warfarin prevents stroke in atrial fibrillation." in texts


def test_the_sentences_most_like_the_question_and_the_whole() -> None:
    texts = claims(QUESTION, ANSWER)
    assert len(texts) == MOST + 1
    assert "Warfarin prevents stroke in atrial fibrillation." in texts[:2]
    assert texts[-1] == f"{QUESTION} Warfarin prevents stroke in atrial fibrillation.", "of a long answer the best"


def test_scores_from_a_model_decide() -> None:
    possible = candidates(claims_of(ANSWER))
    rising = [float(place) for place in range(len(possible))]
    extracted = extract(QUESTION, claims_of(ANSWER), rising, most=2)
    assert [claim.text for claim in extracted[:2]] == [claim.text for claim in possible[-2:]], "in the answer's order"
    assert extracted[2].whole


def test_a_bare_yes_is_a_claim_with_its_question_only() -> None:
    assert claims("Does aspirin prevent stroke?", "No.") == ["Does aspirin prevent stroke? No."]


def test_a_claim_says_where_it_stands() -> None:
    first = extract(QUESTION, claims_of(ANSWER), scores(QUESTION, ANSWER))[0]
    assert ANSWER[first.start : first.end] == first.text


def test_what_of_a_study_bears_on_a_claim() -> None:
    passages = [
        Read.of("Background. Stroke is common. The trial was run in ten hospitals."),
        Read.of("Warfarin reduced stroke by two thirds. Bleeding rose. Stroke was rarer on warfarin in women."),
    ]
    best = premise(passages, "Warfarin prevents stroke.")
    assert best.place == 1
    assert best.text == "Warfarin reduced stroke by two thirds. Stroke was rarer on warfarin in women."
    assert passages[1].text[best.start : best.end] == "Warfarin reduced stroke by two thirds."
    assert premise(passages, "Insulin lowers glucose.").text == ""
    assert premise([], "Insulin lowers glucose.").text == ""


def test_a_long_sentence_is_cut() -> None:
    best = premise([Read.of("Warfarin " + "and so on " * 200)], "Warfarin prevents stroke.")
    assert 0 < len(best.text) <= 600
