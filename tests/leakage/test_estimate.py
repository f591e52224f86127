from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mechdesign import leakage
from mechdesign.data.movement import read_plt
from mechdesign.data.trajectories import to_grid
from mechdesign.errors import SmoothedChainWarning
from mechdesign.leakage._loss import LossFunction
from mechdesign.model._domain import Domain


def test_counts_and_bayes_by_hand() -> None:
    found = leakage.correlations_from_traces([[0, 1, 0, 0], [1, 1]], 3)
    assert found.states.tolist() == [0, 1]
    assert found.steps == 4
    np.testing.assert_allclose(found.forward.matrix, [[0.5, 0.5], [0.5, 0.5]])
    np.testing.assert_allclose(found.initial.probabilities, [0.5, 0.5])
    np.testing.assert_allclose(found.backward.matrix, [[0.5, 0.5], [0.5, 0.5]])
    # By default the backward chain is what counting backwards gives.
    back = leakage.correlations_from_traces([[0, 2, 1, 0, 1, 2, 0, 0, 1]], 3)
    ahead = leakage.correlations_from_traces([[0, 2, 1, 0, 1, 2, 0, 0, 1][::-1]], 3)
    np.testing.assert_allclose(back.backward.matrix, ahead.forward.matrix)


def test_given_initial_distribution() -> None:
    found = leakage.correlations_from_traces([[0, 1, 0, 0, 1, 1]], 2, initial=[0.9, 0.1])
    P = found.forward.matrix
    joint = np.array([0.9, 0.1])[:, None] * P
    np.testing.assert_allclose(found.backward.matrix, (joint / joint.sum(axis=0)).T)


def test_only_states_that_nobody_visits_are_left_out() -> None:
    found = leakage.correlations_from_traces([[0, 1, 0, 0, 2, 3, 4]], 6)
    assert found.states.tolist() == [0, 1, 2, 3, 4]
    every = leakage.correlations_from_traces([[0, 1, 0]], 4, smoothing=0.5, only_visited=False)
    assert every.states.tolist() == [0, 1, 2, 3]


def test_smoothing_weakens_correlation() -> None:
    leaks = [leakage.LossFunction(leakage.smooth(np.eye(5), s)).supremum(0.1) for s in (0.005, 0.05, 1.0)]
    assert leaks == sorted(leaks, reverse=True)


@pytest.mark.slow
def test_real_traces(data_folder: Path) -> None:
    domain = Domain.geographic_grid(8, 8, south=39.7, north=40.2, west=116.0, east=116.8)
    visits = to_grid(read_plt(data_folder / "geolife_trackintel" / "geolife_long_10_MB"), domain)
    found = leakage.correlations_from_traces(visits, domain.size, smoothing=0.01)
    assert 10 < len(found.states) < 64
    with pytest.warns(SmoothedChainWarning, match="was counted with smoothing 0.01"):
        both = LossFunction(found.backward, path="backward"), LossFunction(found.forward, path="forward")
    budgets = leakage.allocate_budget(1.0, 20, *both)
    total = leakage.temporal(budgets, *both)
    assert total.max() <= 1.0
    assert total.min() == pytest.approx(1.0, rel=1e-9)
