"""Build the graphs on the secrets that a specification describes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import networkx as nx

from mechdesign.base._errors import SpecificationError
from mechdesign.base._values import cached_property
from mechdesign.data._labels import Names, read_matched
from mechdesign.data._layout import withholding
from mechdesign.data._text import read_columns
from mechdesign.graphs import _builders as graphs
from mechdesign.model._domain import Domain
from mechdesign.model._grammar import CategoriesFile, EdgesFile, GraphTable, Raw
from mechdesign.model._requirements._graph import GraphPrivacyTable
from mechdesign.specification._chains import neighbours, possible_steps
from mechdesign.specification._read import at, convert, in_file, one_of


@dataclass(frozen=True)
class Graphs:
    """What graphs are built from: the secrets, the folder of files, and the table of the prior, which may name data.

    `said` holds, by key, notes for the user about the files that were read.
    """

    secrets: Domain
    folder: Path
    prior: Raw
    said: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False, compare=False)

    def steps(self, raw: Raw | None, path: str) -> nx.Graph:
        """Return the graph whose shortest paths are a distance."""
        table = convert(raw, GraphTable, path)
        return _BUILDERS[one_of(table, path)](self, table, path)

    def policy(self, table: GraphPrivacyTable, form: str, path: str) -> nx.Graph:
        """Return the policy graph that a ``[[privacy]]`` table describes by its key `form`."""
        return _BUILDERS[form](self, table, path)

    def secret(self, name: int | str, path: str) -> int:
        """Return the position of a secret given by its label, a text, or its position, an integer."""
        with at(path):
            return self._names.find_typed(name, "")

    def _secret_in(self, text: str, where: str, path: str) -> int:
        with in_file(path):
            return self._names.find_written(text, where)

    def _edges(self, table: GraphTable | GraphPrivacyTable, path: str) -> nx.Graph:
        place = f"{path}.edges"
        pairs = [
            (self.secret(s, f"{place}[{index}][0]"), self.secret(t, f"{place}[{index}][1]"))
            for index, (s, t) in enumerate(table.edges or ())
        ]
        with at(path):
            return graphs.from_edges(self.secrets.size, pairs)

    def _edges_file(self, table: GraphTable | GraphPrivacyTable, path: str) -> nx.Graph:
        place = f"{path}.edges_csv"
        file = convert(table.edges_csv, EdgesFile, place)
        with in_file(place, file):
            columns = read_columns(self.folder / file.path, [file.source, file.target], file.delimiter)
        ends = [
            [
                self._secret_in(text, f"{self.folder / file.path}, row {row}, column {name}", place)
                for row, text in enumerate(columns[name], 1)
            ]
            for name in (file.source, file.target)
        ]
        with at(place, {"edges": ""}), withholding(counts=False):
            return graphs.from_edges(self.secrets.size, list(zip(*ends, strict=True)))

    def _neighbours(self, table: GraphTable | GraphPrivacyTable, path: str) -> nx.Graph:
        near = neighbours(self.secrets, table.neighbours or 0, f"{path}.neighbours")
        return graphs.from_edges(self.secrets.size, near)

    def _complete(self, table: GraphPrivacyTable, path: str) -> nx.Graph:
        _is_true(table.complete, f"{path}.complete")
        return graphs.complete(self.secrets.size)

    def _line(self, table: GraphPrivacyTable, path: str) -> nx.Graph:
        _is_true(table.line, f"{path}.line")
        return graphs.line(self.secrets.size)

    def _blocks(self, table: GraphPrivacyTable, path: str) -> nx.Graph:
        self._require_grid(f"{path}.blocks")
        with at(path, {"k": "blocks", "domain": "blocks"}):
            return graphs.blocks(self.secrets, table.blocks or 0)

    def _categories(self, table: GraphPrivacyTable, path: str) -> nx.Graph:
        place = f"{path}.categories"
        regions: list[Hashable] | None = None
        if isinstance(table.categories, list):
            names = table.categories
        else:
            file = convert(table.categories, CategoriesFile, place)
            wanted = [file.column] + ([file.region] if isinstance(file.region, str) else [])
            with in_file(place, file):
                found = read_matched(self.folder / file.path, wanted, self.secrets.labels, file.label, file.delimiter)
            names, columns = found.columns[file.column], found.columns
            self.said[place] = (f"{place}: {found.note}",)
            if isinstance(file.region, str):
                regions = list(columns[file.region])
            elif file.region is not None:
                regions = self._regions(file.region, f"{place}.region")
        if len(names) != self.secrets.size:
            raise SpecificationError(
                place, "differ in number from the secrets", value=len(names), bound=f"{self.secrets.size}, in order"
            )
        # An empty text means that a secret has no category.
        return graphs.categories([name or None for name in names], regions)

    def _regions(self, size: int | tuple[int, int], path: str) -> list[Hashable]:
        """Return which block of `size` cells each secret is in."""
        self._require_grid(path)
        with at(path, {"k": "", "domain": ""}):
            return list(graphs.block_numbers(self.secrets, size).tolist())

    def _require_grid(self, path: str) -> None:
        if self.secrets.cells is None:
            raise SpecificationError(path, "is not a grid", bound="a domain with grid = { … }", remedy="use categories")

    def _transitions(self, table: GraphPrivacyTable, path: str) -> nx.Graph:
        place = f"{path}.transitions"
        steps = possible_steps(table.transitions or {}, place, self.secrets, self.folder, self.prior)
        with at(place, {"P": ""}):
            return graphs.transitions(steps)

    @cached_property
    def _names(self) -> Names:
        return Names.of(self.secrets.labels)


def _is_true(value: bool | None, path: str) -> None:
    if not value:
        raise SpecificationError(path, "cannot be false", value=False, bound="true")


_BUILDERS: Mapping[str, Callable[..., nx.Graph]] = MappingProxyType(
    {
        "edges": Graphs._edges,
        "edges_csv": Graphs._edges_file,
        "neighbours": Graphs._neighbours,
        "complete": Graphs._complete,
        "line": Graphs._line,
        "blocks": Graphs._blocks,
        "categories": Graphs._categories,
        "transitions": Graphs._transitions,
    }
)
