"""Make the pictures of the documentation: ``python docs/pictures.py [NAME ...]`` writes ``docs/pictures/NAME.png``.

Each function below makes one picture from the package alone; all of them take well under a minute together.
"""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import mechdesign as md
from mechdesign.graphs._builders import excluded
from mechdesign.model._words import percent
from mechdesign.report._graph_figures import GraphMarks, draw_graph, draw_hull
from mechdesign.report._maps import draw_panels, height_of_panels
from mechdesign.report._style import WIDTH, drawn, new_figure, put_legend, report_style
from mechdesign.runs._sweep_figure import costs_figure
from mechdesign.specification.examples import on_disk

FOLDER = Path(__file__).parent / "pictures"

GRID = md.Domain.grid(columns=12, rows=9, width=12.0, height=9.0, unit="km")
DISTANCE = md.distances.euclidean(GRID)


def run_page(name: str) -> dict[str, Any]:
    """Run the Python blocks of a tutorial in a temporary folder, and return its names."""
    page = (FOLDER.parent / "tutorials" / f"{name}.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for block in re.findall(r"^```python\n(.*?)^```", page, flags=re.M | re.S):
            exec(block, names)
    return names


def town() -> md.Prior:
    """Return where the people of a small simulated town are."""
    centres = [(5.5, 4.5, 1.6, 6), (9.5, 7.0, 1.0, 2), (2.0, 1.5, 0.9, 2)]
    density = sum(
        weight / spread**2 * np.exp(-((GRID.points - (x, y)) ** 2).sum(axis=1) / (2 * spread**2))
        for x, y, spread, weight in centres
    )
    return md.Prior.from_counts(density, smoothing=0.05)


def channels() -> Figure:
    """Show what one cell answers under three requirements."""
    prior, secret = town(), 12 * 4 + 5
    cases = (
        ("metric, ε = 1 per km", md.MetricPrivacy(1, DISTANCE)),
        ("threshold, ε = 1 within 2.5 km", md.ThresholdPrivacy(1, DISTANCE, 2.5)),
        ("distortion, at least 1.5 km", md.DistortionPrivacy(Fraction(3, 2), DISTANCE)),
    )
    # Distortion alone bounds no pair, which a warning would say.
    with warnings.catch_warnings(action="ignore", category=md.errors.RevealedWarning):
        found = [md.design(md.Problem(prior, DISTANCE**2, [stated]), tolerance=1e-5) for _, stated in cases]
    rows, names = np.array([made.channel.matrix[secret] for made in found]), [name for name, _ in cases]

    def draw(*panels: Axes) -> None:
        draw_panels(panels, GRID, rows, names, [secret] * 3, "probability of the answer", percent)

    return drawn(None, height_of_panels(GRID, 3), draw, count=3)


def attack() -> Figure:
    """Show where the best attack errs."""
    prior = town()
    made = md.design(md.Problem(prior, DISTANCE, [md.MetricPrivacy(0.5, DISTANCE)], secrets=GRID), tolerance=1e-5)
    return md.figures.errors(made)


def leakage() -> Figure:
    """Show what ten releases leak."""
    forward = md.MarkovChain([[0.8, 0.2], [0.1, 0.9]])
    return md.figures.leakage([0.1] * 10, forward.reverse(forward.stationary()), forward)


def policy() -> Figure:
    """Show a constrained policy graph, who is exposed, and the edge that repairs it."""
    city = md.Domain.grid(columns=6, rows=6, width=6.0, height=6.0, unit="km")
    members = [0, 1, 2, 6, 7, 8, 12, 13, 14, 18, 19, 24, 25, 27, 28, 33, 34, 11]
    graph = md.graphs.blocks(city, 3)
    kept = md.graphs.constrain(graph, members)
    repaired = md.graphs.repair(city, kept)
    hulls = [md.graphs.sensitivity_hull(city, graph) for graph in (kept, repaired.graph)]
    shown = GraphMarks(
        excluded=excluded(graph, members).tolist(),
        alone=md.graphs.isolated(kept).tolist(),
        exposed=md.graphs.exposed(city, kept).tolist(),
        added=repaired.added,
    )
    figure = new_figure(1.7 * WIDTH, WIDTH + 0.6)
    left, right = figure.subplots(1, 2, width_ratios=[WIDTH, 0.6 * WIDTH])
    draw_graph(left, city, sorted(kept.edges), shown)
    put_legend(figure)
    draw_hull(right, hulls[0].vertices, hulls[1].vertices, city.unit)
    return figure


def headline(figure: Figure, text: str) -> None:
    """Put a headline above a figure, aligned to the left."""
    figure.suptitle(text, x=0.005, ha="left", size=11.0, weight="bold")


def dithering() -> Figure:
    """Show the probability of one answer along a street, for cells and for anchors."""
    street = np.linspace(0.0, 8.0, 801)
    answers = md.Domain.grid(columns=8, rows=2, width=8.0, height=2.0, unit="km")
    anchors = md.Domain.anchors(columns=9, rows=3, width=8.0, height=2.0, unit="km")
    visits = np.column_stack([street, np.full_like(street, 0.5)])
    distance = md.distances.euclidean(answers)
    cells = md.design(md.Problem(md.Prior.uniform(16), distance, [md.MetricPrivacy(1, distance)]))
    dithered = md.design(md.Problem.from_visits(visits, answers, [md.ContinuousPrivacy(1, anchors)], cost="euclidean"))
    answer = answers.cell_of(3.5, 0.5)
    snapped = cells.channel.matrix[[answers.cell_of(x, 0.5) for x in street], answer]
    column = dithered.channel.matrix[:, answer].reshape(3, 9)
    along = np.interp(street, np.arange(9.0), (column[0] + column[1]) / 2)
    figure = new_figure(7.4, 3.0)
    axes = figure.subplots()
    # A line for each cell, so that nothing joins them at the borders.
    for cell in range(8):
        axes.plot([cell, cell + 1], [snapped[100 * cell + 50]] * 2, color="#c0392b", linewidth=1.8)
    axes.plot([], color="#c0392b", label="cells, snapped: jumps at each border")
    axes.plot(street, along, color="#0b5cad", linewidth=1.8, label="anchors, dithered: no jump")
    axes.set_xlabel("place along the street, km")
    axes.set_ylabel("probability of this answer")
    axes.set_ylim(0)
    axes.legend(loc="upper right", fontsize=8.5)
    headline(figure, "Two points a metre apart differ at a border of cells, not between anchors")
    return figure


def figure_answers() -> Figure:
    """Show the figure of the page on reports and figures."""
    city = md.Domain.grid(columns=6, rows=4, width=6.0, height=4.0, unit="km")
    distance = md.distances.euclidean(city)
    visits = [1, 1, 2, 1, 1, 1, 1, 4, 9, 5, 1, 1, 1, 3, 7, 4, 2, 1, 1, 1, 2, 6, 3, 1]
    stated = [md.MetricPrivacy(epsilon=1, distance=distance)]
    problem = md.Problem(md.Prior.from_counts(visits), distance, stated, secrets=city)
    return md.figures.answers(md.design(problem))


def trace() -> Figure:
    """Show a released trace beside the true one."""
    city = md.Domain.grid(columns=9, rows=9, width=9.0, height=9.0, unit="km")
    truth = [20, 21, 30, 31, 40, 41, 50, 51, 52, 43, 34, 33]
    walk = md.MarkovChain.from_traces([truth, truth[::-1]], n=81, smoothing=0.05)
    release = md.traces.Trace(
        city, md.graphs.blocks(city, 3), 1.0, walk, md.Prior.uniform(81), mechanism="lp", tolerance=1e-6, rng=7
    )
    outputs = [release.step(cell).output for cell in truth]
    return md.figures.trace(city, outputs, truth)


def databases() -> Figure:
    """Show released distribution functions of ages under differential privacy and under a threshold policy."""
    with on_disk("admissions.csv") as path:
        ages = np.loadtxt(path, skiprows=1, dtype=np.int64)
    counts, domain = np.bincount(ages, minlength=100), md.tables.Domain({"age": range(100)})
    cases = (
        ("differential privacy", md.tables.Policy.full(domain)),
        ("ages at most 5 years apart", md.tables.Policy.threshold(domain, 5)),
    )
    figure = new_figure(8.4, 3.3)
    for panel, (name, policy) in zip(figure.subplots(1, 2, sharey=True), cases, strict=True):
        release = md.tables.Cumulative().release(policy=policy, counts=counts, epsilon=0.1, rng=3)
        share = release.records
        panel.fill_between(range(100), release.low / share, release.high / share, step="post", alpha=0.22, linewidth=0)
        panel.plot(release.answers / share, drawstyle="steps-post", linewidth=1.4, label="released, with 95% intervals")
        panel.plot(np.cumsum(counts) / share, ":", color="#1b1f24", linewidth=1.2, label="true")
        panel.set_title(name, loc="left", fontsize=9)
        panel.set_xlabel("age")
    figure.axes[0].set_ylabel("share of records")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower left", fontsize=8.5, ncols=2)
    headline(figure, "The same budget tells more where less must be hidden")
    return figure


def table() -> Figure:
    """Show the distribution function that the tutorial on tables rehearses."""
    page = run_page("table")
    policy = page["policies"]["ages at most 5 apart"]
    return md.figures.release(md.tables.Cumulative().release(page["ages"], policy, epsilon=0.5, rng=3))


def week() -> Figure:
    """Show leakage and budgets of the three plans for a week."""
    page = run_page("week")
    figure = new_figure(9.0, 3.6)
    left, right = figure.subplots(1, 2)
    times = np.arange(1, page["REPORTS"] + 1)
    for style, (name, budgets) in zip(("o-", "s--", "^-."), page["plans"].items(), strict=True):
        leaked = md.leakage.temporal(budgets, page["backward"], page["forward"])
        left.plot(times, leaked, style, markersize=4.5, label=name)
        right.plot(times, budgets, style[0], markersize=4.5)
    left.axhline(page["PROMISE"], color="#5b6570", linewidth=0.8, linestyle=(0, (2, 2)))
    left.annotate("promise", (times[-1], page["PROMISE"]), (0, 3), textcoords="offset points", ha="right", fontsize=8.5)
    for panel, said in ((left, "leakage of all reports, in nats"), (right, "budget ε of the report, in nats")):
        panel.set_ylim(bottom=0)
        panel.set_xlabel("report")
        panel.set_ylabel(said)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    headline(figure, "Four larger budgets keep the same promise as fourteen small ones")
    return figure


def sweep() -> Figure:
    """Show the costs of the sweep of its page."""
    page = (FOLDER.parent / "howto/sweep.md").read_text(encoding="utf-8")
    [text] = re.findall(r":caption: sweep\.toml\n\n(.*?)^```", page, flags=re.M | re.S)
    asked = md.sweep.parse(text)
    with tempfile.TemporaryDirectory() as folder:
        return costs_figure(asked, md.sweep.run(asked, folder, jobs=1))


PICTURES: dict[str, Callable[[], Figure]] = {
    make.__name__: make
    for make in (channels, attack, leakage, policy, dithering, figure_answers, trace, databases, table, week, sweep)
}


def main() -> None:
    """Write the pictures named, or all."""
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or PICTURES:
        with report_style():
            PICTURES[name]().savefig(FOLDER / f"{name}.png", dpi=160, metadata={"Software": None})
        print(name)


if __name__ == "__main__":
    main()
