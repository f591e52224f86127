"""Count the bounded pairs at a distance of exactly the radius, and the bounded pairs beyond the margin.

*Grids* have n × n cells. Distances are Euclidean, Manhattan, Chebyshev, and shortest paths between cells that share a
side. Radii are 1, 2, … n − 1 sides, as decimals. The result of `distance <= radius` is compared with the number of
steps between two cells, which is exact. Each grid is also tested with its sides in metres, and on request through
`ThresholdPrivacy` and `policy.threshold`, also with distances in plain floats.

*Points* are lattices of 6 × 6 places with random decimal sides, 10 to 10⁹ sides from the origin. Their coordinates are
computed in three ways: as decimals, as products of floats, and as running sums; all three norms are tested. A pair must
be bounded if its number of steps is within the radius. No other pair may be bounded, because the next longer distance
lies beyond the margin.

*Margin* tests pairs of points, and matrices of distances, at random distances around the radius. Pairs within the
margin are bounded; pairs beyond twice the margin are not.

Each count is compared with the count of plain floats, √Σ(x − y)² <= radius.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

import networkx as nx
import numpy as np

import mechdesign as md

NORMS = ("euclidean", "manhattan", "chebyshev", "shortest path")


def steps_within(n: int, norm: str, radius: int) -> np.ndarray:
    """Flag the ordered pairs of different cells, among n × n, whose exact distance is at most `radius` sides."""
    row, column = np.divmod(np.arange(n * n), n)
    across, up = np.abs(column[:, None] - column), np.abs(row[:, None] - row)
    within = {
        "euclidean": across**2 + up**2 <= radius**2,
        "manhattan": across + up <= radius,
        "chebyshev": np.maximum(across, up) <= radius,
        "shortest path": across + up <= radius,
    }[norm]
    return within & ~np.eye(n * n, dtype=bool)


def lengths(n: int, side: Decimal, norm: str, scale: int) -> np.ndarray:
    """Return the package's distances between n × n cells, multiplied by `scale`; each cell has the side `side`."""
    if norm == "shortest path":
        graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(n, n), ordering="sorted")
        nx.set_edge_attributes(graph, float(side * scale), "length")
        return md.distances.shortest_path(graph, "length")
    whole = float(side * n * scale)
    domain = md.Domain.grid(columns=n, rows=n, width=whole, height=whole, unit="km" if scale == 1 else "m")
    return getattr(md.distances, norm)(domain)


def plain(n: int, side: Decimal, norm: str) -> np.ndarray:
    """Return the distances that floats alone give between the centres of the cells."""
    centres = (np.arange(n) + 0.5) * float(side * n) / n
    row, column = np.divmod(np.arange(n * n), n)
    across, up = np.abs(centres[column][:, None] - centres[column]), np.abs(centres[row][:, None] - centres[row])
    return {"euclidean": np.hypot(across, up), "chebyshev": np.maximum(across, up)}.get(norm, across + up)


def bounded(distance: np.ndarray, radius: object, margin: float = 0.0) -> np.ndarray:
    """Flag the ordered pairs that a requirement of threshold privacy bounds."""
    claim = md.ThresholdPrivacy(1, distance, radius, margin).claims()[0]
    found = np.zeros(distance.shape, dtype=bool)
    found[claim.sources, claim.targets] = True
    return found


def joined(graph: nx.Graph) -> np.ndarray:
    """Flag the ordered pairs that are edges of a policy graph."""
    return nx.to_numpy_array(graph, nodelist=range(graph.number_of_nodes())) > 0


def grid(n: int, side: Decimal, norm: str, requirement: bool) -> Counter[str]:
    """Compare all pairs at every radius of one grid; with `requirement`, also through requirements and graphs."""
    count: Counter[str] = Counter()
    own, metres, floats = lengths(n, side, norm, 1), lengths(n, side, norm, 1000), plain(n, side, norm)
    apart = ~np.eye(n * n, dtype=bool)
    for radius in range(1, n):
        owed = steps_within(n, norm, radius)
        at = float(side * radius)
        found = {
            "distance <= radius": (own <= at) & apart,
            "in metres": (metres <= float(side * radius * 1000)) & apart,
        }
        if requirement:
            found["requirement"] = bounded(own, side * radius)
            found["matrix of floats"] = bounded(floats, at)
            found["graph by distance"] = joined(md.graphs.threshold(distance=own, radius=side * radius))
            if norm == "euclidean":
                domain = md.Domain.grid(columns=n, rows=n, width=float(side * n), height=float(side * n))
                found["graph by places"] = joined(md.graphs.threshold(domain, side * radius))
        for name, pairs in found.items():
            count[f"{name}: pairs owed"] += int(owed.sum())
            count[f"{name}: missed"] += int((owed & ~pairs).sum())
            count[f"{name}: added"] += int((pairs & ~owed).sum())
        count["radii"] += 1
        count["radii wrong in plain floats"] += int(((floats <= at) & apart != owed).any())
    return count


