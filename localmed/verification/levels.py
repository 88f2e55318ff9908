"""What sort of source a piece of evidence is, and how far up it stands: by publication type alone.

Our own table, after the usual order of study designs: it says of which design a source is, nothing of how well it was
done, how far it fits a patient or how old it is, and is not GRADE. Level 1 is the highest.

====== =====================================================================================
level  publication types (PubMed's names), or the kind of the collection where there are none
====== =====================================================================================
1      guideline, consensus; systematic review, meta-analysis
2      randomised controlled trial
3      other trials; cohort, case-control and other observational studies
4      case report
5      review, textbook, encyclopaedia, leaflet, editorial, letter, the hospital's own pages
none   anything else
====== =====================================================================================
"""

from __future__ import annotations

from localmed.domain import Evidence, Kind, Message

# PubMed's publication types, lower case -> (level, code of ebm.design), highest first: of several the first counts.
_TYPES = {
    "retracted publication": (0, "retracted_publication"),
    "practice guideline": (1, "guideline"),
    "guideline": (1, "guideline"),
    "consensus development conference": (1, "consensus_statement"),
    "consensus statement": (1, "consensus_statement"),
    "meta-analysis": (1, "meta_analysis"),
    "network meta-analysis": (1, "meta_analysis"),
    "systematic review": (1, "systematic_review"),
    "randomized controlled trial": (2, "randomised_controlled_trial"),
    "pragmatic clinical trial": (2, "randomised_controlled_trial"),
    "equivalence trial": (2, "randomised_controlled_trial"),
    "controlled clinical trial": (3, "controlled_trial"),
    "clinical trial": (3, "clinical_trial"),
    "observational study": (3, "observational_study"),
    "multicenter study": (3, "multicentre_study"),
    "comparative study": (3, "comparative_study"),
    "case reports": (4, "case_report"),
    "review": (5, "narrative_review"),
    "editorial": (5, "editorial"),
    "comment": (5, "comment"),
    "letter": (5, "letter"),
}
_KINDS = {
    Kind.GUIDELINE: (1, "guideline"),
    Kind.LITERATURE: (0, "article_type_not_stated"),
    Kind.BOOK: (5, "textbook_or_reference"),
    Kind.WIKI: (5, "encyclopaedia"),
    Kind.LEAFLET: (5, "patient_leaflet"),
    Kind.LOCAL: (5, "the_hospital_own_page"),
}
_UNKNOWN = (0, "type_not_stated")


def level(evidence: Evidence) -> tuple[int, Message]:
    """The level of a source, 0 where the table has none, and its type."""
    types = {written.lower() for written in evidence.publication_types}
    named = next((row for name, row in _TYPES.items() if name in types), None)
    number, design = named or _KINDS.get(evidence.kind, _UNKNOWN)
    return number, Message(f"ebm.design.{design}")
