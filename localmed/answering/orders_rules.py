"""The roles of a medical order without a language model: finds terms by name and quotes definitions.

A term (LINS, medical term extraction agent) is a medicine of the table, or a name of the concept graph or the library
(title, heading, first cell of a table's row), exactly as written, the longest at each place. A term on a line that may
deny or stop it is not explained: reading what a medicine is for would tell the patient to take it. ``WORDS`` and
``NAMED`` bound the look-ups; time is linear in the text.

A definition is a sentence that begins with the term's name and says what it is ("is a", "means", "lowers"), from the
first source that has one (leaflets first). A sentence that only mentions the term, defines another of its family or
gives a dose is none. Plain words need a chat model (``PLAIN_ORDER``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from localmed.answering import orders
from localmed.answering.record import allergens
from localmed.domain import Evidence, Passage, SearchFilter, Statement
from localmed.domain.parts import AllergyPart
from localmed.domain.patient import PatientRecord
from localmed.library.graph import Graph
from localmed.library.lexical import LexicalIndex
from localmed.library.terms import folded
from localmed.text import faithfulness, language, medicines, negation, units
from localmed.text.abbreviations import PERIOD, abbreviations, is_open, meaning
from localmed.text.language import HAN, aligned, detect, fold
from localmed.text.medicines import Mention
from localmed.text.tables import cues

LONGEST = 320  # characters of a sentence that explains; a longer one is no plain explanation
LOOKED_AT = 10  # passages whose headings are searched for one name
WORDS = 5  # of a term's name at most
NAMED = 2_000  # names of one order looked up in graph and library: each takes up to 0.1 ms
SHORTEST = 3  # characters of a name in English, 2 in Chinese

Known = Callable[[str], bool]  # whether graph or library have a name

_WORD = re.compile(rf"[A-Za-z0-9][A-Za-z0-9'’/.]*[A-Za-z0-9]|[A-Za-z0-9]|[{HAN}]+")
_HAN = re.compile(f"[{HAN}]")
_BETWEEN = re.compile(r"[ \t-]?")
_ROW = re.compile(r"[^\n]*\S[^\n]*")

Span = tuple[int, int]

_DEFINES = re.compile(
    r"(?:s|es)?\s*(?:\([^()]{0,80}\)\s*)?(?:in (?:a )?(?:low|high|small) doses? )?"
    r"(?:(?:is|are) (?:an?|the|one|used|also (?:called|known)|another|medicines?|drugs?|tests?|tablets?|injections?)\b"
    r"|(?:means?|refers? to|stands? for|belongs? to|lowers?|thins?|relieves?|treats?|prevents?|measures?|reduces?"
    r"|keeps?|widens?|slows?|shows?|helps?|makes blood|works? by)\b|(?:[:–—]| -)\s+(?:an?|the) )",
    re.IGNORECASE,
)
_CHINESE_DEFINES = re.compile(
    r"\s*(?:[（(][^（()）]{0,40}[）)])?\s*(?:是(?!否)|指|即|属于|用于|用来|能(?!否)|可(?!能|以不)|为)"
)
_TELLS = re.compile(r"(?:please )?(?:tell|ask|phone|call)\b|请?(?:告诉|告知|联系|询问)", re.IGNORECASE)
_HOW_LONG = re.compile(r"\d\s*(?:hours?|minutes?|days?|weeks?|h\b|小时|分钟|天|周)", re.IGNORECASE)
_ARTICLE = re.compile(r"(?:an?|the)\s+", re.IGNORECASE)


def concepts(graph: Graph, text: str) -> tuple[str, ...]:
    """The names of ``text`` that the concept graph has."""
    return tuple(term.text for term in terms(text, lambda name: _is_concept(graph, name)))


def _is_concept(graph: Graph, name: str) -> bool:
    return any(matched.kind in ("name", "exact") for _, matched in graph.find(name))


def is_name(graph: Graph, lexical: LexicalIndex, name: str) -> bool:
    """Whether the graph, or a title, heading or row of the library, is ``name``."""
    if orders.names_nothing(name):
        return False
    if _is_concept(graph, name):
        return True
    if not lexical.holds(name):
        return False
    rows = lexical.search_all([name], LOOKED_AT, SearchFilter(), 4.0)
    passages = lexical.passages([passage_id for passage_id, _, _ in rows]).values()
    return any(folded(name) in names_of(passage) for passage in passages)


def names_of(passage: Passage) -> frozenset[str]:
    """Folded names of a passage: its title and headings, whole and in parts, and the first cell of each table row."""
    named = [passage.title, *passage.headings]
    if passage.table:
        named += [row.partition(";")[0] for row in passage.text.splitlines()]
    return frozenset(folded(part) for heading in named for part in _spellings(heading) if part.strip())


def _spellings(heading: str) -> Iterator[str]:
    """A heading and its parts: "Laboratory guide: INR", "Full blood count (CBC)", "血常规（CBC）"."""
    yield heading
    for part in re.split(r"[:：(（)）/、,，;；]| [-–—] | or |或|又称", heading):
        yield part.strip(" ?？.。")


# --- terms ------------------------------------------------------------------------------------------------------------


def terms(order: str, known: Known = lambda _: False) -> list[orders.OrderTerm]:
    """The terms of ``order``, in order."""
    plain = aligned(order)
    ends = {mention.start: (mention.end, "medicine") for mention in medicines.mentions(plain)}
    taken = bytearray(len(order))
    for start, (end, _) in ends.items():
        taken[start:end] = b"\1" * (end - start)
    for start, end in _named(plain, known):
        if not any(taken[start:end]):
            ends[start] = (end, "term")
    return [orders.OrderTerm(order[start:end], start, end, kind) for start, (end, kind) in sorted(ends.items())]


def _named(text: str, known: Known) -> Iterator[Span]:
    """The longest known name at each place, until ``NAMED`` were looked up."""
    words, place = list(_words(text)), 0
    answers: dict[str, bool] = {}
    while place < len(words) and len(answers) < NAMED:
        runs = [span for span in _runs(text, words, place) if _is_known(text[slice(*span)], known, answers)]
        if runs:
            yield runs[0]
        place += sum(1 for start, _ in words[place : place + WORDS] if start < runs[0][1]) if runs else 1


def _is_known(name: str, known: Known, answers: dict[str, bool]) -> bool:
    least = 2 if _HAN.search(name) else SHORTEST
    key = folded(name)
    if key not in answers:
        meanings = meaning(name, detect(name))
        answers[key] = len(name) >= least and (known(name) or bool(meanings and known(meanings.partition(",")[0])))
    return answers[key]


def _runs(text: str, words: list[Span], first: int) -> Iterator[Span]:
    """The runs of words from ``first`` on without punctuation inside, longest first."""
    last = first
    while last + 1 < min(len(words), first + WORDS) and _BETWEEN.fullmatch(text, words[last][1], words[last + 1][0]):
        last += 1
    for end in range(last, first - 1, -1):
        yield words[first][0], words[end][1]


def _words(text: str) -> Iterator[Span]:
    """English words, and Chinese words by ``rjieba``'s dictionary."""
    for match in _WORD.finditer(text):
        if not _HAN.match(match[0]):
            yield match.span()
            continue
        import rjieba  # lazily: its dictionary takes 0.25 s

        start = match.start()
        for word in rjieba.cut(match[0]):
            yield start, start + len(word)
            start += len(word)


