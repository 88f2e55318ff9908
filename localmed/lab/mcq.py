"""Multiple choice: the same questions by several arms, a row for each, resumable.

Arms: ``chat`` (the question alone), ``cot`` (after a chain of thought), and those of ``workflows.context``; there
evidence stands before the question. In the ``mairag`` arms a choice that the evidence speaks against is taken again,
with that said (LINS, PCA). Every arm chooses; ``abstained`` says that localmed would not have answered: nothing was
found, and the model was not certain by itself.

A row holds ids, probabilities, counts and times, never a text. Rows are written as they are finished and outlive the
process (``rows``): nothing is asked twice, nothing is lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from localmed.answering.asking import COHERENCE
from localmed.domain import Answer, AnswerStatus, Evidence, digest
from localmed.domain.errors import TooLong
from localmed.domain.parts import SourcePlanPart
from localmed.domain.ports import UNWATCHED, Choice, CountingChat, Message, Reply, Request, Stance, Watch
from localmed.lab import multiple_choice, rows
from localmed.lab.mcq_files import McqQuestion, McqSet
from localmed.lab.multiple_choice import Chosen, Orders
from localmed.text.language import sentences

CHAT, COT = "chat", "cot"
DEFAULT_ARMS = (CHAT, COT, "retrieval", "mairag")
MAIRAG = "mairag"

Context = Callable[[str, str], Answer]  # (question, arm) -> its evidence
Agrees = Callable[[str, tuple[Evidence, ...]], bool]  # whether a statement agrees with the evidence
Judge = Callable[[Sequence[tuple[str, str]]], Sequence[Stance]]  # (premise, hypothesis) pairs
Advance = Callable[[float, str], object]


@dataclass(slots=True)
class Meter:
    """A ``CountingChat`` that counts what is asked of another: calls, tokens, seconds. One thread."""

    model: CountingChat
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0

    @property
    def identity(self) -> Any:
        """The model's."""
        return self.model.identity

    def complete(self, request: Request, watch: Watch = UNWATCHED) -> Reply:
        """See ``ChatModel``."""
        began = time.perf_counter()
        reply = self.model.complete(request, watch)
        self.seconds += time.perf_counter() - began
        self.calls += 1
        self.tokens_in += reply.prompt_tokens
        self.tokens_out += reply.reply_tokens
        return reply

    def choose(
        self, prefix: Sequence[Message], branches: Sequence[str], labels: Sequence[str], watch: Watch = UNWATCHED
    ) -> list[Choice]:
        """See ``ChatModel``; what the branches share is read, and counted, once."""
        began = time.perf_counter()
        choices = self.model.choose(prefix, branches, labels, watch)
        self.tokens_in += sum(self.model.count([*(message.content for message in prefix), *branches]))
        self.seconds += time.perf_counter() - began
        self.calls += 1
        return choices

    def count(self, texts: Sequence[str]) -> list[int]:
        """See ``TokenCounter``; not counted."""
        began = time.perf_counter()
        counts = self.model.count(texts)
        self.seconds += time.perf_counter() - began
        return counts

    def reset(self) -> None:
        """Count from nothing."""
        self.calls = self.tokens_in = self.tokens_out = 0
        self.seconds = 0.0


@dataclass(frozen=True, slots=True)
class McqRow:
    """What an arm made of a question. ``seconds`` is all of it, of which the model and the search took theirs.

    ``agreement`` is that of the chain of thought with others drawn (LUQ), where somebody judged. What is ``too_long``
    for the model's context even without evidence has no choice (-1), and is wrong.

    ``queries`` counts the queries to each source, ``sources`` the passages that each gave (plan arms).
    """

    set: str
    id: str
    arm: str
    answer: int
    choice: int
    probabilities: tuple[float, ...]
    places: tuple[float, ...]
    flips: float
    measured: bool
    abstained: bool
    regenerated: bool
    passages: int
    calls: int
    tokens_in: int
    tokens_out: int
    seconds: float
    model_seconds: float
    search_seconds: float
    queries: Mapping[str, int]
    sources: Mapping[str, int]
    agreement: float | None = None
    too_long: bool = False

    @property
    def right(self) -> bool:
        """Whether the choice is the right option."""
        return self.choice == self.answer


@dataclass(frozen=True, slots=True)
class Attempt:
    """A choice and how it came about."""

    chosen: Chosen
    regenerated: bool = False
    agreement: float | None = None
    too_long: bool = False


