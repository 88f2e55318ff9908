"""Sections of a finding: whole, in reading order, nearest sentences marked, bounded, without running heads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from localmed.domain import (
    Answer,
    AnswerStatus,
    Evidence,
    Hit,
    Passage,
    Receipts,
    ShownLine,
    ShownSection,
    Status,
    digest,
)
from localmed.domain.findings import Question, Reading, Section
from localmed.library.lexical import LexicalIndex
from localmed.library.library import Library
from localmed.presentation import finding as shown
from localmed.retrieval.marks import MARKS
from localmed.retrieval.order import others_answer_better
from localmed.retrieval.question import read
from localmed.retrieval.sections import LONGEST, sections
from localmed.text.furniture import states_nothing
from localmed.workflows.receipts import shown_section
from tests.fakes import HashedWords, built
from tests.values import PROVENANCE, cited, hit, passage
from tests.words import phrase

DOSE = "Give adrenaline 0.5 mg into the thigh.\nRepeat after five minutes.\nLay the patient flat."
MORE = "Call for help early.\nGive oxygen by mask."


def of_section(text: str, heading: str, locator: str) -> Passage:
    made = passage(text, "Anaphylaxis")
    return replace(made, id=digest(text, locator), headings=("Anaphylaxis", heading), locator=locator)


OF_OTHERS = of_section("低血糖：患者清醒时给予葡萄糖。肾上腺素无效。", "低血糖的处理", "0-")


@pytest.fixture(scope="module")
def document() -> tuple[Passage, ...]:
    return (
        of_section(DOSE, "Treatment", "0-10"),
        of_section(MORE, "Treatment", "10-20"),
        of_section("Observe for six hours.", "Afterwards", "20-30"),
    )


@pytest.fixture(scope="module")
def index(document: tuple[Passage, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[LexicalIndex]:
    with Library.open(built(tmp_path_factory.mktemp("data") / "of", HashedWords(), document)) as library:
        yield library.lexical


def made(
    index: LexicalIndex,
    document: Sequence[Passage],
    typed: str,
    *places: int,
    similar: Mapping[str, Sequence[float]] | None = None,
    lacking: Sequence[str] = (),
) -> list[Section]:
    hits = [hit(document[place].text) for place in places]
    hits = [replace(one, passage=document[place]) for one, place in zip(hits, places, strict=True)]
    return list(sections(hits, read(typed), index, 10, lambda _: document, lambda _: similar or {}, lacking=lacking))


def test_the_passages_of_one_heading_are_one_section_in_their_order(
    index: LexicalIndex, document: tuple[Passage, ...]
) -> None:
    first, second = made(index, document, "adrenaline dose", 1, 0, 2)
    assert [one.locator for one in first.passages] == ["0-10", "10-20"], "in reading order, each once"
    assert first.best.passage == document[1], "its place is its best passage's"
    assert [line.text for line in second.lines] == ["Observe for six hours."]


def test_the_sentence_with_the_rare_words_is_marked(index: LexicalIndex, document: tuple[Passage, ...]) -> None:
    section = made(index, document, "how much adrenaline", 0)[0]
    assert [line.text for line in section.marks] == ["Give adrenaline 0.5 mg into the thigh."]
    assert not made(index, document, "xylophone", 0)[0].marks
    assert len(made(index, document, "give adrenaline oxygen help repeat flat", 0)[0].marks) <= MARKS


def test_the_sentence_nearest_by_meaning_is_marked_where_the_encoder_knows(
    index: LexicalIndex, document: tuple[Passage, ...]
) -> None:
    near = {document[0].id: (0.36, 0.3, 0.6), document[1].id: (0.2, 0.5)}
    asked = made(index, document, "how much adrenaline", 0, similar=near)[0]
    assert asked.marks[0].text == "Give adrenaline 0.5 mg into the thigh.", "the line with an amount besides"
    without = made(index, document, "xylophone", 0, similar=near)[0]
    assert [line.text for line in without.marks] == ["Lay the patient flat.", "Give oxygen by mask."]


def test_a_section_further_away_has_no_mark(index: LexicalIndex, document: tuple[Passage, ...]) -> None:
    further = of_section("Sit down.\nRing the bell.\nWait.", "Afterwards", "20-30")
    near = {document[0].id: (0.3, 0.5, 0.6), document[1].id: (0.2, 0.5), further.id: (0.3, 0.4, 0.35)}
    first, second = made(index, (*document[:2], further), "xylophone", 0, 2, similar=near)
    assert len(first.marks) == MARKS
    assert second.marks == ()


ROWS = ("Medicine: Enoxaparin; Dose: 40 mg once a day", "Medicine: Paracetamol; Dose: 1 g four times a day")
ANTIDOTES = ("Poison: Opioid; Antidote: Naloxone", "Poison: Paracetamol; Antidote: Acetylcysteine")


@pytest.mark.parametrize(
    ("rows", "typed", "marked"),
    [
        (ROWS, "she took 20 paracetamol", ROWS[1:]),
        (ROWS, "she took 20 tablets", ()),  # no word of it in a cell
        (ROWS, "what is four times", ()),  # no medicine is asked about
        (ROWS, "codeine dose", ()),
        (ROWS, "allergic to codeine", ()),
        (ROWS, "co-amoxiclav", ()),
        (ANTIDOTES, "acetylcysteine or naloxone", ANTIDOTES),
    ],
)
def test_the_row_of_another_medicine_is_not_marked(
    index: LexicalIndex, rows: tuple[str, ...], typed: str, marked: tuple[str, ...]
) -> None:
    table = replace(of_section("\n".join(rows), "Doses", "0-"), table=True)
    (section,) = made(index, (table,), typed, 0, similar={table.id: (0.9, 0.8)})
    assert tuple(line.text for line in section.marks) == marked


@pytest.mark.parametrize(("typed", "marked"), [("codeine dose", 0), ("daily dose", 1)])
def test_what_stands_below_the_name_of_another_medicine_is_not_marked(
    index: LexicalIndex, typed: str, marked: int
) -> None:
    below = of_section("Give 40 mg once a day.", "Enoxaparin", "0-")
    (section,) = made(index, (below,), typed, 0, similar={below.id: (0.9,)})
    assert len(section.marks) == marked


def test_a_section_tells_what_of_the_question_it_does_not_name(index: LexicalIndex) -> None:
    table = of_section("\n".join((*ROWS, "Medicine: Doxycycline; Dose: 100 mg, not in children")), "Doses", "0-")
    asked = "paracetamol or warfarin for a child, she is pregnant and breastfeeding"
    (section,) = made(index, (table,), asked, 0)
    assert section.lacks == ("warfarin", "child", "pregnant", "breastfeeding"), "another medicine's row says nothing"
    spoken = of_section("Children, also in pregnancy: acetaminophen. 哺乳期：华法林。", "Doses", "0-")
    (section,) = made(index, (spoken,), asked, 0)
    assert section.lacks == (), "by any name"


BANDS = (
    "Clearance: 30 mL/min or more; Dose: 40 mg",
    "Clearance: 15 to 29; Dose: 20 mg",
    "Clearance: 14; Dose: 5 mg",
    "Clearance: Not known; Dose: ask",
)


@pytest.mark.parametrize(
    ("typed", "marked"),
    [
        ("dose in bad kidneys", ()),
        ("dose, clearance 20", BANDS[1:2]),
        ("her clearance is 1,030", BANDS[:1]),
        ("clearance 14", BANDS[2:3]),
        ("82 year old, clearance 20", BANDS[1:2]),  # an age is no clearance
        ("what if it is not known", BANDS[3:]),
    ],
)
def test_of_rows_for_ranges_those_with_a_number_of_the_question_are_marked(
    index: LexicalIndex, typed: str, marked: tuple[str, ...]
) -> None:
    table = replace(of_section("\n".join(BANDS), "Doses", "0-"), table=True)
    (section,) = made(index, (table,), typed, 0, similar={table.id: (0.9,) * 4})
    assert tuple(line.text for line in section.marks) == marked


@pytest.mark.parametrize(
    ("header", "typed", "held"),
    [
        ("Age", "3 year old weighing 14 kg", ()),
        ("Age", "14 yo", ("12–18 years",)),
        ("Age", "7 month old", ("6–11 months",)),
        ("eGFR", "eGFR 13, CrCl 14", ("12–18",)),
        ("Score", "score 14, 8 mg", ("12–18",)),
    ],
)
def test_a_number_counts_for_a_range_of_its_own_kind_only(
    index: LexicalIndex, header: str, typed: str, held: tuple[str, ...]
) -> None:
    cells = ("12–18 years", "6–9 years", "6–11 months") if header == "Age" else ("12–18", "6–9")
    table = replace(of_section("\n".join(f"{header}: {cell}; Dose: x" for cell in cells), "Doses", "0-"), table=True)
    (section,) = made(index, (table,), typed, 0, similar={table.id: (0.9,) * len(cells)})
    assert [line.text for line in section.marks] == [f"{header}: {cell}; Dose: x" for cell in held]


@pytest.mark.parametrize(("heading", "marked"), [("Doses", 0), ("Doses in pregnancy", 1)])
def test_what_does_not_name_the_people_asked_about_is_not_marked(
    index: LexicalIndex, heading: str, marked: int
) -> None:
    dose = of_section("Enoxaparin 40 mg once a day.", heading, "0-")
    (section,) = made(index, (dose,), "enoxaparin, 20 weeks pregnant", 0, similar={dose.id: (0.9,)})
    assert len(section.marks) == marked


def test_where_the_library_lacks_something_only_lines_that_name_what_it_has_are_marked(index: LexicalIndex) -> None:
    table = of_section("\n".join(ROWS), "Doses", "0-")
    for asked, lacking, marked in (
        ("paracetamol with azithromycin", "azithromycin", ROWS[1:]),
        ("tablets in Erdheim-Chester", "Erdheim-Chester", ()),
    ):
        (section,) = made(index, (table,), asked, 0, similar={table.id: (0.9, 0.8)}, lacking=(lacking,))
        assert tuple(line.text for line in section.marks) == marked
        assert lacking not in section.lacks, "that is said once, above the sections"


def test_the_range_of_another_medicine_is_not_marked_for_one_that_no_document_has(index: LexicalIndex) -> None:
    lines = ("If eGFR is below 30, stop metformin.", "An eGFR below 30 is severe impairment.")
    passage = of_section("\n".join(lines), "Kidneys", "0-")
    (section,) = made(
        index, (passage,), "dabigatran at eGFR 20", 0, similar={passage.id: (0.9, 0.8)}, lacking=("dabigatran",)
    )
    assert [line.text for line in section.marks] == [lines[1]]


def test_a_short_paragraph_is_marked_whole(index: LexicalIndex) -> None:
    probable, possible, fluid = (
        "Give antibiotics within one hour.",
        "If it is only possible, give antibiotics within three hours.",
        "Give fluid.",
    )
    for filler, marked in (("", [probable, possible]), (" Wash the hands." * 40, [possible])):
        passage = of_section(f"{probable} {possible}{filler}\n{fluid}", "Antibiotics", "0-")
        near = {passage.id: (0.5, 0.9, *((0.1,) * filler.count(".")), 0.1)}
        (section,) = made(index, (passage,), "antibiotics when", 0, similar=near)
        assert [line.text for line in section.marks] == marked, "of two sentences the nearer may be the less urgent"


def test_lines_cut_otherwise_than_when_they_were_encoded_are_marked_by_words_alone(
    index: LexicalIndex, document: tuple[Passage, ...]
) -> None:
    near = {document[0].id: (0.1, 0.6), document[1].id: (0.1, 0.1)}  # a line of the first is missing
    section = made(index, document, "how much adrenaline", 0, similar=near)[0]
    assert [line.text for line in section.marks][:1] == ["Give adrenaline 0.5 mg into the thigh."]
    assert "Repeat after five minutes." not in [line.text for line in section.marks]


def test_of_a_long_section_what_stands_around_the_best_passage_is_shown(index: LexicalIndex) -> None:
    long = tuple(of_section(f"Step {number}. " + "Wash the hands. " * 60, "All", f"{number}-") for number in range(20))
    section = made(index, long, "step", 10)[0]
    assert section.cut
    assert long[10] in section.passages
    assert sum(len(one.text) for one in section.passages) <= LONGEST


def test_a_running_head_is_left_out_and_a_tables_rows_are_lines(index: LexicalIndex) -> None:
    head = of_section(f"Anaphylaxis.\n{DOSE}", "Treatment", "0-")
    table = replace(of_section("Age: adult; Dose: 0.5 mg\nAge: child; Dose: 0.15 mg", "Doses", "1-"), table=True)
    rows, text = made(index, (head, table), "dose of a child", 0, 1)
    assert "Anaphylaxis." not in [line.text for line in text.lines]
    assert [line.text for line in rows.lines] == ["Age: adult; Dose: 0.5 mg", "Age: child; Dose: 0.15 mg"]
    assert [line.text for line in rows.marks][:1] == ["Age: child; Dose: 0.15 mg"]


def test_a_long_section_is_open_around_its_marks_and_nothing_is_left_out(index: LexicalIndex) -> None:
    filler = "Wash the hands and dry them well with a paper towel before you go on. " * 30
    long = (of_section(f"{filler}Give adrenaline 0.5 mg. {filler}", "Treatment", "0-"),)
    section = made(index, long, "adrenaline", 0)[0]
    source = Evidence("1", long[0], "Anaphylaxis", "2024", Status.CURRENT, "a", "", "0" * 64, "text/plain")
    found = Receipts(sections=(shown_section(section, {long[0].id: source}),))
    answer = Answer(AnswerStatus.SECTIONS, "adrenaline", "en", (), (source,), ("c",), PROVENANCE, receipts=found)
    view = shown.view(answer, "en")
    assert view
    seen = view.sections[0]
    assert [run.open for run in seen.runs] == [False, True, False]
    assert any(piece.marked for piece in seen.runs[1].pieces)
    assert sum(len(piece.text) for piece in seen.runs[1].pieces) <= shown.OPEN
    assert len(seen.pieces) == len(section.lines)
    assert seen.excerpt == "Give adrenaline 0.5 mg. …", "what follows is left out, and said"


def test_a_word_is_not_taken_for_a_function_word(tmp_path: Path) -> None:
    made = built(tmp_path / "of", HashedWords(), (passage("Given through a vein after breakfast."),))
    with Library.open(made) as library:
        assert [library.lexical.spelling(word) for word in ("trough", "breakfats")] == ["", "breakfast"]


def test_a_word_is_spelt_as_the_library_has_it(index: LexicalIndex) -> None:
    assert index.spelling("observve") == "observe"
    assert index.spelling("adrenalien") == "adrenaline"
    assert index.spelling("afterwrads") == "afterwards", "of a heading"
    assert index.spelling("obsurvee") == "", "one error in eight letters"
    assert index.spelling("observe") == ""
    assert index.spelling("telephone") == ""


@pytest.mark.parametrize(
    "line",
    ["78.", "2025 GOALS", "�", "[12]", "•", "1.4.2", "iv.", "Table 3", "Figure 2.", "0 10 20 30 40 50 %", "表 3",
     "Treatment", "参考文献", "Anaphylaxis", "12–15", "a)", "Published: 2024", "发布日期：2024-05"],
)  # fmt: skip
def test_what_states_nothing_is_never_marked(line: str) -> None:
    assert states_nothing(line, ("Anaphylaxis", "Treatment"))


@pytest.mark.parametrize(
    "line",
    ["Call 2222.", "INR 2-3", "Hb < 70", "Oxygen 15 L/min", "DO NOT GIVE WITH WARFARIN", "NOT IN PREGNANCY", "Max 4 g",
     "每日一次", "Potassium: 3.5-5.1", "Lay the patient flat.", "Stop.", "No", "AMOXICILLIN 500 mg"],
)  # fmt: skip
def test_what_is_short_and_says_something_may_be_marked(line: str) -> None:
    assert not states_nothing(line, ("Anaphylaxis", "Treatment"))


def test_a_lone_heading_or_number_is_shown_and_not_marked(index: LexicalIndex) -> None:
    text = "Adrenaline dose\n\n78.\n\nGive adrenaline 0.5 mg into the thigh."
    lines = replace(of_section(text, "Adrenaline dose", "0-50"), spans=())
    similar = {lines.id: (0.99, 0.98, 0.5)}
    (found,) = made(index, (lines,), "adrenaline dose", 0, similar=similar)
    assert len(found.lines) == 3
    assert [line.text for line in found.marks] == ["Give adrenaline 0.5 mg into the thigh."]


def of_study(heading: str, text: str) -> Passage:
    return replace(
        passage(text, "Survival"), id=digest(heading, text), headings=("Survival", heading), collection="lit"
    )


@pytest.mark.parametrize("heading", ["PARTICIPANTS", "Setting and participants", "PATIENTS AND METHODS", "研究对象"])
def test_whom_a_study_is_about_stands_beside_its_marks(index: LexicalIndex, heading: str) -> None:
    said = "Ninety patients with lung cancer were followed."
    study = (of_study(heading, said), of_study("RESULTS", "Median survival was 10.8 months."))
    hits = [replace(hit(study[1].text), passage=study[1])]
    asked = Question("median survival")
    find = partial(sections, hits, asked, index, 10, lambda _: study, lambda _: {})
    (found,) = find(lambda collection: collection == "lit")
    assert (found.study, [line.text for line in found.population]) == (True, [said])
    assert study[0] in found.passages, "it can be cited"
    (elsewhere,) = find(lambda _: False)
    assert (elsewhere.study, elsewhere.population) == (False, ())


def test_a_study_that_does_not_say_whom_it_is_about_is_said_not_to() -> None:
    said, people = of_study("RESULTS", "Median survival was 10.8 months."), of_study("PATIENTS", "With lung cancer.")
    piece, other = cited((Hit(said, 1.0), Hit(people, 1.0)))
    line = ShownLine("1", 0, len(said.text), marked=True)
    without = ShownSection("1", (line,), study=True)
    whole = replace(without, population=(ShownLine("2", 0, len(people.text)),))
    for section, told in ((without, phrase("finding.no_population")), (whole, people.text)):
        answer = Answer(AnswerStatus.SECTIONS, "q", "en", (), (piece, other), (), PROVENANCE,
                        receipts=Receipts(sections=(section,)))  # fmt: skip
        view = shown.view(answer, "en")
        assert view is not None
        place = view.sections[0].warnings if section is whole else view.sections[0].details
        assert told in " ".join(place)
        value = shown.section_value(section, answer.by_marker)
        assert (value["study"], bool(value["population"])) == (True, section is whole)


def test_a_summary_of_studies_is_not_asked_whom_it_includes() -> None:
    said = replace(of_study("RESULTS", "Median survival was 10.8 months."), title="Evidence summary: survival")
    (piece,) = cited((Hit(said, 1.0),))
    section = ShownSection("1", (ShownLine("1", 0, len(said.text), marked=True),), study=True)
    answer = Answer(AnswerStatus.SECTIONS, "q", "en", (), (piece,), (), PROVENANCE,
                    receipts=Receipts(sections=(section,)))  # fmt: skip
    view = shown.view(answer, "en")
    assert view is not None
    assert phrase("finding.no_population") not in " ".join((*view.sections[0].details, *view.sections[0].warnings))


@pytest.mark.parametrize(
    ("question", "other"), [("enoxaparin, eGFR 20", True), ("enoxaparin, CrCl 20", False), ("enoxaparin", False)]
)
def test_a_mark_by_the_other_kidney_value_is_said_to_be_one(question: str, other: bool) -> None:
    said = replace(of_study("DOSES", "Creatinine clearance: 15 to 29 mL/min; Prophylaxis: 20 mg"), table=True)
    (piece,) = cited((Hit(said, 1.0),))
    section = ShownSection("1", (ShownLine("1", 0, len(said.text), marked=True),))
    answer = Answer(AnswerStatus.SECTIONS, question, "en", (), (piece,), (), PROVENANCE,
                    receipts=Receipts(sections=(section,)))  # fmt: skip
    view = shown.view(answer, "en")
    assert view is not None
    told = phrase("finding.other_kidney_value")
    assert (told in " ".join(view.sections[0].warnings)) is other


KIDNEYS = (
    "Dose: 40 mg with normal kidney function; Of: enoxaparin",
    "Creatinine clearance: 30 mL/min or more; Dose: Enoxaparin 40 mg",
    "Creatinine clearance: 15 to 29 mL/min; Dose: Enoxaparin 20 mg",
)
GRADES = (
    "分级：1级；收缩压（mmHg）：140至159；关系：和（或）；舒张压（mmHg）：90至99",
    "分级：2级；收缩压（mmHg）：160至179；关系：和（或）；舒张压（mmHg）：100至109",
    "分级：3级；收缩压（mmHg）：≥180；关系：和（或）；舒张压（mmHg）：≥110",
    "分级：单纯收缩期；收缩压（mmHg）：≥140；关系：和；舒张压（mmHg）：<90",
)
SEVERITIES = ("Severity: Low; Give: Amoxicillin by mouth", "Severity: High; Give: Co-amoxiclav")
SCORES = ("CURB-65 score: 0 to 1; Severity: Low", "CURB-65 score: 3 to 5; Severity: High")
FORMULARY = ("Medicine: Ramipril; Notes: not in pregnancy", "Medicine: Apixaban; Notes: bleeding")


@pytest.mark.parametrize(
    ("rows", "typed", "marked"),
    [
        (KIDNEYS, "enoxaparin egfr 20", KIDNEYS[2:]),
        (KIDNEYS, "enoxaparin egfr 45", KIDNEYS[1:2]),
        (KIDNEYS, "enoxaparin in chronic kidney disease", ()),
        (KIDNEYS, "enoxaparin normal kidney function", KIDNEYS[:1]),
        (GRADES, "血压165/95算几级", GRADES[:2]),
        (GRADES, "165/85 grade", (GRADES[1], GRADES[3])),
        (SCORES + SEVERITIES, "curb 65 score 3 what abx", SCORES[1:]),
        (SEVERITIES, "score 3 what abx", ()),
        (SEVERITIES, "high fever, what to give", ()),
        (SEVERITIES, "amoxicillin by mouth", SEVERITIES[:1]),
        (FORMULARY, "what abx for curb 3", ()),
        (FORMULARY, "pre-eclampsia magnesium dose", ()),
        (FORMULARY, "no bleeding", ()),
        (ROWS, "paracetamol overdose protocol", ()),
        (ROWS, "对乙酰氨基酚中毒", ()),
        ((ROWS[1], "After: an overdose; Do: call"), "paracetamol overdose", (ROWS[1], "After: an overdose; Do: call")),
    ],
)
def test_a_row_that_may_not_be_for_this_patient_is_not_marked(
    index: LexicalIndex, rows: tuple[str, ...], typed: str, marked: tuple[str, ...]
) -> None:
    table = replace(of_section("\n".join(rows), "Care", "0-"), table=True)
    (section,) = made(index, (table,), typed, 0, similar={table.id: (0.9,) * len(rows)})
    assert {line.text for line in section.marks} == {*marked}


def test_a_torn_table_is_shown_with_its_picture_and_without_marks(index: LexicalIndex) -> None:
    rows = of_section("Dose of adrenaline: 0.5 mg\nDose of saline: 10 mL", "Treatment", "0-60")
    torn = replace(rows, table=True, doubtful=True)
    for table, marks, pictures in ((torn, 0, 1), (replace(torn, doubtful=False), 1, 0)):
        (found,) = made(index, (table,), "dose of adrenaline", 0)
        assert bool(found.marks) is bool(marks)
        (piece,) = cited((found.best,))
        section = shown_section(found, {piece.passage.id: piece})
        answer = Answer(AnswerStatus.SECTIONS, "q", "en", (), (piece,), (), PROVENANCE,
                        receipts=Receipts(sections=(section,)))  # fmt: skip
        view = shown.view(answer, "en")
        assert view is not None
        assert [one.passage_id for one in view.sections[0].pictures] == [table.id] * pictures
        assert ("picture" in " ".join(view.sections[0].warnings)) is bool(pictures)


@pytest.mark.parametrize(
    ("typed", "own", "better"),
    [
        ("hypoglycaemia, patient awake", "Stroke may look like hypoglycaemia.", True),  # only a heading of the other
        ("adrenaline in hypoglycaemia", "Adrenaline in anaphylaxis.", True),  # only the other names both
        ("hypoglycaemia, patient awake", "Hypoglycaemia", False),  # a heading of its own
        ("patient awake", "Call for help.", False),
        ("hypoglycaemia and seizure, thrombolysis", "Hypoglycaemia", False),  # neither names all
        ("no hypoglycaemia, patient awake", "Stroke may look like hypoglycaemia.", False),  # denied
    ],
)
def test_the_other_language_stands_first_where_only_it_is_on_what_is_named(
    index: LexicalIndex, typed: str, own: str, better: bool
) -> None:
    heading = own if " " not in own else "Afterwards"
    ours = made(index, (of_section(own, heading, "0-"),), typed, 0)
    others = made(index, (OF_OTHERS,), typed, 0)
    assert others_answer_better(Question(typed), ours, others) is better
    assert not others_answer_better(Question(typed), ours, ())


@pytest.mark.parametrize(
    ("typed", "yes_first", "no_first"),
    [
        ("BM 2.8, not safe to swallow", 1, 1),
        ("BM 2.8 cannot swallow", 1, 1),
        ("bm 2.8 pt drowsy not swallowing", 1, 1),
        ("hypo cant swallow", 1, 1),
        ("BM 2.8, not diabetic, can swallow", 0, 0),
        ("drowsy but able to swallow", 0, 0),
        ("drowsy, can hardly swallow", 0, 1),
        ("not able to swallow", 1, 1),
        ("low glucose, not improving", 0, 1),
        ("wont wake up after swallow test", 0, 1),
        ("swallow test? cannot swallow now", 0, 1),
        ("sugar is 2.9 in a fitting patient", 0, 1),
    ],
)
def test_of_two_headings_that_say_yes_and_no_the_one_that_fits_comes_first(
    index: LexicalIndex, typed: str, yes_first: int, no_first: int
) -> None:
    both = (
        of_section("Give juice.", "Patient who is awake and can swallow", "0-10"),
        of_section("Give nothing by mouth.", "Patient who is unconscious or cannot swallow", "10-20"),
    )
    first, second = made(index, both, typed, 0, 1, similar={one.id: (0.9,) for one in both})
    assert first.best.passage == both[yes_first]
    if yes_first and no_first:
        assert not second.marks, "it says the contrary"
    assert made(index, both, typed, 1, 0)[0].best.passage == both[no_first]


@pytest.mark.parametrize(
    ("typed", "first"), [("hypo, unconscious", 1), ("低血糖 意识不清", 1), ("hypo, not unconscious", 0), ("hypo", 0)]
)
def test_a_heading_that_says_the_opposite_of_the_question_comes_after_the_one_that_says_it(
    index: LexicalIndex, typed: str, first: int
) -> None:
    both = (
        of_section("Give juice.", "Patient who is awake", "0-10"),
        of_section("Give nothing by mouth.", "Patient who is unconscious", "10-20"),
    )
    assert made(index, both, typed, 0, 1)[0].best.passage == both[first]


def test_a_passage_with_the_range_of_the_value_is_the_second_at_the_latest(index: LexicalIndex) -> None:
    others = [of_section(f"The INR is a blood test, part {place}.", f"Part {place}", f"{place}-") for place in range(6)]
    critical = of_section("The laboratory phones at once when the INR is above 5.0.", "Critical results", "90-")
    document = (*others, critical)
    for typed, place in (("INR 8.5 on warfarin", 0), ("INR 2.5 on warfarin", 6), ("what is the INR", 6)):
        found = made(index, document, typed, *range(7))
        assert [one.best.passage for one in found].index(critical) == place


def test_a_section_that_does_not_name_a_dangerous_value_comes_after_others_without_marks(index: LexicalIndex) -> None:
    food = of_section("Foods rich in vitamin K work against warfarin.", "Food", "0-")
    critical = of_section("The laboratory phones at once when the INR is above 5.0.", "Critical results", "9-")
    insulin = of_section("Offer insulin when glucose is very high.", "Insulin", "20-")
    low = of_section("Treat a blood glucose below 4.0 mmol/L as hypoglycaemia.", "Treatment", "30-")
    for typed, written, other, named in (
        ("INR 9 vit k?", "INR 9", food, critical),
        ("BS 2.1 insulin", "BS 2.1", insulin, low),
        ("lactate 4.2", "lactate 4.2", low, of_section("Give fluid for a lactate of 4 mmol/L or more.", "Fluid", "1-")),
    ):
        first, second = made(index, (other, named), typed, 0, 1)
        assert (first.best.passage, second.best.passage) == (named, other), typed
        assert written in second.lacks
        assert written not in first.lacks
        assert first.marks
        assert not second.marks


def test_a_value_that_is_left_out_decides_nothing(index: LexicalIndex) -> None:
    food = of_section("Foods rich in vitamin K work against warfarin.", "Food", "0-")
    critical = of_section("The laboratory phones at once when the INR is above 5.0.", "Critical results", "9-")
    hits = [replace(hit(one.text), passage=one) for one in (food, critical)]
    for left_out, first in ((["INR 9"], food), ([], critical)):
        asked = read("INR 9 vitamin k?", left_out=left_out)
        found = sections(hits, asked, index, 10, lambda _: (food, critical), lambda _: {})
        assert found[0].best.passage == first


def test_of_the_first_sections_one_that_names_all_of_the_question_stands_first(index: LexicalIndex) -> None:
    grades = of_section("Blood pressure has three grades.", "Grades", "0-")
    stroke = of_section("Before thrombolysis of a stroke, blood pressure is below 185/110 mmHg.", "Reperfusion", "9-")
    for typed, first in (("stroke thrombolysis bp limit", stroke), ("stroke bp limit", stroke), ("bp limit", grades)):
        assert made(index, (grades, stroke), typed, 0, 1)[0].best.passage == first


def test_each_thing_that_a_section_does_not_name_is_told(index: LexicalIndex) -> None:
    (part,) = made(index, (of_section("A stroke is an emergency.", "Stroke", "0-"),), "stroke thrombolysis", 0)
    assert part.lacks == ("thrombolysis",)


def test_an_entry_of_a_dictionary_is_no_first_section_unless_it_is_asked_for(index: LexicalIndex) -> None:
    entries = [of_section(f"Term {place} is a word.", f"Term {place}", f"{place}-") for place in range(20)]
    entry = of_section("The INR is a blood test on warfarin.", "INR", "90-")
    dictionary = [replace(one, document_id="d" * 64) for one in (*entries, entry)]
    lab = of_section("Phone at once when the INR is above 5.0.", "Critical results", "99-")
    hits = [replace(hit(one.text), passage=one) for one in (dictionary[-1], lab)]
    of = {lab.document_id: (lab,), "d" * 64: dictionary}
    for typed, first in (
        ("INR 8.4 what to do", lab),
        ("INR before surgery", lab),
        ("what is the INR?", dictionary[-1]),
        ("INR on warfarin", dictionary[-1]),  # only the entry names it
    ):
        found = sections(hits, read(typed), index, 10, of.__getitem__, lambda _: {})
        assert found[0].best.passage == first, typed


def test_an_entry_of_the_guide_to_departments_is_for_who_asks_where(index: LexicalIndex) -> None:
    names = ("Cardiology", "Neurology", "Urology", "Maternity", "Orthopaedics", "Surgery", "Pharmacy", "Eye Department")
    guide = [
        replace(of_section(f"{name}: blurred sight.", name, f"{place}-"), document_id="g" * 64)
        for place, name in enumerate(names)
    ]
    blurred = of_section("Blurred sight with a high pressure is an emergency.", "Emergency", "99-")
    hits = [replace(hit(one.text), passage=one) for one in (guide[-1], blurred)]
    of = {blurred.document_id: (blurred,), "g" * 64: guide}
    for typed, first in (("blurred sight", blurred), ("where to refer blurred sight", guide[-1])):
        found = sections(hits, read(typed), index, 10, of.__getitem__, lambda _: {})
        assert found[0].best.passage == first, typed
        assert [one.best.passage for one in found if not one.marks] == [guide[-1]] * (first == blurred)


def test_nothing_is_marked_in_a_section_on_no_medicine_asked_about(index: LexicalIndex) -> None:
    own = of_section("Give ondansetron 4 mg for nausea.", "Nausea", "0-")
    other = of_section("Wait four hours before the next dose of enoxaparin.", "Spinal procedures", "9-")
    of_class = of_section("An ACE inhibitor raises potassium.", "Potassium", "20-")
    found = made(index, (other, own), "nausea ondansetron dose", 0, 1)
    assert [(one.best.passage, bool(one.marks)) for one in found] == [(own, True), (other, False)]
    assert made(index, (of_class,), "potassium on ramipril", 0)[0].marks, "its class is named"


def test_of_a_table_with_ranges_the_row_of_the_number_is_marked(index: LexicalIndex) -> None:
    rows = "Severity: Low (0 to 1); Antibiotic: Doxycycline\nSeverity: High (3 to 5); Antibiotic: Ask a microbiologist"
    table = replace(of_section(rows, "Pneumonia", "0-"), table=True)
    near = {table.id: (0.9, 0.1)}
    (section,) = made(index, (table,), "pneumonia CURB65 3 antibiotic", 0, similar=near)
    assert [line.text for line in section.marks] == [rows.split("\n")[1]]


def test_a_passage_that_says_only_what_the_value_should_be_is_no_first_one(index: LexicalIndex) -> None:
    aims = ("Take warfarin at night. The target INR is 2.0 to 3.0.", "The reference range of potassium is 3.5 to 5.0.")
    acts = ("The laboratory phones when the INR is above 5.0.", "Call a doctor if potassium is above 6.5 mmol/L.")
    for typed, aim, act in zip(("INR 9 on warfarin", "K 6.8"), aims, acts, strict=True):
        document = (of_section(aim, "Usual", "0-"), of_section(act, "Critical", "9-"))
        assert made(index, document, typed, 0, 1)[0].best.passage == document[1], typed
    assert made(index, document, "K 4.1", 0, 1)[0].best.passage == document[0]


def test_what_does_not_name_the_value_asked_about_is_not_marked_and_lacks_it(index: LexicalIndex) -> None:
    document = (
        of_section("A high potassium is an emergency.", "Potassium", "0-"),
        of_section("Give juice if the glucose is low.", "Glucose", "9-"),
    )
    read = Question("K 6.8 what to give", (Reading("K 6.8", "potassium 6.8 mmol/L, high potassium, hyperkalaemia"),))
    hits = [replace(hit(one.text), passage=one) for one in document]
    near = {one.id: (0.9,) for one in document}
    potassium, glucose = sections(hits, read, index, 10, lambda _: document, lambda _: near)
    assert (len(potassium.marks), potassium.lacks) == (1, ())
    assert (len(glucose.marks), glucose.lacks) == (0, ("K 6.8",))


@pytest.mark.parametrize(
    ("typed", "marked"),
    [
        ("pneumonia antibiotic penicillin allergy", [2]),
        ("pneumonia antibiotic, allergic to penicillin", [2]),
        ("肺炎 青霉素过敏", [2]),
        ("pneumonia antibiotic", [0, 1, 2]),
    ],
)
def test_nothing_on_what_somebody_is_allergic_to_is_marked(index: LexicalIndex, typed: str, marked: list[int]) -> None:
    lines = (
        "Pneumonia: give amoxicillin.",
        "Pneumonia: co-amoxiclav contains a penicillin.",
        "Pneumonia with a penicillin allergy: doxycycline.",
    )
    passage = of_section("\n".join(lines), "Antibiotics", "0-")
    (section,) = made(index, (passage,), typed, 0, similar={passage.id: (0.9, 0.9, 0.9)})
    assert [lines.index(line.text) for line in section.marks] == marked


def test_only_the_other_language_has_the_range_of_the_value(index: LexicalIndex) -> None:
    chinese = of_section("血钾升高可致心律失常。", "血钾", "0-")
    english = of_section("A potassium of 6.5 mmol/L or higher is an emergency.", "Critical", "0-")
    for typed, better in (("血钾6.8", True), ("血钾4.1", False)):
        ours, theirs = (made(index, (one,), typed, 0) for one in (chinese, english))
        assert others_answer_better(read(typed), ours, theirs) is better
        assert not others_answer_better(read(typed), theirs, ours)


def test_only_the_other_language_has_all_conditions_in_one_section(index: LexicalIndex) -> None:
    ours = made(index, (of_section("High blood pressure can cause a stroke.", "Stroke", "0-"),), "stroke", 0)
    theirs = made(index, (of_section("溶栓前应控制血压。", "脑卒中的再灌注治疗", "0-"),), "stroke", 0)
    theirs = [replace(one, lines=tuple(replace(line, marked=True) for line in one.lines)) for one in theirs]
    assert others_answer_better(Question("stroke thrombolysis"), ours, theirs)
    assert not others_answer_better(Question("stroke"), ours, theirs)


def test_nothing_is_marked_where_neither_a_condition_nor_the_medicine_asked_about_is_named(index: LexicalIndex) -> None:
    own = of_section("The dose of ondansetron is 4 mg.", "Nausea", "0-")
    other = of_section("Write the dose on the chart.", "Charts", "9-")
    near = {own.id: (0.9,), other.id: (1.2,)}
    found = made(index, (other, own), "dose of ondansetron", 0, 1, similar=near)
    assert {one.best.passage: bool(one.marks) for one in found} == {own: True, other: False}


def test_the_only_row_for_a_number_is_marked_though_another_section_is_nearer(index: LexicalIndex) -> None:
    rows = "Severity: Low (0 to 1); Antibiotic: Doxycycline\nSeverity: High (3 to 5); Antibiotic: Ask a microbiologist"
    table = replace(of_section(rows, "Pneumonia", "0-"), table=True)
    nearer = of_section("An antibiotic for pneumonia is given within four hours.", "Pneumonia in time", "9-")
    near = {table.id: (0.1, 0.1), nearer.id: (0.9,)}
    found = made(index, (nearer, table), "pneumonia CURB65 3 antibiotic", 0, 1, similar=near)
    (marks,) = (one.marks for one in found if one.best.passage == table)
    assert [line.text for line in marks] == [rows.split("\n")[1]]


def test_a_row_that_only_warns_of_the_medicine_asked_about_is_not_marked(index: LexicalIndex) -> None:
    rows = (
        "Medicine: Simvastatin; Dose: 40 mg; Notes: At night",
        "Medicine: Clarithromycin; Dose: 500 mg; Notes: Do not give with simvastatin",
    )
    table = replace(of_section("\n".join(rows), "Formulary", "0-"), table=True)
    (section,) = made(index, (table,), "simvastatin dose", 0, similar={table.id: (0.9, 0.9)})
    assert [line.text for line in section.marks] == [rows[0]]


def test_a_dangerous_value_counts_in_a_heading_or_a_range_and_not_in_passing(index: LexicalIndex) -> None:
    passing = of_section("An ACE inhibitor may cause a high potassium.", "First medicines", "0-")
    headed = of_section("Give calcium gluconate.", "High potassium", "9-")
    aims = of_section("The target potassium is 4.0 to 5.0 mmol/L.", "Heart failure", "20-")
    near = {one.id: (0.9,) for one in (passing, headed, aims)}
    found = made(index, (passing, headed, aims), "K 6.8 what to give", 0, 1, 2, similar=near)
    assert {one.best.passage for one in found if one.marks} == {headed}


def test_a_range_marks_no_line_on_another_medicine(index: LexicalIndex) -> None:
    line = of_section("If eGFR is below 30, halve the dose of metformin.", "Kidneys", "0-")
    for typed, marks in (("enoxaparin at eGFR 25", 0), ("metformin at eGFR 25", 1)):
        (found,) = made(index, (line,), typed, 0, similar={line.id: (0.9,)})
        assert len(found.marks) == marks


def test_an_allergy_is_no_condition_that_a_section_lacks(index: LexicalIndex) -> None:
    (found,) = made(index, (of_section("Pneumonia: doxycycline.", "Antibiotics", "0-"),), "pneumonia, nut allergy", 0)
    assert found.lacks == ()


def test_a_range_of_a_value_does_not_stand_for_a_condition(index: LexicalIndex) -> None:
    document = (of_section("A glucose of 7.0 mmol/L or more in the fasting state is high.", "Diagnosis", "0-"),)
    for typed, lacks in (("stroke, fasting glucose 9.0", ("stroke",)), ("fasting glucose 9.0", ())):
        assert made(index, document, typed, 0)[0].lacks == lacks


@pytest.mark.parametrize(("typed", "lacks"), [("K 6.4 what to do", ()), ("K 2.1", ("K 2.1",))])
def test_a_limit_a_little_beyond_a_dangerous_value_is_compared_with_it(
    index: LexicalIndex, typed: str, lacks: tuple[str, ...]
) -> None:
    critical = of_section("Call a doctor if potassium is 6.5 mmol/L or higher.", "Critical", "0-")
    (found,) = made(index, (critical,), typed, 0, similar={critical.id: (0.9,)})
    assert (found.lacks, bool(found.marks)) == (lacks, not lacks)


def test_a_condition_beside_a_dangerous_value_is_told_where_it_is_lacking(index: LexicalIndex) -> None:
    critical = of_section("Call a doctor if sodium is below 125 mmol/L.", "Critical", "0-")
    (found,) = made(index, (critical,), "Na 121 seizing", 0)
    assert (found.lacks, bool(found.marks)) == (("seizing",), True)
