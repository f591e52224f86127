"""Where an iteration begins: the starts lead to the same optimum, and the eager one to wide gaps in fewer steps."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest
from block_cases import grid

from mechdesign.solve._block_angular import lower_bound, objective
from mechdesign.solve._blocks import generation, memory, outside
from mechdesign.solve._blocks.column_generation import solve_columns
from mechdesign.solve._blocks.iterate import EAGER, SPREAD, UNIFORM, first_iterate, primal_residual
from mechdesign.solve._blocks.layout import lay_out
from mechdesign.solve._blocks.pricing_problem import price
from mechdesign.solve._blocks.interior_point import iterate_blocks
from mechdesign.solve._contract import Options, Status

pytestmark = pytest.mark.slow

STARTS = {"spread": SPREAD, "uniform": UNIFORM, "eager": EAGER}


@pytest.mark.parametrize("name", STARTS)
def test_starts_are_channels_well_inside_all_bounds(name):
    program = grid(6, 5)
    layout = lay_out(program)
    iterate, mu = first_iterate(layout, STARTS[name])
    channel = iterate.points[:, : layout.rows].T
    assert channel.sum(axis=1) == pytest.approx(1.0)
    assert primal_residual(layout, iterate) <= 1e-12
    ratios = np.log(channel[:, None, :]) - np.log(channel[None, :, :])
    assert (ratios <= 0.91 * program.exponents[:, :, None])[~np.eye(30, dtype=bool)].all()
    whole = objective(program, channel) / (program.columns * layout.weights.sum())
    assert mu == pytest.approx(STARTS[name].part * whole)


def test_the_slope_is_that_of_the_start():
    program = grid(6, 5)
    for start in (SPREAD, EAGER):
        channel = first_iterate(lay_out(program), start)[0].points.T
        fall = np.log(channel[3, 3]) - np.log(channel[0, 3]) - (np.log(channel[3, 0]) - np.log(channel[0, 0]))
        # Normalisation cancels in a ratio of ratios, which is that of twice the distance.
        assert fall == pytest.approx(2 * start.slope * program.exponents[0, 3])
    uniform = first_iterate(lay_out(program), UNIFORM)[0].points
    assert (uniform == uniform[0, 0]).all()


@pytest.mark.parametrize(("bound", "uniform"), [(0.01, True), (100.0, True), (3.9, False)])
def test_a_channel_that_is_not_inside_all_bounds_gives_way_to_the_uniform_one(bound, uniform):
    """The first bound is tighter than the triangle inequality allows; the second too wide for a spread-out channel."""
    program = grid(6, 5)
    program.exponents[0, 29] = program.exponents[29, 0] = bound
    x = first_iterate(lay_out(program), SPREAD)[0].points
    assert bool(x.min() == x.max()) is uniform


@pytest.mark.parametrize("name", STARTS)
def test_all_starts_lead_to_the_same_optimum(name):
    program = grid(6, 5)
    reached = iterate_blocks(program, Options(), gap=1e-6, start=STARTS[name])
    assert reached.status is Status.OPTIMAL
    last = reached.history[-1]
    other = iterate_blocks(program, Options(), gap=1e-6, start=SPREAD).history[-1]
    assert last.upper == pytest.approx(other.upper, rel=2e-6)


def test_the_eager_start_reaches_wide_gaps_sooner():
    program = grid(16, 12)
    steps = {
        name: len(iterate_blocks(program, Options(), gap=0.4, start=start).history) for name, start in STARTS.items()
    }
    assert steps["eager"] < steps["spread"]


@pytest.mark.parametrize(("cost", "stages"), [("euclidean", 3), ("hamming", 1)])
def test_stages_end_where_nothing_is_merged(cost, stages, monkeypatch):
    """With Hamming cost every column is used: after the first stage the program is solved to its end."""
    monkeypatch.setattr(memory, "_LARGE", 100)
    monkeypatch.setattr(memory, "_WORTH", 1)
    called = []

    def noted(program, options, *, gap, start):
        called.append((gap, program.columns))
        return iterate_blocks(program, options, gap=gap, start=start)

    monkeypatch.setattr(generation, "iterate_blocks", noted)
    found = solve_columns(grid(12, 12, cost=cost), gap=1e-4)
    assert found.status is Status.OPTIMAL
    assert len(called) == stages
    assert called[0] == (0.4, 144)


@pytest.mark.parametrize(("presses", "grace"), [(1, 60.0), (2, 60.0), (1, 0.0)])
def test_ctrl_c_after_merging_still_prices_the_columns_left_out(presses, grace, monkeypatch):
    monkeypatch.setattr(memory, "_LARGE", 100)
    monkeypatch.setattr(memory, "_WORTH", 1)
    monkeypatch.setattr(generation, "_GRACE", grace)
    program, moments, pressed = grid(12, 12), [], []
    expected = iterate_blocks(program, Options(), gap=1e-6).history[-1]

    def stop(progress):
        moments.append(progress)
        few = "of 144 columns" in progress.stage and not progress.stage.startswith("144")
        if few and progress.iteration > 16 and len(pressed) < presses:
            pressed.append(progress.stage)
            signal.raise_signal(signal.SIGINT)

    found = solve_columns(program, Options(progress=stop), gap=1e-6)
    assert len(pressed) == presses
    assert presses == 1 or pressed[1].startswith("pricing")
    assert found.status is Status.INTERRUPTED
    assert found.lower == pytest.approx(lower_bound(program, found.multipliers))
    assert found.lower <= expected.upper
    assert expected.lower <= found.upper * (1 + 1e-9)
    assert (found.upper - found.lower <= 0.1 * found.upper) is (presses == 1 and grace > 0)
    # What is told is the bracket of all columns, from the first iterations on.
    lower = [moment.lower for moment in moments if moment.lower is not None]
    assert lower == sorted(lower)
    assert 0 < lower[len(lower) // 2] <= expected.upper


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_while_columns_are_priced_keeps_the_prices(presses, monkeypatch):
    monkeypatch.setattr(memory, "_LARGE", 100)
    monkeypatch.setattr(memory, "_WORTH", 1)
    # One column at a time: there are many groups left when it comes.
    monkeypatch.setattr(outside, "_CHUNK", 1)
    called = []

    def pressing(*arguments):
        called.append(threading.current_thread())
        if called[-1] is threading.main_thread() and called.count(called[-1]) == 2:
            for _ in range(presses):
                signal.raise_signal(signal.SIGINT)
        return price(*arguments)

    monkeypatch.setattr(outside, "price", pressing)
    found = solve_columns(grid(12, 12), Options(threads=2), gap=1e-4)
    assert found.status is Status.INTERRUPTED
    assert (found.upper - found.lower <= 1e-4 * found.upper) is (presses == 1)
    assert presses == 1 or len(called) < 10
