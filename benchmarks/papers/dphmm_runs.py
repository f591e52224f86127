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
from papers.experiments import Experiment, Row
from papers.policy_traces import DELTA, Measured, Scene, checkins, geolife, measure, scene

__all__ = ["ADVERSARIES", "EXPERIMENTS", "LOCATION_DATA", "SAMPLED", "TRACES", "means", "scene_of"]

LOCATION_DATA = ("foursquare_nyc_marc/specific_train.csv", "geolife_trackintel")
RULES = {"hull": "graph", "repair": "nearest"}
# The usual radius of G_util in km for each data set; all other radii are multiples of it.
RADII = {"GeoLife": 1.0, "check-ins": 2.0}
MEASURES = ("degree", "error", "attack", "milliseconds", "members")


def scene_of(folder: Path, name: str, trajectories: int, steps: int) -> Scene:
    """Return the map, the chain and the trajectories of a data set."""
    read = geolife if name == "GeoLife" else checkins
    return scene(name, *read(folder), RADII[name], trajectories, steps)


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


def means(own: Row, found: Measured, every_step: bool) -> Iterator[Row]:
    """Yield the mean over all steps as step 0 and, if requested, the mean over trajectories of each step."""
    yield own | {"step": 0} | {measured: float(getattr(found, measured).mean()) for measured in MEASURES}
    if every_step:
        for step in range(found.error.shape[1]):
            values = {measured: float(getattr(found, measured)[:, step].mean()) for measured in MEASURES}
            yield own | {"step": step + 1} | values


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
                    "level": md.traces.stage_level(stage),
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


# Noise is sampled, and a different processor may build a hull in a different order and thus draw different noise.
# Columns that depend on noise therefore have a wide spread; a spread of 1 accepts every value.
SAMPLED = {"members": 0.5, "degree": 0.5, "error": 1.0, "attack": 1.0}

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
