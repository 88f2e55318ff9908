"""The PICO question without a language model, and what is searched for it.

A question that labels its elements is taken as it is; else cues tell comparison ("compared with", 与…相比), outcome
("reduce ...", 降低…) and population ("in adults with ..."); what is left is the intervention. Elements are the user's
own words; what the question does not name stays empty. The words are ``clinical/pico.toml``.
"""

from __future__ import annotations

import re

from localmed.agents.practice import ELEMENT_CHARACTERS, Pico, PicoInput
from localmed.clinical.tables import in_characters, listed, table
from localmed.domain.patient import PatientRecord
from localmed.language import content_words, detect

READ = 4_000  # characters of a question, as of any that is searched
SEARCHED_PROBLEMS = 2  # of the record searched with a question that names its patient only ("this patient")
SHORT = 3  # words; a question of fewer is understood with what the record says

_TABLE = table("pico")
_PEOPLE, _VERSUS, _EFFECTS, _ASKING = (_TABLE[name] for name in ("people", "compared", "effects", "asking"))
_MEANT = {name: element for element, names in _TABLE["labels"].items() for name in listed(names)}
_LABELS = re.compile(
    rf"(?:^|(?<=[\s;；,，。.]))(?P<label>{in_characters(', '.join(_MEANT))})\s*[:：]\s*", re.IGNORECASE
)
_POPULATION = re.compile(
    r"(?:^|\b)(?:in|for|among) (?:an? |the |my |this |these )?(?P<who>(?:(?!in |for |of )[\w-]+ ){0,4}?"
    rf"(?:{in_characters(_PEOPLE['en'])})\b[^,?;]*?)(?=,|\?|;|$| (?:{in_characters(_PEOPLE['before_end'])})\b)"
    r"|^(?:in|for) (?P<with>[^,?]{3,80}),",
    re.IGNORECASE,
)
_ZH_POPULATION = re.compile(
    rf"(?:对于?|在|针对)?(?P<who>[^，。？,?]{{0,40}}?(?:{in_characters(_PEOPLE['zh'])}))(?:中|里|来说|而言)?[，,]?"
)
_COMPARED = re.compile(rf"\s*,?\s*\b(?:{in_characters(_VERSUS['en'])})\s+", re.IGNORECASE)
_OR = re.compile(r"\b(?P<one>[\w-]+(?: [\w-]+){0,3}?) or (?P<other>[\w-]+(?: [\w-]+){0,3})", re.IGNORECASE)
_ZH_COMPARED = re.compile(
    rf"(?P<a>[^，。？]*?)(?:{in_characters(_VERSUS['zh_before'])})(?P<b>[^，。？与和跟]{{1,24}}?)"
    rf"(?:{in_characters(_VERSUS['zh_after'])})|(?P<c>[^，。？]+?)(?:{in_characters(_VERSUS['zh'])})(?P<d>[^，。？]{{1,24}})"
)
_OUTCOME = re.compile(
    rf"\s*,?\s*\b(?P<outcome>(?:(?:to|and) )?(?:{in_characters(_EFFECTS['en'])})\s+[^?,;]+"
    r"|(?:effects?|impact|influence) (?:on|of [\w -]+? on) [^?,;]+"
    rf"|(?:{in_characters(_EFFECTS['measures'])}) of [^?,;]+"
    rf"|for (?:the )?(?:[\w-]+ ){{1,3}}?(?:{in_characters(_EFFECTS['purposes'])}))",
    re.IGNORECASE,
)
_ZH_OUTCOME = re.compile(rf"(?:能否|是否能?|能|可以?)?(?P<outcome>(?:{in_characters(_EFFECTS['zh'])})[^，。？?吗]+)")
_LEAD = re.compile(rf"^(?:please )?(?:{in_characters(_ASKING['first'])})\b[\s,]*", re.IGNORECASE)
_TAIL = re.compile(rf"[\s,]*\b(?:{in_characters(_ASKING['last'])})$", re.IGNORECASE)
_ZH_FILLER = re.compile(rf"{in_characters(_ASKING['zh'])}|是$|[？?。，,]|^用|^对|^的|的$")
_RIGHT = re.compile(
    rf"(?P<what>(?:what|which|how) .+?) (?:is|are) (?:{in_characters(_ASKING['right'])})(?: (?:in|for) (?P<who>.+))?",
    re.IGNORECASE,
)
_MODAL = re.compile(r"\b(?:should|can|could|would|will|may|must)\b", re.IGNORECASE)
_PATIENT = re.compile(
    rf"(?:\b(?:in|for|of|with|to) )?\b(?:(?:this|the|my|our) (?:{in_characters(_TABLE['this_patient']['en'])})"
    r"|she|he|her|his|him)\b",
    re.IGNORECASE,
)
_ZH_PATIENT = re.compile(in_characters(_TABLE["this_patient"]["zh"]))
_NOT_SEARCHED = frozenset(listed(_TABLE["not_searched"]["en"]))
_ZH_NOT_SEARCHED = re.compile(rf"{in_characters(_TABLE['not_searched']['zh'])}|[，。？?、]")
_AGED = re.compile(r"\b\d{1,3}[- ]?(?:years?|yrs?|months?)[- ]old\b|\d{1,3}\s*岁")


