"""Abbreviations of orders: what each usually means, and that nothing is chosen where there is more than one meaning."""

from __future__ import annotations

import time

import pytest

from localmed.text.abbreviations import abbreviations, meaning, phrases, unexplained
from localmed.text.tables import table


def read(text: str, language: str = "en") -> dict[str, tuple[str, ...]]:
    matches = abbreviations(text, language)
    assert all(text[one.start : one.end] == one.written for one in matches)
    return {one.written: one.meanings for one in matches}


def test_usual_meanings() -> None:
    assert read("Amoxicillin 500 mg PO B.I.D., q4-6h prn.") == {
        "PO": ("by mouth",),
        "B.I.D.": ("twice a day",),
        "q4-6h": ("every 4 to 6 hours",),
        "prn": ("only when needed",),
    }
    assert read("0.5g tid 静滴，q8h", "zh") == {
        "tid": ("每日三次",),
        "静滴": ("通过输液滴入静脉",),
        "q8h": ("每8小时一次",),
    }
    assert read("10 U hs, 12u tds, U+E")["U"] == read("12u")["u"] != read("U+E")["U+E"]
    assert read("TTO, OPD, TCI").keys() == {"TTO", "OPD", "TCI"}
    assert read("Senna 2 tabs on, 10 mg on") == {"tabs": ("tablets",), "on": ("every night",)}
    assert read("IV/PO and f/u") == {
        "IV": ("into a vein",), "PO": ("by mouth",), "f/u": ("follow-up visit",),
    }  # fmt: skip
    assert (meaning("CBC", "en"), meaning("PT", "en")) == ("full blood count", "")


@pytest.mark.parametrize(
    ("line", "written", "meanings"),
    [
        ("D/C Foley", "D/C", ("stop", "leave the hospital")),
        ("Latanoprost 1 drop OD", "OD", ("once a day", "the right eye")),
        ("Insulin at HS", "HS", ("at bedtime", "half strength")),
        ("MS 4 mg IV", "MS", ("morphine sulfate", "magnesium sulfate", "multiple sclerosis")),
        ("Hold if SBP<100 or HR < 50", "SBP", ("systolic blood pressure, the upper number",)),
        ("Hold if SBP<100 or HR < 50", "HR", ("heart rate",)),
        ("Known SBP", "SBP", ("systolic blood pressure, the upper number", "an infection of the belly's lining")),
        ("Ascites, SBP 2020", "SBP",
         ("systolic blood pressure, the upper number", "an infection of the belly's lining")),
        ("Furosemide ½ tab om", "om", ("every morning",)),
        ("Insulin glargine 10 U hs", "hs", ("at bedtime",)),
        ("Morphine 5 mg im stat", "im", ("into a muscle",)),
        ("Dexamethasone 1 mg/ml od", "od", ("once a day", "the right eye")),
        ("Acetazolamide 250 mg for the eye od", "od", ("once a day", "the right eye")),
        ("Furosemide 40mg od", "od", ("once a day",)),
        ("Ramipril 5 mg OD", "OD", ("once a day",)),
        ("Furosemide 40 mg OM", "OM", ("every morning",)),
        ("Warfarin 3 mg PO ON, check INR", "ON", ("every night",)),
        ("Start 5 mg ON Monday", "ON", ("every night", "on")),
        ("Salbutamol MDI 2 puffs", "MDI", ("spray inhaler",)),
        ("Insulin MDI", "MDI", ("spray inhaler", "several insulin injections a day")),
        ("take one tablet om", "om", ("every morning", "infection of the middle ear", "bone infection")),
        ("Discuss with IM", "IM", ("into a muscle", "internal medicine")),
        ("Metformin 500 mg PO BD AC", "AC", ("before meals",)),
        ("Metformin 500 mg BD PC", "PC", ("after meals",)),
        ("Transfuse 2 units PC over 4 h", "PC", ("after meals", "packed red blood cells")),
        ("Digoxin 125 mcg PO alt die", "alt die", ("every other day",)),
        ("Digoxin 125 mcg PO Alt.  days", "Alt.  days", ("every other day",)),
        ("Furosemide 40 mg bis in die", "bis in die", ("twice a day",)),
        ("Prednisolone 30 mg c\u0304 food", "c\u0304 food", ("with food",)),
        ("R/V in clinic", "R/V", ("check-up by the team",)),
    ],
)  # fmt: skip
def test_all_meanings_are_given_in_capitals_and_where_an_order_writes_it_small(
    line: str, written: str, meanings: tuple[str, ...]
) -> None:
    assert read(line)[written] == meanings


