"""The figure of leakage shows the series, on axes of its own or of the caller."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from mechdesign import leakage
from mechdesign.report.figures import leakage as draw

STRONG = [[0.8, 0.2], [0.0, 1.0]]


# The formulas hold for any two matrices, also for those that no chain has.
@pytest.mark.filterwarnings("ignore::mechdesign.errors.CorrelationWarning")
def test_figure_3_shows_the_series() -> None:
    budgets, own = np.full(30, 0.1), Figure().subplots()
    assert draw(budgets, STRONG, axes=own) is own.get_figure()
    figure = draw(budgets, STRONG)
    for axes in (own, figure.axes[0]):
        lines = axes.get_lines()
        np.testing.assert_array_equal(lines[0].get_ydata(), leakage.backward(budgets, STRONG))
        np.testing.assert_array_equal(lines[2].get_ydata(), leakage.temporal(budgets, STRONG))
        # The first and the last release are marked.
        assert [lines[0].get_markevery()[place] for place in (0, -1)] == [0, 29]
    for legend in (own.get_legend(), figure.legends[0]):
        assert [text.get_text() for text in legend.get_texts()][-1] == "budget ε"
