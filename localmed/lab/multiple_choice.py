"""A multiple-choice question to a chat model (LINS): the choice is read from probabilities, never from text.

The options' letters are the labels of a choice. The options are shown in several orders, each option equally often in
each place, and an option's probability is its mean over the orders, so that the model's preference for a place cancels
out; it is reported. Each order is also shown reversed, because the preceding options matter too: on 41 PubMedQA
questions with three options and a 135M model, rotations alone changed 38 % of choices with another seed, with reversals
none.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import permutations
from math import fsum

from localmed.answering import evidence as shown
from localmed.answering.chat import TEMPERATURE, TURN_TOKENS, fit
from localmed.answering.roles import instructions
from localmed.domain import Evidence
from localmed.domain.errors import ModelError
from localmed.domain.ports import CountingChat, Message, Request
from localmed.text.language import detect

Orders = tuple[tuple[int, ...], ...]  # places of the options, in each order that they are shown in

LETTERS = "ABCDEFGHIJ"
MOST_OPTIONS = len(LETTERS)
MOST_IN_EVERY_ORDER = 4  # options: 24 orders; of five there would be 120
REASONING_TOKENS = 256  # of a chain of thought: longer ones of small models repeat themselves
_ANSWER, _CHOOSE, _REASON, _AGAINST = map(instructions, ("mcq_letter", "mcq_choose", "mcq_reason", "mcq_against"))


@dataclass(frozen=True, slots=True)
class Chosen:
    """The probability of each option in the question's order, and the mean probability of each place.

    ``flips`` is the share of orders whose best option differs from that of the mean. ``measured`` is false where the
    model only names letters.
    """

    probabilities: tuple[float, ...]
    places: tuple[float, ...]
    flips: float
    measured: bool

    @property
    def best(self) -> int:
        """The most probable option; the first of equals."""
        return self.probabilities.index(max(self.probabilities))


def orders(count: int, seed: str, every: bool = False) -> Orders:
    """Orders of ``count`` options with each option equally often in each place: rotations and their reversals.

    For two and three options these are all orders. For more, ``seed`` draws the first rotation; with ``every`` and at
    most ``MOST_IN_EVERY_ORDER`` options all permutations are returned.
    """
    if every and count <= MOST_IN_EVERY_ORDER:
        return tuple(permutations(range(count)))
    first = random.Random(seed).sample(range(count), count)  # noqa: S311  (an order, not a secret)
    rotations = [tuple(first[shift:] + first[:shift]) for shift in range(count)]
    return tuple(dict.fromkeys((*rotations, *(order[::-1] for order in rotations))))


def undecided(count: int) -> Chosen:
    """No choice among ``count`` options."""
    return Chosen((1 / count,) * count, (1 / count,) * count, 0.0, True)


def listed(options: Sequence[str], order: Sequence[int]) -> str:
    """The options in ``order``, each after its letter."""
    return "\n".join(f"{letter}. {options[place]}" for letter, place in zip(LETTERS, order, strict=False))


def reasoning(chat: CountingChat, question: str, options: Sequence[str], order: Sequence[int], sample: int = 0) -> str:
    """A chain of thought, perhaps cut off; samples from 1 on are drawn with a temperature."""
    language = detect(question)
    messages = (Message("system", _REASON[language]), Message("user", f"{question}\n{listed(options, order)}"))
    return chat.complete(Request(messages, REASONING_TOKENS, None, TEMPERATURE if sample else 0.0, sample)).text


def choose(
    chat: CountingChat,
    question: str,
    options: Sequence[str],
    option_orders: Orders,
    evidence: Sequence[Evidence] = (),
    thought: str = "",
    against: str = "",
) -> Chosen:
    """The choice of ``chat`` over the ``option_orders``.

    ``thought`` is its reasoning, ``against`` the option that the evidence contradicts. Evidence that exceeds the
    context is dropped from the end, if needed all. Raise ``ModelError`` where the question alone does not fit.
    """
    language = detect(question)
    branches = [f"\n\n{listed(options, order)}\n\n{_ANSWER[language]}" for order in option_orders]
    lines = [question, shown.quoted("notes", thought, language) if thought else ""]
    lines += [_AGAINST[language].format(option=against)] if against else []
    text = "\n".join(filter(None, lines))
    passages = [shown.evidence_text((piece,), language) for piece in evidence]
    if passages:
        counts = chat.count([_CHOOSE[language], text, max(branches, key=len), *passages])
        with suppress(ModelError):  # not even the first fits
            kept = fit(counts[:3], counts[3:], TURN_TOKENS * len(options), chat.identity.context).kept
            text = "\n".join((*(passages[place] for place in kept), text))
    prefix = (Message("system", _CHOOSE[language]), Message("user", text))
    choices = chat.choose(prefix, branches, tuple(LETTERS[: len(options)]))
    by_order = [
        {place: choice.probabilities[at] for at, place in enumerate(order)}
        for order, choice in zip(option_orders, choices, strict=True)
    ]
    means = tuple(fsum(values[place] for values in by_order) / len(by_order) for place in range(len(options)))
    best = means.index(max(means))
    return Chosen(
        means,
        tuple(sum(choice.probabilities[at] for choice in choices) / len(choices) for at in range(len(options))),
        sum(max(values, key=lambda place: values[place]) != best for values in by_order) / len(by_order),
        all(choice.measured for choice in choices),
    )
