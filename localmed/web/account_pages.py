"""Accounts, for administrators: make them, give roles and groups, disable them, set a password."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.responses import Response

from localmed.domain import Message
from localmed.domain.accounts import Account, SessionRole
from localmed.domain.errors import UsageError
from localmed.people import accounts
from localmed.web import pages
from localmed.web.visits import Accounts

router = APIRouter(prefix="/admin/accounts")
PATH = "/admin/accounts"


@router.get("")
def listing(visit: Accounts) -> Response:
    """All accounts, and the form for another."""
    return _listed(visit, Account("", SessionRole.READER))


def _listed(visit: Accounts, typed: Account, fault: Message | None = None) -> Response:
    """All accounts, and the form for another, as it was ``typed`` and not made for ``fault``."""
    known, roles = accounts.accounts(visit.site.data), tuple(SessionRole)
    status = 400 if fault else 200
    return pages.page(visit, "accounts.html", status, accounts=known, roles=roles, typed=typed, fault=fault)


@router.post("")
def create(
    visit: Accounts,
    user: Annotated[str, Form()] = "",
    password: Annotated[str, Form()] = "",
    role: Annotated[SessionRole, Form()] = SessionRole.READER,
    groups: Annotated[str, Form()] = "",
) -> Response:
    """Make an account."""
    typed = Account(user, role, tuple(groups.split()))
    try:
        accounts.create(visit.session, typed, password, temporary=True)
    except UsageError as error:
        return _listed(visit, typed, error.full_message)
    return pages.redirect(PATH, notice="saved")


@router.post("/{user}")
def change(
    visit: Accounts,
    user: str,
    role: Annotated[SessionRole, Form()],
    groups: Annotated[str, Form()] = "",
    disabled: Annotated[bool, Form()] = False,
) -> Response:
    """Give an account another role or other groups, or disable it."""
    accounts.change(visit.session, Account(user, role, tuple(groups.split()), disabled=disabled))
    return pages.redirect(PATH, notice="saved")


@router.post("/{user}/password")
def set_password(visit: Accounts, user: str, password: Annotated[str, Form()] = "") -> Response:
    """Give an account a new password: it was forgotten, or is to be void."""
    accounts.set_password(visit.session, user, password)
    return pages.redirect(PATH, notice="saved")
