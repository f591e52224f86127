import itertools
import json
import math
from fractions import Fraction
from functools import partial
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import least
from refusals import Mistake, assert_refused
from rows import each_row

import mechdesign as md
from mechdesign.errors import SolverError
from mechdesign.solve._contract import Answer, Status

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "channels.json").read_text())
LINE = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))


def grid(k, prior="gauss"):
    domain = md.Domain.grid(columns=k, rows=k, width=float(k), height=float(k))
    centred = domain.points - domain.points.mean(axis=0)
    weights = np.exp(-(centred**2).sum(axis=1) / (2 * (k / 4) ** 2)) if prior == "gauss" else np.arange(k * k) % 4 + 1.0
    return weights / weights.sum(), md.distances.euclidean(domain), md.distances.hamming(domain)


def assert_proved(design, *, gap=1e-8):
    certificate = design.certificate
    assert certificate.holds
    assert certificate.relative_gap <= gap
    nominal = [r.epsilon for r in design.problem.requirements if not isinstance(r, md.DistortionPrivacy)]
    floors = [r.minimum for r in design.problem.requirements if isinstance(r, md.DistortionPrivacy)]
    assert all(Fraction(repr(e)) <= n for e, n in zip(certificate.epsilon, nominal, strict=True))
    assert all(Fraction(repr(d)) >= m for d, m in zip(certificate.distortion, floors, strict=True))
    cost = certificate.worst_cost if design.problem.objective == "worst" else certificate.expected_cost
    assert certificate.lower_bound <= cost
    return cost


@pytest.mark.parametrize("kind", ["euclidean", "hamming"])
def test_reference_values(kind):
    cases = [case for case in REFERENCE["optimal_expected_cost"] if case["cost"] == kind]
    assert cases
    for case in cases:
        prior, d, hamming = grid(case["k"])
        design = md.design(md.Problem(prior, d if kind == "euclidean" else hamming, [md.MetricPrivacy(case["eps"], d)]))
        assert assert_proved(design) == pytest.approx(case["value"], rel=1e-12), case


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
@pytest.mark.parametrize("program", ["differential", "threshold", "distortion", "joint", "joint_worst"])
def test_reference_privacy_games(program):
    cases = [case for case in REFERENCE["privacy_games"] if case["program"] == program]
    assert cases
    for case in cases:
        prior, d, hamming = grid(case["k"], case["prior"])
        requirements = []
        if program in ("differential", "joint", "joint_worst"):
            requirements.append(md.MetricPrivacy(case["eps"], d))
        if program == "threshold":
            requirements.append(md.ThresholdPrivacy(case["eps"], d, radius=case["radius"]))
        if program in ("distortion", "joint", "joint_worst"):
            requirements.append(md.DistortionPrivacy(case["d_m"], d))
        objective = "worst" if program == "joint_worst" else "expected"
        design = md.design(md.Problem(prior, hamming, requirements, objective))
        assert assert_proved(design) == pytest.approx(case["value"], rel=1e-11), case


@each_row(("n", "epsilon"), [(2, 0.1), (3, 1), (6, "2.5"), (10, 5)])
def test_k_ary_randomised_response_is_optimal_on_the_complete_graph(n, epsilon):
    cost = 1 - np.eye(n)
    design = md.design(md.Problem(np.full(n, 1 / n), cost, [md.GraphPrivacy(epsilon, nx.complete_graph(n))]))
    expected = (n - 1) / (n - 1 + math.exp(float(epsilon)))
    assert assert_proved(design) == pytest.approx(expected, rel=1e-9)
    assert design.certificate.epsilon[0] == pytest.approx(float(epsilon), rel=1e-9)


@each_row(("epsilon", "power"), [(0.1, 1), (0.7, 1), (2, 2)])
def test_the_remapped_geometric_mechanism_is_optimal_on_a_line(epsilon, power):
    n, prior, cost = 5, np.array([0.1, 0.3, 0.2, 0.15, 0.25]), LINE**power
    ratio = math.exp(-epsilon)
    geometric = np.array([[ratio ** abs(s - o) * (1 - ratio) / (1 + ratio) for o in range(n)] for s in range(n)])
    for s in range(n):
        geometric[s, 0] = ratio**s / (1 + ratio)
        geometric[s, -1] = ratio ** (n - 1 - s) / (1 + ratio)
    remapped = sum(min(prior @ (geometric[:, o] * cost[:, r]) for r in range(n)) for o in range(n))
    design = md.design(md.Problem(prior, cost, [md.MetricPrivacy(epsilon, LINE)]))
    assert assert_proved(design) == pytest.approx(remapped, rel=1e-9)


