"""What is said of medicines, names and populations that a section, or the whole library, does not speak of.

Questions about the starter library (``reading/held.toml``), searched without a chat model. A medicine counts as
safe if no line that is marked in any section names another one, and it is said to stand in no document.
"""

from __future__ import annotations

import tempfile
import tomllib
from pathlib import Path
from typing import Any

from localmed.config import Settings
from localmed.domain import Answer, SearchFilter
from localmed.presentation.finding import finding_value, view
from localmed.site.session import Session
from localmed.text import medicines
from localmed.text.language import fold
from localmed.text.synonyms import is_in
from tests.benchmarks.common import Place, Row
from tests.benchmarks.sections import import_starter
from tests.fakes import opened

HELD = Path(__file__).parent / "reading" / "held.toml"


def rows(session: Session) -> list[Row]:
    """The figures of each kind of question."""
    held: dict[str, list[str]] = tomllib.loads(HELD.read_text("utf-8"))

    def asked(text: str) -> tuple[Answer, dict[str, Any]]:
        answer = session.search(text, SearchFilter(), 10)
        return answer, finding_value(answer)

    def row(what: str, held: list[bool], names: list[str]) -> Row:
        print(what, *(name for name, right in zip(names, held, strict=True) if not right), sep="\n    ")
        return Row(what, "", f"{sum(held)} of {len(held)}", "-", "starter library, held back; written before the rules")

    def marked(value: dict[str, Any]) -> list[str]:
        return [mark["text"] for section in (*value["sections"], *value["others"]) for mark in section["marks"]]

    made: list[Row] = []
    found = {name: {text: asked(text) for text in map(_question, texts)} for name, texts in held.items()}

    def add(kind: str, what: str, right: Any) -> None:
        names = held[kind]
        made.append(row(what, [right(name, *found[kind][_question(name)]) for name in names], names))

    def unmarked(name: str, answer: Answer, value: dict[str, Any]) -> bool:
        own = medicines.ingredients(name)
        return not any(medicines.ingredients(line) - own and not medicines.ingredients(line) & own
                       for line in marked(value))  # fmt: skip

    add("absent", "absent medicines: no other medicine's line is marked", unmarked)
    add(
        "absent",
        "absent medicines: nothing stands open",
        lambda _, answer, __: bool((seen := view(answer, "en")) and seen.far),
    )
    add("absent", "absent medicines: said to be in no document", lambda _, __, value: bool(value.get("absent")))
    add(
        "misspelt",
        "misspelt names: read as the right medicine",
        lambda name, answer, _: (
            bool(answer.receipts)
            and any(
                _part(name, 1) in medicines.ingredients(one.means) | {fold(one.means)}
                for one in answer.receipts.readings
            )
        ),
    )
    add(
        "misspelt",
        "misspelt names: no other medicine's line is marked",
        lambda name, answer, value: (
            not any(
                medicines.ingredients(line) and not medicines.ingredients(line) & medicines.ingredients(_part(name, 1))
                for line in marked(value)
            )
        ),
    )
    add(
        "lookalike",
        "substances like a word: read as nothing else",
        lambda name, answer, _: not (answer.receipts and answer.receipts.readings),
    )
    add("lookalike", "substances like a word: no other medicine's line is marked", unmarked)
    add(
        "population",
        "populations: said to be missing of the first section if and only if they are",
        lambda name, _, value: (
            any(is_in("populations", one) for one in value["sections"][0].get("lacks", ())) is (_part(name, 2) == "no")
        ),
    )
    add(
        "ordinary",
        "ordinary questions: nothing is said to be missing of the first section",
        lambda _, __, value: not (value.get("absent") or value["sections"][0].get("lacks")),
    )
    add(
        "ordinary",
        "ordinary questions: something is marked in the first section",
        lambda _, __, value: bool(value["sections"][0]["marks"]),
    )
    return made


def _question(entry: str) -> str:
    return _part(entry, 0)


def _part(entry: str, place: int) -> str:
    return entry.split("|")[place].strip()


def run(place: Place) -> list[Row]:
    """The rows, over the starter corpus alone."""
    with opened(Settings(Path(tempfile.mkdtemp(dir=place.work)))) as session:
        import_starter(session)
        return rows(session)
