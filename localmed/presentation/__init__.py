"""Answers as readers see them: ``view`` makes one ``AnswerView``, which terminal, leaflet and pages render.

Reads ``domain``, ``messages`` and ``clinical`` only: nothing here searches, judges or decides.
"""

from __future__ import annotations

from localmed.presentation.answer import view
from localmed.presentation.views import AnswerView, PartView, Row, StatementView

__all__ = ["AnswerView", "PartView", "Row", "StatementView", "view"]
