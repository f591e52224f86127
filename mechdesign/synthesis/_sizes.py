"""Estimate the memory of a program before anything is built, and refuse a program that does not fit.

The estimates are the limits of the block method, or values measured with HiGHS and with rays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.base._errors import InputError, TooLargeError
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
from mechdesign.solve._blocks.tuning import TUNING
from mechdesign.synthesis._attempts import (
    BLOCK_SOLVER,
    MAX_SIMPLEX_ROWS,
    RAYS,
    choose_lazy_solver,
    choose_simplex_solver,
    takes_blocks,
)
from mechdesign.synthesis._normal import find_few_pairs
from mechdesign.synthesis._parts import Part
from mechdesign.synthesis._settings import SolveSettings

# Bytes per row of a row program.
_ROW_BYTES = 1000
# Measured on grids: a spanner's number of pairs per secret, and the share of all pairs that are irreducible.
_NEAR_PAIRS_PER_SECRET, _IRREDUCIBLE_SHARE = 7, 0.65
# Ray method: bytes per pair of secrets (bound, certification and three rays per secret), and per entry of the channel.
_PAIR_BYTES, _ENTRY_BYTES = 948, 150
_MAX_SYMMETRIES = 64


@dataclass(frozen=True)
class Size:
    """The size of a program: the largest part of a problem.

    Attributes:
        secrets: Number of secrets.
        observables: Number of observables.
        floors: Number of distortion floors.
        symmetries: Upper bound on the number of symmetries, without a search for them.
        alike: Whether all secrets are permitted the same answers.
        worst: Whether the worst cost is minimised.
        sparsity: Sparsity of the blocks of the block method if few pairs have bounds; None if many pairs have bounds,
            or if it is unknown.

    >>> Size(secrets=300, observables=300).symmetries
    1
    """

    secrets: int
    observables: int
    floors: int = 0
    symmetries: int = 1
    alike: bool = True
    worst: bool = False
    sparsity: Sparsity | None = None


@dataclass(frozen=True)
class Estimate:
    """The estimated memory of a program.

    Attributes:
        solver: Name of the solver.
        rows: Number of privacy rows; for lazy rows, their number in the first round.
        memory: Memory in bytes.
        allowed: Memory limit in bytes, or None if the system does not report its free memory.

    >>> print(Estimate("block", rows=26_910_000, memory=1.2e9, allowed=None))
    block: 27 million privacy rows, about 1.2 GB of memory
    """

    solver: str
    rows: int
    memory: float
    allowed: float | None

    @property
    def fits(self) -> bool:
        """Whether the memory suffices, or the free memory is unknown."""
        return self.allowed is None or self.memory <= self.allowed

    def __str__(self) -> str:
        return f"{self.solver}: {_format_count(self.rows)} privacy rows, about {format_bytes(self.memory)} of memory"


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
    return Size(
        len(part.secrets),
        len(part.observables),
        len(problem.floors),
        min(alike, count_symmetries(problem.secrets)),
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


def estimate(size: Size, settings: SolveSettings) -> Estimate:
    """Estimate the memory of a program without building it.

    Args:
        size: Size of the program.
        settings: Solver, rows and options.

    Returns:
        The solver, its number of rows, and the estimated memory.

    >>> found = estimate(Size(secrets=20, observables=20), SolveSettings())
    >>> found.solver, found.rows
    ('highs-simplex', 4940)
    """
    n, m = size.secrets, size.observables
    try:
        allowed = MemoryBudget.of_options(settings.options).allowed
    except InputError:
        # The solver refuses an invalid memory limit later, with its path.
        allowed = MemoryBudget.of().allowed
    every, solver = n * (n - 1) * m, _choose_solver(size, settings)
    if solver == RAYS:
        return Estimate(solver, every, _PAIR_BYTES * n * n + _ENTRY_BYTES * n * m, allowed)
    if takes_blocks(solver):
        return Estimate(solver, *_estimate_blocks(size, settings), allowed)
    reduced = math.ceil(_IRREDUCIBLE_SHARE * every)
    near = min(reduced, _NEAR_PAIRS_PER_SECRET * n * m)
    kinds = {"all": every, "reduced": reduced, "auto": reduced if every <= MAX_SIMPLEX_ROWS else near}
    rows = kinds.get(settings.rows, near) + size.floors * n * m
    # Lazy rows need a table of one byte for every possible row.
    return Estimate(solver, rows, _ROW_BYTES * rows + every, allowed)


def _choose_solver(size: Size, settings: SolveSettings) -> str:
    if settings.rows == RAYS or settings.solver != "auto":
        return RAYS if settings.rows == RAYS else settings.solver
    if size.secrets * (size.secrets - 1) * size.observables <= MAX_SIMPLEX_ROWS:
        return choose_simplex_solver()
    return BLOCK_SOLVER if settings.rows == "auto" and size.alike else choose_lazy_solver()


def _estimate_blocks(size: Size, settings: SolveSettings) -> tuple[int, float]:
    """Return the privacy rows of the block method, and its memory in bytes."""
    n, m, options = size.secrets, size.observables, settings.options
    blocks, arrays = math.ceil(m / size.symmetries), options.get("arrays")
    if size.sparsity is not None and arrays in (None, "sparse"):
        return size.sparsity.pairs * m, sparse_memory(n, m, blocks, size.sparsity)
    generates = size.symmetries == 1 and options.get("generation") is not False
    if generates and generation_may_pay(n, m, size.floors, worst=size.worst, sparse=False):
        if not size.floors and arrays != "sparse":
            return n * (n - 1) * m, merging_memory(n, m, settings.tolerance)
        if size.floors:
            blocks = math.ceil(TUNING.generation.max_column_share * m)
    return n * (n - 1) * m, block_memory(n, m, blocks, size.floors, settings.tolerance)


def check_size(size: Size, settings: SolveSettings, path: str = "problem") -> None:
    """Raise `TooLargeError` if a program does not fit into memory; `path` names the input that is too large."""
    found = estimate(size, settings)
    if not found.fits:
        raise TooLargeError(
            f"{path}: {size.secrets} secrets and {size.observables} observables do not fit into memory ({found}; "
            f"{format_bytes(found.allowed or 0)} may be used). {list_remedies(size, settings)}"
        )


def list_remedies(size: Size, settings: SolveSettings) -> str:
    """Return the remedies for a program that is too large, as a sentence."""
    most = find_largest(size, settings)
    found = [f"up to {most} secrets and as many answers would fit"] if most else []
    found += ["fewer answers ([observables])", 'a policy graph (kind = "graph") with small components']
    if settings.rows != RAYS:
        found.append('rows = "rays" for metric privacy between all pairs')
    if settings.solver != "auto" and not takes_blocks(settings.solver):
        found.append("the default solver")
    text = "; or ".join(found)
    return f"{text[0].upper()}{text[1:]}"


def find_largest(size: Size, settings: SolveSettings) -> int:
    """Return the largest n below 10,000 so that n secrets and answers fit; 0 if none do, or for sparse blocks."""
    if size.sparsity is not None:
        return 0
    low, high = 0, 10_000
    while low < high:
        n = (low + high + 1) // 2
        low, high = (n, high) if estimate(replace(size, secrets=n, observables=n), settings).fits else (low, n - 1)
    return low


def format_bytes(count: float) -> str:
    """Format a number of bytes for readers.

    >>> format_bytes(2.14e9), format_bytes(3.3e7)
    ('2.1 GB', '33 MB')
    """
    if count < 1e8:
        return f"{max(1, round(count / 1e6))} MB"
    return f"{count / 1e9:.1f} GB" if count < 1e10 else f"{_format_count(round(count / 1e9))} GB"


def _format_count(number: int) -> str:
    """Format a count with thousands separators, or in millions if it is large.

    >>> _format_count(12000), _format_count(46_656_000_000)
    ('12,000', '46,656 million')
    """
    return f"{number:,}" if number < 10_000_000 else f"{round(number / 1e6):,} million"
