"""Renders Jinja2 templates from ``templates/``. Values are escaped and neutralised; a missing name is an error.

A page loads nothing: its style is inline and it contains no script.

``leaflet`` renders an explained order for a patient, to print, in the order's language. It names who released it, its
purpose and its limits. The order is quoted word for word, and the author of each explanation stays visible. For screen
readers it has ordered headings, a language, a title and no tables; no colour is the only sign.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any

from localmed.domain import Answer, message
from localmed.domain.parts import LinePart, Restated
from localmed.messages import ASIDE, COLON, joined
from localmed.presentation.answer import view
from localmed.presentation.neutral import neutral, words
from localmed.presentation.order import in_language, in_other_words, terms_by_line

if TYPE_CHECKING:
    from jinja2 import Environment

# Nothing but the page's own style: no script, no image from elsewhere, no form, no frame.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def page(template: str, nonce: str = "", **values: Any) -> str:
    """Render ``template`` with ``values``; with a ``nonce`` the reply sets the policy."""
    return environment("localmed.presentation").get_template(template).render(policy=POLICY, nonce=nonce, **values)


@cache
def environment(package: str) -> Environment:
    """The templates in the folder ``templates`` of ``package``."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = files(package).joinpath("templates")
    return Environment(
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text("utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: neutral(value) if type(value) is str else value,
    )


CUTS = ("explain.order_cut", "explain.questions_cut", "explain.struck")  # the notes that a patient needs


def leaflet(answer: Answer, date: str) -> str:
    """The leaflet of an explained order in its language; see ``leaflets``."""
    return leaflets(answer, date, (answer.language,))


@dataclass(frozen=True, slots=True)
class Window:
    """Buttons above a leaflet in the browser, to print and to go back to ``path``.

    The ``script`` clears the leaflet after ``idle`` seconds, when the ``user`` signs out, and when a source is
    withdrawn.
    """

    print: str
    back: str
    path: str
    script: str
    nonce: str
    user: str
    idle: int


def leaflets(answer: Answer, date: str, languages: tuple[str, ...], window: Window | None = None) -> str:
    """The leaflet of an explained order, dated ``date``, in each of ``languages``, one after the other.

    The order and the sources are quoted in their own language. Raise ``ValueError`` if nobody released the order.
    """
    if not answer.released_by:
        raise ValueError("nobody releases it")
    sheets = [_leaflet(answer, date, language) for language in languages]
    nonce, title = window.nonce if window else "", sheets[0]["title"]
    return page("leaflet.html", nonce, language=languages[0], title=title, sheets=sheets, window=window)


def _leaflet(answer: Answer, date: str, language: str) -> dict[str, Any]:
    told = in_language(answer, language)
    shown = view(told, language, audience="patient")
    lines = [part for part in answer.parts if isinstance(part, LinePart)]
    order_lines, rest = terms_by_line(told.parts, shown.parts, language)
    sections = [(title, list(group)) for title, group in groupby(rest, lambda part: part.section) if title]
    return {
        "language": language,
        "colon": joined(("", ""), language, COLON),
        "comma": joined(("", ""), language, ASIDE),
        "verbatim": words(message("answer.origin.extractive"), language),
        "verbatim_note": words(message("explain.leaflet.numbers"), language),
        "title": words(message("explain.leaflet.title"), language),
        "released": words(message("explain.released", name=answer.released_by, date=date), language),
        "purpose": shown.purpose,
        "check": words(message("explain.leaflet.check"), language),
        "cuts": [
            *(words(note, language) for note in answer.notes if getattr(note, "code", "") in CUTS),
            *([words(message("explain.leaflet.other"), language)] if in_other_words(answer, language) else []),
        ],
        "quoted": words(message("explain.leaflet.quoted"), language)
        if all(part.restated is Restated.QUOTED for part in lines)
        else "",
        "lines_title": words(message("explain.lines"), language),
        "lines": order_lines,
        "sections": sections,
        "sources": shown.sources,
        "sources_title": shown.sources_title,
    }


def moment(stored: str | float) -> str:
    """A stored time (ISO 8601, or seconds since 1970) in local time, to the minute; "–" for none."""
    known = (
        datetime.fromtimestamp(stored)
        if isinstance(stored, float)
        else datetime.fromisoformat(stored)
        if stored
        else None
    )
    return known.astimezone().strftime("%Y-%m-%d %H:%M") if known else "–"
