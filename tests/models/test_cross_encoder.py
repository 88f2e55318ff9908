"""Reranker and judge of entailment on tiny checkpoints, against FlagEmbedding and sentence-transformers themselves.

See ``test_checkpoints`` too.
"""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from localmed.domain.errors import ModelError
from localmed.domain.ports import Stance
from localmed.models.cross_encoder import LABELS, UNREAD, CrossEncoder, NliCrossEncoder
from tests.models.tiny import POSITIONS, lying, make_cross_encoder, make_nli, make_spm_tokenizer

QUESTION = "the maximum dose of paracetamol"
PASSAGES = ["sepsis", "普通病房的探视时间为每天", "dose dose dose 探视", "visiting hours; sepsis?"]
PAIRS = [("the maximum dose of paracetamol is 4 g", "the dose of paracetamol"), ("sepsis", "visiting hours"),
         ("普通病房的探视时间为每天", "探视时间"), ("dose dose dose", ""), ("", "sepsis")]  # fmt: skip
LONG = "sepsis dose of the " * 200

pytestmark = pytest.mark.slow  # transformers takes seconds to import


def sentence_transformers(folder: Path, pairs: Sequence[tuple[str, str]], **options: Any) -> tuple[Any, Any]:
    """The library's own model, and what it makes of ``pairs``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs
        from sentence_transformers import CrossEncoder as Peer

        peer = Peer(str(folder), device="cpu")
        return peer, peer.predict(list(pairs), show_progress_bar=False, **options)


# --- the reranker ----------------------------------------------------------------------------------------------------


def test_it_scores_as_flag_embedding(tmp_path: Path) -> None:
    folder = make_cross_encoder(tmp_path / "bge-reranker-v2-m3")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs
        from FlagEmbedding import FlagReranker

        peer = FlagReranker(str(folder), devices="cpu", normalize=True)
        expected = peer.compute_score([(QUESTION, passage) for passage in PASSAGES], max_length=POSITIONS - 2)
    reranker = CrossEncoder(lying(folder), exact=True)
    scores = reranker.score(QUESTION, PASSAGES)
    assert scores == pytest.approx(expected, abs=1e-5)
    assert len({round(score, 4) for score in scores}) == len(PASSAGES), "it tells passages apart"
    one, other = reranker.score(LONG, ["sepsis", "visiting hours"])
    assert one != other, "a long question leaves room for the passage"
    assert reranker.score("sepsis", [LONG, LONG + LONG]) == pytest.approx([reranker.score("sepsis", [LONG])[0]] * 2)


def test_of_two_segments_as_sentence_transformers(tmp_path: Path) -> None:
    """BERT tells question and passage apart by the segments' numbers, which must reach it."""
    folder = make_nli(tmp_path / "bert", ["LABEL_0"], "Bert")
    _, expected = sentence_transformers(folder, [(QUESTION, passage) for passage in PASSAGES])
    assert CrossEncoder(lying(folder), exact=True).score(QUESTION, PASSAGES) == pytest.approx(expected, abs=1e-5)


# --- entailment ------------------------------------------------------------------------------------------------------


def numbers(stances: Sequence[Stance]) -> Any:
    return np.array([[stance.entailment, stance.neutral, stance.contradiction] for stance in stances])


@pytest.mark.parametrize("kind", ["XLMRoberta", "Bert", "DebertaV2", "spm"])
def test_as_sentence_transformers(tmp_path: Path, kind: str) -> None:
    """DeBERTa also as the real one is published: spm.model, no tokenizer.json."""
    folder = make_nli(tmp_path / "nli", kind="DebertaV2" if kind == "spm" else kind)
    if kind == "spm":
        make_spm_tokenizer(folder)
    import torch

    peer, predicted = sentence_transformers(folder, PAIRS, activation_fn=torch.nn.Softmax(dim=-1))
    names = [peer.model.config.id2label[place].lower() for place in range(3)]
    judged = numbers(NliCrossEncoder(lying(folder), exact=True).judge(PAIRS))
    assert judged == pytest.approx(predicted[:, [names.index(label) for label in LABELS]], abs=1e-5)
    assert judged.std(0).min() > 0.01, "it tells pairs apart"


def test_every_order_of_the_labels_is_read(tmp_path: Path) -> None:
    """The same weights under other names: the probabilities go with the names."""
    first = None
    for order in itertools.permutations(range(3)):
        folder = make_nli(tmp_path / "".join(map(str, order)), [LABELS[place].upper() for place in order])
        [stance] = NliCrossEncoder(lying(folder), exact=True).judge(PAIRS[:1])
        by_output = numbers([stance])[0][list(order)]
        first = by_output if first is None else first
        assert by_output == pytest.approx(first, abs=1e-6)


NAMED: list[Any] = [
    dict(enumerate(labels))
    for labels in (
        ["LABEL_0", "LABEL_1", "LABEL_2"], ["entailment", "not_entailment"], ["entailment", "neutral"],
        ["entailment", "neutral", "neutral"], ["entailment", "neutral", "contradiction", "other"],
        ["yes", "maybe", "no"],
    )
]  # fmt: skip
NAMED += [None, [], {}, "x", {"a": "neutral"}, {"1": "neutral", "2": "entailment", "3": "contradiction"}]


def test_labels_are_never_guessed(tmp_path: Path) -> None:
    folder = make_nli(tmp_path / "nli")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    for named in NAMED:
        (folder / "config.json").write_text(json.dumps(config | {"id2label": named}), "utf-8")
        judge, reranker = NliCrossEncoder(lying(folder)), CrossEncoder(lying(folder))
        for attempt in (lambda: judge.name, lambda: judge.judge(PAIRS)):  # noqa: B023
            with pytest.raises(ModelError, match="must name its labels entailment, neutral, contradiction"):
                attempt()
        with pytest.raises(ModelError, match="one label"):
            reranker.score(QUESTION, PASSAGES)


def test_a_long_premise_is_cut_and_a_long_hypothesis_not_judged(tmp_path: Path) -> None:
    judge = NliCrossEncoder(lying(make_nli(tmp_path / "nli")), exact=True)
    one, other, unread, whole = judge.judge([(LONG, "dose"), (LONG * 2, "dose"), ("dose", LONG), ("dose", "dose")])
    assert numbers([one]) == pytest.approx(numbers([other]), abs=1e-5)
    assert unread == UNREAD
    assert UNREAD.label == "neutral"
    assert whole not in (one, UNREAD)
    assert judge.judge([("dose", LONG)]) == [UNREAD]
