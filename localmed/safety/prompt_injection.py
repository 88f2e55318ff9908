"""Finds text that addresses a language model ("ignore the instructions above"), by wording and likeness.

People see such a passage, marked; no model reads it. Wordings are the usual ones in English and Chinese; a likeness
finds others by the encoder's vectors of suspected sentences. False statements in plain prose are not covered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from math import sqrt
from pathlib import Path

import numpy as np
import numpy.typing as npt

from localmed.domain.ports import Embedder
from localmed.text.language import detect, fold, sentences, terms
from localmed.text.tables import in_characters, in_words, listed, table

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
    """Whether ``text`` addresses a language model, by wording and, with an ``encoder``, by likeness."""
    if _INJECTION.search(_BLANKS.sub(" ", fold(text))):
        return True
    if encoder is None:
        return False
    pieces = (line[start:end] for line in text[:READ].splitlines() if line.strip() for start, end in sentences(line))
    return any(spoken_by_meaning([piece for piece in pieces if suspected(piece)], encoder))


# --- likeness ---------------------------------------------------------------------------------------------------------

# A linear score over the kinds of words that stand together in a sentence (``text/injection.toml``: who is spoken to,
# what it is to say, what it is to set aside), pairs of kinds, and its words and pairs of words (Chinese: runs of one to
# three characters). It only suspects, a tenth of ordinary sentences: alone it was wrong about one guideline sentence in
# 200. A second score adds the vector of multilingual-e5-small and decides; without that encoder nothing does. The
# weights were fitted (``tests/benchmarks/train_injections.py``); a sentence counts from ``MARGIN`` above their bound.

WEIGHTS = Path(__file__).with_name("injection_likeness.npz")
LANGUAGES = ("en", "zh")
BY_MEANING = "+meaning"  # behind a language: the weights of words beside a vector
LEAST = 8  # characters; a heading or a cell of a table speaks to nobody
# Weights of the three sorts of features; a vector without its centre is 0.45 long.
KINDS, WORDS, MEANING = 1.0, 1.4, 6.5
# Above the fitted bound, which look-alikes written for it have set. At 0 one sentence in 3,500 of 60,000 of real
# leaflets and 2 of 8,183 of a real guideline counted, at 0.2 one in 8,600 and none; of injected ones 54 for 55 of 60.
MARGIN = 0.2
_MATHS = re.compile(r"\$[^$\n]{1,200}\$|[<>](?=\s*=?\s*[\d.-])")  # formulas and comparisons (P < 0.05) are no markup


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each feature by its name, the ``bias`` with its bound taken off, and ``by_meaning`` (D,).

    A sentence is suspected from a score of ``suspects`` on; D is 0 where words alone are weighed.
    """

    by_feature: Mapping[str, float]
    bias: float
    by_meaning: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    suspects: float = 0.0

    def score(self, sentence: str, language: str) -> float:
        """The score of ``sentence`` without its meaning."""
        values = features(sentence, language).items()
        return self.bias + sum(value * self.by_feature.get(name, 0.0) for name, value in values)


def suspected(sentence: str) -> bool:
    """Whether the meaning of ``sentence`` is checked."""
    language = _language(sentence)
    return bool(language) and loaded()[language].score(sentence, language) > loaded()[language].suspects


def spoken_by_meaning(sentences: Sequence[str], encoder: Embedder) -> list[bool]:
    """Whether each sentence scores above the bound of its language, by words and meaning.

    None does with another encoder than the one that was fitted.
    """
    if not sentences or encoder.identity.slug != fitted_encoder():
        return [False] * len(sentences)
    vectors = encoder.encode(sentences, "passage").astype(np.float64)
    marks = []
    for sentence, vector in zip(sentences, vectors, strict=True):
        language = _language(sentence)
        weights = loaded()[f"{language}{BY_MEANING}"] if language else None
        marks.append(bool(weights and weights.score(sentence, language) + vector @ weights.by_meaning > MARGIN))
    return marks


def _language(sentence: str) -> str:
    """The language of ``sentence``, "" of one that is too short or in another one."""
    language = detect(sentence)
    return language if len(sentence) >= LEAST and language in LANGUAGES else ""


def features(sentence: str, language: str) -> dict[str, float]:
    """The features of ``sentence`` by name: kinds, pairs of kinds, words."""
    folded = _MATHS.sub(" ", fold(sentence))
    kinds = [name for name, pattern in _kinds() if pattern.search(folded)]
    named = [f"[{name}]" for name in (*kinds, *(f"{one}+{other}" for one, other in combinations(kinds, 2)))]
    held = terms(folded, language)
    of_kinds = dict.fromkeys(named, KINDS / sqrt(4 + len(kinds)))
    return of_kinds | dict.fromkeys(held, WORDS / sqrt(len(held) or 1))


@cache
def _kinds() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, _pattern(entry)) for name, entry in table("injection").items() if isinstance(entry, dict))


def _pattern(entry: Mapping[str, str]) -> re.Pattern[str]:
    english = listed(entry["en"])
    words = ", ".join(word for word in english if word[0].isalnum())
    signs = [re.escape(sign) for sign in english if not sign[0].isalnum()]
    parts = [*([rf"(?<![a-z])(?:{in_words(words)})"] if words else []), *signs, in_characters(entry["zh"])]
    return re.compile("|".join(parts))


@cache
def loaded(path: Path = WEIGHTS) -> Mapping[str, Weights]:
    """The weights that come with the package, by language, and by language with ``BY_MEANING`` behind it."""
    names = [f"{language}{suffix}" for language in LANGUAGES for suffix in ("", BY_MEANING)]
    with np.load(path, allow_pickle=False) as kept:
        return {name: _read(kept, name) for name in names}


def _read(kept: Mapping[str, npt.NDArray[np.generic]], name: str) -> Weights:
    by_feature = zip(str(kept[f"{name}.names"]).split("\n"), map(float, kept[f"{name}.weights"]), strict=True)
    meaning = kept[f"{name}.meaning"].astype(np.float64)
    return Weights(dict(by_feature), float(kept[f"{name}.bias"]), meaning, float(kept[f"{name}.suspects"]))


@cache
def fitted_encoder(path: Path = WEIGHTS) -> str:
    """The slug of the encoder whose vectors were fitted."""
    with np.load(path, allow_pickle=False) as kept:
        return str(kept["encoder"])
