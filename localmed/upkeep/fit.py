"""Which models fit this machine, at which context: weights, cache of keys and values, working memory.

For each token the cache takes layers x key-value heads x their width x 2 x 2 bytes (grouped-query attention, half
precision). Working memory (logits, activations, buffers of llama.cpp and CUDA) is a share of the weights and a fixed
part. These are estimates: from the manifest of a model that is not added yet, else from its files and header. Current
use by others is ignored.

The hardware is read from the system and ``nvidia-smi``; no model library is loaded. Memory is this process's limit (a
container's counts). If ``nvidia-smi`` does not answer in ``SMI_SECONDS``, the machine counts as one without a
GPU, and the reason is kept.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from localmed.domain import Message, message
from localmed.library import layout
from localmed.process import files
from localmed.site import alerts

if TYPE_CHECKING:
    from localmed.config import Settings
    from localmed.models.registry.registry import Candidate

CONTEXTS = (4096, 8192, 32768)  # tokens: a short answer, a question with twenty passages, whole documents
WORKING_SHARE = 0.05  # of the weights
WORKING_BYTES = 512 * 2**20
GPU_RESERVE = 1 * 2**30  # bytes left for the display, the CUDA context and the encoder's batches
RAM_RESERVE = 3 * 2**30  # bytes left for the system, the library's indexes and this program


class Place(StrEnum):
    """Where a model fits."""

    GPU = "gpu"
    CPU = "cpu"
    NOWHERE = "nowhere"
    UNKNOWN = "unknown"
    LONGER = "longer"  # the model reads less than this context


@dataclass(frozen=True, slots=True)
class Need:
    """The bytes of a model with ``context`` tokens (0: no cache), and where they fit."""

    context: int
    bytes: int
    place: Place


@dataclass(frozen=True, slots=True)
class Fit:
    """A model on this machine. ``exact``: from its own files, else estimated from the manifest."""

    name: str
    role: str
    registered: bool
    exact: bool
    needs: tuple[Need, ...]

    @property
    def best(self) -> Place:
        """Where it fits with the least context."""
        return self.needs[0].place


def fits(candidates: Iterable[Candidate], machine: Machine) -> list[Fit]:
    """Return the needs of each model at each of ``CONTEXTS``, and where they fit."""
    return [
        Fit(candidate.name, candidate.role, candidate.registered, candidate.footprint.exact, _needs(candidate, machine))
        for candidate in candidates
    ]


def _needs(candidate: Candidate, machine: Machine) -> tuple[Need, ...]:
    footprint = candidate.footprint
    if not footprint.weights:
        return (Need(0, 0, Place.UNKNOWN),)
    fixed = footprint.weights + int(footprint.weights * WORKING_SHARE) + WORKING_BYTES
    if not footprint.bytes_a_token:
        return (Need(0, fixed, place(fixed, machine)),)
    needs = []
    for context in CONTEXTS:
        needed = fixed + context * footprint.bytes_a_token
        longer = 0 < footprint.context < context
        needs.append(Need(context, needed, Place.LONGER if longer else place(needed, machine)))
    return tuple(needs)


def place(needed: int, machine: Machine) -> Place:
    """Return where ``needed`` bytes fit: the largest GPU, else memory."""
    if needed <= machine.largest_gpu - GPU_RESERVE:
        return Place.GPU
    return Place.CPU if needed <= machine.memory - RAM_RESERVE else Place.NOWHERE


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


def inspect_machine(smi: Sequence[str] = SMI, cgroups: Iterable[Path] = CGROUPS) -> Machine:
    """Return this machine's current state."""
    virtual = psutil.virtual_memory()
    limits = [virtual.total]
    for path in cgroups:
        with suppress(OSError, ValueError):  # no limit, or "max"
            limits.append(int(path.read_text("ascii")))
    memory = min(limits)
    gpus, why = _gpus(smi)
    processors = len(os.sched_getaffinity(0))
    return Machine(memory, min(virtual.available, memory), processors, gpus, why)


def _gpus(smi: Sequence[str]) -> tuple[tuple[Gpu, ...], Message | None]:
    try:
        done = subprocess.run(smi, capture_output=True, text=True, timeout=SMI_SECONDS, check=False)
    except FileNotFoundError:
        return (), message("doctor.no_smi")
    except (OSError, subprocess.TimeoutExpired) as error:
        return (), message("doctor.smi_silent", kind=type(error).__name__)
    if done.returncode:
        return (), message("doctor.smi_failed", code=done.returncode)
    try:
        rows = [map(str.strip, line.rsplit(",", 3)) for line in done.stdout.splitlines() if line.strip()]
        gpus = tuple(Gpu(name, driver, int(memory) * MIB, int(free) * MIB) for name, driver, memory, free in rows)
    except ValueError:
        return (), message("doctor.smi_unread")
    return gpus, None if gpus else message("doctor.no_gpu_named")


def watch(settings: Settings, machine: Machine) -> None:
    """Compare the GPUs of ``machine`` with the recorded number (``<data>/gpus.json``).

    With fewer GPUs answers become slow or fail: the alert ``gpu`` is raised until they are back.
    """
    known, now = 0, len(machine.gpus)
    with suppress(OSError, ValueError):
        recorded = json.loads(files.own_bytes(settings.data / layout.GPUS))
        known = recorded if isinstance(recorded, int) else 0
    if now < known:
        why = machine.no_gpu or message("doctor.no_gpu_named")
        file = str(settings.data / layout.GPUS)
        alerts.tell(settings, "gpu", message("alert.gpu", count=known - now, known=known, why=why, file=file))
        return
    alerts.clear(settings.data, "gpu")
    if now > known:
        with suppress(OSError):  # a full disk is reported elsewhere
            files.replace(settings.data / layout.GPUS, json.dumps(now).encode())


def size(count: float) -> str:
    """Format a number of bytes."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
