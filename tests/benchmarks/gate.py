"""Sentences about three guidelines by another author, right and wrong, each cited to the passages that it rests on, and
what the gate makes of them: withheld, shown as unchecked, or shown as supported.

Right ones are paraphrases, joined rows, values within a range, abbreviations, other names; wrong ones have another
number, unit, medicine, direction, frequency, population, route, time or condition, or turn something round. Judged by
the starter's rules (``LikenessOnly``): what these say of a sentence, and what a reader of an answer gets, in which what
rules cannot tell gives way to the source's own sentence; a right one is lost if that is not found either.

    python -m tests.benchmarks.gate FOLDER   (gate.toml, which names the folder of its documents)
"""

from __future__ import annotations

import re
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from localmed.agents.evidence import citation
from localmed.config import Settings
from localmed.domain import Evidence, Origin, Passage, Statement, Status, Support, Verification
from localmed.ingest import manifest
from localmed.models.e5 import E5, Uncentred
from localmed.operations import importing
from localmed.session import Session
from localmed.verification import support
from localmed.verification.prompt_injection import has_injection
from tests.benchmarks.common import Place, Row, library, met
from tests.benchmarks.plain import MANIFEST
from tests.fakes import opened

FOLDER = Path(__file__).parent / "gate"
SETS = {
    "dev": "developed on",
    "held": "held back, looked at once, spent since",
    "dev2": "another author's, developed on",
    "held2": "that author's, held back, looked at once, spent since",
    "held3": "a seventh author's, held back, looked at once, spent since",
    "held4": "an eighth author's, held back, looked at once, spent since",
}
# Those on which the weights of the likeness were fitted since, with what was noticed at the first look.
FIRST = {
    "held": "; at the first look 40, 0, 37 % in English and 27, 0, 24 % in Chinese",
    "held2": "; at the first look 25, 0, 29 % in English and 15, 0, 40 % in Chinese",
}
FITTED = {
    "dev": "",
    "held": "; at the first look, by words, 36 % of the English and 20 % of the Chinese",
    "dev2": "",
    "held2": "; at the first look 96 % of the English and 76 % of the Chinese",
    "held3": "; at the first look 93 % of the English and 90 % of the Chinese",
}
WITHHELD, SUPPORTED, SHOWN = 0.12, 0.03, 0.10
NOTICED, ALARMS = 0.85, 0.01
_MARKS = re.compile(r"[*_`#|\s]|^[-\d.、()（）]+")


@dataclass(frozen=True)
class Case:
    """A sentence, whether it is ``right``, of which ``kind``, and the passages that it cites."""

    id: str
    text: str
    language: str
    right: bool
    kind: str
    passages: tuple[Passage, ...]


def cases(folder: Path, passages: Sequence[Passage]) -> list[Case]:
    """The sentences of ``gate.toml`` in ``folder``; raise ``ValueError`` for one whose source is in no passage."""
    sentences: list[dict[str, Any]] = tomllib.loads((folder / "gate.toml").read_text("utf-8"))["sentence"]
    titles = {path.name: path.read_text("utf-8").split("\n", 1)[0].lstrip("# ") for path in documents(folder)}
    return [
        Case(
            item["id"],
            item["text"],
            item["language"],
            item["verdict"] == "right",
            item["kind"],
            _cited(item["source"], [passage for passage in passages if passage.title == titles[item["document"]]]),
        )
        for item in sentences
    ]


def documents(folder: Path) -> list[Path]:
    """The documents of ``gate.toml`` in ``folder``: those of a set of ward questions, in its folder."""
    named: str = tomllib.loads((folder / "gate.toml").read_text("utf-8"))["documents"]
    return sorted((folder / named).glob("*.md"))


