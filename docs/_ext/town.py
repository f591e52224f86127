"""The problems of the landing page and of the first mechanism."""

from __future__ import annotations

import numpy as np

import mechdesign as md


def town(epsilon: float) -> md.Problem:
    """Return the problem of the landing page: 48 cells of 1 km², two centres, and the distance as the cost."""
    cells = md.Domain.grid(columns=8, rows=6, width=8.0, height=6.0, unit="km")
    x, y = cells.points.T
    old_town = 6 * np.exp(-((x - 2.5) ** 2 + (y - 3.5) ** 2) / 2)
    harbour = 6 * np.exp(-((x - 6) ** 2 + (y - 2) ** 2))
    people = old_town + harbour + 0.1
    distance = md.distances.euclidean(cells)
    return md.Problem(
        prior=md.Prior(people / people.sum()),
        cost=distance,
        requirements=[md.MetricPrivacy(epsilon, distance)],
        secrets=cells,
        title="A town of 48 cells",
    )


def first() -> md.Problem:
    """Return the problem of the first mechanism: twelve cells, a uniform prior, ε = 0.8 per km."""
    cells = md.Domain.grid(columns=4, rows=3, width=4.0, height=3.0, unit="km")
    distance = md.distances.euclidean(cells)
    return md.Problem(
        prior=md.Prior.uniform(cells.size),
        cost=distance,
        requirements=[md.MetricPrivacy(0.8, distance)],
        secrets=cells,
        title="A small town",
    )
