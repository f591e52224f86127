"""Compare sensitivities under publicly known counts with all readings of the definition, by brute force.

    python benchmarks/evidence/known_counts.py [--policies 2000] [--seed 0] [-o FILE]

The policies are random, on 2 to 5 values, with every kind of graph, with and without the null node. Each policy has one
or two known counts, which may overlap; their values are either stated or not. Among all databases of 2 and 3 records,
neighbours are found by three readings, without any code of the package:

- "printed": Definition 4.1 of Blowfish (He et al. 2014) as printed. The discriminative pairs T are nonempty
  and minimal; then the changed tuples Δ are minimal among the databases with the same T;
- "edges": every changed record moves along an edge, and no proper subset of the moves keeps the counts;
- "used": the definition that the package uses. At least one record moves along an edge, and no proper subset of the
  moves keeps the counts.

The histogram, the cumulative histogram and random linear queries of one, two and three rows are compared in the ℓ1 and
the squared ℓ2 norm. A sensitivity below the brute-force value of any of the three readings is a fault: the script then
exits with 1.
"""

from __future__ import annotations

import collections
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mechdesign as md

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import options, origin
from mechdesign.tables._sensitivity._constrained import constraint_sensitivity
from mechdesign.tables._sensitivity._sensitivity import sensitivity

Database = tuple[int, ...]
Pair = tuple[Database, Database]
READINGS = ("printed", "edges", "used")


class Case(NamedTuple):
    """A policy, and the data that the brute force needs about it."""

    policy: md.tables.Policy
    edges: set[frozenset[int]]
    nodes: int
    rows: list[list[int]]
    known: list[int | None]
    records: int


def groups(case: Case) -> Iterator[list[Database]]:
    """Yield groups of databases with equal counts; the counts agree with the values that the policy states."""
    found: dict[tuple[int, ...], list[Database]] = {}
    for database in itertools.product(range(case.nodes), repeat=case.records):
        answers = tuple(sum(row[value] for value in database) for row in case.rows)
        if all(known is None or known == answer for known, answer in zip(case.known, answers, strict=True)):
            found.setdefault(answers, []).append(database)
    yield from found.values()


def printed(first: Database, group: list[Database], edges: set[frozenset[int]]) -> Iterator[Database]:
    """Yield the neighbours of a database by Definition 4.1 as printed."""
    by_secrets: dict[frozenset[tuple[int, int]], list[tuple[frozenset[tuple[int, int]], Database]]] = {}
    for other in group:
        changed = frozenset((i, other[i]) for i in range(len(first)) if first[i] != other[i])
        secrets = frozenset(change for change in changed if frozenset((first[change[0]], change[1])) in edges)
        if secrets:
            by_secrets.setdefault(secrets, []).append((changed, other))
    for secrets, found in by_secrets.items():
        if any(fewer < secrets for fewer in by_secrets):
            continue
        for changed, other in found:
            if not any(fewer < changed for fewer, _ in found):
                yield other


def minimal(
    first: Database, group: list[Database], edges: set[frozenset[int]], enough: Callable[..., bool]
) -> Iterator[Database]:
    """Yield the databases with `enough` moves along edges and no proper subset of moves that keeps the counts."""
    inside = set(group)
    for other in group:
        changed = [i for i in range(len(first)) if first[i] != other[i]]
        if not changed or not enough(frozenset((first[i], other[i])) in edges for i in changed):
            continue
        parts = itertools.chain.from_iterable(itertools.combinations(changed, n) for n in range(1, len(changed)))
        if not any(tuple(other[i] if i in part else x for i, x in enumerate(first)) in inside for part in parts):
            yield other


def neighbours(case: Case) -> dict[str, set[Pair]]:
    """Return, for each of the three readings, the pairs of neighbours."""
    found: dict[str, set[Pair]] = {name: set() for name in READINGS}
    for group in groups(case):
        for first in group:
            found["printed"].update((first, other) for other in printed(first, group, case.edges))
            found["edges"].update((first, other) for other in minimal(first, group, case.edges, all))
            found["used"].update((first, other) for other in minimal(first, group, case.edges, any))
    return found


def changes(pairs: set[Pair], nodes: int) -> np.ndarray:
    """Return the distinct differences of the histograms of the pairs, (k, nodes)."""
    found = {tuple(second.count(x) - first.count(x) for x in range(nodes)) for first, second in pairs}
    return np.array(sorted(found), dtype=np.int64).reshape(-1, nodes)


