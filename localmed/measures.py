"""What is measured of a patient: names, units and what can be true, in English and Chinese.

One table for records ("K+ 5.9") and for sources ("if potassium is above 5.5 mmol/L"), so that the two meet. A value
is brought to the measure's first unit; one in a unit that is not listed is not read. ``plausible`` is what a living
patient can have at the outside: a value beyond it is more likely a slip of the pen, and is told, not used. Codes are
LOINC's.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from localmed.domain.patient import Measured

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

    @property
    def pattern(self) -> str:
        """The names as a regular expression on folded text; a Chinese character ends an English word (``(?a:``)."""
        return f"(?a:{self.written})"


_PER_MINUTE = ((r"(?:beats|breaths)?(?: a | per |/)(?:minute|min)|bpm|次/分钟?", 1.0, 0.0),)
_MMOL = (r"mmol/l|meq/l|mmol", 1.0, 0.0)
_MMHG = ((r"mm ?hg|mm\[hg\]|毫米汞柱", 1.0, 0.0),)
_CLEARANCE = ((r"ml/min(?:/1\.73 ?(?:m2|m\^2|\{1\.73_m2\}))?|ml/min/\{1\.73_m2\}", 1.0, 0.0),)

# Names are looked for in this order: HbA1c is no haemoglobin.
MEASURES = (
    Measure("eGFR", "估算肾小球滤过率（eGFR）", r"\be?gfr\b|glomerular filtration rate|肾小球滤过率", "mL/min/1.73 m²",
            (1, 200), _CLEARANCE, True, ("33914-3", "62238-1", "98979-8", "48642-3", "48643-1", "88293-6", "77147-7")),
    Measure("creatinine clearance", "肌酐清除率", r"creatinine clearance|\bcrcl\b|肌酐清除率", "mL/min", (1, 250),
            _CLEARANCE, True, ("2164-2",)),
    Measure("creatinine", "肌酐", r"\bcreatinine\b(?! (?:clearance|ratio))(?!-to-)|(?<!白)肌酐(?!清除)", "µmol/L",
            (10, 3000),
            ((r"[µμu]mol/l", 1.0, 0.0), (r"mg/dl", 88.42, 0.0)), False, ("2160-0", "38483-4", "14682-9")),
    Measure("potassium", "血钾", r"\bpotassium\b|\bk\+|血钾|钾(?=[:： ]*\d)", "mmol/L", (1.2, 12), (_MMOL,), True,
            ("2823-3", "6298-4")),
    Measure("sodium", "血钠", r"\bsodium\b|\bna\+|血钠", "mmol/L", (90, 200), (_MMOL,), True, ("2951-2", "2947-0")),
    Measure("HbA1c", "糖化血红蛋白", r"\bhb ?a1c\b|\ba1c\b|ha?emoglobin a1c|糖化血红蛋白", "%", (2.5, 20),
            ((r"%", 1.0, 0.0), (r"mmol/mol", 0.0915, 2.15)), True, ("4548-4", "59261-8")),
    Measure("glucose", "血糖", r"\bglucose\b|blood sugar|血糖", "mmol/L", (0.3, 90),
            (_MMOL, (r"mg/dl", 0.0555, 0.0)), False, ("2339-0", "2345-7", "14749-6", "15074-8", "1558-6")),
    Measure("haemoglobin", "血红蛋白", r"\bha?emoglobin\b(?! a1c)|\bhb\b(?! ?a1c)|(?<!化)血红蛋白", "g/L", (15, 260),
            ((r"g/l", 1.0, 0.0), (r"g/dl", 10.0, 0.0)), False, ("718-7", "59260-0")),
    Measure("platelets", "血小板计数", r"\bplatelets?(?: count)?\b|\bplt\b|血小板(?:计数)?", "10⁹/L", (1, 3000),
            ((r"[×x*] ?10\^?\*?9/l|10\*9/l|10\*3/ul|[×x*] ?10\^?3/[µμu]l", 1.0, 0.0),), False, ("777-3", "26515-7")),
    Measure("INR", "INR", r"\binr\b|国际标准化比值", "", (0.5, 30), (), True, ("6301-6", "34714-6")),
    Measure("systolic blood pressure", "收缩压", r"systolic(?: blood pressure| bp)?|\bsbp\b|收缩压", "mmHg",
            (30, 320),
            _MMHG, True, ("8480-6",)),
    Measure("diastolic blood pressure", "舒张压", r"diastolic(?: blood pressure| bp)?|\bdbp\b|舒张压", "mmHg",
            (10, 200),
            _MMHG, True, ("8462-4",)),
    Measure("heart rate", "心率", r"heart rate|\bpulse\b(?! oximet)|\bhr\b(?=[:= ]*\d)|心率|脉搏", "/min", (15, 320),
            _PER_MINUTE, True, ("8867-4",)),
    Measure("respiratory rate", "呼吸频率", r"respiratory rate|\brr\b(?=[:= ]*\d)|呼吸(?:频率)?(?=[:： ]*\d)", "/min",
            (2, 90),
            _PER_MINUTE, True, ("9279-1",)),
    Measure("temperature", "体温", r"temperature|\btemp\b|体温", "°C", (24, 43),
            ((r"°?c(?:el)?\b|℃|摄氏度|度", 1.0, 0.0), (r"°?f\b|\[degf\]", 0.5556, -17.778)), True,
            ("8310-5", "8331-1")),
    Measure("oxygen saturation", "血氧饱和度", r"oxygen saturation|\bsp?o2\b|\bsats?\b|氧饱和度", "%", (20, 100),
            ((r"%", 1.0, 0.0),), True, ("2708-6", "59408-5")),
    Measure("weight", "体重", r"(?:body )?weight(?! (?:gain|loss))|体重(?!指数|增|减)", "kg", (0.3, 400),
            ((r"kg|公斤|千克", 1.0, 0.0), (r"lbs?|pounds?|\[lb_av\]", 0.4536, 0.0)), False, ("29463-7", "3141-9")),
    Measure("height", "身高", r"(?:body )?height|身高", "cm", (25, 260),
            ((r"cm|厘米", 1.0, 0.0), (r"m\b|米", 100.0, 0.0)), False, ("8302-2",)),
    Measure("BMI", "体重指数", r"\bbmi\b|body mass index|体重指数", "kg/m²", (7, 110),
            ((r"kg/m(?:2|\^2)", 1.0, 0.0),), True,
            ("39156-5",)),
    Measure("LDL cholesterol", "低密度脂蛋白胆固醇", r"\bldl(?:-c)?\b(?: cholesterol)?|低密度脂蛋白",
            "mmol/L", (0.1, 30), (_MMOL, (r"mg/dl", 0.02586, 0.0)), False, ("18262-6", "13457-7", "2089-1")),
    Measure("lactate", "乳酸", r"\blactate\b|乳酸(?!脱氢)", "mmol/L", (0.1, 40), (_MMOL,), False,
            ("2524-7", "32693-4")),
    Measure("age", "年龄", r"\bage[ds]?\b|年龄|(?<=over )(?=\d+ years?)|(?<=under )(?=\d+ years?)", "years", (0, 125),
            ((r"years?(?: old| of age)?|岁", 1.0, 0.0),), True),
)  # fmt: skip
BY_NAME = {each.name: each for each in MEASURES}
_BY_CODE = {code: each for each in MEASURES for code in each.codes}
NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_VALUES = {
    each.name: re.compile(
        rf"{each.pattern}(?P<between>[^\d;；。\n]{{0,{NEAR}}}?)(?P<number>{NUMBER})(?![\d/])\s*"
        rf"(?P<unit>{'|'.join(f'(?:{unit[0]})' for unit in each.units) or '(?!)'})?"
    )
    for each in MEASURES
}
_PRESSURE = re.compile(r"(?:(?a:\bbp\b)|blood pressure|血压)[^\d;；。\n]{0,24}?(\d{2,3})\s*/\s*(\d{2,3})(?!\d|/)")
_OTHER_BODY_FLUID = re.compile(r"urine|urinary|fasting target|target|goal|尿|目标", re.IGNORECASE)


def fold(text: str) -> str:
    """NFKC and lower case, as ``language.fold``; said again here because this table stands below it."""
    return unicodedata.normalize("NFKC", text).lower()


def measured(text: str, date: str = "") -> Iterator[Measured]:
    """Every measure with a value in ``text``, in the order of ``MEASURES``, what cannot be true included."""
    folded = fold(text)
    for found in _PRESSURE.finditer(folded):
        for name, number in zip(("systolic blood pressure", "diastolic blood pressure"), found.groups(), strict=True):
            yield Measured(name, float(number), f"{number} mmHg", date)
    for measure in MEASURES:
        for found in _VALUES[measure.name].finditer(folded) if measure.name != "age" else ():
            if _OTHER_BODY_FLUID.search(found["between"]) or _OTHER_BODY_FLUID.search(
                folded[max(0, found.start() - 12) : found.start()]
            ):
                continue
            value = converted(measure, found["number"], found["unit"] or "")
            if value is not None:
                written = f"{found['number']} {found['unit'] or measure.unit}".strip()
                yield Measured(measure.name, value, _shown(written), date)


def coded(name: str, code: str, value: float, unit: str, date: str = "") -> Measured | None:
    """A result of a coded record, by its LOINC code, else by its name; ``None`` for what is not in the table."""
    measure = _BY_CODE.get(code) if code else named(name)
    if measure is None:
        return None
    in_first = converted(measure, f"{value:g}" if abs(value) < 1e6 else "", fold(unit))
    if in_first is None:
        return None
    return Measured(measure.name, in_first, f"{round(value, 2):g} {unit or measure.unit}".strip(), date)


def named(text: str) -> Measure | None:
    """The measure that ``text`` is a name of; none for what is measured in urine."""
    folded = fold(text)
    if _OTHER_BODY_FLUID.search(folded):
        return None
    return next((each for each in MEASURES if re.search(each.pattern, folded)), None)


def mentioned(text: str) -> list[Measure]:
    """The measures that ``text`` names, with a value or without."""
    folded = fold(text)
    return [each for each in MEASURES if re.search(each.pattern, folded)]


def plausible(measured: Measured) -> bool:
    """Whether a living patient can have the value."""
    low, high = BY_NAME[measured.name].plausible
    return low <= measured.value < high or (measured.value == high and measured.name == "oxygen saturation")


def converted(measure: Measure, number: str, unit: str) -> float | None:
    """``number`` in the measure's first unit; ``None`` where the unit is none of the measure's."""
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
