"""What is read once for an answer is forgotten with it."""

from __future__ import annotations

from localmed import once
from localmed.library.lexical import stems
from localmed.verification.clauses import of_sentence
from localmed.verification.intervals import intervals
from tests.cli.conftest import Localmed


def test_it_is_read_once_until_it_is_forgotten() -> None:
    texts: list[str] = []

    @once.once
    def length(text: str) -> int:
        texts.append(text)
        return len(text)

    assert [length("a"), length("a"), length("bc")] == [1, 1, 2]
    assert texts == ["a", "bc"]
    once.forget()
    assert length("a") == 1
    assert texts == ["a", "bc", "a"]


def test_an_answer_leaves_nothing_behind(localmed: Localmed) -> None:
    times: list[str] = []
    read = once.once(times.append)
    read("She is 70 to 80 years old.")
    for arguments in (("ask", "Dose of paracetamol?"), ("departments", "chest pain"), ("verify", "-")):
        localmed(*arguments)
        read("She is 70 to 80 years old.")
    assert len(times) == 4


def test_what_reads_the_text_of_a_patient_is_forgotten() -> None:
    text = "She is 70 to 80 years old."
    for function in (stems, of_sentence, intervals):
        assert function(text) == function(text)
    assert stems(text) is stems(text)
    kept = stems(text), of_sentence(text)
    once.forget()
    assert stems(text) is not kept[0]
    assert of_sentence(text) is not kept[1]
