"""Continuous geo-indistinguishability: random pairs of points against the bound, and costs against planar Laplace.

    python benchmarks/evidence/continuous.py pairs [-o benchmarks/results/continuous_pairs.json]
    python benchmarks/evidence/continuous.py costs [-o benchmarks/results/continuous_costs.json]
    python benchmarks/evidence/continuous.py laplace [-o benchmarks/results/continuous_laplace.json]

`pairs` needs mpmath (`pip install mpmath`).

`pairs` makes 50 designs with three distances, rectangular steps and 4 to 400 anchors; some designs have answers that
are never given. For each design, `pairs` compares 20,000 random pairs of points, near and far, inside and outside, for
every observable. Floats with an error bound decide most comparisons; rationals with 60-digit logarithms decide the
other comparisons. Then `pairs` searches for the pair, 10⁻⁶ steps apart, whose ratio comes nearest to the tight ε. It
exits with 1 if the bound is broken anywhere, or if no such pair comes within 10⁻³ of the tight ε.

`costs` makes designs for Gaussian visits (σ = 2 km) on 8 × 8 km. It compares their cost with that of channels on cells,
which guarantee nothing between cells. It also compares their cost with that of planar Laplace noise, with and without
the best remap.

`laplace` makes channels on anchors from planar Laplace noise: the noise is restricted to a grid of outputs, which are
remapped to the answers. The noise parameter is the largest for which the exact least ε between all points is at most
the required ε.
"""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import mechdesign as md

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import RESULTS, options, origin, write

Floats = np.ndarray[Any, np.dtype[np.float64]]

DESIGNS, PAIRS = 50, 20_000
# Error bound for ln p and ε·d, far above the rounding of a sum of four products, a logarithm and a distance.
ERROR = 1e-12
# A comparison with a smaller difference is decided with rational numbers.
CLOSE = 1e-9
DISTANCES = ("euclidean", "manhattan", "chebyshev")


def lengths(distance: str, apart: Floats) -> Floats:
    """Return the distances of points that are `apart`, (k, 2)."""
    if distance == "euclidean":
        return np.hypot(apart[:, 0], apart[:, 1])
    return np.abs(apart).sum(axis=1) if distance == "manhattan" else np.abs(apart).max(axis=1)


def case(seed: int) -> tuple[md.Design, str, Fraction]:
    """Return a random design, its distance and its ε."""
    rng = np.random.default_rng(seed)
    distance = DISTANCES[seed % 3]
    columns, rows = (int(rng.integers(2, 6 if seed < 40 else 21)) if seed < 49 else 20 for _ in range(2))
    width, height = (float(np.round(rng.uniform(0.5, 9.0), 3)) for _ in range(2))
    anchors = md.Domain.anchors(columns, rows, width, height)
    step = float(max(anchors.lattice.steps))
    epsilon = Fraction(str(round(float(rng.uniform(0.3, 1.9)) / step, 4)))
    answers = md.Domain.grid(int(rng.integers(2, 6)), int(rng.integers(2, 6)), width, height)
    points = rng.uniform(0, [width, height], (200, 2))
    required = [md.ContinuousPrivacy(epsilon, anchors, distance)]
    problem = md.Problem.from_visits(points, answers, required)
    return md.design(problem, tolerance=1e-6), distance, epsilon


def interpolated(design: md.Design, points: Floats) -> Floats:
    """Return p(o|x) for points (k, 2) in floats."""
    corners = design.problem.secrets.lattice.corners(points[:, 0], points[:, 1])
    return np.einsum("kc,kco->ko", corners.weights, design.channel.matrix[corners.indices])


def exactly(design: md.Design, point: Floats, observable: int) -> Fraction:
    """Return p(o|x) as a fraction."""
    lattice = design.problem.secrets.lattice
    (column, u), (row, v), _ = lattice.place(*point.tolist())
    own = design.channel.numerators
    shares = {(0, 0): (1 - u) * (1 - v), (1, 0): u * (1 - v), (0, 1): (1 - u) * v, (1, 1): u * v}
    return sum(
        share * int(own[(row + b) * lattice.columns + column + a, observable]) if share else Fraction(0)
        for (a, b), share in shares.items()
    ) / Fraction(2**62)


