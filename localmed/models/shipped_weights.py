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

from localmed.errors import ModelError
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
        raise ModelError(f"the model {name} cannot be read ({error.strerror})", AGAIN) from None
    if len(content) != spec.bytes or hashlib.sha256(content).hexdigest() != spec.sha256:
        raise ModelError(f"the model {name} is not loaded: {spec.name} is not the file of its manifest", AGAIN)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            return {each: stored[each] for each in stored.files}
    except (ValueError, OSError, zipfile.BadZipFile):
        raise ModelError(f"the model {name} cannot be read: {spec.name} holds no arrays", AGAIN) from None
