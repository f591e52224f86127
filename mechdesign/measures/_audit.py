"""What a finite channel from anywhere guarantees, what it costs, and how far that is from the least cost."""

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
from mechdesign.base._arrays import Floats, Integers, as_amounts, as_floats, as_nonnegative, require
from mechdesign.base._check import as_integer, as_list, as_truth
from mechdesign.base._errors import InputError, MetricWarning
from mechdesign.base._values import cached_property
from mechdesign.base._warnings import suppress_warnings
from mechdesign.certify._claims import ExponentBound, PairBound
from mechdesign.certify._exact import exact, float_down, float_up
from mechdesign.certify._revealed import revealed
from mechdesign.graphs._builders import check_graph, edge_array
from mechdesign.measures import attack
from mechdesign.measures._tight import LARGEST, Rows, Tight, Witness, exact_rows, rates, tight, unequal
from mechdesign.model import distances
from mechdesign.model._channel import Channel
from mechdesign.model._domain import Domain
from mechdesign.model._prior import Prior
from mechdesign.model._problem import OBJECTIVES, Problem
from mechdesign.model._requirements._graph import GraphPrivacy
from mechdesign.model._requirements._metric import MetricPrivacy
from mechdesign.model._requirements._requirement import Requirement
from mechdesign.synthesis._design import synthesise
from mechdesign.synthesis._result import Design
from mechdesign.synthesis._settings import SolveSettings

# Up to this ε times the largest distance the best constant answer is as good as the optimum, to within this share.
_NEGLIGIBLE = 1e-9

_ATTACKS = ("optimal", "bayes", "prior_free", "minimax", "pairwise_minimax")


@dataclass(frozen=True)
class PairLoss:
    """What one pair of secrets needs: the least ε that bounds p(o|s) by p(o|t) for all o, and the o that needs it.

    `epsilon` is rounded to nearest; `likely` is p(o|s) and `unlikely` p(o|t).
    """

    pair: tuple[int, int]
    observable: int
    epsilon: float
    likely: float
    unlikely: float


