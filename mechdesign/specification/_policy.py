"""Graphs on the secrets of a specification, its policy graphs, and the release of traces under them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

import networkx as nx
from msgspec import structs

from mechdesign.base._arrays import Floats
from mechdesign.base._errors import InputError, SpecificationError
from mechdesign.base._values import cached_property
from mechdesign.certify._exact import exact_text
from mechdesign.data.labels import Names, read_matched
from mechdesign.data.table import read_table
from mechdesign.data.trajectories import Sampling
from mechdesign.graphs import _builders as graphs
from mechdesign.graphs._builders import delta_set
from mechdesign.model._domain import Domain
from mechdesign.model._grammar import (
    CategoriesFile,
    ChainTable,
    Distance,
    Edges,
    EdgesCsv,
    GraphTable,
    MatrixFile,
    Members,
    Neighbours,
    PriorTable,
    Table,
    says,
)
from mechdesign.model._markov import MarkovChain, VaryingChain
from mechdesign.model._prior import Prior
from mechdesign.model._problem import Problem
from mechdesign.specification._chains import Transitions, build_chain, neighbours, possible_steps
from mechdesign.specification._priors import build_prior, sampling_of
from mechdesign.specification._read import Source
from mechdesign.specification._steps import ReleaseTable
from mechdesign.traces._planner import Repaired


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


Within = Literal["component", "map"]
Isolated = Literal["refuse", "repair", "hull", "release"]
Repair = Literal["area", "nearest"]
Hull = Literal["component", "graph"]


class PolicyTable(Table, frozen=True):
    """The treatment of the policy graph, the union of all ``[[privacy]]`` tables of kind "graph".

    The key `isolated` also applies without a graph.

    Attributes:
        within: The answers of an optimal channel: in the component of the secret, or anywhere.
        isolated: The treatment of secrets that no requirement joins to another secret.
        repair: The method that chooses the edges of a repair.
        repaired: The states that a repair protects along a trace.
        hull: The part of the graph whose sensitivity hull the noise fits.
        support: The possible secrets, or None for all.
        delta: If not None, the possible secrets are the fewest with a total probability of at least 1 − δ.

    >>> import numpy as np
    >>> PolicyTable(support=[0, 2]).possible(np.array([0.5, 0.25, 0.25]))
    [0, 2]
    """

    within: Annotated[
        Within,
        says("the answers of an optimal channel: in the connected component of the secret, or anywhere on the map."),
    ] = "component"
    isolated: Annotated[
        Isolated,
        says(
            "the treatment of isolated secrets, which no requirement joins to another and an optimal channel would "
            "reveal: refuse the specification, add edges that protect them, add the pairs that the sensitivity hull "
            'already protects, or reveal them. Without a graph only "refuse" and "release" are allowed; along a trace '
            "`repaired` decides."
        ),
    ] = "refuse"
    repair: Annotated[Repair, says("the method that chooses the edges of a repair.")] = "area"
    repaired: Annotated[
        Repaired,
        says(
            'the states that a repair protects along a trace: those whose neighbours are impossible ("disconnected"), '
            'or also those without an edge in the policy ("all"); other isolated states are revealed.'
        ),
    ] = "disconnected"
    hull: Annotated[
        Hull,
        says("the sensitivity hull for the noise, which determines the exposed secrets: of each component, or of all."),
    ] = "component"
    support: Annotated[
        Members | None,
        says("the possible secrets: strings are labels, integers are indices; the default is all secrets."),
    ] = None
    delta: Annotated[
        Fraction | None,
        says(
            "the possible secrets are the fewest with probability 1 − δ, under the prior or, along a trace, under the "
            "adversary's belief before each step; exact, at least 0 and below 1."
        ),
    ] = None

    def possible(self, prior: Floats) -> list[int] | None:
        """Return the possible secrets.

        Args:
            prior: Probabilities of the secrets, shape (n,).

        Returns:
            Sorted indices, or None if all secrets are possible.
        """
        if self.delta is not None:
            return [int(node) for node in delta_set(prior, self.delta)]
        return None if self.support is None else [int(secret) for secret in self.support]


@dataclass(frozen=True, eq=False)
class SpecifiedPolicy:
    """The union of the policy graphs of a specification, the ε of each edge, and the ``[policy]`` table."""

    graph: nx.Graph
    epsilon: Fraction
    settings: PolicyTable


@dataclass(frozen=True, eq=False)
class ReleaseSettings:
    """The settings for the release of a trace, with its transitions and prior.

    Attributes:
        table: The ``[release]`` table.
        transitions: The transitions between states.
        sampling: The time step and the longest gap for resampling.
        initial: The prior of the first step.
        notes: Sentences about the data, for the user.

    >>> import numpy as np
    >>> chain = MarkovChain(np.array([[0.9, 0.1], [0.2, 0.8]]))
    >>> settings = ReleaseSettings(ReleaseTable(), Transitions((chain,)), Sampling(), Prior.uniform(2), ())
    >>> settings.transition.size
    2
    """

    table: ReleaseTable
    transitions: Transitions
    sampling: Sampling
    initial: Prior
    notes: tuple[str, ...]

    @property
    def transition(self) -> MarkovChain | VaryingChain:
        """The Markov chain, or the chains of successive steps or hours."""
        chains = self.transitions.chains
        return chains[0] if self.transitions.by is None else VaryingChain(chains, cyclic=self.transitions.by == "hour")


def build_settings(table: PolicyTable, source: Source, made: Graphs) -> PolicyTable:
    """Return the ``[policy]`` table with the possible secrets as sorted indices."""
    if table.delta is not None:
        if table.support is not None:
            raise source.error("", "has both support and delta", bound="one of them")
        if not 0 <= table.delta < 1:
            found = exact_text(table.delta)
            raise source.error("delta", "is out of range", value=found, bound="at least 0 and below 1")
    if table.support is None:
        return table
    secrets = {made.secret(name, source / "support" / index) for index, name in enumerate(table.support)}
    return structs.replace(table, support=sorted(secrets))


def build_policy(problem: Problem, settings: PolicyTable) -> SpecifiedPolicy:
    """Return the union of the policy graphs of a problem.

    Raises `SpecificationError` if there is no graph, or if graphs have different ε.
    """
    if not problem.graphs:
        raise SpecificationError(
            "privacy", "has no policy graph", remedy='add [[privacy]] with kind = "graph", for example with blocks = 3'
        )
    first, *others = problem.graphs
    epsilon = problem.requirements[first].pair_bounds[0].nominal
    for place in others:
        other = problem.requirements[place].pair_bounds[0].nominal
        if other != epsilon:
            raise SpecificationError(
                f"privacy[{place}].epsilon",
                f"differs from privacy[{first}].epsilon",
                value=exact_text(other),
                bound=f"{exact_text(epsilon)}: the edges of one policy have one ε",
            )
    return SpecifiedPolicy(graphs.union(*problem.graphs.values()), epsilon, settings)


def build_release(table: ReleaseTable, source: Source, made: Graphs, prior: Prior) -> ReleaseSettings:
    """Return the settings of the ``[release]`` table; `prior` is the default belief before the first step."""
    if table.transition is None:
        raise source.error(
            "transition",
            "is missing",
            remedy='add [release] with transition = { path = "P.csv" }, { estimated = true } or { neighbours = 8 }',
        )
    chain = build_chain(table.transition, source / "transition", made.secrets, made.prior)
    notes = chain.notes
    if table.initial is not None:
        prior, more = build_prior(table.initial, source / "initial", made.secrets)
        notes += more
    return ReleaseSettings(table, chain, sampling_of(table, source), prior, notes)
