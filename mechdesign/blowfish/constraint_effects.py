"""What the moves of single records do to publicly known counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mechdesign.blowfish.constraints import Constraint
from mechdesign.blowfish.secret_graphs import Edge, SecretGraph
from mechdesign.validation import Integers

__all__ = ["NEUTRAL", "Effect", "Effects", "atoms"]

Effect = tuple[tuple[int, ...], tuple[int, ...]]
"""The constraints that a move lifts (their counts grow by one), and those that it lowers."""

NEUTRAL: Effect = ((), ())
"""The effect of a move that changes no known count."""

# Up to this many edges all are candidates for a witness; beyond, those between a few values of each kind.
_EDGES_TO_LIST = 20_000
_SOME = 4


def atoms(constraints: Sequence[Constraint], size: int) -> tuple[Integers, NDArray[np.bool_]]:
    """Return the atom of each value, shape (|T|,), and which constraints count each atom, shape (atoms, constraints).

    Two values are in the same atom if the same constraints count them.
    """
    labels = np.zeros(size, dtype=np.int64)
    for constraint in constraints:
        labels = np.unique(2 * labels + constraint.counted, return_inverse=True)[1].astype(np.int64)
    first = np.unique(labels, return_index=True)[1]
    counted = np.zeros((len(first), len(constraints)), dtype=bool)
    for index, constraint in enumerate(constraints):
        counted[:, index] = constraint.counted[first]
    return labels, counted


@dataclass(frozen=True, eq=False)
class Effects:
    """The effects of all moves along the edges of a secret graph on the constraints that any of them affects.

    Attributes:
        graph: the secret graph.
        labels: the kind of each node, the null node included, shape (|T| + 1,): values of one kind are in the same
            atom, and in the same part where parts are given.
        counted: which constraints count each kind, shape (kinds, constraints); none counts the null node.
        kept: the constraints that matter: no edge affects the others, or every edge affects them like, or exactly
            opposite to, an earlier one.
        joined: one edge for each two kinds that an edge joins, shape (k, 2).
    """

    graph: SecretGraph
    labels: Integers
    counted: NDArray[np.bool_]
    kept: tuple[int, ...]
    joined: Integers

    @classmethod
    def of(cls, graph: SecretGraph, constraints: Sequence[Constraint], parts: Integers | None = None) -> Effects:
        """Return the effects of moves along the edges of `graph` on `constraints`, in each of the parts."""
        labels, counted = atoms(constraints, graph.size)
        if parts is not None:
            finer, labels = np.unique(parts[: graph.size] * len(counted) + labels, return_inverse=True)
            counted = counted[finer % len(counted)]
        joined = graph.joined(labels)
        labels = np.append(labels, len(counted))
        counted = np.vstack((counted, np.zeros((1, len(constraints)), dtype=bool)))
        kept: dict[bytes, int] = {}
        for index in range(len(constraints)):
            effect = _effects(counted[:, [index]], labels, joined)[:, 0]
            if effect.any():
                # The opposite constraint has the opposite effects: compare those whose first effect is to lift.
                kept.setdefault((effect * effect[np.flatnonzero(effect)[0]]).tobytes(), index)
        return cls(graph, labels, counted, tuple(kept.values()), joined)

    def affects(self, constraint: int) -> NDArray[np.bool_]:
        """Say for each of the `joined` edges whether it changes the count of a constraint."""
        return np.asarray(_effects(self.counted[:, [constraint]], self.labels, self.joined)[:, 0] != 0)

    @cached_property
    def by_effect(self) -> dict[Effect, list[Edge]]:
        """Return for each effect a directed edge (x, y) with this effect for each two atoms."""
        found: dict[Effect, list[Edge]] = {}
        for edge, effect in self._effects_of(self.joined):
            found.setdefault(effect, []).append(edge)
        return found

    @cached_property
    def sparse(self) -> bool:
        """Say whether every move lifts at most one constraint and lowers at most one."""
        return all(len(lifted) <= 1 and len(lowered) <= 1 for lifted, lowered in self.by_effect)

    def candidates(self, effect: Effect) -> list[Edge]:
        """Return directed edges (x, y) with an effect: all of them in a small graph, else some of them."""
        if self.graph.edge_count <= _EDGES_TO_LIST:
            return self._listed.get(effect, [])
        found = []
        for x, y in self.by_effect.get(effect, []):
            some = np.meshgrid(self._members(int(self.labels[x])), self._members(int(self.labels[y])))
            first, second = some[0].ravel(), some[1].ravel()
            met = self.graph.has_edge(first, second)
            found += [(x, y), *zip(first[met].tolist(), second[met].tolist(), strict=True)]
        return found

    @cached_property
    def _listed(self) -> dict[Effect, list[Edge]]:
        found: dict[Effect, list[Edge]] = {}
        for edge, effect in self._effects_of(self.graph.edges()):
            found.setdefault(effect, []).append(edge)
        return found

    def _members(self, kind: int) -> Integers:
        """Return some values of a kind: the first, the last, and those next to a value of another."""
        members = np.flatnonzero(self.labels == kind)
        beside = np.diff(self.labels, prepend=-1) != 0
        beside[:-1] |= beside[1:]
        borders = members[beside[members]]
        return np.unique(np.concatenate([few for part in (members, borders) for few in (part[:_SOME], part[-_SOME:])]))

    def _effects_of(self, edges: Integers) -> Iterator[tuple[Edge, Effect]]:
        kept = np.array(self.kept, dtype=np.int64)
        for start in range(0, len(edges), 4096):
            block = edges[start : start + 4096]
            changes = _effects(self.counted[:, kept], self.labels, block)
            for (x, y), change in zip(block.tolist(), changes, strict=True):
                lifted = tuple(kept[change > 0].tolist())
                lowered = tuple(kept[change < 0].tolist())
                yield (x, y), (lifted, lowered)
                yield (y, x), (lowered, lifted)


def _effects(counted: NDArray[np.bool_], labels: Integers, edges: Integers) -> NDArray[np.int8]:
    signed = counted.astype(np.int8)
    return np.asarray(signed[labels[edges[:, 1]]] - signed[labels[edges[:, 0]]])
