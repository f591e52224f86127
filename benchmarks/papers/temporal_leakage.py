"""Temporal leakage (Cao et al. 2019): its Figures 3 to 9 drawn, and its claims about them judged."""

from __future__ import annotations

import math
from itertools import pairwise

from matplotlib.figure import Figure as Picture

from papers.drawing import COLOURS, finish, label, line, logarithmic, panels
from papers.experiments import Experiment, Row, Rows
from papers.showing import Figure, Verdict
from papers.temporal_leakage_counts import ALONE, ALPHA, COUNTS, GROUP, GUESS
from papers.temporal_leakage_pairs import PAIRS
from papers.temporal_leakage_runs import (
    ALLOCATION,
    LOSS,
    OVER_TIME,
    RUNTIME,
    SMOOTHED,
    SUPREMA,
    UTILITY,
)

__all__ = ["EXPERIMENTS", "FIGURES"]

EXPERIMENTS = (OVER_TIME, LOSS, SUPREMA, RUNTIME, SMOOTHED, ALLOCATION, UTILITY, COUNTS, PAIRS)

CORRELATIONS = ("strongest", "moderate", "none")
# Relative rounding error of the stored numbers.
SAME = 1e-8


def over_time(rows: Rows) -> Picture:
    """Draw Figure 3: a panel for each kind of leakage."""
    picture, all_axes = panels(3, width=3.2)
    for axes, column in zip(all_axes, ("BPL", "FPL", "TPL"), strict=True):
        for kind, name in enumerate(CORRELATIONS):
            own = _where(rows, correlation=name)
            axes.plot(
                [r["step"] for r in own],
                [r[column] for r in own],
                **line(kind),
                label="no correlation" if name == "none" else f"{name} correlation",
            )
        label(axes, "release", "leakage (nats)" if column == "BPL" else "", column)
        axes.set_ylim(bottom=0)
    return finish(picture, "Correlated releases leak more than each one's ε", legend=all_axes[0])


def judge_over_time(rows: Rows) -> Verdict:
    """Judge Figure 3 at each release, for each kind of leakage and degree of correlation."""
    epsilon, steps = rows[0]["epsilon"], max(row["step"] for row in rows)
    held = cases = 0
    for row in rows:
        linear = {"BPL": row["step"], "FPL": steps + 1 - row["step"], "TPL": steps}
        for column, most in linear.items():
            share = {"none": (1, 1), "moderate": (1, most), "strongest": (most, most)}[row["correlation"]]
            held += epsilon * share[0] - SAME <= row[column] <= epsilon * share[1] + SAME
            cases += 1
    middle = max(row["TPL"] for row in rows if row["correlation"] == "moderate")
    found = (
        f"this is true of {held} of {cases} values. Under the moderate correlation a release leaks up to {middle:.4f} "
        f"nats, {middle / epsilon:.1f} times its ε."
    )
    return Verdict(held, cases, found)


def loss(rows: Rows) -> Picture:
    """Draw Figure 4: the losses of all pairs of rows, and L, which is their maximum."""
    picture, (axes,) = panels(width=6.4, height=4.0)
    curve = _where(rows, kind="curve")
    alpha = [row["alpha"] for row in curve]
    for kind, pair in enumerate(_pairs(rows)):
        axes.plot(alpha, [row[pair] for row in curve], **line(kind, markers=False), label=f"pair {pair}")
    axes.plot(alpha, [row["L"] for row in curve], color="#000000", linewidth=3.2, alpha=0.35, label="L(α)")
    points = _where(rows, kind="transition")
    axes.plot(
        [r["alpha"] for r in points], [r[r["pair"]] for r in points], "o", color="#000000", ms=6, label="transition"
    )
    meet = [row for row in _where(rows, kind="piece") if row["alpha"] > 0]
    axes.plot(
        [r["alpha"] for r in meet],
        [r["L"] for r in meet],
        "*",
        ms=15,
        mfc="#ffffff",
        mec="#000000",
        label="pieces meet",
    )
    label(axes, "α (nats)", "loss (nats)")
    return finish(picture, "L is the upper envelope of the losses of all pairs of rows", legend=axes, columns=5)


