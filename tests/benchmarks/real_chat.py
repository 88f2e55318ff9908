"""A real chat model in every workflow over the starter corpus, beside the rules on the same jobs.

    python -m tests.benchmarks.real_chat DATA MODEL.gguf REPLIES.jsonl [WORD ...]
    python -m tests.benchmarks.real_chat DATA MODEL.gguf self-test

``DATA`` is a library of the starter corpus (``corpora/demo.py`` builds one). A reply is kept by what was asked, in
``REPLIES.jsonl``: a run that was broken off goes on where it stopped, and after a change of the code only new prompts
are asked. One thread by default (``THREADS``), since such a model runs for hours on two cores. Each job prints one line
of JSON: what the rules show and what is shown with the model. Jobs are the questions of the starter corpus and those of
``real_jobs.toml`` (orders, records, complaints, answers to verify); with words, those whose text or number holds one.
``ENTAILMENT=chat`` lets the model judge entailment whatever its self-test came to. The day is ``DAY``, since prompts
name it.

A question of the starter corpus is answered rightly where the right document is cited and what is shown holds the
numbers of the words that answer, or most of the words where these hold no number.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from localmed.answering import check
from localmed.answering.answer_file import VerifyInput
from localmed.answering.chat import ChatRoles
from localmed.answering.role_table import ROLES
from localmed.answering.self_test import failed
from localmed.answering.self_test import questions as self_test_questions
from localmed.config import ChatSettings, load
from localmed.domain import Answer, digest
from localmed.domain.errors import Rejected
from localmed.domain.ports import UNWATCHED, Choice, CountingChat, Message, Reply, Request, Watch
from localmed.ingest.records.text import from_prose
from localmed.models.llama.adapter import ChatFile, LlamaChat
from localmed.models.registry import tested
from localmed.presentation.answer import view
from localmed.site.session import Session
from localmed.text.language import words
from localmed.workflows.explain import ExplainInput
from tests.fakes import ANY, opened

HERE = Path(__file__).parent
CORPORA = HERE.parents[1] / "corpora"
THREADS = int(os.environ.get("THREADS", "1"))
ENTAILMENT = os.environ.get("ENTAILMENT", "none")
DAY = "2026-11-22"  # of every session: prompts name the day, and replies are kept by prompt
MOST_WORDS = 0.6  # of the words that answer, where they hold no number

_BESIDE = re.compile(r"[(（][^()（）]*[)）]")  # the same amount in another unit
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:\s*[A-Za-z%]+)?")  # with its unit: a dose is no clearance


class Recorded:
    """A chat model whose replies are kept by what was asked; the real one is asked what is new."""

    def __init__(self, model: CountingChat, file: Path) -> None:
        self._model, self._file, self.identity = model, file, model.identity
        lines = file.read_text("utf-8").splitlines() if file.exists() else []
        self._kept: dict[str, dict[str, Any]] = {row["key"]: row for row in map(json.loads, lines)}
        self.asked = self.new = 0

    def complete(self, request: Request, watch: Watch = UNWATCHED) -> Reply:
        """See ``ChatModel``."""
        key = digest(json.dumps(["complete", *_turns(request.messages), request.schema, request.seed]))[:16]
        row = self._kept.get(key) or self._keep(key, request.messages, lambda: self._completed(request, watch))
        self.asked += 1
        if row["rejected"]:
            raise Rejected(row["rejected"])
        return Reply(row["text"], row["prompt_tokens"], row["reply_tokens"], row["finish"], row["value"])

    def choose(
        self, prefix: Sequence[Message], branches: Sequence[str], labels: Sequence[str], watch: Watch = UNWATCHED
    ) -> list[Choice]:
        """See ``ChatModel``."""
        key = digest(json.dumps(["choose", *_turns(prefix), list(branches), list(labels)]))[:16]

        def chosen() -> dict[str, Any]:
            choices = self._model.choose(prefix, branches, labels, watch)
            return {"probabilities": [choice.probabilities for choice in choices], "rejected": ""}

        row = self._kept.get(key) or self._keep(key, prefix, chosen)
        self.asked += 1
        return [Choice(tuple(values)) for values in row["probabilities"]]

    def count(self, texts: Sequence[str]) -> list[int]:
        """See ``CountingChat``."""
        return self._model.count(texts)

    def _completed(self, request: Request, watch: Watch) -> dict[str, Any]:
        try:
            reply = self._model.complete(request, watch)
        except Rejected as error:
            return {"rejected": error.message.code}
        return {
            "text": reply.text,
            "prompt_tokens": reply.prompt_tokens,
            "reply_tokens": reply.reply_tokens,
            "finish": reply.finish,
            "value": reply.value,
            "rejected": "",
        }

    def _keep(self, key: str, messages: Sequence[Message], ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        began = time.perf_counter()
        row = {"key": key, "role": role_of(messages), "prompt": messages[-1].content, **ask()}
        row["seconds"] = round(time.perf_counter() - began, 1)
        self.new += 1
        self._kept[key] = row
        with self._file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")
        return row


def _turns(messages: Sequence[Message]) -> list[list[str]]:
    return [[message.role, message.content] for message in messages]


def role_of(messages: Sequence[Message]) -> str:
    """The role that ``messages`` ask for; "entailment" for none of ours."""
    asked = [role for role in ROLES.values() if role.form]
    return next((role.name for role in asked if messages[0].content in role.instructions.values()), "")


# --- jobs -------------------------------------------------------------------------------------------------------------


def questions() -> list[Mapping[str, Any]]:
    """The answerable questions of the starter corpus, the languages in turn."""
    table = tomllib.loads((CORPORA / "starter_questions.toml").read_text("utf-8"))["question"]
    by_language = [[row for row in table if row["answerable"] and row["language"] == name] for name in ("en", "zh")]
    longest = max(map(len, by_language))
    return [rows[place] for place in range(longest) for rows in by_language if place < len(rows)]


def is_right(row: Mapping[str, Any], answer: Answer) -> bool:
    """Whether ``answer`` cites the right document and shows what answers."""
    shown = answer.shown
    cited = {Path(piece.source).name for piece in check.cited(shown, answer.evidence)}
    return row["document"] in cited and shows(row, answer)


def shows(row: Mapping[str, Any], answer: Answer) -> bool:
    """Whether ``answer`` shows what answers, from whatever document."""
    shown = answer.shown
    text = re.sub(r"\s", "", " ".join(statement.text for statement in shown)).lower()
    numbers = _NUMBER.findall(_BESIDE.sub("", row["evidence"]))
    wanted_words = set(words(row["evidence"], for_query=True))
    held = len(wanted_words & set(words(" ".join(statement.text for statement in shown))))
    bare = [re.sub(r"\s", "", number).lower() for number in numbers]
    return all(number in text for number in bare) if bare else held >= MOST_WORDS * len(wanted_words)


def described(answer: Answer) -> dict[str, Any]:
    """What of ``answer`` a reader of the results wants to know."""
    return {
        "status": answer.status.value,
        "badge": answer.verification.badge.value,
        "shown": [
            [statement.origin.value, statement.verdict.support.value if statement.verdict else "", statement.text]
            for statement in answer.shown
        ],
        "withheld": [statement.text for statement in answer.statements if statement.withheld],
        "notes": list(view(answer).notes),
        "calls": {step.name: dict(step.detail).get("by", "") for step in answer.trace if "by" in dict(step.detail)},
    }


def parts(answer: Answer) -> list[list[str]]:
    """What the parts of ``answer`` show, a list a part: its title, then its rows and sentences."""
    return [
        [part.title, *(f"{row.label}: {row.text}" for row in part.rows), *(one.text for one in part.statements)]
        for part in view(answer).parts
    ]


@contextmanager
def session(data: Path, chat: CountingChat | None) -> Iterator[Session]:
    """A session over ``data``, of the starter's models and ``chat``."""
    settings = load(data)
    uses = {"encoder": "e5", "reranker": "none", "entailment": ENTAILMENT if chat else "none"}
    chosen = replace(settings, profile="workstation" if chat else "starter")
    with opened(chosen, chat=chat, uses=uses, day=lambda: DAY) as opened_one:
        yield opened_one


