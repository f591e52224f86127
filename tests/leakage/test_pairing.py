"""Backward and forward correlations that cannot belong to one chain are warned of, all others are not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign import leakage
from mechdesign.errors import CorrelationWarning
from mechdesign.leakage._correlations import mismatch
from mechdesign.model._markov import MarkovChain

FORWARD = np.array([[0.8, 0.2], [0.1, 0.9]])
SYMMETRIC = np.array([[0.8, 0.2], [0.2, 0.8]])


def chain(seed: int, n: int, zeros: float = 0.0) -> MarkovChain:
    """Return a random chain in which states follow one another in a circle, so that each can be reached."""
    generator = np.random.default_rng(seed)
    weights = generator.exponential(size=(n, n)) ** 3 * (generator.uniform(size=(n, n)) >= zeros)
    weights[np.arange(n), (np.arange(n) + 1) % n] += 0.1
    return MarkovChain(weights / weights.sum(axis=1, keepdims=True))


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 8), st.sampled_from([0.0, 0.5, 0.9]))
def test_a_chain_and_its_reverse_fit(seed: int, n: int, zeros: float) -> None:
    forward = chain(seed, n, zeros)
    backward = forward.reverse(forward.stationary())
    assert mismatch(backward.matrix, forward.matrix) == ""
    assert mismatch(sparse.csr_array(backward.matrix), sparse.csr_array(forward.matrix)) == ""
    # Each is the reverse of the other.
    assert mismatch(forward.matrix, backward.matrix) == ""


def test_rounded_estimated_shifted_and_independent_matrices_fit() -> None:
    forward = chain(3, 30)
    shown = [np.round(each.matrix, 6) + 1e-12 for each in (forward.reverse(forward.stationary()), forward)]
    assert mismatch(*(each / each.sum(axis=1, keepdims=True) for each in shown)) == ""
    traces = [np.random.default_rng(seed).integers(0, 5, 40) for seed in range(30)]
    found = leakage.correlations_from_traces(traces, 5)
    assert mismatch(found.backward.matrix, found.forward.matrix) == ""
    shift = np.roll(np.eye(4), 1, axis=1)
    assert mismatch(shift.T, shift) == ""
    assert mismatch(np.full((3, 3), 1 / 3), np.full((3, 3), 1 / 3)) == ""


def test_a_step_that_only_one_of_them_knows() -> None:
    found = mismatch(np.array([[1.0, 0.0], [0.2, 0.8]]), FORWARD)
    assert found == "a step from state 1 to state 0 is possible in the forward matrix, not in the backward matrix"
    # A chain with a direction is not its own reverse.
    shift = np.roll(np.eye(3), 1, axis=1)
    assert "possible in the forward matrix" in mismatch(shift, shift)


def test_ratios_that_contradict_bayes() -> None:
    assert "Bayes' rule (4.7% of the probability is elsewhere)" in mismatch(SYMMETRIC, FORWARD)
    # Just inside the tolerance of 1 per cent, and just outside.
    for shift, fits in ((0.01, True), (0.03, False)):
        near = np.array([[0.8 + shift, 0.2 - shift], [0.1, 0.9]])
        assert (mismatch(near, FORWARD) == "") is fits


def test_a_chain_reversed_from_a_passing_distribution() -> None:
    forward = MarkovChain([[0.9, 0.1], [0.5, 0.5]])
    passing = forward.reverse([0.5, 0.5])
    assert "no common stationary distribution" in mismatch(passing.matrix, forward.matrix)
    assert "by 20.0%" in mismatch(passing.matrix, forward.matrix)


def test_whatever_takes_both_warns_once() -> None:
    changing = leakage.Varying([FORWARD, SYMMETRIC]), leakage.Varying([FORWARD] * 2)
    for says, use in (
        ("", lambda: leakage.temporal([0.1, 0.1], SYMMETRIC, FORWARD)),
        ("", lambda: leakage.supremum(0.1, SYMMETRIC, FORWARD)),
        ("", lambda: leakage.window([0.1, 0.1], 0, 1, SYMMETRIC, FORWARD)),
        ("", lambda: leakage.constant_budget(1.0, SYMMETRIC, FORWARD)),
        ("", lambda: leakage.allocate_budget(1.0, 5, SYMMETRIC, FORWARD)),
        ("", lambda: leakage.Accountant(1.0, SYMMETRIC, FORWARD)),
        ("at step 1 ", lambda: leakage.temporal([0.1] * 3, *changing)),
    ):
        with pytest.warns(CorrelationWarning, match=f"{says}cannot both be correlations of one chain") as caught:
            use()
        assert len(caught) == 1


def test_one_direction_or_several_candidates_are_not_judged() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        leakage.temporal([0.1, 0.1], SYMMETRIC)
        leakage.temporal([0.1, 0.1], leakage.Candidates([SYMMETRIC, None]), FORWARD)
        leakage.temporal([0.1, 0.1], FORWARD, FORWARD)
