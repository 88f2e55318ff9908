"""A program's token is made, listed and revoked by commands."""

from __future__ import annotations

from localmed.config import Settings
from localmed.domain.accounts import Account, SessionRole
from localmed.domain.errors import UnknownName
from localmed.people import accounts
from tests.cli.conftest import Localmed
from tests.fakes import HashedWords, opened


def test_a_token_is_made_listed_and_revoked(copied: Localmed) -> None:
    with opened(Settings(copied.data), HashedWords()) as session:
        accounts.create(session, Account("nurse", SessionRole.READER), "a long password of a ward")
    token = copied.ok("tokens", "make", "nurse", "--name", "report").out.strip()
    listed = copied.ok("tokens", "list").out
    id_, user, name, _ = listed.split()
    assert (user, name) == ("nurse", "report")
    assert token not in listed
    copied.ok("tokens", "revoke", id_)
    assert copied.ok("tokens", "list").out == ""
    assert copied("tokens", "make", "nobody").code == UnknownName.exit_code
