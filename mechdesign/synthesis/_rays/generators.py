"""The first rays: functions that fall from a centre, with centres on and around the map.

e^(−f) is in the cone where f changes by at most E(s,t) between any two secrets s and t, E the metric ε·d. Such are
f(s) = max(E(s,c) − r, 0) for a secret c and a plateau r, and, in a layout of the metric in the plane, the distance from
any point of the plane, divided by the layout's stretch. Centres outside matter at the border of the map: without them
hardly anything tells the multipliers there what to be. The constant function makes every program feasible.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from mechdesign.base._arrays import Floats, Integers
from mechdesign.synthesis._rays.metric import PlaneLayout

_PLATEAUS = (0.0, 1.0)
# How far outside the map, in units of E, centres are laid, and how far from the next secret, in steps of the map.
_MARGIN_EXPONENT, _MIN_DISTANCE_STEPS = 2.5, 0.75
# The lattice may have so many times more points than there are places.
_MAX_POINTS_PER_PLACE = 100
# A layout that stretches more tells little about the metric.
_MAX_STRETCH = 1.5


def make_first_rays(metric: Floats, layout: PlaneLayout) -> Floats:
    """Return rays (number, k), each with the largest entry 1, the constant one among them."""
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
    """Return the least function of the cone (k,) that is at least `values` (r,) at `members` (r,)."""
    found: Floats = (values[:, None] * np.exp(-metric[members])).max(axis=0)
    return found


def _place_centres(layout: PlaneLayout) -> Floats:
    """Return points on a lattice around the map (number, 2), as dense as its places and not more than there are."""
    points = layout.points
    if len(points) < 4 or layout.stretch > _MAX_STRETCH:
        return np.zeros((0, 2))
    tree = cKDTree(points)
    step = float(np.median(np.asarray(tree.query(points, k=2)[0])[:, 1]))
    low, high = points.min(axis=0) - _MARGIN_EXPONENT, points.max(axis=0) + _MARGIN_EXPONENT
    # Of places that are dense beside their margin, as many centres as there are places.
    step = max(step, float(np.sqrt((high - low).prod() / (2 * len(points)))), _MARGIN_EXPONENT / 8)
    if not float(((high - low) / step + 1).prod()) <= _MAX_POINTS_PER_PLACE * len(points):
        # Where places are far apart, next to nothing lies between them.
        return np.zeros((0, 2))
    axes = [np.arange(a, b + step, step) for a, b in zip(low, high, strict=True)]
    lattice = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    distance = tree.query(lattice)[0]
    found: Floats = lattice[(distance > _MIN_DISTANCE_STEPS * step) & (distance <= _MARGIN_EXPONENT)]
    return found
