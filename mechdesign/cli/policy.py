"""``mechdesign policy``."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mechdesign.base._deadline import Progress
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact_text
from mechdesign.cli._arguments import example_option, read_specification
from mechdesign.cli._console import Text, number, output, progress, say_note, show_next, table
from mechdesign.cli._correlations import check_figure
from mechdesign.synthesis._folders import check_writable

if TYPE_CHECKING:
    from mechdesign.graphs._geometry._hull import SensitivityHull
    from mechdesign.graphs._overview import Overview, PlaceOverview
    from mechdesign.model._domain import Domain
    from mechdesign.specification._policy import SpecifiedPolicy


_FILE = click.Path(path_type=Path)
_SIZES = {1: "length", 2: "area"}
_HULLS = {"component": "the hull of each component", "graph": "the hull of the whole graph"}
_MOST_NAMES = 12


@click.command()
@click.argument("specification", metavar="[SPEC.toml]", required=False, type=_FILE)
@example_option("policy")
@click.option(
    "-o", "--output", "directory", metavar="DIR", type=_FILE,
    help="Write policy.json, policy-edges.csv (the repaired graph, for edges_csv) and policy.svg into a folder.",
)  # fmt: skip
@click.option("--plot", metavar="FILE", type=_FILE, help="Write the figure: .png, .svg or .pdf.")
@click.option("--repair/--no-repair", default=True, help="Whether to look for edges that protect exposed secrets.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def policy(
    specification: Path | None,
    example: str | None,
    directory: Path | None,
    plot: Path | None,
    repair: bool,
    as_json: bool,
) -> None:
    """Describe a policy graph: its exposed secrets, the required noise, and edges that would repair it.

    The graph is the union of all [[privacy]] tables of kind "graph". The [policy] table gives the possible secrets, the
    hull for the noise, and the method of repair. In JSON secrets are counted from 0.
    """
    check_figure(plot)
    for folder in filter(None, (directory, plot and plot.parent)):
        check_writable(folder)
    given = read_specification(specification, example, "policy")
    problem, asked = given.problem(), given.policy
    assert problem.secrets is not None
    for note in given.notes:
        say_note(note)
    # Imported late, so that wrong input is rejected immediately.
    from mechdesign.report._graph_figures import EDGES, FACTS, PICTURE, can_draw, picture, write_overview
    from mechdesign.report._private import STEPS, tells_steps
    from mechdesign.report._style import save_figure

    if tells_steps(given.origin):
        say_note(STEPS)
    drawable = can_draw(problem.secrets)
    if plot is not None and not drawable:
        raise InputError(
            "--plot",
            "cannot be drawn",
            value=f"places of {problem.secrets.points.shape[1]} coordinates",
            bound="for secrets along a line or in the plane",
            remedy="leave it out",
        )
    asked_for = plot is not None or directory is not None
    started = time.perf_counter()
    with progress() as live:
        live(Progress(f"hulls of {asked.graph.number_of_edges()} edges", 0.0))
        found = given.overview(repair)
        if asked_for:
            live(Progress("drawing", time.perf_counter() - started))
        drawn = picture(problem.secrets, found) if drawable and asked_for else None
    facts = {"title": given.title, "epsilon": exact_text(asked.epsilon), **found.to_json()}
    if plot is not None and drawn is not None:
        save_figure(drawn, plot)
    if directory is not None:
        write_overview(directory, problem.secrets, found, facts, drawn)
    if as_json:
        click.echo(json.dumps(facts, indent=2))
        return
    _show(given.title, problem.secrets, asked, found)
    _show_files(directory, (FACTS, EDGES) if drawn is None else (FACTS, EDGES, PICTURE), example)


def _show_files(directory: Path | None, names: Iterable[str], example: str | None) -> None:
    """Show the written files, and for an example the possible next steps."""
    if directory is not None:
        output().print(f"\nfiles     {directory}: {', '.join(names)}", soft_wrap=True)
    if example is not None:
        show_next({
            f"mechdesign policy --example {example} --plot graph.png": "a figure of the graph",
            f"mechdesign design --example {example}": "design the least-cost channel under this graph",
            f"mechdesign examples {example} > "
"my.toml": "a specification of your own: change it, then `mechdesign policy my.toml`",
        })  # fmt: skip


def _show(title: str, domain: Domain, asked: SpecifiedPolicy, found: Overview) -> None:
    console = output()
    console.print(Text(title or "Policy graph", "bold"))
    nodes, edges = found.graph.number_of_nodes(), found.graph.number_of_edges()
    counted = f"{nodes} secrets" if nodes == domain.size else f"{nodes} of {domain.size} secrets possible"
    console.print(f"{counted}, {edges} edge{'s' * (edges != 1)}, ε = {exact_text(asked.epsilon)} per edge\n")
    shown = table("policy graph", "")
    sizes = sorted((len(component) for component in found.components), reverse=True)
    shown.add_row("connected components", f"{len(sizes)}, of {_list_names(map(str, sizes))} secrets")
    rows = [
        ("not possible", found.excluded.tolist()),
        ("without an edge", found.isolated.tolist()),
        ("without a possible neighbour", found.disconnected.tolist()),
    ]
    for name, members in rows:
        if members:
            shown.add_row(name, _name_secrets(domain, members))
    if found.geometry is not None:
        _add_geometry(shown.add_row, domain, found.geometry)
    console.print(shown)
    if found.isolated.size:
        console.print(
            "\nAn optimal channel reveals secrets without an edge; [policy] isolated determines their treatment by "
            "`mechdesign design`.",
            soft_wrap=True,
        )


def _add_geometry(add: Any, domain: Domain, shape: PlaceOverview) -> None:
    add("sensitivity hull of the graph", _describe_hull(shape.body, domain.unit))
    for name, members in shape.exposed.items():
        text = _name_secrets(domain, members.tolist()) if members.size else "none"
        add(f"exposed by {_HULLS[name]}", Text(text, "yellow" if members.size else ""))
    degrees = list(shape.degrees.values())
    add(
        "degree of protection",
        f"{min(degrees)} to {max(degrees)}, {sum(degrees) / len(degrees):.3g} on average ({_HULLS[shape.judged]})",
    )
    if shape.repair is not None:
        made = shape.repair
        edges = _list_names(f"{domain.labels[i]} – {domain.labels[j]}" for i, j in made.added)
        add(f"repaired ({made.method})", f"{len(made.added)} edge{'s' * (len(made.added) != 1)}: {edges}")
        add("hull of the repaired graph", _describe_hull(made.hull_after, domain.unit))
    elif shape.exposed[shape.judged].size and len(shape.degrees) == 1:
        add("repaired", "not repairable: only one secret is possible")


def _describe_hull(body: SensitivityHull, unit: str) -> str:
    if body.dimension == 0:
        return "the origin alone: no noise"
    power = {1: "", 2: "²", 3: "³"}.get(body.dimension, f"^{body.dimension}")
    size = f"{_SIZES.get(body.dimension, 'volume')} {number(body.volume)}" + (f" {unit}{power}" if unit else "")
    return f"dimension {body.dimension}, {len(body.vertices)} vertices, {size}"


def _name_secrets(domain: Domain, members: Iterable[int]) -> str:
    names = [domain.labels[member] for member in members]
    return f"{len(names)}: {_list_names(names)}"


def _list_names(names: Iterable[str]) -> str:
    every = list(names)
    more = len(every) - _MOST_NAMES
    return ", ".join(every[:_MOST_NAMES]) + (f", … {more} more" if more > 0 else "")
