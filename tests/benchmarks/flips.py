"""Flipped bits: one random bit of a stored file after another, and what then becomes of all that is shown.

    python -m tests.benchmarks.flips [--count 600]

A small library (guidelines, a PDF, a hidden collection, a terminology; one document withdrawn, one superseded, one not
yet effective) is asked, searched, listed, drawn and looked up. For each flip a kind of file is chosen, then a file, a
byte and a bit; half are written as any program writes, half as a disk decays, with the file's times unchanged. A flip
is "noticed" (an error that says what is damaged and what to do), "harmless" (everything as before) or "silent". A bit
in the cache of vectors shows at the next encoding, so texts are encoded again for it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from localmed.config import NONE, LibrarySettings, Settings
from localmed.domain import Kind, SearchFilter, Status
from localmed.domain.codec import answer_json
from localmed.errors import LocalmedError, UnknownName
from localmed.ingest.graph_import import GraphImporter
from localmed.ingest.manifest import load
from localmed.library import generations
from localmed.library.reading import unaltered
from localmed.library.vectors import VectorCache
from localmed.operations import changes, lookups
from localmed.operations.governing import Change
from localmed.session import Session
from tests.benchmarks.common import Place, Row, met, work_folder
from tests.fakes import HashedWords, described, import_into, opened, overwrite, reader_of, write

COUNT = 600
QUESTION = "How much adrenaline is given for anaphylaxis?"
ROOT = Path(__file__).parents[2]
TERMS = ROOT / "tests" / "ingest" / "fixtures" / "graphs" / "small.obo"
DOSES = {
    "anaphylaxis.txt": "Anaphylaxis\n\nGive 500 micrograms of adrenaline into the muscle for anaphylaxis in adults.\n"
    "Repeat adrenaline after 5 minutes if there is no improvement.\n",
    "shock.txt": "Septic shock\n\nStart noradrenaline at 5 micrograms a minute. Vasopressin is added second.\n",
    "old.txt": "Anaphylaxis 2009\n\nGive 300 micrograms of adrenaline under the skin for anaphylaxis.\n",
    "drawn.txt": "Adrenaline inhaler\n\nInhaled adrenaline is given for anaphylaxis at 160 micrograms.\n",
    "coming.txt": "Anaphylaxis 2099\n\nGive 400 micrograms of adrenaline for anaphylaxis by the new device.\n",
}
HIDDEN = {"trial.txt": "Trial protocol\n\nGive 900 micrograms of adrenaline for anaphylaxis within the trial.\n"}
DRAWN_FROM = ("vectors", "files", "lexical", "library.sqlite", generations.MANIFEST, "checked.json")
PLAIN = {"reranker": NONE}  # it reads what was found, and takes most of the time
DATES = ("generation", "day", "time")


@dataclass
class Outcomes:
    """What the flips came to, by kind of file; ``checks`` are the seconds of the checks before each answer."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    silent: list[str] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)  # noticed without a repair, or by an error that is not ours
    unseen: list[str] = field(default_factory=list)  # by the whole check
    checks: list[float] = field(default_factory=list)


def made(folder: Path) -> Settings:
    """The library that is damaged."""
    settings = Settings(folder / "data", library=LibrarySettings(writer_memory_bytes=15_000_000))
    import_into(settings, write(folder / "doses", DOSES), manifest=described("doses"))
    pdf = ROOT / "corpora" / "starter" / "guidelines" / "type2-diabetes.pdf"
    import_into(settings, pdf, manifest=described("guidelines"))
    import_into(settings, write(folder / "hidden", HIDDEN), manifest=described("hidden"))
    GraphImporter(settings, load(ROOT / "corpora" / "doid.toml"), HashedWords()).run([TERMS], False)
    with opened(settings, HashedWords(), uses=PLAIN) as session:
        documents = {document.key.rpartition("/")[2]: document for document in lookups.documents(session)}
        guideline = lookups.collection(session, "guidelines")
        changes.put_collection(session, type(guideline)(guideline.name, guideline.title, kind=Kind.GUIDELINE))
        changes.set_access(session, "hidden", ["research"])
        changes.mark(session, documents["old.txt"], Status.SUPERSEDED, documents["anaphylaxis.txt"].id)
        coming = (date.today() + timedelta(300)).isoformat()
        changes.govern(session, [Change((documents["coming.txt"],), {"effective_from": coming})])
        changes.withdraw(session, documents["drawn.txt"], True, "recalled")
    encoded(settings)
    return settings


