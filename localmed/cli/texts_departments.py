"""The notes of the departments workflow in Chinese, as ``texts.CHINESE``: English pattern -> Chinese."""

from __future__ import annotations

CHINESE = {
    r"The library holds no department guide: no collection of kind local has a passage":
        "资料库中没有科室指南：没有任何 local 类资料集含有内容",
    r"No department of the guide fits what was written; ask at the reception desk":
        "指南中没有与所述相符的科室，请询问服务台",
    r"Only English and Chinese are read; warning signs were not looked for": "仅能识别中文和英文；未查找警示表现",
    r"The text has (\d+) characters; the first (\d+) were matched with the guide, all were read for warning signs":
        "全文共 {1} 个字符；前 {2} 个与指南比对，警示表现则查看了全文",
    r"Warning sign: (.*). The Emergency Department comes first": "警示表现：{1}。请先去急诊科",
    r"The guide names no emergency department: go to the nearest one, or call the emergency number":
        "指南中没有急诊科：请前往最近的急诊科，或拨打急救电话",
    r"(\d+) of the departments named by the language model did not pass the final check and are left out":
        "语言模型给出的科室中有 {1} 个未通过最后核对，已略去",
    r"If it is sudden, severe or getting worse, go to the Emergency Department at once, whatever is listed here":
        "如果发作突然、症状严重或正在加重，无论此处列出什么，请立即去急诊科",
}  # fmt: skip
