"""The recipe of the starter entailment model: its pairs, that it is deterministic, and that it learns."""

from __future__ import annotations

import random
import tomllib
from collections import Counter

import numpy as np
import pytest

from localmed.models.minilm import MiniLM
from localmed.training import entailment
from localmed.training.frames import FRAMES, LABELS, Example, Frames, relation
from localmed.verification.stance import Weights


def agreement(so: entailment.Ints, judged: entailment.Ints) -> float:
    return float((so == judged).mean())


@pytest.fixture(scope="module")
def encoder() -> MiniLM:
    return MiniLM()


def test_equal_seeds_draw_equal_pairs_of_every_label() -> None:
    drawn = entailment.examples(300, seed=3)
    assert drawn == entailment.examples(300, seed=3) != entailment.examples(300, seed=4)
    assert Counter(each.label for each in drawn) == dict.fromkeys(LABELS, 100)


def test_every_frame_can_be_filled() -> None:
    frames = tomllib.loads(FRAMES.read_text("utf-8"))
    families = {name: each for name, each in frames.items() if name not in ("fillers", "names")}
    for family in families.values():
        texts = [text for kind in ("claims", "findings") for said in family[kind].values() for text in said]
        for text in texts:
            filled = text.format(a="AAA", b="BBB")
            assert "{" not in filled
            assert "AAA" in filled or "BBB" in filled
        assert all(len(frames["names"][family[slot]]) > 3 for slot in ("a", "b"))


def test_the_label_follows_from_claim_and_finding() -> None:
    assert relation("yes", "yes") == relation("no", "no") == relation("no", "opposite") == "entailment"
    assert relation("yes", "no") == relation("no", "yes") == relation("yes", "opposite") == "contradiction"
    assert {relation(claim, "unknown") for claim in ("yes", "no", "opposite")} == {"neutral"}


def test_another_name_is_not_part_of_this_one() -> None:
    frames = Frames(random.Random(5))
    others = {frames._other("illness", "COVID-19") for _ in range(200)}
    assert len(others) > 5
    assert not any("COVID-19" in each for each in others)


def test_the_recipe_gives_the_same_bytes_twice(encoder: MiniLM) -> None:
    learned, held = entailment.examples(90), entailment.examples(60, seed=9)
    first = entailment.stored(entailment.train(encoder, learned, held, agreement))
    second = entailment.stored(entailment.train(encoder, learned, held, agreement))
    assert first == second


def test_what_is_learned_beats_chance_on_other_pairs(encoder: MiniLM) -> None:
    learned, held, new = (entailment.examples(count, seed) for count, seed in ((240, 1), (90, 2), (120, 3)))
    weights = entailment.train(encoder, learned, held, agreement)
    read, so = entailment._read(encoder, new)
    assert agreement(so, weights.probabilities(read).argmax(axis=1)) > 0.5  # chance is a third
    assert weights.encoder == encoder.identity.slug


def test_stored_weights_are_read_back(encoder: MiniLM) -> None:
    import io

    weights = entailment.train(encoder, entailment.examples(60), entailment.examples(30, 2), agreement)
    with np.load(io.BytesIO(entailment.stored(weights)), allow_pickle=False) as stored:
        again = Weights.of({name: stored[name] for name in stored.files})
    assert np.array_equal(again.coefficients, weights.coefficients)


def test_the_fit_finds_a_rule_that_is_there() -> None:
    read = np.array([[1.0], [0.0], [-1.0]] * 20)
    so = np.array([0, 1, 2] * 20)
    slopes, biases = entailment.fitted(read, so)
    assert ((read @ slopes + biases).argmax(axis=1) == so).all()


def test_biases_come_from_the_development_pairs(encoder: MiniLM) -> None:
    learned = entailment.examples(90)
    neutral = [Example(each.premise, each.hypothesis, "neutral") for each in entailment.examples(30, seed=2)]
    weights = entailment.train(encoder, learned, neutral, agreement)
    read, _ = entailment._read(encoder, neutral)
    plain = entailment.train(encoder, learned, entailment.examples(30, seed=2), agreement)
    called = [int((each.probabilities(read).argmax(axis=1) == 1).sum()) for each in (weights, plain)]
    assert called[0] >= called[1]
