"""A GPU that is lost is told until it is back; a machine that never had one tells nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

from localmed.config import Settings
from localmed.library import layout
from localmed.site import alerts
from localmed.upkeep import fit

CARD = "NVIDIA H100, 550.54, 81559, 80000"


def machine(tmp_path: Path, *lines: str, code: int = 0) -> fit.Machine:
    """What this machine would say with an nvidia-smi that prints ``lines``."""
    smi = tmp_path / "nvidia-smi"
    smi.write_text(f"#!{shutil.which('sh')}\n" + "".join(f"echo '{line}'\n" for line in lines) + f"exit {code}\n")
    smi.chmod(0o755)
    return fit.look([str(smi)])


def lost_gpus(settings: Settings) -> list[dict[str, object]]:
    return [dict(one.text.parameters) for one in alerts.alerts(settings.data) if one.kind == "gpu"]


def test_a_lost_gpu_is_told_until_it_is_back(settings: Settings, tmp_path: Path) -> None:
    settings.data.mkdir(exist_ok=True)
    fit.watch(settings, machine(tmp_path, code=9))
    assert not lost_gpus(settings), "there never was one"
    fit.watch(settings, machine(tmp_path, CARD, CARD))
    fit.watch(settings, machine(tmp_path, CARD))
    assert [(one["count"], one["known"]) for one in lost_gpus(settings)] == [(1, 2)]
    fit.watch(settings, machine(tmp_path, code=9))  # the driver is gone
    assert [(one["count"], one["known"]) for one in lost_gpus(settings)] == [(2, 2)]
    fit.watch(settings, machine(tmp_path, CARD, CARD))
    assert not lost_gpus(settings)
    fit.watch(settings, machine(tmp_path, CARD))
    (settings.data / layout.GPUS).unlink()  # on purpose
    fit.watch(settings, machine(tmp_path, CARD))
    assert not lost_gpus(settings)
