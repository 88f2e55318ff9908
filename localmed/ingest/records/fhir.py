"""FHIR R4 and R4B JSON, read by ``fhir.resources``: a bundle about one patient, or a Patient alone.

Taken are Patient, Condition, MedicationRequest, MedicationStatement, AllergyIntolerance and Observation. An entry that
the library's models refuse is left out and counted by its type, so that a missing allergy is told. References to two
patients, or to another than the bundle's, are refused. Other JSON is a
hospital's own (``read_fields``).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from localmed.clinical import measures
from localmed.clinical.tables import listed, table
from localmed.domain import message
from localmed.domain.patient import Measured, PatientRecord
from localmed.errors import InputError
from localmed.ingest.records.parts import entries, newest, struck, with_coded_entries, years
from localmed.ingest.records.text import from_prose
from localmed.language import clean

RESOURCES = 50_000  # in one bundle; a life's has a few thousand
READ = ("Condition", "MedicationRequest", "MedicationStatement", "AllergyIntolerance", "Observation")
_OVER = frozenset({"inactive", "resolved", "remission", "refuted", "entered-in-error"})
_NOT_TAKEN = frozenset({"stopped", "completed", "cancelled", "entered-in-error", "not-taken", "on-hold", "draft"})
_VOID = frozenset({"entered-in-error", "cancelled"})
_NO_ALLERGY = ("716186003", "409137002", "no-known-allergies")  # SNOMED CT: no known allergy, no known drug allergy


def read_json(text: str) -> PatientRecord:
    """The record in JSON; raise ``InputError`` for what is no record or of two patients."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        if isinstance(error, json.JSONDecodeError):
            raise InputError("record.json_broken", line=error.lineno) from None
        raise InputError("record.no_json") from None
    kind = value.get("resourceType") if isinstance(value, dict) else None
    if not isinstance(kind, str):
        return read_fields(value)
    if kind == "Patient":
        return _record(value, {}, [], "")
    if kind != "Bundle":
        raise InputError("record.other_resource")
    return _bundle(value)


def _bundle(value: Mapping[str, Any]) -> PatientRecord:
    listed = value.get("entry")
    listed_entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    if len(listed_entries) > RESOURCES:
        raise InputError("record.entries", most=RESOURCES)
    resources = [
        (entry.get("fullUrl", ""), entry["resource"])
        for entry in listed_entries
        if isinstance(entry.get("resource"), dict)
    ]
    patients = [(url, resource) for url, resource in resources if resource.get("resourceType") == "Patient"]
    if len(patients) != 1:
        raise InputError("record.two_patients" if patients else "record.bundle_no_patient")
    others = [resource for _, resource in resources if resource.get("resourceType") in READ]
    _about_one(patients[0], others)
    medicines = {f"{kind}{name}": resource for kind, name, resource in _medicines(resources)}
    return _record(patients[0][1], medicines, others, str(value.get("timestamp", ""))[:10])


def _about_one(patient: tuple[str, Mapping[str, Any]], others: list[dict[str, Any]]) -> None:
    """Raise ``InputError`` where an entry is about somebody else."""
    url, resource = patient
    own = {f"Patient/{resource.get('id')}", f"urn:uuid:{resource.get('id')}", url}
    for other in others:
        about = other.get("patient") or other.get("subject")
        reference = about.get("reference", "") if isinstance(about, dict) else ""
        plain = str(reference).split("/_history")[0]
        if plain and plain not in own and not any(known and plain.endswith(f"/{known}") for known in own):
            raise InputError("record.two_patients")


