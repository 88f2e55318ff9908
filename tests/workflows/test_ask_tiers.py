"""The flow of a question over tiers, replayed: which are searched, what leads, what is told of the next one."""

from __future__ import annotations

from dataclasses import replace

from localmed.agents.asking import RELEVANCE, AnswerInput, Draft, Relevance
from localmed.domain import (
    AnswerStatus,
    Badge,
    ConflictKind,
    Evidence,
    Hit,
    Kind,
    Message,
    SearchFilter,
    Status,
    message,
)
from localmed.presentation.answer import conflict_reason
from localmed.retrieval.search import Found
from localmed.retrieval.tiers import Tier
from localmed.verification.tied import Covers
from localmed.workflows.abstaining import NOT_ENOUGH
from localmed.workflows.ask import NO_TIER, ask
from localmed.workflows.finding import Plan
from localmed.workflows.flow import Cite, Perform, Search
from tests.values import PROVENANCE, evidence, in_words, quotation
from tests.workflows.test_ask import ENOUGH, TOO_LITTLE, replay, scripted

QUESTION = "What is the maximum dose of paracetamol?"
FIRST = evidence("1", "The maximum dose of paracetamol is 4 g a day.", "Paracetamol")
SECOND = evidence("2", "The maximum dose of paracetamol is 3 g a day.", "Paracetamol in practice")
PLAN = Plan((Tier(("nice", "who")), Tier(("pubmed",)), Tier(("books",))), 8)
FURTHER = replace(PLAN, further=True)


def search_result(source: Evidence) -> Found:
    return Found((Hit(source.passage, 1.0, 0.8),), True, "en")


def whole(source: Evidence) -> Draft:
    return Draft((quotation(source, 0, len(source.passage.text)),))


def searched(requests: list[object]) -> list[tuple[str, ...]]:
    return [request.filters.collections for request in requests if isinstance(request, Search)]


def test_a_helpful_tier_ends_the_search() -> None:
    answer, requests = replay([search_result(FIRST), ENOUGH, (FIRST,), whole(FIRST)], QUESTION, PLAN)
    assert searched(requests) == [("nice", "who")]
    assert answer.searched == ("nice", "who")
    assert answer.notes == ()


def test_otherwise_the_next_one_is_searched_and_leads() -> None:
    answer, requests = replay(
        [search_result(FIRST), TOO_LITTLE, search_result(SECOND), ENOUGH, (SECOND,), whole(SECOND)], QUESTION, PLAN
    )
    assert searched(requests) == [("nice", "who"), ("pubmed",)]
    assert answer.searched == ("nice", "who", "pubmed")
    assert answer.evidence == (SECOND,)
    assert [
        request.task.hits for request in requests if isinstance(request, Perform) and request.role == RELEVANCE
    ] == [
        search_result(FIRST).hits,
        search_result(SECOND).hits,
    ]
    assert [request.hits for request in requests if isinstance(request, Cite)] == [search_result(SECOND).hits]


def test_no_tier_helps() -> None:
    answer, requests = replay([search_result(FIRST), TOO_LITTLE] * 3, QUESTION, FURTHER)
    assert searched(requests) == [("nice", "who"), ("pubmed",), ("books",)]
    assert answer.status is AnswerStatus.ABSTAINED
    assert answer.searched == ("nice", "who", "pubmed", "books")
    assert answer.notes == (NOT_ENOUGH,)


def test_the_other_filters_hold_in_every_tier() -> None:
    filters = SearchFilter(language="en", edition_from="2020")
    _, requests = replay([search_result(FIRST), TOO_LITTLE] * 3, QUESTION, PLAN, filters)
    assert [replace(request.filters, collections=()) for request in requests if isinstance(request, Search)] == [
        filters
    ] * 3


def skipped(*kinds: str) -> Message:
    return message("workflow.skipped", names=tuple(message(f"source.kind.{kind}") for kind in kinds))


