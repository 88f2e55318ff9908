"""Text in a document that is addressed to a language model ("ignore the instructions above"), by wording and likeness.

Such a passage is shown to people, marked, and no model reads it. Wordings are the usual ones in English and Chinese;
sentence by sentence a likeness (``injection_likeness``) knows others by the encoder's vectors of what it suspects. A
document that lies in plain prose is a matter for the librarian.
"""

from __future__ import annotations

import re

from localmed.domain.ports import Embedder
from localmed.safety.injection_likeness import spoken_by_meaning, suspected
from localmed.text.language import fold, sentences

_ENGLISH = (
    # As an order: at the beginning of a clause. Patients who "ignore the instructions on the label" are none.
    r"(?:^|[.!?:;,\n\"'“>)]\s*|\b(?:please|must|should|now|and|then)\s+)"
    # People are told to ignore a table or a reading.
    r"(?:ignore|disregard|forget|override|bypass)\b(?!\s+(?:the|this|that|any)\s+(?:table|row|column|chart|dose|reading)s?\b)"
    r"[^.!?\n]{0,40}\b(?:above|previous|prior|earlier|preceding|all|any|your|"
    r"system|these|the)\b[^.!?\n]{0,30}\b(?:instructions?|prompts?|rules?|guidelines? above|directions?|messages?|"
    r"context|sources?|text|above)\b",
    r"\b(?:ignore|disregard)\s+(?:everything\s+)?(?:the\s+)?(?:above|previous)\b",
    r"\byou are (?:now|no longer)\s+(?:an?|the)\b[^.!?\n]{0,40}\b(?:assistant|model|ai|bot|doctor|system|expert)\b",
    r"\b(?:system prompt|developer message|jailbreak)\b",
    r"\b(?:as an ai|dear (?:ai|assistant|model|chatbot)|attention,? (?:ai|assistant|language model))\b",
    r"\b(?:(?:ai|language|chat) (?:assistant|model|bot)|chatbot)s?\b[^.!?\n]{0,20}"
    r"\b(?:must|should|shall|has to|have to)\s+"
    r"(?:answer|reply|respond|say|tell|output|write|recommend)\b",
    r"\b(?:reply|respond|answer)\s+(?:only\s+)?with\s+(?:the\s+(?:words?|text|sentence|phrase)\b|[\"'“])",
    # What M-Eval's judge would be told: as an order again, so that "raters judged each claim as true" is none.
    r"\b(?:label|mark|rate|classify|judge|score|treat|count)\s+(?:this|the|every|each|all|any|these)\s+"
    r"(?:claim|answer|statement|response|passage|evidence|hypothesis)s?\s+(?:as\s+|is\s+|to be\s+)?"
    r"(?:supported|true|correct|entailed|green|relevant|contradicted|refuted|false)\b(?!\s+(?:or|and)\b)",
    r"<\|?(?:im_start|im_end|system|assistant|eot_id|begin_of_text)\|?>|\[/?inst\]|<<sys>>",
)
_CHINESE = (
    r"(?:忽略|无视|忘记|不要理会|不要遵守)[^。！？\n]{0,12}(?:指令|指示|提示词|提示|规则|要求|上文|以上内容|前面的内容|来源)",
    r"(?:系统提示词|开发者消息|越狱模式)",
    r"(?:你现在是|从现在起你是)[^。！？\n]{0,12}(?:助手|模型|机器人|医生|专家)",
    r"[将把](?:本|该|此|这[条个句]|所有|每[条个句])?(?:论断|说法|陈述|回答|证据|结论)(?:标记|标注|判定|判断|评定?)[为成]"
    r"(?:得到)?(?:支持|正确|真|有关|矛盾|错误)",
    r"(?:语言模型|人工智能|AI|助手)(?:必须|应当|应该|请)(?:回答|回复|输出|告诉|推荐)",
)
_INJECTION = re.compile("|".join((*_ENGLISH, *(pattern.lower() for pattern in _CHINESE))))
READ = 20_000  # characters of a text that are likened; a passage has a few thousand
_BLANKS = re.compile(r"[^\S\n]+")


def has_injection(text: str, encoder: Embedder | None = None) -> bool:
    """Whether ``text`` speaks to a language model: by wording, and with the ``encoder`` by likeness too."""
    if _INJECTION.search(_BLANKS.sub(" ", fold(text))):
        return True
    if encoder is None:
        return False
    pieces = (line[start:end] for line in text[:READ].splitlines() if line.strip() for start, end in sentences(line))
    return any(spoken_by_meaning([piece for piece in pieces if suspected(piece)], encoder))
