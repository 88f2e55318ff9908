"""Plans to learn from (Omni-RAG, source planning optimisation, 4.2.3), made of judged queries.

The paper's rules: of a source's positive queries up to three make the positive plan, drawn where there are more; a
source without one is left empty; a question without any is left out. The negative plan is made of the negative queries
in the same way, and only a question with both plans is a pair for direct preference optimisation. A question that is
not judged to its end is left out.

A file of pairs holds the questions and queries themselves.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from localmed.answering.planning import PLAN, PlanInput
from localmed.answering.roles import Writing
from localmed.answering.source_plan import QUERIES, SourcePlan, written
from localmed.answering.source_plan import read as read_plan
from localmed.domain.errors import InputError, Rejected
from localmed.domain.ports import Message
from localmed.lab import rows
from localmed.lab.exploring import Drawn, Judged
from localmed.lab.sets import Question
from localmed.library.intact import sha256_of
from localmed.process import files


@dataclass(frozen=True, slots=True)
class Pair:
    """A question, the sources there were, a plan that is good for it, and one that is not ("": there is none)."""

    question: str
    text: str
    sources: tuple[str, ...]
    positive: str
    negative: str

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the planner is asked, word for word as the role ``plan`` asks it."""
        form = PLAN.form
        assert isinstance(form, Writing)
        task = PlanInput(self.text, self.sources)
        return Message("system", PLAN.instructions[task.language]), Message("user", form.prompt(task))


def build(
    explored: Iterable[Drawn | Judged], questions: Sequence[Question], sources: tuple[str, ...], seed: int
) -> list[Pair]:
    """The pairs of ``questions``, in their order; the same ones for the same rows and seed."""
    base: dict[str, Judged] = {}
    judged: dict[str, dict[str, list[Judged]]] = defaultdict(lambda: defaultdict(list))
    for row in explored:
        if isinstance(row, Drawn):
            judged[row.question][row.source] += []
        elif row.source:
            judged[row.question][row.source].append(row)
        else:
            base[row.question] = row
    pairs = []
    for question in questions:
        if question.id in base and set(judged[question.id]) == set(sources):
            better, worse = _plans(judged[question.id], base[question.id], f"{seed} {question.id}")
            if not better.empty:
                texts = (written(better, sources), "" if worse.empty else written(worse, sources))
                pairs.append(Pair(question.id, question.text, sources, *texts))
    return pairs


def _plans(by_source: Mapping[str, Sequence[Judged]], base: Judged, seed: str) -> tuple[SourcePlan, SourcePlan]:
    """The positive plan and the negative one."""
    draw = random.Random(seed)  # noqa: S311  (a sample, not a secret)
    plans = []
    for positive in (True, False):
        named: dict[str, Any] = {
            source: _some([row.query for row in judged if row.better(base) is positive], draw)
            for source, judged in by_source.items()
        }
        plans.append(SourcePlan(**named))
    return plans[0], plans[1]


def _some(queries: Sequence[str], draw: random.Random) -> tuple[str, ...]:
    """At most three of ``queries``, in their order."""
    chosen = draw.sample(range(len(queries)), min(QUERIES, len(queries)))
    return tuple(queries[place] for place in sorted(chosen))


def write(file: Path, made: Mapping[str, Any], pairs: Sequence[Pair], explored: Path) -> None:
    """Write ``pairs`` behind a line with what they are ``made`` with and of (``explored``), whole or not at all."""
    made = {**made, "explored": sha256_of(explored)}
    lines = [json.dumps(value, ensure_ascii=False) + "\n" for value in (made, *map(asdict, pairs))]
    with rows.writable(file):
        files.replace(file, "".join(lines).encode())


def read(file: Path) -> tuple[Mapping[str, Any], list[Pair]]:
    """What ``write`` wrote; raise ``InputError`` for anything else."""
    made, pieces = rows.read(file)
    pairs = [Pair(**piece | {"sources": tuple(piece["sources"])}) for piece in pieces]
    try:
        for pair in pairs:
            read_plan(json.loads(pair.positive))
    except (ValueError, Rejected):
        raise InputError("evaluation.rows", file=str(file)) from None
    return made, pairs
