"""Correct the lower bound for columns that are missing from a restricted problem.

A few missing columns hardly change the value of the restricted problem. Yet the reduced costs of these columns at the
multipliers λ are negative. Decreasing λ uniformly until all reduced costs are non-negative weakens the bound much more.
A small program finds the rows in which λ must decrease. The small program contains the missing columns J, and a column
x_0 with the costs λ that replaces all other columns:

    min  λ·x_0 + Σ_{o∈J} (c_o·x_o − Σ_f v_f w_of)   with  x_0 + Σ_{o∈J} x_o = 1,  ratio bounds,  w_of <= error_f[h]·x_o

The multipliers λ′ of its row sums satisfy λ − λ′ − Bᵀy_0 >= 0. If c_o − λ − Bᵀy_o >= 0 for another column o, then
c_o − λ′ − Bᵀ(y_o + y_0) >= 0. Adding y_0 therefore turns the proof for λ into a proof for λ′, and the other columns are
not priced again. The corrected bound is the value of the small program plus Σ_f v_f minimum_f.

Theory: block_method, Bound correction.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.solve._block_angular import (
    BlockMultipliers,
    BlockProgram,
    FloorBlock,
    RatioMultipliers,
    compute_reduced_costs,
    weigh_costs,
)
from mechdesign.solve._blocks.estimates import with_all_estimates
from mechdesign.solve._blocks.interior_point import solve_by_interior_point
from mechdesign.solve._blocks.memory import MemoryBudget
from mechdesign.solve._blocks.tuning import CorrectionTuning
from mechdesign.solve._column_generation import Bracket
from mechdesign.solve._contract import Options, Status


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


def _select_columns(ratios: RatioMultipliers, columns: Integers) -> RatioMultipliers:
    """Return the multipliers of the given columns."""
    kept = np.isin(ratios.columns, columns)
    return RatioMultipliers(ratios.sources[kept], ratios.targets[kept], ratios.columns[kept], ratios.values[kept])


def _assign_columns(ratios: RatioMultipliers, columns: Integers) -> RatioMultipliers:
    """Replace the column index i of each multiplier by columns[i]."""
    return RatioMultipliers(ratios.sources, ratios.targets, columns[ratios.columns], ratios.values)


def _add_multipliers(rows: int, *parts: RatioMultipliers) -> RatioMultipliers:
    """Add sparse multipliers; merge entries with the same rows and column."""
    sources, targets, columns, values = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("sources", "targets", "columns", "values")
    )
    keys, place = np.unique((columns * rows + sources) * rows + targets, return_inverse=True)
    total: Floats = np.bincount(place, values, keys.size).astype(np.float64)
    return RatioMultipliers(keys // rows % rows, keys % rows, keys // rows**2, total)
