"""What is printed of a badge, in word and symbol; the gate's notes and reasons in Chinese (as ``texts.CHINESE``)."""

from __future__ import annotations

BADGES = {
    "en": {
        "green": "[+] GREEN: supported by its sources",
        "yellow": "[~] YELLOW: the sources do not answer it directly",
        "red": "[x] RED: not supported by its sources",
        "why": "{badge}: {reason}.",
        "judge": "Judged by: {judge}. A badge speaks of the sources, not of what is right for a patient.",
        "before": "Before sentences were withheld: {badge}.",
        "alone": "By kind of source: {badges}.",
        "mark": "[NOT SUPPORTED: {reason}]",
    },
    "zh": {
        "green": "［+］绿色：有所引来源支持",
        "yellow": "［~］黄色：来源相关，但未直接回答",
        "red": "［x］红色：未获所引来源支持",
        "why": "{badge}。{reason}。",
        "judge": "评判者：{judge}。标记只说明与来源的关系，不表示适合某位患者。",
        "before": "隐去未通过核对的句子之前：{badge}。",
        "alone": "按来源类别：{badges}。",
        "mark": "［未获支持：{reason}］",
    },
}

CHINESE = {
    r"Added beside a quotation, since it limits it: (\d+) sentences": "因限定了所引内容而补充的原文：{1} 句",
    r"the sources answer the question, and every sentence shown rests on them":
        "来源回答了问题，所示各句均有来源依据",
    r"every sentence shown rests on the sources, which are about the question but do not answer it directly":
        "所示各句均有来源依据；来源与问题相关，但未直接回答",
    r"the sources are about something else than the question, and not every sentence rests on them":
        "来源与问题无关，且并非每句都有来源依据",
    r"the sources are about something else than the question": "来源与问题无关",
    r"not every sentence was shown to rest on the sources": "并非每句都已证实有来源依据",
    r"a unit in it is not the one in what it cites": "句中的单位与所引来源不一致",
    r"a medicine in it is not in what it cites": "句中有药名未见于所引来源",
    r"what it cites gives that amount of another medicine": "所引来源中该剂量属于另一种药",
    r"it says above of a limit where what it cites says below, or the reverse": "界限的上下方向与所引来源相反",
    r"a way of giving or a frequency in it is not in what it cites": "句中的用法或频次未见于所引来源",
    r"it denies what it cites affirms, or the reverse": "肯定与否定和所引来源相反",
    r"it omits an exception of what it cites": "遗漏了所引来源中的例外",
    r"not validated here": "未在本院验证",
    r"measured on graded answers of MedQuAD: wrong in (\d+) % on answering, (\d+) % on being related":
        "以 MedQuAD 的分级答案测得：是否回答误判 {1} %，是否相关误判 {2} %",
    r"rules": "规则",
    r"chat model": "语言模型",
    r"chat model, strict": "语言模型（从严）",
}  # fmt: skip
