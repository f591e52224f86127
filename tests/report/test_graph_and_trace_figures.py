"""Figures of policy graphs and of traces show what they are given, at its places."""

from __future__ import annotations

import io

import numpy as np
import pytest
from cli_examples import leave_pictures_blank
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from report_examples import certificate, channel, page_of

import mechdesign as md
from mechdesign import graphs
from mechdesign.errors import InputError
from mechdesign.graphs._builders import components
from mechdesign.model._domain import Domain
from mechdesign.model._problem import Problem
from mechdesign.model._requirements._graph import GraphPrivacy
from mechdesign.model._requirements._metric import MetricPrivacy
from mechdesign.report._graph_figures import GraphMarks, can_draw, draw_graph, draw_hull
from mechdesign.report._leakage_page import draw_series
from mechdesign.report._style import page_svg
from mechdesign.report._trace_page import draw_trace

GRID = Domain.grid(4, 3, 4.0, 3.0)
LINE = Domain.from_points(np.arange(5.0)[:, None])
SQUARE = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])


def drawn(domain, edges, marks=None):
    axes = Figure().subplots()
    draw_graph(axes, domain, edges, marks)
    return axes


def lines(axes):
    """Return the ends of the edges drawn, as sets of places, by the name in the key."""
    return {
        collection.get_label(): [(tuple(path.vertices[0]), tuple(path.vertices[-1])) for path in collection.get_paths()]
        for collection in axes.collections
        if isinstance(collection, LineCollection) and not collection.get_label().startswith("_")
    }


def marked(axes):
    return {c.get_label(): c.get_offsets() for c in axes.collections if len(c.get_offsets()) and c.get_label()}


def test_edges_are_drawn_between_their_places():
    edges = sorted(graphs.blocks(GRID, 2).edges)
    places = [tuple(sorted(map(tuple, GRID.points[list(edge)]))) for edge in edges]
    shown = [tuple(sorted(ends)) for ends in lines(drawn(GRID, edges))["edge"]]
    assert sorted(shown) == sorted(places)
    # A graph of networkx is drawn alike.
    figure = md.figures.graph(GRID, graphs.blocks(GRID, 2))
    assert [tuple(sorted(ends)) for ends in lines(figure.axes[0])["edge"]] == shown
    axes = Figure().subplots()
    assert md.figures.graph(GRID, edges, axes=axes) is axes.get_figure()


def test_marks_stand_at_their_secrets():
    axes = drawn(GRID, [[1, 2], [5, 6]], GraphMarks(excluded=[3, 7], alone=[0, 11], exposed=[11], added=[(11, 6)]))
    found = marked(axes)
    assert found["not possible"].tolist() == GRID.points[[3, 7]].tolist()
    # An exposed secret is not marked twice.
    assert found["no edge, but protected by the hull"].tolist() == GRID.points[[0]].tolist()
    assert found["exposed: neither an edge nor the hull protects it"].tolist() == GRID.points[[11]].tolist()
    assert lines(axes)["edge that would protect exposed secrets"] == [(tuple(GRID.points[11]), tuple(GRID.points[6]))]


def test_hulls_are_drawn_to_scale():
    axes = Figure().subplots()
    draw_hull(axes, SQUARE, np.array([[3.0, 0], [0, 1], [-3, 0], [0, -1]]), "km")
    assert axes.get_aspect() == 1
    corners = [{tuple(corner) for corner in patch.get_xy().tolist()} for patch in axes.patches]
    assert {tuple(corner) for corner in SQUARE.tolist()} in corners
    assert {(3.0, 0.0), (0.0, 1.0), (-3.0, 0.0), (0.0, -1.0)} in corners
    assert axes.get_xlim()[1] > 3
    assert axes.get_xlabel() == "difference (km)"


def test_arcs_above_a_line():
    axes = drawn(LINE, [[0, 1], [1, 3]], GraphMarks(alone=[2, 4]))
    ends = lines(axes)["edge"]
    assert np.allclose(ends[0], [(1, 0), (0, 0)])
    assert np.allclose(ends[1], [(3, 0), (1, 0)])
    assert axes.get_xlabel() == "position"
    # A segment is no closed curve, whose way back would be drawn over its way there.
    hull = graphs.sensitivity_hull(LINE, graphs.from_edges(5, [[0, 1], [1, 3]])).vertices
    beside = Figure().subplots()
    draw_hull(beside, hull, 2 * hull, "")
    assert all(len(patch.get_path().vertices) == 2 for patch in beside.patches if patch.get_edgecolor()[3] > 0)


@pytest.mark.slow
def test_many_edges_are_drawn_as_pixels():
    domain = Domain.grid(20, 15, 20.0, 15.0)
    graph, content = graphs.blocks(domain, 5), io.BytesIO()
    md.figures.graph(domain, list(graph.edges)).savefig(content, format="svg")
    assert graph.number_of_edges() == 3600
    assert len(content.getvalue()) < 400_000


def test_places_anywhere_and_in_degrees():
    points = Domain.from_points([[0, 0], [3, 1], [1, 2]], unit="m")
    assert drawn(points, [[0, 2]]).get_xlabel() == "x (m)"
    box = Domain.geographic_grid(4, 3, 40.5, 41, -74.3, -73.6)
    assert any("°N" in label.get_text() for label in drawn(box, [[0, 2]]).get_yticklabels())
    assert not lines(drawn(Domain.from_points([[1.0, 1.0]]), []))


