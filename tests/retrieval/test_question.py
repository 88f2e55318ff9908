"""How a question is read: what it is searched for besides, and what it is not read as."""

from __future__ import annotations

import pytest

from localmed.domain.findings import ALL, Question, Reading
from localmed.retrieval.question import VERY_HIGH, read
from localmed.text.spelling import is_near


@pytest.mark.parametrize(
    ("typed", "written", "means"),
    [
        ("a K of 7.1, what now", "K of 7.1", "potassium 7.1 mmol/L, high potassium, hyperkalaemia"),
        ("血钾没回来，K 6.8 心电图高尖T", "K 6.8", "血钾 6.8 mmol/L, 高钾血症"),
        ("Na 118 and confused", "Na 118", "sodium 118 mmol/L, low sodium, hyponatraemia"),
        ("Mg 0.4 on the gas", "Mg 0.4", "magnesium 0.4 mmol/L, low magnesium, hypomagnesaemia"),
        ("K 4.1, what now", "K 4.1", "potassium 4.1 mmol/L"),
        ("血钾6.8怎么处理", "血钾6.8", "血钾 6.8 mmol/L, 高钾血症"),
        ("blood sugar 2.1", "blood sugar 2.1", "blood glucose 2.1 mmol/L, low blood glucose, hypoglycaemia"),
        ("INR 7.5, no bleeding", "INR 7.5", "INR 7.5, high INR"),
        ("How do I treat DKA", "DKA", "diabetic ketoacidosis"),
        ("does librium need halving", "librium", "chlordiazepoxide"),
        ("pt on AF ward", "AF", "atrial fibrillation"),
        ("hyperkalaemia treatment", "hyperkalaemia", "high potassium"),
        ("BM 3.2 and drowsy", "BM 3.2", "blood glucose 3.2 mmol/L, low blood glucose, hypoglycaemia"),
        ("gent levels for an elderly gent", "gent", "gentamicin"),
        ("房颤怎么处理", "房颤", "心房颤动"),
        ("C diff on the ward", "C diff", "Clostridioides difficile"),  # two words
        ("when is the f/u", "f/u", "follow-up"),
        ("今天FFP输多少", "FFP", "新鲜冰冻血浆"),  # letters in either case
        ("bp 210/120 no symptoms", "210/120", "very high blood pressure, hypertension, hypertensive emergency"),
        ("血压 80/50 怎么补液", "80/50", "低血压"),
    ],
)
def test_what_is_written_short_is_searched_for_in_full(typed: str, written: str, means: str) -> None:
    question = read(typed)
    assert (written, means) in [(one.written, one.means) for one in question.readings]
    assert means in question.further
    assert question.written_out.startswith(typed), "an expansion takes nothing's place"


def test_a_question_as_it_is_read() -> None:
    assert (
        read("pcm OD 12 g, iv fluids given").as_read
        == "paracetamol overdose 12 g, intravenous intravenous fluids given"
    )


@pytest.mark.parametrize(
    ("typed", "not_meant"),
    [
        ("vitamin K 2", "potassium"),
        ("give platelets 1", "platelets"),
        ("血小板 1 单位", "血小板"),
        ("Na 154 in the bag", "sodium"),
        ("sodium 0.9 %", "sodium"),
        ("vitamin K 10 mg by mouth", "potassium"),  # a dose, no result
        ("give 400 mg 3 times", "magnesium"),
        ("grade 4 ulcer", "creatinine"),
        ("as if she mi", "infarction"),  # in capitals only
        ("K 500", "potassium"),  # no such value
        ("no BM 3 days, what laxative", "glucose"),
        ("患者BM 2次/日", "血糖"),
        ("心房颤动怎么处理", "心房颤动 "),  # written out already
        ("输尿管结石怎么处理", "导尿管"),  # within another word
        ("hba1c多少算高", "血红蛋白"),
        ("bp 130/80, what next", "very high"),
        ("insulin 70/30 dose", "low blood pressure"),
        ("seen 12/10, bp fine", "low blood pressure"),
    ],
)
def test_what_is_something_else_is_left_alone(typed: str, not_meant: str) -> None:
    assert not [one for one in read(typed).readings if not_meant in one.means]


