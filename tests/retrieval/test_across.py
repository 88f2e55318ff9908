"""Searches across languages: the bridge of names, what is searched, what is judged an answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from localmed.agents.asking import Relevance, RelevanceInput
from localmed.agents.relevance_rules import RelevanceRules
from localmed.config import AskSettings, LibrarySettings, SearchSettings
from localmed.domain import Collection, Hit, SearchFilter, message
from localmed.errors import InputError
from localmed.library.library import Library, build
from localmed.ports import EncoderIdentity
from localmed.retrieval.across import AcrossQuery, fitted_across
from localmed.retrieval.bridge import NAMED_ONLY, Bridge
from localmed.retrieval.search import Found, HybridSearch, interleaved
from tests.fakes import HashedWords
from tests.retrieval.test_search import _document
from tests.values import hit, passage

FITTED = "multilingual-e5-small-q4-0.3.0-centred-384"
TEXTS = [
    ("Status epilepticus", "Lorazepam 4 mg is given into a vein when a seizure lasts five minutes.", "en"),
    ("Catering", "The cafeteria opens at noon.", "en"),
    ("惊厥", "惊厥持续五分钟时静脉推注劳拉西泮4 mg。", "zh"),
]


class BothLanguages(HashedWords):
    """``HashedWords`` that says it knows Chinese."""

    def __init__(self) -> None:
        super().__init__()
        self.identity = EncoderIdentity("hashed-words", "2", self.identity.dimensions, ("en", "zh"))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    data, encoder = tmp_path_factory.mktemp("data"), BothLanguages()
    (data / "files").mkdir()
    passages = [passage(text, title, language=language) for title, text, language in TEXTS]
    with build(data, encoder.identity, LibrarySettings()) as builder:
        builder.put_collection(Collection("c", "C"))
        for stored in passages:
            builder.put(_document(stored))
        builder.add(passages, np.concatenate([encoder.encode([one.text], "passage") for one in passages]))
        builder.publish(message("generation.made.upgrade"))
    with Library.open(data) as opened:
        yield opened


def test_a_question_is_searched_under_its_names_in_the_other_language(library: Library) -> None:
    assert library.catalogue.languages() == ("en", "zh")
    search = HybridSearch(library, BothLanguages(), SearchSettings(dense_weight=0.0))
    result = search.search("抽搐时劳拉西泮推多少", SearchFilter(language="en"), 5)
    assert [one.passage.title for one in result.hits] == ["Status epilepticus"]  # by words alone nothing is shared
    assert (
        search.search("How much lorazepam for a fit?", SearchFilter(language="zh"), 5).hits[0].passage.title == "惊厥"
    )


def test_the_bridge_knows_tables_and_the_glossary_of_the_site(tmp_path: Path) -> None:
    assert "lorazepam" in NAMED_ONLY.words("劳拉西泮推多少，eGFR 30", "en").split()
    assert {"eGFR", "30"} <= set(NAMED_ONLY.words("劳拉西泮推多少，eGFR 30", "en").split())
    glossary = tmp_path / "glossary.csv"
    glossary.write_text("﻿sunrise ward,晨曦病房\nonly one column\n", "utf-8")
    bridge = Bridge(None, str(glossary))
    assert bridge.words("晨曦病房在哪里", "en").endswith("sunrise ward")
    assert "晨曦病房" in bridge.words("Where is the sunrise ward?", "zh")
    with pytest.raises(InputError):
        Bridge(None, str(tmp_path / "absent.csv")).words("晨曦病房", "en")


def test_what_the_question_names_must_stand_there(library: Library) -> None:
    right, _, _ = (Hit(passage(text, title, language=language), 1.0, 0.4) for title, text, language in TEXTS)
    query = AcrossQuery.of("抽搐时劳拉西泮推多少", "en", NAMED_ONLY, library.lexical)
    similarity, held, sentence, unfilled, _ = query.signals(right, library.lexical, 0.0)
    assert (similarity, held, sentence, unfilled) == (0.4, 1.0, 1.0, 0.0)
    other = AcrossQuery.of("左乙拉西坦推多少", "en", NAMED_ONLY, library.lexical)
    assert other.signals(right, library.lexical, 0.0)[1] == 0.0
    unanswered = hit("Lorazepam is given for a seizure.", similarity=0.4)
    dose = AcrossQuery.of("抽搐时劳拉西泮的剂量是多少", "en", NAMED_ONLY, library.lexical)
    assert dose.signals(unanswered, library.lexical, 0.0)[2:4] == (0.0, 1.0)  # no dose stands there


def test_only_the_encoder_that_was_fitted_answers_across_languages(library: Library) -> None:
    hits = (Hit(passage(TEXTS[0][1], TEXTS[0][0]), 1.0, 0.6),)

    def judged(encoder: str, question: str) -> Relevance:
        rules = RelevanceRules(library.lexical, encoder, AskSettings())
        return rules.judge(RelevanceInput(question, hits, True))

    assert judged(FITTED, "抽搐时劳拉西泮推多少").enough
    assert not judged(FITTED, "左乙拉西坦推多少").enough
    assert not judged(FITTED, "开放时间").enough  # nothing is named that the bridge knows
    assert not judged("another-1-8", "抽搐时劳拉西泮推多少").enough
    assert fitted_across(FITTED).threshold <= 1 < fitted_across("another-1-8").threshold


def test_hits_of_both_languages_are_shown_each_in_its_own_order() -> None:
    own = Found(tuple(hit(f"own {number}") for number in range(3)), True, "en")
    other = Found(tuple(hit(f"其他 {number}", language="zh") for number in range(3)), True, "en")
    texts = [one.passage.text for one in interleaved(own, [other], 5).hits]
    assert texts == ["own 0", "own 1", "其他 0", "own 2", "其他 1"]
    assert interleaved(own, [], 2).hits == own.hits[:2]
    assert len(interleaved(own, [own], 9).hits) == 3  # none twice
