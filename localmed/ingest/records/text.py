"""A record in prose, English or Chinese: age, sex, pregnancy, and the lists under their headings or cues.

Rules that would rather miss an entry than take one that the record denies ("denies asthma or diabetes", 否认高血压).
What stands under no heading is read for cues only ("history of", "allergic to", "taking", 对…过敏). Not covered: an
illness that prose merely mentions, family history (left out under its heading), abbreviations of one's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from localmed.clinical import measures
from localmed.domain.patient import PatientRecord
from localmed.ingest.records.identifiers import one_patient, struck
from localmed.ingest.records.parts import entries, newest
from localmed.language import clean, detect, fold

BEFORE = 200  # characters before a finding that may say that it is a relative's
TEXT_CHARACTERS = 20_000  # of the prose kept for a model to read
NOTHING = "Nothing was recognised in the record: no age, no sex, no list under a heading, no result"
TEXT_CUT = "A model is shown the first {kept} of {all} characters of the record"

_HEADINGS = {
    "problems": r"(?:active |chronic )?problems?(?: list)?|(?:past |relevant )?(?:medical|surgical) history|history"
    r"|pmhx?|diagnos[ei]s|comorbidit(?:y|ies)|conditions|既往史|既往病史|诊断|初步诊断|入院诊断|出院诊断|基础疾病|合并症",
    "medications": r"(?:current |home |regular )?(?:medications?|medicines?|drugs|meds)"
    r"|用药史|目前用药|当前用药|长期用药|用药|药物",
    "allergies": r"(?:drug |medication |known )?allerg(?:y|ies)|过敏史|药物过敏史?|过敏",
    "": r"family history|social history|chief complaint|presenting complaint|history of present(?:ing)? illness|hpi"
    r"|examination|physical examination|vital signs|vitals|results|labs?|laboratory|investigations"
    r"|plan|assessment|impression|review of systems|name|sex|gender|age|dob|主诉|现病史|个人史|婚育史|月经史|家族史"
    r"|体格检查|查体|辅助检查|化验|检验|检查"
    r"|治疗|处理|姓名|性别|年龄",
}
_START = r"(?:^|(?<=[.。;；\n]))"
_STARTS = {"allergies": r"(?:^|(?<=[.。;；\n\s,，]))"}  # of a line or sentence; an allergy is read within one as well
_HEADING = re.compile(
    "|".join(
        rf"(?P<{name or 'other'}>{_STARTS.get(name, _START)}[ \t]{{0,8}}"
        rf"(?:#+ *|\d+[.)、] *)?(?:{pattern})\s*(?:[:：]|\n))"
        for name, pattern in _HEADINGS.items()
    ),
    re.IGNORECASE,
)
_CUES = {
    "problems": r"(?:history of|diagnosed with|known to have|suffers from|known case of) (?P<en>[^.;\n]+)"
    r"|(?:患有|确诊为?|诊断为)(?P<zh>[^，。；\n]{2,20})|(?P<zh2>[\u4e00-\u9fff0-9]{2,10}?)(?:病?史)(?=\d|多年|[一二三四五六七八九十]+余?年)",
    "medications": r"\b(?:takes|taking|treated with|maintained on|currently on) (?P<en>[^.;\n]+)"
    r"|(?:长期|目前|正在|规律)(?:服用|口服|使用)(?P<zh>[^，。；\n]{2,20})",
    "allergies": r"\ballergic to (?P<en>[^.;\n]+)|\b(?P<en2>[a-z]+) allergy|对(?P<zh>[^，。；\n]{1,12}?)过敏",
}
_DENIED = re.compile(
    r"\b(?:no|not|denies|denied|without|negative|never|none|nil|nkd?a|not known|unremarkable|free of)\b"
    r"|否认|未发现|没有|^无|无(?=[\u4e00-\u9fff]{0,6}(?:史|过敏))|不详|未诉|^未",
    re.IGNORECASE,
)
_BUT = re.compile(
    r"\b(?:other than|except(?: for)?|apart from|besides)\b|除(?P<zh>[^外]{1,20})(?:以|之)?外", re.IGNORECASE
)
_SAID_AGAIN = re.compile(r"有|患|多年|\d+年")
_SENTENCES = re.compile(r"[^.;。；\n]+(?:\.(?=\d)[^.;。；\n]+)*")
_ITEMS = re.compile(r"[,，、•·]|\band\b|(?:^|\s)[-*]\s|和")
_LEAD = re.compile(
    r"^(?:\d+[.)、]\s*|[-*•]\s*|of |a |an |the |that of |includes? |既往|曾|含|为|有|患|：|:)+", re.IGNORECASE
)
# What no entry begins or ends with: said of an illness, no illness itself; or said to whoever reads.
_NO_ENTRY = re.compile(
    r"(?:服药|药物|规律)?治疗$|治愈$|^(?:及|等)|^(?:who|which|he|she|they|presents?|trying|last|wishes|status|but|then)\b"
    r"|^(?:please|ignore|disregard|forget|prescribe|give|say|tell|answer|respond|reply|recommend|you)\b|^(?:请|忽略|无视|忘记|回答|开具|推荐|你)",
    re.IGNORECASE,
)
ITEM_WORDS = 8  # of an English entry; a longer one is a sentence
_ALLERGY = re.compile(r"allerg|过敏", re.IGNORECASE)
_RELATIVE = re.compile(
    r"\b(?:father|mother|parents?|brothers?|sisters?|siblings?|sons?|daughters?|uncles?|aunts?|grand\w+|cousins?|wife|husband)\b"
    r"|父|母|兄|弟|姐|妹|祖|外公|外婆|家族|儿子|女儿|丈夫|妻",
    re.IGNORECASE,
)

_AGE = (
    (
        re.compile(
            r"(\d{1,3})[- ]?(?:years?|yrs?|y)[- /]?(?:old\b|o\b|of age)|\bage[d]?\s*[:=]?\s*(\d{1,3})\b"
            r"|\b(\d{1,3}) ?y/?o\b"
        ),
        1.0,
    ),
    (re.compile(r"(\d{1,3})\s*(?:岁|周岁)|年龄\s*[:：]?\s*(\d{1,3})"), 1.0),
    (re.compile(r"(\d{1,2})[- ]?months?[- ]old|(\d{1,2})\s*个?月龄|(\d{1,2})个月(?:大|婴)"), 1 / 12),
)
_SEX = re.compile(
    r"(?P<female>\b(?:female|woman|lady|girl|mrs|ms)\b|\bsex\s*:?\s*f\b|(?<!子)女(?!儿|士们)|[孕产]妇)"
    r"|(?P<male>\b(?:male|man|gentleman|boy|mr)\b|\bsex\s*:?\s*m\b|男(?!友))"
)
_PREGNANT = re.compile(r"\bpregnant\b|\bgravid\b|妊娠|怀孕|孕\d+|孕妇")
_NOT_PREGNANT = re.compile(
    r"not (?:currently )?pregnant|denies pregnancy|pregnancy test (?:is |was )?negative"
    r"|否认(?:妊娠|怀孕)|未(?:妊娠|怀孕|孕)"
    r"|非妊娠|妊娠试验阴性|(?:previous|prior|past|history of|last) pregnan"
)


def read_text(text: str) -> PatientRecord:
    """The record in ``text``; raise ``InputError`` where it is plainly of two patients."""
    text = clean(text)
    one_patient(text)
    return from_prose(struck(text))


def from_prose(text: str, as_of: str = "") -> PatientRecord:
    """The record in prose that names nobody."""
    folded = fold(text)
    under = sections(text)
    lists: dict[str, tuple[str, ...]] = {}
    notes: list[str] = []
    none_of: set[str] = set()
    for name in ("problems", "medications", "allergies"):
        where = [each for texts in under.values() for each in texts] if name == "allergies" else under.get("", ())
        found = [each for each in listed(under.get(name, ())) if name == "allergies" or not _ALLERGY.search(each)]
        found += cued(where, name)  # an allergy counts wherever it is said
        lists[name], note = entries(found, name)
        notes += note
        if not found and any(_DENIED.search(each) and not _BUT.search(each) for each in under.get(name, ())):
            none_of.add(name)
    results, told = newest(measures.measured(text, as_of), detect(text))
    sex = _sex(folded)
    age = _age(folded)
    if age is None and not sex and not results and not any(lists.values()) and not none_of:
        notes.append(NOTHING)
    if len(text) > TEXT_CHARACTERS:
        notes.append(TEXT_CUT.format(kept=TEXT_CHARACTERS, all=len(text)))
    return PatientRecord(
        problems=lists["problems"],
        medications=lists["medications"],
        allergies=lists["allergies"],
        language=detect(text),
        age=age,
        sex=sex,
        pregnant=None if sex == "male" else _pregnant(folded),
        none_of=frozenset(none_of),
        results=results,
        text=text[:TEXT_CHARACTERS],
        as_of=as_of,
        notes=(*notes, *told),
    )


def sections(text: str) -> dict[str, list[str]]:
    """The text under each heading, by the list it belongs to; "" is everything else but the family's illnesses."""
    found: dict[str, list[str]] = {"": []}
    marks = list(_HEADING.finditer(text))
    found[""].append(text[: marks[0].start()] if marks else text)
    ends = [each.start() for each in marks[1:]] + [len(text)] * bool(marks)
    for mark, end in zip(marks, ends, strict=True):
        name = mark.lastgroup or "other"
        if re.search("family|家族", mark[0], re.IGNORECASE):
            continue
        found.setdefault("" if name == "other" else name, []).append(text[mark.end() : end])
    return found


