from __future__ import annotations

import re
import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from long import mostly_long
from matplotlib.collections import LineCollection, PathCollection, PolyCollection, QuadMesh
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from report_examples import domains, mixing, prior_of

from mechdesign.measures._baselines import NO_INFORMATION, Reference
from mechdesign.model._domain import Domain
from mechdesign.model._words import percent, power, relative, short
from mechdesign.report import _channel_figures as dots
from mechdesign.report import _channel_figures as plot
from mechdesign.report import _maps as maps
from mechdesign.report._scales import error_scale, probability_scale
from mechdesign.report._style import on_page
from mechdesign.report._svg import inline_svg

KINDS = domains()


def size_of(domain: Domain | None) -> int:
    return 70 if domain is None else domain.size


def of_kind(axes, kind):
    return [item for item in axes.collections if isinstance(item, kind)]


def headline(figure: Figure) -> str:
    return " ".join(figure.get_suptitle().split())


# --- the data plotted is the data given --------------------------------------------------------------------------


def test_grid_is_drawn_row_by_row_from_the_south_in_real_units():
    grid = Domain.grid(columns=3, rows=2, width=6.0, height=1.0)
    prior = np.array([0.1, 0.2, 0.3, 0.05, 0.15, 0.2])
    (mesh,) = of_kind(plot.prior_picture(prior, grid).axes[0], QuadMesh)
    assert_array_equal(np.asarray(mesh.get_array()), [[0.1, 0.2, 0.3], [0.05, 0.15, 0.2]])
    corners = mesh.get_coordinates()
    assert_array_equal(corners[0, :, 0], [0, 2, 4, 6])
    assert_array_equal(corners[:, 0, 1], [0, 0.5, 1.0])
    axes = mesh.axes
    assert axes.get_xlim() == (0, 6)
    assert axes.get_ylim() == (0, 1)
    assert axes.get_aspect() == 1.0
    low, high = axes.transData.transform([[0.5, 0.25], [0.5, 0.75]])
    assert low[1] < high[1]
    # Each cell's centre lies where the domain says its point is.
    centres = (corners[:-1, :-1] + corners[1:, 1:]) / 2
    assert_allclose(centres.reshape(-1, 2), grid.points)


def test_a_zero_has_no_colour_and_a_small_number_has_one():
    grid = Domain.grid(2, 2, 2.0, 2.0)
    figure = plot.prior_picture([0.0, 1e-12, 0.5, 0.5 - 1e-12], grid)
    (mesh,) = of_kind(figure.axes[0], QuadMesh)
    assert_array_equal(np.ma.getmaskarray(mesh.get_array()), [[True, False], [False, False]])
    assert figure.legends[0].get_texts()[0].get_text() == "prior of exactly 0"
    assert "1 never occurs" in headline(figure).replace("one", "1")
    assert not plot.prior_picture([0.25] * 4, grid).legends


def test_points_are_drawn_where_they_are_and_zeros_are_hollow():
    domain = Domain.from_points([[0.0, 1.0], [2.0, 3.0], [4.0, 0.0]])
    hollow, filled = of_kind(plot.prior_picture([0.75, 0.0, 0.25], domain).axes[0], PathCollection)
    assert_array_equal(np.asarray(hollow.get_offsets()), [[2, 3]])
    assert hollow.get_facecolor().size == 0
    assert_array_equal(np.asarray(filled.get_offsets()), [[0, 1], [4, 0]])
    assert_array_equal(np.asarray(filled.get_array()), [0.75, 0.25])
    assert filled.get_sizes()[0] > filled.get_sizes()[1]


def test_bars_are_as_high_as_the_data():
    for name in ("labels", "numbers", "one row", "space"):
        domain = KINDS[name]
        prior = prior_of(size_of(domain))
        axes = plot.prior_picture(prior, domain).axes[0]
        assert_array_equal([bar.get_height() for bar in axes.containers[0]], prior)
        assert axes.get_ylim()[0] == 0
    # Many bars are lines.
    prior = prior_of(70)
    (lines,) = of_kind(plot.prior_picture(prior).axes[0], LineCollection)
    segments = np.array(lines.get_segments())
    assert_array_equal(segments[:, 1], np.column_stack([np.arange(70), prior]))
    assert not segments[:, 0, 1].any()


