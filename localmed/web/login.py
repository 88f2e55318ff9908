"""Signing in and out, switching users on a shared PC, one's password, and the preferences in the browser."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from localmed.domain import Message
from localmed.domain.accounts import Account
from localmed.domain.errors import Busy, DirectoryFault, UnknownName, Unreachable, UsageError
from localmed.messages import LANGUAGES
from localmed.people import accounts, logins, oidc, sign_on
from localmed.site import alerts
from localmed.site.session import Session, caller_of
from localmed.web import pages
from localmed.web.visits import LANGUAGE_COOKIE, LOGIN_COOKIE, THEME_COOKIE, THEMES, Anybody, Asking, Visit

router = APIRouter()
REMEMBERED = 365 * 24 * 3600  # seconds that a browser keeps language and theme
SIGN_ON_COOKIE = "localmed_sign_on"  # of a browser that is at the single sign-on
CLEAR = {"clear-site-data": '"cache"'}  # of whoever leaves, from this browser


@router.get("/login")
def form(visit: Anybody, next: str = "/", idle: bool = False) -> Response:
    """The form to sign in; ``idle``: the login ended because the page was left alone."""
    if idle:
        return sign_out(visit, "idle")
    if visit.login:
        return pages.redirect(pages.local(next))
    if accounts.has_no_account(visit.site.data):
        return pages.redirect("/start")
    return _form(visit, pages.local(next))


def _form(visit: Visit, path: str, status: int = 200, error: Message | None = None) -> Response:
    """The form to sign in; it leads to ``path``."""
    web = visit.site.settings.web
    places = {"directory": bool(web.ldap.server), "provider": bool(web.oidc.issuer)}
    return pages.page(visit, "login.html", status, next=path, error=error, **places)


@router.post("/login")
def sign_in(
    visit: Anybody,
    user: Annotated[str, Form()] = "",
    password: Annotated[str, Form()] = "",
    next: Annotated[str, Form()] = "/",
) -> Response:
    """Sign in; a wrong password leads back to the form."""
    site, path = visit.site, pages.local(next)
    try:
        account, broke_glass = sign_on.by_password(site.data, user, password, site.settings.web, address_of(visit))
        if account.source != sign_on.Source.LOCAL:
            sign_on.store(Session(site, caller_of(account, visit.language)), account)
            alerts.clear(site.data, "sign_in")
    except (UsageError, Busy) as error:
        if isinstance(error, DirectoryFault):
            alerts.tell(site.settings, "sign_in", error.full_message)
        status = 401 if isinstance(error, UsageError) else 503 if isinstance(error, Unreachable) else 429
        return _form(visit, path, status, error.full_message)
    return sign_in_as(visit, account, path, "break glass" if broke_glass else "")


def address_of(visit: Visit) -> str:
    """The network address of the visitor's computer, also behind a proxy on this machine."""
    return visit.request.client.host if visit.request.client else ""


@router.get("/login/provider")
def leave(visit: Anybody, next: str = "/") -> Response:
    """Redirect to the hospital's single sign-on."""
    settings = visit.site.settings.web.oidc
    if not settings.issuer:
        raise UnknownName("web.error.no_page")
    callback = settings.callback or str(visit.request.url_for("come_back"))
    begun = oidc.begin(visit.site.data, callback, pages.local(next), settings)
    reply = RedirectResponse(begun.address, 303)
    seconds = round(oidc.SECONDS_TO_SIGN_IN)
    remember(reply, visit.request, SIGN_ON_COOKIE, begun.browser, seconds, "lax")  # it comes back from elsewhere
    return reply


