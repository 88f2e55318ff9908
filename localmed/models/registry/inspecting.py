"""Looking into a model file: a child process reads its header, limited in memory and time.

A hostile header can at worst end its child: this module, run as ``... FILE PARENT``, which prints one line of JSON,
``["header", {...}]`` or ``["error", {...}]``. What it sends is checked before it is believed.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from localmed.domain import errors, message
from localmed.domain.errors import InputError, LimitExceeded, reason
from localmed.models.registry import gguf, header
from localmed.models.registry.header import Header
from localmed.process import children, confined

SECONDS = 120.0  # wall clock; a large header takes one, on a slow disk some more
COMMAND = children.command("localmed.models.registry.inspecting")
_KINDS = {"int": int, "str": str}
MEMORY_BYTES = 512 * 2**20  # address space; a vocabulary of 262,144 takes 60 MiB in all
CPU_SECONDS = 30  # such a header takes about one
INSPECTED = {".gguf": gguf.read, ".safetensors": header.read}  # files with a header, by their names' ends
_ANSWER_BYTES = 2**20  # a header as it is sent has a few hundred


def inspect(path: Path, command: Sequence[str] = COMMAND, seconds: float = SECONDS) -> Header:
    """What the header of ``path`` says; raise ``InputError`` (``LimitExceeded``) if it cannot be a model."""
    try:
        answer = children.answer([*command, str(path.absolute())], b"", seconds, _ANSWER_BYTES)
        kind, *values = json.loads(answer)
        if kind == "header":
            return _header(*values)
        error = errors.from_json(values[0], InputError)
    except TimeoutError:
        error = LimitExceeded("model.header_slow", seconds=seconds)
    except children.Failed as failure:
        error = InputError("model.header_crash", how=failure.how)
    except (ValueError, TypeError, LookupError, RecursionError):
        error = InputError("model.header_crash", how=message("process.nonsense"))
    raise error.within(path.name)


def _header(values: dict[str, Any]) -> Header:
    """The child's header; raise ``TypeError`` where it is none."""
    header = Header(**values)
    for item in dataclasses.fields(header):
        if type(getattr(header, item.name)) is not _KINDS[str(item.type)]:
            raise TypeError
    return header


# --- in the child -----------------------------------------------------------------------------------------------------


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
        refused = InputError("file.unreadable", file=path.name, reason=reason(error))
    return ["error", errors.as_json(refused)]


def read(path: Path) -> Header:
    """The header of ``path``, by the end of its name; raise ``InputError`` if it cannot be a model."""
    with path.open("rb") as stream:
        return INSPECTED[path.suffix.lower()](stream, os.fstat(stream.fileno()).st_size)


if __name__ == "__main__":
    main()
