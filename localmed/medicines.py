"""Classes of medicines, and the names by which they are written, English and Chinese: for allergies and duplicates.

A short table of what a ward uses most. A medicine that is not in it is not seen: that nothing was found is no proof
that nothing is there.
"""

from __future__ import annotations

import re
import unicodedata

_NAMES = {
    "penicillins": r"penicillins?|[a-z]*cillin|co-amoxiclav|tazobactam|青霉素|[\u4e00-\u9fff]{2}西林",
    "cephalosporins": r"cef[a-z]{3,}|cephal[a-z]+|头孢[\u4e00-\u9fff]{0,3}",
    "carbapenems": r"[a-z]{3,}penem|[\u4e00-\u9fff]{2}培南",
    "macrolides": r"(?:erythro|clarithro|azithro|roxithro)mycin|macrolides?|(?:红|克拉|阿奇|罗红)霉素|大环内酯类?",
    "quinolones": r"[a-z]+floxacin|(?:fluoro)?quinolones?|[\u4e00-\u9fff]{2}沙星|喹诺酮类?",
    "tetracyclines": r"(?:doxy|mino|tetra|tige)cyclines?|四环素|多西环素|米诺环素|替加环素",
    "sulfonamides": r"sulfa(?:methoxazole|diazine|salazine)?|sul(?:f|ph)onamides?|co-trimoxazole|磺胺类?|复方新诺明",
    "ACE inhibitors": r"ace[ -]inhibitors?|acei|angiotensin-converting enzyme (?:\(ace\) )?inhibitors?|[a-z]{3,}pril"
    r"|[\u4e00-\u9fff]{2}普利|血管紧张素转换酶抑制剂",
    "angiotensin receptor blockers": r"arbs?|angiotensin receptor blockers?(?: \(arb\))?|[a-z]{2,}sartan"
    r"|[\u4e00-\u9fff]{1,2}沙坦|血管紧张素受体(?:阻滞|拮抗)剂",
    "NSAIDs": r"nsaids?|ibuprofen|naproxen|diclofenac|indomet[h]?acin|ketorolac|meloxicam|[a-z]+coxib"
    r"|布洛芬|双氯芬酸|萘普生"
    r"|[\u4e00-\u9fff]{2}昔布|非甾体(?:抗炎药|类)?",
    "aspirin": r"aspirin|acetylsalicylic acid|阿司匹林",
    "statins": r"[a-z]*statins?(?<!nystatin)|[\u4e00-\u9fff]{2}他汀|他汀类?",
    "beta blockers": r"[a-z]{2,}olol|beta[- ]?blockers?|[\u4e00-\u9fff]{2}洛尔|β受体阻滞剂",
    "calcium channel blockers": r"[a-z]{2,}dipine|diltiazem|verapamil|calcium channel blockers?"
    r"|[\u4e00-\u9fff]{2}地平|维拉帕米|地尔硫卓|钙通道阻滞剂",
    "thiazides": r"[a-z]*thiazides?(?:-like diuretics?)?|indapamide|chlort[h]?alidone"
    r"|[\u4e00-\u9fff]{0,3}噻嗪类?(?:利尿剂)?|吲达帕胺",
    "aldosterone antagonists": r"spironolactone|eplerenone|finerenone|螺内酯|依普利酮|非奈利酮",
    "metformin": r"metformin|二甲双胍",
    "SGLT2 inhibitors": r"sglt-?2 inhibitors?|[a-z]+gliflozin|[\u4e00-\u9fff]{2}列净",
    "GLP-1 receptor agonists": r"glp-?1 receptor agonists?|[a-z]+glutide|exenatide|[\u4e00-\u9fff]{2,3}鲁肽",
    "DPP-4 inhibitors": r"dpp-?4 inhibitors?|[a-z]+gliptin|[\u4e00-\u9fff]{2}列汀",
    "sulfonylureas": r"sulfonylureas?|gliclazide|glimepiride|glipizide|glibenclamide"
    r"|格列(?:齐特|美脲|吡嗪|本脲)|磺脲类?",
    "insulin": r"insulin|胰岛素",
    "heparins": r"(?:unfractionated )?heparin|[a-z]+parin|[\u4e00-\u9fff]{0,3}肝素",
    "warfarin": r"warfarin|华法林",
    "direct oral anticoagulants": r"direct oral anticoagulants?|doacs?|[a-z]+xaban|dabigatran"
    r"|[\u4e00-\u9fff]{2}沙班|达比加群",
    "opioids": r"morphine|codeine|oxycodone|fentanyl|tramadol|methadone|opioids?"
    r"|吗啡|可待因|羟考酮|芬太尼|曲马多|阿片类?",
    "paracetamol": r"paracetamol|acetaminophen|对乙酰氨基酚",
}  # fmt: skip
_PATTERNS = {name: re.compile(rf"(?<![a-z])(?:{pattern})(?![a-z])") for name, pattern in _NAMES.items()}
# Allergic to the first, a patient may react to the others as well.
_RELATED = {
    "penicillins": ("cephalosporins", "carbapenems"),
    "cephalosporins": ("penicillins",),
    "aspirin": ("NSAIDs",),
    "NSAIDs": ("aspirin",),
}


def classes(text: str) -> dict[str, str]:
    """The classes that ``text`` names a medicine of, each with the first name as it is written there."""
    folded = unicodedata.normalize("NFKC", text).lower()
    return {name: found[0] for name, pattern in _PATTERNS.items() if (found := pattern.search(folded))}


def met_by(allergy: str, text: str) -> dict[str, bool]:
    """The names in ``text`` that an ``allergy`` speaks against, each with whether it is of a related class only."""
    named = classes(text)
    against: dict[str, bool] = {}
    for own in classes(allergy):
        against |= {named[each]: True for each in _RELATED.get(own, ()) if each in named}
        against |= {named[own]: False} if own in named else {}
    return against
