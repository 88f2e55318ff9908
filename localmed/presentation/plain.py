"""An answer as text to paste elsewhere."""

from __future__ import annotations

from localmed.presentation.views import AnswerView


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
