"""The parts of an evidence-based answer, in its language: PICO, warnings, effects, patient, gaps, sources."""

from __future__ import annotations

from collections.abc import Sequence

from localmed.agents.extractive import Candidate, quotation
from localmed.agents.practice import ELEMENTS, Pico
from localmed.clinical.publications import level
from localmed.domain import Evidence, Part, Statement, TextPart
from localmed.verification.applicability import Applied, Fact, Warned

TEXTS = {
    "en": {
        "pico": "PICO question", "warning": "CHECK FIRST: record against sources", "quantitative": "Results in numbers",
        "applicability": "For this patient", "missing": "What is missing", "population": "Population",
        "intervention": "Intervention", "comparison": "Comparison", "outcome": "Outcome", "not_given": "not given",
        "not_named": "not named in the question", "record": "Patient's record",
        "no_record": "none was given, so nothing was held against it", "type": "type", "date": "date", "level": "level",
        "no_date": "not dated", "of_five": "{level} of 5, by its type alone", "no_level": "none: type not known",
        "source": "Source {marker} {title}",
    },
    "zh": {
        "pico": "PICO 问题", "warning": "请先核对：病历与来源", "quantitative": "数值结果", "applicability": "对该患者",
        "missing": "缺少的信息", "population": "人群", "intervention": "干预", "comparison": "对照", "outcome": "结局",
        "not_given": "未给出", "not_named": "问题中未提及", "record": "病历", "no_record": "未提供，无法核对是否适用",
        "type": "类型", "date": "日期", "level": "级别", "no_date": "无日期", "of_five": "{level} 级（共 5 级，"
        "仅按类型）",
        "no_level": "无（类型不明）", "source": "来源 {marker} {title}",
    },
}  # fmt: skip


def pico_part(pico: Pico, language: str) -> Part:
    """The elements of the question."""
    texts = _texts(language)
    facts = ((texts[name], getattr(pico, name) or texts["not_given"]) for name in ELEMENTS)
    return TextPart("pico", texts["pico"], facts=tuple(facts))


def parts(
    pico: Pico,
    applied: Applied,
    effects: tuple[Statement, ...],
    fitting: tuple[Statement, ...],
    sources: Sequence[Evidence],
    language: str,
    known: bool,
) -> tuple[Part, ...]:
    """All parts that hold anything; ``sources`` are those shown, ``known`` says whether there is a record."""
    texts = _texts(language)
    warned = warned_statements(applied.warnings, sources)
    made = (
        pico_part(pico, language),
        TextPart("warning", texts["warning"], warned, tuple(each.fact for each in applied.warnings)),
        TextPart("quantitative", texts["quantitative"], effects),
        TextPart("applicability", texts["applicability"], _without(fitting, warned), applied.facts),
        TextPart("missing", texts["missing"], facts=_missing(pico, applied, texts, known)),
        *_sources(sources, language),
    )
    return tuple(each for each in made if each.facts or each.statements)


def _without(statements: Sequence[Statement], others: Sequence[Statement]) -> tuple[Statement, ...]:
    said = {each.text for each in others}
    return tuple(each for each in statements if each.text not in said)


def warned_statements(warnings: Sequence[Warned], evidence: Sequence[Evidence]) -> tuple[Statement, ...]:
    """The sentences that warnings come from, quoted, once each."""
    by_marker = {each.marker: each for each in evidence}
    places = dict.fromkeys((each.marker, each.start, each.end) for each in warnings if each.marker in by_marker)
    return tuple(
        quotation(Candidate(by_marker[marker], 0, start, end, 0.0, frozenset())) for marker, start, end in places
    )


def _missing(pico: Pico, applied: Applied, texts: dict[str, str], known: bool) -> tuple[Fact, ...]:
    record = () if known else ((texts["record"], texts["no_record"]),)
    elements = tuple((texts[name], texts["not_named"]) for name in ELEMENTS[1:] if not getattr(pico, name))
    return (*record, *applied.missing, *elements)


def _sources(sources: Sequence[Evidence], language: str) -> tuple[Part, ...]:
    """The grade of each document: what sort it is, of when, and on which level of our table its sort stands."""
    texts = _texts(language)
    made = []
    for document in dict.fromkeys(each.passage.document_id for each in sources):
        cited = [each for each in sources if each.passage.document_id == document]
        sort, number = level(cited[0], language)
        facts = (
            (texts["type"], sort),
            (texts["date"], cited[0].edition or texts["no_date"]),
            (texts["level"], texts["of_five"].format(level=number) if number else texts["no_level"]),
        )
        markers = "".join(f"[{each.marker}]" for each in cited)
        made.append(
            TextPart("source", texts["source"].format(marker=markers, title=cited[0].document_title), facts=facts)
        )
    return tuple(made)


def _texts(language: str) -> dict[str, str]:
    return TEXTS.get(language, TEXTS["en"])
