"""Cumulative histograms, and the ranges and quantiles estimated from them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, Integers, as_array
from mechdesign.base._check import as_integer, require_kind
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact, exact_text
from mechdesign.mechanisms._discrete import LARGEST_VALUE, DiscreteLaplace
from mechdesign.tables._budget import Budget, LedgerLike
from mechdesign.tables._charges import CONFIDENCE, Rng, Terms, classes_of_values, number_of_records
from mechdesign.tables._domain import Domain
from mechdesign.tables._policies._graphs import require_room
from mechdesign.tables._policy import Policy, as_policy
from mechdesign.tables._queries._cumulative_release import (
    CumulativeRelease,
    NamedQuantile,
    NamedRange,
    as_probability,
    list_values,
    quantile_numbers,
    range_query,
    require_cumulative,
)
from mechdesign.tables._queries._trees import RangeNoise, RangeTree, as_fanout, interval_about, plan_ranges
from mechdesign.tables._query import Option, Plan, Query
from mechdesign.tables._release import Release
from mechdesign.tables._sensitivity._sensitivity import Sensitivity, of_cumulative_counts
from mechdesign.tables._values import (
    check_pairs,
    check_positions,
    range_positions,
    value_labels,
)
from mechdesign.tables._workload import as_workload, compare_strategies, prefixes

Spans = Sequence[tuple[int, int]]
_Noisy = Callable[[DiscreteLaplace, Integers], Integers]

_MECHANISMS = ("ordered", "ordered-hierarchical", "hierarchical")
_INFERENCE = (
    "The ordered and hierarchical mechanisms end with isotonic regression, which never increases the total squared "
    "error of the cumulative counts. The errors in the plan exclude the effect of isotonic regression. The limit does "
    "not apply to isotonic regression, because it is not linear."
)
_STRATEGIES = (
    'A strategy has a smaller error for these queries. Releases of kind = "workload" use strategies for the same '
    "ranges, where a cumulative count is the range that starts at the first value. This kind of release uses only the "
    "ordered and hierarchical mechanisms."
)


@dataclass(frozen=True)
class Cumulative(Query[CumulativeRelease]):
    """The cumulative histogram of one ordered attribute: for each value, the number of records with at most this value.

    The mechanisms are "ordered", "ordered-hierarchical" and "hierarchical" (Blowfish, He et al. 2014, section 7). The
    three mechanisms require the full policy, or one threshold on equal steps. The ordered mechanism also supports
    publicly known counts.

    Attributes:
        mechanism: "auto" for the mechanism with the least expected error, or "ordered", "ordered-hierarchical" or
            "hierarchical".
        fanout: the fan-out of the trees, at least 2. The default is the fan-out with the least expected error.

    Raises:
        InputError: The mechanism is unknown, or the fan-out is below 2.

    >>> from mechdesign.tables import Budget, Domain, Policy
    >>> line = Policy.threshold(Domain({"age": range(100)}), 1)
    >>> Cumulative().sensitivity(line).value, Cumulative().plan(line, Budget.of("0.1"), compare=False).taken.name
    (1, 'ordered')
    >>> Cumulative(mechanism="ordered").release([31, 34, 34, 60], line, Budget.of("0.1"), rng=1).records
    4
    """

    mechanism: str = field(default="auto", kw_only=True)
    fanout: int | None = field(default=None, kw_only=True)

    released: ClassVar[type[Release]] = CumulativeRelease

    def __post_init__(self) -> None:
        if self.mechanism not in ("auto", *_MECHANISMS):
            raise _unknown(self.mechanism)
        if self.fanout is not None:
            object.__setattr__(self, "fanout", as_fanout(self.fanout))

    def _sensitivity(self, policy: Policy, norm: int) -> Sensitivity:
        # Ranges and quantiles are computed from the released cumulative counts, so they have the same sensitivity.
        return of_cumulative_counts(policy, norm)

    def spans(self, domain: Domain) -> Spans | None:
        """Return the requested ranges as pairs of indices of values; None for all cumulative counts.

        Args:
            domain: the domain of the records.

        Returns:
            The ranges, or None.
        """
        return None

    def _plan(self, policy: Policy, budget: Budget, compare: bool) -> Plan:
        ways, size = self._ways(policy, budget), policy.domain.size
        spans = self.spans(policy.domain)
        what = "cumulative histogram" if spans is None else "ranges of a cumulative histogram"
        remarks: tuple[str, ...] = ("The number of records is public and is released exactly.", _INFERENCE)
        best = min(error for error, _ in ways)
        others: tuple[Option, ...] = ()
        if best > 0 and compare:
            same = prefixes(size) if spans is None else as_workload(None, policy.domain, positions=spans)
            others = compare_strategies(same, policy, budget)
        limit = others[0].limit if others else None
        taken = self._best(ways)
        found = tuple(Option(way.option, way.detail, error, limit, way is taken) for error, way in ways)
        if any(option.error < best for option in others):
            remarks += (_STRATEGIES,)
        queries = size if spans is None else len(spans)
        return Plan.of(what, queries, policy, budget, found + others, remarks)

    def _release(self, terms: Terms, data: object, positions: ArrayLike | None) -> CumulativeRelease:
        way = self._best(self._ways(terms.policy, terms.budget))
        histogram = _counts(terms.policy, data, positions)
        return _release(way, histogram, terms, lambda found: self.read(found, terms.policy.domain))

    def _ways(self, policy: Policy, budget: Budget) -> list[tuple[float, _Way]]:
        """Return each requested mechanism with its expected error; mechanisms that coincide occur once."""
        budget.in_epsilon("a cumulative histogram")
        size, mechanism = policy.domain.size, self.mechanism
        found: Iterator[_Way]
        spans = self.spans(policy.domain)
        if policy.constraints:
            found = iter([_plan_by_sensitivity(policy, budget)])
            if mechanism not in ("auto", "ordered"):
                bound = '"auto" or "ordered" under publicly known counts'
                raise InputError("mechanism", "does not support known counts", value=mechanism, bound=bound)
        else:
            theta = cumulative_theta(policy)
            if mechanism == "ordered-hierarchical" and theta in (1, size):
                # The ordered hierarchical mechanism equals the ordered mechanism for θ = 1, and the hierarchical
                # mechanism for θ = |T|.
                mechanism = "ordered" if theta == 1 else "hierarchical"
            trees = (_plan_hierarchical(size, reach, budget, self.fanout) for reach in sorted({theta, size} - {1}))
            found = itertools.chain([_plan_ordered(size, theta, budget)], trees)
        ways = [(_error(way, size, spans), way) for way in found if mechanism in ("auto", way.option)]
        if not ways:
            raise _unknown(mechanism)
        return ways

    @staticmethod
    def _best(ways: list[tuple[float, _Way]]) -> _Way:
        return min(ways, key=lambda each: each[0])[1]


@dataclass(frozen=True)
class Ranges(Cumulative):
    """The number of records in each of several ranges, estimated from a released cumulative histogram.

    Attributes:
        ranges: pairs of the first and the last value of each range.
        positions: pairs of indices of values, instead of `ranges`.
        mechanism: the mechanism, as for `Cumulative`.
        fanout: the fan-out of the trees, as for `Cumulative`.

    Raises:
        InputError: There are no ranges, an entry is not a pair, or both `ranges` and `positions` are given.

    >>> from mechdesign.tables import Budget, Domain, Policy
    >>> line = Policy.threshold(Domain({"age": range(100)}), 1)
    >>> Ranges([(0, 17), (18, 64)]).plan(line, Budget.of("0.1"), compare=False).queries
    2
    """

    ranges: object = None
    positions: object = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ranges is None and self.positions is None:
            raise InputError("ranges", "are not given", bound="pairs of values, or positions")
        if self.ranges is not None and self.positions is not None:
            raise InputError("positions", "are given together with ranges", bound="either of them")
        for name in ("ranges", "positions"):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, tuple(map(tuple, check_pairs(given, name))))

    def spans(self, domain: Domain) -> Spans:
        """Return the ranges as pairs of indices of values.

        Args:
            domain: the domain of the records.

        Returns:
            The ranges.

        Raises:
            InputError: An end is not a value of the domain.
        """
        if self.positions is not None:
            return check_positions(domain, self.positions, "positions")
        return range_positions(domain, self.ranges, "ranges")

    def read(self, release: Release, domain: Domain) -> dict[str, Any]:
        """Return the estimated ranges, with the names of their ends.

        Args:
            release: the released cumulative histogram.
            domain: the domain of the records.

        Returns:
            A dictionary with the key ``"ranges"``.
        """
        source, values = _source(release, domain)
        found = ((low, high, range_query(source, positions=(low, high))) for low, high in self.spans(domain))
        return {"ranges": tuple(NamedRange(str(values[low]), str(values[high]), count) for low, high, count in found)}


@dataclass(frozen=True)
class Quantiles(Cumulative):
    """Quantiles of one ordered attribute, estimated from a released cumulative histogram.

    Attributes:
        probabilities: the probabilities of the quantiles, in (0, 1].
        mechanism: the mechanism, as for `Cumulative`.
        fanout: the fan-out of the trees, as for `Cumulative`.

    Raises:
        InputError: No probability is given, or a probability is out of range.

    >>> from mechdesign.tables import Budget, Domain, Policy
    >>> line, median = Policy.threshold(Domain({"age": range(100)}), 1), Quantiles(["0.5"])
    >>> found = median.release([31, 34, 34, 60] * 500, line, Budget.of(1), rng=1)
    >>> median.read(found, line.domain)["quantiles"][0].value
    '34'
    """

    probabilities: Iterable[object]

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.probabilities
        listed = list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else []
        if not listed:
            bound = "at least one, above 0 and at most 1"
            raise InputError("probabilities", "contain no probability", value=given, bound=bound)
        found = tuple(as_probability(each, f"probabilities[{index}]") for index, each in enumerate(listed))
        object.__setattr__(self, "probabilities", found)

    def read(self, release: Release, domain: Domain) -> dict[str, Any]:
        """Return the estimated quantiles, which are names of values.

        Args:
            release: the released cumulative histogram.
            domain: the domain of the records.

        Returns:
            A dictionary with the key ``"quantiles"``.
        """
        (source, values), found = _source(release, domain), []
        for share in self.probabilities:
            low, value, high = (str(values[number]) for number in quantile_numbers(source, share))
            found.append(NamedQuantile(exact(share), value, low, high))
        return {"quantiles": tuple(found)}


def _source(release: Release, domain: Domain) -> tuple[CumulativeRelease, Sequence[Any]]:
    """Return a released cumulative histogram and its values; raise `InputError` if the domain has other values."""
    source = require_cumulative(release)
    require_kind(domain, Domain, "domain", "a mechdesign.tables.Domain")
    values, counted = domain.attributes[0].values, list_values(source)
    if len(domain.attributes) != 1 or [str(value) for value in values] != [str(value) for value in counted.tolist()]:
        raise InputError("domain", "does not match the release", value=domain.size, bound=f"its {len(counted)} values")
    return source, values


@in_own_arithmetic
def ordered(
    counts: ArrayLike,
    theta: int,
    epsilon: object,
    *,
    rng: Rng = None,
    ledger: LedgerLike | None = None,
    confidence: object = CONFIDENCE,
    together: bool = False,
) -> CumulativeRelease:
    """Release a cumulative histogram by the ordered mechanism (Blowfish, He et al. 2014, section 7.1).

    Each cumulative count gets two-sided geometric noise of scale Δ/ε, with the sensitivity Δ = min(θ, |T| − 1). The
    last count is the number of records, which is public. Then isotonic regression fits monotone counts. The fit is
    clipped to the interval from 0 to the number of records.

    Args:
        counts: the number of records with each of the |T| ordered values, nonnegative integers of shape (|T|,).
        theta: θ, from 1 to |T|; values whose indices differ by at most θ stay indistinguishable.
        epsilon: ε in nats.
        rng: a NumPy generator or a seed, for rehearsals only. By default the noise comes from the operating system's
            randomness.
        ledger: a `mechdesign.Ledger`; it is charged before any noise is drawn.
        confidence: the confidence level of each cumulative count's interval, in (0, 1).
        together: whether to permit a conflict with an earlier release: one of the two is exact on values that the
            policy of the other protects. The entry in the ledger contains the value of `together`.

    Returns:
        The release.

    Raises:
        InputError: A count is not an integer from 0 to 2^61, all counts are 0, or θ or ε is out of range.
        BudgetExceededError: the ledger has too little budget left.
        ExactReleaseError: this release or an earlier one is exact on values that the policy of the other one protects.

    >>> release = ordered([5, 0, 0, 7, 1], theta=1, epsilon=100, rng=1)
    >>> release.answers.tolist()
    [5.0, 5.0, 5.0, 12.0, 13.0]
    """
    histogram, threshold = _check_arguments(counts, theta)
    policy, budget = _policy(len(histogram), threshold), Budget.of(epsilon)
    return _release(
        _plan_ordered(len(histogram), threshold, budget),
        histogram,
        Terms(policy, budget, rng, ledger, confidence, together),
    )


@in_own_arithmetic
def ordered_hierarchical(
    counts: ArrayLike,
    theta: int,
    epsilon: object,
    *,
    fanout: int | None = None,
    rng: Rng = None,
    ledger: LedgerLike | None = None,
    confidence: object = CONFIDENCE,
    together: bool = False,
) -> CumulativeRelease:
    """Release a cumulative histogram by the ordered hierarchical mechanism (Blowfish, He et al. 2014, section 7.2).

    Every θ-th cumulative count gets noise of scale 1/ε_S. A tree of height h covers the values between two noisy
    cumulative counts; its nodes get noise of scale 2h/ε_H. The budgets satisfy ε_S + ε_H = ε. Weighted least squares
    combines all measurements, and isotonic regression makes the counts monotone. For θ = 1 this is the ordered
    mechanism, and for θ = |T| the hierarchical mechanism of differential privacy.

    Args:
        counts: the number of records with each of the |T| ordered values, nonnegative integers of shape (|T|,).
        theta: θ, from 1 to |T|; values whose indices differ by at most θ stay indistinguishable.
        epsilon: ε in nats.
        fanout: the fan-out of the trees, at least 2. The default is the fan-out with the least expected error.
        rng: a NumPy generator or a seed, for rehearsals only. By default the noise comes from the operating system's
            randomness.
        ledger: a `mechdesign.Ledger`; it is charged before any noise is drawn.
        confidence: the confidence level of each cumulative count's interval, in (0, 1).
        together: whether to permit a conflict with an earlier release: one of the two is exact on values that the
            policy of the other protects. The entry in the ledger contains the value of `together`.

    Returns:
        The release.

    Raises:
        InputError: A count is not an integer from 0 to 2^61, all counts are 0, or θ, ε or the fan-out is out of range.
        BudgetExceededError: the ledger has too little budget left.
        ExactReleaseError: this release or an earlier one is exact on values that the policy of the other one protects.

    >>> ordered_hierarchical([5, 0, 0, 7], theta=2, epsilon=1000, rng=1).answers.tolist()
    [5.0, 5.0, 5.0, 12.0]
    """
    histogram, threshold = _check_arguments(counts, theta)
    policy, budget = _policy(len(histogram), threshold), Budget.of(epsilon)
    way = _plan_hierarchical(len(histogram), threshold, budget, fanout)
    return _release(way, histogram, Terms(policy, budget, rng, ledger, confidence, together))


@in_own_arithmetic
def hierarchical(
    counts: ArrayLike,
    epsilon: object,
    fanout: int | None = None,
    *,
    rng: Rng = None,
    ledger: LedgerLike | None = None,
    confidence: object = CONFIDENCE,
    together: bool = False,
) -> CumulativeRelease:
    """Release a cumulative histogram under differential privacy: the ordered hierarchical mechanism with θ = |T|.

    This is the method of Hay, Rastogi, Miklau and Suciu (2010).

    Args:
        counts: the number of records with each of the |T| ordered values, nonnegative integers of shape (|T|,).
        epsilon: ε in nats.
        fanout: the fan-out of the trees, at least 2. The default is the fan-out with the least expected error.
        rng: a NumPy generator or a seed, for rehearsals only. By default the noise comes from the operating system's
            randomness.
        ledger: a `mechdesign.Ledger`; it is charged before any noise is drawn.
        confidence: the confidence level of each cumulative count's interval, in (0, 1).
        together: whether to permit a conflict with an earlier release: one of the two is exact on values that the
            policy of the other protects. The entry in the ledger contains the value of `together`.

    Returns:
        The release.

    Raises:
        InputError: A count is not an integer from 0 to 2^61, all counts are 0, or ε or the fan-out is out of range.
        BudgetExceededError: the ledger has too little budget left.
        ExactReleaseError: this release or an earlier one is exact on values that the policy of the other one protects.

    >>> hierarchical([5, 0, 0, 7], epsilon=100, rng=1).answers.tolist()
    [5.0, 5.0, 5.0, 12.0]
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


