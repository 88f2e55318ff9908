"""The sources of an answer that was kept: shown from the answer itself, after its generation and its document are gone.

What a reader may not read is decided by the catalogue, not by what the file says of itself: it may have been altered.

A kept answer (``kept/``), the output of ``--json`` and a recording hold the text, file, page and boxes of everything
they cite. The original that a page is drawn from stays as long as an answer under ``kept/`` names it
(``library/originals.py``); of another file it may have been pruned.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from localmed.domain import Evidence, Status
from localmed.domain.codec import FORMAT, LARGEST, AlteredAnswer, answer_of
from localmed.domain.errors import Damaged, InputError, UnknownName
from localmed.library.library import Library
from localmed.process.files import contents


def source(file: Path, marker: str, hidden: frozenset[str] = frozenset()) -> Evidence:
    """The evidence called ``marker`` in the answer in ``file``; raise ``InputError`` for what is no answer of ours.

    Of the collections ``hidden`` nothing is shown.
    """
    visible = {
        name: evidence for name, evidence in _evidence(file).items() if evidence.passage.collection not in hidden
    }
    if marker not in visible:
        raise UnknownName("kept.no_source", sources=tuple(visible))
    return visible[marker]


def standing(evidence: Evidence, library: Library) -> Evidence:
    """``evidence`` with its text as it was cited, and with the status and the overdue review of its document now.

    Of a document that is gone the withdrawals are still asked; else what was known when it was cited stays. Raise
    ``UnknownName`` for one that is hidden from the reader, whatever the answer says of its collection.
    """
    document = evidence.passage.document_id
    if library.catalogue.hides(document):
        raise UnknownName("kept.no_source", sources=())
    there = bool(library.catalogue.by_ids([document]))
    status = library.holding.statuses().get(document, Status.CURRENT if there else evidence.status)
    overdue = library.holding.overdue(document) if there else evidence.overdue
    return replace(evidence, status=status, overdue=overdue)


def rests_on_hidden(values: object, library: Library) -> bool:
    """Whether a recording names a document or a collection that is hidden from the reader of ``library``."""
    if isinstance(values, list):
        return any(rests_on_hidden(value, library) for value in values)
    if not isinstance(values, dict):
        return False
    if values.get("collection") in library.hidden or library.catalogue.hides(str(values.get("document_id", ""))):
        return True
    return any(rests_on_hidden(value, library) for value in values.values())


def _evidence(file: Path) -> dict[str, Evidence]:
    try:
        values = json.loads(contents(file, LARGEST))
        answer = answer_of(values["answer"] if "workflow" in values and "steps" in values else values)
    except AlteredAnswer:
        raise Damaged("kept.altered", name=file.name) from None
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise InputError("kept.none", name=file.name, format=FORMAT) from None
    return answer.by_marker
