"""The server adapter: the port's rules with a server that behaves, clear errors in bounded time with the others."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localmed.config import ChatSettings, load
from localmed.domain.errors import BadSettings, Cancelled, ModelError, Rejected
from localmed.domain.ports import Request, Watch
from localmed.models.openai_server import BYTES_A_TOKEN, OpenAIServer, told_apart
from localmed.models.registry.tested import Features
from tests.models.chat_contract import ASK, LABELS, SCHEMA, SECRET, ChatContract
from tests.models.chat_server import Handle, Handler, dripping, pieces, serving, silent, well, with_text
from tests.words import phrase

ALL = Features()


def adapter(
    address: str, seconds: float = 5.0, size: int = 100_000, key: str = "", features: Features = ALL
) -> OpenAIServer:
    settings = ChatSettings(servers=(address,), server_seconds=seconds, connect_seconds=1.0, reply_bytes=size)
    return OpenAIServer(address, "some-model", 2000, settings, key, lambda: features)


@pytest.fixture(params=[True, False], ids=["logprobs", "none"])
def model(request: pytest.FixtureRequest) -> Iterator[OpenAIServer]:
    with serving(well(request.param)) as (address, _):
        yield adapter(address)


class TestContract(ChatContract):
    """What every adapter must do, from a server with log-probabilities and from one without."""


def test_without_a_tokenizer_tokens_are_estimated() -> None:
    with serving(lambda handler, _: handler.say(b"not found", 404)) as (address, _):
        assert adapter(address).count(["x" * 30, "", "儿童"]) == [30 // BYTES_A_TOKEN, 0, 2]


def test_what_is_asked_is_what_the_request_says() -> None:
    with serving(well(True)) as (address, requests):
        adapter(address, key="letmein").complete(Request(ASK, 64, SCHEMA, seed=7))
        path, headers, body = requests[0]
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer letmein"
    assert body["messages"] == [{"role": message.role, "content": message.content} for message in ASK]
    assert (body["temperature"], body["seed"], body["max_tokens"], body["stream"]) == (0.0, 7, 64, False)
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA


def test_labels_from_log_probabilities() -> None:
    with serving(well(True)) as (address, requests):
        choice = adapter(address).choose(ASK, ["?"], LABELS)[0]  # five words
        assert len(requests) == 1
    assert choice.measured
    assert choice.probabilities == pytest.approx((0.3 / 0.55, 0.25 / 0.55))


def test_labels_that_are_only_named_say_so() -> None:
    with serving(well(False)) as (address, requests):
        named = adapter(address)
        choice = named.choose(ASK, ["?"], LABELS)[0]
        assert [body.get("logprobs") for _, _, body in requests] == [True, None]
        named.choose(ASK, ["?"], LABELS)
        assert [body.get("logprobs") for _, _, body in requests][2:] == [None], "it is not asked for them again"
    assert not choice.measured
    assert sorted(choice.probabilities) == [0.0, 1.0]


def test_labels_that_begin_alike_are_named() -> None:
    assert told_apart(["relevant", "irrelevant"])
    assert not told_apart(["supports", "Silent"])
    with serving(well(True)) as (address, requests):
        assert not adapter(address).choose(ASK, ["?"], ["supports", "silent"])[0].measured
        assert len(requests) == 1


def test_a_label_that_is_not_offered_is_an_error() -> None:
    with serving(with_text(f'"{SECRET}"')) as (address, _), pytest.raises(Rejected, match="labels") as caught:
        adapter(address).choose(ASK, ["?"], LABELS)
    assert SECRET not in str(caught.value)


def test_labels_are_read_without_case_and_blanks() -> None:
    with serving(offering((" Relevant", 0.95), ("irrelevant", 0.02))) as (address, _):
        choice = adapter(address).choose(ASK, ["?"], ("relevant", "irrelevant"))[0]
    assert choice.measured
    assert choice.probabilities[0] > 0.9


def test_what_is_no_label_is_not_measured() -> None:
    """A thinking model's first token says nothing of the labels that happen to stand beside it."""
    with serving(offering(("<think>", 0.9999), ("relevant", 2e-5), ("irrelevant", 1e-5))) as (address, requests):
        choice = adapter(address).choose(ASK, ["?"], ("relevant", "irrelevant"))[0]
        assert len(requests) == 2, "it is made to name one"
    assert (choice.measured, choice.probabilities) == (False, (0.0, 1.0))


