"""Bounds on leakage rest on what was seen: chains that were smoothed keep their counts, and say so."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path

import numpy as np
import pytest

import mechdesign as md
from mechdesign.errors import BudgetWarning, InputError, SmoothedChainWarning
from mechdesign.leakage._accountant import Accountant
from mechdesign.leakage._correlations import Candidates, Varying
from mechdesign.leakage._loss import LossFunction
from mechdesign.model._markov import smooth

ROUND = [[0, 1, 2, 3, 4, 5] * 4 + [0]]
MIXED = [[0, 1, 0, 0, 1, 1, 0, 1, 0]]


def counted(smoothing: float) -> md.MarkovChain:
    return md.MarkovChain.from_traces(ROUND, n=6, smoothing=smoothing)


@pytest.mark.parametrize("smoothing", [0.01, 1])
def test_a_budget_of_a_smoothed_chain_warns(smoothing: float) -> None:
    with pytest.warns(SmoothedChainWarning, match=f"P was counted with smoothing {smoothing:g}, so its") as heard:
        LossFunction(counted(smoothing))
    assert heard[0].filename == __file__
    with pytest.warns(SmoothedChainWarning, match="forward was counted"):
        budget = md.leakage.constant_budget(1.0, None, counted(smoothing))
    # What was seen leaks more than the promise.
    assert md.leakage.temporal([budget] * 60, None, counted(smoothing).unsmoothed()).max() > 0.7
    with pytest.warns(BudgetWarning):
        assert md.leakage.constant_budget(1.0, None, counted(smoothing).unsmoothed()) == 0


def test_the_function_of_a_smoothed_chain_is_not_saved(tmp_path: Path) -> None:
    with pytest.warns(SmoothedChainWarning):
        loss = LossFunction(counted(0.5))
    assert loss.smoothing == 0.5
    with pytest.raises(InputError, match=r"loss: is that of a smoothed chain.*chain.unsmoothed\(\)"):
        loss.save(tmp_path / "loss.npz")
    assert not list(tmp_path.iterdir())


def test_everything_that_bounds_leakage_warns() -> None:
    for asked in (
        lambda chain: md.leakage.temporal([0.1, 0.1], chain),
        lambda chain: md.leakage.forward([0.1, 0.1], chain),
        lambda chain: md.leakage.allocate_budget(1.0, 3, None, chain),
        lambda chain: Accountant(1.0, None, chain),
        lambda chain: Candidates([chain, None]),
        lambda chain: Varying([None, chain]),
        lambda chain: LossFunction(chain),
        lambda chain: md.leakage.constant_budget(1.0, chain.reverse(np.full(6, 1 / 6))),
        lambda chain: LossFunction(smooth(chain, 0.5)),
        lambda chain: LossFunction(smooth(chain.unsmoothed(), 0.1)),
        lambda chain: LossFunction(smooth(chain.unsmoothed().reverse(np.full(6, 1 / 6)), 0.1)),
        lambda chain: LossFunction(smooth(md.leakage.OpenChain([[0, 1], [0, 0]]), 0.1)),
        lambda chain: LossFunction(copy.deepcopy(chain)),
    ):
        with pytest.warns(SmoothedChainWarning, match=r"counted with smoothing 0\.[15]"):
            asked(counted(0.1))


def test_correlations_of_traces_warn_in_both_directions() -> None:
    found = md.leakage.correlations_from_traces(MIXED, 2, smoothing=0.5)
    alone = md.leakage.correlations_from_traces(MIXED, 2)
    for name in ("forward", "backward"):
        chain = getattr(found, name)
        np.testing.assert_allclose(chain.unsmoothed().matrix, getattr(alone, name).matrix, rtol=1e-12)
        with pytest.warns(SmoothedChainWarning):
            LossFunction(chain)
    first = md.leakage.correlations_from_traces(MIXED, 2, smoothing=0.5, initial=[0.5, 0.5])
    assert first.backward.smoothing == 0.5
    # Without smoothing it is the reverse of the counts under the same initial distribution.
    joint = 0.5 * alone.forward.matrix
    np.testing.assert_allclose(first.backward.unsmoothed().matrix, (joint / joint.sum(axis=0)).T, rtol=1e-12)


def test_what_was_not_counted_or_not_smoothed_does_not_warn() -> None:
    for chain in (
        counted(0),
        md.MarkovChain.from_counts([[1, 1], [1, 2]]),
        md.MarkovChain([[0.5, 0.5], [0.1, 0.9]]),
        smooth(np.eye(3), 0.1),
        smooth(counted(0), 0),
        counted(0.1).unsmoothed(),
        counted(0).reverse(np.full(6, 1 / 6)),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error", SmoothedChainWarning)
            LossFunction(chain)
        assert chain.unsmoothed() is chain


def test_a_chain_keeps_its_counts_and_nobody_can_change_them() -> None:
    counts = np.array([[0.0, 3.0], [0.0, 0.0]])
    chain = md.MarkovChain.from_counts(counts, smoothing=0.5)
    counts[0, 0] = 7
    assert chain.counts is not None
    assert chain.counts.tolist() == [[0, 3], [0, 0]]
    assert chain.smoothing == 0.5
    with pytest.raises(ValueError, match="read-only"):
        chain.counts[0, 0] = 1
    assert chain.unsmoothed().matrix.tolist() == [[0, 1], [0, 1]]
    stays = md.MarkovChain.from_counts([[0, 3], [0, 0]], ends="stay")
    assert stays.counts is not None
    assert stays.counts.tolist() == [[0, 3], [0, 0]]
