"""The date of an edition in a document's first lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.ingest.reading import stated_edition
from tests.fakes import documents, import_into, write


@pytest.mark.parametrize(
    ("line", "date"),
    [
        ("Version 2025-03-01", "2025-03-01"), ("2025年6月1日修订", "2025-06-01"),
        ("Ward guideline AW-07. Version 3, issued 14 April 2025, review due April 2028.", "2025-04-14"),
        ("Date: 6 June 2024. Second edition.", "2024-06-06"), ("Edition 2024", "2024"),
        ("Issued 2021, revised 3 May 2024", "2024-05-03"), ("Next review: May 2029", ""),
        ("复审日期：2028年3月1日", ""),
        ("复审日期 2028-03-01 批准日期 2025-03-01", "2025-03-01"), ("2025年3月1日批准，2028年3月复审", "2025-03-01"),
        ("A trial of 2019 followed 300 patients", ""), ("Call 2020 for help. Ward 12", "")
    ],
)  # fmt: skip
def test_the_date_beside_a_word_of_editions(line: str, date: str) -> None:
    assert stated_edition(("Title", line)) == date


def test_a_document_gets_the_date_that_it_states(settings: Settings, corpus: Path) -> None:
    write(corpus, {"guide.md": "# Gout\n\nWard guide. Version 2025-03-01.\n\n## Dose\n\nGive 5 mg.\n"})
    import_into(settings, corpus)
    assert documents(settings)["guide.md"].edition == "2025-03-01"
