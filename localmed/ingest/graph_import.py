"""Imports terminologies: files become terms of the concept graph instead of passages.

The rules are those of ``pipeline.py``: unchanged files are not read again, a refused file keeps its stored terms,
refused lines are listed, nothing is served before the swap. Each file is a document of the catalogue (without
passages), so it is listed, removed, superseded and withdrawn like any other.

The manifest's options say which files belong and how each is read; facts about them are as for any document::

    [options.files."ONC_High*.csv"]          # a pattern for the file's name; a folder's other files are left alone
    reader = "interactions"                  # else the manifest's reader, else by extension
    severity = "high priority"               # for the reader
    [documents."ONC_High_Priority.csv"]
    title = "ONC high-priority list"         # the source shown with a relation, with
    edition = "2014"                         # its date; an OBO file states its own
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import Any

from localmed.domain import Document, digest, message
from localmed.domain.errors import BadSettings, InputError
from localmed.ingest import readers
from localmed.ingest.duplicates import Twins
from localmed.ingest.opening import Part
from localmed.ingest.parsed import Fault, FieldMapping, SourceRecord
from localmed.ingest.parsing import Parser
from localmed.ingest.pipeline import Importer
from localmed.ingest.sources import Line, Source, find_sources
from localmed.library import graph, layout
from localmed.library.catalogue import ImportedFile
from localmed.library.library import Builder
from localmed.library.state import State
from localmed.library.terms import Term

RECIPE = 1  # increase when terms are stored differently: every file is then read again
BATCH = 2_000  # terms between two steps of the progress bar: ~0.1 s
_BY_SUFFIX = {".obo": "obo", ".rrf": "umls", ".tsv": "crossrefs"}
SUFFIXES = (*_BY_SUFFIX, ".csv", ".txt")


class GraphImporter(Importer):
    """One import into one collection of kind "graph"."""

    def _list(self, paths: Sequence[Path]) -> tuple[list[Source], list[Line]]:
        """The files under ``paths``; of a folder only those that the manifest names."""
        named = self._manifest.reader
        if named and named not in readers.GRAPHS:
            raise BadSettings("graph.reader", reader=named, readers=readers.GRAPHS)
        sources, skipped = find_sources(paths, SUFFIXES)
        chosen = [one for one in sources if not (one.root and self._patterns) or self._own_options(one) is not None]
        others = [str(source.path) for source in sources if source not in chosen]
        return chosen, [*skipped, *(Line(path, "skipped", message("import.not_in_manifest")) for path in others)]

    @property
    def _patterns(self) -> Mapping[str, Any]:
        patterns = self._manifest.mapping.options.get("files", {})
        if not isinstance(patterns, dict) or not all(isinstance(options, dict) for options in patterns.values()):
            raise BadSettings("graph.options_files")
        return patterns

    def _own_options(self, source: Source) -> Mapping[str, Any] | None:
        name = source.path.name
        return next((options for pattern, options in self._patterns.items() if fnmatch(name, pattern)), None)

    def _mapping(self, source: Source) -> FieldMapping:
        """The manifest's mapping, in which the file's own options override the general ones."""
        mapping = self._manifest.mapping
        general = {name: value for name, value in mapping.options.items() if name != "files"}
        return FieldMapping(mapping.fields, {**general, **(self._own_options(source) or {})})

    def _reader(self, source: Source) -> str:
        named = str(self._mapping(source).options.get("reader") or self._manifest.reader)
        name = named or _BY_SUFFIX.get(source.path.suffix.lower(), "")
        if name not in readers.GRAPHS:
            code = "graph.no_reader" if name else "graph.reader_unknown"
            raise InputError(code, name=source.path.name, reader=name, readers=readers.GRAPHS)
        return name

    def _recipe(self, source: Source) -> str:
        try:
            reader = self._reader(source)
        except InputError:
            reader = ""
        version = readers.VERSIONS.get(reader, 0)
        described = self._manifest.recipe(self._manifest.facts(source)), self._manifest.collection.title
        return digest("graph", str(RECIPE), reader, str(version), *described)

    # --- one file --------------------------------------------------------------------------------------------------

    def _read_all(self, builder: Builder, state: State, unread: Sequence[Source]) -> None:
        twins = Twins(builder.catalogue, [str(source.path) for source in unread])
        with Parser() as parser:
            for source in unread:
                self._put(builder, state, parser, twins, source)

    def _put(self, builder: Builder, state: State, parser: Parser, twins: Twins, source: Source) -> None:
        path, recipe, sha256, faults = str(source.path), self._recipe(source), "", list[Fault]()
        try:
            sha256 = builder.keep(source.path, self._settings.read.file_bytes, source.opened)
            document = self._store_terms(builder, parser, source, sha256, faults)
        except InputError as error:
            self._quarantine(state, (path, sha256, recipe), (), error)
            self._progress(source.bytes, source.path.name)
        else:
            self._quarantine(state, (path, sha256, recipe), faults)
            for old in twins.moved(document):
                self._move(builder, old, document.id)
                what = message("import.moved", what=message("import.the_document"), source=old.source)
                self.report.lines.append(Line(path, "note", what))
            self._enter_file(builder, document, ImportedFile(self._name, path, sha256, recipe, source.root))

    def _enter_file(self, builder: Builder, document: Document, file: ImportedFile) -> None:
        """Enter a stored file; documents of other readers from before are removed."""
        before = builder.catalogue.file(file.collection, file.path)
        builder.remove(
            stored.id for stored in builder.catalogue.of_file(self._name, file.path) if stored.id != document.id
        )
        self._store_document(builder, file, document, builder.catalogue.by_ids([document.id]).get(document.id))
        builder.catalogue.put_file(replace(file, root=file.root or (before.root if before else "")))
        self.report.lines.append(Line(file.path, "read", document.notes[0], 1))

    def _store_terms(
        self, builder: Builder, parser: Parser, source: Source, sha256: str, faults: list[Fault]
    ) -> Document:
        """Store the terms of ``source``, collect ``faults``; raise ``InputError``, with the graph unchanged, if it has
        no term.
        """
        document, name, done, count = self._described(source, sha256), source.path.name, 0, 0
        file, edition = self._settings.data / layout.FILES / sha256, document.edition
        items = parser.terms(file, document.media_type, self._mapping(source), self._settings.read, name)
        terms = builder.graph.writable()
        number = terms.put_source(graph.Source(document.id, self._name, document.title, edition))
        try:
            while batch := list(islice(items, BATCH)):
                faults += [item for item in batch if isinstance(item, Fault)]
                part = [item for item in batch if isinstance(item, Term)]
                terms.add(number, part)
                count += len(part)
                edition = edition or next((term.edition for term in part if term.edition), "")
                end = max([done, *(term.end for term in part)])
                self._progress(end - done, name)
                done = end
            self._progress(max(0, source.bytes - done), name)
            if not count:
                if faults:
                    raise InputError("graph.no_terms_because", name=name, first=faults[0].message)
                raise InputError("graph.no_terms", name=name)
            concepts, relations = terms.keep(number, edition)
        except BaseException:
            terms.undo()
            raise
        return replace(document, edition=edition, notes=(message("graph.stored", terms=concepts, relations=relations),))

    def _described(self, source: Source, sha256: str) -> Document:
        own, edition = self._manifest.collection, str(self._mapping(source).options.get("edition", ""))
        record = SourceRecord("", own.title, (), edition, own.language or "en")
        part = Part(sha256, self._reader(source), source.path.name)
        completed = self._descriptions.complete(record, source)
        return self._descriptions.document(completed, source, part, digest("graph", sha256))
