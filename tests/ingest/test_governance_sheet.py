"""A librarian's spreadsheet: read whole or refused by row, in both languages, as CSV and XLSX."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import openpyxl
import pytest

from localmed.config import Settings
from localmed.domain.errors import InputError
from localmed.ingest import governance
from localmed.ingest.governance import Row, Sheet
from localmed.ingest.manifest import Manifest
from localmed.library.library import Library
from localmed.process.files import csv_text
from localmed.site.governing import planned
from tests.fakes import described, import_into, jsonl, write
from tests.words import said, words

ENGLISH = ("File", "Owner", "approver", "Effective from", "review_by", "Edition")
CHINESE = ("文件", "负责人", "批准人", "生效日期", "复审日期", "版本日期")
VALUES = ("a.txt", "Dr Lin", "-", "2026/12/1", "2028年3月", "2026-11")
ROW = {"owner": "Dr Lin", "approver": "", "effective_from": "2026-12-01", "review_by": "2028-03", "edition": "2026-11"}


def sheet(path: Path, *rows: Sequence[object], encoding: str = "utf-8") -> Path:
    """Write ``rows`` as CSV or XLSX."""
    if path.suffix == ".xlsx":
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(list(row))
        book.save(path)
    else:
        with path.open("w", encoding=encoding, newline="") as file:
            csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",").writerows(rows)
    return path


@pytest.mark.parametrize("header", [ENGLISH, CHINESE])
@pytest.mark.parametrize(
    ("name", "encoding"),
    [("s.csv", "utf-8"), ("s.csv", "utf-8-sig"), ("s.csv", "gb18030"), ("s.tsv", "utf-16"), ("s.xlsx", "")],
)
def test_both_languages_in_every_form(tmp_path: Path, header: tuple[str, ...], name: str, encoding: str) -> None:
    path = sheet(tmp_path / name, header, VALUES, ("", "", "", "", "", ""), encoding=encoding)
    assert governance.read_sheet(path) == Sheet((Row(2, "a.txt", ROW),), ())


def test_dates_of_excel_columns_in_any_order_and_others_left_alone(tmp_path: Path) -> None:
    path = sheet(
        tmp_path / "s.xlsx",
        ("remark", "review by", "file"),
        ("x", datetime(2027, 5, 31), "b.txt"),
        (None, None, "a.txt"),
    )
    assert governance.read_sheet(path) == Sheet(
        (Row(2, "b.txt", {"review_by": "2027-05-31"}), Row(3, "a.txt", {})), ("remark",)
    )


@pytest.mark.parametrize(
    "content",
    [
        [],
        [("",)],
        [("name", "owner"), ("a.txt", "Dr Lin")],
        [("file",), ("a.txt",)],
        [("file", "owner", "Responsible"), ("a.txt", "x", "y")],
        None,
        b"PK\x03\x04 and nothing else",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
    ],
)
def test_what_is_no_sheet_is_refused(tmp_path: Path, content: list[tuple[str, ...]] | bytes | None) -> None:
    path = tmp_path / ("s.csv" if isinstance(content, list) else "s.xlsx")
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        sheet(path, *content)
    with pytest.raises(InputError) as caught:
        governance.read_sheet(path)
    assert path.name in str(caught.value)
    assert "Lin" not in str(caught.value)


def test_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sheet(tmp_path / "s.csv", ENGLISH, VALUES, VALUES)
    monkeypatch.setattr(governance, "SHEET_ROWS", 2)
    with pytest.raises(InputError, match="2 rows"):
        governance.read_sheet(path)
    monkeypatch.setattr(governance, "SHEET_BYTES", 10)
    with pytest.raises(InputError, match="10 bytes"):
        governance.read_sheet(path)


@pytest.fixture
def library(settings: Settings, corpus: Path) -> Library:
    """Files of which two have one name, one holds two records and one is described by the manifest."""
    record = {"id": "1", "title": "One", "text": "Sepsis."}
    write(corpus, {"a.txt": "Alpha.", "x/same.txt": "Beta.", "y/same.txt": "Gamma.", "m.txt": "Delta."})
    write(corpus, {"two.jsonl": jsonl(record, record | {"id": "2", "text": "Shock."})})
    import_into(settings, corpus, manifest=MANIFEST)
    return Library.open(settings.data)


NAMES = ("a.txt", "m.txt", "x/same.txt")
MANIFEST = Manifest(
    described().collection, mapping=described().mapping, documents={"m.txt": {"owner": "Dr Wu", "review_by": "2027"}}
)


def test_wrong_rows_are_named_and_nobody_is(library: Library) -> None:
    rows = [
        Row(2, "a.txt", {"effective_from": "01/12/2026"}),
        Row(3, "nothere.txt", {"owner": "Dr Lin"}),
        Row(4, "", {"owner": "Dr Lin"}),
        Row(5, "same.txt", {"owner": "Dr Lin"}),
        Row(6, "x/same.txt", {"owner": "x" * 201}),
        Row(7, "m.txt", {"owner": "Dr Lin"}),
        Row(8, "two.jsonl", {"edition": ""}),
        Row(9, "two.jsonl", {"owner": "Dr Lin"}),
    ]
    with library:
        changes, faults = planned(library.catalogue, MANIFEST, rows)
    assert [fault.row for fault in faults] == [2, 3, 4, 5, 6, 7, 9]  # an edition that is not there is not taken back
    assert changes == []
    assert not any("Lin" in words(fault.reason) or "01/12" in words(fault.reason) for fault in faults)
    assert (9, said("governance.same_document", row=8)) in [(fault.row, words(fault.reason)) for fault in faults]


def test_a_file_is_named_by_path_name_or_id_and_means_all_its_documents(library: Library, tmp_path: Path) -> None:
    with library:
        ids = {Path(document.source).name: document.id for document in library.catalogue.documents()}
        rows = [
            Row(2, "x/same.txt", {"owner": "Dr Lin"}),
            Row(3, str(library.data.parent / "corpus" / "y" / "same.txt"), {"owner": "Dr Lin"}),
            Row(4, ids["a.txt"][:8], {"owner": "Dr Lin"}),
            Row(5, "two.jsonl", {"owner": "Dr Lin"}),
            Row(6, "m.txt", {"owner": "Dr Wu", "approver": ""}),
        ]
        changes, faults = planned(library.catalogue, MANIFEST, rows)
        assert faults == []
        assert [len(change.documents) for change in changes] == [1, 1, 1, 2]  # the last row says what stands already
        read = governance.read_sheet(sheet(tmp_path / "s.csv", *governance.make_template(library.catalogue, "ward")))
        assert [row.file for row in read.rows] == ["a.txt", "m.txt", "two.jsonl", "x/same.txt", "y/same.txt"]
        assert planned(library.catalogue, MANIFEST, read.rows) == ([], []), "what was written out changes nothing"


@pytest.mark.parametrize(
    "name",
    ["a\x1b]0;x\x07.txt", "dose \u202e05.txt", "new\nline.txt", " blank .txt", "=cmd|'x'!A.txt", "+1.txt", "-2.txt",
     "@SUM.txt", "'=quoted.txt", "\\u001b.txt", "\x7f.txt"],
)  # fmt: skip
def test_a_name_that_a_screen_or_a_spreadsheet_obeys_comes_back(settings: Settings, corpus: Path, name: str) -> None:
    write(corpus, {name: "Alpha."})
    import_into(settings, corpus, manifest=MANIFEST)
    out = corpus.parent / "out.csv"
    with Library.open(settings.data) as library:
        header, (cell, *_) = governance.make_template(library.catalogue, "ward")
        cells = (cell, *("=Dr Lin" if field == "owner" else "" for field in header[1:]), "=1+1")
        out.write_text(csv_text([(*header, "remark"), cells]), "utf-8")
        changes, faults = planned(library.catalogue, MANIFEST, governance.read_sheet(out).rows)
    assert faults == []
    assert [change.values for change in changes] == [{"owner": "=Dr Lin"}]
    row = out.read_text("utf-8").splitlines()[1]
    assert row.isprintable()
    assert not [cell for cell in row.split(",") if cell.startswith(("=", "+", "-", "@"))]


@pytest.mark.parametrize(
    "cell", ["2026-31-12", "2026-13", "2026/12/32", "20261301", "2026年13月", "2026-0-1", "Foo 2026", "2026 Dec 40"]
)
def test_a_mistyped_part_of_a_date_is_named_and_never_left_out(library: Library, cell: str) -> None:
    fields = ("effective_from", "review_by", "edition")
    rows = [(name, *(cell if it == field else "" for it in fields)) for name, field in zip(NAMES, fields, strict=True)]
    path = sheet(library.data.parent / "s.csv", ("file", *fields), *rows)
    with library:
        changes, faults = planned(library.catalogue, MANIFEST, governance.read_sheet(path).rows)
    assert changes == []
    assert [(fault.row, words(fault.reason)) for fault in faults] == [
        (row, f"{field.replace('_', ' ')} is not a date: write it as 2026-12-31") for row, field in enumerate(fields, 2)
    ]


@pytest.mark.parametrize(
    ("cell", "date"),
    [
        ("2026", "2026"), ("2026年", "2026"), ("2026-1", "2026-01"), ("Dec 2026", "2026-12"),
        ("20261231", "2026-12-31"), ("2026年12月31日", "2026-12-31"), ("2026 Dec 3", "2026-12-03"),
        ("2026-12-31 00:00:00", "2026-12-31"),
    ],
)  # fmt: skip
def test_dates_as_precise_as_they_were_given(tmp_path: Path, cell: str, date: str) -> None:
    path = sheet(tmp_path / "s.csv", ("file", "review by"), ("a.txt", cell))
    assert governance.read_sheet(path).rows == (Row(2, "a.txt", {"review_by": date}),)
