"""Red flags by rule: what points to the Emergency Department, and what only reads like it."""

from __future__ import annotations

import pytest

from localmed.agents.red_flag_signs import FLAGS, NAMES, SIGNS
from localmed.agents.red_flags import red_flags

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
    ("My 6-week-old has a temperature of 38.5", "young_baby"),
    ("两个月的宝宝发烧39度", "young_baby"),
    ("This is the worst headache of my life", "headache"),
    ("突然头痛得像要炸开", "headache"),
    ("Fever and a stiff neck since last night", "headache"),
    ("I'm 12 weeks pregnant and bleeding", "pregnancy"),
    ("怀孕三个月下身流血", "pregnancy"),
    ("He fell off the roof", "injury"),
    ("被车撞了", "injury"),
    ("I suddenly can't see with my left eye", "sight"),
    ("My testicle hurts, sudden and severe pain in the testicle", "testicle"),
]
PLAIN = [
    "",
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
    "J'ai mal à la tête",
]


@pytest.mark.parametrize(("text", "name"), FLAGGED)
def test_flagged(text: str, name: str) -> None:
    found = {each.name: each for each in red_flags(text)}
    assert name in found
    assert 0 <= found[name].start < found[name].end <= len(text)


@pytest.mark.parametrize("text", PLAIN)
def test_not_flagged(text: str) -> None:
    assert red_flags(text) == ()


def test_only_what_follows_the_denial_is_denied() -> None:
    assert red_flags("No fever, but crushing chest pain") != ()
    assert red_flags("There is no relief from the crushing chest pain") != ()
    assert red_flags("没有发烧，但是突然胸口剧痛") != ()


def test_every_flag_has_a_name_in_both_languages_and_known_signs() -> None:
    assert set(NAMES) == set(FLAGS)
    assert all(set(each) == {"en", "zh"} for each in NAMES.values())
    assert {sign for sets in FLAGS.values() for signs in sets for sign in signs} <= set(SIGNS)


@pytest.mark.parametrize("text", ["a" * 60_000, "胸" * 20_000, "no " * 20_000, "chest pain, " * 5_000])
def test_thirty_pages_are_read_in_reasonable_time(text: str) -> None:
    red_flags(text)
