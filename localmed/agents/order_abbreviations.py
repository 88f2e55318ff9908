"""What the abbreviations of medical orders usually mean, in plain words: a table of our own, English and Chinese.

Shown as a fact called "usual meaning", never as a citation: it is how such marks are mostly read, not what the writer
of this order said. Marks that are known to be misread (QD, U, MS) are here too, because orders hold them; their plain
words let the reader notice what is meant. Where one mark has two usual meanings, both are given.
"""

from __future__ import annotations

import re

from localmed.verification import survival

# As written in lower case without points ("p.r.n." is looked up as "prn"): English, Chinese.
_ENGLISH = {
    # how often and when
    "qd": ("once a day", "每日一次"),
    "qday": ("once a day", "每日一次"),
    "od": ("once a day, or the right eye", "每日一次，或右眼"),
    "bid": ("twice a day", "每日两次"),
    "bd": ("twice a day", "每日两次"),
    "tid": ("three times a day", "每日三次"),
    "tds": ("three times a day", "每日三次"),
    "qid": ("four times a day", "每日四次"),
    "qds": ("four times a day", "每日四次"),
    "qod": ("every other day", "隔日一次"),
    "qam": ("every morning", "每日早晨"),
    "qpm": ("every evening", "每日傍晚"),
    "qhs": ("every night at bedtime", "每晚睡前"),
    "qn": ("every night", "每晚一次"),
    "qw": ("once a week", "每周一次"),
    "qwk": ("once a week", "每周一次"),
    "hs": ("at bedtime", "睡前"),
    "nocte": ("at night", "夜间"),
    "mane": ("in the morning", "早晨"),
    "om": ("every morning, or infection of the middle ear", "每日早晨，或中耳炎"),
    "on": ("every night", "每晚"),
    "ac": ("before meals", "饭前"),
    "pc": ("after meals", "饭后"),
    "prn": ("only when needed", "必要时"),
    "sos": ("only when needed", "必要时一次"),
    "stat": ("at once", "立即"),
    "asap": ("as soon as possible", "尽快"),
    "atc": ("around the clock", "全天按时"),
    # which way
    "po": ("by mouth", "口服"),
    "iv": ("into a vein", "静脉给药"),
    "ivp": ("pushed into a vein with a syringe", "静脉推注"),
    "ivpb": ("through a drip as a short infusion", "静脉短时滴注"),
    "ivgtt": ("through a drip into a vein", "静脉滴注"),
    "ivdrip": ("through a drip into a vein", "静脉滴注"),
    "im": ("into a muscle", "肌内注射"),
    "sc": ("under the skin", "皮下注射"),
    "sq": ("under the skin", "皮下注射"),
    "subq": ("under the skin", "皮下注射"),
    "ih": ("under the skin", "皮下注射"),
    "sl": ("under the tongue", "舌下含服"),
    "pr": ("into the back passage", "直肠给药"),
    "pv": ("into the vagina", "阴道给药"),
    "ng": ("through a tube in the nose", "经鼻胃管"),
    "inh": ("breathed in, or isoniazid (a medicine against tuberculosis)", "吸入，或异烟肼（抗结核药）"),
    "neb": ("breathed in as a mist", "雾化吸入"),
    "top": ("on the skin", "外用"),
    "os": ("the left eye", "左眼"),
    "ou": ("both eyes", "双眼"),
    "npo": ("nothing to eat or drink", "禁食禁饮"),
    "nbm": ("nothing to eat or drink", "禁食禁饮"),
    # amounts and forms
    "tab": ("tablet", "片"),
    "tabs": ("tablets", "片"),
    "cap": ("capsule", "胶囊"),
    "caps": ("capsules", "胶囊"),
    "gtt": ("drops", "滴"),
    "gtts": ("drops", "滴"),
    "susp": ("liquid to be shaken", "混悬液"),
    "supp": ("suppository", "栓剂"),
    "amp": ("ampoule", "安瓿"),
    "mdi": ("spray inhaler", "定量吸入器"),
    "er": ("slow-release form, or the emergency room", "缓释剂型，或急诊室"),
    "xr": ("slow-release form, or X-ray", "缓释剂型，或X线"),
    "sr": ("slow-release form, or normal heart rhythm", "缓释剂型，或窦性心律"),
    # what is done
    "rx": ("prescription or treatment", "处方或治疗"),
    "dx": ("diagnosis", "诊断"),
    "hx": ("history", "病史"),
    "tx": ("treatment", "治疗"),
    "sx": ("symptoms", "症状"),
    "dc": ("stop, or leave the hospital", "停用，或出院"),
    "fu": ("follow-up visit", "复诊"),
    "rtc": ("come back to the clinic", "返回门诊复诊"),
    "nka": ("no known allergies", "无已知过敏"),
    "nkda": ("no known drug allergies", "无已知药物过敏"),
    "otc": ("sold without a prescription", "非处方药"),
    "rom": ("how far a joint moves", "关节活动范围"),
    "wbat": ("put on the leg as much weight as is comfortable", "可耐受负重"),
    "nwb": ("put no weight on the leg", "不负重"),
    "adl": ("everyday tasks such as washing and dressing", "日常生活活动"),
    "adls": ("everyday tasks such as washing and dressing", "日常生活活动"),
    "pt": ("physical therapy, or a blood clotting test", "物理治疗，或凝血酶原时间"),
    "ot": ("occupational therapy", "作业治疗"),
    # tests
    "cbc": ("full blood count", "血常规"),
    "fbc": ("full blood count", "血常规"),
    "bmp": ("blood test of salts, sugar and kidneys", "基础代谢检查"),
    "cmp": ("blood test of salts, sugar, kidneys and liver", "全套代谢检查"),
    "lft": ("liver blood tests", "肝功能检查"),
    "lfts": ("liver blood tests", "肝功能检查"),
    "bun": ("kidney blood test (urea)", "血尿素氮"),
    "wbc": ("white blood cells", "白细胞"),
    "rbc": ("red blood cells", "红细胞"),
    "hgb": ("haemoglobin, the red of the blood", "血红蛋白"),
    "hct": ("share of red cells in the blood, or a CT scan of the head", "血细胞比容，或头颅CT"),
    "plt": ("platelets, which help blood to clot", "血小板"),
    "inr": ("how long blood takes to clot", "国际标准化比值（凝血）"),
    "ptt": ("a blood clotting test", "部分凝血活酶时间"),
    "esr": ("a blood test for inflammation", "血沉"),
    "crp": ("a blood test for inflammation", "C反应蛋白"),
    "tsh": ("a thyroid blood test", "促甲状腺激素"),
    "psa": ("a prostate blood test", "前列腺特异抗原"),
    "bnp": ("a heart failure blood test", "脑钠肽"),
    "abg": ("blood gases from an artery", "动脉血气"),
    "egfr": ("how well the kidneys filter", "估算肾小球滤过率"),
    "a1c": ("average blood sugar over the past months", "糖化血红蛋白"),
    "hba1c": ("average blood sugar over the past months", "糖化血红蛋白"),
    "ua": ("urine test", "尿常规"),
    "ldl": ("the harmful cholesterol", "低密度脂蛋白胆固醇"),
    "hdl": ("the protective cholesterol", "高密度脂蛋白胆固醇"),
    "ecg": ("a tracing of the heart's rhythm", "心电图"),
    "ekg": ("a tracing of the heart's rhythm", "心电图"),
    "eeg": ("a tracing of the brain's activity", "脑电图"),
    "emg": ("a test of nerves and muscles", "肌电图"),
    "cxr": ("chest X-ray", "胸部X线片"),
    "kub": ("X-ray of the belly", "腹部平片"),
    "ct": ("detailed X-ray pictures in slices", "计算机断层扫描"),
    "mri": ("pictures made with a magnet", "磁共振成像"),
    "mra": ("pictures of vessels made with a magnet, or a kind of water tablet", "磁共振血管成像，或一类利尿剂"),
    "pet": ("a scan that shows active tissue", "正电子断层扫描"),
    "egd": ("a camera look into the stomach", "胃镜检查"),
    "cea": (
        "a blood test that can follow some cancers, or an operation on the neck artery",
        "癌胚抗原，或颈动脉内膜剥脱术",
    ),
    "afp": ("a blood test that can follow some cancers", "甲胎蛋白"),
    "bp": ("blood pressure", "血压"),
    "sbp": ("the upper blood pressure number", "收缩压"),
    "dbp": ("the lower blood pressure number", "舒张压"),
    "hr": ("heart rate", "心率"),
    "rr": ("breathing rate", "呼吸频率"),
    "spo2": ("oxygen in the blood", "血氧饱和度"),
    "o2": ("oxygen", "氧气"),
    "bmi": ("weight for height", "体重指数"),
    "bm": ("bowel movement, or breast milk", "排便，或母乳"),
    # conditions
    "htn": ("high blood pressure", "高血压"),
    "dm": ("diabetes, or dextromethorphan (a cough medicine)", "糖尿病，或右美沙芬（止咳药）"),
    "t2dm": ("type 2 diabetes", "2型糖尿病"),
    "cad": ("narrowed heart vessels", "冠心病"),
    "chd": ("heart disease from narrowed vessels, or present from birth", "冠心病，或先天性心脏病"),
    "chf": ("heart failure", "充血性心力衰竭"),
    "mi": ("heart attack", "心肌梗死"),
    "cva": ("stroke", "脑卒中"),
    "tia": ("short stroke-like attack", "短暂性脑缺血发作"),
    "afib": ("irregular heartbeat (atrial fibrillation)", "心房颤动"),
    "dvt": ("blood clot in a deep vein", "深静脉血栓"),
    "pe": ("blood clot in the lung, or physical examination", "肺栓塞，或体格检查"),
    "vte": ("blood clot in a vein", "静脉血栓栓塞"),
    "copd": ("long-term narrowing of the airways", "慢性阻塞性肺疾病"),
    "uri": ("a cold or similar airway infection", "上呼吸道感染"),
    "uti": ("urine infection", "尿路感染"),
    "gerd": ("acid flowing back from the stomach", "胃食管反流病"),
    "ibs": ("irritable bowel", "肠易激综合征"),
    "ckd": ("long-term kidney disease", "慢性肾脏病"),
    "aki": ("sudden kidney damage", "急性肾损伤"),
    "esrd": ("kidney failure that needs dialysis or a transplant", "终末期肾病"),
    "bph": ("enlarged prostate", "前列腺增生"),
    "osa": ("breathing stops during sleep", "阻塞性睡眠呼吸暂停"),
    "ra": ("rheumatoid arthritis, or room air", "类风湿关节炎，或室内空气"),
    "djd": ("worn joints", "退行性关节病"),
    "ms": ("multiple sclerosis, or morphine, or magnesium", "多发性硬化，或吗啡，或镁"),
    "adhd": ("attention deficit hyperactivity disorder", "注意缺陷多动障碍"),
    "ptsd": ("stress after a terrible event", "创伤后应激障碍"),
    "hiv": ("the virus that can cause AIDS", "人类免疫缺陷病毒"),
    "mrsa": ("bacteria that resist common antibiotics", "耐甲氧西林金黄色葡萄球菌"),
    "sob": ("short of breath", "气促"),
    "doe": ("short of breath on effort", "活动后气促"),
    "loc": ("loss of consciousness, or how awake somebody is", "意识丧失，或意识水平"),
    "nsr": ("normal heart rhythm", "窦性心律"),
    # treatments and places
    "nsaid": ("anti-inflammatory painkiller", "非甾体抗炎药"),
    "nsaids": ("anti-inflammatory painkillers", "非甾体抗炎药"),
    "asa": ("aspirin", "阿司匹林"),
    "hctz": ("hydrochlorothiazide, a water tablet", "氢氯噻嗪"),
    "apap": ("paracetamol (acetaminophen)", "对乙酰氨基酚"),
    "abx": ("antibiotics", "抗生素"),
    "ace": ("angiotensin-converting enzyme", "血管紧张素转换酶"),
    "arb": ("a blood pressure medicine (angiotensin receptor blocker)", "血管紧张素受体拮抗剂"),
    "ppi": ("a medicine that lowers stomach acid", "质子泵抑制剂"),
    "ssri": ("a medicine against depression", "选择性5-羟色胺再摄取抑制剂"),
    "ns": ("salt water for a drip", "生理盐水"),
    "lr": ("salt solution for a drip", "乳酸林格液"),
    "d5w": ("sugar solution for a drip", "5%葡萄糖注射液"),
    "kcl": ("potassium chloride", "氯化钾"),
    "cpap": ("a mask that keeps the airway open", "持续气道正压通气"),
    "picc": ("a long thin line in an arm vein", "经外周置入的中心静脉导管"),
    "cabg": ("heart bypass operation", "冠状动脉搭桥术"),
    "tka": ("knee replacement", "全膝关节置换术"),
    "tha": ("hip replacement", "全髋关节置换术"),
    "orif": ("an operation that fixes a broken bone", "切开复位内固定术"),
    "icu": ("intensive care unit", "重症监护病房"),
    "picu": ("children's intensive care unit", "儿童重症监护病房"),
    "nicu": ("newborn intensive care unit", "新生儿重症监护病房"),
    "ed": ("emergency department", "急诊科"),
    "la": ("long-acting form", "长效剂型"),
}

