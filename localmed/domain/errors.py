"""Everything localmed raises on purpose, as one tree. Each error says what happened, to what, and what to do next.

Exit codes: 2 a mistake of usage, 3 a file was refused, 4 somebody else is at work, 5 what is stored cannot be used, 6 a
model failed, 7 a change was kept back by the canary questions, 130 interrupted, 1 anything else.

No message ever carries a question, a patient record or document text: paths, names, ids and counts only.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from typing import Any, Self

from localmed.domain import Message, Parameter, message

LONGEST_WORD = 500  # characters of one parameter of an error that comes from another process
_KNOWN_REASONS = frozenset({  # those of the system that have words of ours
    errno.EACCES, errno.EEXIST, errno.EISDIR, errno.ENODEV, errno.ENOENT, errno.ENOSPC, errno.ENOTDIR, errno.EPERM,
    errno.EROFS,
})  # fmt: skip


class LocalmedError(Exception):
    """Base of the tree. ``message`` names an entry of the catalogue: what happened, and what to do about it.

    ``what`` and ``remedy`` (a command that helps, if there is one) are English, for developers and logs; whoever shows
    an error renders ``messages`` in the reader's language.
    """

    exit_code = 1

    def __init__(self, code: str | Message, remedy: Message | None = None, /, **parameters: Parameter) -> None:
        self.message = code if isinstance(code, Message) else message(code, **parameters)
        self._remedy = remedy
        super().__init__(self.message.code)

    @property
    def messages(self) -> tuple[Message, ...]:
        """What happened, and what to do where that is a text of its own."""
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
        """What to do, in English; "" where ``what`` says it."""
        return self._english(1)

    def within(self, place: str) -> Self:
        """The same error, said of ``place``: a file, a line, a part of one."""
        what, *remedy = self.messages
        return type(self)(message("error.within", place=place, what=what), *remedy)

    def _english(self, place: int) -> str:
        from localmed.messages import render

        return " ".join(render(part, "en") for part in self.messages[place : place + 1])

    def __str__(self) -> str:
        return f"{self.what}. {self.remedy}" if self.remedy else self.what


class UsageError(LocalmedError):
    """The command or question cannot be taken as it is."""

    exit_code = 2


class UnknownName(UsageError):
    """There is no collection, document, passage or generation of that name."""


class BadSettings(UsageError):
    """The settings file or a corpus manifest is wrong; the message names the file and the key."""


class NotAllowed(UsageError):
    """The caller may not do this."""


class FirstPassword(NotAllowed):
    """The account's first password must be changed before anything else."""


class NotSignedIn(UsageError):
    """Nobody is signed in, or no longer."""


class NoToken(NotSignedIn):
    """A program shows no token."""


class InputError(LocalmedError):
    """A file or record was refused."""

    exit_code = 3


class LimitExceeded(InputError):
    """A file went over a named bound (size, pages, seconds, memory)."""


class Busy(LocalmedError):
    """Another process is writing to the library, or too many requests wait for a model already."""

    exit_code = 4


class QueueFull(Busy):
    """Too many wait for an answer already."""

    def __init__(self, code: str | Message, remedy: Message | None = None, /, **parameters: Parameter) -> None:
        super().__init__(code, remedy, **parameters)
        self.seconds = int(str(dict(self.message.parameters).get("seconds", 0)))  # until a place should be free


class Unreachable(Busy):
    """The hospital's directory or sign-on provider does not answer, or cannot prove who it is."""


class DirectoryFault(Unreachable):
    """The hospital's directory answers, but refuses localmed's own look-up or gives only a part of what was asked."""


class LibraryError(LocalmedError):
    """What is stored cannot be used."""

    exit_code = 5


class NoLibrary(LibraryError):
    """Nothing has been imported yet."""


class Damaged(LibraryError):
    """A stored file does not match its manifest."""


class UnreadableIndex(Damaged):
    """An index or database of a generation cannot be read; which file it is has to be found."""


class OriginalChanged(Damaged):
    """The stored original of a document is not the file that was imported."""


class StateLost(Damaged):
    """``site.sqlite`` is not there, or lacks the accounts that were noted."""


class AnotherKey(Damaged):
    """The journal is whole, and was written with another key than the one at hand."""


class AccountsAltered(Damaged):
    """The accounts and their rights are not those that were noted."""