@dataclass(frozen=True, slots=True)
class Bench:
    """What answers: the metered model, the evidence of an arm, and the judge of a choice against its evidence.

    ``seed`` draws the orders of the options, unless ``every_order`` is shown.
    """

    chat: Meter
    context: Context
    agrees: Agrees
    seed: int
    judge: Judge = lambda _: ()
    samples: int = 0
    every_order: bool = False

    def row(self, name: str, question: McqQuestion, arm: str) -> McqRow:
        """The row of ``question`` of the set ``name`` by ``arm``."""
        self.chat.reset()
        began = time.perf_counter()
        answer = self.context(question.text, arm) if arm not in (CHAT, COT) else None
        evidence = answer.evidence if answer else ()
        orders = multiple_choice.orders(len(question.options), f"{self.seed} {name} {question.id}", self.every_order)
        try:
            attempt = self._chosen(question, arm, evidence, orders)
        except TooLong:
            attempt = Attempt(multiple_choice.undecided(len(question.options)), too_long=True)
        chosen = attempt.chosen
        parts = [part for part in (answer.parts if answer else ()) if isinstance(part, SourcePlanPart)]
        return McqRow(
            set=name,
            id=question.id,
            arm=arm,
            answer=question.answer,
            choice=-1 if attempt.too_long else chosen.best,
            probabilities=tuple(round(value, 6) for value in chosen.probabilities),
            places=tuple(round(value, 6) for value in chosen.places),
            flips=round(chosen.flips, 4),
            measured=chosen.measured,
            abstained=answer is not None and answer.status is AnswerStatus.ABSTAINED,
            regenerated=attempt.regenerated,
            passages=len(evidence),
            calls=self.chat.calls,
            tokens_in=self.chat.tokens_in,
            tokens_out=self.chat.tokens_out,
            seconds=round(time.perf_counter() - began, 4),
            model_seconds=round(self.chat.seconds, 4),
            search_seconds=round(_searching(answer), 4),
            queries={part.source: len(part.queries) for part in parts},
            sources={part.source: part.passages for part in parts},
            agreement=attempt.agreement,
            too_long=attempt.too_long,
        )

    def _chosen(self, question: McqQuestion, arm: str, evidence: tuple[Evidence, ...], orders: Orders) -> Attempt:
        """The choice, taken again where the evidence speaks against it; raise ``ModelError`` where nothing fits."""
        text, options = question.text, question.options
        thought = self._thought(question, orders) if arm == COT else ""
        chosen = multiple_choice.choose(self.chat, text, options, orders, evidence, thought)
        agreed = self._agreement(question, orders, thought) if thought and self.samples else None
        if not arm.startswith(MAIRAG) or self._agrees(question, chosen.best, evidence, arm):
            return Attempt(chosen, agreement=agreed)
        against = options[chosen.best]
        again = multiple_choice.choose(self.chat, text, options, orders, evidence, "", against)
        return Attempt(again, regenerated=True)

    def _thought(self, question: McqQuestion, orders: Orders, sample: int = 0) -> str:
        return multiple_choice.reasoning(self.chat, question.text, question.options, orders[0], sample)

    def _agreement(self, question: McqQuestion, orders: Orders, thought: str) -> float | None:
        """How far further chains of thought agree with ``thought`` (LUQ)."""
        thoughts = [self._thought(question, orders, number) for number in range(1, self.samples + 1)]
        lines = [thought[start:end] for start, end in sentences(thought)]
        return agreement(self.judge(pairs(lines, [text for text in thoughts if text.strip()])))

    def _agrees(self, question: McqQuestion, choice: int, evidence: tuple[Evidence, ...], arm: str) -> bool:
        if not evidence or arm.endswith(COHERENCE.name):
            return True
        return self.agrees(f"{question.text} {question.options[choice]}", evidence)


SEARCHES = frozenset({"search", "look_up", "cite"})


def _searching(answer: Answer | None) -> float:
    return sum(step.seconds for step in answer.trace if step.name in SEARCHES) if answer else 0.0


def made_with(sets: Sequence[McqSet], arms: Sequence[str], seed: int, **facts: str) -> dict[str, str]:
    """What a batch is made with: another one is refused when it is resumed. The sets are told by a digest."""
    texts = (
        f"{questions.name}\t{question.id}\t{question.text}\t{question.options}\t{question.answer}"
        for questions in sets
        for question in questions.questions
    )
    return {"questions": digest(*texts)[:16], "arms": " ".join(arms), "seed": str(seed), **facts}


def begin(file: Path, made: Mapping[str, str], resume: bool) -> dict[tuple[str, str, str], McqRow]:
    """The finished rows by set, question and arm; see ``rows.begin``."""
    kept: dict[tuple[str, str, str], McqRow] = {}
    for piece in rows.begin(file, made, resume):
        row = _row(piece)
        if row:
            kept[row.set, row.id, row.arm] = row
    return kept


def _row(piece: Any) -> McqRow | None:
    try:
        row = McqRow(**piece)
        return replace(row, probabilities=tuple(row.probabilities), places=tuple(row.places))
    except TypeError:
        return None


def run(
    bench: Bench,
    sets: Sequence[McqSet],
    arms: Sequence[str],
    file: Path,
    done: Mapping[tuple[str, str, str], McqRow],
    advance: Advance,
) -> Iterator[McqRow]:
    """Every row, those that are ``done`` as they are; a fresh one is in ``file`` before it is given."""
    for questions in sets:
        for question in questions.questions:
            for arm in arms:
                row = done.get((questions.name, question.id, arm))
                if row is None:
                    row = bench.row(questions.name, question, arm)
                    rows.keep(file, asdict(row))
                advance(1, arm)
                yield row


# --- whether a model says the same again ------------------------------------------------------------------------------

# Long-text uncertainty (LUQ, Zhang et al. 2024; Omni-RAG, A.3). Each sentence of an answer is held against others of
# the same model to the same question, drawn with a temperature. How far an answer supports a sentence is
# ``entailment / (entailment + contradiction)``: what it leaves open does not count. The agreement is the mean over
# sentences and answers, from 0 to 1; LUQ's uncertainty is one minus it. High agreement is no sign of truth: a model may
# say the same wrong thing each time.


def pairs(sentences: Sequence[str], samples: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """(premise, hypothesis): every sample with every sentence."""
    return tuple((sample, sentence) for sample in samples for sentence in sentences)


def agreement(stances: Sequence[Stance]) -> float | None:
    """The mean support of the judged pairs; ``None`` where nobody judged, or every sample leaves everything open."""
    sides = [(stance.entailment, stance.contradiction) for stance in stances if stance.judged]
    supports = [entailed / (entailed + against) for entailed, against in sides if entailed + against > 0]
    return sum(supports) / len(supports) if supports else None
