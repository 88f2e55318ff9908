"""Jobs: how far a long change is, and ending it. Its page loads itself again while the job runs."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from localmed.domain.accounts import Right
from localmed.errors import UnknownName
from localmed.operations import jobs
from localmed.operations.jobs import Job
from localmed.web import pages
from localmed.web.visits import Asking, Visit

router = APIRouter()


@router.get("/jobs/{job_id}")
def job_page(visit: Asking, job_id: str) -> Response:
    """One job."""
    return pages.page(visit, "job.html", job=_own(visit, job_id))


@router.post("/jobs/{job_id}/cancel")
def cancel(visit: Asking, job_id: str) -> Response:
    """Let it end."""
    jobs.cancel(visit.session, _own(visit, job_id).id)
    return pages.redirect(f"/jobs/{job_id}")


def _own(visit: Visit, job_id: str) -> Job:
    """The job, for whoever began it and for librarians; to others there is none."""
    job = jobs.job(visit.session, job_id)
    if job.user != visit.session.caller.user and not visit.may(Right.LIBRARY):
        raise UnknownName("job.unknown")
    return job
