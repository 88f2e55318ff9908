"""Accounts, for administrators: create them, set roles, groups and passwords, disable them; one's own tokens."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.responses import Response

from localmed.domain import Message
from localmed.domain.accounts import Account, SessionRole
from localmed.domain.errors import UsageError
from localmed.people import accounts, tokens
from localmed.web import pages
from localmed.web.visits import Accounts, Asking, Visit

router = APIRouter()
PATH = "/admin/accounts"


@router.get(PATH)
def listing(visit: Accounts, made: str = "") -> Response:
    """All accounts, and the form for a new one; ``made`` was just created."""
    return _list_page(visit, Account("", SessionRole.READER), made=made)


def _list_page(visit: Accounts, typed: Account, fault: Message | None = None, made: str = "") -> Response:
    """All accounts, and the form as it was ``typed`` before the ``fault``."""
    known, roles = accounts.accounts(visit.site.data), tuple(SessionRole)
    told = made if made in {account.user for account in known} else ""
    return pages.page(visit, "accounts.html", accounts=known, roles=roles, typed=typed, fault=fault, made=told)


@router.post(PATH)
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
        made = accounts.create(visit.session, typed, password, temporary=True)
    except UsageError as error:
        return _list_page(visit, typed, error.full_message)
    return pages.redirect(PATH, made=made.user)


@router.post(PATH + "/{user}")
def change(
    visit: Accounts,
    user: str,
    role: Annotated[SessionRole, Form()],
    groups: Annotated[str, Form()] = "",
    disabled: Annotated[bool, Form()] = False,
) -> Response:
    """Change role or groups of an account, or disable it."""
    accounts.change(visit.session, Account(user, role, tuple(groups.split()), disabled=disabled))
    return pages.redirect(PATH, notice="saved")


@router.post(PATH + "/{user}/password")
def set_password(visit: Accounts, user: str, password: Annotated[str, Form()] = "") -> Response:
    """Set a new password of an account."""
    accounts.set_password(visit.session, user, password)
    return pages.redirect(PATH, notice="saved")


# --- tokens of one's own account --------------------------------------------------------------------------------------


@router.get("/account/tokens")
def list_tokens(visit: Asking) -> Response:
    """The visitor's valid tokens."""
    return _tokens(visit, "")


@router.post("/account/tokens")
def make_token(visit: Asking, name: Annotated[str, Form()] = "", days: Annotated[int, Form()] = 0) -> Response:
    """Create a token; it is shown this once."""
    return _tokens(visit, tokens.make(visit.session, visit.session.caller.user, name, days))


@router.post("/account/tokens/{token_id}/revoke")
def revoke_token(visit: Asking, token_id: str) -> Response:
    """Revoke a token."""
    tokens.revoke(visit.session, token_id)
    return pages.redirect("/account/tokens", notice="revoked")


def _tokens(visit: Visit, made: str) -> Response:
    rows = [(token, pages.day(token.expires)) for token in tokens.listing(visit.site.data, visit.session.caller.user)]
    return pages.page(visit, "tokens.html", made=made, rows=rows, most=tokens.MOST_DAYS)