# Chinese marks and short words of orders: Chinese, English.
_CHINESE = {
    "皮试": ("在皮肤上先试是否过敏", "a skin test for allergy first"),
    "静滴": ("通过输液滴入静脉", "through a drip into a vein"),
    "静注": ("注射入静脉", "injected into a vein"),
    "静推": ("用注射器推入静脉", "pushed into a vein with a syringe"),
    "肌注": ("注射入肌肉", "injected into a muscle"),
    "皮下注射": ("注射到皮肤下面", "injected under the skin"),
    "含服": ("含在口中慢慢溶化", "dissolved in the mouth"),
    "顿服": ("一次服下全部剂量", "taken all at once"),
    "必要时": ("需要时才用", "only when needed"),
    "遵医嘱": ("按医生的吩咐", "as the doctor says"),
    "禁食": ("不吃东西", "eat nothing"),
    "禁饮": ("不喝水和其他饮料", "drink nothing"),
    "流质": ("像汤水一样的食物", "liquid food"),
    "半流质": ("像稀粥一样的食物", "very soft food"),
    "血常规": ("检查血液中各种细胞的化验", "full blood count"),
    "尿常规": ("检查尿液的化验", "urine test"),
    "便常规": ("检查大便的化验", "stool test"),
    "心电监护": ("用仪器持续看心跳", "the heartbeat is watched by a machine"),
    "雾化": ("把药变成雾吸入", "breathed in as a mist"),
    "医嘱": ("医生的吩咐", "doctor's orders"),
}

