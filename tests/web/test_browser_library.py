"""The library's and the safety pages in a real browser: uploads, and axe-core in both languages and themes."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.web.conftest import Clients, OpenWindow
from tests.web.test_library import document_id
from tests.web.test_uploads import waiting

PATHS = (
    "collections",
    "collections/ward",
    "documents",
    "upload",
    "quarantine",
    "governance/ward",
    "review",
    "generations",
)
OTHERS = ("/safety", "/admin/health")
SERIOUS = ("serious", "critical")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "theme"), [("en", "light"), ("en", "dark"), ("zh-CN", "light"), ("zh-CN", "dark")]
)
def test_axe_finds_nothing_serious(copied_clients: Clients, browser: OpenWindow, language: str, theme: str) -> None:
    window = browser(copied_clients, locale=language, color_scheme=theme)
    window.sign_in("admin")
    document = f"documents/{document_id(copied_clients, 'Sepsis')}"
    for path in (*(f"/library/{place}" for place in (*PATHS, document)), *OTHERS):
        window.page.goto(window.url + path)
        faults = Axe().run(window.page).response["violations"]
        assert [fault["id"] for fault in faults if fault["impact"] in SERIOUS] == [], path
    window.was_quiet()


@pytest.mark.slow
def test_a_good_a_bad_and_a_huge_file_are_uploaded(
    copied_clients: Clients, browser: OpenWindow, tmp_path: Path
) -> None:
    window = browser(copied_clients)
    window.sign_in("librarian")
    good, bad, huge = tmp_path / "<img src=x onerror=alert(1)>.md", tmp_path / "bad.pdf", tmp_path / "huge.pdf"
    good.write_text("# Hand rub\n\nRub for 20 seconds. <script>document.title = 'ran'</script>\n")
    bad.write_bytes(b"%PDF-1.7\nthis is not a PDF")
    with huge.open("wb") as stream:
        stream.truncate(2 * 2**30)  # sparse
    for file in (good, bad):
        window.page.goto(window.url + "/library/upload?collection=ward")
        window.page.set_input_files("#files", file)
        window.page.click("form[data-upload] button")
        window.page.wait_for_url("**/jobs/*")
    uploads = {upload.name: upload for upload in waiting(copied_clients)}
    assert uploads[good.name].reads
    assert not uploads[bad.name].reads
    window.page.goto(f"{window.url}/library/upload/{uploads[good.name].id}")
    window.page.frame_locator("iframe").get_by_text("Rub for 20 seconds").first.wait_for()
    assert "ran" not in [frame.title() for frame in window.page.frames]
    window.page.goto(window.url + "/library/upload")
    window.page.set_input_files("#files", huge)
    window.page.click("form[data-upload] button")
    window.page.locator("form[data-upload] [role=alert]").wait_for()
    assert window.page.url.endswith("/library/upload")
    window.was_quiet()