# --- lines ---

# The fluid for a medicine: "in 250 mL sodium chloride 0.9%", "0.9%氯化钠注射液 100ml+头孢曲松".
_FLUID = "sodium chloride"
_IN = re.compile(r"(?:\b(?:in|with)\b|[+加入于])\s*(?:\d[\d.,]*\s*m?l\b)?\s*(?:of\b)?\s*(?:\d[\d.,]*\s*%)?\s*$")
_OWN_DOSE = re.compile(r"\s*\d[\d.,]*\s*m?g\b")  # of a salt that is given itself
_TAKES = re.compile(r"(?:注射液)?\s*\d[\d.,]*\s*ml\s*[+加]")
_NEAR = 40  # characters before the fluid
_STOPPED = re.compile(
    r"\b(?:stop\w*|hold\w*|held|withh\w+|discontinu\w+|cease\w*|omit\w*|dont|cancel\w*)\b|n['’]t\b|\bd/?c(?:['’]?e?d)?\b|停|禁(?!食|饮)|不(?!适|良|超过|规则|断|同|足|明)|勿|忌|避免|别(?=[吃喝用停给打])|取消|无需",
    re.IGNORECASE,
)
_COURSE = re.compile(r"\bthen stop(?=\s*(?:[.,;)]|$))", re.IGNORECASE | re.MULTILINE)  # "5/7 then stop" is a course
_HELD = re.compile(  # at the start of a line, or as a remark at its end
    r"^\W*(?:\d{1,2}[.)、]\s*)?(?:please )?"
    r"(?:(?:stop|hold|withhold|w/h|discontinue|cease|pause|suspend|omit|skip)\b(?! (?:if|when|the|your)\b)"
    r"|暂停|停用|停服|停(?!药后))"
    r"|[-–—:：(（]\s*(?:hold|stop|withhold|omit)\b(?! (?:if|when|for|after)\b)"
    r"|[-–—:：(（,，]\s*(?:now |currently )?(?:stopped|held|on hold|withheld|omitted|discontinued|已停|暂停|停用)"
    r"|\s(?:stopped|held|on hold|已停用?|暂停|停用)\s*$",
    re.IGNORECASE,
)
_LAST = 2  # Chinese characters at the end of a line that may break off
_BLANK = re.compile(r"\n[ \t]*\n")
_REPLACED = re.compile(r"\b(?:chang|switch|replac|swap|instead)\w*|改|换|替", re.IGNORECASE)
_JOINED = re.compile(r"\s*[/+-]\s*")


