"""The words by which prose tells what a record says of whom: headings of its lists, and cues, English and Chinese.

They are searched within one sentence; what they decide stands in ``text``. A cue too many costs an entry, which is then
shown as named only; a cue too few would say of a patient what is not so.
"""

from __future__ import annotations

import re

from localmed.clinical import negation, units

SENTENCE_CHARACTERS = 600  # characters; a longer one is cut, and read in parts
HEADING_INDENT = 8

HEADINGS = {
    "problems": r"(?:active |chronic )?problems?(?: list)?|(?:past |relevant )?(?:medical|surgical) history|history"
    r"|pmhx?|diagnos[ei]s|comorbidit(?:y|ies)|conditions|既往史|既往病史|诊断|初步诊断|入院诊断|出院诊断|基础疾病|合并症",
    "medications": r"(?:current |home |regular )?(?:medications?|medicines?|drugs|meds)"
    r"|用药史|目前用药|当前用药|长期用药|用药|药物",
    "allergies": r"(?:drug |medication |known )?allerg(?:y|ies)|过敏史|药物过敏史?|过敏",
    "family": r"family history|家族史",
    "plan": r"plan|recommendations?|治疗计划|处理|建议",
    "": r"social history|chief complaint|presenting complaint|history of present(?:ing)? illness|hpi"
    r"|examination|physical examination|vital signs|vitals|results|labs?|laboratory|investigations"
    r"|assessment|impression|review of systems|name|sex|gender|age|dob|主诉|现病史|个人史|婚育史|月经史"
    r"|体格检查|查体|辅助检查|化验|检验|检查|治疗|姓名|性别|年龄",
}
START = r"(?:^|(?<=[.。;；\n]))"
STARTS = {"allergies": r"(?:^|(?<=[.。;；\n\s,，]))"}  # of a line or sentence; an allergy is read within one as well
HEADING = re.compile(
    "|".join(
        rf"(?P<{name or 'other'}>{STARTS.get(name, START)}[ \t]{{0,{HEADING_INDENT}}}"
        rf"(?:#+ {{0,4}}|\d{{1,2}}[.)、] {{0,4}})?(?:{pattern})[ \t]{{0,4}}(?:[:：]|\n))"
        for name, pattern in HEADINGS.items()
    ),
    re.IGNORECASE,
)
HEADED = re.compile(r"[^.;。；:：\n]{1,40}[:：][ \t]{0,4}$")  # what stands right before a list's first sentence
SENTENCE = re.compile(rf"(?:[^.;。；\n]|\.(?=\d)){{1,{SENTENCE_CHARACTERS}}}")
ITEM = re.compile(r"(?:[^,，、;；\n]|(?<=\d),(?=\d))+")
AND = re.compile(r"\band\b|和|及", re.IGNORECASE)
LEAD = re.compile(
    r"[\s\-*•·]*(?:\d{1,2}[.)、]\s*)?(?:(?:of|an?|the|that of|includes?)\s+|既往|曾|含|为|有|患|：|:)*", re.IGNORECASE
)

