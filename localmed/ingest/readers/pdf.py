"""PDF files: text in reading order, headings, table rows with their headers, and a box on the page for every line.

Rules: a file is one record. What cannot be opened raises ``InputError`` with what to do; a page without usable text is
named in the notes and never passes silently; a file with no usable page at all is refused. Headers, footers and page
numbers that recur at one place on at least three pages are left out and counted in a note. PyMuPDF is not thread-safe
and may hang or swell on hostile files: this runs in a child process with limits on time and memory.

Not covered: OCR (pages that need it are named), forms' field values, annotations, attachments, and the document's own
structure tags, which few hospital PDFs carry correctly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pymupdf

from localmed.config import ReadBounds
from localmed.domain import Box
from localmed.errors import InputError, LimitExceeded
from localmed.ingest.parsed import Block, Fault, FieldMapping, Line, Record
from localmed.ingest.readers import pdf_grid, pdf_tables
from localmed.ingest.readers.pdf_furniture import without_furniture
from localmed.ingest.readers.pdf_grid import Grid
from localmed.ingest.readers.pdf_layout import reading_order
from localmed.ingest.readers.pdf_paragraphs import (
    Body,
    Paragraph,
    body_of,
    column_rows,
    is_heading,
    joined_over_breaks,
    levels,
    paragraphs,
)
from localmed.ingest.readers.pdf_text import Piece, page_pieces, unreadable_share
