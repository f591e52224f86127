"""The coupling of blocks by linking rows: one system for all blocks, or one system for each block in pricing.

A step solves C systems of L linking rows. In the main iteration, the row sums, the floors and the worst cost form one
system (`RowSums`). The Schur complement of this system needs the inverses of all blocks. In pricing, each column has
its own system, whose only row is its unit mass (`UnitMass`). In pricing, computing the Schur complement takes one solve
with the block.

Theory: block_method, Newton system in relative steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.linalg

from mechdesign.base._arrays import Flags, Floats
from mechdesign.solve._blocks.iterate import Iterate, link_residual
from mechdesign.solve._blocks.kernels.contract import REGULARISATIONS
from mechdesign.solve._blocks.layout import AuxiliaryRows, BlockLayout
from mechdesign.solve._blocks.tuning import TUNING

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