@router.get("/login/back")
def come_back(visit: Anybody) -> Response:
    """Return from the single sign-on.

    The page redirects itself: a redirection that began on another site would not carry the login's cookie.
    """
    site, settings = visit.site, visit.site.settings.web
    if not settings.oidc.issuer:
        raise UnknownName("web.error.no_page")
    browser = visit.request.cookies.get(SIGN_ON_COOKIE, "")
    try:
        person, path = oidc.finish(site.data, browser, dict(visit.request.query_params), settings.oidc)
        account = sign_on.account_of(person, settings.oidc.roles, sign_on.Source.PROVIDER)
        sign_on.store(Session(site, caller_of(account, visit.language)), account, person.subject)
    except (UsageError, Unreachable) as error:
        reply = _form(visit, "/", 401 if isinstance(error, UsageError) else 503, error.full_message)
    else:
        reply = begin_login(visit, account, pages.page(visit, "signed_on.html", onward=path), "")
    reply.delete_cookie(SIGN_ON_COOKIE)
    return reply


def sign_in_as(visit: Visit, account: Account, path: str, remark: str = "") -> Response:
    """Sign ``account`` in and redirect to ``path``; ``remark`` is written to the audit log."""
    return begin_login(visit, account, pages.redirect(path), remark)


def begin_login(visit: Visit, account: Account, reply: Response, remark: str) -> Response:
    """Begin a login of ``account`` with ``reply``; the previous login ends."""
    site = visit.site
    if visit.login:
        logins.end(site.data, visit.login, site.settings.web.history_days)
    logins.end_idle(site.data, site.settings.web)
    outcome = "; ".join(filter(None, (account.role, remark)))
    Session(site, caller_of(account, visit.language)).note("login", account.user, outcome)
    remember(reply, visit.request, LOGIN_COOKIE, logins.begin(site.data, account))
    return reply


@router.post("/logout")
def leave_login(visit: Asking) -> Response:
    """Sign out and show the form to sign in for the same page: a quick switch of users."""
    return sign_out(visit, "left")


def sign_out(visit: Visit, notice: str) -> Response:
    """End the visitor's login and redirect to the form to sign in."""
    if visit.login:
        logins.end(visit.site.data, visit.login, visit.site.settings.web.history_days)
    reply = pages.redirect("/login", notice=notice)
    reply.delete_cookie(LOGIN_COOKIE)
    reply.headers.update(CLEAR)
    return reply


@router.get("/account")
def own_account(visit: Asking) -> Response:
    """The visitor's account."""
    return pages.page(visit, "account.html", error=None)


@router.post("/account/password")
def change_password(
    visit: Asking,
    password: Annotated[str, Form()] = "",
    fresh: Annotated[str, Form()] = "",
    again: Annotated[str, Form()] = "",
) -> Response:
    """Change the password; every login of the account ends, and this one begins anew."""
    site, user = visit.site, visit.session.caller.user
    try:
        account = accounts.sign_in(site.data, user, password, site.settings.web, address_of(visit))
        if fresh != again:
            raise UsageError("account.differ")
        if fresh == password:
            raise UsageError("account.same_password")
        accounts.set_password(visit.session, user, fresh)
    except (UsageError, Busy) as error:
        return pages.page(visit, "account.html", 400, error=error.full_message)
    return sign_in_as(
        visit, account, "/?notice=saved" if visit.login and visit.login.temporary else "/account?notice=saved"
    )


@router.post("/preferences")
def prefer(
    request: Request,
    language: Annotated[str, Form()] = "",
    theme: Annotated[str, Form()] = "",
    back: Annotated[str, Form()] = "/",
) -> Response:
    """Remember a language or theme in this browser."""
    reply = pages.redirect(pages.local(back))
    for cookie, value, known in ((LANGUAGE_COOKIE, language, LANGUAGES), (THEME_COOKIE, theme, THEMES)):
        if value in known:
            remember(reply, request, cookie, value, REMEMBERED)
    return reply


def remember(
    reply: Response,
    request: Request,
    cookie: str,
    value: str,
    seconds: int | None = None,
    same_site: Literal["strict", "lax"] = "strict",
) -> None:
    """Set a cookie that scripts cannot read and other sites cannot send; over TLS only if there is TLS.

    Without ``seconds`` it lasts until the browser is closed.
    """
    secure = request.url.scheme == "https"
    reply.set_cookie(cookie, value, max_age=seconds, httponly=True, samesite=same_site, secure=secure)
