"""Mechanisms with finitely many answers: exponential, geometric and randomised response.

The function `snapping` returns the matrix of a common rule, for audits. This matrix is not certified.
"""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import shortest_path

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, as_floats, as_nonnegative, read_only, require
from mechdesign.base._check import as_generator, as_integer, as_positive, require_kind
from mechdesign.base._errors import InputError
from mechdesign.base._names import named
from mechdesign.certify._claims import ExponentBound, PairBound
from mechdesign.certify._exact import exact_text
from mechdesign.mechanisms._masses import certify_numerators
from mechdesign.mechanisms._mechanism import Mechanism, Within
from mechdesign.model import distances
from mechdesign.model._channel import Channel
from mechdesign.model._domain import Domain
from mechdesign.model._graph_nodes import check_graph
from mechdesign.model._numbers import Number, positive


class FiniteMechanism(Mechanism):
    """A mechanism whose answers are the n secrets themselves, with p(o|s) <= exp(ε d(s, s')) p(o|s').

    Args:
        epsilon: ε > 0, in nats per unit of distance.
        distance: The metric d, symmetric, shape (n, n). An infinite entry means that the pair has no requirement.
        graph: A graph with one node for each secret, whose sorted nodes number the rows of `distance`. By default the
            nodes are 0 to n − 1, and an edge joins every two secrets at a finite distance.

    Attributes:
        epsilon: The exact number ε, in nats per unit of distance.
        distance: The metric d, float64 of shape (n, n), read-only. Secrets at an infinite distance share no answer.
        graph: The graph of the secrets, frozen.
        nodes: The sorted nodes of the graph, which index the rows and columns of `matrix`.

    >>> mechanism = RandomisedResponse("0.5", 2)
    >>> isinstance(mechanism, FiniteMechanism), mechanism.distance.tolist()
    (True, [[0.0, 1.0], [1.0, 0.0]])
    """

    distance: Floats

    def __init__(self, epsilon: Number, distance: ArrayLike, graph: nx.Graph | None = None) -> None:
        self.epsilon: Fraction = positive(epsilon, "epsilon")
        self.distance = _metric(distance)
        near = np.isfinite(self.distance)
        np.fill_diagonal(near, False)
        if graph is not None:
            check_graph(graph)
            if len(graph) != len(near):
                raise InputError("graph", "does not match the distance", value=len(graph), bound=f"{len(near)} nodes")
        self.graph = nx.freeze(nx.from_numpy_array(near) if graph is None else nx.Graph(graph))
        self.nodes = np.array(sorted(self.graph), dtype=np.int64)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(epsilon={exact_text(self.epsilon)}, {len(self.nodes)} secrets)"

    @property
    def bound(self) -> ExponentBound:
        """The guarantee, as a bound that the verifier checks."""
        return PairBound.metric(self.epsilon, self.distance)

    def degrees(self) -> dict[int, int]:
        """Return the number of secrets within the distance 1 of each node, including itself.

        Returns:
            The degree of protection of each node, by node.
        """
        counts = (self.distance <= 1).sum(axis=1)
        return dict(zip(self.nodes.tolist(), counts.tolist(), strict=True))

    def level(self) -> float:
        """Return the least upper bound, in nats, that the metric gives on the privacy loss between any two nodes.

        Returns:
            ε times the largest distance.
        """
        return float(self.epsilon) * float(self.distance.max())

    @in_own_arithmetic
    def matrix(self) -> Floats:
        """Return p(o|s) as floats of shape (n, n), up to a few rounding errors."""
        return self._masses(float(self.epsilon))

    @in_own_arithmetic
    def channel(self, observables: Domain | ArrayLike | None = None, within: Within = "component") -> Channel:
        """Return the mechanism as an integer channel, certified in exact arithmetic.

        Args:
            observables: The domain or the places that the nodes index. With observables, the channel has one column per
                place; without observables, it has one column per node.
            within: The argument `within` has no effect, because all answers are at a finite distance from the secret.

        Returns:
            The channel with one row per node.

        Raises:
            InputError: ε is too small for an integer channel, or a node exceeds the number of observables.
            CertificateError: The proof fails.
        """
        numerators = certify_numerators(self._masses, self.bound, len(self.nodes))
        if observables is None:
            return Channel(numerators)
        size = observables.size if isinstance(observables, Domain) else len(named(observables, "observables"))
        if size <= int(self.nodes[-1]):
            raise InputError("observables", "do not include all nodes", value=size, bound=f"> {int(self.nodes[-1])}")
        placed = np.zeros((len(self.nodes), size), dtype=np.int64)
        placed[:, self.nodes] = numerators
        if not isinstance(observables, Domain):
            return Channel(placed)
        return Channel(placed, tuple(observables.labels[node] for node in self.nodes.tolist()), observables.labels)

    def sample(
        self, node: int, size: int | tuple[int, ...] = 1, rng: np.random.Generator | int | None = None
    ) -> np.ndarray:
        """Draw answers for a node from its row of the certified integer channel.

        Args:
            node: The secret, which is a node of the graph.
            size: The number of draws, or the shape of the result.
            rng: A NumPy generator or a seed, for rehearsals only. By default the operating system supplies the random
                bits, and the draws follow the certified channel exactly.

        Returns:
            The drawn nodes, as an array of shape `size`.
        """
        row, generator = self._row(node), None if rng is None else as_generator(rng)
        drawn: np.ndarray = self.nodes[np.asarray(self.channel().sample(row, size=size, rng=generator))]
        return drawn

    @abstractmethod
    def _masses(self, rate: float) -> Floats:
        """Return p(o|s) for ε = `rate` as floats, up to rounding errors."""


