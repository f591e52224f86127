"""Hard cases through `md.design` give a valid certificate or a typed error.

Each result is checked from its integers alone, in rationals. Its bracket is compared with the bracket of HiGHS on all
rows, or with a closed form.
"""

from __future__ import annotations

import decimal
import itertools
import math
import signal
from fractions import Fraction
from functools import partial

import networkx as nx
import numpy as np
import pytest
from long import mostly_long
from refusals import Mistake, assert_refused

import mechdesign as md
from mechdesign.errors import InfeasibleError, InputError
from mechdesign.model._problem import largest_distortion
from mechdesign.solve._contract import Status

# Some of these problems isolate secrets, or bound no pair.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")]

UNIT = 1 << 62
RESOLVED = 1e-12


def cells(columns, rows):
    x, y = np.meshgrid(np.arange(float(columns)), np.arange(float(rows)))
    return np.c_[x.ravel(), y.ravel()]


def bell(places):
    weights = np.exp(-((places - places.mean(axis=0)) ** 2).sum(axis=1) / 4)
    return weights / weights.sum()


def some(n, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(n))


def made(places, prior, epsilon, kind, share="0.6"):
    """Return a problem of a kind: metric, hamming, joint, distortion, or worst."""
    d = np.array(md.distances.euclidean(md.Domain.from_points(places)))
    hamming = 1.0 - np.eye(len(d))
    metric = md.MetricPrivacy(epsilon, d)
    floor = md.DistortionPrivacy(largest_distortion(prior, d) * Fraction(share), d)
    cost, requirements = {
        "metric": (d, [metric]),
        "hamming": (hamming, [metric]),
        "joint": (hamming, [metric, floor]),
        "distortion": (hamming, [floor]),
        "worst": (d, [metric]),
    }[kind]
    return md.Problem(prior, cost, requirements, "worst" if kind == "worst" else "expected")


def assert_right(problem, design):
    """Recompute the values of the certificate in rationals."""
    numerators = design.channel.numerators.astype(object)
    assert (numerators >= 0).all()
    assert (numerators.sum(axis=1) == UNIT).all()
    for requirement in problem.requirements:
        if isinstance(requirement, md.DistortionPrivacy):
            error = exactly(requirement.distance) * exactly(problem.prior)
            assert (error @ numerators).min(axis=0).sum() >= requirement.minimum * UNIT
            continue
        claim = requirement.claims()[0]
        for s, t, weight in zip(claim.sources, claim.targets, claim.weights.tolist(), strict=True):
            assert (numerators[s] <= growth(claim.epsilon * Fraction(weight)) * numerators[t]).all(), (s, t)
    costs = (exactly(problem.cost) * numerators).sum(axis=1) / UNIT
    cost = max(costs) if problem.objective == "worst" else exactly(problem.prior) @ costs
    certificate = design.certificate
    assert certificate.holds
    assert cost * (1 - Fraction(1, 10**14)) <= Fraction(certificate.cost) <= cost * (1 + Fraction(1, 10**13))
    assert 0 <= certificate.lower_bound <= certificate.cost


def exactly(array):
    return np.vectorize(Fraction, otypes=[object])(array)


def growth(exponent):
    if exponent > 60:
        return Fraction(10) ** 26
    with decimal.localcontext(decimal.Context(prec=60)):
        return Fraction((decimal.Decimal(exponent.numerator) / exponent.denominator).exp())


def assert_solved(problem, gap=1e-8, close=None):
    """Design by the block method to a gap of `gap`, and by default to `close`; compare both with HiGHS."""
    block = md.design(problem, solver="block", tolerance=1e-8, isolated="release")
    chosen = md.design(problem, tolerance=1e-8, isolated="release")
    for design, most in ((block, gap), (chosen, close if close is not None else gap)):
        assert_right(problem, design)
        # If the optimum is tiny relative to the costs, doubles resolve it only to a rounding error of the costs.
        least = RESOLVED * float(problem.cost.max()) / max(design.certificate.cost, 1e-300)
        assert design.certificate.relative_gap <= max(most, least), (design.certificate.relative_gap, design.status)
        assert (design.status == Status.OPTIMAL.value) == (design.certificate.relative_gap <= 1e-8)
    reference = md.design(problem, solver="highs-simplex", rows="all", isolated="release").certificate
    for certificate in (block.certificate, chosen.certificate):
        assert certificate.lower_bound <= reference.cost * (1 + 1e-9)
        assert certificate.cost >= reference.lower_bound * (1 - 1e-9)
    return chosen


