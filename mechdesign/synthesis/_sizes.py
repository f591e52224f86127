"""Size and memory before anything is built.

Figures of memory are those that the block method refuses by, or measured with HiGHS. Those of time are work, in seconds
of one core of a reference machine, times how slow this machine is (`Speed`). They are meant to be
within a factor of two; `benchmarks/estimates.py` compares them with what twenty programs take.
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
from mechdesign.model._domain import Domain
from mechdesign.model._problem import Problem
from mechdesign.solve._blocks.layout import is_sparse
from mechdesign.solve._blocks.memory import (
    MemoryBudget,
    Sparsity,
    block_memory,
    may_generation_pay,
    measure_sparsity,
    merging_memory,
    sparse_memory,
)
from mechdesign.solve._blocks.parallel import single_threaded
from mechdesign.solve._blocks.tuning import TUNING
from mechdesign.synthesis._attempts import EXACT, LARGE, LAZY, RAYS, SMALL, takes_blocks
from mechdesign.synthesis._pairs import few_pairs
from mechdesign.synthesis._parts import Part
from mechdesign.synthesis._settings import SolveSettings

# Seconds of one core for each of the B·n² ratio rows of the block method, with all its iterations: the expected cost
# takes some 90 of them at 300 secrets, floors twice as much, and the worst cost three times.
_BLOCK_SECONDS, _FLOOR_SECONDS, _WORST_SECONDS = 2.2e-6, 3.5e-6, 7e-6
# Priors with symmetries are smooth, and take half as many iterations.
_SYMMETRIC = 0.5
# Seconds for each of the numbers of the factors, times the secrets, of a sparse block.
_SPARSE_SECONDS = 2.8e-9
# Seconds before and after the solver: of every design, and for each privacy row, of rounding and certifying.
_START_SECONDS, _CERTIFY_SECONDS = 2.0, 1.3e-7
# Bytes, and seconds of the first round, of interior points on a program of rows; the time grows like rows**1.9.
_ROW_BYTES, _ROW_SECONDS, _ROWS, _ROW_POWER = 1000, 28.0, 68_000, 1.9
# Pairs of a spanner for each secret, and the part of all pairs that no others imply, on grids.
_NEAR_PAIRS, _IRREDUCIBLE = 7, 0.65
# Rays: bytes of a pair of secrets (its bound, and what certifying takes), of an entry of a ray and of the channel, rays
# for each secret; and seconds of rounds and certificates for each row of n²·m.
_PAIR_BYTES, _RAY_BYTES, _ENTRY_BYTES, _RAYS = 900, 16, 150, 3
_RAY_SECONDS = 2.5e-7
# From here on a warning says how long it may take.
_LONG = 3600.0
_MOST_SYMMETRIES = 64


@dataclass(frozen=True)
class Size:
    """The size of a program: of the largest set of secrets that requirements tie together.

    Attributes:
        secrets: How many secrets it has.
        observables: How many answers.
        floors: How many floors on the adversary's error.
        symmetries: The most symmetries that it may have, as far as is known without looking for them.
        cells: Whether the secrets are cells of a grid.
        alike: Whether all secrets are permitted the same answers.
        worst: Whether the worst cost is minimised.
        sparsity: Of the block method's blocks, where few pairs of secrets have bounds; None where many have, or nobody
            has looked.
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
    """What one way to solve a program takes.

    Attributes:
        solver: The name of the solver.
        rows: How many privacy rows it is given, at first where they are lazy.
        memory: Bytes.
        seconds: Time, meant to be within a factor of two.
        allowed: Bytes that it may take, or None where the system does not say how many are free.
    """

    solver: str
    rows: int
    memory: float
    seconds: float
    allowed: float | None

    @property
    def fits(self) -> bool:
        """Whether there is enough memory, as far as is known."""
        return self.allowed is None or self.memory <= self.allowed

    def __str__(self) -> str:
        said = f"{self.solver}: {counted(self.rows)} privacy rows, about {gigabytes(self.memory)}"
        return f"{said} and {duration(self.seconds)}" if self.fits else f"{said} of memory"


