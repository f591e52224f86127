"""Private k-means: a fixed number of Lloyd's iterations with noisy sizes and sums of the clusters."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, Integers, as_floats, read_only
from mechdesign.base._check import as_integer, require_unmasked
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact_text
from mechdesign.leakage._partition import UNKNOWN
from mechdesign.mechanisms._discrete import DiscreteLaplace
from mechdesign.tables._budget import Budget, scale_numbers
from mechdesign.tables._charges import Terms
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy
from mechdesign.tables._query import Option, Plan, Query
from mechdesign.tables._records import Records, check_table, true_answers
from mechdesign.tables._release import Release
from mechdesign.tables._sensitivity._clusterings import Box, box_of
from mechdesign.tables._sensitivity._linear import plain
from mechdesign.tables._sensitivity._sensitivity import (
    Sensitivity,
    of_cluster_sizes,
    of_cluster_sums,
    refuse_kmeans,
)

_MOST_CLUSTERS = 1_000_000


@dataclass(frozen=True, eq=False, repr=False)
class ClusteringRelease(Release):
    """Released centroids; the answers are the noisy sizes and sums of the last iteration.

    Attributes:
        description: the released quantity, the policy and the cost.
        labels: the cluster and the quantity of each answer, arrays of shape (q,).
        answers: the noisy sizes and sums, float64 of shape (q,).
        standard_errors: the standard errors of the answers, float64 of shape (q,).
        low: the lower ends of the intervals, float64 of shape (q,).
        high: the upper ends of the intervals, float64 of shape (q,).
        centroids: the centroids, float64 of shape (k, numeric attributes), in the units of the attributes.
        attributes: the names of the numeric attributes.
        iterations: the number of iterations.

    >>> from mechdesign.tables import Domain, KMeans, Policy
    >>> policy = Policy.full(Domain({"x": range(50)}))
    >>> release = KMeans(2, iterations=5).release([1, 2, 40, 41] * 50, policy, epsilon=1000, rng=1)
    >>> len(set(release.assign([[0.0], [45.0]]).tolist()))
    2
    """

    kind: ClassVar[str] = "k-means"
    needed: ClassVar[tuple[str, ...]] = ("centroids", "attributes")

    centroids: Floats = field(repr=False)
    attributes: tuple[str, ...]
    iterations: int

    def __post_init__(self) -> None:
        super().__post_init__()
        read_only(self.centroids)

    def assign(self, points: ArrayLike) -> Integers:
        """Return the index of the nearest centroid of each point.

        Args:
            points: the points, shape (n, numeric attributes).

        Returns:
            The indices, int64 of shape (n,).
        """
        places = as_floats(points, "points", "(n, d)")
        if places.shape[1] != self.centroids.shape[1]:
            bound = f"of shape (n, {self.centroids.shape[1]}), a column for each of {', '.join(self.attributes)}"
            raise InputError("points", "has the wrong number of columns", value=places.shape, bound=bound)
        return _nearest(places, self.centroids)

    def _parameters(self) -> dict[str, Any]:
        return {
            "centroids": self.centroids.tolist(),
            "attributes": list(self.attributes),
            "iterations": self.iterations,
        }

    @classmethod
    def _read(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        centroids = np.array(parameters["centroids"], dtype=np.float64)
        return {**parameters, "centroids": centroids, "attributes": tuple(parameters["attributes"])}


@dataclass(frozen=True, eq=False)
class KMeans(Query[ClusteringRelease]):
    """A clustering of records by their numeric attributes: SuLQ k-means under a policy (Blowfish, He et al. 2014).

    The records are a table of any form, whose attributes that are not numeric are ignored. Real points of shape
    (n, attributes) are also accepted; they are rounded to the nearest values of the domain.

    Every iteration assigns each value to its nearest centroid. Every iteration then adds noise to the size of each
    cluster and to the sums of its records' attributes. Sums are measured from the centre of the domain's box. Each
    noisy sum divided by the noisy size is a new centroid. An iteration spends ε/iterations: half on the sizes and half
    on the sums. If only the sizes or only the sums need noise, they get the whole ε/iterations. The sensitivities
    ``"kmeans-size"`` and ``"kmeans-sum"`` hold for all clusterings, even if a record moves to another cluster.

    All steps depend on the data only through noisy answers. A cluster whose noisy size is below 1 keeps its centroid,
    and centroids are clipped to the box.

    Attributes:
        k: the number of clusters.
        iterations: the number of iterations, fixed beforehand.
        initial: the initial centroids, shape (k, numeric attributes), chosen **without looking at the data**. By
            default, the centroids are drawn uniformly from the box.

    Raises:
        InputError: k or iterations is below 1, k is above 1,000,000, or the centroids have the wrong shape.

    >>> from mechdesign.tables import Domain, Policy
    >>> policy = Policy.full(Domain({"x": range(50)}))
    >>> KMeans(2, iterations=5).plan(policy, epsilon=1).queries
    4
    >>> KMeans(2, iterations=5).release([1, 2, 40, 41], policy, epsilon=1, rng=1).centroids.shape
    (2, 1)
    """

    k: int
    iterations: int = 10
    initial: ArrayLike | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", as_integer(self.k, "k", 1, _MOST_CLUSTERS))
        object.__setattr__(self, "iterations", as_integer(self.iterations, "iterations", 1))
        if self.initial is not None:
            object.__setattr__(self, "initial", as_floats(self.initial, "initial", "(k, d)"))

    def _sensitivity(self, policy: Policy, norm: int) -> Sensitivity:
        # The sum of the two powers bounds the joint sensitivity of the sizes and sums of one iteration.
        power = of_cluster_sizes(policy, norm).power + of_cluster_sums(policy, norm).power
        return Sensitivity(plain(power, norm, False), norm, power, False, None)

    def _plan(self, policy: Policy, budget: Budget) -> Plan:
        sizes, sums, share = self._shares(policy, budget)
        numeric = [attribute for attribute in policy.domain.attributes if attribute.numeric]
        detail = f"in each of {self.iterations} iterations"
        rows = tuple(
            Option(
                name,
                f"sensitivity {float(power):.6g}, {detail}",
                math.sqrt(2) * float(power / share) if power else 0.0,
                taken=True,
            )
            for name, power in (("size of a cluster", sizes), ("sum over a cluster", sums))
        )
        plan = Plan.of("k-means clustering", self.k * (1 + len(numeric)), policy, budget, rows)
        return replace(plan, options=rows) if any(row.error for row in rows) else plan

    def _shares(self, policy: Policy, budget: Budget) -> tuple[Fraction, Fraction, Fraction]:
        """Return the sensitivities of sizes and sums, and the ε per iteration for each quantity that needs noise."""
        epsilon = budget.in_epsilon("k-means")
        sizes, sums = of_cluster_sizes(policy, 1).power, of_cluster_sums(policy, 1).power
        return sizes, sums, epsilon / self.iterations / ((sizes > 0) + (sums > 0) or 1)

    def noise(self, policy: Policy, budget: Budget, unit: Fraction) -> list[DiscreteLaplace | None]:
        """Return the noise on the sizes and on the sums of one iteration.

        Args:
            policy: the policy.
            budget: the budget of all iterations.
            unit: the step of the sums.

        Returns:
            The law of the noise on the sizes, and the law of the noise on the sums in steps; None without noise.
        """
        sizes, sums, epsilon = self._shares(policy, budget)
        share = Budget(epsilon=epsilon)
        return [share.laplace(power) if power else None for power in (sizes, sums / unit)]

    def _release(self, terms: Terms, records: Records) -> Any:
        policy = terms.policy
        domain = policy.domain
        refuse_kmeans(policy)
        box = box_of(domain)
        reals = _as_reals(records.data, domain)
        # Records with the same value are counted first, so each value is assigned to a cluster only once.
        if reals is None:
            values, weights = records.weighted()
        else:
            values, weights = np.unique(domain.nearest(reals), return_counts=True)
        codes = np.unravel_index(values, domain.shape)
        places = np.column_stack([box.axes[i][codes[i]] for i in box.axes])
        radius = np.array([int(np.abs(axis).max()) for axis in box.axes.values()])
        check_table(policy, weights, int(radius.max(initial=0)), "data", records.name)
        middles = np.array([_middle(domain.attributes[i]) for i in box.axes])
        if self.initial is None:
            start = np.random.default_rng(terms.generator).uniform(-1.0, 1.0, (self.k, len(radius))) * radius
        else:
            start = scale_numbers(
                _check_centroids(self.initial, self.k, middles, scale_numbers(radius, box.unit)), 1 / box.unit
            )
        noise = self.noise(policy, terms.budget, box.unit)
        make_release = self._prepare_release(terms, box, middles, noise)

        def iterate(weights: Integers, rounds: int, laws: Sequence[DiscreteLaplace | None]) -> ClusteringRelease:
            now = start
            for _ in range(rounds):
                sizes, sums = _totals(places, weights, _nearest(places.astype(np.float64), now), self.k)
                if laws[0] is not None:
                    sizes = laws[0].add(sizes, terms.generator)
                if laws[1] is not None:
                    sums = laws[1].add(sums, terms.generator)
                means = sums / np.maximum(sizes, 1)[:, None]
                now = np.where(sizes[:, None] >= 1, np.clip(means, -radius, radius), now)
            return make_release(sizes, sums, now)

        def rehearse() -> ClusteringRelease:
            for law in noise:
                if law is not None:
                    law.prepare()
            # The rehearsal runs one iteration on an empty table.
            return iterate(np.zeros_like(weights), 1, (None, None))

        # If only records at the centre of the box may be absent, sizes are noisy but sums are exact.
        partly = noise[0] is None or (noise[1] is None and bool(radius.any()))
        return terms.release(
            f"k-means with {self.k} clusters, {self.iterations} iterations",
            lambda: iterate(weights, self.iterations, noise),
            rehearse if any(noise) else None,
            (lambda: UNKNOWN) if partly else None,
        )

    def _prepare_release(
        self, terms: Terms, box: Box, middles: Floats, noise: Sequence[DiscreteLaplace | None]
    ) -> Callable[[Integers, Integers, Floats], ClusteringRelease]:
        """Return a function that builds a release from sizes, and from sums and centroids relative to the centre."""
        names = [terms.policy.domain.names[i] for i in box.axes]
        errors = [0.0 if law is None else law.standard_deviation for law in noise]
        widths = [0 if law is None else law.half_width(terms.level) for law in noise]
        per_sum = [scale_numbers(each[1], box.unit).item() for each in (widths, errors)]
        width = np.tile([widths[0], *[per_sum[0]] * len(names)], self.k)
        quantities = ["size", *(f"sum of {name} - {middle}" for name, middle in zip(names, middles, strict=True))]
        named = [
            f"{law.describe(step)} on each {what} of each iteration"
            for law, what, step in (
                (noise[0], "size", Fraction(1)),
                (noise[1], f"sum, in steps of {exact_text(box.unit)},", box.unit),
            )
            if law is not None
        ]
        remark = (
            "The answers are the sizes and sums of the last iteration; the budget covers all iterations."
            if named
            else "The policy leaves sizes and sums exact, because they are equal for every two neighbouring databases."
        )
        description = terms.describe(
            f"k-means clustering with {self.k} clusters",
            f"SuLQ k-means, {self.iterations} iterations: " + (" and ".join(named) or "no noise"),
            (remark,),
            step=box.unit,
            noisy=bool(named),
        )
        labels = {
            "cluster": np.repeat(np.arange(self.k), len(quantities)),
            "quantity": np.tile(np.array(quantities), self.k),
        }
        standard_errors = np.tile([errors[0], *[per_sum[1]] * len(names)], self.k)

        def make_release(sizes: Integers, sums: Integers, centroids: Floats) -> ClusteringRelease:
            answers = np.column_stack((sizes, scale_numbers(sums, box.unit))).ravel().astype(np.float64)
            return ClusteringRelease(
                description=description,
                labels=labels,
                answers=answers,
                standard_errors=standard_errors,
                low=answers - width,
                high=answers + width,
                centroids=scale_numbers(centroids, box.unit) + middles,
                attributes=tuple(names),
                iterations=self.iterations,
            )

        return make_release


def _as_reals(points: object, domain: Domain) -> Floats | None:
    """Return an array or list of real points as an array (n, attributes), or None for any other table.

    Rounding a point must not depend on other points, so integers in a list are also read as real numbers.
    """
    if not isinstance(points, np.ndarray | list | tuple):
        return None
    require_unmasked(points, "data")
    try:
        array = np.asarray(points)
    except ValueError:
        return None
    listed = not isinstance(points, np.ndarray) and all(attribute.numeric for attribute in domain.attributes)
    return array if array.ndim == 2 and array.dtype.kind in ("iuf" if listed else "f") else None


def _nearest(points: Floats, centroids: Floats) -> Integers:
    """Return the index of the nearest centroid, the least index if several centroids are equally near.

    A record's cluster must be a function of its value. Squared distances are therefore computed for each coordinate
    with correctly rounded operations. A matrix product might round equal rows differently.
    """
    nearest = np.zeros(len(points), dtype=np.int64)
    least = np.full(len(points), np.inf)
    for number, centroid in enumerate(centroids.tolist()):
        distance = np.zeros(len(points))
        for axis, coordinate in enumerate(centroid):
            difference = points[:, axis] - coordinate
            distance += difference * difference
        closer = distance < least
        nearest[closer] = number
        least = np.minimum(least, distance)
    return nearest


def _totals(places: Integers, weights: Integers, labels: Integers, clusters: int) -> tuple[Integers, Integers]:
    sizes = np.zeros(clusters, dtype=np.int64)
    sums = np.zeros((clusters, places.shape[1]), dtype=np.int64)
    for number in range(clusters):
        inside = np.where(labels == number, weights, 0)
        sizes[number] = inside.sum()
        sums[number] = true_answers(places.T, inside)
    return sizes, sums


def _middle(attribute: Any) -> float:
    low, high = int(attribute.positions.min()), int(attribute.positions.max())
    return float(Fraction(low + high, 2) * attribute.unit)


def _check_centroids(initial: ArrayLike, clusters: int, middles: Floats, radius: Floats) -> Floats:
    given = np.asarray(initial)
    if given.shape != (clusters, len(middles)):
        raise InputError("initial", "has the wrong shape", value=given.shape, bound=f"({clusters}, {len(middles)})")
    # The negated comparison also rejects NaN.
    outside = ~(np.abs(given - middles) <= radius)
    if outside.any():
        row = int(np.argmax(outside.any(axis=1)))
        raise InputError(f"initial[{row}]", "is outside the box", value=given[row].tolist(), bound="within the domain")
    return given - middles
