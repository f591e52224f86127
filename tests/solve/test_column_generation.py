"""The loop of column generation, with scripted masters and pricers: how it ends, and which results it keeps."""

from __future__ import annotations

import math

import pytest

from mechdesign.base._deadline import Deadline
from mechdesign.errors import SolverError
from mechdesign.solve._column_generation import Bracket, PricingResult, RestrictedSolution, generate_columns
from mechdesign.solve._contract import Status

NAN = math.nan


class Columns(tuple):
    """A working set."""

    def add(self, columns):
        return Columns((*self, *columns))


class Script:
    """A master and a pricer that return scripted rounds: (upper, solution) and (lower, pricing)."""

    def __init__(self, solved, priced, deadline=None):
        self.solved, self.priced, self.deadline = solved, priced, deadline
        self.sizes, self.prices = [], 0

    def solve(self, working, number, best):
        self.sizes.append(len(working))
        upper, named = self.solved[min(number, len(self.solved) - 1)]
        if isinstance(named, Exception):
            raise named
        best.offer_point(upper, f"point {number}")
        return RestrictedSolution(working, number, **named)

    def price(self, found, best):
        lower, pricing = self.priced[min(self.prices, len(self.priced) - 1)]
        self.prices += 1
        best.offer_bound(lower, f"proof {found.prices}")
        if self.deadline is not None:
            self.deadline.cancel()
        return pricing


def run(solved, priced, *, deadline=None, cancels=False, gap=0.01, max_rounds=9, min_entering_limit=2):
    """Return the outcome of a script, the script, and the bracket."""
    deadline = deadline or Deadline()
    script, best = Script(solved, priced, deadline if cancels else None), Bracket()
    rules = {"max_rounds": max_rounds, "min_entering_limit": min_entering_limit}
    return generate_columns(script, script, Columns((0,)), best, gap, deadline, **rules), script, best


MORE = PricingResult(improving=(1, 2, 3, 4, 5, 6))


def test_rounds_go_on_until_the_gap_is_closed():
    outcome, script, best = run([(9.0, {}), (8.0, {})], [(1.0, MORE), (7.0, MORE), (7.99, MORE)])
    assert (outcome.status, outcome.rounds) == (Status.OPTIMAL, 3)
    # A round adds at most two columns, or as many as the working set has.
    assert script.sizes == [1, 3, 6]
    assert len(outcome.working) == 6
    assert (best.lower, best.upper) == (7.99, 8.0)


def test_the_better_ends_of_all_rounds_count_and_no_others():
    uppers, lowers = (9.0, 5.0, 6.0, NAN), (1.0, NAN, 4.0, 3.0)
    _, _, best = run([(each, {}) for each in uppers], [(each, MORE) for each in lowers], max_rounds=4)
    assert (best.upper, best.point, best.lower, best.proof) == (5.0, "point 1", 4.0, "proof 2")
    assert best.gap == pytest.approx(0.2)
    best = Bracket(unit=10.0)
    assert best.gap == math.inf
    assert not best.offer_point(NAN, "point")
    assert best.offer_point(5.0, "point")
    assert best.offer_bound(4.0, "proof")
    assert not best.offer_bound(4.0, "no better one")
    assert best.gap == pytest.approx(0.1)


def test_the_first_problem_has_to_be_solved_and_later_ones_need_not():
    refused = SolverError("the memory does not suffice")
    with pytest.raises(SolverError):
        run([(9.0, refused)], [(1.0, MORE)])
    outcome, _, best = run([(9.0, {}), (8.0, refused)], [(1.0, MORE)])
    assert (outcome.status, outcome.rounds, len(outcome.working)) == (Status.STALLED, 1, 3)
    assert (best.lower, best.upper) == (1.0, 9.0)


@pytest.mark.parametrize(
    ("pricing", "named", "status"),
    [
        (PricingResult(unproved=(7,)), {}, Status.OPTIMAL),
        (PricingResult(), {"complete": False}, Status.OPTIMAL),
        (PricingResult(), {}, Status.STALLED),
        (PricingResult(), {"status": Status.TIME_LIMIT}, Status.TIME_LIMIT),
        (MORE, {"status": Status.TIME_LIMIT}, Status.OPTIMAL),
        (PricingResult((1,), status=Status.TIME_LIMIT), {}, Status.TIME_LIMIT),
        (PricingResult((1,), status=Status.INTERRUPTED), {}, Status.INTERRUPTED),
    ],
)
def test_rounds_end_if_nothing_enters_or_the_pricer_ends(pricing, named, status):
    outcome, script, _ = run([(9.0, named), (9.0, {})], [(1.0, pricing), (9.0, PricingResult())])
    assert outcome.status is status
    assert len(script.sizes) == (2 if status is Status.OPTIMAL else 1)


@pytest.mark.parametrize(("lower", "prices"), [(5.0, 1), (-math.inf, 0)])
def test_after_ctrl_c_columns_are_priced_once_if_that_may_help(lower, prices):
    stopped = {"status": Status.INTERRUPTED, "message": "stopped", "lower": lower}
    # The gap is closed, and the status still reports the interruption.
    outcome, script, _ = run([(9.0, stopped)], [(9.0, MORE)])
    assert (outcome.status, outcome.message, script.prices) == (Status.INTERRUPTED, "stopped", prices)


def test_time_the_user_and_the_number_of_rounds_end_the_rounds():
    for options, status, rounds in (
        ({"deadline": Deadline(0.0)}, Status.TIME_LIMIT, 1),
        ({"cancels": True}, Status.INTERRUPTED, 1),
        ({"max_rounds": 3}, Status.ITERATION_LIMIT, 3),
    ):
        outcome, script, _ = run([(9.0, {})], [(1.0, MORE)], **options)
        assert (outcome.status, outcome.rounds, len(script.sizes)) == (status, rounds, rounds)
