"""Traces released under policy graphs, on GeoLife and on check-ins (DPHMM, Figures 10 to 13; PGLP, Figures 8 to 10).

    python benchmarks/papers/policy_traces.py [--data FOLDER] [--output FOLDER] [--trajectories 20] [--steps 100]
        [--experiments dphmm pglp repair]

The GeoLife data cover Beijing within the Fourth Ring, with a point every 20 s and cells of 0.34 km. The check-ins are
those of Foursquare users in and around Manhattan, with cells of 0.89 km. The states are the visited cells. The chain
counts the steps between these cells, plus one step from every cell to itself, without further smoothing. Every
trajectory starts from a state that the adversary knows. Outputs of K-norm mechanisms are coordinates, as drawn; the LP
channel answers with cells. All policies use the same trajectories and the same random numbers.

- The experiments of DPHMM use planar isotropic noise with the hull of the whole graph, ε = 1, and repair by the nearest
  node. G_util joins cells at distances up to r. G_trs joins cells that can be reached from one cell in one step. DPLS
  is the complete graph on the δ-location set, δ = 0.01.
- The experiments of PGLP use the policies G_k9, G_k16 and G_k25, and the mechanisms P-LM, P-PIM and the LP channel.
  Mechanisms use the hulls of components, and policies are repaired by Algorithm 4 (least area).
- The experiments on repair compare PGLP's Algorithm 4 (least area) with its baseline (nearest node). The constrained
  domains are random cells within a square of 8 km.

The time is the processor time of one step: constrained domain, graph, repair, noise and Bayes' rule. This time excludes
the savings from mechanisms that were already fitted to the same constrained domain.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import mechdesign as md
from mechdesign.measures import _utility as metrics

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from papers.policy_traces_pictures import over_time, parameters, pglp, repairs

EPSILONS = (0.5, 1.0, 2.0)
BLOCKS = (3, 4, 5)
MECHANISMS = {"P-LM": "laplace", "P-PIM": "planar-isotropic", "LP": "lp"}
SIZES = (10, 20, 30, 40, 50)
SQUARE = 8.0
DELTA = 0.01
LP_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Scene:
    """A map, a chain, and trajectories; `regions[k]` are the blocks of k × k cells."""

    name: str
    domain: md.Domain
    chain: md.MarkovChain
    trajectories: NDArray[np.int64]
    radius: float
    regions: dict[int, list[int]]

    @property
    def radii(self) -> tuple[float, ...]:
        """Radii of G_util to compare."""
        return tuple(self.radius * factor for factor in (0.5, 1.0, 1.5, 2.0))


@dataclass(frozen=True, eq=False)
class Measured:
    """The results at each step of each trajectory: arrays (trajectories, steps)."""

    degree: NDArray[np.int64]
    error: NDArray[np.float64]
    attack: NDArray[np.float64]
    milliseconds: NDArray[np.float64]
    members: NDArray[np.int64]


def geolife(folder: Path) -> tuple[list[md.traces.Trace], md.Domain]:
    """Return trajectories with a point every 20 s, cut at pauses of more than five minutes, and the map."""
    seconds, pause = 20, 300
    parts = []
    for place in ("geolife_long_10_MB", "geolife_modes"):
        for trace in md.data.read_plt(folder / "geolife_trackintel" / place):
            tick = trace.time.astype(np.int64) // seconds
            first = np.flatnonzero(np.diff(tick, prepend=tick[0] - 1))
            for part in np.split(first, np.flatnonzero(np.diff(tick[first]) > pause // seconds) + 1):
                parts.append(md.data.Trajectory(trace.user, trace.latitude[part], trace.longitude[part]))
    return parts, _map(0.34, 39.83, 39.99, 116.27, 116.49)


def checkins(folder: Path) -> tuple[list[md.traces.Trace], md.Domain]:
    """Return the check-ins of each user, in order, and the map."""
    path = folder / "foursquare_nyc_marc" / "specific_train.csv"
    traces = md.data.read_checkins(path, user="label", latitude="lat", longitude="lon")
    return list(traces), _map(0.89, 40.65, 40.83, -74.05, -73.90)


def _map(side: float, *box: float) -> md.Domain:
    whole = md.Domain.geographic_grid(1, 1, *box).cells
    return md.Domain.geographic_grid(round(whole.width / side), round(whole.height / side), *box)


def scene(name: str, traces: list[md.traces.Trace], grid: md.Domain, radius: float, count: int, steps: int) -> Scene:
    """Return the scene of all visited cells, with `count` stretches of `steps` steps, chosen by a fixed seed."""
    visits = md.data.to_grid(traces, grid)
    visited = np.flatnonzero(visits.counts())
    stretches = [np.searchsorted(visited, cells) for cells in visits.cells]
    domain = grid.part(visited)
    chain = md.MarkovChain.from_traces([*stretches, *([state, state] for state in range(domain.size))], domain.size)
    windows = [part[k : k + steps] for part in stretches for k in range(0, len(part) - steps + 1, steps)]
    if len(windows) < count:
        raise SystemExit(f"{name}: only {len(windows)} stretches of {steps} steps; ask for fewer or shorter ones")
    chosen = np.sort(np.random.default_rng(0).permutation(len(windows))[:count])
    regions = {k: metrics.regions(grid, k)[visited].tolist() for k in BLOCKS}
    return Scene(name, domain, chain, np.array([windows[index] for index in chosen]), radius, regions)


def measure(
    here: Scene, graph: nx.Graph, epsilon: float = 1.0, mechanism: str = "planar-isotropic", **rules
) -> Measured:
    """Release all trajectories, each from its known first state."""
    first = md.traces.Trace(
        here.domain,
        graph,
        epsilon,
        here.chain,
        md.Prior.uniform(here.domain.size),
        mechanism,
        snap=mechanism == "lp",
        # The domain contains only visited cells, so a cell without edges has lost its neighbours and must be repaired.
        repaired="all",
        tolerance=LP_TOLERANCE,
        **rules,
    )
    distance = md.distances.euclidean(here.domain)
    rows: list[list[tuple[float, ...]]] = []
    for seed, states in enumerate(here.trajectories.tolist()):
        trace = first.restart(initial=np.eye(here.domain.size)[states[0]], rng=seed)
        rows.append([])
        for state in states:
            clock = time.process_time()
            release = trace.step(state)
            spent = time.process_time() - clock
            error = metrics.distances(here.domain.points[[state]], release.coordinates[None])[0]
            attack = md.traces.expected_error(release.posterior[None], distance)[0][0]
            rows[-1].append((release.stage.degrees[state], error, attack, 1e3 * spent, len(release.members)))
    degree, error, attack, spent, members = np.moveaxis(np.array(rows), 2, 0)
    return Measured(degree.astype(np.int64), error, attack, spent, members.astype(np.int64))


def dphmm(here: Scene, epsilon: float = 1.0, radius: float | None = None) -> dict[str, Measured]:
    """Measure the policies of DPHMM; with a radius, measure only G_util."""
    rules = {"hull": "graph", "repair": "nearest"}
    util = measure(here, md.graphs.threshold(here.domain, radius or here.radius), epsilon, **rules)
    if radius is not None:
        return {"G_util": util}
    return {
        "G_trs": measure(here, md.graphs.transitions(here.chain), epsilon, **rules),
        "G_util": util,
        "DPLS": measure(here, md.graphs.complete(here.domain.size), epsilon, delta=DELTA, **rules),
    }


def repaired(here: Scene, k: int, draws: int = 20) -> dict[str, list[tuple[float, float]]]:
    """Return E_eu (km) and the time of repair (ms) under G_k, by method, for constrained domains of each size."""
    graph = md.graphs.categories(here.regions[k])
    found: dict[str, list[tuple[float, float]]] = {"area": [], "nearest": []}
    for size in SIZES:
        rng = np.random.default_rng(size)
        domains = [_within_a_square(here.domain, size, rng) for _ in range(draws)]
        for method, values in found.items():
            pairs = [_repair(here.domain, md.graphs.constrain(graph, members), method) for members in domains]
            values.append(tuple(np.mean(pairs, axis=0).tolist()))
    return found


def _within_a_square(domain: md.Domain, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return `size` random cells of a random square that contains at least `size` cells."""
    while True:
        centre = domain.points[rng.integers(domain.size)]
        near = np.flatnonzero((np.abs(domain.points - centre) < SQUARE / 2).all(axis=1))
        if len(near) >= size:
            return rng.choice(near, size, replace=False)


