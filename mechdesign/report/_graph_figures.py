"""Figures of policy graphs, and the files of a graph's overview."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patches import Polygon
from numpy.typing import ArrayLike

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._atomic import write_file
from mechdesign.base._check import require_kind
from mechdesign.base._errors import InputError
from mechdesign.base._names import named
from mechdesign.certify._texts import csv_text
from mechdesign.graphs._builders import edge_array, from_edges
from mechdesign.model._domain import Domain
from mechdesign.model._graph_nodes import check_graph
from mechdesign.model._words import short
from mechdesign.report import _maps as maps
from mechdesign.report._style import (
    ACCENT,
    MUTED,
    SERIES,
    WIDTH,
    drawn,
    finish,
    ink,
    is_ours,
    new_figure,
    report_style,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mechdesign.graphs._overview import Overview


_EXPOSED, _ADDED = SERIES[1:3]
_HULL_SIDE = 2.4


@dataclass(frozen=True, eq=False)
class GraphMarks:
    """Markings of a policy graph's figure; secrets are given by their indices.

    Attributes:
        excluded: Secrets that are not possible.
        alone: Secrets without an edge.
        exposed: Secrets that neither an edge nor the hull protects.
        added: Edges that would protect the exposed secrets.
    """

    excluded: Sequence[int] = ()
    alone: Sequence[int] = ()
    exposed: Sequence[int] = ()
    added: Sequence[tuple[int, int]] = ()


@in_own_arithmetic
def graph(domain: Domain, edges: ArrayLike, axes: Axes | None = None) -> Figure:
    """Show a policy graph on a map, or as arcs above a line.

    Args:
        domain: The secrets, with places along a line or in the plane.
        edges: Pairs of indices of secrets, shape (k, 2), or a networkx graph of secrets.
        axes: Axes of another figure to draw on; by default those of a new figure.

    Returns:
        The figure.

    Raises:
        InputError: If the secrets have no places along a line or in the plane, or if an edge joins no two of them.

    Example:
        >>> import mechdesign as md
        >>> len(graph(md.Domain.grid(2, 1, 2.0, 1.0), [[0, 1]]).axes[0].collections)
        2
    """
    require_kind(domain, Domain, "domain", "a Domain")
    if isinstance(edges, nx.Graph):
        check_graph(edges, domain.size, "edges")
        pairs = list(edges.edges())
    else:
        pairs = list(from_edges(domain.size, named(edges, "edges")).edges())
    return drawn(axes, maps.height_of_figure(domain), draw_graph, domain, pairs)


def can_draw(domain: Domain | None) -> bool:
    """Return whether a domain has places along a line or in the plane."""
    return domain is not None and domain.points.shape[1] in (1, 2)


def draw_graph(axes: Axes, domain: Domain, edges: ArrayLike, marks: GraphMarks | None = None) -> None:
    """Draw a policy graph, whose `edges` (k, 2) are pairs of secrets, without a legend.

    Raises `InputError` if the domain has no places, or places with more than two coordinates.
    """
    if not can_draw(domain):
        value = f"{domain.points.shape[1]} coordinates"
        bound = "places along a line or in the plane"
        raise InputError("domain", "cannot be drawn as a map", value=value, bound=bound)
    marks, pairs = marks or GraphMarks(), np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    flat = maps.is_map(domain)
    places = domain.points if flat else np.column_stack((domain.points[:, 0], np.zeros(domain.size)))
    # Many edges are drawn thin and as pixels, since thousands of SVG lines make a large file.
    count, many = max(len(pairs), 1), len(pairs) > 1500
    width, shade = float(np.clip(40 / count**0.5, 0.4, 1.6)), float(np.clip(30 / count**0.5, 0.25, 0.9))
    lines(axes, places, pairs, flat, "edge", color=ACCENT, linewidth=width, alpha=shade, rasterized=many, zorder=2)
    added = np.asarray(marks.added, dtype=np.int64).reshape(-1, 2)
    style: dict[str, Any] = {"color": _ADDED, "linewidth": 1.6, "linestyle": (0, (3, 1.6))}
    lines(axes, places, added, flat, "edge that would protect exposed secrets", zorder=3, **style)
    _draw_nodes(axes, places, marks)
    if flat:
        west, east, south, north = maps.extent(domain)
        axes.set_xlim(west, east)
        axes.set_ylim(south, north)
        maps.frame(axes, domain)
    else:
        _frame_line(axes, domain)


def lines(axes: Axes, places: Floats, pairs: Integers, flat: bool, label: str, **style: Any) -> None:
    """Draw a line for each pair of places: a segment in the plane, or an arc above a line."""
    if not len(pairs):
        return
    ends = places[pairs]
    if not flat:
        turn = np.linspace(0, np.pi, 25)
        middle, half = ends[..., 0].mean(axis=1)[:, None], (np.abs(np.diff(ends[..., 0], axis=1)) / 2)
        ends = np.stack((middle + half * np.cos(turn), half * np.sin(turn)), axis=-1)
    axes.add_collection(LineCollection(list(ends), label=label, **style))


def _draw_nodes(axes: Axes, places: Floats, marks: GraphMarks) -> None:
    n = len(places)
    kept = np.setdiff1d(np.arange(n), marks.excluded)
    exposed = sorted(set(marks.exposed))
    alone = sorted({*marks.alone} - {*exposed})
    size, ring = float(np.clip(1500 / n, 2, 30)), float(np.clip(6000 / n, 26, 130))
    rings: dict[str, Any] = {"s": ring, "facecolor": "none", "linewidth": 1.3, "zorder": 5, "clip_on": False}
    for nodes, name, style in (
        (kept, "", {"s": size, "color": ink(axes), "linewidth": 0, "zorder": 4, "rasterized": n > 2000}),
        (marks.excluded, "not possible", {"s": size, "marker": "x", "color": MUTED, "linewidth": 0.8, "zorder": 4}),
        (alone, "no edge, but protected by the hull", {"edgecolor": ink(axes), **rings}),
        (exposed, "exposed: neither an edge nor the hull protects it", {"edgecolor": _EXPOSED, **rings}),
    ):
        if len(nodes):
            axes.scatter(*places[list(nodes)].T, label=name or None, **style)


def _frame_line(axes: Axes, domain: Domain) -> None:
    positions = domain.points[:, 0]
    margin = 0.04 * (float(np.ptp(positions)) or 2.0)
    axes.set_xlim(positions.min() - margin, positions.max() + margin)
    axes.autoscale_view(scalex=False)
    axes.set_ylim(bottom=-margin)
    axes.set_yticks([])
    if is_ours(axes):
        axes.spines["left"].set_visible(False)
    axes.set_xlabel(f"position{maps.in_unit(domain.unit)}")
    maps.number_axis(axes.xaxis, 6)


def draw_hull(axes: Axes, hull: ArrayLike, after: ArrayLike | None, unit: str) -> None:
    """Draw a sensitivity hull (k, d) around the origin to scale, and that of the repaired graph as a dashed line."""
    corners, dashed = _corners(hull), np.zeros((0, 2)) if after is None else _corners(after)
    outline: dict[str, Any] = {"facecolor": "none", "linewidth": 1.4}
    for shape, style in (
        (dashed, {"edgecolor": _ADDED, "linestyle": (0, (3, 1.6)), "zorder": 3, **outline}),
        (corners, {"edgecolor": ACCENT, "zorder": 2, **outline}),
        (corners, {"facecolor": ACCENT, "edgecolor": "none", "alpha": 0.18, "zorder": 1}),
    ):
        if len(shape):
            # Two corners are a segment, which is drawn only once: on the way back, dashes would fill the gaps.
            axes.add_patch(Polygon(shape, closed=len(shape) > 2, **style))
    axes.plot(0, 0, "+", color=ink(axes), markersize=6, zorder=4)
    reach = 1.12 * float(np.abs(np.concatenate((corners, dashed))).max()) or 1.0
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)
    axes.set_aspect("equal")
    axes.set_title("sensitivity hull" + (" (dashed: repaired)" if len(dashed) else ""))
    axes.set_xlabel(f"difference{maps.in_unit(unit)}")
    for axis in (axes.xaxis, axes.yaxis):
        maps.number_axis(axis, 4, lambda value: short(value, 3))
    axes.grid(True)


def _corners(vertices: ArrayLike) -> Floats:
    """Return the corners of a hull in the plane, shape (k, 2); a hull along a line, (k, 1), lies on the x-axis."""
    found = np.asarray(vertices, dtype=np.float64)
    return found if found.shape[1] == 2 else np.column_stack((found[:, 0], np.zeros(len(found))))


FACTS, EDGES, PICTURE = "policy.json", "policy-edges.csv", "policy.svg"


@report_style()
def overview_figure(domain: Domain, found: Overview) -> Figure:
    """Return the figure of a policy graph on the map of its secrets, beside its hull."""
    shape = found.geometry
    assert shape is not None
    repaired = shape.repair
    excluded, alone, exposed = (each.tolist() for each in (found.excluded, found.isolated, shape.exposed[shape.judged]))
    marks = GraphMarks(excluded, alone, exposed, () if repaired is None else repaired.added)
    figure = new_figure(WIDTH + _HULL_SIDE + 0.6, max(maps.height_of_figure(domain), _HULL_SIDE) + 0.9)
    left, right = figure.subplots(1, 2, width_ratios=[WIDTH, _HULL_SIDE])
    draw_graph(left, domain, edge_array(found.graph), marks)
    draw_hull(right, shape.body.vertices, None if repaired is None else repaired.hull_after.vertices, domain.unit)
    finish(figure)
    return figure


def write_overview(folder: Path, domain: Domain, found: Overview, facts: dict[str, Any], figure: Figure | None) -> None:
    """Write the facts, the edges of the repaired graph and the figure, if any, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    graph = found.graph
    if found.geometry is not None and found.geometry.repair is not None:
        graph = found.geometry.repair.graph
    rows = [["source", "target", "added"]]
    for i, j in sorted(sorted(edge) for edge in graph.edges):
        rows.append([domain.labels[i], domain.labels[j], "no" if found.graph.has_edge(i, j) else "yes"])
    write_file(folder / EDGES, [csv_text(rows).encode()])
    if figure is not None:
        save_figure(figure, folder / PICTURE)
    write_file(folder / FACTS, [json.dumps(facts, indent=2).encode()])
