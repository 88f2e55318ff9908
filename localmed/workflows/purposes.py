"""Whom each workflow is for, and for what: printed with every answer. None of them decides, diagnoses or prescribes."""

from __future__ import annotations

from collections.abc import Mapping

PURPOSES: Mapping[str, Mapping[str, str]] = {
    "plan": {
        "en": "For clinical staff and evaluators: to see which source is asked what, and what all of them say "
        "together.",
        "zh": "供临床工作人员和评估人员使用：查看向各来源检索了什么，以及它们共同的内容。仅供阅读参考，不作决定。",
    },
    "ask": {
        "en": "For clinical staff: to find and read what the library says. It supports reading, it does not decide.",
        "zh": "供临床工作人员使用：查找并阅读资料库中的内容。仅供阅读参考，不作决定。",
    },
}


def purpose(workflow: str, language: str) -> str:
    """The intended user and purpose of ``workflow``, in ``language`` (English where there is no other)."""
    texts = PURPOSES[workflow]
    return texts.get(language, texts["en"])
