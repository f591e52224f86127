"""Privacy Games (Shokri 2015): its Figures 2 to 8 on real check-ins, and its claims judged."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from papers.experiments import Rows
from papers.privacy_games_pictures import (
    MECHANISMS,
    approximation_picture,
    bayes_against_optimal,
    bayes_of_two,
    cost_against_privacy,
    informed_adversaries,
    joint_privacy,
    privacy_against_epsilon,
    scenario_3_lines,
    trios,
    users_of,
)
from papers.privacy_games_runs import APPROXIMATION, EXPERIMENTS, SCENARIO_1, SCENARIO_2, SCENARIO_3, SHARES
from papers.showing import Figure, Verdict

__all__ = ["EXPERIMENTS", "FIGURES"]

# Two distortions or costs are equal if they differ by less than this share of the larger value.
SAME = 1e-3


def same(first: float, second: float) -> bool:
    """Return whether two numbers are equal up to the tolerance `SAME`."""
    return bool(abs(first - second) <= SAME * max(abs(first), abs(second)))


def percent(part: float) -> str:
    """Return a share in per cent."""
    return f"{100 * part:.1f} %"


def judge_privacy_against_epsilon(rows: Rows) -> Verdict:
    """Judge Figure 2(a) for each user."""
    held, ends = 0, []
    for user in users_of(rows):
        errors = [row["optimal"] for row in rows if row["user"] == user and row["mechanism"] == "differential"]
        falls = all(after <= before * (1 + SAME) for before, after in pairwise(errors))
        held += falls and errors[-1] < 1
        ends.append(errors[-1])
    top = max(row["epsilon"] for row in rows)
    found = (
        f"the error falls throughout and ends below 1 km for {held} of {len(ends)} users; at ε = {top:g} it lies "
        f"between {min(ends):.3f} and {max(ends):.3f} km."
    )
    return Verdict(held, len(ends), found)


def judge_cost_against_privacy(rows: Rows) -> Verdict:
    """Judge Figure 2(b) for each user and ε."""
    cases = list(trios(rows))
    equal = sum(same(case["joint"]["cost"], case["differential"]["cost"]) for case in cases)
    dearer = [case["differential"]["cost"] / case["distortion"]["cost"] - 1 for case in cases]
    held = sum(
        same(case["joint"]["cost"], case["differential"]["cost"])
        and case["differential"]["cost"] >= case["distortion"]["cost"] * (1 - SAME)
        for case in cases
    )
    found = (
        f"the joint mechanism costs as much as the differential one in {equal} of {len(cases)} cases, and up to "
        f"{percent(max(dearer))} more than the distortion mechanism, "
        f"{percent(float(np.median(dearer)))} in the median."
    )
    return Verdict(held, len(cases), found)


def judge_bayes_of_two(rows: Rows) -> Verdict:
    """Judge Figure 3 for each user and ε."""
    cases = list(trios(rows))
    gains = [case["differential"]["bayes"] / case["distortion"]["bayes"] - 1 for case in cases]
    held = sum(gain >= -SAME for gain in gains)
    found = (
        f"the error of the attack is at least as large in {held} of {len(cases)} cases, by "
        f"{percent(float(np.median(gains)))} in the median and {percent(min(gains))} at least."
    )
    return Verdict(held, len(cases), found)


def judge_bayes_against_optimal(rows: Rows) -> Verdict:
    """Judge Figure 4 for each user, ε and mechanism."""
    held, cases, ratios = 0, 0, {mechanism: [] for mechanism in MECHANISMS}
    for case in trios(rows):
        for mechanism, row in case.items():
            held += row["bayes"] >= row["optimal"] * (1 - 1e-9)
            cases += 1
            ratios[mechanism].append(row["bayes"] / row["optimal"])
    medians = {mechanism: float(np.median(values)) for mechanism, values in ratios.items()}
    found = (
        f"the error of the Bayesian attack is at least that of the optimal one in {held} of {cases} cases. "
        "Median ratios: " + ", ".join(f"{value:.2f} ({mechanism})" for mechanism, value in medians.items()) + "."
    )
    return Verdict(held, cases, found)


def judge_joint_privacy(rows: Rows) -> Verdict:
    """Judge Figure 5 for each user, ε and floor: the joint mechanism has the larger privacy and the larger cost."""
    return _judge_joint(rows, "With floors above the error under the differential mechanism, the")


def judge_informed_adversaries(rows: Rows) -> Verdict:
    """Judge Figure 6 for each user, ε and share of better information."""
    held, cases, parts = 0, 0, []
    for share in SHARES:
        column = f"informed_{share:g}"
        pairs = [(case["differential"][column], case["distortion"][column]) for case in trios(rows)]
        better = sum(one >= other * (1 - SAME) for one, other in pairs)
        held, cases = held + better, cases + len(pairs)
        ratio = float(np.median([one / other for one, other in pairs if other > 0]))
        parts.append(f"{100 * share:.0f} % in {better} of {len(pairs)} cases ({ratio:.2f})")
    found = (
        "the error is at least as large under the differential mechanism, by doubt removed (median ratios): "
        f"{', '.join(parts)}."
    )
    return Verdict(held, cases, found)


def judge_scenario_3(rows: Rows) -> Verdict:
    """Judge Figure 7 for each user, ε and floor."""
    return _judge_joint(rows, "With ε and floor chosen apart, the")


def _judge_joint(rows: Rows, start: str) -> Verdict:
    """Compare the joint mechanism with the larger value of the two mechanisms; certified bounds decide about costs."""
    cases = list(trios(rows))
    larger = [max(case["differential"]["optimal"], case["distortion"]["optimal"]) for case in cases]
    private = [same(case["joint"]["optimal"], best) for case, best in zip(cases, larger, strict=True)]
    dearest = [max(case["differential"]["cost"], case["distortion"]["cost"]) for case in cases]
    excess = [case["joint"]["lower_bound"] / cost - 1 for case, cost in zip(cases, dearest, strict=True)]
    cheap = [over <= SAME for over in excess]
    above = sorted(over for over in excess if over > SAME)
    found = (
        f"{start} joint mechanism's privacy is the larger of the two in {sum(private)} of {len(cases)} cases, and its "
        f"cost in {sum(cheap)}. In the other {len(above)} it provably costs more"
    )
    if above:
        found += f": {percent(float(np.median(above)))} more in the median, up to {percent(above[-1])}"
    found += "."
    held = sum(one and other for one, other in zip(private, cheap, strict=True))
    return Verdict(held, len(cases), found)


def judge_approximation(rows: Rows) -> Verdict:
    """Judge Figure 8 for each user and each radius below the whole map: privacy is almost the same."""
    exact = {row["user"]: row for row in rows if row["radius"] == 0}
    whole = max(row["radius"] for row in rows)
    asked = max(row["tight_epsilon"] for row in exact.values())
    cases = [row for row in rows if 0 < row["radius"] < whole]
    kept = [
        row["optimal"] >= exact[row["user"]]["optimal"] * 0.99 and row["tight_epsilon"] <= asked * 1.01 for row in cases
    ]
    distortion = sum(row["optimal"] >= exact[row["user"]]["optimal"] * 0.99 for row in cases)
    tight = [row["tight_epsilon"] for row in cases]
    lost = max(1 - row["optimal"] / exact[row["user"]]["optimal"] for row in cases)
    found = (
        f"the distortion is within 1 % of the exact mechanism's in {distortion} of {len(cases)} cases, and up to "
        f"{percent(lost)} is lost. The required ε, {asked:.2f} per km, also holds in {sum(kept)}: the tight ε is at "
        f"least {min(tight):.2f} to {max(tight):.2f} per km. The approximation loses differential privacy."
    )
    return Verdict(sum(kept), len(cases), found)


def _figure(number: str, claim: str, experiment, draw, judge, alt: str) -> Figure:
    name = f"privacy_games_{number.replace('(', '').replace(')', '')}"
    return Figure(name, f"Privacy Games, Figure {number}", claim, experiment, draw, judge, "privacy_games", alt)


FIGURES = (
    _figure(
        "2(a)",
        "as ε grows, the error of the adversary falls to below 1 km.",
        SCENARIO_1,
        privacy_against_epsilon,
        judge_privacy_against_epsilon,
        "Error of the optimal attack against ε, a falling line for each of ten users",
    ),
    _figure(
        "2(b)",
        "for equal distortion privacy, differential and joint mechanism cost the same, and much more than the "
        "distortion mechanism.",
        SCENARIO_1,
        cost_against_privacy,
        judge_cost_against_privacy,
        "Cost against error of the optimal attack, for three mechanisms",
    ),
    _figure(
        "3",
        "the differential mechanism is more robust to the Bayesian attack than the distortion mechanism.",
        SCENARIO_1,
        bayes_of_two,
        judge_bayes_of_two,
        "Bayesian attack's error under the differential against the distortion mechanism",
    ),
    _figure(
        "4",
        "the optimal attack outperforms the Bayesian one, above all under differential and joint protection.",
        SCENARIO_1,
        bayes_against_optimal,
        judge_bayes_against_optimal,
        "Bayesian against optimal attack's error, for each mechanism",
    ),
    _figure(
        "5",
        "the joint mechanism guarantees the larger privacy of the two mechanisms, at the same cost.",
        SCENARIO_2,
        joint_privacy,
        judge_joint_privacy,
        "Optimal attack's error under one requirement and under both",
    ),
    _figure(
        "6",
        "the differential mechanism is more robust to better informed adversaries than the distortion mechanism.",
        SCENARIO_1,
        informed_adversaries,
        judge_informed_adversaries,
        "Optimal attack's error for four degrees of information",
    ),
    _figure(
        "7",
        "privacy and cost of the joint mechanism are the maximum of the two. The cost is always that of the "
        "differential mechanism.",
        SCENARIO_3,
        scenario_3_lines,
        judge_scenario_3,
        "Privacy and cost of three mechanisms, sorted by the joint one",
    ),
    _figure(
        "8",
        "with a relatively small threshold the approximate mechanism has almost the privacy of the optimal one, in "
        "less time.",
        APPROXIMATION,
        approximation_picture,
        judge_approximation,
        "Privacy lost, seconds and tight ε against the radius of the bounds",
    ),
)
