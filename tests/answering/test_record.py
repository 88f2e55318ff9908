"""The names in a patient's record, and the lines of the library that name them."""

from __future__ import annotations

import time
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localmed.answering import record
from localmed.answering.record import Quote, names_in, things_of
from localmed.domain import Origin, Statement
from localmed.domain.patient import NameKind
from localmed.library.graph import Relation, Source
from localmed.safety.red_flags import red_flags
from localmed.text import medicines
from tests.values import passage

CASES = Path(__file__).parents[1] / "workflows" / "cases"
NOTES = [
    *tomllib.loads((CASES / "patient_notes.toml").read_text("utf-8"))["note"],
    *tomllib.loads((CASES / "prose_records.toml").read_text("utf-8"))["record"],
]


def of_kind(text: str, *kinds: NameKind) -> list[str]:
    return [text[one.start : one.end] for one in names_in(text) if one.kind in (kinds or tuple(NameKind))]


# --- the record -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", NOTES, ids=[case["text"][:30] for case in NOTES])
def test_every_medicine_and_allergy_of_a_note_is_found(case: dict[str, Any]) -> None:
    text = case["text"]
    taken = " ; ".join(of_kind(text, NameKind.MEDICINE)).lower()
    assert [name for name in case["medicines"] if name.lower() not in taken] == []
    allergies = " ; ".join(of_kind(text, NameKind.ALLERGY)).lower()
    known = [name for name in case["allergies"] if medicines.mentions(name)]
    assert [name for name in known if not any(one.written in allergies for one in medicines.mentions(name))] == []


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("K 5.9, BP 96/58, urea 8.9 mmol/L", ["K 5.9", "BP 96/58", "urea 8.9 mmol/L"]),
        ("potassium chloride 8 mmol bd", []),
        ("血钾5.6mmol/L，肌酐180μmol/L", ["血钾5.6mmol/L", "肌酐180μmol/L"]),
        ("lithium 400 mg nocte", []),
        ("INR 3.4 5.8", ["INR 3.4 5.8"]),
        ("INR 3.4 (10/10) -> 5.8 (today). eGFR 42 (Sept) now 26", ["INR 3.4 (10/10) -> 5.8", "eGFR 42 (Sept) now 26"]),
        ("BP lying 118/62, standing 92/50", ["BP lying 118/62, standing 92/50"]),
        ("K 4.1, Na 136, CRP 244", ["K 4.1", "Na 136"]),
        ("K 5.9 (H) 3.5-5.1", ["K 5.9"]),
        ("INR 2.4, 5 mg tonight", ["INR 2.4"]),
        ("Call if K above 6.5. K+ 6.9 mmol/L today.", ["K above 6.5", "K+ 6.9 mmol/L"]),
        ("BP 90/60 today, 45 kg", ["BP 90/60"]),
        ("血钾 5.2，今晨 6.7 mmol/L", ["血钾 5.2，今晨 6.7"]),
    ],
)
def test_a_value_is_one_name_with_its_number_and_a_dose_is_none(text: str, values: list[str]) -> None:
    assert of_kind(text, NameKind.VALUE) == values


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("PMH: asthma, T2DM. No diabetes.", ["asthma", "T2DM"]),
        ("FH: mother has AF", []),
        ("否认糖尿病，有高血压", ["高血压"]),
        ("32 weeks pregnant", ["pregnant"]),
        ("G2 P1, 27+4 weeks", ["27+4 weeks"]),
        ("PMH: COPD, epilepsy. Lives with wife.", ["COPD", "epilepsy"]),
        ("Pregnancy test negative", []),
        ("其母高血压；糖尿病5年", ["糖尿病"]),
        ("Allergies: none", []),
    ],
)
def test_a_condition_that_is_denied_or_of_a_relative_is_no_name(text: str, conditions: list[str]) -> None:
    assert of_kind(text, NameKind.CONDITION) == conditions


