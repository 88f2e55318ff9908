"""The flow of a question, replayed with scripted results: no search, no model, no files."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from localmed.agents.asking import CITED_ANSWER, KEYWORDS, RELEVANCE, Draft, Keywords, KeywordsInput, Relevance
from localmed.agents.role_table import role_table
from localmed.agents.roles import Rules
from localmed.domain import (
    Answer,
    AnswerStatus,
    Badge,
    Evidence,
    Hit,
    Kind,
    Passage,
    SearchFilter,
    Status,
    Support,
    TraceStep,
    message,
)
from localmed.domain.codec import answer_json, answer_of
from localmed.domain.parts import ConceptPart
from localmed.errors import Rejected
from localmed.hooks import SILENT, Hooks
from localmed.library.definitions import cited_passage
from localmed.library.graph import Concept, Name, Relation, Source
from localmed.retrieval.concepts import Card
from localmed.retrieval.keywords import KeywordStep
from localmed.retrieval.search import Found
from localmed.retrieval.tiers import Tier
from localmed.workflows import ask as flow_module
from localmed.workflows.abstaining import ALL_WITHHELD, NOT_ENOUGH
from localmed.workflows.answering import downgraded
from localmed.workflows.ask import (
    BY_CONCEPT,
    LEXICAL_ONLY,
    NO_WORDS,
    NOT_CALIBRATED,
    ask,
)
from localmed.workflows.finding import Plan
from localmed.workflows.flow import Cite, Driver, LookUp, Perform, Search, Sections, Settled
from tests.fakes import services
from tests.values import PROVENANCE, evidence, hit, in_words, quotation

QUESTION = "What dose for Patientname Zyxwvut?"
EVERYTHING = SearchFilter()
SOURCE = evidence("1", "Give 5 mg by mouth. Do not exceed 20 mg a day.", "Patientname Zyxwvut")
OTHER = evidence("2", "Store it in the dark.", "Storage")
HITS = (replace(hit("", similarity=0.8), passage=SOURCE.passage),)
ENOUGH, TOO_LITTLE = Relevance((0.9,), 0.5), Relevance((0.49,), 0.5)
PLAN = Plan((Tier(("guidelines",), whole=True),), 8)


def replay(
    results: Sequence[Any],
    question: str = QUESTION,
    plan: Plan = PLAN,
    filters: SearchFilter = EVERYTHING,
    sections: tuple[tuple[Passage, ...], ...] = (),
) -> tuple[Answer, list[Any]]:
    """The answer that the flow comes to when its requests get ``results``, and the requests.

    What it tells early is what it ends with, to the letter.
    """
    flow = ask(question, filters, plan, PROVENANCE)
    requests: list[Any] = []
    result: Any = None
    settled: list[Settled] = []
    waiting = list(results)
    while True:
        try:
            request: Any = flow.throw(result) if isinstance(result, Rejected) else flow.send(result)
        except StopIteration as end:
            assert not waiting, "the flow ended before its results were used up"
            answer: Answer = end.value
            early = answer.status is AnswerStatus.ANSWERED and bool(answer.statements)
            assert [(one.statements, one.evidence) for one in settled] == (
                [(answer.statements, answer.evidence)] if early else []
            )
            return answer, requests
        if isinstance(request, Settled):
            settled.append(request)
            result = None
            continue
        requests.append(request)
        nearest = not waiting and isinstance(requests[-1], Cite)  # of an abstention, last of all
        if not waiting and isinstance(requests[-1], LookUp):  # a definition, where no passage answers
            result = None
        else:
            result = sections if isinstance(requests[-1], Sections) else () if nearest else waiting.pop(0)


def search_result(dense: bool = True, language: str = "en", hits: tuple[Hit, ...] = HITS) -> Found:
    return Found(hits, dense, language)


def test_answered() -> None:
    answer, requests = replay([search_result(), ENOUGH, (SOURCE, OTHER), Draft((quotation(SOURCE, 0, 19),))])
    assert answer.status is AnswerStatus.ANSWERED
    assert answer.evidence == (SOURCE,), "only what is cited"
    assert answer.statements[0].verdict is not None
    assert answer.statements[0].verdict.support is Support.VERBATIM
    assert answer.notes == ()
    assert answer.searched == ("guidelines",)
    assert answer.provenance == PROVENANCE
    assert [type(request) for request in requests] == [Search, Perform, Cite, Perform, Sections]
    assert requests[0] == Search(QUESTION, SearchFilter(), 8)
    assert [request.role for request in requests if isinstance(request, Perform)] == [RELEVANCE, CITED_ANSWER]


def test_abstains_below_the_threshold_without_asking_for_an_answer() -> None:
    answer, requests = replay([search_result(), TOO_LITTLE])
    assert answer.status is AnswerStatus.ABSTAINED
    assert answer.notes == (NOT_ENOUGH,)
    assert (answer.statements, answer.evidence) == ((), ())
    assert answer.searched == ("guidelines",)
    assert isinstance(requests[-1], Cite)  # the nearest passages
    assert len(requests) == 3


def test_the_threshold_itself_is_enough() -> None:
    answer, _ = replay([search_result(), Relevance((0.5,), 0.5), (SOURCE,), Draft((quotation(SOURCE, 0, 19),))])
    assert answer.status is AnswerStatus.ANSWERED


def test_no_words() -> None:
    answer, _ = replay([search_result(hits=()), Relevance((), 0.5)], question="?! ...")
    assert answer.status is AnswerStatus.ABSTAINED
    assert answer.notes == (NO_WORDS,)


def test_all_withheld() -> None:
    false = replace(quotation(SOURCE, 0, 19), text="Give 50 mg by mouth.")
    answer, _ = replay([search_result(), ENOUGH, (SOURCE,), Draft((false, replace(false, citations=())))])
    assert answer.status is AnswerStatus.ABSTAINED
    assert answer.notes == (ALL_WITHHELD,)
    assert (answer.statements, answer.evidence) == ((), ())
    assert answer.verification.statements_withheld == 2


def test_some_withheld_stay_as_a_gap() -> None:
    false = replace(quotation(SOURCE, 0, 19), text="Give 50 mg by mouth.")
    answer, _ = replay([search_result(), ENOUGH, (SOURCE,), Draft((quotation(SOURCE, 0, 19), false))])
    assert answer.status is AnswerStatus.ANSWERED
    assert [statement.withheld for statement in answer.statements] == [False, True]
    assert answer.verification.statements_withheld == 1


def test_nothing_drafted() -> None:
    answer, _ = replay([search_result(), ENOUGH, (SOURCE,), Draft()])
    assert answer.status is AnswerStatus.ABSTAINED
    assert answer.notes == (NOT_ENOUGH,)


def test_a_source_nobody_minted_is_not_believed() -> None:
    answer, _ = replay([search_result(), ENOUGH, (SOURCE,), Draft((quotation(OTHER, 0, 21),))])
    assert answer.status is AnswerStatus.ABSTAINED
    assert answer.verification.markers_rejected == 1


@pytest.mark.parametrize("status", [Status.SUPERSEDED, Status.WITHDRAWN])
def test_the_reader_is_told_of_a_source_that_is_not_current(status: Status) -> None:
    old = replace(SOURCE, status=status)
    answer, _ = replay([search_result(), ENOUGH, (old, OTHER), Draft((quotation(old, 0, 19),))])
    (note,) = answer.notes
    assert in_words(note).startswith(f"Source 1 is {status.value}")


def test_an_unused_superseded_source_is_not_mentioned() -> None:
    old = replace(OTHER, status=Status.SUPERSEDED)
    answer, _ = replay([search_result(), ENOUGH, (SOURCE, old), Draft((quotation(SOURCE, 0, 19),))])
    assert answer.notes == ()


def test_chinese_says_that_only_words_were_searched() -> None:
    for results in ([TOO_LITTLE], [ENOUGH, (SOURCE,), Draft((quotation(SOURCE, 0, 19),))]):
        answer, _ = replay([search_result(dense=False, language="zh"), *results], question="剂量多少？")
        assert answer.notes[0] == LEXICAL_ONLY["zh"]
        assert answer.language == "zh"


# --- keywords ---------------------------------------------------------------------------------------------------------


def test_keywords_are_asked_for_and_searched_with() -> None:
    _, requests = replay([Keywords(("sepsis", "dose")), search_result(), TOO_LITTLE], plan=replace(PLAN, keywords=4))
    assert requests[0] == Perform(KEYWORDS, KeywordsInput(QUESTION, 4))
    assert requests[1] == Search(QUESTION, EVERYTHING, 8, ("sepsis", "dose"))


def test_no_keywords_are_no_restriction() -> None:
    answer, requests = replay([Keywords(), search_result(), ENOUGH, (SOURCE,), Draft((quotation(SOURCE, 0, 19),))],
                              plan=replace(PLAN, keywords=4))  # fmt: skip
    assert answer.status is AnswerStatus.ANSWERED
    assert requests[1].keywords == ()


def test_sources_that_are_not_in_force_are_told_in_both_languages() -> None:
    old = [replace(SOURCE, status=status, edition=edition) for status in (Status.SUPERSEDED, Status.WITHDRAWN)
           for edition in ("2024", "")]  # fmt: skip
    notes = flow_module.warnings(tuple(old))
    title = SOURCE.document_title
    assert in_words(notes[0]) == f"Source 1 is superseded: {title} (2024)"
    assert in_words(notes[3], "zh") == f"来源 1 已撤回：{title}（无日期）"


# --- the driver ------------------------------------------------------------------------------------------------------


class Finder:
    """A finder that always finds the same."""

    def search(self, question: str, filters: SearchFilter, limit: int, keywords: Sequence[str] = ()) -> Found:
        return replace(search_result(), keywords=tuple(KeywordStep(n, 2 - n) for n in range(len(keywords), 0, -1)))


ROLES = {role.name: role for role in (KEYWORDS, RELEVANCE, CITED_ANSWER)}


def scripted(
    rules: Rules,
    mint: Callable[[tuple[Hit, ...], int], tuple[Evidence, ...]] = lambda *_: (),
    hooks: Hooks = SILENT,
) -> Driver:
    """A driver whose roles are ``rules``."""
    roles = role_table({name: ROLES[name] for name in rules}, "rules", {}, rules, None)
    return Driver(services(roles, search=Finder().search, cite=mint), hooks)


def drive(relevance: Relevance = ENOUGH) -> tuple[Answer, list[TraceStep]]:
    steps: list[TraceStep] = []
    rules: Rules = {
        RELEVANCE.name: lambda _: relevance,
        CITED_ANSWER.name: lambda _: Draft((quotation(SOURCE, 0, 19),)),
        KEYWORDS.name: lambda _: Keywords(("dose", "Zyxwvut"), ("for",)),
    }
    driver = scripted(rules, lambda *_: (SOURCE,), Hooks(finished=steps.append))
    return driver.run(ask(QUESTION, EVERYTHING, replace(PLAN, keywords=6), PROVENANCE)), steps


def test_the_trace_tells_the_steps() -> None:
    answer, watched = drive()
    assert [step.name for step in answer.trace] == [
        "keywords",
        "search",
        "relevance",
        "cite",
        "cited_answer",
        "sections",
    ]
    assert list(answer.trace) == watched
    assert dict(answer.trace[0].detail) == {"count": "2", "unknown": "1", "by": "rules"}
    assert dict(answer.trace[1].detail)["hits"] == "1"
    assert dict(answer.trace[1].detail)["keywords"] == "2:0 1:1"
    assert "collections" not in dict(answer.trace[1].detail), "all are searched"
    assert dict(answer.trace[2].detail) == {"probability": "0.900", "threshold": "0.50", "by": "rules"}
    assert all(step.seconds >= 0 for step in answer.trace)


def test_the_trace_holds_no_text() -> None:
    for relevance in (ENOUGH, TOO_LITTLE):
        answer, watched = drive(relevance)
        for text in (str(answer.trace), str(watched)):
            for word in (*QUESTION.split(), "Give", "mouth"):
                assert word.strip("?") not in text


def test_an_error_passes_through_the_driver() -> None:
    def broken(_: Any) -> Any:
        raise OSError("gone")

    driver = scripted(dict.fromkeys(ROLES, broken))
    with pytest.raises(OSError, match="gone"):
        driver.run(ask(QUESTION, EVERYTHING, PLAN, PROVENANCE))


def test_an_answer_survives_json() -> None:
    answer, _ = drive()
    values = json.loads(json.dumps(answer_json(answer), ensure_ascii=False))
    assert values["status"] == "answered"
    assert values["statements"][0]["citations"][0]["quote"] == "Give 5 mg by mouth."
    assert values["evidence"][0]["passage"]["spans"][0]["box"]["page"] == 1
    assert answer_of(values) == answer


def test_words_that_the_sources_lack_are_told() -> None:
    """A close relative of the subject may have been found; the reader sees what is not there."""
    draft = Draft((quotation(SOURCE, 0, 19),))
    answer, _ = replay([search_result(), ENOUGH, (SOURCE,), draft], "May patients share a glucometer?")
    assert message("workflow.unnamed", words=("share", "glucometer")) in answer.notes


def test_what_only_part_of_the_quotations_is_about_is_told_as_such_and_is_never_green() -> None:
    draft = Draft((quotation(SOURCE, 0, 19),))
    for code, reason in (("workflow.partly", "badge.why_partly"), ("workflow.unnamed", "badge.why_unnamed")):
        before = replace(replay([search_result(), ENOUGH, (SOURCE,), draft])[0].verification, badge=Badge.GREEN)
        after = downgraded(before, (message(code, words=("oral",)),))
        assert (after.badge, after.reason) == (Badge.YELLOW, message(reason, words=("oral",)))


def test_the_reason_of_the_nearest_tier_is_told() -> None:
    two = replace(PLAN, tiers=(Tier(("guidelines",)), Tier(("books",))))
    far = Relevance((0.1,), 0.5, reason=message("workflow.weak"))
    near = Relevance((0.4,), 0.5, reason=message("workflow.subject_split", words=("zyxwvut",)))
    answer, _ = replay([search_result(), near, search_result(), far], plan=two)
    assert answer.notes == (message("workflow.subject_split", words=("zyxwvut",)),)


def test_what_is_not_sure_to_answer_is_quoted_and_never_green() -> None:
    unsure = Relevance((0.4,), 0.6, likely=(0.4,))
    answer, _ = replay([search_result(), unsure, (SOURCE,), Draft((quotation(SOURCE, 0, 19),))])
    assert answer.status is AnswerStatus.ANSWERED
    assert message("workflow.unsure") in answer.notes
    assert answer.verification.badge is not Badge.GREEN


def test_what_nobody_calibrated_is_said() -> None:
    answer, _ = replay([search_result(), replace(TOO_LITTLE, calibrated=False)])
    assert NOT_CALIBRATED in answer.notes


IN_GRAPH = Source("d", "doid", "Ontology", "2025")
MARFAN = Concept("DOID:1", "marfan syndrome", "doid", "A disorder of connective tissue.", IN_GRAPH)
ABOVE = Relation("DOID:1", "marfan syndrome", "is_a", "DOID:2", "connective tissue disease", "", IN_GRAPH)
BELOW = Relation("DOID:3", "neonatal marfan syndrome", "is_a", "DOID:1", "marfan syndrome", "", IN_GRAPH)
CARD = Card(MARFAN, Name("marfan syndrome", "en", "name"), (), (), (), (ABOVE, BELOW), 2, "kind")
RELATED = ConceptPart("marfan syndrome", None, (("is a", "connective tissue disease"),))
ASKED = "What is Marfan syndrome?"


def minted(concept: Concept, **changes: Any) -> Evidence:
    passage = cited_passage(concept)
    assert passage
    return replace(SOURCE, passage=passage, kind=Kind.GRAPH, **changes)


def test_a_definition_of_the_concept_graph_is_cited_where_no_passage_explains() -> None:
    defined = minted(MARFAN)
    answer, requests = replay([search_result(), TOO_LITTLE, CARD, (defined,)], question=ASKED)
    assert requests[-2:] == [LookUp("marfan syndrome"), Cite((Hit(defined.passage, 0.0),))]
    (statement,) = answer.statements
    assert statement.text == "marfan syndrome: A disorder of connective tissue."
    assert [citation.passage_id for citation in statement.citations] == [defined.passage.id]
    assert (answer.status, answer.evidence, answer.parts) == (AnswerStatus.ANSWERED, (defined,), (RELATED,))
    assert BY_CONCEPT in answer.notes
    unknown, _ = replay([search_result(), TOO_LITTLE, None], question=ASKED)
    assert unknown.status is AnswerStatus.ABSTAINED


def test_a_definition_that_speaks_to_a_model_is_not_cited() -> None:
    answer, _ = replay([search_result(), TOO_LITTLE, CARD, (minted(MARFAN, planted=True),)], question=ASKED)
    assert (answer.statements, answer.evidence) == ((), ())


def test_relations_alone_are_shown_without_a_citation() -> None:
    bare = replace(CARD, concept=replace(MARFAN, definition="", defined_in=None))
    answer, _ = replay([search_result(), TOO_LITTLE, bare], question=ASKED)
    assert (answer.status, answer.statements, answer.parts) == (AnswerStatus.ANSWERED, (), (RELATED,))
