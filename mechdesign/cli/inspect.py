"""``mechdesign inspect``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from mechdesign.certify._revealed import revealed
from mechdesign.cli.console import Text
from mechdesign.cli.console import certificate_tables
from mechdesign.cli.console import output
from mechdesign.cli.console import say_json
from mechdesign.cli.console import show_next
from mechdesign.cli.console import table
from mechdesign.cli.specified import memory_option
from mechdesign.cli.specified import show_values_option
from mechdesign.cli.table_release import ANSWERS
from mechdesign.cli.table_release import show_release
from mechdesign.data._maps import read_outline
from mechdesign.base._errors import InputError
from mechdesign.synthesis._folders import check_output
from mechdesign.synthesis._folders import require_design
from mechdesign.model._channel import Channel
from mechdesign.model._disclosure import listed
from mechdesign.model._problem import STANDS_IN
from mechdesign.model._problem import Problem
from mechdesign.base._files import write_output
from mechdesign.model._words import claimants
from mechdesign.model._words import requirement_name
from mechdesign.model._words import percent
from mechdesign.model._words import short
from mechdesign.report._private import private
from mechdesign.report._design_page import bounded_pairs
from mechdesign.report._design_page import left_free
from mechdesign.model._words import cost_measure
from mechdesign.synthesis._result import Design

__all__ = ["inspect"]

_MOST = 5


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--report", "page", metavar="FILE.html", type=click.Path(path_type=Path),
    help="Write the report again, for example with an outline.",
)  # fmt: skip
@click.option(
    "--outline", "outline", metavar="FILE.geojson", type=click.Path(path_type=Path),
    help="Draw the lines and borders in a GeoJSON file on the maps of the report.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print what is shown as JSON.")
@memory_option
@show_values_option
def inspect(directory: Path, page: Path | None, outline: Path | None, as_json: bool) -> None:
    """Show what is in DIR, a folder that `mechdesign design` wrote: secrets, prior, answers, certificate, files.

    Of a folder that `mechdesign blowfish` wrote: what was released from a table, what it protects, what it spent, and
    whether a version before this one made it with too little noise.

    Nothing is proved here: that is what `mechdesign verify` is for.
    """
    if outline is not None and page is None:
        raise InputError("--outline", "is given without --report", value=str(outline), bound="a page to draw it on")
    if page is None and (directory / ANSWERS).is_file():
        show_release(directory, as_json)
        return
    require_design(directory)
    if page is not None:
        check_output(page)
    design = Design.load(directory)
    problem, channel, certificate, origin = design.problem, design.channel, design.certificate, design.origin
    facts = _facts(problem, channel)
    if origin is not None and origin.prior == STANDS_IN:
        facts["prior"] = STANDS_IN
    if said := private(problem, origin):
        facts["private"] = "; ".join(said)
    files = {each.name: each.stat().st_size for each in sorted(directory.iterdir()) if each.is_file()}
    if page is not None:
        from mechdesign.report._design_page import html

        lines = None if outline is None else read_outline(outline)
        write_output(page, [html(problem, channel, certificate, origin, lines).encode()])
    if as_json:
        found: dict[str, Any] = {"title": problem.title, **facts, "files": files, "certificate": certificate.to_json()}
        say_json(found)
        return
    console = output()
    console.print(Text(problem.title or "Privacy mechanism", "bold"))
    shown = table("", "")
    shown.show_header = False
    for name, fact in facts.items():
        shown.add_row(name, Text(fact))
    shown.add_row("files", Text(", ".join(f"{name} ({_size(size)})" for name, size in files.items())))
    console.print(shown)
    console.print()
    names = [requirement_name(problem, requirement) for requirement in claimants(problem)]
    for each in certificate_tables(certificate, names, cost_measure(problem), bounded=bounded_pairs(problem)):
        console.print(each)
        console.print()
    for name, value in sorted(certificate.provenance.items()):
        if value:
            console.print(f"{name.replace('seconds', 'time').replace('_', ' ')}: {_fact(name, value)}", soft_wrap=True)
    show_next({
        **({str(page): "the report: open it in a browser"} if page is not None else {}),
        f"mechdesign verify {directory}": "prove it, from the files alone",
        f"mechdesign compare {directory} OTHER": "beside another design",
    })  # fmt: skip


def _facts(problem: Problem, channel: Channel) -> dict[str, str]:
    prior, domain = problem.prior, problem.secrets
    n, m = channel.numerators.shape
    likely = np.argsort(-prior, kind="stable")[:_MOST].tolist()
    named = [f"{domain.labels[index] if domain is not None else index} ({percent(prior[index])})" for index in likely]
    rows = channel.matrix
    spread = np.exp(-(rows * np.log(rows, out=np.zeros_like(rows), where=rows > 0)).sum(axis=1))
    possible = int((prior > 0).sum())
    return {
        "secrets": str(domain) if domain is not None else str(n),
        "observables": "the secrets" if problem.observables is domain and domain is not None else str(m),
        "prior": f"{possible} of {n} secrets can occur; most likely {', '.join(named)}",
        "answers": f"spread over {short(float(spread.min()), 3)} to {short(float(spread.max()), 3)} observables",
        "revealed for certain": listed(found, n, domain) if (found := revealed(channel.numerators)) else "no secret",
        "never given": f"{int((channel.numerators == 0).sum())} of {n * m} pairs of a secret and an answer",
        **({"left free": "; ".join(free)} if (free := left_free(problem)) else {}),
    }


def _fact(name: str, value: str | int | float) -> str:
    if name == "memory_estimate" and not isinstance(value, str):
        return _size(round(value))
    if name.endswith("seconds") and not isinstance(value, str):
        return f"{short(value)} s"
    return short(value) if isinstance(value, float) else str(value)


def _size(count: int) -> str:
    if count >= 1e9:
        return f"{count / 1e9:.1f} GB"
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{max(1, round(count / 1e3))} kB"
