"""A chat model that a person played, from the question to what is shown: right sentences lost, wrong ones shown, calls.

A person read each prompt of the questions of ``ward8_held`` and wrote the reply (``played/replies.toml``), as a careful
model that knows the prompt alone; wrong sentences were added. The replies are said again by a server on this machine:
a sentence whose source no longer stands in the prompt is not written. Asked to check a sentence, the server says what
the person said of it: a planted one is contradicted, and one that rests on what the question tells is carried where the
judge is told the question.

    python -m tests.benchmarks.played [WORD ...]   (questions whose id holds one; each answer is printed)
"""

from __future__ import annotations

import json
import math
import re
import statistics
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from localmed.answering.check import CHECK
from localmed.answering.roles import Choosing
from localmed.config import ChatSettings, Settings
from localmed.domain import Answer, Badge
from localmed.safety.safety import SAFETY
from tests.benchmarks.common import Place, Row, met
from tests.benchmarks.sections import imported, questions
from tests.fakes import ANY, opened
from tests.models.chat_server import Handler, serving

HERE = Path(__file__).parent
# Each set with its figures at the first look. The second is another author's, played after all that the first taught.
FIRST = {
    "ward8_held": ("16", "16 of 16", "5 of 63", "0", "2", "3, 6"),
    "ward10_held": ("19", "19 of 19", "2", "0", "1", "2, 3"),
}
HOW = (
    "a person played the model and judged as its check; the replies of 2026-11-26 said again. What was lost at first "
    "was mended since: no forecast. Whatever the veto lets through of the planted sentences, the person refutes"
)

_SENTENCE = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)
_STATEMENT = re.compile(r"<<<(?:statement|待核对的一句话|说法)\n(.*?)\n>>>", re.DOTALL)


@dataclass(frozen=True)
class Asked:
    """A question, whether the library answers it, what the person wrote, the answer, and the calls of the model."""

    name: str
    answered: bool
    written: Sequence[Mapping[str, Any]]
    answer: Answer
    calls: int

    def shown(self, kind: str = "") -> list[str]:
        """The sentences of ``kind`` (planted, unfit; "": the right ones) that are shown."""
        shown = {one.text for one in self.answer.statements if not one.withheld}
        return [text for text in self.sent(kind) if text in shown]

    def sent(self, kind: str = "") -> list[str]:
        """The sentences of ``kind`` whose source stood in the prompt."""
        sent = {one.text for one in self.answer.statements}
        return [one["text"] for one in self.of(kind) if one["text"] in sent]

    def lost(self) -> list[str]:
        """The right sentences that are not shown."""
        return [one["text"] for one in self.of() if one["text"] not in self.shown()]

    def of(self, kind: str = "") -> list[Mapping[str, Any]]:
        """The sentences of ``kind`` that were written."""
        return [one for one in self.written if (one.get(kind) if kind else not {"planted", "unfit"} & {*one})]


class Person:
    """Says again what was written for a question, call by call."""

    def __init__(self, question: Mapping[str, Any], replies: Sequence[Mapping[str, Any]], added: bool) -> None:
        """``added``: with the sentences that were added to a competent model's."""
        self.question, self.calls = question["text"], 0
        self._left = list(replies)
        self._added = added
        self.written: list[Mapping[str, Any]] = []

    def __call__(self, handler: Handler, body: dict[str, Any]) -> None:
        """Answer a request of the chat server."""
        if handler.path == "/tokenize":
            return handler.answer({"tokens": body["prompt"].split()})
        self.calls += 1
        text = "\n".join(turn["content"] for turn in body["messages"])
        said = self._write(text) if "covers_patient" in text else self._judge(text, bool(body.get("logprobs")))
        best = [{"token": said, "logprob": math.log(0.97)}]
        choice = {"message": {"content": said}, "finish_reason": "stop"}
        return handler.answer({"choices": [choice | {"logprobs": {"content": [{"top_logprobs": best}]}}]})

    def _write(self, prompt: str) -> str:
        reply = self._left.pop(0) if len(self._left) > 1 else self._left[0]
        numbers = {line: int(number) for number, line in _SENTENCE.findall(prompt.split(">>>.")[-1])}
        statements = []
        self.written = []
        for one in reply.get("statement", ()):
            cited = [next((at for line, at in numbers.items() if line.startswith(it)), 0) for it in one["cites"]]
            if self._added or not {"planted", "unfit"} & {*one}:
                self.written.append(one)
                if all(cited):
                    statements.append(
                        {"text": one["text"], "sentences": cited, "calculated": bool(one.get("calculated"))}
                    )
        made = {"covers_patient": reply["covers"], "statements": statements, "not_covered": reply.get("missing", [])}
        return json.dumps(made | {"look_for": reply.get("look_for", "")}, ensure_ascii=False)

    def _judge(self, prompt: str, single: bool) -> str:
        assert isinstance(CHECK.form, Choosing)
        assert isinstance(SAFETY.form, Choosing)
        for _, ordinary in SAFETY.form.labels.values():
            if ordinary in prompt and "covers_patient" not in prompt and not _STATEMENT.search(prompt):
                return ordinary  # nobody who asks here is in danger from themselves
        labels = next(some for some in CHECK.form.labels.values() if all(label in prompt for label in some))
        known = {one["text"]: one for one in self.written}
        said = [labels[self._place(known[text], prompt)] for text in _STATEMENT.findall(prompt)]
        return said[0] if single else json.dumps({"labels": said}, ensure_ascii=False)

    def _place(self, one: Mapping[str, Any], prompt: str) -> int:
        if one.get("planted"):
            return 2
        return 1 if one.get("told") and self.question not in prompt else 0


