"""Which chat model answers: none, a registered file, or a listed server; nothing is loaded or dialled here."""

from __future__ import annotations

from pathlib import Path

import pytest

from localmed.config import ChatSettings
from localmed.domain.errors import BadSettings, ModelError
from localmed.domain.ports import Message, Request
from localmed.models.choice import chat
from localmed.models.llama.adapter import LlamaChat
from localmed.models.openai_server import OpenAIServer
from localmed.models.registry.registry import Registry
from tests.words import said

SERVER = ChatSettings(servers=("http://127.0.0.1:9",), server="http://127.0.0.1:9", server_model="m", context=1000)


def test_a_registered_file_is_admitted_before_it_is_loaded(added: Registry) -> None:
    model = chat(ChatSettings(context=64), {"chat": "tiny"}, added)
    assert isinstance(model, LlamaChat)
    assert model.identity.name == "tiny"
    assert model.identity.context <= 64
    assert model.identity.sha256 == added.model("tiny").files[0].sha256
    path: Path = added.folder / "tiny" / added.model("tiny").files[0].name
    path.chmod(0o600)
    path.write_bytes(path.read_bytes() + b"!")
    with pytest.raises(ModelError, match="is not loaded"):
        model.complete(Request((Message("user", "?"),), 8))
    model.close()


def test_one_that_is_not_registered(registry: Registry) -> None:
    with pytest.raises(ModelError, match=said("model.not_registered_for.what", name="absent", role="chat")):
        chat(ChatSettings(), {"chat": "absent"}, registry)


def test_a_server_comes_before_a_file(registry: Registry) -> None:
    model = chat(SERVER, {"chat": "absent"}, registry)
    assert isinstance(model, OpenAIServer)
    assert model.identity.name == "m at http://127.0.0.1:9"
    assert model.identity.context == 1000


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (ChatSettings(server="http://127.0.0.1:9", server_model="m"), "not listed"),
        (ChatSettings(servers=("http://127.0.0.1:9",), server="http://127.0.0.1:9"), "set chat.server_model"),
    ],
)
def test_a_server_that_is_not_set_up(registry: Registry, settings: ChatSettings, problem: str) -> None:
    with pytest.raises(BadSettings, match=problem):
        chat(settings, {"chat": "none"}, registry)
