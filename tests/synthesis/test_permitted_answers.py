"""Secrets with different permitted answers, connected by floors or by bounds in one direction: one program for all."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from long import mostly_long
from oracle import least_cost
from rows import each_row

import mechdesign as md
from mechdesign.certify import second_verifier
from mechdesign.certify._stated import Stated
from mechdesign.errors import InfeasibleError, InputError, MetricWarning, TimeLimitError
from mechdesign.model._problem import largest_distortion
from mechdesign.model._requirements._kinds import ClaimedPrivacy
from mechdesign.model._requirements._requirement import Requirement
from mechdesign.solve._contract import Answer, Options, Solution, Status, measure
from mechdesign.solve._linear import LinearProgram
from mechdesign.synthesis._normal import normalise
from mechdesign.synthesis._parts import has_floors, split
from mechdesign.synthesis._rows import find_interior_channel

INF = math.inf
PAIRS = np.repeat([0, 1], 2)
OWN = np.where(PAIRS[:, None] == PAIRS, 1 - np.eye(4), INF)
GRAPH = md.GraphPrivacy(1, nx.Graph([(0, 1), (2, 3)]))


def one_way(factor: Fraction, pairs: list[list[int]], secrets: int) -> ClaimedPrivacy:
    return ClaimedPrivacy([Stated.ratios("one-way", factor, pairs)], secrets)


def drawn(seed: int) -> md.Problem:
    """Draw a problem with forbidden answers, directed bounds, floors, and secrets of probability 0."""
    random = np.random.default_rng(seed)
    n, m = int(random.integers(2, 6)), int(random.integers(2, 5))
    places = np.array(md.distances.euclidean(random.random((n, 2)) * 4))
    cost = random.random((n, m))
    cost[random.random((n, m)) < random.choice([0.1, 0.3, 0.5])] = INF
    cost[np.arange(n), random.integers(0, m, n)] = random.random(n)
    distance = np.where(random.random((n, n)) < random.choice([0, 0.15, 0.4]), places, INF)
    np.fill_diagonal(distance, 0)
    prior = random.random(n) * (random.random(n) > random.choice([0, 0.3]))
    prior[0] += 0.1
    prior /= prior.sum()
    requirements: list[Requirement] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MetricWarning)
        requirements.append(md.MetricPrivacy(round(float(random.uniform(0.1, 3)), 3), distance))
    for error in (places, 1 - np.eye(n))[: int(random.integers(0, 3))]:
        share = float(random.choice([0.05, 0.3, 0.6, 0.9]))
        requirements.append(md.DistortionPrivacy(f"{float((prior @ error).min()) * share:.9f}", error))
    return md.Problem(prior, cost, requirements, str(random.choice(["expected", "worst"])))


def joins_different_answers(problem: md.Problem) -> bool:
    """Return whether a part has secrets with different permitted answers, or the worst cost has coupled parts."""
    parts = split(problem)
    coupled = has_floors(problem) and problem.objective == "worst" and len(parts) > 1
    return coupled or any(not part.alike for part in parts)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
@pytest.mark.parametrize("first", mostly_long(range(0, 40_000, 10_000)))
def test_random_problems_against_the_whole_program_by_another_solver(first: int) -> None:
    designed = infeasible = 0
    seed = first
    while designed < 50:
        seed += 1
        try:
            problem = drawn(seed)
        except InfeasibleError:
            continue
        if not joins_different_answers(problem):
            continue
        try:
            made = md.design(problem, isolated="release")
        except InfeasibleError:
            infeasible += 1
            with pytest.raises(AssertionError, match="infeasible"):
                least_cost(problem)
            continue
        expected = least_cost(problem)
        found = made.certificate
        assert found.holds, seed
        assert found.lower_bound <= found.cost, seed
        assert found.lower_bound <= expected * (1 + 1e-7) + 1e-10, seed
        assert found.cost == pytest.approx(expected, rel=2e-6, abs=1e-9), seed
        assert found.relative_gap <= 1e-6, seed
        assert (made.channel.numerators[np.isinf(problem.cost)] == 0).all(), seed
        designed += 1
    assert 0 < infeasible < 10


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
def test_a_bound_in_one_direction_by_hand() -> None:
    """Secret 0 may only answer 1, so secret 1 must give answer 1 with at least half of that probability."""
    bound = one_way(Fraction(2), [[0, 1]], 2)
    made = md.design(md.Problem([0.5, 0.5], [[INF, 0], [0, 1]], [bound]))
    np.testing.assert_allclose(made.channel.matrix, [[0, 1], [0.5, 0.5]], atol=1e-9)
    assert made.certificate.cost == pytest.approx(0.25)
    assert made.certificate.relative_gap < 1e-9
    # With the bound in the other direction, answer 0 is forbidden to both.
    both = md.Problem([0.5, 0.5], [[INF, 0], [0, 1]], [one_way(Fraction(2), [[1, 0]], 2)])
    assert np.isinf(both.cost[:, 0]).all()
    assert md.design(both).certificate.cost == pytest.approx(0.5)


def test_a_bound_with_the_factor_one_forbids_in_both_directions() -> None:
    problem = md.Problem([0.5, 0.5], [[INF, 0], [0, 1]], [one_way(Fraction(1), [[0, 1]], 2)])
    assert np.isinf(problem.cost[:, 0]).all()
    made = md.design(problem)
    assert made.certificate.cost == pytest.approx(0.5)
    assert made.certificate.relative_gap < 1e-9


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
@each_row("factor", ["2.001", "1.999"])
def test_bounds_that_require_a_probability_above_one(factor: str) -> None:
    """Two secrets with one answer each require the probability 1/g of a third secret: g >= 2 is feasible."""
    cost = [[0, INF], [INF, 0], [1, 2]]
    problem = md.Problem(np.full(3, 1 / 3), cost, [one_way(Fraction(factor), [[0, 2], [1, 2]], 3)])
    if factor < "2":
        with pytest.raises(InfeasibleError, match="meets all bounds; a linear program shows"):
            md.design(problem)
        return
    made = md.design(problem)
    assert made.certificate.cost == pytest.approx((1 + 1 / float(factor)) / 3)
    assert made.certificate.relative_gap < 1e-8


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
def test_a_floor_over_partly_shared_answers_by_hand() -> None:
    """Only answer 1 is shared: the adversary's error is half of the probability that both give it."""
    cost = [[0, 1, INF], [INF, 1, 0]]
    hamming = 1 - np.eye(2)
    made = md.design(md.Problem([0.5, 0.5], cost, [md.DistortionPrivacy("0.1", hamming)]))
    assert made.certificate.cost == pytest.approx(0.2)
    np.testing.assert_allclose(made.channel.matrix[:, 1], 0.2, atol=1e-8)
    # A linear program shows that no channel with the permitted answers reaches this floor; a constant one would.
    cost = [[0, 1, INF], [INF, 1, 0], [0, INF, 0]]
    prior = np.full(3, 1 / 3)
    floor = float(largest_distortion(prior, 1 - np.eye(3)))
    with pytest.raises(InfeasibleError, match="bounds and floors"):
        md.design(md.Problem(prior, cost, [md.DistortionPrivacy(floor, 1 - np.eye(3))]))
    # Each answer is shared by two secrets, so the adversary's error is at most one half.
    for minimum, reachable in (("0.499999", True), ("0.500001", False)):
        problem = md.Problem(prior, cost, [md.DistortionPrivacy(minimum, 1 - np.eye(3))])
        if reachable:
            assert md.design(problem).certificate.relative_gap < 1e-6
        else:
            with pytest.raises(InfeasibleError):
                md.design(problem)


