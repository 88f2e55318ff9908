"""Numbers by what they mean: limits and ranges, values of one patient, numbers that belong together."""

from __future__ import annotations

from math import inf

import pytest

from localmed.domain import Message, Passage
from localmed.verification import bindings, comparison
from localmed.verification.comparison import fault
from localmed.verification.intervals import intervals
from localmed.verification.matching import window
from tests.values import passage

NEAR = 0.9  # likeness: whether a sentence rests on its source at all is measured elsewhere
TABLE = Passage(
    "p", "d", "c", "en", "", "Gout", ("Allopurinol",),
    "eGFR (ml/min/1.73 m²): 60 or above; Starting dose: 100 mg once a day\n"
    "eGFR (ml/min/1.73 m²): 30 to 59; Starting dose: 50 mg once a day", "0-9", table=True,
)  # fmt: skip
COLCHICINE = passage(
    "Give colchicine 500 micrograms twice a day. The total for one course must not exceed 6 mg. "
    "Avoid colchicine if the eGFR is below 10.",
    "Gout",
)
FEBUXOSTAT = passage("Start febuxostat 80 mg if the urate stays above target on allopurinol.", "Gout")
ZH_TABLE = Passage(
    "p", "d", "c", "zh", "", "新生儿黄疸", ("光疗界值",),
    "小时龄：48小时；低危（μmol/L）：257；高危（μmol/L）：188", "0-9", table=True,
)  # fmt: skip


LEVETIRACETAM = passage(
    "Load levetiracetam 60 mg/kg, maximum 4500 mg. Infuse phenytoin no faster than 50 mg/min. "
    "The two must not be combined with a carbapenem.",
    "Seizures",
)
ZINC = passage("6个月以下每次补50 mL，6个月至2岁补100 mL，2岁以上补150 mL。用量为75 mL/kg，每日三次。", "腹泻")
DEGREES = Passage(
    "p", "d", "c", "en", "", "Dehydration", ("Degrees",),
    "Degree: mild; Loss of weight: 3% to 5%; Behaviour: alert\n"
    "Degree: severe; Loss of weight: 10% or more; Behaviour: drowsy or unconscious", "0-9", table=True,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kind", "low", "high"),
    [
        ("must not exceed 6 mg", "mg", -inf, 6),
        ("no more than 6 mg", "mg", -inf, 6),
        ("do not give more than 6 mg", "mg", -inf, 6),
        ("at most 6 mg", "mg", -inf, 6),
        ("不超过6毫克", "mg", -inf, 6),
        ("5 or more", "", 5, inf),
        ("at least 5", "", 5, inf),
        ("not sooner than 12 hours", "hours", 12, inf),
        ("35周及以上", "hours", 35 * 168, inf),
        ("10 to 50", "", 10, 50),
        ("15 mL/min", "mL/min", 15, 15),
    ],
)
def test_a_limit_by_its_meaning(text: str, kind: str, low: float, high: float) -> None:
    (interval,) = intervals(text)
    assert (interval.kind, interval.low, interval.high) == (kind, low, high)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0.5 mg of adrenaline is given", [("mg", 0.5)]),
        ("2.5 mg daily", [("mg", 2.5)]),
        ("1.5 to 2 tablets", [("tablet", 1.5)]),
        ("2.3 Treatment takes 3 days", [("hours", 72.0)]),
        ("0.5 毫克肌内注射", [("mg", 0.5)]),
    ],
)
def test_an_amount_at_the_beginning_is_no_headings_number(text: str, numbers: list[tuple[str, float]]) -> None:
    assert [(number.kind, number.low) for number in intervals(text)] == numbers


@pytest.mark.parametrize(
    ("short", "spelt"), [("60 min", "1 hour"), ("48 h", "2 days"), ("14 d", "2 weeks"), ("24 h", "1 天")]
)
def test_times_are_read_by_their_signs_too(short: str, spelt: str) -> None:
    (mine,), (theirs,) = intervals(short), intervals(spelt)
    assert mine.meets(theirs)
    assert not mine.meets(intervals(short.replace("4", "5").replace("6", "5"))[0])


@pytest.mark.parametrize(
    ("text", "source", "expected"),
    [
        ("With an eGFR of 44, allopurinol starts at 50 mg once a day.", TABLE, None),
        ("With an eGFR of 44, allopurinol starts at 100 mg once a day.", TABLE, bindings.APART),
        ("With an eGFR of 44, allopurinol starts at 75 mg once a day.", TABLE, bindings.NUMBER),
        ("One course of colchicine may add up to at most 6 mg.", COLCHICINE, None),
        ("The usual course of colchicine is 6 mg.", COLCHICINE, comparison.LIMIT),
        ("Avoid colchicine if the eGFR is above 10.", COLCHICINE, comparison.SIDE),
        ("Colchicine is avoided at an eGFR of 8.", COLCHICINE, None),
        ("Febuxostat is started at 80 mg.", FEBUXOSTAT, comparison.OMITTED),
        ("If the urate stays above target febuxostat 80 mg is used.", FEBUXOSTAT, None),
        ("48小时龄低危儿的光疗界值为257 μmol/L。", ZH_TABLE, None),
        ("48小时龄高危儿的光疗界值为257 μmol/L。", ZH_TABLE, bindings.APART),
        ("48小时龄低危儿的光疗界值为257 mmol/L。", ZH_TABLE, bindings.UNIT),
        ("A patient of 60 kg is loaded with 3600 mg of levetiracetam.", LEVETIRACETAM, None),
        ("A patient of 60 kg is loaded with 3000 mg of levetiracetam.", LEVETIRACETAM, bindings.UNIT),
        ("A patient of 80 kg is loaded with 4800 mg of levetiracetam.", LEVETIRACETAM, bindings.NUMBER),
        ("Levetiracetam is loaded at 60 mg/kg (up to 4.5 g).", LEVETIRACETAM, None),
        ("Phenytoin is infused no faster than 50 mg/hour.", LEVETIRACETAM, bindings.UNIT),
        ("Phenytoin is infused at 50 mg/min at least.", LEVETIRACETAM, comparison.SIDE),
        ("2岁以上补100 mL。", ZINC, bindings.APART),
        ("2岁以上补150 mL。", ZINC, None),
        ("Severe dehydration means a loss of 3% to 5%.", DEGREES, bindings.APART),
        ("In mild dehydration the child is drowsy or unconscious.", DEGREES, bindings.APART),
    ],
)
def test_numbers_with_their_context(text: str, source: Passage, expected: Message | None) -> None:
    assert fault(text, window(text, [source]), NEAR) == expected


