"""History: one's own answers, for as many days as the site keeps them."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter
from starlette.responses import Response

from localmed.people import history
from localmed.web import pages
from localmed.web.visits import Asking

router = APIRouter()


@router.get("/history")
def listing(visit: Asking) -> Response:
    """The visitor's answers, the newest first."""
    listed, unopened = history.listing(visit.session)
    since = history.withdrawals(visit.session, (evidence for kept in listed for evidence in kept.answer.evidence))
    answers = [
        (
            kept,
            datetime.fromtimestamp(kept.time).strftime("%Y-%m-%d %H:%M"),
            [since[name] for name in _cited(kept) if name in since],
        )
        for kept in listed
    ]
    return pages.page(
        visit,
        "history.html",
        answers=answers,
        unopened=unopened,
        days=visit.site.settings.web.history_days,
    )


def _cited(kept: history.Kept) -> list[str]:
    """The documents of an answer."""
    return list(dict.fromkeys(evidence.passage.document_id for evidence in kept.answer.evidence))


@router.post("/history/{answer_id}/forget")
def forget(visit: Asking, answer_id: str) -> Response:
    """Delete one of them; "all": all."""
    history.forget(visit.session, "" if answer_id == "all" else answer_id)
    return pages.redirect("/history", notice="forgotten")
