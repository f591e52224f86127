"""K-norm noise: Laplace and planar isotropic."""

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
from mechdesign.base._check import as_generator, as_integer
from mechdesign.base._errors import InputError
from mechdesign.certify._claims import PairBound
from mechdesign.certify._exact import exact, exact_text
from mechdesign.graphs._builders import check_graph, edge_array
from mechdesign.graphs._constraints import components, membership
from mechdesign.graphs._exposure import component_hulls, degree_of_protection, hull_level, sensitivity_hull
from mechdesign.graphs._geometry._hull import SensitivityHull, as_points, as_vectors, check_distinct
from mechdesign.mechanisms._masses import cell_masses, certify_numerators
from mechdesign.mechanisms._mechanism import Mechanism, Within
from mechdesign.model._channel import Channel
from mechdesign.model._domain import Domain
from mechdesign.model._numbers import Number

HullChoice = Literal["component", "graph"]
"""Whether the noise is fitted to the edges of a node's own component (PGLP) or to those of the whole graph (DPHMM)."""

# Hulls whose corners are this close, relative to their radius, give the same masses.
_SAME = 1e-13

_TINY = np.finfo(np.float64).tiny

_SMALLEST, _LARGEST = Fraction(1, 10**100), Fraction(10**100)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class KNormMechanism(Mechanism):
    """A mechanism that adds noise of density ε^k / (k! vol K) exp(-ε ‖z - f(s)‖_K) to the place f(s) of a node s.

    K is the body to which the noise is fitted, k its affine dimension; see `Laplace` and `PlanarIsotropic`.

    Attributes:
        epsilon: ε in nats per edge, exact.
        points: the places f(s), float64 of shape (n, d), read-only.
        graph: the policy graph, frozen; its nodes are indices into `points`. A constrained graph has only some of them.
        nodes: the nodes, sorted, int64: the rows of `matrix`, `likelihood` and `channel`.
    """

    epsilon: Fraction
    points: Floats
    graph: nx.Graph
    nodes: Integers
    # One for each connected component.
    _hulls: tuple[SensitivityHull, ...]
    # For each of `nodes` the index of its component.
    _member: Integers
    # Labels of the nodes, empty where they are the numbers 0, 1, ….
    _labels: tuple[str, ...]

    def __init__(
        self, epsilon: Number, points: Domain | ArrayLike, graph: nx.Graph, hull: HullChoice = "component"
    ) -> None:
        value = exact(epsilon, "epsilon")
        if not _SMALLEST <= value <= _LARGEST:
            raise InputError("epsilon", "is out of range", value=epsilon, bound="positive, from 1e-100 to 1e100")
        places = as_points(points)
        check_graph(graph, len(places))
        if hull not in ("component", "graph"):
            raise InputError("hull", "is not known", value=hull, bound='"component" or "graph"')
        nodes = np.array(sorted(graph), dtype=np.int64)
        if isinstance(points, Domain):
            labels = tuple(points.labels[node] for node in nodes.tolist())
        else:
            labels = tuple(map(str, nodes.tolist())) if len(nodes) < len(places) else ()
        values = {
            "epsilon": value,
            "points": places,
            "graph": _own(graph),
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
        """Return the name, ε and the sizes, without the arrays."""
        shape = f"{len(self.nodes)} nodes, {self.graph.number_of_edges()} edges"
        return f"{type(self).__name__}(epsilon={exact_text(self.epsilon)}, {shape})"

    def hull(self, node: int) -> SensitivityHull:
        """Return the body K to which the noise of a node is fitted; K = {0} for a node without noise."""
        return self._hulls[int(self._member[self._row(node)])]

    def sample(
        self, node: int, size: int | tuple[int, ...] = 1, rng: np.random.Generator | int | None = None
    ) -> Floats:
        """Draw released coordinates for a node: shape (size, d), or ``(*size, d)``.

        The K-norm of the noise has the law Gamma(k + 1, 1/ε), and its direction is that of a uniform point of K (Hardt
        and Talwar 2010). If K = {0}, every draw is the place of the node. `rng` is a NumPy generator or a seed; without
        it the operating system seeds one.

        The last bits of these floats depend on the node. Coordinates drawn here are therefore a rehearsal, with or
        without `rng`: ε is not guaranteed for them. For release, draw from `channel`, whose guarantee is exact.
        """
        place = self.points[self.nodes[self._row(node)]]
        generator = as_generator(rng)
        sizes = size if isinstance(size, tuple) else (size,)
        shape = tuple(as_integer(one, "size", 0) for one in sizes)
        return np.asarray(place + self._noise(self.hull(node), shape, generator))

    @in_own_arithmetic
    def density(self, z: ArrayLike, node: int) -> Floats:
        """Return the density of the output for a node at coordinates z, shape (…, d): shape (…).

        The density refers to the Lebesgue measure of the flat f(s) + span K: length for k = 1, area for k = 2. It is 0
        off the flat, within the tolerance of `SensitivityHull.norm`. If K = {0}, the measure counts points. The density
        is then the probability: 1 at the place of the node and 0 elsewhere.
        """
        row = self._row(node)
        noise = as_vectors(z, "z", self.points.shape[1]) - self.points[self.nodes[row]]
        return np.asarray(np.exp(self._log_density(noise, self.hull(node))))

    @in_own_arithmetic
    def likelihood(self, z: ArrayLike) -> Floats:
        """Return the likelihood of each node given coordinates z, shape (…, d): shape (…, nodes), in order of `nodes`.

        These are the numbers Pr(z | s) of Bayes' rule up to a common factor. They are the densities of the noise of the
        lowest dimension that can give z. Noise of a higher dimension has likelihood 0 there, because it gives such a z
        with probability 0.
        """
        return np.asarray(np.exp(self.log_likelihood(z)))

    @in_own_arithmetic
    def log_likelihood(self, z: ArrayLike) -> Floats:
        """Return the natural logarithm of `likelihood`, finite even if that is too small for a float."""
        coordinates = as_vectors(z, "z", self.points.shape[1])
        logarithms = np.empty((*coordinates.shape[:-1], len(self.nodes)))
        dimensions = np.empty(len(self.nodes))
        for rows in self._alike(lambda body, _: id(body)):
            body = self._hulls[self._member[rows[0]]]
            dimensions[rows] = body.dimension
            logarithms[..., rows] = self._log_density(coordinates[..., None, :] - self.points[self.nodes[rows]], body)
        least = np.where(logarithms > -np.inf, dimensions, np.inf).min(axis=-1, keepdims=True)
        return np.where(dimensions <= least, logarithms, -np.inf)

    def matrix(self, observables: Domain | ArrayLike | None = None) -> Floats:
        """Return Pr(o | s) if the output is snapped to the nearest observable, as floats: shape (nodes, m).

        `observables` is a domain with places or an array (m, d); the points of the mechanism unless given. Entries are
        the exact masses of the Voronoi cells of observables, up to a few roundings; ties go to the lowest index. A grid
        of observables is fast. Otherwise the time grows with nodes × observables × sides of K. Raises `InputError` if K
        has more than two dimensions, and for observables that are empty, coincide, or have another dimension than the
        points.
        """
        sites = self.points if observables is None else observables
        return self._masses(float(self.epsilon), _observables(sites, self.points.shape[1]))

    @in_own_arithmetic
    def channel(self, observables: Domain | ArrayLike, within: Within = "map") -> Channel:
        """Return the channel of the mechanism with its output snapped to the nearest observable, certified.

        The channel has a row for each of `nodes` and a column for each observable, with the labels of the domains. With
        ``within="component"`` the `observables` are the places that the nodes index. Outputs are then snapped to the
        nearest node in the component of the secret; the policy allows them to reveal this component.

        Because of rounding, entries differ from `matrix` in two ways. The masses belong to an ε that is smaller by
        about 1e-12. Masses that are too small are raised to c / 2**62, with c = 2 + 3 / (e^ε - 1). Exact arithmetic
        proves N[s,o] <= e^ε N[t,o] for both directions of every edge.

        Raises the errors of `matrix`, `InputError` for an ε below about 1e-12 · m, and `CertificateError` if the proof
        fails.
        """
        sites = _observables(observables, self.points.shape[1])
        first, law = self._laws()
        edges = law[np.searchsorted(self.nodes, edge_array(self.graph))]
        edges = edges[edges[:, 0] != edges[:, 1]]
        # Noise that fills all dimensions can lead anywhere, though floats may not tell.
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
        """Return, for every node, how many nodes are released with the same body and lie within it, itself included.

        These are the nodes that it cannot be told from by more than ε (DPHMM, Xiao et al. 2017, Definition 5.2).
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
        """Return ε times the largest K-norm between two nodes (DPHMM, Theorems 5.3 and 6.3).

        Infinite where nodes are released with different bodies.
        """
        body = self._hulls[0]
        if any(other is not body for other in self._hulls):
            return math.inf
        return hull_level(self.points, body, self.epsilon, support=self.nodes)

    def _laws(self) -> tuple[Integers, Integers]:
        """Return the first row of each law, and for each row its law: rows of one place and one body are equal."""
        places = self.points[self.nodes] + 0.0
        keys = [(id(self._hulls[part]), place.tobytes()) for part, place in zip(self._member, places, strict=True)]
        number = {key: index for index, key in enumerate(dict.fromkeys(keys))}
        law = np.array([number[key] for key in keys])
        return np.unique(law, return_index=True)[1], law

    def _masses_within(self, sites: Floats) -> Callable[[float], Floats]:
        """Return the masses of the cells of the nodes of the same component, by rate."""
        if len(sites) != len(self.points) or not np.array_equal(sites, self.points):
            raise InputError(
                "observables", "are not the places that the nodes index", remedy='use them, or within="map"'
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
        # A point has the volume 1 in the measure that counts.
        scale = k * math.log(self.epsilon) - math.lgamma(k + 1) - math.log(body.volume) if k else 0.0
        return np.asarray(scale - float(self.epsilon) * body.norm(noise))

    @in_own_arithmetic
    def _masses(self, rate: float, sites: Floats) -> Floats:
        """Return the masses of the cells; those of rows with the same hull are computed together."""
        unit = _SAME * max(max(body.radius for body in self._hulls), _TINY)
        # Noise of lower dimensions cuts the cells along a flat, and each component has its own.
        whole = (0, self.points.shape[1])
        masses = np.zeros((len(self.nodes), len(sites)))
        for rows in self._alike(
            lambda body, part: np.round(body.vertices / unit).tobytes() if body.dimension in whole else part
        ):
            body = self._hulls[self._member[rows[0]]]
            masses[rows] = cell_masses(body, rate, self.points[self.nodes[rows]], sites)
        return masses

    def _alike(self, key: Callable[[SensitivityHull, int], object]) -> list[Integers]:
        """Return the rows, gathered where the `key` of hull and component is the same."""
        groups: dict[object, list[int]] = defaultdict(list)
        keys = [key(body, part) for part, body in enumerate(self._hulls)]
        for row, part in enumerate(self._member.tolist()):
            groups[keys[part]].append(row)
        return [np.array(group) for group in groups.values()]


def _own(graph: nx.Graph) -> nx.Graph:
    """Return a frozen graph that nobody can change: a copy, unless it is one already."""
    # Views are frozen, too, and change with the graph behind them.
    return graph if nx.is_frozen(graph) and not hasattr(graph, "_graph") else nx.freeze(nx.Graph(graph))


def _observables(observables: Domain | ArrayLike, d: int) -> Floats:
    sites = as_points(observables, "observables")
    if sites.shape[1] != d:
        raise InputError("observables", "have another dimension than the points", value=sites.shape, bound=f"(m, {d})")
    check_distinct(sites, "observables", "keep one of them")
    return sites


class Laplace(KNormMechanism):
    """The policy-based Laplace mechanism, P-LM (PGLP, Cao et al. 2020, Algorithm 1).

    `Laplace(epsilon, points, graph, hull="component")` has the arguments of `PlanarIsotropic`. Each coordinate gets
    independent Laplace noise of scale S/ε. S is the largest ‖f(s) - f(s')‖₁ over the *edges* of the node's component,
    or of the graph. Definition 7 takes all pairs of the component, but edges suffice, because losses add up along a
    path. This is the K-norm mechanism of the cross-polytope S·B₁, which contains the sensitivity hull.

    The noise fills all d dimensions unless S = 0, as for a node without edges under ``hull="component"``. Then there is
    **no noise**, and the place is released exactly.
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

    `PlanarIsotropic(epsilon, points, graph, hull="component")` has `epsilon` in nats per edge. The `points` are the
    places f(s), a domain or an array (n, d) with any d ≥ 1. The nodes of `graph` are indices into them.

    The output has the density ε^k / (k! vol K) exp(-ε ‖z - f(s)‖_K), with K the sensitivity hull and k its *affine*
    dimension. Two nodes get noise on the line through them, with mean K-norm 1/ε.

    With ``hull="component"`` K comes from the edges of the connected component of the node. A node without edges then
    gets **no noise**: its place is released exactly. With ``hull="graph"`` K comes from all edges (DPHMM, Xiao et al.
    2017), and only a graph without edges gives no noise. Raises `InputError` for an ε that is not positive, points that
    are not finite, a graph with other nodes, and another `hull`.
    """

    @staticmethod
    def _bodies(places: Floats, graph: nx.Graph, hull: HullChoice) -> list[SensitivityHull]:
        if hull == "component":
            return component_hulls(places, graph)
        return [sensitivity_hull(places, graph)] * len(components(graph))

    def degrees(self) -> dict[int, int]:
        """Return, for every node, how many nodes are released with an equal hull and lie within it, itself included."""
        shared = all(body is self._hulls[0] for body in self._hulls)
        found = degree_of_protection(self.points, self.graph, hull=self._hulls[0] if shared else "component")
        assert isinstance(found, dict)
        return found
