"""Candidate strategies, and the choice of the best one.

Candidates from the literature are trees, or trees between cumulative counts, with a budget for each level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, eigh, qr, solve_triangular
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._check import as_number, require_name
from mechdesign.base._errors import InputError, SolverError
from mechdesign.tables._line_graphs import AttributeGraph, CompleteGraph
from mechdesign.tables._linear_queries import LinearQueries
from mechdesign.tables._optimal_strategies import (
    LARGEST_PROGRAM,
    EdgeSpace,
    MarginalStrategy,
    OptimalGram,
    Sets,
    StrategyBound,
    certified_bound,
    edge_space,
    list_differences,
    list_sets,
    optimal_gram,
    solve_marginals,
    symmetries,
)
from mechdesign.tables._policy import Policy, as_policy
from mechdesign.tables._sensitivity._linear import as_lattice, linear
from mechdesign.tables._strategy import Layout, Strategy


def build_hierarchical_levels(size: int, fanout: int) -> list[Floats]:
    """Return the levels of a tree over `size` ordered values, from the root to the leaves, each a 0/1 matrix."""
    levels, width = [], 1
    while width < size:
        levels.append(_blocks(size, width, size))
        width *= fanout
    return [np.ones((1, size)), *reversed(levels)]


def build_ordered_hierarchical_levels(size: int, theta: int, fanout: int) -> list[Floats]:
    """Return the levels of the ordered hierarchical strategy: every θ-th cumulative count, then levels of trees.

    A move by at most θ values changes at most one cumulative count, and two counts per lower level (He et al. 2014,
    section 7.2).
    """
    ends = np.append(np.arange(theta - 1, size - 1, theta), size - 1)
    levels = [(np.arange(size) <= ends[:, None]).astype(float)]
    width = 1
    trees = []
    while width < theta:
        trees.append(_blocks(size, width, theta))
        width *= fanout
    return levels + trees[::-1]


def balance_levels(levels: Sequence[Floats], space: EdgeSpace, gram: Floats, norm: int) -> Floats:
    """Choose weights of the levels of a strategy that minimise the error at a fixed budget.

    The objective is tr(M·(Σ u_l² A_lᵀA_l)⁻¹)·Δ(u)² for weights u > 0. Here Δ(u) = Σ u_l s_l in the ℓ1 norm and Δ(u)² =
    Σ u_l² s_l² in the ℓ2 norm, where s_l is the sensitivity of level l. Weights for which the sum is singular in
    floating point are skipped. The best weights that the search evaluates are used.

    Args:
        levels: the rows of each level, over the values; rows that no edge changes are omitted.
        space: the span of the edges.
        gram: M in the coordinates of the spanning forest.
        norm: 1 or 2.

    Returns:
        The weighted rows in the coordinates of the forest, shape (k, d).
    """
    parts: list[Floats] = [part[np.abs(part).max(axis=1) > 0] for part in map(space.differences, levels)]
    parts = [part for part in parts if len(part)]
    if len(parts) == 1:
        return parts[0]
    changes = np.array([largest_change(part, space, norm) for part in parts])
    grams = [part.T @ part for part in parts]
    visited: list[tuple[float, Floats]] = []

    def objective(logs: Floats) -> tuple[float, Floats]:
        # Only ratios of weights matter, so the largest weight is scaled to 1 to prevent overflow.
        logs = logs - logs.max()
        squares = np.exp(2 * logs)
        total = sum(square * part for square, part in zip(squares, grams, strict=True))
        try:
            factor = cho_factor(total, check_finite=False)
        except LinAlgError:
            return np.inf, np.zeros(len(logs))
        inverse = cho_solve(factor, gram, check_finite=False)
        trace = float(np.trace(inverse))
        if not 0 < trace < np.inf:
            return np.inf, np.zeros(len(logs))
        curvature = cho_solve(factor, inverse.T, check_finite=False)
        slopes = -2 * squares * np.array([float((part * curvature).sum()) for part in grams])
        shares = np.exp(logs) * changes if norm == 1 else squares * changes
        power = 2.0 if norm == 1 else 1.0
        value = float(np.log(trace) + power * np.log(shares.sum()))
        visited.append((value, logs))
        return value, slopes / trace + 2 * shares / shares.sum()

    # The ℓ1 problem is not convex, so the search runs from two points: equal weights, and a large weight on the leaves.
    last = np.arange(len(parts)) == len(parts) - 1
    starts = [np.zeros(len(parts)), np.where(last, 0.0, -3.0)][: 2 if norm == 1 else 1]
    options: Any = {"maxiter": 15, "maxfun": 20}
    for start in starts:
        minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    weights = np.exp(min(visited, key=lambda pair: pair[0])[1]) if visited else np.ones(len(parts))
    return np.vstack([weight * part for weight, part in zip(weights, parts, strict=True)])


def largest_change(rows: Floats, space: EdgeSpace, norm: int) -> float:
    """Return approximately the largest ‖Ae‖₁ (for norm 2, ‖Ae‖₂²) over the edges e, for comparing strategies."""
    columns = np.ascontiguousarray(space.paths @ rows.T)
    distances = cdist(columns, columns, "cityblock" if norm == 1 else "sqeuclidean")
    return float(distances[space.edges[:, 0], space.edges[:, 1]].max())


def decoder(rows: Floats) -> Floats:
    """Return the pseudoinverse A⁺ of a matrix A of full rank, shape (d, k)."""
    if len(rows) < rows.shape[1]:
        return decoder(rows.T).T
    orthogonal, triangular = qr(rows, mode="economic", check_finite=False)
    return np.asarray(solve_triangular(triangular, orthogonal.T, check_finite=False))


def find_squared_error(decoding: Floats, gram: Floats) -> float:
    """Return tr(M·A⁺(A⁺)ᵀ), the total squared error over the workload for noise of unit variance."""
    return float((decoding * (gram @ decoding)).sum())


def _blocks(size: int, width: int, period: int) -> Floats:
    """Return the indicators of blocks of `width` values; a new block also starts after every `period` values."""
    values = np.arange(size)
    labels = (values // period) * (-(-period // width)) + (values % period) // width
    _, numbers = np.unique(labels, return_inverse=True)
    indicators: Floats = (numbers == np.arange(numbers.max() + 1)[:, None]).astype(float)
    return indicators


KINDS = ("optimal", "identity", "prefix", "hierarchical", "ordered-hierarchical")

WIDE = "which is further away than the tolerance of"
"""The words of `Strategy.reason` about an optimum that could not be found up to the tolerance."""

_FANOUTS = (2, 4, 16)
# This multiple of the identity is added if the workload has a lower rank than the policy and no exact basis.
_RIDGE = 1e-10
_RANK = 1e-11
# The largest number of coefficients of a workload for which a basis is computed.
_LARGEST_BASIS = 20_000_000


@dataclass(frozen=True, eq=False)
class StrategyProgram:
    """The optimisation problem of a strategy: the workload, the edges, and the optimal X for Gaussian noise.

    Attributes:
        workload: the queries.
        space: the span of the edges.
        gram: M in the coordinates of the spanning forest.
        basis: independent integer rows that span the differences of the workload, shape (r, d). None if the edges of
            the forest are the basis.
        best: the matrix with the least error for Gaussian noise, and the weights of the edges.
    """

    workload: LinearQueries
    space: EdgeSpace
    gram: Floats
    basis: Floats | None
    best: OptimalGram


@dataclass(frozen=True)
class StrategyCandidate:
    """A candidate for the best strategy.

    Attributes:
        kind: one of `KINDS`.
        detail: the parameters of the strategy, in words.
        error: Δ²·tr(M(AᵀA)⁺), the total squared error if the noise on every row has variance Δ².
        coefficients: the coefficients C, shape (k, r), or (k, d) without a basis.
        basis: the integer matrix B of the product A = CB, shape (r, d), or None.
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