@st.composite
def small_problems(draw):
    n, m = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    prior = rng.dirichlet(np.ones(n)) * (rng.random(n) < 0.8)
    prior = prior / prior.sum() if prior.sum() > 0 else np.full(n, 1 / n)
    points = rng.integers(0, 3, (n, 2)).astype(float) if draw(st.booleans()) else rng.random((n, 2))
    d = np.array(md.distances.euclidean(md.Domain.from_points(points)))
    cost = rng.random((n, m)).round(2)
    epsilon = draw(st.sampled_from([0.01, 0.3, 1, 4]))
    requirements, pairs, floors = [], {}, []

    def bound(s, t, exponent):
        pairs[s, t] = min(exponent, pairs.get((s, t), math.inf))

    if draw(st.booleans()):
        requirements.append(md.MetricPrivacy(epsilon, d))
        for s, t in itertools.permutations(range(n), 2):
            bound(s, t, epsilon * d[s, t])
    if draw(st.booleans()):
        requirements.append(md.ThresholdPrivacy("0.5", d, radius="0.4"))
        for s, t in itertools.permutations(range(n), 2):
            if d[s, t] <= 0.4:
                bound(s, t, 0.5)
    if draw(st.booleans()):
        graph = nx.gnp_random_graph(n, 0.5, seed=draw(st.integers(0, 99)))
        requirements.append(md.GraphPrivacy(2, graph))
        for s, t in graph.edges:
            bound(s, t, 2)
            bound(t, s, 2)
    if draw(st.booleans()):
        error = rng.random((draw(st.integers(1, 4)), n)).round(2)
        minimum = float((error @ prior).min()) * draw(st.sampled_from([0.3, 0.9, 0.999]))
        requirements.append(md.DistortionPrivacy(minimum, error))
        floors.append((minimum, error, prior))
    objective = draw(st.sampled_from(["expected", "worst"]))
    factors = [(s, t, math.exp(exponent)) for (s, t), exponent in pairs.items()]
    return md.Problem(prior, cost, requirements, objective), least(prior, cost, factors, floors, objective)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
@settings(max_examples=150)
@given(small_problems())
def test_small_problems_agree_with_a_program_written_row_by_row(case):
    problem, value = case
    cost = assert_proved(md.design(problem, isolated="release"))
    assert cost == pytest.approx(value, rel=1e-7, abs=1e-9)


@pytest.mark.usefixtures("loaded", "pdlp_here")
@pytest.mark.parametrize("objective", ["expected", "worst"])
def test_every_solver_gives_the_same_value(objective):
    prior, d, hamming = grid(3, "skew")
    requirements = [
        md.MetricPrivacy(0.9, d),
        md.DistortionPrivacy(0.999159, d),
        md.ThresholdPrivacy(1.2, d, radius=1.5),
    ]
    problem = md.Problem(prior, hamming, requirements, objective)
    best = md.design(problem).certificate
    for solver in ("highs", "highs-simplex", "highs-ipx", "highs-pdlp", "scipy", "cvxpy"):
        accuracy = 1e-5 if solver in ("highs-pdlp", "cvxpy") else 1e-8
        design = md.design(problem, solver=solver)
        assert assert_proved(design, gap=accuracy) == pytest.approx(best.cost, rel=accuracy), solver
        assert design.certificate.provenance["solver"] == solver


@each_row("rows", ["all", "reduced", "lazy"])
@each_row("solver", ["auto", "highs-simplex"])
def test_every_exact_row_policy_gives_the_same_value(rows, solver):
    prior, d, hamming = grid(4)
    problem = md.Problem(prior, hamming, [md.MetricPrivacy(0.6, d)])
    assert assert_proved(md.design(problem, solver=solver, rows=rows)) == pytest.approx(0.7883939237227082, rel=1e-11)


