"""Reading levels of texts.

English: the Flesch-Kincaid grade (Kincaid, Fishburne, Rogers & Chissom 1975), the school year in the United States
that the text suits. Syllables are counted by rule (runs of vowels, a silent e at the end), right for about nine words
in ten. Chinese has no formula that is agreed on: the mean length of a sentence in characters, under 25 being short.
Neither knows whether the words are understood; a short Latin name counts as easy.
"""

from __future__ import annotations

import re

from localmed.domain.parts import ReadingLevelPart, ReadingScale
from localmed.text.language import HAN, detect, sentences

FORMULA = (0.39, 11.8, 15.59)
_WORD = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)?")
_VOWELS = re.compile(r"[aeiouy]+")
_HAN = re.compile(f"[{HAN}]")
_SILENT = re.compile(r"(?:[^laeiouy]e|[^aeiouytd]ed|[^aeiouysxz]es)$")


def reading_level(text: str) -> ReadingLevelPart | None:
    """The level of ``text``, as prose in its main language; None where it holds no words."""
    spans = sentences(text)
    if detect(text) == "zh":
        counts = [len(_HAN.findall(text[start:end])) for start, end in spans]
        counts = [count for count in counts if count]
        return (
            ReadingLevelPart(ReadingScale.CHARACTERS, round(sum(counts) / len(counts), 1), len(counts))
            if counts
            else None
        )
    read = [sentence for start, end in spans if (sentence := _WORD.findall(text[start:end]))]
    words = [word for sentence in read for word in sentence]
    if not words:
        return None
    a_sentence, a_word, less = FORMULA
    grade = a_sentence * len(words) / len(read) + a_word * sum(map(syllables, words)) / len(words) - less
    return ReadingLevelPart(ReadingScale.GRADE, round(max(grade, 0.0), 1), len(read))


def syllables(word: str) -> int:
    """How many syllables an English word has, by rule; at least one."""
    plain = word.lower().replace("'", "").replace("’", "")
    count = len(_VOWELS.findall(plain))
    if count > 1 and _SILENT.search(plain):
        count -= 1
    return max(count, 1)
