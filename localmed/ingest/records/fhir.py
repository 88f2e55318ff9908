"""FHIR R4 and R4B JSON: a bundle about one patient, or a Patient alone.

Patient, Condition, MedicationRequest, MedicationStatement, AllergyIntolerance and Observation are read, and only the
fields read are validated (``_SCHEMAS``). An entry that fails its schema or has no name is left out and counted by its
type, so that a missing allergy is reported. References to two patients, or to another than the bundle's, are refused.
Other JSON is a hospital's own (``read_fields``).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from localmed.domain import message
from localmed.domain.errors import InputError
from localmed.domain.patient import Measured, PatientRecord
from localmed.ingest.records.parts import of_entries, of_prose, person_of, years
from localmed.text import measures
from localmed.text.language import clean
from localmed.text.tables import listed, table

RESOURCES = 50_000  # in one bundle; a life's has a few thousand
READ = ("Condition", "MedicationRequest", "MedicationStatement", "AllergyIntolerance", "Observation")
_OVER = frozenset({"inactive", "resolved", "remission", "refuted", "entered-in-error"})
_NOT_TAKEN = frozenset({"stopped", "completed", "cancelled", "entered-in-error", "not-taken", "on-hold", "draft"})
_VOID = frozenset({"entered-in-error", "cancelled"})
_NO_ALLERGY = ("716186003", "409137002", "no-known-allergies")  # SNOMED CT: no known allergy, no known drug allergy

# JSON Schemas of the fields read: those that FHIR requires (1..1), and their types.
_TEXT: Mapping[str, Any] = {"type": "string", "minLength": 1}
_DATE: Mapping[str, Any] = {"type": "string", "pattern": r"^\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?(T.+)?$"}
_REFERENCE: Mapping[str, Any] = {"type": "object", "properties": {"reference": _TEXT, "display": _TEXT}}
_CODING: Mapping[str, Any] = {"type": "object", "properties": {"system": _TEXT, "code": _TEXT, "display": _TEXT}}
_CODE = {"type": "object", "properties": {"text": _TEXT, "coding": {"type": "array", "items": _CODING}}}
_QUANTITY: Mapping[str, Any] = {
    "type": "object",
    "properties": {"value": {"type": "number"}, "unit": _TEXT, "code": _TEXT, "comparator": _TEXT},
}
_STATES = {"clinicalStatus": _CODE, "verificationStatus": _CODE}
_MEDICINE = {"status": _TEXT, "medicationCodeableConcept": _CODE, "medicationReference": _REFERENCE}
_VALUE = {"code": _CODE, "valueQuantity": _QUANTITY}
_MOMENT = {"effectiveDateTime": _DATE, "effectivePeriod": {"type": "object", "properties": {"start": _DATE}}}
_COMPONENTS = {"type": "array", "items": {"type": "object", "required": ["code"], "properties": _VALUE}}


def _schema(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": properties}


_SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "Patient": _schema(birthDate=_DATE, gender=_TEXT),
    "Condition": _schema("subject", subject=_REFERENCE, code=_CODE, **_STATES),
    "MedicationRequest": _schema("subject", "status", subject=_REFERENCE, **_MEDICINE),
    "MedicationStatement": _schema("subject", "status", subject=_REFERENCE, **_MEDICINE),
    "AllergyIntolerance": _schema("patient", patient=_REFERENCE, code=_CODE, **_STATES),
    "Observation": _schema("status", "code", status=_TEXT, **_VALUE, **_MOMENT, component=_COMPONENTS),
}


def read_json(text: str) -> PatientRecord:
    """The record in JSON; raise ``InputError`` if it is no record or of two patients."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        if isinstance(error, json.JSONDecodeError):
            raise InputError("record.json_broken", line=error.lineno) from None
        raise InputError("record.not_fhir") from None
    kind = value.get("resourceType") if isinstance(value, dict) else None
    if not isinstance(kind, str):
        return read_fields(value)
    if kind == "Patient":
        return _record(value, {}, [], "")
    if kind != "Bundle":
        raise InputError("record.not_fhir")
    return _bundle(value)


def _bundle(value: Mapping[str, Any]) -> PatientRecord:
    listed = value.get("entry")
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    if len(entries) > RESOURCES:
        raise InputError("record.entries", most=RESOURCES)
    resources = [(it.get("fullUrl", ""), it["resource"]) for it in entries if isinstance(it.get("resource"), dict)]
    patients = [(url, resource) for url, resource in resources if resource.get("resourceType") == "Patient"]
    if len(patients) != 1:
        raise InputError("record.two_patients" if patients else "record.not_fhir")
    others = [resource for _, resource in resources if resource.get("resourceType") in READ]
    _check_one_patient(patients[0], others)
    return _record(patients[0][1], _medicines(resources), others, str(value.get("timestamp", ""))[:10])


def _check_one_patient(patient: tuple[str, Mapping[str, Any]], others: list[dict[str, Any]]) -> None:
    url, resource = patient
    own = {f"Patient/{resource.get('id')}", f"urn:uuid:{resource.get('id')}", url}
    for other in others:
        about = other.get("patient") or other.get("subject")
        reference = about.get("reference", "") if isinstance(about, dict) else ""
        plain = str(reference).split("/_history")[0]
        if plain and plain not in own and not any(known and plain.endswith(f"/{known}") for known in own):
            raise InputError("record.two_patients")