@pytest.mark.parametrize(
    ("text", "allergens"),
    [
        ("Allergies: penicillin (rash), codeine", ["penicillin", "codeine"]),
        ("ALLERGIES\n- penicillin\n- co-trimoxazole\n\nDH: ramipril", ["penicillin", "co-trimoxazole"]),
        ("ALLERGIES:\n penicillin\nDrug history: ramipril", ["penicillin"]),
        ("On warfarin, allergic to penicillin", ["penicillin"]),
        ("Penicillin allergy. Takes ramipril", ["Penicillin"]),
        ("Rash with amoxicillin in 2019", ["amoxicillin"]),
        ("青霉素皮试阳性，口服华法林", ["青霉素"]),
        ("过敏史：青霉素皮试阳性，头孢类药物曾出现皮疹", ["青霉素", "头孢类"]),
        ("自述吃头孢后起过风团，其妻对青霉素过敏", ["头孢", "青霉素"]),
        ("No allergy to penicillin", []),
        ("NKDA. Takes penicillin V", []),
        ("Allergies: nil. DH: warfarin", []),
        ("过敏史：无。用药史：华法林", []),
        ("Her mother is allergic to penicillin", []),
        (
            "ALLERGIES: Penicillin - anaphylaxis\n   Clarithromycin - vomiting only\nDH: ramipril",
            ["Penicillin", "Clarithromycin"],
        ),
        ("Penicillin: anaphylaxis 2011 (amoxicillin, IM adrenaline x2)", ["Penicillin", "amoxicillin"]),
        ("Allergy - ramipril (cough)", ["ramipril"]),
        ("E. coli sensitive to trimethoprim", []),
        ("Allergies: none. On warfarin and amiodarone.", []),
        ("ADRs: penicillin, codeine", ["penicillin", "codeine"]),
        ("FH nil. Allergies: penicillin. Takes warfarin", ["penicillin"]),
        ("Allergies: penicillin\nWarfarin 3 mg nocte", ["penicillin"]),
        ("Allergies: penicillin\nMeds\nwarfarin", ["penicillin"]),
        ("Penicillin allergy denied", []),
        ("Allergies: none, except penicillin", ["penicillin"]),
    ],
)
def test_a_medicine_beside_a_word_for_an_allergy_is_an_allergy(text: str, allergens: list[str]) -> None:
    assert of_kind(text, NameKind.ALLERGY) == allergens


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ALLERGIES: Penicillin - rash (amoxicillin). Co-trimoxazole - rash. Latex.\nDH: ramipril",
         ["ALLERGIES: Penicillin - rash (amoxicillin). Co-trimoxazole - rash. Latex."]),
        ("PMH: asthma. Allergies: latex. DH: ramipril", ["Allergies: latex"]),
        ("Allergies:\n- Penicillin\n- plasters\nMeds: ramipril. Rash after codeine.",
         ["- Penicillin - plasters", "Rash after codeine"]),
        ("过敏史：青霉素过敏；乳胶。\n口服华法林", ["过敏史：青霉素过敏；乳胶。"]),
        ("Takes ramipril", []),
    ],
)  # fmt: skip
def test_what_a_record_says_of_allergies_is_quoted_to_the_end_of_its_line(text: str, said: list[str]) -> None:
    assert [*record.said_of_allergies(text)] == said


def test_a_family_history_names_nothing() -> None:
    assert of_kind("FH: mother T2DM on metformin\nDH: ramipril") == ["ramipril"]
    assert of_kind("家族史：父亲服用华法林。用药史：氨氯地平") == ["氨氯地平"]


@pytest.mark.parametrize(
    ("text", "child"),
    [
        ("6 y boy", True),
        ("Age: 14", True),
        ("6岁男孩", True),
        ("A baby with fever", True),
        ("73 y. Two children", False),
        ("Seen today", False),
    ],
)
def test_a_child_is_told_by_age_else_by_words(text: str, child: bool) -> None:
    assert record.speaks_of_a_child(text) is child


