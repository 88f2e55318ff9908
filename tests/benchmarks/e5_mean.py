"""The mean of multilingual-e5-small's vectors of the starter corpus, both languages alike: ``models/e5_mean.npy``.

python -m tests.benchmarks.e5_mean
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from localmed.config import Settings
from localmed.models.e5 import E5, MEAN, Uncentred
from tests.benchmarks.common import library
from tests.benchmarks.sections import import_starter
from tests.fakes import HashedWords, opened


def main() -> None:
    """Import the corpus, encode its passages, write the mean."""
    with opened(Settings(Path(tempfile.mkdtemp())), HashedWords()) as session:
        import_starter(session)
        passages = list(library(session).lexical.all_passages())
    vectors = Uncentred(E5()).encode([passage.in_context for passage in passages], "passage")
    of_language = [[passage.language == language for passage in passages] for language in ("en", "zh")]
    np.save(MEAN, np.mean([vectors[own].mean(axis=0) for own in of_language], axis=0).astype(np.float32))


if __name__ == "__main__":
    main()
