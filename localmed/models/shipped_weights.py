"""Weights that the project trained itself and ships beside their manifest; nothing is read whose sha256 differs.

A manifest in ``models/`` names one ``.npz`` of plain arrays (no pickles) with its size and hash. The file is hashed at
every load: it has a few kilobytes.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from localmed.errors import ModelError, reason
from localmed.models.registry.manifests import FOLDER, load

MOST_BYTES = 2**20  # what ships is small: more is another file
AGAIN = "Install localmed again"


def arrays(name: str, folder: Path = FOLDER) -> Mapping[str, npt.NDArray[Any]]:
    """The arrays of the shipped model ``name``; raise ``ModelError`` if its file is missing or not the listed one."""
    spec = load(folder / f"{name}.toml").files[0]
    try:
        with (folder / spec.name).open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise ModelError("model.shipped_unreadable", name=name, reason=reason(error)) from None
    if len(content) != spec.bytes or hashlib.sha256(content).hexdigest() != spec.sha256:
        raise ModelError("model.shipped_changed", name=name, file=spec.name)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            return {each: stored[each] for each in stored.files}
    except (ValueError, OSError, zipfile.BadZipFile):
        raise ModelError("model.shipped_empty", name=name, file=spec.name) from None
