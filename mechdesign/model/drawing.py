"""Dithering: one of the four anchors around a point, drawn with exactly its bilinear weight."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mechdesign.base._errors import InputError
from mechdesign.model.channel import EXPONENT
from mechdesign.model.channel import uniform_bits
from mechdesign.model.lattice import Between
from mechdesign.model.lattice import Lattice
from mechdesign.model.places import Borders
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers
from mechdesign.base._check import as_integer

__all__ = ["dithered", "drawn_anchors"]


def dithered(
    lattice: Lattice,
    places: Borders,
    size: int | tuple[int, ...] | None = None,
    rng: np.random.Generator | None = None,
) -> tuple[Integers, int]:
    """Return an anchor for each draw, and how many of the draws are for places outside; see `drawn_anchors`.

    `places` are coordinates of one shape; for a single place `size` says how many draws. Raises InputError for a size
    given with an array of places.
    """
    first, second = places
    if first.ndim and size is not None:
        raise InputError("size", "cannot be combined with an array of places", value=size, remedy="leave it out")
    if size is not None:
        shape = size if isinstance(size, tuple) else (size,)
        counts = tuple(as_integer(one, "size", 0) for one in shape)
        first, second = np.broadcast_to(first, counts), np.broadcast_to(second, counts)
    return drawn_anchors(lattice, first, second, rng)


def drawn_anchors(
    lattice: Lattice, first: Floats, second: Floats, rng: np.random.Generator | None = None
) -> tuple[Integers, int]:
    """Return an anchor for each point, int64 of the shape of the coordinates, and how many points were projected.

    Along each axis the next anchor is taken with probability equal to the share of the way to it, a rational number,
    since coordinates are binary numbers. A uniform number, of as many random bits as it takes, is below it or not:
    nothing is rounded.

    Args:
        lattice: The anchors.
        first: x, or latitude where the anchors have them.
        second: y, or longitude.
        rng: A NumPy generator; else the bits are the operating system's.
    """
    shape = np.shape(first)
    points = np.stack([np.reshape(first, -1), np.reshape(second, -1)], axis=1)
    unique, inverse = np.unique(points, axis=0, return_inverse=True)
    places = [lattice.place(one, two) for one, two in unique.tolist()]
    which = inverse.reshape(-1)
    columns = _drawn([across for across, _, _ in places], which, rng)
    rows = _drawn([up for _, up, _ in places], which, rng)
    outside = np.array([missed for _, _, missed in places], dtype=np.bool_)
    anchors: Integers = rows * lattice.columns + columns
    return anchors.reshape(shape), int(outside[which].sum())


def _drawn(places: list[Between], which: Integers, rng: np.random.Generator | None) -> Integers:
    """Return a column, or row, for each draw."""
    starts = np.array([start for start, _ in places], dtype=np.int64)
    drawn: Integers = starts[which] + _below([share for _, share in places], which, rng)
    return drawn


def _below(shares: list[Fraction], which: Integers, rng: np.random.Generator | None) -> Integers:
    """Return 1 with probability `shares[which]`, else 0, exactly: bits are drawn until they decide."""
    ahead = np.zeros(which.size, dtype=np.int64)
    open_draws = np.arange(which.size)
    rest = list(shares)
    while open_draws.size:
        scaled = [share * (1 << EXPONENT) for share in rest]
        digits = [min(int(value), (1 << EXPONENT) - 1) for value in scaled]
        limit = np.array(digits, dtype=np.int64)[which[open_draws]]
        bits = uniform_bits(open_draws.size, rng)
        ahead[open_draws[bits < limit]] = 1
        # Equal so far: the next bits are compared with what is left of the share.
        rest = [value - digit for value, digit in zip(scaled, digits, strict=True)]
        never = np.array([not share for share in rest], dtype=np.bool_)
        open_draws = open_draws[(bits == limit) & ~never[which[open_draws]]]
    return ahead
