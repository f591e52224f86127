"""Sensitivity under publicly known counts of a table (Blowfish, He et al. 2014, Definition 4.1 and section 8).

Two tables with the same known counts may differ in several records: if one move changes a known count, other moves must
restore it. By Definition 4.1, at least one of these moves is along an edge of the secret graph. The other moves may be
between any two values. This freedom is necessary, because sometimes only a record with an unprotected value can restore
the count. If the move of this record were excluded, an exact release of the secret would be allowed.

**The neighbours used here** are the pairs of tables with the same known counts such that

1. at least one record that differs moves along an edge of the secret graph G, and
2. no nonempty proper subset of the moves preserves all the counts.

**These pairs include all neighbours of Definition 4.1.** The proof is as follows. Let D and D' be neighbours by
Definition 4.1, and let M be the records in which they differ. Let T be the records of M that move along an edge. The
set T is not empty, so condition 1 holds. Suppose that the moves of a nonempty proper subset S of M preserve the counts.
Then the moves of the records in M ∖ S also preserve the counts. Case 1: S and M ∖ S both contain records of T. Then the
table that differs from D only by the moves of S has fewer discriminative pairs, which contradicts condition 3(a) of the
definition. Case 2: one of the two sets contains all of T. Then the moves of this set have the same discriminative pairs
and fewer changes, which contradicts condition 3(b).

**Another reading of Definition 4.1** requires that all changed records move along edges, and that the set of moves is
minimal. Its neighbours satisfy conditions 1 and 2, so the pairs above include them. Neither reading implies the other,
and a bound for the pairs above is valid for both.

**The distance of these pairs.** Two values have the same *kind* if the same known counts include them. The null node
has the kind of values that no count includes. A move within a kind preserves all the counts. By condition 2, a move
within a kind is the only move, and by condition 1 it is along an edge. In all other pairs, every move is between two
kinds. The effects of the moves on the counts are vectors with entries −1, 0 and 1. These vectors are a *minimal zero
sum*: they add up to zero, and no nonempty proper subset of them adds up to zero. For disjoint or nested counts, the
count vectors of the kinds are affinely independent. The minimal zero sums are then simple cycles of kinds, in which at
most one record leaves each kind and at most one enters it. For other counts, the minimal zero sums are enumerated. If
the search reaches its limit, an upper bound on the number of moves is used. This bound is 10 for three counts and (2q +
1)^q for q > 3 counts (see `bound_length`). In that case, each move is assumed to be between the two most distant
values.

A query adds up the contributions of the records. The change of a query therefore depends only on the multisets of old
and new values of the moved records. Old values and new values of the same kind are paired. Each pair contributes at
most the largest distance between values of its kind. Each unpaired move contributes at most the largest distance
between any two values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arrays import Flags, Integers, read_only
from mechdesign.base._check import require_kind
from mechdesign.base._values import cached_property
from mechdesign.tables._known_counts import bound_length, find_rank, kinds_of, minimal_zero_sums
from mechdesign.tables._line_graphs import CompleteGraph
from mechdesign.tables._secret_graphs import BasePolicy, ExplicitGraph, SecretGraph, UnboundedGraph
from mechdesign.tables._sensitivity._linear import ALL, FEW_ROWS, Additive, Extremes, LargestChange, histogram, root_up

# Up to this number of edges, the edges are listed and classified as edges within a kind or between kinds.
_EDGES_TO_LIST = 1 << 18
# The largest number of combinations of moves between kinds that are enumerated.
_MOST_WAYS = 20_000
_MOST_KINDS = 64
_ENTRIES_AT_ONCE = 5_000_000

Objects = NDArray[Any]


@dataclass(frozen=True)
class ConstraintSensitivity:
    """The ℓ1 sensitivity of the histogram under count constraints.

    Attributes:
        value: an upper bound on the ℓ1 distance of the histograms of two neighbouring databases.
        exact: whether some neighbouring databases attain the bound for some values of the known counts.
        moves: an upper bound on the number of records in which two neighbouring databases differ.

    >>> ConstraintSensitivity(value=4, exact=True, moves=2).moves
    2
    """

    value: int
    exact: bool
    moves: int


def constraint_sensitivity(policy: BasePolicy) -> ConstraintSensitivity:
    """Return the ℓ1 sensitivity of the histogram of all values under the policy's constraints.

    Neighbours are defined in `mechdesign.tables._sensitivity._constrained`. The published bound 2·max(|Q|, 1) is too
    small: with one known range the sensitivity can be 4, and with two chained ranges 6.

    Args:
        policy: the policy.

    Returns:
        The sensitivity, and an upper bound on the number of records that change together.

    Raises:
        InputError: `policy` is not a policy.

    >>> from mechdesign.tables import Domain, Policy
    >>> domain = Domain({"region": ["north", "south"], "dx": ["hiv", "flu"]})
    >>> blocks = ["north", "north", "south, hiv", "south, flu"]
    >>> constraint_sensitivity(Policy.partition(domain, blocks, constraints=[([1, 0, 1, 0], 1)]))
    ConstraintSensitivity(value=4, exact=True, moves=2)
    """
    require_kind(policy, BasePolicy, "policy", "a mechdesign.tables.Policy")
    ties = _Dependence(policy.secret_graph, policy.constraints)
    found = _largest(ties, histogram(policy.domain.size, None), 1)
    return ConstraintSensitivity(int(found.power), found.exact, ties.moves)


def under_known_counts(policy: BasePolicy, query: Additive, norm: int) -> LargestChange:
    """Return an upper bound on the change of a query between neighbours under known counts, to the power `norm`.

    The bound is attained by tables with enough records if `exact` is true. In the ℓ1 norm the bound is attained for few
    queries, and for the histogram of a policy without the null node.
    """
    return _largest(_Dependence(policy.secret_graph, policy.constraints), query, norm)


def _largest(ties: _Dependence, query: Additive, norm: int) -> LargestChange:
    if not len(ties.between):
        return query.change(ties.graph, norm)
    inside = [ties.widest(query, norm, kind) for kind in range(len(ties.counted))]
    if ties.edges is not None:
        alone = query.change(ties.within, norm)
    else:
        alone = replace(max(inside, key=lambda found: found.power), edge=None, exact=False)
    together = _bound_joint_change(ties, query, norm, inside)
    return alone if together.power <= alone.power else replace(together, floats=alone.floats)


@dataclass(frozen=True, eq=False)
class _Ways:
    """The combinations of moves between kinds that preserve the counts and include a move along an edge.

    Attributes:
        left: the number of records that leave each kind, shape (k, kinds).
        taken: the number of records that enter each kind, shape (k, kinds).
        way: the row of a combination in `left`, once for each of its moves that may be the move along an edge, shape
            (n,).
        first: the kind that the move along an edge leaves, shape (n,).
        last: the kind that the move along an edge enters, shape (n,).
    """

    left: Integers
    taken: Integers
    way: Integers
    first: Integers
    last: Integers


class _Dependence:
    """The dependence of records under known counts: kinds of values, edges within and between kinds, and zero sums.

    Args:
        graph: The secret graph.
        constraints: The known counts.

    Attributes:
        labels: The kind of each node, including the null node if there is one, shape (nodes,).
        counted: Whether each count includes each kind, shape (kinds, q).
        edges: The edges, or None if there are too many to list.
    """

    def __init__(self, graph: SecretGraph, constraints: Iterable[Any]) -> None:
        self.graph = graph
        self.labels, self.counted = kinds_of(tuple(constraints), graph.size, null=graph.has_null)
        self.edges = graph.edges() if graph.edge_count <= _EDGES_TO_LIST else None

    @cached_property
    def members(self) -> list[tuple[Integers, bool]]:
        """Return the values of each kind, and whether the kind contains the null node."""
        size = self.graph.size
        found = (np.flatnonzero(self.labels[:size] == kind) for kind in range(len(self.counted)))
        null = self.labels[size] if self.graph.has_null else -1
        return [(values, kind == null) for kind, values in enumerate(found)]

    def widest(self, query: Additive, norm: int, kind: int | None = None) -> LargestChange:
        """Return the largest change between two nodes of a kind, or between any two nodes if no kind is given."""
        values, null = (np.arange(self.graph.size), self.graph.has_null) if kind is None else self.members[kind]
        if len(values) + null < 2:
            return LargestChange(Fraction(0), None)
        complete = CompleteGraph(len(values))
        graph = UnboundedGraph(complete) if null else complete
        return query.change(graph, norm, ALL if kind is None else values)

    @property
    def within(self) -> SecretGraph:
        """Return the graph of the listed edges within kinds."""
        return self._list_edges(lambda cross: ~cross)

    @cached_property
    def across(self) -> SecretGraph:
        """Return the graph of the listed edges between kinds."""
        return self._list_edges(lambda cross: cross)

    @cached_property
    def between(self) -> Integers:
        """Return the ordered pairs of different kinds whose values an edge joins, shape (k, 2)."""
        edges = self.graph.joined(self.labels[: self.graph.size]) if self.edges is None else self.edges
        first, last = self.labels[edges[self._cross(edges)]].T
        number = len(self.counted)
        return np.column_stack(np.divmod(np.unique(np.append(first * number + last, last * number + first)), number))

    @cached_property
    def ways(self) -> _Ways | None:
        """Return all combinations of moves, or None if there are too many to enumerate."""
        number = len(self.counted)
        if number <= self.counted.shape[1] + 1 and self._dimension == number - 1:
            # The cycle through all kinds suffices, because a shorter cycle changes the query by at most as much.
            once = np.ones((1, number), dtype=np.int64)
            return _Ways(once, once, np.zeros(len(self.between), dtype=np.int64), *self.between.T)
        sums, effects, finished = self._zero_sums
        if not finished or sum(self._assignments(times, effects) for times in sums) > _MOST_WAYS:
            return None
        joined = set(map(tuple, self.between.tolist()))
        rows: dict[tuple[tuple[int, ...], tuple[int, ...]], set[tuple[int, int]]] = {}
        for times in sums:
            choices = [
                itertools.combinations_with_replacement(effects[f], int(times[f])) for f in np.flatnonzero(times)
            ]
            for chosen in itertools.product(*choices):
                moves = list(itertools.chain(*chosen))
                if used := joined.intersection(moves):
                    left, taken = (np.bincount(ends, minlength=number) for ends in zip(*moves, strict=True))
                    rows.setdefault((tuple(left.tolist()), tuple(taken.tolist())), set()).update(used)
        flat = [(way, *pair) for way, used in enumerate(rows.values()) for pair in sorted(used)]
        left, taken = (np.array([row[i] for row in rows], dtype=np.int64).reshape(-1, number) for i in (0, 1))
        return _Ways(left, taken, *np.array(flat, dtype=np.int64).reshape(-1, 3).T)

    @cached_property
    def moves(self) -> int:
        """Return an upper bound on the number of records in which two neighbours differ."""
        if not len(self.between):
            return int(self.graph.edge_count > 0)
        if (ways := self.ways) is not None:
            return max(1, int(ways.left.sum(axis=1).max(initial=0)))
        sums, effects, finished = self._zero_sums
        if not finished:
            return bound_length(self._dimension)
        joined = set(map(tuple, self.between.tolist()))
        used = [f for f, pairs in enumerate(effects) if joined.intersection(pairs)]
        return int(sums[sums[:, used].any(axis=1)].sum(axis=1).max(initial=1))

    @cached_property
    def _zero_sums(self) -> tuple[Integers, list[list[tuple[int, int]]], bool]:
        """Return the minimal zero sums of effects, the moves with each effect, and whether the search was complete.

        For more than 64 kinds, no search takes place and the first result is empty.
        """
        number = len(self.counted)
        if number > _MOST_KINDS:
            return np.zeros((0, 0), dtype=np.int64), [], False
        signed = self.counted.astype(np.int64)
        pairs = np.array([(a, b) for a in range(number) for b in range(number) if a != b], dtype=np.int64)
        vectors, which = np.unique(signed[pairs[:, 1]] - signed[pairs[:, 0]], axis=0, return_inverse=True)
        sums, finished = minimal_zero_sums(vectors)
        listed: list[list[tuple[int, int]]] = [[] for _ in vectors]
        for pair, effect in zip(pairs.tolist(), which.ravel().tolist(), strict=True):
            listed[effect].append((pair[0], pair[1]))
        return sums, listed, finished

    @cached_property
    def _dimension(self) -> int:
        signed = self.counted.astype(np.int64)
        return find_rank(signed[1:] - signed[0])

    @staticmethod
    def _assignments(times: Integers, effects: list[list[tuple[int, int]]]) -> int:
        used = [(len(effects[f]), int(times[f])) for f in np.flatnonzero(times)]
        return math.prod(math.comb(choices + number - 1, number) for choices, number in used)

    def _cross(self, edges: Integers) -> Flags:
        return np.asarray(self.labels[edges[:, 0]] != self.labels[edges[:, 1]])

    def _list_edges(self, chosen: Callable[[Flags], Flags]) -> ExplicitGraph:
        assert self.edges is not None
        edges = self.edges[chosen(self._cross(self.edges))]
        read_only(edges)
        return ExplicitGraph(self.graph.size, edges)


def _bound_joint_change(ties: _Dependence, query: Additive, norm: int, inside: list[LargestChange]) -> LargestChange:
    """Return a bound on the change by joint moves between kinds; `inside` contains the largest change in each kind."""
    widest = _length(ties.widest(query, norm), norm)
    ways = ties.ways
    if ways is None or not widest:
        return LargestChange((ties.moves * widest) ** norm, None, exact=not widest)
    power = _bound_by_pairing(ways, inside, widest, ties, query, norm) ** norm
    rows = _bound_rows(ties, ways, query)
    few = query.matrix is not None and len(query.matrix) <= FEW_ROWS
    if norm == 1:
        return LargestChange(
            power if rows is None else min(power, rows[0]),
            None,
            exact=(few and ties.edges is not None) or (query.whole and not ties.graph.has_null),
        )
    if rows is not None:
        total, single = rows
        # ‖h‖₂² ≤ ‖h‖₁·‖h‖∞.
        apart = [ties.widest(query, 1, kind) for kind in range(len(inside))]
        total = min(total, _bound_by_pairing(ways, apart, ties.widest(query, 1).power, ties, query, 1))
        power = min(power, sum((change**2 for change in single), Fraction(0)), total * max(single))
    return LargestChange(power, None, exact=few and len(rows[1] if rows else ()) == 1 and ties.edges is not None)


def _length(found: LargestChange, norm: int) -> Fraction:
    """Return the norm of a change, rounded up, from the power of its norm."""
    return found.power if norm == 1 or not found.power else Fraction(root_up(found.power))


def _bound_by_pairing(
    ways: _Ways, inside: list[LargestChange], widest: Fraction, ties: _Dependence, query: Additive, norm: int
) -> Fraction:
    """Return a bound on the change from the triangle inequality, after pairing old and new values of the same kind.

    The result is the smaller of two bounds. The first bound pairs all moves; the second has a separate term for the
    move along an edge.
    """
    left, taken = ways.left, ways.taken
    edge = widest if ties.edges is None else _length(query.change(ties.across, norm), norm)
    lengths = [widest, edge, *(_length(found, norm) for found in inside)]
    unit = math.lcm(*(length.denominator for length in lengths))
    most, apart, *each = (int(length * unit) for length in lengths)
    widths = np.array(each, dtype=object)
    matched = np.minimum(left, taken).astype(object)
    whole = matched @ widths + (left.sum(axis=1) - matched.sum(axis=1)) * most
    way, first, last = ways.way, ways.first, ways.last
    # If the move along an edge is removed, each of its two kinds may lose a matched pair.
    lost_first = (left[way, first] <= taken[way, first]).astype(object)
    lost_last = (taken[way, last] <= left[way, last]).astype(object)
    rest = (lost_first + lost_last - 1) * most - lost_first * widths[first] - lost_last * widths[last]
    return Fraction(int(np.minimum(whole[way], whole[way] + rest + apart).max()), unit)


def _bound_rows(ties: _Dependence, ways: _Ways, query: Additive) -> tuple[Fraction, list[Fraction]] | None:
    """Return a bound on the ℓ1 norm of the change, and a bound on the change of each row of the query.

    The change of a row is largest if every old value has the least weight of its kind, and every new value the largest
    weight. For one row the bound is exact. For few rows, all combinations of signs are evaluated, so the ℓ1 norm is
    exact. For many rows, the norm is at most the sum of the changes of the rows.
    """
    matrix, unit = query.matrix, query.unit
    if matrix is not None and len(matrix) <= FEW_ROWS:
        signs = np.array([(1, *rest) for rest in itertools.product((1, -1), repeat=len(matrix) - 1)])
        changes = _row_changes(ties, ways, matrix)
        total = changes[0] if len(matrix) == 1 else max(_row_changes(ties, ways, signs.astype(object) @ matrix))
        return Fraction(total) * unit, [Fraction(change) * unit for change in changes]
    if query.extremes is not None and (wide := _wide_changes(ties, ways, query.extremes)) is not None:
        return Fraction(sum(wide)) * unit, [Fraction(change) * unit for change in wide]
    return None


def _wide_changes(ties: _Dependence, ways: _Ways, extremes: Extremes) -> list[Any] | None:
    """Return a bound on each row's change from its extreme weights per kind; None if the search would take long."""
    most: Any = 0
    for kind, (values, absent) in enumerate(ties.members):
        top, bottom = extremes(values, absent)
        if len(ways.left) * len(top) > _ENTRIES_AT_ONCE:
            return None
        most = most + ways.taken[:, [kind]] * top - ways.left[:, [kind]] * bottom
    return list(most.max(axis=0).astype(object))


