"""The backup page: its folder is set, a backup is made and checked without a shell."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import localmed
from localmed.config import load
from localmed.messages import LANGUAGES, catalogue
from localmed.upkeep import backup
from tests.web.conftest import Clients
from tests.words import phrase, said


def test_a_backup_is_set_up_made_and_checked_in_the_window(copied_clients: Clients, tmp_path: Path) -> None:
    admin, folder = copied_clients("admin"), tmp_path / "backups"
    folder.mkdir()
    assert "no backup folder is set" in admin.get("/admin/backup").text
    assert admin.form("/admin/backup/make").status_code == 400, "no folder yet"
    assert admin.form("/admin/backup/folder", folder=str(folder)).status_code == 200
    assert load(copied_clients.settings.data).backup.folder == str(folder)
    page = admin.form("/admin/backup/make").text
    (name,) = backup.backups(folder)
    assert name in page
    assert "none has been made" not in page
    assert phrase("backup.whole") in admin.form("/admin/backup/check").text
    stored = next(path for path in (folder / name / "data").rglob("*") if path.is_file() and path.stat().st_size)
    stored.chmod(0o600)
    stored.write_bytes(b"flipped")
    page = admin.form("/admin/backup/check").text
    assert phrase("backup.whole") not in page
    assert phrase("backup.incomplete") in page
    assert said("action_name.setting") in copied_clients("safety").get("/safety").text


def test_how_to_restore_stops_and_starts_the_service_as_the_guide_does(copied_clients: Clients, tmp_path: Path) -> None:
    admin, folder, data = copied_clients("admin"), tmp_path / "the backups", copied_clients.settings.data
    folder.mkdir()
    assert "<pre" not in admin.form("/admin/backup/folder", folder=str(folder)).text, "nothing to restore yet"
    page = admin.form("/admin/backup/make").text
    [commands] = re.findall(r"<pre[^>]*>(.*?)</pre>", page, re.DOTALL)
    for ours, theirs in {
        f"&#39;{folder}&#39;": "/mnt/backup/localmed",
        str(data): "/var/lib/localmed",
        f"{data.stat().st_uid}:{data.stat().st_gid}": "localmed:localmed",
    }.items():
        commands = commands.replace(ours, theirs)
    assert [line.split()[:3] for line in commands.splitlines()][::3] == [
        ["sudo", "systemctl", "stop"],
        ["sudo", "systemctl", "start"],
    ]
    assert commands in (Path(localmed.__file__).parents[1] / "docs/administrator.md").read_text("utf-8")


@pytest.mark.parametrize("folder", ["", "backups", "/nowhere/at/all", "{data}/inside"])
def test_a_folder_of_no_use_is_refused_and_nothing_is_written(copied_clients: Clients, folder: str) -> None:
    data = copied_clients.settings.data
    (data / "inside").mkdir()
    admin = copied_clients("admin")
    page = admin.form("/admin/backup/folder", folder=folder.format(data=data))
    assert page.status_code == 400
    assert not (data / "localmed.toml").exists()
    assert copied_clients("librarian").form("/admin/backup/folder", folder="/tmp").status_code == 403


def test_no_backup_is_made_in_place_of_a_disk_that_is_gone(copied_clients: Clients, tmp_path: Path) -> None:
    admin, folder = copied_clients("admin"), tmp_path / "disk"
    folder.mkdir()
    admin.form("/admin/backup/folder", folder=str(folder))
    shutil.rmtree(folder)
    assert admin.form("/admin/backup/make").status_code == 400
    assert not folder.exists()
    assert phrase("backup.no_such_folder") in admin.get("/admin/backup").text


@pytest.mark.parametrize("code", ["doctor.backup_none.what", "backup.inside", "backup.unwritable"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_notice_begins_with_a_path_whose_first_letter_the_page_would_capitalise(code: str, language: str) -> None:
    assert not catalogue(language)[code].startswith("{")
