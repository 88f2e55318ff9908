"""The tables of Answered with Evidence from a batch of questions, each asked of several sources.

Per source the badges (Table 1); of each two sources the agreement matrix, how often both are green, how often neither
is (the paper's "Yellow or Red" concordance), and how often at least one is (Table 2a to 2c, Fig. 3); of all sources the
combinations that occurred (Table 2d), the share of questions with at least one green, and each source's novelty: the
share for which it alone is green. What is not answered counts as red and is told apart. ``COMBINED`` is the same
question asked of all sources at once; it stands in the first table only.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations

from localmed.domain import Badge, Message, message
from localmed.files import csv_text

COMBINED = "all sources"
COLOURS = (Badge.GREEN, Badge.YELLOW, Badge.RED)

Badges = Mapping[str, Mapping[str, Badge]]  # question id -> source -> badge, ``NONE`` where nothing was answered


@dataclass(frozen=True, slots=True)
class Summary:
    """Of one source: how often each colour, and of the red ones how many are questions that it did not answer."""

    source: str
    green: int
    yellow: int
    red: int
    unanswered: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of two sources: ``matrix[i][j]`` counts colour i of the first with colour j of the second, in ``COLOURS``' order.

    The shares are of the questions: the same colour class on both (``overall``), green on both, green on neither, and
    green on at least one.
    """

    first: str
    second: str
    matrix: tuple[tuple[int, ...], ...]
    both_green: float
    neither_green: float
    either_green: float

    @property
    def overall(self) -> float:
        """Both green, or neither."""
        return self.both_green + self.neither_green


@dataclass(frozen=True, slots=True)
class BadgeReport:
    """All tables, and what they were made with. Holds no question."""

    questions: int
    sources: tuple[str, ...]
    summaries: tuple[Summary, ...]
    agreements: tuple[Agreement, ...]
    combinations: tuple[tuple[tuple[str, ...], int], ...]
    at_least_one_green: float
    novelty: tuple[tuple[str, float], ...]
    made_with: tuple[tuple[str, str], ...]


def report(found: Badges, sources: Sequence[str], made_with: Mapping[str, str]) -> BadgeReport:
    """The tables of ``found``; every question must have a badge of every source, and of ``COMBINED`` where any has."""
    rows = [{name: _colour(badge) for name, badge in each.items()} for each in found.values()]
    told = (*sources, *((COMBINED,) if any(COMBINED in each for each in rows) else ()))
    counted = Counter(tuple(each[name].value for name in sources) for each in rows)
    greens = [frozenset(name for name in sources if row[name] is Badge.GREEN) for row in rows]
    return BadgeReport(
        len(rows),
        tuple(sources),
        tuple(_summary(name, found) for name in told),
        tuple(_agreement(one, other, rows) for one, other in combinations(sources, 2)),
        tuple(sorted(counted.items(), key=lambda each: (-each[1], each[0]))),
        _share(sum(bool(green) for green in greens), len(rows)),
        tuple((name, _share(sum(each == {name} for each in greens), len(rows))) for name in sources),
        tuple(made_with.items()),
    )


def _colour(badge: Badge) -> Badge:
    return Badge.RED if badge is Badge.NONE else badge


def _summary(source: str, found: Badges) -> Summary:
    counts = Counter(each[source] for each in found.values())
    return Summary(
        source, counts[Badge.GREEN], counts[Badge.YELLOW], counts[Badge.RED] + counts[Badge.NONE], counts[Badge.NONE]
    )


def _agreement(one: str, other: str, rows: Sequence[Mapping[str, Badge]]) -> Agreement:
    counts = Counter((each[one], each[other]) for each in rows)
    matrix = tuple(tuple(counts[mine, theirs] for theirs in COLOURS) for mine in COLOURS)
    neither = sum(count for row in matrix[1:] for count in row[1:])
    both, total = matrix[0][0], len(rows)
    return Agreement(one, other, matrix, _share(both, total), _share(neither, total), _share(total - neither, total))