@dataclass(frozen=True, eq=False)
class Audit:
    """What is true of a channel, whoever made it; nothing here rests on what its maker claims.

    Attributes:
        epsilon: The tight ε: the least that holds for all pairs and observables, rounded up; `math.inf` where an answer
            of one secret is never one of another, or where secrets at distance 0 differ.
        witness: The pair of secrets (s, t) and the observable for which it is tight, or fails; None for ε = 0.
        cost: The cost under the prior, rounded up, or None where no cost was given.
        deviation: The largest distance of the sum of a row from 1, rounded up. Rows are divided by their sums first.
        negative: How many entries are below zero; they count as zeros.
        matrix: p(o|s) as floats, rows divided by their sums, shape (n, m).
        bound: What was asked about: the pairs, each with its distance, stated at ε = 1.
        prior: The prior (n,), uniform unless given.
        costs: The cost matrix (n, m), or None.
        error: The adversary's error (k, n): the distances where these are finite, else Hamming distance.
        objective: "expected" or "worst".
        secrets: The domain of the secrets, for labels and maps, or None.
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

    def holds(self, epsilon: object) -> bool:
        """Tell whether the channel keeps a stated ε: a number, or a text such as "0.6" or "3/5", taken exactly."""
        stated = exact(epsilon, "epsilon")
        if stated < 0:
            raise InputError("epsilon", "is negative", value=epsilon, bound="a number >= 0")
        return self._tight.holds(stated)

    def worst_pairs(self, count: int = 10) -> tuple[PairLoss, ...]:
        """Return the pairs of secrets that need the largest ε, worst first; of pairs alike the likeliest, then nearest.

        Each pair stands once, in the direction that needs more. Pairs at distance 0 are left out: for them either any
        ε is enough, or none.
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

    @cached_property
    def exposure(self) -> Floats:
        """The largest ε that any pair with a secret in it needs, for each secret, shape (n,), rounded to nearest.

        Infinite where no ε is enough, for a pair at distance 0 that differs, too.
        """
        best, _ = self._rates
        most = np.zeros(len(self.matrix))
        np.maximum.at(most, self.bound.sources, best)
        np.maximum.at(most, self.bound.targets, best)
        # Rates beyond the largest float are infinite as floats.
        most[most == LARGEST] = math.inf
        for witness in unequal(self._rows, self.bound):
            most[list(witness.pair)] = math.inf
        return most

    @cached_property
    def ruled_out(self) -> Integers:
        """For each secret how many others some answer to it rules out, shape (n,)."""
        best, _ = self._rates
        return np.bincount(self.bound.sources[np.isinf(best)], minlength=len(self.matrix))

    @cached_property
    def revealed(self) -> tuple[int, ...]:
        """The secrets that have an answer which no other secret is ever given, ascending, whatever was asked about."""
        return revealed(self._rows.floats)

    @cached_property
    def design(self) -> Design | None:
        """The certified design of least cost with the ε that the channel really has; designed when first asked for.

        None without a cost, and where the optimum needs no design: for ε = 0, where one answer serves all, and for
        ε = ∞, where nothing is required.
        """
        if self.costs is None or not self._needs_design:
            return None
        # The printed decimal of a float is what a requirement takes it for, and it was rounded up as such. Distances
        # are taken as given, whether they are a metric or not.
        with suppress_warnings(MetricWarning):
            requirement = self._requirement(self.epsilon)
        # Secrets that nothing ties to others are released: what was asked of the channel leaves that open.
        return synthesise(Problem(self.prior, self.costs, [requirement], self.objective), SolveSettings())

    @cached_property
    def optimum(self) -> float | None:
        """The proved lower bound of the cost of any channel with this ε, rounded down; None without a cost.

        Computed when first asked for, by `design` where one is needed.
        """
        if self.costs is None:
            return None
        if self.design is not None:
            return self.design.certificate.lower_bound
        if self.epsilon == math.inf:
            each = [Fraction(value) for value in self.costs.min(axis=1).tolist()]
            return float_down(_counted(each, self.prior, self.objective))
        least = _constant(self.costs, self.prior, self.objective, self.bound)
        # Within ε·d of a constant channel no cost is below exp(−ε·d) times its cost.
        return float_down(least * (1 - Fraction(self._reach)))

    @cached_property
    def distortion(self) -> float:
        """The expected error of the best attack under the prior (Privacy Games, equation 19), in floating point."""
        return float(attack.optimal(self.matrix, self.prior, self.error).distortion)

    def attacks(self, names: Sequence[str] = _ATTACKS) -> dict[str, float]:
        """Return the figures of merit of attacks by their names in `mechdesign.attack`; the last two solve programs."""
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
        """ε times the largest distance."""
        return self.epsilon * float(self.bound.weights.max(initial=0.0))

    @property
    def _needs_design(self) -> bool:
        return math.isfinite(self.epsilon) and self._reach > _NEGLIGIBLE


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
    """Compute what a finite channel p(o|s) guarantees, from its numbers as they are.

    Floats are taken as the binary numbers they are, and each row is divided by its exact sum: that is what a program
    draws from that weighs observables by these numbers. Ratios are compared as fractions.

    Args:
        matrix: The channel (n, m), a row for each secret: a `Channel`, or floats, integers, or `fractions.Fraction`.
        distance: d (n, n) for p(o|s) ≤ exp(ε d(s, s')) p(o|s'), infinite where nothing is asked; taken as given,
            whether or not it is a metric.
        graph: A policy graph instead: p(o|s) ≤ e^ε p(o|s') for the ends of every edge.
        prior: How likely each secret is, shape (n,); uniform unless given.
        cost: What answer o costs for secret s, shape (n, m); finite.
        error: The adversary's error a(ŝ, s), shape (k, n); else the distances, or Hamming distance.
        objective: Which cost is meant: "expected", or "worst" over secrets.
        secrets: The domain of the secrets, for labels and maps.
        weights: Take entries as weights, so that rows may have any positive sum. Otherwise a row whose sum is not
            within 0.001 of 1 is refused.

    Raises:
        InputError: An array has another shape, a row has no positive entry or another sum than 1, a secret is at a
            distance from itself, or not exactly one of `distance` and `graph` is given.

    >>> found = audit([[0.75, 0.25], [0.25, 0.75]], distance=[[0, 1], [1, 0]])
    >>> round(found.epsilon, 6), found.witness
    (1.098612, Witness(pair=(0, 1), observable=0))
    >>> audit([[1.0, 1e-16], [1.0, 0.0]], distance=[[0, 1], [1, 0]]).epsilon
    inf
    """
    rows = exact_rows(matrix, as_truth(weights, "weights"))
    n, m = rows.floats.shape
    bound, errors, requirement = _asked(n, distance, graph)
    if objective not in OBJECTIVES:
        raise InputError("objective", "is not known", value=objective, bound=" or ".join(OBJECTIVES))
    if secrets is not None and secrets.size != n:
        raise InputError("secrets", "has another size", value=secrets.size, bound=str(n))
    believed = _prior(prior, n)
    costs = None if cost is None else _costs(cost, (n, m))
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
        error=errors if error is None else _error(error, n),
        objective=objective,
        secrets=secrets,
        _tight=found,
        _rows=rows,
        _requirement=requirement,
    )


