"""Altered statements and statements that a source says (``tests/verification/altered.py``), judged without a model.

Written by hand in English and Chinese, on subjects that the starter corpus has and lacks. One half served development;
the figures of the other half were looked at once, when nothing was changed any more.
"""

from __future__ import annotations

from localmed.models.e5 import E5
from localmed.verification.likeness import LikenessOnly
from tests.benchmarks.common import Place, Row, met
from tests.verification.altered import HALVES, Rates, cases, checked, rates, second_author, weighed

MOST = 0.02  # of altered statements called supported


def run(place: Place) -> list[Row]:
    """Two rows a set: as a sentence that cites its source, and as a claim that M-Eval holds against a study."""
    del place
    judge = LikenessOnly(E5(), E5)
    rows = []
    for half in HALVES:
        pairs = cases(half)
        rows.append(_row(f"cited sentences, {half} half", rates(pairs, checked(pairs, judge))))
        rows.append(_row(f"claims of M-Eval, {half} half", rates(pairs, weighed(pairs, judge))))
    pairs = second_author()
    rows.append(_row("cited sentences, second author", rates(pairs, checked(pairs, judge))))
    rows.append(_row("claims of M-Eval, second author", rates(pairs, weighed(pairs, judge))))
    return rows


def _row(what: str, count: Rates) -> Row:
    measured = (
        f"altered: {count.altered_supported} of {count.altered} called supported, {count.altered_contradicted} "
        f"contradicted; said by the source: {count.entailed_contradicted} of {count.entailed} called contradicted, "
        f"{count.entailed_unsupported} not supported, {count.entailed_supported} supported"
    )
    fine = count.altered_supported <= MOST * count.altered and not count.entailed_contradicted
    target = f"altered called supported <= {MOST:.0%}; said by the source called contradicted 0"
    return Row(f"altered statements, {what}, starter", target, measured, met(fine), "all else is not judged")
