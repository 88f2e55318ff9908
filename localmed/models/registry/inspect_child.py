"""The child process that reads the header of one model file.

``python -m localmed.models.registry.inspect_child FILE PARENT`` prints one line of JSON: ``["header", {...}]`` or
``["error", {...}]``. See ``inspecting.py`` for the parent's side and the limits' reasons.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from localmed import confined, errors
from localmed.errors import InputError, LimitExceeded
from localmed.models.registry import gguf, safetensors_header
from localmed.models.registry.header import Header

MEMORY_BYTES = 512 * 2**20  # address space; a vocabulary of 262,144 takes 60 MiB in all
CPU_SECONDS = 30  # such a header takes about one
READERS = {".gguf": gguf.read, ".safetensors": safetensors_header.read}


def main() -> None:
    """Answer for one file."""
    _, replies = confined.take_streams()
    confined.die_with_parent(int(sys.argv[2]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides what ends
    confined.limit(MEMORY_BYTES, CPU_SECONDS)
    replies.write(json.dumps(answer(Path(sys.argv[1]))).encode("ascii") + b"\n")
    replies.flush()
    os._exit(0)


def answer(path: Path) -> list[Any]:
    """The reply on ``path``."""
    try:
        return ["header", dataclasses.asdict(read(path))]
    except InputError as error:
        refused = error
    except MemoryError:
        refused = LimitExceeded("model.header_memory", most=MEMORY_BYTES // 2**20)
    except OSError as error:
        refused = InputError("model.unreadable", name=path.name, kind=type(error).__name__)
    return ["error", errors.as_json(refused)]


def read(path: Path) -> Header:
    """The header of ``path``, by the end of its name; raise ``InputError`` if it cannot be a model."""
    with path.open("rb") as stream:
        return READERS[path.suffix.lower()](stream, os.fstat(stream.fileno()).st_size)


if __name__ == "__main__":
    main()
