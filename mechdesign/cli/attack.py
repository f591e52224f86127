"""``mechdesign attack``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from mechdesign.base._arrays import Floats
from mechdesign.base._deadline import Deadline
from mechdesign.base._errors import TimeLimitError
from mechdesign.cli._console import progress, say_private_folders
from mechdesign.cli._found import FILE, Found, Shown, command
from mechdesign.cli._places import read_weights
from mechdesign.measures import attack as games
from mechdesign.measures.attack import Attack
from mechdesign.model._problem import attack_measure
from mechdesign.model._words import short
from mechdesign.solve._contract import Options
from mechdesign.synthesis._folders import require_design
from mechdesign.synthesis._result import Design

_LIMIT_S = 60.0
_ATTACKS = {
    "optimal": ("optimal", "the prior; takes the best guess", "expected error"),
    "bayes": ("Bayes", "the prior; draws from the posterior", "nothing"),
    "prior_free": ("prior-free", "no prior; all secrets count alike", "sum of errors"),
    "minimax": ("min-max", "no prior; guards the worst secret", "largest error of a secret"),
    "pairwise_minimax": ("pairwise min-max", "no prior; guards the worst pair", "largest Pr(guess)·error"),
}
_BY_PROGRAM = ("minimax", "pairwise_minimax")


@command
@click.argument("folder", metavar="DIR", type=FILE)
@click.option(
    "--prior", metavar="FILE.csv", type=FILE,
    help="The attacker's prior, if it differs from the true prior: the columns label and weight, or weight alone in "
    "the order of the secrets.",
)  # fmt: skip
@click.option("--pairwise", is_flag=True, help="Also run the pairwise min-max attack: minutes for over 50 secrets.")
def attack(folder: Path, prior: Path | None, pairwise: bool) -> Found:
    """Show by how much attackers who know the channel in DIR, and see one answer, miss the secret.

    Errors are in the measure of the first distortion requirement, or else the Euclidean distance, or, without places,
    the probability of a wrong guess. Expected errors are under the prior of the design; no attack has a smaller one
    than the optimal attack. A min-max attack is left out if it takes over 60 s.

    Example: mechdesign attack city
    """
    require_design(folder)
    design = Design.load(folder)
    say_private_folders([(str(folder), design.problem, design.origin)], "this attack")
    belief = design.problem.prior if prior is None else read_weights(prior, design.channel.secrets)
    measured, rows = attack_measure(design.problem), []
    names = [name for name in _ATTACKS if name != "pairwise_minimax" or pairwise]
    with progress() as live:
        for place, name in enumerate(names):
            title, knows, minimised = _ATTACKS[name]
            deadline = Deadline(_LIMIT_S, live).part(stage=f"{place + 1} of {len(names)}: {title} attack")
            deadline.tell("preparing")
            made = _attack(name, design, belief, measured.matrix, deadline)
            if made is None:
                why = f"– (not found in {_LIMIT_S:g} s)" if name in _BY_PROGRAM else "– (not for these guesses)"
                expected, value = Shown(None, why), None
            else:
                error = float(design.problem.prior @ made.per_secret)
                expected = Shown(error, measured.with_root(error, partial(short, digits=4)))
                value = Shown(float(made.distortion), short(float(made.distortion), 4))
            rows.append({
                "attack": title,
                "knows": knows,
                "expected_error": expected,
                "minimises": minimised,
                "value": value,
            })  # fmt: skip
    said = f"All attackers know the channel. Errors are in {measured.name or 'the unit of the first floor'}."
    if pairwise:
        said += (
            " The pairwise attack minimises one probability times an error, which is not comparable with an expected "
            "error, and may be smaller."
        )
    return Found(said, {"unit": measured.unit or None, "attacks": rows})


def _attack(name: str, design: Design, belief: Floats, error: Floats, deadline: Deadline) -> Attack | None:
    """Return the attack with a given name, or None if it was not found in time or does not apply."""
    function: Callable[..., Attack] = getattr(games, name)
    channel = design.channel.matrix
    if name in _BY_PROGRAM:
        try:
            return function(channel, None, error, options=Options(deadline=deadline))
        except TimeLimitError:
            return None
    if name == "bayes" and error.shape[0] != error.shape[1]:
        return None
    return function(channel, belief, error, truth=design.problem.prior)
