import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import mechdesign as md
from mechdesign.errors import InputError, MissingDependencyError, SolverError
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


@pytest.mark.parametrize("case", REFERENCE["optimal_expected_cost"], ids=lambda c: f"{c['k']}-{c['cost']}")
def test_reference_values(case):
    prior, d, hamming = grid(case["k"])
    cost = d if case["cost"] == "euclidean" else hamming
    design = md.design(md.Problem(prior, cost, [md.MetricPrivacy(case["eps"], d)]))
    assert assert_proved(design) == pytest.approx(case["value"], rel=1e-12)


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
@pytest.mark.parametrize(
    "case",
    REFERENCE["privacy_games"],
    ids=lambda c: "-".join(str(c[key]) for key in ("k", "prior", "program", "eps", "d_m")),
)
def test_reference_privacy_games(case):
    prior, d, hamming = grid(case["k"], case["prior"])
    program = case["program"]
    requirements = []
    if program in ("differential", "joint", "joint_worst"):
        requirements.append(md.MetricPrivacy(case["eps"], d))
    if program == "threshold":
        requirements.append(md.ThresholdPrivacy(case["eps"], d, radius=case["radius"]))
    if program in ("distortion", "joint", "joint_worst"):
        requirements.append(md.DistortionPrivacy(case["d_m"], d))
    objective = "worst" if program == "joint_worst" else "expected"
    design = md.design(md.Problem(prior, hamming, requirements, objective))
    assert assert_proved(design) == pytest.approx(case["value"], rel=1e-11)


@pytest.mark.parametrize(("n", "epsilon"), [(2, 0.1), (3, 1), (6, "2.5"), (10, 5)])
def test_k_ary_randomised_response_is_optimal_on_the_complete_graph(n, epsilon):
    cost = 1 - np.eye(n)
    design = md.design(md.Problem(np.full(n, 1 / n), cost, [md.GraphPrivacy(epsilon, nx.complete_graph(n))]))
    expected = (n - 1) / (n - 1 + math.exp(float(epsilon)))
    assert assert_proved(design) == pytest.approx(expected, rel=1e-9)
    assert design.certificate.epsilon[0] == pytest.approx(float(epsilon), rel=1e-9)


@pytest.mark.parametrize(("epsilon", "power"), [(0.1, 1), (0.7, 1), (2, 2)])
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


def reference_value(prior, cost, pairs, floors, objective):
    """Solve equations (11)/(12) and (21)-(24) row by row with SciPy, without code of the package."""
    n, m = cost.shape
    width = n * m + m * len(floors) + 1

    def row(entries):
        made = np.zeros(width)
        for index, value in entries:
            made[index] += value
        return made

    equal = [row([(s * m + o, 1) for o in range(m)]) for s in range(n)]
    upper, right = [], []
    for (s, t), exponent in pairs.items():
        for o in range(m):
            upper.append(row([(s * m + o, math.exp(-exponent / 2)), (t * m + o, -math.exp(exponent / 2))]))
            right.append(0)
    for i, (minimum, error) in enumerate(floors):
        x = [n * m + i * m + o for o in range(m)]
        for o, guess in itertools.product(range(m), range(len(error))):
            upper.append(row([(x[o], 1), *((s * m + o, -prior[s] * error[guess, s]) for s in range(n))]))
            right.append(0)
        upper.append(row([(one, -1) for one in x]))
        right.append(-minimum)
    if objective == "worst":
        for s in range(n):
            upper.append(row([*((s * m + o, cost[s, o]) for o in range(m)), (width - 1, -1)]))
            right.append(0)
        objective_row = row([(width - 1, 1)])
    else:
        objective_row = row([(s * m + o, prior[s] * cost[s, o]) for s in range(n) for o in range(m)])
    limits = {"A_ub": np.array(upper), "b_ub": right} if upper else {}
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    solved = linprog(objective_row, A_eq=np.array(equal), b_eq=np.ones(n), method="highs", options=tight, **limits)
    assert solved.status == 0
    return solved.fun


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
        floors.append((minimum, error))
    objective = draw(st.sampled_from(["expected", "worst"]))
    return md.Problem(prior, cost, requirements, objective), reference_value(prior, cost, pairs, floors, objective)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
@settings(max_examples=150)
@given(small_problems())
def test_small_problems_agree_with_a_program_written_row_by_row(case):
    problem, value = case
    cost = assert_proved(md.design(problem, isolated="release"))
    assert cost == pytest.approx(value, rel=1e-7, abs=1e-9)


SOLVERS = [
    "highs",
    "highs-simplex",
    "highs-ipx",
    "highs-pdlp",
    "scipy",
    "scipy-ds",
    "scipy-ipm",
    "cvxpy",
    "cvxpy-scipy",
]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("objective", ["expected", "worst"])
def test_every_solver_gives_the_same_value(solver, objective):
    prior, d, hamming = grid(3, "skew")
    requirements = [
        md.MetricPrivacy(0.9, d),
        md.DistortionPrivacy(0.999159, d),
        md.ThresholdPrivacy(1.2, d, radius=1.5),
    ]
    problem = md.Problem(prior, hamming, requirements, objective)
    best = md.design(problem).certificate
    exact = solver.startswith(("highs", "scipy", "cvxpy-scipy")) and solver != "highs-pdlp"
    design = md.design(problem, solver=solver)
    assert_proved(design, gap=1e-8 if exact else 1e-5)
    value = design.certificate.expected_cost if objective == "expected" else design.certificate.worst_cost
    best_value = best.expected_cost if objective == "expected" else best.worst_cost
    assert value == pytest.approx(best_value, rel=1e-8 if exact else 1e-5)
    assert design.certificate.provenance["solver"] == solver


@pytest.mark.parametrize("rows", ["all", "reduced", "lazy"])
@pytest.mark.parametrize("solver", ["auto", "highs-simplex"])
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
@pytest.mark.parametrize("epsilon", [1e-3, 0.05, 4, 8, 20, 60, 400])
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


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"solver": "gurobbi"}, "solver"),
        ({"tolerance": 0}, "tolerance"),
        ({"tolerance": float("nan")}, "tolerance"),
        ({"time_limit": -1}, "time_limit"),
        ({"rows": "few"}, "rows"),
        ({"options": {"no_such_option": 1}}, "no_such_option"),
    ],
)
def test_bad_arguments_are_named(arguments, path):
    problem = md.Problem([0.5, 0.5], 1 - np.eye(2), [md.MetricPrivacy(1, 1 - np.eye(2))])
    with pytest.raises(InputError, match=path):
        md.design(problem, **arguments)


def test_a_problem_is_needed():
    with pytest.raises(InputError, match="problem"):
        md.design([0.5, 0.5])


def test_a_missing_solver_names_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    problem = md.Problem([0.5, 0.5], 1 - np.eye(2), [])
    with pytest.raises(MissingDependencyError, match="pip install cvxpy"):
        md.design(problem, solver="cvxpy", isolated="release")


def test_a_loose_tolerance_still_gives_a_correct_gap():
    prior, d, _ = grid(3)
    certificate = md.design(
        md.Problem(prior, d, [md.MetricPrivacy(0.6, d)]), solver="highs-pdlp", tolerance=1e-2
    ).certificate
    assert certificate.holds
    assert certificate.lower_bound <= 0.7831745084659216 <= certificate.expected_cost * (1 + 1e-12)
