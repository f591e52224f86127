"""Polished multipliers prove better and always valid bounds, and poor multipliers do not invalidate the channel."""

import dataclasses

import numpy as np
import pytest
from rows import each_row

import mechdesign as md
from mechdesign.certify._bracket import lower_bound
from mechdesign.certify._evidence import Evidence
from mechdesign.model._channel import EXPONENT
from mechdesign.solve import _registry as registry
from mechdesign.solve import _solve as solvers
from mechdesign.solve._contract import Answer, Options, Status
from mechdesign.solve._registry import Solver
from mechdesign.synthesis._normal import find_bounded_pairs, normalise
from mechdesign.synthesis._recovery import lift_multipliers, polish_multipliers
from mechdesign.synthesis._rows import RowReduction, list_all_rows


def problem(epsilon, objective="expected", floor=None):
    d = md.distances.euclidean(md.Domain.grid(3, 3, 3.0, 3.0))
    requirements = [md.MetricPrivacy(epsilon, d)]
    if floor is not None:
        requirements.append(md.DistortionPrivacy(floor, d))
    weights = np.arange(9) % 4 + 1.0
    return md.Problem(weights / weights.sum(), d if floor is None else 1 - np.eye(9), requirements, objective)


def solved(asked):
    """Return the normal form, its multipliers from HiGHS, and the optimal value."""
    form = normalise(asked)
    program, inverse = RowReduction(list_all_rows(find_bounded_pairs(form, "all"), form.observables)).apply(form)
    solution = solvers.solve(program, "highs-simplex", Options(1e-10))
    return form, inverse.multipliers(solution.row_dual), inverse.bound(solution)


def proved(form, multipliers):
    """Return the lower bound that the verifier computes."""
    asked = form.problem
    constant = np.zeros(asked.cost.shape, dtype=np.int64)
    constant[:, 0] = 1 << EXPONENT
    stated = tuple(each for requirement in asked.requirements for each in requirement.stated())
    proof = lift_multipliers(form, multipliers)
    return lower_bound(Evidence(constant, EXPONENT, asked.prior, asked.cost, asked.objective, stated, proof))


@each_row("objective", ["expected", "worst"])
@each_row("floor", [None, "0.8"])
@each_row("share", [1e-9, 1e-6])
def test_multipliers_that_are_too_large_are_polished(objective, floor, share):
    form, good, value = solved(problem(3, objective, floor))
    noise = 1 + share * np.random.default_rng(0).random(good.values.size)
    poor = dataclasses.replace(good, values=good.values * noise)
    mended = polish_multipliers(form, poor)
    assert proved(form, mended) <= value * (1 + 1e-9)
    lost, left = value - proved(form, poor), value - proved(form, mended)
    assert lost > 0.1 * share * value
    assert left < lost / 5


def test_good_multipliers_stay_good():
    form, good, value = solved(problem(1))
    assert proved(form, polish_multipliers(form, good)) >= value * (1 - 1e-9)


def test_without_potentials_multipliers_stay():
    form, good, _ = solved(problem(1))
    blind = dataclasses.replace(good, potentials=None)
    assert polish_multipliers(form, blind) is blind


def test_any_multipliers_prove_a_valid_bound():
    form, good, value = solved(problem(1, floor="0.8"))
    rng = np.random.default_rng(1)
    for _ in range(20):
        wild = dataclasses.replace(
            good,
            values=rng.exponential(size=good.values.size) * (rng.random(good.values.size) < 0.2),
            floors=tuple(rng.random(grid.shape) for grid in good.floors),
            potentials=rng.standard_normal(form.groups),
        )
        assert proved(form, polish_multipliers(form, wild)) <= value * (1 + 1e-9)


@each_row("epsilon", [10, 20])
def test_steep_bounds_are_proved_by_the_simplex_method_too(epsilon):
    """At e^{ε d} of 10^8 HiGHS accepts poor multipliers; a magnified objective and polishing prove the optimum."""
    d = md.distances.euclidean(md.Domain.grid(4, 4, 4.0, 4.0))
    weights = np.arange(16) + 1.0
    asked = md.Problem(
        weights / weights.sum(), 1 - np.eye(16), [md.MetricPrivacy(epsilon, d), md.DistortionPrivacy("0.3", d)]
    )
    for rows in ("all", "reduced"):
        made = md.design(asked, solver="highs-simplex", rows=rows, tolerance=1e-7)
        assert made.certificate.holds
        assert made.certificate.relative_gap <= 1e-6


def test_a_channel_with_poor_multipliers_is_certified_with_a_larger_gap(monkeypatch):
    good = registry.find("highs-simplex").load()

    def forgetful(program, options, start=None):
        answer = good(program, options, None)
        wrong = np.where(np.arange(program.rows) % 7 == 0, 100.0, answer.row_dual)
        return Answer(Status.OPTIMAL, answer.x, wrong, 1, "Optimal", "forgetful 1.0")

    monkeypatch.setitem(registry._SOLVERS, "forgetful", Solver("forgetful", lambda: forgetful, "numpy"))
    made = md.design(problem(1), solver="forgetful")
    best = md.design(problem(1)).certificate
    assert made.certificate.holds
    assert made.certificate.cost == pytest.approx(best.cost, rel=1e-9)
    assert made.status is Status.STALLED
    assert "multipliers" in made.summary.message
    assert 0 <= made.certificate.lower_bound <= best.cost
