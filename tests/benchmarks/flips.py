"""Flipped bits: one random bit of a stored file after another, and what then becomes of all that is shown.

    python -m tests.benchmarks.flips [--count 600] [--kind site.sqlite ...]

A small library (guidelines, a PDF, a hidden collection, a terminology; one document withdrawn, one superseded, one not
yet effective; accounts, a login, a token, a stop, a job, answers that were kept, a registered model) is asked,
searched, listed, drawn, signed in to and looked up. For each flip a kind of file is chosen, then a file, a byte and a
bit; half are written as any program writes, half as a disk decays, with the file's times unchanged. A flip is "noticed"
(an error that says what is damaged and what to do), "refused" (as if it were not there: nobody gets in, no kept answer
is shown), "harmless" (everything as before, but for the list of jobs) or "silent". A bit in the cache of vectors shows
at the next encoding, so texts are encoded again for it; the model is opened as for loading.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from localmed.config import NONE, LibrarySettings, Settings
from localmed.domain import Answer, Kind, SearchFilter, Status, message
from localmed.domain.accounts import Account, SessionRole
from localmed.domain.answers import answer_json
from localmed.domain.errors import LocalmedError, UnknownName, UsageError
from localmed.ingest.graph_import import GraphImporter
from localmed.ingest.manifest import load
from localmed.library import generations, in_force
from localmed.library.reading import require_unaltered
from localmed.library.vectors import VectorCache
from localmed.models.registry import registration
from localmed.models.registry.registration import FILE as REGISTRY
from localmed.models.registry.registry import Registry
from localmed.people import accounts, history, logins, tokens
from localmed.site import changes, jobs, lookups, stops
from localmed.site.governing import Change
from localmed.site.session import Session
from localmed.upkeep import check
from tests.benchmarks.common import Place, Row, met, work_folder
from tests.fakes import HashedWords, described, import_into, opened, overwrite, reader_of, write
from tests.models.model_files import gguf, make

COUNT = 600
_HELPS = re.compile(r"[:;.] [A-Za-z]")  # what happened, then what to do
NURSE = Account("nurse", SessionRole.READER, ("nurses",))
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
SINGLE = ("in_force.json", "site.sqlite", "audit.key", "history.key")
PLAIN = {"reranker": NONE}  # it reads what was found, and takes most of the time
DATES = ("generation", "day", "time")
TOLD = ("jobs",)  # shown, and neither an answer nor a picture nor access
PASSWORD = "a long password of a ward"
KEYS = "keys.json"  # beside the data folder: what a browser, a program and a reader hold


@dataclass
class Outcomes:
    """What the flips came to, by kind of file; ``checks`` are the seconds of the checks before each answer."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    silent: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)  # without a word of the damage
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
        _used(session, folder)
    encoded(settings)
    return settings


def _used(session: Session, folder: Path) -> None:
    """What a site in use has besides: accounts and who is signed in, a stop, a job, kept answers, a model."""
    data, answer = session.data, session.ask(QUESTION, SearchFilter())
    for account in (NURSE, Account("boss", SessionRole.ADMIN)):
        accounts.create(session, account, PASSWORD)
    stops.stop(session, stops.MODEL, "entailment", "under review")
    keys = {
        "login": logins.begin(data, NURSE),
        "token": tokens.make(session, NURSE.user, "laboratory", 7),
        "answer": history.keep(session, "", QUESTION, answer).id,
        "job": jobs.start(session, "check", lambda _: message("job.interrupted")),
    }
    (folder / KEYS).write_text(json.dumps(keys))
    (lookups.kept_folder(data) / "explain-1.json").write_text(json.dumps(answer_json(answer), indent=2))
    Registry(data / "models").add(make(folder / "Tiny-Q8_0.gguf", gguf()), "librarian", "tiny", "chat", "chatml")
    deadline = time.monotonic() + 60
    while jobs.job(session, keys["job"]).outcome is None and time.monotonic() < deadline:
        time.sleep(0.1)


