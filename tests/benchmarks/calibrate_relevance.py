"""Fits the starter relevance judge (localmed/retrieval/relevance.toml) and tells how it does on what was left out.

Questions and libraries: the starter corpus with its own, guidelines of ours and of two other authors (``plain``;
``dev``, ``held``; ``ward_dev``), three public guidelines with ours, Chinese known items over them, PubMedQA and a part
of MedQuAD. A question with an answer is asked twice, the second time without the documents that hold it: then it has
none. Left out of that second time are the starter corpus, in which several documents say the same, other hypertension
guides, and what ``answered_elsewhere.toml`` names. Twenty passages of one search are read. Questions about another
population, disease or purpose are left to ``clinical.qualifiers`` (plain.py).

The curve from which the threshold comes is of judges that were fitted without the question's document; MedQuAD stays
out of it, since a library that holds every other disease of a kind is no ward's. Reported is also what becomes of an
author's questions with judge and threshold from the others'. The Chinese known items are reported only: they were
written to share few words with their texts, for search, and with them in the fit half as many of the other Chinese
questions are answered at equal risk.

``python -m tests.benchmarks.calibrate_relevance DATA`` writes the coefficients, the curve of risk and coverage as CSV.
"""

from __future__ import annotations

import csv
import json
import random
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from localmed.config import AskSettings, Settings
from localmed.domain import Collection, Kind, SearchFilter
from localmed.ingest import manifest
from localmed.ingest.manifest import Manifest
from localmed.library.library import Library
from localmed.models.bert import BertEncoder
from localmed.models.e5 import E5
from localmed.models.minilm import MiniLM
from localmed.operations import importing
from localmed.retrieval import relevance
from localmed.retrieval.relevance import Fitted, Point
from localmed.retrieval.signals import NAMES
from localmed.session import Session
from localmed.training.relevance import EVIDENCE, Judged, Labelled, area, curve, fit, left_out, plain, probability, read
from tests.benchmarks import guidelines
from tests.benchmarks.common import Place, Row, work_folder
from tests.benchmarks.known_item import MEDQUAD, PUBMEDQA
from tests.fakes import opened

SEED, FOLDS = 3, 10
READ = 20  # passages of a search
PUBMED, PUBMED_QUESTIONS, MEDQUAD_FILES, MEDQUAD_QUESTIONS = 200, 120, 220, 120
HERE = Path(__file__).parent
CORPORA = HERE.parents[1] / "corpora"
AUTHORS = {"plain": "first author", "dev": "second author", "held": "second author", "ward_dev": "third author"}
WARD = Manifest(Collection("ward", "Ward", priority=10, kind=Kind.GUIDELINE))
KNOWN = "Chinese known items"
REMOVED, WRITTEN = "its document left out", "written as such"  # types of questions without an answer
TARGET = Path(relevance.__file__).with_name("relevance.toml")
CURVE = HERE / "risk_coverage.csv"
HEAD = """\
# Coefficients of the starter relevance judge. A row holds for its encoder, reranker and language alone. curve:
# [threshold, answered of the questions with an answer, how many these are, answered of those without, how many these
# are], by judges fitted without the question's document, no MedQuAD. Do not edit by hand.
#
# From what questions: see tests/benchmarks/calibrate_relevance.py. Its functions made this of signals that an earlier
# version of it had written down; no run of the script as it is now has come to its end. After a look at what was
# answered, 20 texts that other documents answer too (answered_elsewhere.toml) and the starter corpus's questions were
# taken out of those whose document is left out, so that the curve flatters the judge by what that look let through.
"""


@dataclass(frozen=True)
class Asked:
    """A question as it was judged, whose it is, of which document, and what makes it ``unanswerable`` (or "")."""

    author: str
    row: Judged
    unanswerable: str = ""


class Remembering(BertEncoder):
    """Keeps token vectors: the same passages are reranked for hundreds of questions."""

    _kept: dict[tuple[int, ...], Any]

    def token_vectors(self, pieces: Sequence[list[int]]) -> list[Any]:
        """See ``BertEncoder.token_vectors``."""
        self._kept = getattr(self, "_kept", {})
        fresh = [row for row in pieces if tuple(row) not in self._kept]
        self._kept |= {tuple(row): one for row, one in zip(fresh, super().token_vectors(fresh), strict=True)}
        return [self._kept[tuple(row)] for row in pieces]


class RememberingE5(Remembering, E5):
    """multilingual-e5-small so."""


class RememberingMiniLM(Remembering, MiniLM):
    """The same of MiniLM."""


ENCODERS = (RememberingE5, RememberingMiniLM)


# --- questions and libraries ------------------------------------------------------------------------------------------


