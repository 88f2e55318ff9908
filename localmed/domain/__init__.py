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
    from localmed.domain.answers import Answer as Answer
    from localmed.domain.answers import AnswerStatus as AnswerStatus
    from localmed.domain.answers import Badge as Badge
    from localmed.domain.answers import BadgeJudge as BadgeJudge
    from localmed.domain.answers import Conflict as Conflict
    from localmed.domain.answers import ConflictKind as ConflictKind
    from localmed.domain.answers import Provenance as Provenance
    from localmed.domain.answers import Receipts as Receipts
    from localmed.domain.answers import ShownLine as ShownLine
    from localmed.domain.answers import ShownSection as ShownSection
    from localmed.domain.answers import TraceStep as TraceStep
    from localmed.domain.answers import Verification as Verification
    from localmed.domain.parts import Part as Part
    from localmed.domain.sources import ID_LENGTH as ID_LENGTH
    from localmed.domain.sources import STATED as STATED
    from localmed.domain.sources import AnswerSection as AnswerSection
    from localmed.domain.sources import Box as Box
    from localmed.domain.sources import Citation as Citation
    from localmed.domain.sources import Collection as Collection
    from localmed.domain.sources import Document as Document
    from localmed.domain.sources import Evidence as Evidence
    from localmed.domain.sources import Governance as Governance
    from localmed.domain.sources import Hit as Hit
    from localmed.domain.sources import Kind as Kind
    from localmed.domain.sources import Origin as Origin
    from localmed.domain.sources import Passage as Passage
    from localmed.domain.sources import SearchFilter as SearchFilter
    from localmed.domain.sources import Span as Span
    from localmed.domain.sources import Statement as Statement
    from localmed.domain.sources import Status as Status
    from localmed.domain.sources import Support as Support
    from localmed.domain.sources import Verdict as Verdict
    from localmed.domain.sources import digest as digest
    from localmed.domain.sources import is_date as is_date


def __getattr__(name: str) -> Any:
    """The other values, imported at the first use of one: errors and ``localmed --help`` need messages alone."""
    for module in ("sources", "parts", "answers"):
        names = vars(import_module(f"{__name__}.{module}"))
        if name in names:
            return globals().setdefault(name, names[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
