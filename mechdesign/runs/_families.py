"""Families of benchmark problems."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import networkx as nx
import numpy as np
from scipy.spatial import Delaunay

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import InputError, MechdesignError
from mechdesign.certify._exact import float_down
from mechdesign.data.movement import read_checkins
from mechdesign.graphs._builders import blocks
from mechdesign.model import distances
from mechdesign.model._domain import Domain
from mechdesign.model._problem import Problem, largest_distortion
from mechdesign.model._requirements._distortion import DistortionPrivacy
from mechdesign.model._requirements._graph import GraphPrivacy
from mechdesign.model._requirements._metric import MetricPrivacy


@dataclass(frozen=True, eq=False)
class RowPairs:
    """Linear-fractional programs: maximise q·x / d·x for each ordered pair (q, d) of some rows of a transition matrix.

    Attributes:
        matrix: Transition probabilities, shape (n, n).
        pairs: Ordered pairs of rows, shape (k, 2).
        alpha: Bound on the logarithm of the ratio of any two entries of x.
    """

    matrix: Floats
    pairs: Integers
    alpha: float


Instance = Problem | RowPairs


def _no_data() -> str:
    """Return "", the digest of a family without data."""
    return ""


@dataclass(frozen=True)
class Family:
    """A family of benchmark problems.

    Attributes:
        name: Name in tables and on the command line.
        title: Description in a few words.
        parameters: Parameters that all problems of the family share, such as ε; they are part of the identity of every
            row.
        make: Function that returns the same problem for the same number of secrets (or states) and the same seed.
        data: Function that returns the SHA-256 of the data of the family, None if they are missing, or "" without data.

    Example:
        >>> from mechdesign.runs.bench import FAMILIES
        >>> FAMILIES["grid"].make(4, 0).prior.shape
        (4,)
    """

    name: str
    title: str
    parameters: Mapping[str, object]
    make: Callable[[int, int], Instance]
    data: Callable[[], str | None] = field(default=_no_data)

    @property
    def available(self) -> bool:
        """Whether the data of the family are available."""
        return self.data() is not None


def square(n: int) -> Domain:
    """Return a square grid of about n unit cells, with at least 2 × 2 cells."""
    side = max(2, round(n**0.5))
    return Domain.grid(columns=side, rows=side, width=float(side), height=float(side))


def prior_on(domain: Domain, seed: int) -> Floats:
    """Return a prior without symmetries: a Gaussian hill, with each cell multiplied by a random factor of 1/2 to 2."""
    rng = np.random.default_rng(seed)
    size = np.ptp(domain.points, axis=0)
    centre = domain.points.min(axis=0) + size * rng.uniform(0.3, 0.7, domain.points.shape[1])
    spread = np.linalg.norm(size) / 4
    weights = np.exp(-((domain.points - centre) ** 2).sum(axis=1) / (2 * spread**2))
    weights *= 2.0 ** rng.uniform(-1, 1, domain.size)
    normalised: Floats = weights / weights.sum()
    return normalised


_BLOCKS_EPSILON = "1"
_BLOCK_SIDE = 4


def make_blocks(n: int, seed: int) -> Problem:
    """Return the policy of PGLP (Cao 2020): cells of one block of 4 × 4 are indistinguishable."""
    domain = square(n)
    requirement = GraphPrivacy(_BLOCKS_EPSILON, blocks(domain, _BLOCK_SIDE))
    return Problem(prior_on(domain, seed), distances.euclidean(domain), [requirement], title=f"blocks {n} {seed}")


BLOCKS = Family(
    "blocks", "policy graph of blocks of 4 × 4 cells", {"epsilon": _BLOCKS_EPSILON, "side": _BLOCK_SIDE}, make_blocks
)


VARIABLE = "MECHDESIGN_DATA"
"""Environment variable with the folder of data sets."""

_CHECKINS_EPSILON = "0.5"
_FILE = Path("foursquare_nyc_marc") / "specific_train.csv"


def make_checkins(n: int, seed: int) -> Problem:
    """Return a problem with d-privacy in kilometres on n places of a Foursquare user in New York, chosen by the seed.

    Secrets are the most visited places, rounded to a thousandth of a degree; the prior is their visit frequency. The
    seed counts through the users, from the user with the most places to the user with the fewest.
    """
    path = _path()
    if path is None:
        raise MechdesignError(f"the family checkins needs data: set {VARIABLE} to the folder that contains {_FILE}")
    found = []
    for trace in read_checkins(path, user="label", latitude="lat", longitude="lon"):
        coordinates = np.round(np.stack([trace.latitude, trace.longitude], axis=1), 3)
        places, counts = np.unique(coordinates, axis=0, return_counts=True)
        found.append((len(places), trace.user, places, counts))
    found.sort(key=lambda each: (-each[0], each[1]))
    _, user, places, counts = found[seed % len(found)]
    most = np.argsort(-counts, kind="stable")[:n]
    domain = Domain.from_coordinates(places[most, 0], places[most, 1])
    distance = distances.haversine(domain)
    prior = counts[most] / counts[most].sum()
    return Problem(
        prior, distance, [MetricPrivacy(_CHECKINS_EPSILON, distance)], title=f"check-ins of user {user}, {n} places"
    )


@functools.cache
def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _path() -> Path | None:
    """Return the file of check-ins, or None if the variable is not set; raise `InputError` if it names no such file."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return None
    if not (path := Path(folder) / _FILE).is_file():
        remedy = "unset it, and the family checkins takes no part"
        raise InputError(VARIABLE, "holds no check-ins", value=folder, bound=f"a folder with {_FILE}", remedy=remedy)
    return path