def random_case(rng: np.random.Generator) -> Case:
    """Return a random policy with known counts, and the number of records on which it is tested."""
    size = int(rng.integers(2, 6))
    unbounded = bool(rng.random() < 0.4)
    nodes = size + unbounded
    records = 2 if nodes == 6 else int(rng.integers(2, 4))
    domain = md.tables.Domain({"x": range(size)})
    rows = rng.integers(0, 2, (int(rng.integers(1, 3)), size))
    if len(rows) == 2 and rng.random() < 0.3:
        rows[1] &= 1 - rows[0]
    example = rng.integers(0, nodes, records)
    absent = np.append(rows, np.zeros((len(rows), 1), dtype=np.int64), axis=1)
    known = [int(row[example].sum()) if rng.random() < 0.3 else None for row in absent]
    constraints = [(row, count) for row, count in zip(rows.tolist(), known, strict=True)]
    options: dict[str, Any] = {"constraints": constraints, "unbounded": unbounded}
    match int(rng.integers(0, 4)):
        case 0:
            labels = rng.integers(0, 3, size).tolist()
            policy = md.tables.Policy.partition(domain, labels, **options)
        case 1:
            policy = md.tables.Policy.threshold(domain, int(rng.integers(1, size)), **options)
        case 2:
            policy = md.tables.Policy.full(domain, **options)
        case _:
            ends = [*range(size), None] if unbounded else range(size)
            edges = [pair for pair in itertools.combinations(ends, 2) if rng.random() < 0.35] or [(0, 1)]
            policy = md.tables.Policy.graph(domain, edges, **options)
    numbers = np.arange(nodes)
    first, second = np.triu_indices(nodes, 1)
    joined = policy.secret_graph.has_edge(numbers[first], numbers[second])
    pairs = {frozenset(pair) for pair in zip(first[joined].tolist(), second[joined].tolist(), strict=True)}
    width = nodes - size
    return Case(policy, pairs, nodes, [[*row, *[0] * width] for row in rows.tolist()], known, records)


def queries(case: Case, rng: np.random.Generator) -> dict[str, tuple[Any, np.ndarray]]:
    """Return each query twice: in the form that the package accepts, and as a matrix over the nodes."""
    size = case.policy.domain.size

    def over_nodes(matrix: np.ndarray) -> np.ndarray:
        return np.pad(matrix, ((0, 0), (0, case.nodes - size)))

    found: dict[str, tuple[Any, np.ndarray]] = {
        "histogram": ("histogram", over_nodes(np.eye(size, dtype=np.int64))),
        "cumulative": ("cumulative", over_nodes(np.tri(size, dtype=np.int64))),
    }
    for number in (1, 2, 3):
        matrix = rng.integers(-3, 4, (number, size))
        found[f"linear, {number} row{'s' * (number > 1)}"] = (matrix, over_nodes(matrix))
    return found


def compare(case: Case, rng: np.random.Generator) -> Iterator[tuple[str, int, Any, dict[str, int]]]:
    """Yield the query, the norm, the package's sensitivity, and each reading's largest change in this norm."""
    differences = {name: changes(pairs, case.nodes) for name, pairs in neighbours(case).items()}
    for name, (query, matrix) in queries(case, rng).items():
        for norm in (1, 2):
            largest = {
                reading: int((np.abs(each @ matrix.T) ** norm).sum(axis=1).max(initial=0))
                for reading, each in differences.items()
            }
            yield name, norm, sensitivity(case.policy, query, norm), largest


def main() -> int:
    """Compare, print and store the counts."""
    arguments = options(__doc__, policies=2000, seed=0, output=Path)
    clock = time.perf_counter()
    tally: collections.Counter[tuple[str, str]] = collections.Counter()
    faults: list[str] = []
    for number in range(arguments.policies):
        rng = np.random.default_rng([arguments.seed, number])
        case = random_case(rng)
        overlap = len(case.rows) == 2 and any(a and b for a, b in zip(*case.rows, strict=True))
        tally["policies", f"{case.policy.secret_graph.kind}"] += 1
        tally["policies", "null node" if case.nodes > case.policy.domain.size else "no null node"] += 1
        tally["policies", "overlapping counts" if overlap else f"{len(case.rows)} count(s), disjoint"] += 1
        tally["policies", f"{case.records} records"] += 1
        moves = constraint_sensitivity(case.policy).moves
        enough = moves <= case.records and all(count is None for count in case.known)
        tally["policies", "no known count stated, and records enough for all moves"] += enough
        for name, norm, found, largest in compare(case, rng):
            kind = f"{name}, norm {norm}"
            larger = max(largest["printed"], largest["edges"])
            tally[kind, "compared"] += 1
            tally[kind, "equal to the larger of both readings"] += found.power == larger
            tally[kind, "equal to it, no count stated and records enough"] += enough and found.power == larger
            tally[kind, "equal to the pairs that are used"] += found.power == largest["used"]
            tally[kind, "the printed reading above the other"] += largest["printed"] > largest["edges"]
            tally[kind, "the printed reading below the other"] += largest["printed"] < largest["edges"]
            tally[kind, "the pairs that are used above both"] += largest["used"] > larger
            tally[kind, "below a reading"] += found.power < larger
            if found.power < max(largest.values()):
                faults.append(f"policy {number}, {kind}: {found.power} below {largest}")
    lines = [f"{arguments.policies} policies, seeds ({arguments.seed}, 0) to ({arguments.seed}, {number})"]
    for kind, entries in itertools.groupby(sorted(tally.items(), key=lambda item: item[0][0]), lambda item: item[0][0]):
        lines.append(f"{kind}:")
        lines += [f"  {count:5} {what}" for (_, what), count in entries]
    lines += [f"{len(faults)} faults", *faults]
    text = "\n".join(lines)
    print(text)
    print(f"{time.perf_counter() - clock:.0f} s")
    if arguments.output:
        arguments.output.write_text(f"{text}\n{origin()}\n", encoding="utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
