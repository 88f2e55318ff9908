"""The codec: every answer of every workflow comes back from its JSON, and nothing else is made of one."""

from __future__ import annotations

import json
import typing
from dataclasses import fields, replace
from enum import Enum
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from localmed.domain import Answer, AnswerStatus, Message, message
from localmed.domain import parts as part_types
from localmed.domain.answers import BEFORE, FORMAT, AlteredAnswer, answer_json, answer_of, answers
from localmed.domain.codec import Codec, field_types, reachable
from localmed.presentation.answer import view
from tests.values import PROVENANCE, evidence, quotation

TEXT = st.text(max_size=8)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
PARAMETER = st.one_of(TEXT, st.integers(), NUMBER, st.builds(Message, TEXT), st.lists(TEXT, max_size=2).map(tuple))
MESSAGE = st.builds(Message, TEXT, st.dictionaries(TEXT, PARAMETER, max_size=2).map(lambda named: tuple(named.items())))
PLAIN = {str: TEXT, int: st.integers(), float: NUMBER, bool: st.booleans(), Message: MESSAGE, type(None): st.none()}


def of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type, as generators of dataclasses by their hints."""
    if kind in PLAIN:
        return PLAIN[kind]
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (tuple, frozenset):
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return st.lists(of(arguments[0]), max_size=2).map(tuple)
        if origin is frozenset:
            return st.frozensets(of(arguments[0]), max_size=2)
        return st.tuples(*map(of, arguments))
    if arguments:
        return st.one_of(*map(of, arguments))
    if issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    return st.builds(kind, **{name: later(hint) for name, hint in field_types(kind).items()})


def later(kind: Any) -> st.SearchStrategy[Any]:
    return st.deferred(lambda: of(kind))


PARTS = sorted(
    (kind for kind in reachable(field_types(Answer)["parts"]) if kind.__module__ == part_types.__name__
     and "statements" in dir(kind)),
    key=lambda kind: kind.__name__,
)  # fmt: skip


def back(answer: Answer) -> Answer:
    return answer_of(json.loads(json.dumps(answer_json(answer), ensure_ascii=False)))


@pytest.mark.parametrize("kind", PARTS, ids=lambda kind: kind.__name__)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_an_answer_with_a_part_of_every_type_comes_back(kind: type, data: st.DataObject) -> None:
    part = data.draw(of(kind))
    answer = Answer(AnswerStatus.ANSWERED, "q", "en", (), (), (), PROVENANCE, parts=(part,))
    assert back(answer) == answer


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(of(Answer))
def test_any_answer_comes_back(answer: Answer) -> None:
    assert back(answer) == answer


def sample() -> Answer:
    source = evidence("1", "Give 5 mg by mouth.")
    return Answer(
        AnswerStatus.ANSWERED, "q", "zh", (quotation(source, 0, 19),), (source,), ("a",), PROVENANCE,
        notes=(message("workflow.not_covered", parts=("x", "y")),),
    )  # fmt: skip


def test_words_stand_beside_codes_and_are_not_read() -> None:
    written = answer_json(sample(), "zh")
    (note,) = written["notes"]
    assert note == {
        "code": "workflow.not_covered", "parameters": {"parts": ["x", "y"]}, "text": "来源没有涉及：x、y",
    }  # fmt: skip
    note["text"] = "something else"
    assert answer_of(written, authentic=True) == sample()
    assert written["format"] == FORMAT


def test_an_answer_that_was_kept_before_there_were_sections_is_read() -> None:
    written = {name: value for name, value in answer_json(sample()).items() if name != "receipts"}
    assert answer_of(written | {"format": BEFORE}, authentic=True) == sample()


def test_a_field_that_an_earlier_version_wrote_and_that_is_gone_is_not_read() -> None:
    kept = replace(sample(), parts=(part_types.TermPart("NPO"),))
    written = answer_json(kept)
    written["parts"][0]["under"] = "Fasting"
    assert answer_of(written, authentic=True) == kept
    written["parts"][0]["other"] = "Fasting"
    with pytest.raises(ValueError, match="TermPart"):
        answer_of(written, authentic=True)


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("NearestPart", {}),
        ("CautionPart", {"entry": {"kind": "medicine"}, "named": ["warfarin"]}),
        ("InteractionPart", {"entry": {"kind": "medicine"}}),
        ("RecordPart", {"entries": []}),
    ],
)
def test_a_part_that_only_earlier_versions_wrote_is_read_with_its_sentences(name: str, gone: dict[str, Any]) -> None:
    statements = sample().statements
    kept = replace(sample(), parts=(part_types.OlderPart(statements),))
    written = answer_json(kept)
    written["parts"][0] |= {"type": name, **gone}
    assert answer_of(written, authentic=True) == kept
    assert [one.text for one in view(kept, "zh").parts[0].statements] == [one.text for one in statements]


def test_an_allergy_of_an_earlier_version_keeps_its_words() -> None:
    kept = replace(sample(), parts=(part_types.AllergyPart("allergic to penicillin", ("amoxicillin",)),))
    written = answer_json(kept)
    del written["parts"][0]["words"]
    written["parts"][0]["allergy"] = {"kind": "allergy", "words": "allergic to penicillin", "text": "penicillin"}
    assert answer_of(written, authentic=True) == kept


def test_a_field_that_an_earlier_version_did_not_write_has_its_default() -> None:
    written = answer_json(sample())
    for piece in written["evidence"]:
        del piece["remark"]
    del written["notes"]
    assert answer_of(written, authentic=True) == replace(sample(), notes=())
    with pytest.raises(AlteredAnswer):
        answer_of(written)


def changed(**values: Any) -> dict[str, Any]:
    return answer_json(sample()) | values


@pytest.mark.parametrize(
    "written",
    [
        None, [], {}, "text", {"format": FORMAT},
        {name: value for name, value in changed().items() if name != "format"},
        {name: value for name, value in changed().items() if name != "question"},
        changed(format="localmed answer 2"), changed(more=1), changed(status="wonderful"), changed(question=5),
        changed(notes={}), changed(notes=[1]), changed(searched="abc"),
        changed(parts=[{"type": "Path"}]), changed(parts=[{"type": "Evidence"}]), changed(parts=[{"type": 1}]),
        changed(parts=[{"type": "PicoPart", "population": 1}]), changed(verification=None),
        changed(statements=[{}]), changed(notes=[{"code": "x", "parameters": [1]}]),
    ],
    ids=lambda written: str(written)[-40:],
)  # fmt: skip
def test_what_is_no_answer_is_refused(written: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        answer_of(written, authentic=True)


@pytest.mark.parametrize("digest", [None, "", "0" * 64, 5])
def test_an_answer_that_was_altered_is_refused_whether_its_digest_is_there_or_not(digest: object) -> None:
    written = changed(question="another question")
    written["digest"] = digest
    if digest is None:
        del written["digest"]
    with pytest.raises(AlteredAnswer):
        answer_of(written)
    assert answer_of(written, authentic=True).question == "another question", "of what is sealed"


def test_two_classes_of_one_name_are_refused() -> None:
    other = type("Answer", (), {})
    with pytest.raises(TypeError, match="two classes are called Answer"):
        Codec([Answer, other])


def test_what_is_not_registered_is_not_written() -> None:
    with pytest.raises(TypeError):
        answers().encode(object())
    with pytest.raises(TypeError):
        Codec([]).encode(sample())


def test_every_field_of_an_answer_is_written() -> None:
    assert set(answer_json(sample())) == {"format", "digest", *(field.name for field in fields(Answer))}
    assert back(replace(sample(), notes=())) == replace(sample(), notes=())
