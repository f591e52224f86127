"""``mechdesign budget``."""

from __future__ import annotations

from pathlib import Path

import click

from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact, exact_text
from mechdesign.cli._arguments import naming_options
from mechdesign.cli._console import progress, say_note
from mechdesign.cli._correlations import correlation_files, correlation_options, losses
from mechdesign.cli._found import FILE, Found, Shown, command
from mechdesign.data.matrices import Declared, write_budgets
from mechdesign.model._words import at_least
from mechdesign.synthesis._folders import check_output

_UNCORRELATED = (
    "neither --chain nor --backward nor --forward is given: the budgets hold for an adversary who assumes that "
    "successive data are independent"
)


@command
@click.option("--alpha", metavar="α", type=float, required=True, help="Largest leakage of each release, in nats.")
@click.option("--steps", metavar="T", type=int, help="Number of releases; default: no end, all with the same ε.")
@correlation_options
@click.option(
    "-o", "--output", "target", metavar="FILE", type=FILE,
    help="Write the budgets as CSV, for `leakage --budgets`.",
)  # fmt: skip
def budget(
    alpha: float,
    steps: int | None,
    chain: Path | None,
    backward: Path | None,
    forward: Path | None,
    header: Declared,
    index: Declared,
    target: Path | None,
) -> Found:
    """Find budgets under which no release ever leaks more than α, given the correlation of successive data.

    The ε of a release must bound every pair of states, and not be per unit of a distance.

    All releases have the same ε (Algorithm 7 of Cao et al. 2019). With --steps, the first and the last release have
    larger budgets than the others (Algorithm 8). A missing matrix is one that the adversary does not know. Releases are
    counted from 0.

    Example: mechdesign budget --alpha 1 --steps 30 --backward B.csv -o b.csv
    """
    files = correlation_files(chain, backward, forward)
    if not any(files.values()):
        say_note(_UNCORRELATED)
    if steps is None and target is not None:
        raise click.UsageError("give --steps to write budgets")
    check_output(target)
    # Imported late, so that wrong usage is rejected immediately.
    from mechdesign.leakage._budgets import allocate_budget, constant_budget

    with progress("computing losses"), naming_options({"(alpha|steps)": r"--\1"}):
        before, after = losses(files, header, index)
        if steps is None:
            constant = constant_budget(alpha, before, after)
            found: object = Shown(constant, f"{at_least(constant)}, for any number of releases")
        else:
            budgets = allocate_budget(alpha, steps, before, after).tolist()
            found = _name_releases(budgets)
    if steps is None and not constant:
        remedy = "spend α/T at each of T releases, which together leak at most α"
        raise InputError("--alpha", "leaves no budget for releases without an end", value=alpha, remedy=remedy)
    if target is not None:
        write_budgets(target, budgets)
    limit = exact_text(exact(alpha))
    said = f"With these budgets no release leaks more than α = {limit}, if ε bounds every pair of states."
    if steps is not None and 0 in budgets:
        said += " Releases with ε = 0 must not take place: nothing is left for them."
    return Found(said, {"alpha": alpha, "constant" if steps is None else "budgets": found})


def _name_releases(budgets: list[float]) -> list[dict[str, object]]:
    """Return each distinct budget with its releases; all releases between the first and last have the same budget."""
    last = len(budgets) - 1
    places = {0: "0", last: str(last)}
    if last >= 2:
        places[1] = "1" if last == 2 else f"1 to {last - 1}, each"
    return [
        {"releases": places[step], "epsilon": Shown(budgets[step], at_least(budgets[step]))} for step in sorted(places)
    ]
