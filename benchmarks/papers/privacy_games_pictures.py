"""The pictures of Privacy Games (Shokri 2015), Figures 2 to 8."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from papers.drawing import finish, label, line, logarithmic, panels
from papers.experiments import Row, Rows
from papers.privacy_games_runs import SHARES

__all__ = [
    "MECHANISMS",
    "approximation_picture",
    "bayes_against_optimal",
    "bayes_of_two",
    "cost_against_privacy",
    "informed_adversaries",
    "joint_privacy",
    "privacy_against_epsilon",
    "scenario_3_lines",
    "trios",
    "users_of",
]

MECHANISMS = ("differential", "distortion", "joint")

Trio = dict[str, Row]


def trios(rows: Rows) -> Iterator[Trio]:
    """Yield the rows of the three mechanisms that are compared with each other."""
    for start in range(0, len(rows), 3):
        yield {row["mechanism"]: row for row in rows[start : start + 3]}


def privacy_against_epsilon(rows: Rows) -> Picture:
    """Draw Figure 2(a): a line for each user."""
    picture, (axes,) = panels(width=7.0, height=3.6)
    for number, user in enumerate(users_of(rows)):
        own = [row for row in rows if row["user"] == user and row["mechanism"] == "differential"]
        axes.plot([r["epsilon"] for r in own], [r["optimal"] for r in own], **line(number), label=f"user {user}")
    label(axes, "ε of the differential mechanism (per km)", "error of the optimal attack (km)")
    axes.set_ylim(bottom=0)
    return finish(picture, "The optimal attack errs less as ε grows", legend=axes, columns=5)


def cost_against_privacy(rows: Rows) -> Picture:
    """Draw Figure 2(b): a dot for each user and ε."""
    picture, (axes,) = panels(width=7.0, height=3.8)
    for number, mechanism in enumerate(MECHANISMS):
        own = [row for row in rows if row["mechanism"] == mechanism]
        style = line(number, lines=False) | {"markersize": (8, 4.5, 4)[number]}
        if number == 0:
            style |= {"markerfacecolor": "none"}
        axes.plot([r["optimal"] for r in own], [r["cost"] for r in own], **style, label=mechanism)
    label(axes, "error of the optimal attack (km)", "cost: probability that the answer is wrong")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    return finish(picture, "For the same error of the attack, distortion privacy alone costs least", legend=axes)


def bayes_of_two(rows: Rows) -> Picture:
    """Draw Figure 3."""
    picture, (axes,) = panels(width=5.2, height=4.4)
    cases = list(trios(rows))
    axes.plot(
        [c["distortion"]["bayes"] for c in cases],
        [c["differential"]["bayes"] for c in cases],
        **line(0, lines=False),
        label="a user and an ε",
    )
    _diagonal(axes, cases, "bayes")
    label(axes, "Bayesian attack's error, distortion mechanism (km)", "… differential mechanism (km)")
    return finish(picture, "The Bayesian attack errs more under differential privacy", legend=axes)


def bayes_against_optimal(rows: Rows) -> Picture:
    """Draw Figure 4."""
    picture, all_axes = panels(3, width=3.3, height=3.3)
    cases = list(trios(rows))
    for number, (axes, mechanism) in enumerate(zip(all_axes, MECHANISMS, strict=True)):
        axes.plot(
            [c[mechanism]["optimal"] for c in cases],
            [c[mechanism]["bayes"] for c in cases],
            **line(number, lines=False),
        )
        _diagonal(axes, cases, "bayes")
        label(axes, "optimal attack's error (km)", "Bayesian attack's error (km)" if number == 0 else "", mechanism)
    return finish(picture, "The Bayesian attack overstates privacy, most under differential and joint mechanisms")


def joint_privacy(rows: Rows) -> Picture:
    """Draw Figure 5."""
    picture, (axes,) = panels(width=5.2, height=4.4)
    cases = list(trios(rows))
    for number, mechanism in enumerate(("differential", "distortion")):
        axes.plot(
            [c["joint"]["optimal"] for c in cases],
            [c[mechanism]["optimal"] for c in cases],
            **line(number, lines=False),
            label=mechanism,
        )
    _diagonal(axes, cases, "optimal")
    label(axes, "optimal attack's error, joint mechanism (km)", "… one requirement alone (km)")
    return finish(picture, "The joint mechanism's privacy is the floor's", legend=axes)


def informed_adversaries(rows: Rows) -> Picture:
    """Draw Figure 6: a panel for each share of better information."""
    picture, all_axes = panels(len(SHARES) + 1, width=2.7, height=3.0)
    cases = list(trios(rows))
    columns = ["optimal", *(f"informed_{share:g}" for share in SHARES)]
    titles = ["as informed as assumed", *(f"{100 * share:.0f} % of doubt removed" for share in SHARES)]
    for number, (axes, column, title) in enumerate(zip(all_axes, columns, titles, strict=True)):
        axes.plot(
            [c["distortion"][column] for c in cases],
            [c["differential"][column] for c in cases],
            **line(number, lines=False),
        )
        _diagonal(axes, cases, "optimal")
        label(axes, "distortion mechanism (km)", "differential mechanism (km)" if number == 0 else "", title)
    return finish(picture, "Error of the optimal attack when the adversary knows more than was assumed")


def scenario_3_lines(rows: Rows) -> Picture:
    """Draw Figure 7: privacy and cost of all experiments, sorted by the joint mechanism."""
    picture, axes = panels(2, width=4.6, height=3.4)
    titles = ("optimal attack's error (km)", "cost: probability of a wrong answer")
    for panel, column, title in zip(axes, ("optimal", "cost"), titles, strict=True):
        cases = sorted(trios(rows), key=lambda case: case["joint"][column])
        places = np.arange(1, len(cases) + 1)
        for number, mechanism in enumerate(MECHANISMS):
            style = line(number, lines=False) | {"markersize": 2.5}
            if mechanism == "joint":
                style |= {"linestyle": "-", "marker": None}
            panel.plot(places, [case[mechanism][column] for case in cases], **style, label=mechanism)
        label(panel, "experiment, sorted by the joint mechanism", title)
        panel.set_ylim(bottom=0)
    return finish(picture, "Where the floor binds, the joint mechanism costs more than either alone", legend=axes[0])


def approximation_picture(rows: Rows) -> Picture:
    """Draw Figure 8: error, time, and the remaining ε, which the paper's figure does not show."""
    picture, (errors, times, epsilons) = panels(3, width=3.3, height=3.2)
    exact = {row["user"]: row for row in rows if row["radius"] == 0}
    for number, user in enumerate(exact):
        own = [row for row in rows if row["user"] == user and row["radius"] > 0]
        radii = [row["radius"] for row in own]
        style = line(number) | {"label": f"user {user}"}
        errors.plot(radii, [exact[user]["optimal"] - row["optimal"] for row in own], **style)
        times.plot(radii, [row["seconds"] for row in own], **style)
        # A constant answer has ε = 0, which a logarithmic axis lacks.
        told = [row for row in own if row["tight_epsilon"] > 0.01]
        # The ε between two radii is unknown; it does not change gradually.
        radii, left = [row["radius"] for row in told], [row["tight_epsilon"] for row in told]
        epsilons.plot(radii, left, **style, drawstyle="steps-post")
    logarithmic(times, "y")
    logarithmic(epsilons, "y")
    label(errors, "radius (km)", "distortion lost (km)", "privacy lost")
    label(times, "radius (km)", "seconds (HiGHS)", "time")
    label(epsilons, "radius (km)", "tight ε per km, at least", "the ε that is left")
    return finish(picture, "Bounds dropped beyond a radius: less time, and another ε", legend=errors)


def users_of(rows: Rows) -> list[int]:
    """Return the numbers of the users."""
    return sorted({row["user"] for row in rows})


def _diagonal(axes: Axes, cases: list[Trio], column: str) -> None:
    """Draw the line of equal values."""
    end = 1.05 * max(row[column] for case in cases for row in case.values())
    axes.plot([0, end], [0, end], color="#59636e", linewidth=0.8, linestyle="--", label="equal")
    axes.set_xlim(0, end)
    axes.set_ylim(0, end)
    axes.set_aspect("equal")
