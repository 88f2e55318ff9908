"""The parent's side of looking into a model file: a child reads the header, limited in memory and time.

A hostile header can at worst end its child. What the child sends is checked before it is believed.
"""

from __future__ import annotations

import dataclasses
import json
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
    try:
        answer = children.answer([*command, str(path.absolute())], b"", seconds, _ANSWER_BYTES)
        kind, *values = json.loads(answer)
        if kind == "header":
            return _header(*values)
        name, what, remedy = map(str, values)
    except TimeoutError:
        raise LimitExceeded(f"{path.name}: its header took longer than {seconds:g} seconds", "It is no model") from None
    except (children.Failed, ValueError, TypeError, RecursionError) as error:
        how = str(error) if isinstance(error, children.Failed) else "it sent no header"
        told = f"{path.name}: its header ended the process that read it ({how})"
        raise InputError(told, "The file is damaged or hostile") from None
    raise (LimitExceeded if name == "LimitExceeded" else InputError)(f"{path.name}: {what}", remedy)


def _header(values: dict[str, Any]) -> Header:
    """The child's header; raise ``TypeError`` where it is none."""
    header = Header(**values)
    for item in dataclasses.fields(header):
        if type(getattr(header, item.name)) is not _KINDS[str(item.type)]:
            raise TypeError
    return header
