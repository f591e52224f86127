"""The coupling of blocks by linking rows: one system for all blocks, or one system for each block in pricing.

A step solves G systems of L linking rows. In the main iteration, the row sums, the floors and the worst cost form one
system (`RowSums`). The Schur complement of this system needs the inverses of all blocks. In pricing, each column has
its own system, whose only row is its unit mass (`UnitMass`). In pricing, computing the Schur complement takes one solve
with the block.

Theory: interior_point, Newton system in relative steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.linalg

from mechdesign.base._arrays import Flags, Floats
from mechdesign.solve._blocks.auxiliary import AuxiliaryRows
from mechdesign.solve._blocks.iterate import Iterate, link_residual
from mechdesign.solve._blocks.kernels.contract import REGULARISATIONS
from mechdesign.solve._blocks.layout import BlockLayout
from mechdesign.solve._blocks.tuning import TUNING

Value = TypeVar("Value", bound=np.generic)


class StallError(Exception):
    """The iteration cannot continue; the last iterate remains valid."""


class Coupling(Protocol):
    """The linking rows of G systems with L rows each; each of the B blocks belongs to one system."""

    def active(self) -> slice | Flags:
        """Return an index of the systems that have not converged."""

    def total(self, values: Floats) -> Floats:
        """Return the sum (G,) over each system of the values (B,) of its blocks."""

    def minimum(self, by_block: Floats, by_row: Floats) -> Floats:
        """Return the smallest value (G,) of each system over its blocks, its auxiliary rows, and 0."""

    def spread(self, values: npt.NDArray[Value]) -> npt.NDArray[Value]:
        """Assign the values (G,) of systems to their auxiliary rows."""

    def sums(self, steps: Floats) -> Floats:
        """Return Σ E ξ (G, L) for steps ξ (B, N)."""

    def adjoint(self, multipliers: Floats) -> Floats:
        """Return Eᵀ Λ (B, N) for multipliers Λ (G, L)."""

    def residual(self, iterate: Iterate, f: Floats) -> Floats:
        """Return the residual (G, L) of the linking rows, if the auxiliary rows have the targets T/z = `f`."""

    def solve(self, right: Floats, *, first: bool) -> tuple[Floats, float]:
        """Solve the Schur complement system; return dΛ (G, L) and dθ."""

    def respond(self, u: Floats, right: Floats, change: Floats) -> Floats:
        """Return the steps (B, N) if the multipliers change by `change`, given the steps `u` without this change."""

    def refine(self, u: Floats, change: Floats) -> Floats:
        """Return the steps after a further change of the multipliers."""

    def direction_residual(self, iterate: Iterate, residual: Floats, u: Floats, change: Floats, theta: float) -> Floats:
        """Return the residual (G, L) of the linking rows after a full step."""

    def slack_steps(self, iterate: Iterate, f: Floats, change: Floats, remainder: Floats) -> tuple[Floats, Floats]:
        """Return dy and dz of the linking slacks."""


class SchurComplement:
    """The Schur complement S = Σ_o E_o Ξ Q Ξ E_oᵀ + diag(0, t/v, t/ω), scaled and factored.

    With a worst cost, S has a border for θ: S dΛ + e dθ = right and eᵀdΛ = corner. The vector e is 1 at the entries of
    ω. The constructor raises StallError if S cannot be factored.
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
            self._bordered = self._average(self._refine_once(self._border))

    def _refine_once(self, right: Floats) -> Floats:
        """Solve without the border, with one step of iterative refinement."""
        scale = self._scale
        first = scale * scipy.linalg.cho_solve(self._factor, scale * right, check_finite=False)
        remainder = right - self._matrix @ first
        return np.asarray(first + scale * scipy.linalg.cho_solve(self._factor, scale * remainder, check_finite=False))

    def solve(self, right: Floats, corner: float) -> tuple[Floats, float]:
        """Return dΛ (L,) and dθ."""
        # Average over the symmetry group, because an ill-conditioned matrix amplifies asymmetric rounding errors.
        free = self._average(self._refine_once(right))
        if not self._members:
            return free, 0.0
        total = float(self._border @ self._bordered)
        if not total > 0:
            raise StallError("the Schur complement of the worst cost is not positive")
        theta = (float(self._border @ free) - corner) / total
        return free - theta * self._bordered, theta


