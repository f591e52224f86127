"""Privacy Games (Shokri 2015), section 9 and appendix C, on real check-ins: the designs behind its Figures 2 to 8.

As in the paper, distances are Euclidean, and the cost is the Hamming distance. As in the paper, the priors are visit
frequencies, without smoothing, of ten users drawn at random. Unlike in the paper, the map is New York, and coarser.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

import mechdesign as md
from mechdesign.solve._contract import Options
from mechdesign.solve._linear import LinearProgram
from mechdesign.solve._solve import solve
from papers.experiments import Experiment, Row

__all__ = ["APPROXIMATION", "EXPERIMENTS", "SCENARIO_1", "SCENARIO_2", "SCENARIO_3", "informed", "town", "users"]

Floats = NDArray[np.float64]

CHECKINS = "foursquare_nyc_marc/specific_train.csv"
# The box has some 15 × 8 km, as in the paper: Manhattan below 80th Street, and Brooklyn north of Prospect Park.
BOX = {"south": 40.66, "north": 40.795, "west": -74.02, "east": -73.925}
FEWEST_VISITS = 100
# Share of the prior that a better informed adversary moves to the user's two most visited cells.
SHARES = (0.25, 0.5, 0.75)
TOLERANCE = 1e-6


def town(columns: int, rows: int) -> md.Domain:
    """Return the grid of cells that covers the box."""
    return md.Domain.geographic_grid(columns=columns, rows=rows, **BOX)


def users(folder: Path, domain: md.Domain, number: int, seed: int = 10) -> list[Floats]:
    """Return the priors (n,) of users drawn at random among those with enough visits to the map."""
    traces = md.data.read_checkins(folder / CHECKINS, user="label", latitude="lat", longitude="lon")
    visits = md.data.to_grid(traces, domain)
    counts = [visits.counts(user) for user in sorted(set(visits.users))]
    enough = [count for count in counts if count.sum() >= FEWEST_VISITS]
    drawn = np.random.default_rng(seed).choice(len(enough), size=10, replace=False)[:number]
    return [enough[index] / enough[index].sum() for index in drawn]


def informed(prior: Floats, share: float) -> Floats:
    """Return the belief of an adversary with further evidence for the two most visited cells (section 9.2).

    A `share` of the belief in all other cells is moved to these two cells, in the proportion of their visits.
    """
    top = np.argsort(-prior, kind="stable")[:2]
    belief = prior * (1 - share)
    belief[top] = prior[top] + share * (1 - prior[top].sum()) * prior[top] / prior[top].sum()
    return belief / belief.sum()


def designed(prior: Floats, distance: Floats, epsilon: float | None, floor: float | None) -> tuple[md.Design, Row]:
    """Design for the Hamming cost; return errors of the optimal (19), the Bayesian (25) and better informed attacks."""
    requirements: list[md.MetricPrivacy | md.DistortionPrivacy] = []
    if epsilon is not None:
        requirements.append(md.MetricPrivacy(f"{epsilon:g}", distance))
    if floor is not None:
        requirements.append(md.DistortionPrivacy(f"{floor:.6f}", distance))
    # Distortion privacy alone bounds no pair, and its channels reveal some cells, as intended here.
    with warnings.catch_warnings(action="ignore", category=md.errors.RevealedWarning):
        found = md.design(md.Problem(prior, 1.0 - np.eye(len(prior)), requirements), tolerance=TOLERANCE)
    channel = found.channel
    row: Row = {
        "cost": found.certificate.expected_cost,
        "lower_bound": found.certificate.lower_bound,
        "optimal": md.attack.optimal(channel, prior, distance).distortion,
        "bayes": md.attack.bayes(channel, prior, distance).distortion,
    }
    for share in SHARES:
        belief = informed(prior, share)
        row[f"informed_{share:g}"] = md.attack.optimal(channel, belief, distance).distortion
    return found, row


def below(value: float) -> float:
    """Return a floor of six decimals slightly below a distortion, so that rounding cannot make it infeasible."""
    return math.floor((value - 2e-6) * 1e6) / 1e6


def scenario_1(folder: Path, *, columns: int, rows: int, number: int, epsilons: list[float]) -> Iterator[Row]:
    """Use the distortion that the differential mechanism reaches as the floor of the two other mechanisms."""
    domain = town(columns, rows)
    distance = md.distances.euclidean(domain)
    for user, prior in enumerate(users(folder, domain, number), 1):
        largest = float((distance @ prior).min())
        for epsilon in epsilons:
            _, differential = designed(prior, distance, epsilon, None)
            floor = below(differential["optimal"])
            same = {"user": user, "epsilon": epsilon, "floor": floor, "largest_floor": largest}
            yield same | {"mechanism": "differential"} | differential
            yield same | {"mechanism": "distortion"} | designed(prior, distance, None, floor)[1]
            yield same | {"mechanism": "joint"} | designed(prior, distance, epsilon, floor)[1]


def scenario_2(
    folder: Path, *, columns: int, rows: int, number: int, epsilons: list[float], parts: list[float]
) -> Iterator[Row]:
    """Require floors between the differential mechanism's distortion and the largest, at given shares of the range."""
    domain = town(columns, rows)
    distance = md.distances.euclidean(domain)
    for user, prior in enumerate(users(folder, domain, number), 1):
        largest = float((distance @ prior).min())
        for epsilon in epsilons:
            _, differential = designed(prior, distance, epsilon, None)
            for part in parts:
                floor = below(differential["optimal"] + part * (largest - differential["optimal"]))
                same = {"user": user, "epsilon": epsilon, "part": part, "floor": floor}
                yield same | {"mechanism": "differential"} | differential
                yield same | {"mechanism": "distortion"} | designed(prior, distance, None, floor)[1]
                yield same | {"mechanism": "joint"} | designed(prior, distance, epsilon, floor)[1]