def size_of(problem: Problem, part: Part) -> Size:
    """Return the size of a part of a problem."""
    prior = problem.prior[part.secrets]
    # Secrets that are images of each other occur equally often.
    alike = int(np.unique(prior, return_counts=True)[1].max())
    cells = problem.secrets is not None and problem.secrets.cells is not None
    most = min(alike, most_symmetries(problem.secrets))
    return Size(
        len(part.secrets),
        len(part.observables),
        len(problem.floors),
        most,
        cells,
        part.alike,
        problem.objective == "worst",
        _sparsity(problem, part),
    )


def _sparsity(problem: Problem, part: Part) -> Sparsity | None:
    """Return the sparsity of a part's blocks where there are few bounds on pairs of its secrets, and no floors."""
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
    kept = few_pairs(exponents)
    return None if kept is None else measure_sparsity(n, *np.nonzero(kept))


def most_symmetries(domain: Domain | None) -> int:
    """Return how many symmetries a problem on a domain may have, as far as is known without looking for them."""
    cells = None if domain is None else domain.cells
    if cells is None:
        return _MOST_SYMMETRIES
    return 8 if cells.columns == cells.rows and cells.width == cells.height else 4


def estimate(size: Size, settings: SolveSettings, slowness: float = 1.0) -> Estimate:
    """Estimate what a program of this size takes, solved as the settings say; nothing is built for it.

    `slowness` says how many times as long work takes as on one core of the reference machine.
    """
    found = _work(size, settings)
    around = _START_SECONDS + _CERTIFY_SECONDS * found.rows
    return replace(found, seconds=slowness * (found.seconds + around))


def _work(size: Size, settings: SolveSettings) -> Estimate:
    """Estimate memory, and what the solver alone takes on one core of the reference machine."""
    n, m = size.secrets, size.observables
    try:
        allowed = MemoryBudget.of_options(settings.options).allowed
    except InputError:
        # The solver refuses it, with its place.
        allowed = MemoryBudget.of().allowed
    every = n * (n - 1) * m
    if settings.rows == RAYS:
        memory = _PAIR_BYTES * n * n + _RAY_BYTES * _RAYS * n * n + _ENTRY_BYTES * n * m
        return Estimate(RAYS, every, memory, _RAY_SECONDS * n * n * m, allowed)
    solver = settings.solver
    if solver == "auto":
        solver = EXACT if every <= SMALL else LAZY if settings.rows != "auto" or not size.alike else LARGE
    if takes_blocks(solver):
        blocks = every_block = math.ceil(m / size.symmetries)
        options = settings.options
        arrays, device = options.get("arrays"), options.get("device")
        possible = arrays == "sparse" or (arrays is None and device in (None, "cpu"))
        sparse = size.sparsity is not None and possible
        few = size.symmetries == 1 and options.get("generation") is not False
        if few and size.floors and not sparse and may_generation_pay(n, m, size.floors, worst=size.worst, sparse=False):
            blocks = math.ceil(TUNING.generation.max_column_share * m)
        if sparse and size.sparsity is not None:
            sparsity = size.sparsity.extrapolate(n)
            memory = sparse_memory(n, m, blocks, sparsity)
            # Iterations, and n numbers times the width of a level for each number of the inverse.
            seconds = _SPARSE_SECONDS * every_block * n * sparsity.factors
            return Estimate(solver, sparsity.pairs * m, memory, seconds, allowed)
        each = _WORST_SECONDS if size.worst else _FLOOR_SECONDS if size.floors else _BLOCK_SECONDS
        if size.symmetries > 1 and not size.worst:
            each *= _SYMMETRIC
        seconds = each * every_block * n**2
        if settings.options.get("device") not in (None, "cpu"):
            # The large arrays are not in the memory of this machine: the kernel looks at its own.
            return Estimate(solver, every, block_memory(n, m, 1), seconds, None)
        merges = few and not size.floors and arrays in (None, "numpy", "numba") and device in (None, "cpu")
        if merges and may_generation_pay(n, m, 0, worst=size.worst, sparse=False, merges=True):
            return Estimate(solver, every, merging_memory(n, m, settings.tolerance), seconds, allowed)
        return Estimate(solver, every, block_memory(n, m, blocks, size.floors, settings.tolerance), seconds, allowed)
    reduced = math.ceil(_IRREDUCIBLE * every)
    near = min(reduced, _NEAR_PAIRS * n * m)
    rows = {"all": every, "reduced": reduced, "auto": reduced if every <= SMALL else near}.get(settings.rows, near)
    rows += size.floors * n * m
    # Lazy rows come with a table of which are there.
    memory = _ROW_BYTES * rows + every
    return Estimate(solver, rows, memory, _ROW_SECONDS * (rows / _ROWS) ** _ROW_POWER, allowed)


