"""Settings that are not plain numbers: presets of tiers, and what names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from localmed.config import load, obsolete_names, write
from localmed.domain.errors import BadSettings


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCALMED_CONFIG", raising=False)


def settings_of(folder: Path, text: str) -> Path:
    (folder / "localmed.toml").write_text(text, "utf-8")
    return folder


def test_presets_are_added_and_replaced_by_name(tmp_path: Path) -> None:
    tiers = load(tmp_path).tiers
    assert tiers.presets["ebm"] == (("guideline",), ("literature",), ("book", "wiki"), ("leaflet",))
    assert tiers.presets["patient"] == (("leaflet",), ("book", "wiki"))
    assert load(tmp_path).ask.preset == ""
    text = """
        [ask]
        preset = "ward"
        [tiers.presets]
        ward = [["local", "our guidelines"], ["guideline"]]
        patient = [["leaflet"]]
    """
    settings = load(settings_of(tmp_path, text))
    assert set(settings.tiers.presets) == {"ebm", "patient", "ward"}
    assert settings.tiers.presets["ward"] == (("local", "our guidelines"), ("guideline",))
    assert settings.tiers.presets["patient"] == (("leaflet",),)
    assert settings.ask.preset == "ward"


def test_what_has_no_effect_any_more_is_read_over_and_named(tmp_path: Path) -> None:
    settings = load(settings_of(tmp_path, "[ask]\nrisk = 0.1\npassages = 7\n[reading]\nx = 1\n"))
    assert settings.ask.passages == 7
    assert obsolete_names(settings) == ("ask.risk", "reading")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[tiers.presets]\nward = "guideline"', "tiers.presets.ward"),
        ("[tiers.presets]\nward = []", "tiers.presets.ward"),
        ('[tiers.presets]\nward = [["guideline"], [""]]', "tiers.presets.ward"),
        ("[tiers]\npresets = 3", "tiers.presets"),
        ('[ask]\npreset = "emb"', "ask.preset"),
        ("[tiers]\nother = 3", "tiers.other"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, key: str) -> None:
    with pytest.raises(BadSettings) as caught:
        load(settings_of(tmp_path, text))
    assert key in str(caught.value)
    assert "localmed.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("[web]\nidle_minuts = 5\n", "web.idle_minutes"),
        ("[serch]\nresults = 5\n", "search"),
        ("idle_minutes = 5\n", "web.idle_minutes"),
    ],
)
def test_an_unknown_setting_is_told_with_the_nearest_names(tmp_path: Path, text: str, near: str) -> None:
    (tmp_path / "localmed.toml").write_text(text, "utf-8")
    with pytest.raises(BadSettings) as error:
        load(tmp_path)
    assert near in dict(error.value.message.parameters)["near"]  # type: ignore[operator]


def test_one_setting_is_written_and_every_other_line_stays(tmp_path: Path) -> None:
    file = tmp_path / "localmed.toml"
    assert write(tmp_path, "backup", "folder", "/mnt/one").backup.folder == "/mnt/one"
    file.write_text(
        '# ours\nprofile = "starter"\n[backup] # nightly\nfolder = "/old"\nkeep = 3\n[ask]\npassages = 5\n', "utf-8"
    )
    file.chmod(0o640)
    written = write(tmp_path, "backup", "folder", '/mnt/a "b" \\ 备份')
    assert written == load(tmp_path)
    assert (written.backup.folder, written.backup.keep, written.ask.passages) == ('/mnt/a "b" \\ 备份', 3, 5)
    assert file.read_text("utf-8").startswith('# ours\nprofile = "starter"\n[backup] # nightly\n')
    assert file.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("text", ['backup = { folder = "/old" }\n', 'backup.folder = "/old"\n', "not toml\n"])
def test_a_file_that_cannot_be_changed_line_by_line_stays_as_it_is(tmp_path: Path, text: str) -> None:
    file = settings_of(tmp_path, text) / "localmed.toml"
    with pytest.raises(BadSettings, match="by hand"):
        write(tmp_path, "backup", "folder", "/mnt/new")
    assert file.read_text("utf-8") == text
