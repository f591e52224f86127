"""A step of a trace and its outcome.

**States outside a δ-location set.** The true state may be outside a δ-location set C. The trace then releases the
surrogate of the true state, the nearest member of C. If several members are equally near, the surrogate has the lowest
index. A refusal would reveal that the state is outside C. So Pr(o | s) for a state s outside C is the row of its
surrogate. Bayes' rule uses this row, since the adversary knows the algorithm. The full support {p⁻ > 0} needs no
surrogates: a state outside it is impossible. An impossible state has the likelihood 0, and a trace refuses to release
it.

**Charged draws.** If a trace has a ledger, each of its stages refers to this ledger. The ledger records each draw
before it happens, also for copies of the stage. The channel, the mechanism and the design of a stage have the same
distribution, but the ledger does not record samples drawn from them directly.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, Integers, read_only
from mechdesign.base._check import as_generator, as_integer
from mechdesign.base._deadline import keep
from mechdesign.base._errors import InputError
from mechdesign.base._values import cached_property
from mechdesign.certify._certificate import Certificate, certify
from mechdesign.certify._claims import PairBound
from mechdesign.certify._evidence import Evidence
from mechdesign.certify._privacy import realised
from mechdesign.graphs._hull import SensitivityHull
from mechdesign.graphs._repairs import Repair
from mechdesign.leakage._entries import Entry
from mechdesign.leakage.accounting import Ledger
from mechdesign.mechanisms._knorm import KNormMechanism
from mechdesign.mechanisms._mechanism import Mechanism
from mechdesign.model._channel import EXPONENT, Channel
from mechdesign.model._domain import Domain
from mechdesign.model._origin import STANDS_IN, Origin
from mechdesign.model._prior import Prior
from mechdesign.model._problem import Problem
from mechdesign.model._requirements._graph import GraphPrivacy
from mechdesign.solve._contract import Status
from mechdesign.synthesis._result import Design, SolveSummary
from mechdesign.traces._hmm import logarithm


def merge_surrogates(prior: Floats, cost: Floats, members: Integers, surrogates: Integers) -> tuple[Floats, Floats]:
    """Return the probabilities and the costs of the k members, where each state is merged with its surrogate.

    A member c gets the probability q(c) = Σ_{s → c} p(s) and the mean cost Σ_{s → c} p(s) cost(s, o) / q(c), over the
    states s that are released as c. With these numbers, a channel has the same expected cost for the members as for the
    true states.

    Args:
        prior: The probability of each state, shape (n,).
        cost: The cost of releasing o if the true state is s, shape (n, m).
        members: The states of the constrained domain, ascending, shape (k,).
        surrogates: The surrogate of each state, shape (n,); −1 for an impossible state.

    Returns:
        The probabilities (k,) and the costs (k, m) of the members.
    """
    possible = np.flatnonzero(surrogates >= 0)
    owner = np.searchsorted(members, surrogates[possible])
    weights: Floats = np.bincount(owner, weights=prior[possible], minlength=len(members)).astype(np.float64)
    costs = cost[members]
    # A member that is the surrogate of no other state keeps exactly its cost, without rounding.
    for index in np.flatnonzero((np.bincount(owner, minlength=len(members)) > 1) & (weights > 0)).tolist():
        states = possible[owner == index]
        costs[index] = prior[states] @ cost[states] / weights[index]
    return weights, costs


def build_problem(
    domain: Domain, weights: Floats, costs: Floats, graph: nx.Graph, epsilon: Fraction, answers: Integers
) -> Problem:
    """Return the design problem of a channel from the nodes of `graph` to the states in `answers`."""
    members = np.array(sorted(graph), dtype=np.int64)
    policy = nx.relabel_nodes(nx.Graph(graph), {node: row for row, node in enumerate(members.tolist())})
    observables = domain
    if len(answers) < domain.size:
        observables, costs = domain.part(answers), costs[:, answers]
    requirements = [GraphPrivacy(epsilon, policy)]
    return Problem(weights, costs, requirements, secrets=domain.part(members), observables=observables)


def without_prior(design: Design) -> Design:
    """Return a design with the same channel and a uniform prior, for files that must not contain the prior.

    The certificate still proves the protection of the graph. The certificate makes no claim about costs: its lower
    bound is 0.
    """
    problem, numerators = design.problem, design.channel.numerators
    uniform = Prior.uniform(len(numerators))
    given = (problem.requirements, problem.objective, problem.secrets, problem.observables, problem.title)
    stated = Problem(uniform, problem.cost, *given)
    name = design.summary.mechanism or "the channel of least expected cost under a prior that is omitted"
    summary = SolveSummary(Status.STATED, mechanism=name)
    arrays = (numerators, EXPONENT, stated.prior, stated.cost)
    certificate = certify(Evidence(*arrays, stated.objective, stated.stated), summary.provenance())
    certificate.require()
    return Design(stated, design.channel, certificate, None, summary, Origin(prior=STANDS_IN))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A mechanism fitted to a policy graph on a constrained domain.

    Attributes:
        graph: The repaired graph, frozen; its nodes are the members of the constrained domain.
        repair: The repair of the graph; None if it needed no repair.
        hull: The sensitivity hull of the whole graph; None over a domain of labels.
        mechanism: The noise mechanism, or the design of the optimal channel.
        channel: The channel with a row for each member and a column for each of `observables`; None if outputs are not
            snapped.
        observables: The states that may be released, ascending. If several states have the same place, a mechanism with
            a hull releases only the first of them.
        own: Whether the mechanism is one's own: only the policy graph is proved.

    >>> import mechdesign as md
    >>> trace = md.traces.Trace(
    ...     md.Domain.grid(2, 1, 2.0, 1.0), md.graphs.complete(2), 1, [[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5], rng=1
    ... )
    >>> fitted = trace.step(0).stage.fitted
    >>> list(fitted.graph.edges), fitted.observables.tolist()
    ([(0, 1)], [0, 1])
    """

    graph: nx.Graph
    repair: Repair | None
    hull: SensitivityHull | None
    mechanism: Mechanism | Design
    channel: Channel | None
    observables: Integers
    own: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Stage:
    """The public facts about one time of a trace before the release.

    Attributes:
        time: The time, counted from 0; several releases may have the same time.
        epsilon: ε of this release, in nats per edge, exact.
        domain: The states and their places.
        prior: The predicted belief p⁻, shape (n,), read-only.
        members: The constrained domain C, ascending.
        surrogates: The member of C that is released in place of each state, shape (n,); −1 for an impossible state.
        cost: The cost of releasing o if the true state is s, shape (n, n).
        fitted: The graph, the repair, the hull, the mechanism and the channel. The ledger does not record samples drawn
            directly from this channel or this mechanism.
        policy: The name of the policy in a ledger.
        ledger: The ledger that is charged for each `draw`; None to charge no ledger. A stage whose ledger is in memory
            cannot be pickled. ``dataclasses.replace(stage, ledger=None)`` removes the ledger.
        series: False for a ledger with a series, whose leakage does not count traces.

    >>> import mechdesign as md
    >>> trace = md.traces.Trace(
    ...     md.Domain.grid(2, 1, 2.0, 1.0), md.graphs.complete(2), 1, [[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5], rng=1
    ... )
    >>> stage = trace.table(1)[0]
    >>> stage.members.tolist(), stage.epsilon, stage.certificate.holds
    ([0, 1], Fraction(1, 1), True)
    """

    time: int
    epsilon: Fraction
    domain: Domain
    prior: Floats
    members: Integers
    surrogates: Integers
    cost: Floats
    fitted: Fitted
    policy: str = ""
    ledger: Ledger | None = None
    series: Literal[False] | None = None

    def __repr__(self) -> str:
        """Return the time, the number of members and the mechanism, without the arrays."""
        return f"Stage(time={self.time}, {len(self.members)} of {self.domain.size} states, {self.fitted.mechanism!r})"

    @property
    def graph(self) -> nx.Graph:
        """The repaired policy graph on the constrained domain, frozen."""
        return self.fitted.graph

    @property
    def repair(self) -> Repair | None:
        """The repair of the graph; None if it needed no repair."""
        return self.fitted.repair

    @property
    def hull(self) -> SensitivityHull | None:
        """The sensitivity hull of `graph` as a whole; None over a domain of labels."""
        return self.fitted.hull

    @property
    def channel(self) -> Channel | None:
        """The channel from members to `fitted.observables`; None if outputs are not snapped.

        The ledger is charged for `draw`, but does not record samples drawn from the channel directly.
        """
        return self.fitted.channel

    @cached_property
    def design(self) -> Design | None:
        """The channel, its problem, and the proof of its privacy; None if outputs are not snapped.

        The secrets are the members, with the probabilities and costs of `merge_surrogates`. For a K-norm mechanism the
        lower bound is 0: the certificate makes no claim about its optimality. The ledger does not record answers of the
        design or of exported programs. The owner must record these answers with `Ledger.spend`.
        """
        if isinstance(self.fitted.mechanism, Design):
            return self.fitted.mechanism
        if self.channel is None:
            return None
        weights, costs = merge_surrogates(self.prior, self.cost, self.members, self.surrogates)
        problem = build_problem(self.domain, weights, costs, self.graph, self.epsilon, self.fitted.observables)
        arrays = (self.channel.numerators, EXPONENT, problem.prior, problem.cost)
        summary = SolveSummary(Status.STATED, mechanism=repr(self.fitted.mechanism))
        certificate = certify(Evidence(*arrays, problem.objective, problem.stated), summary.provenance())
        certificate.require()
        return Design(problem, self.channel, certificate, None, summary)

    @property
    def certificate(self) -> Certificate | None:
        """The exact proof that the channel satisfies the policy; None if outputs are not snapped."""
        design = self.design
        return None if design is None else design.certificate

    def charge(self) -> Entry | None:
        """Record the cost of one draw in the ledger.

        If an error occurs, the ledger has no new entry.

        Returns:
            The entry, or None without a ledger.

        Raises:
            BudgetExceededError: The draw would exceed the budget.
            LedgerError: The ledger cannot be read or written.
        """
        if self.ledger is None:
            return None
        count, edges = len(self.members), self.graph.number_of_edges()
        whom = f"any two of {count} possible states joined by one of {edges} edges of the policy graph"
        if edges == 0:
            whom = f"no two of {count} possible state{'s' * (count != 1)}: the policy graph joins none of them"
        # After this call, Ctrl-C does not lose the release that is charged.
        keep()
        what = f"the state at time {self.time} of a trace"
        policy = self.policy or None
        return self.ledger.spend(what, whom, epsilon=self.epsilon, policy=policy, series=self.series)

    def draw(self, state: int, rng: np.random.Generator | None = None) -> tuple[int | None, Floats]:
        """Draw the output for a true state.

        Snapped outputs are drawn from the integers of the channel, exactly as certified. The ledger of the stage, if
        any, is charged before the draw. `Trace.step` has already charged the draw that it makes; each further draw
        reveals more.

        Args:
            state: The index of the true state.
            rng: A NumPy generator; None takes random bits from the operating system.

        Returns:
            The index of the released state, None if outputs are not snapped, and the coordinates, shape (d,).

        Raises:
            InputError: The state is impossible.
            BudgetExceededError: The draw would exceed the budget.
        """
        row = self._row(state)
        rng = None if rng is None else as_generator(rng)
        self.charge()
        if self.channel is not None:
            output = int(self.fitted.observables[int(self.channel.sample(row, rng=rng))])
            return output, self.domain.points[output]
        assert isinstance(self.fitted.mechanism, KNormMechanism)
        coordinates = self.fitted.mechanism.sample(int(self.members[row]), rng=rng)[0]
        read_only(coordinates)
        return None, coordinates

    def log_likelihood(self, output: int | None, coordinates: ArrayLike | None = None) -> Floats:
        """Return ln Pr(output | s) for every state s.

        A state outside C has the probabilities of its surrogate. If outputs are not snapped, the probabilities are
        densities of the `coordinates`, see `KNormMechanism.log_likelihood`.

        Args:
            output: The index of the released state; None if outputs are not snapped.
            coordinates: The released coordinates, shape (d,); ignored if outputs are snapped.

        Returns:
            The logarithms, shape (n,), read-only; -inf for states that exclude the output.

        Raises:
            InputError: The output is not an observable of the channel, or the coordinates are missing.
        """
        if self.channel is None:
            assert isinstance(self.fitted.mechanism, KNormMechanism)
            if coordinates is None:
                raise InputError(
                    "coordinates", "are missing, and outputs are not snapped", bound="an array of shape (d,)"
                )
            of_members = self.fitted.mechanism.log_likelihood(coordinates)
        else:
            index = as_integer(output, "output", 0)
            column = int(np.searchsorted(self.fitted.observables, index))
            if column == len(self.fitted.observables) or self.fitted.observables[column] != index:
                raise InputError("output", "is not an observable", value=index, bound="one of fitted.observables")
            numerators = self.channel.numerators[:, column].astype(np.float64)
            of_members = logarithm(np.ldexp(numerators, -EXPONENT))
        result = np.full(self.domain.size, -np.inf)
        possible = self.surrogates >= 0
        result[possible] = of_members[np.searchsorted(self.members, self.surrogates[possible])]
        return read_only(result)

    @cached_property
    def degrees(self) -> Integers:
        """The degree of protection of each state, shape (n,) (DPHMM, Definition 5.2).

        The degree is the number of members of C that the mechanism makes ε-indistinguishable from the state, including
        the state. For a K-norm mechanism, this is the number of members in the hull around the state. For an optimal
        channel and a mechanism of one's own, it is the number of neighbours plus 1. A state outside C has the degree of
        its surrogate; an impossible state has the degree 0.
        """
        mechanism = self.fitted.mechanism
        if isinstance(mechanism, Mechanism) and not self.fitted.own:
            counts = mechanism.degrees()
        else:
            counts = {int(node): int(degree) + 1 for node, degree in self.graph.degree()}
        result = np.zeros(self.domain.size, dtype=np.int64)
        possible = self.surrogates >= 0
        result[possible] = [counts[node] for node in self.surrogates[possible].tolist()]
        return read_only(result)

    @cached_property
    def realised(self) -> float | None:
        """The least ε, rounded up, for which *all* possible states are pairwise ε-indistinguishable.

        The value is ln of the largest ratio of two entries in one column of the channel, in exact arithmetic. The value
        is infinite if an output excludes a member, and None if outputs are not snapped.
        """
        if self.channel is None:
            return None
        numerators = self.channel.numerators[:, self.channel.numerators.any(axis=0)]
        extremes = np.stack((numerators.max(axis=0), numerators.min(axis=0)))
        return realised(extremes, EXPONENT, PairBound.graph(self.epsilon, 2, [[0, 1]]))

    def _row(self, state: int) -> int:
        number = as_integer(state, "state", 0)
        if number >= self.domain.size or self.surrogates[number] < 0:
            raise InputError("state", "cannot be the true state", value=number, bound="a state of positive prior")
        return int(np.searchsorted(self.members, self.surrogates[number]))


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """The output of a trace at one time, and the adversary's belief after it.

    All fields may be public, except the ledger in `stage`. The fields depend on the true state only through the output.
    A release does not record whether the state was replaced by a surrogate. A release keeps the channel of its stage in
    memory: 8 bytes for each member and observable. Stages with the same constrained domain share the channel.

    Attributes:
        output: The released state, an index into the domain; None if outputs are not snapped.
        coordinates: The released place, shape (d,), read-only.
        posterior: The belief p⁺ after the output, shape (n,), read-only.
        log_likelihood: The logarithm of Pr(output | s) for every state s, shape (n,), read-only.
        stage: The facts before the release: time, constrained domain, graph and mechanism. `stage` also contains the
            ledger of the trace, which is not public.
        entry: The number of the ledger entry, which consists of random digits; None if no ledger was charged.

    >>> import mechdesign as md
    >>> trace = md.traces.Trace(
    ...     md.Domain.grid(2, 1, 2.0, 1.0), md.graphs.complete(2), 1, [[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5], rng=1
    ... )
    >>> release = trace.step(0)
    >>> release, release.coordinates.tolist(), release.log_likelihood.round(4).tolist()
    (Release(time=0, output=0), [0.5, 0.5], [-0.3614, -1.1931])
    """

    output: int | None
    coordinates: Floats
    posterior: Floats
    log_likelihood: Floats
    stage: Stage
    entry: str | None = None

    def __repr__(self) -> str:
        """Return the time and the output."""
        what = self.coordinates.tolist() if self.output is None else self.output
        return f"Release(time={self.stage.time}, output={what})"

    @property
    def certificate(self) -> Certificate | None:
        """The exact proof that the channel protects `stage.graph` at ε; None if outputs are not snapped."""
        return self.stage.certificate
