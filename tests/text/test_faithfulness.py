"""What of an order must stand in its plain words: the rule finds a loss, and finds none where there is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localmed.text.faithfulness import added, facts, lost

SAME = [
    ("500 mg PO TID x 7 days", "500 mg by mouth three times a day for 7 days"),
    ("2 tabs q4-6h prn", "two tablets every 4 to 6 hours only when needed"),
    ("1,000 mg IV", "1000 mg into a vein"),
    ("NPO", "nothing to eat or drink"),
    ("Hold if SBP < 100", "pause it if the upper number is below 100"),
    ("no more than 3 doses/day", "at most 3 doses a day"),
    ("D/C aspirin", "stop aspirin"),
    ("0.5g 口服 一日三次 ×7天", "0.5克，口服，每天3次，共7天"),
    ("禁食8小时", "不吃东西8小时"),
    ("每次两片，每8小时一次", "每次2片，q8h"),
    ("停用阿司匹林", "停止用阿司匹林"),
    ("不得超过4次", "最多4次"),
]
LOST = [
    ("500 mg TID", "500 mg twice a day", "time: 3 a day"),
    ("500 mg", "50 mg", "number: 500 mg"),
    ("500 mg", "500 micrograms", "number: 500 mg"),
    ("500 mg x 7 days", "500 mg", "number: 7 day"),
    ("Do not take it with milk", "Take it with milk", "sense: not"),
    ("Hold if HR < 55", "Give it if the heart rate is below 55", "sense: hold"),
    ("HR < 55", "heart rate above 55", "sense: below"),
    ("Stop warfarin", "Take warfarin", "sense: stop"),
    ("5 mg IV", "5 mg by mouth", "way: vein"),
    ("5 mg prn", "5 mg", "time: when needed"),
    ("max 4 g", "4 g", "sense: at most"),
    ("not A and not B", "not A and B", "sense: not"),
    ("0.5g 一日三次", "0.5克，每天两次", "time: 3 a day"),
    ("勿沾水", "沾水", "sense: not"),
    ("禁食8小时", "不吃东西", "number: 8 hour"),
    ("暂停二甲双胍", "用二甲双胍", "sense: hold"),
    ("青霉素过敏", "青霉素", "sense: allergy"),
    ("left eye", "right eye", "sense: left"),
    ("1 gtt OS", "1 drop in the right eye", "sense: left"),
    ("右膝", "左膝", "sense: right"),
]


@pytest.mark.parametrize(("order", "restatement"), SAME)
def test_the_same_said_otherwise_survives(order: str, restatement: str) -> None:
    assert lost(order, restatement) == []
    assert lost(restatement, order) == []


@pytest.mark.parametrize(("order", "restatement", "what"), LOST)
def test_a_loss_is_found(order: str, restatement: str, what: str) -> None:
    assert what in lost(order, restatement)


@pytest.mark.parametrize(
    ("order", "restatement", "what"),
    [
        ("500 mg", "500 mg three times a day", "time: 3 a day"),
        ("Take it", "Do not take it", "sense: not"),
        ("500 mg", "500 mg for 7 days", "number: 7 day"),
        ("服用阿司匹林", "不要服用阿司匹林", "sense: not"),
    ],
)
def test_what_the_order_does_not_say_is_found(order: str, restatement: str, what: str) -> None:
    assert what in added(order, restatement)


def test_words_that_only_look_like_a_negation_are_none() -> None:
    for text in ("no. 3 dressing", "不适时复诊", "不良反应", "无菌敷料"):
        assert ("sense", "not") not in facts(text), text


@given(st.text(max_size=200))
def test_every_text_can_be_read_and_survives_itself(text: str) -> None:
    assert lost(text, text) == []
    assert added(text, text) == []


@given(st.integers(1, 9999), st.sampled_from(["mg", "mL", "units", "片", "天"]))
def test_another_number_is_always_a_loss(number: int, unit: str) -> None:
    assert lost(f"{number} {unit}", f"{number + 1} {unit}")
