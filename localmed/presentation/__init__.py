"""Answers as readers see them: ``answer.view`` makes one ``AnswerView``, which terminal, leaflet and pages render.

Reads ``domain``, ``messages`` and ``clinical`` only: nothing here searches, judges or decides.
"""
