from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.figure import Figure

from mechdesign import leakage
from mechdesign.report import _leakage_figures as plots

# The formulas hold for any two matrices, also for those that no chain has.
pytestmark = pytest.mark.filterwarnings("ignore::mechdesign.errors.CorrelationWarning")

STRONG = [[0.8, 0.2], [0.0, 1.0]]
MILD = [[0.8, 0.2], [0.2, 0.8]]

FIGURES = {
    "3": lambda: plots.leakage(np.full(10, 0.1), STRONG, STRONG),
    "4": lambda: plots.leakage_loss([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]]),
    "8": lambda: plots.leakage_allocation(1.0, 30, MILD, MILD),
}


@pytest.mark.slow
@pytest.mark.parametrize("number", FIGURES)
def test_every_figure_can_be_drawn(number: str) -> None:
    figure = FIGURES[number]()
    assert isinstance(figure, Figure)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=40)
    assert buffer.getvalue().startswith(b"\x89PNG")
    for axes in figure.axes:
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        assert axes.get_legend() is not None or figure.legends


def test_figure_3_shows_the_series() -> None:
    lines = plots.leakage(np.full(10, 0.1), STRONG, None).axes[0].get_lines()
    np.testing.assert_array_equal(lines[0].get_ydata(), leakage.backward(np.full(10, 0.1), STRONG))
    np.testing.assert_array_equal(lines[2].get_ydata(), leakage.temporal(np.full(10, 0.1), STRONG))


def test_figure_8_marks_the_first_and_the_last_release_on_a_logarithmic_axis() -> None:
    figure = plots.leakage_allocation(1.0, 30, MILD, MILD)
    left, right = figure.axes
    assert (left.get_yscale(), right.get_yscale()) == ("log", "linear")
    for line in left.get_lines():
        marked = line.get_markevery()
        assert (marked[0], marked[-1]) == (0, 29)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["the same ε for all (Algorithm 7)", "more at both ends (Algorithm 8)"]
    figure.canvas.draw()
    written = [label.get_text() for label in left.get_yticklabels(which="both") if label.get_text()]
    assert written
    assert all(float(text) > 0 and "e" not in text for text in written)


def test_figure_4_of_a_function_alone() -> None:
    assert plots.leakage_loss(leakage.LossFunction(MILD)).axes
