"""The real model of 1.5 billion parameters that anybody can take (`make demo-model`), question by question.

    python -m tests.benchmarks.small_model MODEL.gguf DATA [SECONDS]   (questions of the starter corpus, in DATA)
    python -m tests.benchmarks.small_model MODEL.gguf ward8_held [SECONDS]  (of a folder here, imported first)
    python -m tests.benchmarks.small_model MODEL.gguf check            (the area of its check, in each language)

It writes and does not check, as in the demonstration. A line of JSON for each question: how many sections stand beside
the answer, what it wrote, what of it is shown as checked (a person reads whether that is false), and the seconds. Of
what nobody judged only the quoted sentences stand there. A run goes on until somebody ends it.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from localmed.answering import self_test
from localmed.answering.chat import ChatRoles
from localmed.answering.check import CHECK
from localmed.config import ChatSettings, Settings, load
from localmed.domain import Answer, Origin, Support
from localmed.models.llama.adapter import ChatFile, LlamaChat
from tests.benchmarks.sections import imported, questions
from tests.fakes import ANY, opened

HERE = Path(__file__).parent
STARTER = HERE.parents[1] / "corpora" / "starter_questions.toml"
CONTEXT = 3072  # as the demonstration has it


def described(answer: Answer) -> Mapping[str, Any]:
    """What of ``answer`` a person reads."""
    written = [one for one in answer.statements if one.origin is Origin.GENERATED]
    checked = [one for one in written if one.verdict and one.verdict.support is Support.SUPPORTED and not one.withheld]
    return {
        "sections": len(answer.sections),
        "written": [one.text for one in written],
        "checked": [[one.text, *(it.quote for it in one.citations)] for one in checked],
        "quoted": [one.text for one in answer.statements if one.origin is Origin.EXTRACTIVE and not one.withheld],
        "badge": answer.verification.badge.value,
        "notes": [note.code for note in answer.notes],
    }


def asked(model: LlamaChat, settings: Settings, texts: Iterator[str]) -> None:
    """Ask ``texts``; a line each."""
    settings = replace(settings, profile="starter", roles={"write": "chat", "check": "off"})
    with opened(settings, chat=model, uses={"entailment": "none"}) as session:
        session.site.keep_unfit((), None)
        for text in texts:
            began = time.monotonic()
            answer = session.ask(text, ANY)
            line = {"question": text, "seconds": round(time.monotonic() - began), **described(answer)}
            print(json.dumps(line, ensure_ascii=False), flush=True)


def areas(model: LlamaChat) -> None:
    """Print the area under the ROC curve of the check on the pairs of the self-test."""
    for case in self_test.all_cases():
        if case.role is CHECK:
            replies = [ChatRoles(model).perform(CHECK, task) for task in case.tasks]
            print(case.tasks[0].language, round(self_test.area(replies), 2), flush=True)


def main(gguf: Path, what: str, seconds: float = 300.0) -> None:
    """Run what was asked for."""
    chat = ChatSettings(context=CONTEXT, question_seconds=seconds, hang_seconds=1200.0)
    model = LlamaChat(ChatFile(gguf.stem, gguf, "", "chatml", 32768), chat)
    if what == "check":
        return areas(model)
    if (HERE / what).is_dir():
        settings = Settings(Path(tempfile.mkdtemp()), chat=chat)
        with opened(settings) as session:
            imported(session, HERE / what)
        rows = (row["text"] for name in ("plain", "elsewhere") for row in questions(name, HERE / what))
        return asked(model, settings, rows)
    starter = tomllib.loads(STARTER.read_text("utf-8"))["question"]
    return asked(model, replace(load(Path(what)), chat=chat), (row["text"] for row in starter))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *map(float, sys.argv[3:]))