# "q8h", "q.4-6h.", "q 6 hours" are read by pattern: how many of which unit.
EVERY = re.compile(
    r"q\s?\.?\s?(\d{1,3})(?:\s?[-–]\s?(\d{1,3}))?\s?\.?\s?(h|hr|hrs|hours?|d|days?|w|wks?|weeks?|min)\.?(?![a-z])", re.I
)
_UNITS = {"h": ("hour", "小时"), "d": ("day", "天"), "w": ("week", "周"), "m": ("minute", "分钟")}
_POINTS = re.compile(r"[.\s/&-]")


def bare(written: str) -> str:
    """An abbreviation as it is looked up: "p.r.n." is "prn", "B.I.D." is "bid"."""
    return _POINTS.sub("", written).lower()


def usual_meaning(written: str, language: str) -> str:
    """What an abbreviation usually means, in plain words of ``language``; "" where the table does not know it."""
    if written in _CHINESE:
        return _CHINESE[written][language != "zh"]
    if every := EVERY.fullmatch(written.strip()):
        return _every(every, language)
    return _ENGLISH[bare(written)][language == "zh"] if bare(written) in _ENGLISH else ""


def is_written_so(written: str, text: str) -> bool:
    """Whether an abbreviation is written as one in ``text``: capitals tell nothing where the text has nothing else,
    nor behind "stage" or before "joint".
    """
    if bare(written) not in CAPITALS_ONLY and bare(written) not in ("iv", "ac", "sc"):
        return True
    if re.search(
        rf"\b(?:stage|grade|type|class|phase|factor) {re.escape(written)}\b|{re.escape(written)} joint", text, re.I
    ):
        return False
    return bare(written) in ("iv", "ac", "sc") or (written.isupper() and not text.isupper())


def is_direction(written: str) -> bool:
    """Whether an abbreviation only says how, how often or when something is given."""
    return bool(usual_meaning(written, "en")) and any(what in ("time", "way") for what, _ in survival.facts(written))


def _every(match: re.Match[str], language: str) -> str:
    low, high, unit = match[1], match[2], _UNITS[match[3][0].lower()]
    if language == "zh":
        return f"每{low}至{high}{unit[1]}一次" if high else f"每{low}{unit[1]}一次"
    many = f"{low} to {high}" if high else low
    return f"every {unit[0]}" if many == "1" else f"every {many} {unit[0]}s"


ENGLISH = frozenset(_ENGLISH)
CHINESE = frozenset(_CHINESE)
# Ordinary English words, or letters that mean much else: abbreviations only where they are written in capitals.
CAPITALS_ONLY = frozenset(
    re.findall(
        r"\S+",
        """
        on om od os ou er sr ra ms pe pet la top ace arb mane ed pt ot mi cap amp loc fu sl tx top doe sob pr
        ng ns lr mra bm rr hr tab
        """,
    )
)
