"""Solve the Newton system at an iterate, which consists of factored blocks and the linking rows between them.

In relative steps u = dξ/ξ, block o has the Hessian H = Ξ Bᵀ diag(y/z) B Ξ. All rows are homogeneous. Scaling a whole
block (u = 1) therefore hardly changes its active rows, and H is nearly singular in this direction. Choose the root
r = argmax x, and write u = û + τ·1 with û_r = 0. Row and column r of H become H·1 = ξ∘(Bᵀy), and H_rr becomes Σ y z;
both are computed without subtraction. The resulting matrix M is factored. Let P be the inverse of M. Let p be column r
of P without entry r, and let P₀ be P without row and column r. The inverse Hessian of the block is
Q = P₀ + p1ᵀ + 1pᵀ + P_rr 11ᵀ.

`RatioRows` passes over the ratio rows z_st = g_st x_t − x_s of all blocks, and the workers share them. The multipliers
y (B, n, n) alone are modified in place, because copies at every iteration would be too large. They belong to the newest
iterate; access through an older iterate raises an error.

Linking rows couple the blocks. A step solves C systems of L linking rows. In the main iteration, the row sums, the
floors and the worst cost form one system (`RowSums`), whose Schur complement needs the inverses of all blocks. In
pricing, each column has its own system (`UnitMass`). Its only row is the column's unit mass, and its Schur complement
takes one solve with the block.

Theory: block_method, Newton system in relative steps; One iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.linalg

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.solve._blocks.iterate import Iterate, link_residual
from mechdesign.solve._blocks.kernels.contract import REGULARISATIONS, Kernel
from mechdesign.solve._blocks.layout import AuxiliaryRows, BlockLayout
from mechdesign.solve._blocks.tuning import TUNING
from mechdesign.solve._threads import Workers

Value = TypeVar("Value", bound=np.generic)


class StallError(Exception):
    """The iteration cannot continue; the last iterate remains valid."""


class Coupling(Protocol):
    """The linking rows of C systems with L rows each; each of the B blocks belongs to one system."""

    def active(self) -> slice | Flags:
        """Return an index of the systems that have not converged."""

    def total(self, values: Floats) -> Floats:
        """Return the sum (C,) over each system of the values (B,) of its blocks."""

    def minimum(self, by_block: Floats, by_row: Floats) -> Floats:
        """Return the smallest value (C,) of each system over its blocks, its auxiliary rows, and 0."""

    def spread(self, values: npt.NDArray[Value]) -> npt.NDArray[Value]:
        """Assign the values (C,) of systems to their auxiliary rows."""

    def link_sums(self, steps: Floats) -> Floats:
        """Return Σ E ξ (C, L) for steps ξ (B, N)."""

    def link_adjoint(self, multipliers: Floats) -> Floats:
        """Return Eᵀ Λ (B, N) for multipliers Λ (C, L)."""

    def residual(self, iterate: Iterate, f: Floats) -> Floats:
        """Return the residual (C, L) of the linking rows, if the auxiliary rows have the targets T/z = `f`."""

    def solve(self, right: Floats, *, steer_weights: bool) -> tuple[Floats, float]:
        """Solve the Schur complement system; return dΛ (C, L) and dθ."""

    def find_steps_after(self, u: Floats, right: Floats, dlambda: Floats) -> Floats:
        """Return the steps (B, N) if the multipliers change by `dlambda`, given the steps `u` without this change."""

    def add_steps_after(self, u: Floats, dlambda: Floats) -> Floats:
        """Return the steps after a further change of the multipliers."""

    def direction_residual(
        self, iterate: Iterate, residual: Floats, u: Floats, dlambda: Floats, dtheta: float
    ) -> Floats:
        """Return the residual (C, L) of the linking rows after a full step."""

    def slack_steps(self, iterate: Iterate, f: Floats, dlambda: Floats, remainder: Floats) -> tuple[Floats, Floats]:
        """Return dy and dz of the linking slacks."""


class SchurComplement:
    """The Schur complement S = Σ_o E_o Ξ Q Ξ E_oᵀ + diag(0, t/v, t/ω), scaled and factored.

    With a worst cost, S has a border b for θ: S dΛ + b dθ = right and bᵀdΛ = corner. The vector b is 1 at the entries
    of ω, and 0 elsewhere. The constructor raises StallError if S cannot be factored.
    """

    def __init__(self, layout: BlockLayout, iterate: Iterate, matrix: Floats) -> None:
        linking = layout.auxiliary.linking
        self._matrix = matrix.copy()
        tail = np.arange(layout.rows, layout.links)
        self._matrix[tail, tail] += iterate.z[linking] / iterate.y[linking]
        self._scale = 1 / np.sqrt(self._matrix.diagonal())
        scaled = self._matrix * self._scale[:, None] * self._scale
        for delta in (0.0, *REGULARISATIONS):
            try:
                self._factor = scipy.linalg.cho_factor(scaled + delta * np.eye(layout.links), check_finite=False)
                break
            except scipy.linalg.LinAlgError:
                continue
        else:
            raise StallError("the Schur complement cannot be factored")
        self._average = layout.average
        self._members = layout.members
        if self._members:
            self._border = np.zeros(layout.links)
            self._border[layout.width :] = 1.0
            self._bordered = self._average(self._solve_refined(self._border))

    def _solve_refined(self, right: Floats) -> Floats:
        """Solve without the border, with one step of iterative refinement."""
        scale = self._scale
        first = scale * scipy.linalg.cho_solve(self._factor, scale * right, check_finite=False)
        remainder = right - self._matrix @ first
        return np.asarray(first + scale * scipy.linalg.cho_solve(self._factor, scale * remainder, check_finite=False))

    def solve(self, right: Floats, corner: float) -> tuple[Floats, float]:
        """Return dΛ (L,) and dθ."""
        # Average over the symmetry group, because an ill-conditioned matrix amplifies asymmetric rounding errors.
        free = self._average(self._solve_refined(right))
        if not self._members:
            return free, 0.0
        total = float(self._border @ self._bordered)
        if not total > 0:
            raise StallError("the Schur complement of the worst cost is not positive")
        dtheta = (float(self._border @ free) - corner) / total
        return free - dtheta * self._bordered, dtheta


class RowSums:
    """The row sums, the floors and the worst-cost rows of a program as one linear system."""

    def __init__(self, layout: BlockLayout, iterate: Iterate, schur: Floats, solve: Callable[[Floats], Floats]) -> None:
        self.layout, self._solve_blocks = layout, solve
        self._schur = SchurComplement(layout, iterate, schur)
        # The change of Σ ω that makes the weights of the worst cost sum to 1.
        self._corner = 1.0 - float(iterate.y[layout.auxiliary.linking][layout.floors :].sum())

    def active(self) -> slice:
        """Return an index of the only system."""
        return slice(None)

    def total(self, values: Floats) -> Floats:
        """Sum the values of blocks, each multiplied by the number of columns that it represents."""
        return np.array([float(self.layout.counts @ values)])

    def minimum(self, by_block: Floats, by_row: Floats) -> Floats:
        """Return the smallest of all values and 0."""
        return np.array([min(float(by_block.min()), float(by_row.min(initial=0.0)))])

    def spread(self, values: npt.NDArray[Value]) -> npt.NDArray[Value]:
        """Return the single value, which NumPy broadcasts to all rows."""
        return values

    def link_sums(self, steps: Floats) -> Floats:
        """Return Σ E ξ (1, L), averaged over the symmetry group."""
        return self.layout.link_sums(steps)[None]

    def link_adjoint(self, multipliers: Floats) -> Floats:
        """Return Eᵀ Λ (B, N)."""
        return self.layout.link_adjoint(multipliers[0])

    def residual(self, iterate: Iterate, f: Floats) -> Floats:
        """Return the residual (1, L), including the intended changes of the linking slacks."""
        residual = link_residual(self.layout, iterate)
        residual[self.layout.rows :] += self._gain(iterate, f)
        return residual[None]

    def solve(self, right: Floats, *, steer_weights: bool) -> tuple[Floats, float]:
        """Return dΛ (1, L) and dθ. With `steer_weights`, the step makes the weights of the worst cost sum to 1."""
        dlambda, dtheta = self._schur.solve(right[0], self._corner if steer_weights else 0.0)
        return dlambda[None], dtheta

    def find_steps_after(self, u: Floats, right: Floats, dlambda: Floats) -> Floats:
        """Solve the block systems again with the changed multipliers."""
        return self._solve_blocks(right + self.layout.link_adjoint(dlambda[0]))

    def add_steps_after(self, u: Floats, dlambda: Floats) -> Floats:
        """Return the steps after a further change of the multipliers."""
        return u + self._solve_blocks(self.layout.link_adjoint(dlambda[0]))

    def direction_residual(
        self, iterate: Iterate, residual: Floats, u: Floats, dlambda: Floats, dtheta: float
    ) -> Floats:
        """Return the residual (1, L) of the linking rows after a full step."""
        link, n = self.layout.auxiliary.linking, self.layout.rows
        remainder = residual - self.link_sums(iterate.points * u)
        remainder[0, n:] -= iterate.z[link] / iterate.y[link] * dlambda[0, n:]
        remainder[0, self.layout.width :] -= dtheta
        return remainder

    def slack_steps(self, iterate: Iterate, f: Floats, dlambda: Floats, remainder: Floats) -> tuple[Floats, Floats]:
        """Return dy and dz of the linking slacks.

        The step of a large slack absorbs the residual of its row. Otherwise the factor z/y would amplify rounding
        errors of the slack's small multiplier.
        """
        link, n = self.layout.auxiliary.linking, self.layout.rows
        z, y = iterate.z[link], iterate.y[link]
        taken = np.where(np.abs(remainder[0, n:]) <= TUNING.newton.max_absorbed_share * z, remainder[0, n:], 0.0)
        return dlambda[0, n:] + y / z * taken, self._gain(iterate, f) - z / y * dlambda[0, n:] - taken

    def _gain(self, iterate: Iterate, f: Floats) -> Floats:
        """Return T/y − z with T = f z, a part of the slack step dt = T/y − z − z dy/y."""
        link = self.layout.auxiliary.linking
        gain: Floats = iterate.z[link] * (f[link] / iterate.y[link] - 1.0)
        return gain


class UnitMass:
    """The rows 1·x = 1 of B priced columns, each a system with one row and one multiplier ρ."""

    def __init__(self, auxiliary: AuxiliaryRows, rows: int, points: Floats, solve: Callable[[Floats], Floats]) -> None:
        self.auxiliary, self.rows = auxiliary, rows
        self.unfinished = np.ones(len(points), dtype=np.bool_)
        self.link = np.zeros(points.shape)
        self.link[:, :rows] = 1.0
        self._along = solve(self.link)
        self._schur = (points[:, :rows] * self._along[:, :rows]).sum(axis=1)

    def active(self) -> Flags:
        """Return flags of the columns that have not converged."""
        return self.unfinished

    def total(self, values: Floats) -> Floats:
        """Return the values unchanged, because each system has one block."""
        return values

    def minimum(self, by_block: Floats, by_row: Floats) -> Floats:
        """Return the smallest of 0, the value of each block, and the values of its auxiliary rows."""
        least = [each.min(axis=1, initial=0.0) for each in self._by_block(by_row)]
        return np.asarray(np.minimum.reduce([by_block, *least]))

    def spread(self, values: npt.NDArray[Value]) -> npt.NDArray[Value]:
        """Assign the value of each block (B,) to its auxiliary rows."""
        spread = np.empty(self.auxiliary.size, dtype=values.dtype)
        for each in self._by_block(spread):
            each[:] = values[:, None]
        return spread

    def link_sums(self, steps: Floats) -> Floats:
        """Return the masses 1·x (B, 1) of the columns."""
        total: Floats = steps[:, : self.rows].sum(axis=1)[:, None]
        return total

    def link_adjoint(self, multipliers: Floats) -> Floats:
        """Return ρ for the entries of x and 0 for the contributions to the floors (B, N)."""
        spread: Floats = multipliers * self.link
        return spread

    def residual(self, iterate: Iterate, f: Floats) -> Floats:
        """Return the residuals 1 − 1·x (B, 1)."""
        residual: Floats = 1.0 - self.link_sums(iterate.points)
        return residual

    def solve(self, right: Floats, *, steer_weights: bool) -> tuple[Floats, float]:
        """Return dρ (B, 1)."""
        return right / self._schur[:, None], 0.0

    def find_steps_after(self, u: Floats, right: Floats, dlambda: Floats) -> Floats:
        """Add a multiple of the stored solution for the linking row, without another solve with the blocks."""
        moved: Floats = u + dlambda * self._along
        return moved

    def add_steps_after(self, u: Floats, dlambda: Floats) -> Floats:
        """Return the steps after a further change of ρ."""
        return self.find_steps_after(u, u, dlambda)

    def direction_residual(
        self, iterate: Iterate, residual: Floats, u: Floats, dlambda: Floats, dtheta: float
    ) -> Floats:
        """Return the residual (B, 1) of 1·x = 1 after a full step."""
        missed: Floats = residual - self.link_sums(iterate.points * u)
        return missed

    def slack_steps(self, iterate: Iterate, f: Floats, dlambda: Floats, remainder: Floats) -> tuple[Floats, Floats]:
        """Return empty arrays, because the row 1·x = 1 has no slack."""
        return np.zeros(0), np.zeros(0)

    def _by_block(self, values: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
        for index in range(len(self.auxiliary.errors)):
            yield self.auxiliary.floor(values, index)
        if self.auxiliary.errors:
            yield self.auxiliary.contributions(values)


class RatioRows:
    """The ratio rows, with a kernel that stores all arrays of their size.

    The arguments `x` and `u` (B, n) of the methods are contiguous arrays with the points and relative steps of all
    blocks. `moves` counts the updates of y, and equals the number of the iterate to which y belongs.
    """

    def __init__(self, layout: BlockLayout, workers: Workers, kernel: Kernel) -> None:
        self.layout, self.workers, self.kernel = layout, workers, kernel
        self.moves = 0

    @property
    def y(self) -> Floats:
        """The read-only multipliers of the newest iterate: (B, n, n) for dense blocks, or (B, K) for sparse blocks."""
        return self.kernel.multipliers()

    def require_newest(self, number: int) -> None:
        """Raise an error if the iterate is not the newest, because older iterates have no multipliers."""
        if number != self.moves:
            raise RuntimeError(
                f"the ratio rows belong to iterate {self.moves}; iterate {number} no longer has multipliers"
            )

    def keep(self, *, spare: bool) -> Callable[[], Floats]:
        """Return a function that returns the current y, even after later updates.

        The function refers to a copy of y. With `spare`, the copy overwrites the memory for centrality corrections if
        the kernel has such memory. After `keep` with `spare`, no centrality correction is allowed.
        """
        if spare or self.kernel.SPARSE:
            return self.kernel.keep()
        copy = self.y.copy()
        return lambda: copy

    def start(self, x: Floats, mu: float) -> None:
        """Set y = μ w / z for the first iterate. If the pass is interrupted, the multipliers remain undefined."""
        self.workers.run(lambda worker, blocks: self.kernel.start(worker, blocks, x, mu))
        self.moves = 0

    def resume(self, y: Floats, mu: float) -> None:
        """Set y to the multipliers of a state."""
        self.kernel.load(y, mu)
        self.moves = 0

    def affine_ratio_test(self, x: Floats, u: Floats) -> tuple[float, float]:
        """Return max −dz/z = max −q, and max −dy/y = max 1 + q for the target 0."""
        parts = self.workers.run(lambda worker, blocks: self.kernel.affine_ratio_test(worker, blocks, x, u))
        low, high = (np.concatenate([np.atleast_1d(part) for part in some]) for some in zip(*parts, strict=True))
        return -float(low.min()), 1.0 + float(high.max())

    def mehrotra(self, x: Floats, u: Floats, centre: float) -> Floats:
        """Write the targets T = σμ w − dz dy of Mehrotra's corrector to slot 0; return Bᵀ(T/z) (B, n)."""
        adjoint = np.zeros(x.shape)
        self.workers.run(lambda worker, blocks: self.kernel.mehrotra(worker, blocks, x, u, centre, adjoint))
        return adjoint

    def ratio_test(self, x: Floats, u: Floats, slot: int, *, store_for_corrector: bool) -> tuple[float, float]:
        """Return the smallest dz/z and dy/y for the targets in `slot`.

        If `store_for_corrector` is true, a call of `centrality` with the same steps may follow.
        """
        parts = self.workers.run(
            lambda worker, blocks: self.kernel.ratio_test(
                worker, blocks, x, u, slot, store_for_corrector=store_for_corrector
            )
        )
        primal, dual = (np.concatenate([np.atleast_1d(part) for part in some]) for some in zip(*parts, strict=True))
        return float(primal.min()), float(dual.min())

    def centrality(self, x: Floats, u: Floats, slot: int, primal: float, dual: float, centre: float) -> Floats:
        """Write Gondzio's correction of the targets in `slot`, for steps `primal` and `dual`, to the other slot.

        The last call of `ratio_test` must have had the same `u` and `slot`. Return Bᵀ(T/z) of the new targets (B, n).
        """
        adjoint = np.zeros(x.shape)
        self.workers.run(
            lambda worker, blocks: self.kernel.centrality(worker, blocks, x, u, slot, primal, dual, centre, adjoint)
        )
        return adjoint

    def advance(self, x: Floats, u: Floats, slot: int, dual: float) -> None:
        """Move y by `dual` times dy, for the targets in `slot`; y then belongs to the next iterate.

        This pass is always completed, because a mixture of multipliers of two iterates would prove only a weak bound.
        """
        self.workers.run(lambda worker, blocks: self.kernel.advance(worker, blocks, x, u, slot, dual), whole=True)
        self.moves += 1