class RowSums:
    """The row sums, the floors and the worst-cost rows of a program as one linear system."""

    def __init__(self, layout: BlockLayout, iterate: Iterate, schur: Floats, solve: Callable[[Floats], Floats]) -> None:
        self.layout, self._solve_blocks = layout, solve
        self._schur = SchurComplement(layout, iterate, schur)
        self._corner = 0.0

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

    def sums(self, steps: Floats) -> Floats:
        """Return Σ E ξ (1, L), averaged over the symmetry group."""
        return self.layout.sums(steps)[None]

    def adjoint(self, multipliers: Floats) -> Floats:
        """Return Eᵀ Λ (B, N)."""
        return self.layout.adjoint(multipliers[0])

    def residual(self, iterate: Iterate, f: Floats) -> Floats:
        """Return the residual (1, L), including the intended changes of the linking slacks."""
        residual = link_residual(self.layout, iterate)
        residual[self.layout.rows :] += self._gain(iterate, f)
        y = iterate.y[self.layout.auxiliary.linking]
        self._corner = 1.0 - float(y[self.layout.floors :].sum())
        return residual[None]

    def solve(self, right: Floats, *, first: bool) -> tuple[Floats, float]:
        """Return dΛ (1, L) and dθ. If `first` is true, the step makes the weights of the worst cost sum to 1."""
        change, theta = self._schur.solve(right[0], self._corner if first else 0.0)
        return change[None], theta

    def respond(self, u: Floats, right: Floats, change: Floats) -> Floats:
        """Solve the block systems again with the changed multipliers."""
        return self._solve_blocks(right + self.layout.adjoint(change[0]))

    def refine(self, u: Floats, change: Floats) -> Floats:
        """Return the steps after a further change of the multipliers."""
        return u + self._solve_blocks(self.layout.adjoint(change[0]))

    def direction_residual(self, iterate: Iterate, residual: Floats, u: Floats, change: Floats, theta: float) -> Floats:
        """Return the residual (1, L) of the linking rows after a full step."""
        link, n = self.layout.auxiliary.linking, self.layout.rows
        remainder = residual - self.sums(iterate.points * u)
        remainder[0, n:] -= iterate.z[link] / iterate.y[link] * change[0, n:]
        remainder[0, self.layout.width :] -= theta
        return remainder

    def slack_steps(self, iterate: Iterate, f: Floats, change: Floats, remainder: Floats) -> tuple[Floats, Floats]:
        """Return dy and dz of the linking slacks.

        The step of a large slack absorbs the residual of its row. Otherwise the factor z/y would amplify rounding
        errors of the slack's small multiplier.
        """
        link, n = self.layout.auxiliary.linking, self.layout.rows
        z, y = iterate.z[link], iterate.y[link]
        taken = np.where(np.abs(remainder[0, n:]) <= TUNING.newton.max_absorbed_share * z, remainder[0, n:], 0.0)
        return change[0, n:] + y / z * taken, self._gain(iterate, f) - z / y * change[0, n:] - taken

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

    def sums(self, steps: Floats) -> Floats:
        """Return the masses 1·x (B, 1) of the columns."""
        total: Floats = steps[:, : self.rows].sum(axis=1)[:, None]
        return total

    def adjoint(self, multipliers: Floats) -> Floats:
        """Return ρ for the entries of x and 0 for the contributions to the floors (B, N)."""
        spread: Floats = multipliers * self.link
        return spread

    def residual(self, iterate: Iterate, f: Floats) -> Floats:
        """Return the residuals 1 − 1·x (B, 1)."""
        residual: Floats = 1.0 - self.sums(iterate.points)
        return residual

    def solve(self, right: Floats, *, first: bool) -> tuple[Floats, float]:
        """Return dρ (B, 1)."""
        return right / self._schur[:, None], 0.0

    def respond(self, u: Floats, right: Floats, change: Floats) -> Floats:
        """Add a multiple of the stored solution for the linking row, without another solve with the blocks."""
        moved: Floats = u + change * self._along
        return moved

    def refine(self, u: Floats, change: Floats) -> Floats:
        """Return the steps after a further change of ρ."""
        return self.respond(u, u, change)

    def direction_residual(self, iterate: Iterate, residual: Floats, u: Floats, change: Floats, theta: float) -> Floats:
        """Return the residual (B, 1) of 1·x = 1 after a full step."""
        missed: Floats = residual - self.sums(iterate.points * u)
        return missed

    def slack_steps(self, iterate: Iterate, f: Floats, change: Floats, remainder: Floats) -> tuple[Floats, Floats]:
        """Return empty arrays, because the row 1·x = 1 has no slack."""
        return np.zeros(0), np.zeros(0)

    def _by_block(self, values: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
        for index in range(len(self.auxiliary.errors)):
            yield self.auxiliary.floor(values, index)
        if self.auxiliary.errors:
            yield self.auxiliary.contributions(values)
