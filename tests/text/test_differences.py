"""What a new edition says otherwise: sentences under their headings, and in them the words that differ."""

from __future__ import annotations

from localmed.text.differences import Difference, Line, Run, differences


def of(*texts: str, heading: str = "Dose") -> list[Line]:
    return [Line(heading, text) for text in texts]


def test_only_the_words_that_differ_are_marked() -> None:
    (changed,) = differences(of("Give 5 mg twice.", "Stop."), of("Give 5.5 mg twice.", "Stop."))
    assert changed.heading == "Dose"
    before, after = changed.runs
    assert before == (Run("Give ", False), Run("5", True), Run(" mg twice.", False))
    assert after == (Run("Give ", False), Run("5.5", True), Run(" mg twice.", False))


def test_chinese_differs_by_character() -> None:
    (changed,) = differences(of("成人口服五毫克。"), of("成人口服十毫克。"))
    assert [run.text for run in changed.runs[1] if run.differs] == ["十"]


def test_what_came_or_went_stands_alone() -> None:
    came = Difference("Dose", "", "Call a doctor.")
    assert differences(of("Stop."), of("Stop.", "Call a doctor.")) == [came]
    assert came.runs == ((), (Run("Call a doctor.", True),))
    assert differences(of("Stop.", "Wait."), of("Stop."))[0].after == ""
    assert differences([], []) == []


def test_two_unrelated_sentences_differ_as_a_whole() -> None:
    (changed,) = differences(of("Wash your hands."), of("Ask the pharmacist before midnight"))
    assert changed.runs[0] == (Run("Wash your hands.", True),)


def test_a_sentence_that_moved_below_another_heading_is_told() -> None:
    before = [*of("Adults", "Stop.", heading="Adults"), *of("Children", "Give 5 mg.", heading="Children")]
    after = [*of("Adults", "Stop.", "Give 5 mg.", heading="Adults"), *of("Children", heading="Children")]
    assert len(differences(before, after)) == 2


def test_a_rewritten_chapter_is_not_compared_word_by_word() -> None:
    old = [f"Sentence {number} of the first edition speaks of doses." for number in range(400)]
    new = [f"Another text {number} in the second edition tells about doses." for number in range(400)]
    (changed,) = differences(of(*old), of(*new))
    assert [run.differs for side in changed.runs for run in side] == [True, True]
