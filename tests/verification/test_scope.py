"""What narrows a question, against what a quotation speaks of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localmed.domain import Evidence
from localmed.verification.scope import against, lacking, named
from tests.values import evidence, quotation

STATUS = "Convulsive status epilepticus in adults"
PANCREAS = "Acute pancreatitis in adults"


def source(text: str, title: str, heading: str = "", table: bool = False) -> Evidence:
    piece = evidence("1", text, title)
    headings = (title, heading) if heading else (title,)
    return replace(piece, passage=replace(piece.passage, headings=headings, table=table))


@pytest.mark.parametrize(
    ("question", "title", "heading", "text", "words"),
    [
        ("What dose of lorazepam is given in status?", STATUS, "", "Give lorazepam 4 mg.", ()),
        ("What dose of lorazepam is given to a child in status?", STATUS, "", "Give lorazepam 4 mg.", ("child",)),
        ("How is pain managed in chronic pancreatitis?", PANCREAS, "Pain", "Give morphine 2 mg.", ("chronic",)),
        ("How is pain managed in pancreatitis?", PANCREAS, "Pain", "Give morphine 2 mg.", ()),
        ("What dose for a 3 month old with anaphylaxis?", "Anaphylaxis", "Adrenaline",
         "Children aged 6 months to under 6 years: 150 micrograms.", ("3 month old",)),
        ("What dose for a 3 year old with anaphylaxis?", "Anaphylaxis", "Adrenaline",
         "Children aged 6 months to under 6 years: 150 micrograms.", ()),
        ("What is given for sepsis in the first hour?", "Sepsis", "After the first hour", "Give fluids.",
         ("in the first hour",)),
        ("How is pancreatitis managed in pregnancy?", PANCREAS, "Tests", "A pregnancy test is done in every woman.",
         ("pregnancy",)),
        ("32周早产儿光疗界值是多少？", "新生儿黄疸", "光疗", "新生儿达到界值即开始光疗。", ("早产儿",)),
        ("32周早产儿光疗界值是多少？", "新生儿黄疸", "光疗", "界值见表。早产儿另有标准。", ("早产儿",)),
        ("32周早产儿光疗界值是多少？", "新生儿黄疸", "光疗", "界值见表。早产儿不适用本规范。", ("早产儿",)),
        ("32周早产儿光疗界值是多少？", "新生儿黄疸", "光疗", "早产儿的界值低一档。", ()),
        ("How is status treated in a 70 year old?", STATUS, "", "Give lorazepam 4 mg.", ()),
        ("How is status treated in a 7 year old?", STATUS, "", "Give lorazepam 4 mg.", ("7 year old",)),
        ("How is a hip fracture fixed in a 25 year old?", "Hip fracture", "", "Patients aged 60 and over need screws.",
         ("25 year old",)),
        ("How is autoimmune pancreatitis treated?", PANCREAS, "", "Give fluids.", ("autoimmune",)),
        ("How is eclampsia treated?", STATUS, "Scope", "This guideline does not cover eclampsia.", ("eclampsia",)),
        ("儿童奥美拉唑用多大剂量？", "成人上消化道出血", "", "奥美拉唑80 mg静脉推注。", ("儿童",)),
        ("下消化道出血怎么处理？", "成人上消化道出血", "", "先快速补液。", ("下消化道",)),
        ("上消化道出血奥美拉唑怎么用？", "成人上消化道出血", "", "奥美拉唑80 mg静脉推注。", ()),
        ("What dose of enoxaparin prevents thrombosis?", "Prevention of venous thromboembolism", "",
         "Give enoxaparin 40 mg.", ()),
    ],
)  # fmt: skip
def test_what_a_quotation_does_not_speak_of(
    question: str, title: str, heading: str, text: str, words: tuple[str, ...]
) -> None:
    piece = source(text, title, heading)
    assert lacking(question, (quotation(piece, 0, len(text)),), (piece,)) == words


def test_a_row_of_a_table_speaks_for_itself() -> None:
    rows = "Drug: Lorazepam; Route: intravenous; Dose: 4 mg\nDrug: Diazepam; Route: rectal; Dose: 10 mg"
    piece = source(rows, STATUS, table=True)
    diazepam = quotation(piece, rows.index("Drug: Diazepam"), len(rows))
    assert lacking("How much intravenous diazepam is given?", (diazepam,), (piece,)) == ("intravenous",)
    assert lacking("How much rectal diazepam is given?", (diazepam,), (piece,)) == ()


def test_more_than_half_of_what_is_quoted_must_speak_of_it() -> None:
    pieces = [replace(source(text, title), marker=str(number)) for number, (text, title) in enumerate(
        (("Look for gallstones.", PANCREAS), ("Look for gallstones.", "Autoimmune pancreatitis"), ("Rest.", "Rest")), 1
    )]  # fmt: skip
    quotations = [quotation(piece, 0, len(piece.passage.text)) for piece in pieces]
    question = "How is autoimmune pancreatitis treated?"
    assert lacking(question, quotations, pieces) == ("autoimmune",)
    assert lacking(question, quotations[1:2], pieces) == ()
    assert named(("autoimmune", "chronic"), quotations, pieces) == ("autoimmune",)
    assert named(("autoimmune",), quotations[:1], pieces) == ()


def test_what_restricts_an_answer_is_told_as_partly_where_a_sentence_names_it() -> None:
    texts = ("Repeat the dose of intramuscular adrenaline.", "Give intravenous fluids.", "Give oral cetirizine.")
    piece = source(" ".join(texts), "Anaphylaxis")
    quotations = [quotation(piece, start, start + len(text)) for text in texts
                  for start in [piece.passage.text.index(text)]]  # fmt: skip
    words = lacking("When is intramuscular adrenaline repeated?", quotations, (piece,))
    assert words == ("intramuscular",)
    assert named(words, quotations, (piece,)) == words
    assert named(words, quotations[1:], (piece,)) == ()
    chinese = source("肌注肾上腺素。", "过敏性休克")
    assert named(("肌内",), (quotation(chinese, 0, 7),), (chinese,)) == ("肌内",)


def test_a_word_of_no_table_counts_from_another_sentence_of_the_document_that_is_quoted() -> None:
    pieces = [replace(source(text, title), marker=str(number)) for number, (text, title) in enumerate(
        (("Keep the spacer clean.", "Asthma"), ("Shake it.", "Asthma"), ("Breathe.", "Asthma"), ("Rest.", "Gout")), 1
    )]  # fmt: skip
    quotations = [quotation(piece, 0, len(piece.passage.text)) for piece in pieces]
    assert lacking("How is a spacer used?", quotations[:3], pieces) == ()
    assert lacking("How is a spacer used?", quotations[2:], pieces) == ("spacer",)


def test_a_definition_and_a_header_in_the_same_table_are_read() -> None:
    rows = "CrCl is creatinine clearance.\nDrug: Apixaban; CrCl: Below 15 mL/min; Dose: avoid"
    piece = source(rows, "Apixaban", table=True)
    row = quotation(piece, rows.index("Drug:"), len(rows))
    assert lacking("Apixaban at a clearance below 15?", (row,), (piece,)) == ()
    headed = source("Drug | Clearance\nApixaban | 15 mL/min", "Apixaban", table=True)
    assert lacking("Apixaban at which clearance?", (quotation(headed, 17, 37),), (headed,)) == ()
    other = source(
        rows.replace("CrCl is creatinine clearance.", "Drug: Warfarin; CrCl: clearance"), "Apixaban", table=True
    )
    last = quotation(other, other.passage.text.index("Drug: Apix"), len(other.passage.text))
    assert lacking("Apixaban at a clearance below 15?", (last,), (other,)) == ("clearance",)


@pytest.mark.parametrize("question", [
    "Apixaban dose above, below, at less than or older than 80?", "How much apixaban in an old patient?",
    "阿哌沙班超过多少不用？",
])  # fmt: skip
def test_comparators_and_words_of_age_are_no_topics(question: str) -> None:
    piece = source("Give apixaban 2.5 mg 阿哌沙班.", "Apixaban")
    assert lacking(question, (quotation(piece, 0, len(piece.passage.text)),), (piece,)) == ()


def test_an_age_that_no_quoted_band_holds_is_lacking() -> None:
    texts = ("布洛芬用于儿童发热。", "布洛芬：6个月以上儿童。", "18岁以下不要使用阿司匹林。")
    piece = source("".join(texts), "儿童发热")
    first, *beside = (quotation(piece, start, start + len(text)) for text in texts
                      for start in [piece.passage.text.index(text)])  # fmt: skip
    assert lacking("2个月婴儿发热可以用布洛芬吗", (first,), (piece,), beside) == ("2个月",)
    assert lacking("2个月婴儿发热可以用布洛芬吗", (first,), (piece,)) == ()
    assert lacking("8个月婴儿发热可以用布洛芬吗", (first,), (piece,), beside) == ()


def test_a_population_is_not_named_by_the_prose_around() -> None:
    text = "Give paracetamol. Weigh the patient. Refer in the week. In pregnancy call the obstetrician."
    piece = source(text, "Pain")
    first, last = quotation(piece, 0, 17), quotation(piece, text.index("In pregnancy"), len(text))
    assert lacking("What is given for pain in pregnancy?", (first,), (piece,)) == ("pregnancy",)
    assert lacking("What is given for pain in pregnancy?", (last,), (piece,)) == ()


@pytest.mark.parametrize(("question", "text", "words"), [
    ("高钾血症怎么处理", "低钾血症者补钾。", ("高钾血症",)),
    ("低钾血症怎么处理", "不良反应：高钾血症。", ("低钾血症",)),
    ("高钾血症怎么处理", "高钾血症者静推葡萄糖酸钙。", ()),
    ("高钾血症怎么处理", "高血钾时静推葡萄糖酸钙。", ()),
    ("轮状病毒疫苗第二剂什么时候打", "轮状病毒疫苗第一剂在出生后6周接种。", ("第二剂",)),
    ("轮状病毒疫苗第二剂什么时候打", "轮状病毒疫苗第一剂6周，第二剂10周接种。", ()),
    ("When is the second dose of vaccine?", "The first dose of vaccine is at birth.", ("second dose",)),
    ("What lorazepam dose for Mrs Tanaka?", "Lorazepam 4 mg is the dose.", ()),
    ("王女士劳拉西泮用多少", "劳拉西泮4 mg静推。", ()),
])  # fmt: skip
def test_heads_ordinals_and_people(question: str, text: str, words: tuple[str, ...]) -> None:
    piece = source(text, "Title")
    assert lacking(question, (quotation(piece, 0, len(text)),), (piece,)) == words


@pytest.mark.parametrize(("question", "text", "speaks"), [
    ("How is acute pain treated?", "Chronic pain is treated with exercise.", True),
    ("How is acute pain treated?", "Pain is treated with morphine.", False),
    ("What dose of lorazepam?", "Give warfarin 3 mg.", True),
    ("What dose of lorazepam?", "Give 4 mg.", False),
    ("Paracetamol for a child of 3 years", "对乙酰氨基酚：每次10至15毫克，3个月以上。", False),
])  # fmt: skip
def test_only_what_is_named_is_evidence_against(question: str, text: str, speaks: bool) -> None:
    piece = source(text, "Title")
    assert against(question, (quotation(piece, 0, len(text)),), (piece,)) is speaks
