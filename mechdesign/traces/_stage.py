"""A step and its outcome.

**States outside a δ-location set.** Such a set C leaves out states that may be the true one. They are released as if
they were the nearest member of C, of equally near ones that of the lowest index: their surrogate. Refusing would tell
that the state is outside. So Pr(o | s) for a state outside C is the row of its surrogate, and Bayes' rule is applied
with that, since the adversary knows the algorithm. The full support {p⁻ > 0} needs no surrogates: a state outside it
cannot be the true one, has the likelihood 0, and is refused.

**What is charged.** A stage of a trace with a ledger carries it, and each draw is recorded there before it is made, by
whichever copy of the stage. Its channel, its mechanism and its design are the same law for other uses: what is drawn
from these no ledger hears of.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base import _interrupts as interrupts
from mechdesign.base._arrays import Floats, Integers, read_only
from mechdesign.base._check import as_generator, as_integer
from mechdesign.base._errors import InputError
from mechdesign.base._values import cached_property
from mechdesign.certify._certificate import Certificate, certify
from mechdesign.certify._claims import PairBound
from mechdesign.certify._evidence import Evidence
from mechdesign.certify._privacy import realised
from mechdesign.graphs._geometry._hull import SensitivityHull
from mechdesign.graphs._repairs import Repair
from mechdesign.leakage._ledger_file import Entry
from mechdesign.leakage.accounting import Ledger
from mechdesign.mechanisms._knorm import HullChoice, KNormMechanism
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


def merged(prior: Floats, cost: Floats, members: Integers, surrogates: Integers) -> tuple[Floats, Floats]:
    """Return how likely the members are to be released, and what that costs: shapes (k,) and (k, m).

    `prior` (n,) is over all states, `cost` (n, m) what it costs to release o when s is true, `surrogates` (n,) the
    member as which each state is released, or −1. A member c is as likely as all states released as it together,
    q(c) = Σ_{s → c} p(s), and costs what they do on average, Σ_{s → c} p(s) cost(s, o) / q(c): so the expected cost of
    a channel is that of the true states.
    """
    possible = np.flatnonzero(surrogates >= 0)
    owner = np.searchsorted(members, surrogates[possible])
    weights: Floats = np.bincount(owner, weights=prior[possible], minlength=len(members)).astype(np.float64)
    costs = cost[members]
    # The cost of members that stand for nobody else is their own, to the last bit.
    for index in np.flatnonzero((np.bincount(owner, minlength=len(members)) > 1) & (weights > 0)).tolist():
        states = possible[owner == index]
        costs[index] = prior[states] @ cost[states] / weights[index]
    return weights, costs


def stated_problem(
    domain: Domain, weights: Floats, costs: Floats, graph: nx.Graph, epsilon: Fraction, answers: Integers
) -> Problem:
    """Return the problem that a channel from the nodes of `graph` to the states in `answers` answers, well or badly."""
    members = np.array(sorted(graph), dtype=np.int64)
    policy = nx.relabel_nodes(nx.Graph(graph), {node: row for row, node in enumerate(members.tolist())})
    observables = domain
    if len(answers) < domain.size:
        observables, costs = domain.part(answers), costs[:, answers]
    requirements = [GraphPrivacy(epsilon, policy)]
    return Problem(weights, costs, requirements, secrets=domain.part(members), observables=observables)


def without_prior(design: Design) -> Design:
    """Return a design with the same channel and a uniform prior, under which nothing is claimed of its cost.

    For files that must not hold the prior. What the graph protects is proved as before; the lower bound is 0.
    """
    problem, numerators = design.problem, design.channel.numerators
    uniform = Prior.uniform(len(numerators))
    given = (problem.requirements, problem.objective, problem.secrets, problem.observables, problem.title)
    stated = Problem(uniform, problem.cost, *given)
    name = design.summary.mechanism or "the channel of least expected cost under a prior that is left out"
    summary = SolveSummary(Status.STATED, mechanism=name)
    arrays = (numerators, EXPONENT, stated.prior, stated.cost)
    certificate = certify(Evidence(*arrays, stated.objective, stated.stated), summary.provenance())
    certificate.require()
    return Design(stated, design.channel, certificate, None, summary, Origin(prior=STANDS_IN))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A mechanism fitted to a policy graph on a constrained domain.

    Attributes:
        graph: the repaired graph, frozen; its nodes are the members of the constrained domain.
        repair: how it was repaired, None where no node was exposed or a single one is possible.
        hull: the sensitivity hull of the whole graph.
        mechanism: the mechanism of that name, or the design of the optimal channel.
        channel: a row for each member, a column for each of `observables`; None where outputs are not snapped.
        observables: the states that may be named, ascending: of several at one place, a mechanism of a hull names the
            first.
    """

    graph: nx.Graph
    repair: Repair | None
    hull: SensitivityHull
    mechanism: Mechanism | Design
    channel: Channel | None
    observables: Integers


