"""The constants of the block method, by algorithm: each with its unit, and where its value comes from.

Gaps are relative; a share is a number from 0 to 1. The measurements are described on the theory page.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Schedule: TypeAlias = tuple[tuple[float, float], ...]
"""Relative gaps, and at each the share of an even mass below which a column is merged into another one."""


@dataclass(frozen=True)
class GenerationTuning:
    """Column generation with blocks for columns.

    Attributes:
        max_rounds: Largest number of rounds.
        min_entering: Columns that a round takes in, if so many improve; or as many as there are.
        loose_gap: Relative gap of restricted problems where the gap asked for is above twice this.
        loose_share: The same as a share of the gap asked for.
        master_gap_share: Share of the gap that the restricted problem may take.
        pricing_gap_share: Share of the gap that columns left out may take.
        master_time_share: Share of the time left, when a round begins, for its restricted problem.
        grace_s: Time for pricing after the first Ctrl-C [s].
        merge_care: Factor of the merging thresholds from one round to the next, which merges less.
        inactive_floor: Share of the gap below which the part of a floor in the bound does not count.
        max_column_share: If the working set holds more than this share of all columns, all at once are faster.
        min_coarse_iterations: If the coarse problems reach the first gap in fewer, all columns at once are faster.
        min_total_iterations: The same for the whole last coarse problem.
        min_entries: Columns × rows² below which all blocks at once take a moment.
        min_rows_without_floors: Rows below which all blocks at once are faster where there are no floors.
    """

    max_rounds: int = 20
    min_entering: int = 16
    loose_gap: float = 5e-3
    loose_share: float = 0.1
    master_gap_share: float = 0.5
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
    """The trial: a large program is solved roughly with few columns first; its prices choose the others.

    Columns are judged by what they cost beyond those in use, in units of the mean cost of a row.

    Attributes:
        min_rows: Rows from which a trial pays; with 576 it takes as long as it saves.
        max_gap_share: Largest gap asked for, as a share of the trial's last one.
        reduced_cost: Columns up to this cost beyond, at the prices of the coarse problem, are tried.
        min_mass_share: Smallest share of the mass that these must hold; otherwise all columns in use are tried.
        candidate_reduced_cost: Columns up to this cost beyond are priced after the trial.
        restart_reduced_cost: Columns up to this cost beyond, at the prices of the trial, are taken in.
        restart_time_factor: Time left, in trials, with which the program is solved with those as well.
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
    """Which columns are merged into others, and when.

    What columns keep at a gap tells which of them the optimum uses. Merged too late they make the path long, merged too
    early they are missing in the end: the thresholds leave those in that were needed on the city of the examples and
    the check-ins, with 300 to 1,024 cells.

    Attributes:
        with_floors: Schedule of dense blocks with floors; with 0.35 and 0.3 three of 400 columns were lost.
        trial: Schedule of the trial; its last gap leaves the columns that are to be judged.
        without_floors: Schedule of dense blocks without floors.
        sparse: Schedule of sparse blocks; with 0.5, 0.35, … one of 62 columns of 400 road places was lost.
        coarse: Schedule of a coarse problem.
        coarse_large: The same from `coarse_large_rows` on: there a coarse problem says more.
        coarse_of_trial: The same before a trial, which finds again what is lost.
        coarse_factor: Ratio of a program's rows to those of its coarse problem; six misses columns that matter.
        coarse_factor_of_trial: The same before a trial.
        coarse_min_rows: Least number of rows of a coarse problem.
        coarse_first_gap: Smallest gap to which coarse problems but the largest are solved.
        coarse_large_rows: Rows of a coarse problem from which `coarse_large` holds.
        loose_gap: Gap asked for above which thresholds of coarse problems grow: columns that matter little may go.
        loose_factor: Factor by which they grow.
    """

    with_floors: Schedule = ((0.03, 0.28), (0.01, 0.22), (3e-3, 0.1), (1e-3, 0.06), (1e-4, 0.02))
    trial: Schedule = ((0.03, 0.28), (0.01, 0.22), (3e-3, 0.0))
    without_floors: Schedule = ((0.4, 0.45), (0.15, 0.45), (0.03, 0.3))
    sparse: Schedule = (
        (0.3, 0.45), (0.1, 0.3), (0.03, 0.3), (0.01, 0.2), (3e-3, 0.1), (1e-3, 0.035), (1e-4, 0.02),
    )  # fmt: skip
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
    """Which of the adversary's estimates take part.

    Attributes:
        active_slack: An estimate takes part in a column if it is worse than the best one by at most this share.
        chosen_slack: It is chosen for the program if that holds for some column with this share.
        min_slack: Least slack of an estimate that begins to take part, as a share of w.
    """

    active_slack: float = 0.3
    chosen_slack: float = 0.1
    min_slack: float = 1e-4


