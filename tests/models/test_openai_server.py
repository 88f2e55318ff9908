"""The server adapter: the port's rules with a server that behaves, clear errors in bounded time with the others."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from localmed.config import ChatSettings
from localmed.domain.errors import BadSettings, Cancelled, ModelError, Rejected
from localmed.domain.ports import Request, Watch
from localmed.models.openai_server import BYTES_A_TOKEN, OpenAIServer, have_distinct_initials
from localmed.models.registry.tested import Features
from tests.models.chat_contract import ASK, LABELS, SCHEMA, SECRET, ChatContract
from tests.models.chat_server import Handle, Handler, dripping, pieces, serving, silent, well, with_text

ALL = Features()


def adapter(
    address: str, seconds: float = 5.0, size: int = 100_000, key: str = "", features: Features = ALL
) -> OpenAIServer:
    settings = ChatSettings(servers=(address,), server_seconds=seconds, connect_seconds=1.0, reply_bytes=size)
    return OpenAIServer(address, "some-model", 2000, settings, key, lambda: features)


@contextmanager
def on(handle: Handle, **options: Any) -> Iterator[tuple[OpenAIServer, list[Any]]]:
    """The adapter on a server that does what ``handle`` says, and the bodies that it is asked."""
    with serving(handle) as (address, requests):
        yield adapter(address, **options), requests


@pytest.fixture(params=[True, False], ids=["logprobs", "none"])
def model(request: pytest.FixtureRequest) -> Iterator[OpenAIServer]:
    with on(well(request.param)) as (served, _):
        yield served


class TestContract(ChatContract):
    """What every adapter must do, from a server with log-probabilities and from one without."""


def test_without_a_tokenizer_tokens_are_estimated() -> None:
    with on(lambda handler, _: handler.say(b"not found", 404)) as (model, _):
        assert model.count(["x" * 30, "", "儿童"]) == [30 // BYTES_A_TOKEN, 0, 2]


def test_what_is_asked_is_what_the_request_says() -> None:
    with on(well(True), key="letmein") as (model, requests):
        model.complete(Request(ASK, 64, SCHEMA, seed=7))
        path, headers, body = requests[0]
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer letmein"
    assert body["messages"] == [{"role": message.role, "content": message.content} for message in ASK]
    assert (body["temperature"], body["seed"], body["max_tokens"], body["stream"]) == (0.0, 7, 64, False)
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert body["chat_template_kwargs"] == {"enable_thinking": False}


def test_a_server_that_cannot_switch_thinking_off_is_not_asked_again() -> None:
    def strict(handler: Handler, body: dict[str, Any]) -> None:
        return handler.answer({}, 400) if "chat_template_kwargs" in body else well(True)(handler, body)

    with on(strict) as (model, requests):
        for _ in range(2):
            model.complete(Request(ASK, 8))
        assert ["chat_template_kwargs" in body for _, _, body in requests] == [True, False, False]


# --- choices ----------------------------------------------------------------------------------------------------------


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


RELEVANCE = ("relevant", "irrelevant")
# What a server offers, the labels, whether they are measured, their probabilities, and the requests until then.
CHOSEN: list[tuple[Handle, Sequence[str], bool, tuple[float, float], int]] = [
    (well(True), LABELS, True, (0.3 / 0.55, 0.25 / 0.55), 1),  # five words
    (well(False), LABELS, False, (0.0, 1.0), 2),
    (well(True), ("supports", "silent"), False, (0.0, 1.0), 1),  # they begin alike
    (offering((" Relevant", 0.95), ("irrelevant", 0.05)), RELEVANCE, True, (0.95, 0.05), 1),
    # A thinking model's first token says nothing of the labels that happen to stand beside it.
    (offering(("<think>", 0.9999), ("relevant", 2e-5)), ("Relevant", "Irrelevant"), False, (0.0, 1.0), 2),
]


@pytest.mark.parametrize("case", CHOSEN)
def test_labels_are_measured_by_the_first_token_or_named(
    case: tuple[Handle, Sequence[str], bool, tuple[float, float], int],
) -> None:
    handle, labels, measured, probabilities, count = case
    with on(handle) as (model, requests):
        [choice] = model.choose(ASK, ["?"], labels)
        assert (choice.measured, len(requests)) == (measured, count)
        assert choice.probabilities == pytest.approx(probabilities)
        if handle is CHOSEN[1][0]:
            model.choose(ASK, ["?"], LABELS)
            assert [body.get("logprobs") for _, _, body in requests] == [True, None, None], "not asked for again"


def test_a_label_that_is_not_offered_is_an_error() -> None:
    assert have_distinct_initials(RELEVANCE)
    assert not have_distinct_initials(["supports", "Silent"])
    with on(with_text(f'"{SECRET}"')) as (model, _), pytest.raises(Rejected, match="labels") as caught:
        model.choose(ASK, ["?"], LABELS)
    assert SECRET not in str(caught.value)


def test_branches_are_asked_side_by_side_after_the_first() -> None:
    running, most = [0], [0]

    def slow(handler: Handler, body: dict[str, Any]) -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        time.sleep(0.1)
        running[0] -= 1
        well(True)(handler, body)

    told: list[tuple[int, int]] = []
    with on(slow) as (model, _):
        branches = [f"? {'dose ' * number}" for number in range(5)]
        choices = model.choose(ASK, branches, LABELS, Watch(progress=lambda *count: told.append(count)))
        assert [choice.probabilities for choice in choices] == [
            model.choose(ASK, [branch], LABELS)[0].probabilities for branch in branches
        ]
    assert most[0] > 1
    assert told == [(number, 5) for number in range(1, 6)]


def test_one_branch_that_fails_ends_the_others() -> None:
    def fails(handler: Handler, body: dict[str, Any]) -> None:
        text = body["messages"][-1]["content"]
        (silent if "slow" in text else with_text(None) if "bad" in text else well(True))(handler, body)

    with on(fails) as (model, _):
        began = time.monotonic()
        with pytest.raises(Rejected):
            model.choose(ASK, ["?", " bad?", " slow?", " slow?"], LABELS)
        assert time.monotonic() - began < 1


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
        with on(handle) as (model, _):
            assert model.probe() == features

    def breaks(handler: Handler, body: dict[str, Any]) -> None:
        return handler.answer({}, 503) if "response_format" in body else well(True)(handler, body)

    with on(breaks) as (model, _), pytest.raises(ModelError, match="HTTP 503"):  # it fails, which is something else
        model.probe()


def test_without_schemas_the_schema_stands_in_the_prompt_and_the_reply_is_validated() -> None:
    with on(without_schema, features=Features(schema=False, logprobs=False)) as (model, requests):
        assert model.complete(Request(ASK, 64, SCHEMA)).value == {"label": "no"}
        assert model.choose(ASK, ["?"], LABELS)[0].probabilities == (0.0, 1.0)
        assert not any("response_format" in body or "logprobs" in body for _, _, body in requests)
    with on(with_text("yes, it is"), features=Features(schema=False)) as (model, _), pytest.raises(Rejected):
        model.complete(Request(ASK, 64, SCHEMA))


# --- streaming --------------------------------------------------------------------------------------------------------


def test_a_reply_is_streamed_where_somebody_listens() -> None:
    heard: list[str] = []
    with on(well(True)) as (model, requests):
        reply = model.complete(Request(ASK, 8), Watch(token=heard.append))
        assert requests[0][2]["stream"] is True
    assert heard == list(reply.text.partition(" "))
    assert reply.prompt_tokens > 3
    assert reply.finish == "stop"
    with on(with_text("in one piece")) as (model, _):  # a server that does not stream
        model.complete(Request(ASK, 8), Watch(token=heard.append))
    assert heard[3:] == ["in one piece"]


@pytest.mark.parametrize(
    ("events", "code", "expected"),
    [
        (pieces(f"the {SECRET}", "stop")[:-1], "chat.server_broke_off", ["the", " ", SECRET]),  # nothing is heard twice
        ([{"error": {"message": SECRET}}], "chat.server_completion", []),
        ([{"choices": [{"delta": {"content": 5}}]}], "chat.server_completion", []),
    ],
)
def test_a_stream_that_goes_wrong_is_an_error(events: list[Any], code: str, expected: list[str]) -> None:
    heard: list[str] = []
    with on(lambda handler, _: handler.stream(*events)) as (model, requests):
        with pytest.raises(ModelError) as caught:
            model.complete(Request(ASK, 8), Watch(token=heard.append))
        assert len(requests) == 1
    assert (caught.value.message.code, heard) == (code, expected)
    assert SECRET not in str(caught.value)


# --- servers that refuse, or answer wrongly, slowly or not at all -----------------------------------------------------


def saying(status: int, **error: object) -> Handle:
    return lambda handler, _: handler.answer({"error": error}, status)


WRONG: dict[str, tuple[Handle, str]] = {  # what a server does, and the end of the error's code
    "OpenAI": (saying(400, message=SECRET, code="context_length_exceeded"), "too_long"),
    "llama.cpp": (saying(400, code=400, type="exceed_context_size_error"), "too_long"),
    "vLLM": (saying(400, type="BadRequestError", param="input_tokens"), "too_long"),
    "another": (saying(400, type="invalid_request_error", param="seed"), "refused"),
    "no object": (lambda handler, _: handler.answer({"message": SECRET, "type": SECRET + " is"}, 400), "refused"),
    "a key": (saying(401, message=SECRET), "key"),
    "a model": (saying(404, message=SECRET), "unknown"),
    "too many": (saying(429), "busy"),
    "an error": (lambda handler, body: handler.answer({"error": body}, 500), "failed"),
    "a redirection": (lambda handler, _: handler.say(b"", 307), "refused"),
    "no JSON": (lambda handler, _: handler.say(f"{SECRET} <html>".encode()), "no_object"),
    "a list": (lambda handler, _: handler.answer([SECRET]), "no_object"),
    "no completion": (lambda handler, _: handler.answer({"choices": []}), "completion"),
    "no text": (with_text(None), "reply_empty"),
    "a filter": (with_text(SECRET, "content_filter"), "reply_empty"),
    "cut": (lambda handler, _: handler.say(b'{"choices"', announced=500), "broke_off late"),
    "nothing": (lambda handler, _: handler.connection.shutdown(2), "broke_off unreachable"),
    "another protocol": (lambda handler, _: handler.raw(b"SSH-2.0-x\r\n\r\n"), "broke_off"),
    "too much": (lambda handler, _: handler.say(b" " * 200_000), "bytes"),
    "silence": (silent, "late"),
    "a drip": (dripping, "late"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_server_that_refuses_or_answers_wrongly_is_a_clear_error_in_bounded_time(name: str) -> None:
    handle, code = WRONG[name]
    with on(handle, seconds=0.5) as (model, requests):
        began = time.monotonic()
        with pytest.raises(ModelError) as caught:
            model.complete(Request(ASK, 8))
        assert time.monotonic() - began < 2
        assert len(requests) == 1 or code != "too_long", "nothing else makes it shorter"
    assert caught.value.message.code.removeprefix("chat.").removeprefix("server_") in code.split()
    assert SECRET not in str(caught.value)
    assert name != "another" or "invalid_request_error, seed" in str(caught.value)


def test_a_server_that_is_not_there() -> None:
    with on(silent) as (model, _):
        pass
    with pytest.raises(ModelError, match="cannot be reached"):
        model.complete(Request(ASK, 8))


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
    with on(first_fails, seconds=0.5) as (model, _):
        assert model.complete(Request(ASK, 8)).text.startswith("counted")


def test_cancelling_does_not_wait_for_the_server() -> None:
    with on(silent) as (model, _):
        began = time.monotonic()
        with pytest.raises(Cancelled):
            model.complete(Request(ASK, 8), Watch(cancelled=lambda: time.monotonic() > began + 0.1))
        assert time.monotonic() - began < 1


# --- which servers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "listed", "code"),
    [
        *((name, False, "unlisted") for name in ("http://127.0.0.1:9", "http://example.org:80")),
        *((name, True, "address") for name in ("127.0.0.1:80", "ftp://host", "http://", "http://host:port",
                                               "http://a@host", "http://h/?q")),
    ],
)  # fmt: skip
def test_a_server_that_is_not_listed_or_none_is_never_dialled(address: str, listed: bool, code: str) -> None:
    with pytest.raises(BadSettings) as caught:
        OpenAIServer(address, "m", 100, ChatSettings(servers=(address if listed else "http://127.0.0.1:8000",)))
    assert caught.value.message.code == f"settings.server_{code}"
    assert not ChatSettings().servers, "none by default"
