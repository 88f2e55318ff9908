"""An explained order as a reader is shown it: whether it is released, the order, its terms, the questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date

from localmed.domain import Answer, AnswerStatus, Part, TextPart
from localmed.workflows.leaflet import KINDS, LABELS, level, model_label, told


def readable(answer: Answer) -> Answer:
    """``answer`` with headings between its parts and their facts in the reader's words."""
    if answer.status is AnswerStatus.SAFETY:
        return answer
    labels, name = LABELS[answer.language], answer.released_by
    released = labels["released"].format(name=name, date=date.today().isoformat()) if name else labels["not_released"]
    parts = [TextPart("heading", released)]
    for kind in KINDS:
        found = [_readable(each, labels) for each in answer.parts if each.kind == kind]
        parts += [TextPart("heading", f"== {labels[kind]} =="), *found] if found else []
    measured = level(answer, labels)
    parts += [TextPart("heading", measured)] if measured else []
    return replace(answer, parts=tuple(parts), status=AnswerStatus.ANSWERED if len(parts) > 1 else answer.status)


def _readable(part: Part, labels: Mapping[str, str]) -> Part:
    """A part with its facts in the reader's words."""
    if part.kind != "line":
        return replace(part, facts=tuple(("", each) for each in told(part, labels)))
    facts = dict(part.facts)
    if facts["how"] == "quoted":
        return replace(part, facts=(("", f"({labels['quoted']})"),))
    return replace(part, facts=(("", facts["plain"] + model_label(facts["how"], labels)),))
