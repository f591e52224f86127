"""How linking rows couple the blocks: all of them by the row sums of the program, or none while columns are priced.

A step solves G systems of L linking rows. In the main iteration the row sums, the floors and the worst cost are one
system (`RowSums`), whose Schur complement comes from the inverses of all blocks. A column that is priced has its own
system, with its unit mass as the only row (`UnitMass`): one solution with the block gives its Schur complement.
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
    """The iteration cannot go on; where it stands is still valid."""


class Coupling(Protocol):
    """The linking rows of G systems, L each; every block belongs to one system. Arrays of blocks have B rows."""

    def active(self) -> slice | Flags:
        """Return the systems under way."""

    def total(self, values: Floats) -> Floats:
        """Add values (B,) of blocks up by system (G,)."""

    def minimum(self, by_block: Floats, by_row: Floats) -> Floats:
        """Return the least value (G,) over blocks (B,) or (G,), over auxiliary rows, and 0."""

    def spread(self, values: npt.NDArray[Value]) -> npt.NDArray[Value]:
        """Spread values (G,) to the auxiliary rows."""

    def sums(self, steps: Floats) -> Floats:
        """Return Σ E ξ (G, L) of steps (B, N)."""

    def adjoint(self, multipliers: Floats) -> Floats:
        """Return Eᵀ Λ (B, N) of multipliers (G, L)."""

    def residual(self, iterate: Iterate, f: Floats) -> Floats:
        """Return the residual (G, L) of the linking rows for targets T/z = `f` of the auxiliary rows."""

    def solve(self, right: Floats, *, first: bool) -> tuple[Floats, float]:
        """Solve with the Schur complement: dΛ (G, L) and dθ."""

    def respond(self, u: Floats, right: Floats, change: Floats) -> Floats:
        """Return the steps (B, N) for `right` once the multipliers move by `change`; `u` are those before."""

    def refine(self, u: Floats, change: Floats) -> Floats:
        """Return the steps once the multipliers move by `change` more."""

    def direction_residual(self, iterate: Iterate, residual: Floats, u: Floats, change: Floats, theta: float) -> Floats:
        """Return by how much a direction misses the linking rows (G, L)."""

    def slack_steps(self, iterate: Iterate, f: Floats, change: Floats, rest: Floats) -> tuple[Floats, Floats]:
        """Return dy and dz of the linking slacks."""


class SchurComplement:
    """The Schur complement with its slacks, S = Σ_o E_o Ξ Q Ξ E_oᵀ + diag(0, t/v, t/ω), scaled and factored.

    For the worst cost it is bordered by θ: S dΛ + e dθ = right, eᵀdΛ = corner, e the indicator of ω.
    Raises StallError where it cannot be factored.
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
        rest = right - self._matrix @ first
        return np.asarray(first + scale * scipy.linalg.cho_solve(self._factor, scale * rest, check_finite=False))

    def solve(self, right: Floats, corner: float) -> tuple[Floats, float]:
        """Return dΛ (L,) and dθ."""
        # Rounding breaks the symmetry of the solution, and a poorly conditioned matrix enlarges it.
        free = self._average(self._refine_once(right))
        if not self._members:
            return free, 0.0
        total = float(self._border @ self._bordered)
        if not total > 0:
            raise StallError("the worst cost no longer moves")
        theta = (float(self._border @ free) - corner) / total
        return free - theta * self._bordered, theta


