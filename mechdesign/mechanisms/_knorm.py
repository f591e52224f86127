"""K-norm mechanisms: the Laplace mechanism and the planar isotropic mechanism."""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._check import as_generator, as_integer, require_name
from mechdesign.base._errors import InputError
from mechdesign.certify._claims import PairBound
from mechdesign.certify._exact import exact, exact_text
from mechdesign.graphs._builders import components, edge_array, membership
from mechdesign.graphs._exposure import component_hulls, degree_of_protection, hull_level, sensitivity_hull
from mechdesign.graphs._hull import SensitivityHull, as_points, as_vectors, check_distinct
from mechdesign.mechanisms._masses import cell_masses, certify_numerators
from mechdesign.mechanisms._mechanism import Mechanism, Within
from mechdesign.model._channel import Channel
from mechdesign.model._domain import Domain
from mechdesign.model._graph_nodes import check_graph
from mechdesign.model._numbers import Number

HullChoice = Literal["component", "graph"]
"""The edges to which the noise of a node is fitted: those of its component (PGLP) or those of the graph (DPHMM)."""

# Hulls are treated as equal if their vertices differ by at most this share of the largest radius.
_SAME = 1e-13

_TINY = np.finfo(np.float64).tiny

_SMALLEST, _LARGEST = Fraction(1, 10**100), Fraction(10**100)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class KNormMechanism(Mechanism):
    """A mechanism that adds noise of density ε^k / (k! vol K) exp(-ε ‖z - f(s)‖_K) to the place f(s) of a node s.

    The convex body K has the affine dimension k. The subclasses `Laplace` and `PlanarIsotropic` define K.

    Args:
        epsilon: ε > 0, in nats per edge.
        points: The places f(s): a domain, or an array (n, d) with d >= 1.
        graph: The policy graph, whose nodes are indices of `points`. For a constrained domain, only the
            possible secrets are nodes.
        hull: The edges to which the noise of a node is fitted. The value "component" means the edges of its connected
            component, and "graph" means all edges.

    Attributes:
        epsilon: The exact ε, in nats per edge.
        points: The places f(s), float64 of shape (n, d), read-only.
        graph: The policy graph, frozen.
        nodes: The sorted nodes, int64, which index the rows of `matrix` and `channel` and the columns of `likelihood`.

    Raises:
        InputError: ε is not positive, a point is not finite, a node is not an index of the points, or `hull` is
            unknown.

    >>> mechanism = PlanarIsotropic(1, [[0.0], [1.0]], nx.path_graph(2))
    >>> isinstance(mechanism, KNormMechanism), mechanism.matrix().round(4).tolist()
    (True, [[0.6967, 0.3033], [0.3033, 0.6967]])
    """

    epsilon: Fraction
    points: Floats
    graph: nx.Graph
    nodes: Integers
    # The bodies K of the connected components.
    _hulls: tuple[SensitivityHull, ...]
    # The index of the component of each node.
    _member: Integers
    # The labels of the nodes; empty if the nodes are labelled with the numbers 0, 1, ….
    _labels: tuple[str, ...]

    def __init__(
        self, epsilon: Number, points: Domain | ArrayLike, graph: nx.Graph, hull: HullChoice = "component"
    ) -> None:
        value = exact(epsilon, "epsilon")
        if not _SMALLEST <= value <= _LARGEST:
            raise InputError("epsilon", "is out of range", value=epsilon, bound="positive, from 1e-100 to 1e100")
        places = as_points(points)
        check_graph(graph, len(places))
        require_name(hull, ("component", "graph"), "hull")
        nodes = np.array(sorted(graph), dtype=np.int64)
        if isinstance(points, Domain):
            labels = tuple(points.labels[node] for node in nodes.tolist())
        else:
            labels = tuple(map(str, nodes.tolist())) if len(nodes) < len(places) else ()
        values = {
            "epsilon": value,
            "points": places,
            "graph": _freeze_copy(graph),
            "nodes": nodes,
            "_hulls": tuple(self._bodies(places, graph, hull)),
            "_member": membership(components(graph), len(places))[nodes],
            "_labels": labels,
        }
        for name, attribute in values.items():
            object.__setattr__(self, name, attribute)

    @staticmethod
    @abstractmethod
    def _bodies(places: Floats, graph: nx.Graph, hull: HullChoice) -> list[SensitivityHull]:
        """Return the body K of each component of the graph, in the order of `components`."""

    def __repr__(self) -> str:
        """Return the class name, ε, and the numbers of nodes and edges."""
        shape = f"{len(self.nodes)} nodes, {self.graph.number_of_edges()} edges"
        return f"{type(self).__name__}(epsilon={exact_text(self.epsilon)}, {shape})"

    def hull(self, node: int) -> SensitivityHull:
        """Return the body K to which the noise of a node is fitted.

        Args:
            node: A node of the graph.

        Returns:
            The body K, which is {0} for a node that is released without noise.
        """
        return self._hulls[int(self._member[self._row(node)])]

    def sample(
        self, node: int, size: int | tuple[int, ...] = 1, rng: np.random.Generator | int | None = None
    ) -> Floats:
        """Draw noisy coordinates for a node.

        The noise is a uniform point of K multiplied by a radius with the distribution Gamma(k + 1, 1/ε) (Hardt and
        Talwar 2010). If K = {0}, every draw is the place of the node.

        The rounding of these floats depends on the node, so ε is not guaranteed for them, with or without `rng`. Use
        the method for rehearsals only. For a release, draw from `channel`, whose guarantee is exact.

        Args:
            node: A node of the graph.
            size: The number of draws, or the shape of the result.
            rng: A NumPy generator or a seed. By default the operating system provides a seed.

        Returns:
            The coordinates, shape (size, d), or ``(*size, d)`` for a tuple.
        """
        place = self.points[self.nodes[self._row(node)]]
        generator = as_generator(rng)
        sizes = size if isinstance(size, tuple) else (size,)
        shape = tuple(as_integer(one, "size", 0) for one in sizes)
        return np.asarray(place + self._noise(self.hull(node), shape, generator))

    @in_own_arithmetic
    def density(self, z: ArrayLike, node: int) -> Floats:
        """Return the density of the noisy coordinates of a node.

        The density refers to the Lebesgue measure of the flat f(s) + span K: length for k = 1, area for k = 2. The
        density is 0 outside the flat, up to the tolerance of `SensitivityHull.norm`. If K = {0}, the density is the
        probability of the point: 1 at the place of the node and 0 elsewhere.

        Args:
            z: Coordinates, shape (…, d).
            node: A node of the graph.

        Returns:
            The densities, shape (…).
        """
        row = self._row(node)
        noise = as_vectors(z, "z", self.points.shape[1]) - self.points[self.nodes[row]]
        return np.asarray(np.exp(self._log_density(noise, self.hull(node))))

    @in_own_arithmetic
    def likelihood(self, z: ArrayLike) -> Floats:
        """Return the likelihood Pr(z | s) of each node s for Bayes' rule, up to a common factor.

        Let k be the lowest dimension of the noise among the nodes that can output z. The likelihood of a node with
        noise of dimension k is the density of its noise. The likelihood of any other node is 0.

        Args:
            z: Coordinates, shape (…, d).

        Returns:
            The likelihoods, shape (…, number of nodes), in the order of `nodes`.
        """
        return np.asarray(np.exp(self.log_likelihood(z)))

    @in_own_arithmetic
    def log_likelihood(self, z: ArrayLike) -> Floats:
        """Return the natural logarithm of `likelihood`, which remains finite if the likelihood underflows.

        Args:
            z: Coordinates, shape (…, d).

        Returns:
            The logarithms, shape (…, number of nodes), in the order of `nodes`.
        """
        coordinates = as_vectors(z, "z", self.points.shape[1])
        logarithms = np.empty((*coordinates.shape[:-1], len(self.nodes)))
        dimensions = np.empty(len(self.nodes))
        for rows in self._group_rows(lambda body, _: id(body)):
            body = self._hulls[self._member[rows[0]]]
            dimensions[rows] = body.dimension
            logarithms[..., rows] = self._log_density(coordinates[..., None, :] - self.points[self.nodes[rows]], body)
        least = np.where(logarithms > -np.inf, dimensions, np.inf).min(axis=-1, keepdims=True)
        return np.where(dimensions <= least, logarithms, -np.inf)

    def matrix(self, observables: Domain | ArrayLike | None = None) -> Floats:
        """Return p(o|s) as floats for noisy coordinates that are snapped to the nearest observable.

        The entries are the exact probabilities of the Voronoi cells of the observables, up to a few rounding errors.
        Ties are resolved in favour of the lowest index. The computation is fast if the observables form a grid.
        For other observables, the computing time is proportional to nodes × observables × sides of K.

        Args:
            observables: A domain with places, or an array (m, d). By default, the points of the mechanism are used.

        Returns:
            The probabilities, shape (number of nodes, m).

        Raises:
            InputError: K has more than two dimensions, or the observables are empty, coincide, or do not have the
                dimension of the points.
        """
        sites = self.points if observables is None else observables
        return self._masses(float(self.epsilon), _observables(sites, self.points.shape[1]))

    @in_own_arithmetic
    def channel(self, observables: Domain | ArrayLike, within: Within = "map") -> Channel:
        """Return the certified integer channel for noisy coordinates that are snapped to the nearest observable.

        To compensate for rounding, the channel differs from `matrix` in two ways. The probabilities are computed for an
        ε' that is about 1e-12 below ε. A constant c = 2 + 3 / (e^ε - 1), rounded up, is added to the numerators.
        Exact arithmetic proves N[s,o] <= e^ε N[t,o] in both directions of every edge.

        Args:
            observables: A domain with places, or an array (m, d). If `within` is "component", the observables must
                be the places that the nodes index.
            within: The value "map" snaps to all observables. The value "component" snaps only to the nodes of the
                secret's connected component. The policy allows answers to reveal the component of the secret.

        Returns:
            The channel with one row per node and one column per observable, with the labels of the domains.

        Raises:
            InputError: The observables are invalid for `matrix`, ε is below about 1e-12 · m, or `within` is unknown.
            CertificateError: The proof fails.
        """
        sites = _observables(observables, self.points.shape[1])
        first, law = self._laws()
        edges = law[np.searchsorted(self.nodes, edge_array(self.graph))]
        edges = edges[edges[:, 0] != edges[:, 1]]
        # Noise of full dimension reaches every cell, even if the mass of the cell underflows to 0.
        filled = np.array([body.dimension == sites.shape[1] for body in self._hulls])[self._member]
        if within == "component":
            masses, filled = self._masses_within(sites), np.zeros(len(self.nodes), dtype=np.bool_)
        elif within == "map":
            masses = functools.partial(self._masses, sites=sites)
        else:
            raise InputError("within", "is not known", value=within, bound='"map" or "component"')
        bound = PairBound.graph(self.epsilon, len(first), edges)
        numerators = certify_numerators(lambda rate: masses(rate)[first], bound, len(sites), filled[first])
        return Channel(numerators[law], self._labels, observables.labels if isinstance(observables, Domain) else ())

    def degrees(self) -> dict[int, int]:
        """Return the degree of protection of each node (DPHMM, Xiao et al. 2017, Definition 5.2).

        The degree is the number of nodes that are ε-indistinguishable from the node, including itself. Two such nodes
        have the same body K, and the difference between their places lies in K.

        Returns:
            The degree of protection of each node, by node.
        """
        counts: dict[int, int] = {}
        bodies: dict[int, list[int]] = defaultdict(list)
        for node, part in zip(self.nodes.tolist(), self._member.tolist(), strict=True):
            bodies[id(self._hulls[part])].append(node)
        for nodes in bodies.values():
            found = degree_of_protection(self.points, self.graph.subgraph(nodes), hull=self.hull(nodes[0]))
            assert isinstance(found, dict)
            counts |= found
        return counts

    def level(self) -> float:
        """Return an upper bound, in nats, on the privacy loss between any two nodes (DPHMM, Theorems 5.3 and 6.3).

        The bound is ε times the largest K-norm of the difference between two places.

        Returns:
            The bound in nats, or infinity if the nodes have different bodies K.
        """
        body = self._hulls[0]
        if any(other is not body for other in self._hulls):
            return math.inf
        return hull_level(self.points, body, self.epsilon, support=self.nodes)

    def _laws(self) -> tuple[Integers, Integers]:
        """Return the first row of each distinct distribution, and for every row the index of its distribution.

        Rows with the same place and the same body have the same distribution.
        """
        places = self.points[self.nodes] + 0.0
        keys = [(id(self._hulls[part]), place.tobytes()) for part, place in zip(self._member, places, strict=True)]
        number = {key: index for index, key in enumerate(dict.fromkeys(keys))}
        law = np.array([number[key] for key in keys])
        return np.unique(law, return_index=True)[1], law

    def _masses_within(self, sites: Floats) -> Callable[[float], Floats]:
        """Return a function of the rate that computes the masses of the cells within each connected component."""
        if len(sites) != len(self.points) or not np.array_equal(sites, self.points):
            raise InputError(
                "observables", "are not the places that the nodes index", remedy='use these places, or within="map"'
            )

        def masses(rate: float) -> Floats:
            found = np.zeros((len(self.nodes), len(sites)))
            for part, body in enumerate(self._hulls):
                rows = np.flatnonzero(self._member == part)
                places = self.points[self.nodes[rows]]
                found[np.ix_(rows, self.nodes[rows])] = cell_masses(body, rate, places, places)
            return found

        return masses

    def _noise(self, body: SensitivityHull, shape: tuple[int, ...], generator: np.random.Generator) -> Floats:
        radius = generator.gamma(body.dimension + 1, 1 / float(self.epsilon), shape)
        noise: Floats = radius[..., None] * body.sample(shape, generator)
        return noise

    def _log_density(self, noise: Floats, body: SensitivityHull) -> Floats:
        k = body.dimension
        # For k = 0 the measure counts points, so K has the volume 1.
        scale = k * math.log(self.epsilon) - math.lgamma(k + 1) - math.log(body.volume) if k else 0.0
        return np.asarray(scale - float(self.epsilon) * body.norm(noise))

    @in_own_arithmetic
    def _masses(self, rate: float, sites: Floats) -> Floats:
        """Return the masses of the cells; rows with equal hulls are computed together."""
        unit = _SAME * max(max(body.radius for body in self._hulls), _TINY)
        # Rows with lower-dimensional noise are grouped by component, because this noise lies in a flat that depends on
        # the component.
        whole = (0, self.points.shape[1])
        masses = np.zeros((len(self.nodes), len(sites)))
        for rows in self._group_rows(
            lambda body, part: np.round(body.vertices / unit).tobytes() if body.dimension in whole else part
        ):
            body = self._hulls[self._member[rows[0]]]
            masses[rows] = cell_masses(body, rate, self.points[self.nodes[rows]], sites)
        return masses

    def _group_rows(self, key: Callable[[SensitivityHull, int], object]) -> list[Integers]:
        """Group the rows by a `key` that is a function of their hull and component."""
        groups: dict[object, list[int]] = defaultdict(list)
        keys = [key(body, part) for part, body in enumerate(self._hulls)]
        for row, part in enumerate(self._member.tolist()):
            groups[keys[part]].append(row)
        return [np.array(group) for group in groups.values()]