def _medicines(resources: list[tuple[Any, dict[str, Any]]]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The Medication resources by the references that may point at them."""
    for url, resource in resources:
        if resource.get("resourceType") == "Medication":
            yield "", str(url), resource
            yield "Medication/", str(resource.get("id")), resource


def _record(
    patient: Mapping[str, Any], medicines: Mapping[str, Any], others: list[dict[str, Any]], stated: str
) -> PatientRecord:
    models = _models()
    person = _valid(models["Patient"], patient)
    if person is None:
        raise InputError("record.patient_invalid")
    refused: Counter[str] = Counter()
    names_by_list: dict[str, list[str]] = {"problems": [], "medications": [], "allergies": []}
    results: list[Measured] = []
    none_of = set()
    for other in others:
        kind = other["resourceType"]
        resource = _valid(models[kind], other)
        if resource is None:
            refused[kind] += 1
        elif kind == "Observation":
            results += _observed(resource)
        elif kind == "AllergyIntolerance" and _says_none(resource):
            none_of.add("allergies")
        else:
            name, text = _LISTS[kind](resource, medicines)
            names_by_list[name] += [text] if text else []
    lists, notes = (
        {},
        [message("record.invalid_fhir", what=tuple(f"{kind} {n}" for kind, n in sorted(refused.items())))]
        if refused
        else [],
    )
    for name, names in names_by_list.items():
        lists[name], note = entries(names, name)
        notes += note
    latest, remarks = newest(results)
    as_of = stated or max((result.date for result in results), default="")
    born = person.birthDate.isoformat() if person.birthDate else ""
    record = PatientRecord(
        problems=lists["problems"],
        medications=lists["medications"],
        allergies=lists["allergies"],
        age=years(born, as_of),
        sex=person.gender if person.gender in ("female", "male") else "",
        pregnant=True if any("pregnan" in problem.lower() for problem in lists["problems"]) else None,
        none_of=frozenset(none_of - {"allergies"} if lists["allergies"] else none_of),
        results=latest,
        as_of=as_of,
        notes=(*notes, *remarks),
    )
    return with_coded_entries(record)


def _models() -> dict[str, Any]:
    """The library's models: half a second to import, so only where there is FHIR to read."""
    from fhir.resources.R4B import get_fhir_model_class

    return {name: get_fhir_model_class(name) for name in ("Patient", *READ)}


def _valid(model: Any, value: Mapping[str, Any]) -> Any:
    """The resource, ``None`` where the library refuses it; its message holds the record's text and goes nowhere."""
    try:
        return model.model_validate(value)
    except (ValueError, TypeError, RecursionError):
        return None


def _problem(resource: Any, _: Mapping[str, Any]) -> tuple[str, str]:
    over = _codes(resource.clinicalStatus) | _codes(resource.verificationStatus)
    return "problems", "" if over & _OVER else _called(resource.code)


def _medication(resource: Any, medicines: Mapping[str, Any]) -> tuple[str, str]:
    if resource.status in _NOT_TAKEN:
        return "medications", ""
    reference = resource.medicationReference
    if resource.medicationCodeableConcept is not None or reference is None:
        return "medications", _called(resource.medicationCodeableConcept)
    code = medicines.get(reference.reference or "", {}).get("code")
    coding = (code.get("coding") or [{}])[0] if isinstance(code, dict) else {}
    named = code.get("text") or coding.get("display", "") if isinstance(code, dict) else ""
    return "medications", reference.display or str(named)


def _allergy(resource: Any, _: Mapping[str, Any]) -> tuple[str, str]:
    over = _codes(resource.clinicalStatus) | _codes(resource.verificationStatus)
    return "allergies", "" if over & _OVER else _called(resource.code)


_LISTS = {
    "Condition": _problem,
    "MedicationRequest": _medication,
    "MedicationStatement": _medication,
    "AllergyIntolerance": _allergy,
}


def _says_none(resource: Any) -> bool:
    return bool(_codes(resource.code) & set(_NO_ALLERGY)) or _called(resource.code).lower().startswith("no known")


def _observed(resource: Any) -> Iterator[Measured]:
    """The values of an observation and of its components (a blood pressure has two)."""
    if resource.status in _VOID:
        return
    moment = resource.effectiveDateTime or getattr(resource.effectivePeriod, "start", None)
    date = moment.isoformat()[:10] if moment else ""
    for part in (resource, *(resource.component or ())):
        quantity = part.valueQuantity
        if quantity is None or quantity.value is None or quantity.comparator:
            continue
        codings = part.code.coding or ()
        loinc = next((coding.code for coding in codings if coding.system == "http://loinc.org" and coding.code), "")
        unit = quantity.unit or quantity.code or ""
        if result := measures.coded(_called(part.code), loinc, float(quantity.value), unit, date):
            yield result


def _called(code: Any) -> str:
    """What a coded concept is called."""
    if code is None:
        return ""
    names = (code.text, *(coding.display for coding in code.coding or ()))
    return next((name for name in names if name), "")


def _codes(code: Any) -> set[str]:
    return {coding.code for coding in code.coding or () if coding.code} if code is not None else set()


# --- JSON of a hospital's own -----------------------------------------------------------------------------------------

# Each known field (``fields`` of ``clinical/records.toml``), wherever it stands, becomes a headed line of prose. A
# field that holds another age, sex or name at a second place means a second patient.
FIELD_CHARACTERS = 20_000  # of one field; a history has some hundreds
DEPTH = 20  # levels of nesting


def _kinds(section: str) -> dict[str, str]:
    """What each field of a section of the table holds."""
    return {name: kind for kind, names in table("records")["fields"][section].items() for name in listed(names)}


def read_fields(value: Any) -> PatientRecord:
    """The record in ``value``; raise ``InputError`` where no field of a record is found, or two patients' are."""
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
        raise InputError("record.no_field")
    record = from_prose(struck("\n".join(dict.fromkeys(lines))))
    person = from_prose(f"年龄：{identity.get('age', '')}\n性别：{identity.get('sex', '')}")
    return replace(record, age=person.age if "age" in identity else record.age, sex=person.sex or record.sex)


def _fields(value: Any, depth: int) -> Iterator[tuple[str, str]]:
    """Every field that holds text or a number, with its name, in order."""
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
