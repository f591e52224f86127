from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.figure import Figure

from mechdesign import policy
from mechdesign.errors import InputError
from mechdesign.model.domain import Domain
from mechdesign.report.policy import Shown, can_draw, policy_picture
from mechdesign.report.svg import inline_svg

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


def saved(figure):
    content = io.BytesIO()
    figure.savefig(content, format="svg")
    return content.getvalue()


def test_edges_are_drawn_between_their_places():
    edges = sorted(policy.blocks(GRID, 2).edges)
    figure = policy_picture(GRID, edges)
    assert isinstance(figure, Figure)
    places = [tuple(sorted(map(tuple, GRID.points[list(edge)]))) for edge in edges]
    drawn = [tuple(sorted(ends)) for ends in lines(figure)["edge: must not be told apart"]]
    assert sorted(drawn) == sorted(places)
    assert figure.get_suptitle() == f"{len(edges)} edges between 12 secrets, none of them exposed"
    assert len(figure.axes) == 1


def test_marks_stand_at_their_secrets():
    shown = Shown(excluded=[3, 7], alone=[0, 11], exposed=[11], added=[(11, 6)], hull=SQUARE, hull_after=2 * SQUARE)
    figure = policy_picture(GRID, [[1, 2], [5, 6]], shown)
    found = marked(figure)
    assert found["not possible"].tolist() == GRID.points[[3, 7]].tolist()
    # An exposed secret is not marked twice.
    assert found["no edge, but hidden by the hull"].tolist() == GRID.points[[0]].tolist()
    assert found["exposed: nothing hides it"].tolist() == GRID.points[[11]].tolist()
    assert lines(figure)["edge that would protect"] == [(tuple(GRID.points[11]), tuple(GRID.points[6]))]
    (shade,) = (c for c in figure.axes[0].collections if isinstance(c, PatchCollection))
    assert len(shade.get_paths()) == 2
    assert figure.get_suptitle() == "1 of 10 secrets is exposed: nothing hides it; 1 edge would"
    assert set(key(figure)) == {
        "edge: must not be told apart",
        "edge that would protect",
        "no edge, but hidden by the hull",
        "exposed: nothing hides it",
        "not possible",
    }


def test_hulls_are_drawn_to_scale():
    figure = policy_picture(
        GRID, [[0, 1]], Shown(hull=SQUARE, hull_after=np.array([[3.0, 0], [0, 1], [-3, 0], [0, -1]]))
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
    hull = policy.sensitivity_hull(LINE, policy.from_edges(5, [[0, 1], [1, 3]]))
    figure = policy_picture(LINE, [[0, 1], [1, 3]], Shown(alone=[2, 4], exposed=[], hull=hull.vertices))
    ends = lines(figure)["edge: must not be told apart"]
    assert np.allclose(ends[0], [(1, 0), (0, 0)])
    assert np.allclose(ends[1], [(3, 0), (1, 0)])
    assert figure.axes[0].get_xlabel() == "position"
    # A hull along a line has no second side.
    assert figure.axes[1].get_yticks().size == 0


def test_many_edges_are_drawn_as_pixels():
    domain = Domain.grid(20, 15, 20.0, 15.0)
    graph = policy.blocks(domain, 5)
    figure = policy_picture(domain, list(graph.edges))
    assert graph.number_of_edges() == 3600
    assert len(saved(figure)) < 400_000


@pytest.mark.parametrize(
    ("edges", "shown", "words"),
    [
        ([], Shown(), "joins nothing"),
        ([], Shown(exposed=[0, 1]), "2 of 12 secrets are exposed: nothing hides them"),
        ([[0, 1]], Shown(exposed=[2, 3], added=[(2, 0), (3, 0)]), "2 edges would"),
        ([[0, 1]], Shown(), "1 edge between 12 secrets"),
    ],
)
def test_headlines_say_what_is_found(edges, shown, words):
    assert words in policy_picture(GRID, edges, shown).get_suptitle()
    assert policy_picture(GRID, edges, shown, title="Mine").get_suptitle() == "Mine"


def test_places_anywhere_and_in_degrees():
    points = Domain.from_points([[0, 0], [3, 1], [1, 2]], unit="m")
    assert policy_picture(points, [[0, 2]]).axes[0].get_xlabel() == "x (m)"
    box = Domain.geographic_grid(4, 3, 40.5, 41, -74.3, -73.6)
    assert any("°N" in label.get_text() for label in policy_picture(box, [[0, 2]]).axes[0].get_yticklabels())
    assert policy_picture(Domain.from_points([[1.0, 1.0]]), []).get_suptitle().startswith("The policy joins nothing")


def test_pictures_need_places():
    for domain in (Domain.from_labels(["a", "b"]), Domain.from_points(np.eye(3))):
        assert not can_draw(domain)
        with pytest.raises(InputError, match="cannot be drawn as a map"):
            policy_picture(domain, [[0, 1]])
    assert can_draw(LINE)
    assert not can_draw(None)
    with pytest.raises(InputError, match=r"hull: is not flat"):
        policy_picture(GRID, [], Shown(hull=np.zeros((4, 3))))


def test_pictures_are_the_same_every_time():
    first, second = (
        inline_svg(policy_picture(GRID, [[0, 1], [4, 9]], Shown(hull=SQUARE)), "graph", "A graph.") for _ in range(2)
    )
    assert first == second
