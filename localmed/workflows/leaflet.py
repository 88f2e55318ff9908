"""An explained order as a leaflet to print: one HTML page with its style inside, no script, nothing to load.

For a patient, so it says who released it, what it is and what it is not, in the order's language. What was written by
whom stays visible: a line by rule, by a model or quoted; an explanation with the numbers of its sources, which are
listed at the end. Headings in order, a language, a title and a table-free flow, so that a screen reader can read it;
colours are never the only sign.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from localmed.domain import Answer, Evidence, Message, Part, Statement
from localmed.errors import UsageError
from localmed.messages import render

LABELS: Mapping[str, Mapping[str, str]] = {
    "en": {
        ":": ": ",
        "title": "Your medical order in plain words",
        "released": "Released by {name} on {date}",
        "not_released": "NOT RELEASED: for staff only, not for a patient (--released-by NAME releases it)",
        "line": "What the order says",
        "term": "Words in the order",
        "short": "Short forms (usual meaning, from our own list, no source)",
        "question": "Questions",
        "sources": "Sources",
        "written": "The order's own words",
        "plain": "",
        "how": "",
        "kind": "",
        "by rule": "Said in plain words by rule, not by a person; under each line stands the order's own.",
        "by a language model": "said by a language model; every number and negation was checked",
        "quoted": "quoted as written",
        "in the order": "in the order",
        "usual meaning": "usual meaning (our own list, no source)",
        "definition": "definition",
        "defined by": "defined by",
        "not explained": "The library holds no explanation of this. Ask your care team.",
        "asked as": "searched as",
        "no answer": "The library does not hold enough to answer this. Ask your care team.",
        "reading level": "Reading level",
        "grade": "grade {value} (Flesch-Kincaid, school years in the United States)",
        "characters a sentence": "{value} characters a sentence on average",
        "extractive": "quoted from the source",
        "generated": "written by a language model from the source",
        "check": "Compare it with the order itself. If they differ, the order counts. Ask before you change anything.",
    },
    "zh": {
        ":": "：",
        "title": "用通俗的话看懂您的医嘱",
        "released": "发放人：{name}　日期：{date}",
        "not_released": "未发放：仅供医护人员，不得交给患者（用 --released-by 姓名 发放）",
        "line": "医嘱写了什么",
        "term": "医嘱中的用语",
        "short": "缩写（通常含义，本系统词表，无来源）",
        "question": "问题",
        "sources": "来源",
        "written": "医嘱原文",
        "plain": "",
        "how": "",
        "kind": "",
        "by rule": "以下由规则改写为通俗的话，并非人工书写；每行下面是医嘱原文。",
        "by a language model": "由语言模型改写；数字和否定均已核对",
        "quoted": "照原文引用",
        "in the order": "医嘱中的说法",
        "usual meaning": "通常含义（本系统词表，无来源）",
        "definition": "定义",
        "defined by": "定义来源",
        "not explained": "资料库中没有对它的解释，请询问您的医护人员。",
        "asked as": "检索用的问题",
        "no answer": "资料库中没有足够的依据回答，请询问您的医护人员。",
        "reading level": "阅读难度",
        "grade": "{value} 年级（Flesch-Kincaid，美国学年）",
        "characters a sentence": "平均每句 {value} 个字",
        "extractive": "摘自来源原文",
        "generated": "由语言模型依据来源撰写",
        "check": "请与医嘱本身对照；如有不同，以医嘱为准。不要自行改变，先问医护人员。",
    },
}
KINDS = ("line", "term", "question")
_HIDDEN = ("kind", "plain", "how")

STYLE = """
:root { color-scheme: light; }
body { font: 18px/1.55 Georgia, "Noto Serif CJK SC", "Songti SC", SimSun, serif; color: #1a1a1a; background: #fff;
  max-width: 44rem; margin: 2rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .4rem; }
