"""A ``ChatModel`` on a server inside the hospital that speaks OpenAI's chat completions: vLLM, llama-server, others.

Only servers listed in ``chat.servers`` are dialled; any other is refused before its name is looked up. Redirections and
proxies are not followed. Each request has one deadline: a watcher thread closes the connection at the deadline or when
the caller cancels, however slowly the server sends.

A schema is sent as ``response_format``, or appended to the prompt if the server does not enforce schemas; the reply is
validated here either way. A choice is read from the log-probabilities of the first token (servers return at most 20) if
the labels differ in their first character and together have at least half of the probability. Otherwise the model is
asked to name a label, and the ``Choice`` is marked as not measured. Branches are requested in parallel. Tokens are
counted by ``/tokenize`` (vLLM, llama-server), else estimated.

The self-test calls ``probe`` to find out what the server can do; the result is stored by ``registry/tested.py``.
Reasoning is switched off by ``chat_template_kwargs`` (vLLM, SGLang, llama-server); a server that refuses this field is
not sent it again. Transient failures (HTTP 429 and 5xx, a broken connection, silence) are retried once, on another
replica if there is one, unless part of the reply was already passed on. A reply without text is ``Rejected``.

Errors contain the HTTP status and the codes of the server's error object, never a prompt, a reply or the server's
message. The standard library's client is enough: pools, proxies, redirections and cookies are unwanted here, and no
HTTP library ends a waiting read when the caller cancels.
"""

from __future__ import annotations

import http.client
import json
import math
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, NoReturn
from urllib.parse import urlsplit

from localmed.config import ChatSettings
from localmed.domain import Parameter
from localmed.domain.errors import BadSettings, Cancelled, Faltered, ModelError, Refused, Rejected, TooLong
from localmed.domain.ports import UNWATCHED, ChatIdentity, Choice, Message, Reply, Request, Watch
from localmed.models import structured
from localmed.models.registry.tested import Features

# --- replicas ---------------------------------------------------------------------------------------------------------

AT_ONCE = 8  # requests of one replica: slots of a llama-server, or a batch of vLLM
REST_SECONDS = 10.0  # that a failed replica is left out: about the time of a server's restart
LOOK = 0.05  # seconds between checks for cancellation

Address = tuple[str, str, int]  # scheme, host, port
Probe = Callable[[Address], bool]  # whether the server is healthy, within seconds


@dataclass(slots=True, eq=False)
class Replica:
    """A server, guarded by the lock of ``Replicas``. ``out_until`` is monotonic time, 0.0 while it is healthy."""

    address: Address
    running: int = 0
    out_until: float = 0.0


class Replicas:
    """The servers of one model, for any number of threads.

    The least busy server takes a request, at most ``AT_ONCE`` each; further requests wait. A server that fails is left
    out for ``REST_SECONDS`` and then asked for its health (``/health`` of vLLM and llama-server; any status below 500
    will do). If all are left out, the one that failed first is tried.
    """

    def __init__(self, addresses: Sequence[Address], probe: Probe, at_once: int = AT_ONCE) -> None:
        self.replicas = [Replica(address) for address in addresses]
        self._probe, self._at_once = probe, at_once
        self._changed = threading.Condition()

    @contextmanager
    def reserve(self, seconds: float, watch: Watch, but: Replica | None = None) -> Iterator[Replica]:
        """A place at a replica, if possible not ``but``; raise ``ModelError`` if none is free within ``seconds``."""
        replica = self._find(time.monotonic() + seconds, watch, but)
        try:
            yield replica
            replica.out_until = 0.0
        except Faltered:
            replica.out_until = time.monotonic() + REST_SECONDS
            raise
        finally:
            with self._changed:
                replica.running -= 1
                self._changed.notify_all()

    def _find(self, deadline: float, watch: Watch, but: Replica | None) -> Replica:
        left_out = [but] if but else []
        while True:
            with self._changed:
                while (replica := self._best(left_out)) is None:
                    if watch.cancelled():
                        raise Cancelled("model.cancelled")
                    if time.monotonic() > deadline:
                        raise ModelError("chat.server_full", count=len(self.replicas) * self._at_once)
                    self._changed.wait(LOOK)
                replica.running += 1
                all_out = all(each.out_until for each in self.replicas)
            if not replica.out_until or all_out or self._probe(replica.address):
                return replica
            left_out.append(replica)
            with self._changed:
                replica.running -= 1
                replica.out_until = time.monotonic() + REST_SECONDS

    def _best(self, left_out: Sequence[Replica]) -> Replica | None:
        """The least busy healthy replica, else the one that failed first; None if all are full."""
        others = [replica for replica in self.replicas if replica not in left_out] or self.replicas
        now = time.monotonic()
        up = [replica for replica in others if replica.out_until <= now]
        free = [replica for replica in up or others if replica.running < self._at_once]
        if up:
            return min(free, key=lambda replica: (replica.running, replica.out_until > 0), default=None)
        return min(free, key=lambda replica: replica.out_until, default=None)


