"""Every manifest that comes with the project can be used as it is."""

from __future__ import annotations

from pathlib import Path

from localmed.domain import Kind
from localmed.ingest import readers
from localmed.ingest.manifest import load

CORPORA = Path(__file__).parents[2] / "corpora"
MANIFESTS = [path for path in CORPORA.glob("*.toml") if path.stem not in ("starter_questions", "demo_model")]
KINDS = {
    "omim": Kind.BOOK,
    "oncokb": Kind.BOOK,
    "medqa_textbooks": Kind.BOOK,
    "wikipedia": Kind.WIKI,
    "pubmed": Kind.LITERATURE,
    "medquad": Kind.LEAFLET,
}


def test_each_manifest_says_what_it_is_and_all_of_the_papers_databases_are_there() -> None:
    assert set(KINDS) <= {path.stem for path in MANIFESTS}
    for path in MANIFESTS:
        manifest = load(path)
        collection = manifest.collection
        assert collection.name == path.stem
        assert collection.kind is KINDS.get(path.stem, collection.kind)
        assert collection.kind is not Kind.OTHER
        assert collection.licence
        assert collection.source
        assert manifest.reader in ("", *readers.MODULES)
