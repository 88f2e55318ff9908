"""Whether an order survives its explanation: every number with its unit, how often, which way, every negation.

Sides (left, right) count too. Both texts are read by the same rules into facts, English or Chinese, and the facts are
counted: "tid", "three times a day" and "一日三次" are the same fact, "500 mg" and "0.5 g" are not (a restatement keeps
the order's own unit). What the order holds and the restatement does not is ``lost``; a number, frequency or negation
that only the restatement holds is ``added``. Neither knows who wrote the restatement: a model's words and our own
rules' are held to the same.

Not covered: whether a fact stands beside the right medicine; names (they are kept by whoever restates).
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from localmed.clinical import units
from localmed.language import fold
from localmed.verification.verbatim import NUMBER_WORDS

_WORDS = {word: str(value) for value, word in enumerate(NUMBER_WORDS)} | dict.fromkeys(("a half", "half", "半"), "0.5")
_DIGITS = {character: value for value, character in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_N = r"(\d+(?:\.\d+)?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|[一二两三四五六七八九十]{1,3})"
_RANGE = rf"{_N}(?:\s?(?:-|–|to|至|到|~)\s?{_N})?"
_DAY = r"(?:a|per|each|every|/)\s?day|daily|/\s?d\b"

# fact -> how it is written. {1} and {2} are the pattern's groups, as digits. Read in this order; what is read is
# covered, so that "twice a day" is not also "a day".
_TIMES: tuple[tuple[str, str], ...] = (
    ("every {1} hour", rf"\bq\.?\s?{_RANGE}\s?\.?\s?h(?:rs?|ours?)?\b\.?|every {_RANGE} hours?"
            rf"|每(?:隔)?\s?{_RANGE}\s?个?小时(?:\s?[一1]\s?次)?|q\s?{_RANGE}\s?小时"),
    ("every 1 hour", r"\bevery hour\b|\bhourly\b|每小时(?:一次)?"),
    ("every {1} minute", rf"\bq\s?{_RANGE}\s?min\b|every {_RANGE} min(?:ute)?s?|每\s?{_RANGE}\s?分钟(?:一次)?"),
    ("every 2 day", r"\bq\.?o\.?d\b\.?|every other day|every second day|隔日(?:一次)?|隔天(?:一次)?|每两天一次"),
    ("every {1} day", rf"\bevery {_RANGE} days|每\s?{_RANGE}\s?天(?:一次)?|\bq\s?{_RANGE}\s?d\b"),
    ("every {1} week", rf"\bevery {_RANGE} weeks|每\s?{_RANGE}\s?周(?:一次)?|\bq\s?{_RANGE}\s?w(?:ks?|eeks?)?\b"),
    ("2 a week", r"twice (?:a|per|each) week|twice weekly|每周\s?[两二2]\s?次"),
    ("3 a week", r"(?:three|3) times (?:a|per|each) week|(?:three|3) times weekly|每周\s?[三3]\s?次"),
    ("1 a week", r"once (?:a|per|each|every) week|once weekly|\bweekly\b|\bqw(?:k|eek)?\b|every week\b"
            r"|每周(?:\s?[一1]\s?次)?"),
    ("1 a month", r"once (?:a|per|each) month|\bmonthly\b|every month\b|每月(?:\s?[一1]\s?次)?"),
    ("5 a day", rf"(?:five|5) times (?:{_DAY})|[每一]\s?[日天]\s?[五5]\s?次"),
    ("4 a day", rf"\bq\.?i\.?d\b\.?|\bq\.?d\.?s\b\.?|(?:four|4) times (?:{_DAY})|[每一1]\s?[日天]\s?[四4]\s?次"
            rf"|[四4]\s?次\s?/\s?[日天]"),
    ("3 a day", rf"\bt\.?i\.?d\b\.?|\bt\.?d\.?s\b\.?|(?:three|3) times (?:{_DAY})|[每一1]\s?[日天]\s?[三3]\s?次"
            rf"|[三3]\s?次\s?/\s?[日天]"),
    ("2 a day", rf"\bb\.?i\.?d\b\.?|\bb\.?d\b|(?:twice|two times|2 times) (?:{_DAY})"
            rf"|[每一1]\s?[日天]\s?[两二2]\s?次|[两二2]\s?次\s?/\s?[日天]"),
    ("1 a day", rf"(?:once|one time|1 time) (?:{_DAY})|\bq\.?\s?d\b\.?|\bqday\b|\bdaily\b|\b(?:every|each|a"
            rf"|per) day\b|[每一1]\s?[日天]\s?[一1]\s?次|[一1]\s?次\s?/\s?[日天]|每[日天]|/\s?day\b|/\s?d\b|/[日天]"),
    ("morning", r"\bq\s?a\.?m\b\.?|\bin (?:the )?a\.?m\b\.?|\bmorning|\ba\.m\.|\bmane\b|早晨|早上|早餐|清晨|晨起"
            r"|\bevery am\b|每晨|(?<![提尽及])早(?!产|期|饭|搏)"),
    ("evening", r"\bq\s?p\.?m\b\.?|\bin (?:the )?p\.?m\b\.?|\bevening|\bp\.m\.|傍晚|晚餐"),
    ("bedtime", r"\bq?\.?h\.?s\b\.?|(?:\bevery night )?\b(?:at )?bed ?time|\bbefore bed|睡前"),
    ("night", r"\bq\.?n\b|\bnightly\b|\bat night\b|\bevery night\b|\bnocte\b|每晚|夜间|晚上|晚"),
    ("when needed", r"\bp\.?r\.?n\b\.?|\b(?:as|when|if|where|only when) needed|\bas required|必要时|需要时|有需要"),
    ("at once", r"\bstat\b|\bat once\b|\bimmediately\b|\bright away\b|立即|马上|立刻|(?<![a-z])st\."),
    ("before meals", r"\ba\.?c\b\.?|before (?:meals|food|eating|breakfast)|饭前|餐前"),
    ("after meals", r"\bp\.?c\b\.?|after (?:meals|food|eating|breakfast)|饭后|餐后"),
    ("with food", r"with (?:food|meals)|随餐|餐中|饭中"),
    ("empty stomach", r"empty stomach|空腹|\bfasting\b"),
)  # fmt: skip
_WAYS: tuple[tuple[str, str], ...] = (
    ("under the tongue", r"\bs\.?l\b\.?|sublingual(?:ly)?|under the tongue|舌下(?:含服)?"),
    ("mouth", r"\bp\.?o\b\.?(?!-)|\borally\b|\boral\b|by mouth|口服"),
    ("vein", r"\bi\.?v\.?(?:p?gtt|pb?|\s?drip)?\b\.?|intravenous(?:ly)?|(?:into|through) a vein|into a vein|静脉"
            r"|静滴|静注|静推"),
    ("muscle", r"\bi\.?m\b\.?(?!-)|intramuscular(?:ly)?|into a muscle|肌注|肌内注射|肌肉"),
    ("skin", r"\bs\.?c\b\.?|\bsubq\b|\bsq\b|\bih\b|subcutaneous(?:ly)?|under the skin|皮下"),
    ("surface", r"\btopical(?:ly)?\b|on the skin|外用|涂"),
    ("breathed", r"\binhale[ds]?\b|\binh\b|\bbreathed? in\b|\bneb(?:s|uli[sz]ed)?\b|雾化|吸入"),
)  # fmt: skip
_SENSES: tuple[tuple[str, str], ...] = (
    ("at most", r"(?:no|not) more than|(?:do )?not (?:to )?exceed(?:ing)?|no greater than|\bat most\b|\bup to\b"
            r"|\bmax(?:imum|\.)?\b|不超过|不得超过|最多|最大|至多|≤|不要超过"),
    ("at least", r"(?:no|not) less than|\bat least\b|\bmin(?:imum)\b|至少|不少于|不低于|≥"),
    ("unless", r"\bunless\b|\bexcept\b|除非|除外"),
    ("stop", r"\bstop(?:ped|ping|s)?\b|\bdiscontinue[ds]?\b|\bd/c'?d?\b|\bcease\b|停用|停药|停止|停服"
            r"|(?<!暂)停(?=[\u4e00-\u9fff])"),
    ("hold", r"\bhold(?:ing)?\b|\bheld\b|\bwithh(?:old|eld)\b|\bpause[ds]?\b|暂停|暂缓|暂不"),
    ("below", r"<|\b(?:less|lower|fewer) than\b|\bbelow\b|\bunder (?=\d)|低于|小于|少于|不足|以下"),
    ("above", r">|\b(?:more|greater|higher) than\b|\babove\b|\bover (?=\d)|\bexceed(?:s|ing)?\b|高于|大于|超过|以上"),
    ("not", r"\bnot\b|\bno\b(?!\.\s?\d)|\bnever\b|\bwithout\b|\bavoid(?:ing)?\b|\bnothing\b|\bnpo\b|\bnbm\b|\bnil\b"
            r"|\bnwb\b|\bnon-(?=weight)|n't\b|\bcannot\b|\bnone\b|\bnk(?:d)?a\b|\bdenie[sd]\b|\bdeny\b|\bcontraindicated\b"
            r"|禁(?=[\u4e00-\u9fff])|勿|忌|避免|不(?!适|良|规则|超过|得超过|低于|少于|足|同|断)|无(?!菌|线)|否认|未(?!来)"
            r"|别(?=[吃喝做])"),
    ("left", r"\bleft\b|\bos\b|左"),
    ("right", r"\bright\b(?! away| now)|右"),
    ("allergy", r"\ballerg(?:y|ies|ic)\b|过敏"),
)  # fmt: skip
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}\b)")
_NUMBER = re.compile(
    r"(?<![\w.])(?P<digits>\d+(?:\.\d+)?|\.\d+)(?:st|nd|rd|th)?|\b(?P<word>one|two|three|four|five|six|seven|eight"
    r"|nine|ten|eleven|twelve|a half|half)\b"
    r"|(?P<han>[一二两三四五六七八九十半]{1,3})(?=\s?(?:片|粒|次|支|袋|包|瓶|滴|喷|吸|天|日|周|个|小时|分钟|月|年"
    r"|杯|层|级|剂))"
    r"|(?P<inside>(?<=[a-z×*/\u4e00-\u9fff])\d+(?:\.\d+)?)"
)  # fmt: skip
_PATTERNS = tuple(
    (kind, fact, re.compile(pattern))
    for kind, facts_of_kind in (("time", _TIMES), ("way", _WAYS), ("sense", _SENSES))
    for fact, pattern in facts_of_kind
)
_JOINT = re.compile(r"\s?(?:-|–|~|to|至|到|/|x|×|or|或)\s?(?=\d|[一二两三四五六七八九十])")


@cache
def _read_units() -> tuple[tuple[str, re.Pattern[str]], ...]:
    ended = r"(?:(?<=[a-z])s?(?![a-z])|(?<![a-z]))"
    return tuple((name, re.compile(rf"\s?-?(?:{pattern}){ended}")) for name, pattern in units.in_orders())


Facts = Counter[tuple[str, str]]  # (what: number, time, way or sense; which) -> how often


def facts(text: str) -> Facts:
    """What of ``text`` must survive."""
    left, counts = _GROUPED.sub("", fold(text)), Facts()
    for kind, name, pattern in _PATTERNS:
        counts.update((kind, _named(name, match)) for match in pattern.finditer(left))
        left = pattern.sub(lambda match: " " * len(match[0]), left)
    counts.update(("number", number) for number in _numbers(left))
    return counts


def lost(order: str, restatement: str) -> list[str]:
    """The facts of ``order`` that ``restatement`` holds less often. A number without a unit may have gained one."""
    there, missing = facts(restatement), []
    for (what, name), count in facts(order).items():
        has = there[what, name]
        if what == "number" and " " not in name:
            has = sum(often for (kind, other), often in there.items() if kind == "number" and other.split()[0] == name)
        if has < count:
            missing.append(f"{what}: {name}")
    return missing


def added(order: str, restatement: str) -> list[str]:
    """The numbers, times, ways and senses of ``restatement`` that ``order`` does not hold at all."""
    here = facts(order)
    plain = {name.split()[0] for what, name in here if what == "number"}
    return [
        f"{what}: {name}"
        for what, name in facts(restatement)
        if not here[what, name] and not (what == "number" and name.split()[0] in plain)
    ]


def _named(name: str, match: re.Match[str]) -> str:
    """A fact with the pattern's numbers in it, as digits: "every {1} hour" with 4 and 6 is "every 4-6 hour"."""
    groups = [_digits(group) for group in match.groups() if group]
    return name.replace("{1}", "-".join(groups))


def _digits(number: str) -> str:
    """A number as digits in one spelling: "two", "两", "2.0" and "2" are the same."""
    if number in _WORDS:
        return _WORDS[number]
    if number[0] in _DIGITS or number[0] == "十":
        return str(_of_han(number))
    return f"{float(number):g}"


def _of_han(number: str) -> int:
    """A Chinese number up to 99."""
    tens, ten, ones = number.rpartition("十")
    return (_DIGITS.get(tens, 1) * 10 if ten else 0) + _DIGITS.get(ones, 0)


def _numbers(text: str) -> list[str]:
    """Each number with the unit after it; the numbers of a range or pair share the last one's unit."""
    numbers: list[str] = []
    waiting: list[str] = []
    for match in _NUMBER.finditer(text):
        value = _digits(next(group for group in match.groups() if group))
        if _JOINT.match(text, match.end()):
            waiting.append(value)
            continue
        unit = next((name for name, pattern in _read_units() if pattern.match(text, match.end())), "")
        numbers += [f"{number} {unit}".strip() for number in (*waiting, value)]
        waiting = []
    return numbers + waiting