@pytest.mark.parametrize(
    "line",
    ["im going home", "Hold the inhaler upright", "meet at the bus stop", "Max Miller", "Stage IV cancer",
     "She is on the top of it, or in a pet shop", "HOLD IT AND MS ON TOP",  # all capitals: capitals say nothing
     "Take 2 tablets on waking", "leave it on", "U/O and vitamin U",
     "5-FU and 5-ASA", "AC joint", "PC 12345", "alternate", "basic food",
     "CAP treated", "mastoid, tidy, bidder", "sit up and stop", "x3"],
)  # fmt: skip
def test_what_is_written_like_one_and_is_none_is_left(line: str) -> None:
    assert read(line) == {}


def test_a_roman_four_in_chinese_is_no_vein() -> None:
    assert read("心功能IV级，不要肌注", "zh") == {"肌注": ("注射入肌肉",)}


def test_the_exact_case_decides_where_it_tells() -> None:
    assert len(read("eGFR 30")["eGFR"]) == 1
    assert len(read("EGFR positive, not all capitals")["EGFR"]) == 2


def test_the_table_is_whole() -> None:
    data = table("abbreviations")
    for pair in (*data["usual"].values(), *data["chinese"].values()):
        assert len(pair) == 2
        assert all(pair)
    for key, pairs in data["several"].items():
        assert len(pairs) > 1, key
        assert key not in data["usual"]
        assert len({english for english, _ in pairs}) == len(pairs)
    known = {*data["usual"], *data["several"]}
    assert {*data["written"]["capitals"], *data["written"]["lower"]} <= known