def offering(*tokens: tuple[str, float]) -> Handle:
    """A server that offers ``tokens`` first, and names "Irrelevant" after some thought."""

    def handle(handler: Handler, body: dict[str, Any]) -> None:
        text = '<think>The passage "relevant"...</think>\n"Irrelevant"'
        choice: dict[str, Any] = {"message": {"content": text}, "finish_reason": "stop"}
        if body.get("logprobs"):
            rows = [{"token": token, "logprob": math.log(share)} for token, share in tokens]
            choice["logprobs"] = {"content": [{"top_logprobs": rows}]}
        handler.answer({"choices": [choice]})

    return handle


def test_thinking_is_switched_off_and_a_server_that_does_not_know_how_is_not_asked_again() -> None:
    with serving(well(True)) as (address, requests):
        adapter(address).complete(Request(ASK, 8))
        assert requests[0][2]["chat_template_kwargs"] == {"enable_thinking": False}

    def strict(handler: Handler, body: dict[str, Any]) -> None:
        return handler.answer({}, 400) if "chat_template_kwargs" in body else well(True)(handler, body)

    with serving(strict) as (address, requests):
        model = adapter(address)
        model.complete(Request(ASK, 8))
        model.complete(Request(ASK, 8))
        assert ["chat_template_kwargs" in body for _, _, body in requests] == [True, False, False]


# --- what the server can do -------------------------------------------------------------------------------------------


def without_schema(handler: Handler, body: dict[str, Any]) -> None:
    """Refuses to hold its model to a schema, which reads one in the prompt all the same."""
    if handler.path == "/tokenize" or "response_format" in body:
        return handler.answer({"error": {"type": "invalid_request_error", "param": "response_format"}}, 400)
    asked = body["messages"][-1]["content"]
    text = '{"label": "no"}' if '"label"' in asked else "no"
    return handler.answer({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})


def held(handler: Handler, body: dict[str, Any]) -> None:
    """Holds its model to the schema of the probe."""
    if "response_format" not in body:
        return well(True)(handler, body)
    word = body["response_format"]["json_schema"]["schema"]["properties"]["word"]["enum"][0]
    return with_text(json.dumps({"word": word}))(handler, body)


def test_what_a_server_can_do_is_found_out() -> None:
    for handle, features in (
        (held, Features()),
        (well(True), Features(schema=False)),  # it takes the field and writes what it likes
        (without_schema, Features(schema=False, logprobs=False)),
    ):
        with serving(handle) as (address, _):
            assert adapter(address).probe() == features


def test_a_server_that_fails_is_not_taken_for_one_that_cannot() -> None:
    def breaks(handler: Handler, body: dict[str, Any]) -> None:
        return handler.answer({}, 503) if "response_format" in body else well(True)(handler, body)

    with serving(breaks) as (address, _), pytest.raises(ModelError, match="HTTP 503"):
        adapter(address).probe()


def test_without_schemas_the_schema_stands_in_the_prompt_and_the_reply_is_validated() -> None:
    with serving(without_schema) as (address, requests):
        model = adapter(address, features=Features(schema=False, logprobs=False))
        assert model.complete(Request(ASK, 64, SCHEMA)).value == {"label": "no"}
        assert model.choose(ASK, ["?"], LABELS)[0].probabilities == (0.0, 1.0)
        assert not any("response_format" in body or "logprobs" in body for _, _, body in requests)
    with serving(with_text("yes, it is")) as (address, _), pytest.raises(Rejected):
        adapter(address, features=Features(schema=False)).complete(Request(ASK, 64, SCHEMA))


def test_branches_are_asked_side_by_side_after_the_first() -> None:
    running, most = [0], [0]

    def slow(handler: Handler, body: dict[str, Any]) -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        time.sleep(0.1)
        running[0] -= 1
        well(True)(handler, body)

    told: list[tuple[int, int]] = []
    with serving(slow) as (address, _):
        branches = [f"? {'dose ' * number}" for number in range(5)]
        choices = adapter(address).choose(ASK, branches, LABELS, Watch(progress=lambda *count: told.append(count)))
        assert [choice.probabilities for choice in choices] == [
            adapter(address).choose(ASK, [branch], LABELS)[0].probabilities for branch in branches
        ]
    assert most[0] > 1
    assert told == [(number, 5) for number in range(1, 6)]


def test_one_branch_that_fails_ends_the_others() -> None:
    def fails(handler: Handler, body: dict[str, Any]) -> None:
        text = body["messages"][-1]["content"]
        (silent if "slow" in text else with_text(None) if "bad" in text else well(True))(handler, body)

    with serving(fails) as (address, _):
        began = time.monotonic()
        with pytest.raises(Rejected):
            adapter(address).choose(ASK, ["?", " bad?", " slow?", " slow?"], LABELS)
        assert time.monotonic() - began < 1


