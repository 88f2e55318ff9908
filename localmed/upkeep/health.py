"""Whether a site is ready to serve pages, and whether it can answer; by codes that hold nothing of anybody."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import TYPE_CHECKING

from localmed.domain.errors import LocalmedError
from localmed.library.state import rows
from localmed.site import stops

if TYPE_CHECKING:
    from localmed.site.site import Site


def not_ready(site: Site) -> Iterator[str]:
    """What keeps the pages from working: ``state`` (accounts, logins, the journal)."""
    try:
        with rows(site.data) as state:
            state.execute("BEGIN IMMEDIATE")
            state.execute("ROLLBACK")
    except (LocalmedError, OSError, sqlite3.Error):
        yield "state"


def not_answering(site: Site) -> Iterator[str]:
    """What keeps a question from being answered: ``library``, ``models`` (a model host that hangs), ``stopped``."""
    try:
        with site.workspace():
            pass
    except (LocalmedError, OSError):
        yield "library"
    try:
        site.host_status()
    except (LocalmedError, OSError):
        yield "models"
    if "ask" in stops.stopped(site.data, stops.WORKFLOW):
        yield "stopped"
