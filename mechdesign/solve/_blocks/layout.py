"""The arrays of a block program for the solver: floors add variables, and each orbit of columns has one block.

Block o has the N = n + F variables ξ_o = (x_o, w_o). Here x_o is column o of x, and w_of is the contribution of
column o to floor f. All constraints within a block are homogeneous:

    z_st = g_st x_t − x_s >= 0     (g = exp(exponents); g_ss = 2 turns the diagonal into x_s >= 0)
    z_fh = error_f[h]·x − w_f >= 0     and     w_f >= 0.

Linking rows couple the blocks. The row sums Σ_o x_o = 1 have multipliers λ. The floors Σ_o w_of − t_f = minimum_f have
slacks t and multipliers v. The worst cost adds the rows θ − Σ_o c(i, o) x_row(i),o − t_i = 0 with multipliers ω. The
vector Λ = (λ, v, ω) has length L.

The auxiliary rows are flat vectors. They contain the rows z_oh of each floor, block by block, then all rows w_of >= 0.
The slacks of the linking rows follow: floors, then worst cost. The multipliers of these slacks are v and ω, the last
entries of Λ.

Symbols of the block method:

    x, w, ξ    channel, contributions to floors, both together; w also denotes the weights of the central path y z = μ w
    B          number of blocks; in formulas, the matrix of the rows of a block, z = B ξ
    C, L, G    numbers of systems of linking rows, of linking rows of a system, and of elements of the symmetry group
    E_o        coefficients of the variables of block o in the linking rows
    e          right side of the linking rows; for one block, the derivatives of the linking rows (`link_scale`)
    y, z       multipliers and slacks of all rows
    v, t       multipliers and slacks of the floors; as indices, s and t are rows of x
    u, q       relative steps dξ/ξ and dz/z
    T, f       targets of the products y z, and f = T/z; σμ w is the target on the central path
    H, Q, M    Hessian of a block in relative steps, its inverse, and its form in the basis of the root
    r, τ       root of a block, and the part of the step u that all variables of the block share

Theory: block_method, Program.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.solve._block_angular import BlockProgram
from mechdesign.solve._blocks.symmetry import Symmetry, trivial_symmetry


class AuxiliaryRows:
    """Shapes, weights and linear maps of the auxiliary rows, whose slacks and multipliers are vectors (size,).

    `weights` (size,) contains the weights of the central path. `counts` (size,) contains the number of rows of the full
    program that each row represents. In pricing, floors are not constraints, so `linked` is false, and slacks of
    linking rows do not exist. The flags `active` (B, k) select estimates. The rows of other estimates are `absent`:
    their weight and multiplier are 0, and their slack is 1.
    """

    def __init__(
        self,
        counts: Floats,
        errors: tuple[Floats, ...],
        members: int,
        link_weight: float,
        active: tuple[Flags, ...] | None = None,
        *,
        linked: bool = True,
    ) -> None:
        self.blocks, self.errors = counts.size, errors
        floors = len(errors)
        sizes = [self.blocks * error.shape[0] for error in errors]
        stops = np.cumsum([0, *sizes]).tolist()
        self.floor_slices = [slice(a, b) for a, b in itertools.pairwise(stops)]
        self.contribution_slice = slice(stops[-1], stops[-1] + self.blocks * floors)
        links = floors + members if linked else 0
        self.linking = slice(self.contribution_slice.stop, self.contribution_slice.stop + links)
        self.size = self.linking.stop
        self.weights = np.ones(self.size)
        self.weights[self.linking] = link_weight
        for index, flags in enumerate(active or ()):
            self.floor(self.weights, index)[~flags] = 0.0
        self.absent = np.flatnonzero(self.weights == 0)
        repeated = [np.repeat(counts, error.shape[0]) for error in errors]
        self.counts = np.concatenate([*repeated, np.repeat(counts, floors), np.ones(links)])

    def floor(self, vector: Floats, index: int) -> Floats:
        """Return a view (B, k) of the entries of one floor."""
        return vector[self.floor_slices[index]].reshape(self.blocks, -1)

    def contributions(self, vector: Floats) -> Floats:
        """Return a view (B, F) of the entries of the rows w_of >= 0."""
        return vector[self.contribution_slice].reshape(self.blocks, len(self.errors))

    def slacks(self, points: Floats, link_slacks: Floats) -> Floats:
        """Return the slacks z at the points ξ (B, N), given the slacks of the linking rows."""
        z = np.empty(self.size)
        n = points.shape[1] - len(self.errors)
        for index, error in enumerate(self.errors):
            self.floor(z, index)[:] = points[:, :n] @ error.T - points[:, n + index, None]
        self.contributions(z)[:] = points[:, n:]
        z[self.linking] = link_slacks
        z[self.absent] = 1.0
        return z

    def relative_steps(self, points: Floats, u: Floats, z: Floats, link_steps: Floats) -> Floats:
        """Return q = dz/z, given the relative steps u (B, N) and the steps of the linking slacks.

        For a floor row, z q is computed as error·(x∘(u − u_w)) + z u_w. This form avoids cancellation in the direction
        u = 1.
        """
        q = np.empty(self.size)
        n = points.shape[1] - len(self.errors)
        for index, error in enumerate(self.errors):
            shift = u[:, n + index, None]
            moved = (points[:, :n] * (u[:, :n] - shift)) @ error.T
            self.floor(q, index)[:] = moved / self.floor(z, index) + shift
        self.contributions(q)[:] = u[:, n:]
        q[self.linking] = link_steps / z[self.linking]
        q[self.absent] = 0.0
        return q

    def relative_change(self, y: Floats, dy: Floats) -> Floats:
        """Return dy/y, and 0 for absent rows."""
        change: Floats = np.divide(dy, y, out=np.zeros(self.size), where=y > 0)
        return change

    def add_adjoint(self, values: Floats, out: Floats) -> None:
        """Apply the transpose of the auxiliary rows to `values`, and add the result to `out` (B, N)."""
        n = out.shape[1] - len(self.errors)
        for index, error in enumerate(self.errors):
            mine = self.floor(values, index)
            out[:, :n] += mine @ error
            out[:, n + index] -= mine.sum(axis=1)
        out[:, n:] += self.contributions(values)


MAX_EXPONENT = 43.0
"""Bounds with ratios above e^43 (about 2^62) are omitted: among integers below 2^62, they constrain only zeros.

