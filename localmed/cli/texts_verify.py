"""What is printed of a verification: the verdict on a sentence, and its notes in Chinese (as ``texts.CHINESE``)."""

from __future__ import annotations

VERDICTS = {
    "en": {
        "verbatim": "word for word in what it cites",
        "supported": "supported by what it cites",
        "unsupported": "NOT SUPPORTED",
        "contradicted": "CONTRADICTED",
        "unchecked": "not shown",
    },
    "zh": {
        "verbatim": "与所引来源逐字相同",
        "supported": "所引来源支持",
        "unsupported": "未获支持",
        "contradicted": "与所引来源矛盾",
        "unchecked": "未能证实",
    },
}

CHINESE = {
    r"The text holds no sentence that a study could be held against": "文中没有可与研究对照的句子",
    r"No question was given: the first sentences are the claims, and whether they answer is not looked at":
        "未给出问题：以前几句为论断，未核对是否回答了问题",
    r"The answer cites nothing": "该回答没有引用任何来源",
    r"Citations that could not be read: (\d+)": "无法识别的引用：{1} 处",
    r"Cited, but not in the library: (.*)": "引用了资料库中没有的来源：{1}",
    r"Only the first (\d+) of (\d+) characters were read": "共 {2} 个字符，只读取了前 {1} 个",
    r"Only the first (\d+) of (\d+) sentences were read": "共 {2} 句，只读取了前 {1} 句",
    r"The library holds no literature: only what the answer cites was judged":
        "资料库中没有文献：只判断了回答所引的来源",
    r"No study in the library speaks of the claims": "资料库中没有研究涉及这些论断",
    r"Not judged, as the judge does not know the language of claim and study: (\d+) pairs":
        "未判断（判断模型不支持论断或研究的语言）：{1} 对",
    r"Judged by (.*)\. A label weighs studies for a reader; it is no clinical finding":
        "由 {1} 判断。结论仅供读者权衡研究之用，不是临床结论",
    r"Of (\d+) sentences with citations, what they cite supports (\d+)": "带引用的 {1} 句中，{2} 句得到所引来源支持",
    r"what it cites may not count: it is (.*)": "所引来源不得采用（{1}）",
    r"what it cites is not in the library": "所引来源不在资料库中",
}  # fmt: skip