def test_bars_on_a_page_cover_what_they_cover_elsewhere():
    for name in ("labels", "numbers", "uneven numbers"):
        domain = KINDS[name]
        prior = prior_of(domain.size)
        with on_page("panels"):
            axes = plot.prior_picture(prior, domain).axes[0]
            (bars,) = [item for item in of_kind(axes, PolyCollection) if item.get_gid() == "values"]
        positions, widths = maps.bars(domain, domain.size)
        for path, x, width, height in zip(bars.get_paths(), positions, widths, prior, strict=True):
            corners = path.vertices
            ends = corners.min(axis=0), corners.max(axis=0)
            assert_allclose(ends, [(x - width / 2, 0), (x + width / 2, height)], atol=1e-12, err_msg=name)
        # Lines of the grid are those of heights.
        assert [axis.get_gridlines()[0].get_visible() for axis in (axes.xaxis, axes.yaxis)] == [False, True]


def test_uneven_numbers_stand_at_their_places():
    axes = plot.prior_picture([0.1, 0.2, 0.3, 0.4], KINDS["uneven numbers"]).axes[0]
    assert_allclose([bar.get_x() + bar.get_width() / 2 for bar in axes.containers[0]], [0, 0, 0.5, 40])


def test_answers_of_the_most_likely_secrets_share_one_scale():
    grid = Domain.grid(4, 3, 4.0, 3.0)
    prior, matrix = prior_of(12), mixing(12)
    figure = plot.outputs_picture(matrix, prior, grid, grid, count=4)
    chosen = plot.most_likely(prior, 4)
    assert_array_equal(chosen, [5, 4, 3, 10])
    meshes = [of_kind(axes, QuadMesh)[0] for axes in figure.axes[:4]]
    for mesh, secret in zip(meshes, chosen, strict=True):
        values = np.asarray(mesh.get_array().filled(0))
        assert_array_equal(values.ravel(), matrix[secret])
        assert mesh.norm is meshes[0].norm
    assert meshes[0].norm.vmax == matrix[chosen].max()


def test_the_true_cell_is_outlined():
    grid = Domain.grid(4, 3, 8.0, 3.0)
    axes = plot.outputs_picture(mixing(12), np.eye(12)[6], grid, grid, count=1).axes[0]
    outlines = [patch for patch in axes.patches if patch.get_linewidth() > 1]
    assert {patch.get_bbox().bounds for patch in outlines} == {(4.0, 1.0, 2.0, 1.0)}


def test_the_true_place_is_marked_on_a_map_of_other_answers():
    secrets = Domain.from_points([[1.0, 2.0], [3.0, 1.0]], unit="km")
    answers = Domain.grid(2, 2, 4.0, 4.0)
    axes = plot.outputs_picture([[0.25] * 4] * 2, [0.2, 0.8], secrets, answers, count=1).axes[0]
    assert {tuple(np.ravel(line.get_xydata())) for line in axes.lines} == {(3.0, 1.0)}
    elsewhere = Domain.from_points([[1.0, 2.0], [3.0, 1.0]], unit="miles")
    assert not plot.outputs_picture([[0.25] * 4] * 2, [0.2, 0.8], elsewhere, answers, count=1).axes[0].lines


def test_errors_are_drawn_against_the_prior_without_impossible_secrets():
    grid = Domain.grid(2, 2, 2.0, 2.0)
    errors, prior = np.array([0.5, 1.0, 3.0, 2.0]), np.array([0.5, 0.25, 0.0, 0.25])
    figure = plot.error_picture(errors, prior, grid, "km")
    (mesh,) = of_kind(figure.axes[0], QuadMesh)
    assert_array_equal(np.asarray(mesh.get_array()), [[0.5, 1.0], [3.0, 2.0]])
    (dots_,) = of_kind(figure.axes[1], PathCollection)
    assert_array_equal(np.asarray(dots_.get_offsets()), [[0.5, 0.5], [0.25, 1.0], [0.25, 2.0]])
    (mean,) = figure.axes[1].lines
    assert_array_equal(mean.get_ydata(), [1.0, 1.0])
    assert (
        headline(figure) == "The best attack is off by 1 km on average, and by at least half of that for every secret"
    )
    assert figure.axes[2].get_ylabel() == "adversary's expected error (km)"