@in_own_arithmetic
def release_cumulative(
    data: object,
    policy: Policy,
    epsilon: object,
    *,
    rng: Rng = None,
    positions: ArrayLike | None = None,
    ledger: LedgerLike | None = None,
    confidence: object = CONFIDENCE,
    together: bool = False,
) -> CumulativeRelease:
    """Release a cumulative histogram under any policy with a public number of records, with or without known counts.

    The last cumulative count is the public number of records. All other cumulative counts get two-sided geometric noise
    of scale Δ/ε, where Δ is the sensitivity under the policy. Isotonic regression follows, as in `ordered`.

    Args:
        data: the table, in any form that `Domain.indices` accepts.
        policy: the policy, on one ordered attribute.
        epsilon: ε in nats.
        rng: a NumPy generator or a seed, for rehearsals only. By default the noise comes from the operating system's
            randomness.
        positions: the indices of the records' values, given instead of `data`.
        ledger: a `mechdesign.Ledger`; it is charged before any noise is drawn.
        confidence: the confidence level of each cumulative count's interval, in (0, 1).
        together: whether to permit a conflict with an earlier release: one of the two is exact on values that the
            policy of the other protects. The entry in the ledger contains the value of `together`.

    Returns:
        The release.

    Raises:
        InputError: The domain does not have exactly one ordered attribute, or records may be added or removed. Or there
            are no records, a record is outside the domain, the data violate a known count, or ε is not positive.
        BudgetExceededError: the ledger has too little budget left.
        ExactReleaseError: this release or an earlier one is exact on values that the policy of the other one protects.

    >>> policy = Policy.threshold(Domain({"x": range(6)}), 1, constraints=[([1, 1, 1, 0, 0, 0], 3)])
    >>> release = release_cumulative([0, 1, 1, 4, 5], policy, epsilon=1, rng=1)
    >>> policy.sensitivity("cumulative"), release.noise.node_scale
    (4, Fraction(4, 1))
    """
    budget = Budget.of(epsilon)
    way = _plan_by_sensitivity(as_policy(policy), budget)
    return _release(way, _counts(policy, data, positions), Terms(policy, budget, rng, ledger, confidence, together))


