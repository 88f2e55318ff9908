"""The tag format of source plans: read strictly, written so that it is read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localmed.agents.source_plan import QUERIES, SourcePlan, parse, written
from localmed.errors import Rejected

WHOLE = (
    "<book> heart failure ; S3 gallop </book>\n<guideline> heart failure treatment </guideline>\n"
    "<research></research>\n<wiki> </wiki>\n"
    "<graph> heart failure , signs ; Anemia, Sickle Cell , crises </graph>"
)


def test_the_papers_format() -> None:
    assert parse(WHOLE) == SourcePlan(
        ("heart failure", "S3 gallop"),
        ("heart failure treatment",),
        graph=(("heart failure", "signs"), ("Anemia, Sickle Cell", "crises")),
    )


def test_tags_may_be_left_out_and_be_fenced() -> None:
    assert parse(WHOLE.replace("<wiki> </wiki>\n", "")) == parse(WHOLE)
    assert parse(f"```xml\n{WHOLE}\n```") == parse(WHOLE)
    assert parse("<local> pharmacy telephone </local>").local == ("pharmacy telephone",)


def test_the_order_of_the_tags_is_free() -> None:
    lines = WHOLE.split("\n")
    assert parse("\n".join(reversed(lines))) == parse(WHOLE)


def test_less_than_is_no_tag() -> None:
    assert parse(WHOLE.replace("S3 gallop", "CD4 count <200")).book[1] == "CD4 count <200"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no tags at all",
        WHOLE + " Here is the plan.",
        "Plan: " + WHOLE,
        WHOLE + "\n<wiki> again </wiki>",
        WHOLE.replace("</book>", ""),
        WHOLE.replace("<book>", "<books>"),
        WHOLE.replace("heart failure ; S3 gallop", "a ; b ; c ; d"),
        WHOLE.replace("heart failure ; S3 gallop", "a ; ; b"),
        WHOLE.replace("heart failure ; S3 gallop", "x" * 400),
        WHOLE.replace("heart failure , signs", "heart failure"),
        WHOLE.replace("heart failure , signs", "a , b , c"),
        WHOLE.replace("heart failure , signs", " , signs"),
        WHOLE.replace("S3 gallop", "S3 <wiki>gallop</wiki>"),
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(Rejected):
        parse(text)


WORDS = st.from_regex(r"[A-Za-z0-9]+(, [A-Za-z0-9]+)?( [A-Za-z0-9]+){0,4}", fullmatch=True)
SOME = st.lists(WORDS, max_size=QUERIES, unique=True).map(tuple)


@given(
    st.builds(
        SourcePlan, SOME, SOME, SOME, SOME, st.lists(st.tuples(WORDS, WORDS), max_size=QUERIES, unique=True).map(tuple)
    )
)
def test_what_is_written_is_read_back(plan: SourcePlan) -> None:
    assert parse(written(plan)) == plan
