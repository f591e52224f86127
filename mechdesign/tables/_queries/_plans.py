"""Plans: the expected error of every known way to answer, and the proven limit, before any data are touched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, as_array
from mechdesign.base._check import require_kind
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact_text
from mechdesign.tables._budget import Budget, scaled
from mechdesign.tables._policies._graphs import require_room
from mechdesign.tables._policy import Policy, describe_policy
from mechdesign.tables._queries._cumulative import cumulative_scale
from mechdesign.tables._queries._linear import on_lattice, step_of, weights_of
from mechdesign.tables._queries._trees import RangeNoise, RangeTree, plan_ranges
from mechdesign.tables._sensitivity._sensitivity import sensitivity
from mechdesign.tables._strategies._choice import strategy
from mechdesign.tables._strategies._strategy import Strategy
from mechdesign.tables._values import read_ranges
from mechdesign.tables._workload import Workload, as_workload, prefixes

Ranges = Sequence[tuple[int, int]]

# Up to so many values strategies are found for comparison, which takes seconds.
_COMPARED = 256
_LIMIT = (
    "The limit is proven for linear unbiased decoding and noise of the variance of the continuous law, 2(Δ/ε)² or "
    "Δ²/(2ρ). Noise in whole steps has a little less at large budgets."
)
_INFERENCE = (
    "Isotonic regression follows the ordered and hierarchical mechanisms. It is not linear, never raises the total "
    "squared error of the cumulative counts, and can pass the limit; the errors shown are those before it."
)


@dataclass(frozen=True)
class Option:
    """One way to answer.

    Attributes:
        name: what it is called, as a specification names it.
        detail: its parameters, in words.
        error: the expected root mean squared error of a query; 0 where answers are exact.
        limit: no strategy of its class has a smaller one; None where no limit was computed.
        taken: whether it is the one that the release will use.
    """

    name: str
    detail: str
    error: float
    limit: float | None = None
    taken: bool = False


@dataclass(frozen=True)
class Plan:
    """What a release would cost and how exact it would be.

    Attributes:
        what: what would be released.
        queries: how many answers.
        policy: the policy, in words.
        neighbours: which two databases are neighbours.
        spends: what the release would spend.
        options: the ways to answer, the best first.
        remarks: what else a reader must know.
    """

    what: str
    queries: int
    policy: str
    neighbours: str
    spends: str
    options: tuple[Option, ...]
    remarks: tuple[str, ...] = ()

    @property
    def taken(self) -> Option:
        """Return the way that the release will use."""
        return next(option for option in self.options if option.taken)


@in_own_arithmetic
def plan_histogram(policy: Policy, *, partition: Any = None, epsilon: object = None, rho: object = None) -> Plan:
    """Plan `release_histogram`: independent noise on each count, beside other strategies for the same counts."""
    budget = Budget.of(epsilon, rho)
    options = {} if partition is None else {"partition": partition}
    law = budget.noise(policy, "histogram", Fraction(1), **options)
    blocks = None if partition is None else np.unique(as_array(partition, "partition").ravel(), return_inverse=True)[1]
    queries = policy.domain.size if blocks is None else int(blocks.max()) + 1
    taken = Option("independent", "noise on each count", 0.0 if law is None else law.standard_deviation, taken=True)
    workload: Any = "histogram"
    if blocks is not None and policy.domain.size <= _COMPARED:
        workload = (np.arange(queries)[:, None] == blocks).astype(np.float64)
    others = () if law is None else _compared(workload, policy, budget)
    return _plan("histogram" + " of a partition" * (blocks is not None), queries, policy, budget, (taken, *others))


@in_own_arithmetic
def plan_sum(policy: Policy, attribute: str, *, epsilon: object = None, rho: object = None) -> Plan:
    """Plan `release_sum`: noise on the sum of one attribute."""
    budget, unit = Budget.of(epsilon, rho), policy.domain.attribute(attribute).unit
    law = budget.noise(policy, "sum", unit, attribute=attribute)
    error = 0.0 if law is None else scaled(law.standard_deviation, unit).item()
    taken = Option("noise on the sum", f"in steps of {exact_text(unit)}", error, taken=True)
    return _plan(f"sum of {attribute}", 1, policy, budget, (taken,))


_STRATEGIES = (
    'A strategy errs less here. Releases of kind = "workload" use strategies, for the same ranges; a cumulative count '
    "is the range from the first value on. This kind uses the ordered and hierarchical mechanisms alone."
)


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
    budget, size = Budget.of(epsilon), policy.domain.size
    spans = read_ranges(policy.domain, ranges, positions)
    what = "cumulative histogram" if spans is None else "ranges of a cumulative histogram"
    queries = size if spans is None else len(spans)
    remarks: tuple[str, ...] = ("The number of records is public and is given exactly.", _INFERENCE)
    if policy.constraints:
        scale = cumulative_scale(policy, budget)
        if mechanism not in ("auto", "ordered"):
            bound = '"auto" or "ordered" under publicly known counts'
            raise InputError("mechanism", "does not take known counts", value=mechanism, bound=bound)
        variances = _variances(None if scale is None else RangeNoise(scale, None).structure(size, 1, 2), size, spans)
        detail = f"noise of scale {exact_text(scale or Fraction(0))} on each count"
        ordered = Option("ordered", detail, _root_mean(variances), taken=True)
        return _plan(what, queries, policy, budget, (ordered,), remarks)
    theta = cumulative_theta(policy)
    assert budget.epsilon is not None
    if mechanism == "ordered-hierarchical" and theta in (1, size):
        # At the ends it is one of the others.
        mechanism = "ordered" if theta == 1 else "hierarchical"
    found = []
    for name, detail, tree in _mechanisms(size, theta, budget.epsilon, fanout):
        if mechanism in ("auto", name):
            found.append(Option(name, detail, _root_mean(_variances(tree, size, spans))))
    if not found:
        raise InputError(
            "mechanism",
            "is not known",
            value=mechanism,
            bound='"auto", "ordered", "ordered-hierarchical" or "hierarchical"',
        )
    best = min(found, key=lambda option: option.error)
    marked = tuple(replace(option, taken=option is best) for option in found)
    others: tuple[Option, ...] = ()
    if best.error > 0 and compare:
        others = _compared(
            prefixes(size) if spans is None else as_workload(None, policy.domain, positions=spans), policy, budget
        )
    limit = others[0].limit if others else None
    options = tuple(replace(option, limit=limit) for option in marked) + others
    if any(option.error < best.error for option in others):
        remarks += (_STRATEGIES,)
    return _plan(what, queries, policy, budget, options, remarks)


@in_own_arithmetic
def plan_kmeans(policy: Policy, epsilon: object, iterations: int, *, clusters: int) -> Plan:
    """Plan `kmeans`: the noise on each size and each sum of one iteration."""
    budget = Budget.of(epsilon)
    assert budget.epsilon is not None
    sizes = sensitivity(policy, "kmeans-size").power
    sums = sensitivity(policy, "kmeans-sum").power
    share = budget.epsilon / iterations / ((sizes > 0) + (sums > 0) or 1)
    numeric = [attribute for attribute in policy.domain.attributes if attribute.numeric]
    rows = []
    for name, power in (("size of a cluster", sizes), ("sum over a cluster", sums)):
        error = math.sqrt(2) * float(power / share) if power else 0.0
        rows.append(
            Option(name, f"sensitivity {float(power):.6g}, in each of {iterations} iterations", error, taken=True)
        )
    plan = _plan("k-means clustering", clusters * (1 + len(numeric)), policy, budget, tuple(rows))
    return replace(plan, options=tuple(rows)) if any(row.error for row in rows) else plan


@in_own_arithmetic
def plan_workload(
    workload: object,
    policy: Policy,
    *,
    positions: object = None,
    epsilon: object = None,
    rho: object = None,
    kind: str = "auto",
    tolerance: float = 5e-5,
) -> tuple[Plan, Strategy | None]:
    """Plan the answers to a workload, and return the strategy that was found beside it.

    Under publicly known counts, for which there is no strategy, `release_linear` puts noise on each query. The workload
    and `positions` are those of `strategy`.
    """
    budget = Budget.of(epsilon, rho)
    asked = as_workload(workload, policy.domain, positions=positions)
    if policy.constraints:
        return _plan_queries(asked, policy, budget, kind), None
    noise = "laplace" if budget.rho is None else "gaussian"
    found = strategy(asked, policy, noise, kind=kind, tolerance=tolerance)
    options = _options(found, budget)
    first = replace(options[0], taken=True) if options else Option("exact", "no noise", 0.0, taken=True)
    remarks = (found.exact_part,)
    return _plan(found.workload.phrase, found.workload.count, policy, budget, (first, *options[1:]), remarks), found


def _plan_queries(queries: Workload, policy: Policy, budget: Budget, kind: str) -> Plan:
    if kind != "auto":
        raise InputError(
            "kind", "does not take publicly known counts", value=kind, bound='"auto": noise on each query of its own'
        )
    weights = weights_of(queries)
    step = step_of(weights)
    rows = on_lattice(weights, step, policy.domain.size)
    law = budget.noise(policy, rows, Fraction(1))
    error = 0.0 if law is None else scaled(law.standard_deviation, step).item()
    taken = Option("independent", "noise on each query", error, taken=True)
    return _plan(queries.phrase, queries.count, policy, budget, (taken,))


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


def _variances(tree: RangeTree | None, size: int, spans: Ranges | None) -> Floats:
    if tree is None:
        return np.zeros(1)
    if spans is None:
        return tree.prefix_variances()
    return np.array([0.0 if (low, high) == (0, size - 1) else tree.variance(low, high) for low, high in spans])


def _compared(workload: Any, policy: Policy, budget: Budget) -> tuple[Option, ...]:
    """Return strategies for the same queries, best first, where finding them takes seconds only."""
    if policy.constraints or policy.domain.size > _COMPARED:
        return ()
    noise = "laplace" if budget.rho is None else "gaussian"
    return _options(strategy(workload, policy, noise), budget)


def _options(found: Strategy, budget: Budget) -> tuple[Option, ...]:
    asked = {"epsilon": budget.epsilon, "rho": budget.rho}
    limit = math.sqrt(found.lower_bound(**asked) / found.workload.count)
    names = [f"{kind} strategy" for kind, _, _ in found.candidates]
    return tuple(
        Option(name, detail or f"{found.noise.title()} noise", limit * math.sqrt(ratio), limit)
        for name, (_, detail, ratio) in zip(names, found.candidates, strict=True)
    )


def _plan(
    what: str,
    queries: int,
    policy: Policy,
    budget: Budget,
    options: tuple[Option, ...],
    remarks: tuple[str, ...] = (),
) -> Plan:
    if options[0].limit is None and len(options) > 1:
        options = (replace(options[0], limit=options[-1].limit), *options[1:])
    exact = not any(option.error for option in options if option.taken)
    if policy.constraints:
        remarks += (policy.definition,)
    if exact:
        remarks = ("The policy leaves these answers exact: no two neighbouring databases differ in them.",)
    elif any(option.limit is not None for option in options):
        remarks += (_LIMIT,)
    measure = ("ε", budget.epsilon) if budget.rho is None else ("ρ", budget.rho)
    spends = "nothing" if exact else f"{measure[0]} = {exact_text(measure[1] or Fraction(0))}"
    ranked = tuple(sorted(options, key=lambda option: option.error))
    return Plan(what, queries, describe_policy(policy), policy.neighbours, spends, ranked, remarks)


def _root_mean(variances: Floats) -> float:
    return math.sqrt(float(variances.mean()))