def test_a_measure_that_is_named_twice_has_both_values() -> None:
    text = "baseline creatinine 220. Today creat 268"
    (thing,) = things_of(text, names_in(text))
    assert thing.words == "creatinine 220; creat 268"


def test_a_medicine_of_a_denied_allergy_is_no_name() -> None:
    assert of_kind("否认磺胺过敏。口服华法林") == ["华法林"]
    assert of_kind("Penicillin allergy denied. Takes warfarin") == ["warfarin"]
    assert of_kind("Allergies: penicillin (lip swelling, given adrenaline)") == ["penicillin"], (
        "nor one that treated it"
    )


def test_a_dot_between_digits_is_a_point() -> None:
    (thing,) = things_of("INR 6·8", names_in("INR 6·8"))
    assert (thing.words, thing.values) == ("INR 6·8", ("INR 6.8",))


@pytest.mark.parametrize("text", ["Takes warfarin and is fine, ", "K 5.9 ", "allergic to penicillin ", "FH: a. "])
def test_a_long_record_on_one_line_is_read_in_time_that_grows_with_it(text: str) -> None:
    def taken(length: int) -> float:
        start = time.process_time()
        names_in((text * length)[:length])
        return time.process_time() - start

    taken(500)
    assert taken(20_000) < 60 * taken(2_000) + 0.5, "quadratic is 100 times"


def test_a_class_counts_and_a_word_for_every_antibiotic_does_not() -> None:
    text = "Takes a statin and an antibiotic"
    assert of_kind(text) == ["statin"]


def test_an_adverse_drug_reaction_is_no_adrenaline() -> None:
    assert of_kind("ADR noted in 2011, takes ramipril") == ["ramipril"]


# --- the library ------------------------------------------------------------------------------------------------------


def quote(text: str, title: str = "Formulary", table: bool = False) -> Quote:
    return Quote(text, Statement(text, (), Origin.EXTRACTIVE), replace(passage(text, title), table=table))


def together(text: str, *lines: Quote, asked: str = "", near: str = "") -> dict[str, tuple[tuple[str, ...], list[str]]]:
    """By medicine of a record ``text``, and asked about: what is named with it, and the lines."""
    own, of_question = things_of(text, names_in(text)), things_of(asked, names_in(asked))
    children = record.speaks_of_a_child(text)
    found = record.together(own, of_question, lines, {near}, "en" if text.isascii() else "zh", children)
    return {part.words: (part.named, [one.text for one in part.statements]) for part in found}


@pytest.mark.parametrize(
    ("line", "title", "named"),
    [
        ("Metformin: stop if eGFR is below 30.", "Formulary", ("eGFR 28",)),
        ("Stop it if eGFR is below 30.", "Metformin", ("eGFR 28",)),  # by the heading
        ("Metformin is taken with food.", "Formulary", None),
        ("Stop insulin if eGFR is below 30.", "Metformin", None),  # names another medicine itself
        ("eGFR below 30 is severe.", "Kidneys", None),
        ("Biguanides need a normal eGFR.", "Formulary", ("eGFR 28",)),
    ],
)
def test_a_line_counts_that_names_a_medicine_of_the_record_and_something_else(
    line: str, title: str, named: tuple[str, ...] | None
) -> None:
    found = together("Metformin 1 g bd\neGFR 28", quote(line, title))
    assert found == {"Metformin": (named, [line]) if named else ((), [])}


def test_what_the_question_names_counts_too_and_what_stands_in_a_section_on_it() -> None:
    line = "Clarithromycin is not given with simvastatin."
    assert together("simvastatin 40 mg", quote(line)) == {"simvastatin": ((), [])}
    found = together("simvastatin 40 mg", quote(line), asked="Clarithromycin?")
    assert found["simvastatin"] == (("Clarithromycin",), [line])
    assert found["Clarithromycin"] == (("simvastatin",), [line]), "it has no other line"
    contrast = "Hold metformin for 48 hours."
    assert together("metformin 1 g", quote(contrast), near=contrast) == {"metformin": ((), [contrast])}
    shown_below = together("metformin 1 g", quote(contrast), near=contrast, asked="Metformin and contrast?")
    assert shown_below == {"metformin": ((), [])}


