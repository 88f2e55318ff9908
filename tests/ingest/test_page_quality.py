"""Which pages need OCR: no text, too little over an image, and text that nobody can read."""

from __future__ import annotations

import random

from localmed.ingest.readers.pdf.page import GARBLED, NO_TEXT, TOO_LITTLE, is_garbled, why_ocr

ENGLISH = (
    "Amoxicillin is the first choice for acute otitis media in children. Give it for five days, and for ten days in "
    "children under two years of age or with a perforation. Azithromycin is kept for patients who are allergic to "
    "penicillin. Check the history of the reaction before it is prescribed, since most reported allergies are not so."
)
CHINESE = "高血压患者应当减少钠盐的摄入，每人每日食盐摄入量不超过五克，同时增加富含钾的食物，多吃新鲜蔬菜和水果。" * 2
TAIWAN = "高血壓患者應當減少鈉鹽的攝入，醫師應該詢問病人過敏史並記錄於病歷，腎臟功能不全者須調整劑量。" * 2
NAMES = (
    "amlodipine losartan hydrochlorothiazide atorvastatin levothyroxine metformin omeprazole gabapentin sertraline "
    "furosemide tamsulosin pantoprazole duloxetine venlafaxine escitalopram rosuvastatin carvedilol warfarin apixaban"
)

ABBREVIATIONS = (
    "COPD CABG LVEF NSTEMI GFR eGFR BMI SpO2 FiO2 PEEP PaCO2 DVT VTE LMWH UFH DOAC VKA INR aPTT CKD ESRD " * 8
)
GENES = "BRCA1 TP53 EGFR KRAS NRAS BRAF PIK3CA PTEN CDKN2A MYC MDM2 FGFR2 KIT PDGFRA JAK2 MPL CALR DNMT3A IDH1 WT1 " * 9


def shifted(text: str, by: int) -> str:
    return "".join(
        chr((ord(letter) - 97 + by) % 26 + 97) if "a" <= letter <= "z" else letter for letter in text.lower()
    )


SOUND = (ENGLISH, ENGLISH.upper(), CHINESE, TAIWAN, NAMES, "12 mg 3.5 mL 140/90 " * 40, "", "•", GENES, ABBREVIATIONS)
UNREADABLE = {
    "unmapped": "\ufffd" * 40 + "Table 2",
    "private": "\ue000\ue001\ue002" * 20,
    "shifted": shifted(ENGLISH, 3),
    "rot13": shifted(ENGLISH, 13),
    "as Latin": CHINESE.encode("gbk").decode("latin-1"),
    "as GBK": CHINESE.encode().decode("gb18030", "ignore"),
    "as Big5": CHINESE.encode("gbk").decode("big5", "ignore"),
    "at random": "".join(chr(random.Random(place).randrange(0x4E00, 0x9FA5)) for place in range(200)),
}


def test_text_that_nobody_can_read_is_garbled_and_sound_text_is_not() -> None:
    assert [text for text in SOUND if is_garbled([text])] == []
    assert [name for name, text in UNREADABLE.items() if not is_garbled([text])] == []


def test_a_blank_page_is_no_scan_and_a_stamp_on_a_scan_is_no_text() -> None:
    assert why_ocr(0, garbled=False, imaged=False, blank=True) is None
    assert why_ocr(0, garbled=False, imaged=True, blank=False) == NO_TEXT
    assert why_ocr(0, garbled=False, imaged=False, blank=False) == NO_TEXT  # letters drawn as outlines
    assert why_ocr(60, garbled=False, imaged=True, blank=False) == TOO_LITTLE
    assert why_ocr(60, garbled=False, imaged=False, blank=True) is None  # a short page
    assert why_ocr(2000, garbled=False, imaged=True, blank=False) is None  # text on a background
    assert why_ocr(2000, garbled=True, imaged=False, blank=False) == GARBLED
