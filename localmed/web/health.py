"""Health for a monitor, without signing in and without personal data: live, ready, able to answer.

``/health/live``: the process responds. ``/health/ready``: accounts and audit log are usable, so that pages work.
``/health/answer``: a library is served, no model host hangs, asking is not stopped. The reply is 200, or 503 with the
codes of the faults. ``/admin/health`` shows every check of ``localmed doctor`` to administrators.
"""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from localmed.config import file_of, load
from localmed.domain import message
from localmed.domain.errors import BadSettings, ModelError
from localmed.nightly import nights
from localmed.upkeep import doctor
from localmed.web import pages
from localmed.web.visits import Anybody, Models

if TYPE_CHECKING:
    from localmed.site.site import Site

router = APIRouter()
STARTED = time.time()  # settings are read when the process begins
URGENT = (*reversed(doctor.Level),)
PAGES = {  # where the window does what a check asks for
    "backup": ("/admin/backup", "web.nav.backup"),
    "whole check": ("/library/generations", "web.library.generations"),
    "library": ("/library/generations", "web.library.generations"),
    "quarantine": ("/library/quarantine", "web.library.quarantine"),
    "governance": ("/library/review", "web.library.review"),
}


@router.get("/health/live")
def live() -> Response:
    """The process responds."""
    return JSONResponse({"live": True})


@router.get("/health/ready")
def ready(visit: Anybody) -> Response:
    """Pages work."""
    return _reply("ready", tuple(doctor.not_ready(visit.site)))


@router.get("/health/answer")
def answer(visit: Anybody) -> Response:
    """Questions are answered."""
    return _reply("answer", (*doctor.not_ready(visit.site), *doctor.not_answering(visit.site)))


def _reply(name: str, faults: tuple[str, ...]) -> Response:
    return JSONResponse({name: not faults, "faults": list(faults)}, 503 if faults else 200)


@router.get("/admin/health")
def overview(visit: Models) -> Response:
    """The checks of doctor, the models in each role, the model host's queue and memory."""
    site, status = visit.site, None
    examined = doctor.examine(doctor.Site.of(site), doctor.checks_for(site.settings))
    checks = sorted(examined, key=lambda check: URGENT.index(check.level))
    with suppress(ModelError):  # told by a check
        status = site.host_status()
    faults = tuple(message(f"web.fault.{name}") for name in (*doctor.not_ready(site), *doctor.not_answering(site)))
    return pages.page(
        visit,
        "health.html",
        checks=checks,
        serving=site.serving,
        host=status,
        faults=faults,
        day=date.today(),
        changed=_changed(site),
        pages=PAGES,
        timed=nights.is_timed(site.data),
        night=next(iter(nights.nights(site.data, 1)), None),
    )


def _changed(site: Site) -> bool:
    """Whether the settings file says something else than what this process uses."""
    file = file_of(site.data)
    try:
        return file.exists() and file.stat().st_mtime > STARTED and load(site.data) != site.settings
    except BadSettings:
        return True
