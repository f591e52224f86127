"""Figures of designs show the numbers that they are given, at their places."""

from __future__ import annotations

import re
import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from long import mostly_long
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from report_examples import certificate, channel, city, design_of, domains, mixing, prior_of

from mechdesign.errors import InputError
from mechdesign.measures._baselines import NO_INFORMATION, Reference
from mechdesign.model import distances
from mechdesign.model._domain import Domain
from mechdesign.model._problem import Problem
from mechdesign.model._words import percent, power, short
from mechdesign.report import _design_figures as figures
from mechdesign.report import _maps as maps
from mechdesign.report._maps import draw_map, draw_numbers, find_norm
from mechdesign.report._style import drawn as figure_of
from mechdesign.report._style import figure_bytes, page_svg
from mechdesign.synthesis._result import Design

KINDS = domains()


def size_of(domain: Domain | None) -> int:
    return 70 if domain is None else domain.size


def of_kind(axes, kind):
    return [item for item in axes.collections if isinstance(item, kind)]


def drawn(domain: Domain | None, values, norm=None, **options):
    """Return axes with a map."""
    axes = Figure().subplots()
    draw_map(axes, domain, values, norm, **options)
    return axes


def asked(prior, secrets=None, observables=None, matrix=None) -> Design:
    """Return a design without requirements, for its prior, domains and channel."""
    matrix = np.eye(len(prior)) if matrix is None else matrix
    problem = Problem(prior, np.ones(matrix.shape), [], secrets=secrets, observables=observables)
    made = channel(matrix)
    return design_of(problem, made, certificate(problem, made))


def numbers_figure(domain, values, label) -> Figure:
    return figure_of(None, maps.height_of_figure(domain), draw_numbers, domain, values, label)


# --- the data plotted is the data given --------------------------------------------------------------------------


def test_grid_is_drawn_row_by_row_from_the_south_in_real_units():
    grid = Domain.grid(columns=3, rows=2, width=6.0, height=1.0)
    prior = np.array([0.1, 0.2, 0.3, 0.05, 0.15, 0.2])
    axes = drawn(grid, prior)
    (image,) = axes.images
    assert_array_equal(np.asarray(image.get_array()), [[0.1, 0.2, 0.3], [0.05, 0.15, 0.2]])
    # The first row is at the bottom.
    assert (image.origin, image.get_extent()) == ("lower", [0.0, 6.0, 0.0, 1.0])
    assert (axes.get_xlim(), axes.get_ylim(), axes.get_aspect()) == ((0, 6), (0, 1), 1.0)


def test_a_zero_has_no_colour_and_a_small_number_has_one():
    grid = Domain.grid(2, 2, 2.0, 2.0)
    axes = drawn(grid, [0.0, 1e-12, 0.5, 0.5 - 1e-12])
    (image,) = axes.images
    assert_array_equal(np.ma.getmaskarray(image.get_array()), [[True, False], [False, False]])
    assert [patch.get_hatch() for patch in axes.patches] == ["//////"]
    assert not drawn(grid, [0.25] * 4).patches
    for prior, keys in (([0.0, 0.5, 0.25, 0.25], ["exactly 0"]), ([0.25] * 4, [])):
        figure = figures.prior(asked(prior, grid))
        assert [text.get_text() for legend in figure.legends for text in legend.get_texts()] == keys


def test_points_are_drawn_where_they_are_and_zeros_are_hollow():
    domain = Domain.from_points([[0.0, 1.0], [2.0, 3.0], [4.0, 0.0]])
    hollow, filled = of_kind(drawn(domain, [0.75, 0.0, 0.25]), PathCollection)
    assert_array_equal(np.asarray(hollow.get_offsets()), [[2, 3]])
    assert hollow.get_facecolor().size == 0
    # The largest is on top.
    assert_array_equal(np.asarray(filled.get_offsets()), [[4, 0], [0, 1]])
    assert_array_equal(np.asarray(filled.get_array()), [0.25, 0.75])