def shown(session: Session, image: Path | None, signs_in: bool = True) -> dict[str, Any]:
    """All that is shown, by what was asked for; an error of ours in the place of what it keeps back."""
    reader, data, web = Session(session.site, reader_of("ward")), session.data, session.settings.web
    keys = json.loads((data.parent / KEYS).read_text())
    looked_up = {
        "ask": lambda: _without_digest(session.ask(QUESTION, SearchFilter()), "en"),
        "ask as reader": lambda: _without_digest(reader.ask(QUESTION, SearchFilter()), "en"),
        "search": lambda: session.find(QUESTION, SearchFilter(), 10, 10).found,
        "search as reader": lambda: reader.find(QUESTION, SearchFilter(), 10, 10).found,
        "diabetes": lambda: session.find("HbA1c target in type 2 diabetes", SearchFilter(), 5, 5).found,
        "concept": lambda: session.concept("chronic kidney disease"),
        "synonym": lambda: reader.concept("nephropathy"),
        "documents": lambda: lookups.documents_overdue(session),
        "of reader": lambda: lookups.documents(reader),
        "access": lambda: lookups.collections(session),
        "accounts": lambda: accounts.accounts(data),
        "login": lambda: logins.current(data, keys["login"], web),
        "token": lambda: tokens.current(data, keys["token"], web),
        "stops": lambda: stops.stops(data),
        "history": lambda: _without_digest(history.kept(session, keys["answer"]).answer),
        "kept": lambda: session.kept_evidence(data / "kept" / "explain-1.json", "1"),
        "model": lambda: _weights(session),
        "jobs": lambda: jobs.jobs(session),
        **(
            {"picture": partial(_picture, session, image), "vectors": partial(encoded, session.settings)}
            if image
            else {}
        ),
        **({"password": lambda: accounts.sign_in(data, NURSE.user, PASSWORD, web)} if signs_in else {}),
    }
    return {name: _plain(result(call)) for name, call in looked_up.items()}


def _weights(session: Session) -> list[str]:
    """The digests of the model's files as they would be loaded."""
    opened_model = session.site.registry.open("tiny")
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in opened_model.paths]


def encoded(settings: Settings) -> str:
    """The vectors of some texts, which the cache holds."""
    with closing(VectorCache(settings.data / "vectors", HashedWords())) as cache:
        return hashlib.sha256(cache.encode([f"text {number}" for number in range(200)]).tobytes()).hexdigest()


def _picture(session: Session, image: Path) -> str:
    hit = session.find("HbA1c target in type 2 diabetes", SearchFilter(("guidelines",)), 1, 1).found.hits[0]
    lookups.draw_page(session, lookups.evidence_of(session, hit.passage.id), image)
    return hashlib.sha256(image.read_bytes()).hexdigest()


class Refusal(str):
    """What is told of something that is not there, or that opens nothing."""

    __slots__ = ()


def result(call: Any) -> Any:
    """What ``call`` returns, a refusal, or its error."""
    try:
        value = call()
        return Refusal() if value is None else value
    except (UnknownName, UsageError) as error:
        return Refusal(error)
    except Exception as error:
        return error


def _without_digest(answer: Answer, language: str = "") -> dict[str, Any]:
    """``answer`` as JSON; its digest is also of the seconds, which differ from one asking to the next."""
    values = answer_json(answer, language)
    del values["digest"]
    return values


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
    beside = {name: sorted((data / name).rglob("*")) for name in ("files", "vectors", "kept", "models")}
    single = {name: [data / name] for name in SINGLE} | {"served.json": [data / "generations" / "served.json"]}
    return {
        kind: [
            path
            for path in paths
            if path.is_file() and path.stat().st_size and not path.name.endswith(("-shm", "-wal"))
        ]
        for kind, paths in (inside | beside | single).items()
    }