@dataclass(frozen=True, eq=False)
class Targets:
    """The target complementarity products T of a direction, divided by the slacks z.

    Attributes:
        target_adjoint: Bᵀ(T/z) (B, n) of the ratio rows. The kernel stores the targets of the ratio rows.
        auxiliary: T/z of the auxiliary rows.
    """

    target_adjoint: Floats
    auxiliary: Floats


@dataclass(frozen=True, eq=False)
class Direction:
    """A solution of the Newton system.

    Attributes:
        u: Relative steps dξ/ξ (B, N).
        u_x: Relative steps of x only (B, n), in a contiguous array.
        dmultipliers: The step dΛ (C, L) of the multipliers of the linking rows.
        dtheta: The step dθ of the worst cost.
        q: The relative steps dz/z of the slacks of the auxiliary rows.
        dy: The steps dy of the multipliers of the auxiliary rows.
        link_residual: Largest residual of a linking row after a full step.
    """

    u: Floats
    u_x: Floats
    dmultipliers: Floats
    dtheta: float
    q: Floats
    dy: Floats
    link_residual: float


@dataclass(frozen=True, eq=False)
class NewtonSystem:
    """The Newton system at an iterate with factored blocks.

    Attributes:
        coupling: The linking rows.
        auxiliary: The auxiliary rows.
        iterate: The iterate, with multipliers Λ (C, L).
        solve: Function that solves H u = ξ∘right for all blocks (B, N).
        cost: Costs c (B, n).
        rewards: Rewards of the contributions to the floors (B, F).
        single_inverses: Whether the inverses of the blocks are in single precision.
    """

    coupling: Coupling
    auxiliary: AuxiliaryRows
    iterate: Iterate
    solve: Callable[[Floats], Floats]
    cost: Floats
    rewards: Floats
    single_inverses: bool = False


