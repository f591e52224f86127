"""The identity of a row: the digest of everything that its result depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from mechdesign.certify._exact import exact_text
from mechdesign.base._errors import InputError

__all__ = ["canonical", "identity"]


def identity(description: Mapping[str, object]) -> str:
    """Return the SHA-256 of a description, in hexadecimal digits; the order of its keys does not count.

    Args:
        description: Texts, numbers, booleans, None, and lists and mappings of these. Decimals and fractions count as
            exact numbers, so that 0.5 and 0.50 are the same; floats are another kind.

    Raises:
        InputError: Something in it is none of these.

    >>> identity({"n": 25, "solver": "block"}) == identity({"solver": "block", "n": 25})
    True
    >>> identity({"epsilon": Decimal("0.50")}) == identity({"epsilon": Fraction(1, 2)})
    True
    """
    text = json.dumps(canonical(description, "description"), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def canonical(value: object, path: str) -> Any:
    """Return `value` in terms of JSON; raise `InputError` for what has no such form."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Decimal | Fraction):
        return {"exact": exact_text(Fraction(value))}
    if isinstance(value, float):
        if not np.isfinite(value):
            raise InputError(path, "is not finite", value=value)
        return value
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise InputError(path, "has keys that are no texts", value=list(value))
        return {key: canonical(entry, f"{path}.{key}") for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [canonical(entry, f"{path}[{index}]") for index, entry in enumerate(value)]
    raise InputError(path, "cannot be described", value=value, bound="texts, numbers, lists and mappings")