# --- streaming --------------------------------------------------------------------------------------------------------


def test_a_reply_is_streamed_where_somebody_listens() -> None:
    heard: list[str] = []
    with serving(well(True)) as (address, requests):
        reply = adapter(address).complete(Request(ASK, 8), Watch(token=heard.append))
        assert requests[0][2]["stream"] is True
    assert heard == list(reply.text.partition(" "))
    assert reply.prompt_tokens > 3
    assert reply.finish == "stop"


def test_a_server_that_does_not_stream_is_heard_all_the_same() -> None:
    heard: list[str] = []
    with serving(with_text("in one piece")) as (address, _):
        adapter(address).complete(Request(ASK, 8), Watch(token=heard.append))
    assert heard == ["in one piece"]


def test_a_stream_that_breaks_off_is_an_error_and_nothing_is_heard_twice() -> None:
    heard: list[str] = []
    with serving(lambda handler, _: handler.stream(*pieces(f"the {SECRET}", "stop")[:-1])) as (address, requests):
        with pytest.raises(ModelError, match="broke off") as caught:
            adapter(address).complete(Request(ASK, 8), Watch(token=heard.append))
        assert len(requests) == 1
    assert heard == ["the", " ", SECRET]
    assert SECRET not in str(caught.value)


def test_an_error_in_a_stream_is_one() -> None:
    with (
        serving(lambda handler, _: handler.stream({"error": {"message": SECRET}})) as (address, _),
        pytest.raises(ModelError, match=phrase("chat.server_completion")) as caught,
    ):
        adapter(address).complete(Request(ASK, 8), Watch(token=print))
    assert SECRET not in str(caught.value)


def test_a_piece_of_a_stream_that_is_no_text_is_an_error() -> None:
    heard: list[str] = []
    event = {"choices": [{"delta": {"content": 5}}]}
    with (
        serving(lambda handler, _: handler.stream(event)) as (address, _),
        pytest.raises(ModelError, match=phrase("chat.server_completion")),
    ):
        adapter(address).complete(Request(ASK, 8), Watch(token=heard.append))
    assert not heard


# --- what servers refuse ----------------------------------------------------------------------------------------------


