"""The gate fails closed: what could not be asked is not served."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from localmed.config import Settings
from localmed.domain import Collection
from localmed.domain.errors import Busy, Damaged, LibraryError, LocalmedError, ModelError
from localmed.domain.ports import Message
from localmed.library import generations
from localmed.site import canary_gate, changes, importing
from tests.fakes import HashedWords, described, opened, write
from tests.scripted import ScriptedChat
from tests.site.asked import CITED, SEPSIS

if TYPE_CHECKING:
    from localmed.domain.ports import Vectors


class Failing(HashedWords):
    """Encodes passages, and fails for the first questions."""

    def __init__(self, error: LocalmedError, times: int = 1) -> None:
        super().__init__()
        self.error, self.times = error, times

    def encode(self, texts: Sequence[str], kind: Any) -> Vectors:
        if kind == "query" and self.times:
            self.times -= 1
            raise self.error
        return super().encode(texts, kind)


@pytest.mark.parametrize("error", [ModelError("host.ended"), Busy("model.waiting", waiting=1)], ids=["ended", "busy"])
@pytest.mark.slow
def test_a_generation_is_not_served_while_the_model_host_answers_nobody(
    settings: Settings, corpus: Path, error: LocalmedError
) -> None:
    with opened(settings, HashedWords()) as session:
        importing.import_paths(session, [write(corpus, {"sepsis.txt": SEPSIS})], described("ward"))
    (settings.data / "canaries.toml").write_text(CITED)
    write(corpus, {"fever.txt": "Fever\n\nRest.\n"})
    with opened(settings, Failing(error)) as session:
        with pytest.raises(type(error)):
            importing.import_paths(session, [corpus], described("ward"))
        assert generations.current(settings.data).name == "0001", "what was served is served"
        importing.import_paths(session, [corpus], described("ward"))
    assert generations.current(settings.data).name == "0002", "the next try is asked, and served"


def test_the_first_import_is_served_where_nothing_was(settings: Settings, corpus: Path) -> None:
    settings.data.mkdir(parents=True, exist_ok=True)
    (settings.data / "canaries.toml").write_text(CITED)
    with opened(settings, HashedWords()) as session:
        importing.import_paths(session, [write(corpus, {"sepsis.txt": SEPSIS})], described("ward"))
    assert generations.current(settings.data).name == "0001"


def test_a_model_is_asked_only_what_it_may_write_no_answer_to(settings: Settings, corpus: Path) -> None:
    with opened(settings, HashedWords()) as session:
        importing.import_paths(session, [write(corpus, {"sepsis.txt": SEPSIS})], described("ward"))
    away = '[[canary]]\nid = "away"\nquestion = "Which lactate is normal on the moon?"\nmust = "abstain"\n'
    asked: list[str] = []

    def say(messages: Sequence[Message]) -> Any:
        asked.append(messages[-1].content)
        return {"covers_patient": "yes", "statements": [], "not_covered": [], "look_for": ""}

    for canaries, calls in ((CITED, 0), (away, 1)):
        (settings.data / "canaries.toml").write_text(canaries)
        with opened(settings, HashedWords(), chat=ScriptedChat(say)) as session:
            assert not canary_gate.standing(session).lost
        assert len(asked) == calls


def test_what_is_served_may_be_left_when_it_is_damaged(
    settings: Settings, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The candidate is held against what was answered while all was whole."""
    with opened(settings, HashedWords()) as session:
        importing.import_paths(session, [write(corpus, {"sepsis.txt": SEPSIS})], described("ward"))
        (settings.data / "canaries.toml").write_text(CITED)
        assert not canary_gate.standing(session).lost
        remembered = canary_gate._noted(settings.data).results
        importing.import_paths(session, [write(corpus, {"fever.txt": "Fever\n\nRest.\n"})], described("ward"))

        def damaged(*_: object) -> object:
            raise Damaged("generation.damaged", name="0002", problem="x")

        monkeypatch.setattr(canary_gate, "baseline", damaged)
        assert canary_gate._before(session).keys() == remembered.keys()
        changes.rollback(session, 1)
    assert generations.current(settings.data).name == "0001"


def test_a_disk_that_is_full_lets_nothing_pass_unasked(
    settings: Settings, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(settings, HashedWords()) as session:
        importing.import_paths(session, [write(corpus, {"sepsis.txt": SEPSIS})], described("ward"))
        (settings.data / "canaries.toml").write_text(CITED)

        def full(*_: object) -> object:
            raise LibraryError("library.full", data="x")

        monkeypatch.setattr(canary_gate, "baseline", full)
        write(corpus, {"fever.txt": "Fever\n\nRest.\n"})
        with pytest.raises(LibraryError):
            importing.import_paths(session, [corpus], described("ward"))
    assert generations.current(settings.data).name == "0001"


def test_an_empty_collection_asks_no_canaries(settings: Settings, corpus: Path) -> None:
    with opened(settings, HashedWords()) as session:
        importing.import_paths(session, [write(corpus, {"sepsis.txt": SEPSIS})], described("ward"))
    (settings.data / "canaries.toml").write_text(CITED)
    with opened(settings, Failing(ModelError("host.ended"), times=1000)) as session:
        changes.create_collection(session, Collection("icu", "ICU"), ())
        with pytest.raises(ModelError):
            changes.put_collection(session, Collection("ward", "Ward", priority=1))
    assert generations.current(settings.data).name == "0002"