def check_size(size: Size, settings: SolveSettings, path: str = "problem", *, warn: bool = True) -> None:
    """Raise `TooLargeError` where a program does not fit into memory, and warn where it may take more than an hour.

    The error says what would fit. `path` names what is too large.
    """
    found = estimate(size, settings)
    if found.fits and found.seconds <= _LONG:
        return
    shape = f"{path}: {size.secrets} secrets and {size.observables} observables"
    instead = "; ".join(remedies(size, settings))
    instead = f"{instead[:1].upper()}{instead[1:]}"
    if not found.fits:
        allowed = gigabytes(found.allowed or 0)
        raise TooLargeError(f"{shape} do not fit into memory ({found}; {allowed} may be used). {instead}")
    if warn:
        message = f"{shape} may take {duration(found.seconds)} ({found}). {instead}"
        warned.warn(message, SizeWarning, stacklevel=3)


def largest(size: Size, settings: SolveSettings, most: int = 10_000, slowness: float = 1.0) -> int:
    """Return the most secrets, each an answer too, that fit into memory and take no more than an hour; 0 for none."""
    return _largest(lambda n: _fits(replace(size, secrets=n, observables=n), settings, slowness), most)


def remedies(size: Size, settings: SolveSettings, slowness: float = 1.0) -> Iterator[str]:
    """Yield what else could be done: fewer secrets, fewer observables, a policy, symmetry, another solver."""

    def fits(**changed: Any) -> bool:
        return _fits(replace(size, **changed), settings, slowness)

    least = min(size.secrets, size.observables)
    if fewer := _largest(lambda n: fits(secrets=n, observables=min(n, size.observables)), size.secrets - 1):
        side = math.isqrt(fewer)
        yield f"up to {fewer} secrets would do" + (f", such as {side} × {side} cells" if size.cells else "")
        yield (
            f'or a policy graph (kind = "graph") whose connected components have up to {fewer} secrets, with answers '
            "within the component"
        )
    if coarser := _largest(lambda m: fits(observables=m), least - 1):
        yield f"or the same secrets with up to {coarser} answers ([observables], a coarser grid)"
    if settings.rows == RAYS:
        return
    if takes_blocks(estimate(size, settings).solver):
        needed = next((k for k in (2, 4, 8) if k > size.symmetries and fits(symmetries=k)), None)
        if needed is not None:
            yield f"or a prior with {needed} symmetries, such as a uniform one on a grid"
        if (rays := estimate(size, replace(settings, solver="auto", rows="rays"), slowness)).fits and size.alike:
            yield (
                'or rows = "rays" for metric privacy between all pairs, with a bracket of a few per cent for smooth '
                f"priors on grids, and wider ones elsewhere: {rays}"
            )
        yield f"other solvers take more: {estimate(size, _with(settings, LAZY), slowness)}"
    elif size.alike and (other := estimate(size, _with(settings, LARGE), slowness)).fits:
        yield f"or leave out solver and rows: {other}"