@in_own_arithmetic
def plan_cumulative(
    policy: Policy,
    epsilon: object,
    *,
    mechanism: str = "auto",
    fanout: int | None = None,
    ranges: object = None,
    positions: object = None,
    compare: bool = True,
) -> Plan:
    """Plan a cumulative histogram, or ranges estimated from it, by the mechanisms of Blowfish (He et al. 2014).

    Args:
        policy: the full policy, or one threshold, on one ordered attribute with equal steps. With known counts, any
            policy on one ordered attribute is accepted.
        epsilon: ε in nats.
        mechanism: the name of the mechanism, or "auto" for the mechanism with the least expected error on these
            queries. With known counts only "ordered" is available. The plan also shows the strategies of
            `plan_workload`, whose errors may be smaller.
        fanout: the fan-out of the trees, at least 2. The default is the fan-out with the least expected error.
        ranges: pairs of the first and the last value of each range; by default all cumulative counts.
        positions: pairs of indices of values, instead of `ranges`.
        compare: whether to compare strategies for the same queries, if this takes only seconds.

    Returns:
        The plan.

    >>> policy = Policy.threshold(Domain({"age": range(100)}), 1)
    >>> plan_cumulative(policy, "0.1", compare=False).taken.name
    'ordered'
    """
    require_kind(policy, Policy, "policy", "a Policy")
    budget = Budget.of(epsilon)
    asked = Cumulative(mechanism=mechanism, fanout=fanout)
    if ranges is not None or positions is not None:
        asked = Ranges(ranges, positions=positions, mechanism=mechanism, fanout=fanout)
    return asked.plan(policy, budget, compare=compare)


