"""Whether what the sources say fits this patient: the record held against the evidence, by rules.

- *Allergies*: a medicine that the answer speaks of, of a class (or a related one) to which the record is allergic.
- *Limits*: a measure with a limit in a source ("eGFR below 30", "aged 85 years or over") against the record's value.
  Met in a sentence that advises against something, it is a warning; else a fact.
- *Advice against*: a sentence that advises against something in pregnancy, where the record is of a pregnant patient,
  or that names a medicine which the patient takes beside one that the answer speaks of.
- *People*: a source for children or adults, where the patient is neither.
- *Missing*: what the sources ask for and the record does not hold.

Rules see names and numbers, not meaning: nothing found is no proof that a recommendation fits. What is found is a fact
about record and source, never an order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from localmed.clinical import measures, medicines
from localmed.clinical.measures import Measure
from localmed.domain import Evidence, Statement
from localmed.domain.patient import Measured, PatientRecord
from localmed.language import fold, sentences
from localmed.verification.subjects import circumstances, denied, side

MOST = 8  # of each sort shown; more would hide the answer
ADULT = 18  # years

_AGAINST = re.compile(
    r"\b(?:do not|not (?:recommended|suitable|used|be)|never|avoid\w*|stop|contraindicat\w*|must not|should not"
    r"|caution|exceed)\b"
    r"|禁用|禁忌|不得|不应|不宜|不推荐|避免|停用|停药|慎用",
    re.IGNORECASE,
)
_TOGETHER = re.compile(
    r"\b(?:combin\w*|together|plus|interact\w*|(?:an?|any) [\w-]+ with)\b|联合|合用|同时|联用", re.IGNORECASE
)
_DEPENDS = re.compile(r"\b(?:if|when|unless|where)\b|如果?|若|时", re.IGNORECASE)
_GRAMMAR = re.compile(r"^(?:(?:is|are|was|of|counts?|level|at|a|the)\b|[:：,\s])+|[.。,，;；\s]+$")
_MORE = re.compile(r"\s*(?:以[上下]|or (?:less|lower|below|more|higher|above|over))")
_PREGNANCY = re.compile(r"\bpregnan|妊娠|孕", re.IGNORECASE)
_AGE = re.compile(
    r"\bage[ds]? (?:of )?(?P<n1>\d+)(?: (?:to|-) (?:under )?(?P<m1>\d+))?(?: years)?(?P<after1> (?:or"
    r"|and) (?:over|older|more))?"
    r"|\b(?P<before2>over|under|above|below|older than|younger than) (?:the age of )?(?P<n2>\d+) years"
    r"|(?P<n3>\d+)\s*(?:至(?P<m3>\d+)\s*)?岁(?P<after3>及?以[上下内])?"
)
_OVER = re.compile(r"over|older|more|above|以上")

TEXTS = {
    "en": {
        "allergy": "the record says {allergy}; the answer speaks of {named}{related}",
        "related": " (a related class)",
        "met": "the record has {written}{date}; source {marker} speaks of {limit}: this patient is meant",
        "unmet": "the record has {written}{date}; source {marker} speaks of {limit}: this patient is not meant",
        "pregnant": "the record is of a pregnant patient; source {marker} advises against something in pregnancy",
        "together": "the record has {taken}; source {marker} advises against something with it",
        "children": "source {marker} speaks of children only; the record is of an adult",
        "adults": "source {marker} speaks of adults only; the record is of a child",
        "interaction": "the record has {taken}; the concept graph says that it interacts with {named}",
        "measure": "source {marker} asks for it; the record has no value",
        "unknown_pregnancy": "source {marker} speaks of it; the record does not say",
        "unknown_allergies": "the answer names medicines; the record does not say whether there are allergies",
        "unknown_medications": "the answer names medicines; the record does not say what the patient takes",
        "Allergy": "Allergy", "Pregnancy": "Pregnancy", "Medicines": "Medicines", "Age": "Age",
        "Allergies": "Allergies",
    },
    "zh": {
        "allergy": "病历记录：{allergy}；回答中提到{named}{related}",
        "related": "（相关类别）",
        "met": "病历为{written}{date}；来源 {marker} 的条件为“{limit}”：该患者符合",
        "unmet": "病历为{written}{date}；来源 {marker} 的条件为“{limit}”：该患者不符合",
        "pregnant": "病历显示患者妊娠；来源 {marker} 有妊娠期禁忌或不推荐的内容",
        "together": "病历用药：{taken}；来源 {marker} 有与之相关的禁忌或不推荐的内容",
        "children": "来源 {marker} 仅针对儿童；该患者为成人",
        "adults": "来源 {marker} 仅针对成人；该患者为儿童",
        "interaction": "病历用药：{taken}；概念图谱提示它与{named}存在相互作用",
        "measure": "来源 {marker} 需要该指标；病历中没有数值",
        "unknown_pregnancy": "来源 {marker} 涉及妊娠；病历未说明",
        "unknown_allergies": "回答中提到药物；病历未说明有无过敏",
        "unknown_medications": "回答中提到药物；病历未说明目前用药",
        "Allergy": "过敏", "Pregnancy": "妊娠", "Medicines": "用药", "Age": "年龄", "Allergies": "过敏史",
    },
}  # fmt: skip

Fact = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Warned:
    """A fact to look at first, and the sentence ``start:end`` of the evidence ``marker`` that it comes from, if any."""

    fact: Fact
    marker: str = ""
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Applied:
    """What holding the record against the evidence came to."""

    warnings: tuple[Warned, ...] = ()
    facts: tuple[Fact, ...] = ()
    missing: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Limit:
    """A measure's limit as a sentence states it: from ``low`` to ``high``; ``written`` is the limit in its words."""

    measure: Measure
    low: float
    high: float
    written: str

    def holds(self, value: float) -> bool:
        """Whether ``value`` is within it."""
        return self.low <= value < self.high


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence of the evidence that bears on the answer."""

    evidence: Evidence
    start: int
    end: int
    text: str
    language: str

    def tell(self, name: str, kind: str, **values: str) -> Fact:
        """A fact about it, in ``language``."""
        texts = TEXTS[self.language]
        return texts.get(name, name), texts[kind].format(marker=self.evidence.marker, **values)

    def warn(self, fact: Fact) -> Warned:
        """``fact`` as a warning that quotes it."""
        return Warned(fact, self.evidence.marker, self.start, self.end)


def applied(
    record: PatientRecord, statements: Sequence[Statement], evidence: Sequence[Evidence], language: str
) -> Applied:
    """The record against ``statements`` and the ``evidence`` that they were written from; texts in ``language``."""
    spoken = language if language in TEXTS else "en"
    shown = [each.text for each in statements if not each.withheld]
    warnings = list(_allergies(record, shown, spoken))
    facts: list[Fact] = []
    missing: dict[str, Fact] = {}
    for said in _bearing(shown, evidence, spoken):
        bears = said.text in shown or bool(_DEPENDS.search(said.text) or medicines.classes(said.text))
        found, also = _limits(record, said) if bears else ([], [])
        warnings += [*found, *_against(record, said, shown)]
        facts += [*also, *_people(record, said)]
        for fact in _missing(record, said):
            missing.setdefault(fact[0], fact)
    texts = TEXTS[spoken]
    if any(map(medicines.classes, shown)):
        for name, kind in (("allergies", "Allergies"), ("medications", "Medicines")):
            if not getattr(record, name) and name not in record.none_of:
                missing.setdefault(texts[kind], (texts[kind], texts[f"unknown_{name}"]))
    once = {each.fact: each for each in reversed(warnings)}
    return Applied(
        tuple(reversed(once.values()))[:MOST], tuple(dict.fromkeys(facts))[:MOST], tuple(missing.values())[:MOST]
    )


def _bearing(shown: Sequence[str], evidence: Sequence[Evidence], language: str) -> Iterator[Said]:
    """The sentences of the evidence that name no other medicines than the answer does."""
    subject = set(medicines.classes(" ".join(shown)))
    for each in evidence:
        text = each.passage.text
        for start, end in sentences(text):
            named = set(medicines.classes(text[start:end]))
            if not named or not subject or named & subject:
                yield Said(each, start, end, text[start:end], language)


def _allergies(record: PatientRecord, shown: Sequence[str], language: str) -> Iterator[Warned]:
    texts = TEXTS[language]
    for text in shown:
        if denied(fold(text)):
            continue
        for allergy in record.allergies:
            for named, related in medicines.met_by(allergy, text).items():
                said = texts["allergy"].format(
                    allergy=allergy, named=named, related=texts["related"] if related else ""
                )
                yield Warned((texts["Allergy"], said))


def limits(text: str) -> list[Limit]:
    """The limits of measures that a sentence states; a value without a side ("is 30") is no limit."""
    folded = fold(text)
    found = [limit for measure in measures.mentioned(text) for limit in _of_measure(measure, folded)]
    return found + list(_of_age(folded))


def _of_measure(measure: Measure, folded: str) -> Iterator[Limit]:
    if measure.name == "age":
        return
    units = "|".join(f"(?:{unit[0]})" for unit in measure.units) or "(?!)"
    pattern = (
        rf"{measure.pattern}(?P<before>[^\d,;；。，]{{0,{measures.NEAR}}}?)(?P<low>{measures.NUMBER})\s*(?P<unit1>{units})?"
        rf"(?:\s*(?:to|-|–|至|~)\s*(?P<high>{measures.NUMBER})\s*(?P<unit2>{units})?)?(?!\d"
        rf"|/\d)(?P<after>[^,;；。，]{{0,14}})"
    )
    for match in re.finditer(pattern, folded):
        unit = match["unit2"] or match["unit1"] or ""
        low = measures.converted(measure, match["low"], unit)
        high = measures.converted(measure, match["high"], unit) if match["high"] else None
        tail = _MORE.match(match["after"])
        written = f"{folded[match.start('before') : match.start('after')]}{tail[0] if tail else ''}"
        written = _GRAMMAR.sub("", " ".join(written.split()))
        if low is not None and (limit := _limit(measure, low, high, match["before"], match["after"], written)):
            yield limit


def _limit(measure: Measure, low: float, high: float | None, before: str, after: str, written: str) -> Limit | None:
    if high is not None:
        return Limit(measure, low, high + 1e-9 if measure.name != "eGFR" else high + 1, written)
    which = side(before, after)
    if which == "below":
        return Limit(measure, float("-inf"), low, written)
    return Limit(measure, low, float("inf"), written) if which == "above" else None


def _of_age(folded: str) -> Iterator[Limit]:
    age = measures.by_name("age")
    for match in _AGE.finditer(folded):
        number = float(match["n1"] or match["n2"] or match["n3"])
        upper = match["m1"] or match["m3"]
        said = match["after1"] or match["before2"] or match["after3"] or ""
        if upper:
            yield Limit(age, number, float(upper) + 1, match[0].strip())
        elif said and _OVER.search(said):
            yield Limit(age, number, float("inf"), match[0].strip())
        elif said:
            yield Limit(age, 0.0, number, match[0].strip())


def _limits(record: PatientRecord, said: Said) -> tuple[list[Warned], list[Fact]]:
    """The limits of a sentence that the record's values meet or do not meet."""
    warnings, facts = [], []
    for limit in limits(said.text):
        value = record.result(limit.measure.name)
        if value is None:
            continue
        met = limit.holds(value.value)
        if not met and said.evidence.passage.table:  # the rows of others
            continue
        fact = said.tell(
            _label(limit.measure, said.language), "met" if met else "unmet", written=_written(value, said.language),
            date=f" ({value.date})" if value.date else "", limit=limit.written,
        )  # fmt: skip
        if met and _AGAINST.search(said.text):
            warnings.append(said.warn(fact))
        else:
            facts.append(fact)
    return warnings, facts


