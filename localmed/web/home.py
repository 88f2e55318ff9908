"""The first page, where whoever comes is led; and the guide: a page of what one may do here, and how."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from localmed import messages
from localmed.domain.accounts import Right
from localmed.people import accounts
from localmed.web import ask, pages
from localmed.web.visits import Anybody, Asking, require_own_password

router = APIRouter()
GUIDE = {
    "ward": Right.ASK,
    "keys": Right.ASK,
    "library": Right.LIBRARY,
    "safety": Right.SAFETY,
    "accounts": Right.ACCOUNTS,
}
LINES = 9  # at most, of a part of the guide: it is one page


@router.get("/")
def home(visit: Anybody) -> Response:
    """To the first start, to sign in, or to ask."""
    require_own_password(visit)
    if visit.own is not None:
        return ask.form_page(visit)
    return pages.redirect("/start" if accounts.no_account(visit.site.data) else "/login")


@router.get("/guide")
def guide(visit: Asking) -> Response:
    """What one may do here, and how: a part for each right."""
    parts = [name for name, right in GUIDE.items() if visit.may(right)]
    lines = {name: [f"web.guide.{name}_{number}" for number in range(1, LINES)] for name in parts}
    shown = [(name, [code for code in codes if messages.known(code)]) for name, codes in lines.items()]
    return pages.page(visit, "guide.html", guide=shown)