@dataclass(frozen=True)
class _Way:
    """A mechanism for cumulative histograms: its parameters, its noise, and its names in plans and releases."""

    option: str
    detail: str
    name: str
    theta: int
    block: int
    fanout: int
    noise: RangeNoise

    def structure(self, size: int) -> RangeTree | None:
        """Return the structure that computes the variances of the estimates, or None without noise."""
        return self.noise.structure(size, self.block, self.fanout) if self.noise else None


def _unknown(mechanism: object) -> InputError:
    bound = '"auto", "ordered", "ordered-hierarchical" or "hierarchical"'
    return InputError("mechanism", "is not known", value=mechanism, bound=bound)


def _plan_ordered(size: int, theta: int, budget: Budget) -> _Way:
    sensitivity = min(theta, size - 1)
    detail = f"noise of sensitivity {sensitivity} on each count" if sensitivity else "the only count is public"
    scale = sensitivity / budget.in_epsilon("a cumulative histogram") if sensitivity else None
    return _Way("ordered", detail, "ordered mechanism", theta, 1, 2, RangeNoise(scale, None))


def _plan_by_sensitivity(policy: Policy, budget: Budget) -> _Way:
    """Return the ordered mechanism under a policy; raise `InputError` for a policy that it does not support."""
    policy.domain.ordered_attribute("a cumulative histogram")
    if policy.unbounded:
        raise InputError(
            "policy",
            "allows records to be added or removed",
            bound="a public number of records for a cumulative histogram",
            remedy='use a workload of queries = "prefixes" or "ranges" instead, or release_linear in Python',
        )
    power = of_cumulative_counts(policy, 1).power
    scale = budget.laplace(power).scale if power else None
    detail = f"noise of scale {exact_text(scale or Fraction(0))} on each count"
    return _Way("ordered", detail, "ordered mechanism", policy.domain.size, 1, 2, RangeNoise(scale, None))


