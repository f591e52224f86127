"""PGLP (Cao et al. 2020): its Figures 6 to 10 drawn from real check-ins and trajectories, and its claims judged."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure as Picture

from papers.drawing import COLOURS, finish, label, line, panels
from papers.experiments import Experiment, Row, Rows
from papers.pglp_runs import EXPERIMENTS, REPAIR_EXAMPLE, REPAIRS, SINGLE, TRACES
from papers.showing import Figure, Verdict

__all__ = ["EXPERIMENTS", "FIGURES", "smooth"]

MEASURES = {"E_eu": "E_eu (km)", "E_r": "E_r (wrong region)", "E_poi": "E_poi (wrong category)"}
# An error is better if it is lower by more than this share; smaller differences are rounding.
SAME = 1e-6
# Means over samples are equal if they differ by less than this share.
SAMPLED = 0.01


def noise(rows: Rows) -> Picture:
    """Draw Figure 6: errors by ε, a column for each policy."""
    policies, epsilons = _values(rows, "policy"), _values(rows, "epsilon")
    picture, all_axes = panels(len(policies), 3, width=2.4, height=2.0)
    for place, axes in enumerate(all_axes):
        policy, measure = policies[place % len(policies)], list(MEASURES)[place // len(policies)]
        for kind, mechanism in enumerate(("P-LM", "P-PIM", "LP")):
            own = _where(rows, policy=policy, mechanism=mechanism)
            axes.plot([r["epsilon"] for r in own], [r[measure] for r in own], **line(kind), label=mechanism)
        first, last = place % len(policies) == 0, place // len(policies) == 2
        label(
            axes,
            "ε per edge" if last else "",
            MEASURES[measure] if first else "",
            policy if place < len(policies) else "",
        )
        axes.set_ylim(0, 1.05 * max(row[measure] for row in rows))
        axes.set_xticks(epsilons)
    return finish(picture, "P-PIM errs less than P-LM, the LP channel less than both", legend=all_axes[0])


def judge_noise(rows: Rows) -> Verdict:
    """Judge Figure 6 for each policy, ε and measure."""
    found = _by_mechanism(rows)
    cases = [(mechanisms, measure) for mechanisms in found.values() for measure in MEASURES]
    held = sum(m["P-PIM"][measure] <= m["P-LM"][measure] * (1 + SAME) for m, measure in cases)
    gains = [1 - m["P-PIM"]["E_eu"] / m["P-LM"]["E_eu"] for m in found.values()]
    best = [1 - m["LP"]["E_eu"] / m["P-PIM"]["E_eu"] for m in found.values()]
    text = (
        f"P-PIM is at least as good in {held} of {len(cases)} cases. Its E_eu is {_span(gains)} lower than that of "
        f"P-LM. The LP channel of the same policy and answers minimises it, and is another {_span(best)} lower."
    )
    return Verdict(held, len(cases), text)


def policies_compared(rows: Rows) -> Picture:
    """Draw Figure 7: errors by ε and policy, in the upper row with noise over the whole map, below within the block."""
    picture, all_axes = panels(3, 2, width=3.0, height=2.3)
    for place, axes in enumerate(all_axes):
        measure, mechanism = list(MEASURES)[place % 3], ("P-PIM", "P-PIM, block")[place // 3]
        for kind, policy in enumerate(_values(rows, "policy")):
            own = _where(rows, policy=policy, mechanism=mechanism)
            axes.plot([r["epsilon"] for r in own], [r[measure] for r in own], **line(kind), label=policy)
        title = ("answers: the whole map", "answers: the secret's own block")[place // 3]
        label(axes, "ε per edge" if place > 2 else "", MEASURES[measure], title)
        axes.set_ylim(-0.02 * max(row[measure] for row in rows), 1.05 * max(row[measure] for row in rows))
        axes.set_xticks(_values(rows, "epsilon"))
    return finish(picture, "Region and category are kept only where answers stay in the block", legend=all_axes[0])


def judge_policies(rows: Rows) -> Verdict:
    """Judge Figure 7 by the algorithm as printed, whose noise may lead out of the secret's block."""
    graphs = {"E_eu": "G_k9", "E_r": "G_k25", "E_poi": "G_poi"}
    found, epsilons = _by_mechanism(rows), _values(rows, "epsilon")
    claims, best = [], []
    for measure, graph in graphs.items():
        for epsilon in epsilons:
            errors = {policy: found[policy, epsilon]["P-PIM"][measure] for policy in _values(rows, "policy")}
            least = min(errors, key=errors.__getitem__)
            best.append(least == graph)
        if measure != "E_eu":
            claims += [found[graph, epsilon]["P-PIM"][measure] == 0 for epsilon in epsilons]
    wrong = [found["G_k25", epsilon]["P-PIM"]["E_r"] for epsilon in epsilons]
    other = [found["G_poi", epsilon]["P-PIM"]["E_poi"] for epsilon in epsilons]
    inside = [
        found[graph, epsilon][name][measure]
        for measure, graph in (("E_r", "G_k25"), ("E_poi", "G_poi"))
        for epsilon in epsilons
        for name in ("P-PIM, block", "LP, block")
    ]
    text = (
        f"the named policy is best in {sum(best)} of {len(best)} cases. E_r or E_poi is 0 in {sum(claims)} of "
        f"{len(claims)}, as noise covers the whole map: E_r is {_span(wrong)} under G_k25, E_poi {_span(other)} under "
        "G_poi. Within the secret's own block, P-PIM and the LP channel give "
        f"{'0 throughout' if max(inside) == 0 else _span(inside)}."
    )
    return Verdict(sum(best) + sum(claims), len(best) + len(claims), text)


