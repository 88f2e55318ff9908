"""What a sentence is about, as far as words tell, English or Chinese: its subject and its circumstances.

Lists and patterns, no model: enough to keep two sentences apart that plainly speak of different things, not to
understand either. A name or a circumstance that is not listed is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from localmed.language import content_words, fold

# Words that doses, guidelines and questions all hold; they name no subject.
_GENERAL = frozenset(
    re.findall(
        r"\S+",
        """
        dose doses dosage dosing amount maximum minimum max min daily day days hour hours week weeks month months once
        twice times time each every per give given take taken use used using start starting initial loading maintenance
        usual recommended recommendation should exceed limit target level value range adult adults child children infant
        infants patient patients people person older elderly years year age weight oral orally mouth intravenous
        intravenously intramuscular intramuscularly subcutaneous injection tablet tablets treatment therapy treat
        guideline guidelines guidance management edition updated update below above less more than least most under over
        increase increased reduce reduced much many long often high low new first second
        mg g mcg ug kg ml l dl iu unit units mmol mmhg percent microgram micrograms milligram milligrams gram grams
        剂量 用量 最大 最大剂量 最小 最高 最低 每日 每天 每次 一次 两次 三次 小时 成人 成年人 儿童 婴儿 患者 病人 老年人
        口服 静脉 静脉注射 肌内注射 肌注 皮下 注射 治疗 用药 使用 给予 推荐 建议 起始 初始 维持 首剂 负荷 目标 上限 下限
        不超过 不得 超过 低于 高于 指南 管理 更新 版本 毫克 微克 毫升 单位 体重 公斤 千克 分次
        """,
    )
)

# Words that tell one edition of a document from another, not one document from another.
_OF_EDITION = frozenset(
    re.findall(
        r"\S+",
        """
        guideline guidelines guidance edition updated update version revised revision new
        指南 更新 版本 修订 修订版
        """,
    )
)

# Circumstances: family -> name -> how it is written.
_CIRCUMSTANCES = {
    "route": {
        "mouth": r"\boral|by mouth|\btablets?\b|口服",
        "vein": r"intravenous|\biv\b|infusion|静脉|静滴|静注|输注",
        "muscle": r"intramuscular|\bim\b|肌内|肌注|肌肉注射",
        "skin": r"subcutaneous|皮下",
        "lungs": r"inhal|nebuli[sz]|\bpuffs?\b|吸入|雾化",
        "surface": r"topical|\bcream|ointment|外用|涂抹|乳膏",
        "rectum": r"rectal|suppositor|直肠|栓剂",
    },
    "people": {
        "children": r"\bchild|infant|neonat|newborn|pa?ediatric|\bbab(?:y|ies)\b|儿童|小儿|婴|新生儿|患儿|孩子",
        "adults": r"\badults?\b|成人|成年",
        "old": r"elderly|older (?:adult|people|patient)|\bfrail|老年|高龄",
    },
    "condition": {
        "pregnancy": r"pregnan|妊娠|孕",
        "kidneys": r"\brenal|kidney|egfr|creatinine|dialysis|肾功能|肾衰|肌酐|透析",
        "liver": r"hepat|\bliver|肝功能|肝衰|肝病",
        "airways": r"\bcopd\b|chronic obstructive|hypercapni|慢阻肺|慢性阻塞",
        "light": r"(?:under|below|less than|<) ?\d+ ?kg|(?:低于|不足|小于) ?\d+ ?(?:公斤|千克|kg)",
    },
    "severity": {
        "severe": r"\bsevere|\bcris[ei]s\b|life[- ]threatening|重度|重症|严重|危象|急症"
        r"|emergenc(?:y|ies)\b(?! (?:department|medic|care|room|treatment))",
        "mild": r"\bmild|\bmoderate|轻度|中度|轻中度",
    },
    "extent": {
        "most": r"maxim|\bmax\b|exceed|(?:no|not) more than|up to|at most|upper limit|最大|最高|不超过|不得超过|上限",
        "start": r"\bstart|\binitial|loading|first dose|\bbegin|起始|初始|首剂|首次|负荷|开始",
        "least": r"minimum|at least|lower limit|最小|最低|至少|下限",
        "keep": r"maintenance|维持",
        "target": r"\btarget|\bgoal|\baim|目标|控制在",
    },
    "rate": {
        "day": r"\bdaily|(?:a|per|each|every|in|over) (?:24 hours|day)\b|/ ?d(?:ay)?\b|每日|每天|一日|24 ?小时|/[日天]",
        "dose": r"(?:per|each|single|a) (?:dose|time)\b|every (?:[1-9]|1\d)\b[\w ]*? hours|/dose"
        r"|每次|单次|/次|每 ?1?\d ?小时",
        "hour": r"(?:per|an|each) (?:hour|minute)|/ ?(?:h|hr|hour|min)\b|每分钟|/小时|/分钟",
        "week": r"\bweek|每周|/周",
    },
}
FAMILIES = tuple(_CIRCUMSTANCES)
_PATTERNS = {
    family: {name: re.compile(pattern) for name, pattern in names.items()} for family, names in _CIRCUMSTANCES.items()
}

# On which side of an amount a sentence is; "not more than" is a limit, which the extent tells.
_BELOW = r"\b(?:below|less than|lower than|under)\b|[<≤]|(?<!不)(?:低于|小于|少于)"
_ABOVE = (
    r"\b(?:above|(?<!not )(?<!no )more than|greater than|higher than|over|at least)\b|[>≥]|(?<!不)(?:高于|大于)|不低于"
)
_BEFORE = re.compile(rf"(?P<below>{_BELOW})|(?P<above>{_ABOVE})")
_AFTER = re.compile(r"\s*(?:(?P<below>以下|or (?:less|lower|below))|(?P<above>以上|or (?:more|higher|above)))")
_AFTER_NUMBER = re.compile(
    r"以下|以上|以内|\b(?:or|and) (?:less|lower|below|under|younger|more|higher|above|over|older|greater)\b|\d\s*\+"
    r"|\b(?:up to|from|until|older than|younger than|fewer than) ?\d|(?:不超过|不足|至少|超过|未满|不满|≧|≦)\s*\d"
)
_RANGE = re.compile(r"\d\s*(?:[^\W\d]\S*\s*)?(?:-|–|—|~|～|to|至|到)\s*\d")


def salient(text: str) -> frozenset[str]:
    """The words of ``text`` that may name a subject: no stop words, no words of dosing, no numbers; plurals cut."""
    names = (word for word in content_words(text) if word not in _GENERAL and not word[0].isdigit())
    return frozenset(name.removesuffix("s") if name.isascii() and len(name) > 3 else name for name in names)


def circumstances(text: str, family: str) -> frozenset[str]:
    """What ``text`` says of one of the ``FAMILIES``: by which route, to whom, with what illness, how often."""
    folded = fold(text)
    return frozenset(name for name, pattern in _PATTERNS[family].items() if pattern.search(folded))


def compatible(one: Collection[str], other: Collection[str]) -> bool:
    """Whether two sets of names may be of the same thing: they share one, or one of them names nothing."""
    return not one or not other or bool(set(one) & set(other))


def title_words(title: str) -> frozenset[str]:
    """The words of a title that a later edition of the same document would have too."""
    return frozenset(word for word in content_words(title) if word not in _OF_EDITION and not word[0].isdigit())


def side(before: str, after: str) -> str:
    """On which side of an amount that stands between ``before`` and ``after``: ``below``, ``above`` or nothing."""
    match = _AFTER.match(after) or next(iter([*_BEFORE.finditer(before)][-1:]), None)
    return (match.lastgroup or "") if match else ""


def of_range(text: str) -> bool:
    """Whether ``text``, a table's cell, is a limit or a range of a number and not a name."""
    folded = fold(text)
    limited = _BEFORE.search(folded) or _AFTER_NUMBER.search(folded) or _RANGE.search(folded)
    return bool(limited and re.search(r"\d", folded))
