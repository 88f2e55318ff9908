"""A GPU that is lost: the driver fails, a card falls off the bus, and answers become slow or fail without a reason.

How many there were is kept (``<data>/gpus.json``); where fewer answer, the alert ``gpu`` stands until they are back.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from localmed.config import Settings
from localmed.domain import message
from localmed.library import layout
from localmed.process import files
from localmed.site import alerts

if TYPE_CHECKING:
    from localmed.upkeep.fit import Machine

FILE = layout.GPUS


def watch(settings: Settings, machine: Machine) -> None:
    """Compare the GPUs of ``machine``, looked at just now, with how many there were."""
    known, now = _known(settings.data), len(machine.gpus)
    if now < known:
        why = machine.no_gpu or message("doctor.no_gpu_named")
        file = str(settings.data / FILE)
        alerts.tell(settings, "gpu", message("alert.gpu", count=known - now, known=known, why=why, file=file))
        return
    alerts.clear(settings.data, "gpu")
    if now > known:
        with suppress(OSError):  # of a full disk: it is told elsewhere
            files.replace(settings.data / FILE, json.dumps(now).encode())


def _known(data: Path) -> int:
    with suppress(OSError, ValueError):
        known = json.loads(files.own_bytes(data / FILE))
        return known if isinstance(known, int) else 0
    return 0
