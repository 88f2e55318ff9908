"""The nightly refresh: its time against a full rebuild, kills at its durable system calls, backup and restore.

The rebuild imports part of MedQuAD into an empty folder with the default encoder; the refresh then finds one in a
hundred of its files changed. Kills: ``strace`` ends a refresh of a tiny library with SIGKILL at its N-th call of a kind
that makes something durable (sync, rename, link, unlink), for every N; the library must then be the old or the new one,
whole, and the next refresh must finish. Power cuts: the same in an ext4 file system of its own in a file, which is
copied the moment the refresh has died, without a sync: what the copy holds is what had reached the disk. Flips: a bit
of a file of the generation being served, one after another, which the nightly check must find.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from localmed.config import RefreshSettings, Settings
from localmed.domain import SearchFilter
from localmed.library import generations
from localmed.nightly.refresh import refresh
from localmed.process.hooks import SILENT
from localmed.site import importing
from localmed.upkeep import backup, check
from localmed.upkeep.restore import restore
from tests.benchmarks import flips
from tests.benchmarks.common import Place, Row, met
from tests.fakes import HashedWords, described, documents, opened, overwrite, verify, write

QUESTIONS = ("What are the treatments for Marfan syndrome?", "What causes cystic fibrosis?", "Who is at risk for gout?",
             "How is hemophilia inherited?", "What are the symptoms of asthma?")  # fmt: skip
CANARY = '[[canary]]\nid = "q{number}"\nquestion = "{question}"\nmust = "abstain"\n'
DURABLE = "fsync,fdatasync,rename,renameat,renameat2,symlink,symlinkat,link,linkat,unlink,unlinkat"
MOST_KILLS = 1_500
DISK = 128 * 2**20  # bytes of the file system that is cut off
AT_ONCE = RefreshSettings(settle_seconds=0.0, free_bytes=1)


def run(place: Place, every: int = 12) -> list[Row]:
    """Refresh against rebuild, then backup and restore of the same library: of one in ``every`` files of MedQuAD."""
    corpus = place.work / "refresh-corpus"
    corpus.mkdir(exist_ok=True)
    for file in sorted(place.medquad().rglob("*.xml"))[::every]:
        shutil.copy(file, corpus / f"{file.parent.name}-{file.name}")
    settings, folder = Settings(place.work / "refresh-data", refresh=AT_ONCE), place.work / "refresh-backups"
    with opened(settings) as session:
        rebuild = _spent(lambda: importing.import_paths(session, [corpus], described("medquad")))
        questions = (CANARY.format(number=number, question=text) for number, text in enumerate(QUESTIONS))
        (settings.data / "canaries.toml").write_text("\n".join(questions))
        refresh(session)  # the canaries' answers of what is served are known from now on
        changed = sorted(corpus.rglob("*.xml"))[::100]
        for path in changed:
            path.write_text(path.read_text("utf-8").replace("</Answer>", " Ask the ward.</Answer>", 1), "utf-8")
        night = _spent(lambda: refresh(session))
        passages = generations.read_manifest(generations.current(settings.data)).passages
        answers = [session.ask(question, SearchFilter()) for question in QUESTIONS]
        backing, again = (_spent(lambda: backup.make(session, folder, SILENT)) for _ in range(2))
    restored = replace(settings, data=place.work / "refresh-restored")
    restoring = _spent(lambda: restore(folder, restored.data, "", False, SILENT))
    with opened(restored) as session:
        same = sum(
            (now.receipts, now.evidence) == (then.receipts, then.evidence)
            for now, then in zip((session.ask(text, SearchFilter()) for text in QUESTIONS), answers, strict=True)
        )
    share, size = night[0] / rebuild[0], sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    times = [f"{seconds:.1f} ({wall:.0f})" for seconds, wall in (rebuild, night, backing, again, restoring)]
    how = (f"{passages:,} passages of MedQuAD, {len(changed)} files changed, default encoder, once; processor "
           f"seconds with children (wall): rebuild {times[0]}, refresh {times[1]}, {len(QUESTIONS)} asked")  # fmt: skip
    copied = f"{passages:,} passages, {size / 2**20:.0f} MiB; processor seconds (wall): backup {times[2]}, a second " \
             f"{times[3]}, restore {times[4]}"  # fmt: skip
    return [
        Row("refresh with 1 % changed against a full rebuild", "<= 5 %", f"{share:.1%}", met(share <= 0.05), how),
        Row("backup and restore: answers that are identical", "all", f"{same}/{len(QUESTIONS)}",
            met(same == len(QUESTIONS)), copied),
    ]  # fmt: skip


def _spent(work: Callable[[], object]) -> tuple[float, float]:
    """The processor seconds, children's too, and the seconds that ``work`` takes."""

    def spent() -> float:
        used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(usage.ru_utime + usage.ru_stime for usage in used)

    before, began = spent(), time.perf_counter()
    work()
    return spent() - before, time.perf_counter() - began


# --- kills ------------------------------------------------------------------------------------------------------------


def one(data: Path) -> None:
    """Refresh the tiny library in ``data``; what ``strace`` runs."""
    with opened(Settings(data, refresh=AT_ONCE), HashedWords()) as session:
        refresh(session)


JUDGED = "import sys; from pathlib import Path; from tests.benchmarks.refresh import judge; judge(Path(sys.argv[1]))"
TRACED = "import sys; from pathlib import Path; from tests.benchmarks.refresh import one; one(Path(sys.argv[1]))"


