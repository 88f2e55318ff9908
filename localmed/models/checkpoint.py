"""A registered checkpoint as its adapter sees it: its identity, and its folder, which is verified at every access.

``folder`` calls ``Registry.open``, so that no changed file is read. Adapters name the files that they need, because
libraries replace missing files by random weights or search a hub. Errors name files and exception classes, never a
library's message.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localmed.domain import Message, message
from localmed.domain.errors import ModelError
from localmed.models.network import load_torch
from localmed.process import files

CONFIG = "config.json"
WEIGHTS = "*.safetensors"
ENGLISH = ("en",)  # the default without a manifest


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model's folder, name and fingerprint (12 hex characters, which distinguishes trainings of one name).

    An encoder was trained with ``query_prefix`` before questions and ``passage_prefix`` before passages.
    """

    name: str
    version: str
    folder: Callable[[], Path]
    languages: tuple[str, ...] = ENGLISH
    query_prefix: str = ""
    passage_prefix: str = ""

    def complete(self, *needed: str) -> Path:
        """The folder, if it contains all of ``needed`` (names or patterns); else raise ``ModelError``."""
        folder = self.folder()
        for name in (CONFIG, *needed):
            if not any(folder.glob(name)):
                raise ModelError("model.incomplete_folder", name=self.name, folder=str(folder), missing=name)
        return folder

    def read(self, name: str = CONFIG) -> Any:
        """The JSON file ``name``."""
        path = self.complete(name) / name
        try:
            return json.loads(files.own_bytes(path))
        except (OSError, ValueError, RecursionError) as error:
            raise self.load_error(error) from None

    def number(self, name: str) -> int:
        """A positive integer of ``config.json``."""
        values = self.read()
        value = values.get(name) if isinstance(values, dict) else None
        if type(value) is not int or value < 1:
            raise self.load_error(ValueError(name), message("model.no_config", file=CONFIG, name=name))
        return value

    @contextmanager
    def loading(self, extra: str = "torch") -> Iterator[None]:
        """Run a library's loading code (of ``extra``) offline and silently; exceptions become ``ModelError``."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the libraries' own warnings
                load_torch()
                from transformers.utils import logging

                logging.disable_progress_bar()
                logging.set_verbosity_error()
                yield
        except ModelError:
            raise
        except ImportError as error:
            library = error.name or type(error).__name__
            raise ModelError("model.needs_library", name=self.name, library=library, extra=extra) from None
        except Exception as error:  # a damaged checkpoint raises anything in four libraries
            raise self.load_error(error) from None

    def refuse_missing(self, missing: Sequence[str]) -> None:
        """Raise ``ModelError`` if ``missing`` names tensors absent from the files: they would be random."""
        if missing:
            raise self.load_error(
                ValueError(), message("model.unfilled", count=len(missing), tensor=sorted(missing)[0])
            )

    def load_error(self, error: Exception, why: Message | None = None) -> ModelError:
        """The error for a checkpoint that cannot be loaded."""
        return ModelError("model.unloadable", name=self.name, why=why or type(error).__name__)


def find_missing(folder: Path, tensors: Iterable[str], weights: str) -> list[str]:
    """The ``tensors`` that are missing from the files ``weights`` (a pattern) of ``folder``.

    Files may prefix names (``roberta.encoder...``). The pooler that transformers adds to a bare network is not counted,
    because nothing here uses it.
    """
    import torch
    from safetensors import safe_open

    held: set[str] = set()
    for path in sorted(folder.glob(weights)):
        if path.suffix == ".safetensors":
            with safe_open(path, "pt") as stream:
                held.update(stream.keys())
        else:  # tensors only: no code in the file runs
            held.update(torch.load(path, map_location="cpu", weights_only=True, mmap=True))
    held.update([name.partition(".")[2] for name in held])
    return [name for name in tensors if name not in held and not name.startswith("pooler.")]
