"""A small server on the loopback interface that speaks OpenAI's chat completions, well or badly, as it is told."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CONTEXT = 2000  # words

Handle = Callable[["Handler", dict[str, Any]], None]


class Handler(BaseHTTPRequestHandler):
    """Does with each request what ``server.handle`` says."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, dict(self.headers), body))  # type: ignore[attr-defined]
        self.server.handle(self, body)  # type: ignore[attr-defined]

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""

    def say(self, content: bytes, status: int = 200, announced: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content) if announced is None else announced))
        self.send_header("Location", "http://192.0.2.1/elsewhere")  # to be followed by nobody
        self.end_headers()
        self.wfile.write(content)

    def raw(self, content: bytes) -> None:
        self.wfile.write(content)

    def stream(self, *events: object) -> None:
        """A streamed completion; the connection ends with it."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in events:
            self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
            self.wfile.flush()

    def answer(self, value: object, status: int = 200) -> None:
        self.say(json.dumps(value).encode(), status)


@contextmanager
def serving(handle: Handle) -> Iterator[tuple[str, list[Any]]]:
    """The server's address and the list of what it is asked: (path, headers, body)."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.block_on_close = True, False
    server.handle, server.asked = handle, []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.asked  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def well(logprobs: bool) -> Handle:
    """A server that does as it should, with log-probabilities or without."""

    def handle(handler: Handler, body: dict[str, Any]) -> None:
        if handler.path == "/tokenize":
            return handler.answer({"tokens": body["prompt"].split()})
        words = " ".join(turn["content"] for turn in body["messages"]).split()
        if len(words) + body["max_tokens"] > CONTEXT:
            return handler.answer({"error": {"message": f"too long: {words}"}}, 400)
        text = reply_text(body, len(words))
        tokens = text.split(" ")
        cut = tokens[: body["max_tokens"]]
        finish = "length" if len(cut) < len(tokens) else "stop"
        choice: dict[str, Any] = {"message": {"role": "assistant", "content": " ".join(cut)}, "finish_reason": finish}
        if logprobs and body.get("logprobs"):
            choice["logprobs"] = {"content": [{"top_logprobs": best(len(words))}]}
        usage = {"prompt_tokens": len(words), "completion_tokens": len(cut)}
        if body["stream"]:
            return handler.stream(*pieces(" ".join(cut), finish), {"choices": [], "usage": usage})
        return handler.answer({"choices": [choice], "usage": usage})

    return handle


def pieces(text: str, finish: str) -> list[dict[str, Any]]:
    """The events of a streamed text: who speaks, the words, and why it ended."""
    parts = [{"role": "assistant", "content": ""}, *({"content": part} for part in text.partition(" ")), {}]
    ends = [*(None for _ in parts[1:]), finish]
    return [{"choices": [{"delta": part, "finish_reason": end}]} for part, end in zip(parts, ends, strict=True)]


def reply_text(body: dict[str, Any], words: int) -> str:
    """What a model would say: an object of the schema's first choices, or the number of words."""
    if "response_format" not in body:
        return f"counted {words} words"
    schema = body["response_format"]["json_schema"]["schema"]
    if "enum" in schema:
        return json.dumps(schema["enum"][words % len(schema["enum"])])
    return '{ "label" : "yes" }'


def best(words: int) -> list[dict[str, Any]]:
    """Log-probabilities that depend on the prompt: yes, a spelling of no, and something else."""
    share = (words % 9 + 1) / 20
    return [{"token": token, "logprob": math.log(p)} for token, p in ((" yes", share), ("n", 0.25), ("!", 0.1))]


def silent(handler: Handler, _body: dict[str, Any]) -> None:
    """Says nothing for longer than anyone waits."""
    time.sleep(3)


def dripping(handler: Handler, _body: dict[str, Any]) -> None:
    """A byte now and then, each within any timeout for a single read."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    try:
        for _ in range(60):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.05)
    except OSError:
        return


def with_text(text: object, finish: object = "stop") -> Handle:
    """Every reply is ``text``."""
    choice = {"message": {"content": text}, "finish_reason": finish}
    usage = {"prompt_tokens": 1, "completion_tokens": 1}
    return lambda handler, _: handler.answer({"choices": [choice], "usage": usage})