def _written(value: Measured, language: str) -> str:
    if value.name == "age":
        return f"{value.written} 岁" if language == "zh" else f"{value.written} years"
    return value.written


def _label(measure: Measure, language: str) -> str:
    return measure.chinese if language == "zh" else measure.name


def _against(record: PatientRecord, said: Said, shown: Sequence[str]) -> Iterator[Warned]:
    """Advice against something for a pregnant patient, or with a medicine that the patient takes."""
    if not _AGAINST.search(said.text):
        return
    if record.pregnant and _PREGNANCY.search(said.text):
        yield said.warn(said.tell("Pregnancy", "pregnant"))
    named, spoken_of = set(medicines.classes(said.text)), set(medicines.classes(" ".join(shown)))
    for taken in record.medications:
        own = set(medicines.classes(taken))
        if own & named and (named - own) & spoken_of and _TOGETHER.search(said.text):
            yield said.warn(said.tell("Medicines", "together", taken=taken))


def _people(record: PatientRecord, said: Said) -> Iterator[Fact]:
    """A sentence or title for children where the patient is an adult, or the other way round."""
    if record.age is None:
        return
    meant = circumstances(said.text, "people") or circumstances(said.evidence.document_title, "people")
    if meant == {"children"} and record.age >= ADULT:
        yield said.tell("Age", "children")
    if meant and "children" not in meant and record.age < ADULT:
        yield said.tell("Age", "adults")


