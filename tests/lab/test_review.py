"""Human review: blinding, controls, reading what spreadsheets make of a form, and figures known from elsewhere."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from localmed.domain.errors import InputError, UsageError
from localmed.lab import agreement
from localmed.lab import review_sheets as review
from localmed.lab.review_sheets import Rating
from localmed.messages import LANGUAGES, render

pytestmark = pytest.mark.extra("eval")

CASES = "".join(
    json.dumps({"id": f"q{n}", "question": f"Question {n}?", "answers": {"localmed": f"Yes {n} [1].", "alone": "No."}})
    + "\n"
    for n in range(8)
)
CONTROL = json.dumps(
    {"id": "c", "question": "Is water wet?", "answers": {"localmed": "Bananas.", "alone": "Yes."},
     "control": {"localmed": {"relevance": -1}}}
) + "\n"  # fmt: skip


def exported(text: str = CASES, reviewers: tuple[str, ...] = ("r1", "r2"), **others: Any) -> Any:
    return review.make_sheets(review.cases(text, "cases.jsonl", "clinician"), reviewers, "clinician", 1, **others)


def filled(sheet: Sequence[review.Block], value: Any, delimiter: str = ",") -> str:
    """The form of ``sheet``, every cell ``value(code, dimension)``."""
    rows = list(csv.DictReader(io.StringIO(review.sheet_csv(sheet, "clinician"))))
    names = [dimension.name for dimension in review.FORMS["clinician"]]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(row | {name: value(row["code"], name) for name in names} for row in rows)
    return text.getvalue()


def test_a_form_tells_nothing_of_the_systems_and_each_has_its_own_order() -> None:
    sheets, key = exported()
    for sheet in sheets.values():
        text = review.sheet_csv(sheet, "clinician")
        assert "localmed" not in text
        assert "[1]" not in text, "only one system cites"
        assert sorted(block.question for block in sheet) == [f"Question {n}?" for n in range(8)]
    assert [block.question for block in sheets["r1"]] != [block.question for block in sheets["r2"]]
    first = Counter(entry.system for entry in key.entries if entry.code.endswith("-a"))
    assert 0 < first["localmed"] < 16, "neither system always comes first"
    assert exported() == (sheets, key), "the same seed gives the same forms"
    assert "[1]" in review.sheet_csv(exported(markers=True)[0]["r1"], "clinician")
    with pytest.raises(UsageError):
        exported(reviewers=("r1", "r1"))


@pytest.mark.parametrize("text", ["A [1].", "A [1, 2].", "A［1］。", "A【1】。", "A [1-3]."])
def test_markers_of_every_form_are_taken_out(text: str) -> None:
    assert review.without_markers(text) in ("A.", "A。")
    assert review.without_markers("[Na+] is 140 mmol/L") == "[Na+] is 140 mmol/L"


@pytest.mark.parametrize(("code", "delimiter"), [("utf-8-sig", ","), ("utf-16", "\t"), ("gb18030", ";"), ("big5", ",")])
def test_a_form_comes_back_in_whatever_code_a_spreadsheet_saved_it(code: str, delimiter: str) -> None:
    """Spreadsheet programs set to Chinese save GBK; what is read of a form is ASCII in all of them."""
    text = CASES.replace("Question", "血壓").replace("Yes", "能，目標")
    sheets, key = exported(text)
    content = filled(sheets["r1"], lambda *_: "1.0", delimiter).encode(code)
    read = review.ratings(review.decode(content), "r1.csv", key)
    assert len(read) == 16
    assert all(set(row.values()) == {1} for row in read.values())


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (lambda text: text.replace("code", "kode", 1), "review.table"),
        (lambda text: text + text.partition("\n")[2], "review.code"),
        (lambda text: text.replace("1-1-a", "9-9-a"), "review.code"),
        (lambda text: text.replace(",1,1,1,1,1,1,1,1,1", ",1,1,0,1,1,1,1,1,1", 1), "review.value"),
    ],
)
def test_a_form_that_is_none_is_refused(changed: Any, code: str) -> None:
    sheets, key = exported()
    sheet = sheets["r1"]
    text = changed(filled(sheet, lambda *_: "1").replace("\r\n", "\n"))
    with pytest.raises(InputError) as refused:
        review.ratings(text, "r1.csv", key)
    assert refused.value.message.code == code


def test_who_misses_a_control_is_left_out_and_controls_are_in_no_result() -> None:
    sheets, key = exported(CASES + CONTROL)
    right = {entry.code for entry in key.entries if entry.control}

    def honest(code: str, name: str) -> str:
        return "-1" if code in right and name == "relevance" else "1"

    forms = [review.ratings(filled(sheets["r1"], honest), "1", key),
             review.ratings(filled(sheets["r2"], lambda *_: "1"), "2", key)]  # fmt: skip
    ratings, left_out = review.merge_ratings(forms, key)
    assert left_out == ("r2",)
    assert {rating.reviewer for rating in ratings} == {"r1"}
    assert {rating.case for rating in ratings} == {f"q{n}" for n in range(8)}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "review.cases"),
        ("{}\n", "review.line"),
        ('{"id": "1", "question": "Q", "answers": {"a": ""}}', "review.line"),
        ('{"id": "1", "question": "Q", "answers": {"a": "x"}}', "review.systems"),
        (CASES + '{"id": "x", "question": "Q", "answers": {"a": "x", "b": "y"}}', "review.systems"),
        (CASES + '{"id": "x", "question": "Q", "answers": {"a": "x"}, "control": {"a": {"s": 1}}}', "review.control"),
        (CASES + '{"id": "x", "question": "Q", "answers": {"a": "x"}, "control": {"a": "s"}}', "review.line"),
        (CASES + '{"id": "x", "question": "\\ud800", "answers": {"a": "x"}}', "review.line"),
    ],
)  # fmt: skip
def test_cases_that_cannot_be_reviewed_are_refused(text: str, code: str) -> None:
    with pytest.raises(InputError) as refused:
        review.cases(text, "cases.jsonl", "clinician")
    assert refused.value.message.code == code


@pytest.mark.parametrize("seed", ["1e400", "1"])
def test_a_key_that_is_none_is_refused(seed: str) -> None:
    entry = '{"code": "a", "reviewer": "r", "case": "c", "system": "s", "control": 5}'
    with pytest.raises(InputError):
        review.key_of(f'{{"form": "lay", "seed": {seed}, "entries": [{entry}]}}', "key.json")


def test_lines_of_one_system_each_become_a_case_and_every_dimension_has_its_words() -> None:
    lines = (json.dumps({"id": "1", "question": "Q?", "system": name, "answer": name.upper()}) for name in "ab")
    (case,) = review.cases("\n".join(lines), "cases.jsonl", "lay")
    assert case.answers == {"a": "A", "b": "B"}
    for dimension in (one for form in review.FORMS.values() for one in form):
        assert dimension.values == tuple(sorted(dimension.values)), "worst first"
        assert all(render(dimension.question, language) for language in LANGUAGES)


# --- figures known from elsewhere -------------------------------------------------------------------------------------

KNOWN = {"A": "*****3412113" + "3*3", "B": "1*213343*******", "C": "**21344*21133*4"}


def test_figures_of_agreement_are_the_published_ones() -> None:
    """Three coders and fifteen units, as the literature on alpha has them; 50 proposals and two readers for kappa."""
    table = {
        coder: {f"{place:02}": int(mark) for place, mark in enumerate(marks) if mark != "*"}
        for coder, marks in KNOWN.items()
    }
    assert agreement.alpha(table, (1, 2, 3, 4)) == pytest.approx(0.807, abs=0.001), "ordinal"
    pairs = [(1, 1)] * 20 + [(-1, -1)] * 15 + [(1, -1)] * 5 + [(-1, 1)] * 10
    one, other = ({str(place): pair[side] for place, pair in enumerate(pairs)} for side in (0, 1))
    assert agreement.kappa(one, other) == pytest.approx(0.4)
    assert agreement.kappa({"1": 1}, {"1": 1}) is None, "chance alone would agree"
    assert agreement.kappa({"1": 1}, {"2": 1}) is None
    assert agreement.kruskal([[1, 1], [1, 1]]) is None
    assert agreement.alpha({"r1": {"u": 1}}, (-1, 1)) is None
    assert (agreement.wilcoxon_p([]), agreement.wilcoxon_p([0.0, 0.0])) == (None, 1.0)


def test_a_better_system_is_seen() -> None:
    ratings = [
        Rating(reviewer, f"q{case}", system, "helpfulness", 1 if system == "good" or case % 5 == 0 else -1)
        for reviewer in ("r1", "r2", "r3") for case in range(20) for system in ("good", "poor")
    ]  # fmt: skip
    report = agreement.report(ratings, "lay", (), seed=1).values
    (contrast,) = report["contrasts"]
    assert (contrast["first"], contrast["second"], contrast["cases"]) == ("good", "poor", 20)
    assert contrast["difference"] == pytest.approx(1.6)
    assert contrast["p"] < 0.001
    (agreed,) = report["agreements"]
    assert (agreed["alpha"], agreed["kappa"]) == (1.0, 1.0)
    good, poor = report["scores"]
    assert [good["mean"], poor["mean"], poor["best"]] == pytest.approx([1.0, -0.6, 0.2])
    assert poor["low"] < -0.6 < poor["high"]
