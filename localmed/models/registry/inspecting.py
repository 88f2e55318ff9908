"""The parent's side of looking into a model file: a child reads the header, limited in memory and time.

A hostile header can at worst end its child. What the child sends is checked before it is believed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from localmed import children, errors
from localmed.domain import message
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
