from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sparse
from refusals import Mistake, assert_refused
from rows import each_row

from mechdesign.errors import InfeasibleError, InputError, UnboundedError
from mechdesign.solve._fractional import FractionalProgram, charnes_cooper, dinkelbach, solve_fractional
from mechdesign.solve._solve import solve

METHODS = ["charnes-cooper", "dinkelbach"]


def textbook(**changes: object) -> FractionalProgram:
    """Maximise (2x + y + 1) / (x + 3y + 4), −x + y ≤ 4, 2x + y ≤ 14, y ≤ 6, x, y ≥ 0: 15/11 at (7, 0)."""
    values: dict = {
        "numerator": [2.0, 1.0],
        "denominator": [1.0, 3.0],
        "matrix": sparse.csr_array([[-1.0, 1.0], [2.0, 1.0]]),
        "row_lower": [-np.inf, -np.inf],
        "row_upper": [4.0, 14.0],
        "lower": [0.0, 0.0],
        "upper": [np.inf, 6.0],
        "numerator_constant": 1.0,
        "denominator_constant": 4.0,
    }
    return FractionalProgram(**(values | changes))


@pytest.mark.usefixtures("loaded")
@each_row("solver", ["highs", "highs-ipx", "scipy", "cvxpy"])
@each_row("method", METHODS)
def test_textbook(method: str, solver: str) -> None:
    found = solve_fractional(textbook(), method, solver)
    assert found.value == pytest.approx(15 / 11, abs=1e-7)
    assert found.x == pytest.approx([7.0, 0.0], abs=1e-5)
    assert found.violation < 1e-6
    assert found.solver == solver


@each_row("method", METHODS)
def test_negative_values_free_variables_and_equations(method: str) -> None:
    # Maximise x / (y + 5) with x + y = 1, −3 ≤ x ≤ −1, y free: x = −1, y = 2.
    program = FractionalProgram(
        numerator=np.array([1.0, 0.0]),
        denominator=np.array([0.0, 1.0]),
        matrix=sparse.csr_array([[1.0, 1.0]]),
        row_lower=np.array([1.0]),
        row_upper=np.array([1.0]),
        lower=np.array([-3.0, -np.inf]),
        upper=np.array([-1.0, np.inf]),
        denominator_constant=5.0,
    )
    found = solve_fractional(program, method)
    assert found.value == pytest.approx(-1 / 7, abs=1e-9)
    assert found.x == pytest.approx([-1.0, 2.0], abs=1e-7)


@each_row("seed", range(8))
def test_both_methods_agree_with_vertices_of_a_box(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 6
    lower, upper = -rng.random(n), rng.random(n)
    numerator, denominator = rng.normal(size=n), rng.normal(size=n)
    constant = float(np.abs(denominator).sum()) + 0.1
    program = FractionalProgram(
        numerator, denominator, sparse.csr_array((0, n)), np.zeros(0), np.zeros(0), lower, upper, 0.3, constant
    )
    corners = np.where((np.arange(2**n)[:, None] >> np.arange(n)) & 1, upper, lower)
    best = ((corners @ numerator + 0.3) / (corners @ denominator + constant)).max()
    for method in METHODS:
        assert solve_fractional(program, method).value == pytest.approx(best, abs=1e-9)


def test_inverse_of_charnes_and_cooper() -> None:
    program = textbook()
    reduced = charnes_cooper(program)
    solution = solve(reduced.program)
    x = reduced.invert(solution.x)
    assert x == pytest.approx([7.0, 0.0], abs=1e-7)
    above, below = program.fraction(x)
    assert -solution.residuals.objective == pytest.approx(above / below, rel=1e-9)
    assert reduced.program.columns == 3
    assert list(reduced.program.row_blocks) == ["rows_lower", "rows_upper", "upper", "denominator"]


def test_a_step_of_dinkelbach_ends_at_zero() -> None:
    program = textbook()
    reduced = dinkelbach(program, 15 / 11)
    x = solve(reduced).x
    above, below = program.fraction(x)
    assert above - 15 / 11 * below == pytest.approx(0.0, abs=1e-9)


def test_best_fraction_only_approached() -> None:
    # Maximise x / (x + 1) for x ≥ 0: 1, never reached.
    program = FractionalProgram(
        np.array([1.0]),
        np.array([1.0]),
        sparse.csr_array((0, 1)),
        np.zeros(0),
        np.zeros(0),
        np.zeros(1),
        np.full(1, np.inf),
        denominator_constant=1.0,
    )
    found = solve_fractional(program)
    assert found.x is None
    assert found.value == pytest.approx(1.0)


@each_row("method", METHODS)
def test_infeasible_and_unbounded(method: str) -> None:
    with pytest.raises(InfeasibleError, match="fractional"):
        solve_fractional(textbook(row_upper=[-20.0, 14.0], upper=[10.0, 6.0]), method)
    with pytest.raises(UnboundedError, match="fractional"):
        solve_fractional(textbook(denominator=[0.0, 1.0], row_upper=[np.inf, np.inf], upper=[np.inf, 6.0]), method)


def test_wrong_input() -> None:
    negative = textbook(denominator_constant=-100.0)
    wrong = [
        ("denominator", partial(textbook, denominator=[1.0])),
        ("denominator", partial(textbook, denominator=[0.0, 0.0], denominator_constant=0.0)),
        ("numerator", partial(textbook, numerator=[1.0])),
        ("numerator[1]", partial(textbook, numerator=[1.0, np.inf])),
        ("numerator", partial(textbook, numerator=["a", 1.0])),
        ("denominator[0]", partial(textbook, denominator=[np.inf, 1.0])),
        ("denominator[1]", partial(textbook, denominator=[1.0, np.nan])),
        ("numerator_constant", partial(textbook, numerator_constant=np.inf)),
        ("denominator_constant", partial(textbook, denominator_constant=None)),
        ("row_lower", partial(textbook, row_lower=[0.0])),
        ("method", partial(solve_fractional, textbook(), "simplex")),
        ("denominator", partial(solve_fractional, negative, "dinkelbach")),
    ]
    assert_refused(Mistake(f"{n}: {at}", make, at, error=InputError) for n, (at, make) in enumerate(wrong))
    with pytest.raises(InputError, match="must be a finite number"):
        textbook(denominator=[np.inf, 1.0])


def test_values_cannot_be_changed() -> None:
    program = textbook()
    with pytest.raises(ValueError, match="read-only"):
        program.denominator[0] = 2.0
    with pytest.raises(AttributeError):
        program.name = "x"  # type: ignore[misc]
