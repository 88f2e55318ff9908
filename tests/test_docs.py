"""Every command of the README and the guides runs, in order, on the starter corpus."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Localmed

ROOT = Path(__file__).parent.parent
GUIDES = sorted((ROOT / "docs").glob("*.md"))
LONGEST_README = 200


def blocks(path: Path) -> Iterator[str]:
    yield from re.findall(r"^```sh\n(.*?)^```$", path.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def steps(block: str) -> Iterator[tuple[list[str], str]]:
    """The commands of a block, each with the text of its here document."""
    lines = iter(block.splitlines())
    for line in lines:
        words = shlex.split(line, comments=True)
        if not words:
            continue
        text = ""
        if "<<END" in words:
            for following in lines:
                if following == "END":
                    break
                text += following + "\n"
        yield words, text


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the starter corpus."""
    data = tmp_path_factory.mktemp("starter") / "data"
    localmed = Localmed(data)
    for manifest in sorted((ROOT / "corpora").glob("starter-*.toml")):
        documents = ROOT / "corpora" / "starter" / manifest.stem.removeprefix("starter-")
        ran = localmed("import", str(documents), "-c", manifest.stem, "--manifest", str(manifest))
        assert ran.code == 0, ran
    return data


def names(localmed: Localmed) -> dict[str, str]:
    """What the guides write in capitals."""
    document = next(row["id"] for row in localmed("documents", "list", "--json").json if row["key"].endswith(".md"))
    passage = localmed("search", "blood pressure target in diabetes", "--json").json["hits"][0]["passage"]["id"]
    return {"DOCUMENT": str(document), "PASSAGE": str(passage)}


def citations_resolve(answer: dict[str, Any]) -> None:
    """Every citation of the checked answer is a document of the library, and no reference was taken for a claim."""
    (references,) = [part["references"] for part in answer["parts"] if part["type"] == "CitationsPart"]
    assert references
    assert all(reference["study"] for reference in references), references
    claims = [part["claim"] for part in answer["parts"] if part["type"] == "ClaimPart"]
    assert not [claim for claim in claims for reference in references if reference["study"]["title"] in claim]


@pytest.mark.slow
@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_the_commands_of_the_guides_run(
    guide: Path, starter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(starter, tmp_path / "data", symlinks=True)
    monkeypatch.chdir(tmp_path)
    localmed = Localmed(tmp_path / "data")
    known = names(localmed)
    count = 0
    for block in blocks(guide):
        for words, text in steps(block):
            if words[0] == "cat":
                Path(words[2]).write_text(text, "utf-8")
            elif words[0] == "mkdir":
                Path(words[2]).mkdir()
            else:
                assert words[0] == "localmed", words
                ran = localmed(*(known.get(word, word.replace("corpora/", f"{ROOT}/corpora/")) for word in words[1:]))
                assert ran.code == 0, (words, ran)
                if words[1] == "verify":
                    citations_resolve(localmed(*words[1:], "--json").json)
                count += 1
    assert count, "a guide without a command"


def test_the_readme_is_short_and_leads_to_the_guides() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= LONGEST_README
    assert not [guide.name for guide in GUIDES if f"docs/{guide.name}" not in text]
