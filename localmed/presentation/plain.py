"""An answer as text, to paste elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from localmed.domain import message
from localmed.messages import COLON, joined
from localmed.presentation.finding import FindingView, SectionView, blocks
from localmed.presentation.neutral import one_line, words
from localmed.presentation.views import AnswerView, PartView, StatementView

FOLDED = "[...]"  # more of a section, left out
CELLS = " | "  # between the cells of a row


def status_lines(view: AnswerView, question: str, day: str) -> tuple[str, ...]:
    """The question, its date and the result of the check: lines for every copy of ``view``."""
    asked = words(message("answer.asked", question=one_line(question), date=day), view.language)
    badge = (view.badge.title, view.badge.reason) if view.badge else (view.headline,) if view.headline else ()
    return (asked, *badge)


def text_to_copy(view: AnswerView, question: str, day: str) -> str:
    """``view`` to paste elsewhere, with the question, its date and the result of the check."""
    asked, *badge = status_lines(view, question, day)
    return "\n".join(
        (asked, *(badge if view.badge else ()), *view.notices, *view.notes, "", plain(view, counted=not view.sources))
    )


def plain(view: AnswerView, counted: bool = False) -> str:
    """``view`` as text: warnings, sentences, parts and conflicts with their markers, sources, then the sections.

    Sections have the markers of their sources, or numbers (``counted``) where nothing refers to a marker.
    """
    parts = [part for part in view.parts if not part.after]
    lines = [line for part in parts if part.warning for line in _part(part, view.language)]
    lines += [*filter(None, (view.headline, view.searched)), *map(_statement, view.statements)]
    lines += [line for part in parts if not (part.warning or part.lower) for line in _part(part, view.language)]
    if lower := [part for part in parts if part.lower]:
        lines += ["", words(message("departments.less_near"), view.language)]
        lines += [line for part in lower for line in _part(part, view.language)]
    for conflict in view.conflicts:
        sides = ((conflict.our_title, conflict.ours), (conflict.their_title, conflict.theirs))
        lines += [
            "",
            conflict.text,
            *(joined((title, one_line(it.quote)), view.language, COLON) for title, it in sides),
        ]
    lines += ["", view.sources_title] if view.sources else []
    lines += [
        f"[{source.marker}] {' · '.join((source.title, *source.details, *source.warnings))}" for source in view.sources
    ]
    lines += _sections(view.finding, view.language, counted) if view.finding else ()
    return "\n".join((*lines, "", view.purpose)).strip()


def _part(part: PartView, language: str) -> Iterator[str]:
    yield from ("", part.title)
    for row in part.rows:
        yield " ".join(
            filter(None, (joined((row.label, row.text), language, COLON) if row.label else row.text, row.detail))
        )
    yield from map(_statement, part.statements)


def _statement(statement: StatementView) -> str:
    marks = "".join(f"[{marker}]" for marker in statement.markers)
    return statement.withheld or " ".join(filter(None, (statement.text, marks, statement.warning)))


def _sections(finding: FindingView, language: str, counted: bool) -> Iterator[str]:
    read = [*filter(None, (finding.flagged, finding.follows, *finding.read_as, *finding.absent))]
    yield from ([""] if read else [])
    yield from filter(None, (*read, finding.closeness))
    own = [one for one in finding.sections if not one.aside]
    others = finding.others if finding.others_open or not own else ()
    lists = [(words(message("finding.below"), language), own), (finding.others_title, others)]
    number = count(1)
    for title, sections in reversed(lists) if finding.far or finding.others_open else lists:
        if sections:
            yield from ("", title)
        for section in sections:
            yield from _section(section, finding.far, str(next(number)) if counted else section.marker)
    if left := [one.place or one.title for one in (*finding.sections, *finding.others) if one not in (*own, *others)]:
        yield from ("", " ".join((words(message("finding.further"), language), " · ".join(left))))


def _section(section: SectionView, far: bool, marker: str) -> Iterator[str]:
    """Its document and place, then its open text, else its marked sentences. A ``far`` section has neither."""
    yield f"[{marker}] {' · '.join(filter(None, (section.title, *section.details, section.lacks, *section.warnings)))}"
    yield from filter(None, (section.place,))
    if not section.whole:
        yield from () if far or not section.excerpt else (section.excerpt,)
        return
    for run in section.runs:
        for block in blocks(run.pieces) if run.open else ():
            rows = [block.columns, *([text for text, _ in row.cells] for row in block.rows)]
            yield from filter(None, (" ".join(piece.text for piece in block.pieces), *map(CELLS.join, rows)))
        if not run.open:
            yield FOLDED
    if section.cut and section.runs[-1].open:
        yield FOLDED