def test_medicines_of_one_class_are_not_two() -> None:
    line = quote("An ACE inhibitor lowers blood pressure.")
    assert together("ramipril 5 mg, lisinopril 5 mg", line) == {"ramipril": ((), []), "lisinopril": ((), [])}


def test_a_row_on_a_medicine_of_nobody_is_left_out_and_the_own_one_stands_first() -> None:
    row = quote("Medicine: Amiodarone; Notes: raises the INR with warfarin", table=True)
    own = quote("Medicine: Warfarin; Notes: check the INR", table=True)
    warning = quote("Do not give warfarin if the INR is above 8.")
    assert together("warfarin, INR 5.6", row, warning, own) == {"warfarin": (("INR 5.6",), [own.text, warning.text])}


def test_a_line_is_told_once_and_of_another_language_only_where_there_is_none() -> None:
    both = quote("Ramipril with spironolactone raises potassium.")
    own = quote("Medicine: Spironolactone; Notes: check potassium", table=True)
    assert together("ramipril, spironolactone, K 6.1", both, own) == {
        "ramipril": (("spironolactone", "K 6.1"), [both.text]),
        "spironolactone": (("K 6.1",), [own.text]),
    }
    assert together("ramipril, spironolactone, K 6.1", both)["spironolactone"][1] == [both.text], "it has no other line"
    chinese = quote("雷米普利可使血钾升高。")
    assert [*together("ramipril, K 6.1", both, chinese)["ramipril"][1]] == [both.text]
    warning = quote("血钾升高时停用雷米普利。")
    assert together("ramipril, K 6.1", chinese, warning)["ramipril"][1] == [warning.text], "others must warn"


def test_a_medicine_stands_with_its_own_row_in_any_language_and_with_no_childs() -> None:
    row = quote("Medicine: Ibuprofen; Dose: 400 mg", table=True)
    childs = quote("药物：布洛芬；每次剂量：每公斤体重5至10毫克", "儿童发热", table=True)
    assert together("76岁，布洛芬，体重62kg", row, childs) == {"布洛芬": ((), [row.text])}
    assert together("6岁，布洛芬，体重20kg", row, childs)["布洛芬"][1] == [childs.text, row.text]


def test_a_medicine_that_is_asked_about_stands_with_what_its_lines_say_of_the_record() -> None:
    row = quote("Medicine: Doxycycline; Notes: avoid in pregnancy", table=True)
    other = quote("Medicine: Doxycycline; Form: capsule", table=True)
    assert together("27+4 weeks", row, other, asked="Doxycycline?") == {"Doxycycline": (("27+4 weeks",), [row.text])}
    assert together("Man of 40", row, asked="Doxycycline?") == {}


def test_rows_of_a_table_of_ranges_are_not_quoted_alone() -> None:
    row = quote("Creatinine clearance: 30 mL/min or more; Prophylaxis: Enoxaparin 40 mg", table=True)
    assert together("enoxaparin, CrCl 27 mL/min", row) == {"enoxaparin": ((), [])}


def test_a_word_for_very_many_medicines_counts_beside_another_medicine_alone() -> None:
    text = "warfarin, amoxicillin, pneumonia"
    raised = quote("Some antibiotics raise the INR with warfarin.")
    general = quote("Give the antibiotic for pneumonia within four hours.")
    assert together(text, raised, general) == {
        "warfarin": (("amoxicillin",), [raised.text]),
        "amoxicillin": (("warfarin",), [raised.text]),
    }


def test_what_sections_propose_is_looked_up_but_not_rows_of_a_list() -> None:
    lines = [quote("Give amoxicillin, or clarithromycin."), quote("Medicine: Heparin; Dose: 5000", table=True)]
    known = things_of("amoxicillin", names_in("amoxicillin"))
    assert [one.words for one in record.proposed(lines, known)] == ["clarithromycin"]