def judge_loss(rows: Rows) -> Verdict:
    """Judge Figure 4: that L is nowhere below a pair, and that the pentagram is not a transition point."""
    pairs = _pairs(rows)
    envelope = all(abs(row["L"] - max(row[pair] for pair in pairs)) < SAME for row in rows)
    meet = [row["alpha"] for row in _where(rows, kind="piece") if row["alpha"] > 0]
    at = {row["alpha"]: row["pair"] for row in _where(rows, kind="transition")}
    coincide = {alpha: pair for alpha in meet for point, pair in at.items() if abs(alpha - point) < SAME}
    others = ", ".join(f"{alpha:.4f} of pair {pair}" for alpha, pair in sorted(at.items()) if alpha not in coincide)
    found = (
        f"L equals the largest of the {len(pairs)} losses at all α{'' if envelope else ', but not everywhere'}. Two "
        f"pieces of L meet at α = {', '.join(f'{alpha:.4f}' for alpha in meet)}. "
        + (
            f"That is a transition point of pair {', '.join(coincide.values())}, which is not on top there; the other "
            f"one is {others}."
            if coincide
            else "No transition point is there."
        )
    )
    return Verdict(envelope + (not coincide), 2, found)


def suprema(rows: Rows) -> Picture:
    """Draw Figure 5: BPL step by step, and its supremum."""
    cases = list(dict.fromkeys((row["case"], row["epsilon"]) for row in rows))
    picture, all_axes = panels(len(cases), width=2.5)
    for axes, (case, epsilon) in zip(all_axes, cases, strict=True):
        own = _where(rows, case=case, epsilon=epsilon)
        axes.plot([r["step"] for r in own], [r["BPL"] for r in own], **line(0), label="BPL, step by step")
        limit = float(own[0]["supremum"])
        if math.isfinite(limit):
            axes.axhline(limit, color="#000000", linestyle="--", linewidth=1.2, label="supremum, Theorem 11")
        label(axes, "release", "BPL (nats)" if axes is all_axes[0] else "", f"{case}\nε = {epsilon:g}")
        logarithmic(axes, "x")
        axes.set_ylim(bottom=0)
    return finish(picture, "Where there is a supremum, it can be far away", legend=all_axes[2], columns=2)


def judge_suprema(rows: Rows) -> Verdict:
    """Judge Figure 5 for each case."""
    last: dict[str, Row] = {row["case"]: row for row in rows}
    ends = {case: (row["BPL"], float(row["supremum"])) for case, row in last.items()}
    steps = max(row["step"] for row in rows)
    within = all(row["BPL"] <= float(row["supremum"]) + SAME for row in rows)
    paper = {case: pair for case, pair in ends.items() if not case.startswith("(e)")}
    held = sum(
        math.isinf(limit) if case[:3] in ("(a)", "(b)") else within and end > 0.999 * limit
        for case, (end, limit) in paper.items()
    )
    texts = [
        f"{case[:3]} {'none' if math.isinf(limit) else f'{limit:.4f}'}, {end:.4f}"
        for case, (end, limit) in ends.items()
    ]
    found = (
        f"the suprema, and BPL after {steps:,} releases: {'; '.join(texts)}. Case (e), with ε slightly below ln(1/q), "
        "is ours: iteration does not find the supremum."
    )
    return Verdict(held, len(paper), found)