def _questions(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = tomllib.loads(path.read_text("utf-8"))["question"] if path.exists() else []
    return rows


def ward(session: Session, place: Place) -> list[tuple[str, Labelled]]:
    """The starter corpus and all guidelines written for these benchmarks, with their questions."""
    del place
    _starter(session)
    importing.import_paths(session, [file for name in AUTHORS for file in sorted((HERE / name).glob("*.md"))], WARD)
    starter = _questions(CORPORA / "starter_questions.toml")
    labelled = [("starter", Labelled(row["text"], (row["evidence"],) if row["answerable"] else ())) for row in starter]
    for name, author in AUTHORS.items():
        for file in ("answerable", "plain", "unanswerable"):
            rows = _questions(HERE / name / f"{file}.toml")
            labelled += [
                (author, Labelled(row["text"], tuple(row.get("evidence") or row.get("must") or ()))) for row in rows
            ]
    return labelled


def public(session: Session, place: Place) -> list[tuple[str, Labelled]]:
    """The starter corpus and the public guidelines, with our questions about these, and Chinese known items."""
    guidelines.build(session, place)
    ours = [
        ("guidelines", Labelled(row["text"], (row["evidence"],) if row["answerable"] else ()))
        for row in guidelines.questions()
    ]
    known = [row for half in ("dev", "held") for row in _questions(HERE / "zh_known" / f"{half}.toml")]
    return ours + [(KNOWN, Labelled(row["text"], (row["evidence"],))) for row in known]


def pubmedqa(session: Session, place: Place) -> list[tuple[str, Labelled]]:
    """Abstracts of PubMedQA with their questions."""
    records = json.loads((place.data / "pubmedqa" / "ori_pqal.json").read_text("utf-8"))
    names = sorted(records)
    random.Random(SEED).shuffle(names)
    source = place.work / f"pubmedqa-{PUBMED}.json"
    source.write_text(json.dumps({name: records[name] for name in names[:PUBMED]}), "utf-8")
    importing.import_paths(session, [source], PUBMEDQA)
    chosen = random.Random(SEED + 2).sample(names[:PUBMED], PUBMED_QUESTIONS)
    answers = {name: (" ".join(records[name]["CONTEXTS"])[:EVIDENCE],) for name in chosen}
    return [("PubMedQA", Labelled(records[name]["QUESTION"], answers[name])) for name in chosen]


def medquad(session: Session, place: Place) -> list[tuple[str, Labelled]]:
    """A part of NINDS, CDC and GARD in MedQuAD, with questions about it."""
    files = [file for file in sorted(place.medquad().rglob("*.xml")) if file.parent.name[0] in "269"]
    folder = place.work / f"medquad-{MEDQUAD_FILES}"
    folder.mkdir(exist_ok=True)
    labelled = []
    for file in random.Random(SEED + 4).sample(files, MEDQUAD_FILES):
        (folder / f"{file.parent.name}-{file.name}").write_bytes(file.read_bytes())
        for pair in ElementTree.parse(file).iter("QAPair"):
            text, answer = ((pair.findtext(tag) or "").strip() for tag in ("Question", "Answer"))
            if text and answer:
                labelled.append(("MedQuAD", Labelled(text, (answer[:EVIDENCE],))))
    importing.import_paths(session, [folder], MEDQUAD)
    return random.Random(SEED + 5).sample(labelled, MEDQUAD_QUESTIONS)


def _starter(session: Session) -> None:
    for file in sorted(CORPORA.glob("starter-*.toml")):
        folder = CORPORA / "starter" / file.stem.removeprefix("starter-")
        importing.import_paths(session, [folder], manifest.load(file))


# --- asking -----------------------------------------------------------------------------------------------------------


def judged_twice(session: Session, questions: Sequence[tuple[str, Labelled]]) -> tuple[list[Asked], tuple[str, str]]:
    """Each question with the passages found for it, those with an answer a second time; and encoder and reranker."""
    rows, names = list[Asked](), ("", "")
    shared = set(tomllib.loads((HERE / "answered_elsewhere.toml").read_text("utf-8"))["texts"].splitlines())
    with session.workspace() as workspace:
        library = workspace.library
        texts = whole_texts(library)
        kinds = {row["text"]: row["kind"] for name in AUTHORS for row in _questions(HERE / name / "unanswerable.toml")}

        def judged(question: Labelled, filters: SearchFilter) -> Judged:
            nonlocal names
            result = workspace.search(question.text, filters, READ)
            if result.dense:
                names = session.site.encoder.identity.slug, result.reranker
            return read(question, result.hits, library.lexical)

        for author, question in questions:
            if not question.evidence and question.text in shared:
                continue
            holders = [name for name, text in texts.items() if _holds(text, question)] if question.evidence else []
            title = " ".join(sorted(texts[name][0] for name in holders)) or question.text
            own = replace(question, group=f"{author}: {title}")
            rows.append(
                Asked(author, judged(own, SearchFilter()), "" if holders else kinds.get(question.text, WRITTEN))
            )
            if holders and author != "starter" and question.text not in shared and not _common(author, texts, holders):
                titles = {texts[name][0] for name in holders}
                titles |= set(guidelines.TITLES.values()) if titles & set(guidelines.TITLES.values()) else set()
                others = tuple(name for name, (other, _) in texts.items() if other not in titles)
                removed = judged(replace(own, evidence=()), SearchFilter(documents=others))
                rows.append(Asked(author, removed, REMOVED))
    return rows, names


def whole_texts(library: Library) -> dict[str, tuple[str, str]]:
    """The title of each document and all it says, to be compared."""
    documents = [one for row in library.catalogue.collections() for one in library.catalogue.documents(row.name)]
    passages = {one.id: library.lexical.of_document(one.id) for one in documents}
    return {one.id: (one.title, plain(" ".join(p.in_context for p in passages[one.id]))) for one in documents}


def _holds(text: tuple[str, str], question: Labelled) -> bool:
    return all(plain(words)[:EVIDENCE] in text[1] for words in question.evidence)


def _common(author: str, texts: dict[str, tuple[str, str]], holders: Sequence[str]) -> bool:
    """Whether other documents on the same subject are left."""
    titles = {texts[name][0] for name in holders}
    return author in ("guidelines", KNOWN) and not any(
        title in guidelines.TITLES.values() or "outpatient" in title.lower() for title in titles
    )


def gathered(place: Place, encoder: BertEncoder) -> tuple[list[Asked], tuple[str, str]]:
    """Every question over its library."""
    rows, names = list[Asked](), ("", "")
    for build in (ward, public, pubmedqa, medquad):
        data = place.work / f"{encoder.identity.name}-{build.__name__}"
        with opened(Settings(data), encoder) as session:
            own, served = judged_twice(session, build(session, place))
        rows, names = rows + own, served if served[0] else names
    return rows, names


# --- what is written and reported -------------------------------------------------------------------------------------

Key = tuple[str, str, str]  # encoder, reranker, language


def fits(rows: Sequence[Asked], names: tuple[str, str]) -> dict[Key, tuple[list[int], list[Asked]]]:
    """What is fitted: for which encoder, reranker and language, which signals, on what."""
    known = {language: [one for one in rows if one.row.language == language] for language in ("en", "zh")}
    every, words = list(range(len(NAMES))), [place for place, name in enumerate(NAMES) if name != "score"]
    if names[0].startswith("all-MiniLM"):
        return {(*names, "en"): (every, known["en"]), ("", "", "en"): (words, known["en"]),
                ("", "", "zh"): (words, known["zh"])}  # fmt: skip
    return {(*names, language): (every, known[language]) for language in ("en", "zh")}


def for_curve(scored: Sequence[tuple[Judged, float]]) -> list[tuple[Judged, float]]:
    """Without MedQuAD."""
    return [pair for pair in scored if not pair[0].question.group.startswith("MedQuAD")]


def fitted_on(own: Sequence[Asked]) -> list[Asked]:
    """Without the questions that are reported only."""
    return [one for one in own if one.author != KNOWN]


def written(key: Key, columns: Sequence[int], own: Sequence[Asked]) -> str:
    """A row of ``relevance.toml``."""
    rows = [one.row for one in fitted_on(own)]
    beta = fit(rows, columns)
    weights = ", ".join(f"{NAMES[column]} = {beta[place]:.3f}" for place, column in enumerate(columns))
    points = ", ".join(
        str([point.level, point.answered, point.answerable, point.wrong, point.unanswerable])
        for point in curve(for_curve(left_out(rows, columns)))
    )
    head = "".join(
        f'{name} = "{value}"\n' for name, value in zip(("encoder", "reranker", "language"), key, strict=True)
    )
    return f"\n[[fitted]]\n{head}intercept = {beta[-1]:.3f}\nweights = {{ {weights} }}\ncurve = [{points}]\n"


def reported(key: Key, columns: Sequence[int], own: Sequence[Asked]) -> list[Row]:
    """Coverage at the site's risk, and the area under the curve, by author; judge and threshold are the others'."""
    settings, name = AskSettings(), f"{key[0] or 'words alone'}, {key[2]}"
    authors = {id(one.row): one.author for one in own}
    fitting = fitted_on(own)
    whole = left_out([one.row for one in fitting], columns)
    apart = left_out([one.row for one in fitting], columns, lambda row: authors[id(row)])
    beta = fit([one.row for one in fitting], columns)
    apart += [(one.row, probability(one.row, columns, beta)) for one in own if one.author == KNOWN]
    figures = f"AURC {area(whole):.3f} by document, {area(apart):.3f} by author"
    table = [Row(f"relevance judge, {name}, all", "", figures, "-", f"{len(whole)} questions, half without an answer")]
    for author in dict.fromkeys(authors.values()):
        others = [one.row for one in fitting if one.author != author]
        judge = Fitted((), 0.0, curve(for_curve(left_out(others, columns))))
        level = judge.threshold(settings.risk, settings.confidence, settings.unanswerable)
        scored = [pair for pair in apart if authors[id(pair[0])] == author]
        if scored and {row.answerable for row in others} == {True, False}:
            table.append(row_of(f"{name}, {author}", level, curve_at(level, scored), area(scored)))
    return table


def by_type(key: Key, columns: Sequence[int], own: Sequence[Asked]) -> list[Row]:
    """For each type of questions without an answer: what becomes of it, with judge and threshold from the other types.

    The questions with an answer are those of all authors, each judged without its document.
    """
    settings, table = AskSettings(), list[Row]()
    fitting, name = fitted_on(own), f"{key[0] or 'words alone'}, {key[2]}"
    answerable = [one.row for one in fitting if one.row.answerable]
    for kind in sorted({one.unanswerable for one in fitting} - {""}):
        others = answerable + [one.row for one in fitting if one.unanswerable not in ("", kind)]
        if len(others) == len(answerable):
            continue
        left, beta = left_out(others, columns), fit(others, columns)
        level = Fitted((), 0.0, curve(for_curve(left))).threshold(
            settings.risk, settings.confidence, settings.unanswerable
        )
        theirs = [(one.row, probability(one.row, columns, beta)) for one in fitting if one.unanswerable == kind]
        scored = [pair for pair in left if pair[0].answerable] + theirs
        table.append(
            row_of(f"{name}, without an answer: {kind}", level, curve_at(level, scored), area(scored), "types")
        )
    return table


def curve_at(level: float, scored: Sequence[tuple[Judged, float]]) -> Point:
    """What is answered at one threshold."""
    kinds = [[chance >= level for row, chance in scored if row.answerable == kind] for kind in (True, False)]
    return Point(level, sum(kinds[0]), len(kinds[0]), sum(kinds[1]), len(kinds[1]))


def row_of(name: str, level: float, point: Point, under: float, others: str = "authors") -> Row:
    """What share is answered of the questions that have an answer, and of those that have none."""
    shares = f"{point.answered} of {point.answerable} with an answer, {point.wrong} of {point.unanswerable} without"
    how = f"judge and threshold {level} from the other {others}' questions; AURC {under:.3f}; passages by one search"
    return Row(f"relevance judge, {name}", "", f"answers {shares}", "-", how)


def export(place: Path, scored: dict[str, list[tuple[Judged, float]]]) -> None:
    """Write the curves of risk and coverage: at each question the share answered, and of those the share wrong."""
    with place.open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(("judge", "left out by", "threshold", "coverage", "risk"))
        for name, pairs in scored.items():
            wrong = 0
            for number, (row, chance) in enumerate(sorted(pairs, key=lambda pair: -pair[1]), 1):
                wrong += not row.answerable
                if number % 10 == 0 or number == len(pairs):
                    table.writerow(
                        (*name.split("|"), f"{chance:.3f}", f"{number / len(pairs):.3f}", f"{wrong / number:.4f}")
                    )


def run(place: Place) -> list[Row]:
    """A row for each author, left out of the fit; with both encoders."""
    parts = [fits(*gathered(place, encoder())) for encoder in ENCODERS]
    made = (report(key, *part[key]) for part in parts for key in part for report in (reported, by_type))
    return [row for rows in made for row in rows]


def main() -> None:
    """Write the coefficients and the curves, print the rows."""
    place = Place(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else work_folder())
    text, scored = HEAD, dict[str, list[tuple[Judged, float]]]()
    for encoder in ENCODERS:
        for key, (columns, own) in fits(*gathered(place, encoder())).items():
            text += written(key, columns, own)
            rows, authors = [one.row for one in fitted_on(own)], {id(one.row): one.author for one in own}
            name = f"{key[0] or 'words alone'} {key[2]}"
            scored[f"{name}|document"] = left_out(rows, columns)
            scored[f"{name}|author"] = left_out(rows, columns, lambda row, by=authors: by[id(row)])  # type: ignore[misc]
            for line in reported(key, columns, own):
                print(line.what, "|", line.measured, "|", line.how)
    TARGET.write_text(text, "utf-8")
    export(CURVE, scored)


if __name__ == "__main__":
    main()
