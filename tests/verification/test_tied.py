"""Whether a quotation can be tied to what is asked: what a document leaves out, names, and values of the medicine."""

from __future__ import annotations

from localmed.domain import Origin, Passage, Statement
from localmed.verification import tied
from localmed.verification.tied import Covers


def quotation(text: str) -> Statement:
    return Statement(text, (), Origin.EXTRACTIVE)


def passage(text: str) -> Passage:
    return Passage("p", "d", "c", "en", "", "Hyperkalaemia in adults", ("Scope",), text, "0-9")


def test_a_document_says_whom_it_is_for() -> None:
    covers = Covers.of([passage("This guideline is for adults. It does not cover pregnant women. Give calcium.")])
    assert covers.not_for == ("It does not cover pregnant women.",)
    assert covers.only_for == ("This guideline is for adults.",)


def test_whom_the_document_leaves_out_is_told() -> None:
    covers = Covers(("It does not cover children, pregnant women or patients with diabetic ketoacidosis.",))
    quoted, title = "Give 10 units of insulin.", "Hyperkalaemia in adults"
    assert tied.excluded("Pregnant, how much insulin?", covers, quoted, title) == ("pregnant",)
    assert tied.excluded("How much insulin in DKA?", covers, quoted, title) == ("dka",)
    assert not tied.excluded("How much insulin?", covers, quoted, title)
    assert not tied.excluded("Pregnant, what now?", covers, "Discuss pregnant women with the team.", title)


def test_a_name_that_nothing_quoted_has_makes_it_about_another_thing() -> None:
    assert tied.another("calcium after thyroidectomy?", ["thyroidectomy"]) == ("thyroidectomy",)
    assert tied.another("salbutamol dose for wheeze", ["wheeze"]) == ("wheeze",)
    assert tied.another("达比加群出血用什么逆转剂", ["达比加群"]) == ("达比加群",)
    assert not tied.another("which level should trigger an opinion", ["trigger", "opinion"])
    assert not tied.another("What dose for Zyxwvut?", ["zyxwvut"]), "somebody's name"


def test_a_condition_that_no_passage_quoted_names_makes_it_about_another_thing() -> None:
    prophylaxis = passage("Creatinine clearance: 15 to 29 mL/min; Prophylaxis: Enoxaparin 20 mg once a day")
    question = "Creatinine clearance 24 mL/min, iliac DVT. Which enoxaparin regimen applies?"
    assert tied.other_conditions(question, [prophylaxis]) == ("dvt",)
    assert not tied.other_conditions(question, [prophylaxis, passage("Deep vein thrombosis: 1 mg/kg once daily")])
    assert not tied.other_conditions("What treats high potassium?", [prophylaxis]), "its title has another name of it"
    assert not tied.other_conditions("How is pneumonia treated?", [passage("Hospital-acquired pneumonia: 7 days.")])


def test_the_value_must_be_of_the_medicine() -> None:
    assert tied.unfilled("How much furosemide do I give?", [quotation("Avoid an ACE inhibitor above 5.0 mmol/L.")])
    assert tied.unfilled("凝血酶原复合物用多少单位", [quotation("用凝血酶原复合物逆转华法林，并静脉给维生素K 10 mg。")])
    assert tied.unfilled("What dose of warfarin?", [quotation("Stop warfarin and give vitamin K 10 mg.")])
    assert not tied.unfilled("What dose of insulin?", [quotation("Give 10 units of insulin with 25 g of glucose.")])
    assert not tied.unfilled("What dose of glucose?", [quotation("Give 10 units of insulin with 25 g of glucose.")])


def test_what_adds_nothing_to_a_value_stands_behind_it() -> None:
    question, first = "what lactate needs a surgeon?", "Call a surgeon if the lactate is above 2.2 mmol/L."
    assert not tied.answered("does lactate matter?", first, "The lactate falls in 5 hours.")
    assert tied.answered("how long to wait?", "Wait for 2 hours.", "Eat after 5 hours.")
    assert not tied.answered(question, first, "Surgeons answer at night.")