def _missing(record: PatientRecord, said: Said) -> Iterator[Fact]:
    """What a sentence makes its advice depend on and the record does not hold."""
    for limit in limits(said.text) if _DEPENDS.search(said.text) or medicines.classes(said.text) else ():
        if record.result(limit.measure.name) is None:
            yield said.tell(_label(limit.measure, said.language), "measure")
    if _AGAINST.search(said.text) and _PREGNANCY.search(said.text) and record.may_be_pregnant:
        yield said.tell("Pregnancy", "unknown_pregnancy")
    if re.match(r"\s*(?:check|measure|monitor)\b", said.text, re.IGNORECASE) or re.search("复查|监测|测定", said.text):
        for measure in measures.mentioned(said.text):
            if record.result(measure.name) is None:
                yield said.tell(_label(measure, said.language), "measure")


def interacting(record: PatientRecord, named: str, partners: Sequence[str], language: str) -> Iterator[Warned]:
    """The record's medicines that the concept graph says interact with ``named``; ``partners`` are its names."""
    texts = TEXTS.get(language, TEXTS["en"])
    for taken in record.medications:
        words = fold(taken)
        if any(re.search(rf"(?<![a-z]){re.escape(fold(each))}(?![a-z])", words) for each in partners if len(each) > 2):
            yield Warned((texts["Medicines"], texts["interaction"].format(taken=taken, named=named)))
