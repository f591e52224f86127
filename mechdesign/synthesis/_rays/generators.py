"""The metric of a problem, its layout in the plane, and the first rays, which decrease from a centre.

Rays require that the bounds are a metric over all pairs.

The first rays implement docs/theory/rays.md, "The first functions". Let E = ε·d be the metric. A function e^(−f) is in
the cone if ``|f(s) − f(t)| <= E(s,t)`` for all secrets s and t. Examples are f(s) = max(E(s,c) − r, 0) for a secret c
and a plateau r. If the metric has a layout in the plane, f may also be the distance from any point there, divided by
the layout's stretch.

Centres outside the map are needed for secrets at its border: otherwise the master program hardly determines the
multipliers of these secrets. The constant function makes every master program feasible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import eigsh
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._deadline import Deadline
from mechdesign.base._errors import InputError
from mechdesign.synthesis._normal import NormalForm

# Relative difference up to which distances are treated as equal.
_ROUNDING_ERROR = 1e-9
# Up to this number of secrets all eigenvalues are computed, which is fast and always converges.
_MAX_FULL_EIGENVALUES = 300
# Number of targets whose detours are checked together.
_TARGETS_PER_BATCH = 32
_REMEDY = 'choose other rows, or leave them out ("auto")'


@dataclass(frozen=True, eq=False)
class PlaneLayout:
    """A layout of a metric in the plane.

    Attributes:
        points: The points, shape (k, 2).
        stretch: Largest ratio of a distance in the plane to the metric distance, at least 1.
        shrinkage: Least ratio of a distance in the plane to the metric distance.
    """

    points: Floats
    stretch: float
    shrinkage: float

    @property
    def euclidean(self) -> bool:
        """Whether all distances in the plane equal the metric, up to rounding errors."""
        return self.stretch <= 1 + _ROUNDING_ERROR and self.shrinkage >= 1 - _ROUNDING_ERROR


def read_metric(form: NormalForm) -> Floats:
    """Return the exponents ε·d (k, k) of a normal form, 0 on the diagonal."""
    exponents = form.exponents.copy()
    np.fill_diagonal(exponents, 0.0)
    return exponents


def lay_out(metric: Floats) -> PlaneLayout:
    """Lay out a metric (k, k) in the plane by classical scaling (Torgerson 1952); results are valid with any layout."""
    size, scale = len(metric), float(metric.max(initial=0.0))
    if size < 4:
        return PlaneLayout(np.zeros((size, 2)), 1.0, 0.0)
    # The scale avoids overflow and underflow in the squares.
    squares = (metric / scale) ** 2
    means = squares.mean(axis=0)
    products = 0.5 * (means + means[:, None] - squares - means.mean())
    if size <= _MAX_FULL_EIGENVALUES:
        values, vectors = np.linalg.eigh(products)
    else:
        values, vectors = eigsh(products, k=2, which="LA", v0=np.ones(size) + np.arange(size) / size)
    points = scale * vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0))
    ratios = cdist(points, points)
    np.fill_diagonal(ratios, 1.0)
    np.divide(ratios, metric, out=ratios, where=metric > 0)
    return PlaneLayout(points, max(1.0, float(ratios.max())), float(ratios.min()))


def check_rays(form: NormalForm, deadline: Deadline) -> None:
    """Raise InputError unless the bounds of a normal form are a metric and the objective is the expected cost."""
    if form.problem.objective != "expected":
        _refuse("supports only the expected cost", value=form.problem.objective)
    if form.forbidden.any():
        _refuse("does not support forbidden answers", value=f"{int(form.forbidden.sum())} infinite costs")
    metric = read_metric(form)
    if not np.isfinite(metric).all():
        s, t = (int(index[0]) for index in np.nonzero(~np.isfinite(metric)))
        _refuse("supports only metric privacy between all pairs", value=f"no bound on the secrets {s} and {t}")
    asymmetry = np.abs(metric - metric.T)
    if (asymmetry > _ROUNDING_ERROR * metric).any():
        s, t = divmod(int((asymmetry - _ROUNDING_ERROR * metric).argmax()), len(metric))
        _refuse("requires symmetric distances", value=f"ε·d = {metric[s, t]:g} and {metric[t, s]:g} for {s} and {t}")
    if not lay_out(metric).euclidean:
        _check_triangles(metric, deadline)


def _check_triangles(metric: Floats, deadline: Deadline) -> None:
    """Raise InputError if some pair has a shorter detour through a third secret."""
    limit = metric * (1 - _ROUNDING_ERROR)
    for source in range(len(metric)):
        deadline.check()
        for start in range(0, len(metric), _TARGETS_PER_BATCH):
            part = slice(start, start + _TARGETS_PER_BATCH)
            shorter = (metric[source, part, None] + metric[part]).min(axis=0) < limit[source]
            if shorter.any():
                target = int(shorter.argmax())
                way = start + int((metric[source, part] + metric[part, target]).argmin())
                _refuse("requires a metric", value=f"a shorter path from {source} to {target} through {way}")


def _refuse(problem: str, value: str) -> None:
    raise InputError("rows", f'"rays" {problem}', value=value, remedy=_REMEDY)


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
