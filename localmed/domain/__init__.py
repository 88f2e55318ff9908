"""The values that all parts of localmed share: frozen, standard library only. Start reading here.

A *document* belongs to one *collection* and is cut into *passages*. A search returns *hits*; hits used by an answer
become *evidence*, each with a marker. An *answer* is a list of *statements*, each with *citations* of the evidence.
"Nothing found" and "abstained" are values of ``Answer.status``, never ``None`` and never an uncited string.

Dates are ISO strings (``2024-05-01``, ``2024-05`` or ``2024``), which sort as text. Text offsets count Unicode
characters, ends exclusive. Boxes are in PDF points (1/72 inch), origin top left, on 1-based pages.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from localmed.domain.messages import Message as Message
from localmed.domain.messages import Parameter as Parameter
from localmed.domain.messages import message as message
from localmed.domain.messages import number_to_call as number_to_call

if TYPE_CHECKING:
    from localmed.domain.answers import *  # noqa: F403
    from localmed.domain.parts import *  # noqa: F403
    from localmed.domain.sources import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Import the other values at first use: errors and ``localmed --help`` need messages alone."""
    for module in ("sources", "parts", "answers"):
        names = vars(import_module(f"{__name__}.{module}"))
        if name in names:
            return globals().setdefault(name, names[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
