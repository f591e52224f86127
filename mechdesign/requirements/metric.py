"""What a channel must guarantee: metric, threshold, graph and distortion privacy."""

from __future__ import annotations

from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Self, TypeVar

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.certify.stated import Stated
from mechdesign.certify.exact import exact, exact_text
from mechdesign.errors import InputError
from mechdesign.model import distances
from mechdesign.model.requirement import Requirement
from mechdesign.validation import Integers, as_floats, read_only, require

__all__ = [
    "DistortionPrivacy",
    "GraphPrivacy",
    "MetricPrivacy",
    "Number",
    "ThresholdPrivacy",
    "positive",
]

Floats = NDArray[np.float64]
_R = TypeVar("_R", bound="Requirement")
Number = float | int | str | Decimal | Fraction
"""A float means the decimal that its repr prints; the others are exact."""


@dataclass(frozen=True, eq=False, repr=False, init=False)
class MetricPrivacy(Requirement):
    """Metric privacy: p(o|s) <= exp(ε d(s, s')) p(o|s') for all s, s', o (Privacy Games, equations 15 and 22b).

    `epsilon` is in nats per unit of distance; `distance` (n, n) is taken exactly as its float64 numbers, infinite
    where nothing is required. It need not be a metric: a matrix that is not warns with MetricWarning, and the channel
    is still right for the matrix as given.
    """

    kind: ClassVar[str] = "metric"
    epsilon: Fraction
    distance: Floats

    def __init__(self, epsilon: Number, distance: ArrayLike) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "distance", _square(distance))
        distances.check_metric(self.distance, "distance")

    def __repr__(self) -> str:
        return f"MetricPrivacy(epsilon={exact_text(self.epsilon)}, {self.size} secrets)"

    @property
    def size(self) -> int:
        """Number of secrets."""
        return int(self.distance.shape[0])

    def stated(self) -> Stated:
        """State the bound on every ordered pair at finite distance."""
        return Stated.metric(self.epsilon, self.distance)

    def restrict(self, secrets: Integers) -> Self:
        """Keep the distances between these secrets."""
        return _with(self, distance=self.distance[np.ix_(secrets, secrets)])


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ThresholdPrivacy(Requirement):
    """Threshold privacy: p(o|s) <= e^ε p(o|s') wherever d(s, s') <= radius (Privacy Games, equations 14 and 23b).

    `epsilon` is in nats; `distance` (n, n) and `radius` share a unit.
    """

    kind: ClassVar[str] = "threshold"
    epsilon: Fraction
    distance: Floats
    radius: Fraction

    def __init__(self, epsilon: Number, distance: ArrayLike, radius: Number) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "distance", _square(distance))
        object.__setattr__(self, "radius", positive(radius, "radius"))
        distances.check_metric(self.distance, "distance")

    def __repr__(self) -> str:
        numbers = f"epsilon={exact_text(self.epsilon)}, radius={exact_text(self.radius)}"
        return f"ThresholdPrivacy({numbers}, {self.size} secrets)"

    @property
    def size(self) -> int:
        """Number of secrets."""
        return int(self.distance.shape[0])

    def stated(self) -> Stated:
        """State the bound on every ordered pair within the radius."""
        return Stated.threshold(self.epsilon, self.distance, self.radius)

    def restrict(self, secrets: Integers) -> Self:
        """Keep the distances between these secrets."""
        return _with(self, distance=self.distance[np.ix_(secrets, secrets)])


