"""DPHMM (Xiao et al. 2017), section 8, on GeoLife and on check-ins: the releases behind its Figures 10 to 13.

The mechanism is planar isotropic noise with the hull of the whole graph, repair by the nearest node, and ε = 1 unless
varied. The policy G_util joins cells at distances up to r. The policy G_trs joins cells that can be reached from one
cell in one step. The policy DPLS is the complete graph on the δ-location set.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import numpy as np

import mechdesign as md
from mechdesign.traces._composition import stage_level
from papers.experiments import Experiment, Row
from papers.traces import LOCATION_DATA, SAMPLED, Scene, means, measure, scene_of

__all__ = ["ADVERSARIES", "EXPERIMENTS", "TRACES"]

RULES = {"hull": "graph", "repair": "nearest"}
DELTA = 0.01


def policies(here: Scene, factor: float = 1.0) -> dict[str, tuple[nx.Graph, dict[str, object]]]:
    """Return graph and rules of each policy; the radius of G_util is `factor` times the usual one."""
    return {
        "G_util": (md.graphs.threshold(here.domain, here.radius * factor), RULES),
        "G_trs": (md.graphs.transitions(here.chain), RULES),
        "DPLS": (md.graphs.complete(here.domain.size), RULES | {"delta": DELTA}),
    }


def traces(
    folder: Path, *, data: list[str], trajectories: int, steps: int, epsilons: list[float], factors: list[float]
) -> Iterator[Row]:
    """Release trajectories; the usual values, first in `epsilons` and `factors`, also give a row for each step.

    The row of step 0 contains the mean over all steps.
    """
    for name in data:
        here = scene_of(folder, name, trajectories, steps)
        same: Row = {"data": name}
        for policy, (graph, rules) in policies(here).items():
            for epsilon in epsilons:
                found = measure(here, graph, epsilon, **rules)
                own = same | {"policy": policy, "epsilon": epsilon, "radius": here.radius}
                yield from means(own, found, every_step=epsilon == epsilons[0])
        for factor in factors[1:]:
            found = measure(here, policies(here, factor)["G_util"][0], epsilons[0], **RULES)
            own = same | {"policy": "G_util", "epsilon": epsilons[0], "radius": here.radius * factor}
            yield from means(own, found, every_step=False)


def adversaries(folder: Path, *, data: list[str], steps: int, epsilon: float, share: float) -> Iterator[Row]:
    """Compute at each step how far an output may raise the belief of several adversaries (Definition 10.9)."""
    for name in data:
        here = scene_of(folder, name, 1, steps)
        n = here.domain.size
        for policy, (graph, rules) in policies(here).items():
            truth = here.trajectories[0].tolist()
            start = np.eye(n)[truth[0]]
            how = {"repaired": "all", "snap": False, "rng": 0, **rules}
            trace = md.traces.Trace(here.domain, graph, epsilon, here.chain, start, **how)
            for step, state in enumerate(truth, 1):
                stage = trace.step(state).stage
                beliefs = believed(stage, share)
                yield {
                    "data": name,
                    "policy": policy,
                    "step": step,
                    "members": len(stage.members),
                    "level": stage_level(stage),
                    **{who: md.traces.adversarial_level(stage, belief) for who, belief in beliefs.items()},
                }


def believed(stage: md.traces.Stage, share: float) -> dict[str, np.ndarray]:
    """Return the beliefs of adversaries who have the designer's knowledge, less, more, or nearly full knowledge."""
    n = stage.domain.size
    members = stage.members
    likeliest = members[np.argsort(-stage.prior[members], kind="stable")]
    more = np.zeros(n)
    half = likeliest[: max(1, len(likeliest) // 2)]
    more[half] = stage.prior[half] / stage.prior[half].sum()
    # This adversary is nearly sure of the state that is farthest, in the norm of the hull, from any other state.
    norms = stage.hull.norm(stage.domain.points[members][:, None] - stage.domain.points[members][None])
    first, other = np.unravel_index(int(norms.argmax()), norms.shape)
    nearly = np.zeros(n)
    nearly[members[first]] += 1 - share
    nearly[members[other]] += share
    return {"designer": stage.prior, "less": np.full(n, 1 / n), "more": more, "nearly_all": nearly}


TRACES = Experiment(
    "dphmm_traces",
    traces,
    small={"data": ["check-ins"], "trajectories": 2, "steps": 4, "epsilons": [1.0, 2.0], "factors": [1.0, 2.0]},
    full={
        "data": ["GeoLife", "check-ins"],
        "trajectories": 4,
        "steps": 25,
        "epsilons": [1.0, 0.5, 2.0],
        "factors": [1.0, 0.5, 1.5, 2.0],
    },
    keys=("data", "policy", "epsilon", "radius", "step"),
    spread=SAMPLED,
    data=LOCATION_DATA,
)
ADVERSARIES = Experiment(
    "dphmm_adversaries",
    adversaries,
    small={"data": ["check-ins"], "steps": 4, "epsilon": 1.0, "share": 1e-12},
    full={"data": ["GeoLife", "check-ins"], "steps": 20, "epsilon": 1.0, "share": 1e-12},
    keys=("data", "policy", "step"),
    spread={"level": 0.02, "nearly_all": 0.02, "less": 0.5, "more": 1.0, "designer": 1.0},
    data=LOCATION_DATA,
)
EXPERIMENTS = (TRACES, ADVERSARIES)
