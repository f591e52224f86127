"""Cumulative histograms, and the ranges and quantiles estimated from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._check import require_kind, require_name
from mechdesign.base._errors import InputError
from mechdesign.base._values import cached_property
from mechdesign.certify._exact import exact, exact_text
from mechdesign.mechanisms._discrete import DiscreteLaplace
from mechdesign.tables._budget import Budget
from mechdesign.tables._charges import EXACT, Terms, classes_of_values, number_of_records
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy
from mechdesign.tables._queries._cumulative_release import (
    CumulativeRelease,
    Estimate,
    NamedQuantile,
    NamedRange,
    as_probability,
    list_values,
    quantile_numbers,
    range_query,
    require_cumulative,
)
from mechdesign.tables._queries._trees import RangeNoise, RangeTree, as_fanout, choose_tree, interval_about
from mechdesign.tables._query import Option, Plan, Query, Way, best
from mechdesign.tables._records import Records
from mechdesign.tables._release import Release
from mechdesign.tables._secret_graphs import require_room
from mechdesign.tables._sensitivity._sensitivity import Sensitivity, of_cumulative_counts
from mechdesign.tables._values import (
    check_pairs,
    check_positions,
    range_positions,
    value_labels,
    value_names,
)
from mechdesign.tables._workload import COMPARED, RangeQueries, prefixes, ranges_of

Spans = Sequence[tuple[int, int]]
_Noisy = Callable[[DiscreteLaplace, Integers], Integers]

_MECHANISMS = ("ordered", "ordered-hierarchical", "hierarchical")
_INFERENCE = (
    "Isotonic regression follows, which never increases the total squared error of the cumulative counts. The errors "
    "in the plan exclude its effect. The limit does not apply to it, because it is not linear."
)
_PUBLIC = "The number of records is public and is released exactly."
_BEFORE = "Standard errors and intervals are those of the unbiased estimates before isotonic regression."


@dataclass(frozen=True)
class Cumulative(Query[Any]):
    """The cumulative histogram of one ordered attribute: for each value, the number of records with at most this value.

    The mechanisms are "ordered", "ordered-hierarchical" and "hierarchical" (Blowfish, He et al. 2014, section 7).

    - Ordered: each cumulative count gets two-sided geometric noise of scale Δ/ε, where Δ is the sensitivity under the
      policy. It supports every policy, also with publicly known counts.
    - Ordered hierarchical: every θ-th cumulative count gets noise of scale 1/ε_S. A tree of height h covers the values
      between two noisy cumulative counts; its nodes get noise of scale 2h/ε_H. The budgets satisfy ε_S + ε_H = ε.
      Weighted least squares combines all measurements. It requires the full policy or a threshold θ.
    - Hierarchical: the same with θ = |T|, the method of Hay, Rastogi, Miklau and Suciu (2010).

    Up to 256 values, or where no mechanism fits, strategies are also considered. They are the only way for a budget in
    ρ, and where records may be added or removed. If the number of records is public, isotonic regression fits monotone
    counts, and the fit is clipped to the interval from 0 to the number of records. The counts are left as they are
    where records may be added or removed, and for a budget in ρ under known counts.

    Attributes:
        mechanism: "auto" for the mechanism or strategy with the least expected error, or "ordered",
            "ordered-hierarchical" or "hierarchical".
        fanout: the fan-out of the trees, at least 2. The default is the fan-out with the least expected error.

    Raises:
        InputError: The mechanism is unknown, or the fan-out is below 2.

    >>> from mechdesign.tables import Domain, Policy
    >>> policy = Policy.threshold(Domain({"age": range(100)}), 1)
    >>> Cumulative().sensitivity(policy).value, Cumulative().plan(policy, epsilon="0.1").taken.name
    (1, 'ordered')
    >>> Cumulative().release(policy=policy, counts=[5] * 100, epsilon="0.1", rng=1).records
    500
    """

    mechanism: str = field(default="auto", kw_only=True)
    fanout: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        require_name(self.mechanism, ("auto", *_MECHANISMS), "mechanism")
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

    def _plan(self, policy: Policy, budget: Budget) -> Plan:
        spans, ways = self.spans(policy.domain), self._ways(policy, budget)
        what = "cumulative histogram" if spans is None else "ranges of a cumulative histogram"
        queries = policy.domain.size if spans is None else len(spans)
        return Plan.of(what, queries, policy, budget, tuple(way.option for way in ways), best(ways).remarks)

    def _ways(self, policy: Policy, budget: Budget) -> list[Way]:
        policy.domain.ordered_attribute("a cumulative histogram")
        require_room(policy.domain.size, "a cumulative histogram")
        spans, size = self.spans(policy.domain), policy.domain.size
        ways = []
        for each in self._mechanisms(policy, budget):
            option = Option(each.option, each.detail, _error(each, size, spans))
            ways.append(Way(option, partial(self._measure, each), (_PUBLIC, _INFERENCE)))
        if self.mechanism != "auto" or (ways and (size > COMPARED or any(not way.option.error for way in ways))):
            return ways
        workload = self._workload(policy.domain)
        answered = workload.ways(policy, budget, "cumulative histogram" if spans is None else workload.phrase)
        fitted = (_INFERENCE,) if self._is_fitted(policy) else ()
        return ways + [
            replace(way, release=partial(self._answer, way), remarks=way.remarks + fitted) for way in answered
        ]

    def _is_fitted(self, policy: Policy) -> bool:
        """Return whether the answers of a strategy become monotone: all cumulative counts of public records."""
        return not policy.unbounded and not policy.constraints and self.spans(policy.domain) is None

    def _workload(self, domain: Domain) -> RangeQueries:
        """Return the queries as a workload; repeated calls return the same workload, which keeps its strategies."""
        if domain not in self._workloads:
            spans = self.spans(domain)
            if spans is None:
                self._workloads[domain] = replace(prefixes(domain.size), names=value_names(domain))
            else:
                self._workloads[domain] = ranges_of(domain, spans)
        return self._workloads[domain]

    @cached_property
    def _workloads(self) -> dict[Domain, RangeQueries]:
        return {}

    def _mechanisms(self, policy: Policy, budget: Budget) -> list[_Mechanism]:
        """Return the requested mechanisms; mechanisms that coincide occur once."""
        size, named = policy.domain.size, self.mechanism
        if named == "auto" and (policy.unbounded or budget.epsilon is None):
            return []
        budget.in_epsilon("a mechanism for cumulative histograms")
        if policy.constraints and named not in ("auto", "ordered"):
            bound = '"auto" or "ordered" under publicly known counts'
            raise InputError("mechanism", "does not support known counts", value=named, bound=bound)
        theta = find_theta(policy)
        if theta is None and named not in ("auto", "ordered"):
            raise InputError(
                "policy",
                "does not join exactly the values whose indices differ by at most θ",
                value=policy.secret_graph.kind,
                bound=f"the full or a threshold policy, on values with equal steps, for the {named} mechanism",
                remedy='use mechanism = "auto"',
            )
        if named != "auto" and size == 1:
            named = "ordered"
        elif named == "ordered-hierarchical" and theta in (1, size):
            # The ordered hierarchical mechanism equals the ordered mechanism for θ = 1, and the hierarchical mechanism
            # for θ = |T|.
            named = "ordered" if theta == 1 else "hierarchical"
        found = [_plan_ordered(policy, budget)] if named in ("auto", "ordered") else []
        reaches = [] if theta is None or named == "ordered" else sorted({theta, size} - {1})
        trees = (_plan_hierarchical(size, reach, budget, self.fanout) for reach in reaches)
        return found + [tree for tree in trees if named in ("auto", tree.option)]

    def _answer(self, way: Way, terms: Terms, records: Records) -> Any:
        """Release by a strategy or by independent noise."""
        domain = terms.policy.domain
        if not self._is_fitted(terms.policy):
            return way.release(replace(terms, finish=lambda found: self._read_once(found, domain)), records)
        number, labels = int(records.histogram().sum()), value_labels(domain)

        def fit(found: Release) -> Release:
            linear, widths = found.answers.copy(), found.high - found.answers
            linear[-1], widths[-1] = number, 0.0
            answers = _fit_monotone(linear, number)
            low, high = interval_about(linear, widths, answers, number)
            described, errors = found.description, np.append(found.standard_errors[:-1], 0.0)
            if errors.any():
                # The first remark names the totals that are released exactly.
                used = f"{described.mechanism}, then isotonic regression"
                described = replace(described, mechanism=used, remarks=(described.remarks[0], _BEFORE))
            factor = float((widths[errors > 0] / errors[errors > 0]).max(initial=0.0))
            shown = CumulativeRelease(
                described, labels, answers, errors, low, high, linear=linear, records=number, factor=factor
            )
            return self._read_once(shown, domain)

        return way.release(replace(terms, finish=fit), records)

    def _read_once(self, release: Release, domain: Domain) -> Release:
        """Return the release after its estimates are read once, so that reading them later cannot fail."""
        self.read(release, domain)
        return release

    def _measure(self, mechanism: _Mechanism, terms: Terms, records: Records) -> Any:
        """Release a cumulative histogram by one of the three mechanisms."""
        histogram, size = records.checked(terms.policy), terms.policy.domain.size
        number = int(histogram.sum())
        used = f"{mechanism.name}: {mechanism.noise}"
        remarks = [_PUBLIC if mechanism.noise else EXACT]
        if mechanism.noise:
            only = mechanism.noise.tree_scale is None
            used += f", then {'isotonic regression' if only else 'least squares and isotonic regression'}"
            remarks.append(_BEFORE)
            if not only:
                remarks.append(
                    "The confidence of the intervals was verified numerically in many cases, but it is not proven."
                )
        structure = mechanism.structure(size)
        variances = np.zeros(size) if structure is None else structure.prefix_variances()
        widths = mechanism.noise.half_widths(variances, 1, terms.level)
        description = terms.describe("cumulative histogram", used, remarks, noisy=bool(mechanism.noise))
        standard_errors = np.sqrt(variances)
        labels = value_labels(terms.policy.domain)

        def make_release(linear: Floats) -> Release:
            answers = _fit_monotone(linear, number)
            low, high = interval_about(linear, widths, answers, number)
            found = CumulativeRelease(
                description=description,
                labels=labels,
                answers=answers,
                standard_errors=standard_errors,
                low=low,
                high=high,
                linear=linear,
                records=number,
                theta=mechanism.theta,
                block=mechanism.block,
                fanout=mechanism.fanout,
                noise=mechanism.noise,
            )
            return self._read_once(found, terms.policy.domain)

        what = f"cumulative histogram ({mechanism.name})"
        if structure is None:
            found = make_release(np.cumsum(histogram).astype(np.float64))
            return terms.release(what, lambda: found, None, lambda: classes_of_values(size))
        tree = structure

        def rehearse() -> Release:
            mechanism.noise.prepare()
            public = np.zeros_like(histogram)
            public[0] = number
            return make_release(_measure(public, mechanism, tree, lambda law, values: values))

        def draw() -> Release:
            return make_release(
                _measure(histogram, mechanism, tree, lambda law, values: law.add(values, terms.generator))
            )

        return terms.release(what, draw, rehearse, lambda: number_of_records(size))


@dataclass(frozen=True)
class Ranges(Cumulative):
    """The number of records in each of several ranges.

    The ranges are estimated from a released cumulative histogram, or they are released themselves through a strategy.

    Attributes:
        ranges: pairs of the first and the last value of each range.
        positions: pairs of indices of values, instead of `ranges`.
        mechanism: the mechanism, as for `Cumulative`.
        fanout: the fan-out of the trees, as for `Cumulative`.

    Raises:
        InputError: There are no ranges, an entry is not a pair, or both `ranges` and `positions` are given.

    >>> from mechdesign.tables import Domain, Policy
    >>> policy = Policy.threshold(Domain({"age": range(100)}), 5)
    >>> Ranges([(0, 17), (18, 64)]).plan(policy, epsilon="0.1").taken.name
    'optimal strategy'
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
            return check_positions(domain, self.positions)
        return range_positions(domain, self.ranges)

    def read(self, release: Release, domain: Domain) -> dict[str, Any]:
        """Return the estimated ranges, with the names of their ends.

        Args:
            release: the released cumulative histogram.
            domain: the domain of the records.

        Returns:
            A dictionary with the key ``"ranges"``.
        """
        if isinstance(release, CumulativeRelease):
            source, values = _source(release, domain)
            found = ((low, high, range_query(source, positions=(low, high))) for low, high in self.spans(domain))
            return {"ranges": tuple(NamedRange(str(values[a]), str(values[b]), count) for a, b, count in found)}
        require_kind(release, Release, "release", "a release of these ranges")
        require_kind(domain, Domain, "domain", "a mechdesign.tables.Domain")
        asked = [(str(low), str(high)) for low, high in zip(*self._workload(domain).labels().values(), strict=True)]
        ends = [tuple(map(str, pair)) for pair in zip(*release.labels.values(), strict=True)]
        if ends != asked:
            raise InputError("domain", "does not match the release", value=domain.size, bound="the released ranges")
        sure, rows = release.description.confidence, []
        for index, (low, high) in enumerate(asked):
            columns = (release.answers, release.standard_errors, release.low, release.high)
            value, error, least, most = (float(column[index]) for column in columns)
            rows.append(NamedRange(low, high, Estimate(value, error, least, most, sure)))
        return {"ranges": tuple(rows)}


