"""Departments: finds the department for a complaint in lay words, with floor and reason, from the hospital's guide.

Dual-RAG ("System design"): the guide is searched by words and by meaning and reranked, departments are chosen from the
results and checked against the guide. A department that the guide lacks, or whose section does not support the reason,
is dropped. Beyond the paper:

- The safety screen comes first. If somebody in danger also reports an emergency ("I want to die, I took all my
  tablets"), the safety message stands before the Emergency Department, and nothing else is named.
- Red flags put the Emergency Department first, and beside it only a department that fits them. A complaint that is only
  worded like an emergency gets it first too, as uncertain, and the others below: of another author's 111 ordinary
  complaints without a red flag half are worded so, of 21 such emergencies 20.
- ``SHOWN`` departments are named, in the order of the search: over complaints of another author no score of words and
  persons did better; the right one is the first for 75 of 120, among three for 94.
- Floor, hours and extension are quoted from the guide. Nothing is diagnosed.

The guide is the content of all collections of kind ``local`` (``retrieval.guide``). It is searched in the complaint's
language, then in any language if no department was found.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice

from localmed.answering import check
from localmed.answering.asking import QuestionInput
from localmed.answering.guidance import (
    DEPARTMENT,
    EMERGENCY,
    FINAL_CHECK,
    Advised,
    CheckInput,
    Department,
    GuidanceInput,
    check_by_rule,
    reason,
)
from localmed.domain import (
    Answer,
    AnswerStatus,
    Evidence,
    Message,
    Provenance,
    SearchFilter,
    Statement,
    Verification,
    message,
    number_to_call,
)
from localmed.domain.answers import from_one
from localmed.domain.findings import Closeness, Found
from localmed.domain.parts import DepartmentPart
from localmed.retrieval import guide
from localmed.safety.red_flags import fits, flagged, specialties
from localmed.text.language import detect, sentences, words
from localmed.text.lay_words import added
from localmed.workflows.ask import check_statements
from localmed.workflows.finding import Notes, Plan, cared, minted, overdue, refused, screened
from localmed.workflows.flow import Flow, Perform, Search, Shown, Step, attempt
from localmed.workflows.receipts import NO_WORDS

CHARACTERS = 4_000  # of a complaint are searched; red flags are looked for in all of it
SECTIONS = 20  # of the guide are read
WHERE = 3  # sentences of a section that say where and when
FLOOR_SECTIONS = 5  # are read for a floor that a department's own section does not say
READABLE = 0.5  # least share of the letters that are Latin or Chinese

NO_GUIDE = message("departments.no_guide")
NO_DEPARTMENT = message("departments.no_department")
NEAREST = message("departments.nearest")
FAR = message("departments.far")
UNREAD = message("departments.unread")
LEXICAL_ONLY = message("workflow.chinese_by_words")
SUICIDE = "suicide"  # the flag that the site's safety message itself answers
LIKENED = ("likened",)  # instead of flags: no known sign, but worded like an emergency

EMERGENCY_WORDS = {"en": "Emergency Department", "zh": "急诊科"}
FLOOR_WORDS = {"en": "{name} floor", "zh": "{name} 楼层"}

Checked = tuple[tuple[Advised, ...], Verification, Notes]  # the remaining departments, the check's record, notes


@dataclass(frozen=True, slots=True)
class GuideResult:
    """Departments found in the guide, best first, and the one for emergencies."""

    departments: tuple[Department, ...] = ()
    emergency: Department | None = None
    dense: bool = False
    far: bool = False  # nothing in the guide is close to the complaint

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The evidence minted for them."""
        every = (*self.departments, *([self.emergency] if self.emergency else []))
        pieces = {piece.marker: piece for department in every for piece in department.evidence}
        return tuple(sorted(pieces.values(), key=lambda piece: int(piece.marker)))


