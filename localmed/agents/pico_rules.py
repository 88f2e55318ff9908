"""The PICO question without a language model, and what is searched for it.

A question that labels its elements is taken as it is; else cues tell comparison ("compared with", 与…相比), outcome
("reduce ...", 降低…) and population ("in adults with ..."); what is left is the intervention. Elements are the user's
own words; what the question does not name stays empty.
"""

from __future__ import annotations

import re

from localmed.agents.practice import ELEMENT_CHARACTERS, Pico, PicoInput
from localmed.domain.patient import PatientRecord
from localmed.language import content_words, detect

READ = 4_000  # characters of a question, as of any that is searched
SEARCHED_PROBLEMS = 2  # of the record searched with a question that names its patient only ("this patient")
SHORT = 3  # words; a question of fewer is understood with what the record says

_LABELS = re.compile(
    r"(?:^|(?<=[\s;；,，。.]))(?P<label>p|i|c|o|population|patients?|problem|intervention|comparison|comparator|control"
    r"|outcomes?|人群|患者|研究对象|干预|干预措施|对照|比较|结局|结局指标)\s*[:：]\s*",
    re.IGNORECASE,
)
_MEANT = {
    "p": "population", "population": "population", "patient": "population", "patients": "population",
    "problem": "population", "人群": "population", "患者": "population", "研究对象": "population",
    "i": "intervention", "intervention": "intervention", "干预": "intervention", "干预措施": "intervention",
    "c": "comparison", "comparison": "comparison", "comparator": "comparison", "control": "comparison",
    "对照": "comparison", "比较": "comparison",
    "o": "outcome", "outcome": "outcome", "outcomes": "outcome", "结局": "outcome", "结局指标": "outcome",
}  # fmt: skip
_POPULATION = re.compile(
    r"(?:^|\b)(?:in|for|among) (?:an? |the |my |this |these )?(?P<who>(?:(?!in |for |of )[\w-]+ ){0,4}?"
    r"(?:patients?|people|persons?|adults?"
    r"|children|child|infants?|women|woman|men|man|inpatients?|smokers?|individuals)\b[^,?;]*?)"
    r"(?=,|\?|;|$| (?:is|are|does|do|should|can|will|compared|versus|vs\.?|instead|rather|reduces?|improves?|to reduce)"
    r"\b)"
    r"|^(?:in|for) (?P<with>[^,?]{3,80}),",
    re.IGNORECASE,
)
_ZH_POPULATION = re.compile(
    r"(?:对于?|在|针对)?(?P<who>[^，。？,?]{0,40}?(?:患者|病人|成人|儿童|小儿|孕妇|妊娠期妇女|老年人|人群))"
    r"(?:中|里|来说|而言)?[，,]?"
)
_COMPARED = re.compile(
    r"\s*,?\s*\b(?:compared (?:with|to|against)|in comparison (?:with|to)|versus|vs\.?|instead of|rather than"
    r"|better than"
    r"|as effective as|superior to|non-inferior to)\s+",
    re.IGNORECASE,
)
_OR = re.compile(r"\b(?P<one>[\w-]+(?: [\w-]+){0,3}?) or (?P<other>[\w-]+(?: [\w-]+){0,3})", re.IGNORECASE)
_ZH_COMPARED = re.compile(
    r"(?P<a>[^，。？]*?)(?:与|和|跟|较|同)(?P<b>[^，。？与和跟]{1,24}?)(?:相比较?|比较|对比|相对照)"
    r"|(?P<c>[^，。？]+?)(?:还是|而不是|而非|优于)(?P<d>[^，。？]{1,24})"
)
_EFFECT = (
    "reduces?|lowers?|prevents?|improves?|increases?|decreases?|slows?|affects?|shortens?|prolongs?|relieves?|cures?"
)
_OUTCOME = re.compile(
    rf"\s*,?\s*\b(?P<outcome>(?:(?:to|and) )?(?:{_EFFECT})\s+[^?,;]+|(?:effects?|impact|influence)"
    r" (?:on|of [\w -]+? on) [^?,;]+"
    r"|(?:risk|rate|incidence) of [^?,;]+|for (?:the )?(?:[\w-]+ ){1,3}?(?:prevention|prophylaxis|relief|control))",
    re.IGNORECASE,
)
_ZH_OUTCOME = re.compile(
    r"(?:能否|是否能?|能|可以?)?"
    r"(?P<outcome>(?:降低|减少|预防|改善|提高|增加|延缓|缩短|减轻|避免|影响)[^，。？?吗]+)"
)
_LEAD = re.compile(
    r"^(?:please )?(?:what(?: is| are| was)?|which|how(?: much| many| long| often| should| do| does| can)?|when"
    r"|should|does|do"
    r"|did|is|are|can|could|would|will|may|must|we|i|one|it|there|the|a|an|to|be|use of|using|use|give|given"
    r"|giving|start"
    r"|started|add|added|recommended|best|in|for|of|any|evidence|that)\b[\s,]*",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"[\s,]*\b(?:be|used?|given|started|recommended|in|for|the|an?|and|to|of|it|is|with|on|as|her|him|them"
    r"|continued?|stopped|safe|effective|appropriate|indicated|take|taken|receive|have)$",
    re.IGNORECASE,
)
_ZH_FILLER = re.compile(
    r"是否(?:应该?|需要|可以|能)?|能否|能不能|应该?不应该?|可不可以|应该?(?:如何|怎样|怎么)?|如何|怎样|怎么|可以"
    r"|需要|请问"
    r"|什么时候|是?什么|哪些|哪种|是?多少|几|是$"
    r"|吗|呢|[？?。，,]|首选|使用|给予|采用|选择|进行|^用|^对|^的|的$"
)
# "Which dose of apixaban is right in atrial fibrillation": the adjective asks, and what follows is the population.
_RIGHT = re.compile(
    r"(?P<what>(?:what|which|how) .+?) (?:is|are) (?:right|correct|best|appropriate|recommended|suitable"
    r"|safe|usual|needed)"
    r"(?: (?:in|for) (?P<who>.+))?",
    re.IGNORECASE,
)
_MODAL = re.compile(r"\b(?:should|can|could|would|will|may|must)\b", re.IGNORECASE)
_PATIENT = re.compile(
    r"(?:\b(?:in|for|of|with|to) )?\b(?:(?:this|the|my|our) (?:patient|man|woman|lady|gentleman|child|boy|girl)"
    r"|she|he|her|his|him)\b",
    re.IGNORECASE,
)
_ZH_PATIENT = re.compile(r"(?:该|这位|此|本|这个|这名)(?:患者|病人|孩子|老人|孕妇)|他|她")
# Words that ask or that fit anybody: sources do not repeat them, and a search for them finds less.
_ASKING = frozenset(
    re.findall(
        r"\S+",
        """
        continue continued start started stop stopped use used using give given add added safe safely effective better
        best beneficial appropriate indicated recommended recommendation evidence patient patients people person adult
        adults man woman men women compared versus most first choose
        choice option options need needed treat treated
        """,
    )
)
_ZH_ASKING = re.compile(
    r"继续|使用|服用|应用|加用|开始|停用|安全|有效|患者|病人|成人|人群|降低|减少|改善|合并|[，。？?、]"
)
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
        return " ".join(_ZH_ASKING.sub(" ", plain).split())
    return " ".join(dict.fromkeys(word for word in content_words(plain) if word not in _ASKING))
