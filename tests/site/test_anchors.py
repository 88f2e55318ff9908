"""What restricts reading and what is withdrawn cannot be altered or cut without notice while the audit log is there."""

from __future__ import annotations

import json
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.cli.main import run
from localmed.config import Settings
from localmed.domain.errors import Damaged
from localmed.library import anchors, generations, lexical
from localmed.library.access import Access
from localmed.library.anchors import Anchor
from localmed.library.library import Library
from localmed.library.withdrawals import Withdrawals
from localmed.site import changes, lookups
from localmed.site.audit import ANEW, Audit
from localmed.upkeep import doctor, repair
from localmed.upkeep.check import Level
from tests.fakes import HashedWords, answers, documents, import_into, opened, verify, write

NURSES = frozenset({"nurses"})


@pytest.fixture
def filled(settings: Settings, corpus: Path) -> Settings:
    """A document is withdrawn through the audit log, and a collection restricted."""
    write(corpus, {"a.txt": "Sepsis\n\nGive antibiotics within one hour.\n", "b.txt": "Fever\n\nGive antibiotics.\n"})
    import_into(settings, corpus)
    with opened(settings, HashedWords()) as session:
        changes.withdraw(session, documents(settings)["a.txt"], True, "recalled")
        changes.set_access(session, "ward", ["doctors"])
        changes.set_access(session, "icu", ["doctors"])
    return settings


def code(settings: Settings, *command: str) -> int:
    with pytest.raises(SystemExit) as ended:
        run(["--data", str(settings.data), *command])
    return int(ended.value.code or 0)


def levels(settings: Settings, name: str) -> set[tuple[str, str]]:
    """What ``localmed doctor`` says under ``name``."""
    from localmed.models.registry.registry import Registry

    site = doctor.site_of(settings, Registry(settings.data / "models"), False, lambda *_: None)
    lines = doctor.examine(site, [check for check in doctor.CHECKS if check.__name__ == name])
    return {(check.level.value, str(check.says)) for check in lines}


# --- access ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_single_character_changed_opens_a_collection(filled: Settings) -> None:
    file = filled.data / "access.json"
    whole = file.read_text("utf-8")
    for place, character in enumerate(whole):
        file.write_text(whole[:place] + ("e" if character != "e" else "f") + whole[place + 1 :], "utf-8")
        try:
            hidden = Access(filled.data).hidden_from(NURSES)
        except Damaged:
            continue
        assert hidden == {"ward", "icu"}, place
    file.write_text(whole, "utf-8")
    assert Access(filled.data).hidden_from(NURSES) == {"ward", "icu"}


def test_an_altered_file_stops_readers_and_changes_until_it_is_restored(filled: Settings) -> None:
    file = filled.data / "access.json"
    whole = file.read_text("utf-8")
    file.write_text(whole.replace("doctors", "nurses", 1), "utf-8")
    access = Access(filled.data)
    for call in (lambda: access.hidden_from(NURSES), lambda: access.put("ward", []), access.create):
        with pytest.raises(Damaged) as raised:
            call()
        assert raised.value.message.code == "access.altered"
    file.write_text(whole, "utf-8")
    assert access.hidden_from(NURSES) == {"ward", "icu"}


@pytest.mark.parametrize("changes_made", [1, 2, 3])
def test_a_file_that_agrees_with_itself_but_not_with_the_audit_log_is_damage(
    filled: Settings, changes_made: int
) -> None:
    forged = Access(filled.data.parent / "elsewhere")
    for number in range(changes_made):
        forged.put(f"other-{number}", ["nurses"])
    (filled.data / "access.json").write_bytes((forged._path).read_bytes())
    with pytest.raises(Damaged) as raised:
        Access(filled.data).hidden_from(NURSES)
    assert raised.value.message.code == "access.unknown"
    assert {level for level, _ in levels(filled, "access")} == {Level.PROBLEM.value}


def test_a_file_of_a_format_before_or_lost_is_damage_once_a_change_was_noted(filled: Settings) -> None:
    file = filled.data / "access.json"
    for text in ('{"format": 2, "collections": {}}', "{}"):
        file.write_text(text)
        with pytest.raises(Damaged):
            Access(filled.data).hidden_from(NURSES)


