"""Build the graphs on the secrets of a specification."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar

import networkx as nx

from mechdesign.base._errors import InputError
from mechdesign.base._values import cached_property
from mechdesign.data.labels import Names, read_matched
from mechdesign.data.table import read_table
from mechdesign.graphs import _builders as graphs
from mechdesign.model._domain import Domain
from mechdesign.model._grammar import (
    CategoriesFile,
    ChainTable,
    Distance,
    Edges,
    EdgesCsv,
    GraphTable,
    MatrixFile,
    Neighbours,
    PriorTable,
    Table,
    says,
)
from mechdesign.specification._chains import neighbours, possible_steps
from mechdesign.specification._read import Source


class GraphPrivacyTable(Table, frozen=True, tag_field="kind", tag="graph"):
    """Privacy along a policy graph: p(o|s) ≤ exp(ε) p(o|s') for every edge between s and s'.

    A specification can contain several tables of this kind, whose bounds must all hold.
    """

    alternatives: ClassVar = (
        "edges", "edges_csv", "neighbours", "complete", "line", "blocks", "categories", "transitions", "radius",
    )  # fmt: skip

    epsilon: Annotated[Fraction, says('ε of each edge in nats, exact: a number or a text such as "1/3".')]
    edges: Edges = None
    edges_csv: EdgesCsv = None
    neighbours: Neighbours = None
    complete: Annotated[bool | None, says("true means an edge between every two secrets.")] = None
    line: Annotated[bool | None, says("true means an edge between each secret and the next secret.")] = None
    blocks: Annotated[
        int | tuple[int, int] | None,
        says("edges within blocks of a grid; the value is the number of columns and rows of a block."),
    ] = None
    categories: Annotated[
        CategoriesFile | list[str] | None,
        says(
            'edges between secrets of the same category: a list or file with the category of each secret, "" for none.'
        ),
    ] = None
    transitions: Annotated[
        ChainTable | None,
        says("edges between states that the chain can reach in one step from the same state; without smoothing."),
    ] = None
    radius: Annotated[
        Fraction | None,
        says("edges between secrets whose distance is at most this exact radius; needs `distance` or `matrix`."),
    ] = None
    distance: Annotated[Distance | None, says("the name of the distance for `radius`.")] = None
    matrix: Annotated[MatrixFile | None, says("a file with the distances for `radius`.")] = None


@dataclass(frozen=True)
class Graphs:
    """A builder of graphs on the secrets.

    Attributes:
        secrets: The secrets.
        prior: The table of the prior, which may name data.
    """

    secrets: Domain
    prior: PriorTable

    def build(self, table: GraphTable | GraphPrivacyTable, source: Source) -> nx.Graph:
        """Return the graph that a table describes by one of its keys."""
        # The builder of each key has its name.
        made: nx.Graph = getattr(self, f"_{table.form}")(table, source)
        return made

    def secret(self, name: int | str, source: Source) -> int:
        """Return the index of a secret given by its label (a string) or its index (an integer)."""
        with source.keys():
            return self._names.find(name, "")

    def _edges(self, table: GraphTable | GraphPrivacyTable, source: Source) -> nx.Graph:
        pairs = [
            tuple(self.secret(name, source / "edges" / index / end) for end, name in enumerate(pair))
            for index, pair in enumerate(table.edges or ())
        ]
        with source.keys():
            return graphs.from_edges(self.secrets.size, pairs)

    def _edges_csv(self, table: GraphTable | GraphPrivacyTable, source: Source) -> nx.Graph:
        place, given = source / "edges_csv", table.edges_csv
        assert given is not None
        with place.file(given) as file:
            columns = read_table(file, [given.source, given.target], place.layout)
            ends = zip(columns.texts(given.source), columns.texts(given.target), strict=True)
            fields = f", column {given.source}", f", column {given.target}"
            pairs = [self._names.find_pair(*pair, columns.where(row), fields) for row, pair in enumerate(ends)]
            if not pairs:
                raise InputError(str(file), "contains no edges", bound="at least one edge")
        return graphs.from_edges(self.secrets.size, pairs)

    def _neighbours(self, table: GraphTable | GraphPrivacyTable, source: Source) -> nx.Graph:
        near = neighbours(self.secrets, table.neighbours or 0, source / "neighbours")
        return graphs.from_edges(self.secrets.size, near)

    def _complete(self, table: GraphPrivacyTable, source: Source) -> nx.Graph:
        return graphs.complete(self.secrets.size)

    def _line(self, table: GraphPrivacyTable, source: Source) -> nx.Graph:
        return graphs.line(self.secrets.size)

    def _blocks(self, table: GraphPrivacyTable, source: Source) -> nx.Graph:
        with source.keys({"k": "blocks", "domain": "blocks"}):
            return graphs.blocks(self.secrets, table.blocks or 0)

    def _categories(self, table: GraphPrivacyTable, source: Source) -> nx.Graph:
        place, given = source / "categories", table.categories
        assert given is not None
        regions: list[Hashable] | None = None
        if isinstance(given, list):
            names = given
        else:
            wanted = [given.column] + ([given.region] if isinstance(given.region, str) else [])
            with place.file(given) as file:
                found, rows = read_matched(file, wanted, given.label, self.secrets.labels, place.layout)
            names, *others = ([found.texts(name)[row] for row in rows.tolist()] for name in wanted)
            if isinstance(given.region, str):
                regions = list(others[0])
            elif given.region is not None:
                regions = self._regions(given.region, place / "region")
        if len(names) != self.secrets.size:
            raise place.error(
                "", "do not match the number of secrets", value=len(names), bound=f"{self.secrets.size}, in order"
            )
        # An empty text means no category.
        return graphs.categories([name or None for name in names], regions)

    def _regions(self, size: int | tuple[int, int], source: Source) -> list[Hashable]:
        """Return, for each secret, the number of the block of `size` cells that contains the secret."""
        with source.keys({"k": "", "domain": ""}):
            return list(graphs.block_numbers(self.secrets, size).tolist())

    def _transitions(self, table: GraphPrivacyTable, source: Source) -> nx.Graph:
        place = source / "transitions"
        assert table.transitions is not None
        steps = possible_steps(table.transitions, place, self.secrets, self.prior)
        with place.keys({"P": ""}):
            return graphs.transitions(steps)

    @cached_property
    def _names(self) -> Names:
        return Names.of(self.secrets.labels)
