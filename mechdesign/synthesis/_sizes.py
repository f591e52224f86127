"""Estimate the memory and time of a program before anything is built.

Memory estimates are either the limits of the block method or values measured with HiGHS. Time estimates are seconds on
one core of a reference machine, multiplied by the slowness of this machine (`Speed`). Time estimates should be correct
within a factor of two; `benchmarks/solvers/estimates.py` compares them with the measured times of twenty programs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from mechdesign.base import _warnings as warned
from mechdesign.base._errors import InputError, SizeWarning, TooLargeError
from mechdesign.base._machine import count_threads
from mechdesign.model._domain import Domain
from mechdesign.model._problem import Problem
from mechdesign.solve._blocks.layout import is_sparse
from mechdesign.solve._blocks.memory import (
    MemoryBudget,
    Sparsity,
    block_memory,
    generation_may_pay,
    measure_sparsity,
    merging_memory,
    sparse_memory,
)
from mechdesign.solve._blocks.parallel import single_threaded
from mechdesign.solve._blocks.tuning import TUNING
from mechdesign.synthesis._attempts import (
    BLOCK_SOLVER,
    MAX_SIMPLEX_ROWS,
    RAYS,
    choose_lazy_solver,
    choose_simplex_solver,
    takes_blocks,
)
from mechdesign.synthesis._pairs import find_few_pairs
from mechdesign.synthesis._parts import Part
from mechdesign.synthesis._settings import SolveSettings

# Seconds of one core for each of the B·n² ratio rows of the block method, for all iterations together. With the
# expected cost, 300 secrets take about 90 iterations. Programs with floors take about twice as long, and programs with
# the worst cost about three times as long.
_BLOCK_SECONDS, _FLOOR_SECONDS, _WORST_SECONDS = 2.2e-6, 3.5e-6, 7e-6
# Factor of the time for problems with symmetries: their priors are smooth, and they need half the iterations.
_SYMMETRIC_TIME_SHARE = 0.5
# Seconds for each secret and each entry of the factors of a sparse block.
_SPARSE_ENTRY_SECONDS = 2.8e-9
# Fixed seconds of every design, and seconds of rounding and certifying per privacy row.
_START_SECONDS, _CERTIFY_SECONDS = 2.0, 1.3e-7
# Interior-point solver on a row program: bytes per row, and seconds that the first round takes with `_REFERENCE_ROWS`
# rows. The time grows like rows**1.9.
_ROW_BYTES, _ROW_SECONDS, _REFERENCE_ROWS, _ROW_POWER = 1000, 28.0, 68_000, 1.9
# Measured on grids: a spanner's number of pairs per secret, and the share of all pairs that are irreducible.
_NEAR_PAIRS_PER_SECRET, _IRREDUCIBLE_SHARE = 7, 0.65
# Ray method: bytes per pair of secrets (bound and certification), per entry of a ray, and per entry of the channel. The
# last number is the number of rays per secret. `_RAY_SECONDS` is the time for each of the n²·m privacy bounds.
_PAIR_BYTES, _RAY_BYTES, _ENTRY_BYTES, _RAYS_PER_SECRET = 900, 16, 150, 3
_RAY_SECONDS = 2.5e-7
# Estimated seconds above which a `SizeWarning` is issued.
_LONG_TIME_S = 3600.0
_MAX_SYMMETRIES = 64


@dataclass(frozen=True)
class Size:
    """The size of a program: the largest part of a problem.

    Attributes:
        secrets: Number of secrets.
        observables: Number of observables.
        floors: Number of distortion floors.
        symmetries: Upper bound on the number of symmetries, without a search for them.
        cells: Whether the secrets are cells of a grid.
        alike: Whether all secrets are permitted the same answers.
        worst: Whether the worst cost is minimised.
        sparsity: Sparsity of the blocks of the block method if few pairs have bounds; None if many pairs have bounds,
            or if it is unknown.

    >>> Size(secrets=300, observables=300, cells=True).symmetries
    1
    """

    secrets: int
    observables: int
    floors: int = 0
    symmetries: int = 1
    cells: bool = False
    alike: bool = True
    worst: bool = False
    sparsity: Sparsity | None = None


@dataclass(frozen=True)
class Estimate:
    """The estimated memory and time of a program.

    Attributes:
        solver: Name of the solver.
        rows: Number of privacy rows; for lazy rows, their number in the first round.
        memory: Memory in bytes.
        seconds: Time in seconds, within a factor of two.
        allowed: Memory limit in bytes, or None if the system does not report its free memory.

    >>> print(Estimate("block", rows=26_910_000, memory=1.2e9, seconds=90.0, allowed=None))
    block: 27 million privacy rows, about 1.2 GB and 2 minutes
    """

    solver: str
    rows: int
    memory: float
    seconds: float
    allowed: float | None

    @property
    def fits(self) -> bool:
        """Whether the memory suffices, or the free memory is unknown."""
        return self.allowed is None or self.memory <= self.allowed

    def __str__(self) -> str:
        text = f"{self.solver}: {format_count(self.rows)} privacy rows, about {format_bytes(self.memory)}"
        return f"{text} and {format_duration(self.seconds)}" if self.fits else f"{text} of memory"


def size_of(problem: Problem, part: Part) -> Size:
    """Return the size of a part of a problem.

    Args:
        problem: The problem.
        part: One of its parts (`mechdesign.synthesis._parts.split`).

    Returns:
        The numbers of secrets, observables, floors and possible symmetries, and the sparsity of the bounds.

    >>> import mechdesign as md
    >>> from mechdesign.synthesis._parts import split
    >>> problem = md.Problem([0.5, 0.5], [[0, 1], [1, 0]], [md.MetricPrivacy("1", [[0, 1], [1, 0]])])
    >>> size = size_of(problem, split(problem)[0])
    >>> size.secrets, size.observables
    (2, 2)
    """
    prior = problem.prior[part.secrets]
    # Secrets that a symmetry maps to each other have equal prior probabilities.
    alike = int(np.unique(prior, return_counts=True)[1].max())
    cells = problem.secrets is not None and problem.secrets.cells is not None
    most = min(alike, count_symmetries(problem.secrets))
    return Size(
        len(part.secrets),
        len(part.observables),
        len(problem.floors),
        most,
        cells,
        part.alike,
        problem.objective == "worst",
        _measure_sparsity(problem, part),
    )


def _measure_sparsity(problem: Problem, part: Part) -> Sparsity | None:
    """Return the sparsity of a part's blocks if few of its pairs have bounds and there are no floors, or None."""
    n = len(part.secrets)
    if problem.floors or not is_sparse(n, 0, 0):
        return None
    place = np.full(problem.prior.size, -1)
    place[part.secrets] = np.arange(n)
    exponents = np.full((n, n), np.inf)
    for bound in problem.pair_bounds.values():
        sources, targets = place[bound.sources], place[bound.targets]
        inside = (sources >= 0) & (targets >= 0) & (sources != targets)
        np.minimum.at(exponents, (sources[inside], targets[inside]), bound.exponents[inside])
    kept = find_few_pairs(exponents)
    return None if kept is None else measure_sparsity(n, *np.nonzero(kept))


