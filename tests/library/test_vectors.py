"""The cache of vectors: each text is encoded once, encoders never mix, and damage costs time only."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from localmed.library.migrations import VECTORS, open_database
from localmed.library.vectors import VectorCache
from tests.fakes import HashedWords, WeighedWords


def path_of(folder: Path, encoder: HashedWords) -> Path:
    return folder / f"{encoder.identity.slug}.sqlite"


def test_each_text_is_encoded_once_with_its_weights(tmp_path: Path) -> None:
    encoder, texts = WeighedWords(), ["sepsis", "", "dose of paracetamol", "sepsis"]
    with closing(VectorCache(tmp_path, encoder)) as cache:
        first = cache.encode(texts)
    assert encoder.encoded == texts[:3]
    texts += [f"text {number}" for number in range(1200)]
    with closing(VectorCache(tmp_path, encoder)) as cache:
        vectors, weights = cache.encode_both(texts)
        assert cache.encoded == 1200
    assert len(encoder.encoded) == 1203
    assert np.array_equal(vectors[:4], first)
    expected = encoder.encode_both(texts, "passage")
    assert np.abs(vectors - expected[0]).max() < 1e-3
    for mine, theirs in zip(weights, expected[1], strict=True):
        assert mine == pytest.approx(theirs, rel=1e-3)


def test_encoders_never_mix(tmp_path: Path) -> None:
    one, two = HashedWords("1"), HashedWords("2")
    for encoder in (one, two, one):
        with closing(VectorCache(tmp_path, encoder)) as cache:
            cache.encode(["text"])
    assert (one.encoded, two.encoded) == (["text"], ["text"])


def test_vectors_survive_kill(tmp_path: Path) -> None:
    code = (
        "import os, sys, signal; from pathlib import Path; from tests.fakes import HashedWords\n"
        "from localmed.library.vectors import VectorCache\n"
        "VectorCache(Path(sys.argv[1]), HashedWords()).encode(['one', 'two']); os.kill(os.getpid(), signal.SIGKILL)"
    )
    root = Path(__file__).parents[2]
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=root, check=False)
    assert ran.returncode == -9
    encoder = HashedWords()
    with closing(VectorCache(tmp_path, encoder)) as cache:
        cache.encode(["one", "two", "three"])
    assert encoder.encoded == ["three"]


def test_a_cache_of_before_there_were_digests_is_encoded_again(tmp_path: Path) -> None:
    encoder = HashedWords()
    path = path_of(tmp_path, encoder)
    with closing(VectorCache(tmp_path, encoder)) as cache:
        cache.encode(["sepsis"])
    with closing(sqlite3.connect(path)) as new:
        rows = new.execute("SELECT key, vector FROM vectors").fetchall()
    path.unlink()
    with closing(open_database(path, VECTORS[:1])) as old:
        old.executemany("INSERT INTO vectors VALUES (?, ?)", rows)
    with closing(VectorCache(tmp_path, encoder)) as cache:
        assert cache.encode_both(["sepsis"])[1] == [{}]
        assert cache.encoded == 1


@pytest.mark.parametrize("place", ["file", "key", "vector", "weights", "digest"])
def test_damage_costs_time_only(tmp_path: Path, place: str) -> None:
    encoder = WeighedWords()
    with closing(VectorCache(tmp_path, encoder)) as cache:
        vectors, weights = cache.encode_both(["sepsis"])
    if place == "file":
        path_of(tmp_path, encoder).write_bytes(b"damaged" * 1000)
    else:
        with closing(sqlite3.connect(path_of(tmp_path, encoder))) as database, database:
            stored = database.execute(f"SELECT {place} FROM vectors").fetchone()[0]
            database.execute(f"UPDATE vectors SET {place} = ?", (bytes([stored[0] ^ 4]) + stored[1:],))
    with closing(VectorCache(tmp_path, encoder)) as cache:
        for _ in range(2):
            again = cache.encode_both(["sepsis"])
            assert (cache.encoded, again[1], (again[0] == vectors).all()) == (1, weights, True)


def test_flipped_bits_of_the_cache_cost_time_only(tmp_path: Path) -> None:
    encoder, texts, chance = WeighedWords(), [f"sepsis {number}" for number in range(300)], random.Random(3)
    with closing(VectorCache(tmp_path, encoder)) as cache:
        vectors, weights = cache.encode_both(texts)
    path = path_of(tmp_path, encoder)
    whole, encoded = path.read_bytes(), 0
    for _ in range(40):
        place = chance.randrange(len(whole))
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << chance.randrange(8)]) + whole[place + 1 :])
        with closing(VectorCache(tmp_path, encoder)) as cache:
            again = cache.encode_both(texts)
            encoded += cache.encoded
        assert (again[0] == vectors).all()
        assert again[1] == weights
    assert encoded
