"""Known-item sets and LiveQA's judgements, on files of the same form as the published ones."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from localmed.config import LibrarySettings, Settings
from localmed.domain import Document, SearchFilter, message
from localmed.domain.errors import InputError, UsageError
from localmed.ingest.parsed import FieldMapping
from localmed.lab import medquad, pubmedqa, sets
from localmed.lab.sets import Question, QuestionSet
from localmed.library.library import Library
from tests.fakes import described, import_into, write
from tests.words import pattern

ANY = SearchFilter()
# Sections 2 and 3 of the judged document; the published file lost section 1, so its numbers are one less.
XML = """<?xml version="1.0" encoding="UTF-8"?>
<Document id="0000007" source="{source}" url="http://example.org/"><Focus>{focus}</Focus><QAPairs>
<QAPair pid="1"><Question qid="0000007-1">What causes {focus} ?</Question><Answer>{focus}: causes,
   over two lines.</Answer></QAPair>
<QAPair pid="2"><Question qid="0000007-2">How to treat {focus} ?</Question><Answer>{focus}: rest.</Answer></QAPair>
<QAPair pid="3"><Question qid="0000007-3">Who gets {focus} ?</Question><Answer> </Answer></QAPair>
</QAPairs></Document>"""
LIVEQA = """<LiveQA><NLM-QUESTION qid="TQ1"><Original-Question><SUBJECT>s</SUBJECT><MESSAGE>my gout hurts</MESSAGE>
</Original-Question><NLM-Summary>What treats gout?</NLM-Summary></NLM-QUESTION>
<NLM-QUESTION qid="TQ2"><Original-Question><MESSAGE>why flu</MESSAGE></Original-Question>
<NLM-Summary>What causes flu?</NLM-Summary></NLM-QUESTION></LiveQA>"""
JUDGEMENTS = """1 4-Excellent A_0000007_Sec3.txt
1 2-Related A_0000007_Sec2.txt
1 3-Incomplete A_0000007_Sec2.txt
1 4-Excellent ADAM_0000009_Sec1.txt
2 3-Incomplete B_0000007_Sec2.txt
2 1-Incorrect A_0000007_Sec2.txt
"""
ANSWERS = {
    "A_0000007_Sec2.txt": "Question: What causes gout ? (Also: x)\nURL: u\nAnswer: gout: causes, over two lines.",
    "A_0000007_Sec3.txt": "Question: How to treat gout ?\nURL: u\nAnswer: gout: rest.",
    "B_0000007_Sec2.txt": "Question: What causes flu ?\nURL: u\nAnswer: flu: causes, over two   lines.",
    "ADAM_0000009_Sec1.txt": "Question: ?\nURL: u\nAnswer: not published any more",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders whose files and records have the same ids."""
    files = {
        f"{source}/0000007.xml": XML.format(source=source, focus=focus)
        for source, focus in (("A", "gout"), ("B", "flu"))
    }
    return write(tmp_path_factory.mktemp("medquad"), files)


def imported(data: Path, folder: Path, questions: bool) -> Settings:
    settings = Settings(data, library=LibrarySettings(writer_memory_bytes=15_000_000))
    mapping = FieldMapping({}, {"index_questions": questions})
    import_into(settings, folder, manifest=described("medquad", reader="medquad", mapping=mapping))
    return settings


@pytest.fixture(scope="module")
def medquad_library(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Library]:
    with Library.open(imported(tmp_path_factory.mktemp("data") / "data", folder, False).data) as library:
        yield library


@pytest.fixture
def documents(medquad_library: Library) -> list[Document]:
    return medquad_library.catalogue.documents("medquad")


def archive(file: Path, judgements: str = JUDGEMENTS, answers: dict[str, str] = ANSWERS) -> Path:
    table = io.StringIO()
    csv.writer(table).writerows([("AnswerID", "Answer"), *answers.items()])
    with zipfile.ZipFile(file, "w") as opened:
        opened.writestr("QA/judged.txt", judgements)
        opened.writestr("QA/answers.csv", table.getvalue())
        opened.writestr("__MACOSX/QA/._answers.csv", "x")
    return file


