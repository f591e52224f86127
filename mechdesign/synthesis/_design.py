"""Design: parts, attempts, best certified channel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from mechdesign.base._arithmetic import own_arithmetic
from mechdesign.base._arrays import Floats
from mechdesign.base._deadline import Deadline, ProgressCallback, Stop, keep
from mechdesign.base._errors import InputError, SolverError
from mechdesign.certify._exact import exact
from mechdesign.model._problem import Problem
from mechdesign.solve import _registry as registry
from mechdesign.solve._contract import Status
from mechdesign.synthesis._attempts import RAYS, Attempt, check_choice, first_attempt, later_attempts
from mechdesign.synthesis._blocks import solve_blocks
from mechdesign.synthesis._bundle import require_plain_names
from mechdesign.synthesis._coupled.dantzig_wolfe import couple, decomposes
from mechdesign.synthesis._isolation import Isolated, check_isolated, warn_revealed
from mechdesign.synthesis._normal import ChannelCandidate, FormMultipliers, NormalForm, normalise
from mechdesign.synthesis._parts import Part, assemble, has_floors, split
from mechdesign.synthesis._rays.generation import solve_rays
from mechdesign.synthesis._recovery import check_candidate, recover_design
from mechdesign.synthesis._result import Design, SolveSummary, certify_design, warn_if_stalled
from mechdesign.synthesis._rows import solve_rows
from mechdesign.synthesis._settings import TOLERANCE, Rows, SolveSettings, resolve_progress
from mechdesign.synthesis._sizes import check_size, size_of
from mechdesign.synthesis._slater_point import find_interior_channel

_STOPPED_STATUSES = (Status.TIME_LIMIT, Status.INTERRUPTED)
_CLOSED_FORM = "closed form"
# After Ctrl-C a part takes the first channel that its solver has.
_TIME_AFTER_CTRL_C_S = 1e-3

Strategy = Callable[[Attempt, SolveSettings, Deadline, object], ChannelCandidate]

_STRATEGIES: dict[str, Strategy] = {"rows": solve_rows, "blocks": solve_blocks, RAYS: solve_rays}
"""How to solve a normal form: by rays, or by what the solver takes (`mechdesign.solve.Solver.takes`)."""

_KEEPING_MESSAGE = "certifying the best channel found so far"


def design(
    problem: Problem,
    solver: str = "auto",
    tolerance: float = TOLERANCE,
    time_limit: float | None = None,
    *,
    rows: Rows = "auto",
    options: Mapping[str, object] | None = None,
    threads: int | None = None,
    progress: ProgressCallback | None = None,
    report: ProgressCallback | None = None,
    isolated: Isolated = "refuse",
) -> Design:
    """Design the least-cost channel for a problem, and certify it.

    Sets of secrets that no requirement ties together are programs of their own, and equal ones are solved once. A
    secret that nothing ties to another would be released exactly, and is refused unless that is accepted.

    The result always holds: it is checked in exact arithmetic, whatever the solver returned. At the time limit, or
    after Ctrl-C, it is the cheapest certified channel so far, and its gap says how good it is.

    Args:
        problem: What is asked for.
        solver: "auto" (chosen by size; the summary says what was chosen and why) or a name that `mechdesign info`
            lists.
        tolerance: Relative gap asked for, (cost − lower bound) / cost.
        time_limit: Seconds until a solver is to end, or None for no limit. It is kept within 2 s and a tenth; rounding
            and certifying come on top.
        rows: "auto", "all" (a row for every pair), "reduced" (pairs that no others imply), "lazy" (near pairs first,
            violated ones as they show), "near" (near pairs only, at ε divided by their dilation: quick, with an
            honest gap) or "rays" (no rows: columns are mixed of ones that are private, for thousands of secrets under
            metric privacy, with an honest gap; warns with `BracketWarning` where that ends above the tolerance and
            2 %).
        options: Further options, under the solver's own names.
        threads: Most threads that the solver may use.
        progress: Called with a `Progress` now and then.
        report: The former name of `progress`, deprecated.
        isolated: What to do with secrets that no bound of any requirement, in either direction, ties to another one,
            such as those without a neighbour within the radius of threshold privacy: "refuse", or "release" them, which
            the certificate then lists as `revealed`. Where only distortion is required, no pair is meant to be bounded,
            and nothing is refused. `mechdesign.graphs.problem` asks this itself, and its answer stands.

    Returns:
        The channel with its certificate; `summary` says how it was found.

    Warns:
        RevealedWarning: An answer reveals secrets for certain; every bound on them is so large, 2^62 or more, that an
            answer may reveal them all but for certain; or no requirement bounds a pair.

    Raises:
        InfeasibleError: No channel meets the bounds and floors with the permitted answers; what constant channels show
            to be too much is refused by `Problem`.
        InputError: An argument is of the wrong kind or out of range, or secrets are tied to no other.
        MissingDependencyError: The solver is not installed.
        TooLargeError: The problem does not fit into memory; nothing was built.
        TimeLimitError: Secrets are permitted different answers, and no channel was found within the time limit.
        SolverError: The solver fails, or returns numbers from which no channel can be made.
    """
    progress = resolve_progress(progress, report)
    with own_arithmetic():
        settings = SolveSettings(solver, tolerance, time_limit, rows, threads, options or {}, progress)
        # No bundle could be made of them.
        require_plain_names(_require_problem(problem))
        check_isolated(problem, isolated)
        made = synthesise(problem, settings)
        warn_revealed(made)
        return made.noted(isolated=isolated) if isolated == "release" and made.summary.isolated is None else made


def synthesise(problem: Problem, settings: SolveSettings) -> Design:
    """Design the least-cost channel for a problem as `design` does, with its arguments as one value.

    The summary repeats the facts of the problem. Whether secrets may be revealed is not asked, nor said.
    """
    with own_arithmetic():
        deadline = settings.deadline()
        check_choice(settings.solver, settings.rows)
        parts = split(_require_problem(problem))
        if has_floors(problem) and not decomposes(problem, parts):
            n, m = problem.cost.shape
            parts = (Part(np.arange(n), np.arange(m), 1.0, bool(np.isfinite(problem.cost).all())),)
        largest = max(parts, key=lambda part: len(part.secrets) ** 2 * len(part.observables))
        check_size(size_of(problem, largest), settings)
        if len(parts) == 1 and parts[0].observables.size == problem.cost.shape[1]:
            made = _design_whole(problem, settings, deadline)
        else:
            made = _design_parts(problem, parts, settings, deadline)
        made = warn_if_stalled(made, settings)
        return made.noted(**problem.facts) if problem.facts else made


def _require_problem(problem: Problem) -> Problem:
    if not isinstance(problem, Problem):
        raise InputError("problem", "is not a Problem", value=type(problem).__name__)
    return problem


def _design_whole(problem: Problem, settings: SolveSettings, deadline: Deadline) -> Design:
    """Design a channel by one program for all secrets.

    Once a solver has begun, the first Ctrl-C only stops the solver: what it has found is certified.
    """
    with deadline.keeping(_KEEPING_MESSAGE, at_once=False):
        began = deadline.seconds()
        form = normalise(problem)
        first = first_attempt(form, settings.solver, settings.rows, deadline)
        deadline.tell(first.reason)
        inside = find_interior_channel(form, deadline) if form.forbidden.any() else None
        best: Design | None = None
        trouble = ""
        tried: tuple[str, ...] = ()
        try:
            for attempt, answer in _run_attempts(first, settings, deadline):
                tried = answer.summary.tried or ()
                candidate, wrong = check_candidate(answer, attempt.solver)
                if wrong:
                    trouble = trouble or wrong
                    continue
                candidate = candidate.with_facts(seconds=round(deadline.seconds() - began, 3))
                made = _round_and_certify(attempt.form, candidate, settings, deadline, inside, first=best is None)
                if best is None or made.certificate.relative_gap < best.certificate.relative_gap:
                    best = made
                if deadline.acknowledge():
                    best = best.noted(status=Status.INTERRUPTED)
                    break
                if candidate.status is Status.INTERRUPTED or _is_good_enough(best, settings):
                    break
        except KeyboardInterrupt:
            # Between one solver and the next, or while a second answer is certified, the first one stands.
            if best is None:
                raise
            best = best.noted(status=Status.INTERRUPTED)
        if best is None:
            raise SolverError(trouble)
        return best if best.summary.tried == tried else best.noted(tried=tried)


def _run_attempts(
    first: Attempt, settings: SolveSettings, deadline: Deadline
) -> Iterator[tuple[Attempt, ChannelCandidate]]:
    """Yield the attempts with their answers; the summary of an answer says what was tried so far, and why."""
    form = first.form
    bounded = bool(form.floors) or bool(np.isfinite(form.exponents).any())
    # The worst cost of merged secrets is not linear in their shared row: it takes a solver.
    if not bounded and (form.problem.objective == "expected" or not form.ties):
        yield replace(first, solver=_CLOSED_FORM), _answer_separately(form).with_facts(plan=first.reason)
        return
    answer = _find_strategy(first)(first, settings, deadline, None)
    start, stalled = answer.start, answer.status is Status.STALLED
    tried: tuple[str, ...] = (f"{first.name}: {answer.summary.message}",)
    yield first, answer.with_facts(plan=answer.summary.plan or first.reason, tried=tried)
    for attempt in later_attempts(first, stalled=stalled):
        if answer.status in _STOPPED_STATUSES or deadline.stop() is Stop.TIME:
            return
        deadline.tell(f"{tried[-1]}; {attempt.name} takes over")
        deadline.check()
        again = attempt.form is form and (attempt.solver, attempt.rows) == (first.solver, first.rows)
        answer = _find_strategy(attempt)(attempt, settings, deadline, start if again else None)
        reason = f"{attempt.reason}, after {'; '.join(tried)}"
        tried = (*tried, f"{attempt.name}: {answer.summary.message}")
        yield attempt, answer.with_facts(plan=reason, tried=tried)


def _find_strategy(attempt: Attempt) -> Strategy:
    return _STRATEGIES[RAYS if attempt.rows == RAYS else registry.find(attempt.solver).takes]


def _round_and_certify(
    form: NormalForm,
    candidate: ChannelCandidate,
    settings: SolveSettings,
    deadline: Deadline,
    interior: Floats | None,
    *,
    first: bool,
) -> Design:
    """Round and certify a candidate; the `first` one also after Ctrl-C, unless that comes again."""
    keep()
    try:
        deadline.tell("certifying")
        return recover_design(form, candidate, settings.tolerance, interior)
    except KeyboardInterrupt:
        if not first or candidate.status is Status.INTERRUPTED:
            raise
        return recover_design(form, candidate.with_facts(status=Status.INTERRUPTED), settings.tolerance, interior)


def _is_good_enough(made: Design, settings: SolveSettings) -> bool:
    return exact(made.certificate.relative_gap) <= exact(settings.tolerance)


def _answer_separately(form: NormalForm) -> ChannelCandidate:
    """Give every group its cheapest answer, which is optimal where nothing ties groups together."""
    problem = form.problem
    worst = problem.objective == "worst"
    cost = problem.cost if worst else form.gather(problem.prior[:, None] * form.finite_cost)
    cost = np.where(form.forbidden, np.inf, cost)
    matrix = np.zeros((form.groups, form.observables))
    matrix[np.arange(form.groups), cost.argmin(axis=1)] = 1.0
    weights = (np.arange(form.groups) == cost.min(axis=1).argmax()).astype(np.float64) if worst else None
    none = np.zeros(0, dtype=np.int64)
    summary = SolveSummary(Status.OPTIMAL, "no two secrets are tied together", solver=_CLOSED_FORM)
    return ChannelCandidate(matrix, FormMultipliers(none, none, none, np.zeros(0), weights=weights), summary)


def _design_parts(problem: Problem, parts: tuple[Part, ...], settings: SolveSettings, deadline: Deadline) -> Design:
    """Design a channel for each part alone, and certify them together."""
    began = deadline.seconds()
    stopped = False
    if len(parts) > 1 and not isinstance(settings.options.get("symmetry", True), bool | np.bool_):
        raise InputError(
            "options.symmetry",
            "cannot be given where secrets fall into sets that are designed one by one",
            remedy="give true to have the symmetries of each set found",
        )

    def solve(part: Problem, name: str) -> Design:
        nonlocal stopped
        own = deadline.part(stage=name)
        try:
            made = _design_whole(part, settings, own.part(seconds=_TIME_AFTER_CTRL_C_S) if stopped else own)
        except KeyboardInterrupt:
            if stopped:
                raise
            made = _design_whole(part, settings, own.part(seconds=_TIME_AFTER_CTRL_C_S)).noted(
                status=Status.INTERRUPTED
            )
        # After Ctrl-C what is left gets whatever channel comes first; a second one ends it all.
        stopped = stopped or made.status is Status.INTERRUPTED
        return made

    # Without floors, every part has a channel that comes at once.
    with deadline.keeping(_KEEPING_MESSAGE, at_once=not has_floors(problem)):
        coupled = has_floors(problem)
        found = couple(problem, parts, settings, deadline) if coupled else assemble(problem, parts, solve)
        keep()
        seconds = deadline.seconds() - began
        deadline.tell("certifying")
        summary = replace(found.summary, seconds=round(seconds, 3))
        made = certify_design(problem, found.numerators, found.multipliers, settings.tolerance, summary)
        last = deadline.seconds() - began - seconds
        made = made.noted(certifying_seconds=round((summary.certifying_seconds or 0.0) + last, 3))
        return made.noted(status=Status.INTERRUPTED) if deadline.acknowledge() else made
