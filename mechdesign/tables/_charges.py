"""What a release enters in a ledger: its budget, the components of its policy, and what its exact answers tell apart.

Nodes are the values of the domain and, last, absence. An absent record adds nothing to any answer: its column is 0.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arrays import Integers
from mechdesign.base._check import as_truth
from mechdesign.base._deadline import keep
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact, exact_text
from mechdesign.leakage._partition import LARGEST_LISTED, UNKNOWN, Partition
from mechdesign.tables._budget import Budget, LedgerLike
from mechdesign.tables._domain import Attribute, Domain
from mechdesign.tables._policies._cliques import AttributeGraph, CompleteGraph
from mechdesign.tables._policies._graphs import SecretGraph, UnionGraph
from mechdesign.tables._policy import Policy, name_policy
from mechdesign.tables._workload import MatrixQueries, RangeQueries, Workload

# A partition in more runs than this would make a file of more than some megabytes.
_MOST_RUNS = 2**20
# Queries whose columns are compared at a time: their bits fit into an int64.
_BITS = 62


def charge(
    ledger: LedgerLike | None,
    budget: Budget,
    what: str,
    policy: Policy,
    classes: Callable[[], Partition] | None = None,
    together: bool = False,
) -> str | None:
    """Enter a release in a ledger, where there is one, and return the number of the entry, or None.

    Args:
        ledger: the ledger, or None.
        budget: what the noise spends; nothing where there is none.
        what: what is released, in words.
        policy: what is protected.
        classes: returns the classes of values that exact answers tell apart; None where all answers are noisy.
        together: insist on the release beside others, see `mechdesign.Ledger.spend`.

    All that can fail is computed before the entry is made.

    Raises:
        InputError: the ledger is none, or `together` no truth value.
        BudgetExceededError: the ledger refuses.
        ExactReleaseError: an earlier release, or this one, is exact where the policy of the other protects.
    """
    as_truth(together, "together")
    if ledger is None:
        return None
    if isinstance(ledger, type) or not callable(getattr(ledger, "spend", None)):
        raise InputError("ledger", "is not a ledger", value=ledger, bound="a mechdesign.Ledger")
    free = not (budget.epsilon or budget.rho)
    # Nothing is nothing of either budget: an entry in ρ would keep a ledger from a sum in ε.
    given: dict[str, Any] = {"epsilon": Fraction(0) if free else budget.epsilon, "rho": None if free else budget.rho}
    if hasattr(type(ledger), "by_policy"):
        given |= {
            "policy": name_policy(policy),
            "domain": digest_of_domain(policy.domain),
            "components": components(policy),
            "classes": None if classes is None else _kept(classes()),
            "together": together,
        }
    elif free:
        return None
    # What is paid for must not be lost.
    keep()
    return getattr(ledger.spend(what, policy.neighbours, **given), "number", None)


def components(policy: Policy) -> Partition | None:
    """Return the components of a policy's graph: values that a chain of edges joins, and absence.

    Returns None where they do not say what the policy protects, as under known counts, and where they would have to be
    listed and are too many.

    >>> components(Policy.line(Domain({"age": range(100)}))).text()
    '0*100 1'
    """
    graph, size = policy.secret_graph, policy.domain.size
    if policy.constraints:
        return None
    if _joins_absence(graph):
        return Partition.of_lengths([size + 1])
    if isinstance(graph, CompleteGraph | AttributeGraph):
        return Partition.of_lengths([size, 1])
    if size >= LARGEST_LISTED:
        return None
    labels = graph.components()
    found = Partition.of(labels if graph.has_null else np.append(labels, labels.max() + 1))
    return found if len(found.runs) <= _MOST_RUNS else None


def _joins_absence(graph: SecretGraph) -> bool:
    """Tell whether every value is joined to absence by a graph that says so."""
    parts = graph.parts if isinstance(graph, UnionGraph) else (graph,)
    return any(part.kind == "null" for part in parts)


def classes_of_values(size: int) -> Partition:
    """Return the classes of exact counts of all values."""
    return Partition.of_each(size + 1)


def number_of_records(size: int) -> Partition:
    """Return the classes of the exact number of records, which tells no two values apart."""
    return Partition.of_lengths([size, 1])


def classes_of_blocks(blocks: Integers) -> Partition:
    """Return the classes of exact counts of blocks of values, numbers of shape (|T|,)."""
    if len(blocks) >= LARGEST_LISTED:
        return UNKNOWN
    return Partition.of(np.append(blocks, blocks.max() + 1))


def classes_of_attribute(domain: Domain, name: str) -> Partition:
    """Return the classes of the exact sum of a numeric attribute: the values of one number, absence among those of 0.

    >>> classes_of_attribute(Domain({"sex": ["f", "m"], "dose": [0, 1]}), "dose").text()
    '0..1 0..1 0'
    """
    if domain.size >= LARGEST_LISTED:
        return UNKNOWN
    axis = domain.names.index(name)
    positions = domain.attributes[axis].positions
    codes = np.unique(np.append(positions, 0), return_inverse=True)[1]
    table = np.broadcast_to(codes[:-1].reshape([-1] + [1] * (len(domain.shape) - axis - 1)), domain.shape)
    return Partition.of(np.append(table.ravel(), codes[-1]))


def classes_of_rows(rows: NDArray[Any]) -> Partition:
    """Return the classes of exact linear queries (q, |T|): values of equal columns."""
    columns = np.ascontiguousarray(np.column_stack((rows, np.zeros((len(rows), 1), dtype=rows.dtype))).T)
    if len(columns) > LARGEST_LISTED:
        return UNKNOWN
    # Equal numbers have equal bytes: −0 is made 0.
    columns += 0
    whole = columns.view(np.dtype((np.void, columns.dtype.itemsize * columns.shape[1]))).ravel()
    return Partition.of(np.unique(whole, return_inverse=True)[1])


def classes_of_workload(workload: Workload) -> Partition:
    """Return the classes of the exact answers to a workload."""
    if workload.size >= LARGEST_LISTED:
        return UNKNOWN
    labels = np.zeros(workload.size + 1, dtype=np.int64)
    for codes in _columns(workload):
        labels = np.unique(np.column_stack((labels, codes)), axis=0, return_inverse=True)[1].ravel()
        if labels.max() == workload.size:
            break
    return Partition.of(labels)


def _columns(workload: Workload) -> Iterator[Integers]:
    """Yield numbers of the columns of some queries at a time, shape (|T| + 1,): equal where the columns are."""
    if isinstance(workload, RangeQueries):
        values = np.arange(workload.size + 1)
        for start in range(0, workload.count, _BITS):
            low, high = (ends[start : start + _BITS, None] for ends in (workload.low, workload.high))
            inside = (low <= values) & (values <= high)
            yield (inside * (1 << np.arange(len(low), dtype=np.int64))[:, None]).sum(axis=0)
        return
    if isinstance(workload, MatrixQueries):
        columns = workload.rows.tocsc()
        columns.sum_duplicates()
        columns.eliminate_zeros()
        seen: dict[bytes, int] = {b"": 0}
        found = np.zeros(workload.size + 1, dtype=np.int64)
        for value, (start, end) in enumerate(zip(columns.indptr[:-1], columns.indptr[1:], strict=True)):
            key = columns.indices[start:end].tobytes() + columns.data[start:end].tobytes()
            found[value] = seen.setdefault(key, len(seen))
        yield found
        return
    yield classes_of_rows(workload.matrix()).labels


def digest_of_domain(domain: Domain) -> str:
    """Return a digest that two domains share if the names and the values of their attributes are the same, in order.

    Numbers are taken by their value: a range and the list of its numbers are the same.
    """
    digest = hashlib.sha256()
    for attribute in domain.attributes:
        digest.update(repr((attribute.name, attribute.size)).encode())
        for part in _contents(attribute):
            digest.update(part)
    return digest.hexdigest()[:32]


def _contents(attribute: Attribute) -> Iterator[bytes]:
    values = attribute.values
    if isinstance(values, range):
        yield repr(("steps", str(values[0]), str(values.step if len(values) > 1 else 0))).encode()
        return
    if not attribute.numeric:
        yield repr(("values", [(type(value).__name__, str(value)) for value in values])).encode()
        return
    try:
        positions, unit = attribute.positions, attribute.unit
    except InputError:
        # Too many digits for a lattice.
        yield repr(("numbers", [exact_text(exact(value)) for value in values])).encode()
        return
    steps = np.diff(positions)
    if not len(steps) or (steps == steps[0]).all():
        ends = int(positions[0]) * unit, int(steps[0] if len(steps) else 0) * unit
        yield repr(("steps", *map(exact_text, ends))).encode()
    else:
        yield repr(("lattice", exact_text(unit))).encode()
        yield positions.astype("<i8").tobytes()


def _kept(classes: Partition) -> Partition:
    return classes if len(classes.runs) <= _MOST_RUNS else UNKNOWN
