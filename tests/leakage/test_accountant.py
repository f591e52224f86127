"""Accountants: the leakage of each release, what is refused, and the largest budget that is left."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
import pytest
from company import at_once
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import Mistake, assert_refused

from mechdesign import leakage
from mechdesign.errors import BudgetWarning, LeakageExceededError
from mechdesign.leakage import _upwards
from mechdesign.leakage._accountant import Accountant
from mechdesign.leakage._correlations import Candidates

# The formulas hold for any two matrices, also for those that no chain has.
pytestmark = pytest.mark.filterwarnings("ignore::mechdesign.errors.CorrelationWarning")

STRONG = [[0.8, 0.2], [0.0, 1.0]]
MILD = [[0.8, 0.2], [0.2, 0.8]]


@settings(max_examples=20)
@given(st.lists(st.floats(0, 2), min_size=1, max_size=12), st.sampled_from([None, STRONG, MILD]))
def test_agrees_with_the_whole_series(epsilons: list[float], forward: object) -> None:
    accountant = Accountant(1e3, STRONG, forward)
    for count, epsilon in enumerate(epsilons, start=1):
        expected = leakage.temporal(epsilons[:count], STRONG, forward)
        np.testing.assert_array_equal(accountant.preview(epsilon), expected)
        assert accountant.release(epsilon) == expected[-1]
        np.testing.assert_array_equal(accountant.leakage, expected)
    np.testing.assert_array_equal(accountant.backward_leakage, leakage.backward(epsilons, STRONG))
    np.testing.assert_array_equal(accountant.forward_leakage, leakage.forward(epsilons, forward))
    assert (accountant.epsilons.tolist(), len(accountant)) == (epsilons, len(epsilons))


def test_candidates() -> None:
    accountant = Accountant(5.0, Candidates([MILD, None]), Candidates([MILD, STRONG]))
    for epsilon in (0.1, 0.5, 0.2):
        accountant.release(epsilon)
    expected = leakage.temporal([0.1, 0.5, 0.2], MILD, Candidates([MILD, STRONG]))
    np.testing.assert_allclose(accountant.leakage, expected, rtol=1e-15)


def test_refuses_and_records_nothing() -> None:
    accountant = Accountant(0.5, MILD, MILD)
    accountant.release(0.2)
    before = accountant.leakage.tolist()
    with pytest.raises(LeakageExceededError, match=r"step 1 would leak .* must be <= 0.5. Spend at most") as caught:
        accountant.release(0.45)
    assert caught.value.alpha == 0.5 < caught.value.leakage
    with pytest.raises(LeakageExceededError, match="Spend at most"):
        accountant.release(0.6)
    assert accountant.leakage.tolist() == before
    # A later release may break the promise of an earlier one.
    accountant = Accountant(0.5, None, MILD)
    accountant.release(0.45)
    with pytest.raises(LeakageExceededError) as caught:
        accountant.release(0.2)
    assert caught.value.step == 0


def test_largest_is_accepted_and_a_little_more_is_not() -> None:
    accountant = Accountant(1.0, STRONG, MILD)
    for _ in range(4):
        most = accountant.largest() / 2
        accountant.release(most)
    most = accountant.largest()
    assert 0 < most < 1
    with pytest.raises(LeakageExceededError):
        accountant.release(most * (1 + 1e-9))
    accountant.release(most)
    assert accountant.largest() < 1e-9
    assert Accountant(1.0).largest() == 1.0


def test_a_release_computes_only_what_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    advance, calls = _upwards.advance, []

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        return advance(*arguments)

    monkeypatch.setattr(_upwards, "advance", counted)
    same = [[1.0, 0.0], [0.0, 1.0]]
    for back, ahead, most in ((STRONG, None, 1), (same, same, 1), (STRONG, MILD, 80)):
        accountant = Accountant(1e9, back, ahead)
        for _ in range(120):
            accountant.release(0.1)
        calls.clear()
        accountant.release(0.1)
        assert len(calls) <= most, len(calls)
        np.testing.assert_array_equal(accountant.leakage, leakage.temporal([0.1] * 121, back, ahead))


def test_warns_if_told_so() -> None:
    accountant = Accountant(0.5, MILD, on_excess="warn")
    accountant.release(0.4)
    with pytest.warns(BudgetWarning, match="step 1 now leaks"):
        accountant.release(0.4)
    assert (len(accountant), accountant.largest()) == (2, 0.0)


def test_the_worst_candidate_counts_wherever_it_stands() -> None:
    weak, strong = [[0.6, 0.4], [0.4, 0.6]], [[0.9, 0.1], [0.1, 0.9]]
    for side in ("backward", "forward"):
        found = []
        for matrices in (strong, Candidates([weak, strong]), Candidates([strong, weak])):
            accountant = Accountant(1.0, **{side: matrices})
            found.append([accountant.release(0.3), accountant.release(0.3), accountant.largest()])
        assert found[0] == found[1] == found[2], side


def test_a_broken_promise_stays_broken() -> None:
    """Without a forward correlation a further release changes no earlier leakage, and its own one is small."""
    accountant = Accountant(1.0, backward=[[0.6, 0.4], [0.4, 0.6]], on_excess="warn")
    for epsilon in (2.0, 0.1):
        with pytest.warns(BudgetWarning, match="step 0 now leaks 2"):
            accountant.release(epsilon)
    assert accountant.largest() == 0.0


def test_readers_see_whole_histories() -> None:
    accountant = Accountant(100.0, Candidates([MILD, None]), MILD)
    done = threading.Event()

    def read() -> int:
        while not done.is_set():
            assert (accountant.leakage >= 0.1).all()
            accountant.largest()
            accountant.preview(0.1)
        return 1

    def write() -> int:
        for _ in range(20):
            accountant.release(0.1)
        done.set()
        return 1

    assert at_once(read, write, read) == [1, 1, 1]
    np.testing.assert_array_equal(accountant.leakage, leakage.temporal([0.1] * 20, Candidates([MILD, None]), MILD))


def test_threads_with_warnings_lose_nothing() -> None:
    accountant = Accountant(0.5, Candidates([MILD, [[1.0, 0.0], [0.0, 1.0]]]), on_excess="warn")
    with pytest.warns(BudgetWarning):
        at_once(*[lambda: [accountant.release(0.4) for _ in range(10)]] * 3)
    assert len(accountant) == len(accountant.leakage) == len(accountant.epsilons) == 30


def test_wrong_input() -> None:
    assert_refused(
        [
            *(
                Mistake(f"budget {value!r}", lambda value=value: Accountant(1.0, MILD).release(value), "epsilon")
                for value in (-0.1, math.nan, math.inf, "0.1", None)
            ),
            Mistake("no promise", lambda: Accountant(0.0), "alpha", "leaves no budget"),
            Mistake("an unknown word", lambda: Accountant(1.0, on_excess="ignore"), "on_excess"),
            Mistake("rows below 1", lambda: Accountant(1.0, backward=[[0.5, 0.4], [0.5, 0.5]]), "backward[0]"),
        ]
    )
