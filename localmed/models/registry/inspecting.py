"""The parent's side of looking into a model file: a child reads the header, limited in memory and time.

A hostile header can at worst end its child. What the child sends is checked before it is believed.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from localmed import children
from localmed.errors import InputError, LimitExceeded
from localmed.models.registry.header import Header

INSPECTED = (".gguf", ".safetensors")  # the names' ends of files that have a header worth reading
SECONDS = 120.0  # wall clock; a large header takes one, on a slow disk some more
COMMAND = children.command("localmed.models.registry.inspect_child")
_KINDS = {"int": int, "str": str}
_ANSWER_BYTES = 2**20  # a header as it is sent has a few hundred


def inspect(path: Path, command: Sequence[str] = COMMAND, seconds: float = SECONDS) -> Header:
    """What the header of ``path`` says; raise ``InputError`` (``LimitExceeded``) if it cannot be a model."""
    child = children.Child([*command, str(path.absolute())])
    try:
        answer = _line(child, seconds)
        code = child.code()
    except TimeoutError:
        raise LimitExceeded(f"{path.name}: its header took longer than {seconds:g} seconds", "It is no model") from None
    finally:
        child.kill()
    try:
        kind, *values = json.loads(answer)
        if kind == "header":
            return _header(*values)
        name, what, remedy = map(str, values)
    except (ValueError, TypeError, RecursionError):
        told = f"{path.name}: its header ended the process that read it ({children.named(code)})"
        raise InputError(told, "The file is damaged or hostile") from None
    raise (LimitExceeded if name == "LimitExceeded" else InputError)(f"{path.name}: {what}", remedy)


def _line(child: children.Child, seconds: float) -> bytes:
    """The child's one line, nothing if it ended or says too much; ``TimeoutError`` if neither within ``seconds``."""
    deadline, lines = time.monotonic() + seconds, children.Lines(_ANSWER_BYTES)
    while True:
        chunk = child.chunk(deadline - time.monotonic(), _ANSWER_BYTES)
        if chunk is None:
            raise TimeoutError
        try:
            found = lines.take(chunk)
        except children.TooLong:
            return b""
        if found or not chunk:
            return found[0] if found else b""


def _header(values: dict[str, Any]) -> Header:
    """The child's header; raise ``TypeError`` where it is none."""
    header = Header(**values)
    for item in dataclasses.fields(header):
        if type(getattr(header, item.name)) is not _KINDS[str(item.type)]:
            raise TypeError
    return header