@pytest.mark.parametrize("run", ["bid ", "静滴", "q", "q 8 ", "a/", "I.V.", "stage "])
def test_time_is_linear(run: str) -> None:
    began = time.process_time()
    abbreviations(run * (80_000 // len(run)), "en")
    assert time.process_time() - began < 5


def test_cap_in_capitals_is_no_capsule() -> None:
    assert meaning("cap", "en") == "capsule"
    assert meaning("CAP", "en") == "", "community-acquired pneumonia, mostly"
    for line, count in (("Amoxicillin cap 500mg", 1), ("500 mg cap", 1), ("cap refill 2 s", 0)):
        assert len([one for one in abbreviations(line, "en") if one.written == "cap"]) == count, line


@pytest.mark.parametrize(
    ("line", "english", "chinese"),
    [
        ("Prednisolone 30 mg PO x5/7", "for 5 days", "共5天"),
        ("Doxycycline 100 mg × 2/52", "for 2 weeks", "共2周"),
        ("Vitamin D x 1/12", "for 1 month", "共1个月"),
        ("Folic acid 5 mg for 6/52", "for 6 weeks", "共6周"),
        ("clinic in 1/52", "in 1 week", "1周后"),
        ("Amoxicillin 500 mg TDS 5/7", "for 5 days", "共5天"),
        ("Doxycycline 100 mg od for 7/7", "for 7 days", "共7天"),
        ("Prednisolone 30 mg mane 5/7", "for 5 days", "共5天"),
        ("Prednisolone 30 mg, 5/7 then stop", "for 5 days", "共5天"),
        ("Amoxicillin 500 mg od 3/7.", "for 3 days", "共3天"),
        ("INR check in 3/7", "in 3 days", "3天后"),
        ("Bloods in 6/12", "in 6 months", "6个月后"),
        ("OPD 6/52", "6 weeks", "6周"),
        ("Do not drive 4/52", "4 weeks", "4周"),
        ("Amoxicillin 500 mg tds x5d", "for 5 days", "共5天"),
        ("Amoxicillin 500 mg tds ×2 w", "for 2 weeks", "共2周"),
    ],
)
def test_how_long(line: str, english: str, chinese: str) -> None:
    for language, wording in (("en", english), ("zh", chinese)):
        assert wording in [one.meanings[0] for one in abbreviations(line, language)]


@pytest.mark.parametrize(
    "line",
    [
        "x5/70",
        "Rx5/7",
        "x5/7/2026",
        "x3",
        "BP 90/52",
        "for 1.5/52",
        "in 1-2/52",
        "复查 5/7",
    ],
)
def test_what_is_no_length_of_time(line: str) -> None:
    assert not [one for one in abbreviations(line, "en") if "/" in one.written]


@pytest.mark.parametrize(
    ("line", "meanings"),
    [
        ("for 5/7", ("5 days", "the date 5/7")),
        ("clinic on 5/7", ("5 days", "the date 5/7")),
        ("TDS until 5/7", ("5 days", "the date 5/7")),
        ("total 10/7", ("10 days", "the date 10/7")),
        ("Review 12/12", ("12 months", "the date 12/12")),
    ],
)
def test_a_length_of_time_that_may_be_a_date_is_not_decided(line: str, meanings: tuple[str, ...]) -> None:
    assert [one.meanings for one in abbreviations(line, "en") if "/" in one.written] == [meanings]


@pytest.mark.parametrize(
    ("line", "pieces"),
    [
        ("Metformin 1 g PO BD with meals", ()),
        ("Take one tablet twice a day with food", ()),
        ("Metformin 500 mg TDS, restart 48 h after the scan", ("restart 48 h after the scan",)),
        ("Metformin 500 mg BD, do not stop without advice", ("do not stop without advice",)),
        ("Metformin 500 mg, max 4 g/24 h", ("max 4 g/24 h",)),
        ("Metformin OD, target 2-3", ("target 2-3",)),
        ("Tiotropium 18 mcg OD", ("Tiotropium",)),  # an unexplained medicine, without its dose
        ("Metformin 1 g BD, # clinic, PT/zzq", ("# clinic", "zzq")),
        ("CBG QDS while on metformin", ("CBG", "while on")),
        ("二甲双胍缓释片 0.5g bid 餐中服", ("缓释",)),
        ("二甲双胍 0.5g 每日三次 饭后服用", ()),
        ("1月后心内科门诊复查肝肾功能、血脂，不适随诊", ("1月后心内科门诊复查肝肾功能", "血脂", "不适随诊")),
        ("低盐饮食，戒烟", ("低盐饮食", "戒烟")),
    ],
)
def test_what_a_line_says_besides_is_named(line: str, pieces: tuple[str, ...]) -> None:
    language = "en" if line.isascii() else "zh"
    known = [one.written for one in abbreviations(line, language) if one.written != "CBG"]
    assert unexplained(line, (*known, "Metformin", "metformin", "二甲双胍"), language) == pieces


def test_plain_words_of_another_language_are_not_plain() -> None:
    assert unexplained("Metformin with a spoon", ("Metformin",), "zh") == ("with a spoon",)
    assert unexplained("Metformin with meals", ("Metformin",), "zh") == (), "said in Chinese beside it"


@pytest.mark.parametrize(
    ("line", "language", "expected"),
    [
        ("Metformin 500 mg PO BD with meals", "zh", (("with meals", "随餐服用"),)),
        ("NBM from midnight for CT tomorrow", "zh", (("from midnight", "从午夜起"), ("tomorrow", "明天"))),
        ("阿司匹林 100mg 口服 餐后", "en", (("口服", "by mouth"), ("餐后", "after meals"))),
        ("Metformin 500 mg with meals", "en", ()),
        ("Do not take with food", "zh", ()),  # what it denies is left to the ward
        ("Stop warfarin today", "zh", ()),
        ("Omit tonight", "zh", ()),
        ("no more than twice a day", "zh", ()),
        ("二甲双胍 早餐前", "en", ()),
    ],
)
def test_plain_phrases_are_told_to_a_reader_of_the_other_language(
    line: str, language: str, expected: tuple[tuple[str, str], ...]
) -> None:
    assert set(phrases(line, language)) == set(expected)


def test_a_letter_that_only_looks_alike_is_another_word() -> None:
    assert "alt die" in read("Digoxin alt die")
    assert not [name for name in read("Digoxin alt d\u0131e") if "alt" in name]
