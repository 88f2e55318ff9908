"""A site's own thresholds: the bound that they keep, what they hold for, and a file that is damaged."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.errors import Damaged
from localmed.retrieval import calibration
from localmed.retrieval.calibration import Calibration, calibrations, keep, served
from localmed.retrieval.relevance import NEVER, Outcome, fitted, lowest

E5 = "multilingual-e5-small-q4-0.3.0-centred-384"
RERANKER = "MaxSim over multilingual-e5-small-q4 0.3.0-centred, 160 pieces"
JUDGE = fitted(E5, RERANKER, "en").fingerprint
OUTCOMES = (Outcome(0.9, 10, 0), Outcome(0.7, 60, 0), Outcome(0.5, 90, 1), Outcome(0.3, 95, 30), Outcome(0.1, 99, 31))
ROW = Calibration(E5, RERANKER, "en", JUDGE, OUTCOMES, 130, "0" * 64, "clinic", "2026-11-22T10:00:00+00:00")


def test_the_lowest_threshold_whose_risk_is_shown_is_chosen() -> None:
    assert lowest(OUTCOMES, 0.05, 0.8) == 0.5, "ten answers show nothing, sixty do, a third wrong ends it"
    assert lowest(OUTCOMES, 0.05, 0.99) is None, "sixty right answers do not show so much with such confidence"
    assert lowest(OUTCOMES, 0.001, 0.8) is None
    later = (*OUTCOMES[:2], Outcome(0.5, 60, 40), Outcome(0.3, 900, 0))
    assert lowest(later, 0.05, 0.8) == 0.7, "behind one that failed nothing is tested"


def test_the_risk_is_kept_as_often_as_was_promised() -> None:
    """Judges without knowledge on questions of which a tenth would be answered wrongly: few sites may be misled."""
    rng, misled, sites = random.Random(5), 0, 400
    for _ in range(sites):
        chances = sorted(((rng.random(), rng.random() < 0.1) for _ in range(120)), reverse=True)
        outcomes = tuple(
            Outcome(level, sum(not wrong for chance, wrong in chances if chance >= level),
                    sum(wrong for chance, wrong in chances if chance >= level))
            for level in (0.8, 0.6, 0.4, 0.2, 0.0)
        )  # fmt: skip
        misled += lowest(outcomes, 0.08, 0.8) is not None
    assert misled / sites <= 0.2


def test_a_row_holds_for_its_encoder_reranker_language_and_judge_alone() -> None:
    own = served([ROW], E5, RERANKER, "en")
    assert own.calibrated
    assert own.threshold(0.05, 0.8, 0.25) == 0.5
    assert own.threshold(0.0, 0.8, 0.25) == NEVER
    assert served([ROW], E5, RERANKER, "zh") == fitted(E5, RERANKER, "zh"), "nothing was asked in Chinese"
    for other in (replace(ROW, reranker="another"), replace(ROW, encoder="another"), replace(ROW, judge="older")):
        judge = served([other], E5, RERANKER, "en")
        assert not judge.calibrated
        assert judge.threshold(0.05, 0.8, 0.25) == fitted(E5, RERANKER, "en").threshold(0.05, 0.8, 0.25)
    by_words = fitted("bge-m3", "cross", "en").fingerprint
    beyond = served([replace(ROW, encoder="bge-m3", reranker="cross", judge=by_words)], "bge-m3", "cross", "en")
    assert beyond.calibrated, "a model that nothing of ours was fitted on can be calibrated by the site"


def test_what_is_kept_is_read_again_and_damage_is_told(tmp_path: Path) -> None:
    keep(tmp_path, (ROW,))
    assert calibrations(tmp_path) == (ROW,)
    path = tmp_path / calibration.FILE
    whole = path.read_bytes()
    for place in range(0, len(whole) - 1, 7):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        try:
            read = calibrations(tmp_path)
        except Damaged:
            continue
        assert read == (ROW,), place
    path.write_bytes(b"[]")
    with pytest.raises(Damaged):
        calibrations(tmp_path)
    keep(tmp_path, ())
    assert calibrations(tmp_path) == ()
