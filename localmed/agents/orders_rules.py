"""The roles of a medical order without a language model: terms by name, definitions by quotation, questions as asked.

A term is explained by a sentence that begins with that very name and says what it is ("is a", "means", "lowers"), the
sources in the order in which they were given (leaflets first). A sentence that only mentions the term, or that defines
another of its family, explains nothing, and neither does one that holds a dose. Nothing is restated: ``PLAIN_ORDER``
needs a chat model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from localmed import language
from localmed.agents.asking import Draft
from localmed.agents.extractive import Candidate, quotation
from localmed.agents.order_terms import terms
from localmed.agents.orders import (
    MEDICAL_TERMS,
    RETRIEVAL_QUESTION,
    TERM_EXPLANATION,
    TERMS,
    OrderInput,
    OrderTerm,
    RetrievalInput,
    TermInput,
    without_identity,
)
from localmed.agents.roles import Rules
from localmed.clinical import medicines, units
from localmed.clinical.abbreviations import meaning
from localmed.clinical.tables import listed, table
from localmed.domain import Passage, SearchFilter
from localmed.library.graph import Graph
from localmed.library.lexical import LexicalIndex
from localmed.library.terms import folded

LONGEST = 320  # characters of a sentence that explains; a longer one is no plain explanation
REMEMBERED = 4_000  # names asked of the graph and the library, remembered for the same library
LOOKED_AT = 10  # passages whose headings are read for one name

_DEFINES = re.compile(
    r"(?:s|es)?\s*(?:\([^()]{0,80}\)\s*)?(?:in (?:a )?(?:low|high|small) doses? )?"
    r"(?:(?:is|are) (?:an?|the|one|used|also (?:called|known)|another|medicines?|drugs?|tests?|tablets?|injections?)\b"
    r"|(?:means?|refers? to|stands? for|belongs? to|lowers?|thins?|relieves?|treats?|prevents?|measures?|reduces?"
    r"|keeps?|widens?|slows?|shows?|helps?|makes blood|works? by)\b)",
    re.IGNORECASE,
)
_CHINESE_DEFINES = re.compile(
    r"\s*(?:[（(][^（()）]{0,40}[）)])?\s*(?:是(?!否)|指|即|属于|用于|用来|能(?!否)|可(?!能|以不)|为)"
)
_ARTICLE = re.compile(r"(?:an?|the)\s+", re.IGNORECASE)


class OrderRules:
    """The roles of a medical order by rule, over one library."""

    def __init__(self, graph: Graph, lexical: LexicalIndex) -> None:
        """``graph`` and ``lexical`` know names."""
        self._graph, self._lexical = graph, lexical
        self._known = lru_cache(REMEMBERED)(self._is_name)

    def rules(self) -> Rules:
        """The roles it serves."""
        return {
            MEDICAL_TERMS.name: self.terms,
            TERM_EXPLANATION.name: explain,
            RETRIEVAL_QUESTION.name: retrieval_question,
        }

    def terms(self, task: OrderInput) -> tuple[OrderTerm, ...]:
        """The terms of an order, exactly as written."""
        return tuple(terms(task.order, self._known)[:TERMS])

    def _is_name(self, name: str) -> bool:
        """Whether the graph, or a title, heading or row of the library, is ``name``."""
        key = folded(name)
        if set(key.split()) <= set(listed(table("orders")["no_names"]["en"])):
            return False
        if any(matched.kind in ("name", "exact") for _, matched in self._graph.find(name)):
            return True
        if not self._lexical.holds(name):
            return False
        rows = self._lexical.search_all([name], LOOKED_AT, SearchFilter(), 4.0)
        passages = self._lexical.passages([passage_id for passage_id, _, _ in rows]).values()
        return any(key in names_of(passage) for passage in passages)


def names_of(passage: Passage) -> frozenset[str]:
    """What a passage is about, folded: its title and headings, also without a bracket or what stands before a colon,
    and the first cell of each row of a table.
    """
    named = [passage.title, *passage.headings]
    if passage.table:
        named += [row.partition(";")[0] for row in passage.text.splitlines()]
    return frozenset(folded(part) for heading in named for part in _spellings(heading) if part.strip())


def _spellings(heading: str) -> Iterator[str]:
    """A heading whole, and each name it gives: "Laboratory guide: INR", "Full blood count (CBC)", "血常规（CBC）"."""
    yield heading
    for part in re.split(r"[:：(（)）/、,]", heading):
        yield part.strip(" ?？.。")


def explain(task: TermInput) -> Draft:
    """The first sentence that defines the term, verbatim; none where no source does."""
    names = [name for name in dict.fromkeys((task.term, *task.names)) if name]
    for place, evidence in enumerate(task.evidence):
        text = evidence.passage.text
        for start, end in () if evidence.passage.table else language.sentences(text):
            if end - start <= LONGEST and defines(text[start:end], names):
                return Draft((quotation(Candidate(evidence, place, start, end, 0.0, frozenset())),))
    return Draft()


def defines(sentence: str, names: list[str]) -> bool:
    """Whether a sentence begins with one of ``names`` and says what that is, without an amount."""
    if units.dose(counted=True).search(sentence):
        return False
    plain = _ARTICLE.sub("", sentence.lstrip(), count=1) if _ARTICLE.match(sentence.lstrip()) else sentence.lstrip()
    plain = plain.removeprefix("小剂量")
    predicates = (plain[len(name) :] for name in names if plain[: len(name)].lower() == name.lower())
    return any(_DEFINES.match(predicate) or _CHINESE_DEFINES.match(predicate) for predicate in predicates)


def names_for(term: OrderTerm, reader_language: str) -> tuple[str, ...]:
    """What else a term is called in a source: the ingredient of a brand, what an abbreviation stands for."""
    meanings = meaning(term.text, reader_language) if term.text.isascii() else ""
    ingredients = sorted(medicines.ingredients(term.text)) if reader_language == "en" else []
    names = (meanings.partition(",")[0].partition(" (")[0], *(ingredients if len(ingredients) == 1 else ()))
    return tuple(name for name in dict.fromkeys(names) if name and folded(name) != folded(term.text))


# --- questions --------------------------------------------------------------------------------------------------------

# What a question may mean without naming it, and the kind of term that is put in its place where there is but one.
_THIS = r"\b(?:this|that|the|my|these|those)"
_MEANT: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(rf"{_THIS} (?:disease|condition|illness|problem|diagnosis|disorder)\b", re.IGNORECASE), "condition"),
    (re.compile(rf"{_THIS} (?:medicine|medication|drug|tablet|pill|capsule)s?\b", re.IGNORECASE), "medicine"),
    (re.compile(r"(?:这|该|我的|那)(?:个|种)?(?:疾病|病)"), "condition"),
    (re.compile(r"(?:这|该|那)(?:个|种)?(?:药物|药)"), "medicine"),
)
_INTRODUCED = re.compile(
    r"(?:\bI am|\bI'm|\bmy name is|\bthis is)\s+[A-Z][\w'’-]+(?:\s+[A-Z][\w'’-]+)*[,.]?\s*"
    r"|我(?:叫|是)[\u4e00-\u9fff]{2,4}[，。,]\s*"
)


def retrieval_question(task: RetrievalInput) -> str:
    """The question without names, numbers and dates that identify; "this medicine" is named where there is only one."""
    question = without_identity(_INTRODUCED.sub("", task.question), f"{task.patient}\n{task.order}")
    question = " ".join(question.replace("…", " ").split()).lstrip(" .,;:。，；：")
    for pattern, kind in _MEANT:
        names = {folded(term.text): term.text for term in task.terms if term.kind == kind}
        if len(names) == 1:
            (name,) = names.values()
            question = pattern.sub(name.replace("\\", r"\\"), question, count=1)
    return question
