"""The sources of an answer that was kept: shown from the answer itself, after its generation and its document are gone.

A kept answer (``kept/``), the output of ``--json`` and a recording hold the text, file, page and boxes of everything
they cite. The original that a page is drawn from stays as long as an answer under ``kept/`` names it
(``library/originals.py``); of another file it may have been pruned.
"""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from localmed.domain import Answer, Box, Evidence, Kind, Passage, Span, Status
from localmed.errors import InputError, UnknownName
from localmed.library.library import Library
from localmed.workflows.recording import decoded

LARGEST = 64 * 2**20  # bytes, as of a recording


def source(file: Path, marker: str, hidden: frozenset[str] = frozenset()) -> Evidence:
    """The evidence called ``marker`` in the answer in ``file``; raise ``InputError`` for what is no answer of ours.

    Of the collections ``hidden`` nothing is shown.
    """
    found = {name: each for name, each in _evidence(file).items() if each.passage.collection not in hidden}
    if marker not in found:
        raise UnknownName("the answer has no such source", f"Sources that may be read: {', '.join(found) or 'none'}")
    return found[marker]


def standing(evidence: Evidence, library: Library) -> Evidence:
    """``evidence`` with its text as it was cited, and with the status and the overdue review of its document now.

    Of a document that is gone the ledger is still asked; else what was known when it was cited stays.
    """
    document = evidence.passage.document_id
    there = bool(library.catalogue.by_ids([document]))
    status = library.holding.statuses().get(document, Status.CURRENT if there else evidence.status)
    overdue = library.holding.overdue(document) if there else evidence.overdue
    return replace(evidence, status=status, overdue=overdue)


def _evidence(file: Path) -> dict[str, Evidence]:
    try:
        if file.stat().st_size > LARGEST:
            raise InputError(f"{file.name} has more than {LARGEST >> 20} MiB", "Give a file of one answer")
        values = json.loads(file.read_text("utf-8"))
        answer = _recorded(values) if "format" in values else values
        found = answer.evidence if isinstance(answer, Answer) else [_made(each) for each in answer["evidence"]]
        return {each.marker: each for each in found}
    except OSError as error:
        raise InputError(f"{file.name} cannot be read ({error.strerror})", "Check the path and rights") from None
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise InputError(f"{file.name} is no answer of localmed", "Give a kept answer, a recording or --json") from None


def _recorded(values: dict[str, Any]) -> Answer:
    answer: Answer = decoded(values["answer"])
    return answer


def _made(values: dict[str, Any]) -> Evidence:
    passage = values["passage"]
    spans = tuple(Span(each["start"], each["end"], Box(**each["box"])) for each in passage["spans"])
    made = _known(Passage, passage) | {"spans": spans, "headings": tuple(passage["headings"])}
    return Evidence(
        **_known(Evidence, values)
        | {
            "passage": Passage(**made),
            "status": Status(values["status"]),
            "kind": Kind(values["kind"]),
            "publication_types": tuple(values["publication_types"]),
        }
    )


def _known(kind: type[Passage] | type[Evidence], values: dict[str, Any]) -> dict[str, Any]:
    """Of ``values`` what this version knows: an answer of a later one may say more."""
    names = {each.name for each in fields(kind)}
    return {name: value for name, value in values.items() if name in names}
