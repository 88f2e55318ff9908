"""Reads PowerPoint files (.pptx, .pptm): each slide under its number and title, with texts, tables, charts and notes.

Rules: shapes are read in the slide's order, including groups and diagrams (SmartArt). A table row repeats its headers
if the table has a header row; a chart is its title and a row for each category. Speaker notes follow their slide under
their own heading. Hidden slides are left out and noted. The title is the document's property, else the first slide's.

Not covered: pictures, sound and film; texts of the slide master; animations.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from localmed.domain import message
from localmed.domain.errors import InputError
from localmed.ingest.parsed import Block, Fault, FieldMapping, Line, SourceRecord
from localmed.ingest.readers import bounds_of, office, tables, values
from localmed.ingest.readers.tables import Cell
from localmed.ingest.readers.values import superscript

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_DIAGRAM = "/diagramData"
_FIELDS = frozenset({_A + "r", _A + "fld"})
_SPOKEN = _FIELDS | {_A + "br"}


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:
    """Yield the file as one record."""
    from pptx import Presentation

    notes = office.check(path, bounds_of(mapping))
    presentation = office.open_package(path, Presentation)
    # parts of a slide may be missing, so slides are read through ``open_package`` too
    slides = office.open_package(path, lambda _: list(enumerate(presentation.slides, start=1)))
    shown = [(number, slide) for number, slide in slides if slide.element.get("show", "1") not in ("0", "false")]
    blocks = office.open_package(path, lambda _: tuple(block for each in shown for block in _slide(*each)))
    if not any(block.kind != "heading" for block in blocks):
        raise InputError("reader.no_text_pptx", name=path.name)
    if len(shown) < len(slides):
        notes.append(message("reader.hidden_slides", count=len(slides) - len(shown)))
    title = office.line(presentation.core_properties.title)
    title = "" if values.meaning("placeholders", title.lower()) else title  # a default title
    first = next((heading for _, slide in shown if (heading := _title(slide))), "")
    yield SourceRecord("", title or first or path.stem, blocks, notes=tuple(notes))


def _slide(number: int, slide: Any) -> Iterator[Block]:
    title = _title(slide)
    yield Block.of("heading", f"Slide {number}: {title}" if title else f"Slide {number}", 1)
    heading = slide.shapes.title
    for shape in slide.shapes:
        if heading is None or shape.shape_id != heading.shape_id:
            yield from _shape(shape)
    if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame) is not None:
        spoken = list(_paragraphs(frame._txBody))
        if spoken:
            yield Block.of("heading", f"Slide {number}: notes", 2)
            yield from spoken


def _title(slide: Any) -> str:
    title = slide.shapes.title
    return office.line(" ".join(map(_text, title.element.iter(_A + "p")))) if title is not None else ""


def _shape(shape: Any) -> Iterator[Block]:
    if hasattr(shape, "shapes"):
        for inner in shape.shapes:
            yield from _shape(inner)
    elif getattr(shape, "has_table", False):
        yield from tables.table_blocks(list(_cells(shape.table)))
    elif getattr(shape, "has_chart", False):
        yield from _chart(shape.chart)
    elif shape.has_text_frame:
        yield from _paragraphs(shape.text_frame._txBody)
    else:  # a diagram, whose texts are in a part of their own
        names = {value for element in shape.element.iter() for value in element.attrib.values()}
        for name, relation in shape.part.rels.items():
            if name in names and relation.reltype.endswith(_DIAGRAM) and not relation.is_external:
                yield from _paragraphs(office.tree(relation.target_part.blob))


def _paragraphs(body: Any) -> Iterator[Block]:
    for paragraph in body.iter(_A + "p"):
        if text := office.line(_text(paragraph)):
            yield Block("paragraph", (Line(text),))


def _text(paragraph: Any) -> str:
    """The words of a paragraph; a line end is a blank, a raised figure stays raised."""
    return "".join(_run(child) if child.tag in _FIELDS else " " for child in paragraph if child.tag in _SPOKEN)


def _run(run: Any) -> str:
    text = "".join(element.text or "" for element in run.iter(_A + "t"))
    properties = run.find(_A + "rPr")
    raised = properties is not None and str(properties.get("baseline", "0")).startswith(tuple("123456789"))
    return superscript(text) if raised else text


def _cells(table: Any) -> Iterator[Cell]:
    for number, row in enumerate(table.rows):
        for column, cell in enumerate(row.cells):
            if not cell.is_spanned:
                text = office.line(" ".join(map(_text, cell._tc.iter(_A + "p"))))
                header = number == 0 and table.first_row
                yield Cell(text, number, column, cell.span_height, cell.span_width, header)


def _chart(chart: Any) -> Iterator[Block]:
    """The chart's title, then a row for each category with the value of each series."""
    if chart.has_title and chart.chart_title.has_text_frame:
        yield from _paragraphs(chart.chart_title.text_frame._txBody)
    for plot in chart.plots:
        series = [(office.line(line.name), list(line.values)) for line in plot.series]
        labels = [office.line(str(label)) for label in plot.categories]
        rows = max((len(values) for _, values in series), default=0)
        cells = [Cell(name, 0, column, header=True) for column, (name, _) in enumerate(series, start=1)]
        for row in range(rows):
            cells.append(Cell(labels[row] if row < len(labels) else "", row + 1, 0))
            cells += [
                Cell(f"{values[row]:g}", row + 1, column)
                for column, (_, values) in enumerate(series, start=1)
                if row < len(values) and values[row] is not None
            ]
        yield from tables.table_blocks(cells)
