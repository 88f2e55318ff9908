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

from localmed.domain import Evidence, Kind

# PubMed's publication types, lower case -> (level, English, Chinese), highest first: of several the first counts.
_TYPES = {
    "retracted publication": (0, "retracted publication", "已撤稿文献"),
    "practice guideline": (1, "guideline", "指南"),
    "guideline": (1, "guideline", "指南"),
    "consensus development conference": (1, "consensus statement", "专家共识"),
    "consensus statement": (1, "consensus statement", "专家共识"),
    "meta-analysis": (1, "meta-analysis", "荟萃分析"),
    "network meta-analysis": (1, "meta-analysis", "荟萃分析"),
    "systematic review": (1, "systematic review", "系统评价"),
    "randomized controlled trial": (2, "randomised controlled trial", "随机对照试验"),
    "pragmatic clinical trial": (2, "randomised controlled trial", "随机对照试验"),
    "equivalence trial": (2, "randomised controlled trial", "随机对照试验"),
    "controlled clinical trial": (3, "controlled trial", "对照试验"),
    "clinical trial": (3, "clinical trial", "临床试验"),
    "observational study": (3, "observational study", "观察性研究"),
    "multicenter study": (3, "multicentre study", "多中心研究"),
    "comparative study": (3, "comparative study", "比较研究"),
    "case reports": (4, "case report", "病例报告"),
    "review": (5, "narrative review", "综述"),
    "editorial": (5, "editorial", "述评"),
    "comment": (5, "comment", "评论"),
    "letter": (5, "letter", "来信"),
}
_KINDS = {
    Kind.GUIDELINE: (1, "guideline", "指南"),
    Kind.LITERATURE: (0, "article, type not stated", "文献（类型未注明）"),
    Kind.BOOK: (5, "textbook or reference", "教科书或参考书"),
    Kind.WIKI: (5, "encyclopaedia", "百科"),
    Kind.LEAFLET: (5, "patient leaflet", "患者手册"),
    Kind.LOCAL: (5, "the hospital's own page", "本院资料"),
}
_UNKNOWN = (0, "type not stated", "类型未注明")


def level(evidence: Evidence, language: str = "en") -> tuple[str, str]:
    """The type of a source in words, and its level ("" where the table has none)."""
    given = {each.lower() for each in evidence.publication_types}
    named = next((row for name, row in _TYPES.items() if name in given), None)
    number, english, chinese = named or _KINDS.get(evidence.kind, _UNKNOWN)
    return chinese if language == "zh" else english, str(number) if number else ""
