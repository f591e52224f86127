"""Candidate strategies for a workload under a policy, and which of them is best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cholesky, eigh, qr

from mechdesign.base._arrays import Floats

from mechdesign.blowfish.classical_strategies import balanced_levels
from mechdesign.blowfish.classical_strategies import decoder
from mechdesign.blowfish.classical_strategies import hierarchical_levels
from mechdesign.blowfish.classical_strategies import largest_change
from mechdesign.blowfish.classical_strategies import ordered_hierarchical_levels
from mechdesign.blowfish.classical_strategies import squared_error
from mechdesign.blowfish.edge_space import EdgeSpace
from mechdesign.blowfish.gaussian_strategy import OptimalGram
from mechdesign.blowfish.gaussian_strategy import optimal_gram
from mechdesign.blowfish.gaussian_strategy import symmetries
from mechdesign.blowfish.workload import Workload
from mechdesign.blowfish.workload import identity
from mechdesign.blowfish.workload import prefixes

__all__ = ["KINDS", "Candidate", "Program", "candidate", "program"]


KINDS = ("optimal", "identity", "prefix", "hierarchical", "ordered-hierarchical")

_FANOUTS = (2, 4, 16)
# Where a workload has fewer dimensions than the policy and no exact basis, this share of it is added in the others.
_RIDGE = 1e-10
_RANK = 1e-11
# A basis is looked for among so many coefficients.
_LARGEST_BASIS = 20_000_000


@dataclass(frozen=True, eq=False)
class Program:
    """What strategies are chosen for: M and the edges, and what is known of the best X.

    Attributes:
        workload: the queries.
        space: the edges.
        gram: M in the coordinates of the spanning forest.
        basis: independent differences that span the workload's, integers of shape (r, d), or None where those of the
            forest are used.
        best: the matrix of least Gaussian error, and weights of edges.
    """

    workload: Workload
    space: EdgeSpace
    gram: Floats
    basis: Floats | None
    best: OptimalGram


@dataclass(frozen=True)
class Candidate:
    """A strategy that was considered.

    Attributes:
        kind: one of `KINDS`.
        detail: its parameters in words.
        error: Δ²·tr(M(AᵀA)⁺), the total squared error where the noise has the variance Δ² on every row.
        coefficients: C, shape (k, r) or, without a basis, (k, d).
        basis: the integers B that C multiplies, shape (r, d), or None.
    """

    kind: str
    detail: str
    error: float
    coefficients: Floats
    basis: Floats | None = None

    @property
    def rows(self) -> Floats:
        """Return A = CB in the coordinates of the spanning forest, shape (k, d)."""
        return self.coefficients if self.basis is None else self.coefficients @ self.basis


def program(workload: Workload, space: EdgeSpace, shape: tuple[int, ...], tolerance: float) -> Program:
    """Find the matrix of least Gaussian error for a workload that the edges do not leave exact.

    Args:
        workload: the queries.
        space: the edges.
        shape: the number of values of each attribute.
        tolerance: stop when upper/lower − 1 is no more than this.
    """
    if workload.integral:
        inside = space.centred(space.centred(workload.gram()).T)
    else:
        # What the rows have in common is taken off before it is squared, and small differences are kept.
        centred = space.centred(workload.matrix())
        inside = centred.T @ centred
    inside = (inside + inside.T) / 2
    spectrum = np.linalg.eigvalsh(inside)
    rank = int((spectrum > _RANK * spectrum[-1]).sum())
    basis = None
    if rank < space.rank:
        basis = _basis(workload, space, rank)
        if basis is None:
            inside = inside + _RIDGE * spectrum[-1] * space.centred(np.eye(space.size))
    mirrors = symmetries(inside, space, shape)
    best = optimal_gram(inside, space, mirrors, tolerance=tolerance)
    rows = space.differences(workload.matrix()) if not workload.integral else None
    gram = space.congruence(workload.gram()) if rows is None else rows.T @ rows
    return Program(workload, space, gram, basis, best)


def candidate(kind: str, programme: Program, norm: int, *, balance: bool = True) -> Candidate | None:
    """Return the best strategy of a kind, or None where the kind does not fit the policy.

    Args:
        kind: one of `KINDS`.
        programme: the workload and the edges.
        norm: 1 for Laplace, 2 for Gaussian noise.
        balance: whether to optimise the budgets of the levels of trees.
    """
    return _BUILDERS[kind](programme, norm, balance)


def _optimal(programme: Program, norm: int, balance: bool) -> Candidate:
    space, basis = programme.space, programme.basis
    gram = space.congruence(programme.best.gram)
    if basis is not None:
        inverse = decoder(basis)
        gram = inverse.T @ gram @ inverse
    gram = (gram + gram.T) / 2
    # Every square root gives the same ℓ2 sensitivity; the ℓ1 sensitivity differs.
    values, vectors = eigh(gram)
    values = np.maximum(values, 1e-12 * values[-1])
    roots = [(vectors * np.sqrt(values)) @ vectors.T]
    if norm == 1:
        gram = (vectors * values) @ vectors.T
        roots += [cholesky(gram), cholesky(gram[::-1, ::-1])[::-1, ::-1]]
    words = "a square root of the optimal matrix for Gaussian noise"
    return _best([("optimal", words, root) for root in roots], programme, norm, basis)


def _identity(programme: Program, norm: int, balance: bool) -> Candidate:
    return _rows("identity", "the count of every value", identity(programme.space.size), programme, norm)


def _prefix(programme: Program, norm: int, balance: bool) -> Candidate:
    return _rows("prefix", "the cumulative counts", prefixes(programme.space.size), programme, norm)


def _hierarchical(programme: Program, norm: int, balance: bool) -> Candidate:
    size = programme.space.size
    trees = {fanout: hierarchical_levels(size, fanout) for fanout in _FANOUTS if fanout == 2 or fanout < size}
    return _balanced("hierarchical", "a tree", trees, programme, norm, balance)


def _ordered_hierarchical(programme: Program, norm: int, balance: bool) -> Candidate | None:
    size, edges = programme.space.size, programme.space.edges
    inner = edges[edges.max(axis=1) < size]
    theta = int(np.abs(inner[:, 0] - inner[:, 1]).max()) if len(inner) else size
    if not 1 < theta < size - 1:
        return None
    trees = {
        fanout: ordered_hierarchical_levels(size, theta, fanout) for fanout in _FANOUTS if fanout == 2 or fanout < theta
    }
    words = f"cumulative counts at every {theta} values and trees"
    return _balanced("ordered-hierarchical", words, trees, programme, norm, balance)


_BUILDERS: dict[str, Callable[[Program, int, bool], Candidate | None]] = {
    "optimal": _optimal,
    "identity": _identity,
    "prefix": _prefix,
    "hierarchical": _hierarchical,
    "ordered-hierarchical": _ordered_hierarchical,
}


def _balanced(
    kind: str, words: str, trees: dict[int, list[Floats]], programme: Program, norm: int, balance: bool
) -> Candidate:
    """Choose the fan-out with equal budgets, then balance the budgets of the levels."""
    equal = []
    for fanout, levels in trees.items():
        rows = programme.space.differences(np.concatenate(levels))
        equal.append((kind, str(fanout), rows[np.abs(rows).max(axis=1) > 0]))
    least = _best(equal, programme, norm)
    fanout = int(least.detail)
    if not balance:
        return replace(least, detail=f"{words} of fan-out {fanout}, equal budgets")
    rows = balanced_levels(trees[fanout], programme.space, programme.gram, norm)
    return _best([(kind, f"{words} of fan-out {fanout}, budgets per level optimised", rows)], programme, norm)


def _rows(kind: str, words: str, strategy: Workload, programme: Program, norm: int) -> Candidate:
    rows = programme.space.differences(strategy.matrix())
    return _best([(kind, words, rows[np.abs(rows).max(axis=1) > 0])], programme, norm)


def _best(
    choices: list[tuple[str, str, Floats]], programme: Program, norm: int, basis: Floats | None = None
) -> Candidate:
    found = []
    for kind, words, coefficients in choices:
        rows = coefficients if basis is None else coefficients @ basis
        change = largest_change(rows, programme.space, norm)
        change = change**2 if norm == 1 else change
        found.append(Candidate(kind, words, change * squared_error(decoder(rows), programme.gram), coefficients, basis))
    return min(found, key=lambda one: one.error)


def _basis(workload: Workload, space: EdgeSpace, rank: int) -> Floats | None:
    """Return `rank` independent rows of differences of the workload that span all, if they are integers."""
    if not workload.integral or workload.count * space.size > _LARGEST_BASIS:
        return None
    rows = space.differences(workload.matrix())
    _, _, order = qr(rows.T, mode="economic", pivoting=True, check_finite=False)
    basis: Floats = rows[order[:rank]]
    # A direction taken for none would bias the answers.
    left_out = np.abs(rows - (rows @ decoder(basis)) @ basis).max()
    return basis if left_out <= 1e-8 * np.abs(rows).max() else None
