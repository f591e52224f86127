"""Large programs with floors are tried before they are solved: with which columns, and what is kept of that."""

from __future__ import annotations

import signal
from dataclasses import replace

import numpy as np
import pytest
from block_cases import grid

from mechdesign.base._deadline import Deadline
from mechdesign.errors import SolverError
from mechdesign.solve._block_angular import lower_bound
from mechdesign.solve._blocks import generation, stages
from mechdesign.solve._blocks.coarsening import aggregated
from mechdesign.solve._blocks.column_generation import solve_columns
from mechdesign.solve._blocks.interior_point import solve_block
from mechdesign.solve._contract import Options, Status

pytestmark = pytest.mark.slow

GENERATED = Options(extra={"generation": True})


@pytest.fixture
def _tried(monkeypatch, _few):
    """Let programs of a few rows be tried, with few bounds for each row."""
    monkeypatch.setattr(stages, "_LARGE", 2)


@pytest.fixture
def trials(monkeypatch, _tried):
    """Return a list of the columns of each trial, and of those that the second start begins with, None without one."""
    noted, first, solve = [], generation._Run._first, generation._Run._solve

    def spied(self, level):
        noted.append([self.columns.copy(), None])
        return first(self, level)

    def started(self, level, care):
        if noted and noted[-1][1] is None:
            noted[-1][1] = self.columns.copy()
        return solve(self, level, care)

    monkeypatch.setattr(generation._Run, "_first", spied)
    monkeypatch.setattr(generation._Run, "_solve", started)
    return noted


def agree(found, program):
    """Check that a bracket holds the optimum of all blocks at once."""
    every = solve_block(program)
    assert found.lower <= every.upper * (1 + 1e-9)
    assert every.lower <= found.upper * (1 + 1e-9)
    assert found.lower == pytest.approx(lower_bound(program, found.multipliers), rel=1e-12)


@pytest.mark.parametrize("floor", [0.85, 0.9, 0.97])
def test_a_trial_takes_in_what_the_optimum_uses(floor, trials):
    program = grid(7, 6, floor=floor)
    found = solve_columns(program, GENERATED)
    assert found.status is Status.OPTIMAL
    assert found.upper - found.lower <= 3e-7 * found.upper
    agree(found, program)
    ((before, after),) = trials
    assert set(before) <= set(after)
    assert after.size < program.columns


def test_a_trial_with_too_few_columns_takes_in_the_others(trials, monkeypatch):
    program = grid(7, 6, floor=0.9)
    used = np.flatnonzero(solve_block(program).x.sum(axis=0) > 0.2)
    begin = generation._Run.begin

    def fewer(self, *, always):
        begun = begin(self, always=always)
        self.choice = self.choice.only(np.setdiff1d(self.columns, used[::2]))
        self.likely = np.arange(program.columns)
        return begun

    monkeypatch.setattr(generation._Run, "begin", fewer)
    found = solve_columns(program, GENERATED, gap=1e-5)
    assert found.status is Status.OPTIMAL
    agree(found, program)
    ((before, after),) = trials
    assert np.setdiff1d(used, before).size >= used.size // 2
    assert np.setdiff1d(used, after).size <= np.setdiff1d(used, before).size // 4


def test_without_time_to_begin_anew_the_trial_goes_on(trials, monkeypatch):
    monkeypatch.setattr(generation, "_AGAIN", 1e9)
    program = grid(6, 5, floor=0.9)
    found = solve_columns(program, replace(GENERATED, time_limit=600.0), gap=1e-5)
    assert found.status is Status.OPTIMAL
    agree(found, program)
    ((_, after),) = trials
    # None, or that of a further round.
    assert after is None or found.upper - found.lower <= 1e-5 * found.upper


