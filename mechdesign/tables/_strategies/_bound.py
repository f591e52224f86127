"""Lower bounds on the error of every strategy, with proofs that include floating-point rounding."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, eigh

from mechdesign.base._arrays import Floats
from mechdesign.tables._linear_queries import LinearQueries
from mechdesign.tables._strategies._gaussian import EdgeSpace

_UNIT = 2.0**-53
# If H is shrunk by at most this share, the search for a better conditioned H stops.
_ENOUGH = 4.0**-8
# H is shrunk by each of these shares in turn, from 4^-20 (about 1e-12) to 1/4.
_SLACKS = tuple(4.0**-power for power in range(20, 0, -1))


@dataclass(frozen=True)
class StrategyBound:
    """A proven lower bound on tr(X⁺M) over all X with eᵀXe ≤ 1 on the edges.

    Attributes:
        value: the lower bound.
        weights: integer weights w ≥ 0 of the edges, stored as floats, with a sum below 2⁵³.
        multiplier: H in the coordinates of the spanning forest, of shape (d, d), with H·M·Hᵀ ⪯ Σ w_e c_e c_eᵀ.

    >>> StrategyBound(2.0, np.ones(1), np.ones((1, 1))).value
    2.0
    """

    value: float
    weights: Floats
    multiplier: Floats


def certified_bound(workload: LinearQueries, space: EdgeSpace, weights: Floats) -> StrategyBound:
    """Return a proven lower bound on the error of every strategy with unit sensitivity.

    Let H·M·Hᵀ ⪯ E = Σ w_e c_e c_eᵀ, and let X be feasible. Then tr(X⁺M) ≥ 2·tr(HM) − tr(X·HMHᵀ) ≥ 2·tr(HM) − Σ w_e, by
    completing the square in X^{1/2}. The best scaling of H and w gives the bound **tr(HM)²/Σw**. For H =
    E·Fᵀ·(FEFᵀ)^{-1/2}·(F⁺)ᵀ with FᵀF = M, the bound equals τ²/Σw. The proof holds for every H that satisfies the
    inequality, so H may be rounded. Only the inequality must be verified, in the coordinates of the spanning forest.
    Four facts are used:

    - the weights are integers with a sum below 2⁵⁰, and the entries of the paths are 0 or 1, so E is exact in float64;
    - M is exact for integral workloads; for other workloads |ΔM_ij| ≤ γ_{q+4}·√(M_ii·M_jj);
    - |fl(HMHᵀ) − HMHᵀ| ≤ γ_{2d+2}·|H||M||H|ᵀ (Higham 2002, section 3.5), and the norm of the right-hand side is at most
      its largest row sum;
    - if the floating-point Cholesky factorisation of A − cI succeeds for some c ≥ γ_{d+2}·tr A/(1 − γ_{d+2}), then A ⪰
      0 (Rump 2006, theorem 2.3; Higham 2002, theorem 10.3).

    H is shrunk until the inequality is verified; if every trial fails, the bound is 0. No product underflows if the
    coefficients of the workload are zero or have magnitudes between 1e-100 and 1e100.

    Args:
        workload: the queries.
        space: the span of the edges.
        weights: weights μ ≥ 0 of the edges, which are not all zero; their sum is arbitrary.

    Returns:
        The bound and its proof.

    >>> from mechdesign.tables._workload import identity
    >>> from mechdesign.tables._strategies._gaussian import edge_space
    >>> space = edge_space(2, np.array([[0, 1]]))
    >>> round(certified_bound(identity(2), space, np.ones(1)).value, 6)
    2.0
    """
    rank = space.rank
    gram, inexact = _forest_gram(workload, space)
    spectrum, vectors = eigh(gram)
    sizes = np.sqrt(np.diag(gram))
    best = StrategyBound(0.0, np.zeros(len(space.edges)), np.zeros((rank, rank)))
    # Small eigenvalues of M and small weights contribute little to the bound, but they make H ill-conditioned.
    for cut, floor in itertools.product((1e-13, 1e-10, 1e-7), (0.0, 1e-10, 1e-8, 1e-6, 1e-5, 1e-4)):
        kept = spectrum > cut * max(float(spectrum[-1]), 0.0)
        if not kept.any():
            break
        integers = _integral_weights(space, weights, floor / rank)
        inner = space.paths.T @ space.laplacian(integers) @ space.paths
        multiplier = _multiplier(inner, np.sqrt(spectrum[kept]), vectors[:, kept])
        slack = _smallest_slack(inner, multiplier, gram, inexact)
        if slack is None:
            continue
        shrunk = (1.0 - slack) * multiplier
        trace = float((shrunk * gram).sum())
        trace -= 1.01 * _gamma(rank * rank + 4) * float((np.abs(shrunk) * np.abs(gram)).sum())
        trace -= 1.01 * inexact * float(sizes @ np.abs(shrunk) @ sizes)
        value = max(trace, 0.0) ** 2 / float(integers.sum()) * (1 - 8 * _UNIT)
        if value > best.value:
            best = StrategyBound(value, integers, shrunk)
        if slack <= _ENOUGH:
            break
    return best


def _multiplier(inner: Floats, roots: Floats, vectors: Floats) -> Floats:
    """Return H = E·Fᵀ·(FEFᵀ)^{-1/2}·(F⁺)ᵀ for F with the given singular values and right singular vectors."""
    middle, turn = eigh((roots[:, None] * (vectors.T @ inner @ vectors)) * roots)
    inverse = (turn / np.sqrt(np.maximum(middle, middle[-1] * 1e-15))) @ turn.T
    result: Floats = inner @ ((vectors * roots) @ inverse @ (vectors / roots).T)
    return result


def _smallest_slack(inner: Floats, multiplier: Floats, gram: Floats, inexact: float) -> float | None:
    """Return the least share s for which ((1 − s)H)·M·((1 − s)H)ᵀ ⪯ E is proven, or None if every trial fails."""
    rank = len(inner)
    magnitude = np.abs(multiplier)
    sizes = np.sqrt(np.diag(gram))
    product = multiplier @ gram @ multiplier.T
    product = (product + product.T) / 2
    rows = magnitude @ (np.abs(gram) @ magnitude.sum(axis=0))
    error = _gamma(2 * rank + 8) * float(rows.max()) + inexact * float(((magnitude @ sizes) ** 2).sum())
    largest = float(np.trace(inner)) + float(np.linalg.norm(product))
    shift = 1.01 * (error + 2 * _gamma(rank + 8) * largest)
    for slack in _SLACKS:
        # The indices of γ include terms for the rounding of the entries of (1 − s)H.
        try:
            cholesky(inner - (1.0 - slack) ** 2 * product - shift * np.eye(rank), lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            continue
        return slack
    return None


def _integral_weights(space: EdgeSpace, weights: Floats, floor: float) -> Floats:
    """Scale weights to integers with a sum below 2⁵⁰; edges of the forest get a share of about `floor` or more."""
    shares = weights / weights.sum()
    if floor > 0:
        shares = np.where(space.in_forest, np.maximum(shares, floor), shares)
    integers: Floats = np.floor(shares / shares.sum() * 2.0**49)
    return integers


def _forest_gram(workload: LinearQueries, space: EdgeSpace) -> tuple[Floats, float]:
    """Return M in the coordinates of the forest, and a γ for which its error is |ΔM_ij| ≤ γ·√(M_ii·M_jj)."""
    if workload.integral:
        if workload.gram_is_quick or workload.count > workload.size:
            return space.congruence(workload.gram()), 0.0
        rows = space.differences(workload.matrix())
        return rows.T @ rows, 0.0
    rows = space.differences(workload.matrix())
    gram = rows.T @ rows
    return (gram + gram.T) / 2, 1.01 * _gamma(workload.count + 8)


def _gamma(terms: int) -> float:
    """Return an upper bound on γ_n = nu/(1 − nu), where u is the unit roundoff."""
    product = terms * _UNIT
    return math.nextafter(1.001 * product / (1 - product), math.inf)
