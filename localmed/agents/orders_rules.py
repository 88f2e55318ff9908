"""The roles of a medical order without a language model: terms and questions by rule, explanations by quotation.

A term is explained by the sentences that read like its definition: under a heading that is its name, or beginning with
it, said of it ("is", "means", "lowers"), the sources in the order in which they were given (leaflets first). A sentence
that only mentions the term explains nothing, and a table's row is a list of doses: neither is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from localmed import language
from localmed.agents.asking import Draft
from localmed.agents.extractive import Candidate, quotation
from localmed.agents.order_abbreviations import usual_meaning
from localmed.agents.order_terms import terms
from localmed.agents.orders import (
    MEDICAL_TERMS,
    PLAIN_ORDER,
    RETRIEVAL_QUESTION,
    TERM_EXPLANATION,
    TERMS,
    OrderInput,
    OrderTerm,
    PlainInput,
    RetrievalInput,
    TermInput,
    without_identity,
)
from localmed.agents.restating import plain_line
from localmed.agents.roles import Rules
from localmed.domain import Evidence, Passage, SearchFilter, Statement
from localmed.library.graph import Graph
from localmed.library.lexical import LexicalIndex
from localmed.library.terms import folded

SENTENCES = 2  # that explain a term
LONGEST = 320  # characters of a sentence that explains; a longer one is no plain explanation
ENOUGH = 2.0  # points: said of the term, or right under its name
REMEMBERED = 2000  # names asked of the graph and the library, remembered for the same library
LOOKED_AT = 10  # passages whose headings are read for one name

_DEFINES = re.compile(
    r"^\W*(?:\([^)]*\)|,[^,]{0,40},)?\s*(?:is|are|means?|refers?|stands? for|lowers?|helps?|treats?|prevents?"
    r"|relieves?|shows?"
    r"|measures?|looks?|works?|makes?|can|tells?|thins?|reduces?|opens?)\b"
    r"|^[（(]?[^）)，。]{0,20}[）)]?(?:是|指|就是|即|用于|用来|用在|可以|能够|能|为)"
)
_NO_NAMES = frozenset(
    """
    notice about this leaflet what it does how to take side effects checks when stop dose doses interactions storage
    reference range critical results sample interpretation assessment treatment diagnosis follow up summary introduction
    prevention background references education medicine medicines department floor telephone patient information
    """.split()  # noqa: SIM905  (headings of ours and of most leaflets, which name nothing)
)


class OrderRules:
    """The roles of a medical order by rule, over one library."""

    def __init__(
        self, graph: Graph, lexical: LexicalIndex, expand: Callable[[str], Mapping[str, str] | None] = lambda _: None
    ) -> None:
        """``graph`` and ``lexical`` know names; ``expand`` finds the abbreviations that a text spells out."""
        self._graph, self._lexical, self._expand = graph, lexical, expand
        self._known = lru_cache(REMEMBERED)(self._is_name)

    def rules(self) -> Rules:
        """The roles it serves."""
        return {
            MEDICAL_TERMS.name: self.terms,
            PLAIN_ORDER.name: plain,
            TERM_EXPLANATION.name: explain,
            RETRIEVAL_QUESTION.name: retrieval_question,
        }

    def terms(self, given: OrderInput) -> tuple[OrderTerm, ...]:
        """The terms of an order, exactly as written."""
        spelled = self._expand(given.order) if "(" in given.order or "（" in given.order else None
        return tuple(terms(given.order, self._known, spelled)[:TERMS])

    def _is_name(self, name: str) -> bool:
        """Whether the graph, or a title, heading or row of the library, is ``name``."""
        if any(matched.kind in ("name", "exact", "abbreviation") for _, matched in self._graph.find(name)):
            return True
        wanted = folded(name)
        if set(wanted.split()) <= _NO_NAMES or not self._lexical.holds(name):
            return False
        found = self._lexical.search_all([name], LOOKED_AT, SearchFilter(), 4.0)
        passages = self._lexical.passages([each for each, _, _ in found]).values()
        return any(wanted in names_of(passage) for passage in passages)


def names_of(passage: Passage) -> frozenset[str]:
    """What a passage is about, folded: its title and headings, also without a bracket or what stands before a colon,
    and the first cell of each row of a table.
    """
    named = [passage.title, *passage.headings]
    if passage.table:
        named += [row.partition(";")[0] for row in passage.text.splitlines()]
    return frozenset(folded(part) for each in named for part in _spellings(each) if part.strip())


def _spellings(heading: str) -> Iterator[str]:
    """A heading whole, and each name it gives: "Laboratory guide: INR", "Full blood count (CBC)", "血常规（CBC）"."""
    yield heading
    for part in re.split(r"[:：(（)）/、,]", heading):
        yield part.strip(" ?？.。")


def plain(given: PlainInput) -> tuple[str, ...]:
    """Each line in plain words, "" where nothing plain survives the check."""
    return tuple(plain_line(line, given.language) for line in given.lines)


# --- explanations -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sentence:
    evidence: Evidence
    place: int
    start: int
    end: int
    points: float


def explain(given: TermInput) -> Draft:
    """The sentences that read like the term's definition, verbatim; none where no source explains it."""
    names = [each for each in dict.fromkeys((given.term, *given.names)) if each]
    found = sorted(_sentences(given, names), key=lambda each: (-each.points, each.place, each.start))
    if not found or found[0].points < ENOUGH:
        return Draft()
    best = found[0]
    follows = (each for each in found if each.evidence is best.evidence and each.points >= ENOUGH and each is not best)
    chosen = [best, *follows][:SENTENCES]
    return Draft(tuple(_quoted(each) for each in sorted(chosen, key=lambda each: each.start)))


