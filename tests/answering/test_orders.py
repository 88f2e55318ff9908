"""The roles of an order: by rule over a small library, and on a chat model whose replies are not believed."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from localmed.answering.chat import ChatRoles
from localmed.answering.orders import (
    MEDICAL_TERMS,
    PLAIN_ORDER,
    RETRIEVAL_QUESTION,
    OrderInput,
    OrderTerm,
    PlainInput,
    RetrievalInput,
)
from localmed.answering.orders_rules import (
    defines,
    definition_of,
    is_stopped,
    lines_of,
    medicines_of,
    retrieval_question,
    terms,
)
from localmed.answering.roles import Role
from localmed.domain.errors import Rejected
from tests.scripted import ScriptedChat
from tests.values import evidence

ORDER = "Start metformin 500 mg PO BID. Hold for 2 days."
PATIENT = "Name: Jane Zyxwvut\nMRN 00417712\nProblems: rheumatic heart disease"
TERMS = (OrderTerm("metformin", 6, 15, "medicine"), OrderTerm("rheumatic heart disease", 0, 23))


def perform(role: Role, task: Any, *script: Any) -> Any:
    return ChatRoles(ScriptedChat(script)).perform(role, task)


# --- lines ---


def test_no_line_is_cut_at_its_semicolons() -> None:
    """What is said of one medicine may hold for the next."""
    order = "STOP: warfarin 5 mg; digoxin 125 mcg \n; \n12\n NPO\n停用：华法林 5mg；地高辛 0.25mg"
    lines = ["STOP: warfarin 5 mg; digoxin 125 mcg", "NPO", "停用：华法林 5mg；地高辛 0.25mg"]
    assert [order[start:end] for start, end in lines_of(order)] == lines
    assert [len(medicines_of(line)) for line in lines] == [2, 0, 2]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("Amlodipine 5 mg od, atorvastatin 20 mg on", ("Amlodipine", "atorvastatin")),  # one product has both
        ("Aspirin/clopidogrel 75 mg od", ("Aspirin", "clopidogrel")),
        ("奥美拉唑改艾司奥美拉唑针40mg q12h", ("奥美拉唑", "艾司奥美拉唑")),
        ("Sodium chloride 0.9% 1 L IV over 8 h, paracetamol 1 g PO", ("Sodium chloride", "paracetamol")),
        ("Warfarin 5 mg, avoid NSAIDs", ("Warfarin", "NSAIDs")),
        ("MST 10 mg bd, Oramorph 5 mg prn", ("MST", "Oramorph")),
        ("Heparin 5000 units, LMWH 40 mg", ("Heparin", "LMWH")),
        ("Warfarin 5 mg mane; warfarin 3 mg nocte", ("Warfarin",)),
        ("Furosemide 40 mg + sodium chloride 600 mg tablets tds", ("Furosemide", "sodium chloride")),
        ("Co-amoxiclav 625 mg tds", ("Co-amoxiclav",)),
        ("paracetamol/codeine 500/30 mg 2 tabs qds", ("paracetamol",)),
        ("Panadol (paracetamol) 1 g", ("Panadol",)),
        ("Enoxaparin (LMWH) 40 mg", ("Enoxaparin",)),
        ("Vancomycin 1 g in 250 mL sodium chloride 0.9% IV", ("Vancomycin",)),
        ("0.9%氯化钠注射液100ml＋头孢曲松钠2g ivgtt qd", ("头孢曲松",)),
        ("Furosemide 40 mg od, check potassium", ("Furosemide",)),
    ],
)
def test_the_medicines_of_a_line(line: str, names: tuple[str, ...]) -> None:
    assert medicines_of(line) == names


def test_a_long_line_of_medicines_is_read_in_time() -> None:
    started = time.process_time()
    assert len(medicines_of("warfarin in sodium chloride; aspirin/" * 2_000)) == 2
    assert time.process_time() - started < 2


@pytest.mark.parametrize(("line", "stopped"), [
    ("STOP warfarin", True), ("warfarin 5 mg stopped", True), ("hold warfarin", True), ("warfarin 停用", True),
    ("change warfarin to apixaban 5 mg", True), ("停 warfarin", True), ("d/c warfarin", True), ("D/C'd warfarin", True),
    ("warfarin 5 mg daily", False), ("warfarin 5 mg 5/7 then stop", False), ("warfarin, then stop aspirin", True),
    ("change warfarin to 3 mg", False), ("warfarin 改为3mg", False),
    ("bisoprolol 5 mg, hold if HR < 55, and stop warfarin", True), ("如血压低时暂停氨氯地平，停用warfarin", True),
    ("warfarin 3 mg od, hold if INR > 4", False), ("warfarin 3 mg, withhold if bleeding; stop aspirin", True),
])  # fmt: skip
def test_a_medicine_that_a_line_may_stop(line: str, stopped: bool) -> None:
    order = f"aspirin stopped\n{line}\naspirin stopped"
    term = next(one for one in terms(order) if one.text == "warfarin")
    assert is_stopped(order, term) == stopped


# --- on a chat model --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", [["Metformin"], ["aspirin"]])
def test_a_term_that_is_not_written_so_is_not_believed(named: list[str]) -> None:
    with pytest.raises(Rejected):
        perform(MEDICAL_TERMS, OrderInput(ORDER), {"terms": named}, {"terms": named})


def test_terms_come_in_the_order_of_the_order_each_once_whatever_the_model_makes_of_it() -> None:
    named = ["布洛芬", "暂停", "布洛芬", "阿司匹林", "服阿司匹林"]
    terms = perform(MEDICAL_TERMS, OrderInput("服阿司匹林\n暂停布洛芬"), {"terms": named})
    assert [term.text for term in terms] == ["服阿司匹林", "暂停", "布洛芬"]


@pytest.mark.parametrize(
    ("line", "plain", "kept"),
    [
        ("Metformin 500 mg PO BID", "The order says to take metformin, 500 mg, by mouth, twice a day.", True),
        ("NBM from midnight", "The order says: Nothing by mouth from midnight.", True),
        ("Aspirin 75 mg OD", "The order says: Aspirin 75 mg once a day.", True),
        (
            "O2 2 L/min, target SpO2 > 92%",
            "The order says: Oxygen 2 L/min, target oxygen in the blood above 92%.",
            True,
        ),
        ("Amoxicillin 500 mg PO TDS 5/7", "Amoxicillin 500 mg by mouth three times a day for 5 days.", True),
        ("Amoxicillin 500 mg PO TDS 5/7", "Amoxicillin 500 mg by mouth three times a day for 7 days.", False),
        ("Hold for 2 days", "The order says to take it for 2 days.", False),
        ("Do not take aspirin", "The order says to take aspirin.", False),
        ("Take it with food", "The order says to take it with food, not without.", False),
        ("Ramipril 5 mg", "The order says to take enalapril, 5 mg.", False),
        ("Aspirin 75 mg OD", "The order says: Aspirin 75 mg twice a day.", False),
        ("O2 2 L/min", "The order says: Oxygen 4 L/min.", False),
        ("Warfarin 5 mg PO", "The order says: Warfarin 5 mg by mouth, not into a vein.", False),
    ],
)
def test_a_plain_line_is_kept_if_it_loses_and_adds_nothing(line: str, plain: str, kept: bool) -> None:
    lines = ("Take it with food", line)
    replies = ["The order says to take it with food.", plain]
    assert perform(PLAIN_ORDER, PlainInput(lines), {"lines": replies}) == (replies[0], plain if kept else "")


@pytest.mark.parametrize(
    "question", ["Will Jane Zyxwvut inherit it?", "Is 00417712 inherited?", "它会遗传吗？它会遗传吗？"]
)
def test_a_question_that_names_the_patient_is_not_taken(question: str) -> None:
    task = RetrievalInput("Will my child inherit it?", PATIENT, ORDER, TERMS)
    with pytest.raises(Rejected):
        perform(RETRIEVAL_QUESTION, task, {"question": question}, {"question": question})


# --- by rule ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "alone"),
    [
        ("What if I forget it?", "What if I forget it?"),
        ("I am Jane Zyxwvut. Can I stop this drug?", "Can I stop this drug?"),
        ("Jane Zyxwvut asks, tel 555-123-4567: is this condition serious?", "asks, : is this condition serious?"),
        ("我叫张三，这个药饭前吃吗？", "这个药饭前吃吗？"),
        ("I am Jane Zyxwvut, tel […]. Can I stop this drug?", "Can I stop this drug?"),  # struck before
    ],
)
def test_a_follow_up_question_says_nothing_of_who_asks(question: str, alone: str) -> None:
    assert retrieval_question(RetrievalInput(question, PATIENT, ORDER, TERMS)) == alone


def test_a_definition_is_quoted_and_a_mention_is_not() -> None:
    mention = evidence("1", "Tell us if you take metformin. Store it in the dark.", "Scans")
    defines = evidence("2", "Metformin lowers the sugar in your blood. Take it with food.", "Diabetes")
    (statement,) = definition_of(("metformin",), (mention, defines))
    assert statement.text == "Metformin lowers the sugar in your blood."
    assert statement.citations[0].marker == "2"
    assert definition_of(("metformin",), (mention,)) == ()


@pytest.mark.parametrize(
    ("after", "told"),
    [
        ("Tell us before you take it if penicillin has ever made you ill.", True),
        ("Do not drink alcohol with it.", True),
        ("对青霉素过敏的人服用前必须告诉医生。", True),  # another medicine's name, for its allergy
        ("Take it with food.", False),
        ("Do not take more than 4 g a day.", False),  # no number is added to the order
    ],
)
def test_a_warning_right_after_a_definition_is_quoted_with_it(after: str, told: bool) -> None:
    piece = evidence("1", f"Amoxicillin is an antibiotic. {after}", "Antibiotics")
    texts = [one.text for one in definition_of(("amoxicillin",), (piece,))]
    assert texts == ["Amoxicillin is an antibiotic.", *([after] if told else [])]


@pytest.mark.parametrize(
    ("sentence", "names", "defined"),
    [
        ("An anticoagulant is a medicine that makes blood clot more slowly.", ["anticoagulant"], True),
        ("Furosemide (a water tablet) is a medicine.", ["Lasix", "furosemide"], True),
        ("The INR is a blood test that says how long blood takes to clot.", ["INR"], True),
        ("Aspirin in a low dose keeps blood platelets from sticking together.", ["aspirin"], True),
        ("小剂量阿司匹林能防止血小板聚在一起。", ["阿司匹林"], True),
        ("Furosemide: a water tablet.", ["furosemide"], True),
        ("Furosemide - a water tablet.", ["furosemide"], True),
        ("Lisinopril is a tablet for high blood pressure.", ["ramipril", "tablet"], False),
        ("Tell us before you take amoxicillin.", ["amoxicillin"], False),
        ("A corticosteroid is a medicine that calms inflammation.", ["prednisolone"], False),
        ("Amoxicillin clavulanate is a combination.", ["amoxicillin"], False),
        ("Warfarin is not suitable in pregnancy.", ["warfarin"], False),
        ("Metformin is the first choice; start with 500 mg a day.", ["metformin"], False),
        ("Furosemide: take in the morning.", ["furosemide"], False),
        ("华法林是否适合您，请问医生。", ["华法林"], False),
        ("服用华法林时是需要化验的。", ["华法林"], False),
    ],
)
def test_a_definition_begins_with_the_very_term_and_says_what_it_is(
    sentence: str, names: list[str], defined: bool
) -> None:
    assert defines(sentence, names) is defined


@pytest.mark.parametrize(
    ("text", "headings", "defined"),
    [
        ("Makes blood take longer to clot.", ("Words", "Aspirin"), True),
        ("75 mg a day.", ("Words", "Aspirin"), False),  # a list of doses
        ("Makes blood take longer to clot.", ("Words", "Ibuprofen"), False),
        ("For demonstration, not for clinical use.", ("Aspirin",), False),  # the title
        *(("Thins the blood.", ("Words", heading), True) for heading in
          ("Antiplatelet (thinner, aspirin)", "Aspirin – a tablet", "Aspirin; clopidogrel", "Disprin or aspirin")),
        ("An antiplatelet (aspirin) thins the blood.", ("Words", "Antiplatelet (aspirin)"), True),
        ("An antiplatelet medicine thins the blood.", ("Words", "Antiplatelet (aspirin, clopidogrel)"), True),
        ("Clopidogrel thins the blood.", ("Words", "Clopidogrel (aspirin)"), False),  # another medicine
    ],
)  # fmt: skip
def test_what_stands_under_a_heading_that_gives_the_name_defines_it(
    text: str, headings: tuple[str, ...], defined: bool
) -> None:
    piece = evidence("1", text, headings[0])
    piece = replace(piece, passage=replace(piece.passage, headings=headings))
    assert bool(definition_of(("aspirin",), (piece,))) is defined


def test_a_row_of_a_glossary_defines_its_term() -> None:
    rows = "Term: Furosemide; Meaning: a water tablet\nTerm: INR; Meaning: how long blood takes to clot"
    glossary = evidence("1", rows, "Words")
    glossary = replace(glossary, passage=replace(glossary.passage, table=True))
    assert [one.text for one in definition_of(("furosemide",), (glossary,))] == [rows.splitlines()[0]]
    assert definition_of(("warfarin",), (glossary,)) == ()
    doses = evidence("2", "Medicine: Furosemide; Dose: 40 mg", "Doses")
    assert definition_of(("furosemide",), (replace(doses, passage=replace(doses.passage, table=True)),)) == ()


def test_terms_are_medicines_and_known_names_exactly_as_written() -> None:
    order = "Start Lasix 40 mg; chest x-ray. Co-amoxiclav 625 mg, no chest pain"
    medical_terms = terms(order, {"chest x-ray", "chest"}.__contains__)
    assert [(term.text, term.kind) for term in medical_terms] == [
        ("Lasix", "medicine"), ("chest x-ray", "term"), ("Co-amoxiclav", "medicine"), ("chest", "term"),
    ]  # fmt: skip
    assert all(order[term.start : term.end] == term.text for term in medical_terms)
    assert [term.text for term in terms("停用阿司匹林，复查血常规", {"血常规"}.__contains__)] == ["阿司匹林", "血常规"]


def test_an_amount_is_no_term() -> None:
    task = OrderInput("Amoxicillin 500 mg PO 5/7")
    reply = {"terms": ["Amoxicillin", "500 mg", "PO", "5/7"]}
    assert [term.text for term in perform(MEDICAL_TERMS, task, reply)] == ["Amoxicillin", "PO"]
