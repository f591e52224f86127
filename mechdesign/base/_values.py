"""Immutable mappings, and properties that are computed once.

The lock of `functools.cached_property` (until Python 3.12) is shared by all objects of a class. Threads wait for each
other, and a process that is forked while another thread computes waits forever.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, Self, TypeVar, overload

T = TypeVar("T")


class cached_property(functools.cached_property[T]):  # noqa: N801
    """A property that is computed once for each object.

    Concurrent threads may compute it twice, but all threads get the same value.

    >>> class Circle:
    ...     @cached_property
    ...     def area(self):
    ...         print("computing")
    ...         return 3
    >>> circle = Circle()
    >>> circle.area + circle.area
    computing
    6
    """

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Self | T:
        """Return the stored value; compute and store it first if necessary."""
        if instance is None:
            return self
        assert self.attrname is not None
        kept = vars(instance)
        if self.attrname not in kept:
            value = self.func(instance)
            kept.setdefault(self.attrname, value)
        found: T = kept[self.attrname]
        return found


K = TypeVar("K")
V = TypeVar("V")


class ReadOnlyMapping(Mapping[K, V]):
    """A read-only copy of a mapping, because `types.MappingProxyType` can be neither pickled nor deeply copied.

    Args:
        held: The mapping to copy.

    >>> import pickle
    >>> pickle.loads(pickle.dumps(ReadOnlyMapping({"a": 1})))
    ReadOnlyMapping({'a': 1})
    """

    def __init__(self, held: Mapping[K, V]) -> None:
        self._held = dict(held)

    def __getitem__(self, key: K) -> V:
        return self._held[key]

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def __iter__(self) -> Iterator[K]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def __repr__(self) -> str:
        return f"ReadOnlyMapping({self._held})"

    def __or__(self, other: Mapping[K, V]) -> dict[K, V]:
        return {**self._held, **other}
