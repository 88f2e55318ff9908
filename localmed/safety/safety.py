"""The safety screen: recognises texts about self-harm, which get the site's message instead of an answer.

*Disclosure*: somebody wants to die or to hurt themselves; everybody gets the message, staff too. *Means*: a question
about a lethal dose or a way to die; patients get the message, staff, who treat poisonings, get cited evidence. Rules
decide first and cannot be switched off; a likeness to known sentences and a chat model may add to their findings, never
remove any. Rules know wordings in English and Chinese; the likeness (``safety_likeness``) catches many others, not all:
``safety_rules`` has the measured rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from localmed.answering import evidence as shown
from localmed.answering.asking import QuestionInput
from localmed.answering.roles import Choosing, Role, asked_by
from localmed.domain import Message, message
from localmed.domain.ports import Choice
from localmed.messages import render

Audience = Literal["patient", "staff"]
Concern = Literal["", "disclosure", "means", "chat"]

READ = 4_000  # characters that a chat model is shown, the last ones: what somebody comes to ask stands at the end


@dataclass(frozen=True, slots=True)
class SafetyInput(QuestionInput):
    """A text by a patient or staff; the result is a ``Screening``."""

    audience: Audience = "staff"


@dataclass(frozen=True, slots=True)
class Screening:
    """The recognised ``concern``, or "", and whether the text's ``subject`` is death or harm."""

    concern: Concern = ""
    subject: bool = False


def site_message(language: str, own_words: str, crisis_line: str, emergency_number: str = "") -> Message:
    """The site's message to somebody in danger: its ``own_words`` in ``language`` (a setting), else the default.

    ``crisis_line`` (a number) replaces ``{line}`` in the site's words, or follows them. The default also names the
    ``emergency_number`` ("": not told).
    """
    line = message("safety.line", number=crisis_line) if crisis_line else ""
    if not own_words:
        known = message("safety.emergency_line", number=emergency_number, line=line) if emergency_number else line
        return message("safety.message", line=known)
    words = render(line, language) if isinstance(line, Message) else ""
    text = own_words.replace("{line}", words) if "{line}" in own_words else f"{own_words}{words}"
    return message("literal", text=text)


def _prompt(task: SafetyInput) -> str:
    return f"{asked_by(task.language, task.audience, '')}\n"


def _screening(_: SafetyInput, choices: Sequence[Choice]) -> Screening:
    return Screening("chat" if choices[0].best == 0 else "")


# Whether somebody may harm themselves, or a patient asks for a lethal dose (a rule of the house).
SAFETY = Role(
    "safety",
    "1",
    Choosing(
        {"en": ("danger", "ordinary"), "zh": ("危险", "平常")},
        _prompt,
        lambda task: (shown.quoted("text", task.question[-READ:], task.language),),
        _screening,
    ),
)
# Whether a text is like sentences of wanting to die, or of how to, that no wording is known of (a rule of the house).
LIKENESS = Role("safety_likeness", "1")
ROLES = (SAFETY, LIKENESS)
