"""The pages of a source, the warnings about it, and the source as its pane shows it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from localmed.domain import Evidence, Governance, Kind, Message, Status, message
from localmed.presentation.neutral import one_line, words

# Years from which a source's age is said. Practice guidelines are out of date after some five years (Shekelle 2001);
# of studies and books a reader expects older ones.
OLD = {Kind.GUIDELINE: 5, Kind.LITERATURE: 10, Kind.BOOK: 10, Kind.WIKI: 10, Kind.LEAFLET: 5, Kind.LOCAL: 5}
ANY_OLD = 10


def pages(numbers: Collection[int]) -> list[Message]:
    """The pages ``numbers``: one, a range, or each."""
    first, last = min(numbers, default=0), max(numbers, default=0)
    if last - first == len(numbers) - 1 and last > first:
        return [message("answer.pages", first=first, last=last)]
    return [message("answer.page", page=page) for page in sorted(numbers)]


def edition(evidence: Evidence) -> Message:
    """The date of a source's edition, or that it has none."""
    return message("answer.edition", edition=evidence.edition) if evidence.edition else message("answer.no_date")


def warnings(evidence: Evidence, day: str, beside: Sequence[Evidence] = ()) -> list[Message]:
    """Warnings about a source on ``day``: its status, a missed review, its age, and those about its passages.

    ``beside`` are the other passages of its section.
    """
    told = [] if evidence.status is Status.CURRENT else [Message(f"answer.{evidence.status.value}")]
    told += [message("answer.overdue", date=evidence.overdue)] if evidence.overdue else []
    years = age(evidence.edition, day)
    told += [message("answer.age", count=years)] if years >= OLD.get(evidence.kind, ANY_OLD) else []
    return told + _passage_warnings((evidence, *beside))


def _passage_warnings(shown: Sequence[Evidence]) -> list[Message]:
    """Warnings about single passages: text addressed to a model, doubtful tables, notes of the librarian."""
    told = [message("answer.planted")] if any(piece.planted for piece in shown) else []
    told += [message("answer.table_doubtful")] if any(piece.passage.doubtful for piece in shown) else []
    return told + [message("answer.remark", note=it) for it in dict.fromkeys(one.remark for one in shown) if it]


def responsible(governance: Governance, told: Sequence[str], language: str) -> tuple[str, ...]:
    """Who answers for a document, and when it is reviewed if no warning ``told`` it, in words."""
    owner, review = governance.owner, governance.review_by
    known = [message("answer.owner", owner=one_line(owner))] if owner else []
    known += [message("answer.review_by", date=review)] if review and not any(review in one for one in told) else []
    return tuple(words(one, language) for one in known)


def age(edition: str, day: str) -> int:
    """The whole years from ``edition`` to ``day`` (ISO 8601, perhaps without month or day); 0 without both.

    An edition without a day counts from the last day of its year or month.
    """
    if not (edition[:4].isdigit() and day[:4].isdigit()):
        return 0
    begun = (edition + "-12-31"[len(edition) - 4 :]) if len(edition) in (4, 7) else edition
    return max(0, int(day[:4]) - int(begun[:4]) - (day[4:] < begun[4:]))


@dataclass(frozen=True, slots=True)
class SourcePageView:
    """A passage on its page, or in its part of a source without pages; ``own`` are the pages of the passage.

    ``last`` is the document's last page, 0 if unknown.
    """

    title: str
    details: tuple[str, ...]
    warnings: tuple[str, ...]
    headings: str
    page: int
    own: tuple[int, ...]
    last: int
    collection: str


def source_page(
    evidence: Evidence,
    language: str,
    page: int = 0,
    span: tuple[int, int] | None = None,
    last: int = 0,
    own: tuple[int, ...] = (),
) -> SourcePageView:
    """``evidence`` at ``page`` (0: where ``span`` begins) of ``last``; ``own``: its parts in a source without pages."""
    passage = evidence.passage
    boxes = passage.boxes(*span) if span else passage.boxes()
    at = page or (boxes[0].page if boxes else passage.page)
    details = [edition(evidence), *([message("answer.page", page=at)] if passage.spans else [])]
    details += [message("answer.ocr", confidence=passage.ocr)] if passage.ocr is not None else []
    return SourcePageView(
        one_line(evidence.document_title),
        tuple(words(detail, language) for detail in details),
        tuple(words(warning, language) for warning in warnings(evidence, "")),
        one_line(" > ".join(heading for heading in passage.headings if heading != evidence.document_title)),
        at,
        own or passage.pages,
        last,
        passage.collection,
    )
