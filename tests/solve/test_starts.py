"""The starts of the iteration lead to the same optimum, and the start with a low μ reaches wide gaps sooner."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from block_cases import LARGE, generate, grid, master_of
from long import mostly_long

from mechdesign.solve._block_angular import lower_bound, objective
from mechdesign.solve._blocks.interior_point import iterate_blocks
from mechdesign.solve._blocks.iterate import DISTANCE_START, LOW_MU_START, UNIFORM_START, primal_residual, start_iterate
from mechdesign.solve._blocks.layout import lay_out
from mechdesign.solve._blocks.master import BlockMaster
from mechdesign.solve._blocks.pricing import BlockPricer, ColumnPricing
from mechdesign.solve._contract import Options, Status

pytestmark = pytest.mark.slow

STARTS = {"spread": DISTANCE_START, "uniform": UNIFORM_START, "eager": LOW_MU_START}


@pytest.mark.parametrize("name", STARTS)
def test_starts_are_channels_well_inside_all_bounds(name):
    program = grid(6, 5)
    layout = lay_out(program)
    iterate, mu = start_iterate(layout, STARTS[name])
    channel = iterate.points[:, : layout.rows].T
    assert channel.sum(axis=1) == pytest.approx(1.0)
    assert primal_residual(layout, iterate) <= 1e-12
    ratios = np.log(channel[:, None, :]) - np.log(channel[None, :, :])
    assert (ratios <= 0.91 * program.exponents[:, :, None])[~np.eye(30, dtype=bool)].all()
    whole = objective(program, channel) / (program.columns * layout.weights.sum())
    assert mu == pytest.approx(STARTS[name].mu_share * whole)


@pytest.mark.parametrize(("bound", "uniform"), [(0.01, True), (100.0, True), (3.9, False)])
def test_a_channel_that_is_not_inside_all_bounds_gives_way_to_the_uniform_one(bound, uniform):
    """The first bound is tighter than the triangle inequality allows. The second is too wide for a decaying channel."""
    program = grid(6, 5)
    program.exponents[0, 29] = program.exponents[29, 0] = bound
    x = start_iterate(lay_out(program), DISTANCE_START)[0].points
    assert bool(x.min() == x.max()) is uniform


@pytest.mark.parametrize("name", STARTS)
def test_all_starts_lead_to_the_same_optimum(name):
    program = grid(6, 5)
    reached = iterate_blocks(program, Options(), gap=1e-6, start=STARTS[name])
    assert reached.status is Status.OPTIMAL
    last = reached.history[-1]
    other = iterate_blocks(program, Options(), gap=1e-6, start=DISTANCE_START).history[-1]
    assert last.upper == pytest.approx(other.upper, rel=2e-6)


class InterruptedMaster(BlockMaster):
    """A master that sends Ctrl-C once columns are merged."""

    def finish_run(self, run, *, measure=False):
        assert len(run.working) < self.program.columns
        self.deadline.cancel()
        found = super().finish_run(run, measure=measure)
        self.deadline.acknowledge()
        return found


class InterruptedPricing(ColumnPricing):
    """Pricing that sends Ctrl-C the given number of times."""

    presses = 1

    def price_groups(self, program, groups, prices, threads):
        self.groups = len(groups)
        for _ in range(self.presses):
            self.deadline.cancel()
        return super().price_groups(program, groups, prices, threads)


def make_interrupted_pricer(master, presses):
    """Return a pricer whose pricing is stopped."""
    pricer = BlockPricer(master)
    # One column at a time: many groups remain when Ctrl-C arrives.
    tuning = replace(master.tuning.pricing, batch_entries=1)
    given = master.program, master.options, master.report, pricer.deadline, master.budget, tuning
    pricer.pricing = InterruptedPricing(*given)
    pricer.pricing.presses = presses
    return pricer


@pytest.mark.long
@pytest.mark.parametrize(("presses", "grace"), [(1, 60.0), (2, 60.0), (1, 0.0)])
def test_ctrl_c_after_merging_still_prices_omitted_columns(presses, grace):
    program, moments = grid(12, 12), []
    expected = iterate_blocks(program, Options(), gap=1e-4).history[-1]
    tuning = replace(LARGE, generation=replace(LARGE.generation, grace_s=grace))
    master = master_of(program, 1e-6, tuning, InterruptedMaster, progress=moments.append)
    pricer, best = make_interrupted_pricer(master, presses - 1), master.best
    try:
        assert generate(master, pricer=pricer).status is Status.INTERRUPTED
    except KeyboardInterrupt:
        assert presses == 2
    assert best.lower == pytest.approx(lower_bound(program, best.proof))
    assert best.lower <= expected.upper
    assert expected.lower <= best.upper * (1 + 1e-9)
    assert (best.gap <= 0.1) is (presses == 1 and grace > 0)
    # Progress reports show the bracket over all columns, from the first iterations on.
    lower = [moment.lower for moment in moments if moment.lower is not None]
    assert lower == sorted(lower)
    assert 0 < lower[len(lower) // 2] <= expected.upper


@pytest.mark.parametrize("presses", mostly_long([1, 2]))
def test_ctrl_c_while_columns_are_priced_keeps_the_prices(presses):
    master = master_of(grid(12, 12), 1e-4, LARGE, threads=2)
    pricer = make_interrupted_pricer(master, presses)
    with pytest.raises(KeyboardInterrupt):
        generate(master, pricer=pricer)
    assert (master.best.gap <= 1e-4) is (presses == 1)
    assert pricer.pricing.groups > 10
