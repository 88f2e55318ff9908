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
from localmed.text import medicines
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
        return _warning(told, _statements(part.statements, language), language)
    told = message("explain.allergy", words=part.allergy.words, names=part.named)
    return PartView(words(message("explain.check_first"), language), (Row("", words(told, language)),), warning=True)


def interaction(part: InteractionPart, language: str) -> PartView:
    """The record's words, and what the concept graph or the sources say."""
    code = "ebm.interaction" if part.source else "ebm.together"
    warning = message(
        code, words=_quoted(part.entry, language), own=_written(part), name=part.named, source=part.source
    )
    return _warning(warning, _statements(part.statements, language), language)


def caution(part: CautionPart, language: str) -> PartView:
    """The record's words, and warnings that name its medicine or class, or what is said for it on other medicines."""
    entry, values = part.entry, tuple(f"{_called(one.name, language)} {one.written}" for one in part.values)
    code = "ebm.caution" if entry.kind in (EntryKind.MEDICINE, EntryKind.NAMED) and not values else "ebm.said_of"
    code = "ebm.said_of_others" if entry.kind is EntryKind.RESULT else code
    quotation = "; ".join(filter(None, (entry.words if entry.kind is EntryKind.RESULT else "", *part.words)))
    if quotation:
        values = (words(message("record.read_from", text=values, words=quotation), language),)
    if entry.kind is EntryKind.PREGNANCY:
        said: tuple[str, ...] = (_state(entry, language),)
    else:
        own = () if entry.kind is EntryKind.RESULT else (entry, *part.others)
        said = (*(_quoted(it, language) for it in own), *values)
    told = _warning(message(code, words=said, names=part.named), _statements(part.statements, language), language)
    pairs = ((by_other_kidney_value(it.text, one.name), one) for one in part.values for it in part.statements)
    if pair := next((pair for pair in pairs if pair[0]), None):
        name, asked = (_called(one.name, language) for one in pair if one)
        note = message("finding.other_kidney_value", name=name, asked=asked)
        return replace(told, rows=(*told.rows, Row("", words(note, language))))
    return told


def _state(entry: RecordEntry, language: str) -> str:
    """A pregnancy by its words; one set by hand by its label."""
    label = words(Message(f"record.{entry.kind.value}"), language)
    coded = words(Message(f"record.{CODED[entry.kind]}_{entry.text}"), language)
    if entry.words in ("", entry.text, coded):
        return f"{label}: {coded}"
    return words(message("record.quoted", words=entry.words), language)


def _called(measure: str, language: str) -> str:
    return by_name(measure).chinese if language == "zh" else measure


def _quoted(entry: RecordEntry, language: str) -> str:
    """The record's words in quotation marks: of a list its own item, of prose the medicine and the sentence."""
    own = entry.words == entry.text or (entry.kind is not EntryKind.NAMED and entry.text in entry.words)
    told = message("record.quoted", words=entry.text)
    return words(told if own else message("record.read_from", text=entry.text, words=entry.words), language)


def _written(part: InteractionPart) -> str:
    """The medicines of the entry as it writes them, without amounts: the sources say nothing of those."""
    return ", ".join(dict.fromkeys(it.written for it in medicines.mentions(part.entry.text))) or part.entry.text


def _warning(warning: Message, statements: tuple[StatementView, ...], language: str) -> PartView:
    title = words(message("ebm.check_first"), language)
    return PartView(title, (Row("", words(warning, language)),), statements, warning=True)


def listed(part: EntryPart, language: str) -> PartView:
    """The record's words for a medicine, and its entries in lists of medicines."""
    row = Row("", _quoted(part.entry, language))
    return PartView(words(message("ebm.entries"), language), (row,), _statements(part.statements, language))


def value(part: ValuePart, language: str) -> PartView:
    """The record's value, and the reference ranges that it is outside, or rows and sentences that tell of it."""
    shown = tuple(f"{_called(one.name, language)} {one.written}" for one in (part.value, *part.further))
    plain, quoted = ("ebm.target", "ebm.target_quoted") if part.target else ("ebm.rows", "ebm.rows_quoted")
    title = words(message(quoted if part.words else plain, values=shown, words=part.words), language)
    values = (part.value, *part.further)
    others = filter(None, (by_other_kidney_value(it.text, one.name) for one in values for it in part.statements))
    if other := next(others, None):
        title = words(message("ebm.stands_for", title=title, name=_called(other.name, language)), language)
    statements = _statements(part.statements, language)
    if part.target:
        return _warning(message("literal", text=title), statements, language)
    return PartView(words(message("ebm.ranges"), language), (Row("", title),), statements)


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


def _statements(statements: tuple[Statement, ...], language: str) -> tuple[StatementView, ...]:
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
