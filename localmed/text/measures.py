"""Measures of patients: names, units and plausible ranges, in English and Chinese.

One table serves records ("K+ 5.9") and sources ("if potassium is above 5.5 mmol/L"). Values are converted to the
measure's first unit; an unlisted unit is not read. ``plausible`` is the widest range of living patients: a value beyond
it is probably an error, and is reported, not used. Codes are LOINC's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from localmed.domain.patient import Measured
from localmed.text import units
from localmed.text.language import aligned, fold
from localmed.text.tables import table

NEAR = 24  # characters between a measure's name and its value: "potassium (serum, today) was"


@dataclass(frozen=True, slots=True)
class Measure:
    """``units`` are (pattern, scale, offset) to the first unit, ``unit`` its name; without one a number alone counts.

    ``bare`` says that a number without a unit is read as well, as in the first unit.
    """

    name: str
    chinese: str
    written: str
    unit: str
    plausible: tuple[float, float]
    units: tuple[tuple[str, float, float], ...] = ()
    bare: bool = False
    codes: tuple[str, ...] = ()
    healthy: float | None = None

    @property
    def pattern(self) -> str:
        """The names as a regular expression on folded text; a Chinese character ends an English word (``(?a:``)."""
        return f"(?a:{self.written})"


@cache
def all_measures() -> tuple[Measure, ...]:
    """All measures in the order of the search."""
    return tuple(_measure(name, entry) for name, entry in table("measures").items() if isinstance(entry, dict))


def _measure(name: str, entry: Mapping[str, Any]) -> Measure:
    low, high = entry["plausible"]
    units = tuple((pattern, scale, offset) for pattern, scale, offset in entry.get("units", ()))
    codes = tuple(entry.get("codes", ()))
    bare, healthy = entry.get("bare", False), entry.get("healthy")
    return Measure(name, entry["chinese"], entry["written"], entry["unit"], (low, high), units, bare, codes, healthy)


@cache
def by_name(name: str) -> Measure:
    """The measure of that name."""
    return next(measure for measure in all_measures() if measure.name == name)


NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
SYSTOLIC, DIASTOLIC = "systolic blood pressure", "diastolic blood pressure"
_PRESSURE = re.compile(r"(?:(?a:\bbp\b)|blood pressure|血压)[^\d;；。\n]{0,24}?(\d{2,3})\s*/\s*(\d{2,3})(?!\d|/)")
_OTHER_BODY_FLUID = re.compile(r"urine|urinary|fasting target|target|goal|尿|目标", re.IGNORECASE)

_ANOTHER = re.compile(r"[,，、]\s*[^\W\d_]{2}")  # another item before the number


@cache
def _values(measure: Measure) -> re.Pattern[str]:
    units = "|".join(f"(?:{pattern})" for pattern, _, _ in measure.units) or "(?!)"
    return re.compile(
        rf"{measure.pattern}(?P<between>[^\d;；。\n]{{0,{NEAR}}}?)(?P<number>{NUMBER})(?!\d|\s?/\s?\d)\s*(?P<unit>{units})?"
    )


def measured(text: str, date: str = "") -> Iterator[Measured]:
    """Every measure with a value in ``text``, in the table's order, implausible values included."""
    folded = fold(text)
    for match in _PRESSURE.finditer(folded):
        for name, number in zip((SYSTOLIC, DIASTOLIC), match.groups(), strict=True):
            yield Measured(name, float(number), f"{number} mmHg", date, *match.span())
    for measure, match in _with_number(folded):
        value = converted(measure, match["number"], match["unit"] or "")
        if value is not None:
            low, high = measure.plausible
            unit = match["unit"] or (measure.unit if low <= value <= high else "")  # else it may be another one
            written = f"{match['number']} {unit}".strip()
            yield Measured(measure.name, value, _shown(written), date, *match.span())


def _with_number(folded: str) -> Iterator[tuple[Measure, re.Match[str]]]:
    """Every measure that a number follows, which is no dose and of no other item: "warfarin as per INR, ramipril 5"."""
    for measure in all_measures():
        for match in _values(measure).finditer(folded) if measure.name != "age" else ():
            before = folded[max(0, match.start() - 12) : match.start()]
            fluid = _OTHER_BODY_FLUID.search(match["between"]) or _OTHER_BODY_FLUID.search(before)
            dose = not match["unit"] and units.dose(counted=True).match(folded, match.start("number"))
            if not (fluid or dose or _ANOTHER.search(match["between"])):
                yield measure, match


def places(text: str) -> Iterator[tuple[str, int, int]]:
    """The name and place of each measure with a number in ``text``, of a known unit or not."""
    folded = fold(text)
    for match in _PRESSURE.finditer(folded):
        yield from ((name, *match.span()) for name in (SYSTOLIC, DIASTOLIC))
    yield from ((measure.name, *match.span()) for measure, match in _with_number(folded))


def coded(name: str, code: str, value: float, unit: str, date: str = "") -> Measured | None:
    """A result of a coded record by LOINC code or name, ``None`` for an unknown one."""
    measure = next((one for one in all_measures() if code in one.codes), None) if code else named(name)
    if measure is None:
        return None
    in_first = converted(measure, f"{value:g}" if abs(value) < 1e6 else "", fold(unit))
    if in_first is None:
        return None
    return Measured(measure.name, in_first, f"{round(value, 2):g} {unit or measure.unit}".strip(), date)


def named(text: str) -> Measure | None:
    """The measure named ``text``, ``None`` for urine."""
    folded = fold(text)
    if _OTHER_BODY_FLUID.search(folded):
        return None
    return next((measure for measure in all_measures() if re.search(measure.pattern, folded)), None)


def mentioned(text: str) -> list[Measure]:
    """The measures that ``text`` names, with a value or without."""
    folded = fold(text)
    return [measure for measure in all_measures() if re.search(measure.pattern, folded)]


def plausible(measured: Measured) -> bool:
    """Whether a living patient can have the value."""
    low, high = by_name(measured.name).plausible
    return low <= measured.value < high or (measured.value == high and measured.name == "oxygen saturation")


def converted(measure: Measure, number: str, unit: str) -> float | None:
    """``number`` in the measure's first unit, ``None`` for an unknown unit."""
    if not number:
        return None
    value = float(number.replace(",", ""))
    if not unit:
        return value if measure.bare else None
    for pattern, scale, offset in measure.units:
        if re.fullmatch(pattern, unit.strip()):
            return round(value * scale + offset, 3)
    return value if measure.bare and not measure.units else None


def _shown(written: str) -> str:
    """Units as they are usually written, which folding took away."""
    for folded, usual in (
        ("mmhg", "mmHg"),
        ("°c", "°C"),
        ("ml/min", "mL/min"),
        ("mol/l", "mol/L"),
        ("g/dl", "g/dL"),
        ("g/l", "g/L"),
    ):
        written = written.replace(folded, usual)
    return written


# --- ranges -----------------------------------------------------------------------------------------------------------

_FROM = r"(?:[>≥]=?|at least|from|above|over|more than|greater than|大于等于|大于|高于|超过|不低于|至少)"
_TO = r"(?:[<≤]=?|at most|up to|below|under|less than|lower than|小于等于|小于|低于|不足|不超过|至多)"
_OPEN_FROM = re.compile(r"^(?:>(?!=)|above|over|more than|greater than|大于(?!等于)|高于|超过)")
_OPEN_TO = re.compile(r"^(?:<(?!=)|below|under|less than|lower than|小于(?!等于)|低于|不足)")
_OR_MORE = r"(?:(?:or|and) (?:more|above|over|higher|greater)|[或及]?以上|\+)"
_OR_LESS = r"(?:(?:or|and) (?:less|below|under|lower|fewer)|[或及]?以下)"
_TO_NEXT = r"(?:-|–|—|~|～|to|至|到)"


def within(measure: Measure, header: str, cell: str) -> Callable[[float], bool] | None:
    """Whether a value is in the range of ``measure`` that ``cell`` is; None for what is no such range.

    A unit may stand in the ``header`` alone.
    """
    folded, named = fold(cell).strip(" .。"), "|".join(f"(?:{unit})" for unit, _, _ in measure.units) or "(?!)"
    inside = re.search(rf"[(（,，/]\s*({named})\s*[)）]?\s*$", fold(header))
    number, unit = rf"({NUMBER})", rf"\s*({named})?\s*"

    def read(digits: str, *units: str | None) -> float | None:
        return converted(measure, digits, next(filter(None, units), inside[1] if inside else ""))

    if match := re.fullmatch(rf"{number}{unit}{_TO_NEXT}\s*{number}{unit}", folded):
        low, high = read(match[1], match[2], match[4]), read(match[3], match[4], match[2])
        return None if low is None or high is None else lambda value: low <= value <= high
    if match := re.fullmatch(rf"{_FROM}\s*{number}{unit}", folded) or re.fullmatch(
        rf"{number}{unit}{_OR_MORE}", folded
    ):
        least, above = read(match[1], match[2]), bool(_OPEN_FROM.match(folded))
        return None if least is None else lambda value: least < value or (least == value and not above)
    if match := re.fullmatch(rf"{_TO}\s*{number}{unit}", folded) or re.fullmatch(rf"{number}{unit}{_OR_LESS}", folded):
        most, below = read(match[1], match[2]), bool(_OPEN_TO.match(folded))
        return None if most is None else lambda value: value < most or (value == most and not below)
    return None


# --- the row of a table that a question's number is about -------------------------------------------------------------

_ANY_UNIT = r"%|[^\W\d_][^\s–—~～-]{0,24}?(?: ?m[²2])?"
_ANY = Measure("", "", "", "", (0, 0), ((_ANY_UNIT, 1.0, 0.0),), bare=True)  # a number as it stands, whatever its unit


KIDNEYS = ("eGFR", "creatinine clearance")  # either stands for the other in a table's ranges
FURTHER = 1.2  # times a value beyond a bound: limits up to there are compared with it
REDUCED = 60  # mL/min; below it kidneys do not work as they should
_KIDNEYS = re.compile(r"\b(?:kidneys?|renal|nephr\w+|(?:haemo|hemo)?dialysis|creatinine)\b|肾(?!上腺)|肌酐|透析")
_NORMAL_KIDNEYS = re.compile(
    r"\b(?:normal|good|healthy|unimpaired) (?:kidneys?|renal|creatinine)"
    r"|\b(?:kidney|renal) function:? (?:is |was )?normal\b|肾功能?(?:均|都|为|是|：)?正常|正常肾功能?"
)
_BARE_PRESSURE = re.compile(r"(?<![\d./])(\d{2,3})\s?/\s?(\d{2,3})(?![\d./])")
_GRADED = re.compile(r"^[^\W\d][^\d()（）]{0,20}[(（]([^()（）]*\d[^()（）]*)[)）]$")  # "Low (0 to 1)"
_SCORE = re.compile(r"\bscore\b|\bpoints?\b|评分|得分")
_SCORED = re.compile(
    r"\bscored?s?(?: (?:of|is|was))? ?[=:：]? ?(\d+)(?![\d.])|(?:评|得)分(?:为|是)?[=:：]? ?(\d+)(?![\d.])"
)


@cache
def _numbers() -> re.Pattern[str]:
    names = "|".join(f"(?P<u{place}>{names})" for place, (_, names) in enumerate(units.in_orders()))
    return re.compile(rf"(?<![\w.,/-])(?P<number>{NUMBER})(?: ?-?(?:{names})s?(?![a-z/])|(?![\w/%]|-\d))")


def numbers(text: str) -> Iterator[tuple[float, str]]:
    """Each number of ``text`` that stands by itself, and a name of its unit, the same for the same unit; "" of none."""
    for match in _numbers().finditer(fold(text)):
        unit = "" if match.lastgroup == "number" else match.lastgroup or ""
        yield float(match["number"].replace(",", "")), unit


def falls_in(question: str, header: str, cell: str, lone: bool = False) -> bool | None:
    """Whether a number of ``question`` falls into the range that ``cell`` of a table is; None for what is no range.

    It does if it is of the measure that ``header`` names; where the header names none, or an age, if both have the same
    unit, or none; of a score only what the question calls so, if it does. With ``lone`` a number by itself is a range
    too. "Low (0 to 1)" is the range in its brackets.
    """
    cell = _GRADED.sub(r"\1", cell)
    holds = within(_ANY, "", cell)
    if lone and not holds and cell.isdecimal():
        holds = float(cell).__eq__
    if not holds:
        return None
    measure = named(header)
    if measure and measure.name != "age":
        holds = within(measure, header, cell) or holds
        return any(holds(value) for value in values(question, measure))
    if _SCORE.search(fold(header)) and (scored := _SCORED.findall(fold(question))):
        return any(holds(float(number or other)) for number, other in scored)
    own = {unit for _, unit in numbers(cell) if unit} or {unit for _, unit in numbers(f"0 {_in_brackets(header)}")}
    return len(own) == 1 and any(unit in own and holds(value) for value, unit in numbers(question))


def falls_in_sentence(text: str, measure: Measure, value: float) -> bool:
    """Whether ``value`` is in a range that directly follows ``measure`` in ``text`` ("if eGFR is below 30").

    Targets, negations and numbers with another unit are left out. A range that a healthy value is in as well says
    nothing of a dangerous one ("above 4.0" of glucose 28).
    """
    low, high = _bounds().get(measure.name, (None, None))
    dangerous = (low is not None and value < low) or (high is not None and value >= high)
    healthy = measure.healthy if dangerous else None
    return any(holds(value) and not (healthy is not None and holds(healthy)) for holds in _given(text, measure))


@cache
def _bounds() -> Mapping[str, tuple[float | None, float | None]]:
    """By measure the bounds below and from which the ward table calls a value low or high; None for no bound."""
    ward = table("ward")
    of = {code: named(row[0]) for code, row in ward["measured"].items()}
    bounds = {
        code: tuple(ward[kind][code][0] if code in ward[kind] else None for kind in ("below", "above")) for code in of
    }
    return {measure.name: (low, high) for code, measure in of.items() for low, high in (bounds[code],) if measure}


def gives_reference(text: str, measure: Measure) -> bool:
    """Whether ``text`` gives a reference range for ``measure``."""
    return bool(_given(text, measure, alone=True, targets=_REFERENCE))


def misses_target(text: str, measure: Measure, value: float) -> bool:
    """Whether ``text`` gives targets for ``measure`` ("should be below 180/100"), and ``value`` misses one of them.

    A condition ("if", "when", 时) is no target.
    """
    return any(not holds(value) for holds in _given(text, measure, alone=True, targets=_TARGET))


def outside_reference(text: str, measure: Measure, value: float) -> bool:
    """Whether ``text`` gives reference ranges for ``measure``, and ``value`` is outside one of them."""
    return any(not holds(value) for holds in _given(text, measure, alone=True, targets=_REFERENCE))


def range_of(question: str, *held: Callable[[str, Measure, float], bool]) -> Callable[[str], bool] | None:
    """Whether one of ``held`` is true of a sentence and a value of ``question``; None if it has no value.

    By default whether the sentence gives a range that the value is in, or a target or reference range that it misses.
    """
    found = [(by_name(one.name), one.value) for one in measured(fold(aligned(question)))]
    kinds = held or (falls_in_sentence, misses_target, outside_reference)
    return (lambda text: any(holds(text, *one) for one in found for holds in kinds)) if found else None


def limit_near(said: str, high: bool) -> Callable[[str], bool]:
    """Whether a text gives a range that the value ``said`` is not in, but one a little further out: for "potassium 6.4
    mmol/L", ``high``, "6.5 or higher".
    """
    further = FURTHER if high else 1 / FURTHER
    values = [(by_name(it.name), it.value) for it in measured(fold(aligned(said)))]
    return lambda text: any(
        falls_in_sentence(text, measure, value * further) and not falls_in_sentence(text, measure, value)
        for measure, value in values
    )


def _given(
    text: str, measure: Measure, alone: bool = False, targets: re.Pattern[str] | None = None
) -> list[Callable[[float], bool]]:
    """The ranges that ``text`` gives for ``measure``; with ``targets`` those behind such words instead."""
    folded = _BETWEEN.sub(r"\1 to \2", fold(text))
    folded = _PRESSURE_RANGE.sub(_each_pressure, folded) if "/" in folded else folded
    found = []
    for one in map(by_name, KIDNEYS if measure.name in KIDNEYS and not alone else (measure.name,)):
        for match in _ranges(one).finditer(folded):
            start, end = match.span("range")
            before = _CLAUSE_END.split(folded[max(0, start - CLAUSE) : start])[-1]
            target, aimed = bool((targets or _TARGET).search(before)), bool(_AIMED.search(before))
            sure = target and not _CONDITION.search(before) and not _WHERE.match(folded, end)
            if sure if targets else not (target or aimed):  # "if ..., it should be below 3" is neither
                found.append(_both(within(one, "", match["range"]), within(one, "", _also(folded, end))))
                found += [within(one, "", other["range"]) for other in [_or_ranges(one).match(folded, end)] if other]
    return [holds for holds in found if holds]


def _also(folded: str, end: int) -> str:
    """The second half of a range in two halves: "above 30 and below 45"."""
    second = _SECOND.match(folded, end)
    return second["range"] if second else ""


def _both(one: Callable[[float], bool] | None, other: Callable[[float], bool] | None) -> Callable[[float], bool] | None:
    return (lambda value: one(value) and other(value)) if one and other else one


def _each_pressure(match: re.Match[str]) -> str:
    """A range of two pressures as one for each; what is denied, or is no pressure, stays as it is."""
    high, low = int(match["systolic"]), int(match["diastolic"])
    if _NO.search(match["between"]) or not (high >= 70 and 30 <= low < high):
        return match[0]
    before, after = match["before"] or "", match["after"] or ""
    systolic = f"{match['between']} systolic {before} {high} {after}"
    return f"{systolic}, {match['between']} diastolic {before} {low} {after}"


CLAUSE = 200  # characters before a range that may say that it is a target
_BETWEEN = re.compile(rf"\bbetween ({NUMBER}) and ({NUMBER})")
_SECOND = re.compile(rf"[^,.;，。；\d]{{0,12}}\b(?:and|but)\s+(?P<range>(?:{_FROM}|{_TO})\s*(?:{NUMBER}))")
_PRESSURE_RANGE = re.compile(
    r"(?:(?a:\bbp\b)|blood pressure|血压)(?P<between>[^\d;；。\n]{0,24}?)"
    rf"(?P<before>{_FROM}|{_TO})?\s*(?P<systolic>\d{{2,3}})\s*/\s*(?P<diastolic>\d{{2,3}})(?![\d/])"
    rf"(?:\s*(?:mm ?hg|毫米汞柱))?\s*(?P<after>{_OR_MORE}|{_OR_LESS})?"
)
_NO = re.compile(r"\b(?:no|not|never|without)\b|n't|[不未非无]")
_OR = re.compile(r"\bor\b|或")
_AIMED = re.compile(r"target|goal|\baim|\bkeep|urine|urinary|目标|维持|控制|尿")
_TARGET = re.compile(  # what certainly is one
    r"\b(?:target|goal|aim)s?\b|目标|控制在|维持在|降至|降到"
    r"|(?:\b(?:should|must) be|应)(?:\s+(?:systolic|diastolic))?\s*$"
    r"|\b(?:lower|reduce|bring) (?:the )?(?:bp|blood pressure|systolic|diastolic)?\s*"
    r"to(?:\s+(?:systolic|diastolic))?\s*$"
)
_REFERENCE = re.compile(r"\b(?:reference|normal) (?:range|value|interval)s?\b|参考(?:范围|值|区间)|正常(?:范围|值)")
_CONDITION = re.compile(r"\b(?:if|when|once|until|unless|not|no|urine|urinary)\b|如|若|当|未|不|尿")
_WHERE = re.compile(r"[^,，.。;；]{0,12}?(?:时|者|后|则)")
_CLAUSE_END = re.compile(r"[;；.。](?!\d)")
_LINKS = (
    r"(?:\s|:|：|=|\b(?:is|was|of|level|levels|target|reference|normal|range|in adults|falls|rises|drops"
    r"|for (?:most|many|all) (?:adults|patients|people)|should be|must be)\b|值|水平|为|是|应)*"
)
_OTHER_UNIT = (
    r"(?!\s*(?:[%/\d-]|\.\d|(?:to|mg|g|h)\b|(?:mmol|ml)\b(?!/)|units?\b|hours?|hrs?\b|days?|weeks?|months?|times"
    r"|次|天|日|周|个?月|小时))"
)


@cache
def _ranges(measure: Measure) -> re.Pattern[str]:
    return re.compile(rf"{measure.pattern}{_LINKS}(?P<range>{_a_range(measure)}){_OTHER_UNIT}")


@cache
def _or_ranges(measure: Measure) -> re.Pattern[str]:
    """A further range: "6.5 mmol/L or higher, or 2.5 mmol/L or lower"."""
    return re.compile(rf"\s*[,，、]?\s*(?:or|或)?\s*(?P<range>{_a_range(measure)}){_OTHER_UNIT}")


def _a_range(measure: Measure) -> str:
    number = rf"(?:{NUMBER})(?:\s*(?:{'|'.join(unit for unit, _, _ in measure.units) or '(?!)'}))?"
    return rf"{number}\s*{_TO_NEXT}\s*{number}|(?:{_FROM}|{_TO})\s*{number}|{number}\s*(?:{_OR_MORE}|{_OR_LESS})"


def values(question: str, measure: Measure) -> list[float]:
    """The values of ``measure`` that a ``question`` gives: any of kidney function is one, and "165/95" a pressure."""
    alike = KIDNEYS if measure.name in KIDNEYS else (measure.name,)
    found = [one.value for one in measured(question) if one.name in alike]
    if measure.name in (SYSTOLIC, DIASTOLIC) and not found:
        pairs = [(float(high), float(low)) for high, low in _BARE_PRESSURE.findall(question)]
        found = [pair[measure.name == DIASTOLIC] for pair in pairs if pair[0] >= 70 and 30 <= pair[1] < pair[0]]
    return found


def of_other_kidneys(question: str) -> bool:
    """Whether ``question`` is about impaired kidneys."""
    found = [one.value for one in measured(question) if one.name in KIDNEYS]
    return bool(
        any(value < REDUCED for value in found)
        or (not found and _KIDNEYS.search(fold(question)) and not for_normal_kidneys(question))
    )


def by_other_kidney_value(text: str, name: str) -> Measure | None:
    """The kidney measure by which ``text`` goes if it is not the one called ``name``, which stands for it."""
    said = [one for one in mentioned(text) if one.name in KIDNEYS]
    return said[0] if name in KIDNEYS and len(said) == 1 and said[0].name != name else None


def for_normal_kidneys(text: str) -> bool:
    """Whether ``text`` is about people with normal kidneys."""
    return bool(_NORMAL_KIDNEYS.search(fold(text)))


def _in_brackets(header: str) -> str:
    return header.replace("（", "(").rpartition("(")[2].rstrip(")） ") if header.rstrip().endswith((")", "）")) else ""
