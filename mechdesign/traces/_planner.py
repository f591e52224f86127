"""Compute the stage of each time of a trace before the true state is read.

A stage contains the constrained domain, the policy graph, its repair and the mechanism. The algorithm is Algorithm 5 of
PGLP (Cao et al. 2020), lines 2 to 9. Algorithm 2 of DPHMM (Xiao et al. 2017) is similar. Each time starts from the
whole policy graph, as in DPHMM. In Algorithm 5 of PGLP, each time starts from the constrained graph of the previous
time, so edges disappear permanently.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from fractions import Fraction
from typing import Literal, get_args

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, Integers, as_nonnegative, read_only
from mechdesign.base._check import as_truth, require_kind
from mechdesign.base._errors import InputError
from mechdesign.base._locks import ProcessLock
from mechdesign.base._values import cached_property
from mechdesign.certify._claims import PairBound
from mechdesign.certify._exact import exact, exact_text
from mechdesign.certify._privacy import check
from mechdesign.certify._texts import require_plain_texts
from mechdesign.graphs._builders import constrain, delta_set, disconnected, isolated
from mechdesign.graphs._cells import nearest
from mechdesign.graphs._exposure import protected_pairs, sensitivity_hull
from mechdesign.graphs._hull import as_points
from mechdesign.graphs._problem import Within
from mechdesign.graphs._problem import problem as policy_problem
from mechdesign.graphs._repairs import Method as RepairMethod
from mechdesign.graphs._repairs import Repair, repair
from mechdesign.mechanisms._kinds import HULLED, MECHANISMS, Build
from mechdesign.mechanisms._knorm import HullChoice, KNormMechanism
from mechdesign.mechanisms._mechanism import Mechanism
from mechdesign.model import distances
from mechdesign.model._channel import EXPONENT, Channel
from mechdesign.model._domain import Domain
from mechdesign.model._graph_nodes import check_graph
from mechdesign.model._numbers import Number
from mechdesign.synthesis._design import synthesise
from mechdesign.synthesis._settings import SolveSettings
from mechdesign.traces._stage import Fitted, Stage, merge_surrogates

OPTIMAL = "lp"
"""The name of the channel of least expected cost; all other names come from `mechdesign.mechanisms`."""

Repaired = Literal["disconnected", "all"]
"""The states that a repair protects: disconnected states, or all states without edges in the constrained graph."""

_CHOICES = {
    "repair": (*get_args(RepairMethod), None),
    "repaired": get_args(Repaired),
    "hull": get_args(HullChoice),
    "within": get_args(Within),
}
# The approximate memory limit, in bytes, of the cache of mechanisms fitted to constrained domains that recur.
_CACHE_BYTES = 2**27
# The approximate size in bytes of an edge of a networkx graph.
_EDGE_BYTES = 300


class Planner:
    """Builds the `Stage` for a time and a belief, and caches the mechanisms that it fits to constrained domains.

    The arguments have the same meaning as for `mechdesign.traces.Trace`. Several traces may share a planner.
    """

    def __init__(
        self,
        domain: Domain,
        graph: nx.Graph,
        mechanism: str | Build = "planar-isotropic",
        *,
        delta: Number | None = None,
        repair: RepairMethod | None = "area",
        repaired: Repaired = "disconnected",
        hull: HullChoice = "component",
        within: Within = "component",
        snap: bool = True,
        cost: ArrayLike | None = None,
        settings: SolveSettings | None = None,
    ) -> None:
        if not isinstance(domain, Domain):
            raise InputError("domain", "is not a Domain", value=type(domain).__name__, bound="a Domain")
        # Files are written after the charge, so labels that files cannot contain must be rejected before the charge.
        require_plain_texts(domain.labels, "domain.labels")
        check_graph(graph, domain.size, every=True)
        check_mechanism(mechanism)
        choices = (("repair", repair), ("repaired", repaired), ("hull", hull), ("within", within))
        for name, given in choices:
            if given not in _CHOICES[name]:
                raise InputError(
                    name, "is not known", value=given, bound=f"one of {', '.join(map(repr, _CHOICES[name]))}"
                )
        as_truth(snap, "snap")
        if delta is not None and not 0 <= exact(delta, "delta") < 1:
            raise InputError("delta", "is out of range", value=delta, bound="at least 0 and below 1")
        if not snap and not _has_hull(mechanism):
            name = "a function" if callable(mechanism) else repr(mechanism)
            raise InputError("snap", f"is False, but {name} always releases states", value=snap, bound="True")
        if domain.points.shape[1]:
            as_points(domain, "domain.points")
        else:
            _require_no_places(mechanism, repair, delta, cost)
            repair = None
        if settings is not None:
            require_kind(settings, SolveSettings, "settings", "SolveSettings")
        self.domain = domain
        self.graph: nx.Graph = nx.freeze(nx.Graph(graph))
        self.mechanism = mechanism
        self.delta = delta
        self.repair = repair
        self.repaired = repaired
        self.hull: HullChoice = hull
        self.within = within
        self.snap = snap
        self.cost = _cost(cost, domain)
        self.settings = settings or SolveSettings()
        self._cache: OrderedDict[tuple[object, ...], Fitted] = OrderedDict()
        # The lock of the cache; it is never held while a mechanism is fitted.
        self._lock = ProcessLock()

    @cached_property
    def name(self) -> str:
        """The name of the policy in a ledger, with the size and a digest of labels, places, edges, repair and hull."""
        edges = sorted(sorted(map(int, edge)) for edge in self.graph.edges)
        content = (self.domain.labels, self.domain.points.tolist(), edges, self.repair, self.repaired, self.hull)
        digest = hashlib.sha256(repr(content).encode()).hexdigest()[:16]
        count = len(edges)
        return f"policy graph on {self.domain.size} states, {count} edge{'s' * (count != 1)} [{digest}]"

    def stage(self, time: int, log_prior: Floats, epsilon: Fraction) -> Stage:
        """Return the stage of a time for the belief ln p⁻, shape (n,), where p⁻ is normalised."""
        prior = np.exp(log_prior)
        read_only(prior)
        places = self.domain.points
        if self.delta is None:
            members = np.flatnonzero(log_prior > -np.inf)
            surrogates = np.where(log_prior > -np.inf, np.arange(self.domain.size), -1)
        else:
            members = delta_set(prior, self.delta)
            surrogates = members[nearest(places, places[members])]
            # A member is its own surrogate, even if another member has the same place.
            surrogates[members] = members
        for array in (members, surrogates):
            read_only(array)
        fitted = self._get_or_fit(members, surrogates, prior, epsilon)
        return Stage(time, epsilon, self.domain, prior, members, surrogates, self.cost, fitted, self.name)

    def _get_or_fit(self, members: Integers, surrogates: Integers, prior: Floats, epsilon: Fraction) -> Fitted:
        key: tuple[object, ...] = (members.tobytes(), epsilon)
        if self.mechanism == OPTIMAL:
            # The optimal channel depends on the probabilities of all states.
            key = (*key, prior.tobytes(), surrogates.tobytes())
        with self._lock:
            known = self._cache.get(key)
        found = known or self._fit(members, surrogates, prior, epsilon)
        with self._lock:
            self._cache[key] = found
            self._cache.move_to_end(key)
            sizes = [_estimate_bytes(entry) for entry in self._cache.values()]
            while len(sizes) > 1 and sum(sizes) > _CACHE_BYTES:
                self._cache.popitem(last=False)
                sizes.pop(0)
        return found

    def _fit(self, members: Integers, surrogates: Integers, prior: Floats, epsilon: Fraction) -> Fitted:
        graph, repaired = self._protect_members(members)
        everywhere = np.arange(self.domain.size)
        hull = sensitivity_hull(self.domain, graph) if self._has_places else None
        if self.mechanism == OPTIMAL:
            likely, costs = np.zeros(self.domain.size), self.cost.copy()
            likely[members], costs[members] = merge_surrogates(prior, self.cost, members, surrogates)
            # The certificate of each step lists the revealed states, so a warning at each step is unnecessary.
            request = policy_problem(
                self.domain,
                graph=graph,
                epsilon=epsilon,
                prior=likely,
                cost=costs,
                within=self.within,
                isolated="release",
            )
            made = synthesise(request, self.settings)
            answers = members if self.within == "component" else everywhere
            return Fitted(graph, repaired, hull, made, made.channel, answers)
        if callable(self.mechanism):
            return Fitted(graph, repaired, hull, *_build_own(self.mechanism, epsilon, self.domain, graph, self.hull))
        mechanism = MECHANISMS[self.mechanism](epsilon, self.domain, graph, self.hull)
        answers = _distinct(self.domain.points) if _has_hull(self.mechanism) else everywhere
        channel = _build_snapped_channel(mechanism, self.domain, answers) if self.snap else None
        return Fitted(graph, repaired, hull, mechanism, channel, answers)

    @property
    def _has_places(self) -> bool:
        return bool(self.domain.points.shape[1])

    def _protect_members(self, members: Integers) -> tuple[nx.Graph, Repair | None]:
        """Return the policy graph on the members, repaired so that the mechanism protects all endangered states."""
        graph, repaired = constrain(self.graph, members), None
        # A state without edges in the policy graph needs no protection (PGLP, Lemma 1). A state that the constraint
        # disconnects needs protection (Definition 11).
        endangered = disconnected(self.graph, members) if self.repaired == "disconnected" else isolated(graph)
        if len(members) == 1 or not endangered.size:
            return nx.freeze(graph), None
        # Without a hull, a mechanism protects only edges, so a state without edges in the policy protects no other
        # state.
        hulled = _has_hull(self.mechanism)
        bystanders = np.setdiff1d(members[:0] if hulled else isolated(graph), endangered)
        if self.repair is not None:
            made = repair(self.domain, graph, self.repair, hull=self.hull, nodes=endangered, bystanders=bystanders)
            if made.added:
                graph, repaired = nx.Graph(made.graph), made
        if not hulled and self._has_places:
            pairs = protected_pairs(self.domain, graph, self.hull)
            alone = np.intersect1d(isolated(graph), endangered)
            free = np.intersect1d(isolated(graph), bystanders)
            graph.add_edges_from(pairs[np.isin(pairs, alone).any(axis=1) & ~np.isin(pairs, free).any(axis=1)].tolist())
        return nx.freeze(graph), repaired


def _has_hull(mechanism: str | Build) -> bool:
    """Return whether a mechanism is known to protect all states in a hull; only edges are proved of one's own."""
    return not callable(mechanism) and mechanism in HULLED


