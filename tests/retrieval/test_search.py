from __future__ import annotations

from collections.abc import Iterator

import pytest

from localmed.config import LibrarySettings, SearchSettings
from localmed.domain import Collection, Document, Message, Passage, SearchFilter, digest, message
from localmed.errors import WrongEncoder
from localmed.library.lexical import LexicalIndex
from localmed.library.library import Library, build
from localmed.retrieval.relevance import Fitted, Point, Question, fitted, judged, reason, upper_bound, weigh
from localmed.retrieval.search import HybridSearch
from localmed.retrieval.topics import other_names
from tests.fakes import HashedWords
from tests.values import hit, passage

TEXTS = [
    ("Sepsis", "Give antibiotics within one hour of recognition of septic shock.", "en"),
    ("Asthma", "Salbutamol is inhaled during an attack of asthma.", "en"),
    ("Paracetamol", "The maximum dose of paracetamol is 4 g in 24 hours.", "en"),
    ("探视指南", "普通病房的探视时间为每天14:00至19:30。", "zh"),
    ("发热", "儿童发热可以用对乙酰氨基酚。", "zh"),
]
EVERYTHING = SearchFilter()


def _document(passage: Passage) -> Document:
    return Document(passage.document_id, "c", passage.title, passage.title, passage.language, passage.title, "0" * 64,
                    digest(passage.text), "text/plain", passages=1)  # fmt: skip


@pytest.fixture(scope="module")
def encoder() -> HashedWords:
    return HashedWords()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, encoder: HashedWords) -> Iterator[Library]:
    data = tmp_path_factory.mktemp("data")
    (data / "files").mkdir()
    passages = [passage(text, title, language=language) for title, text, language in TEXTS]
    with build(data, encoder.identity, LibrarySettings()) as builder:
        builder.put_collection(Collection("c", "C"))
        for stored in passages:
            builder.put(_document(stored))
        builder.add(passages, encoder.encode([passage.text for passage in passages], "passage"))
        builder.publish(message("generation.made.upgrade"))
    with Library.open(data) as opened:
        yield opened


@pytest.fixture
def search(library: Library, encoder: HashedWords) -> HybridSearch:
    encoder.encoded.clear()
    return HybridSearch(library, encoder, SearchSettings())


def test_english_is_searched_both_ways(search: HybridSearch) -> None:
    result = search.search("antibiotics in septic shock", EVERYTHING, 3)
    assert result.dense
    assert result.language == "en"
    best = result.hits[0]
    assert best.passage.title == "Sepsis"
    assert (best.dense_rank, best.lexical_rank) == (0, 0)
    assert best.similarity is not None
    assert best.lexical_score is not None
    assert [hit_.score for hit_ in result.hits] == sorted((hit_.score for hit_ in result.hits), reverse=True)


def test_chinese_is_searched_by_words_and_says_so(search: HybridSearch, encoder: HashedWords) -> None:
    result = search.search("探视时间", EVERYTHING, 3)
    assert not result.dense
    assert result.language == "zh"
    assert result.hits[0].passage.title == "探视指南"
    assert all(hit_.similarity is None and hit_.dense_rank == -1 for hit_ in result.hits)
    assert encoder.encoded == []


@pytest.mark.parametrize("question", ["", "  ", "?!", "，。", "the of and"])
def test_without_words_nothing_is_found(search: HybridSearch, encoder: HashedWords, question: str) -> None:
    result = search.search(question, EVERYTHING, 3)
    if question != "the of and":
        assert result.hits == ()
        assert encoder.encoded == []


def test_the_limit_and_the_filter_hold(search: HybridSearch) -> None:
    assert len(search.search("dose of antibiotics in asthma", EVERYTHING, 2).hits) == 2
    chinese = search.search("paracetamol dose", SearchFilter(language="zh"), 5)
    assert {hit_.passage.language for hit_ in chinese.hits} <= {"zh"}
    assert search.search("paracetamol", SearchFilter(collections=("other",)), 5).hits == ()


