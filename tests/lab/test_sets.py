"""Files of questions and judgements: what is read, what is refused with its line, which document a name means."""

from __future__ import annotations

from pathlib import Path

import pytest

from localmed.domain import SearchFilter, message
from localmed.domain.errors import InputError
from localmed.lab import sets
from localmed.lab.sets import Question, QuestionSet
from localmed.library.library import Library

SECRET = "Zyxwvut Patientname"
ANY = SearchFilter()


def written(folder: Path, name: str, text: str | bytes) -> Path:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.toml", '[[question]]\nid = "a b"\ntext = "One?"\nevidence = "gold"\n[[question]]\nquestion = "二？"\n'),
        ("q.jsonl", '{"id": "a b", "text": "One?", "gold": "gold"}\n\n{"question": "二？"}\n'),
        ("q.tsv", "a b\tOne?\tgold\n2\t二？\n"),
    ],
)
def test_questions_in_every_form(tmp_path: Path, name: str, text: str) -> None:
    one, two = sets.questions(written(tmp_path, name, text))
    assert (one, two) == (Question("a_b", "One?", "gold"), Question("2", "二？"))
    assert "One" not in repr(one)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.toml", f"{SECRET} ="),
        ("q.toml", "x = 1"),
        ("q.jsonl", f'["{SECRET}"]'),
        ("q.jsonl", f'{{"id": "{SECRET}"}}'),
        ("q.tsv", SECRET),
        ("q.tsv", ""),
        ("q.tsv", f"1\t{SECRET}\n1\t{SECRET}\n"),
    ],
)
def test_what_is_no_list_of_questions_is_refused_without_its_text(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(InputError) as error:
        sets.questions(written(tmp_path, name, text))
    assert "Zyxwvut" not in str(error.value)
    assert name in str(error.value)


@pytest.mark.parametrize(
    "line", ["1 0 a", "1 0 a 1 more", "1 0 a good", "1 0 a 1.5", "1 0 a 101", "1 0 a 99999999999", "1 0 a ¹"]
)
def test_bad_judgements_are_named_by_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(InputError, match=r"\(1\): 2$"):
        sets.read_qrels(written(tmp_path, "r.txt", f"1 0 a 1\n{line}\n1 0 b 0\n"))


@pytest.mark.parametrize("content", [b"", b"\n \n", b"\xff\xfe1\t2"])
def test_empty_and_foreign_files(tmp_path: Path, content: bytes) -> None:
    file = written(tmp_path, "f", content)
    for read in (sets.questions, sets.read_qrels):
        with pytest.raises(InputError, match=r"is empty|contains 0 questions|is not UTF-8"):
            read(file)


def test_files_that_cannot_be_read_or_are_huge(tmp_path: Path) -> None:
    for name in ("missing.tsv", "."):
        with pytest.raises(InputError, match="cannot be read"):
            sets.questions(tmp_path / name)
    file = written(tmp_path, "q.tsv", "1\tx\n")
    with file.open("r+b") as opened:
        opened.truncate(2**37)  # sparse
    with pytest.raises(InputError, match="larger than"):
        sets.questions(file)


def loaded(folder: Path, library: Library, qrels: str, search_filter: SearchFilter = ANY) -> dict[str, dict[str, int]]:
    queries = written(folder, "q.tsv", "1\tasthma\n2\tgout\n")
    question_set = sets.read_judged(queries, written(folder, "r.txt", qrels), library, search_filter)
    return {question: dict(judged) for question, judged in question_set.judgements.items()}


def test_a_document_by_its_id_key_and_file_and_by_a_passage(
    tmp_path: Path, library: Library, ids: dict[str, str]
) -> None:
    (key,) = (document.key for document in library.catalogue.documents() if document.id == ids["n3"])
    gloves = next(document.id for document in library.catalogue.documents() if document.source.endswith("gloves.txt"))
    passage = next(one.id for one in library.lexical.all_passages() if one.document_id == ids["n5"])
    lines = f"1 0 {ids['n3']} 2\n2\t0\tgloves\t1\n\n1 0 {key} 1\r\n2 Q0 n4 -2\n1 0 {passage} 3\n"
    assert loaded(tmp_path, library, lines) == {
        "1": {ids["n3"]: 2, ids["n5"]: 3},  # the highest of two judgements counts
        "2": {gloves: 1, ids["n4"]: 0},  # below 0 is junk
    }


@pytest.mark.parametrize("name", ["notes", "shared:1", "1"])
def test_a_name_of_several_documents_is_an_error(tmp_path: Path, library: Library, name: str) -> None:
    with pytest.raises(InputError, match=r"fits several documents \(1\): 2\. "):
        loaded(tmp_path, library, f"1 0 n1 1\n1 0 {name} 1\n")


def test_what_is_not_in_the_library_is_left_out_and_counted(tmp_path: Path, library: Library) -> None:
    queries, qrels = written(tmp_path, "q.tsv", "1\tx\n"), written(tmp_path, "r.txt", "1 0 n1 1\n1 0 a 1\n1 0 b 0\n")
    question_set = sets.read_judged(queries, qrels, library, ANY)
    assert message("evaluation.note.lost", count=2) in question_set.notes
    with pytest.raises(InputError, match="none of the 1 judged documents"):
        loaded(tmp_path, library, "1 0 nowhere 1\n")
    with pytest.raises(InputError, match="none of the 1 judged documents"):
        loaded(tmp_path, library, "1 0 n1 1\n", SearchFilter(collections=("other",)))


def test_judged_questions_that_are_not_asked_and_the_leading_measure(tmp_path: Path, library: Library) -> None:
    with pytest.raises(InputError, match=r"not in q\.tsv \(2\): 2, 3$"):
        loaded(tmp_path, library, "1 0 n1 1\n3 0 n1 1\n4 0 n1 1\n")
    for grade, measure in ((1, "MRR@10"), (2, "nDCG@10")):
        qrels = written(tmp_path, "r.txt", f"1 0 n1 {grade}\n")
        assert sets.read_judged(tmp_path / "q.tsv", qrels, library, ANY).measure == measure


def test_questions_that_nothing_answers_are_left_out_and_counted() -> None:
    questions = tuple(Question(str(number), "text") for number in range(4))
    judged = {"0": {"a": 2}, "1": {"a": 1}, "2": {"b": 3}}  # "1" has a useless document only, "3" none at all
    kept = QuestionSet("s", questions, judged, relevant_from=2).answerable()
    assert [question.id for question in kept.questions] == ["0", "2"]
    assert set(kept.judgements) == {"0", "2"}
    assert "text" not in repr(kept)
    assert kept.notes == (message("evaluation.note.left_out", count=2, questions=4),)
    with pytest.raises(InputError, match="1 of 4 questions have a relevant document"):
        QuestionSet("s", questions, judged, relevant_from=3).answerable()