@dataclass(frozen=True, eq=False)
class FactoredBlocks:
    """The factored Hessians at an iterate and sums over their rows, until the next blocks are factored.

    Attributes:
        layout: The layout of the program.
        ratios: The ratio rows.
        iterate: The iterate.
        x: The values x (B, n) of the iterate, in a contiguous array.
        adjoint: Bᵀy (B, N).
        products: The sum Σ y z over the rows of each block (B,).
        roots: The root r of each block (B,), the row with the largest x.
        schur: Σ_o E_o Ξ Q Ξ E_oᵀ (L, L), averaged over the symmetry group.
        regularisation: Largest relative regularisation of a diagonal in a factorisation.
        mu: The barrier parameter μ = Σ y z / Σ w over all rows.
    """

    layout: BlockLayout
    ratios: RatioRows
    iterate: Iterate
    x: Floats
    adjoint: Floats
    products: Floats
    roots: Integers
    schur: Floats
    regularisation: float
    mu: float

    @property
    def has_factors(self) -> bool:
        """Whether the blocks are factored; they are not if Bᵀy alone seems to end the iteration."""
        return self.schur.size > 0

    def solve(self, right: Floats) -> Floats:
        """Return u (B, N) with H u = ξ∘right for every block."""
        index = np.arange(self.layout.blocks)
        # In the basis of the root, the root's entry of the right side is the sum of all entries. The root's entry of
        # the solution is τ, which is added to all other entries.
        steps = self.iterate.points * right
        steps[index, self.roots] = steps.sum(axis=1)
        kernel = self.ratios.kernel
        self.ratios.workers.run(lambda worker, blocks: kernel.solve(worker, blocks, steps))
        shift = steps[index, self.roots]
        steps += shift[:, None]
        steps[index, self.roots] = shift
        self.layout.symmetrise(steps)
        return steps

    def system(self) -> NewtonSystem:
        """Return the Newton system with the program's linking rows and the factored Schur complement."""
        layout, kernel = self.layout, self.ratios.kernel
        coupling = RowSums(layout, self.iterate, self.schur, self.solve)
        # The program has one system of linking rows, so Λ has the shape (1, L) here.
        iterate = replace(self.iterate, multipliers=self.iterate.multipliers[None])
        fixed = layout.auxiliary, iterate, self.solve, layout.cost, layout.rewards
        return NewtonSystem(coupling, *fixed, single_inverses=kernel.single_inverses)


