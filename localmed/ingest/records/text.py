"""A record in prose, English or Chinese: what is read of it, each entry with the words that it was read from.

- *Problems* and *allergies*: lists under their headings, and explicit cues ("history of", "allergic to", 对…过敏).
- *Medicines*: those of our table wherever they are named, in a list of medicines, behind "takes" or the like, or with
  an amount. One that is named otherwise, or in a sentence that may deny or stop it, plan it or speak of somebody else,
  is kept as *named* only, so that nobody is said to take it.
- *Results*, age, sex and pregnancy, where no relative is spoken of.

Rules that would rather miss an entry than take one that the record denies. Not covered: an illness that prose merely
mentions, family history, procedures, abbreviations of one's own. Time is linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from localmed.clinical import measures, medicines
from localmed.domain import Message, message
from localmed.domain.patient import EntryKind, Measured, PatientRecord, RecordEntry
from localmed.ingest.records.identifiers import one_patient, struck
from localmed.ingest.records.parts import ENTRY_CHARACTERS, entries, measure_name, newest
from localmed.language import aligned, clean, detect, fold

TEXT_CHARACTERS = 20_000  # of the prose kept for a model to read
ITEM_WORDS = 8  # of an English entry; a longer one is a sentence
ITEM_CHARACTERS = 24  # of a Chinese one
SENTENCE = 600  # characters; a longer one is cut, and read in parts
WORDS_SHOWN = 160  # characters of the record quoted with an entry
HEADING_INDENT = 8

_HEADINGS = {
    "problems": r"(?:active |chronic )?problems?(?: list)?|(?:past |relevant )?(?:medical|surgical) history|history"
    r"|pmhx?|diagnos[ei]s|comorbidit(?:y|ies)|conditions|既往史|既往病史|诊断|初步诊断|入院诊断|出院诊断|基础疾病|合并症",
    "medications": r"(?:current |home |regular )?(?:medications?|medicines?|drugs|meds)"
    r"|用药史|目前用药|当前用药|长期用药|用药|药物",
    "allergies": r"(?:drug |medication |known )?allerg(?:y|ies)|过敏史|药物过敏史?|过敏",
    "family": r"family history|家族史",
    "plan": r"plan|recommendations?|治疗计划|处理|建议",
    "": r"social history|chief complaint|presenting complaint|history of present(?:ing)? illness|hpi"
    r"|examination|physical examination|vital signs|vitals|results|labs?|laboratory|investigations"
    r"|assessment|impression|review of systems|name|sex|gender|age|dob|主诉|现病史|个人史|婚育史|月经史"
    r"|体格检查|查体|辅助检查|化验|检验|检查|治疗|姓名|性别|年龄",
}
_START = r"(?:^|(?<=[.。;；\n]))"
_STARTS = {"allergies": r"(?:^|(?<=[.。;；\n\s,，]))"}  # of a line or sentence; an allergy is read within one as well
_HEADING = re.compile(
    "|".join(
        rf"(?P<{name or 'other'}>{_STARTS.get(name, _START)}[ \t]{{0,{HEADING_INDENT}}}"
        rf"(?:#+ {{0,4}}|\d{{1,2}}[.)、] {{0,4}})?(?:{pattern})[ \t]{{0,4}}(?:[:：]|\n))"
        for name, pattern in _HEADINGS.items()
    ),
    re.IGNORECASE,
)
_SENTENCE = re.compile(rf"(?:[^.;。；\n]|\.(?=\d)){{1,{SENTENCE}}}")
_ITEM = re.compile(r"(?:[^,，、;；\n]|(?<=\d),(?=\d))+")
_AND = re.compile(r"\band\b|和|及", re.IGNORECASE)
_LEAD = re.compile(
    r"[\s\-*•·]*(?:\d{1,2}[.)、]\s*)?(?:(?:of|an?|the|that of|includes?)\s+|既往|曾|含|为|有|患|：|:)*", re.IGNORECASE
)

# What a sentence may say of somebody or something else. Searched before an entry, or in its own clause.
_DENIED = re.compile(
    r"\b(?:no|not|nor|den(?:y|ies|ied|ying)|without|negative|never|none|nil|nkd?a|unknown|excluded|free of|avoid\w*"
    r"|declin\w+|refus\w+|tolerat\w+|possible|probable|suspected|unremarkable)\b|\?|rule[sd]? out"
    r"|否认|未|无|没有|不|非|排除|待排|可疑|可能|疑似|拒绝|避免|禁|忌",
    re.IGNORECASE,
)
_STOPPED = re.compile(  # anywhere in the sentence
    r"\b(?:stop\w*|discontinu\w*|ceas\w+|held|hold|withh\w+|omit\w*|suspend\w*|no longer|previous\w*|former\w*|prior"
    r"|past|used to|was on|were on|had been|until|ago|last (?:year|month)|completed|finished|intoleran\w*)\b"
    r"|停|暂|曾|既往|以前|过去|换用|改用",
    re.IGNORECASE,
)
_PLANNED = re.compile(
    r"\b(?:consider\w*|plan\w*|would|should|might|could|recommend\w*|suggest\w*|advis\w+|if|trial|wish\w*|wants?"
    r"|targets?|goals?)\b|拟|计划|建议|准备|考虑|将|若|如果|目标",
    re.IGNORECASE,
)
_RELATIVE = re.compile(
    r"\b(?:father|mother|parents?|brothers?|sisters?|siblings?|sons?|daughters?|uncles?|aunts?|grand\w+|cousins?|wife"
    r"|husband|partner|family|relatives?|neighbou?rs?)(?:['’]s)?\b"
    r"|父|母|兄|弟|姐|妹|哥|祖|外公|外婆|爷爷|奶奶|家族|家属|儿子|女儿|丈夫|妻|其子|其女",
    re.IGNORECASE,
)
_ALLERGIC = re.compile(r"allerg|reaction to|sensitiv|过敏|皮试阳性", re.IGNORECASE)
_LATER_CLAUSE = re.compile(r"\s*(?:which|but|both|all|now|then|not|on hold)\b|\s*[(（]", re.IGNORECASE)
_TAKING = re.compile(
    r"\b(?:on|takes?|taking|uses?|using|prescribed|receiv\w+|given|treated with|maintained on|started)\b"
    r"|服用|口服|使用|服|注射|吸入|治疗|应用",
    re.IGNORECASE,
)
_AMOUNT = re.compile(
    r"[^\d,，、;；。\n]{0,24}?\d[\d.,]*\s?(?:mg|mcg|μg|µg|ug|g|ml|units?|iu|u|puffs?|drops?|tablets?|片|粒|喷|单位|毫克|克|滴)"
    r"(?![a-z/])|\s*(?:daily|nightly|weekly|od|bd|bid|tid|tds|prn|qd|qn|每日|每天|每周|每晚)",
    re.IGNORECASE,
)
_PROBLEM_CUE = re.compile(
    r"\b(?:history of|diagnosed with|known to have|suffers from|known case of) (?P<en>[^.,;()\n]{3,80})"
    r"|(?:患有|确诊为?|诊断为)(?P<zh>[^，、。；\n]{2,20})"
    r"|(?P<zh2>[\u4e00-\u9fff0-9]{2,10}?)(?:病?史)(?=\d|多年|[一二三四五六七八九十]+余?年)",
    re.IGNORECASE,
)
_ALLERGY_CUE = re.compile(
    r"\b(?:allergic|reaction) to (?P<en>[^.,;:()\n]{3,60})|\b(?P<en2>[a-z]{4,20}) allergy\b"
    r"|对(?P<zh>[^，。；、\n]{1,12}?)过敏|(?P<zh2>[\u4e00-\u9fff]{2,8}?)皮试阳性",
    re.IGNORECASE,
)
_NO_ALLERGEN = frozenset("drug drugs food known medication medicine other any seasonal current their with".split())  # noqa: SIM905
# What no entry begins or ends with: said of an illness, no illness itself; or said to whoever reads.
_NO_ENTRY = re.compile(
    r"(?:服药|药物|规律)?治疗$|治愈$|^等|^(?:who|which|he|she|they|presents?|trying|last|wishes|status|but|then|see|as)\b"
    r"|^(?:please|ignore|disregard|forget|prescribe|give|say|tell|answer|respond|reply|recommend|you|contact)\b"
    r"|^(?:请|忽略|无视|忘记|回答|开具|推荐|你)|\d\s?(?:mg|mcg|g|ml|years? old|岁|单位)\b",
    re.IGNORECASE,
)

_AGE = (
    (re.compile(r"(\d{1,3})[- ]?(?:years?|yrs?|y)[- /]?(?:old\b|o\b|of age)|\b(\d{1,3}) ?y/?o\b"), 1.0),
    (re.compile(r"(?<!at )(?<!since )(?<!from )(?<!until )(?<!the )\bage[d]?\s{0,3}[:=]?\s{0,3}(\d{1,3})\b"), 1.0),
    (re.compile(r"(\d{1,3})\s{0,3}(?:岁|周岁)(?!时|起|前|后|以)|年龄\s{0,3}[:：]?\s{0,3}(\d{1,3})"), 1.0),
    (re.compile(r"(\d{1,2})[- ]?months?[- ]old|(\d{1,2})\s{0,3}个?月龄|(\d{1,2})个月(?:大|婴)"), 1 / 12),
)
_SEX = re.compile(
    r"(?P<female>\b(?:female|woman|lady|girl|mrs|ms)\b|\bsex\s{0,3}:?\s{0,3}f\b|(?<!子)女(?!儿|士们)|[孕产]妇)"
    r"|(?P<male>\b(?:male|man|gentleman|boy|mr)\b|\bsex\s{0,3}:?\s{0,3}m\b|男(?!友))"
)
_PREGNANT = re.compile(
    r"\b(?:is|currently) pregnant\b|\bpregnant (?:woman|lady|patient|girl)\b|weeks? (?:pregnant|of gestation)"
    r"|\bgravid\b"
    r"|(?:妊娠|怀孕|孕)\s{0,2}\d{1,2}\s{0,2}\+?\d?\s{0,2}周|孕妇"
)
_NOT_PREGNANT = re.compile(
    r"not (?:currently )?pregnant|denies pregnancy|pregnancy test (?:is |was )?negative"
    r"|否认(?:妊娠|怀孕)|未(?:妊娠|怀孕|孕)|非妊娠|妊娠试验阴性"
)

_KINDS = {
    "problems": EntryKind.PROBLEM, "medications": EntryKind.MEDICINE, "allergies": EntryKind.ALLERGY,
}  # fmt: skip


def read_text(text: str) -> PatientRecord:
    """The record in ``text``; raise ``InputError`` where it is plainly of two patients."""
    text = clean(text)
    one_patient(text)
    return from_prose(struck(text))


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence ``start:end`` and the list (or "family", "plan") that it stands in; "" for none."""

    start: int
    end: int
    section: str