@dataclass(frozen=True)
class CorrectionTuning:
    """The correction of the bound for columns that are missing.

    Attributes:
        max_loss: Largest loss of the bound for which it pays, as a multiple of the remaining gap.
        few: Share of the working set up to which missing columns are few.
        gap_share: Accuracy, as a share of the gap asked for.
        loss_share: Accuracy, as a share of the loss.
        min_multiplier_share: Share of a floor's multipliers from which an estimate matters to a missing column.
    """

    max_loss: float = 30.0
    few: float = 0.1
    gap_share: float = 0.05
    loss_share: float = 0.01
    min_multiplier_share: float = 1e-2


@dataclass(frozen=True)
class PricingTuning:
    """Pricing of the columns left out.

    Attributes:
        similar_slack: Estimates that are worse than the best one of a similar column by at most this share come first.
        neighbours: Columns in use that propose estimates for a column left out.
        min_mass_share: Columns in use with less than this share of an even mass propose none.
        near_bounds: Strictest bounds of each row that come first; they prove 97 % of the columns of 20 × 20 cells.
        near_min_rows: Rows from which that saves time.
        batch_entries: Columns × rows² that are priced at a time.
        batch_bytes_sparse: The same of sparse blocks [bytes].
        max_iterations: Largest number of iterations of a pricing problem.
        min_step: Length below which both steps are no progress.
        resolved_share: Width of the bracket of a negative reduced cost at which it is resolved, as a share of it.
        rounding: Share of the largest cost to which rounding lets a bracket close.
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
    """One primal-dual step, of the main iteration and of a pricing problem.

    Attributes:
        max_sigma: Largest σ of Mehrotra's centring. With 0.1 dense blocks with worst cost stall at a gap of 3e-7.
        max_correctors: Most of Gondzio's correctors in a step.
        long_step: Length from which a step needs no corrector, and takes the longer fraction.
        min_corrector_gain: Least gain of both lengths together for which a corrector is kept.
        min_step_kept: Share of the shorter length that a corrector must leave.
        reach_factor: Correctors aim at this factor of the length, and `reach_offset` more.
        reach_offset: The other part of that.
        boundary_fraction: Share of the way to the boundary that a step takes.
        boundary_fraction_long: The same where both steps are long.
        max_link_miss_single: Largest residual of the linking rows of a direction in single precision [largest unit].
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
    """The linear algebra of a step.

    Attributes:
        link_accuracy: Residual to which the linking rows are met [mass]; otherwise row sums drift.
        max_refinements: Most refinements of a direction; with 8 a solve of 120 road places stalls.
        max_refinements_single: The same in single precision, where the linking rows are missed otherwise.
        max_absorbed_share: Share of a linking slack that may absorb a residual.
    """

    link_accuracy: float = 1e-11
    max_refinements: int = 2
    max_refinements_single: int = 8
    max_absorbed_share: float = 1e-6


@dataclass(frozen=True)
class InteriorPointTuning:
    """The main iteration.

    Attributes:
        max_iterations: Largest number of iterations; floors and a cost that pull apart take 160 with 300 rows.
        feasibility: Primal residual up to which the objective is an upper bound [unit of a linking row].
        cost_unit: Share of the largest coefficient that gaps are relative to at least.
        acceptable_gap: Relative gap at which a stall counts as the end.
        repair_gap: Relative gap from which the upper bound is that of the repaired iterate.
        patience: Relative gaps above which an iteration may go on without progress for this number of steps: near the
            end rounding soon undoes more.
        progress_factor: A gap below this share of the one at the last progress is progress.
        min_step: Length below which both steps are a stall.
        residual_price: Cost of repairing a residual [cost per unit].
        dropped_share: Share of the gap that dropping small multipliers may cost.
        threads_min_rows: Ratio rows from which several threads are faster than one.
        part_start: Share by which the part w of a floor begins below what its column gives.
        max_start_exponent: Exponent above which an iteration begins with the uniform channel [nats].
        min_start_cost: Least cost of a start, as a share of the largest coefficient.
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

    Steps of sparse blocks are centred more, and pricing problems take fewer correctors: with those of the main
    iteration some reduced costs near 0 are not proved.
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
    interior_point: InteriorPointTuning = field(default_factory=InteriorPointTuning)


TUNING = Tuning()
"""The values that are used unless others are given."""
