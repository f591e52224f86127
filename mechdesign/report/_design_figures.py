"""Figures of designs: prior, answers, errors of the best attack, and costs beside those of reference mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._check import as_integer, require_kind
from mechdesign.measures import attack
from mechdesign.measures._baselines import Baseline, Reference, baselines, reference_costs
from mechdesign.model._problem import Problem, attack_measure, cost_measure
from mechdesign.model._words import clip, format_bound, percent, short
from mechdesign.report import _maps as maps
from mechdesign.report._style import ACCENT, MUTED, RULE, drawn, is_ours
from mechdesign.synthesis._result import Design

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_PANELS = 6
# Height of a line of the figure of costs, in inches, and largest number of characters of its text.
_LINE, _CHARACTERS = 0.38, 70


@in_own_arithmetic
def prior(design: Design, axes: Axes | None = None) -> Figure:
    """Show the prior of the secrets, on a map or as bars; secrets of probability 0 are hatched or hollow.

    Args:
        design: A design.
        axes: Axes of another figure to draw on; by default those of a new figure.

    Returns:
        The figure.

    Example:
        >>> import mechdesign as md
        >>> problem = md.Problem([0.75, 0.25], [[0, 1], [1, 0]], [md.MetricPrivacy(1, [[0, 1], [1, 0]])])
        >>> prior(md.design(problem)).axes[0].get_ylabel()
        'prior probability'
    """
    require_kind(design, Design, "design", "a Design")
    secrets, numbers = design.problem.secrets, design.problem.prior
    height = maps.height_of_figure(secrets)
    return drawn(axes, height, maps.draw_numbers, secrets, numbers, "prior probability", percent)


@in_own_arithmetic
def answers(design: Design, count: int = _MOST_PANELS, axes: Axes | Sequence[Axes] | None = None) -> Figure:
    """Show the probability of each answer for the most likely secrets, on one scale.

    Args:
        design: A design.
        count: Maximal number of secrets shown, at least 1; secrets of probability 0 are not shown.
        axes: Axes of another figure to draw on, one for each secret; by default those of a new figure.

    Returns:
        The figure, with one panel for each secret.

    Raises:
        InputError: If there is not one of the axes for each secret.

    Example:
        >>> import mechdesign as md
        >>> problem = md.Problem([0.75, 0.25], [[0, 1], [1, 0]], [md.MetricPrivacy(1, [[0, 1], [1, 0]])])
        >>> len(answers(md.design(problem), count=1).axes)
        1
    """
    require_kind(design, Design, "design", "a Design")
    problem = design.problem
    chosen = most_likely(problem.prior, as_integer(count, "count", 1)).tolist()
    names = [clip(maps.name_of(problem.secrets, index), 24) for index in chosen]
    titles = [f"{name}, prior {percent(share)}" for name, share in zip(names, problem.prior[chosen], strict=True)]
    marks = [_own_place(problem, index) for index in chosen]

    # Beside several rows of bars there is no room for more.
    label = "probability of the answer" if maps.is_map(problem.observables) else "probability"

    def draw(*panels: Axes) -> None:
        maps.draw_panels(panels, problem.observables, design.channel.matrix[chosen], titles, marks, label, percent)
        for index, panel, mark in zip(chosen, panels, marks, strict=True):
            if mark is None and (place := _place_elsewhere(problem, index)) is not None:
                for colour, thickness, size in (("black", 4.0, 9), ("white", 1.8, 8)):
                    panel.plot(*place, "x", color=colour, markeredgewidth=thickness, markersize=size, zorder=6)

    number, height = len(chosen), maps.height_of_panels(problem.observables, len(chosen))
    return drawn(axes, height, draw, count=number, shared=not maps.is_map(problem.observables))


@in_own_arithmetic
def errors(design: Design, axes: Axes | None = None) -> Figure:
    """Show the expected error of the optimal attack for each secret, on a map or as bars.

    Args:
        design: A design.
        axes: Axes of another figure to draw on; by default those of a new figure.

    Returns:
        The figure.

    Example:
        >>> import mechdesign as md
        >>> problem = md.Problem([0.75, 0.25], [[0, 1], [1, 0]], [md.MetricPrivacy(1, [[0, 1], [1, 0]])])
        >>> errors(md.design(problem)).axes[0].get_ylabel()
        'expected error'
    """
    require_kind(design, Design, "design", "a Design")
    secrets, label = design.problem.secrets, f"expected error{maps.in_unit(attack_measure(design.problem).unit)}"
    height = maps.height_of_figure(secrets)
    return drawn(axes, height, maps.draw_numbers, secrets, expected_errors(design), label)


@in_own_arithmetic
def costs(design: Design, axes: Axes | None = None) -> Figure:
    """Show the certified cost, its lower bound, and the costs of reference mechanisms on one axis.

    Args:
        design: A design.
        axes: Axes of another figure to draw on; by default those of a new figure.

    Returns:
        The figure.

    Example:
        >>> import mechdesign as md
        >>> problem = md.Problem([0.75, 0.25], [[0, 1], [1, 0]], [md.MetricPrivacy(1, [[0, 1], [1, 0]])])
        >>> costs(md.design(problem)).axes[0].get_xlabel()
        'cost; hollow: does not meet all requirements'
    """
    require_kind(design, Design, "design", "a Design")
    return costs_figure(design, baselines(design.problem), axes)


def costs_figure(design: Design, compared: Sequence[Baseline], axes: Axes | None = None) -> Figure:
    """Return the figure of the cost of a design beside the costs of baselines."""
    problem, proof = design.problem, design.certificate
    lines = [Reference("this design", proof.cost), *reference_costs(problem, compared)]
    if proof.lower_bound > 0:
        lines.insert(0, Reference("lower bound", proof.lower_bound))
    lines.sort(key=lambda each: each.cost)
    return drawn(axes, _LINE * len(lines) + 0.6, draw_costs, lines, cost_measure(problem).unit)


def expected_errors(design: Design) -> Floats:
    """Return the expected error of the best attack for each secret, shape (n,)."""
    problem = design.problem
    return attack.optimal(design.channel, problem.prior, attack_measure(problem).matrix).per_secret


def most_likely(prior: ArrayLike, count: int = _MOST_PANELS) -> Integers:
    """Return the indices of at most `count` possible secrets, most likely first, with ties in index order."""
    probabilities = np.asarray(prior, dtype=np.float64)
    order = np.argsort(-probabilities, kind="stable")[:count].astype(np.int64)
    return order[probabilities[order] > 0]


def _own_place(problem: Problem, index: int) -> int | None:
    """Return the index of the observable that equals the secret at `index`, or None if no observable does."""
    secrets, observables = problem.secrets, problem.observables
    if secrets is None or observables is None:
        return index if secrets is observables else None
    same = secrets.labels == observables.labels and np.array_equal(secrets.points, observables.points)
    return index if same else None


def _place_elsewhere(problem: Problem, index: int) -> tuple[float, float] | None:
    """Return coordinates of the secret at `index` if it lies in the observables' plane, or None."""
    secrets, observables = problem.secrets, problem.observables
    if secrets is None or observables is None or not maps.is_map(observables) or secrets.points.shape[1] != 2:
        return None
    alike = secrets.unit == observables.unit and secrets.geographic == observables.geographic
    return tuple(secrets.points[index].tolist()) if alike else None


