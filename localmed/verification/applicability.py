"""What of a patient's record certainly bears on the sentences shown: an allergy to the same medicine, an interaction.

- *Allergy*: the record names an allergy, and a sentence shown names the same ingredient, or a member of the class that
  the allergy names. Both are quoted; whether the sentence advises it is for the reader.
- *Interaction*: a medicine of the record, of which the concept graph says that it interacts with one that the sentences
  name. The graph's source is named.

Nothing else is judged here: no limits, no ages, no pregnancy, no reactions across classes. Nothing found is no proof
that a recommendation fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from localmed.clinical import medicines
from localmed.domain import Statement
from localmed.domain.parts import AllergyPart, InteractionPart
from localmed.domain.patient import EntryKind, PatientRecord
from localmed.library.graph import Relation
from localmed.verification import citations

INTERACTS = "interacts_with"


def allergies(record: PatientRecord, statements: Sequence[Statement]) -> Iterator[AllergyPart]:
    """The record's allergies that sentences shown speak against, with these sentences."""
    shown = citations.shown(statements)
    for entry in record.entries:
        if entry.kind is EntryKind.ALLERGY:
            named = [(statement, _same(entry.text, statement.text)) for statement in shown]
            names = dict.fromkeys(name for _, matches in named for name in matches)
            if names:
                yield AllergyPart(entry, tuple(names), tuple(statement for statement, matches in named if matches))


def _same(allergy: str, text: str) -> list[str]:
    return [name for name, related in medicines.met_by(allergy, text).items() if not related]


def interactions(record: PatientRecord, named: str, relations: Sequence[Relation]) -> Iterator[InteractionPart]:
    """The record's medicines that ``relations`` of the concept graph say interact with ``named``."""
    own = medicines.ingredients(named)
    for relation in relations:
        if relation.predicate != INTERACTS:
            continue
        partners = medicines.ingredients(f"{relation.subject_name}; {relation.object_name}") - own
        for entry in record.entries:
            if entry.kind is EntryKind.MEDICINE and partners & medicines.ingredients(entry.text):
                yield InteractionPart(entry, named, relation.source.collection)
