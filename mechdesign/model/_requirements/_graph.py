"""Graph privacy: the edges of a policy graph join the secrets that are indistinguishable from each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Self

import networkx as nx
import numpy as np

from mechdesign.base._arrays import Integers, as_indices
from mechdesign.base._check import require_kind
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact_text
from mechdesign.certify._stated import Stated
from mechdesign.model._grammar import (
    CategoriesFile,
    ChainTable,
    Distance,
    Edges,
    EdgesCsv,
    Epsilon,
    MatrixFile,
    Neighbours,
    Table,
    says,
)
from mechdesign.model._numbers import Number, positive
from mechdesign.model._requirements._kind import Reading, RequirementKind, check_stated, with_fields
from mechdesign.model._words import Words


class GraphPrivacyTable(Table, frozen=True, tag_field="kind", tag="graph"):
    """Privacy along a policy graph: p(o|s) ≤ exp(ε) p(o|s') for every edge between s and s'.

    Several such tables require what each of them requires.
    """

    alternatives: ClassVar = (
        "edges", "edges_csv", "neighbours", "complete", "line", "blocks", "categories", "transitions", "radius",
    )  # fmt: skip

    epsilon: Annotated[
        Epsilon, says('ε of each edge in nats, exact: a number, a text such as "1/3", or a file of budgets.')
    ]
    edges: Edges = None
    edges_csv: EdgesCsv = None
    neighbours: Neighbours = None
    complete: Annotated[bool | None, says("true: every two secrets.")] = None
    line: Annotated[bool | None, says("true: each secret and the next.")] = None
    blocks: Annotated[
        int | tuple[int, int] | None, says("the cells of the same block of a grid, so many columns and rows.")
    ] = None
    categories: Annotated[
        CategoriesFile | list[str] | None,
        says('secrets of the same category: a category for each secret in order, "" for none, or a file.'),
    ] = None
    transitions: Annotated[
        ChainTable | None, says("states to which one step may lead from the same state; without smoothing.")
    ] = None
    radius: Annotated[Fraction | None, says("secrets at most so far apart, exact; with `distance` or `matrix`.")] = None
    distance: Annotated[Distance | None, says("the distance for `radius` by its name.")] = None
    matrix: Annotated[MatrixFile | None, says("the distance for `radius` from a file.")] = None


@dataclass(frozen=True, eq=False, repr=False, init=False)
class GraphPrivacy(RequirementKind):
    """Graph privacy: p(o|s) <= e^ε p(o|s') for the two ends of every edge (PGLP, definition of the policy graph).

    `graph` is an undirected networkx graph whose nodes are exactly 0..n-1; k hops then mean kε, and no path means no
    requirement. `epsilon` is in nats per edge. Self-loops say nothing and are ignored.
    """

    kind: ClassVar[str] = "graph"
    table: ClassVar[type[Table]] = GraphPrivacyTable
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
    def policy_graph(self) -> nx.Graph:
        """The graph."""
        return self.graph

    @property
    def edges(self) -> Integers:
        """The edges, as an integer array (k, 2)."""
        return np.array(sorted(tuple(sorted(edge)) for edge in self.graph.edges), dtype=np.int64).reshape(-1, 2)

    def stated(self) -> tuple[Stated, ...]:
        """State the bound on both directions of every edge."""
        return (Stated.graph(self.epsilon, self.edges),)

    @classmethod
    def from_stated(cls, stated: Sequence[Stated], secrets: int) -> Self:
        """Return the requirement that was stated."""
        stated = check_stated(stated, 1)
        (only,) = stated
        graph = nx.empty_graph(secrets)
        graph.add_edges_from(only.arrays["edges"].tolist())
        return cls(only.numbers["epsilon"], graph)

    @classmethod
    def from_table(cls, table: GraphPrivacyTable, reading: Reading) -> Self:
        """Return the requirement that a specification states."""
        require_kind(table, cls.table, "table", cls.table.__name__)
        return cls(table.epsilon, reading.policy_graph(table))

    def restrict(self, secrets: Integers, *, floors: bool = False) -> Self:
        """Keep the edges between these secrets."""
        chosen = as_indices(secrets, "secrets", self.size)
        number = {secret: index for index, secret in enumerate(chosen.tolist())}
        kept = nx.empty_graph(len(number))
        kept.add_edges_from((number[s], number[t]) for s, t in self.graph.subgraph(number).edges())
        return with_fields(self, graph=nx.freeze(kept))

    def title(self, words: Words) -> str:
        """Name the requirement and the number of its edges."""
        edges = len(self.edges)
        return f"graph privacy, ε per edge ({edges} edge{'' if edges == 1 else 's'})"

    def promise(self, words: Words) -> str:
        """Say how much the odds of two secrets with an edge change."""
        factor = words.factor(float(self.epsilon))
        return (
            f"shift the odds between two secrets joined by an edge of the policy graph by a factor of at most {factor}"
        )


def _frozen(graph: nx.Graph) -> nx.Graph:
    plain = nx.Graph()
    plain.add_nodes_from(range(graph.number_of_nodes()))
    plain.add_edges_from((s, t) for s, t in graph.edges() if s != t)
    return nx.freeze(plain)
