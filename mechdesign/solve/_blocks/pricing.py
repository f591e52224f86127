"""Solve pricing problems in groups of similar columns on several threads, first with few bounds and estimates.

Theory: block_method, Pricing problems.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._deadline import Deadline
from mechdesign.base._machine import count_processors
from mechdesign.solve._block_angular import BlockProgram, near_exponents, with_columns
from mechdesign.solve._blocks.estimates import with_estimates
from mechdesign.solve._blocks.kernels import choose, few_bounds, sparse_kernel
from mechdesign.solve._blocks.layout import PairGeometry, find_bounded_pairs, lay_out, make_geometry
from mechdesign.solve._blocks.memory import MemoryBudget, measure_sparsity, pricing_batch
from mechdesign.solve._blocks.neighbours import ColumnGroup, group_columns
from mechdesign.solve._blocks.parallel import Workers, single_threaded
from mechdesign.solve._blocks.pricing_problem import PricedColumn, solve_pricing_problems
from mechdesign.solve._blocks.tuning import PricingTuning
from mechdesign.solve._contract import Options


@dataclass(frozen=True, eq=False)
class DualPrices:
    """The dual prices of a restricted problem.

    Attributes:
        row_sums: Prices λ of the row sums (n,).
        floors: Prices v of the floors (F,).
        tolerance: Reduced costs of at least −`tolerance` are treated as non-negative.
    """

    row_sums: Floats
    floors: Floats
    tolerance: float


class ColumnPricing:
    """Solver of the pricing problems of columns.

    Args:
        program: The program with all columns.
        options: Options of the solve, which contain the number of threads and the kernel.
        report: Function that reports the name of a stage.
        deadline: The deadline. Only columns that are priced before it have results.
        budget: The memory budget of the process.
        tuning: Constants of pricing.
    """

    def __init__(
        self,
        program: BlockProgram,
        options: Options,
        report: Callable[[str], None],
        deadline: Deadline,
        budget: MemoryBudget,
        tuning: PricingTuning,
    ) -> None:
        self.program, self.options, self.report, self.deadline = program, options, report, deadline
        self.budget, self.tuning = budget, tuning
        self._near_exponents: Floats | None = None

    def price_columns(
        self, program: BlockProgram, used: Integers, x: Floats, columns: Integers, prices: DualPrices
    ) -> dict[int, PricedColumn]:
        """Price columns with few bounds and estimates, and price unproved columns again with all bounds and estimates.

        A bound that is proved with some bounds and estimates is also valid with all of them.

        Args:
            program: The program with only the binding floors.
            used: The columns of the working set (k,).
            x: The values of these columns (n, k).
            columns: The columns to price.
            prices: Dual prices of the restricted problem.

        Returns:
            The result of each column that was priced before the deadline.
        """
        threads, groups = self._group(program, used, x, columns, self.tuning.similar_slack)
        near, before = self._with_few_bounds(program), None
        found: dict[int, PricedColumn] = {}
        tiers = [(program, False), (program, True)]
        for bounds, whole in tiers if near is None else [(near, False), (near, True), (program, True)]:
            left = [_without_proved(group, found, prices.tolerance) for group in groups]
            if whole:
                left = [_with_all_estimates(bounds, group, again=bounds is not before) for group in left]
            found = _join_tiers(found, self.price_groups(bounds, left, prices, threads))
            if self.deadline.stop() is not None:
                break
            before = bounds
        return found

    def find_negative(
        self, used: Integers, x: Floats, prices: DualPrices, slack: float, columns: Integers
    ) -> dict[int, tuple[Integers, ...]]:
        """Return the columns whose reduced costs may be negative, with the probably relevant estimates for each.

        The test uses few bounds and few estimates, so it may also return columns with positive reduced costs.

        Args:
            used: The columns of the working set (k,).
            x: The values of these columns (n, k).
            prices: Dual prices.
            slack: Relative amount by which the error of an estimate may exceed the least error for similar columns.
            columns: The columns to price.

        Returns:
            A dictionary from columns to the estimates of each floor.
        """
        threads, groups = self._group(self.program, used, x, columns, slack)
        near = self._with_few_bounds(self.program)
        found = self.price_groups(self.program if near is None else near, groups, prices, threads)
        left = [(column, group.estimates) for group in groups for column in group.columns.tolist() if column in found]
        return {column: estimates for column, estimates in left if found[column].upper < 0}

    def _group(
        self, program: BlockProgram, used: Integers, x: Floats, columns: Integers, slack: float
    ) -> tuple[int, list[ColumnGroup]]:
        """Return the number of threads, and groups of similar columns that the threads can share."""
        threads = self.options.threads or count_processors()
        most = max(1, self._batch() // threads)
        size = max(1, min(most, -(-columns.size // threads)))
        return threads, group_columns(program, used, x, columns, size, slack, self.tuning)

    def _batch(self) -> int:
        """Return the number of columns that are priced simultaneously."""
        rows, columns = self.program.rows, self.program.columns
        if sparse_kernel(self.program, self.options.extra):
            block = measure_sparsity(rows, *np.nonzero(find_bounded_pairs(self.program.exponents))).bytes
            most = self.tuning.batch_bytes_sparse // block
        else:
            block, most = 0, self.tuning.batch_entries // rows**2
        return int(min(most, pricing_batch(rows, columns, self.budget, block)))

    def _with_few_bounds(self, program: BlockProgram) -> BlockProgram | None:
        """Return the program with only the strictest bounds of each row, or None if that saves no time."""
        if program.rows < self.tuning.near_min_rows or sparse_kernel(program, self.options.extra):
            return None
        if self._near_exponents is None:
            self._near_exponents = near_exponents(program.exponents, self.tuning.near_bounds)
        return replace(program, exponents=self._near_exponents)

    def price_groups(
        self, program: BlockProgram, groups: list[ColumnGroup], prices: DualPrices, threads: int
    ) -> dict[int, PricedColumn]:
        """Price groups of columns, each group on one thread."""
        groups = [group for group in groups if group.columns.size]
        if not groups:
            return {}
        self.report(f"pricing {sum(group.columns.size for group in groups)} of {self.program.columns} columns")
        # The groups share the geometry of the bounds, because they differ only in columns and estimates.
        geometry = make_geometry(program.exponents, len(program.floors))
        workers = Workers(threads, len(groups), 1)
        try:
            with single_threaded():
                parts = workers.run(
                    lambda _, batch: self._price_group(program, geometry, groups[batch.start], prices), whole=True
                )
        finally:
            workers.close()
        # Sort by column, because threads finish in any order.
        return dict(sorted((column, one) for part in parts for column, one in part.items()))

    def _price_group(
        self, program: BlockProgram, geometry: PairGeometry, group: ColumnGroup, prices: DualPrices
    ) -> dict[int, PricedColumn]:
        """Price the columns of a group on one thread; return an empty dictionary after the deadline."""
        if self.deadline.stop() is not None:
            return {}
        priced = with_estimates(with_columns(program, group.columns), group.estimates)
        layout = lay_out(priced, geometry=geometry)
        arrays, entries = self.options.extra.get("arrays"), self.program.columns * program.rows**2
        kernel_class = choose(arrays, entries, layout.sparse, self.deadline.left())
        if program.exponents is self._near_exponents:
            kernel_class = few_bounds(floors=layout.floors > 0)
        kernel = kernel_class(layout, 1)
        values = solve_pricing_problems(layout, kernel, prices.row_sums, prices.floors, prices.tolerance, self.deadline)
        found = {}
        for column, value in zip(group.columns.tolist(), values, strict=True):
            weights = []
            for floor, some, mine in zip(program.floors, group.estimates, value.floors, strict=True):
                full = np.zeros(len(floor.error))
                full[some] = mine
                weights.append(full)
            found[column] = replace(value, floors=tuple(weights))
        return found


def _without_proved(group: ColumnGroup, found: dict[int, PricedColumn], tolerance: float) -> ColumnGroup:
    """Remove columns from a group if their reduced costs are proved to be non-negative."""
    left = [column for column in group.columns.tolist() if column not in found or found[column].lower < -tolerance]
    return replace(group, columns=np.array(left, dtype=np.int64))


def _join_tiers(found: dict[int, PricedColumn], more: dict[int, PricedColumn]) -> dict[int, PricedColumn]:
    """Join the results of two tiers: the later upper bound and the better lower bound of each column."""
    return found | {
        column: one
        if column not in found or one.lower >= found[column].lower
        else replace(found[column], upper=one.upper)
        for column, one in more.items()
    }


def _with_all_estimates(program: BlockProgram, group: ColumnGroup, *, again: bool) -> ColumnGroup:
    """Return the group with all estimates; drop its columns if it has all estimates already and `again` is false."""
    every = tuple(np.arange(len(floor.error)) for floor in program.floors)
    fewer = any(some.size < each.size for some, each in zip(group.estimates, every, strict=True))
    return ColumnGroup(group.columns if fewer or again else group.columns[:0], every)