def check_mechanism(mechanism: object) -> None:
    """Raise `InputError` unless traces know the mechanism with this name, or it is a function."""
    if not callable(mechanism) and mechanism != OPTIMAL and mechanism not in MECHANISMS:
        names = ", ".join(map(repr, (OPTIMAL, *MECHANISMS)))
        raise InputError("mechanism", "is not known", value=mechanism, bound=f"one of {names}, or a function")


def _require_no_places(
    mechanism: str | Build, repair: RepairMethod | None, delta: Number | None, cost: ArrayLike | None
) -> None:
    """Raise `InputError` for what needs places, over a domain of labels, where the default repair is left out."""
    problem, remedy = "needs places, and the domain has labels only", "give a domain of points or cells"
    if _has_hull(mechanism):
        without = [OPTIMAL, *(name for name in MECHANISMS if name not in HULLED)]
        raise InputError("mechanism", problem, value=mechanism, bound=f"one of {', '.join(map(repr, without))}")
    if repair not in (None, "area"):
        raise InputError("repair", problem, value=repair, bound="None", remedy=remedy)
    if delta is not None:
        raise InputError("delta", problem, value=delta, bound="None", remedy=remedy)
    if cost is None:
        raise InputError("cost", "is missing", bound="a matrix (n, n)", remedy="a domain of labels has no distances")