def factor_blocks(
    layout: BlockLayout, ratios: RatioRows, iterate: Iterate, may_end: Callable[[FactoredBlocks], bool] | None = None
) -> FactoredBlocks:
    """Build and factor the Hessians of all blocks at the newest iterate.

    Args:
        layout: The layout of the program.
        ratios: The ratio rows, at this iterate.
        iterate: The newest iterate.
        may_end: A test that decides from Bᵀy alone whether the iteration ends here. If the iteration ends, a sparse
            kernel does not factor the blocks.

    Returns:
        The factored blocks, without factors if the iteration ends.

    Raises:
        StallError: If rounding has made a slack non-positive, or a Hessian cannot be factored.
    """
    ratios.require_newest(iterate.number)
    if not (iterate.z > 0).all():
        raise StallError("rounding has made a slack non-positive")
    kernel, run, assembly = ratios.kernel, ratios.workers.run, _Assembly(layout, ratios, iterate)
    # The assignment of blocks to workers is fixed, so that sums are reproducible.
    if may_end is None or not kernel.SPARSE:
        regularisation = max(run(assembly.assemble_and_factor, fixed=True))
    elif not all(run(assembly.assemble, fixed=True)):
        regularisation = np.inf
    elif may_end(unfactored := assembly.finish(np.empty((0, 0)), 0.0)):
        return unfactored
    else:
        regularisation = max(run(assembly.factor, fixed=True))
    # This call also resets the workers' parts, so it precedes the check.
    total = kernel.schur()
    if not np.isfinite(regularisation):
        raise StallError("a block cannot be factored")
    total += _sum_rank_two_terms(layout, assembly.roots, assembly.scale, assembly.root_columns)
    # Kernels compute only one triangle of the Schur complement.
    return assembly.finish(layout.average_matrix(np.triu(total) + np.triu(total, 1).T), regularisation)


