"""What fits into a chat model's context: evidence is left out by whole passages, instructions never.

Counting is the model's (``TokenCounter``); this is the decision alone. What is left out is said in a note that goes
into the prompt and into the answer, so that neither the model nor the reader takes the evidence for all there was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localmed.domain import Message, message
from localmed.errors import ModelError

NOTE_TOKENS = 40  # the note in any tokenizer
TURN_TOKENS = 16  # a message's markup and the joints between texts that were counted apart


@dataclass(frozen=True, slots=True)
class Fitted:
    """``kept`` are the places of the passages that fit, ascending; ``note`` is None where all do."""

    kept: tuple[int, ...]
    note: Message | None = None


def fit(instructions: Sequence[int], passages: Sequence[int], reply: int, context: int) -> Fitted:
    """Which passages fit, the first ones being the most important; all numbers are tokens.

    ``instructions`` are the counts of everything that must stay. Passages are taken in order until one does not fit:
    a later one that happens to be short does not overtake it. Raise ``ModelError`` where not even one fits.
    """
    fixed = sum(instructions) + TURN_TOKENS * len(instructions) + reply
    needs = [count + TURN_TOKENS for count in passages]
    if fixed + sum(needs) <= context:
        return Fitted(tuple(range(len(needs))))
    left = context - fixed - NOTE_TOKENS
    kept = 0
    for need in needs:
        if need > left:
            break
        left -= need
        kept += 1
    if not kept:
        raise ModelError("agents.no_room", fixed=fixed, first=needs[0] if needs else 0, context=context)
    return Fitted(tuple(range(kept)), message("agents.left_out", left=len(needs) - kept, passages=len(needs)))
