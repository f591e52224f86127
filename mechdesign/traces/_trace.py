"""Release a trace, state by state, under a policy graph (PGLP, Algorithm 5; DPHMM, Algorithm 2)."""

from __future__ import annotations

import os
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, as_floats, read_only, require
from mechdesign.base._check import as_generator, as_integer
from mechdesign.base._errors import InputError, InputWarning, StateError
from mechdesign.base._locks import ProcessLock
from mechdesign.base._warnings import warn
from mechdesign.graphs._builders import disconnected
from mechdesign.graphs._problem import Within
from mechdesign.graphs._repairs import Method
from mechdesign.leakage.accounting import Ledger
from mechdesign.mechanisms._kinds import Build
from mechdesign.mechanisms._knorm import HullChoice
from mechdesign.model._domain import Domain
from mechdesign.model._markov import MarkovChain, VaryingChain
from mechdesign.model._numbers import Number, positive
from mechdesign.model._prior import Prior, as_prior
from mechdesign.synthesis._settings import SolveSettings
from mechdesign.traces._hmm import Transition, as_chain, logarithm, predict, update
from mechdesign.traces._planner import Planner, Repaired
from mechdesign.traces._stage import Release, Stage

# A process id that no process has. It marks copies of a trace that has released states; no process may continue such a
# copy.
_NO_PROCESS = 0


