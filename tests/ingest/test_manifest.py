"""Corpus manifests: what is right is read, what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from localmed.domain.errors import BadSettings, InputError
from localmed.ingest.manifest import Manifest, load
from localmed.ingest.parsed import FieldMapping

WHOLE = """
name = "ward"
title = "Ward documents"
language = "en"
source = "the ward"
licence = "CC0"
priority = 5
reader = "json"
[fields]
title = "name"
text = ["a.b", "c"]
[options]
id_scheme = "pmid"
[documents."old.md"]
title = "Old"
edition = "2019-03"
status = "superseded"
replaced_by = "new.md"
"""


def loaded(tmp_path: Path, text: str | bytes) -> Manifest:
    path = tmp_path / "corpus.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load(path)


def test_a_whole_manifest_and_its_recipe_that_changes_with_what_changes_the_reading(tmp_path: Path) -> None:
    first = loaded(tmp_path, WHOLE)
    assert (first.collection.name, first.collection.priority, first.reader) == ("ward", 5, "json")
    assert first.mapping == FieldMapping({"title": "name", "text": ("a.b", "c")}, {"id_scheme": "pmid"})
    facts = dict(first.documents["old.md"])
    assert facts["replaced_by"] == "new.md"
    same = loaded(tmp_path, WHOLE.replace("priority = 5", "priority = 9").replace("CC0", "MIT"))
    assert same.recipe(facts) == first.recipe(facts)
    for old, new in (('"name"', '"titel"'), ('"json"', '"text"'), ("pmid", "doi"), ('"en"', '"zh"'), ('"c"]', '"d"]')):
        assert loaded(tmp_path, WHOLE.replace(old, new)).recipe(facts) != first.recipe(facts), old
    assert first.recipe({}) != first.recipe(facts)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "has no name"),
        ("name = 3", "name must be text"),
        ('name = "../../etc"', "name"),
        ('name = "a"\nlicense = "MIT"', "'license'"),
        ('name = "a"\npriority = "high"', "priority"),
        ('name = "a"\npriority = true', "priority"),
        ('name = "a"\ntitle = ["x"]', "title must be text"),
        ('name = "a"\nfields = "title"', "fields"),
        ('name = "a"\n[fields]\ntext = ["a", 3]', "fields"),
        ('name = "a"\ndocuments = "x"', "documents"),
        ('name = "a"\n[documents."x.md"]\nstatus = "old"', "unknown status"),
        ('name = "a"\n[documents."x.md"]\nyear = "2019"', "x.md"),
        ('name = "a"\n[documents."x.md"]\nedition = 2019-03-01', "x.md"),
        (b"name = '\xff'", "not valid TOML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str | bytes, named: str) -> None:
    with pytest.raises(BadSettings) as caught:
        loaded(tmp_path, text)
    assert named in str(caught.value)
    assert "corpus.toml" in str(caught.value)
    for path in (tmp_path, tmp_path / "none.toml"):
        with pytest.raises(InputError, match="cannot be read"):
            load(path)
