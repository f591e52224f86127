"""Estimates of the memory that verification takes, so that a small malicious file cannot exhaust the memory.

The estimates add up the sizes of arrays. The estimates exceed the measurements of tracemalloc, mostly by less than a
factor of three. The kernel works on blocks of arrays, which limits the size of its temporary arrays.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arrays import Floats
from mechdesign.base._errors import InputError, VerifierMemoryError
from mechdesign.base._machine import free_memory, memory_below_limits
from mechdesign.certify._claims import ExponentBound, Floor, PairBound
from mechdesign.certify._evidence import Evidence

VARIABLE = "MECHDESIGN_MEMORY"
"""The environment variable with the memory that a verification may take [GiB]."""

_GIB = 2**30
# Memory that a task on any bundle may take, and on each byte of larger files [bytes].
_LEAST, _PER_BYTE = 2 * _GIB, 100

# Memory for one byte of JSON [bytes]; lists of empty lists take the most.
_JSON = 40
# Memory for each entry of an array that is read [bytes]: the entry, its raw bytes, and the checked copy.
_ENTRY = 28
_COUNTED = ("numerators", "prior", "cost", "requirement_", "weights", "secrets", "observables")
# Memory for each pair of secrets with a bound, for its rational factor, and for each distinct factor [bytes]. Factors
# are integers of 200 bits in a lookup table.
_PAIR, _RATIO, _FACTOR = 120, 300, 160
# Memory for each entry of the channel, and memory that every bundle takes [bytes].
_CELL, _CONSTANT = 64, 2**22
# Maximum number of entries that are Python integers at the same time; a block has at least one row.
_BLOCK_ENTRIES = 2**20
# Memory for each multiplier, and for the labels, costs and sums of each secret and observable [bytes].
_MULTIPLIER, _LABEL = 160, 400


def require_room(needed: int, size: int, what: str) -> int:
    """Return the bytes that a task on a bundle may take; raise `VerifierMemoryError` if it takes more.

    It may take 2 GiB, or 100 times the `size` of the files on the disk if this is more, within the free memory. The
    variable MECHDESIGN_MEMORY replaces both by a number of GiB, within the limits of the process: exceeding these would
    end the process abruptly. Raises `InputError` for any other value of the variable.
    """
    stated = os.environ.get(VARIABLE)
    allowed = max(_LEAST, _PER_BYTE * size) if not stated else _read_gib(stated)
    free = memory_below_limits() if stated else free_memory()
    allowed = allowed if free is None else min(allowed, free)
    if needed > allowed:
        raise VerifierMemoryError(
            f"{what} would take about {needed / _GIB:.3g} GiB of memory, but only {allowed / _GIB:.3g} GiB are allowed "
            f"or left; nothing was computed. If you trust the source of the files, {VARIABLE} allows more, in GiB"
        )
    return allowed


def _read_gib(text: str) -> int:
    try:
        given = float(text) * _GIB
        if 0 < given < math.inf:
            return int(given)
    except ValueError:
        pass
    raise InputError(VARIABLE, "is not accepted", value=text, bound="a number of GiB above 0")


def reading(certificate: int, files: int, arrays: Iterable[Mapping[str, NDArray[Any]]]) -> int:
    """Return the bytes that reading a bundle takes, from the sizes of its certificate, other files and arrays.

    Reading also checks the requirements, and this check lists the pairs of secrets that distances and edges define.
    """
    needed = _CONSTANT + _JSON * certificate + files
    for held in arrays:
        for name, array in held.items():
            # Except for labels, arrays that no claim uses are not copied.
            counted = array.size if name.startswith(_COUNTED) else 0
            needed += 3 * array.nbytes + _ENTRY * counted
            if name.endswith(("_numerators", "_denominators")):
                needed += _RATIO * array.size
            elif name.endswith(("_distance", "_edges", "_pairs")):
                needed += 80 * array.size
    return needed


def proving(evidence: Evidence) -> int:
    """Return the bytes that proving takes, including the evidence itself."""
    n, m = evidence.cost.shape
    needed: int = _CONSTANT + _CELL * n * m + _integers(evidence.cost) + _LABEL * (n + m)
    for claim in evidence.claims():
        if isinstance(claim, ExponentBound):
            # With counts, NumPy does not load numpy.ma, which takes 10 ms.
            needed += _PAIR * len(claim) + _FACTOR * len(np.unique(claim.weights, return_counts=True)[0])
        elif isinstance(claim, PairBound):
            needed += (_PAIR + _RATIO) * len(claim)
        elif isinstance(claim, Floor):
            most = max(claim.error.shape)
            needed += _CELL * min(most * m, _BLOCK_ENTRIES + most) + 2 * claim.error.nbytes + _integers(claim.error)
        else:
            needed += _CELL * n * m
    for stated in evidence.requirements:
        needed += sum(array.nbytes for array in stated.arrays.values())
    if evidence.multipliers is not None:
        needed += sum(_MULTIPLIER * len(entry.values) for entry in evidence.multipliers.requirements)
    return needed


def _integers(values: Floats) -> int:
    """Return the bytes of the entries, converted to integers over a common power of two, and of products with them."""
    counted = values[np.isfinite(values) & (values > 0)]
    if not counted.size:
        return 0
    spread: int = math.frexp(float(counted.max()))[1] - math.frexp(float(counted.min()))[1]
    each = 48 + (64 + spread) // 7
    return 3 * each * min(int(counted.size), max(_BLOCK_ENTRIES, int(values.shape[1])))
