"""A term's card: which concept, which relations first, and what it says of itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from localmed.domain import message
from localmed.domain.errors import UnknownName
from localmed.library.graph import FILE, Graph, Source
from localmed.library.terms import Term
from localmed.retrieval.concepts import RERANKED, SHOWN, Card, Cosine, card, sentence
from tests.fakes import HashedWords
from tests.words import pattern

HUB = 5_000  # relations; more than any concept of the ontologies, fewer than UMLS's largest

DRUGS = (
    Term("DB1", "Alphadrug", relations=(("DB1", "interacts_with", "DB2", "non-interruptive"),)),
    Term("DB2", "Betadrug", relations=(("DB0", "interacts_with", "DB1", "high priority"),)),
    Term("DB0", "Gammadrug"),
    Term("DB1", "Alphadrug", relations=(("DB1", "is_a", "class", ""), ("part", "is_a", "DB1", ""))),
)


class Longest:
    """A ``Reranker`` that prefers long sentences; remembers how many it read."""

    name = "longest 1"

    def __init__(self) -> None:
        self.read = 0

    def score(self, question: str, passages: Sequence[str], keep: bool = False) -> Sequence[float]:
        self.read = len(passages)
        return [float(len(passage)) for passage in passages]


@pytest.fixture
def drugs(tmp_path: Path) -> Iterator[Graph]:
    yield from opened(tmp_path, drugs=DRUGS)


@pytest.fixture
def kidneys(tmp_path: Path) -> Iterator[Graph]:
    yield from opened(
        tmp_path,
        doid=[
            Term(
                "D:2", "chronic kidney disease", "",
                (("CKD", "", "abbreviation"), ("Chronic Kidney Diseases", "", "exact"), ("weak kidneys", "", "broad")),
                xrefs=("C0000002", "ICD10:N18"),
            ),
            Term("D:3", "cake", names=(("CKD", "", "exact"),)),
        ],
        umls=[Term("C0000002", "Renal Insufficiency", "Kidneys that do too little.",
                   relations=(("C0000002", "has_finding", "C0000003", "NCI"),)),
              Term("C0000003", "tiredness")],
    )  # fmt: skip


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Graph]:
    """A term with thousands of relations."""
    terms = [Term("D:0", "fever")]
    terms += [Term(f"D:{n}", f"condition {n}", relations=((f"D:{n}", "causes", "D:0", ""),)) for n in range(1, HUB + 1)]
    yield from opened(tmp_path, doid=terms)


def opened(folder: Path, **contents: Iterable[Term]) -> Iterator[Graph]:
    writing = Graph(folder / FILE, writable=True)
    for name, terms in contents.items():
        number = writing.put_source(Source(name, name, name.upper(), "2024"))
        writing.add(number, terms)
        writing.keep(number)
    writing.close()
    reading = Graph(folder / FILE)
    yield reading
    reading.close()


def shown(term: Card) -> list[str]:
    return [sentence(relation) for relation in term.relations]


# --- which concept ---------------------------------------------------------------------------------------------


def test_a_card_is_put_together_across_sources(kidneys: Graph) -> None:
    term = card(kidneys, "Chronic kidney disease")
    assert term.concept.id == "D:2"
    assert term.concept.definition == "Kidneys that do too little."
    assert term.concept.defined_in == Source("umls", "umls", "UMLS", "2024")
    assert term.synonyms == ("CKD", "weak kidneys")  # a plural is no synonym
    assert (term.same, term.codes) == (("C0000002",), ("ICD10:N18",))
    assert shown(term) == ["Renal Insufficiency has finding tiredness NCI"]


def test_an_ambiguous_name_names_the_others(kidneys: Graph) -> None:
    term = card(kidneys, "CKD")
    assert term.concept.id == "D:3"
    assert [other.id for other in term.others] == ["D:2"]


def test_an_abbreviation_is_read_as_the_text_spells_it_out(kidneys: Graph) -> None:
    texts: list[str] = []

    def expand(text: str) -> Mapping[str, str]:
        texts.append(text)
        return {"CKD": "chronic kidney disease", "XYZ": "unknown thing"}

    for text in ("chronic kidney disease (CKD)", "CKD (chronic kidney disease)", "chronic kidney disease（CKD）"):
        term = card(kidneys, "CKD", expand=expand, context=text)
        assert term.concept.id == "D:2"
        assert term.notes == (message("graph.spelled_out"),)
    assert card(kidneys, "CKD", "chronic kidney disease (CKD)", expand=expand).concept.id == "D:2"
    assert len(texts) == 4
    assert card(kidneys, "CKD", "is CKD dangerous?", expand=expand).concept.id == "D:3"
    assert len(texts) == 4  # a text without brackets is not worth two seconds
    assert card(kidneys, "CKD", "another thing (CKD)", expand=lambda text: {}).concept.id == "D:3"


def test_without_the_detector_the_card_says_so(kidneys: Graph) -> None:
    term = card(kidneys, "CKD", "chronic kidney disease (CKD)", expand=lambda text: None)
    assert term.concept.id == "D:3"
    assert term.notes == (message("graph.no_abbreviations"),)


def test_an_unknown_term_is_told_with_near_names_and_without_itself(kidneys: Graph) -> None:
    with pytest.raises(UnknownName) as caught:
        card(kidneys, "chronic kidny disease")
    assert "chronic kidney disease" in caught.value.what
    assert "kidny" not in str(caught.value)
    with pytest.raises(UnknownName, match=pattern("graph.unknown")):
        card(kidneys, "?" * 20_000)


# --- which relations -------------------------------------------------------------------------------------------


def test_without_a_question_kind_then_severity(drugs: Graph) -> None:
    term = card(drugs, "alphadrug")
    assert shown(term) == [
        "Alphadrug is a class",
        "Alphadrug interacts with Gammadrug high priority",
        "Alphadrug interacts with Betadrug non-interruptive",
        "part is a Alphadrug",
    ]
    assert term.ordered_by == "kind"


def test_a_question_s_words_come_first(drugs: Graph) -> None:
    term = card(drugs, "Alphadrug", "May alphadrug be given with betadrugs?")
    assert shown(term)[0] == "Alphadrug interacts with Betadrug non-interruptive"
    assert term.ordered_by == "words"


def test_a_reranker_has_the_last_word(drugs: Graph) -> None:
    longest = Longest()
    term = card(drugs, "Alphadrug", "is it a class of its own", longest)
    assert shown(term)[0] == "Alphadrug interacts with Betadrug non-interruptive"
    assert term.ordered_by == "longest 1"
    assert longest.read == 4
    assert card(drugs, "Alphadrug", "", longest).ordered_by == "kind"


def test_a_language_that_the_model_does_not_know_is_ordered_by_words(drugs: Graph) -> None:
    term = card(drugs, "Alphadrug", "这种药有什么相互作用？", Longest(), languages=("en",))
    assert term.ordered_by == "words"
    assert term.notes == (message("graph.by_words"),)


def test_the_encoder_as_a_reranker(drugs: Graph) -> None:
    cosine = Cosine(HashedWords())
    assert cosine.name == "cosine of hashed-words 1"
    term = card(drugs, "Alphadrug", "Alphadrug interacts with Betadrug non-interruptive", cosine)
    assert shown(term)[0] == "Alphadrug interacts with Betadrug non-interruptive"


def test_of_thousands_of_relations_the_best_are_shown_and_few_reranked(hub: Graph) -> None:
    longest = Longest()
    term = card(hub, "fever", "does condition 4711 cause it", longest)
    assert term.total == HUB
    assert len(term.relations) == SHOWN
    assert longest.read == RERANKED
    assert shown(card(hub, "fever", "does condition 4711 cause it"))[0] == "condition 4711 causes fever"