def lattices(rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray, Decimal]]:
    """Yield 36 places far from the origin in three notations, with the side of their lattice."""
    side = Decimal(int(rng.integers(5, 200))) / 100
    start = [side * int(10.0 ** rng.uniform(1, 9)) for _ in range(2)]
    cells = list(itertools.product(range(6), repeat=2))
    yield (
        "decimals",
        np.array([[float(begin + side * k) for begin, k in zip(start, cell, strict=True)] for cell in cells]),
        side,
    )
    yield (
        "products",
        np.array([[float(b) + float(side) * k for b, k in zip(start, cell, strict=True)] for cell in cells]),
        side,
    )
    sums = [list(itertools.accumulate([float(side)] * 5, initial=float(begin))) for begin in start]
    yield "running sums", np.array([[sums[axis][k] for axis, k in enumerate(cell)] for cell in cells]), side


def far(rng: np.random.Generator) -> Counter[str]:
    """Compare all pairs at every radius of random lattices far from the origin."""
    count: Counter[str] = Counter()
    for name, points, side in lattices(rng):
        domain = md.Domain.from_points(points)
        margin = md.distances.margin(domain)
        for norm, radius in itertools.product(NORMS[:3], range(1, 6)):
            owed = steps_within(6, norm, radius)
            found = {name: bounded(getattr(md.distances, norm)(domain), side * radius, margin)}
            if norm == "euclidean":
                found[f"{name}, graph"] = joined(md.graphs.threshold(domain, side * radius))
            for each, pairs in found.items():
                count[f"{each}: pairs owed"] += int(owed.sum())
                count[f"{each}: missed"] += int((owed & ~pairs).sum())
                count[f"{each}: added"] += int((pairs & ~owed).sum())
    return count


def margins(rng: np.random.Generator) -> Counter[str]:
    """Count the pairs on both sides of the margin, given by a matrix and by points."""
    count: Counter[str] = Counter()
    radius = Fraction(int(rng.integers(1, 10**6)), 10 ** int(rng.integers(0, 7)))
    largest = float(10.0 ** rng.uniform(0, 6))
    for name, shift in (("matrix", 0.0), ("points", largest)):
        ulps = 4 * float(np.spacing(max(largest, float(radius) + largest))) if shift else 0.0
        allowed = radius / 10**9 + Fraction(ulps)
        for share in (-1.0, 0.0, 0.3, 0.9, 1.0, 2.1, 3.0, 100.0):
            beyond = Fraction(share) * allowed
            if shift:
                # The margin includes the rounding of the coordinates, because the exact distance is that of their
                # decimals.
                ends = [shift, float(Fraction(shift) + radius + beyond)]
                exact = abs(Fraction(repr(ends[1])) - Fraction(repr(ends[0])))
                found = joined(
                    md.graphs.threshold([[end, 0.0] for end in [*ends, ends[1] + 9 * float(radius)]], radius)
                )
                measured = exact - radius
            else:
                distance = float(radius + beyond)
                found = bounded(np.array([[0.0, distance], [distance, 0.0]]), radius)
                measured = Fraction(distance) - radius
            # Between the margin and twice the margin, a pair may be bounded or not; the first limit leaves room for
            # rounding.
            if measured <= allowed * Fraction(99, 100):
                count[f"{name}: within the margin"] += 1
                count[f"{name}: missed"] += int(not found[0, 1])
            elif measured > 2 * allowed:
                count[f"{name}: beyond twice the margin"] += 1
                count[f"{name}: added"] += int(found[0, 1])
    return count


def wrong(count: Counter[str]) -> int:
    """Return the number of pairs that were missed, or bounded beyond the margin."""
    return sum(number for name, number in count.items() if name.endswith((": missed", ": added")))