def lines_of(order: str) -> Iterator[Span]:
    """The lines of an order with words, ``start:end``, trimmed.

    Lines are not split at semicolons: in "STOP: warfarin; digoxin" the second would lose its verb.
    """
    for line in _ROW.finditer(order):
        if any(character.isalpha() for character in line[0]):
            yield _trimmed(order, *line.span())


def _trimmed(order: str, start: int, end: int) -> Span:
    text = order[start:end]
    return start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())


def medicines_of(line: str) -> tuple[str, ...]:
    """The medicines of a line as written. Two names of one, a listed combination ("paracetamol/codeine") and a fluid
    for another medicine count once. Names that may also be measured ("potassium") are not covered.
    """
    text = fold(aligned(line))
    counted: list[Mention] = []
    before = Mention(0, 0, "", (), ())
    for mention in medicines.mentions(text):
        pair = {*before.ingredients, *mention.ingredients}
        joined = _JOINED.fullmatch(text, before.end, mention.start) and medicines.is_combination(pair)
        before = mention
        named = (one for one in counted if _same(mention, one))
        once_more = joined or _is_fluid(text, mention) or any(not _dosed(text, one, mention) for one in named)
        if mention.classes and not once_more:
            counted.append(mention)
    return tuple(line[one.start : one.end] for one in counted)


def is_stopped(order: str, term: orders.OrderTerm) -> bool:
    """Whether the line of ``term`` may stop or deny it."""
    start = order.rfind("\n", 0, term.start) + 1
    line = order[start:].partition("\n")[0]
    apart = f"{line[: term.start - start]} {line[term.end - start :]}"
    for condition in negation.stops_when(apart):  # else it is taken
        apart = apart.replace(condition, " ")
    return bool(
        _STOPPED.search(reaching := _COURSE.sub(" ", f"{above(order, start)} {apart}"))
        or cues("negation", "stopped").search(fold(reaching))
        or (_REPLACED.search(line) and len(medicines_of(line)) > 1)
    )


