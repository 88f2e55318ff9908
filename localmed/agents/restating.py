"""An order in plain words, by rule: each line read from left to right, what is known said plainly, the rest kept.

Nothing is put in another order and nothing is left out: a dose, a way, how often, how long, a condition and a negation
are replaced where they stand, and every other word stays as written. The verb at the line's beginning decides how the
sentence begins. Then the restatement is held against the line (``verification.survival``): where anything was lost or
added, or where nothing could be said more plainly, the line is quoted and labelled so. It says what the order says; it
is no advice, and it does not judge the order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from localmed import language
from localmed.agents import restating_zh
from localmed.agents.order_abbreviations import is_direction, is_written_so, usual_meaning
from localmed.verification import survival

LINE_CHARACTERS = 600  # of a line that is restated; a longer one is prose, and is quoted

_MARKER = re.compile(r"\s*(?:(?:\(?\d{1,2}[.)、]|[-*•·▪])\s+|\d{1,2}[、)．]\s*|\d{1,2}\.(?=[^\d\s]))")
_PIECE = re.compile(r"[^\n]+")
_LETTER = re.compile(r"[^\W\d_]")
_QUOTED = {"en": "The order's own words: “{line}”", "zh": "医嘱原文：“{line}”"}

Told = str | Callable[[re.Match[str]], str]


def lines(order: str) -> Iterator[tuple[int, int]]:
    """The lines of an order, ``start:end``: its sentences, without list markers."""
    for piece in _PIECE.finditer(order):
        marker = _MARKER.match(piece[0])
        begins = piece.start() + (marker.end() if marker else 0)
        for start, end in language.sentences(order[begins : piece.end()]):
            if _LETTER.search(order, begins + start, begins + end):
                yield begins + start, begins + end


def quoted(line: str, wanted: str) -> str:
    """A line in the order's own words, labelled so."""
    return _QUOTED[wanted].format(line=line)


def survives(line: str, told: str) -> bool:
    """Whether ``told`` holds every fact of ``line`` and none of its own."""
    return bool(told) and not survival.lost(line, told) and not survival.added(line, told)


def plain_line(line: str, wanted: str) -> str:
    """``line`` in plain words if everything of it survives, else ""."""
    if len(line) > LINE_CHARACTERS or language.detect(line) != wanted:
        return ""
    told = restating_zh.plain(line) if wanted == "zh" else plain(line)
    return told if survives(line, told) else ""


# --- English ---------------------------------------------------------------------------------------------------------

_NUMBER = r"\d[\d,]*(?:\.\d+)?|\.\d+"
_RANGE = rf"(?:{_NUMBER})(?:\s?(?:-|–|to|or|/)\s?(?:{_NUMBER}))?"
_PLAIN_UNITS = {
    "mcg": "micrograms", "ug": "micrograms", "μg": "micrograms", "tab": "tablet", "tabs": "tablets", "cap": "capsule",
    "caps": "capsules", "gtt": "drops", "gtts": "drops", "cc": "mL", "ml": "mL", "u": "units", "iu": "units",
    "gm": "g", "gms": "g", "wk": "week", "wks": "weeks", "d": "days", "hr": "hours", "hrs": "hours", "h": "hours",
    "min": "minutes", "mo": "months", "mos": "months", "yr": "years", "yrs": "years",
}  # fmt: skip
_UNIT = (
    r"(?:mg|mcg|ug|μg|kg|gms?|g|meq|mmol|ml|cc|l|units?|iu|u|tab(?:let)?s?|cap(?:sule)?s?|puffs?|gtts?|drops?|sprays?"
    r"|patch(?:es)?|teaspoons?|tsp|tablespoons?|vials?|ampoules?|suppositor(?:y|ies)|%)"
)
_SPAN = r"(?:days?|d|weeks?|wks?|months?|mos?|hours?|hrs?|h|minutes?|min|years?|yrs?|doses?)"


def _unit(name: str) -> str:
    return _PLAIN_UNITS.get(name.lower(), name)


def _amount(match: re.Match[str]) -> str:
    unit = _unit(match["unit"])
    return f"{match['n']} {unit[:-1] if match['n'] == '1' and unit.endswith('s') else unit}"


def _lasting(match: re.Match[str]) -> str:
    return f"for {match['n']} {_unit(match['span'])}"


def _usual(match: re.Match[str]) -> str:
    """An abbreviation's usual meaning: of a way or time alone, of a test or illness with the mark itself after it."""
    written = match[0]
    meaning = usual_meaning(written, "en")
    if not meaning or ", or " in meaning or not is_written_so(written, match.string):
        return written
    return meaning if is_direction(written) else f"{meaning} ({written})"


