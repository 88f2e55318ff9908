"""The parent's side of looking into a model file: a child reads the header, limited in memory and time.

A hostile header can at worst end its child. What the child sends is checked before it is believed.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from localmed.errors import InputError, LimitExceeded
from localmed.models.header import Header

INSPECTED = (".gguf", ".safetensors")  # the names' ends of files that have a header worth reading
SECONDS = 120.0  # wall clock; a large header takes one, on a slow disk some more
# -P keeps the working folder off the import path: a file called json.py beside the models must not be run.
COMMAND = (sys.executable, "-P", "-m", "localmed.models.inspect_child")
_KINDS = {"int": int, "str": str}


def inspect(path: Path, command: Sequence[str] = COMMAND, seconds: float = SECONDS) -> Header:
    """What the header of ``path`` says; raise ``InputError`` (``LimitExceeded``) if it cannot be a model."""
    arguments = [*command, str(path.absolute()), str(os.getpid())]
    try:
        done = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise LimitExceeded(f"{path.name}: its header took longer than {seconds:g} seconds", "It is no model") from None
    try:
        kind, *values = json.loads(done.stdout)
        if kind == "header":
            return _header(*values)
        name, what, remedy = map(str, values)
    except (ValueError, TypeError, RecursionError):
        told = f"{path.name}: its header ended the process that read it (exit code {done.returncode})"
        raise InputError(told, "The file is damaged or hostile") from None
    raise (LimitExceeded if name == "LimitExceeded" else InputError)(f"{path.name}: {what}", remedy)


def _header(values: dict[str, Any]) -> Header:
    """The child's header; raise ``TypeError`` where it is none."""
    header = Header(**values)
    for item in dataclasses.fields(header):
        if type(getattr(header, item.name)) is not _KINDS[str(item.type)]:
            raise TypeError
    return header
