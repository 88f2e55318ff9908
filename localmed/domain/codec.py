"""Values as JSON and back, by the types of their fields: answers for ``--json``, stored files, recordings, evaluations.

A dataclass becomes an object of its fields, an enumeration its value, a tuple a list, a set a sorted list. If a field
allows several types, the object has the class name under ``type``; a codec knows only registered classes. A ``Message``
is its code and parameters; its text may be included and is not read back.

Reading is strict: a missing or unknown field, a value of another type or an unregistered name is a ``ValueError``. Only
registered classes are created.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any

from localmed.domain.messages import Message
from localmed.messages import as_json, from_json

TYPE = "type"  # names the class of an object if the field's type does not
_PLAIN = (str, int, float, bool)
GONE = {  # fields of earlier versions
    "Conflict": {"amounts", "caution"},
    "TermPart": {"under"},
}
# Classes of earlier versions, or those with that field: their sentences are read as ``OlderPart``.
OLDER = {
    **dict.fromkeys(
        ("NearestPart", "EffectPart", "ApplicabilityPart", "CautionPart", "EntryPart", "ValuePart", "UnexplainedPart"),
        TYPE,
    ),
    "InteractionPart": "entry",
    "RecordPart": "entries",
}


class Codec:
    """Writes and reads values of the classes ``known``, whose names must differ."""

    def __init__(self, known: Iterable[type]) -> None:
        self._known: dict[str, type] = {}
        for kind in known:
            if self._known.setdefault(kind.__name__, kind) is not kind:
                raise TypeError(f"two classes are called {kind.__name__}")

    def encode(self, value: Any, kind: Any = Any, language: str = "") -> Any:
        """``value`` of the declared type ``kind`` as JSON, messages with their text in ``language``.

        Raise ``TypeError`` for values of unregistered classes.
        """
        if isinstance(value, Enum):
            return value.value if kind is type(value) else {TYPE: self._name(value), "value": value.value}
        if value is None or isinstance(value, _PLAIN):
            return float(value) if type(value) is int and _is_number(kind) else value
        if isinstance(value, Message):
            return as_json(value, language)
        if is_dataclass(value):
            tagged = {} if kind is type(value) else {TYPE: self._name(value)}
            made: Any = type(value)
            typed: Mapping[str, Any] = field_types(made)
            return tagged | {name: self.encode(getattr(value, name), hint, language) for name, hint in typed.items()}
        if isinstance(value, tuple | frozenset):
            items = sorted(value) if isinstance(value, frozenset) else value
            hints = _items(kind, len(items))
            listed = [self.encode(item, hint, language) for item, hint in zip(items, hints, strict=True)]
            return {TYPE: "frozenset", "value": listed} if isinstance(value, frozenset) and kind is Any else listed
        if isinstance(value, Mapping):
            return {TYPE: "mapping", "value": [[self.encode(item) for item in pair] for pair in value.items()]}
        raise TypeError(f"no {type(value).__name__} is written")

    def decode(self, value: Any, kind: Any = Any) -> Any:
        """The value of type ``kind`` that ``encode`` wrote; raise ``ValueError`` for anything else."""
        if kind is Any:
            return self._tagged(value)
        origin = typing.get_origin(kind)
        if origin in (typing.Union, types.UnionType):
            return self._one_of(value, typing.get_args(kind))
        if kind is Message:
            return from_json(value)
        if origin in (tuple, frozenset, Sequence):
            if not isinstance(value, list):
                raise ValueError("a list was expected")
            items = (self.decode(item, hint) for item, hint in zip(value, _items(kind, len(value)), strict=True))
            return frozenset(items) if origin is frozenset else tuple(items)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return self._tagged(value)
        if isinstance(kind, type) and is_dataclass(kind):
            return self._object(value, kind)
        if isinstance(kind, type) and issubclass(kind, Enum):
            return kind(value)
        return _plain(value, kind)

    def _name(self, value: Any) -> str:
        name = type(value).__name__
        if self._known.get(name) is not type(value):
            raise TypeError(f"no {name} is written")
        return name

    def _object(self, value: Any, kind: Any) -> Any:
        """An object of ``kind``; missing fields get their defaults, ``GONE`` fields are dropped."""
        hints = field_types(kind)
        later = {one.name for one in fields(kind) if one.default is not MISSING or one.default_factory is not MISSING}
        known = {TYPE, *hints, *GONE.get(kind.__name__, ())}
        if not isinstance(value, dict) or not set(hints) - later <= set(value) <= known:
            raise ValueError(f"no {kind.__name__}")
        return kind(**{name: self.decode(value[name], hint) for name, hint in hints.items() if name in value})

    def _one_of(self, value: Any, kinds: tuple[Any, ...]) -> Any:
        """A value of a union: an object by its type name, the rest by its JSON type."""
        if isinstance(value, dict) and TYPE in value:
            made = self._tagged(value)
            if type(made) not in kinds:
                raise ValueError("a value of another type")
            return made
        if isinstance(value, dict) and Message in kinds:
            return from_json(value)
        for kind in kinds:
            origin = typing.get_origin(kind)
            if (
                (value is None and kind is type(None))
                or (isinstance(value, list) and origin in (tuple, frozenset))
                or (isinstance(value, _PLAIN) and _is_plain(value, kind))
            ):
                return None if value is None else self.decode(value, kind)
        others = [kind for kind in kinds if kind is not type(None) and kind not in _PLAIN]
        if len(others) != 1:
            raise ValueError("a value of another type")
        return self.decode(value, others[0])

    def _tagged(self, value: Any) -> Any:
        """A value of a field without a declared type."""
        if value is None or isinstance(value, _PLAIN):
            return value
        if isinstance(value, list):
            return tuple(self._tagged(item) for item in value)
        if not isinstance(value, dict):
            raise ValueError("no value")
        if TYPE not in value:
            return from_json(value)
        if value[TYPE] == "frozenset":
            return frozenset(self._tagged(item) for item in value["value"])
        if value[TYPE] == "mapping":
            return {self._tagged(name): self._tagged(item) for name, item in value["value"]}
        if value[TYPE] == "AllergyPart" and isinstance(value.get("allergy"), dict):  # of 0.1.0; a release depends on it
            kept = {name: item for name, item in value.items() if name != "allergy"}
            value = kept | {"words": value["allergy"].get("words", "")}
        if OLDER.get(value[TYPE]) in value:
            value = {TYPE: "OlderPart", "statements": value.get("statements", [])}
        kind = self._known.get(value[TYPE])
        if kind is None:
            raise ValueError(f"no value is called {value[TYPE]!r}")
        return kind(value["value"]) if issubclass(kind, Enum) else self._object(value, kind)


@cache
def field_types(kind: type) -> Mapping[str, Any]:
    """The types of a dataclass's fields, by name."""
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def reachable(kind: Any) -> set[type]:
    """The dataclasses and enumerations that a value of ``kind`` may contain, itself included."""
    known: set[type] = set()
    waiting = [kind]
    while waiting:
        kind = waiting.pop()
        waiting += typing.get_args(kind)
        if isinstance(kind, type) and kind not in known and kind is not Message:
            if is_dataclass(kind):
                known.add(kind)
                waiting += field_types(kind).values()
            elif issubclass(kind, Enum):
                known.add(kind)
    return known


def _items(kind: Any, number: int) -> tuple[Any, ...]:
    arguments = typing.get_args(kind)
    if not arguments:
        return (Any,) * number
    if arguments[-1] is Ellipsis or typing.get_origin(kind) in (frozenset, Sequence):
        return arguments[:1] * number
    if len(arguments) != number:
        raise ValueError("a list of another length")
    return arguments


def _is_number(kind: Any) -> bool:
    """Whether a field of ``kind`` is floating-point, so that an integer in it is written as a float."""
    kinds = typing.get_args(kind) or (kind,)
    return float in kinds and int not in kinds


def _is_plain(value: Any, kind: Any) -> bool:
    """Whether the JSON scalar ``value`` may represent ``kind``."""
    if kind in _PLAIN:
        return type(value) is kind or (kind is float and type(value) is int)
    return isinstance(kind, type) and issubclass(kind, Enum)


def _plain(value: Any, kind: Any) -> Any:
    if typing.get_origin(kind) is typing.Literal:
        if value in typing.get_args(kind):
            return value
        raise ValueError("a value that there is not")
    if kind not in _PLAIN or not _is_plain(value, kind):
        raise ValueError("a value of another type")
    return kind(value)
