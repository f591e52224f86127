"""The main road: Problem → normal form → program → solution → channel → certificate."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mechdesign.base import _interrupts as interrupts
from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.certify._exact import exact
from mechdesign.base._errors import InputError
from mechdesign.base._errors import SolverError
from mechdesign.export.description import require_plain_names
from mechdesign.model._problem import Problem
from mechdesign.solve._contract import ProgressCallback
from mechdesign.solve._contract import Status
from mechdesign.synthesis.assemble import assemble
from mechdesign.synthesis.bracket import warn_if_stalled
from mechdesign.synthesis.certified import Design
from mechdesign.synthesis.certified import certified
from mechdesign.synthesis.dantzig_wolfe import couple
from mechdesign.synthesis.dantzig_wolfe import decomposes
from mechdesign.synthesis.interior import interior
from mechdesign.synthesis.isolation import Isolated
from mechdesign.synthesis.isolation import check_isolated
from mechdesign.synthesis.isolation import warn_revealed
from mechdesign.synthesis.normal import normalise
from mechdesign.synthesis.parts import Part
from mechdesign.synthesis.parts import has_floors
from mechdesign.synthesis.parts import split
from mechdesign.synthesis.plan import check_choice
from mechdesign.synthesis.plan import plan
from mechdesign.synthesis.recovery import recovered
from mechdesign.synthesis.recovery import usable
from mechdesign.synthesis.search import search
from mechdesign.synthesis.settings import TOLERANCE
from mechdesign.synthesis.settings import Rows
from mechdesign.synthesis.settings import SolveSettings
from mechdesign.synthesis.settings import renamed_progress
from mechdesign.synthesis.sizes import check_size
from mechdesign.synthesis.sizes import size_of

__all__ = ["Design", "design", "synthesise"]


def __dir__() -> list[str]:
    return sorted(__all__)


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
    made = _synthesised(problem, settings)
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
        return warn_if_stalled(_whole(problem, settings), settings)
    return warn_if_stalled(_in_parts(problem, parts, settings), settings)


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
