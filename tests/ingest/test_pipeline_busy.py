"""Two processes: one import at a time, and readers read on meanwhile."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.domain.errors import Busy
from localmed.library.library import Library
from localmed.library.state import rows
from tests.fakes import HashedWords, answers, import_into, titles, verify, write

ROOT = Path(__file__).parents[2]
# An import that stops while it encodes, until it is steps to go on.
WAITING = """
import sys
from pathlib import Path
from localmed.config import Settings
from tests.fakes import HashedWords, import_into
class Waiting(HashedWords):
    def encode(self, texts, kind):
        print("encoding", flush=True)
        sys.stdin.readline()
        return super().encode(texts, kind)
print(import_into(Settings(Path(sys.argv[1])), Path(sys.argv[2]), encoder=Waiting()).generation, flush=True)
"""


@pytest.mark.slow
def test_a_second_import_is_refused_and_readers_go_on(settings: Settings, corpus: Path, tmp_path: Path) -> None:
    write(corpus, {"a.txt": "Sepsis\n\nGive antibiotics.\n"})
    import_into(settings, corpus)
    other = write(tmp_path / "other", {"b.txt": "Fever\n\nGive paracetamol.\n"})
    command = [sys.executable, "-c", WAITING, str(settings.data), str(other)]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as child,
        Library.open(settings.data) as old,
    ):
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "encoding\n"
        with pytest.raises(Busy, match=f"process {child.pid}") as caught:
            import_into(settings, other)
        assert caught.value.exit_code == 4
        assert titles(old, "antibiotics paracetamol") == {"Sepsis"}
        assert answers(settings, "antibiotics paracetamol") == {"Sepsis"}
        child.stdin.write("go\n")
        child.stdin.flush()
        assert child.stdout.readline() == "2\n"
        assert titles(old, "antibiotics paracetamol") == {"Sepsis"}, "open readers keep their generation"
        assert child.wait(30) == 0
    assert answers(settings, "antibiotics paracetamol") == {"Sepsis", "Fever"}
    assert import_into(settings, other).generation == 0
    verify(settings.data)


@pytest.mark.slow
def test_the_lock_goes_with_the_process(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": "Sepsis\n\nGive antibiotics.\n"})
    command = [sys.executable, "-c", WAITING, str(settings.data), str(corpus)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.kill()
    assert import_into(settings, corpus).generation == 1


@pytest.mark.slow
def test_no_file_stays_open(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": "Sepsis\n\nGive antibiotics.\n"})
    import_into(settings, corpus)
    answers(settings, "antibiotics")
    before, threads = _open_files(settings.data), threading.active_count()
    for number in range(4):
        write(corpus, {"a.txt": f"Sepsis\n\nGive antibiotics {number}.\n"})
        import_into(settings, corpus)
        answers(settings, "antibiotics")
    assert _open_files(settings.data) <= before
    assert threading.active_count() == threads


def _open_files(data: Path) -> int:
    links = list(Path("/proc/self/fd").iterdir())
    return sum(link.is_symlink() and str(link.readlink()).startswith(str(data)) for link in links)


def test_every_run_is_recorded(settings: Settings, corpus: Path) -> None:
    write(corpus, {"a.txt": "Sepsis\n\nGive antibiotics.\n"})
    import_into(settings, corpus)
    import_into(settings, corpus)
    with rows(settings.data) as state:
        noted = state.execute("SELECT outcome, generation, finished <> '' FROM imports ORDER BY id").fetchall()
    assert noted == [("finished", 1, 1), ("finished", 0, 1)]


@pytest.mark.slow
def test_progress_adds_up(settings: Settings, corpus: Path) -> None:
    from localmed.ingest.pipeline import Importer
    from tests.fakes import described

    write(corpus, {"a.txt": "One\n\nText one.\n", "b.txt": "", "c.txt": "One\n\nText one.\n", "d.pdf": "%PDF-1"})
    steps: list[float] = []
    expected: list[int] = []
    importer = Importer(settings, described(), HashedWords(), lambda done, _: steps.append(done))
    importer.run([corpus], started=expected.append)
    assert sum(steps) == pytest.approx(expected[0])
