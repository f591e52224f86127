"""Rays that stall by rounding errors or difficult problems: typed errors only, and a warning with the bracket."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rows import each_row
from scipy.optimize import linprog

import mechdesign as md
from mechdesign.base._deadline import Deadline
from mechdesign.errors import BracketWarning, SolverError
from mechdesign.solve._contract import Status
from mechdesign.synthesis._normal import normalise
from mechdesign.synthesis._rays import generation, pricing
from mechdesign.synthesis._rays.generators import lay_out, make_first_rays
from mechdesign.synthesis._rays.master import solve_master
from mechdesign.synthesis._result import is_wide
from mechdesign.synthesis._settings import SolveSettings


def scattered(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    places = random.uniform(0, count**0.5, (count, 2))
    return md.distances.euclidean(places), random.dirichlet(np.ones(count))


def threshold(seed: int, count: int) -> md.Problem:
    distance, prior = scattered(seed, count)
    return md.Problem(prior, distance, [md.ThresholdPrivacy(1, distance, 2 * count)])


def random_costs(seed: int, count: int) -> md.Problem:
    distance, prior = scattered(seed, count)
    cost = np.random.default_rng(seed + 1).random((count, count))
    return md.Problem(prior, cost, [md.MetricPrivacy(1, distance)])


@pytest.mark.parametrize(("make", "seed"), [(threshold, 0), (random_costs, 1)])
def test_problems_of_the_guide_reach_the_tolerance(make: Any, seed: int) -> None:
    problem = make(seed, 14)
    found = md.design(problem, rows="rays", tolerance=0.05).certificate
    optimum = md.design(problem).certificate
    assert found.holds
    assert found.relative_gap <= 0.05
    assert found.lower_bound <= optimum.expected_cost <= found.expected_cost * (1 + 1e-6)


# Bounds with the largest exponents give no protection.
@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
@each_row("epsilon", ["1e-100", "1e-16", "1e-12", "1e5", "1e100"])
@each_row("count", [2, 5])
def test_exponents_at_both_ends(epsilon: str, count: int) -> None:
    distance = np.abs(np.subtract.outer(np.arange(float(count)), np.arange(float(count))))
    problem = md.Problem(np.full(count, 1 / count), distance, [md.MetricPrivacy(epsilon, distance)])
    found = md.design(problem, rows="rays", tolerance=0.01).certificate
    assert found.holds
    assert found.relative_gap <= 0.01


@each_row("scale", [1e-90, 1e90])
def test_distances_at_both_ends_are_laid_out_alike(scale: float) -> None:
    distance = scattered(3, 9)[0]
    layout, scaled = lay_out(distance), lay_out(scale * distance)
    assert layout.euclidean
    assert scaled.euclidean
    np.testing.assert_allclose(np.abs(scaled.points / scale), np.abs(layout.points), rtol=1e-6, atol=1e-9)
    # There is no lattice between places that are very far apart.
    assert len(make_first_rays(scale * distance, scaled)) <= 400 * 9


def skewed(seed: int, share: float) -> md.Problem:
    random = np.random.default_rng(seed)
    places = np.arange(6.0)
    distance = np.abs(places[:, None] - places)
    prior = 10.0 ** -random.uniform(0, 16, 6)
    prior /= prior.sum()
    floor = md.DistortionPrivacy(share * float((distance @ prior).min()), distance)
    return md.Problem(prior, distance, [md.MetricPrivacy(1, distance), floor])


@pytest.mark.filterwarnings("ignore::mechdesign.errors.BracketWarning")
@each_row("seed", range(4))
def test_floors_and_skewed_priors(seed: int) -> None:
    problem = skewed(seed, 0.8)
    found = md.design(problem, rows="rays", tolerance=0.02).certificate
    assert found.holds
    assert found.lower_bound <= md.design(problem).certificate.expected_cost * (1 + 1e-6)


def test_a_singular_matrix_ends_a_transport_problem_with_valid_flows(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    lack, spare = random.uniform(1, 2, 4), random.uniform(0.1, 1, 6)
    arrives = np.exp(-random.uniform(0, 2, (4, 6)))
    whole = pricing.solve_transport(lack, spare, arrives, 1e-6)
    inverse, calls = np.linalg.inv, []

    def singular(matrix: np.ndarray) -> np.ndarray:
        calls.append(1)
        if len(calls) > 4:
            raise np.linalg.LinAlgError("Singular matrix")
        return inverse(matrix)

    monkeypatch.setattr(np.linalg, "inv", singular)
    found = pricing.solve_transport(lack, spare, arrives, 1e-6)
    assert len(calls) == 5
    assert (found.flows.sum(axis=0) <= spare * (1 + 1e-12)).all()
    assert ((arrives * found.flows).sum(axis=1) + found.lacking >= lack * (1 - 1e-12)).all()
    assert found.lacking.sum() > whole.lacking.sum()


@each_row("seed", range(4))
def test_a_master_program_whose_optimum_has_few_columns(seed: int) -> None:
    """All distances are equal: many columns coincide, and fewer columns than rows have positive weights."""
    form = normalise(threshold(seed, 20))
    exponents = form.exponents.copy()
    np.fill_diagonal(exponents, 0.0)
    rays = make_first_rays(exponents, lay_out(exponents))
    cost = (rays @ form.gather(form.problem.prior[:, None] * form.problem.cost)).min(axis=1)
    found = solve_master(rays, cost, np.ones(20), 1e-3)
    oracle = linprog(cost, A_eq=rays.T, b_eq=np.ones(20)).fun
    assert np.abs(rays.T @ found.weights - 1).max() <= 1e-9
    assert found.weights.min() >= 0
    assert oracle * (1 - 1e-9) <= found.cost <= oracle * (1 + 1e-2)


def test_a_master_program_stops_at_the_deadline() -> None:
    random = np.random.default_rng(1)
    columns, cost = random.uniform(0, 1, (60, 12)), random.uniform(0.1, 1, 60)
    columns[0] = 1.0
    seconds = itertools.count()
    hurried = solve_master(columns, cost, np.ones(12), 1e-12, Deadline(8.0, clock=lambda: float(next(seconds))))
    assert next(seconds) == 9
    assert hurried.cost >= solve_master(columns, cost, np.ones(12), 1e-8).cost * (1 - 1e-8)
    with pytest.raises(SolverError):
        solve_master(columns, cost, np.ones(12), 1e-12, Deadline(0.0))


def test_without_any_mixture_the_result_is_the_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise SolverError("rays: the master program is out of order")

    monkeypatch.setattr(generation, "solve_master", never)
    with pytest.warns(BracketWarning, match="no positive lower bound"):
        made = md.design(threshold(0, 8), rows="rays", tolerance=0.05)
    assert made.certificate.holds
    assert made.status is Status.STALLED
    assert "out of order" in made.summary.message
    assert np.count_nonzero(made.channel.numerators.max(axis=0)) == 1


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "_MAX_ROUNDS", 1)


def test_a_wide_bracket_gives_a_warning_and_a_design(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient(monkeypatch)
    with pytest.warns(BracketWarning, match="rays stalled: the least cost lies between") as caught:
        made = md.design(threshold(0, 14), rows="rays", tolerance=0.01)
    certificate = made.certificate
    assert certificate.holds
    assert certificate.relative_gap > 0.02
    assert made.status is Status.STALLED
    for number in (certificate.lower_bound, certificate.expected_cost):
        assert f"{number:.6g}" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_which_brackets_give_a_warning() -> None:
    made = md.design(threshold(0, 6), rows="rays", tolerance=0.05)

    def wide(gap: float, tolerance: float = 1e-3) -> bool:
        other = replace(made, certificate=replace(made.certificate, relative_gap=gap))
        return is_wide(other, SolveSettings(tolerance=tolerance))

    assert not wide(0.02)
    assert wide(np.nextafter(0.02, 1))
    assert not wide(0.05, tolerance=0.05)
    assert wide(np.nextafter(0.05, 1), tolerance=0.05)
