"""The medicines that a text names, under one name each, English or Chinese; and which of them a source does not name.

Known by the endings of international names (``subjects``), by a list of further ones and by classes
(``localmed.medicines``); epinephrine is adrenaline, 对乙酰氨基酚 is paracetamol. A member of a class that a source only
names as a class is not named there. A name that neither ending nor list knows is not seen.
"""

from __future__ import annotations

import re

from localmed import medicines
from localmed.language import fold
from localmed.verification import subjects

_MORE = (
    "indapamide|gliclazide|glimepiride|glipizide|glibenclamide|nitrofurantoin|cetirizine|loratadine|varenicline|nicotine"
    "|co-amoxiclav|co-trimoxazole|salbutamol|clonidine|hydralazine|allopurinol|colchicine|metoclopramide|levodopa"
    "|haloperidol|quetiapine|olanzapine|clozapine|mirtazapine|venlafaxine|gabapentin|pregabalin|levetiracetam"
    "|lamotrigine|carbamazepine|montelukast|ipratropium|tiotropium|trimethoprim|rifampicin|isoniazid|nitroglycerin"
    "|dobutamine|dopamine|vasopressin|bumetanide|furosemide|frusemide|apixaban|ibuprofen|naproxen|diclofenac"
    "|phenobarbital|alteplase|tenecteplase|clopidogrel|ticagrelor|dipyridamole|ivabradine|isosorbide|nicorandil|minoxidil"
    "|methyldopa|moxonidine|ezetimibe|febuxostat|azathioprine|ciclosporin|tacrolimus|mycophenolate|leflunomide"
    "|hydroxychloroquine|pivmecillinam|fosfomycin|vancomycin|teicoplanin|metronidazole|meropenem|aciclovir|oseltamivir"
    "|ethambutol|pyrazinamide|lorazepam|diazepam|midazolam|zopiclone|melatonin|topiramate|lacosamide|primidone|risperidone"
    "|aripiprazole|bupropion|donepezil|memantine|baclofen|buprenorphine|methadone|pethidine|senna|lactulose|macrogol"
    "|bisacodyl|loperamide|cyclizine|domperidone|hyoscine|aminophylline|magnesium sulfate|calcium gluconate"
    "|sodium bicarbonate|ferrous (?:sulfate|fumarate)|folic acid|tranexamic acid|alendronic acid|zoledronic acid"
    "|teriparatide|carbimazole|propylthiouracil|desmopressin|acetylcysteine|flumazenil|protamine|oxytocin|ergometrine"
    "|misoprostol|heparin|noradrenaline|norepinephrine|chlorhexidine|crystalloid|statin|steroid|antihistamine|antibiotic"
)
_CHINESE = {
    "对乙酰氨基酚": "paracetamol", "布洛芬": "ibuprofen", "阿司匹林": "aspirin", "二甲双胍": "metformin",
    "胰岛素": "insulin", "华法林": "warfarin", "去甲肾上腺素": "noradrenaline", "肾上腺素": "adrenaline",
    "沙丁胺醇": "salbutamol", "氨氯地平": "amlodipine", "比索洛尔": "bisoprolol", "氯沙坦": "losartan",
    "雷米普利": "ramipril", "吲达帕胺": "indapamide", "格列齐特": "gliclazide", "呋塞米": "furosemide",
    "螺内酯": "spironolactone", "氯吡格雷": "clopidogrel", "阿托伐他汀": "atorvastatin", "阿莫西林": "amoxicillin",
    "多西环素": "doxycycline", "克拉霉素": "clarithromycin", "依诺肝素": "enoxaparin", "阿哌沙班": "apixaban",
    "泼尼松龙": "prednisolone", "奥美拉唑": "omeprazole", "地高辛": "digoxin", "胺碘酮": "amiodarone",
    "吗啡": "morphine", "可待因": "codeine", "芬太尼": "fentanyl", "胰高血糖素": "glucagon", "硝苯地平": "nifedipine",
}  # fmt: skip
_SAME = {
    "epinephrine": "adrenaline", "norepinephrine": "noradrenaline", "acetaminophen": "paracetamol",
    "albuterol": "salbutamol", "frusemide": "furosemide", "glibenclamide": "glyburide", **_CHINESE,
}  # fmt: skip
_MORE_CHINESE = (
    "呋喃妥因|磷霉素|秋水仙碱|别嘌醇|非布司他|硫唑嘌呤|萘普生|泼尼松|甲泼尼龙|地塞米松|氢化可的松|左甲状腺素|硫酸亚铁|蔗糖铁"
    "|叶酸|硫酸镁|氯化钾|氯化钠|碳酸氢钠|葡萄糖酸钙|异丙托溴铵|布地奈德|孟鲁司特|利奈唑胺|甲硝唑|头孢克肟|头孢呋辛|头孢曲松"
    "|羟考酮|曲马多|纳洛酮|甲氧氯普胺|乳果糖|阿仑膦酸钠|唑来膦酸|地舒单抗|特立帕肽|地西泮|咪达唑仑|劳拉西泮|苯妥英|丙戊酸钠"
    "|卡马西平|左乙拉西坦|碳酸锂|硝酸甘油|单硝酸异山梨酯|利多卡因|多巴胺|阿替普酶|替格瑞洛|利福平|异烟肼|奥司他韦"
)
_LISTED = re.compile(
    rf"(?<![a-z])({_MORE})s?(?![a-z])"
    rf"|({'|'.join(sorted((*_CHINESE, *_MORE_CHINESE.split('|')), key=len, reverse=True))})"
)
_ENDED = 3  # characters of a Chinese name that is in no list: what stands before may be another word


def names(text: str) -> frozenset[str]:
    """The medicines and classes that ``text`` names, each under its one name."""
    return frozenset(name for _, name in places(text)) | medicines.classes(text).keys()


def places(text: str) -> list[tuple[int, str]]:
    """Where ``text``, folded, names a medicine, in order, with its one name."""
    folded = fold(text)
    found = [(match.start(), match[1] or match[2]) for match in _LISTED.finditer(folded)]
    blanked = _LISTED.sub(lambda match: " " * len(match[0]), folded)
    for match in subjects.MEDICINE.finditer(blanked):
        name = match[1] or match[2]
        found.append((match.start(), name if name.isascii() else name[-_ENDED:]))
    return sorted((start, _SAME.get(name, name)) for start, name in found)
