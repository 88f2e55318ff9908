"""What belongs to a quotation: its list, the end of its sentence, the warnings of its section."""

from __future__ import annotations

from dataclasses import replace

from localmed.domain import Citation, Passage
from localmed.verification.sections import ITEMS, Quoted, section_of, whole
from tests.values import evidence, passage


def quoted(text: str, *passages: Passage) -> Quoted:
    """What is quoted of the section ``passages`` with the sentence ``text``."""
    piece = next(one for one in passages if text in one.text)
    start = piece.text.index(text)
    citation: Citation = replace(evidence("1", "x"), passage=piece).citation(start, start + len(text))
    return whole((citation,), passages)


def texts(part: Quoted) -> list[str]:
    return [piece.text[start:end] for piece, start, end in part.spans]


STEPS = passage("Note the time.\nThen, in this order:\nCall for help.\nGive oxygen.\nCheck the glucose.")
MORE = passage("Attach the monitor.\nTwo cannulas are placed. They are flushed.")


def test_an_item_brings_its_list_over_the_border_of_a_passage() -> None:
    part = quoted("Give oxygen.", STEPS, MORE)
    assert texts(part) == ["Then, in this order:", "Call for help.", "Give oxygen.", "Check the glucose.",
                           "Attach the monitor."]  # fmt: skip
    assert part.last is None


def test_prose_brings_nothing_but_what_warns() -> None:
    text = "Phenytoin is given slowly. It precipitates in glucose. Stop the infusion if the QRS widens."
    assert texts(quoted("Phenytoin is given slowly.", passage(text))) == [
        "Phenytoin is given slowly.", "Stop the infusion if the QRS widens.",
    ]  # fmt: skip


def test_a_paragraph_that_begins_with_a_warning_is_quoted_whole() -> None:
    warning = "Do not give more than two doses. Further doses stop the breathing. Have a mask ready."
    row = replace(passage("Drug: Lorazepam; Dose: 4 mg"), table=True)
    assert texts(quoted("Drug: Lorazepam; Dose: 4 mg", row, passage(warning))) == [
        "Drug: Lorazepam; Dose: 4 mg", "Do not give more than two doses.", "Further doses stop the breathing.",
        "Have a mask ready.",
    ]  # fmt: skip


def test_in_chinese() -> None:
    text = "首选平衡盐溶液。随后再评估。不要使用羟乙基淀粉。"
    assert texts(quoted("首选平衡盐溶液。", passage(text, language="zh"))) == [
        "首选平衡盐溶液。",
        "不要使用羟乙基淀粉。",
    ]


def test_a_long_list_says_that_it_continues() -> None:
    text = "Ask about:\n" + "\n".join(f"complaint {number}" for number in range(ITEMS + 5))
    part = quoted("complaint 3", passage(text))
    assert len(part.spans) == ITEMS + 1
    assert part.last is not None


def test_a_sentence_that_its_passage_cuts_goes_on() -> None:
    first, second = passage("The parts are (i) pain, (ii) fever,"), passage("(iii) jaundice; and more. Next.")
    second = replace(second, text="and (iii) jaundice. Next one is prose. And so on.")
    assert texts(quoted("The parts are (i) pain, (ii) fever,", first, second)) == [
        "The parts are (i) pain, (ii) fever,", "and (iii) jaundice.",
    ]  # fmt: skip


def test_a_section_is_what_stands_together_under_its_headings() -> None:
    one, two = (replace(passage(text), headings=("Title", "Dose")) for text in ("Give 5 mg.", "Never more."))
    other = replace(passage("Store it."), headings=("Title", "Storage"))
    assert section_of(two, (one, two, other, replace(one, id="later"))) == (one, two)
    assert section_of(other, ()) == (other,)