def hops(graph: nx.Graph) -> Floats:
    """Return the number of edges on the shortest path between every two nodes of a policy graph.

    Args:
        graph: The policy graph, whose nodes are integers.

    Returns:
        The numbers of hops as floats, shape (n, n), in the order of the sorted nodes. An entry is infinite if no path
        connects the two nodes.

    >>> hops(nx.path_graph(3)).tolist()
    [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """
    check_graph(graph)
    adjacency = nx.to_scipy_sparse_array(graph, nodelist=sorted(graph), dtype=np.float64)
    return np.asarray(shortest_path(adjacency, directed=False, unweighted=True))


def _metric(values: ArrayLike) -> Floats:
    matrix = as_floats(values, "distance", "(n, n)", (), ()).copy()
    if matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise InputError("distance", "is not square", value=matrix.shape, bound="of shape (n, n), n >= 1")
    np.fill_diagonal(matrix, 0.0)
    require(matrix >= 0, matrix, "distance", "a number >= 0, or infinity for a pair without a requirement")
    require(matrix == matrix.T, matrix, "distance", "symmetric")
    apart = np.isinf(matrix)
    # Two secrets at a finite distance share all their answers, so having a finite distance must be an equivalence
    # relation.
    if not np.array_equal(~apart, (~apart).astype(np.float64) @ (~apart) > 0):
        raise InputError("distance", "is finite along a path but infinite between its ends", bound="a metric")
    return read_only(matrix)


# Above this value, neighbouring floats differ by 1 or more.
_LARGEST_MULTIPLE = 2.0**52