def test_costs_are_in_order_on_one_axis_with_the_gap():
    references = [Reference("truth", 0.0), Reference(NO_INFORMATION, 4.0), Reference("usual", 3.0, "misses the floor")]
    figure = dots.cost_picture(2.0, 1.9999, 5e-5, references, "km")
    axes = figure.axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    lower, own = "lower bound: no such channel costs less", "this channel, certified"
    assert names == ["truth", lower, own, "usual", NO_INFORMATION]
    values = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
    assert values == [0.0, 1.9999, 2.0, 3.0, 4.0]
    texts = [text.get_text() for text in axes.texts]
    assert "1.9999 km  (relative gap 5×10⁻⁵)" in texts
    assert "3 km  (misses the floor)" in texts
    assert (
        headline(figure)
        == "The cost is proved to be within 5×10⁻⁵ of the least possible, 50% below the cost without any information"
    )
    assert axes.get_xlabel() == "cost (km)"


def test_cost_picture_says_what_is_proved():
    for cost, lower, gap, finding in (
        (0.0, 0.0, 0.0, "The cost is the least possible"),
        (1.0, None, np.inf, "The cost is 1, with no lower bound above 0 proved"),
        (1.0, 0.0, 1.0, "The cost is 1, with no lower bound above 0 proved"),
        (1.0, 0.9, 0.1, "The cost is proved to be within 10% of the least possible"),
    ):
        assert headline(dots.cost_picture(cost, lower, gap)) == finding


def test_requirements_are_ratios_to_their_nominal_values():
    items = [
        dots.RequirementBar("a", 2.0, 1.0),
        dots.RequirementBar("b", 1.0, 1.5, at_least=True),
        dots.RequirementBar("c", 1.0, np.inf, holds=False),
    ]
    figure = dots.requirements_picture(items)
    marks = {line.get_ydata()[0]: line for line in figure.axes[0].lines if line.get_marker() in ("o", ">")}
    assert marks[2].get_xdata()[0] == 0.5
    assert marks[1].get_xdata()[0] == 1.5
    assert marks[0].get_marker() == ">"
    assert headline(figure) == "1 of 3 requirements does not hold"
    assert headline(dots.requirements_picture(items[:2])) == "All requirements hold; none of 2 with equality"
    assert headline(dots.requirements_picture([dots.RequirementBar("a", 0.0, 0.0, True)])).endswith("with equality")
    assert headline(dots.requirements_picture([])) == "Nothing is required"


# --- every kind of domain ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_long(KINDS, 6))
def test_every_kind_of_domain_can_be_drawn(name):
    domain = KINDS[name]
    n = size_of(domain)
    prior, matrix = prior_of(n), mixing(n)
    pictures = (
        plot.prior_picture(prior, domain),
        plot.outputs_picture(matrix, prior, domain, domain),
        plot.error_picture(np.linspace(0, 2, n), prior, domain, "" if domain is None else domain.unit),
    )
    for figure in pictures:
        assert inline_svg(figure, "x", "y").startswith("<svg")
        assert headline(figure)
        # Nothing has collapsed, and nothing reaches beyond the picture.
        for axes in figure.axes:
            assert axes.get_position().width > 0.01
            assert axes.get_position().height > 0.15


@pytest.mark.slow
def test_secrets_and_answers_may_be_of_different_kinds():
    for secrets, answers in (("labels", "grid"), ("grid", "labels"), ("none", "points"), ("points", "none")):
        n, m = size_of(KINDS[secrets]), size_of(KINDS[answers])
        figure = plot.outputs_picture(mixing(n, m), prior_of(n), KINDS[secrets], KINDS[answers])
        assert re.match(r"For the [56] likeliest secrets, answers spread over \S+ to \S+ of", headline(figure))


def test_kinds():
    found = {name: maps.kind(domain) for name, domain in KINDS.items()}
    assert {name for name, kind in found.items() if kind == "grid"} == {"grid", "long grid", "geographic", "southern"}
    assert {name for name, kind in found.items() if kind == "points"} == {
        "points", "one point", "points on a line", "coordinates", "one place"
    }  # fmt: skip
    assert {name for name, kind in found.items() if kind == "line"} == {
        "one row", "one column", "one cell", "numbers", "uneven numbers"
    }  # fmt: skip