def _row_changes(ties: _Dependence, ways: _Ways, matrix: Objects) -> list[Any]:
    """Return the largest change of each row of an exact matrix (q, |T|) by moves, one of them along an edge."""
    columns = np.zeros((len(ties.labels), len(matrix)), dtype=object)
    columns[: ties.graph.size] = matrix.T
    members = [columns[ties.labels == kind] for kind in range(len(ties.counted))]
    most, least = (np.array([end(part, axis=0) for part in members]) for end in (np.max, np.min))
    whole = ways.taken.astype(object) @ most - ways.left.astype(object) @ least
    if ties.edges is None or len(ways.way) * len(matrix) > _ENTRIES_AT_ONCE // 50:
        return list(whole.max(axis=0))
    edges = ties.across.edges()
    ends = np.concatenate((edges, edges[:, ::-1]))
    kinds = ties.labels[ends]
    gains = {}
    for first, last in ties.between.tolist():
        x, y = ends[(kinds == (first, last)).all(axis=1)].T
        gains[first, last] = (columns[y] - columns[x]).max(axis=0) - most[last] + least[first]
    moves = zip(ways.way.tolist(), ways.first.tolist(), ways.last.tolist(), strict=True)
    return list(np.array([whole[way] + gains[first, last] for way, first, last in moves], dtype=object).max(axis=0))
