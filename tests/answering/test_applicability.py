"""What of a record certainly bears on what is shown: allergies and listed interactions, both sides quoted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localmed.answering.warnings import Quote, allergies, listed_interactions, taken
from localmed.domain import Kind
from localmed.domain.patient import EntryKind, PatientRecord, RecordEntry
from localmed.library.graph import Relation, Source
from localmed.text import measures
from localmed.text.language import detect
from localmed.text.publications import level, named
from tests.values import evidence, quotation

METFORMIN = evidence("1", "Metformin is the usual first medicine.", "Diabetes in adults")


def record(kind: EntryKind, *texts: str) -> PatientRecord:
    return PatientRecord(entries=tuple(RecordEntry(kind, text, f"The record has {text}.") for text in texts))


@pytest.mark.parametrize(
    ("allergy", "text", "named"),
    [
        ("penicillin (rash)", "Amoxicillin 500 mg three times a day.", "amoxicillin"),
        ("sulfa", "Co-trimoxazole twice a day.", "co-trimoxazole"),
        ("Tylenol", "Paracetamol 1 g.", "paracetamol"),
        ("penicillin", "Do not give amoxicillin.", "amoxicillin"),
        ("青霉素", "阿莫西林500毫克口服。", "阿莫西林"),
        ("磺胺", "可用复方新诺明。", "复方新诺明"),
        ("penicillin", "Doxycycline 200 mg.", ""),
        ("latex", "Amoxicillin.", ""),
        ("amoxicillin", "Give cefuroxime.", "cefuroxime"),  # of a class that may react like it
        ("aspirin", "Ibuprofen 400 mg.", "ibuprofen"),
        ("cefuroxime", "Give meropenem.", ""),
        ("rash when given penicillin", "Give amoxicillin.", "amoxicillin"),
        ("penicillin (anaphylaxis, needed adrenaline)", "Give adrenaline.", ""),
    ],
)
def test_an_allergy_to_what_is_shown_is_told_with_both_quotations_and_anything_weaker_is_not_judged(
    allergy: str, text: str, named: str
) -> None:
    statement = quotation(evidence("1", text), 0, len(text))
    warnings = allergies(record(EntryKind.ALLERGY, allergy), (Quote(text, statement),), detect(text))
    told = [(one.allergy.text, one.named, one.statements) for one in warnings]
    assert told == ([(allergy, (named,), (statement,))] if named else [])


def test_a_quoted_reaction_warns_and_another_quotation_or_what_is_no_allergy_does_not() -> None:
    quote = Quote("Give amoxicillin.", quotation(evidence("1", "Give amoxicillin."), 0, 17))
    assert list(allergies(record(EntryKind.NAMED, "penicillin"), (quote,), "en")) == []
    (warning,) = allergies(record(EntryKind.UNREAD, "a rash with penicillin"), (quote,), "en")
    assert warning.allergy.words == "The record has a rash with penicillin."
    assert list(allergies(record(EntryKind.UNREAD, "gout, no pain on amoxicillin"), (quote,), "en")) == []


def relation(one: str, other: str, predicate: str = "interacts_with") -> Relation:
    return Relation("a", one, predicate, "b", other, "", Source("file", "onc", "ONC", "2020"))


def test_interactions_from_the_graph() -> None:
    known = record(EntryKind.MEDICINE, "Coumadin 3 mg daily", "metformin 500 mg")
    (part,) = listed_interactions(known, "amiodarone", (relation("amiodarone", "warfarin"),))
    assert (part.entry.text, part.named, part.source) == ("Coumadin 3 mg daily", "amiodarone", "onc")
    assert list(listed_interactions(known, "aspirin", (relation("aspirin", "ibuprofen"),))) == []
    assert list(listed_interactions(known, "aspirin", (relation("aspirin", "warfarin", "similar_to"),))) == []
    named_only = record(EntryKind.NAMED, "warfarin")
    (part,) = listed_interactions(named_only, "amiodarone", (relation("amiodarone", "warfarin"),))
    assert part.entry.kind is EntryKind.NAMED, "its words say whether it is taken"


@pytest.mark.parametrize(
    ("name", "sentence", "expected"),
    [
        ("warfarin", "On warfarin, allergic to penicillin", {"warfarin"}),
        ("penicillin", "On warfarin, allergic to penicillin", set()),
        ("warfarin", "Rash on both legs since Monday, on warfarin", {"warfarin"}),
        ("penicillin", "Penicillin allergy (rash)", set()),
        ("青霉素", "青霉素皮试阳性", set()),
        ("华法林", "口服华法林无药物过敏", {"warfarin"}),
        ("华法林", "服华法林青霉素过敏", {"warfarin"}),
        ("warfarin", "On warfarin allergic to penicillin", {"warfarin"}),
        ("glucose", "Given glucose 10 % in the night", {"glucose"}),
        ("potassium", "On potassium tablets since Monday", {"potassium"}),
        ("potassium", "Takes potassium 600 mg tds", {"potassium"}),
        ("华法林", "青霉素过敏，服华法林", {"warfarin"}),
    ],
)
def test_the_medicine_beside_a_word_for_an_allergy_is_not_taken(name: str, sentence: str, expected: set[str]) -> None:
    assert taken(RecordEntry(EntryKind.NAMED, name, sentence)) == expected


# --- tables -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("types", "kind", "expected"),
    [
        (("Journal Article", "Meta-Analysis"), Kind.LITERATURE, ("meta-analysis", 1)),
        (("Randomized Controlled Trial",), Kind.LITERATURE, ("randomized controlled trial", 2)),
        (("Review", "Systematic Review"), Kind.LITERATURE, ("systematic review", 1)),
        (("Case Reports",), Kind.LITERATURE, ("case reports", 4)),
        (("Retracted Publication", "Meta-Analysis"), Kind.LITERATURE, ("retracted publication", 0)),
        (("Journal Article",), Kind.LITERATURE, ("literature", 0)),
        ((), Kind.GUIDELINE, ("guideline", 1)),
        ((), Kind.BOOK, ("book", 5)),
        ((), Kind.OTHER, ("unknown", 0)),
    ],
)
def test_the_level_of_a_source(types: tuple[str, ...], kind: Kind, expected: tuple[str, int]) -> None:
    assert level(replace(METFORMIN, publication_types=types, kind=kind)) == expected
    assert named(expected[0], "zh") != named(expected[0], "en")


def test_measures_convert_and_refuse() -> None:
    creatinine = measures.by_name("creatinine")
    assert measures.converted(creatinine, "2", "mg/dl") == pytest.approx(176.84)
    assert measures.converted(creatinine, "2", "") is None, "a bare number may be in either unit"
    assert measures.coded("Glucose [Mass/volume] in Urine", "", 5, "mmol/L") is None
    assert measures.coded("", "2345-7", 100, "mg/dL") is not None
    assert list(measures.measured("urine glucose 20 mmol/L")) == []