def _distinct(places: Floats) -> Integers:
    """Return the first state at each distinct place, in ascending order."""
    _, first = np.unique(places, axis=0, return_index=True)
    return np.sort(first)


def _build_own(
    build: Build, epsilon: Fraction, domain: Domain, graph: nx.Graph, hull: HullChoice
) -> tuple[Mechanism, Channel, Integers, Literal[True]]:
    """Return the last fields of `Fitted` for a mechanism of one's own, whose channel keeps the policy graph exactly."""
    try:
        made: object = build(epsilon, domain, graph, hull)
        if not isinstance(made, Mechanism):
            raise TypeError(f"it returns a value of the type {type(made).__name__}")
        answers = _distinct(domain.points) if isinstance(made, KNormMechanism) else np.arange(domain.size)
        channel = made.channel(domain.part(answers))
        if not isinstance(channel, Channel):
            raise TypeError(f"the channel of its mechanism has the type {type(channel).__name__}")
        if (found := channel.numerators.shape) != (wanted := (len(graph), len(answers))):
            raise ValueError(f"the channel of its mechanism has the shape {found} instead of {wanted}")
    except Exception as error:
        problem = f"is a function that cannot be used ({type(error).__name__}: {error})"
        bound = "a function (epsilon, domain, graph, hull) that returns a Mechanism"
        raise InputError("mechanism", problem, bound=bound) from error
    row = {node: index for index, node in enumerate(sorted(graph))}
    edges = [(row[one], row[other]) for one, other in graph.edges]
    if broken := check(channel.numerators, EXPONENT, PairBound.graph(epsilon, len(row), edges)):
        problem = f"is a function whose channel breaks the policy graph ({broken.sentence})"
        raise InputError("mechanism", problem, bound=f"within ε = {exact_text(epsilon)} on every edge")
    return made, channel, answers, True


def _build_snapped_channel(mechanism: Mechanism, domain: Domain, answers: Integers) -> Channel:
    """Return the channel from the nodes of the mechanism to the states in `answers`.

    Raises `InputError` if the mechanism has no channel; the remedy in the error is written for traces.
    """
    try:
        return mechanism.channel(domain if len(answers) == domain.size else domain.part(answers))
    except InputError as error:
        path, problem = error.path, error.problem
        if path == "observables":
            path, problem = "snap", f"is True, but the states of the domain {problem}"
        remedy = 'release coordinates with snap=False, or use mechanism="lp"'
        raise InputError(path, problem, value=error.value, bound=error.bound, remedy=remedy) from error


def _estimate_bytes(fitted: Fitted) -> int:
    """Return the approximate size of a fitted mechanism in bytes, including its own copy of the graph."""
    channel = 0 if fitted.channel is None else fitted.channel.numerators.nbytes
    return int(channel + 2 * _EDGE_BYTES * (fitted.graph.number_of_edges() + len(fitted.graph)))


def _cost(cost: ArrayLike | None, domain: Domain) -> Floats:
    if cost is None:
        return read_only(distances.euclidean(domain))
    costs = as_nonnegative(cost, "cost", 2, rows=domain.labels, columns=domain.labels)
    if costs.shape != (domain.size, domain.size):
        raise InputError(
            "cost", "does not match the domain", value=costs.shape, bound=f"({domain.size}, {domain.size})"
        )
    return costs