# --- the adapter ------------------------------------------------------------------------------------------------------

COMPLETIONS = "/v1/chat/completions"
TOP = 20  # requested log-probabilities; servers refuse more
GREEDY = {"max_tokens": 64, "temperature": 0.0, "seed": 0}  # a label in quotes has fewer tokens
NOT_THINKING = {"chat_template_kwargs": {"enable_thinking": False}}
LOGPROBS = GREEDY | {"max_tokens": 1, "logprobs": True, "top_logprobs": TOP}
BY_STATUS = {401: "key", 403: "key", 404: "unknown"}  # HTTP status -> fault
# Values of ``code``, ``type`` or ``param`` in an error object if the prompt is too long (OpenAI, llama-server, vLLM).
TOO_LONG = frozenset({"context_length_exceeded", "exceed_context_size_error", "input_tokens"})
IN_WORDS = "\n\nReply with one JSON object that fits this JSON schema, and with nothing else:\n"
ODD_WORD = "quartz-7"  # no model writes it unless the schema is enforced
KINDS = {  # fault -> error class; others are ``ModelError``
    "too_long": TooLong,
    "refused": Refused,
    **dict.fromkeys(("late", "broke_off", "unreachable", "no_object", "busy", "failed"), Faltered),
}
PAUSE = 0.2  # seconds before a retry
BYTES_A_TOKEN = 3  # for the estimate: a Chinese character has three bytes and is one token, English has four a token

_READ = 2**16  # bytes
_CODE = re.compile(r"[A-Za-z][\w.-]{0,59}")  # an identifier, never a sentence that could quote a prompt


