"""An answer to be verified: text, JSON, our own JSON, and what is none of them."""

from __future__ import annotations

import json

import pytest

from localmed.answering.answer_file import TEXT_BYTES, VerifyInput, read
from localmed.domain.errors import InputError, LimitExceeded
from localmed.retrieval.studies import Reference


def as_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def test_text_is_taken_as_it_is() -> None:
    assert read("\ufeff阿司匹林有效[1]。".encode(), "问题？") == VerifyInput("问题？", "阿司匹林有效[1]。")
    assert read(b"") == VerifyInput("", "")
    assert read(b"[1] is a citation, not JSON") == VerifyInput("", "[1] is a citation, not JSON")


def test_json() -> None:
    sources = ["Smith 2020", {"pmid": 12, "doi": "10.1/AB", "title": "T"}, {"marker": "[7]", "id": "abcdef"}, {}]
    answer = read(as_json({"question": "Q?", "answer": "A [1].", "sources": sources, "more": 1}))
    assert (answer.question, answer.text) == ("Q?", "A [1].")
    assert answer.references == (
        Reference("1", "Smith 2020"),
        Reference("2", "T", ("pmid:12", "doi:10.1/ab")),
        Reference("7", id="abcdef"),
        Reference("4"),
    )
    assert read(as_json({"question": "Q?", "answer": "A"}), "Other?").question == "Other?"
    assert read(as_json({"answer": "A", "question": None, "sources": None})) == VerifyInput("", "A")
    assert read(as_json({"answer": "A", "sources": [{"pmid": "pmid:5"}]})).references[0].identifiers == ("pmid:5",)


def test_an_answer_of_ours() -> None:
    own = {
        "question": "Q?",
        "statements": [
            {"text": "One.", "citations": [{"marker": "1"}, {"marker": "2"}]},
            {"text": "Hidden.", "citations": [], "withheld": True},
        ],
        "evidence": [{"marker": "1", "passage": {"id": "a" * 32}}, {"marker": "2", "passage": {"id": "b" * 32}}],
    }
    answer = read(as_json(own))
    assert answer.text == "One. [1][2]"
    assert answer.references == (Reference("1", id="a" * 32), Reference("2", id="b" * 32))


@pytest.mark.parametrize(
    "data",
    [
        b"{", b'{"answer": 3}', b"{}", b'{"answer": "A", "sources": 3}', b'{"answer": "A", "sources": [3]}',
        b'{"statements": [{}], "evidence": []}', b'{"statements": [3]}', b'{"a":' * 100_000, b"\xff\xfe",
    ],
    ids=range(9),
)  # fmt: skip
def test_what_cannot_be_read_is_refused_without_its_text(data: bytes) -> None:
    with pytest.raises(InputError):
        read(data)


def test_half_characters_are_cleaned_everywhere() -> None:
    half = "\ud800"
    answer = VerifyInput(half, half, (Reference(half, half, (half,), half),)).cleaned()
    assert answer == VerifyInput("\ufffd", "\ufffd", (Reference("\ufffd", "\ufffd", ("\ufffd",), "\ufffd"),))


def test_too_much_is_refused() -> None:
    with pytest.raises(LimitExceeded):
        read(b"a" * (TEXT_BYTES + 1))