def liveqa(folder: Path, work: Path, documents: list[Document], wording: str = "summary") -> QuestionSet:
    (work / "q.xml").write_text(LIVEQA, "utf-8")
    return medquad.liveqa(folder, work / "q.xml", archive(work / "a.zip"), documents, ANY, wording)


# --- samples ---------------------------------------------------------------------------------------------------


def test_samples_do_not_depend_on_the_order_and_do_not_overlap() -> None:
    pairs = [(f"question {number}", f"record {number:05}") for number in range(3000)]
    reported, tuning = sets.sample(pairs), sets.tuning_sample(pairs)
    assert reported == sets.sample(pairs[::-1])
    assert tuning == sets.tuning_sample(pairs[::-1])
    assert len(reported) == len(tuning) == 1000
    assert not set(reported) & set(tuning)
    assert sets.sample(pairs, 50, 2) != sets.sample(pairs, 50, 1)
    assert len(sets.sample(pairs[:10])) == 10
    assert sets.tuning_sample(pairs[:10]) == []


def test_questions_that_nothing_answers_are_left_out_and_counted() -> None:
    questions = tuple(Question(str(number), "text") for number in range(4))
    judged = {"0": {"a": 2}, "1": {"a": 1}, "2": {"b": 3}}  # "1" has a useless document only, "3" none at all
    kept = QuestionSet("s", questions, judged, relevant_from=2).answerable()
    assert [question.id for question in kept.questions] == ["0", "2"]
    assert set(kept.judgements) == {"0", "2"}
    assert kept.notes == (message("evaluation.note.left_out", count=2, questions=4),)
    with pytest.raises(InputError, match="1 of 4 questions has a relevant document"):
        QuestionSet("s", questions, judged, relevant_from=3).answerable()


def test_a_question_is_in_no_representation(questions: QuestionSet) -> None:
    assert "treatment" not in repr(questions)


# --- known items -------------------------------------------------------------------------------------------------


def test_medquad_records_are_told_apart_by_their_folders(folder: Path, documents: list[Document]) -> None:
    pairs = medquad.questions(folder)
    assert pairs == [
        ("What causes gout ?", "A/0000007.xml#0000007-1"),
        ("How to treat gout ?", "A/0000007.xml#0000007-2"),
        ("What causes flu ?", "B/0000007.xml#0000007-1"),
        ("How to treat flu ?", "B/0000007.xml#0000007-2"),
    ]
    known = sets.known_item("m", pairs, medquad.records(documents), ANY)
    assert len({document for judged in known.judgements.values() for document in judged}) == 4
    assert {document for judged in known.judgements.values() for document in judged} == {
        document.id for document in documents
    }
    assert known.notes == ()


