"""Fits the relevance judge where the reader reranks (localmed/retrieval/relevance_reader.toml), and what it gains.

    python -m tests.benchmarks.fit_reader FOLDER               the judge, over a library made in FOLDER
    python -m tests.benchmarks.fit_reader QA MEDQUAD           the reader alone, on what its training left out

The judge: questions of the ward sets below over the starter corpus and their own documents; each with an answer is
asked a second time without the documents that hold it. The judge of MaxSim keeps its weights but for two factors, one
of the score and one of all else. Questions about another disease or population count in the report only. Left out each
time is one set. The reader: its best window of a question against the best where the answering one is taken away.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from localmed.config import AskSettings, Settings
from localmed.domain import Hit, SearchFilter
from localmed.models.e5 import E5
from localmed.models.reader import SHA256, Reader
from localmed.operations import importing
from localmed.retrieval.relevance import Fitted, fitted
from localmed.retrieval.signals import NAMES
from localmed.session import Session
from localmed.training.relevance import EVIDENCE, Judged, Labelled, curve, fit, plain, read
from tests.benchmarks.calibrate_relevance import HERE, READ, WARD, RememberingE5, _starter, whole_texts
from tests.benchmarks.reader_pairs import groups
from tests.benchmarks.train_reader import as_read
from tests.fakes import opened

SETS = ("ward4_held", "ward3_held", "ward2_held", "ward2_dev")
LEFT_OUT_QUESTIONS = 30  # of each source
Scored = list[tuple[str, Judged, float]]  # kind of question, question, probability of its best passage


def questions(name: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Kind, text and evidence of the questions of a set."""
    for kind in ("plain", "elsewhere"):
        for row in tomllib.loads((HERE / name / f"{kind}.toml").read_text("utf-8"))["question"]:
            yield kind, row["text"], tuple(row.get("must", ())) if kind == "plain" else ()


def gathered(session: Session) -> Iterator[tuple[str, Judged]]:
    """Kind of question and its signals, the score being MaxSim's and the reader's; of each set, and a second time."""
    with session.workspace() as workspace:
        library = workspace.library
        texts = whole_texts(library)
        rows = [
            (row.name, one) for row in library.catalogue.collections() for one in library.catalogue.documents(row.name)
        ]
        for name in SETS:
            titles = {
                path.read_text("utf-8").split("\n")[0].lstrip("# ").strip() for path in (HERE / name).rglob("*.md")
            }
            own = {one.id for collection, one in rows if collection == WARD.collection.name and one.title in titles}
            starter = {one.id for collection, one in rows if collection != WARD.collection.name}

            def judged(kind: str, text: str, evidence: tuple[str, ...], documents: set[str]) -> tuple[str, Judged]:
                hits: Sequence[Hit] = workspace.search(text, SearchFilter(documents=tuple(documents)), READ).hits
                return kind, read(Labelled(text, evidence, name), hits, library.lexical)  # noqa: B023 - used at once

            for kind, text, evidence in questions(name):
                yield judged(kind, text, evidence, own | starter)
                holders = {one for one in own if any(plain(words)[:EVIDENCE] in texts[one][1] for words in evidence)}
                if holders:
                    yield judged("gone", text, (), (own | starter) - holders)


def narrowed(row: Judged, base: Fitted) -> Judged:
    """``row`` with two signals: what ``base`` makes of all but the score, and the score."""
    rest = row.values[:, 1:] @ np.array(base.weights[1:])
    return replace(row, values=np.c_[rest, row.values[:, 0]])


def scored(rows: Sequence[tuple[str, Judged]]) -> Scored:
    """Every question by a judge that was fitted without its set."""
    result = []
    for name in SETS:
        beta = fit([one for kind, one in rows if one.question.group != name and kind != "elsewhere"], [0, 1])
        for kind, one in rows:
            if one.question.group == name:
                total = one.values @ beta[:2] + beta[2]
                result.append((kind, one, float(1 / (1 + np.exp(-np.clip(total.max(), -60, 60))))))
    return result


def judge(folder: Path) -> None:
    """Print the row of each language and what is answered at the default risk."""
    with opened(Settings(folder), RememberingE5(), uses={"reranker": "reader"}) as session:
        _starter(session)
        importing.import_paths(session, [path for name in SETS for path in sorted((HERE / name).rglob("*.md"))], WARD)
        every = [(kind, one) for kind, one in gathered(session) if len(one.values)]
    near = "MaxSim over multilingual-e5-small-q4 0.3.0-centred, 160 pieces"
    settings = AskSettings()
    for language in ("en", "zh"):
        base = fitted("multilingual-e5-small-q4-0.3.0-centred-384", near, language)
        kept = [
            (kind, one) for kind, one in every if one.language == language and (not one.answerable or one.holds.any())
        ]
        rows = [(kind, narrowed(one, base)) for kind, one in kept]
        result = scored(rows)
        points = curve([(one, chance) for kind, one, chance in result if kind != "elsewhere"])
        level = Fitted((), 0.0, points).threshold(settings.risk, settings.confidence, settings.unanswerable)
        for kind in ("plain", "elsewhere", "gone"):
            chances = [chance for other, _, chance in result if other == kind]
            print(language, kind, f"answered at {level}: {sum(one >= level for one in chances)} of {len(chances)}")
        beta = fit([one for kind, one in rows if kind != "elsewhere"], [0, 1])
        weights = (beta[1], *(beta[0] * np.array(base.weights[1:])))
        print(
            f'[[fitted]]\nreranker = "reader {SHA256[:12]} and {near}"\nlanguage = "{language}"\n'
            f"intercept = {beta[2]:.3f}\nweights = {dict(zip(NAMES, np.round(weights, 3), strict=True))}\n"
            f"curve = {[[p.level, p.answered, p.answerable, p.wrong, p.unanswerable] for p in points]}"
        )


def parted(with_answer: Sequence[float], without: Sequence[float]) -> float:
    """The area under the ROC curve."""
    more = np.array(with_answer)[:, None] - np.array(without)[None]
    return float(((more > 0) + 0.5 * (more == 0)).mean())


def alone(qa: Path, medquad: Path) -> None:
    """Print how reader and encoder part answers from the rest, and how often the answering window is first."""
    encoder = E5()
    reader = Reader(encoder)

    def near(question: str, texts: Sequence[str]) -> Any:
        return encoder.encode(texts, "passage") @ encoder.encode([question], "query")[0]

    judges: dict[str, Callable[[str, Sequence[str]], Any]] = {"reader": reader.score, "e5": near}
    every = groups(qa, medquad, True)
    for source in dict.fromkeys(one.source for one in every):
        own = [one for one in every if one.source == source][:LEFT_OUT_QUESTIONS]
        for name, judged in judges.items():
            rows = [judged(one.question, [as_read(window, True)[0] for window in one.windows]) for one in own]
            area = parted([max(row) for row in rows], [max(row[1:]) for row in rows])
            print(source, name, f"area {area:.3f}, first {sum(row[0] > max(row[1:]) for row in rows)} of {len(rows)}")


def main() -> None:
    """One part or the other."""
    judge(Path(sys.argv[1])) if len(sys.argv) == 2 else alone(Path(sys.argv[1]), Path(sys.argv[2]))


if __name__ == "__main__":
    main()