# What is said more plainly, in this order at each place. A part is set off by commas.
_PARTS: tuple[tuple[str, Told], ...] = (
    (rf"(?:[x×]\s?|for\s+)(?P<n>{_RANGE})\s?-?(?P<span>{_SPAN})(?![\w/])\.?", _lasting),
    (rf"(?P<n>{_RANGE})\s?(?P<unit>{_UNIT})(?![\w/])", _amount),
    (r"p\.?r\.?n\.?(?:\s+for)?\s+(?P<why>[a-z][a-z /-]{2,40}?)(?=[.,;]|$)",
     lambda m: f"only when needed for {m['why']}"),
    (r"(?:disp(?:ense)?[.:]?\s*#?\s?|#\s?(?=[5-9]|\d\d))(?P<n>\d{1,3})(?!\w)", lambda m: f"{m['n']} to be handed out"),
    (r"(?:once|one time) daily", "once a day"),
    (r"(?:once|twice|three times|3 times) (?:a|per|each) (?:week|month)", lambda m: m[0]),
    (r"twice daily", "twice a day"),
    (r"(?:three|3) times daily", "three times a day"),
    (r"(?:four|4) times daily", "four times a day"),
    (r"(?:every day|(?<!times )daily)(?! (?:living|activit))", "once a day"),
    (r"(?:orally|by mouth|oral(?= (?:route|every|once|twice|three|four|daily)))", "by mouth"),
    (r"intravenously", "into a vein"),
    (r"intramuscularly", "into a muscle"),
    (r"subcutaneously", "under the skin"),
    (r"topically", "on the skin"),
    (r"sublingual(?:ly)?", "under the tongue"),
    (r"at bed ?time|before bed", "at bedtime"),
    (r"(?:in|every) (?:the )?a\.?m\.?(?![\w])", "in the morning"),
    (r"(?:in|every) (?:the )?p\.?m\.?(?![\w])", "in the evening"),
    (r"as needed(?: for)?|as required(?: for)?|when needed(?: for)?",
     lambda m: "only when needed" + (" for" if m[0].endswith("for") else "")),
)  # fmt: skip
# "D/C" is also "discharge": read as "stop" only where nothing speaks of leaving.
_DISCHARGE = r"(?! (?:home|to|today|tomorrow|instructions?|plan|planning|summary|when|once|in|from)\b)"
_INSIDE: tuple[tuple[str, Told], ...] = (
    (r"<\s?(?:or )?=\s?|≤\s?", " at most "),
    (r">\s?(?:or )?=\s?|≥\s?", " at least "),
    (r"<\s?", " below "),
    (r">\s?", " above "),
    (r"max\.?(?:imum)?(?= \d)", "at most"),
    (r"(?:do )?not (?:to )?exceed(?: more than)?", "at most"),
    (r"no more than|not more than", "at most"),
    (rf"(?P<n>{_RANGE})[ -]?(?P<span>{_SPAN})(?![\w/])", lambda m: f"{m['n']} {_unit(m['span'])}"),
    (r"w/o\b", "without"), (r"w/", "with "), (r"s/p\b", "after"), (r"c/o\b", "complaining of"),
    (r"h/o\b", "history of"), (r"r/o\b", "to check for"), (r"f/u\b", "follow-up visit"),
    (rf"d/c(?:'?d)?\b{_DISCHARGE}", "stop"),
    (r"until further notice|ufn\b", "until you are told otherwise"),
    (r"tabs?(?= (?:po|by mouth|orally|sl|once|twice|q|b\.?i\.?d|t\.?i\.?d|daily))", "tablet"),
    (r"caps?(?= (?:po|by mouth|orally|once|twice|q|b\.?i\.?d|t\.?i\.?d|daily))", "capsule"),
    (r"nothing by mouth", "nothing to eat or drink by mouth"),
    (r"prior to", "before"), (r"subsequent to", "after"), (r"upon", "on"),
    (r"ambulat(?:e|ion)", "walk"), (r"void(?:ing)?", "pass urine"), (r"administer", "give"),
    (r"(?P<word>sutures?)", lambda m: f"stitches ({m['word']})"),
    (r"(?P<word>incision)", lambda m: f"surgical cut ({m['word']})"),
    (r"(?P<word>hypertension)", lambda m: f"high blood pressure ({m['word']})"),
    (r"(?P<word>o?edema)", lambda m: f"swelling ({m['word']})"),
    (r"(?P<word>emesis)", lambda m: f"vomiting ({m['word']})"),
    (r"(?P<word>dysp?noea|dyspnea)", lambda m: f"shortness of breath ({m['word']})"),
    (r"(?P<word>analgesics?)", lambda m: f"painkillers ({m['word']})"),
)  # fmt: skip
_ABBREVIATION = (
    r"q\.?\s?\d{1,3}(?:\s?[-–]\s?\d{1,3})?\s?\.?\s?(?:hours?|hrs?|h|days?|d|weeks?|wks?|w|min)\.?(?!\w)"
    r"|(?:[a-z]\.){2,5}|[a-z][a-z0-9]{1,5}",
    _usual,
)

