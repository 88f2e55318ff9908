"""The date of an edition as a document's first lines state it: "Version 3, issued 14 April 2025", 2025年6月1日修订.

A date counts only beside a word of editions (``publications.toml``, ``[edition]``) and not beside one of the next
review; of several the latest. Not covered: dates without such a word, which may be of anything, and other calendars.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from localmed.clinical.tables import in_characters, in_words, table
from localmed.ingest.readers import values

LINES = 8  # of a document that are read for it
NEAR = 24  # characters between the word and its date: "issued by the board on"
_MONTHS = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DATE = re.compile(
    rf"(?<!\d)(?:(?P<d1>\d{{1,2}})(?:st|nd|rd|th)? )?(?P<m1>{_MONTHS})\.? (?:(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?,? )?"
    r"(?P<y1>20\d\d)\b"
    r"|(?<![\d.])(?P<y2>20\d\d)[-/.](?P<m2>\d{1,2})(?:[-/.](?P<d3>\d{1,2}))?(?![\d-])"
    r"|(?P<y3>20\d\d)\s?年(?:\s?(?P<m3>\d{1,2})\s?月(?:\s?(?P<d4>\d{1,2})\s?日)?)?"
    r"|(?<![\d.])(?P<y4>20\d\d)(?![\d-])",
    re.IGNORECASE,
)


def stated(lines: Sequence[str]) -> str:
    """The edition that the first of ``lines`` state, as an ISO date of a day, a month or a year; "" if none."""
    return max((date for line in lines[:LINES] for date in _dates(line)), default="")


def _dates(line: str) -> Iterator[str]:
    done = 0
    for match in _DATE.finditer(line):
        before, after = line[max(done, match.start() - NEAR) : match.start()], line[match.end() : match.end() + NEAR]
        done = match.end()
        edition, review = _cues()
        either = _either(edition, review)
        beside = either.match(after.lstrip()) or next(reversed([*either.finditer(before)]), None)
        if beside and not review.fullmatch(beside[0]):
            yield _written(match)


def _written(match: re.Match[str]) -> str:
    parts = {name[0]: value for name, value in match.groupdict().items() if value}
    return values.iso_date(parts["y"], parts.get("m", ""), parts.get("d", ""))


@cache
def _cues() -> tuple[re.Pattern[str], re.Pattern[str]]:
    sections = (table("publications")[name] for name in ("edition", "next_review"))
    edition, review = (re.compile(rf"\b(?:{in_words(one['en'])})|{in_characters(one['zh'])}", re.IGNORECASE)
                       for one in sections)  # fmt: skip
    return edition, review


@cache
def _either(edition: re.Pattern[str], review: re.Pattern[str]) -> re.Pattern[str]:
    return re.compile(f"{review.pattern}|{edition.pattern}", re.IGNORECASE)
