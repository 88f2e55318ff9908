"""Reads patient records (text, C-CDA, FHIR) as ``PatientRecord``: bytes in, a value out, nothing stored.

Labelled names, addresses and dates of birth, and personal numbers, are removed (``parts.strike_identifiers``); a name
without a label stays. A file about two patients is refused, because advice for the wrong one is worse than none. Errors
quote nothing of a record.
"""

from __future__ import annotations

from localmed.domain.errors import InputError, LimitExceeded
from localmed.domain.patient import PatientRecord
from localmed.ingest.readers.encoding import clean, decode
from localmed.ingest.records.ccda import read_ccda
from localmed.ingest.records.fhir import read_json
from localmed.ingest.records.parts import check_one_patient, of_prose

RECORD_BYTES = 16 * 2**20  # a life's C-CDA or FHIR bundle has 1 to 10 MiB
RECORD_CHARACTERS = 200_000  # of a record in prose: 30 pages have about 90,000


def read(data: bytes) -> PatientRecord:
    """The record in ``data``, whose format its first character shows.

    Raise ``InputError`` if it is no record or of two patients, ``LimitExceeded`` if it is too long.
    """
    if len(data) > RECORD_BYTES:
        raise LimitExceeded("record.bytes", most=RECORD_BYTES >> 20)
    start = data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if not start:
        raise InputError("record.empty")
    if start == b"<":
        return read_ccda(data)
    try:
        text = decode(data)
    except InputError:
        raise InputError("record.no_text") from None
    if start in (b"{", b"["):
        return read_json(text)
    if len(text) > RECORD_CHARACTERS:
        raise LimitExceeded("record.characters", most=RECORD_CHARACTERS)
    check_one_patient(text := clean(text))
    return of_prose(text)
