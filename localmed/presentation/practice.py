"""The parts of an evidence-based answer: PICO, the record as read, warnings, effects, gaps, sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from localmed.domain import Message, Statement, message
from localmed.domain.parts import (
    AllergyPart,
    CautionPart,
    EntryPart,
    InteractionPart,
    NotJudgedPart,
    PicoPart,
    RecordPart,
    SourceLevelPart,
    ValuePart,
)
from localmed.domain.patient import EntryKind, RecordEntry
from localmed.presentation.neutral import one_line, words
from localmed.presentation.statements import statement_view
from localmed.presentation.views import PartView, Row, StatementView
from localmed.text.language import aligned, fold
from localmed.text.measures import by_name, by_other_kidney_value, measured
from localmed.text.publications import named

ELEMENTS = ("population", "intervention", "comparison", "outcome")
CODED = {EntryKind.SEX: "sex", EntryKind.PREGNANCY: "pregnancy"}  # whose text is a code of ours
ALWAYS = (EntryKind.AGE, EntryKind.PROBLEM, EntryKind.MEDICINE, EntryKind.ALLERGY, EntryKind.RESULT)  # told when none


def pico(part: PicoPart, language: str) -> PartView:
    """The elements of the question."""
    rows = []
    for name in ELEMENTS:
        text = one_line(getattr(part, name)) or words(message("ebm.not_given"), language)
        rows.append(Row(words(Message(f"ebm.{name}"), language), text))
    return PartView(words(message("ebm.pico"), language), tuple(rows))


def record(part: RecordPart, language: str) -> PartView:
    """Every entry by kind; entries that were read from the same words share a row, and those that are only quoted."""
    rows: list[Row] = []
    values = [it for it in part.entries if is_quoted_value(it)]
    told = {entry.kind for entry in part.entries} | ({EntryKind.RESULT} if values else set())
    told |= {EntryKind.MEDICINE} if EntryKind.NAMED in told else set()
    for kind in EntryKind:
        label = words(Message(f"record.{kind.value}"), language)
        entries = [entry for entry in part.entries if entry.kind is kind and entry not in values]
        if kind is EntryKind.UNREAD:
            rows += _rows(words(message("record.values"), language), values, language)
            rows += [Row(label, " · ".join(dict.fromkeys(entry.words for entry in entries)))] if entries else []
        else:
            rows += _rows(label, entries, language)
        if kind in ALWAYS and kind not in told:
            rows.append(Row(label, words(message("record.none_read"), language)))
    return PartView(words(message("record.title"), language), tuple(rows), folded=True)


def is_quoted_value(entry: RecordEntry) -> bool:
    """Whether an entry is a value of a quoted sentence: compared as results are, unless it is a bound or once was."""
    return entry.kind is EntryKind.UNREAD and any(measured(fold(aligned(entry.text))))


def _rows(label: str, entries: Sequence[RecordEntry], language: str) -> list[Row]:
    return [Row(label, _read(tuple(of), language)) for _, of in groupby(entries, key=lambda entry: entry.words)]


def _read(entries: Sequence[RecordEntry], language: str) -> str:
    first = entries[0]
    texts = tuple(one_line(entry.text) for entry in entries)
    if first.kind in CODED:
        texts = tuple(words(Message(f"record.{CODED[first.kind]}_{text}"), language) for text in texts)
    if (first.words,) == texts:
        return texts[0]
    return words(message("record.read_from", text=texts, words=first.words), language)


def allergy(part: AllergyPart, language: str) -> PartView:
    """The words of the record or the order, and below them what the sources say, or the medicines of the order."""
    if part.statements:
        told = message("ebm.allergy", words=part.allergy.words, names=part.named)
        return _first([Row("", words(told, language))], part.statements, language)
    told = message("explain.allergy", words=part.allergy.words, names=part.named)
    return PartView(words(message("explain.check_first"), language), (Row("", words(told, language)),), warning=True)


def interaction(part: InteractionPart, language: str) -> PartView:
    """The record's words, and what the concept graph says."""
    told = message("ebm.interaction", words=part.entry.text, name=part.named, source=part.source)
    return _first([_told(told, (_original(part.entry),), language)], (), language)


