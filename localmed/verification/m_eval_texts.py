"""What is said of a verification, in English and Chinese; and the labels read back from an answer that says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from localmed.domain import Answer
from localmed.verification.vote import Label, Quality

TEXTS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "response": "Response: {label}",
        "claims": "claims", "label": "label", "votes": "votes", "main evidence": "main evidence", "dropped": "dropped",
        "claim": "Claim: {text}",
        "whole": "Claim (question and answer): {text}",
        "voted": "{plus} for, {minus} against, {none} neither; weighed sum {total:+.1f}",
        "heterogeneity": "heterogeneity",
        "spread": "Cochran's Q {q:.2f}, tau squared {tau2:.2f} (studies with a vote: {k})",
        "unjudged": "not judged", "unjudged studies": "{number}, for the language",
        "given": "Evidence given with the answer: {quality}",
        "studies": "Studies, most reliable first",
        "reliability": "reliability {score:.1f} = base {base} + date {bonus:.1f} - 0.3 x {failed}{aspects}; {origin}; "
        "votes {votes}",
        "of the answer": "given with the answer", "found": "found in the literature",
        "alerts": "Alerts",
        "retracted": "retracted: does not count", "withdrawn": "withdrawn: does not count",
        "superseded": "superseded: does not count", "notice": "a notice about a study, no study: does not count",
        "planted": "holds text addressed to a language model: does not count",
        "doubted": "partly retracted, or its editors have expressed concern",
        "citations": "Citations", "resolved": "{title}{date}", "unresolved": "not in the library",
        "support": "Sentences and what they cite",
        "supported": "supported", "contradicted": "contradicted", "not enough evidence": "not enough evidence",
        "correct": "correct: every claim is supported", "mistaken": "mistaken: a claim is contradicted",
        "sound": "sound", "misleading": "poor (misleading)", "irrelevant": "poor (irrelevant)",
        "outdated": "poor (outdated)", "not judged": "not judged",
        "why misleading": "it speaks against the outcome more often than for it",
        "why irrelevant": "on most claims it says neither",
        "why outdated": "most of it is out of force, or ten years older than the newest study found",
        "why sound": "it agrees with the outcome", "why not judged": "no claim has an outcome",
        "reason": "reason",
    },
    "zh": {
        "response": "回答：{label}",
        "claims": "论断数", "label": "结论", "votes": "投票", "main evidence": "主要证据", "dropped": "舍弃",
        "claim": "论断：{text}",
        "whole": "论断（问题与回答）：{text}",
        "voted": "支持 {plus}，反对 {minus}，无关 {none}；加权和 {total:+.1f}",
        "heterogeneity": "异质性",
        "spread": "Cochran Q {q:.2f}，tau² {tau2:.2f}（{k} 项有投票的研究）",
        "unjudged": "未判断", "unjudged studies": "{number} 项研究（语言不受支持）",
        "given": "回答所附证据：{quality}",
        "studies": "研究（按可靠性排列）",
        "reliability": "可靠性 {score:.1f} = 基础分 {base} + 日期 {bonus:.1f} - 0.3 × {failed}{aspects}；{origin}；"
        "投票 {votes}",
        "of the answer": "回答所附", "found": "另行检索",
        "alerts": "警示",
        "retracted": "已撤稿，不计入", "withdrawn": "已撤回，不计入", "superseded": "已被取代，不计入",
        "notice": "是关于研究的声明而非研究，不计入", "planted": "含有针对语言模型的文字，不计入",
        "doubted": "部分撤稿，或编辑部已表示关注",
        "citations": "引用", "resolved": "{title}{date}", "unresolved": "资料库中没有",
        "support": "各句及其引用",
        "supported": "得到支持", "contradicted": "被否定", "not enough evidence": "证据不足",
        "correct": "正确（各论断均得到支持）", "mistaken": "有误（有论断被否定）",
        "sound": "可靠", "misleading": "不佳（误导）", "irrelevant": "不佳（无关）", "outdated": "不佳（过时）",
        "not judged": "未判断",
        "why misleading": "与结论相反的次数多于一致的次数",
        "why irrelevant": "对多数论断均不置可否",
        "why outdated": "多数已失效，或比检索到的最新研究早十年以上",
        "why sound": "与结论一致", "why not judged": "没有论断得出结论",
        "reason": "理由",
        "random selection": "随机选取", "complete data": "数据完整", "unbiased conclusions": "结论无偏",
        "blinding": "盲法",
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Labels:
    """What a verified answer's parts say, for whoever counts them; "" where it has no such part."""

    response: str = ""
    claims: tuple[str, ...] = ()
    quality: str = ""


def labels(answer: Answer) -> Labels:
    """The labels in the parts of ``answer``, as ``Label`` and ``Quality`` have them."""
    texts = TEXTS[answer.language]
    names = {texts[each]: each.value for each in (*Label, *Quality)}
    said = [(part.kind, names[text]) for part in answer.parts for name, text in part.facts if name == texts["label"]]
    single = {kind: label for kind, label in said if kind != "claim"}
    claims = tuple(label for kind, label in said if kind == "claim")
    return Labels(single.get("response", ""), claims, single.get("given", ""))
