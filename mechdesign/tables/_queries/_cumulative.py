"""Cumulative, Ranges, Quantiles."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, Integers, as_array
from mechdesign.base._check import as_integer, require_kind
from mechdesign.base._errors import InputError
from mechdesign.base._values import cached_property
from mechdesign.certify._exact import exact, exact_text
from mechdesign.mechanisms._discrete import LARGEST_VALUE, DiscreteLaplace
from mechdesign.tables._budget import Budget, LedgerLike
from mechdesign.tables._charges import CONFIDENCE, Rng, Terms, classes_of_values, number_of_records
from mechdesign.tables._domain import Domain
from mechdesign.tables._policies._graphs import require_room
from mechdesign.tables._policy import Policy, as_policy
from mechdesign.tables._queries._trees import RangeNoise, RangeTree, as_fanout, interval_about, plan_ranges
from mechdesign.tables._query import Option, Plan, Query
from mechdesign.tables._release import Release
from mechdesign.tables._sensitivity._sensitivity import Sensitivity, of_cumulative_counts
from mechdesign.tables._values import (
    checked_pairs,
    checked_positions,
    find_label,
    range_positions,
    read_label,
    value_labels,
)
from mechdesign.tables._workload import as_workload, compared, prefixes

Spans = Sequence[tuple[int, int]]
_Noisy = Callable[[DiscreteLaplace, Integers], Integers]

_MECHANISMS = ("ordered", "ordered-hierarchical", "hierarchical")
_INFERENCE = (
    "Isotonic regression follows the ordered and hierarchical mechanisms. It is not linear, never raises the total "
    "squared error of the cumulative counts, and can pass the limit; the errors shown are those before it."
)
_STRATEGIES = (
    'A strategy errs less here. Releases of kind = "workload" use strategies, for the same ranges; a cumulative count '
    "is the range from the first value on. This kind uses the ordered and hierarchical mechanisms alone."
)


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
    needed: ClassVar[tuple[str, ...]] = ("node_scale", "tree_scale")

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
        scales = {name: getattr(self.noise, name) for name in self.needed}
        texts = {name: None if scale is None else exact_text(scale) for name, scale in scales.items()}
        return {"records": self.records, "theta": self.theta, "block": self.block, "fanout": self.fanout, **texts}

    @classmethod
    def _read(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        texts = {name: parameters.pop(name) for name in cls.needed}
        scales = {name: None if text is None else exact(text, name) for name, text in texts.items()}
        return {**parameters, "noise": RangeNoise(**scales)}


@dataclass(frozen=True)
class Cumulative(Query[CumulativeRelease]):
    """How many records have at most each value of one ordered attribute.

    The ordered, the ordered hierarchical and the hierarchical mechanism (Blowfish, He et al. 2014, section 7) answer
    under the full, a threshold or the line policy, and the ordered one under any policy with publicly known counts.

    Attributes:
        mechanism: "auto" for the one of the three with the least expected error, or the name of one.
        fanout: of the trees; without it the one of least expected error.

    Raises:
        InputError: another mechanism, or a fan-out below 2.

    >>> from mechdesign.tables import Budget, Domain, Policy
    >>> line = Policy.line(Domain({"age": range(100)}))
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
        # All else is read from the cumulative counts.
        return of_cumulative_counts(policy, norm)

    def spans(self, domain: Domain) -> Spans | None:
        """Return the ranges that are asked for, as numbers of values; None for all cumulative counts."""
        return None

    def _plan(self, policy: Policy, budget: Budget, compare: bool) -> Plan:
        epsilon, size = budget.in_epsilon("a cumulative histogram"), policy.domain.size
        spans = self.spans(policy.domain)
        what = "cumulative histogram" if spans is None else "ranges of a cumulative histogram"
        queries = size if spans is None else len(spans)
        remarks: tuple[str, ...] = ("The number of records is public and is given exactly.", _INFERENCE)
        if policy.constraints:
            ordered = self._under_known_counts(policy, budget, spans)
            return Plan.of(what, queries, policy, budget, (ordered,), remarks)
        theta, mechanism = cumulative_theta(policy), self.mechanism
        if mechanism == "ordered-hierarchical" and theta in (1, size):
            # At the ends it is one of the others.
            mechanism = "ordered" if theta == 1 else "hierarchical"
        found = [
            Option(name, detail, _root_mean(_variances(tree, size, spans)))
            for name, detail, tree in _mechanisms(size, theta, epsilon, self.fanout)
            if mechanism in ("auto", name)
        ]
        if not found:
            raise _unknown(mechanism)
        best = min(found, key=lambda option: option.error)
        others: tuple[Option, ...] = ()
        if best.error > 0 and compare:
            same = prefixes(size) if spans is None else as_workload(None, policy.domain, positions=spans)
            others = compared(same, policy, budget)
        limit = others[0].limit if others else None
        options = tuple(replace(option, limit=limit, taken=option is best) for option in found) + others
        if any(option.error < best.error for option in others):
            remarks += (_STRATEGIES,)
        return Plan.of(what, queries, policy, budget, options, remarks)

    def _under_known_counts(self, policy: Policy, budget: Budget, spans: Spans | None) -> Option:
        size, noise = policy.domain.size, _by_sensitivity(policy, budget).noise
        if self.mechanism not in ("auto", "ordered"):
            bound = '"auto" or "ordered" under publicly known counts'
            raise InputError("mechanism", "does not take known counts", value=self.mechanism, bound=bound)
        variances = _variances(noise.structure(size, 1, 2) if noise else None, size, spans)
        detail = f"noise of scale {exact_text(noise.node_scale or Fraction(0))} on each count"
        return Option("ordered", detail, _root_mean(variances), taken=True)

    def _release(self, terms: Terms, data: object, positions: ArrayLike | None) -> CumulativeRelease:
        policy, budget = terms.policy, terms.budget
        mechanism = self._plan(policy, budget, compare=False).taken.name
        if policy.constraints:
            way = _by_sensitivity(policy, budget)
        else:
            theta = policy.domain.size if mechanism == "hierarchical" else cumulative_theta(policy)
            plain = mechanism == "ordered"
            way = _ordered(policy, theta, budget) if plain else _hierarchical(policy, theta, budget, self.fanout)
        histogram = _counts(policy, data, positions)
        return _release(way, histogram, terms, lambda found: self.read(found, policy.domain))


