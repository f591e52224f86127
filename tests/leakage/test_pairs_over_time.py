"""Leakage over time pair by pair, against all outputs of random chains; candidates, edges, and wrong budgets."""

from __future__ import annotations

import itertools
import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sparse
from pairs_oracle import Releases, random_releases

import mechdesign as md
from mechdesign.base._names import Named
from mechdesign.leakage import Candidates, LossFunction, OpenChain, Varying, backward, forward, supremum, temporal
from mechdesign.leakage._bounds import close

INF = math.inf
LAZY = np.array([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])
MIXING = np.full((3, 3), 1 / 3)
LINE = np.abs(np.subtract.outer(np.arange(3), np.arange(3))).astype(float)


def excess(releases: Releases) -> float:
    """Return the least excess of the bounds over the leakage by enumeration; fail where one is too low."""
    bounds = releases.bounds
    steps = len(bounds) - 1
    past: Any = Varying.from_start(releases.chain, releases.initial, steps) if steps else None
    found = backward(bounds, past), forward(bounds, releases.chain), temporal(bounds, past, releases.chain)
    least = INF
    for name, ours, truth in zip(("backward", "forward", "temporal"), found, releases.leakages(), strict=True):
        for t, reached in enumerate(releases.reached):
            here = np.ix_(reached, reached)
            bound, leak = (ours[t] if name == "forward" else ours[t][here]), truth[t]
            leak = leak if name == "forward" else leak[here]
            above = np.where(np.isinf(bound), INF, bound - np.where(np.isinf(bound), 0, leak))
            assert (above >= -1e-12 * (1 + np.where(np.isinf(leak), 0, leak))).all(), (name, t, bound, leak)
            least = min(least, float(above[~np.eye(len(above), dtype=bool)].min(initial=INF)))
            missing = np.setdiff1d(np.arange(len(releases.chain)), reached)
            if t and name == "backward" and len(reached):
                assert np.isinf(ours[t][np.ix_(missing, reached)]).all(), "an unreachable state"
    return least


@pytest.mark.parametrize("seed", range(10))
def test_never_below_the_leakage_of_all_outputs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(4):
        excess(random_releases(rng))


@pytest.mark.slow
def test_300_chains_are_never_below_the_leakage_of_all_outputs() -> None:
    rng = np.random.default_rng(60)
    least = [excess(random_releases(rng)) for _ in range(300)]
    # Single releases, and two states, are often bounded exactly.
    assert sum(each < 1e-9 for each in least) > 30


def test_a_chain_from_a_law_that_is_not_stationary() -> None:
    """The true leakage of the second release is 1.8069; the stationary backward matrix gives 1.6031, too little."""
    chain, channel = np.array([[0.5, 0.5], [0.01, 0.99]]), np.array([[1, math.e], [math.e, 1]]) / (1 + math.e)
    releases = Releases(chain, np.array([0.3, 0.7]), [channel, channel])
    truth = releases.leakages()[0][1].max()
    assert truth == pytest.approx(1.8069, abs=5e-5)
    E = 1 - np.eye(2)
    assert backward([E, E], Varying.from_start(chain, [0.3, 0.7], 1))[1].max() == pytest.approx(truth, abs=1e-12)
    stationary = md.MarkovChain(chain)
    assert backward([E, E], stationary.reverse(stationary.stationary()))[1].max() == pytest.approx(1.6031, abs=5e-5)


def test_a_state_that_cannot_occur_has_no_bound_at_its_step_and_touches_no_other() -> None:
    ring = 0.5 * np.eye(4) + 0.5 * np.roll(np.eye(4), 1, axis=1)
    past = Varying.from_start(ring, [1, 0, 0, 0], 4)
    E = 1 - np.eye(4)
    found = backward([E] * 5, past)
    for t, reached in enumerate(([0], [0, 1], [0, 1, 2], range(4), range(4))):
        apart = np.setdiff1d(range(4), reached)
        infinite = np.zeros((4, 4), dtype=bool)
        if t:
            infinite[apart] = infinite[:, apart] = True
            np.fill_diagonal(infinite, False)
        assert (np.isinf(found[t]) == infinite).all(), t
    # Once all states can occur, the bounds are those of the possible ones only.
    assert found[4].max() <= 5
    assert (np.isinf(temporal([E] * 5, past, ring)) == np.isinf(found)).all()


def test_a_state_that_cannot_occur_is_found_by_its_name() -> None:
    turn, names, order = np.array([[0, 0.5, 0.5], [0, 1, 0], [0, 0, 1]]), ("a", "b", "c"), [2, 0, 1]
    others = tuple(names[state] for state in order)
    law = Named(np.eye(3)[0][order], others)
    past = Varying.from_start(md.MarkovChain(turn[np.ix_(order, order)], names=others), law, 1)
    E = 1 - np.eye(3)
    found = backward([E] * 2, Candidates([md.MarkovChain(np.eye(3), names=names), past]))
    plain = backward([E] * 2, Varying.from_start(turn, np.eye(3)[0], 1))
    # After a comes b or c, so that the pairs of a have no bound; those of the first candidate are finite.
    assert (np.isinf(found) == np.isinf(plain)).all()
    assert past.missing[0].tolist() == [1]
    assert np.isinf(found).sum() == 4


