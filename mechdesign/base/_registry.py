"""Registries of named objects of one kind; other packages may add objects.

A registry is a mapping in the order of registration. An unknown name raises an `InputError`, which lists all
names and suggests the closest name.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import TypeVar

from mechdesign.base._errors import InputError

T = TypeVar("T")


class Registry(Mapping[str, T]):
    """Objects of one kind, by name.

    >>> greetings = Registry("greeting")
    >>> greetings.register("plain", "Hello.")
    >>> greetings["plain"]
    'Hello.'
    >>> greetings["plane"]
    Traceback (most recent call last):
    mechdesign.errors.InputError: greeting: is not known; found 'plane'; must be one of plain. Did you mean plain?
    """

    def __init__(self, sort: str) -> None:
        self._sort = sort
        self._found: dict[str, T] = {}

    def register(self, name: str, value: T) -> None:
        """Add a value.

        Args:
            name: The name of the value.
            value: The value.

        Raises:
            InputError: The name is empty or taken.
        """
        if not isinstance(name, str) or not name:
            raise InputError(self._sort, "has no name", value=name, bound="a text")
        if name in self._found:
            raise InputError(self._sort, "has a name that is taken", value=name, bound="another name")
        self._found[name] = value

    def unregister(self, name: str) -> None:
        """Remove a value.

        Args:
            name: The name of the value.

        Raises:
            InputError: The name is unknown.
        """
        self[name]
        del self._found[name]

    def __getitem__(self, name: str) -> T:
        # A name from a file may be any value, even a value without a hash.
        if isinstance(name, str) and name in self._found:
            return self._found[name]
        close = difflib.get_close_matches(name, self._found, n=1) if isinstance(name, str) else []
        remedy = f"did you mean {close[0]}?" if close else ""
        bound = f"one of {', '.join(self._found)}"
        raise InputError(self._sort, "is not known", value=name, bound=bound, remedy=remedy)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)