def test_pictures_need_places():
    for domain in (Domain.from_labels(["a", "b"]), Domain.from_points(np.eye(3))):
        assert not can_draw(domain)
        with pytest.raises(InputError, match="cannot be drawn as a map"):
            drawn(domain, [[0, 1]])
    assert can_draw(LINE)
    assert not can_draw(None)


def test_pictures_are_the_same_every_time():
    first, second = (page_svg(md.figures.graph(GRID, [[0, 1], [4, 9]]), "graph") for _ in range(2))
    assert first == second


# --- in the report ---------------------------------------------------------------------------------------------------


def page(domain, graph, cost=None, more=()):
    n = graph.number_of_nodes()
    problem = Problem(
        np.full(n, 1 / n), 1.0 - np.eye(n) if cost is None else cost, [GraphPrivacy(1, graph), *more], secrets=domain
    )
    made = channel(np.where(np.isfinite(problem.cost), 1.0, 0.0))
    return page_of(problem, made, certificate(problem, made))


def test_a_report_shows_the_policy_graph_where_there_are_places(monkeypatch):
    leave_pictures_blank(monkeypatch)
    for domain, graph, drawn in (
        (GRID, graphs.blocks(GRID, 2), True),
        (Domain.from_labels(["a", "b", "c"]), graphs.complete(3), False),
        (None, graphs.complete(3), False),
    ):
        text = page(domain, graph)
        assert "<h2>Policy graph</h2>" in text
        assert ('<figure id="graph">' in text) == drawn
        assert "forbidden, and are never given" not in text
        assert "secrets have no edge" not in text


def test_a_report_says_what_forbidden_answers_tell(monkeypatch):
    leave_pictures_blank(monkeypatch)
    graph = graphs.from_edges(12, [[0, 1], [2, 3]])
    cost = np.full((12, 12), np.inf)
    for nodes in components(graph):
        cost[np.ix_(nodes, nodes)] = 1
    text = page(GRID, graph, cost)
    assert "Answers of infinite cost are forbidden, and are never given" in text
    assert "8 of 12 secrets have no edge" in text
    # Other requirements tie them together.
    assert "secrets have no edge" not in page(GRID, graph, more=[MetricPrivacy(1, 1 - np.eye(12))])


# --- traces ----------------------------------------------------------------------------------------------------------


def walked(domain, states, truth=None, places=None):
    axes = Figure().subplots()
    draw_trace(axes, domain, states, truth, places)
    return axes


def test_a_trace_on_a_map():
    states = np.array([0, 1, 1, 6])
    axes = walked(GRID, states)
    (released,) = (c for c in axes.collections if len(c.get_offsets()) == 4)
    # The later a step, the darker.
    assert np.diff(released.get_facecolors()[:, 3]).min() > 0
    # Moved a little, but never out of the cell.
    assert np.abs(released.get_offsets() - GRID.points[states]).max() < 0.5
    assert len(np.unique(released.get_offsets(), axis=0)) == 4
    for truth, shown in ((None, False), ([4, 5], True)):
        keys = [text.get_text() for text in md.figures.trace(GRID, [0, 1], truth).legends[0].get_texts()]
        assert any(text.startswith("true") for text in keys) == shown


def test_places_beyond_the_map_are_shown():
    axes = walked(GRID, None, None, np.array([[-3.0, 1.0], [9.0, 2.5]]))
    # With some room about them.
    (west, east), (south, north) = axes.get_xlim(), axes.get_ylim()
    assert (west, east, south, north) == pytest.approx((-3.48, 9.48, 0.0, 3.0))


def test_traces_without_a_map():
    for domain in (LINE, Domain.from_labels([f"p{i}" for i in range(5)]), Domain.grid(5, 1, 5.0, 1.0)):
        assert walked(domain, np.array([0, 4, 2]), np.array([1, 1, 1])).get_xlabel() == "step"
        with pytest.raises(InputError, match="is empty"):
            md.figures.trace(domain, [])


def test_the_ruler_ends_where_the_map_does():
    city = Domain.geographic_grid(5, 4, south=40.0, north=40.1, west=116.0, east=116.1)
    axes = walked(city, np.array([0, 7]))
    (bar,) = (line for line in axes.lines if list(line.get_ydata()) == [1.02, 1.02])
    assert bar.get_xdata()[1] == pytest.approx(axes.get_xlim()[1])


def test_steps_are_counted_in_round_numbers():
    axes = walked(LINE, np.array([2]))
    west, east = axes.get_xlim()
    assert [tick for tick in axes.get_xticks() if west <= tick <= east] == [0]


def test_series_over_time():
    axes = Figure().subplots()
    draw_series(axes, {"one": [0.0, np.inf, 2.0], "other": [1, 1, 1]}, "step", "error")
    assert axes.get_ylim() == (0, pytest.approx(2.16))
    assert [line.get_label() for line in axes.lines] == ["one", "other"]
    assert np.isnan(axes.lines[0].get_ydata()[1])
