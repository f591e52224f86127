"""Backward correlations of a chain from the law of its first release."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

import mechdesign as md
from mechdesign import leakage
from mechdesign.base._names import Named
from mechdesign.errors import CorrelationWarning, SmoothedChainWarning
from mechdesign.leakage import Varying
from mechdesign.leakage._correlations import mismatch

# From this start, two randomised responses of ε = 1 leak 1.8069, and the stationary reversal says 1.6031.
PASSING = np.array([[0.5, 0.5], [0.01, 0.99]])
START = [0.3, 0.7]
GROWING = np.array([[0, 1, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0.5, 0.5], [0, 0, 0.25, 0.75]])


def leaked(chain: np.ndarray, start: list[float], epsilon: float, releases: int) -> float:
    """Return the backward leakage of the last release of randomised response, by enumeration of all outputs."""
    n, keep = len(chain), math.exp(epsilon) / (math.exp(epsilon) + 1)
    answers = np.array([[keep, 1 - keep], [1 - keep, keep]])
    worst = 0.0
    for outputs in itertools.product(range(2), repeat=releases):
        joint = np.array(start) * answers[:, outputs[0]]
        law = np.array(start)
        for output in outputs[1:]:
            joint, law = joint @ chain * answers[:, output], law @ chain
        given = joint / law
        worst = max(worst, *(math.log(given[s] / given[t]) for s, t in itertools.permutations(range(n), 2)))
    return worst


def test_a_start_in_another_law_than_the_stationary_one() -> None:
    varying = Varying.from_start(md.MarkovChain(PASSING), START, 1)
    truth = leaked(PASSING, START, 1.0, 2)
    assert truth == pytest.approx(1.8069, abs=1e-4)
    assert leakage.backward([1, 1], varying)[1] == pytest.approx(truth, rel=1e-12)
    stationary = md.MarkovChain(PASSING).reverse(md.MarkovChain(PASSING).stationary())
    assert leakage.backward([1, 1], stationary)[1] == pytest.approx(1.6031, abs=1e-4)
    # Later the law is nearly stationary.
    later = leakage.backward([1] * 5, Varying.from_start(PASSING, START, 4))
    assert (later >= [leaked(PASSING, START, 1.0, count) - 1e-12 for count in range(1, 6)]).all()


@pytest.mark.parametrize("seed", range(4))
def test_the_rows_are_those_of_bayes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 9, (4, 4)) * (rng.random((4, 4)) < 0.6) + np.eye(4, dtype=int)[rng.permutation(4)]
    exact = [[Fraction(int(entry), int(row.sum())) for entry in row] for row in counts]
    start = [Fraction(1, 2), Fraction(0), Fraction(1, 2), Fraction(0)] if seed % 2 else [Fraction(1, 4)] * 4
    chain = md.MarkovChain(counts / counts.sum(axis=1, keepdims=True))
    varying = Varying.from_start(chain, [float(share) for share in start], 4)
    law = start
    for loss, missing in zip(varying.steps, varying.missing, strict=True):
        after = [sum(law[i] * exact[i][j] for i in range(4)) for j in range(4)]
        assert missing.tolist() == [j for j in range(4) if after[j] == 0]
        for j in set(range(4)) - set(missing.tolist()):
            bayes = [float(law[i] * exact[i][j] / after[j]) for i in range(4)]
            assert loss is not None
            assert loss.matrix[j] == pytest.approx(bayes, rel=1e-13, abs=0)
        law = after


def test_states_that_cannot_be_reached_are_named_and_change_nothing() -> None:
    varying = Varying.from_start(GROWING, [1, 0, 0, 0], 3)
    assert [each.tolist() for each in varying.missing] == [[0, 2, 3], [0, 3], [0]]
    assert all(not each.flags.writeable for each in varying.missing)
    assert all(loss is not None and not len(loss.unknown) for loss in varying.steps)
    # Only state 1 is possible at the second release, and its predecessor is certain: nothing is added.
    assert leakage.backward([1, 1], Varying.from_start(GROWING, [1, 0, 0, 0], 1))[1] == 1
    # A chain on the states that are reached has the same leakage.
    part = GROWING[2:, 2:]
    whole = leakage.backward([1] * 4, Varying.from_start(GROWING, [0, 0, 0.5, 0.5], 3))
    assert whole.tolist() == leakage.backward([1] * 4, Varying.from_start(part, [0.5, 0.5], 3)).tolist()
    assert [each.tolist() for each in Varying([PASSING, None]).missing] == [[], []]


def test_missing_states_have_infinite_bounds_and_touch_no_other_pair() -> None:
    bounds = np.abs(np.subtract.outer(np.arange(4), np.arange(4))) * 0.5
    varying = Varying.from_start(GROWING, [1, 0, 0, 0], 3)
    found = leakage.backward([bounds] * 4, varying)
    assert (found[0] == bounds).all()
    for step, missing in enumerate(varying.missing, 1):
        infinite = np.zeros((4, 4), dtype=bool)
        infinite[missing] = infinite[:, missing] = True
        np.fill_diagonal(infinite, False)
        assert (np.isinf(found[step]) == infinite).all()
        assert (np.diagonal(found[step]) == 0).all()
    # At the third release, states 1 and 2 have the certain predecessor 1; state 2 has 1 or 2 at the fourth.
    assert found[2][1, 2] == bounds[1, 2]
    # The chain without the states that are never entered gives the same bounds.
    part, start = GROWING[1:, 1:], Varying.from_start(GROWING[1:, 1:], [1, 0, 0], 2)
    alone = leakage.backward([bounds[1:, 1:]] * 3, start)
    assert np.allclose(found[2:, 1:, 1:], alone[1:], rtol=1e-9)
    joint = leakage.temporal([bounds[1:, 1:]] * 3, start, part)
    assert (np.isinf(joint) == np.isinf(alone)).all()
    edges = leakage.backward([bounds] * 4, varying, edges=nx.path_graph(4))
    assert (np.isinf(edges) == np.isinf(found)).all()
    assert (edges >= found - 1e-9).all()


def test_missing_states_are_those_of_the_names() -> None:
    names = ["a", "b", "c", "d"]
    frame = Named(GROWING, names, names)
    turned = Named(GROWING[::-1, ::-1], names[::-1], names[::-1])
    one, other = (Varying.from_start(each, law, 2) for each, law in ((frame, [1, 0, 0, 0]), (turned, [0, 0, 0, 1])))
    bounds = Named(1 - np.eye(4), names, names)
    found = [leakage.backward([bounds] * 3, each) for each in (one, leakage.Candidates([one, other]))]
    assert (found[0] == found[1]).all()
    assert (found[0] == leakage.backward([bounds] * 3, other)[:, ::-1, ::-1]).all()


def test_two_laws_are_no_contradiction_where_matrices_vary() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", CorrelationWarning)
        for steps in (1, 2, 5):
            leakage.temporal([1] * (steps + 1), Varying.from_start(PASSING, START, steps), PASSING)
            leakage.temporal([1] * (steps + 1), Varying.from_start(GROWING, [1, 0, 0, 0], steps), GROWING)
        # One step has a law before and a law after it.
        leakage.temporal([1, 1], md.MarkovChain(PASSING).reverse(START), PASSING)
    passing = md.MarkovChain(PASSING).reverse(START)
    for use in (
        lambda: leakage.temporal([1] * 3, passing, PASSING),
        lambda: leakage.supremum(0.1, passing, PASSING),
        lambda: leakage.temporal([1] * 3, Varying([passing] * 2), PASSING),
    ):
        with pytest.warns(CorrelationWarning, match="no common stationary distribution.*Varying.from_start"):
            use()
    # What no law explains is a contradiction wherever it holds.
    with pytest.warns(CorrelationWarning, match="at step 1 .*Bayes' rule"):
        leakage.temporal([1] * 3, Varying([passing, [[0.5, 0.5], [0.1, 0.9]]]), PASSING)
    with pytest.warns(CorrelationWarning, match="possible in the forward matrix"):
        leakage.temporal([1] * 2, [[1.0, 0.0], [0.2, 0.8]], PASSING)


def test_states_of_probability_zero_are_left_out_only_where_matrices_vary() -> None:
    forward, backward = GROWING, Varying.from_start(GROWING, [1, 0, 0, 0], 1).steps[0].matrix
    assert mismatch(backward, forward, constant=False) == ""
    assert "possible in the backward matrix" in mismatch(backward, forward)
    # A cycle against its direction is no chain, whatever the law.
    shift = np.roll(np.eye(3), 1, axis=1)
    assert "possible in the forward matrix" in mismatch(shift, shift, constant=False)
    assert mismatch(shift.T, shift, constant=False) == ""


def test_irregular_times_have_powers_of_the_matrix() -> None:
    hourly = np.array([[0.8, 0.2], [0.3, 0.7]])
    chain = md.MarkovChain(hourly)
    back = chain.reverse(chain.stationary()).matrix
    times = [8, 9, 12, 20]
    powers = [[np.linalg.matrix_power(matrix, gap) for gap in np.diff(times)] for matrix in (back, hourly)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", CorrelationWarning)
        found = leakage.temporal([1] * 4, *map(Varying, powers))
    # The hours without a report are releases that spend nothing.
    spent = [1.0 if hour in times else 0.0 for hour in range(8, 21)]
    assert found == pytest.approx(leakage.temporal(spent, back, hourly)[[0, 1, 4, 12]], rel=1e-12)


def test_a_smoothed_chain_warns() -> None:
    chain = md.MarkovChain.from_counts([[3, 1], [0, 4]], smoothing=1)
    with pytest.warns(SmoothedChainWarning):
        varying = Varying.from_start(chain, [0.5, 0.5], 2)
    assert all(loss is not None and loss.smoothing == 1 for loss in varying.steps)
