"""Ids in one spelling, so that sources which name the same thing meet.

``UMLS_CUI:C0011849`` and UMLS's own ``C0011849`` are one id, and so are a DrugBank code with and without its prefix.
A vocabulary's edition (``SNOMEDCT_US_2025_09_01``) is not part of what its codes mean.
"""

from __future__ import annotations

import re

_BARE = re.compile(r"(?:UMLS(?:_CUI)?:(C\d{7,8})|(?:drugbank|DRUGBANK|DrugBank):(DB\d{5}))")
_EDITION = re.compile(r"(?:_\d{4})(?:_\d\d)*$")
_SPELLINGS = {"MSH": "MESH", "MeSH": "MESH", "ICD10": "ICD10", "ICD-10": "ICD10", "MIM": "OMIM", "NCIT": "NCI"}


def canonical(code: str) -> str:
    """``code`` as the graph spells it; one without a prefix stays as it is."""
    if bare := _BARE.fullmatch(code):
        return bare[1] or bare[2]
    prefix, colon, rest = code.partition(":")
    if not colon:
        return code
    prefix = _EDITION.sub("", prefix)
    return f"{_SPELLINGS.get(prefix, prefix)}:{rest}"
