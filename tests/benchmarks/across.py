"""Questions in one language over guidelines in the other (``cross.toml``): is the right document among five?"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from localmed.config import Settings
from localmed.domain import SearchFilter
from localmed.site.session import Session
from tests.benchmarks.common import Place, Row, met
from tests.benchmarks.sections import HERE, imported, questions
from tests.fakes import opened

OTHER = {"en": "zh", "zh": "en"}
FIRST, AMONG = 0.85, 5


def among(session: Session, question: dict[str, Any]) -> bool:
    """Whether the right document is among the first five of the other language."""
    with session.workspace() as workspace:
        filters = SearchFilter(language=OTHER[question["language"]])
        hits = workspace.find(question["text"], filters, 50, 50).found.hits
        names = list(dict.fromkeys(hit.passage.document_id for hit in hits))[:AMONG]
        documents = workspace.library.catalogue.by_ids(names)
    return any(document.source.endswith(question["document"]) for document in documents.values())


def rows(folder: Path, work: Path) -> Iterator[Row]:
    """The rows of the questions of ``folder`` that have an answer."""
    with opened(Settings(Path(tempfile.mkdtemp(dir=work)))) as session:
        imported(session, folder)
        for language, name in (("en", "English"), ("zh", "Chinese")):
            own = [one for one in questions("cross", folder) if one["language"] == language and one["answerable"]]
            found = sum(among(session, one) for one in own)
            what = f"across languages, asked in {name}: right document among the first five, {folder.name}"
            yield Row(what, f">= {FIRST:.0%}", f"{found} of {len(own)}", met(found >= FIRST * len(own)), "spent")


def run(place: Place) -> list[Row]:
    """The sets that lie beside the ward questions, each over a fresh library; all are spent."""
    return [row for path in sorted(HERE.glob("*/cross.toml")) for row in rows(path.parent, place.work)]
