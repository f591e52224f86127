"""Audits of finite channels: the guarantee, the cost, and the least cost with this guarantee."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, Integers, as_nonnegative, require
from mechdesign.base._check import as_integer, as_list, as_truth, require_name
from mechdesign.base._display import card
from mechdesign.base._errors import InputError, MetricWarning
from mechdesign.base._names import Labels, Named, labels_of, opened, unless_numbers
from mechdesign.base._values import cached_property
from mechdesign.base._warnings import suppress_warnings
from mechdesign.certify._claims import ExponentBound, PairBound
from mechdesign.certify._exact import exact, float_down, float_up
from mechdesign.certify._privacy import revealed
from mechdesign.graphs._builders import edge_array
from mechdesign.measures import attack
from mechdesign.measures._tight import LARGEST, Rows, Tight, Witness, exact_rows, rates, tight, unequal
from mechdesign.model import distances
from mechdesign.model._channel import Channel
from mechdesign.model._domain import Domain
from mechdesign.model._graph_nodes import check_graph
from mechdesign.model._prior import Prior, as_prior
from mechdesign.model._problem import OBJECTIVES, Problem, costs_of
from mechdesign.model._requirements._graph import GraphPrivacy
from mechdesign.model._requirements._metric import MetricPrivacy
from mechdesign.model._requirements._requirement import Requirement
from mechdesign.model._words import format_bound
from mechdesign.synthesis._design import synthesise
from mechdesign.synthesis._result import Design
from mechdesign.synthesis._settings import SolveSettings

# If ε times the largest distance is at most this bound, a constant answer is optimal up to this relative cost.
_NEGLIGIBLE = 1e-9

# The largest number of radii of `Audit.epsilon_by_distance` by default.
_RADII = 50

_ATTACKS = ("optimal", "bayes", "prior_free", "minimax", "pairwise_minimax")


@dataclass(frozen=True)
class PairLoss:
    """The privacy loss of one pair of secrets.

    Attributes:
        pair: The pair (s, t).
        observable: The observable o that attains ε.
        epsilon: The least ε of this pair over all observables, rounded to nearest.
        likely: The probability p(o|s).
        unlikely: The probability p(o|t).

    >>> audit([[0.75, 0.25], [0.25, 0.75]], distance=[[0, 1], [1, 0]]).worst_pairs(1)[0].likely
    0.75
    """

    pair: tuple[int, int]
    observable: int
    epsilon: float
    likely: float
    unlikely: float


@dataclass(frozen=True)
class DistanceLoss:
    """The privacy loss of all pairs of secrets within a distance.

    Attributes:
        radius: The largest distance of the pairs.
        pairs: The number of pairs (s, t) within the radius, in both orders.
        epsilon: The least ε in nats with p(o|s) <= e^ε p(o|t) for these pairs and all observables, rounded up. It is
            `math.inf` if an observable of one secret never occurs for another.
        witness: The pair and the observable that attain ε; None for ε = 0.

    >>> audit([[0.75, 0.25], [0.25, 0.75]], distance=[[0, 2], [2, 0]]).epsilon_by_distance([2])[0].pairs
    2
    """

    radius: float
    pairs: int
    epsilon: float
    witness: Witness | None


@dataclass(frozen=True, eq=False)
class Audit:
    """The guarantee and the cost of a channel, computed from its numbers without trust in its designer.

    Attributes:
        epsilon: The tight ε, the least ε for all pairs and observables, rounded up. The tight ε is `math.inf` if an
            observable of one secret never occurs for another, or if secrets at distance 0 have different rows.
        witness: The pair of secrets (s, t) and the observable that attain ε; None for ε = 0.
        cost: The cost under the prior, rounded up; None without costs.
        deviation: The largest distance of a row sum from 1, rounded up. The audit divides rows by their sums.
        negative: The number of negative entries, which are replaced by zeros.
        matrix: The channel p(o|s) as floats (n, m), with each row divided by its sum.
        bound: The bounded pairs and their distances, as the pair bound with ε = 1.
        prior: The prior (n,).
        costs: The cost matrix (n, m), or None.
        error: The adversary's error a(ŝ, s), (k, n).
        objective: The objective, "expected" or "worst" cost.
        secrets: The domain of the secrets, for labels and maps; None if it is unknown.

    >>> audit([[0.75, 0.25], [0.25, 0.75]], distance=[[0, 1], [1, 0]])
    Audit(2 secrets, 2 observables, epsilon=1.0986122886681098)
    """

    epsilon: float
    witness: Witness | None
    cost: float | None
    deviation: float
    negative: int
    matrix: Floats
    bound: ExponentBound
    prior: Floats
    costs: Floats | None
    error: Floats
    objective: str
    secrets: Domain | None
    _tight: Tight
    _rows: Rows
    _requirement: Callable[[float], Requirement]

    def __repr__(self) -> str:
        n, m = self.matrix.shape
        return f"Audit({n} secrets, {m} observables, epsilon={self.epsilon!r})"

    def _repr_html_(self) -> str:
        n, m = self.matrix.shape
        facts = [("secrets, observables", f"{n}, {m}"), ("tight ε", _write(self.epsilon))]
        facts += [] if self.cost is None else [("cost", f"{self.cost:.4g}")]
        names = [str(index) for index in range(n)] if self.secrets is None else self.secrets.labels
        for pair in self.worst_pairs(5):
            numbers = f"{pair.likely:.4g} against {pair.unlikely:.4g} for answer {pair.observable}"
            facts.append((" and ".join(names[secret] for secret in pair.pair), f"ε {_write(pair.epsilon)}, {numbers}"))
        return card("Audit", facts)

    def holds(self, epsilon: object) -> bool:
        """Return whether the channel satisfies the given ε, by exact comparisons.

        Args:
            epsilon: A number or a text such as "0.6" or "3/5", which is treated as exact.

        Returns:
            Whether the pair bounds hold for this ε.
        """
        stated = exact(epsilon, "epsilon")
        if stated < 0:
            raise InputError("epsilon", "is negative", value=epsilon, bound="a number >= 0")
        return self._tight.holds(stated)

    def worst_pairs(self, count: int = 10) -> tuple[PairLoss, ...]:
        """Return the pairs of secrets that need the largest ε, worst first.

        Pairs with equal ε are sorted by decreasing probability p(o|s), then by increasing distance. Each pair occurs
        once, in the order that needs the larger ε, (s, t) or (t, s). Pairs at distance 0 are omitted, since either
        every ε or no ε suffices for them.

        Args:
            count: The largest number of pairs.

        Returns:
            The pairs.
        """
        count = as_integer(count, "count", 0)
        best, places = self._rates
        likely = self.matrix[self.bound.sources, places]
        found: dict[frozenset[int], PairLoss] = {}
        for pair in np.lexsort((self.bound.weights, -likely, -best)).tolist():
            if len(found) >= count or best[pair] == 0:
                break
            s, t, o = int(self.bound.sources[pair]), int(self.bound.targets[pair]), int(places[pair])
            loss = PairLoss((s, t), o, float(best[pair]), float(self.matrix[s, o]), float(self.matrix[t, o]))
            found.setdefault(frozenset((s, t)), loss)
        return tuple(found.values())

    def epsilon_by_distance(self, radii: ArrayLike | None = None) -> tuple[DistanceLoss, ...]:
        """Return the least ε for all pairs of secrets within each distance, by exact comparisons.

        The attribute `epsilon` is per unit of distance. Here ε is the loss itself: within the radius, no observable is
        more than e^ε times as likely for one secret as for another. A channel with metric privacy has at most ε = rate
        × radius. An infinite ε at a small radius means that neighbours can be distinguished with certainty. The ends of
        an edge of a policy graph have the distance 1.

        Args:
            radii: The distances, increasing, in the unit of the distances. By default, all distances of pairs, or
                fifty of them. Pairs count as within the radius up to rounding; see `distances.reach`.

        Returns:
            The loss for each radius. ε never decreases with the radius.

        Raises:
            InputError: The radii are not positive or not increasing.

        >>> found = audit([[1, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]], distance=[[0, 1, 2], [1, 0, 1], [2, 1, 0]])
        >>> [each.epsilon for each in found.epsilon_by_distance([0.5, 1])]
        [0.0, inf]
        """
        losses, least = [], -1.0
        worst = Tight(0.0, Fraction(0), None)
        for radius in self._radii(radii):
            most = distances.reach(radius)
            ring = np.flatnonzero((self.bound.weights > least) & (self.bound.weights <= most))
            equal = np.ones(len(ring))
            pairs = ExponentBound("graph", Fraction(1), self.bound.sources[ring], self.bound.targets[ring], equal)
            found = tight(self._rows, pairs)
            if worst.bound is not None and (found.bound is None or found.bound > worst.bound):
                worst = found
            count = int((self.bound.weights <= most).sum())
            losses.append(DistanceLoss(radius, count, worst.epsilon, worst.witness))
            least = most
        return tuple(losses)

    def _radii(self, radii: ArrayLike | None) -> list[float]:
        """Return the radii of `epsilon_by_distance` as floats."""
        if radii is None:
            apart = np.unique(self.bound.weights[self.bound.weights > 0])
            # Of distances that are equal up to rounding, the largest remains.
            apart = apart[np.diff(apart, append=math.inf) > 1e-9 * apart]
            kept = np.linspace(0, len(apart) - 1, min(len(apart), _RADII)).round().astype(np.int64)
            return [float(radius) for radius in apart[kept]]
        given = as_nonnegative(radii, "radii", 1)
        require(given > 0, given, "radii", "> 0")
        require(np.diff(given, prepend=0.0) > 0, given, "radii", "above the radius before it")
        return [float(radius) for radius in given]

    @cached_property
    def exposure(self) -> Floats:
        """The largest ε of any pair that contains a secret, for each secret (n,), rounded to nearest.

        The value is infinite if no ε suffices, for example if a pair at distance 0 has different rows.
        """
        best, _ = self._rates
        most = np.zeros(len(self.matrix))
        np.maximum.at(most, self.bound.sources, best)
        np.maximum.at(most, self.bound.targets, best)
        # Rates above the largest float are reported as infinite.
        most[most == LARGEST] = math.inf
        for witness in unequal(self._rows, self.bound):
            most[list(witness.pair)] = math.inf
        return most

    @cached_property
    def ruled_out(self) -> Integers:
        """For each secret (n,), the number of other secrets that one of its observables excludes."""
        best, _ = self._rates
        return np.bincount(self.bound.sources[np.isinf(best)], minlength=len(self.matrix))

    @cached_property
    def revealed(self) -> tuple[int, ...]:
        """The secrets with an observable that occurs for no other secret, bounded or not, in ascending order."""
        return revealed(self._rows.floats)

    @cached_property
    def design(self) -> Design | None:
        """The certified design of least cost with the channel's tight ε; computed on first use.

        The value is None without costs, for ε = ∞, and if ε is so small that a constant answer is optimal.
        """
        if self.costs is None or not self._needs_design:
            return None
        # A requirement reads a float as its printed decimal, and ε is rounded up to this decimal. A `MetricWarning` is
        # suppressed, because the distances need not be a metric.
        with suppress_warnings(MetricWarning):
            requirement = self._requirement(self.epsilon)
        # Secrets without bounded pairs are released exactly, which the requirement permits.
        return synthesise(Problem(self.prior, self.costs, [requirement], self.objective), SolveSettings())

    @cached_property
    def optimum(self) -> float | None:
        """The lower bound on the cost of any channel with this ε, rounded down; None without costs.

        The lower bound is computed on first use, which solves for `design` if necessary.
        """
        if self.costs is None:
            return None
        if self.design is not None:
            return self.design.certificate.lower_bound
        if self.epsilon == math.inf:
            each = [Fraction(value) for value in self.costs.min(axis=1).tolist()]
            return float_down(_aggregate(each, self.prior, self.objective))
        least = _constant(self.costs, self.prior, self.objective, self.bound)
        # Every cost is at least exp(−ε·d) times the cost of the best constant channel.
        return float_down(least * (1 - Fraction(self._reach)))

    @cached_property
    def distortion(self) -> float:
        """The expected error of the best attack under the prior (Privacy Games, equation 19), in floating point."""
        return float(attack.optimal(self.matrix, self.prior, self.error).distortion)

    def attacks(self, names: Sequence[str] = _ATTACKS) -> dict[str, float]:
        """Return the expected errors of attacks.

        Args:
            names: The names of attacks in `mechdesign.attack`. "minimax" and "pairwise_minimax" solve linear programs.

        Returns:
            The value of `Attack.distortion` for each name.
        """
        names = as_list(names, "names", f"a list of {', '.join(_ATTACKS)}")
        for name in names:
            if name not in _ATTACKS:
                raise InputError("names", "is not an attack", value=name, bound=f"one of {', '.join(_ATTACKS)}")
        return {name: float(getattr(attack, name)(self.matrix, self.prior, self.error).distortion) for name in names}

    @cached_property
    def _rates(self) -> tuple[Floats, Integers]:
        return rates(self._rows, self.bound)

    @property
    def _reach(self) -> float:
        """The product of the tight ε and the largest distance."""
        return self.epsilon * float(self.bound.weights.max(initial=0.0))

    @property
    def _needs_design(self) -> bool:
        return math.isfinite(self.epsilon) and self._reach > _NEGLIGIBLE


def _write(epsilon: float) -> str:
    return format_bound(epsilon, up=True, digits=4) if math.isfinite(epsilon) else "none holds"


@in_own_arithmetic
def audit(
    matrix: Channel | ArrayLike,
    distance: ArrayLike | None = None,
    *,
    graph: nx.Graph | None = None,
    prior: Prior | ArrayLike | None = None,
    cost: ArrayLike | None = None,
    error: ArrayLike | None = None,
    objective: str = "expected",
    secrets: Domain | None = None,
    weights: bool = False,
) -> Audit:
    """Compute the guarantee of a finite channel p(o|s) from its numbers.

    Floats are treated as exact binary numbers, and each row is divided by its exact sum. The result is the distribution
    of a program that draws observables with these weights. Ratios are compared exactly, as fractions. Names of series
    and frames are matched with the labels of the domain, or of the channel.

    Args:
        matrix: The channel (n, m), a row for each secret: a `Channel`, floats, integers, or `fractions.Fraction`.
        distance: The distances d (n, n) in the bounds p(o|s) ≤ exp(ε d(s, s')) p(o|s'). A pair at infinite distance is
            not bounded. The distances need not be a metric.
        graph: A policy graph instead of distances: p(o|s) ≤ e^ε p(o|s') for the ends of every edge.
        prior: The probabilities of the secrets (n,); uniform by default.
        cost: The finite cost of answer o for secret s (n, m).
        error: The adversary's error a(ŝ, s) (k, n). By default, it is the distance if all distances are finite,
            otherwise the Hamming distance.
        objective: The objective: "expected" for the expected cost, "worst" for the largest cost of a secret.
        secrets: The domain of the secrets, for labels and maps.
        weights: Whether entries are weights, whose rows may have any positive sum. Without weights, row sums must be
            within 0.001 of 1.

    Returns:
        The audit.

    Raises:
        InputError: A shape does not match. A row has no positive entry or a wrong sum. The diagonal of `distance` is
            not zero. Both or neither of `distance` and `graph` are given.

    >>> found = audit([[0.75, 0.25], [0.25, 0.75]], distance=[[0, 1], [1, 0]])
    >>> round(found.epsilon, 6), found.witness
    (1.098612, Witness(pair=(0, 1), observable=0))
    >>> audit([[1.0, 1e-16], [1.0, 0.0]], distance=[[0, 1], [1, 0]]).epsilon
    inf
    """
    given, labels, answers = _named(matrix, secrets, cost is not None)
    rows = exact_rows(given, as_truth(weights, "weights"))
    n, m = rows.floats.shape
    bound, errors, requirement = _make_bound(n, distance, graph, labels)
    require_name(objective, OBJECTIVES, "objective")
    if secrets is not None and secrets.size != n:
        raise InputError("secrets", "has the wrong size", value=secrets.size, bound=f"{n} secrets")
    believed = _prior(prior, n, labels)
    table = None if cost is None else opened(cost, "cost")
    if table is not None and secrets is None and answers is None and set(table.columns) == set(labels):
        # Names of the rows of a channel do not tell the order of its columns.
        Named(rows.floats, labels).arranged("matrix", table.columns, table.columns)
    costs = None if table is None else _costs(costs_of(table, labels, answers), (n, m))
    found = tight(rows, bound)
    return Audit(
        epsilon=found.epsilon,
        witness=found.witness,
        cost=None if costs is None else float_up(_cost(rows, believed, costs, objective)),
        deviation=float_up(rows.deviation),
        negative=rows.negative,
        matrix=rows.normalised(),
        bound=bound,
        prior=believed,
        costs=costs,
        error=errors if error is None else _error(error, n, labels),
        objective=objective,
        secrets=secrets,
        _tight=found,
        _rows=rows,
        _requirement=requirement,
    )


def _named(
    matrix: Channel | ArrayLike, secrets: Domain | None, priced: bool
) -> tuple[Channel | ArrayLike, Labels, Labels | None]:
    """Return a channel in the order of the domain, and the labels of secrets and observables.

    If answers are `priced`, the order of the columns matters.
    """
    labels: Labels = secrets.labels if isinstance(secrets, Domain) else ()
    if isinstance(matrix, Channel):
        labels = unless_numbers(labels)
        own = (unless_numbers(matrix.secrets), unless_numbers(matrix.observables))
        table = Named(matrix.numerators, *own).oriented()
    else:
        table = opened(matrix, "matrix", object)
    labels, answers = labels or labels_of(table.rows, "matrix"), labels_of(table.columns, "matrix")
    # Answers that are the secrets have their order; names of the rows alone do not tell the order of the columns.
    answers = tuple(labels) if set(answers) == set(labels) else answers
    square = len(set(table.values.shape)) == 1
    found = table.arranged("matrix", labels, answers or (labels if square and priced else ()))
    if isinstance(matrix, Channel):
        return matrix if found is table.values else Channel(found), labels, answers or None
    return found, labels, answers or None


def _make_bound(
    n: int, distance: ArrayLike | None, graph: nx.Graph | None, labels: Labels
) -> tuple[ExponentBound, Floats, Callable[[float], Requirement]]:
    """Return the pair bounds for ε = 1, the default errors, and a function from ε to a requirement."""
    if (distance is None) == (graph is None):
        problem = "is missing, like graph" if distance is None else "conflicts with graph"
        raise InputError("distance", problem, bound="exactly one of distance and graph")
    if graph is not None:
        check_graph(graph, n, "graph")
        requirement = partial(GraphPrivacy, graph=nx.compose(nx.empty_graph(n), graph))
        return PairBound.graph(Fraction(1), n, edge_array(graph)), distances.hamming(n), requirement
    assert distance is not None
    matrix = as_nonnegative(distance, "distance", 2, infinite=True, rows=labels, columns=labels)
    if matrix.shape != (n, n):
        raise InputError("distance", "does not match the channel", value=matrix.shape, bound=f"({n}, {n})")
    require(np.diag(matrix) == 0, np.diag(matrix), "distance of a secret from itself", "0")
    errors = matrix if np.isfinite(matrix).all() else distances.hamming(n)
    return PairBound.metric(Fraction(1), matrix), errors, partial(MetricPrivacy, distance=matrix)


def _prior(prior: Prior | ArrayLike | None, n: int, labels: Labels) -> Floats:
    if prior is None:
        return Prior.uniform(n).probabilities
    return as_prior(prior, labels=labels, size=n).probabilities


def _costs(cost: ArrayLike, shape: tuple[int, int]) -> Floats:
    costs = as_nonnegative(cost, "cost", 2)
    if costs.shape != shape:
        raise InputError("cost", "does not match the channel", value=costs.shape, bound=str(shape))
    return costs


def _error(error: ArrayLike, n: int, labels: Labels) -> Floats:
    found = as_nonnegative(error, "error", 2, rows=labels, columns=labels)
    if found.shape[1] != n or not len(found):
        raise InputError("error", "does not match the channel", value=found.shape, bound=f"(k, {n})")
    return found


def _cost(rows: Rows, prior: Floats, costs: Floats, objective: str) -> Fraction:
    each = []
    for secret, total in enumerate(rows.sums):
        given = np.flatnonzero(rows.floats[secret]).tolist()
        weighed = (rows.entry(secret, o) * Fraction(costs[secret, o]) for o in given)
        each.append(sum(weighed, Fraction(0)) / total)
    return _aggregate(each, prior, objective)


def _aggregate(each: Sequence[Fraction], prior: Floats, objective: str) -> Fraction:
    """Return the expected or the largest cost over the secrets."""
    if objective == "worst":
        return max(each)
    return sum((Fraction(weight) * value for weight, value in zip(prior.tolist(), each, strict=True)), Fraction(0))


def _constant(costs: Floats, prior: Floats, objective: str, bound: ExponentBound) -> Fraction:
    """Return the least cost of a channel with one answer for each group of connected secrets, rounded down."""
    n = len(prior)
    joined = np.zeros((n, n), dtype=np.bool_)
    joined[bound.sources, bound.targets] = True
    count, group = connected_components(joined, directed=False)
    groups = [np.flatnonzero(group == number) for number in range(count)]
    if objective == "worst":
        return max(Fraction(float(costs[members].max(axis=0).min())) for members in groups)
    least = sum(float((prior[members] @ costs[members]).min()) for members in groups)
    return Fraction(least) * (1 - Fraction(n, 2**50))
