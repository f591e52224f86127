"""Maps, chains and trajectories of GeoLife and of check-ins, and releases along them under policy graphs.

The GeoLife data cover Beijing within the Fourth Ring, with a point every 20 s and cells of 0.34 km. The check-ins are
those of Foursquare users in and around Manhattan, with cells of 0.89 km. The states are the visited cells. The chain
counts the steps between these cells, plus one step from every cell to itself, without further smoothing. Every
trajectory starts from a state that the adversary knows. Outputs of K-norm mechanisms are coordinates, as drawn; the LP
channel answers with cells. All policies use the same trajectories and the same random numbers.

The time is the processor time of one step: constrained domain, graph, repair, noise and Bayes' rule. This time excludes
the savings from mechanisms that were already fitted to the same constrained domain.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import numpy as np
from numpy.typing import NDArray

import mechdesign as md
from mechdesign.measures import _utility as metrics
from mechdesign.traces._adversary import expected_error
from papers.experiments import Row

__all__ = ["LOCATION_DATA", "SAMPLED", "Measured", "Scene", "means", "measure", "scene_of"]

LOCATION_DATA = ("foursquare_nyc_marc/specific_train.csv", "geolife_trackintel")
BLOCKS = (3, 4, 5)
# The usual radius of G_util in km for each data set; all other radii are multiples of it.
RADII = {"GeoLife": 1.0, "check-ins": 2.0}
LP_TOLERANCE = 1e-6
MEASURES = ("degree", "error", "attack", "milliseconds", "members")
# Noise is sampled, and a different processor may build a hull in a different order and thus draw different noise.
# Columns that depend on noise therefore have a wide spread; a spread of 1 accepts every value.
SAMPLED = {"members": 0.5, "degree": 0.5, "error": 1.0, "attack": 1.0}


@dataclass(frozen=True, eq=False)
class Scene:
    """A map, a chain, and trajectories; `regions[k]` are the blocks of k × k cells."""

    name: str
    domain: md.Domain
    chain: md.MarkovChain
    trajectories: NDArray[np.int64]
    radius: float
    regions: dict[int, list[int]]


@dataclass(frozen=True, eq=False)
class Measured:
    """The results at each step of each trajectory: arrays (trajectories, steps)."""

    degree: NDArray[np.int64]
    error: NDArray[np.float64]
    attack: NDArray[np.float64]
    milliseconds: NDArray[np.float64]
    members: NDArray[np.int64]


def scene_of(folder: Path, name: str, trajectories: int, steps: int) -> Scene:
    """Return the map, the chain and the trajectories of a data set."""
    read = geolife if name == "GeoLife" else checkins
    return scene(name, *read(folder), RADII[name], trajectories, steps)


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
            error = float(np.linalg.norm(here.domain.points[state] - release.coordinates))
            attack = expected_error(release.posterior[None], distance)[0][0]
            rows[-1].append((release.stage.degrees[state], error, attack, 1e3 * spent, len(release.stage.members)))
    degree, error, attack, spent, members = np.moveaxis(np.array(rows), 2, 0)
    return Measured(degree.astype(np.int64), error, attack, spent, members.astype(np.int64))


def means(own: Row, found: Measured, every_step: bool) -> Iterator[Row]:
    """Yield the mean over all steps as step 0 and, if requested, the mean over trajectories of each step."""
    yield own | {"step": 0} | {measured: float(getattr(found, measured).mean()) for measured in MEASURES}
    if every_step:
        for step in range(found.error.shape[1]):
            values = {measured: float(getattr(found, measured)[:, step].mean()) for measured in MEASURES}
            yield own | {"step": step + 1} | values
