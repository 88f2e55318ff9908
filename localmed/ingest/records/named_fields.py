"""JSON of a hospital's own: the fields whose names tell what they hold, wherever they stand.

Each known field becomes a headed line of prose, which the reader of prose reads. A field that holds another age, sex or
name at a second place means a second patient. Names of fields are added here as they are met.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from localmed.domain.patient import PatientRecord
from localmed.errors import InputError
from localmed.ingest.records.identifiers import struck
from localmed.ingest.records.text import from_prose
from localmed.language import clean

FIELD_CHARACTERS = 20_000  # of one field; a history has some hundreds
DEPTH = 20  # levels of nesting
_IDENTITY = {
    "patient_name": "name", "姓名": "name", "患者姓名": "name", "patient_id": "id", "住院号": "id",
    "patient_age": "age", "age": "age", "年龄": "age",
    "patient_gender": "sex", "gender": "sex", "sex": "sex", "性别": "sex",
}  # fmt: skip
_HEADED = {
    "chief_complaint": "主诉", "主诉": "主诉", "history_of_present_illness": "现病史", "现病史": "现病史",
    "past_medical_history": "既往史", "既往史": "既往史", "personal_history": "个人史", "个人史": "个人史",
    "allergy_history": "过敏史", "过敏史": "过敏史", "physical_examination": "体格检查", "体格检查": "体格检查",
    "auxiliary_examination": "辅助检查", "辅助检查": "辅助检查", "diagnosis_name": "诊断", "诊断": "诊断",
    "medications": "用药史", "medication_history": "用药史", "用药史": "用药史", "drug_name": "用药史",
}  # fmt: skip


def read_fields(value: Any) -> PatientRecord:
    """The record in ``value``; raise ``InputError`` where no field of a record is found, or two patients' are."""
    identity: dict[str, str] = {}
    lines: list[str] = []
    for name, text in _fields(value, 0):
        if (kind := _IDENTITY.get(name)) and text.strip():
            if identity.setdefault(kind, text.strip()) != text.strip():
                raise InputError("record.two_patients")
        elif (heading := _HEADED.get(name)) and text.strip():
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
