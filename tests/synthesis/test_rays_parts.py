"""The steps of the ray method against oracles: layout, first rays, master program, transport problem."""

from __future__ import annotations

import numpy as np
import pytest
from rows import each_row
from scipy.optimize import linprog

import mechdesign as md
from mechdesign.errors import SolverError
from mechdesign.synthesis._rays.generators import extend_into_cone, lay_out, make_first_rays
from mechdesign.synthesis._rays.master import solve_master
from mechdesign.synthesis._rays.pricing import Choices, solve_transport


def metrics() -> dict[str, np.ndarray]:
    random = np.random.default_rng(2)
    places = random.uniform(0, 6, (40, 2))
    weights = random.uniform(1, 3, (15, 15))
    weights = weights + weights.T
    for middle in range(15):
        weights = np.minimum(weights, weights[:, middle, None] + weights[middle])
    np.fill_diagonal(weights, 0.0)
    return {
        "plane": md.distances.euclidean(places),
        "Manhattan": md.distances.manhattan(places),
        "roads": weights,
        "line": np.abs(np.subtract.outer(np.arange(9.0), np.arange(9.0))),
    }


def in_cone(rays: np.ndarray, metric: np.ndarray) -> bool:
    return bool((rays[:, :, None] <= np.exp(metric) * rays[:, None, :] * (1 + 1e-12)).all())


@each_row("name", metrics())
def test_first_rays_are_in_the_cone(name: str) -> None:
    metric = 0.7 * metrics()[name]
    rays = make_first_rays(metric, lay_out(metric))
    assert in_cone(rays, metric)
    assert np.allclose(rays.max(axis=1), 1)
    assert (rays == 1).all(axis=1).any()
    # The check itself can fail.
    assert not in_cone(rays**1.1, metric)


def test_the_plane_is_recognised() -> None:
    found = {name: lay_out(metric) for name, metric in metrics().items()}
    assert {name: layout.euclidean for name, layout in found.items()} == {
        "plane": True,
        "Manhattan": False,
        "roads": False,
        "line": True,
    }


def test_the_closure_is_the_least_function_of_the_cone() -> None:
    metric = metrics()["roads"]
    random = np.random.default_rng(3)
    members, values = np.array([2, 5, 11]), random.uniform(0.1, 1, 3)
    found = extend_into_cone(values, members, metric)
    assert in_cone(found[None], metric)
    assert (found[members] >= values).all()
    assert np.allclose(extend_into_cone(found, np.arange(15), metric), found)


@each_row("seed", range(4))
def test_the_master_program_against_highs(seed: int) -> None:
    random = np.random.default_rng(seed)
    columns, cost = random.uniform(0, 1, (60, 12)), random.uniform(0.1, 1, 60)
    columns[0] = 1.0
    right = np.ones(12)
    oracle = linprog(cost, A_eq=columns.T, b_eq=right)
    found = solve_master(columns, cost, right, 1e-8)
    assert found.cost == pytest.approx(oracle.fun, rel=1e-7)
    assert right @ found.prices == pytest.approx(oracle.fun, rel=1e-7)
    assert np.abs(columns.T @ found.weights - 1).max() < 1e-12
    assert (cost - columns @ found.prices).min() > -1e-8


def test_a_master_program_without_solution_says_so() -> None:
    columns = np.array([[1.0, 0.5], [1.0, 0.6]])
    with pytest.raises(SolverError, match="rays"):
        solve_master(columns, np.ones(2), np.array([1.0, 2.0]), 1e-6)


def served(lack: np.ndarray, spare: np.ndarray, arrives: np.ndarray, choices: Choices | None = None) -> float:
    """Return the least total deficit, computed by HiGHS."""
    r, k = arrives.shape
    w = 0 if choices is None else len(choices.lacks)
    cost = np.concatenate([np.zeros(r * k), np.ones(r), np.zeros(w)])
    rows = np.zeros((r + k, r * k + r + w))
    for s in range(r):
        rows[s, s * k : (s + 1) * k] = -arrives[s]
        rows[s, r * k + s] = -1
    for t in range(k):
        rows[r + t, t : r * k : k] = 1
    equal, sums = None, None
    if choices is not None:
        rows[:r, r * k + r :], rows[r:, r * k + r :] = choices.lacks.T, choices.spares.T
        equal, sums = np.hstack([np.zeros((len(choices.totals), r * k + r)), choices.member]), choices.totals
    found = linprog(cost, A_ub=rows, b_ub=np.concatenate([-lack, spare]), A_eq=equal, b_eq=sums)
    assert found.status == 0
    return float(found.fun)


@each_row("seed", range(6))
def test_transport_against_highs(seed: int) -> None:
    random = np.random.default_rng(seed)
    lack, spare = random.uniform(0.1, 1, 5), random.uniform(0.01, 1, 9)
    arrives = np.exp(-random.uniform(0, 3, (5, 9)))
    found = solve_transport(lack, spare, arrives, 1e-7)
    assert found.lacking.sum() == pytest.approx(served(lack, spare, arrives), abs=1e-5)
    assert (found.flows.sum(axis=0) <= spare * (1 + 1e-12)).all()
    assert ((arrives * found.flows).sum(axis=1) + found.lacking >= lack * (1 - 1e-12)).all()
    # The prices prove the optimum by duality.
    value = lack @ found.prices - spare @ (arrives * found.prices[:, None]).max(axis=0)
    assert value == pytest.approx(found.lacking.sum(), abs=1e-5)


@each_row("seed", range(6))
def test_transport_with_weights_to_choose_against_highs(seed: int) -> None:
    random = np.random.default_rng(seed)
    lack, spare = random.uniform(0.1, 1, 5), random.uniform(0.5, 1, 9)
    arrives = np.exp(-random.uniform(0, 3, (5, 9)))
    member = np.array([[1.0, 1, 1, 0, 0], [0, 0, 0, 1, 1]])
    choices = Choices(random.uniform(0, 1, (5, 5)), random.uniform(0, 0.3, (5, 9)), member, np.array([0.7, 0.3]))
    found = solve_transport(lack, spare, arrives, 1e-7, choices)
    assert found.lacking.sum() == pytest.approx(served(lack, spare, arrives, choices), abs=1e-5)
    assert member @ found.weights == pytest.approx(choices.totals)
    assert (found.flows.sum(axis=0) <= (spare - found.weights @ choices.spares) * (1 + 1e-9)).all()
