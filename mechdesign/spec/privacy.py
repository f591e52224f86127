"""The ``[[privacy]]`` tables, one for each kind of requirement."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from mechdesign.spec.chains import ChainTable
from mechdesign.spec.files import BudgetsFile, CategoriesFile, EdgesFile, MatrixFile
from mechdesign.spec.tables import Distance, Raw, Table, holds

__all__ = ["DistortionTable", "GraphPrivacyTable", "GraphTable", "MetricTable", "ThresholdTable"]

Epsilon = Annotated[Fraction, holds(BudgetsFile)]


class GraphTable(Table, frozen=True):
    """A graph on the secrets, whose shortest paths are a distance: every edge is one step long.

    Attributes:
        edges: pairs of secrets, by index or label.
        edges_csv: a file of edges.
        neighbours: 4 or 8: each cell of a grid and so many neighbours.
    """

    alternatives: ClassVar = ("edges", "edges_csv", "neighbours")

    edges: list[tuple[int | str, int | str]] | None = None
    edges_csv: Annotated[Raw, holds(EdgesFile)] | None = None
    neighbours: int | None = None


class MetricTable(Table, frozen=True):
    """Metric privacy: p(o|s) ≤ exp(ε d(s, s')) p(o|s') for every answer o and every two secrets s and s'.

    Attributes:
        kind: the kind of requirement.
        epsilon: ε in nats per unit of distance, exact: a number, a text such as "1/3", or a file of budgets.
        distance: the distance d by its name.
        matrix: the distance d from a file.
        graph: the distance d as lengths of shortest paths.
    """

    alternatives: ClassVar = ("distance", "matrix", "graph")

    kind: Literal["metric"]
    epsilon: Epsilon
    distance: Distance | None = None
    matrix: Annotated[Raw, holds(MatrixFile)] | None = None
    graph: Annotated[Raw, holds(GraphTable)] | None = None


class ThresholdTable(Table, frozen=True):
    """Threshold privacy: p(o|s) ≤ exp(ε) p(o|s') for every two secrets at a distance of at most the radius.

    Attributes:
        kind: the kind of requirement.
        epsilon: ε in nats, exact: a number, a text such as "1/3", or a file of budgets.
        radius: the radius in the unit of the distance, exact.
        distance: the distance by its name.
        matrix: the distance from a file.
        graph: the distance as lengths of shortest paths.
    """

    alternatives: ClassVar = ("distance", "matrix", "graph")

    kind: Literal["threshold"]
    epsilon: Epsilon
    radius: Fraction
    distance: Distance | None = None
    matrix: Annotated[Raw, holds(MatrixFile)] | None = None
    graph: Annotated[Raw, holds(GraphTable)] | None = None


class GraphPrivacyTable(Table, frozen=True):
    """Privacy along a policy graph: p(o|s) ≤ exp(ε) p(o|s') for every edge between s and s'.

    Several such tables require what each of them requires.

    Attributes:
        kind: the kind of requirement.
        epsilon: ε of each edge in nats, exact: a number, a text such as "1/3", or a file of budgets.
        edges: pairs of secrets, by index or label.
        edges_csv: a file of edges.
        neighbours: 4 or 8: each cell of a grid and so many neighbours.
        complete: true: every two secrets.
        line: true: each secret and the next.
        blocks: the cells of the same block of a grid, so many columns and rows.
        categories: secrets of the same category: a category for each secret in order, "" for none, or a file.
        transitions: states to which one step may lead from the same state; without smoothing.
        radius: secrets at most so far apart, exact; with `distance` or `matrix`.
        distance: the distance for `radius` by its name.
        matrix: the distance for `radius` from a file.
    """

    alternatives: ClassVar = (
        "edges", "edges_csv", "neighbours", "complete", "line", "blocks", "categories", "transitions", "radius",
    )  # fmt: skip

    kind: Literal["graph"]
    epsilon: Epsilon
    edges: list[tuple[int | str, int | str]] | None = None
    edges_csv: Annotated[Raw, holds(EdgesFile)] | None = None
    neighbours: int | None = None
    complete: bool | None = None
    line: bool | None = None
    blocks: int | tuple[int, int] | None = None
    categories: Annotated[Raw, holds(CategoriesFile)] | list[str] | None = None
    transitions: Annotated[Raw, holds(ChainTable)] | None = None
    radius: Fraction | None = None
    distance: Distance | None = None
    matrix: Annotated[Raw, holds(MatrixFile)] | None = None


class DistortionTable(Table, frozen=True):
    """Distortion privacy: whoever knows the prior and the channel still errs by the minimum on average.

    Attributes:
        kind: the kind of requirement.
        minimum: the least expected error of the best attack, in the unit of the error, exact.
        distance: the error of an estimate as a distance by its name.
        matrix: the error of every estimate from a file; rows are estimates, columns are secrets.
        graph: the error as lengths of shortest paths.
    """

    alternatives: ClassVar = ("distance", "matrix", "graph")

    kind: Literal["distortion"]
    minimum: Fraction
    distance: Distance | None = None
    matrix: Annotated[Raw, holds(MatrixFile)] | None = None
    graph: Annotated[Raw, holds(GraphTable)] | None = None