def test_kinds_are_called_by_their_labels_and_collections_as_they_are() -> None:
    plan = Plan((Tier((), (*(kind.value for kind in Kind if kind), "nice")),), 8)
    note = replay([], QUESTION, plan)[0].notes[0]
    assert in_words(note).endswith(
        "of it: guidelines, literature, books, encyclopaedias, patient leaflets, the hospital's own pages, "
        "terms and relations, nice"
    )
    assert in_words(note, "zh").endswith("：指南、文献、教科书、百科、患者手册、本院资料、术语与关系、nice")


def test_empty_and_missing_collections_are_skipped_and_told() -> None:
    plan = Plan((Tier((), ("guideline",)), Tier(("pubmed",), ("wiki",)), Tier((), ("book",))), 8)
    answer, requests = replay([search_result(SECOND), ENOUGH, (SECOND,), whole(SECOND)], QUESTION, plan)
    assert searched(requests) == [("pubmed",)]
    assert (
        in_words(answer.notes[0]) == "Not searched, as the library holds nothing of it: guidelines, encyclopaedias"
    ), "book was not reached"
    answer, _ = replay([search_result(SECOND), TOO_LITTLE], QUESTION, plan)
    assert answer.notes == (skipped("guideline", "wiki", "book"), NOT_ENOUGH)
    assert answer.searched == ("pubmed",)


def test_nothing_is_searched_elsewhere_if_no_tier_exists() -> None:
    answer, requests = replay([], QUESTION, Plan((Tier((), ("guideline",)), Tier((), ("book",))), 8))
    assert requests == []
    assert answer.status is AnswerStatus.ABSTAINED
    assert answer.searched == ()
    assert answer.notes == (skipped("guideline", "book"), NO_TIER)
    chinese, _ = replay([], "剂量多少？", Plan((), 8))
    assert chinese.language == "zh"
    assert chinese.notes == (NO_TIER,)


# --- one tier further -------------------------------------------------------------------------------------------------


def further(second: Evidence, relevance: Relevance = ENOUGH) -> list[object]:
    """What the requests get when the first tier helps and the next one holds ``second``."""
    start = [search_result(FIRST), ENOUGH, search_result(second), relevance]
    return (
        [*start, (FIRST, second), whole(FIRST), whole(second)] if relevance.enough else [*start, (FIRST,), whole(FIRST)]
    )


def test_a_differing_dose_in_the_next_tier_is_told_and_the_first_still_leads() -> None:
    answer, requests = replay(further(SECOND), QUESTION, FURTHER)
    (conflict,) = answer.conflicts
    assert (conflict.kind, conflict.marker, conflict.against) == (ConflictKind.DOSE, "1", "2")
    assert [amount.written for amount in conflict.amounts] == ["4 g", "3 g"]
    assert [statement.text for statement in answer.statements] == [FIRST.passage.text]
    assert answer.evidence == (FIRST, SECOND), "what the conflict points at is listed"
    assert answer.searched == ("nice", "who", "pubmed"), "only one tier further"
    assert [request.task for request in requests if isinstance(request, Perform)][2:] == [
        AnswerInput(QUESTION, (FIRST,), True, beside=(SECOND,)),
        AnswerInput(QUESTION, (SECOND,), True),
    ]


def test_the_same_dose_is_not_told_nor_its_source_listed() -> None:
    same = evidence("2", "The maximum dose of paracetamol is 4000 mg a day.", "Paracetamol in practice")
    answer, _ = replay(further(same), QUESTION, FURTHER)
    assert answer.conflicts == ()
    assert answer.evidence == (FIRST,)


def test_a_newer_edition_is_told() -> None:
    newer = replace(evidence("2", "Paracetamol is safe.", "Paracetamol"), edition="2025-02")
    answer, _ = replay(further(newer), QUESTION, FURTHER)
    (conflict,) = answer.conflicts
    assert conflict.kind is ConflictKind.EDITION
    assert conflict.editions == ("2024", "2025-02")


def test_a_conflict_holds_both_quotations() -> None:
    (conflict,) = replay(further(SECOND), QUESTION, FURTHER)[0].conflicts
    (ours,), (theirs,) = (quotation(source, 0, len(source.passage.text)).citations for source in (FIRST, SECOND))
    assert (conflict.ours, conflict.theirs) == (ours, theirs)
    assert theirs.boxes
    assert theirs.page == 1


