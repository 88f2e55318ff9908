"""An answer's sentences as a ward reads them: bottom line, doses and conditions, cautions, gaps.

The order is by rule and changes no word: the bottom line is what the leading source says, the sentences at the
beginning that cite the passage of the first one, since which of them answers best no rule can tell; of the others those
that forbid, stop, warn or say to act at once (the table ``negation``) are cautions. A caution that no cue names stands
among the details: nothing is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from localmed.clinical.negation import warns
from localmed.presentation.views import AnswerView, StatementView


@dataclass(frozen=True, slots=True)
class ArrangedView:
    """The sentences of an answer in the order of a ward."""

    bottom_line: tuple[StatementView, ...]
    details: tuple[StatementView, ...]
    cautions: tuple[StatementView, ...]
    withheld: tuple[StatementView, ...]


def arranged(view: AnswerView) -> ArrangedView:
    """The sentences of ``view``, each once."""
    shown = [statement for statement in view.statements if not statement.withheld]
    leading = list(takewhile(lambda statement: statement.markers[:1] == shown[0].markers[:1], shown))
    rest = shown[len(leading) :]
    cautions = [statement for statement in rest if warns(statement.text)]
    return ArrangedView(
        tuple(leading),
        tuple(statement for statement in rest if statement not in cautions),
        tuple(cautions),
        tuple(statement for statement in view.statements if statement.withheld),
    )


def plain(view: AnswerView) -> str:
    """``view`` as text to paste elsewhere: the sentences with their markers, then the sources they open."""
    lines = [view.headline] if view.headline else []
    for statement in view.statements:
        marks = "".join(f"[{marker}]" for marker in statement.markers)
        lines.append(statement.withheld or " ".join(filter(None, (statement.text, marks, statement.warning))))
    lines += ["", view.sources_title] if view.sources else []
    lines += [
        f"[{source.marker}] {' · '.join((source.title, *source.details, *source.warnings))}" for source in view.sources
    ]
    return "\n".join((*lines, "", view.purpose)).strip()