class _Prose:
    """A record's text, cut into sentences once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.folded = fold(aligned(text))
        self.sentences = list(_sentences(text))
        self._starts = [sentence.start for sentence in self.sentences]

    def at(self, place: int) -> _Sentence:
        """The sentence that holds ``place``."""
        return self.sentences[max(0, bisect_right(self._starts, place) - 1)]

    def entry(self, kind: EntryKind, start: int, end: int) -> RecordEntry:
        """An entry that was read at ``start:end``, with the sentence around it as its words."""
        sentence = self.at(start)
        first = min(start, max(sentence.start, start - WORDS_SHOWN // 2))
        last = max(end, min(sentence.end, first + WORDS_SHOWN))
        words = " ".join(self.text[first:last].split())
        return RecordEntry(kind, " ".join(self.text[start:end].split())[:ENTRY_CHARACTERS], words, start, end)

    def doubtful(self, start: int, end: int, listed: bool = False) -> bool:
        """Whether the sentence around may deny, stop or plan what stands at ``start:end``, or be about another.

        In a list of illnesses (``listed``) what follows a comma is about the next one.
        """
        sentence = self.at(start)
        whole, before = self.text[sentence.start : sentence.end], self.text[sentence.start : start]
        after = self.text[end : sentence.end]
        own, _, later = after.replace("，", ",").partition(",")
        if not listed and (_LATER_CLAUSE.match(later) or detect(whole) == "zh"):
            own += later
        around = f"{before}\n{own}"
        cues = (_DENIED, _PLANNED, _RELATIVE)
        return (
            sentence.section in ("family", "plan")
            or bool(_STOPPED.search(whole))
            or any(cue.search(around) for cue in cues)
        )


def from_prose(text: str, as_of: str = "") -> PatientRecord:
    """The record in prose that names nobody."""
    prose = _Prose(text)
    results, told = newest(_results(prose, as_of), detect(text))
    found = [
        *_age(prose), *_sex(prose), *_pregnancy(prose), *_problems(prose), *_allergies(prose),
        *_medicines(prose, results), *(_result(prose, result) for result in results),
    ]  # fmt: skip
    once = tuple({(entry.kind, fold(entry.text)): entry for entry in reversed(found)}.values())[::-1]
    lists: dict[str, tuple[str, ...]] = {}
    notes: list[Message] = []
    for name, kind in _KINDS.items():
        lists[name], note = entries((entry.text for entry in once if entry.kind is kind), name)
        notes += note
    if not once:
        notes.append(message("record.nothing"))
    if len(text) > TEXT_CHARACTERS:
        notes.append(message("record.text_cut", kept=TEXT_CHARACTERS, characters=len(text)))
    sex = next((entry.text for entry in once if entry.kind is EntryKind.SEX), "")
    pregnant = next((entry.text == "yes" for entry in once if entry.kind is EntryKind.PREGNANCY), None)
    return PatientRecord(
        problems=lists["problems"],
        medications=lists["medications"],
        allergies=lists["allergies"],
        language=detect(text),
        age=next((float(entry.text) for entry in once if entry.kind is EntryKind.AGE), None),
        sex=sex,
        pregnant=None if sex == "male" else pregnant,
        none_of=_none_of(prose, lists),
        results=results,
        text=text[:TEXT_CHARACTERS],
        as_of=as_of,
        entries=tuple(entry for entry in once if not (sex == "male" and entry.kind is EntryKind.PREGNANCY)),
        notes=(*notes, *told),
    )


# --- sentences and lists ----------------------------------------------------------------------------------------------


def _sentences(text: str) -> Iterator[_Sentence]:
    """Every sentence, headings apart. A list ends with its sentence, or where it begins on a new line, with a blank
    one.
    """
    place, section, block = 0, "", False
    for mark in (*_HEADING.finditer(text), None):
        for match in _SENTENCE.finditer(text, place, mark.start() if mark else len(text)):
            blank = "\n\n" in text[place : match.start()].replace(" ", "")
            if section and (blank or not (block or _goes_on(text, match, section))):
                section = ""
            if match[0].strip():
                yield _Sentence(*match.span(), section)
            place = match.end()
        if mark:
            place, block = mark.end(), mark[0].endswith("\n") or text[mark.end() : mark.end() + 1] == "\n"
            section = mark.lastgroup or ""
            section = "" if section == "other" else section


def _goes_on(text: str, match: re.Match[str], section: str) -> bool:
    """Whether a sentence belongs to the list before it: it follows a heading or a semicolon; of the family's and of
    plans the whole line does.
    """
    if section in ("family", "plan"):
        return "\n" not in text[max(0, match.start() - 1) : match.start()]
    before = text[max(0, match.start() - 2) : match.start()].rstrip(" \t")
    return before[-1:] in (":", "：", ";", "；")


def _items(prose: _Prose, section: str) -> Iterator[tuple[int, int]]:
    """The entries of the lists of ``section``, ``start:end``, whatever they say."""
    for sentence in prose.sentences:
        if sentence.section != section:
            continue
        for match in _ITEM.finditer(prose.text, sentence.start, sentence.end):
            place = match.start()
            for end in (*(found.start() for found in _AND.finditer(match[0])), len(match[0])):
                start = _LEAD.match(prose.text, place, match.start() + end)
                assert start is not None  # it matches nothing as well
                stripped = prose.text[start.end() : match.start() + end].rstrip(" \t.。")
                if stripped.strip():
                    yield start.end(), start.end() + len(stripped)
                joint = _AND.match(match[0], end)
                place = match.start() + (joint.end() if joint else end)


def _is_entry(text: str) -> bool:
    if _NO_ENTRY.search(text) or not re.search(r"[^\W\d_]", text):
        return False
    return len(text) <= ITEM_CHARACTERS if detect(text) == "zh" else len(text.split()) <= ITEM_WORDS


def _problems(prose: _Prose) -> Iterator[RecordEntry]:
    spans = list(_items(prose, "problems"))
    for match in _PROBLEM_CUE.finditer(prose.text):
        if prose.at(match.start()).section != "problems":
            spans.append(match.span(next(name for name, text in match.groupdict().items() if text)))
    for start, end in spans:
        text = prose.text[start:end].rstrip()
        other = _ALLERGIC.search(text) or _DENIED.search(text) or medicines.mentions(text)
        if _is_entry(text) and not other and not prose.doubtful(start, start + len(text), listed=True):
            yield prose.entry(EntryKind.PROBLEM, start, start + len(text))


def _allergies(prose: _Prose) -> Iterator[RecordEntry]:
    spans = list(_items(prose, "allergies"))
    for match in _ALLERGY_CUE.finditer(prose.text):
        name = next(name for name, text in match.groupdict().items() if text)
        if fold(match[name]) not in _NO_ALLERGEN:
            spans.append(match.span(name))
    for mention in medicines.mentions(prose.folded):
        if prose.folded.startswith("过敏", mention.end):
            spans.append((mention.start, mention.end))
    for start, end in spans:
        text = prose.text[start:end].rstrip()
        sentence = prose.at(start)
        before = prose.text[sentence.start : start] + text
        denied = _DENIED.search(before) or _RELATIVE.search(before) or sentence.section == "family"
        if _is_entry(text) and not denied:
            yield prose.entry(EntryKind.ALLERGY, start, start + len(text))


def _medicines(prose: _Prose, results: tuple[Measured, ...]) -> Iterator[RecordEntry]:
    """Every medicine that is named: as taken where something says so, else as named only."""
    measured = {place for result in results for place in range(result.start, result.end)}
    for mention in medicines.mentions(prose.folded):
        sentence = prose.at(mention.start)
        if mention.start in measured or sentence.section == "allergies":
            continue
        if _ALLERGIC.search(prose.text, sentence.start, sentence.end):
            continue
        before = prose.text[sentence.start : mention.start]
        amount = _AMOUNT.match(prose.text, mention.end, sentence.end)
        taken = sentence.section == "medications" or amount or _TAKING.search(before)
        item = _ITEM.match(prose.text, mention.start, sentence.end)
        end = item.end() if item else mention.end
        joint = _AND.search(prose.text, mention.end, end)
        end = mention.start + len(prose.text[mention.start : joint.start() if joint else end].rstrip())
        if taken and not prose.doubtful(mention.start, mention.end):
            yield prose.entry(EntryKind.MEDICINE, mention.start, end)
        elif sentence.section != "family":
            yield prose.entry(EntryKind.NAMED, mention.start, mention.end)
    for start, end in _items(prose, "medications"):
        amount = _AMOUNT.search(prose.text, start, end)
        if amount and not medicines.mentions(prose.folded[start:end]) and not prose.doubtful(start, end):
            yield prose.entry(EntryKind.MEDICINE, start, end)


def listed(name: str, text: str) -> list[str]:
    """The entries of the list ``name`` (problems, medications, allergies) that ``text`` without a heading is."""
    found: tuple[str, ...] = getattr(from_prose(f"{name}: {text}"), name)
    return list(found)


def _none_of(prose: _Prose, lists: dict[str, tuple[str, ...]]) -> frozenset[str]:
    """The lists of which their own heading says that there is nothing."""
    denied = {
        sentence.section
        for sentence in prose.sentences
        if sentence.section in lists and _DENIED.search(prose.text, sentence.start, sentence.end)
    }
    return frozenset(name for name in denied if not lists[name])


# --- the patient and results ------------------------------------------------------------------------------------------


def _of_another(prose: _Prose, start: int) -> bool:
    sentence = prose.at(start)
    return sentence.section == "family" or bool(_RELATIVE.search(prose.text, sentence.start, start))


def _age(prose: _Prose) -> Iterator[RecordEntry]:
    """The first age that is said of nobody else: in months where no years are."""
    for pattern, scale in _AGE:
        for found in pattern.finditer(prose.folded):
            value = float(next(group for group in found.groups() if group)) * scale
            if not _of_another(prose, found.start()) and value < measures.by_name("age").plausible[1]:
                entry = prose.entry(EntryKind.AGE, *found.span())
                yield RecordEntry(EntryKind.AGE, f"{round(value, 1):g}", entry.words, *found.span())
                return


def _sex(prose: _Prose) -> Iterator[RecordEntry]:
    for found in _SEX.finditer(prose.folded):
        if not _of_another(prose, found.start()):
            entry = prose.entry(EntryKind.SEX, *found.span())
            yield RecordEntry(EntryKind.SEX, found.lastgroup or "", entry.words, *found.span())
            return


def _pregnancy(prose: _Prose) -> Iterator[RecordEntry]:
    """Denied or affirmed, where only one of the two is said, and not of somebody else or another time."""
    denied, affirmed = _NOT_PREGNANT.search(prose.folded), _PREGNANT.search(prose.folded)
    found = denied or affirmed
    if found and not (denied and affirmed and not _overlap(denied, affirmed)):
        sentence = prose.at(found.start())
        whole = prose.text[sentence.start : sentence.end]
        doubtful = _STOPPED.search(whole) or _of_another(prose, found.start())
        if not doubtful and (denied or not (_DENIED.search(whole) or _PLANNED.search(whole))):
            entry = prose.entry(EntryKind.PREGNANCY, *found.span())
            yield RecordEntry(EntryKind.PREGNANCY, "no" if denied else "yes", entry.words, *found.span())


def _overlap(one: re.Match[str], other: re.Match[str]) -> bool:
    return one.start() < other.end() and other.start() < one.end()


def _results(prose: _Prose, as_of: str) -> Iterator[Measured]:
    for result in measures.measured(prose.folded, as_of):
        sentence = prose.at(result.start)
        before = prose.text[sentence.start : result.start]
        if not _of_another(prose, result.start) and not _PLANNED.search(before) and sentence.section != "plan":
            yield result


def _result(prose: _Prose, result: Measured) -> RecordEntry:
    name = measure_name(result, detect(prose.text))
    words = prose.entry(EntryKind.RESULT, result.start, result.end).words
    return RecordEntry(EntryKind.RESULT, f"{name}: {result.written}", words, result.start, result.end)
