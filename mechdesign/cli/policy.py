"""``mechdesign policy``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mechdesign.certify._exact import exact_text
from mechdesign.cli._arguments import example_option, read_specification
from mechdesign.cli._console import progress, say_note
from mechdesign.cli._found import FILE, Found, Shown, command
from mechdesign.model._words import short
from mechdesign.synthesis._folders import check_folder

if TYPE_CHECKING:
    from mechdesign.graphs._hull import SensitivityHull
    from mechdesign.graphs._overview import Overview, PlaceOverview
    from mechdesign.model._domain import Domain


_SIZES = {1: "length", 2: "area"}
_HULLS = {"component": "the hull of each component", "graph": "the hull of the whole graph"}
_MOST_NAMES = 12


@command
@click.argument("specification", metavar="[SPEC.toml]", required=False, type=FILE)
@example_option("policy")
@click.option(
    "-o", "--output", "directory", metavar="DIR", type=FILE,
    help="Write policy.json, policy-edges.csv (the repaired graph, for edges_csv) and policy.svg into a new folder.",
)  # fmt: skip
def policy(specification: Path | None, example: str | None, directory: Path | None) -> Found:
    """Show which secrets a policy graph exposes, the noise it needs, and edges that would repair it.

    The graph is the union of all [[privacy]] tables of kind "graph". The [policy] table gives the possible secrets, the
    hull for the noise, and the method of repair. In JSON secrets are counted from 0.

    Example: mechdesign policy --example districts -o graph
    """
    if directory is not None:
        check_folder(directory, (), "a new policy graph")
    given = read_specification(specification, example, "policy")
    problem, asked = given.problem(), given.policy
    assert problem.secrets is not None
    for note in given.notes:
        say_note(note)
    # Imported late, so that wrong input is rejected immediately.
    from mechdesign.report._statements import STEPS, tells_steps

    if tells_steps(given.origin):
        say_note(STEPS)
    with progress(f"hulls of {asked.graph.number_of_edges()} edges"):
        found = given.overview()
    facts = {"title": given.title, "epsilon": exact_text(asked.epsilon), **found.to_json()}
    files: dict[str, object] = {} if directory is None else {"files": _write(directory, problem.secrets, found, facts)}
    said = f"{given.title or 'Policy graph'}: {_count(problem.secrets, found)}."
    if found.isolated.size:
        said += " An optimal channel reveals secrets without an edge; [policy] isolated decides what a design does."
    return Found(said, facts | _shown(problem.secrets, found, facts) | files)


def _write(directory: Path, domain: Domain, found: Overview, facts: dict[str, Any]) -> tuple[str, ...]:
    """Write the files of a policy graph, and return their names."""
    from mechdesign.report._graph_figures import EDGES, FACTS, PICTURE, can_draw, overview_figure, write_overview

    drawn = overview_figure(domain, found) if can_draw(domain) else None
    write_overview(directory, domain, found, facts, drawn)
    return tuple(str(directory / name) for name in (FACTS, EDGES, *([] if drawn is None else [PICTURE])))


def _count(domain: Domain, found: Overview) -> str:
    nodes, edges = found.graph.number_of_nodes(), found.graph.number_of_edges()
    counted = f"{nodes} secrets" if nodes == domain.size else f"{nodes} of {domain.size} secrets possible"
    return f"{counted}, {edges} edge{'s' * (edges != 1)}"


def _shown(domain: Domain, found: Overview, facts: dict[str, Any]) -> dict[str, object]:
    """Return the facts with their texts for tables."""
    sizes = sorted((len(component) for component in found.components), reverse=True)
    shown: dict[str, object] = {
        "components": Shown(facts["components"], f"{len(sizes)}, of {_list_names(map(str, sizes))} secrets")
    }
    for name in ("excluded", "isolated", "disconnected"):
        shown[name] = Shown(facts[name], _name_secrets(domain, facts[name]))
    return shown if found.geometry is None else shown | _shown_geometry(domain, found.geometry, facts)


def _shown_geometry(domain: Domain, shape: PlaceOverview, facts: dict[str, Any]) -> dict[str, object]:
    degrees = list(shape.degrees.values())
    average = f"{min(degrees)} to {max(degrees)}, {sum(degrees) / len(degrees):.3g} on average"
    shown: dict[str, object] = {
        "hull": Shown(facts["hull"], _describe_hull(shape.body, domain.unit)),
        "degree_of_protection": Shown(facts["degree_of_protection"], f"{average} ({_HULLS[shape.judged]})"),
        "exposed": {
            name: Shown(facts["exposed"][name], _name_secrets(domain, members.tolist()))
            for name, members in shape.exposed.items()
        },
    }
    if (made := shape.repair) is not None:
        edges = _list_names(f"{domain.labels[i]} – {domain.labels[j]}" for i, j in made.added)
        written = facts["repair"]
        shown["repair"] = written | {
            "added": Shown(written["added"], f"{len(made.added)} edge{'s' * (len(made.added) != 1)}: {edges}"),
            "hull_before": Shown(written["hull_before"], _describe_hull(made.hull_before, domain.unit)),
            "hull_after": Shown(written["hull_after"], _describe_hull(made.hull_after, domain.unit)),
            "order": Shown(written["order"], f"{len(written['order'])} secrets"),
            "edges": Shown(written["edges"], f"{len(written['edges'])} edges"),
        }
    elif shape.exposed[shape.judged].size and len(shape.degrees) == 1:
        shown["repair"] = Shown(None, "not repairable: only one secret is possible")
    return shown


def _describe_hull(body: SensitivityHull, unit: str) -> str:
    if body.dimension == 0:
        return "the origin alone: no noise"
    power = {1: "", 2: "²", 3: "³"}.get(body.dimension, f"^{body.dimension}")
    size = f"{_SIZES.get(body.dimension, 'volume')} {short(body.volume, 4)}" + (f" {unit}{power}" if unit else "")
    return f"dimension {body.dimension}, {len(body.vertices)} vertices, {size}"


def _name_secrets(domain: Domain, members: Iterable[int]) -> str:
    names = [domain.labels[member] for member in members]
    return f"{len(names)}: {_list_names(names)}" if names else "none"


def _list_names(names: Iterable[str]) -> str:
    every = list(names)
    more = len(every) - _MOST_NAMES
    return ", ".join(every[:_MOST_NAMES]) + (f", … {more} more" if more > 0 else "")