def holds(line: str, over: str) -> bool:
    """Whether a line, or the heading ``over`` it, plainly stops or pauses something."""
    return bool(_HELD.search(line) or (over.endswith((":", "：")) and _HELD.match(over)))


def above(order: str, start: int) -> str:
    """The text that may apply to the line at ``start``: the heading above it, which ends with a colon, and the last
    word of the line before if that is a denial or condition ("Do not"); "hold" at the end of a line is of that line.
    """
    lines = [line.strip() for line in _BLANK.split(order[:start])[-1].splitlines()]
    heading = next((line for line in reversed(lines) if line.endswith((":", "："))), "")
    last = (lines[-1].split() or [""])[-1] if lines else ""
    broken = last[-_LAST:] if _HAN.search(last) else last
    complete = broken.endswith(("?", "？", ".", "。")) or (negation.speaks_of_stopping(broken) and broken != lines[-1])
    reaches = is_open(broken) and not complete and not meaning(broken, "en")
    return f"{heading} {broken}" if reaches else heading


_OFTEN = re.compile(r"\d a (?:day|week|month)|every .*")
_HOURS = re.compile(r"every (\d+) hour")
_ONCE = re.compile(r"\bonce\b|[一1]\s?次", re.IGNORECASE)  # "daily" alone says no more than that it is for each day
_LIMIT = re.compile(r"\b(?:max\w*|up to|at most|(?:no|not) more than)\b.*|(?:不超过|最多|至多).*", re.IGNORECASE)
_DAILY = "1 a day"
_CLAUSE = re.compile(r"(?:(?!\s[-–—]\s)[^,;，；。、()（）\n.]|\.(?!\s|$))+")
_LASTING = re.compile(
    rf"{PERIOD.pattern}|[x×]\s?\d+|\d\s?(?:days?|weeks?|months?|天|周|日(?!\s?\d?次)|个月)", re.IGNORECASE
)


def disagrees(line: str) -> bool:
    """Whether a line says in two ways how often, without a dose or a length of time between them (a taper has one).

    How often a test is done counts for no medicine: "Warfarin 3 mg od, INR weekly".
    """
    given = _CLAUSE.sub(lambda clause: "" if _is_of_a_test(clause[0]) else clause[0], line)
    stages = _LASTING.sub("\n", units.dose(counted=True).sub(r"\n\g<0>", given)).splitlines()
    return any(len(frequencies(stage)) > 1 for stage in stages)


def _is_of_a_test(clause: str) -> bool:
    """Whether a clause names a test, and beside it nothing but how often."""
    rest = cues("orders", "tests").sub(" ", clause)
    return rest != clause and not any(map(str.isalpha, cues("orders", "often").sub(" ", rest)))


def frequencies(line: str) -> frozenset[str]:
    """How often a line says that something is done, apart from its upper limit; "q6h" and "4 times a day" are one."""
    told = _LIMIT.sub("", line)
    meant = [one.meanings[0] for one in abbreviations(told, "en") if len(one.meanings) == 1]
    by_abbreviation = {name for text in meant for name in _how_often(text)}
    found = by_abbreviation | set(_how_often(told))
    by_day = {name for name in found if name.endswith(("a day", "hour"))} - {_DAILY}
    if by_day and _DAILY not in by_abbreviation and not _ONCE.search(told):
        found.discard(_DAILY)
    return frozenset(found)


def _how_often(text: str) -> Iterator[str]:
    for kind, name in faithfulness.facts(text):
        if kind == "time" and _OFTEN.fullmatch(name):
            hours = int(match[1]) if (match := _HOURS.fullmatch(name)) else 0
            yield f"{24 // hours} a day" if hours and not 24 % hours else name


def _dosed(text: str, one: Mention, other: Mention) -> bool:
    """Whether a dose stands between two different names of one medicine: they are two products."""
    apart = text[one.start : one.end] != text[other.start : other.end]
    return apart and bool(units.dose(counted=True).search(text, one.end, other.start))


