"""Single sign-on by a provider on the loopback: who comes in, and every reply that proves nothing."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from httpx2 import Response
from joserfc import jwt
from joserfc.jwk import RSAKey

from localmed.config import OidcSettings, Settings, WebSettings
from localmed.domain.accounts import Account, SessionRole
from localmed.domain.errors import BadSettings
from localmed.people import accounts, oidc, sign_on
from localmed.site.audit import Audit
from localmed.site.site import Site
from localmed.web.visits import LOGIN_COOKIE
from tests.fakes import HashedWords, opened
from tests.web import provider as providers
from tests.web.conftest import PASSWORD, Client, Clients, OpenWindow
from tests.web.provider import Claims, Provider

ROLES = ("library -> librarian", "ward -> reader ward3")


@pytest.fixture(scope="module")
def served() -> Iterator[Provider]:
    with providers.running() as running:
        yield running


@pytest.fixture
def provider(served: Provider, request: pytest.FixtureRequest) -> Provider:
    """The provider, with somebody whom no other test knows."""
    fresh = Provider(served.issuer, f"wu-{abs(hash(request.node.name))}")
    vars(served).update(vars(fresh))
    return served


@pytest.fixture(scope="module")
def hospital(served: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    tmp_path, provider = tmp_path_factory.mktemp("oidc"), served
    (tmp_path / "secret").write_text(providers.SECRET)
    settings = OidcSettings(provider.issuer, client_id=providers.CLIENT, secret_file=str(tmp_path / "secret"),
                            roles=ROLES, seconds=15.0)  # fmt: skip
    site_settings = Settings(tmp_path / "data", web=WebSettings(oidc=settings, break_glass=("admin",)))
    with opened(site_settings, HashedWords()) as session:
        accounts.create(session, Account("admin", SessionRole.ADMIN), PASSWORD)
    with Site(site_settings, HashedWords()) as site:
        yield Clients(site_settings, site)


def led_away(client: Client, path: str = "/") -> str:
    """Where the browser is led."""
    reply = client.http.get("/login/provider", params={"next": path}, follow_redirects=False)
    assert reply.status_code == 303, reply.text
    return str(reply.headers["location"])


def signed_on(client: Client, provider: Provider, path: str = "/") -> Response:
    """The page on which somebody comes back whom the provider let in."""
    return client.get(providers.back(provider.authorize(led_away(client, path))))


def refused(reply: Response) -> bool:
    return reply.status_code == 401 and LOGIN_COOKIE not in reply.cookies


def test_who_the_provider_knows_is_signed_in(hospital: Clients, provider: Provider) -> None:
    client = hospital()
    assert "/login/provider" in client.get("/login").text
    page = signed_on(client, provider, "/library/collections")
    assert 'content="0;url=/library/collections"' in page.text
    assert client.get("/library/collections").status_code == 200
    account = accounts.account(hospital.settings.data, provider.user)
    assert (account.role, account.source) == (SessionRole.LIBRARIAN, "provider")
    with Audit(hospital.settings.data) as log:
        assert [entry.action for entry in log.entries()][-2:] == ["account sign-on", "login"]
    provider.groups = ["ward"]
    again = hospital()
    page = signed_on(again, provider, "//elsewhere.example")
    assert 'content="0;url=/"' in page.text, "where a sign-on leads is here"
    assert client.get("/library/collections").url.path == "/login", "the right is gone, and the login with it"
    assert accounts.account(hospital.settings.data, provider.user).groups == ("ward3",)


def test_single_sign_on_in_a_browser(hospital: Clients, provider: Provider, browser: OpenWindow) -> None:
    """To another site and back, whose cookies must come along."""
    window = browser(hospital)
    page, url = window.page, window.url.replace("127.0.0.1", "localhost")
    page.goto(url + "/login")
    page.click("main a.button")
    page.wait_for_url(url + "/")
    assert provider.user in page.inner_text("header")
    page.goto(url + "/library/collections")
    assert "Collections" in page.inner_text("h1"), "the rights of the provider's group"


def test_a_name_that_another_person_got_is_not_let_in(hospital: Clients, provider: Provider) -> None:
    signed_on(hospital(), provider)
    provider.claims = lambda claims: claims | {"sub": "somebody else"}
    assert refused(signed_on(hospital(), provider))
    provider.user = "admin"
    assert refused(signed_on(hospital(), provider)), "the name of a local account"


def by(change: Claims) -> Callable[[Claims], Claims]:
    return lambda claims: claims | change


def without(name: str) -> Callable[[Claims], Claims]:
    return lambda claims: {key: value for key, value in claims.items() if key != name}


@pytest.mark.parametrize(
    "claims",
    [
        by({"nonce": "another"}), without("nonce"), by({"iss": "http://127.0.0.1:1"}), by({"aud": "another client"}),
        by({"aud": ["localmed", "other"]}), by({"azp": "other"}), by({"exp": int(time.time()) - 120}), without("exp"),
        by({"iat": int(time.time()) + 3600}), by({"nbf": int(time.time()) + 3600}), without("sub"),
        by({"preferred_username": ["wu"]}), by({"groups": {"a": 1}})
    ],
)  # fmt: skip
def test_claims_that_prove_nothing(hospital: Clients, provider: Provider, claims: Callable[[Claims], Claims]) -> None:
    provider.claims = claims
    assert refused(signed_on(hospital(), provider))


def unsigned(claims: Claims) -> str:
    parts = (json.dumps({"alg": "none"}), json.dumps(claims))
    return ".".join(base64.urlsafe_b64encode(part.encode()).rstrip(b"=").decode() for part in parts) + "."


def by_public_key(claims: Claims) -> str:
    """Signed with the public key as a shared secret: what a verifier takes that goes by the token's own header."""
    parts = (json.dumps({"alg": "HS256", "kid": "1", "typ": "JWT"}), json.dumps(claims))
    text = ".".join(base64.urlsafe_b64encode(part.encode()).rstrip(b"=").decode() for part in parts)
    sign = hmac.new(providers.KEY.as_pem(private=False), text.encode(), "sha256").digest()
    return f"{text}.{base64.urlsafe_b64encode(sign).rstrip(b'=').decode()}"


