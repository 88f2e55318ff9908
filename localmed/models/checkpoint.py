"""A registered checkpoint as its adapter sees it: who it is, and its folder, looked at anew whenever it is read.

Rules: ``folder`` is the registry's look at each file (``Registry.opened``), so that nothing changed is ever read;
files that an adapter needs are asked for by name, since libraries fill what is missing with random numbers or look for
a hub; errors name files and classes of exceptions, never a library's message.
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
ENGLISH = ("en",)  # what is assumed where no manifest says more


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model's folder, its name, and the fingerprint (12 hex characters) that tells trainings of one name apart.

    ``query_prefix`` and ``passage_prefix`` are what an encoder was trained to read before questions and passages.
    """

    name: str
    version: str
    folder: Callable[[], Path]
    languages: tuple[str, ...] = ENGLISH
    query_prefix: str = ""
    passage_prefix: str = ""

    def complete(self, *needed: str) -> Path:
        """The folder, once it has ``needed``, each a name or a pattern; raise ``ModelError`` naming what is missing."""
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
            raise self.unusable(error) from None

    def number(self, name: str) -> int:
        """A whole number of ``config.json``, above 0."""
        values = self.read()
        value = values.get(name) if isinstance(values, dict) else None
        if type(value) is not int or value < 1:
            raise self.unusable(ValueError(name), message("model.no_config", file=CONFIG, name=name))
        return value

    @contextmanager
    def loading(self, extra: str = "torch") -> Iterator[None]:
        """Around the call of a library that loads it: offline, silent; whatever it raises becomes ``ModelError``.

        ``extra`` is the one of localmed that brings the library.
        """
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # theirs
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
        except Exception as error:  # whatever a damaged checkpoint raises in four libraries
            raise self.unusable(error) from None

    def refuse_unfilled(self, missing: Sequence[str]) -> None:
        """Raise ``ModelError`` if ``missing`` names tensors that the files do not hold: they would be random."""
        if missing:
            raise self.unusable(ValueError(), message("model.unfilled", count=len(missing), tensor=sorted(missing)[0]))

    def unusable(self, error: Exception, why: Message | None = None) -> ModelError:
        """What is raised where it cannot be loaded."""
        return ModelError("model.unloadable", name=self.name, why=why or type(error).__name__)


def not_held(folder: Path, tensors: Iterable[str], weights: str) -> list[str]:
    """Which of ``tensors`` the files ``weights`` (a pattern) of ``folder`` do not hold.

    A file may call them by a longer name (``roberta.encoder...``). The pooler that transformers puts on top of a bare
    network does not count: nobody here uses it.
    """
    import torch
    from safetensors import safe_open

    held: set[str] = set()
    for path in sorted(folder.glob(weights)):
        if path.suffix == ".safetensors":
            with safe_open(path, "pt") as stream:
                held.update(stream.keys())
        else:  # tensors only: nothing in the file is run
            held.update(torch.load(path, map_location="cpu", weights_only=True, mmap=True))
    held.update([name.partition(".")[2] for name in held])
    return [name for name in tensors if name not in held and not name.startswith("pooler.")]