def test_bars_are_as_high_as_the_data():
    for name in ("labels", "numbers", "one row", "space"):
        domain = KINDS[name]
        prior = prior_of(size_of(domain))
        axes = drawn(domain, prior)
        assert_array_equal([bar.get_height() for bar in axes.containers[0]], prior)
        assert axes.get_ylim()[0] == 0
    # Many bars are lines.
    prior = prior_of(70)
    (lines,) = of_kind(drawn(None, prior), LineCollection)
    segments = np.array(lines.get_segments())
    assert_array_equal(segments[:, 1], np.column_stack([np.arange(70), prior]))
    assert not segments[:, 0, 1].any()


def test_uneven_numbers_stand_at_their_places():
    axes = drawn(KINDS["uneven numbers"], [0.1, 0.2, 0.3, 0.4])
    assert_allclose([bar.get_x() + bar.get_width() / 2 for bar in axes.containers[0]], [0, 0, 0.5, 40])


def test_a_map_needs_a_number_for_each_member():
    grid = Domain.grid(2, 2, 2.0, 2.0)
    for values in ([0.5, 0.5], [[0.25] * 4]):
        with pytest.raises(InputError, match=r"values: has the wrong shape"):
            drawn(grid, values)
    with pytest.raises(InputError, match="axes"):
        draw_map(Figure(), grid, [0.25] * 4)
    for mark in (-1, 4):
        with pytest.raises(InputError, match="mark: is too"):
            drawn(grid, [0.25] * 4, mark=mark)


def test_colours_of_a_map_make_a_colour_bar():
    grid, points = Domain.grid(2, 2, 2.0, 2.0), Domain.from_points([[0.0, 1.0], [2.0, 3.0], [4.0, 0.0], [1.0, 1.0]])
    for name, domain in {"cells": grid, "points": points}.items():
        axes = Figure().subplots()
        bar = axes.figure.colorbar(draw_map(axes, domain, [0.0, 0.1, 0.2, 0.7]))
        assert (bar.vmin, bar.vmax, bar.cmap) == (0.0, 0.7, maps.COLOURS), name
    assert draw_map(Figure().subplots(), None, [0.5, 0.5]) is None


def test_answers_of_the_most_likely_secrets_share_one_scale():
    grid = Domain.grid(4, 3, 4.0, 3.0)
    prior, matrix = prior_of(12), mixing(12)
    made = asked(prior, grid, grid, matrix)
    figure = figures.answers(made, count=4)
    chosen = figures.most_likely(prior, 4)
    assert_array_equal(chosen, [5, 4, 3, 10])
    images = [axes.images[0] for axes in figure.axes[:4]]
    for image, secret in zip(images, chosen, strict=True):
        assert_array_equal(np.asarray(image.get_array().filled(0)).ravel(), made.channel.matrix[secret])
        assert image.norm is images[0].norm
    assert images[0].norm.vmax == made.channel.matrix[chosen].max()
    assert [axes.get_title(loc="left") or axes.get_title() for axes in figure.axes[:1]] == ["cell 5, prior 21%"]


def test_titles_of_panels_are_not_cut_off():
    grid = Domain.grid(11, 8, 15.0, 8.0)
    drawn_ = figures.answers(asked(prior_of(88), grid, grid, mixing(88)), count=2)
    (height, *_) = [float(y) for y in re.findall(r'y="([\d.]+)"[^>]*>cell \d+, prior', page_svg(drawn_, "x"))]
    # The baseline of a text of 8.5 points.
    assert height > 7


def test_the_true_cell_is_outlined():
    grid = Domain.grid(4, 3, 8.0, 3.0)
    axes = figures.answers(asked(np.eye(12)[6], grid, grid, mixing(12)), count=1).axes[0]
    outlines = [patch for patch in axes.patches if patch.get_linewidth() > 1]
    assert {patch.get_bbox().bounds for patch in outlines} == {(4.0, 1.0, 2.0, 1.0)}


def test_the_true_place_is_marked_on_a_map_of_other_answers():
    answers, matrix = Domain.grid(2, 2, 4.0, 4.0), np.full((2, 4), 0.25)
    for unit, expected in (("km", {(3.0, 1.0)}), ("miles", set())):
        secrets = Domain.from_points([[1.0, 2.0], [3.0, 1.0]], unit=unit)
        made = figures.answers(asked([0.2, 0.8], secrets, answers, matrix), count=1)
        crosses = [line for line in made.axes[0].lines if line.get_marker() == "x"]
        assert {tuple(np.ravel(line.get_xydata())) for line in crosses} == expected


