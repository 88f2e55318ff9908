"""Which models fit this machine, with how much context: weights, cache of keys and values, working memory.

The cache takes layers x heads of keys and values x their width x 2 x 2 bytes for each token (grouped-query attention,
half precision). Working memory is the logits, activations and buffers of llama.cpp and CUDA, taken as a share of the
weights and a fixed part. All of it is an estimate: of a model that is not added yet from its manifest, of a registered
one from its own files and header. Memory that others use at the moment is not counted: what is free changes.

What the machine has is asked of the system and ``nvidia-smi``; no model library is loaded. Memory is what this process
may use, so a container's limit counts; ``nvidia-smi`` has ``SMI_SECONDS`` to answer, and where it does not, the machine
counts as one without a GPU and says why.
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
    """What a model takes with ``context`` tokens (0: it has no cache), in bytes, and where that fits."""

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
    """For each model what it needs at each of ``CONTEXTS``, and where it fits."""
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
    """Where ``needed`` bytes fit: in the largest GPU, else in memory."""
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
        rows = [map(str.strip, line.rsplit(",", 3)) for line in done.stdout.splitlines() if line.strip()]
        gpus = tuple(Gpu(name, driver, int(memory) * MIB, int(free) * MIB) for name, driver, memory, free in rows)
    except ValueError:
        return (), message("doctor.smi_unread")
    return gpus, None if gpus else message("doctor.no_gpu_named")


# --- a GPU that is lost: the driver fails, a card falls off the bus ---------------------------------------------------


def watch(settings: Settings, machine: Machine) -> None:
    """Compare the GPUs of ``machine``, looked at just now, with how many there were (``<data>/gpus.json``).

    Where fewer answer, answers become slow or fail: the alert ``gpu`` stands until they are back.
    """
    known, now = _known(settings.data), len(machine.gpus)
    if now < known:
        why = machine.no_gpu or message("doctor.no_gpu_named")
        file = str(settings.data / layout.GPUS)
        alerts.tell(settings, "gpu", message("alert.gpu", count=known - now, known=known, why=why, file=file))
        return
    alerts.clear(settings.data, "gpu")
    if now > known:
        with suppress(OSError):  # of a full disk: it is told elsewhere
            files.replace(settings.data / layout.GPUS, json.dumps(now).encode())


def _known(data: Path) -> int:
    with suppress(OSError, ValueError):
        known = json.loads(files.own_bytes(data / layout.GPUS))
        return known if isinstance(known, int) else 0
    return 0


def size(count: float) -> str:
    """Bytes for people."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
