"""The JSON of source plans: a model is held to its schema, and what is written is read back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localmed.answering.planning import (
    GRAPH,
    PLAN_TOKENS,
    QUERIES,
    QUERY_CHARACTERS,
    SOURCES,
    TERM_CHARACTERS,
    SourcePlan,
    plan_schema,
    read_plan,
    written,
)
from localmed.domain.errors import ModelError, Rejected
from localmed.models import structured

EVERY = (*SOURCES, GRAPH)


@pytest.mark.parametrize("value", [{}, {"book": []}, {"book": ["  "], "graph": []}])
def test_a_plan_that_asks_nothing_is_refused(value: Any) -> None:
    with pytest.raises(Rejected):
        read_plan(value)


@pytest.mark.parametrize(
    "value",
    [
        {"book": ["a b"]},  # the guideline's list is missing
        {"book": ["a b"], "guideline": [], "wiki": ["a b"]},  # not there
        {"book": ["aa", "bb", "cc", "dd"], "guideline": []},
        {"book": ["x" * (QUERY_CHARACTERS + 1)], "guideline": []},
        {"book": "asthma", "guideline": []},
    ],
)
def test_what_the_schema_does_not_allow(value: Any) -> None:
    with pytest.raises(ModelError):
        structured.parse_json(json.dumps(value), plan_schema(("guideline", "book")))


def test_a_plan_whose_lists_are_full_is_not_cut_off() -> None:
    """Four characters a token, as English has; markup counted as it is."""
    query, term = "x" * QUERY_CHARACTERS, "x" * TERM_CHARACTERS
    full: dict[str, Any] = dict.fromkeys(SOURCES, [query] * QUERIES)
    text = json.dumps(full | {"graph": [{"term": term, "query": query}] * QUERIES})
    assert len(text) / 4 < PLAN_TOKENS


WORDS = st.text(min_size=2, max_size=40).map(lambda text: " ".join(text.split())).filter(lambda text: len(text) > 1)
SOME = st.lists(WORDS, max_size=QUERIES, unique=True).map(tuple)


@given(
    st.builds(
        SourcePlan, SOME, SOME, SOME, SOME, st.lists(st.tuples(WORDS, WORDS), max_size=QUERIES, unique=True).map(tuple)
    ).filter(lambda plan: not plan.empty)
)
def test_what_is_written_is_of_the_schema_and_read_back(plan: SourcePlan) -> None:
    assert read_plan(structured.parse_json(written(plan, EVERY), plan_schema(EVERY))) == plan
