"""A line of a Chinese order in plain words, by rule: as ``restating``, for Chinese."""

from __future__ import annotations

import re
from collections.abc import Callable

Told = str | Callable[[re.Match[str]], str]

_HAN = "一二两三四五六七八九十半"
_NUMBER = rf"(?:\d+(?:\.\d+)?|[{_HAN}]{{1,3}})(?:\s?(?:-|–|~|～|至|到)\s?(?:\d+(?:\.\d+)?|[{_HAN}]{{1,3}}))?"
_UNITS = {
    "mg": "毫克",
    "g": "克",
    "ml": "毫升",
    "μg": "微克",
    "ug": "微克",
    "mcg": "微克",
    "iu": "国际单位",
    "u": "单位",
}
_SPANS = {
    "d": "天",
    "天": "天",
    "日": "天",
    "周": "周",
    "w": "周",
    "月": "个月",
    "个月": "个月",
    "小时": "小时",
    "h": "小时",
}

_PARTS: tuple[tuple[str, Told], ...] = (
    (rf"[x×*]\s?(?P<n>{_NUMBER})\s?(?P<span>个月|小时|天|日|周|月|d|w|h)(?![a-z])",
     lambda m: f"共{m['n']}{_SPANS[m['span'].lower()]}"),
    (rf"(?P<n>{_NUMBER})\s?(?P<unit>mg|ml|μg|ug|mcg|iu|g|u)(?![a-z/])",
     lambda m: f"{m['n']}{_UNITS[m['unit'].lower()]}"),
    (r"q\.?d\.?(?![a-z])|[每一1][日天][一1]次|[一1]次/[日天]|qday", "每天一次"),
    (r"b\.?i\.?d\.?(?![a-z])|[每一1][日天][两二2]次|[二两2]次/[日天]", "每天两次"),
    (r"t\.?i\.?d\.?(?![a-z])|[每一1][日天][三3]次|[三3]次/[日天]", "每天三次"),
    (r"q\.?i\.?d\.?(?![a-z])|[每一1][日天][四4]次|[四4]次/[日天]", "每天四次"),
    (r"q\.?o\.?d\.?(?![a-z])|隔日一次|隔日1次", "隔天一次"),
    (rf"q\s?(?P<n>\d+)\s?h(?![a-z])|每(?P<m>{_NUMBER})小时[一1]次", lambda m: f"每{m['n'] or m['m']}小时一次"),
    (r"q\.?n\.?(?![a-z])|每晚[一1]次", "每晚"),
    (r"hs(?![a-z])|睡前服用|睡前", "睡前"),
    (r"prn(?![a-z])|必要时", "需要时才用（必要时）"),
    (r"st\.|(?<![a-z])stat(?![a-z])", "立即"),
    (r"po(?![a-z])|口服", "口服（吃下去）"),
    (r"ivgtt(?![a-z])|iv\s?drip|静脉滴注|静滴", "通过输液滴入静脉"),
    (r"iv(?![a-z])|静脉注射|静注|静推", "打针打进静脉"),
    (r"im(?![a-z])|肌内注射|肌肉注射|肌注", "打针打进肌肉"),
    (r"皮下注射|ih(?![a-z])|sc(?![a-z])", "打针打到皮下"),
    (r"舌下含服", "含在舌下（舌下含服）"),
    (r"雾化吸入|雾化", "变成雾吸入（雾化）"),
    (r"[餐饭]前服用?", "饭前服用"),
    (r"[餐饭]后服用?", "饭后服用"),
    (r"餐前|饭前", "饭前"),
    (r"餐后|饭后", "饭后"),
    (r"顿服", "全部一起服下"),
)  # fmt: skip
_INSIDE: tuple[tuple[str, Told], ...] = (
    (r"绝对禁食|禁食、?禁饮|禁食禁水|禁食水", "不吃东西，也不喝水"),
    (r"禁食", "不吃任何东西"),
    (r"禁饮|禁水", "不喝水和饮料"),
    (r"禁用", "不能用"),
    (r"禁止|严禁", "不允许"),
    (r"忌", "不吃、不碰"),
    (r"勿|不得|不可", "不要"),
    (r"避免", "不要"),
    (r"停服|停用", "停止使用"),
    (r"停药", "停止用药"),
    (r"暂停|暂缓", "暂停"),
    (r"继续(?:服用|使用|口服)?", lambda m: "接着用（继续）" + ("口服" if "口服" in m[0] else "")),
    (r"复查", "再检查（复查）"),
    (r"复诊", "回来再看（复诊）"),
    (r"≤", "不超过"),
    (r"≥", "至少"),
    (r"<|＜", "低于"),
    (r">|＞", "高于"),
    (r"血常规", "抽血数血细胞（血常规）"),
    (r"尿常规", "化验尿液（尿常规）"),
    (r"心电监护", "用仪器持续看心跳（心电监护）"),
    (r"心电图", "记录心跳的检查（心电图）"),
    (r"皮试", "在皮肤上先试一试（皮试）"),
    (r"半流质(?:饮食)?", "像稀粥一样的食物（半流质）"),
    (r"流质(?:饮食)?", "像汤水一样的食物（流质）"),
    (r"低盐低脂饮食", "少盐少油的饮食（低盐低脂饮食）"),
    (r"低盐饮食", "少盐的饮食（低盐饮食）"),
    (r"绝对卧床|卧床休息", "躺在床上休息"),
    (r"吸氧", "吸入氧气（吸氧）"),
    (r"bp(?![a-z])", "血压"),
    (r"hr(?![a-z])", "心率"),
    (r"遵医嘱", "按医生的吩咐"),
)
_SCAN = tuple(
    (
        re.compile(
            pattern if pattern[0] in "[<>(≤≥忌勿" or not pattern[0].isascii() else rf"(?<![a-z\d]){pattern}", re.I
        ),
        told,
        part,
    )
    for patterns, part in ((_PARTS, True), (_INSIDE, False))
    for pattern, told in patterns
)
_SAYS = "医嘱写的是：{}。"


def plain(line: str) -> str:
    """``line`` in plain Chinese words; "" where nothing in it could be said more plainly."""
    pieces: list[str] = []
    place, changed = 0, False
    while place < len(line):
        match, said, part = _at(line, place)
        if match is None:
            pieces.append(line[place])
            place += 1
            continue
        changed = changed or said != match[0]
        pieces.append(f"，{said}，" if part else said)
        place = match.end()
    return _SAYS.format(_tidy("".join(pieces))) if changed else ""


def _at(line: str, place: int) -> tuple[re.Match[str] | None, str, bool]:
    for pattern, told, part in _SCAN:
        if match := pattern.match(line, place):
            return match, told if isinstance(told, str) else told(match), part
    return None, "", False


def _tidy(text: str) -> str:
    """Commas as they are printed."""
    text = re.sub(r"\s*，\s*", "，", text)
    text = re.sub(r"[，,]{2,}", "，", text)
    text = re.sub(r"，(?=[。；、）,.])|(?<=[（：、])，", "", text)
    return text.strip("，。 ,.")
