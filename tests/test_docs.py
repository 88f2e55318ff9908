"""Every command in the guides runs, in order, on the starter corpus; every command is in one of them."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localmed.cli.main import COMMANDS
from tests.cli.conftest import Localmed

ROOT = Path(__file__).parent.parent
GUIDES = sorted((ROOT / "docs").glob("*.md"))


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
    passage = localmed("search", "blood pressure target in diabetes", "--json").json["sections"][0]["passage"]
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


@pytest.mark.parametrize("guide", ["ward-staff", "librarian"])
def test_who_works_in_the_window_reads_no_command(guide: str) -> None:
    text = (ROOT / "docs" / f"{guide}.md").read_text("utf-8")
    assert "```" not in text
    assert not re.search(r"`localmed |(?<!\w)--[a-z]", text)


def test_every_command_is_in_a_guide() -> None:
    texts = " ".join(" ".join(path.read_text("utf-8") for path in (ROOT / "README.md", *GUIDES)).split())
    assert not [name for name in COMMANDS if not re.search(rf"localmed (--data \S+ )?{name}\b", texts)]


def test_the_readme_leads_to_the_guides() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert not [guide.name for guide in GUIDES if f"docs/{guide.name}" not in text]
