"""Which problems rays can solve, those whose bounds are a metric over all pairs; and that metric in the plane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import eigsh
from scipy.spatial.distance import cdist

from mechdesign.base._arrays import Floats
from mechdesign.base._deadline import Deadline
from mechdesign.base._errors import InputError
from mechdesign.synthesis._normal import NormalForm

_ROUNDING_ERROR = 1e-9
# Up to so many secrets all eigenvalues are computed: there is always an answer, and it takes no time.
_MAX_FULL_EIGENVALUES = 300
# Secrets whose detours are looked at together.
_TARGETS_PER_BATCH = 32
_REMEDY = 'choose other rows, or leave them out ("auto")'


@dataclass(frozen=True, eq=False)
class PlaneLayout:
    """Points of the plane (k, 2) whose distances are at most `stretch` times those of a metric, and how much less.

    Attributes:
        points: The points.
        stretch: The largest ratio of a distance in the plane to one of the metric, at least 1.
        shrinkage: The least such ratio.
    """

    points: Floats
    stretch: float
    shrinkage: float

    @property
    def euclidean(self) -> bool:
        """Whether the metric is that of the plane, up to rounding."""
        return self.stretch <= 1 + _ROUNDING_ERROR and self.shrinkage >= 1 - _ROUNDING_ERROR


def read_metric(form: NormalForm) -> Floats:
    """Return the exponents ε·d (k, k) of a normal form, 0 on the diagonal."""
    exponents = form.exponents.copy()
    np.fill_diagonal(exponents, 0.0)
    return exponents


def lay_out(metric: Floats) -> PlaneLayout:
    """Lay a metric (k, k) out in the plane by classical scaling (Torgerson 1952); other layouts would be as valid."""
    size, scale = len(metric), float(metric.max(initial=0.0))
    if size < 4:
        return PlaneLayout(np.zeros((size, 2)), 1.0, 0.0)
    # Squares of very large or very small numbers are none.
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
    """Raise InputError unless the bounds of a normal form are a metric and its cost is the expected one."""
    if form.problem.objective != "expected":
        _refuse("takes the expected cost only", value=form.problem.objective)
    if form.forbidden.any():
        _refuse("takes no forbidden answers", value=f"{int(form.forbidden.sum())} infinite costs")
    metric = read_metric(form)
    if not np.isfinite(metric).all():
        s, t = (int(index[0]) for index in np.nonzero(~np.isfinite(metric)))
        _refuse("takes metric privacy between all pairs only", value=f"no bound on the secrets {s} and {t}")
    asymmetry = np.abs(metric - metric.T)
    if (asymmetry > _ROUNDING_ERROR * metric).any():
        s, t = divmod(int((asymmetry - _ROUNDING_ERROR * metric).argmax()), len(metric))
        _refuse("takes symmetric distances only", value=f"ε·d = {metric[s, t]:g} and {metric[t, s]:g} for {s} and {t}")
    if not lay_out(metric).euclidean:
        _check_triangles(metric, deadline)


def _check_triangles(metric: Floats, deadline: Deadline) -> None:
    limit = metric * (1 - _ROUNDING_ERROR)
    for source in range(len(metric)):
        deadline.check()
        for start in range(0, len(metric), _TARGETS_PER_BATCH):
            part = slice(start, start + _TARGETS_PER_BATCH)
            shorter = (metric[source, part, None] + metric[part]).min(axis=0) < limit[source]
            if shorter.any():
                target = int(shorter.argmax())
                way = start + int((metric[source, part] + metric[part, target]).argmin())
                _refuse("takes metrics only", value=f"{source} and {target} are closer by way of {way}")


def _refuse(problem: str, value: str) -> None:
    raise InputError("rows", f'"rays" {problem}', value=value, remedy=_REMEDY)
