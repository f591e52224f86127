"""Price the omitted columns of a restricted problem, and prove a lower bound over all columns.

Omitted columns are priced in groups, with the most similar column of the working set. Only a few estimates of a floor
matter to a column: the best estimates for similar columns. Pricing starts with these estimates, because a bound that
some estimates prove is valid for all.

A small program corrects the lower bound for missing columns. A few missing columns hardly change the value of the
restricted problem. Yet the reduced costs of these columns at the multipliers λ are negative. Decreasing λ uniformly
until all reduced costs are non-negative weakens the bound much more. The small program finds the rows in which λ must
decrease. It contains the missing columns J, and a column x_0 with the costs λ that replaces all other columns:

    min  λ·x_0 + Σ_{o∈J} (c_o·x_o − Σ_f v_f w_of)   with  x_0 + Σ_{o∈J} x_o = 1,  ratio bounds,  w_of <= error_f[h]·x_o

The multipliers λ′ of its row sums satisfy λ − λ′ − Bᵀy_0 >= 0. If c_o − λ − Bᵀy_o >= 0 for another column o, then
c_o − λ′ − Bᵀ(y_o + y_0) >= 0. Adding y_0 therefore turns the proof for λ into a proof for λ′, and the other columns are
not priced again. The corrected bound is the value of the small program plus Σ_f v_f minimum_f.

Theory: block_method, Pricing problems; Bound correction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._deadline import Deadline
from mechdesign.base._errors import SolverError
from mechdesign.base._machine import count_processors
from mechdesign.solve._block_angular import (
    BlockMultipliers,
    BlockProgram,
    FloorBlock,
    RatioMultipliers,
    compute_reduced_costs,
    lower_bound,
    near_exponents,
    weigh_costs,
    with_columns,
)
from mechdesign.solve._blocks.interior_point import solve_by_interior_point
from mechdesign.solve._blocks.kernels import choose, few_bounds, sparse_kernel
from mechdesign.solve._blocks.layout import PairGeometry, find_bounded_pairs, lay_out, make_geometry
from mechdesign.solve._blocks.master import (
    BlockBracket,
    BlockMaster,
    BlockRestricted,
    with_all_estimates,
    with_estimates,
)
from mechdesign.solve._blocks.memory import MemoryBudget, measure_sparsity, pricing_batch
from mechdesign.solve._blocks.pricing_problem import PricedColumn, solve_pricing_problems
from mechdesign.solve._blocks.tuning import CorrectionTuning, PricingTuning
from mechdesign.solve._column_generation import Bracket, PricingResult
from mechdesign.solve._contract import STATUS_OF_STOP, Options, Status
from mechdesign.solve._threads import Workers, blas_threads


@dataclass(frozen=True, eq=False)
class ColumnGroup:
    """Similar columns, with the estimates of each floor that are used to price these columns."""

    columns: Integers
    estimates: tuple[Integers, ...]


def group_columns(
    program: BlockProgram,
    used: Integers,
    x: Floats,
    others: Integers,
    size: int,
    slack: float,
    tuning: PricingTuning,
) -> list[ColumnGroup]:
    """Group columns by the most similar column of the working set; without floors, group consecutive columns.

    Args:
        program: The program with all columns.
        used: The columns of the working set (k,).
        x: The values of these columns (n, k).
        others: The columns to group.
        size: Maximum number of columns in a group.
        slack: Relative amount by which the error of an estimate may exceed the least error for a similar column.
        tuning: Constants of pricing.

    Returns:
        Groups of columns, the largest first.
    """
    if not program.floors:
        return [ColumnGroup(others[start : start + size], ()) for start in range(0, others.size, size)]
    mass = x.sum(axis=0)
    kept = np.flatnonzero(mass > tuning.min_mass_share * mass.mean())
    shapes = x[:, kept] / mass[kept]
    # The additional cost if an omitted column replaced a column of the working set.
    beyond = program.cost[:, others].T @ shapes - (program.cost[:, used[kept]] * shapes).sum(axis=0)
    near = np.argsort(beyond, axis=1)[:, : tuning.neighbours]
    errors = [floor.error @ shapes for floor in program.floors]
    matter = [error <= (1 + slack) * error.min(axis=0) for error in errors]
    groups = []
    for middle in np.unique(near[:, 0]):
        alike = np.flatnonzero(near[:, 0] == middle)
        for start in range(0, alike.size, size):
            mine = alike[start : start + size]
            estimates = tuple(np.flatnonzero(each[:, np.unique(near[mine])].any(axis=1)) for each in matter)
            groups.append(ColumnGroup(others[mine], estimates))
    return sorted(groups, key=lambda group: -group.columns.size)


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
            with blas_threads(1):
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


def is_correction_worthwhile(
    missing: int,
    lost: float,
    lower: float,
    best: Bracket[Floats, BlockMultipliers],
    gap: float,
    used: int,
    tuning: CorrectionTuning,
) -> bool:
    """Return whether the bound should be corrected: few columns are missing, or the correction may close the gap.

    If a share p of the working set is missing, the correction takes about the share p of the time of a round.

    Args:
        missing: Number of missing columns.
        lost: Decrease of the lower bound that the missing columns cause.
        lower: Lower bound of the restricted problem.
        best: The bracket over all columns.
        gap: Target relative gap.
        used: Number of columns of the working set.
        tuning: Constants of the correction.

    Returns:
        Whether to correct the bound.
    """
    few = missing <= tuning.few * used
    enough = lost <= tuning.max_loss * (gap * abs(best.upper) - (best.upper - lower))
    return few or (enough and missing <= used // 2)


def correct_bound(
    program: BlockProgram,
    multipliers: BlockMultipliers,
    missing: Integers,
    estimates: Sequence[Integers],
    options: Options,
    gap: float,
    budget: MemoryBudget | None = None,
) -> BlockMultipliers:
    """Return multipliers that prove a better lower bound if columns are missing from the restricted problem.

    Args:
        program: The program with all columns.
        multipliers: Multipliers of all columns. The multipliers of the columns outside `missing` determine λ and v.
        missing: The columns (j,) with negative reduced costs at these multipliers.
        estimates: For each floor, the estimates that may matter to the missing columns.
        options: Options of `solve_by_interior_point`.
        gap: Relative gap of the small program.
        budget: The memory budget of the process.

    Returns:
        Corrected multipliers of all columns, or `multipliers` if the small program returns negative multipliers.

    Raises:
        SolverError: If the memory does not suffice for the blocks of the missing columns.
        KeyboardInterrupt: If the user has stopped the correction.
    """
    others = np.setdiff1d(np.arange(program.columns), missing)
    reduced = compute_reduced_costs(program, multipliers)[:, others]
    prices = reduced.min(axis=1)
    weights = [float(values[:, others].sum(axis=0).min()) for values in multipliers.floors]
    # The value of the small program includes the constant Σ_f v_f minimum_f, divided equally among the rows.
    constant = sum(v * floor.minimum for v, floor in zip(weights, program.floors, strict=True)) / program.rows
    cost = np.column_stack([weigh_costs(program, multipliers.weights)[:, missing], prices]) + constant
    floors = tuple(
        FloorBlock(0.0, floor.error[some], np.append(np.full(missing.size, v), 0.0))
        for floor, some, v in zip(program.floors, estimates, weights, strict=True)
    )
    small = BlockProgram(cost, program.exponents, floors)
    solution = solve_by_interior_point(small, options, gap=gap, budget=budget)
    if solution.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    found = solution.multipliers
    if any((values < 0).any() for values in (found.ratios.values, *found.floors)):
        # Negative multipliers do not prove a bound.
        return multipliers
    lowest = compute_reduced_costs(small, found).min(axis=1) - constant
    affected = others[(reduced < lowest[:, None]).any(axis=0)]
    substitute = _select_columns(found.ratios, np.array([missing.size]))
    ratios = _add_multipliers(
        program.rows,
        _select_columns(multipliers.ratios, others),
        _assign_columns(_select_columns(found.ratios, np.arange(missing.size)), missing),
        *(_assign_columns(substitute, np.full(missing.size + 1, column)) for column in affected.tolist()),
    )
    own = with_all_estimates(program, estimates, found).floors
    both = [values.copy() for values in multipliers.floors]
    for values, mine in zip(both, own, strict=True):
        values[:, missing] = mine[:, : missing.size]
    return BlockMultipliers(ratios, tuple(both), multipliers.weights)


_FIELDS = ("sources", "targets", "columns", "values")


def _select_columns(ratios: RatioMultipliers, columns: Integers) -> RatioMultipliers:
    """Return the multipliers of the given columns."""
    kept = np.isin(ratios.columns, columns)
    return RatioMultipliers(ratios.sources[kept], ratios.targets[kept], ratios.columns[kept], ratios.values[kept])


def _assign_columns(ratios: RatioMultipliers, columns: Integers) -> RatioMultipliers:
    """Replace the column index i of each multiplier by columns[i]."""
    return RatioMultipliers(ratios.sources, ratios.targets, columns[ratios.columns], ratios.values)


def _add_multipliers(rows: int, *parts: RatioMultipliers) -> RatioMultipliers:
    """Add sparse multipliers; merge entries with the same rows and column."""
    sources, targets, columns, values = (np.concatenate([getattr(part, name) for part in parts]) for name in _FIELDS)
    keys, place = np.unique((columns * rows + sources) * rows + targets, return_inverse=True)
    total: Floats = np.bincount(place, values, keys.size).astype(np.float64)
    return RatioMultipliers(keys // rows % rows, keys % rows, keys // rows**2, total)


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
        own = _assign_columns(found.ratios, columns)
        remaining = _multipliers_of(values, others, floors).ratios
        both = (np.concatenate([getattr(own, name), getattr(remaining, name)]) for name in _FIELDS)
        return BlockMultipliers(RatioMultipliers(*both), tuple(floors), found.weights)


def _multipliers_of(priced: list[PricedColumn], columns: Integers, floors: list[Floats]) -> BlockMultipliers:
    """Convert the multipliers of priced columns to `BlockMultipliers`."""
    sizes = [each.values.size for each in priced]
    parts = [
        np.concatenate([np.zeros(0, dtype=kind), *(getattr(each, name) for each in priced)])
        for name, kind in (("sources", np.int64), ("targets", np.int64), ("values", np.float64))
    ]
    ratios = RatioMultipliers(parts[0], parts[1], np.repeat(columns, sizes), parts[2])
    return BlockMultipliers(ratios, tuple(floors))