def test_a_superseded_source_of_a_conflict_is_told() -> None:
    old = replace(SECOND, status=Status.SUPERSEDED)
    answer, _ = replay(further(old), QUESTION, FURTHER)
    assert in_words(answer.notes[0]) == "Source 2 is superseded: Paracetamol in practice (2024)"


def test_an_irrelevant_next_tier_is_not_compared() -> None:
    answer, _ = replay(further(SECOND, TOO_LITTLE), QUESTION, FURTHER)
    assert answer.status is AnswerStatus.ANSWERED
    assert answer.conflicts == ()
    assert answer.searched == ("nice", "who", "pubmed")


def test_further_skips_what_is_empty() -> None:
    plan = Plan((Tier(("nice",)), Tier((), ("literature",)), Tier(("books",))), 8, further=True)
    answer, _ = replay(further(SECOND), QUESTION, plan)
    assert answer.searched == ("nice", "books")
    assert answer.notes == (skipped("literature"),)
    assert answer.conflicts


def test_there_may_be_no_tier_further() -> None:
    plan = Plan((Tier(("nice",)),), 8, further=True)
    answer, _ = replay([search_result(FIRST), ENOUGH, (FIRST,), whole(FIRST)], QUESTION, plan)
    assert answer.status is AnswerStatus.ANSWERED


def test_a_quotation_that_fails_its_check_is_no_conflict() -> None:
    false = replace(
        quotation(SECOND, 0, len(SECOND.passage.text)), text="The maximum dose of paracetamol is 1 g a day."
    )
    results = further(SECOND)
    answer, _ = replay([*results[:-1], Draft((false,))], QUESTION, FURTHER)
    assert answer.conflicts == ()
    assert answer.evidence == (FIRST,)


def test_a_withheld_statement_is_compared_with_nothing() -> None:
    results = further(SECOND)
    results[5] = Draft((quotation(FIRST, 0, 11), replace(quotation(FIRST, 0, 45), text="It is 4 g.")))
    answer, _ = replay(results, "What of paracetamol?", FURTHER)
    assert [statement.withheld for statement in answer.statements] == [False, True]
    assert answer.conflicts == ()


def test_every_reason_of_a_conflict_can_be_shown_in_chinese() -> None:
    for text in ("3 g", "4 mg"):
        other = evidence("2", f"The maximum dose of paracetamol is {text} a day.", "Paracetamol")
        for conflict in replay(further(other), QUESTION, FURTHER)[0].conflicts:
            reason = in_words(conflict_reason(conflict), "zh")
            assert not reason.isascii()
            assert not any(word in reason for word in ("ource", "thousand")), reason


def test_the_trace_names_the_tiers_and_no_text() -> None:
    driver = scripted({RELEVANCE.name: lambda _: TOO_LITTLE})
    answer = driver.run(ask(QUESTION, SearchFilter(), PLAN, PROVENANCE))
    names = [dict(step.detail)["collections"] for step in answer.trace if step.name == "search"]
    assert names == ["nice who", "pubmed", "books"]
    assert "paracetamol" not in str(answer.trace).lower()


METFORMIN = evidence("1", "Metformin is taken with food.", "Metformin")
ALCOHOL = evidence("1", "With metformin keep alcohol within limits.", "Metformin and alcohol")


def test_where_a_tier_does_not_name_what_narrows_the_question_the_next_that_does_answers() -> None:
    question, other = "Can alcohol be combined with metformin?", "Can yoghurt be combined with metformin?"
    first = [search_result(METFORMIN), ENOUGH, (METFORMIN,), whole(METFORMIN)]
    later = [search_result(ALCOHOL), ENOUGH, (ALCOHOL,), whole(ALCOHOL), (Covers(),)]
    nothing = [search_result(ALCOHOL), TOO_LITTLE, search_result(ALCOHOL), TOO_LITTLE]
    answer, _ = replay([*first, *later], question, PLAN)
    assert answer.evidence == (ALCOHOL,)
    assert answer.searched == ("nice", "who", "pubmed")
    answer, _ = replay([*first, *nothing], question, PLAN)
    assert answer.status is AnswerStatus.ABSTAINED
    assert answer.notes[-1] == message("workflow.differing", words=("alcohol",))
    answer, _ = replay([*first, *nothing], other, PLAN)
    assert answer.evidence == (METFORMIN,)
    assert [note.code for note in answer.notes] == ["workflow.unnamed"]


