"""Signing in and out, the quick switch of users on a shared PC, one's password, and what a browser remembers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from localmed.domain.accounts import Account
from localmed.errors import Busy, UsageError
from localmed.messages import LANGUAGES
from localmed.operations import accounts, logins
from localmed.session import Session, caller_of
from localmed.web import pages
from localmed.web.visits import LANGUAGE_COOKIE, LOGIN_COOKIE, THEME_COOKIE, THEMES, Anybody, Asking, Visit

router = APIRouter()
REMEMBERED = 365 * 24 * 3600  # seconds that a browser keeps language and theme
CLEAR = {"clear-site-data": '"cache"'}  # of whoever leaves, from this browser


@router.get("/login")
def form(visit: Anybody, next: str = "/") -> Response:
    """The form to sign in."""
    if visit.login:
        return pages.redirect(pages.local(next))
    if accounts.no_account(visit.site.data):
        return pages.redirect("/start")
    return pages.page(visit, "login.html", next=pages.local(next), error=None)


@router.post("/login")
def sign_in(
    visit: Anybody,
    user: Annotated[str, Form()] = "",
    password: Annotated[str, Form()] = "",
    next: Annotated[str, Form()] = "/",
) -> Response:
    """Sign in; a wrong password leads back to the form."""
    site = visit.site
    try:
        account = accounts.sign_in(site.data, user, password, site.settings.web, address_of(visit))
    except (UsageError, Busy) as error:
        status = 429 if isinstance(error, Busy) else 401
        return pages.page(visit, "login.html", status, next=pages.local(next), error=error.full_message)
    return signed_in(visit, account, pages.local(next))


def address_of(visit: Visit) -> str:
    """The network address of the visitor's computer; behind a proxy on this machine the one that it names."""
    return visit.request.client.host if visit.request.client else ""


def signed_in(visit: Visit, account: Account, path: str) -> Response:
    """``path``, for whoever has just proved to be ``account``: the login of before ends, a new one begins."""
    site = visit.site
    if visit.login:
        logins.end(site.data, visit.login, site.settings.web.history_days)
    logins.end_idle(site.data, site.settings.web)
    Session(site, caller_of(account, visit.language)).note("login", account.user, account.role)
    reply = pages.redirect(path)
    remember(reply, visit.request, LOGIN_COOKIE, logins.begin(site.data, account))
    return reply


@router.post("/logout")
def sign_out(visit: Asking) -> Response:
    """Sign out; the form to sign in stands where the page was: also the quick switch to another user."""
    if visit.login:
        logins.end(visit.site.data, visit.login, visit.site.settings.web.history_days)
    reply = pages.redirect("/login", notice="left")
    reply.delete_cookie(LOGIN_COOKIE)
    reply.headers.update(CLEAR)
    return reply


@router.get("/account")
def own_account(visit: Asking) -> Response:
    """One's own account."""
    return pages.page(visit, "account.html", error=None)


@router.post("/account/password")
def change_password(
    visit: Asking,
    password: Annotated[str, Form()] = "",
    fresh: Annotated[str, Form()] = "",
    again: Annotated[str, Form()] = "",
) -> Response:
    """Another password, for whoever knows the present one; every login of the account ends, this one begins anew."""
    site, user = visit.site, visit.session.caller.user
    try:
        account = accounts.sign_in(site.data, user, password, site.settings.web, address_of(visit))
        if fresh != again:
            raise UsageError("account.differ")
        accounts.set_password(visit.session, user, fresh)
    except (UsageError, Busy) as error:
        return pages.page(visit, "account.html", 400, error=error.full_message)
    return signed_in(visit, account, "/account?notice=saved")


@router.post("/preferences")
def prefer(
    request: Request,
    language: Annotated[str, Form()] = "",
    theme: Annotated[str, Form()] = "",
    back: Annotated[str, Form()] = "/",
) -> Response:
    """Remember a language or a theme in this browser."""
    reply = pages.redirect(pages.local(back))
    for cookie, value, known in ((LANGUAGE_COOKIE, language, LANGUAGES), (THEME_COOKIE, theme, THEMES)):
        if value in known:
            remember(reply, request, cookie, value, REMEMBERED)
    return reply


def remember(reply: Response, request: Request, cookie: str, value: str, seconds: int | None = None) -> None:
    """Set a cookie: not for scripts, never sent by another site's page, over TLS only where there is TLS.

    Without ``seconds`` the browser forgets it when it is closed.
    """
    secure = request.url.scheme == "https"
    reply.set_cookie(cookie, value, max_age=seconds, httponly=True, samesite="strict", secure=secure)