def pico(task: PicoInput) -> Pico:
    """The PICO question of a clinical question, by its labels or by cues."""
    question = task.question[:READ]
    if (labelled := by_labels(question)) is not None:
        return labelled
    return _chinese(question) if task.language == "zh" else _english(question)


def by_labels(question: str) -> Pico | None:
    """The PICO question that labels its elements ("P: ... I: ..."); ``None`` where fewer than two are labelled."""
    question = question[:READ]
    marks = list(_LABELS.finditer(question))
    elements: dict[str, str] = {}
    ends = [mark.start() for mark in marks[1:]] + [len(question)] * bool(marks)
    for mark, end in zip(marks, ends, strict=True):
        elements.setdefault(_MEANT[mark["label"].lower()], _short(question[mark.end() : end].strip(" \t\n;；,，.。")))
    if len([element for element in elements.values() if element]) < 2 or "intervention" not in elements:
        return None
    return Pico(**elements, labelled=True)


def _english(question: str) -> Pico:
    remainder = question.strip().rstrip("?？. ")
    population = outcome = comparison = ""
    if named := _POPULATION.search(remainder):
        population = named["who"] or named["with"]
        remainder = f"{remainder[: named.start()]} {remainder[named.end() :]}"
    if compared := _COMPARED.search(remainder):
        remainder, comparison = remainder[: compared.start()], remainder[compared.end() :]
    for part in (comparison, remainder):
        if match := _OUTCOME.search(part):
            outcome = outcome or match["outcome"]
    comparison, remainder = _OUTCOME.sub("", comparison), _OUTCOME.sub("", remainder)
    if not population and (right := _RIGHT.fullmatch(remainder)):
        remainder, population = right["what"], right["who"] or ""
    remainder = _bare(remainder)
    if not comparison and (either := _OR.fullmatch(remainder)):
        remainder, comparison = either["one"], either["other"]
    return Pico(_short(population), _short(remainder), _short(_bare(comparison)), _short(outcome))


def _bare(text: str) -> str:
    """``text`` without the words that ask, at either end."""
    text = " ".join(_MODAL.sub(" ", _PATIENT.sub(" ", text)).split()).strip(" ,")
    while (shorter := _TAIL.sub("", _LEAD.sub("", text)).strip(" ,")) != text:
        text = shorter
    return text


def _chinese(question: str) -> Pico:
    remainder, population, comparison, outcome = question.strip(), "", "", ""
    if named := _ZH_POPULATION.search(remainder):
        population = named["who"]
        remainder = remainder[: named.start()] + remainder[named.end() :]
    if compared := _ZH_COMPARED.search(remainder):
        intervention, comparison = compared["a"] or compared["c"], compared["b"] or compared["d"]
        remainder = f"{intervention}{remainder[compared.end() :]}"
    for part in (remainder, comparison):
        if match := _ZH_OUTCOME.search(part):
            outcome = outcome or match["outcome"]
    remainder, comparison = _ZH_OUTCOME.sub("", remainder), _ZH_OUTCOME.sub("", comparison)
    elements = (population, remainder, comparison, outcome)
    population, intervention, comparison, outcome = (_short(_ZH_FILLER.sub("", text)) for text in elements)
    return Pico(population, intervention, comparison, outcome)


def _short(text: str) -> str:
    return " ".join(text.split())[:ELEMENT_CHARACTERS].strip(" ,")


def searched(question: str, pico: Pico, record: PatientRecord | None) -> tuple[str, ...]:
    """What is searched for in turn until something helps: the PICO question, and at last the question as it was asked.

    Elements are searched without the words that only ask ("continued", "safe"), the population without the words that
    fit anybody; sources repeat neither. Where the question names its patient only ("this patient", "she"), the record's
    first problems stand for the population, at first; nothing else of a record is searched for.
    """
    elements = " ".join((pico.intervention, pico.comparison, pico.outcome))
    pattern = _ZH_PATIENT if detect(question) == "zh" else _PATIENT
    from_question = set(content_words(pico.population)) <= set(
        content_words(question)
    )  # else a model took it from the record
    population = _terms(pattern.sub(" ", pico.population)) if from_question else ""
    names_patient = pattern.search(question) or len(content_words(question)) < SHORT
    problems = " ".join(record.problems[:SEARCHED_PROBLEMS]) if record and names_patient and not population else ""
    queries = (_terms(f"{problems} {elements}"), _terms(f"{population} {elements}"), question)
    return tuple(dict.fromkeys(query for query in (queries if problems else queries[1:]) if query))


def _terms(text: str) -> str:
    """The words of ``text`` that name something, in order, once each."""
    plain = _AGED.sub(" ", text)
    if detect(plain) == "zh":
        return " ".join(_ZH_NOT_SEARCHED.sub(" ", plain).split())
    return " ".join(dict.fromkeys(word for word in content_words(plain) if word not in _NOT_SEARCHED))
