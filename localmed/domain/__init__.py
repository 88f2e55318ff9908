"""The values that every part of localmed passes around: frozen, standard library only.

A reader of the code starts here. A *document* belongs to one *collection* and is cut into *passages*; a search
returns *hits*; the hits an answer uses become *evidence*, each with a marker minted here and nowhere else; an *answer*
is a list of *statements*, each with *citations* that point into evidence. "Nothing found" and "abstained" are values
of ``Answer.status``, never ``None`` and never an uncited string.

Dates are ISO strings (``2024-05-01``, or ``2024-05`` and ``2024`` where no more is known), so that they sort and
compare as text. Text offsets count Unicode characters, ends exclusive. Boxes are PDF points (1/72 inch), origin top
left, on 1-based pages.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from localmed.domain.messages import Message as Message
from localmed.domain.messages import Parameter as Parameter
from localmed.domain.messages import message as message

if TYPE_CHECKING:
    from localmed.domain.answers import *  # noqa: F403
    from localmed.domain.parts import *  # noqa: F403
    from localmed.domain.sources import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """The other values, imported at the first use of one: errors and ``localmed --help`` need messages alone."""
    for module in ("sources", "parts", "answers"):
        names = vars(import_module(f"{__name__}.{module}"))
        if name in names:
            return globals().setdefault(name, names[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