def test_errors_are_those_of_the_best_attack():
    design = design_of(*city())
    problem, made = design.problem, design.channel
    errors = figures.expected_errors(design)
    posterior = made.matrix * problem.prior[:, None]
    apart = distances.euclidean(problem.secrets)
    guesses = (apart @ posterior).argmin(axis=0)
    assert_allclose(errors, (made.matrix * apart[:, guesses]).sum(axis=1))
    figure = figures.errors(design)
    assert_array_equal(np.asarray(figure.axes[0].images[0].get_array()).ravel(), errors)
    assert figure.axes[1].get_xlabel() == "expected error (km)"


def test_costs_are_in_order_on_one_axis():
    references = [
        Reference("lower bound", 1.9999),
        Reference("this design", 2.0),
        Reference("usual", 3.0, "misses the floor", meets=False),
        Reference(NO_INFORMATION, 4.0),
        Reference("a long name " * 9, 5.0),
    ]
    axes = Figure().subplots()
    figures.draw_costs(axes, references, "km")
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    assert [line.get_xdata()[0] for line in reversed(dots)] == [1.9999, 2.0, 3.0, 4.0, 5.0]
    assert [line.get_markerfacecolor() == "white" for line in reversed(dots)] == [False, False, True, False, False]
    texts = [text.get_text() for text in reversed(axes.texts)]
    assert texts[:4] == ["lower bound: 1.9999 km", "this design: 2 km", "usual: 3 km", f"{NO_INFORMATION}: 4 km"]
    # A name may be cut, but not the number.
    assert re.fullmatch("(a long name ){2,}.*…: 5 km", texts[4])
    assert axes.get_xlabel() == "cost (km); hollow: does not meet all requirements"


def test_a_lower_bound_that_equals_the_cost_is_rounded_down():
    axes = Figure().subplots()
    figures.draw_costs(axes, [Reference("lower bound", 0.1234567), Reference("this design", 0.1234567)], "")
    assert [text.get_text() for text in axes.texts] == ["this design: 0.12346", "lower bound: 0.12345"]


def test_every_figure_of_a_design_can_be_drawn_on_axes_of_ones_own():
    grid = Domain.grid(3, 2, 3.0, 2.0)
    for domain in (grid, None):
        design = asked([0.0, 0.5, 0.2, 0.1, 0.1, 0.1], domain, domain, mixing(6))
        with matplotlib.rc_context({"font.size": 17}):
            axes = Figure().subplots(2, 3)
            assert figures.prior(design, axes=axes[0, 0]) is axes[0, 0].get_figure()
            figures.errors(design, axes=axes[0, 1])
            figures.costs(design, axes=axes[0, 2])
            figures.answers(design, count=3, axes=axes[1])
        assert [bool(panel.images) == bool(domain) for panel in axes.flat] == [True, True, not domain, *[True] * 3]
        assert any(text.get_text().startswith("this design: ") for text in axes[0, 2].texts)
        # The legend stands in the first panel.
        for panel, keys in ((axes[0, 0], ["exactly 0"]), (axes[0, 2], None), (axes[1, 1], None)):
            legend = panel.get_legend()
            assert (legend and [text.get_text() for text in legend.get_texts()]) == keys
        assert not axes[0, 0].get_figure().legends
        for wrong in (axes[0, 0], axes[0, :2], axes):
            with pytest.raises(InputError, match=r"axes: are of another number; found \d; must be 3, one"):
                figures.answers(design, count=3, axes=wrong)
        for wrong in (axes[0, 0].get_figure(), "axes", [None]):
            with pytest.raises(InputError, match="axes"):
                figures.prior(design, axes=wrong)


