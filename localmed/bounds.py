"""What the values of the settings may be: what a number may not be below or above, lists of names, texts."""

from __future__ import annotations

from typing import Any

from localmed.errors import BadSettings

# What a number may not be below: 0 where that switches something off, more where less would not work at all.
LEAST = {
    **dict.fromkeys(
        ("search.dense_weight", "search.lexical_weight", "search.keyword_weight", "search.sparse_weight"), 0
    ),
    **dict.fromkeys(("search.rerank_lexical_weight", "search.rerank_fused_weight", "search.title_boost"), 0),
    **dict.fromkeys(("search.sentences", "search.sentence_fused_weight", "search.sentence_words_weight"), 0),
    **dict.fromkeys(("search.guidelines", "search.guideline_weight", "search.guideline_similarity"), 0),
    "search.guideline_coverage": 0,
    "ingest.children": 0,
    "web.history_days": 0,
    "web.report_days": 0,
    "web.password_characters": 8,  # what NIST SP 800-63B asks for at least
    "web.body_bytes": 100_000,
    "refresh.settle_seconds": 0,
    "refresh.wait_seconds": 0,
    "chunk.characters": 100,  # a sentence has about 100
    "read.child_memory_bytes": 256 * 2**20,  # the interpreter with its readers takes most of it
    "read.ocr_memory_bytes": 2 * 2**30,  # an A4 page takes 1.3 GiB
    "library.writer_memory_bytes": 15_000_000,  # Tantivy refuses less
    "chat.threads": 0,
    "chat.gpu_layers": -1,
    "chat.nice": 0,
    "host.silent_seconds": 3,  # a host that works gives a sign every second
    "chat.sequences": 2,  # one holds the prefix
}
LEAST_OTHERWISE = {int: 1, float: 0.001}
MOST = {
    "web.idle_minutes": 1440,
    "web.answers_at_once": 16,
    "web.answers_waiting": 16,  # each may hold one of the 40 threads that answer requests
    "web.login_hours": 168,
    "ingest.children": 64,
    "read.ocr_threads": 64,
    **dict.fromkeys(("search.guideline_similarity", "search.guideline_coverage"), 1),
    "chat.nice": 19,
    "chat.sequences": 64,  # what every build of llama.cpp takes
    "workflows.m_eval_found": 100,  # each is read whole
    "keywords.most": 20,  # the searches for n keywords are at worst n * (n + 1) / 2
}
MOST_OTHERWISE = 2**53  # what every system call and library takes


def within(value: Any, path: str, file: str, kind: type = int) -> Any:
    """``value``; raise ``BadSettings`` for a number that cannot work (negative, not a number, above its most)."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        least, most = LEAST.get(path, LEAST_OTHERWISE[kind]), MOST.get(path, MOST_OTHERWISE)
        if not least <= value <= most:  # also for nan
            raise BadSettings("settings.range", file=file, path=path, least=least, most=most)
    return value


def names(value: Any, path: str, file: str, least: int = 0) -> tuple[str, ...]:
    """``value``, a list of at least ``least`` names; raise ``BadSettings`` for anything else."""
    if isinstance(value, list) and len(value) >= least and all(isinstance(name, str) and name for name in value):
        return tuple(value)
    raise BadSettings("settings.names", file=file, path=path)


def text(value: Any, path: str, file: str) -> str:
    """``value``, a text that is not empty; raise ``BadSettings`` for anything else."""
    if isinstance(value, str) and value:
        return value
    raise BadSettings("settings.text", file=file, path=path)
