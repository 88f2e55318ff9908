from __future__ import annotations

from localmed.domain import Collection, Kind, SearchFilter, Status
from localmed.retrieval.tiers import Tier, by_preset, by_priority, tiers_of

EBM = (("guideline",), ("literature",), ("book", "wiki"))
THERE = [
    Collection("nice", "NICE", 10, kind=Kind.GUIDELINE),
    Collection("who", "WHO", 10, kind=Kind.GUIDELINE),
    Collection("pubmed", "PubMed", 20, kind=Kind.LITERATURE),
    Collection("books", "Books", 30, kind=Kind.BOOK),
    Collection("ward", "Ward", 100),
    Collection("empty", "Empty", 5, kind=Kind.WIKI),
]
FILLED = {"nice", "who", "pubmed", "books", "ward"}


def test_equal_priority_is_one_tier_and_the_lowest_number_comes_first() -> None:
    assert by_priority(THERE[::-1], FILLED) == (
        Tier(("who", "nice")),
        Tier(("pubmed",)),
        Tier(("books",)),
        Tier(("ward",)),
    )
    assert by_priority([], set()) == ()


def test_a_preset_names_kinds_and_collections_and_each_stands_once() -> None:
    assert by_preset(EBM, THERE, FILLED) == (Tier(("nice", "who")), Tier(("pubmed",)), Tier(("books",), ("empty",)))
    preset = (("who",), ("guideline", "ward"), ("who", "books"))
    assert by_preset(preset, THERE, FILLED) == (Tier(("who",)), Tier(("nice", "ward")), Tier(("books",)))


def test_what_is_missing_is_skipped_by_its_name() -> None:
    assert by_preset((("leaflet",), ("nowhere", "book")), THERE, FILLED) == (
        Tier((), ("leaflet",)),
        Tier(("books",), ("nowhere",)),
    )
    assert by_preset(EBM, [], set()) == (
        Tier((), ("guideline",)),
        Tier((), ("literature",)),
        Tier((), ("book", "wiki")),
    )


def test_a_collection_asked_for_by_name_is_searched_even_if_the_preset_does_not_name_it() -> None:
    assert tiers_of(EBM, THERE, FILLED, ("ward",)) == (Tier(("ward",)),)
    assert tiers_of(EBM, THERE, FILLED, ("ward", "pubmed")) == (Tier(("pubmed",)), Tier(("ward",)))


def test_the_whole_library_in_one_tier_needs_no_condition() -> None:
    one = [Collection("a", "A"), Collection("b", "B"), Collection("none", "None")]
    (tier,) = tiers_of((), one, {"a", "b"}, ())
    assert tier == Tier(("a", "b"), whole=True)
    filters = SearchFilter(language="zh", statuses=(Status.SUPERSEDED,))
    assert tier.limit(filters) == filters
    assert Tier(("a",)).limit(filters) == SearchFilter(("a",), "zh", statuses=(Status.SUPERSEDED,))
    assert not any(tier_.whole for tier_ in tiers_of(EBM, THERE, FILLED, ()))
    (only,) = tiers_of((), one, {"a", "b"}, ("a",))
    assert only.limit(SearchFilter(("a",))) == SearchFilter(("a",))