def runtime(rows: Rows) -> Picture:
    """Draw Figure 6: four panels of processor time."""
    names = list(dict.fromkeys(row["panel"] for row in rows))
    picture, all_axes = panels(2, 2, width=4.2, height=2.7)
    routes = list(dict.fromkeys(row["route"] for row in rows))
    x = {"by states": "number of states", "precomputation": "number of states", "by releases": "number of releases"}
    for axes, name in zip(all_axes, names, strict=True):
        for kind, route in enumerate(routes):
            own = _where(rows, panel=name, route=route)
            if own or name == "by states":
                axes.plot([r["x"] for r in own], [r["seconds"] for r in own], **line(kind), label=route)
        label(axes, x.get(name, "α (nats)"), "processor time (s)", _PANELS[name])
        logarithmic(axes, "x")
        logarithmic(axes, "y")
    return finish(picture, "A hull replaces the paper's three routes", legend=all_axes[0], columns=5)


_PANELS = {
    "by states": "one value of L(α)",
    "precomputation": "precomputation, and one value",
    "by releases": "all releases, precomputation included",
    "by α": "one value, by α",
}


def judge_runtime(rows: Rows) -> Verdict:
    """Judge four claims on Figure 6."""
    seconds = {(row["panel"], row["x"], row["route"]): row["seconds"] for row in rows}
    programs = [(x, t) for (panel, x, route), t in seconds.items() if route == "linear programs"]
    slower = [
        (x, t / max(seconds["by states", x, route] for route in ("Algorithm 1", "Algorithms 2+3", "Algorithms 2+4+5")))
        for x, t in programs
    ]
    steps = sorted({x for panel, x, _ in seconds if panel == "by releases"})
    best = {
        T: min(
            ("Algorithm 1", "Algorithms 2+3", "Algorithms 2+4+5"), key=lambda route: seconds["by releases", T, route]
        )
        for T in steps
    }
    fastest: dict[str, list[str]] = {}
    for T, route in best.items():
        fastest.setdefault(route, []).append(f"{T:.0f}")
    hull = max(seconds["by releases", T, "hull"] / seconds["by releases", T, best[T]] for T in steps)
    alphas = sorted({x for panel, x, _ in seconds if panel == "by α"})
    grows = seconds["by α", alphas[-1], "Algorithm 1"] / seconds["by α", alphas[0], "Algorithm 1"]
    claims = [
        all(factor > 1 for _, factor in slower),
        best[steps[0]] == "Algorithm 1",
        best[steps[-1]] == "Algorithms 2+4+5",
        grows > 1.1,
    ]
    found = (
        "linear programs take longer than the slowest algorithm, by factors of "
        + ", ".join(f"{factor:,.0f} ({x:.0f} states)" for x, factor in slower)
        + ". The fastest are "
        + ", ".join(f"{route} for T = {', '.join(texts)}" for route, texts in fastest.items())
        + f". Algorithm 1 takes {grows:.2f} times as long at the largest α as at the smallest, and our hull at most "
        f"{hull:.2f} times as long as the fastest."
    )
    return Verdict(sum(claims), len(claims), found)


def smoothed(rows: Rows) -> Picture:
    """Draw Figure 7: a panel for each ε."""
    picture, all_axes = panels(2, width=4.6, height=3.4)
    for axes, epsilon in zip(all_axes, _values(rows, "epsilon"), strict=True):
        for kind, (n, s) in enumerate(dict.fromkeys((row["states"], row["s"]) for row in rows)):
            own = _where(rows, epsilon=epsilon, states=n, s=s)
            style = line(kind) | ({"color": "#000000", "linewidth": 2.2} if n == max(_values(rows, "states")) else {})
            axes.plot([r["step"] for r in own], [r["BPL"] for r in own], **style, label=f"s = {s:g}, n = {n}")
        label(axes, "release", "BPL (nats)" if axes is all_axes[0] else "", f"ε = {epsilon:g} at each release")
        logarithmic(axes, "x")
    return finish(picture, "Stronger correlation (smaller s) leaks more, and for longer", legend=all_axes[0])