REFUSALS: dict[str, tuple[int, dict[str, Any], str]] = {
    "OpenAI": (400, {"error": {"message": SECRET, "code": "context_length_exceeded"}}, "chat.server_too_long"),
    "llama.cpp": (400, {"error": {"code": 400, "type": "exceed_context_size_error"}}, "chat.server_too_long"),
    "vLLM": (400, {"error": {"type": "BadRequestError", "param": "input_tokens"}}, "chat.server_too_long"),
    "another": (400, {"error": {"type": "invalid_request_error", "param": "seed"}}, "chat.server_refused"),
    "no object": (400, {"object": "error", "message": SECRET, "type": SECRET + " is"}, "chat.server_refused"),
    "a key": (401, {"error": {"message": SECRET}}, "chat.server_key"),
    "a model": (404, {"error": {"message": SECRET}}, "chat.server_unknown"),
    "too many": (429, {}, "chat.server_busy"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_told_as_what_it_is(name: str) -> None:
    status, error, code = REFUSALS[name]
    with serving(lambda handler, _: handler.answer(error, status)) as (address, requests):
        with pytest.raises(ModelError) as caught:
            adapter(address).complete(Request(ASK, 8))
        if code == "chat.server_too_long":
            assert len(requests) == 1, "nothing else makes it shorter"
    assert caught.value.message.code == code
    assert SECRET not in str(caught.value)
    if name == "another":
        assert "invalid_request_error, seed" in str(caught.value)


@pytest.mark.parametrize("fault", ["error", "break", "silence"])
def test_what_may_pass_is_tried_once_more(fault: str) -> None:
    failed: list[str] = []

    def first_fails(handler: Handler, body: dict[str, Any]) -> None:
        failed.append(fault)
        (faults[fault] if len(failed) == 1 else well(True))(handler, body)

    faults: dict[str, Handle] = {
        "error": lambda handler, _: handler.answer({}, 503),
        "break": lambda handler, _: handler.connection.shutdown(2),
        "silence": silent,
    }
    with serving(first_fails) as (address, _):
        assert adapter(address, seconds=0.5).complete(Request(ASK, 8)).text.startswith("counted")


FITS = [
    '```json\n{"label": "yes"}\n```',
    'Sure, here it is:\n{"label": "yes"}',
    '<think>{"label": "no"}?</think>{"label": "yes"}',
    'I think {"label": "no"} is wrong.</think>\n{"label": "yes"}',
    ' {"label": "yes"}\n\nI hope this helps.',
]


@pytest.mark.parametrize("text", FITS)
def test_what_stands_around_an_object_is_taken_off(text: str) -> None:
    with serving(with_text(text)) as (address, _):
        assert adapter(address).complete(Request(ASK, 8, SCHEMA)).value == {"label": "yes"}


@pytest.mark.parametrize("text", ["<think>endless", "```\n{}\n```\n```\n{}\n```", '{"label": "yes"'])
def test_what_is_no_whole_object_is_not_mended(text: str) -> None:
    with serving(with_text(text)) as (address, _), pytest.raises(Rejected):
        adapter(address).complete(Request(ASK, 8, SCHEMA))


# --- which servers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "http://example.org:80"])
def test_a_server_that_is_not_listed_is_never_dialled(address: str) -> None:
    with pytest.raises(BadSettings, match="not listed"):
        OpenAIServer(address, "m", 100, ChatSettings(servers=("http://127.0.0.1:8000",)))


@pytest.mark.parametrize(
    "address", ["127.0.0.1:80", "ftp://host", "http://", "http://host:port", "http://a@host", "http://h/?q"]
)
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(BadSettings, match="not an address"):
        OpenAIServer(address, "m", 100, ChatSettings(servers=(address,)))


def test_the_servers_of_the_settings_file(tmp_path: Path) -> None:
    (tmp_path / "localmed.toml").write_text('[chat]\nservers = ["http://gpu-server:8000"]\ngpu_layers = -1\n')
    assert load(tmp_path).chat.servers == ("http://gpu-server:8000",)
    assert ChatSettings().servers == ()


# --- servers that answer wrongly, slowly or not at all ---------------------------------------------------------------

WRONG: dict[str, tuple[Handle, str]] = {
    "no JSON": (lambda handler, _: handler.say(f"{SECRET} <html>".encode()), phrase("chat.server_no_object")),
    "a list": (lambda handler, _: handler.answer([SECRET]), phrase("chat.server_no_object")),
    "no completion": (lambda handler, _: handler.answer({"choices": []}), phrase("chat.server_completion")),
    "no text": (with_text(None), "gave no reply"),
    "a filter": (with_text(SECRET, "content_filter"), "gave no reply"),
    "an error": (lambda handler, body: handler.answer({"error": body}, 500), "HTTP 500"),
    "a redirection": (lambda handler, _: handler.say(b"", 307), "HTTP 307"),
    "cut": (lambda handler, _: handler.say(b'{"choices"', announced=500), "broke off|within"),
    "nothing": (lambda handler, _: handler.connection.shutdown(2), "broke off|reached"),
    "another protocol": (lambda handler, _: handler.raw(b"SSH-2.0-x\r\n\r\n"), "broke off"),
    "too much": (lambda handler, _: handler.say(b" " * 200_000), "more than 100000 bytes"),
    "silence": (silent, "did not answer within"),
    "a drip": (dripping, "did not answer within"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_server_that_answers_wrongly_is_a_clear_error_in_bounded_time(name: str) -> None:
    handle, why = WRONG[name]
    with serving(handle) as (address, _):
        began = time.monotonic()
        with pytest.raises(ModelError, match=why) as caught:
            adapter(address, seconds=0.5).complete(Request(ASK, 8))
        assert time.monotonic() - began < 2
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("text", ["{", '{"label": "perhaps"}', "Sure! {}", '{"label": "yes"} {"label": "no"}'])
def test_a_reply_that_is_not_of_the_schema_is_an_error(text: str) -> None:
    with serving(with_text(text)) as (address, _), pytest.raises(ModelError, match=r"not JSON|does not fit") as caught:
        adapter(address).complete(Request(ASK, 8, SCHEMA))
    assert "perhaps" not in str(caught.value)


def test_a_server_that_is_not_there() -> None:
    with serving(silent) as (address, _):
        pass
    with pytest.raises(ModelError, match="cannot be reached"):
        adapter(address).complete(Request(ASK, 8))


def test_cancelling_does_not_wait_for_the_server() -> None:
    with serving(silent) as (address, _):
        began = time.monotonic()
        with pytest.raises(Cancelled):
            adapter(address).complete(Request(ASK, 8), Watch(cancelled=lambda: time.monotonic() > began + 0.1))
        assert time.monotonic() - began < 1