def start_of(home: Path) -> Settings:
    """A tiny library, and changes in its folder that a refresh has not seen."""
    corpus = write(home / "corpus", {f"{n}.txt": f"Title {n}\n\nText {n} about sepsis, old.\n" for n in range(3)})
    start = Settings(home / "start", refresh=AT_ONCE)
    with opened(start, HashedWords()) as session:
        importing.import_paths(session, [corpus], described("ward"))
        refresh(session)
    write(corpus, {"0.txt": "Title 0\n\nText 0 about sepsis, new.\n", "9.txt": "Title 9\n\nText 9, new.\n"})
    (corpus / "1.txt").unlink()
    return start


def killed(data: Path, number: int) -> bool:
    """Refresh the library in ``data``; whether it was killed at its durable call ``number`` (of a thread)."""
    traced = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={DURABLE}", "-e",
              f"inject={DURABLE}:signal=KILL:when={number}"]  # fmt: skip
    done = subprocess.run([*traced, sys.executable, "-c", TRACED, str(data)], capture_output=True, check=False)
    return done.returncode != 0


def kills(place: Place, step: int = 1) -> list[Row]:
    """Kill at every ``step``-th durable call."""
    home = place.work / "kills"
    start, states = start_of(home), Counter[str]()
    for number in range(1, MOST_KILLS, step):
        data = home / "killed"
        subprocess.run(["cp", "-a", str(start.data), str(data)], check=True)
        if not killed(data, number):
            shutil.rmtree(data)
            break
        states[_state(replace(start, data=data))] += 1
        shutil.rmtree(data)
    how = "`strace -e inject=fsync,...:signal=KILL:when=N`, tiny library, scripted encoder; N counts in each thread"
    return [_survived("kill -9 at each durable call of a refresh: old, new, broken", states, how)]


def _survived(what: str, states: Counter[str], how: str) -> Row:
    measured = f"{states.total()} points: {states['old']} old, {states['new']} new, {states['broken']} broken"
    return Row(what, "0 broken", measured, met(states.total() > 0 and not states["broken"]), how)


def cuts(place: Place, step: int = 3) -> list[Row]:
    """Cut the power at every ``step``-th durable call; needs the right to mount."""
    home = place.work / "cuts"
    start, states = start_of(home), Counter[str]()
    image, cut, disk = home / "disk.img", home / "cut.img", home / "disk"
    disk.mkdir()
    with image.open("wb") as stream:
        stream.truncate(DISK)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    with _mounted(image, disk):
        subprocess.run(["cp", "-a", str(start.data), str(disk / "data")], check=True)
    for number in range(1, MOST_KILLS, step):
        subprocess.run(["cp", "--sparse=always", str(image), str(cut)], check=True)
        with _mounted(cut, disk):
            ended = not killed(disk / "data", number)
            subprocess.run(["cp", "--sparse=always", str(cut), str(cut.with_suffix(".cut"))], check=True)
        if ended:
            break
        with _mounted(cut.with_suffix(".cut"), disk):  # which replays its journal
            command = [sys.executable, "-c", JUDGED, str(disk / "data")]  # a process, which holds nothing when it ends
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            states[printed.split()[-1]] += 1
    how = ("ext4 in a file mounted by loop, the file copied without a sync when the refresh was killed at that call, "
           f"mounted again; one call in {step}; the drive's own cache is taken to be honest")  # fmt: skip
    return [_survived("power cuts at durable calls of a refresh: old, new, broken", states, how)]


@contextmanager
def _mounted(image: Path, folder: Path) -> Iterator[None]:
    subprocess.run(["mount", "-o", "loop", str(image), str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def flipped_bits(place: Place, count: int = 1_000, controls: int = 100) -> list[Row]:
    """Flip ``count`` bits of the generation being served, one at a time; the nightly check must find each."""
    settings, chance = flips.made(place.work / "flips"), random.Random(18)
    missed, false = list[str](), 0
    with opened(settings, HashedWords()) as session:
        served = generations.current(settings.data)
        paths = [served / name for name in generations.read_manifest(served).files]
        paths = [path for path in [*paths, served / generations.MANIFEST] if path.stat().st_size]
        for number in range(controls):
            os.utime(chance.choice(paths), None if number % 2 else (0, 0))  # touched, with the same bytes
            false += bool(check.verify_and_mend(session, SILENT)[0])
        for number in range(count):
            path = paths[number % len(paths)]
            place_of_bit, bit, times = chance.randrange(path.stat().st_size), chance.randrange(8), path.stat()
            whole = flips.flipped(path, place_of_bit, bit, decays=bool(number // len(paths) % 2))
            if not check.verify_and_mend(session, SILENT)[0]:
                missed.append(f"{path.relative_to(served)} {place_of_bit}.{bit}")
            overwrite(path, whole)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    print(*missed, sep="\n")
    how = f"{len(paths)} files of a small library with every kind of index; {controls} controls touched without a flip"
    return [Row("single-bit flips of index files that the nightly check finds", "100 %, 0 false",
                f"{count - len(missed)} of {count}, {false} false", met(not missed and not false), how)]  # fmt: skip


def judge(data: Path) -> None:
    """Print what became of the library in ``data``."""
    print(_state(Settings(data, refresh=AT_ONCE)))


def _state(settings: Settings) -> str:
    """What a refresh that was killed has left: a whole old or new library, which the next refresh finishes."""
    before, after = {"0.txt", "1.txt", "2.txt"}, {"0.txt", "2.txt", "9.txt"}
    try:
        verify(settings.data)
        held = set(documents(settings))
        with opened(settings, HashedWords()) as session:
            refresh(session)
        verify(settings.data)
        finished = set(documents(settings)) == after
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        return "broken"
    return {True: "new", False: "old"}[held == after] if finished and held in (before, after) else "broken"