def judge_smoothed(rows: Rows) -> Verdict:
    """Judge Figure 7 by the statements of the text; "not substantially lower" means lower by less than a quarter."""
    few, many = min(_values(rows, "states")), max(_values(rows, "states"))
    high, low = max(_values(rows, "epsilon")), min(_values(rows, "epsilon"))
    key = {(row["states"], row["s"], row["epsilon"]): row for row in rows}
    strengths = sorted({s for n, s, _ in key if n == few})
    ordered = all(
        key[few, a, epsilon]["supremum"] > key[few, b, epsilon]["supremum"]
        for epsilon in (high, low)
        for a, b in pairwise(strengths)
    )
    quick, slow = key[few, 0.005, high], key[few, 0.005, low]
    fits = [s for s in strengths if 60 <= key[few, s, low]["nearly"] <= 100]
    strongest = strengths[0]
    ratio = key[few, strongest, low]["supremum"] / key[few, strongest, high]["supremum"]
    smaller = all(key[many, 0.005, e]["supremum"] < key[few, 0.005, e]["supremum"] for e in (high, low))
    claims = [ordered, 4 <= quick["nearly"] <= 12, 60 <= slow["nearly"] <= 100, ratio > 0.75, smaller]
    fit = f"s = {', '.join(f'{s:g}' for s in fits)} would fit" if fits else "no s tried here fits"
    found = (
        f"the supremum falls with s throughout{'' if ordered else ' but for some s'}, and is smaller for n = {many}. "
        f"For s = 0.005, nine tenths of it are reached after {quick['nearly']} releases for ε = {high:g}, and after "
        f"{slow['nearly']} for ε = {low:g} ({fit}). A tenth of the budget leaves {100 * ratio:.0f} % of the supremum "
        f"at s = {strongest:g}, and {100 * slow['supremum'] / quick['supremum']:.0f} % at s = 0.005."
    )
    return Verdict(sum(claims), len(claims), found)


def allocation(rows: Rows) -> Picture:
    """Draw Figure 8: budgets and leakage."""
    picture, all_axes = panels(2, width=4.4)
    for axes, column, title in zip(all_axes, ("epsilon", "TPL"), ("budget", "leakage"), strict=True):
        for kind, name in enumerate(("Algorithm 7", "Algorithm 8")):
            own = _where(rows, algorithm=name)
            axes.plot([r["step"] for r in own], [r[column] for r in own], **line(kind), label=name)
        label(axes, "release", f"{title} (nats)", f"{title} of each release")
        axes.set_ylim(0, 1.08 * max(max(row[column] for row in rows), 1e-9))
    alpha = rows[0]["alpha"]
    all_axes[1].axhline(alpha, color="#59636e", linewidth=0.8, linestyle=":")
    return finish(
        picture, f"Algorithm 8 spends at both ends what Algorithm 7 leaves (α = {alpha:g})", legend=all_axes[0]
    )


def judge_allocation(rows: Rows) -> Verdict:
    """Judge Figure 8: that Algorithm 8 exactly achieves α, and spends more than Algorithm 7."""
    seven, eight = _where(rows, algorithm="Algorithm 7"), _where(rows, algorithm="Algorithm 8")
    alpha = rows[0]["alpha"]
    exact = all(alpha - SAME < row["TPL"] <= alpha + SAME for row in eight)
    more = all(b["epsilon"] >= a["epsilon"] - SAME for a, b in zip(seven, eight, strict=True))
    gains = sum(b["epsilon"] > a["epsilon"] + SAME for a, b in zip(seven, eight, strict=True))
    found = (
        f"every release leaks {alpha:g} under Algorithm 8, and between {min(r['TPL'] for r in seven):.4f} and "
        f"{max(r['TPL'] for r in seven):.4f} under Algorithm 7. Algorithm 8 gives more to {gains} of {len(eight)}: "
        f"{eight[0]['epsilon']:.4f} to the first, {eight[-1]['epsilon']:.4f} to the last. The others get "
        f"{eight[1]['epsilon']:.4f} from both."
    )
    return Verdict(exact + more, 2, found)


