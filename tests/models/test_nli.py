"""The judge of entailment on tiny checkpoints, against sentence-transformers called directly."""

from __future__ import annotations

import itertools
import json
import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from localmed.domain.errors import ModelError
from localmed.domain.ports import Stance
from localmed.models.cross_encoder import LABELS, UNREAD, NliCrossEncoder
from tests.models.tiny import NLI, lying, make_nli, make_spm_tokenizer

PAIRS = [
    ("the maximum dose of paracetamol is 4 g", "the dose of paracetamol"),
    ("sepsis", "visiting hours"),
    ("普通病房的探视时间为每天", "探视时间"),
    ("dose dose dose", ""),
    ("", "sepsis"),
]
LONG = "sepsis dose of the " * 200

pytestmark = pytest.mark.slow  # transformers takes seconds to import


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_nli(tmp_path_factory.mktemp("models") / "nli-deberta-v3-base")


@pytest.fixture(scope="module")
def judge(folder: Path) -> NliCrossEncoder:
    return NliCrossEncoder(lying(folder), exact=True)


def peers(folder: Path, pairs: Sequence[tuple[str, str]]) -> Any:
    """What sentence-transformers makes of ``pairs``, in the order of ``LABELS``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs
        import torch
        from sentence_transformers import CrossEncoder

        peer = CrossEncoder(str(folder), device="cpu")
        predicted = peer.predict(list(pairs), activation_fn=torch.nn.Softmax(dim=-1), show_progress_bar=False)
    names = [peer.model.config.id2label[place].lower() for place in range(3)]
    return predicted[:, [names.index(label) for label in LABELS]]


def numbers(stances: Sequence[Stance]) -> Any:
    return np.array([[stance.entailment, stance.neutral, stance.contradiction] for stance in stances])


@pytest.mark.parametrize("kind", ["XLMRoberta", "Bert", "DebertaV2"])
def test_as_sentence_transformers(tmp_path: Path, kind: str) -> None:
    folder = make_nli(tmp_path / "nli", kind=kind)
    judged = numbers(NliCrossEncoder(lying(folder), exact=True).judge(PAIRS))
    assert judged == pytest.approx(peers(folder, PAIRS), abs=1e-5)
    assert judged.sum(1) == pytest.approx(np.ones(len(PAIRS)), abs=1e-5)
    assert judged.std(0).min() > 0.01, "it tells pairs apart"


def test_deberta_with_a_sentencepiece_vocabulary(tmp_path: Path) -> None:
    """As the real one is published: spm.model, no tokenizer.json."""
    folder = make_nli(tmp_path / "nli", kind="DebertaV2")
    make_spm_tokenizer(folder)
    judged = numbers(NliCrossEncoder(lying(folder), exact=True).judge(PAIRS[:2]))
    assert judged == pytest.approx(peers(folder, PAIRS[:2]), abs=1e-5)


def test_every_order_of_the_labels_is_read(tmp_path: Path) -> None:
    """The same weights under other names: the probabilities go with the names."""
    first = None
    for order in itertools.permutations(range(3)):
        folder = make_nli(tmp_path / "".join(map(str, order)), [LABELS[place].upper() for place in order])
        [stance] = NliCrossEncoder(lying(folder), exact=True).judge(PAIRS[:1])
        by_output = numbers([stance])[0][list(order)]
        first = by_output if first is None else first
        assert by_output == pytest.approx(first, abs=1e-6)


@pytest.mark.parametrize(
    "labels",
    [
        ["LABEL_0", "LABEL_1", "LABEL_2"],
        ["entailment", "not_entailment"],
        ["entailment", "neutral"],
        ["entailment", "neutral", "neutral"],
        ["entailment", "neutral", "contradiction", "other"],
        ["yes", "maybe", "no"],
    ],
)
def test_labels_are_never_guessed(tmp_path: Path, labels: list[str]) -> None:
    judge = NliCrossEncoder(lying(make_nli(tmp_path / "nli", labels)))
    for attempt in (lambda: judge.name, lambda: judge.judge(PAIRS)):
        with pytest.raises(ModelError, match="must name its labels entailment, neutral, contradiction"):
            attempt()


@pytest.mark.parametrize(
    "named", [None, [], {}, "x", {"a": "neutral"}, {"1": "neutral", "2": "entailment", "3": "contradiction"}]
)
def test_labels_that_are_not_told(folder: Path, tmp_path: Path, named: Any) -> None:
    copied = shutil.copytree(folder, tmp_path / "nli")
    config = json.loads((copied / "config.json").read_text("utf-8"))
    (copied / "config.json").write_text(json.dumps(config | {"id2label": named}), "utf-8")
    with pytest.raises(ModelError, match="labels"):
        _ = NliCrossEncoder(lying(copied)).name


def test_stances_in_order_whatever_the_batch(judge: NliCrossEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [(f"dose {number} " + "of the sepsis " * (number % 7), "visiting hours") for number in range(40)]
    together = numbers(judge.judge(pairs))
    monkeypatch.setattr("localmed.models.network.CPU_BYTES", 1)
    assert numbers(judge.judge(pairs)) == pytest.approx(together, abs=1e-5)
    assert numbers(judge.judge(pairs[7:8]))[0] == pytest.approx(together[7], abs=1e-5)


def test_a_long_premise_is_cut_and_a_long_hypothesis_not_judged(judge: NliCrossEncoder) -> None:
    one, other, unread, whole = judge.judge([(LONG, "dose"), (LONG * 2, "dose"), ("dose", LONG), ("dose", "dose")])
    assert numbers([one]) == pytest.approx(numbers([other]), abs=1e-5)
    assert unread == UNREAD
    assert UNREAD.label == "neutral"
    assert whole not in (one, UNREAD)
    assert judge.judge([("dose", LONG)]) == [UNREAD]


def test_no_pair_loads_nothing(tmp_path: Path) -> None:
    assert NliCrossEncoder(lying(tmp_path / "nothing")).judge([]) == []


def test_half_precision_agrees(folder: Path, judge: NliCrossEncoder) -> None:
    fast = numbers(NliCrossEncoder(lying(folder)).judge(PAIRS))
    assert fast == pytest.approx(numbers(judge.judge(PAIRS)), abs=0.05)


def test_languages_are_the_manifests(folder: Path) -> None:
    assert NliCrossEncoder(lying(folder)).languages == ("en",)
    assert NliCrossEncoder(lying(folder, languages=("en", "zh"))).languages == ("en", "zh")


def test_the_name_says_who_judged(judge: NliCrossEncoder) -> None:
    assert judge.name == "nli-deberta-v3-base 0123456789ab"
    assert sorted(NLI) == sorted(LABELS)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("content", [b"", b"damaged" * 99])
def test_a_damaged_file_is_an_error(folder: Path, tmp_path: Path, name: str, content: bytes) -> None:
    copied = shutil.copytree(folder, tmp_path / "nli")
    (copied / name).write_bytes(content)
    with pytest.raises(ModelError, match="the model nli "):
        NliCrossEncoder(lying(copied)).judge(PAIRS)


def test_nothing_is_printed(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    NliCrossEncoder(lying(folder)).judge([*PAIRS, (LONG, "dose"), ("dose", LONG)])
    assert capfd.readouterr() == ("", "")
