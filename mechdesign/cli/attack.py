"""``mechdesign attack``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import click

from mechdesign.base._arrays import Floats
from mechdesign.base._deadline import Deadline, ProgressCallback
from mechdesign.base._errors import InputError, TimeLimitError
from mechdesign.cli._console import number, output, progress, say_private_folders, table
from mechdesign.cli._places import read_weights
from mechdesign.measures import attack as games
from mechdesign.measures.attack import Attack
from mechdesign.model._problem import Problem
from mechdesign.model._problem_words import attack_measure
from mechdesign.solve._contract import Options
from mechdesign.synthesis._folders import require_design
from mechdesign.synthesis._result import Design

_ATTACKS = {
    "optimal": ("optimal", "the prior; takes the best guess", "expected error"),
    "bayes": ("Bayes", "the prior; draws from the posterior", "nothing"),
    "prior_free": ("prior-free", "no prior; all secrets count alike", "sum of errors"),
    "minimax": ("min-max", "no prior; guards the worst secret", "largest error of a secret"),
    "pairwise_minimax": ("pairwise min-max", "no prior; guards the worst pair", "largest Pr(guess)·error"),
}
_BY_PROGRAM = ("minimax", "pairwise_minimax")
_SLOW, _OPTION = "pairwise_minimax", "pairwise"
_PAIRS = (
    "\nThe pairwise attack minimises one probability times an error, not a sum over guesses. Its value is not "
    "comparable with the error of the optimal attack, and may be smaller."
)


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--prior", "prior_file", metavar="FILE.csv", type=click.Path(path_type=Path),
    help="The attacker's prior, if it differs from the true prior: the columns label and weight, or weight alone in "
    "the order of the secrets.",
)  # fmt: skip
@click.option(
    "--time-limit", metavar="SECONDS", type=float, default=60.0, show_default=True, help="Time limit for each attack."
)
@click.option(
    f"--{_OPTION}",
    is_flag=True,
    help="Also run the pairwise min-max attack, which takes minutes for more than 50 secrets.",
)
@click.option("--all", "every", is_flag=True, help="Also show the value that each attack minimises.")
@click.option("--json", "as_json", is_flag=True, help="Print the errors as JSON.")
def attack(
    folder: Path,
    prior_file: Path | None,
    time_limit: float,
    pairwise: bool,
    every: bool,
    as_json: bool,
) -> None:
    """Attack the channel in DIR in several ways, and show the error of each attack.

    All attackers know the channel. Errors use the measure of the first distortion requirement, or else the Euclidean
    distance, or, without places, the probability of a wrong guess. Expected errors are under the prior of the design.
    Under this prior, no attack has a smaller expected error than the optimal attack. Some attacks minimise another
    value: the pairwise min-max attack looks at one pair and one guess at a time. The value of this pairwise attack is
    often smaller than any expected error.
    """
    if not 0 < time_limit < float("inf"):
        raise InputError("--time-limit", "must be positive", value=time_limit, bound="> 0 and finite")
    require_design(folder)
    design = Design.load(folder)
    problem, channel = design.problem, design.channel
    say_private_folders([(str(folder), problem, design.origin)], "this attack")
    belief = problem.prior if prior_file is None else read_weights(prior_file, channel.secrets)
    measured = attack_measure(problem)
    found: dict[str, Attack | None] = {}
    with progress() as live:
        for name in _ATTACKS:
            if name != _SLOW or pairwise:
                found[name] = _attack(name, problem, channel.matrix, belief, measured.matrix, time_limit, live)
    expected = {name: None if made is None else float(problem.prior @ made.per_secret) for name, made in found.items()}
    if as_json:
        errors = {name: None if made is None else float(made.distortion) for name, made in found.items()}
        shown = {"measure": measured.name, "unit": measured.unit, "errors": errors, "expected_errors": expected}
        click.echo(json.dumps(shown, indent=2))
        return
    columns = ("attack", "knows", "expected error", *(("minimises", "which is") if every or pairwise else ()))
    rows = table(*columns, numbers=("expected error",))
    for name, made in found.items():
        title, attacker, kind = _ATTACKS[name]
        if made is None:
            why = f"not found in {time_limit:g} s" if name in _BY_PROGRAM else "not for these guesses"
            rows.add_row(*(title, attacker, f"– ({why})", kind, "")[: len(columns)])
            continue
        average = measured.with_root(expected[name] or 0.0, number)
        reached = measured.with_root(float(made.distortion), number) if name in _BY_PROGRAM else ""
        rows.add_row(*(title, attacker, average, kind, reached)[: len(columns)])
    console = output()
    console.print(
        f"All know the channel. Errors in {measured.name or 'the unit of the first distortion requirement'}:\n",
        soft_wrap=True,
    )
    console.print(rows)
    console.print(
        _PAIRS if pairwise else f"\nThe pairwise min-max attack, which may take minutes, runs with --{_OPTION}.",
        soft_wrap=True,
    )


def _attack(
    name: str,
    problem: Problem,
    channel: Floats,
    belief: Floats,
    error: Floats,
    time_limit: float,
    live: ProgressCallback | None,
) -> Attack | None:
    """Return the attack with a given name, or None if it was not found in time or does not apply."""
    function: Callable[..., Attack] = getattr(games, name)
    if name in _BY_PROGRAM:
        try:
            return function(channel, None, error, options=Options(deadline=Deadline(time_limit, live)))
        except TimeLimitError:
            return None
    if name == "bayes" and error.shape[0] != error.shape[1]:
        return None
    return function(channel, belief, error, truth=problem.prior)