def test_none_of_the_records_or_no_question_at_all(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none of the 4 records"):
        sets.known_item("m", medquad.questions(folder), {}, ANY)
    with pytest.raises(InputError, match="no question"):
        sets.known_item("m", medquad.questions(tmp_path), {}, ANY)
    with pytest.raises(InputError, match="not a folder"):
        medquad.questions(folder / "A" / "0000007.xml")


def test_indexed_questions_are_refused(folder: Path, tmp_path: Path, medquad_library: Library) -> None:
    pairs, search_filter = medquad.questions(folder), SearchFilter(collections=("medquad",))
    with Library.open(imported(tmp_path / "data", folder, True).data) as library:
        documents = medquad.records(library.catalogue.documents("medquad"))
        with pytest.raises(UsageError, match=pattern("evaluation.indexed.what")):
            sets.refuse_indexed_questions(library, sets.known_item("m", pairs, documents, search_filter))
    documents = medquad.records(medquad_library.catalogue.documents("medquad"))
    sets.refuse_indexed_questions(medquad_library, sets.known_item("m", pairs, documents, search_filter))


def test_pubmedqa(tmp_path: Path) -> None:
    file = tmp_path / "ori_pqal.json"
    file.write_text(json.dumps({"11": {"QUESTION": "Is  rest\ngood?", "CONTEXTS": ["x"]}}))
    assert pubmedqa.questions(file) == [("Is rest good?", "11")]


@pytest.mark.parametrize("content", ["", "[]", "{", '{"1": {}}', '{"1": {"QUESTION": 7}}', '{"1": null}'])
def test_what_is_not_pubmedqa(tmp_path: Path, content: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(content)
    with pytest.raises(InputError, match="is not PubMedQA's"):
        pubmedqa.questions(file)


def test_xml_that_expands_is_refused(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><Document><QAPair>&b;</QAPair></Document>'
    write(tmp_path, {"A/1.xml": bomb})
    with pytest.raises(InputError, match="not well-formed"):
        medquad.questions(tmp_path)


# --- LiveQA's judgements -------------------------------------------------------------------------------------------


def test_judged_answers_are_found_by_their_text(folder: Path, tmp_path: Path, documents: list[Document]) -> None:
    stored = medquad.records(documents)
    question_set = liveqa(folder, tmp_path, documents)
    assert [(question.id, question.text) for question in question_set.questions] == [
        ("1", "What treats gout?"),
        ("2", "What causes flu?"),
    ]
    assert question_set.judgements == {
        "1": {stored["A/0000007.xml#0000007-2"]: 3, stored["A/0000007.xml#0000007-1"]: 2},
        "2": {stored["B/0000007.xml#0000007-1"]: 2, stored["A/0000007.xml#0000007-1"]: 0},
    }
    assert question_set.relevant_from == 2
    assert message("evaluation.note.judgements", count=5, judgements=6) in question_set.notes
    assert message("evaluation.note.grades") in question_set.notes


def test_other_wordings(folder: Path, tmp_path: Path, documents: list[Document]) -> None:
    assert liveqa(folder, tmp_path, documents, "original").questions[0].text == "my gout hurts"
    with pytest.raises(InputError, match="no question with a paraphrase"):
        liveqa(folder, tmp_path, documents, "paraphrase")


@pytest.mark.parametrize(
    ("judgements", "problem"),
    [
        ("", "0 lines"),
        ("1 5-Best A_0000007_Sec3.txt\n", r"1 line .*: 1"),
        ("1 4-Excellent A_0000007_Sec3.txt\n1 4-Excellent\n", r"1 line .*: 2"),
        ("9 4-Excellent A_0000007_Sec3.txt\n", "judges 1 question"),
    ],
)
def test_bad_judgements(folder: Path, tmp_path: Path, documents: list[Document], judgements: str, problem: str) -> None:
    (tmp_path / "q.xml").write_text(LIVEQA, "utf-8")
    file = archive(tmp_path / "a.zip", judgements)
    with pytest.raises(InputError, match=problem):
        medquad.liveqa(folder, tmp_path / "q.xml", file, documents, ANY, "summary")


def test_bad_archives(folder: Path, tmp_path: Path, documents: list[Document]) -> None:
    (tmp_path / "q.xml").write_text(LIVEQA, "utf-8")
    broken, empty = tmp_path / "broken.zip", tmp_path / "empty.zip"
    broken.write_bytes(archive(tmp_path / "a.zip").read_bytes()[:100])
    with zipfile.ZipFile(empty, "w") as opened:
        opened.writestr("readme", "x")
    for file, problem in ((broken, "not a readable ZIP"), (empty, "0 files .txt")):
        with pytest.raises(InputError, match=problem):
            medquad.liveqa(folder, tmp_path / "q.xml", file, documents, ANY, "summary")
