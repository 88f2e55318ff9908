"""What is printed around answers and search results, in the question's language (notes of the flow included).

Notes and reasons are English where they are made, because JSON, the audit log and tests read them; here they are turned
into Chinese for the reader. A note without a translation is shown in English, and a test fails.
"""

from __future__ import annotations

import re

from localmed.cli import texts_badge, texts_departments, texts_explain, texts_links, texts_verify

TEXTS = {
    "en": {
        "extractive": "Quoted from the sources, word for word (no language model):",
        "quoted": "Quoted from the sources, word for word:",
        "generated": "Written by a language model from the sources; each sentence was checked against what it cites:",
        "unverified": "UNVERIFIED: from a language model's own knowledge, without any source:",
        "abstained": "No answer: the library does not hold enough to answer this.",
        "searched": "Searched: {names}",
        "sources": "Sources",
        "page": "page {page}",
        "ocr": "read by OCR, confidence {sure:.2f}",
        "edition": "edition {edition}",
        "no_date": "no date",
        "withheld": "[a sentence was withheld: {reason}]",
        "show": "Open a source: localmed show ID --span A-B --image page.png",
        "superseded": "SUPERSEDED",
        "pending": "NOT YET EFFECTIVE",
        "overdue": "REVIEW OVERDUE since {date}",
        "withdrawn": "WITHDRAWN",
        "nothing": "Nothing was found.",
        "nothing_searched": "nothing",
        "conflict_dose": "Possible conflict, another amount: {reason}.",
        "conflict_edition": "Possible conflict, a newer edition: {reason}.",
        "words_only": "Searched by words only: the encoder does not know this language.",
    },
    "zh": {
        "extractive": "以下均为原文摘录（未使用语言模型）：",
        "quoted": "以下均为原文摘录：",
        "generated": "由语言模型依据来源撰写，每句均与所引来源核对：",
        "unverified": "未经核实：出自语言模型自身知识，没有任何来源：",
        "abstained": "无法回答：资料库中没有足够的依据。",
        "searched": "已检索：{names}",
        "sources": "来源",
        "page": "第 {page} 页",
        "ocr": "文字由 OCR 识别，置信度 {sure:.2f}",
        "edition": "版本日期 {edition}",
        "no_date": "无日期",
        "withheld": "［一句未通过核对，已隐去：{reason}］",
        "show": "查看原文页面：localmed show 编号 --span 起-止 --image page.png",
        "superseded": "已被取代",
        "pending": "尚未生效",
        "overdue": "已过复审期限（{date}）",
        "withdrawn": "已撤回",
        "nothing": "未检索到任何内容。",
        "nothing_searched": "无",
        "conflict_dose": "可能存在冲突（数值不同）：{reason}。",
        "conflict_edition": "可能存在冲突（有更新的版本）：{reason}。",
        "words_only": "仅按词检索：当前配置的向量模型不支持该语言。",
    },
}

# English pattern -> Chinese; {1}, {2} are the pattern's groups.
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
    r"No patient record was given: whether this fits the patient was not looked at":
        "未提供病历：未核对是否适用于该患者",
    r"Nothing was found for the PICO question; the question was searched as it was asked":
        "按 PICO 问题未检索到，已改按原问题检索",
    r"Not used, since it cannot be right as it stands: (.*)": "病历数值明显有误，未采用：{1}",
    r"Check the record: a blood pressure of (\S+) is unlikely": "请核对病历：血压 {1} 不大可能",
    r"Only the first (\d+) of (\d+) (.*) were read": "病历条目过多，仅读取前 {1} 条（共 {2} 条）",
    r"A model is shown the first (\d+) of (\d+) characters of the record": "病历共 {2} 字，仅前 {1} 字提供给模型",
    r"Nothing was recognised in the record: no age, no sex, no list under a heading, no result":
        "未能从病历中识别出任何内容：没有年龄、性别、带标题的条目或检查结果",
    r"Not read, since it is no valid FHIR: (.*)": "以下 FHIR 条目无效，未读取：{1}",
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
}  # fmt: skip

# The settings' names of kinds, as a reader says them: English, Chinese.
KINDS = {
    "guideline": ("guidelines", "指南"),
    "literature": ("literature", "文献"),
    "book": ("books", "教科书"),
    "wiki": ("encyclopaedias", "百科"),
    "leaflet": ("patient leaflets", "患者手册"),
    "local": ("the hospital's own pages", "本院资料"),
    "graph": ("terms and relations", "术语与关系"),
}
_SKIPPED = re.compile(r"(Not searched, as the library holds nothing of it: )(.*)", re.DOTALL)


def texts(language: str) -> dict[str, str]:
    """The labels for ``language`` (English where there are none)."""
    return TEXTS.get(language, TEXTS["en"])


def translated(note: str, language: str) -> str:
    """A note or reason in ``language``, with kinds by their labels; unchanged where it is not known."""
    if skipped := _SKIPPED.fullmatch(note):
        note = skipped[1] + ", ".join(_label(name, language) for name in skipped[2].split(", "))
    if language != "zh":
        return note
    parts = (texts_badge, texts_departments, texts_explain, texts_links, texts_verify)
    known: dict[str, str] = {**CHINESE}
    for part in parts:
        known |= part.CHINESE
    for pattern, chinese in known.items():
        if found := re.fullmatch(pattern, note, re.DOTALL):
            return chinese.format(found[0], *found.groups())
    return note


def _label(name: str, language: str) -> str:
    """The label of a kind; a collection is called as it is."""
    english, chinese = KINDS.get(name, (name, name))
    return chinese if language == "zh" else english