def test_reference_ranges_stand_beside_the_values_and_other_ranges_beside_dangerous_ones() -> None:
    phones = quote("The laboratory phones when potassium is 6.5 mmol/L or higher.")
    reference = quote("The reference range of potassium is 3.5 to 5.0 mmol/L.")
    score = quote("CURB-65 counts a urea above 7 mmol/L and a systolic blood pressure below 90 mmHg.")
    medicine = quote("Stop ramipril if potassium is above 6.0 mmol/L.")
    lines = (phones, reference, score, medicine)

    def told(text: str) -> list[tuple[tuple[str, ...], list[str], bool]]:
        found = record.ranges(things_of(text, names_in(text)), lines, "en", lambda words: bool(red_flags(words)))
        return [(part.words, [one.text for one in part.statements], part.urgent) for part in found]

    assert told("K 5.4, BP 96/58, urea 8.9 mmol/L") == [(("K 5.4",), [reference.text], False)]
    assert told("K 6.7") == [(("K 6.7",), [phones.text, reference.text], True)]
    assert told("K 5.2 on admission, 6.7 this morning") == [
        (("K 5.2 on admission, 6.7",), [phones.text, reference.text], True)
    ]


def test_of_a_low_glucose_the_line_that_holds_it_is_told_and_none_of_a_high_one() -> None:
    recovered = quote("When glucose is above 4.0 mmol/L give a biscuit.")
    treat = quote("Treat a glucose below 4.0 mmol/L as hypoglycaemia.")
    for text, told in (("CBG 3.1 mmol/L", [[treat.text]]), ("glucose 11.6 mmol/L", [])):
        found = record.ranges(things_of(text, names_in(text)), (recovered, treat), "en", lambda it: "3.1" in it)
        assert [[one.text for one in part.statements] for part in found] == told


ROW = "Medicine: Ibuprofen; Renal caution: Avoid if eGFR below 30; Notes: Avoid with peptic ulcer or warfarin"


@pytest.mark.parametrize(
    ("text", "asked", "told"),
    [
        ("warfarin, ibuprofen 400 mg", "", {"ibuprofen": ("warfarin",)}),
        ("warfarin", "ibuprofen?", {"ibuprofen": ("warfarin",)}),
        ("PMH: peptic ulcer. Ibuprofen 400 mg", "", {"Ibuprofen": ("peptic ulcer",)}),
        ("Ibuprofen 400 mg, eGFR 24", "", {"Ibuprofen": ("eGFR 24",)}),
        ("Ibuprofen 400 mg, eGFR 84", "", {}),
        ("Ibuprofen 400 mg", "", {}),
        ("warfarin", "", {}),
    ],
)
def test_a_row_that_warns_of_a_medicine_and_names_something_else_is_told(
    text: str, asked: str, told: dict[str, tuple[str, ...]]
) -> None:
    other = quote("Medicine: Sertraline; Renal caution: avoid below 30; Notes: Take with food", table=True)
    own, of_question = things_of(text, names_in(text)), things_of(asked, names_in(asked))
    found = [*record.pairs(own, of_question, (quote(ROW, table=True), other), "en")]
    assert {part.words: part.named for part in found} == told
    assert all(part.is_warning for part in found)


def test_of_a_sentence_that_warns_two_medicines_a_value_or_a_pregnancy_are_told() -> None:
    lines = [
        quote("Do not combine an ACE inhibitor with an ARB."),
        quote("If eGFR is below 30, stop metformin."),
        quote("Do not give ramipril in pregnancy."),
        quote("Stop ramipril in diarrhoea."),
        quote("Ramipril and losartan are tablets."),
    ]
    text = "27+4 weeks, diarrhoea. Ramipril, losartan, metformin. eGFR 24"
    lines.append(quote("孕期禁用雷米普利。"))
    lines.append(quote("Do not give an ACE inhibitor after angioedema from an ACE inhibitor."))
    found = [*record.pairs(things_of(text, names_in(text)), (), lines, "en")]
    assert {part.words: [one.text for one in part.statements] for part in found} == {
        "Ramipril": [lines[0].text, lines[2].text],
        "metformin": [lines[1].text],
    }


