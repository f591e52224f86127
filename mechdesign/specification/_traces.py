"""Release of a trace under [release].

Counted are check-ins, trajectories, raw visits and files of counts, and matrices that `mechdesign chain` has written.
Of other matrices, and of numbers in the specification, nobody here knows where they come from. The rows of a table are
those of the users that ``only`` keeps; they are compared as they stand in the file, before even steps are made of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from mechdesign.base._check import as_truth
from mechdesign.base._deadline import Deadline, ProgressCallback
from mechdesign.base._errors import BudgetExceededError, HistoryWarning, InputError, SpecificationError
from mechdesign.base._locks import WAIT_S
from mechdesign.base._warnings import suppress_warnings, warn
from mechdesign.certify._exact import exact_text
from mechdesign.data._budgets import Schedule
from mechdesign.data._chain_counts import counts_of
from mechdesign.data._layout import cell
from mechdesign.data._states import States, Steps
from mechdesign.leakage.accounting import Ledger
from mechdesign.model._grammar import ChainTable, Checkins, PriorTable, Trajectories
from mechdesign.model._markov import MarkovChain, VaryingChain
from mechdesign.model._problem import Problem
from mechdesign.model._requirements._graph import GraphPrivacyTable
from mechdesign.solve._contract import Status
from mechdesign.specification._designs import scheduled
from mechdesign.specification._document import ARGUMENTS, Document
from mechdesign.specification._policy import Policy, ReleaseSettings
from mechdesign.specification._priors import read_traces
from mechdesign.specification._read import Source
from mechdesign.synthesis._result import Design
from mechdesign.synthesis._settings import SolveSettings
from mechdesign.traces._released import History, ReleasedTrace
from mechdesign.traces._stage import Release
from mechdesign.traces._trace import Trace

_COUNTS = ("csv", "visits")
_NUMBERS = ("counts", "probabilities")
# What `mechdesign chain` writes into one folder.
_CHAIN, _STATES = ("forward.csv", "backward.csv"), "states.csv"


class _Origin(NamedTuple):
    """Where something comes from: a place, its table of data with times, if any, and whether it was counted."""

    place: Source
    data: Checkins | Trajectories | None = None
    counted: bool = True


def compared(
    document: Document, folder: Path, steps: Steps, *, others: bool = False, own_history: bool = False
) -> History:
    """Return what the public files of a trace depend on beyond its outputs.

    Args:
        document: The specification; what it says of prior, chain and policy has been read without an error.
        folder: The folder that its file names are relative to.
        steps: The trace, whose times matter alone.
        others: Whether it is stated that the data are not of the person whose trace it is.
        own_history: Whether a trace is released whose own rows, or those of its time, were counted.

    Raises:
        SpecificationError: Rows that were counted lie between the first and the last time of the trace.

    Warns:
        HistoryWarning: Something was counted in data, and trace or data have no times.
    """
    as_truth(own_history, "own_history")
    origins = list(_origins(document, Source(folder=folder)))
    counted = tuple(str(origin.place) for origin in origins if origin.counted)
    given = tuple(str(origin.place) for origin in origins if not origin.counted)
    if others and own_history:
        raise SpecificationError(
            "release.history",
            "contradicts --own-history",
            value="others",
            bound="one of the two",
            remedy="leave one of them out",
        )
    if others or not counted:
        return History(counted, given, others=others)
    found = [_rows_within(origin, steps.span) for origin in origins if origin.counted]
    if True in found and not own_history:
        key = counted[found.index(True)]
        raise SpecificationError(
            key,
            "counts rows of the time of the trace: what is published would depend on the true states",
            bound="rows before the first or after the last time of the trace",
            remedy="count in other data; or insist (--own-history, own_history=True in Python); or state in [release] "
            'that the data are not of this person (history = "others")',
        )
    within = True if True in found else None if None in found else False
    if within is None and own_history:
        within = True
    elif within is None:
        warn(
            f"{', '.join(counted)}: counted in data, and without times nothing tells whether the trace is among them. "
            "Costs and channels, which are published, depend on these data. Give times to the trace and to the data, "
            'or state in [release] that the data are not of this person (history = "others")',
            HistoryWarning,
            stacklevel=3,
        )
    return History(counted, given, within)


def _rows_within(origin: _Origin, span: tuple[np.datetime64, np.datetime64] | None) -> bool | None:
    """Tell whether a row lies in the time from the first to the last of `span`, both included; None if not known."""
    if span is None or origin.data is None:
        return None
    # As they were seen: even steps would put them to other times.
    data = structs.replace(origin.data, every=None, gap=None)
    # Reading the same table before has warned of it.
    with suppress_warnings(Warning):
        found = read_traces(data, origin.place).found
    known = True
    for trace in found:
        if trace.time is None:
            known = False
        elif _any_between(trace.time, span):
            return True
    return False if known else None


def _any_between(times: NDArray[np.datetime64], span: tuple[np.datetime64, np.datetime64]) -> bool:
    return bool(((times >= span[0]) & (times <= span[1])).any())


def _origins(document: Document, source: Source) -> Iterator[_Origin]:
    release, place = document.release, source / "release"
    if release.initial is not None:
        yield from _prior(release.initial, place / "initial")
    if release.initial is None or document.domain.anchors is not None:
        # Costs of anchors are those of the visits.
        yield from _prior(document.prior, source / "prior")
    yield from _chain(release.transition, place / "transition", document.prior)
    for index, table in enumerate(document.privacy):
        if isinstance(table, GraphPrivacyTable):
            yield from _chain(table.transitions, source / "privacy" / index / "transitions", document.prior)


def _prior(table: PriorTable, source: Source) -> Iterator[_Origin]:
    form, data = table.form, table.checkins or table.plt
    if data is not None or form in (*_COUNTS, *_NUMBERS):
        yield _Origin(source / form, data, form not in _NUMBERS)


def _chain(table: ChainTable | None, source: Source, prior: PriorTable) -> Iterator[_Origin]:
    if table is None:
        return
    data, place = table.checkins or table.plt, source / table.form
    if data is not None:
        yield _Origin(place, data)
    elif table.estimated:
        yield _Origin(place, prior.checkins or prior.plt)
    elif table.path is not None or table.paths is not None:
        names = table.paths or [str(table.path)]
        yield _Origin(place, None, any(_is_counted(source.folder / name) for name in names))


def _is_counted(matrix: Path) -> bool:
    """Tell whether a file is one of `mechdesign chain`, by what stands with it, or where a link leads to."""
    places = (matrix, matrix.resolve())
    named = any(place.name in _CHAIN and place.with_name(_STATES).is_file() for place in places)
    return named or counts_of(matrix) is not None


class Asked(Protocol):
    """What a specification says of a release; see `mechdesign.specification.Specification`."""

    @property
    def title(self) -> str: ...
    @property
    def document(self) -> Document: ...
    @property
    def folder(self) -> Path: ...
    @property
    def settings(self) -> SolveSettings: ...
    @property
    def policy(self) -> Policy: ...
    @property
    def release_settings(self) -> ReleaseSettings: ...
    @property
    def schedule(self) -> Schedule | None: ...
    def ledger(self, wait: float = WAIT_S) -> Ledger | None: ...
    def problems(self) -> Iterator[Problem]: ...
    def steps(self, trace: States, delimiter: str | None = None) -> tuple[Steps, tuple[str, ...]]: ...


def release_trace(
    given: Asked,
    trace: States,
    seed: int | None,
    delimiter: str | None,
    ledger: Ledger | None,
    progress: ProgressCallback | None,
    keep: Callable[[ReleasedTrace], None] | None = None,
    own_history: bool = False,
) -> ReleasedTrace:
    """Release a trace; see `Specification.release`."""
    problem, settings = step_problem(given), given.release_settings
    steps, _ = given.steps(trace, delimiter)
    states = steps.states
    history = compared(
        given.document, given.folder, steps, others=settings.table.history == "others", own_history=own_history
    )
    transition = settings.transitions.along(steps, Source(("release", "transition")))
    epsilons = _epsilons(given, len(states))
    seed = settings.table.seed if seed is None else seed
    charged = given.ledger() if ledger is None and seed is None else ledger
    if charged is not None:
        _require_budget(charged, [epsilon or given.policy.epsilon for epsilon in epsilons])
    released = _prepared(given, problem, settings, transition, seed, charged)
    name = os.fspath(trace) if isinstance(trace, str | os.PathLike) else "trace"
    releases: list[Release] = []
    finished = False
    deadline = Deadline(progress=progress)
    try:
        for step, (state, epsilon) in enumerate(zip(states.tolist(), epsilons, strict=True)):
            deadline.tell(f"step {step + 1} of {len(states)}")
            # Ctrl-C that comes once the step is paid for waits until it is kept.
            with deadline.keeping("keeping the steps released so far", at_once=False):
                releases.append(_step(released, state, epsilon, f"{name}, step {step}"))
            mechanism = releases[-1].stage.fitted.mechanism
            # A solver that is stopped gives the best channel that it has.
            if isinstance(mechanism, Design) and mechanism.status is Status.INTERRUPTED:
                break
        else:
            finished = True
    except KeyboardInterrupt:
        if not releases:
            raise
    except Exception:
        if releases and keep is not None and charged is not None:
            # What was charged must not be lost.
            keep(_released(given, releases, transition, history, seed, finished=False))
        raise
    return _released(given, releases, transition, history, seed, finished)


def _released(
    given: Asked,
    releases: Sequence[Release],
    transition: MarkovChain | VaryingChain,
    history: History,
    seed: int | None,
    finished: bool,
) -> ReleasedTrace:
    settings = given.release_settings
    made = (transition, settings.initial, seed is not None, finished, history)
    return ReleasedTrace(given.title, settings.table.mechanism, tuple(releases), *made)


def step_problem(given: Asked) -> Problem:
    """Return the problem of a step; raise `SpecificationError` for what cannot be kept along a trace."""
    if given.document.observables is not None:
        raise SpecificationError(
            "observables", "does not go with a trace, whose outputs are states", remedy="leave it out"
        )
    problem = next(given.problems())
    for index, requirement in enumerate(problem.requirements):
        if index not in problem.graphs:
            raise SpecificationError(
                f"privacy[{index}].kind",
                "cannot be kept along a trace",
                value=requirement.kind,
                bound='"graph"',
                remedy="leave it out; instead of a threshold, join secrets by radius and distance",
            )
    if given.policy.settings.support is not None:
        raise SpecificationError(
            "policy.support",
            "does not go with a trace: what is possible at a step follows from the transitions and from delta",
            remedy="leave it out",
        )
    if problem.objective != "expected":
        raise SpecificationError(
            "cost.objective", "does not go with a trace", value=problem.objective, bound='"expected"'
        )
    return problem


def _epsilons(given: Asked, steps: int) -> Sequence[Fraction | None]:
    """Return the ε of each step: from the schedule where there is one; None stands for what the trace knows itself."""
    if given.schedule is None:
        return [None] * steps
    known = given.schedule.epsilons
    if len(known) < steps:
        raise SpecificationError(
            f"privacy[{scheduled(given.document.privacy)}].epsilon.budgets",
            "ends before the trace",
            value=len(known),
            bound=f"a budget for each of {steps} steps",
        )
    for step, epsilon in enumerate(known[:steps]):
        if epsilon == 0:
            raise SpecificationError(
                f"privacy[{scheduled(given.document.privacy)}].epsilon.budgets",
                f"step {step} has no budget",
                value=exact_text(epsilon),
                bound="greater than 0",
                remedy="each state of a trace is released: give a budget to each, or design the steps apart",
            )
    return known[:steps]


def _require_budget(ledger: Ledger, epsilons: Sequence[Fraction]) -> None:
    """Raise `BudgetExceededError` unless all steps together are within the budget of the ledger."""
    what, whom = f"a trace of {len(epsilons)} steps", "any two states joined by an edge of the policy graph"
    # The squares add up, so that ρ of all steps is not that of their sum.
    rho = sum((epsilon**2 / 2 for epsilon in epsilons), Fraction(0))
    for name, asked, left, budget in (
        ("ε", sum(epsilons, Fraction(0)), ledger.remaining_epsilon, ledger.epsilon),
        ("ρ", rho, ledger.remaining_rho, ledger.rho),
    ):
        if left is not None and budget is not None and asked > left:
            raise BudgetExceededError(
                f"{what} would spend {name} = {exact_text(asked)}, but {exact_text(left)} of {exact_text(budget)} is "
                "left; spend less, or give the ledger that the data deserve a larger budget"
            )
    ledger.check(what, whom, epsilon=epsilons[0])


def _prepared(
    given: Asked,
    problem: Problem,
    settings: ReleaseSettings,
    transition: MarkovChain | VaryingChain,
    seed: int | None,
    ledger: Ledger | None,
) -> Trace:
    """Return the trace before its first step; raise `SpecificationError` for keys that do not fit together."""
    policy = given.policy
    assert problem.secrets is not None
    with Source().keys(ARGUMENTS):
        return Trace(
            problem.secrets,
            policy.graph,
            policy.epsilon,
            transition,
            settings.initial,
            settings.table.mechanism,
            delta=policy.settings.delta,
            repair=policy.settings.repair,
            repaired=policy.settings.repaired,
            hull=policy.settings.hull,
            within=policy.settings.within,
            snap=settings.table.snap is not False,
            cost=problem.cost,
            settings=given.settings,
            rng=seed,
            ledger=ledger,
        )


def _step(trace: Trace, state: int, epsilon: Fraction | None, path: str) -> Release:
    try:
        with Source().keys({**ARGUMENTS, "epsilon": "privacy.epsilon"}):
            return trace.step(state, epsilon=epsilon)
    except InputError as error:
        if error.path != "true_state":
            raise
        # The state is the true one: what it is called is shown as a cell of a file is, and its index is not.
        raise InputError(
            path,
            error.problem,
            value=cell(trace.domain.labels[state]),
            bound=error.bound,
            remedy="smooth the transitions, or give a delta in [policy]: then the nearest possible state is released",
        ) from None
