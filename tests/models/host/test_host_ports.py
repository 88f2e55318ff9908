"""The ports over the socket say what the models say, in the same process or another one."""

from __future__ import annotations

import json

import numpy as np
import pytest

from localmed.config import ChatSettings, HostSettings
from localmed.domain import SearchFilter, errors
from localmed.domain.errors import LocalmedError, ModelError, UsageError
from localmed.domain.ports import UNWATCHED, CountingChat, Message, Reply, Request, Watch, encode_both
from localmed.models.choice import choices
from localmed.models.host import protocol
from localmed.models.host.client import NOTHING, Client, Hosted, connect, unhurried
from localmed.models.registry.registration import Model, Registrations
from tests.fakes import HashedWords, WeighedWords
from tests.models.chat_contract import ChatContract
from tests.models.host.conftest import Start
from tests.models.host.house import CHOICES, House, Overlap, Same, Speaker
from tests.scripted import ScriptedChat

TEXTS = ["the dose of the day", "剂量是多少", "", "\ud800 half a character", "the dose " * 40]


@pytest.mark.parametrize("count", [0, 1, 5, 700])
def test_vectors_are_those_of_the_model_bit_for_bit(hosted: Hosted, count: int) -> None:
    texts = [f"{TEXTS[number % len(TEXTS)]} {number}" for number in range(count)]
    assert hosted.encoder is not None
    for encoder in (hosted.encoder, unhurried(hosted.encoder)):
        assert encoder.identity == WeighedWords().identity
        vectors = encoder.encode(texts, "passage")
        assert vectors.dtype == np.float32
        assert np.array_equal(vectors, WeighedWords().encode(texts, "passage"))
        vectors, weights = encode_both(encoder, texts, "query")
        expected = WeighedWords().encode_both(texts, "query")
        assert np.array_equal(vectors, expected[0])
        assert weights == expected[1]


def test_an_encoder_that_rules_were_fitted_on_is_the_hosts_too(hosted: Hosted) -> None:
    encoder = hosted.fitted
    assert encoder is not None
    assert encoder.identity == HashedWords().identity != WeighedWords().identity
    for one in (encoder, unhurried(encoder)):
        assert np.array_equal(one.encode(TEXTS, "query"), HashedWords().encode(TEXTS, "query"))


def test_scores_and_stances_are_those_of_the_model(hosted: Hosted) -> None:
    assert hosted.reranker is not None
    assert hosted.reranker.name == Overlap.name
    assert hosted.reranker.score("the dose", TEXTS) == Overlap().score("the dose", TEXTS)
    assert hosted.reranker.score("the dose", []) == []
    assert hosted.entailment is not None
    assert (hosted.entailment.name, hosted.entailment.languages) == (Same.name, Same.languages)
    pairs = [(one, other) for one in TEXTS for other in TEXTS] * 20
    assert hosted.entailment.judge(pairs) == Same().judge(pairs)


def test_the_index_is_searched_at_the_host(house: House, hosted: Hosted) -> None:
    filters = SearchFilter(("a", "b"), "en", "2020", "2024-05", documents=("x",))
    vector = np.array([1 / 3, 0.5], np.float32)
    assert hosted.nearest is not None
    assert hosted.nearest.search("0007", vector, 3, filters) == [(str(n), "document", 1 / (3 + n)) for n in range(3)]
    assert house.numbers.asked == [("0007", vector.tolist(), filters)]
    assert house.numbers.warmed


class TestChat(ChatContract):
    @pytest.fixture
    def model(self, hosted: Hosted) -> CountingChat:
        assert hosted.chat is not None
        return hosted.chat

    def test_tokens_come_one_by_one(self, model: CountingChat) -> None:
        tokens: list[str] = []
        reply = model.complete(Request((Message("user", "words"),), 64), Watch(tokens.append))
        assert tokens == ["one", " two", " three"]
        assert reply == Speaker().complete(Request((Message("user", "words"),), 64))
        assert model.count(["a b", ""]) == [2, 0]


