"""What a machine must have before anything is installed; each fault with what to do. Nothing is changed."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from signatures import Refused

TIMES = 4.0  # what is installed takes of the bundle's size: its copy, and the wheels unpacked
MEMORY_GIB = 4
SKEW_SECONDS = 86_400  # by which clocks of two machines may differ


def examine(bundle: Mapping[str, Any], size: int, place: Path) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Level (ok, warning, problem), code and parameters of each thing looked at."""
    yield _python(bundle)
    yield _machine(bundle)
    yield _clock(bundle)
    yield _disk(size, place)
    yield _memory()
    yield _gpu(bundle)
    if shutil.which("unshare") is None or not namespace():
        yield "problem", "no_namespace", {}
    else:
        yield "ok", "namespace", {}


def checked(findings: list[tuple[str, str, dict[str, object]]]) -> None:
    """Raise ``Refused`` for the first problem."""
    for level, code, parameters in findings:
        if level == "problem":
            raise Refused(code, **parameters)


def namespace() -> list[str]:
    """How a command is run in an empty network namespace; nothing where the kernel lets us not."""
    for command in (["unshare", "-n", "--"], ["unshare", "-rn", "--"]):
        try:
            if subprocess.run([*command, "true"], capture_output=True, timeout=30, check=False).returncode == 0:
                return command
        except (OSError, subprocess.TimeoutExpired):
            continue
    return []


def _python(bundle: Mapping[str, Any]) -> tuple[str, str, dict[str, object]]:
    found_version = f"{sys.version_info.major}.{sys.version_info.minor}"
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        return "problem", "no_venv", {"version": found_version}
    if found_version != bundle["python"]:
        return "problem", "python", {"version": found_version, "needed": bundle["python"]}
    return "ok", "python_ok", {"version": found_version}


def _machine(bundle: Mapping[str, Any]) -> tuple[str, str, dict[str, object]]:
    if platform.machine() != bundle["machine"]:
        return "problem", "machine", {"machine": platform.machine(), "needed": bundle["machine"]}
    return "ok", "machine_ok", {"machine": platform.machine()}


def _clock(bundle: Mapping[str, Any]) -> tuple[str, str, dict[str, object]]:
    created = datetime.fromisoformat(bundle["created"])
    if (created - datetime.now(UTC)).total_seconds() > SKEW_SECONDS:
        return "problem", "clock", {"day": created.date().isoformat()}
    return "ok", "clock_ok", {"day": datetime.now(UTC).date().isoformat()}


def _disk(size: int, place: Path) -> tuple[str, str, dict[str, object]]:
    existing = next(path for path in (place, *place.parents) if path.exists())
    free, needed = shutil.disk_usage(existing).free, int(size * TIMES)
    level, code = ("problem", "disk") if free < needed else ("ok", "disk_ok")
    return level, code, {"free": free // 2**20, "needed": needed // 2**20, "folder": str(existing)}


def _memory() -> tuple[str, str, dict[str, object]]:
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    level, code = ("warning", "memory") if gib < MEMORY_GIB else ("ok", "memory_ok")
    return level, code, {"gib": round(gib, 1), "needed": MEMORY_GIB}


def _gpu(bundle: Mapping[str, Any]) -> tuple[str, str, dict[str, object]]:
    driver = Path("/proc/driver/nvidia/version")
    if driver.exists():
        words = driver.read_text("utf-8", "replace").split()
        version = next((word for word in words if word[:1].isdigit() and "." in word), "?")
        return "ok", "gpu_ok", {"version": version}
    level = "warning" if "workstation" in bundle["extras"] or "llama" in bundle["extras"] else "ok"
    return level, "no_gpu", {}
