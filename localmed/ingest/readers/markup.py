"""XML read safely: entities and external references refused, errors without the document's text.

Rules: a document type declaration is allowed (PubMed files carry one) but is never fetched, and a declaration of
entities is refused. Memory stays constant: ``elements`` hands over one element at a time and empties it and its root.

Not covered: namespaces, but for ``local`` names; the other readers' formats use none.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse

from localmed.errors import InputError, reason
from localmed.ingest.readers.encoding import clean
from localmed.ingest.readers.values import one_line, superscript


def elements(path: Path, tags: frozenset[str], local: bool = False) -> Iterator[Element]:
    """Every element of ``path`` called one of ``tags``, whole, in order; raise ``InputError`` where the XML ends.

    ``local`` says that ``tags`` are names without namespaces.
    """
    try:
        with _opened(path) as file:
            events = iterparse(file, events=("start", "end"), forbid_entities=True, forbid_external=True)
            _, root = next(events)
            for event, element in events:
                name = element.tag.rpartition("}")[2] if local else element.tag
                if event == "end" and name in tags:
                    yield element
                    element.clear()
                    root.clear()
    except ParseError as error:
        line, column = error.position
        raise InputError("reader.xml_broken", name=path.name, line=line, column=column) from None
    except DefusedXmlException as error:
        raise InputError("reader.xml_refused", name=path.name, reason=reason(error)) from None
    except (OSError, EOFError, zlib.error, LookupError, ValueError) as error:  # LookupError, ValueError: its encoding
        raise InputError("reader.broken", name=path.name, reason=reason(error)) from None


def text_of(element: Element | None) -> str:
    """All text inside ``element`` on one line, tags dropped, raised figures raised; "" for no element."""
    if element is None:
        return ""
    words = element.itertext() if element.find(".//sup") is None else _raised(element)
    return one_line(clean("".join(words)))


def texts(element: Element, path: str) -> tuple[str, ...]:
    """The text of every element at ``path`` that has any."""
    return tuple(filter(None, map(text_of, element.iterfind(path))))


def _raised(element: Element) -> Iterator[str]:
    """The words of ``element`` with its raised figures: 10 and a raised 9 are no 109."""
    if element.tag == "sup":
        yield superscript("".join(element.itertext()))
        return
    yield element.text or ""
    for child in element:
        yield from _raised(child)
        yield child.tail or ""


def _opened(path: Path) -> BufferedIOBase:
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if zipped else path.open("rb")
