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
from tests.fakes import HashedWords, described, import_into, opened, write
from tests.scripted import ScriptedChat
from tests.site.asked import CITED, SEPSIS

if TYPE_CHECKING:
    from localmed.domain.ports import Vectors
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from localmed import config
from localmed.domain import Answer, AnswerStatus, Receipts, ShownLine, ShownSection
from localmed.domain.errors import CanariesLost
from localmed.site import alerts
from localmed.site.canary_gate import Canary, judge
from localmed.site.session import Session
from tests.fakes import documents
from tests.values import PROVENANCE, evidence, quotation


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


@pytest.fixture
def ward(settings: Settings, corpus: Path) -> Settings:
    """A library, and a canary that was not asked yet."""
    import_into(settings, write(corpus, {"sepsis.txt": SEPSIS}))
    (settings.data / "canaries.toml").write_text(CITED)
    return settings


@pytest.mark.parametrize("error", [ModelError("host.ended"), Busy("model.waiting", waiting=1)], ids=["ended", "busy"])
@pytest.mark.slow
def test_a_generation_is_not_served_while_the_model_host_answers_nobody(
    ward: Settings, corpus: Path, error: LocalmedError
) -> None:
    write(corpus, {"fever.txt": "Fever\n\nRest.\n"})
    with opened(ward, Failing(error)) as session:
        with pytest.raises(type(error)):
            importing.import_paths(session, [corpus], described("ward"))
        assert generations.current(ward.data).name == "0001", "what was served is served"
        importing.import_paths(session, [corpus], described("ward"))
    assert generations.current(ward.data).name == "0002", "the next try is asked, and served"


def test_the_first_import_is_served_where_nothing_was(settings: Settings, corpus: Path) -> None:
    settings.data.mkdir(parents=True, exist_ok=True)
    (settings.data / "canaries.toml").write_text(CITED)
    with opened(settings, HashedWords()) as session:
        importing.import_paths(session, [write(corpus, {"sepsis.txt": SEPSIS})], described("ward"))
    assert generations.current(settings.data).name == "0001"


def test_a_model_is_asked_only_what_it_may_write_no_answer_to(ward: Settings) -> None:
    away = '[[canary]]\nid = "away"\nquestion = "Which lactate is normal on the moon?"\nmust = "abstain"\n'
    asked: list[str] = []

    def say(messages: Sequence[Message]) -> Any:
        asked.append(messages[-1].content)
        return {"covers_patient": "yes", "statements": [], "not_covered": [], "look_for": ""}

    for canaries, calls in ((CITED, 0), (away, 1)):
        (ward.data / "canaries.toml").write_text(canaries)
        with opened(ward, HashedWords(), chat=ScriptedChat(say)) as session:
            assert not canary_gate.standing(session).lost
        assert len(asked) == calls


def failing(error: LocalmedError) -> Callable[..., Any]:
    def fail(*_: object) -> Any:
        raise error

    return fail


def test_what_is_served_may_be_left_when_it_is_damaged(
    served: Settings, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The candidate is held against what was answered while all was whole."""
    with opened(served, HashedWords()) as session:
        remembered = canary_gate._stored_results(served.data).results
        importing.import_paths(session, [write(corpus, {"fever.txt": "Fever\n\nRest.\n"})], described("ward"))
        monkeypatch.setattr(canary_gate, "baseline", failing(Damaged("generation.damaged", name="0002", problem="x")))
        assert canary_gate._results_before(session).keys() == remembered.keys()
        changes.rollback(session, 1)
    assert generations.current(served.data).name == "0001"


def test_a_disk_that_is_full_lets_nothing_pass_unasked(
    ward: Settings, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canary_gate, "baseline", failing(LibraryError("library.full", data="x")))
    write(corpus, {"fever.txt": "Fever\n\nRest.\n"})
    with opened(ward, HashedWords()) as session, pytest.raises(LibraryError):
        importing.import_paths(session, [corpus], described("ward"))
    assert generations.current(ward.data).name == "0001"


def test_an_empty_collection_asks_no_canaries(ward: Settings) -> None:
    with opened(ward, Failing(ModelError("host.ended"), times=1000)) as session:
        changes.create_collection(session, Collection("icu", "ICU"), ())
        with pytest.raises(ModelError):
            changes.put_collection(session, Collection("ward", "Ward", priority=1))
    assert generations.current(ward.data).name == "0002"


# --- the service begins: settings, models or a version that lose a canary do not, what served before does -------------


LOSING = '[ask]\npreset = "leaflets"\n[tiers.presets]\nleaflets = [["leaflet"]]\n'  # nothing of the ward is searched


@pytest.fixture
def served(ward: Settings) -> Settings:
    """A library whose canary passed under its settings."""
    with opened(ward, HashedWords()) as session:
        assert not canary_gate.standing(session).lost
    return ward


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


# --- how an answer stands to what its canary question asks ------------------------------------------------------------


PIECES = tuple(
    replace(evidence(str(number), f"Text {number}."), source=f"/d/{number}.txt", document_title=f"Title {number}")
    for number in range(1, 5)
)
SECTIONS = tuple(ShownSection(piece.marker, (ShownLine(piece.marker, 0, 7),)) for piece in PIECES)
FOUND = Answer(
    AnswerStatus.SECTIONS, "Which text?", "en", (), PIECES, (), PROVENANCE, receipts=Receipts(sections=SECTIONS)
)
WRITTEN = replace(FOUND, status=AnswerStatus.ANSWERED, statements=(quotation(PIECES[3], 0, 7),))


@pytest.mark.parametrize(
    ("answer", "documents", "says", "passed"),
    [
        (FOUND, ("3.txt",), ("text  3",), True),
        (FOUND, ("Title 1",), (), True),
        (FOUND, ("4.txt",), (), False),
        (FOUND, ("3.txt",), ("Text 4",), False),
        (WRITTEN, ("4.txt",), ("Text 4",), True),
        (replace(FOUND, receipts=None), ("3.txt",), (), False),
    ],
    ids=["third", "by title", "fourth", "other words", "cited", "nothing"],
)
def test_a_document_is_among_the_first_sections_or_cited(
    answer: Answer, documents: tuple[str, ...], says: tuple[str, ...], passed: bool
) -> None:
    assert judge(Canary("c", "Which text?", "cite", documents, says), answer).passed is passed


def test_what_must_not_be_answered_fails_only_where_something_is_claimed() -> None:
    canary = Canary("c", "Which text?", "abstain")
    assert (judge(canary, FOUND).passed, judge(canary, FOUND).cited) == (True, ())
    assert (judge(canary, WRITTEN).passed, judge(canary, WRITTEN).cited) == (False, ("4.txt",))
