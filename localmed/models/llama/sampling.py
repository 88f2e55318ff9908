"""How the next token is taken: the best one, or drawn with a temperature; by a grammar where there is one.

A grammar is asked about the one token that was taken freely, and about the whole vocabulary only where it forbids that:
asking it about every token costs more than a small model's own step. What comes out is the same: the best of the
allowed, or x with p(x) + (1 - a) p(x) / a = p(x) / a, where a is the probability of all that is allowed together.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from localmed.errors import ModelError

_TOKENS = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])  # llama_token_data


class Sampler:
    """Takes one token after the other of a reply."""

    def __init__(self, api: Any, size: int, draw: Any, grammar: Any) -> None:
        """``size`` is that of the vocabulary, ``draw`` a chain of llama.cpp's; no ``grammar``: None."""
        self._api, self._size, self._draw, self._grammar = api, size, draw, grammar

    def take(self, context: Any) -> int:
        """The next token after what ``context`` read last."""
        token: int = self._api.llama_sampler_sample(self._draw, context, -1)
        if self._grammar is None:
            return token
        if not self._allowed(token):
            token = self._taken_of_allowed(context)
        self._api.llama_sampler_accept(self._grammar, token)
        return token

    def _allowed(self, token: int) -> bool:
        row = self._ruled(np.array([(token, 1.0, 0.0)], _TOKENS))
        return bool(np.isfinite(row.data[0].logit))

    def _taken_of_allowed(self, context: Any) -> int:
        tokens = np.zeros(self._size, _TOKENS)
        tokens["id"] = np.arange(self._size)
        logits = self._api.llama_get_logits_ith(context, -1)
        tokens["logit"] = np.ctypeslib.as_array(logits, shape=(self._size,))
        rows = self._ruled(tokens)
        self._api.llama_sampler_apply(self._draw, ctypes.byref(rows))
        return int(rows.data[rows.selected].id)

    def _ruled(self, tokens: np.ndarray[Any, Any]) -> Any:
        """``tokens`` as llama.cpp has them, with a logit of minus infinity where the grammar forbids one."""
        kind = self._api.llama_token_data
        rows = self._api.llama_token_data_array(tokens.ctypes.data_as(ctypes.POINTER(kind)), len(tokens), -1, False)
        rows.kept = tokens  # for as long as llama.cpp reads there
        self._api.llama_sampler_apply(self._grammar, ctypes.byref(rows))
        return rows


@contextmanager
def sampler(api: Any, vocabulary: Any, size: int, grammar: str, temperature: float, seed: int) -> Iterator[Sampler]:
    """The best token at temperature 0, else drawn with ``seed``; ``ModelError`` for a grammar that cannot be read."""
    draw = api.llama_sampler_chain_init(api.llama_sampler_chain_default_params())
    constraint = None
    try:
        if grammar:
            constraint = api.llama_sampler_init_grammar(vocabulary, grammar.encode(), b"root")
            if not constraint:
                raise ModelError("chat.grammar_refused")
        if temperature > 0:
            api.llama_sampler_chain_add(draw, api.llama_sampler_init_temp(temperature))
            api.llama_sampler_chain_add(draw, api.llama_sampler_init_dist(seed))
        else:
            api.llama_sampler_chain_add(draw, api.llama_sampler_init_greedy())
        yield Sampler(api, size, draw, constraint)
    finally:
        api.llama_sampler_free(draw)
        if constraint:
            api.llama_sampler_free(constraint)