def caution(part: CautionPart, language: str) -> PartView:
    """An entry of the record with its values, and what the sources say for them on medicines, or warnings on it."""
    entry = part.entry
    own = () if entry.kind is EntryKind.RESULT else (entry, *part.others)
    values = tuple(f"{_called(one.name, language)} {one.written}" for one in part.values)
    if entry.kind is EntryKind.RESULT:
        code = "ebm.said_of_others"
    else:
        code = "ebm.said_of" if values or entry.kind is EntryKind.PREGNANCY else "ebm.caution"
    said = (*(_named(it, language) for it in own), *values)
    rows = [_told(message(code, words=said, names=part.named), (*map(_original, own), *part.words), language)]
    pairs = ((by_other_kidney_value(it.text, one.name), one) for one in part.values for it in part.statements)
    if pair := next((pair for pair in pairs if pair[0]), None):
        name, asked = (_called(one.name, language) for one in pair if one)
        rows.append(Row("", words(message("finding.other_kidney_value", name=name, asked=asked), language)))
    return _first(rows, part.statements, language)


def _named(entry: RecordEntry, language: str) -> str:
    """What an entry names: a pregnancy by its label."""
    if entry.kind is EntryKind.PREGNANCY:
        return words(Message(f"record.{entry.kind.value}"), language)
    return one_line(entry.text)


def _original(entry: RecordEntry) -> str:
    """The record's words, "" if they are what the entry names."""
    return "" if entry.words in (entry.text, "yes") else entry.words


def _told(told: Message, originals: Sequence[str], language: str) -> Row:
    """A line with the record's words under it."""
    quoted = tuple(dict.fromkeys(f"“{it}”" for it in originals if it))
    return Row("", words(told, language), words(message("ebm.record", words=quoted), language) if quoted else "")


def _called(measure: str, language: str) -> str:
    return by_name(measure).chinese if language == "zh" else measure


def _first(rows: Sequence[Row], statements: Sequence[Statement], language: str) -> PartView:
    """A part that is to be seen before anything else."""
    title = words(message("ebm.check_first"), language)
    return PartView(title, tuple(rows), _statements(statements, language), warning=True)


def listed(part: EntryPart, language: str) -> PartView:
    """A medicine of the record, and its entries in lists of medicines."""
    row = _told(message("literal", text=one_line(part.entry.text)), (_original(part.entry),), language)
    return PartView(words(message("ebm.entries"), language), (row,), _statements(part.statements, language))


def value(part: ValuePart, language: str) -> PartView:
    """Values of the record, and the reference ranges that they are outside, or rows and sentences that tell of them."""
    values = (part.value, *part.further)
    shown = tuple(f"{_called(one.name, language)} {one.written}" for one in values)
    row = _told(message("ebm.target" if part.target else "ebm.value", values=shown), (part.words,), language)
    others = (by_other_kidney_value(it.text, one.name) for one in values for it in part.statements)
    if other := next(filter(None, others), None):
        name = _called(other.name, language)
        row = replace(row, text=words(message("ebm.stands_for", title=row.text, name=name), language))
    return _first([row], part.statements, language)


def not_judged(part: NotJudgedPart, language: str) -> PartView:
    """What nobody judged, a line each."""
    rows = tuple(Row("", words(matter, language)) for matter in part.matters)
    title = "ebm.no_all_clear" if part.first else "ebm.not_judged"
    return PartView(words(message(title), language), rows, warning=part.first, folded=not part.first)


def source_level(part: SourceLevelPart, language: str) -> PartView:
    """A source by type, date and level."""
    level = message("ebm.of_five", level=part.level) if part.level else message("ebm.no_level")
    date = one_line(part.edition) or words(message("answer.no_date"), language)
    rows = (
        Row(words(message("ebm.type"), language), named(part.design, language)),
        Row(words(message("ebm.date"), language), date),
        Row(words(message("ebm.level"), language), words(level, language)),
    )
    markers = "".join(f"[{marker}]" for marker in part.markers)
    return PartView(words(message("ebm.source", markers=markers, title=part.title), language), rows, after=True)


def _statements(statements: Sequence[Statement], language: str) -> tuple[StatementView, ...]:
    return tuple(statement_view(statement, language) for statement in statements)


VIEWS: Mapping[type, Any] = {
    PicoPart: pico,
    RecordPart: record,
    AllergyPart: allergy,
    CautionPart: caution,
    InteractionPart: interaction,
    EntryPart: listed,
    ValuePart: value,
    NotJudgedPart: not_judged,
    SourceLevelPart: source_level,
}
