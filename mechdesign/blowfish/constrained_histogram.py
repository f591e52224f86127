"""Sensitivity of the histogram where counts are publicly known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mechdesign.blowfish.secret_graphs import Edge

if TYPE_CHECKING:
    from mechdesign.blowfish.policy import Policy

__all__ = ["ConstraintSensitivity", "constraint_sensitivity"]


@dataclass(frozen=True)
class ConstraintSensitivity:
    """The ℓ1 sensitivity of the histogram under count constraints.

    Attributes:
        value: an upper bound on how far the histograms of two neighbouring databases are apart.
        exact: whether two neighbouring databases attain it.
        moves: an upper bound on how many records of two neighbouring databases differ.
        witness: the moves (x, y) of records that attain the bound, in order, or the longest ones found.
    """

    value: int
    exact: bool
    moves: int
    witness: tuple[Edge, ...]


def constraint_sensitivity(policy: Policy) -> ConstraintSensitivity:
    """Return the ℓ1 sensitivity of the histogram, constraints included."""
    edge = policy.secret_graph.crossing()
    if edge is None:
        edge = next((tuple(block[0].tolist()) for block in policy.secret_graph.edge_blocks()), None)
    change = 0 if edge is None else 2 - (edge[1] == policy.domain.size)
    rank = len(policy.constraints)
    # A safe bound for any constraints (Steinitz): the partial sums of the changes can be kept in a cube of side 2r + 1.
    moves = (2 * rank + 1) ** rank
    return ConstraintSensitivity(change * moves, rank == 0, moves, () if edge is None else (edge,))
