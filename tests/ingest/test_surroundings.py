"""The text around a passage of a source without pages."""

from __future__ import annotations

import pytest

from localmed.domain import Passage
from localmed.ingest.draw import AROUND, around


def passage(number: int, text: str, *headings: str) -> Passage:
    return Passage(f"p{number}", "d", "c", "en", "", "Title", headings, text, f"{number}-{number + 1}")


DOCUMENT = [
    passage(0, "First.", "A"),
    passage(1, "Second.", "A"),
    passage(2, "第三段。", "A", "B"),
    passage(3, "Last.", "A"),
]


@pytest.mark.parametrize("number", range(4))
def test_the_passage_stands_among_its_neighbours(number: int) -> None:
    seen = around(DOCUMENT[number], DOCUMENT)
    assert seen.text == "A\nFirst.\n\nSecond.\n\nA › B\n第三段。\n\nA\nLast."
    assert seen.text[seen.start : seen.end] == DOCUMENT[number].text


def test_the_nearest_are_taken_whole_until_the_page_is_full() -> None:
    long = [passage(number, str(number) * (AROUND // 2 - 10)) for number in range(9)]
    seen = around(long[4], long)
    assert [part[0] for part in seen.text.split("\n\n")] == ["2", "3", "4", "5", "6"]
    wide = [passage(0, "x" * (AROUND + 1)), passage(1, "here"), passage(2, "y" * (AROUND + 1))]
    assert around(wide[1], wide).text == "here"


def test_a_passage_that_its_document_has_no_more_stands_alone() -> None:
    seen = around(passage(9, "Kept.", "A"), DOCUMENT)
    assert (seen.text, seen.start, seen.end) == ("Kept.", 0, 5)