def test_only_the_beginning_of_a_long_question_counts(search: HybridSearch, encoder: HashedWords) -> None:
    search.search("asthma " * 3000, EVERYTHING, 1)
    assert max(map(len, encoder.encoded)) <= SearchSettings().query_characters


def test_the_same_every_time(search: HybridSearch) -> None:
    first = search.search("dose in asthma and sepsis", EVERYTHING, 5)
    assert all(search.search("dose in asthma and sepsis", EVERYTHING, 5) == first for _ in range(3))


def test_another_encoder_is_refused(library: Library) -> None:
    with pytest.raises(WrongEncoder):
        HybridSearch(library, HashedWords("2"), SearchSettings())


# --- relevance -------------------------------------------------------------------------------------------------------

JUDGE = fitted("", "", "en")


@pytest.fixture(scope="module")
def lexical(library: Library) -> LexicalIndex:
    return library.lexical


def chance(question: str, text: str, lexical: LexicalIndex, title: str = "") -> float:
    return judged(question, [hit(text, title)], lexical, JUDGE)[0][0]


def test_relevance_grows_with_the_things_covered(lexical: LexicalIndex) -> None:
    texts = ["Nothing of it.", "Paracetamol.", "The maximum dose of paracetamol is 4 g."]
    scores = [chance("maximum dose of paracetamol", text, lexical) for text in texts]
    assert scores == sorted(scores)
    assert scores[0] < scores[-1]


def test_more_hits_never_make_less_relevant(lexical: LexicalIndex) -> None:
    good, poor = hit("The dose of paracetamol is 1 g."), hit("Asthma.")
    ((alone, _),) = judged("dose of paracetamol", (good,), lexical, JUDGE)
    assert judged("dose of paracetamol", (poor, good), lexical, JUDGE)[1][0] == alone


def test_a_thing_is_found_under_another_name(lexical: LexicalIndex) -> None:
    question = "How much Keppra is given for a fit?"
    assert chance(question, "Levetiracetam 60 mg/kg is given for a seizure.", lexical) > chance(
        question, "Phenytoin 20 mg/kg is given for a seizure.", lexical
    )


def test_a_thing_is_searched_under_the_names_that_the_library_has(lexical: LexicalIndex) -> None:
    assert "paracetamol" in other_names("How much Tylenol?", lexical).split()
    assert other_names("How much paracetamol?", lexical) == other_names("", lexical) == ""


def test_a_value_that_is_asked_for_and_not_given_counts_against(lexical: LexicalIndex) -> None:
    question = "How long is paracetamol taken in sepsis?"
    without, with_one = "Paracetamol is taken in sepsis.", "Paracetamol is taken in sepsis for 5 days."
    assert chance(question, without, lexical) < chance(question, with_one, lexical)


def test_a_passing_mention_does_not_say_what_a_thing_is(lexical: LexicalIndex) -> None:
    question = "What is sepsis?"
    passing = "Many a long stay on the ward ends in sepsis."
    assert chance(question, passing, lexical) < chance(question, passing, lexical, "Sepsis")
    assert chance(question, passing, lexical) < chance(question, "Sepsis is a long stay on many a ward.", lexical)


def test_why_a_question_is_not_answered(lexical: LexicalIndex) -> None:
    def why(question: str, text: str) -> Message:
        ((_, best),) = judged(question, [hit(text)], lexical, JUDGE)
        return reason(question, [best], lexical)

    assert why("How is epilepsy treated?", "Asthma.") == message("workflow.subject_missing", words=("epilepsy",))
    together = why("Does paracetamol help in asthma?", "Asthma is treated with an inhaler.")
    assert together == message("workflow.subject_split", words=("paracetamol",))
    price = why("What does paracetamol cost?", "Paracetamol is cheap to cost.")
    assert price.code in ("workflow.slot_missing", "workflow.subject_missing")
    assert why("paracetamol", "Paracetamol.") == message("workflow.weak")