def repairs(rows: Rows) -> Picture:
    """Draw Figure 8: errors and times by the size of the constrained domain, a column for each policy."""
    policies, sizes = _values(rows, "policy"), _values(rows, "size")
    picture, all_axes = panels(len(policies), 2, width=3.0, height=2.3)
    for place, axes in enumerate(all_axes):
        policy, measured = policies[place % len(policies)], ("error", "seconds")[place // len(policies)]
        for kind, (method, name) in enumerate((("area", "least area (Algorithm 4)"), ("nearest", "nearest node"))):
            means = [
                np.mean([r[f"{method}_{measured}"] for r in _where(rows, policy=policy, size=size)]) for size in sizes
            ]
            axes.plot(sizes, means, **line(kind), label=name)
        first, below = place % len(policies) == 0, place >= len(policies)
        name = ("E_eu (km)", "processor time (s)")[below]
        label(axes, "possible states" if below else "", name if first else "", "" if below else policy)
        axes.set_ylim(bottom=0)
    return finish(
        picture, "Least area and nearest node mostly tie; among few states least area errs more", legend=all_axes[0]
    )


def judge_repairs(rows: Rows) -> Verdict:
    """Judge Figure 8 for each constrained domain."""
    ratios = [row["area_error"] / row["nearest_error"] for row in rows]
    held = sum(ratio <= 1 + SAMPLED for ratio in ratios)
    worst = rows[int(np.argmax(ratios))]
    better = sum(ratio < 1 - SAMPLED for ratio in ratios)
    slower = np.sum([row["area_seconds"] for row in rows]) / np.sum([row["nearest_seconds"] for row in rows])
    found = (
        f"Algorithm 4 is at least as good on {held} of {len(rows)} random constrained domains, and better by more "
        f"than 1 % on {better}. Its E_eu is {float(np.median(ratios)):.2f} times that of the baseline in the median, "
        f"{min(ratios):.2f} at best, and {max(ratios):.2f} at worst ({worst['policy']}, {worst['size']} possible "
        f"states). It takes {slower:.1f} times as long."
    )
    return Verdict(held, len(rows), found)


def repair_example(rows: Rows) -> Picture:
    """Draw the counterexample: the possible cells, and the edges that each method adds."""
    side = int(REPAIR_EXAMPLE.full["side"])
    picture, all_axes = panels(len(rows), width=3.6, height=4.2)
    for axes, row in zip(all_axes, rows, strict=True):
        edges = [tuple(map(int, edge.split("–"))) for edge in row["edges"].split()]
        for first, second in edges:
            ends = np.array([[first % side, first // side], [second % side, second // side]]) + 0.5
            axes.plot(*ends.T, color=COLOURS[0], linewidth=2)
        for node in sorted({node for edge in edges for node in edge}):
            axes.plot(node % side + 0.5, node // side + 0.5, "o", color="#000000", markersize=8)
            axes.annotate(
                str(node), (node % side + 0.5, node // side + 0.5), xytext=(8, -5), textcoords="offset points"
            )
        name = {"area": "least area (Algorithm 4)", "nearest": "nearest node"}[row["method"]]
        label(axes, "cells", "cells", f"{name}\nhull {row['area']:.0f} cells², E_eu {row['snapped']:.3f}")
        axes.set_xlim(0, side)
        axes.set_ylim(0, side)
        axes.set_xticks(range(side + 1))
        axes.set_yticks(range(side + 1))
        axes.grid(True)
        axes.set_aspect("equal")
    return finish(picture, "Four possible cells on which the least area errs more")


def judge_repair_example(rows: Rows) -> Verdict:
    """Judge the claim "always" by one counterexample."""
    found = {row["method"]: row for row in rows}
    area, nearest = found["area"], found["nearest"]
    text = (
        f"the exact errors are {area['snapped']:.3f} cells (Algorithm 4) and {nearest['snapped']:.3f} (baseline), and "
        f"without snapping {area['drawn']:.2f} and {nearest['drawn']:.2f}. Algorithm 4 ends with more edges "
        f"({area['edges']}) than the baseline ({nearest['edges']}), and with a hull of {area['area']:.0f} instead of "
        f"{nearest['area']:.0f} cells²."
    )
    return Verdict(int(area["snapped"] <= nearest["snapped"]), 1, text)


def traces(rows: Rows) -> Picture:
    """Draw Figure 9: the error over time under G_k9, and its mean by policy, on the first data set."""
    data, policies = rows[0]["data"], _values(rows, "policy")
    picture, (left, right) = panels(2, width=4.4)
    for kind, mechanism in enumerate(("P-LM", "P-PIM")):
        own = [r for r in _where(rows, data=data, policy=policies[0], mechanism=mechanism) if r["step"] > 0]
        left.plot([r["step"] for r in own], smooth([r["error"] for r in own]), **line(kind), label=mechanism)
        means = [_where(rows, data=data, policy=policy, mechanism=mechanism, step=0)[0]["error"] for policy in policies]
        right.bar(
            np.arange(len(policies)) + 0.4 * kind - 0.2,
            means,
            0.36,
            color=COLOURS[kind],
            hatch=("", "//")[kind],
            ec="white",
        )
    label(left, "step", "E_eu (km)", f"{data}, {policies[0]}, mean over 5 steps")
    label(right, "policy", "", "mean over all steps")
    right.set_xticks(range(len(policies)), policies)
    left.set_ylim(bottom=0)
    return finish(picture, "Along trajectories, too, the hull's noise is smaller", legend=left)


def judge_traces(rows: Rows) -> Verdict:
    """Judge Figure 9: under each policy, P-PIM is better and errors rise; and G_k9 is the best policy."""
    data, policies = rows[0]["data"], _values(rows, "policy")
    mean = {
        (policy, name): _where(rows, data=data, policy=policy, mechanism=name, step=0)[0]["error"]
        for policy in policies
        for name in ("P-LM", "P-PIM")
    }
    better = [mean[policy, "P-PIM"] <= mean[policy, "P-LM"] for policy in policies]
    rises = []
    for policy in policies:
        own = [r["error"] for r in _where(rows, data=data, policy=policy, mechanism="P-PIM") if r["step"] > 1]
        half = len(own) // 2
        rises.append(float(np.mean(own[half:]) / np.mean(own[:half])))
    least = [min(policies, key=lambda p, name=name: mean[p, name]) == policies[0] for name in ("P-LM", "P-PIM")]
    gains = [1 - mean[policy, "P-PIM"] / mean[policy, "P-LM"] for policy in policies]
    found = (
        f"on {data} the error of P-PIM is below that of P-LM under {sum(better)} of {len(policies)} policies (by "
        f"{_span(gains)}). {policies[0]} has the least mean error under {sum(least)} of 2 mechanisms. In the second "
        "half of the steps the error of P-PIM is "
        f"{', '.join(f'{rise:.2f}' for rise in rises)} times that in the first, but there are few trajectories."
    )
    held = sum(better) + sum(least) + sum(rise > 1 for rise in rises)
    return Verdict(held, len(better) + len(least) + len(rises), found)


def traces_by_policy(rows: Rows) -> Picture:
    """Draw Figure 10: P-PIM under all policies over time, a panel for each data set."""
    picture, all_axes = panels(len(_values(rows, "data")), width=4.4)
    for axes, data in zip(all_axes, _values(rows, "data"), strict=True):
        for kind, policy in enumerate(_values(rows, "policy")):
            own = [r for r in _where(rows, data=data, policy=policy, mechanism="P-PIM") if r["step"] > 0]
            axes.plot([r["step"] for r in own], smooth([r["error"] for r in own]), **line(kind), label=policy)
        label(axes, "step", "E_eu (km)" if axes is all_axes[0] else "", f"{data}, mean over 5 steps")
        axes.set_ylim(bottom=0)
    return finish(picture, "Smaller blocks, smaller errors", legend=all_axes[0])


def judge_traces_by_policy(rows: Rows) -> Verdict:
    """Judge Figure 10: G_k9 is compared at each step of each data set, and the data sets with each other."""
    policies, sets = _values(rows, "policy"), _values(rows, "data")
    held = cases = 0
    for data in sets:
        curves = {
            policy: smooth(
                [r["error"] for r in _where(rows, data=data, policy=policy, mechanism="P-PIM") if r["step"] > 0]
            )
            for policy in policies
        }
        best = [
            min(policies, key=lambda p, k=k: curves[p][k]) == policies[0] for k in range(1, len(curves[policies[0]]))
        ]
        held, cases = held + sum(best), cases + len(best)
    steps = (held, cases)
    means = {data: _where(rows, data=data, policy=policies[0], mechanism="P-PIM", step=0)[0] for data in sets}
    text = "; ".join(
        f"{data}: {row['error']:.2f} km among {row['members']:.0f} possible states" for data, row in means.items()
    )
    if len(sets) > 1:
        held, cases = held + (means["check-ins"]["error"] < means["GeoLife"]["error"]), cases + 1
    found = (
        f"{policies[0]} is the best policy at {steps[0]} of {steps[1]} steps after the first, in the mean over five. "
        f"Its mean errors are {text}. Our check-ins are of New York, not Los Angeles, in cells of 0.89, not 0.37 km."
    )
    return Verdict(held, cases, found)


def smooth(values: list[float], window: int = 5) -> list[float]:
    """Return means over a few neighbouring steps, as both papers draw them."""
    kernel = np.ones(min(window, len(values)))
    means = np.convolve(values, kernel, "same") / np.convolve(np.ones(len(values)), kernel, "same")
    return [float(mean) for mean in means]


def _by_mechanism(rows: Rows) -> dict[tuple[str, float], dict[str, Row]]:
    found: dict[tuple[str, float], dict[str, Row]] = {}
    for row in rows:
        found.setdefault((row["policy"], row["epsilon"]), {})[row["mechanism"]] = row
    return found


def _where(rows: Rows, **values: object) -> Rows:
    return [row for row in rows if all(row[name] == value for name, value in values.items())]


def _values(rows: Rows, column: str) -> list:
    return list(dict.fromkeys(row[column] for row in rows))


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %"


def _span(parts: list[float]) -> str:
    """Return the range from the least to the largest share, in per cent."""
    return f"{_percent(min(parts))} to {_percent(max(parts))}" if max(parts) > min(parts) else _percent(parts[0])


def _figure(number: str, title: str, claim: str, experiment: Experiment, draw, judge, alt: str) -> Figure:
    return Figure(f"pglp_{number}", f"PGLP, Figure {title}", claim, experiment, draw, judge, "pglp", alt)


FIGURES = (
    _figure(
        "6",
        "6",
        "P-PIM has better utility than P-LM for all policies and ε.",
        SINGLE,
        noise,
        judge_noise,
        "Three errors against ε by policy, for P-LM, P-PIM and the LP channel",
    ),
    _figure(
        "7",
        "7",
        "G_k9, G_k25 and G_poi are best for E_eu, E_r and E_poi; E_r is 0 under G_k25, and E_poi under G_poi.",
        SINGLE,
        policies_compared,
        judge_policies,
        "Three errors against ε by policy, with answers on the map and within the block",
    ),
    _figure(
        "8",
        "8",
        "Algorithm 4 always has better utility than the baseline, at a higher runtime.",
        REPAIRS,
        repairs,
        judge_repairs,
        "Error and time of two repairs against the number of possible states",
    ),
    _figure(
        "8_example",
        "8, one domain",
        "Algorithm 4 always has better utility than the baseline.",
        REPAIR_EXAMPLE,
        repair_example,
        judge_repair_example,
        "Four cells on a grid with the edges of each repair",
    ),
    _figure(
        "9",
        "9",
        "P-PIM has better utility than P-LM along trajectories; errors increase with time, and are least under G_k9.",
        TRACES,
        traces,
        judge_traces,
        "Error against step for two mechanisms, and mean errors by policy",
    ),
    _figure(
        "10",
        "10",
        "G_k9 is best at all times on both data sets. Check-ins have better utility than GeoLife, because fewer "
        "states are possible.",
        TRACES,
        traces_by_policy,
        judge_traces_by_policy,
        "Error against step for three policies on two data sets",
    ),
)
