"""Design a certified channel: split the problem, try solvers in order, and keep the best certified result.

Secrets that a design would reveal are refused, unless the caller accepts it; warnings name revealed secrets and cells
that are too far apart.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from mechdesign.base._arithmetic import own_arithmetic
from mechdesign.base._arrays import Floats
from mechdesign.base._check import require_name
from mechdesign.base._deadline import Deadline, ProgressCallback, Stop, keep
from mechdesign.base._errors import InputError, RevealedWarning, Shown, SolverError, SpacingWarning
from mechdesign.base._warnings import warn
from mechdesign.certify._exact import exact
from mechdesign.model._disclosure import bounds_pairs, describe_cells, describe_disclosure, find_untied, list_secrets
from mechdesign.model._problem import Problem
from mechdesign.solve import _registry as registry
from mechdesign.solve._contract import Status
from mechdesign.synthesis._attempts import RAYS, Attempt, check_choice, first_attempt, later_attempts
from mechdesign.synthesis._blocks import solve_form_by_blocks
from mechdesign.synthesis._bundle import require_plain_names
from mechdesign.synthesis._coupled import couple, is_decomposable
from mechdesign.synthesis._normal import ChannelCandidate, FormMultipliers, NormalForm, normalise
from mechdesign.synthesis._parts import Part, assemble, has_floors, split
from mechdesign.synthesis._rays.generation import solve_rays
from mechdesign.synthesis._recovery import check_candidate, recover_design
from mechdesign.synthesis._result import Design, SolveSummary, certify_design, warn_if_wide
from mechdesign.synthesis._rows import find_interior_channel, solve_rows
from mechdesign.synthesis._settings import TOLERANCE, Rows, SolveSettings
from mechdesign.synthesis._sizes import check_size, size_of

Isolated = Literal["refuse", "release"]


def check_isolated(problem: Problem, isolated: str) -> None:
    """Raise `InputError` for secrets without a pair bound to another secret, unless `isolated` is "release".

    Problems whose only requirements are distortion floors bound no pairs on purpose. This function accepts such
    problems, and `warn_revealed` later issues a warning. A problem is not checked again if its facts already contain a
    decision on isolated secrets ("isolated").
    """
    require_name(isolated, get_args(Isolated), "isolated")
    if "isolated" in problem.facts:
        return
    n, claims = len(problem.prior), problem.claims
    alone = find_untied(n, claims)
    if isolated == "release" or not alone.size or (claims and not bounds_pairs(claims)):
        return
    if n == 1:
        raise InputError(
            "requirements",
            "cannot protect the only secret, which every answer reveals",
            remedy='allow further secrets, or accept this with isolated="release"',
        )
    raise InputError(
        "requirements",
        "bound no pair of secrets, so the best channel would release the secret exactly"
        if alone.size == n
        else "leave some secrets without a bound, so the best channel would release them exactly",
        value=Shown(list_secrets(alone.tolist(), n, problem.secrets)),
        remedy=f'{_suggest_remedy(problem, int(alone[0]))}, or accept this with isolated="release"',
    )


def warn_revealed(result: Design) -> None:
    """Issue a `RevealedWarning` if answers reveal secrets, for certain or nearly so, or if no pair is bounded."""
    sentences = describe_disclosure(result.problem, result.certificate.revealed or ())
    if sentences:
        warn(" ".join([*sentences, "All certified claims hold."]), RevealedWarning, stacklevel=3)


def warn_coarse(problem: Problem) -> None:
    """Issue a `SpacingWarning` if the cells of a grid are too far apart for metric privacy."""
    if said := describe_cells(problem):
        warn(said, SpacingWarning, stacklevel=3)


def _suggest_remedy(problem: Problem, secret: int) -> str:
    """Suggest a radius that includes the nearest secret or, if no requirement has a radius, suggest further bounds."""
    for stated in problem.stated:
        if "radius" in stated.numbers and "distance" in stated.arrays:
            row = np.delete(np.asarray(stated.arrays["distance"][secret]), secret)
            if np.isfinite(row).any():
                name = secret if problem.secrets is None else problem.secrets.labels[secret]
                radius = float(stated.numbers["radius"])
                return f"increase the radius from {radius:.6g} to {row.min():.6g}, which reaches a neighbour of {name}"
    return "bound pairs that contain them, by finite distances or edges"


_STOPPED_STATUSES = (Status.TIME_LIMIT, Status.INTERRUPTED)
_CLOSED_FORM = "closed form"
# Time limit of each part that remains after Ctrl-C, so short that the solver returns its first channel.
_TIME_AFTER_CTRL_C_S = 1e-3

Strategy = Callable[[Attempt, SolveSettings, Deadline, object], ChannelCandidate]

_STRATEGIES: dict[str, Strategy] = {"rows": solve_rows, "blocks": solve_form_by_blocks, RAYS: solve_rays}
"""The functions that solve a normal form; their keys are "rays" and the values of `mechdesign.solve.Solver.takes`."""

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
    isolated: Isolated = "refuse",
) -> Design:
    """Return the least-cost channel for a problem, with its certificate.

    Minimises Σ_s π_s Σ_o p(o|s) c(s,o) (Shokri 2015, eq. 11), or the worst cost (eq. 12), subject to the requirements.
    Independent groups of secrets are solved separately, and identical groups only once.

    The channel is checked in exact arithmetic, whatever the solver returned. At the time limit, or after Ctrl-C, the
    result is the cheapest channel certified so far; its certificate reports the remaining gap.

    Args:
        problem: Prior (n,), cost (n, m) and requirements.
        solver: "auto" (chosen by size) or a name that `mechdesign info` lists. `summary.plan` explains the choice.
        tolerance: Relative gap (cost − lower bound) / cost at which to stop, in (0, 1).
        time_limit: Seconds for the solvers; None means no limit. The solvers may exceed this limit by 10 % plus 2 s.
            Rounding and certifying take additional time.
        rows: Privacy constraints that the solver receives.

            - "auto": chosen by size.
            - "all": one row for each pair and observable.
            - "reduced": only pairs whose bounds are not implied by the bounds of other pairs.
            - "lazy": near pairs first; violated rows are added.
            - "near": near pairs only, with ε divided by their dilation: fast, with a larger gap.
            - "rays": no rows. Columns are mixtures of private columns, for thousands of secrets under metric
              privacy.
        options: Further options, under the solver's own names.
        threads: Largest number of threads that the solver may use.
        progress: Function that is called with a `Progress` from time to time.
        isolated: How to treat secrets that no pair bound connects to another secret: "refuse" them, or "release" them
            exactly. The certificate lists released secrets as `revealed`. Problems whose only requirements are
            distortion floors bound no pairs, and are never refused. A problem from `mechdesign.graphs.problem` already
            contains a decision on isolated secrets, which is kept.

    Returns:
        Design with `channel` (integers, shape (n, m)), `certificate` and `summary`.

    Warns:
        BracketWarning: The final gap exceeds both the tolerance and 2 %.
        RevealedWarning: An answer reveals secrets for certain, or for all practical purposes because every bound on
            them is at least 2^62. The warning is also issued if no requirement bounds a pair.
        SpacingWarning: The cells of a grid are so far apart under metric privacy that the answer is often the true one.

    Raises:
        InfeasibleError: No channel with the permitted answers meets all bounds and floors.
        InputError: An argument has the wrong type or is out of range, or a secret is isolated.
        MissingDependencyError: The solver is not installed.
        TooLargeError: The problem does not fit into memory; nothing was built.
        TimeLimitError: Secrets are permitted different answers, and no channel was found within the time limit.
        SolverError: The solver fails, or returns numbers that cannot be rounded to a channel.

    >>> import mechdesign as md
    >>> distance = md.distances.hamming(md.Domain.from_labels(["yes", "no"]))
    >>> problem = md.Problem([0.5, 0.5], distance, [md.MetricPrivacy("1.1", distance)])
    >>> round(md.design(problem).certificate.cost, 6)
    0.24974
    """
    with own_arithmetic():
        settings = SolveSettings(solver, tolerance, time_limit, rows, threads, options or {}, progress)
        # A bundle cannot hold titles, units or labels with hidden characters.
        require_plain_names(_require_problem(problem))
        check_isolated(problem, isolated)
        result = synthesise(problem, settings)
        warn_revealed(result)
        warn_coarse(problem)
        return result.noted(isolated=isolated) if isolated == "release" and result.summary.isolated is None else result


def synthesise(problem: Problem, settings: SolveSettings) -> Design:
    """Return the least-cost channel for a problem, like `design`, with all settings as one value.

    The summary includes the facts of the problem. Isolated secrets cause neither an error nor a warning.

    Args:
        problem: Prior (n,), cost (n, m) and requirements.
        settings: Solver, tolerance, time limit and the other arguments of `design`.

    Returns:
        Design with `channel` (integers, shape (n, m)), `certificate` and `summary`.

    Raises:
        InputError: The problem is not a `Problem`, or the solver does not support the chosen rows.
        TooLargeError: The problem does not fit into memory; nothing was built.
        SolverError: The solver fails, or returns numbers that cannot be rounded to a channel.

    >>> import mechdesign as md
    >>> distance = md.distances.hamming(md.Domain.from_labels(["yes", "no"]))
    >>> problem = md.Problem([0.5, 0.5], distance, [md.MetricPrivacy("1.1", distance)])
    >>> str(synthesise(problem, SolveSettings(tolerance=1e-4)).status)
    'optimal'
    """
    with own_arithmetic():
        deadline = settings.deadline()
        check_choice(settings.solver, settings.rows)
        parts = split(_require_problem(problem))
        if has_floors(problem) and not is_decomposable(problem, parts):
            # The floors cannot be decomposed over these parts, so one part holds all secrets.
            n, m = problem.cost.shape
            parts = (Part(np.arange(n), np.arange(m), 1.0, bool(np.isfinite(problem.cost).all())),)
        largest = max(parts, key=lambda part: len(part.secrets) ** 2 * len(part.observables))
        check_size(size_of(problem, largest), settings)
        if len(parts) == 1 and parts[0].observables.size == problem.cost.shape[1]:
            result = _design_whole(problem, settings, deadline)
        else:
            result = _design_parts(problem, parts, settings, deadline)
        result = warn_if_wide(result, settings)
        return result.noted(**problem.facts) if problem.facts else result


def _require_problem(problem: Problem) -> Problem:
    """Return the argument if it is a `Problem`; raise InputError otherwise."""
    if not isinstance(problem, Problem):
        raise InputError(
            "problem", "is not a Problem", value=type(problem).__name__, bound="a Problem, such as spec.problem()"
        )
    return problem


def _design_whole(problem: Problem, settings: SolveSettings, deadline: Deadline) -> Design:
    """Design a channel with a single program for all secrets.

    While a solver runs, the first Ctrl-C only stops the solver; its current channel is then certified.
    """
    # Until the first candidate, there is no result to keep.
    with deadline.keeping(_KEEPING_MESSAGE, at_once=False):
        began = deadline.seconds()
        form = normalise(problem)
        first = first_attempt(form, settings.solver, settings.rows, deadline)
        deadline.tell(first.reason)
        interior = find_interior_channel(form, deadline) if form.forbidden.any() else None
        best: Design | None = None
        failure = ""
        tried: tuple[str, ...] = ()
        try:
            for attempt, answer in _run_attempts(first, settings, deadline):
                tried = answer.summary.tried or ()
                candidate, wrong = check_candidate(answer, attempt.solver)
                if wrong:
                    failure = failure or wrong
                    continue
                candidate = candidate.with_facts(seconds=round(deadline.seconds() - began, 3))
                result, has_room = _finish(attempt.form, candidate, settings, deadline, interior, first=best is None)
                if best is None or result.certificate.relative_gap < best.certificate.relative_gap:
                    best = result
                if deadline.acknowledge():
                    best = best.noted(status=Status.INTERRUPTED)
                    break
                if candidate.status is Status.INTERRUPTED or _is_good_enough(best, settings) or not has_room:
                    break
        except KeyboardInterrupt:
            # Ctrl-C came between two solvers or during the certification of a later candidate: return the best design
            # so far.
            if best is None:
                raise
            best = best.noted(status=Status.INTERRUPTED)
        if best is None:
            raise SolverError(failure)
        return best if best.summary.tried == tried else best.noted(tried=tried)


def _run_attempts(
    first: Attempt, settings: SolveSettings, deadline: Deadline
) -> Iterator[tuple[Attempt, ChannelCandidate]]:
    """Run the attempts and yield each with its candidate; `summary.tried` lists all attempts so far."""
    form = first.form
    bounded = bool(form.floors) or bool(np.isfinite(form.exponents).any())
    # The worst cost of merged secrets is not linear in their shared row, so a solver is needed.
    if not bounded and (form.problem.objective == "expected" or not form.ties):
        yield replace(first, solver=_CLOSED_FORM), _answer_separately(form).with_facts(plan=first.reason)
        return
    answer = find_strategy(first)(first, settings, deadline, None)
    start, stalled = answer.start, answer.status is Status.STALLED
    tried: tuple[str, ...] = (f"{first.name}: {answer.summary.message}",)
    yield first, answer.with_facts(plan=answer.summary.plan or first.reason, tried=tried)
    for attempt in later_attempts(first, stalled=stalled):
        if answer.status in _STOPPED_STATUSES or deadline.stop() is Stop.TIME:
            return
        deadline.tell(f"{tried[-1]}; {attempt.name} takes over")
        deadline.check()
        again = attempt.form is form and (attempt.solver, attempt.rows) == (first.solver, first.rows)
        answer = find_strategy(attempt)(attempt, settings, deadline, start if again else None)
        reason = f"{attempt.reason}, after {'; '.join(tried)}"
        tried = (*tried, f"{attempt.name}: {answer.summary.message}")
        yield attempt, answer.with_facts(plan=reason, tried=tried)


def find_strategy(attempt: Attempt) -> Strategy:
    """Return the function that solves the normal form of an attempt."""
    return _STRATEGIES[RAYS if attempt.rows == RAYS else registry.find(attempt.solver).takes]


def _finish(
    form: NormalForm,
    candidate: ChannelCandidate,
    settings: SolveSettings,
    deadline: Deadline,
    interior: Floats | None,
    *,
    first: bool,
) -> tuple[Design, bool]:
    """Round and certify a candidate; return False if memory did not suffice for its lower bound, which is then 0."""
    # Leaving the block releases the arrays for which there was no room.
    with contextlib.suppress(MemoryError):
        return _round_and_certify(form, candidate, settings, deadline, interior, first=first), True
    message = f"not enough memory to prove a lower bound; {candidate.summary.message}"
    bare = replace(candidate.with_facts(status=Status.STALLED, message=message), multipliers=None)
    return _round_and_certify(form, bare, settings, deadline, interior, first=first), False


def _round_and_certify(
    form: NormalForm,
    candidate: ChannelCandidate,
    settings: SolveSettings,
    deadline: Deadline,
    interior: Floats | None,
    *,
    first: bool,
) -> Design:
    """Round and certify a candidate; after one Ctrl-C, only the `first` candidate is still certified."""
    keep()
    try:
        deadline.tell("certifying")
        return recover_design(form, candidate, settings.tolerance, interior)
    except KeyboardInterrupt:
        if not first or candidate.status is Status.INTERRUPTED:
            raise
        return recover_design(form, candidate.with_facts(status=Status.INTERRUPTED), settings.tolerance, interior)


def _is_good_enough(result: Design, settings: SolveSettings) -> bool:
    return exact(result.certificate.relative_gap) <= exact(settings.tolerance)


def _answer_separately(form: NormalForm) -> ChannelCandidate:
    """Give every group its cheapest answer, which is optimal if no requirement connects groups."""
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
    """Design a channel for each part separately, and certify the combined channel."""
    began = deadline.seconds()
    stopped = False
    if len(parts) > 1 and not isinstance(settings.options.get("symmetry", True), bool | np.bool_):
        raise InputError(
            "options.symmetry",
            f"must be true or false: the problem splits into {len(parts)} parts that are designed separately",
            remedy="give true to find the symmetries of each part",
        )

    def solve(part: Problem, name: str) -> Design:
        """Design one part; after Ctrl-C, the part gets a minimal time limit."""
        nonlocal stopped
        own = deadline.part(stage=name)
        try:
            result = _design_whole(part, settings, own.part(seconds=_TIME_AFTER_CTRL_C_S) if stopped else own)
        except KeyboardInterrupt:
            if stopped:
                raise
            result = _design_whole(part, settings, own.part(seconds=_TIME_AFTER_CTRL_C_S)).noted(
                status=Status.INTERRUPTED
            )
        # After Ctrl-C, each remaining part gets the solver's first channel; a second Ctrl-C raises KeyboardInterrupt.
        stopped = stopped or result.status is Status.INTERRUPTED
        return result

    # Without floors, a channel for every part is available immediately.
    with deadline.keeping(_KEEPING_MESSAGE, at_once=not has_floors(problem)):
        coupled = has_floors(problem)
        found = couple(problem, parts, settings, deadline) if coupled else assemble(problem, parts, solve)
        keep()
        seconds = deadline.seconds() - began
        deadline.tell("certifying")
        summary = replace(found.summary, seconds=round(seconds, 3))
        result = certify_design(problem, found.numerators, found.multipliers, settings.tolerance, summary)
        last = deadline.seconds() - began - seconds
        result = result.noted(certifying_seconds=round((summary.certifying_seconds or 0.0) + last, 3))
        return result.noted(status=Status.INTERRUPTED) if deadline.acknowledge() else result