def shown(session: Session, image: Path | None) -> dict[str, Any]:
    """All that is shown, by what was asked for; an error of ours in the place of what it keeps back."""
    reader = Session(session.site, reader_of("ward"))
    looked_up = {
        "ask": lambda: answer_json(session.ask(QUESTION, SearchFilter()), "en"),
        "ask as reader": lambda: answer_json(reader.ask(QUESTION, SearchFilter()), "en"),
        "search": lambda: session.search(QUESTION, SearchFilter(), 10),
        "search as reader": lambda: reader.search(QUESTION, SearchFilter(), 10),
        "diabetes": lambda: session.search("HbA1c target in type 2 diabetes", SearchFilter(), 5),
        "concept": lambda: session.concept("chronic kidney disease"),
        "synonym": lambda: reader.concept("nephropathy"),
        "documents": lambda: lookups.documents_overdue(session),
        "of reader": lambda: lookups.documents(reader),
        "access": lambda: lookups.collections(session),
        **(
            {"picture": partial(_picture, session, image), "vectors": partial(encoded, session.settings)}
            if image
            else {}
        ),
    }
    return {name: _plain(result(call)) for name, call in looked_up.items()}


def encoded(settings: Settings) -> str:
    """The vectors of some texts, which the cache holds."""
    with closing(VectorCache(settings.data / "vectors", HashedWords())) as cache:
        return hashlib.sha256(cache.encode([f"text {number}" for number in range(200)]).tobytes()).hexdigest()


def _picture(session: Session, image: Path) -> str:
    hit = session.search("HbA1c target in type 2 diabetes", SearchFilter(("guidelines",)), 1).hits[0]
    lookups.draw_page(session, lookups.evidence_of(session, hit.passage.id), image)
    return hashlib.sha256(image.read_bytes()).hexdigest()


def result(call: Any) -> Any:
    """What ``call`` returns, or its error."""
    try:
        return call()
    except UnknownName as error:
        return f"{error}"
    except Exception as error:
        return error