def _data() -> str | None:
    path = _path()
    return None if path is None else _digest(path)


CHECKINS = Family(
    "checkins", "d-privacy for a real user's check-ins", {"epsilon": _CHECKINS_EPSILON}, make_checkins, _data
)


_DISTORTION_SHARE = "0.8"


def make_distortion(n: int, seed: int) -> Problem:
    """Return problem (21) of Privacy Games (Shokri 2015), with Euclidean cost and a floor on the Hamming error.

    The floor is 0.8 of the largest error. If cost and error were equal, the least cost would be the floor itself.
    """
    domain = square(n)
    prior, error = prior_on(domain, seed), distances.hamming(domain)
    floor = round(float(Decimal(_DISTORTION_SHARE)) * float_down(largest_distortion(prior, error)), 6)
    requirement = DistortionPrivacy(floor, error)
    return Problem(prior, distances.euclidean(domain), [requirement], title=f"distortion {n} {seed}")


DISTORTION = Family(
    "distortion", "distortion privacy against the optimal attack", {"share": _DISTORTION_SHARE}, make_distortion
)


_GRID_EPSILON = "0.6"


def make_grid(n: int, seed: int) -> Problem:
    """Return a problem with d-privacy on a square grid of about n unit cells (Chatzikokolakis et al. 2013)."""
    domain = square(n)
    distance = distances.euclidean(domain)
    return Problem(prior_on(domain, seed), distance, [MetricPrivacy(_GRID_EPSILON, distance)], title=f"grid {n} {seed}")


GRID = Family("grid", "d-privacy on a square grid", {"epsilon": _GRID_EPSILON}, make_grid)


_JOINT_EPSILON = "1.2"
_JOINT_SHARE = 0.9


def make_joint(n: int, seed: int) -> Problem:
    """Return problem (24) of Privacy Games (Shokri 2015): d-privacy, and a floor of 0.9 of the largest Hamming error.

    Neither requirement implies the other.
    """
    domain = square(n)
    prior, distance, error = prior_on(domain, seed), distances.euclidean(domain), distances.hamming(domain)
    floor = round(_JOINT_SHARE * float_down(largest_distortion(prior, error)), 6)
    requirements = [MetricPrivacy(_JOINT_EPSILON, distance), DistortionPrivacy(floor, error)]
    return Problem(prior, distance, requirements, title=f"joint {n} {seed}")


