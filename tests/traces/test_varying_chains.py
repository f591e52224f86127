"""Traces whose chain changes with time, against brute force over all trajectories."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np

from mechdesign.model._domain import Domain
from mechdesign.model._markov import MarkovChain, VaryingChain
from mechdesign.traces._adversary import Adversary
from mechdesign.traces._hmm import forward, smooth
from mechdesign.traces._trace import Trace


def chains(count: int, n: int, seed: int = 5) -> list[np.ndarray]:
    return list(np.random.default_rng(seed).dirichlet(np.ones(n), (count, n)))


def test_beliefs_are_those_of_all_trajectories() -> None:
    n, steps = 3, 4
    matrices, initial = chains(steps - 1, n), np.array([0.2, 0.5, 0.3])
    likelihood = np.random.default_rng(1).uniform(0.1, 1, (steps, n))
    before, after, all_of_them = np.zeros((steps, n)), np.zeros((steps, n)), np.zeros((steps, n))
    for path in itertools.product(range(n), repeat=steps):
        weight = initial[path[0]]
        for t, state in enumerate(path):
            if t:
                weight *= matrices[t - 1][path[t - 1], state]
            seen = weight * np.prod([likelihood[u, path[u]] for u in range(t)])
            # Each prefix is reached by n^(steps − 1 − t) trajectories.
            before[t, state] += seen / n ** (steps - 1 - t)
            after[t, state] += seen * likelihood[t, state] / n ** (steps - 1 - t)
        for t, state in enumerate(path):
            all_of_them[t, state] += weight * np.prod([likelihood[u, path[u]] for u in range(steps)])
    for transition in (VaryingChain.of(matrices), np.array(matrices), [MarkovChain(each) for each in matrices]):
        found = forward(initial, transition, np.log(likelihood))
        np.testing.assert_allclose(found.priors, before / before.sum(axis=1, keepdims=True))
        np.testing.assert_allclose(found.posteriors, after / after.sum(axis=1, keepdims=True))
        smoothed = smooth(initial, transition, np.log(likelihood))
        np.testing.assert_allclose(smoothed, all_of_them / all_of_them.sum(axis=1, keepdims=True))


def test_one_chain_repeated_is_that_chain_and_a_table_takes_each_in_turn() -> None:
    (matrix,) = chains(1, 3)
    domain, graph = Domain.grid(3, 1, 3.0, 1.0), nx.path_graph(3)
    releases = []
    for transition in (matrix, [MarkovChain(matrix)] * 3, VaryingChain.of([matrix], cyclic=True)):
        trace = Trace(domain, graph, 1, transition, [0.2, 0.3, 0.5], rng=3)
        releases.append([trace.step(state) for state in (0, 1, 2, 0)])
    for other in releases[1:]:
        for one, again in zip(releases[0], other, strict=True):
            assert one.output == again.output
            np.testing.assert_array_equal(one.posterior, again.posterior)
    changing = chains(3, 3)
    stages = Trace(domain, graph, 1, np.array(changing), [0.2, 0.3, 0.5]).table(4)
    for steps, stage in enumerate(stages):
        expected = np.linalg.multi_dot([[0.2, 0.3, 0.5], *changing[:steps], np.eye(3)])
        np.testing.assert_allclose(stage.prior, expected)
    watched = [Adversary(t, [0.2, 0.3, 0.5]).watch(releases[0]).smoothed for t in (matrix, [MarkovChain(matrix)] * 3)]
    np.testing.assert_array_equal(*watched)