def utility(rows: Rows) -> Picture:
    """Draw Figure 9: noise by the number of releases and by s."""
    picture, all_axes = panels(2, width=4.4)
    for axes, panel, column in zip(all_axes, ("by releases", "by s"), ("steps", "s"), strict=True):
        for kind, name in enumerate(("Algorithm 7", "Algorithm 8")):
            own = _where(rows, panel=panel, algorithm=name)
            axes.plot([r[column] for r in own], [r["noise"] for r in own], **line(kind), label=name)
    alone = rows[0]["alone"]
    all_axes[1].axhline(alone, color=COLOURS[2], linestyle="--", linewidth=1.2, label="no correlation")
    fixed = _where(rows, panel="by releases")[0]["s"]
    length = _where(rows, panel="by s")[0]["steps"]
    label(all_axes[0], "number of releases", "mean |noise|, sensitivity 1", f"s = {fixed:g}")
    label(all_axes[1], "s (large: weak correlation)", "", f"{length} releases")
    all_axes[0].set_ylim(bottom=0)
    logarithmic(all_axes[1], "x")
    logarithmic(all_axes[1], "y")
    return finish(picture, "Under strong correlation a promise of 2 nats costs much noise", legend=all_axes[1])


def judge_utility(rows: Rows) -> Verdict:
    """Judge Figure 9: Algorithm 8 against 7 for each number of releases, and strong correlation against none."""
    noise = {(row["panel"], row["s"], row["steps"], row["algorithm"]): row["noise"] for row in rows}
    gains = {
        steps: 1 - value / noise[panel, s, steps, "Algorithm 7"]
        for (panel, s, steps, name), value in noise.items()
        if panel == "by releases" and name == "Algorithm 8"
    }
    strongest = min(row["s"] for row in rows if row["panel"] == "by s")
    worst = min(row["noise"] for row in rows if row["panel"] == "by s" and row["s"] == strongest) / rows[0]["alone"]
    falls = all(before > after for before, after in pairwise(gains.values()))
    claims = [*(gain > 0 for gain in gains.values()), falls, worst > 2]
    ends = [next(iter(gains)), list(gains)[-1]]
    found = (
        f"Algorithm 8 always needs less noise: {100 * gains[ends[0]]:.1f} % less for {ends[0]} releases, "
        f"{100 * gains[ends[1]]:.1f} % less for {ends[1]}. For s = {strongest:g}, the better of the two needs "
        f"{worst:.1f} times the noise that suffices without correlation."
    )
    return Verdict(sum(claims), len(claims), found)


def repeated_counts(rows: Rows) -> Picture:
    """Draw Example 1: leakage above, error below, a column for each chain that allows all plans."""
    chains = [chain for chain in _values(rows, "chain") if None not in _values(_where(rows, chain=chain), "error")]
    picture, all_axes = panels(len(chains), 2, width=3.4, height=2.6)
    for column, chain in enumerate(chains):
        above, below = all_axes[column], all_axes[column + len(chains)]
        own = _where(rows, chain=chain)
        for kind, plan in enumerate(name for name in _values(own, "plan") if name != GUESS):
            points = _where(own, plan=plan)
            for axes, what in ((above, "TPL"), (below, "error")):
                axes.plot([r["step"] for r in points], [r[what] for r in points], **line(kind), label=plan)
        above.axhline(ALPHA, color="#59636e", linewidth=0.8, linestyle=":")
        guess = _where(own, plan=GUESS)
        below.plot([r["step"] for r in guess], [r["error"] for r in guess], color="#59636e", linestyle=":", label=GUESS)
        label(above, "", "leakage (nats)" if column == 0 else "", chain)
        label(below, "release", "error of a count" if column == 0 else "")
    for row, what in ((all_axes[: len(chains)], "TPL"), (all_axes[len(chains) :], "error")):
        drawn = [row[what] for row in rows if row["chain"] in chains and row[what]]
        for axes in row:
            axes.set_ylim(0.7 * min(drawn), 1.4 * max(drawn))
            logarithmic(axes, "y")
    text = f"Plans of a ledger leak at most α = {ALPHA}, and independent releases do not"
    return finish(picture, text, legend=all_axes[-1], columns=3)


