"""C-CDA documents (HL7 CDA R2): age and sex of the header; problems, medications, allergies, results, vital signs.

Coded entries are read; a section without any is read as prose. An entry's name is its code's, else the narrative that
it references. Entries that ended by the document's date are left out. Document type declarations, entities and
external references are refused.

The library ``ccda-to-fhir`` 0.3 is not used: it refused each of six documents because of one observation, and quoted
the patient's text in the error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from localmed.domain.errors import InputError
from localmed.domain.patient import Measured, PatientRecord
from localmed.ingest.records.parts import of_entries, person_of, years
from localmed.text import measures

NS = "{urn:hl7-org:v3}"
_SECTIONS = {  # LOINC code -> what it holds
    "11450-4": "problems",
    "10160-0": "medications",
    "29549-3": "medications",
    "48765-2": "allergies",
    "30954-2": "results",
    "8716-3": "results",
}
_SEXES = {"F": "female", "M": "male"}


def read_ccda(data: bytes) -> PatientRecord:
    """The record in a C-CDA document; raise ``InputError`` for other XML, two patients, or unsafe XML."""
    root = _parsed(data)
    if root.tag != f"{NS}ClinicalDocument":
        raise InputError("record.no_ccda")
    targets = root.findall(_path("recordTarget/patientRole/patient"))
    if len(targets) != 1:
        raise InputError("record.two_patients" if targets else "record.no_ccda")
    as_of = _date(root.find(_path("effectiveTime")))
    names_by_list: dict[str, list[str]] = {"problems": [], "medications": [], "allergies": []}
    none_of: set[str] = set()
    results: list[Measured] = []
    for name, section in _sections(root):
        if name == "results":
            results += _results(section)
        elif name == "allergies":
            allergies, denied = _allergies(section, as_of)
            names_by_list[name] += allergies
            none_of |= {name} if denied and not allergies else set()
        else:
            names_by_list[name] += (_problems if name == "problems" else _medications)(section, as_of)
    patient = targets[0]
    age = years(_date(patient.find(_path("birthTime"))), as_of)
    sex = _SEXES.get(_attribute(patient.find(_path("administrativeGenderCode")), "code"), "")
    return of_entries(names_by_list, results, person=person_of(age, sex), none_of=none_of, as_of=as_of)


def _parsed(data: bytes) -> Element:
    try:
        root: Element = fromstring(data, forbid_dtd=True, forbid_entities=True, forbid_external=True)
    except ParseError as error:
        line, column = error.position
        raise InputError("record.xml_broken", line=line, column=column) from None
    except DefusedXmlException as error:
        raise InputError("record.xml_refused", kind=type(error).__name__) from None
    except (LookupError, ValueError) as error:  # its encoding
        raise InputError("record.encoding", kind=type(error).__name__) from None
    return root


def _sections(root: Element) -> Iterator[tuple[str, Element]]:
    for section in root.iter(f"{NS}section"):
        name = _SECTIONS.get(_attribute(section.find(_path("code")), "code"))
        if name:
            yield name, section


def _problems(section: Element, as_of: str) -> list[str]:
    narrative = _narrative(section)
    names = []
    for entry in section.findall(_path("entry")):
        concern = entry.find(_path("act"))
        for observation in entry.iter(f"{NS}observation"):
            ended = any(_ended(element, as_of) for element in (concern, observation) if element is not None)
            value = observation.find(_path("value"))
            if not ended and value is not None and observation.get("negationInd") != "true":
                names.append(_name(value, narrative))
    return _or_prose(names, section)


def _medications(section: Element, as_of: str) -> list[str]:
    narrative = _narrative(section)
    names = []
    for medication in section.iter(f"{NS}substanceAdministration"):
        stopped = _attribute(medication.find(_path("statusCode")), "code") in ("aborted", "cancelled", "nullified")
        code = medication.find(_path("consumable/manufacturedProduct/manufacturedMaterial/code"))
        name = medication.findtext(_path("consumable/manufacturedProduct/manufacturedMaterial/name"), "")
        if not stopped and medication.get("negationInd") != "true" and not _ended(medication, as_of):
            names.append((_name(code, narrative) if code is not None else "") or name)
    return _or_prose(names, section)


def _allergies(section: Element, as_of: str) -> tuple[list[str], bool]:
    """The allergies, and whether one is denied."""
    narrative = _narrative(section)
    names, denied = [], False
    for observation in section.iter(f"{NS}observation"):
        denied = denied or observation.get("negationInd") == "true"
        entity = observation.find(_path("participant/participantRole/playingEntity"))
        if entity is None or observation.get("negationInd") == "true" or _ended(observation, as_of):
            continue
        code = entity.find(_path("code"))
        names.append((_name(code, narrative) if code is not None else "") or entity.findtext(_path("name"), ""))
    return _or_prose(names, section), denied


def _or_prose(names: list[str], section: Element) -> list[str]:
    """The names of the coded entries; without entries, the section's prose as one."""
    if names or section.find(_path("entry")) is not None:
        return list(filter(None, names))
    text = section.find(_path("text"))
    return [" ".join(" ".join(text.itertext()).split())] if text is not None else []


def _results(section: Element) -> Iterator[Measured]:
    narrative = _narrative(section)
    for observation in section.iter(f"{NS}observation"):
        value, code = observation.find(_path("value")), observation.find(_path("code"))
        if value is None or code is None or observation.get("negationInd") == "true":
            continue
        try:
            number = float(value.get("value", ""))
        except ValueError:
            continue
        system = code.get("codeSystem", "2.16.840.1.113883.6.1")
        known = code.get("code", "") if system == "2.16.840.1.113883.6.1" else ""
        date = _date(observation.find(_path("effectiveTime")))
        result = measures.coded(_name(code, narrative), known, number, value.get("unit", ""), date)
        if result:
            yield result


def _narrative(section: Element) -> dict[str, Element]:
    return {name: element for element in section.iter() if (name := element.get("ID"))}


def _name(code: Element, narrative: dict[str, Element]) -> str:
    """The name of a code, else the narrative that it references."""
    if display := code.get("displayName"):
        return display
    for original in (code.find(_path("originalText")), code.find(_path("translation"))):
        if original is None:
            continue
        if display := original.get("displayName"):
            return display
        reference = original.find(_path("reference"))
        target = _attribute(reference, "value").removeprefix("#")
        pointed = narrative.get(target)
        if text := " ".join("".join((original if pointed is None else pointed).itertext()).split()):
            return text
    return ""


def _ended(element: Element, as_of: str) -> bool:
    high = element.find(_path("effectiveTime/high"))
    end = _date(high) if high is not None else ""
    return bool(end) and (not as_of or end <= as_of)


def _date(element: Element | None) -> str:
    """The ISO date of a time: ``20190917223716`` -> ``2019-09-17``; the start of an interval."""
    if element is None:
        return ""
    written = element.get("value") or _attribute(element.find(_path("low")), "value")
    digits = re.match(r"(\d{4})(\d{2})?(\d{2})?", written or "")
    return "-".join(filter(None, digits.groups())) if digits else ""


def _attribute(element: Element | None, name: str) -> str:
    return "" if element is None else element.get(name, "")


def _path(path: str) -> str:
    return "/".join(f"{NS}{part}" for part in path.split("/"))
