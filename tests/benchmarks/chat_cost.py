"""What a question costs on a chat server: requests, prompt words and seconds, over the starter corpus.

A stand-in for a competent model (``tests/standin.py``) answers over HTTP, behind the OpenAI-compatible adapter; what is
counted is what arrives at the server, retries included. The encoder and the reranker are the starter's. Plain retrieval
is the same question without a check.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from localmed.config import ChatSettings, Settings
from localmed.domain.ports import Message
from localmed.ingest import manifest
from localmed.models.openai_server import OpenAIServer
from localmed.process.hooks import Hooks
from localmed.site import importing
from localmed.site.session import Session
from localmed.workflows.explain import ExplainInput
from tests import standin
from tests.benchmarks.common import Place, Row, met
from tests.fakes import ANY, opened
from tests.models.chat_server import Handler, serving

CORPORA = Path(__file__).parents[2] / "corpora"
PLAIN = {"check": "off"}
ONE_PART = (
    "What dose of intramuscular adrenaline is given to an adult with anaphylaxis?",
    "May an ACE inhibitor be combined with an ARB?",
    "How long should community-acquired pneumonia be treated with antibiotics?",
    "Which vasopressor is the first choice in septic shock?",
    "What is the HbA1c target for most adults with type 2 diabetes?",
    "成人高血压的诊断标准是什么？",
    "2级高血压的收缩压范围是多少？",
)
CASE = "Should metformin be continued in an adult with type 2 diabetes and an eGFR of 25?"
FOUR_PARTS = (
    "What is levodopa used for? How is gout treated? What is the dose of ivermectin? Who invented the stethoscope?",
    "How is Wilson's disease diagnosed, what is the dose of penicillamine, is zinc enough, and which diet helps?",
)
ORDER = "\n".join(
    (
        "Dx: CAP",
        "Amoxicillin 500 mg PO tds",
        "Metformin 500 mg PO bid, hold if eGFR < 30",
        "Ramipril 5 mg PO od",
        "FBC and U&E in 3 days",
        "Paracetamol 1 g PO q6h prn",
        "NBM from midnight",
        "Chest X-ray tomorrow",
    )
)


Asked = Callable[[Session, Hooks], Any]


@dataclass
class Cost:
    """What arrived at the server in one run."""

    roles: list[str] = field(default_factory=list)
    words: int = 0
    seconds: float = 0.0
    first: tuple[float, float] = (0.0, 0.0)  # seconds, and seconds of processor time, until sections were shown


class Counting:
    """The server's side: answers as the stand-in does, and counts."""

    def __init__(self) -> None:
        self.cost = Cost()

    def __call__(self, handler: Handler, body: dict[str, Any]) -> None:
        """See ``chat_server.Handle``."""
        if handler.path == "/tokenize":
            return handler.answer({"tokens": body["prompt"].split()})
        messages = [Message(turn["role"], turn["content"]) for turn in body["messages"]]
        self.cost.roles.append(standin.role_of(messages))
        self.cost.words += sum(len(message.content.split()) for message in messages)
        text = standin.served(messages, body.get("response_format", {}))
        return handler.answer({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})


@contextmanager
def counted(settings: Settings, roles: Mapping[str, str]) -> Iterator[Callable[[Asked], Cost]]:
    """A function that gives the cost of what a session is asked."""
    counting = Counting()
    with serving(counting) as (address, _):
        chat = OpenAIServer(address, "m", 100_000, ChatSettings(servers=(address,)))
        uses = {"encoder": "e5", "reranker": "none"}
        chosen = replace(settings, profile="workstation", roles=roles)
        with opened(chosen, chat=chat, uses=uses) as session:

            def cost(run: Asked) -> Cost:
                counting.cost = Cost()
                began, worked = time.perf_counter(), time.process_time()
                shown: list[tuple[float, float]] = []
                run(session, Hooks(sections=lambda _: shown.append(_since(began, worked))))
                counting.cost.seconds = time.perf_counter() - began
                counting.cost.first = shown[0] if shown else (0.0, 0.0)
                return counting.cost

            yield cost


def _since(began: float, worked: float) -> tuple[float, float]:
    return time.perf_counter() - began, time.process_time() - worked


def library(folder: Path) -> Settings:
    """A library of the starter corpus."""
    settings = Settings(folder)
    with opened(settings) as session:
        for file in sorted(CORPORA.glob("starter-*.toml")):
            documents = CORPORA / "starter" / file.stem.removeprefix("starter-")
            importing.import_paths(session, [documents], manifest.load(file))
    return settings


def run(place: Place) -> list[Row]:
    """All rows."""
    return rows(library(Path(tempfile.mkdtemp(dir=place.work)) / "data"))


def asking(text: str, thorough: bool = False) -> Asked:
    """Asks ``text``."""
    return lambda session, hooks: session.ask(text, ANY, hooks=hooks, thorough=thorough)


def rows(settings: Settings) -> list[Row]:
    """Over the starter corpus at ``settings.data``."""
    with counted(settings, {}) as cost:
        cost(asking(ONE_PART[0]))  # loads the models
        asks = [cost(asking(text)) for text in ONE_PART]
        fours = [cost(asking(text)) for text in FOUR_PARTS]
        every = [cost(asking(text, thorough=True)) for text in ONE_PART]
        case = cost(lambda session, hooks: session.ebm(CASE, ANY, hooks=hooks))
        order = cost(lambda session, hooks: session.explain(ExplainInput(ORDER), ANY, hooks=hooks))
    with counted(settings, PLAIN) as cost:
        plains = [cost(asking(text)) for text in ONE_PART]
    most = [max(len(one.roles) for one in costs) for costs in (asks, [case], [order], fours, every)]
    ratios = [one.words / plain.words for one, plain in zip(asks, plains, strict=True)]
    mean = sum(one.words for one in asks) / sum(plain.words for plain in plains)
    how = f"stand-in for a competent model on a server, starter corpus, {len(ONE_PART)} questions of one part"
    first, worked = (statistics.median(one.first[place] for one in asks) for place in (0, 1))
    return [
        Row(
            "most requests of a question to a chat server: ask; EBM; order of 8 lines; four parts; thorough",
            "<= 4; <= 15; <= 25; <= 4; -",
            "; ".join(map(str, most)),
            met(all(one <= bound for one, bound in zip(most, (4, 15, 25, 4), strict=False))),
            f"{how}. By role: {json.dumps(_by_role(asks, case, order, fours))}",
        ),
        Row(
            "prompt words of a question of one part against plain retrieval",
            "<= 1.6x",
            f"{mean:.2f}x ({min(ratios):.2f} to {max(ratios):.2f})",
            met(mean <= 1.6),
            f"{how}; all of them together",
        ),
        Row(
            "first sections shown where a chat model answers, processor time",
            "<= 1 s",
            f"{worked:.2f} s ({first:.2f} s on the clock)",
            met(worked <= 1),
            f"{how}; median, warm",
        ),
    ]


def _by_role(asks: list[Cost], case: Cost, order: Cost, fours: list[Cost]) -> dict[str, dict[str, int]]:
    named = {
        "ask": [role for one in asks for role in one.roles],
        "ebm": case.roles,
        "explain": order.roles,
        "four parts": [role for one in fours for role in one.roles],
    }
    return {name: {role: roles.count(role) for role in dict.fromkeys(roles)} for name, roles in named.items()}