class _Assembly:
    """The arrays into which batches of blocks are assembled and factored."""

    def __init__(self, layout: BlockLayout, ratios: RatioRows, iterate: Iterate) -> None:
        self.layout, self.ratios, self.iterate = layout, ratios, iterate
        auxiliary, points, z, y = layout.auxiliary, iterate.points, iterate.z, iterate.y
        self.x = np.ascontiguousarray(points[:, : layout.rows])
        self.roots, self.y_over_z, self.scale = self.x.argmax(axis=1), y / z, layout.link_scale(points)
        # Kernels compute the sums over ratio rows; the sums over the auxiliary rows are computed here.
        self.ratio_adjoint, self.ratio_products = np.zeros(self.x.shape), np.zeros(layout.blocks)
        self.auxiliary_adjoint, work = np.zeros(points.shape), y * z
        auxiliary.add_adjoint(y, self.auxiliary_adjoint)
        self.products = auxiliary.contributions(work).sum(axis=1)
        for index in range(layout.floors):
            self.products += auxiliary.floor(work, index).sum(axis=1)
        self.adjoint, self.root_columns, self.root_rows = (np.empty(points.shape) for _ in range(3))

    def assemble(self, worker: int, blocks: slice) -> bool:
        """Build the Hessians of a batch, and sum Bᵀy and Σ y z; return whether the batch can be factored."""
        sound = self.ratios.kernel.assemble(worker, blocks, self.x, self.ratio_adjoint, self.ratio_products)
        self.adjoint[blocks] = self.auxiliary_adjoint[blocks]
        self.adjoint[blocks, : self.layout.rows] += self.ratio_adjoint[blocks]
        self.products[blocks] += self.ratio_products[blocks]
        # Just-in-time compilation may take seconds, so stop requests are checked between assembling and factoring.
        return sound and not self.ratios.workers.is_stopped()

    def factor(self, worker: int, blocks: slice) -> float:
        """Factor the Hessians of a batch; return the largest regularisation, or infinity if the factorisation fails."""
        layout, kernel, points = self.layout, self.ratios.kernel, self.iterate.points
        for index in range(layout.floors):
            own = layout.auxiliary.contributions(self.y_over_z)[:, index]
            kernel.add_floor(worker, blocks, index, points, layout.auxiliary.floor(self.y_over_z, index), own)
        self.root_rows[blocks] = points[blocks] * self.adjoint[blocks]
        regularisation = kernel.factor(worker, blocks, self.roots, self.root_rows, self.products)
        if np.isfinite(regularisation) and not self.ratios.workers.is_stopped():
            kernel.accumulate(worker, blocks, self.roots, self.scale, layout.counts, self.root_columns)
        return regularisation

    def assemble_and_factor(self, worker: int, blocks: slice) -> float:
        """Assemble and factor a batch together, because dense kernels store the Hessians of only one batch."""
        return self.factor(worker, blocks) if self.assemble(worker, blocks) else np.inf

    def finish(self, schur: Floats, regularisation: float) -> FactoredBlocks:
        """Return the factored blocks."""
        layout, iterate, linking = self.layout, self.iterate, self.layout.auxiliary.linking
        linked = iterate.z[linking] @ iterate.y[linking]
        mu = (float(layout.counts @ self.products) + float(linked)) / layout.total_weight
        measured = self.x, self.adjoint, self.products, self.roots
        return FactoredBlocks(layout, self.ratios, iterate, *measured, schur, regularisation, mu)