def program(workload: LinearQueries, space: EdgeSpace, shape: tuple[int, ...], tolerance: float) -> StrategyProgram:
    """Solve the optimisation problem for Gaussian noise; at least one edge must change an answer to the workload.

    Args:
        workload: the queries.
        space: the span of the edges.
        shape: the number of values of each attribute.
        tolerance: the search stops if upper/lower − 1 is at most this number.

    Returns:
        The problem.
    """
    if workload.integral:
        inside = space.centred(space.centred(workload.gram()).T)
    else:
        # The mean of each row is removed before squaring, so that small differences are preserved.
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
    return StrategyProgram(workload, space, gram, basis, best)


def candidate(kind: str, programme: StrategyProgram, norm: int, *, balance: bool = True) -> StrategyCandidate | None:
    """Return the best strategy of a kind, or None if the kind does not fit the policy.

    Args:
        kind: one of `KINDS`.
        programme: the workload and the edges.
        norm: 1 for Laplace noise, 2 for Gaussian noise.
        balance: whether to optimise the budgets of the levels of trees.

    Returns:
        The strategy, or None.
    """
    return _BUILDERS[kind](programme, norm, balance)


def _build_optimal(programme: StrategyProgram, norm: int, balance: bool) -> StrategyCandidate:
    space, basis = programme.space, programme.basis
    gram = space.congruence(programme.best.gram)
    if basis is not None:
        inverse = decoder(basis)
        gram = inverse.T @ gram @ inverse
    gram = (gram + gram.T) / 2
    # All square roots of the Gram matrix have the same ℓ2 sensitivity, but different ℓ1 sensitivities.
    values, vectors = eigh(gram)
    values = np.maximum(values, 1e-12 * values[-1])
    roots = [(vectors * np.sqrt(values)) @ vectors.T]
    if norm == 1:
        gram = (vectors * values) @ vectors.T
        roots += [cholesky(gram), cholesky(gram[::-1, ::-1])[::-1, ::-1]]
    words = "a square root of the optimal matrix for Gaussian noise"
    return _choose_best([("optimal", words, root) for root in roots], programme, norm, basis)


