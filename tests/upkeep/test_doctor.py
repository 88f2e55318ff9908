"""The doctor: for each thing that can be wrong, make it so, and see the line that says it."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from localmed.answering import self_test
from localmed.config import BackupSettings, ChatSettings, Settings
from localmed.domain import Document, message
from localmed.domain.errors import LibraryError
from localmed.domain.ports import ChatIdentity
from localmed.ingest.ocr import child as ocr
from localmed.library import generations, in_force
from localmed.library.state import Quarantined, requarantine, rows
from localmed.messages import render
from localmed.models.registry import tested
from localmed.models.registry.manifests import FOLDER
from localmed.models.registry.registry import Registry
from localmed.process.environment import OFFLINE
from localmed.site.audit import BEGUN, Audit, entry_of
from localmed.upkeep import backup, doctor
from localmed.upkeep.doctor import Check, Level, Site, ok
from localmed.upkeep.fit import Gpu, Machine, size
from tests.fakes import flip, import_into, withdraw, write
from tests.models import model_files as files
from tests.models.model_files import make
from tests.words import phrase, said

GIB = 2**30
NOW = datetime.fromisoformat("2027-01-15T12:00:00+01:00")
CLEAN = {"PATH": "/bin"}
BIG = Machine(64 * GIB, 60 * GIB, 8, (Gpu("Card", "550", 48 * GIB, 47 * GIB),))


@pytest.fixture
def site(settings: Settings) -> Site:
    registry = Registry(settings.data / "models", FOLDER)
    return Site(settings, registry, BIG, CLEAN, NOW)


@pytest.fixture
def full_site(site: Site, corpus: Path) -> Site:
    """With a library of two generations, an audit entry and a model."""
    write(corpus, {"a.txt": "Sepsis\n\nGive antibiotics within one hour.\n"})
    import_into(site.settings, corpus)
    write(corpus, {"b.txt": "Fever\n\nParacetamol is given.\n"})
    import_into(site.settings, corpus)
    with Audit(site.settings.data) as log:
        log.add(entry_of("import", "ward", "finished"))
        log.add(entry_of("backup", "20270115T020000", "written"))
    site.registry.add(make(corpus.parent / "Qwen3-8B-Q4_K_M.gguf", files.gguf()), "x")
    site.registry.use("chat", "qwen3-8b")
    tested.keep(site.registry.folder, ChatIdentity("qwen3-8b", "", 0), (), self_test.questions())
    return replace(_with(site, backup=BackupSettings(folder="/mnt/backup")), now=datetime.now().astimezone())


def _with(site: Site, **settings: Any) -> Site:
    return replace(site, settings=replace(site.settings, **settings))


def lines(site: Site, name: str) -> list[Check]:
    checks = [check for check in doctor.examine(site) if check.name == name]
    assert checks, name
    return checks


def levels(site: Site) -> dict[str, Level]:
    """The worst level by name; a notice is no fault."""
    worst: dict[str, Level] = {}
    for check in doctor.examine(site):
        if check.level is Level.NOTICE:
            assert len(check.messages) > 1
            continue
        worst[check.name] = max(worst.get(check.name, Level.OK), check.level, key=list(Level).index)
    return worst


def said_by(check: Check) -> str:
    return render(check.messages[0], "en")


def only(site: Site, name: str, level: Level) -> str:
    """What the doctor says of ``name``, which is at ``level``, while all else is ok."""
    assert {part: state for part, state in levels(site).items() if state is not Level.OK} == {name: level}
    [check] = [line for line in lines(site, name) if line.level is level]
    return said_by(check)


def test_nothing_imported_yet(site: Site) -> None:
    assert set(levels(site).values()) == {Level.OK}
    assert not site.settings.data.exists()  # nothing was made


def test_all_well(full_site: Site) -> None:
    assert set(levels(full_site).values()) == {Level.OK}
    assert set(levels(replace(full_site, full=True)).values()) == {Level.OK}
    assert "0002 is in use, 2 kept" in said_by(lines(full_site, "library")[0])


def test_a_chat_server_that_is_not_set_up_and_one_that_is(site: Site) -> None:
    chat = ChatSettings(server="http://a:1", servers=("http://a:1",), server_model="m")
    for lacking, says in (("servers", "not listed in chat.servers"), ("server_model", "set chat.server_model")):
        wrong = replace(chat, **{lacking: getattr(ChatSettings(), lacking)})
        assert says in only(_with(site, chat=wrong), "models", Level.PROBLEM)
    assert "m at http://a:1 has not run" in only(_with(site, chat=chat), "models", Level.WARNING)
    identity, questions = ChatIdentity("m at http://a:1", "", 0), self_test.questions()
    tested.keep(site.registry.folder, identity, [], {**questions, "relevance": "what an earlier version asked"})
    [outdated] = [said_by(line) for line in lines(_with(site, chat=chat), "models") if line.level is Level.WARNING]
    assert "served by rules: relevance" in outdated
    tested.keep(site.registry.folder, identity, ["relevance", "check"], questions)
    [unfit] = [said_by(line) for line in lines(_with(site, chat=chat), "models") if line.level is Level.WARNING]
    assert unfit == said("doctor.chat_unfit.what", name="m at http://a:1", roles=("check",))
    tested.keep(site.registry.folder, identity, ["relevance"], questions)
    assert [said_by(line) for line in lines(_with(site, chat=chat), "models")] == [
        said("doctor.server", server="http://a:1")
    ]


# --- the data folder -----------------------------------------------------------------------------------------------


def altered(data: Path) -> None:
    with closing(sqlite3.connect(data / "site.sqlite")) as database, database:
        database.execute("UPDATE journal SET entry = replace(entry, 'finished', 'Finished')")


def refused(data: Path) -> None:
    """Two parts of one file."""
    parts = [
        Quarantined("ward", "/x/a.pdf", message("reader.line", number=number), "s", "r", message("reader.deep"))
        for number in (1, 2)
    ]
    with rows(data) as state:
        requarantine(state, "ward", "/x/a.pdf", parts)


@pytest.mark.parametrize(("harm", "name", "level", "says"), [
    (lambda data: data.chmod(0o750), "rights", Level.PROBLEM, "mode 750"),
    (lambda data: (data / "generations/0001/library.sqlite").unlink(), "library", Level.WARNING, "0001"),
    (lambda data: (data / "models/mine").mkdir(), "model files", Level.WARNING, "mine"),
    (altered, "audit", Level.PROBLEM, "entry 1 was altered"),
    (refused, "quarantine", Level.WARNING, "refused: 1"),
])  # fmt: skip
def test_what_is_wrong_is_one_line(
    full_site: Site, harm: Callable[[Path], object], name: str, level: Level, says: str
) -> None:
    harm(full_site.settings.data)
    assert says in only(full_site, name, level)


def test_another_owner(full_site: Site) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may give a folder away")
    os.chown(full_site.settings.data, 12345, -1)
    assert "another account" in only(full_site, "rights", Level.PROBLEM)


def file_of(site: Site, generation: str, name: str) -> Path:
    [path] = (site.settings.data / "generations" / generation).rglob(name)
    return path


def test_what_a_restore_that_was_cut_off_left_beside_is_named(full_site: Site) -> None:
    data = full_site.settings.data
    left = [data.with_name(f".{data.name}.{end}") for end in ("restoring", "restored", "exchanged")]
    for path in left:
        path.mkdir()
    says = only(full_site, "data folder", Level.WARNING)
    assert all(path.name in says for path in left)


def test_a_damaged_generation_that_is_served(full_site: Site) -> None:
    path = file_of(full_site, "0002", "library.sqlite")
    whole = flip(path)
    for full in (False, True):  # the size is as it was, but the file was touched since it was hashed
        assert "sha256 differs" in only(replace(full_site, full=full), "library", Level.PROBLEM)
    path.write_bytes(whole[:-1])
    assert "bytes, not" in only(full_site, "library", Level.PROBLEM)


def leading_nowhere(data: Path) -> None:
    (data / "current").unlink()
    (data / "current").symlink_to("generations/0099")


@pytest.mark.parametrize(("name", "harm"), [
    ("library", leading_nowhere),
    ("library", lambda data: (data / "generations/0002" / generations.MANIFEST).write_text("{")),
    ("audit", lambda data: (data / "site.sqlite").write_bytes(b"not a database, not at all" * 100)),
])  # fmt: skip
def test_what_cannot_be_read_is_a_problem(full_site: Site, name: str, harm: Callable[[Path], object]) -> None:
    harm(full_site.settings.data)
    assert levels(full_site)[name] is Level.PROBLEM


def test_what_is_in_force_cannot_be_read(full_site: Site) -> None:
    document = Document("id", "ward", "a", "t", "en", "s", "f", "c", "text/plain")
    withdraw(full_site.settings.data, document)
    assert "1 withdrawals" in said_by(lines(full_site, "state")[0])
    path = full_site.settings.data / "site.sqlite"
    path.write_bytes(path.read_bytes().replace(b'"document": "id"', b'"document": "ie"', 1))
    in_force._KNOWN.clear()
    assert levels(full_site)["state"] is Level.PROBLEM
    path.unlink()
    assert levels(full_site)["state"] is Level.PROBLEM


@pytest.mark.parametrize(("free", "level"), [(2**19, Level.PROBLEM), (GIB, Level.WARNING)])
def test_a_writer_and_a_full_disk(full_site: Site, monkeypatch: pytest.MonkeyPatch, free: int, level: Level) -> None:
    with generations.lock_writer(full_site.settings.data):
        assert f"process {os.getpid()}" in only(full_site, "writer", Level.WARNING)
    usage = type("Usage", (), {"free": free})
    monkeypatch.setattr("localmed.upkeep.doctor.shutil.disk_usage", lambda path: usage)
    only(full_site, "disk", level)


# --- the machine and the software ----------------------------------------------------------------------------------


def test_clocks_and_when_the_last_backup_was_made(full_site: Site) -> None:
    assert "/mnt/backup" in said_by(lines(full_site, "backup")[0])
    beside = full_site.settings.data.parent / "backups"
    (beside / "20270115T020000").mkdir(parents=True)
    (beside / "20270115T020000" / backup.MANIFEST).touch()
    [check] = doctor.backups(_with(full_site, backup=BackupSettings(folder=str(beside))))
    assert (check.messages[0].code, check.level) == ("doctor.backup_beside", Level.NOTICE)
    assert only(replace(full_site, now=full_site.now + timedelta(days=3)), "backup", Level.WARNING)
    assert only(_with(full_site, backup=BackupSettings()), "backup", Level.WARNING)
    only(replace(full_site, now=full_site.now - timedelta(hours=2)), "clock", Level.PROBLEM)
    early = replace(full_site, now=datetime.fromisoformat("1970-01-01T00:00:01+00:00"))
    assert [line.level for line in lines(early, "clock")] == [Level.PROBLEM, Level.PROBLEM]
    assert levels(replace(full_site, now=full_site.now - timedelta(minutes=1)))["clock"] is Level.OK


def test_times_of_the_log_are_those_of_the_machine(full_site: Site) -> None:
    with Audit(full_site.settings.data) as log:
        log.add(replace(entry_of("remove", "ward", BEGUN), time="2026-11-28T23:30:00+00:00"))
    china = replace(full_site, now=full_site.now.astimezone(timezone(timedelta(hours=8))))
    [unfinished] = [line for line in lines(china, "audit") if line.level is Level.WARNING]
    assert dict(unfinished.messages[0].parameters)["time"] == "2026-11-29 07:30"


def test_little_memory_and_no_gpu(site: Site) -> None:
    small = replace(site, machine=Machine(2 * GIB, GIB, 1, (), message("doctor.no_smi")))
    assert "2.0 GiB" in only(small, "memory", Level.WARNING)
    assert levels(_with(small, profile="workstation"))["gpu"] is Level.WARNING


def test_who_reads_scans(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    off = _with(site, read=replace(site.settings.read, ocr=False))
    assert "read.ocr is off" in said_by(lines(off, "scans")[0])
    monkeypatch.setattr(ocr, "PACKAGES", ("no_such_package",))
    assert "localmed[ocr]" in said_by(lines(site, "scans")[0])


def test_the_environment(site: Site) -> None:
    wrong = replace(site, environment={**CLEAN, "HF_HUB_OFFLINE": "0"})
    assert "HF_HUB_OFFLINE" in only(wrong, "offline", Level.WARNING)
    proxy = replace(site, environment={**CLEAN, **OFFLINE, "HTTPS_PROXY": "http://user:secret@proxy"})
    says = only(proxy, "offline", Level.WARNING)
    assert "HTTPS_PROXY" in says
    assert "secret" not in says


@pytest.mark.parametrize(
    ("requirement", "says"),
    [
        ("click==0.0.1", "not 0.0.1"),
        ("no-such-thing==1.0", "no-such-thing is missing"),
        ('click==0.0.1; extra == "x"', "not 0.0.1"),
        ('no-such-thing==1.0; extra == "x"', ""),
        ("pytest>=2", ""),
    ],
)
def test_libraries(site: Site, monkeypatch: pytest.MonkeyPatch, requirement: str, says: str) -> None:
    monkeypatch.setattr("localmed.upkeep.doctor.metadata.requires", lambda name: [requirement])
    [check] = lines(site, "libraries")
    assert check.level is (Level.PROBLEM if says else Level.OK)
    assert says in said_by(check)


# --- models --------------------------------------------------------------------------------------------------------


def test_a_changed_model(full_site: Site) -> None:
    path = full_site.registry.folder / "qwen3-8b" / "Qwen3-8B-Q4_K_M.gguf"
    path.chmod(0o600)
    path.write_bytes(b"x" + path.read_bytes()[1:])
    assert "sha256 differs" in only(full_site, "model files", Level.PROBLEM)
    path.unlink()
    assert "missing" in only(full_site, "model files", Level.PROBLEM)


def test_a_registry_that_cannot_be_read(full_site: Site) -> None:
    (full_site.registry.folder / "registry.json").write_text("{}")
    by_name = levels(full_site)
    assert by_name["models chosen"] is by_name["models whole"] is Level.PROBLEM
    assert by_name["library"] is by_name["audit"] is Level.OK  # the rest is looked at all the same


def test_the_workstation_without_its_models(site: Site) -> None:
    site = _with(site, profile="workstation")
    faults = [said_by(line) for line in lines(site, "models") if line.level is Level.PROBLEM]
    assert faults == ["bge-m3 for encoder is missing", "bge-reranker-v2-m3 for reranker is missing"]
    (site.registry.folder / "bge-m3").mkdir(parents=True)
    assert phrase("doctor.model_unregistered.what") in said_by(lines(site, "models")[0])


def test_what_was_chosen_counts_not_the_profile(full_site: Site) -> None:
    site = _with(full_site, profile="workstation")
    by_text = {said_by(line): line for line in lines(site, "models")}
    assert by_text[said("doctor.starter_judges.what", judge="nli-deberta-v3-base")].level is Level.WARNING
    site.registry.assign("entailment", "chat")
    assert not any(phrase("doctor.starter_judges.what") in said_by(line) for line in lines(site, "models"))
    full_site.registry.assign("entailment", "default")
    full_site.registry.assign("encoder", "bge-m3")
    assert only(full_site, "models", Level.PROBLEM) == "bge-m3 for encoder is missing"
    full_site.registry.assign("encoder", "default")
    assert set(levels(full_site).values()) == {Level.OK}


def test_a_model_that_does_not_fit(full_site: Site) -> None:
    none = replace(full_site, machine=Machine(3 * GIB, GIB, 2))
    assert any(line.level is Level.PROBLEM for line in lines(none, "model fit"))
    slow = Machine(64 * GIB, 60 * GIB, 2, (Gpu("Card", "550", GIB, GIB),))
    only(replace(full_site, machine=slow), "model fit", Level.WARNING)


# --- the list of checks --------------------------------------------------------------------------------------------


def test_a_check_that_fails_is_a_line(site: Site) -> None:
    def known(site: Site) -> Iterator[Check]:
        raise LibraryError("library.none", data="x")

    def unknown(site: Site) -> Iterator[Check]:
        raise PermissionError("somebody's text")

    checks = list(doctor.examine(site, [known, unknown, lambda site: iter([ok("last", "fine")])]))
    assert [(check.name, check.level) for check in checks] == [
        ("known", Level.PROBLEM), ("unknown", Level.PROBLEM), ("last", Level.OK),
    ]  # fmt: skip
    assert render(checks[0].messages[1], "en").startswith(phrase("library.none.command"))
    assert "somebody" not in said_by(checks[1])
    assert doctor.worst(checks) is Level.PROBLEM
    assert doctor.worst([]) is Level.OK


def test_sizes_for_people() -> None:
    assert [size(count) for count in (0, 5 * 2**20, 3 * GIB // 2)] == ["0 MiB", "5 MiB", "1.5 GiB"]


@pytest.mark.slow
def test_nothing_heavy_is_loaded(full_site: Site) -> None:
    script = (
        "import sys, json, contextlib\nfrom localmed.cli.main import main\n"
        "with contextlib.suppress(SystemExit):  # another encoder made the library: that is a problem, and told\n"
        f"    main.main(['--data', {str(full_site.settings.data)!r}, 'doctor', '--json'], standalone_mode=False)\n"
        "print('loaded', sorted(set(sys.modules) & {'torch', 'transformers', 'llama_cpp', 'lancedb', 'onnxruntime'}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    text, _, loaded = done.stdout.rpartition("loaded ")
    assert loaded.strip() == "[]"
    assert json.loads(text)["worst"]


def test_a_library_of_which_no_backup_was_made(site: Site, corpus: Path) -> None:
    import_into(site.settings, write(corpus, {"a.txt": "Sepsis\n\nGive antibiotics within one hour.\n"}))
    [check] = doctor.backups(_with(site, backup=BackupSettings(folder="/mnt/backup")))
    assert check.level is Level.WARNING