def judge_repeated_counts(rows: Rows) -> Verdict:
    """Judge Example 1 for each chain: what independent releases leak, and the noise of Algorithms 7 and 8."""
    claims, found = [], []
    for chain in _values(rows, "chain"):
        own = _where(rows, chain=chain)
        mean = {row["plan"]: row["mean"] for row in own}
        leaks = {name: max(r["TPL"] or 0 for r in _where(own, plan=name)) for name in mean}
        assert all(leak <= ALPHA + SAME for name, leak in leaks.items() if name != ALONE)
        claims.append(leaks[ALONE] > ALPHA)
        claims += [mean[name] is not None and mean[name] < mean[GROUP] for name in ("Algorithm 7", "Algorithm 8")]
        errors = ["refused" if mean[name] is None else f"{mean[name]:.4g}" for name in mean if name != ALONE]
        found.append(f"- {chain}: {', '.join(errors)}; {leaks[ALONE]:.4g}")
    plans = ", ".join(name for name in _values(rows, "plan") if name != ALONE)
    text = f"mean errors of a count ({plans}); and what {ALONE} leaks:\n\n" + "\n".join(found)
    return Verdict(sum(claims), len(claims), text)


def pairs_picture(rows: Rows) -> Picture:
    """Draw what the reports so far tell, per km and in units of one report, a panel for each ε."""
    epsilons, chains = _values(rows, "epsilon"), _values(rows, "chain")
    picture, all_axes = panels(len(epsilons), width=3.2, height=3.2)
    for axes, epsilon in zip(all_axes, epsilons, strict=True):
        own = _where(rows, epsilon=epsilon)
        for kind, chain in enumerate(chains):
            points = _where(own, chain=chain)
            axes.plot(
                [r["report"] for r in points], [r["present"] / epsilon for r in points], **line(kind), label=chain
            )
        reports = _values(own, "report")
        axes.plot(reports, reports, color="#59636e", linewidth=0.8, linestyle=":", label="the sum of the reports")
        one = [row["diameter"] / epsilon for row in _where(own, chain=chains[0])]
        axes.plot(reports, one, color="#59636e", linewidth=1.2, label=f"{chains[0]}, one bound for all pairs")
        axes.set_ylim(0.9, 1.2 * max(row["diameter"] / row["epsilon"] for row in rows))
        logarithmic(axes, "y")
        label(axes, "report", "bound per km, in units of ε" if axes is all_axes[0] else "", f"ε = {epsilon:g} per km")
    text = "Reports a day apart add little; those of a slow walk add up"
    return finish(picture, text, legend=all_axes[0], columns=3)


def judge_pairs(rows: Rows) -> Verdict:
    """Judge whether the bound per km after all reports is below their sum, for each chain and ε."""
    last = max(row["report"] for row in rows)
    ends = _where(rows, report=last)
    assert all(row["present"] < row["diameter"] for row in ends)
    factors = [row["diameter"] / row["present"] for row in ends]
    found = []
    for chain in _values(rows, "chain"):
        own = _where(ends, chain=chain)
        each = ", ".join(f"{row['present'] / row['epsilon']:.1f}" for row in own)
        found.append(f"- {chain} (stays with {own[0]['stays']:.2f}): {each}")
    text = (
        f"one bound for all pairs is {min(factors):.0f} to {max(factors):.0f} times as large after {last} reports. In "
        f"units of ε, the bound per km is then, for ε = {', '.join(f'{each:g}' for each in _values(rows, 'epsilon'))}:"
        "\n\n" + "\n".join(found)
    )
    return Verdict(sum(row["present"] < last * row["epsilon"] for row in ends), len(ends), text)


