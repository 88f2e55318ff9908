"""Studies from a real library: BM25 over title, abstract and MeSH, statuses, and references found by name."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localmed.config import Settings
from localmed.domain import Kind, Status
from localmed.library.library import Library
from localmed.retrieval.studies import STUDY_CHARACTERS, Reference, Study, bm25, find, named
from tests.fakes import described, documents, import_into, jsonl, withdraw, write

RECORDS: tuple[dict[str, Any], ...] = (
    {"id": "plain", "title": "A trial in adults", "text": "Aspirin was compared with placebo after stroke.",
     "identifiers": ["pmid:1", "doi:10.1/a"], "publication_types": ["Clinical Trial"]},
    {"id": "indexed", "title": "A trial in adults too", "text": "Aspirin was compared with placebo after stroke.",
     "mesh": ["Secondary Prevention", "Stroke"], "identifiers": ["pmid:2"]},
    {"id": "gone", "title": "Aspirin and stroke: a retracted trial", "text": "Aspirin prevents stroke: aspirin.",
     "status": "withdrawn", "identifiers": ["pmid:3"]},
    {"id": "other", "title": "Insulin in diabetes of the young", "text": "Insulin lowers glucose.",
     "relations": [["comment_on", "pmid:1"]]},
    {"id": "zh", "title": "阿司匹林与脑卒中二级预防研究", "text": "阿司匹林可预防脑卒中。", "language": "zh"},
)  # fmt: skip
QUERY = "secondary prevention of stroke with aspirin"


@pytest.fixture
def library(settings: Settings, corpus: Path) -> Any:
    manifest = described("pubmed")
    manifest = replace(manifest, collection=replace(manifest.collection, kind=Kind.LITERATURE))
    import_into(settings, write(corpus, {"studies.jsonl": jsonl(*RECORDS)}), manifest=manifest)
    with Library.open(settings.data) as opened:
        yield opened


def keys(studies: tuple[Study | None, ...]) -> list[str]:
    return [study.document.key.rpartition("#")[2] if study else "" for study in studies]


def test_mesh_headings_decide_between_equal_abstracts(library: Library, settings: Settings) -> None:
    results = find(library, QUERY, 15, ("pubmed",), settings.search)
    order = keys(results)
    assert order.index("indexed") < order.index("plain")
    assert find(library, "placebo aspirin", 15, ("pubmed",), settings.search), "without MeSH all the same"
    plain = results[order.index("plain")]
    assert (plain.kind, plain.document.publication_types) == (Kind.LITERATURE, ("Clinical Trial",))
    assert plain.text == "Aspirin was compared with placebo after stroke."
    assert find(library, QUERY, 15, (), settings.search) == ()
    assert find(library, "zyxwvut", 15, ("pubmed",), settings.search) == ()


def test_what_may_not_count_is_returned_beside_the_wanted_number(library: Library, settings: Settings) -> None:
    results = find(library, QUERY, 2, ("pubmed",), settings.search)
    counting = [study for study in results if study.document.status is Status.CURRENT]
    assert len(counting) == 2
    assert "gone" in keys(results), "it stands among the best"


def test_a_withdrawal_takes_effect_at_once(library: Library, settings: Settings) -> None:
    document = documents(settings)["studies.jsonl#plain"]
    withdraw(settings.data, document)
    results = find(library, QUERY, 15, ("pubmed",), settings.search)
    assert {study.document.id: study.document.status for study in results}[document.id] is Status.WITHDRAWN


def test_references_by_identifier_title_and_id(library: Library) -> None:
    passage = next(candidate for candidate in library.lexical.all_passages() if candidate.title.startswith("Insulin"))
    references = (
        Reference("1", identifiers=("pmid:1",)),
        Reference("2", "Lee K. Something. 2020.", ("doi:10.1/a",)),
        Reference("3", "Kim J. Insulin in diabetes of the young. Lancet 2020;1:2."),
        Reference("4", id=passage.id),
        Reference("5", id=passage.document_id[:12]),
        Reference("6", "王某. 阿司匹林与脑卒中二级预防研究. 2021."),
        Reference("7", "A trial in adults"),
        Reference("8", identifiers=("pmid:3",)),
        Reference("9", "Aspirin in general", ("pmid:99",)),
        Reference("10"),
        Reference("11", id="zz"),
        Reference("12", "Insulin in diabetes of the young, WHO 2016"),
        Reference("13", "Insulin in the Diabetes of the Young."),
    )
    assert keys(named(library, references)) == [
        "plain", "plain", "other", "other", "other", "zh", "plain", "gone", "", "", "", "other", "other",
    ]  # fmt: skip
    retracted = named(library, references)[7]
    assert retracted
    assert retracted.document.status is Status.WITHDRAWN


def test_an_identifier_in_a_link_to_another_is_not_its_own(library: Library) -> None:
    assert [document.key.rpartition("#")[2] for document in library.catalogue.identified(["pmid:1"])] == ["plain"]
    assert library.catalogue.identified([]) == []


def test_of_a_long_document_the_named_passage_is_read(settings: Settings, corpus: Path) -> None:
    text = "\n\n".join(f"Section {number} is about subject{number}. " + "Words follow. " * 60 for number in range(40))
    import_into(settings, write(corpus, {"book.txt": text}))
    with Library.open(settings.data) as opened:
        last = max(opened.lexical.all_passages(), key=lambda passage: int(passage.locator.split("-")[0]))
        (study,) = named(opened, (Reference("1", id=last.id),))
    assert study
    assert last.id in {passage.id for passage in study.passages}
    assert len(study.text) <= STUDY_CHARACTERS + len(study.passages)


def test_bm25_by_hand() -> None:
    """One word twice among four, mean length two: 1.5 * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 4 / 2))."""
    counts = Counter({"stroke": 2, "adult": 2})
    assert bm25({"stroke": 1.5, "dog": 9.0}, counts, 2.0) == pytest.approx(1.5 * 2 * 2.2 / (2 + 1.2 * 1.75))
    assert bm25({"stroke": 1.5}, Counter(), 1.0) == 0


def test_of_two_editions_with_one_identifier_the_one_that_may_answer_is_named(settings: Settings, corpus: Path) -> None:
    named_so = {"identifiers": ["doi:10.1/g"]}
    records = {"m": {"status": "superseded"}, "k": {}, "z": {"effective_from": "2999"}, "a": {"effective_from": "2999"}}
    files = {f"{key}.jsonl": jsonl({"id": key, "title": key, "text": f"Text {key}."} | named_so) for key in records}
    manifest = described("ward", documents={f"{key}.jsonl": facts for key, facts in records.items() if facts})
    import_into(settings, write(corpus, files), manifest=manifest)
    with Library.open(settings.data) as library:
        assert len(library.catalogue.identified(["doi:10.1/g"])) == 4
        assert keys(named(library, [Reference("1", identifiers=("doi:10.1/g",))])) == ["k"]
