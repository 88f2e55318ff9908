"""Jobs: actions longer than a click (an import, a change that asks the canaries), their progress and cancellation.

A click starts the job and shows its page, which reloads until the job ends and then leads on; a second click shows the
same page. Changes in force at once (a withdrawal, access, a stop) are no jobs.
"""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter
from starlette.responses import Response

from localmed.domain import Message, message
from localmed.site import jobs
from localmed.web import pages
from localmed.web.visits import Asking, Visit

router = APIRouter()


def begin(visit: Visit, kind: str, back: str, work: Callable[..., Message], *values: object) -> Response:
    """Start ``work(session, *values, hooks)`` as a job; ``back`` is the page after it."""
    session = visit.session
    id_ = jobs.start(session, kind, lambda hooks: work(session, *values, hooks), back, *values)
    return pages.redirect(f"/jobs/{id_}")


def change(visit: Visit, kind: str, back: str, made: Callable[..., int], *values: object) -> Response:
    """Start ``made(session, *values)``, which makes a generation, as a job."""
    visit.session.may_change()

    def work(*arguments: object) -> Message:
        made(*arguments[:-1])  # the hooks reach it by ``hooks.active``
        return message("job.changed")

    return begin(visit, kind, back, work, *values)


@router.get("/jobs/{job_id}")
def job_page(visit: Asking, job_id: str, watch: str = "") -> Response:
    """The progress of a job, or after its end a redirection to the page with its outcome."""
    job = jobs.job(visit.session, job_id)
    if job.outcome:
        return pages.redirect(job.back, job=job_id, watch=watch)
    return pages.page(visit, "job.html", job=job)


@router.post("/jobs/{job_id}/cancel")
def cancel(visit: Asking, job_id: str) -> Response:
    """Cancel the job."""
    jobs.cancel(visit.session, job_id)
    return pages.redirect(f"/jobs/{job_id}")