def _build_identity(programme: StrategyProgram, norm: int, balance: bool) -> StrategyCandidate:
    return _build_from_rows("identity", "the count of every value", np.eye(programme.space.size), programme, norm)


def _build_prefix(programme: StrategyProgram, norm: int, balance: bool) -> StrategyCandidate:
    return _build_from_rows("prefix", "the cumulative counts", np.tri(programme.space.size), programme, norm)


def _build_hierarchical(programme: StrategyProgram, norm: int, balance: bool) -> StrategyCandidate:
    size = programme.space.size
    trees = {fanout: build_hierarchical_levels(size, fanout) for fanout in _FANOUTS if fanout == 2 or fanout < size}
    return _build_balanced("hierarchical", "a tree", trees, programme, norm, balance)


def _build_ordered_hierarchical(programme: StrategyProgram, norm: int, balance: bool) -> StrategyCandidate | None:
    size, edges = programme.space.size, programme.space.edges
    inner = edges[edges.max(axis=1) < size]
    theta = int(np.abs(inner[:, 0] - inner[:, 1]).max()) if len(inner) else size
    if not 1 < theta < size - 1:
        return None
    trees = {
        fanout: build_ordered_hierarchical_levels(size, theta, fanout)
        for fanout in _FANOUTS
        if fanout == 2 or fanout < theta
    }
    words = f"cumulative counts at every {theta} values and trees"
    return _build_balanced("ordered-hierarchical", words, trees, programme, norm, balance)


_BUILDERS: dict[str, Callable[[StrategyProgram, int, bool], StrategyCandidate | None]] = {
    "optimal": _build_optimal,
    "identity": _build_identity,
    "prefix": _build_prefix,
    "hierarchical": _build_hierarchical,
    "ordered-hierarchical": _build_ordered_hierarchical,
}


def _build_balanced(
    kind: str, words: str, trees: dict[int, list[Floats]], programme: StrategyProgram, norm: int, balance: bool
) -> StrategyCandidate:
    """Choose the fan-out for equal budgets of the levels, then optimise the budgets."""
    equal = []
    for fanout, levels in trees.items():
        rows = programme.space.differences(np.concatenate(levels))
        equal.append((kind, str(fanout), rows[np.abs(rows).max(axis=1) > 0]))
    least = _choose_best(equal, programme, norm)
    fanout = int(least.detail)
    if not balance:
        return replace(least, detail=f"{words} of fan-out {fanout}, equal budgets")
    rows = balance_levels(trees[fanout], programme.space, programme.gram, norm)
    return _choose_best([(kind, f"{words} of fan-out {fanout}, budgets per level optimised", rows)], programme, norm)


def _build_from_rows(
    kind: str, words: str, strategy: Floats, programme: StrategyProgram, norm: int
) -> StrategyCandidate:
    rows = programme.space.differences(strategy)
    return _choose_best([(kind, words, rows[np.abs(rows).max(axis=1) > 0])], programme, norm)


def _choose_best(
    choices: list[tuple[str, str, Floats]], programme: StrategyProgram, norm: int, basis: Floats | None = None
) -> StrategyCandidate:
    found = []
    for kind, words, coefficients in choices:
        rows = coefficients if basis is None else coefficients @ basis
        change = largest_change(rows, programme.space, norm)
        change = change**2 if norm == 1 else change
        found.append(
            StrategyCandidate(
                kind, words, change * find_squared_error(decoder(rows), programme.gram), coefficients, basis
            )
        )
    return min(found, key=lambda one: one.error)


