"""The arrays that values of the kernel hold: nobody can change them afterwards, and none is of another type."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechdesign.base._arrays import (
    as_distribution,
    as_nonnegative,
    as_whole_numbers,
    require_below,
    require_same_length,
)
from mechdesign.certify._claims import Floor, RatioBound
from mechdesign.certify._evidence import Evidence, FloorMultipliers, Multipliers, PairMultipliers
from mechdesign.certify._stated import Stated
from mechdesign.errors import InputError

FLOATS = np.array([[0.25, 0.5], [0.75, 1.0]])


def frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


def test_what_nobody_can_write_to_is_not_copied() -> None:
    array = frozen(FLOATS.copy())
    assert as_nonnegative(array, "x", 2) is array
    whole = frozen(np.array([1, 2]))
    assert as_whole_numbers(whole, "x", 1) is whole


def test_what_somebody_could_write_to_is_copied() -> None:
    makers: list[Callable[[np.ndarray], Any]] = [
        lambda base: base,
        # A view that cannot be written to, of an array that can.
        lambda base: frozen(base[:]),
        lambda base: frozen(base.T),
        lambda base: frozen(base.view()),
        lambda base: frozen(np.asfortranarray(base)),
        lambda base: base.tolist(),
        lambda base: frozen(base.astype(">f8")),
        lambda base: frozen(base.astype(np.float32)),
    ]
    for place, make in enumerate(makers):
        base = FLOATS.copy()
        given = make(base)
        before = np.asarray(given).tolist()
        found = as_nonnegative(given, "x", 2)
        base[:] = 7
        assert found.tolist() == before, place
        assert found.dtype == np.dtype("<f8")
        assert found.dtype.isnative
        assert found.flags.c_contiguous
        assert not found.flags.writeable
        assert not np.shares_memory(found, base)


def every_array(value: Any) -> list[np.ndarray]:
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, tuple | list):
        return [array for each in value for array in every_array(each)]
    if isinstance(value, Stated):
        return [array for each in value.arrays.values() for array in every_array(each)]
    return [array for each in vars(value).values() for array in every_array(each)] if hasattr(value, "__dict__") else []


def test_every_array_that_evidence_holds_is_a_copy_that_cannot_be_written_to() -> None:
    mine = {
        "numerators": np.array([[1, 3], [2, 2]]),
        "prior": np.array([0.5, 0.5]),
        "cost": np.array([[0.0, 1.0], [1.0, 0.0]]),
        "distance": np.ones((2, 2)),
        "edges": np.array([[0, 1]]),
        "error": np.array([[0.0, 1.0]]),
        "zero": np.array([0]),
        "one": np.array([1]),
        "values": np.array([1.0]),
        "weights": np.array([1.0, 2.0]),
    }
    evidence = Evidence(
        mine["numerators"],
        2,
        mine["prior"],
        mine["cost"],
        "worst",
        (
            Stated.metric(Fraction(1), mine["distance"]),
            Stated.graph(Fraction(1), mine["edges"]),
            Stated.distortion(Fraction(0), mine["error"]),
            Stated.pairs("own", Fraction(1), mine["edges"], mine["values"]),
            Stated.ratios("own", Fraction(2), mine["edges"], mine["one"], mine["one"]),
            Stated.floor("own", Fraction(0), mine["error"], mine["prior"]),
        ),
        Multipliers(
            (
                PairMultipliers(mine["zero"], mine["one"], mine["zero"], mine["values"]),
                PairMultipliers(mine["zero"], mine["one"], mine["zero"], mine["values"]),
                FloorMultipliers(mine["zero"], mine["zero"], mine["values"]),
                PairMultipliers(mine["zero"], mine["one"], mine["zero"], mine["values"]),
                PairMultipliers(mine["zero"], mine["one"], mine["zero"], mine["values"]),
                FloorMultipliers(mine["zero"], mine["zero"], mine["values"]),
            ),
            mine["weights"],
        ),
    )
    held = every_array(evidence) + [array for claim in evidence.claims() for array in every_array(claim)]
    assert len(held) > 40
    for array in held:
        assert not array.flags.writeable
        assert array.dtype in (np.dtype(np.float64), np.dtype(np.int64))
        assert not any(np.shares_memory(array, each) for each in mine.values())


def test_truth_values_are_numbers_but_not_whole_ones() -> None:
    assert as_nonnegative([True, False], "x", 1).tolist() == [1.0, 0.0]
    assert as_whole_numbers([], "x", 1).dtype == np.int64


def test_entries_just_inside_and_just_outside_their_range() -> None:
    assert as_nonnegative([0.0, -0.0, 5e-324, 1.7e308], "x", 1).tolist()[2:] == [5e-324, 1.7e308]
    assert as_nonnegative([math.inf], "x", 1, infinite=True).tolist() == [math.inf]
    for value in (-5e-324, math.nan, -math.inf):
        for infinite in (False, True):
            with pytest.raises(InputError, match=r"^x\[1\]"):
                as_nonnegative([0.0, value], "x", 1, infinite=infinite)
    with pytest.raises(InputError, match=r"^x\[0,1\]"):
        as_nonnegative([[0.0, math.inf]], "x", 2)
    largest = 2**63 - 1
    assert as_whole_numbers([3, largest], "x", 1, minimum=3).tolist() == [3, largest]
    assert as_whole_numbers([0], "x", 1).tolist() == [0]
    for values, minimum in (([2], 3), ([-1], 0), (np.array([2**63], dtype=np.uint64), 0)):
        with pytest.raises(InputError, match=r"^x\[0\]"):
            as_whole_numbers(values, "x", 1, minimum=minimum)


def test_distributions_may_miss_one_by_a_billionth() -> None:
    for total in (1 - 9.9e-10, 1 + 9.9e-10, 1.0):
        assert as_distribution([total], "p").tolist() == [total]
    for total in (1 - 1.01e-9, 1 + 1.01e-9, 0.0, 2.0):
        with pytest.raises(InputError, match=r"^p: does not sum to 1"):
            as_distribution([total], "p")
    with pytest.raises(InputError, match=r"^p: has 2 axes"):
        as_distribution([[1.0]], "p")


def test_indices_below_a_limit_and_arrays_of_one_length() -> None:
    require_below(np.array([0, 3]), 4, "x")
    with pytest.raises(InputError, match=r"^x\[1\].*between 0 and 3"):
        require_below(np.array([0, 4]), 4, "x")
    require_same_length("x", a=np.zeros(2), b=np.ones(2))
    with pytest.raises(InputError, match=r"^x: has arrays of different lengths"):
        require_same_length("x", a=np.zeros(2), b=np.ones(2), c=np.zeros(1))


def test_factors_of_one_and_of_the_largest_terms_are_accepted() -> None:
    assert RatioBound("x", Fraction(2), [0], [1], [1], [2]).factors_above().tolist() == [1.0]
    assert RatioBound("x", Fraction(2**63 - 1), [0], [1], [1], [1]).factors_above().tolist() == [2.0**63]
    assert Floor(Fraction(0), [[0.0]]).minimum == 0


def test_sums_that_wrap_around_are_not_taken_for_one() -> None:
    """Halves of 31 bits keep every carry: rows of eight 2**62 and of 2**31 - 1 in the low half."""
    low = 2**31 - 1
    for row in ([2**62] * 8 + [0], [2**62] * 4 + [2**62 - 4, 0, 0, 0, 4], [low] * 9):
        with pytest.raises(InputError, match="is not a probability distribution"):
            Evidence([row], 62, [1.0], np.ones((1, 9)), "expected", ())
    many = [2**62 - 8 * low] + [low] * 8
    assert Evidence([many], 62, [1.0], np.ones((1, 9)), "expected", ()).observables == 9


def test_rows_of_any_numbers_are_added_without_overflow() -> None:
    random = np.random.default_rng(3)
    shares = random.integers(0, 2**59, (20, 7))
    numerators = np.column_stack([shares, 2**62 - shares.sum(axis=1)])
    cost = np.ones(numerators.shape)
    cost[:, 0] = math.inf
    made = Evidence(numerators, 62, np.full(20, 0.05), cost, "expected", ())
    assert made.numerators.tolist() == numerators.tolist()
    numerators[11, 3] += 1
    with pytest.raises(InputError, match=r"numerators\[11\]: is not a probability distribution"):
        Evidence(numerators, 62, np.full(20, 0.05), cost, "expected", ())


def test_lists_of_multipliers_become_tuples() -> None:
    entry = FloorMultipliers([], [], [])
    assert Multipliers([entry]).requirements == (entry,)
