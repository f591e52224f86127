"""Price the omitted columns of a restricted problem, and prove a lower bound over all columns.

Theory: block_method, Pricing problems.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import SolverError
from mechdesign.solve._block_angular import (
    BlockMultipliers,
    BlockProgram,
    RatioMultipliers,
    compute_reduced_costs,
    lower_bound,
    weigh_costs,
    with_columns,
)
from mechdesign.solve._blocks.bound_correction import correct_bound, is_correction_worthwhile
from mechdesign.solve._blocks.master import BlockBracket, BlockMaster, BlockRestricted
from mechdesign.solve._blocks.pricing import ColumnPricing, DualPrices
from mechdesign.solve._blocks.pricing_problem import PricedColumn
from mechdesign.solve._column_generation import PricingResult
from mechdesign.solve._contract import STATUS_OF_STOP, Status


class BlockPricer:
    """Pricer of the columns of a block program, which first tries the multipliers of earlier rounds."""

    def __init__(self, master: BlockMaster) -> None:
        self.master, self.program, self.tuning = master, master.program, master.tuning
        self.deadline = master.deadline.grace(master.tuning.generation.grace_s)
        self.pricing = ColumnPricing(
            master.program, master.options, master.report, self.deadline, master.budget, master.tuning.pricing
        )
        # For each column: the last result, and the floors whose multipliers the result contains.
        self._previous: dict[int, tuple[list[int], PricedColumn]] = {}

    def price(self, found: BlockRestricted, best: BlockBracket) -> PricingResult:
        """Price all omitted columns, and offer the lower bound of the full program to `best`."""
        solution, columns, tuning = found.prices, found.working.columns, self.tuning.generation
        # After an early stop, the tolerance follows the gap of the restricted problem.
        level = self.master.accuracy
        if found.status is not Status.OPTIMAL:
            level = max(level, min(solution.gap, 1.0))
        cost = abs(best.upper)
        # The reduced costs are per unit of mass, and the total mass of a channel is n.
        tolerance = tuning.pricing_gap_share * max(level, self.master.gap) * cost / self.program.rows
        # Offer the bound without pricing first, because pricing may be interrupted.
        self._offer(best, self.join_multipliers(columns, solution.multipliers, {}, np.zeros(0, dtype=np.int64)))
        priced, multipliers = self.price_omitted(found, tolerance, tuning.inactive_floor * level * cost)
        self._offer(best, multipliers)
        self.master.report("columns priced")
        self.deadline.check()
        missing = sorted(column for column, one in priced.items() if one.lower < -tolerance)
        # The grace period after Ctrl-C includes pricing, but not the correction.
        stop = self.master.deadline.stop()
        if missing and best.gap > self.master.gap and stop is None:
            lost = solution.lower - lower_bound(self.program, multipliers)
            if is_correction_worthwhile(
                len(missing), lost, solution.lower, best, self.master.gap, len(columns), self.tuning.correction
            ):
                self._correct(best, multipliers, np.array(missing), lost, found.working.estimates)
        improving = sorted((one.upper, column) for column, one in priced.items() if one.upper < -tolerance)
        unproved = sorted((priced[column].lower, column) for column in missing)
        status = Status.OPTIMAL if stop is None else STATUS_OF_STOP[stop]
        return PricingResult([column for _, column in improving], [column for _, column in unproved], status)

    def price_omitted(
        self, found: BlockRestricted, tolerance: float, inactive: float
    ) -> tuple[dict[int, PricedColumn], BlockMultipliers]:
        """Price the omitted columns; return their results and the multipliers of all columns.

        Args:
            found: The solution of the restricted problem.
            tolerance: Reduced costs of at least −`tolerance` are treated as non-negative.
            inactive: Floors whose term in the bound is at most this value are ignored, because their prices are
                rounding errors.

        Returns:
            The result of each omitted column, and the multipliers of all columns.
        """
        program, columns, multipliers = self.program, found.working.columns, found.prices.multipliers
        sums = compute_reduced_costs(with_columns(program, columns), multipliers).min(axis=1)
        weights = np.array([float(values.sum(axis=0).min()) for values in multipliers.floors])
        others = np.setdiff1d(np.arange(program.columns), columns)
        minima = np.array([floor.minimum for floor in program.floors])
        binding = np.flatnonzero(weights * minima > inactive)
        floors = tuple(program.floors[index] for index in binding)
        priced_program = replace(program, cost=weigh_costs(program, multipliers.weights), worst=None, floors=floors)
        prices = DualPrices(sums, weights[binding], tolerance)
        priced = self._reuse_multipliers(priced_program, binding, prices, others)
        remaining = np.array([column for column in others.tolist() if column not in priced], dtype=np.int64)
        priced |= self.pricing.price_columns(priced_program, columns, found.prices.x, remaining, prices)
        self._previous |= {column: (binding.tolist(), one) for column, one in priced.items()}
        return priced, self.join_multipliers(columns, multipliers, priced, binding)

    def _offer(self, best: BlockBracket, multipliers: BlockMultipliers) -> None:
        """Offer the lower bound that the multipliers prove."""
        best.offer_bound(lower_bound(self.program, multipliers), multipliers)

    def _correct(
        self,
        best: BlockBracket,
        multipliers: BlockMultipliers,
        missing: Integers,
        lost: float,
        estimates: tuple[Integers, ...],
    ) -> None:
        """Correct the multipliers for the missing columns, and offer the new bound."""
        tuning, count = self.tuning.correction, missing.size
        accuracy = max(tuning.gap_share * self.master.gap, tuning.loss_share * lost / max(abs(best.upper), 1e-300))
        self.master.report(f"correcting the bound for {count} missing column{'s' if count > 1 else ''}")
        matter = [
            (values[:, missing] > tuning.min_multiplier_share * values.sum(axis=0).min()).any(axis=1)
            for values in multipliers.floors
        ]
        some = [np.union1d(chosen, np.flatnonzero(each)) for chosen, each in zip(estimates, matter, strict=True)]
        part = self.master.deadline.part(self.tuning.generation.master_time_share)
        options = replace(self.master.options, deadline=part.quiet())
        try:
            found = correct_bound(self.program, multipliers, missing, some, options, accuracy, self.master.budget)
        except (SolverError, MemoryError) as error:
            # The memory does not suffice for the correction, so the bound remains as it is.
            self.master.report(str(error))
            return
        self._offer(best, found)
        self.master.report("bound corrected")

    def _reuse_multipliers(
        self, program: BlockProgram, binding: Integers, prices: DualPrices, others: Integers
    ) -> dict[int, PricedColumn]:
        """Return the columns whose earlier multipliers prove non-negative reduced costs at the new prices."""
        kept = {column: self._previous[column] for column in others.tolist() if column in self._previous}
        known = [column for column, (floors, _) in kept.items() if floors == binding.tolist()]
        if not known:
            return {}
        one = replace(program, cost=program.cost[:, known])
        old = [kept[column][1] for column in known]
        floors = [
            np.array([each.floors[index] * (weight / max(float(each.floors[index].sum()), 1e-300)) for each in old]).T
            for index, weight in enumerate(prices.floors)
        ]
        reduced = (
            compute_reduced_costs(one, _multipliers_of(old, np.arange(len(old)), floors)) - prices.row_sums[:, None]
        )
        return {
            column: replace(each, lower=float(lower), upper=np.inf, floors=tuple(q[:, at] for q in floors))
            for at, (column, each, lower) in enumerate(zip(known, old, reduced.min(axis=0), strict=True))
            if lower >= -prices.tolerance
        }

    def join_multipliers(
        self, columns: Integers, found: BlockMultipliers, priced: dict[int, PricedColumn], binding: Integers
    ) -> BlockMultipliers:
        """Join the multipliers of the restricted problem and of pricing to multipliers of all columns.

        Args:
            columns: The columns of the working set (B,).
            found: Multipliers of the columns of the working set.
            priced: Results of pricing. Columns that are neither priced nor in the working set get zero multipliers.
            binding: Indices of the floors that were priced.

        Returns:
            Multipliers of all columns of the program.
        """
        priced = dict(sorted(priced.items()))
        values, others = list(priced.values()), np.array(list(priced), dtype=np.int64)
        floors = [np.zeros((floor.error.shape[0], self.program.columns)) for floor in self.program.floors]
        for index, (full, mine) in enumerate(zip(floors, found.floors, strict=True)):
            full[:, columns] = mine
            if index in binding:
                position = int(np.searchsorted(binding, index))
                for column, one in priced.items():
                    full[:, column] = one.floors[position]
        ratios = found.ratios
        own = RatioMultipliers(ratios.sources, ratios.targets, columns[ratios.columns], ratios.values)
        remaining = _multipliers_of(values, others, floors).ratios
        both = (np.concatenate([getattr(own, name), getattr(remaining, name)]) for name in _FIELDS)
        return BlockMultipliers(RatioMultipliers(*both), tuple(floors), found.weights)


_FIELDS = ("sources", "targets", "columns", "values")


def _multipliers_of(priced: list[PricedColumn], columns: Integers, floors: list[Floats]) -> BlockMultipliers:
    """Convert the multipliers of priced columns to `BlockMultipliers`."""
    sizes = [each.values.size for each in priced]
    parts = [
        np.concatenate([np.zeros(0, dtype=kind), *(getattr(each, name) for each in priced)])
        for name, kind in (("sources", np.int64), ("targets", np.int64), ("values", np.float64))
    ]
    ratios = RatioMultipliers(parts[0], parts[1], np.repeat(columns, sizes), parts[2])
    return BlockMultipliers(ratios, tuple(floors))
