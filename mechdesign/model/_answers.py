"""Answers for coordinates: an anchor drawn exactly, then an answer."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._check import as_generator, as_integer
from mechdesign.base._errors import InputError, OutsideWarning
from mechdesign.base._warnings import warn
from mechdesign.model._channel import EXPONENT, Channel, uniform_bits
from mechdesign.model._domain import Domain
from mechdesign.model._locate import Between, Borders, Lattice, Outside, count_outside, given_places
from mechdesign.model._problem import Problem


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


@dataclass(frozen=True, eq=False)
class Answers:
    """What a channel answered: one answer, or an array of them.

    Attributes:
        index: Indices of observables: an integer, or an int64 array of the shape that was asked for.
        label: Their labels: a text, or an array of texts of that shape.
        place: Where they are: latitude and longitude in degrees, or x and y in the unit of the observables, along a
            last axis of length 2; None where observables have no places.
    """

    index: Any
    label: Any
    place: Floats | None

    def __len__(self) -> int:
        """Return how many answers there are."""
        return int(np.size(self.index))


def answers(channel: Channel, observables: Domain | None, drawn: Integers) -> Answers:
    """Return observables that were drawn, given by their indices, with labels and places."""
    m = channel.numerators.shape[1]
    labels = np.array(channel.observables or tuple(map(str, range(m))), dtype=np.str_)
    index = np.asarray(drawn, dtype=np.int64)
    known = None
    if observables is not None:
        known = observables.points if observables.coordinates is None else observables.degrees
    place = None if known is None or not known.shape[1] else known[index]
    if index.ndim:
        return Answers(index, labels[index], place)
    return Answers(int(index), str(labels[index]), place)


def sample_at(
    problem: Problem,
    channel: Channel,
    latitude: ArrayLike | None = None,
    longitude: ArrayLike | None = None,
    size: int | tuple[int, ...] | None = None,
    rng: np.random.Generator | int | None = None,
    *,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    outside: Outside = "refuse",
    reach: float | None = None,
) -> Answers:
    """Draw answers for places, exactly with the probabilities of the secrets that they belong to.

    Where the secrets are anchors, a place lies between four of them, one of which is drawn with its bilinear weight,
    exactly: what is proved of `ContinuousPrivacy` holds for any two places.

    Else a place becomes the cell it lies in, or the nearest secret where the secrets are no grid. What is proved is
    proved of secrets: two places in one cell get the same distribution, and those in two cells are protected like the
    two cells, however close to their border they are.

    Args:
        problem: What the channel answers; its secrets have places.
        channel: The channel.
        latitude: In degrees; on the plane x, in the unit of the secrets. A number, or an array, an answer for each.
        longitude: In degrees; on the plane y.
        size: How many answers for one place, as in `Channel.sample`. Up to k answers for one place, or for places in
            one cell, are k times the ε, whether `size` or an array that repeats a place asks for them.
        rng: A NumPy generator or a seed, for tests and simulations; else the bits are the operating system's.
        x: The name of the first argument on the plane.
        y: The name of the second argument on the plane.
        outside: "refuse" places outside, see `Domain.cell_of`, or take the "nearest" secret. Places outside anchors are
            projected to their rectangle, and an `OutsideWarning` counts them.
        reach: How far from the nearest secret a place may be, in the unit of the secrets, where they are neither cells
            nor anchors; else the largest distance of a secret from its nearest neighbour.

    Raises:
        InputError: The secrets have no places, or coordinates are wrong, or outside and refused.
    """
    if problem.secrets is None:
        raise InputError("secrets", "have no places", remedy="name a secret by its index, with channel.sample")
    lattice = problem.secrets.lattice
    if lattice is not None:
        places = given_places(problem.secrets.axes, latitude, longitude, x, y)
        generator = None if rng is None else as_generator(rng)
        area = problem.secrets.area(problem.secrets.axes)
        assert area is not None
        area.check_reach(reach)
        count_outside(area, places, outside)
        anchors, missed = dithered(lattice, places, size, generator)
        if missed:
            warn(
                f"place: {missed} of {anchors.size} draws are for places outside the anchors, and projected to their "
                "border",
                OutsideWarning,
                stacklevel=3,
            )
        return answers(channel, problem.observables, channel.sample(anchors, rng=generator))
    cells = problem.secrets.cell_of(latitude, longitude, x=x, y=y, outside=outside, reach=reach)
    if not isinstance(cells, int) and size is not None:
        raise InputError("size", "cannot be combined with an array of places", value=size, remedy="leave it out")
    return answers(channel, problem.observables, channel.sample(cells, size, rng))