# --- across languages -------------------------------------------------------------------------------------------------

CHINESE = "对乙酰氨基酚一天最多多少？"
BILINGUAL = replace(PLAN, tiers=(Tier(("nice", "who")),), languages=("en", "zh"))


def test_another_language_answers_where_the_own_does_not_and_never_green() -> None:
    own = replace(search_result(FIRST), language="zh")
    results = [own, TOO_LITTLE, search_result(SECOND), ENOUGH, (SECOND,), whole(SECOND)]
    answer, requests = replay(results, CHINESE, BILINGUAL)
    searches = [request.filters for request in requests if isinstance(request, Search)]
    assert [(filters.collections, filters.language) for filters in searches] == [
        (("nice", "who"), ""),
        (("nice", "who"), "en"),
    ]
    assert (answer.status, answer.language, answer.evidence) == (AnswerStatus.ANSWERED, "zh", (SECOND,))
    assert any(note.code == "workflow.across" for note in answer.notes)
    assert answer.verification.badge is not Badge.GREEN
    assert "英文" in in_words(next(note for note in answer.notes if note.code == "workflow.across"), "zh")


def test_another_language_is_not_searched_where_the_reader_chose_one() -> None:
    filters = SearchFilter(language="zh")
    _, requests = replay([search_result(FIRST), TOO_LITTLE], CHINESE, BILINGUAL, filters)
    assert [request.filters.language for request in requests if isinstance(request, Search)] == ["zh"]


def test_what_is_near_in_another_language_is_shown_with_the_abstention() -> None:
    answer, _ = replay([search_result(FIRST), TOO_LITTLE, search_result(SECOND), TOO_LITTLE], CHINESE, BILINGUAL)
    assert answer.status is AnswerStatus.ABSTAINED


# --- within a tier ----------------------------------------------------------------------------------------------------


def of_one_tier(*sources: Evidence) -> list[object]:
    """What the requests get when one tier holds ``sources``, each of which is quoted whole."""
    hits = tuple(Hit(source.passage, 1.0, 0.8) for source in sources)
    quotations = tuple(whole(source).statements[0] for source in sources)
    return [Found(hits, True, "en"), Relevance((0.9,) * len(sources), 0.5), sources, Draft(quotations)]


def test_two_documents_of_one_tier_that_are_both_cited_are_compared() -> None:
    answer, _ = replay(of_one_tier(FIRST, SECOND), QUESTION, PLAN)
    (conflict,) = answer.conflicts
    assert (conflict.marker, conflict.against) == ("1", "2")
    assert [amount.written for amount in conflict.amounts] == ["4 g", "3 g"]


def test_two_passages_of_one_document_are_not_compared() -> None:
    other = replace(SECOND, passage=replace(SECOND.passage, document_id=FIRST.passage.document_id))
    assert replay(of_one_tier(FIRST, other), QUESTION, PLAN)[0].conflicts == ()


STEPS = evidence("1", f"Then, in this order:\nAsk for allergies.\n{FIRST.passage.text}", "Paracetamol")
MORE = evidence("2", "Repeat it.", "Paracetamol")


def test_what_a_section_brings_from_another_passage_can_be_compared() -> None:
    """Its marker is none of those that were found: an answer over two tiers ended in a fault."""
    start = STEPS.passage.text.index(FIRST.passage.text)
    draft = Draft((quotation(STEPS, start, len(STEPS.passage.text)),))
    results = [search_result(STEPS), ENOUGH, (STEPS,), draft, (MORE,)]
    answer, _ = replay(results, QUESTION, PLAN, sections=((STEPS.passage, MORE.passage),))
    assert answer.evidence == (STEPS, MORE)
    assert answer.conflicts == ()
