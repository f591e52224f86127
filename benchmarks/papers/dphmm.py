"""DPHMM (Xiao et al. 2017): its Figures 10 to 13 and Definition 10.9 drawn from real traces, and its claims judged."""

from __future__ import annotations

from itertools import pairwise

from matplotlib.figure import Figure as Picture

from papers.dphmm_runs import ADVERSARIES, EXPERIMENTS, TRACES
from papers.drawing import finish, label, line, panels
from papers.experiments import Experiment, Row, Rows
from papers.pglp import smooth
from papers.showing import Figure, Verdict

__all__ = ["EXPERIMENTS", "FIGURES"]

POLICIES = ("G_util", "G_trs", "DPLS")
KNOWLEDGE = {
    "nearly_all": "nearly sure of one of two states",
    "designer": "the designer's belief",
    "more": "the likelier half only",
    "less": "nothing: uniform on the map",
}


def over_time(rows: Rows, columns: dict[str, str], text: str) -> Picture:
    """Draw measures over time, a row for each measure and a column for each data set."""
    sets = _values(rows, "data")
    picture, all_axes = panels(len(sets), len(columns), width=4.4, height=2.5)
    for place, axes in enumerate(all_axes):
        data, (column, name) = sets[place % len(sets)], list(columns.items())[place // len(sets)]
        for kind, policy in enumerate(POLICIES):
            own = _steps(rows, data, policy)
            axes.plot([r["step"] for r in own], smooth([r[column] for r in own]), **line(kind), label=policy)
        last = place // len(sets) == len(columns) - 1
        title = f"{data}, mean over 5 steps" if place < len(sets) else ""
        label(axes, "step" if last else "", name if place % len(sets) == 0 else "", title)
        axes.set_ylim(bottom=0)
    return finish(picture, text, legend=all_axes[0])


def runtime(rows: Rows) -> Picture:
    """Draw Figure 10."""
    return over_time(
        rows,
        {"milliseconds": "processor time of a step (ms)"},
        "What takes time is a set of possible states that changes",
    )


def judge_runtime(rows: Rows) -> Verdict:
    """Judge Figure 10: for each data set, compare the two policies of DPHMM with DPLS."""
    held, texts = 0, []
    for data in _values(rows, "data"):
        mean = {policy: _mean(rows, data, policy) for policy in POLICIES}
        held += sum(mean[policy]["milliseconds"] > mean["DPLS"]["milliseconds"] for policy in ("G_util", "G_trs"))
        times = ", ".join(f"{policy} {row['milliseconds']:.1f} ms" for policy, row in mean.items())
        sizes = f"{mean['G_util']['members']:.0f} states, DPLS {mean['DPLS']['members']:.0f}"
        texts.append(f"{data[:1].upper()}{data[1:]} ({sizes}): {times}")
    found = (
        f"mean times of a step. {'. '.join(texts)}. DPLS fits its noise again at every step, as a δ-location set "
        "changes with every output."
    )
    return Verdict(held, 2 * len(_values(rows, "data")), found)


def performance(rows: Rows) -> Picture:
    """Draw Figure 11."""
    columns = {"degree": "degree of protection", "error": "error (km)"}
    return over_time(rows, columns, "What protects among more states costs more error")


def judge_performance(rows: Rows) -> Verdict:
    """Judge Figure 11 by four statements for each data set."""
    claims, texts = [], []
    for data in _values(rows, "data"):
        mean = {policy: _mean(rows, data, policy) for policy in POLICIES}
        degree = {policy: row["degree"] for policy, row in mean.items()}
        error = {policy: row["error"] for policy, row in mean.items()}
        claims += [
            degree["G_trs"] >= max(degree.values()),
            error["G_util"] <= min(error.values()),
            error["G_util"] < error["DPLS"],
            degree["G_util"] > degree["DPLS"],
        ]
        texts.append(
            f"{data[:1].upper()}{data[1:]}: "
            + ", ".join(f"{p} {degree[p]:.1f} and {error[p]:.2f} km" for p in POLICIES)
        )
    wrong = sum(not claim for claim in claims[3::4])
    found = (
        f"mean degrees of protection, and errors. {'. '.join(texts)}. G_util protects more "
        f"than DPLS on {len(claims) // 4 - wrong} of {len(claims) // 4} data sets."
    )
    return Verdict(sum(claims), len(claims), found)


def by_epsilon(rows: Rows) -> Picture:
    """Draw Figure 12."""
    sets = _values(rows, "data")
    picture, all_axes = panels(len(sets), 2, width=4.4, height=2.4)
    for place, axes in enumerate(all_axes):
        data, column = sets[place % len(sets)], ("degree", "error")[place // len(sets)]
        for kind, policy in enumerate(POLICIES):
            own = sorted(_usual(rows, data, policy), key=lambda row: row["epsilon"])
            axes.plot([r["epsilon"] for r in own], [r[column] for r in own], **line(kind), label=policy)
        name = ("degree of protection", "error (km)")[place // len(sets)] if place % len(sets) == 0 else ""
        label(axes, "ε per edge" if place >= len(sets) else "", name, data if place < len(sets) else "")
        axes.set_ylim(bottom=0)
        axes.set_xticks(sorted(_values(rows, "epsilon")))
    return finish(picture, "ε scales the error, and hardly the protection", legend=all_axes[0])


def judge_by_epsilon(rows: Rows) -> Verdict:
    """Judge Figure 12 for each data set and policy, and judge for each data set and ε that G_trs sacrifices little."""
    claims, changes, sacrifices = [], [], []
    for data in _values(rows, "data"):
        found = {p: sorted(_usual(rows, data, p), key=lambda row: row["epsilon"]) for p in POLICIES}
        for policy, own in found.items():
            degrees = [row["degree"] for row in own]
            claims.append(max(degrees) - min(degrees) < 0.01 * max(degrees))
            if not claims[-1]:
                changes.append(f"{policy} on {data}: {degrees[0]:.1f} to {degrees[-1]:.1f}")
            claims.append(all(a["error"] > b["error"] for a, b in pairwise(own)))
        sacrifices += [a["error"] / b["error"] for a, b in zip(found["G_trs"], found["DPLS"], strict=True)]
    claims += [ratio < 1.1 for ratio in sacrifices]
    text = (
        f"errors fall as 1/ε. The degree of protection stays the same within 1 %, except: {'; '.join(changes)}. "
        if changes
        else "errors fall as 1/ε, and the degree of protection stays the same within 1 %. "
    )
    text += f"The error of G_trs is {min(sacrifices):.2f} to {max(sacrifices):.2f} times that of DPLS."
    return Verdict(sum(claims), len(claims), text)


def by_radius(rows: Rows) -> Picture:
    """Draw Figure 13."""
    sets = _values(rows, "data")
    picture, all_axes = panels(len(sets), 2, width=4.4, height=2.4)
    for place, axes in enumerate(all_axes):
        data, column = sets[place % len(sets)], ("degree", "error")[place // len(sets)]
        own = _radii(rows, data)
        axes.plot([r["radius"] for r in own], [r[column] for r in own], **line(0), label="G_util")
        axes.axhline(_mean(rows, data, "DPLS")[column], color="#000000", linestyle="--", label="DPLS, for comparison")
        name = ("degree of protection", "error (km)")[place // len(sets)] if place % len(sets) == 0 else ""
        label(axes, "r (km)" if place >= len(sets) else "", name, data if place < len(sets) else "")
        axes.set_ylim(bottom=0)
    return finish(picture, "The radius of G_util trades protection for error", legend=all_axes[0])


def judge_by_radius(rows: Rows) -> Verdict:
    """Judge Figure 13: degree and error rise with r, and the error stays below that of DPLS."""
    claims, below, texts = [], [], []
    for data in _values(rows, "data"):
        own = _radii(rows, data)
        for column in ("degree", "error"):
            claims.append(all(a[column] < b[column] for a, b in pairwise(own)))
        below += [row["error"] < _mean(rows, data, "DPLS")["error"] for row in own]
        first, last = own[0], own[-1]
        texts.append(
            f"on {data} from {first['degree']:.1f} states and {first['error']:.2f} km at r = {first['radius']:g} km to "
            f"{last['degree']:.1f} states and {last['error']:.2f} km at {last['radius']:g} km"
        )
    claims.append(2 * sum(below) > len(below))
    found = (
        f"protection and error grow {'. They grow '.join(texts)}. The error is below that of DPLS for {sum(below)} of "
        f"{len(below)} radii."
    )
    return Verdict(sum(claims), len(claims), found)


def adversaries(rows: Rows) -> Picture:
    """Draw Definition 10.9 by step, with a column for each policy and a row for each data set."""
    sets = _values(rows, "data")
    picture, all_axes = panels(3, len(sets), width=3.1, height=2.5)
    for place, axes in enumerate(all_axes):
        data, policy = sets[place // 3], POLICIES[place % 3]
        own = [row for row in rows if row["data"] == data and row["policy"] == policy and row["level"] > 0]
        steps = [row["step"] for row in own]
        axes.plot(steps, [row["level"] for row in own], color="#000000", linewidth=7, alpha=0.3, label="overall level")
        for kind, (column, name) in enumerate(KNOWLEDGE.items()):
            axes.plot(steps, [row[column] for row in own], **line(kind), label=name)
        last, first = place // 3 == len(sets) - 1, place % 3 == 0
        label(axes, "step" if last else "", f"{data}\nleast ε (nats)" if first else "", policy if place < 3 else "")
        axes.set_ylim(bottom=0)
    return finish(picture, "How far one output raises a belief depends on the belief", legend=all_axes[0], columns=3)


def judge_adversaries(rows: Rows) -> Verdict:
    """Judge Definition 10.9: adversaries who consider some of the designer's states possible."""
    real = [row for row in rows if row["level"] > 0]
    inside = [row[who] <= row["level"] * (1 + 1e-9) for row in real for who in ("designer", "more", "nearly_all")]
    reached = [row["nearly_all"] > 0.99 * row["level"] for row in real]
    shares = [row["designer"] / row["level"] for row in real]
    more = sum(row["less"] > row["level"] * (1 + 1e-9) for row in real)
    found = (
        "for adversaries who consider only the designer's states possible, ε stays within the overall level in "
        f"{sum(inside)} of {len(inside)} cases. The right belief comes within 1 % of it in {sum(reached)} of "
        f"{len(reached)}; the designer's own has {100 * min(shares):.0f} to {100 * max(shares):.0f} %. An adversary "
        f"who knows nothing (Case II) learns more at {more} of {len(real)} steps, because outputs rule out states."
    )
    return Verdict(sum(inside) + sum(reached), len(inside) + len(reached), found)


def _steps(rows: Rows, data: str, policy: str) -> Rows:
    return [row for row in rows if row["data"] == data and row["policy"] == policy and row["step"] > 0]


def _usual(rows: Rows, data: str, policy: str) -> Rows:
    """Return the means over all steps for every ε, with the usual radius, which is stored first."""
    own = [row for row in rows if row["data"] == data and row["policy"] == policy and row["step"] == 0]
    return [row for row in own if row["radius"] == own[0]["radius"]]


def _mean(rows: Rows, data: str, policy: str) -> Row:
    """Return the means over all steps with the usual ε and radius, which are stored first."""
    return _usual(rows, data, policy)[0]


def _radii(rows: Rows, data: str) -> Rows:
    """Return the means of G_util over all steps for each radius, with the usual ε."""
    usual = _mean(rows, data, "G_util")["epsilon"]
    own = [
        r for r in rows if r["data"] == data and r["policy"] == "G_util" and r["step"] == 0 and r["epsilon"] == usual
    ]
    return sorted(own, key=lambda row: row["radius"])


def _values(rows: Rows, column: str) -> list:
    return list(dict.fromkeys(row[column] for row in rows))


def _figure(name: str, title: str, claim: str, experiment: Experiment, draw, judge, alt: str) -> Figure:
    return Figure(f"dphmm_{name}", f"DPHMM, {title}", claim, experiment, draw, judge, "dphmm", alt)


FIGURES = (
    _figure(
        "10",
        "Figure 10",
        "DPHMM, with G_util or G_trs, takes a little longer than DPLS, which uses a tighter constraint.",
        TRACES,
        runtime,
        judge_runtime,
        "Processor time against step, for three policies on each data set",
    ),
    _figure(
        "11",
        "Figure 11",
        "G_trs protects most; G_util has the lowest error, yet protects even more than DPLS.",
        TRACES,
        performance,
        judge_performance,
        "Degree of protection and error against step, for three policies",
    ),
    _figure(
        "12",
        "Figure 12",
        "with a larger ε, the degree of protection stays the same, and the error falls. G_trs protects most, and "
        "costs little utility compared with DPLS.",
        TRACES,
        by_epsilon,
        judge_by_epsilon,
        "Degree of protection and error against ε, for three policies",
    ),
    _figure(
        "13",
        "Figure 13",
        "a larger r gives more protection and more error; the error of DPHMM is mostly below that of DPLS.",
        TRACES,
        by_radius,
        judge_by_radius,
        "Degree of protection and error of G_util against its radius, and of DPLS",
    ),
    _figure(
        "adversaries",
        "Definition 10.9",
        "if designer and adversary consider the same states possible, indistinguishability is adversarial privacy "
        "(Theorem 10.10). No output raises a belief by more than e^ε.",
        ADVERSARIES,
        adversaries,
        judge_adversaries,
        "Least ε of adversarial privacy against step for four adversaries, and the overall level",
    ),
)