@pytest.mark.parametrize("kind", ["metric", "joint", "worst"])
@pytest.mark.parametrize("epsilon", mostly_long([0.01, 2, 10, 0.1, 5, 20], 3))
def test_any_epsilon(epsilon, kind):
    """For ε d >= 5 between neighbours, the smallest gap of the block method depends on the processor's rounding."""
    places = cells(4, 4)
    assert_solved(made(places, bell(places), epsilon, kind), 1e-7 if epsilon < 5 else 1e-6, 1e-7)


@pytest.mark.parametrize(
    ("side", "epsilon", "kind"), mostly_long([(5, 10, "metric"), (6, 5, "joint"), (8, 20, "metric")], 2)
)
def test_large_epsilons_on_larger_grids(side, epsilon, kind):
    places = cells(side, side)
    problem = made(
        places, bell(places) * np.linspace(1, 2, side**2) / (bell(places) @ np.linspace(1, 2, side**2)), epsilon, kind
    )
    design = md.design(problem, tolerance=1e-8, isolated="release")
    assert design.certificate.relative_gap <= 1e-6
    if side == 5:
        assert_right(problem, design)


@pytest.mark.parametrize("kind", mostly_long(["joint", "worst", "metric", "hamming"], 2))
@pytest.mark.parametrize("name", ["zeros", "specks", "both", "least", "one", "nearly one"])
def test_lopsided_priors(name, kind):
    places, third = cells(4, 4), np.arange(16) % 3
    prior = {
        "zeros": np.where(third == 0, 0.0, bell(places)),
        "specks": np.where(third == 0, 1e-12, bell(places)),
        "both": np.where(third == 0, 0.0, np.where(third == 1, 1e-12, bell(places))),
        "least": np.where(third == 0, 1e-300, bell(places)),
        "one": (np.arange(16) == 5) * 1.0,
        "nearly one": np.where(np.arange(16) == 5, 1.0, 1e-12),
    }[name]
    assert_solved(made(places, prior / prior.sum(), 0.6, kind))


@pytest.mark.parametrize("kind", mostly_long(["hamming", "joint"]))
@pytest.mark.parametrize(("radius", "gap"), [(0.0, 1e-8), (1e-8, 2e-7), (1e-6, 2e-6), (1e-3, 1e-8)])
def test_clusters(radius, gap, kind):
    """Bounds of e^1e-8 within clusters hardly allow rows to differ. If nothing else works, these rows become equal."""
    rng = np.random.default_rng(5)
    places = np.repeat(rng.random((4, 2)) * 4, 4, axis=0) + radius * rng.standard_normal((16, 2))
    assert_solved(made(places, some(16), 0.6, kind), gap)


def test_everything_in_one_place():
    for objective in ("expected", "worst"):
        problem = md.Problem(some(6), 1 - np.eye(6), [md.MetricPrivacy(1, np.zeros((6, 6)))], objective)
        assert_solved(problem, 1e-12)


@pytest.mark.parametrize("kind", ["joint", "distortion"])
@pytest.mark.parametrize("share", ["0.999", "0.999999", "0.999999999", "1"])
def test_floors_up_to_the_largest_possible(share, kind):
    """The block method solves floors up to 1 − 1e-6 of the largest one. Above, it is valid, and HiGHS solves."""
    problem = made(cells(4, 4), some(16), 0.6, kind, share)
    assert_solved(problem, 1e-7 if Fraction(share) < Fraction("0.9999999") else 1.0, 1e-7)


@pytest.mark.parametrize("excess", ["1e-3", "1e-6", "1e-9", "1e-15"])
def test_floors_above_the_largest_possible_are_refused(excess):
    places = cells(4, 4)
    d = np.array(md.distances.euclidean(md.Domain.from_points(places)))
    largest = float(largest_distortion(bell(places), d))
    with pytest.raises(InfeasibleError, match=f"the largest possible error, releasing nothing, is {largest:.12g}"):
        made(places, bell(places), 0.6, "joint", 1 + Fraction(excess))


@pytest.mark.parametrize("epsilon", [0.1, 5])
def test_graphs_in_several_parts(epsilon):
    places = cells(4, 4)
    d, prior = np.array(md.distances.euclidean(md.Domain.from_points(places))), bell(places)
    parts = [nx.path_graph(5), nx.complete_graph(4), nx.empty_graph(3), nx.cycle_graph(4)]
    graph = md.GraphPrivacy(epsilon, nx.disjoint_union_all(parts))
    floor = md.DistortionPrivacy(largest_distortion(prior, d) / 2, d)
    assert_solved(md.Problem(prior, d, [graph]))
    assert_solved(md.Problem(prior, d, [graph], "worst"), 1e-6, 1e-8)
    assert_solved(md.Problem(prior, 1 - np.eye(16), [graph, floor]), 1e-7, 1e-8)


