"""Settings of the window (``[web]`` of the settings file): logins, history, who may be served."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WebSettings:
    """How long a login and a kept answer last, and what one visitor may cost."""

    names: tuple[str, ...] = ()  # host names by which browsers may call the server, beside localhost and --host
    idle_minutes: float = 15.0  # without a page: signed out; NIST SP 800-63B asks for 30 at most, a shared PC for less
    login_hours: float = 12.0  # then signed out however busy: a shift
    wrong_passwords: int = 5  # in a row for an account, then the computer that they came from waits
    lock_minutes: float = 15.0  # at most that it waits, see operations/throttle.py
    password_characters: int = 12  # at least
    history_days: int = 7  # that an answer is kept for whoever asked; 0: until they sign out
    answers_at_once: int = 2  # that one process makes; models work for one at a time, the rest of an answer does not
    answers_waiting: int = 16  # behind them, then 429; half of the threads that answer requests stay free for search
    answers_for_one: int = 3  # of one user, at work and waiting
    body_bytes: int = 2 * 2**20  # of a request that is no upload; a question or record has some thousand characters
    incident_question: bool = False  # whether an exported incident holds what was asked though nobody reported it
    second_person: bool = False  # whether what somebody uploads must be published by another, who stands as approver
    question_characters: int = 20_000  # of what is typed: a question of a case; what is longer is refused with a word