def _repair(domain: md.Domain, graph: nx.Graph, method: str, size: int = 200) -> tuple[float, float]:
    clock = time.process_time()
    after = md.graphs.repair(domain, graph, method)
    spent = time.process_time() - clock
    mechanism = md.mechanisms.PlanarIsotropic(1, domain, after.graph, hull="graph")
    # All nodes have the same hull, so the noise does not depend on the node.
    node = int(mechanism.nodes[0])
    noise = mechanism.sample(node, size, rng=0) - domain.points[node]
    return float(np.sqrt((noise**2).sum(axis=1)).mean()), 1e3 * spent


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table."""
    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*(f"{value:.3g}" if isinstance(value, float) else str(value) for value in row))
    Console(width=140).print(table)


def _summary(*names: object, found: Measured) -> tuple[object, ...]:
    means = (found.members.mean(), found.degree.mean(), found.error.mean(), found.attack.mean())
    return (*names, *(float(mean) for mean in means), float(np.mean(found.milliseconds)))


HEADINGS = ("possible states", "DoP", "error (km)", "attack error (km)", "ms a step")


def show_dphmm(scenes: Sequence[Scene], output: Path) -> None:
    """Run the experiments of DPHMM, print their tables and draw them."""
    by_time = {here.name: dphmm(here) for here in scenes}
    by_epsilon = {
        here.name: {e: by_time[here.name] if e == 1.0 else dphmm(here, e) for e in EPSILONS} for here in scenes
    }
    by_radius = {
        here.name: {
            r: {"G_util": by_time[here.name]["G_util"]} if r == here.radius else dphmm(here, radius=r)
            for r in here.radii
        }
        for here in scenes
    }
    rows = [_summary(n, e, p, found=f) for n, es in by_epsilon.items() for e, ps in es.items() for p, f in ps.items()]
    show("DPHMM, Figures 10 to 12: means over trajectories and steps", ("data", "ε", "policy", *HEADINGS), rows)
    rows = [_summary(n, r, found=f["G_util"]) for n, found in by_radius.items() for r, f in found.items()]
    show("DPHMM, Figure 13: G_util, ε = 1", ("data", "r (km)", *HEADINGS), rows)
    over_time(by_time).savefig(output / "dphmm_over_time.png", dpi=150)
    parameters(by_epsilon, by_radius, by_time).savefig(output / "dphmm_parameters.png", dpi=150)


def show_pglp(scenes: Sequence[Scene], output: Path) -> None:
    """Run PGLP's experiments on traces, with the LP channel as a third mechanism; print their table and draw them."""
    by_policy: dict[str, dict[str, dict[str, Measured]]] = {}
    for here in scenes:
        by_policy[here.name] = {
            f"G_k{k * k}": {
                name: measure(here, md.graphs.categories(here.regions[k]), mechanism=mechanism)
                for name, mechanism in MECHANISMS.items()
            }
            for k in BLOCKS
        }
    rows = [_summary(n, p, m, found=f) for n, ps in by_policy.items() for p, ms in ps.items() for m, f in ms.items()]
    show("PGLP, Figures 9 and 10: ε = 1, hulls of components", ("data", "policy", "mechanism", *HEADINGS), rows)
    pglp(by_policy).savefig(output / "pglp_traces.png", dpi=150)