def warned(text: str, asked: str, *lines: str, language: str = "en", proposed: bool = False) -> list[tuple[str, ...]]:
    """The medicine of each warning, what it is named with, and the number of its lines."""
    of_question = [replace(it, is_proposed=proposed) for it in things_of(asked, names_in(asked))]
    found = record.pairs(things_of(text, names_in(text)), of_question, [quote(line) for line in lines], language)
    return [(part.words, *part.named, *part.further, str(len(part.statements))) for part in found]


def test_a_warning_is_told_in_another_language_than_the_questions_where_no_line_in_that_one_tells_it() -> None:
    english, chinese = "If eGFR is below 30, stop metformin.", "eGFR低于30时停用二甲双胍。"
    text = "metformin 1 g, eGFR 24"
    assert warned(text, "", english, language="zh") == [("metformin", "eGFR 24", "1")]
    assert warned(text, "", english, chinese, language="zh") == [("metformin", "eGFR 24", "1")]


def test_one_word_for_two_medicines_counts_where_it_stands_twice() -> None:
    twice = "Do not give an anticoagulant to a patient who takes an anticoagulant."
    assert warned("Warfarin 3 mg", "enoxaparin?", twice) == [("Warfarin", "enoxaparin", "1")]
    assert warned("Warfarin 3 mg", "enoxaparin?", "Do not give an anticoagulant in bleeding.") == []


def test_a_medicine_that_only_sections_propose_is_told_below_the_records_own() -> None:
    lines = ("Do not give clarithromycin with warfarin.", "Do not give clarithromycin if eGFR is below 30.")
    found = warned("Warfarin 3 mg, eGFR 24", "clarithromycin", *lines, proposed=True)
    assert found == [("Warfarin", "clarithromycin", "1")]
    both = warned("ramipril, losartan", "valsartan", "Never an ACE inhibitor with an ARB.", proposed=True)
    assert both == [("ramipril", "losartan", "1")], "the record's own tells it"


@pytest.mark.parametrize(
    ("text", "line", "named"),
    [
        ("Allergies: penicillin (rash)", "Amoxicillin is the first choice.", ("amoxicillin",)),
        ("青霉素过敏", "首选阿莫西林。", ("阿莫西林",)),
        ("Allergies: penicillin", "Doxycycline is the first choice.", ()),
        ("No allergy to penicillin", "Amoxicillin is the first choice.", ()),
    ],
)
def test_an_allergy_to_what_is_shown_is_told_with_both_quotations(text: str, line: str, named: tuple[str, ...]) -> None:
    found = [*record.allergies(text, (quote(line),), "en")]
    assert [(part.words, part.named, [one.text for one in part.statements]) for part in found] == (
        [(text, named, [line])] if named else []
    )


def test_an_allergy_to_a_medicine_that_the_record_lists_is_told() -> None:
    (part,) = record.allergies("Allergies: penicillin.\nDH: co-amoxiclav 625 mg", (), "en")
    assert (part.words, part.named, part.statements) == ("penicillin", ("co-amoxiclav",), ())


def relation(one: str, other: str, predicate: str = "interacts_with") -> Relation:
    return Relation("a", one, predicate, "b", other, "", Source("file", "onc", "ONC", "2020"))


def test_interactions_from_the_graph() -> None:
    text = "Coumadin 3 mg daily, metformin 500 mg"
    own = things_of(text, names_in(text))
    (part,) = record.interactions(own, "amiodarone", (relation("amiodarone", "warfarin"),))
    assert (part.words, part.named, part.source) == ("Coumadin", "amiodarone", "onc")
    assert list(record.interactions(own, "aspirin", (relation("aspirin", "ibuprofen"),))) == []
    assert list(record.interactions(own, "aspirin", (relation("aspirin", "warfarin", "similar_to"),))) == []
