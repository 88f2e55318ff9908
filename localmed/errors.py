"""Everything localmed raises on purpose, as one tree. Each error says what happened, to what, and what to do next.

::

    LocalmedError                     exit code
    |-- UsageError                    2   the command or question cannot be taken as it is
    |   |-- UnknownName                   no such collection, document, passage or generation
    |   `-- BadSettings                   the settings file or a manifest is wrong
    |-- InputError                    3   a file was refused; it goes to quarantine with this reason
    |   `-- LimitExceeded                 a file went over a named bound
    |-- Busy                          4   another writer holds the library, or too many wait for a model
    |-- LibraryError                  5   what is stored cannot be used
    |   |-- NoLibrary                     nothing has been imported yet
    |   |-- Damaged                       a stored file does not match its manifest
    |   `-- WrongEncoder                  the generation was built with another encoder
    `-- ModelError                    6   a model could not be loaded or did not answer
        |-- Rejected                      what a model replied cannot be used
        `-- Cancelled                     whoever asked has given up

No message ever carries a question, a patient record or document text: paths, names, ids and counts only.
"""

from __future__ import annotations


class LocalmedError(Exception):
    """Base of the tree. ``what`` is one line on what happened; ``remedy`` one line on what to do next."""

    exit_code = 1

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what}. {self.remedy}" if self.remedy else self.what


class UsageError(LocalmedError):
    """The command or question cannot be taken as it is."""

    exit_code = 2


class UnknownName(UsageError):
    """There is no collection, document, passage or generation of that name."""


class BadSettings(UsageError):
    """The settings file or a corpus manifest is wrong; the message names the file and the key."""


class InputError(LocalmedError):
    """A file or record was refused."""

    exit_code = 3


class LimitExceeded(InputError):
    """A file went over a named bound (size, pages, seconds, memory)."""


class Busy(LocalmedError):
    """Another process is writing to the library, or too many requests wait for a model already."""

    exit_code = 4


class LibraryError(LocalmedError):
    """What is stored cannot be used."""

    exit_code = 5


class NoLibrary(LibraryError):
    """Nothing has been imported yet."""


class Damaged(LibraryError):
    """A stored file does not match its manifest."""


class WrongEncoder(LibraryError):
    """The generation was built with another encoder; encoders never mix."""


class ModelError(LocalmedError):
    """A model could not be loaded or did not answer."""

    exit_code = 6


class Rejected(ModelError):
    """A model replied off its schema, in another language, with markers that do not exist, or with nothing."""


class Cancelled(ModelError):
    """A model was still at work when whoever asked gave up."""
