"""The concept graph: how long its import takes and how long a term's card does.

The Disease Ontology, the Symptom Ontology and ONC's interactions as published, imported through the app into one
library; then the cards of random names, asked for as a person would. The target is for the card as it is made by
default; with the encoder as a reranker it is measured to show what that costs.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from localmed.config import Settings
from localmed.ingest import manifest as manifests
from localmed.library.graph import FILE
from localmed.site import importing
from tests.benchmarks.common import Place, Row, library, met, percentile
from tests.fakes import opened

CORPORA = Path(__file__).parents[2] / "corpora"
SOURCES = (("doid", "ontology"), ("symp", "ontology"), ("onc_interactions", "drug_interactions"))
TERMS = 1_000
BY_MEANING = 50
QUESTION = "Which drugs interact with it, and how does it show in children?"


def run(place: Place) -> list[Row]:
    """Import time and what was imported; card times without a question, with one, and reranked by the encoder."""
    data = place.work / "concepts-data"
    seconds = 0.0
    with opened(Settings(data)) as session:
        for name, folder in SOURCES:
            file = CORPORA / f"{name}.toml"
            began = time.perf_counter()
            importing.import_paths(session, [place.data / folder], manifests.load(file), file)
            seconds += time.perf_counter() - began
        path = library(session).path / FILE
        names = random.Random(7).sample(_names(path), TERMS)
        plain = _times(names, lambda name: session.concept(name))
        by_words = _times(names, lambda name: session.concept(name, QUESTION))
        session.concept(names[0], QUESTION, by_meaning=True)  # loads the encoder
        by_meaning = _times(names[:BY_MEANING], lambda name: session.concept(name, QUESTION, by_meaning=True))
    counts = _counts(path)
    what = "of DOID, SYMP and ONC"
    return [
        Row(f"concept graph {what}, import", "", f"{seconds:.1f} s", "-",
            f"{counts}; {path.stat().st_size / 1e6:.1f} MB"),
        Row("a term's card, p95", "<= 10 ms", _shown(plain), met(percentile(plain, 0.95) <= 10),
            f"{TERMS} random names {what}, no question"),
        Row("a term's card ordered by a question, p95", "<= 10 ms", _shown(by_words),
            met(percentile(by_words, 0.95) <= 10),
            "the same names, relations ordered by the question's words (default)"),
        Row("a term's card ordered by meaning, p95", "", _shown(by_meaning), "-",
            f"{BY_MEANING} of them, the encoder's cosine over the first 30 relations (--by-meaning)"),
    ]  # fmt: skip


def _times(names: Sequence[str], call: Callable[[str], object]) -> list[float]:
    """Milliseconds of each call."""
    times = []
    for name in names:
        began = time.perf_counter()
        call(name)
        times.append((time.perf_counter() - began) * 1000)
    return times


def _shown(times: Sequence[float]) -> str:
    return f"{percentile(times, 0.95):.1f} ms (p50 {percentile(times, 0.5):.1f}, longest {max(times):.0f})"


def _names(path: Path) -> list[str]:
    with sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True) as database:
        return [row[0] for row in database.execute("SELECT DISTINCT text FROM names ORDER BY text")]


def _counts(path: Path) -> str:
    """What the graph holds; terms and relations that several files name count once."""
    queries = {
        "terms": "SELECT COUNT(DISTINCT id) FROM concepts",
        "names": "SELECT COUNT(*) FROM (SELECT DISTINCT concept, text FROM names)",
        "relations": "SELECT COUNT(*) FROM (SELECT DISTINCT subject, predicate, object, detail FROM relations)",
        "cross references": "SELECT COUNT(*) FROM (SELECT DISTINCT concept, target FROM xrefs)",
    }
    with sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True) as database:
        return ", ".join(f"{database.execute(query).fetchone()[0]:,} {name}" for name, query in queries.items())
