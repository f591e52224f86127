"""``mechdesign leakage``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from mechdesign.base._arrays import Floats
from mechdesign.base._check import as_integer
from mechdesign.base._errors import BudgetWarning
from mechdesign.base._files import write_output
from mechdesign.base._warnings import warn
from mechdesign.certify._exact import as_decimal, float_up
from mechdesign.certify._texts import csv_text
from mechdesign.cli._arguments import example_for, example_option, naming_options
from mechdesign.cli._console import progress
from mechdesign.cli._correlations import correlation_files, correlation_options, losses
from mechdesign.cli._found import FILE, Found, Shown, command
from mechdesign.data.matrices import Declared, read_budgets
from mechdesign.model._words import at_most
from mechdesign.specification.examples import on_disk
from mechdesign.synthesis._folders import check_output

if TYPE_CHECKING:
    from mechdesign.leakage._loss import LossFunction


# ε per release and number of releases for `--example`, if the caller gives none.
_EXAMPLE_EPSILON, _EXAMPLE_STEPS = 0.1, 10


@command
@click.argument("specification", metavar="[SPEC.toml]", type=FILE, required=False)
@correlation_options
@example_option("leakage")
@click.option("--epsilon", metavar="ε", type=float, help="Budget of every release, in nats.")
@click.option("--steps", metavar="T", type=int, help="Number of releases.")
@click.option(
    "--budgets", "budget_file", metavar="FILE", type=FILE,
    help="File of budgets written by `mechdesign budget`, instead of --epsilon.",
)  # fmt: skip
@click.option("--window", "width", metavar="W", type=int, help="Also show the leakage of any W releases.")
@click.option(
    "-o", "--output", "target", metavar="NAME.csv", type=FILE,
    help="Write the table as CSV, with every digit, and a page with its figure, NAME.html.",
)  # fmt: skip
def leakage(
    specification: Path | None,
    chain: Path | None,
    backward: Path | None,
    forward: Path | None,
    header: Declared,
    index: Declared,
    example: str | None,
    epsilon: float | None,
    steps: int | None,
    budget_file: Path | None,
    width: int | None,
    target: Path | None,
) -> Found:
    """Show the leakage of repeated releases of correlated data, in nats.

    --epsilon must bound every pair of states, and not be per unit of a distance. With SPEC.toml each release meets its
    requirements, such as an ε per km, instead. Shown are the largest bounds of neighbours, per unit of distance, and of
    all pairs, after 1, 2, 5, … releases and after any number. Ctrl-C keeps those that are found.

    A matrix is a CSV of numbers, a .npy file or a sparse .npz file of SciPy, with a row for each current state. A row
    of zeros may be any row. A missing matrix is one that the adversary does not know. Releases are counted from 0.

    Example: mechdesign leakage city.toml --chain chain --steps 13
    """
    files = correlation_files(chain, backward, forward)
    if specification is not None and (example, epsilon, budget_file, width) != (None, None, None, None):
        raise click.UsageError(
            "SPEC.toml states what a release reveals: no --epsilon, --budgets, --window or --example"
        )
    if (example is None) != any(files.values()):
        raise click.UsageError("give a matrix: --chain, --backward or --forward; or --example NAME instead")
    if specification is not None and steps is None:
        raise click.UsageError("give --steps, the number of releases")
    if example is not None and budget_file is None:
        epsilon = _EXAMPLE_EPSILON if epsilon is None else epsilon
        steps = _EXAMPLE_STEPS if steps is None else steps
    budgets = np.zeros(0) if specification is not None else _budgets(epsilon, steps, budget_file)
    page = _page_beside(target)
    if specification is not None and steps is not None:
        from mechdesign.cli._pairs import leakage_of_pairs

        return leakage_of_pairs(specification, chain, files, (header, index), steps, (target, page))
    # Imported late, so that wrong usage is rejected immediately.
    from mechdesign.report._verdicts import judge_leakage

    with progress("computing losses"), naming_options({"width": "--window", r"epsilons\[.*": "--epsilon"}):
        if example is not None:
            header = index = True
        with nullcontext() if example is None else on_disk(example_for(example, "leakage").file) as matrix:
            before, after = losses(files if matrix is None else files | {"backward": matrix}, header, index)
        columns = _columns(budgets, before, after)
        facts = _facts(budgets, columns["temporal"], width, before, after)
    rows = list(zip(*(values.tolist() for values in columns.values()), strict=True))
    if target is not None:
        lines = ([step, *row] for step, row in enumerate(rows))
        write_output(target, [csv_text([["step", *columns], *lines]).encode()])
    if page is not None:
        from mechdesign.report._leakage_page import html

        write_output(page, [html(columns, facts, before, after).encode()])
    releases = [
        {"release": step} | {name: Shown(value, at_most(value)) for name, value in zip(columns, row, strict=True)}
        for step, row in enumerate(rows)
    ]
    said = str(judge_leakage(facts["largest_of_one_release"]))
    shown = {
        name: Shown(value, at_most(value) if math.isfinite(value) else "no bound") for name, value in facts.items()
    }
    following = [] if example is None else _next(example)
    return Found(said, shown | {"file": target, "page": page, "releases": releases, "next": following})


def _page_beside(target: Path | None) -> Path | None:
    """Return the file of the page, or None for a device or pipe; raise if the table or the page cannot be written."""
    page = target.with_suffix(".html") if target is not None and target.suffix == ".csv" else None
    for file in (target, page):
        check_output(file)
    if target is not None and page is None and not target.exists():
        raise click.UsageError(f"-o {target}: the table is a .csv file, and its page the .html file beside it")
    return page


def _columns(budgets: Floats, before: LossFunction | None, after: LossFunction | None) -> dict[str, Floats]:
    """Return the budgets and the leakages of each release by name; warn if they cannot stay bounded."""
    from mechdesign.leakage import _recursion as recursion
    from mechdesign.leakage._budgets import describe_identity

    if reason := describe_identity([before], [after]):
        warn(reason, BudgetWarning)
    return {
        "epsilon": budgets,
        "backward": recursion.backward(budgets, before),
        "forward": recursion.forward(budgets, after),
        "temporal": recursion.temporal(budgets, before, after),
    }


def _facts(
    budgets: Floats, leaked: Floats, width: int | None, before: LossFunction | None, after: LossFunction | None
) -> Mapping[str, float]:
    """Return the leakage of one release, of a window, of all releases, and of one release over an infinite horizon."""
    from mechdesign.leakage import _recursion as recursion

    facts = {"largest_of_one_release": float(leaked.max())}
    if width is not None:
        facts["largest_of_a_window"] = float(recursion.windows(budgets, width, before, after).max())
    facts["all_releases_together"] = float_up(sum(map(as_decimal, budgets.tolist()), Fraction(0)))
    if len(set(budgets.tolist())) == 1:
        facts["each_release_without_an_end"] = recursion.supremum(float(budgets[0]), before, after)
    return facts


def _next(example: str) -> list[str]:
    given = "--backward P.csv --header --index"
    return [
        f"mechdesign examples {example} > P.csv    # an example: replace it by your own matrix",
        f"mechdesign leakage {given} --epsilon 0.1 --steps 10    # the leakage of releases under this matrix",
        f"mechdesign budget --alpha 1 --steps 10 {given}    # the ε with which none leaks more than 1",
    ]


def _budgets(epsilon: float | None, steps: int | None, path: Path | None) -> Floats:
    if path is not None:
        if epsilon is not None or steps is not None:
            raise click.UsageError("give either --budgets, or --epsilon and --steps")
        return read_budgets(path)
    if epsilon is None or steps is None:
        raise click.UsageError("give either --budgets, or --epsilon and --steps")
    from mechdesign.leakage._series import LONGEST

    return np.full(as_integer(steps, "--steps", 1, LONGEST), epsilon)
