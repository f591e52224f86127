"""Build the distances, graphs, costs and requirements of a specification, and the costs of raw visits.

With anchors as the domain, the coordinates of visits are used without cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

import networkx as nx
import numpy as np

from mechdesign.base._arrays import Flags, Floats
from mechdesign.base._check import LARGEST_NUMBER
from mechdesign.base._errors import InputError, SpecificationError, withholding_values
from mechdesign.base._values import cached_property
from mechdesign.data.matrices import match_names, read_dense
from mechdesign.data.movement import Fault, LeftOut, Movement, blank, degrees_of, numbers_of
from mechdesign.data.table import read_table
from mechdesign.graphs import _builders as graphs
from mechdesign.model import distances
from mechdesign.model._dithering import anchor_means, between
from mechdesign.model._domain import Domain
from mechdesign.model._grammar import (
    POSITIVE,
    Distance,
    GraphTable,
    MatrixFile,
    PriorTable,
    Table,
    VisitsFile,
    says,
)
from mechdesign.model._locate import INTERCHANGED
from mechdesign.model._prior import Prior
from mechdesign.model._requirements._continuous import ContinuousPrivacy
from mechdesign.model._requirements._distortion import DistortionPrivacy
from mechdesign.model._requirements._graph import GraphPrivacy
from mechdesign.model._requirements._metric import MetricPrivacy
from mechdesign.model._requirements._requirement import Requirement
from mechdesign.model._requirements._threshold import ThresholdPrivacy
from mechdesign.specification._policy import GraphPrivacyTable, Graphs
from mechdesign.specification._priors import build_prior, read_traces
from mechdesign.specification._read import Source

DISTANCES: Mapping[str, Callable[[Domain, Domain | None], Floats]] = MappingProxyType(
    {
        "euclidean": distances.euclidean,
        "manhattan": distances.manhattan,
        "chebyshev": distances.chebyshev,
        "hamming": distances.hamming,
        "haversine": distances.haversine,
    }
)


class MeasureTable(Table, frozen=True):
    """A distance d, by its name, from a file or along a graph."""

    alternatives: ClassVar = ("distance", "matrix", "graph")

    distance: Annotated[Distance | None, says("the name of the distance d.")] = None
    matrix: Annotated[MatrixFile | None, says("the distance d from a file; rows and columns as d(row, column).")] = None
    graph: Annotated[GraphTable | None, says("the graph whose shortest path lengths are the distance d.")] = None


class CostTable(MeasureTable, frozen=True, kw_only=True):
    """The cost of each answer: scale · d(s, o)^power, for a distance d between secrets s and answers o."""

    power: Annotated[float, says("the power of d.", **POSITIVE)] = 1.0
    scale: Annotated[float, says("a factor.", **POSITIVE)] = 1.0
    objective: Annotated[
        Literal["expected", "worst"], says("the cost to minimise: the expected cost, or the largest over secrets.")
    ] = "expected"


_EPSILON = 'exact: a number or a text such as "1/3".'


class MetricTable(MeasureTable, frozen=True, kw_only=True, tag_field="kind", tag="metric"):
    """Metric privacy: p(o|s) ≤ exp(ε d(s, s')) p(o|s') for every answer o and every two secrets s and s'."""

    epsilon: Annotated[Fraction, says(f"ε in nats per unit of distance, {_EPSILON}")]


class ThresholdTable(MeasureTable, frozen=True, kw_only=True, tag_field="kind", tag="threshold"):
    """Threshold privacy: p(o|s) ≤ exp(ε) p(o|s') for every two secrets with d(s, s') of at most the radius."""

    epsilon: Annotated[Fraction, says(f"ε in nats, {_EPSILON}")]
    radius: Annotated[Fraction, says("the radius, as an exact number in the unit of the distance.")]


class DistortionTable(MeasureTable, frozen=True, kw_only=True, tag_field="kind", tag="distortion"):
    """Distortion privacy: an adversary who knows the prior and the channel has at least the minimum expected error.

    The error d(e, s) of an estimate e is a distance; a file may have a row for each of any number of estimates.
    """

    minimum: Annotated[
        Fraction,
        says("the minimum of the expected error of the best attack, as an exact number in the unit of the error."),
    ]
    prior: Annotated[
        PriorTable | list[PriorTable] | None,
        says(
            "the prior of the adversary, if it differs from the prior of the specification. A list of priors requires "
            "the minimum error for each of these adversaries."
        ),
    ] = None


class ContinuousTable(Table, frozen=True, tag_field="kind", tag="continuous"):
    """Privacy for all real points: p(o|x) ≤ exp(ε d(x, x')) p(o|x') for every answer o and all points x, x'.

    The secrets must be anchors, so the domain needs the key ``anchors``.
    """

    epsilon: Annotated[Fraction, says(f"ε in nats per unit of distance, {_EPSILON}")]
    distance: Annotated[Literal["euclidean", "manhattan", "chebyshev"], says("the distance d between points.")] = (
        "euclidean"
    )
    split: Annotated[
        Fraction | None,
        says("the share of ε² (of ε for the Chebyshev distance) that is used for the x axis, between 0 and 1."),
    ] = None


PrivacyTable = MetricTable | ThresholdTable | GraphPrivacyTable | DistortionTable | ContinuousTable


def scale_cost(distance: Floats, power: float, scale: float, source: Source) -> Floats:
    """Return scale · d^power; raise `SpecificationError` if a cost overflows, since infinite costs forbid answers."""
    if power == 1 and scale == 1:
        return distance
    with np.errstate(over="ignore", under="ignore"):
        cost: Floats = scale * distance**power
    problem = ""
    if not np.isfinite(cost).all() or (cost > LARGEST_NUMBER).any():
        problem = f"makes costs too large: the largest distance is {float(distance.max()):g}"
    elif ((cost == 0) & (distance > 0)).any():
        problem = "makes the costs of some positive distances 0"
    if problem:
        key, value = ("power", power) if power != 1 else ("scale", scale)
        bound = f"positive costs of at most {LARGEST_NUMBER:g} for positive distances"
        raise source.error(key, problem, value=value, bound=bound, remedy="give another power, scale or unit")
    return cost


@dataclass(frozen=True)
class Measures:
    """A builder of costs, distances and requirements.

    Attributes:
        secrets: The secrets.
        observables: The observables; the same object as `secrets` if they are equal.
        prior: The table of the prior, whose data some policy graphs use.
        subset: The indices of the observables, if they are a subset of the secrets.
        visits: Raw coordinates of the visits (k, 2), if the prior comes from raw visits.
        said: Notes for the user about the files of requirements, by key.
    """

    secrets: Domain
    observables: Domain
    prior: PriorTable
    subset: tuple[int, ...] | None = None
    visits: Floats | None = None
    said: dict[str, tuple[str, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _known: dict[str, Floats] = field(default_factory=dict, init=False, repr=False)

    def cost(self, table: CostTable, source: Source) -> tuple[Floats, str]:
        """Return c(s, o) = scale · d(s, o)^power, float64 of shape (n, m), and the objective."""
        form = table.form
        if self.observables is self.secrets:
            cost = self.between_secrets(table, source)
        elif table.distance is not None:
            cost = self._measure(table.distance, source / "distance", self.observables)
        elif table.matrix is not None:
            cost = self._matrix(table.matrix, source / "matrix", self.observables)
        elif self.subset is not None:
            cost = self.between_secrets(table, source)[:, list(self.subset)]
        else:
            raise source.error("graph", "joins secrets only", remedy="use distance or matrix")
        if not np.isfinite(cost).all():
            raise source.error(form, "has infinite entries", bound="finite costs")
        return scale_cost(cost, table.power, table.scale, source), table.objective

    def requirement(self, table: PrivacyTable, source: Source) -> Requirement:
        """Return the requirement that a ``[[privacy]]`` table describes."""
        with source.keys(), withholding_values("distance"), withholding_values("error"):
            # Distances and errors come from files, so error messages must not show them.
            match table:
                case MetricTable():
                    return MetricPrivacy(table.epsilon, self.between_secrets(table, source))
                case ThresholdTable():
                    measured = self.between_secrets(table, source)
                    return ThresholdPrivacy(table.epsilon, measured, table.radius, self.margin(table))
                case GraphPrivacyTable():
                    return GraphPrivacy(table.epsilon, self.policy_graph(table, source))
                case DistortionTable():
                    error = self.between_secrets(table, source, any_rows=True)
                    return DistortionPrivacy(table.minimum, error, self._adversaries(table, source))
                case ContinuousTable():
                    if self.secrets.lattice is None:
                        bound = "a domain with anchors = { … } instead of a grid"
                        raise InputError("domain", "has no anchors", bound=bound)
                    return ContinuousPrivacy(table.epsilon, self.secrets, table.distance, table.split)

    def _adversaries(self, table: DistortionTable, source: Source) -> Prior | list[Prior] | None:
        """Return the priors of adversaries, or None if they have that of the specification."""

        def read(prior: PriorTable, place: Source) -> Prior:
            found, self.said[str(place)] = build_prior(prior, place, self.secrets)
            return found

        if isinstance(table.prior, list):
            return [read(each, source / f"prior[{index}]") for index, each in enumerate(table.prior)]
        return None if table.prior is None else read(table.prior, source / "prior")

    @cached_property
    def graphs(self) -> Graphs:
        """The builder of graphs on the secrets."""
        return Graphs(self.secrets, self.prior)

    def policy_graph(self, table: GraphPrivacyTable, source: Source) -> nx.Graph:
        """Return the policy graph that a ``[[privacy]]`` table describes."""
        if table.radius is not None:
            return self._within(table, table.radius, source)
        for key in ("distance", "matrix"):
            if getattr(table, key) is not None:
                raise source.error(key, f"cannot be combined with {table.form}", remedy="remove the key")
        return self.graphs.build(table, source)

    def between_secrets(self, table: Any, source: Source, *, any_rows: bool = False) -> Floats:
        """Return the distances between secrets from a table; with `any_rows` a matrix may have any number of rows."""
        if table.matrix is not None:
            return self._matrix(table.matrix, source / "matrix", self.secrets, any_rows=any_rows)
        if table.graph is not None:
            return distances.shortest_path(self.graphs.build(table.graph, source / "graph"))
        assert table.distance is not None
        if any_rows and self.secrets.lattice is not None:
            return np.vstack([self._errors_of(each, table.distance, source) for each in self._estimates])
        return self._measure(table.distance, source / "distance")

    @property
    def _estimates(self) -> tuple[Domain, ...]:
        """The places that an adversary may name between anchors: the anchors, and the answers if they are places."""
        others = self.observables is not self.secrets and self.observables.points.shape[1] == 2
        return (self.secrets, self.observables) if others else (self.secrets,)

    def _errors_of(self, estimates: Domain, distance: str, source: Source) -> Floats:
        """Return the errors of estimates at the anchors, (k, n); those of raw visits are means over their places."""
        if self.visits is None:
            own = None if estimates is self.secrets else estimates
            return self._measure(distance, source / "distance", own).T
        with source.keys({"cost": "distance"}):
            errors = between(self.secrets, self.visits, estimates, distance)
            return anchor_means(self.secrets, self.visits, errors, quiet=True)[1].T

    def _measure(self, name: str, source: Source, other: Domain | None = None) -> Floats:
        """Return the named distances between the secrets, or from the secrets to `other`."""
        if other is None and name in self._known:
            return self._known[name]
        with source.keys({"domain": "", "other": ""}):
            result = DISTANCES[name](self.secrets, other)
        if other is None:
            self._known[name] = result
        return result

    def _matrix(self, table: MatrixFile, source: Source, columns: Domain, *, any_rows: bool = False) -> Floats:
        """Return the matrix in a file, with its names in the order of the secrets and of the members of `columns`."""
        with source.file(table) as file:
            found = read_dense(file, table.header, table.index, source.layout)
        size, width, (height, found_width) = self.secrets.size, columns.size, np.shape(found)
        if found_width != width or not (any_rows or height == size):
            raise source.error(
                "",
                "has the wrong shape",
                value=(height, found_width),
                bound=f"{'any number of' if any_rows else size} rows and {width} columns, like the domain",
            )
        labels = self.secrets.labels
        # The rows of errors are estimates, whose order does not matter.
        rows = None if any_rows and set(getattr(found, "rows", ())) != set(labels) else labels
        with source.keys({"matrix": "", "distances": ""}):
            ordered = match_names(found, "matrix", rows, columns.labels)
            with withholding_values():
                return distances.matrix(ordered)

    def margin(self, table: Any) -> float:
        """Return a bound on the rounding error of a named distance between the secrets; 0 for other distances."""
        return 0.0 if table.distance in (None, "hamming") else distances.margin(self.secrets)

    def _within(self, table: GraphPrivacyTable, radius: Fraction, source: Source) -> nx.Graph:
        """Return the graph that joins all secrets at a distance of at most `radius`."""
        with source.keys():
            form = table.one_of(("distance", "matrix"))
        if table.matrix is not None:
            measured = self._matrix(table.matrix, source / form, self.secrets)
        else:
            measured = self._measure(table.distance or "", source / form)
        with source.keys({"distance": form}):
            return graphs.threshold(distance=measured, radius=radius, margin=self.margin(table))


@dataclass(frozen=True, eq=False)
class RawVisits:
    """Raw coordinates (k, 2), in the axes of the anchors, and notes for the user about the data."""

    points: Floats
    notes: tuple[str, ...]


def read_raw_visits(table: PriorTable, source: Source, anchors: Domain) -> RawVisits | None:
    """Return the raw visits named in the table of a prior, or None if the prior is on the secrets themselves."""
    if anchors.lattice is None or table.form not in ("visits", "checkins", "plt"):
        return None
    if table.smoothing is not None:
        raise source.error("smoothing", "cannot be combined with raw visits", remedy="remove the key")
    if table.visits is not None:
        place = source / "visits"
        points, people, note = _read_places(table.visits, place, anchors)
        outside = int(_outside(points, anchors).sum())
        if outside == len(points):
            raise _nowhere(points, anchors, place)
        notes = [f"{outside} of {len(points)} visits outside the anchors are projected to their border"] * (outside > 0)
        notes += [f"{place}: {note}"] * bool(note)
        return RawVisits(points, (f"{len(points)} visits{people} are used without rounding", *notes))
    data, place = table.checkins or table.plt, source / table.form
    assert data is not None
    if anchors.geographic is None:
        bound = "anchors = { columns, rows, south, north, west, east }"
        raise place.error("", "requires anchors with latitudes and longitudes", bound=bound)
    found = read_traces(data, place)
    every = np.concatenate([np.column_stack((trace.latitude, trace.longitude)) for trace in found.traces])
    inside = ~_outside(every, anchors)
    if not inside.any():
        raise _nowhere(every, anchors, place)
    users = len(dict.fromkeys(trace.user for trace in found.traces))
    taken = f"{int(inside.sum())} points of {users} user(s) are used without rounding"
    beyond = () if inside.all() else (f"{int((~inside).sum())} points outside the box are left out",)
    return RawVisits(every[inside], (*found.notes, taken, *beyond))


def _read_places(table: VisitsFile, source: Source, anchors: Domain) -> tuple[Floats, str, str]:
    """Return the coordinates (k, 2) of visits, in the axes of the anchors, their people and rows left out, in words."""
    layout = source.layout
    with source.file(table) as file:
        on_earth = anchors.geographic is not None
        names = (table.latitude, table.longitude) if on_earth else (table.x, table.y)
        named = (table.user,) if isinstance(table.user, str) else ()
        found, left_out, faults = read_table(file, (*names, *named), layout), LeftOut(layout.missing), list[Fault]()
        user = source.user_column(table.user, found.name if found.others else "")
        if user is not None:
            faults.append(blank(found, user, "user"))
        places = np.column_stack((degrees_of if on_earth else numbers_of)(found, names, faults))
        kept = left_out.keep(found, faults)
        left_out.check()
    users = 1 if user is None else len({found.texts(user)[row] for row in kept})
    people = "" if table.user is None else f" of {users} user(s)"
    return places[kept], people, Movement((), left_out.counts).note


def _outside(points: Floats, anchors: Domain) -> Flags:
    """Return a mask of the points (k, 2) outside the rectangle of the anchors."""
    assert anchors.lattice is not None
    return anchors.lattice.corners(points[:, 0], points[:, 1]).outside


def _nowhere(points: Floats, anchors: Domain, source: Source) -> SpecificationError:
    """Return the error if all points are outside; it tells if latitude and longitude seem to be interchanged."""
    problem, remedy = f"has none of its {len(points)} points in the box of the anchors", "check the box"
    if anchors.geographic is not None and (~_outside(points[:, ::-1], anchors)).mean() > 0.5:
        problem, remedy = f"{problem}: {INTERCHANGED}", "exchange the names of the two columns"
    return source.error("", problem, bound="a point in the box", remedy=remedy)


def price_visits(
    visits: RawVisits, anchors: Domain, observables: Domain, table: CostTable, source: Source
) -> tuple[Prior, Floats]:
    """Return the probability of each anchor, and its mean cost of each answer by the table of costs at `source`."""
    if table.distance is None:
        raise source.error("", "has no named distance, which raw visits require", remedy="use distance")
    if table.objective != "expected":
        problem = "is the worst cost, which is not defined for raw visits"
        raise source.error("objective", problem, value=table.objective, bound='"expected"')
    with source.keys({"cost": "distance", "observables": "distance"}):
        apart = between(anchors, visits.points, observables, table.distance)
        cost = scale_cost(apart, table.power, table.scale, source)
        prior, means = anchor_means(anchors, visits.points, cost, quiet=True)
    return Prior(prior), means
