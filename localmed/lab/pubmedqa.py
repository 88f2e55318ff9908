"""PubMedQA as a known-item set: an article's title is the question, its abstract, stored without the title, the answer.

The source is ``ori_pqal.json`` (Jin et al. 2019): one object a PubMed id, with ``QUESTION`` and ``CONTEXTS``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from localmed.domain import Document
from localmed.domain.errors import InputError
from localmed.lab.sets import Pair, read_bytes

COLLECTION = "pubmedqa"


def questions(file: Path) -> list[Pair]:
    """Every (question, record id); raise ``InputError`` if the file is not PubMedQA's."""
    wrong = InputError("evaluation.pubmedqa", file=file.name)
    try:
        records = json.loads(read_bytes(file))
    except ValueError:
        raise wrong from None
    if not isinstance(records, dict):
        raise wrong
    pairs = [(_question(record), str(name)) for name, record in records.items()]
    if not all(question for question, _ in pairs):
        raise wrong
    return pairs


def _question(record: object) -> str:
    question = record.get("QUESTION") if isinstance(record, dict) else None
    return " ".join(question.split()) if isinstance(question, str) else ""


def records(documents: list[Document]) -> Mapping[str, str]:
    """Record id -> document id of the collection's documents."""
    return {document.key.rpartition("#")[2]: document.id for document in documents}
