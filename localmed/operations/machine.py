"""What this machine has: memory, processors, GPUs. Asks the system and ``nvidia-smi``; loads no model library.

Rules: memory is what this process may use, so a container's limit counts; ``nvidia-smi`` has ``SMI_SECONDS`` to
answer, and where it does not, the machine counts as one without a GPU and says why.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from localmed.domain import Message, message

SMI = ("nvidia-smi", "--query-gpu=name,driver_version,memory.total,memory.free", "--format=csv,noheader,nounits")
SMI_SECONDS = 15.0  # on a busy machine it takes two; with a broken driver it never answers
CGROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))  # version 2, 1
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU; memory in bytes."""

    name: str
    driver: str
    memory: int
    free: int


@dataclass(frozen=True, slots=True)
class Machine:
    """Memory in bytes; ``no_gpu`` says why ``gpus`` is empty."""

    memory: int
    available: int
    processors: int
    gpus: tuple[Gpu, ...] = ()
    no_gpu: Message | None = None

    @property
    def largest_gpu(self) -> int:
        """The memory of the largest GPU, 0 without one: a model is never spread over several."""
        return max((gpu.memory for gpu in self.gpus), default=0)


def look(smi: Sequence[str] = SMI, cgroups: Iterable[Path] = CGROUPS) -> Machine:
    """This machine, now."""
    virtual = psutil.virtual_memory()
    memory = min([virtual.total, *_limits(cgroups)])
    gpus, why = _gpus(smi)
    processors = len(os.sched_getaffinity(0))
    return Machine(memory, min(virtual.available, memory), processors, gpus, why)


def _limits(cgroups: Iterable[Path]) -> list[int]:
    """The memory limits of the container, if there are any."""
    limits = []
    for path in cgroups:
        with suppress(OSError, ValueError):  # there is none, or it says "max"
            limits.append(int(path.read_text("ascii")))
    return limits


def _gpus(smi: Sequence[str]) -> tuple[tuple[Gpu, ...], Message | None]:
    """The GPUs, or why there are none."""
    try:
        done = subprocess.run(smi, capture_output=True, text=True, timeout=SMI_SECONDS, check=False)
    except FileNotFoundError:
        return (), message("doctor.no_smi")
    except (OSError, subprocess.TimeoutExpired) as error:
        return (), message("doctor.smi_silent", kind=type(error).__name__)
    if done.returncode:
        return (), message("doctor.smi_failed", code=done.returncode)
    try:
        gpus = tuple(_gpu(line) for line in done.stdout.splitlines() if line.strip())
    except ValueError:
        return (), message("doctor.smi_unread")
    return gpus, None if gpus else message("doctor.no_gpu_named")


def _gpu(line: str) -> Gpu:
    name, driver, memory, free = (cell.strip() for cell in line.rsplit(",", 3))
    return Gpu(name, driver, int(memory) * MIB, int(free) * MIB)
