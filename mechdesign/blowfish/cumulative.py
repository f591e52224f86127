"""Cumulative histograms: the ordered, hierarchical and ordered hierarchical mechanisms, and constrained inference."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression

from mechdesign.blowfish.budget import Budget, LedgerLike
from mechdesign.blowfish.domain import Domain
from mechdesign.blowfish.linear_release import describe_policy
from mechdesign.blowfish.policy import Policy
from mechdesign.blowfish.range_planning import RangePlan, plan_ranges
from mechdesign.blowfish.range_tree import RangeTree
from mechdesign.blowfish.release import Description, Release
from mechdesign.certify.exact import exact, exact_text
from mechdesign.errors import InputError
from mechdesign.mechanisms.discrete import LARGEST_VALUE, DiscreteLaplace, as_confidence
from mechdesign.model._arrays import as_generator, as_integer

__all__ = ["CumulativeRelease", "hierarchical", "ordered", "ordered_hierarchical"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Rng = np.random.Generator | int | None

_CONFIDENCE = Fraction(19, 20)


@dataclass(frozen=True, eq=False)
class CumulativeRelease(Release):
    """Released cumulative counts: `answers` are monotone and between 0 and the number of records.

    `mechdesign.blowfish.range_query`, `cdf` and `quantile` read it.

    Attributes:
        linear: the unbiased estimates before isotonic regression, float64 (|T|,); intervals are about these.
        records: the number of records, which is public.
        theta: θ.
        block: how many values lie from one cumulative count that is measured to the next.
        fanout: the fan-out of the trees within blocks.
        node_scale: the scale of the noise on those cumulative counts, exact, or None where there is none.
        tree_scale: the scale of the noise on the nodes of the trees, exact, or None where there is none.
    """

    kind: ClassVar[str] = "cumulative histogram"

    linear: Floats = field(repr=False)
    records: int
    theta: int
    block: int
    fanout: int
    node_scale: Fraction | None
    tree_scale: Fraction | None

    @cached_property
    def structure(self) -> RangeTree:
        """Return the structure with the variances of the noise."""
        return _structure(len(self), self.block, self.fanout, self.node_scale, self.tree_scale)

    def variance(self, low: int, high: int) -> float:
        """Return the variance of the unbiased estimate of the count of the values low, …, high."""
        if self.node_scale is None and self.tree_scale is None:
            return 0.0
        return self.structure.variance(low, high)

    def half_width(self, variance: float, nodes: int) -> float:
        """Return t so that an unbiased estimate of this variance is off by at most t with the stated confidence.

        Where it is one noisy count, or a difference of two (`nodes`), t is exact. Otherwise it is a weighted sum of
        independent Laplace variables, and t is its standard deviation times the quantile, for unit variance, of a
        Laplace or a normal variable, whichever is larger: for all mixtures that were computed, those of equal weights
        among them, the quantile lies below the larger of these two extremes. Half a step is added because the noise is
        discrete.
        """
        if variance == 0:
            return 0.0
        outside = float(1 - self.description.confidence)
        if self.tree_scale is None:
            assert self.node_scale is not None
            law = DiscreteLaplace(self.node_scale)
            return law.half_width(self.description.confidence) if nodes == 1 else _half_width_of_two(law, outside)
        factor = max(-math.log(outside) / math.sqrt(2), NormalDist().inv_cdf(1 - outside / 2))
        continuous = max(
            2 * float(scale) ** 2 / max(DiscreteLaplace(scale).variance, 1e-200)
            for scale in (self.node_scale, self.tree_scale)
            if scale is not None
        )
        return factor * math.sqrt(variance * continuous) + 0.5

    def _columns(self) -> dict[str, Floats]:
        return {**super()._columns(), "linear": self.linear}

    def _parameters(self) -> dict[str, Any]:
        scales = {"node_scale": self.node_scale, "tree_scale": self.tree_scale}
        texts = {name: None if scale is None else exact_text(scale) for name, scale in scales.items()}
        return {"records": self.records, "theta": self.theta, "block": self.block, "fanout": self.fanout, **texts}

    @classmethod
    def _restored(cls, common: dict[str, Any], parameters: dict[str, Any]) -> CumulativeRelease:
        scales = {
            name: None if (text := parameters[name]) is None else exact(text, name)
            for name in ("node_scale", "tree_scale")
        }
        return cls(**common, **{**parameters, **scales})


def ordered(
    counts: ArrayLike,
    theta: int,
    epsilon: object,
    rng: Rng = None,
    *,
    ledger: LedgerLike | None = None,
    confidence: object = _CONFIDENCE,
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

    Raises:
        InputError: counts that are no counts, no records, θ or ε out of range.
        BudgetExceededError: the ledger refuses.

    >>> release = ordered([5, 0, 0, 7, 1], theta=1, epsilon=100, rng=1)
    >>> release.answers.tolist()
    [5.0, 5.0, 5.0, 12.0, 13.0]
    """
    histogram, threshold, budget = _checked(counts, theta, epsilon)
    size = len(histogram)
    sensitivity = min(threshold, size - 1)
    scale = None if sensitivity == 0 else budget.laplace(sensitivity).scale
    return _release(
        "ordered mechanism",
        histogram,
        threshold,
        budget,
        1,
        2,
        scale,
        None,
        rng,
        ledger,
        confidence,
        "isotonic regression",
    )


