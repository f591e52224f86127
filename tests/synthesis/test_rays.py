"""Rays: mixtures of private columns agree with other solvers, and unsupported problems are refused."""

from __future__ import annotations

import functools
from fractions import Fraction
from functools import partial
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from long import mostly_long
from refusals import Mistake, assert_refused
from rows import each_row

import mechdesign as md
from mechdesign.certify import second_verifier
from mechdesign.errors import InputError, MetricWarning, TooLargeError
from mechdesign.synthesis._settings import SolveSettings
from mechdesign.synthesis._sizes import Size, check_size, estimate

MARGIN = 1e-6


def grid(side: int) -> np.ndarray:
    x, y = np.meshgrid(np.arange(side), np.arange(side))
    return np.c_[x.ravel(), y.ravel()].astype(float)


def bell(places: np.ndarray) -> np.ndarray:
    squared = ((places - places.mean(axis=0)) ** 2).sum(axis=1)
    prior = np.exp(-squared / (2 * squared.mean()))
    return prior / prior.sum()


def some_places(count: int) -> np.ndarray:
    return np.random.default_rng(5).uniform(0, 5, (count, 2))


@functools.cache
def designed(tolerance: float) -> tuple[md.Design, list[md.solve.Progress]]:
    """Return the design of the grid, and what it told meanwhile."""
    told: list[md.solve.Progress] = []
    return md.design(problems()["grid"], rows="rays", tolerance=tolerance, progress=told.append), told


def problems() -> dict[str, md.Problem]:
    cells, places = grid(5), some_places(22)
    plane, apart = md.distances.euclidean(cells), md.distances.euclidean(places)
    blocks = md.distances.manhattan(cells)
    prior = np.random.default_rng(1).dirichlet(np.ones(25))
    few = [0, 4, 7, 12, 18, 24]
    return {
        "grid": md.Problem(bell(cells), plane, [md.MetricPrivacy("0.6", plane)]),
        "places": md.Problem(bell(places), apart, [md.MetricPrivacy("0.6", apart)]),
        "Manhattan distance": md.Problem(bell(cells), plane, [md.MetricPrivacy("0.5", blocks)]),
        "whether wrong": md.Problem(bell(cells), (plane > 0).astype(float), [md.MetricPrivacy("0.6", plane)]),
        "squared cost, any prior": md.Problem(prior, plane**2, [md.MetricPrivacy("0.8", plane)]),
        "few observables": md.Problem(bell(cells), plane[:, few], [md.MetricPrivacy("0.7", plane)]),
        "steep bounds": md.Problem(bell(cells), plane, [md.MetricPrivacy("30", plane)]),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_long(problems(), 4))
def test_the_bracket_contains_the_optimum(name: str) -> None:
    problem = problems()[name]
    optimum = md.design(problem, tolerance=1e-7).certificate
    found = md.design(problem, rows="rays", tolerance=1e-2).certificate
    assert found.holds
    assert found.relative_gap <= 1e-2
    assert found.expected_cost >= optimum.lower_bound * (1 - 1e-12)
    assert found.lower_bound <= optimum.expected_cost * (1 + 1e-12)


def test_a_floor_is_met_and_bracketed() -> None:
    cells = grid(4)
    distance = md.distances.euclidean(cells)
    prior = bell(cells)
    for share, gap in ((0.5, 2e-2), (0.9, 6e-2)):
        floor = md.DistortionPrivacy(share * float((distance @ prior).min()), distance)
        problem = md.Problem(prior, distance**2, [md.MetricPrivacy("0.7", distance), floor])
        optimum = md.design(problem, tolerance=1e-6).certificate
        found = md.design(problem, rows="rays", tolerance=gap).certificate
        assert found.holds
        assert found.relative_gap <= gap
        assert found.lower_bound <= optimum.expected_cost <= found.expected_cost * (1 + MARGIN)


def test_two_floors_one_with_its_own_prior() -> None:
    cells = grid(3)
    distance, prior = md.distances.euclidean(cells), bell(cells)
    other = np.linspace(1, 2, 9) / np.linspace(1, 2, 9).sum()
    floors = [
        md.DistortionPrivacy(0.8 * float((distance @ prior).min()), distance),
        md.DistortionPrivacy(0.7 * float((distance @ other).min()), distance, prior=other),
    ]
    problem = md.Problem(prior, distance**2, [md.MetricPrivacy("0.9", distance), *floors])
    optimum = md.design(problem, tolerance=1e-6).certificate
    found = md.design(problem, rows="rays", tolerance=6e-2).certificate
    assert found.relative_gap <= 6e-2
    assert found.lower_bound <= optimum.expected_cost <= found.expected_cost * (1 + MARGIN)


def test_the_second_verifier_proves_it(tmp_path: Path) -> None:
    md.save(designed(2e-2)[0], tmp_path / "rays", report=False)
    assert md.verify(tmp_path / "rays").holds
    assert second_verifier.prove(tmp_path / "rays")