def _medicines(resources: list[tuple[Any, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    named = [(url, resource) for url, resource in resources if resource.get("resourceType") == "Medication"]
    return {name: it for url, it in named for name in (str(url), f"Medication/{it.get('id')}")}


def _record(
    patient: Mapping[str, Any], medicines: Mapping[str, Any], others: list[dict[str, Any]], stated: str
) -> PatientRecord:
    if not _fits("Patient", patient):
        raise InputError("record.not_fhir")
    refused: Counter[str] = Counter()
    names_by_list: dict[str, list[str]] = {"problems": [], "medications": [], "allergies": []}
    results: list[Measured] = []
    says_none = False  # of allergies
    for other in others:
        kind = other["resourceType"]
        if not _fits(kind, other):
            refused[kind] += 1
        elif kind == "Observation":
            results += _measurements(other)
        elif not _is_current(other):
            continue
        elif kind == "AllergyIntolerance" and _says_none(other):
            says_none = True
        elif text := _medicine(other, medicines) if kind.startswith("Medication") else _name_of(other.get("code")):
            names_by_list[_LISTS[kind]].append(text)
        else:
            refused[kind] += 1
    kinds = tuple(f"{kind} {number}" for kind, number in sorted(refused.items()))
    as_of = stated or max((result.date for result in results), default="")
    sex = gender if (gender := patient.get("gender", "")) in ("female", "male") else ""
    return of_entries(
        names_by_list,
        results,
        [message("record.invalid_fhir", what=kinds)] if kinds else [],
        person_of(years(patient.get("birthDate", ""), as_of), sex),
        {"allergies"} if says_none else (),
        as_of,
    )


_LISTS = {
    "Condition": "problems",
    "MedicationRequest": "medications",
    "MedicationStatement": "medications",
    "AllergyIntolerance": "allergies",
}


@cache
def _validator(kind: str) -> Any:
    from jsonschema import Draft202012Validator  # a tenth of a second to import: only where there is FHIR to read

    return Draft202012Validator(_SCHEMAS[kind])


def _fits(kind: str, value: Mapping[str, Any]) -> bool:
    return bool(_validator(kind).is_valid(value))


def _is_current(resource: Mapping[str, Any]) -> bool:
    """Whether it is current: not over, refuted or stopped."""
    over = _codes(resource.get("clinicalStatus")) | _codes(resource.get("verificationStatus"))
    return not over & _OVER and resource.get("status") not in _NOT_TAKEN


def _medicine(resource: Mapping[str, Any], medicines: Mapping[str, Any]) -> str:
    """The name of a medicine: here, or in the referenced Medication."""
    reference = resource.get("medicationReference", {})
    referred = medicines.get(reference.get("reference", ""), {}).get("code")
    named = _name_of(referred) if _validator("Condition").is_valid({"subject": {}, "code": referred}) else ""
    return _name_of(resource.get("medicationCodeableConcept")) or str(reference.get("display", "")) or named


def _says_none(resource: Mapping[str, Any]) -> bool:
    code = resource.get("code")
    return bool(_codes(code) & set(_NO_ALLERGY)) or _name_of(code).lower().startswith("no known")


def _measurements(resource: Mapping[str, Any]) -> Iterator[Measured]:
    """The values of an observation and of its components (a blood pressure has two)."""
    if resource["status"] in _VOID:
        return
    date = str(resource.get("effectiveDateTime") or resource.get("effectivePeriod", {}).get("start", ""))[:10]
    for part in (resource, *resource.get("component", ())):
        quantity = part.get("valueQuantity", {})
        if "value" not in quantity or "comparator" in quantity:
            continue
        codings = part["code"].get("coding", ())
        loinc = next((one["code"] for one in codings if one.get("system") == "http://loinc.org" and "code" in one), "")
        unit = quantity.get("unit") or quantity.get("code") or ""
        if result := measures.coded(_name_of(part["code"]), loinc, float(quantity["value"]), unit, date):
            yield result


def _name_of(code: Mapping[str, Any] | None) -> str:
    names = (code.get("text"), *(one.get("display") for one in code.get("coding", ()))) if code else ()
    return next((str(name) for name in names if name), "")


def _codes(code: Mapping[str, Any] | None) -> set[str]:
    return {one["code"] for one in code.get("coding", ()) if "code" in one} if code else set()


# --- JSON of a hospital's own -----------------------------------------------------------------------------------------

# Each known field (``fields`` of ``text/records.toml``) at any depth becomes a headed line of prose. Two different
# ages, sexes or names mean two patients.
FIELD_CHARACTERS = 20_000  # of one field; a history has some hundreds
DEPTH = 20  # levels of nesting


def _kinds(section: str) -> dict[str, str]:
    return {name: kind for kind, names in table("records")["fields"][section].items() for name in listed(names)}


def read_fields(value: Any) -> PatientRecord:
    """The record in ``value``; raise ``InputError`` if it has no field of a record, or two patients' fields."""
    kinds, headings = _kinds("identity"), _kinds("headed")
    identity: dict[str, str] = {}
    lines: list[str] = []
    for name, text in _fields(value, 0):
        if (kind := kinds.get(name)) and text.strip():
            if identity.setdefault(kind, text.strip()) != text.strip():
                raise InputError("record.two_patients")
        elif (heading := headings.get(name)) and text.strip():
            lines.append(f"{heading}：{clean(text)[:FIELD_CHARACTERS]}")
    if not lines:
        raise InputError("record.not_fhir")
    person = [f"{label}：{identity[kind]}" for kind, label in (("age", "年龄"), ("sex", "性别")) if kind in identity]
    return of_prose("\n".join(dict.fromkeys((*person, *lines))))


def _fields(value: Any, depth: int) -> Iterator[tuple[str, str]]:
    if depth > DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from _fields(item, depth + 1)
    elif isinstance(value, dict):
        for name, item in value.items():
            if isinstance(item, (str, int, float)) and not isinstance(item, bool):
                yield name, str(item)
            else:
                yield from _fields(item, depth + 1)