def _basis(workload: LinearQueries, space: EdgeSpace, rank: int) -> Floats | None:
    """Return `rank` independent integer rows that span the differences of the workload, or None if none are found."""
    if not workload.integral or workload.count * space.size > _LARGEST_BASIS:
        return None
    rows = space.differences(workload.matrix())
    _, _, order = qr(rows.T, mode="economic", pivoting=True, check_finite=False)
    basis: Floats = rows[order[:rank]]
    # If the rows did not span all differences, the answers would be biased.
    left_out = np.abs(rows - (rows @ decoder(basis)) @ basis).max()
    return basis if left_out <= 1e-8 * np.abs(rows).max() else None


_LARGEST_SIZE = 2048
# Sums of squared differences of the rounded rows must fit into an int64 with this number of bits.
_BITS = 61


def check_choice(kind: object, tolerance: object) -> None:
    """Raise `InputError` if the kind is unknown or the tolerance is not between 0 and 1."""
    require_name(kind, ("auto", *KINDS), "kind")
    if not 0 < as_number(tolerance, "tolerance") < 1:
        raise InputError("tolerance", "is not accepted", value=tolerance, bound="above 0 and below 1")


def check_strategy(policy: Policy, noise: object) -> None:
    """Raise `InputError` for a policy or a noise that `Workload.strategy` does not support."""
    require_name(noise, ("gaussian", "laplace"), "noise")
    if as_policy(policy).constraints:
        raise InputError(
            "policy",
            "has count constraints",
            value=len(policy.constraints),
            bound="no count constraints for a strategy",
            remedy="release these queries themselves: noise is then added to each of them",
        )


def _require_few_values(policy: Policy, remedy: str = "release a cumulative histogram") -> None:
    if policy.domain.size > _LARGEST_SIZE:
        raise InputError(
            "policy",
            "has too many values",
            value=policy.domain.size,
            bound=f"at most {_LARGEST_SIZE:,} values for the rows and the release of a strategy",
            remedy=f"{remedy}, or group values",
        )


def choose(queries: LinearQueries, policy: Policy, noise: str, kind: str, tolerance: float) -> Strategy:
    """Return the strategy with the least expected error among one kind or all kinds; the arguments are not checked."""
    if noise == "gaussian" and kind in ("auto", "optimal") and (size := _exchange_size(queries, policy)) is not None:
        if size <= LARGEST_PROGRAM and (alike := _exchange(queries, policy))[1]:
            return _choose_marginals(queries, policy, alike, tolerance)
        if size > LARGEST_PROGRAM and policy.domain.size > _LARGEST_SIZE:
            raise InputError(
                "workload",
                "has too many sets of attributes for the number of attributes",
                value=size,
                bound=f"at most {LARGEST_PROGRAM:,} sets of attributes × differences, such as one table for each of 18 "
                "attributes under a full policy",
                remedy="ask for tables of fewer attributes, or for fewer attributes in the domain",
            )
    _require_few_values(policy)
    space = edge_space(policy.domain.size, policy.secret_graph.edges())
    law: Literal["gaussian", "laplace"] = "laplace" if noise == "laplace" else "gaussian"
    norm = 1 if noise == "laplace" else 2
    if not _has_protected_query(queries, space):
        return _exact_strategy(queries, policy, law, space)
    programme = program(queries, space, policy.domain.shape, tolerance)
    bound = certified_bound(queries, space, programme.best.weights)
    # For Gaussian noise, no kind improves on "optimal" by more than the tolerance, so the budgets of the levels are not
    # optimised.
    balance = noise == "laplace" or kind != "auto"
    kinds = KINDS if kind == "auto" else (kind,)
    found = [one for name in kinds if (one := candidate(name, programme, norm, balance=balance)) is not None]
    if not found:
        raise InputError(
            "kind",
            "does not fit the policy",
            value=kind,
            bound="edges between values whose indices differ by more than 1",
        )
    found.sort(key=lambda one: one.error)
    best = found[0]
    rows, unit, lattice = _on_lattice(best, space)
    largest = linear(policy.secret_graph, as_lattice(rows, space.size), norm)
    if not largest.exact:
        raise SolverError("the strategy's sensitivity could not be computed exactly; its rows are too large")
    decoding = decoder(lattice * float(unit))
    ratios = tuple((one.kind, one.detail, one.error / bound.value if bound.value else math.inf) for one in found)
    reason = "it was requested"
    if kind == "auto":
        reason = f"it has the least expected error of {len(found)} candidates"
    reason += f": {ratios[0][2]:.6g} times the proven limit"
    if noise == "gaussian" and kind in ("auto", "optimal") and ratios[0][2] > 1 + tolerance:
        reason += f", {WIDE} {tolerance:g}"
    trace = find_squared_error(decoding, programme.gram) * float(unit) ** 2
    return Strategy(
        queries,
        policy,
        law,
        best.kind,
        reason,
        ratios,
        len(rows),
        unit,
        largest.power,
        bound,
        trace,
        partial(Layout, rows, space, decoding),
    )


