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
from localmed.models.host.client import NOTHING, Client, Hosted, at_low_priority, connect
from localmed.models.registry.registration import Model, Registrations
from tests.fakes import HashedWords, WeighedWords
from tests.models.chat_contract import ChatContract
from tests.models.host.conftest import Start
from tests.models.host.house import CHOICES, House, Overlap, Same, Speaker, there
from tests.scripted import ScriptedChat

TEXTS = ["the dose of the day", "剂量是多少", "", "\ud800 half a character", "the dose " * 40]


@pytest.mark.parametrize("count", [0, 1, 5, 700])
def test_vectors_are_those_of_the_model_bit_for_bit(hosted: Hosted, count: int) -> None:
    texts = [f"{TEXTS[number % len(TEXTS)]} {number}" for number in range(count)]
    assert hosted.encoder is not None
    for encoder in (hosted.encoder, at_low_priority(hosted.encoder)):
        assert encoder.identity == WeighedWords().identity
        vectors = encoder.encode(texts, "passage")
        assert vectors.dtype == np.float32
        assert np.array_equal(vectors, WeighedWords().encode(texts, "passage"))
        vectors, weights = encode_both(encoder, texts, "query")
        expected = WeighedWords().encode_both(texts, "query")
        assert np.array_equal(vectors, expected[0])
        assert weights == expected[1]


def test_what_the_others_say_is_what_the_models_say(house: House, hosted: Hosted) -> None:
    """The encoder that rules were fitted on, reranker, judge and index."""
    fitted = there(hosted.fitted)
    assert fitted.identity == HashedWords().identity != WeighedWords().identity
    for one in (fitted, at_low_priority(fitted)):
        assert np.array_equal(one.encode(TEXTS, "query"), HashedWords().encode(TEXTS, "query"))
    reranker, judge = there(hosted.reranker), there(hosted.entailment)
    assert (reranker.name, judge.name, judge.languages) == (Overlap.name, Same.name, Same.languages)
    assert reranker.score("the dose", TEXTS) == Overlap().score("the dose", TEXTS)
    assert reranker.score("the dose", []) == []
    pairs = [(one, other) for one in TEXTS for other in TEXTS] * 20
    assert judge.judge(pairs) == Same().judge(pairs)
    filters = SearchFilter(("a", "b"), "en", "2020", "2024-05", documents=("x",))
    vector = np.array([1 / 3, 0.5], np.float32)
    found = there(hosted.nearest).search("0007", vector, 3, filters)
    assert found == [(str(number), "document", 1 / (3 + number)) for number in range(3)]
    assert house.numbers.asked == [("0007", vector.tolist(), filters)]
    assert there(hosted.nearest).similarities("0007", vector[None], ["a"]) == {"a": [float(vector.sum())]}
    assert house.numbers.warmed


class TestChat(ChatContract):
    @pytest.fixture
    def model(self, hosted: Hosted) -> CountingChat:
        return there(hosted.chat)

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

    chat = there(start(chat=Watched(["one two", "one two"], "scripted")).hosted().chat)
    for watch in (Watch(cancelled=lambda: False), Watch(lambda _: None)):
        chat.complete(Request((Message("user", "words"),), 8), watch)
    assert [watch.token is UNWATCHED.token for watch in watched] == [True, False]


def test_errors_arrive_as_what_they_are(hosted: Hosted) -> None:
    with pytest.raises(UsageError, match="at least two different labels"):
        there(hosted.chat).choose([Message("user", "?")], ["?"], ["yes"])
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, LocalmedError) and kind is not LocalmedError:
            told = protocol.failure(kind("host.none_answers"))[1]
            heard = errors.from_json(json.loads(json.dumps(told)), ModelError, LocalmedError)
            assert (type(heard).__name__, str(heard)) == (name, str(kind("host.none_answers")))


class Panic(BaseException):
    """What a library in Rust raises."""


@pytest.mark.parametrize("kind", [ValueError, Panic])
def test_an_unexpected_failure_is_told_without_its_text(
    house: House, kind: type[BaseException], capfd: pytest.CaptureFixture[str]
) -> None:
    house.encoder.fault = kind("jaundice")
    encoder = there(house.hosted().encoder)
    with pytest.raises(ModelError, match=kind.__name__) as caught:
        encoder.encode(["fail"], "query")
    printed = capfd.readouterr()
    assert "jaundice" not in str(caught.value) + printed.out + printed.err
    assert kind.__name__ in printed.err
    assert len(encoder.encode(["well"], "query")) == 1


def test_a_host_is_not_used_where_it_has_something_else(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that were chosen otherwise, another folder, another version; or where the settings say so."""
    connected = connect(house.data, house.settings, CHOICES | {"encoder": "another", "chat": "none"})
    assert (connected.encoder, connected.chat) == (None, None)
    assert connected.reranker is not None
    assert connected.others == ("chat", "encoder")
    assert connect(house.data, HostSettings(use=False), CHOICES) is NOTHING
    assert connect(house.data / "elsewhere", house.settings, CHOICES) is NOTHING
    monkeypatch.setattr("localmed.models.host.client.__version__", "0.0.9")
    assert connect(house.data, house.settings, CHOICES).encoder is None
    with pytest.raises(ModelError, match="another version"):
        Client(house.data / protocol.FOLDER, house.settings, "").greet()


def test_choices_tell_trainings_and_settings_apart() -> None:
    def model(fingerprint: str) -> Model:
        return Model("bge-m3", "encoder", True, (), "", "", fingerprint)

    chosen = {"encoder": "bge-m3", "reranker": "none", "entailment": "starter", "chat": "none", "terms": "none"}
    one = choices(chosen, Registrations({"bge-m3": model("a")}), ChatSettings())
    assert set(one) == {"encoder", "reranker", "entailment", "chat"}
    other = choices(chosen, Registrations({"bge-m3": model("b")}), ChatSettings(context=4096))
    assert {role for role in one if one[role] != other[role]} == {"encoder", "chat"}


def test_a_message_too_large_is_refused_and_the_next_one_goes_on(house: House) -> None:
    encoder = there(connect(house.data, HostSettings(message_bytes=2000), CHOICES).encoder)
    for texts in (["x" * 2000], ["x"] * 50):  # whose vectors are more than this client takes
        with pytest.raises(ModelError, match=r"host\.message_bytes"):
            encoder.encode(texts, "query")
    assert len(encoder.encode(["x"], "query")) == 1