def draw_costs(axes: Axes, lines: Sequence[Reference], unit: str) -> None:
    """Draw a dot for each cost, below its name; mechanisms that do not meet all requirements are hollow.

    The cost of this design is rounded up, and its lower bound is rounded down.
    """
    largest = max(each.cost for each in lines) or 1.0
    for line, each in enumerate(reversed(lines)):
        made = each.name == "this design"
        ours = made or each.name == "lower bound"
        colour = ACCENT if ours else MUTED
        axes.plot([0, each.cost], [line, line], color=RULE, linewidth=0.9, zorder=1)
        filled = colour if each.meets else "white"
        axes.plot(each.cost, line, "o", markersize=6, color=colour, markerfacecolor=filled, zorder=3, clip_on=False)
        number = format_bound(each.cost, up=made, digits=5) if ours else short(each.cost, 4)
        paid = f": {number} {unit}".rstrip()
        text = clip(each.name, _CHARACTERS - len(paid)) + paid
        weight = "bold" if made else "normal"
        axes.text(0, line + 0.2, text, va="bottom", fontsize=8.0, color=ACCENT if ours else None, weight=weight)
    axes.set_yticks([])
    if is_ours(axes):
        axes.spines["left"].set_visible(False)
    axes.set_ylim(-0.35, len(lines) - 0.1)
    axes.set_xlim(0, 1.05 * largest)
    maps.number_axis(axes.xaxis, 6, lambda value: short(value, 4))
    note = "" if all(each.meets for each in lines) else "; hollow: does not meet all requirements"
    axes.set_xlabel(f"cost{maps.in_unit(unit)}{note}")


def error_finding(per_secret: ArrayLike, prior: ArrayLike, unit: str) -> str:
    """Return a sentence on the mean error of the best attack, and on secrets whose error is below half the mean."""
    errors, probabilities = np.asarray(per_secret, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    mean = float(probabilities @ errors)
    if mean == 0:
        return "The best attack is never wrong: answers reveal the secret."
    close = float(probabilities[errors < mean / 2].sum())
    rest = f"by less than half of that for {percent(close)} of the prior"
    if close == 0:
        rest = "by at least half of that for every secret"
    return f"The best attack is off by {f'{short(mean)} {unit}'.rstrip()} on average, {rest}."
