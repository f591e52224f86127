"""Policy-specific global sensitivity: how far the answers to a query on two neighbouring databases can be apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.blowfish.brute_force import largest_change
from mechdesign.blowfish.clique_graphs import block_numbers
from mechdesign.blowfish.clusterings import counts, kmeans_sizes, kmeans_sums
from mechdesign.blowfish.constrained_histogram import constraint_sensitivity
from mechdesign.blowfish.linear_queries import Found, linear
from mechdesign.blowfish.numbers import Lattice, as_lattice, plain
from mechdesign.blowfish.secret_graphs import Edge
from mechdesign.errors import InputError
from mechdesign.validation import as_integer

if TYPE_CHECKING:
    from mechdesign.blowfish.policy_like import PolicyLike

__all__ = ["Sensitivity", "sensitivity"]


def __dir__() -> list[str]:
    return sorted(__all__)


_OPTIONS = {
    "histogram": ("partition",),
    "cumulative": (),
    "sum": ("attribute",),
    "kmeans-sum": ("clusters", "origins"),
    "kmeans-size": ("clusters",),
}


@dataclass(frozen=True)
class Sensitivity:
    """The largest ℓ1 or ℓ2 distance between the answers to a query on two neighbouring databases.

    Attributes:
        value: the sensitivity Δ: an int or Fraction where it is one, else a float, rounded up.
        norm: 1 or 2.
        power: Δ for norm 1 and Δ² for norm 2 as a fraction, never below the truth.
        exact: whether `power` is the truth itself; if not, it is a proven upper bound.
        witness: an edge (x, y) of the secret graph whose move changes the answer most (|T| is the null node), or None.
    """

    value: int | float | Fraction
    norm: int
    power: Fraction
    exact: bool
    witness: Edge | None


def sensitivity(
    policy: PolicyLike,
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

    Without constraints it is the largest norm, over the edges (x, y), of what moving one record from x to y changes.
    With constraints several records move at once: the histogram's is that of `constraint_sensitivity`, and every other
    query gets a bound, the largest number of records that move times its sensitivity without constraints.

    Args:
        policy: the policy.
        query: one of

            - ``"histogram"``: the count of every value, or of every block of `partition`;
            - ``"cumulative"``: for each value of one ordered attribute the count of all values up to it;
            - ``"sum"``: the sum of a numeric attribute, named by `attribute` where there are several;
            - ``"kmeans-sum"``: for each cluster the sum of its records' numeric attributes minus the middle of their
              box, whatever the clustering, or for given `clusters` and `origins`;
            - ``"kmeans-size"``: the number of records in each cluster, likewise;
            - an array of shape (|T|,) or (q, |T|): linear queries, the column of a value being what a record with this
              value adds to the answers (an absent record adds nothing);
            - a function from a database, an int64 array of the numbers of its records' values, to a number or an array,
              tried on all databases of `records` records.

        norm: 1 or 2.
        attribute: the attribute that ``"sum"`` adds up.
        partition: the block of each value, shape (|T|,), for ``"histogram"``.
        clusters: the cluster of each value, integers from 0 on, shape (|T|,).
        origins: the point that is subtracted in each cluster, shape (k, numeric attributes); the middle of the box
            unless given.
        records: the number of records for a function; with the null node the largest number.

    Raises:
        InputError: an unknown query, another norm, an option of another query, or arrays of the wrong shape.
    """
    if (norm := as_integer(norm, "norm", 1)) > 2:
        raise InputError("norm", "is not offered", value=norm, bound="1 or 2")
    options = {
        "attribute": attribute,
        "partition": partition,
        "clusters": clusters,
        "origins": origins,
        "records": records,
    }
    _check_options(query, {name for name, value in options.items() if value is not None})
    if callable(query):
        if records is None:
            raise InputError(
                "records", "is not given", remedy="say on databases of how many records to try the function"
            )
        change = largest_change(policy, query, records, norm)
        return Sensitivity(plain(change, norm, floats=True), norm, change, exact=False, witness=None)
    if isinstance(query, str):
        found = _named(policy, query, norm, attribute, partition, clusters, origins)
    else:
        found = linear(policy.secret_graph, as_lattice(query, policy.domain.size), norm)
    if policy.constraints and found.power:
        every_value = isinstance(query, str) and query == "histogram" and partition is None
        found = _under_constraints(policy, found, norm, histogram=every_value)
    return Sensitivity(plain(found.power, norm, found.floats), norm, found.power, found.exact, found.edge)


def _named(
    policy: PolicyLike,
    query: str,
    norm: int,
    attribute: str | None,
    partition: ArrayLike | None,
    clusters: ArrayLike | None,
    origins: ArrayLike | None,
) -> Found:
    domain, graph = policy.domain, policy.secret_graph
    if query == "histogram":
        return counts(graph, None if partition is None else block_numbers(domain, partition, "partition"))
    if query == "cumulative":
        domain.ordered_attribute("cumulative counts")
        # A record at x counts for the values from x on: |x − y| counts change by 1.
        return linear(graph, Lattice((domain.size - np.arange(domain.size))[None]), 1)
    if query == "sum":
        return _sum(policy, attribute, norm)
    if query == "kmeans-size":
        return kmeans_sizes(policy, clusters)
    return kmeans_sums(policy, norm, clusters, origins)


def _sum(policy: PolicyLike, name: str | None, norm: int) -> Found:
    domain = policy.domain
    if name is None and len(domain.attributes) > 1:
        raise InputError("attribute", "is not given", bound=f"one of {', '.join(domain.names)}")
    attribute = domain.attributes[0] if name is None else domain.attribute(name)
    stride = 1
    for other in reversed(domain.attributes):
        if other is attribute:
            break
        stride *= other.size
    weights = attribute.positions[np.arange(domain.size) // stride % attribute.size]
    return linear(policy.secret_graph, Lattice(weights[None], attribute.unit), norm)


def _under_constraints(policy: PolicyLike, found: Found, norm: int, histogram: bool) -> Found:
    known = constraint_sensitivity(policy)
    if histogram and norm == 1:
        return Found(Fraction(known.value), None, known.exact)
    # The triangle inequality over the records that move.
    return replace(found, power=found.power * known.moves**norm, exact=found.exact and known.moves == 1)


def _check_options(query: object, given: set[str]) -> None:
    if callable(query):
        allowed: tuple[str, ...] = ("records",)
    elif isinstance(query, str):
        if query not in _OPTIONS:
            names = ", ".join(map(repr, _OPTIONS))
            raise InputError("query", "is unknown", value=query, bound=f"one of {names}, an array or a function")
        allowed = _OPTIONS[query]
    else:
        allowed = ()
    if foreign := sorted(given - set(allowed)):
        raise InputError(foreign[0], "is no option of this query", value=query if isinstance(query, str) else None)