def test_identical_secrets_are_merged() -> None:
    places = np.concatenate([grid(3), grid(3)[:2]])
    distance = md.distances.euclidean(places)
    problem = md.Problem(np.full(11, 1 / 11), distance, [md.MetricPrivacy("0.9", distance)])
    optimum = md.design(problem, tolerance=1e-7).certificate
    found = md.design(problem, rows="rays", tolerance=2e-2)
    assert np.array_equal(found.channel.numerators[0], found.channel.numerators[9])
    assert found.certificate.lower_bound <= optimum.expected_cost <= found.certificate.expected_cost * (1 + MARGIN)


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
@each_row("count", [1, 2, 3])
def test_few_secrets(count: int) -> None:
    distance = md.distances.euclidean(grid(3)[:count])
    problem = md.Problem(np.full(count, 1 / count), distance, [md.MetricPrivacy("1", distance)])
    # Every answer reveals a single secret.
    found = md.design(problem, rows="rays", tolerance=1e-3, isolated="release").certificate
    assert found.holds
    assert found.expected_cost <= md.design(problem, isolated="release").certificate.expected_cost * (1 + 1e-3) + 1e-12


def test_an_answer_forbidden_to_one_secret_is_given_by_none() -> None:
    cells = grid(3)
    distance = md.distances.euclidean(cells)
    cost = distance.copy()
    cost[0, 8] = np.inf
    found = md.design(md.Problem(bell(cells), cost, [md.MetricPrivacy("0.6", distance)]), rows="rays", tolerance=0.1)
    assert not found.channel.numerators[:, 8].any()


def test_rare_observables_are_replaced() -> None:
    largest = designed(2e-2)[0].channel.matrix.max(axis=0)
    assert largest[largest > 0].min() > 1e-6


def test_the_summary_describes_the_method() -> None:
    found, told = designed(2e-2)
    summary = found.summary
    assert (summary.solver, summary.rows_policy, summary.status) == ("rays", "rays", "optimal")
    assert summary.privacy_weight is not None
    assert 0 < summary.privacy_weight < 1e-9
    bounds = [moment for moment in told if moment.upper is not None]
    assert bounds
    assert bounds[-1].lower is not None
    assert bounds[-1].lower <= bounds[-1].upper


def test_a_time_limit_leaves_a_private_channel() -> None:
    found = md.design(problems()["grid"], rows="rays", tolerance=1e-6, time_limit=1e-3)
    assert found.certificate.holds
    assert found.status == "stopped at the time limit"


def test_other_problems_and_options_are_refused() -> None:
    cells = grid(3)
    distance, prior = md.distances.euclidean(cells), bell(cells)
    private, graph = md.MetricPrivacy("0.6", distance), md.GraphPrivacy("1", nx.path_graph(9))
    with pytest.warns(MetricWarning):
        squared = md.MetricPrivacy("0.6", distance**2)
    plain = md.Problem(prior, distance, [private])

    def refused(name: str, place: str, says: str, problem: md.Problem = plain, **settings: object) -> Mistake:
        return Mistake(name, partial(md.design, problem, rows="rays", **settings), place, says, InputError)

    assert_refused(
        [
            refused("worst", "rows", "only the expected cost", md.Problem(prior, distance, [private], "worst")),
            refused("graph", "rows", "all pairs", md.Problem(prior, distance, [graph])),
            refused("squares", "rows", "a shorter path from", md.Problem(prior, distance, [squared])),
            refused("highs", "solver", "", solver="highs"),
            refused("block", "solver", "", solver="block"),
            refused("option", "options.presolve", "", options={"presolve": "off"}),
        ]
    )
    with pytest.raises(TooLargeError, match="rays"):
        md.design(plain, rows="rays", options={"memory": 1000})
    # Distances that are rounded separately still count as a metric.
    rounded = np.nextafter(distance, 0)
    assert md.design(md.Problem(prior, distance, [md.MetricPrivacy("0.6", rounded)]), rows="rays", tolerance=0.1)


def test_two_runs_give_the_same_numbers() -> None:
    first, second = designed(2e-2)[0], md.design(problems()["grid"], rows="rays", tolerance=2e-2)
    assert np.array_equal(first.channel.numerators, second.channel.numerators)
    assert first.certificate.lower_bound == second.certificate.lower_bound


def test_a_lower_bound_of_exact_arithmetic() -> None:
    """The lower bound, evaluated in fractions, lies between the stated bound and the optimum."""
    places = some_places(12)
    distance = md.distances.euclidean(places)
    problem = md.Problem(bell(places), distance, [md.MetricPrivacy("0.6", distance)])
    found = md.design(problem, rows="rays", tolerance=5e-2)
    optimum = Fraction(md.design(problem, solver="highs-simplex", rows="all", tolerance=1e-9).certificate.expected_cost)
    assert 0 < Fraction(found.certificate.lower_bound) <= optimum


def test_symmetry_changes_neither_the_optimum_nor_the_guarantee() -> None:
    cells = grid(4)
    distance = md.distances.euclidean(cells)
    problem = md.Problem(bell(cells), distance, [md.MetricPrivacy("0.6", distance)])
    optimum = md.design(problem, tolerance=1e-4).certificate
    for symmetry, order in ((True, 8), (False, 1)):
        found = md.design(problem, rows="rays", tolerance=5e-2, options={"symmetry": symmetry})
        assert found.summary.symmetries == order
        assert found.certificate.relative_gap <= 5e-2
        assert found.certificate.lower_bound <= optimum.expected_cost <= found.certificate.expected_cost * (1 + MARGIN)


def test_thousands_of_secrets_fit_into_memory() -> None:
    size = Size(2500, 2500, alike=True)
    by_rays, by_blocks = (estimate(size, SolveSettings(rows=rows)) for rows in ("rays", "auto"))
    assert by_rays.solver == "rays"
    assert by_rays.memory < 8e9 < by_blocks.memory
    with pytest.raises(TooLargeError, match='rows = "rays"'):
        check_size(size, SolveSettings(options={"memory": 8e9}))
