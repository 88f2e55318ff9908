"""Whether the section that answers a ward's question is among the first that are shown.

Each set: documents of one author beside the starter corpus, asked without a chat model. A question counts as found in
the first n sections if one of them holds every one of the words that answer (``must``, ``evidence``). ``elsewhere``
are questions that the documents do not answer: of all pairs of a question with an answer and one without it is counted
how often the first section of the former has the higher score. All sets were looked at before: the figures compare ways
of searching with each other and are no forecast.

    python -m tests.benchmarks.sections [FOLDER ...]   (documents, plain.toml and elsewhere.toml of another author)
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localmed.config import Settings
from localmed.domain import SearchFilter
from localmed.domain.findings import Section
from localmed.ingest import manifest
from localmed.operations import importing
from localmed.session import Session
from tests.benchmarks.common import Place, Row
from tests.fakes import opened

HERE = Path(__file__).parent
CORPORA = HERE.parents[1] / "corpora"
MANIFEST = (
    'name = "ward"\ntitle = "Ward guidelines"\npriority = 10\nkind = "guideline"\nlicence = "own"\nsource = "own"\n'
)
SETS = {
    "plain": "first author",
    "held": "second author",
    "ward_dev": "third author",
    "ward_held": "third author, held back",
    "ward2_dev": "fourth author",
    "ward2_held": "fourth author, held back",
    "ward3_held": "fifth author, held back",
    "ward4_held": "sixth author, held back",
    "ward5_held": "seventh author, held back",
    "ward6_held": "eighth author, held back",
    "ward7_held": "ninth author, held back",
}
PLACES = (1, 3, 5, 10)


@dataclass
class Measured:
    """Of the questions in one language: the place of the section that answers (99: none), and the first one's score."""

    places: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    elsewhere: list[float] = field(default_factory=list)  # scores of questions without an answer

    def add(self, other: Measured) -> None:
        """Count ``other`` in."""
        self.places += other.places
        self.scores += other.scores
        self.elsewhere += other.elsewhere

    def among(self, most: int) -> int:
        """How many were found in the first ``most`` sections."""
        return sum(at <= most for at in self.places)

    @property
    def told_apart(self) -> float:
        """The share of pairs in which the question with an answer has the higher score; a tie is half of one."""
        pairs = [(one, other) for one in self.scores for other in self.elsewhere]
        return sum((one > other) + (one == other) / 2 for one, other in pairs) / len(pairs) if pairs else 0.0


def imported(session: Session, work: Path, folder: Path) -> None:
    """Import the starter corpus and the documents of ``folder``."""
    for file in sorted(CORPORA.glob("starter-*.toml")):
        importing.import_paths(session, [CORPORA / "starter" / file.stem.removeprefix("starter-")], manifest.load(file))
    ward = work / "ward.toml"
    ward.write_text(MANIFEST, "utf-8")
    importing.import_paths(session, sorted(folder.rglob("*.md")), manifest.load(ward))


def questions(name: str, folder: Path) -> list[dict[str, Any]]:
    """Those of a file beside the documents; none where there is no such file."""
    path = folder / f"{name}.toml"
    made: list[dict[str, Any]] = tomllib.loads(path.read_text("utf-8"))["question"] if path.exists() else []
    return made


def holds(section: Section, must: Sequence[str]) -> bool:
    """Whether ``section`` has every one of ``must``, without regard to case and blanks."""
    text = _bare(" ".join(line.text for line in section.lines))
    return all(_bare(words) in text for words in must)


def _bare(text: str) -> str:
    return "".join(text.lower().split())


def place(sections: Sequence[Section], must: Sequence[str]) -> int:
    """The place of the first section that holds ``must``, 99 if none does."""
    return next((number for number, section in enumerate(sections, 1) if holds(section, must)), 99)


def measured(folder: Path, work: Path) -> dict[str, Measured]:
    """By language: what was found of the questions of ``folder``."""
    found: dict[str, Measured] = defaultdict(Measured)
    with opened(Settings(Path(tempfile.mkdtemp(dir=work)))) as session:
        imported(session, Path(tempfile.mkdtemp(dir=work)), folder)
        for one in (*questions("plain", folder), *questions("answerable", folder)):
            sections = _sections(session, one["text"])
            of_language = found[one.get("language", "en")]
            of_language.places.append(place(sections, one.get("must", one.get("evidence", ()))))
            of_language.scores.append(_score(sections))
        for one in questions("elsewhere", folder):
            found[one.get("language", "en")].elsewhere.append(_score(_sections(session, one["text"])))
    return found


def _sections(session: Session, text: str) -> Sequence[Section]:
    return session.find(text, SearchFilter(), 50, max(PLACES)).sections


def _score(sections: Sequence[Section]) -> float:
    return sections[0].best.score if sections else 0.0


def rows(called: str, found: dict[str, Measured], how: str) -> Iterator[Row]:
    """The rows of one set, or of all."""
    for language, one in sorted(found.items()):
        name = {"en": "English", "zh": "Chinese"}[language]
        total = len(one.places)
        if not total:
            continue
        shares = "; ".join(f"first {most}: {one.among(most)} ({one.among(most) / total:.1%})" for most in PLACES)
        yield Row(f"section that answers, {name}, {called}", "", f"{shares}; of {total}", "-", how)
        yield Row(f"questions with an answer told from those without by score, {name}, {called}", "",
                  f"{one.told_apart:.2f} of pairs", "-", f"{how}; {len(one.elsewhere)} without")  # fmt: skip


def run(place: Place) -> list[Row]:
    """All sets together, then each."""
    total: dict[str, Measured] = defaultdict(Measured)
    made: list[Row] = []
    for name, author in SETS.items():
        found = measured(HERE / name, place.work)
        made += rows(name, found, author)
        for language, one in found.items():
            total[language].add(one)
    return [*rows("all sets", total, f"{len(SETS)} sets of nine authors, all spent"), *made]


if __name__ == "__main__":
    for name in sys.argv[1:] or [str(HERE / one) for one in SETS]:
        for row in rows(Path(name).name, measured(Path(name), Path(tempfile.mkdtemp())), ""):
            print(row.what, "|", row.measured)
