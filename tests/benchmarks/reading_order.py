"""Reading order of the PDF reader: which share of the sentences of real pages with columns comes out whole and right.

The truth is the text of the pages as a person reads them: for each page of ``reading_order.json`` the columns, boxes
and footnotes were marked on its image by eye, in reading order, their words written down region by region without our
reader's rules, and the result read against the image and corrected: what hyphens at line ends stand for, where list
items and sentences end, accents. Headings, tables, running headers and sentences of fewer than three words are left
out. The texts are not part of the project, so only fingerprints of the sentences are kept (``fingerprints``).

A sentence is right if all its words, and nothing else, stand in its order within one block of what the reader yields,
cut at white space, in Unicode's compatibility form (a raised figure is a figure). What stands in wrong order among the
right sentences is counted besides (not for footnotes, which may come before or after what they interrupt). Pages that
are ``held`` were written down after the rules had been changed for the others; they are of the same files, and what the
reader made of some of them had been seen before. One person wrote down the pages; nobody else has checked them.

    python -m tests.benchmarks.reading_order TRANSCRIPT     # a sentence a line -> fingerprints as JSON
"""

from __future__ import annotations

import json
import sys
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from localmed.ingest.parsed import FieldMapping, SourceRecord
from localmed.ingest.readers.pdf.reader import read
from localmed.ingest.reading import text_of
from tests.benchmarks.common import Place, Row, met

TRUTH = Path(__file__).with_suffix(".json")
DIGEST = 16  # hex characters
TARGET = 0.98

Fingerprint = tuple[int, str]  # words, digest


def run(place: Place) -> list[Row]:
    """One row for all pages, one for those held back, one a file."""
    rows: list[Row] = []
    counts: list[tuple[bool, int, int, int]] = []
    for load in json.loads(TRUTH.read_text("utf-8")):
        fingerprints = [(int(count), str(digest)) for count, digest in [*load["sentences"], *load["footnotes"]]]
        positions = places(blocks(place.data / load["file"], load["pages"]), fingerprints)
        good, wrong = sum(one is not None for one in positions), misplaced(positions[: len(load["sentences"])])
        counts.append((load["held"], good, len(fingerprints), len(load["pages"])))
        what = f"Reading order, {Path(load['file']).name}{', held back' if load['held'] else ''}"
        rows.append(
            Row(what, "", f"{_share(good, len(fingerprints))}, {wrong} out of order", "-", _pages(load["pages"]))
        )
    held = [count for count in counts if count[0]]
    return [_total("Reading order of columns", counts), _total("Reading order, held-back pages", held), *rows]


def _total(what: str, counts: Sequence[tuple[bool, int, int, int]]) -> Row:
    right, total, pages = (sum(count[place] for count in counts) for place in (1, 2, 3))
    how = f"sentences of {pages} pages read by eye that stand whole, right and by themselves in one block of the reader"
    return Row(what, f"{TARGET}", _share(right, total), met(right >= TARGET * total), how)


def _share(right: int, total: int) -> str:
    return f"{right / total:.3f} ({right} of {total})"


def _pages(numbers: Sequence[int]) -> str:
    return f"pages {', '.join(map(str, numbers))}"


def blocks(path: Path, pages: Sequence[int]) -> list[str]:
    """The text of each block of ``path`` that stands at least in part on ``pages``, table rows left out."""
    (record,) = (record for record in read(path, FieldMapping()) if isinstance(record, SourceRecord))
    texts = [block.lines for block in record.blocks if block.kind != "row"]
    return [text_of(lines)[0] for lines in texts if any(line.box and line.box.page in pages for line in lines)]


def words(text: str) -> list[str]:
    """``text`` cut at white space, in compatibility form."""
    return unicodedata.normalize("NFKC", text).split()


def fingerprints(sentences: Iterable[str]) -> Iterator[Fingerprint]:
    """What is kept of each sentence: how many words, and the digest of them."""
    for sentence in sentences:
        tokens = words(sentence)
        yield len(tokens), _digest(tokens)


def _digest(tokens: Sequence[str]) -> str:
    return sha256(" ".join(tokens).encode()).hexdigest()[:DIGEST]


def places(texts: Sequence[str], fingerprints: Sequence[Fingerprint]) -> list[int | None]:
    """Where each sentence begins, counted in words over all ``texts``; ``None`` where it is not found in one of them.

    Of sentences that are worded alike the first takes the first place.
    """
    lengths = {length for length, _ in fingerprints}
    known = set(fingerprints)
    by_print: dict[Fingerprint, list[int]] = {}
    offset = 0
    for text in texts:
        these = words(text)
        for start in range(len(these)):
            for length in lengths:
                if start + length > len(these):
                    continue
                key = (length, _digest(these[start : start + length]))
                if key in known:
                    by_print.setdefault(key, []).append(offset + start)
        offset += len(these)
    return [by_print[fingerprint].pop(0) if by_print.get(fingerprint) else None for fingerprint in fingerprints]


def misplaced(positions: Sequence[int | None]) -> int:
    """How many of the places that were found lie outside the longest run that only rises."""
    tails: list[int] = []
    known = [place for place in positions if place is not None]
    for place in known:
        at = bisect_left(tails, place)
        tails[at : at + 1] = [place]
    return len(known) - len(tails)


if __name__ == "__main__":
    print(json.dumps(list(fingerprints(Path(sys.argv[1]).read_text("utf-8").splitlines()))))
