"""Private k-means: a fixed number of Lloyd's iterations from noisy sizes and sums of the clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, Integers, as_floats, read_only
from mechdesign.base._check import as_generator, as_integer, require_kind, require_unmasked
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact_text
from mechdesign.leakage._partition import UNKNOWN
from mechdesign.mechanisms._discrete import DiscreteLaplace, as_confidence
from mechdesign.tables._answers import check_table, true_answers
from mechdesign.tables._budget import Budget, LedgerLike, scaled
from mechdesign.tables._charges import charge
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy, as_policy, describe_policy
from mechdesign.tables._release import Description, Release
from mechdesign.tables._sensitivity._clusterings import _box
from mechdesign.tables._sensitivity._sensitivity import refuse_kmeans, sensitivity

_MOST_CLUSTERS = 1_000_000


@dataclass(frozen=True, eq=False, repr=False)
class ClusteringRelease(Release):
    """Released centroids, and the noisy sizes and sums of the last iteration, which are the answers.

    Attributes:
        centroids: float64 of shape (k, numeric attributes), in the units of the attributes.
        attributes: the names of the numeric attributes.
        iterations: how many iterations were made.
    """

    kind: ClassVar[str] = "k-means"

    centroids: Floats = field(repr=False)
    attributes: tuple[str, ...]
    iterations: int

    def __post_init__(self) -> None:
        super().__post_init__()
        read_only(self.centroids)

    def assign(self, points: ArrayLike) -> Integers:
        """Return the number of the nearest centroid of each point; points have the shape (n, numeric attributes)."""
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
    def restored(cls, common: dict[str, Any], parameters: dict[str, Any]) -> ClusteringRelease:
        """Return the release that has these common attributes and what `_parameters` gave."""
        require_kind(common, Mapping, "common", "attributes by name")
        require_kind(parameters, Mapping, "parameters", "parameters by name")
        own = dict(parameters)
        for name in ("centroids", "attributes"):
            if name not in own:
                raise InputError(f"parameters[{name!r}]", "is missing", value=sorted(map(str, own)))
        own["centroids"] = np.array(own["centroids"], dtype=np.float64)
        own["attributes"] = tuple(own["attributes"])
        return cls(**common, **own)


@in_own_arithmetic
def kmeans(
    points: object,
    k: int,
    policy: Policy,
    *,
    epsilon: object,
    iterations: int,
    rng: np.random.Generator | int | None = None,
    positions: ArrayLike | None = None,
    initial: ArrayLike | None = None,
    ledger: LedgerLike | None = None,
    confidence: object = Fraction(19, 20),
    together: bool = False,
) -> ClusteringRelease:
    """Cluster records by their numeric attributes: SuLQ k-means under a policy (Blowfish, He et al. 2014, section 6).

    Every iteration assigns each value to its nearest centroid, releases the number of records in each cluster and their
    sums about the middle of the domain's box with noise, and divides. It spends ε/iterations, half of it on the sizes
    and half on the sums, or all on the ones that need noise. Sensitivities are those of ``"kmeans-size"`` and
    ``"kmeans-sum"``, which hold whatever the clusters are, also where a record moves from one to another.

    The number of noisy answers, and all that is done, depends on the data through noisy answers only: a cluster whose
    noisy size is below 1 keeps its centroid, and centroids are kept within the box.

    Args:
        points: the table, as for `Domain.indices`, where attributes that are not numeric are left aside; or an array
            or list of points, (n, attributes) reals, each rounded to the nearest value of its attribute.
        k: the number of clusters.
        policy: what is protected. Its domain says which values are possible, and so the box and the step.
        epsilon: ε in nats, for all iterations together.
        iterations: how many; fixed beforehand.
        rng: for rehearsals only, a NumPy generator or a seed; without it the operating system's randomness.
        positions: instead of `points`, which are None then, the numbers of the values of the records.
        initial: the centroids to begin with, shape (k, numeric attributes), chosen **without looking at the data**;
            without them they are drawn uniformly from the box.
        ledger: a `mechdesign.Ledger` to be charged before any noise is drawn.
        confidence: of the interval of each size and sum.
        together: insist on the release where it, or an earlier one in the ledger, is exact and the policy of the other
            protects what it tells apart; the ledger records that.

    Raises:
        InputError: a point outside the domain, with its row and value; no points where their number is public; k or
            iterations below 1, or k above 1,000,000; ε not positive; no numeric attribute; publicly known counts, for
            which no sensitivity is proven.
        BudgetExceededError: the ledger refuses.
        ExactReleaseError: the ledger refuses what would be told apart together with an earlier release.
    """
    clusters, rounds = as_integer(k, "k", 1), as_integer(iterations, "iterations", 1)
    if clusters > _MOST_CLUSTERS:
        raise InputError("k", "is too large", value=k, bound=f"at most {_MOST_CLUSTERS:,}", remedy="ask for fewer")
    budget, level = Budget.of(epsilon), as_confidence(confidence)
    assert budget.epsilon is not None
    domain = as_policy(policy).domain
    refuse_kmeans(policy)
    box = _box(domain)
    numeric = [domain.attributes[i] for i in box.axes]
    reals = _as_reals(points, domain)
    if reals is None or positions is not None:
        numbers = domain.indices(points, positions=positions)
    else:
        numbers = domain.nearest(reals)
    # Records with one value are counted together: few values are then assigned, each once.
    values, weights = np.unique(numbers, return_counts=True)
    codes = np.unravel_index(values, domain.shape)
    places = np.column_stack([box.axes[i][codes[i]] for i in box.axes])
    radius = np.array([int(np.abs(axis).max()) for axis in box.axes.values()])
    check_table(policy, weights, int(radius.max(initial=0)), "points")
    generator = None if rng is None else as_generator(rng)
    middles = np.array([_middle(attribute) for attribute in numeric])
    if initial is None:
        centroids = np.random.default_rng(generator).uniform(-1.0, 1.0, (clusters, len(radius))) * radius
    else:
        centroids = scaled(_checked_centroids(initial, clusters, middles, scaled(radius, box.unit)), 1 / box.unit)
    noise = _noise(policy, budget.epsilon / rounds, box.unit)
    what = f"k-means with {clusters} clusters, {rounds} iterations"
    errors = [0.0 if law is None else law.standard_deviation for law in noise]
    widths = [0 if law is None else law.half_width(level) for law in noise]
    per_sum = [scaled(each[1], box.unit).item() for each in (widths, errors)]
    width = np.tile([widths[0], *[per_sum[0]] * len(radius)], clusters)
    quantities = [
        "size",
        *(f"sum of {attribute.name} - {middle}" for attribute, middle in zip(numeric, middles, strict=True)),
    ]
    named = [
        f"{law} on each {what_of} of each iteration"
        for law, what_of in zip(noise, ("size", f"sum, in steps of {exact_text(box.unit)},"), strict=True)
        if law is not None
    ]
    description = Description(
        what=f"k-means clustering with {clusters} clusters",
        policy=describe_policy(policy),
        neighbours=policy.neighbours,
        definition=policy.definition,
        mechanism=f"SuLQ k-means, {rounds} iterations: " + (" and ".join(named) or "no noise"),
        epsilon=budget.epsilon if any(noise) else Fraction(0),
        rho=None,
        step=box.unit,
        confidence=level,
        rehearsal=rng is not None,
        remarks=(
            "The answers are the sizes and sums of the last iteration; the budget is that of all iterations."
            if any(noise)
            else "The policy leaves sizes and sums exact: no two neighbouring databases differ in them.",
        ),
    )
    labels = {
        "cluster": np.repeat(np.arange(clusters), len(quantities)),
        "quantity": np.tile(np.array(quantities), clusters),
    }
    standard_errors = np.tile([errors[0], *[per_sum[1]] * len(radius)], clusters)

    def made(sizes: Integers, sums: Integers, centroids: Floats) -> ClusteringRelease:
        answers = np.column_stack((sizes, scaled(sums, box.unit))).ravel().astype(np.float64)
        return ClusteringRelease(
            description=description,
            labels=labels,
            answers=answers,
            standard_errors=standard_errors,
            low=answers - width,
            high=answers + width,
            centroids=scaled(centroids, box.unit) + middles,
            attributes=tuple(attribute.name for attribute in numeric),
            iterations=rounds,
        )

    def iterated(weights: Integers, rounds: int, laws: Sequence[DiscreteLaplace | None]) -> ClusteringRelease:
        now = centroids
        for _ in range(rounds):
            sizes, sums = _totals(places, weights, _nearest(places.astype(np.float64), now), clusters)
            if laws[0] is not None:
                sizes = laws[0].add(sizes, generator)
            if laws[1] is not None:
                sums = laws[1].add(sums, generator)
            means = sums / np.maximum(sizes, 1)[:, None]
            now = np.where(sizes[:, None] >= 1, np.clip(means, -radius, radius), now)
        return made(sizes, sums, now)

    if any(noise):
        # All that can fail is tried by now: an iteration over no records.
        iterated(np.zeros_like(weights), 1, (None, None))
        for law in noise:
            if law is not None:
                law.prepare()
        # Sums may be exact beside noisy sizes, where nobody but those in the middle of the box can be absent.
        partly = noise[0] is None or (noise[1] is None and bool(radius.any()))
        number = charge(ledger, budget, what, policy, (lambda: UNKNOWN) if partly else None, together)
        return iterated(weights, rounds, noise).entered(number)
    found = iterated(weights, rounds, noise)
    return found.entered(charge(ledger, budget.nothing(), what, policy, lambda: UNKNOWN, together))


def _as_reals(points: object, domain: Domain) -> Floats | None:
    """Return an array or list of real points as an array (n, attributes), and None for any other table.

    Whether a point is rounded must not depend on other points: in a list a whole number is a real number, too.
    """
    if not isinstance(points, np.ndarray | list | tuple):
        return None
    require_unmasked(points, "points")
    try:
        array = np.asarray(points)
    except ValueError:
        return None
    listed = not isinstance(points, np.ndarray) and all(attribute.numeric for attribute in domain.attributes)
    return array if array.ndim == 2 and array.dtype.kind in ("iuf" if listed else "f") else None


def _noise(policy: Policy, epsilon: Fraction, unit: Fraction) -> tuple[DiscreteLaplace | None, DiscreteLaplace | None]:
    """Return the noise on the sizes and on the sums, in units, of one iteration."""
    sizes = sensitivity(policy, "kmeans-size").power
    sums = sensitivity(policy, "kmeans-sum").power / unit
    share = Budget(epsilon=epsilon / ((sizes > 0) + (sums > 0) or 1))
    return share.laplace(sizes) if sizes else None, share.laplace(sums) if sums else None


def _nearest(points: Floats, centroids: Floats) -> Integers:
    """Return the number of the nearest centroid, the first of equally near ones.

    Coordinate by coordinate, each operation correctly rounded: a matrix product could round the same point differently
    at different places of the table, and a record's cluster must be a function of its value.
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


def _checked_centroids(initial: ArrayLike, clusters: int, middles: Floats, radius: Floats) -> Floats:
    given = as_floats(initial, "initial", "(k, d)")
    if given.shape != (clusters, len(middles)):
        raise InputError("initial", "has the wrong shape", value=given.shape, bound=f"({clusters}, {len(middles)})")
    # Not a number is not inside either.
    outside = ~(np.abs(given - middles) <= radius)
    if outside.any():
        row = int(np.argmax(outside.any(axis=1)))
        raise InputError(f"initial[{row}]", "is outside the box", value=given[row].tolist(), bound="within the domain")
    return given - middles
