"""Blowfish (He, Machanavajjhala and Ding 2014): its Figures 1 and 2 drawn, and their claims judged."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure as Picture

from papers.blowfish_runs import EXPERIMENTS, KINDS, KMEANS, LEMMA, PRIVATE, RANGES
from papers.drawing import finish, label, line, logarithmic, panels
from papers.experiments import Row, Rows
from papers.showing import Figure, Verdict

__all__ = ["EXPERIMENTS", "FIGURES"]

DP = "differential privacy"


def kmeans_picture(rows: Rows) -> Picture:
    """Draw objectives against ε, a column for each data set; the upper row uses the correct sensitivity."""
    names = [name for name in _values(rows, "data") if not name.endswith(("10 %", "all"))]
    picture, axes = panels(len(names), 2, width=3.5, height=2.7)
    for index, axis in enumerate(axes):
        way, name = (PRIVATE, LEMMA)[index // len(names)], names[index % len(names)]
        own = [row for row in rows if row["data"] == name and row["way"] == way]
        for number, policy in enumerate(_values(own, "policy")):
            points = [row for row in own if row["policy"] == policy]
            axis.plot([r["epsilon"] for r in points], [r["mean"] for r in points], **line(number), label=policy)
            axis.vlines(
                [r["epsilon"] for r in points],
                [r["low"] for r in points],
                [r["high"] for r in points],
                color=line(number)["color"],
                linewidth=1,
            )
        both = [row for row in rows if row["data"] == name]
        axis.set_ylim(0.9, 1.15 * max(max(row["high"], row["mean"]) for row in both))
        logarithmic(axis, "y")
        axis.legend(fontsize=7.5, loc="upper right")
        title = f"{name}, {way}" + (": not private" if way == LEMMA else "")
        label(
            axis, "ε" if index >= len(names) else "", "objective / without privacy" if name == names[0] else "", title
        )
    return finish(picture, "k-means: what a policy gains depends on edges that cross clusters")


def judge_kmeans(rows: Rows) -> Verdict:
    """Judge Figure 1(a) to 1(c): under policies the objective is below five times the objective without privacy."""
    kept = [row for row in rows if row["policy"] != DP and not row["data"].endswith(("10 %", "all"))]
    private = [row for row in kept if row["way"] == PRIVATE]
    lemma = [row for row in kept if row["way"] == LEMMA]
    below, below_lemma = (sum(row["mean"] < 5 for row in part) for part in (private, lemma))
    ratios = [row["mean"] / _without_policy(rows, row)["mean"] for row in private]
    better = sum(ratio < 1 for ratio in ratios)
    worst = max(row["mean"] for row in rows if row["policy"] == DP and row["way"] == PRIVATE)
    found = (
        f"the factor is below 5 in {below} of {len(private)} cases with the sensitivity that holds, and in "
        f"{below_lemma} of {len(lemma)} by Lemma 6.1, which is not private if an edge crosses a cluster. "
        f"Differential privacy reaches {worst:.1f}; the policy is better in {better} of {len(private)} cases."
    )
    return Verdict(below, len(private), found)


def size_picture(rows: Rows) -> Picture:
    """Draw the objective under differential privacy as a multiple of the policy's objective, by size of the data."""
    sizes = [name for name in _values(rows, "data") if name.startswith("skin")] or _values(rows, "data")
    shown = {name: _largest_theta([row for row in rows if row["data"] == name]) for name in sizes}
    return _gains_picture(rows, shown, "What the policy gains, by the size of the data")


def attribute_picture(rows: Rows) -> Picture:
    """Draw the gain from protecting one attribute at a time, a line for each data set."""
    shown = dict.fromkeys(_values(rows, "data"), "attribute")
    return _gains_picture(rows, shown, "What protecting one attribute at a time gains")


def _gains_picture(rows: Rows, shown: Mapping[str, str], title: str) -> Picture:
    """Draw the gain of a policy against ε, with a line for each data set; `shown` names the policy of each data set."""
    picture, axes = panels(2, width=4.3, height=3.1)
    for axis, way in zip(axes, (PRIVATE, LEMMA), strict=True):
        for number, (name, policy) in enumerate(shown.items()):
            points = [row for row in rows if (row["data"], row["way"], row["policy"]) == (name, way, policy)]
            axis.plot(
                [row["epsilon"] for row in points], [_gain(rows, row) for row in points], **line(number), label=name
            )
        axis.axhline(1, color="#59636e", linewidth=0.8)
        axis.set_ylim(0, 1.1 * axis.get_ylim()[1])
        label(axis, "ε", "objective without / with the policy", way + (": not private" if way == LEMMA else ""))
    return finish(picture, title, legend=axes[0])