# How the sentence begins: the verb of the line -> what the order says to do. {} is the rest of the line.
_BEGINNINGS: tuple[tuple[str, str], ...] = (
    (r"(?:do not|don't|dont|never) (?:take|use)\b", "not to take {}"),
    (r"(?:do not|don't|dont|never) (?:give|administer)\b", "not to give {}"),
    (r"(?:do not|don't|dont|never) (?P<verb>[a-z]+)\b", "not to {verb} {}"),
    (r"avoid\b", "to avoid (keep away from) {}"),
    (r"(?:please )?(?:start|begin|initiate)(?: (?:on|taking))?\b", "to start with {}"),
    (r"(?:please )?continue(?: (?:on|with|taking|to take))?\b", "to go on with {}"),
    (r"(?:please )?resume(?: taking)?\b", "to start again with {}"),
    (rf"(?:please )?(?:stop|discontinue|(?:d/c|dc){_DISCHARGE}|cease)(?: (?:taking|the))?\b(?!')", "to stop {}"),
    (r"(?:please )?(?:hold(?! on\b)|withhold)\b", "to hold (pause, for now) {}"),
    (r"(?:please )?(?:increase|uptitrate)\b", "to raise {}"),
    (r"(?:please )?(?:decrease|reduce|lower|taper)\b", "to lower {}"),
    (r"(?:please )?(?:give|administer|infuse|transfuse)\b", "that this is given: {}"),
    (r"(?:please )?take\b", "to take {}"),
    (r"(?:please )?apply\b", "to put on {}"),
    (r"(?:please )?(?:inhale)\b", "to breathe in (inhaled) {}"),
    (r"(?:please )?inject\b", "to inject {}"),
    (r"(?:please )?(?:check|obtain|order|draw|send|get|repeat|recheck|measure|monitor)\b", "to have checked {}"),
    (r"(?:please )?(?:schedule|arrange|book)\b", "to arrange {}"),
    (r"(?:please )?(?:follow[- ]?up|f/u)(?: visit)?\b", "to come back for a visit {}"),
    (r"(?:please )?(?:return|rtc)\b", "to come back {}"),
    (r"(?:please )?(?:call|notify|contact|inform)\b", "to phone or tell {}"),
    (r"(?:please )?(?:consult|refer)(?: to)?\b", "to be seen by {}"),
    (r"(?:please )?(?:keep|maintain)\b", "to keep {}"),
    (r"(?:please )?(?:drink|eat|rest|use|wear|change|remove|elevate|limit|restrict|wash|walk)\b", "to {verb} {}"),
)  # fmt: skip
_SAYS = "The order says "
_ONLY = "The order says: {}"

_SCAN = tuple(
    (re.compile(rf"(?<![\w]){pattern}" if not pattern.startswith(("<", ">", "#")) else pattern, re.I), told, part)
    for patterns, part in ((_PARTS, True), (_INSIDE, False), ((_ABBREVIATION,), False))
    for pattern, told in patterns
)
_VERBS = tuple((re.compile(pattern, re.I), told) for pattern, told in _BEGINNINGS)
_TO_SPACE = re.compile(r"\s+([,.;:])|,\s*,|:\s*,")


def plain(line: str) -> str:
    """``line`` in plain English words; "" where nothing in it could be said more plainly."""
    verb, told = next(((found, told) for each, told in _VERBS if (found := each.match(line))), (None, ""))
    rest, changed = _scanned(line[verb.end() :] if verb else line)
    rest = rest.strip(" .,:")
    if not rest or not (verb or changed):
        return ""
    if not verb:
        return _ONLY.format(rest) + "."
    action = verb.groupdict().get("verb") or verb[0].split()[-1].lower()
    return _SAYS + told.replace("{verb}", action).replace("{}", rest) + "."


def _scanned(text: str) -> tuple[str, bool]:
    """``text`` with everything known said plainly, and whether anything was."""
    pieces: list[str] = []
    place, changed = 0, False
    while place < len(text):
        match, said, part = _at(text, place)
        if match is None:
            pieces.append(text[place])
            place += 1
            continue
        changed = changed or part or said.lower() != match[0].lower()
        pieces.append(f", {said}, " if part else said)
        place = match.end()
    return _tidy("".join(pieces)), changed


def _at(text: str, place: int) -> tuple[re.Match[str] | None, str, bool]:
    """What is known at ``place`` of ``text``, how it is said, and whether it is a part of its own."""
    for pattern, told, part in _SCAN:
        if match := pattern.match(text, place):
            said = told if isinstance(told, str) else told(match)
            return match, said, part or bool(survival.facts(match[0]) and said != match[0] and pattern is _SCAN[-1][0])
    return None, "", False


def _tidy(text: str) -> str:
    """Commas and blanks as they are printed."""
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r"\s+([,.;:)])", r"\1", text)
    text = re.sub(r":\s*,", ":", re.sub(r"(?:,\s*)+(?=[,.;:)])", "", text))
    text = re.sub(
        r"(\(|\b(?:of|to|by|at|for|from|in|not|no|except|with|and|or|the|a|than|below|above|every|least|most|about|over)),\s",
        r"\1 ",
        text,
        flags=re.I,
    )
    text = re.sub(r",\s+(and|or|of|then|if|to|per|in|with|at|a)\b", r" \1", text)
    return text.strip(" ,")