def departments(complaint: str, filters: SearchFilter, plan: Plan, provenance: Provenance) -> Flow:
    """The flow for one complaint; ``filters`` are limited to the guide's collections."""
    concern = bool((yield from screened(complaint, plan)) or (yield from cared(complaint, plan)))
    language = detect(complaint)
    said = flagged(complaint)
    flags, signs = tuple(said), _signs(said)
    always = always_told(provenance.emergency_number)
    begun = Answer(
        AnswerStatus.ABSTAINED, complaint, language, (), (), filters.collections, provenance, workflow="departments"
    )
    if concern:
        begun = refused(complaint, plan, provenance, "departments")
    if problem := _unusable(complaint, filters):
        return replace(begun, notes=(*begun.notes, problem, always))
    if (
        not flags
        and not concern
        and EMERGENCY.name in plan.roles
        and (yield Perform(EMERGENCY, QuestionInput(complaint)))
    ):
        flags, signs = LIKENED, (Message("departments.flag.likened"),)
    searched = complaint[:CHARACTERS]
    apart = concern and not set(flags) - {SUICIDE}  # the message says it all; below it stands the way there
    result: GuideResult = yield from _search_guide(searched, filters, language, flags or ((SUICIDE,) if apart else ()))
    result = replace(result, departments=()) if concern else result
    told = () if apart else _notes(complaint, language, result, flags, signs, provenance.emergency_number)
    begun = replace(begun, notes=(*begun.notes, *told))
    if flags and plan.chat:
        yield Shown(begun)  # nobody waits for a model with an emergency
    advised, account, notes = yield from _advised(searched, result, plan, (SUICIDE,) if apart else flags)
    parts = []
    evidence = result.evidence
    for advice in advised:
        part, more = yield from _part(advice, evidence, filters, language)
        evidence += more
        parts.append(replace(part, signs=signs) if flags and not apart and guide.is_emergency(part.name) else part)
    status = begun.status if concern else AnswerStatus.ANSWERED if parts else AnswerStatus.ABSTAINED
    others = [part for part in parts if not part.signs]
    if others and flags in ((), LIKENED) and not concern:
        near = () if flags else (NEAREST,)  # what may be an emergency is not told of the best match
        begun = replace(begun, notes=(*begun.notes, *((FAR,) if result.far else near)))
        lower = others[0 if result.far else 1 :]
        parts = [replace(part, lower=part in lower) for part in parts]
    made = from_one(replace(begun, status=status, parts=tuple(parts), evidence=evidence, verification=account))
    nothing = () if parts or concern else (NO_DEPARTMENT,)
    always = always_told(provenance.emergency_number, _telephone(parts), urgent=flags not in ((), LIKENED))
    return replace(made, notes=(*made.notes, *notes, *nothing, *overdue(made.evidence), always))


def always_told(number: str, in_guide: str = "", urgent: bool = False) -> Message:
    """What every page says of emergencies; ``number`` is the site's emergency number ("": not told).

    Without a number the guide's own row for emergencies is quoted, ``in_guide``, which may hold inside the hospital
    only. ``urgent``: nothing is made to depend, as "go there if it gets worse" would take the warning back.
    """
    known = message("departments.number_in_guide", cell=in_guide) if in_guide and not number else number_to_call(number)
    return message("departments.call" if urgent else "departments.always", number=known)


def _telephone(parts: Sequence[DepartmentPart]) -> str:
    """The telephone number in the guide's row for all emergencies, as written there, or ""."""
    quoted = (one.text for part in parts if guide.is_for_all_emergencies(part.name) for one in part.statements)
    return next(filter(None, map(guide.telephone, quoted)), "")


def _unusable(complaint: str, filters: SearchFilter) -> Message | None:
    """Why nothing can be looked up, or ``None``."""
    letters = [character for character in complaint if character.isalpha()]
    read = sum(unicodedata.name(letter, "").startswith(("LATIN", "CJK", "FULLWIDTH LATIN")) for letter in letters)
    if letters and read < READABLE * len(letters):
        return UNREAD
    if not words(complaint):
        return NO_WORDS
    return None if filters.collections else NO_GUIDE


def _notes(
    complaint: str, language: str, result: GuideResult, flags: Sequence[str], signs: tuple[Message, ...], number: str
) -> Notes:
    notes: Notes = ()
    if flags:
        warned = message("departments.flagged", signs=signs)
        notes += (message("departments.likened") if flags == LIKENED else warned,)
        notes += () if result.emergency else (message("departments.no_emergency", number=number_to_call(number)),)
    if len(complaint) > CHARACTERS:
        notes += (message("departments.cut", all=len(complaint), read=CHARACTERS),)
    if language == "zh" and not result.dense:
        notes += (LEXICAL_ONLY,)
    return notes


def _signs(said: Mapping[str, Sequence[str]]) -> tuple[Message, ...]:
    """The warning signs, each with the words it was read from."""
    return tuple(
        message("departments.sign", sign=Message(f"departments.flag.{flag}"), words=tuple(own))
        for flag, own in said.items()
    )


# --- the guide --------------------------------------------------------------------------------------------------------


def _search_guide(complaint: str, filters: SearchFilter, language: str, flags: Sequence[str]) -> Step[GuideResult]:
    """The guide's departments for ``complaint``, and the one for emergencies if there are red flags."""
    question = f"{complaint} {added(complaint, language)} {' '.join(specialties(flags, language))}".strip()
    for limit in (replace(filters, language=language), filters):
        requests = [Search(question, limit, SECTIONS)]
        requests += [Search(EMERGENCY_WORDS[language], limit, FLOOR_SECTIONS)] if flags else []
        results: tuple[Found, ...] = yield tuple(requests)
        grouped = guide.by_department(results[0].hits)
        urgent = guide.by_department(results[1].hits if flags else ())
        places = [name for name in (*urgent, *grouped) if flags and guide.is_emergency(name)]
        place = next(iter(sorted(places, key=guide.is_for_all_emergencies, reverse=True)), "")
        if not grouped and not place:
            continue
        of_place = urgent.get(place, grouped.get(place, ()))
        every = {hit.passage.id: hit for group in (*grouped.values(), of_place) for hit in group}
        known = {piece.passage.id: piece for piece in (yield from minted(tuple(every.values())))}
        made = {
            name: Department(name, tuple(known[hit.passage.id] for hit in group))
            for name, group in {**grouped, place: of_place}.items()
            if group
        }
        emergency = made.pop(place, None)
        far = results[0].closeness is Closeness.NOTHING_NEAR
        return GuideResult(tuple(made.values()), emergency, results[0].dense, far)
    return GuideResult()


