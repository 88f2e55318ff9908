"""Whether a text is of somebody who may harm themselves, or asks how to: then the site's message, and no recipe.

Two things are told apart. *Disclosure*: somebody says that they want to die or to hurt themselves; the message is given
to anyone, staff too. *Means*: a lethal dose or a way to die is asked for; a patient gets the message, while staff, who
treat poisonings, get cited evidence. Rules look first and cannot be switched off; likeness to sentences of our own and
a chat model may add to what they find, never take away from it. Rules know wordings, English and Chinese; the likeness
(``safety_likeness``) also catches many that say it otherwise, and not all: ``safety_rules`` has the measured rates.
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
    """What somebody wrote, and whether they ask as a patient or as staff. The result is a ``Screening``."""

    audience: Audience = "staff"


@dataclass(frozen=True, slots=True)
class Screening:
    """``concern`` says what was recognised, "" if nothing; ``subject`` whether death or harm is spoken of at all."""

    concern: Concern = ""
    subject: bool = False


def site_message(language: str, own_words: str, crisis_line: str) -> Message:
    """What the site says to somebody in danger: its ``own_words`` in ``language`` (a setting), else ours.

    ``crisis_line`` (a number) is put in for ``{line}`` in the site's words, or after them.
    """
    line = message("safety.line", number=crisis_line) if crisis_line else ""
    if not own_words:
        return message("safety.message", line=line)
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
