"""Whether a result that prose names is surely the patient's present one: one number, and no word of another time.

"Creatinine clearance 70, fell to 18 mL/min" holds two values, and no rule can tell which holds now. Such a result is
shown with its words, and its value is not read.
"""

from __future__ import annotations

import re

from localmed.clinical import measures, units
from localmed.domain.patient import Measured

# A word that sets a value apart from another time's. A year of age is none.
OTHER_TIME = re.compile(
    r"\b(?:was|were|baseline|previous\w*|prior|now|current\w*|fell|fall\w*|rose|ris\w+|dropp\w*|declin\w*"
    r"|increas\w*|decreas\w*|improv\w*|worsen\w*|initial\w*|earlier|before|since|ago|formerly|years? back"
    r"|last|later|usual\w*|repeat\w*)\b"
    r"|(?<![\d.])(?:19|20)\d\d(?![\d.])|\d年前|既往|基线|现(?!病史|象)|目前|此前|之前|原|曾|降|升(?!压)|前次|上次|去年|前年|月前|周前|日前",
    re.IGNORECASE,
)
# Numbers that are no second value: doses, ages, stages, ranges of what is normal, and the area a rate is divided by.
_OTHER_NUMBER = re.compile(
    rf"\d[\d.,]*\s?(?:{units.dose_names(counted=True)})s?(?![a-z/])"
    r"|\d+[- ]?(?:years?|yrs?|y|months?|weeks?)?[- /]?(?:old\b|o\b)|\d+\s?(?:岁|周|级|期|型|次/分)"
    r"|/\s?1\.73\s?m?2?|\d{2,3}\s?/\s?\d{2,3}"
    r"|\b(?:type|stage|grade|class|nyha|age[d]?|ckd(?: stage)?|x) ?\d\w*|\d\w*(?: ?x ?|\^)\d+|\d型"
    r"|[(（\[][^()（）]{0,24}\d[\d.]*\s?[-–~]\s?\d[\d.]*[^()（）]{0,12}[)）\]]",
    re.IGNORECASE,
)
# In a heading ("Labs 2019:") it holds for all that follows up to a blank line.
_HEADING = re.compile(
    r"(?:\b(?:baseline|previous|prior)\b(?! (?:medical |surgical )?history)|(?<!\d)(?:19|20)\d\d(?!\d)"
    r"|既往(?!史|病史)|基线|上次)[^\n.;。；:：]{0,60}[:：]"
)
_PRESSURES = re.compile(r"\d{2,3}\s?/\s?\d{2,3}")
_BLOCK = 2_000  # characters before a sentence that a heading may stand in
_NEXT = 80  # characters of the sentence after, which may go on about the value: "Now 25 mL/min."


def sure(folded: str, result: Measured, start: int, end: int) -> bool:
    """Whether the sentence ``start:end`` of ``folded``, and what leads or follows it, leaves one value for now."""
    names = [match.start() for one in measures.all_measures() for match in re.finditer(one.pattern, folded[start:end])]
    until = min((start + place for place in names if start + place >= result.end), default=end)
    after = folded[end : end + _NEXT].lstrip(" .。;；\n")
    after = re.split(r"[.。;；\n](?!\d)", after)[0]
    goes_on = OTHER_TIME.match(after) and re.search(r"\d", after) and not measures.mentioned(after)
    numbers = _OTHER_NUMBER.sub(" ", folded[result.end : until])
    again = result.name.endswith("pressure") and _PRESSURES.search(folded[result.end : until])
    own = re.split(r"[,，](?!\d)", folded[start : result.start])[-1]
    return not (
        goes_on
        or again
        or _HEADING.search(folded, max(0, start - _BLOCK, folded.rfind("\n\n", max(0, start - _BLOCK), start)), start)
        or OTHER_TIME.search(folded[start:end])
        or re.search(r"\d", numbers)
        or (re.search(r"\d", _OTHER_NUMBER.sub(" ", own)) and not measures.mentioned(own))
    )
