"""Patient records: the text that is read of prose, C-CDA, FHIR and a hospital's own JSON, and what is refused."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from localmed.answering.record import names_in
from localmed.domain import message
from localmed.domain.errors import InputError, LimitExceeded
from localmed.domain.patient import PatientRecord
from localmed.ingest import records
from localmed.ingest.records import parts, read
from tests.words import phrase, said

NAME = "Zyxwvutsrq"
ENGLISH = f"""58-year-old woman. Name: Mary {NAME}. MRN: 00417-{NAME}
Address: 4 {NAME} Street
Problems: type 2 diabetes, CKD stage 4; hypertension
Family history: father died at 61 of a stroke
Medications: metformin 1000 mg twice daily, losartan 50 mg
Allergies: penicillin (rash)
Results: eGFR 25 mL/min/1.73m2, K+ 5.9 mmol/L, HbA1c 8.2 %, creatinine 2.1 mg/dL, BP 150/85, weight 82 kg
"""
CHINESE = f"""姓名：{NAME}，住院号：{NAME}，患者女，68岁。
既往史：高血压10年，2型糖尿病；否认冠心病、哮喘。过敏史：对青霉素过敏。目前用药：氨氯地平、二甲双胍。
体格检查：体温36.8℃，血压150/85mmHg。辅助检查：肌酐180μmol/L，血钾5.6mmol/L。
"""


def text(value: str) -> PatientRecord:
    return read(value.encode())


def codes(record: PatientRecord) -> list[str]:
    return [note.code for note in record.notes]


# --- text -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("written", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_prose_is_kept_as_it_is_but_for_names_and_numbers(written: str) -> None:
    record = text(written)
    assert NAME not in record.text
    assert codes(record) == ["explain.struck"], "and says so"
    kept = [line for line in written.splitlines() if NAME not in line]
    assert [line for line in kept if line not in record.text] == []


def test_what_tells_who_somebody_is_goes_and_what_he_is_stays() -> None:
    record = text("Mrs. Ann Ellison, DOB 04/11/1957, MRN 4471902\n67 y F. PMH: HTN")
    assert not any(word in record.text for word in ("Ellison", "1957", "4471902"))
    assert "67 y F. PMH: HTN" in record.text
    record = text("姓名：王建国  男，72岁  住院号：20250317")
    assert not any(word in record.text for word in ("王建国", "20250317"))
    assert "男，72岁" in record.text


@pytest.mark.parametrize("written", ["查体：体温43℃，血压120/80mmHg", "Vitals: Temp 43 C, BP 120/80", "HbA1c 41."])
def test_a_value_that_cannot_be_true_is_told(written: str) -> None:
    assert codes(text(written)) == ["record.implausible"]


def test_an_unlikely_blood_pressure_is_told() -> None:
    assert text("Obs: BP 200/50").notes == (message("record.doubtful_pressure", systolic=200.0, diastolic=50.0),)


def test_control_characters_and_long_records() -> None:
    assert "Allergies: latex" in text("\x00\x07Age: 71.\x1b[31m Sex: M\u202e. Allergies: latex\x00").text
    with pytest.raises(LimitExceeded):
        text("x" * (records.RECORD_CHARACTERS + 1))
    with pytest.raises(LimitExceeded):
        read(b"x" * (records.RECORD_BYTES + 1))


@pytest.mark.parametrize(
    "run", ["a", "和", " ", "(", "1", "x allergy ", "Name:\n", "30 year ", "bp ", "否认", "bp 120/80 ", "K+ 5.9\n"]
)
@pytest.mark.slow
def test_a_record_of_one_run_is_read_in_seconds(run: str) -> None:
    began = time.process_time()
    names_in(text((run * (records.RECORD_CHARACTERS // len(run)))[: records.RECORD_CHARACTERS - 2] + "x.").text)
    assert time.process_time() - began < 20, "a second or two; minutes where a pattern is quadratic"


@pytest.mark.parametrize(
    ("data", "code"),
    [(b"", "empty"), (b"  \n\t ", "empty"), (b"\xef\xbb\xbf", "empty"),
     (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40, "no_text")],
)  # fmt: skip
def test_what_is_no_text_is_refused(data: bytes, code: str) -> None:
    with pytest.raises(InputError) as refused:
        read(data)
    assert refused.value.message.code == f"record.{code}"


@pytest.mark.parametrize(
    "written",
    [
        f"Name: Mary {NAME}\nAge: 40\n\nName: John Other\nAge: 70",
        f"MRN: 1{NAME}; asthma. MRN: 2",
        f"姓名：{NAME}，女。姓名：李四，男。",
    ],
)
def test_two_patients_in_one_text_are_refused(written: str) -> None:
    with pytest.raises(InputError, match="more than one patient") as refused:
        text(written)
    assert NAME not in str(refused.value)
    assert "Glucophage" in text("Name: Mary. Age: 40\nMedications: brand: Glucophage").text


# --- C-CDA ------------------------------------------------------------------------------------------------------------

PATIENT = f"""<recordTarget><patientRole><id extension="{NAME}"/><addr><city>{NAME}</city></addr><patient>
<name><given>{NAME}</given></name><administrativeGenderCode code="M"/><birthTime value="19500301"/>
</patient></patientRole></recordTarget>"""


def ccda(sections: str, patient: str = PATIENT, head: str = "") -> bytes:
    return f"""<?xml version="1.0" encoding="UTF-8"?>{head}<ClinicalDocument xmlns="urn:hl7-org:v3"
    xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><title>{NAME}</title><effectiveTime value="20240601120000"/>
    {patient}<component><structuredBody>{sections}</structuredBody></component></ClinicalDocument>""".encode()


def section(code: str, body: str) -> str:
    return f'<component><section><code code="{code}"/>{body}</section></component>'


PROBLEM = """<entry><act><effectiveTime><low value="2019"/>{ended}</effectiveTime><entryRelationship><observation>
<value xsi:type="CD" displayName="{name}"/></observation></entryRelationship></act></entry>"""
SECTIONS = (
    section("11450-4", PROBLEM.format(name="Gout (disorder)", ended="")
            + PROBLEM.format(name="Sinusitis", ended='<high value="20200101"/>'))
    + section("10160-0", """<text><table><tr><td ID="m1">Allopurinol 100 MG Oral Tablet</td></tr></table></text>
      <entry><substanceAdministration><statusCode code="active"/><consumable><manufacturedProduct><manufacturedMaterial>
      <code code="1"><originalText><reference value="#m1"/></originalText></code></manufacturedMaterial>
      </manufacturedProduct></consumable></substanceAdministration></entry>""")
    + section("48765-2", """<entry><act><entryRelationship><observation><participant><participantRole><playingEntity>
      <code displayName="Penicillin G"/></playingEntity></participantRole></participant></observation>
      </entryRelationship></act></entry>""")
    + section("30954-2", """<entry><organizer><component><observation>
      <code code="33914-3" codeSystem="2.16.840.1.113883.6.1" displayName="GFR"/><effectiveTime value="20230101"/>
      <value xsi:type="PQ" value="31" unit="mL/min"/></observation></component><component><observation>
      <code code="33914-3" codeSystem="2.16.840.1.113883.6.1" displayName="GFR"/><effectiveTime value="20240501"/>
      <value xsi:type="PQ" value="25" unit="mL/min"/></observation></component></organizer></entry>""")
)  # fmt: skip


def test_ccda() -> None:
    record = read(ccda(SECTIONS))
    assert record.text.splitlines() == [  # without what has ended; a medicine by its reference; the newest of a measure
        "Record of 2024-06-01", "Age: 74", "Sex: male", "Problems:", "- Gout", "Medicines:",
        "- Allopurinol 100 MG Oral Tablet", "Allergies:", "- Penicillin G", "Results:",
        "- eGFR: 25 mL/min (2024-05-01)",
    ]  # fmt: skip


def test_a_section_without_entries_is_read_as_prose() -> None:
    none = section("48765-2", f"<text>Penicillin: anaphylaxis. {'No food allergy. ' * 10}Codeine: rash.</text>")
    prose = section("10160-0", "<text>Warfarin, digoxin</text>")
    record = read(ccda(none + prose))
    assert "Penicillin: anaphylaxis. No food" in record.text, "it denies a part only"
    assert "Codeine: rash." in record.text, "to its end"
    assert "Medicines:\n- Warfarin, digoxin" in record.text


UNSAFE = phrase("record.xml_refused")
LAUGHS = "<!DOCTYPE l [<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {chr(98 + n)} '{f'&{chr(97 + n)};' * 10}'>" for n in range(9)
) + "]>"  # fmt: skip


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (ccda(SECTIONS, PATIENT + PATIENT), "more than one patient"),
        (ccda(SECTIONS, ""), phrase("record.no_ccda")),
        (ccda(SECTIONS, head=LAUGHS), UNSAFE),
        (ccda(SECTIONS, head='<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>'), UNSAFE),
        (ccda(SECTIONS)[:-40], "broken XML"),
        (b"<html><body>Zyxwvutsrq</body></html>", phrase("record.no_ccda")),
        (b'<?xml version="1.0" encoding="zyx"?><a/>', "cannot be read|broken XML"),
    ],
)
def test_xml_that_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(InputError, match=says.replace("(", r"\(")) as refused:
        read(data)
    assert NAME not in str(refused.value)
    assert "<" not in str(refused.value)


# --- JSON -------------------------------------------------------------------------------------------------------------


def bundle(*resources: dict[str, Any], **more: Any) -> bytes:
    entries = [{"resource": resource} for resource in resources]
    value = {"resourceType": "Bundle", "type": "collection", "timestamp": "2024-06-01T08:00:00Z", "entry": entries}
    return json.dumps(value | more, ensure_ascii=False).encode()


WHO = {"resourceType": "Patient", "id": "p1", "gender": "female", "birthDate": "1960-06-02", "name": [{"text": NAME}]}
ABOUT = {"subject": {"reference": "Patient/p1"}}


def coded(text: str) -> dict[str, Any]:
    return {"code": {"text": text}}


def condition(name: str, status: str = "active", **more: Any) -> dict[str, Any]:
    clinical = {"clinicalStatus": {"coding": [{"code": status}]}}
    return {"resourceType": "Condition", **ABOUT, **clinical, **coded(name), **more}


def observation(value: float, unit: str, loinc: str, date: str = "2024-05-01", **more: Any) -> dict[str, Any]:
    code = {"code": {"coding": [{"system": "http://loinc.org", "code": loinc}]}}
    quantity = {"valueQuantity": {"value": value, "unit": unit}, "effectiveDateTime": date}
    return {"resourceType": "Observation", "status": "final", **ABOUT, **code, **quantity, **more}


MEDICINE = {"resourceType": "MedicationRequest", "status": "active", "intent": "order", **ABOUT}
ALLERGY = {"resourceType": "AllergyIntolerance", "patient": {"reference": "Patient/p1"}}


def test_fhir() -> None:
    record = read(
        bundle(
            WHO,
            condition("Gout"),
            condition("Sinusitis", "resolved"),
            {**MEDICINE, "medicationCodeableConcept": {"text": "metformin 500 mg"}},
            {**MEDICINE, "status": "stopped", "medicationCodeableConcept": {"text": "aspirin"}},
            {**MEDICINE, "medicationReference": {"reference": "Medication/m"}},
            {"resourceType": "Medication", "id": "m", **coded("losartan 50 mg")},
            {**ALLERGY, **coded("penicillin")},
            observation(25, "mL/min/{1.73_m2}", "33914-3"),
            observation(40, "mL/min/{1.73_m2}", "33914-3", "2020-01-01"),
            observation(43, "Cel", "8310-5"),
        )
    )
    assert record.text.splitlines() == [
        "Record of 2024-06-01", "Age: 63", "Sex: female", "Problems:", "- Gout", "Medicines:", "- metformin 500 mg",
        "- losartan 50 mg", "Allergies:", "- penicillin", "Results:", "- eGFR: 25 mL/min/{1.73_m2} (2024-05-01)",
    ]  # fmt: skip
    assert [note for note in record.notes if ("measure", "temperature") in note.parameters]


def test_fhir_that_says_that_there_are_no_allergies() -> None:
    record = read(bundle(WHO, {**ALLERGY, "code": {"coding": [{"code": "716186003", "display": "No known allergy"}]}}))
    assert "Allergies: none" in record.text
    assert "Sex: female" in read(json.dumps(WHO).encode()).text, "a patient alone"


@pytest.mark.parametrize(
    "entry",
    [
        {"resourceType": "AllergyIntolerance", **coded("penicillin")},  # of whom?
        {**ALLERGY, "code": {"txet": NAME}},
        {**ALLERGY, "code": "penicillin"},
        {**ALLERGY, "clinicalStatus": {"coding": {"code": "active"}}, **coded("penicillin")},
        {**ALLERGY, "code": {"coding": [{"code": "91936005"}]}},  # nothing that a reader knows it by
    ],
)
def test_an_allergy_that_cannot_be_read_is_told(entry: dict[str, Any]) -> None:
    record = read(bundle(WHO, entry, condition("Gout")))
    assert "penicillin" not in record.text
    assert "- Gout" in record.text
    assert record.notes == (message("record.invalid_fhir", what=("AllergyIntolerance 1",)),)


def test_components_and_what_is_over_or_void() -> None:
    pressure = {
        **observation(1, "x", "85354-9"),
        "component": [
            {key: value for key, value in observation(high, "mmHg", loinc).items() if key in ("code", "valueQuantity")}
            for high, loinc in ((142, "8480-6"), (88, "8462-4"))
        ],
    }
    refuted = {"verificationStatus": {"coding": [{"code": "refuted"}]}}
    record = read(
        bundle(
            WHO,
            {**pressure, "valueQuantity": {"unit": "mmHg"}},
            observation(9, "mmol/L", "2823-3", status="entered-in-error"),
            condition("Asthma") | refuted,
            ALLERGY | coded("latex") | refuted,
        )
    )
    values = [line for line in record.text.splitlines() if line.startswith("- ")]
    assert values == [
        "- systolic blood pressure: 142 mmHg (2024-05-01)",
        "- diastolic blood pressure: 88 mmHg (2024-05-01)",
    ]
    assert record.notes == ()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (bundle(WHO, {**WHO, "id": "p2"}), "more than one patient"),
        (bundle(WHO, condition("Gout", subject={"reference": f"Patient/{NAME}"})), "more than one patient"),
        (bundle(condition("Gout")), phrase("record.not_fhir")),
        (b'{"resourceType": "Questionnaire", "status": "active"}', phrase("record.not_fhir")),
        (json.dumps({**WHO, "birthDate": NAME}).encode(), phrase("record.not_fhir")),
        (b'{"resourceType": "Bundle", "entry": ', said("record.json_broken", line=1)),
        (b"[" * 100_000, phrase("record.not_fhir")),
        (b'{"Zyxwvutsrq": 1}', phrase("record.not_fhir")),
        (b"[1, 2]", phrase("record.not_fhir")),
        (b'{"resourceType": 7}', phrase("record.not_fhir")),
        (bundle(entry=7), phrase("record.not_fhir")),
    ],
)
def test_json_that_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)) as refused:
        read(data)
    assert NAME not in str(refused.value)
    assert refused.value.__cause__ is None


def own(name: str = NAME, **more: str) -> dict[str, Any]:
    fields = {"past_medical_history": "高血压，否认糖尿病", "allergy_history": "青霉素", **more}
    who = {"patient_name": name, "patient_gender": "女", "patient_age": "76"}
    return {"input": {"client_info": [{"patient": who}], "basic_medical_record": fields}}


def test_a_hospitals_own_fields() -> None:
    record = read(json.dumps(own(physical_examination="体温： 43℃ ， 血压： 200/50mmHg"), ensure_ascii=False).encode())
    assert record.text.splitlines()[:4] == ["年龄：76", "性别：女", "既往史：高血压，否认糖尿病", "过敏史：青霉素"]
    assert len(record.notes) == 2
    assert NAME not in record.text
    with pytest.raises(InputError, match="more than one patient"):
        read(json.dumps([own("甲"), own("乙")], ensure_ascii=False).encode())


def test_many_entries_are_cut_and_told() -> None:
    record = read(bundle(WHO, *(condition(f"finding number {number}") for number in range(300))))
    assert record.text.count("- finding") == parts.ENTRIES
    assert record.notes == (message("record.cut_problems", kept=parts.ENTRIES, entries=300),)


def test_a_number_right_behind_a_chinese_word_is_struck() -> None:
    struck = parts.strike_identifiers("电话13812345678，身份证号110101197001011234，家属手机13700001111。ab13812345678")
    assert struck == "电话[…]，身份证号[…]，家属手机[…]。ab13812345678", "and no part of a code"
