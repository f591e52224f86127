"""Well-known mechanisms for comparison with a design.

These mechanisms have the same observables as the design. The probabilities are computed in floating point and rounded
to integers over 2**62. The tight ε is computed exactly from these integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse.csgraph import csgraph_from_masked, shortest_path

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.base._check import require_kind
from mechdesign.certify import _privacy as privacy
from mechdesign.certify._dithering import EUCLIDEAN
from mechdesign.measures import attack
from mechdesign.mechanisms._finite import exponential_rows
from mechdesign.mechanisms._planar_laplace import planar_laplace
from mechdesign.model._channel import EXPONENT, Channel
from mechdesign.model._problem import Problem, attack_measure
from mechdesign.model._words import short
from mechdesign.model.distances import euclidean

NO_INFORMATION = "no information: always the same answer"
TUNED = "tuned exponential mechanism"
ON_CELLS = "planar Laplace, moved to the nearest answer"
ON_COORDINATES = "planar Laplace on the coordinates, moved to the nearest answer"


@dataclass(frozen=True)
class Reference:
    """The cost of a well-known mechanism.

    Attributes:
        name: The name of the mechanism.
        cost: The cost of the mechanism.
        note: A note on a requirement that the mechanism violates, or empty.
        meets: Whether the mechanism meets all requirements.
    """

    name: str
    cost: float
    note: str = ""
    meets: bool = True


def combine_bounds(problem: Problem) -> Floats | None:
    """Return the largest metric E (n, n) for which p(o|s) <= exp(E(s, t)) p(o|t) implies every pair bound.

    E(s, t) is the shortest-path length in the graph of the bounded pairs, in both directions. The length of an edge is
    ln g, where g is the bound of the pair. If there is no path, E(s, t) is infinite. The result is None if no pair is
    bounded.
    """
    n = len(problem.prior)
    bounds = np.full((n, n), np.inf)
    for bound in problem.pair_bounds.values():
        np.minimum.at(bounds, (bound.sources, bound.targets), bound.exponents)
    bounds = np.minimum(bounds, bounds.T)
    np.fill_diagonal(bounds, 0.0)
    if not np.isfinite(bounds[~np.eye(n, dtype=np.bool_)]).any():
        return None
    # SciPy treats zeros of a plain matrix as missing edges, but here they are edges of length 0.
    lengths: Floats = shortest_path(csgraph_from_masked(np.ma.masked_invalid(bounds)), method="FW")
    return lengths


# The number of units added to each entry, so that rounding hardly changes the ratios of small entries.
_UNITS = 2**20
# The largest number of pairs times answers for which the tight ε is computed; a larger number would take minutes.
_MAX_COMPARISONS = 10**8


@dataclass(frozen=True, eq=False)
class Baseline:
    """A well-known mechanism as an exact channel.

    Attributes:
        name: The name of the mechanism.
        channel: The channel of the mechanism.
        cost: The cost under the objective of the problem, in floating point.
        error: The adversary's expected error, in the unit of `mechdesign.model._problem.attack_measure`.
        tight: The least ε or factor of each pair bound, rounded up; None for large problems.
        note: A note on a requirement that the mechanism violates, or empty.
        rate: λ of a tuned exponential mechanism; None for the others.
    """

    name: str
    channel: Channel
    cost: float
    error: float
    tight: tuple[float, ...] | None
    note: str = ""
    rate: float | None = None


def baselines(problem: Problem) -> tuple[Baseline, ...]:
    """Return the mechanisms beside which `figures.costs` and reports show a design, for the same secrets and answers.

    These are planar Laplace noise, moved to the nearest answer (Andrés et al. 2013), the tuned exponential mechanism,
    the remap of both to the best answers (Chatzikokolakis et al. 2017), and the best answer without information. The
    tuned exponential mechanism is p(o|s) ∝ exp(−λ E(s, o)) with the largest λ that meets all pair bounds, where E is
    the bound on the logarithm of the odds. Under metric privacy E = ε d; `mechanisms.Exponential` has λ = 1/2.

    Args:
        problem: The problem of a design.

    Returns:
        The mechanisms that exist for this problem.

    Raises:
        InputError: The argument is not a `Problem`.

    >>> import mechdesign as md
    >>> distance = md.distances.hamming(2)
    >>> problem = md.Problem([0.5, 0.5], distance, [md.MetricPrivacy(1, distance)])
    >>> [(each.name, round(each.cost, 3), each.rate) for each in baselines(problem)][:2]
    [('tuned exponential mechanism', 0.269, 1.0), ('tuned exponential mechanism, remapped', 0.269, 1.0)]
    """
    require_kind(problem, Problem, "problem", "a Problem, such as design.problem")
    error = attack_measure(problem).matrix
    return tuple(_measure(name, problem, numerators, error, factor) for name, numerators, factor in _channels(problem))


def _continuous_rate(problem: Problem) -> float | None:
    """Return the ε of planar Laplace noise on the coordinates, if all requirements are continuous and Euclidean."""
    claims = problem.point_bounds
    if not claims or set(bounds(problem)) != set(claims) or any(claim.norm != EUCLIDEAN for claim in claims.values()):
        return None
    return float(min(claim.epsilon for claim in claims.values()))


def reference_costs(problem: Problem, compared: Iterable[Baseline]) -> tuple[Reference, ...]:
    """Return the costs of the baselines, and the cost of the best answers without privacy."""
    least = problem.cost.min(axis=1)
    truth = float(problem.prior @ least if problem.objective == "expected" else least.max())
    return (
        Reference("no privacy: the best answer for each secret", truth, meets=not len(problem.claims)),
        *(Reference(f"{item.name}{_write_rate(item)}", item.cost, item.note, not item.note) for item in compared),
    )


def _write_rate(item: Baseline) -> str:
    return "" if item.rate is None else f", λ = {short(item.rate)}"


def tight_epsilons(problem: Problem, numerators: Integers) -> tuple[float, ...] | None:
    """Return the least ε or factor of each of the `bounds`, rounded up; None for large problems."""
    indices, between = bounds(problem), problem.point_bounds
    pairs = sum(len(numerators) if place in between else len(problem.pair_bounds[place]) for place in indices)
    if pairs * numerators.shape[1] > _MAX_COMPARISONS:
        return None
    return tuple(
        between[place].least(between[place].steepest(numerators))
        if place in between
        else privacy.realised(numerators, EXPONENT, problem.pair_bounds[place])
        for place in indices
    )


def bounds(problem: Problem) -> tuple[int, ...]:
    """Return the indices of the pair bounds; for continuous privacy, only its bound between all points counts."""
    continuous = {problem.places[index] for index in problem.point_bounds}
    between_pairs = {index for index in problem.pair_bounds if problem.places[index] not in continuous}
    return tuple(sorted(between_pairs | problem.point_bounds.keys()))


def _channels(problem: Problem) -> Iterator[tuple[str, Integers, float | None]]:
    """Yield the names, numerators and λ of the channels without forbidden answers."""
    bound = combine_bounds(problem)
    if bound is not None:
        places, sites = problem.secrets, problem.observables
        if (rate := _planar_rate(problem, bound)) is not None:
            assert places is not None
            assert sites is not None
            planar = planar_laplace(rate, places.points, sites.points)
            masses = _whole(planar, np.ones(planar.shape, dtype=np.bool_))
            if _continuous_rate(problem) is None:
                yield from _with_remap("planar Laplace", masses, problem, plain=ON_CELLS)
            else:
                yield from _with_remap(ON_COORDINATES, masses, problem, plain=ON_COORDINATES)
        itself = sites is places if places is not None else _answers_are_secrets(problem)
        tuned, factor = tuned_exponential(bound)
        masses = _whole(tuned, np.isfinite(bound))
        same = itself and masses.shape == problem.cost.shape
        yield from _with_remap(TUNED, masses, problem, TUNED if same else "", factor)
    of_all = np.isfinite(problem.cost).all(axis=0)
    if of_all.any():
        costs = problem.prior @ np.where(of_all, problem.cost, 0.0)
        if problem.objective == "worst":
            costs = np.where(of_all, problem.cost, 0.0).max(axis=0)
        constant = np.zeros(problem.cost.shape, dtype=np.int64)
        constant[:, np.where(of_all, costs, np.inf).argmin()] = 2**EXPONENT
        yield NO_INFORMATION, constant, None


def _with_remap(
    name: str, masses: Integers, problem: Problem, plain: str, factor: float | None = None
) -> Iterator[tuple[str, Integers, float | None]]:
    """Yield a channel under the name `plain` if this is not empty, and the channel with the outputs of `_remap`."""
    if plain and _is_permitted(problem, masses):
        yield plain, masses, factor
    if problem.objective == "expected":
        remapped = _remap(problem, masses)
        if _is_permitted(problem, remapped):
            yield f"{name}, remapped", remapped, factor


def tuned_exponential(bound: Floats) -> tuple[Floats, float]:
    """Return p(o|s) ∝ exp(−λ E(s, o)) (n, n), and the largest λ that satisfies every bound of the metric E.

    The largest ratio of the rows of s and t is exp(λ E(s, t)) Z(t)/Z(s), where Z(s) is the sum of the weights of row s.
    The bounds always hold for λ = 1/2, and never for λ > 1.
    """
    finite = np.isfinite(bound)

    def keeps_bounds(scale: float) -> bool:
        sums = np.log(np.where(finite, np.exp(-scale * np.where(finite, bound, 0.0)), 0.0).sum(axis=1))
        excess = (scale - 1) * np.where(finite, bound, 0.0) + sums[None, :] - sums[:, None]
        return bool((excess[finite] <= 1e-15).all())

    low, high = 0.5, 1.0
    if keeps_bounds(high):
        low = high
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if keeps_bounds(middle) else (low, middle)
    return exponential_rows(bound, low), low


def _planar_rate(problem: Problem, bound: Floats) -> float | None:
    """Return the ε of planar Laplace noise, or None without places in a plane.

    It is the ε between all points, or the largest ε for which ε times the distance is at most each bound.
    """
    places, sites = problem.secrets, problem.observables
    if places is None or sites is None or places.points.shape[1] != 2 or sites.points.shape[1] != 2:
        return None
    if places.unit != sites.unit or len(np.unique(sites.points, axis=0)) != sites.size:
        return None
    if (between := _continuous_rate(problem)) is not None:
        return between
    apart = euclidean(places)
    tied = np.isfinite(bound) & (apart > 0)
    rate = float((bound[tied] / apart[tied]).min()) if tied.any() else 0.0
    return rate or None


def _remap(problem: Problem, numerators: Integers) -> Integers:
    """Replace each output by the answer of least expected cost given the output; this preserves privacy."""
    finite = np.isfinite(problem.cost)
    costs = numerators.T.astype(np.float64) @ (problem.prior[:, None] * np.where(finite, problem.cost, 0.0))
    barred = (numerators > 0).T.astype(np.float64) @ ~finite > 0
    best = np.where(barred, np.inf, costs).argmin(axis=1)
    remapped = np.zeros(problem.cost.shape, dtype=np.int64)
    np.add.at(remapped.T, best, numerators.T)
    return remapped


def _whole(masses: Floats, filled: Flags) -> Integers:
    """Round the masses of each row to integers that sum to 2**62; entries flagged in `filled` remain positive."""
    extra = _UNITS * filled
    scale = 2.0**EXPONENT - extra.sum(axis=1, keepdims=True)
    numerators: Integers = np.floor(masses * scale).astype(np.int64) + extra
    # Python integers avoid overflow: sums may slightly exceed 2**62.
    rest = [2**EXPONENT - sum(row) for row in numerators.tolist()]
    numerators[np.arange(len(numerators)), masses.argmax(axis=1)] += np.array(rest, dtype=np.int64)
    return numerators


def _measure(name: str, problem: Problem, numerators: Integers, error: Floats, factor: float | None) -> Baseline:
    channel = Channel(numerators)
    matrix = channel.matrix
    costs = (matrix * np.where(matrix > 0, problem.cost, 0.0)).sum(axis=1)
    cost = float(problem.prior @ costs if problem.objective == "expected" else costs.max())
    erred = attack.optimal(channel, problem.prior, error).distortion
    note = _describe_missed_floor(problem, matrix)
    # Noise on the coordinates is not dithered: its ε is that of the noise.
    rate = _continuous_rate(problem) if name.startswith(ON_COORDINATES) else None
    tight = tight_epsilons(problem, numerators) if rate is None else (rate,) * len(bounds(problem))
    return Baseline(name, channel, cost, float(erred), tight, note, factor)


def _is_permitted(problem: Problem, numerators: Integers) -> bool:
    return not bool(((numerators > 0) & np.isinf(problem.cost)).any())


def _answers_are_secrets(problem: Problem) -> bool:
    n, m = problem.cost.shape
    return n == m and bool((np.diagonal(problem.cost) == problem.cost.min(axis=1)).all())


def _describe_missed_floor(problem: Problem, mechanism: Floats) -> str:
    """Return a note if the adversary's error violates a distortion floor by more than rounding, otherwise ""."""
    for floor in problem.floors.values():
        joint = floor.prior_or(problem.prior)[:, None] * mechanism
        error = float((floor.error @ joint).min(axis=0).sum())
        if error < float(floor.minimum) * (1 - 1e-9):
            return "violates the distortion floor"
    return ""