class Trace:
    """Releases the states of a hidden Markov model step by step, and updates the belief of an adversary.

    The adversary knows the model, the mechanism and the earlier outputs.

    If the constrained domain is a single state, the adversary knows the state already. Protection is then pointless,
    and the trace releases the state exactly. If several states have the same place, only the first of them is an
    answer. If states at the same place share a hull, a mechanism with a hull gives them the same row of the channel.

    Threads may share a trace; calls of `step` and `observe` are serialised. After the first release of a trace, only
    one object in one process may continue the trace. A copy made by `copy`, pickling or a fork refuses to `step`
    (`StateError`), since it does not see the later releases of the original. The method `restart` makes a new trace
    from a copy. Copies of a trace made before its first release are independent traces. Copies of a rehearsal, with
    `rng` and without a ledger, are always independent.

    Args:
        domain: The n states and their places.
        graph: The policy graph; its nodes are 0, …, n−1.
        epsilon: ε in nats per edge, for each release.
        transition: The Markov chain that the adversary knows, (n, n), or one chain for each step: a
            `mechdesign.traces.VaryingChain`, or an array (steps − 1, n, n). The public channels and costs depend on the
            chain. If the chain was estimated from the data of a person, the channels and costs reveal information about
            these data.
        initial: The distribution of the state at the first time, before any release, (n,). The public channels and
            costs depend on this distribution, too.
        mechanism: "planar-isotropic" or "laplace", the mechanisms of PGLP; "exponential", "geometric" or
            "randomised-response", which release states only; or "lp", the channel of least expected cost, designed anew
            for the belief at each time. A function (epsilon, domain, graph, hull) that returns a
            `mechdesign.mechanisms.Mechanism` builds a mechanism of one's own. It is called for each policy graph,
            whose nodes are the possible states. Its channel must keep the graph in exact arithmetic. Only this is
            claimed of it: it protects the edges, and no hull.
        delta: The parameter δ in [0, 1) of the δ-location set: the fewest states with a total probability of at least 1
            − δ. This set is the constrained domain. A true state outside the set is released as the nearest state in
            the set (see `mechdesign.traces._stage`). Without `delta`, the constrained domain contains all states with
            positive probability, and other true states are an error.
        repair: The method of `mechdesign.graphs.repair` that protects states that the constrained domain disconnects
            and exposes; None leaves these states exposed. Over a domain of labels, which has no places, "area" adds no
            edges. An `InputWarning` says so if a state may lose its last edge.
        repaired: The states that a repair protects. The value "disconnected" protects each state whose edges in the
            policy all lead to impossible states (PGLP, Definition 11). A state without an edge in the policy needs no
            protection (Lemma 1). With component hulls and with "lp", a state without an edge is released exactly,
            unless a repair joins another state to it. In `revealed`, the certificate of the step lists the states that
            are released exactly. The value "all" also protects states without edges.
        hull: The hull of the noise and of the exposure test. The value "component" is the hull of the node's component,
            as in PGLP. The value "graph" is the hull of the whole graph, as in DPHMM. The channel of "lp" has no hull.
            Instead, edges are added by the hull: they join each disconnected state to the states with policy edges
            inside the hull around it.
        within: The possible answers of "lp" for a state: "component" for the states of its component in the constrained
            graph, or "map" for all states.
        snap: Whether to release the state nearest to the noisy coordinates, with exact probabilities, or the
            coordinates. Coordinates are floats whose last bits may reveal more than ε allows, so a trace of coordinates
            is a rehearsal.
        cost: The cost that "lp" minimises, (n, n): cost[s, o] is the cost of releasing o if the true state is s.
            The default is the Euclidean distance.
        tolerance: The requested relative gap of "lp", 1e-6 by default. The certificate records the proved gap.
        settings: The settings of the solver for "lp", instead of `tolerance`.
        rng: A NumPy generator or a seed, for reproducible outputs. None takes random bits from the operating system.
        ledger: The ledger that records ε of each release before the draw and refuses a release that would exceed its
            budget. The ledger is also charged for each draw of a `Stage`, but not for samples from `Stage.channel` or
            `Stage.design`.
        series: False for a ledger with a series of table releases: its leakage does not count the trace.

    Raises:
        InputError: An argument is invalid, or does not match the others.

    >>> import mechdesign as md
    >>> trace = Trace(
    ...     md.Domain.grid(2, 1, 2.0, 1.0), md.graphs.complete(2), 1, [[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5], rng=1
    ... )
    >>> release = trace.step(0)
    >>> release.output, release.posterior.round(4).tolist()
    (0, [0.6967, 0.3033])
    """

    def __init__(
        self,
        domain: Domain,
        graph: nx.Graph,
        epsilon: Number,
        transition: Transition,
        initial: Prior | ArrayLike,
        mechanism: str | Build = "planar-isotropic",
        *,
        delta: Number | None = None,
        repair: Method | None = "area",
        repaired: Repaired = "disconnected",
        hull: HullChoice = "component",
        within: Within = "component",
        snap: bool = True,
        cost: ArrayLike | None = None,
        tolerance: float | None = None,
        settings: SolveSettings | None = None,
        rng: np.random.Generator | int | None = None,
        ledger: Ledger | None = None,
        series: Literal[False] | None = None,
    ) -> None:
        if isinstance(domain, str):
            remedy = "read recorded movements with md.data.Trajectory; this class releases a trace"
            raise InputError("domain", "is a text", value=domain, bound="a Domain", remedy=remedy)
        if ledger is not None and not isinstance(ledger, Ledger):
            raise InputError("ledger", "is not a Ledger", value=type(ledger).__name__, bound="a mechdesign.Ledger")
        self._ledger, self._series = ledger, series
        planner = Planner(
            domain,
            graph,
            mechanism,
            delta=delta,
            repair=repair,
            repaired=repaired,
            hull=hull,
            within=within,
            snap=snap,
            cost=cost,
            settings=_settings(tolerance, settings),
        )
        chain = as_chain(transition)
        if chain.size != domain.size:
            raise InputError(
                "transition", "has the wrong number of states", value=chain.size, bound=f"{domain.size} states"
            )
        chain = chain.arranged(domain.labels, "transition")
        first = as_prior(initial, "initial", domain.labels, domain.size)
        self._start(planner, positive(epsilon, "epsilon"), chain, first, rng)
        if callable(mechanism):
            # A function that fails is refused before any state is read; its first stage is kept.
            self.table(1)
        if repair is not None and planner.repair is None and self._may_lose_edges():
            warn(
                "a domain of labels has no places, so no repair adds edges: a state that loses its last edge, because "
                "all its neighbours are impossible, is released as it is",
                InputWarning,
                stacklevel=2,
            )

    def _may_lose_edges(self) -> bool:
        """Return whether a state with edges may be possible together with other states, but not with a neighbour."""
        graph, first = self._planner.graph, np.flatnonzero(self._initial.probabilities)
        if first.size > 1 and disconnected(graph, first).size:
            return True
        chains = self._chain.chains if isinstance(self._chain, VaryingChain) else (self._chain,)
        # A state that is joined to all others keeps an edge to any other possible state.
        some = any(0 < degree < len(graph) - 1 for _, degree in graph.degree())
        return some and not all((chain.matrix > 0).all() for chain in chains)

    def _start(
        self,
        planner: Planner,
        epsilon: Fraction,
        chain: MarkovChain | VaryingChain,
        initial: Prior,
        rng: np.random.Generator | int | None,
    ) -> None:
        self._planner = planner
        self._epsilon = epsilon
        self._chain = chain
        self._initial = initial
        self._rng = None if rng is None else as_generator(rng)
        self._time = -1
        self._log_posterior = logarithm(initial.probabilities)
        self._lock = ProcessLock()
        self._process: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            state = dict(vars(self))
        state["_lock"] = ProcessLock()
        if self._process is not None:
            state["_process"] = _NO_PROCESS
        return state

    def __repr__(self) -> str:
        """Return the size, the mechanism and the number of releases."""
        mechanism = getattr(self._planner.mechanism, "__name__", self._planner.mechanism)
        return f"Trace({self._planner.domain.size} states, {mechanism}, {self._time + 1} released)"

    @property
    def domain(self) -> Domain:
        """The states."""
        return self._planner.domain

    @property
    def transition(self) -> MarkovChain | VaryingChain:
        """The Markov chain, or one chain for each step."""
        return self._chain

    @property
    def initial(self) -> Prior:
        """The distribution of the first state."""
        return self._initial

    @property
    @in_own_arithmetic
    def belief(self) -> Floats:
        """The distribution of the present state given all releases so far, shape (n,)."""
        return np.exp(self._log_posterior)

    def step(self, true_state: int | str, *, epsilon: Number | None = None, same_time: bool = False) -> Release:
        """Release the state at the next time.

        An error leaves the trace unchanged.

        Args:
            true_state: The index or the label of the state.
            epsilon: The ε of this release, for example from `mechdesign.leakage.allocate_budget`. The default is the ε
                of the trace.
            same_time: Whether to release the state of the last time again. The state then does not change, and the
                budgets add up (DPHMM, Theorem 7.1); see `compose`.

        Returns:
            The output, and the belief after this output.

        Raises:
            InputError: The state is unknown, or has probability zero and `delta` is None.
            BudgetExceededError: The release would exceed the budget of the ledger.
            StateError: This trace is a copy of a trace that has released states, or continues such a trace in a forked
                process.
        """
        state = self._state(true_state)
        with self._lock:
            return self._step(true_state, state, epsilon, same_time)

    @in_own_arithmetic
    def _step(self, true_state: int | str, state: int, epsilon: Number | None, same_time: bool) -> Release:
        self._require_original()
        budget = self._epsilon if epsilon is None else positive(epsilon, "epsilon")
        if same_time and self._time < 0:
            raise InputError(
                "same_time",
                "needs an earlier release, and this trace has released no state yet",
                value=True,
                bound="False",
            )
        time = self._time + (not same_time)
        # The distribution of the first state is `initial`, without a transition of the chain.
        moves = not same_time and time > 0
        log_prior = predict(self._log_posterior, self._chain.at(time - 1)) if moves else self._log_posterior
        stage = self._planner.stage(time, log_prior, budget)
        if stage.surrogates[state] < 0:
            raise InputError(
                "true_state",
                "cannot be the true state: its predicted probability is zero",
                value=true_state,
                bound=f"one of the {len(stage.members)} states with positive probability",
                remedy="smooth the chain or the initial distribution, or give a delta to release the nearest state",
            )
        charged = replace(stage, ledger=self._ledger, series=self._series)
        entry = charged.charge()
        if self._ledger is not None or self._rng is None:
            # From now on, a copy or a forked process must not draw again.
            self._process = os.getpid()
        output, coordinates = stage.draw(state, self._rng)
        log_likelihood = stage.log_likelihood(output, coordinates)
        log_posterior, _ = update(log_prior, log_likelihood)
        posterior = np.exp(log_posterior)
        read_only(posterior)
        self._time, self._log_posterior = time, log_posterior
        number = None if entry is None else entry.number
        return Release(output, coordinates, posterior, log_likelihood, charged, entry=number)

    def _require_original(self) -> None:
        """Raise `StateError` if another object or process may continue this trace."""
        if self._process not in (None, os.getpid()):
            where = "a copy of a trace" if self._process == _NO_PROCESS else "a trace in a forked process"
            raise StateError(
                f"{where} that has released states cannot step: it does not see the releases of the "
                "original. Step the original, or make a new trace with restart(), which leaves this trace unchanged"
            )

    def observe(self, log_likelihood: ArrayLike) -> None:
        """Update the belief with another public observation of the present state.

        An example is the answer of another trace, for another query at the same time. If both traces step with the
        same states and each observes the `Release.log_likelihood` of the other, their beliefs agree. `compose` adds up
        their budgets (DPHMM, Theorem 7.1). Before the first release, the present state is the first state.

        Args:
            log_likelihood: The logarithm of Pr(observation | s) for every state s, shape (n,); -inf if the state
                excludes the observation.

        Raises:
            InputError: The array is malformed, or every possible state excludes the observation; the belief is
                unchanged.
        """
        seen = as_floats(log_likelihood, "log_likelihood", "(n,)", self.domain.labels)
        if len(seen) != self.domain.size:
            raise InputError(
                "log_likelihood", "has the wrong number of states", value=len(seen), bound=f"{self.domain.size} states"
            )
        require(seen < np.inf, seen, "log_likelihood", "a number, or -inf if the state excludes the observation")
        with self._lock:
            self._log_posterior, _ = update(self._log_posterior, seen, "log_likelihood")

    @in_own_arithmetic
    def table(self, steps: int) -> tuple[Stage, ...]:
        """Compute the stages of the next times without releasing states, for offline use.

        Only the chain updates the belief, p⁻_{t+1} = p⁻_t M, since the outputs are not known yet. Each channel
        nevertheless protects its graph. When the true state of a time is known, `Stage.draw` draws from its channel and
        charges the ledger. Other programs can draw from a saved `Stage.design`, but the ledger does not record their
        draws. The trace is unchanged.

        Args:
            steps: The number of times, at least 0.

        Returns:
            One stage for each time.
        """
        count = as_integer(steps, "steps", 0)
        with self._lock:
            first, log_prior = self._time + 1, self._log_posterior
        stages = []
        for time in range(first, first + count):
            if time > 0:
                log_prior = predict(log_prior, self._chain.at(time - 1))
            stages.append(
                replace(self._planner.stage(time, log_prior, self._epsilon), ledger=self._ledger, series=self._series)
            )
        return tuple(stages)

    def restart(self, initial: Prior | ArrayLike | None = None, rng: np.random.Generator | int | None = None) -> Trace:
        """Return a new trace with the same settings, before its first release; this trace is unchanged.

        Both traces share the fitted mechanisms and the ledger, but not the random generator.

        Args:
            initial: The distribution of the first state; by default, the initial distribution of this trace.
            rng: A NumPy generator or a seed; None takes random bits from the operating system.

        Returns:
            The new trace.
        """
        start = self._initial if initial is None else as_prior(initial, "initial", self.domain.labels, self.domain.size)
        again = type(self).__new__(type(self))
        again._ledger, again._series = self._ledger, self._series
        again._start(self._planner, self._epsilon, self._chain, start, rng)
        return again

    def _state(self, name: int | str) -> int:
        labels = self.domain.labels
        if isinstance(name, str) and name in labels:
            return labels.index(name)
        if isinstance(name, bool | np.bool_) or not isinstance(name, int | np.integer) or not 0 <= name < len(labels):
            bound = f"a label, or an index from 0 to {len(labels) - 1}"
            raise InputError("true_state", "is not a state", value=name, bound=bound)
        return int(name)


def _settings(tolerance: float | None, settings: SolveSettings | None) -> SolveSettings:
    if tolerance is None:
        return SolveSettings() if settings is None else settings
    if settings is not None:
        raise InputError(
            "tolerance", "conflicts with settings, which have a tolerance", value=tolerance, remedy="give only settings"
        )
    return SolveSettings(tolerance=tolerance)
