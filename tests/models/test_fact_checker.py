"""Fact checkers on tiny checkpoints with random weights, against transformers called directly."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localmed.answering.chat import YesNo
from localmed.config import ChatSettings
from localmed.domain.errors import ModelError
from localmed.domain.ports import NOT_JUDGED
from localmed.models import choice
from localmed.models.cross_encoder import BY_LIBRARY, FACTCG, LETTUCE, FactCG, FactChecker, LettuceDetect, MiniCheck
from localmed.models.registry.manifests import load_all
from localmed.models.registry.registry import Registry
from tests.models.tiny import lying, make_fact_checker, make_nli
from tests.models.tiny_gguf import write_gguf
from tests.words import pattern

DOCUMENT = "the maximum dose of paracetamol is 4 g. visiting hours end at 8."
LONG = " ".join(f"the dose of sepsis {number} is {number} g." for number in range(90))
CLAIMS = ["the dose is 4 g", "visiting hours are over", "sepsis", "普通病房的探视时间"]
KINDS = {"FactCG": "DebertaV2", "MiniCheck": "T5", "LettuceDetect": "ModernBert"}

pytestmark = pytest.mark.slow  # transformers takes seconds to import


@pytest.fixture(scope="module", params=sorted(KINDS))
def judge(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FactChecker:
    folder = make_fact_checker(tmp_path_factory.mktemp("models") / request.param.lower(), KINDS[request.param])
    return BY_LIBRARY[request.param](lying(folder), exact=True)


def loaded(judge: FactChecker, architecture: str) -> tuple[Any, Any]:
    """The tokenizer and the network of ``judge``, loaded without it."""
    import transformers

    folder = judge._checkpoint.folder()
    return transformers.AutoTokenizer.from_pretrained(str(folder)), getattr(transformers, architecture).from_pretrained(
        str(folder)
    ).eval()


def of_factcg(judge: FactChecker, document: str, claim: str) -> float:
    tokenizer, model = loaded(judge, "AutoModelForSequenceClassification")
    inputs = tokenizer(FACTCG.format(document=document, claim=claim), return_tensors="pt")
    return float(model(**inputs).logits.softmax(-1)[0, 1])


def of_minicheck(judge: FactChecker, document: str, claim: str) -> float:
    """By ``generate``, which knows nothing of our first step."""
    import torch

    tokenizer, model = loaded(judge, "AutoModelForSeq2SeqLM")
    inputs = tokenizer(f"predict: {document}</s>{claim}", return_tensors="pt")
    options = {"max_new_tokens": 1, "do_sample": False, "output_logits": True, "return_dict_in_generate": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs
        first = model.generate(**inputs, **options).logits[0][0]
    no, yes = (tokenizer(answer, add_special_tokens=False)["input_ids"][0] for answer in "01")
    return float(torch.stack([first[no], first[yes]]).softmax(-1)[1])


def of_lettucedetect(judge: FactChecker, document: str, claim: str) -> float:
    tokenizer, model = loaded(judge, "AutoModelForTokenClassification")
    prompt = LETTUCE.format(document=document)
    inputs = tokenizer(prompt, claim, return_tensors="pt")
    shares = model(**inputs).logits.softmax(-1)[0, :, 0].tolist()
    claimed = [place for place, text in enumerate(inputs.sequence_ids(0)) if text == 1]
    return float(min(shares[place] for place in claimed if inputs.token_to_chars(0, place) is not None))


DIRECT: dict[type[FactChecker], Callable[[FactChecker, str, str], float]] = {
    FactCG: of_factcg, MiniCheck: of_minicheck, LettuceDetect: of_lettucedetect
}  # fmt: skip


def test_as_transformers_alone(judge: FactChecker) -> None:
    import torch

    stances = judge.judge([(DOCUMENT, claim) for claim in CLAIMS])
    with torch.no_grad():  # not for the whole process, where other tests train
        expected = [DIRECT[type(judge)](judge, DOCUMENT, claim) for claim in CLAIMS]
    assert [stance.entailment for stance in stances] == pytest.approx(expected, abs=5e-6)
    assert len({round(stance.entailment, 5) for stance in stances}) == len(CLAIMS), "it tells claims apart"
    assert all(stance.contradiction == 0.0 for stance in stances), "what is not supported is not contradicted"
    assert [stance.entailment + stance.neutral for stance in stances] == pytest.approx([1.0] * len(CLAIMS))


def test_a_long_document_is_read_in_pieces_of_which_the_best_counts(judge: FactChecker) -> None:
    """A sentence without an end is cut; a claim that leaves no room is not judged."""
    pieces = judge._pieces(LONG, CLAIMS[0])
    assert len(pieces) > 1
    assert " ".join(pieces) == LONG, "nothing is left out"
    alone = [stance.entailment for stance in judge.judge([(piece, CLAIMS[0]) for piece in pieces])]
    [whole] = judge.judge([(LONG, CLAIMS[0])])
    if isinstance(judge, LettuceDetect):  # each word by the piece that supports it best
        assert whole.entailment >= max(alone)
    else:
        assert whole.entailment == pytest.approx(max(alone), abs=1e-4)
    endless = "dose" * 2000
    assert "".join(judge._pieces(endless, "sepsis")).replace(" ", "") == endless
    assert judge.judge([(endless, "sepsis")])[0].judged
    first, second = judge.judge([(DOCUMENT, "sepsis " * 1100), (DOCUMENT, "sepsis")])
    assert first == NOT_JUDGED
    assert second.judged
    assert judge.judge([(DOCUMENT, "sepsis " * 1100)]) == [NOT_JUDGED]
    assert judge.judge([]) == []


def test_words_that_are_not_supported_are_marked(tmp_path: Path) -> None:
    judge = LettuceDetect(lying(make_fact_checker(tmp_path / "lettuce", "ModernBert")), exact=True)
    stances = judge.judge([(DOCUMENT, claim) for claim in CLAIMS])
    assert any(stance.marked for stance in stances)
    assert any(not stance.marked for stance in stances)
    for claim, stance in zip(CLAIMS, stances, strict=True):
        assert bool(stance.marked) == (stance.neutral >= 0.5), "marked is what is more likely not said than said"
        assert all(0 <= start < end <= len(claim) for start, end in stance.marked)
        assert all(before[1] < after[0] for before, after in zip(stance.marked, stance.marked[1:], strict=False))


@pytest.mark.parametrize(("library", "kind"), [("FactCG", "DebertaV2"), ("LettuceDetect", "ModernBert")])
def test_three_labels_are_no_fact_checker(tmp_path: Path, library: str, kind: str) -> None:
    judge = BY_LIBRARY[library](lying(make_fact_checker(tmp_path / "three", kind, labels=3)))
    for attempt in (lambda: judge.name, lambda: judge.judge([(DOCUMENT, "sepsis")])):
        with pytest.raises(ModelError, match=pattern("model.two_labels")):
            attempt()


def test_another_architecture_is_an_error(tmp_path: Path) -> None:
    """A classifier of whole texts would load as one of tokens: its weights have the same names and shapes."""
    folder = make_nli(tmp_path / "nli", ["no", "yes"], kind="DebertaV2")
    for kind in (MiniCheck, LettuceDetect):
        with pytest.raises(ModelError, match=pattern("model.other_kind")):
            kind(lying(folder)).judge([(DOCUMENT, "sepsis")])


def test_each_is_chosen_by_its_manifest(tmp_path: Path) -> None:
    judges = {name: one for name, one in load_all().items() if one.role == "entailment" and one.library}
    assert {one.library for one in judges.values()} == {*BY_LIBRARY, choice.YES_NO}
    assert all(one.languages and one.context for one in judges.values())
    for name, manifest in judges.items():
        if manifest.library == choice.YES_NO:
            continue
        registry = Registry(tmp_path / name)
        folder = make_fact_checker(tmp_path / "stick" / name, KINDS[manifest.library])
        registry.add(folder, "librarian")
        chosen = choice.entailment({"entailment": name}, registry)
        assert type(chosen) is BY_LIBRARY[manifest.library]
        assert chosen.judge([(DOCUMENT, "sepsis")])[0].judged


def test_yes_or_no_by_a_gguf(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "models")
    registry.add(write_gguf(tmp_path / "tiny-judge.gguf"), "librarian", role="entailment", template="chatml")
    chosen = {"entailment": "tiny-judge"}
    assert choice.entailment(chosen, registry) is None
    chat = choice.judging_chat(ChatSettings(context=2048), chosen, registry)
    assert chat
    judge = YesNo(chat, ("en",))
    try:
        stances = judge.judge([(DOCUMENT, claim) for claim in CLAIMS[:3]])
        assert judge.name == "tiny-judge, Yes or No"
        assert [stance.entailment + stance.neutral for stance in stances] == pytest.approx([1.0] * 3)
        assert all(0.0 < stance.entailment < 1.0 for stance in stances), "measured, not named"
        assert {stance.contradiction for stance in stances} == {0.0}
        [again] = judge.judge([(DOCUMENT, CLAIMS[1])])
        assert again.entailment == pytest.approx(stances[1].entailment, abs=1e-3)
    finally:
        judge.close()
