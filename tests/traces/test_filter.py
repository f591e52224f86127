from __future__ import annotations

import numpy as np
import pytest
from hmm_brute import enumerate_paths, random_model
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.errors import InputError
from mechdesign.model._markov import MarkovChain
from mechdesign.traces._hmm import forward, log_mix, logarithm, smooth


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 4), steps=st.integers(1, 4))
def test_filter_and_smoothing_agree_with_all_paths(seed: int, n: int, steps: int) -> None:
    initial, matrix, likelihoods = random_model(np.random.default_rng(seed), n, steps)
    priors, posteriors, smoothed, evidence = enumerate_paths(initial, matrix, likelihoods)
    found = forward(initial, matrix, logarithm(likelihoods))
    np.testing.assert_allclose(found.priors, priors, rtol=1e-12, atol=0)
    np.testing.assert_allclose(found.posteriors, posteriors, rtol=1e-12, atol=0)
    np.testing.assert_allclose(found.log_evidence.sum(), np.log(evidence), atol=1e-12)
    np.testing.assert_allclose(smooth(initial, matrix, logarithm(likelihoods)), smoothed, rtol=1e-12, atol=1e-300)


def test_densities_serve_as_well_as_probabilities() -> None:
    initial, matrix, likelihoods = random_model(np.random.default_rng(2), 4, 4)
    scale = np.array([[3.0], [1e200], [1e-200], [7.0]])
    one, other = (
        forward(initial, matrix, logarithm(likelihoods)),
        forward(initial, matrix, logarithm(scale * likelihoods)),
    )
    np.testing.assert_allclose(one.posteriors, other.posteriors, rtol=1e-12)


def test_nothing_underflows() -> None:
    # State 1 has a likelihood of e^-1000 at each of 50 times, yet is the only one that survives the last.
    logs = np.tile([0.0, -1000.0], (50, 1))
    logs[-1] = [-np.inf, 0.0]
    found = forward([0.5, 0.5], np.eye(2), logs)
    np.testing.assert_array_equal(found.posteriors[-1], [0.0, 1.0])
    np.testing.assert_array_equal(smooth([0.5, 0.5], np.eye(2), logs), np.tile([0.0, 1.0], (50, 1)))
    assert found.log_priors[-1, 1] == pytest.approx(-49_000)
    # A long way down, and back.
    chain = np.full((3, 3), 1 / 3)
    np.testing.assert_allclose(smooth([1, 0, 0], chain, np.full((400, 3), -800.0))[-1], 1 / 3)


def test_log_mix_is_exact_where_floats_are_not() -> None:
    weights = np.array([0.0, -800.0, -np.inf])
    matrix = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1e-300, 0.0], [0.0, 1.0, 1.0, 1.0]])
    np.testing.assert_allclose(log_mix(weights, matrix), [0.0, -800.0, -800.0 + np.log(1e-300), -np.inf])
    np.testing.assert_array_equal(log_mix(np.full(3, -np.inf), matrix), -np.inf)


def test_states_that_no_step_reaches_stay_impossible() -> None:
    matrix = [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    found = forward([1, 0, 0], matrix, np.zeros((200, 3)))
    assert (found.priors[:, 2] == 0).all()
    assert (found.log_priors[1:, 0] > -np.inf).all()


def test_an_impossible_observation_is_named() -> None:
    logs = logarithm(np.array([[1.0, 0.0], [0.0, 1.0]]))
    with pytest.raises(InputError, match=r"outputs\[1\]: is impossible"):
        forward([0.5, 0.5], np.eye(2), logs)
    with pytest.raises(InputError, match=r"z\[1\]"):
        smooth([0.5, 0.5], np.eye(2), logs, path="z")


def test_no_observations_are_no_beliefs() -> None:
    assert forward([1.0], MarkovChain(np.eye(1)), np.zeros((0, 1))).priors.shape == (0, 1)
    assert smooth([1.0], np.eye(1), np.zeros((0, 1))).shape == (0, 1)
