from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.figure import Figure
from report_examples import certificate, channel, leave_pictures_blank

from mechdesign import graphs
from mechdesign.errors import InputError
from mechdesign.model._domain import Domain
from mechdesign.model._problem import Problem
from mechdesign.model._requirements._graph import GraphPrivacy
from mechdesign.model._requirements._metric import MetricPrivacy
from mechdesign.report._design_page import html
from mechdesign.report._graph_figures import GraphMarks, can_draw, policy_picture
from mechdesign.report._svg import inline_svg
from mechdesign.report._trace_figures import over_time_picture, trace_picture

GRID = Domain.grid(4, 3, 4.0, 3.0)
LINE = Domain.from_points(np.arange(5.0)[:, None])
SQUARE = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])


def lines(figure):
    """Return the ends of the edges drawn, as sets of places, by the name in the key."""
    found = {}
    for collection in figure.axes[0].collections:
        if isinstance(collection, LineCollection) and not collection.get_label().startswith("_"):
            found[collection.get_label()] = [
                (tuple(path.vertices[0]), tuple(path.vertices[-1])) for path in collection.get_paths()
            ]
    return found


def marked(figure):
    return {
        c.get_label(): c.get_offsets() for c in figure.axes[0].collections if len(c.get_offsets()) and c.get_label()
    }


