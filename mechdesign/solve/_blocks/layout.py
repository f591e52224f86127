"""A block-angular program laid out for the solver: floors as further variables, one block per orbit of columns.

Block o holds ξ_o = (x_o, w_o): the n entries of column o of x, and for each floor f the part w_of of it that the
column provides, N = n + F in all. Its rows, all homogeneous, are

    z_st = g_st x_t − x_s >= 0     (g = exp(exponents); g_ss = 2 turns the diagonal into x_s >= 0)
    z_fh = error_f[h]·x − w_f >= 0     and     w_f >= 0.

Linking rows couple the blocks: Σ_o x_o = 1 with multipliers λ; Σ_o w_of − t_f = minimum_f with slack t and multipliers
v; for the worst cost θ − Σ_o c(i, o) x_row(i),o − t_i = 0 with multipliers ω. Λ = (λ, v, ω) has length L.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.solve._block_angular import BlockProgram
from mechdesign.solve._blocks.auxiliary import AuxiliaryRows
from mechdesign.solve._blocks.symmetry import Symmetry, trivial_symmetry

MAX_EXPONENT = 43.0
"""Bounds with ratios above e^43 (about 2^62) are left out: for integers below 2^62 zero only goes with zero."""

# A ratio that never binds: the row then limits steps exactly as x_t >= 0 does.
_UNBOUNDED_RATIO = 1e60
# The weight of a row is (E / E_min) to this power. Where all pairs have rows, far ones, the bulk of them, are allowed
# less complementarity. In sparse blocks close neighbours are, whose rows have little slack: with the other power roads
# take twice the iterations (144 to 400 places).
_WEIGHT_POWER, _WEIGHT_POWER_SPARSE = -1.5, 0.5
_MIN_WEIGHT = 1e-9
# Blocks count as sparse from so many rows on, with bounds on at most this part of all pairs.
_SPARSE_MIN_ROWS, _SPARSE_MAX_SHARE = 40, 1 / 8


@dataclass(frozen=True, eq=False)
class BlockLayout:
    """What stays constant during a solve. B is the number of blocks kept.

    Attributes:
        ratios: g (n, n), a huge value where no bound is required.
        weights: w (n, n) of the central path, zero where no bound is required.
        free: (n, n), marks the pairs without a bound; None if there is none.
        cost: (B, n).
        kept: (B,), the columns kept as blocks.
        counts: (B,), how many columns each block stands for.
        errors: one (k_f, n) per floor.
        minima: (F,), the least values of the floors.
        rewards: (B, F), what each block earns for its parts of the floors.
        member_cost: (q, B), the worst cost's coefficients, in the rows `member_row` (q,).
        images: (G, L), the linking rows under each element of the symmetry group, the identity first.
        stabilisers: for each g > 1 the blocks (k,) that g elements map to themselves, with what those do to each
            block's variables (k, g, N).
        origins: for every column the group element that brings its representative there (m,), and its block (m,).
        auxiliary: the rows of the floors, and the slacks of the linking rows.
        sparse: whether few pairs have bounds, and no floor fills the blocks.
        geometry: what these follow from.

    `ratios` are symmetric to the bit, and so are the steps that `symmetrise` returns: all that kernels compute entry by
    entry then is, too. Otherwise the multipliers would drift apart where symmetric steps cannot correct them.
    """

    program: BlockProgram
    symmetry: Symmetry
    ratios: Floats
    weights: Floats
    free: Flags | None
    cost: Floats
    kept: Integers
    counts: Floats
    errors: tuple[Floats, ...]
    minima: Floats
    rewards: Floats
    member_cost: Floats
    member_row: Integers
    images: Integers
    stabilisers: tuple[tuple[Integers, Integers], ...]
    origins: tuple[Integers, Integers]
    auxiliary: AuxiliaryRows
    sparse: bool
    geometry: PairGeometry

    @property
    def rows(self) -> int:
        """Number n of rows of x."""
        return int(self.ratios.shape[0])

    @property
    def blocks(self) -> int:
        """Number B of blocks kept."""
        return int(self.counts.size)

    @property
    def floors(self) -> int:
        """Number F of floors."""
        return len(self.errors)

    @property
    def width(self) -> int:
        """Number N = n + F of variables of a block."""
        return self.rows + self.floors

    @property
    def members(self) -> int:
        """Number q of members of the worst cost, 0 without it."""
        return int(self.member_row.size)

    @property
    def links(self) -> int:
        """Number L of linking rows."""
        return self.width + self.members

    @property
    def link_unit(self) -> float:
        """The largest unit of a linking row: of a row sum, of a floor's minimum, of the largest cost."""
        costs = float(np.abs(self.member_cost).max(initial=0.0))
        return max(1.0, float(self.minima.max(initial=0.0)), costs)

    @property
    def total_weight(self) -> float:
        """Sum Σ w of the weights of all rows of the program, orbits counted in full."""
        return float(self.counts.sum() * self.weights.sum() + self.auxiliary.counts @ self.auxiliary.weights)

    def average(self, vector: Floats) -> Floats:
        """Average a vector (L,) over the symmetry group."""
        if self.images.shape[0] == 1:
            return vector
        average: Floats = vector[self.images].mean(axis=0)
        return average

    def average_matrix(self, matrix: Floats) -> Floats:
        """Average a matrix (L, L) over the symmetry group."""
        if self.images.shape[0] == 1:
            return matrix
        total: Floats = np.zeros_like(matrix)
        for image in self.images:
            total += matrix[np.ix_(image, image)]
        total /= self.images.shape[0]
        return total

    def symmetrise(self, steps: Floats) -> None:
        """Average the steps (B, N) of each block over the elements that map it to itself, in place.

        In exact arithmetic they are symmetric already; rounding along nearly flat directions is not. Entries of one
        orbit come out equal to the bit.
        """
        for blocks, moved in self.stabilisers:
            average = steps[blocks[:, None, None], moved].mean(axis=1)
            steps[blocks] = np.take_along_axis(average, moved.min(axis=1), axis=1)

    @property
    def linked(self) -> Integers:
        """Variable of a block that each linking row holds (L,)."""
        return np.concatenate([np.arange(self.width), self.member_row])

    def scale(self, points: Floats) -> Floats:
        """Return e (B, L): what the linking rows change by for relative steps of the variables that they hold."""
        members = -self.member_cost.T * points[:, self.member_row]
        return np.hstack([points, members]) if self.members else points

    def sums(self, steps: Floats) -> Floats:
        """Return Σ_o E_o ξ_o (L,) for `steps` (B, N): the blocks' part of the linking rows, averaged over the group."""
        total = np.empty(self.links)
        total[: self.width] = self.counts @ steps
        if self.members:
            total[self.width :] = -(self.member_cost * (self.counts[:, None] * steps[:, self.member_row]).T).sum(axis=1)
        return self.average(total)

    def adjoint(self, multipliers: Floats) -> Floats:
        """Return E_oᵀ Λ (B, N) for multipliers Λ (L,) of the linking rows."""
        result = np.broadcast_to(multipliers[: self.width], (self.blocks, self.width)).copy()
        if self.members:
            weighted = self.member_cost * multipliers[self.width :, None]
            gathered = np.zeros((self.rows, self.blocks))
            np.add.at(gathered, self.member_row, weighted)
            result[:, : self.rows] -= gathered.T
        return result

    def unfold(self, x: Floats) -> Floats:
        """Return the full matrix (n, m) of the blocks' entries x (B, n)."""
        mover, block = self.origins
        full = np.empty((self.rows, self.program.columns))
        for column in range(self.program.columns):
            full[self.symmetry.rows[mover[column]], column] = x[block[column]]
        return full


