"""Designs with rational factors, and with floors that have their own prior, against independent programs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import oracle
import pytest
from cli_examples import leave_pictures_blank
from rows import each_row

import mechdesign as md
from mechdesign.certify._claims import Floor, PairBound
from mechdesign.certify._stated import Stated
from mechdesign.errors import InfeasibleError, InputError, InputWarning
from mechdesign.model._requirements._kinds import ClaimedPrivacy
from mechdesign.model._requirements._requirement import Requirement

LINE = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
PRIOR = np.array([0.4, 0.3, 0.2, 0.1])
BELIEF = np.array([0.1, 0.1, 0.5, 0.3])
NEIGHBOURS = [[0, 1], [1, 0], [1, 2], [2, 1], [2, 3], [3, 2]]


def ratios(factor: Fraction = Fraction(2), pairs: Sequence[Sequence[int]] = NEIGHBOURS) -> ClaimedPrivacy:
    return ClaimedPrivacy([Stated.ratios("ratio", factor, pairs)], 4)


def doubt(minimum: float | str, prior: np.ndarray | None = BELIEF) -> ClaimedPrivacy:
    return ClaimedPrivacy([Stated.floor("doubt", Fraction(str(minimum)), LINE, prior)], 4)


def least(problem: md.Problem) -> float:
    """Return the least expected or worst cost, from an independent program built from the claims."""
    factors, floors = [], []
    for claim in problem.claims:
        if isinstance(claim, Floor):
            floors.append((float(claim.minimum), claim.error, claim.prior_or(problem.prior)))
        elif isinstance(claim, PairBound):
            bounds = [float(Fraction(a, b)) for a, b in zip(*claim.factors_below(62), strict=True)]
            factors += list(zip(claim.sources.tolist(), claim.targets.tolist(), bounds, strict=True))
    return oracle.least(problem.prior, problem.cost, factors, floors, problem.objective)


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
@pytest.mark.parametrize(
    "requirements",
    [
        [ratios()],
        [doubt(0.45)],
        [ratios(), doubt(0.45), doubt("0.5", None)],
        [ratios(Fraction(7, 2)), md.MetricPrivacy(1, LINE), doubt(0.55)],
    ],
    ids=["ratios", "doubt", "both", "all"],
)
@each_row(("objective", "solver"), itertools.product(["expected", "worst"], ["highs-simplex", "block"]))
def test_least_costs(requirements: list[Requirement], objective: str, solver: str) -> None:
    problem = md.Problem(PRIOR, LINE, requirements, objective)
    made = md.design(problem, solver=solver, tolerance=1e-9)
    assert made.certificate.holds
    assert made.certificate.cost == pytest.approx(least(problem), rel=1e-7)
    assert made.certificate.relative_gap < 1e-7


def test_a_factor_is_the_exponential_of_its_logarithm() -> None:
    by_factor = md.design(md.Problem(PRIOR, LINE, [ratios()])).certificate
    graph = ClaimedPrivacy([Stated.pairs("near", Fraction(math.log(2)), NEIGHBOURS, np.ones(6))], 4)
    by_exponent = md.design(md.Problem(PRIOR, LINE, [graph])).certificate
    assert by_factor.cost == pytest.approx(by_exponent.cost, rel=1e-8)
    assert by_factor.requirements[0].realised == pytest.approx(2, rel=1e-8)
    assert by_factor.requirements[0].realised <= 2


def test_a_factor_of_one_merges_secrets() -> None:
    made = md.design(md.Problem(PRIOR, LINE, [ratios(Fraction(1), [[0, 1], [2, 3]])]))
    rows = made.channel.numerators
    assert (rows[0] == rows[1]).all()
    assert (rows[2] == rows[3]).all()
    assert made.certificate.relative_gap < 1e-9


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
def test_a_floor_may_repeat_the_prior_of_the_problem() -> None:
    own = md.design(md.Problem(PRIOR, LINE, [doubt(0.5, PRIOR)])).certificate
    shared = md.design(md.Problem(PRIOR, LINE, [md.DistortionPrivacy("0.5", LINE)])).certificate
    assert own.cost == pytest.approx(shared.cost, rel=1e-8)


@pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")
def test_the_largest_floor_is_that_of_its_own_prior() -> None:
    # The median under the floor's prior is 2: the errors are 2, 1, 0, 1.
    largest = "0.6"
    assert md.design(md.Problem(PRIOR, LINE, [doubt(largest, np.array([0.125, 0.125, 0.5, 0.25]))])).certificate.holds
    with pytest.raises(InfeasibleError, match=r"requirements\[0\]\.minimum: .*is 0\.625"):
        md.Problem(PRIOR, LINE, [doubt("0.626", np.array([0.125, 0.125, 0.5, 0.25]))])


FORBIDDEN = np.where(np.arange(4)[:, None] // 2 == np.arange(4) // 2, LINE, np.inf)


@each_row("prior", [BELIEF, np.array([0.0, 0.0, 0.4, 0.6]), np.array([1.0, 0, 0, 0])])
def test_parts_with_disjoint_answers_share_a_floor_with_its_own_prior(prior: np.ndarray) -> None:
    """Secrets 0, 1 and 2, 3 have disjoint answers; the largest floor is the sum over both parts."""
    near = ratios(Fraction(3), [[0, 1], [1, 0], [2, 3], [3, 2]])
    most = sum(min(prior[part] @ LINE[part][:, guess] for guess in range(4)) for part in ([0, 1], [2, 3]))
    # A part about which the adversary is certain contributes nothing.
    minimum = round(0.9 * most, 3)
    problem = md.Problem(PRIOR, FORBIDDEN, [near, doubt(minimum, prior), doubt("0.2", None)])
    made = md.design(problem, tolerance=1e-7)
    assert made.certificate.holds
    assert made.certificate.cost == pytest.approx(least(problem), rel=1e-6)
    assert made.certificate.relative_gap < 1e-6


def test_a_floor_on_a_part_of_probability_zero_needs_one_program() -> None:
    never = np.array([0.6, 0.4, 0.0, 0.0])
    near = ratios(Fraction(3), [[0, 1], [1, 0], [2, 3], [3, 2]])
    with pytest.warns(InputWarning):
        problem = md.Problem(never, FORBIDDEN, [near, doubt("0.3")])
    made = md.design(problem)
    assert made.certificate.cost == pytest.approx(least(problem), rel=1e-7, abs=1e-9)
    assert made.certificate.relative_gap < 1e-6


def test_one_requirement_may_make_several_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_pictures_blank(monkeypatch)
    claims = [
        Stated.ratios("guarded", Fraction(5, 2), NEIGHBOURS),
        Stated.floor("guarded", Fraction(1, 2), LINE, BELIEF, part=1),
    ]
    problem = md.Problem(PRIOR, LINE, [md.MetricPrivacy(1, LINE), ClaimedPrivacy(claims, 4), doubt("0.4")])
    assert problem.places == (0, 1, 1, 2)
    made = md.design(problem)
    assert made.certificate.cost == pytest.approx(least(problem), rel=1e-7)
    md.save(made, tmp_path)
    assert [checked.kind for checked in md.verify(tmp_path).requirements] == ["metric", "guarded", "guarded", "doubt"]
    assert "guarded privacy" in (tmp_path / "report.html").read_text()
    again = md.Design.load(tmp_path).problem
    assert [each.kind for each in again.requirements] == ["metric", "guarded", "doubt"]
    assert again.places == problem.places


@pytest.mark.parametrize("floors", [False, True])
def test_restricted_requirements(floors: bool) -> None:
    claims = [
        Stated.ratios("guarded", Fraction(1), [[0, 1], [1, 3], [3, 2], [2, 3]], [2, 3, 4, 5], [1, 1, 1, 2]),
        Stated.floor("guarded", Fraction(1, 2), LINE, BELIEF, part=1),
    ]
    whole = ClaimedPrivacy(claims, 4)
    some = np.array([1, 2, 3])
    part = whole.restrict(some, floors=floors)
    bound, floor = part.claims()
    assert isinstance(bound, PairBound)
    assert isinstance(floor, Floor)
    assert bound.sources.tolist() == [0, 2, 1]
    assert bound.targets.tolist() == [2, 1, 2]
    assert [array.tolist() for array in bound.terms] == [[3, 4, 5], [1, 1, 2]]
    assert floor.minimum == (Fraction(1, 2) if floors else 0)
    assert floor.prior_or(PRIOR) == pytest.approx(BELIEF[some] / 0.9)
    sure = ClaimedPrivacy([Stated.floor("doubt", Fraction(1, 2), LINE, [1.0, 0, 0, 0])], 4)
    if floors:
        with pytest.raises(InputError, match="prior: is zero on every possible secret"):
            sure.restrict(some, floors=True)
    else:
        assert sure.restrict(some).size == 3
