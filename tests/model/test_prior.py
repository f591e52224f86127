from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import each_row

from mechdesign.errors import InputError
from mechdesign.model._prior import Prior


def test_uniform():
    assert Prior.uniform(4).probabilities.tolist() == [0.25] * 4
    assert len(Prior.uniform(300)) == 300
    assert math.fsum(Prior.uniform(300).probabilities) == pytest.approx(1, abs=1e-13)


def test_is_kept_as_given_and_cannot_be_changed():
    values = np.array([0.25, 0.75 + 5e-10])
    prior = Prior(values)
    assert prior.probabilities.tolist() == values.tolist()
    values[0] = 1.0
    assert prior.probabilities[0] == 0.25
    with pytest.raises(ValueError, match="read-only"):
        prior.probabilities[0] = 1.0
    with pytest.raises(FrozenInstanceError):
        prior.probabilities = values


def test_stands_in_for_an_array():
    prior = Prior([0.5, 0.0, 0.5])
    assert np.sum(prior) == 1.0
    assert (np.asarray(prior) @ np.ones(3)) == 1.0
    assert np.asarray(prior, dtype=np.float32).dtype == np.float32
    copy = np.array(prior, copy=True)
    copy[0] = 9.0
    assert prior.probabilities[0] == 0.5
    assert Prior(prior).probabilities.tolist() == [0.5, 0.0, 0.5]


@each_row(("error", "accepted"), [(0.9e-9, True), (1.1e-9, False), (-0.9e-9, True), (-1.1e-9, False)])
def test_both_sides_of_the_tolerance(error, accepted):
    values = [0.5, 0.5 + error]
    if accepted:
        Prior(values)
    else:
        with pytest.raises(InputError, match="Divide it by its sum") as raised:
            Prior(values)
        assert raised.value.value == pytest.approx(1 + error)


@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=30),
    st.sampled_from([0.0, 1e-300, 0.5, 1.0, 1e100]),
)
def test_from_counts_against_fractions(counts, smoothing):
    exact = [Fraction(c) + Fraction(smoothing) for c in counts]
    if sum(exact) == 0:
        with pytest.raises(InputError, match="a positive smoothing"):
            Prior.from_counts(counts, smoothing)
        return
    prior = Prior.from_counts(counts, smoothing)
    for value, weight in zip(prior.probabilities, exact, strict=True):
        assert abs(Fraction(float(value)) - weight / sum(exact)) <= Fraction(4, 2**53) * weight / sum(exact)
    assert prior.zeros.tolist() == [i for i, weight in enumerate(exact) if weight == 0]