Run = Callable[[Session], Answer]


def jobs() -> Iterator[tuple[str, Mapping[str, Any], Run]]:
    """Every job: its number, its row, and what a session is asked."""
    table = tomllib.loads((HERE / "real_jobs.toml").read_text("utf-8"))
    for number, row in enumerate((*questions(), *table["question"]), 1):
        yield f"question-{number}", row, partial(Session.ask, question=row["text"], filters=ANY)
    for kind, run in RUNS.items():
        for number, row in enumerate(table[kind], 1):
            yield f"{kind}-{number}", row, partial(run, row)


def _order(row: Mapping[str, Any], with_session: Session) -> Answer:
    return with_session.explain(ExplainInput(row["text"], questions=tuple(row.get("questions", ()))), ANY)


def _record(row: Mapping[str, Any], with_session: Session) -> Answer:
    return with_session.ebm(row["text"], ANY, from_prose(row["record"]))


def _complaint(row: Mapping[str, Any], with_session: Session) -> Answer:
    return with_session.departments(row["text"])


def _submitted(row: Mapping[str, Any], with_session: Session) -> Answer:
    return with_session.verify(VerifyInput(row.get("question", ""), row["text"]))


RUNS: Mapping[str, Callable[[Mapping[str, Any], Session], Answer]] = {
    "order": _order,
    "record": _record,
    "complaint": _complaint,
    "verify": _submitted,
}


def self_test(data: Path, model: CountingChat) -> None:
    """Keep in ``data`` in which roles the model fails, as choosing it does, and print them."""
    unfit = failed(ChatRoles(model), lambda done, total: print(done, total, file=sys.stderr, flush=True))
    tested.keep(data / "models", model.identity, unfit, self_test_questions())
    print(sorted(unfit))


def main(data: Path, gguf: Path, replies: str, holding: Sequence[str]) -> None:
    """Run every job, or those that hold a word of ``holding``, with the model and without it; a line each."""
    file = ChatFile(gguf.stem, gguf, "", "chatml", 32768)
    real = LlamaChat(file, ChatSettings(threads=THREADS, context=4096, nice=10, hang_seconds=1200.0))
    if replies == "self-test":
        self_test(data, real)
        return
    model = Recorded(real, Path(replies))
    with session(data, None) as by_rules, session(data, model) as with_model:
        for name, row, run in jobs():
            if holding and not any(word == name or word in row["text"] for word in holding):
                continue
            began, before, new = time.perf_counter(), model.asked, model.new
            ruled, answer = run(by_rules), run(with_model)
            right = {"rules": is_right(row, ruled), "model": is_right(row, answer)} if "evidence" in row else {}
            line = {
                "job": name,
                "text": row["text"],
                **right,
                "seconds": round(time.perf_counter() - began, 1),
                "requests": model.asked - before,
                "new": model.new - new,
                **described(answer),
                "parts": parts(answer),
                "rules_parts": parts(ruled),
                "rules_shown": [statement.text for statement in ruled.shown],
            }
            print(json.dumps(line, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4:])