def snapping(domain: Domain, spacing: float) -> Floats:
    """Return the matrix of the rule "round every coordinate to a multiple of `spacing`".

    Args:
        domain: The n secrets, which have places.
        spacing: The distance between neighbouring multiples, > 0, in the unit of the coordinates.

    Returns:
        Zeros and ones of shape (n, m). The m columns are the distinct rounded places.

    Raises:
        InputError: The domain has no places, or the spacing is not positive or is too small.

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
        raise InputError("spacing", "is too small for a float to distinguish its multiples", value=width, bound=bound)
    _, place = np.unique(multiples, axis=0, return_inverse=True)
    return np.eye(int(place.max()) + 1)[place.ravel()]


def exponential_rows(apart: Floats, rate: float) -> Floats:
    """Return normalised rows with entries proportional to exp(-rate · d).

    The least distance of each row is subtracted first, so that the weights of a row do not all underflow.
    """
    with np.errstate(over="ignore", under="ignore"):
        weights = np.exp(-rate * (apart - apart.min(axis=1, keepdims=True)))
    divided: Floats = weights / weights.sum(axis=1, keepdims=True)
    return divided


class Exponential(FiniteMechanism):
    """The exponential mechanism, p(o|s) ∝ exp(−ε d(s, o) / 2) (McSherry and Talwar 2007).

    The mechanism guarantees p(o|s) <= exp(ε d(s, s')) p(o|s') for a metric d, because the numerator and the normalising
    sum each change by a factor of at most exp(ε d / 2). This is often more private than ε. Reports and figures show the
    tuned exponential mechanism instead, with the largest factor λ in exp(−λ ε d) that keeps ε;
    `mechdesign.measures.baselines` returns it.

    Args:
        epsilon: ε > 0, in nats per unit of distance.
        distance: The metric d, shape (n, n). An infinite entry means that the pair has no requirement.
        graph: A graph with one node for each secret, whose sorted nodes number the rows of `distance`. By default the
            nodes are 0 to n − 1, and an edge joins every two secrets at a finite distance.

    Raises:
        InputError: The distance is not a metric, or ε is not positive.

    >>> Exponential(2, [[0, 1], [1, 0]]).matrix().round(4).tolist()
    [[0.7311, 0.2689], [0.2689, 0.7311]]
    """

    def __init__(self, epsilon: Number, distance: ArrayLike, graph: nx.Graph | None = None) -> None:
        super().__init__(epsilon, distance, graph)
        distances.check_metric(self.distance, "distance")

    @classmethod
    def of_graph(cls, epsilon: Number, graph: nx.Graph) -> Exponential:
        """Return the exponential mechanism for a policy graph, where d is the number of hops.

        Args:
            epsilon: ε > 0, in nats per edge.
            graph: The policy graph.

        Returns:
            The mechanism, whose answers are the nodes of the secret's connected component.

        >>> Exponential.of_graph(2, nx.path_graph(2))
        Exponential(epsilon=2, 2 secrets)
        """
        return cls(epsilon, hops(graph), graph)

    @in_own_arithmetic
    def matrix(self, answers: ArrayLike | None = None) -> Floats:
        """Return p(o|s) as floats, up to a few rounding errors.

        Args:
            answers: The distances d(s, o) >= 0 from the n secrets to m answers, shape (n, m). By default the answers
                are the secrets themselves.

        Returns:
            The probabilities, shape (n, m), or (n, n) by default.

        Raises:
            InputError: The answers have a negative distance or the wrong shape.

        >>> Exponential(2, [[0, 1], [1, 0]]).matrix(answers=[[0], [3]]).tolist()
        [[1.0], [1.0]]
        """
        rate = float(self.epsilon)
        if answers is None:
            return self._masses(rate)
        apart = as_nonnegative(answers, "answers", 2, rows=())
        if len(apart) != len(self.nodes) or not apart.size:
            raise InputError(
                "answers",
                "do not match the number of secrets",
                value=apart.shape,
                bound=f"({len(self.nodes)}, m), m >= 1",
            )
        return exponential_rows(apart, rate / 2)

    def _masses(self, rate: float) -> Floats:
        return exponential_rows(self.distance, rate / 2)


class Geometric(FiniteMechanism):
    """The truncated geometric mechanism on 0, …, n−1 (Ghosh, Roughgarden and Sundararajan 2009).

    The mechanism adds two-sided geometric noise, Pr(z) = (1 − α)/(1 + α) α^|z| with α = e^−ε. The sum is then clipped
    to the range from 0 to n−1. A secret k steps from an end of the range gives this end with probability α^k/(1 + α).
    Neighbours are ε-indistinguishable. Followed by a Bayes-optimal remap, the mechanism is optimal for every cost that
    never decreases with distance. Without the remap, the mechanism can be suboptimal.

    Args:
        epsilon: ε > 0, in nats per step.
        n: The number of secrets, n >= 1.

    >>> Geometric(1, 3).matrix().round(4).tolist()[0]
    [0.7311, 0.17, 0.0989]
    """

    def __init__(self, epsilon: Number, n: int) -> None:
        places = np.arange(as_integer(n, "n", 1), dtype=np.float64)
        self._order = np.arange(len(places))
        super().__init__(epsilon, np.abs(places[:, None] - places), nx.path_graph(len(places)))

    @classmethod
    def of_graph(cls, epsilon: Number, graph: nx.Graph) -> Geometric:
        """Return the geometric mechanism for a policy graph that is a path.

        Args:
            epsilon: ε > 0, in nats per edge.
            graph: The policy graph, such as the path of the values of an ordered attribute.

        Returns:
            The mechanism on the nodes of the path.

        Raises:
            InputError: The graph is not a path.

        >>> Geometric.of_graph(1, nx.path_graph(3))
        Geometric(epsilon=1, 3 secrets)
        """
        distance = hops(graph)
        if np.isinf(distance).any() or any(degree > 2 for _, degree in graph.degree()) or nx.cycle_basis(graph):
            raise InputError("graph", "is not a path", remedy='use "exponential" or "randomised-response"')
        made = cls.__new__(cls)
        FiniteMechanism.__init__(made, epsilon, distance, graph)
        # The position of each node along the path, counted from one end.
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
    """Randomised response on k values (Warner 1965).

    The mechanism answers the true value with probability e^ε / (e^ε + k − 1), and each other value with equal
    probability. All pairs of values are ε-indistinguishable. For the complete graph, the uniform prior and Hamming
    cost, the mechanism is optimal with the cost (k − 1)/(k − 1 + e^ε).

    Args:
        epsilon: ε > 0, in nats.
        k: The number of values, k >= 1.

    >>> RandomisedResponse("0.5", 2).matrix().round(4).tolist()[0]
    [0.6225, 0.3775]
    """

    def __init__(self, epsilon: Number, k: int) -> None:
        super().__init__(epsilon, 1.0 - np.eye(as_integer(k, "k", 1)))

    @classmethod
    def of_graph(cls, epsilon: Number, graph: nx.Graph) -> RandomisedResponse:
        """Return the mechanism that applies randomised response within each connected component of a policy graph.

        Args:
            epsilon: ε > 0, in nats.
            graph: The policy graph.

        Returns:
            The mechanism on the nodes of the graph.

        >>> RandomisedResponse.of_graph("0.5", nx.Graph([(0, 1), (2, 3)])).matrix().round(4).tolist()[0]
        [0.6225, 0.3775, 0.0, 0.0]
        """
        made, apart = cls.__new__(cls), hops(graph)
        FiniteMechanism.__init__(made, epsilon, np.where(np.isinf(apart), apart, np.minimum(apart, 1.0)), graph)
        return made

    def _masses(self, rate: float) -> Floats:
        return exponential_rows(self.distance, rate)