def _share(count: int, total: int) -> float:
    return count / total if total else 0.0


# --- how it is shown --------------------------------------------------------------------------------------------------

Table = tuple[str, tuple[str, ...], list[tuple[object, ...]]]  # title, columns, rows


def tables(found: BadgeReport) -> list[Table]:
    """Every table, for the screen."""
    total = found.questions
    shown: list[Table] = [
        ("Badges by source", ("source", "green", "yellow", "red", "of them unanswered"), [
            (row.source, _of(row.green, total), _of(row.yellow, total), _of(row.red, total), row.unanswered)
            for row in found.summaries
        ]),
    ]  # fmt: skip
    names = tuple(colour.value for colour in COLOURS)
    for pair in found.agreements:
        rows: list[tuple[object, ...]] = [
            (f"{pair.first} {name}", *(_of(count, total) for count in row), _of(sum(row), total))
            for name, row in zip(names, pair.matrix, strict=True)
        ]
        sums = [sum(column) for column in zip(*pair.matrix, strict=True)]
        rows.append(("column total", *(_of(sum_, total) for sum_ in sums), _of(total, total)))
        shown.append((f"{pair.first} against {pair.second}", (pair.second, *names, "row total"), rows))
    if len(found.sources) > 1:
        shown.append(("Combinations of all sources", (*found.sources, "questions"), [
            (*colours, _of(count, total)) for colours, count in found.combinations
        ]))  # fmt: skip
        shown.append(("Novelty: green in this source alone", ("source", "share"), [
            (name, f"{share:.1%}") for name, share in found.novelty
        ]))  # fmt: skip
    return shown


def facts(found: BadgeReport) -> tuple[Message, ...]:
    """What the tables do not say."""
    agreed = (
        message(
            "evaluation.facts.agreement",
            first=pair.first,
            second=pair.second,
            both=pair.both_green,
            neither=pair.neither_green,
            overall=pair.overall,
            either=pair.either_green,
        )
        for pair in found.agreements
    )
    made = (message("evaluation.facts.made", name=name, value=value) for name, value in found.made_with if value)
    green = message("evaluation.facts.green", share=found.at_least_one_green, count=found.questions)
    return (*agreed, green, message("evaluation.facts.badge"), *made)


def _of(count: int, total: int) -> str:
    return f"{count} ({_share(count, total):.1%})"


def as_csv(found: BadgeReport) -> str:
    """One line a figure: table, row, column, count or share."""
    rows: list[Sequence[object]] = [("table", "row", "column", "value")]
    for summary in found.summaries:
        for name in ("green", "yellow", "red", "unanswered"):
            rows.append(("summary", summary.source, name, getattr(summary, name)))
    for pair in found.agreements:
        for mine, row in zip(COLOURS, pair.matrix, strict=True):
            for theirs, count in zip(COLOURS, row, strict=True):
                rows.append(("agreement", f"{pair.first} {mine.value}", f"{pair.second} {theirs.value}", count))
        for name in ("both_green", "neither_green", "either_green"):
            share = f"{getattr(pair, name):.6f}"
            rows.append(("agreement", f"{pair.first}, {pair.second}", name, share))
    for colours, count in found.combinations:
        rows.append(("combination", ", ".join(found.sources), ", ".join(colours), count))
    for source, alone in found.novelty:
        rows.append(("novelty", source, "share", f"{alone:.6f}"))
    rows.append(("at least one green", "", "share", f"{found.at_least_one_green:.6f}"))
    return csv_text(rows)


def as_json(found: BadgeReport) -> str:
    """Everything."""
    return json.dumps(asdict(found), ensure_ascii=False, indent=2) + "\n"


def alternative(found: BadgeReport) -> str:
    """The plot in words, for those who cannot see it."""
    told = "; ".join(
        f"{summary.source}: green {summary.green}, yellow {summary.yellow}, red {summary.red}"
        for summary in found.summaries
    )
    return f"A bar of badges for each source, {found.questions} questions. {told}."
