"""Errors as replies: one line on the cause and what to do, as a page, or as JSON on request."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from localmed.domain import Message, message
from localmed.domain.accounts import Right
from localmed.domain.errors import (
    Busy,
    FirstPassword,
    InputError,
    LibraryError,
    LimitExceeded,
    LocalmedError,
    ModelError,
    NoLibrary,
    NotAllowed,
    NoToken,
    NotSignedIn,
    QueueFull,
    UnknownName,
    UsageError,
)
from localmed.messages import as_json, sentences
from localmed.process.confined import place
from localmed.web import pages, visits
from localmed.web.visits import Visit

LOG = logging.getLogger("localmed.web")
LONGEST_FIELD = 100  # characters of a field's name that is repeated
# Pydantic's types of faults: what we say, and which of the fault's bounds is named.
FIELD_FAULTS = {
    "missing": ("missing", ""),
    "extra_forbidden": ("unknown", ""),
    "enum": ("choice", "expected"),
    "literal_error": ("choice", "expected"),
    "string_too_long": ("characters", "max_length"),
    "too_long": ("entries", "max_length"),
    "greater_than_equal": ("least", "ge"),
    "less_than_equal": ("most", "le"),
}
STATUS: tuple[tuple[type[LocalmedError], int], ...] = (  # the first that an error is one of
    (UnknownName, 404),
    (NotAllowed, 403),
    (NotSignedIn, 401),
    (UsageError, 400),
    (LimitExceeded, 413),
    (InputError, 422),
    (QueueFull, 429),
    (Busy, 503),
    (NoLibrary, 404),
    (LibraryError, 503),
    (ModelError, 503),
)


def as_ours(error: Exception) -> LocalmedError:
    """``error``, or for a foreign error one that names its place in the log, without its text."""
    if isinstance(error, LocalmedError):
        return error
    reference = secrets.token_hex(4)
    LOG.error(f"{reference} {place(error)}")
    return LocalmedError("web.error.unexpected", reference=reference)


def status_of(error: LocalmedError) -> int:
    """The HTTP status of ``error``."""
    return next((status for kind, status in STATUS if isinstance(error, kind)), 500)


def reply(request: Request, error: LocalmedError, visit: Visit | None = None) -> Response:
    """The reply to an error; a visitor who is not signed in is led to sign in. Without ``visit`` it names nobody."""
    if wants_json(request):
        parts = error.messages if for_programs(request) else told_parts(error, visit or visits.anybody(request))
        return JSONResponse(_json(parts, visits.language_of(request)), status_of(error), headers_of(error))
    if isinstance(error, FirstPassword):
        return pages.redirect("/account")
    if isinstance(error, NotSignedIn) and not isinstance(error, NoToken):
        return pages.redirect("/login", next=request.url.path if request.method == "GET" else "", notice="signed_out")
    visitor = visit or visits.anybody(request)
    lines = sentences(told_parts(error, visitor), visitor.language)
    status = status_of(error)
    page = pages.page(visitor, "error.html", status, lines=lines, missing=status in (403, 404))
    page.headers.update(headers_of(error))
    return page


def told_parts(error: LocalmedError, visit: Visit) -> tuple[Message, ...]:
    """Cause and remedy, for a page.

    Paths, commands and faults of the machine are shown to administrators; others are referred to them.
    """
    if isinstance(error, NoLibrary):
        return UnknownName("web.error.no_library").messages
    if isinstance(error, LibraryError | ModelError) and not visit.may(Right.MODELS):
        LOG.error(error.message.code)
        return LocalmedError("web.error.machine").messages
    return tuple(pages.for_visitor(part, visit) for part in error.messages)


def headers_of(error: LocalmedError) -> dict[str, str]:
    """Headers: when to retry after a full queue, how a program authenticates."""
    if isinstance(error, QueueFull):
        return {"retry-after": str(error.seconds)}
    return {"www-authenticate": "Bearer"} if isinstance(error, NoToken) else {}


def wants_json(request: Request) -> bool:
    """Whether a program asks: by its ``Accept`` header or by the address."""
    accepted = request.headers.get("accept", "")
    by_program = any(kind in accepted for kind in ("json", "event-stream")) and "html" not in accepted
    return by_program or for_programs(request)


def for_programs(request: Request) -> bool:
    """Whether programs call the address, not the script of a page."""
    return request.url.path.startswith(("/api/", "/v1/"))


def _json(lines: tuple[Message, ...], language: str) -> dict[str, object]:
    what, *remedy = lines
    words = {"remedy": "".join(sentences((part,), language) for part in remedy)}
    full_words = sentences(lines, language)  # the field that OpenAI's clients show
    return {"error": {**as_json(what, language), **words, "message": full_words, "type": "localmed"}}


def of_fields(faults: Sequence[Mapping[str, Any]]) -> LocalmedError:
    """The rule that the first wrong field breaks, without its value, which may be a patient's text."""
    fault = faults[0] if faults else {}
    named = [str(part) for part in fault.get("loc", ()) if part not in ("body", "query", "path")]
    name, bounds = ".".join(named), fault.get("ctx", {})
    code, limit = FIELD_FAULTS.get(str(fault.get("type", "")), ("kind", ""))
    if not named or len(name) > LONGEST_FIELD or not name.isprintable() or fault.get("type") == "json_invalid":
        return UsageError("web.error.malformed")
    problem = message(f"web.error.field_{code}", limit=str(bounds.get(limit, "")))
    return UsageError("web.error.field", field=name, problem=problem)


def of_http(request: Request, error: HTTPException) -> LocalmedError:
    """Starlette's error about an address, a method or a body, as one of ours."""
    if too_large := request.scope["state"].get("too_large"):
        return LimitExceeded("web.error.body", most=too_large)
    if error.status_code in (404, 405):
        return UnknownName("web.error.no_page")
    return UsageError("web.error.malformed")