def _sum_rank_two_terms(layout: BlockLayout, roots: Integers, scale: Floats, columns: Floats) -> Floats:
    """Compute Σ count · e eᵀ ∘ (p1ᵀ + 1pᵀ + P_rr 11ᵀ) by one matrix product; overwrite `columns`.

    The rows of `columns` (B, N) are the columns P[:, r].
    """
    index = np.arange(layout.blocks)
    corners = columns[index, roots, None] / 2
    columns[index, roots] = 0.0
    product: Floats = scale.T @ (layout.counts[:, None] * scale * (columns[:, layout.link_variables] + corners))
    return product + product.T


def refine_direction(system: NewtonSystem, targets: Targets, found: Direction) -> Direction:
    """Refine a single-precision direction that misses the linking rows; without refinement, row sums would drift."""
    if found.link_residual <= TUNING.newton.link_accuracy or not system.single_inverses:
        return found
    return solve_newton(system, targets, found)


def solve_newton(system: NewtonSystem, targets: Targets, found: Direction | None = None) -> Direction:
    """Solve the Newton system for `targets`, or refine the single-precision direction `found`.

    With f = T/z and R = −(c − EᵀΛ) + Bᵀf, each block has the equation H u = ξ∘(R + EᵀdΛ). The linking rows determine dΛ
    through the Schur complement S.
    """
    coupling, auxiliary, iterate, f = system.coupling, system.auxiliary, system.iterate, targets.auxiliary
    n = system.cost.shape[1]
    residual = coupling.residual(iterate, f)
    if found is None:
        right = coupling.link_adjoint(iterate.multipliers)
        right[:, :n] += targets.target_adjoint - system.cost
        right[:, n:] += system.rewards
        auxiliary.add_adjoint(f, right)
        u = system.solve(right)
        dlambda, dtheta = coupling.solve(residual - coupling.link_sums(iterate.points * u), steer_weights=True)
        u = coupling.find_steps_after(u, right, dlambda)
    else:
        u, dlambda, dtheta = found.u, found.dmultipliers, found.dtheta
    # In single precision, only the final direction of a step is refined, not its trial directions.
    refinements = TUNING.newton.max_refinements
    if system.single_inverses:
        refinements = 0 if found is None else TUNING.newton.max_refinements_single
    steps = _refine_links(system, residual, u, dlambda, dtheta, refinements)
    u, dlambda = steps.u, steps.dlambda
    dy = np.empty(auxiliary.size)
    dy[auxiliary.linking], link_steps = coupling.slack_steps(iterate, f, dlambda, steps.residual_after)
    q = auxiliary.relative_steps(iterate.points, u, iterate.z, link_steps)
    rows = slice(0, auxiliary.linking.start)
    dy[rows] = f[rows] - iterate.y[rows] * (1.0 + q[rows])
    return Direction(u, np.ascontiguousarray(u[:, :n]), dlambda, steps.dtheta, q, dy, steps.largest_residual)


