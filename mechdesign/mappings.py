"""Mappings that cannot be changed, and that can be copied and sent to another process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

__all__ = ["ReadOnlyMapping"]


def __dir__() -> list[str]:
    return sorted(__all__)


K = TypeVar("K")
V = TypeVar("V")


class ReadOnlyMapping(Mapping[K, V]):
    """What a mapping holds when this is made; `types.MappingProxyType` can be neither pickled nor deeply copied.

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
