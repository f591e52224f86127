"""Compute the sensitivity of any function by enumerating all pairs of neighbouring databases of a tiny domain."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from mechdesign.base._arrays import Integers
from mechdesign.base._check import as_integer
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact
from mechdesign.tables._policies._graphs import BasePolicy

LARGEST_SEARCH = 200_000
"""The largest number of databases that is enumerated; with known counts, the largest number of pairs."""

Database = tuple[int, ...]


def neighbouring_databases(policy: BasePolicy, records: int) -> Iterator[tuple[Database, Database]]:
    """Yield every pair of neighbouring databases of `records` records once.

    A database is a tuple of the index of each record's value, or |T| for an absent record. Two databases are neighbours
    under three conditions. First, both databases have the given known counts, and equal counts for constraints without
    a given count. Second, at least one changed record moves along an edge. Third, no nonempty proper subset of the
    moves preserves the counts. These pairs include all neighbours of Definition 4.1 of Blowfish (He et al. 2014): see
    `mechdesign.tables._sensitivity._constrained`.

    Args:
        policy: the policy.
        records: the number of records.

    Yields:
        The pairs of neighbouring databases.

    Raises:
        InputError: The number of databases, or with known counts the number of pairs, exceeds `LARGEST_SEARCH`.
    """
    n = as_integer(records, "records", 1)
    nodes = policy.secret_graph.node_count
    work = nodes**n if not policy.constraints else nodes ** (2 * n)
    if work > LARGEST_SEARCH:
        raise InputError("records", "requires too many databases", value=work, bound=f"at most {LARGEST_SEARCH}")
    edges = {tuple(edge) for edge in policy.secret_graph.edges().tolist()}
    members = [np.append(constraint.counted, False) for constraint in policy.constraints]
    answers = {
        database: tuple(int(member[list(database)].sum()) for member in members)
        for database in itertools.product(range(nodes), repeat=n)
    }
    known = [constraint.known for constraint in policy.constraints]
    for first, found in answers.items():
        if any(count is not None and count != answer for count, answer in zip(known, found, strict=True)):
            continue
        for second in _find_neighbours(first, edges, answers, nodes, bool(members)):
            if first < second and answers[second] == found and _is_minimal(first, second, answers):
                yield first, second


def largest_change(policy: BasePolicy, function: Callable[..., Any], records: int, norm: int) -> Fraction:
    """Return the largest ‖f(D) − f(D')‖ to the power `norm` over the neighbouring databases of `records` records."""
    values: dict[Database, list[Fraction]] = {}
    size = policy.domain.size
    best = Fraction(0)
    for pair in neighbouring_databases(policy, records):
        for database in pair:
            if database not in values:
                present: Integers = np.array([value for value in database if value < size], dtype=np.int64)
                values[database] = _answers(function(present))
        first, second = (values[database] for database in pair)
        if len(first) != len(second):
            raise InputError("query", "returns answers of different lengths", value=(len(first), len(second)))
        best = max(best, sum((abs(a - b) ** norm for a, b in zip(first, second, strict=True)), Fraction(0)))
    return best


def _find_neighbours(
    first: Database, edges: set[tuple[int, ...]], databases: Any, nodes: int, several: bool
) -> Iterator[Database]:
    if several:
        for second in databases:
            moves = [tuple(sorted(move)) for move in zip(first, second, strict=True) if move[0] != move[1]]
            if any(move in edges for move in moves):
                yield second
        return
    for place, x in enumerate(first):
        for y in range(nodes):
            if tuple(sorted((x, y))) in edges:
                yield (*first[:place], y, *first[place + 1 :])


def _is_minimal(first: Database, second: Database, answers: dict[Database, tuple[int, ...]]) -> bool:
    changed = [place for place, (x, y) in enumerate(zip(first, second, strict=True)) if x != y]
    for number in range(1, len(changed)):
        for part in itertools.combinations(changed, number):
            between = tuple(second[place] if place in part else x for place, x in enumerate(first))
            if answers[between] == answers[first]:
                return False
    return True


def _answers(result: Any) -> list[Fraction]:
    return [exact(value, "query") for value in np.atleast_1d(np.asarray(result)).ravel().tolist()]
