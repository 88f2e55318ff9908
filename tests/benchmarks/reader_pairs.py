"""Questions with windows of text that answer them and windows that do not, for the reader (``train_reader.py``).

From public question answering with free licences: COVID-QA (Apache-2.0; medical English), XQuAD (CC BY-SA 4.0; English
and Chinese), CMRC 2018 (CC BY-SA 4.0; Chinese), DRCD (CC BY-SA 3.0; traditional Chinese) and MedQuAD (CC BY 4.0). A
window is one to two sentences, cut as the library cuts them, with the document's title before it. The window that
answers stands against others of its document and the likest ones by words (TF-IDF) of other documents. Of MedQuAD,
whose questions are made by template, the wording is ours, and against it stand another question's answer about the same
disease and the same question's answer about another. A part of the groups asks with another name or number in the
question than the text has: then no window answers.

Left out whole, by title, to report on: a quarter of XQuAD's articles (in both languages), of CMRC's and of COVID-QA's,
and of MedQuAD's diseases.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from localmed.language import sentences, words

FILES = {
    "COVID-QA": ("200423_covidQA.json",),
    "XQuAD en": ("xquad.en.json",),
    "XQuAD zh": ("xquad.zh.json",),
    "CMRC": ("cmrc2018_dev.json", "cmrc2018_trial.json"),
    "DRCD": ("DRCD_dev.json", "DRCD_test.json"),
}
MOST = {"COVID-QA": 1400, "XQuAD en": 1200, "XQuAD zh": 700, "CMRC": 2400, "DRCD": 1200, "MedQuAD": 2600}
LEFT_OUT = 4  # one title in so many; none of DRCD
SWAPPED = 0.2  # of the groups are asked with another name or number than stands there
NEGATIVES = 3
LIKEST = 8  # of the windows by words, among which one is drawn
LONG = {True: 320, False: 130}  # characters of a window at most, in English and in Chinese
SEED = 11
WORDINGS = {
    "symptoms": ("What are the symptoms of {}?", "how does {} present", "signs of {}", "How do I recognise {}?"),
    "treatment": ("How is {} treated?", "what do we give for {}", "management of {}?", "Treatment of {}"),
    "causes": ("What causes {}?", "why do people get {}", "cause of {}", "Where does {} come from?"),
    "exams and tests": ("How is {} diagnosed?", "which tests for {}", "workup for suspected {}?", "how to confirm {}"),
    "inheritance": ("Is {} inherited?", "how is {} passed on in a family", "inheritance of {}"),
    "frequency": ("How common is {}?", "how many people are affected by {}", "prevalence of {}?"),
    "outlook": ("What is the outlook for {}?", "prognosis of {}", "how do people with {} do in the long run?"),
    "prevention": ("How can {} be prevented?", "prevention of {}", "what protects against {}?"),
    "susceptibility": ("Who is at risk of {}?", "risk factors for {}", "who gets {}"),
    "complications": ("What are the complications of {}?", "what can go wrong in {}?"),
    "information": ("What is {}?", "definition of {}", "what do we mean by {}?"),
    "genetic changes": ("Which genes are changed in {}?", "gene of {}?", "genetic cause of {}"),
}
_NAME = re.compile(r"(?<!^)(?<=[a-z,] )[A-Z][A-Za-z-]{2,}(?: [A-Z][A-Za-z-]+)*")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")


@dataclass(frozen=True)
class Window:
    """A piece of text; ``answer`` are the places of the answer in it, (0, 0) of none."""

    title: str
    text: str
    answer: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Group:
    """A question with windows. ``answered``: whether the first one answers; no other does."""

    source: str
    question: str
    windows: tuple[Window, ...]
    answered: bool


@dataclass(frozen=True)
class Entry:
    """A question over a text (``place`` of its paragraph) and where the answer stands there."""

    question: str
    place: int
    start: int
    end: int


def held_back(title: str) -> bool:
    """Whether what has this title is left out."""
    return int(sha256(title.encode()).hexdigest(), 16) % LEFT_OUT == 0


def groups(folder: Path, medquad: Path, left_out: bool) -> list[Group]:
    """All groups of what is trained on, shuffled, or of what is left out."""
    random_numbers = random.Random(SEED)
    made: list[Group] = []
    for source, names in FILES.items():
        if left_out and source == "DRCD":
            continue
        own = list(_extractive(source, [folder / name for name in names], left_out, random_numbers))
        random_numbers.shuffle(own)
        made += own[: MOST[source]]
    own = list(_medquad(medquad, left_out, random_numbers))
    random_numbers.shuffle(own)
    made += own[: MOST["MedQuAD"]]
    random_numbers.shuffle(made)
    return made


def _extractive(source: str, paths: Sequence[Path], left_out: bool, draw: random.Random) -> Iterator[Group]:
    texts, titles, entries = list[str](), list[str](), list[Entry]()
    for path in paths:
        for article in json.loads(path.read_text("utf-8"))["data"]:
            for paragraph in article["paragraphs"]:
                title = article.get("title") or paragraph["context"].strip().split("\n")[0][:120]
                if (held_back(title.casefold()) and source != "DRCD") is not left_out:
                    continue
                for question in paragraph["qas"]:
                    answer = question["answers"][0]
                    start = int(answer["answer_start"])
                    entries.append(Entry(question["question"], len(texts), start, start + len(answer["text"])))
                texts.append(paragraph["context"])
                titles.append(title.replace("_", " "))
    pool = [(place, span) for place, text in enumerate(texts) for span in _windows(text, draw)]
    likest = Likest([texts[place][slice(*span)] for place, span in pool])
    by_place = defaultdict(list)
    for number, (place, _) in enumerate(pool):
        by_place[place].append(number)
    names = [name for entry in entries for name in _NAME.findall(entry.question)]
    draw.shuffle(entries)
    for entry in entries[: 2 * MOST[source]]:
        text, title = texts[entry.place], titles[entry.place]
        window = _around(text, entry, draw)
        if not window:
            continue
        answer = text[entry.start : entry.end].strip()
        right = Window(
            title, text[slice(*window)], (max(0, entry.start - window[0]), min(entry.end, window[1]) - window[0])
        )

        def others(numbers: Sequence[int], answer: str = answer) -> list[Window]:
            windows = [(titles[pool[n][0]], texts[pool[n][0]][slice(*pool[n][1])]) for n in numbers]
            return [Window(title, text) for title, text in windows if answer.casefold() not in text.casefold()]

        numbers = likest.ranked(entry.question)
        same = set(by_place[entry.place])
        near = others([n for n in by_place[entry.place] if not _overlap(pool[n][1], window)])
        order = {n: at for at, n in enumerate(numbers)}
        own = others(
            sorted((n for n in same if not _overlap(pool[n][1], (entry.start, entry.end))), key=order.__getitem__)[:6]
        )
        far = others([n for n in numbers[:60] if n not in same])[:LIKEST]
        if left_out:
            yield Group(source, entry.question, (right, *near[:12], *far[:4]), True)
            continue
        wrong = draw.sample(own, min(2, len(own))) + draw.sample(far, min(2, len(far)))
        swapped = _swapped(entry.question, names, text, draw) if draw.random() < SWAPPED else ""
        if swapped:
            yield Group(source, swapped, (Window(title, right.text), *wrong[:1]), False)
        yield Group(source, entry.question, (right, *wrong[:NEGATIVES]), True)


def _windows(text: str, draw: random.Random) -> Iterator[tuple[int, int]]:
    """Of each sentence: itself, or with the next one."""
    spans, most = sentences(text), _most(text)
    for place, (start, end) in enumerate(spans):
        if place + 1 < len(spans) and draw.random() < 0.4 and spans[place + 1][1] - start <= most:
            end = spans[place + 1][1]
        if end - start > 8:
            yield start, min(end, start + most)


def _around(text: str, entry: Entry, draw: random.Random) -> tuple[int, int] | None:
    spans, most = sentences(text), _most(text)
    held = [place for place, (start, end) in enumerate(spans) if end > entry.start and start < entry.end]
    if not held:
        return None
    start, end = spans[held[0]][0], spans[held[-1]][1]
    chance = draw.random()
    if chance < 0.2 and held[0]:
        start = spans[held[0] - 1][0]
    elif chance < 0.45 and held[-1] + 1 < len(spans):
        end = spans[held[-1] + 1][1]
    if end - start > most:
        start, end = spans[held[0]][0], spans[held[-1]][1]
    if end - start > most:
        start = max(start, min(entry.start - most // 4, end - most))
    return start, min(end, start + most)


def _most(text: str) -> int:
    return LONG[sum(map(str.isascii, text)) > len(text) / 2]


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _swapped(question: str, names: Sequence[str], text: str, draw: random.Random) -> str:
    """The question with another name or number; "" where it has none."""
    for name in _NAME.findall(question):
        other = draw.choice(names)
        if other.casefold() not in text.casefold():
            return question.replace(name, other)
    for number in _NUMBER.findall(question):
        other = str(int(float(number.replace(",", ""))) + draw.choice((-7, -3, 2, 5, 11, 40)))
        if other not in text:
            return question.replace(number, other)
    return ""


class Likest:
    """Texts by likeness of words to a question."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._vectors = TfidfVectorizer(analyzer=lambda text: words(text), sublinear_tf=True)
        self._matrix = self._vectors.fit_transform(texts)

    def ranked(self, question: str) -> list[int]:
        """All places, likest first."""
        scores = (self._matrix @ self._vectors.transform([question]).T).toarray().ravel()
        return list(np.argsort(-scores, kind="stable").tolist())


