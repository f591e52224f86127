"""Answers for coordinates: draw an anchor with its exact probability, then an answer from the row of the anchor."""

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
from mechdesign.model._locate import Between, Borders, Lattice, Outside, as_places, count_outside
from mechdesign.model._problem import Problem


def dither(
    lattice: Lattice,
    places: Borders,
    size: int | tuple[int, ...] | None = None,
    rng: np.random.Generator | None = None,
) -> tuple[Integers, int]:
    """Return an anchor for each draw, and the number of draws for places outside the rectangle; see `draw_anchors`.

    `places` contains two coordinate arrays of one shape; `size` is the number of draws for a single place. Raises
    InputError if `size` is given with an array of places.
    """
    first, second = places
    if first.ndim and size is not None:
        raise InputError("size", "cannot be combined with an array of places", value=size, remedy="leave it out")
    if size is not None:
        shape = size if isinstance(size, tuple) else (size,)
        counts = tuple(as_integer(one, "size", 0) for one in shape)
        first, second = np.broadcast_to(first, counts), np.broadcast_to(second, counts)
    return draw_anchors(lattice, first, second, rng)


def draw_anchors(
    lattice: Lattice, first: Floats, second: Floats, rng: np.random.Generator | None = None
) -> tuple[Integers, int]:
    """Return an anchor for each point, int64 of the shape of the coordinates, and the number of projected points.

    A point lies between two neighbouring columns of anchors, at a relative position s in [0, 1] from the first to the
    second. The second column is drawn with probability exactly s, and the first column otherwise; rows are drawn in the
    same way. The number s is rational and computed without rounding. Random bits are drawn until they differ from the
    binary digits of s.

    Args:
        lattice: The anchors.
        first: x, or latitude if the anchors have coordinates in degrees.
        second: y, or longitude if the anchors have coordinates in degrees.
        rng: A NumPy generator; None takes the bits from the operating system.

    Returns:
        Indices of anchors, and the number of points outside the rectangle of the anchors.
    """
    shape = np.shape(first)
    points = np.stack([np.reshape(first, -1), np.reshape(second, -1)], axis=1)
    unique, inverse = np.unique(points, axis=0, return_inverse=True)
    places = [lattice.place(one, two) for one, two in unique.tolist()]
    which = inverse.reshape(-1)
    columns = _draw_indices([across for across, _, _ in places], which, rng)
    rows = _draw_indices([up for _, up, _ in places], which, rng)
    outside = np.array([missed for _, _, missed in places], dtype=np.bool_)
    anchors: Integers = rows * lattice.columns + columns
    return anchors.reshape(shape), int(outside[which].sum())


def _draw_indices(places: list[Between], which: Integers, rng: np.random.Generator | None) -> Integers:
    """Return a column index (or row index) for each draw."""
    starts = np.array([start for start, _ in places], dtype=np.int64)
    drawn: Integers = starts[which] + _draw_bernoulli([share for _, share in places], which, rng)
    return drawn


def _draw_bernoulli(shares: list[Fraction], which: Integers, rng: np.random.Generator | None) -> Integers:
    """Return 1 with probability exactly `shares[which]`, otherwise 0, for each draw."""
    ahead = np.zeros(which.size, dtype=np.int64)
    open_draws = np.arange(which.size)
    rest = list(shares)
    while open_draws.size:
        scaled = [share * (1 << EXPONENT) for share in rest]
        digits = [min(int(value), (1 << EXPONENT) - 1) for value in scaled]
        limit = np.array(digits, dtype=np.int64)[which[open_draws]]
        bits = uniform_bits(open_draws.size, rng)
        ahead[open_draws[bits < limit]] = 1
        # If the bits equal the digits of the share, compare the next bits with its remaining digits.
        rest = [value - digit for value, digit in zip(scaled, digits, strict=True)]
        never = np.array([not share for share in rest], dtype=np.bool_)
        open_draws = open_draws[(bits == limit) & ~never[which[open_draws]]]
    return ahead


