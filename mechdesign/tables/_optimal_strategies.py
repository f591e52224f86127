"""Optimal strategies: for Gaussian noise, for marginal tables, and lower bounds on the error of every strategy.

The proofs of the bounds include floating-point rounding. Marginal tables have an optimal strategy of their own under
policies that treat all values of an attribute alike. The mean of a feasible X = AᵀA over all exchanges of values within
an attribute is feasible and has no larger error, since tr(X⁺M) is convex. So some optimal X is Σ w_S P_S over sets S of
attributes. P_S projects onto the functions of these attributes that have the mean zero along each of them. With M P_S =
m_S P_S, dim_S = tr P_S, and c_S(D) = ‖P_S(e_x − e_y)‖² for two values that differ in the attributes D, the program is

    minimise Σ dim_S m_S / w_S  subject to  Σ w_S c_S(D) ≤ 1 for every D,

with one number for each set. By the inequality of Cauchy and Schwarz, every y ≥ 0 proves the lower bound (Σ_S √(dim_S
m_S Σ_D y_D c_S(D)))² / Σ y.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np
from scipy.linalg import cholesky, eigh
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.base._values import cached_property
from mechdesign.tables._linear_queries import LinearQueries


@dataclass(frozen=True)
class EdgeSpace:
    """A spanning forest of a graph on the values 0 … size − 1; the null node is `size`.

    Let α be the differences of the weights a of a query along the d edges of the forest. Let c_x be the 0/1 indicator
    of the path from the root to x. A move along an edge (x, y) changes the answer by a_x − a_y = (c_x − c_y)·α. A
    histogram h is determined by the counts v = Cᵀh below each edge of the forest and by the totals of the components.
    If a is zero at the roots, then a·h = α·v. No edge changes the totals, so they are outside the span of the edges.

    Attributes:
        size: the number |T| of values.
        edges: the pair of nodes of every edge, int64 of shape (m, 2).
        paths: the matrix C with entries 0 and 1, float64 of shape (size + 1, d).
        children: the lower end of each edge of the forest, int64 of shape (d,).
        parents: the upper end of each edge of the forest, int64 of shape (d,).
        component: the index of each value's component, int64 of shape (size,).
        free: the indices of the components without the null node, whose totals no edge changes, int64.

    >>> edge_space(4, np.array([[0, 1], [1, 2]])).rank
    2
    """

    size: int
    edges: Integers
    paths: Floats
    children: Integers
    parents: Integers
    component: Integers
    free: Integers

    @property
    def rank(self) -> int:
        """Return d, the dimension of the span of the edges."""
        return len(self.children)

    @cached_property
    def in_forest(self) -> Flags:
        """Return, for each edge, whether it belongs to the forest, shape (m,)."""
        known = np.minimum(self.children, self.parents) * (self.size + 1) + np.maximum(self.children, self.parents)
        return np.isin(self.edges.min(axis=1) * (self.size + 1) + self.edges.max(axis=1), known)

    @cached_property
    def totals(self) -> Floats:
        """Return the queries that no edge changes: a 0/1 row for each component without the null node."""
        totals: Floats = (self.component[None, :] == self.free[:, None]).astype(float)
        return totals

    def differences(self, rows: Floats) -> Floats:
        """Return the differences of rows along the edges of the forest.

        Args:
            rows: the rows, shape (k, size).

        Returns:
            The differences, shape (k, d).
        """
        padded = np.concatenate([rows, np.zeros((len(rows), 1))], axis=1)
        result: Floats = padded[:, self.children] - padded[:, self.parents]
        return result

    def congruence(self, matrix: Floats) -> Floats:
        """Return TᵀMT for a symmetric matrix M over the values; Tᵀ takes differences along edges of the forest.

        Args:
            matrix: M, shape (size, size).

        Returns:
            The matrix, shape (d, d).
        """
        return self.differences(self.differences(matrix).T)

    def histogram(self, below: Floats) -> Floats:
        """Return the histogram T·v, where each column of v contains the counts below the edges of the forest.

        Args:
            below: the counts v, shape (d, …).

        Returns:
            The histogram, shape (size, …).
        """
        result = np.zeros((self.size + 1, *below.shape[1:]))
        np.add.at(result, self.children, below)
        np.subtract.at(result, self.parents, below)
        return result[: self.size]

    def centred(self, rows: Floats) -> Floats:
        """Return the orthogonal projections of rows onto the span of the edges.

        Args:
            rows: the rows, shape (k, size).

        Returns:
            The projections, shape (k, size).
        """
        sums = rows @ self.totals.T
        result: Floats = rows - (sums / self.totals.sum(axis=1)) @ self.totals
        return result

    def laplacian(self, weights: Floats) -> Floats:
        """Return the weighted Laplacian Σ w_e (e_x − e_y)(e_x − e_y)ᵀ over the edges.

        Args:
            weights: the weights w, shape (m,).

        Returns:
            The matrix, shape (size + 1, size + 1).
        """
        nodes = self.size + 1
        first, second = self.edges.T
        pairs = coo_array((weights, (first, second)), shape=(nodes, nodes)).toarray()
        pairs += pairs.T
        return np.diag(pairs.sum(axis=0)) - pairs


def edge_space(size: int, edges: Integers) -> EdgeSpace:
    """Return the span of the edges of a graph on the values 0 … size − 1; the null node is `size`.

    The forest has the least total length, where the length of an edge is the difference of the indices of its ends. If
    edges join all consecutive values, the forest is a chain.

    Args:
        size: the number of values.
        edges: pairs of distinct nodes, of shape (m, 2), each pair once.

    Returns:
        The span, with its spanning forest.

    >>> edge_space(3, np.array([[0, 1], [1, 2], [0, 2]])).paths.tolist()
    [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]
    """
    nodes = size + 1
    first, second = edges.T
    # SciPy ignores edges of length 0, so edges to the null node have length 0.5, which is less than all other lengths.
    lengths = np.where(np.maximum(first, second) == size, 0.5, np.abs(first - second).astype(float))
    # SciPy before version 1.17 computes spanning trees only for 32-bit indices.
    places = (first.astype(np.int32), second.astype(np.int32))
    graph = coo_array((lengths, places), shape=(nodes, nodes)).tocsr()
    tree = minimum_spanning_tree(graph)
    _, labels = connected_components(tree, directed=False)
    roots = {int(labels[size]): size}
    for value in range(size):
        roots.setdefault(int(labels[value]), value)
    order: list[int] = []
    parent = np.full(nodes, -1, dtype=np.int64)
    for root in roots.values():
        reached, before = breadth_first_order(tree, root, directed=False)
        order.extend(int(node) for node in reached[1:])
        parent[reached[1:]] = before[reached[1:]]
    children = np.array(sorted(order), dtype=np.int64)
    column = np.full(nodes, -1, dtype=np.int64)
    column[children] = np.arange(len(children))
    paths = np.zeros((nodes, len(children)))
    for node in order:
        paths[node] = paths[parent[node]]
        paths[node, column[node]] = 1.0
    component = labels[:size].astype(np.int64)
    free = np.array(sorted(set(component.tolist()) - {int(labels[size])}), dtype=np.int64)
    return EdgeSpace(size, edges, paths, children, parent[children], component, free)


_SMALLEST_LOG = -60.0
_RANK = 1e-11
# Number of symmetries that divide the search. With 9 attributes of two values, three symmetries are the fastest. Every
# further one doubles the number of blocks, and each block changes the whole matrix.
_MAX_MIRRORS = 3

_MOST_UPDATES = 1000
# The exponent β. For β = 2 the bound is guaranteed to increase; slightly larger values are faster.
_EXPONENT = 2.5


@dataclass(frozen=True)
class OptimalGram:
    """The Gram matrix X = AᵀA of a strategy, and weights of edges that prove a lower bound on its error.

    Attributes:
        gram: the symmetric matrix X over the values, shape (size, size), with eᵀXe ≤ 1 for every edge up to rounding.
        weights: a weight μ ≥ 0 for each edge; the sum of the weights is 1.
        lower: the lower bound τ²/Σμ in floating point; `certified_bound` computes a proven bound from the weights.
        upper: the error κτ of `gram`, in floating point.
        iterations: the number of updates of the weights.
        seconds: the wall-clock time in seconds.
    """

    gram: Floats
    weights: Floats
    lower: float
    upper: float
    iterations: int
    seconds: float


def optimal_gram(
    gram: Floats,
    space: EdgeSpace,
    mirrors: Sequence[Integers] = (),
    *,
    tolerance: float = 2e-5,
) -> OptimalGram:
    """Minimise tr(X⁺M) over X ⪰ 0 with eᵀXe ≤ 1 for every edge e = e_x − e_y of the policy.

    For weights μ ≥ 0 of the edges, let E = Σ μ_e eeᵀ, M = FᵀF, S = FEFᵀ and τ = tr S^{1/2}. Then τ²/Σμ is a lower bound
    on the optimum. The matrix X = FᵀS^{-1/2}F/κ with κ = max_e eᵀFᵀS^{-1/2}Fe is feasible, and its objective is κτ.
    Each step multiplies the weights by (eᵀFᵀS^{-1/2}Fe/τ)^β, which is mirror ascent on the concave dual in log μ. The
    method adds Nesterov's momentum and restarts it whenever the bound decreases. With momentum, threshold policies
    require about a hundred steps instead of a thousand.

    A symmetry of the program splits F into a block of even vectors and a block of odd vectors, which divides the cost
    of the eigenvectors by four. The first `_MAX_MIRRORS` symmetries are used.

    Args:
        gram: M = WᵀW of the workload, projected onto the span of the edges, shape (size, size).
        space: the edges.
        mirrors: commuting involutions of the values that map M and the set of edges to themselves (see `symmetries`).
        tolerance: the search stops if upper/lower − 1 is at most this number.

    Returns:
        The best matrix and the best weights of all steps.
    """
    start = time.perf_counter()
    mirrors = mirrors[:_MAX_MIRRORS]
    blocks = _blocks(gram, space.size, mirrors)
    orbits = _Orbits(space, mirrors)
    first, second = orbits.representatives.T
    logs = np.log(orbits.multiplicities / orbits.multiplicities.sum())
    before, momentum, last = logs, 0, 0.0
    lower, upper = 0.0, np.inf
    best, best_weights = gram, np.exp(logs)
    step = 0
    for step in range(1, _MOST_UPDATES + 1):  # noqa: B007
        point = logs + momentum / (momentum + 3) * (logs - before)
        momentum += 1
        weights = np.exp(point - point.max())
        weights /= weights.sum()
        laplacian = orbits.laplacian(weights)
        tau, found = 0.0, np.zeros((space.size + 1, space.size + 1))
        for factor, basis in blocks:
            inner = basis.T @ (basis.T @ laplacian).T
            values, vectors = eigh(factor @ inner @ factor.T, overwrite_a=True, check_finite=False)
            roots = np.sqrt(np.maximum(values, values[-1] * 1e-15))
            tau += float(roots.sum())
            half = (vectors / np.sqrt(roots)).T @ factor
            found[:-1, :-1] += basis @ (basis @ (half.T @ half)).T
        diagonal = np.diag(found)
        ratio = (diagonal[first] + diagonal[second] - 2 * found[first, second]) / tau
        bound, worst = tau**2, float(ratio.max())
        if bound > lower:
            lower, best_weights = bound, weights
        if worst * tau**2 < upper:
            upper, best = worst * tau**2, found[:-1, :-1] / (worst * tau)
        if upper <= lower * (1 + tolerance):
            break
        before = logs
        logs = point + _EXPONENT * np.log(np.maximum(ratio, 1e-30))
        logs = np.maximum(logs - logs.max() - np.log(np.exp(logs - logs.max()).sum()), _SMALLEST_LOG)
        if bound < last:
            momentum, before = 0, logs
        last = bound
    return OptimalGram(best, orbits.spread(best_weights), lower, upper, step, time.perf_counter() - start)


def symmetries(gram: Floats, space: EdgeSpace, shape: tuple[int, ...]) -> list[Integers]:
    """Return the reversals of a single attribute that map the workload and the policy to themselves.

    Args:
        gram: M = WᵀW of the workload, projected onto the span of the edges.
        space: the edges.
        shape: the number of values of each attribute; the index of the last attribute changes fastest.

    Returns:
        The permutations of the values.
    """
    numbers = np.arange(space.size).reshape(shape)
    known = np.sort(_keys(space.edges, space.size))
    found = []
    for axis, length in enumerate(shape):
        mirror = np.flip(numbers, axis).ravel()
        if length < 2 or not np.allclose(gram[np.ix_(mirror, mirror)], gram, rtol=0, atol=1e-9 * np.abs(gram).max()):
            continue
        if np.array_equal(np.sort(_keys(_move_edges(space.edges, mirror), space.size)), known):
            found.append(mirror)
    return found


class _Orbits:
    """The orbits of the edges under the symmetries; all edges of an orbit have the same weight."""

    def __init__(self, space: EdgeSpace, mirrors: Sequence[Integers]) -> None:
        self._nodes = space.size + 1
        self._mirrors = [np.append(mirror, space.size) for mirror in mirrors]
        keys = _keys(space.edges, space.size)
        order = np.argsort(keys)
        # The mirrors commute, so after each of them, `least` is the least key of an orbit under all mirrors so far.
        least = keys
        for mirror in mirrors:
            moved = _keys(_move_edges(space.edges, mirror), space.size)
            least = np.minimum(least, least[order[np.searchsorted(keys, moved, sorter=order)]])
        _, index, self._orbit, self.multiplicities = np.unique(
            least, return_index=True, return_inverse=True, return_counts=True
        )
        self.representatives = space.edges[index]

    def laplacian(self, weights: Floats) -> Floats:
        """Return the Laplacian without the null node; the weight of an orbit is divided equally among its edges."""
        first, second = self.representatives.T
        pairs = coo_array((weights, (first, second)), shape=(self._nodes, self._nodes)).toarray()
        pairs += pairs.T
        for mirror in self._mirrors:
            pairs = (pairs + pairs[np.ix_(mirror, mirror)]) / 2
        return (np.diag(pairs.sum(axis=0)) - pairs)[:-1, :-1]

    def spread(self, weights: Floats) -> Floats:
        """Compute the weights of the edges from the weights of the orbits."""
        spread: Floats = (weights / self.multiplicities)[self._orbit]
        return spread


def _move_edges(edges: Integers, mirror: Integers) -> Integers:
    moved: Integers = np.append(mirror, len(mirror))[edges]
    return moved


def _keys(edges: Integers, size: int) -> Integers:
    keys: Integers = edges.min(axis=1) * (size + 1) + edges.max(axis=1)
    return keys


def _blocks(gram: Floats, size: int, mirrors: Sequence[Integers]) -> list[tuple[Floats, csr_array]]:
    """Return a factor F of M and an orthonormal basis for each joint eigenspace of the symmetries."""
    bases = [csr_array(np.eye(size))]
    for mirror in mirrors:
        flip = csr_array((np.ones(size), (np.arange(size), mirror)), shape=(size, size))
        bases = [part for basis in bases for sign in (1, -1) if (part := _part(basis, flip, sign)) is not None]
    largest = max(float(np.abs(gram).max()), 1e-300)
    blocks = []
    for basis in bases:
        values, vectors = eigh(np.asarray(basis.T @ (basis.T @ gram).T))
        kept = values > _RANK * max(float(values[-1]), largest)
        if kept.any():
            blocks.append((np.sqrt(values[kept])[:, None] * vectors[:, kept].T, basis))
    return blocks


def _part(basis: csr_array, flip: csr_array, sign: int) -> csr_array | None:
    """Return an orthonormal basis of the even or the odd vectors in the span of the columns of `basis`."""
    moved = (basis + sign * (flip @ basis)).toarray()
    moved = moved[:, np.abs(moved).max(axis=0) > 0]
    # The basis vectors have disjoint supports, so the index of the first nonzero entry identifies a vector.
    _, kept = np.unique(np.argmax(moved != 0, axis=0), return_index=True)
    moved = moved[:, kept]
    return csr_array(moved / np.linalg.norm(moved, axis=0)) if moved.size else None


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
    >>> from mechdesign.tables._optimal_strategies import edge_space
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


Sets = tuple[tuple[int, ...], ...]

# The largest number of differences D times sets S; the program takes minutes there.
LARGEST_PROGRAM = 2**23
# Integers whose squares, summed with those of the other sets, need at most this number of bits.
_BITS = 61
_GAP = 1e-10


@dataclass(frozen=True)
class MarginalStrategy:
    """Noisy tables k_S R_S for sets S of attributes; R_S is a product of n_i I − J over S, and of sums elsewhere.

    Attributes:
        shape: the number of values of each attribute.
        sets: the sets S.
        multiples: the integers k_S.
        power: the exact squared ℓ2 sensitivity of all rows together.
        trace: the total squared error for noise of variance 1 on each row.
        bound: a proven lower bound on the error of every linear strategy with sensitivity 1 and noise of variance 1.
    """

    shape: tuple[int, ...]
    sets: Sets
    multiples: tuple[int, ...]
    power: int
    trace: float
    bound: float

    @property
    def count(self) -> int:
        """Return the number of rows."""
        return sum(math.prod(self.shape[i] for i in chosen) for chosen in self.sets)

    def rows(self) -> Integers:
        """Return the rows k_S R_S over the values, minus their first columns, int64 of shape (count, |T|)."""
        parts = [k * self._table(chosen) for k, chosen in zip(self.multiples, self.sets, strict=True)]
        rows: Integers = np.concatenate(parts)
        rows -= rows[:, :1].copy()
        return rows

    def decoding(self) -> Floats:
        """Return the pseudoinverse of all k_S R_S, float64 of shape (|T|, count)."""
        size = math.prod(self.shape)
        parts = []
        for k, chosen in zip(self.multiples, self.sets, strict=True):
            cells = math.prod(self.shape[i] for i in chosen)
            parts.append(self._table(chosen).T / (float(k) * cells * size))
        return np.concatenate(parts, axis=1)

    def _table(self, chosen: tuple[int, ...]) -> Integers:
        factors = [
            n * np.eye(n, dtype=np.int64) - 1 if i in chosen else np.ones((1, n), dtype=np.int64)
            for i, n in enumerate(self.shape)
        ]
        table: Integers = reduce(np.kron, factors)
        return table


def list_differences(shape: Sequence[int], *, one: bool) -> Sets:
    """Return the sets of attributes that can differ along an edge; with `one`, each set has one attribute."""
    varied = [i for i, n in enumerate(shape) if n > 1]
    return tuple(D for r in range(1, 2 if one else len(varied) + 1) for D in itertools.combinations(varied, r))


def list_sets(shape: Sequence[int], tables: Sets) -> Sets:
    """Return the sets of attributes whose differences some table shows."""
    varied = [frozenset(i for i in table if shape[i] > 1) for table in tables]
    found = {S for table in varied for r in range(1, len(table) + 1) for S in itertools.combinations(sorted(table), r)}
    return tuple(sorted(found, key=lambda S: (len(S), S)))


def solve_marginals(shape: tuple[int, ...], tables: Sets, sets: Sets, differences: Sets) -> MarginalStrategy:
    """Return the strategy with the least error, up to a relative 1e-10 and the rounding to integers, and its bound."""
    size = math.prod(shape)
    weights = [
        math.prod(shape[i] - 1 for i in S)
        * sum(size // math.prod(shape[i] for i in table) for table in tables if set(S) <= set(table))
        for S in sets
    ]
    # For k_S R_S, w_S is k_S² · cells · |T|, and the squared change is an integer.
    changes = [[_change(shape, S, D) for S in sets] for D in differences]
    units = [math.prod(shape[i] for i in S) * size for S in sets]
    costs = np.array([weight / unit for weight, unit in zip(weights, units, strict=True)])
    squares, prices = _minimise(costs, np.array(changes, dtype=np.float64))
    scale = 2.0 ** math.floor((_BITS - math.log2(max(np.array(changes, dtype=np.float64) @ squares))) / 2 - 1)
    multiples = tuple(max(1, round(math.sqrt(square) * scale)) for square in squares)
    power = max(sum(k * k * change for k, change in zip(multiples, row, strict=True)) for row in changes)
    trace = sum(Fraction(w, u * k * k) for w, u, k in zip(weights, units, multiples, strict=True))
    bound = _prove(weights, units, changes, prices)
    return MarginalStrategy(shape, sets, multiples, power, float(trace), bound)


def _change(shape: Sequence[int], chosen: Sequence[int], differing: Sequence[int]) -> int:
    """Return ‖R_S(e_x − e_y)‖² for two values that differ in the given attributes."""
    same = [shape[i] * (shape[i] - 1) for i in chosen]
    mixed = [-shape[i] if i in differing else shape[i] * (shape[i] - 1) for i in chosen]
    return 2 * (math.prod(same) - math.prod(mixed))


def _minimise(costs: Floats, changes: Floats) -> tuple[Floats, Floats]:
    """Minimise Σ costs/x over x > 0 with changes·x ≤ 1 by a barrier method; return x and multipliers of the rows."""
    x = np.sqrt(costs)
    x *= 0.5 / (changes @ x).max()
    weight = len(changes) / float((costs / x).sum())
    while True:
        for _ in range(100):
            slack = 1 - changes @ x
            inverse = changes.T / slack
            slope = -weight * costs / x + x * inverse.sum(axis=1)
            scaled = inverse * x[:, None]
            curvature = scaled @ scaled.T + np.diag(2 * weight * costs / x)
            step = np.linalg.solve(curvature, -slope)
            decrement = -float(slope @ step)
            if decrement < 1e-9:
                break
            # Within 1/(1 + √decrement), a step stays inside, and the barrier function falls; longer steps are tried.
            length, least = 1.0, 1 / (1 + math.sqrt(decrement))
            value = _barrier(costs, changes, weight, x)
            while length > least and not _barrier(costs, changes, weight, x * (1 + length * step)) < value:
                length = max(length / 2, least)
            x = x * (1 + length * step)
        if len(changes) <= _GAP * weight * float((costs / x).sum()):
            return x, 1 / slack
        weight *= 10


def _barrier(costs: Floats, changes: Floats, weight: float, x: Floats) -> float:
    """Return weight · Σ costs/x − Σ ln(1 − changes·x); infinity outside."""
    slack = 1 - changes @ x
    if not ((x > 0).all() and (slack > 0).all()):
        return math.inf
    return weight * float((costs / x).sum()) - float(np.log(slack).sum())


def _prove(weights: list[int], units: list[int], changes: list[list[int]], prices: Floats) -> float:
    """Return (Σ √(weight · Σ y·change / unit))² / Σ y, rounded down, for the multipliers y."""
    shares = [Fraction(price) for price in prices.tolist()]
    terms = []
    for weight, unit, column in zip(weights, units, zip(*changes, strict=True), strict=True):
        inner = weight * sum(y * change for y, change in zip(shares, column, strict=True)) / unit
        terms.append(math.sqrt(float(inner) * (1 - 2 * _UNIT)) * (1 - 2 * _UNIT))
    return math.fsum(terms) ** 2 / float(sum(shares)) * (1 - 16 * _UNIT)