def _medquad(folder: Path, left_out: bool, draw: random.Random) -> Iterator[Group]:
    answers: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for path in sorted(folder.rglob("*.xml")):
        root = ElementTree.parse(path)
        focus = (root.findtext("Focus") or "").strip()
        for pair in root.iter("QAPair"):
            element, text = pair.find("Question"), (pair.findtext("Answer") or "").strip()
            kind = element.get("qtype", "") if element is not None else ""
            if focus and kind in WORDINGS and text and held_back(focus.casefold()) is left_out:
                pieces = [text[start:end] for start, end in sentences(text[:1500])]
                pieces = [one for one in pieces if 30 < len(one) <= LONG[True] and not one.endswith("?") and _says(one)]
                if pieces:
                    answers[focus].setdefault(kind, pieces)
    foci = [focus for focus in answers if len(answers[focus]) > 1]
    draw.shuffle(foci)
    likest, every = Likest(foci), list(range(len(foci)))

    def window(focus: str, kind: str) -> Window:
        pieces = answers[focus][kind][:5]
        place = draw.randrange(len(pieces))
        both = " ".join(pieces[place : place + 2])
        return Window(focus, both if draw.random() < 0.4 and len(both) <= LONG[True] else pieces[place])

    for focus in foci[: 2 * MOST["MedQuAD"]]:
        kind = draw.choice(sorted(answers[focus]))
        question = draw.choice(WORDINGS[kind]).format(focus if draw.random() < 0.5 else focus.lower())
        near = [foci[n] for n in likest.ranked(focus)[1:6]] + [foci[draw.choice(every)]]
        others = [window(focus, other) for other in sorted(answers[focus]) if other != kind]
        elsewhere = [window(other, kind) for other in near if kind in answers[other]]
        draw.shuffle(others)
        yield Group("MedQuAD", question, (window(focus, kind), *others[:1], *elsewhere[:2]), True)


def _says(sentence: str) -> bool:
    return "Human Phenotype Ontology" not in sentence and "MedlinePlus" not in sentence and "resources" not in sentence
