"""Single sign-on by OpenID Connect: the code flow with PKCE, and the checks of its reply.

Only the issuer's server is called: its description must name itself, and the addresses in it must be on that server; no
redirection and no proxy is followed. A sign-on is stored in ``site.sqlite`` (state and browser as hashes) and usable
once, in the browser that began it, within ten minutes. The token is fetched from the provider over TLS. It must be
signed by one of the provider's keys with an algorithm that needs a private key, for us, now, with our nonce: ``none``,
a shared-secret algorithm with the public key, another audience or issuer, and an old token are refused.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import secrets
import ssl
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

from localmed.config import OidcSettings
from localmed.domain.errors import BadSettings, Unreachable, UsageError
from localmed.library.state import rows
from localmed.people.directory import MOST_GROUPS, Person, is_loopback, read_secret
from localmed.people.sealing import hash_of

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA")
KEY_TYPES = ("RSA", "EC", "OKP")  # with a private half
PRIVATE = ("d", "p", "q", "dp", "dq", "qi", "oth", "k")  # parts of it
REPLY_BYTES = 2**20  # of one reply: a description, keys or tokens have some kilobytes
SECONDS_TO_SIGN_IN = 600.0  # from leaving to coming back
MOST_BEGUN = 2_000  # sign-ons under way; the oldest give way
LONGEST_CODE = 4_096  # characters of what the provider sends back through the browser
TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class Begun:
    """The address to send the browser to, and the secret that the browser keeps meanwhile."""

    address: str
    browser: str


@dataclass(frozen=True, slots=True)
class _Waiting:
    nonce: str
    verifier: str
    callback: str
    path: str


def begin(data: Path, callback: str, path: str, settings: OidcSettings) -> Begun:
    """Begin a sign-on that returns to ``callback`` and then leads to ``path``."""
    state, browser, nonce, verifier = (secrets.token_urlsafe(TOKEN_BYTES) for _ in range(4))
    provider = _description(settings)
    with rows(data) as database:
        database.execute("DELETE FROM sign_ons WHERE begun < ?", (time.time() - SECONDS_TO_SIGN_IN,))
        database.execute(
            "DELETE FROM sign_ons WHERE state NOT IN (SELECT state FROM sign_ons ORDER BY begun DESC LIMIT ?)",
            (MOST_BEGUN - 1,),
        )
        database.execute(
            "INSERT INTO sign_ons (state, browser, nonce, verifier, callback, path, begun) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (hash_of(state), hash_of(browser), nonce, verifier, callback, path, time.time()),
        )
    asked_values = {
        **{"response_type": "code", "client_id": settings.client_id, "redirect_uri": callback},
        **{"scope": " ".join(settings.scopes), "state": state, "nonce": nonce},
        "code_challenge": base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
        **({"prompt": "login"} if settings.ask_again else {}),
    }
    start = provider["authorization_endpoint"]
    return Begun(f"{start}{'&' if urlsplit(start).query else '?'}{urlencode(asked_values)}", browser)


def finish(data: Path, browser: str, reply: Mapping[str, str], settings: OidcSettings) -> tuple[Person, str]:
    """Return the person in ``reply`` and the path they wanted; raise ``UsageError`` if anything is not proved."""
    begun = _take_waiting(data, reply.get("state", ""), browser)
    if reply.get("iss", settings.issuer) != settings.issuer or len(reply.get("code", "")) > LONGEST_CODE:
        raise UsageError("sign_on.not_proved", claim="iss")
    if not reply.get("code"):
        raise UsageError("sign_on.turned_away")
    provider = _description(settings)
    token = _exchange_code(provider, reply["code"], begun, settings)
    return _person(_check_token(token, provider, begun.nonce, settings), settings), begun.path


def reachable(settings: OidcSettings) -> bool:
    """Whether the provider answers with its description."""
    with suppress(Unreachable):
        return bool(_description(settings))
    return False


def _take_waiting(data: Path, state: str, browser: str) -> _Waiting:
    """Return and delete the sign-on of ``state``; raise ``UsageError`` for another browser's or an old one."""
    with rows(data) as database:
        row = database.execute(
            "DELETE FROM sign_ons WHERE state = ? RETURNING browser, begun, nonce, verifier, callback, path",
            (hash_of(state),),
        ).fetchone()
    if row is None or not hmac.compare_digest(row[0], hash_of(browser)) or time.time() - row[1] > SECONDS_TO_SIGN_IN:
        raise UsageError("sign_on.state")
    return _Waiting(*row[2:])


