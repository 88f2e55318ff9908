"""Which passages of a hospital's own pages are of which department, and on which floor it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localmed.domain import Hit, Passage
from localmed.retrieval.guide import by_department, department, floor, is_emergency, named
from tests.values import passage


def section(*headings: str, text: str = "What we see.", table: bool = False) -> Passage:
    return replace(passage(text, headings[0]), headings=headings, table=table)


@pytest.mark.parametrize(
    ("heading", "name"),
    [
        ("Ear, Nose and Throat", "Ear, Nose and Throat"),
        ("Diabetes and Endocrinology:", "Diabetes and Endocrinology"),
        ("Orthopedics (Outpatient Clinic, 2nd floor)", "Orthopedics"),
        ("骨科（创伤骨科、手足显微外科）门诊（门诊二层）：", "骨科门诊"),
        ("神经内科与卒中单元", "神经内科与卒中单元"),
        ("Where departments are", ""),
        ("Visiting", ""),
        ("Medicine to take before the examination of the stomach in the clinic", ""),
        ("就诊指南：科室楼层、开放时间与分机号", ""),
        ("探视", ""),
        ("", ""),
    ],
)
def test_names(heading: str, name: str) -> None:
    assert named(heading) == name


def test_sections_under_a_department_are_its_own() -> None:
    assert department(section("Our hospital", "Orthopaedics", "Trauma to the hands")) == "Orthopaedics"
    assert department(section("Cardiology")) == "Cardiology"  # a record a department: the title is its name
    assert department(section("Our hospital", "Visiting")) == ""
    hits = [Hit(section("Guide", "Cardiology", text=text), 1.0) for text in ("one", "two")]
    assert [len(group) for group in by_department([*hits, Hit(section("Guide", "Visiting"), 1.0)]).values()] == [2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Second floor, room 12.", "Second floor"),
        ("You find us on the 3rd floor.", "3rd floor"),
        ("Ground floor.", "Ground floor"),
        ("Building B, Level 2.", "Level 2"),
        ("门诊楼三楼。", "三楼"),
        ("门诊二层。", "二层"),
        ("位于3F。", "3F"),
        ("地下一层。", "地下一层"),
        ("We see hearts.", ""),
        ("心脏和循环。", ""),
    ],
)
def test_the_floor_is_what_the_section_says(text: str, expected: str) -> None:
    place = floor("Cardiology", [section("Guide", "Cardiology", text=text)])
    assert (place.text if place else "") == expected
    if place:
        assert text[place.start : place.end] == expected


def test_a_floor_in_the_heading_and_none_of_another_department() -> None:
    place = floor("骨科门诊", [section("指南", "骨科门诊（门诊二层）")])
    assert place is not None
    assert (place.text, place.end) == ("二层", 0)
    assert floor("Surgery", [section("Guide", "Cardiology", text="Second floor.")]) is None


def test_a_floor_in_the_row_of_a_table() -> None:
    rows = "Department: Neurology; Floor: Fourth floor\nDepartment: Cardiology; Floor: Second floor; Extension: 1210"
    table = section("Guide", "Where departments are", text=rows, table=True)
    place = floor("Cardiology", [section("Guide", "Cardiology"), table])
    assert place is not None
    assert place.text == "Second floor"
    assert rows[place.start : place.end].startswith("Department: Cardiology")
    assert floor("Surgery", [table]) is None


@pytest.mark.parametrize(("name", "urgent"), [("Emergency Department", True), ("A&E", True), ("急诊科", True),
                                              ("Maternity", False), ("外科", False)])  # fmt: skip
def test_where_emergencies_go(name: str, urgent: bool) -> None:
    assert is_emergency(name) is urgent
