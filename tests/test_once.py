"""What is read once within an answer: kept for its thread, and forgotten with it alone."""

from __future__ import annotations

import threading

from localmed.once import forget, once

READ: list[str] = []


@once
def length(text: str) -> int:
    """How long ``text`` is."""
    READ.append(text)
    return len(text)


def test_what_another_answer_forgets_is_kept_for_this_one() -> None:
    READ.clear()
    assert (length("dose"), length("dose")) == (4, 4)

    def answer() -> None:
        length("other")
        forget()

    other = threading.Thread(target=answer)
    other.start()
    other.join()
    assert length("dose") == 4
    assert READ == ["dose", "other"]
    forget()
    assert length("dose") == 4
    assert READ == ["dose", "other", "dose"]
    forget()
