"""Opens the models that the profile and ``localmed models use`` choose (``config.chosen_models``), from the registry.

Adapters are imported when chosen and load their weights at first use, after the registry has verified every file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from localmed.config import NONE, ChatSettings, built_in
from localmed.domain import digest
from localmed.domain.errors import BadSettings, ModelError, UnknownName, UsageError
from localmed.models.checkpoint import ENGLISH, Checkpoint

if TYPE_CHECKING:
    from localmed.domain.ports import CountingChat, Embedder, Entailment, Reranker
    from localmed.models.llama.adapter import LlamaChat
    from localmed.models.openai_server import OpenAIServer
    from localmed.models.registry.registration import Model, Registrations
    from localmed.models.registry.registry import Registry

FLAG_EMBEDDING = "FlagEmbedding"
FITTED = "e5"  # the built-in encoder, whose vectors the rules' weights were fitted on; a host owns it too
YES_NO = "GGUF"  # library of an entailment judge: a language model that answers Yes or No
HOSTED = ("encoder", "reranker", "entailment", "chat")  # the roles that a model host owns


def encoder(chosen: Mapping[str, str], registry: Registry) -> Embedder:
    """The encoder in ``chosen``; raise ``ModelError`` if it is not registered."""
    name = chosen["encoder"]
    if name == FITTED:
        from localmed.models.e5 import E5

        return E5()
    model = _find_model(registry, "encoder", name)
    if model.library == FLAG_EMBEDDING:
        from localmed.models.flag_embedding import BgeM3

        return BgeM3(_checkpoint(registry, model))
    from localmed.models.sentence_encoder import SentenceEncoder

    return SentenceEncoder(_checkpoint(registry, model))


def reranker(chosen: Mapping[str, str], registry: Registry, shared: Embedder) -> Reranker | None:
    """The reranker, if one is chosen; it shares the weights of the encoder ``shared`` if that is the same model."""
    name = chosen["reranker"]
    if name == NONE:
        return None
    model = _find_model(registry, "reranker", name)
    if model.role != "encoder":
        from localmed.models.cross_encoder import CrossEncoder

        return CrossEncoder(_checkpoint(registry, model))
    if model.library != FLAG_EMBEDDING:
        raise UsageError("model.no_token_vectors", name=model.name)
    from localmed.models.flag_embedding import BgeM3, MultiVector

    if isinstance(shared, BgeM3) and shared.identity.name == model.name:
        return MultiVector(shared)
    return MultiVector(BgeM3(_checkpoint(registry, model)))


def entailment(chosen: Mapping[str, str], registry: Registry) -> Entailment | None:
    """The network that judges entailment; None if a chat model does (``judging_chat``) or nothing."""
    name = chosen["entailment"]
    if built_in("entailment", name):
        return None
    model = _find_model(registry, "entailment", name)
    if model.library == YES_NO:
        return None
    if model.library:
        from localmed.models.cross_encoder import BY_LIBRARY

        return BY_LIBRARY[model.library](_checkpoint(registry, model))
    from localmed.models.cross_encoder import NliCrossEncoder

    return NliCrossEncoder(_checkpoint(registry, model))


def judging_chat(settings: ChatSettings, chosen: Mapping[str, str], registry: Registry) -> CountingChat | None:
    """The GGUF that judges entailment by Yes and No, in its own child process; None if none is chosen."""
    name = chosen["entailment"]
    if built_in("entailment", name) or _find_model(registry, "entailment", name).library != YES_NO:
        return None
    return open_chat(name, settings, registry)


def check(role: str, chosen: Mapping[str, str], registry: Registry) -> None:
    """Raise ``ModelError`` if the model chosen for ``role`` is evidently unusable; loads no weights."""
    if role == "encoder":
        _ = encoder(chosen, registry).identity
    elif role == "reranker" and (model := reranker(chosen, registry, encoder({"encoder": FITTED}, registry))):
        _ = model.name
    elif role == "entailment" and (judge := entailment(chosen, registry)):
        _ = judge.name


def _find_model(registry: Registry, role: str, name: str) -> Model:
    try:
        return registry.model(name)
    except UnknownName:
        folder = registry.folder / name if (registry.folder / name).is_dir() else "FOLDER"
        raise ModelError("model.not_registered_for", name=name, role=role, folder=str(folder)) from None


def _checkpoint(registry: Registry, model: Model) -> Checkpoint:
    return Checkpoint(
        model.name,
        model.fingerprint,
        lambda: registry.open(model.name).folder,
        model.languages or ENGLISH,
        model.query_prefix,
        model.passage_prefix,
    )


def choices(chosen: Mapping[str, str], registrations: Registrations, settings: ChatSettings) -> dict[str, str]:
    """For each role a text that identifies its model, for comparison between a command and a host.

    Registered models: name and fingerprint, for chat also the settings. Built-in models: the name; both sides compare
    their versions of localmed first.
    """
    by_role = {}
    for role in HOSTED:
        name = chosen.get(role, NONE)
        model = registrations.models.get(name)
        by_role[role] = f"{name} {model.fingerprint}" if model else name
    by_role["chat"] += f" {digest(repr(settings))[:12]}"
    return by_role


# --- the chat model ---------------------------------------------------------------------------------------------------

# A registered GGUF file in a child process, or a server inside the hospital.
KEY = "LOCALMED_CHAT_KEY"  # environment variable with the server's key; settings files are copied around


@runtime_checkable
class Closing(Protocol):
    """A chat model with a child process to end."""

    def close(self) -> None:
        """End it."""
        ...


def chat(settings: ChatSettings, chosen: Mapping[str, str], registry: Registry) -> CountingChat | None:
    """The chat server of the settings, else the chat model in ``chosen`` (``config.chosen_models``), if any."""
    if settings.server:
        return server(settings, registry)
    return open_chat(chosen.get("chat", NONE), settings, registry)


def server(settings: ChatSettings, registry: Registry) -> OpenAIServer:
    """The chat server of the settings; raise ``BadSettings`` if it may not be dialled."""
    from localmed.models.openai_server import OpenAIServer
    from localmed.models.registry.tested import features

    if not settings.server_model:
        raise BadSettings("settings.server_model")
    key = os.environ.get(KEY, "").strip()  # a key read from a file may end with a newline
    known = partial(features, registry.folder, server_name(settings))
    return OpenAIServer(settings.server, settings.server_model, settings.context, settings, key, known)


def server_name(settings: ChatSettings) -> str:
    """The name of the model on the chat server."""
    return f"{settings.server_model} at {settings.server}"


def open_chat(name: str, settings: ChatSettings, registry: Registry) -> LlamaChat | None:
    """The registered chat model or planner ``name``, in its own child process; None for ``NONE``."""
    if name == NONE:
        return None
    from localmed.models.llama.adapter import ChatFile, LlamaChat
    from localmed.models.registry.registry import Opened

    try:
        model = registry.model(name)
    except UnknownName:
        raise ModelError("model.not_registered_for", name=name, role="chat", folder="FILE") from None
    path = Opened(model, registry.folder / name).gguf
    context = model.footprint.context or settings.context  # 0 if neither file nor manifest has it
    sha256 = next(stored.sha256 for stored in model.files if stored.name.rpartition("/")[2] == path.name)
    file = ChatFile(name, path, sha256, model.template, context)
    return LlamaChat(file, settings, lambda: registry.open(name))