@pytest.mark.parametrize("when", ["trial", "pricing", "measuring", "anew"])
def test_ctrl_c_keeps_what_the_trial_has_found(when, trials, monkeypatch):
    program, pressed = grid(7, 6, floor=0.9), []

    def press():
        if not pressed:
            pressed.append(when)
            signal.raise_signal(signal.SIGINT)

    worth, solved, narrowed = generation._Run._worth, generation._Run._solved, generation._Run._narrowed

    def pricing(self, small, *rest):
        if when == "pricing" and small.rows == program.rows:
            press()
        return worth(self, small, *rest)

    def measuring(self, *rest, **options):
        if when == "measuring":
            press()
        return solved(self, *rest, **options)

    def narrowing(self, small, stages):
        if when == "trial" or (when == "anew" and trials[-1][1] is not None):
            press()
        return narrowed(self, small, stages)

    monkeypatch.setattr(generation._Run, "_worth", pricing)
    monkeypatch.setattr(generation._Run, "_solved", measuring)
    monkeypatch.setattr(generation._Run, "_narrowed", narrowing)
    found = solve_columns(program, GENERATED)
    assert pressed == [when]
    assert found.status is Status.INTERRUPTED
    agree(found, program)
    if when != "trial":
        assert found.upper - found.lower <= 0.02 * found.upper


def test_a_second_start_that_time_ends_gives_no_less_than_the_trial(trials, monkeypatch):
    program, narrowed = grid(7, 6, floor=0.9), generation._Run._narrowed

    def ended(self, small, stages):
        if trials[-1][1] is not None:
            self.deadline = Deadline(0.0)
        return narrowed(self, small, stages)

    monkeypatch.setattr(generation._Run, "_narrowed", ended)
    found = solve_columns(program, GENERATED)
    assert len(trials) == 1
    assert found.upper - found.lower <= 0.02 * found.upper
    agree(found, program)


def test_without_room_for_a_second_start_the_trial_counts(trials, monkeypatch):
    program, narrowed = grid(7, 6, floor=0.9), generation._Run._narrowed

    def refused(self, small, stages):
        if trials[-1][1] is not None:
            raise SolverError("the block solver would take more memory than there is")
        return narrowed(self, small, stages)

    monkeypatch.setattr(generation._Run, "_narrowed", refused)
    found = solve_columns(program, GENERATED)
    assert found.upper - found.lower <= 0.02 * found.upper
    agree(found, program)


def test_a_trial_that_stalls_is_no_more_than_that(trials, monkeypatch):
    """All likely columns are begun with."""
    program, narrowed = grid(7, 6, floor=0.9), generation._Run._narrowed

    def stalled(self, small, stages):
        return (None, False) if trials[-1][1] is None else narrowed(self, small, stages)

    monkeypatch.setattr(generation._Run, "_narrowed", stalled)
    found = solve_columns(program, GENERATED)
    assert found.status is Status.OPTIMAL
    agree(found, program)
    ((before, after),) = trials
    assert set(before) < set(after)


def test_loose_gaps_and_programs_without_floors_are_not_tried(trials):
    for program, gap in ((grid(6, 5, floor=0.9), 2e-3), (grid(6, 5), 1e-5), (grid(6, 5, worst=True, floor=0.8), 1e-4)):
        found = generation.solve_generated(program, gap=gap, always=True)
        assert found.upper - found.lower <= gap * found.upper
    assert not trials


def test_rows_equally_far_apart_make_as_many_clusters_as_asked_for():
    exponents = np.full((12, 12), 0.5)
    np.fill_diagonal(exponents, np.inf)
    program = replace(grid(4, 3), exponents=exponents)
    for count in (1, 4, 11, 12, 20):
        small = aggregated(program, count)
        assert small.rows == min(count, 12)
        assert small.exponents[~np.eye(small.rows, dtype=bool)] == pytest.approx(0.5)


@pytest.mark.parametrize("count", [2, 5, 9, 16])
def test_geometric_means_over_clusters_meet_their_bounds(count):
    """A column that meets all bounds: the geometric means of its rows meet those of the small program."""
    program = grid(6, 5)
    small = aggregated(program, count)
    assert small.rows == count
    finite = program.exponents.copy()
    np.fill_diagonal(finite, 0.0)
    # Which row is in which cluster shows in the costs of columns of unit vectors.
    member = aggregated(replace(program, cost=np.eye(30)), count).cost
    assert (member.sum(axis=0) == 1).all()
    rng = np.random.default_rng(count)
    for _ in range(20):
        start = rng.normal(0, 3, 30)
        logarithms = (start + finite).min(axis=1)
        assert (logarithms[:, None] - logarithms <= finite + 1e-12).all()
        means = member @ logarithms / member.sum(axis=1)
        assert (means[:, None] - means <= np.where(np.isinf(small.exponents), 1e9, small.exponents) + 1e-12).all()