class DiskFull(LibraryError):
    """There is no room to write."""


class WrongEncoder(LibraryError):
    """The generation was built with another encoder; encoders never mix."""


class CanariesLost(LocalmedError):
    """A change was kept back: questions that what is served answers as they must be would no longer be."""

    exit_code = 7


class ModelError(LocalmedError):
    """A model could not be loaded or did not answer."""

    exit_code = 6


class Unresponsive(ModelError):
    """A process that is alive has said nothing in time."""


class Rejected(ModelError):
    """A model replied off its schema, in another language, with markers that do not exist, or with nothing."""


class NotServed(Rejected):
    """The model has failed in this run, or its time is over; the driver notes which."""


class TooLong(ModelError):
    """The prompt does not fit the model's context; the model itself is well."""


class Refused(ModelError):
    """A chat server refuses the request."""


class Faltered(ModelError):
    """A chat server did not answer, or broke off: a second try may succeed."""


class Cancelled(ModelError):
    """The work was still going on when whoever asked gave up."""

    exit_code = 130  # as of a command that Ctrl-C ended


def reason(error: BaseException) -> Message:
    """What went wrong, as a parameter in the reader's words; what a library calls it is a detail for ``--debug``."""
    if isinstance(error, OSError) and error.errno in _KNOWN_REASONS:
        return message(f"system.{errno.errorcode[error.errno]}")
    if isinstance(error, OSError) and error.strerror:
        return Message("system.failed", (("detail", str(error.strerror)),))
    return Message("system.malformed", (("detail", type(error).__name__),))


def details(part: Parameter) -> tuple[str, ...]:
    """What libraries call what went wrong, from a message and those in it."""
    if isinstance(part, tuple):
        return tuple(detail for value in part for detail in details(value))
    if not isinstance(part, Message):
        return ()
    return tuple(
        detail for name, value in part.parameters for detail in ((str(value),) if name == "detail" else details(value))
    )


# --- across processes -------------------------------------------------------------------------------------------------


def as_json(error: LocalmedError) -> dict[str, Any]:
    """``error`` as another process can raise it again: its class, and its messages as codes and parameters."""
    from localmed.messages import as_json as written

    return {"class": type(error).__name__, "messages": [written(part) for part in error.messages]}


def from_json(
    entry: Mapping[str, Any], fallback: type[LocalmedError], among: type[LocalmedError] | None = None
) -> LocalmedError:
    """The error that ``as_json`` wrote; ``ValueError`` if it is none.

    Its class is ``fallback`` unless its own is known and one of ``among`` (default: of ``fallback``).

    What comes from another process is bounded: at most two messages, and of every text ``LONGEST_WORD`` characters.
    """
    from localmed.messages import from_json as read

    try:
        what, *remedy = (_short(read(part)) for part in entry["messages"][:2])
        kind = _classes().get(entry["class"], fallback)
        return (kind if issubclass(kind, among or fallback) else fallback)(what, *remedy)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as broken:
        raise ValueError("no error of localmed") from broken


def received(entry: Any) -> Message:
    """The message that another process sent, its texts cut short; raise ``ValueError`` if it is none."""
    from localmed.messages import from_json as read

    if not isinstance(entry, Mapping):
        raise ValueError("no message of localmed")
    short: Message = _short(read(entry))
    return short


def _short(value: Any) -> Any:
    """A message or a parameter of one, its texts cut short."""
    if isinstance(value, Message):
        return Message(value.code[:LONGEST_WORD], tuple((name, _short(part)) for name, part in value.parameters))
    if isinstance(value, tuple):
        return tuple(map(_short, value))
    return value[:LONGEST_WORD] if isinstance(value, str) else value


def _classes() -> dict[str, type[LocalmedError]]:
    return {
        name: kind for name, kind in globals().items() if isinstance(kind, type) and issubclass(kind, LocalmedError)
    }


def toml_place(error: ValueError) -> Message:
    """Where a TOML file is wrong: the line, or its end where something is not closed."""
    if isinstance(error, UnicodeDecodeError):
        return message("settings.not_utf8", line=error.object.count(b"\n", 0, error.start) + 1)
    place = re.search(r"at line (\d+), column (\d+)", str(error))
    return message("settings.line", line=int(place[1]), column=int(place[2])) if place else message("settings.end")