def _where(rows: Rows, **values: object) -> Rows:
    return [row for row in rows if all(row[name] == value for name, value in values.items())]


def _values(rows: Rows, column: str) -> list[float]:
    return list(dict.fromkeys(row[column] for row in rows))


def _pairs(rows: Rows) -> list[str]:
    return [name for name in rows[0] if name.startswith("(")]


def _figure(number: int, claim: str, experiment: Experiment, draw, judge, alt: str) -> Figure:
    title = f"Temporal leakage, Figure {number}"
    return Figure(f"temporal_leakage_{number}", title, claim, experiment, draw, judge, "temporal_leakage", alt)


FIGURES = (
    _figure(
        3,
        "TPL of every release is Tε under the strongest correlation, ε without one, and between both under a moderate "
        "one.",
        OVER_TIME,
        over_time,
        judge_over_time,
        "Backward, forward and total leakage of ten releases, by correlation",
    ),
    _figure(
        4,
        "L(α) is the upper envelope of all pairs of rows. The pentagram, where two of them meet, is not a transition "
        "point.",
        LOSS,
        loss,
        judge_loss,
        "Loss of six pairs of rows against α, with envelope and transition points",
    ),
    _figure(
        5,
        "in (a) and (b) there is no supremum. In (c) and (d) Theorem 11 gives it, and iteration agrees.",
        SUPREMA,
        suprema,
        judge_suprema,
        "Backward leakage against the number of releases in five cases, with the supremum",
    ),
    _figure(
        6,
        "the algorithms are much faster than linear programs. Algorithm 1 is fastest for few releases, Algorithm 5 "
        "with its precomputation for many. Algorithm 1 slows down as α grows.",
        RUNTIME,
        runtime,
        judge_runtime,
        "Processor time of five routes by states, releases and α",
    ),
    _figure(
        7,
        "stronger correlation (smaller s) leaks more, and more states leak less. For s = 0.005 the increase lasts "
        "almost 8 releases if ε = 1, and approximately 80 if ε = 0.1. Under strong correlation, ε = 0.1 finally leaks "
        "not substantially less than ε = 1.",
        SMOOTHED,
        smoothed,
        judge_smoothed,
        "Backward leakage against releases by degree of smoothing, for each ε",
    ),
    _figure(
        8,
        "Algorithm 8 has better utility than Algorithm 7, as it exactly achieves the desired level.",
        ALLOCATION,
        allocation,
        judge_allocation,
        "Budget and leakage of each release under Algorithms 7 and 8",
    ),
    _figure(
        9,
        "for few releases Algorithm 8 outperforms Algorithm 7; utility significantly decays under strong correlation.",
        UTILITY,
        utility,
        judge_utility,
        "Mean Laplace noise of two algorithms by number of releases and by correlation",
    ),
    Figure(
        "temporal_leakage_counts",
        "Temporal leakage, Example 1",
        "counts of people at each place, released every hour with ε = α, leak more than α. Group privacy adds too much "
        "noise; Algorithms 7 and 8 keep α with less.",
        COUNTS,
        repeated_counts,
        judge_repeated_counts,
        "temporal_leakage",
        "Leakage and error of hourly counts under four plans and without one, for three chains",
    ),
    Figure(
        "temporal_leakage_pairs",
        "Temporal leakage, A day of location reports",
        "twelve reports that protect places by ε per km protect them by less than 12 ε per km, because people move. No "
        "paper claims this.",
        PAIRS,
        pairs_picture,
        judge_pairs,
        "temporal_leakage",
        "Largest bound per km after each of twelve reports, for four chains and three values of ε, on logarithmic axes",
    ),
)
