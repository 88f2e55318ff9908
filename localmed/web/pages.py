"""Renders templates for a visit. Every template may use:

``text(code, ...)``: the words of a message in the visitor's language; ``words(message)``: those of a ``Message``.
``moment(time)``: a stored time; ``listed(names)``: names as the language lists them.
``visit``: the visit; ``can("library")``: whether the visitor has a right. ``token``: the hidden field of every form,
written by ``{{ form_token() }}`` of ``parts.html``. ``nonce``: for ``<script>`` and ``<link>``, in the layout alone.
``notice``, ``outcome`` (of a job) and ``unaudited``: messages above the page, in the layout. ``form_page``: see
``form_page_of``.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from localmed import messages
from localmed.domain import Message, Parameter, message
from localmed.domain.accounts import Right
from localmed.domain.errors import UnknownName
from localmed.messages import joined
from localmed.people import sign_on
from localmed.presentation import neutral
from localmed.presentation.pages import environment, moment
from localmed.site import alerts, jobs, stops
from localmed.web.visits import SAFE, THEMES, Visit

STATIC = {"localmed.css": "text/css; charset=utf-8", "localmed.js": "text/javascript; charset=utf-8"}


class Place(NamedTuple):
    """An entry of the navigation: its address, its words, and the right that it needs."""

    path: str
    code: str
    right: Right

    def holds(self, path: str) -> bool:
        """Whether ``path`` is one of several pages behind this entry, such as those of the library."""
        area = self.path.split("/")[1]
        return bool(area) and path.startswith(f"/{area}/")


BESIDE = (  # ways to ask that stand under the box of the first page, not in the bar
    Place("/practice", "web.nav.practice", Right.ASK),
    Place("/search", "workflow_name.search", Right.ASK),
    Place("/documents", "web.nav.contents", Right.ASK),
    Place("/concepts", "web.nav.concepts", Right.ASK),
)
NAVIGATION = (
    # work of the ward
    Place("/", "workflow_name.ask", Right.ASK),
    Place("/orders", "web.nav.orders", Right.ASK),
    Place("/departments", "workflow_name.departments", Right.ASK),
    Place("/history", "web.nav.history", Right.ASK),
    # work of librarians
    Place("/library/documents", "web.nav.library", Right.LIBRARY),
    # work of safety officers
    Place("/safety", "web.nav.safety", Right.SAFETY),
    # work of administrators
    Place("/admin/health", "web.nav.machine", Right.MODELS),
)


def page(visit: Visit, template: str, status: int = 0, **values: Any) -> Response:
    """The page that ``template`` makes of ``values``; a ``fault`` among them sets the status 400."""
    return HTMLResponse(fragment(visit, template, **values), status or (400 if values.get("fault") else 200))


def fragment(visit: Visit, template: str, **values: Any) -> str:
    """Render ``template`` with ``values``: a page, or a part that the script inserts."""
    request = visit.request
    titles = cache(lambda: visit.session.collection_titles() if visit.own else {})
    sources = cache(lambda: visit.session.collection_sources() if visit.own else {})
    notice = request.query_params.get("notice", "")
    return environment("localmed.web").get_template(template).render(
        visit=visit,
        language=visit.language,
        languages=messages.LANGUAGES,
        themes=THEMES,
        text=texts(visit.language),
        words=lambda line: neutral.words(for_visitor(line, visit), visit.language) if line else "",
        listed=lambda names: joined(names, visit.language),
        named=lambda kind, name: named(kind, name, visit.language),
        titled=lambda name: titles().get(name, name),
        stated_source=lambda name: sources().get(name, ""),
        today=day(time.time()),
        moment=moment,
        can=lambda right: visit.may(Right(right)),
        navigation=[it for it in NAVIGATION if visit.may(it.right) and visit.login and not visit.login.temporary],
        path=request.url.path,
        form_page=form_page_of(request),
        token=visit.login.form if visit.login else "",
        nonce=request.scope["state"]["nonce"],
        asset=asset,
        idle_seconds=idle_seconds(visit),
        idle_minutes=visit.site.settings.web.idle_minutes,
        notice=f"web.notice.{notice}" if messages.known(f"web.notice.{notice}") else "",
        outcome=_outcome(visit),
        stops=stops.visible_stops(visit.own) if visit.own else (),
        glass=_glass(visit),
        alerts=_alerts(visit),
        unaudited=visit.own.unaudited if visit.own else (),
        **values,
    )  # fmt: skip


def idle_seconds(visit: Visit) -> int:
    """The time without a key or click after which a page is cleared."""
    return round(60 * visit.site.settings.web.idle_minutes)


def form_page_of(request: Request) -> str:
    """The address of the form that was posted to make this page; "" for a page with its own address.

    ``/`` if the browser sends no ``Referer``.
    """
    if request.method in SAFE:
        return ""
    before = urlsplit(request.headers.get("referer", ""))
    own = before.netloc == request.headers.get("host", "")
    return local(before.path + (f"?{before.query}" if before.query else "")) if own else "/"


def _outcome(visit: Visit) -> Message | None:
    """The outcome of the job in the address, for whoever may see it."""
    id_ = visit.request.query_params.get("job", "")
    with suppress(UnknownName):
        return jobs.job(visit.own, id_).outcome if id_ and visit.own else None
    return None


def _glass(visit: Visit) -> tuple[str, ...]:
    """The emergency accounts that are signed in, shown to themselves, administrators and safety officers."""
    if visit.login is None:
        return ()
    users = sign_on.signed_in_emergency_accounts(visit.site.data, visit.site.settings.web)
    may_know = visit.login.account.user in users or visit.may(Right.ACCOUNTS) or visit.may(Right.SAFETY)
    return users if may_know else ()


def _alerts(visit: Visit) -> tuple[Message, ...]:
    """Alerts for those who can act on them; readers are told only that the library is not updated."""
    standing = alerts.alerts(visit.site.data) if visit.login else ()
    if any(visit.may(right) for right in (Right.LIBRARY, Right.SAFETY, Right.MODELS)):
        return tuple(one.text for one in standing)
    return (message("alert.for_readers"),) if {one.kind for one in standing} & {"refresh", "canaries", "damage"} else ()


def texts(language: str) -> Callable[..., str]:
    """``text`` of the templates: the words of a code with its parameters."""

    def text(code: str, /, **parameters: Parameter) -> str:
        return neutral.words(message(code, **parameters), language)

    return text


def named(kind: str, name: str, language: str) -> str:
    """The words for a ``workflow``, a role of a ``model`` or an ``action`` of the audit log; else ``name`` itself."""
    workflow, role = f"workflow_name.{name}", f"model_name.{name}"
    action = f"action_name.{name.replace(' ', '_').replace('-', '_')}"
    codes = {"workflow": (workflow,), "model": (role,), "action": (action, workflow)}.get(kind, ())
    return next((neutral.words(message(code), language) for code in codes if messages.known(code)), name)


def for_visitor(line: Message, visit: Visit) -> Message:
    """``line`` for the window: instructions for the window (``web.remedy``) replace a command line.

    A command without such instructions is shown to administrators; others are referred to them.
    """
    if line.code.endswith(messages.COMMAND):
        ours = f"web.remedy.{line.code.removesuffix(messages.COMMAND).replace('.', '_')}"
        if messages.known(ours):
            return Message(ours, line.parameters)
        return line if visit.may(Right.MODELS) else message("web.remedy.administrator")
    return Message(line.code, tuple((name, _inner(value, visit)) for name, value in line.parameters))


def _inner(value: Parameter, visit: Visit) -> Parameter:
    if isinstance(value, tuple):
        return tuple(_inner(item, visit) for item in value)
    return for_visitor(value, visit) if isinstance(value, Message) else value


def day(stored: float) -> str:
    """The local date of a stored time (seconds since 1970)."""
    return datetime.fromtimestamp(stored).astimezone().date().isoformat()


def lines(messages_: tuple[Message, ...], visit: Visit) -> list[str]:
    """``messages_`` in the visitor's language."""
    return [neutral.words(for_visitor(line, visit), visit.language) for line in messages_]


def redirect(path: str, **query: str) -> Response:
    """Redirect to our page ``path`` by GET; ``notice`` names a message shown there (``web.notice``)."""
    kept = urlencode({name: value for name, value in query.items() if value})
    return RedirectResponse(f"{path}{'&' if '?' in path else '?'}{kept}" if kept else path, 303)


def local(path: str) -> str:
    """``path`` if it is a page of this server, else ``/``: no redirection leads elsewhere."""
    plain = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if plain else "/"


@cache
def static(name: str) -> bytes:
    """The stylesheet or the script."""
    return files("localmed.web").joinpath("static", name).read_bytes()


@cache
def asset(name: str) -> str:
    """The address of a static file; it changes with the content."""
    return f"/static/{name}?v={hashlib.sha256(static(name)).hexdigest()[:12]}"