def _is_fluid(text: str, mention: Mention) -> bool:
    if mention.ingredients != (_FLUID,) or _OWN_DOSE.match(text, mention.end):
        return False
    return bool(_IN.search(text[max(mention.start - _NEAR, 0) : mention.start]) or _TAKES.match(text, mention.end))


def _same(one: Mention, other: Mention) -> bool:
    """Whether both have the same ingredients, or one is the other's class."""
    if one.ingredients and other.ingredients:
        return one.ingredients == other.ingredients
    return bool(set(one.classes) & set(other.classes))


# --- allergies --------------------------------------------------------------------------------------------------------

_ALLERGIC = re.compile(r"allerg|anaphyla|过敏|皮试阳性", re.IGNORECASE)  # "Can it give me a rash?" tells of none


def allergies(order: str, record: PatientRecord | None, questions: Sequence[str]) -> Iterator[AllergyPart]:
    """The allergies of ``record``, of the ``questions`` or of the order itself that medicines of its lines may meet.

    Of the order's own words only plain ones count: "if you have an allergic reaction, stop" tells of no allergy.
    """
    told = [one for text in (record.text if record else "", *questions) for one in allergens(text)]
    own = [one for one in allergens(order) if not is_open(one[0])]
    lines = [order[slice(*span)] for span in lines_of(order)]
    once = set[tuple[str, ...]]()
    for words, names, _, listed in (*told, *own):
        if names and (listed or _ALLERGIC.search(words)):
            met = medicines.met_by(names, "\n".join(line for line in lines if words not in line and line not in words))
            if met and met not in once:
                once.add(met)
                yield AllergyPart(words, met)


# --- explanations -----------------------------------------------------------------------------------------------------


def definition_of(names: Sequence[str], evidence: Iterable[Evidence]) -> tuple[Statement, ...]:
    """The first sentence that defines a term by one of its ``names``, quoted, with a warning after it; or nothing.

    The first sentence under a heading of that name, below the document's title, counts too (glossaries).
    """
    known = [name for name in dict.fromkeys(names) if name]
    keys = {folded(name) for name in known}
    for piece in evidence:
        passage = piece.passage
        spans = [] if passage.table else list(language.sentences(passage.text))
        heading = next((one for one in passage.headings[-1:] if one != passage.title), "")
        headed = any(folded(part) in keys for part in _spellings(heading))
        for start, end in spans:
            if end - start <= LONGEST and defines(passage.text[start:end], known):
                return (piece.quotation(start, end), *_warning_after(piece, spans, end))
        first = next((span for span in spans if span[1] - span[0] <= LONGEST), None)
        if headed and first:
            told = passage.text[slice(*first)]
            if not (_holds_amount(told) or _of_another(told, heading, known)):
                return (piece.quotation(*first), *_warning_after(piece, spans, first[1]))
        for row in _ROW.finditer(passage.text) if passage.table else ():
            if _explains(row[0], keys):
                return (piece.quotation(*row.span()),)
    return ()


def _warning_after(piece: Evidence, spans: Sequence[Span], end: int) -> tuple[Statement, ...]:
    """The sentence after ``end`` if it warns the patient, or asks to tell somebody, without an amount.

    A sentence on another medicine is passed over, but not on an allergy to it.
    """
    own = medicines.ingredients(piece.passage.text[:end])
    for after in [span for span in spans if span[0] >= end][:2]:
        text = piece.passage.text[slice(*after)]
        if (named := medicines.ingredients(text)) and not named & own and not _ALLERGIC.search(text):
            continue
        told = negation.warns(text) or _TELLS.match(text)
        return (piece.quotation(*after),) if told and len(text) <= LONGEST and not _holds_amount(text) else ()
    return ()


