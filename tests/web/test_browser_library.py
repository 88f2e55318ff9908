"""The library's pages in a real browser: uploads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.web.conftest import Clients, OpenWindow
from tests.web.test_uploads import waiting


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
