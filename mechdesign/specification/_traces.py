"""Release a trace under ``[release]``, and check whether rows of the trace itself were counted.

The prior, the chain or the policy may be counted from data: check-ins, trajectories, raw visits, files of counts, and
matrices written by `mechdesign chain`. The source of other matrices, and of numbers in the specification, is unknown.
Times of rows and of the trace are compared before resampling, for the users that ``only`` selects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from mechdesign.base._arrays import Integers
from mechdesign.base._check import as_truth
from mechdesign.base._deadline import Deadline, ProgressCallback
from mechdesign.base._errors import BudgetExceededError, InputError, InputWarning, SpecificationError
from mechdesign.base._warnings import suppress_warnings, warn
from mechdesign.certify._exact import exact_text
from mechdesign.data._chain_counts import counts_of
from mechdesign.data._layout import cell
from mechdesign.data._states import Steps
from mechdesign.leakage.accounting import Ledger
from mechdesign.model._grammar import ChainTable, Checkins, PriorTable, Trajectories
from mechdesign.model._markov import MarkovChain, VaryingChain
from mechdesign.model._problem import Problem
from mechdesign.solve._contract import Status
from mechdesign.specification._document import ARGUMENTS, Document
from mechdesign.specification._graphs import GraphPrivacyTable
from mechdesign.specification._policy import ReleaseSettings, SpecifiedPolicy
from mechdesign.specification._priors import read_traces
from mechdesign.specification._read import Source
from mechdesign.synthesis._result import Design
from mechdesign.synthesis._settings import SolveSettings
from mechdesign.traces._released import History, ReleasedTrace
from mechdesign.traces._stage import Release
from mechdesign.traces._trace import Trace

_COUNTS = ("csv", "visits")
_NUMBERS = ("counts", "probabilities")
# Files that `mechdesign chain` writes.
_CHAIN, _STATES = ("forward.csv", "backward.csv"), "states.csv"


class _CountSource(NamedTuple):
    """A source of the prior, the chain or the policy: its key, its data with times, and whether it was counted."""

    place: Source
    data: Checkins | Trajectories | None = None
    counted: bool = True


def compare_history(
    document: Document, folder: Path, steps: Steps, *, others: bool = False, own_history: bool = False
) -> History:
    """Return the data on which the public files of a trace depend, in addition to its outputs.

    Args:
        document: The specification, whose prior, chain and policy were read without an error.
        folder: The folder for relative file names.
        steps: The trace; only its times are used.
        others: Whether the specification states that the data do not include the person of the trace.
        own_history: Whether to release the trace even if rows between its first and last time were counted.

    Returns:
        The keys that were counted, the keys that were given as numbers, and the result of the comparison.

    Raises:
        SpecificationError: Counted rows lie between the first and the last time of the trace.

    Warns:
        InputWarning: Prior, chain or policy were counted from data, but the trace or the data have no times.
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
            bound="either --own-history or this key",
            remedy="remove the option or the key",
        )
    if others or not counted:
        return History(counted, given, others=others)
    found = [_has_rows_within(origin, steps.span) for origin in origins if origin.counted]
    if True in found and not own_history:
        key = counted[found.index(True)]
        raise SpecificationError(
            key,
            "counts rows from the time of the trace, so published files would depend on the true states",
            bound="rows before the first or after the last time of the trace",
            remedy="use other data; or insist (--own-history, own_history=True in Python); or state in [release] "
            'that the data do not include this person (history = "others")',
        )
    within = True if True in found else None if None in found else False
    if within is None and own_history:
        within = True
    elif within is None:
        warn(
            f"{', '.join(counted)}: counted from data that may include the trace, which cannot be checked without "
            "times. Published costs and channels depend on these data. Give times to the trace and to the data, "
            'or state in [release] that the data do not include this person (history = "others")',
            InputWarning,
            stacklevel=3,
        )
    return History(counted, given, within)


def _has_rows_within(origin: _CountSource, span: tuple[np.datetime64, np.datetime64] | None) -> bool | None:
    """Return whether any row of the data lies in the closed time interval `span`; None if unknown."""
    if span is None or origin.data is None:
        return None
    # Use the original times, because resampling would change them.
    data = structs.replace(origin.data, every=None, gap=None)
    # The warnings were already given when this table was read before.
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


def _origins(document: Document, source: Source) -> Iterator[_CountSource]:
    """Yield the sources of the prior, the chain and the policy."""
    release, place = document.release, source / "release"
    if release.initial is not None:
        yield from _prior(release.initial, place / "initial")
    if release.initial is None or document.domain.anchors is not None:
        # The costs at anchors are means over the visits.
        yield from _prior(document.prior, source / "prior")
    yield from _chain(release.transition, place / "transition", document.prior)
    for index, table in enumerate(document.privacy):
        if isinstance(table, GraphPrivacyTable):
            yield from _chain(table.transitions, source / "privacy" / index / "transitions", document.prior)


def _prior(table: PriorTable, source: Source) -> Iterator[_CountSource]:
    form, data = table.form, table.checkins or table.plt
    if data is not None or form in (*_COUNTS, *_NUMBERS):
        yield _CountSource(source / form, data, form not in _NUMBERS)