@pytest.mark.parametrize("epsilon", [1, 20])
def test_thresholds_that_leave_secrets_alone(epsilon):
    places = np.vstack([cells(5, 3), [[40.0, 40.0]]])
    d = np.array(md.distances.euclidean(md.Domain.from_points(places)))
    floor = md.DistortionPrivacy(largest_distortion(bell(places), d) / 2, d)
    assert_solved(md.Problem(some(16), d, [md.ThresholdPrivacy(epsilon, d, 1.5)]), 1e-6)
    assert_solved(md.Problem(some(16), d, [md.ThresholdPrivacy(epsilon, d, 0.5)]))
    assert_solved(md.Problem(bell(places), d, [md.ThresholdPrivacy(epsilon, d, 0.5), floor]))


@pytest.mark.parametrize(("n", "m"), [(16, 3), (16, 1), (5, 25), (2, 9), (1, 7), (1, 1)])
def test_unequal_numbers_of_secrets_and_observables(n, m):
    rng = np.random.default_rng(10 * n + m)
    places, answers = rng.random((n, 2)) * 4, rng.random((m, 2)) * 4
    cost = np.sqrt(((places[:, None] - answers) ** 2).sum(axis=2))
    d = np.array(md.distances.euclidean(md.Domain.from_points(places)))
    metric, prior = md.MetricPrivacy(0.6, d), some(n)
    floor = md.DistortionPrivacy(largest_distortion(prior, d) * Fraction("0.7"), d)
    assert_solved(md.Problem(prior, cost, [metric]))
    assert_solved(md.Problem(prior, cost, [metric, floor]))
    assert_solved(md.Problem(prior, cost, [metric], "worst"))


@pytest.mark.parametrize(
    "name", ["zero", "constant", "1e12", "1e-12", "1e150", "unwanted", "twice", "spread", "offset"]
)
def test_any_costs(name):
    places = cells(4, 4)
    d = np.array(md.distances.euclidean(md.Domain.from_points(places)))
    cost = {
        "zero": 0 * d,
        "constant": 0 * d + 3,
        "1e12": 1e12 * d,
        "1e-12": 1e-12 * d,
        "1e150": 1e150 * d,
        "unwanted": np.hstack([d, np.full((16, 3), 1e3)]),
        "twice": np.hstack([d, d[:, :4]]),
        "spread": d * 10.0 ** np.linspace(-6, 6, 16)[:, None],
        "offset": d + 1e9,
    }[name]
    metric = md.MetricPrivacy(0.6, d)
    floor = md.DistortionPrivacy(largest_distortion(bell(places), d) / 2, d)
    assert_solved(md.Problem(bell(places), cost, [metric]))
    assert_solved(md.Problem(bell(places), cost, [metric, floor]))
    if name == "unwanted":
        used = md.design(md.Problem(bell(places), cost, [metric]), solver="block").channel.numerators[:, 16:]
        assert used.max() <= 1e-6 * UNIT


@pytest.mark.parametrize("unit", [1e90, 1e12, 1e-12, 1e-90])
def test_any_unit_of_length(unit):
    places = cells(4, 4)
    for kind in ("metric", "joint"):
        alike = made(places, bell(places), Fraction("0.6"), kind)
        scaled = made(places * unit, bell(places), Fraction("0.6") / Fraction(unit), kind)
        cost = md.design(alike, solver="block", tolerance=1e-8).certificate.cost
        design = md.design(scaled, solver="block", tolerance=1e-8)
        assert design.certificate.relative_gap <= 1e-8
        assert design.certificate.cost / (unit if kind == "metric" else 1) == pytest.approx(cost, rel=2e-8)


@pytest.mark.parametrize("solver", ["block", "auto"])
@pytest.mark.parametrize("epsilon", [0.001, 0.5, 3, 20])
def test_two_secrets_answer_at_random(epsilon, solver):
    """Randomised response has the error probability 1/(1 + e^ε), for the expected and for the worst cost."""
    hamming = 1 - np.eye(2)
    for prior, objective in (([0.5, 0.5], "expected"), ([0.3, 0.7], "worst")):
        problem = md.Problem(prior, hamming, [md.MetricPrivacy(epsilon, hamming)], objective)
        design = md.design(problem, solver=solver, tolerance=1e-8)
        assert_right(problem, design)
        certificate, error = design.certificate, 1 / (1 + math.exp(epsilon))
        assert certificate.relative_gap <= max(1e-8, RESOLVED / error)
        assert certificate.lower_bound <= error * (1 + 1e-12)
        assert certificate.cost >= error * (1 - 1e-12)


