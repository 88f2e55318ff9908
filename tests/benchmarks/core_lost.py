"""Answers whose core is planted to be lost: is the badge ever green over the gap?

For each question of the starter corpus that has an answer, a chat model is played that drafts what the source says
beside it, word for word, and of the core sentence nothing (``left out``), with its first number ten times as large or
its negation turned (``changed``), or with something added that no source says (``more``). Twice: with a model that only
writes, as a small one does after its self-test, and with one that also judges and says yes to whatever it is asked, the
worst judge there is. The core is lost where what is shown does not hold what answers (``real_chat.shows``).

    python -m tests.benchmarks.run --only core_lost
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from localmed.config import Settings
from localmed.domain import Badge, Passage, Support
from localmed.ports import UNWATCHED, ChatIdentity, Choice, Message, Reply, Request, Watch
from localmed.verification import citations
from localmed.verification.matching import split
from tests import standin
from tests.benchmarks import chat_cost, real_chat
from tests.benchmarks.common import Place, Row, met
from tests.benchmarks.common import library as opened_library
from tests.fakes import ANY, opened
from tests.values import form

KINDS = ("left out", "changed", "more")
WRITES_ONLY = dict.fromkeys(("relevance", "coherence", "badge", "decomposition", "guideline_relevance"), "rules")
_MARK = re.compile(r"<<<(?:source |来源)(\w+)[^\n]*\n(.*?)\n>>>", re.DOTALL)
_NUMBER = re.compile(r"(?<![A-Za-z\d.])\d+(?:\.\d+)?")
_TURNED = (  # where the words that answer hold no number
    ("not ", ""), ("should ", "should not "), ("five", "twelve"), ("two thirds", "one tenth"), ("skip", "double"),
    ("Noradrenaline (norepinephrine)", "Dopamine"), ("nausea", "baldness"), ("不", ""), ("应", "不应"), ("让", "不让"),
    ("无力", "有力"),
)  # fmt: skip
_MORE = {"en": " and swimming every week makes it last", "zh": "，每周游泳可使效果持久"}


@dataclass(frozen=True)
class Planted:
    """A question, its source's core sentence, and what the model writes: beside it, and in its place ("": nothing)."""

    row: Mapping[str, Any]
    kind: str
    core: str
    side: str
    instead: str


class Drafts:
    """A chat model that drafts what is ``planted``, and says yes to whatever it judges."""

    identity = ChatIdentity("planted", "", 100_000)

    def __init__(self) -> None:
        self.planted: Planted | None = None

    def complete(self, request: Request, watch: Watch = UNWATCHED) -> Reply:
        """See ``ChatModel``."""
        value: Any = standin.reply(request.messages, request.schema)
        if standin.role_of(request.messages) == "cited_answer" and self.planted:
            value = self._draft(self.planted, request.messages[-1].content)
        return Reply(json.dumps(value, ensure_ascii=False), 1, 1, "stop", value)

    def _draft(self, planted: Planted, prompt: str) -> Any:
        sources = _MARK.findall(prompt)
        own = next((marker for marker, text in sources if planted.core in text), sources[0][0])
        sentences = [text for text in (planted.instead, planted.side) if text]
        return form(*((text, [own]) for text in sentences))

    def choose(
        self, prefix: Sequence[Message], branches: Sequence[str], labels: Sequence[str], watch: Watch = UNWATCHED
    ) -> list[Choice]:
        """See ``ChatModel``: always the first label."""
        return [Choice((1.0, *(0.0,) * (len(labels) - 1))) for _ in branches]

    def count(self, texts: Sequence[str]) -> list[int]:
        """See ``TokenCounter``."""
        return [len(text) for text in texts]


def plants(passages: Sequence[Passage]) -> Iterator[Planted]:
    """Every question three times."""
    for row in real_chat.questions():
        place = next((one for one in _sentences(row, passages) if row["evidence"] in one[1]), None)
        if place is None:
            continue
        passage, core = place
        side = next((one.text for one in split(passage) if one.text != core and len(one.text) > 20), "")
        for kind in KINDS if side else ():
            yield Planted(row, kind, core, side, _instead(kind, core, row))