def kept_exactly(design: md.Design, distance: str, epsilon: Fraction, p: Floats, q: Floats, observable: int) -> bool:
    """Return whether ln p(o|x) − ln p(o|x') <= ε d(x, x'), computed with 60 digits."""
    import mpmath

    above, below = exactly(design, p, observable), exactly(design, q, observable)
    if not above:
        return True
    if not below:
        return False
    dx, dy = (abs(Fraction(a) - Fraction(b)) for a, b in zip(p.tolist(), q.tolist(), strict=True))
    with mpmath.workdps(60):
        x, y = (mpmath.mpf(d.numerator) / d.denominator for d in (dx, dy))
        apart = {"euclidean": mpmath.hypot(x, y), "manhattan": x + y, "chebyshev": max(x, y)}[distance]
        ratio = above / below
        grown = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        return bool(grown <= mpmath.mpf(epsilon.numerator) / epsilon.denominator * apart)


def pairs(console: Console) -> tuple[dict[str, Any], bool]:
    """Compare random pairs, and look for the close pair that comes nearest to the tight value."""
    records, good = [], True
    started = time.perf_counter()
    for seed in range(DESIGNS):
        design, distance, epsilon = case(seed)
        lattice = design.problem.secrets.lattice
        rng = np.random.default_rng(1000 + seed)
        size = np.array([lattice.width, lattice.height])
        p = rng.uniform(-0.1, 1.1, (PAIRS, 2)) * size
        q = np.where(
            rng.random((PAIRS, 1)) < 0.3, p + rng.normal(0, 0.01, (PAIRS, 2)) * size, rng.random((PAIRS, 2)) * size
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            above, below = interpolated(design, p), interpolated(design, q)
            grown = np.where(above > 0, np.log(above) - np.log(below), -np.inf)
            room = float(epsilon) * lengths(distance, p - q)[:, None] - grown
        broken = int((room < -CLOSE).sum())
        open_pairs = np.argwhere((np.abs(room) <= CLOSE) | np.isnan(room))
        broken += sum(not kept_exactly(design, distance, epsilon, p[k], q[k], o) for k, o in open_pairs.tolist())
        tight = design.certificate.epsilon[0]
        near = nearest_pair(design, distance)
        good = good and not broken and near >= tight * (1 - 1e-3) and near <= tight * (1 + 1e-6)
        never_given = int((~design.channel.numerators.any(axis=0)).sum())
        records.append(
            {
                "seed": seed, "distance": distance, "anchors": [lattice.columns, lattice.rows],
                "steps": [float(step) for step in lattice.steps], "epsilon": str(epsilon), "tight": tight,
                "close_pair": near, "broken": broken,
                "in_rationals": len(open_pairs),
                "least_room": float(np.nanmin(room)), "never_given": never_given,
            }
        )  # fmt: skip
        console.print(
            f"{seed:2d} {distance:10} {lattice.columns:2d} × {lattice.rows:2d} ε {float(epsilon):.4f}", end=" "
        )
        console.print(f"tight {tight:.6f} close pair {near:.6f} broken {broken} in rationals {len(open_pairs)}")
    seconds = round(time.perf_counter() - started, 1)
    return {"pairs": DESIGNS * PAIRS, "seconds": seconds, "designs": records}, good


def nearest_pair(design: md.Design, distance: str) -> float:
    """Return the largest ln ratio per distance of a pair of points 1e-6 steps apart, at the steepest corner."""
    lattice = design.problem.secrets.lattice
    steps = np.array([float(step) for step in lattice.steps])
    own = design.channel.matrix.reshape(lattice.rows, lattice.columns, -1)
    found = []
    for a in (0, 1):
        for b in (0, 1):
            here = own[b : lattice.rows - 1 + b, a : lattice.columns - 1 + a]
            across = np.diff(own, axis=1)[b : lattice.rows - 1 + b] / steps[0]
            up = np.diff(own, axis=0)[:, a : lattice.columns - 1 + a] / steps[1]
            with np.errstate(divide="ignore", invalid="ignore"):
                fx, fy = (np.where(here > 0, slope / here, 0.0) for slope in (across, up))
            dual = {
                "euclidean": np.hypot(fx, fy),
                "manhattan": np.maximum(abs(fx), abs(fy)),
                "chebyshev": abs(fx) + abs(fy),
            }
            place = np.unravel_index(int(dual[distance].argmax()), fx.shape)
            found.append((float(dual[distance][place]), place, (a, b), float(fx[place]), float(fy[place])))
    steepest, (row, column, observable), (a, b), fx, fy = max(found)
    if not steepest:
        # In this case, all points have the same distribution of answers.
        return 0.0
    if distance == "euclidean":
        way = np.array([fx, fy]) / max(math.hypot(fx, fy), 1e-300)
    elif distance == "manhattan":
        way = np.array([math.copysign(1, fx), 0.0] if abs(fx) > abs(fy) else [0.0, math.copysign(1, fy)])
    else:
        way = np.array([math.copysign(1, fx), math.copysign(1, fy)])
    short = 1e-6 * float(steps.min())
    start = np.array([column + a, row + b]) * steps + np.array([1 - 2 * a, 1 - 2 * b]) * 2 * short
    end = start + short * way
    q, p = exactly(design, start, int(observable)), exactly(design, end, int(observable))
    return math.log1p(float((p - q) / q)) / float(lengths(distance, (end - start)[None, :])[0])


def costs(console: Console) -> tuple[dict[str, Any], bool]:
    """Compare costs with those of cells and of planar Laplace noise."""
    side, sigma = 8.0, 2.0
    middles = (np.arange(80) + 0.5) * side / 80
    points = np.stack(np.meshgrid(middles, middles), axis=-1).reshape(-1, 2)
    weights = np.exp(-((points - side / 2) ** 2).sum(axis=1) / (2 * sigma**2))
    weights /= weights.sum()
    table, good = [], True
    answers = md.Domain.grid(17, 17, side, side)
    for epsilon, most in ((0.5, 2.03), (1.0, 1.70), (2.0, math.inf)):
        for n in (9, 13, 17):
            anchors, cells = md.Domain.anchors(n, n, side, side), md.Domain.grid(n - 1, n - 1, side, side)
            started = time.perf_counter()
            required = [md.ContinuousPrivacy(epsilon, anchors)]
            design = md.design(md.Problem.from_visits(points, answers, required, weights=weights), tolerance=1e-4)
            seconds = round(time.perf_counter() - started, 1)
            record = {
                "epsilon": epsilon, "anchors": n, "cost": design.certificate.cost,
                "tight": design.certificate.epsilon[0], "gap": design.certificate.relative_gap,
                "snapped": snapped(points, weights, cells, answers, epsilon),
                "planar_laplace": 2 / epsilon, "seconds": seconds,
            }  # fmt: skip
            if n == 17:
                record["planar_laplace_remapped"] = remapped(points, weights, epsilon)
                good = good and record["cost"] <= most
            table.append(record)
            console.print(json.dumps(record))
    return {"side": side, "sigma": sigma, "rows": table}, good


def snapped(points: Floats, weights: Floats, cells: md.Domain, answers: md.Domain, epsilon: float) -> float:
    """Return the cost of the best channel on cells for points snapped to cells; it is private only between centres."""
    index = cells.cell_of(points[:, 0], points[:, 1])
    prior = np.bincount(index, weights, minlength=cells.size)
    apart = md.distances.euclidean(points, answers.points)
    means = np.zeros((cells.size, answers.size))
    np.add.at(means, index, weights[:, None] * apart)
    means /= np.where(prior > 0, prior, 1)[:, None]
    metric = md.MetricPrivacy(epsilon, md.distances.euclidean(cells))
    problem = md.Problem(prior / prior.sum(), means, [metric], secrets=cells, observables=answers)
    return md.design(problem, tolerance=1e-3).certificate.cost


def remapped(points: Floats, weights: Floats, epsilon: float) -> float:
    """Return the cost of planar Laplace noise whose outputs are replaced by the best answer, on a grid of 0.1."""
    reach, cell = 8.0 + 6 / epsilon, 0.25
    outputs = np.arange(4 - reach, 4 + reach, cell)
    grid = np.stack(np.meshgrid(outputs, outputs), axis=-1).reshape(-1, 2)
    answers = np.stack(np.meshgrid(np.arange(0.05, 8, 0.2), np.arange(0.05, 8, 0.2)), axis=-1).reshape(-1, 2)
    error = md.distances.euclidean(answers, points)
    total = mass = 0.0
    for start in range(0, len(grid), 512):
        part = grid[start : start + 512]
        apart = np.sqrt(((part[:, None] - points[None]) ** 2).sum(axis=2))
        joint = weights * epsilon**2 / (2 * np.pi) * np.exp(-epsilon * apart) * cell**2
        total += float((error @ joint.T).min(axis=0).sum())
        mass += float(joint.sum())
    return total / mass


def laplace(console: Console) -> tuple[dict[str, Any], bool]:
    """Build channels on anchors from planar Laplace noise, and prove exactly that they satisfy ε between all points."""
    side = 8.0
    middles = (np.arange(40) + 0.5) * side / 40
    points = np.stack(np.meshgrid(middles, middles), axis=-1).reshape(-1, 2)
    weights = np.exp(-((points - side / 2) ** 2).sum(axis=1) / 8)
    weights /= weights.sum()
    answers, table = md.Domain.grid(17, 17, side, side), []
    for epsilon in (0.5, 1.0, 2.0):
        for n in (17, 33):
            anchors = md.Domain.anchors(n, n, side, side)
            requirement, step = md.ContinuousPrivacy(epsilon, anchors), side / (n - 1)
            problem = md.Problem.from_visits(points, answers, [requirement], weights=weights)
            low, high, best = 0.97 * math.log1p(epsilon * step) / step, epsilon, {}
            for _ in range(7):
                noise = (low + high) / 2
                channel = md.Channel.from_matrix(_noisy(anchors, points, weights, answers, noise))
                tight = requirement.least_epsilon(channel)
                low, high = (noise, high) if tight <= epsilon else (low, noise)
                if tight <= epsilon:
                    cost = float((problem.prior[:, None] * problem.cost * channel.matrix).sum())
                    best = {"epsilon": epsilon, "anchors": n, "noise": noise, "tight": tight, "cost": cost}
            table.append(best)
            console.print(json.dumps(best))
    return {"rows": table}, all(row and row["tight"] <= row["epsilon"] for row in table)


def _noisy(anchors: md.Domain, points: Floats, weights: Floats, answers: md.Domain, noise: float) -> Floats:
    """Return the probabilities of answers at each anchor, for noise on outputs at distances of a quarter."""
    reach = 8 + 8 / noise
    # The grid of outputs is shifted, so that no anchor is an output.
    line = np.arange(4 - reach, 4 + reach, 0.25) + 0.013
    outputs = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    error = md.distances.euclidean(answers.points, points)
    found = np.zeros((anchors.size, answers.size))
    for start in range(0, len(outputs), 1024):
        part = outputs[start : start + 1024]
        apart = np.sqrt(((part[:, None] - points[None]) ** 2).sum(axis=2))
        best = (error @ (weights * np.exp(-noise * apart)).T).argmin(axis=0)
        from_anchors = np.sqrt(((anchors.points[:, None] - part[None]) ** 2).sum(axis=2))
        np.add.at(found.T, best, np.exp(-noise * from_anchors).T)
    return found / found.sum(axis=1, keepdims=True)


def main() -> int:
    """Run one of the two parts, write its results and return whether all checks pass."""
    given = options(__doc__, action=("pairs", "costs", "laplace"), output=Path)
    warnings.simplefilter("ignore")
    found, good = {"pairs": pairs, "costs": costs, "laplace": laplace}[given.action](Console(highlight=False))
    write(given.output or RESULTS / f"continuous_{given.action}.json", {"origin": origin()} | found)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