def _check_token(token: str, provider: Mapping[str, Any], nonce: str, settings: OidcSettings) -> dict[str, Any]:
    """Return the claims of the token after checking all of them."""
    from joserfc import jwt
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet
    from joserfc.jws import JWSRegistry

    keys = [
        key for key in _get_json(provider["jwks_uri"], settings).get("keys", ())
        if isinstance(key, dict) and key.get("kty") in KEY_TYPES and key.get("use", "sig") == "sig"
    ]  # fmt: skip
    try:
        public = [{name: value for name, value in key.items() if name not in PRIVATE} for key in keys]
        key_set = KeySet.import_key_set({"keys": public})
        claims = jwt.decode(token, key_set, list(ALGORITHMS), JWSRegistry(algorithms=list(ALGORITHMS))).claims
        jwt.JWTClaimsRegistry(
            leeway=round(settings.leeway_seconds),
            iss={"essential": True, "value": settings.issuer},
            aud={"essential": True, "value": settings.client_id},
            exp={"essential": True},
            iat={"essential": True},
            sub={"essential": True},
            nonce={"essential": True, "value": nonce},
        ).validate(claims)
    except (JoseError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise UsageError("sign_on.not_proved", claim=type(error).__name__) from None
    others = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
    if (len(others) > 1 or "azp" in claims) and claims.get("azp") != settings.client_id:
        raise UsageError("sign_on.not_proved", claim="azp")
    return claims


def _person(claims: Mapping[str, Any], settings: OidcSettings) -> Person:
    user, groups = claims.get(settings.user_claim), claims.get(settings.groups_claim, [])
    if not isinstance(user, str) or not user.strip():
        raise UsageError("sign_on.not_proved", claim=settings.user_claim)
    named = [groups] if isinstance(groups, str) else groups
    if not isinstance(named, list) or len(named) > MOST_GROUPS or not all(isinstance(name, str) for name in named):
        raise UsageError("sign_on.not_proved", claim=settings.groups_claim)
    return Person(user, frozenset(named), hash_of(f"{settings.issuer}\0{claims['sub']}"))


def _description(settings: OidcSettings) -> dict[str, Any]:
    """Return the provider's description of itself, with all addresses on its own server."""
    described = _get_json(f"{settings.issuer.rstrip('/')}/.well-known/openid-configuration", settings)
    places = [described.get(name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")]
    if described.get("issuer") != settings.issuer or not all(
        isinstance(place, str) and _server(place) == _server(settings.issuer) for place in places
    ):
        raise Unreachable("sign_on.other_server")
    return described


def _exchange_code(provider: Mapping[str, Any], code: str, begun: _Waiting, settings: OidcSettings) -> str:
    """Return the token for ``code``; raise ``UsageError`` if the provider does not accept it."""
    values = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": begun.callback,
        "client_id": settings.client_id,
        "code_verifier": begun.verifier,
    }
    headers = {"content-type": "application/x-www-form-urlencoded"}
    if secret := read_secret(settings.secret_file):
        known = f"{quote_plus(settings.client_id)}:{quote_plus(secret)}"
        headers["authorization"] = f"Basic {base64.b64encode(known.encode()).decode()}"
    status, reply = _call(provider["token_endpoint"], settings, urlencode(values).encode(), headers)
    token = reply.get("id_token")
    if status != http.HTTPStatus.OK or not isinstance(token, str):
        raise UsageError("sign_on.not_proved", claim="code")
    return token


def _get_json(address: str, settings: OidcSettings) -> dict[str, Any]:
    status, reply = _call(address, settings)
    if status != http.HTTPStatus.OK:
        raise Unreachable("sign_on.unreachable", kind=str(status))
    return reply


def _call(
    address: str, settings: OidcSettings, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> tuple[int, dict[str, Any]]:
    scheme, host, port = server = _server(address)
    if server != _server(settings.issuer):
        raise Unreachable("sign_on.other_server")
    parts = urlsplit(address)
    target = parts.path or "/"
    target += f"?{parts.query}" if parts.query else ""
    try:
        connection: http.client.HTTPConnection
        if scheme == "http":
            connection = http.client.HTTPConnection(host, port, timeout=settings.seconds)
        else:
            tls = _tls(settings.ca)
            connection = http.client.HTTPSConnection(host, port, timeout=settings.seconds, context=tls)
        with closing(connection) as line:
            method = "GET" if body is None else "POST"
            line.request(method, target, body, {"accept": "application/json", **(headers or {})})
            reply = line.getresponse()
            content = reply.read(REPLY_BYTES + 1)
        values = json.loads(content) if len(content) <= REPLY_BYTES else None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unreachable("sign_on.unreachable", kind=type(error).__name__) from None
    if not isinstance(values, dict):
        raise Unreachable("sign_on.unreachable", kind="JSON")
    return reply.status, values


@cache
def _tls(ca: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca or None)


def _server(address: str) -> tuple[str, str, int]:
    """Return scheme, host and port of an address; raise ``BadSettings`` for a remote one without TLS."""
    parts = urlsplit(address)
    with suppress(ValueError):
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
        if parts.hostname and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname))):
            return parts.scheme, parts.hostname, port
    raise BadSettings("sign_on.server", server=address[:200])


def check_settings(settings: OidcSettings) -> None:
    """Raise ``BadSettings`` for an issuer that cannot be called, or without a client."""
    _server(settings.issuer)
    if not settings.client_id or "openid" not in settings.scopes:
        raise BadSettings("sign_on.client")
