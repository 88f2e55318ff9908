"""The chat model that was chosen: a registered GGUF file in a child process, or a server inside the hospital.

Nothing is loaded or dialled before the first request. The registry looks at the file each time before it is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from localmed.config import NONE, ChatSettings
from localmed.errors import BadSettings, ModelError, UnknownName

if TYPE_CHECKING:
    from localmed.models.llama.adapter import ChatFile
    from localmed.models.registry.registration import Model
    from localmed.models.registry.registry import Registry
    from localmed.ports import CountingChat

KEY = "LOCALMED_CHAT_KEY"  # in the environment: the server's key, where it wants one; settings files are copied around


@runtime_checkable
class Closing(Protocol):
    """A chat model with something to end: a child process."""

    def close(self) -> None:
        """End it."""
        ...


def chat(settings: ChatSettings, chosen: Mapping[str, str], registry: Registry) -> CountingChat | None:
    """The server that the settings name, else the model that ``chosen`` (``config.chosen_models``) names, if any.

    Raise ``ModelError`` for a model that is not registered, ``BadSettings`` for a server that may not be dialled.
    """
    if settings.server:
        from localmed.models.openai_server import OpenAIServer

        if not settings.server_model:
            raise BadSettings("settings.server_model")
        key = os.environ.get(KEY, "").strip()  # a file that it was read from may end in a line's end
        return OpenAIServer(settings.server, settings.server_model, settings.context, settings, key)
    name = chosen.get("chat", NONE)
    if name == NONE:
        return None
    from localmed.models.llama.adapter import LlamaChat

    return LlamaChat(_file(registry, name, settings), settings, lambda: _admitted(registry, name))


def _admitted(registry: Registry, name: str) -> None:
    """Raise ``ModelError`` if the registered model ``name`` may not be loaded, because a file of it has changed."""
    registry.opened(name)


def _file(registry: Registry, name: str, settings: ChatSettings) -> ChatFile:
    from localmed.models.llama.adapter import ChatFile
    from localmed.models.registry.registry import Opened

    try:
        model = registry.model(name)
    except UnknownName:
        raise ModelError("model.not_registered_for", name=name, role="chat", folder="FILE") from None
    path = Opened(model, registry.folder / name).gguf
    context = model.footprint.context or settings.context  # 0 where neither file nor manifest says it
    return ChatFile(name, path, _sha256(model, path.name), model.template, context)


def _sha256(model: Model, file: str) -> str:
    return next(stored.sha256 for stored in model.files if stored.name.rpartition("/")[2] == file)
