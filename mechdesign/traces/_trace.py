"""Release a trace, state by state, under a policy graph (PGLP, Algorithm 5; DPHMM, Algorithm 2)."""

from __future__ import annotations

import os
from dataclasses import replace
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, as_floats, read_only, require
from mechdesign.base._check import as_generator, as_integer
from mechdesign.base._errors import InputError, TraceError
from mechdesign.base._locks import ProcessLock
from mechdesign.graphs._problem import Within
from mechdesign.graphs._repairs import Method
from mechdesign.leakage.accounting import Ledger
from mechdesign.mechanisms._knorm import HullChoice
from mechdesign.model._domain import Domain
from mechdesign.model._markov import MarkovChain, VaryingChain
from mechdesign.model._numbers import Number, positive
from mechdesign.model._prior import Prior
from mechdesign.synthesis._settings import SolveSettings
from mechdesign.traces._hmm import Transition, as_chain, as_initial, logarithm, predict, update
from mechdesign.traces._planner import Planner, Repaired
from mechdesign.traces._stage import Release, Stage

# Where a copy goes on with what another object has begun: in no process.
_NOWHERE = 0


class Trace:
    """Releases the states of a hidden Markov model one after the other; the belief of the adversary is its only state.

    Arguments:
        domain: the n states and their places.
        graph: the policy graph; its nodes are 0, …, n−1.
        epsilon: ε in nats per edge, for each release.
        transition: the Markov chain that the adversary knows, (n, n), or one for each step: a
            `mechdesign.model.VaryingChain`, or an array (steps − 1, n, n). Channels and costs, which are public,
            depend on it: where it was counted in the data of a person, they tell of these data.
        initial: the distribution of the state at the first time, before anything is released, (n,); likewise.
        mechanism: "planar-isotropic" or "laplace", the mechanisms of PGLP, or another name that
            `mechdesign.mechanisms.available` lists; or "lp", the channel of least expected cost, designed anew for the
            belief of each time.
        delta: the constrained domain is the set of all states of positive probability, or, with a δ in [0, 1), the
            δ-location set: the fewest states of probability at least 1 − δ. A true state outside the latter is released
            as the nearest state in it (see `mechdesign.traces._stage`); outside the former it is an error.
        repair: how states that the constrained domain disconnects and exposes are protected, see
            `mechdesign.graphs.repair`; None leaves them exposed.
        repaired: whom a repair protects. "disconnected": states with edges in the policy, all to states that are not
            possible (PGLP, Definition 11). A state without an edge in the policy needs no protection (Lemma 1): with
            the hull of its component, and by "lp", it is released as it is, unless a repair joins another state to it;
            the certificate of the step lists it in `revealed`. "all" protects such states, too.
        hull: the hull of the noise and of the test of exposure: that of the node's component, as in PGLP, or of the
            whole graph, as in DPHMM. The channel of "lp" has no hull: to its graph are added the pairs that this hull
            protects, of a disconnected state and one that the policy does not leave free.
        within: whether "lp" answers with states of the same component of the constrained graph, or with any state.
        snap: release the nearest state, with exact probabilities, or the coordinates themselves. These are floats,
            whose last bits may tell more than ε allows: coordinates are a rehearsal.
        cost: what "lp" minimises, (n, n), cost of releasing o when s is true; Euclidean distances unless given.
        tolerance: the relative gap asked of "lp"; the certificate says what was reached. 1e-6 unless given.
        settings: how "lp" is solved at each step, in place of a tolerance.
        rng: a NumPy generator or a seed, for reproducible outputs; without it the bits of the operating system.
        ledger: records ε of each release before it is drawn, and refuses the one that would pass its budget. Stages
            carry it: each of their draws is charged, too. Of what is drawn from `Stage.channel` or `Stage.design` it
            does not hear.

    A constrained domain of a single state needs no protection and cannot get any: who knows that it is the only one
    knows the state already. It is released as it is. States of one place are one answer: a mechanism of a hull gives
    them the same law where they have the same hull, and names the first of them.

    Threads may share a trace: `step` and `observe` follow one another. A trace that has released a state goes on in one
    process and in one object alone. A copy of it, by `copy`, by pickling or by a fork, does not know what it releases
    meanwhile, and refuses to `step` (`TraceError`); `restart` makes a new trace of it. Before the first release copies
    are traces of their own, and so they always are for rehearsals: with `rng` and without a ledger.

    Raises `InputError`, naming the argument, for anything that does not fit together.

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
        mechanism: str = "planar-isotropic",
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
    ) -> None:
        if isinstance(domain, str):
            remedy = "a recorded movement is md.data.Trajectory; this releases a trace"
            raise InputError("domain", "is a text", value=domain, bound="a Domain", remedy=remedy)
        if ledger is not None and not isinstance(ledger, Ledger):
            raise InputError("ledger", "is not a Ledger", value=type(ledger).__name__)
        self._ledger = ledger
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
                "transition", "differs in number of states", value=chain.size, bound=f"{domain.size} states"
            )
        self._start(planner, positive(epsilon, "epsilon"), chain, as_initial(initial, domain.size), rng)

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
            state["_process"] = _NOWHERE
        return state

    def __repr__(self) -> str:
        """Say how far it is."""
        return f"Trace({self._planner.domain.size} states, {self._planner.mechanism}, {self._time + 1} released)"

    @property
    def domain(self) -> Domain:
        """The states."""
        return self._planner.domain

    @property
    def transition(self) -> MarkovChain | VaryingChain:
        """The Markov chain."""
        return self._chain

    @property
    def initial(self) -> Prior:
        """The distribution of the first state."""
        return self._initial

    @property
    @in_own_arithmetic
    def belief(self) -> Floats:
        """What is believed of the present state after all releases so far, shape (n,)."""
        return np.exp(self._log_posterior)

    def step(self, true_state: int | str, *, epsilon: Number | None = None, same_time: bool = False) -> Release:
        """Release the state of the next time: its index, or its label.

        `epsilon` is the budget of this release alone, such as one of `mechdesign.leakage.allocate_budget`. With
        `same_time` the state is that of the last release once more: nothing moves, and the budgets add up (DPHMM,
        Theorem 7.1); see `compose`.

        Raises `InputError` for an unknown state, and, with full supports, for one that cannot be reached,
        `BudgetExceededError` where the ledger's budget would be passed, and `TraceError` for a copy, or in a forked
        process, of a trace that had released a state. Whatever is raised, the trace stays as it was.
        """
        state = self._state(true_state)
        with self._lock:
            return self._step(true_state, state, epsilon, same_time)

    @in_own_arithmetic
    def _step(self, true_state: int | str, state: int, epsilon: Number | None, same_time: bool) -> Release:
        self._require_original()
        budget = self._epsilon if epsilon is None else positive(epsilon, "epsilon")
        if same_time and self._time < 0:
            raise InputError("same_time", "has nothing to go with: nothing has been released yet", value=True)
        time = self._time + (not same_time)
        # The initial distribution is that of the first state, before which nothing moves.
        moves = not same_time and time > 0
        log_prior = predict(self._log_posterior, self._chain.at(time - 1)) if moves else self._log_posterior
        stage = self._planner.stage(time, log_prior, budget)
        if stage.surrogates[state] < 0:
            raise InputError(
                "true_state",
                "cannot be the true one: its predicted probability is zero",
                value=true_state,
                bound=f"one of the {len(stage.members)} states that can be reached",
                remedy="smooth the chain or the initial distribution, or give a delta: then a near one is released",
            )
        charged = replace(stage, ledger=self._ledger)
        entry = charged.charge()
        if self._ledger is not None or self._rng is None:
            # From here on a copy, or a forked process, would draw once more.
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
        """Raise `TraceError` where another object, or another process, goes on with this trace."""
        if self._process not in (None, os.getpid()):
            where = "a copy of a trace" if self._process == _NOWHERE else "a trace in a forked process"
            raise TraceError(
                f"{where} that has released states cannot step: it does not know what the original "
                "releases. Step the original, or make a new trace by restart(), which leaves this one as it is"
            )

    def observe(self, log_likelihood: ArrayLike) -> None:
        """Take into account what else becomes public about the present state: ln Pr(it | s) for every state, (n,).

        Such as the answer to another query at the same time, by a trace over the answers of that query: two traces that
        step with the same states and then observe each other's `Release.log_likelihood` believe the same, and `compose`
        adds up their budgets (DPHMM, Theorem 7.1). Before the first release, the present state is the first one. Raises
        `InputError`, and changes nothing, for what no possible state explains.
        """
        seen = as_floats(log_likelihood, "log_likelihood", "(n,)")
        if len(seen) != self.domain.size:
            raise InputError(
                "log_likelihood", "differs in number of states", value=len(seen), bound=f"{self.domain.size} states"
            )
        require(seen < np.inf, seen, "log_likelihood", "a number, or -inf where a state excludes it")
        with self._lock:
            self._log_posterior, _ = update(self._log_posterior, seen, "log_likelihood")

    @in_own_arithmetic
    def table(self, steps: int) -> tuple[Stage, ...]:
        """Settle the next `steps` times without releasing anything: a table of channels, to be used offline.

        The belief moves by the chain alone, p⁻_{t+1} = p⁻_t M: outputs in between are not known yet. Each channel keeps
        its graph all the same, and may be drawn from where the true state of its time becomes known, by `Stage.draw`,
        which charges the ledger, or, after `Stage.design.save`, by other programs, of which no ledger hears. The trace
        stays as it was.
        """
        count = as_integer(steps, "steps", 0)
        with self._lock:
            first, log_prior = self._time + 1, self._log_posterior
        stages = []
        for time in range(first, first + count):
            if time > 0:
                log_prior = predict(log_prior, self._chain.at(time - 1))
            stages.append(replace(self._planner.stage(time, log_prior, self._epsilon), ledger=self._ledger))
        return tuple(stages)

    def restart(self, initial: Prior | ArrayLike | None = None, rng: np.random.Generator | int | None = None) -> Trace:
        """Return a new trace by the same rules, before its first release; this one stays as it is.

        What was fitted already serves both. The ledger is the same, `rng` is not: without it the new trace draws with
        the bits of the operating system.
        """
        start = self._initial if initial is None else as_initial(initial, self.domain.size)
        again = type(self).__new__(type(self))
        again._ledger = self._ledger
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
        raise InputError("tolerance", "is given twice", value=tolerance, remedy="give it in settings alone")
    return SolveSettings(tolerance=tolerance)