def test_the_worst_cost_of_parts_coupled_by_floors() -> None:
    floor = md.DistortionPrivacy("0.3", 1 - np.eye(4))
    problem = md.Problem([0.4, 0.3, 0.2, 0.1], OWN, [GRAPH, floor], "worst")
    made = md.design(problem)
    assert made.certificate.cost == pytest.approx(least_cost(problem), rel=1e-7)
    assert made.certificate.relative_gap < 1e-7


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
def test_answers_far_from_the_secret_may_be_forbidden_under_a_floor() -> None:
    """Privacy Games (Shokri 2015), appendix C: answers beyond a threshold are forbidden, which costs more."""
    places = np.arange(8.0)
    distance = np.abs(np.subtract.outer(places, places))
    prior = np.arange(1.0, 9) / 36
    floor = md.DistortionPrivacy("1.2", distance)
    costs = []
    for radius in (2, 3, 7):
        problem = md.Problem(prior, np.where(distance <= radius, distance, INF), [floor])
        made = md.design(problem)
        assert made.certificate.cost == pytest.approx(least_cost(problem), rel=1e-6)
        assert made.certificate.relative_gap < 1e-6
        costs.append(made.certificate.cost)
    assert costs[0] >= costs[1] - 1e-9 >= costs[2] - 2e-9