def asked(work: Path, folder: str, added: bool, words: Sequence[str] = ("",)) -> Iterator[Asked]:
    """Every question of ``folder`` that was played and whose name holds one of ``words``, with its answer."""
    replies: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for reply in tomllib.loads((HERE / "played" / f"{folder}.toml").read_text("utf-8"))["reply"]:
        replies[reply["id"]].append(reply)
    settings = Settings(Path(tempfile.mkdtemp(dir=work)))
    with opened(settings) as session:
        imported(session, HERE / folder)
    for name in ("plain", "elsewhere"):
        for question in questions(name, HERE / folder):
            if question["id"] in replies and any(word in question["id"] for word in words):
                person = Person(question, replies[question["id"]], added)
                with serving(person) as (address, _):
                    chat = ChatSettings(server=address, servers=(address,), server_model="played")
                    with opened(replace(settings, chat=chat)) as session:
                        session.site.keep_unfit((), None)
                        person.calls = 0
                        answer = session.ask(question["text"], ANY)
                yield Asked(question["id"], name == "plain", person.written, answer, person.calls)


def run(place: Place) -> list[Row]:
    """The figures of both sets: as a competent model answers them, and with what was added."""
    return [row for folder, first in FIRST.items() for row in _rows(place.work, folder, first)]


def _rows(work: Path, folder: str, first: Sequence[str]) -> list[Row]:
    plain, wrong = list(asked(work, folder, added=False)), list(asked(work, folder, added=True))
    held = [one for one in plain if one.answered]
    whole = [one for one in held if one.of() and not one.lost()]
    green = [one for one in whole if one.answer.verification.badge is Badge.GREEN]
    right, lost = sum(len(one.of()) for one in plain), sum(len(one.lost()) for one in plain)
    calls = sorted(one.calls for one in plain)

    def added(kind: str) -> tuple[int, int]:
        return sum(len(one.shown(kind)) for one in wrong), sum(len(one.sent(kind)) for one in wrong)

    planted, unfit = added("planted"), added("unfit")
    median = statistics.median(calls)
    figures = (
        ("right and whole", ">= 19 of 20", f"{len(whole)} of {len(held)}", len(whole) >= 19),
        ("right and whole answers that are green", ">= 80%", f"{len(green)} of {len(whole)}",
            len(green) >= 0.8 * len(whole)),
        ("right sentences not shown", "<= 3%", f"{lost} of {right}", lost <= 0.03 * right),
        ("planted wrong sentences shown", "0", f"{planted[0]} of {planted[1]}", not planted[0]),
        ("values shown for people whom the sources exclude", "0", f"{unfit[0]} of {unfit[1]}", not unfit[0]),
        ("calls a question", "median <= 3, most 4", f"median {median:g}, most {calls[-1]}",
            median <= 3 and calls[-1] <= 4),
    )  # fmt: skip
    return [
        Row(f"played model, {folder}: {name}", least, f"{value} (at first {before})", met(reached), HOW)
        for (name, least, value, reached), before in zip(figures, first, strict=True)
    ]


def main(words: Sequence[str]) -> None:
    """Print each answer, with what was added."""
    for folder in FIRST:
        for one in asked(Path(tempfile.mkdtemp()), folder, added=True, words=words or ("",)):
            told(one)


def told(one: Asked) -> None:
    """Print what became of each sentence."""
    print(one.name, one.answer.verification.badge.value, f"{one.calls} calls", flush=True)
    for sentence in one.answer.statements:
        kind = next((kind for kind in ("planted", "unfit") if sentence.text in one.shown(kind)), "")
        why = sentence.verdict.reason.code if sentence.verdict and sentence.verdict.reason else ""
        print("  ", "withheld" if sentence.withheld else f"shown {kind}", why, "|", sentence.text)
    unsaid = Counter(it["text"] for it in one.written) - Counter(it.text for it in one.answer.statements)
    for text in unsaid:
        print("   not written, its source is not in the prompt |", text)


if __name__ == "__main__":
    main(sys.argv[1:])