# --- what is advised --------------------------------------------------------------------------------------------------


def _advised(complaint: str, result: GuideResult, plan: Plan, flags: Sequence[str]) -> Step[Checked]:
    """The departments that were chosen and passed the check, emergencies first.

    Beside an emergency only departments that fit its signs are named: another one would mislead.
    """
    advised, notes = tuple[Advised, ...](), Notes()
    if result.departments and DEPARTMENT.name in plan.roles:
        advised, notes = yield from attempt(DEPARTMENT, GuidanceInput(complaint, result.departments))
    if flags and flags != LIKENED and plan.roles:
        advised = _fitting(complaint, advised, result, flags)
    checked, account, more = yield from _checked(complaint, advised, result, plan)
    notes += more
    if len(checked) < len(advised):
        notes += (message("departments.of_model", count=len(advised) - len(checked)),)
    if flags and result.emergency:
        checked = (Advised(result.emergency.name, (reason(result.emergency, complaint),)), *checked)
    return checked, account, notes


def _fitting(
    complaint: str, advised: tuple[Advised, ...], result: GuideResult, flags: Sequence[str]
) -> tuple[Advised, ...]:
    """The first of ``advised`` that fits the flags, else the first such department of the guide."""
    fitting = (one for one in advised if fits(one.department, flags))
    others = (Advised(one.name, (reason(one, complaint),)) for one in result.departments if fits(one.name, flags))
    return tuple(islice(chain(fitting, others), 1))


def _checked(complaint: str, advised: tuple[Advised, ...], result: GuideResult, plan: Plan) -> Step[Checked]:
    """Those of ``advised`` that pass the check, without unsupported reasons.

    Exceptions of a section are not added to its reasons: they name patients of other departments.
    """
    statements = tuple(one for advice in advised for one in advice.why)
    judged, account = yield from check_statements(complaint, statements, result.evidence, plan)
    waiting = iter(judged)
    kept = tuple(
        replace(advice, why=tuple(one for one in islice(waiting, len(advice.why)) if not one.withheld))
        for advice in advised
    )
    task, notes = CheckInput(complaint, kept, result.departments), Notes()
    passed: tuple[bool, ...] = check_by_rule(task)
    if FINAL_CHECK.name in plan.chat and any(passed):
        chosen, notes = yield from attempt(FINAL_CHECK, task)
        passed = tuple(one and other for one, other in zip(passed, chosen, strict=True))
        standing = message("gate.departments_stand", standing=sum(passed), count=len(passed))
        account = replace(account, checks=(standing,))
    return tuple(advice for advice, passes in zip(kept, passed, strict=True) if passes), account, notes


def _part(
    advised: Advised, evidence: tuple[Evidence, ...], filters: SearchFilter, language: str
) -> Step[tuple[DepartmentPart, tuple[Evidence, ...]]]:
    """The department with its floor and the guide's quoted row or sentences on place and hours; and new evidence."""
    name, more = advised.department, tuple[Evidence, ...]()
    floor = guide.floor(name, [piece.passage for piece in evidence])
    searched: Found = yield Search(FLOOR_WORDS[language].format(name=name), filters, FLOOR_SECTIONS)
    row = guide.row(name, [hit.passage for hit in searched.hits])
    if floor is None:
        floor = guide.floor(name, [hit.passage for hit in searched.hits])
    wanted = {one.passage.id for one in (floor, row) if one}
    known = {piece.passage.id: piece for piece in evidence}
    if hits := [hit for hit in searched.hits if hit.passage.id in wanted - known.keys()]:
        more = yield from minted(hits, evidence)
        known |= {piece.passage.id: piece for piece in more}
    quotations = [known[row.passage.id].quotation(row.start, row.end)] if row else []
    if not row or (floor and floor.text.casefold() != row.text.casefold()):
        own = [piece for piece in known.values() if guide.department(piece.passage) == name]
        quotations += [one for piece in own for one in _where(piece)][:WHERE]
    said = {one.text for one in advised.why}
    shown = tuple(check.verbatim(one) for one in quotations if one.text not in said)
    return DepartmentPart(name, (*advised.why, *shown), floor.text if floor else ""), more


def _where(piece: Evidence) -> Iterator[Statement]:
    """The sentences of a section on floor, hours and telephone."""
    for start, end in sentences(piece.passage.text):
        if guide.says_where(piece.passage.text[start:end]):
            yield piece.quotation(start, end)