LINES = passage("Lorazepam is the first-line treatment of a prolonged seizure.", "Seizures")
DOSES = passage("The first dose of MMR vaccine is due at 12 months, the second dose at 4 years.", "Vaccines")
ZH_DOSE = passage("轮状病毒疫苗第一剂口服，出生后尽早接种。", "疫苗")


@pytest.mark.parametrize(
    ("text", "source", "expected"),
    [
        ("Lorazepam is the second-line treatment of a prolonged seizure.", LINES, bindings.NUMBER),
        ("A prolonged seizure is treated with lorazepam in the first line.", LINES, None),
        ("The second dose of MMR vaccine is due at 4 years.", DOSES, None),
        ("The third dose of MMR vaccine is due at 4 years.", DOSES, bindings.NUMBER),
        ("轮状病毒疫苗第二剂口服，出生后尽早接种。", ZH_DOSE, bindings.NUMBER),
        ("轮状病毒疫苗首剂口服，出生后尽早接种。", ZH_DOSE, None),
    ],
)
def test_an_ordinal_that_the_source_has_otherwise(text: str, source: Passage, expected: Message | None) -> None:
    assert fault(text, window(text, [source]), NEAR) == expected


def test_a_target_is_no_patients_value() -> None:
    source = passage("Keep a mean arterial pressure of 65 mmHg or more with noradrenaline.", "Sepsis")
    text = "Keep the mean arterial pressure at 130 mmHg with noradrenaline."
    assert fault(text, window(text, [source]), NEAR) == bindings.NUMBER


def test_numbers_of_the_question_are_known() -> None:
    source = passage("Avoid naproxen in kidney disease.", "Gout")
    text = "With a creatinine of 212 micromol/L naproxen is avoided."
    assert fault(text, window(text, [source]), NEAR) == bindings.NUMBER
    known = bindings.numbers_of(("Naproxen with a creatinine of 212 micromol/L?",))
    assert fault(text, window(text, [source]), NEAR, known) is None


LITHIUM = passage(
    "Lithium carbonate 400 mg at night is the usual start. Check sodium and kidney function before. Valproate is "
    "reserved for patients who cannot tolerate other mood stabilisers, because it harms the unborn child.",
    "Mania",
)
IRON = passage("使用强阿片类药物时应同时给予乳果糖预防便秘，腹泻者除外。恶心可用甲氧氯普胺，每日3次。", "镇痛")
SPARING = passage(
    "Methotrexate 15 mg once a week by mouth, raised to 25 mg. Never combine it with ciclosporin.", "Psoriasis"
)
THYROID = passage("妊娠期甲亢应停用碘剂，改用丙硫氧嘧啶。哺乳者可用甲巯咪唑；碘剂禁用。", "甲亢")


@pytest.mark.parametrize(
    ("text", "source", "expected"),
    [
        ("As it can harm an unborn child, lithium is kept for those who tolerate nothing else.", LITHIUM, True),
        ("As it can harm an unborn child, valproate is kept for those who tolerate nothing else.", LITHIUM, False),
        ("Lithium begins with 400 mg at night.", LITHIUM, False),
        ("Before lithium, sodium and the kidneys are checked.", LITHIUM, False),  # that sentence names no medicine
        ("用强阿片药的同时要用甲氧氯普胺防便秘，除非病人腹泻。", IRON, True),
        ("用强阿片药的同时要用乳果糖防便秘，除非病人腹泻。", IRON, False),
        ("恶心的病人可服甲氧氯普胺，一天三次。", IRON, False),
        ("Ciclosporin starts with 15 mg and goes up to 25 mg.", SPARING, True),
        ("Methotrexate starts with 15 mg and goes up to 25 mg.", SPARING, False),
        ("孕期甲亢改用甲巯咪唑，停用碘剂。", THYROID, True),
        ("孕期甲亢改用丙硫氧嘧啶，停用碘剂。", THYROID, False),
    ],
)
def test_what_the_source_says_of_another_medicine(text: str, source: Passage, expected: bool) -> None:
    assert bindings.nearer_medicine(text, window(text, [source])) is expected
    assert (fault(text, window(text, [source]), NEAR) == comparison.OWNER) is expected
