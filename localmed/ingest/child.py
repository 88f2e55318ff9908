"""The child process that parses files: it may crash, hang or run out of memory without harm to anyone else.

Started by ``parsing.py`` as ``python -m localmed.ingest.child PARENT_PID``. It reads one JSON request a line on its
standard input and writes JSON messages, one a line, on its standard output::

    {"path", "reader", "fields", "options", "bounds"}  ->  ["record", ...]*  ["fault", where, reason]*  then one of
                                                           ["done"]  ["error", class, what, remedy]

Rules: the pipes are moved away from descriptors 0, 1 and 2 before any library loads, so that nothing a library prints
can corrupt the protocol; memory, processor time and core dumps are limited by the kernel; an error message holds the
kind and place of a failure, never text of the document; the child dies with the thread that started it (the kernel
ties ``PR_SET_PDEATHSIG`` to that thread) and, when idle, at the end of its input. Back-pressure is the pipe's.

Not covered: the child can read what its user can read. It bounds damage by accident and by exhaustion; the parent
takes only JSON from it, so a subverted parser can send wrong text, not code.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from localmed.config import ReadBounds
from localmed.errors import InputError, LimitExceeded
from localmed.ingest import readers
from localmed.ingest.parsed import Block, Fault, FieldMapping, Line, Reader, Record

PR_SET_PDEATHSIG = 1  # from <linux/prctl.h>

# The fields of a record in the order in which they travel; ``blocks`` are packed by ``_block``.
FIELDS = tuple(item.name for item in dataclasses.fields(Record))

Message = list[Any]


def main() -> None:
    """Answer requests until the parent closes its end."""
    requests, replies = _take_streams()
    _die_with_parent(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides what ends
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump would leave document text on the disk
    for line in requests:
        try:
            serve(json.loads(line), replies)
        except MemoryError:  # nothing can be trusted after this, and the parent starts another child
            break
        except BrokenPipeError:  # the parent has lost interest
            break
    os._exit(0)  # without the flush of a half-written reply


def serve(request: dict[str, Any], replies: BinaryIO) -> None:
    """Parse one file and write what comes of it."""
    bounds = ReadBounds(**request["bounds"])
    _limit(bounds)
    try:
        for item in parse(request, bounds):
            replies.write(packed(item))
        ending = ["done"]
    except MemoryError:
        replies.write(_encoded(_out_of_memory(request, bounds)))
        replies.flush()
        raise
    except InputError as error:
        ending = ["error", type(error).__name__, error.what, error.remedy]
    except RecursionError:
        ending = ["error", "LimitExceeded", f"{Path(request['path']).name}: nested too deeply", ""]
    except BrokenPipeError:
        raise
    except Exception as error:
        ending = ["error", "InputError", f"{Path(request['path']).name}: the reader failed ({_place(error)})", ""]
    replies.write(_encoded(ending))
    replies.flush()


def parse(request: dict[str, Any], bounds: ReadBounds) -> Iterator[Record | Fault]:
    """The records and faults of one file, within ``bounds``."""
    path = Path(request["path"])
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in request["fields"].items()}
    mapping = FieldMapping(fields, {**request["options"], "bounds": bounds})
    reader: Reader = readers.load(request["reader"])
    for item in reader(path, mapping):
        if isinstance(item, Record) and _characters(item) > bounds.record_characters:
            raise LimitExceeded(
                f"{path.name}: a record holds more than {bounds.record_characters} characters (read.record_characters)",
                "Split the file or raise the bound",
            )
        yield item


def packed(item: Record | Fault) -> bytes:
    """``item`` as one line of the protocol."""
    if isinstance(item, Fault):
        return _encoded(["fault", item.where, item.reason])
    values = [getattr(item, name) for name in FIELDS]
    values[FIELDS.index("blocks")] = [_block(block) for block in item.blocks]
    return _encoded(["record", *values])


def _block(block: Block) -> Message:
    return [block.kind, block.level, [_line(line) for line in block.lines]]


def _line(line: Line) -> str | Message:
    """A line without a box travels as its text alone."""
    box = line.box
    return line.text if box is None else [line.text, box.page, box.x0, box.y0, box.x1, box.y1]


def _encoded(message: Message) -> bytes:
    """UTF-8 as it is written to the pipe; half a surrogate pair, which is no text, becomes a question mark."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def _characters(record: Record) -> int:
    return sum(len(line.text) for block in record.blocks for line in block.lines)


def _out_of_memory(request: dict[str, Any], bounds: ReadBounds) -> Message:
    limit = f"{bounds.child_memory_bytes // 2**20} MiB of memory (read.child_memory_bytes)"
    return ["error", "LimitExceeded", f"{Path(request['path']).name}: needed more than {limit}", "Split the file"]


def _place(error: BaseException) -> str:
    """The kind of ``error`` and the line of our code that it came through; never its message, which may hold text."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "localmed" in frame.filename]
    where = f" at {Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    return f"{type(error).__name__}{where}"


def _take_streams() -> tuple[BinaryIO, BinaryIO]:
    """The two pipes to the parent, moved away from where libraries read and print; those get ``/dev/null``."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=65_536)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    return requests, replies


def _die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when its parent ends, and end now if that has happened already."""
    prctl: Callable[..., int] = ctypes.CDLL(None, use_errno=True).prctl
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)


def _limit(bounds: ReadBounds) -> None:
    """Set this file's share of memory and processor time; the kernel enforces both."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    spent = int(usage.ru_utime + usage.ru_stime) + 1  # the kernel counts whole seconds since the process began
    _lower(resource.RLIMIT_CPU, spent + bounds.file_cpu_seconds)
    _lower(resource.RLIMIT_AS, bounds.child_memory_bytes)


def _lower(limit: int, wanted: int) -> None:
    """Set the soft limit to ``wanted``, or to the hard limit where that is lower."""
    hard = resource.getrlimit(limit)[1]
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(limit, (soft, hard))


if __name__ == "__main__":
    main()
