"""Citations in an answer written elsewhere: every usual style, malformed ones, and where each belongs."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localmed.answering.marked_text import read


def markers(text: str) -> list[tuple[str, ...]]:
    return [sentence.markers for sentence in read(text).sentences]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Aspirin helps [1].", ("1",)), ("Aspirin helps [1, 2].", ("1", "2")),
        ("Aspirin helps [1-3, 7].", ("1", "2", "3", "7")), ("Aspirin helps [2–4].", ("2", "3", "4")),
        ("Aspirin helps [^5].", ("5",)), ("Aspirin helps [citation:1].", ("1",)), ("Aspirin helps.¹ʼ"[:-1], ("1",)),
        ("Aspirin helps.<sup>1,2</sup>", ("1", "2")),
        ("Aspirin helps (Smith et al., 2020; Lee & Kim 2019).", ("smith 2020", "lee 2019")),
        ("As Smith et al. (2020) found, aspirin helps.", ("smith 2020",)),
        ("Aspirin helps (PMID: 12345).", ("pmid:12345",)),
        ("Aspirin helps (doi:10.1000/ab.12).", ("doi:10.1000/ab.12",)),
        ("Aspirin helps, https://doi.org/10.1000/AB12.", ("doi:10.1000/ab12",)), ("阿司匹林有效【1，2】。", ("1", "2")),
        ("阿司匹林有效［3］。", ("3",)), ("阿司匹林有效（张三等，2020）。".replace("，2020", " 2020"), ("张三 2020",)),
        ("The dose is 10⁹ cells and 1.73 m² here.", ()), ("The ratio was 0.8 (95% CI [46-61]) here.", ())
    ],
)  # fmt: skip
def test_a_citation_is_read(text: str, expected: tuple[str, ...]) -> None:
    marked = read(text)
    assert [sentence.markers for sentence in marked.sentences] == [expected]
    assert marked.malformed == 0


@pytest.mark.parametrize("mark", ["[]", "[3-1]", "[1,,2]", "[1-]", "[1-999]", "[citation:]", "[0]", "[1", "[4-4]"])
def test_what_is_no_citation_is_counted(mark: str) -> None:
    marked = read(f"Aspirin helps {mark} here.")
    assert marked.malformed == 1
    assert marked.sentences[0].markers == ()


def test_a_sentence_stands_where_it_stood() -> None:
    text = "One helps [1]. Two [2] helps a lot. Three helps."
    sentences = read(text).sentences
    assert [sentence.text for sentence in sentences] == ["One helps.", "Two helps a lot.", "Three helps."]
    assert [text[sentence.start : sentence.end] for sentence in sentences] == [
        "One helps [1].",
        "Two [2] helps a lot.",
        "Three helps.",
    ]


def test_the_list_of_references() -> None:
    text = (
        "Aspirin helps [2] (Smith 2020).\n\n## References\n1. Lee K. Statins. 2019. PMID: 77.\n"
        "[2] Smith J. Aspirin. 2020. doi:10.1000/x1.\n"
    )
    marked = read(text)
    assert len(marked.sentences) == 1, "the list is no part of the answer"
    assert [(reference.marker, reference.identifiers) for reference in marked.references] == [
        ("1", ("pmid:77",)), ("2", ("doi:10.1000/x1",)),
    ]  # fmt: skip
    assert marked.reference("2") == marked.reference("smith 2020") == marked.references[1]
    assert marked.reference("pmid:5").identifiers == ("pmid:5",)
    assert marked.reference("9").text == ""


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("# Metformin and the kidney\n\n**Dose in renal impairment**\nStop it if eGFR is below 15.", 2),
        ("Monitoring\n\nCheck eGFR every year.", 1),
        ("Stop it.\n\n二甲双胍与肾功能\n\neGFR低于30时停用二甲双胍。", 1),
        ("- Stop metformin\n\n- Check eGFR\n\n- Ring the renal team", 0),
        ("Stop metformin [1]\n\nCheck eGFR.\n\n1. A study", 0),  # it cites
        ("Metformin 500 mg twice a day\n\nWith food.", 0),  # a number states something
        ("**Stop metformin if eGFR is below 30.**", 0),
        ("Stop metformin", 0),
        ("Metformin helps.\nStop it if eGFR falls", 0),
    ],
)
def test_a_line_that_only_names_what_comes_after_it_is_a_heading(text: str, headings: int) -> None:
    assert sum(one.heading for one in read(text).sentences) == headings


@pytest.mark.parametrize(
    "entries",
    [
        "[1] Aspirin in adults\n[2] Statins (2019). PMID: 77.",
        "[1]: Aspirin\n\n[^2]: Statins",
        "【1】阿司匹林\n【2】他汀",
    ],
)
def test_lines_at_the_end_are_the_list_without_a_heading(entries: str) -> None:
    answer = read(f"Aspirin helps [1]. Statins help too.\n\n{entries}\n")
    assert [sentence.markers for sentence in answer.sentences] == [("1",), ()]
    assert [reference.marker for reference in answer.references] == ["1", "2"]
    assert answer.reference("1").text.startswith(("Aspirin", "阿司匹林"))


@pytest.mark.parametrize(
    "text",
    ["[1] Aspirin helps.\n[2] Statins help.", "One [1].\n[2] Two.", "One [1].\n[1] Two.\n[1] Three.", "One.\n[1][2]"],
)
def test_sentences_after_their_citations_are_no_list(text: str) -> None:
    assert not read(text).references


@pytest.mark.parametrize(
    "text",
    [
        " " * 100_000, "\n" * 100_000, "A" * 100_000, "Aa, " * 25_000, "[" * 100_000, "[1," * 33_000,
        "(Smith 2020; " * 8_000, "¹" * 100_000, "10.1000/" + "a" * 100_000, "和张三" * 33_000,
    ],
    ids=range(10),
)  # fmt: skip
def test_hostile_text_is_read_in_time(text: str) -> None:
    began = time.process_time()
    read(text)
    assert time.process_time() - began < 5.0


@given(st.text(alphabet="ab [](),;-^1239PMID:Smith 2020\n.。¹²【】", max_size=80))
def test_any_text_can_be_read(text: str) -> None:
    marked = read(text)
    for sentence in marked.sentences:
        assert 0 <= sentence.start <= sentence.end <= len(text)
    assert marked.malformed >= 0
