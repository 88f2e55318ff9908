"""Studies: documents as evidence on a claim, found by BM25 over title, abstract and MeSH (M-Eval, III-C), or by name.

A study is one document. The lexical index has title and text, the catalogue has MeSH headings: the best ``CANDIDATES``
passages by title and text are taken, and the BM25 score of their documents' MeSH headings is added (k1 and b as in
Tantivy, rarity from the index). A study that matches by MeSH headings alone is not found.

Withdrawn and superseded studies among the best are returned too, so that readers learn of them; the caller leaves them
out. Documents that are not yet effective are not found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from localmed.config import SearchSettings
from localmed.domain import STATED, Document, Kind, Passage, SearchFilter, Status
from localmed.domain.errors import UnknownName
from localmed.library.library import Library
from localmed.retrieval import titles

CANDIDATES = 200  # passages by title and text that MeSH may reorder: over ten times the studies wanted
STUDY_CHARACTERS = 6_000  # of one study; an abstract has 2,000, so only books and whole papers are cut
K1, B = 1.2, 0.75  # of BM25 (Robertson & Zaragoza 2009), as in Tantivy
TITLE_BOOST, TITLE_TERMS = 3.0, 64  # of a search for the document that a reference names
LEAST_ID = 6  # characters of a document's or passage's id


@dataclass(frozen=True, slots=True)
class Study:
    """A document as evidence, with its present status and the ``passages`` read, in order.

    ``planted``: a passage addresses a language model.
    """

    document: Document
    passages: tuple[Passage, ...]
    kind: Kind = Kind.OTHER
    planted: bool = False

    @property
    def text(self) -> str:
        """The text of its passages."""
        return "\n".join(passage.text for passage in self.passages)


@dataclass(frozen=True, slots=True)
class Reference:
    """A citation of an answer by its ``marker``.

    ``text``: its entry in the list of references, or its title; ``identifiers``: ``pmid:123`` and the like; ``id``: the
    beginning of a document's or passage's id of this library.
    """

    marker: str
    text: str = field(default="", repr=False)
    identifiers: tuple[str, ...] = ()
    id: str = ""


def find(
    library: Library, query: str, most: int, collections: tuple[str, ...], settings: SearchSettings
) -> tuple[Study, ...]:
    """The best studies in ``collections`` for ``query``: ``most`` in force, and the others among them."""
    if not collections:
        return ()
    filters = SearchFilter(collections, statuses=STATED)
    text, terms = query[: settings.query_characters], settings.query_terms
    rows = library.search_lexical(text, CANDIDATES, filters, settings.title_boost, terms)
    scores: dict[str, float] = {}
    for _, document, score in rows:
        scores.setdefault(document, score)  # of its best passage
    documents = library.catalogue.by_ids(scores)
    by_mesh = _mesh(library, text, documents.values(), terms)
    ranked = sorted(documents, key=lambda name: -(scores[name] + by_mesh[name]))
    by_passage = {passage: document for passage, document, _ in rows}
    studies: list[Study] = []
    for name in ranked:
        if most < 1:
            break
        study = _study(library, documents[name], [passage for passage, of in by_passage.items() if of == name])
        studies.append(study)
        most -= study.document.status is Status.CURRENT
    return tuple(studies)


def _mesh(library: Library, query: str, documents: Iterable[Document], most: int) -> dict[str, float]:
    """The BM25 score of each document's MeSH headings, 0 where it has none."""
    terms = library.lexical.terms(query, most)
    weights = dict(zip(terms, library.lexical.rarity(terms), strict=True))
    headings = {document.id: Counter(library.lexical.analyse(" ".join(document.mesh))) for document in documents}
    lengths = [count.total() for count in headings.values() if count]
    mean = sum(lengths) / len(lengths) if lengths else 1.0
    return {name: bm25(weights, count, mean) for name, count in headings.items()}


def bm25(weights: dict[str, float], counts: Counter[str], mean: float) -> float:
    """BM25 of a field; ``weights``: rarity of each query word; ``mean``: mean length in words."""
    long = K1 * (1 - B + B * counts.total() / mean)
    return sum(weight * counts[term] * (K1 + 1) / (counts[term] + long) for term, weight in weights.items())


# --- by name ----------------------------------------------------------------------------------------------------------


def named(library: Library, references: Sequence[Reference]) -> tuple[Study | None, ...]:
    """The study of each reference by id, identifier or title (``titles.named_by``), or ``None``.

    Documents that are not yet effective do not count.
    """
    identified = _identified(library, {name for reference in references for name in reference.identifiers})
    studies = (_named(library, reference, identified) for reference in references)
    return tuple(None if study and study.document.status is Status.PENDING else study for study in studies)


def _identified(library: Library, names: set[str]) -> dict[str, Document]:
    """The document of each identifier, preferably the edition in force, never one not yet effective."""
    documents = [(library.status(document.id), document) for document in library.catalogue.identified(names)]
    documents.sort(key=lambda pair: pair[0] is Status.CURRENT)  # the last of a name is kept
    return {
        name: document
        for status, document in documents
        if status is not Status.PENDING
        for name in document.identifiers
    }


def _named(library: Library, reference: Reference, identified: dict[str, Document]) -> Study | None:
    if len(reference.id) >= LEAST_ID and (study := _by_id(library, reference.id)):
        return study
    document = next((identified[name] for name in reference.identifiers if name in identified), None)
    document = document or _titled(library, reference.text)
    return _study(library, document) if document else None


def _by_id(library: Library, prefix: str) -> Study | None:
    try:
        passage = library.passage(prefix)
        return _study(library, library.catalogue.document(passage.document_id), [passage.id])
    except UnknownName:
        pass
    try:
        return _study(library, library.catalogue.document(prefix))
    except UnknownName:
        return None


def _titled(library: Library, text: str) -> Document | None:
    """The document named by title in ``text``."""
    if not text.strip():
        return None
    rows = library.search_lexical(text, CANDIDATES, SearchFilter(statuses=STATED), TITLE_BOOST, TITLE_TERMS)
    documents = library.catalogue.by_ids(dict.fromkeys(document for _, document, _ in rows)).values()
    held = (replace(document, status=library.status(document.id)) for document in documents)
    return titles.named_by(text, [document for document in held if document.status is not Status.PENDING])


def _study(library: Library, document: Document, first: Sequence[str] = ()) -> Study:
    """``document`` with all passages, or with the ``first`` and as many others as fit."""
    whole = library.document_passages(document.id)
    place = {identifier: number for number, identifier in enumerate(first)}
    kept, left = set[str](), STUDY_CHARACTERS
    for passage in sorted(whole, key=lambda passage: place.get(passage.id, len(place))):
        if not kept or len(passage.text) <= left:
            kept.add(passage.id)
            left -= len(passage.text)
    current = replace(document, status=library.status(document.id))
    kind = library.catalogue.collection(document.collection).kind
    return Study(current, tuple(passage for passage in whole if passage.id in kept), kind)
