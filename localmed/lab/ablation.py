"""Retrieval with parts taken away: dense, lexical or both, each with and without the reranker (Dual-RAG, Table 4).

All variants search one open library with the settings in force; a variant only leaves parts out. Passages are collapsed
to documents, each at the place of its best passage.

Finished variants are kept as TREC run files. Their names carry a fingerprint of all that decides a run (questions,
library, ledger of withdrawals, encoder, reranker, settings, depth, version), so that a run is reused for the same
evaluation only. A run file holds ids, ranks and scores, never a text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from localmed import __version__
from localmed.config import SearchSettings
from localmed.domain import digest
from localmed.domain.errors import BadSettings, InputError, UsageError
from localmed.domain.ports import Embedder, Reranker
from localmed.lab.measures import Run
from localmed.lab.sets import Question, QuestionSet, read_bytes
from localmed.library.library import Library
from localmed.library.withdrawals import Withdrawals
from localmed.retrieval.search import HybridSearch

Advance = Callable[[float, str], None]


@dataclass(frozen=True, slots=True)
class Variant:
    """Which parts take part."""

    name: str
    dense: bool
    lexical: bool
    rerank: bool


RERANKED = "+rerank"
VARIANTS = tuple(
    Variant(name + (RERANKED if rerank else ""), dense, lexical, rerank)
    for rerank in (False, True)
    for name, dense, lexical in (("dense", True, False), ("lexical", False, True), ("both", True, True))
)


@dataclass(frozen=True, slots=True)
class Bench:
    """What is evaluated: a library, its encoder, the reranker if there is one, and the passages read a question."""

    library: Library
    encoder: Embedder
    settings: SearchSettings
    reranker: Reranker | None
    depth: int

    def variants(self, names: Sequence[str] = ()) -> tuple[Variant, ...]:
        """The variants called ``names``; by default all that this bench can run, the fullest last."""
        known = {variant.name: variant for variant in VARIANTS}
        if unknown := [name for name in names if name not in known]:
            raise UsageError("evaluation.variant", known=tuple(known), name=unknown[0])
        chosen = [variant for variant in VARIANTS if variant.name in names or not names]
        if names and not self.reranker and any(variant.rerank for variant in chosen):
            raise BadSettings("evaluation.no_reranker")
        return tuple(variant for variant in chosen if self.reranker or not variant.rerank)

    def searcher(self, variant: Variant, question_set: QuestionSet) -> Callable[[Question], list[str]]:
        """A function from a question to the ids of the documents found, best first."""
        settings = replace(
            self.settings,
            dense_weight=self.settings.dense_weight if variant.dense else 0.0,
            lexical_weight=self.settings.lexical_weight if variant.lexical else 0.0,
            sparse_weight=self.settings.sparse_weight if variant.lexical else 0.0,  # words, however they were weighed
        )
        hybrid = HybridSearch(self.library, self.encoder, settings, self.reranker if variant.rerank else None)

        def search(question: Question) -> list[str]:
            hits = hybrid.search(question.text, question_set.search_filter, self.depth).hits
            return list(dict.fromkeys(hit.passage.document_id for hit in hits))

        return search

    def fingerprint(self, question_set: QuestionSet, variant: Variant) -> str:
        """Twelve hex characters that differ wherever a run could."""
        manifest = self.library.manifest
        ids, contents = Withdrawals(self.library.data).in_force()
        decides = (
            *(f"{question.id}\t{question.text}" for question in question_set.questions),
            repr(question_set.search_filter),
            f"{manifest.number} {manifest.created} {manifest.encoder} {manifest.passages}",
            repr((sorted(ids), sorted(contents))),
            self.encoder.identity.slug,
            self.reranker.name if self.reranker and variant.rerank else "",
            repr(sorted(asdict(self.settings).items())),
            f"{self.depth} {__version__}",
        )
        return digest(*decides)[:12]


def run(bench: Bench, variant: Variant, question_set: QuestionSet, advance: Advance) -> Run:
    """Ask every question."""
    search = bench.searcher(variant, question_set)
    ranked = {}
    for question in question_set.questions:
        ranked[question.id] = search(question)
        advance(1, variant.name)
    return ranked


def run_all(
    bench: Bench,
    variants: Sequence[Variant],
    question_set: QuestionSet,
    advance: Advance,
    folder: Path | None = None,
    resume: bool = False,
) -> dict[str, Run]:
    """The run of each variant; kept in ``folder`` when finished, and with ``resume`` taken from there."""
    runs: dict[str, Run] = {}
    for variant in variants:
        file = folder / f"{variant.name}-{bench.fingerprint(question_set, variant)}.run" if folder else None
        kept = read_run(file, question_set) if file and resume else None
        if kept is not None:
            advance(len(question_set.questions), variant.name)
        else:
            kept = run(bench, variant, question_set, advance)
            if file:
                write_run(file, kept)
        runs[variant.name] = kept
    return runs


def write_run(file: Path, run: Run) -> None:
    """Write a run in TREC format, whole or not at all."""
    lines = [
        f"{question} Q0 {document} {rank} {len(documents) - rank + 1} {file.stem}\n"
        for question, documents in run.items()
        for rank, document in enumerate(documents, 1)
    ]
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".part")
    fresh.write_text("".join(lines), "utf-8")
    fresh.replace(file)


def read_run(file: Path, question_set: QuestionSet) -> Run | None:
    """A run that was written for the same questions; ``None`` if there is none, or it cannot be read."""
    ranked: dict[str, list[str]] = {question.id: [] for question in question_set.questions}
    with suppress(InputError, ValueError, KeyError):
        for line in read_bytes(file).decode().splitlines():
            question, _, document, *_ = line.split()
            ranked[question].append(document)
        return ranked
    return None
