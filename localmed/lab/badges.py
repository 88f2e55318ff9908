"""The tables of Answered with Evidence from a batch of questions, each asked of several sources.

Per source the badges (Table 1); of each two sources the agreement matrix, how often both are green, how often neither
is (the paper's "Yellow or Red" concordance), and how often at least one is (Table 2a to 2c, Fig. 3); of all sources the
combinations that occurred (Table 2d), the share of questions with at least one green, and each source's novelty: the
share for which it alone is green. What is not answered counts as red and is told apart. ``COMBINED`` is the same
question asked of all sources at once; it stands in the first table only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from localmed.domain import Badge, Message, message
from localmed.process.files import csv_text

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


def report(badges: Badges, sources: Sequence[str], made_with: Mapping[str, str]) -> BadgeReport:
    """The tables of ``found``; every question must have a badge of every source, and of ``COMBINED`` where any has."""
    rows = [{name: _colour(badge) for name, badge in row.items()} for row in badges.values()]
    columns = (*sources, *((COMBINED,) if any(COMBINED in row for row in rows) else ()))
    counted = Counter(tuple(row[name].value for name in sources) for row in rows)
    greens = [frozenset(name for name in sources if row[name] is Badge.GREEN) for row in rows]
    return BadgeReport(
        len(rows),
        tuple(sources),
        tuple(_summary(name, badges) for name in columns),
        tuple(_agreement(one, other, rows) for one, other in combinations(sources, 2)),
        tuple(sorted(counted.items(), key=lambda entry: (-entry[1], entry[0]))),
        _share(sum(bool(green) for green in greens), len(rows)),
        tuple((name, _share(sum(green == {name} for green in greens), len(rows))) for name in sources),
        tuple(made_with.items()),
    )


def _colour(badge: Badge) -> Badge:
    return Badge.RED if badge is Badge.NONE else badge


def _summary(source: str, badges: Badges) -> Summary:
    counts = Counter(row[source] for row in badges.values())
    return Summary(
        source, counts[Badge.GREEN], counts[Badge.YELLOW], counts[Badge.RED] + counts[Badge.NONE], counts[Badge.NONE]
    )


def _agreement(one: str, other: str, rows: Sequence[Mapping[str, Badge]]) -> Agreement:
    counts = Counter((row[one], row[other]) for row in rows)
    matrix = tuple(tuple(counts[mine, theirs] for theirs in COLOURS) for mine in COLOURS)
    neither = sum(count for row in matrix[1:] for count in row[1:])
    both, total = matrix[0][0], len(rows)
    return Agreement(one, other, matrix, _share(both, total), _share(neither, total), _share(total - neither, total))


def _share(count: int, total: int) -> float:
    return count / total if total else 0.0


# --- how it is shown --------------------------------------------------------------------------------------------------

Cell = Message | str | int
Table = tuple[Message, tuple[Cell, ...], list[tuple[Cell, ...]]]  # title, columns, rows


def tables(report: BadgeReport) -> list[Table]:
    """Every table, for the screen."""
    total, names = report.questions, tuple(_column(colour.value) for colour in COLOURS)
    shown: list[Table] = [
        (Message("evaluation.title.badges"), (_column("source"), *names, _column("unanswered")), [
            (source(row.source), _of(row.green, total), _of(row.yellow, total), _of(row.red, total), row.unanswered)
            for row in report.summaries
        ]),
    ]  # fmt: skip
    for pair in report.agreements:
        rows: list[tuple[Cell, ...]] = [
            (f"{pair.first} {colour.value}", *(_of(count, total) for count in row), _of(sum(row), total))
            for colour, row in zip(COLOURS, pair.matrix, strict=True)
        ]
        sums = [sum(column) for column in zip(*pair.matrix, strict=True)]
        rows.append((_column("column_total"), *(_of(sum_, total) for sum_ in sums), _of(total, total)))
        title = message("evaluation.title.agreement", first=pair.first, second=pair.second)
        shown.append((title, (pair.second, *names, _column("row_total")), rows))
    if len(report.sources) > 1:
        shown.append((Message("evaluation.title.combinations"), (*report.sources, _column("questions")), [
            (*colours, _of(count, total)) for colours, count in report.combinations
        ]))  # fmt: skip
        shown.append((Message("evaluation.title.novelty"), (_column("source"), _column("share")), [
            (name, f"{share:.1%}") for name, share in report.novelty
        ]))  # fmt: skip
    return shown


def facts(report: BadgeReport) -> tuple[Message, ...]:
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
        for pair in report.agreements
    )
    made = (message("evaluation.facts.made", name=name, value=value) for name, value in report.made_with if value)
    green = message("evaluation.facts.green", share=report.at_least_one_green, count=report.questions)
    return (*agreed, green, message("evaluation.facts.badge"), *made)


def _column(name: str) -> Message:
    return Message(f"column.{name}")


def source(name: str) -> Message | str:
    """A source as people read it."""
    return _column("all_sources") if name == COMBINED else name


def _of(count: int, total: int) -> str:
    return f"{count} ({_share(count, total):.1%})"


def as_csv(report: BadgeReport) -> str:
    """One line a figure: table, row, column, count or share."""
    rows: list[Sequence[object]] = [("table", "row", "column", "value")]
    for summary in report.summaries:
        for name in ("green", "yellow", "red", "unanswered"):
            rows.append(("summary", summary.source, name, getattr(summary, name)))
    for pair in report.agreements:
        for mine, row in zip(COLOURS, pair.matrix, strict=True):
            for theirs, count in zip(COLOURS, row, strict=True):
                rows.append(("agreement", f"{pair.first} {mine.value}", f"{pair.second} {theirs.value}", count))
        for name in ("both_green", "neither_green", "either_green"):
            share = f"{getattr(pair, name):.6f}"
            rows.append(("agreement", f"{pair.first}, {pair.second}", name, share))
    for colours, count in report.combinations:
        rows.append(("combination", ", ".join(report.sources), ", ".join(colours), count))
    for source, alone in report.novelty:
        rows.append(("novelty", source, "share", f"{alone:.6f}"))
    rows.append(("at_least_one_green", "", "share", f"{report.at_least_one_green:.6f}"))
    return csv_text(rows)


def alternative(report: BadgeReport) -> Message:
    """The plot in words, for those who cannot see it."""
    bars = tuple(
        message("evaluation.plot.bar", source=source(row.source), green=row.green, yellow=row.yellow, red=row.red)
        for row in report.summaries
    )
    return message("evaluation.plot.badge_bars", count=report.questions, bars=bars)
