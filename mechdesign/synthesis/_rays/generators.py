"""The first rays: functions that decrease from a centre on or around the map.

This module implements docs/theory/rays.md, "The first functions". Let E = ε·d be the metric. A function e^(−f) is in
the cone if ``|f(s) − f(t)| <= E(s,t)`` for all secrets s and t. Examples are f(s) = max(E(s,c) − r, 0) for a secret c
and a plateau r. If the metric has a layout in the plane, f may also be the distance from any point there, divided by
the layout's stretch.

Centres outside the map are needed for secrets at its border: otherwise the master program hardly determines the
multipliers of these secrets. The constant function makes every master program feasible.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from mechdesign.base._arrays import Floats, Integers
from mechdesign.synthesis._rays.metric import PlaneLayout

# Plateaus r of the first rays, in units of E.
_PLATEAUS = (0.0, 1.0)
# Limits for centres outside the map: largest distance from the map in units of E, and least distance from a secret in
# lattice steps.
_MARGIN_EXPONENT, _MIN_DISTANCE_STEPS = 2.5, 0.75
# Largest ratio of the number of lattice points to the number of places.
_MAX_POINTS_PER_PLACE = 100
# Layouts with a larger stretch are not used, because they represent the metric poorly.
_MAX_STRETCH = 1.5


def make_first_rays(metric: Floats, layout: PlaneLayout) -> Floats:
    """Return the first rays, shape (count, k), with largest entries of 1; the constant ray is included."""
    around = _place_centres(layout)
    distances = [metric]
    if len(around):
        distances.append(cdist(around, layout.points) / layout.stretch)
    found = [np.ones((1, len(metric)))]
    for exponents in distances:
        for plateau in _PLATEAUS:
            lowered = np.maximum(exponents - plateau, 0.0)
            found.append(np.exp(lowered.min(axis=1, keepdims=True) - lowered))
    return np.unique(np.concatenate(found), axis=0) if len(metric) < 3 else np.concatenate(found)


def extend_into_cone(values: Floats, members: Integers, metric: Floats) -> Floats:
    """Return the least function of the cone, shape (k,), that is at least `values` at the secrets `members`."""
    found: Floats = (values[:, None] * np.exp(-metric[members])).max(axis=0)
    return found


def _place_centres(layout: PlaneLayout) -> Floats:
    """Return centres on a lattice around the map, shape (count, 2), about as densely as the places."""
    points = layout.points
    if len(points) < 4 or layout.stretch > _MAX_STRETCH:
        return np.zeros((0, 2))
    tree = cKDTree(points)
    step = float(np.median(np.asarray(tree.query(points, k=2)[0])[:, 1]))
    low, high = points.min(axis=0) - _MARGIN_EXPONENT, points.max(axis=0) + _MARGIN_EXPONENT
    # If the places are dense compared with the margin, the spacing of the lattice is increased to about one centre per
    # place.
    step = max(step, float(np.sqrt((high - low).prod() / (2 * len(points)))), _MARGIN_EXPONENT / 8)
    if not float(((high - low) / step + 1).prod()) <= _MAX_POINTS_PER_PLACE * len(points):
        # Places that are far apart hardly interact, so no centres are needed.
        return np.zeros((0, 2))
    axes = [np.arange(a, b + step, step) for a, b in zip(low, high, strict=True)]
    lattice = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    distance = tree.query(lattice)[0]
    found: Floats = lattice[(distance > _MIN_DISTANCE_STEPS * step) & (distance <= _MARGIN_EXPONENT)]
    return found
