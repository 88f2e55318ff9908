"""Editions as numbers that compare: what both indexes filter by."""

from __future__ import annotations

from localmed.domain import SearchFilter

NO_LIMIT = 99999999  # after every edition number


def edition_number(edition: str, pad: str = "0") -> int:
    """``"2024-05"`` -> 20240500: ISO dates as numbers that compare; 0: none. ``pad`` fills the rest."""
    digits = "".join(character for character in edition if character.isdigit())[:8]
    return int(digits.ljust(8, pad)) if digits else 0


def edition_range(filters: SearchFilter) -> tuple[int, int]:
    """The inclusive range of ``edition_number`` that ``filters`` allow."""
    low = edition_number(filters.edition_from) or (1 if filters.edition_to else 0)  # what has no date is in no range
    high = edition_number(filters.edition_to, "9") if filters.edition_to else NO_LIMIT
    return low, high
