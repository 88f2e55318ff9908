"""The access file: nothing set is lost between writers, and a lost file is never "no restriction"."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.domain import message
from localmed.domain.errors import Damaged
from localmed.library import generations
from localmed.library.access import Access
from localmed.library.library import build
from tests.fakes import HashedWords, import_into, write


def test_of_writers_at_once_none_loses_what_another_has_set(tmp_path: Path) -> None:
    names = [f"collection-{number}" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: Access(tmp_path).put(name, ["doctors"]), names))
    assert sorted(Access(tmp_path).all()) == sorted(names)


@pytest.mark.slow
def test_a_lost_file_is_an_error_once_something_was_built_beside_it(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": "Sepsis."})
    import_into(settings, corpus)
    access, file = Access(settings.data), settings.data / "access.json"
    values = json.loads(file.read_text())
    assert (values["format"], values["changes"], values["collections"]) == (3, 0, {})
    access.put("ward", ["doctors"])
    file.unlink()
    for reader in (access, Access(settings.data)):
        with pytest.raises(Damaged, match="missing"):
            reader.hidden_from(frozenset({"nurses"}))
        assert reader.hidden_from(None) == frozenset(), "who sees everything is not kept from mending it"
    for change in (lambda: access.put("ward", ["doctors"]), lambda: import_into(settings, corpus)):
        with pytest.raises(Damaged, match="missing"):
            change()
    assert not file.exists(), "a build does not pass an empty file off for the lost one"


def test_a_folder_from_before_opens_and_has_the_file_from_the_next_build_on(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": "Sepsis."})
    import_into(settings, corpus)
    as_format_1(settings.data)
    (settings.data / "access.json").unlink()
    assert Access(settings.data).hidden_from(frozenset()) == frozenset()
    with build(settings.data, HashedWords().identity, settings.library) as builder:
        builder.publish(message("generation.made.upgrade"))
    (settings.data / "access.json").unlink()
    with pytest.raises(Damaged, match="missing"):
        Access(settings.data).hidden_from(frozenset())


def older(data: Path, text: str) -> Path:
    """The file of an older localmed."""
    file = data / "readers.json"
    file.write_text(text, "utf-8")
    return file


def test_a_file_of_an_older_localmed_holds_and_is_moved_at_the_next_change(tmp_path: Path) -> None:
    file, access = older(tmp_path, '{"icu": ["doctors"]}'), Access(tmp_path)
    assert access.hidden_from(frozenset({"nurses"})) == {"icu"}
    assert file.exists(), "reading changes nothing"
    access.put("ward", ["nurses"])
    assert not file.exists()
    assert Access(tmp_path).all() == {"icu": {"doctors"}, "ward": {"nurses"}}
    assert Access(tmp_path).all() == access.all()


def test_a_move_that_was_cut_off_leaves_two_files_alike(tmp_path: Path) -> None:
    access = Access(tmp_path)
    access.put("icu", ["doctors"])
    file = older(tmp_path, '{"icu": ["doctors"]}')
    assert access.hidden_from(frozenset({"nurses"})) == {"icu"}
    access.create()
    assert not file.exists()


@pytest.mark.parametrize("text", ['{"icu": ["nurses"]}', "{}", "{"])
def test_two_files_that_differ_are_an_error(tmp_path: Path, text: str) -> None:
    access = Access(tmp_path)
    access.put("icu", ["doctors"])
    older(tmp_path, text)
    for act in (lambda: access.hidden_from(frozenset({"nurses"})), lambda: access.put("ward", []), access.create):
        with pytest.raises(Damaged):
            act()


@pytest.mark.parametrize(
    "text",
    [
        '{"format": 4, "collections": {}}',
        '{"format": 3, "collections": {}}',
        '{"format": 2}',
        '{"format": 2, "collections": []}',
        "[]",
    ],
)
def test_what_is_of_no_known_format_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "access.json").write_text(text, "utf-8")
    with pytest.raises(Damaged):
        Access(tmp_path).hidden_from(frozenset({"doctors"}))


def as_format_1(data: Path) -> None:
    """Give the generation being served the manifest that it had before the file was always there."""
    path = generations.current(data) / generations.MANIFEST
    values = json.loads(path.read_text("utf-8"))["manifest"] | {"format": 1, "files": {}}
    served = generations.read_manifest(generations.current(data))
    path.write_text(generations.Manifest(**(values | {"files": served.files})).to_json(), "utf-8")