class OpenAIServer:
    """``server`` as listed in the settings ("http://host:port"), ``model`` as the server calls it.

    ``context`` is the server's context in tokens, ``key`` a bearer token. ``chat.replicas`` are further servers,
    started alike. ``features`` is called before each request, since another process may have run the self-test
    meanwhile.
    """

    def __init__(
        self,
        server: str,
        model: str,
        context: int,
        settings: ChatSettings,
        key: str = "",
        features: Callable[[], Features] = Features,
    ) -> None:
        addresses = dict.fromkeys(_address_of(name, settings.servers) for name in (server, *settings.replicas))
        self._replicas = Replicas(tuple(addresses), self._is_healthy)
        self._address = next(iter(addresses))
        self._model, self._settings = model, settings
        self._authorization = {"Authorization": f"Bearer {key}"} if key else {}
        self._fields: Mapping[str, Any] = {} if settings.thinking else NOT_THINKING
        self._features = features
        self._measures = True  # until the server returns no log-probabilities
        self.identity = ChatIdentity(f"{model} at {server}", "", context, remote=True)

    def complete(self, request: Request, watch: Watch = UNWATCHED) -> Reply:
        """See ``ChatModel``. The reply is streamed if ``watch`` listens to tokens."""
        body: dict[str, Any] = {"max_tokens": request.max_tokens, "temperature": request.temperature}
        messages = request.messages
        if request.schema is not None:
            if self._features().schema:
                body["response_format"] = _response_format(request.schema)
            else:
                messages = tuple(structured.append_branch(messages, IN_WORDS + json.dumps(request.schema)))
        if watch.token is not UNWATCHED.token:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        reply = self._complete(messages, body | {"seed": request.seed}, watch)
        return structured.validate_reply(reply, request.schema)

    def choose(
        self, prefix: Sequence[Message], branches: Sequence[str], labels: Sequence[str], watch: Watch = UNWATCHED
    ) -> list[Choice]:
        """See ``ChatModel``. One request a branch; the first runs alone: the server can cache the shared prefix."""
        structured.check_labels(labels)
        prompts = [structured.append_branch(prefix, branch) for branch in branches]
        if not prompts:
            return []
        failed = threading.Event()
        each = replace(watch, cancelled=lambda: failed.is_set() or watch.cancelled())
        choices = [self._choice(prompts[0], labels, each)]
        watch.progress(1, len(prompts))
        with ThreadPoolExecutor(AT_ONCE) as pool:
            try:
                for choice in pool.map(lambda prompt: self._choice(prompt, labels, each), prompts[1:]):
                    choices.append(choice)
                    watch.progress(len(choices), len(prompts))
            except BaseException:
                failed.set()
                raise
        return choices

    def probe(self, watch: Watch = UNWATCHED) -> Features:
        """Find out what the server can do by three short requests; raise if it cannot complete one."""
        greeting = (Message("user", "Write a short greeting."),)
        self._complete(greeting, GREEDY, watch)
        logprobs = bool(self._first_tokens(greeting, watch))
        schema = {"type": "object", "properties": {"word": {"enum": [ODD_WORD]}}, "required": ["word"]}
        try:
            reply = self._complete(greeting, GREEDY | {"response_format": _response_format(schema)}, watch)
            structured.validate_reply(reply, schema)
        except ModelError as error:
            if not isinstance(error, Rejected | Refused):
                raise
            return Features(schema=False, logprobs=logprobs)
        return Features(logprobs=logprobs)

    def count(self, texts: Sequence[str]) -> list[int]:
        """See ``CountingChat``; an estimate if the server does not count."""
        return [self._count(text) for text in texts]

    # --- choices ----------------------------------------------------------------------------------------------

    def _choice(self, messages: Sequence[Message], labels: Sequence[str], watch: Watch) -> Choice:
        features = self._features()
        if self._measures and features.logprobs and have_distinct_initials(labels):
            offered = self._first_tokens(messages, watch)
            read = _choice_of(offered, labels)
            if read is not None:
                return read
            self._measures = bool(offered)
        body = {"response_format": _response_format({"enum": list(labels)})} if features.schema else {}
        reply = structured.validate_reply(self._complete(messages, GREEDY | body, watch), None)
        named = structured.read_label(reply.text, labels)
        return Choice(tuple(float(place == named) for place in range(len(labels))), measured=False)

    def _first_tokens(self, messages: Sequence[Message], watch: Watch) -> list[tuple[str, float]]:
        """The most probable first tokens, normalised, with probabilities; none if the server returns none."""
        try:
            answer = self._post(messages, LOGPROBS, watch)
            offered = answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
            rows = [(structured.fold_label(str(row["token"])), float(row["logprob"])) for row in offered]
        except (Refused, LookupError, TypeError, ValueError):
            return []
        return [] if any(math.isnan(it) for _, it in rows) else [(token, math.exp(min(0.0, it))) for token, it in rows]

    # --- requests ----------------------------------------------------------------------------------------

    def _complete(self, messages: Sequence[Message], body: Mapping[str, Any], watch: Watch) -> Reply:
        answer = self._post(messages, body, watch)
        try:
            choice, usage = answer["choices"][0], answer.get("usage") or {}
            text, ended = choice["message"]["content"], choice["finish_reason"]
            reply = Reply(text, int(usage.get("prompt_tokens", 0)), int(usage.get("completion_tokens", 0)), ended)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
            self._fail("completion")
        if not isinstance(text, str) or ended not in ("stop", "length"):
            raise Rejected("chat.reply_empty")
        return reply

    def _post(self, messages: Sequence[Message], body: Mapping[str, Any], watch: Watch) -> dict[str, Any]:
        turns = [{"role": message.role, "content": message.content} for message in messages]
        whole: dict[str, Any] = {"model": self._model, "messages": turns, "stream": False, **body}
        status, answer = self._send({**whole, **self._fields}, watch)
        if status in (400, 422) and self._fields and not _is_too_long(answer):
            status, answer = self._send(whole, watch)
            if status == 200:
                self._fields = {}
        if status != 200:
            if _is_too_long(answer) or (status == 400 and self._overflows(messages, whole["max_tokens"])):
                self._fail("too_long", context=self.identity.context)
            if status in BY_STATUS:
                self._fail(BY_STATUS[status], status=status, model=self._model)
            self._fail("refused", status=status, kind=", ".join(_error_codes(answer)) or "-")
        return answer

    def _overflows(self, messages: Sequence[Message], reply: int) -> bool:
        """Whether prompt and reply exceed the context, for servers whose error has no code for it."""
        try:
            return sum(self.count([message.content for message in messages])) + reply > self.identity.context
        except ModelError:
            return False

    def _send(
        self, body: Mapping[str, Any], watch: Watch, path: str = COMPLETIONS, strict: bool = True
    ) -> tuple[int, dict[str, Any]]:
        """Status and reply; a transient failure is retried once, by another replica if there is one."""
        heard: list[str] = []

        def token(text: str) -> None:
            heard.append(text)
            watch.token(text)

        followed, first = replace(watch, token=token), None
        for last in (False, True):
            try:
                with self._replicas.reserve(self._settings.server_seconds, watch, first) as first:
                    return self._exchange(first.address, path, body, followed, strict)
            except Faltered:
                if heard or last:
                    raise
            if len(self._replicas.replicas) == 1:
                time.sleep(PAUSE)
        raise AssertionError("unreachable")

    def _count(self, text: str) -> int:
        body = {"model": self._model, "prompt": text, "content": text}
        status, answer = self._send(body, UNWATCHED, "/tokenize", strict=False)
        tokens = answer.get("tokens")
        if status == 200 and isinstance(tokens, list):
            return len(tokens)
        return -(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN)

    # --- the wire ---------------------------------------------------------------------------------------------

    def _exchange(
        self, address: Address, path: str, body: Mapping[str, Any], watch: Watch, strict: bool
    ) -> tuple[int, dict[str, Any]]:
        """Status and object of one request; a reply that is no object is an error if ``strict``, else empty."""
        if watch.cancelled():
            raise Cancelled("model.cancelled")
        connection = self._connection(address)
        headers = {"Content-Type": "application/json", **self._authorization}
        ended = _Deadline(time.monotonic() + self._settings.server_seconds, watch)
        try:
            connection.connect()
            with ended.watching(connection):
                connection.request("POST", path, json.dumps(body).encode("ascii"), headers)
                with connection.getresponse() as response:
                    streamed = response.headers.get_content_type() == "text/event-stream"
                    content = self._read_events(response, watch) if streamed else self._read_body(response)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._fail_for(error, ended, address)
        finally:
            connection.close()
        if ended.why:  # a connection that was shut down looks like the end of the answer
            self._fail_for(OSError(), ended, address)
        status = response.status
        answer = content if isinstance(content, dict) else self._object(content, strict and status == 200)
        if strict and (status >= 500 or status == 429) and not _is_too_long(answer):
            self._fail("busy" if status == 429 else "failed", address, status=status)
        if body.get("stream") and not streamed:  # the server ignored ``stream``
            watch.token(_text_of(answer))
        return status, answer

    def _connection(self, address: Address) -> http.client.HTTPConnection:
        scheme, host, port = address
        kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
        return kind(host, port, timeout=self._settings.connect_seconds)

    def _is_healthy(self, address: Address) -> bool:
        """Whether the server is healthy; each step may take ``chat.connect_seconds``."""
        connection = self._connection(address)
        try:
            connection.request("GET", "/health", headers=self._authorization)
            return connection.getresponse().status < 500
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _read_body(self, response: http.client.HTTPResponse) -> bytes:
        content = bytearray()
        while chunk := response.read1(_READ):
            content += chunk
            if len(content) > self._settings.reply_bytes:
                self._fail("bytes", most=self._settings.reply_bytes)
        if response.length:  # the announced length did not arrive
            raise http.client.IncompleteRead(b"")
        return bytes(content)

    def _read_events(self, response: http.client.HTTPResponse, watch: Watch) -> dict[str, Any]:
        """Read a streamed completion into the shape of a whole one, passing on each piece."""
        pieces, ended, usage, size = list[str](), "", dict[str, Any](), 0
        while not (ended and usage):  # the usage comes last
            line = response.readline(self._settings.reply_bytes)
            size += len(line)
            if size >= self._settings.reply_bytes:
                self._fail("bytes", most=self._settings.reply_bytes)
            data = line.removeprefix(b"data:").strip() if line.startswith(b"data:") else b""
            if not line or data == b"[DONE]":
                break
            if not data:
                continue
            try:
                piece, end, counts = _parse_event(json.loads(data))
            except (LookupError, TypeError, AttributeError, RecursionError):  # including an error within the stream
                self._fail("completion")
            ended, usage = end or ended, counts or usage
            if piece:
                pieces.append(piece)
                watch.token(piece)
        if not ended:
            raise http.client.IncompleteRead(b"")
        message = {"content": "".join(pieces)}
        return {"choices": [{"message": message, "finish_reason": ended}], "usage": usage}

    def _object(self, content: bytes, strict: bool) -> dict[str, Any]:
        with suppress(ValueError, RecursionError):
            if isinstance(answer := json.loads(content), dict):
                return answer
        if strict:
            self._fail("no_object")
        return {}

    def _fail_for(self, error: Exception, ended: _Deadline, address: Address) -> NoReturn:
        if ended.why == "cancelled":
            raise Cancelled("model.cancelled") from None
        if ended.why:
            self._fail("late", address, seconds=self._settings.server_seconds)
        if isinstance(error, http.client.HTTPException | ValueError):
            self._fail("broke_off", address, kind=type(error).__name__)
        self._fail("unreachable", address, kind=type(error).__name__)

    def _fail(self, fault: str, address: Address | None = None, **parameters: Parameter) -> NoReturn:
        """Raise the error ``chat.server_FAULT``."""
        scheme, host, port = address or self._address
        raise KINDS.get(fault, ModelError)(
            f"chat.server_{fault}", server=f"{scheme}://{host}:{port}", **parameters
        ) from None


