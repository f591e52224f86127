"""The joint guarantee of several releases, at one time or at several times.

**Edges.** The budgets of all releases add up, and together the releases protect only the edges that all policy graphs
share. If each release satisfies (ε_i, G_i), all releases jointly satisfy (Σ ε_i, G_1 ∧ … ∧ G_T). The sources are
Theorem 5.2 and Lemma 2 of PGLP, and Theorem 7.1 of DPHMM for several queries at one time. Consider two trajectories
whose states at every time are equal or joined by a common edge. These trajectories are Σ ε_i-indistinguishable.

**Any two possible trajectories.** K-norm noise makes any two states j and k ε‖f(s_j) − f(s_k)‖_K-indistinguishable.
The *overall level* of a release is therefore ε max_{j,k ∈ C} ‖f(s_j) − f(s_k)‖_K. The level of several releases is the
sum of their levels (DPHMM, Theorems 5.3, 6.3 and 7.2). The level of an optimal channel is ε times the largest number of
hops (PGLP, Lemma 1).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import networkx as nx

from mechdesign.base._check import as_list, require_kind
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import as_decimal, exact_text, float_up, text_up
from mechdesign.mechanisms._mechanism import Mechanism, graph_level
from mechdesign.model._graph_nodes import check_graph
from mechdesign.model._numbers import Number, positive
from mechdesign.traces._stage import Release, Stage


@dataclass(frozen=True, eq=False)
class Composition:
    """The joint guarantee of several releases.

    Attributes:
        epsilon: The exact sum of the ε of the releases, in nats per edge of `graph`.
        graph: The graph of the nodes and edges that are in all graphs, frozen.
        level: The overall level, which is the sum of the levels of the releases. Any two possible trajectories are
            `level`-indistinguishable. The level is infinite if some mechanism distinguishes two states with certainty.
        realised: The overall level, proved in exact arithmetic from the entries of the channels. Up to rounding,
            `realised` is at most `level`. `realised` is None if outputs are not snapped.
        releases: The number of releases.

    >>> import mechdesign as md
    >>> chain = [[0.9, 0.1], [0.1, 0.9]]
    >>> trace = md.traces.Trace(md.Domain.grid(2, 1, 2.0, 1.0), md.graphs.complete(2), 1, chain, [0.5, 0.5], rng=1)
    >>> joint = compose(trace.table(3))
    >>> joint.epsilon, joint.level, joint.releases
    (Fraction(3, 1), 3.0, 3)
    """

    epsilon: Fraction
    graph: nx.Graph
    level: float
    realised: float | None
    releases: int

    @property
    def bound(self) -> float:
        """The ε for any two possible trajectories: `realised` if it is known, otherwise `level`."""
        return self.level if self.realised is None else self.realised

    def __str__(self) -> str:
        """Describe the guarantee in two sentences."""
        edges = self.graph.number_of_edges()
        kept = f"{edges} edge{'s' if edges != 1 else ''} common to all {'is' if edges == 1 else 'are'}"
        total = f"{self.releases} releases: the {kept} protected at ε = {exact_text(self.epsilon)}."
        if math.isinf(self.bound):
            return f"{total} Some pair of possible trajectories is distinguishable without bound."
        bound = text_up(as_decimal(self.bound), 6)
        return f"{total} Any two possible trajectories are ε-indistinguishable with ε = {bound}."


def compose(releases: Iterable[Release | Stage]) -> Composition:
    """Return the joint guarantee of releases or stages, along a trace or at one time.

    Args:
        releases: At least one release or stage.

    Returns:
        The joint guarantee.

    Raises:
        InputError: The list is empty, or one of its items is neither a release nor a stage.

    >>> import mechdesign as md
    >>> chain = [[0.9, 0.1], [0.1, 0.9]]
    >>> trace = md.traces.Trace(md.Domain.grid(2, 1, 2.0, 1.0), md.graphs.complete(2), 1, chain, [0.5, 0.5], rng=1)
    >>> compose([trace.step(0), trace.step(1)]).epsilon
    Fraction(2, 1)
    """
    stages = stages_of(releases)
    epsilon, graph = compose_graphs([stage.epsilon for stage in stages], [stage.graph for stage in stages])
    levels = [stage.realised for stage in stages]
    known = [level for level in levels if level is not None]
    realised = None
    if len(known) == len(stages):
        realised = math.inf if math.inf in known else float_up(sum(map(as_decimal, known), Fraction(0)))
    return Composition(epsilon, graph, sum(map(stage_level, stages)), realised, len(stages))


def stages_of(releases: Iterable[Release | Stage]) -> list[Stage]:
    """Return the stage of each release.

    Args:
        releases: Releases or stages; stages are returned unchanged.

    Returns:
        The stages, in the same order.

    Raises:
        InputError: An item is neither a release nor a stage.

    >>> import mechdesign as md
    >>> chain = [[0.9, 0.1], [0.1, 0.9]]
    >>> trace = md.traces.Trace(md.Domain.grid(2, 1, 2.0, 1.0), md.graphs.complete(2), 1, chain, [0.5, 0.5], rng=1)
    >>> [stage.time for stage in stages_of([trace.step(0), trace.step(1)])]
    [0, 1]
    """
    releases = as_list(releases, "releases", "a list of Release or Stage")
    stages = []
    for index, item in enumerate(releases):
        if not isinstance(item, Release | Stage):
            raise InputError(f"releases[{index}]", "is not a release", value=item, bound="a Release or a Stage")
        stages.append(item if isinstance(item, Stage) else item.stage)
    return stages


def compose_graphs(epsilons: Sequence[Number], graphs: Sequence[nx.Graph]) -> tuple[Fraction, nx.Graph]:
    """Return the total ε and the graph of the common nodes and edges (PGLP, Theorem 5.2).

    Args:
        epsilons: The ε of each release, in nats per edge.
        graphs: The policy graph of each release, at least one.

    Returns:
        The exact sum of the ε, and the graph of the nodes and edges that are in all graphs, frozen.

    >>> import networkx as nx
    >>> total, common = compose_graphs([0.1, 0.2], [nx.path_graph(3), nx.complete_graph(2)])
    >>> total, list(common.edges)
    (Fraction(3, 10), [(0, 1)])
    """
    epsilons = as_list(epsilons, "epsilons", "a list of ε")
    graphs = as_list(graphs, "graphs", "a list of graphs")
    if not graphs:
        raise InputError("releases", "must not be empty", bound="at least one release")
    if len(epsilons) != len(graphs):
        raise InputError("epsilons", "do not match the number of graphs", value=len(epsilons), bound=str(len(graphs)))
    for index, graph in enumerate(graphs):
        check_graph(graph, path=f"graphs[{index}]")
    common = nx.Graph()
    common.add_nodes_from(sorted(set(graphs[0]).intersection(*graphs[1:])))
    common.add_edges_from(edge for edge in graphs[0].edges() if all(graph.has_edge(*edge) for graph in graphs[1:]))
    total = Fraction(0)
    for index, epsilon in enumerate(epsilons):
        total += positive(epsilon, f"epsilons[{index}]")
    return total, nx.freeze(common)


def stage_level(stage: Stage) -> float:
    """Return the overall level of a stage: the ε for which any two possible states are ε-indistinguishable.

    Args:
        stage: One time of a trace.

    Returns:
        The level in nats, which is infinite if members of the constrained domain have different hulls, or are not
        connected.

    >>> import mechdesign as md
    >>> chain = [[0.9, 0.1], [0.1, 0.9]]
    >>> trace = md.traces.Trace(md.Domain.grid(2, 1, 2.0, 1.0), md.graphs.complete(2), 1, chain, [0.5, 0.5], rng=1)
    >>> stage_level(trace.table(1)[0])
    1.0
    """
    require_kind(stage, Stage, "stage", "a Stage")
    mechanism = stage.fitted.mechanism
    if isinstance(mechanism, Mechanism) and not stage.fitted.own:
        return mechanism.level()
    return graph_level(stage.epsilon, stage.graph)
