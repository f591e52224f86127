"""Traces and temporal accountants spend through one ledger, and stop where it does."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import mechdesign as md
from mechdesign.errors import BudgetExceededError, InputError


def trace(ledger: md.Ledger) -> md.traces.Trace:
    line = md.Domain.grid(4, 1, 4.0, 1.0)
    walk = md.MarkovChain(np.full((4, 4), 0.25))
    return md.traces.Trace(line, md.graphs.line(4), "0.4", walk, md.Prior.uniform(4), ledger=ledger, rng=1)


def test_a_trace_stops_at_the_budget_and_stays_as_it_was(tmp_path):
    ledger = md.Ledger(epsilon=1, path=tmp_path / "person.json")
    walk = trace(ledger)
    walk.step(0)
    walk.step(1)
    before = walk.belief
    with pytest.raises(BudgetExceededError, match=r"0\.2 of 1 is left"):
        walk.step(2)
    np.testing.assert_array_equal(walk.belief, before)
    walk.step(2, epsilon="0.2")
    assert ledger.remaining_epsilon == 0
    assert "3 edges of the policy graph" in ledger.entries[0].protects


def test_wrong_states_cost_nothing():
    ledger = md.Ledger(epsilon=1)
    with pytest.raises(InputError):
        trace(ledger).step(9)
    assert ledger.entries == ()


def test_an_accountant_keeps_both_promises():
    ledger = md.Ledger(epsilon="0.7")
    accountant = md.leakage.Accountant(1.0, backward=[[0.8, 0.2], [0.2, 0.8]], ledger=ledger)
    accountant.release(0.5)
    with pytest.raises(BudgetExceededError):
        accountant.release(0.25)
    assert len(accountant) == 1
    accountant.release(0.2)
    accountant.release(0.0)
    assert ledger.spent.epsilon == Fraction(7, 10)
    with pytest.raises(md.leakage.LeakageExceededError):
        accountant.release(0.99)
    assert len(ledger.entries) == 2


def test_one_ledger_serves_both():
    ledger = md.Ledger(epsilon=1)
    trace(ledger).step(0)
    md.leakage.Accountant(2.0, ledger=ledger).release(0.6)
    with pytest.raises(BudgetExceededError):
        trace(ledger).step(0)


@pytest.mark.parametrize("make", [trace, lambda ledger: md.leakage.Accountant(1.0, ledger=ledger)])
def test_only_ledgers_are_ledgers(make):
    with pytest.raises(InputError, match="ledger"):
        make({"epsilon": 1})