@pytest.mark.parametrize("limit", [1e-9, 1e-3, 0.05])
@pytest.mark.parametrize("kind", ["joint", "distortion", "worst"])
def test_the_shortest_time_limits_give_a_right_channel(kind, limit):
    places = cells(7, 7)
    problem = made(places, some(49), 0.6, kind)
    for solver in ("block", "auto"):
        design = md.design(problem, solver=solver, tolerance=1e-12, time_limit=limit)
        assert design.certificate.holds
        assert design.certificate.lower_bound <= design.certificate.cost
        assert (design.status == Status.OPTIMAL.value) == (design.certificate.relative_gap <= 1e-12)


@pytest.mark.parametrize("iteration", [0, 1, 7])
def test_a_stop_at_any_moment_gives_a_right_channel(iteration):
    places = cells(6, 6)
    problem = made(places, some(36), 0.6, "joint")

    def stop(moment):
        if moment.stage == "block interior point" and moment.iteration == iteration:
            signal.raise_signal(signal.SIGINT)

    design = md.design(problem, progress=stop)
    assert design.status == Status.INTERRUPTED.value
    assert design.certificate.holds


def test_a_stop_while_another_solver_works_leaves_the_first_answer():
    places = cells(6, 6)
    problem = made(places, some(36), 0.6, "metric")

    def stop(moment):
        if "takes over" in moment.stage:
            signal.raise_signal(signal.SIGINT)

    design = md.design(problem, tolerance=1e-15, progress=stop)
    assert design.status == Status.INTERRUPTED.value == design.certificate.provenance["status"]
    assert design.certificate.relative_gap <= 1e-8


@pytest.mark.parametrize("times", [1, 2])
def test_a_stop_while_the_only_answer_is_certified_keeps_it(times):
    """After the first Ctrl-C the certificate is completed. A second Ctrl-C in the meantime ends everything."""
    places = cells(6, 6)
    problem = made(places, some(36), 0.6, "metric")

    def stop(moment):
        if moment.stage == "certifying" or (times == 2 and moment.stage == "block interior point"):
            signal.raise_signal(signal.SIGINT)

    if times == 2:
        with pytest.raises(KeyboardInterrupt):
            md.design(problem, solver="block", progress=stop)
        return
    design = md.design(problem, solver="block", tolerance=1e-8, progress=stop)
    assert design.status == Status.INTERRUPTED.value == design.certificate.provenance["status"]
    assert design.certificate.relative_gap <= 1e-8


def test_arguments_of_the_wrong_kind_are_refused_and_numbers_may_be_exact():
    hamming = 1 - np.eye(3)
    design = partial(md.design, md.Problem(some(3), hamming, [md.MetricPrivacy(1, hamming)]), solver="block")
    wrong = [
        *[("threads", value) for value in (0, -1, 1.5, True, math.nan, "x")],
        *[("options", value) for value in (7, "x", [("symmetry", True)], {3: 4})],
        *[("progress", 7), ("solver", None), ("solver", 7), ("tolerance", "x"), ("time_limit", math.inf)],
    ]
    assert_refused(
        Mistake(f"{name}={value}", partial(design, **{name: value}), name, error=InputError) for name, value in wrong
    )
    for arguments in ({"tolerance": "1e-6"}, {"time_limit": "60"}, {"time_limit": 10**320}):
        assert design(**arguments).certificate.relative_gap <= 1e-6, arguments


def test_progress_says_iteration_bracket_and_time():
    places, moments = cells(6, 6), []
    md.design(made(places, bell(places), 0.6, "metric"), tolerance=1e-6, progress=moments.append)
    inner = [moment for moment in moments if moment.stage == "block interior point"]
    assert [moment.iteration for moment in inner] == list(range(len(inner)))
    assert all(later.seconds >= earlier.seconds for earlier, later in itertools.pairwise(inner))
    assert all(moment.lower <= moment.upper for moment in inner if moment.upper is not None)
    assert inner[-1].upper - inner[-1].lower <= 1e-6 * inner[-1].upper
    assert any("GB" in moment.stage for moment in moments)
