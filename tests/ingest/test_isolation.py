"""What reads hostile files has no keys, network or other files; where the kernel cannot see to it, that is said."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.config import ReadBounds, Settings
from localmed.domain.errors import InputError
from localmed.ingest import parsing
from localmed.ingest.parsing import Parser
from localmed.process import children, confined
from localmed.process.environment import scrubbed
from localmed.upkeep.doctor import Site
from tests.fakes import documents, import_into, write
from tests.strict import needs
from tests.upkeep.test_doctor import lines, site  # noqa: F401  (a fixture)
from tests.words import phrase, words

NO_KERNEL = "confined.leave_network = lambda: 'interpreter'; confined.leave_files = lambda *_: 'nobody';"
SCRIPT = f"from localmed.process import confined; {NO_KERNEL} from localmed.ingest import child; child.main()"
UNCONFINED = (sys.executable, "-P", "-c", SCRIPT)
SPY = """
import os, sys, json
from localmed.process import confined
from localmed.ingest import child
from localmed.ingest.parsed import Block, Line, SourceRecord
names = json.loads(sys.argv.pop(1))
def spy(request, replies):
    seen = [name for name in names if opened(name)] + [key for key in os.environ if "KEY" in key]
    replies.write(child.pack(SourceRecord("", "", (Block("paragraph", (Line(" ".join(seen)),)),))))
    replies.write(child._encoded(["done"]))
    replies.flush()
def opened(name):
    try:
        return bool(open(name).read())
    except OSError:
        return False
child.serve = spy
child.main()
"""


@needs(children.isolation().files, "Landlock")
def test_a_child_reads_the_folder_of_its_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolated_temporary: Path
) -> None:
    file = write(tmp_path / "documents", {"a.txt": "Text.", "beside.txt": "Text."}) / "a.txt"
    secret = write(tmp_path / "elsewhere", {"secret.txt": "secret"}) / "secret.txt"
    monkeypatch.setenv("LOCALMED_CHAT_KEY", "secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    named = f'["{file}", "{file.parent / "beside.txt"}", "{secret}", "/root/.bashrc"]'
    with Parser((sys.executable, "-P", "-c", SPY, named)) as parser:
        (record,) = parser.parse(file)
        text = record.blocks[0].lines[0].text  # type: ignore[union-attr]
    assert text == f"{file} {file.parent / 'beside.txt'}"


@pytest.fixture
def isolated_temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Temporary files lie apart from the test's own, which the child may otherwise write to."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def test_the_environment_of_a_child_holds_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOCALMED_CHAT_KEY", "SSH_AUTH_SOCK", "HF_TOKEN"):
        monkeypatch.setenv(name, "secret")
    passed = scrubbed(OMP_NUM_THREADS="1")
    assert "secret" not in passed.values()
    assert {"PATH", "HF_HUB_OFFLINE", "OMP_NUM_THREADS"} <= passed.keys()
    assert passed["PATH"] == os.environ["PATH"]


@pytest.mark.parametrize("command", [parsing.COMMAND, UNCONFINED])
def test_a_setting_refuses_files_where_the_kernel_does_not_confine(tmp_path: Path, command: Sequence[str]) -> None:
    file = write(tmp_path, {"a.txt": "Sepsis."}) / "a.txt"
    with Parser(command) as parser:
        assert len(list(parser.parse(file))) == 1
        bounds = ReadBounds(isolation=True)
        if command == UNCONFINED:
            with pytest.raises(InputError, match=r"a\.txt was not read"):
                list(parser.parse(file, bounds=bounds))
        elif children.isolation() == confined.Isolation(network=True, files=True):
            assert len(list(parser.parse(file, bounds=bounds))) == 1


def test_an_import_and_the_doctor_say_that_children_keep_the_network(
    settings: Settings,
    corpus: Path,
    monkeypatch: pytest.MonkeyPatch,
    site: Site,  # noqa: F811
) -> None:
    write(corpus, {"a.txt": "Sepsis\n\nGive antibiotics.\n"})
    monkeypatch.setattr(children, "isolation", lambda: confined.Isolation(network=False, files=True))
    report = import_into(settings, corpus)
    assert [line.outcome for line in report.lines if phrase("import.not_isolated") in words(line.detail)] == ["note"]
    assert set(documents(settings)) == {"a.txt"}
    (line,) = lines(site, "isolation")
    assert (line.level, line.messages[0].code) == ("warning", "doctor.isolation_none")
    strict = replace(site, settings=replace(site.settings, read=ReadBounds(isolation=True)))
    assert lines(strict, "isolation")[0].level == "problem"
    monkeypatch.undo()
    assert not [line for line in import_into(settings, corpus).lines if "network" in words(line.detail)]