def find_bounded_pairs(exponents: Floats) -> Flags:
    """Tell which pairs (n, n) have ratio rows: larger exponents bind nothing that floating point can tell."""
    rows: Flags = exponents <= MAX_EXPONENT
    return rows


def has_sparse_blocks(program: BlockProgram) -> bool:
    """Tell whether the blocks of a program are treated as sparse."""
    return is_sparse(program.rows, int(np.count_nonzero(find_bounded_pairs(program.exponents))), len(program.floors))


def is_sparse(rows: int, pairs: int, floors: int) -> bool:
    """Tell whether blocks are treated as sparse: floors fill them."""
    return not floors and rows >= _SPARSE_MIN_ROWS and pairs <= _SPARSE_MAX_SHARE * rows**2


Derived = TypeVar("Derived")


@dataclass(frozen=True, eq=False)
class PairGeometry:
    """What the bounds decide for every block: ratios and weights of pairs, free pairs, and whether few are bounded.

    The attributes are those of `BlockLayout`. All layouts of a geometry share what kernels derive from it.
    """

    ratios: Floats
    weights: Floats
    free: Flags | None
    sparse: bool
    _derived: dict[str, Any] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def derive(self, name: str, make: Callable[[], Derived]) -> Derived:
        """Return a value that follows from the geometry; the first thread that asks for the name makes it."""
        with self._lock:
            if name not in self._derived:
                self._derived[name] = make()
            found: Derived = self._derived[name]
        return found


