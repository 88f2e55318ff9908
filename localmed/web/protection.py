"""The outermost layer of every page: who is answered, what a request may cost, what a browser may do with the reply.

- A foreign ``Host`` is refused (DNS rebinding).
- A form from another site's page is refused by ``Origin`` and ``Sec-Fetch-Site``, beside the token of the login.
- A body is bounded while it arrives. One of more than ``SMALL`` bytes is read only from a known sender who may send
  it, and only a few at a time per sender and in all: nobody fills the disk without a login.
- The reply loads from this server alone; scripts carry a nonce, markup from scripts passes one named policy (Trusted
  Types), no page is framed or stored.
- An unexpected error is told in one line and logged by kind and place, without text, which may be a patient's.
"""

from __future__ import annotations

import logging
import secrets
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localmed.domain.accounts import Right
from localmed.domain.errors import Busy, LimitExceeded, NotAllowed, NoToken, NotSignedIn, UsageError
from localmed.people import tokens
from localmed.process.confined import place
from localmed.web import failures
from localmed.web.visits import visit_of

LOG = logging.getLogger("localmed.web")
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
SMALL = 64 * 2**10  # bytes of a body that anybody may send: the form to sign in; it stays in memory
FOR_ONE, AT_ONCE = 2, 4  # larger bodies that arrive at a time: of one sender, of all (in one serving process)
UPLOADS = "/library/upload"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types localmed"
)
# Of a document's own content (a page image, an original): nothing runs, nothing loads, it has no origin.
DOCUMENT_POLICY = "default-src 'none'; sandbox; frame-ancestors 'self'; style-src 'unsafe-inline'; img-src data:"
HEADERS = {
    "cache-control": "no-store",  # a shared PC: neither the cache nor the back button shows what another user read
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # "no-referrer" would make the Origin of our own forms "null"
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
}


class Protection:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, names: Collection[str], body_bytes: int, upload_bytes: int) -> None:
        """``names`` are the hosts that browsers may use; uploads (``/library/upload``) have their own limit."""
        self._app, self._names = app, LOOPBACK | frozenset(names)
        self._most, self._most_upload = body_bytes, upload_bytes
        self._sending = Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})["nonce"] = secrets.token_urlsafe(16)
        reply = _Reply(send, scope)
        try:
            self._admit(scope)
            most = self._most_of(scope)
            if not _is_large(scope):
                await self._app(scope, self._bounded(scope, receive, most), reply.send)
                return
            user = await run_in_threadpool(_sender, Request(scope))
            if not user:
                most = _unsigned(scope)
            with self._turn(user):
                await self._app(scope, self._bounded(scope, receive, most), reply.send)
        except Exception as error:
            if reply.begun:
                LOG.error(place(error))
                raise ConnectionAbortedError from None  # half a page: the browser must see that it was cut off
            await failures.reply(Request(scope), failures.as_ours(error))(scope, receive, reply.send)

    def _admit(self, scope: Scope) -> None:
        """Raise ``UsageError`` for a foreign host or another site's form, ``LimitExceeded`` for too large a body."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host.rpartition(":")[0] not in self._names and host not in self._names:
            raise UsageError("web.error.host")
        if scope["method"] in SAFE:
            return
        most, length = self._most_of(scope), headers.get("content-length", "")
        if length.isdecimal() and int(length) > most:  # before any of it is taken
            raise LimitExceeded("web.error.body", most=most)
        origin = headers.get("origin")
        foreign = origin is not None and urlsplit(origin).netloc != host
        if foreign or headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise NotAllowed("web.error.other_site")

    def _most_of(self, scope: Scope) -> int:
        return self._most_upload if scope["path"].startswith(UPLOADS) else self._most

    @contextmanager
    def _turn(self, user: str) -> Iterator[None]:
        """A place among senders of large bodies; raise ``Busy`` if there is none. Without login: ``SMALL`` bytes."""
        if user and (self._sending[user] >= FOR_ONE or self._sending.total() >= AT_ONCE):
            raise Busy("web.error.sending", count=self._sending.total())
        self._sending[user] += bool(user)
        try:
            yield
        finally:
            self._sending[user] -= bool(user)

    def _bounded(self, scope: Scope, receive: Receive, most: int) -> Receive:
        """``receive``, which raises ``LimitExceeded`` after ``most`` bytes."""
        size = 0

        async def bounded() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > most:
                scope["state"]["too_large"] = most  # whoever reads a form makes another error of this one
                raise LimitExceeded("web.error.body", most=most)
            return message

        return bounded


def _is_large(scope: Scope) -> bool:
    """Whether the body has, or may have, more than ``SMALL`` bytes."""
    headers = Headers(scope=scope)
    length = headers.get("content-length", "")
    return int(length) > SMALL if length.isdecimal() else "transfer-encoding" in headers


def _sender(request: Request) -> str:
    """The sender of a large body; "" if not signed in. Raise ``UsageError`` for one who may not upload."""
    visit, (scheme, _, token) = visit_of(request), request.headers.get("authorization", "").partition(" ")
    if visit.login:
        if request.url.path.startswith(UPLOADS):
            visit.session.require(Right.LIBRARY)
        return visit.login.account.user
    known = scheme.lower() == "bearer" and tokens.current(visit.site.data, token.strip(), visit.site.settings.web)
    return known.user if known else ""


def _unsigned(scope: Scope) -> int:
    """The bytes allowed without a login; raise ``UsageError`` for a larger body."""
    if Headers(scope=scope).get("content-length", "").isdecimal():
        if scope["path"].startswith("/api/"):
            raise NoToken("web.error.no_token")
        raise NotSignedIn("web.error.signed_out")
    return SMALL


class _Reply:
    """Sends a reply with the headers that every reply has."""

    def __init__(self, send: Send, scope: Scope) -> None:
        self._send, self._scope, self.begun = send, scope, False

    async def send(self, message: Message) -> None:
        """Send ``message``."""
        if message["type"] == "http.response.start":
            self.begun = True
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("content-security-policy", POLICY.format(nonce=self._scope["state"]["nonce"]))
            if self._scope["scheme"] == "https":
                headers.setdefault("strict-transport-security", "max-age=31536000")
        await self._send(message)
