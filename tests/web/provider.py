"""A small OpenID provider on the loopback: it lets ``user`` in, and can be told to answer as an attacker would."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "localmed", "a client's secret"
KEY = RSAKey.generate_key(2048, {"kid": "1", "use": "sig", "alg": "RS256"})
Claims = dict[str, Any]


def signed(claims: Claims) -> str:
    """A token as the provider signs it."""
    return jwt.encode({"alg": "RS256", "kid": "1"}, claims, KEY)


@dataclass
class Provider:
    """What the provider knows, and how it answers: ``claims`` and ``token`` alter what it would say."""

    issuer: str = ""
    user: str = "wu"
    groups: list[str] = field(default_factory=lambda: ["library"])
    claims: Callable[[Claims], Claims] = lambda claims: claims
    token: Callable[[Claims], str] = signed
    described: dict[str, str] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)

    def description(self) -> dict[str, str]:
        places = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        return {
            "issuer": self.issuer,
            **{name: f"{self.issuer}/{path}" for name, path in places.items()},
        } | self.described

    def authorize(self, address: str) -> dict[str, str]:
        """What the provider sends back through the browser to whoever comes with ``address``."""
        query = dict(parse_qsl(urlsplit(address).query))
        assert (query["response_type"], query["client_id"]) == ("code", CLIENT)
        assert (query["code_challenge_method"], query["prompt"]) == ("S256", "login")
        code = secrets.token_urlsafe(8)
        self.codes[code] = query
        return {"code": code, "state": query["state"], "iss": self.issuer}

    def redeemed(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, str]]:
        """The token for a code: once, for this client, with the verifier of its challenge."""
        query = self.codes.pop(form.get("code", ""), None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        right = query is not None and challenge.rstrip(b"=").decode() == query["code_challenge"]
        right = right and query is not None and form.get("redirect_uri") == query["redirect_uri"]
        known = base64.b64encode(f"{CLIENT}:{SECRET.replace(' ', '+').replace(chr(39), '%27')}".encode()).decode()
        if not right or query is None or authorization != f"Basic {known}":
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "sub": f"id-of-{self.user}", "iat": now, "exp": now + 300,
                  "nonce": query["nonce"], "preferred_username": self.user, "groups": self.groups}  # fmt: skip
        return 200, {"id_token": self.token(self.claims(claims)), "access_token": "x", "token_type": "Bearer"}


@contextmanager
def running() -> Iterator[Provider]:
    """The provider, until the block ends."""
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.startswith("/authorize"):
                onward = dict(parse_qsl(urlsplit(self.path).query))["redirect_uri"]
                self.send_response(302)
                self.send_header("location", f"{onward}?{urlencode(provider.authorize(self.path))}")
                self.send_header("content-length", "0")
                self.end_headers()
                return
            self._reply(
                200, provider.description() if "well-known" in self.path else {"keys": [KEY.as_dict(private=False)]}
            )

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            self._reply(*provider.redeemed(form, self.headers.get("authorization", "")))

        def _reply(self, status: int, value: Any) -> None:
            provider.seen.append(self.path)
            content = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is written."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.issuer = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def back(reply: dict[str, str]) -> str:
    """The address of ours that a browser comes back to."""
    return f"/login/back?{urlencode(reply)}"
