"""The first start: the administrator's account by the one-time code of the console, then the library."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.responses import Response

from localmed.domain.errors import UsageError
from localmed.people import accounts
from localmed.site import starter
from localmed.web import login, pages
from localmed.web.job_pages import begin
from localmed.web.visits import Accounts, Anybody

router = APIRouter()


@router.get("/start")
def form(visit: Anybody) -> Response:
    """The form for the first account."""
    if not accounts.has_no_account(visit.site.data):
        return pages.redirect("/")
    return pages.page(visit, "start.html", error=None, user="")


@router.post("/start")
def create(
    visit: Anybody,
    code: Annotated[str, Form()] = "",
    user: Annotated[str, Form()] = "",
    password: Annotated[str, Form()] = "",
    again: Annotated[str, Form()] = "",
) -> Response:
    """Create the administrator's account and sign in."""
    site = visit.site
    try:
        if password != again:
            raise UsageError("account.differ")
        account = accounts.create_first(site.data, code, user, password, site.settings.web)
    except UsageError as error:
        return pages.page(visit, "start.html", 400, error=error.full_message, user=user)
    return login.sign_in_as(visit, account, "/")


@router.get("/start/library")
def library_form(visit: Accounts) -> Response:
    """The choices to fill an empty library."""
    return pages.page(visit, "start_library.html", starter=bool(starter.starter_manifests()))


@router.post("/start/library")
def fill_library(visit: Accounts, source: Annotated[str, Form()] = "", folder: Annotated[str, Form()] = "") -> Response:
    """Begin the import; its page shows the progress."""
    if source == "starter":
        return begin(visit, "import", "/", starter.import_starter)
    starter.folder_of(folder)
    title = pages.texts(visit.language)("web.start.collection")
    return begin(visit, "import", "/", starter.import_folder, folder, "hospital", title)