def make_geometry(exponents: Floats, floors: int) -> PairGeometry:
    """Return the geometry of blocks with bounds of these exponents (n, n), in a program with so many floors."""
    n = len(exponents)
    required = find_bounded_pairs(exponents)
    ratios = np.where(required, np.exp(np.where(required, exponents, 0.0)), _UNBOUNDED_RATIO)
    least = float(exponents[required].min()) if required.any() else 1.0
    relative = np.where(required, exponents, least) / least
    sparse = is_sparse(n, int(np.count_nonzero(required)), floors)
    weights = np.maximum(relative ** (_WEIGHT_POWER_SPARSE if sparse else _WEIGHT_POWER), _MIN_WEIGHT)
    weights = np.where(required, weights, 0.0)
    np.fill_diagonal(ratios, 2.0)
    np.fill_diagonal(weights, 1.0)
    free = ~required
    np.fill_diagonal(free, False)
    return PairGeometry(
        np.ascontiguousarray(ratios), np.ascontiguousarray(weights), free if free.any() else None, sparse
    )


def lay_out(
    program: BlockProgram,
    symmetry: Symmetry | None = None,
    active: tuple[Flags, ...] | None = None,
    geometry: PairGeometry | None = None,
) -> BlockLayout:
    """Lay a program out, with one block for each orbit of columns under `symmetry`.

    Without symmetry, `active` (B, k) for each floor may say which estimates take part in which block, and the `geometry`
    of the bounds may be given.
    """
    n, m = program.rows, program.columns
    symmetry = symmetry if symmetry is not None else trivial_symmetry(program)
    exponents = program.exponents
    for rows in symmetry.rows[1:]:
        exponents = np.minimum(exponents, program.exponents[np.ix_(rows, rows)])
    if geometry is None:
        geometry = make_geometry(exponents, len(program.floors))
    kept, counts = symmetry.representatives(m)
    worst = program.worst
    empty = np.zeros((0, kept.size)), np.zeros(0, dtype=np.int64)
    member_cost, member_row = (worst.cost[:, kept], worst.row) if worst is not None else empty
    width = n + len(program.floors)
    fixed = symmetry.columns[:, kept] == kept
    orders = fixed.sum(axis=0)
    repeated = counts.astype(np.float64)
    errors = tuple(np.ascontiguousarray(floor.error, dtype=np.float64) for floor in program.floors)
    # Weight 1 on the linking rows of the worst cost takes twice to three times the iterations.
    link_weight = float(repeated.sum()) * n if member_row.size else 1.0
    images = np.hstack(
        [
            symmetry.rows,
            np.tile(np.arange(n, width), (symmetry.order, 1)),
            symmetry.members + width,
        ]
    ).astype(np.int64)
    return BlockLayout(
        program=program,
        symmetry=symmetry,
        ratios=geometry.ratios,
        weights=geometry.weights,
        free=geometry.free,
        cost=np.ascontiguousarray(program.cost[:, kept].T),
        kept=kept,
        counts=repeated,
        errors=errors,
        minima=np.array([floor.minimum for floor in program.floors]),
        rewards=_select_rewards(program, kept),
        member_cost=np.ascontiguousarray(member_cost),
        member_row=member_row,
        images=images,
        stabilisers=tuple(
            (blocks, np.array([images[fixed[:, block], :width] for block in blocks]))
            for blocks in (np.flatnonzero(orders == order) for order in np.unique(orders) if order > 1)
        ),
        origins=symmetry.origins(m),
        auxiliary=AuxiliaryRows(repeated, errors, member_row.size, link_weight, active),
        sparse=geometry.sparse,
        geometry=geometry,
    )


def _select_rewards(program: BlockProgram, kept: Integers) -> Floats:
    """Return what the blocks of the columns `kept` earn for their parts of the floors (B, F)."""
    rewards = np.zeros((kept.size, len(program.floors)))
    for index, floor in enumerate(program.floors):
        if floor.rewards is not None:
            rewards[:, index] = floor.rewards[kept]
    return rewards
