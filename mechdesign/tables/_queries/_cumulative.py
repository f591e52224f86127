"""Cumulative, Ranges, Quantiles."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, Integers, as_array
from mechdesign.base._check import as_generator, as_integer, require_kind
from mechdesign.base._errors import InputError
from mechdesign.base._values import cached_property
from mechdesign.certify._exact import exact, exact_text
from mechdesign.mechanisms._discrete import LARGEST_VALUE, DiscreteLaplace, as_confidence
from mechdesign.tables._budget import Budget, LedgerLike
from mechdesign.tables._charges import charge, classes_of_values, number_of_records
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy, as_policy, describe_policy
from mechdesign.tables._queries._trees import RangeNoise, RangeTree, interval_about, plan_ranges
from mechdesign.tables._release import Description, Release
from mechdesign.tables._sensitivity._sensitivity import sensitivity
from mechdesign.tables._values import find_label, read_label, value_labels

Rng = np.random.Generator | int | None
_Noisy = Callable[[DiscreteLaplace, Integers], Integers]

_CONFIDENCE = Fraction(19, 20)


@dataclass(frozen=True, eq=False, repr=False)
class CumulativeRelease(Release):
    """Released cumulative counts: `answers` are monotone and between 0 and the number of records.

    `mechdesign.tables.range_query`, `cdf` and `quantile` read it.

    Attributes:
        linear: the unbiased estimates before isotonic regression, float64 (|T|,); intervals are about these.
        records: the number of records, which is public.
        theta: θ; |T| where the policy is given by its graph.
        block: how many values lie from one cumulative count that is measured to the next.
        fanout: the fan-out of the trees within blocks.
        noise: the noise on those cumulative counts and on the nodes of the trees.
    """

    kind: ClassVar[str] = "cumulative histogram"

    linear: Floats = field(repr=False)
    records: int
    theta: int
    block: int
    fanout: int
    noise: RangeNoise

    @cached_property
    def structure(self) -> RangeTree:
        """Return the structure with the variances of the noise."""
        return self.noise.structure(len(self), self.block, self.fanout)

    def _columns(self) -> dict[str, Floats]:
        return {**super()._columns(), "linear": self.linear}

    def _parameters(self) -> dict[str, Any]:
        scales = {"node_scale": self.noise.node_scale, "tree_scale": self.noise.tree_scale}
        texts = {name: None if scale is None else exact_text(scale) for name, scale in scales.items()}
        return {"records": self.records, "theta": self.theta, "block": self.block, "fanout": self.fanout, **texts}

    @classmethod
    def restored(cls, common: dict[str, Any], parameters: dict[str, Any]) -> CumulativeRelease:
        """Return the release that has these common attributes and what `_parameters` gave."""
        require_kind(common, Mapping, "common", "attributes by name")
        require_kind(parameters, Mapping, "parameters", "parameters by name")
        own = dict(parameters)
        for name in ("node_scale", "tree_scale"):
            if name not in own:
                raise InputError(f"parameters[{name!r}]", "is missing", value=sorted(map(str, own)))
        texts = {name: own.pop(name) for name in ("node_scale", "tree_scale")}
        scales = {name: None if text is None else exact(text, name) for name, text in texts.items()}
        return cls(**common, **own, noise=RangeNoise(**scales))


@in_own_arithmetic
def ordered(
    counts: ArrayLike,
    theta: int,
    epsilon: object,
    *,
    rng: Rng = None,
    ledger: LedgerLike | None = None,
    confidence: object = _CONFIDENCE,
    together: bool = False,
) -> CumulativeRelease:
    """Release a cumulative histogram by the ordered mechanism (Blowfish, He et al. 2014, section 7.1).

    Each cumulative count but the last, which is the public number of records, gets two-sided geometric noise of scale
    Δ/ε with Δ = min(θ, |T| − 1), the cumulative histogram's sensitivity. The least-squares fit that is monotone and
    between 0 and the number of records follows: isotonic regression, clipped.

    Args:
        counts: how many records have each of the |T| ordered values, non-negative integers, shape (|T|,).
        theta: θ: values at most θ places apart are protected from each other; from 1 to |T|.
        epsilon: ε in nats.
        rng: for rehearsals only, a NumPy generator or a seed; without it the operating system's randomness.
        ledger: a `mechdesign.Ledger` to be charged before any noise is drawn.
        confidence: of the interval of each cumulative count.
        together: insist on the release where it, or an earlier one in the ledger, is exact and the policy of the other
            protects what it tells apart; the ledger records that.

    Raises:
        InputError: counts that are no counts, no records, θ or ε out of range.
        BudgetExceededError: the ledger refuses.
        ExactReleaseError: the ledger refuses what would be told apart together with an earlier release.

    >>> release = ordered([5, 0, 0, 7, 1], theta=1, epsilon=100, rng=1)
    >>> release.answers.tolist()
    [5.0, 5.0, 5.0, 12.0, 13.0]
    """
    histogram, threshold, budget = _checked(counts, theta, epsilon)
    way = _ordered(_policy(len(histogram), threshold), threshold, budget)
    return _release(way, histogram, budget, rng, ledger, confidence, together)


@in_own_arithmetic
def release_cumulative(
    data: object,
    policy: Policy,
    epsilon: object,
    *,
    rng: Rng = None,
    positions: ArrayLike | None = None,
    ledger: LedgerLike | None = None,
    confidence: object = _CONFIDENCE,
    together: bool = False,
) -> CumulativeRelease:
    """Release a cumulative histogram under any policy that keeps the number of records, known counts included.

    Each cumulative count but the last, which is the public number of records, gets two-sided geometric noise of scale
    Δ/ε, Δ the sensitivity of the cumulative histogram under the policy; isotonic regression follows, as in `ordered`.

    Args:
        data: the table, as for `Domain.indices`.
        policy: what is protected, on one ordered attribute.
        epsilon: ε in nats.
        rng: for rehearsals only, a NumPy generator or a seed; without it the operating system's randomness.
        positions: instead of `data`, which is None then, the numbers of the values of the records.
        ledger: a `mechdesign.Ledger` to be charged before any noise is drawn.
        confidence: of the interval of each cumulative count.
        together: insist on the release where it, or an earlier one in the ledger, is exact and the policy of the other
            protects what it tells apart; the ledger records that.

    Raises:
        InputError: records outside the domain or none, several attributes or one without order, a policy that lets
            records be added or removed, ε not positive, known counts that do not hold.
        BudgetExceededError: the ledger refuses.
        ExactReleaseError: the ledger refuses what would be told apart together with an earlier release.

    >>> policy = Policy.line(Domain({"x": range(6)}), constraints=[([1, 1, 1, 0, 0, 0], 3)])
    >>> release = release_cumulative([0, 1, 1, 4, 5], policy, epsilon=1, rng=1)
    >>> policy.sensitivity("cumulative"), release.noise.node_scale
    (4, Fraction(4, 1))
    """
    return cumulative_by_plan(
        data,
        policy,
        epsilon,
        None,
        positions=positions,
        rng=rng,
        ledger=ledger,
        confidence=confidence,
        together=together,
    )


def cumulative_by_plan(
    data: object,
    policy: Policy,
    epsilon: object,
    theta: int | None,
    mechanism: str = "ordered",
    fanout: int | None = None,
    *,
    positions: ArrayLike | None = None,
    read: Callable[[CumulativeRelease], object] = lambda _: None,
    rng: Rng = None,
    ledger: LedgerLike | None = None,
    confidence: object = _CONFIDENCE,
    together: bool = False,
) -> CumulativeRelease:
    """Release a cumulative histogram by a mechanism that was chosen, in the words of the policy.

    Args:
        data: the table, as for `Domain.indices`.
        policy: what is protected, on one ordered attribute.
        epsilon: ε in nats.
        theta: how far apart the values are that the policy joins, from 1 to |T|; None where the sensitivity under the
            policy is to be found, as under known counts.
        mechanism: "ordered", "ordered-hierarchical" or "hierarchical".
        fanout: of the trees; without it the one of least expected error.
        positions: instead of `data`, which is None then, the numbers of the values of the records.
        read: is called on what would be released of a public table without noise, before the ledger is charged: what it
            raises costs nothing.
        rng: for rehearsals only.
        ledger: a ledger to be charged before any noise is drawn.
        confidence: of the interval of each cumulative count.
        together: see `release_cumulative`.

    Raises:
        InputError: as for `release_cumulative`.
        BudgetExceededError: the ledger refuses.
        ExactReleaseError: the ledger refuses what would be told apart together with an earlier release.
    """
    budget, domain = Budget.of(epsilon), as_policy(policy).domain
    if theta is None:
        scale = cumulative_scale(policy, budget)
        histogram = domain.counts(data, positions=positions)
        policy.check_counts(histogram)
        way = _Way("ordered mechanism", policy, domain.size, 1, 2, RangeNoise(scale, None))
    else:
        histogram = domain.counts(data, positions=positions)
        reach = domain.size if mechanism == "hierarchical" else theta
        make = _ordered if mechanism == "ordered" else functools.partial(_hierarchical, fanout=fanout)
        histogram, threshold, budget = _checked(histogram, reach, epsilon)
        way = make(policy, threshold, budget)
    way = replace(way, labels=value_labels(domain), read=read)
    return _release(way, histogram, budget, rng, ledger, confidence, together)


def cumulative_scale(policy: Policy, budget: Budget) -> Fraction | None:
    """Return the scale of the noise on each cumulative count, None where they are exact.

    Raises:
        InputError: several attributes, one without order, or records that are added or removed.
    """
    policy.domain.ordered_attribute("a cumulative histogram")
    if policy.unbounded:
        raise InputError(
            "policy",
            "lets records be added or removed",
            bound="a public number of records for a cumulative histogram",
            remedy='ask for a workload of queries = "prefixes" or "ranges" instead, in Python by release_linear',
        )
    power = sensitivity(policy, "cumulative").power
    return budget.laplace(power).scale if power else None


@in_own_arithmetic
def ordered_hierarchical(
    counts: ArrayLike,
    theta: int,
    epsilon: object,
    *,
    fanout: int | None = None,
    rng: Rng = None,
    ledger: LedgerLike | None = None,
    confidence: object = _CONFIDENCE,
    together: bool = False,
) -> CumulativeRelease:
    """Release a cumulative histogram by the ordered hierarchical mechanism (Blowfish, He et al. 2014, section 7.2).

    The cumulative counts at every θ-th value get noise of scale 1/ε_S, the nodes of the trees in between noise of scale
    2h/ε_H, h being the height of the trees; ε_S + ε_H = ε. Least squares makes them consistent and uses all of them for
    every answer, isotonic regression follows. With θ = 1 it is the ordered mechanism, with θ = |T| the hierarchical one
    of differential privacy.

    Args:
        counts: how many records have each of the |T| ordered values, non-negative integers, shape (|T|,).
        theta: θ: values at most θ places apart are protected from each other; from 1 to |T|.
        epsilon: ε in nats.
        fanout: of the trees; without it the one of least expected error.
        rng: for rehearsals only, a NumPy generator or a seed; without it the operating system's randomness.
        ledger: a `mechdesign.Ledger` to be charged before any noise is drawn.
        confidence: of the interval of each cumulative count.
        together: insist on the release where it, or an earlier one in the ledger, is exact and the policy of the other
            protects what it tells apart; the ledger records that.

    Raises:
        InputError: counts that are no counts, no records, θ, ε or the fan-out out of range.
        BudgetExceededError: the ledger refuses.
        ExactReleaseError: the ledger refuses what would be told apart together with an earlier release.
    """
    histogram, threshold, budget = _checked(counts, theta, epsilon)
    way = _hierarchical(_policy(len(histogram), threshold), threshold, budget, fanout)
    return _release(way, histogram, budget, rng, ledger, confidence, together)


@in_own_arithmetic
def hierarchical(
    counts: ArrayLike,
    epsilon: object,
    fanout: int | None = None,
    *,
    rng: Rng = None,
    ledger: LedgerLike | None = None,
    confidence: object = _CONFIDENCE,
    together: bool = False,
) -> CumulativeRelease:
    """Release a cumulative histogram under differential privacy: the ordered hierarchical mechanism with θ = |T|.

    The method of Hay, Rastogi, Miklau and Suciu (2010). Arguments and errors are those of `ordered_hierarchical`.
    """
    return ordered_hierarchical(
        counts,
        len(_as_counts(counts)),
        epsilon,
        fanout=fanout,
        rng=rng,
        ledger=ledger,
        confidence=confidence,
        together=together,
    )


@dataclass(frozen=True)
class _Way:
    """How a cumulative histogram is to be released; `read` is called on one without noise before any is drawn."""

    name: str
    policy: Policy
    theta: int
    block: int
    fanout: int
    noise: RangeNoise
    labels: Mapping[str, NDArray[Any]] | None = None
    read: Callable[[CumulativeRelease], object] = lambda _: None


def _ordered(policy: Policy, theta: int, budget: Budget) -> _Way:
    sensitivity = min(theta, policy.domain.size - 1)
    scale = None if sensitivity == 0 else budget.laplace(sensitivity).scale
    return _Way("ordered mechanism", policy, theta, 1, 2, RangeNoise(scale, None))


def _hierarchical(policy: Policy, theta: int, budget: Budget, fanout: int | None) -> _Way:
    plan = plan_ranges(policy.domain.size, theta, budget.epsilon, fanout=fanout)
    noise = plan.noise
    name = "hierarchical mechanism" if theta == plan.size else "ordered hierarchical mechanism"
    if noise.tree_scale is not None:
        name += f", trees of fan-out {plan.fanout} and height {plan.levels} within blocks of {theta} values"
        name += f", ε_S = {float(plan.epsilon_nodes):.6g} and ε_H = {float(plan.epsilon_tree):.6g}"
    return _Way(name, policy, theta, theta, plan.fanout, noise)


def _release(
    way: _Way,
    histogram: Integers,
    budget: Budget,
    rng: Rng,
    ledger: LedgerLike | None,
    confidence: object,
    together: bool,
) -> CumulativeRelease:
    size, records = len(histogram), int(histogram.sum())
    level = as_confidence(confidence)
    generator = None if rng is None else as_generator(rng)
    policy = way.policy
    mechanism = f"{way.name}: {way.noise}"
    remarks = ["The number of records is public and is given exactly."]
    if way.noise:
        inference = "isotonic regression" if way.noise.tree_scale is None else "least squares and isotonic regression"
        mechanism += f", then {inference}"
        remarks.append("Standard errors and intervals are those of the unbiased estimates before isotonic regression.")
        if way.noise.tree_scale is not None:
            remarks.append("That the intervals have the stated confidence was computed for many cases, and not proven.")
    structure = way.noise.structure(size, way.block, way.fanout) if way.noise else None
    variances = np.zeros(size) if structure is None else structure.prefix_variances()
    widths = way.noise.half_widths(variances, 1, level)
    spent = budget if way.noise else budget.nothing()
    description = Description(
        what="cumulative histogram",
        policy=describe_policy(policy),
        neighbours=policy.neighbours,
        definition=policy.definition,
        mechanism=mechanism,
        epsilon=spent.epsilon,
        rho=None,
        step=Fraction(1),
        confidence=level,
        rehearsal=rng is not None,
        remarks=tuple(remarks),
    )
    standard_errors = np.sqrt(variances)
    labels = {"value": np.arange(size)} if way.labels is None else way.labels

    def made(linear: Floats) -> CumulativeRelease:
        answers = _inferred(linear, records)
        low, high = interval_about(linear, widths, answers, records)
        return CumulativeRelease(
            description=description,
            labels=labels,
            answers=answers,
            standard_errors=standard_errors,
            low=low,
            high=high,
            linear=linear,
            records=records,
            theta=way.theta,
            block=way.block,
            fanout=way.fanout,
            noise=way.noise,
        )

    what = f"cumulative histogram ({way.name})"
    if structure is None:
        found = made(np.cumsum(histogram).astype(np.float64))
        way.read(found)
        return found.entered(charge(ledger, spent, what, policy, lambda: classes_of_values(size), together))
    # All that can fail is tried by now, on a table of as many records and without noise.
    way.noise.prepare()
    public = np.zeros_like(histogram)
    public[0] = records
    way.read(made(_measured(public, way, structure, lambda law, values: values)))
    number = charge(ledger, spent, what, policy, lambda: number_of_records(size), together)
    return made(_measured(histogram, way, structure, lambda law, values: law.add(values, generator))).entered(number)


def _measured(histogram: Integers, way: _Way, structure: RangeTree, noisy: _Noisy) -> Floats:
    """Return the unbiased estimates of the cumulative counts from what is measured with noise."""
    cumulative = np.cumsum(histogram)
    nodes = cumulative[way.block - 1 : -1 : way.block]
    if (law := way.noise.node_law) is not None:
        nodes = noisy(law, nodes)
    trees: list[list[Floats]] = []
    if (law := way.noise.tree_law) is not None:
        for (block, _), rows in zip(structure.shapes, structure.pieces(histogram), strict=True):
            trees.append([noisy(law, level).astype(np.float64) for level in block.counts(rows)])
    linear: Floats = structure.fit(nodes.astype(np.float64), trees, int(cumulative[-1]))
    return linear


def _inferred(linear: Floats, records: int) -> Floats:
    """Return the monotone fit between 0 and the number of records, which the last count is."""
    fitted = np.full(len(linear), float(records))
    if len(linear) > 1:
        fitted[:-1] = np.clip(isotonic_regression(linear[:-1]).x, 0, records)
    return fitted


def _policy(size: int, theta: int) -> Policy:
    domain = Domain({"value": range(size)})
    return Policy.full(domain) if theta >= size - 1 else Policy.threshold(domain, theta)


def _checked(counts: ArrayLike, theta: int, epsilon: object) -> tuple[Integers, int, Budget]:
    histogram = _as_counts(counts)
    threshold = as_integer(theta, "theta", 1)
    if threshold > len(histogram):
        raise InputError("theta", "is above the number of values", value=theta, bound=f"from 1 to {len(histogram)}")
    return histogram, threshold, Budget.of(epsilon)


def _as_counts(counts: ArrayLike) -> Integers:
    array = as_array(counts, "counts")
    if array.ndim != 1 or array.size == 0:
        raise InputError("counts", "are not a list of counts", value=array.shape, bound="one count per value, (|T|,)")
    if array.dtype.kind not in "iuf":
        raise InputError("counts", f"are of type {array.dtype}", bound="integers")
    good = (array >= 0) & (array <= LARGEST_VALUE)
    if array.dtype.kind == "f":
        good &= array == np.rint(array)
    if not good.all():
        place = int(np.argmin(good))
        raise InputError(
            f"counts[{place}]", "is no number of records", value=array[place].item(), bound="an integer from 0 to 2^61"
        )
    histogram = array.astype(np.int64)
    total = int(histogram.astype(object).sum()) if float(array.sum()) > 2**60 else int(histogram.sum())
    if total == 0 or total > LARGEST_VALUE:
        raise InputError("counts", "hold no record" if total == 0 else "hold too many records", bound="from 1 to 2^61")
    return histogram


@dataclass(frozen=True)
class Estimate:
    """An estimated count.

    Attributes:
        value: the estimate, after inference.
        standard_error: of the unbiased estimate before isotonic regression.
        low: lower end of the interval.
        high: upper end of the interval.
        confidence: the probability with which the interval contains the true count, at least.
    """

    value: float
    standard_error: float
    low: float
    high: float
    confidence: Fraction

    def __float__(self) -> float:
        return self.value

    def interval(self) -> tuple[float, float]:
        """Return the ends of the interval."""
        return self.low, self.high


@dataclass(frozen=True)
class Quantile:
    """An estimated quantile: the least value at which the distribution function reaches a probability.

    Attributes:
        value: the value, an integer where it is whole and else a float.
        low: lower end of the interval, a value.
        high: upper end of the interval, a value.
        confidence: the probability with which the interval contains the true quantile, at least.
    """

    value: int | float
    low: int | float
    high: int | float
    confidence: Fraction

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def interval(self) -> tuple[int | float, int | float]:
        """Return the ends of the interval."""
        return self.low, self.high


@dataclass(frozen=True, eq=False)
class Distribution:
    """A distribution function: the share of records at or below each value, with an interval for each.

    Attributes:
        values: float64 (|T|,).
        low: lower ends of the intervals.
        high: upper ends of the intervals.
        confidence: the probability with which any one interval contains the true share, at least.
        points: the values of the domain that the shares belong to, numbers or texts, shape (|T|,).
    """

    values: Floats
    low: Floats
    high: Floats
    confidence: Fraction
    points: NDArray[Any]


@in_own_arithmetic
def range_query(
    release: CumulativeRelease, low: object = None, high: object = None, *, positions: tuple[int, int] | None = None
) -> Estimate:
    """Estimate how many records have a value from `low` to `high`, both included.

    A release that was made from counts has the values 0, 1, …

    Args:
        release: what `release_cumulative`, `ordered`, `hierarchical` or `ordered_hierarchical` returned.
        low: the first value, a value of the domain.
        high: the last value.
        positions: instead of both the numbers of the first and the last value, from 0 to |T| − 1.

    Raises:
        InputError: an end that is no value of the domain, also where it is the number of one, or `low` above `high`.

    >>> from mechdesign.tables._queries._cumulative import release_cumulative
    >>> from mechdesign.tables._domain import Domain
    >>> from mechdesign.tables._policy import Policy
    >>> ages = Policy.line(Domain({"age": range(17, 91)}))
    >>> answer = range_query(release_cumulative([30, 31, 60], ages, epsilon=100, rng=1), 17, 31)
    >>> float(answer), answer.interval()
    (2.0, (2.0, 2.0))
    """
    _check(release)
    if positions is not None:
        if low is not None or high is not None:
            raise InputError("positions", "are given beside low and high", bound="either of them")
        first, last = _checked_positions(positions, len(release))
    else:
        labels = _values(release)
        first, last = (_number(end, name, labels) for end, name in ((low, "low"), (high, "high")))
        if first > last:
            raise InputError("low", "is above high", value=low, bound=f"at most {high}", remedy="exchange the two")
    before = first - 1

    def difference(counts: Floats) -> float:
        return float(counts[last] - (counts[before] if first else 0.0))

    # Ends that are not known exactly.
    nodes = (first > 0) + (last < len(release) - 1)
    variance = release.structure.variance(first, last) if release.noise and nodes else 0.0
    width = release.noise.half_widths(np.array(variance), nodes, release.description.confidence)
    value = difference(release.answers)
    ends = interval_about(difference(release.linear), width, value, release.records)
    return Estimate(value, math.sqrt(variance), float(ends[0]), float(ends[1]), release.description.confidence)


@in_own_arithmetic
def cdf(release: CumulativeRelease) -> Distribution:
    """Return the distribution function of the records over the values."""
    _check(release)
    records = release.records
    return Distribution(
        release.answers / records,
        release.low / records,
        release.high / records,
        release.description.confidence,
        _values(release),
    )


@in_own_arithmetic
def quantile(release: CumulativeRelease, probability: object) -> Quantile:
    """Estimate the least value at which the distribution function is at least `probability`.

    A release that was made from counts has the values 0, 1, …

    If the true quantile is v, its interval misses v only where the interval of the cumulative count at v lies below the
    probability, or that at v − 1 not below it: each has half the error probability, as the noise is symmetric.

    Args:
        release: what `release_cumulative`, `ordered`, `hierarchical` or `ordered_hierarchical` returned.
        probability: above 0 and at most 1.

    Raises:
        InputError: another probability.

    >>> from mechdesign.tables._queries._cumulative import release_cumulative
    >>> from mechdesign.tables._domain import Domain
    >>> from mechdesign.tables._policy import Policy
    >>> ages = Policy.line(Domain({"age": range(17, 91)}))
    >>> quantile(release_cumulative([30, 31, 60], ages, epsilon=100, rng=1), 0.5).value
    31
    """
    numbers, labels = quantile_numbers(release, probability), _values(release)
    low, value, high = (read_label(labels[number]) for number in numbers)
    return Quantile(value, low, high, release.description.confidence)


def quantile_numbers(release: CumulativeRelease, probability: object) -> tuple[int, int, int]:
    """Return the numbers of three values: the lower end of a quantile's interval, itself, the upper end."""
    _check(release)
    share = exact(probability, "probability")
    if not 0 < share <= 1:
        raise InputError("probability", "is out of range", value=probability, bound="above 0 and at most 1")
    # The least whole number of records that is a share of at least this.
    needed = math.ceil(share * release.records)
    value = int(np.argmax(release.answers >= min(float(share * release.records), float(release.records))))
    low = int(np.argmax(release.high >= needed))
    short = np.flatnonzero(release.low < needed)
    high = min(int(short[-1]) + 1 if short.size else 0, len(release) - 1)
    return min(low, value), value, max(high, value)


def _check(release: object) -> None:
    if not isinstance(release, CumulativeRelease):
        raise InputError(
            "release",
            "is no cumulative histogram",
            value=type(release).__name__,
            bound="what ordered, hierarchical or ordered_hierarchical returned",
        )


def _values(release: CumulativeRelease) -> NDArray[Any]:
    """Return the labels of the values, ascending, shape (|T|,)."""
    return next(iter(release.labels.values()))


def _number(value: object, path: str, labels: NDArray[Any]) -> int:
    if value is None:
        raise InputError(path, "is not given", bound="a value of the domain", remedy="give both ends, or positions=")
    return find_label(labels, value, path)


def _checked_positions(positions: object, size: int) -> tuple[int, int]:
    try:
        first, last = (operator.index(end) for end in positions)  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        raise InputError("positions", "are no pair of integers", value=positions, bound="two of them") from error
    if any(isinstance(end, bool) for end in positions) or not 0 <= first <= last < size:  # type: ignore[attr-defined]
        bound = f"two of them, 0 <= first <= last <= {size - 1}"
        raise InputError("positions", "are no range of values", value=positions, bound=bound)
    return first, last