def gigabytes(count: float) -> str:
    """Write a number of bytes as people do.

    >>> gigabytes(2.14e9), gigabytes(3.3e7)
    ('2.1 GB', '33 MB')
    """
    if count < 1e8:
        return f"{max(1, round(count / 1e6))} MB"
    return f"{count / 1e9:.1f} GB" if count < 1e10 else f"{counted(round(count / 1e9))} GB"


def duration(seconds: float) -> str:
    """Write a rough time as people do.

    >>> duration(3), duration(200), duration(40_000), duration(1e9)
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


def counted(number: int) -> str:
    """Write a count with the thousands apart, large ones as millions.

    >>> counted(12000), counted(46_656_000_000)
    ('12,000', '46,656 million')
    """
    return f"{number:,}" if number < 10_000_000 else f"{round(number / 1e6):,} million"


def _largest(good: Callable[[int], bool], most: int) -> int:
    """Return the largest number from 1 to `most` that is good, 0 if there is none; below a good one all are."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if good(middle) else (low, middle - 1)
    return low


def _fits(size: Size, settings: SolveSettings, slowness: float) -> bool:
    found = estimate(size, settings, slowness)
    return found.fits and found.seconds <= _LONG


def _with(settings: SolveSettings, solver: str) -> SolveSettings:
    limit = settings.options.get("memory")
    return SolveSettings(solver, settings.tolerance, options={} if limit is None else {"memory": limit})


# Seconds that each of the three measurements takes, and what is measured, about as large as blocks of the solver are.
_SECONDS = 0.25
_TRIAL_ROWS, _SIDE = 256, 40


@dataclass(frozen=True)
class Speed:
    """What three pieces of work take, in seconds, with as many threads at once as a solver would have.

    Attributes:
        factor: Inverting a dense matrix of 256 rows.
        sweep: One pass over the ratio rows of a block of 256 secrets.
        sparse: Factoring the matrix of a grid of 40 × 40 points.
    """

    factor: float
    sweep: float
    sparse: float


# What they take on the machine that the constants of `mechdesign.synthesis._sizes` are from: one of two idle cores of
# an AMD EPYC, under NumPy 2.4 with OpenBLAS.
_REFERENCE = Speed(factor=3.0e-3, sweep=1.3e-4, sparse=3.2e-3)


def slowness(speed: Speed) -> float:
    """Return how many times as long solvers take as on the reference machine: the geometric mean of what is measured.

    >>> slowness(Speed(6.0e-3, 2.6e-4, 6.4e-3))
    2.0
    """
    ratios = (getattr(speed, name) / getattr(_REFERENCE, name) for name in ("factor", "sweep", "sparse"))
    return float(round(math.prod(ratios) ** (1 / 3), 12))


def measure_speed(threads: int = 1) -> Speed:
    """Measure the speed of this machine, as busy as it is, in three quarters of a second."""
    random = np.random.default_rng(1)
    matrix = random.random((_TRIAL_ROWS, _TRIAL_ROWS)) + _TRIAL_ROWS * np.eye(_TRIAL_ROWS)
    ratios = 1 + random.random((_TRIAL_ROWS, _TRIAL_ROWS))
    values, weights = random.random(_TRIAL_ROWS) + 1, random.random((_TRIAL_ROWS, _TRIAL_ROWS))
    line = scipy.sparse.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(_SIDE, _SIDE))
    grid = scipy.sparse.kronsum(line, line, format="csc")

    def sweep() -> None:
        grown = ratios * values
        slack = grown - values[:, None]
        (weights * grown / slack).sum(axis=0)

    works = (lambda: np.linalg.inv(matrix), sweep, lambda: scipy.sparse.linalg.splu(grid))
    with single_threaded():
        return Speed(*(_time(work, threads) for work in works))


def _time(work: Callable[[], object], threads: int) -> float:
    """Return the seconds that a piece of work takes where `threads` do it at once, divided by their number."""
    work()
    started = time.perf_counter()
    until = started + _SECONDS

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
