"""Errors about arguments of Python in the words of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from mechdesign.base._errors import InputError

__all__ = ["naming_options"]


@contextmanager
def naming_options(options: Mapping[str, str]) -> Iterator[None]:
    r"""Name options in errors about what they were passed as.

    Args:
        options: For a pattern of a whole path the name that it has on the command line; what ``\1`` stands for may be
            a part of the path.

    >>> with naming_options({"alpha": "--alpha"}):
    ...     raise InputError("alpha", "leaves no budget")
    Traceback (most recent call last):
    mechdesign.base._errors.InputError: --alpha: leaves no budget
    """
    try:
        yield
    except InputError as error:
        for pattern, name in options.items():
            if (found := re.fullmatch(pattern, error.path)) is not None:
                path = found.expand(name)
                raise type(error)(
                    path, error.problem, value=error.value, bound=error.bound, remedy=error.remedy
                ) from error
        raise
