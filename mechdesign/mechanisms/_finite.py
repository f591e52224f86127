"""Exponential, geometric, randomised response, snapping.

`snapping` and `additive` are rules that people use, as matrices to audit; nothing about them is certified.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import shortest_path

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, as_array, as_floats, as_nonnegative, read_only, require
from mechdesign.base._check import as_generator, as_integer, as_positive, require_kind
from mechdesign.base._errors import InputError
from mechdesign.certify._claims import ExponentBound, PairBound
from mechdesign.certify._exact import exact_text
from mechdesign.graphs._builders import check_graph
from mechdesign.mechanisms._masses import certify_numerators
from mechdesign.mechanisms._mechanism import Mechanism, Within
from mechdesign.model import distances
from mechdesign.model._channel import Channel
from mechdesign.model._domain import Domain
from mechdesign.model._numbers import Number, positive


class FiniteMechanism(Mechanism):
    """A mechanism that answers with one of n secrets, and keeps p(o|s) <= exp(ε d(s, s')) p(o|s').

    Attributes:
        epsilon: ε in nats per unit of distance, exact.
        distance: d, float64 (n, n), infinite where nothing is required and no answer is shared; read-only.
        graph: the secrets at a finite distance of each other are joined, frozen.
        nodes: the numbers of the secrets, the rows and columns of `matrix`.
    """

    distance: Floats

    def __init__(self, epsilon: Number, distance: ArrayLike, graph: nx.Graph | None = None) -> None:
        self.epsilon: Fraction = positive(epsilon, "epsilon")
        self.distance = _metric(distance)
        near = np.isfinite(self.distance)
        np.fill_diagonal(near, False)
        self.graph = nx.freeze(nx.from_numpy_array(near) if graph is None else nx.Graph(graph))
        self.nodes = np.array(sorted(self.graph), dtype=np.int64)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(epsilon={exact_text(self.epsilon)}, {len(self.nodes)} secrets)"

    @property
    def bound(self) -> ExponentBound:
        """The guarantee, as the verifier states it."""
        return PairBound.metric(self.epsilon, self.distance)

    @in_own_arithmetic
    def matrix(self) -> Floats:
        """Return p(o|s) as floats, up to a few roundings: shape (n, n)."""
        return self._masses(float(self.epsilon))

    @in_own_arithmetic
    def channel(self, observables: Domain | ArrayLike | None = None, within: Within = "component") -> Channel:
        """Return the mechanism as a channel of integers, certified in exact arithmetic.

        Answers stay among the secrets at a finite distance, so that `within` changes nothing. `observables`, when
        given, is the domain of the places that the nodes index, and a column stands for each of its members.

        Raises:
            InputError: ε is too small for a channel of integers, or the observables are fewer than the nodes need.
            CertificateError: the proof fails.
        """
        numerators = certify_numerators(self._masses, self.bound, len(self.nodes))
        if observables is None:
            return Channel(numerators)
        size = observables.size if isinstance(observables, Domain) else len(as_array(observables, "observables"))
        if size <= int(self.nodes[-1]):
            raise InputError("observables", "lack some of the nodes", value=size, bound=f"> {int(self.nodes[-1])}")
        placed = np.zeros((len(self.nodes), size), dtype=np.int64)
        placed[:, self.nodes] = numerators
        if not isinstance(observables, Domain):
            return Channel(placed)
        return Channel(placed, tuple(observables.labels[node] for node in self.nodes.tolist()), observables.labels)

    def sample(
        self, node: int, size: int | tuple[int, ...] = 1, rng: np.random.Generator | int | None = None
    ) -> np.ndarray:
        """Draw answers for a node from the certified integers of `channel`.

        Args:
            node: the secret, a node of the graph.
            size: the number of draws, or the shape of the result.
            rng: a NumPy generator or a seed, for rehearsals only. Without it the operating system supplies the
                random bits, and the draws follow the certified channel exactly.

        Returns:
            The answers, which are nodes, as an array of shape `size`.
        """
        row, generator = self._row(node), None if rng is None else as_generator(rng)
        drawn: np.ndarray = self.nodes[np.asarray(self.channel().sample(row, size=size, rng=generator))]
        return drawn

    @abstractmethod
    def _masses(self, rate: float) -> Floats:
        """Return p(o|s) at the rate ε = `rate`, as floats exact up to rounding."""


def hops(graph: nx.Graph) -> Floats:
    """Return the number of hops between any two sorted nodes of a policy graph; infinite if no path joins them."""
    check_graph(graph)
    adjacency = nx.to_scipy_sparse_array(graph, nodelist=sorted(graph), dtype=np.float64)
    return np.asarray(shortest_path(adjacency, directed=False, unweighted=True))


def _metric(values: ArrayLike) -> Floats:
    matrix = as_floats(values, "distance", "(n, n)").copy()
    if matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise InputError("distance", "is not square", value=matrix.shape, bound="of shape (n, n), n >= 1")
    np.fill_diagonal(matrix, 0.0)
    require(matrix >= 0, matrix, "distance", "a number >= 0, or infinity where nothing is required")
    require(matrix == matrix.T, matrix, "distance", "symmetric")
    apart = np.isinf(matrix)
    # Being at a finite distance must be an equivalence: an answer that two share is one that all between them share.
    if not np.array_equal(~apart, (~apart).astype(np.float64) @ (~apart) > 0):
        raise InputError("distance", "is finite along a path but infinite between its ends", bound="a metric")
    return read_only(matrix)


# Above this value, neighbouring floats differ by 1 or more.
_LARGEST_MULTIPLE = 2.0**52
# The largest absolute value of the noise; it limits the number of columns.
_LARGEST_NOISE = 10**7
# The largest distance of a sum from 1 that counts as rounding; an audit uses the same limit.
_FARTHEST_SUM = 0.001


def snapping(domain: Domain, spacing: float) -> Floats:
    """Return the rule "round every coordinate to a multiple of `spacing`": shape (n, places that occur).

    >>> snapping(Domain.from_points([[0.0], [0.4], [0.6]]), 1.0).tolist()
    [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """
    width = as_positive(spacing, "spacing")
    require_kind(domain, Domain, "domain", "a Domain")
    if not domain.points.shape[1]:
        raise InputError("domain", "has no places", bound="a domain of points or cells")
    with np.errstate(over="ignore", under="ignore"):
        multiples = np.floor(domain.points / width + 0.5)
    if (np.abs(multiples) > _LARGEST_MULTIPLE).any():
        farthest = float(np.abs(domain.points).max())
        bound = f"at least {farthest / _LARGEST_MULTIPLE:.3g} for coordinates up to {farthest:g}"
        raise InputError("spacing", "is too small for multiples to be told apart", value=width, bound=bound)
    _, place = np.unique(multiples, axis=0, return_inverse=True)
    return np.eye(int(place.max()) + 1)[place.ravel()]


@in_own_arithmetic
def additive(masses: Mapping[int, float], n: int) -> Floats:
    """Return a noise law on the integers added to 0..n−1, as it is: columns are the sums that occur.

    Args:
        masses: The probability of each value of the noise.
        n: The number of secrets, 0 to n − 1.

    Raises:
        InputError: A value is not an integer, or the sum of the probabilities differs from 1 by more than 0.001.

    >>> additive({-1: 0.25, 0: 0.5, 1: 0.25}, 2).tolist()
    [[0.25, 0.5, 0.25, 0.0], [0.0, 0.25, 0.5, 0.25]]
    """
    size = as_integer(n, "n", 1)
    require_kind(masses, Mapping, "masses", "a mapping of integers to probabilities")
    if not masses:
        raise InputError("masses", "are empty", bound="a probability for each value of the noise")
    values = np.array([_whole(value) for value in masses])
    weights = as_nonnegative(list(masses.values()), "masses", 1)
    total = math.fsum(weights)
    if abs(total - 1) > _FARTHEST_SUM:
        raise InputError("masses", "do not sum to 1", value=total, bound="1, to within 0.001")
    start = int(values.min())
    matrix = np.zeros((size, size + int(values.max()) - start))
    for secret in range(size):
        matrix[secret, secret + values - start] = weights
    return matrix


def _whole(value: Any) -> int:
    """Return a value of the noise, an integer of either sign that a matrix has room for."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not -_LARGEST_NOISE <= int(value) <= _LARGEST_NOISE:
        bound = f"integers between -{_LARGEST_NOISE} and {_LARGEST_NOISE}"
        raise InputError("masses", "contain an invalid noise value", value=value, bound=bound)
    return int(value)


def falling(apart: Floats, rate: float) -> Floats:
    """Return rows in proportion to exp(-rate · d): the least distance of each row has the weight 1, so no sum is 0."""
    with np.errstate(over="ignore", under="ignore"):
        weights = np.exp(-rate * (apart - apart.min(axis=1, keepdims=True)))
    divided: Floats = weights / weights.sum(axis=1, keepdims=True)
    return divided


class Exponential(FiniteMechanism):
    """The exponential mechanism, p(o|s) ∝ exp(−ε d(s, o) / 2) (McSherry and Talwar 2007).

    With a metric d it is ε·d-private: both the numerator and the normalising sum change by at most exp(ε d / 2).

    >>> Exponential(2, [[0, 1], [1, 0]]).matrix().round(4).tolist()
    [[0.7311, 0.2689], [0.2689, 0.7311]]
    """

    def __init__(self, epsilon: Number, distance: ArrayLike, graph: nx.Graph | None = None) -> None:
        super().__init__(epsilon, distance, graph)
        distances.check_metric(self.distance, "distance")

    @classmethod
    def of_graph(cls, epsilon: Number, graph: nx.Graph) -> Exponential:
        """Return the mechanism under a policy graph: d counts hops, and answers stay in the component."""
        return cls(epsilon, hops(graph), graph)

    @in_own_arithmetic
    def matrix(self, answers: ArrayLike | None = None) -> Floats:
        """Return p(o|s) as floats, up to a few roundings: shape (n, n), or (n, m) for other answers than the secrets.

        Args:
            answers: d(s, o) >= 0 from the n secrets to m answers, (n, m), in the unit of the distance.

        >>> Exponential(2, [[0, 1], [1, 0]]).matrix(answers=[[0], [3]]).tolist()
        [[1.0], [1.0]]
        """
        rate = float(self.epsilon)
        if answers is None:
            return self._masses(rate)
        apart = as_nonnegative(answers, "answers", 2)
        if len(apart) != len(self.nodes) or not apart.size:
            raise InputError(
                "answers", "have another shape", value=apart.shape, bound=f"({len(self.nodes)}, m), m >= 1"
            )
        return falling(apart, rate / 2)

    def _masses(self, rate: float) -> Floats:
        return falling(self.distance, rate / 2)


class Geometric(FiniteMechanism):
    """The geometric mechanism on 0, …, n−1, truncated to that range (Ghosh, Roughgarden and Sundararajan 2009).

    Two-sided geometric noise, Pr(z) = (1 − α)/(1 + α) α^|z| with α = e^−ε, is added and the result is clipped to the
    range: an end gets α^k/(1 + α) from k steps away. Neighbours are ε-indistinguishable. With a Bayes-optimal remap of
    its answers, it is optimal for every cost that never decreases with distance. Without the remap it may not be.

    >>> Geometric(1, 3).matrix().round(4).tolist()[0]
    [0.7311, 0.17, 0.0989]
    """

    def __init__(self, epsilon: Number, n: int) -> None:
        places = np.arange(as_integer(n, "n", 1), dtype=np.float64)
        self._order = np.arange(len(places))
        super().__init__(epsilon, np.abs(places[:, None] - places), nx.path_graph(len(places)))

    @classmethod
    def of_graph(cls, epsilon: Number, graph: nx.Graph) -> Geometric:
        """Return the mechanism under a policy graph that is a path, such as that of an ordered attribute."""
        distance = hops(graph)
        if np.isinf(distance).any() or any(degree > 2 for _, degree in graph.degree()) or nx.cycle_basis(graph):
            raise InputError("graph", "is not a path", remedy='use "exponential" or "randomised-response"')
        made = cls.__new__(cls)
        FiniteMechanism.__init__(made, epsilon, distance, graph)
        # The place of every node along the path, from one of its ends.
        made._order = distance[int(np.unravel_index(int(distance.argmax()), distance.shape)[0])].astype(np.int64)
        return made

    def _masses(self, rate: float) -> Floats:
        n = len(self._order)
        ratio = np.exp(-rate)
        steps = np.abs(self._order[:, None] - self._order).astype(np.float64)
        masses = ratio**steps / (1 + ratio)
        inside = (self._order > 0) & (self._order < n - 1)
        masses[:, inside] *= -np.expm1(-rate)
        return np.asarray(masses) if n > 1 else np.ones((1, 1))


class RandomisedResponse(FiniteMechanism):
    """k-ary randomised response: the truth with probability e^ε / (e^ε + k − 1), else any other value (Warner 1965).

    Any two values are ε-indistinguishable. Under the uniform prior and Hamming cost it is optimal for the complete
    graph, at the cost (k − 1)/(k − 1 + e^ε).

    >>> RandomisedResponse("0.5", 2).matrix().round(4).tolist()[0]
    [0.6225, 0.3775]
    """

    def __init__(self, epsilon: Number, k: int) -> None:
        super().__init__(epsilon, 1.0 - np.eye(as_integer(k, "k", 1)))

    @classmethod
    def of_graph(cls, epsilon: Number, graph: nx.Graph) -> RandomisedResponse:
        """Return randomised response within each connected component of a policy graph."""
        made, apart = cls.__new__(cls), hops(graph)
        FiniteMechanism.__init__(made, epsilon, np.where(np.isinf(apart), apart, np.minimum(apart, 1.0)), graph)
        return made

    def _masses(self, rate: float) -> Floats:
        return falling(self.distance, rate)