def _freeze_copy(graph: nx.Graph) -> nx.Graph:
    """Return the graph if it is frozen and not a view, and a frozen copy otherwise."""
    # A frozen view of a graph still changes if the underlying graph changes.
    return graph if nx.is_frozen(graph) and not hasattr(graph, "_graph") else nx.freeze(nx.Graph(graph))


def _observables(observables: Domain | ArrayLike, d: int) -> Floats:
    sites = as_points(observables, "observables")
    if sites.shape[1] != d:
        raise InputError("observables", "have another dimension than the points", value=sites.shape, bound=f"(m, {d})")
    check_distinct(sites)
    return sites


class Laplace(KNormMechanism):
    """The policy-based Laplace mechanism, P-LM (PGLP, Cao et al. 2020, Algorithm 1).

    Each coordinate gets independent Laplace noise with the scale S/ε. S is the largest ‖f(s) - f(s')‖₁ over the *edges*
    of the node's component, or over all edges of the graph. Instead, Definition 7 of PGLP takes the maximum over all
    pairs of nodes in the component. The maximum over the edges suffices, because privacy losses add up along a path.
    The mechanism is the K-norm mechanism with the cross-polytope K = S·B₁, which contains the sensitivity hull.

    The noise has the full dimension d if S > 0. If S = 0, **no noise** is added and the place is released exactly. For
    example, S = 0 for a node without edges if `hull` is "component".

    Args:
        epsilon: ε > 0, in nats per edge.
        points: The places f(s): a domain, or an array (n, d) with d >= 1.
        graph: The policy graph, whose nodes are indices of `points`.
        hull: The edges to which the noise of a node is fitted. The value "component" means the edges of its connected
            component, and "graph" means all edges.

    Raises:
        InputError: ε is not positive, a point is not finite, a node is not an index of the points, or `hull` is
            unknown.

    >>> Laplace(1, [[0.0], [1.0]], nx.path_graph(2)).matrix([[0.0], [2.0]]).round(4).tolist()
    [[0.8161, 0.1839], [0.5, 0.5]]
    """

    @staticmethod
    def _bodies(places: Floats, graph: nx.Graph, hull: HullChoice) -> list[SensitivityHull]:
        edges, parts = edge_array(graph), components(graph)
        owner = membership(parts, len(places))[edges[:, 0]]
        lengths = np.abs(places[edges[:, 0]] - places[edges[:, 1]]).sum(axis=1)
        largest = np.zeros(len(parts))
        np.maximum.at(largest, owner, lengths)
        if hull == "graph":
            largest[:] = largest.max()
        axes = np.eye(places.shape[1])
        bodies = {length: SensitivityHull.of(length * axes) for length in np.unique(largest).tolist()}
        return [bodies[length] for length in largest.tolist()]

    def _noise(self, body: SensitivityHull, shape: tuple[int, ...], generator: np.random.Generator) -> Floats:
        size = (*shape, self.points.shape[1])
        return generator.laplace(0.0, body.radius / float(self.epsilon), size)


