"""A request's visitor: language, theme and, if signed in, the login and a session with its rights.

A handler takes one of the annotated types at the end: ``Anybody``, or a right (``Asking``, ``Librarian``, ...).
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from starlette.concurrency import run_in_threadpool

from localmed.domain import Message
from localmed.domain.accounts import Right
from localmed.domain.errors import FirstPassword, NotAllowed, NotSignedIn
from localmed.messages import FALLBACK, LANGUAGES
from localmed.people import logins
from localmed.people.logins import Login
from localmed.site.session import Session, caller_of
from localmed.site.site import Site

LOGIN_COOKIE, LANGUAGE_COOKIE, THEME_COOKIE = "localmed_login", "localmed_language", "localmed_theme"
THEMES = ("auto", "light", "dark")
TOKEN_FIELD, TOKEN_HEADER = "form", "x-form-token"
UNCHOSEN = ("/account", "/account/password", "/logout")
SAFE = ("GET", "HEAD")
WATCH = "watch"  # in the address of what a page asks by itself: nobody is there for it


@dataclass(frozen=True, slots=True)
class Visit:
    """One request. ``login`` is None if nobody is signed in; there is no ``session`` then."""

    request: Request
    language: str
    theme: str
    login: Login | None = None
    own: Session | None = None

    @property
    def site(self) -> Site:
        """The site."""
        site: Site = self.request.app.state.site
        return site

    @property
    def session(self) -> Session:
        """The visitor's session, one a request. Raise ``NotSignedIn`` without a login."""
        if self.own is None:
            raise NotSignedIn("web.error.signed_out")
        return self.own

    def may(self, right: Right) -> bool:
        """Whether the visitor is signed in and has ``right``."""
        return self.own is not None and self.own.may(right)


def language_of(request: Request) -> str:
    """The language that the visitor chose, else the browser's first known one."""
    chosen = request.cookies.get(LANGUAGE_COOKIE, "")
    accepted = (entry.strip()[:2].lower() for entry in request.headers.get("accept-language", "").split(","))
    return next((name for name in (chosen, *accepted) if name in LANGUAGES), FALLBACK)


def anybody(request: Request) -> Visit:
    """The visit without its login."""
    theme = request.cookies.get(THEME_COOKIE, "")
    return Visit(request, language_of(request), theme if theme in THEMES else THEMES[0])


def visit_of(request: Request) -> Visit:
    """The visit, signed in if its login is valid."""
    visit, token = anybody(request), request.cookies.get(LOGIN_COOKIE, "")
    site = visit.site
    used = WATCH not in request.query_params
    login = logins.current(site.data, token, site.settings.web, used) if token else None
    if login is None:
        return visit
    session = Session(site, caller_of(login.account, visit.language))
    return Visit(request, visit.language, visit.theme, login, session)


async def visitor(request: Request) -> Visit:
    """``visit_of``, without blocking other requests."""
    return await run_in_threadpool(visit_of, request)


def visit_with(right: Right) -> Callable[[Request], Awaitable[Visit]]:
    """A dependency: the visit of a signed-in user with ``right``, whose form carries the login's token.

    It raises ``NotSignedIn`` or ``NotAllowed`` for anybody else.
    """

    async def checked(request: Request) -> Visit:
        visit = await visitor(request)
        if visit.login is None:
            raise NotSignedIn("web.error.signed_out")
        require_own_password(visit)
        if not visit.may(right):
            raise NotAllowed("session.role", role=Message(f"session.right.{right}"))
        if request.method not in SAFE:
            await _own_form(request, visit.login)
        return visit

    return checked


def require_own_password(visit: Visit) -> None:
    """Raise ``FirstPassword`` for a user whose password was set by another, except on the pages that change it."""
    if visit.login and visit.login.temporary and visit.request.url.path not in UNCHOSEN:
        raise FirstPassword("account.first_password")


async def _own_form(request: Request, login: Login) -> None:
    """Raise ``NotAllowed`` unless the request carries the token of the login's forms."""
    token = request.headers.get(TOKEN_HEADER)
    if token is None:
        field = (await request.form()).get(TOKEN_FIELD)
        token = field if isinstance(field, str) else ""
    if not hmac.compare_digest(token.encode(), login.form.encode()):
        raise NotAllowed("web.error.token")


Anybody = Annotated[Visit, Depends(visitor)]
Asking = Annotated[Visit, Depends(visit_with(Right.ASK))]
Librarian = Annotated[Visit, Depends(visit_with(Right.LIBRARY))]
Safety = Annotated[Visit, Depends(visit_with(Right.SAFETY))]
Models = Annotated[Visit, Depends(visit_with(Right.MODELS))]
Accounts = Annotated[Visit, Depends(visit_with(Right.ACCOUNTS))]
