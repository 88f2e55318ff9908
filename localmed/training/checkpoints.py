"""The checkpoints of a training stage: one counts only where a seal, written last, names its files by their hashes.

Trainers write a checkpoint's files in place one after the other, and delete old ones file by file, so that a kill or a
power cut leaves folders that look like checkpoints and are none. What has no seal, or other bytes than it says, is
removed when the stage goes on.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from localmed import files
from localmed.library.intact import sha256_of

KEPT = 2  # sealed ones: the newest, and the one before in case it cannot be loaded
SEAL = "seal.json"
_NAME = re.compile(r"checkpoint-(\d+)")
_ASIDE = "unloadable-"


def step_of(checkpoint: Path) -> int:
    """The step that a checkpoint was written after, by its name; -1 for another name."""
    match = _NAME.fullmatch(checkpoint.name)
    return int(match[1]) if match else -1


def seal(checkpoint: Path) -> None:
    """Say that a checkpoint is whole, and remove the oldest sealed ones beside it."""
    paths = sorted(path for path in checkpoint.iterdir() if path.name != SEAL)
    hashes = {path.relative_to(checkpoint).as_posix(): sha256_of(path) for path in _files(paths)}
    files.replace(checkpoint / SEAL, json.dumps(hashes).encode())
    older = [path for path in _newest_first(checkpoint.parent) if (path / SEAL).exists()]
    for path in older[KEPT:]:
        _remove(path)


def last(folder: Path) -> Path | None:
    """The newest whole checkpoint of a stage; those that are not whole are removed."""
    whole = []
    for checkpoint in _newest_first(folder):
        if _whole(checkpoint):
            whole.append(checkpoint)
        else:
            _remove(checkpoint)
    return whole[0] if whole else None


def set_aside(checkpoint: Path) -> None:
    """Keep one that is whole and yet cannot be loaded out of the way."""
    target = checkpoint.with_name(_ASIDE + checkpoint.name)
    shutil.rmtree(target, ignore_errors=True)
    checkpoint.replace(target)


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("checkpoint-*"), key=step_of, reverse=True)


def _files(paths: list[Path]) -> Iterator[Path]:
    """The files of a checkpoint: adapters beside the trained one have folders of their own."""
    for path in paths:
        yield from _files(sorted(path.iterdir())) if path.is_dir() else (path,)


def _whole(checkpoint: Path) -> bool:
    try:
        hashes: dict[str, str] = json.loads((checkpoint / SEAL).read_text("utf-8"))
        same = all(value and sha256_of(checkpoint / name) == value for name, value in hashes.items())
        return bool(hashes) and step_of(checkpoint) >= 0 and same
    except (OSError, ValueError, AttributeError, TypeError):
        return False


def _remove(checkpoint: Path) -> None:
    """Remove the seal first: what is left of the others then counts for nothing."""
    if not checkpoint.is_dir() or checkpoint.is_symlink():
        checkpoint.unlink()
        return
    (checkpoint / SEAL).unlink(missing_ok=True)
    shutil.rmtree(checkpoint)