def _plain(value: Any) -> Any:
    """``value`` as far as it is the same every time."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items() if name not in ("seconds", "trace", *DATES)}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def kinds(data: Path) -> dict[str, list[Path]]:
    """The stored files by kind, those of the generation being served by what they are part of."""
    served = generations.current(data)
    inside: dict[str, list[Path]] = {}
    for name in (*generations.read_manifest(served).files, generations.MANIFEST, "checked.json"):
        inside.setdefault(name.partition("/")[0], []).append(served / name)
    beside = {name: sorted((data / name).glob("*")) for name in ("files", "vectors")}
    single = {
        name: [data / name]
        for name in ("access.json", "withdrawals", "withdrawals.known", "audit.sqlite", "state.sqlite")
    }
    return {
        kind: [path for path in paths if path.is_file() and path.stat().st_size]
        for kind, paths in (inside | beside | single).items()
    }


def flipped(path: Path, place: int, bit: int, decays: bool) -> bytes:
    """Flip a bit of ``path``, as a disk does where it ``decays``; return what stood there."""
    times, whole = path.stat(), path.read_bytes()
    overwrite(path, whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
    if decays:
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return whole


def measured(settings: Settings, count: int, seed: int = 14) -> Outcomes:
    """Flip ``count`` bits, one at a time."""
    chance, outcomes, image = random.Random(seed), Outcomes(), settings.data.parent / "page.png"
    with opened(settings, HashedWords(), uses=PLAIN) as session:
        before = shown(session, image)
        assert not any(isinstance(value, Exception) for value in before.values()), before
        for _ in range(25):
            began = time.thread_time()
            unaltered(generations.current(settings.data))
            outcomes.checks.append(time.thread_time() - began)
    for number in range(count):
        files = kinds(settings.data)
        kind = list(files)[number % len(files)]
        path = chance.choice(files[kind])
        place, bit, decays = chance.randrange(path.stat().st_size), chance.randrange(8), bool(number // len(files) % 2)
        times, whole = path.stat(), flipped(path, place, bit, decays)
        named = f"{kind} {path.name} {place}.{bit}{' decayed' if decays else ''}"
        with opened(settings, HashedWords(), uses=PLAIN) as session:
            after = shown(session, image if kind in DRAWN_FROM else None)
        print(number, end=" ", file=sys.stderr, flush=True)
        _judge(outcomes, kind, named, before, after, result(lambda: _whole(settings)))
        _restore(path, whole)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return outcomes


def _restore(path: Path, whole: bytes) -> None:
    """Put back what stood there; of the databases outside the generations also what was written since."""
    if path.name != "library.sqlite" and path.suffix == ".sqlite":
        for part in ("-wal", "-shm"):
            path.with_name(path.name + part).unlink(missing_ok=True)
    if path.exists() and path.stat().st_size == len(whole):
        overwrite(path, whole)
    else:
        path.write_bytes(whole)


def _whole(settings: Settings) -> bool:
    """Whether the whole check finds something."""
    with opened(settings, HashedWords(), uses=PLAIN) as session:
        return any(lookups.verified(session, None).values())


def _judge(
    outcomes: Outcomes, kind: str, named: str, before: Mapping[str, Any], after: Mapping[str, Any], seen: Any
) -> None:
    errors = {name: value for name, value in after.items() if isinstance(value, Exception)}
    strange = [
        f"{named}: {name} {type(error).__name__} {error}"
        for name, error in errors.items()
        if not isinstance(error, LocalmedError) or error.exit_code != 5 or len(error.messages) < 2
    ]
    other = [name for name, value in after.items() if name not in errors and value != before[name]]
    noted = [name for name in other if isinstance(after[name], dict) and _of_audit(after[name], before[name])]
    other = [name for name in other if name not in noted]
    outcome = "silent" if other else "noticed" if errors or noted else "harmless"
    outcomes.counts.setdefault(kind, Counter())[outcome] += 1
    outcomes.silent += [f"{named}: {', '.join(other)}"] if other else []
    outcomes.unnamed += strange
    outcomes.unseen += [] if seen else [f"{named} ({outcome})"]


def _of_audit(answer: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether an answer is the one before with a note that the audit log cannot be read or written."""
    codes = [str(note.get("code", "")) for note in answer["notes"] if note not in before["notes"]]
    return (
        bool(codes)
        and all(code.startswith("audit.") for code in codes)
        and ({**answer, "notes": []} == {**before, "notes": []})
    )


def rows(outcomes: Outcomes) -> list[Row]:
    """The rows of the results."""
    total = sum((counter for counter in outcomes.counts.values()), Counter[str]())
    return [
        Row(
            f"{total.total()} random bit flips in every kind of stored file: silent differences",
            "0",
            f"{total['silent']}",
            met(not total["silent"]),
            f"{total['noticed']} noticed, {total['harmless']} harmless",
        ),
        Row(
            "cost of the checks an answer, median",
            "<= 2 ms",
            f"{statistics.median(outcomes.checks) * 1000:.2f} ms",
            "-",
            "",
        ),
    ]


def run(place: Place, count: int = COUNT) -> list[Row]:
    """The rows of the results."""
    with tempfile.TemporaryDirectory(dir=place.work) as folder:
        return rows(measured(made(Path(folder)), count))


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=14)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=work_folder()) as folder:
        outcomes = measured(made(Path(folder)), options.count, options.seed)
    for kind, counter in outcomes.counts.items():
        print(kind, dict(counter))
    for title in ("silent", "unnamed", "unseen"):
        print(f"-- {title}", *getattr(outcomes, title), sep="\n  ")
    for row in rows(outcomes):
        print(row)


if __name__ == "__main__":
    main()
