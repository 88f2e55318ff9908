"""The sources of an answer that was kept: shown from the answer itself, after its generation and its document are gone.

A kept answer (``kept/``), the output of ``--json`` and a recording hold the text, file, page and boxes of everything
they cite. The original that a page is drawn from stays as long as an answer under ``kept/`` names it
(``library/originals.py``); of another file it may have been pruned.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from localmed.domain import Evidence, Status
from localmed.domain.codec import FORMAT, LARGEST, answer_of
from localmed.errors import InputError, UnknownName
from localmed.library.library import Library


def source(file: Path, marker: str, hidden: frozenset[str] = frozenset()) -> Evidence:
    """The evidence called ``marker`` in the answer in ``file``; raise ``InputError`` for what is no answer of ours.

    Of the collections ``hidden`` nothing is shown.
    """
    visible = {
        name: evidence for name, evidence in evidence_of(file).items() if evidence.passage.collection not in hidden
    }
    if marker not in visible:
        raise UnknownName("kept.no_source", sources=tuple(visible))
    return visible[marker]


def standing(evidence: Evidence, library: Library) -> Evidence:
    """``evidence`` with its text as it was cited, and with the status and the overdue review of its document now.

    Of a document that is gone the ledger is still asked; else what was known when it was cited stays.
    """
    document = evidence.passage.document_id
    there = bool(library.catalogue.by_ids([document]))
    status = library.holding.statuses().get(document, Status.CURRENT if there else evidence.status)
    overdue = library.holding.overdue(document) if there else evidence.overdue
    return replace(evidence, status=status, overdue=overdue)


def evidence_of(file: Path) -> dict[str, Evidence]:
    """What the answer in ``file`` cites, by its markers; raise ``InputError`` for what is no answer of ours."""
    try:
        if file.stat().st_size > LARGEST:
            raise InputError("kept.too_large", name=file.name, most=LARGEST >> 20)
        values = json.loads(file.read_text("utf-8"))
        answer = answer_of(values["answer"] if "workflow" in values and "steps" in values else values)
    except OSError as error:
        raise InputError("kept.unreadable", name=file.name, cause=error.strerror or "") from None
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise InputError("kept.none", name=file.name, format=FORMAT) from None
    return {evidence.marker: evidence for evidence in answer.evidence}
