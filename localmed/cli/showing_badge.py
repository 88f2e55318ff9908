"""The badge as it is printed: a word and a symbol, never a colour alone, with its reason and its judge."""

from __future__ import annotations

from localmed.cli.common import echo_wrapped
from localmed.cli.texts import KINDS, translated
from localmed.cli.texts_badge import BADGES
from localmed.domain import Badge, Statement, Verification
from localmed.verification.support import unsupported


def show_badge(found: Verification, language: str) -> None:
    """Print the badge, nothing where nobody judged."""
    if found.badge is Badge.NONE:
        return
    texts = BADGES[language]
    judge = "; ".join(_judge(each, language) for each in found.badge_judge.split("; "))
    reason = translated(found.reason, language)
    echo_wrapped(texts["why"].format(badge=texts[found.badge.value], reason=reason), bold=True)
    if found.badge_before is not found.badge:
        echo_wrapped(texts["before"].format(badge=texts[found.badge_before.value]), "  ", "  ")
    if found.badges:
        column = 1 if language == "zh" else 0
        named = (f"{KINDS.get(kind, (kind, kind))[column]} {texts[badge.value]}" for kind, badge in found.badges)
        echo_wrapped(texts["alone"].format(badges="; ".join(named)), "  ", "  ")
    echo_wrapped(texts["judge"].format(judge=judge), "  ", "  ")


def marked(statement: Statement, language: str) -> str:
    """What is put behind a sentence that is shown although its sources do not carry it; else ""."""
    if statement.withheld or not unsupported(statement) or not statement.verdict:
        return ""
    return " " + BADGES[language]["mark"].format(reason=translated(statement.verdict.reason, language))


def _judge(named: str, language: str) -> str:
    """A judge and its errors in the reader's language."""
    name, _, errors = named.partition(" (")
    if not errors:
        return translated(name, language)
    return f"{translated(name, language)} ({translated(errors.removesuffix(')'), language)})"
