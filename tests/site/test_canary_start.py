"""The service begins: settings, models or a version that lose a canary do not, what served before does."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from localmed import config
from localmed.config import Settings
from localmed.domain.errors import Busy, CanariesLost, LocalmedError, ModelError
from localmed.site import alerts, canary_gate, changes, importing
from localmed.site.session import Session
from tests.fakes import HashedWords, described, documents, opened, write
from tests.site.asked import CITED, SEPSIS
from tests.site.test_canary_gate import Failing

LOSING = '[ask]\npreset = "leaflets"\n[tiers.presets]\nleaflets = [["leaflet"]]\n'  # nothing of the ward is searched


@pytest.fixture
def served(settings: Settings, corpus: Path) -> Settings:
    """A library whose canary passed under its settings."""
    with opened(settings, HashedWords()) as session:
        importing.import_paths(session, [write(corpus, {"sepsis.txt": SEPSIS})], described("ward"))
        (settings.data / "canaries.toml").write_text(CITED)
        assert not canary_gate.standing(session).lost
    return settings


def begun(data: Path, before: Callable[[Session], object] = lambda _: None) -> tuple[Settings, list[str]]:
    """By which settings the service would begin, and which alerts stand then."""
    encoder = HashedWords()
    settings = config.load(data)
    with opened(settings, encoder) as session:
        before(session)
        chosen = canary_gate.before_serving(session)
        assert chosen.reader == settings.reader
    return chosen, sorted(one.kind for one in alerts.alerts(data))


def test_settings_that_lose_a_canary_do_not_begin_to_serve(served: Settings) -> None:
    data = served.data
    (data / "localmed.toml").write_text(LOSING)
    chosen, raised = begun(data)
    assert chosen.ask.preset == ""
    assert raised == ["canaries", "settings"]
    assert config.load(data, file=data / canary_gate.PASSED).ask == chosen.ask, "what worker processes load"
    assert begun(data) == (chosen, raised), "until somebody acts"

    def accept(session: Session) -> None:
        canary_gate.accept(session, ["sepsis-hour"], "leaflets only")

    chosen, raised = begun(data, accept)
    assert (chosen.ask.preset, raised) == ("leaflets", [])


def test_settings_changed_back_end_the_banner(served: Settings) -> None:
    (served.data / "localmed.toml").write_text(LOSING)
    assert begun(served.data)[1]
    (served.data / "localmed.toml").write_text("[ask]\npassages = 7\n")
    chosen, raised = begun(served.data)
    assert (chosen.ask.passages, raised) == (7, [])


@pytest.mark.slow
def test_an_import_under_such_settings_does_not_make_the_loss_forgotten(served: Settings, corpus: Path) -> None:
    (served.data / "localmed.toml").write_text(LOSING)
    with opened(config.load(served.data), HashedWords()) as session:
        importing.import_paths(session, [write(corpus, {"more/fever.txt": "Fever\n\nRest.\n"})], described("more"))
    assert begun(served.data)[1] == ["canaries", "settings"]


def test_nothing_is_asked_where_nothing_has_changed(served: Settings) -> None:
    encoder = HashedWords()
    with opened(served, encoder) as session:
        assert canary_gate.before_serving(session) == served
    assert not encoder.encoded


def test_another_version_that_loses_a_canary_does_not_begin(served: Settings) -> None:
    with opened(served, HashedWords()) as session:
        changes.withdraw(session, documents(served)["sepsis.txt"], True, "wrong")
    kept = served.data / canary_gate.KEPT
    noted = json.loads(kept.read_text())
    kept.write_text(json.dumps({**noted, "answering": "other settings, the same version"}))
    assert begun(served.data)[1] == ["canaries"], "a withdrawal keeps no service from beginning"
    kept.write_text(json.dumps({**noted, "answering": "other", "made": "another version"}))
    with pytest.raises(CanariesLost) as lost:
        begun(served.data)
    assert (lost.value.exit_code, lost.value.message.code) == (7, "canary.start")


def test_a_library_that_cannot_be_asked_keeps_no_service_from_beginning(served: Settings) -> None:
    for path in (served.data / "generations").glob("0*/lexical/*.store"):
        with suppress(OSError):
            path.write_bytes(b"")
    other = replace(served, ask=replace(served.ask, passages=7))
    with opened(other, HashedWords()) as session:
        assert canary_gate.before_serving(session) == other


@pytest.mark.parametrize("error", [ModelError("host.ended"), Busy("model.waiting", waiting=1)], ids=["ended", "busy"])
def test_settings_that_nobody_could_be_asked_by_do_not_begin_to_serve(served: Settings, error: LocalmedError) -> None:
    (served.data / "localmed.toml").write_text("[ask]\npassages = 7\n")
    with opened(config.load(served.data), Failing(error, times=99)) as session:
        chosen = canary_gate.before_serving(session)
    assert chosen.ask.passages == served.ask.passages
    assert [one.kind for one in alerts.alerts(served.data)] == ["settings"]
    chosen, raised = begun(served.data)
    assert (chosen.ask.passages, raised) == (7, []), "once they were asked"


def test_another_version_that_nobody_could_be_asked_by_does_not_begin(served: Settings) -> None:
    kept = served.data / canary_gate.KEPT
    changed = dict.fromkeys(("basis", "answering", "made"), "of another version")
    kept.write_text(json.dumps({**json.loads(kept.read_text()), **changed}))
    with opened(served, Failing(ModelError("host.ended"), times=99)) as session, pytest.raises(ModelError):
        canary_gate.before_serving(session)