def _exchange_size(queries: LinearQueries, policy: Policy) -> int | None:
    """Return the size of the program of `solve_marginals`; None if values of an attribute cannot be exchanged."""
    graph, shape = policy.secret_graph, policy.domain.shape
    tables = queries.tables_over(shape)
    one = isinstance(graph, AttributeGraph) and all(reach is None for reach in graph.reaches)
    if tables is None or not (one or isinstance(graph, CompleteGraph)):
        return None
    size: int = sum(2 ** len(table) for table in tables) * (len(shape) if one else 2 ** len(shape))
    return size


def _exchange(queries: LinearQueries, policy: Policy) -> tuple[Sets, Sets, Sets]:
    """Return tables, sets and differences of `solve_marginals`."""
    shape = policy.domain.shape
    tables = queries.tables_over(shape) or ()
    one = isinstance(policy.secret_graph, AttributeGraph)
    return tables, list_sets(shape, tables), list_differences(shape, one=one)


def _choose_marginals(
    queries: LinearQueries, policy: Policy, alike: tuple[Sets, Sets, Sets], tolerance: float
) -> Strategy:
    found = solve_marginals(policy.domain.shape, *alike)
    ratio = float(found.power) * found.trace / found.bound
    reason = f"it is built for these tables: {ratio:.6g} times the proven limit"
    if ratio > 1 + tolerance:
        reason += f", {WIDE} {tolerance:g}"
    if policy.domain.size > _LARGEST_SIZE:
        reason += (
            f"; rows and releases take at most {_LARGEST_SIZE:,} values, and the domain has {policy.domain.size:,}"
        )
    candidates = (("optimal", "noisy tables of differences", ratio),)
    bound = StrategyBound(found.bound, np.zeros(0), np.zeros((0, 0)))
    lay_out = partial(_lay_out, policy, found)
    return Strategy(
        queries,
        policy,
        "gaussian",
        "optimal",
        reason,
        candidates,
        found.count,
        Fraction(1),
        Fraction(found.power),
        bound,
        found.trace,
        lay_out,
    )


def _lay_out(policy: Policy, found: MarginalStrategy) -> Layout:
    """Return the arrays of a strategy for marginal tables, which only domains with few values have."""
    _require_few_values(policy, "release each table on a domain with only its attributes")
    space = edge_space(policy.domain.size, policy.secret_graph.edges())
    return Layout(found.rows(), space, space.paths[:-1].T @ found.decoding())


def _has_protected_query(queries: LinearQueries, space: EdgeSpace) -> bool:
    """Return whether some edge changes the answer to some query.

    For integer coefficients, the Gram matrix is exact and is used. For other coefficients, the Gram matrix is rounded,
    so the differences are tested directly. The computed difference of two floats is zero only if the floats are equal.
    """
    if space.rank == 0:
        return False
    changes = space.congruence(queries.gram()).diagonal() if queries.integral else space.differences(queries.matrix())
    return bool((changes != 0).any())


def _exact_strategy(queries: LinearQueries, policy: Policy, noise: Any, space: EdgeSpace) -> Strategy:
    rank, size = space.rank, space.size
    bound = StrategyBound(0.0, np.zeros(len(space.edges)), np.zeros((rank, rank)))
    reason = "all answers are exact, because the policy does not protect any query of the workload"
    rows, decoding = np.zeros((0, size), dtype=np.int64), np.zeros((rank, 0))
    lay_out = partial(Layout, rows, space, decoding)
    return Strategy(queries, policy, noise, "exact", reason, (), 0, Fraction(1), Fraction(0), bound, 0.0, lay_out)


def _on_lattice(best: StrategyCandidate, space: EdgeSpace) -> tuple[Integers, Fraction, Floats]:
    """Return a strategy's integer rows over the values, their unit, and the integer rows over the forest's edges."""
    coefficients = best.coefficients
    reach = max(float(np.abs(best.rows @ space.paths.T).max()), float(np.abs(coefficients).max()))
    # A difference is at most twice the largest entry; another factor of two allows for rounding.
    bits = math.floor((_BITS - 4 - math.log2(len(coefficients))) / 2 - math.log2(reach))
    integers = np.rint(np.ldexp(coefficients, bits))
    lattice = integers if best.basis is None else integers @ best.basis
    rows = np.rint(lattice @ space.paths[:-1].T).astype(np.int64)
    return rows, Fraction(2) ** -bits, lattice