def flipped(path: Path, place: int, bit: int, decays: bool) -> bytes:
    """Flip a bit of ``path``, as a disk does where it ``decays``; return what stood there."""
    times, whole = path.stat(), path.read_bytes()
    overwrite(path, whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
    if decays:
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return whole


def measured(settings: Settings, count: int, seed: int = 14, only: Sequence[str] = ()) -> Outcomes:
    """Flip ``count`` bits, one at a time, of the kinds ``only`` if any are named."""
    chance, outcomes, image = random.Random(seed), Outcomes(), settings.data.parent / "page.png"
    with opened(settings, HashedWords(), uses=PLAIN) as session:
        before = shown(session, image)
        assert not any(isinstance(value, Exception) for value in before.values()), before
        for _ in range(25):
            began = time.thread_time()
            require_unaltered(generations.current(settings.data))
            outcomes.checks.append(time.thread_time() - began)
    for number in range(count):
        files = {kind: paths for kind, paths in kinds(settings.data).items() if kind in only or not only}
        kind = list(files)[number % len(files)]
        path = chance.choice(files[kind])
        place, bit = chance.choice(_places(path)), chance.randrange(8)
        decays = bool((number + number // len(files)) % 2)
        times, log = path.stat(), _log(settings.data)
        whole = flipped(path, place, bit, decays)
        if decays and kind == "models" and path.name != REGISTRY:
            _restamped(settings.data / "models", path)
        named = f"{kind} {path.name} {place}.{bit}{' decayed' if decays else ''}"
        in_force._KNOWN.clear()  # as a process that starts: one that has read it before goes on with that
        with opened(settings, HashedWords(), uses=PLAIN) as session:
            after = shown(session, image if kind in DRAWN_FROM else None, kind == "site.sqlite")
        print(number, end=" ", file=sys.stderr, flush=True)
        _judge(outcomes, kind, named, before, after, result(lambda: _whole(settings)))
        _restore(path, whole)
        if kind == "audit.key":  # what was entered with another key is not in the chain of the right one
            _put_back(log)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return outcomes


def _places(path: Path) -> Sequence[int]:
    """The bytes that are flipped: of databases those that say something, since most of a small one is empty pages."""
    if path.suffix != ".sqlite":
        return range(path.stat().st_size)
    return [place for place, byte in enumerate(path.read_bytes()) if byte]


def _restamped(folder: Path, path: Path) -> None:
    """Let the registry know the file as it is now, but for its content: the dates that a decaying disk leaves alone."""
    there = registration.read(folder)
    model = there.models["tiny"]
    stored = tuple(replace(file, stamp=registration.Stamp.of(folder / "tiny" / file.name)) for file in model.files)
    registration.write(folder, there.with_model(replace(model, files=stored)))


def _log(data: Path) -> dict[Path, bytes]:
    """The audit log's files as they are."""
    return {path: path.read_bytes() for path in data.glob("site.sqlite*")}


def _put_back(log: Mapping[Path, bytes]) -> None:
    for path in next(iter(log)).parent.glob("site.sqlite-*"):
        path.unlink()
    for path, content in log.items():
        path.write_bytes(content)


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
        return any(check.find_all_faults(session, None).values()) or bool(
            session.site.registry.problems("tiny", full=True)
        )


def _judge(
    outcomes: Outcomes, kind: str, named: str, before: Mapping[str, Any], after: Mapping[str, Any], seen: Any
) -> None:
    errors = {name: value for name, value in after.items() if isinstance(value, Exception)}
    strange = [
        f"{named}: {name} {type(error).__name__} {error}"
        for name, error in errors.items()
        if not isinstance(error, LocalmedError) or error.exit_code == 1 or not _HELPS.search(str(error))
    ]
    other = [name for name, value in after.items() if name not in errors and value != before[name]]
    noted = [name for name in other if isinstance(after[name], dict) and _of_audit(after[name], before[name])]
    refused = [name for name in other if isinstance(after[name], Refusal)]
    other = [name for name in other if name not in (*noted, *refused, *TOLD)]
    outcome = "silent" if other else "noticed" if errors or noted else "refused" if refused else "harmless"
    outcomes.counts.setdefault(kind, Counter())[outcome] += 1
    outcomes.silent += [f"{named}: {', '.join(other)}"] if other else []
    outcomes.refused += [f"{named}: {', '.join(refused)}"] if outcome == "refused" else []
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
            f"{len(outcomes.counts)} kinds; {total['noticed']} noticed, {total['harmless']} harmless, "
            f"{total['refused']} refused as if it were not there",
        ),
        Row(
            "cost of the checks an answer, median",
            "<= 2 ms",
            f"{(cost := statistics.median(outcomes.checks) * 1000):.2f} ms",
            met(cost <= 2),
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
    parser.add_argument("--kind", nargs="*", default=[])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=work_folder()) as folder:
        outcomes = measured(made(Path(folder)), options.count, options.seed, options.kind)
    for kind, counter in outcomes.counts.items():
        print(kind, dict(counter))
    for title in ("silent", "refused", "unnamed", "unseen"):
        print(f"-- {title}", *getattr(outcomes, title), sep="\n  ")
    for row in rows(outcomes):
        print(row)


if __name__ == "__main__":
    main()
