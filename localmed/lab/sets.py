"""Question sets: what is asked, which documents answer it, and how samples of questions are drawn.

A *known-item* set asks each stored record's own question, which must not be indexed, and looks for that one record. The
reported sample (``REPORTED_SEED``) and the one for tuning (``TUNING_SEED``) are disjoint: settings are chosen on the
second, figures reported from the first.

Judgements are gains: 0 was judged useless, more is better, what nobody judged counts as useless. A question without a
single relevant document in the library scores nothing whatever is searched; such questions are left out and counted.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from localmed.domain import Message, SearchFilter, message
from localmed.domain.errors import InputError, UsageError
from localmed.library.library import Library
from localmed.process.files import contents
from localmed.text.language import clean

SAMPLE = 1000  # questions: an MRR of 0.7 is then known to about 0.025 either way
REPORTED_SEED = 1
TUNING_SEED = 7
LEAST_QUESTIONS = 2  # of one question there is no interval
MOST_BYTES = 256 * 2**20  # of one file of questions or judgements; MS MARCO's largest has 220 MiB
LEAK_CHECKS = 20  # questions looked for in the library's own headings

Pair = tuple[str, str]  # (question, name of the record that answers it)


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its id, which holds no blank. The text is in no representation, so that no log shows it."""

    id: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions with the gain of each judged document: ``judgements[question id][document id]``.

    ``relevant_from`` is the gain from which a document counts where a measure knows only relevant or not.
    ``measure`` is the one that a report leads with. A document that is not in the library may be judged: it is a miss.
    """

    name: str
    questions: tuple[Question, ...]
    judgements: Mapping[str, Mapping[str, int]]
    search_filter: SearchFilter = field(default_factory=SearchFilter)
    relevant_from: int = 1
    measure: str = "MRR@10"
    notes: tuple[Message, ...] = ()

    def answerable(self) -> QuestionSet:
        """Only the questions that a document answers; raise ``InputError`` if fewer than two are left."""
        kept = tuple(question for question in self.questions if self._answered(question))
        if len(kept) < LEAST_QUESTIONS:
            raise InputError("evaluation.few", questions=len(self.questions), count=len(kept), least=LEAST_QUESTIONS)
        left_out = len(self.questions) - len(kept)
        note = message("evaluation.note.left_out", count=left_out, questions=len(self.questions))
        notes = (*self.notes, note) if left_out else self.notes
        judged = {question.id: self.judgements[question.id] for question in kept}
        return replace(self, questions=kept, judgements=judged, notes=notes)

    def _answered(self, question: Question) -> bool:
        return any(gain >= self.relevant_from for gain in self.judgements.get(question.id, {}).values())


def sample(pairs: Sequence[Pair], size: int = SAMPLE, seed: int = REPORTED_SEED) -> list[Pair]:
    """At most ``size`` of ``pairs``; the same ones wherever and in whatever order they were read."""
    ordered = sorted(pairs, key=_by_record)
    return random.Random(seed).sample(ordered, min(size, len(ordered)))  # noqa: S311  (a sample, not a secret)


def tuning_sample(pairs: Sequence[Pair], size: int = SAMPLE, seed: int = TUNING_SEED) -> list[Pair]:
    """At most ``size`` of the pairs that the reported sample leaves."""
    return sample(list(set(pairs) - set(sample(pairs))), size, seed)


def _by_record(pair: Pair) -> tuple[str, str]:
    return pair[1], pair[0]


def known_item(
    name: str, pairs: Sequence[Pair], documents: Mapping[str, str], search_filter: SearchFilter
) -> QuestionSet:
    """The set that looks for each question's own record. ``documents``: record -> document id, of those stored.

    A record whose text is stored under an identical one has no document of its own; it stays in as a miss.
    """
    if not pairs:
        raise InputError("evaluation.no_pairs")
    missing = sum(record not in documents for _, record in pairs)
    if missing == len(pairs):
        raise InputError("evaluation.not_imported", count=missing)
    questions = tuple(Question(blankless(record), clean(question)) for question, record in pairs)
    judgements = {blankless(record): {documents.get(record, f"missing:{blankless(record)}"): 1} for _, record in pairs}
    note = message("evaluation.note.misses", count=missing)
    return QuestionSet(name, questions, judgements, search_filter, notes=(note,) if missing else ())


def blankless(name: str) -> str:
    """``name`` as an id in a run file, whose columns are separated by blanks."""
    return "_".join(name.split())


def refuse_indexed_questions(library: Library, question_set: QuestionSet) -> None:
    """Raise ``UsageError`` if the library holds the questions themselves: each would then find its record by itself."""
    settings = (1.0, 64)  # title boost, terms: as good as any to find a text by its own words
    for question in question_set.questions[:LEAK_CHECKS]:
        documents = tuple(question_set.judgements[question.id])
        hits = library.search_lexical(
            question.text, 1, replace(question_set.search_filter, documents=documents), *settings
        )
        for passage in library.passages([hit[0] for hit in hits]).values():
            if question.text.casefold() in (name.casefold() for name in (passage.title, *passage.headings)):
                raise UsageError("evaluation.indexed")


def read_bytes(file: Path) -> bytes:
    """The bytes of a file of questions or judgements; raise ``InputError`` if it cannot be read or is too large."""
    return contents(file, MOST_BYTES)


def read_text(file: Path) -> str:
    """The text of such a file; raise ``InputError`` as ``read_bytes``, or if it is not UTF-8."""
    try:
        return read_bytes(file).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("file.no_utf8", name=file.name) from None
