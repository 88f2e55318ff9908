"""The nightly refresh: its time against a full rebuild, kills at its durable system calls, backup and restore.

The rebuild imports part of MedQuAD into an empty folder with the default encoder; the refresh then finds one in a
hundred of its files changed. Kills: ``strace`` ends a refresh of a tiny library with SIGKILL at its N-th call of a
kind that makes something durable (sync, rename, link, unlink), for every N; the library must then be the old or the
new one, whole, and the next refresh must finish.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from localmed.config import Settings
from localmed.domain import SearchFilter
from localmed.hooks import SILENT
from localmed.library import generations
from localmed.night_settings import RefreshSettings
from localmed.operations import backup, importing
from localmed.operations.refresh import refresh
from localmed.operations.restore import restore
from tests.benchmarks.common import Place, Row, met
from tests.benchmarks.importing import thinned
from tests.fakes import HashedWords, described, documents, opened, verify, write

QUESTIONS = ("What are the treatments for Marfan syndrome?", "What causes cystic fibrosis?", "Who is at risk for gout?",
             "How is hemophilia inherited?", "What are the symptoms of asthma?")  # fmt: skip
CANARY = '[[canary]]\nid = "q{number}"\nquestion = "{question}"\nmust = "abstain"\n'
DURABLE = "fsync,fdatasync,rename,renameat,renameat2,symlink,symlinkat,link,linkat,unlink,unlinkat"
MOST_KILLS = 1_500
AT_ONCE = RefreshSettings(settle_seconds=0.0, free_bytes=1)


def run(place: Place, every: int = 12) -> list[Row]:
    """Refresh against rebuild, then backup and restore of the same library."""
    corpus = place.work / "refresh-corpus"
    shutil.copytree(thinned(place, every), corpus, symlinks=False, dirs_exist_ok=True)
    settings = Settings(place.work / "refresh-data", refresh=AT_ONCE)
    with opened(settings) as session:
        began = time.perf_counter()
        importing.import_paths(session, [corpus], described("medquad"))
        rebuild = time.perf_counter() - began
        questions = (CANARY.format(number=number, question=text) for number, text in enumerate(QUESTIONS))
        (settings.data / "canaries.toml").write_text("\n".join(questions))
        refresh(session)  # the canaries' answers of what is served are known from now on
        files = sorted(corpus.rglob("*.xml"))
        changed = files[:: max(1, len(files) * 100 // (len(files) or 1))][: max(1, len(files) // 100)]
        for path in changed:
            path.write_text(path.read_text("utf-8").replace("</Answer>", " Ask the ward.</Answer>", 1), "utf-8")
        began = time.perf_counter()
        night = refresh(session)
        seconds = time.perf_counter() - began
        passages = generations.read_manifest(generations.current(settings.data)).passages
        answers = [session.ask(question, SearchFilter()) for question in QUESTIONS]
        folder = place.work / "refresh-backups"
        began = time.perf_counter()
        made = backup.make(session, folder, SILENT)
        backing = time.perf_counter() - began
        began = time.perf_counter()
        again = backup.make(session, folder, SILENT)
        second = time.perf_counter() - began
    began = time.perf_counter()
    restore(folder, place.work / "refresh-restored", "", False, SILENT)
    restoring = time.perf_counter() - began
    with opened(replace(settings, data=place.work / "refresh-restored")) as session:
        same = sum(
            (now.statements, now.evidence) == (then.statements, then.evidence)
            for now, then in zip((session.ask(text, SearchFilter()) for text in QUESTIONS), answers, strict=True)
        )
    share, stages = seconds / rebuild, ", ".join(f"{name} {value:.1f} s" for name, value in night.seconds)
    how = (f"{passages:,} passages of MedQuAD, {len(changed)} of {len(files)} files changed, once: "
           f"rebuild {rebuild:.0f} s, refresh {seconds:.1f} s ({stages}; {len(QUESTIONS)} canaries)")  # fmt: skip
    size = f"{made.bytes / 2**20:.0f} MiB; a second backup wrote {again.added_bytes / 2**20:.1f} MiB in {second:.1f} s"
    return [
        Row("refresh with 1 % changed against a full rebuild", "<= 5 %", f"{share:.1%}", met(share <= 0.05), how),
        Row("backup and restore: answers that are identical", "all", f"{same}/{len(QUESTIONS)}",
            met(same == len(QUESTIONS)), f"backup {backing:.1f} s, restore {restoring:.1f} s, {size}"),
    ]  # fmt: skip


# --- kills ------------------------------------------------------------------------------------------------------------


def one(data: Path) -> None:
    """Refresh the tiny library in ``data``; what ``strace`` runs."""
    with opened(Settings(data, refresh=AT_ONCE), HashedWords()) as session:
        refresh(session)


def kills(place: Place, step: int = 1) -> list[Row]:
    """Kill at every ``step``-th durable call."""
    home = place.work / "kills"
    corpus = write(home / "corpus", {f"{n}.txt": f"Title {n}\n\nText {n} about sepsis, old.\n" for n in range(3)})
    start = Settings(home / "start", refresh=AT_ONCE)
    with opened(start, HashedWords()) as session:
        importing.import_paths(session, [corpus], described("ward"))
        refresh(session)
    write(corpus, {"0.txt": "Title 0\n\nText 0 about sepsis, new.\n", "9.txt": "Title 9\n\nText 9, new.\n"})
    (corpus / "1.txt").unlink()
    old, new, broken, points = 0, 0, 0, 0
    for number in range(1, MOST_KILLS, step):
        data = home / "killed"
        subprocess.run(["cp", "-a", str(start.data), str(data)], check=True)
        code = "import sys; from pathlib import Path; from tests.benchmarks.refresh import one; one(Path(sys.argv[1]))"
        traced = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={DURABLE}", "-e",
                  f"inject={DURABLE}:signal=KILL:when={number}"]  # fmt: skip
        ended = subprocess.run([*traced, sys.executable, "-c", code, str(data)], capture_output=True, check=False)
        if ended.returncode == 0:
            shutil.rmtree(data)
            break
        points += 1
        state = _state(replace(start, data=data))
        old, new, broken = old + (state == "old"), new + (state == "new"), broken + (state == "broken")
        shutil.rmtree(data)
    how = "`strace -e inject=fsync,...:signal=KILL:when=N`, tiny library, scripted encoder; N counts in each thread"
    return [Row("kill -9 at each durable call of a refresh: old, new, broken", "0 broken",
                f"{points} points: {old} old, {new} new, {broken} broken",
                met(not broken and bool(points)), how)]  # fmt: skip


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