# What a sentence may say of somebody or something else. Searched before an entry, or in its own clause.
DENIED = negation.in_record()
STOPPED = re.compile(  # anywhere in the sentence
    r"\b(?:stop\w*|discontinu\w*|ceas\w+|held|hold|withh\w+|omit\w*|suspend\w*|no longer|previous\w*|former\w*|prior"
    r"|past|used to|was on|were on|had been|until|ago|last (?:year|month|week|visit|time)|completed|finished"
    r"|intoleran\w*|chang\w+|switch\w*|replac\w+|instead)\b|停|暂|曾|既往|以前|过去|换|改",
    re.IGNORECASE,
)
PLANNED = re.compile(
    r"\b(?:consider\w*|plan\w*|would|should|might|could|recommend\w*|suggest\w*|advis\w+|if|trial|wish\w*|wants?"
    r"|targets?|goals?|prescribe|ignore|disregard|please|give|add|says?|told)\b|忽略|无视|请|开具|拟|计划|建议|准备|考虑|将|若|如果|目标",
    re.IGNORECASE,
)
RELATIVE = re.compile(
    r"\b(?:father|mother|parents?|brothers?|sisters?|siblings?|sons?|daughters?|uncles?|aunts?|grand\w+|cousins?|wife"
    r"|husband|partner|family|relatives?|neighbou?rs?)(?:['’]s)?\b"
    r"|父|母|兄|弟|姐|妹|哥|祖|外公|外婆|爷爷|奶奶|家族|家属|儿子|女儿|丈夫|妻|其子|其女",
    re.IGNORECASE,
)
ALLERGIC = re.compile(r"allerg|reaction to|sensitiv|过敏|皮试阳性", re.IGNORECASE)
NOT_TAKEN = re.compile(  # anywhere in a sentence that names a medicine
    r"\b(?:contra-?indicat\w*|caus\w+|wrong\w*|erroneous\w*|error|incorrect\w*|mistake\w*|mistaken\w*|reaction|due to"
    r"|secondary to|induced|hypersensitiv\w*|side[- ]effects?|adverse|overdos\w*|toxicity|rash|anaphyla\w*|angioedema"
    r"|failed|ineffective|duplicate\w*)\b|禁忌|引起|导致|所致|诱发|误|错|副作用|不良反应|皮疹|中毒|过量|无效",
    re.IGNORECASE,
)
LATER_CLAUSE = re.compile(r"\s*(?:which|but|both|all|now|then|not|on hold)\b|\s*[(（]", re.IGNORECASE)
TAKING = re.compile(
    r"(?:^|\b(?:is|are|remains?|continues|he|she|patient|pt|maintained|and)\s+|[,(]\s*|[.;\n]\s*)on\b"
    r"|\b(?:takes?|taking|uses?|using|maintained on|current(?:ly)?)\b"
    r"|服用|口服|使用|服|注射|吸入|治疗|应用",
    re.IGNORECASE,
)
AMOUNT = re.compile(
    rf"[^\d,，、;；。\n]{{0,24}}?\d[\d.,]*\s?(?:{units.dose_names(counted=True)})s?"
    r"(?![a-z/])|\s*(?:daily|nightly|weekly|od|bd|bid|tid|tds|prn|qd|qn|每日|每天|每周|每晚)",
    re.IGNORECASE,
)
# What stands with a medicine and its amount in a clause that is an entry of its own: "Fosamax 70 mg weekly".
DIRECTIONS = re.compile(
    rf"(?:[\s\d.,/()（）+-]|{units.dose_names(counted=True)}|s\b|once|twice|three times|times|dail\w|weekly|nightly"
    r"|night|day|week|morning|evening|bedtime|every|each|at|in|the|a|per|with|meals?|food|as|when|needed|required"
    r"|od|bd|bid|tid|tds|qds"
    r"|prn|qd|qn|on|by|mouth|oral\w*|po|iv|sc|im|mr|xl|sr|mane|nocte|每|日|天|周|晚|早|次|片|粒|一|二|两|三|四"
    r"|口服|睡前|餐前|餐后)*",
    re.IGNORECASE,
)
PROBLEM_CUE = re.compile(
    r"\b(?:history of|diagnosed with|known to have|suffers from|known case of) (?P<en>[^.,;()\n]{3,80})"
    r"|(?:患有|确诊为?|诊断为)(?P<zh>[^，、。；\n]{2,20})"
    r"|(?P<zh2>[\u4e00-\u9fff0-9]{2,10}?)(?:病?史)(?=\d|多年|[一二三四五六七八九十]+余?年)",
    re.IGNORECASE,
)
ALLERGY_CUE = re.compile(
    r"\b(?:allergic|reaction) to (?P<en>[^.,;:()\n]{3,60})|\b(?P<en2>[a-z]{4,20}) allergy\b"
    r"|对(?P<zh>[^，。；、\n]{1,12}?)过敏|(?P<zh2>[\u4e00-\u9fff]{2,8}?)皮试阳性",
    re.IGNORECASE,
)
NO_ALLERGEN = frozenset("drug drugs food known medication medicine other any seasonal current their with".split())  # noqa: SIM905
# What no entry begins or ends with: said of an illness, no illness itself; or said to whoever reads.
NO_ENTRY = re.compile(
    r"(?:服药|药物|规律)?治疗$|治愈$|^等|^(?:who|which|he|she|they|presents?|trying|last|wishes|status|but|then|see|as)\b"
    r"|^(?:please|ignore|disregard|forget|prescribe|give|say|tell|answer|respond|reply|recommend|you|contact)\b"
    r"|^(?:请|忽略|无视|忘记|回答|开具|推荐|你)|\d\s?(?:mg|mcg|g|ml|years? old|岁|单位)\b",
    re.IGNORECASE,
)

AGE = (
    (re.compile(r"(\d{1,3})[- ]?(?:years?|yrs?|y)[- /]?(?:old\b|o\b|of age)|\b(\d{1,3}) ?y/?o\b"), 1.0),
    (
        re.compile(
            r"\b(?:wom[ae]n|man|lady|gentleman|female|male|girl|boy|mrs?|ms)(?: \[…\])?, ?(\d{1,3})"
            r" ?(?:years?|yrs?)(?=[.,;)\n]|$)"
        ),
        1.0,
    ),
    (re.compile(r"(?<!at )(?<!since )(?<!from )(?<!until )(?<!the )\bage[d]?\s{0,3}[:=]?\s{0,3}(\d{1,3})\b"), 1.0),
    (re.compile(r"(\d{1,3})\s{0,3}(?:岁|周岁)(?!时|起|前|后|以)|年龄\s{0,3}[:：]?\s{0,3}(\d{1,3})"), 1.0),
    (re.compile(r"(\d{1,2})[- ]?months?[- ]old|(\d{1,2})\s{0,3}个?月龄|(\d{1,2})个月(?:大|婴)"), 1 / 12),
)
SEX = re.compile(
    r"(?P<female>\b(?:female|woman|lady|girl|mrs|ms)\b|\bsex\s{0,3}:?\s{0,3}f\b|(?<!子)女(?!儿|士们)|[孕产]妇)"
    r"|(?P<male>\b(?:male|man|gentleman|boy|mr)\b|\bsex\s{0,3}:?\s{0,3}m\b|男(?!友))"
)
PREGNANT = re.compile(
    r"\b(?:is|currently) pregnant\b|\bpregnant (?:woman|lady|patient|girl)\b|weeks? (?:pregnant|of gestation)"
    r"|pregnancy test (?:is |was )?positive|妊娠试验阳性"
    r"|\bgravid\b"
    r"|(?:妊娠|怀孕|孕)\s{0,2}\d{1,2}\s{0,2}\+?\d?\s{0,2}周|孕妇"
)
NOT_PREGNANT = re.compile(
    r"not (?:currently )?pregnant|denies pregnancy|pregnancy test (?:is |was )?negative"
    r"|否认(?:妊娠|怀孕)|未(?:妊娠|怀孕|孕)|非妊娠|妊娠试验阴性"
)