def test_edges_bound_a_row_that_may_be_anything_by_states_that_no_other_row_uses() -> None:
    open_chain = OpenChain([[0.5, 0.5, 0], [0.4, 0.6, 0], [0, 0, 0]])
    E = np.array([[0, 0.1, 5], [0.1, 0, 5], [5, 5, 0]])
    every = backward([E] * 3, open_chain)
    assert (backward([E] * 3, open_chain, edges=nx.complete_graph(3)) >= every * (1 - 1e-12)).all()
    assert every[1, 0, 2] > 9


def test_neighbours_in_a_row_of_cells_are_told_apart_less_than_the_ends() -> None:
    """Thirteen reports of a walk that stays with probability ½, or 2/3 at the ends: 32.5 nats by the diameter alone."""
    walk = np.diag(np.full(6, 0.5)) + np.diag(np.full(5, 0.25), 1) + np.diag(np.full(5, 0.25), -1)
    walk[[0, 5]] = [[2 / 3, 1 / 3, 0, 0, 0, 0], [0, 0, 0, 0, 1 / 3, 2 / 3]]
    E = 0.5 * np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    found = temporal([E] * 13, walk, walk)
    assert max(found[:, cell, cell + 1].max() for cell in range(5)) == pytest.approx(5.41, abs=0.005)
    assert found.max() == pytest.approx(19.97, abs=0.005)
    assert found.max() == pytest.approx(found[:, 0, 5].max(), abs=1e-9)
    assert temporal([2.5] * 13, walk, walk).max() == 32.5


def test_numbers_and_equal_bounds_for_all_pairs() -> None:
    """A matrix of one bound bounds the largest pair as a number does, but each pair by its own path."""
    budgets = [0.3, 0.2, 0.5, 0.1]
    matrices = [each * (1 - np.eye(3)) for each in budgets]
    for way in (backward, forward):
        numbers, pairs = way(budgets, LAZY), way(matrices, LAZY)
        assert (pairs.max(axis=(1, 2)) <= numbers + 1e-12).all()
        assert pairs.shape == (4, 3, 3)
    assert backward(matrices[:2], LAZY)[1].max() == pytest.approx(backward(budgets[:2], LAZY)[1], abs=1e-12)
    assert (backward(np.array(matrices), LAZY) == backward(matrices, LAZY)).all(), "an array (T, n, n)"
    lists = [each.tolist() for each in matrices]
    assert (backward(lists, LAZY) == backward(matrices, LAZY)).all(), "lists of lists"


def test_sums_without_correlation_and_without_noise_are_exact() -> None:
    E = np.array([[0, 0.1, 0.3], [0.7, 0, 0.3], [INF, 0.4, 0]])
    closed = close(E)
    assert (backward([E, E], None) == closed).all()
    assert (temporal([E, E]) == closed).all()
    stays = temporal([E, E, E], np.eye(3), np.eye(3))
    assert stays[:, 0, 1].tolist() == [0.1 + 0.1 + 0.1] * 3
    assert stays[:, 2, 1].tolist() == [1.2000000000000002] * 3
    assert closed[2, 0] == 1.1
    gap = backward([E, E], Varying([None]))
    assert (gap == closed).all()


def test_bounds_are_closed_where_they_enter() -> None:
    open_end = np.array([[0, 1, 5.0], [1, 0, 1], [5, 1, 0]])
    closed = np.array([[0, 1, 2.0], [1, 0, 1], [2, 1, 0]])
    assert (temporal([open_end] * 3, LAZY, LAZY) == temporal([closed] * 3, LAZY, LAZY)).all()


# Only the recursion matters here, and not whether both directions are of one chain.
@pytest.mark.filterwarnings("ignore::mechdesign.errors.CorrelationWarning")
def test_candidates_are_the_largest_of_each_pair_and_each_holds_all_the_time() -> None:
    E = [LINE, 0.5 * LINE, LINE]
    first, second = Varying([LAZY, MIXING]), Varying([MIXING, LAZY])
    both = Candidates([first, second, None])
    assert (backward(E, first)[1] > backward(E, second)[1])[0, 1]
    assert (backward(E, first)[2] < backward(E, second)[2])[0, 1]
    assert (backward(E, both) == np.maximum(backward(E, first), backward(E, second))).all()
    assert (forward(E, both) == np.maximum(forward(E, first), forward(E, second))).all()
    combined = temporal(E, both, both)
    each = [temporal(E, one, two) for one, two in itertools.product((first, second, None), repeat=2)]
    assert (combined == np.max(each, axis=0)).all()


