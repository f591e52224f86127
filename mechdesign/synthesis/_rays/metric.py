"""Check that the bounds of a problem are a metric over all pairs, as rays require, and lay it out in the plane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import eigsh
from scipy.spatial.distance import cdist

from mechdesign.base._arrays import Floats
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