@pytest.mark.parametrize("question", [
    "哮喘漏服一次怎么办", "asthma of 6.8", "asthma in a woman", "该什么时候吃",
])  # fmt: skip
def test_a_reason_is_only_given_where_it_is_surely_true(lexical: LexicalIndex, question: str) -> None:
    read = [one for _, one in judged(question, [hit("Asthma.")], lexical, JUDGE)]
    assert reason(question, read, lexical).code == "workflow.weak"


def test_a_value_that_no_passage_about_the_subject_gives_is_the_reason(lexical: LexicalIndex) -> None:
    read = [one for _, one in judged("哮喘一天几次", [hit("Asthma.")], lexical, JUDGE)]
    assert reason("哮喘一天几次", read, lexical).code == "workflow.slot_missing"


def test_a_passage_that_names_nothing_of_what_is_asked_about_holds_no_answer(lexical: LexicalIndex) -> None:
    assert chance("高钾血症怎么处理", "低钾血症怎么处理：补钾。", lexical) == 0
    assert chance("高钾血症怎么处理", "高血压用药后复查血钾，怎么处理见下。", lexical) == 0
    assert chance("高钾血症怎么处理", "高血钾时静推葡萄糖酸钙。", lexical) > 0
    assert chance("How is asthma treated?", "Sepsis is treated with fluids.", lexical) == 0


def test_a_medicine_is_named_by_its_class(lexical: LexicalIndex) -> None:
    question = "Can I give ramipril to a pregnant woman?"
    ours, other = "Do not give an ACE inhibitor in pregnancy.", "Do not give warfarin in pregnancy."
    assert chance(question, ours, lexical) > 2 * chance(question, other, lexical)


def test_another_encoder_or_reranker_is_not_calibrated() -> None:
    exact = fitted("all-MiniLM-L6-v2-0.1.0-384", "MaxSim over all-MiniLM-L6-v2 0.1.0, 160 pieces", "en")
    assert exact.calibrated
    assert exact.weights[0] > 0
    for encoder, reranker in (("another", ""), ("all-MiniLM-L6-v2-0.1.0-384", "another")):
        other = fitted(encoder, reranker, "en")
        assert not other.calibrated
        assert other.weights == JUDGE.weights


def test_the_threshold_follows_the_risk() -> None:
    judge = Fitted((), 0.0, (Point(0.9, 50, 100, 0, 100), Point(0.7, 80, 100, 2, 100), Point(0.5, 100, 100, 20, 100)))
    assert judge.threshold(0.3, 0.8, 0.5) == 0.5
    assert judge.threshold(0.06, 0.8, 0.5) == 0.7
    assert judge.threshold(0.001, 0.8, 0.5) == 0.9, "none keeps to it: the least risky"
    assert judge.threshold(0.0, 0.8, 0.5) > 1, "nothing is answered"
    assert judge.threshold(0.06, 0.8, 0.2) == 0.5, "where few questions have no answer more are answered"


def test_the_bound_of_clopper_and_pearson() -> None:
    assert upper_bound(0, 50, 0.95) == pytest.approx(1 - 0.05 ** (1 / 50))
    assert upper_bound(2, 40, 0.95) == pytest.approx(0.1491, abs=1e-3)  # as tabulated
    assert upper_bound(5, 5, 0.8) == upper_bound(0, 0, 0.8) == 1


def test_a_question_without_words_has_no_relevance(lexical: LexicalIndex) -> None:
    assert judged("?", (hit("x"),), lexical, JUDGE)[0][0] == 0
    assert judged("dose", (), lexical, JUDGE) == ()
    assert Question({}).coverage(["dose"]) == 0
    assert weigh("dose", lexical).coverage(["dose"]) == 1