def _asked(
    n: int, distance: ArrayLike | None, graph: nx.Graph | None
) -> tuple[ExponentBound, Floats, Callable[[float], Requirement]]:
    """Return the bound at ε = 1, the errors that go with it, and what makes a requirement of an ε."""
    if (distance is None) == (graph is None):
        problem = "is missing, and so is graph" if distance is None else "is given, and graph too"
        raise InputError("distance", problem, bound="exactly one of distance and graph")
    if graph is not None:
        check_graph(graph, n, "graph")
        requirement = partial(GraphPrivacy, graph=nx.compose(nx.empty_graph(n), graph))
        return PairBound.graph(Fraction(1), n, edge_array(graph)), distances.hamming(n), requirement
    assert distance is not None
    matrix = as_nonnegative(distance, "distance", 2, infinite=True)
    if matrix.shape != (n, n):
        raise InputError("distance", "does not fit the channel", value=matrix.shape, bound=f"of shape ({n}, {n})")
    require(np.diag(matrix) == 0, np.diag(matrix), "distance of a secret from itself", "0")
    errors = matrix if np.isfinite(matrix).all() else distances.hamming(n)
    return PairBound.metric(Fraction(1), matrix), errors, partial(MetricPrivacy, distance=matrix)


def _prior(prior: Prior | ArrayLike | None, n: int) -> Floats:
    if prior is None:
        return Prior.uniform(n).probabilities
    given = prior if isinstance(prior, Prior) else Prior(as_floats(prior, "prior", "(n,)"))
    if len(given.probabilities) != n:
        raise InputError("prior", "has another length", value=len(given.probabilities), bound=str(n))
    return given.probabilities


def _costs(cost: ArrayLike, shape: tuple[int, int]) -> Floats:
    costs = as_amounts(cost, "cost", "(n, m)")
    if costs.shape != shape:
        raise InputError("cost", "does not fit the channel", value=costs.shape, bound=f"of shape {shape}")
    return costs


def _error(error: ArrayLike, n: int) -> Floats:
    found = as_nonnegative(error, "error", 2)
    if found.shape[1] != n or not len(found):
        raise InputError("error", "does not fit the channel", value=found.shape, bound=f"of shape (k, {n})")
    return found


def _cost(rows: Rows, prior: Floats, costs: Floats, objective: str) -> Fraction:
    each = []
    for secret, total in enumerate(rows.sums):
        given = np.flatnonzero(rows.floats[secret]).tolist()
        weighed = (rows.entry(secret, o) * Fraction(costs[secret, o]) for o in given)
        each.append(sum(weighed, Fraction(0)) / total)
    return _counted(each, prior, objective)


def _counted(each: Sequence[Fraction], prior: Floats, objective: str) -> Fraction:
    """Return the expected, or worst, of the costs of the secrets."""
    if objective == "worst":
        return max(each)
    return sum((Fraction(weight) * value for weight, value in zip(prior.tolist(), each, strict=True)), Fraction(0))


def _constant(costs: Floats, prior: Floats, objective: str, bound: ExponentBound) -> Fraction:
    """Return the least cost of one answer for all secrets that bounds tie to each other, rounded down a little."""
    n = len(prior)
    joined = np.zeros((n, n), dtype=np.bool_)
    joined[bound.sources, bound.targets] = True
    count, group = connected_components(joined, directed=False)
    groups = [np.flatnonzero(group == number) for number in range(count)]
    if objective == "worst":
        return max(Fraction(float(costs[members].max(axis=0).min())) for members in groups)
    least = sum(float((prior[members] @ costs[members]).min()) for members in groups)
    return Fraction(least) * (1 - Fraction(n, 2**50))
