"""What stands around every page: whom it answers, what a request may cost, what a browser may do with the reply.

- A ``Host`` that is not ours is refused: a foreign name that resolves to this machine reads nothing (DNS rebinding).
- A form that another site's page sent is refused by ``Origin`` and ``Sec-Fetch-Site``, beside the token of the login.
- A body is bounded while it arrives.
- The reply may load from this server alone; scripts carry a nonce, markup made by scripts passes one named policy
  (Trusted Types), no page is framed or stored.
- What nobody foresaw is told in one line and logged as its kind and place: never a text, which may be a patient's.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from localmed.errors import LimitExceeded, UsageError, place
from localmed.web import failures

LOG = logging.getLogger("localmed.web")
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
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
        """``names`` are the hosts that browsers call it by; uploads (``/library/upload``) have their own bound."""
        self._app, self._names = app, LOOPBACK | frozenset(names)
        self._most, self._most_upload = body_bytes, upload_bytes

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
            await self._app(scope, self._bounded(scope, receive), reply.send)
        except Exception as error:
            if reply.begun:
                LOG.error(place(error))
                raise ConnectionAbortedError from None  # half a page: the browser must see that it was cut off
            await failures.reply(Request(scope), failures.as_ours(error))(scope, receive, reply.send)

    def _admit(self, scope: Scope) -> None:
        """Raise ``UsageError`` for a host that is not ours and for what another site's page sent."""
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
            raise UsageError("web.error.other_site")

    def _most_of(self, scope: Scope) -> int:
        return self._most_upload if scope["path"].startswith("/library/upload") else self._most

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        """``receive``, which raises ``LimitExceeded`` once more has come than may."""
        most, size = self._most_of(scope), 0

        async def bounded() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > most:
                scope["state"]["too_large"] = most  # whoever reads a form makes another error of this one
                raise LimitExceeded("web.error.body", most=most)
            return message

        return bounded


class _Reply:
    """Sends a reply with the headers that every one has."""

    def __init__(self, send: Send, scope: Scope) -> None:
        self._send, self._scope, self.begun = send, scope, False

    async def send(self, message: Message) -> None:
        """Pass ``message`` on."""
        if message["type"] == "http.response.start":
            self.begun = True
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("content-security-policy", POLICY.format(nonce=self._scope["state"]["nonce"]))
            if self._scope["scheme"] == "https":
                headers.setdefault("strict-transport-security", "max-age=31536000")
        await self._send(message)