def _chain(table: ChainTable | None, source: Source, prior: PriorTable) -> Iterator[_CountSource]:
    if table is None:
        return
    data, place = table.checkins or table.plt, source / table.form
    if data is not None:
        yield _CountSource(place, data)
    elif table.estimated:
        yield _CountSource(place, prior.checkins or prior.plt)
    elif table.path is not None or table.paths is not None:
        names = table.paths or [str(table.path)]
        yield _CountSource(place, None, any(_is_counted(source.folder / name) for name in names))


def _is_counted(matrix: Path) -> bool:
    """Return whether `mechdesign chain` wrote a matrix, judging by the files next to it or to the target of a link."""
    places = (matrix, matrix.resolve())
    named = any(place.name in _CHAIN and place.with_name(_STATES).is_file() for place in places)
    return named or counts_of(matrix) is not None


def release_trace(
    started: Trace,
    states: Integers,
    name: str,
    collect: Callable[[Sequence[Release], bool], ReleasedTrace],
    keep: Callable[[ReleasedTrace], None] | None,
    progress: ProgressCallback | None,
) -> ReleasedTrace:
    """Release the states of a trace; `collect` takes the releases, and whether all states were released."""
    releases: list[Release] = []
    finished = False
    deadline = Deadline(progress=progress)
    try:
        for step, state in enumerate(states.tolist()):
            deadline.tell(f"step {step + 1} of {len(states)}")
            # After a step is charged, Ctrl-C waits until the step is stored.
            with deadline.keeping("keeping the steps released so far", at_once=False):
                releases.append(_step(started, state, f"{name}, step {step}"))
            mechanism = releases[-1].stage.fitted.mechanism
            # An interrupted solver returns its best channel, which is released as the last step.
            if isinstance(mechanism, Design) and mechanism.status is Status.INTERRUPTED:
                break
        else:
            finished = True
    except KeyboardInterrupt:
        if not releases:
            raise
    except Exception:
        if releases and keep is not None:
            # Steps that were charged must not be lost.
            keep(collect(releases, False))
        raise
    return collect(releases, finished)


def require_steps(document: Document) -> None:
    """Raise `SpecificationError` for keys that a trace does not support."""
    if document.observables is not None:
        raise SpecificationError(
            "observables", "is not supported for a trace, whose outputs are states", remedy="remove the table"
        )
    for index, table in enumerate(document.privacy):
        if not isinstance(table, GraphPrivacyTable):
            raise SpecificationError(
                f"privacy[{index}].kind",
                "is not supported for a trace",
                value=table.__struct_config__.tag,
                bound='"graph"',
                remedy="remove the table; instead of a threshold, join secrets by radius and distance",
            )
    if document.policy.support is not None:
        raise SpecificationError(
            "policy.support",
            "is not supported for a trace: the possible states of a step follow from the transitions and from delta",
            remedy="remove the key",
        )
    if document.cost.objective != "expected":
        raise SpecificationError(
            "cost.objective", "is not supported for a trace", value=document.cost.objective, bound='"expected"'
        )


def require_budget(ledger: Ledger, epsilon: Fraction, steps: int) -> None:
    """Raise `BudgetExceededError` unless all steps together are within the budget of the ledger."""
    release, pairs = f"a trace of {steps} steps", "any two states joined by an edge of the policy graph"
    for name, needed, left, budget in (
        ("ε", steps * epsilon, ledger.remaining_epsilon, ledger.epsilon),
        # ρ is the sum of ε²/2 over the steps, which is less than the ρ of the sum of ε.
        ("ρ", steps * epsilon**2 / 2, ledger.remaining_rho, ledger.rho),
    ):
        if left is not None and budget is not None and needed > left:
            raise BudgetExceededError(
                f"{release} would spend {name} = {exact_text(needed)}, but {exact_text(left)} of {exact_text(budget)} "
                "is left; spend less, or use a ledger with a larger budget"
            )
    ledger.check(release, pairs, epsilon=epsilon)


def start_trace(
    problem: Problem,
    policy: SpecifiedPolicy,
    settings: ReleaseSettings,
    solver: SolveSettings,
    transition: MarkovChain | VaryingChain,
    seed: int | None,
    ledger: Ledger | None,
) -> Trace:
    """Return the trace before its first step; raise `SpecificationError` for keys that contradict each other."""
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
            settings=solver,
            rng=seed,
            ledger=ledger,
        )


def _step(trace: Trace, state: int, path: str) -> Release:
    try:
        with Source().keys({**ARGUMENTS, "epsilon": "privacy.epsilon"}):
            return trace.step(state)
    except InputError as error:
        if error.path != "true_state":
            raise
        # The error is about a true state: mask its label like a cell of a file, and do not show its index.
        raise InputError(
            path,
            error.problem,
            value=cell(trace.domain.labels[state]),
            bound=error.bound,
            remedy="smooth the transitions, or set delta in [policy], so that the nearest possible state is released",
        ) from None