def test_axes_of_ones_own_keep_their_spines_and_those_of_a_new_figure_have_the_style_of_reports():
    import mechdesign as md

    town, line = md.Domain.grid(2, 2, 2.0, 2.0), md.Domain.from_points([[0.0], [1.0]])
    made = md.design(md.Problem([0.75, 0.25], 1 - np.eye(2), [md.MetricPrivacy(1, 1 - np.eye(2))]))
    drawings = {
        "costs": (lambda axes=None: md.figures.costs(made, axes=axes), 1),
        "a graph on a map": (lambda axes=None: md.figures.graph(town, [[0, 1]], axes=axes), 0),
        "a graph on a line": (lambda axes=None: md.figures.graph(line, [[0, 1]], axes=axes), 1),
    }
    for name, (draw, shown) in drawings.items():
        axes = Figure().subplots()
        before = {side: (spine.get_visible(), spine.get_edgecolor()) for side, spine in axes.spines.items()}
        draw(axes)
        after = {side: (spine.get_visible(), spine.get_edgecolor()) for side, spine in axes.spines.items()}
        assert after == before, name
        assert sum(spine.get_visible() for spine in draw().axes[0].spines.values()) == shown, name


def test_axes_of_ones_own_in_a_dark_style_have_light_texts_and_marks():
    import mechdesign as md

    made = asked([0.5, 0.25, 0.25], matrix=np.full((3, 1), 1.0))
    release = md.tables.Histogram().release(
        [1, 2], md.tables.Policy.full(md.tables.Domain({"age": range(3)})), epsilon=1, rng=1
    )
    with matplotlib.style.context("dark_background"):
        axes = Figure().subplots(2, 2)
        md.figures.costs(made, axes=axes[0, 0])
        md.figures.graph(md.Domain.grid(2, 2, 2.0, 2.0), [[0, 1]], axes=axes[0, 1])
        md.figures.release(release, axes=axes[1, 0])
        found = md.audit(np.eye(2), 1 - np.eye(2))
        md.figures.epsilon_by_distance({"": found}, axes=axes[1, 1])
    assert "white" in {text.get_color() for text in axes[0, 0].texts}
    assert_array_equal(axes[0, 1].collections[1].get_facecolor(), [[1, 1, 1, 1]])
    assert_array_equal(axes[1, 0].collections[0].get_color(), [[1, 1, 1, 1]])
    assert axes[1, 1].texts[0].get_color() == "white"


def test_the_finding_on_errors_says_what_the_numbers_say():
    for errors, prior, finding in (
        ([0.5, 1.0, 2.0], [0.5, 0.25, 0.25], "off by 1 km on average, by at least half of that for every secret."),
        ([0.0, 2.0], [0.5, 0.5], "off by 1 km on average, by less than half of that for 50% of the prior."),
        ([0.0, 0.0], [0.5, 0.5], "The best attack is never wrong: answers reveal the secret."),
    ):
        assert figures.error_finding(errors, prior, "km").endswith(finding)


# --- every kind of domain ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_long(KINDS, 6))
def test_every_kind_of_domain_can_be_drawn(name):
    domain = KINDS[name]
    n = size_of(domain)
    design = asked(prior_of(n), domain, domain, mixing(n))
    for figure in (figures.prior(design), figures.answers(design), numbers_figure(domain, np.linspace(0, 2, n), "x")):
        assert "<text" in page_svg(figure, "x")
        # Nothing has collapsed, and nothing reaches beyond the picture.
        for axes in figure.axes:
            assert axes.get_position().width > 0.01
            assert axes.get_position().height > 0.008


@pytest.mark.slow
def test_secrets_and_answers_may_be_of_different_kinds():
    for secrets, answers in (("labels", "grid"), ("grid", "labels"), ("none", "points"), ("points", "none")):
        n, m = size_of(KINDS[secrets]), size_of(KINDS[answers])
        design = asked(prior_of(n), KINDS[secrets], KINDS[answers], mixing(n, m))
        assert len(figures.answers(design).axes) >= 5


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
    axes = drawn(domain, prior_of(30))
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert names == ["74.02°W", "73.92°W"]
    assert_allclose(axes.get_xticks() / domain.cells.width, [0, 1], atol=1e-9)
    assert axes.get_yticklabels()[0].get_text() == "40.70°N"
    assert [text.get_text() for text in axes.texts] == ["2 km"]
    southern = drawn(KINDS["southern"], prior_of(12))
    assert {label.get_text()[-1] for label in southern.get_yticklabels()} == {"N", "S"}
    axes = drawn(KINDS["coordinates"], [0.2, 0.3, 0.5])
    degrees = {label.get_text(): tick for label, tick in zip(axes.get_yticklabels(), axes.get_yticks(), strict=True)}
    assert_allclose(degrees["52.51°N"], KINDS["coordinates"].points[1, 1], rtol=1e-6)


