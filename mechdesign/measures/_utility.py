"""Error measures from the experiments of PGLP and DPHMM.

Expectations are over the prior π (n,) and the channel p(o|s) (n, m), whose secrets and observables have places:

- E_eu = Σ_s π_s Σ_o p(o|s) ‖f(s) − f(o)‖₂, the mean distance (PGLP, Cao et al. 2020, section 6.1; DPHMM, Xiao et al.
  2017, section 8);
- E_r = Σ_s π_s Σ_o p(o|s) [R(s) ≠ R(o)], where R is the region, 5 × 5 cells in PGLP;
- E_poi, the same expression with categories instead of regions.

`mechdesign.graphs.degree_of_protection` computes the degree of protection.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, Integers, as_labels
from mechdesign.base._check import as_integer
from mechdesign.base._errors import InputError
from mechdesign.base._names import Labels as Names
from mechdesign.base._names import Named, labels_of, named, opened, order_of, unless_numbers
from mechdesign.graphs._builders import as_grid
from mechdesign.graphs._hull import as_points
from mechdesign.measures.attack import rows_of
from mechdesign.model._channel import Channel
from mechdesign.model._domain import Domain, Grid
from mechdesign.model._prior import Prior, as_prior

Labels = Sequence[Hashable] | Integers


def euclidean_error(
    channel: Channel | ArrayLike,
    prior: Prior | ArrayLike,
    points: Domain | ArrayLike,
    *,
    observables: Domain | ArrayLike | None = None,
) -> float:
    """Return E_eu, the expected Euclidean distance between the true and the released place.

    Args:
        channel: The channel p(o|s) (n, m).
        prior: The prior π (n,).
        points: The places of the secrets (n, d).
        observables: The places of the observables (m, d); by default, the places of the secrets.

    Returns:
        The distance, in the unit of the points.

    Raises:
        InputError: The shapes of the arguments do not match.

    >>> euclidean_error([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5], [[0.0], [2.0]])
    0.5
    """
    rows, weights = _joint(channel, prior)
    return float(weights @ (rows.values * _lengths(rows, points, observables)).sum(axis=1))


def mismatch_error(
    channel: Channel | ArrayLike, prior: Prior | ArrayLike, labels: Labels, *, observables: Labels | None = None
) -> float:
    """Return the probability of different labels of output and secret: E_r for regions, E_poi for categories.

    Args:
        channel: The channel p(o|s) (n, m).
        prior: The prior π (n,).
        labels: A label for each secret; see `regions`.
        observables: A label for each output; by default, outputs have the labels of the secrets.

    Returns:
        The probability.

    Raises:
        InputError: The shapes of the arguments do not match.

    >>> mismatch_error([[0.75, 0.25], [0.0, 1.0]], [0.5, 0.5], ["home", "work"])
    0.125
    """
    rows, weights = _joint(channel, prior)
    n, m = rows.values.shape
    here = _codes(labels, "labels", rows.rows, n)
    if observables is None and rows.rows and not rows.columns:
        # Names of the rows alone do not tell the order of the columns.
        for given in (labels, prior):
            own = labels_of(opened(given, "labels", object).rows, "labels")
            if own:
                rows.arranged("channel", own, own)
    if observables is None and set(rows.columns) == set(rows.rows):
        order = order_of(rows.rows, rows.columns, "channel")
        there = here if order is None else [here[place] for place in order]
    elif observables is None:
        there = _codes(labels, "observables", rows.columns or rows.rows, m)
    else:
        there = _codes(observables, "observables", rows.columns, m)
    known: dict[Hashable, int] = {}
    row, column = (np.array([known.setdefault(name, len(known)) for name in names]) for names in (here, there))
    return float(weights @ (rows.values * (row[:, None] != column)).sum(axis=1))


def regions(domain: Domain | Grid, side: int = 5) -> Integers:
    """Return the region of each cell of a grid; regions are squares of side × side cells, starting at cell 0.

    Args:
        domain: The grid.
        side: The number of cells along a side of a region.

    Returns:
        The number of the region of each cell (n,).

    >>> import mechdesign as md
    >>> regions(md.Domain.grid(4, 2, 4.0, 2.0), 2)
    array([0, 0, 1, 1, 0, 0, 1, 1])
    """
    cells = as_grid(domain)
    length = as_integer(side, "side", 1)
    row, column = np.divmod(np.arange(cells.size), cells.columns)
    found: Integers = row // length * -(-cells.columns // length) + column // length
    return found


def _joint(channel: Channel | ArrayLike, prior: Prior | ArrayLike) -> tuple[Named, Floats]:
    rows = rows_of(channel)
    weights = as_prior(prior, labels=rows.rows, size=len(rows.values)).probabilities
    return rows, weights


def _lengths(rows: Named, points: Domain | ArrayLike, observables: Domain | ArrayLike | None) -> Floats:
    """Return the distance from each secret to each observable."""
    here = _places(points, "points", rows.rows)
    if observables is None:
        own = (
            unless_numbers(points.labels)
            if isinstance(points, Domain)
            else labels_of(opened(points, "points").rows, "points")
        )
        if own and rows.rows and not rows.columns:
            rows.arranged("channel", own, own)
        there = _places(points, "points", rows.columns or rows.rows)
    else:
        there = _places(observables, "observables", rows.columns)
    for name, places, count in zip(("points", "observables"), (here, there), rows.values.shape, strict=True):
        if places.shape != (count, here.shape[1]):
            raise InputError(name, "do not match the channel", value=places.shape, bound=f"({count}, {here.shape[1]})")
    lengths: Floats = np.sqrt(((here[:, None] - there) ** 2).sum(axis=2))
    return lengths


def _places(points: Domain | ArrayLike, path: str, labels: Names) -> Floats:
    """Return places in the order of labels."""
    if not isinstance(points, Domain):
        return as_points(named(points, path, labels), path)
    order = order_of(unless_numbers(points.labels), labels, path) if labels else None
    places = as_points(points, path)
    return places if order is None else places[order]


def _codes(labels: Labels, path: str, names: Names | None, count: int) -> list[Hashable]:
    """Return the label of each secret or observable, in the order of names."""
    found = as_labels(labels, path, names)
    if len(found) != count:
        raise InputError(path, "have the wrong length", value=len(found), bound=f"{count} labels")
    return found
