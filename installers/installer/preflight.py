"""What a machine must have before anything is copied; each fault with what to do. Nothing is changed."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from localmed.upkeep.verifier import Refused

TIMES = 4.0  # what is installed takes of the bundle's size: its copy, and the wheels unpacked
MEMORY_GIB = 4


def examine(bundle: Mapping[str, Any], size: int, place: Path, tell: Callable[..., None]) -> None:
    """Tell what could be better, and everything that is missing; raise ``Refused`` if anything is."""
    python, machine = f"{sys.version_info.major}.{sys.version_info.minor}", platform.machine()
    existing = next(path for path in (place, *place.parents) if path.exists())
    free, needed = shutil.disk_usage(existing).free, int(size * TIMES)
    gib = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    missing = []
    if not _environments():
        missing.append(Refused("no_venv", version=python))
    if python != bundle["python"]:
        missing.append(Refused("python", version=python, needed=bundle["python"]))
    if machine != bundle["machine"]:
        missing.append(Refused("machine", machine=machine, needed=bundle["machine"]))
    if free < needed:
        missing.append(Refused("disk", free=free // 2**20, needed=needed // 2**20, folder=str(existing)))
    if not namespace():
        missing.append(Refused("no_namespace"))
    for fault in missing[:-1]:
        tell(fault.code, level="problem", **fault.parameters)
    if missing:
        raise missing[-1]
    tell("fits", python=python, machine=machine, free=free // 2**20, folder=str(existing), gib=gib)
    if gib < MEMORY_GIB:
        tell("memory", level="warning", needed=MEMORY_GIB)
    if not Path("/proc/driver/nvidia/version").exists() and {"workstation", "llama"} & set(bundle["extras"]):
        tell("no_gpu", level="warning")


def _environments() -> bool:
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        return False
    return True


def namespace() -> list[str]:
    """How a command is run in an empty network namespace; nothing where the kernel lets us not."""
    for command in (["unshare", "-n", "--"], ["unshare", "-rn", "--"]):
        try:
            if subprocess.run([*command, "true"], capture_output=True, timeout=30, check=False).returncode == 0:
                return command
        except (OSError, subprocess.TimeoutExpired):
            continue
    return []
