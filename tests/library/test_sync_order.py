"""What must survive a power cut is on the disk before it is named: the order of syncs, renames and links.

Told by the kernel where strace is there, else by the functions of ``os`` through which all of them go.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORDED = """
import json, os, sys
from pathlib import Path
from localmed.config import Settings
from localmed.ingest import manifest
from localmed.ingest.pipeline import Importer
from localmed.library.library import Library
from tests.fakes import HashedWords, restrict, withdraw

data, corpus, file, log = map(Path, sys.argv[1:])
events = []
def recorded(name):
    real = getattr(os, name)
    def call(*arguments, **more):
        done = real(*arguments, **more)
        named = [each for each in arguments if not isinstance(each, bool)]
        places = [os.readlink(f"/proc/self/fd/{it}") if isinstance(it, int) else os.fspath(it) for it in named]
        events.append([name.replace("replace", "rename"), *places])
        return done
    setattr(os, name, call)
if str(log) != "-":
    for name in ("fsync", "rename", "replace", "symlink"):
        recorded(name)
Importer(Settings(data), manifest.load(file), HashedWords(), None, file).run([corpus])
with Library.open(data) as library:
    document = library.catalogue.documents()[0]
os.symlink("mark", data / "mark-access")
restrict(data, "ward", ["doctors"])
os.symlink("mark", data / "mark-ledger")
withdraw(data, document)
if str(log) != "-":
    log.write_text(json.dumps(events))
"""
CALL = re.compile(r"(fsync|rename|renameat|renameat2|symlink|symlinkat)\((.*)\) += 0")
PLACE = re.compile(r'"([^"]*)"|<([^>]*)>')
OWN_NAME = re.compile(r"\.[0-9a-f]{8}(?=\.new$)")  # of whoever writes a file beside the one it replaces


def events(data: Path, corpus: Path, manifest: Path, log: Path, traced: bool) -> list[tuple[str, ...]]:
    """(call, path or paths) of an import, a restriction and a withdrawal, in their order; new files without their own
    part of the name.
    """
    command = [sys.executable, "-c", RECORDED, str(data), str(corpus), str(manifest)]
    calls = _traced(command, log) if traced else _recorded(command, log)
    return [(call, *(OWN_NAME.sub("", place) for place in places)) for call, *places in calls]


def _recorded(command: list[str], log: Path) -> list[list[str]]:
    subprocess.run([*command, str(log)], cwd=ROOT, check=True, timeout=120)
    calls: list[list[str]] = json.loads(log.read_text())
    return calls


def _traced(command: list[str], log: Path) -> list[list[str]]:
    traced = ["strace", "-y", "-s", "300", "-o", str(log), "-e", "trace=fsync,/^rename,/^symlink", *command, "-"]
    subprocess.run(traced, cwd=ROOT, check=True, timeout=120)
    calls = []
    for line in log.read_text().splitlines():
        if call := CALL.search(line):
            places = [a or b for a, b in PLACE.findall(call[2]) if (a or b) != str(ROOT)]
            calls.append([call[1].removesuffix("2").removesuffix("at"), *places])
    return calls


@pytest.mark.slow
def test_what_is_served_is_on_the_disk_before_it_is_named(tmp_path: Path) -> None:
    strace = shutil.which("strace") and subprocess.run(["strace", "true"], capture_output=True, check=False)
    data, corpus = tmp_path / "data", tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.txt").write_text("Sepsis\n\nGive antibiotics within one hour.\n")
    manifest = tmp_path / "ward.toml"
    manifest.write_text('name = "ward"\n')
    rows = events(data, corpus, manifest, tmp_path / "log", bool(strace and not strace.returncode))

    def at(*event: str) -> int:
        return next(place for place, row in enumerate(rows) if row[0] == event[0] and row[1:] == event[1:])

    def synced(path: Path) -> int:
        return at("fsync", str(path))

    building, published = data / "generations" / "building", data / "generations" / "0001"
    named = at("rename", str(building), str(published))
    served = at("rename", str(data / "current.new"), str(data / "current"))
    files = [path for path in published.rglob("*") if path.name not in ("checked.json",) and path.suffix != ".lock"]
    for path in (published, *files):
        assert synced(building / path.relative_to(published)) < named, path.name
    for original in (data / "files").iterdir():
        assert synced(original) < named
    assert synced(data / "files") < named
    kept = data / "corpora" / "ward.toml"
    assert (
        synced(kept.with_name("ward.toml.new")) < at("rename", f"{kept}.new", str(kept)) < synced(kept.parent) < named
    )
    assert named < served
    after_naming = [
        place for place, row in enumerate(rows) if row == ("fsync", str(published.parent)) and place > named
    ]
    assert after_naming[0] < served
    assert any(row == ("fsync", str(data)) for row in rows[served:])

    rest = rows[next(place for place, row in enumerate(rows) if row[-1].endswith("mark-access")) :]
    border = next(place for place, row in enumerate(rest) if row[-1].endswith("mark-ledger"))
    copy = str(data / "in_force.json")
    written = [("fsync", f"{copy}.new"), ("rename", f"{copy}.new", copy), ("fsync", str(data))]
    for change in (rest[1:border], rest[border + 1 :]):
        assert [row for row in change if ".sqlite" not in row[-1] and ".key" not in row[-1]][-3:] == written