def by_another_key(claims: Claims) -> str:
    other = RSAKey.generate_key(2048, {"kid": "1"})
    return jwt.encode({"alg": "RS256", "kid": "1"}, claims, other)


def with_own_key(claims: Claims) -> str:
    other = RSAKey.generate_key(2048, {"kid": "9"})
    return jwt.encode({"alg": "RS256", "kid": "9", "jwk": other.as_dict(private=False)}, claims, other)


def altered(claims: Claims) -> str:
    head, _, sign = providers.signed(claims).split(".")
    body = base64.urlsafe_b64encode(json.dumps(claims | {"groups": ["library"]}).encode()).rstrip(b"=").decode()
    return f"{head}.{body}.{sign}"


@pytest.mark.parametrize("token", [unsigned, by_public_key, by_another_key, with_own_key, altered, lambda _: "x.y.z"])
def test_tokens_that_nobody_signed(hospital: Clients, provider: Provider, token: Callable[[Claims], str]) -> None:
    provider.token = token
    assert refused(signed_on(hospital(), provider))


def test_a_reply_counts_once_and_in_its_browser(hospital: Clients, provider: Provider) -> None:
    client, other = hospital(), hospital()
    reply = provider.authorize(led_away(client))
    assert refused(other.get(providers.back(reply))), "another browser: the state is used up"
    assert refused(client.get(providers.back(reply)))
    reply = provider.authorize(led_away(client))
    cookie = client.http.cookies["localmed_sign_on"]
    assert client.get(providers.back(reply)).status_code == 200
    client.http.cookies.clear()
    client.http.cookies.set("localmed_sign_on", cookie)
    assert refused(client.get(providers.back(reply))), "replayed"
    for wrong in ({"state": "x"}, {"iss": "http://elsewhere"}, {"code": ""}, {"error": "access_denied", "code": ""}):
        assert refused(client.get(providers.back(provider.authorize(led_away(client)) | wrong))), wrong
    stolen = provider.authorize(led_away(client))["code"]
    own = provider.authorize(led_away(client))
    assert refused(client.get(providers.back(own | {"code": stolen}))), "PKCE: another sign-on's code"


def test_a_sign_on_that_was_begun_long_ago_is_void(
    hospital: Clients, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = hospital()
    reply = provider.authorize(led_away(client))
    late = time.time() + oidc.SECONDS_TO_SIGN_IN + 1
    monkeypatch.setattr(time, "time", lambda: late)
    assert refused(client.get(providers.back(reply)))


@pytest.mark.parametrize("name", ["token_endpoint", "issuer"])
def test_only_the_issuers_server_is_called(hospital: Clients, provider: Provider, name: str) -> None:
    provider.described = {name: "https://elsewhere.example/token"}
    reply = hospital().http.get("/login/provider", follow_redirects=False)
    assert reply.status_code == 503
    assert provider.seen == ["/.well-known/openid-configuration"]


def test_the_glass_is_broken_when_the_provider_is_down(hospital: Clients, provider: Provider) -> None:
    web = hospital.settings.web
    assert sign_on.reachable(web)
    assert not sign_on.reachable(replace(web, oidc=replace(web.oidc, issuer="http://127.0.0.1:9")))


def test_without_a_provider_nothing_is_offered(client: Clients) -> None:
    assert "/login/provider" not in client().get("/login").text
    for path in ("/login/provider", "/login/back"):
        assert client().get(path).status_code == 404


@pytest.mark.parametrize(
    "change", [{"issuer": "http://login.example"}, {"client_id": ""}, {"scopes": ("profile",)}, {"roles": ("x",)}]
)
def test_what_cannot_work_is_refused_at_the_start(change: dict[str, Any]) -> None:
    right = OidcSettings("https://login.example", client_id="localmed")
    sign_on.check_settings(WebSettings(oidc=right))
    with pytest.raises(BadSettings):
        sign_on.check_settings(WebSettings(oidc=replace(right, **change)))