def judge_sizes(rows: Rows) -> Verdict:
    """Judge Figure 1(d): the policy improves the objective in every case."""
    sizes = [name for name in _values(rows, "data") if name.startswith("skin")] or _values(rows, "data")
    cases = [
        row
        for name in sizes
        for row in rows
        if row["data"] == name
        and row["way"] == PRIVATE
        and row["policy"] == _largest_theta([other for other in rows if other["data"] == name])
    ]
    gains = [_gain(rows, row) for row in cases]
    held = sum(gain > 1 for gain in gains)
    found = (
        f"with the sensitivity that holds it does in {held} of {len(cases)} cases, by factors of {min(gains):.2f} to "
        f"{max(gains):.2f}."
    )
    return Verdict(held, len(cases), found)


def judge_attribute(rows: Rows) -> Verdict:
    """Judge Figure 1(e): policies gain a factor of ten on skin and simulated points, and little on places."""
    own = [row for row in rows if row["policy"] == "attribute"]
    gains = {way: [_gain(rows, row) for row in own if row["way"] == way] for way in (PRIVATE, LEMMA)}
    small = [row for row in own if row["way"] == PRIVATE and row["data"] != "check-ins"]
    held = sum(_gain(rows, row) >= 10 for row in small)
    found = (
        f"the factor is ten in {held} of {len(small)} cases outside the check-ins. Factors are "
        f"{min(gains[PRIVATE]):.2f} to {max(gains[PRIVATE]):.2f} with the sensitivity that holds, and "
        f"{min(gains[LEMMA]):.2f} to {max(gains[LEMMA]):.2f} by Lemma 6.1."
    )
    return Verdict(held, len(small), found)


def partition_picture(rows: Rows) -> Picture:
    """Draw the objective against ε for each number of blocks."""
    picture, axes = panels(2, width=4.3, height=3.3)
    name = next(row["data"] for row in rows if row["policy"] != DP)
    for axis, way in zip(axes, (PRIVATE, LEMMA), strict=True):
        own = [row for row in rows if row["data"] == name and row["way"] == way and row["policy"] != "attribute"]
        for number, policy in enumerate(_values(own, "policy")):
            points = [row for row in own if row["policy"] == policy]
            axis.plot([r["epsilon"] for r in points], [r["mean"] for r in points], **line(number), label=policy)
        logarithmic(axis, "y")
        label(axis, "ε", "objective / without privacy", way + (": not private" if way == LEMMA else ""))
    return finish(picture, f"Protected within blocks of the map: {name}", legend=axes[0])


def judge_partition(rows: Rows) -> Verdict:
    """Judge Figure 1(f): the objective under policies of blocks is below that of the Laplace mechanism."""
    own = [row for row in rows if row["policy"].endswith("blocks") and row["way"] == PRIVATE]
    lemma = [row for row in rows if row["policy"].endswith("blocks") and row["way"] == LEMMA]
    held = sum(_gain(rows, row) > 1 for row in own)
    singles = [row["mean"] for row in own if row["policy"] == _values(own, "policy")[0]]
    found = (
        f"it is smaller in {held} of {len(own)} cases with the sensitivity that holds, and in "
        f"{sum(_gain(rows, row) > 1 for row in lemma)} of {len(lemma)} by Lemma 6.1. With a block for each "
        f"value nothing is protected: the factor, {min(singles):.2f} to {max(singles):.2f}, comes from random starts."
    )
    return Verdict(held, len(own), found)


