"""``localmed audit``: verify with and without a head, head, export in three forms, erase."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.cli.conftest import Localmed
from tests.words import phrase

# The elements of FHIR R4's AuditEvent that an export may have, and those that R4 requires.
_CODING = {
    "type": "object",
    "required": ["system", "code"],
    "additionalProperties": False,
    "properties": {"system": {"type": "string", "pattern": "^http"}, "code": {"type": "string", "minLength": 1}},
}
_CONCEPT = {"type": "object", "required": ["coding"], "properties": {"coding": {"type": "array", "items": _CODING}}}
AUDIT_EVENT = {
    "type": "object",
    "required": ["resourceType", "type", "recorded", "agent", "source"],
    "additionalProperties": False,
    "properties": {
        "resourceType": {"const": "AuditEvent"},
        "id": {"type": "string", "pattern": r"^[A-Za-z0-9\-.]{1,64}$"},
        "meta": {"type": "object", "required": ["profile"]},
        "type": _CODING,
        "subtype": {"type": "array", "items": _CODING, "minItems": 1},
        "action": {"enum": ["C", "R", "U", "D", "E"]},
        "recorded": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$"},
        "outcome": {"enum": ["0", "4", "8", "12"]},
        "outcomeDesc": {"type": "string"},
        "agent": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["requestor"],
                "additionalProperties": False,
                "properties": {
                    "type": _CONCEPT,
                    "who": {"type": "object"},
                    "requestor": {"type": "boolean"},
                    "network": {
                        "type": "object",
                        "additionalProperties": False,
                        "properties": {"address": {"type": "string"}, "type": {"enum": ["1", "2", "3", "4", "5"]}},
                    },
                },
            },
        },
        "source": {
            "type": "object",
            "required": ["observer"],
            "additionalProperties": False,
            "properties": {"observer": {"type": "object"}, "type": {"type": "array", "items": _CODING}},
        },
        "entity": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "what": {"type": "object"},
                    "type": _CODING,
                    "role": _CODING,
                    "detail": {"type": "array", "items": {"required": ["type", "valueString"]}},
                },
            },
        },
    },
}


@pytest.mark.slow
def test_what_was_done_to_the_log_is_told(copied: Localmed, tmp_path: Path) -> None:
    head = tmp_path / "head"
    head.write_text(copied("audit", "head").out)
    assert copied("audit", "verify", "--head", str(head)).code == 0
    with closing(sqlite3.connect(copied.data / "site.sqlite", isolation_level=None)) as database:
        database.execute("DELETE FROM journal WHERE id = (SELECT max(id) FROM journal)")
    assert copied("audit", "verify").code == 0, "nothing shows it"
    cut = copied("audit", "verify", "--head", str(head))
    assert cut.code == 5
    assert "the log was cut off or replaced" in cut.out
    head.write_text("something else")
    assert copied("audit", "verify", "--head", str(head)).code == 3


def test_a_log_that_lost_its_beginning_or_what_manifests_know_is_not_called_whole(copied: Localmed) -> None:
    copied("ask", "What is the dose of paracetamol?")
    copied.ok("reindex", "--again")
    with closing(sqlite3.connect(copied.data / "site.sqlite", isolation_level=None)) as database:
        database.execute("DELETE FROM journal WHERE id > 1")
    assert "lacks entries" in copied("audit", "verify").out
    for file in copied.data.glob("site.sqlite*"):
        file.unlink()
    copied("search", "paracetamol").failed(5)
    copied.ok("repair", "--yes")
    copied.ok("search", "paracetamol")
    anew = copied("audit", "verify")
    assert anew.code == 5
    assert phrase("doctor.audit_anew") in anew.out


def test_entries_are_exported(copied: Localmed) -> None:
    copied("ask", "What is the dose of paracetamol?")
    plain = [json.loads(line) for line in copied("audit", "export").out.splitlines()]
    assert plain[-1]["action"] == "ask"
    assert "salt" not in plain[-1]
    assert "paracetamol" not in json.dumps(plain).casefold()
    syslog = copied("audit", "export", "--as", "syslog", "--after", str(plain[-2]["number"])).out.splitlines()
    assert len(syslog) == 1
    assert syslog[0].startswith("<110>1 ")
    events = [json.loads(line) for line in copied("audit", "export", "--as", "fhir").out.splitlines()]
    assert len(events) == len(plain)
    for event in events:
        Draft202012Validator(AUDIT_EVENT).validate(event)
    read = events[-1]
    assert read["meta"]["profile"] == ["https://profiles.ihe.net/ITI/BALP/StructureDefinition/IHE.BasicAudit.Read"]
    assert (read["action"], read["subtype"][0]["code"]) == ("R", "read")
    assert read["entity"][0]["what"]["identifier"]["value"].startswith("generation ")


def test_a_person_is_erased(copied: Localmed) -> None:
    actor = json.loads(copied("audit", "export").out.splitlines()[-1])["actor"]
    erased = copied("audit", "erase", actor, "--yes")
    assert erased.code == 0, erased
    assert copied("audit", "verify").code == 0
    assert copied("doctor").code in (0, 5)


@pytest.mark.parametrize("form", ["xml", ""])
def test_other_forms_are_refused(copied: Localmed, form: str) -> None:
    assert copied("audit", "export", "--as", form).code == 2
