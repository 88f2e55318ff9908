"""The words by which prose tells what a record says of whom, as patterns: a reader of ``text/records.toml``.

They are searched within one sentence; what they decide stands in ``text``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from localmed.domain.patient import Measured
from localmed.text import measures, units
from localmed.text.tables import cues, in_characters, in_words, listed, table

SENTENCE_CHARACTERS = 600  # characters; a longer one is cut, and read in parts
HEADING_INDENT = 8
START = r"(?:^|(?<=[.。;；\n]))"
WITHIN = r"(?<=[\s,，])"  # a sentence: an allergy with a colon is read there as well

_TABLE = table("records")
_DOSES = units.dose_names(counted=True)


def _heading(name: str, entry: Mapping[str, str]) -> str:
    before = rf"(?:(?:{in_characters(entry['before'])}) )?" if "before" in entry else ""
    english, chinese = in_characters(entry["en"]), in_characters(entry["zh"])
    words = rf"(?:#+ {{0,4}}|\d{{1,2}}[.)、] {{0,4}})?(?:{before}(?:{english})|{chinese})[ \t]{{0,4}}"
    made = rf"{START}[ \t]{{0,{HEADING_INDENT}}}{words}(?:[:：]|\n|[-–] )"
    return rf"(?P<{name}>{made}|{WITHIN}{words}[:：])" if name == "allergies" else rf"(?P<{name}>{made})"


HEADING = re.compile("|".join(_heading(name, entry) for name, entry in _TABLE["headings"].items()), re.IGNORECASE)
HEADED = re.compile(r"[^.;。；:：\n]{1,40}[:：][ \t]{0,4}$")  # what stands right before a list's first sentence
SENTENCE = re.compile(rf"(?:[^.;。；\n]|\.(?=\d)){{1,{SENTENCE_CHARACTERS}}}")
ITEM = re.compile(r"(?:[^,，、;；\n]|(?<=\d),(?=\d))+")
AND = re.compile(r"\band\b|和|及", re.IGNORECASE)
LEAD = re.compile(
    r"[\s\-*•·]*(?:\d{1,2}[.)、]\s*)?(?:(?:of|an?|the|that of|includes?)\s+|既往|曾|含|为|有|患|：|:)*", re.IGNORECASE
)
DENIED = cues("negation", "record")  # searched before an entry, or in its own clause
REPLACED = cues("records", "replaced")
STOPPED = re.compile(rf"{cues('records', 'stopped').pattern}|{REPLACED.pattern}", re.IGNORECASE)
PLANNED = cues("records", "planned")
NOT_NOW = re.compile(
    "|".join((STOPPED.pattern, PLANNED.pattern, cues("records", "not_taking").pattern)), re.IGNORECASE
)  # searched in a whole block of lines
RELATIVE = cues("records", "relative")
ALLERGIC = cues("records", "allergic")
NOT_TAKEN = cues("records", "not_taken")
LATER_CLAUSE = re.compile(r"\s*(?:which|but|both|all|now|then|not|on hold)\b|\s*[(（]", re.IGNORECASE)
TAKING = re.compile(
    rf"(?:^|\b(?:{in_characters(_TABLE['taking']['before_on'])})\s+|[,(]\s*|[.;\n]\s*)on\b"
    rf"|{cues('records', 'taking').pattern}",
    re.IGNORECASE,
)
AMOUNT = re.compile(
    rf"[^\d,，、;；。\n]{{0,24}}?\d[\d.,]*\s?(?:{_DOSES})s?(?![a-z/])"
    rf"|\s*(?:{in_characters(_TABLE['directions']['frequencies'])})",
    re.IGNORECASE,
)
_DIRECTIONS = [name.replace("*", r"\w*") for name in listed(_TABLE["directions"]["en"])]
DIRECTIONS = re.compile(
    rf"(?:[\s\d.,/()（）+-]|{_DOSES}|s\b|{'|'.join(_DIRECTIONS)}|{in_characters(_TABLE['directions']['zh'])})*",
    re.IGNORECASE,
)
PROBLEM_CUE = re.compile(
    rf"\b(?:{in_characters(_TABLE['has_problem']['en'])}) (?P<en>[^.,;()\n]{{3,80}})"
    rf"|(?:{in_characters(_TABLE['has_problem']['zh'])})(?P<zh>[^，、。；\n]{{2,20}})"
    r"|(?P<zh2>[\u4e00-\u9fff0-9]{2,10}?)(?:病?史)(?=\d|多年|[一二三四五六七八九十]+余?年)",
    re.IGNORECASE,
)
ALLERGY_CUE = re.compile(
    r"\b(?:allergic|reaction) to (?P<en>[^.,;:()\n]{3,60})|\b(?P<en2>[a-z]{4,20}) allergy\b"
    r"|对(?P<zh>[^，。；、\n]{1,12}?)过敏|(?P<zh2>[\u4e00-\u9fff]{2,8}?)皮试阳性",
    re.IGNORECASE,
)
_REACTED = {name: in_characters(words) for name, words in _TABLE["reacted"].items()}
REACTION = cues("records", "reactions")
RELIEVED = cues("records", "relieved")
# Between a reaction and the medicine behind it ("a rash with penicillin"), and between a medicine and its reaction.
REACTED_TO = re.compile(
    rf"\w*\s+(?:(?:{_REACTED['first_en']})\s+)?(?:{_REACTED['to_en']})\s+(?:(?:{_REACTED['of_en']})\s+){{0,3}}",
    re.IGNORECASE,
)
REACTION_OF = re.compile(
    rf"\s*[-–:：=>→(（]+\s*(?:\w+\s+){{0,2}}|\s+(?:{_REACTED['gave_en']})\s+(?:\w+\s+){{0,4}}"
    rf"|[^，。；、\n]{{0,4}}(?:{_REACTED['gave_zh']})[^，。；、\n]{{0,4}}",
    re.IGNORECASE,
)
# All that a list says, if it says that there is nothing: "none known", "no drug allergies", 无药物及食物过敏史.
_BARE = {name: in_characters(words) for name, words in _TABLE["nothing"].items()}
_NOTHING = (
    rf"[\s:：-]*(?:(?:{_BARE['begins_en']})\b(?:[ /,]+(?:{_BARE['en']}))*|(?:{_BARE['begins_zh']})(?:{_BARE['zh']})*)"
    r"[\s.。]*"
)
NO_ALLERGEN = frozenset(listed(_TABLE["no_allergen"]["en"]))
_NO_ENTRY = _TABLE["no_entry"]
NO_ENTRY = re.compile(
    rf"(?:{in_characters(_NO_ENTRY['ends_zh'])})$|^(?:{in_characters(_NO_ENTRY['begins_zh'])})|^(?:{in_words(_NO_ENTRY['begins_en'])})"
    r"|\d\s?(?:mg|mcg|g|ml|years? old|岁|单位)\b|^\d[\d.]*\s?[/x]",
    re.IGNORECASE,
)

NOTHING = re.compile(_NOTHING, re.IGNORECASE)
AT_THE_AGE = re.compile(r"\b(?:since|at|from|until|as an?|when|by|aged?) (?:the age of |he was |she was )?$")
TITLE = re.compile(r"M[RS]|MRS")  # in capitals it is as often something else
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


def _of_sex(sex: str) -> str:
    """What tells a sex, in folded text."""
    entry = _TABLE["sex"]
    words, characters = in_words(entry[f"{sex}_en"]), in_characters(entry[f"{sex}_zh"])
    return rf"(?P<{sex}>\b(?:{words})|\bsex\s{{0,3}}:?\s{{0,3}}{sex[0]}\b|{characters})"


SEX = re.compile(rf"(?:{in_characters(_TABLE['sex']['not_zh'])})|{_of_sex('female')}|{_of_sex('male')}")
PREGNANT = re.compile(
    rf"{cues('records', 'pregnant').pattern}|weeks? (?:pregnant|of gestation)"
    r"|(?:妊娠|怀孕|孕)\s{0,2}\d{1,2}\s{0,2}\+?\d?\s{0,2}周"
)
NOT_PREGNANT = cues("records", "not_pregnant")


# --- whether a result is surely the patient's present one -------------------------------------------------------------

# "Creatinine clearance 70, fell to 18 mL/min" holds two values, and no rule can tell which holds now. Such a result is
# shown with its words, and its value is not read.
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
