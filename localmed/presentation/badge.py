"""The badge as a reader sees it: a word and a symbol, its reason, its judges and what is known of their errors."""

from __future__ import annotations

from localmed.domain import BadgeJudge, Message, Verification, message
from localmed.messages import known
from localmed.presentation.neutral import one_line
from localmed.presentation.views import BadgeView, JudgeView
from localmed.presentation.words import words


def badge_view(verification: Verification, language: str) -> BadgeView:
    """The badge of an answer that has one."""
    title = Message(f"badge.{verification.badge.value}")
    reason = words(verification.reason, language)
    differs = verification.badge_before is not verification.badge
    before = Message(f"badge.{verification.badge_before.value}")
    judges = tuple(_judge(judge) for judge in verification.badge_judges)
    return BadgeView(
        badge=verification.badge,
        title=words(title, language),
        reason=words(message("badge.why", badge=title, reason=reason), language),
        judges=tuple(JudgeView(words(name, language), words(errors, language)) for name, errors in judges),
        judged=words(message("badge.judged", judges=tuple(_named(*judge) for judge in judges)), language),
        before=words(message("badge.before", badge=before), language) if differs else "",
        alone=words(message("badge.alone", badges=_alone(verification)), language) if verification.badges else "",
    )


def _alone(verification: Verification) -> tuple[Message, ...]:
    return tuple(
        message(
            "badge.of_kind", kind=Message(f"source.kind.{kind or 'unnamed'}"), badge=Message(f"badge.{badge.value}")
        )
        for kind, badge in verification.badges
    )


def _judge(judge: BadgeJudge) -> tuple[Message, Message]:
    """Name and errors; a judge that this version does not know is called as it calls itself."""
    code = f"badge.judge.{judge.name}"
    name = Message(code) if known(code) else message("literal", text=one_line(judge.name))
    if not judge.wrong:
        return name, message("badge.not_validated")
    errors = tuple(Message(f"badge.wrong_{criterion}", (("percent", share * 100),)) for criterion, share in judge.wrong)
    return name, message("badge.measured", data=judge.measured_on, errors=errors)


def _named(name: Message, errors: Message) -> Message:
    return message("badge.judge_errors", judge=name, errors=errors)
