"""Reindexing: the library brought to another encoder from the passages it holds; no file is read again.

The catalogue, the librarian's marks and the lexical index stay as they are; vectors, token weights and the summaries'
vectors are made anew in a generation of their own, which is served once it is whole. What was encoded before an
interruption is in the vector cache, so the next run goes on where this one stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice

from localmed.config import Settings
from localmed.domain import Passage, message
from localmed.ingest import summaries
from localmed.ingest.pipeline import Progress
from localmed.library import generations
from localmed.library.library import build
from localmed.library.vectors import VectorCache
from localmed.ports import Embedder


def reindex(
    settings: Settings, encoder: Embedder, progress: Progress, started: Callable[[int], None], again: bool = False
) -> int:
    """Build and serve a generation of ``encoder``'s; return its number, 0 if what is served is one already.

    ``again`` rebuilds that one too. ``started`` is told the number of passages, ``progress`` how many more are done.
    Raise ``NoLibrary`` if nothing has been imported.
    """
    served = generations.read_manifest(generations.current(settings.data))
    if served.encoder == encoder.identity.slug and not again:
        return 0
    with build(settings.data, encoder.identity, settings.library, reindex=True) as builder:
        started(len(builder.lexical))
        with closing(VectorCache(settings.data / "vectors", encoder)) as cache:
            for passages in _batches(builder.lexical.all_passages(), settings.library.batch):
                builder.add_vectors(passages, *cache.encode_both([passage.in_context for passage in passages]))
                progress(len(passages), f"{len(passages)} passages")
        summaries.complete(builder, encoder, settings, progress)
        return builder.publish(message("generation.made.reindex", before=served.encoder, after=encoder.identity.slug))


def _batches(passages: Iterator[Passage], size: int) -> Iterator[list[Passage]]:
    while batch := list(islice(passages, size)):
        yield batch