def _quoted(sentence: _Sentence) -> Statement:
    return quotation(Candidate(sentence.evidence, sentence.place, sentence.start, sentence.end, 0.0, frozenset()))


def _sentences(given: TermInput, names: list[str]) -> Iterator[_Sentence]:
    for place, each in enumerate(given.evidence):
        if each.passage.table:
            continue
        under = _under(each.passage, names)
        for start, end in language.sentences(each.passage.text):
            if end - start <= LONGEST and not _NOTICE.search(each.passage.text[start:end]):
                points = under + _said_of(each.passage.text[start:end], names) - 0.1 * place
                yield _Sentence(each, place, start, end, points - (0.001 * start))


_NOTICE = re.compile(r"not for clinical use|不得用于临床", re.IGNORECASE)


def _under(passage: Passage, names: list[str]) -> float:
    """Whether the nearest heading, or the title where there is none, is the term's name."""
    nearest = passage.headings[-1] if passage.headings else passage.title
    return 3.0 if {folded(each) for each in _spellings(nearest)} & {folded(each) for each in names} else 0.0


def _said_of(sentence: str, names: list[str]) -> float:
    """Whether a sentence begins with the term and says what it is."""
    for name in names:
        found = re.search(
            rf"(?<![\w]){re.escape(name)}" if name.isascii() else re.escape(name), sentence, re.IGNORECASE
        )
        if found and found.start() <= 24:
            return 2.5 if _DEFINES.match(sentence[found.end() :].lstrip("sS")) else 0.5
    return 0.0


def names_for(term: OrderTerm, wanted: str) -> tuple[str, ...]:
    """What else a term of an order may be called in a source: its usual meaning, and itself without its form."""
    meaning = usual_meaning(term.text, wanted)
    short = _FORM.sub("", term.text).strip()
    last = term.text.split()[-1] if " " in term.text else ""
    return tuple(each for each in dict.fromkeys((meaning, short, last)) if each and each != term.text)


_FORM = re.compile(
    r"\s+(?:tablets?|capsules?|ointment|cream|inhaler|nasal inhaler|spray|drops|injections?|patch|syrup|er|xr|sr|la"
    r"|hcl)$"
    r"|(?:缓释片|肠溶片|分散片|片|软胶囊|胶囊|注射液|颗粒|口服液|混悬液|糖浆|软膏|乳膏|滴眼液|气雾剂|栓)$",
    re.IGNORECASE,
)


# --- questions --------------------------------------------------------------------------------------------------------

# What a question may mean without naming it, and the kind of term that is put in its place.
_THIS = r"\b(?:this|that|the|my|these|those)"
_DUMMY = r"(?! (?:safe|ok|okay|possible|normal|necessary|dangerous|true|all right|bad|good))"
_MEANT: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (re.compile(rf"{_THIS} (?:disease|condition|illness|problem|diagnosis|disorder)\b", re.I), ("condition",)),
    (re.compile(rf"{_THIS} (?:medicine|medication|drug|tablet|pill|capsule)s?\b", re.I), ("medicine",)),
    (re.compile(rf"{_THIS} (?:test|exam|examination|scan|procedure|operation|surgery|treatment)s?\b", re.I),
     ("test", "treatment")),
    (re.compile(rf"\b(?:it|them|they)\b{_DUMMY}", re.I), ("medicine", "test", "treatment", "condition")),
    (re.compile(r"(?:这|该|我的|那)(?:个|种)?(?:疾病|病)"), ("condition",)),
    (re.compile(r"(?:这|该|那)(?:个|种|些)?(?:药物|药)"), ("medicine",)),
    (re.compile(r"(?:这|该|那)(?:个|种|项)?(?:检查|化验|手术|治疗)"), ("test", "treatment", "term")),
    (re.compile(r"它们?|这个"), ("medicine", "test", "treatment", "condition", "term")),
)  # fmt: skip
_INTRODUCED = re.compile(
    r"(?:\bI am|\bI'm|\bmy name is|\bthis is)\s+[A-Z][\w'’-]+(?:\s+[A-Z][\w'’-]+)*[,.]?\s*"
    r"|我(?:叫|是)[\u4e00-\u9fff]{2,4}[，。,]\s*"
)


def retrieval_question(given: RetrievalInput) -> str:
    """The question with what it only points at named, and without names, numbers and dates that identify."""
    known = f"{given.patient}\n{given.order}"
    asked = without_identity(_INTRODUCED.sub("", given.question), known).replace("…", " ")
    asked = " ".join(asked.split())
    if any(folded(each.text) in folded(asked) for each in given.terms if each.kind != "abbreviation"):
        return asked
    for pattern, kinds in _MEANT:
        name = next((each.text for kind in kinds for each in given.terms if each.kind == kind), "")
        if name and pattern.search(asked):
            return pattern.sub(lambda _, name=name: name, asked, count=1)  # type: ignore[misc]
    about = [
        each.text
        for kind in ("medicine", "condition", "test", "treatment")
        for each in given.terms
        if each.kind == kind
    ]
    return f"{asked} ({about[0]})" if about and given.language == "en" else f"{asked}（{about[0]}）" if about else asked