def _explains(row: str, keys: set[str]) -> bool:
    """Whether a glossary row of two columns ("Term: INR; Meaning: ...") explains one of ``keys`` without a dose."""
    cells = [cell.partition(":")[2] or cell.partition("：")[2] or cell for cell in re.split(r"[;；]\s*", row)]
    named = any(folded(part) in keys for part in _spellings(cells[0].strip()))
    return len(cells) == 2 and named and len(row) <= LONGEST and not _holds_amount(row)


def is_for(passage: Passage, order: str) -> bool:
    """Whether the title and headings above a passage name no medicine, or one of the ``order``."""
    named = medicines.ingredients(" ; ".join((passage.title, *passage.headings)))
    return not named or bool(named & medicines.ingredients(order))


def is_entry(passage: Passage, asked: str) -> bool:
    """Whether a passage says what its heading is, as an entry of a dictionary does, and not of a term ``asked``."""
    if passage.table or passage.headings[-1:] in ((), (passage.title,)):
        return False
    names = [part for part in _spellings(passage.headings[-1]) if part]
    first = next(iter(language.sentences(passage.text)), (0, 0))
    meant = any(re.search(rf"(?<![A-Za-z0-9]){re.escape(one)}(?![A-Za-z0-9])", asked, re.IGNORECASE) for one in names)
    return not meant and defines(passage.text[slice(*first)], names)


def defines(sentence: str, names: list[str]) -> bool:
    """Whether a sentence begins with one of ``names`` and defines it without an amount."""
    if _holds_amount(sentence):
        return False
    plain = _without_article(sentence)
    predicates = (plain[len(name) :] for name in names if plain[: len(name)].lower() == name.lower())
    return any(_DEFINES.match(predicate) or _CHINESE_DEFINES.match(predicate) for predicate in predicates)


def _without_article(sentence: str) -> str:
    plain = sentence.lstrip()
    article = _ARTICLE.match(plain)
    return plain[article.end() if article else 0 :].removeprefix("小剂量")


def _holds_amount(text: str) -> bool:
    """Whether ``text`` has a dose or duration: an explanation adds no number to the order."""
    return bool(units.dose(counted=True).search(text) or _HOW_LONG.search(text))


def _of_another(sentence: str, heading: str, names: Sequence[str]) -> bool:
    """Whether a ``sentence`` is about another medicine of its ``heading``: "Heparin is ..." under "Heparin (Clexane)".

    What a class is ("A corticosteroid is ...") is told of its members.
    """
    plain = _without_article(sentence)
    begun = [name for name in (*names, *_spellings(heading)) if name and plain[: len(name)].lower() == name.lower()]
    longest = max(begun, key=len, default="")
    return bool(medicines.ingredients(longest.partition(" (")[0])) and folded(longest) not in map(folded, names)


def names_for(term: orders.OrderTerm, reader_language: str) -> tuple[str, ...]:
    """Other names of a term in sources: the ingredient of a brand, the meaning of an abbreviation."""
    meanings = meaning(term.text, reader_language) if term.text.isascii() else ""
    ingredients = medicines.ingredients(term.text)
    ingredient = medicines.name_in(reader_language, *ingredients) if len(ingredients) == 1 else ""
    names = (meanings.partition(",")[0].partition(" (")[0], ingredient)
    return tuple(name for name in dict.fromkeys(names) if name and folded(name) != folded(term.text))


# --- questions --------------------------------------------------------------------------------------------------------

_INTRODUCED = re.compile(
    r"(?:\bI am|\bI'm|\bmy name is|\bthis is)\s+[A-Z][\w'’-]+(?:\s+[A-Z][\w'’-]+)*[,.]?\s*"
    r"|我(?:叫|是)[\u4e00-\u9fff]{2,4}[，。,]\s*"
)


def retrieval_question(task: orders.RetrievalInput) -> str:
    """The question without identifying names, numbers and dates."""
    question = orders.without_identity(_INTRODUCED.sub("", task.question), f"{task.patient}\n{task.order}")
    return " ".join(question.replace("…", " ").split()).lstrip(" .,;:。，；：")
