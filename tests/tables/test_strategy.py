"""Strategies: their interface, their exact privacy, and the agreement of expected and released errors."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from releases import release_by, strategy_of

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.mechanisms._discrete import DiscreteGaussian, DiscreteLaplace
from mechdesign.tables._domain import Domain
from mechdesign.tables._files import load
from mechdesign.tables._policy import Policy
from mechdesign.tables._queries._linear import Histogram
from mechdesign.tables._strategy import half_widths
from mechdesign.tables._strategy_choice import build_hierarchical_levels, build_ordered_hierarchical_levels
from mechdesign.tables._workload import MatrixQueries

_LINE = Domain({"x": range(6)})
_TABLE = Domain({"age": range(3), "sex": ["f", "m"]})
_NO_POLICY = [(value, None) for value in range(6)]

_POLICIES = {
    "full": Policy.full(_LINE),
    "line": Policy.threshold(_LINE, 1),
    "threshold": Policy.threshold(_LINE, 3),
    "partition": Policy.partition(_LINE, [0, 1, 0, 1, 0, 1]),
    "some protected": Policy.graph(_LINE, [(0, 2), (3, 4)]),
    "unbounded": Policy.threshold(_LINE, 1, unbounded=True),
    "no policy": Policy.graph(_LINE, _NO_POLICY, unbounded=True),
    "attributes": Policy.attribute(_TABLE),
}
_WORKLOADS = {
    "ranges": "ranges",
    "prefixes": "prefixes",
    "one range": [(1, 4)],
    "two queries": np.array([[1, 1, 0, 0, 0, 0], [0, 1, 2, 0, 0, -1]]),
    "real": np.array([[0.3, 0.1, 0, 0, 0, 0], [0, 1.7, 2, 0, 0, -1]]),
}
_NOISES = {"gaussian": {"rho": 0.5}, "laplace": {"epsilon": 1.0}}


@pytest.mark.parametrize("policy", _POLICIES.values(), ids=_POLICIES)
def test_contract(policy):
    for workload, noise in itertools.product(_WORKLOADS.values(), _NOISES):
        _hold_the_contract(workload, policy, noise)


def _hold_the_contract(workload, policy, noise):
    if isinstance(workload, list):
        found = strategy_of(None, policy, noise=noise, positions=workload)
    else:
        found = strategy_of(workload, policy, noise=noise)
    budget = _NOISES[noise]
    edges = policy.secret_graph.edges()
    values = np.vstack([np.eye(6, dtype=object), np.zeros(6, dtype=object)]).astype(int).astype(object)
    # The exact sensitivity, by hand, in Python's integers.
    changes = [found.rows.astype(object) @ (values[x] - values[y]) for x, y in edges]
    norm = 1 if noise == "laplace" else 2
    assert found.power == max(sum(abs(entry) ** norm for entry in change) for change in changes)
    # `matrix` says the same on every edge, and lies in their span.
    moves = np.array([values[x] - values[y] for x, y in edges], dtype=float)
    np.testing.assert_allclose(found.matrix @ moves.T, np.array(changes, dtype=float).T * float(found.unit), atol=1e-6)
    outside = np.eye(6) - np.linalg.pinv(moves) @ moves
    np.testing.assert_allclose(found.matrix @ outside, 0, atol=1e-6 * np.abs(found.matrix).max())
    # The error is that of least squares with the stated noise, recomputed from the matrix alone.
    inside = found.workload.matrix() @ np.linalg.pinv(moves) @ moves
    trace = np.sum((inside @ np.linalg.pinv(found.matrix, rcond=1e-13)) ** 2)
    variance = found.sensitivity**2 * (2 / 1.0**2 if noise == "laplace" else 1 / (2 * 0.5))
    assert found.error(**budget) == pytest.approx(variance * trace, rel=1e-3)
    assert found.lower_bound(**budget) <= found.error(**budget)
    assert found.candidates[0][0] == found.kind
    assert found.candidates[0][2] == min(ratio for *_, ratio in found.candidates)
    if noise == "gaussian":
        assert found.error(**budget) <= found.lower_bound(**budget) * (1 + 1e-4)
    law = found.law(**budget)
    # ε = Δ₁/b and ρ = Δ₂²/(2σ²), as fractions.
    assert found.power / law.scale == 1 if norm == 1 else found.power / (2 * law.sigma_squared) == Fraction(1, 2)
    # Without noise the answers are decoded exactly.
    counts = np.array([3, 0, 41, 7, 1, 12])
    totals = counts - found.space.histogram(found.space.paths[:-1].T @ counts)
    answers = found.workload.answers(found.estimate(found.rows @ counts, totals))
    np.testing.assert_allclose(answers, found.workload.matrix() @ counts, atol=1e-6)


@pytest.mark.parametrize("noise", _NOISES)
def test_every_kind_can_be_asked_for(noise):
    policy = Policy.threshold(Domain({"x": range(16)}), 4)
    best, budget = strategy_of("ranges", policy, noise=noise), _NOISES[noise]
    for kind in ("optimal", "identity", "prefix", "hierarchical", "ordered-hierarchical"):
        found = strategy_of("ranges", policy, noise=noise, kind=kind)
        assert (found.kind, len(found.candidates)) == (kind, 1)
        assert best.error(**budget) <= found.error(**budget) * (1 + 1e-9), kind
        assert best.lower_bound(**budget) == pytest.approx(found.lower_bound(**budget), rel=1e-6), kind


def test_balanced_budgets_are_better_than_equal_ones():
    from mechdesign.tables._optimal_strategies import edge_space
    from mechdesign.tables._strategy_choice import candidate, program
    from mechdesign.tables._workload import all_ranges

    policy = Policy.full(Domain({"x": range(32)}))
    programme = program(all_ranges(32), edge_space(32, policy.secret_graph.edges()), (32,), 1e-3)
    for norm in (1, 2):
        balanced = candidate("hierarchical", programme, norm)
        equal = candidate("hierarchical", programme, norm, balance=False)
        assert balanced.error < equal.error * 0.999


def test_what_the_policy_leaves_open_is_exact():
    blocks = Policy.partition(_LINE, [0, 0, 0, 1, 1, 1])
    found = strategy_of([(0, 2), (3, 5), (0, 5)], blocks)
    assert found.kind == "exact"
    assert found.rows.shape == (0, 6)
    assert found.error(rho=1) == found.lower_bound(rho=1) == 0
    assert found.law(rho=1) is None
    assert "2 components" in found.exact_part
    np.testing.assert_array_equal(found.exact_rows, [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    # Nothing is decoded: the totals of the components answer all queries.
    counts = np.array([5, 0, 2, 1, 1, 4])
    np.testing.assert_array_equal(found.estimate(np.zeros(0), counts), counts)
    assert found.decoding.shape == (found.space.rank, 0)
    np.testing.assert_array_equal(found.standard_errors(rho=1), np.zeros(3))
    mixed = strategy_of([(0, 2), (0, 3)], blocks)
    deviations = mixed.standard_errors(rho=1)
    assert deviations[0] == pytest.approx(0, abs=1e-6)
    assert deviations[1] > 0.1


def test_a_query_that_cannot_be_changed_by_an_isolated_value():
    found = strategy_of(np.eye(6)[[5]], Policy.graph(_LINE, [(0, 1)]))
    assert found.kind == "exact"


def test_no_edges_protect_nothing():
    assert strategy_of("identity", Policy.partition(_LINE, list(range(6)))).kind == "exact"


def test_the_bound_is_the_same_for_both_noises():
    policy = Policy.threshold(_LINE, 2)
    gaussian, laplace = strategy_of("ranges", policy), strategy_of("ranges", policy, noise="laplace")
    assert laplace.lower_bound(epsilon=1) == pytest.approx(2 * gaussian.lower_bound(rho=0.5), rel=1e-12)


def test_the_line_is_best_answered_by_prefixes():
    found = strategy_of("prefixes", Policy.threshold(_LINE, 1), noise="laplace")
    assert found.kind in ("prefix", "optimal")
    assert found.error(epsilon=1) == pytest.approx(2 * 5, rel=1e-6)
    assert found.lower_bound(epsilon=1) == pytest.approx(2 * 5, rel=1e-6)


def test_a_release_says_what_it_is():
    ledger, policy = md.Ledger(), Policy.threshold(_LINE, 1)
    release = release_by(strategy_of("prefixes", policy), [0, 5, 5, 2], rho="0.1", ledger=ledger, rng=1)
    assert len(release) == 6
    assert release.rho == Fraction(1, 10)
    assert release.epsilon is None
    assert release.description.rehearsal
    (entry,) = ledger.entries
    assert (entry.what, entry.protects) == (release.description.what, policy.neighbours)
    assert (entry.epsilon, entry.rho) == (None, Fraction(1, 10))
    # The last cumulative count is the number of records.
    assert release.standard_errors[-1] == pytest.approx(0, abs=1e-6)
    assert release.answers[-1] == pytest.approx(4, abs=1e-6)
    assert "number of records" in release.description.remarks[0]
    np.testing.assert_array_equal(release.labels["last"], np.arange(6))


def test_a_release_is_read_as_it_was_saved(tmp_path):
    release = release_by(strategy_of([(0, 3), (2, 5)], Policy.full(_LINE)), [0, 5, 5, 2], rho=1)
    md.save(release, tmp_path, report=False)
    read = load(tmp_path)
    np.testing.assert_array_equal(read.answers, release.answers)
    np.testing.assert_array_equal(read.labels["first"], [0, 2])
    assert read.description == release.description


def test_nothing_is_drawn_when_the_ledger_refuses():
    class RefusedError(Exception):
        pass

    class Ledger(md.Ledger):
        def spend(self, *arguments, **keywords):
            raise RefusedError

    rng = np.random.default_rng(1)
    state = rng.bit_generator.state
    with pytest.raises(RefusedError):
        release_by(strategy_of("prefixes", Policy.threshold(_LINE, 1)), [0], rho=1, ledger=Ledger(), rng=rng)
    assert rng.bit_generator.state == state


def test_exact_answers_cost_nothing():
    ledger = md.Ledger(epsilon="1e-9")
    blocks = Policy.partition(_LINE, [0, 0, 0, 1, 1, 1])
    release = release_by(strategy_of([(0, 2)], blocks), [0, 1, 5], rho=1, ledger=ledger)
    assert release.answers.tolist() == [2]
    assert ledger.remaining_epsilon == Fraction("1e-9")
    assert release.rho == 0
    assert (release.low == release.high).all()


@pytest.mark.parametrize(
    "law", [DiscreteLaplace(2), DiscreteLaplace(4096), DiscreteGaussian(4), DiscreteGaussian(2**24)]
)
def test_intervals_hold_sums_of_noise(law):
    rng = np.random.default_rng(2)
    weights = rng.normal(size=(8, 12)) * (rng.random((8, 12)) < 0.4)
    weights[0] = np.eye(12)[3]
    sums = weights @ law.sample(12 * 20_000, rng).reshape(12, -1)
    errors = law.standard_deviation * np.linalg.norm(weights, axis=1)
    for level in ("0.5", "0.95", "0.999"):
        widths = half_widths(law, errors, 12, Fraction(level))
        inside = (np.abs(sums) <= widths[:, None]).mean(axis=1)
        assert inside.min() >= float(level) - 4 * np.sqrt(float(level) * (1 - float(level)) / 20_000), level


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.99, 0.999])
def test_intervals_hold_the_extremes_of_laplace_noise_and_are_close(level):
    law, outside = DiscreteLaplace(2**30), 1 - level
    (width,) = half_widths(law, np.array([law.standard_deviation]), 1, Fraction(str(level))) / law.standard_deviation
    # The sum is one variable, two equal ones, or many; its variance is 1.
    one, two, many = (
        math.exp(-math.sqrt(2) * width),
        (1 + width) * math.exp(-2 * width),
        math.erfc(width / math.sqrt(2)),
    )
    assert max(one, two, many) <= outside
    if level >= 0.95:
        assert width <= 1.12 * -math.log(outside) / math.sqrt(2)


def test_marginals_of_two_attributes():
    policy = Policy.attribute(_TABLE)
    release = release_by(strategy_of("marginals", policy), [(0, "f"), (2, "m")], rho=100, rng=3)
    assert release.labels["query"].tolist() == ["age = 0", "age = 1", "age = 2", "sex = f", "sex = m"]
    np.testing.assert_allclose(release.answers, [1, 0, 1, 1, 1], atol=0.6)


def test_a_difference_too_small_for_the_gram_matrix_is_protected() -> None:
    """An answer that two neighbours share but for 1e-9 tells them apart all the same if it is released exactly."""
    policy = Policy.full(Domain({"x": range(3)}))
    for (noise, budget), difference in itertools.product(_NOISES.items(), (1e-9, 2**-52)):
        found = strategy_of([[1, 1, 1 + difference]], policy, noise)
        released = release_by(found, [0, 1, 2], **budget)
        assert found.power > 0, (noise, difference)
        assert (released.standard_errors > 0).all(), (noise, difference)
        assert released.description.mechanism != "none"
        assert found.lower_bound(**budget) > 0
        assert strategy_of([[0.1, 0.1, 0.1]], policy, noise).kind == "exact"


def test_what_is_released_exactly_depends_on_the_totals_of_components_only() -> None:
    policy = Policy.partition(Domain({"x": range(4)}), [0, 0, 1, 1])
    found = strategy_of([[1, 1, 0, 0], [0, 0, 2, 2]], policy, "laplace")
    # Were another query taken for unprotected, its answer would be the same for all tables with these totals.
    forged = replace(found, workload=MatrixQueries([[1, 0, 3, 0]]))
    first, second = (release_by(forged, table, epsilon=1).answers for table in ([0, 1, 2, 3], [1, 1, 3, 3]))
    assert first.tolist() == second.tolist()


_POLICY = Policy.threshold(_LINE, 1)


def test_budgets_the_noise_cannot_serve_are_named() -> None:
    for noise, budget in (("laplace", {"epsilon": 1e-12}), ("gaussian", {"rho": 1e-40})):
        with pytest.raises(InputError, match=f"^{next(iter(budget))}: is too small"):
            release_by(strategy_of("identity", _POLICY, noise), [0], **budget)
    for noise, budget in (("laplace", {"epsilon": "1e-300"}), ("gaussian", {"rho": "1e-400"})):
        found = strategy_of("identity", _POLICY, noise)
        for error in (found.error, found.lower_bound):
            with pytest.raises(InputError, match=f"^{next(iter(budget))}: is too small"):
                error(**budget)
    with pytest.raises(InputError, match="confidence"):
        release_by(strategy_of("identity", _POLICY), [0], rho=1, confidence="0.9999999999999999999")
    with pytest.raises(InputError, match="tolerance"):
        strategy_of("identity", _POLICY, tolerance="tight")


def test_the_limit_is_one_of_continuous_noise() -> None:
    """Most of the noise on an integer is zero at a large ε, which no noise on a fine lattice can be."""
    limit = strategy_of("identity", _POLICY, "laplace").lower_bound
    for epsilon, passes in ((1, False), (10, True)):
        errors = Histogram().release([0], _POLICY, epsilon=epsilon).standard_errors
        assert ((errors**2).sum() < limit(epsilon=epsilon)) == passes


def test_levels_of_trees_are_blocks_of_each_width_below_theta() -> None:
    for size, theta, fanout in ((16, 4, 2), (16, 4, 4), (16, 5, 2), (27, 9, 3), (10, 2, 2)):
        levels = build_ordered_hierarchical_levels(size, theta, fanout)
        widths = [fanout**power for power in range(20) if fanout**power < theta]
        assert len(levels) == 1 + len(widths)
        for level, width in zip(levels[1:], widths[::-1], strict=True):
            assert level.sum(axis=1).max() == width
            assert (level.sum(axis=0) == 1).all()
    for size, fanout in ((16, 2), (16, 4), (17, 2), (27, 3)):
        levels = build_hierarchical_levels(size, fanout)
        assert len(levels) == 1 + sum(fanout**power < size for power in range(20))