def test_a_very_long_map_is_not_to_scale_and_says_so():
    axes = drawn(KINDS["long grid"], prior_of(40))
    assert axes.get_aspect() == "auto"
    assert "not to scale" in axes.get_xlabel()


# --- scales and words --------------------------------------------------------------------------------------------


def test_skewed_probabilities_get_a_logarithmic_scale():
    skewed = find_norm([0.9, 1e-3, 1e-4, 1e-7, 0.0])
    assert skewed.vmin == pytest.approx(0.9e-4)
    # What is smaller has the first colour.
    assert skewed(1e-7) == 0
    grid = Domain.grid(5, 1, 5.0, 1.0)
    figure = numbers_figure(Domain.grid(2, 2, 2.0, 2.0), np.array([0.9, 1e-3, 1e-4, 0.0]), "p")
    assert figure.axes[1].get_xlabel() == "p (log scale)"
    plain = find_norm([0.5, 0.3, 0.2])
    assert (plain.vmin, plain.vmax) == (0, 0.5)
    assert find_norm(np.zeros(2)).vmax == 1
    assert (find_norm([1.0, 2.0], 1.0).vmin, find_norm([1.0, 2.0], 3.0).vmin) == (1.0, 0.0)
    assert drawn(grid, [0.2] * 5).get_ylim()[1] > 0.2


def test_colours_darken_evenly_from_little_to_much():
    lightness = maps.COLOURS(np.linspace(0, 1, 50))[:, :3] @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(lightness) < 0).all()


def test_numbers_are_short():
    assert [short(value) for value in (0.0, 1e-9, 12345.678, 3e9, -np.inf)] == ["0", "1e-09", "12346", "3e+09", "−∞"]
    assert [percent(value) for value in (0.99999, 0.5, np.float64(1e-7) * (1 + 1e-15))] == ["100%", "50%", "10⁻⁵%"]
    assert [power(value) for value in (0.0, 0.501, 2.01e-11, 9.9e-4, np.inf)] == ["0", "0.51", "3×10⁻¹¹", "0.001", "∞"]


# --- no side effects ---------------------------------------------------------------------------------------------


def test_drawing_changes_no_global_state_and_does_not_depend_on_it():
    grid = Domain.grid(3, 2, 3.0, 2.0)

    def draw() -> bytes:
        return figure_bytes(numbers_figure(grid, prior_of(6), "prior"))

    plain = draw()
    with matplotlib.rc_context({"font.size": 31, "text.color": "red", "axes.grid": True}):
        before = dict(matplotlib.rcParams)
        styled = draw()
        assert dict(matplotlib.rcParams) == before
    assert styled == plain


def test_text_of_a_figure_is_text_and_two_figures_have_no_identifier_in_common():
    figure = numbers_figure(Domain.grid(2, 2, 2.0, 2.0), np.array([0.5, 0.25, 0.25, 0.0]), "prior")
    one, other = (page_svg(figure, name) for name in ("one", "other"))
    assert ">prior</text>" in one
    found = [set(re.findall(r' id="([^"]+)"', each)) for each in (one, other)]
    assert found[0]
    assert not found[0] & found[1]
    wanted = set(re.findall(r'(?:url\(|href=")#([^")]+)', one))
    assert wanted <= found[0]


@pytest.mark.slow
def test_pyplot_is_never_imported():
    code = (
        "import sys, mechdesign.report._design_page, mechdesign.report._maps as maps, numpy as np\n"
        "from matplotlib.figure import Figure\n"
        "maps.draw_numbers(Figure().subplots(), None, np.array([0.5, 0.5]), 'p')\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