@dataclass(frozen=True, eq=False)
class Answers:
    """One answer of a channel, or an array of answers.

    Attributes:
        index: Indices of observables: an integer, or an int64 array of the requested shape.
        label: Labels of the observables: a text, or an array of texts with the shape of `index`.
        place: Coordinates of the observables, of shape (…, 2), or None if the observables have no coordinates.
            Coordinates are latitude and longitude in degrees, or x and y in the unit of the observables.

    >>> Answers(index=1, label="b", place=None)
    Answers(index=1, label='b', place=None)
    """

    index: Any
    label: Any
    place: Floats | None

    def __len__(self) -> int:
        """Return the number of answers."""
        return int(np.size(self.index))


def answers(channel: Channel, observables: Domain | None, drawn: Integers) -> Answers:
    """Return drawn observables with their labels and places.

    Args:
        channel: The channel that the observables were drawn from.
        observables: The domain of the m observables, which provides their places, or None.
        drawn: Indices of observables, int64 of any shape, each from 0 to m − 1.

    Returns:
        The answers, in the shape of `drawn`.

    >>> channel = Channel.from_matrix([[0.75, 0.25], [0.25, 0.75]], observables=["yes", "no"])
    >>> answers(channel, None, np.array([1, 0])).label.tolist()
    ['no', 'yes']
    """
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
    """Draw answers for places, with exactly the probabilities of the channel.

    If the secrets are anchors, one of the four anchors around a place is drawn with its exact bilinear weight as
    probability (dithering). The guarantee of `ContinuousPrivacy` then holds for any two places.

    Otherwise a place is replaced by the cell that contains it, or by the nearest secret if the secrets are not a grid.
    The guarantee then applies to secrets: all places in a cell have the same distribution of answers. For two places in
    different cells, the guarantee is that for the two cells, even if the places are close together.

    Args:
        problem: The problem that the channel solves; its secrets must have places.
        channel: The channel, with a row for each secret of the problem.
        latitude: Latitude in degrees, or x in the unit of the secrets. If an array is given, each entry gets one
            answer.
        longitude: Longitude in degrees, or y.
        size: The number (or shape) of answers for one place, as in `Channel.sample`. If one place or cell gets k
            answers, by `size` or by repeated entries, the guarantee holds with k·ε.
        rng: A NumPy generator or a seed, for tests and simulations; None takes the bits from the operating system.
        x: Alternative name of the first argument, for places on the plane.
        y: Alternative name of the second argument, for places on the plane.
        outside: "refuse" raises an error for outside places (see `Domain.cell_of`); "nearest" takes the nearest secret.
            With anchors, "nearest" projects outside places onto the rectangle, and an `OutsideWarning` counts them.
        reach: The largest permitted distance between a place and its nearest secret, in the unit of the secrets. This
            limit applies only to secrets that are neither cells nor anchors. None means the largest distance between a
            secret and its nearest neighbour.

    Returns:
        The answers, with indices, labels and places.

    Raises:
        InputError: The secrets have no places, a coordinate is invalid, or a place is outside and `outside` is
            "refuse".

    >>> cells = Domain.grid(columns=2, rows=1, width=2.0, height=1.0)
    >>> problem = Problem([0.5, 0.5], [[0, 1], [1, 0]], [], secrets=cells, observables=cells)
    >>> sample_at(problem, Channel.from_matrix([[1, 0], [0, 1]]), x=1.5, y=0.5).place.tolist()
    [1.5, 0.5]
    """
    if problem.secrets is None:
        raise InputError("secrets", "have no places", remedy="pass the index of a secret to channel.sample")
    lattice = problem.secrets.lattice
    if lattice is not None:
        places = as_places(problem.secrets.axes, latitude, longitude, x, y)
        generator = None if rng is None else as_generator(rng)
        area = problem.secrets.area(problem.secrets.axes)
        assert area is not None
        area.check_reach(reach)
        count_outside(area, places, outside)
        anchors, missed = dither(lattice, places, size, generator)
        if missed:
            warn(
                f"place: {missed} of {anchors.size} draws are for places outside the rectangle of the anchors; these "
                "places were projected onto its border",
                OutsideWarning,
                stacklevel=3,
            )
        return answers(channel, problem.observables, channel.sample(anchors, rng=generator))
    cells = problem.secrets.cell_of(latitude, longitude, x=x, y=y, outside=outside, reach=reach)
    if not isinstance(cells, int) and size is not None:
        raise InputError("size", "cannot be combined with an array of places", value=size, remedy="leave it out")
    return answers(channel, problem.observables, channel.sample(cells, size, rng))
