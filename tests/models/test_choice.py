"""Which models serve: by profile and by ``localmed models use``, from the registry and from nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.config import BUILT_IN, PROFILES, ChatSettings, Settings, chosen_models
from localmed.domain.errors import BadSettings, ModelError, UsageError
from localmed.domain.ports import Message, Request
from localmed.models import choice
from localmed.models.e5 import E5
from localmed.models.flag_embedding import BgeM3, MultiVector
from localmed.models.llama.adapter import LlamaChat
from localmed.models.openai_server import OpenAIServer
from localmed.models.registry.manifests import FOLDER
from localmed.models.registry.registry import Registry
from localmed.models.sentence_encoder import SentenceEncoder
from tests.models.tiny import make_bge_m3, make_nli, make_sentence_encoder
from tests.words import said

NLI = "nli-deberta-v3-base"
SERVER = ChatSettings(servers=("http://127.0.0.1:9",), server="http://127.0.0.1:9", server_model="m", context=1000)


def chosen(profile: str, uses: Mapping[str, str] | None = None, registered: tuple[str, ...] = ()) -> dict[str, str]:
    return chosen_models(Settings(Path("data"), profile), uses or {}, registered)


def test_what_the_profiles_and_what_was_chosen_come_to() -> None:
    starter = chosen("starter")
    assert starter == dict.fromkeys(("chat", "reranker", "entailment", "terms", "planner"), "none") | {"encoder": "e5"}
    workstation = chosen("workstation", registered=(NLI,))
    assert {role: workstation[role] for role in PROFILES["workstation"]} == PROFILES["workstation"]
    assert chosen("workstation")["entailment"] == "none", "the judge gives way where it is not registered"
    assert chosen("workstation", {"entailment": "starter-entailment"}, (NLI,))["entailment"] == "none", "what there was"
    assert chosen("starter", {"entailment": NLI})["entailment"] == NLI, "but not where it was chosen"
    before = {"encoder": "minilm", "reranker": "maxsim", "entailment": "starter-entailment"}
    assert chosen("starter", before) == starter, "what an earlier version brought has a successor"
    assert chosen("starter", {"encoder": "minilm"}, ("minilm",))["encoder"] == "minilm", "a model registered as that"
    with pytest.raises(BadSettings, match="laptop"):
        chosen("laptop")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    root = tmp_path_factory.mktemp("choice")
    registry = Registry(root / "models", FOLDER)
    registry.add(make_bge_m3(root / "bge-m3"), "x")
    registry.add(make_sentence_encoder(root / "ours"), "x", role="encoder")
    registry.add(make_nli(root / NLI), "x")
    return registry


@pytest.mark.slow
def test_each_by_its_library(filled: Registry) -> None:
    bge = choice.encoder({"encoder": "bge-m3"}, filled)
    assert isinstance(bge, BgeM3)
    assert bge.identity.languages == ("en", "zh")
    assert bge.identity.version == filled.model("bge-m3").fingerprint
    ours = choice.encoder({"encoder": "ours"}, filled)
    assert isinstance(ours, SentenceEncoder)
    assert ours.identity.languages == ("en",)  # no manifest says more
    judge = choice.entailment({"entailment": NLI}, filled)
    assert judge is not None
    assert judge.name == f"{NLI} {filled.model(NLI).fingerprint}"


@pytest.mark.slow
def test_what_is_built_in_needs_no_registry(tmp_path: Path) -> None:
    empty = Registry(tmp_path / "models")
    assert isinstance(choice.encoder({"encoder": "e5"}, empty), E5)
    assert choice.reranker({"reranker": "none"}, empty, E5()) is None
    for name in BUILT_IN["entailment"]:
        assert choice.entailment({"entailment": name}, empty) is None
    assert not empty.folder.exists()


def test_weights_are_shared_where_they_are_the_same(filled: Registry) -> None:
    shared = choice.encoder({"encoder": "bge-m3"}, filled)
    for encoder, same in ((shared, True), (E5(), False)):
        reranker = choice.reranker({"reranker": "bge-m3"}, filled, encoder)
        assert isinstance(reranker, MultiVector)
        assert (reranker._encoder is encoder) == same
    with pytest.raises(UsageError, match="no token vectors"):
        choice.reranker({"reranker": "ours"}, filled, shared)


def test_what_is_not_registered_is_told_with_its_folder(tmp_path: Path) -> None:
    empty = Registry(tmp_path / "models", FOLDER)
    with pytest.raises(ModelError, match="for encoder is not registered") as raised:
        choice.encoder({"encoder": "bge-m3"}, empty)
    assert raised.value.remedy == "Register it: localmed models add FOLDER --as bge-m3"
    lying = make_bge_m3(empty.folder / "bge-m3")
    with pytest.raises(ModelError) as raised:
        choice.encoder({"encoder": "bge-m3"}, empty)
    assert str(lying) in raised.value.remedy
    with pytest.raises(ModelError, match="reranker"):
        choice.reranker({"reranker": "bge-reranker-v2-m3"}, empty, E5())
    with pytest.raises(ModelError, match="entailment"):
        choice.entailment({"entailment": NLI}, empty)


def test_a_model_that_changes_after_it_was_chosen_is_not_loaded(filled: Registry) -> None:
    """Hours may pass between the choice and the first text."""
    judge = choice.entailment({"entailment": NLI}, filled)
    assert judge is not None
    path = filled.folder / NLI / "tokenizer.json"
    content = path.read_bytes()
    path.chmod(0o600)
    path.write_bytes(content.replace(b"dose", b"does", 1))
    with pytest.raises(ModelError, match=r"tokenizer\.json has changed"):
        judge.judge([("dose", "dose")])
    path.write_bytes(content)


# --- the chat model: none, a registered file, or a listed server; nothing is loaded or dialled ------------------------


def test_a_registered_file_is_admitted_before_it_is_loaded(added: Registry) -> None:
    model = choice.chat(ChatSettings(context=64), {"chat": "tiny"}, added)
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


def test_a_server_comes_before_a_file_and_must_be_set_up(registry: Registry) -> None:
    model = choice.chat(SERVER, {"chat": "absent"}, registry)
    assert isinstance(model, OpenAIServer)
    assert (model.identity.name, model.identity.context) == ("m at http://127.0.0.1:9", 1000)
    with pytest.raises(ModelError, match=said("model.not_registered_for.what", name="absent", role="chat")):
        choice.chat(ChatSettings(), {"chat": "absent"}, registry)
    for settings, problem in (
        (replace(SERVER, servers=()), "not listed"),
        (replace(SERVER, server_model=""), "too, to the name"),
    ):
        with pytest.raises(BadSettings, match=problem):
            choice.chat(settings, {"chat": "none"}, registry)