def key(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_edges_are_drawn_between_their_places():
    edges = sorted(graphs.blocks(GRID, 2).edges)
    figure = policy_picture(GRID, edges)
    assert isinstance(figure, Figure)
    places = [tuple(sorted(map(tuple, GRID.points[list(edge)]))) for edge in edges]
    drawn = [tuple(sorted(ends)) for ends in lines(figure)["edge: must not be distinguished"]]
    assert sorted(drawn) == sorted(places)
    assert figure.get_suptitle() == f"{len(edges)} edges between 12 secrets, none of them exposed"
    assert len(figure.axes) == 1


def test_marks_stand_at_their_secrets():
    shown = GraphMarks(
        excluded=[3, 7], alone=[0, 11], exposed=[11], added=[(11, 6)], hull=SQUARE, hull_after=2 * SQUARE
    )
    figure = policy_picture(GRID, [[1, 2], [5, 6]], shown)
    found = marked(figure)
    assert found["not possible"].tolist() == GRID.points[[3, 7]].tolist()
    # An exposed secret is not marked twice.
    assert found["no edge, but protected by the hull"].tolist() == GRID.points[[0]].tolist()
    assert found["exposed: neither an edge nor the hull protects it"].tolist() == GRID.points[[11]].tolist()
    assert lines(figure)["edge that would protect exposed secrets"] == [(tuple(GRID.points[11]), tuple(GRID.points[6]))]
    (shade,) = (c for c in figure.axes[0].collections if isinstance(c, PatchCollection))
    assert len(shade.get_paths()) == 2
    assert (
        figure.get_suptitle()
        == "1 of 10 secrets is exposed: neither an edge nor the hull protects it; 1 edge would protect it"
    )
    assert set(key(figure)) == {
        "edge: must not be distinguished",
        "edge that would protect exposed secrets",
        "no edge, but protected by the hull",
        "exposed: neither an edge nor the hull protects it",
        "not possible",
    }


def test_hulls_are_drawn_to_scale():
    figure = policy_picture(
        GRID, [[0, 1]], GraphMarks(hull=SQUARE, hull_after=np.array([[3.0, 0], [0, 1], [-3, 0], [0, -1]]))
    )
    axes = figure.axes[1]
    assert axes.get_aspect() == 1
    corners = [{tuple(corner) for corner in patch.get_xy().tolist()} for patch in axes.patches]
    assert {tuple(corner) for corner in SQUARE.tolist()} in corners
    assert {(3.0, 0.0), (0.0, 1.0), (-3.0, 0.0), (0.0, -1.0)} in corners
    assert axes.get_xlim()[1] > 3
    assert axes.get_xlabel() == "difference (km)"
    assert "dashed: repaired" in axes.get_title(loc="left")


def test_arcs_above_a_line():
    hull = graphs.sensitivity_hull(LINE, graphs.from_edges(5, [[0, 1], [1, 3]]))
    figure = policy_picture(LINE, [[0, 1], [1, 3]], GraphMarks(alone=[2, 4], exposed=[], hull=hull.vertices))
    ends = lines(figure)["edge: must not be distinguished"]
    assert np.allclose(ends[0], [(1, 0), (0, 0)])
    assert np.allclose(ends[1], [(3, 0), (1, 0)])
    assert figure.axes[0].get_xlabel() == "position"
    # A segment is no closed curve, whose way back would be drawn over its way there.
    after = policy_picture(LINE, [[0, 1]], GraphMarks(hull=hull.vertices, hull_after=hull.vertices * 2)).axes[1]
    assert all(len(patch.get_path().vertices) == 2 for patch in after.patches if patch.get_edgecolor()[3] > 0)
    # A hull along a line has no second side.
    assert figure.axes[1].get_yticks().size == 0


@pytest.mark.slow
def test_many_edges_are_drawn_as_pixels():
    domain = Domain.grid(20, 15, 20.0, 15.0)
    graph, content = graphs.blocks(domain, 5), io.BytesIO()
    policy_picture(domain, list(graph.edges)).savefig(content, format="svg")
    assert graph.number_of_edges() == 3600
    assert len(content.getvalue()) < 400_000


def test_headlines_say_what_is_found():
    for edges, shown, words in (
        ([], GraphMarks(), "has no edges"),
        ([], GraphMarks(exposed=[0, 1]), "2 of 12 secrets are exposed: neither an edge nor the hull protects them"),
        ([[0, 1]], GraphMarks(exposed=[2, 3], added=[(2, 0), (3, 0)]), "2 edges would"),
        ([[0, 1]], GraphMarks(), "1 edge between 12 secrets"),
    ):
        assert words in policy_picture(GRID, edges, shown).get_suptitle()


def test_places_anywhere_and_in_degrees():
    points = Domain.from_points([[0, 0], [3, 1], [1, 2]], unit="m")
    assert policy_picture(points, [[0, 2]]).axes[0].get_xlabel() == "x (m)"
    box = Domain.geographic_grid(4, 3, 40.5, 41, -74.3, -73.6)
    assert any("°N" in label.get_text() for label in policy_picture(box, [[0, 2]]).axes[0].get_yticklabels())
    assert (
        policy_picture(Domain.from_points([[1.0, 1.0]]), []).get_suptitle().startswith("The policy graph has no edges")
    )


def test_pictures_need_places():
    for domain in (Domain.from_labels(["a", "b"]), Domain.from_points(np.eye(3))):
        assert not can_draw(domain)
        with pytest.raises(InputError, match="cannot be drawn as a map"):
            policy_picture(domain, [[0, 1]])
    assert can_draw(LINE)
    assert not can_draw(None)
    with pytest.raises(InputError, match=r"hull: is not flat"):
        policy_picture(GRID, [], GraphMarks(hull=np.zeros((4, 3))))


def test_pictures_are_the_same_every_time():
    first, second = (
        inline_svg(policy_picture(GRID, [[0, 1], [4, 9]], GraphMarks(hull=SQUARE)), "graph", "A graph.")
        for _ in range(2)
    )
    assert first == second


# --- in the report ---------------------------------------------------------------------------------------------------


def page(domain, graph, cost=None, more=()):
    n = graph.number_of_nodes()
    problem = Problem(
        np.full(n, 1 / n), 1.0 - np.eye(n) if cost is None else cost, [GraphPrivacy(1, graph), *more], secrets=domain
    )
    made = channel(np.where(np.isfinite(problem.cost), 1.0, 0.0))
    return html(problem, made, certificate(problem, made))


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
    for nodes in graphs.components(graph):
        cost[np.ix_(nodes, nodes)] = 1
    text = page(GRID, graph, cost)
    assert "Answers of infinite cost are forbidden, and are never given" in text
    assert "8 of 12 secrets have no edge" in text
    # Other requirements tie them together.
    assert "secrets have no edge" not in page(GRID, graph, more=[MetricPrivacy(1, 1 - np.eye(12))])


# --- traces ----------------------------------------------------------------------------------------------------------


def test_a_trace_on_a_map():
    figure = trace_picture(GRID, [0, 1, 1, 6])
    assert figure.get_suptitle() == "4 steps released"
    (released,) = (c for c in figure.axes[0].collections if len(c.get_offsets()) == 4)
    # The later a step, the darker, and both that and the spread are declared.
    assert np.diff(released.get_facecolors()[:, 3]).min() > 0
    assert "the darker; dots are spread" in figure.axes[0].get_title(loc="left")
    # Moved a little, but never out of the cell.
    apart = np.abs(released.get_offsets() - GRID.points[[0, 1, 1, 6]])
    assert apart.max() < 0.5
    assert len(np.unique(released.get_offsets(), axis=0)) == 4
    owner = trace_picture(GRID, [0, 1], [4, 5])
    assert "for their owner only" in owner.get_suptitle()
    assert "true" in key(owner)
    assert "true" not in key(figure)


def test_places_beyond_the_map_are_shown():
    figure = trace_picture(GRID, [], [0, 1], np.array([[-3.0, 1.0], [9.0, 2.5]]))
    # With some room about them, and the picture in the shape of what it shows.
    (west, east), (south, north) = figure.axes[0].get_xlim(), figure.axes[0].get_ylim()
    assert (west, east, south, north) == pytest.approx((-3.48, 9.48, 0.0, 3.0))
    assert (figure.get_figwidth() - 0.9) / (figure.get_figheight() - 1.2) == pytest.approx((east - west) / 3)
    with pytest.raises(InputError, match="cannot be drawn"):
        trace_picture(LINE, [], places=np.zeros((1, 1)))


def test_traces_without_a_map():
    for domain in (LINE, Domain.from_labels([f"p{i}" for i in range(5)]), Domain.grid(5, 1, 5.0, 1.0)):
        assert trace_picture(domain, [0, 4, 2], [1, 1, 1]).axes[0].get_xlabel() == "step"
        with pytest.raises(InputError, match="is empty"):
            trace_picture(domain, [])


def test_the_ruler_ends_where_the_map_does():
    city = Domain.geographic_grid(5, 4, south=40.0, north=40.1, west=116.0, east=116.1)
    axes = trace_picture(city, [0, 7]).axes[0]
    (bar,) = (line for line in axes.lines if list(line.get_ydata()) == [1.02, 1.02])
    assert bar.get_xdata()[1] == pytest.approx(axes.get_xlim()[1])


def test_steps_are_counted_in_round_numbers():
    for figure in (over_time_picture([("degree", {"least": [3]})], "One"), trace_picture(LINE, [2])):
        axes = figure.axes[-1]
        west, east = axes.get_xlim()
        assert [tick for tick in axes.get_xticks() if west <= tick <= east] == [0]
    axes = over_time_picture([("degree", {"least": np.arange(60)})], "Sixty").axes[0]
    assert axes.get_xticks().tolist() == list(range(-10, 71, 10))


def test_series_over_time():
    panels = [("degree", {"least": [1, 2, 3]}), ("error", {"one": [0.0, np.inf, 2.0], "other": [1, 1, 1]})]
    figure = over_time_picture(panels, "Three")
    assert [axes.get_ylabel() for axes in figure.axes] == ["degree", "error"]
    assert figure.axes[1].get_ylim()[1] == pytest.approx(2.16)
    assert [line.get_label() for line in figure.axes[1].lines] == ["one", "other"]
