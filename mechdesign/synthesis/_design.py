"""Design: parts, attempts, best certified channel."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.base import _interrupts as interrupts
from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._errors import InputError, SolverError
from mechdesign.certify._exact import exact
from mechdesign.model._problem import Problem
from mechdesign.solve import _registry as registry
from mechdesign.solve._contract import ProgressCallback, Status
from mechdesign.synthesis._blocks import solve_blocks
from mechdesign.synthesis._bundle import require_plain_names
from mechdesign.synthesis._coupled.dantzig_wolfe import couple, decomposes
from mechdesign.synthesis._isolation import Isolated, check_isolated, warn_revealed
from mechdesign.synthesis._normal import Candidate, FormMultipliers, NormalForm, normalise
from mechdesign.synthesis._parts import Part, assemble, has_floors, split
from mechdesign.synthesis._plan import LARGE, LAZY, RAYS, Plan, check_choice, plan, takes_blocks
from mechdesign.synthesis._rays.generation import solve_rays
from mechdesign.synthesis._recovery import recovered, usable
from mechdesign.synthesis._result import Design, SolveSummary, certified, warn_if_stalled
from mechdesign.synthesis._rounding import tight
from mechdesign.synthesis._rows import solve_rows
from mechdesign.synthesis._settings import TOLERANCE, Rows, SolveSettings, renamed_progress
from mechdesign.synthesis._sizes import check_size, size_of
from mechdesign.synthesis._slater_point import interior

# Pairs times observables up to which lazy rows take HiGHS seconds (about 100 secrets, 50 with floors), and minutes;
# floors alone, with estimates for one end of the pairs, are as quick as bounds alone.
_SECONDS = 1_100_000
_FLOORS_COST = 9
_MINUTES = 2_200_000
# Bounds with smaller exponents hardly let two rows differ, by less than solvers resolve: they are made equal.
_ALIKE = 1e-6
# The factor of the objective at which reduced costs that a solver takes for 0 are 0 for the certificate, too.
_MAGNIFICATION = 1e6
_STOPPED = (Status.TIME_LIMIT, Status.INTERRUPTED)

Strategy = Callable[[NormalForm, Plan, SolveSettings, object], Candidate]

_STRATEGIES: dict[str, Strategy] = {"rows": solve_rows, "blocks": solve_blocks, RAYS: solve_rays}
"""How to solve a normal form: by rays, or by what the solver takes (`mechdesign.solve.Solver.takes`)."""


@dataclass(frozen=True, eq=False)
class Found:
    """A candidate, the form that it answers, the name of the solver, and in words what the search has tried so far."""

    form: NormalForm
    candidate: Candidate
    solver: str
    tried: tuple[str, ...]


def search(form: NormalForm, chosen: Plan, settings: SolveSettings) -> Iterator[Found]:
    """Yield answers to a normal form, as planned first, then by other ways.

    The caller takes the next one when the certificate of the last is not good enough. After an exact solver that saw
    all its rows comes the same program with its objective magnified, for better multipliers, and, where we chose it and
    they are few, a program with the rows of all pairs. Where secrets are nearly
    alike, by bounds with exponents below 1e-6, making them alike comes next. Where we chose the solver, the block
    method follows the simplex method, and lazy rows on HiGHS follow the block method where they take seconds, or where
    they take minutes and it stalled far from the optimum, as it does at floors near the largest possible; the summary
    says so.
    """
    bounded = bool(form.floors) or bool(np.isfinite(form.exponents).any())
    # The worst cost over a group is no cost of the group's: it takes a program.
    if not bounded and (form.problem.objective == "expected" or not form.ties):
        yield Found(form, _separate(form), "closed form", ())
        return
    clock = time.perf_counter()
    found = _solve(form, chosen, settings)
    tried: tuple[str, ...] = (f"{_name(chosen)}: {found.summary.message}",)
    yield Found(form, found, chosen.solver, tried)
    first, start = found, found.start
    for other, second in _others(form, chosen, first):
        elapsed = time.perf_counter() - clock
        if found.status in _STOPPED or (settings.time_limit is not None and settings.time_limit <= elapsed):
            return
        settings.tell(f"{tried[-1]}; {_name(second)} takes over", elapsed)
        interrupts.check()
        again = other is form and (second.solver, second.rows) == (chosen.solver, chosen.rows)
        found = _solve(other, second, settings.after(elapsed), start if again else None)
        reason = f"{second.reason}, after {'; '.join(tried)}"
        tried = (*tried, f"{_name(second)}: {found.summary.message}")
        yield Found(other, found.noted(plan=reason), second.solver, tried)


def _solve(form: NormalForm, chosen: Plan, settings: SolveSettings, start: object = None) -> Candidate:
    taken = RAYS if chosen.rows == RAYS else registry.find(chosen.solver).takes
    return _STRATEGIES[taken](form, chosen, settings, start)


def _name(chosen: Plan) -> str:
    if chosen.magnification == 1:
        return chosen.solver
    return f"{chosen.solver} with a magnified objective and {chosen.rows} rows"


def _others(form: NormalForm, chosen: Plan, first: Candidate) -> Iterator[tuple[NormalForm, Plan]]:
    """Yield the ways that are left after the first, each a form and how to solve it."""
    if chosen.rows == RAYS:
        return
    forbidden = bool(form.forbidden.any())
    # Secrets with different permitted answers cannot be made alike.
    near_alike = bool((form.exponents < _ALIKE).any()) and not forbidden
    blocks = takes_blocks(chosen.solver)
    if registry.find(chosen.solver).exact and chosen.rows in ("all", "reduced") and not near_alike:
        yield form, replace(chosen, magnification=_MAGNIFICATION)
        everything = plan(form, chosen.solver, "all")
        # Chains of many steep bounds imply a bound only up to the rounding of each.
        if chosen.chosen and everything.small:
            yield form, replace(everything, chosen=True, magnification=_MAGNIFICATION)
    alike = (chosen.chosen or blocks) and near_alike
    merged = normalise(form.problem, _ALIKE) if alike else form
    if alike:
        yield merged, _merging(plan(merged, "auto" if chosen.chosen else chosen.solver))
    if not chosen.chosen:
        return
    if forbidden:
        if chosen.solver != LAZY:
            yield form, plan(form, LAZY)
        return
    if not blocks:
        yield form, plan(form, LARGE)
        if alike:
            yield merged, _merging(plan(merged, LARGE))
        return
    bounds = int(np.isfinite(form.exponents).sum())
    size = max(bounds, *(floor.error.size for floor in form.floors), 0) * form.observables
    seconds = size * (_FLOORS_COST if form.floors and bounds else 1) <= _SECONDS
    if seconds or ((first.status is Status.STALLED or tight(form)) and size <= _MINUTES):
        yield form, plan(form, LAZY)


def _merging(chosen: Plan) -> Plan:
    return replace(chosen, reason=f"{chosen.reason}, secrets at exponents below {_ALIKE:g} made alike")


def _separate(form: NormalForm) -> Candidate:
    """Give every group its cheapest answer, which is optimal where nothing ties groups together."""
    problem = form.problem
    worst = problem.objective == "worst"
    cost = problem.cost if worst else form.gather(problem.prior[:, None] * form.finite_cost)
    cost = np.where(form.forbidden, np.inf, cost)
    matrix = np.zeros((form.groups, form.observables))
    matrix[np.arange(form.groups), cost.argmin(axis=1)] = 1.0
    weights = (np.arange(form.groups) == cost.min(axis=1).argmax()).astype(np.float64) if worst else None
    none = np.zeros(0, dtype=np.int64)
    summary = SolveSummary(Status.OPTIMAL, "no two secrets are tied together", solver="closed form")
    return Candidate(matrix, FormMultipliers(none, none, none, np.zeros(0), weights=weights), summary)


_KEEPING = "certifying the best channel found so far"


@in_own_arithmetic
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
    progress = renamed_progress(progress, report)
    settings = SolveSettings(solver, tolerance, time_limit, rows, threads, options or {}, progress)
    # No bundle could be made of them.
    require_plain_names(_checked(problem))
    check_isolated(problem, isolated)
    made = synthesise(problem, settings)
    warn_revealed(made)
    return made.noted(isolated=isolated) if isolated == "release" and made.summary.isolated is None else made


@in_own_arithmetic
def synthesise(problem: Problem, settings: SolveSettings) -> Design:
    """Design the least-cost channel for a problem as `design` does, with its arguments as one value.

    The summary repeats the facts of the problem. Whether secrets may be revealed is not asked, nor said.
    """
    made = warn_if_stalled(_synthesised(problem, settings), settings)
    return made.noted(**problem.facts) if problem.facts else made


def _synthesised(problem: Problem, settings: SolveSettings) -> Design:
    check_choice(settings.solver, settings.rows)
    parts = split(_checked(problem))
    together = has_floors(problem) and not decomposes(problem, parts)
    if together:
        n, m = problem.cost.shape
        parts = (Part(np.arange(n), np.arange(m), 1.0, bool(np.isfinite(problem.cost).all())),)
    largest = max(parts, key=lambda part: len(part.secrets) ** 2 * len(part.observables))
    check_size(size_of(problem, largest), settings)
    if together or (len(parts) == 1 and parts[0].observables.size == problem.cost.shape[1]):
        return _whole(problem, settings)
    return _in_parts(problem, parts, settings)


def _checked(problem: Problem) -> Problem:
    if not isinstance(problem, Problem):
        raise InputError("problem", "is not a Problem", value=type(problem).__name__)
    return problem


def _whole(problem: Problem, settings: SolveSettings) -> Design:
    """Design a channel by one program for all secrets.

    From when a solver begins to when its answer is certified, a first Ctrl-C only stops the solver.
    """
    with interrupts.scope(_KEEPING):
        return _searched(problem, settings)


def _searched(problem: Problem, settings: SolveSettings) -> Design:
    clock = time.perf_counter()
    form = normalise(problem)
    until = math.inf if settings.time_limit is None else clock + settings.time_limit
    chosen = plan(form, settings.solver, settings.rows, until)
    settings.tell(chosen.reason, 0.0)
    tolerance = settings.tolerance
    inside = interior(form, settings.time_limit) if form.forbidden.any() else None
    best: Design | None = None
    trouble = ""
    tried: tuple[str, ...] = ()
    try:
        for found in search(form, chosen, settings.after(time.perf_counter() - clock)):
            tried = found.tried
            candidate, wrong = usable(found.candidate, found.solver)
            if wrong:
                trouble = trouble or wrong
                continue
            solved = time.perf_counter() - clock
            planned = candidate.summary.plan or chosen.reason
            candidate = candidate.noted(plan=planned, seconds=round(solved, 3), tried=tried)
            interrupts.defer()
            try:
                settings.tell("certifying", solved)
                made = recovered(found.form, candidate, tolerance, inside)
            except KeyboardInterrupt:
                # The only answer is certified all the same; a second Ctrl-C ends that, too.
                if best is not None or candidate.status is Status.INTERRUPTED:
                    raise
                candidate = candidate.noted(status=Status.INTERRUPTED)
                made = recovered(found.form, candidate, tolerance, inside)
            if best is None or made.certificate.relative_gap < best.certificate.relative_gap:
                best = made
            if interrupts.take():
                best = best.noted(status=Status.INTERRUPTED)
                break
            if candidate.status is Status.INTERRUPTED or exact(best.certificate.relative_gap) <= exact(tolerance):
                break
    except KeyboardInterrupt:
        # Between one solver and the next, or while a second answer is certified, the first one stands.
        if best is None:
            raise
        best = best.noted(status=Status.INTERRUPTED)
    if best is None:
        raise SolverError(trouble)
    return best if best.summary.tried == tried else best.noted(tried=tried)


def _in_parts(problem: Problem, parts: tuple[Part, ...], settings: SolveSettings) -> Design:
    """Design a channel for each part alone, and certify them together."""
    clock = time.perf_counter()
    stopped = False
    if len(parts) > 1 and not isinstance(settings.options.get("symmetry", True), bool | np.bool_):
        raise InputError(
            "options.symmetry",
            "cannot be given where secrets fall into sets that are designed one by one",
            remedy="give true to have the symmetries of each set found",
        )

    def solve(part: Problem, name: str) -> Design:
        nonlocal stopped
        elapsed = time.perf_counter() - clock
        asked = settings.after(elapsed).for_part(name, elapsed)
        try:
            made = _whole(part, asked.hurried() if stopped else asked)
        except KeyboardInterrupt:
            if stopped:
                raise
            made = _whole(part, asked.hurried()).noted(status=Status.INTERRUPTED)
        # After Ctrl-C what is left gets whatever channel comes first; a second one ends it all.
        stopped = stopped or made.status is Status.INTERRUPTED
        return made

    with interrupts.scope(_KEEPING):
        if has_floors(problem):
            found = couple(problem, parts, settings)
        else:
            # Every part has a channel that comes at once.
            interrupts.defer()
            found = assemble(problem, parts, solve)
        interrupts.defer()
        seconds = time.perf_counter() - clock
        settings.tell("certifying", seconds)
        summary = replace(found.summary, seconds=round(seconds, 3))
        made = certified(problem, found.numerators, found.multipliers, settings.tolerance, summary)
        last = time.perf_counter() - clock - seconds
        made = made.noted(certifying_seconds=round((summary.certifying_seconds or 0.0) + last, 3))
        return made.noted(status=Status.INTERRUPTED) if interrupts.take() else made
