"""How much memory a set of files makes the verifier take: estimated beforehand, so that a few bytes cannot ask for all.

Both estimates are above what tracemalloc measures, and mostly within three times of it. What they count are the sizes
of arrays: the kernel works on parts of them, so that nothing larger than the arrays themselves, times a constant, is
ever made.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arrays import Floats
from mechdesign.base._errors import InputError, VerifierMemoryError
from mechdesign.base._machine import limited_memory
from mechdesign.certify._claims import ExponentBound, Floor, PairBound
from mechdesign.certify._evidence import Evidence

MEMORY_GIB = 2.0
"""What verifying may take unless more is allowed."""

_GIB = 2**30

# Bytes that one byte of JSON may become: lists of empty lists take the most.
_JSON = 40
# Bytes for each entry of an array that is read: it, its bytes, and the copy that is checked.
_ENTRY = 28
_COUNTED = ("numerators", "prior", "cost", "requirement_", "weights", "secrets", "observables")
# Bytes for each pair of secrets that a claim bounds, more where its factor is no exponential, and for each factor that
# is not like another one: integers of 200 bits, and the table that finds them again.
_PAIR, _RATIO, _FACTOR = 120, 300, 160
# Bytes for each entry of the channel, and what comes on top of everything.
_CELL, _ALWAYS = 64, 2**22
# How many entries are Python integers at a time, or one row of them.
_PART = 2**20
# Bytes for each multiplier, and for each secret and observable: labels, costs, sums.
_MULTIPLIER, _LABEL = 160, 400


def as_bytes(memory: object) -> int:
    """Return gibibytes as bytes; raise `InputError` unless they are a positive number."""
    bound = "a number of GiB above 0"
    if isinstance(memory, bool) or not isinstance(memory, int | float):
        raise InputError("memory", "is no number", value=memory, bound=bound)
    if not (memory > 0 and math.isfinite(memory)):
        raise InputError("memory", "is out of range", value=memory, bound=bound)
    return int(memory * _GIB)


def require_room(needed: int, allowed: int, what: str) -> None:
    """Raise `VerifierMemoryError` where something takes more bytes than are allowed, or than limits leave.

    A limit of the process, or of its container, would end it in the middle, some without a word.
    """
    left = limited_memory()
    if left is not None and left < needed <= allowed:
        raise VerifierMemoryError(
            f"{what} would take about {needed / _GIB:.3g} GiB of memory, and limits leave {left / _GIB:.3g} to this "
            "process; nothing was computed. Raise the limit (ulimit -v, or that of the container)"
        )
    if needed > allowed:
        raise VerifierMemoryError(
            f"{what} would take about {needed / _GIB:.3g} GiB of memory, and {allowed / _GIB:.3g} are allowed; nothing "
            "was computed. If you trust where the files come from, allow more: memory= of mechdesign.verify, or "
            "--memory of the command, in GiB"
        )


def reading(certificate: int, files: int, arrays: Iterable[Mapping[str, NDArray[Any]]]) -> int:
    """Return the bytes that reading a set takes, from the sizes of its certificate and of other files, and its arrays.

    That every requirement is stated well is looked at while reading: pairs of secrets are made of distances and edges.
    """
    needed = _ALWAYS + _JSON * certificate + files
    for held in arrays:
        for name, array in held.items():
            # What no claim rests on, labels apart, stays as it was read.
            counted = array.size if name.startswith(_COUNTED) else 0
            needed += 3 * array.nbytes + _ENTRY * counted
            if name.endswith(("_numerators", "_denominators")):
                needed += _RATIO * array.size
            elif name.endswith(("_distance", "_edges", "_pairs")):
                needed += 80 * array.size
    return needed


def proving(evidence: Evidence) -> int:
    """Return the bytes that proving takes, the evidence itself included."""
    n, m = evidence.cost.shape
    needed: int = _ALWAYS + _CELL * n * m + _integers(evidence.cost) + _LABEL * (n + m)
    for claim in evidence.claims():
        if isinstance(claim, ExponentBound):
            needed += _PAIR * len(claim) + _FACTOR * len(np.unique(claim.weights))
        elif isinstance(claim, PairBound):
            needed += (_PAIR + _RATIO) * len(claim)
        elif isinstance(claim, Floor):
            most = max(claim.error.shape)
            needed += _CELL * min(most * m, _PART + most) + 2 * claim.error.nbytes + _integers(claim.error)
        else:
            needed += _CELL * n * m
    for stated in evidence.requirements:
        needed += sum(array.nbytes for array in stated.arrays.values())
    if evidence.multipliers is not None:
        needed += sum(_MULTIPLIER * len(entry.values) for entry in evidence.multipliers.requirements)
    return needed


def _integers(values: Floats) -> int:
    """Return the bytes that entries take as integers over their least power of two, times numerators."""
    counted = values[np.isfinite(values) & (values > 0)]
    if not counted.size:
        return 0
    spread: int = math.frexp(float(counted.max()))[1] - math.frexp(float(counted.min()))[1]
    each = 48 + (64 + spread) // 7
    return 3 * each * min(int(counted.size), max(_PART, int(values.shape[1])))