def test_an_old_file_is_taken_as_it_is_and_has_a_digest_from_the_next_change_on(
    settings: Settings, corpus: Path
) -> None:
    import_into(settings, write(corpus, {"a.txt": "Sepsis."}))
    file = settings.data / "access.json"
    file.write_text('{"format": 2, "collections": {"ward": ["doctors"]}}')
    assert Access(settings.data).hidden_from(NURSES) == {"ward"}
    assert Level.WARNING.value in {level for level, _ in levels(settings, "access")}
    with opened(settings, HashedWords()) as session:
        changes.set_access(session, "icu", ["doctors"])
    assert json.loads(file.read_text())["changes"] == 1
    assert Access(settings.data).hidden_from(NURSES) == {"ward", "icu"}
    assert {level for level, _ in levels(settings, "access")} == {Level.OK.value}


def test_a_change_cut_off_before_or_after_it_was_written_leaves_a_file_that_holds(filled: Settings) -> None:
    with opened(filled, HashedWords()) as session:

        def cut_off(planned: Anchor) -> None:
            session.note("access", "lab", f"{anchors.PLANNED}{planned}")
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            session.access.put("lab", ["doctors"], cut_off)
        assert Access(filled.data).hidden_from(NURSES) == {"ward", "icu"}
        session.access.put("lab", ["x"], lambda planned: session.note("access", "lab", f"{anchors.PLANNED}{planned}"))
    assert Access(filled.data).hidden_from(NURSES) == {"ward", "icu", "lab"}


@pytest.mark.parametrize("damage", ["lost", "altered", "forged"])
def test_repair_restores_the_access_that_the_audit_log_knows(filled: Settings, damage: str) -> None:
    file = filled.data / "access.json"
    if damage == "lost":
        file.unlink()
    elif damage == "altered":
        file.write_text(file.read_text("utf-8").replace("doctors", "nurses"), "utf-8")
    else:
        forged = Access(filled.data.parent / "elsewhere")
        forged.put("other", ["nurses"])
        file.write_bytes(forged._path.read_bytes())
    assert code(filled, "repair", "--yes") == 0
    hidden = Access(filled.data).hidden_from(NURSES)
    assert hidden == {"ward", "icu"}
    with opened(filled, HashedWords()) as session:
        changes.set_access(session, "ward", [])
    assert Access(filled.data).hidden_from(NURSES) == {"icu"}


# --- withdrawals -----------------------------------------------------------------------------------------------------


def emptied(settings: Settings) -> None:
    """The ledger and what is known of it beside it, both as if nothing had ever been withdrawn."""
    (settings.data / "withdrawals").write_bytes(b"")
    (settings.data / "withdrawals.known").unlink()


@pytest.mark.parametrize("anchored_in", ["audit", "manifest"])
def test_a_ledger_emptied_with_what_is_known_of_it_stops_every_answer_and_change(
    filled: Settings, corpus: Path, anchored_in: str
) -> None:
    document = documents(filled)["b.txt"]
    if anchored_in == "manifest":
        import_into(filled, write(corpus, {"c.txt": "Stroke\n\nThrombolysis.\n"}))
        (filled.data / "audit.sqlite").unlink()
    assert answers(filled, "antibiotics") == {"Fever"}
    emptied(filled)
    for call in (
        lambda: answers(filled, "antibiotics"),
        lambda: Withdrawals(filled.data).append(document, True, "again", "me"),
        lambda: import_into(filled, write(corpus, {"d.txt": "Gout\n\nColchicine.\n"})),
    ):
        with pytest.raises(Damaged) as raised:
            call()
        assert raised.value.message.code == "withdrawal.cut"


