"""The starter judge: its shipped weights on pairs of our own writing, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from localmed.errors import ModelError
from localmed.models.minilm import MiniLM
from localmed.models.shipped_weights import arrays
from localmed.verification.stance import FEATURES, StarterEntailment, Weights, likenesses, starter
from tests.fakes import HashedWords

NAME = "starter-entailment"
OURS = [
    ("Zinc lozenges shortened the common cold by one day.", "Zinc lozenges shorten the common cold.", "entailment"),
    (
        "Zinc lozenges did not shorten the common cold in adults.",
        "Zinc lozenges shorten the common cold.",
        "contradiction",
    ),
    ("Hand washing was associated with fewer cases of diarrhoea.", "Hand washing reduces diarrhoea.", "entailment"),
    (
        "Hand washing was not associated with fewer cases of diarrhoea.",
        "Hand washing reduces diarrhoea.",
        "contradiction",
    ),
    ("Antibiotics had no effect on viral sore throat.", "Antibiotics cure viral sore throat.", "contradiction"),
    ("Smoking increased the risk of stroke in men.", "Smoking raises the risk of stroke.", "entailment"),
    ("Smoking increased the risk of stroke in men.", "Smoking decreases the risk of stroke.", "contradiction"),
    ("Masks lowered the spread of influenza on the wards.", "Masks do not protect against influenza.", "contradiction"),
    ("Give adrenaline 500 micrograms into the muscle.", "Give adrenaline 500 mg into the muscle.", "contradiction"),
    ("Give adrenaline 500 micrograms into the muscle.", "Give adrenaline 0.5 mg into the muscle.", "entailment"),
    ("Amoxicillin 500 mg is given three times a day.", "Ibuprofen 500 mg is given three times a day.", "neutral"),
    ("Bread prices rose in spring.", "Physiotherapy helps after a hip fracture.", "neutral"),
    ("Honey eased cough in children.", "Surgery is needed for a torn knee ligament.", "neutral"),
    ("The clinic on the second floor opens at nine.", "Statins lower cholesterol.", "neutral"),
]


@pytest.fixture(scope="module")
def judge() -> StarterEntailment:
    return starter(arrays(NAME), MiniLM(), MiniLM)


def test_the_shipped_weights_say_what_is_documented(judge: StarterEntailment) -> None:
    judged = judge.judge([(premise, hypothesis) for premise, hypothesis, _ in OURS])
    wrong = [case for case, stance in zip(OURS, judged, strict=True) if stance.label != case[2]]
    assert not wrong


def test_probabilities_add_up_and_a_pair_is_judged_alike_in_any_company(judge: StarterEntailment) -> None:
    pairs = [(premise, hypothesis) for premise, hypothesis, _ in OURS]
    together = judge.judge(pairs)
    for pair, stance in list(zip(pairs, together, strict=True))[:3]:
        assert stance.entailment + stance.neutral + stance.contradiction == pytest.approx(1)
        (alone,) = judge.judge([pair])
        assert alone.contradiction == pytest.approx(stance.contradiction, abs=0.02)  # bfloat16 in other batches
    assert judge.judge([]) == []
    assert judge.languages == ("en",)


def test_another_encoder_is_not_used() -> None:
    weights = Weights.of(arrays(NAME))
    with pytest.raises(ModelError, match="goes with"):
        StarterEntailment(HashedWords(), weights)
    assert "MiniLM" in starter(arrays(NAME), HashedWords(), MiniLM).name


def test_weights_of_other_features_are_refused() -> None:
    stored = dict(arrays(NAME))
    with pytest.raises(ModelError, match="other features"):
        Weights.of({**stored, "features": np.array(FEATURES[::-1])})
    with pytest.raises(ModelError, match="other features"):
        Weights.of({**stored, "biases": np.zeros(2)})
    del stored["biases"]
    with pytest.raises(ModelError, match="lack"):
        Weights.of(stored)


def test_likeness_is_that_of_the_nearest_line() -> None:
    encoder = HashedWords()
    near, far = likenesses(encoder, [("Title\nGive iron daily.\nStop zinc.", "Give iron daily."), ("Zinc.", "Iron.")])
    assert near == pytest.approx(1.0, abs=1e-6)
    assert far < near