def test_near_rows_bracket_the_optimum_with_their_dilation():
    prior, d, _ = grid(5)
    design = md.design(md.Problem(prior, d, [md.MetricPrivacy(0.6, d)]), rows="near")
    certificate = design.certificate
    assert certificate.holds
    assert certificate.lower_bound < 1.2808251441630696 < certificate.expected_cost
    assert 1e-4 < certificate.relative_gap < 0.1
    assert 1.05 < certificate.provenance["stretch"] <= 1.0824


def test_secrets_at_distance_zero_get_the_same_row_and_the_bound_stays_tight():
    points = np.array([[0, 0], [0, 0], [1, 0], [1, 0], [1, 0], [3, 1.0]])
    d = md.distances.euclidean(md.Domain.from_points(points))
    cost = np.random.default_rng(0).random((6, 4))
    for objective in ("expected", "worst"):
        design = md.design(md.Problem(np.full(6, 1 / 6), cost, [md.MetricPrivacy(1, d)], objective))
        assert_proved(design)
        np.testing.assert_array_equal(design.channel.numerators[0], design.channel.numerators[1])
        np.testing.assert_array_equal(design.channel.numerators[2], design.channel.numerators[4])


def test_a_distance_of_zero_in_one_direction_is_proved_too():
    with pytest.warns(md.errors.MetricWarning):
        requirement = md.MetricPrivacy(1, [[0, 2, 1], [0, 0, 1], [1, 1, 0]])
    design = md.design(md.Problem([0.2, 0.3, 0.5], [[0, 1], [1, 0], [0.5, 0.5]], [requirement]))
    assert_proved(design)
    np.testing.assert_array_equal(design.channel.numerators[0], design.channel.numerators[1])


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
def test_without_requirements_every_secret_gets_its_cheapest_answer():
    cost = np.array([[3, 1, 2], [0.5, 4, 0.25]])
    assert assert_proved(md.design(md.Problem([0.5, 0.5], cost, []), isolated="release")) == 0.625
    assert assert_proved(md.design(md.Problem([0.5, 0.5], cost, [], "worst"), isolated="release")) == 1.0


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
def test_a_floor_at_the_largest_possible_value_releases_nothing():
    prior, d, hamming = grid(3)
    largest = (d @ prior).min()
    floor = Fraction(float(largest)) * (1 - Fraction(1, 10**12))
    for minimum in (floor, float(largest) * (1 - 1e-6)):
        design = md.design(md.Problem(prior, hamming, [md.DistortionPrivacy(minimum, d)]))
        assert_proved(design, gap=1e-7)


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
@each_row("epsilon", [1e-3, 0.05, 4, 8, 20, 60, 400])
def test_extreme_epsilons_are_certified(epsilon):
    prior, d, hamming = grid(3)
    for cost in (d, hamming):
        certificate = md.design(md.Problem(prior, cost, [md.MetricPrivacy(epsilon, d)])).certificate
        assert certificate.holds
        assert certificate.relative_gap <= 1e-6


def test_priors_with_zeros_and_specks():
    prior, d, _ = grid(4)
    for speck in (0.0, 1e-12, 1e-300):
        speckled = np.where(np.arange(16) % 3 == 0, speck, prior)
        assert_proved(md.design(md.Problem(speckled / speckled.sum(), d, [md.MetricPrivacy(0.6, d)])))


def fake(monkeypatch, answer):
    def back_end(method):
        return lambda program, options, start=None: answer(program)

    monkeypatch.setattr("mechdesign.solve._highs.back_end", back_end)


