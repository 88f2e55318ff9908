"""The file of reader groups: nothing set is lost between writers, and a lost file is never "no restriction"."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.errors import Damaged
from localmed.library import generations
from localmed.library.access import Access
from localmed.library.library import build
from tests.fakes import HashedWords, import_into, write


def test_of_writers_at_once_none_loses_what_another_has_set(tmp_path: Path) -> None:
    names = [f"collection-{number}" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: Access(tmp_path).put(name, ["doctors"]), names))
    assert sorted(Access(tmp_path).all()) == sorted(names)


def test_a_lost_file_is_an_error_once_something_was_built_beside_it(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": "Sepsis."})
    import_into(settings, corpus)
    readers, file = Access(settings.data), settings.data / "readers.json"
    assert json.loads(file.read_text()) == {}
    readers.put("ward", ["doctors"])
    file.unlink()
    for each in (readers, Access(settings.data)):
        with pytest.raises(Damaged, match="missing"):
            each.hidden_from(frozenset({"nurses"}))
        assert each.hidden_from(None) == frozenset(), "who sees everything is not kept from mending it"
    for change in (lambda: readers.put("ward", ["doctors"]), lambda: import_into(settings, corpus)):
        with pytest.raises(Damaged, match="missing"):
            change()
    assert not file.exists(), "a build does not pass an empty file off for the lost one"


def test_a_folder_from_before_opens_and_has_the_file_from_the_next_build_on(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": "Sepsis."})
    import_into(settings, corpus)
    as_format_1(settings.data)
    (settings.data / "readers.json").unlink()
    assert Access(settings.data).hidden_from(frozenset()) == frozenset()
    with build(settings.data, HashedWords().identity, settings.library) as builder:
        builder.publish("the next")
    (settings.data / "readers.json").unlink()
    with pytest.raises(Damaged, match="missing"):
        Access(settings.data).hidden_from(frozenset())


def as_format_1(data: Path) -> None:
    """Give the generation being served the manifest that it had before the file was always there."""
    path = generations.current(data) / generations.MANIFEST
    values = json.loads(path.read_text("utf-8"))["manifest"] | {"format": 1, "files": {}}
    served = generations.read_manifest(generations.current(data))
    path.write_text(generations.Manifest(**(values | {"files": served.files})).to_json(), "utf-8")