class RowSums:
    """The row sums, floors and members of the worst cost of a program: one system."""

    def __init__(self, layout: BlockLayout, iterate: Iterate, schur: Floats, solve: Callable[[Floats], Floats]) -> None:
        self.layout, self._solve_blocks = layout, solve
        self._schur = SchurComplement(layout, iterate, schur)
        self._corner = 0.0

    def active(self) -> slice:
        """Return the one system."""
        return slice(None)

    def total(self, values: Floats) -> Floats:
        """Add values of blocks up, each as often as its column occurs."""
        return np.array([float(self.layout.counts @ values)])

    def minimum(self, by_block: Floats, by_row: Floats) -> Floats:
        """Return the least of all values, at most 0."""
        return np.array([min(float(by_block.min()), float(by_row.min(initial=0.0)))])

    def spread(self, values: npt.NDArray[Value]) -> npt.NDArray[Value]:
        """Return the one value, which broadcasts."""
        return values

    def sums(self, steps: Floats) -> Floats:
        """Return Σ E ξ (1, L), averaged over the symmetry group."""
        return self.layout.sums(steps)[None]

    def adjoint(self, multipliers: Floats) -> Floats:
        """Return Eᵀ Λ (B, N)."""
        return self.layout.adjoint(multipliers[0])

    def residual(self, iterate: Iterate, f: Floats) -> Floats:
        """Return the residual (1, L), with what the slacks of the linking rows are to gain."""
        residual = link_residual(self.layout, iterate)
        residual[self.layout.rows :] += self._gain(iterate, f)
        y = iterate.y[self.layout.auxiliary.linking]
        self._corner = 1.0 - float(y[self.layout.floors :].sum())
        return residual[None]

    def solve(self, right: Floats, *, first: bool) -> tuple[Floats, float]:
        """Return dΛ (1, L) and dθ; θ moves to where the weights of the worst cost sum to 1, the `first` time."""
        change, theta = self._schur.solve(right[0], self._corner if first else 0.0)
        return change[None], theta

    def respond(self, u: Floats, right: Floats, change: Floats) -> Floats:
        """Solve with the blocks again."""
        return self._solve_blocks(right + self.layout.adjoint(change[0]))

    def refine(self, u: Floats, change: Floats) -> Floats:
        """Return the steps once the multipliers move by `change` more."""
        return u + self._solve_blocks(self.layout.adjoint(change[0]))

    def direction_residual(self, iterate: Iterate, residual: Floats, u: Floats, change: Floats, theta: float) -> Floats:
        """Return by how much a direction misses the linking rows (1, L)."""
        link, n = self.layout.auxiliary.linking, self.layout.rows
        rest = residual - self.sums(iterate.points * u)
        rest[0, n:] -= iterate.z[link] / iterate.y[link] * change[0, n:]
        rest[0, self.layout.width :] -= theta
        return rest

    def slack_steps(self, iterate: Iterate, f: Floats, change: Floats, rest: Floats) -> tuple[Floats, Floats]:
        """Return dy and dz of the linking slacks.

        A large slack takes up what its row still lacks: z/y would enlarge the rounding of its small multiplier.
        """
        link, n = self.layout.auxiliary.linking, self.layout.rows
        z, y = iterate.z[link], iterate.y[link]
        taken = np.where(np.abs(rest[0, n:]) <= TUNING.newton.max_absorbed_share * z, rest[0, n:], 0.0)
        return change[0, n:] + y / z * taken, self._gain(iterate, f) - z / y * change[0, n:] - taken

    def _gain(self, iterate: Iterate, f: Floats) -> Floats:
        """Return T/y − z with T = f z: dt = T/y − z − z dy/y."""
        link = self.layout.auxiliary.linking
        gain: Floats = iterate.z[link] * (f[link] / iterate.y[link] - 1.0)
        return gain


class UnitMass:
    """The row 1·x = 1 of each column that is priced: B systems of one row, with a multiplier ρ each."""

    def __init__(self, auxiliary: AuxiliaryRows, rows: int, points: Floats, solve: Callable[[Floats], Floats]) -> None:
        self.auxiliary, self.rows = auxiliary, rows
        self.unfinished = np.ones(len(points), dtype=np.bool_)
        self.link = np.zeros(points.shape)
        self.link[:, :rows] = 1.0
        self._along = solve(self.link)
        self._schur = (points[:, :rows] * self._along[:, :rows]).sum(axis=1)

    def active(self) -> Flags:
        """Return the columns under way."""
        return self.unfinished

    def total(self, values: Floats) -> Floats:
        """Return the values: each block is a system."""
        return values

    def minimum(self, by_block: Floats, by_row: Floats) -> Floats:
        """Return the least value of each block and its auxiliary rows, at most 0."""
        least = [each.min(axis=1, initial=0.0) for each in self._by_block(by_row)]
        return np.asarray(np.minimum.reduce([by_block, *least]))

    def spread(self, values: npt.NDArray[Value]) -> npt.NDArray[Value]:
        """Spread values (B,) to the auxiliary rows."""
        spread = np.empty(self.auxiliary.size, dtype=values.dtype)
        for each in self._by_block(spread):
            each[:] = values[:, None]
        return spread

    def sums(self, steps: Floats) -> Floats:
        """Return 1·x (B, 1)."""
        total: Floats = steps[:, : self.rows].sum(axis=1)[:, None]
        return total

    def adjoint(self, multipliers: Floats) -> Floats:
        """Return ρ (B, N), 0 for the parts of the floors."""
        spread: Floats = multipliers * self.link
        return spread

    def residual(self, iterate: Iterate, f: Floats) -> Floats:
        """Return 1 − 1·x (B, 1)."""
        residual: Floats = 1.0 - self.sums(iterate.points)
        return residual

    def solve(self, right: Floats, *, first: bool) -> tuple[Floats, float]:
        """Return dρ (B, 1)."""
        return right / self._schur[:, None], 0.0

    def respond(self, u: Floats, right: Floats, change: Floats) -> Floats:
        """Move along the solution for the linking row: the blocks need not be solved with again."""
        moved: Floats = u + change * self._along
        return moved

    def refine(self, u: Floats, change: Floats) -> Floats:
        """Return the steps once ρ moves by `change` more."""
        return self.respond(u, u, change)

    def direction_residual(self, iterate: Iterate, residual: Floats, u: Floats, change: Floats, theta: float) -> Floats:
        """Return by how much a direction misses 1·x = 1 (B, 1)."""
        missed: Floats = residual - self.sums(iterate.points * u)
        return missed

    def slack_steps(self, iterate: Iterate, f: Floats, change: Floats, rest: Floats) -> tuple[Floats, Floats]:
        """Return nothing: the row has no slack."""
        return np.zeros(0), np.zeros(0)

    def _by_block(self, values: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
        for index in range(len(self.auxiliary.errors)):
            yield self.auxiliary.floor(values, index)
        if self.auxiliary.errors:
            yield self.auxiliary.contributions(values)
