"""Red flags by rule: what points to the Emergency Department, and what only reads like it."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path

import pytest

from localmed.messages import catalogue
from localmed.safety.red_flags import fits, names, red_flags, specialties
from localmed.text.tables import table

FLAGGED = [
    ("Crushing pain in my chest and I can hardly breathe.", "chest_pain"),
    ("I don't know why my chest hurts and I can't breathe", "chest_pain"),
    ("chest pain and shortness of breath since this morning, I had the same last year", "chest_pain"),
    ("无明显诱因出现胸痛伴大汗", "chest_pain"),
    ("胸口像石头压着一样疼，喘不上气", "chest_pain"),
    ("His lips are blue and he is gasping", "breathing"),
    ("Dad's face is hanging on one side", "stroke"),
    ("她突然说话不清", "stroke"),
    ("我爸一只胳膊抬不起来", "stroke"),
    ("去年中风过，今天又说话不清", "stroke"),
    ("My mate collapsed and isn't waking up.", "unconscious"),
    ("怎么叫都叫不醒", "unconscious"),
    ("She is having a seizure", "fit"),
    ("孩子在抽搐", "fit"),
    ("The cut won't stop bleeding", "bleeding"),
    ("不停地吐血", "bleeding"),
    ("Her tongue is swelling after a bee sting", "allergy"),
    ("被蜜蜂蜇了以后嘴唇肿起来", "allergy"),
    ("He took a whole bottle of paracetamol", "poisoning"),
    ("孩子误吞了纽扣电池", "poisoning"),
    ("我喝农药了", "poisoning"),
    ("感冒又吃了好多布洛芬", "poisoning"),
    ("My 6-week-old has a temperature of 38.5", "young_baby"),
    ("两个月的宝宝发烧39度", "young_baby"),
    ("my baby of 6 weeks is hot and will not drink", "young_baby"),
    ("my 5 weeks old feels very hot", "young_baby"),
    ("baby 8 weeks old, not feeding since last night", "young_baby"),
    ("宝宝没满月，身上发烫", "young_baby"),
    ("还没满月的宝宝发烧39度", "young_baby"),
    ("baby 2 months temperature 38.5", "young_baby"),
    ("6 weeks baby temp 38", "young_baby"),
    ("my baby is 10 weeks and has 38.4 degrees", "young_baby"),
    ("two month old boy 38.2", "young_baby"),
    ("2月龄婴儿38.5℃", "young_baby"),
    ("宝宝2个月 体温38.5", "young_baby"),
    ("blood in my vomit", "bleeding"),
    ("there was blood every time I vomit", "bleeding"),
    ("passing black tar", "bleeding"),
    ("呕吐物里有血", "bleeding"),
    ("今天吐了好几口血", "bleeding"),
    ("我妈刚才吐了半碗血", "bleeding"),
    ("I threw up blood today", "bleeding"),
    ("he brought blood up twice", "bleeding"),
    ("解黑色的便", "bleeding"),
    ("This is the worst headache of my life", "headache"),
    ("突然头痛得像要炸开", "headache"),
    ("Fever and a stiff neck since last night", "meningitis"),
    ("I'm 12 weeks pregnant and bleeding", "pregnancy"),
    ("怀孕三个月下身流血", "pregnancy"),
    ("He fell off the roof", "injury"),
    ("被车撞了", "injury"),
    ("I suddenly can't see with my left eye", "eye"),
    ("My testicle hurts, sudden and severe pain in the testicle", "testicle"),
    ("vomiting blood and blood pressure low", "bleeding"),
    ("used the adrenaline pen and she is better now", "allergy"),
    ("打了一支肾上腺素笔，好一点了", "allergy"),
    ("I can't tell when my bladder is full, bad back since monday", "back"),
    ("on enoxaparin, the ball hit my temple, headache creeping up", "injury"),
    ("I have the tablets lined up in front of me", "suicide"),
    ("she was raped last night", "assault"),
    ("孩子被人侵犯了", "assault"),
    ("3 yr old fitting", "fit"),
    ("my kid is fitting", "fit"),
    ("小孩抽了怎么办", "fit"),
    ("my child went stiff and shook all over with a fever", "fit"),
    ("孩子发烧，全身发硬抖个不停", "fit"),
]
PLAIN = [
    "",
    "vomiting and blood pressure",
    "my hay fever tablets make me drowsy",
    "allergic rash from a nickel watch strap, no swelling, no wheeze",
    "spotting on the new pill, pregnancy test negative",
    "they wrote anaphylaxis to penicillin on my notes when i was a kid, want it tested",
    "血压药吃够90天了，来拿",
    "布洛芬一天最多吃多少",
    "孩子发烧39度，布洛芬吃多少？",
    "孩子咳嗽吃什么药好",
    "What happens if I take 30 mg of prednisolone?",
    "No chest pain or shortness of breath.",
    "She denies fever, chest pain or breathlessness.",
    "He has not had chest pain with sweating",
    "I had a stroke last year and my speech was slurred.",
    "I had chest pain with sweating two years ago, I feel fine",
    "My baby son is 8 years old and has a fever",
    "I get out of breath on the stairs",
    "A squeezing feeling in my chest when I walk uphill, it stops when I stand still.",
    "I lost my voice for three weeks",
    "I can't speak because of a sore throat",
    "My 9 year old has a fever",
    "baby 5 months temperature 38.5",
    "my 2 month old baby was born at 38 weeks, when are the vaccines",
    "2 month baby, head 38.5 cm",
    "bath water 38 degrees for my newborn",
    "black tar on my hands",
    "vomiting after meals, and I need a blood test",
    "宝宝12个月 体温38.5",
    "12个月宝宝发烧39度",
    "吐痰有血丝",
    "咳嗽，吐了一口血痰",
    "吐了两次，血压高",
    "threw up my blood pressure tablets",
    "my fingers went stiff and my hand is shaky",
    "手指僵硬，手抖",
    "我把他拉黑了",
    "I am pregnant and need a blood test",
    "无胸痛、气促",
    "否认胸痛，无呼吸困难",
    "去年晕倒过一次",
    "小时候有过惊厥",
    "嗓子哑了三个星期，说不出话",
    "车祸以后老做噩梦，一闭眼就是那个场面",
    "孩子发烧两天了",
    "爬坡的时候胸口发闷，停下来歇会儿就好",
    "怀孕五个月，想测血压",
    "patient has poorly fitting dentures",
    "pt needs IUD fitting, what analgesia",
    "小孩抽了血还要等多久",
    "孩子突然抽烟",
    "J'ai mal à la tête",
]


@pytest.mark.parametrize(("text", "name"), FLAGGED)
def test_flagged(text: str, name: str) -> None:
    assert name in red_flags(text)


@pytest.mark.parametrize("text", PLAIN)
def test_not_flagged(text: str) -> None:
    assert red_flags(text) == ()


def test_only_what_follows_the_denial_is_denied() -> None:
    assert red_flags("No fever, but crushing chest pain") != ()
    assert red_flags("No fever, crushing chest pain") != (), "a list that is denied ends in or"
    assert red_flags("There is no relief from the crushing chest pain") != ()
    assert red_flags("没有发烧，但是突然胸口剧痛") != ()


CASES = Path(__file__).parent / "cases"
EMERGENCIES = tomllib.loads((CASES / "emergencies.toml").read_text("utf-8"))
ORDINARY = tomllib.loads((CASES / "ordinary.toml").read_text("utf-8"))
DOSES = tomllib.loads((CASES / "doses.toml").read_text("utf-8"))["case"]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("half", ["developed", "held_back"])
def test_emergencies_in_patients_words(language: str, half: str) -> None:
    """Of each half at least 98 in 100; when the held-back half was first looked at they were 97.9 and 97.2."""
    wordings = [line for entry in EMERGENCIES.values() for line in entry[f"{language}_{half}"].split("\n") if line]
    assert len(EMERGENCIES) >= 40
    assert len(wordings) == 3 * len(EMERGENCIES)
    missed = [wording for wording in wordings if not red_flags(wording)]
    assert len(missed) <= 0.02 * len(wordings), missed


@pytest.mark.parametrize("entries", [
    (group, name) for group, lists in ORDINARY.items() for name in lists
], ids="-".join)  # fmt: skip
def test_ordinary_complaints_and_look_alikes(entries: tuple[str, str]) -> None:
    """At most one in ten; when the held-back halves were first looked at there was none."""
    texts = [line for line in ORDINARY[entries[0]][entries[1]].split("\n") if line]
    wrong = [text for text in texts if red_flags(text)]
    assert len(wrong) <= 0.02 * len(texts), wrong


def test_a_second_look() -> None:
    second = tomllib.loads((CASES / "second_look.toml").read_text("utf-8"))
    assert [text for text in second["emergencies"].splitlines() if not red_flags(text)] == []
    assert [text for text in second["ordinary"].splitlines() if red_flags(text)] == []


def test_the_departments_a_sign_belongs_to() -> None:
    stroke = red_flags("my face is drooping on one side")
    assert fits("Neurology and stroke unit", stroke)
    assert not fits("Mental Health", stroke)
    heart = red_flags("I think I am having a heart attack")
    assert fits("Cardiology", heart)
    assert not fits("Orthopaedics and fractures", heart)
    assert fits("神经内科与卒中单元", red_flags("她突然说话不清"))
    assert specialties((), "en") == ()


def test_an_overdose_of_any_amount_and_a_clot() -> None:
    assert red_flags("I took twenty paracetamol an hour ago") == ("poisoning",)
    for said in (
        "K 6.8 what to give",
        "potassium of 7.1",
        "BP 210/125",
        "lactate 4.5",
        "gcs 7",
        "血钾6.8怎么办",
        "K 2.2 weak",
        "Na 116",
        "BS 2.8",
        "pH 7.1",
        "血压210/120",
    ):
        assert red_flags(said) == ("critical_value",)
    for said in (
        "vitamin k 10 mg",
        "Which target for blood glucose in type 2 diabetes?",
        "potassium chloride 20 mmol",
        "K 5.7",
        "BP 150/90",
        "repeat lactate in 2 to 4 hours",
    ):
        assert red_flags(said) == ()
    assert red_flags("stroke, onset 3h ago, can we thrombolyse") == red_flags("急性脑梗 发病3小时") == ("stroke",)
    assert red_flags("septic shock, which fluid") == ("sepsis",)
    assert red_flags("had a stroke three years ago, takes aspirin") == ()
    assert "clot" in red_flags("a swollen calf and breathlessness")
    for said in (
        "My calf is swollen and hurts after a long flight",
        "One leg is swollen, warm and painful",
        "左小腿又肿又疼",
    ):
        assert red_flags(said) == ("leg_clot",)
    for said in (
        "I fell and my left leg is swollen and sore",
        "both ankles are swollen by evening",
        "小腿青筋鼓，站久了酸胀",
    ):
        assert red_flags(said) == ()
    assert not red_flags("新生儿一天喝奶240毫升"), "240 毫升 is no temperature"
    assert not red_flags("I take 500 mg of paracetamol twice a day")


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("lithium level 1.9", ()),  # no blood sugar
        ("nil by mouth with crushing chest pain", ("chest_pain",)),
        ("why not kill myself", ("suicide",)),
        ("my toddler has acid in his mouth", ("poisoning",)),
        ("acid comes up into my throat at night when I lie flat", ()),
        ("i took my folic acid", ()),
        ("he drank battery acid", ("poisoning",)),
        ("acid got in my eye", ("eye",)),
        ("INR 8.5 no bleeding", ("high_inr",)),
        ("INR 8.5. No bleeding", ("high_inr",)),
        ("INR 8.5 无出血", ("high_inr",)),
        ("INR 7.5 on warfarin not bleeding", ("high_inr",)),
        ("on warfarin, nil bleeding", ()),
        ("INR 7.5, not well, bleeding", ("bleeding",)),
        ("on warfarin, not stopping bleeding", ("bleeding",)),
        ("INR 8.5", ("high_inr",)),
        ("INR 8.5 and bleeding", ("bleeding",)),
        ("INR 9, no bleeding but black stools", ("bleeding", "high_inr")),
        ("no vitamin K given, INR 9, bleeding", ("bleeding",)),
        ("when can anaphylaxis pt go home", ()),
        ("how long to observe after anaphylaxis", ()),
        ("过敏性休克后多久可以出院", ()),
        ("anaphylaxis", ("allergy",)),
        ("anaphylaxis, when can he be discharged? he is wheezing", ("allergy",)),
        ("when they sent him home he had anaphylaxis", ("allergy",)),
    ],
)
def test_what_is_denied_or_over_elsewhere_in_the_text_is_no_flag(text: str, flags: tuple[str, ...]) -> None:
    assert red_flags(text) == flags


def test_the_table_is_whole() -> None:
    data = table("red_flags")
    known = set(data["signs"])
    combined = (one for combinations in data["flags"].values() for one in combinations)
    used = {sign.strip(" !") for one in combined for sign in one.split("+")}
    context = {entry["unless"] for entry in data["signs"].values() if "unless" in entry}
    assert used | context <= known
    assert not known - used - context, "signs that no flag uses"
    assert set(data["departments"]) <= set(names())
    assert {f"departments.flag.{name}" for name in names()} <= set(catalogue("en")), "a flag without words"
    assert all(set(entry) >= {"en", "zh"} for entry in data["signs"].values())


UNITS = ("a", "胸", "no ", "chest pain, ", "7", "1 ", "38.5 ", "no chest pain ", "没有胸痛", "了", ", i ",
         "took 20 pills ", "one week old ", "and now ", "痛突然", "can't breathe\u3000")  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.slow
def test_any_text_is_read_in_linear_time(unit: str) -> None:
    text = (unit * 80_000)[:80_000]
    started = time.process_time()
    red_flags(text)
    assert time.process_time() - started < 5, "a second or two alone; others may be running"


@pytest.mark.parametrize("case", DOSES, ids=[case["language"] for case in DOSES])
def test_a_question_about_a_dose_is_no_overdose(case: dict[str, list[str]]) -> None:
    wrong = [text for text in case["ordinary"] if red_flags(text)]
    missed = [text for text in case["overdose"] if "poisoning" not in red_flags(text)]
    assert len(wrong) <= 1, wrong
    assert len(missed) <= 2, missed


@pytest.mark.parametrize(
    ("typed", "flag"),
    [
        ("He is in anaphylaxis, how long do we observe", "allergy"),
        ("anaphylaxis, BP 70/30, how long to observe", "allergy"),
        ("过敏性休克抢救中，多久可以出院", "allergy"),
        ("INR 9 no external bleeding, terrible headache", "bleeding"),
        ("INR 7, no bleeding, hit his head", "bleeding"),
    ],
)
def test_what_happens_now_is_an_emergency_beside_a_quieter_word(typed: str, flag: str) -> None:
    assert flag in red_flags(typed)


@pytest.mark.parametrize(
    ("text", "flagged"),
    [
        ("胸口压着疼出冷汗，要不要打120", True),
        ("孩子抽搐了要不要打120", True),
        ("病人跌倒撞到头，在吃华法林，要不要做CT", True),
        ("孩子去年抽搐过，要不要打疫苗", False),
    ],
)
def test_whether_to_call_or_to_scan_is_no_general_question(text: str, flagged: bool) -> None:
    assert bool(red_flags(text)) is flagged