def show_repairs(scenes: Sequence[Scene], output: Path) -> None:
    """Repair random constrained domains in two ways, print the table and draw it."""
    by_size = {f"G_k{k * k}": repaired(scenes[0], k) for k in BLOCKS}
    rows = [
        (policy, size, *found["area"][index], *found["nearest"][index])
        for policy, found in by_size.items()
        for index, size in enumerate(SIZES)
    ]
    columns = ("policy", "possible states", "least area: E_eu (km)", "ms", "nearest: E_eu (km)", "ms")
    show("PGLP, Figure 8: repair on random constrained domains of GeoLife, ε = 1, hull of the graph", columns, rows)
    repairs(SIZES, by_size).savefig(output / "pglp_repair.png", dpi=150)


EXPERIMENTS = {"dphmm": show_dphmm, "pglp": show_pglp, "repair": show_repairs}


def main() -> None:
    """Run all experiments, print their tables and write their pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given = os.environ.get("MECHDESIGN_DATA")
    default = Path(given) if given else Path(__file__).parents[3] / "shared" / "data"
    parser.add_argument("--data", type=Path, default=default)
    parser.add_argument("--output", type=Path, default=Path("policy-traces"))
    parser.add_argument("--trajectories", type=int, default=20)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--experiments", nargs="+", choices=list(EXPERIMENTS), default=list(EXPERIMENTS))
    options = parser.parse_args()
    size = (options.trajectories, options.steps)
    scenes = [
        scene("GeoLife", *geolife(options.data), 1.0, *size),
        scene("check-ins", *checkins(options.data), 2.0, *size),
    ]
    for here in scenes:
        print(f"{here.name}: {here.domain.size} cells, {len(here.trajectories)} trajectories of {options.steps} steps")
    options.output.mkdir(parents=True, exist_ok=True)
    for experiment in options.experiments:
        EXPERIMENTS[experiment](scenes, options.output)
    print(f"pictures: {options.output}")


if __name__ == "__main__":
    main()
