"""Checkpoints that an interruption left half are removed; one that cannot be loaded is set aside for the one before."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localmed.domain.errors import ModelError
from localmed.lab import learning

FILES = ("adapter_model.safetensors", "optimizer.pt", "rng_state.pth", "trainer_state.json", "ref/adapter_config.json")


def written(folder: Path, step: int, sealed: bool = True) -> Path:
    """A checkpoint as a trainer writes it."""
    checkpoint = folder / f"checkpoint-{step}"
    for name in FILES:
        (checkpoint / name).parent.mkdir(parents=True, exist_ok=True)
        (checkpoint / name).write_text(f"{name} after step {step}")
    if sealed:
        learning.seal(checkpoint)
    return checkpoint


HALVES: dict[str, Callable[[Path], object]] = {
    "killed before the seal": lambda half: (half / learning.SEAL).unlink(),
    "killed while the seal was written": lambda half: (half / learning.SEAL).write_text('{"optimizer.pt": "ab'),
    "a seal of another kind": lambda half: (half / learning.SEAL).write_text("[1]"),
    "a seal of nothing": lambda half: (half / learning.SEAL).write_text("{}"),
    "a file cut off by a power cut": lambda half: (half / "optimizer.pt").write_text("optimizer.pt"),
    "an empty file": lambda half: (half / "trainer_state.json").write_text(""),
    "half deleted": lambda half: (half / "rng_state.pth").unlink(),
    "half deleted in a folder inside": lambda half: (half / "ref" / "adapter_config.json").unlink(),
    "no number": lambda half: half.rename(half.with_name("checkpoint-best")),
}


@pytest.mark.parametrize("half", HALVES)
def test_what_is_not_whole_is_removed(tmp_path: Path, half: str) -> None:
    before = written(tmp_path, 5)
    HALVES[half](written(tmp_path, 10))
    assert learning.last(tmp_path) == before
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == [before.name]


def test_the_newest_is_by_step_and_a_file_is_none(tmp_path: Path) -> None:
    written(tmp_path, 9)
    newest = written(tmp_path, 10)
    (tmp_path / "checkpoint-11").write_text("")
    assert learning.last(tmp_path) == newest
    assert learning.last(tmp_path / "none") is None


def test_sealing_removes_the_oldest_and_leaves_what_is_being_written(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        written(tmp_path, step)
    written(tmp_path, 4, sealed=False)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"checkpoint-2", "checkpoint-3", "checkpoint-4"}
    (tmp_path / "checkpoint-3" / learning.SEAL).unlink()  # as a kill leaves one that is being removed
    assert learning.last(tmp_path) == tmp_path / "checkpoint-2"


class Trainer:
    """Trains unless ``bad`` says how the checkpoint of a step ends it: at loading, or at a later step."""

    def __init__(self, bad: dict[int | None, str], starts: list[int | None]) -> None:
        self.bad, self.starts, self.has_stepped = bad, starts, False

    def train(self, resume_from_checkpoint: str | None) -> None:
        step = learning.step_of(Path(resume_from_checkpoint)) if resume_from_checkpoint else None
        self.starts.append(step)
        self.has_stepped = self.bad.get(step) != "loading"
        if step in self.bad:
            raise RuntimeError("PytorchStreamReader failed reading zip archive")


@pytest.mark.parametrize(
    ("bad", "starts"),
    [
        ({}, [10]),
        ({10: "loading"}, [10, 5]),
        ({10: "loading", 5: "loading"}, [10, 5, None]),
    ],
)
def test_one_that_cannot_be_loaded_is_set_aside(tmp_path: Path, bad: Any, starts: list[int | None]) -> None:
    kept = [written(tmp_path, step) for step in (5, 10)]
    tries: list[int | None] = []
    learning._trained(lambda: Trainer(bad, tries), tmp_path)
    assert tries == starts
    assert [learning.step_of(path) in bad for path in kept] == [not path.exists() for path in kept]
    assert len(list(tmp_path.glob("unloadable-checkpoint-*"))) == len(bad)


def test_an_error_of_a_later_step_costs_no_checkpoint(tmp_path: Path) -> None:
    newest = written(tmp_path, 10)
    with pytest.raises(RuntimeError):
        learning._trained(lambda: Trainer({10: "a later step"}, []), tmp_path)
    assert newest.is_dir()


def test_what_libraries_raise_ends_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the trainer cannot be made: what trl raises where it cannot be imported is a RuntimeError."""

    def failing(*_: object) -> Any:
        raise RuntimeError("Failed to import trl.trainer.dpo_trainer because of the following error")

    monkeypatch.setattr(learning, "_trainer", failing)
    base = learning.Base("tiny", tmp_path / "tiny.gguf", "0" * 64)
    with pytest.raises(ModelError) as raised:
        learning._stage(base, learning.Recipe(), [], {"stage": "dpo"}, tmp_path / "dpo", None, lambda *_: None)
    assert raised.value.message.code == "training.failed"
    assert dict(raised.value.message.parameters) == {"stage": "dpo", "error": "RuntimeError"}
    assert json.loads((tmp_path / "dpo" / "made.json").read_text()) == {"stage": "dpo"}
