"""Draw the figures of results that the papers do not contain, and judge the claims of these figures."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure as Picture

from papers.drawing import finish, label, line, logarithmic, panels
from papers.errata_runs import ERRATA, NOTES
from papers.experiments import Experiment, Row, Rows
from papers.showing import Figure, Verdict
from papers.unnoticed_runs import BOUNDS, HULL, NOISE, POINTS
from papers.unnoticed_runs import EXPERIMENTS as RUNS

__all__ = ["EXPERIMENTS", "FIGURES"]

EXPERIMENTS: tuple[Experiment, ...] = (*RUNS, ERRATA)

MECHANISMS = ("noise as drawn", "noise snapped to the block", "least-cost channel")


def noise_picture(rows: Rows) -> Picture:
    """Draw errors against ε for each size of a block."""
    sides = sorted({row["side"] for row in rows})
    picture, all_axes = panels(len(sides), width=2.7, height=3.1)
    for axes, side in zip(all_axes, sides, strict=True):
        for number, mechanism in enumerate(MECHANISMS):
            own = [row for row in rows if row["side"] == side and row["mechanism"] == mechanism]
            axes.plot([row["epsilon"] for row in own], [row["error"] for row in own], **line(number), label=mechanism)
        axes.set_xscale("log", base=2)
        epsilons = sorted({row["epsilon"] for row in rows})
        axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
        axes.minorticks_off()
        axes.set_ylim(0.8 * min(row["error"] for row in rows), 1.25 * max(row["error"] for row in rows))
        logarithmic(axes, "y")
        label(axes, "ε per edge", "mean error (cells)" if axes is all_axes[0] else "", f"{side} × {side} cells")
    return finish(picture, "The same guarantee with a fraction of the error", legend=all_axes[0])


def judge_noise(rows: Rows) -> Verdict:
    """Judge whether snapped noise is close to optimal: within a tenth of the error of the least-cost channel."""
    cases = list(_grouped(rows, ("side", "epsilon"), "mechanism"))
    drawn, snapped = (
        [case[name]["error"] / case["least-cost channel"]["error"] for case in cases] for name in MECHANISMS[:2]
    )
    found = (
        f"its error is {min(drawn):.1f} to {max(drawn):.1f} times that of the least-cost channel of the same policy; "
        f"snapped to the cells of the block, {min(snapped):.2f} to {max(snapped):.2f} times (median "
        f"{float(np.median(snapped)):.2f}), and within a tenth of the optimum in "
        f"{sum(ratio <= 1.1 for ratio in snapped)} of {len(cases)} cases. The lower bound is one up to this constant."
    )
    return Verdict(sum(ratio <= 1.1 for ratio in snapped), len(cases), found)


def bounds_picture(rows: Rows) -> Picture:
    """Draw cost and tight ε against the radius."""
    picture, (costs, epsilons) = panels(2, width=4.4, height=3.2)
    dropped = [row for row in rows if row["way"] == "dropped"]
    radii = [row["radius"] for row in dropped]
    for axes, column in ((costs, "cost"), (epsilons, "tight_epsilon")):
        axes.plot(radii, [row[column] for row in dropped], **line(2), label="bounds dropped beyond the radius")
        for number, way in enumerate(("all bounds", "spanner")):
            (value,) = (row[column] for row in rows if row["way"] == way)
            style = line(number, markers=False) | {"linewidth": (3.0, 1.4)[number]}
            axes.plot([min(radii), max(radii)], [value, value], **style, label=f"{way}, certified")
    epsilons.set_ylim(0.4, 2 * max(row["tight_epsilon"] for row in rows))
    logarithmic(epsilons, "y")
    label(costs, "radius (cells)", "cost: probability of a wrong answer")
    label(epsilons, "radius (cells)", "tight ε per cell", "at least, where bounds are dropped")
    return finish(picture, "Dropping bounds saves little cost and loses the privacy", legend=costs, columns=3)


def judge_bounds(rows: Rows) -> Verdict:
    """Judge whether channels with dropped bounds satisfy the required ε."""
    by_way = {row["way"]: row for row in rows if row["way"] != "dropped"}
    dropped = [row for row in rows if row["way"] == "dropped"]
    exact, spanner = by_way["all bounds"], by_way["spanner"]
    kept = sum(row["tight_epsilon"] <= exact["tight_epsilon"] * 1.01 for row in dropped)
    found = (
        f"asked for ε = {exact['tight_epsilon']:g} per cell, channels with bounds dropped have at least "
        f"{min(row['tight_epsilon'] for row in dropped):.1f} to {max(row['tight_epsilon'] for row in dropped):.1f}, to "
        f"save at most {100 * max(1 - row['cost'] / exact['cost'] for row in dropped):.1f} % of the cost. The spanner "
        f"keeps ε, and costs {spanner['cost']:.4f}, {100 * (spanner['cost'] / exact['cost'] - 1):.1f} % more than the "
        f"optimum; it proves that no channel costs less than {spanner['lower_bound']:.4f}."
    )
    return Verdict(kept, len(dropped), found)


def hull_picture(rows: Rows) -> Picture:
    """Draw the points of all prefixes, and those on their hull, which are the pieces of the loss function."""
    picture, (axes,) = panels(width=5.6, height=4.4)
    cloud = [row for row in rows if row["kind"] == "prefix"]
    pieces = sorted((row for row in rows if row["kind"] == "piece"), key=lambda row: row["D"])
    axes.plot(
        [row["D"] for row in cloud], [row["Q"] for row in cloud], "o", color="#9aa4ae", markersize=3, label="prefixes"
    )
    last = pieces[-1]
    axes.plot(
        [0, *(row["D"] for row in pieces), last["D"] + 1 - last["Q"]],
        [0, *(row["Q"] for row in pieces), 1],
        color="#1b1f24",
        linewidth=0.8,
    )
    axes.plot([row["D"] for row in pieces], [row["Q"] for row in pieces], **line(0, lines=False), label="pieces of L")
    axes.plot([0, 1], [0, 1], color="#59636e", linewidth=0.8, linestyle="--")
    axes.set_aspect("equal")
    label(axes, "D: sum of the other row's probabilities", "Q: sum of one row's probabilities")
    return finish(picture, "Only the upper left hull of all prefixes rules the leakage", legend=axes)


def judge_hull_points(rows: Rows) -> Verdict:
    """Judge whether every piece is one of the prefixes, with all prefixes on its hull or below."""
    cloud = np.array([(row["D"], row["Q"]) for row in rows if row["kind"] == "prefix"])
    pieces = np.array([(row["D"], row["Q"]) for row in rows if row["kind"] == "piece"])
    nearest = np.abs(pieces[:, None] - cloud).max(axis=2).min(axis=1)
    found = (
        f"{len(cloud)} prefixes of all ordered pairs of rows make {len(pieces)} pieces of the loss function, each one "
        f"of them (to {nearest.max():.0e})."
    )
    return Verdict(int((nearest < 1e-9).sum()), len(pieces), found)


def sizes_picture(rows: Rows) -> Picture:
    """Draw the numbers of prefixes and pieces."""
    picture, (axes,) = panels(width=6.4, height=3.4)
    states = sorted({row["states"] for row in rows})
    for number, (column, name) in enumerate((("prefixes", "prefixes of all pairs"), ("pieces", "pieces of L"))):
        middles = [float(np.median([row[column] for row in rows if row["states"] == n])) for n in states]
        axes.plot(states, middles, **line(number), label=f"{name}, median")
    axes.set_xscale("log")
    logarithmic(axes, "y")
    axes.set_xticks(states, [f"{n}" for n in states])
    axes.xaxis.minorticks_off()
    label(axes, "states", "number")
    return finish(picture, "A loss function has few pieces", legend=axes)


def judge_sizes(rows: Rows) -> Verdict:
    """Judge whether the hull gives the maximum over all prefixes."""
    largest = max(rows, key=lambda row: row["states"])
    found = (
        f"it equals the maximum over all prefixes to {max(row['difference'] for row in rows):.0e}, in "
        f"{len(rows)} random matrices, for eight values of α from 0.01 to 20. At {largest['states']} states "
        f"{largest['prefixes']:,} prefixes leave {largest['pieces']} pieces."
    )
    return Verdict(sum(row["difference"] < 1e-12 for row in rows), len(rows), found)


def errata_picture(rows: Rows) -> Picture:
    """Draw each true value as a multiple of the stated value."""
    picture, (axes,) = panels(width=7.4, height=0.36 * len(rows) + 0.9)
    places = np.arange(len(rows))[::-1]
    ratios = [row["true"] / row["stated"] for row in rows]
    axes.hlines(places, 1, ratios, color="#59636e", linewidth=1)
    axes.plot(ratios, places, **line(0, lines=False))
    axes.axvline(1, color="#1b1f24", linewidth=0.8)
    for place, row, ratio in zip(places, rows, ratios, strict=True):
        axes.annotate(
            f"{row['stated']:.4g} → {row['true']:.4g}",
            (max(ratio, 1), place),
            (7, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.set_yticks(places, [f"{row['name']} ({row['unit']})" for row in rows])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xscale("log")
    axes.set_xlim(0.6, 2.2 * max(ratios))
    axes.set_xticks([1, 2, 5], ["1", "2", "5"])
    axes.minorticks_off()
    label(axes, "true value as a multiple of the stated value", "")
    axes.grid(False)
    return finish(picture, "Stated and true values")


def judge_errata(rows: Rows) -> Verdict:
    """Judge each statement of a paper, with one sentence for each."""
    lines = [
        f"- **{row['name']}**: {row['stated']:.4f} → {row['true']:.4f} ({row['unit']}). {NOTES[row['name']]}"
        for row in rows
    ]
    held = sum(abs(row["true"] - row["stated"]) <= 1e-3 * abs(row["true"]) for row in rows)
    return Verdict(held, len(rows), "the stated and the computed values:\n\n" + "\n".join(lines))


def _grouped(rows: Rows, keys: tuple[str, ...], column: str) -> Iterator[dict[str, Row]]:
    """Yield groups of rows that agree in `keys`; each group contains rows by their value in `column`."""
    groups: dict[tuple, dict[str, Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), {})[row[column]] = row
    yield from groups.values()


FIGURES = (
    Figure(
        "unnoticed_noise",
        "Noise and the least-cost channel",
        "(PGLP, section 3.3) planar isotropic noise achieves the lower bound of differential privacy in the plane.",
        NOISE,
        noise_picture,
        judge_noise,
        "unnoticed",
        "Mean error against ε for drawn noise, snapped noise and the least-cost channel",
    ),
    Figure(
        "unnoticed_bounds",
        "Bounds dropped, bounds implied",
        "(Privacy Games, appendix C) bounds between places far apart contribute little and can be removed.",
        BOUNDS,
        bounds_picture,
        judge_bounds,
        "unnoticed",
        "Cost and tight ε against the radius of the bounds, of a spanner, and of all bounds",
    ),
    Figure(
        "unnoticed_points",
        "The hull of a loss function",
        "(our own) the pieces of the loss function are the upper left hull of the prefixes of all pairs of rows.",
        POINTS,
        hull_picture,
        judge_hull_points,
        "unnoticed",
        "Prefixes of all pairs of rows, and the few on their hull",
    ),
    Figure(
        "unnoticed_hull",
        "How many pieces a loss function has",
        "(our own) the hull gives the loss function exactly, for all α at once, with few pieces.",
        HULL,
        sizes_picture,
        judge_sizes,
        "unnoticed",
        "Number of prefixes and of pieces against the number of states",
    ),
    Figure(
        "unnoticed_errata",
        "Errata found by running",
        "(all five papers) statements, and formulas computed as printed, give the right numbers.",
        ERRATA,
        errata_picture,
        judge_errata,
        "unnoticed",
        "True value of each erratum as a multiple of the stated one",
    ),
)