class _Deadline:
    """Ends a request from outside. ``why`` is "late" or "cancelled", "" if it was not ended."""

    def __init__(self, deadline: float, watch: Watch) -> None:
        self._deadline, self._watch = deadline, watch
        self._over = threading.Event()
        self.why = ""

    @contextmanager
    def watching(self, connection: http.client.HTTPConnection) -> Iterator[None]:
        """Shut ``connection`` down at the deadline or when the caller cancels."""
        held = connection.sock
        held.settimeout(None)  # the watcher enforces the deadline
        watcher = threading.Thread(target=self._wait, args=(held,), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            self._over.set()
            watcher.join()

    def _wait(self, held: socket.socket) -> None:
        while not self._over.wait(LOOK):
            if self._watch.cancelled():
                self.why = "cancelled"
            elif time.monotonic() > self._deadline:
                self.why = "late"
            if self.why:
                with suppress(OSError):  # already closed
                    held.shutdown(socket.SHUT_RDWR)
                return


def _error_codes(answer: Mapping[str, Any]) -> list[str]:
    """The codes in a server's error object, in OpenAI's form or vLLM's older one."""
    error = answer.get("error")
    fields = error if isinstance(error, dict) else answer
    values = [fields.get(name) for name in ("code", "type", "param")]
    return [value for value in values if isinstance(value, str) and _CODE.fullmatch(value)]


def _is_too_long(answer: Mapping[str, Any]) -> bool:
    return not TOO_LONG.isdisjoint(_error_codes(answer))


def _parse_event(event: Any) -> tuple[str, str, dict[str, Any]]:
    """The text of one stream event, the finish reason ("" if not finished), and the token counts."""
    choice = event["choices"][0] if event["choices"] else {"delta": {}}
    text = choice["delta"].get("content") or ""
    if not isinstance(text, str):
        raise TypeError
    return text, choice.get("finish_reason") or "", event.get("usage") or {}


def _text_of(answer: Mapping[str, Any]) -> str:
    try:
        return str(answer["choices"][0]["message"]["content"] or "")
    except (LookupError, TypeError):
        return ""


def have_distinct_initials(labels: Sequence[str]) -> bool:
    """Whether ``labels`` differ in their first character, and therefore in their first token."""
    return len({label[0].casefold() for label in labels}) == len(labels)


def _choice_of(pairs: Sequence[tuple[str, float]], labels: Sequence[str]) -> Choice | None:
    """The labels' probabilities by the first token, normalised to one; None if they sum to less than ``LEAST_MASS``.

    A token counts for the label that it begins. A label outside the returned tokens gets 0.
    """
    folded = [structured.fold_label(label) for label in labels]
    weights = [sum(share for token, share in pairs if token and label.startswith(token)) for label in folded]
    total = sum(weights)
    return Choice(tuple(weight / total for weight in weights)) if total >= structured.LEAST_MASS else None


def _response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": dict(schema)}}


def _address_of(server: str, listed: Sequence[str]) -> Address:
    """Scheme, host and port of ``server``; raise ``BadSettings`` if it is not listed or malformed."""
    if server not in listed:
        raise BadSettings("settings.server_unlisted", server=server)
    try:
        parts = urlsplit(server)
        port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    except (ValueError, KeyError):
        parts, port = urlsplit(""), 0
    if not parts.hostname or parts.path not in ("", "/") or parts.query or parts.fragment or parts.username:
        raise BadSettings("settings.server_address")
    return parts.scheme, parts.hostname, port
