"""The child process that parses files: it may crash, hang or run out of memory without harm to other processes.

Started by ``parsing.py`` as ``python -m localmed.ingest.child PARENT_PID``. It reads one JSON request a line on its
standard input and writes JSON messages, one a line, on its standard output::

    {"path", "reader", "fields", "options", "bounds"}  ->  each record, term, member, fault and page as an
                                                           object (``CODEC``), then ["done"] or
                                                           ["error", {class, messages}]

The pipes leave descriptors 0, 1 and 2 before any library loads, so that library output cannot corrupt the protocol.
The kernel limits memory, processor time and core dumps and, with Landlock, denies all files but the first file's
folder, temporary files and Python's own. It denies the network if it allows that, else only Python's audit hook does
(``confined.leave_network``). Errors state the kind and place of a failure, never document text. The child ends with the
thread that started it (``PR_SET_PDEATHSIG`` is tied to that) or with its input.

Not covered: a kernel that does not isolate network and files (``read.isolation`` refuses it). The parent takes only
JSON, so a subverted parser can send wrong text, not code.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from localmed.config import ReadBounds
from localmed.domain import errors
from localmed.domain.codec import Codec, reachable
from localmed.domain.errors import InputError, LimitExceeded
from localmed.ingest import readers
from localmed.ingest.parsed import FieldMapping, Item, Reader, SourceRecord, Working
from localmed.process import confined

CODEC = Codec(reachable(Item | Working))


def main() -> None:
    """Answer requests until the parent closes its end."""
    requests, replies = confined.take_streams()
    network = confined.leave_network()
    confined.die_with_parent(int(sys.argv[1]))  # afterwards: a process that takes other rights loses this one
    for ending in (signal.SIGINT, signal.SIGTERM):  # they reach the whole group; the parent decides
        signal.signal(ending, signal.SIG_IGN)
    files = ""  # who keeps this process from other files
    for line in requests:
        request = json.loads(line)
        if not files:  # the parent starts another child for files of another folder
            options = (request["options"].get(name) for name in ("into", "scans"))  # of archives, and of OCR
            writable = [tempfile.gettempdir(), *(folder for folder in options if isinstance(folder, str))]
            files = confined.leave_files([str(Path(request["path"]).parent)], writable)
        if request["bounds"]["isolation"] and (network, files) != ("kernel", "kernel"):
            _end(replies, InputError("reader.not_isolated", name=Path(request["path"]).name))
            continue
        try:
            serve(request, replies)
        except (MemoryError, BrokenPipeError):  # out of memory, no state is reliable; or the parent has gone
            break
    os._exit(0)  # without the flush of a half-written reply


def serve(request: dict[str, Any], replies: BinaryIO) -> None:
    """Parse one file and write the results."""
    bounds, name = ReadBounds(**request["bounds"]), Path(request["path"]).name
    confined.limit(bounds.child_memory_bytes, bounds.file_cpu_seconds)
    failed: InputError | None = None
    try:
        for item in parse(request, bounds):
            replies.write(pack(item))
            if isinstance(item, Working):  # its extra time starts now
                replies.flush()
    except BrokenPipeError:
        raise
    except MemoryError:
        _end(replies, LimitExceeded("import.memory", name=name, most=bounds.child_memory_bytes // 2**20))
        raise
    except InputError as error:
        failed = error
    except RecursionError:
        failed = LimitExceeded("import.deep", name=name)
    except Exception as error:
        failed = InputError("import.reader_failed", name=name, place=confined.place(error))
    _end(replies, failed)


def _end(replies: BinaryIO, failed: InputError | None) -> None:
    replies.write(_encoded(["error", errors.as_json(failed)] if failed else ["done"]))
    replies.flush()


def parse(request: dict[str, Any], bounds: ReadBounds) -> Iterator[Item | Working]:
    """Yield the items of one file, within ``bounds``."""
    path = Path(request["path"])
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in request["fields"].items()}
    mapping = FieldMapping(fields, {**request["options"], "bounds": bounds})
    reader: Reader = readers.load(request["reader"])
    for item in reader(path, mapping):
        lines = (line for block in item.blocks for line in block.lines) if isinstance(item, SourceRecord) else ()
        if sum(len(line.text) for line in lines) > bounds.record_characters:
            raise LimitExceeded("import.record_characters", name=path.name, most=bounds.record_characters)
        yield item


def pack(item: Item | Working) -> bytes:
    """``item`` as one line of the protocol."""
    return _encoded(CODEC.encode(item))


def _encoded(message: Any) -> bytes:
    # "replace": half a surrogate pair, which is no text, becomes a question mark
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


if __name__ == "__main__":
    main()