def _plan_hierarchical(size: int, theta: int, budget: Budget, fanout: int | None) -> _Way:
    plan = plan_ranges(size, theta, budget.epsilon, fanout=fanout)
    noise = plan.noise
    option = "hierarchical" if theta == size else "ordered-hierarchical"
    name = f"{option.replace('-', ' ')} mechanism"
    if noise.tree_scale is not None:
        name += f", trees of fan-out {plan.fanout} and height {plan.levels} within blocks of {theta} values"
        name += f", ε_S = {float(plan.epsilon_nodes):.6g} and ε_H = {float(plan.epsilon_tree):.6g}"
    detail = f"fan-out {plan.fanout}, trees over {theta} values"
    return _Way(option, detail, name, theta, theta, plan.fanout, noise)


def _error(way: _Way, size: int, spans: Spans | None) -> float:
    """Return the expected root mean squared error of the given ranges, or of all cumulative counts."""
    tree = way.structure(size)
    if tree is None:
        return 0.0
    if spans is None:
        variances = tree.prefix_variances()
    else:
        whole = (0, size - 1)
        variances = np.array([0.0 if (low, high) == whole else tree.variance(low, high) for low, high in spans])
    return math.sqrt(float(variances.mean()))


def _release(
    way: _Way,
    histogram: Integers,
    terms: Terms,
    read: Callable[[CumulativeRelease], object] = lambda _: None,
) -> CumulativeRelease:
    """Release a cumulative histogram; before the ledger is charged, `read` is called on a release without noise."""
    size, records = len(histogram), int(histogram.sum())
    mechanism = f"{way.name}: {way.noise}"
    remarks = ["The number of records is public and is released exactly."]
    if way.noise:
        inference = "isotonic regression" if way.noise.tree_scale is None else "least squares and isotonic regression"
        mechanism += f", then {inference}"
        remarks.append("Standard errors and intervals are those of the unbiased estimates before isotonic regression.")
        if way.noise.tree_scale is not None:
            remarks.append(
                "The confidence of the intervals was verified numerically in many cases, but it is not proven."
            )
    structure = way.structure(size)
    variances = np.zeros(size) if structure is None else structure.prefix_variances()
    widths = way.noise.half_widths(variances, 1, terms.level)
    description = terms.describe("cumulative histogram", mechanism, remarks, noisy=bool(way.noise))
    standard_errors = np.sqrt(variances)
    labels = value_labels(terms.policy.domain)

    def make_release(linear: Floats) -> CumulativeRelease:
        answers = _fit_monotone(linear, records)
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
        found = make_release(np.cumsum(histogram).astype(np.float64))
        read(found)
        return terms.release(what, lambda: found, None, lambda: classes_of_values(size))
    tree = structure

    def rehearse() -> None:
        way.noise.prepare()
        public = np.zeros_like(histogram)
        public[0] = records
        read(make_release(_measure(public, way, tree, lambda law, values: values)))

    def draw() -> CumulativeRelease:
        return make_release(_measure(histogram, way, tree, lambda law, values: law.add(values, terms.generator)))

    return terms.release(what, draw, rehearse, lambda: number_of_records(size))