def ranges_picture(rows: Rows) -> Picture:
    """Draw errors of ranges against ε, a panel for each data set and a line for each θ."""
    names = _values(rows, "data")
    picture, axes = panels(len(names), width=4.5, height=3.4)
    for axis, name in zip(axes, names, strict=True):
        own = [row for row in rows if row["data"] == name]
        for number, theta in enumerate(_values(own, "theta")):
            points = [row for row in own if row["theta"] == theta]
            text = f"θ = {theta}" if theta else "differential privacy"
            axis.plot([r["epsilon"] for r in points], [r["linear"] for r in points], **line(number), label=text)
            axis.plot(
                [r["epsilon"] for r in points],
                [r["planned"] for r in points],
                color=line(number)["color"],
                linewidth=0.7,
            )
        logarithmic(axis, "y")
        label(axis, "ε", "mean squared error of a range (records²)", f"{name}, {own[0]['values']:,} values")
        axis.legend(fontsize=7.5, loc="upper right")
    return finish(picture, "Ranges: the weaker the policy, the smaller the error (thin lines: as planned)")


def judge_ranges(rows: Rows) -> Verdict:
    """Judge Figure 2: with a smaller θ the error is smaller."""
    cases = [row for row in rows if row["theta"]]
    held, gains, planned = 0, [], []
    for row in cases:
        others = [r for r in rows if r["data"] == row["data"] and r["epsilon"] == row["epsilon"]]
        above = min((r for r in others if (r["theta"] or r["values"]) > row["theta"]), key=_theta)
        held += row["linear"] < above["linear"]
        gains.append(next(r for r in others if not r["theta"])["linear"] / row["linear"])
        planned.append(row["linear"] / row["planned"])
    inferred = [row["linear"] / row["inferred"] for row in rows]
    found = (
        f"the error falls with θ in {held} of {len(cases)} cases, and is up to {max(gains):,.0f} times smaller than "
        f"without a policy. It is {min(planned):.2f} to {max(planned):.2f} times the planned one. Isotonic regression "
        f"makes it {min(inferred):.1f} to {max(inferred):.0f} times smaller, and costs no privacy."
    )
    return Verdict(held, len(cases), found)


def _values(rows: Rows, column: str) -> list:
    return list(dict.fromkeys(row[column] for row in rows))


def _gain(rows: Rows, row: Row) -> float:
    return _without_policy(rows, row)["mean"] / row["mean"]


def _theta(row: Row) -> int:
    return row["theta"] or row["values"]


def _largest_theta(rows: Rows) -> str:
    """Return the first policy after differential privacy, which has the largest θ."""
    return _values(rows, "policy")[1]


def _without_policy(rows: Rows, row: Row) -> Row:
    same = ("data", "epsilon", "way")
    return next(r for r in rows if r["policy"] == DP and all(r[key] == row[key] for key in same))


FIGURES = (
    Figure(
        "blowfish_1abc",
        "Blowfish, Figures 1(a) to 1(c)",
        "the Laplace mechanism multiplies the objective of k-means by up to 100, a Blowfish policy by less than 5.",
        KMEANS,
        kmeans_picture,
        judge_kmeans,
        "blowfish",
        "Objective against ε for three data sets and three policies, with both sensitivities",
    ),
    Figure(
        "blowfish_1d",
        "Blowfish, Figure 1(d)",
        "the policy always improves the objective, and less for larger data sets.",
        KMEANS,
        size_picture,
        judge_sizes,
        "blowfish",
        "Gain of the policy against ε, for three sizes of the data",
    ),
    Figure(
        "blowfish_1e",
        "Blowfish, Figure 1(e)",
        "protecting one attribute at a time makes the objective ten times smaller for pixels and simulated points, "
        "and gains little for places.",
        KINDS,
        attribute_picture,
        judge_attribute,
        "blowfish",
        "Gain of the attribute policy against ε, for three data sets",
    ),
    Figure(
        "blowfish_1f",
        "Blowfish, Figure 1(f)",
        "protecting places within blocks makes the objective smaller than with the Laplace mechanism. With a block "
        "for each value, clustering is exact.",
        KINDS,
        partition_picture,
        judge_partition,
        "blowfish",
        "Objective against ε by number of blocks, and for differential privacy",
    ),
    Figure(
        "blowfish_2bc",
        "Blowfish, Figures 2(b) and 2(c)",
        "the error of ranges by the ordered hierarchical mechanism falls with the threshold θ.",
        RANGES,
        ranges_picture,
        judge_ranges,
        "blowfish",
        "Error of ranges against ε by threshold, for two data sets",
    ),
)
