"""What belongs to a quotation: its list, the end of its sentence, the warnings of its section."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localmed.domain import Citation, Passage
from localmed.language import sentences
from localmed.verification.furniture import furniture, imprint
from localmed.verification.sections import ITEMS, WHOLE, Quoted, section_of, whole
from localmed.verification.subjects import of_range
from tests.values import evidence, passage

LONG = passage(" ".join(f"Remark number {number} is about something else." for number in range(WHOLE // 30)))


def quoted(text: str, *passages: Passage) -> Quoted:
    """What is quoted of a long section with the sentence ``text`` in one of ``passages``."""
    return quoted_of(text, *passages, LONG)


def quoted_of(text: str, *passages: Passage) -> Quoted:
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


def test_a_short_section_is_quoted_as_it_stands() -> None:
    text = "Adrenaline is the first treatment.\n500 micrograms.\nInject it into the muscle. Repeat it."
    assert texts(quoted_of("500 micrograms.", passage(text))) == [
        "Adrenaline is the first treatment.", "500 micrograms.", "Inject it into the muscle.", "Repeat it.",
    ]  # fmt: skip
    zh = "首选平衡盐溶液。随后再评估。不要使用羟乙基淀粉。"
    assert texts(quoted_of("随后再评估。", passage(zh, language="zh"))) == [
        "首选平衡盐溶液。", "随后再评估。", "不要使用羟乙基淀粉。",
    ]  # fmt: skip


def test_of_a_long_section_the_paragraph_and_what_warns_is_quoted() -> None:
    text = "Phenytoin is given slowly. It precipitates.\nWeigh the patient. Sit down.\nNever stop it. Walk on."
    assert texts(quoted("Phenytoin is given slowly.", passage(text))) == [
        "Phenytoin is given slowly.", "It precipitates.", "Never stop it.", "Walk on.",
    ]  # fmt: skip


def test_of_a_long_paragraph_only_the_sentence_and_what_warns_is_quoted() -> None:
    text = f"{LONG.text} Phenytoin is given slowly. It precipitates. Stop the infusion if the QRS widens."
    assert texts(quoted_of("Phenytoin is given slowly.", passage(text))) == [
        "Phenytoin is given slowly.", "Stop the infusion if the QRS widens.",
    ]  # fmt: skip


def test_a_paragraph_that_begins_with_a_warning_is_quoted_whole() -> None:
    warning = "Do not give more than two doses. Further doses stop the breathing. Have a mask ready."
    row = replace(passage("Drug: Lorazepam; Dose: 4 mg"), table=True)
    assert texts(quoted("Drug: Lorazepam; Dose: 4 mg", row, passage(warning))) == [
        "Drug: Lorazepam; Dose: 4 mg", "Do not give more than two doses.", "Further doses stop the breathing.",
        "Have a mask ready.",
    ]  # fmt: skip


def test_a_long_list_says_that_it_continues() -> None:
    text = "Ask about:\n" + "\n".join(f"complaint {number}" for number in range(ITEMS + 5))
    part = quoted("complaint 3", passage(text))
    assert len(part.spans) == ITEMS + 1
    assert part.last is not None


def test_a_sentence_that_its_passage_cuts_goes_on() -> None:
    first, second = passage("The parts are (i) pain, (ii) fever,"), passage("(iii) jaundice; and more. Next.")
    second = replace(second, text=f"and (iii) jaundice. Next one is prose. {LONG.text}")
    assert texts(quoted("The parts are (i) pain, (ii) fever,", first, second)) == [
        "The parts are (i) pain, (ii) fever,", "and (iii) jaundice.",
    ]  # fmt: skip


def test_a_section_is_what_stands_together_under_its_headings() -> None:
    one, two = (replace(passage(text), headings=("Title", "Dose")) for text in ("Give 5 mg.", "Never more."))
    other = replace(passage("Store it."), headings=("Title", "Storage"))
    assert section_of(two, (one, two, other, replace(one, id="later"))) == (one, two)
    assert section_of(other, ()) == (other,)


def row(text: str) -> Passage:
    return replace(passage(text), table=True)


CLEARANCE = (
    row("Clearance: 30 mL/min or more; Give: Enoxaparin 40 mg\nClearance: 15 to 29 mL/min; Give: Enoxaparin 20 mg"),
    row("Clearance: Below 15 mL/min; Give: Unfractionated heparin; ask the pharmacist"),
)


def test_a_row_of_a_range_brings_its_table() -> None:
    part = texts(quoted("Clearance: 15 to 29 mL/min; Give: Enoxaparin 20 mg", *CLEARANCE, row("Name: A; Use: B")))
    assert part == [line for piece in CLEARANCE for line in piece.text.split("\n")]
    zh = row("年龄：18至64岁；剂量：10毫克\n年龄：65岁及以上；剂量：5毫克")
    assert len(texts(quoted("年龄：18至64岁；剂量：10毫克", zh))) == 2


def test_a_row_of_a_name_brings_only_those_of_its_name() -> None:
    table = row(
        "Drug: A; Age: adult; Dose: 1 to 2 mg\nDrug: A; Age: child; Dose: 1 mg\nDrug: B; Age: adult; Dose: 5 mg"
    )
    assert texts(quoted("Drug: A; Age: adult; Dose: 1 to 2 mg", table)) == table.text.split("\n")[:2]
    grades = row("Grade: Grade 2; Pressure: 160 to 179\nGrade: Grade 3; Pressure: 180 or more")
    assert texts(quoted("Grade: Grade 3; Pressure: 180 or more", grades)) == grades.text.split("\n")[1:]


@pytest.mark.parametrize(("text", "limited"), [
    ("<15", True), ("15-29", True), ("60 kg and over", True), ("65岁及以上", True), ("15~29 mL/min", True),
    ("18 years or older", True), ("3级高血压", False), ("Type 2 diabetes", False), ("Vitamin B12", False),
    ("over time", False),
])  # fmt: skip
def test_a_cell_of_a_limit(text: str, limited: bool) -> None:
    assert of_range(text) is limited


def test_what_says_to_act_at_once_warns() -> None:
    text = "Review after two weeks.\nSend the patient to hospital at once if drowsy. Weigh the patient."
    assert texts(quoted("Review after two weeks.", passage(text))) == [
        "Review after two weeks.", "Send the patient to hospital at once if drowsy.",
    ]  # fmt: skip
    zh = "每2至4周随访一次。\n收缩压≥180 mmHg者，应立即送急诊科。可转诊至专科。孕妇不使用该药。"
    assert texts(quoted("每2至4周随访一次。", passage(zh, language="zh"))) == [
        "每2至4周随访一次。", "收缩压≥180 mmHg者，应立即送急诊科。", "孕妇不使用该药。",
    ]  # fmt: skip


AROUND = passage(
    "For demonstration, not for clinical use. Demonstration Hospital, Pharmacy. Edition 2024-06-17.\nGive 5 mg.\n"
    "It works. Call Hospital Switchboard.\nEdition 2024-06-17 For demonstration, not for clinical use Page 1 of 2\n"
    "Demonstration Hospital Short formulary",
    title="Short formulary",
)
AROUND_ZH = passage(
    "仅供演示，不得用于临床。演示医院药剂科。\n每2周随访一次。应转诊至上级医院。\n"
    "版本日期：2024-05-01仅供演示，不得用于临床 第2页，共2页\n演示医院 成人高血压诊疗指南",
    title="成人高血压诊疗指南",
    language="zh",
)


def test_what_stands_around_the_text_is_no_warning() -> None:
    assert texts(quoted("It works.", AROUND)) == ["It works.", "Call Hospital Switchboard."]
    assert texts(quoted("每2周随访一次。", AROUND_ZH)) == ["每2周随访一次。", "应转诊至上级医院。"]


def test_furniture() -> None:
    for piece, kept in ((AROUND, ["Give 5 mg.", "It works.", "Call Hospital Switchboard."]),
                        (AROUND_ZH, ["每2周随访一次。", "应转诊至上级医院。"])):  # fmt: skip
        spans = [span for span in sentences(piece.text) if span[0] not in furniture(piece)]
        assert [piece.text[start:end] for start, end in spans] == kept


@pytest.mark.parametrize("text", [
    "For demonstration, not for clinical use. Refer to University Hospital.", "Page 2 of 2. Stop Hospital Heparin.",
    "仅供演示。立即送医院。", "Edition 2024. Give 25 mg.", "This reagent is not for clinical use.", "30 mg",
])  # fmt: skip
def test_what_states_something_is_no_furniture(text: str) -> None:
    piece = passage(text)
    last = sentences(text)[-1][0]
    assert last not in furniture(piece)


@pytest.mark.parametrize(("text", "issuer"), [
    ("Demonstration Hospital, Emergency Department.", True), ("Stroke Association, Clinical Committee", True),
    ("Emergency: call the Stroke Department.", False), ("Trust the reading of the monitor.", False),
    ("Send the patient to Hospital.", False),
])  # fmt: skip
def test_who_issues_a_document_is_named_by_an_imprint(text: str, issuer: bool) -> None:
    assert imprint(text) == issuer


def test_two_rows_of_a_short_table_bring_it_whole() -> None:
    table = row("Sign: Eyes; Severe: sunken\nSign: Mouth; Severe: dry\nSign: Pulse; Severe: fast")
    piece = replace(evidence("1", "x"), passage=table)
    cited = tuple(piece.citation(*span) for span in ((0, 26), (27, 51)))
    assert len(texts(whole(cited, (table, LONG)))) == 3
    assert len(texts(whole(cited[:1], (table, LONG)))) == 1


def test_a_short_section_is_quoted_with_its_table() -> None:
    table, prose = row("Drug: A; From: 6 months\nDrug: B; From: 3 months"), passage("Give one of them. Rest.")
    assert texts(quoted_of("Give one of them.", table, prose)) == [
        *table.text.split("\n"), "Give one of them.", "Rest.",
    ]  # fmt: skip


def test_a_warning_that_leads_in_to_a_list_brings_the_list() -> None:
    text = "Take it out at noon.\nAll of these must be met:\nEffective cough.\nNo planned operation."
    assert texts(quoted("Take it out at noon.", passage(text))) == text.split("\n")


@pytest.mark.parametrize("text", [
    "Edition 2025-01.", "Version 3, issued 14 April 2025, review due April 2028.", "第2版，2025年6月20日发布。",
])  # fmt: skip
def test_lines_of_editions_are_furniture(text: str) -> None:
    assert furniture(passage(text)) == {0}


def beyond(part: Quoted) -> list[str]:
    return [piece.text[start:end] for piece, start, end in part.spans if (piece.id, start, end) in part.beyond]


def test_what_neither_answers_nor_warns_goes_behind() -> None:
    table = row("Class: ARB; Example: losartan\nClass: ACE inhibitor; Example: ramipril")
    prose = passage("Several are combined. Do not combine these two. See a pharmacist.")
    part = quoted_of("Class: ARB; Example: losartan", table, prose)
    assert beyond(part) == ["Class: ACE inhibitor; Example: ramipril", "Several are combined.", "See a pharmacist."]
    assert not part.lists


def test_the_items_of_a_list_do_not_go_behind() -> None:
    part = quoted("Give oxygen.", STEPS, MORE)
    assert not beyond(part)
    assert len(part.lists) == 5


def test_what_warns_outside_of_lists_is_a_caution_and_what_tells_what_to_do_is_none() -> None:
    text = (
        "Phenytoin is given slowly. It must be diluted.\nNever mix it. Not even with glucose.\nCall for help at once."
    )
    piece = passage(text)
    part = quoted("Phenytoin is given slowly.", piece)
    assert {text[start:end] for _, start, end in part.cautions} == {"Never mix it.", "Not even with glucose."}
    steps = passage("Then, in this order:\nCall for help.\nDo not leave the patient.\nGive oxygen.")
    assert quoted("Give oxygen.", steps).cautions == frozenset()
