"""Build the distances, graphs, costs and requirements that a specification describes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from mechdesign.certify.claims import PairBound
from mechdesign.errors import SpecificationError
from mechdesign.io._tables import (
    CostTable,
    DistortionTable,
    EdgesFile,
    GraphPrivacyTable,
    GraphTable,
    MatrixFile,
    MetricTable,
    Raw,
    ThresholdTable,
    at,
    choice,
    convert,
    in_file,
    one_of,
)
from mechdesign.io.text import read_columns, read_matrix
from mechdesign.model import distances
from mechdesign.model.domain import Domain
from mechdesign.model.problem import OBJECTIVES
from mechdesign.model.requirements import (
    DistortionPrivacy,
    GraphPrivacy,
    MetricPrivacy,
    Requirement,
    ThresholdPrivacy,
)

Floats = NDArray[np.float64]

DISTANCES: Mapping[str, Callable[[Domain, Domain | None], Floats]] = MappingProxyType(
    {
        "euclidean": distances.euclidean,
        "manhattan": distances.manhattan,
        "chebyshev": distances.chebyshev,
        "hamming": distances.hamming,
        "haversine": distances.haversine,
    }
)
_MEASURES = ("distance", "matrix", "graph")


@dataclass(frozen=True)
class Measures:
    """What is measured in: secrets, observables (the same object when they are the secrets), and where files are."""

    secrets: Domain
    observables: Domain
    folder: Path
    _known: dict[str, Floats] = field(default_factory=dict, init=False, repr=False)

    def cost(self, raw: Raw, path: str) -> tuple[Floats, str]:
        """Return c(s, o) = scale · d(s, o)^power, float64 of shape (n, m), and the objective."""
        table = convert(raw, CostTable, path)
        choice(table.objective, OBJECTIVES, f"{path}.objective")
        for key in ("power", "scale"):
            value = getattr(table, key)
            if not 0 < value < math.inf:
                raise SpecificationError(f"{path}.{key}", "is not positive", value=value, bound="> 0 and finite")
        form = one_of(table, _MEASURES, path)
        if self.observables is self.secrets:
            cost = self._between_secrets(table, path)
        elif form == "distance":
            cost = self._named(table.distance or "", f"{path}.distance", self.observables)
        elif form == "matrix":
            cost = self._matrix(table.matrix or {}, f"{path}.matrix", (self.secrets.size, self.observables.size))
        else:
            raise SpecificationError(f"{path}.graph", "joins secrets only", remedy="use distance or matrix")
        if not np.isfinite(cost).all():
            raise SpecificationError(f"{path}.{form}", "has infinite entries", bound="finite costs")
        if table.power != 1 or table.scale != 1:
            cost = table.scale * cost**table.power
        return cost, table.objective

    def requirement(self, raw: Raw, path: str) -> Requirement:
        """Return the requirement that a ``[[privacy]]`` table describes."""
        if not isinstance(raw.get("kind"), str):
            problem = "is not a kind" if "kind" in raw else "is missing"
            raise SpecificationError(
                f"{path}.kind", problem, value=raw.get("kind"), bound=f"one of {', '.join(_REQUIREMENTS)}"
            )
        build = _REQUIREMENTS[choice(raw["kind"], _REQUIREMENTS, f"{path}.kind")]
        return build(self, raw, path)

    def _metric(self, raw: Raw, path: str) -> Requirement:
        table = convert(raw, MetricTable, path)
        with at(path):
            return MetricPrivacy(table.epsilon, self._between_secrets(table, path))

    def _threshold(self, raw: Raw, path: str) -> Requirement:
        table = convert(raw, ThresholdTable, path)
        with at(path):
            return ThresholdPrivacy(table.epsilon, self._between_secrets(table, path), table.radius)

    def _graph_privacy(self, raw: Raw, path: str) -> Requirement:
        table = convert(raw, GraphPrivacyTable, path)
        form = one_of(table, ("edges", "edges_csv", "neighbours", "radius"), path)
        if form == "radius":
            graph = self._within(table, table.radius or Fraction(0), path)
        else:
            for key in ("distance", "matrix"):
                if getattr(table, key) is not None:
                    raise SpecificationError(f"{path}.{key}", f"does not go with {form}", remedy="leave it out")
            graph = self._graph(table.edges, table.edges_csv, table.neighbours, path)
        with at(path):
            return GraphPrivacy(table.epsilon, graph)

    def _distortion(self, raw: Raw, path: str) -> Requirement:
        table = convert(raw, DistortionTable, path)
        if table.matrix is not None and one_of(table, _MEASURES, path) == "matrix":
            error = self._matrix(table.matrix, f"{path}.matrix", (None, self.secrets.size))
        else:
            error = self._between_secrets(table, path)
        with at(path):
            return DistortionPrivacy(table.minimum, error)

    def _between_secrets(self, table: CostTable | MetricTable | ThresholdTable | DistortionTable, path: str) -> Floats:
        form = one_of(table, _MEASURES, path)
        if form == "distance":
            return self._named(table.distance or "", f"{path}.distance")
        if form == "matrix":
            return self._matrix(table.matrix or {}, f"{path}.matrix", (self.secrets.size, self.secrets.size))
        place = f"{path}.graph"
        graph = convert(table.graph, GraphTable, place)
        one_of(graph, ("edges", "edges_csv", "neighbours"), place)
        return distances.shortest_path(self._graph(graph.edges, graph.edges_csv, graph.neighbours, place))

    def _named(self, name: str, path: str, other: Domain | None = None) -> Floats:
        """Return the distances called `name` between the secrets, or from them to `other`."""
        choice(name, DISTANCES, path)
        for domain in (self.secrets, other or self.secrets):
            if name == "haversine" and domain.coordinates is None:
                raise SpecificationError(
                    path,
                    "needs latitudes and longitudes, which the domain does not have",
                    value=name,
                    bound="another distance, or a domain with latitudes and longitudes",
                )
            if name not in ("haversine", "hamming") and domain.points.shape[1] == 0:
                raise SpecificationError(
                    path,
                    "needs places to measure between, and the domain has labels only",
                    value=name,
                    bound='"hamming", a matrix or a graph',
                )
        if other is None and name in self._known:
            return self._known[name]
        with at(path, {"domain": "", "other": ""}):
            result = DISTANCES[name](self.secrets, other)
        if other is None:
            self._known[name] = result
        return result

    def _matrix(self, raw: Raw, path: str, shape: tuple[int | None, int]) -> Floats:
        table = convert(raw, MatrixFile, path)
        with in_file(path):
            matrix = read_matrix(self.folder / table.path, table.delimiter)
        if matrix.shape[1] != shape[1] or shape[0] not in (None, matrix.shape[0]):
            raise SpecificationError(
                path,
                "has the wrong shape",
                value=matrix.shape,
                bound=f"{shape[0] or 'any number of'} rows and {shape[1]} columns, as the domain has members",
            )
        with at(path, {"distances": ""}):
            return distances.matrix(matrix)

    def _graph(
        self,
        edges: Sequence[tuple[int | str, int | str]] | None,
        edges_csv: Raw | None,
        neighbours: int | None,
        path: str,
    ) -> nx.Graph:
        graph = nx.empty_graph(self.secrets.size)
        if edges is not None:
            graph.add_edges_from(
                (self._secret(s, f"{path}.edges[{index}][0]"), self._secret(t, f"{path}.edges[{index}][1]"))
                for index, (s, t) in enumerate(edges)
            )
        elif edges_csv is not None:
            place = f"{path}.edges_csv"
            table = convert(edges_csv, EdgesFile, place)
            with in_file(place):
                columns = read_columns(self.folder / table.path, [table.source, table.target], table.delimiter)
            ends = ([self._secret(text, place) for text in columns[name]] for name in (table.source, table.target))
            graph.add_edges_from(zip(*ends, strict=True))
        elif neighbours is not None:
            graph.add_edges_from(self._neighbours(neighbours, f"{path}.neighbours"))
        return graph

    def _neighbours(self, count: int, path: str) -> list[tuple[int, int]]:
        if count not in (4, 8):
            raise SpecificationError(path, "is not a neighbourhood", value=count, bound="4 or 8")
        cells = self.secrets.cells
        if cells is None:
            raise SpecificationError(path, "needs a grid", bound="a domain with grid = { … }", remedy="use edges")
        steps = [(0, 1), (1, 0)] if count == 4 else [(0, 1), (1, 0), (1, 1), (1, -1)]
        return [
            (row * cells.columns + column, (row + up) * cells.columns + column + right)
            for row in range(cells.rows)
            for column in range(cells.columns)
            for up, right in steps
            if row + up < cells.rows and 0 <= column + right < cells.columns
        ]

    def _within(self, table: GraphPrivacyTable, radius: Fraction, path: str) -> nx.Graph:
        """Return the graph that joins all secrets at a distance of at most `radius`."""
        if radius <= 0:
            raise SpecificationError(f"{path}.radius", "is not positive", value=float(radius), bound="> 0")
        form = one_of(table, ("distance", "matrix"), path)
        if form == "distance":
            measured = self._named(table.distance or "", f"{path}.distance")
        else:
            measured = self._matrix(table.matrix or {}, f"{path}.matrix", (self.secrets.size, self.secrets.size))
        pairs = PairBound.threshold(Fraction(1), measured, radius)
        graph = nx.empty_graph(self.secrets.size)
        graph.add_edges_from(zip(pairs.sources.tolist(), pairs.targets.tolist(), strict=True))
        return graph

    def _secret(self, name: int | str, path: str) -> int:
        """Return the index of a secret given by its index or its label."""
        if isinstance(name, str) and name in self._places:
            return self._places[name]
        index = int(name) if isinstance(name, int) or (name.isascii() and name.isdecimal()) else -1
        if not 0 <= index < self.secrets.size:
            raise SpecificationError(
                path, "is not a secret", value=name, bound=f"a label, or an index from 0 to {self.secrets.size - 1}"
            )
        return index

    @functools.cached_property
    def _places(self) -> dict[str, int]:
        return {label: index for index, label in enumerate(self.secrets.labels)}


_REQUIREMENTS: Mapping[str, Callable[[Measures, Raw, str], Requirement]] = MappingProxyType(
    {
        "metric": Measures._metric,
        "threshold": Measures._threshold,
        "graph": Measures._graph_privacy,
        "distortion": Measures._distortion,
    }
)
