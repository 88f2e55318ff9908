"""How tokens are taken by a grammar: what llama.cpp would take itself, asking it about one token where that will do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.strict import module

llama_cpp = module("llama", "llama_cpp")
pytestmark = pytest.mark.extra("llama")
from localmed.models.llama.engine import Engine, Setup  # noqa: E402

PROMPT = (("<|im_start|>", True), ("user\nHow is asthma treated?\n", False))
SOME, ANY = "root ::= [a-f]+", "root ::= [^\\x00]*"


@pytest.fixture(scope="module")
def engine(path: Path) -> Engine:
    marks = ("<|im_start|>", "<|im_end|>")
    return Engine(Setup(str(path), 512, 64, 2, 1, 0, marks, marks[1]))


def allowed(engine: Engine) -> np.ndarray[Any, Any]:
    """The probability of each token that ``SOME`` allows after ``PROMPT``; nought of the others."""
    api = engine._api
    engine.read_all(engine.tokens(PROMPT), lambda: None, logits=True)
    logits = np.ctypeslib.as_array(api.llama_get_logits_ith(engine._context, -1), shape=(engine.size,)).copy()
    good = [token for token in range(engine.size) if set(engine.piece(token)) <= set(b"abcdef") and engine.piece(token)]
    shares = np.zeros(engine.size)
    shares[good] = np.exp(logits[good] - logits[good].max())
    shares /= shares.sum()
    return shares


def test_the_best_of_what_is_allowed(engine: Engine) -> None:
    with engine.cleared():
        shares = allowed(engine)
        with engine.sampler(SOME, 0.0, 1) as sampler:
            assert sampler.take(engine._context) == shares.argmax()
    with engine.sampler('root ::= "ab" root?', 0.0, 1) as sampler:
        text, _, _ = engine.generate(engine.tokens(PROMPT), 30, sampler, lambda: None, lambda _: None)
    assert set(text) == set("ab"), "the grammar is told what was taken"


def test_drawn_as_the_allowed_ones_are_probable(engine: Engine) -> None:
    drawn = np.zeros(engine.size)
    with engine.cleared():
        shares = allowed(engine)
        for seed in range(1500):
            with engine.sampler(SOME, 1.0, seed) as sampler:
                drawn[sampler.take(engine._context)] += 1 / 1500
    assert np.abs(drawn - shares).sum() / 2 < 0.1, "total variation"


def test_a_grammar_is_asked_about_one_token_where_that_is_allowed(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, api = list[int](), engine._api

    class Counting:
        """llama.cpp, noting of how many tokens a grammar is asked."""

        def __getattr__(self, name: str) -> Any:
            return getattr(api, name)

        def llama_sampler_apply(self, sampler: Any, rows: Any) -> None:
            sizes.append(rows._obj.size)
            api.llama_sampler_apply(sampler, rows)

    monkeypatch.setattr(engine, "_api", Counting())
    with engine.sampler(ANY, 0.0, 1) as sampler:
        engine.generate(engine.tokens(PROMPT), 12, sampler, lambda: None, lambda _: None)
    assert sizes.count(1) == 12, "of each token that was taken freely"
    assert sizes.count(engine.size) < 12, "where random weights made half a character"
