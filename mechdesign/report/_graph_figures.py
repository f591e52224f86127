"""Figures of policy graphs, and the files of a graph's overview."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon, Rectangle
from matplotlib.ticker import FuncFormatter
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._atomic import write_file
from mechdesign.base._errors import InputError
from mechdesign.certify._texts import csv_text
from mechdesign.graphs._builders import edge_array
from mechdesign.model._domain import Domain
from mechdesign.model._words import short
from mechdesign.report import _maps as maps
from mechdesign.report._maps import borders, extent, frame, in_unit, round_ticks
from mechdesign.report._style import (
    ACCENT,
    INK,
    MUTED,
    NARROW_WIDTH,
    RULE,
    abreast,
    headline,
    in_report_style,
    new_figure,
)

if TYPE_CHECKING:
    from mechdesign.graphs._overview import Overview


_EXPOSED, _ADDED = "#D55E00", "#009E73"
_MAP_WIDTH, _MAP_HEIGHT, _HULL_SIDE = 5.6, 4.6, 2.5


@dataclass(frozen=True, eq=False)
class GraphMarks:
    """Markings of a policy graph's figure; secrets are given by their indices.

    Attributes:
        excluded: Secrets that are not possible.
        alone: Secrets without an edge.
        exposed: Secrets that neither an edge nor the hull protects.
        added: Edges that would protect the exposed secrets.
        hull: Vertices of the sensitivity hull, in order, shape (k, d).
        hull_after: Vertices of the hull with the added edges, in order, shape (k, d).
    """

    excluded: Sequence[int] = ()
    alone: Sequence[int] = ()
    exposed: Sequence[int] = ()
    added: Sequence[tuple[int, int]] = ()
    hull: ArrayLike | None = None
    hull_after: ArrayLike | None = None


def can_draw(domain: Domain | None) -> bool:
    """Return whether a domain has places along a line or in the plane."""
    return domain is not None and domain.points.shape[1] in (1, 2)


@in_report_style
def policy_picture(domain: Domain, edges: ArrayLike, shown: GraphMarks | None = None) -> Figure:
    """Show a policy graph on a map, with its sensitivity hull, if given, next to it.

    `edges` (k, 2) are pairs of secrets. Raises `InputError` if the domain has no places, or places with more than two
    coordinates.
    """
    if not can_draw(domain):
        raise InputError(
            "domain",
            "cannot be drawn as a map",
            value=f"{domain.points.shape[1]} coordinates",
            bound="places along a line or in the plane",
        )
    marks = shown or GraphMarks()
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    flat = _flat(domain)
    width, height = maps.panel_size(domain, _MAP_WIDTH, _MAP_HEIGHT) if flat else (_MAP_WIDTH, 2.4)
    hull = _corners(marks.hull)
    beside = len(hull) > 0 or len(_corners(marks.hull_after)) > 0
    if abreast(2) == 2:
        figure = new_figure(max(width + 0.9 + (_HULL_SIDE + 0.6) * beside, 5.0), max(height, _HULL_SIDE * beside) + 1.3)
    else:
        height *= min(1.0, NARROW_WIDTH / (width + 0.9))
        figure = new_figure(NARROW_WIDTH, height + 1.2 + (_HULL_SIDE + 0.7) * beside)
    if beside:
        left, right = (
            figure.subplots(1, 2, width_ratios=[width, _HULL_SIDE])
            if abreast(2) == 2
            else figure.subplots(2, 1, height_ratios=[height, _HULL_SIDE])
        )
        _draw_hull(right, hull, _corners(marks.hull_after), domain)
    else:
        left = figure.subplots()
    places = domain.points if flat else np.column_stack((domain.points[:, 0], np.zeros(domain.size)))
    _draw_edges(left, places, pairs, flat)
    _draw_nodes(left, domain, places, marks, flat)
    if flat:
        west, east, south, north = extent(domain)
        left.set_xlim(west, east)
        left.set_ylim(south, north)
        frame(left, domain, ticks=True)
    else:
        _frame_line(left, domain)
    _key(figure, left, len(pairs))
    headline(figure, _finding(domain.size, len(pairs), marks))
    return figure


def _flat(domain: Domain) -> bool:
    return maps.kind(domain) in ("grid", "points")


def _corners(vertices: ArrayLike | None) -> Floats:
    """Return the corners of a hull in the plane, shape (k, 2); a hull along a line lies on the x-axis."""
    found = np.zeros((0, 2)) if vertices is None else np.asarray(vertices, dtype=np.float64)
    if found.ndim != 2 or found.shape[1] not in (1, 2):
        raise InputError("hull", "is not flat", value=found.shape, bound="vertices of shape (k, 1) or (k, 2)")
    return found if found.shape[1] == 2 else np.column_stack((found[:, 0], np.zeros(len(found))))


def _draw_edges(axes: Axes, places: Floats, pairs: Integers, flat: bool) -> None:
    # Many edges are drawn thin and as pixels, since thousands of SVG lines make a large file.
    count = max(len(pairs), 1)
    if len(pairs):
        lines = LineCollection(
            list(_lines(places, pairs, flat)),
            color=ACCENT,
            linewidth=float(np.clip(40 / count**0.5, 0.4, 1.6)),
            alpha=float(np.clip(30 / count**0.5, 0.25, 0.9)),
            label="edge: must not be distinguished",
            rasterized=len(pairs) > 1500,
            zorder=2,
        )
        axes.add_collection(lines)


def _lines(places: Floats, pairs: Integers, flat: bool) -> Floats:
    """Return a line for each pair, shape (k, points, 2): a segment in the plane, or an arc above a line."""
    ends = places[pairs]
    if flat:
        return ends
    turn = np.linspace(0, np.pi, 25)
    middle, half = ends[..., 0].mean(axis=1)[:, None], (np.abs(np.diff(ends[..., 0], axis=1)) / 2)
    return np.stack((middle + half * np.cos(turn), half * np.sin(turn)), axis=-1)


def _draw_nodes(axes: Axes, domain: Domain, places: Floats, marks: GraphMarks, flat: bool) -> None:
    n = domain.size
    excluded = np.zeros(n, dtype=np.bool_)
    excluded[list(marks.excluded)] = True
    if flat and domain.cells is not None:
        columns, rows = borders(domain.cells)
        if excluded.any():
            _shade(axes, domain, np.flatnonzero(excluded), columns, rows)
        axes.vlines(columns, rows[0], rows[-1], color=RULE, linewidth=0.5, zorder=1)
        axes.hlines(rows, columns[0], columns[-1], color=RULE, linewidth=0.5, zorder=1)
    size = float(np.clip(2500 / n, 2, 30))
    kept = places[~excluded]
    axes.scatter(kept[:, 0], kept[:, 1], s=size, color=INK, linewidth=0, zorder=4, rasterized=n > 2000)
    if excluded.any():
        gone = places[excluded]
        axes.scatter(
            gone[:, 0], gone[:, 1], s=size, marker="x", color=MUTED, linewidth=0.8, zorder=4, label="not possible"
        )
    exposed = set(marks.exposed)
    alone = [node for node in marks.alone if node not in exposed]
    ring = float(np.clip(9000 / n, 26, 130))
    for nodes, colour, name in (
        (alone, INK, "no edge, but protected by the hull"),
        (sorted(exposed), _EXPOSED, "exposed: neither an edge nor the hull protects it"),
    ):
        if nodes:
            x, y = places[nodes].T
            axes.scatter(
                x, y, s=ring, facecolor="none", edgecolor=colour, linewidth=1.3, zorder=5, label=name, clip_on=False
            )
    if marks.added:
        added = np.asarray(marks.added, dtype=np.int64).reshape(-1, 2)
        axes.add_collection(
            LineCollection(
                list(_lines(places, added, flat)),
                color=_ADDED,
                linewidth=1.6,
                linestyle=(0, (3, 1.6)),
                zorder=3,
                label="edge that would protect exposed secrets",
            )
        )


def _shade(axes: Axes, domain: Domain, cells: Integers, columns: Floats, rows: Floats) -> None:
    assert domain.cells is not None
    row, column = np.divmod(cells, domain.cells.columns)
    patches = [
        Rectangle((columns[c], rows[r]), columns[c + 1] - columns[c], rows[r + 1] - rows[r])
        for r, c in zip(row.tolist(), column.tolist(), strict=True)
    ]
    axes.add_collection(PatchCollection(patches, facecolor=RULE, edgecolor="none", alpha=0.45, zorder=0))


def _frame_line(axes: Axes, domain: Domain) -> None:
    positions = domain.points[:, 0]
    margin = 0.04 * (float(np.ptp(positions)) or 2.0)
    axes.set_xlim(positions.min() - margin, positions.max() + margin)
    axes.set_ylim(bottom=-margin)
    axes.autoscale_view(scalex=False)
    axes.set_ylim(bottom=-margin)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(f"position{in_unit(domain.unit)}")
    axes.xaxis.set_major_locator(round_ticks(6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value, 4)))


def _draw_hull(axes: Axes, hull: Floats, after: Floats, domain: Domain) -> None:
    """Draw the sensitivity hull around the origin to scale, and the hull of the repaired graph as a dashed line."""
    outlines: tuple[tuple[Floats, dict[str, Any]], ...] = (
        (after, {"edgecolor": _ADDED, "linestyle": (0, (3, 1.6)), "zorder": 3}),
        (hull, {"edgecolor": ACCENT, "zorder": 2}),
    )
    for corners, style in outlines:
        if len(corners):
            # A hull with two corners is a segment, which is drawn only once: on the way back, dashes would fill the
            # gaps.
            axes.add_patch(Polygon(corners, closed=len(corners) > 2, facecolor="none", linewidth=1.4, **style))
    if len(hull):
        axes.add_patch(Polygon(hull, facecolor=ACCENT, edgecolor="none", alpha=0.18, zorder=1))
    axes.plot(0, 0, "+", color=INK, markersize=6, zorder=4)
    reach = 1.12 * float(np.abs(np.concatenate((hull, after))).max()) or 1.0
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)
    axes.set_aspect("equal")
    axes.set_title("hull of the whole graph" + ("\n(dashed: repaired)" if len(after) else ""), loc="left")
    axes.set_xlabel(f"difference{in_unit(domain.unit)}")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(round_ticks(4))
        axis.set_major_formatter(FuncFormatter(lambda value, _: short(value, 3)))
    axes.tick_params(length=3)
    axes.grid(True)
    if domain.points.shape[1] == 1:
        axes.spines["left"].set_visible(False)
        axes.set_yticks([])


def _key(figure: Figure, axes: Axes, edges: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    # A line as faint as the edges would hardly be visible in the legend.
    keys = [
        Line2D([], [], color=ACCENT, linewidth=1.4) if label.startswith("edge:") else handle
        for handle, label in zip(handles, labels, strict=True)
    ]
    if keys:
        columns = abreast(2 if figure.get_figwidth() < 7 else 3)
        figure.legend(keys, labels, loc="outside lower left", fontsize=8.5, ncols=columns, handlelength=1.8)


def _finding(n: int, edges: int, marks: GraphMarks) -> str:
    possible = n - len(marks.excluded)
    if marks.exposed:
        count = len(marks.exposed)
        verb, them = ("is", "it") if count == 1 else ("are", "them")
        text = f"{count} of {possible} secrets {verb} exposed: neither an edge nor the hull protects {them}"
        added = len(marks.added)
        return text + (f"; {added} edge{'s' * (added > 1)} would protect {them}" if added else "")
    if not edges:
        return "The policy graph has no edges: it requires no privacy"
    return f"{edges} edge{'s' * (edges > 1)} between {possible} secrets, none of them exposed"


FACTS, EDGES, PICTURE = "policy.json", "policy-edges.csv", "policy.svg"


def picture(domain: Domain, found: Overview) -> Figure:
    """Return the figure of a policy graph on the map of its secrets."""
    shape = found.geometry
    assert shape is not None
    repaired = shape.repair
    shown = GraphMarks(
        excluded=found.excluded.tolist(),
        alone=found.isolated.tolist(),
        exposed=shape.exposed[shape.judged].tolist(),
        added=() if repaired is None else repaired.added,
        hull=shape.body.vertices,
        hull_after=None if repaired is None else repaired.hull_after.vertices,
    )
    return policy_picture(domain, edge_array(found.graph), shown)


def write_overview(folder: Path, domain: Domain, found: Overview, facts: dict[str, Any], drawn: Figure | None) -> None:
    """Write the facts, the edges of the repaired graph and the figure, if any, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    graph = found.graph
    if found.geometry is not None and found.geometry.repair is not None:
        graph = found.geometry.repair.graph
    rows = [["source", "target", "added"]]
    for i, j in sorted(sorted(edge) for edge in graph.edges):
        rows.append([domain.labels[i], domain.labels[j], "no" if found.graph.has_edge(i, j) else "yes"])
    write_file(folder / EDGES, [csv_text(rows).encode()])
    if drawn is not None:
        from mechdesign.report._style import save_figure

        save_figure(drawn, folder / PICTURE)
    write_file(folder / FACTS, [json.dumps(facts, indent=2).encode()])