def scenario_3(
    folder: Path, *, columns: int, rows: int, number: int, epsilons: list[float], step: float
) -> Iterator[Row]:
    """Combine every ε with every floor; the floors do not depend on ε."""
    domain = town(columns, rows)
    distance = md.distances.euclidean(domain)
    for user, prior in enumerate(users(folder, domain, number), 1):
        largest = float((distance @ prior).min())
        floors = [step * k for k in range(1, int(largest / step) + 1)]
        differential = {epsilon: designed(prior, distance, epsilon, None)[1] for epsilon in epsilons}
        distortion = {floor: designed(prior, distance, None, floor)[1] for floor in floors}
        for epsilon in epsilons:
            for floor in floors:
                same = {"user": user, "epsilon": epsilon, "floor": floor, "largest_floor": largest}
                yield same | {"mechanism": "differential"} | differential[epsilon]
                yield same | {"mechanism": "distortion"} | distortion[floor]
                yield same | {"mechanism": "joint"} | designed(prior, distance, epsilon, floor)[1]


def approximation(
    folder: Path, *, columns: int, rows: int, number: int, epsilon: float, part: float, radii: list[float]
) -> Iterator[Row]:
    """Drop the bounds between places farther apart than a radius (appendix C), and measure the remaining privacy.

    Each program requires ε and a floor at a given share of the largest distortion.
    """
    domain = town(columns, rows)
    distance = md.distances.euclidean(domain)
    for user, prior in enumerate(users(folder, domain, number), 1):
        floor = below(part * float((distance @ prior).min()))
        clock = time.perf_counter()
        exact, row = designed(prior, distance, epsilon, floor)
        whole = {"rows": len(prior) ** 2 * (len(prior) - 1), "seconds": time.perf_counter() - clock}
        real = {"tight_epsilon": float(exact.certificate.epsilon[0]), "optimal": row["optimal"], "cost": row["cost"]}
        yield {"user": user, "radius": 0.0, "floor": floor} | whole | real
        for radius in radii:
            program = near_program(prior, distance, epsilon, floor, radius)
            clock = time.perf_counter()
            found = solve(program, "highs-ipx", Options(1e-8, vertex=True))
            seconds = time.perf_counter() - clock
            n = len(prior)
            matrix = np.maximum(found.x[: n * n].reshape(n, n), 0.0)
            matrix /= matrix.sum(axis=1, keepdims=True)
            yield {
                "user": user,
                "radius": radius,
                "floor": floor,
                "rows": program.rows,
                "seconds": seconds,
                "tight_epsilon": tight_epsilon(matrix, distance),
                "optimal": md.attack.optimal(matrix, prior, distance).distortion,
                "cost": float((prior * (1 - np.diag(matrix))).sum()),
            }


