"""The auxiliary rows as flat vectors: rows of the floors, rows w_of >= 0, and slacks of the linking rows.

The vectors contain the rows z_oh of each floor, block by block, then all rows w_of >= 0. The slacks of the linking rows
follow: floors, then worst cost. The multipliers of these slacks are v and ω, the last entries of Λ.

Theory: block_method, Program.
"""

from __future__ import annotations

import itertools

import numpy as np

from mechdesign.base._arrays import Flags, Floats


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