def test_a_solver_that_returns_garbage_is_caught(monkeypatch):
    prior, d, _ = grid(3)
    problem = md.Problem(prior, d, [md.MetricPrivacy(0.6, d)])
    rng = np.random.default_rng(0)
    garbage = {
        "noise": lambda p: (rng.random(p.columns), rng.random(p.rows)),
        "nan": lambda p: (np.full(p.columns, np.nan), np.zeros(p.rows)),
        "negative": lambda p: (-np.ones(p.columns), np.zeros(p.rows)),
        "zeros": lambda p: (np.zeros(p.columns), np.zeros(p.rows)),
        "short": lambda p: (np.zeros(1), np.zeros(1)),
        "identity": lambda p: (np.eye(9).ravel(), np.zeros(p.rows)),
        "nothing": lambda p: (None, None),
    }
    for make in garbage.values():
        fake(monkeypatch, lambda p, make=make: Answer(Status.OPTIMAL, *make(p), 1, "optimal", "fake 1.0"))
        with pytest.raises(SolverError):
            md.design(problem, solver="highs-simplex")
        # If the solver was chosen automatically, the block method takes over.
        certificate = md.design(problem).certificate
        assert certificate.provenance["solver"] == "block"
        assert "highs-simplex" in certificate.provenance["tried"]
        assert certificate.relative_gap <= 1e-9


def test_after_an_early_stop_garbage_becomes_a_certified_constant(monkeypatch):
    prior, d, _ = grid(3)
    problem = md.Problem(prior, d, [md.MetricPrivacy(0.6, d), md.DistortionPrivacy(0.5, d)])
    rng = np.random.default_rng(0)
    for x in (None, "noise"):
        fake(
            monkeypatch,
            lambda p, x=x: Answer(
                Status.TIME_LIMIT,
                None if x is None else rng.random(p.columns),
                rng.standard_normal(p.rows),
                1,
                "",
                "fake",
            ),
        )
        design = md.design(problem)
        assert design.certificate.holds
        assert design.certificate.expected_cost <= (prior @ d).min() * (1 + 1e-12)
        assert design.certificate.lower_bound <= 0.7831745084659216
        assert design.status == Status.TIME_LIMIT.value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solver", "k", "limit"), [("highs-ipx", 10, 0.5), ("highs-simplex", 8, 0.5), ("block", 12, 0.2)]
)
def test_the_time_limit_takes_effect(solver, k, limit):
    prior, d, hamming = grid(k, "skew")
    problem = md.Problem(prior, hamming, [md.MetricPrivacy(0.6, d)])
    design = md.design(problem, solver=solver, time_limit=limit)
    assert design.certificate.holds
    assert design.certificate.relative_gap > 1e-3
    assert design.status == Status.TIME_LIMIT.value
    assert design.certificate.provenance["solve_seconds"] < 20


def test_a_stop_by_the_user_still_gives_a_certified_channel(monkeypatch):
    prior, d, _ = grid(3)
    fake(monkeypatch, lambda p: Answer(Status.INTERRUPTED, None, None, 0, "interrupted", "fake"))
    design = md.design(md.Problem(prior, d, [md.MetricPrivacy(0.6, d)]))
    assert design.certificate.holds
    assert design.certificate.lower_bound == 0
    assert design.status == Status.INTERRUPTED.value


def test_progress_is_reported():
    prior, d, _ = grid(4)
    moments = []
    md.design(md.Problem(prior, d, [md.MetricPrivacy(0.6, d)]), rows="lazy", progress=moments.append)
    assert any("round 1" in moment.stage for moment in moments)
    assert moments[-1].stage == "certifying"


def test_wrong_arguments_are_named():
    problem = md.Problem([0.5, 0.5], 1 - np.eye(2), [md.MetricPrivacy(1, 1 - np.eye(2))])
    wrong = [
        ("solver", {"solver": "gurobbi"}),
        ("options.extra.no_such_option", {"options": {"no_such_option": 1}}),
        *[(name, {name: value}) for name, value in [("tolerance", 0), ("time_limit", -1), ("rows", "few")]],
    ]
    rows = [Mistake(str(given), partial(md.design, problem, **given), place) for place, given in wrong]
    assert_refused([*rows, Mistake("no problem", partial(md.design, [0.5, 0.5]), "problem")])


@pytest.mark.usefixtures("pdlp_here")
def test_a_loose_tolerance_still_gives_a_correct_gap():
    prior, d, _ = grid(3)
    certificate = md.design(
        md.Problem(prior, d, [md.MetricPrivacy(0.6, d)]), solver="highs-pdlp", tolerance=1e-2
    ).certificate
    assert certificate.holds
    assert certificate.lower_bound <= 0.7831745084659216 <= certificate.expected_cost * (1 + 1e-12)
