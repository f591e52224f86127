from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from mechdesign import leakage
from mechdesign.errors import InputError
from mechdesign.leakage import cao2019
from mechdesign.leakage._loss import LossFunction

MILD = [[0.8, 0.2], [0.2, 0.8]]


@pytest.mark.parametrize("alpha", [-1.0, -1e-300, math.nan, None, "1", ["1"], 1j, [0.5, "b"], [[1], [1, 2]], [1, -2]])
@pytest.mark.parametrize("route", [LossFunction(MILD), *(
    lambda alpha, run=run: run(MILD, alpha) for run in (cao2019.algorithm1, cao2019.algorithm3, cao2019.algorithm5)
)])  # fmt: skip
def test_alphas_that_are_none(route: Callable[[object], object], alpha: object) -> None:
    with pytest.raises(InputError, match=r"^alpha: is not"):
        route(alpha)


@pytest.mark.parametrize("alpha", [1, True, np.int8(1), np.float32(1), np.array(1), Fraction(1), 1.0])
def test_every_kind_of_number_gives_a_float(alpha: float) -> None:
    value = LossFunction(MILD)(alpha)
    assert type(value) is float
    assert value == pytest.approx(0.5694451960428427, rel=1e-15)


@pytest.mark.parametrize("shape", [(0,), (1,), (2, 3), (2, 0, 3)])
def test_arrays_keep_their_shape(shape: tuple[int, ...]) -> None:
    assert np.shape(LossFunction(MILD)(np.ones(shape, dtype=int))) == shape
    assert LossFunction(MILD)([0, math.inf]).tolist() == [0.0, pytest.approx(math.log(4))]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: leakage.cao2019.algorithm4(MILD, -1.0), "largest: is negative; found -1.0"),
        (lambda: leakage.cao2019.algorithm4(MILD, math.nan), "largest: is not finite"),
        (lambda: leakage.cao2019.algorithm6(MILD, -1.0), "epsilon: is negative; found -1.0"),
        (lambda: leakage.cao2019.algorithm6(MILD, math.nan), "epsilon: is not finite"),
        (lambda: leakage.cao2019.algorithm7(0.0, MILD, MILD), "alpha: leaves no budget; found 0.0"),
        (lambda: leakage.cao2019.algorithm8(-1.0, 3, MILD, MILD), "alpha: leaves no budget; found -1.0"),
        (lambda: leakage.cao2019.algorithm8(1.0, 0, MILD, MILD), "steps: is too small; found 0"),
        (lambda: leakage.Varying(3), "steps: are not several matrices; found 3"),  # type: ignore[arg-type]
        (lambda: leakage.Candidates(3), "candidates: are not several; found 3"),  # type: ignore[arg-type]
        (lambda: leakage.Candidates("ab"), "candidates: are not several; found 'ab'"),
    ],
)
def test_typed_errors(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        call()


TWO, THREE = [[0.8, 0.2], [0.2, 0.8]], [[0.5, 0.25, 0.25]] * 3


@pytest.mark.parametrize(
    "call",
    [
        lambda: leakage.temporal([0.1, 0.2], TWO, THREE),
        lambda: leakage.supremum(0.1, TWO, THREE),
        lambda: leakage.constant_budget(1.0, TWO, THREE),
        lambda: leakage.allocate_budget(1.0, 5, TWO, leakage.Candidates([None, THREE])),
        lambda: leakage.Accountant(1.0, TWO, THREE),
        lambda: leakage.window([0.1, 0.2, 0.3], 0, 2, TWO, THREE),
        lambda: leakage.guarantees([0.1, 0.2, 0.3], 2, leakage.Varying([TWO, TWO]), THREE),
        lambda: leakage.temporal([0.1] * 3, None, leakage.Varying([TWO, THREE])),
    ],
)
def test_chains_of_different_sizes_are_refused(call):
    with pytest.raises(InputError, match="another number of states; found 3; must be 2") as caught:
        call()
    assert caught.value.path == "forward"
