"""The tree of errors that localmed raises. Each says what happened, to what, and what to do next.

Exit codes: 2 usage, 3 a file was refused, 4 another process is at work, 5 stored data cannot be used, 6 a model failed,
7 the canary questions blocked a change, 130 interrupted, 1 anything else.

Messages contain paths, names, ids and counts, never a question, a patient record or document text.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from typing import Any, Self

from localmed.domain import Message, Parameter, message

LONGEST_WORD = 500  # characters of a parameter of an error from another process
_KNOWN_REASONS = frozenset({  # system errors that the catalogue explains
    errno.EACCES, errno.EEXIST, errno.EISDIR, errno.ENODEV, errno.ENOENT, errno.ENOSPC, errno.ENOTDIR, errno.EPERM,
    errno.EROFS,
})  # fmt: skip


class LocalmedError(Exception):
    """Base of the tree. ``message`` names an entry of the catalogue: what happened, and what to do about it.

    ``what`` and ``remedy`` are in English, for developers and logs; screens render ``messages`` in the reader's
    language.
    """

    exit_code = 1

    def __init__(self, code: str | Message, remedy: Message | None = None, /, **parameters: Parameter) -> None:
        self.message = code if isinstance(code, Message) else message(code, **parameters)
        self._remedy = remedy
        super().__init__(self.message.code)

    @property
    def messages(self) -> tuple[Message, ...]:
        """What happened and, if it is a text of its own, what to do."""
        from localmed.messages import parts

        what, *remedy = parts(self.message)
        return (what, self._remedy) if self._remedy else (what, *remedy)

    @property
    def full_message(self) -> Message:
        """What happened and what to do next, as one message."""
        what, *remedy = self.messages
        return message("error.told", what=what, remedy=remedy[0]) if remedy else what

    @property
    def what(self) -> str:
        """What happened, in English."""
        return self._english(0)

    @property
    def remedy(self) -> str:
        """What to do, in English; "" if ``what`` says it."""
        return self._english(1)

    def within(self, place: str) -> Self:
        """The same error in ``place``: a file, a line, a part."""
        what, *remedy = self.messages
        return type(self)(message("error.within", place=place, what=what), *remedy)

    def _english(self, place: int) -> str:
        from localmed.messages import render

        return " ".join(render(part, "en") for part in self.messages[place : place + 1])

    def __str__(self) -> str:
        return f"{self.what}. {self.remedy}" if self.remedy else self.what


class UsageError(LocalmedError):
    """The command or question is invalid."""

    exit_code = 2


class UnknownName(UsageError):
    """There is no collection, document, passage or generation of that name."""


class BadSettings(UsageError):
    """The settings file or a manifest is wrong; the message names the file and the key."""


class NotAllowed(UsageError):
    """The caller lacks the right."""


class FirstPassword(NotAllowed):
    """The account's first password must be changed before anything else."""


class NotSignedIn(UsageError):
    """Nobody is signed in, or no longer."""


class NoToken(NotSignedIn):
    """A program sent no token."""


class InputError(LocalmedError):
    """A file or record was refused."""

    exit_code = 3


class LimitExceeded(InputError):
    """A file exceeds a named bound (size, pages, seconds, memory)."""


class Busy(LocalmedError):
    """Somebody else is writing to the library, or too many requests are waiting."""

    exit_code = 4


class QueueFull(Busy):
    """Too many questions are waiting for an answer."""

    def __init__(self, code: str | Message, remedy: Message | None = None, /, **parameters: Parameter) -> None:
        super().__init__(code, remedy, **parameters)
        self.seconds = int(str(dict(self.message.parameters).get("seconds", 0)))  # estimated time until a place is free


class Unreachable(Busy):
    """The hospital's directory or sign-on provider does not answer, or cannot prove its identity."""


class DirectoryFault(Unreachable):
    """The hospital's directory answers, but refuses localmed's look-up or returns an incomplete result."""


class LibraryError(LocalmedError):
    """Stored data cannot be used."""

    exit_code = 5


class NoLibrary(LibraryError):
    """Nothing has been imported yet."""


class Damaged(LibraryError):
    """A stored file does not match its manifest."""


class UnreadableIndex(Damaged):
    """An index or database of a generation cannot be read; the file is not identified yet."""


class OriginalChanged(Damaged):
    """The stored original of a document is not the file that was imported."""


