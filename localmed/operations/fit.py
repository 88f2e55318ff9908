"""Which models fit this machine, with how much context: weights, cache of keys and values, working memory.

The cache takes layers x heads of keys and values x their width x 2 x 2 bytes for each token (grouped-query attention,
half precision). Working memory is the logits, activations and buffers of llama.cpp and CUDA, taken as a share of the
weights and a fixed part. All of it is an estimate: of a model that is not added yet from its manifest, of a registered
one from its own files and header. Memory that others use at the moment is not counted: what is free changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from localmed.operations.machine import Machine

if TYPE_CHECKING:
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
