"""The parts of a Link-Eval: its metrics with what they were taken of, and each citation set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from localmed.domain import Message, message
from localmed.domain.link_counts import METRICS, LinkCounts
from localmed.domain.parts import LinkCountsPart, LinkSetPart
from localmed.messages import joined
from localmed.presentation.neutral import one_line
from localmed.presentation.views import PartView, Row
from localmed.presentation.words import words

# What a metric is a share of: the counts (part, whole) that it is taken from.
_SHARES = {
    "citation_set_precision": ("correct_sets", "sets"),
    "citation_precision": ("correct_citations", "citations"),
    "citation_recall": ("valid_cited", "valid"),
}
_COUNTED = (
    "uncited",
    "unjudged_sets",
    "unjudged_pairs",
    "unjudged_references",
    "malformed",
)  # told where there are any


def counts(part: LinkCountsPart, language: str) -> PartView:
    """The metrics, then what they leave out."""
    return PartView(words(message("links.title"), language), tuple(_count_rows(part.counts, language)))


def _count_rows(link_counts: LinkCounts, language: str) -> Iterable[Row]:
    for name in METRICS:
        yield Row(words(Message(f"links.metric.{name}"), language), words(_metric(link_counts, name), language))
    for name in ("statements", *_COUNTED):
        if number := getattr(link_counts, name):
            yield Row(words(Message(f"links.count.{name}"), language), str(number))


def _metric(link_counts: LinkCounts, name: str) -> Message:
    value = getattr(link_counts, name)
    if value is None:
        return message("links.undefined")
    if name not in _SHARES:
        return message("links.value", value=value)
    part, whole = (getattr(link_counts, count) for count in _SHARES[name])
    return message("links.share", share=value, part=part, whole=whole)


def citation_set(part: LinkSetPart, language: str) -> PartView:
    """A set by its number: whether it carries its statement, and which of its citations it needs for that."""
    outcome = {True: "links.yes", False: "links.no", None: "links.not_judged"}[part.correct]
    needed = joined((f"[{one_line(marker)}]" for marker in part.irreplaceable), language)
    rows = [
        Row(words(message("links.citations"), language), str(part.citations)),
        Row(words(message("links.correct"), language), words(Message(outcome), language)),
        Row(words(message("links.irreplaceable"), language), needed or words(message("links.none"), language)),
    ]
    if part.unresolved:
        rows.append(Row(words(message("links.unresolved"), language), str(part.unresolved)))
    return PartView(words(message("links.set", number=part.number), language), tuple(rows))


VIEWS: Mapping[type, Any] = {LinkCountsPart: counts, LinkSetPart: citation_set}