class StateLost(Damaged):
    """``site.sqlite`` is missing, or lacks accounts that were recorded."""


class AnotherKey(Damaged):
    """The journal is intact but was written with another key."""


class AccountsAltered(Damaged):
    """The accounts and rights differ from those recorded."""


class DiskFull(LibraryError):
    """There is no disk space left."""


class WrongEncoder(LibraryError):
    """The generation was built with another encoder; encoders never mix."""


class CanariesLost(LocalmedError):
    """A canary question would fail, so the change was blocked."""

    exit_code = 7


class ModelError(LocalmedError):
    """A model could not be loaded or did not answer."""

    exit_code = 6


class Unresponsive(ModelError):
    """A process is alive but has sent nothing in time."""


class Rejected(ModelError):
    """A model's reply violates its schema, has another language or unknown markers, or is empty."""


class NotServed(Rejected):
    """The model has failed in this run, or its time is over; the driver records which."""


class TooLong(ModelError):
    """The prompt does not fit the model's context; the model itself works."""


class Refused(ModelError):
    """A chat server refuses the request."""


class Faltered(ModelError):
    """A chat server did not answer or broke off; a retry may succeed."""


class Cancelled(ModelError):
    """The caller gave up before the work was done."""

    exit_code = 130  # as of a command ended by Ctrl-C


def reason(error: BaseException) -> Message:
    """The cause as a message in the reader's words; a library's own term is a detail for ``--debug``."""
    if isinstance(error, OSError) and error.errno in _KNOWN_REASONS:
        return message(f"system.{errno.errorcode[error.errno]}")
    if isinstance(error, OSError) and error.strerror:
        return Message("system.failed", (("detail", str(error.strerror)),))
    return Message("system.malformed", (("detail", type(error).__name__),))


def details(part: Parameter) -> tuple[str, ...]:
    """The libraries' terms for the cause, from a message and those inside it."""
    if isinstance(part, tuple):
        return tuple(detail for value in part for detail in details(value))
    if not isinstance(part, Message):
        return ()
    return tuple(
        detail for name, value in part.parameters for detail in ((str(value),) if name == "detail" else details(value))
    )


# --- across processes -------------------------------------------------------------------------------------------------


def as_json(error: LocalmedError) -> dict[str, Any]:
    """``error`` as JSON that another process can raise again: class, and messages as codes and parameters."""
    from localmed.messages import as_json as written

    return {"class": type(error).__name__, "messages": [written(part) for part in error.messages]}


def from_json(
    entry: Mapping[str, Any], fallback: type[LocalmedError], among: type[LocalmedError] | None = None
) -> LocalmedError:
    """The error that ``as_json`` wrote; raise ``ValueError`` for anything else.

    Its class must be a subclass of ``among`` (default: ``fallback``), else it becomes ``fallback``. At most two
    messages are read, with texts of at most ``LONGEST_WORD`` characters.
    """
    from localmed.messages import from_json as read

    try:
        what, *remedy = (_short(read(part)) for part in entry["messages"][:2])
        known = {kind.__name__: kind for kind in globals().values() if isinstance(kind, type)}
        kind = known.get(entry["class"], fallback)
        return (kind if issubclass(kind, among or fallback) else fallback)(what, *remedy)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as broken:
        raise ValueError("no error of localmed") from broken


def received(entry: Any) -> Message:
    """The message that another process sent, its texts cut; raise ``ValueError`` for anything else."""
    from localmed.messages import from_json as read

    if not isinstance(entry, Mapping):
        raise ValueError("no message of localmed")
    short: Message = _short(read(entry))
    return short


def _short(value: Any) -> Any:
    if isinstance(value, Message):
        return Message(value.code[:LONGEST_WORD], tuple((name, _short(part)) for name, part in value.parameters))
    if isinstance(value, tuple):
        return tuple(map(_short, value))
    return value[:LONGEST_WORD] if isinstance(value, str) else value


def toml_place(error: ValueError) -> Message:
    """Where a TOML file is invalid: the line, or its end if something is not closed."""
    if isinstance(error, UnicodeDecodeError):
        return message("settings.not_utf8", line=error.object.count(b"\n", 0, error.start) + 1)
    place = re.search(r"at line (\d+), column (\d+)", str(error))
    return message("settings.line", line=int(place[1]), column=int(place[2])) if place else message("settings.end")
