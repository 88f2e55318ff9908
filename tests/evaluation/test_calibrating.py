"""Calibration on a site's labelled questions, over a library of leaflets of invented medicines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.config import AskSettings, Settings
from localmed.domain import SearchFilter
from localmed.errors import CanariesLost, InputError, UsageError
from localmed.evaluation import calibrating
from localmed.evaluation.calibrating import JudgedQuestion
from localmed.operations import calibrate
from localmed.retrieval import calibration
from localmed.retrieval.calibration import Calibration
from localmed.retrieval.relevance import Outcome
from localmed.session import Session
from localmed.workflows.ask import NOT_CALIBRATED
from tests.fakes import HashedWords, import_into, jsonl, opened, write

NAMES = tuple(f"{first}{second}" for first in ("bolo", "catri", "dune", "fexa") for second in
              ("dine", "fen", "mab", "nib", "olol", "pam", "pril", "statin", "tide", "zole"))  # fmt: skip
HELD, ABSENT = NAMES[::2], NAMES[1::2]
SETTINGS = AskSettings(risk=0.2)  # twenty right answers show that


def question(name: str) -> str:
    return f"What is the daily dose of {name}?"


def labelled() -> list[dict[str, object]]:
    known = [{"text": question(name), "answerable": True, "evidence": f"{name} is"} for name in HELD]
    return known + [{"text": question(name), "answerable": False} for name in ABSENT]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("leaflets")
    records = [
        {"id": name, "title": f"Leaflet: {name}",
         "text": f"The daily dose of {name} is {number + 2} mg. Take it with water."}
        for number, name in enumerate(HELD)
    ]  # fmt: skip
    settings = Settings(folder / "data", ask=SETTINGS)
    with opened(settings, HashedWords(), uses={"reranker": "none"}) as session:
        import_into(settings, write(folder / "files", {"leaflets.jsonl": jsonl(*records)}))
        yield session


@pytest.fixture(scope="module")
def judged(session: Session, tmp_path_factory: pytest.TempPathFactory) -> list[JudgedQuestion]:
    file = write(tmp_path_factory.mktemp("questions"), {"q.jsonl": jsonl(*labelled())}) / "q.jsonl"
    slug = session.site.encoder.identity.slug
    return calibrating.judged(calibrating.questions(file), session.judged_tiers, slug, lambda: None)


@pytest.fixture
def own(judged: list[JudgedQuestion]) -> Calibration:
    results = calibrating.calibrated(judged, (), SETTINGS)
    (row,) = calibrating.as_calibrations(results, "0" * 64, "clinic")
    return row


def almost_never(row: Calibration) -> Calibration:
    """The same, had all but the surest answers been wrong."""
    return replace(row, outcomes=tuple(Outcome(one.level, 90, 0 if one.level > 0.97 else 90) for one in row.outcomes))


@pytest.fixture
def calibrated_as(session: Session) -> Iterator[Callable[[Calibration], None]]:
    yield lambda row: calibrate.keep(session, (row,))
    calibration.keep(session.data, ())


def test_what_a_threshold_answers() -> None:
    row = JudgedQuestion(("", "", "en"), True, (((0.4, False),), ((0.9, True), (0.5, False))))
    assert row.outcome(0.95) is None
    assert row.outcome(0.6) is True, "the first tier does not reach it, the second holds the answer"
    assert row.outcome(0.3) is False, "the first tier answers, from a passage without the answer"
    assert JudgedQuestion(row.key, False, row.tiers).outcome(0.6) is False


def test_the_area_is_the_mean_risk_over_coverage() -> None:
    rows = [JudgedQuestion(("", "", "en"), answerable, (((chance, True),),))
            for chance, answerable in ((0.9, True), (0.8, True), (0.7, False), (0.6, True))]  # fmt: skip
    assert calibrating.area(rows) == pytest.approx((0 + 0 + 1 / 3 + 1 / 4) / 4)


@pytest.mark.parametrize(
    "text",
    ["", '{"text": "Secret one?"}', '{"text": "Secret one?", "answerable": "yes"}', '{"answerable": true}',
     '{"text": "Secret one?", "answerable": true, "evidence": [3]}', "Secret one?"],
)  # fmt: skip
def test_what_is_no_labelled_question_is_refused_without_its_text(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError) as refused:
        calibrating.questions(write(tmp_path, {"q.jsonl": text}) / "q.jsonl")
    assert "Secret" not in str(refused.value)


def test_a_site_is_calibrated_by_its_own_questions_and_back_again(
    session: Session, own: Calibration, calibrated_as: Callable[[Calibration], None]
) -> None:
    text = question(HELD[3])
    before = session.ask(text, SearchFilter())
    calibrated_as(own)
    assert session.site.calibrations == (own,)
    after = session.ask(text, SearchFilter())
    assert NOT_CALIBRATED in before.notes
    assert after.statements
    assert NOT_CALIBRATED not in after.notes
    whole = (session.data / calibration.FILE).read_text("utf-8")
    assert not any(name in whole for name in NAMES), "no question is kept"
    calibrate.reset(session)
    assert not session.site.calibrations
    with pytest.raises(UsageError):
        calibrate.reset(session)


def test_a_stricter_threshold_answers_less(
    session: Session, own: Calibration, calibrated_as: Callable[[Calibration], None]
) -> None:
    assert session.ask(question(HELD[0]), SearchFilter()).statements
    calibrated_as(almost_never(own))
    assert not session.ask(question(HELD[0]), SearchFilter()).statements


def test_too_few_questions_are_refused(judged: list[JudgedQuestion]) -> None:
    rows = [row for row in judged if row.answerable]
    with pytest.raises(InputError, match=str(calibrating.LEAST)):
        calibrating.calibrated([*rows, replace(rows[0], answerable=False)], (), SETTINGS)


def test_thresholds_that_lose_a_canary_question_are_not_taken(
    session: Session, own: Calibration, calibrated_as: Callable[[Calibration], None]
) -> None:
    canary = (f'[[canary]]\nid = "own"\nquestion = "{question(HELD[0])}"\nmust = "cite"\n'
              f'documents = ["Leaflet: {HELD[0]}"]\n')  # fmt: skip
    write(session.data, {"canaries.toml": canary})
    with pytest.raises(CanariesLost):
        calibrated_as(almost_never(own))
    assert not session.site.calibrations
    (session.data / "canaries.toml").unlink()
