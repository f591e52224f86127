"""Build the distances, graphs, costs and requirements that a specification describes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

import networkx as nx
import numpy as np

from mechdesign.base._arrays import Floats
from mechdesign.base._check import LARGEST_NUMBER
from mechdesign.base._errors import SpecificationError, withholding_values
from mechdesign.base._values import cached_property
from mechdesign.certify._exact import exact_text
from mechdesign.data._layout import withholding
from mechdesign.data._matrices import read_matrix
from mechdesign.graphs import _builders as graphs
from mechdesign.model import distances
from mechdesign.model._dithering import anchor_means, between
from mechdesign.model._domain import Domain
from mechdesign.model._grammar import Distance, GraphTable, MatrixFile, Raw, Table, holds
from mechdesign.model._prior import Prior
from mechdesign.model._requirements._graph import GraphPrivacyTable
from mechdesign.model._requirements._kind import Reading
from mechdesign.model._requirements._kinds import KINDS
from mechdesign.model._requirements._requirement import Requirement
from mechdesign.specification._graphs import Graphs
from mechdesign.specification._priors import build_prior
from mechdesign.specification._read import at, choice, convert, in_file, one_of

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


class CostTable(Table, frozen=True):
    """The cost of each answer: scale · d(s, o)^power, for a distance d between secrets and answers.

    Attributes:
        distance: the distance d by its name.
        matrix: the distance d from a file; rows are secrets, columns are answers.
        graph: the distance d as lengths of shortest paths.
        power: the power of d.
        scale: a factor.
        objective: what is minimised: the expected cost, or the worst over secrets.
    """

    alternatives: ClassVar = ("distance", "matrix", "graph")

    distance: Distance | None = None
    matrix: Annotated[Raw, holds(MatrixFile)] | None = None
    graph: Annotated[Raw, holds(GraphTable)] | None = None
    power: float = 1.0
    scale: float = 1.0
    objective: Literal["expected", "worst"] = "expected"


def scaled_cost(distance: Floats, power: float, scale: float, path: str) -> Floats:
    """Return scale · d^power; raise `SpecificationError` where a cost overflows, as an infinite one would forbid."""
    if power == 1 and scale == 1:
        return distance
    with np.errstate(over="ignore", under="ignore"):
        cost: Floats = scale * distance**power
    if not np.isfinite(cost).all() or (cost > LARGEST_NUMBER).any():
        key, value = ("power", power) if power != 1 else ("scale", scale)
        largest = float(distance.max())
        raise SpecificationError(
            f"{path}.{key}",
            f"makes costs too large: the largest distance is {largest:g}",
            value=value,
            bound=f"costs of at most {LARGEST_NUMBER:g}",
            remedy="give a smaller power or scale, or a larger unit",
        )
    if ((cost == 0) & (distance > 0)).any():
        key, value = ("power", power) if power != 1 else ("scale", scale)
        raise SpecificationError(
            f"{path}.{key}",
            "makes costs of distances above 0 vanish",
            value=value,
            bound="costs above 0 for such distances",
            remedy="give a smaller power or a larger scale, or a smaller unit",
        )
    return cost


@dataclass(frozen=True)
class Measures:
    """What is measured in: secrets, observables (the same object when they are the secrets), and where files are.

    `prior` is the table of the prior, whose data some policy graphs come from. `subset` holds the indices of the
    observables where they are some of the secrets. `visits` are raw coordinates (k, 2), where they give the prior.
    `said` holds, by key, notes for the user about the files that requirements were read from.
    """

    secrets: Domain
    observables: Domain
    folder: Path
    prior: Raw = field(default_factory=dict)
    subset: tuple[int, ...] | None = None
    visits: Floats | None = None
    said: dict[str, tuple[str, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _known: dict[str, Floats] = field(default_factory=dict, init=False, repr=False)

    def cost(self, raw: Raw, path: str) -> tuple[Floats, str]:
        """Return c(s, o) = scale · d(s, o)^power, float64 of shape (n, m), and the objective."""
        table = convert(raw, CostTable, path)
        for key in ("power", "scale"):
            value = getattr(table, key)
            if not 0 < value < math.inf:
                raise SpecificationError(f"{path}.{key}", "is not positive", value=value, bound="> 0 and finite")
        form = one_of(table, path)
        if self.observables is self.secrets:
            cost = self.between_secrets(table, path)
        elif form == "distance":
            cost = self._named(table.distance or "", f"{path}.distance", self.observables)
        elif form == "matrix":
            cost = self._matrix(table.matrix or {}, f"{path}.matrix", (self.secrets.size, self.observables.size))
        elif self.subset is not None:
            cost = self.between_secrets(table, path)[:, list(self.subset)]
        else:
            raise SpecificationError(f"{path}.graph", "joins secrets only", remedy="use distance or matrix")
        if not np.isfinite(cost).all():
            raise SpecificationError(f"{path}.{form}", "has infinite entries", bound="finite costs")
        return scaled_cost(cost, table.power, table.scale, path), table.objective

    def requirement(self, raw: Raw, path: str) -> Requirement:
        """Return the requirement that a ``[[privacy]]`` table describes."""
        if not isinstance(raw.get("kind"), str):
            problem = "is not a kind" if "kind" in raw else "is missing"
            raise SpecificationError(f"{path}.kind", problem, value=raw.get("kind"), bound=f"one of {', '.join(KINDS)}")
        name = raw["kind"]
        kind = KINDS[name if name in KINDS else choice(name, KINDS, f"{path}.kind")]
        table = convert(raw, kind.table, path)
        with at(path), withholding("distance"), withholding("error"), withholding_values():
            # Distances and errors are not written into the table itself.
            return kind.from_table(table, _Reading(self, path))

    @cached_property
    def graphs(self) -> Graphs:
        """What builds graphs on the secrets."""
        return Graphs(self.secrets, self.folder, self.prior, self.said)

    def policy_graph(self, table: GraphPrivacyTable, path: str) -> nx.Graph:
        """Return the policy graph that a ``[[privacy]]`` table describes."""
        form = one_of(table, path)
        if form == "radius":
            return self._within(table, table.radius or Fraction(0), path)
        for key in ("distance", "matrix"):
            if getattr(table, key) is not None:
                raise SpecificationError(f"{path}.{key}", f"does not go with {form}", remedy="leave it out")
        return self.graphs.policy(table, form, path)

    def between_secrets(self, table: Any, path: str, *, any_rows: bool = False) -> Floats:
        """Return what a table measures between the secrets; with `any_rows` a matrix has any number of rows."""
        form = one_of(table, path, _MEASURES)
        if form == "distance" and any_rows and self.visits is not None:
            # Errors are about the visits themselves, as far as an anchor stands for them.
            with at(path, {"cost": "distance"}):
                errors = between(self.secrets, self.visits, self.secrets, table.distance or "")
                return anchor_means(self.secrets, self.visits, errors, quiet=True)[1].T
        if form == "distance":
            return self._named(table.distance or "", f"{path}.distance")
        if form == "matrix":
            rows = None if any_rows else self.secrets.size
            return self._matrix(table.matrix or {}, f"{path}.matrix", (rows, self.secrets.size))
        return distances.shortest_path(self.graphs.steps(table.graph, f"{path}.graph"))

    def _named(self, name: str, path: str, other: Domain | None = None) -> Floats:
        """Return the distances called `name` between the secrets, or from them to `other`."""
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
        with in_file(path, table):
            matrix = read_matrix(self.folder / table.path, table.delimiter, shape)
        if matrix.shape[1] != shape[1] or shape[0] not in (None, matrix.shape[0]):
            raise SpecificationError(
                path,
                "has the wrong shape",
                value=matrix.shape,
                bound=f"{shape[0] or 'any number of'} rows and {shape[1]} columns, as the domain has members",
            )
        with at(path, {"distances": ""}), withholding():
            return distances.matrix(matrix)

    def margin(self, table: Any) -> float:
        """Return by how much rounding may have lengthened a named distance between the secrets; 0 for others."""
        return 0.0 if table.distance in (None, "hamming") else distances.margin(self.secrets)

    def _within(self, table: GraphPrivacyTable, radius: Fraction, path: str) -> nx.Graph:
        """Return the graph that joins all secrets at a distance of at most `radius`."""
        if radius <= 0:
            raise SpecificationError(f"{path}.radius", "is not positive", value=exact_text(radius), bound="> 0")
        form = one_of(table, path, ("distance", "matrix"))
        if form == "distance":
            measured = self._named(table.distance or "", f"{path}.distance")
        else:
            measured = self._matrix(table.matrix or {}, f"{path}.matrix", (self.secrets.size, self.secrets.size))
        with at(path, {"distance": form}):
            return graphs.threshold(distance=measured, radius=radius, margin=self.margin(table))


@dataclass(frozen=True)
class _Reading(Reading):
    """What a kind of requirement reads its table with; `path` is where the table stands."""

    _measures: Measures
    _path: str

    @property
    def secrets(self) -> Domain:
        return self._measures.secrets

    def secret(self, name: int | str, key: str) -> int:
        return self._measures.graphs.secret(name, f"{self._path}.{key}")

    def measure(self, table: Any, *, any_rows: bool = False) -> Floats:
        return self._measures.between_secrets(table, self._path, any_rows=any_rows)

    def margin(self, table: Any) -> float:
        return self._measures.margin(table)

    def prior(self, table: Raw, key: str) -> Prior:
        # An error names the key in full, so that it is not put below the table a second time.
        path = f"{self._path}.{key}"
        prior, self._measures.said[path] = build_prior(table, path, self.secrets, self._measures.folder)
        return prior

    def policy_graph(self, table: GraphPrivacyTable) -> nx.Graph:
        return self._measures.policy_graph(table, self._path)
