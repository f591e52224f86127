"""Block programs for tests, and an independent solution of them by HiGHS on all rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.optimize import linprog

from mechdesign.solve._block_angular import BlockProgram, FloorBlock, WorstBlock, lower_bound, with_columns
from mechdesign.solve._blocks.column_generation import TrialMaster, choose_initial_working_set
from mechdesign.solve._blocks.interior_point import solve_by_interior_point
from mechdesign.solve._blocks.iterate import start_iterate
from mechdesign.solve._blocks.master import BlockMaster, BlockWorkingSet
from mechdesign.solve._blocks.memory import MemoryBudget
from mechdesign.solve._blocks.newton import RatioRows, factor_blocks
from mechdesign.solve._blocks.pricing import BlockPricer
from mechdesign.solve._blocks.step import take_step
from mechdesign.solve._blocks.tuning import TUNING
from mechdesign.solve._column_generation import Bracket, RestrictedSolution, generate_columns
from mechdesign.solve._contract import Options
from mechdesign.solve._threads import Workers

# The first use of Numba after an installation compiles for seconds.
ARRAYS = ["numpy", pytest.param("numba", marks=pytest.mark.slow)]

# Constants with which small programs use a coarse problem with half of the rows,
TINY = replace(TUNING, merging=replace(TUNING.merging, coarse_min_rows=2))
# and price columns with few bounds.
FEW = replace(TINY, pricing=replace(TUNING.pricing, near_min_rows=2, near_bounds=5))
# Constants with which small programs without floors use column generation, too.
LARGE = replace(TUNING, generation=replace(TUNING.generation, min_entries=1, min_rows_without_floors=100))


def master_of(program, gap=3e-7, tuning=TUNING, kind=BlockMaster, **options):
    """Return a master of a program, with a new bracket."""
    options = Options(**options).begun()
    return kind(program, options, gap, Bracket(), MemoryBudget.of_options(options.extra), tuning)


def working_of(program, columns=None):
    """Return the working set with the given columns (default: all) and all estimates."""
    every = BlockWorkingSet.with_all_columns(program, TUNING.estimates)
    return every if columns is None else every.replace_columns(columns)


def generate(master, working=None, pricer=None):
    """Generate columns from a working set; by default from the initial one, with a trial if it is due."""
    tried, rules = None, master.tuning.generation
    if working is None:
        working, tried = choose_initial_working_set(master, always=True)
    return generate_columns(
        master if tried is None else TrialMaster(master, tried), pricer or BlockPricer(master), working, master.best,
        master.gap, master.deadline, max_rounds=rules.max_rounds, min_entering_limit=rules.min_entering_limit,
    )  # fmt: skip


def priced(program, used, tolerance=1e-6, inactive=1e-6, pricer=None):
    """Return the solution with some columns, the results of pricing the others, and the multipliers of all columns."""
    solution = solve_by_interior_point(with_columns(program, used))
    pricer = pricer or BlockPricer(master_of(program, threads=1))
    return solution, *pricer.price_omitted(RestrictedSolution(working_of(program, used), solution), tolerance, inactive)


def grid(columns, rows, eps=0.6, cost="euclidean", floor=None, worst=False, masked=None):
    """Return a problem on a unit grid with a Gaussian prior; `floor` is a share of the largest distortion."""
    x, y = np.meshgrid(np.arange(columns), np.arange(rows))
    places = np.c_[x.ravel(), y.ravel()].astype(float)
    distance = np.sqrt(((places[:, None] - places[None]) ** 2).sum(-1))
    prior = np.exp(-((places - places.mean(0)) ** 2).sum(1) / (2 * (max(columns, rows) / 4) ** 2))
    prior /= prior.sum()
    costs = distance if cost == "euclidean" else (distance > 0).astype(float)
    exponents = eps * distance
    np.fill_diagonal(exponents, np.inf)
    if masked is not None:
        exponents[masked(distance)] = np.inf
    floors = ()
    if floor is not None:
        floors = (FloorBlock(floor * float((distance @ prior).min()), distance * prior),)
    if worst:
        return BlockProgram(0 * costs, exponents, floors, WorstBlock(costs, np.arange(costs.shape[0])))
    return BlockProgram(prior[:, None] * costs, exponents, floors)


def iterates(layout, kernel, steps):
    """Return the factored blocks after a few steps."""
    ratios = RatioRows(layout, Workers(1, layout.blocks, kernel.batch), kernel)
    iterate, mu = start_iterate(layout)
    ratios.start(np.ascontiguousarray(iterate.points[:, : layout.rows]), mu)
    for _ in range(steps):
        iterate = take_step(factor_blocks(layout, ratios, iterate)).iterate
    return factor_blocks(layout, ratios, iterate)


def random_program(seed):
    """Draw a small program with random bounds, components, floors, and an expected or worst cost."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 9)), int(rng.integers(1, 9))
    places = rng.integers(0, 4, (n, 2)) if rng.random() < 0.4 else rng.random((n, 2)) * 3
    distance = np.sqrt(((places[:, None] - places[None]) ** 2).sum(-1))
    eps = 10 ** rng.uniform(-1, 0.7)
    exponents = np.where(distance > 1e-9, eps * distance, 0.1 * eps)
    exponents[rng.random((n, n)) < rng.choice([0, 0, 0.3, 1])] = np.inf
    if rng.random() < 0.3:
        exponents[: n // 2, n // 2 :] = exponents[n // 2 :, : n // 2] = np.inf
    np.fill_diagonal(exponents, np.inf)
    prior = rng.random(n) ** 2
    if rng.random() < 0.3 and n > 1:
        prior[rng.integers(n)] = rng.choice([0.0, 1e-12])
    prior /= prior.sum()
    cost = rng.random((n, m)) * 10 ** rng.uniform(-2, 3)
    if rng.random() < 0.2:
        cost = (rng.random((n, m)) < 0.7).astype(float)
    floors = []
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        error = rng.random((int(rng.integers(1, 6)), n)) if rng.random() < 0.5 else distance
        largest = float((error @ prior).min())
        if largest > 0:
            floors.append(FloorBlock(largest * float(rng.choice([0.1, 0.5, 0.9, 0.95])), error * prior))
    if rng.random() < 0.3:
        row = np.concatenate([np.arange(n), rng.integers(0, n, 2)])
        return BlockProgram(0 * cost, exponents, tuple(floors), WorstBlock(np.vstack([cost, cost[:1], cost[-1:]]), row))
    return BlockProgram(prior[:, None] * cost, exponents, tuple(floors))


def optimum(program, near=None):
    """Return HiGHS' optimal value; for floors only the rows of the estimates flagged in `near` (m, k)."""
    n, m = program.cost.shape
    size = n * m
    width = size + len(program.floors) * m + 1
    # HiGHS refuses larger coefficients. Omitting these rows lowers the value by less than 1e-12.
    s, t = np.nonzero(program.exponents <= 27.6)
    roots = np.exp(program.exponents[s, t] / 2)
    eye = sparse.eye_array(m)

    def over_x(coefficients):
        left = sparse.kron(sparse.csr_array(coefficients), eye)
        return sparse.hstack([left, sparse.csr_array((left.shape[0], width - size))]).tocsr()

    ratios = np.zeros((s.size, n))
    ratios[np.arange(s.size), s] = 1 / roots
    ratios[np.arange(s.size), t] -= roots
    parts, limits = [over_x(ratios)], [np.zeros(s.size * m)]
    for index, floor in enumerate(program.floors):
        mine = slice(size + index * m, size + (index + 1) * m)
        rows = over_x(-floor.error).tolil()
        for h in range(floor.error.shape[0]):
            rows[h * m : (h + 1) * m, mine] = eye
        last = sparse.lil_array((1, width))
        last[0, mine] = -1.0
        rows = rows.tocsr() if near is None else rows.tocsr()[near[index].T.ravel()]
        parts += [rows, last.tocsr()]
        limits += [np.zeros(rows.shape[0]), np.array([-floor.minimum])]
    cost = np.zeros(width)
    cost[:size] = program.cost.ravel()
    for index, floor in enumerate(program.floors):
        if floor.rewards is not None:
            cost[size + index * m : size + (index + 1) * m] = -floor.rewards
    if program.worst is not None:
        cost[-1] = 1.0
        members = sparse.lil_array((program.worst.row.size, width))
        for i, row in enumerate(program.worst.row):
            members[i, row * m : (row + 1) * m] = program.worst.cost[i]
            members[i, width - 1] = -1.0
        parts.append(members.tocsr())
        limits.append(np.zeros(program.worst.row.size))
    sums = sparse.hstack([sparse.kron(sparse.eye_array(n), np.ones((1, m))), sparse.csr_array((n, width - size))])
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    result = linprog(
        cost,
        A_ub=sparse.csr_array(sparse.vstack(parts)),
        b_ub=np.concatenate(limits),
        A_eq=sparse.csr_array(sums),
        b_eq=np.ones(n),
        method="highs-ds",
        options=tight,
    )
    assert result.status == 0, result.message
    return float(result.fun)


def reduced_cost(program, column, prices, weights):
    """Return the least reduced cost of a column by HiGHS: min (c − λ)·x − Σ v_f w_f, Σ x = 1."""
    n, floors = program.rows, program.floors
    rows = []
    for s, t in zip(*np.nonzero(np.isfinite(program.exponents)), strict=True):
        if s != t:
            row = np.zeros(n + len(floors))
            row[s], row[t] = 1.0, -np.exp(program.exponents[s, t])
            rows.append(row)
    for index, floor in enumerate(floors):
        part = np.zeros((len(floor.error), len(floors)))
        part[:, index] = 1.0
        rows += list(np.hstack([-floor.error, part]))
    cost = np.append(program.cost[:, column] - prices, -np.asarray(weights))
    equal = np.append(np.ones(n), np.zeros(len(floors)))[None]
    return linprog(cost, A_ub=np.array(rows), b_ub=np.zeros(len(rows)), A_eq=equal, b_eq=[1.0], method="highs").fun


def assert_encloses(program, found, prices, weights, tolerance, bounds=None):
    """Compare priced columns with HiGHS, with all bounds or those of `bounds`; return how many may improve."""
    improving = 0
    for column, one in enumerate(found):
        expected = reduced_cost(bounds or program, column, prices, weights)
        improving += expected < -tolerance
        assert one.lower <= expected + 1e-7, column
        assert one.upper >= expected - 1e-7, column
        # Either the sign is proved, or the value is known to within half of itself.
        assert one.lower >= -tolerance or one.upper - one.lower <= 0.51 * abs(one.lower), column
        assert (one.values > 0).all(), column
        assert_proves(program, column, one, prices, tolerance)
    return improving


def assert_proves(program, column, one, prices, tolerance):
    """Check that the multipliers of a priced column prove its lower bound, with all bounds."""
    reduced = program.cost[:, column] - prices
    np.add.at(reduced, one.sources, one.values)
    np.add.at(reduced, one.targets, -np.exp(program.exponents[one.sources, one.targets]) * one.values)
    for floor, values in zip(program.floors, one.floors, strict=True):
        reduced -= values @ floor.error
    assert reduced.min() >= min(one.lower, -tolerance) - 1e-12, column


def violation(program, x):
    """Return the largest violation of a ratio bound, relative to the bound's own terms, or of a floor."""
    s, t = np.nonzero(np.isfinite(program.exponents))
    bound = np.exp(program.exponents[s, t])[:, None] * x[t]
    worst = float(np.max((x[s] - bound) / np.maximum(bound, 1e-12), initial=0.0))
    for floor in program.floors:
        worst = max(worst, (floor.minimum - float((floor.error @ x).min(axis=0).sum())) / floor.minimum)
    return worst


def agree(found, program):
    """Compare a bracket, and the bound that its multipliers prove, with the bracket of all blocks at once."""
    every = solve_by_interior_point(program)
    assert found.lower <= every.upper * (1 + 1e-9)
    assert every.lower <= found.upper * (1 + 1e-9)
    assert found.lower == pytest.approx(lower_bound(program, found.multipliers), rel=1e-12)


def check_against_highs(program, found, seed, bounds=None):
    """Compare a bracket with HiGHS' optimum, and check all bounds of x, or those of another program."""
    expected = optimum(program)
    coefficients = program.cost if program.worst is None else program.worst.cost
    tolerance = 1e-6 * max(expected, 1e-6 * float(coefficients.max()))
    assert abs(found.upper - expected) <= tolerance, (seed, found.message)
    assert expected - tolerance <= found.lower <= expected + 1e-3 * tolerance, (seed, found.message)
    assert violation(program if bounds is None else bounds, found.x) <= 1e-6, seed
