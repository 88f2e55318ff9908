"""Jobs: what takes longer than a click (an import, a change that asks the canaries), how far it is, and ending it.

A click begins it and is answered at once with its page, which loads itself again while the job runs and then leads to
the page after it; a second click leads to the same page. What is in force at once (a withdrawal, access, a stop) is no
job.
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
    """Begin ``work(session, *values, hooks)`` as a job; ``back`` is the page to see when it has ended."""
    session = visit.session
    id_ = jobs.start(session, kind, lambda hooks: work(session, *values, hooks), back, *values)
    return pages.redirect(f"/jobs/{id_}")


def change(visit: Visit, kind: str, back: str, made: Callable[..., int], *values: object) -> Response:
    """Begin ``made(session, *values)``, which makes a generation, as a job."""
    visit.session.may_change()

    def work(*arguments: object) -> Message:
        made(*arguments[:-1])  # the hooks reach it by ``hooks.active``
        return message("job.changed")

    return begin(visit, kind, back, work, *values)


@router.get("/jobs/{job_id}")
def job_page(visit: Asking, job_id: str, watch: str = "") -> Response:
    """How far a job is; of one that has ended the page after it, which tells what came of it."""
    job = jobs.job(visit.session, job_id)
    if job.outcome:
        return pages.redirect(job.back, job=job_id, watch=watch)
    return pages.page(visit, "job.html", job=job)


@router.post("/jobs/{job_id}/cancel")
def cancel(visit: Asking, job_id: str) -> Response:
    """Let it end."""
    jobs.cancel(visit.session, job_id)
    return pages.redirect(f"/jobs/{job_id}")
