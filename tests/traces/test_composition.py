from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray
from trace_examples import ANSWERS, FIGURE_3B, ring, strip

import mechdesign as md
from mechdesign.graphs._exposure import hull_level
from mechdesign.traces._composition import Composition, compose, compose_graphs, stage_level
from mechdesign.traces._trace import Trace


def test_epsilons_add_up_and_common_edges_remain() -> None:
    # PGLP, Theorem 5.2.
    graphs = [md.graphs.complete(4), md.graphs.line(4), md.graphs.from_edges(4, [(0, 1), (2, 3), (0, 3)])]
    epsilon, common = compose_graphs(["0.1", 0.2, Fraction(1, 3)], graphs)
    assert epsilon == Fraction(3, 10) + Fraction(1, 3)
    assert set(common.edges) == {(0, 1), (2, 3)}


def hops(graph: nx.Graph, nodes: int) -> NDArray[np.float64]:
    """Return the number of edges between any two nodes by shortening paths over each node, infinite without a path."""
    steps = np.full((nodes, nodes), np.inf)
    for i, j in graph.edges:
        steps[i, j] = steps[j, i] = 1
    for middle in graph:
        steps[middle, middle] = 0
        steps = np.minimum(steps, steps[:, [middle]] + steps[[middle]])
    return steps


def test_the_common_graph_joins_those_whom_all_releases_hide_from_each_other() -> None:
    """Up to ε_t times its hops each release may tell two states: only common neighbours stay within Σ ε_t."""
    rng = np.random.default_rng(3)
    kept = lost = 0
    for _ in range(150):
        nodes, releases = int(rng.integers(2, 7)), int(rng.integers(1, 6))
        graphs = []
        for _ in range(releases):
            whole = md.graphs.from_edges(
                nodes, [pair for pair in itertools.combinations(range(nodes), 2) if rng.random() < 0.8]
            )
            graphs.append(md.graphs.constrain(whole, np.flatnonzero(rng.random(nodes) < 0.9)) if nodes > 2 else whole)
        epsilons = [Fraction(int(each), 8) for each in rng.integers(1, 9, releases)]
        total, common = compose_graphs(epsilons, graphs)
        spent = sum(float(epsilon) * hops(graph, nodes) for epsilon, graph in zip(epsilons, graphs, strict=True))
        hidden = {(i, j) for i, j in itertools.combinations(range(nodes), 2) if spent[i, j] <= sum(epsilons)}
        assert total == sum(epsilons)
        assert set(map(tuple, map(sorted, common.edges))) == hidden
        assert set(common) == {node for node in range(nodes) if spent[node, node] == 0}
        kept, lost = kept + len(hidden), lost + graphs[0].number_of_edges() - len(hidden)
    assert min(kept, lost) > 100


def test_the_overall_level_of_the_running_example() -> None:
    # DPHMM, Theorem 6.3 for the graph of Example 5.1, against the K-norm of all pairs.
    hull = md.graphs.sensitivity_hull(ANSWERS, FIGURE_3B)
    for size in (1, 2, 3, 6):
        for support in itertools.combinations(range(6), size):
            pairs = itertools.product(support, repeat=2)
            expected = max(float(hull.norm(ANSWERS[j] - ANSWERS[k])) for j, k in pairs)
            assert hull_level(ANSWERS, hull, "0.5", support=support) == pytest.approx(expected / 2, rel=1e-12)
    # Example 5.2: of s2, s3, s5 the last is off the line through the others.
    line = md.graphs.sensitivity_hull(ANSWERS, md.graphs.constrain(FIGURE_3B, [1, 2, 4]))
    assert hull_level(ANSWERS, line, 1, support=[1, 2, 4]) == math.inf
    assert hull_level(ANSWERS, line, 1, support=[1, 2]) == pytest.approx(1)
    assert hull_level(ANSWERS, line, 1, support=[]) == 0