def near_program(prior: Floats, distance: Floats, epsilon: float, floor: float, radius: float) -> LinearProgram:
    """Return program (24) over p (n²) and x (n) with only the rows of pairs and observables within the radius."""
    n = len(prior)
    near = distance <= radius
    s, t = np.nonzero(near & ~np.eye(n, dtype=bool))
    pair, o = np.nonzero(near[s])
    s, t = s[pair], t[pair]
    ratio = _rows(n, [s * n + o, t * n + o], [-np.ones(len(o)), np.exp(epsilon * distance[s, t])])
    guess, seen = np.nonzero(near)
    places = [secret * n + seen for secret in range(n)]
    parts = [prior[secret] * distance[guess, secret] for secret in range(n)]
    errors = _rows(n, [*places, n * n + seen], [*parts, -np.ones(len(seen))])
    sums = sparse.hstack([sparse.kron(sparse.eye_array(n), np.ones((1, n))), sparse.csr_array((n, n))])
    total = sparse.csr_array(np.concatenate([np.zeros(n * n), np.ones(n)])[None])
    free = ratio.shape[0] + errors.shape[0]
    return LinearProgram(
        cost=np.concatenate([(prior[:, None] * (1 - np.eye(n))).ravel(), np.zeros(n)]),
        matrix=sparse.csr_array(sparse.vstack([ratio, errors, sums, total])),
        row_lower=np.concatenate([np.zeros(free), np.ones(n), [floor]]),
        row_upper=np.concatenate([np.full(free, np.inf), np.ones(n), [np.inf]]),
        lower=np.zeros(n * n + n),
        upper=np.full(n * n + n, np.inf),
    )


def tight_epsilon(matrix: Floats, distance: Floats, seen: float = 1e-6, least: float = 1e-12) -> float:
    """Return a lower bound of the smallest ε that a channel keeps for all pairs.

    Numerators below `seen` are ignored, and denominators are raised to `least`: a single zero would make ε infinite.
    """
    with np.errstate(divide="ignore"):
        tops = np.where(matrix > seen, np.log(np.maximum(matrix, seen)), -np.inf)
    bottoms = np.log(np.maximum(matrix, least))
    worst = 0.0
    for s in range(len(matrix)):
        apart = distance[s] > 0
        worst = max(worst, float(((tops[s] - bottoms[apart]).max(axis=1) / distance[s, apart]).max()))
    return worst


def _rows(n: int, columns: list[NDArray[np.int64]], values: list[Floats]) -> sparse.csr_array:
    """Return sparse rows; the k-th entry of each row is values[k] in the column columns[k]."""
    places = (np.tile(np.arange(len(columns[0])), len(columns)), np.concatenate(columns))
    return sparse.csr_array((np.concatenate(values), places), shape=(len(columns[0]), n * n + n))


# The optimal value is unique, but the optimal channel and the gains of attacks on it are not.
_SPREAD = {"cost": 1e-5, "lower_bound": 1e-5, "optimal": 0.02, "bayes": 0.02}
_SMALL_MAP = {"columns": 3, "rows": 4, "number": 2}
_FULL_MAP = {"columns": 6, "rows": 8, "number": 10}

SCENARIO_1 = Experiment(
    "privacy_games_scenario_1",
    scenario_1,
    small=_SMALL_MAP | {"epsilons": [0.3, 0.9]},
    full=_FULL_MAP | {"epsilons": [0.15, 0.3, 0.45, 0.6, 0.75, 0.9]},
    keys=("user", "epsilon", "mechanism"),
    spread=_SPREAD,
    data=(CHECKINS,),
)
SCENARIO_2 = Experiment(
    "privacy_games_scenario_2",
    scenario_2,
    small=_SMALL_MAP | {"epsilons": [0.6], "parts": [0.5]},
    full=_FULL_MAP | {"epsilons": [0.3, 0.6, 0.9], "parts": [0.25, 0.5, 0.75]},
    keys=("user", "epsilon", "part", "mechanism"),
    spread=_SPREAD,
    data=(CHECKINS,),
)
SCENARIO_3 = Experiment(
    "privacy_games_scenario_3",
    scenario_3,
    small=_SMALL_MAP | {"epsilons": [0.4, 1.0], "step": 1.0},
    full=_FULL_MAP | {"epsilons": [0.2, 0.4, 0.6, 0.8, 1.0], "step": 0.5},
    keys=("user", "epsilon", "floor", "mechanism"),
    spread=_SPREAD,
    data=(CHECKINS,),
)
APPROXIMATION = Experiment(
    "privacy_games_approximation",
    approximation,
    small=_SMALL_MAP | {"epsilon": 0.6, "part": 0.8, "radii": [4.0, 100.0]},
    full=_FULL_MAP | {"epsilon": 0.6, "part": 0.8, "radii": [2.0, 3.0, 4.0, 6.0, 9.0, 15.0]} | {"number": 3},
    keys=("user", "radius"),
    spread={"cost": 1e-4},
    data=(CHECKINS,),
)
EXPERIMENTS = (SCENARIO_1, SCENARIO_2, SCENARIO_3, APPROXIMATION)
