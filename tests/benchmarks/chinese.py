"""Chinese known items: does a question find the paragraph that it was written for? By words alone, and fused with e5.

150 questions for choosing and 150 held back (``zh_known/``), by one author who had not seen the code, over the starter
corpus and the Chinese text of the NHC's COVID-19 protocol, with the English texts beside them. A hit is a passage that
holds the question's evidence. The held-back half was looked at once, when nothing was left to choose.
"""

from __future__ import annotations

import json
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from localmed.config import Settings
from localmed.domain import Collection, Kind, SearchFilter
from localmed.domain.ports import EncoderIdentity
from localmed.ingest.manifest import Manifest
from localmed.lab import measures
from localmed.models.e5 import E5
from localmed.site import importing
from localmed.site.session import Session
from tests.benchmarks.common import Place, Row, met
from tests.benchmarks.sections import import_starter
from tests.fakes import opened

TITLES = {"zh": "新型冠状病毒肺炎诊疗方案", "en": "Diagnosis and treatment protocol for novel coronavirus pneumonia"}
QUESTIONS = Path(__file__).parent / "zh_known"
WAYS = ("words alone", "e5 fused")
DEPTH, SEED, GAIN = 10, 1, 0.10


class EnglishAlone(E5):
    """The encoder as if it knew no Chinese."""

    @cached_property
    def identity(self) -> EncoderIdentity:
        return replace(super().identity, languages=("en",))


def run(place: Place) -> list[Row]:
    """Build a library, ask both halves in each way."""
    ranks: dict[str, dict[str, Any]] = {}
    data = Path(tempfile.mkdtemp(dir=place.work))
    for way, encoder in zip(WAYS, (EnglishAlone(), E5()), strict=True):
        with opened(Settings(data), encoder) as session:
            if not (data / "current").exists():
                build(session, place)
            ranks[way] = {half: reciprocal_ranks(session, questions(half)) for half in ("dev", "held")}
    return [_row(way, half, ranks) for half in ("dev", "held") for way in WAYS]


def questions(half: str) -> list[dict[str, Any]]:
    """The questions of one half."""
    rows: list[dict[str, Any]] = tomllib.loads((QUESTIONS / f"{half}.toml").read_text("utf-8"))["question"]
    return rows


def build(session: Session, place: Place) -> None:
    """Import the starter corpus and the protocol in both languages."""
    import_starter(session)
    folder = Path(tempfile.mkdtemp(dir=place.work))
    for name, title in TITLES.items():
        (folder / f"protocol-{name}.md").write_text(protocol(place, name, title), "utf-8")
    importing.import_paths(session, [folder], Manifest(Collection("guides", "Protocol", kind=Kind.GUIDELINE)))


def reciprocal_ranks(session: Session, questions: Sequence[dict[str, Any]]) -> Any:
    """One over the rank of the first passage with the evidence among ten, else 0: an array, one a question."""
    ranks = []
    for question in questions:
        hits = session.find(question["text"], SearchFilter(), DEPTH, DEPTH).found.hits
        places = [
            rank for rank, hit in enumerate(hits, 1) if question["evidence"] in "".join(hit.passage.text.split("\n"))
        ]
        ranks.append(1 / places[0] if places else 0.0)
    return np.array(ranks)


def _row(way: str, half: str, ranks: dict[str, dict[str, Any]]) -> Row:
    values, words = ranks[way][half], ranks["words alone"][half]
    gain, p = float(values.mean() - words.mean()), measures.paired_p(values, words, SEED)
    how = f"{len(values)} questions; recall@5 {(values >= 1 / 5).mean():.3f}"
    if way != "words alone":
        how += f"; {gain:+.3f} against words alone, p {p:.4f}"
    name = "held back" if half == "held" else "for choosing"
    target, ok = (f"+{GAIN} and p < 0.05", met(gain >= GAIN and p < 0.05)) if way == "e5 fused" else ("", "-")
    return Row(f"Chinese known item, {name}, {way}, MRR@10", target, f"{values.mean():.3f}", ok, how)


def protocol(place: Place, name: str, title: str) -> str:
    """The protocol's paragraphs in one language as Markdown; a tag ``T2`` is a heading of the second level."""
    lines = [f"# {title}"]
    for line in (place.data / "zh_en_protocol" / "paragraphs.jsonl").read_text("utf-8").splitlines():
        paragraph = json.loads(line)
        text = " ".join(paragraph[name].split())
        level = int(paragraph["tag"][1:]) + 1 if paragraph["tag"].startswith("T") else 0
        lines.append(f"{'#' * level} {text}" if level else text)
    return "\n\n".join(lines)