@pytest.mark.slow
def test_repair_withdraws_again_what_the_audit_log_knows(
    filled: Settings, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import_into(filled, write(corpus, {"c.txt": "Stroke\n\nThrombolysis.\n"}))
    withdrawn = documents(filled)["a.txt"]
    emptied(filled)
    assert code(filled, "repair", "--yes") == 0
    assert withdrawn.id[:12] in capsys.readouterr().out
    assert answers(filled, "antibiotics") == {"Fever"}
    assert Withdrawals(filled.data).in_force()[1] == {withdrawn.content}
    with opened(filled, HashedWords()) as session:
        changes.withdraw(session, withdrawn, False, "good again")
    import_into(filled, write(corpus, {"d.txt": "Gout\n\nColchicine.\n"}))
    assert answers(filled, "antibiotics") == {"Fever", "Sepsis"}
    assert repair.records(filled.data) == []


def test_a_whole_line_that_was_appended_by_anything_else_stops_every_answer(filled: Settings) -> None:
    ledger = Withdrawals(filled.data)
    (entry,) = ledger.entries
    ledger.restore([entry, replace(entry, withdrawn=False)])  # with what is known of it beside
    for call in (
        lambda: answers(filled, "antibiotics"),
        lambda: Withdrawals(filled.data).append(documents(filled)["b.txt"], True, "again", "me"),
    ):
        with pytest.raises(Damaged) as raised:
            call()
        assert raised.value.message.code == "withdrawal.unknown"
    assert code(filled, "repair", "--yes") == 0
    assert answers(filled, "antibiotics") == {"Fever"}


def test_a_line_altered_with_its_digest_breaks_the_chain_without_the_audit_log(filled: Settings) -> None:
    with opened(filled, HashedWords()) as session:
        changes.withdraw(session, documents(filled)["b.txt"], True, "recalled")
    for path in filled.data.glob("audit.sqlite*"):
        path.unlink()
    ledger = filled.data / "withdrawals"
    first, second = ledger.read_bytes().splitlines(keepends=True)
    elsewhere = Withdrawals(filled.data.parent)
    elsewhere.restore([replace(Withdrawals(filled.data).entries[0], withdrawn=False)])
    ledger.write_bytes(elsewhere._path.read_bytes() + second)
    (filled.data / "withdrawals.known").unlink()
    with pytest.raises(Damaged) as raised:
        answers(filled, "antibiotics")
    assert raised.value.message.code == "withdrawal.line"
    ledger.write_bytes(first + second)
    assert answers(filled, "antibiotics") == set()


def test_a_ledger_of_before_goes_on_with_lines_that_are_chained(filled: Settings) -> None:
    for path in filled.data.glob("audit.sqlite*"):
        path.unlink()
    ledger, older = filled.data / "withdrawals", Withdrawals(filled.data.parent)
    lines = b""
    for document in (documents(filled)["a.txt"], documents(filled)["b.txt"]):
        older.restore([])
        older.append(document, True, "recalled", "me")
        lines += older._path.read_bytes()
    ledger.write_bytes(lines)
    (filled.data / "withdrawals.known").unlink()
    with opened(filled, HashedWords()) as session:
        changes.withdraw(session, documents(filled)["a.txt"], False, "good again")
    assert answers(filled, "antibiotics") == {"Sepsis"}


@pytest.mark.parametrize("outcome", ["failed", "cut off"])
def test_a_withdrawal_planned_and_not_written_leaves_the_ledger_that_was(filled: Settings, outcome: str) -> None:
    document = documents(filled)["b.txt"]
    error = OSError if outcome == "failed" else KeyboardInterrupt
    with opened(filled, HashedWords()) as session:

        def stopped(planned: Anchor) -> None:
            session.note("withdraw", document.id, f"{anchors.PLANNED}{planned}")
            raise error

        with pytest.raises(error):
            Withdrawals(filled.data).append(document, True, "recalled", "me", stopped)
        assert answers(filled, "antibiotics") == {"Fever"}
        changes.withdraw(session, document, True, "recalled")
    assert answers(filled, "antibiotics") == set()


def test_repair_does_not_lift_what_was_reinstated_or_only_the_ledger_knows(filled: Settings) -> None:
    first, second = documents(filled)["a.txt"], documents(filled)["b.txt"]
    with opened(filled, HashedWords()) as session:
        changes.withdraw(session, first, False, "good again")
        changes.withdraw(session, second, True, "recalled")
    ledger = filled.data / "withdrawals"
    ledger.write_bytes(ledger.read_bytes().splitlines(keepends=True)[0])
    assert code(filled, "repair", "--yes") == 0
    assert Withdrawals(filled.data).in_force()[0] == {second.id}


def test_repair_guesses_nothing_without_the_audit_log(filled: Settings, corpus: Path) -> None:
    import_into(filled, write(corpus, {"c.txt": "Stroke\n\nThrombolysis.\n"}))
    emptied(filled)
    (filled.data / "audit.sqlite").unlink()
    with pytest.raises(Damaged) as raised:
        repair.records(filled.data)
    assert raised.value.message.code == "generation.no_audit"


def test_a_library_of_before_opens_without_anchors(settings: Settings, corpus: Path) -> None:
    import_into(settings, write(corpus, {"a.txt": "Sepsis\n\nGive antibiotics.\n", "b.txt": "Fever\n\nAntibiotics.\n"}))
    Withdrawals(settings.data).append(documents(settings)["a.txt"], True, "test", "me")
    (settings.data / "withdrawals.known").unlink()
    assert answers(settings, "antibiotics") == {"Fever"}
    assert Level.WARNING.value in {level for level, _ in levels(settings, "withdrawals")}
    manifest = generations.read_manifest(generations.current(settings.data))
    assert "audit" not in json.loads(manifest.to_json())["manifest"]


# --- the audit log ---------------------------------------------------------------------------------------------------


def test_a_lost_audit_log_is_missed_and_the_next_begins_with_that(filled: Settings, corpus: Path) -> None:
    import_into(filled, write(corpus, {"c.txt": "Stroke\n\nThrombolysis.\n"}))
    assert Level.PROBLEM.value not in {level for level, _ in levels(filled, "audit")}
    for path in filled.data.glob("audit.sqlite*"):
        path.unlink()
    (filled.data / "withdrawals").write_bytes(b"")
    assert {level for level, _ in levels(filled, "audit")} == {Level.PROBLEM.value}
    assert not (filled.data / "audit.sqlite").exists()
    with closing(Audit(filled.data)) as log:
        log.append("import", "ward", "finished")
        assert [entry.outcome for entry in log.entries()] == [ANEW, "finished"]
    assert Level.WARNING.value in {level for level, _ in levels(filled, "audit")}


def test_the_first_audit_log_of_a_library_is_no_second(settings: Settings) -> None:
    with closing(Audit(settings.data)) as log:
        assert log.entries() == []


def test_an_audit_log_that_lost_its_end_is_missed(filled: Settings, corpus: Path) -> None:
    import_into(filled, write(corpus, {"c.txt": "Stroke\n\nThrombolysis.\n"}))
    with closing(Audit(filled.data)) as log:
        log._database.execute("DELETE FROM entries WHERE id > 2")
        assert log.verify() == []
    assert Level.PROBLEM.value in {level for level, _ in levels(filled, "audit")}


# --- stored passages -------------------------------------------------------------------------------------------------


def test_upgrade_gives_passages_of_before_a_digest(
    settings: Settings, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = lexical.dump
    monkeypatch.setattr(lexical, "dump", lambda passage: dump(passage).partition(b" ")[2])
    import_into(settings, write(corpus, {"a.txt": "Sepsis\n\nGive antibiotics.\n", "b.txt": "Fever\n\nAntibiotics.\n"}))
    monkeypatch.undo()
    with Library.open(settings.data) as library:
        assert len(library.lexical.without_digest()) == 2
    with opened(settings, HashedWords()) as session:
        changes.upgrade(session)
        assert len(lookups.documents(session)) == 2
    with Library.open(settings.data) as library:
        assert library.lexical.without_digest() == set()
    verify(settings.data)
    assert answers(settings, "antibiotics") == {"Sepsis", "Fever"}


# --- cost ------------------------------------------------------------------------------------------------------------


def test_the_anchors_are_found_by_an_index(filled: Settings) -> None:
    """Whatever else was noted: one question is one entry, and there are hundreds of thousands."""
    with closing(Audit(filled.data)) as log:
        text = log._database.execute("SELECT entry FROM entries WHERE id = 1").fetchone()[0]
        log._database.execute("BEGIN")
        log._database.executemany("INSERT INTO entries (entry, digest) VALUES (?, '')", ([text] for _ in range(50_000)))
        log._database.execute("COMMIT")
        times = []
        for _ in range(20):
            start = time.perf_counter()
            assert len(anchors.anchors(filled.data, "ledger")) == 2
            times.append(time.perf_counter() - start)
    assert min(times) < 0.005


def test_what_shows_only_once_the_link_is_there_again_is_repaired_with_it(filled: Settings) -> None:
    for name in ("current", "withdrawals", "withdrawals.known", "access.json"):
        (filled.data / name).unlink()
    assert code(filled, "repair", "--yes") == 0
    assert set(Access(filled.data).all()) == {"ward", "icu"}
    assert answers(filled, "antibiotics") == {"Fever"}
