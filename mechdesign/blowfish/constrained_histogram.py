"""Sensitivity of the histogram where counts are publicly known (Blowfish, He et al. 2014, section 8).

Two databases that agree with the known counts may differ in several records at once: what one move along an edge does
to a known count, another has to undo. How many moves can depend on each other in this way is a question about the
*policy graph* G_P of the constraints (see `longest_walks`): if every move lifts at most one known count and lowers at
most one (the constraints are *sparse*), moves that cannot be taken apart form a simple cycle, or a simple path from v⁺
to v⁻, of G_P.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

from mechdesign.blowfish.clusterings import counts
from mechdesign.blowfish.constraint_effects import NEUTRAL, Effect, Effects
from mechdesign.blowfish.longest_walks import Walk, longest_walks
from mechdesign.blowfish.secret_graphs import Edge
from mechdesign.blowfish.zero_sums import longest_zero_sum, minimal_zero_sums

if TYPE_CHECKING:
    from mechdesign.blowfish.policy_like import PolicyLike

__all__ = ["ConstraintSensitivity", "constraint_sensitivity"]


def __dir__() -> list[str]:
    return sorted(__all__)


# How many partial assignments of values to moves a search for a witness may try.
_TRIALS = 20_000
# In graphs of at most this many edges all dependent moves are tried where the bound is not attained.
_EDGES_TO_SEARCH = 400


@dataclass(frozen=True)
class ConstraintSensitivity:
    """The ℓ1 sensitivity of the histogram under count constraints.

    Attributes:
        value: an upper bound on the ℓ1 distance of the histograms of two neighbouring databases.
        exact: whether it is attained: moving one record along each edge of `witness` leads from a database to a
            neighbour at just this distance. (Whether this database has the known counts is not asked.)
        moves: an upper bound on the number of records in which two neighbouring databases differ.
        sparse: whether every move lifts at most one count and lowers at most one.
        witness: the moves (x, y) of records, |T| being the null node: those that attain the value, or else the most
            dependent moves that were found.
    """

    value: int
    exact: bool
    moves: int
    sparse: bool
    witness: tuple[Edge, ...]


def constraint_sensitivity(policy: PolicyLike) -> ConstraintSensitivity:
    """Return how far the histograms of two neighbouring databases can be apart, constraints included.

    For sparse constraints the bound is 2·max(α, ξ), with α the longest simple cycle of the policy graph and ξ its
    longest simple path from v⁺ to v⁻, both in edges. They are found exactly for marginals, for disjoint ranges under a
    distance threshold, and wherever at most `longest_walks.SEARCH_LIMIT` constraints hang together; otherwise the bound
    is 2·(|Q| + 1), which no path can exceed. (2·max(|Q|, 1) is not safe: one range reaches 4.) For constraints that
    are not sparse the longest minimal zero sum of effects is searched for, and beyond the limit of that search bounded
    by (2r + 1)^r, r the rank of the effects.

    Moves may also cancel in the histogram, and a small domain may not have enough values to avoid it. In small graphs
    the largest distance is then searched for; elsewhere the bound stands, marked as not exact.
    """
    graph = policy.secret_graph
    alone = counts(graph, None)
    change = int(alone.power)
    if not change or not policy.constraints:
        single = () if alone.edge is None else (alone.edge,)
        return ConstraintSensitivity(change, True, min(change, 1), True, single)
    effects = Effects.of(graph, policy.constraints)
    if effects.sparse:
        walks, moves = _policy_graph_walks(effects, policy)
        sequences = [_effects_along(walk) for walk in walks]
    else:
        sequence, moves = longest_zero_sum([effect for effect in effects.by_effect if effect != NEUTRAL])
        sequences = [sequence]
    if moves < 2:
        # No edge changes a known count.
        sequences, moves = [[NEUTRAL]], 1
    for sequence in sequences:
        witness = _without_cancelling(effects, sequence)
        if _distance(witness, graph.size) == change * moves:
            return ConstraintSensitivity(change * moves, True, moves, effects.sparse, witness)
    searchable = graph.edge_count <= _EDGES_TO_SEARCH and len(sequences[0]) == moves
    if searchable and (farthest := _farthest(effects, change)) is not None:
        return ConstraintSensitivity(_distance(farthest, graph.size), True, moves, effects.sparse, farthest)
    witness = tuple(effects.by_effect[effect][0] for effect in sequences[0])
    return ConstraintSensitivity(change * moves, False, moves, effects.sparse, witness)


def _policy_graph_walks(effects: Effects, policy: PolicyLike) -> tuple[list[Walk], int]:
    links = nx.Graph()
    links.add_nodes_from(effects.kept)
    ports = set()
    for lifted, lowered in effects.by_effect:
        if lifted and lowered:
            links.add_edge(lifted[0], lowered[0])
        elif lifted:
            ports.add(lifted[0])
    order = sorted(effects.kept, key=lambda index: int(np.argmax(policy.constraints[index].counted)))
    return longest_walks(links, ports, order)


def _effects_along(walk: Walk) -> list[Effect]:
    """Return what the moves along a walk of the policy graph lift and lower: q → q' lifts q and lowers q'."""
    stops: list[tuple[int, ...]] = [(node,) for node in walk.nodes]
    stops = [*stops, stops[0]] if walk.cyclic else [(), *stops, ()]
    return list(itertools.pairwise(stops))


def _without_cancelling(effects: Effects, sequence: Sequence[Effect]) -> tuple[Edge, ...]:
    """Return an edge for each effect such that no value is left by one record and taken up by another, or nothing."""
    choices = [effects.candidates(effect) for effect in sequence]
    trials = 0

    def extend(moves: tuple[Edge, ...], left: frozenset[int], taken: frozenset[int]) -> Iterator[tuple[Edge, ...]]:
        nonlocal trials
        if len(moves) == len(choices):
            yield moves
            return
        for x, y in choices[len(moves)]:
            trials += 1
            if trials > _TRIALS:
                return
            if x not in taken and y not in left:
                yield from extend((*moves, (x, y)), left | {x}, taken | {y})

    return next(extend((), frozenset(), frozenset()), ())


def _farthest(effects: Effects, change: int) -> tuple[Edge, ...] | None:
    """Return the moves that take the histogram farthest of all that depend on each other; None if there are too many.

    Tries all minimal sequences of effects, and all edges for each effect, as long as they can still go farther.
    """
    sequences, finished = minimal_zero_sums([effect for effect in effects.by_effect if effect != NEUTRAL])
    if not finished:
        return None
    if NEUTRAL in effects.by_effect:
        sequences.append([NEUTRAL])
    null = effects.graph.size
    best: tuple[Edge, ...] = ()
    trials = 0

    def extend(moves: tuple[Edge, ...], choices: list[list[Edge]], first: int) -> None:
        nonlocal best, trials
        left = choices[len(moves) :]
        reached = _distance(moves, null)
        if not left:
            if not best or reached > _distance(best, null):
                best = moves
            return
        # Moves with one effect are taken in one order.
        start = first if moves and left[0] is choices[len(moves) - 1] else 0
        for index in range(start, len(left[0])):
            if trials > _TRIALS or (best and reached + change * len(left) <= _distance(best, null)):
                return
            trials += 1
            extend((*moves, left[0][index]), choices, index)

    for sequence in sequences:
        listed = {effect: effects.candidates(effect) for effect in sequence}
        extend((), [listed[effect] for effect in sorted(sequence)], 0)
    return best if trials <= _TRIALS else None


def _distance(moves: tuple[Edge, ...], null: int) -> int:
    change: dict[int, int] = {}
    for x, y in moves:
        change[x] = change.get(x, 0) - 1
        change[y] = change.get(y, 0) + 1
    return sum(abs(by) for value, by in change.items() if value != null)