def test_tokens_that_nobody_hears_are_not_sent(start: Start) -> None:
    watched: list[Watch] = []

    class Watched(ScriptedChat):
        def complete(self, request: Request, watch: Watch = UNWATCHED) -> Reply:
            watched.append(watch)
            return super().complete(request, watch)

    chat = start(chat=Watched(["one two", "one two"], "scripted")).hosted().chat
    assert chat is not None
    for watch in (Watch(cancelled=lambda: False), Watch(lambda _: None)):
        chat.complete(Request((Message("user", "words"),), 8), watch)
    assert [watch.token is UNWATCHED.token for watch in watched] == [True, False]


def test_errors_arrive_as_what_they_are(house: House, hosted: Hosted) -> None:
    assert hosted.chat is not None
    with pytest.raises(UsageError, match="at least two different labels"):
        hosted.chat.choose([Message("user", "?")], ["?"], ["yes"])
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, LocalmedError) and kind is not LocalmedError:
            told = protocol.failure(kind("host.none_answers"))[1]
            heard = errors.from_json(json.loads(json.dumps(told)), ModelError, LocalmedError)
            assert (type(heard).__name__, str(heard)) == (name, str(kind("host.none_answers")))


def test_an_unexpected_failure_is_told_without_its_text(hosted: Hosted, capfd: pytest.CaptureFixture[str]) -> None:
    assert hosted.encoder is not None
    with pytest.raises(ModelError, match="ValueError") as caught:
        hosted.encoder.encode(["fail"], "query")
    printed = capfd.readouterr()
    assert "jaundice" not in str(caught.value) + printed.out + printed.err
    assert "ValueError" in printed.err
    assert len(hosted.encoder.encode(["well"], "query")) == 1


def test_models_that_were_chosen_otherwise_are_not_used(house: House) -> None:
    connected = connect(house.data, house.settings, CHOICES | {"encoder": "another", "chat": "none"})
    assert connected.encoder is None
    assert connected.chat is None
    assert connected.reranker is not None
    assert connected.others == ("chat", "encoder")


def test_a_host_is_not_used_where_the_settings_say_so(house: House) -> None:
    assert connect(house.data, HostSettings(use=False), CHOICES) is NOTHING
    assert connect(house.data / "elsewhere", house.settings, CHOICES) is NOTHING


def test_choices_tell_trainings_and_settings_apart() -> None:
    def model(fingerprint: str) -> Model:
        return Model("bge-m3", "encoder", True, (), "", "", fingerprint)

    chosen = {"encoder": "bge-m3", "reranker": "none", "entailment": "starter", "chat": "none", "terms": "none"}
    one = choices(chosen, Registrations({"bge-m3": model("a")}), ChatSettings())
    assert set(one) == {"encoder", "reranker", "entailment", "chat"}
    other = choices(chosen, Registrations({"bge-m3": model("b")}), ChatSettings(context=4096))
    assert {role for role in one if one[role] != other[role]} == {"encoder", "chat"}


def test_a_message_too_large_is_refused_and_the_next_one_goes_on(house: House) -> None:
    small = HostSettings(message_bytes=2000)
    connected = connect(house.data, small, CHOICES)
    assert connected.encoder is not None
    with pytest.raises(ModelError, match=r"host\.message_bytes"):
        connected.encoder.encode(["x" * 2000], "query")
    with pytest.raises(
        ModelError, match="from the model host is larger than 2000"
    ):  # its vectors are more than this client takes
        connected.encoder.encode(["x"] * 50, "query")
    assert len(connected.encoder.encode(["x"], "query")) == 1


def test_another_version_is_not_used(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localmed.models.host.client.__version__", "0.0.9")
    assert connect(house.data, house.settings, CHOICES).encoder is None
    with pytest.raises(ModelError, match="another version"):
        Client(house.data / protocol.FOLDER, house.settings, "").greet()