class PlanarIsotropic(KNormMechanism):
    """The policy-based planar isotropic mechanism, P-PIM (PGLP, Cao et al. 2020, Algorithm 2).

    The noisy coordinates z have the density ε^k / (k! vol K) exp(-ε ‖z - f(s)‖_K). K is the sensitivity hull and k is
    its *affine* dimension. If a component has only two nodes, the noise lies on the line through their places, with
    the mean K-norm 1/ε.

    If `hull` is "component", K is the hull of the edges in the connected component of the node. A node without edges
    then gets **no noise**, and its place is released exactly. If `hull` is "graph", K is the hull of all edges (DPHMM,
    Xiao et al. 2017). If `hull` is "graph", a node without edges also gets noise, unless the whole graph has no edges.

    Args:
        epsilon: ε > 0, in nats per edge.
        points: The places f(s): a domain, or an array (n, d) with d >= 1.
        graph: The policy graph, whose nodes are indices of `points`.
        hull: The edges to which the noise of a node is fitted. The value "component" means the edges of its connected
            component, and "graph" means all edges.

    Raises:
        InputError: ε is not positive, a point is not finite, a node is not an index of the points, or `hull` is
            unknown.

    >>> PlanarIsotropic(1, [[0.0], [1.0]], nx.path_graph(2)).density([0.0], 0).tolist()
    0.5
    """

    @staticmethod
    def _bodies(places: Floats, graph: nx.Graph, hull: HullChoice) -> list[SensitivityHull]:
        if hull == "component":
            return component_hulls(places, graph)
        return [sensitivity_hull(places, graph)] * len(components(graph))

    def degrees(self) -> dict[int, int]:
        """Return the degree of protection of each node; only other nodes with the same hull can protect a node.

        Returns:
            The degree of protection of each node, by node.
        """
        shared = all(body is self._hulls[0] for body in self._hulls)
        found = degree_of_protection(self.points, self.graph, hull=self._hulls[0] if shared else "component")
        assert isinstance(found, dict)
        return found