@dataclass(frozen=True, eq=False, repr=False)
class Stage:
    """What is public at one time of a trace before anything is released.

    Attributes:
        time: counted from 0; several releases may be of the same time.
        epsilon: ε of this release, in nats per edge, exact.
        domain: the states and their places.
        prior: the predicted belief p⁻, shape (n,), read-only.
        members: the constrained domain C, ascending.
        surrogates: for each state the member as which it is released, −1 where it cannot be the true one; shape (n,).
        cost: what it costs to release o when s is true, shape (n, n).
        hull_choice: "component" or "graph", the hull to which the noise of a K-norm mechanism is fitted.
        fitted: graph, repair, hull, mechanism and channel; also to be had from the stage itself. Of what is drawn from
            its channel or its mechanism, no ledger hears.
        policy: the name of the policy in a ledger.
        ledger: what each `draw` is charged to; None where nothing is. With a ledger in memory a stage cannot be
            pickled, as the ledger cannot. ``dataclasses.replace(stage, ledger=None)`` leaves the ledger out on purpose.
    """

    time: int
    epsilon: Fraction
    domain: Domain
    prior: Floats
    members: Integers
    surrogates: Integers
    cost: Floats
    hull_choice: HullChoice
    fitted: Fitted
    policy: str = ""
    ledger: Ledger | None = None

    def __repr__(self) -> str:
        """Say when it is, and how large, without the arrays."""
        return f"Stage(time={self.time}, {len(self.members)} of {self.domain.size} states, {self.fitted.mechanism!r})"

    @property
    def graph(self) -> nx.Graph:
        """The policy graph on the constrained domain, repaired; frozen."""
        return self.fitted.graph

    @property
    def repair(self) -> Repair | None:
        """How the graph was repaired, None where it needed no repair."""
        return self.fitted.repair

    @property
    def hull(self) -> SensitivityHull:
        """The sensitivity hull of `graph` as a whole."""
        return self.fitted.hull

    @property
    def channel(self) -> Channel | None:
        """The channel from members to `fitted.observables`, None where outputs are not snapped.

        No ledger hears of what is sampled from it; `draw` is charged.
        """
        return self.fitted.channel

    @cached_property
    def design(self) -> Design | None:
        """The channel, its problem, and the proof of its privacy; None where outputs are not snapped.

        Secrets are the members; see `merged` for how likely and costly they are. A K-norm mechanism's lower
        bound is 0: nothing is claimed of how good it is. No ledger hears of what the design, or a program that it is
        exported to, answers: record that with `Ledger.spend`.
        """
        if isinstance(self.fitted.mechanism, Design):
            return self.fitted.mechanism
        if self.channel is None:
            return None
        weights, costs = merged(self.prior, self.cost, self.members, self.surrogates)
        problem = stated_problem(self.domain, weights, costs, self.graph, self.epsilon, self.fitted.observables)
        arrays = (self.channel.numerators, EXPONENT, problem.prior, problem.cost)
        summary = SolveSummary(Status.STATED, mechanism=repr(self.fitted.mechanism))
        certificate = certify(Evidence(*arrays, problem.objective, problem.stated), summary.provenance())
        certificate.require()
        return Design(problem, self.channel, certificate, None, summary)

    @property
    def certificate(self) -> Certificate | None:
        """The proof that the channel keeps the policy, in exact arithmetic; None where outputs are not snapped."""
        design = self.design
        return None if design is None else design.certificate

    def charge(self) -> Entry | None:
        """Record in the ledger what one draw costs, and return the entry; None where there is no ledger.

        Raises `BudgetExceededError` where the budget would be passed, and what else `Ledger.spend` raises; nothing is
        recorded then.
        """
        if self.ledger is None:
            return None
        count, edges = len(self.members), self.graph.number_of_edges()
        whom = f"any two of {count} possible states joined by one of {edges} edges of the policy graph"
        if edges == 0:
            whom = f"no two of {count} possible state{'s' * (count != 1)}: the policy graph joins none of them"
        # What is paid for must not be lost: where a scope is open, Ctrl-C is only noted from here on.
        interrupts.defer()
        what = f"the state at time {self.time} of a trace"
        return self.ledger.spend(what, whom, epsilon=self.epsilon, policy=self.policy or None)

    def draw(self, state: int, rng: np.random.Generator | None = None) -> tuple[int | None, Floats]:
        """Draw what is released for a true state: the index of a state, None if not snapped, and coordinates (d,).

        Snapped outputs are drawn from the integers of the channel, exactly as certified; without `rng` with the bits of
        the operating system. Each draw is charged to the ledger, where the stage has one, before it is made.
        `Trace.step` has charged its own draw; further ones tell more.

        Raises `InputError` for a state that cannot be the true one, and what `charge` raises.
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
        """Return ln Pr(output | s) for every state s, shape (n,): the row of its surrogate for a state outside C.

        These are the true probabilities of the channel; densities of the `coordinates` where outputs are not snapped,
        see `KNormMechanism.log_likelihood`. Raises `InputError` for an output that the channel does not know.
        """
        if self.channel is None:
            assert isinstance(self.fitted.mechanism, KNormMechanism)
            if coordinates is None:
                raise InputError("coordinates", "are missing: these outputs are not snapped", bound="of shape (d,)")
            of_members = self.fitted.mechanism.log_likelihood(coordinates)
        else:
            index = as_integer(output, "output", 0)
            column = int(np.searchsorted(self.fitted.observables, index))
            if column == len(self.fitted.observables) or self.fitted.observables[column] != index:
                raise InputError("output", "is no observable", value=index, bound="one of fitted.observables")
            numerators = self.channel.numerators[:, column].astype(np.float64)
            of_members = logarithm(np.ldexp(numerators, -EXPONENT))
        result = np.full(self.domain.size, -np.inf)
        possible = self.surrogates >= 0
        result[possible] = of_members[np.searchsorted(self.members, self.surrogates[possible])]
        return read_only(result)

    @cached_property
    def degrees(self) -> Integers:
        """How many members of C each state cannot be told from, its degree of protection; shape (n,).

        Pairs count that the mechanism makes ε-indistinguishable (DPHMM, Definition 5.2): differences within the hull of
        a K-norm mechanism, edges of the graph of an optimal channel. A state outside C has the degree of its surrogate,
        one that cannot be the true one 0.
        """
        mechanism = self.fitted.mechanism
        if isinstance(mechanism, Mechanism):
            counts = mechanism.degrees()
        else:
            counts = {int(node): int(degree) + 1 for node, degree in self.graph.degree()}
        result = np.zeros(self.domain.size, dtype=np.int64)
        possible = self.surrogates >= 0
        result[possible] = [counts[node] for node in self.surrogates[possible].tolist()]
        return read_only(result)

    @cached_property
    def realised(self) -> float | None:
        """The least ε, rounded up, such that *all* states that may be the true one are ε-indistinguishable.

        Exact, from the channel: ln of the largest ratio of two entries of one column; inf where an output excludes a
        member. None where outputs are not snapped.
        """
        if self.channel is None:
            return None
        numerators = self.channel.numerators[:, self.channel.numerators.any(axis=0)]
        extremes = np.stack((numerators.max(axis=0), numerators.min(axis=0)))
        return realised(extremes, EXPONENT, PairBound.graph(self.epsilon, 2, [[0, 1]]))

    def _row(self, state: int) -> int:
        number = as_integer(state, "state", 0)
        if number >= self.domain.size or self.surrogates[number] < 0:
            raise InputError("state", "cannot be the true one", value=number, bound="a state of positive prior")
        return int(np.searchsorted(self.members, self.surrogates[number]))


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """What was released at one time, and what the adversary makes of it. All of it may be public.

    Nothing here depends on the true state but through the output: whether a surrogate was released is not recorded. A
    release holds on to the channel of its stage, 8 bytes for each member and observable; stages of the same constrained
    domain share it.

    Attributes:
        output: the released state, an index into the domain; None where outputs are not snapped.
        coordinates: the released place, shape (d,), read-only.
        posterior: the belief p⁺ after the output, shape (n,), read-only.
        log_likelihood: ln Pr(output | s) for every state s, shape (n,), read-only.
        stage: what was settled before: time, constrained domain, graph, mechanism; with the ledger of the trace, which
            is not public.
        entry: the number of its entry in a ledger, random digits; None where none was charged.
    """

    output: int | None
    coordinates: Floats
    posterior: Floats
    log_likelihood: Floats
    stage: Stage
    entry: str | None = None

    def __repr__(self) -> str:
        """Say what was released when."""
        what = self.coordinates.tolist() if self.output is None else self.output
        return f"Release(time={self.time}, output={what})"

    @property
    def time(self) -> int:
        """The time, counted from 0."""
        return self.stage.time

    @property
    def epsilon(self) -> Fraction:
        """ε of this release in nats per edge, exact."""
        return self.stage.epsilon

    @property
    def prior(self) -> Floats:
        """The belief p⁻ before the output, shape (n,)."""
        return self.stage.prior

    @property
    def members(self) -> Integers:
        """The constrained domain."""
        return self.stage.members

    @property
    def graph(self) -> nx.Graph:
        """The policy graph that was kept, on the constrained domain and repaired."""
        return self.stage.graph

    @property
    def repair(self) -> Repair | None:
        """How the graph was repaired, None where it needed no repair."""
        return self.stage.repair

    @property
    def hull(self) -> SensitivityHull:
        """The sensitivity hull of `graph` as a whole."""
        return self.stage.hull

    @property
    def certificate(self) -> Certificate | None:
        """The exact proof that the channel keeps `graph` at ε; None where outputs are not snapped."""
        return self.stage.certificate
