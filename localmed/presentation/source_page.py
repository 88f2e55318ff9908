"""A source as its pane shows it: what it is, whether it still holds, its text with the cited characters marked."""

from __future__ import annotations

from dataclasses import dataclass

from localmed.domain import Evidence, Message, Status, message
from localmed.presentation.neutral import neutral, one_line, words
from localmed.presentation.sources import edition, passage_warnings


@dataclass(frozen=True, slots=True)
class SourcePageView:
    """A passage on its page. ``page`` is 0 for a source without pages; ``own`` are the pages that it stands on.

    ``last`` is the document's last page, 0 where it is not known.
    """

    title: str
    details: tuple[str, ...]
    warnings: tuple[str, ...]
    headings: str
    before: str
    cited: str
    after: str
    page: int
    own: tuple[int, ...]
    last: int


def source_page(
    evidence: Evidence, language: str, page: int = 0, span: tuple[int, int] | None = None, last: int = 0
) -> SourcePageView:
    """``evidence`` at ``page`` (0: where ``span`` begins) of ``last``, with ``span`` (None: all of it) marked."""
    passage = evidence.passage
    start, end = span or (0, len(passage.text))
    boxes = passage.boxes(start, end)
    at = page or (boxes[0].page if boxes else passage.page)
    details = [edition(evidence), *([message("answer.page", page=at)] if at and passage.spans else [])]
    details += [message("answer.ocr", confidence=passage.ocr)] if passage.ocr is not None else []
    warnings = [] if evidence.status is Status.CURRENT else [Message(f"answer.{evidence.status.value}")]
    warnings += [message("answer.overdue", date=evidence.overdue)] if evidence.overdue else []
    warnings += passage_warnings((evidence,))
    return SourcePageView(
        one_line(evidence.document_title),
        tuple(words(detail, language) for detail in details),
        tuple(words(warning, language) for warning in warnings),
        one_line(" > ".join(heading for heading in passage.headings if heading != evidence.document_title)),
        neutral(passage.text[:start]),
        neutral(passage.text[start:end]),
        neutral(passage.text[end:]),
        at if passage.spans else 0,
        passage.pages,
        last,
    )
