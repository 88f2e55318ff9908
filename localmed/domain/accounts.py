"""Accounts of a site, their roles, and the rights of a role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Right(StrEnum):
    """A permission; pages and changes name the one that they need."""

    ASK = "ask"  # and search, and see one's history
    LIBRARY = "library"  # change the library and who may read it
    SAFETY = "safety"  # read the audit log and reports, stop a workflow, model or collection
    MODELS = "models"  # choose the models, see the machine
    ACCOUNTS = "accounts"  # make accounts, give roles and groups


class SessionRole(StrEnum):
    """The role of an account: a set of rights (``RIGHTS``)."""

    READER = "reader"
    LIBRARIAN = "librarian"
    SAFETY = "safety"  # the clinical safety officer
    ADMIN = "admin"


RIGHTS: Mapping[SessionRole, frozenset[Right]] = {
    SessionRole.READER: frozenset({Right.ASK}),
    SessionRole.LIBRARIAN: frozenset({Right.ASK, Right.LIBRARY}),
    SessionRole.SAFETY: frozenset({Right.ASK, Right.SAFETY}),
    SessionRole.ADMIN: frozenset(Right),  # they can assign themselves any role; their actions are audited
}
# The right for a change, by the first word of its name in the audit log; all others change the library.
NEEDS: Mapping[str, Right] = {
    "model": Right.MODELS,
    "setting": Right.MODELS,
    "account": Right.ACCOUNTS,
    "safety": Right.SAFETY,
    "trust": Right.ACCOUNTS,  # whose packs are imported
}
# A right that is enough besides: a safety officer takes a document out of use without waiting for a librarian.
ENOUGH: Mapping[str, Right] = {"withdraw": Right.SAFETY, "reinstate": Right.SAFETY}


@dataclass(frozen=True, slots=True)
class Account:
    """An account. ``groups`` are those whose collections a reader may read; other roles read all.

    ``source`` checks the password: ``local`` (by its hash), or a directory.
    """

    user: str
    role: SessionRole = SessionRole.READER
    groups: tuple[str, ...] = ()
    source: str = "local"
    disabled: bool = False

    @property
    def reads_all(self) -> bool:
        """Whether the account may read every collection."""
        return self.role is not SessionRole.READER


def rights_of(role: str, groups: Sequence[str], disabled: bool) -> str:
    """The rights of an account as the journal records them."""
    return f"{role}{' disabled' if disabled else ''}: {' '.join(groups)}"
