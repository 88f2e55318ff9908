"""The notes of explained orders in Chinese, as ``texts.CHINESE``: English pattern -> Chinese."""

from __future__ import annotations

CHINESE = {
    r"The order has (\d+) characters; the first (\d+) were read": "医嘱共 {1} 个字符，只读取了前 {2} 个",
    r"The order has (\d+) lines; the first (\d+) are said in plain words": "医嘱共 {1} 行，只改写了前 {2} 行",
    r"Not explained, as at most (\d+) terms are: (.*)": "最多解释 {1} 个用语，以下未解释：{2}",
    r"(\d+) questions were asked; the first (\d+) were answered": "共提出 {1} 个问题，只回答了前 {2} 个",
    r"No medical term was found in the order": "医嘱中没有找到医学用语",
    r"The order was said in plain words by rule; what could not be is quoted. It is no advice":
        "医嘱由规则改写为通俗的话，不能改写的照原文引用；这不是建议",
}  # fmt: skip