def _measure(histogram: Integers, way: _Way, structure: RangeTree, noisy: _Noisy) -> Floats:
    """Return the unbiased estimates of the cumulative counts from the noisy measurements."""
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


def _fit_monotone(linear: Floats, records: int) -> Floats:
    """Return the monotone fit, clipped to the possible counts; the last count is the number of records."""
    fitted = np.full(len(linear), float(records))
    if len(linear) > 1:
        fitted[:-1] = np.clip(isotonic_regression(linear[:-1]).x, 0, records)
    return fitted


def cumulative_theta(policy: Policy) -> int:
    """Return the θ of a policy, from 1 to |T|, for the mechanisms of cumulative histograms.

    Args:
        policy: the policy.

    Returns:
        θ.

    Raises:
        InputError: The domain does not have exactly one ordered attribute, or records may be added or removed. Or the
            policy has known counts, or its edges are not exactly the pairs of values whose indices differ by at most
            some θ.
    """
    policy.domain.ordered_attribute("a cumulative histogram")
    require_room(policy.domain.size, "a cumulative histogram")
    remedy = 'use a workload of queries = "prefixes" or "ranges" instead'
    if policy.unbounded:
        problem = "allows records to be added or removed"
        raise InputError("policy", problem, bound="a public number of records", remedy=remedy)
    if policy.constraints:
        bound = "no known counts for a mechanism that depends only on θ"
        raise InputError("policy", "has publicly known counts", bound=bound, remedy="use release_cumulative")
    size, steps = policy.domain.size, policy.steps
    if size == 1:
        return 1
    if steps is None or steps < 1:
        raise InputError(
            "policy",
            "does not join exactly the values whose indices differ by at most θ",
            value=policy.secret_graph.kind,
            bound="a policy on one attribute that is full, or has a threshold and values with equal steps",
            remedy=remedy,
        )
    return size if steps >= size - 1 else steps