@dataclass(frozen=True)
class Ranges(Cumulative):
    """How many records have a value in each of several ranges, read from a released cumulative histogram.

    Attributes:
        ranges: pairs of values, the first and the last of each range.
        positions: instead of `ranges` pairs of numbers of values.

    Raises:
        InputError: no ranges, or what is no pair; both of `ranges` and `positions`; and as for `Cumulative`.

    >>> from mechdesign.tables import Budget, Domain, Policy
    >>> line = Policy.line(Domain({"age": range(100)}))
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
            raise InputError("positions", "are given beside ranges", bound="either of them")
        for name in ("ranges", "positions"):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, tuple(map(tuple, checked_pairs(given, name))))

    def spans(self, domain: Domain) -> Spans:
        """Return the ranges as numbers of values; raise `InputError` for ends that are no values of the domain."""
        if self.positions is not None:
            return checked_positions(domain, self.positions, "positions")
        return range_positions(domain, self.ranges, "ranges")

    def read(self, release: Release, domain: Domain) -> dict[str, Any]:
        """Return the ranges, with the names of their ends."""
        values, source = domain.attributes[0].values, _check(release)
        found = ((low, high, range_query(source, positions=(low, high))) for low, high in self.spans(domain))
        return {"ranges": tuple(NamedRange(str(values[low]), str(values[high]), count) for low, high, count in found)}


@dataclass(frozen=True)
class Quantiles(Cumulative):
    """Quantiles of one ordered attribute, read from a released cumulative histogram.

    Attributes:
        probabilities: which quantiles, each above 0 and at most 1.

    Raises:
        InputError: no probability, or another one; and as for `Cumulative`.

    >>> from mechdesign.tables import Budget, Domain, Policy
    >>> line, median = Policy.line(Domain({"age": range(100)})), Quantiles(["0.5"])
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
            raise InputError("probabilities", "hold no probability", value=given, bound=bound)
        found = tuple(as_probability(each, f"probabilities[{index}]") for index, each in enumerate(listed))
        object.__setattr__(self, "probabilities", found)

    def read(self, release: Release, domain: Domain) -> dict[str, Any]:
        """Return the quantiles, as the names of values."""
        values, source, found = domain.attributes[0].values, _check(release), []
        for share in self.probabilities:
            low, value, high = (str(values[number]) for number in quantile_numbers(source, share))
            found.append(NamedQuantile(exact(share), value, low, high))
        return {"quantiles": tuple(found)}


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
    histogram, threshold = _checked(counts, theta)
    policy, budget = _policy(len(histogram), threshold), Budget.of(epsilon)
    return _release(
        _ordered(policy, threshold, budget), histogram, Terms(policy, budget, rng, ledger, confidence, together)
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
    histogram, threshold = _checked(counts, theta)
    policy, budget = _policy(len(histogram), threshold), Budget.of(epsilon)
    way = _hierarchical(policy, threshold, budget, fanout)
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
    budget = Budget.of(epsilon)
    way = _by_sensitivity(as_policy(policy), budget)
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
    """Plan a cumulative histogram, or ranges read from one, by the mechanisms of sections 7.1 and 7.2 of the paper.

    Args:
        policy: the full, a threshold or the line policy on one ordered attribute; any policy under publicly known
            counts, where the mechanism is "ordered".
        epsilon: ε in nats.
        mechanism: "auto" for the one of the three with the least expected error on these queries, or the name of one;
            strategies, which may err less, are shown beside them, and are those of `plan_workload`.
        fanout: of the trees; without it the one of least expected error.
        ranges: the ranges to be read, pairs of values, both included; all cumulative counts unless given.
        positions: instead of `ranges` pairs of numbers of values.
        compare: find strategies for the same queries, too, and the proven limit, where that takes seconds only.
    """
    require_kind(policy, Policy, "policy", "a Policy")
    budget = Budget.of(epsilon)
    asked = Cumulative(mechanism=mechanism, fanout=fanout)
    if ranges is not None or positions is not None:
        asked = Ranges(ranges, positions=positions, mechanism=mechanism, fanout=fanout)
    return asked.plan(policy, budget, compare=compare)


@dataclass(frozen=True)
class _Way:
    """How a cumulative histogram is to be released."""

    name: str
    theta: int
    block: int
    fanout: int
    noise: RangeNoise


def _unknown(mechanism: object) -> InputError:
    bound = '"auto", "ordered", "ordered-hierarchical" or "hierarchical"'
    return InputError("mechanism", "is not known", value=mechanism, bound=bound)


def _ordered(policy: Policy, theta: int, budget: Budget) -> _Way:
    sensitivity = min(theta, policy.domain.size - 1)
    scale = None if sensitivity == 0 else budget.laplace(sensitivity).scale
    return _Way("ordered mechanism", theta, 1, 2, RangeNoise(scale, None))


def _by_sensitivity(policy: Policy, budget: Budget) -> _Way:
    """Return the ordered mechanism under any policy; raise `InputError` where it does not go with the policy."""
    policy.domain.ordered_attribute("a cumulative histogram")
    if policy.unbounded:
        raise InputError(
            "policy",
            "lets records be added or removed",
            bound="a public number of records for a cumulative histogram",
            remedy='ask for a workload of queries = "prefixes" or "ranges" instead, in Python by release_linear',
        )
    power = of_cumulative_counts(policy, 1).power
    noise = RangeNoise(budget.laplace(power).scale if power else None, None)
    return _Way("ordered mechanism", policy.domain.size, 1, 2, noise)


def _hierarchical(policy: Policy, theta: int, budget: Budget, fanout: int | None) -> _Way:
    plan = plan_ranges(policy.domain.size, theta, budget.epsilon, fanout=fanout)
    noise = plan.noise
    name = "hierarchical mechanism" if theta == plan.size else "ordered hierarchical mechanism"
    if noise.tree_scale is not None:
        name += f", trees of fan-out {plan.fanout} and height {plan.levels} within blocks of {theta} values"
        name += f", ε_S = {float(plan.epsilon_nodes):.6g} and ε_H = {float(plan.epsilon_tree):.6g}"
    return _Way(name, theta, theta, plan.fanout, noise)


def _release(
    way: _Way,
    histogram: Integers,
    terms: Terms,
    read: Callable[[CumulativeRelease], object] = lambda _: None,
) -> CumulativeRelease:
    """Release a cumulative histogram; `read` is called on one without noise before the ledger is charged."""
    size, records = len(histogram), int(histogram.sum())
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
    widths = way.noise.half_widths(variances, 1, terms.level)
    description = terms.describe("cumulative histogram", mechanism, remarks, noisy=bool(way.noise))
    standard_errors = np.sqrt(variances)
    labels = value_labels(terms.policy.domain)

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
        read(found)
        return terms.release(what, lambda: found, None, lambda: classes_of_values(size))
    tree = structure

    def rehearse() -> None:
        way.noise.prepare()
        public = np.zeros_like(histogram)
        public[0] = records
        read(made(_measured(public, way, tree, lambda law, values: values)))

    def draw() -> CumulativeRelease:
        return made(_measured(histogram, way, tree, lambda law, values: law.add(values, terms.generator)))

    return terms.release(what, draw, rehearse, lambda: number_of_records(size))


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


def cumulative_theta(policy: Policy) -> int:
    """Return θ, from 1 to |T|, of a policy under which a cumulative histogram is released; |T| for the full domain.

    Raises:
        InputError: several attributes, or one that is not ordered; known counts, for which `release_cumulative` needs
            no θ; records added or removed; or a policy that joins other values than those at most θ apart.
    """
    policy.domain.ordered_attribute("a cumulative histogram")
    require_room(policy.domain.size, "a cumulative histogram")
    remedy = 'ask for a workload of queries = "prefixes" or "ranges" instead'
    if policy.unbounded:
        problem = "lets records be added or removed"
        raise InputError("policy", problem, bound="a public number of records", remedy=remedy)
    if policy.constraints:
        bound = "none for a mechanism that knows θ alone"
        raise InputError("policy", "has publicly known counts", bound=bound, remedy="use release_cumulative")
    size, steps = policy.domain.size, policy.steps
    if size == 1:
        return 1
    if steps is None or steps < 1:
        raise InputError(
            "policy",
            "does not join exactly the values at most so many numbers apart",
            value=policy.secret_graph.kind,
            bound="full, line or threshold, on values in equal steps",
            remedy=remedy,
        )
    return size if steps >= size - 1 else steps


def _mechanisms(
    size: int, theta: int, epsilon: Fraction, fanout: int | None
) -> list[tuple[str, str, RangeTree | None]]:
    """Return the names, parameters and structures of the mechanisms that differ at this θ."""
    sensitivity_ = min(theta, size - 1)
    if sensitivity_ == 0:
        return [("ordered", "the only count is public", None)]
    noise = RangeNoise(sensitivity_ / epsilon, None)
    made: list[tuple[str, str, RangeTree | None]] = [
        ("ordered", f"noise of sensitivity {sensitivity_} on each count", noise.structure(size, 1, 2))
    ]
    for name, reach in (("ordered-hierarchical", theta), ("hierarchical", size)):
        if reach == 1 or (name == "ordered-hierarchical" and theta == size):
            continue
        plan = plan_ranges(size, reach, epsilon, fanout=fanout)
        detail = f"fan-out {plan.fanout}, trees over {reach} values"
        made.append((name, detail, plan.structure))
    return made


def _variances(tree: RangeTree | None, size: int, spans: Spans | None) -> Floats:
    if tree is None:
        return np.zeros(1)
    if spans is None:
        return tree.prefix_variances()
    return np.array([0.0 if (low, high) == (0, size - 1) else tree.variance(low, high) for low, high in spans])


def _root_mean(variances: Floats) -> float:
    return math.sqrt(float(variances.mean()))


def _policy(size: int, theta: int) -> Policy:
    domain = Domain({"value": range(size)})
    return Policy.full(domain) if theta >= size - 1 else Policy.threshold(domain, theta)


def _checked(counts: ArrayLike, theta: int) -> tuple[Integers, int]:
    histogram = _as_counts(counts)
    threshold = as_integer(theta, "theta", 1)
    if threshold > len(histogram):
        raise InputError("theta", "is above the number of values", value=theta, bound=f"from 1 to {len(histogram)}")
    return histogram, threshold


def _counts(policy: Policy, data: object, positions: ArrayLike | None) -> Integers:
    """Return the histogram of a table that is released under a policy."""
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
    share = as_probability(probability, "probability")
    # The least whole number of records that is a share of at least this.
    needed = math.ceil(share * release.records)
    value = int(np.argmax(release.answers >= min(float(share * release.records), float(release.records))))
    low = int(np.argmax(release.high >= needed))
    short = np.flatnonzero(release.low < needed)
    high = min(int(short[-1]) + 1 if short.size else 0, len(release) - 1)
    return min(low, value), value, max(high, value)


def _check(release: object) -> CumulativeRelease:
    if not isinstance(release, CumulativeRelease):
        raise InputError(
            "release",
            "is no cumulative histogram",
            value=type(release).__name__,
            bound="what ordered, hierarchical or ordered_hierarchical returned",
        )
    return release


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


@dataclass(frozen=True)
class NamedRange:
    """How many records have a value from `first` to `last`, both included, which are written as in the table."""

    first: str
    last: str
    estimate: Estimate


@dataclass(frozen=True)
class NamedQuantile:
    """The value at which the distribution function reaches `probability`, and the ends of its interval."""

    probability: Fraction
    value: str
    low: str
    high: str


def as_probability(value: object, path: str) -> Fraction:
    """Return the probability of a quantile, exact; raise `InputError` unless it is above 0 and at most 1."""
    share = exact(value, path)
    if not 0 < share <= 1:
        raise InputError(path, "is out of range", value=value, bound="above 0 and at most 1")
    return share