def test_a_reading_that_is_left_out_is_not_searched_for_and_the_others_are() -> None:
    typed = "a K of\n7.1 on librium in DKA"
    question = read(typed, left_out=("k of\r\n7.1", "DKA"))
    assert [one.left_out for one in question.readings] == [True, False, True]
    assert question.further == "chlordiazepoxide", "nothing shorter is read in place of what is left out"
    assert question.written_out == f"{typed} (chlordiazepoxide)"
    alone = read(typed, left_out=(ALL,))
    assert (len(alone.readings), alone.further, alone.written_out) == (3, "", "")


def test_a_typing_error_is_read_as_the_librarys_spelling() -> None:
    near = {"isolaton": "isolation"}
    question = read("toys in isolaton ok", near=lambda word: near.get(word, ""))
    assert question.readings == (Reading("isolaton", "isolation"),)


@pytest.mark.parametrize(
    ("typed", "means"),
    [
        ("Elliquis dose", "eliquis apixaban"),
        ("Eliqius几片", "eliquis 阿哌沙班"),
        ("Augmentn dose", "augmentin co amoxiclav"),
        ("prednislone", "prednisolone prednisone"),  # both are as near
        ("calcium gluconate dose", ""),
        ("hyperthyroidism", ""),
        ("breathing", ""),  # two errors from a brand
        ("amoxacillin", "amoxicillin amoxycillin"),  # though it ends as a name does
        ("gentamycin dose", "gentamicin"),
        ("azithromicine", ""),  # two errors
        ("lexane dose", "clexane enoxaparin"),  # without its first letter
    ],
)
def test_a_medicine_is_read_by_its_likely_name_and_never_as_another_one(typed: str, means: str) -> None:
    library = ("glucagon", "hypothyroidism", "penicillin", "amoxicillin")
    near = {"gluconate": "glucagon", "amoxacillin": "amoxicillin"}
    question = read(typed, near=lambda word: near.get(word) or next((it for it in library if is_near(word, it)), ""))
    assert question.further == means


@pytest.mark.parametrize("typed", ["he is starving", "patent ductus", "ext", "an hr ago", "1 hr 30 min", "said extra"])
def test_an_english_word_is_no_misspelt_other_one(typed: str) -> None:
    library = {"starving": "starting", "patent": "patient"}
    assert read(typed, near=lambda word: library.get(word, "")).readings == ()


@pytest.mark.parametrize(
    "typed", ["PR interval", "PT 18", "an OD of tablets", "seen in ED", "BM biopsy", "cap refill", "metro station"]
)
def test_letters_with_several_meanings_are_not_read(typed: str) -> None:
    assert read(typed).readings == ()


@pytest.mark.parametrize("typed", ["How is croup treated?", "糖化血红蛋白要空腹抽吗", "血压", "血压多少算高"])
def test_a_question_with_nothing_to_read_is_left_as_it_is(typed: str) -> None:
    assert read(typed) == Question(typed)
    assert read(typed).written_out == ""


def test_the_sites_own_terms_are_read_where_they_stand_alone() -> None:
    glossary = {"rapid team": ("medical emergency team", "快速反应小组"), "met": ("medical emergency team",)}
    assert read("call the rapid team", glossary).further == "medical emergency team"
    assert not read("metformin dose", glossary).readings, "no term within another word"


@pytest.mark.parametrize(
    ("typed", "called", "means"),
    [
        ("190/115 what now", VERY_HIGH["en"], ", ".join(VERY_HIGH["en"])),
        ("190/115 before thrombolysis", (), VERY_HIGH["en"][0]),
        ("溶栓前血压190/115", (), VERY_HIGH["zh"][0]),
    ],
)
def test_beside_a_condition_or_procedure_a_pressure_is_no_subject(
    typed: str, called: tuple[str, ...], means: str
) -> None:
    (pressure,) = (one for one in read(typed).readings if one.written == "190/115")
    assert (pressure.called, pressure.means) == (called, means)
