"""Which sentences of an answer are claims, and what of a study is held against one."""

from __future__ import annotations

from localmed.language import sentences
from localmed.verification.claims import MOST, Claim, Read, candidates, extract, likeness, premise

ANSWER = (
    "Good question! Warfarin prevents stroke in atrial fibrillation. Aspirin alone does not prevent it. Are you sure? "
    "Bleeding in the skull is rarer with apixaban. Mitral stenosis is an exception. The hospital has a clinic. Yes."
)
QUESTION = "What prevents stroke in atrial fibrillation?"


def said(text: str) -> list[Claim]:
    return [Claim(text[start:end], start, end) for start, end in sentences(text)]


def claims(question: str, text: str) -> list[str]:
    possible = candidates(said(text))
    return [each.text for each in extract(question, said(text), likeness(question, [each.text for each in possible]))]


def test_questions_and_sentences_of_hardly_a_word_are_no_claims() -> None:
    texts = [candidate.text for candidate in candidates(said(ANSWER))]
    assert "Are you sure?" not in texts
    assert "Yes." not in texts
    assert "Warfarin prevents stroke in atrial fibrillation." in texts


def test_the_sentences_most_like_the_question_and_the_whole() -> None:
    found = claims(QUESTION, ANSWER)
    assert len(found) == MOST + 1
    assert "Warfarin prevents stroke in atrial fibrillation." in found[:2]
    assert found[-1] == f"{QUESTION} Warfarin prevents stroke in atrial fibrillation.", "of a long answer the best"


def test_scores_from_a_model_decide() -> None:
    possible = candidates(said(ANSWER))
    scores = [float(place) for place in range(len(possible))]
    found = extract(QUESTION, said(ANSWER), scores, most=2)
    assert [each.text for each in found[:2]] == [each.text for each in possible[-2:]], "in the answer's order"
    assert found[2].whole


def test_a_bare_yes_is_a_claim_with_its_question_only() -> None:
    assert claims("Does aspirin prevent stroke?", "No.") == ["Does aspirin prevent stroke? No."]


def test_without_a_question_there_is_no_whole() -> None:
    assert claims("", "Aspirin prevents stroke. Warfarin causes bleeding.") == [
        "Aspirin prevents stroke.", "Warfarin causes bleeding.",
    ]  # fmt: skip
    assert claims("Why?", "") == []


def test_chinese() -> None:
    text = "华法林可预防房颤患者的脑卒中。阿司匹林单用无效。您确定吗？"
    found = claims("房颤患者如何预防脑卒中？", text)
    assert found[0] == "华法林可预防房颤患者的脑卒中。"
    assert not any("您确定吗" in each for each in found[:-1])


def test_a_claim_says_where_it_stands() -> None:
    first = extract(
        QUESTION, said(ANSWER), likeness(QUESTION, [candidate.text for candidate in candidates(said(ANSWER))])
    )[0]
    assert ANSWER[first.start : first.end] == first.text


def test_what_of_a_study_bears_on_a_claim() -> None:
    passages = [
        Read.of("Background. Stroke is common. The trial was run in ten hospitals."),
        Read.of("Warfarin reduced stroke by two thirds. Bleeding rose. Stroke was rarer on warfarin in women."),
    ]
    found = premise(passages, "Warfarin prevents stroke.")
    assert found.place == 1
    assert found.text == "Warfarin reduced stroke by two thirds. Stroke was rarer on warfarin in women."
    assert passages[1].text[found.start : found.end] == "Warfarin reduced stroke by two thirds."
    assert premise(passages, "Insulin lowers glucose.").text == ""
    assert premise([], "Insulin lowers glucose.").text == ""


def test_a_long_sentence_is_cut() -> None:
    found = premise([Read.of("Warfarin " + "and so on " * 200)], "Warfarin prevents stroke.")
    assert 0 < len(found.text) <= 600
