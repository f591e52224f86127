"""Policy-specific global sensitivity: the largest distance between a query's answers on neighbouring databases.

The sensitivity of any function is computed by enumerating all pairs of neighbouring databases of a tiny domain.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Integers
from mechdesign.base._check import as_integer, require_kind
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact
from mechdesign.tables._line_graphs import block_numbers
from mechdesign.tables._secret_graphs import BasePolicy, Edge, require_room
from mechdesign.tables._sensitivity._clusterings import kmeans_sizes, kmeans_sums
from mechdesign.tables._sensitivity._constrained import under_known_counts
from mechdesign.tables._sensitivity._linear import (
    Additive,
    LargestChange,
    LatticeMatrix,
    as_lattice,
    cumulative,
    from_weights,
    histogram,
    plain,
)

if TYPE_CHECKING:
    from mechdesign.tables._domain import Attribute, Domain


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


@dataclass(frozen=True)
class Sensitivity:
    """The largest ℓ1 or ℓ2 distance between the answers to a query on two neighbouring databases.

    Attributes:
        value: the sensitivity Δ, an int or a Fraction if it is exact, else a float that is rounded up.
        norm: 1 or 2.
        power: Δ for norm 1 and Δ² for norm 2 as a fraction, never below the true value.
        exact: whether `power` is the true value; if not, it is a proven upper bound.
        witness: an edge (x, y) of the secret graph that attains the sensitivity; |T| is the null node. None if no
            single edge attains the sensitivity, for example under known counts.

    >>> from mechdesign.tables import Domain, Policy
    >>> found = sensitivity(Policy.threshold(Domain({"age": range(5)}), 1), [0, 1, 2, 4, 4])
    >>> found.value, found.witness
    (2, (2, 3))
    """

    value: int | float | Fraction
    norm: int
    power: Fraction
    exact: bool
    witness: Edge | None


def sensitivity(
    policy: BasePolicy,
    query: str | ArrayLike | Callable[..., Any],
    norm: int = 1,
    *,
    attribute: str | None = None,
    partition: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    origins: ArrayLike | None = None,
    records: int | None = None,
) -> Sensitivity:
    """Return the policy-specific global sensitivity of a query (Blowfish, He et al. 2014, Definition 5.1).

    Without constraints, the sensitivity is the largest norm of the change when one record moves along any edge (x, y).
    With constraints, several records may move together: at least one along an edge, and the others between any two
    values. The result is then an upper bound, and `Sensitivity.exact` is true if the bound is attained (see
    `mechdesign.tables._sensitivity._constrained`). k-means does not support constraints.

    Args:
        policy: the policy.
        query: one of

            - ``"histogram"``: the count of every value, or of every block of `partition`;
            - ``"cumulative"``: for each value of one ordered attribute, the number of records with at most this value;
            - ``"sum"``: the sum of a numeric attribute, named by `attribute` if there are several;
            - ``"kmeans-sum"``: for each cluster, the sum of its records' numeric attributes relative to the centre of
              their box. The result is valid for all clusterings, or for given `clusters` and `origins`;
            - ``"kmeans-size"``: the number of records in each cluster, for all clusterings or for given `clusters`;
            - an array of shape (|T|,) or (q, |T|): linear queries, whose columns are the contributions of a record with
              each value to the answers;
            - a function that returns a number or an array for a database, which is an int64 array of the indices of its
              records' values. It is evaluated on all databases of `records` records.

        norm: 1 or 2.
        attribute: the attribute that ``"sum"`` adds up.
        partition: the block of each value, shape (|T|,), for ``"histogram"``.
        clusters: the cluster of each value, integers from 0 on, shape (|T|,).
        origins: the point that is subtracted from the values of each cluster, shape (k, numeric attributes); by default
            the centre of the box.
        records: the number of records of the databases on which a function is evaluated; with the null node, the
            largest number.

    Returns:
        The sensitivity, with an edge that attains it if such an edge exists.

    Raises:
        InputError: The query or the norm is unknown, an option belongs to another query, or an array has the wrong
            shape. Or the policy has known counts, which the queries of k-means do not support.

    >>> from mechdesign.tables import Domain, Policy
    >>> sensitivity(Policy.full(Domain({"age": range(100)})), "cumulative").value
    99
    """
    require_kind(policy, BasePolicy, "policy", "a mechdesign.tables.Policy")
    norm = as_norm(norm)
    if isinstance(query, str):
        if query not in _NAMED:
            names = ", ".join(map(repr, _NAMED))
            raise InputError("query", "is unknown", value=query, bound=f"one of {names}, an array or a function")
        found, taken = _NAMED[query]
    elif callable(query):
        found, taken = partial(of_function, function=query), ("records",)
    else:
        found, taken = partial(of_weights, weights=query), ()
    given = {
        "attribute": attribute,
        "partition": partition,
        "clusters": clusters,
        "origins": origins,
        "records": records,
    }
    options = {name: value for name, value in given.items() if value is not None}
    if foreign := sorted(options.keys() - set(taken)):
        raise InputError(
            foreign[0],
            "is not an option of this query",
            value=query if isinstance(query, str) else "an array of weights" if not callable(query) else "a function",
            bound=f"only {', '.join(taken)}" if taken else "no option",
            remedy="leave it out",
        )
    return found(policy, norm, **options)


def as_norm(norm: object) -> int:
    """Return 1 or 2; raise `InputError` for any other norm."""
    return as_integer(norm, "norm", 1, 2)


def of_counts(policy: BasePolicy, norm: int, partition: ArrayLike | None = None) -> Sensitivity:
    """Return the sensitivity of the counts of all values, or of all blocks of a partition."""
    blocks = None if partition is None else block_numbers(policy.domain, partition, "partition")
    return _of(policy, norm, histogram(policy.domain.size, blocks))


def of_cumulative_counts(policy: BasePolicy, norm: int) -> Sensitivity:
    """Return the sensitivity of the cumulative counts of one ordered attribute."""
    policy.domain.ordered_attribute("cumulative counts")
    require_room(policy.domain.size, "cumulative counts")
    return _of(policy, norm, cumulative(policy.domain.size))


def of_weights(policy: BasePolicy, norm: int, weights: ArrayLike) -> Sensitivity:
    """Return the sensitivity of linear queries with weights of shape (|T|,) or (q, |T|)."""
    return of_lattice(policy, norm, as_lattice(weights, policy.domain.size))


def of_lattice(policy: BasePolicy, norm: int, weights: LatticeMatrix) -> Sensitivity:
    """Return the sensitivity of linear queries whose weights are multiples of a unit."""
    return _of(policy, norm, from_weights(weights))


def of_sum(policy: BasePolicy, norm: int, attribute: str | None = None) -> Sensitivity:
    """Return the sensitivity of a sum; under known counts, an array with an entry per value is allocated."""
    domain = policy.domain
    axis = domain.names.index(find_attribute(domain, attribute).name)
    summed = domain.attributes[axis]
    if policy.constraints:
        require_room(domain.size, "the sum of an attribute under publicly known counts")
        weights = summed.positions[np.arange(domain.size) // math.prod(domain.shape[axis + 1 :]) % summed.size]
        return of_lattice(policy, norm, LatticeMatrix(weights[None], summed.unit))
    spread = policy.secret_graph.spread_along(domain.shape, axis, summed.positions)
    return _make_sensitivity(LargestChange(abs(spread.value) ** norm * summed.unit**norm, spread.edge), norm)


def find_attribute(domain: Domain, name: str | None) -> Attribute:
    """Return the named attribute; without a name, return the only one, or raise `InputError` if there are several."""
    if name is None and len(domain.attributes) > 1:
        raise InputError("attribute", "is not given", bound=f"one of {', '.join(domain.names)}")
    return domain.attributes[0] if name is None else domain.attribute(name)


def of_cluster_sizes(policy: BasePolicy, norm: int, clusters: ArrayLike | None = None) -> Sensitivity:
    """Return the sensitivity of the sizes of clusters."""
    refuse_kmeans(policy)
    return _make_sensitivity(kmeans_sizes(policy, clusters), norm)


def of_cluster_sums(
    policy: BasePolicy, norm: int, clusters: ArrayLike | None = None, origins: ArrayLike | None = None
) -> Sensitivity:
    """Return the sensitivity of the sums over clusters."""
    refuse_kmeans(policy)
    return _make_sensitivity(kmeans_sums(policy, norm, clusters, origins), norm)


def of_function(policy: BasePolicy, norm: int, function: Callable[..., Any], records: int | None = None) -> Sensitivity:
    """Return the sensitivity of a function by evaluating it on all databases with `records` records."""
    if records is None:
        raise InputError("records", "is not given", remedy="give the number of records of the databases")
    change = largest_change(policy, function, records, norm)
    return _make_sensitivity(LargestChange(change, None, exact=False, floats=True), norm)


_NAMED: Mapping[str, tuple[Callable[..., Sensitivity], tuple[str, ...]]] = MappingProxyType(
    {
        "histogram": (of_counts, ("partition",)),
        "cumulative": (of_cumulative_counts, ()),
        "sum": (of_sum, ("attribute",)),
        "kmeans-sum": (of_cluster_sums, ("clusters", "origins")),
        "kmeans-size": (of_cluster_sizes, ("clusters",)),
    }
)


def refuse_kmeans(policy: BasePolicy) -> None:
    """Raise `InputError` if the policy has known counts."""
    if policy.constraints:
        raise InputError(
            "policy",
            "has publicly known counts",
            value=len(policy.constraints),
            bound="no known counts for k-means",
            remedy="release a histogram, which supports known counts, and cluster its answers. Under known counts "
            "neighbouring tables may differ in several records, and no bound on their joint change is proven",
        )


def _of(policy: BasePolicy, norm: int, query: Additive) -> Sensitivity:
    graph = policy.secret_graph
    found = under_known_counts(policy, query, norm) if policy.constraints else query.change(graph, norm)
    return _make_sensitivity(found, norm)


def _make_sensitivity(found: LargestChange, norm: int) -> Sensitivity:
    return Sensitivity(plain(found.power, norm, found.floats), norm, found.power, found.exact, found.edge)
