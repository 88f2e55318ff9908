"""``/v1/chat/completions`` and ``/v1/models`` for OpenAI's clients: other programs use localmed as a model.

The user's last message is the question, the user's messages before it are earlier questions; system and assistant
messages are ignored. The reply's text is the sections found and, with a chat model, its answer above them with
markers, sources and badge; ``localmed`` beside ``choices`` contains the same as values. A stream sends comments while
the answer is made, and sentences only after their checks. Sampling parameters and tools are ignored.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response, StreamingResponse

from localmed.domain import Answer, SearchFilter
from localmed.domain.errors import LocalmedError, UsageError
from localmed.people.history import AskedWith, Kept
from localmed.presentation.answer import view
from localmed.presentation.plain import plain
from localmed.process.hooks import SILENT, Hooks
from localmed.text.language import clean
from localmed.web import streams
from localmed.web.api import LONGEST, Program, answer_value, words_of
from localmed.web.ask import enter_queue, keep_answer, question_of
from localmed.web.streams import Work
from localmed.web.visits import Visit

router = APIRouter(prefix="/v1", tags=["openai"])
MODEL = "localmed"
MOST_MESSAGES = 200


class Part(BaseModel):
    """A part of a message; only text is read."""

    model_config = ConfigDict(extra="allow")
    type: str = "text"
    text: Annotated[str, Field(max_length=LONGEST)] = ""


class ChatMessage(BaseModel):
    """A message of the conversation."""

    model_config = ConfigDict(extra="allow")
    role: str
    content: Annotated[str, Field(max_length=LONGEST)] | list[Part] | None = None

    @property
    def words(self) -> str:
        """Its text."""
        parts = self.content if isinstance(self.content, list) else []
        return self.content if isinstance(self.content, str) else "\n".join(part.text for part in parts)


class ChatBody(BaseModel):
    """A request for a completion; other fields are ignored."""

    model_config = ConfigDict(extra="allow")
    model: Literal["localmed"] = "localmed"
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MOST_MESSAGES)]
    stream: bool = False


@router.get("/models")
def models(visit: Program) -> Response:
    """The only model: localmed itself."""
    del visit
    entry = {"id": MODEL, "object": "model", "created": 0, "owned_by": MODEL}
    return JSONResponse({"object": "list", "data": [entry]})


@router.post("/chat/completions")
def complete(visit: Program, request: Request, body: ChatBody) -> Response:
    """Answer the last question of a conversation."""
    del request
    typed = [clean(one.words).strip() for one in body.messages if one.role == "user"]
    if not typed or body.messages[-1].role != "user":
        raise UsageError("workflow.no_words")
    text, asked_with = question_of(visit, typed[-1]), AskedWith(tuple(filter(None, typed[:-1])))

    def work(hooks: Hooks) -> Answer:
        return visit.session.ask(text, SearchFilter(), None, asked_with.earlier, hooks)

    (queued, answer_id), id_ = enter_queue(visit, work), f"chatcmpl-{secrets.token_hex(12)}"
    if body.stream:
        pieces = _pieces(visit, queued, id_, partial(keep_answer, visit, text, id_=answer_id, asked_with=asked_with))
        lines = streams.to_its_end(pieces, partial(_error_line, visit))
        return StreamingResponse(lines, media_type="text/event-stream", headers=streams.HEADERS)
    kept = keep_answer(visit, text, queued(SILENT), answer_id, asked_with)
    spoken = {"role": "assistant", "content": content_of(kept, visit.language), "refusal": None}
    choice = {"index": 0, "message": spoken, "finish_reason": "stop", "logprobs": None}
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}  # nothing is counted
    extra = {"usage": usage, "localmed": answer_value(kept, visit.language)}
    return JSONResponse(_envelope(id_, "chat.completion", choice, extra))


def content_of(kept: Kept, language: str) -> str:
    """An answer as text: badge with its reason, sentences, sources, sections, notes."""
    shown = view(kept.answer, language)
    lines = [shown.banner, "\n".join(filter(None, (shown.badge.title, shown.badge.reason))) if shown.badge else ""]
    return "\n\n".join(filter(None, (*lines, plain(shown), *shown.notices, *shown.notes)))


async def _pieces(visit: Visit, work: Work, id_: str, kept_of: Callable[[Answer], Kept]) -> AsyncGenerator[str, None]:
    async for event in streams.follow(visit, work):
        if event.kind == "answer":
            kept = await run_in_threadpool(kept_of, event.value)
            for chunk in _chunks(kept, visit.language, id_):
                yield f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n"
            yield "data: [DONE]\n\n"
        elif isinstance(event.value, LocalmedError):
            yield _error_line(visit, event.value)
        else:
            yield ": \n\n"  # a step: OpenAI's clients skip comments


def _error_line(visit: Visit, error: LocalmedError) -> str:
    value = {"message": words_of(error, visit), "type": "localmed", "code": error.message.code}
    return f"data: {json.dumps({'error': value}, ensure_ascii=False)}\n\n"


def _chunks(kept: Kept, language: str, id_: str) -> Iterator[dict[str, Any]]:
    kind = "chat.completion.chunk"
    yield _envelope(id_, kind, _delta({"role": "assistant", "content": ""}))
    for line in content_of(kept, language).splitlines(keepends=True):
        yield _envelope(id_, kind, _delta({"content": line}))
    yield _envelope(id_, kind, _delta({}, "stop"), {"localmed": answer_value(kept, language)})


def _delta(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}


def _envelope(id_: str, kind: str, choice: dict[str, Any], more: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "id": id_, "object": kind, "created": int(time.time()), "model": MODEL, "choices": [choice], **(more or {}),
    }  # fmt: skip