def _sentences(row: Mapping[str, Any], passages: Sequence[Passage]) -> Iterator[tuple[Passage, str]]:
    return ((passage, one.text) for passage in passages if row["evidence"] in passage.text for one in split(passage))


def _instead(kind: str, core: str, row: Mapping[str, Any]) -> str:
    if kind == "left out":
        return ""
    if kind == "more":
        english = row["language"] == "en"
        return core.rstrip(".。") + _MORE[row["language"]] + ("." if english else "。")
    evidence: str = row["evidence"]
    if number := _NUMBER.search(evidence):
        turned = f"{evidence[: number.start()]}{float(number[0]) * 10:g}{evidence[number.end() :]}"
        return core.replace(evidence, turned, 1)
    one, other = next(pair for pair in _TURNED if pair[0] in core)
    return core.replace(one, other, 1)


def run(place: Place) -> list[Row]:
    """All rows."""
    return rows(chat_cost.library(Path(tempfile.mkdtemp(dir=place.work)) / "data"))


def rows(settings: Settings) -> list[Row]:
    """Over the starter corpus at ``settings.data``."""
    with opened(settings) as session:
        items = list(plants(list(opened_library(session).lexical.all_passages())))
    made: list[Row] = []
    for judge, roles, called in (
        ("none", WRITES_ONLY, "a model that only writes"),
        ("chat", {}, "a model that says yes to whatever it judges"),
    ):
        counts = outcomes(settings, items, judge, roles)
        total, lost = len(items), sum(count for name, count in counts.items() if name[0] == "lost")
        green = counts["lost", Badge.GREEN]
        how = (
            f"python -m tests.benchmarks.run --only core_lost; {total} planted answers to the questions of the starter "
            f"corpus: core left out, changed, or more said than the source; lost in {lost}"
        )
        wrong = sum(count for name, count in counts.items() if name[0] == "wrong")
        supported = counts["wrong as supported", Badge.NONE]
        made += [
            Row(f"core of the answer lost while the badge is green, {called}", "0", str(green), met(not green), how),
            Row(
                f"core changed or added to shown; shown as supported, {called}",
                "<= 10 %; <= 3 %" if judge == "none" else "-",
                f"{wrong}; {supported} of {2 * total // 3}",
                met(wrong <= 0.1 * 2 * total / 3 and supported <= 0.03 * 2 * total / 3) if judge == "none" else "-",
                how,
            ),
        ]
    return made


def outcomes(
    settings: Settings, items: Sequence[Planted], judge: str, roles: Mapping[str, str]
) -> Counter[tuple[str, Badge]]:
    """How many answers lost their core or showed what is planted, by badge."""
    chat, counts = Drafts(), Counter[tuple[str, Badge]]()
    uses = {"encoder": "e5", "reranker": "maxsim", "entailment": judge}
    with opened(replace(settings, profile="workstation", roles=roles), chat=chat, uses=uses) as session:
        for planted in items:
            chat.planted = planted
            answer = session.ask(planted.row["text"], ANY)
            badge, shown = answer.verification.badge, citations.shown(answer.statements)
            if not real_chat.shows(planted.row, answer):
                counts["lost", badge] += 1
                if badge is Badge.GREEN:
                    print("lost and green:", planted.kind, planted.row["text"], file=sys.stderr)
            for statement in shown:
                if planted.instead and planted.instead != planted.core and statement.text == planted.instead:
                    counts["wrong", badge] += 1
                    print("shown:", planted.kind, statement.text, file=sys.stderr)
                    if statement.verdict and statement.verdict.support is Support.SUPPORTED:
                        counts["wrong as supported", Badge.NONE] += 1
    return counts


if __name__ == "__main__":
    for made_row in rows(Settings(Path(sys.argv[1]))):
        print(made_row.what, "|", made_row.measured, "|", made_row.met, "|", made_row.how)