@pytest.mark.parametrize("mechanism", ["planar-isotropic", "laplace", "lp"])
@pytest.mark.parametrize("hull", ["component", "graph"])
def test_what_is_realised_is_within_the_level(mechanism: Any, hull: Any) -> None:
    domain = md.Domain.grid(3, 3, 3.0, 3.0)
    rng = np.random.default_rng(1)
    for g in (md.graphs.complete(9), md.graphs.neighbours8(domain), md.graphs.blocks(domain, 2)):
        trace = Trace(domain, g, "0.5", np.full((9, 9), 1 / 9), rng.dirichlet(np.ones(9)), mechanism, hull=hull)
        stage = trace.table(1)[0]
        matrix = stage.channel.matrix[:, stage.channel.numerators.any(axis=0)]
        if (matrix > 0).all():
            assert stage.realised == pytest.approx(np.log(matrix.max(axis=0) / matrix.min(axis=0)).max(), rel=1e-12)
        else:
            assert stage.realised == math.inf
        assert stage.realised <= stage_level(stage) * (1 + 1e-12)


def test_the_level_of_an_optimal_channel_counts_hops() -> None:
    stage = Trace(strip(4), md.graphs.line(4), "0.5", ring(4), np.full(4, 0.25), "lp").table(1)[0]
    assert stage_level(stage) == 1.5
    apart = md.graphs.from_edges(4, [(0, 1), (2, 3)])
    assert stage_level(Trace(strip(4), apart, 1, ring(4), np.full(4, 0.25), "lp").table(1)[0]) == math.inf
    # Equal hulls of both components hide them from each other all the same, at two steps: 0 and 3 are three apart.
    assert stage_level(Trace(strip(4), apart, 1, ring(4), np.full(4, 0.25)).table(1)[0]) == pytest.approx(3)


def test_a_trace_is_composed() -> None:
    trace = Trace(strip(4), md.graphs.complete(4), "0.1", ring(4), [0, 1, 0, 0], hull="graph", rng=2)
    releases = [trace.step(1), trace.step(1), trace.step(1, epsilon="0.3", same_time=True), trace.step(2)]
    total = compose(releases)
    assert total.epsilon == Fraction(6, 10)
    assert total.releases == 4
    assert sorted(total.graph) == [1]
    assert total.level == pytest.approx(sum(stage_level(release.stage) for release in releases))
    assert total.realised is not None
    assert 0 < total.realised <= total.level
    assert "4 releases: the 0 edges common to all are protected at ε = 0.6" in str(total)
    assert "the 6 edges" in str(compose(releases[3:]))
    assert compose(trace.table(2)).releases == 2


def test_trajectories_of_all_times_are_told_apart_no_better_than_the_sum() -> None:
    # DPHMM, Theorem 7.2, over all trajectories and all outputs of two steps.
    trace = Trace(strip(3), md.graphs.line(3), "0.5", ring(3), [0.3, 0.4, 0.3], hull="graph")
    first, second = trace.table(2)
    level = compose([first, second]).level
    rows = [stage.channel.matrix for stage in (first, second)]
    worst = 0.0
    for one, other in itertools.product(itertools.product(range(3), repeat=2), repeat=2):
        for outputs in itertools.product(range(3), repeat=2):
            ratio = math.prod(rows[t][one[t], outputs[t]] / rows[t][other[t], outputs[t]] for t in range(2))
            worst = max(worst, math.log(ratio))
    assert worst <= level
    assert worst == pytest.approx(compose([first, second]).realised)


def test_without_channels_only_the_stated_level_is_known() -> None:
    trace = Trace(strip(3), md.graphs.line(3), 1, ring(3), [0.3, 0.4, 0.3], snap=False, rng=3)
    total = compose([trace.step(0), trace.step(1)])
    assert total.realised is None
    assert total.level == pytest.approx(4)
    assert "ε = 4." in str(total)


def test_bounds_are_printed_rounded_up() -> None:
    def says(level: float, realised: float | None) -> str:
        return str(Composition(Fraction(1), md.graphs.line(2), level, realised, 3)).split(". ")[1]

    assert says(2.00000001, None) == "Any two possible trajectories are ε-indistinguishable with ε = 2.00001."
    # What is proved of the channels counts, also where it is a rounding above what the hulls say.
    assert says(1.5, 1.5000001) == "Any two possible trajectories are ε-indistinguishable with ε = 1.50001."
    assert says(math.inf, math.inf) == "Some pair of possible trajectories is distinguishable without bound."
