"""The optimal strategy for Gaussian noise, and the span of a policy's edges."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.base._values import cached_property


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
