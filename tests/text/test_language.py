from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localmed.text.language import break_point, clean, content_words, detect, fold, question_words, sentences, words
from localmed.text.synonyms import named

ANY = st.text(max_size=200)
MEDICAL = st.text(alphabet="ab Z.,?!;:。！？，；、\n\t\"'()（）“”5%药品每日次服用éß💊", max_size=120)
WITH_SURROGATES = st.text(st.characters(codec=None), max_size=100)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Give 5 mg by mouth.", "en"),
        ("", "en"),
        ("12.5 %", "en"),
        ("每日两次", "zh"),
        ("口服 metformin 500 mg，每日两次", "zh"),
        ("A trial from 北京 of metformin in adults with diabetes", "en"),
        ("Où est-ce que ça fait mal ?", "en"),
        ("\U0002fffe", "zh"),
    ],
)
def test_detect(text: str, language: str) -> None:
    assert detect(text) == language


# --- sentences -------------------------------------------------------------------------------------------------------


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


@pytest.mark.parametrize(
    "expected",
    [
        ["Give 0.5 mg now.", "Repeat it after 2.5 hours."],
        ["Dr. Smith gave it at 8 a.m. and left.", "It worked."],
        ["Use e.g. amoxicillin.", "Stop after 5 days."],
        ["Is it safe?", "Yes!", "Ask first."],
        ["One sentence without an end"],
    ],
)
def test_english_sentences(expected: list[str]) -> None:
    assert split(" ".join(expected)) == expected


@pytest.mark.parametrize(
    "expected",
    [
        ["每日两次，每次500毫克。", "饭后服用！", "忘记服药怎么办？"],
        ["成人剂量为0.5克。", "儿童减半。"],
        ["立即停药。", "72小时后复查！", "３天后停用？", "aspirin 100 mg。"],
        ["见说明（先停药。2天后复查）。", "每日3。5 mg。"],
    ],
)
def test_chinese_sentences(expected: list[str]) -> None:
    assert split("".join(expected)) == expected


def test_a_line_end_ends_a_sentence() -> None:
    assert split("Drug: A; Dose: 5\nDrug: B; Dose: 6") == ["Drug: A; Dose: 5", "Drug: B; Dose: 6"]


@given(st.one_of(ANY, MEDICAL))
def test_sentences_lie_in_order_within_the_text(text: str) -> None:
    last = 0
    for start, end in sentences(text):
        assert last <= start < end <= len(text)
        assert text[start:end] == text[start:end].strip()
        assert "\n" not in text[start:end]
        last = end


@given(st.one_of(ANY, MEDICAL))
def test_sentences_lose_nothing_but_blanks(text: str) -> None:
    kept = "".join("".join(sentence.split()) for sentence in split(text))
    assert kept == "".join(text.split())


@given(MEDICAL, st.integers(1, 50))
def test_a_break_point_moves_on(text: str, limit: int) -> None:
    assert 0 < break_point(text, 0, limit) <= limit


# --- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Give 2.5 mg/kg of β-blocker", ["give", "2.5", "mg", "kg", "of", "β", "blocker"]),
        ("Crohn's disease", ["crohn", "disease"]),
        ("ＣＯＶＩＤ－１９", ["covid", "19"]),
        ("snake_case", ["snake", "case"]),
        ("ﬁbrosis", ["fibrosis"]),
        ("?! ...", []),
        ("", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_chinese_words_are_pairs() -> None:
    assert words("高血压") == ["高", "血", "压", "高血", "血压"]
    assert words("高血压", for_query=True) == ["高血", "血压"]
    assert words("药", for_query=True) == ["药"]
    assert words("服aspirin药") == ["服", "aspirin", "药"]


@given(st.one_of(ANY, MEDICAL, WITH_SURROGATES))
def test_width_and_case_make_no_difference(text: str) -> None:
    assert words(text) == words(fold(text))
    wide = "".join(chr(ord(c) + 0xFEE0) if "A" <= c <= "Z" or "0" <= c <= "9" else c for c in text)
    assert words(wide) == words(text)


@given(st.one_of(ANY, MEDICAL, WITH_SURROGATES))
def test_what_a_question_asks_for_is_in_the_index(text: str) -> None:
    indexed = set(words(text))
    assert set(words(text, for_query=True)) <= indexed
    assert all(word and word == word.strip() and not any(map(str.isspace, word)) for word in indexed)


def test_question_words_leave_out_the_asking() -> None:
    assert question_words("What is the dose of metformin?") == ["dose", "metformin"]
    assert question_words("请问对乙酰氨基酚的最大剂量是多少？") == [
        *words("对乙酰氨基酚", for_query=True), "最大", "剂量"
    ]  # fmt: skip
    assert question_words("What is it?") == ["what", "is", "it"]


def test_a_drug_that_no_dictionary_knows_is_asked_for_whole() -> None:
    assert set("".join(question_words("二甲双胍的剂量是多少？"))) >= set("二甲双胍")


# --- clean -----------------------------------------------------------------------------------------------------------


@given(WITH_SURROGATES)
def test_cleaned_text_can_be_stored(text: str) -> None:
    cleaned = clean(text)
    assert cleaned.encode("utf-8").decode("utf-8") == cleaned
    assert clean(cleaned) == cleaned
    assert all(unicodedata.category(c) != "Cc" or c in "\t\n\r" or ord(c) >= 0x80 for c in cleaned)


def test_a_copula_that_the_dictionary_joins_to_a_word_is_cut_off() -> None:
    assert content_words("溶栓时间窗是多久？") == ["溶栓", "时间"]
    assert content_words("但是目标血压是多少") == ["目标", "血压"]


def test_to_lower_a_sugar_is_no_low_sugar() -> None:
    assert [one.written for one in named("能降低血糖")] == ["血糖"]
    assert "低血糖" in [one.written for one in named("预防低血糖")]