def _cited(source: str, passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """The passages that hold a line of ``source``; of a table's row the one that holds all its cells."""
    held: list[Passage] = []
    for line in source.splitlines():
        cells = [_bare(cell) for cell in line.strip("|").split("|")] if line.startswith("|") else [_bare(line)]
        held += [passage for passage in passages if all(cell in _bare(passage.text) for cell in cells)][:1]
    if not held:
        raise ValueError(source)
    return tuple(dict.fromkeys(held))


def _bare(text: str) -> str:
    return _MARKS.sub("", text.strip().lstrip("-*0123456789. "))


def imported(session: Session, folder: Path) -> list[Passage]:
    """The passages of the documents of ``folder``."""
    path = Path(tempfile.mkdtemp()) / "manifest.toml"
    path.write_text(MANIFEST, "utf-8")
    importing.import_paths(session, documents(folder), manifest.load(path))
    return sorted(library(session).lexical.all_passages(), key=lambda passage: passage.id)


@dataclass(frozen=True)
class Checked:
    """A sentence by the rules, as a reader of an answer gets it, and whether its source is quoted in its place."""

    by_rules: Statement
    answered: Statement
    quoted: bool


def verdicts(session: Session, items: Sequence[Case]) -> list[Checked]:
    """Each sentence after the gate."""
    with session.workspace() as workspace:
        prepared = [_prepared(case) for case in items]
        judged = [workspace.judge(support.pairs((statement,), sources)) for statement, sources in prepared]
    results = []
    for (statement, sources), stances in zip(prepared, judged, strict=True):
        by_rules, answered = (
            support.check((statement,), sources, stances, Verification(1, 0), replaceable=replaceable)[0][0]
            for replaceable in (False, True)
        )
        beside = sources[0].quotation(0, len(sources[0].passage.text))
        placed = support.in_place((replace(beside, text=""), answered), sources)
        results.append(Checked(by_rules, answered, len(placed) > 2))
    return results


def _prepared(case: Case) -> tuple[Statement, tuple[Evidence, ...]]:
    sources = tuple(
        Evidence(str(number), passage, passage.title, "", Status.CURRENT, "", "", "", "")
        for number, passage in enumerate(case.passages, 1)
    )
    return Statement(case.text, tuple(citation(source, case.text) for source in sources), Origin.GENERATED), sources


def outcome(statement: Statement) -> str:
    """What a reader sees of it."""
    if statement.withheld or statement.verdict is None:
        return "withheld"
    return "supported" if statement.verdict.support in (Support.SUPPORTED, Support.VERBATIM) else "unchecked"


def run(place: Place) -> list[Row]:
    """The rows of the sets that come with the project."""
    made: list[Row] = []
    for name in SETS:
        made += rows(name, measured(FOLDER / name, place.work)) + injected(name, FOLDER / name)
    return made


def injected(name: str, folder: Path) -> list[Row]:
    """How many wordings that speak to a program are noticed, and how many sentences of medicine are taken for one."""
    fitted = f"; the weights were fitted on it{FITTED[name]}" if name in FITTED else ""
    how, encoder = f"has_injection with e5: {SETS.get(name, name)}{fitted}", Uncentred(E5())
    made = []
    for file, what, target in (
        ("injection", "injected wordings noticed", NOTICED),
        ("benign", "look-alike sentences of medicine taken for injected ones", ALARMS),
    ):
        items = tomllib.loads((folder / f"{file}.toml").read_text("utf-8"))["text"]
        for language, called in (("en", "English"), ("zh", "Chinese")):
            marks = [has_injection(item["text"], encoder) for item in items if item["language"] == language]
            enough = sum(marks) >= target * len(marks) if file == "injection" else sum(marks) <= target * len(marks)
            sign = ">=" if file == "injection" else "<="
            share = f"{sum(marks)} of {len(marks)} ({sum(marks) / len(marks):.1%})"
            made.append(Row(f"{what}, {called}, {name}", f"{sign} {target:.0%}", share, met(enough), how))
    return made


def measured(folder: Path, work: Path) -> list[tuple[Case, Checked]]:
    """Each case of ``folder`` and what became of it, over a fresh library."""
    with opened(Settings(Path(tempfile.mkdtemp(dir=work)))) as session:
        items = cases(folder, imported(session, folder))
        return list(zip(items, verdicts(session, items), strict=True))


def rows(name: str, results: Sequence[tuple[Case, Checked]]) -> list[Row]:
    """The figures of one set."""
    how = f"gate: {SETS.get(name, name)}; rules and likeness, no judge{FIRST.get(name, '')}"
    made = []
    for language, called in (("en", "English"), ("zh", "Chinese")):
        own = [(case, checked) for case, checked in results if case.language == language]
        counts = Counter((case.right, outcome(checked.by_rules)) for case, checked in own)
        lost = sum(case.right and checked.answered.withheld and not checked.quoted for case, checked in own)
        answered = sum(not case.right and not checked.answered.withheld for case, checked in own)
        right = sum(count for (is_right, _), count in counts.items() if is_right)
        wrong = sum(counts.values()) - right
        supported, shown = counts[False, "supported"], counts[False, "supported"] + counts[False, "unchecked"]
        for what, count, total, most in (
            ("right sentences withheld", counts[True, "withheld"], right, WITHHELD),
            ("wrong sentences shown as supported", supported, wrong, SUPPORTED),
            ("wrong sentences shown at all", shown, wrong, SHOWN),
            ("in an answer: right sentences lost, their source not quoted either", lost, right, WITHHELD),
            ("in an answer: wrong sentences shown at all", answered, wrong, SHOWN),
        ):
            share = f"{count} of {total} ({count / max(1, total):.1%})"
            made.append(Row(f"{what}, {called}, {name}", f"<= {most:.0%}", share, met(count <= most * total), how))
    return made


def main() -> None:
    """Print the figures of a folder, and with ``-v`` what went wrong."""
    results = measured(Path(sys.argv[1]), Path(tempfile.mkdtemp()))
    for case, checked in results if "-v" in sys.argv else ():
        statement = checked.by_rules
        if case.right == (outcome(statement) == "withheld"):
            reason = statement.verdict.reason.code if statement.verdict and statement.verdict.reason else ""
            verdict = "right" if case.right else "wrong"
            print(f"{case.id} {verdict} {case.kind}: {outcome(statement)} {reason}: {case.text}")
    for row in rows(Path(sys.argv[1]).name, results):
        print(f"{row.what}: {row.measured} ({row.target}: {row.met})")


if __name__ == "__main__":
    main()
