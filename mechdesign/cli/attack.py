"""``mechdesign attack``."""

from __future__ import annotations

import json
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from mechdesign.attacks import attack as games
from mechdesign.cli.console import number, output, progress, table
from mechdesign.data.text import read_numbers
from mechdesign.errors import InputError, TimeLimitError
from mechdesign.export import sets
from mechdesign.model.prior import Prior
from mechdesign.model.problem import Problem
from mechdesign.report.words import attack_measure
from mechdesign.solvers import Options, ProgressCallback

__all__ = ["attack"]

_ATTACKS = {
    "optimal": ("optimal", "knows the prior; best single guess for each observable", "expected error"),
    "bayes": ("Bayes", "knows the prior; guess drawn from the posterior", "expected error"),
    "prior_free": ("prior-free", "knows no prior; best guess if all secrets were alike", "expected error"),
    "minimax": ("min-max", "guards against the worst secret", "largest error over secrets"),
    "pairwise_minimax": ("pairwise min-max", "guards against the worst pair", "largest error over pairs"),
}
_BY_PROGRAM = ("minimax", "pairwise_minimax")


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--prior", "prior_file", metavar="FILE.csv", type=click.Path(path_type=Path),
    help="What the attacker believes, if not the truth: weights, a line for each secret, below a header.",
)  # fmt: skip
@click.option("--column", default="probability", show_default=True, help="Column of FILE.csv with the weights.")
@click.option("--time-limit", metavar="SECONDS", type=float, default=60.0, show_default=True, help="For each attack.")
@click.option("--json", "as_json", is_flag=True, help="Print the errors as JSON.")
def attack(directory: Path, prior_file: Path | None, column: str, time_limit: float, as_json: bool) -> None:
    """Attack the channel in DIR, five ways, and show how far off each attacker is.

    Errors are measured as the first distortion requirement says; without one, by Euclidean distance; without places, as
    the probability of a wrong guess. Attacks that use a prior are judged by the prior that the channel was made for.
    """
    if not 0 < time_limit < float("inf"):
        raise InputError("--time-limit", "is not positive", value=time_limit, bound="> 0 and finite")
    problem, channel, _ = sets.load(directory)
    belief = _belief(prior_file, column, problem)
    measured = attack_measure(problem)
    found: dict[str, float | None] = {}
    with progress() as live:
        for name in _ATTACKS:
            found[name] = _error(name, problem, channel.matrix, belief, measured.matrix, time_limit, live)
    if as_json:
        click.echo(json.dumps({"measure": measured.name, "unit": measured.unit, "errors": found}, indent=2))
        return
    shown = table("attack", "the attacker", "error", "which is", numbers=("error",))
    for name, (title, attacker, kind) in _ATTACKS.items():
        error = found[name]
        text = f"not found in {time_limit:g} s" if error is None else measured.with_unit(number(error))
        shown.add_row(title, attacker, text, kind)
    console = output()
    console.print(f"Errors in {measured.name or 'the unit of the first distortion requirement'}:\n")
    console.print(shown)


def _belief(path: Path | None, column: str, problem: Problem) -> NDArray[np.float64]:
    if path is None:
        return problem.prior
    weights = read_numbers(path, column)
    if len(weights) != len(problem.prior):
        raise InputError(str(path), "has another number of lines", value=len(weights), bound=f"{len(problem.prior)}")
    return Prior.from_counts(weights).probabilities


def _error(
    name: str,
    problem: Problem,
    channel: NDArray[np.float64],
    belief: NDArray[np.float64],
    error: NDArray[np.float64],
    time_limit: float,
    live: ProgressCallback | None,
) -> float | None:
    """Return the attack's figure of merit, or None when it was not found in time or does not apply."""
    function = getattr(games, name)
    if name in _BY_PROGRAM:
        try:
            found = function(channel, None, error, options=Options(time_limit=time_limit, progress=live))
        except TimeLimitError:
            return None
    elif name == "bayes" and error.shape[0] != error.shape[1]:
        return None
    else:
        found = function(channel, belief, error, truth=problem.prior)
    return float(found.distortion)
