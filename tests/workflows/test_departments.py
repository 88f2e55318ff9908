"""The departments workflow: replayed with scripted results, and over the starter guide without any model."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localmed.answering.chat import ChatRoles
from localmed.answering.guidance import (
    DEPARTMENT,
    EMERGENCY,
    FINAL_CHECK,
    SHOWN,
    Advised,
    CheckInput,
    Department,
    GuidanceInput,
    check_by_rule,
    nearest,
)
from localmed.config import LibrarySettings, Settings
from localmed.domain import (
    Answer,
    AnswerStatus,
    Evidence,
    Hit,
    Kind,
    Message,
    Origin,
    SearchFilter,
    message,
    number_to_call,
)
from localmed.domain.errors import Rejected, UsageError
from localmed.domain.findings import Closeness, Found
from localmed.domain.ports import NOT_JUDGED, EncoderIdentity, Stance
from localmed.ingest import manifest
from localmed.presentation.answer import view
from localmed.presentation.plain import plain
from localmed.presentation.views import Row
from localmed.site import importing
from localmed.site.session import Session
from localmed.workflows.departments import FAR, NEAREST, NO_DEPARTMENT, NO_GUIDE, always_told, departments
from localmed.workflows.finding import Plan
from localmed.workflows.flow import Cite, Judge, Search, Shown
from tests.fakes import HashedWords, described, import_into, opened, write
from tests.scripted import ScriptedChat
from tests.values import PROVENANCE, evidence, in_words
from tests.words import phrase, said
from tests.workflows.driving import fed

CORPORA = Path(__file__).parents[2] / "corpora"
ROLES = frozenset({DEPARTMENT.name, FINAL_CHECK.name})
ON = Plan((), 8, roles=ROLES, audience="patient", judge="words", chat=ROLES)
LOCAL = SearchFilter(("pages",))
ALWAYS = always_told("")
HEART = "Second floor. Come here with a heart that races or skips beats."
HEART_EVIDENCE = evidence("1", HEART, "Cardiology")
EMERGENCY_EVIDENCE = evidence("2", "Ground floor. Come at once with crushing chest pain.", "Emergency Department")


def parts_of(answer: Answer) -> tuple[Any, ...]:
    """Its parts, which are of one type here."""
    return answer.parts


def hit_of(source: Evidence) -> Hit:
    return Hit(source.passage, 1.0, 0.6)


def search_result(*sources: Evidence) -> Found:
    return Found(tuple(map(hit_of, sources)), True, "en")


def replay(
    complaint: str, results: list[Any], plan: Plan = ON, filters: SearchFilter = LOCAL, number: str = ""
) -> tuple[Answer, list[Any]]:
    """The answer that the flow comes to when its requests get ``results``, and the requests.

    A department's row is looked for in vain where ``results`` hold none.
    """
    waiting = list(results)

    def served(request: Any) -> Any:
        is_row = isinstance(request, Search) and not (waiting and isinstance(waiting[0], Found))
        return search_result() if is_row else waiting.pop(0)

    asked_with = replace(PROVENANCE, emergency_number=number)
    answer, requests = fed(departments(complaint, filters, plan, asked_with), served)
    assert not waiting, "the flow ended before its results were used up"
    return answer, requests


def advised(source: Evidence, text: str = "", name: str = "") -> Advised:
    """``source``'s sentence as the reason, or a model's ``text`` citing it."""
    sentence = source.quotation(source.passage.text.index(". ") + 2, len(source.passage.text))
    why = replace(sentence, text=text, origin=Origin.GENERATED) if text else sentence
    return Advised(name or source.passage.title, (why,))


def sign(flag: str, *words: str) -> Message:
    return message("departments.sign", sign=message(f"departments.flag.{flag}"), words=words)


def test_a_department_with_floor_and_why_both_cited() -> None:
    chosen = (advised(HEART_EVIDENCE),)
    answer, requests = replay("My heart races", [(search_result(HEART_EVIDENCE),), (HEART_EVIDENCE,), chosen, (True,)])
    (part,) = parts_of(answer)
    assert (part.name, part.floor, part.signs) == ("Cardiology", "Second floor", ())
    assert [statement.text for statement in part.statements] == [
        "Come here with a heart that races or skips beats.",
        "Second floor.",
    ]
    assert all(HEART[c.start : c.end] == c.quote for statement in part.statements for c in statement.citations)
    assert answer.evidence == (HEART_EVIDENCE,)
    names = [getattr(request, "name", "several") for request in requests]
    assert names == ["several", "cite", "department", "final_check", "search"]
    assert answer.notes == (NEAREST, ALWAYS)
    assert answer.verification.checks == (message("gate.departments_stand", standing=1, count=1),)


def test_red_flags_put_the_emergency_department_first_whatever_was_chosen() -> None:
    chosen = (advised(HEART_EVIDENCE),)
    both = (HEART_EVIDENCE, EMERGENCY_EVIDENCE)
    searches = (search_result(HEART_EVIDENCE), search_result(EMERGENCY_EVIDENCE))
    answer, requests = replay("Crushing chest pain and I can't breathe", [searches, both, chosen, (True,)])
    assert [part.name for part in parts_of(answer)] == ["Emergency Department", "Cardiology"]
    assert parts_of(answer)[0].floor == "Ground floor"
    signs = sign("breathing", "can't breathe"), sign("chest_pain", "chest pain", "crushing")
    assert parts_of(answer)[0].signs == signs
    assert answer.notes[0] == message("departments.flagged", signs=signs)
    assert [search.question for search in requests[0]][-1] == "Emergency Department"
    names = [getattr(request, "name", "several") for request in requests]
    assert names.index("shown") < names.index("department"), "nobody waits for a model with an emergency"
    shown = next(request.answer for request in requests if isinstance(request, Shown))
    assert shown.notes[0] == answer.notes[0]


@pytest.mark.parametrize("number", ["", "120"])
def test_a_guide_without_an_emergency_department_is_told_of(number: str) -> None:
    searches = (search_result(HEART_EVIDENCE), search_result())
    results = [searches, (HEART_EVIDENCE,), (advised(HEART_EVIDENCE),), (True,)]
    answer, _ = replay("Crushing chest pain and I can't breathe", results, number=number)
    assert message("departments.no_emergency", number=number_to_call(number)) in answer.notes


@pytest.mark.parametrize("roles", [(), (EMERGENCY.name,)])
def test_red_flags_do_not_need_the_roles_nor_ask_the_likeness(roles: tuple[str, ...]) -> None:
    searches = (search_result(HEART_EVIDENCE), search_result(EMERGENCY_EVIDENCE))
    plan = replace(ON, roles=frozenset(roles))
    answer, requests = replay("He collapsed and won't wake up", [searches, (HEART_EVIDENCE, EMERGENCY_EVIDENCE)], plan)
    assert [part.name for part in parts_of(answer)] == ["Emergency Department"]
    assert isinstance(requests[0], tuple), "the searches"


def test_a_complaint_only_worded_like_an_emergency_goes_there_first_and_is_told_as_not_sure() -> None:
    plan = replace(ON, roles=ON.roles | {EMERGENCY.name})
    searches = (search_result(HEART_EVIDENCE), search_result(EMERGENCY_EVIDENCE))
    results = [True, searches, (HEART_EVIDENCE, EMERGENCY_EVIDENCE), (advised(HEART_EVIDENCE),), (True,)]
    answer, requests = replay("He looks like wax", results, plan)
    assert requests[0].role is EMERGENCY
    assert [part.name for part in parts_of(answer)] == ["Emergency Department", "Cardiology"]
    assert parts_of(answer)[0].signs == (message("departments.flag.likened"),)
    assert answer.notes == (message("departments.likened"), ALWAYS), "not told of the best match"


def test_what_the_final_check_does_not_carry_is_dropped() -> None:
    results = [(search_result(HEART_EVIDENCE),), (HEART_EVIDENCE,), (advised(HEART_EVIDENCE),), (False,)]
    answer, _ = replay("My heart races", results)
    assert (answer.status, parts_of(answer), answer.evidence) == (AnswerStatus.ABSTAINED, (), ())
    assert message("departments.of_model", count=1) in answer.notes
    assert NO_DEPARTMENT in answer.notes


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Come here with a heart that races.", "Dream Department"),  # not in the guide
        ("You have heart failure and the heart races.", ""),  # a diagnosis
        ("The heart races, which suggests a disorder.", ""),
    ],
)
def test_a_models_own_department_or_diagnosis_is_dropped_by_rule(text: str, name: str) -> None:
    recommendation = advised(HEART_EVIDENCE, text, name)
    department = Department("Cardiology", (HEART_EVIDENCE,))
    assert check_by_rule(CheckInput("My heart races", (recommendation,), (department,))) == (False,)
    elsewhere = replace(advised(EMERGENCY_EVIDENCE), department="Cardiology")
    assert check_by_rule(CheckInput("My heart races", (elsewhere,), (department,))) == (False,), "another's section"
    kept = advised(HEART_EVIDENCE, "This department is for hearts that race or skip beats.")
    assert check_by_rule(CheckInput("My heart races", (kept,), (department,))) == (True,)


@pytest.mark.parametrize(
    ("stance", "status"),
    [
        (Stance(0.9, 0.1, 0.0), AnswerStatus.ANSWERED),
        (Stance(0.1, 0.9, 0.0), AnswerStatus.ABSTAINED),
        (Stance(0.0, 0.1, 0.9), AnswerStatus.ABSTAINED),
        (NOT_JUDGED, AnswerStatus.ABSTAINED),
    ],
    ids=["carried", "not said", "contradicted", "not judged"],
)
def test_a_models_reason_is_shown_only_if_it_was_judged_to_be_carried(stance: Stance, status: AnswerStatus) -> None:
    recommendation = advised(HEART_EVIDENCE, "A heart that races or skips beats is seen here.")
    results: list[Any] = [(search_result(HEART_EVIDENCE),), (HEART_EVIDENCE,), (recommendation,), (stance,)]
    results += [(True,)] if status is AnswerStatus.ANSWERED else []
    answer, requests = replay("My heart races", results)
    assert sum(isinstance(request, Judge) for request in requests) == 1
    assert answer.status is status
    assert "A heart that races" not in repr(answer.parts) or status is AnswerStatus.ANSWERED


def test_a_floor_in_another_section_is_looked_up_and_cited() -> None:
    section = evidence("1", "Come here with a heart that races or skips beats.", "Cardiology")
    rows = "Department: Cardiology; Floor: Second floor"
    table = replace(section, marker="2", passage=replace(evidence("2", rows, "Where to go").passage, table=True))
    reason = Advised("Cardiology", (section.quotation(0, len(section.passage.text)),))
    results = [(search_result(section),), (section,), (reason,), (True,), search_result(table), (table,)]
    answer, requests = replay("My heart races", results)
    assert parts_of(answer)[0].floor == "Second floor"
    assert parts_of(answer)[0].statements[-1].text == rows
    assert answer.evidence == (section, table)
    assert isinstance(requests[-2], Search)
    assert requests[-1] == Cite((hit_of(table),), 2)


def test_a_floor_that_the_guide_does_not_name_is_said_to_be_missing() -> None:
    section = evidence("1", "Come here with a heart that races or skips beats.", "Cardiology")
    reason = Advised("Cardiology", (section.quotation(0, len(section.passage.text)),))
    answer, _ = replay("My heart races", [(search_result(section),), (section,), (reason,), (True,), search_result()])
    assert parts_of(answer)[0].floor == ""
    (part,) = view(answer).parts
    assert part.rows == (Row("Floor", said("departments.no_floor")),)


@pytest.mark.parametrize("complaint", [
    "I want to die, I took all my tablets", "I took all my tablets, I want to die",
    "我想死，吃了很多安眠药", "吃了一瓶安眠药，不想活了",
])  # fmt: skip
def test_an_overdose_of_somebody_in_danger_gets_the_message_and_the_emergency_department(complaint: str) -> None:
    both = (search_result(HEART_EVIDENCE), search_result(EMERGENCY_EVIDENCE))
    answer, _ = replay(complaint, [both, (HEART_EVIDENCE, EMERGENCY_EVIDENCE)])
    (part,) = parts_of(answer)
    assert (answer.status, part.name) == (AnswerStatus.SAFETY, "Emergency Department")
    assert message("departments.flag.poisoning") in [dict(one.parameters)["sign"] for one in part.signs]
    assert [note.code for note in answer.notes[:2]] == ["safety.message", "departments.flagged"]
    alone, _ = replay(complaint, [], filters=SearchFilter())
    assert (alone.status, alone.notes) == (AnswerStatus.SAFETY, (answer.notes[0], NO_GUIDE, ALWAYS))


@pytest.mark.parametrize("complaint", ["", " \n", "???", "\x00\x01\x07", "Привет, у меня болит голова"])
def test_nothing_readable_is_a_clean_outcome(complaint: str) -> None:
    answer, requests = replay(complaint, [])
    assert answer.status is AnswerStatus.ABSTAINED
    assert requests == []
    assert ALWAYS in answer.notes
    assert replay("My heart races", [], filters=SearchFilter())[0].notes == (NO_GUIDE, ALWAYS)


def test_the_sites_emergency_number_is_named() -> None:
    answer, _ = replay("My heart races", [], filters=SearchFilter(), number="120")
    assert answer.notes == (NO_GUIDE, message("departments.always", number="120"))


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("Department: Emergency Department; Floor: Ground floor; Extension: 1000", "Extension: 1000"),
        ("Department: Emergency Department; Floor: Ground floor; Tel. no.: 555 1000", "Tel. no.: 555 1000"),
        ("Department: Emergency Department; Floor: Ground floor; Open: 24 hours", ""),
    ],
)
def test_without_the_sites_number_the_row_of_the_guide_is_quoted(row: str, told: str) -> None:
    table = replace(EMERGENCY_EVIDENCE, marker="3", passage=replace(evidence("3", row, "Where").passage, table=True))
    searches = (search_result(HEART_EVIDENCE), search_result(EMERGENCY_EVIDENCE))
    for number in ("", "120"):
        both, chosen = (HEART_EVIDENCE, EMERGENCY_EVIDENCE), (advised(HEART_EVIDENCE),)
        results = [searches, both, chosen, (True,), search_result(table), (table,)]
        answer, _ = replay("crushing chest pain", results, number=number)
        assert answer.notes[-1] == always_told(number, told, urgent=True)
    assert told in in_words(always_told("", told))
    assert always_told("120", told) == always_told("120")


def test_departments_are_shown_in_the_readers_language() -> None:
    searches = (search_result(HEART_EVIDENCE), search_result(EMERGENCY_EVIDENCE))
    chosen = (advised(HEART_EVIDENCE),)
    answer, _ = replay("crushing chest pain", [searches, (HEART_EVIDENCE, EMERGENCY_EVIDENCE), chosen, (True,)])
    shown = view(answer, "zh")
    flag = said("departments.flag.chest_pain", "zh")
    sign_ = said("departments.sign", "zh", sign=flag, words="chest pain、crushing")
    assert shown.parts[0].rows == (
        Row("楼层", "Ground floor"),
        Row(said("departments.go_first", "zh"), sign_),
    )
    assert shown.notes[0] == said("departments.flagged", "zh", count=1, signs=sign_)


def lower(answer: Answer) -> list[str]:
    return [part.title for part in view(answer, "en").parts if part.lower]


def test_the_nearest_departments_are_named_and_beside_an_emergency_one_that_fits_it() -> None:
    bones = evidence("3", "Second floor. Come here with pain in an arm or a shoulder.", "Orthopaedics")
    every, chosen = (HEART_EVIDENCE, bones), (advised(bones), advised(HEART_EVIDENCE))
    answer, _ = replay("My heart races", [(search_result(*every),), every, chosen, (True, True)])
    assert [part.name for part in parts_of(answer)] == ["Orthopaedics", "Cardiology"]
    assert (answer.notes[0], lower(answer)) == (NEAREST, ["Cardiology"])
    copied = plain(view(answer, "en")).partition(phrase("departments.less_near"))
    assert "Orthopaedics" in copied[0]
    assert "Cardiology" in copied[2]
    far = replace(search_result(*every), closeness=Closeness.NOTHING_NEAR)
    answer, _ = replay("My heart races", [(far,), every, chosen, (True, True)])
    assert (answer.notes[0], lower(answer)) == (FAR, ["Orthopaedics", "Cardiology"]), "none is surely the one"
    searches = (search_result(*every), search_result(EMERGENCY_EVIDENCE))
    answer, _ = replay("I think I am having a heart attack", [searches, (*every, EMERGENCY_EVIDENCE), chosen, (True,)])
    assert [part.name for part in parts_of(answer)] == ["Emergency Department", "Cardiology"]
    assert lower(answer) == [], "it stands beside an emergency because it fits it"


def test_without_a_model_the_order_of_the_search_decides_and_a_sentence_of_the_section_says_why() -> None:
    bones = evidence("3", "Second floor. We look at arms. Come here with pain in an arm or a shoulder.", "Orthopaedics")
    found = tuple(
        Department(name, (it,))
        for name, it in (
            ("Emergency Department", EMERGENCY_EVIDENCE),
            ("Orthopaedics", bones),
            ("Cardiology", HEART_EVIDENCE),
        )
    )
    first, second = nearest(GuidanceInput("pain in my shoulder", found))
    assert (first.department, second.department) == ("Orthopaedics", "Cardiology")
    assert first.why[0].text == "Come here with pain in an arm or a shoulder."
    asked_for = nearest(GuidanceInput("where is the emergency department", found))
    assert asked_for[0].department == "Emergency Department"


def test_below_the_safety_message_stands_the_way_to_the_emergency_department() -> None:
    both = (search_result(HEART_EVIDENCE), search_result(EMERGENCY_EVIDENCE))
    answer, _ = replay("I want to die", [both, (HEART_EVIDENCE, EMERGENCY_EVIDENCE)])
    (part,) = parts_of(answer)
    assert (answer.status, part.name, part.floor) == (AnswerStatus.SAFETY, "Emergency Department", "Ground floor")
    assert [note.code for note in answer.notes] == ["safety.message", "departments.call"]


def test_the_row_of_the_guide_is_quoted_and_its_sources_are_numbered_from_one() -> None:
    rows = "Department: Cardiology; Floor: Second floor; Opening hours: Monday, 08:30 to 17:00; Extension: 1210"
    heart = replace(HEART_EVIDENCE, marker="4")
    table = evidence("5", rows, "Where to go")
    table = replace(table, passage=replace(table.passage, table=True))
    results = [(search_result(heart),), (heart,), (advised(heart),), (True,), search_result(table), (table,)]
    answer, _ = replay("My heart races", results)
    assert parts_of(answer)[0].statements[-1].text == rows
    assert [piece.marker for piece in answer.evidence] == ["1", "2"]
    assert [one.citations[0].marker for one in parts_of(answer)[0].statements] == ["1", "2"]


def test_a_section_that_says_hours_and_telephone_is_quoted_with_them() -> None:
    section = evidence(
        "1", "We see hearts that race. Second floor. Open Monday to Friday. Extension 1210.", "Cardiology"
    )
    why = Advised("Cardiology", (section.quotation(0, 24),))
    answer, _ = replay("My heart races", [(search_result(section),), (section,), (why,), (True,)])
    shown = [one.text for one in parts_of(answer)[0].statements]
    assert shown == ["We see hearts that race.", "Second floor.", "Open Monday to Friday.", "Extension 1210."]


# --- a chat model -----------------------------------------------------------------------------------------------------

GIVEN = GuidanceInput("My heart races", (Department("Cardiology", (HEART_EVIDENCE,)),))
REASON = "This department is for hearts that race or skip beats."


def test_a_model_chooses_among_the_departments_it_is_shown() -> None:
    reply = {"departments": [{"department": "Cardiology", "reason": REASON, "sources": ["1"]}]}
    guidance = ChatRoles(ScriptedChat([reply])).perform(DEPARTMENT, GIVEN)
    (one,) = guidance
    assert (one.department, one.why[0].origin) == ("Cardiology", Origin.GENERATED)


@pytest.mark.parametrize(
    "reply",
    [
        {"departments": [{"department": "Dream Department", "reason": REASON, "sources": ["1"]}]},
        {"departments": [{"department": "Cardiology", "reason": REASON, "sources": ["9"]}]},
        {"departments": [{"department": "Cardiology", "reason": "这个科室看心跳过快的病人。", "sources": ["1"]}]},
        {"departments": "Cardiology"},
        "Cardiology",
    ],
)
def test_what_a_model_makes_up_is_rejected_after_one_more_try(reply: Any) -> None:
    with pytest.raises(Rejected):
        ChatRoles(ScriptedChat([reply, reply])).perform(DEPARTMENT, GIVEN)


def test_the_final_check_is_one_word_for_each() -> None:
    task = CheckInput("My heart races", (advised(HEART_EVIDENCE), advised(HEART_EVIDENCE)), GIVEN.departments)
    assert ChatRoles(ScriptedChat(["fits", "unfit"])).perform(FINAL_CHECK, task) == (True, False)


# --- the starter guide, without a model -------------------------------------------------------------------------------


class WordsOnly(HashedWords):
    """An encoder that knows no language: searches are by words alone."""

    def __init__(self) -> None:
        super().__init__()
        self.identity = EncoderIdentity("words-only", "1", self.identity.dimensions, ())


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    settings = Settings(tmp_path_factory.mktemp("starter"), library=LibrarySettings(writer_memory_bytes=15_000_000))
    with opened(settings, WordsOnly()) as session:
        importing.import_paths(session, [CORPORA / "starter" / "local"], manifest.load(CORPORA / "starter-local.toml"))
        yield session


def cases(name: str, language: str) -> list[dict[str, Any]]:
    file = Path(__file__).parent / "cases" / f"departments_{name}.toml"
    return [case for case in tomllib.loads(file.read_text("utf-8"))["case"] if case["language"] == language]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_there_are_enough_held_back_cases_and_none_was_developed_on(language: str) -> None:
    held = {case["complaint"] for case in cases("held_back", language)}
    assert len(held) >= 30
    assert held.isdisjoint(case["complaint"] for case in cases("development", language))


@pytest.mark.parametrize("complaint", ["脚趾突然红肿疼", "脚趾突然红肿疼，昨晚喝了啤酒"])
def test_a_part_of_the_body_weighs_more_than_a_drink(starter: Session, complaint: str) -> None:
    assert parts_of(starter.departments(complaint))[0].name == "骨科"


@pytest.mark.parametrize(("language", "first", "named"), [("en", 0.75, 0.75), ("zh", 0.8, 0.8)])
@pytest.mark.slow
def test_held_back_complaints_find_their_department(
    starter: Session, language: str, first: float, named: float
) -> None:
    """By words alone; figures with the encoder are the benchmark's.

    One Chinese low mood (41 of 44 without it) is told where to turn at once instead, since that screen leans to safety.
    """
    complaints = cases("held_back", language)
    names_of = [[part.name for part in parts_of(starter.departments(case["complaint"]))] for case in complaints]
    pairs = list(zip(complaints, names_of, strict=True))
    assert max(map(len, names_of)) <= 1 + SHOWN
    assert sum(names[:1] != [] and names[0] in case["departments"] for case, names in pairs) / len(pairs) >= first
    assert sum(bool(set(names) & set(case["departments"])) for case, names in pairs) / len(pairs) >= named


@pytest.mark.parametrize("complaint", ["What is the capital of France?", "法国的首都是哪里？", "asdf qwer"])
def test_nothing_is_called_close_to_what_is_no_complaint(starter: Session, complaint: str) -> None:
    answer = starter.departments(complaint)
    assert NO_DEPARTMENT in answer.notes or FAR in answer.notes


@pytest.mark.slow
def test_thirty_pages_are_cut_but_read_for_warning_signs(starter: Session) -> None:
    text = "My knee hurts when I climb the stairs. " * 2_500 + "Now my chest hurts, a crushing pain, I can't breathe."
    answer = starter.departments(text)
    assert parts_of(answer)[0].name == "Emergency Department"
    assert any(note.code == "departments.cut" for note in answer.notes)


def test_a_hospitals_own_guide_of_another_shape(settings: Settings, tmp_path: Path) -> None:
    folder = write(tmp_path / "own", {
        "bones.md": "# Orthopedics (Outpatient Clinic, 2nd floor)\n\n## Injuries of the hand\n\nBleeding, pain, "
        "a finger that does not move.\n\n# Ophthalmology\n\nLevel 3. Red or sticky eyes, blurred sight.\n",
    })  # fmt: skip
    pages = described("pages")
    import_into(settings, folder, manifest=replace(pages, collection=replace(pages.collection, kind=Kind.LOCAL)),
                encoder=WordsOnly())  # fmt: skip
    with opened(settings, WordsOnly()) as session:
        answer = session.departments("I hurt my hand and one finger does not move")
        assert (parts_of(answer)[0].name, parts_of(answer)[0].floor) == ("Orthopedics", "2nd floor")


def test_a_site_can_switch_it_off(settings: Settings, tmp_path: Path) -> None:
    import_into(settings, write(tmp_path / "own", {"a.md": "# Surgery\n\nSecond floor.\n"}))
    off = replace(settings, workflows=replace(settings.workflows, off=("departments",)))
    with opened(off, HashedWords()) as session, pytest.raises(UsageError, match="switched off"):
        session.departments("My hand hurts")