def test_geographic_maps_have_degrees_at_their_places():
    domain = KINDS["geographic"]
    axes = plot.prior_picture(prior_of(30), domain).axes[0]
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert names == ["74.02°W", "74.00°W", "73.98°W", "73.96°W", "73.94°W", "73.92°W"]
    assert_allclose(axes.get_xticks() / domain.cells.width, np.linspace(0, 1, 6), atol=1e-9)
    assert axes.get_yticklabels()[0].get_text() == "40.70°N"
    assert [text.get_text() for text in axes.texts] == ["2 km"]
    southern = plot.prior_picture(prior_of(12), KINDS["southern"]).axes[0]
    assert {label.get_text()[-1] for label in southern.get_yticklabels()} == {"N", "S"}
    axes = plot.prior_picture([0.2, 0.3, 0.5], KINDS["coordinates"]).axes[0]
    degrees = {label.get_text(): tick for label, tick in zip(axes.get_yticklabels(), axes.get_yticks(), strict=True)}
    assert_allclose(degrees["52.51°N"], KINDS["coordinates"].points[1, 1], rtol=1e-6)


def test_a_very_long_map_is_not_to_scale_and_says_so():
    axes = plot.prior_picture(prior_of(40), KINDS["long grid"]).axes[0]
    assert axes.get_aspect() == "auto"
    assert "not to scale" in axes.get_xlabel()


# --- scales and words --------------------------------------------------------------------------------------------


def test_skewed_probabilities_get_a_logarithmic_scale():
    skewed = probability_scale(np.array([0.9, 1e-3, 1e-4, 1e-7, 0.0]), "p")
    assert skewed.norm.vmin == pytest.approx(0.9e-4)
    assert skewed.below
    assert skewed.label == "p (log scale)"
    plain = probability_scale(np.array([0.5, 0.3, 0.2]), "p")
    assert (plain.norm.vmin, plain.norm.vmax, plain.label) == (0, 0.5, "p")
    assert probability_scale(np.zeros(2), "p").norm.vmax == 1
    assert error_scale(np.zeros(2), "e").norm.vmax == 1


def test_colours_darken_evenly_from_little_to_much():
    for scale in (probability_scale([1.0], "p"), error_scale([1.0], "e")):
        lightness = scale.cmap(np.linspace(0, 1, 50))[:, :3] @ [0.2126, 0.7152, 0.0722]
        assert (np.diff(lightness) < 0).all()


def test_numbers_are_short():
    assert [short(value) for value in (0.0, 1e-9, 12345.678, 3e9, -np.inf)] == ["0", "1e-09", "12346", "3e+09", "−∞"]
    assert [percent(value) for value in (0.99999, 0.5, np.float64(1e-7) * (1 + 1e-15))] == ["100%", "50%", "10⁻⁵%"]
    assert [power(value) for value in (0.0, 0.501, 2.01e-11, 9.9e-4, np.inf)] == ["0", "0.51", "3×10⁻¹¹", "0.001", "∞"]
    assert [relative(value) for value in (0.1, 0.9991, 2e-9)] == ["10%", "100%", "2×10⁻⁹"]


# --- no side effects ---------------------------------------------------------------------------------------------


def test_drawing_changes_no_global_state_and_does_not_depend_on_it():
    grid = Domain.grid(3, 2, 3.0, 2.0)
    plain = inline_svg(plot.prior_picture(prior_of(6), grid), "x", "y")
    with matplotlib.rc_context({"font.size": 31, "svg.fonttype": "path", "text.color": "red", "axes.grid": True}):
        before = dict(matplotlib.rcParams)
        styled = inline_svg(plot.prior_picture(prior_of(6), grid), "x", "y")
        assert dict(matplotlib.rcParams) == before
    assert styled == plain


@pytest.mark.slow
def test_pyplot_is_never_imported():
    code = (
        "import sys, mechdesign.report._design_page, mechdesign.report._channel_figures as plot\n"
        "plot.prior_picture([0.5, 0.5])\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