def count_symmetries(domain: Domain | None) -> int:
    """Return an upper bound on the number of symmetries of a problem on a domain, without a search for them."""
    cells = None if domain is None else domain.cells or domain.lattice
    if cells is None:
        return _MAX_SYMMETRIES
    return 8 if cells.columns == cells.rows and cells.width == cells.height else 4


def estimate(size: Size, settings: SolveSettings, slowness: float = 1.0) -> Estimate:
    """Estimate the memory and time of a program without building it.

    Args:
        size: Size of the program.
        settings: Solver, rows and options.
        slowness: Time of this machine relative to one core of the reference machine.

    Returns:
        The solver, its number of rows, and the estimated memory and time.

    >>> found = estimate(Size(secrets=20, observables=20), SolveSettings())
    >>> found.solver, found.rows
    ('highs-simplex', 4940)
    """
    found = _estimate_solver(size, settings)
    around = _START_SECONDS + _CERTIFY_SECONDS * found.rows
    return replace(found, seconds=slowness * (found.seconds + around))


def _estimate_solver(size: Size, settings: SolveSettings) -> Estimate:
    """Estimate the memory, and the time of the solver on one core of the reference machine."""
    n, m = size.secrets, size.observables
    try:
        allowed = MemoryBudget.of_options(settings.options).allowed
    except InputError:
        # The solver refuses an invalid memory limit later, with its path.
        allowed = MemoryBudget.of().allowed
    every = n * (n - 1) * m
    if settings.rows == RAYS:
        memory = _PAIR_BYTES * n * n + _RAY_BYTES * _RAYS_PER_SECRET * n * n + _ENTRY_BYTES * n * m
        return Estimate(RAYS, every, memory, _RAY_SECONDS * n * n * m, allowed)
    solver = settings.solver
    if solver == "auto":
        solver = (
            choose_simplex_solver()
            if every <= MAX_SIMPLEX_ROWS
            else choose_lazy_solver()
            if settings.rows != "auto" or not size.alike
            else BLOCK_SOLVER
        )
    if takes_blocks(solver):
        blocks = every_block = math.ceil(m / size.symmetries)
        options = settings.options
        arrays = options.get("arrays")
        sparse = size.sparsity is not None and arrays in (None, "sparse")
        few = size.symmetries == 1 and options.get("generation") is not False
        if few and size.floors and not sparse and generation_may_pay(n, m, size.floors, worst=size.worst, sparse=False):
            blocks = math.ceil(TUNING.generation.max_column_share * m)
        if sparse and size.sparsity is not None:
            sparsity = size.sparsity.extrapolate(n)
            memory = sparse_memory(n, m, blocks, sparsity)
            # The work for each entry of the factors is proportional to the number of secrets n.
            seconds = _SPARSE_ENTRY_SECONDS * every_block * n * sparsity.factors
            return Estimate(solver, sparsity.pairs * m, memory, seconds, allowed)
        each = _WORST_SECONDS if size.worst else _FLOOR_SECONDS if size.floors else _BLOCK_SECONDS
        if size.symmetries > 1 and not size.worst:
            each *= _SYMMETRIC_TIME_SHARE
        seconds = each * every_block * n**2
        merges = few and not size.floors and arrays != "sparse"
        if merges and generation_may_pay(n, m, 0, worst=size.worst, sparse=False):
            return Estimate(solver, every, merging_memory(n, m, settings.tolerance), seconds, allowed)
        return Estimate(solver, every, block_memory(n, m, blocks, size.floors, settings.tolerance), seconds, allowed)
    reduced = math.ceil(_IRREDUCIBLE_SHARE * every)
    near = min(reduced, _NEAR_PAIRS_PER_SECRET * n * m)
    rows = {"all": every, "reduced": reduced, "auto": reduced if every <= MAX_SIMPLEX_ROWS else near}.get(
        settings.rows, near
    )
    rows += size.floors * n * m
    # Lazy rows need a table of one byte for every possible row.
    memory = _ROW_BYTES * rows + every
    return Estimate(solver, rows, memory, _ROW_SECONDS * (rows / _REFERENCE_ROWS) ** _ROW_POWER, allowed)


