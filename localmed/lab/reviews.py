"""Blinded reviews in the pages: two configurations answer a question set, and people rate the answers blinded.

The cases are stored sealed, the ratings by code. Orders and codes are drawn again from the seed when needed
(``review_sheets``). Closing a review reveals the systems and ends rating. A safety officer may delete a review with its
ratings.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from localmed.domain import Answer, Message, message
from localmed.domain.accounts import Right
from localmed.domain.errors import InputError, UnknownName, UsageError
from localmed.lab import review_sheets as review
from localmed.lab.review_sheets import Block, Key
from localmed.library import generations
from localmed.library.access import hidden_from
from localmed.library.state import rows
from localmed.people import accounts
from localmed.people.sealing import seal, unseal
from localmed.process.hooks import Hooks
from localmed.site import stops
from localmed.text.identifiers import unnamed
from localmed.text.language import clean

if TYPE_CHECKING:
    from localmed.lab.reporting import Report
    from localmed.site.session import Session

MOST_QUESTIONS = 200  # answered here, by each of two configurations: minutes on a workstation
LONGEST = 2_000_000  # characters of cases that are given
SYSTEMS = ("A", "B")


@dataclass(frozen=True, slots=True)
class Configuration:
    """A stored generation of the library, and a preset ("": by priority)."""

    generation: int
    preset: str = ""


@dataclass(frozen=True, slots=True)
class Setup:
    """A review to make: both configurations answer its questions; ``cases`` are given cases as JSON lines."""

    title: str
    form: str
    reviewers: tuple[str, ...]
    questions: tuple[str, ...]
    configurations: tuple[Configuration, Configuration]
    cases: str = ""


@dataclass(frozen=True, slots=True)
class Review:
    """The state of a review: cases rated by each reviewer, of ``count``."""

    id: str
    title: str
    form: str
    configurations: tuple[str, ...]
    time: float
    closed: bool
    progress: tuple[tuple[str, int], ...]
    count: int


def make(session: Session, setup: Setup, shown: Callable[[Answer], str], hooks: Hooks) -> Message:
    """Answer the questions and open the review; ``shown`` renders the text to rate. Raise as ``checked`` does."""
    session.require(Right.SAFETY)
    checked(session, setup)
    id_ = secrets.token_urlsafe(9)
    cases = "\n".join((*_answer_cases(session, setup, shown, hooks), setup.cases.strip()))
    made = review.cases(cases, setup.title, setup.form)
    pairs = zip(SYSTEMS, setup.configurations, strict=True)
    names = [f"{name}: {choice.generation} {choice.preset}".strip() for name, choice in pairs]
    values = {"title": setup.title, "form": setup.form, "seed": secrets.randbelow(2**31), "cases": cases,
              "configurations": names if setup.questions else []}  # fmt: skip
    with session.change("safety review", id_) as change, rows(session.data) as state:
        change.outcome = f"{len(made)} cases"
        sealed = seal(session.data, json.dumps(values, ensure_ascii=False).encode(), "review", id_)
        state.execute(
            "INSERT INTO reviews (id, user, time, reviewers, sealed) VALUES (?, ?, ?, ?, ?)",
            (id_, session.caller.user, time.time(), json.dumps(setup.reviewers), sealed),
        )
    return message("review.opened", count=len(made))


def checked(session: Session, setup: Setup) -> None:
    """Raise ``UsageError`` for an invalid review."""
    session.require(Right.SAFETY)
    known = {account.user for account in accounts.accounts(session.data)}
    if not setup.title or not setup.reviewers or not set(setup.reviewers) <= known:
        raise UsageError("review.accounts")
    if len(setup.questions) > MOST_QUESTIONS or len(setup.cases) > LONGEST or setup.form not in review.FORMS:
        raise UsageError("review.too_many", most=MOST_QUESTIONS)
    if not setup.questions and not setup.cases.strip():
        raise UsageError("review.nothing")
    if setup.questions and len(set(setup.configurations)) < 2:
        raise UsageError("review.one_configuration")


def _answer_cases(session: Session, setup: Setup, shown: Callable[[Answer], str], hooks: Hooks) -> Iterable[str]:
    """The questions as cases, with the answers of both configurations."""
    texts: list[dict[str, str]] = [{} for _ in setup.questions]
    start, advance = hooks.counter()
    start(len(setup.questions) * len(SYSTEMS))
    for system, configuration in zip(SYSTEMS, setup.configurations, strict=True):
        if not setup.questions:
            break
        with (
            generations.lease(session.data, configuration.generation) as path,
            session.site.candidate(path, _hidden_collections(session, setup.reviewers)) as workspace,
        ):
            for number, question in enumerate(setup.questions):
                texts[number][system] = shown(session.try_question(question, workspace, configuration.preset or None))
                advance(1, "")
    for number, (question, answers) in enumerate(zip(setup.questions, texts, strict=True), 1):
        case = {"id": f"question {number}", "question": unnamed(question), "answers": answers}
        yield json.dumps(case, ensure_ascii=False)


def _hidden_collections(session: Session, reviewers: Iterable[str]) -> frozenset[str]:
    """The collections that some reviewer may not read, and stopped ones; they are excluded from answers."""
    known = [accounts.account(session.data, name) for name in reviewers]
    groups = [None if account.reads_all else frozenset(account.groups) for account in known]
    return stops.stopped(session.data, stops.COLLECTION).union(*(hidden_from(one, session.data) for one in groups))


def reviews(session: Session) -> list[Review]:
    """All reviews, newest first; raise ``NotAllowed`` for other users than safety officers."""
    session.require(Right.SAFETY)
    return [_review(session, one) for one in _stored(session)]


def review_of(session: Session, id_: str) -> Review:
    """The review ``id_``; raise ``UnknownName``, or ``NotAllowed`` for other users than safety officers."""
    session.require(Right.SAFETY)
    return _review(session, *_stored(session, id_))


def to_rate(session: Session) -> list[tuple[str, str, int]]:
    """The open reviews that ask the session's user to rate: id, title, and number of cases left."""
    made = [_review(session, one) for one in _stored(session, user=session.caller.user)]
    return [(row.id, row.title, row.count - dict(row.progress)[session.caller.user]) for row in made]


