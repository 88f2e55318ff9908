"""The badge as it is printed."""

from __future__ import annotations

import pytest

from localmed.cli.showing_badge import show_badge
from localmed.domain import Badge, Verification


@pytest.mark.parametrize(
    ("judge", "printed"),
    [("rules", "rules"), ("rules (not validated here)", "rules (not validated here)")],
)
def test_a_judge_of_whom_nothing_is_known_has_no_empty_brackets(
    judge: str, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = Verification(1, 0, badge=Badge.RED, badge_before=Badge.RED, badge_judge=judge, reason="r")
    show_badge(found, "en")
    assert f"Judged by: {printed}. " in capsys.readouterr().out
