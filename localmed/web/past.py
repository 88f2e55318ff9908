"""History: one's own answers, for as many days as the site keeps them."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter
from starlette.responses import Response

from localmed.operations import history
from localmed.web import pages
from localmed.web.visits import Asking

router = APIRouter()


@router.get("/history")
def listing(visit: Asking) -> Response:
    """The visitor's answers, the newest first."""
    answers = [
        (kept, datetime.fromtimestamp(kept.time).strftime("%Y-%m-%d %H:%M")) for kept in history.listing(visit.session)
    ]
    return pages.page(
        visit,
        "history.html",
        answers=answers,
        recalled=history.recalled(visit.session),
        days=visit.site.settings.web.history_days,
    )


@router.post("/history/{answer_id}/forget")
def forget(visit: Asking, answer_id: str) -> Response:
    """Delete one of them; "all": all."""
    history.forget(visit.session, "" if answer_id == "all" else answer_id)
    return pages.redirect("/history", notice="forgotten")
