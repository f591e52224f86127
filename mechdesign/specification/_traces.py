"""Release a trace under ``[release]``, and state on which data its public files depend.

The prior, the chain or the policy may be counted from data: check-ins, trajectories, raw visits, files of counts, and
matrices written by `mechdesign chain`. The owner declares whose data these are; nothing is compared. The source of
other matrices, and of numbers in the specification, is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Literal

from mechdesign.base._check import as_truth
from mechdesign.base._deadline import Deadline, ProgressCallback
from mechdesign.base._errors import BudgetExceededError, InputError, SpecificationError
from mechdesign.certify._exact import exact_text
from mechdesign.leakage.accounting import Ledger
from mechdesign.model._grammar import ChainTable, PriorTable
from mechdesign.model._markov import MarkovChain, VaryingChain
from mechdesign.model._problem import Problem
from mechdesign.solve._contract import Status
from mechdesign.specification._document import ARGUMENTS, Document
from mechdesign.specification._policy import GraphPrivacyTable, ReleaseSettings, SpecifiedPolicy
from mechdesign.specification._read import Source
from mechdesign.specification._steps import Steps
from mechdesign.synthesis._result import Design
from mechdesign.synthesis._settings import SolveSettings
from mechdesign.traces._released import History, ReleasedTrace
from mechdesign.traces._stage import Release
from mechdesign.traces._trace import Trace

_COUNTED = ("csv", "visits", "checkins", "plt", "estimated")
_NUMBERS = ("counts", "probabilities")
# Files that `mechdesign chain` writes.
_CHAIN, _STATES = ("forward.csv", "backward.csv"), "states.csv"


def declared_history(document: Document, source: Source, own_history: bool = False) -> History:
    """Return the data on which the public files of a trace depend, in addition to its outputs, as the owner declares.

    Args:
        document: The specification.
        source: The place of the document, with the folder for relative file names.
        own_history: Whether the caller accepts that the files depend on data of the person of the trace.

    Returns:
        The keys that were counted, the keys that were given as numbers, and the declaration.

    Raises:
        SpecificationError: Something was counted, but ``history`` in ``[release]`` does not state whose data these are;
            or it states "own", and the caller does not accept this.
    """
    stated, place = document.release.history, source / "release"
    as_truth(own_history, "own_history")
    origins = dict(_origins(document, source))
    counted, given = (tuple(key for key, each in origins.items() if each is kind) for kind in (True, False))
    both = '"others", or "own" with --own-history (own_history=True in Python)'
    if counted and stated is None:
        raise place.error(
            "history", f"is missing, but data were counted for {', '.join(counted)}", bound=both,
            remedy='"others" states that these data do not include the person of the trace, "own" that they may',
        )  # fmt: skip
    if own_history != (stated == "own"):
        problem = "contradicts --own-history" if own_history else "needs --own-history as well"
        remedy = "published files then depend on data of this person, and on the true states if these are among them"
        raise place.error("history", problem, value=stated, bound=both, remedy=remedy)
    return History(counted, given, stated)


def _origins(document: Document, source: Source) -> Iterator[tuple[str, bool]]:
    """Yield each key of the prior, the chain and the policy with data: true if they were counted, false for numbers."""
    release, place = document.release, source / "release"
    if release.initial is not None:
        yield from _prior(release.initial, place / "initial")
    if release.initial is None or document.domain.anchors is not None:
        # The costs at anchors are means over the visits.
        yield from _prior(document.prior, source / "prior")
    yield from _chain(release.transition, place / "transition")
    for index, table in enumerate(document.privacy):
        if isinstance(table, GraphPrivacyTable):
            yield from _chain(table.transitions, source / "privacy" / index / "transitions")


def _prior(table: PriorTable, source: Source) -> Iterator[tuple[str, bool]]:
    if table.form in (*_COUNTED, *_NUMBERS):
        yield str(source / table.form), table.form in _COUNTED


def _chain(table: ChainTable | None, source: Source) -> Iterator[tuple[str, bool]]:
    if table is None:
        return
    names = table.paths or ([table.path] if table.path is not None else [])
    if names or table.form in _COUNTED:
        yield str(source / table.form), not names or any(_is_counted(source.folder / name) for name in names)


def _is_counted(matrix: Path) -> bool:
    """Return whether `mechdesign chain` wrote a matrix, judging by the files next to it or to the target of a link."""
    places = (matrix, matrix.resolve())
    return any(place.name in _CHAIN and place.with_name(_STATES).is_file() for place in places)


def release_trace(
    started: Trace,
    steps: Steps,
    collect: Callable[[Sequence[Release], bool], ReleasedTrace],
    keep: Callable[[ReleasedTrace], None] | None,
    progress: ProgressCallback | None,
) -> ReleasedTrace:
    """Release the states of a trace; `collect` takes the releases, and whether all states were released."""
    releases: list[Release] = []
    finished = False
    deadline = Deadline(progress=progress)
    try:
        for step, state in enumerate(steps.states.tolist()):
            deadline.tell(f"step {step + 1} of {len(steps.states)}")
            # After a step is charged, Ctrl-C waits until the step is stored.
            with deadline.keeping("keeping the steps released so far", at_once=False):
                releases.append(_step(started, state, steps.where[step] if steps.where else f"trace, step {step}"))
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
    kinds = [str(table.__struct_config__.tag) for table in document.privacy]
    objective = document.cost.objective
    for path, found, bound in (
        ("observables", document.observables and "another domain", "the secrets: outputs are states"),
        *((f"privacy[{index}].kind", kind != "graph" and kind, '"graph"') for index, kind in enumerate(kinds)),
        ("policy.support", document.policy.support, "the states that follow from the transitions and from delta"),
        ("cost.objective", objective != "expected" and objective, '"expected"'),
    ):
        if found:
            raise SpecificationError(path, "is not supported for a trace", value=found, bound=bound)


def require_budget(ledger: Ledger, epsilon: Fraction, steps: int, series: Literal[False] | None = None) -> None:
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
    ledger.check(release, pairs, epsilon=epsilon, series=series)


def start_trace(
    problem: Problem,
    policy: SpecifiedPolicy,
    settings: ReleaseSettings,
    solver: SolveSettings,
    transition: MarkovChain | VaryingChain,
    seed: int | None,
    ledger: Ledger | None,
    series: Literal[False] | None = None,
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
            series=series,
        )


def _step(trace: Trace, state: int, path: str) -> Release:
    try:
        with Source().keys({**ARGUMENTS, "epsilon": "privacy.epsilon"}):
            return trace.step(state)
    except InputError as error:
        if error.path != "true_state":
            raise
        # The error is about a true state, which no message shows.
        raise InputError(
            path,
            error.problem,
            bound=error.bound,
            remedy="smooth the transitions, or set delta in [policy], so that the nearest possible state is released",
        ) from None