`design` has already omitted the bounds above `mechdesign.synthesis._normal.VACUOUS`, which is slightly stricter.
"""

# The ratio of pairs without a bound. The ratio is so large that its row limits steps exactly as x_t >= 0 does.
_UNBOUNDED_RATIO = 1e60
# The weight of a ratio row is its exponent, relative to the least exponent, to this power. In dense blocks, the weight
# decreases with distance. In sparse blocks, the weight increases with distance, because rows of close pairs have little
# slack. On road networks, the power −1.5 doubles the number of iterations.
_WEIGHT_POWER, _WEIGHT_POWER_SPARSE = -1.5, 0.5
_MIN_WEIGHT = 1e-9
# Blocks with at least this number of rows are treated as sparse if at most this share of all pairs has bounds.
_SPARSE_MIN_ROWS, _SPARSE_MAX_SHARE = 40, 1 / 8


@dataclass(frozen=True, eq=False)
class BlockLayout:
    """The arrays that are constant during a solve with B blocks.

    Attributes:
        program: The program.
        symmetry: The symmetry group.
        ratios: Ratios g (n, n), with a huge value for pairs without a bound.
        weights: Weights w (n, n) of the central path; zero for pairs without a bound.
        free: Flags (n, n) of the pairs without a bound; None if every pair has one.
        cost: Costs (B, n).
        kept: The columns that represent their orbits, one for each block (B,).
        counts: Number of columns that each block represents (B,).
        errors: Errors (k_f, n) of each floor.
        minima: Minimum of each floor (F,).
        rewards: Rewards of the blocks' contributions to the floors (B, F).
        member_cost: Coefficients (q, B) of the worst cost; they multiply the rows `member_row` of x.
        member_row: The row of x for each member of the worst cost (q,).
        images: Images of the linking rows under each element of the symmetry group (G, L), starting with the identity.
        stabilisers: For each stabiliser order g > 1, the blocks (k,) that exactly g elements map to themselves, and the
            images (k, g, N) of their variables.
        origins: For every column, the group element (m,) that maps its representative to the column, and its block
            (m,).
        auxiliary: The auxiliary rows.
        sparse: Whether few pairs have bounds and the program has no floors.
        geometry: The properties of pairs, shared by all layouts with these bounds.

    The ratios are symmetric to the last bit, and so are steps after `symmetrise`. The entrywise results of kernels are
    therefore symmetric, too. Without this symmetry, multipliers would drift in directions that symmetric steps cannot
    correct.
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
        """Number B of blocks."""
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
        """Number q of members of the worst cost; 0 without a worst cost."""
        return int(self.member_row.size)

    @property
    def links(self) -> int:
        """Number L of linking rows."""
        return self.width + self.members

    @property
    def link_unit(self) -> float:
        """The largest unit of a linking row: 1 for row sums, the largest minimum of a floor, or the largest cost."""
        costs = float(np.abs(self.member_cost).max(initial=0.0))
        return max(1.0, float(self.minima.max(initial=0.0)), costs)

    @property
    def total_weight(self) -> float:
        """The sum Σ w of the weights of all rows of the program, over all columns of each orbit."""
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
        """Average the steps (B, N) of each block over its stabiliser, in place.

        In exact arithmetic, the steps are already symmetric, but rounding errors along flat directions are not. After
        averaging, the entries of each orbit are equal to the last bit.
        """
        for blocks, moved in self.stabilisers:
            average = steps[blocks[:, None, None], moved].mean(axis=1)
            steps[blocks] = np.take_along_axis(average, moved.min(axis=1), axis=1)

    @property
    def link_variables(self) -> Integers:
        """Index of the block variable in each linking row (L,)."""
        return np.concatenate([np.arange(self.width), self.member_row])

    def link_scale(self, points: Floats) -> Floats:
        """Return e (B, L), the derivative of each linking row by the relative step of its variable."""
        members = -self.member_cost.T * points[:, self.member_row]
        return np.hstack([points, members]) if self.members else points

    def link_sums(self, steps: Floats) -> Floats:
        """Return Σ_o E_o ξ_o (L,) for `steps` (B, N), averaged over the symmetry group."""
        total = np.empty(self.links)
        total[: self.width] = self.counts @ steps
        if self.members:
            total[self.width :] = -(self.member_cost * (self.counts[:, None] * steps[:, self.member_row]).T).sum(axis=1)
        return self.average(total)

    def link_adjoint(self, multipliers: Floats) -> Floats:
        """Return E_oᵀ Λ (B, N) for multipliers Λ (L,) of the linking rows."""
        result = np.broadcast_to(multipliers[: self.width], (self.blocks, self.width)).copy()
        if self.members:
            weighted = self.member_cost * multipliers[self.width :, None]
            gathered = np.zeros((self.rows, self.blocks))
            np.add.at(gathered, self.member_row, weighted)
            result[:, : self.rows] -= gathered.T
        return result

    def unfold(self, x: Floats) -> Floats:
        """Expand the entries x (B, n) of the blocks to the full matrix (n, m)."""
        mover, block = self.origins
        full = np.empty((self.rows, self.program.columns))
        for column in range(self.program.columns):
            full[self.symmetry.rows[mover[column]], column] = x[block[column]]
        return full


