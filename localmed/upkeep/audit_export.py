"""Audit log entries for other systems: FHIR R4 AuditEvents, syslog lines (RFC 5424), plain values.

AuditEvents follow IHE's Basic Audit Log Patterns (BALP): Create, Update, Delete and Read of data that is no patient
record. An answer is a Read of the library generation, because the log never has the question that the Query pattern
requires. Entries other than plain successes claim no profile. Browser addresses are not stored ("not recorded").

Not covered: conformance was checked against the base resource only, not by the profiles' validator.
"""

from __future__ import annotations

import json
import socket
from dataclasses import asdict
from typing import Any

from localmed.library.journal import Entry
from localmed.site.audit import BEGUN

PROFILE = "https://profiles.ihe.net/ITI/BALP/StructureDefinition/IHE.BasicAudit."
FACILITY, SEVERITY = 13, 6  # RFC 5424: log audit, informational
_TYPES = "http://terminology.hl7.org/CodeSystem/"
_DICOM = "http://dicom.nema.org/resources/ontology/DCM"
_INTERACTIONS = "http://hl7.org/fhir/restful-interaction"
SOURCE, DESTINATION = "110153", "110152"  # DICOM roles: where data comes from, where it goes
_DELETES = ("delete", "remove", "prune", "erase")
_CREATES = ("create", "add", "import")
_UPDATES = ("collection", "mark", "govern", "access", "withdraw", "reinstate", "rollback", "confirm", "upgrade",
            "reindex", "update", "change", "use", "password", "stop", "lift")  # fmt: skip


def as_values(number: int, entry: Entry) -> dict[str, Any]:
    """Return the entry's values without its salt."""
    return {"number": number, **{name: value for name, value in asdict(entry).items() if value and name != "salt"}}


def as_syslog(number: int, entry: Entry) -> str:
    """Return one line of syslog; its message is JSON."""
    time = entry.time.replace("+00:00", "Z")
    values = json.dumps(as_values(number, entry), ensure_ascii=True)
    return f"<{FACILITY * 8 + SEVERITY}>1 {time} {socket.gethostname()} localmed - audit - {values}"


def as_fhir(number: int, entry: Entry) -> dict[str, Any]:
    """Return the entry as an AuditEvent."""
    interaction = _interaction(entry)
    failed = entry.outcome.startswith("failed: ")
    if entry.action == "login":
        kind, subtype, action = _coding(_DICOM, "110114"), _coding(_DICOM, "110122"), "E"
    else:
        kind, subtype = _coding(f"{_TYPES}audit-event-type", "rest"), _coding(_INTERACTIONS, interaction)
        action = {"create": "C", "read": "R", "update": "U", "delete": "D"}[interaction]
    whole = entry.action != "login" and not failed and entry.outcome != BEGUN and not entry.erased
    return {
        "resourceType": "AuditEvent",
        "id": f"localmed-{number}",
        **({"meta": {"profile": [f"{PROFILE}{interaction.capitalize()}"]}} if whole else {}),
        "type": kind,
        "subtype": [subtype],
        "action": action,
        "recorded": entry.time,
        "outcome": "8" if failed else "0",
        "outcomeDesc": entry.outcome,
        "agent": _agents(entry, interaction),
        "source": {"observer": {"display": "localmed"}, "type": [_coding(f"{_TYPES}security-source-type", "4")]},
        "entity": [_entity(entry, interaction)],
    }


def _interaction(entry: Entry) -> str:
    names = entry.action.split()
    for interaction, verbs in (("delete", _DELETES), ("create", _CREATES), ("update", _UPDATES)):
        if any(name in verbs for name in names):
            return interaction
    return "read"


def _coding(system: str, code: str) -> dict[str, str]:
    return {"system": system, "code": code}


def _agents(entry: Entry, interaction: str) -> list[dict[str, Any]]:
    roles = (DESTINATION, SOURCE) if interaction == "read" else (SOURCE, DESTINATION)  # of the client, of the server
    participation = "IRCP" if interaction == "read" else "AUT"
    kind = _coding(f"{_TYPES}v3-ParticipationType", participation)
    user = {"type": {"coding": [kind]}, "who": {"identifier": {"value": entry.actor or "erased"}}, "requestor": True}
    places = zip(("client", "server"), roles, ("not recorded", socket.gethostname()), strict=True)
    machines = [
        {"type": {"coding": [_coding(_DICOM, role)]}, "who": {"display": f"localmed {part}"}, "requestor": False,
         "network": {"address": address, "type": "1"}}
        for part, role, address in places
    ]  # fmt: skip
    return [user, *machines]


def _entity(entry: Entry, interaction: str) -> dict[str, Any]:
    generation = f"generation {entry.generation}" if interaction == "read" and entry.generation else ""
    details = [("action", entry.action), ("generation", entry.generation), *entry.models, *entry.prompts]
    return {
        "what": {"identifier": {"value": generation or entry.subject or "erased"}},
        "type": _coding(f"{_TYPES}audit-entity-type", "2"),
        "role": _coding(f"{_TYPES}object-role", "4"),
        "detail": [{"type": name, "valueString": value} for name, value in details if value],
    }
