"""What a question asks to be defined (``asking.toml``), English and Chinese."""

from __future__ import annotations

import re

from localmed.clinical.tables import table
from localmed.language import fold


def defined(question: str) -> str:
    """The name of what ``question`` asks to be defined, "" if it asks something else."""
    folded = fold(question).strip()
    matches = (re.match(pattern, folded) for pattern in table("asking")["definition"]["asks"])
    return next((match["term"] for match in matches if match), "")
