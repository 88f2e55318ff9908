"""Whether the section that answers a ward's question is among the first that are shown.

Each set: documents of one author beside the starter corpus, asked without a chat model. A question counts as found in
the first n sections if one of them holds every one of the words that answer (``must``, ``evidence``); ``rare`` are
questions with an exact rare name. What is said of closeness is counted for questions with an answer, for those that the
documents do not answer (``elsewhere``), and for those of other authors, whose subject the library lacks. All sets were
looked at before: the figures compare ways of searching with each other and are no forecast.

    python -m tests.benchmarks.sections [FOLDER ...]   (documents, plain.toml and elsewhere.toml of another author)
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localmed.config import Settings
from localmed.domain import Collection, Kind, SearchFilter
from localmed.domain.findings import Closeness, Section
from localmed.ingest import manifest
from localmed.ingest.manifest import Manifest
from localmed.site import importing
from localmed.site.session import Session
from tests.benchmarks.common import Place, Row
from tests.fakes import opened

HERE = Path(__file__).parent
CORPORA = HERE.parents[1] / "corpora"
WARD = Manifest(Collection("ward", "Ward guidelines", 10, kind=Kind.GUIDELINE, licence="own", source="own"))
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
    "ward8_held": "tenth author, held back, as typed on a ward",
    "ward9_held": "eleventh author, held back, half plain, half as typed on a ward",
    "ward10_held": "twelfth author, held back, as typed at night",
    "ward11_held": "thirteenth author, held back, as typed at night",
}
STRANGERS = {  # whose questions are asked of a library that lacks their subject
    "ward7_held": ("ward2_held", "ward3_held", "ward4_held", "ward5_held"),
    "ward4_held": ("ward2_held", "ward6_held", "ward7_held"),
}
STEP = 3  # every third of their questions
PLACES = (1, 3, 5, 10)


@dataclass
class Measured:
    """Of the questions in one language: the place of the section that answers (99: none), and what is said to be near.

    ``near`` has the questions with an answer, without one, and on a subject that the library lacks.
    """

    places: list[int] = field(default_factory=list)
    rare: list[int] = field(default_factory=list)
    near: dict[str, list[Closeness]] = field(default_factory=lambda: defaultdict(list))

    def add(self, other: Measured) -> None:
        """Count ``other`` in."""
        self.places += other.places
        self.rare += other.rare
        for kind, said in other.near.items():
            self.near[kind] += said


def import_starter(session: Session) -> None:
    """Import the starter corpus."""
    for file in sorted(CORPORA.glob("starter-*.toml")):
        importing.import_paths(session, [CORPORA / "starter" / file.stem.removeprefix("starter-")], manifest.load(file))


def imported(session: Session, documents: Path | Sequence[Path], starter: bool = True) -> None:
    """Import the starter corpus, and as a ward's guidelines the documents, or those of a folder."""
    if starter:
        import_starter(session)
    paths = sorted(documents.rglob("*.md")) if isinstance(documents, Path) else documents
    importing.import_paths(session, paths, WARD)


def questions(name: str, folder: Path) -> list[dict[str, Any]]:
    """Those of a file beside the documents; none where there is no such file."""
    path = folder / f"{name}.toml"
    made: list[dict[str, Any]] = tomllib.loads(path.read_text("utf-8"))["question"] if path.exists() else []
    return made


def holds(section: Section, must: Sequence[str]) -> bool:
    """Whether ``section`` has every one of ``must``, without regard to case, blanks and emphasis.

    Of a table's row, which is read with the names of its columns, every cell.
    """
    text = _bare(" ".join(line.text for line in section.lines))
    return all(_bare(cell) in text for words in must for cell in words.split("|"))


def _bare(text: str) -> str:
    return "".join(text.lower().replace("*", "").split())


def place(sections: Sequence[Section], must: Sequence[str]) -> int:
    """The place of the first section that holds ``must``, 99 if none does."""
    return next((number for number, section in enumerate(sections, 1) if holds(section, must)), 99)


def started(work: Path) -> Path:
    """A data folder with the starter corpus, which each set begins with."""
    data = Path(tempfile.mkdtemp(dir=work)) / "data"
    with opened(Settings(data)) as session:
        import_starter(session)
    return data


def measured(folder: Path, starter: Path) -> dict[str, Measured]:
    """By language: what was found of the questions of ``folder``, beside the ``starter`` corpus."""
    found: dict[str, Measured] = defaultdict(Measured)
    data = Path(shutil.copytree(starter, Path(tempfile.mkdtemp(dir=starter.parent)) / "data", symlinks=True))
    with opened(Settings(data)) as session:
        imported(session, folder, starter=False)

        def asked(one: dict[str, Any], kind: str) -> tuple[Measured, int]:
            finding = session.find(one["text"], SearchFilter(), 50, max(PLACES))
            of_language = found[one.get("language", "en")]
            of_language.near[kind].append(finding.found.closeness)
            return of_language, place(finding.sections, one.get("must", one.get("evidence", ())))

        for one in (*questions("plain", folder), *questions("answerable", folder)):
            of_language, at = asked(one, "with an answer")
            of_language.places.append(at)
        for one in questions("rare", folder):
            of_language, at = asked(one, "with an answer")
            of_language.rare.append(at)
        for one in questions("elsewhere", folder):
            asked(one, "without an answer")
        for name in STRANGERS.get(folder.name, ()):
            for one in questions("plain", HERE / name)[::STEP]:
                asked(one, "on another subject")
    return found


def rows(called: str, found: dict[str, Measured], how: str) -> Iterator[Row]:
    """The rows of one set, or of all."""
    for language, one in sorted(found.items()):
        name = {"en": "English", "zh": "Chinese"}[language]
        for what, places in (("section that answers", one.places), ("section that has the rare name", one.rare)):
            if places:
                yield Row(f"{what}, {name}, {called}", "", _shares(places), "-", how)
        for kind, said in one.near.items():
            counts = "; ".join(f"{word.value}: {said.count(word)}" for word in Closeness if word in said)
            yield Row(f"closeness of questions {kind}, {name}, {called}", "", f"{counts}; of {len(said)}", "-", how)


def _shares(places: Sequence[int]) -> str:
    total, among = len(places), {most: sum(at <= most for at in places) for most in PLACES}
    return "; ".join(f"first {most}: {count} ({count / total:.1%})" for most, count in among.items()) + f"; of {total}"


def run(place: Place) -> list[Row]:
    """All sets together, then each."""
    total: dict[str, Measured] = defaultdict(Measured)
    made: list[Row] = []
    starter = started(place.work)
    for name, author in SETS.items():
        found = measured(HERE / name, starter)
        made += rows(name, found, author)
        for language, one in found.items():
            total[language].add(one)
    return [*rows("all sets", total, f"{len(SETS)} sets of thirteen authors, all spent"), *made]


if __name__ == "__main__":
    starter = started(Path(tempfile.mkdtemp()))
    for name in sys.argv[1:] or [str(HERE / one) for one in SETS]:
        for row in rows(Path(name).name, measured(Path(name), starter), ""):
            print(row.what, "|", row.measured)
