"""Blinded reviews: safety officers create them and read the results; named reviewers rate case by case."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from localmed.domain import Answer, Message
from localmed.lab import reviews
from localmed.lab.review_sheets import FORMS
from localmed.lab.reviews import Configuration, Setup
from localmed.people import accounts
from localmed.presentation.answer import view
from localmed.presentation.finding import WHOLE
from localmed.process.hooks import Hooks
from localmed.site import lookups
from localmed.site.session import Session
from localmed.text.language import clean
from localmed.web import pages
from localmed.web.job_pages import begin
from localmed.web.visits import Asking, Safety

router = APIRouter()


@router.get("/safety/reviews")
def listing(visit: Safety) -> Response:
    """All reviews, and the form for a new one."""
    return pages.page(
        visit,
        "reviews.html",
        reviews=reviews.reviews(visit.session),
        forms=tuple(FORMS),
        presets=tuple(visit.site.settings.tiers.presets),
        generations=lookups.generation_numbers(visit.session)[::-1],
        users=[account.user for account in accounts.accounts(visit.site.data) if not account.disabled],
    )


@router.post("/safety/reviews")
def make(
    visit: Safety,
    title: Annotated[str, Form()] = "",
    form_of: Annotated[str, Form()] = "",
    reviewers: Annotated[list[str], Form()] = [],  # noqa: B006
    questions: Annotated[str, Form()] = "",
    generation_a: Annotated[int, Form()] = 0,
    generation_b: Annotated[int, Form()] = 0,
    preset_a: Annotated[str, Form()] = "",
    preset_b: Annotated[str, Form()] = "",
    cases: Annotated[str, Form()] = "",
) -> Response:
    """Answer the questions with both configurations, then open the review, as a job."""
    both = (Configuration(generation_a, preset_a), Configuration(generation_b, preset_b))
    setup = Setup(clean(title).strip(), form_of, tuple(reviewers), reviews.cleaned(questions), both, clean(cases))
    reviews.checked(visit.session, setup)
    return begin(visit, "review", "/safety/reviews", _made, setup, visit.language)


def _made(session: Session, setup: Setup, language: str, hooks: Hooks) -> Message:
    return reviews.make(session, setup, partial(_rated_text, language=language), hooks)


def _rated_text(answer: Answer, language: str) -> str:
    """The text to rate: an answer's sentences, or one of each first section, without signs of its configuration."""
    shown = view(answer, answer.language or language)
    sections = shown.finding.sections[:WHOLE] if shown.finding else ()
    sentences = [one.text for one in shown.statements if not one.withheld] or [one.excerpt for one in sections]
    return "\n".join(sentences) or shown.headline or "–"


@router.get("/safety/reviews/{review_id}")
def results(visit: Safety, review_id: str) -> Response:
    """The progress of the reviewers; after closing, the results."""
    shown = reviews.review_of(visit.session, review_id)
    report = reviews.report(visit.session, review_id)
    return pages.page(visit, "review_results.html", review=shown, report=report)


@router.get("/safety/reviews/{review_id}/table")
def table(visit: Safety, review_id: str) -> Response:
    """The scores as a table (CSV)."""
    report = reviews.report(visit.session, review_id)
    headers = {"content-disposition": 'attachment; filename="review.csv"'}
    return Response(report.csv if report else "", media_type="text/csv", headers=headers)


@router.post("/safety/reviews/{review_id}/close")
def close(visit: Safety, review_id: str) -> Response:
    """End the rating and reveal which configuration gave which answer."""
    reviews.close(visit.session, review_id)
    return pages.redirect(f"/safety/reviews/{review_id}", notice="saved")


@router.post("/safety/reviews/{review_id}/delete")
def delete(visit: Safety, review_id: str) -> Response:
    """Delete it."""
    reviews.delete(visit.session, review_id)
    return pages.redirect("/safety/reviews", notice="saved")


@router.get("/reviews")
def mine(visit: Asking) -> Response:
    """The reviews that wait for the visitor."""
    return pages.page(visit, "reviews_mine.html", rows=reviews.to_rate(visit.session))


@router.get("/reviews/{review_id}")
def rating(visit: Asking, review_id: str) -> Response:
    """The next case to rate."""
    block, key, rated, count = reviews.next_block(visit.session, review_id)
    return pages.page(visit, "review_case.html", id=review_id, block=block, key=key, rated=rated, count=count)


@router.post("/reviews/{review_id}")
async def rate(visit: Asking, review_id: str, request: Request) -> Response:
    """Save the ratings of a case and show the next."""
    form = await request.form()
    named = ((field.split(":", 2), str(value)) for field, value in form.multi_items())  # rate:CODE:DIMENSION
    values = {(parts[1], parts[2]): value for parts, value in named if len(parts) == 3 and parts[0] == "rate"}
    await run_in_threadpool(reviews.rate, visit.session, review_id, values)
    return pages.redirect(f"/reviews/{review_id}")
