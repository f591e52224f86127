"""The main road: Problem → normal form → program → solution → channel → certificate."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mechdesign import __version__
from mechdesign.certify.certificate import Certificate, certify
from mechdesign.certify.claims import PairBound
from mechdesign.certify.costs import distortion
from mechdesign.certify.evidence import Evidence, Multipliers
from mechdesign.certify.exact import exact
from mechdesign.certify.privacy import check
from mechdesign.errors import InputError, SolverError
from mechdesign.model.channel import EXPONENT, Channel
from mechdesign.model.problem import Problem
from mechdesign.solvers import Options, Progress, Report, Status
from mechdesign.synthesis.arguments import positive_number, settings_of
from mechdesign.synthesis.assemble import assemble
from mechdesign.synthesis.coupled import couple
from mechdesign.synthesis.normal import NormalForm, normalise
from mechdesign.synthesis.parts import Part, has_floors, split
from mechdesign.synthesis.plan import Rows, check_choice, plan
from mechdesign.synthesis.relax import Relaxed
from mechdesign.synthesis.rounding import Rounded, channel_cost, cheapest_constant, round_channel
from mechdesign.synthesis.search import search

__all__ = ["Design", "design"]

Integers = NDArray[np.int64]

# The solver is asked for more than the certificate, which adds its own rounding to what is left.
_SOLVER_SHARE = 0.1
# A time limit that is over: the solver is asked all the same, and a constant channel serves where it gives nothing.
_HARDLY_ANY = 1e-3
_UNSOLVABLE = {
    Status.INFEASIBLE: "although a constant channel meets every requirement",
    Status.UNBOUNDED: "although costs are not negative",
}


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """A channel, the problem it answers, and the proof of both its privacy and its cost.

    `multipliers` prove the lower bound; `status` says how the search ended ("optimal" or why it stopped early).
    """

    problem: Problem
    channel: Channel
    certificate: Certificate
    multipliers: Multipliers | None
    status: str

    def __repr__(self) -> str:
        return f"Design({self.channel!r}, {self.certificate!r})"

    def evidence(self) -> Evidence:
        """Return what the certificate was computed from."""
        return _evidence(self.problem, self.channel.numerators, self.multipliers)

    def save(self, directory: str | os.PathLike[str], report: bool = True) -> None:
        """Write ``channel.npz``, ``channel.csv``, ``dual.npz``, ``report.html`` and, last, ``certificate.json``.

        An older set in the directory is replaced; `mechdesign.verify` never accepts a mixture of the two. `report`
        can be switched off. Raises ExportError when the files cannot be written.
        """
        from mechdesign.export.sets import save

        save(self.problem, self.channel, self.certificate, self.evidence(), Path(directory), report=report)


def design(
    problem: Problem,
    solver: str = "auto",
    tolerance: float = 1e-9,
    time_limit: float | None = None,
    *,
    rows: Rows = "auto",
    options: Mapping[str, object] | None = None,
    threads: int | None = None,
    report: Report | None = None,
) -> Design:
    """Design the least-cost channel for a problem, and certify it.

    `solver` is "auto" (chosen by size; the certificate's provenance says what was chosen and why) or a name that
    `mechdesign info` lists. `tolerance` is the relative gap asked for, `time_limit` is in seconds. `rows` is "auto",
    "all" (a row for every pair), "reduced" (pairs that no others imply), "lazy" (near pairs first, violated ones as
    they show) or "near" (near pairs only, at ε divided by their stretch: quick, with an honest gap). `options` go to
    the solver under its own names, `report` receives Progress values.

    Sets of secrets that no requirement ties together are programs of their own, and equal ones are solved once.

    The result always holds: it is checked in exact arithmetic, whatever the solver returned. At the time limit, or
    after Ctrl-C, it is the cheapest certified channel so far, and its gap says how good it is.

    Raises InputError for bad arguments, MissingDependencyError for a solver that is not installed, and SolverError
    when the solver fails or returns numbers that contradict what it says of them.
    """
    if not isinstance(problem, Problem):
        raise InputError("problem", "is not a Problem", value=type(problem).__name__)
    check_choice(solver, rows)
    settings = settings_of(time_limit, options, threads, report)
    tolerance = positive_number("tolerance", tolerance)
    parts = split(problem)
    if len(parts) == 1 and parts[0].observables.size == problem.cost.shape[1]:
        return _whole(problem, solver, tolerance, rows, settings)
    return _in_parts(problem, parts, solver, tolerance, rows, settings)


def _whole(problem: Problem, solver: str, tolerance: float, rows: Rows, settings: Options) -> Design:
    """Design a channel by one program for all secrets."""
    clock = time.perf_counter()
    form = normalise(problem)
    chosen = plan(form, solver, rows)
    report = settings.report
    if report is not None:
        report(Progress(chosen.reason, 0.0))
    asked = replace(settings, tolerance=min(1e-7, max(1e-10, tolerance * _SOLVER_SHARE)))
    best: Design | None = None
    trouble = ""
    tried: tuple[str, ...] = ()
    try:
        for found in search(form, chosen, asked, tolerance):
            relaxed, tried = found.relaxed, found.tried
            wrong = _trouble(relaxed, found.solver)
            if wrong:
                trouble = trouble or wrong
                continue
            solved = time.perf_counter()
            provenance = {"plan": chosen.reason, **relaxed.facts, "solve_seconds": round(solved - clock, 3)}
            try:
                if report is not None:
                    report(Progress("certifying", solved - clock))
                made = _certified(found.form, relaxed, tolerance, provenance)
            except KeyboardInterrupt:
                # The only answer is certified all the same; a second Ctrl-C ends that, too.
                if best is not None or relaxed.status is Status.INTERRUPTED:
                    raise
                relaxed = replace(relaxed, status=Status.INTERRUPTED)
                made = _certified(found.form, relaxed, tolerance, provenance)
            if best is None or made.certificate.relative_gap < best.certificate.relative_gap:
                best = made
            if relaxed.status is Status.INTERRUPTED or exact(best.certificate.relative_gap) <= exact(tolerance):
                break
    except KeyboardInterrupt:
        # Between one solver and the next, or while a second answer is certified, the first one stands.
        if best is None:
            raise
        best = replace(best, status=Status.INTERRUPTED.value)
    if best is None:
        raise SolverError(trouble)
    if len(tried) <= 1 and best.status != Status.INTERRUPTED.value:
        return best
    noted = {**best.certificate.provenance, "tried": "; ".join(tried), "status": best.status}
    return replace(best, certificate=replace(best.certificate, provenance=noted))


def _in_parts(
    problem: Problem, parts: tuple[Part, ...], solver: str, tolerance: float, rows: Rows, settings: Options
) -> Design:
    """Design a channel for each part alone, and certify them together."""
    clock = time.perf_counter()
    stopped = False
    if len(parts) > 1 and not isinstance(settings.extra.get("symmetry", True), bool | np.bool_):
        raise InputError(
            "options.symmetry",
            "cannot be given where secrets fall into sets that are designed one by one",
            remedy="give true to have the symmetries of each set found",
        )

    def solve(part: Problem, name: str) -> Design:
        nonlocal stopped
        elapsed = time.perf_counter() - clock
        limit = settings.time_limit
        if limit is not None:
            limit = max(limit - elapsed, _HARDLY_ANY)
        asked = replace(settings, time_limit=limit, report=_within(settings.report, name, elapsed))
        hurried = replace(asked, time_limit=_HARDLY_ANY)
        try:
            made = _whole(part, solver, tolerance, rows, hurried if stopped else asked)
        except KeyboardInterrupt:
            if stopped:
                raise
            made = replace(_whole(part, solver, tolerance, rows, hurried), status=Status.INTERRUPTED.value)
        # After Ctrl-C what is left gets whatever channel comes first; a second one ends it all.
        stopped = stopped or made.status == Status.INTERRUPTED.value
        return made

    if has_floors(problem):
        found = couple(problem, parts, solver, tolerance, rows, settings)
    else:
        found = assemble(problem, parts, solve)
    seconds = time.perf_counter() - clock
    if settings.report is not None:
        settings.report(Progress("certifying", seconds))
    facts = {**found.facts, "solve_seconds": round(seconds, 3)}
    return _concluded(problem, found.numerators, found.multipliers, found.status, tolerance, facts)


def _within(report: Report | None, name: str, elapsed: float) -> Report | None:
    """Return what tells `report` about a part of the work, begun `elapsed` seconds after the whole."""
    if report is None:
        return None
    return lambda moment: report(Progress(f"{name}: {moment.stage}", elapsed + moment.seconds, moment.iteration))


def _trouble(relaxed: Relaxed, solver: str) -> str:
    """Return what is wrong with an answer that cannot be used, in words; nothing where it can."""
    if relaxed.status in _UNSOLVABLE:
        return f"{solver} said: {relaxed.message} {_UNSOLVABLE[relaxed.status]}"
    if relaxed.status is Status.FAILED:
        return f"{solver} is not to be trusted here: {relaxed.message}"
    return ""


def _certified(
    form: NormalForm, relaxed: Relaxed, tolerance: float, provenance: Mapping[str, str | int | float]
) -> Design:
    """Round an answer to integers, and certify what comes out."""
    clock = time.perf_counter()
    rounded = _rounded(form, relaxed)
    facts: dict[str, str | int | float] = {
        **provenance,
        "privacy_weight": rounded.privacy_weight,
        "floor_weight": rounded.floor_weight,
        "rounding_seconds": round(time.perf_counter() - clock, 3),
    }
    return _concluded(form.problem, rounded.numerators, relaxed.multipliers, relaxed.status, tolerance, facts)


def _concluded(
    problem: Problem,
    numerators: Integers,
    multipliers: Multipliers | None,
    status: Status,
    tolerance: float,
    facts: Mapping[str, str | int | float],
) -> Design:
    """Certify a channel; raise CertificateError should it not hold."""
    certificate = certify(_evidence(problem, numerators, multipliers))
    certificate.require()
    # What we call optimal is what the certificate says is, whatever the solver thinks of its own numbers.
    if status in (Status.OPTIMAL, Status.STALLED):
        close = exact(certificate.relative_gap) <= exact(tolerance)
        status = Status.OPTIMAL if close else Status.STALLED
    provenance = {"mechdesign": __version__, "numpy": np.__version__, **facts, "status": status.value}
    labels = [domain.labels if domain is not None else () for domain in (problem.secrets, problem.observables)]
    channel = Channel(numerators, *labels)
    return Design(problem, channel, replace(certificate, provenance=provenance), multipliers, status.value)


def _evidence(problem: Problem, numerators: Integers, multipliers: Multipliers | None) -> Evidence:
    return Evidence(numerators, EXPONENT, problem.prior, problem.cost, problem.objective, problem.stated, multipliers)


def _rounded(form: NormalForm, relaxed: Relaxed) -> Rounded:
    """Round what the solver found, or release a constant where that is cheaper."""
    problem = form.problem
    bounds = [claim for claim in problem.claims if isinstance(claim, PairBound)]

    def holds(numerators: Integers) -> bool:
        return all(check(numerators, EXPONENT, bound) is None for bound in bounds)

    def distortions(numerators: Integers) -> tuple[Fraction, ...]:
        floors = [floor.claim for floor in form.floors]
        return tuple(distortion(numerators, EXPONENT, floor.prior_or(problem.prior), floor.error) for floor in floors)

    matrices = [np.tile(cheapest_constant(form), (form.groups, 1))]
    if relaxed.matrix is not None:
        matrices.insert(0, relaxed.matrix)
    found = [round_channel(form, matrix, holds, distortions) for matrix in matrices]
    channels = [rounded for rounded in found if rounded is not None]
    if not channels:
        raise SolverError(f"the numbers of {relaxed.facts.get('solver', 'the solver')} cannot be rounded to a channel")
    return min(channels, key=lambda rounded: channel_cost(form, rounded.numerators / 2.0**EXPONENT))
