"""Policy-specific global sensitivity: how far the answers to a query on two neighbouring databases can be apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._check import as_integer
from mechdesign.base._errors import InputError
from mechdesign.tables._policies._cliques import block_numbers
from mechdesign.tables._policies._graphs import Edge, require_policy, require_room
from mechdesign.tables._sensitivity._brute_force import largest_change
from mechdesign.tables._sensitivity._clusterings import kmeans_sizes, kmeans_sums
from mechdesign.tables._sensitivity._constrained import under_known_counts
from mechdesign.tables._sensitivity._linear import Additive, Found, cumulative, histogram, weighted
from mechdesign.tables._sensitivity._numbers import Lattice, as_lattice, plain

if TYPE_CHECKING:
    from mechdesign.tables._policies._graphs import PolicyLike


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
        witness: an edge (x, y) of the secret graph whose move alone changes the answer most (|T| is the null node), or
            None, as where several records move under known counts.
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
    With constraints several records move at once, one of them at least along an edge and the others between any two
    values. The result is then a bound for histograms, cumulative histograms and linear queries, and the truth where
    `Sensitivity.exact` says so: see `mechdesign.tables._sensitivity._constrained`. k-means is refused.

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
        InputError: an unknown query, another norm, an option of another query, arrays of the wrong shape, or k-means
            under publicly known counts.
    """
    require_policy(policy)
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
    if isinstance(query, str) and query.startswith("kmeans"):
        refuse_kmeans(policy)
        if query == "kmeans-size":
            found = kmeans_sizes(policy, clusters)
        else:
            found = kmeans_sums(policy, norm, clusters, origins)
    elif isinstance(query, str) and query == "sum" and not policy.constraints:
        found = _sum(policy, attribute, norm)
    else:
        asked = _additive(policy, query, attribute, partition)
        graph = policy.secret_graph
        found = under_known_counts(policy, asked, norm) if policy.constraints else asked.change(graph, norm)
    return Sensitivity(plain(found.power, norm, found.floats), norm, found.power, found.exact, found.edge)


def refuse_kmeans(policy: PolicyLike) -> None:
    """Raise `InputError` where counts are publicly known."""
    if policy.constraints:
        raise InputError(
            "policy",
            "has publicly known counts",
            value=len(policy.constraints),
            bound="none for k-means",
            remedy="release a histogram, which takes known counts, and cluster its answers. Several records of two "
            "neighbouring tables differ under known counts, and for k-means no bound on what they change together is "
            "proven",
        )


def _additive(
    policy: PolicyLike,
    query: Any,
    attribute: str | None,
    partition: ArrayLike | None,
) -> Additive:
    """Return a query other than k-means."""
    domain = policy.domain
    if not isinstance(query, str):
        return weighted(as_lattice(query, domain.size))
    if query == "histogram":
        blocks = None if partition is None else block_numbers(domain, partition, "partition")
        return histogram(domain.size, blocks)
    if query == "cumulative":
        domain.ordered_attribute("cumulative counts")
        require_room(domain.size, "cumulative counts")
        return cumulative(domain.size)
    axis = _axis(policy, attribute)
    require_room(domain.size, "the sum of an attribute under publicly known counts")
    summed = domain.attributes[axis]
    weights = summed.positions[np.arange(domain.size) // math.prod(domain.shape[axis + 1 :]) % summed.size]
    return weighted(Lattice(weights[None], summed.unit))


def _axis(policy: PolicyLike, name: str | None) -> int:
    """Return the number of the attribute that a sum adds up."""
    domain = policy.domain
    if name is None and len(domain.attributes) > 1:
        raise InputError("attribute", "is not given", bound=f"one of {', '.join(domain.names)}")
    return domain.names.index((domain.attributes[0] if name is None else domain.attribute(name)).name)


def _sum(policy: PolicyLike, name: str | None, norm: int) -> Found:
    """Return the largest change of a sum where no counts are known, without an array of all values."""
    axis = _axis(policy, name)
    summed = policy.domain.attributes[axis]
    found = policy.secret_graph.spread_along(policy.domain.shape, axis, summed.positions)
    return Found(abs(found.value) ** norm * summed.unit**norm, found.edge)


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
