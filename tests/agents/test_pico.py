"""The PICO question by rules, and what is searched for it: written questions, English and Chinese."""

from __future__ import annotations

import pytest

from localmed.agents.pico_rules import by_labels, pico, searched
from localmed.agents.practice import Pico, PicoInput
from localmed.domain.patient import PatientRecord

RECORD = PatientRecord(age=58, sex="female", problems=("type 2 diabetes", "CKD stage 4", "gout", "asthma"))
CHINESE = PatientRecord(language="zh", age=68, sex="female", problems=("高血压10年", "2型糖尿病"))

WRITTEN = [
    # question, population, intervention, comparison, outcome
    ("In adults with type 2 diabetes and CKD, does empagliflozin compared with placebo reduce heart failure admission?",
     "adults with type 2 diabetes and CKD", "empagliflozin", "placebo", "reduce heart failure admission"),
    ("Is apixaban better than warfarin for stroke prevention in patients with atrial fibrillation?",
     "patients with atrial fibrillation", "apixaban", "warfarin", "for stroke prevention"),
    ("Should we use warfarin or apixaban in a 79-year-old man with atrial fibrillation?",
     "79-year-old man with atrial fibrillation", "warfarin", "apixaban", ""),
    ("Does lowering blood pressure reduce cardiovascular events?", "", "lowering blood pressure", "",
     "reduce cardiovascular events"),
    ("What is the blood pressure target for most adults with hypertension?",
     "most adults with hypertension", "blood pressure target", "", ""),
    ("Do statins prevent heart attack in people over 75?", "people over 75", "statins", "", "prevent heart attack"),
    ("In pregnancy, are ACE inhibitors safe?", "pregnancy", "ACE inhibitors", "", ""),
    ("Which dose of apixaban is right in atrial fibrillation?", "atrial fibrillation", "dose of apixaban", "", ""),
    ("Which antibiotic for community-acquired pneumonia?", "", "antibiotic for community-acquired pneumonia", "", ""),
    ("Is amoxicillin as effective as doxycycline in adults with pneumonia?",
     "adults with pneumonia", "amoxicillin", "doxycycline", ""),
    ("For children with fever, should ibuprofen be given instead of paracetamol?",
     "children with fever", "ibuprofen", "paracetamol", ""),
    ("What is the effect on mortality of early antibiotics in patients with sepsis?",
     "patients with sepsis", "", "", "effect on mortality of early antibiotics"),
    ("Pulmonary rehabilitation versus usual care in people with COPD", "people with COPD",
     "Pulmonary rehabilitation", "usual care", ""),
    ("高血压患者使用氨氯地平与缬沙坦相比能否降低脑卒中风险？", "高血压患者", "氨氯地平", "缬沙坦", "降低脑卒中风险"),
    ("2型糖尿病合并慢性肾病患者，恩格列净联合二甲双胍能减少心衰住院吗？",
     "2型糖尿病合并慢性肾病患者", "恩格列净联合二甲双胍", "", "减少心衰住院"),
    ("妊娠期妇女能否使用普利类药物？", "妊娠期妇女", "普利类药物", "", ""),
    ("华法林还是达比加群？", "", "华法林", "达比加群", ""),
    ("脑梗死患者什么时候开始服用阿司匹林？", "脑梗死患者", "开始服用阿司匹林", "", ""),
    ("他汀能降低卒中风险吗？", "", "他汀", "", "降低卒中风险"),
    ("成人高血压的降压目标是多少？", "成人", "高血压的降压目标", "", ""),
    ("对于老年人，阿司匹林预防心梗吗？", "老年人", "阿司匹林", "", "预防心梗"),
]  # fmt: skip


@pytest.mark.parametrize(("question", "who", "what", "other", "why"), WRITTEN)
def test_elements(question: str, who: str, what: str, other: str, why: str) -> None:
    assert pico(PicoInput(question)) == Pico(who, what, other, why)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("P: adults with hypertension I: thiazide C: ACE inhibitor O: stroke",
         Pico("adults with hypertension", "thiazide", "ACE inhibitor", "stroke", True)),
        ("Population: children with asthma; Intervention: budesonide; Outcome: exacerbations",
         Pico("children with asthma", "budesonide", "", "exacerbations", True)),
        ("人群：高血压成人；干预：氨氯地平；对照：安慰剂；结局：脑卒中",
         Pico("高血压成人", "氨氯地平", "安慰剂", "脑卒中", True)),
    ],
)  # fmt: skip
def test_a_question_that_labels_its_elements_is_taken_as_it_is(question: str, expected: Pico) -> None:
    assert by_labels(question) == expected
    assert pico(PicoInput(question, RECORD)) == expected, "the record adds nothing to what was written"


@pytest.mark.parametrize("question", ["What dose? I: 5 mg", "Is vitamin C: useful?", "", "？？", "P: I: C: O:"])
def test_what_is_not_labelled(question: str) -> None:
    assert by_labels(question) is None


def test_a_population_that_is_not_named_is_not_made_up_from_the_record() -> None:
    assert pico(PicoInput("Should metformin be continued?", RECORD)).population == ""
    assert pico(PicoInput("Do statins help in people over 75?", RECORD)).population == "people over 75"


@pytest.mark.parametrize(
    ("question", "record", "queries"),
    [
        ("Should metformin be continued in this patient?", RECORD,
         ("type 2 diabetes ckd stage 4 metformin", "metformin", "Should metformin be continued in this patient?")),
        ("Which antibiotic for pneumonia is best?", RECORD,
         ("antibiotic pneumonia", "Which antibiotic for pneumonia is best?")),
        ("P: adults with hypertension I: thiazide O: stroke", None,
         ("hypertension thiazide stroke", "P: adults with hypertension I: thiazide O: stroke")),
        ("该患者是否应继续使用二甲双胍？", CHINESE,
         ("高血压10年 2型糖尿病 二甲双胍", "二甲双胍", "该患者是否应继续使用二甲双胍？")),
        ("", None, ()),
    ],
)  # fmt: skip
def test_what_is_searched(question: str, record: PatientRecord | None, queries: tuple[str, ...]) -> None:
    assert searched(question, pico(PicoInput(question, record)), record) == queries


def test_of_a_record_only_problems_are_searched_for() -> None:
    record = PatientRecord(age=71, problems=("gout",), medications=("zyxwvol",), allergies=("zyxwvin",), text="Zyxwv")
    question = "Should she have allopurinol?"
    (first, *_) = searched(question, pico(PicoInput(question, record)), record)
    assert first == "gout allopurinol"
