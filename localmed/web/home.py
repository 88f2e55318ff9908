"""The first page: where whoever comes is led."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from localmed.operations import accounts
from localmed.web import ask, pages
from localmed.web.visits import Anybody

router = APIRouter()


@router.get("/")
def home(visit: Anybody) -> Response:
    """To the first start, to sign in, or to ask."""
    if visit.own is not None:
        return ask.form_page(visit)
    return pages.redirect("/start" if accounts.no_account(visit.site.data) else "/login")