@dataclass(frozen=True)
class Quantiles(Cumulative):
    """Quantiles of one ordered attribute, estimated from a released cumulative histogram.

    Attributes:
        probabilities: the probabilities of the quantiles, in (0, 1].
        mechanism: the mechanism, as for `Cumulative`.
        fanout: the fan-out of the trees, as for `Cumulative`.

    Raises:
        InputError: No probability is given, or a probability is out of range.

    >>> from mechdesign.tables import Domain, Policy
    >>> policy, median = Policy.threshold(Domain({"age": range(100)}), 1), Quantiles(["0.5"])
    >>> found = median.release([31, 34, 34, 60] * 500, policy, epsilon=1, rng=1)
    >>> median.read(found, policy.domain)["quantiles"][0].value
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

    def _ways(self, policy: Policy, budget: Budget) -> list[Way]:
        if policy.unbounded or (policy.constraints and budget.epsilon is None):
            problem = "allows records to be added or removed" if policy.unbounded else "has publicly known counts"
            bound = "a public number of records for quantiles, and a budget in ε under known counts"
            raise InputError("policy", problem, bound=bound, remedy="release the cumulative counts themselves")
        return super()._ways(policy, budget)

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


@dataclass(frozen=True)
class _Mechanism:
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


def _plan_ordered(policy: Policy, budget: Budget) -> _Mechanism:
    """Return the ordered mechanism under a policy with a public number of records."""
    if policy.unbounded:
        raise InputError(
            "policy",
            "allows records to be added or removed",
            bound="a public number of records for the ordered and hierarchical mechanisms",
            remedy='use mechanism = "auto", which considers strategies',
        )
    power = of_cumulative_counts(policy, 1).power
    scale = budget.laplace(power).scale if power else None
    detail = f"noise of sensitivity {exact_text(power)} on each count" if power else "the counts are exact"
    theta = find_theta(policy) or policy.domain.size
    return _Mechanism("ordered", detail, "ordered mechanism", theta, 1, 2, RangeNoise(scale, None))


def _plan_hierarchical(size: int, theta: int, budget: Budget, fanout: int | None) -> _Mechanism:
    plan = choose_tree(size, theta, budget.epsilon, fanout=fanout)
    noise = plan.noise
    option = "hierarchical" if theta == size else "ordered-hierarchical"
    name = f"{option.replace('-', ' ')} mechanism"
    if noise.tree_scale is not None:
        name += f", trees of fan-out {plan.fanout} and height {plan.levels} within blocks of {theta} values"
        name += f", ε_S = {float(plan.epsilon_nodes):.6g} and ε_H = {float(plan.epsilon_tree):.6g}"
    detail = f"fan-out {plan.fanout}, trees over {theta} values"
    return _Mechanism(option, detail, name, theta, theta, plan.fanout, noise)


def _error(mechanism: _Mechanism, size: int, spans: Spans | None) -> float:
    """Return the expected root mean squared error of the given ranges, or of all cumulative counts."""
    tree = mechanism.structure(size)
    if tree is None:
        return 0.0
    if spans is None:
        variances = tree.prefix_variances()
    else:
        whole = (0, size - 1)
        variances = np.array([0.0 if (low, high) == whole else tree.variance(low, high) for low, high in spans])
    return math.sqrt(float(variances.mean()))


def _measure(histogram: Integers, mechanism: _Mechanism, structure: RangeTree, noisy: _Noisy) -> Floats:
    """Return the unbiased estimates of the cumulative counts from the noisy measurements."""
    cumulative = np.cumsum(histogram)
    nodes = cumulative[mechanism.block - 1 : -1 : mechanism.block]
    if (law := mechanism.noise.node_law) is not None:
        nodes = noisy(law, nodes)
    trees: list[list[Floats]] = []
    if (law := mechanism.noise.tree_law) is not None:
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


def find_theta(policy: Policy) -> int | None:
    """Return θ, from 1 to |T|, if the edges are the pairs of values whose indices differ by at most θ, else None.

    Known counts and absent records leave no mechanism that depends only on θ, so the result is then also None.
    """
    size, steps = policy.domain.size, policy.steps
    if policy.constraints or policy.unbounded:
        return None
    if size == 1:
        return 1
    return None if steps is None or steps < 1 else size if steps >= size - 1 else steps
