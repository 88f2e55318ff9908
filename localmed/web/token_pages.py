"""Tokens of one's own account: make one, see which hold, revoke them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Form
from starlette.responses import Response

from localmed.people import tokens
from localmed.web import pages
from localmed.web.visits import Asking, Visit

router = APIRouter()


@router.get("/account/tokens")
def listing(visit: Asking) -> Response:
    """The tokens that hold."""
    return _listed(visit, "")


@router.post("/account/tokens")
def make(visit: Asking, name: Annotated[str, Form()] = "", days: Annotated[int, Form()] = 0) -> Response:
    """Make one, shown this once."""
    return _listed(visit, tokens.make(visit.session, visit.session.caller.user, name, days))


@router.post("/account/tokens/{token_id}/revoke")
def revoke(visit: Asking, token_id: str) -> Response:
    """End one."""
    tokens.revoke(visit.session, token_id)
    return pages.redirect("/account/tokens", notice="revoked")


def _listed(visit: Visit, made: str) -> Response:
    rows = [
        (token, datetime.fromtimestamp(token.expires).strftime("%Y-%m-%d"))
        for token in tokens.listing(visit.site.data, visit.session.caller.user)
    ]
    return pages.page(visit, "tokens.html", made=made, rows=rows, most=tokens.MOST_DAYS)
