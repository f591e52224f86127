"""What several releases tell together, of one time or of many.

**Edges.** ε adds up and only edges that all graphs share stay protected: releases that keep (ε_i, G_i) keep together
(Σ ε_i, G_1 ∧ … ∧ G_T) (PGLP, Theorem 5.2 and Lemma 2; DPHMM, Theorem 7.1 for several queries at one time). For a trace
that means: two trajectories of which the states of every time are joined by a common edge, or equal, are told apart no
better than Σ ε_i.

**Any two possible trajectories.** K-norm noise makes any two states j, k ε‖f(s_j) − f(s_k)‖_K-indistinguishable, so a
release has the *overall level* ε max_{j,k ∈ C} ‖f(s_j) − f(s_k)‖_K, and several ones have the sum (DPHMM, Theorems 5.3,
6.3 and 7.2). Under an optimal channel it is ε times the largest number of hops (PGLP, Lemma 1).
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
from mechdesign.graphs._builders import check_graph
from mechdesign.mechanisms._mechanism import Mechanism, graph_level
from mechdesign.model._numbers import Number, positive
from mechdesign.traces._stage import Release, Stage


@dataclass(frozen=True, eq=False)
class Composition:
    """What several releases guarantee together.

    Attributes:
        epsilon: Σ ε_i in nats per edge of `graph`, exact.
        graph: the intersection: the nodes and the edges that are in all graphs; frozen.
        level: the overall level, the sum of those of the releases: any two possible trajectories are told apart no
            better than this. Infinite where some mechanism tells some states apart for certain.
        realised: the same from the channels as they are, no larger up to rounding and exactly proved; None where
            outputs were not snapped.
        releases: their number.
    """

    epsilon: Fraction
    graph: nx.Graph
    level: float
    realised: float | None
    releases: int

    @property
    def bound(self) -> float:
        """How far at most any two possible trajectories are told apart; `realised` where that is known."""
        return self.level if self.realised is None else self.realised

    def __str__(self) -> str:
        """Say it in two sentences."""
        edges = self.graph.number_of_edges()
        kept = f"{edges} edge{'s' if edges != 1 else ''} common to all keep{'s' if edges == 1 else ''}"
        total = f"{self.releases} releases: the {kept} ε = {exact_text(self.epsilon)}."
        if math.isinf(self.bound):
            return f"{total} Some two possible trajectories are told apart without bound."
        return f"{total} Any two possible trajectories are told apart by at most {text_up(as_decimal(self.bound), 6)}."


def compose(releases: Iterable[Release | Stage]) -> Composition:
    """Return what some releases, or stages, guarantee together: along a trace, or at one time.

    Raises `InputError` when there are none.
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
    """Return the stages of some releases; raise `InputError` naming the first item that is no release."""
    releases = as_list(releases, "releases", "a list of Release or Stage")
    stages = []
    for index, item in enumerate(releases):
        if not isinstance(item, Release | Stage):
            raise InputError(f"releases[{index}]", "is no release", value=item, bound="a Release or a Stage")
        stages.append(item if isinstance(item, Stage) else item.stage)
    return stages


def compose_graphs(epsilons: Sequence[Number], graphs: Sequence[nx.Graph]) -> tuple[Fraction, nx.Graph]:
    """Return Σ ε_i, exact, and the graph of the nodes and edges that are in all graphs (PGLP, Theorem 5.2).

    >>> import networkx as nx
    >>> total, common = compose_graphs([0.1, 0.2], [nx.path_graph(3), nx.complete_graph(2)])
    >>> total, list(common.edges)
    (Fraction(3, 10), [(0, 1)])
    """
    epsilons = as_list(epsilons, "epsilons", "a list of ε")
    graphs = as_list(graphs, "graphs", "a list of graphs")
    if not graphs:
        raise InputError("releases", "are none", bound="at least one")
    if len(epsilons) != len(graphs):
        raise InputError("epsilons", "differ in number from the graphs", value=len(epsilons), bound=str(len(graphs)))
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
    """Return the overall level of a stage: any two states that may be the true one are told apart by no more.

    Infinite where members of the constrained domain are released with different hulls, or are not connected.
    """
    require_kind(stage, Stage, "stage", "a Stage")
    mechanism = stage.fitted.mechanism
    if isinstance(mechanism, Mechanism):
        return mechanism.level()
    return graph_level(stage.epsilon, stage.graph)