@dataclass(frozen=True, eq=False)
class _LinkedSteps:
    """Steps of the blocks and of the multipliers Λ, and the residual of the linking rows after a full step."""

    u: Floats
    dlambda: Floats
    dtheta: float
    residual_after: Floats
    largest_residual: float


def _refine_links(
    system: NewtonSystem, residual: Floats, u: Floats, dlambda: Floats, dtheta: float, refinements: int
) -> _LinkedSteps:
    """Refine the steps until they satisfy the linking rows, or until `refinements` are used.

    In single precision, the refinement ends if the residual does not decrease.
    """
    coupling, iterate, active = system.coupling, system.iterate, system.coupling.active()
    best: _LinkedSteps | None = None
    while True:
        residual_after = coupling.direction_residual(iterate, residual, u, dlambda, dtheta)
        steps = _LinkedSteps(u, dlambda, dtheta, residual_after, float(np.abs(residual_after[active]).max()))
        if system.single_inverses and best is not None and not steps.largest_residual < best.largest_residual:
            return best
        if steps.largest_residual <= TUNING.newton.link_accuracy or refinements == 0:
            return steps
        best = steps
        refinements -= 1
        more, more_theta = coupling.solve(residual_after, steer_weights=False)
        dlambda = dlambda + more
        dtheta += more_theta
        u = coupling.add_steps_after(u, more)