JOINT = Family(
    "joint",
    "d-privacy together with distortion privacy",
    {"epsilon": _JOINT_EPSILON, "share": _JOINT_SHARE},
    make_joint,
)


_ROADS_EPSILON = "1"
# Roads per crossing: street networks have about 1.3 to 1.6, a Delaunay triangulation nearly 3, a tree 1.
_ROADS_PER_CROSSING = 1.5


def make_roads(n: int, seed: int) -> Problem:
    """Return a problem with d-privacy in travel distance between n crossings of a random planar graph with 1.5 n roads.

    The roads are a shortest spanning tree of random points, and the shortest other edges of their triangulation.
    """
    rng = np.random.default_rng([seed, n])
    # The density is about one crossing per unit of area. Coordinates in thousandths keep sums of lengths exact.
    points = np.unique(np.round(rng.uniform(0, n**0.5, (n, 2)), 3), axis=0)
    triangles = Delaunay(points).simplices
    edges = {tuple(sorted((int(a), int(b)))) for triangle in triangles for a in triangle for b in triangle if a < b}
    triangulated = nx.Graph()
    for a, b in sorted(edges):
        triangulated.add_edge(a, b, length=round(float(np.linalg.norm(points[a] - points[b])), 3))
    tree = nx.minimum_spanning_tree(triangulated, weight="length")
    graph = nx.Graph()
    graph.add_nodes_from(range(len(points)))
    graph.add_edges_from(tree.edges(data=True))
    others = sorted((data["length"], a, b) for a, b, data in triangulated.edges(data=True) if not tree.has_edge(a, b))
    for length, a, b in others[: max(0, round(_ROADS_PER_CROSSING * len(points)) - tree.number_of_edges())]:
        graph.add_edge(a, b, length=length)
    distance = distances.shortest_path(graph, weight="length")
    domain = Domain.from_points(points)
    return Problem(
        prior_on(domain, seed), distance, [MetricPrivacy(_ROADS_EPSILON, distance)], title=f"roads {n} {seed}"
    )


ROADS = Family(
    "roads",
    "d-privacy on a road-like planar graph",
    {"epsilon": _ROADS_EPSILON, "degree": _ROADS_PER_CROSSING},
    make_roads,
)


_ALPHA = 1.0
_PAIRS = 20


def make_row_pairs(n: int, seed: int) -> RowPairs:
    """Return programs (19)–(21) of Cao et al. (2017) for 20 ordered pairs of rows of a random chain with n states."""
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(n, 0.5), size=n)
    first = rng.integers(0, n, _PAIRS)
    second = (first + rng.integers(1, n, _PAIRS)) % n
    return RowPairs(matrix, np.stack([first, second], axis=1), _ALPHA)


ROW_PAIRS = Family(
    "row-pairs", "linear-fractional programs of temporal leakage", {"alpha": _ALPHA, "pairs": _PAIRS}, make_row_pairs
)


_WORST_COST_EPSILON = "0.6"


def make_worst_cost(n: int, seed: int) -> Problem:
    """Return problem (12) of Privacy Games (Shokri 2015) on a square grid, with a cost factor for each cell."""
    domain = square(n)
    distance = distances.euclidean(domain)
    # Without weights the symmetries of the grid would remain, and the seed would have no effect.
    weights = prior_on(domain, seed)
    cost = distance * (0.5 + weights / weights.max())[:, None]
    requirement = MetricPrivacy(_WORST_COST_EPSILON, distance)
    return Problem(weights, cost, [requirement], objective="worst", title=f"worst cost {n} {seed}")


WORST_COST = Family(
    "worst-cost", "d-privacy on a grid at the least worst cost", {"epsilon": _WORST_COST_EPSILON}, make_worst_cost
)


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        GRID,
        ROADS,
        BLOCKS,
        DISTORTION,
        JOINT,
        WORST_COST,
        ROW_PAIRS,
        CHECKINS,
    )
}
"""Every family by name."""
