import dataclasses
from fractions import Fraction

import numpy as np
import pytest

import mechdesign as md
from mechdesign.model._problem import largest_distortion
from mechdesign.solve._contract import Status
from mechdesign.synthesis import _attempts as attempts
from mechdesign.synthesis import _blocks as block_program
from mechdesign.synthesis import _design as search
from mechdesign.synthesis import _rows as row_generation

pytestmark = pytest.mark.slow


def problem(k):
    domain = md.Domain.grid(k, k, float(k), float(k))
    d = md.distances.euclidean(domain)
    weights = np.arange(k * k) % 4 + 1.0
    return md.Problem(weights / weights.sum(), d, [md.MetricPrivacy(0.6, d)])


@pytest.fixture
def coarse(monkeypatch):
    """Replace the block method by one that stops early."""
    solve = block_program.solve_form_by_blocks

    def stopped(attempt, settings, deadline, start):
        found = solve(attempt, dataclasses.replace(settings, tolerance=6e-7), deadline)
        blurred = 0.999 * found.matrix + 0.001 / found.matrix.shape[1]
        blurred = dataclasses.replace(found, matrix=blurred)
        return blurred.with_facts(status=Status.STALLED, message="stalled on purpose")

    monkeypatch.setitem(search._STRATEGIES, "blocks", stopped)


def test_the_block_method_is_chosen_if_it_is_faster():
    assert md.design(problem(3)).certificate.provenance["solver"] == "highs-simplex"
    assert md.design(problem(6), tolerance=1e-6).certificate.provenance["solver"] == "block"
    assert md.design(problem(6), rows="lazy").certificate.provenance["solver"] == "highs-ipx"


@pytest.mark.parametrize("k", [5, 6, 7])
def test_the_tolerance_is_reached_if_that_takes_seconds(k):
    design = md.design(problem(k), tolerance=1e-9)
    assert design.certificate.relative_gap <= 1e-9
    assert design.status == "optimal"


@pytest.mark.usefixtures("coarse")
def test_another_solver_follows_an_automatic_choice():
    moments = []
    certificate = md.design(problem(6), tolerance=1e-9, progress=moments.append).certificate
    assert certificate.provenance["solver"] == "highs-ipx"
    assert "stalled on purpose" in certificate.provenance["plan"]
    assert any("takes over" in moment.stage for moment in moments)
    assert certificate.relative_gap <= 1e-9


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
@pytest.mark.parametrize("digits", [6, 12])
def test_near_the_largest_floor_another_solver_takes_over(digits, monkeypatch):
    monkeypatch.setattr(attempts, "MAX_SIMPLEX_ROWS", 100)
    monkeypatch.setattr(attempts, "_MAX_QUICK_LAZY_SIZE", 0)
    prior, distance = problem(5).prior, problem(5).cost
    floor = largest_distortion(prior, distance) * (1 - Fraction(1, 10**digits))
    asked = md.Problem(prior, 1 - np.eye(25), [md.DistortionPrivacy(floor, distance)])
    made = md.design(asked, tolerance=1e-9)
    assert made.certificate.relative_gap <= 1e-9
    if digits == 12:
        assert made.certificate.provenance["solver"] == "highs-ipx"
        assert md.design(asked, solver="block").certificate.relative_gap > 1e-3


@pytest.mark.usefixtures("coarse")
def test_a_solver_chosen_by_the_caller_is_not_replaced():
    design = md.design(problem(6), solver="block")
    assert design.certificate.holds
    assert design.certificate.relative_gap > 1e-6
    assert design.status == Status.STALLED.value


@pytest.mark.usefixtures("coarse")
def test_no_other_solver_follows_if_it_would_take_hours(monkeypatch):
    monkeypatch.setattr(attempts, "_MAX_QUICK_LAZY_SIZE", 100)
    monkeypatch.setattr(attempts, "_MAX_LAZY_SIZE", 100)
    certificate = md.design(problem(6)).certificate
    assert certificate.provenance["solver"] == "block"
    assert certificate.holds


@pytest.mark.usefixtures("coarse")
def test_the_first_design_is_kept_if_the_other_solver_fails(monkeypatch):
    solve = row_generation.solve_rows
    monkeypatch.setitem(
        search._STRATEGIES,
        "rows",
        lambda *given: dataclasses.replace(solve(*given), matrix=None).with_facts(status=Status.FAILED),
    )
    design = md.design(problem(6))
    assert design.certificate.provenance["solver"] == "block"
    assert design.certificate.holds


@pytest.mark.parametrize("solver", ["auto", "block"])
def test_nearly_equal_secrets_are_merged_and_the_plan_states_it(solver):
    rng = np.random.default_rng(5)
    places = np.repeat(rng.random((4, 2)) * 4, 4, axis=0) + 1e-8 * rng.standard_normal((16, 2))
    d = md.distances.euclidean(md.Domain.from_points(places))
    problem = md.Problem(rng.dirichlet(np.ones(16)), 1 - np.eye(16), [md.MetricPrivacy(0.6, d)])
    certificate = md.design(problem, solver=solver, tolerance=1e-8).certificate
    assert "made alike" in certificate.provenance["plan"]
    assert "; " in certificate.provenance["tried"]
    assert certificate.relative_gap <= 1e-7
    plain = md.design(problem, solver="highs-simplex").certificate
    assert "made alike" not in plain.provenance["plan"]
    assert plain.relative_gap > certificate.relative_gap


def test_rows_that_the_caller_chose_are_kept():
    """Near rows leave a gap by design; no further solver is tried."""
    design = md.design(problem(3), rows="near")
    assert design.certificate.provenance["rows_policy"] == "near"
    assert "tried" not in design.certificate.provenance


def test_the_block_method_follows_the_simplex_method_if_it_is_better():
    """At ε d = 20 the optimum is e^-20 of the costs, while HiGHS resolves bounds to 1e-10 of them."""
    d = md.distances.euclidean(md.Domain.grid(4, 4, 4.0, 4.0))
    weights = np.arange(16) + 1.0
    certificate = md.design(
        md.Problem(weights / weights.sum(), d, [md.MetricPrivacy(20, d)]), tolerance=1e-8
    ).certificate
    assert certificate.provenance["tried"].startswith("highs-simplex: ")
    assert certificate.provenance["solver"] == "block"
    assert certificate.relative_gap <= 1e-7
