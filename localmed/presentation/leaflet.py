"""An explained order as a leaflet to print: one HTML page with its style inside, no script, nothing to load.

For a patient, so it says who released it, what it is and what it is not, in the order's language. The order stands
there word for word; who wrote what beside it stays visible, and explanations have the numbers of their sources, which
are listed at the end. Headings in order, a language, a title and a table-free flow, so that a screen reader can read
it; colours are never the only sign.
"""

from __future__ import annotations

from itertools import groupby

from localmed.domain import Answer, message
from localmed.domain.parts import LinePart, ReadingLevelPart, Restated
from localmed.messages import ASIDE, COLON, joined
from localmed.presentation.answer import view
from localmed.presentation.neutral import words
from localmed.presentation.pages import page

CUTS = ("explain.order_cut", "explain.questions_cut")  # the notes that a patient needs


def leaflet(answer: Answer, date: str) -> str:
    """The leaflet of an explained order, dated ``date``; raise ``ValueError`` where nobody releases it."""
    if not answer.released_by:
        raise ValueError("nobody releases it")
    language = answer.language
    shown = view(answer, audience="patient")
    lines = [part for part in answer.parts if isinstance(part, LinePart)]
    levels = [part for part, made in zip(shown.parts, answer.parts, strict=True) if isinstance(made, ReadingLevelPart)]
    sections = [(title, list(parts)) for title, parts in groupby(shown.parts, lambda part: part.section) if title]
    return page(
        "leaflet.html",
        language=language,
        colon=joined(("", ""), language, COLON),
        comma=joined(("", ""), language, ASIDE),
        verbatim=words(message("answer.origin.extractive"), language),
        verbatim_note=words(message("explain.leaflet.numbers"), language),
        title=words(message("explain.leaflet.title"), language),
        released=words(message("explain.released", name=answer.released_by, date=date), language),
        purpose=shown.purpose,
        check=words(message("explain.leaflet.check"), language),
        cuts=[words(note, language) for note in answer.notes if getattr(note, "code", "") in CUTS],
        quoted=words(message("explain.leaflet.quoted"), language)
        if all(part.restated is Restated.QUOTED for part in lines)
        else "",
        lines_title=words(message("explain.lines"), language),
        sections=[(title, parts) for title, parts in sections if parts[0] not in levels],
        levels=levels,
        sources=shown.sources,
        sources_title=shown.sources_title,
        provenance=answer.provenance,
    )
