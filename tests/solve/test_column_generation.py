"""The loop of column generation, with scripted masters and pricers: how it ends, and which results it keeps."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from rows import each_row

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


@each_row(
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


@each_row(("lower", "prices"), [(5.0, 1), (-math.inf, 0)])
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


class Knapsack:
    """Master and pricer of: minimise c·x subject to a·x >= 1 and x >= 0, whose optimum is the least c/a, exactly.

    The pricer multiplies its bound by `exaggeration`; an honest one has 1.
    """

    def __init__(self, ratios, exaggeration):
        self.ratios, self.exaggeration = ratios, exaggeration

    def solve(self, working, number, best):
        price = min(self.ratios[column] for column in working)
        best.offer_point(float(price), price)
        return RestrictedSolution(working, price)

    def price(self, found, best):
        least = min(self.ratios)
        best.offer_bound(float(least * self.exaggeration), least)
        better = [column for column, ratio in enumerate(self.ratios) if ratio < found.prices]
        return PricingResult(sorted(better, key=lambda column: self.ratios[column], reverse=True))


def test_a_bound_above_the_optimum_by_more_than_rounding_closes_no_gap():
    """The optimum is known exactly, so the status of an honest and of an exaggerated bound is known too."""
    ratios = [Fraction(7, 2), Fraction(9, 4), Fraction(5, 3), Fraction(8, 3), Fraction(11, 7), Fraction(2)]
    for sign in (1, -1):
        for parts in (0, 1, 9 * 10**6, -1, -90, -110, -5000, -(10**8)):
            # At the optimum, the bound lies below it by so many parts of 10^-8.
            missing = Fraction(parts, 10**8)
            knapsack, best = Knapsack([sign * ratio for ratio in ratios], 1 - sign * missing), Bracket()
            rules = {"max_rounds": 9, "min_entering_limit": 1}
            outcome = generate_columns(knapsack, knapsack, Columns((0,)), best, 0.1, Deadline(), **rules)
            exact = (best.point - Fraction(best.lower)) / abs(best.point)
            proved = -Fraction(1, 10**6) <= exact <= Fraction(1, 10)
            assert (outcome.status is Status.OPTIMAL) is proved is (parts >= -90), (sign, parts)
            assert outcome.status in (Status.OPTIMAL, Status.STALLED)
            assert best.is_within(0.1) is proved
            if parts <= 0:
                assert best.point == min(knapsack.ratios)