def find_bounded_pairs(exponents: Floats) -> Flags:
    """Return flags (n, n) of the pairs with ratio rows. Pairs with exponents above MAX_EXPONENT have no ratio row."""
    rows: Flags = exponents <= MAX_EXPONENT
    return rows


def has_sparse_blocks(program: BlockProgram) -> bool:
    """Return whether the blocks of a program are treated as sparse."""
    return is_sparse(program.rows, int(np.count_nonzero(find_bounded_pairs(program.exponents))), len(program.floors))


def is_sparse(rows: int, pairs: int, floors: int) -> bool:
    """Return whether blocks of this size are treated as sparse; blocks with floors are dense."""
    return not floors and rows >= _SPARSE_MIN_ROWS and pairs <= _SPARSE_MAX_SHARE * rows**2


Derived = TypeVar("Derived")


@dataclass(frozen=True, eq=False)
class PairGeometry:
    """The properties of pairs that all blocks share.

    Layouts that share a geometry share the values that kernels derive from it. The attributes are copies of the
    attributes of `BlockLayout`.
    """

    ratios: Floats
    weights: Floats
    free: Flags | None
    sparse: bool
    _derived: dict[str, Any] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def derive(self, name: str, make: Callable[[], Derived]) -> Derived:
        """Return a value derived from the geometry. The first thread that requests `name` computes it with `make`."""
        with self._lock:
            if name not in self._derived:
                self._derived[name] = make()
            found: Derived = self._derived[name]
        return found


def make_geometry(exponents: Floats, floors: int) -> PairGeometry:
    """Return the geometry of blocks with the given exponents (n, n), in a program with `floors` floors."""
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
    """Return the layout of a program, with one block for each orbit of columns.

    Args:
        program: The program.
        symmetry: Symmetries of the program; the trivial group by default.
        active: For each floor, flags (B, k) of the active estimates; allowed only without symmetry.
        geometry: The geometry of the bounds, if it is already known; allowed only without symmetry.

    Returns:
        The layout.
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
    # If the linking rows of the worst cost had weight 1, the number of iterations would double or triple.
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
    """Return the rewards (B, F) of the columns `kept`."""
    rewards = np.zeros((kept.size, len(program.floors)))
    for index, floor in enumerate(program.floors):
        if floor.rewards is not None:
            rewards[:, index] = floor.rewards[kept]
    return rewards
