"""Whom each workflow is for, and for what: printed with every answer. None of them decides, diagnoses or prescribes."""

from __future__ import annotations

from collections.abc import Mapping

PURPOSES: Mapping[str, Mapping[str, str]] = {
    "plan": {
        "en": "For clinical staff and evaluators: to see which source is asked what, and what all of them say "
        "together.",
        "zh": "供临床工作人员和评估人员使用：查看向各来源检索了什么，以及它们共同的内容。仅供阅读参考，不作决定。",
    },
    "verify": {
        "en": "For clinical staff and evaluators: to see what the library's sources and studies say of an answer's "
        "sentences. It weighs abstracts by rule; it is no appraisal of studies and decides nothing.",
        "zh": "供临床工作人员和评估人员使用：查看资料库中的来源和研究对一份回答的说法。仅按规则权衡摘要，"
        "不是文献质量评价，不作决定。",
    },
    "ask": {
        "en": "For clinical staff: to find and read what the library says. It supports reading, it does not decide.",
        "zh": "供临床工作人员使用：查找并阅读资料库中的内容。仅供阅读参考，不作决定。",
    },
    "ebm": {
        "en": "For clinicians, about one patient: to find and read what guidelines and studies say on a clinical "
        "question. It recommends nothing of its own, and whether a source fits the patient is for the clinician "
        "to judge.",
        "zh": "供临床医生就某一患者使用：查找并阅读指南和研究对临床问题的说法。本身不作任何推荐；"
        "来源是否适用于该患者由医生判断。",
    },
    "links": {
        "en": "For evaluators: to measure how well the sentences of answers are tied to their sources. It says nothing "
        "about whether an answer is right for a patient.",
        "zh": "供评估人员使用：衡量回答中的句子与其来源的对应程度。不说明回答是否适用于某一患者。",
    },
    "departments": {
        "en": "For patients and the people at the desk: to find the right department of this hospital for a "
        "complaint. It repeats the hospital's own guide; it is no diagnosis, and it can miss what is urgent.",
        "zh": "供患者和导诊人员使用：按不适找到本院相应的科室。仅转述本院的科室指南，不是诊断，也可能看不出紧急情况。",
    },
    "explain": {
        "en": "For patients, given out by the staff who treat them: to understand the words of a medical order. It "
        "explains what the order says; it gives no advice and changes nothing. Ask your care team before you act "
        "on it.",
        "zh": "供医护人员发给其患者：帮助看懂医嘱中的用语。只说明医嘱写了什么，不提供建议，也不改变医嘱；"
        "如有疑问请先问您的医护人员。",
    },
}


def purpose(workflow: str, language: str) -> str:
    """The intended user and purpose of ``workflow``, in ``language`` (English where there is no other)."""
    texts = PURPOSES[workflow]
    return texts.get(language, texts["en"])