class _Stored(NamedTuple):
    """A stored review, unsealed, with its redrawn sheets and key."""

    id: str
    time: float
    closed: bool
    values: Mapping[str, Any]
    sheets: review.Sheets
    key: Key


def _stored(session: Session, id_: str = "", user: str = "") -> list[_Stored]:
    """The review ``id_`` alone, or all, newest first, or the open ones of the reviewer ``user``.

    Raise ``UnknownName`` where there is no ``id_``, or it is not one of the ``user``'s.
    """
    query = "SELECT id, time, reviewers, closed, sealed FROM reviews WHERE ? IN ('', id) ORDER BY time DESC"
    made = []
    with rows(session.data) as state:
        found = state.execute(query, (id_,)).fetchall()
    for name, moment, reviewers, closed, sealed in found:
        if not user or (user in json.loads(reviewers) and not closed):
            values = json.loads(unseal(session.data, sealed, "review", name))
            cases = review.cases(values["cases"], values["title"], values["form"])
            drawn = review.make_sheets(cases, json.loads(reviewers), values["form"], values["seed"])
            made.append(_Stored(name, moment, bool(closed), values, *drawn))
    if id_ and not made:
        raise UnknownName("review.unknown")
    return made


def _review(session: Session, one: _Stored) -> Review:
    rated = _ratings(session, one.id)
    progress = tuple(
        (reviewer, sum(any(code in rated for code, _ in block.answers) for block in sheet))
        for reviewer, sheet in one.sheets.items()
    )
    values, count = one.values, len(next(iter(one.sheets.values())))
    return Review(one.id, values["title"], values["form"], tuple(values["configurations"]), one.time, one.closed,
                  progress, count)  # fmt: skip


def _ratings(session: Session, id_: str) -> dict[str, dict[str, int]]:
    """Code -> dimension -> value."""
    stored: dict[str, dict[str, int]] = {}
    with rows(session.data) as state:
        query = "SELECT code, dimension, value FROM review_ratings WHERE review = ?"
        for code, dimension, value in state.execute(query, (id_,)):
            stored.setdefault(code, {})[dimension] = value
    return stored


def next_block(session: Session, id_: str) -> tuple[Block | None, Key, int, int]:
    """The first case that the user has not rated (None: all are), the key, and the counts of rated and all cases."""
    (one,) = _stored(session, id_, session.caller.user)
    blocks, rated = one.sheets[session.caller.user], _ratings(session, id_)
    left = [block for block in blocks if not any(code in rated for code, _ in block.answers)]
    return (left[0] if left else None), one.key, len(blocks) - len(left), len(blocks)


def rate(session: Session, id_: str, values: Mapping[tuple[str, str], str]) -> None:
    """Store the user's ratings: (code, dimension) -> value; raise ``InputError`` for an invalid one."""
    (one,) = _stored(session, id_, session.caller.user)
    own = {code for block in one.sheets[session.caller.user] for code, _ in block.answers}
    offered = {dimension.name: {str(value): value for value in dimension.values} for dimension in one.key.dimensions}
    if not values or any(code not in own or text not in offered.get(name, ()) for (code, name), text in values.items()):
        raise InputError("review.not_offered")
    with rows(session.data) as state:
        state.executemany(
            "INSERT OR REPLACE INTO review_ratings (review, reviewer, code, dimension, value) VALUES (?, ?, ?, ?, ?)",
            [(id_, session.caller.user, code, name, offered[name][text]) for (code, name), text in values.items()],
        )
    session.note("review", id_, f"{len(values)} ratings")


def close(session: Session, id_: str) -> None:
    """End the rating and reveal the systems."""
    _stored(session, id_)
    with session.change("safety unblind", id_), rows(session.data) as state:
        state.execute("UPDATE reviews SET closed = 1 WHERE id = ?", (id_,))


def delete(session: Session, id_: str) -> None:
    """Delete the review with its ratings."""
    _stored(session, id_)
    with session.change("safety discard", id_), rows(session.data) as state:
        state.execute("DELETE FROM reviews WHERE id = ?", (id_,))
        state.execute("DELETE FROM review_ratings WHERE review = ?", (id_,))


def report(session: Session, id_: str) -> Report | None:
    """The report on a closed review; None without ratings, or if it is open."""
    from localmed.lab import agreement

    session.require(Right.SAFETY)
    (one,) = _stored(session, id_)
    if not one.closed:
        return None
    ratings, left_out = review.merge_ratings([_ratings(session, id_)], one.key)
    return agreement.report(ratings, one.key.form, left_out, one.key.seed) if ratings else None


def cleaned(text: str) -> tuple[str, ...]:
    """The non-empty lines of ``text``."""
    return tuple(line for line in map(str.strip, clean(text).splitlines()) if line)