def check_size(size: Size, settings: SolveSettings, path: str = "problem", *, warn: bool = True) -> None:
    """Raise `TooLargeError` if a program does not fit into memory; warn if it may take more than an hour.

    The message suggests smaller problems and other methods. `path` names the input that is too large.
    """
    found = estimate(size, settings)
    if found.fits and found.seconds <= _LONG_TIME_S:
        return
    shape = f"{path}: {size.secrets} secrets and {size.observables} observables"
    instead = "; ".join(list_remedies(size, settings))
    instead = f"{instead[:1].upper()}{instead[1:]}"
    if not found.fits:
        allowed = format_bytes(found.allowed or 0)
        raise TooLargeError(f"{shape} do not fit into memory ({found}; {allowed} may be used). {instead}")
    if warn:
        message = f"{shape} may take {format_duration(found.seconds)} ({found}). {instead}"
        warned.warn(message, SizeWarning, stacklevel=3)


def find_largest(size: Size, settings: SolveSettings, most: int = 10_000, slowness: float = 1.0) -> int:
    """Return the largest n so that a problem with n secrets and answers fits into memory and takes at most an hour."""
    return _search_largest(lambda n: _fits(replace(size, secrets=n, observables=n), settings, slowness), most)


def list_remedies(size: Size, settings: SolveSettings, slowness: float = 1.0) -> Iterator[str]:
    """Yield suggestions: fewer secrets, fewer observables, a policy graph, symmetries, or another method."""

    def fits(**changed: Any) -> bool:
        return _fits(replace(size, **changed), settings, slowness)

    least = min(size.secrets, size.observables)
    if fewer := _search_largest(lambda n: fits(secrets=n, observables=min(n, size.observables)), size.secrets - 1):
        side = math.isqrt(fewer)
        yield f"up to {fewer} secrets would fit" + (f", such as {side} × {side} cells" if size.cells else "")
        yield (
            f'or a policy graph (kind = "graph") whose connected components have up to {fewer} secrets, with answers '
            "within the component"
        )
    if coarser := _search_largest(lambda m: fits(observables=m), least - 1):
        yield f"or the same secrets with up to {coarser} answers ([observables], a coarser grid)"
    if settings.rows == RAYS:
        return
    if takes_blocks(estimate(size, settings).solver):
        needed = next((k for k in (2, 4, 8) if k > size.symmetries and fits(symmetries=k)), None)
        if needed is not None:
            yield f"or a prior with {needed} symmetries, such as a uniform one on a grid"
        if (rays := estimate(size, replace(settings, solver="auto", rows="rays"), slowness)).fits and size.alike:
            yield (
                'or rows = "rays" for metric privacy between all pairs, which leaves a gap (a few per cent for smooth '
                f"priors on grids): {rays}"
            )
        yield f"other solvers need more: {estimate(size, _replace_solver(settings, choose_lazy_solver()), slowness)}"
    elif size.alike and (other := estimate(size, _replace_solver(settings, BLOCK_SOLVER), slowness)).fits:
        yield f"or leave out solver and rows: {other}"


