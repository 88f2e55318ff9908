"""One reader on one PDF, for ``pdf_peers``: prints blocks, table rows and headings as JSON."""

from __future__ import annotations

import json
import re
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

Texts = tuple[list[str], list[str], list[str]]  # blocks, rows, headings


def localmed() -> Callable[[str], Texts]:
    """The reader of this project."""
    from localmed.ingest.chunking import text_of
    from localmed.ingest.parsed import FieldMapping
    from localmed.ingest.readers.pdf.reader import read

    def texts(path: str) -> Texts:
        (record,) = (entry for entry in read(Path(path), FieldMapping()) if hasattr(entry, "blocks"))
        kinds = {"row": [], "heading": [], "": []}  # type: dict[str, list[str]]
        for block in record.blocks:
            kinds[block.kind if block.kind in kinds else ""].append(text_of(block.lines)[0])
        return kinds[""], kinds["row"], kinds["heading"]

    return texts


def pymupdf4llm() -> Callable[[str], Texts]:
    """PyMuPDF4LLM with its layout model: Markdown, taken apart into paragraphs, rows and headings."""
    import pymupdf4llm as library

    def texts(path: str) -> Texts:
        markdown = library.to_markdown(path, show_progress=False)
        blocks, rows, headings = [], [], []
        for paragraph in re.split(r"\n\s*\n", markdown):
            lines = paragraph.strip().splitlines()
            rows += [line for line in lines if line.startswith("|") and not re.fullmatch(r"[|:\- ]+", line)]
            headings += [line.lstrip("# ").replace("*", "") for line in lines if line.startswith("#")]
            prose = [line for line in lines if not line.startswith(("|", "#"))]
            for item in re.split(r"\n(?=\s*(?:[-*+]|\d+\.)\s)", "\n".join(prose)):
                cleaned = re.sub(r"^\s*[-*+]\s+|[*_`]|<br>", " ", item)
                blocks += [" ".join(cleaned.split())] if cleaned.strip() else []
        return blocks, rows, headings

    return texts


def pdfplumber() -> Callable[[str], Texts]:
    """pdfplumber as documented: the text of each page in its own line order, and its tables."""
    import pdfplumber as library

    def texts(path: str) -> Texts:
        blocks, rows = [], []
        with library.open(path) as document:
            for page in document.pages:
                blocks.append(" ".join((page.extract_text() or "").split()))
                for table in page.extract_tables():
                    rows += [" | ".join(cell or "" for cell in row) for row in table]
        return blocks, rows, []

    return texts


def pymupdf() -> Callable[[str], Texts]:
    """PyMuPDF's blocks in the order of the file, and its table finder."""
    import pymupdf as library

    def texts(path: str) -> Texts:
        blocks, rows = [], []
        with library.open(path) as document:
            for page in document:
                blocks += [" ".join(block[4].split()) for block in page.get_text("blocks") if block[6] == 0]
                for table in page.find_tables().tables:
                    rows += [" | ".join(cell or "" for cell in row) for row in table.extract()]
        return blocks, rows, []

    return texts


READERS: dict[str, Callable[[], Callable[[str], Texts]]] = {
    "localmed": localmed, "pymupdf4llm": pymupdf4llm, "pdfplumber": pdfplumber, "pymupdf": pymupdf,
}  # fmt: skip


def main() -> None:
    """Read the file and print one line of JSON."""
    reader, path = sys.argv[1:3]
    texts = READERS[reader]()
    began = time.process_time()
    blocks, rows, headings = texts(path)
    seconds = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    values: dict[str, Any] = {"blocks": blocks, "rows": rows, "headings": headings}
    print(json.dumps(values | {"seconds": round(seconds, 3), "memory": round(memory, 1)}))


if __name__ == "__main__":
    main()
