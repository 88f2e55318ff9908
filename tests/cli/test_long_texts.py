"""Texts that a rule might read in more than linear time; all of them: ``tests/benchmarks/adversarial.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.adversarial import measured
from tests.cli.conftest import Localmed

CHARACTERS = 15_000
ROOM = 1.0  # seconds: of what does not depend on the text


@pytest.mark.slow
@pytest.mark.parametrize("workflow", ["ask", "explain", "explain --question", "ebm --patient", "verify"])
@pytest.mark.parametrize("name", ["a Chinese term again and again", "decimal points", "quotation marks"])
def test_four_times_the_text_takes_no_sixteen_times_the_processor(
    copied: Localmed, tmp_path: Path, workflow: str, name: str
) -> None:
    copied.ok("models", "use", "reranker", "none")
    (tmp_path / "order").write_text("Tab. Metformin 500 mg po bid pc\n", "utf-8")
    measured(copied, tmp_path, workflow, name, 100)  # loads what is loaded once
    once, four_times = (measured(copied, tmp_path, workflow, name, CHARACTERS * times) for times in (1, 4))
    assert once.code != 1
    assert four_times.processor < 8 * once.processor + ROOM