def format_bytes(count: float) -> str:
    """Format a number of bytes for readers.

    >>> format_bytes(2.14e9), format_bytes(3.3e7)
    ('2.1 GB', '33 MB')
    """
    if count < 1e8:
        return f"{max(1, round(count / 1e6))} MB"
    return f"{count / 1e9:.1f} GB" if count < 1e10 else f"{format_count(round(count / 1e9))} GB"


def format_duration(seconds: float) -> str:
    """Format a rough time for readers.

    >>> format_duration(3), format_duration(200), format_duration(40_000), format_duration(1e9)
    ('a few seconds', '3 minutes', '11 hours', 'years')
    """
    for limit, unit, name in (
        (90, 1, "seconds"),
        (5400, 60, "minutes"),
        (130_000, 3600, "hours"),
        (2e7, 86_400, "days"),
    ):
        if seconds < limit:
            return "a few seconds" if seconds < 10 else f"{round(seconds / unit)} {name}"
    return "years"


def format_count(number: int) -> str:
    """Format a count with thousands separators, or in millions if it is large.

    >>> format_count(12000), format_count(46_656_000_000)
    ('12,000', '46,656 million')
    """
    return f"{number:,}" if number < 10_000_000 else f"{round(number / 1e6):,} million"


def _search_largest(good: Callable[[int], bool], most: int) -> int:
    """Return the largest good number from 1 to `most`, or 0; all numbers below a good number must be good."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if good(middle) else (low, middle - 1)
    return low


def _fits(size: Size, settings: SolveSettings, slowness: float) -> bool:
    found = estimate(size, settings, slowness)
    return found.fits and found.seconds <= _LONG_TIME_S


def _replace_solver(settings: SolveSettings, solver: str) -> SolveSettings:
    limit = settings.options.get("memory")
    return SolveSettings(solver, settings.tolerance, options={} if limit is None else {"memory": limit})


# Seconds that each of the three measurements of this machine's speed takes.
_MEASUREMENT_S = 0.25
# Sizes of the measured matrices, which are about as large as the solver's blocks.
_TRIAL_ROWS, _TRIAL_SIDE = 256, 40


@dataclass(frozen=True)
class Speed:
    """The measured times of three pieces of work, in seconds, with the threads that a solver would use.

    Attributes:
        factor: Inverting a dense matrix of 256 rows.
        sweep: One pass over the ratio rows of a block of 256 secrets.
        sparse: Factoring the matrix of a grid of 40 × 40 points.
    """

    factor: float
    sweep: float
    sparse: float


# Times on the reference machine, whose measurements gave the constants of this module. The reference machine has two
# idle cores of an AMD EPYC, with NumPy 2.4 and OpenBLAS.
_REFERENCE = Speed(factor=3.0e-3, sweep=1.3e-4, sparse=3.2e-3)


def compute_slowness(speed: Speed) -> float:
    """Return the time of solvers relative to the reference machine: the geometric mean of the three ratios.

    >>> compute_slowness(Speed(6.0e-3, 2.6e-4, 6.4e-3))
    2.0
    """
    ratios = (getattr(speed, name) / getattr(_REFERENCE, name) for name in ("factor", "sweep", "sparse"))
    return float(round(math.prod(ratios) ** (1 / 3), 12))


def measure_speed(threads: int = 1) -> Speed:
    """Measure the speed of this machine under its current load, in three quarters of a second."""
    random = np.random.default_rng(1)
    matrix = random.random((_TRIAL_ROWS, _TRIAL_ROWS)) + _TRIAL_ROWS * np.eye(_TRIAL_ROWS)
    ratios = 1 + random.random((_TRIAL_ROWS, _TRIAL_ROWS))
    values, weights = random.random(_TRIAL_ROWS) + 1, random.random((_TRIAL_ROWS, _TRIAL_ROWS))
    line = scipy.sparse.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(_TRIAL_SIDE, _TRIAL_SIDE))
    grid = scipy.sparse.kronsum(line, line, format="csc")

    def sweep() -> None:
        grown = ratios * values
        slack = grown - values[:, None]
        (weights * grown / slack).sum(axis=0)

    threads = 1 + count_threads(threads - 1)
    works = (lambda: np.linalg.inv(matrix), sweep, lambda: scipy.sparse.linalg.splu(grid))
    with single_threaded():
        return Speed(*(_time(work, threads) for work in works))


def _time(work: Callable[[], object], threads: int) -> float:
    """Return the time of a piece of work if `threads` run it concurrently, divided by their number."""
    work()
    started = time.perf_counter()
    until = started + _MEASUREMENT_S

    def repeat(_: int) -> int:
        count = 0
        while not count or time.perf_counter() < until:
            work()
            count += 1
        return count

    if threads == 1:
        done = repeat(0)
    else:
        with ThreadPoolExecutor(threads) as pool:
            done = sum(pool.map(repeat, range(threads)))
    return (time.perf_counter() - started) / done