def _policy(size: int, theta: int) -> Policy:
    domain = Domain({"value": range(size)})
    return Policy.full(domain) if theta >= size - 1 else Policy.threshold(domain, theta)


def _check_arguments(counts: ArrayLike, theta: int) -> tuple[Integers, int]:
    histogram = _as_counts(counts)
    threshold = as_integer(theta, "theta", 1)
    if threshold > len(histogram):
        raise InputError("theta", "is above the number of values", value=theta, bound=f"from 1 to {len(histogram)}")
    return histogram, threshold


def _counts(policy: Policy, data: object, positions: ArrayLike | None) -> Integers:
    """Check a table against the policy and return its histogram."""
    histogram = _as_counts(policy.domain.counts(data, positions=positions))
    policy.check_counts(histogram)
    return histogram


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
            f"counts[{place}]", "is not a count", value=array[place].item(), bound="an integer from 0 to 2^61"
        )
    histogram = array.astype(np.int64)
    # A sum of int64 could wrap.
    total = int(histogram.sum(dtype=object if histogram.sum(dtype=np.float64) > 2**60 else np.int64))
    if total == 0 or total > LARGEST_VALUE:
        raise InputError(
            "counts", "contain no record" if total == 0 else "contain too many records", bound="from 1 to 2^61"
        )
    return histogram