@dataclass(frozen=True, eq=False, repr=False, init=False)
class GraphPrivacy(Requirement):
    """Graph privacy: p(o|s) <= e^ε p(o|s') for the two ends of every edge (PGLP, definition of the policy graph).

    `graph` is an undirected networkx graph whose nodes are exactly 0..n-1; k hops then mean kε, and no path means no
    requirement. `epsilon` is in nats per edge. Self-loops say nothing and are ignored.
    """

    kind: ClassVar[str] = "graph"
    epsilon: Fraction
    graph: nx.Graph

    def __init__(self, epsilon: Number, graph: nx.Graph) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        if not isinstance(graph, nx.Graph):
            raise InputError("graph", "is not a networkx graph", value=type(graph).__name__)
        if graph.is_directed():
            raise InputError("graph", "is directed", remedy="indistinguishability goes both ways: use to_undirected()")
        n = graph.number_of_nodes()
        if n == 0 or set(graph.nodes) != set(range(n)):
            raise InputError(
                "graph", "has other nodes than 0..n-1", remedy="relabel with convert_node_labels_to_integers"
            )
        object.__setattr__(self, "graph", _frozen(graph))

    def __repr__(self) -> str:
        shape = f"{self.size} secrets, {self.graph.number_of_edges()} edges"
        return f"GraphPrivacy(epsilon={exact_text(self.epsilon)}, {shape})"

    @property
    def size(self) -> int:
        """Number of secrets."""
        return int(self.graph.number_of_nodes())

    @property
    def edges(self) -> NDArray[np.int64]:
        """The edges, as an integer array (k, 2)."""
        return np.array(sorted(tuple(sorted(edge)) for edge in self.graph.edges), dtype=np.int64).reshape(-1, 2)

    def stated(self) -> Stated:
        """State the bound on both directions of every edge."""
        return Stated.graph(self.epsilon, self.edges)

    def restrict(self, secrets: Integers) -> Self:
        """Keep the edges between these secrets."""
        number = {secret: index for index, secret in enumerate(secrets.tolist())}
        kept = nx.empty_graph(len(number))
        kept.add_edges_from((number[s], number[t]) for s, t in self.graph.subgraph(number).edges())
        return _with(self, graph=nx.freeze(kept))


@dataclass(frozen=True, eq=False, repr=False, init=False)
class DistortionPrivacy(Requirement):
    """Distortion privacy: Σ_o min_ŝ Σ_s π_s p(o|s) a(ŝ, s) >= minimum (Privacy Games, equation 21).

    The best attack on the channel has at least this expected error. `distance` (k, n) is a(ŝ, s), estimates by
    secrets, in any unit; `minimum` is in that unit.
    """

    kind: ClassVar[str] = "distortion"
    minimum: Fraction
    distance: Floats

    def __init__(self, minimum: Number, distance: ArrayLike) -> None:
        value = exact(minimum, "minimum")
        if value < 0:
            raise InputError("minimum", "is negative", value=minimum, bound="at least 0")
        matrix = as_floats(distance, "distance", "(k, n)")
        if 0 in matrix.shape:
            raise InputError("distance", "is empty", value=matrix.shape)
        require(np.isfinite(matrix) & (matrix >= 0), matrix, "distance", "a finite number >= 0")
        object.__setattr__(self, "minimum", value)
        object.__setattr__(self, "distance", matrix)

    def __repr__(self) -> str:
        return f"DistortionPrivacy(minimum={exact_text(self.minimum)}, {self.size} secrets)"

    @property
    def size(self) -> int:
        """Number of secrets."""
        return int(self.distance.shape[1])

    def stated(self) -> Stated:
        """State the floor on the adversary's expected error."""
        return Stated.distortion(self.minimum, self.distance)

    def restrict(self, secrets: Integers) -> Self:
        """Keep the errors about these secrets, without a floor: what they add to it is not said for them alone."""
        return _with(self, minimum=Fraction(0), distance=self.distance[:, secrets])


def _with(requirement: _R, **changes: object) -> _R:
    """Change fields without the checks of the constructor: what was found of all secrets holds for some."""
    made = object.__new__(type(requirement))
    for item in fields(requirement):  # type: ignore[arg-type]
        value = changes.get(item.name, getattr(requirement, item.name))
        if isinstance(value, np.ndarray):
            read_only(value)
        object.__setattr__(made, item.name, value)
    return made


def positive(value: Number, path: str) -> Fraction:
    """Return a number, exact; raise `InputError` unless it is above 0."""
    number = exact(value, path)
    if number <= 0:
        raise InputError(path, "must be positive", value=value, bound="greater than 0")
    return number


def _square(values: ArrayLike) -> Floats:
    matrix = as_floats(values, "distance", "(n, n)")
    if matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise InputError("distance", "is not square", value=matrix.shape, bound="of shape (n, n)")
    require(matrix >= 0, matrix, "distance", "a number >= 0, or infinity where nothing is required")
    return matrix


def _frozen(graph: nx.Graph) -> nx.Graph:
    plain = nx.Graph()
    plain.add_nodes_from(range(graph.number_of_nodes()))
    plain.add_edges_from((s, t) for s, t in graph.edges() if s != t)
    return nx.freeze(plain)
