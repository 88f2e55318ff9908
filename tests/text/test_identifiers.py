"""What tells who a patient is, and what only looks so."""

from __future__ import annotations

import pytest

from localmed.text.identifiers import identifiers


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What dose of paracetamol for Mr John Smith, MRN 12345678?", {"John Smith", "12345678"}),
        ("MRN: A88-123, what dose?", {"A88-123"}),
        ("the patient Jane Roe has NHS number 943 476 5919", {"Jane Roe", "943 476 5919", "943"}),
        ("write to j.roe@example.org", {"j.roe@example.org"}),
        ("患者张三，男，45岁，住院号：8834521，用什么药？", {"张三", "8834521"}),
        ("患者欧阳小明（男）发热", {"欧阳小明"}),
        ("王建国先生的血压目标是多少？", {"王建国"}),
        ("手机13812345678，身份证11010519491231002X", {"13812345678", "11010519491231002X"}),
        ("李某某，女，70岁", {"李某某"}),
        ("DOB 12/03/1956, chest pain", {"12/03/1956"}),
        ("date of birth: 1956-03-12", {"1956-03-12"}),
        ("she was born on 3 May 1956", {"3 May 1956"}),
        ("born March 3, 1956", {"March 3, 1956"}),
        ("出生日期：1956年3月12日，咳嗽", {"1956年3月12日"}),
        ("Patient name: Maria Schmidt\nParacetamol 1 g PO", {"Maria Schmidt"}),
        ("PATIENT NAME: Schmidt, Maria", {"Schmidt, Maria"}),
        ("Pt: Maria Schmidt, enoxaparin 40 mg", {"Maria Schmidt"}),
        ("Name: Maria Schmidt\nAspirin 75 mg", {"Maria Schmidt"}),
        ("Patient Maria Schmidt, 56 y, for discharge", {"Maria Schmidt"}),
        ("姓名：王小明\n阿司匹林 100mg", {"王小明"}),
        ("患者姓名：王小明 性别：男", {"王小明"}),
    ],
)
def test_names_and_numbers_are_seen(text: str, words: set[str]) -> None:
    assert set(identifiers(text)) == words


@pytest.mark.parametrize(
    "text",
    [
        "What is Parkinson disease?", "a patient with Chronic Kidney Disease", "Patient Blood Management",
        "患者高血压，男，45岁", "病人黄疸，女", "患者白血病的治疗", "患者方便吗？", "患者马上转院", "叫做高血压的病",
        "何时使用抗生素？", "500 mg 3 times", "100 mg in 250 ml", "BNP 12345",
        "a condition called Kawasaki Disease", "what is called Stevens Johnson syndrome?",
        "patient Controlled Analgesia", "Patient Information Leaflet", "Drug name: Aspirin Tablets",
        "姓名不详", "Patient: aspirin 75 mg",
        "Name of the drug: Warfarin", "the patient Health Questionnaire", "since 2024-05-31",
        "born at 34 weeks", "children born before 2015", "seen on 12/03/2024", "born in 1956",
        "患者金黄色葡萄球菌感染", "5 000 000 units",
    ],
)  # fmt: skip
def test_what_is_no_identifier_stays(text: str) -> None:
    assert identifiers(text) == ()
