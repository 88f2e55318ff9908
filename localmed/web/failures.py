"""Errors as replies: one line of what happened and what to do, as a page, or as JSON for whoever asks for that."""

from __future__ import annotations

import logging
import secrets

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from localmed.domain import Message
from localmed.domain.accounts import Right
from localmed.errors import (
    Busy,
    InputError,
    LibraryError,
    LimitExceeded,
    LocalmedError,
    ModelError,
    NoLibrary,
    UnknownName,
    UsageError,
    place,
)
from localmed.messages import as_json, sentences
from localmed.web import pages, visits
from localmed.web.visits import Visit

LOG = logging.getLogger("localmed.web")
FORBIDDEN = ("session.role", "access.not_for_groups", "access.not_writable", "web.error.other_site", "web.error.token",
             "workflow.off", "workflow.stopped",
             "upload.second_person")  # fmt: skip
QUEUE = "web.error.queue"
STATUS: tuple[tuple[type[LocalmedError], int], ...] = (  # the first that an error is one of
    (UnknownName, 404),
    (UsageError, 400),
    (LimitExceeded, 413),
    (InputError, 422),
    (Busy, 503),
    (NoLibrary, 404),
    (LibraryError, 503),
    (ModelError, 503),
)


def as_ours(error: Exception) -> LocalmedError:
    """``error``, or where it is none of ours, one that names where to look for it in the log, without its text."""
    if isinstance(error, LocalmedError):
        return error
    reference = secrets.token_hex(4)
    LOG.error(f"{reference} {place(error)}")
    return LocalmedError("web.error.unexpected", reference=reference)


def status_of(error: LocalmedError) -> int:
    """The HTTP status of ``error``."""
    if error.message.code in FORBIDDEN:
        return 403
    if error.message.code in ("web.error.signed_out", "web.error.no_token"):
        return 401
    if error.message.code == QUEUE:
        return 429
    return next((status for kind, status in STATUS if isinstance(error, kind)), 500)


def reply(request: Request, error: LocalmedError, visit: Visit | None = None) -> Response:
    """What the visitor is told; a visitor who is not signed in is led to do so. Without ``visit`` it is anybody's."""
    if wants_json(request):
        parts = error.messages if for_programs(request) else told_parts(error, visit or visits.anybody(request))
        return JSONResponse(_json(parts, visits.language_of(request)), status_of(error), headers_of(error))
    if error.message.code == "web.error.signed_out":
        return pages.redirect("/login", next=request.url.path if request.method == "GET" else "", notice="signed_out")
    visitor = visit or visits.anybody(request)
    lines = sentences(told_parts(error, visitor), visitor.language)
    page = pages.page(visitor, "error.html", status_of(error), lines=lines)
    page.headers.update(headers_of(error))
    return page


def told_parts(error: LocalmedError, visit: Visit) -> tuple[Message, ...]:
    """What happened and what to do, for whoever sits before a page.

    Paths, commands and what is wrong with the machine are for administrators; others are told to whom to turn.
    """
    if isinstance(error, NoLibrary):
        return UnknownName("web.error.no_library").messages
    if isinstance(error, LibraryError | ModelError) and not visit.may(Right.MODELS):
        LOG.error(error.message.code)
        return LocalmedError("web.error.machine").messages
    return tuple(pages.for_visitor(part, visit) for part in error.messages)


def headers_of(error: LocalmedError) -> dict[str, str]:
    """When to come again, for whoever found no place in the queue; how a program shows who it is."""
    if error.message.code == QUEUE:
        return {"retry-after": str(dict(error.message.parameters)["seconds"])}
    return {"www-authenticate": "Bearer"} if error.message.code == "web.error.no_token" else {}


def wants_json(request: Request) -> bool:
    """Whether a program asks: it says so, or it calls an address that is for programs."""
    accepted = request.headers.get("accept", "")
    by_program = any(kind in accepted for kind in ("json", "event-stream")) and "html" not in accepted
    return by_program or for_programs(request)


def for_programs(request: Request) -> bool:
    """Whether the address is one that programs call, not the script of a page."""
    return request.url.path.startswith(("/api/", "/v1/"))


def _json(lines: tuple[Message, ...], language: str) -> dict[str, object]:
    what, *remedy = lines
    words = {"remedy": "".join(sentences((part,), language) for part in remedy)}
    full_words = sentences(lines, language)  # the field that OpenAI's clients show
    return {"error": {**as_json(what, language), **words, "message": full_words, "type": "localmed"}}


def of_http(request: Request, error: HTTPException) -> LocalmedError:
    """What Starlette says of an address, a method or a body, as one of ours."""
    if too_large := request.scope["state"].get("too_large"):
        return LimitExceeded("web.error.body", most=too_large)
    if error.status_code in (404, 405):
        return UnknownName("web.error.no_page")
    return UsageError("web.error.malformed")
