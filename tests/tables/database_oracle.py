"""Neighbouring databases straight from their definition, written without any code of the package."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

Database = tuple[int, ...]
Rule = Callable[[tuple, tuple], bool]


def edges_by_rule(values: Sequence[tuple], rule: Rule) -> set[frozenset[int]]:
    return {frozenset((x, y)) for x, y in itertools.combinations(range(len(values)), 2) if rule(values[x], values[y])}


def neighbours(
    edges: set[frozenset[int]],
    nodes: int,
    records: int,
    queries: Sequence[Sequence[int]] = (),
    known: Sequence[int | None] | None = None,
) -> Iterator[tuple[Database, Database]]:
    """Yield the ordered pairs (D, D') that differ along an edge, and of whose moves no part keeps the counts.

    Of the moves one at least is along an edge, and the others are any. `queries` are 0/1 rows over the nodes; unless
    its answer is known a query may have any one answer.
    """

    def answers(database: Database) -> tuple[int, ...]:
        return tuple(sum(query[value] for value in database) for query in queries)

    everything = list(itertools.product(range(nodes), repeat=records))
    possible: dict[tuple[int, ...], set[Database]] = {}
    for database in everything:
        found = answers(database)
        if known is None or all(a is None or a == b for a, b in zip(known, found, strict=True)):
            possible.setdefault(found, set()).add(database)
    for group in possible.values():
        for first, second in itertools.combinations(sorted(group), 2):
            changed = [i for i in range(records) if first[i] != second[i]]
            if any(frozenset((first[i], second[i])) in edges for i in changed) and not any(
                tuple(second[i] if i in part else x for i, x in enumerate(first)) in group
                for size in range(1, len(changed))
                for part in itertools.combinations(changed, size)
            ):
                yield first, second
                yield second, first


def largest_change(
    answer: Callable[[Database], Sequence[float]], pairs: Iterator[tuple[Database, Database]], norm: int
) -> float:
    """Return the largest ‖answer(D) − answer(D')‖ to the power `norm`."""
    return max(
        (sum(abs(a - b) ** norm for a, b in zip(answer(x), answer(y), strict=True)) for x, y in pairs), default=0
    )


def histogram(size: int) -> Callable[[Database], list[int]]:
    return lambda database: [database.count(value) for value in range(size)]
