"""Sentences of real medical documents that are taken for text addressed to a language model: false alarms.

    python -m tests.benchmarks.alarms DATA [LIST]

``DATA`` is the folder of real data: guidelines (English and Chinese, PDF and paragraphs), leaflets (MedQuAD, a fixed
sample of its documents) and abstracts (PubMedQA). None of it goes into the project: ``LIST``, a file outside it, takes
the sentences that were noticed, to be read. None of them is known to speak to a program; a sentence is judged as a
passage of its document would be, by wording and likeness, with the encoder by meaning as well.
"""

from __future__ import annotations

import json
import random
import re
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from localmed.config import Settings
from localmed.domain.ports import Embedder
from localmed.models.e5 import E5, Uncentred
from localmed.safety.prompt_injection import has_injection
from localmed.text.language import detect, sentences
from tests.benchmarks.common import Place, Row, library, met
from tests.benchmarks.sections import imported
from tests.fakes import opened

DOCUMENTS = 250  # of MedQuAD, drawn with ``SEED``
SEED = 1
MOST = 1 / 5000
_ANSWER = re.compile(r"<Answer>(.*?)</Answer>", re.DOTALL)
_BLANKS = re.compile(r"\s+")
_SHORTEST = 12  # characters


@dataclass(frozen=True)
class Text:
    """A sentence of a document of ``kind``."""

    kind: str
    text: str

    @property
    def language(self) -> str:
        """It is told by its letters."""
        return detect(self.text)


def guidelines(data: Path) -> Iterator[str]:
    """The passages of the PDFs of guidelines, and the paragraphs of a protocol in both languages."""
    paths = sorted((*data.glob("pdf_en/*.pdf"), *data.glob("pdf_zh/*.pdf")))
    with tempfile.TemporaryDirectory() as folder, opened(Settings(Path(folder))) as session:
        imported(session, paths, starter=False)
        yield from (passage.text for passage in library(session).lexical.all_passages())
    for line in (data / "zh_en_protocol" / "paragraphs.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        yield from (row["zh"], row["en"])


def leaflets(data: Path) -> Iterator[str]:
    """The answers of ``DOCUMENTS`` records of MedQuAD."""
    with tarfile.open(data / "medquad" / "medquad_sets1-9_xml.tar.xz") as archive:
        texts = [
            archive.extractfile(member).read().decode("utf-8")  # type: ignore[union-attr]
            for member in archive
            if member.name.endswith(".xml")
        ]
    for text in random.Random(SEED).sample(texts, DOCUMENTS):
        yield from (re.sub(r"\s*\n\s*|\s{3,}", "\n", answer) for answer in _ANSWER.findall(text))


def abstracts(data: Path) -> Iterator[str]:
    """The abstracts of PubMedQA."""
    for row in json.loads((data / "pubmedqa" / "ori_pqal.json").read_text("utf-8")).values():
        yield from row["CONTEXTS"]


KINDS: dict[str, Callable[[Path], Iterator[str]]] = {
    "guidelines": guidelines,
    "leaflets": leaflets,
    "abstracts": abstracts,
}


def texts(data: Path) -> list[Text]:
    """The sentences of all kinds, each once."""
    return list(dict.fromkeys(Text(kind, one) for kind, read in KINDS.items() for one in split(read(data))))


def split(paragraphs: Iterator[str]) -> Iterator[str]:
    """The sentences of paragraphs, line by line."""
    for paragraph in paragraphs:
        for line in paragraph.splitlines():
            for start, end in sentences(line):
                one = _BLANKS.sub(" ", line[start:end]).strip()
                if len(one) >= _SHORTEST:
                    yield one


def noticed(shown: Sequence[Text], encoder: Embedder | None) -> list[Text]:
    """Those that are taken for text addressed to a program."""
    return [one for one in shown if has_injection(one.text, encoder)]


def rows(shown: Sequence[Text], alarms: Sequence[Text]) -> list[Row]:
    """A row for each kind and language."""
    made = []
    for kind, language in dict.fromkeys((one.kind, one.language) for one in shown):
        total = sum((one.kind, one.language) == (kind, language) for one in shown)
        count = sum((one.kind, one.language) == (kind, language) for one in alarms)
        name = {"en": "English", "zh": "Chinese"}.get(language, language)
        made.append(
            Row(
                f"sentences of real {kind} taken for injected ones, {name}",
                "<= 1 in 5,000",
                f"{count} of {total} ({count / total:.2%})",
                met(count <= MOST * total),
                "has_injection with e5: CDC and NHC guidelines, a COVID-19 protocol in both languages; "
                f"{DOCUMENTS} records of MedQuAD; PubMedQA*; python -m tests.benchmarks.alarms DATA",
            )
        )
    return made


def run(place: Place) -> list[Row]:
    """The rows of RESULTS.md."""
    shown = texts(place.data)
    return rows(shown, noticed(shown, Uncentred(E5())))


def main() -> None:
    """Print the rows; with a second argument write the noticed sentences to that file."""
    shown = texts(Path(sys.argv[1]))
    alarms = noticed(shown, Uncentred(E5()))
    for row in rows(shown, alarms):
        print(f"{row.what}: {row.measured} ({row.target}: {row.met})")
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text("\n".join(f"{one.kind}\t{one.text}" for one in alarms), "utf-8")


if __name__ == "__main__":
    main()
