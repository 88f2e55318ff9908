"""What the machine has, and which models fit it. ``nvidia-smi`` is a script of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.domain import Message, message
from localmed.library import layout
from localmed.models.registry.manifests import Footprint
from localmed.models.registry.registry import Candidate
from localmed.site import alerts
from localmed.upkeep import fit
from localmed.upkeep.fit import Gpu, Machine, Place, fits, inspect_machine

GIB = 2**30


def smi(folder: Path, script: str) -> tuple[str, ...]:
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return (str(path),)


def test_two_gpus(tmp_path: Path) -> None:
    script = "echo 'NVIDIA A, rev 2, 550.54, 24576, 20000'; echo 'NVIDIA B, 550.54, 8192, 8000'"
    machine = inspect_machine(smi(tmp_path, script), ())
    assert machine.gpus == (
        Gpu("NVIDIA A, rev 2", "550.54", 24 * GIB, 20000 * 2**20),
        Gpu("NVIDIA B", "550.54", 8 * GIB, 8000 * 2**20),
    )
    assert machine.largest_gpu == 24 * GIB
    assert machine.no_gpu is None
    assert 0 < machine.available <= machine.memory
    assert machine.processors > 0


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        ("echo 'Failed to initialize NVML'; exit 9", message("doctor.smi_failed", code=9)),
        ("exec sleep 60", message("doctor.smi_silent", kind="TimeoutExpired")),
        ("echo 'A, 1, [N/A], [N/A]'", message("doctor.smi_unread")),
        ("echo nonsense", message("doctor.smi_unread")),
        ("true", message("doctor.no_gpu_named")),
    ],
)
def test_a_driver_that_does_not_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, fault: Message
) -> None:
    monkeypatch.setattr(fit, "SMI_SECONDS", 0.5)
    absent = inspect_machine(smi(tmp_path, script), ())
    assert not absent.gpus
    assert absent.no_gpu == fault


def test_no_driver_at_all(tmp_path: Path) -> None:
    assert inspect_machine((str(tmp_path / "none"),), ()).no_gpu == message("doctor.no_smi")
    (tmp_path / "text").write_text("x")
    assert inspect_machine((str(tmp_path / "text"),), ()).no_gpu == message("doctor.smi_silent", kind="PermissionError")


def test_a_containers_limit_counts(tmp_path: Path) -> None:
    limited, unlimited, none = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    limited.write_text("1073741824\n")
    unlimited.write_text("max\n")
    machine = inspect_machine((str(none),), (limited, unlimited, none))
    assert machine.memory == GIB
    assert machine.available <= GIB
    assert inspect_machine((str(none),), (unlimited, none)).memory > GIB


def candidate(weights: int, bytes_a_token: int = 0, context: int = 0) -> Candidate:
    return Candidate("m", "chat", False, Footprint(weights, bytes_a_token, context, exact=False))


def places(model: Candidate, gpu: int, memory: int) -> list[Place]:
    gpus = (Gpu("g", "1", gpu * GIB, gpu * GIB),) if gpu else ()
    [fit] = fits([model], Machine(memory * GIB, memory * GIB, 2, gpus))
    return [need.place for need in fit.needs]


def test_where_a_model_fits() -> None:
    # 8 GiB of weights need 8.9 with the working memory; each 4,096 tokens another half
    model = candidate(8 * GIB, GIB // 8192)
    assert places(model, 24, 64) == [Place.GPU, Place.GPU, Place.GPU]
    assert places(model, 11, 64) == [Place.GPU, Place.GPU, Place.CPU]
    assert places(model, 10, 64) == [Place.CPU, Place.CPU, Place.CPU]
    assert places(model, 0, 13) == [Place.CPU, Place.CPU, Place.NOWHERE]
    assert places(model, 0, 8) == [Place.NOWHERE] * 3


def test_the_numbers_by_hand() -> None:
    [model_fit] = fits([candidate(10 * GIB, 1000, 8192)], Machine(64 * GIB, 64 * GIB, 2))
    fixed = 10 * GIB + GIB // 2 + fit.WORKING_BYTES
    assert [(need.context, need.bytes) for need in model_fit.needs] == [
        (tokens, fixed + tokens * 1000) for tokens in fit.CONTEXTS
    ]
    assert [need.place for need in model_fit.needs] == [Place.CPU, Place.CPU, Place.LONGER]


def test_models_without_a_cache_or_a_size() -> None:
    assert places(candidate(GIB), 24, 64) == [Place.GPU]
    assert places(candidate(0), 24, 64) == [Place.UNKNOWN]


# --- a GPU that is lost -----------------------------------------------------------------------------------------------

CARD = "echo 'NVIDIA H100, 550.54, 81559, 80000'"


def lost_gpus(settings: Settings) -> list[dict[str, object]]:
    return [dict(one.text.parameters) for one in alerts.alerts(settings.data) if one.kind == "gpu"]


def test_a_lost_gpu_is_told_until_it_is_back(settings: Settings, tmp_path: Path) -> None:
    settings.data.mkdir(exist_ok=True)
    fit.watch(settings, inspect_machine(smi(tmp_path, "exit 9")))
    assert not lost_gpus(settings), "there never was one"
    fit.watch(settings, inspect_machine(smi(tmp_path, f"{CARD}; {CARD}")))
    fit.watch(settings, inspect_machine(smi(tmp_path, CARD)))
    assert [(one["count"], one["known"]) for one in lost_gpus(settings)] == [(1, 2)]
    fit.watch(settings, inspect_machine(smi(tmp_path, "exit 9")))  # the driver is gone
    assert [(one["count"], one["known"]) for one in lost_gpus(settings)] == [(2, 2)]
    fit.watch(settings, inspect_machine(smi(tmp_path, f"{CARD}; {CARD}")))
    assert not lost_gpus(settings)
    fit.watch(settings, inspect_machine(smi(tmp_path, CARD)))
    (settings.data / layout.GPUS).unlink()  # on purpose
    fit.watch(settings, inspect_machine(smi(tmp_path, CARD)))
    assert not lost_gpus(settings)