def listed(texts: Iterable[str]) -> Iterator[str]:
    """The entries of a list, without those that it denies."""
    for text in texts:
        for sentence in _SENTENCES.findall(text):
            yield from _affirmed(sentence)


def _affirmed(sentence: str) -> Iterator[str]:
    """The entries of one sentence; what follows a denial is denied as well, until something is affirmed again."""
    denying = False
    if but := _BUT.search(sentence):  # "none other than": what is excepted is affirmed
        sentence = but["zh"] or sentence[but.end() :]
    if detect(sentence) == "en" and _DENIED.search(sentence):
        return
    for clause in re.split(r"[,，]", sentence):
        denying = bool(_DENIED.search(clause.strip())) or (denying and not _SAID_AGAIN.search(clause))
        if not denying:
            items = (_LEAD.sub("", item.strip()).strip(" .。") for item in _ITEMS.split(clause))
            yield from (each for each in items if not _NO_ENTRY.search(each) and len(each.split()) <= ITEM_WORDS)


def cued(texts: Iterable[str], name: str) -> Iterator[str]:
    """What cues in prose say belongs to the list ``name``."""
    for text in texts:
        for sentence in _SENTENCES.findall(text):
            if _DENIED.search(sentence):
                continue
            for found in re.finditer(_CUES[name], sentence, re.IGNORECASE):
                if _RELATIVE.search(sentence[max(0, found.start() - BEFORE) : found.start()]):
                    continue
                yield from _affirmed(next(each for each in found.groups() if each))


def _age(folded: str) -> float | None:
    """The first age that is said of nobody else: in months where no years are."""
    for pattern, scale in _AGE:
        for found in pattern.finditer(folded):
            sentence = re.split(r"[.。;；\n]", folded[max(0, found.start() - BEFORE) : found.start()])[-1]
            value = float(next(each for each in found.groups() if each)) * scale
            if not _RELATIVE.search(sentence) and value < measures.by_name("age").plausible[1]:
                return round(value, 1)
    return None


def _sex(folded: str) -> str:
    found = _SEX.search(folded)
    return (found.lastgroup or "") if found else ""


def _pregnant(folded: str) -> bool | None:
    if _NOT_PREGNANT.search(folded):
        return None if re.search(r"(?:previous|prior|past|history of|last) pregnan", folded) else False
    return True if _PREGNANT.search(folded) else None
