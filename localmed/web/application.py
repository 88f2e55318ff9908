"""The application: the pages' routers over one site, behind the protection that every request passes."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from localmed.domain.errors import LocalmedError, UnknownName
from localmed.people import sign_on
from localmed.site.site import Site
from localmed.web import (
    account_pages,
    api,
    ask,
    backups,
    chat_completions,
    collections,
    documents,
    failures,
    generations,
    governance,
    health,
    job_pages,
    login,
    orders,
    pages,
    practice,
    refreshes,
    reviews,
    safety,
    search,
    sources,
    start,
    uploads,
)
from localmed.web.admission import Queue
from localmed.web.protection import Protection
from localmed.web.visits import Visit, visit_of

ROUTERS = (
    login.router, start.router,
    uploads.router, safety.router, health.router, backups.router,
    collections.router, documents.router, governance.router, generations.router, refreshes.router,
    ask.router, sources.router, search.router,
    practice.router, orders.router,
    api.router, chat_completions.router,
    job_pages.router, account_pages.router, reviews.router,
)  # fmt: skip
ASSET_SECONDS = 31_536_000  # an asset's address changes with its content


def create(site: Site, names: Collection[str] = ()) -> FastAPI:
    """The application over ``site``, reachable by the host ``names``, localhost and the names in the settings."""
    app = FastAPI(title="localmed", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.site = site
    app.state.described = chat_completions.router.routes
    settings = site.settings
    sign_on.check_settings(settings.web)
    app.state.queue = Queue.of(settings.web)
    for router in ROUTERS:
        app.include_router(router)
    app.add_api_route("/static/{name}", asset, methods=["GET"], include_in_schema=False)
    for kind in (LocalmedError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _reply_to)
    app.add_middleware(
        Protection,
        names=(*names, *settings.web.names),
        body_bytes=settings.web.body_bytes,
        upload_bytes=settings.read.file_bytes,
    )
    return app


def asset(name: str) -> Response:
    """The stylesheet or the script."""
    if name not in pages.STATIC:
        raise UnknownName("web.error.no_page")
    headers = {"cache-control": f"public, max-age={ASSET_SECONDS}, immutable"}
    return Response(pages.static(name), media_type=pages.STATIC[name], headers=headers)


def _reply_to(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        ours = failures.of_http(request, error)
    elif isinstance(error, RequestValidationError):
        ours = failures.of_fields(error.errors())
    else:
        ours = failures.as_ours(error)
    return failures.reply(request, ours, _visit(request))


def _visit(request: Request) -> Visit | None:
    """The visitor who is told of an error, so that the page keeps its navigation; None if it cannot be read."""
    with suppress(LocalmedError):
        return visit_of(request)
    return None
