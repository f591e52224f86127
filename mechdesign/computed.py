"""Properties that are computed once, by whichever thread asks first, without a lock.

The lock of `functools.cached_property` (until Python 3.12) is one for all objects of a class: threads wait for each
other, and a process that is forked while another thread computes waits for ever.
"""

from __future__ import annotations

import functools
from typing import Any, Self, TypeVar, overload

__all__ = ["cached_property"]


def __dir__() -> list[str]:
    return sorted(__all__)


T = TypeVar("T")


class cached_property(functools.cached_property[T]):  # noqa: N801
    """A property that is kept with its object. Threads that ask at once may compute it twice; all get one value.

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
        """Return the value that is kept, or compute and keep it."""
        if instance is None:
            return self
        assert self.attrname is not None
        kept = vars(instance)
        if self.attrname not in kept:
            value = self.func(instance)
            kept.setdefault(self.attrname, value)
        found: T = kept[self.attrname]
        return found