h2 { font-size: 1.25rem; margin: 2rem 0 .6rem; padding-top: .5rem; border-top: 2px solid #1f4e5f; color: #1f4e5f; }
h3 { font-size: 1.05rem; margin: 1.1rem 0 .15rem; }
p, ul, ol { margin: .25rem 0; }
ol.lines { padding-left: 1.4rem; } ol.lines li { margin: .55rem 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; }
dt { font-weight: bold; } dd { margin: 0; }
.small { font: .8rem/1.4 "Noto Sans CJK SC", Arial, sans-serif; color: #4a4a4a; }
.box { border: 1px solid #1f4e5f; border-radius: 4px; padding: .6rem .9rem; margin: 1rem 0; }
.cite { white-space: nowrap; font-size: .8em; }
footer { margin-top: 2.2rem; border-top: 1px solid #888; padding-top: .6rem; }
@media print { body { margin: 0; font-size: 12pt; max-width: none; } h2, h3 { break-after: avoid; }
  li, section > div { break-inside: avoid; } @page { margin: 18mm; } }
"""


def leaflet(answer: Answer, date: str) -> str:
    """The leaflet of an explained order, dated ``date``; raise ``UsageError`` where nobody releases it."""
    if not answer.released_by:
        raise UsageError("a leaflet for a patient needs the name of who releases it", "Give --released-by NAME")
    labels = LABELS[answer.language]
    released = labels["released"].format(name=answer.released_by, date=date)
    purpose = render(Message("answer.purpose.explain"), answer.language)
    body = [
        f"<h1>{_text(labels['title'])}</h1>",
        f'<p class="small">{_text(released)}</p>',
        f'<p class="box">{_text(purpose)} {_text(labels["check"])}</p>',
        _section(answer, "line", labels),
        _section(answer, "term", labels),
        _short(answer, labels),
        _section(answer, "question", labels),
        _sources(answer.evidence, labels),
        f'<footer class="small">{_footer(answer, labels)}</footer>',
    ]
    return (
        f'<!DOCTYPE html>\n<html lang="{answer.language}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{_text(labels['title'])}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(each for each in body if each)
        + "\n</main>\n</body>\n</html>\n"
    )


def _section(answer: Answer, kind: str, labels: Mapping[str, str]) -> str:
    parts = [each for each in answer.parts if each.kind == kind and not _is_short(each)]
    if not parts:
        return ""
    inside = _lines(parts, labels) if kind == "line" else "\n".join(_block(each, labels) for each in parts)
    return f"<section><h2>{_text(labels[kind])}</h2>\n{inside}</section>"


def _is_short(part: Part) -> bool:
    """Whether all that there is to say of a part is the usual meaning of a short form."""
    return part.kind == "term" and not part.statements and {name for name, _ in part.facts} == {"kind", "usual meaning"}


def _short(answer: Answer, labels: Mapping[str, str]) -> str:
    """The short forms of the order in one list."""
    found = [(each.title, dict(each.facts)["usual meaning"]) for each in answer.parts if _is_short(each)]
    if not found:
        return ""
    items = "".join(f"<dt>{_text(short)}</dt><dd>{_text(meaning)}</dd>" for short, meaning in found)
    return f"<section><h2>{_text(labels['short'])}</h2>\n<dl>{items}</dl></section>"


def _lines(parts: Iterable[Part], labels: Mapping[str, str]) -> str:
    items, by_rule = [], False
    for part in parts:
        facts = dict(part.facts)
        if facts["how"] == "quoted":
            items.append(f"<li>{_text(facts['plain'])}</li>")
            continue
        by_rule = by_rule or facts["how"] == "by rule"
        written = f"{labels['written']}{labels[':']}{part.title}{model_label(facts['how'], labels)}"
        items.append(f'<li>{_text(facts["plain"])}<br><span class="small">{_text(written)}</span></li>')
    made = f'<p class="small">{_text(labels["by rule"])}</p>' if by_rule else ""
    return f'{made}<ol class="lines">{"".join(items)}</ol>'


def model_label(how: str, labels: Mapping[str, str]) -> str:
    """What is said beside a line that a model restated; rules are named once for all lines."""
    return f" ({labels[how]})" if how == "by a language model" else ""


def _block(part: Part, labels: Mapping[str, str]) -> str:
    facts = "".join(f"<p>{_text(each)}</p>" for each in told(part, labels))
    said = "".join(_statement(each, labels) for each in part.statements if not each.withheld)
    return f"<div><h3>{_text(part.title)}</h3>{facts}{said}</div>"


def told(part: Part, labels: Mapping[str, str]) -> list[str]:
    """The facts of a part as a reader is shown them."""
    return [
        labels[name] if name in ("not explained", "no answer") else f"{labels[name]}{labels[':']}{value}"
        for name, value in part.facts
        if name not in _HIDDEN
    ]


def level(answer: Answer, labels: Mapping[str, str]) -> str:
    """The reading level as a reader is shown it; "" where none was measured."""
    found = next((each for each in answer.parts if each.kind == "reading level"), None)
    if found is None:
        return ""
    name, value = found.facts[0]
    return f"{labels['reading level']}{labels[':']}{labels[name].format(value=value)}"


def _statement(statement: Statement, labels: Mapping[str, str]) -> str:
    markers = " ".join(
        f'<a class="cite" href="#s{_text(each)}">[{_text(each)}]</a>'
        for each in dict.fromkeys(citation.marker for citation in statement.citations)
    )
    by = (
        ""
        if statement.origin == "extractive"
        else f' <span class="small">({_text(labels[statement.origin.value])})</span>'
    )
    return f"<p>{_text(statement.text)}&nbsp;{markers}{by}</p>"


def _sources(evidence: Iterable[Evidence], labels: Mapping[str, str]) -> str:
    items = "".join(
        f'<li id="s{_text(each.marker)}" class="small">[{_text(each.marker)}] {_text(each.document_title)}'
        f"{', ' + _text(each.edition) if each.edition else ''}</li>"
        for each in evidence
    )
    return f"<section><h2>{_text(labels['sources'])}</h2><ul>{items}</ul></section>" if items else ""


def _footer(answer: Answer, labels: Mapping[str, str]) -> str:
    made = f"localmed {answer.provenance.version}, {answer.provenance.profile}, {answer.provenance.generation}"
    return " · ".join(_text(each) for each in (level(answer, labels), made) if each)


def _text(value: str) -> str:
    return escape(value, quote=True)