def ordered_hierarchical(
    counts: ArrayLike,
    theta: int,
    epsilon: object,
    fanout: int | None = None,
    rng: Rng = None,
    *,
    ledger: LedgerLike | None = None,
    confidence: object = _CONFIDENCE,
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

    Raises:
        InputError: counts that are no counts, no records, θ, ε or the fan-out out of range.
        BudgetExceededError: the ledger refuses.
    """
    histogram, threshold, budget = _checked(counts, theta, epsilon)
    plan = plan_ranges(len(histogram), threshold, budget.epsilon, fanout)
    name = "hierarchical mechanism" if threshold == plan.size else "ordered hierarchical mechanism"
    return _planned(name, plan, histogram, budget, rng, ledger, confidence)


def hierarchical(
    counts: ArrayLike,
    epsilon: object,
    fanout: int | None = None,
    rng: Rng = None,
    *,
    ledger: LedgerLike | None = None,
    confidence: object = _CONFIDENCE,
) -> CumulativeRelease:
    """Release a cumulative histogram under differential privacy: the ordered hierarchical mechanism with θ = |T|.

    The method of Hay, Rastogi, Miklau and Suciu (2010). Arguments and errors are those of `ordered_hierarchical`.
    """
    return ordered_hierarchical(
        counts, len(_as_counts(counts)), epsilon, fanout, rng, ledger=ledger, confidence=confidence
    )


def _planned(
    name: str,
    plan: RangePlan,
    histogram: Integers,
    budget: Budget,
    rng: Rng,
    ledger: LedgerLike | None,
    confidence: object,
) -> CumulativeRelease:
    nodes = plan.node_noise.scale if plan.node_noise and plan.size > plan.theta else None
    trees = plan.tree_noise.scale if plan.tree_noise else None
    inference = "least squares and isotonic regression" if trees else "isotonic regression"
    if trees:
        shape = f"trees of fan-out {plan.fanout} and height {plan.levels} within blocks of {plan.theta} values"
        name = f"{name}, {shape}, ε_S = {float(plan.epsilon_nodes):.6g} and ε_H = {float(plan.epsilon_tree):.6g}"
    return _release(
        name, histogram, plan.theta, budget, plan.theta, plan.fanout, nodes, trees, rng, ledger, confidence, inference
    )


def _release(
    name: str,
    histogram: Integers,
    theta: int,
    budget: Budget,
    block: int,
    fanout: int,
    node_scale: Fraction | None,
    tree_scale: Fraction | None,
    rng: Rng,
    ledger: LedgerLike | None,
    confidence: object,
    inference: str,
) -> CumulativeRelease:
    size, records = len(histogram), int(histogram.sum())
    structure = _structure(size, block, fanout, node_scale, tree_scale)
    laws = {
        what: DiscreteLaplace(scale)
        for what, scale in (("each cumulative count", node_scale), ("each node", tree_scale))
        if scale is not None
    }
    level = as_confidence(confidence)
    generator = None if rng is None else as_generator(rng)
    policy = _policy(size, theta)
    remarks = ["The number of records is public and is given exactly."]
    if laws:
        remarks.append("Standard errors and intervals are those of the unbiased estimates before isotonic regression.")
        budget.spend(ledger, f"cumulative histogram ({name})", policy.neighbours)
        linear, variances = _measured(histogram, structure, node_scale, tree_scale, generator)
    else:
        budget = Budget(epsilon=Fraction(0))
        linear, variances = np.cumsum(histogram).astype(np.float64), np.zeros(size)
    release = CumulativeRelease(
        description=Description(
            what="cumulative histogram",
            policy=describe_policy(policy),
            neighbours=policy.neighbours,
            mechanism=f"{name}: "
            + (" and ".join(f"{law} on {what}" for what, law in laws.items()) or "no noise")
            + (f", then {inference}" if laws else ""),
            epsilon=budget.epsilon,
            rho=None,
            step=Fraction(1),
            confidence=level,
            rehearsal=rng is not None,
            remarks=tuple(remarks),
        ),
        labels={"value": np.arange(size)},
        answers=_inferred(linear, records),
        standard_errors=np.sqrt(variances),
        low=linear,
        high=linear,
        linear=linear,
        records=records,
        theta=theta,
        block=block,
        fanout=fanout,
        node_scale=node_scale,
        tree_scale=tree_scale,
    )
    return _with_intervals(release, variances)


def _measured(
    histogram: Integers,
    structure: RangeTree,
    node_scale: Fraction | None,
    tree_scale: Fraction | None,
    generator: np.random.Generator | None,
) -> tuple[Floats, Floats]:
    """Draw the noise; return the unbiased estimates of the cumulative counts and their variances."""
    cumulative = np.cumsum(histogram)
    records = int(cumulative[-1])
    ends = cumulative[structure.theta - 1 : -1 : structure.theta]
    nodes = ends.astype(np.float64)
    if node_scale is not None:
        nodes = DiscreteLaplace(node_scale).add(ends, generator).astype(np.float64)
    trees: list[list[Floats]] = []
    if tree_scale is not None:
        law = DiscreteLaplace(tree_scale)
        for (block, _), rows in zip(structure.shapes, structure.pieces(histogram), strict=True):
            trees.append([law.add(level, generator).astype(np.float64) for level in block.counts(rows)])
    return structure.fit(nodes, trees, records), structure.prefix_variances()


def _inferred(linear: Floats, records: int) -> Floats:
    """Return the monotone fit between 0 and the number of records, which the last count is."""
    fitted = np.full(len(linear), float(records))
    if len(linear) > 1:
        fitted[:-1] = np.clip(isotonic_regression(linear[:-1]).x, 0, records)
    return fitted


def _with_intervals(release: CumulativeRelease, variances: Floats) -> CumulativeRelease:
    """Return the release with the intervals of its cumulative counts."""
    distinct, places = np.unique(variances, return_inverse=True)
    if release.tree_scale is None:
        widths = np.array([release.half_width(variance, 1) for variance in distinct.tolist()])[places]
    else:
        # Linear in the standard error.
        at_one, at_four = release.half_width(1.0, 1), release.half_width(4.0, 1)
        widths = np.where(variances > 0, (2 * at_one - at_four) + (at_four - at_one) * np.sqrt(variances), 0.0)
    low, high = interval_about(release.linear, widths, release.answers, release.records)
    common = {
        name: getattr(release, name) for name in ("description", "labels", "answers", "standard_errors", "linear")
    }
    own = {name: getattr(release, name) for name in ("records", "theta", "block", "fanout", "node_scale", "tree_scale")}
    return CumulativeRelease(low=low, high=high, **common, **own)


def interval_about(linear: Any, width: Any, answer: Any, records: int) -> tuple[Any, Any]:
    """Return the ends of the intervals linear ± width within what is possible, widened to contain the answer."""
    low = np.minimum(np.clip(linear - width, 0, records), answer)
    high = np.maximum(np.clip(linear + width, 0, records), answer)
    return low, high


def _half_width_of_two(law: DiscreteLaplace, outside: float) -> float:
    """Return the least integer t with P(|X − Y| > t) <= outside for two independent draws of the law.

    P(|X − Y| > t) = 2((1−q)/(1+q))² q^(t+1) ((t + 1 + c)/(1−q) + q/(1−q)²) with c = (1+q²)/(1−q²), from the convolution
    P(X − Y = k) = ((1−q)/(1+q))² q^k (k + c) for k >= 0.
    """
    rate = float(1 / law.scale)
    q, gap = math.exp(-rate), -math.expm1(-rate)
    c = (1 + q * q) / (gap * (1 + q))

    def beyond(t: int) -> float:
        return 2 / (1 + q) ** 2 * math.exp(-rate * (t + 1)) * ((t + 1 + c) * gap + q)

    # A little less than allowed, against rounding.
    allowed = outside * (1 - 1e-9)
    low, high = -1, 1
    while beyond(high) > allowed:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if beyond(middle) > allowed else (low, middle)
    return float(high)


def _structure(
    size: int, block: int, fanout: int, node_scale: Fraction | None, tree_scale: Fraction | None
) -> RangeTree:
    variances = [
        1.0 if scale is None else max(DiscreteLaplace(scale).variance, 1e-200) for scale in (node_scale, tree_scale)
    ]
    return RangeTree(size, block, fanout, *variances)


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
    array = np.asarray(counts)
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
