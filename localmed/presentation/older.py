"""Notes and reasons of workflows that still make English sentences, in Chinese: pattern -> Chinese."""

from __future__ import annotations

import re

CHINESE = {

    r"The encoder of this profile does not know Chinese: only words were searched, and no meaning was compared":
        "当前配置的向量模型不支持中文：仅按词检索，未做语义比较",
    r"Nothing found was relevant enough to answer from": "检索到的内容相关性不足，不能据以回答",
    r"The question holds no word that can be searched for": "问题中没有可检索的词",
    r"Not named in the sources: (.*)": "来源中未出现的词：{1}",
    r"Every sentence failed its check and was withheld": "所有句子均未通过核对，已隐去",
    r"Source (\S+) is superseded: (.*) \(no date\)": "来源 {1} 已被取代：{2}（无日期）",
    r"Source (\S+) is superseded: (.*) \((.*)\)": "来源 {1} 已被取代：{2}（{3}）",
    r"Source (\S+) is withdrawn: (.*) \(no date\)": "来源 {1} 已撤回：{2}（无日期）",
    r"Source (\S+) is withdrawn: (.*) \((.*)\)": "来源 {1} 已撤回：{2}（{3}）",
    r"Source (\S+) was to be reviewed by (\S+): (.*)": "来源 {1} 已过复审期限（{2}）：{3}",
    r"Not searched, as the library holds nothing of it: (.*)": "未检索（资料库中没有相应内容）：{1}",
    r"No collection that the question was to be asked of holds a passage": "指定检索的资料集均无内容",
    r"Source (\S+) says (.*), source (\S+) says (.*): a thousandfold or more apart":
        "来源 {1} 为 {2}，来源 {3} 为 {4}：相差一千倍或以上",
    r"Source (\S+) says (.*), source (\S+) says (.*): they may speak of different patients or ways of giving it":
        "来源 {1} 为 {2}，来源 {3} 为 {4}：所指患者或给药方式可能不同",
    r"Source (\S+) says (.*), source (\S+) says (.*)": "来源 {1} 为 {2}，来源 {3} 为 {4}",
    r"Source (\S+) is of (\S+), source (\S+) of (\S+)": "来源 {1} 的版本日期为 {2}，来源 {3} 为 {4}",
    r"No source was asked: the strategy plans no search": "该策略不检索任何来源",
    r"Not planned for, as the library holds nothing of it: (.*)": "未列入计划（资料库中没有相应内容）：{1}",
    r"Not used, since they hold text addressed to a language model: (\d+) passages":
        "有 {1} 个段落含有针对语言模型的文字，未予采用",
    r"Answered in parts: no passage answered the question as a whole": "分部分回答：没有单一段落能回答整个问题",
    r"For (\d+) of the (\d+) parts nothing was found": "{2} 个部分中有 {1} 个未找到依据",
    r"From the model's own knowledge, with no source: not checked against anything":
        "出自模型自身知识，没有来源，未与任何资料核对",
    r"The answer contradicted its sources twice and is not shown": "回答两次与来源矛盾，故不显示",
    r"The language model's reply could not be used \((\S+)\): the rules took its place":
        "语言模型的回复无法使用（{1}）：已改由规则处理",
    r"(\d+) of (\d+) passages were left out: the model's context holds no more.":
        "共 {2} 段，其中 {1} 段未提供给模型：其上下文容量不足。",
    r"a number in it is not in what it cites": "句中有数字未见于所引来源",
    r"what it cites says otherwise": "所引来源的说法不同",
    r"what it cites supports it": "所引来源支持该句",
    r"it says more than what it cites": "所述超出所引来源",
    r"written by a model; its support was not shown": "由模型撰写，尚未证实有来源支持",
    r"no citation that exists": "没有有效的引用",
    r"the quotation is not what source (\S+) says": "引文与来源 {1} 的原文不符",
    r"it is shown as a quotation but is not one": "标为引文，但不是原文",

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


def translated(note: str, language: str) -> str:
    """``note`` in ``language``; unchanged where it is not known."""
    if language == "zh":
        for pattern, chinese in CHINESE.items():
            if match := re.fullmatch(pattern, note, re.DOTALL):
                return chinese.format(match[0], *match.groups())
    return note