def test_designs_are_verified_by_both_verifiers(tmp_path: Path) -> None:
    shared_in_part = OWN.copy()
    shared_in_part[2:, 1] = 1
    floor = md.DistortionPrivacy("0.3", 1 - np.eye(4))
    made = md.design(md.Problem([0.4, 0.3, 0.2, 0.1], shared_in_part, [GRAPH, floor], "worst"))
    md.save(made, tmp_path, report=False)
    assert md.verify(tmp_path).differences(made.certificate) == ()
    assert second_verifier.prove(tmp_path)


def test_the_interior_channel_has_slack_and_no_forbidden_answers() -> None:
    problem = md.Problem([0.5, 0.5], [[INF, 0, 1], [0, 1, 2]], [one_way(Fraction(2), [[0, 1]], 2)])
    form = normalise(problem)
    found = find_interior_channel(form)
    assert found[0, 0] == 0
    assert found.sum(axis=1) == pytest.approx(1)
    assert (2 * found[1, 1:] - found[0, 1:] > 0.1).all()


def test_a_time_limit_before_the_first_channel_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = md.Problem([0.5, 0.5], [[INF, 0, 1], [0, 1, 2]], [one_way(Fraction(2), [[0, 1]], 2)])
    seen = []

    def late(program: LinearProgram, solver: str, options: Options) -> Solution:
        seen.append(options.deadline.left())
        answer = Answer(Status.TIME_LIMIT, None, None, 0, "time limit", "1")
        return measure(program, answer, solver=solver, seconds=0)

    monkeypatch.setattr("mechdesign.solve._solve.solve", late)
    for limit in (0.01, 7.0):
        with pytest.raises(TimeLimitError, match="only permitted answers within"):
            md.design(problem, time_limit=limit)
    assert seen == [pytest.approx(1.0, abs=0.1), pytest.approx(7.0, abs=0.5)]


def test_solvers_without_forbidden_answers_are_refused() -> None:
    floor = md.DistortionPrivacy("0.1", 1 - np.eye(4))
    problem = md.Problem(np.full(4, 0.25), OWN, [GRAPH, floor], "worst")
    with pytest.raises(InputError, match="different permitted answers"):
        md.design(problem, solver="block")
    for rows in ("all", "reduced", "lazy"):
        assert md.design(problem, rows=rows).certificate.relative_gap < 1e-6  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
def test_any_time_limit_gives_a_certified_channel() -> None:
    places = np.arange(12.0)
    distance = np.abs(np.subtract.outer(places, places))
    problem = md.Problem(
        np.full(12, 1 / 12), np.where(distance <= 4, distance, INF), [md.DistortionPrivacy("1", distance)]
    )
    made = md.design(problem, time_limit=1e-9)
    assert made.certificate.holds
