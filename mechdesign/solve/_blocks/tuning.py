"""The constants of the block method, by algorithm, with their units.

Gaps are relative, and a share is a number in [0, 1]. benchmarks/results/block_method.csv has the measurements that
determined the values.

Theory: block_method.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Schedule: TypeAlias = tuple[tuple[float, float], ...]
"""Pairs of a relative gap and a threshold. At that gap, columns with less than threshold · mean mass are merged."""


@dataclass(frozen=True)
class GenerationTuning:
    """Constants of column generation.

    Attributes:
        max_rounds: Maximum number of rounds.
        min_entering_limit: A round adds at most max(`min_entering_limit`, size of the working set) columns.
        master_gap_share: If the target gap is tight, restricted problems are solved to this share of it.
        loose_gap: If the target gap is loose, restricted problems are solved to this relative gap.
        loose_share: If the target gap is very loose, restricted problems are solved to this share of it.
        pricing_gap_share: Share of the target gap that may remain because of negative reduced costs of omitted columns.
        master_time_share: Share of the remaining time for the restricted problem of a round.
        grace_s: Time for pricing after the first Ctrl-C [s].
        merge_care: Factor that reduces the merging thresholds from each round to the next.
        inactive_floor: A floor is ignored in pricing if its term in the bound is at most this share of the gap.
        max_column_share: If the working set has more than this share of all columns, solving with all columns is
            faster.
        min_coarse_iterations: If the coarse problems reach the first gap in fewer iterations, solving with all columns
            is faster.
        min_total_iterations: If the largest coarse problem takes fewer iterations, solving with all columns is faster.
        min_entries: Value of columns × rows² below which solving with all columns is faster.
        min_rows_without_floors: Number of rows below which solving with all columns is faster for programs without
            floors.
    """

    max_rounds: int = 20
    min_entering_limit: int = 16
    master_gap_share: float = 0.5
    loose_gap: float = 5e-3
    loose_share: float = 0.1
    pricing_gap_share: float = 0.25
    master_time_share: float = 0.6
    grace_s: float = 60.0
    merge_care: float = 0.25
    inactive_floor: float = 1e-2
    max_column_share: float = 0.4
    min_coarse_iterations: int = 16
    min_total_iterations: int = 40
    min_entries: int = 8_000_000
    min_rows_without_floors: int = 200


@dataclass(frozen=True)
class TrialTuning:
    """Constants of the trial solve, an approximate solve of a large program that selects columns by reduced costs.

    Reduced costs are in units of the mean cost of a row; columns of an optimal working set have the reduced cost 0.

    Attributes:
        min_rows: Number of rows from which a trial saves time. With 576 rows, a trial takes as long as it saves.
        max_gap_share: A trial saves time if the target gap is at most this share of the trial's last gap.
        reduced_cost: Columns with at most this reduced cost at the prices of the coarse problem enter the trial.
        min_mass_share: If these columns have less than this share of the mass, all columns of the working set enter the
            trial.
        candidate_reduced_cost: Columns with at most this reduced cost at the prices of the coarse problem are priced
            after the trial.
        restart_reduced_cost: Columns with at most this reduced cost at the prices of the trial are added to the second
            solve.
        restart_time_factor: The second solve starts only if the remaining time is at least this multiple of the trial's
            time.
    """

    min_rows: int = 800
    max_gap_share: float = 0.3
    reduced_cost: float = 3e-3
    min_mass_share: float = 0.8
    candidate_reduced_cost: float = 0.01
    restart_reduced_cost: float = 1e-4
    restart_time_factor: float = 4.0


@dataclass(frozen=True)
class MergeTuning:
    """Schedules that determine when columns are merged into other columns.

    Late merging increases the number of iterations. Early merging removes columns that the optimum uses. In the
    measured programs with 300 to 1,024 cells, the thresholds keep all columns that the optimum uses.

    Attributes:
        with_floors: Schedule for dense blocks with floors. With the first two thresholds 0.35 and 0.3, three useful
            columns of a program with 400 columns were merged.
        trial: Schedule of the trial solve. No columns are merged at the last gap of this schedule, because their
            reduced costs are needed.
        without_floors: Schedule for dense blocks without floors.
        sparse: Schedule for sparse blocks. An earlier first gap decides worse whether merging pays, and saves nothing.
        sparse_max_kept_share: If more than this share of the columns of a program with sparse blocks would remain at
            the first gap, no column is merged: rounds that restore merged columns cost more than merging saves. With
            225 cells and roads, merging saved time where up to 61 % remained, and lost time where 68 % or more did.
        coarse: Schedule of coarse problems.
        coarse_large: Schedule of coarse problems with `coarse_large_rows` rows or more.
        coarse_of_trial: Schedule of coarse problems before a trial solve, which restores useful columns that were
            merged.
        coarse_factor: Ratio of the program's rows to the rows of its coarse problem. A ratio of 6 removes useful
            columns.
        coarse_factor_of_trial: Ratio of the program's rows to the rows of its coarse problem before a trial solve.
        coarse_min_rows: Minimum number of rows of a coarse problem.
        coarse_first_gap: Smallest gap to which coarse problems are solved, except the largest coarse problem.
        coarse_large_rows: Number of rows from which a coarse problem uses the schedule `coarse_large`.
        loose_gap: Above this target gap, coarse problems merge more columns, because single columns hardly affect the
            cost.
        loose_factor: Factor by which merging thresholds are multiplied for target gaps above `loose_gap`.
    """

    with_floors: Schedule = ((0.03, 0.28), (0.01, 0.22), (3e-3, 0.1), (1e-3, 0.06), (1e-4, 0.02))
    trial: Schedule = ((0.03, 0.28), (0.01, 0.22), (3e-3, 0.0))
    without_floors: Schedule = ((0.4, 0.45), (0.15, 0.45), (0.03, 0.3))
    sparse: Schedule = ((0.1, 0.45), (0.03, 0.3), (0.01, 0.2), (3e-3, 0.1), (1e-3, 0.035), (1e-4, 0.02))
    sparse_max_kept_share: float = 0.65
    coarse: Schedule = ((0.3, 0.2), (0.1, 0.2), (0.03, 0.2), (0.01, 0.1), (3e-3, 0.03))
    coarse_large: Schedule = ((0.3, 0.2), (0.1, 0.3), (0.03, 0.3), (0.01, 0.14), (3e-3, 0.05))
    coarse_of_trial: Schedule = ((0.3, 0.35), (0.1, 0.4), (0.03, 0.4), (0.01, 0.3), (3e-3, 0.1))
    coarse_factor: int = 3
    coarse_factor_of_trial: int = 4
    coarse_min_rows: int = 50
    coarse_first_gap: float = 0.03
    coarse_large_rows: int = 180
    loose_gap: float = 5e-3
    loose_factor: float = 2.0


@dataclass(frozen=True)
class EstimateTuning:
    """Tolerances for choosing the adversary's estimates.

    Attributes:
        active_slack: An estimate is active in a column if its error exceeds the least error by at most this share.
        chosen_slack: An estimate is chosen if its error exceeds the least error of a column by at most this share.
        min_slack: An estimate becomes active only if its slack is at least this share of the contribution w.
    """

    active_slack: float = 0.3
    chosen_slack: float = 0.1
    min_slack: float = 1e-4


@dataclass(frozen=True)
class CorrectionTuning:
    """Constants of the bound correction for missing columns.

    Attributes:
        max_loss: The bound is corrected if its loss is at most this multiple of the remaining gap.
        few: The bound is also corrected if the missing columns are at most this share of the working set.
        gap_share: Accuracy of the correction, as a share of the target gap.
        loss_share: Accuracy of the correction, as a share of the loss of the bound.
        min_multiplier_share: An estimate is used for the missing columns if it has at least this share of the floor's
            multipliers.
    """

    max_loss: float = 30.0
    few: float = 0.1
    gap_share: float = 0.05
    loss_share: float = 0.01
    min_multiplier_share: float = 1e-2


@dataclass(frozen=True)
class PricingTuning:
    """Constants of pricing.

    Attributes:
        similar_slack: The first tier uses estimates whose errors exceed the least error of a similar column by at most
            this share.
        neighbours: Number of similar columns whose best estimates are used to price an omitted column.
        min_mass_share: Columns with less than this share of the mean mass are not used as similar columns.
        near_bounds: Number of bounds per row in the first tier, which uses the strictest bounds. For 20 × 20 cells,
            these bounds prove 97 % of the reduced costs to be non-negative.
        near_min_rows: Number of rows from which the first tier saves time.
        batch_entries: Largest value of columns × rows² for the columns that are priced simultaneously.
        batch_bytes_sparse: Size of a batch of sparse blocks [bytes].
        max_iterations: Maximum number of iterations of a pricing problem.
        min_step: If the primal and the dual step are shorter than this value, the iteration of a column ends.
        resolved_share: The iteration of a column with a negative reduced cost ends once its bracket is at most this
            share of its value.
        rounding: Rounding errors prevent brackets of reduced costs that are smaller than this share of the largest
            cost.
    """

    similar_slack: float = 0.1
    neighbours: int = 4
    min_mass_share: float = 1e-3
    near_bounds: int = 36
    near_min_rows: int = 500
    batch_entries: int = 8_000_000
    batch_bytes_sparse: int = 400_000_000
    max_iterations: int = 80
    min_step: float = 1e-6
    resolved_share: float = 0.5
    rounding: float = 1e-9


@dataclass(frozen=True)
class StepTuning:
    """Constants of one primal-dual step, in the main iteration or in a pricing problem.

    Attributes:
        max_sigma: Upper bound on Mehrotra's centring parameter σ. With an upper bound of 0.1, programs with dense
            blocks and a worst cost stall at a gap of 3e-7.
        max_correctors: Maximum number of Gondzio's correctors per step.
        long_step: If both step lengths are at least this value, no corrector is tried, and `boundary_fraction_long`
            applies.
        min_corrector_gain: A corrector is accepted if it increases the sum of both step lengths by at least this
            amount.
        min_step_kept: A corrector is rejected if the shorter step length falls below this share of its previous value.
        reach_factor: Correctors aim at the step length min(1, reach_factor · α + reach_offset).
        reach_offset: The constant term of the step length at which correctors aim.
        boundary_fraction: Fraction of the distance to the boundary that a step takes.
        boundary_fraction_long: Fraction of the distance to the boundary if both steps are long.
        max_link_miss_single: Largest permitted residual of the linking rows after a step in single precision
            [largest unit of a linking row].
    """

    max_sigma: float = 0.02
    max_correctors: int = 6
    long_step: float = 0.95
    min_corrector_gain: float = 0.01
    min_step_kept: float = 0.9
    reach_factor: float = 1.8
    reach_offset: float = 0.3
    boundary_fraction: float = 0.9
    boundary_fraction_long: float = 0.99
    max_link_miss_single: float = 1e-7


@dataclass(frozen=True)
class NewtonTuning:
    """Constants of the linear algebra of a step.

    Attributes:
        link_accuracy: Largest residual of the linking rows after a step [mass]. Larger residuals make the row sums
            drift.
        max_refinements: Maximum number of refinements of a direction. With a maximum of 8 refinements, a solve with 120
            road places stalls.
        max_refinements_single: Maximum number of refinements of a direction in single precision.
        max_absorbed_share: The step of a linking slack may absorb a residual of at most this share of the slack.
    """

    link_accuracy: float = 1e-11
    max_refinements: int = 2
    max_refinements_single: int = 8
    max_absorbed_share: float = 1e-6


@dataclass(frozen=True)
class SparseFactorTuning:
    """Constants of the factors of sparse blocks.

    Attributes:
        single_factors_gap: Smallest relative gap with factors and directions in single precision. With a smallest gap
            of 1e-3, the iteration stalls with 900 road places.
        single_inverses_gap: Smallest relative gap with inverses in single precision. The inverses are sums of terms of
            one sign. At smaller gaps, near the end, pivots are computed from row sums.
        refinements: Number of refinements of a solution near the end; pricing, whose gap is not known to the kernel,
            uses one. With one refinement, the bound of a program with 60 road places falls below its best value at a
            gap of 1.5e-6; with three, it equals the bound of dense blocks.
        max_miss: A factorisation fails if a solution misses its right side by more than this share; its diagonals are
            then raised.
    """

    single_factors_gap: float = 3e-2
    single_inverses_gap: float = 1e-4
    refinements: int = 3
    max_miss: float = 0.05


@dataclass(frozen=True)
class InteriorPointTuning:
    """Constants of the main iteration.

    Attributes:
        max_iterations: Maximum number of iterations. Programs with 300 rows and a floor need up to 160 iterations.
        feasibility: The objective is an upper bound if the primal residual is at most this value
            [unit of a linking row].
        cost_unit: Smallest denominator of relative gaps, as a share of the largest cost coefficient.
        acceptable_gap: A solve that stalls at this relative gap or below is reported as optimal.
        repair_gap: At this relative gap or below, the upper bound is the cost of the repaired iterate.
        patience: Pairs of a relative gap and a number of iterations. At larger gaps, the iteration ends after this
            number of iterations without progress.
        progress_factor: An iteration makes progress if the gap falls below this share of the gap at the last progress.
        min_step: The iteration has stalled if the primal and the dual step are shorter than this value.
        residual_price: Relative increase of the cost when a primal residual is repaired [per unit of the residual].
        dropped_share: Share of the target gap by which dropping small multipliers may decrease the bound.
        threads_min_rows: Number of ratio rows from which several threads are faster than one.
        contribution_margin: Relative distance of the initial contribution w to a floor from its upper limit.
        max_start_exponent: If an exponent exceeds this value, the iteration starts from the uniform channel [nats].
        min_start_cost: Lower limit of the cost that determines the initial μ, as a share of the largest cost
            coefficient.
    """

    max_iterations: int = 500
    feasibility: float = 1e-8
    cost_unit: float = 1e-9
    acceptable_gap: float = 1e-6
    repair_gap: float = 1e-4
    patience: tuple[tuple[float, int], ...] = ((1e-6, 15), (1e-8, 5), (-1.0, 1))
    progress_factor: float = 0.9
    min_step: float = 1e-4
    residual_price: float = 4.0
    dropped_share: float = 0.1
    threads_min_rows: int = 500_000
    contribution_margin: float = 0.05
    max_start_exponent: float = 40.0
    min_start_cost: float = 1e-9


@dataclass(frozen=True)
class Tuning:
    """The constants of all algorithms of the block method.

    Steps for sparse blocks allow more centring. Pricing problems use fewer correctors, because the constants of the
    main iteration do not prove the signs of some reduced costs near 0.
    """

    generation: GenerationTuning = field(default_factory=GenerationTuning)
    trial: TrialTuning = field(default_factory=TrialTuning)
    merging: MergeTuning = field(default_factory=MergeTuning)
    estimates: EstimateTuning = field(default_factory=EstimateTuning)
    correction: CorrectionTuning = field(default_factory=CorrectionTuning)
    pricing: PricingTuning = field(default_factory=PricingTuning)
    step: StepTuning = field(default_factory=StepTuning)
    sparse_step: StepTuning = field(default_factory=lambda: StepTuning(max_sigma=0.1))
    pricing_step: StepTuning = field(
        default_factory=lambda: StepTuning(max_sigma=0.1, max_correctors=2, long_step=0.9, min_corrector_gain=0.02)
    )
    newton: NewtonTuning = field(default_factory=NewtonTuning)
    sparse_factors: SparseFactorTuning = field(default_factory=SparseFactorTuning)
    interior_point: InteriorPointTuning = field(default_factory=InteriorPointTuning)


TUNING = Tuning()
"""The default constants."""
