"""Finds abbreviations that a text spells out, with scispaCy's detector, which needs no model and no download.

It finds "long form (ABBR)" and "ABBR (long form)" by the rules of Schwartz and Hearst (2003) on a blank English
pipeline. Without the extra ``nlp``, which brings scispaCy, nothing is found.

Not covered: Chinese long forms, which do not contain the abbreviation's letters.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

CHARACTERS = 20_000  # of a text, some twenty passages; takes 50 ms


def expand(text: str) -> Mapping[str, str] | None:
    """Short form -> long form, as ``text`` introduces them; None if scispaCy is not installed."""
    pipeline = _pipeline()
    if pipeline is None:
        return None
    plain = text[:CHARACTERS].replace("（", " (").replace("）", ") ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # spaCy warns if a text has no abbreviation
        shorts = pipeline(plain)._.abbreviations
    long_forms: dict[str, str] = {}
    for short in shorts:
        long_forms.setdefault(short.text, short._.long_form.text)
    return long_forms


@cache
def _pipeline() -> Callable[[str], Any] | None:
    """The detector on a blank pipeline, or None; its import takes two seconds."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the libraries' own warnings
            import spacy
            from scispacy.abbreviation import AbbreviationDetector  # noqa: F401  (registers the pipe)
    except ImportError:
        return None
    pipeline: Callable[[str], Any] = spacy.blank("en")
    pipeline.add_pipe("abbreviation_detector")  # type: ignore[attr-defined]
    return pipeline
