"""The few other rows: floors, their parts w_of >= 0, and the slacks of the linking rows, as flat vectors.

Order: for each floor the rows z_oh (block by block), then all w_of, then the slacks of the linking rows (floors, worst
cost). The multipliers of the last are v and ω, the tail of Λ.
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from mechdesign.solvers.ipm.layout import Layout

__all__ = ["SmallRows"]

Array = npt.NDArray[np.float64]


class SmallRows:
    """Shapes, weights and the linear maps of the small rows; state lives with the caller, as vectors of `size`."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        blocks = layout.blocks
        sizes = [blocks * error.shape[0] for error in layout.errors]
        stops = np.cumsum([0, *sizes]).tolist()
        self.floor_slices = [slice(a, b) for a, b in itertools.pairwise(stops)]
        self.parts = slice(stops[-1], stops[-1] + blocks * layout.floors)
        self.linking = slice(self.parts.stop, self.parts.stop + layout.floors + layout.members)
        self.size = self.linking.stop
        self.weights = np.ones(self.size)
        self.weights[self.linking] = layout.link_weight
        counts = [np.repeat(layout.counts, error.shape[0]) for error in layout.errors]
        counts += [np.repeat(layout.counts, layout.floors), np.ones(layout.floors + layout.members)]
        self.counts = np.concatenate(counts)

    def floor(self, vector: Array, index: int) -> Array:
        """View the rows of one floor as (B, k)."""
        return vector[self.floor_slices[index]].reshape(self.layout.blocks, -1)

    def part(self, vector: Array) -> Array:
        """View the rows w_of >= 0 as (B, F)."""
        return vector[self.parts].reshape(self.layout.blocks, self.layout.floors)

    def slacks(self, points: Array, link_slacks: Array) -> Array:
        """Return z for the points ξ (B, N) and the slacks of the linking rows."""
        z = np.empty(self.size)
        n = self.layout.rows
        for index, error in enumerate(self.layout.errors):
            self.floor(z, index)[:] = points[:, :n] @ error.T - points[:, n + index, None]
        self.part(z)[:] = points[:, n:]
        z[self.linking] = link_slacks
        return z

    def relative(self, points: Array, u: Array, z: Array, link_steps: Array) -> Array:
        """Return q = dz/z for the relative steps u (B, N) and the steps of the linking slacks.

        For a floor row z q = error·(x∘(u − u_w)) + z u_w: nothing cancels along the ray u = 1.
        """
        q = np.empty(self.size)
        n = self.layout.rows
        for index, error in enumerate(self.layout.errors):
            shift = u[:, n + index, None]
            moved = (points[:, :n] * (u[:, :n] - shift)) @ error.T
            self.floor(q, index)[:] = moved / self.floor(z, index) + shift
        self.part(q)[:] = u[:, n:]
        q[self.linking] = link_steps / z[self.linking]
        return q

    def pull(self, values: Array, out: Array) -> None:
        """Add the transpose of the block rows, applied to `values`, to `out` (B, N)."""
        n = self.layout.rows
        for index, error in enumerate(self.layout.errors):
            mine = self.floor(values, index)
            out[:, :n] += mine @ error
            out[:, n + index] -= mine.sum(axis=1)
        out[:, n:] += self.part(values)