def test_every_form_of_a_correlation_is_the_same() -> None:
    E = [LINE, LINE]
    found = backward(E, LAZY)
    forms = [sparse.csr_array(LAZY), md.MarkovChain(LAZY), LossFunction(LAZY), Varying([LAZY]), Candidates([LAZY])]
    for form in forms:
        assert (backward(E, form) == found).all(), type(form)
        assert (forward(E, form) == found[::-1]).all(), type(form)


def test_an_unknown_row_is_any_row_at_each_step() -> None:
    unknown = LAZY.copy()
    unknown[2] = 0
    found = backward([LINE] * 3, OpenChain(unknown))
    for units in itertools.product(range(3), repeat=2):
        matrices = []
        for unit in units:
            unknown[2] = np.eye(3)[unit]
            matrices.append(unknown.copy())
        assert (backward([LINE] * 3, Varying(matrices)) <= found + 1e-11).all()


def grid(side: int) -> tuple[np.ndarray, nx.Graph, np.ndarray]:
    """Return a lazy walk on cells, its graph, and distances along the graph."""
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side), ordering="sorted")
    links = nx.to_numpy_array(graph, nodelist=range(side * side))
    walk = 0.5 * np.eye(side * side) + 0.5 * links / links.sum(axis=1, keepdims=True)
    hops = np.array([[nx.shortest_path_length(graph, i, j) for j in graph] for i in graph], dtype=float)
    return walk, graph, hops


def test_edges_alone_give_looser_bounds_below_the_loss_of_the_largest() -> None:
    walk, graph, hops = grid(3)
    E = [0.5 * hops] * 4
    found, all_pairs = backward(E, walk, edges=graph), backward(E, walk)
    assert (found >= all_pairs * (1 - 1e-9)).all()
    assert (found <= 2.25 * all_pairs).all()
    edges = np.array(graph.edges)
    assert found[1][tuple(edges.T)] == pytest.approx(all_pairs[1][tuple(edges.T)], abs=1e-11)
    assert (found == backward(E, walk, edges=md.GraphPrivacy(0.5, graph))).all()
    assert (forward(E, walk, edges=graph) == found[::-1]).all()
    both = temporal(E, walk, walk, edges=graph)
    assert (both >= temporal(E, walk, walk) * (1 - 1e-9)).all()


def test_edges_of_a_mixing_chain_are_bounded_by_the_largest_loss() -> None:
    """Paths of many edges add up to more than L(max B)."""
    n = 6
    mixing = 0.9 / n + 0.1 * np.eye(n)
    line = nx.path_graph(n)
    E = 3.0 * np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    found = backward([E, E], mixing, edges=line)
    most = LossFunction(mixing)(E.max())
    assert found[1, 0, n - 1] == pytest.approx(E[0, n - 1] + most, abs=1e-9)
    assert (found >= backward([E, E], mixing) - 1e-9).all()


def test_edges_apart_have_no_bound() -> None:
    graph = nx.Graph([(0, 1)])
    graph.add_node(2)
    found = backward([LINE, LINE], LAZY, edges=graph)
    assert np.isinf(found[:, :2, 2]).all()
    assert np.isinf(backward([LINE], LAZY, edges=graph)[0, 2, :2]).all()


@pytest.mark.filterwarnings("ignore::mechdesign.errors.CorrelationWarning")
def test_renamed_states_have_the_same_bounds() -> None:
    order = np.array([2, 0, 1])
    E = [np.array([[0, 1, 3.0], [0.5, 0, 2], [2, 2.5, 0]])] * 3
    renamed = [each[order][:, order] for each in E]
    found = temporal(E, LAZY, MIXING * 0.5 + LAZY * 0.5)
    other = temporal(renamed, LAZY[order][:, order], (MIXING * 0.5 + LAZY * 0.5)[order][:, order])
    assert np.allclose(other, found[:, order][:, :, order], rtol=1e-9)


def test_names_bring_bounds_and_chains_into_one_order() -> None:
    pandas = pytest.importorskip("pandas")
    names, order = ["home", "work", "park"], ["park", "home", "work"]
    chain = pandas.DataFrame(LAZY, names, names)
    bounds = pandas.DataFrame(LINE, names, names).loc[order, order]
    assert (backward([bounds] * 2, chain) == backward([LINE] * 2, LAZY)).all()
    ahead = chain.loc[order, order]
    assert (temporal([bounds] * 2, chain, ahead) == temporal([LINE] * 2, LAZY, LAZY)).all()


def test_a_pair_without_a_bound_in_one_release_has_none_whatever_other_releases_add() -> None:
    limit = supremum(np.array([[0, 1, INF], [1, 0, INF], [INF, INF, 0]]), LAZY)
    assert np.isinf(limit.bounds).sum() == 4
    assert limit.reason(0, 2) == limit.reason(2, 1) == "backward: one release has no bound"
    assert "a power of the matrix for 1 pair, no bound for 4 pairs" in limit.proved
    assert supremum([[0]], [[1]]).proved == "backward: no pairs, for the same matrix at every step"
