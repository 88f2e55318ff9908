"""``localmed doctor``: everything that can be looked at without loading a model, one line each.

Each check is a function from the site to lines; one that fails becomes a line itself, so that a broken part never
hides the others. Works without a library. Nothing is changed, and no line holds a question, a record or document text.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from localmed.config import Settings
from localmed.errors import LocalmedError
from localmed.library.access import groups_of
from localmed.operations import doctor_library, doctor_machine, fit
from localmed.operations.check import Check, Level, Site, failed, problem

if TYPE_CHECKING:
    from localmed.models.host.server import Status as HostStatus
    from localmed.models.registry.registry import Registry

PROBLEMS_EXIT_CODE = 5  # of ``localmed doctor`` if there is a problem: something stored or installed cannot be used

CHECKS: tuple[Callable[[Site], Iterator[Check]], ...] = (
    doctor_machine.python,
    doctor_machine.offline,
    doctor_machine.settings_gone,
    doctor_machine.memory,
    doctor_machine.gpu,
    doctor_machine.scans,
    doctor_machine.isolation,
    doctor_machine.clock,
    doctor_machine.sign_in,
    doctor_machine.models_chosen,
    doctor_machine.encoder_kept,
    doctor_machine.models_whole,
    doctor_machine.models_fit,
    doctor_machine.model_host,
    doctor_library.rights,
    doctor_library.data_folder,
    doctor_library.space,
    doctor_library.library,
    doctor_library.beside,
    doctor_library.whole_check,
    doctor_library.writer,
    doctor_library.withdrawals,
    doctor_library.access,
    doctor_library.audit,
    doctor_library.state,
    doctor_library.quarantine,
    doctor_library.governance,
)
OF_EVERY_COLLECTION = (  # counts and sizes, hidden collections' as well
    doctor_library.space,
    doctor_library.withdrawals,
    doctor_library.access,
    doctor_library.audit,
    doctor_library.quarantine,
    doctor_library.governance,
)


def checks_for(settings: Settings) -> tuple[Callable[[Site], Iterator[Check]], ...]:
    """The checks that whoever runs this may see."""
    whole = groups_of(settings.reader.groups, settings.data) is None
    return tuple(check for check in CHECKS if whole or check not in OF_EVERY_COLLECTION)


def site_of(
    settings: Settings,
    registry: Registry,
    full: bool,
    progress: Callable[[float, str], None],
    host: Callable[[], HostStatus | None] = lambda: None,
) -> Site:
    """This machine and its data folder, now."""
    now = datetime.now().astimezone()
    return Site(settings, registry, fit.look(), dict(os.environ), now, full, progress, host)


def examine(site: Site, checks: Iterable[Callable[[Site], Iterator[Check]]] = CHECKS) -> Iterator[Check]:
    """The lines of all ``checks``, in order, as they are found."""
    for check in checks:
        try:
            yield from check(site)
        except LocalmedError as error:
            yield failed(_name(check), error)
        except (OSError, sqlite3.Error, ValueError, TypeError) as error:
            yield problem(_name(check), "doctor.unseen", kind=type(error).__name__)


def faults_stored(checks: Iterable[Check]) -> int:
    """How many of ``checks`` found something wrong with what is stored."""
    return sum(check.name in ("library", "beside") and check.level is not Level.OK for check in checks)


def worst(checks: Iterable[Check]) -> Level:
    """The most serious level among ``checks``."""
    levels = {check.level for check in checks}
    return next((level for level in (Level.PROBLEM, Level.WARNING) if level in levels), Level.OK)


def _name(check: Callable[[Site], Iterator[Check]]) -> str:
    return check.__name__.replace("_", " ")
