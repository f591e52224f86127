"""The report of a benchmark: one page that holds everything."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mechdesign.base._atomic import write_file
from mechdesign.bench.pictures import Results
from mechdesign.bench.pictures import growing
from mechdesign.bench.pictures import growth_picture
from mechdesign.bench.pictures import profile_picture
from mechdesign.bench.pictures import runs_picture
from mechdesign.bench.statistics import SHIFT
from mechdesign.bench.statistics import contestant
from mechdesign.bench.statistics import scores
from mechdesign.bench.statistics import seconds
from mechdesign.bench.verdicts import OPTIMAL_GAP
from mechdesign.bench.verdicts import SLACK
from mechdesign.bench.verdicts import Verdict
from mechdesign.certify._texts import csv_text
from mechdesign.records.environment import environment
from mechdesign.report._pages import document
from mechdesign.report._pages import figure
from mechdesign.report._pages import section
from mechdesign.report._pages import table
from mechdesign.report._pages import text
from mechdesign.model._words import power
from mechdesign.model._words import short

__all__ = ["html", "write_report"]



def write_report(directory: Path, about: Mapping[str, Any], rows: Results, total: int) -> Path:
    """Write ``report.html`` and ``scores.csv`` into a folder of results; raise `ExportError` when that fails.

    Args:
        directory: The folder.
        about: Suite, limits and threads, as `mechdesign.bench.running.request_of` describes them.
        rows: Runs, by column.
        total: How many runs there are to be.
    """
    write_file(directory / "scores.csv", [_csv(rows, float(about["time_limit"])).encode()])
    write_file(directory / "report.html", [html(about, rows, total).encode()])
    return directory / "report.html"


def html(about: Mapping[str, Any], rows: Results, total: int) -> str:
    """Return the page."""
    sections = [_header(about, rows, total)]
    if rows:
        sections += [_scores(rows, about), _pictures(rows), _not_private(rows), _all(rows)]
    sections += [_method(about), _machine()]
    return document(f"Solver benchmark, suite {about['suite']}", sections)


def _csv(rows: Results, limit: float) -> str:
    """Return how each contestant did, as a table for other pages."""
    names = ("solved", "runs", "claimed", "not_private", "wrong", "mean", "censored_mean")
    lines: list[list[object]] = [["solver", *names]]
    for name, score in scores(rows, limit).items():
        found = (getattr(score, each) for each in names)
        lines.append([name, *(round(value, 3) if isinstance(value, float) else value for value in found)])
    return csv_text(lines)


def _header(about: Mapping[str, Any], rows: Results, total: int) -> str:
    said = [row for row in rows if row.get("claimed") == Verdict.OPTIMAL]
    bad = [row for row in said if row.get("certified") == Verdict.NOT_PRIVATE]
    problems = len({(row["family"], row["n"], row["seed"]) for row in rows})
    verdict = (
        f"<strong>{len(bad)} of {len(said)} matrices that were called optimal are not private as returned.</strong> "
        "Each was made private by rounding before its cost was compared."
    )
    parts = [
        "<header>",
        f"<h1>Solver benchmark, suite {text(str(about['suite']))}</h1>",
        f'<p class="verdict {"fails" if bad else "holds"}">{verdict}</p>',
        f"<p>{problems} problems, {len(set(map(contestant, rows)))} solvers with settings, {len(rows)} runs.</p>",
    ]
    if len(rows) < total:
        parts.append(f"<p>{total - len(rows)} of {total} runs are still missing.</p>")
    return "\n".join([*parts, "</header>"])


def _scores(rows: Results, about: Mapping[str, Any]) -> str:
    heads = (
        "Solver",
        "Solved",
        "Said optimal",
        "of these not private",
        "of these otherwise wrong",
        "Mean s, solved",
        "Mean s, all",
    )
    lines = []
    for name, score in scores(rows, float(about["time_limit"])).items():
        lines.append(
            (
                f"<strong>{text(name)}</strong>" if score.ours else text(name),
                f"{score.solved} of {score.runs}",
                str(score.claimed),
                f"<strong>{score.not_private}</strong>" if score.not_private else "0",
                str(score.wrong),
                _seconds(score.mean),
                _seconds(score.censored_mean),
            )
        )
    note = (
        f"<p>Solved means: a channel that is private in exact arithmetic and within {power(OPTIMAL_GAP)} of a proved "
        "lower bound, after rounding by this package. Means are geometric, shifted by "
        f"{SHIFT:g} s; in the last column what was not solved counts as the limit of {about['time_limit']:g} s.</p>"
    )
    return section("Solvers", table(heads, lines, "numbers"), note)


def _pictures(rows: Results) -> str:
    parts = [
        figure(
            functools.partial(profile_picture, rows),
            "profile",
            "Performance profile",
            "Performance profile (Dolan and Moré 2002): a curve further up and to the left is better. "
            "Thick lines are this package's own.",
        ),
        figure(
            functools.partial(runs_picture, rows),
            "runs",
            "Time of every run",
            "Every run, to a certified channel or to the limit. Larger marks are larger problems.",
        ),
    ]
    if growing(rows):
        parts.append(
            figure(
                functools.partial(growth_picture, rows),
                "growth",
                "Time by number of secrets",
                "Geometric means over seeds, for the families that the suite has in several sizes.",
            )
        )
    return section("Times", *parts)


def _not_private(rows: Results) -> str:
    bad = [row for row in rows if row.get("claimed") == Verdict.OPTIMAL and row.get("certified") == Verdict.NOT_PRIVATE]
    if not bad:
        return section("Said optimal, is not private", "<p>None.</p>")
    lines = (
        (
            text(contestant(row)),
            f"{text(row['family'])}, n = {row['n']}",
            short(float(row["tight_epsilon"]), 7),
            short(float(row["cost_returned"]), 7),
            short(float(row["cost"]), 7) if row.get("cost") is not None else "–",
        )
        for row in bad
    )
    note = (
        "<p>Tight ε is the least that holds of the matrix as it was returned, its rows divided by their sums, computed "
        "from its numbers as exact fractions: ∞ where a zero, or a negative number, stands beside a positive one. "
        f"An excess of {power(SLACK)} of ε is forgiven.</p>"
    )
    heads = ("Solver", "Problem", "Tight ε", "Cost as returned", "Cost once private")
    return section("Said optimal, is not private", note, table(heads, lines, "numbers"))


def _all(rows: Results) -> str:
    heads = ("Problem", "Solver", "Claimed", "As returned", "Rounded", "Cost", "Gap", "Seconds", "Peak MB")
    lines: Iterable[tuple[str, ...]] = (
        (
            f"{text(row['family'])}, n = {row['n']}" + (f", seed {row['seed']}" if row["seed"] else ""),
            text(contestant(row)),
            _said(row.get("claimed")),
            _said(row.get("certified")),
            _said(row.get("rounded")),
            short(float(row["cost"]), 7) if row.get("cost") is not None else "–",
            power(max(float(row["relative_gap"]), 0.0)) if row.get("relative_gap") is not None else "–",
            ("> " if row.get("censored") else "") + _seconds(seconds(row)),
            short(float(row["peak_mb"]), 4) if row.get("peak_mb") else "–",
        )
        for row in rows
    )
    return section("All runs", table(heads, lines, "numbers"))


def _method(about: Mapping[str, Any]) -> str:
    return section(
        "Method",
        "<p>Each run is a process of its own, begun before the clock: packages are loaded and kernels compiled on a "
        f"small problem first. Then it has {about['time_limit']:g} s and {about['memory']:g} GB for building, solving "
        f"and certifying, with {about['threads']} thread{'s' if about['threads'] != 1 else ''}. What passes a limit is "
        "ended and counts as censored.</p>",
        "<p>Solvers of linear programs get the program that <code>mechdesign bench --export-mps</code> writes: a row "
        "for each bound that no others imply. Through CVXPY its own compilation counts. All are asked for a tolerance "
        "of 10⁻⁷ where they can be asked; OR-Tools' GLOP and SCIP run as they come. The block method takes all pairs "
        "as they are. <em>auto</em> is <code>mechdesign.synthesis._design.design</code>, from the problem to the certificate.</p>",
        "<p>What a solver claims, what its numbers are as returned, and what rounding makes of them are three columns. "
        f"As returned, {power(SLACK)} is forgiven in ε, floors, signs and row sums.</p>",
    )


def _machine() -> str:
    found = environment()
    packages = ", ".join(f"{name} {version}" for name, version in found["packages"].items())
    lines = (
        ("Processor", text(f"{found['processor']}, {found['cores']} cores, {found['memory_gb']} GB")),
        ("Python", text(f"{found['python']} on {found['system']}")),
        ("Packages", text(packages)),
    )
    return section("Where it was written", table((), lines))


def _said(verdict: object) -> str:
    name = str(verdict or "–")
    return f"<strong>{text(name)}</strong>" if name in (Verdict.NOT_PRIVATE, Verdict.INFEASIBLE) else text(name)


def _seconds(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}" if value < 10 else f"{value:.1f}"
