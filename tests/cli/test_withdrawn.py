"""A kept answer or a recording that cites a withdrawn document names it, the day and the reason."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from tests.cli.conftest import Localmed

DOSE = "What is the maximum dose of paracetamol in adults?"


def test_a_replay_names_what_was_withdrawn_since(copied: Localmed, tmp_path: Path) -> None:
    recording = tmp_path / "recording.json"
    answer = copied.ok("ask", DOSE, "--json", "--record", str(recording)).json
    document = copied.id_of("Paracetamol")
    copied.ok("documents", "withdraw", document, "--reason", "recalled")
    replayed = copied.ok("replay", str(recording), "--json").json
    (note,) = (note for note in replayed["notes"] if note not in answer["notes"])
    assert note["text"] == f"Paracetamol was withdrawn on {day_of_now()}: recalled"
    assert "was withdrawn on" in copied.ok("replay", str(recording)).out
    copied.ok("documents", "reinstate", document, "--reason", "checked")
    assert copied.ok("replay", str(recording), "--json").json["notes"] == answer["notes"]


def day_of_now() -> str:
    """As the ledger dates its lines."""
    return datetime.now(UTC).date().isoformat()


def test_an_altered_recording_shows_nothing_of_it(copied: Localmed, tmp_path: Path) -> None:
    recording = tmp_path / "recording.json"
    copied.ok("ask", DOSE, "--record", str(recording))
    values = json.loads(recording.read_text("utf-8"))
    values["steps"] = json.loads(json.dumps(values["steps"]).replace(" 4 g", " 9 g"))
    recording.write_text(json.dumps(values), "utf-8")
    ran = copied("replay", str(recording))
    assert (ran.code, "9 g" in ran.out) == (3, False)
