"""Exact decisions: whether a channel of integers keeps a pair bound, and the least ε or factor for which it does.

The claim p(o|s) <= g p(o|t) is decided as N[s,o]·B <= A·N[t,o] in integers. A/B is a lower bound on g, or g itself if g
is rational. An accepted channel is private, without any tolerance.

Secrets that an answer reveals with certainty are found here, too.

**The filter.** Floats decide nearly all of these inequalities. Let h = A/B - 1 >= 0, D = N[s,o] - N[t,o] (exact in
int64) and N = N[t,o]. The claim is D <= h·N. Let u = 2**-53, h' = fl(h), N' = fl(N), D' = fl(D) and c = fl(h'(1 - 8u)).
Then fl(c·N') <= h·N (1 - 8u)(1 + u)⁴, and D <= D' / (1 - u) if D > 0. Since (1 - 8u)(1 + u)⁴ / (1 - u) < 1,
D' <= fl(c·N') proves D <= h·N; so does D <= 0. In the same way, with c = fl(h'(1 + 8u)), D' > fl(c·N') proves
D > h·N, as (1 + 8u)(1 - u)⁴ / (1 + u) > 1. Nothing underflows: h is 0 or at least 1/B >= 2**-SHIFT, and N is 0 or at
least 1. Python's integers decide the remaining inequalities.

**The coarse test** precedes the filter and decides most inequalities in fewer steps. Let F = fl(N) and
c = fl(fl(1 + h')(1 - 16u)). Then F[s,o] <= fl(c·F[t,o]) proves N[s,o] (1 - u) <= A/B (1 - 16u)(1 + u)⁵ N[t,o]. This
inequality implies the claim, as (1 - 16u)(1 + u)⁵ / (1 - u) < 1. Observables that never occur are skipped, since 0 <=
0.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arrays import Floats, Integers, require_below
from mechdesign.base._errors import CertificateError, InputError
from mechdesign.base._machine import count_processors, count_threads
from mechdesign.certify._claims import ExponentBound, PairBound, RatioBound
from mechdesign.certify._exact import exact, float_up
from mechdesign.certify._exponential import ln_upper

T = TypeVar("T")

# Number of entries in one block, whose temporary arrays fit in the processor's cache.
_BLOCK_ENTRIES = 2**16
# Maximum number of trials near the least ε; two trials suffice in all known cases.
_MAX_TRIALS = 12
# Minimum number of entries for which all processors share the work; elementwise operations release the interpreter
# lock.
_MIN_SHARED_ENTRIES = 2**26


@dataclass(frozen=True)
class Violation:
    """The worst violated inequality: N[source, observable] is `1 + excess` times its bound.

    Attributes:
        source: The secret s.
        target: The secret t.
        observable: The observable o.
        excess: The relative excess; infinite if the target never gives the observable.
        sentence: A sentence that describes the violation.

    >>> Violation(0, 1, 2, 0.5, "").pair
    (0, 1)
    """

    source: int
    target: int
    observable: int
    excess: float
    sentence: str

    @property
    def pair(self) -> tuple[int, int]:
        """The two secrets."""
        return self.source, self.target


def check(numerators: Integers, exponent: int, bound: PairBound) -> Violation | None:
    """Decide exactly whether a channel keeps a pair bound.

    Args:
        numerators: The channel (n, m), int64; p(o|s) = numerators[s,o] / 2**exponent.
        exponent: An integer from 1 to 62.
        bound: The bound.

    Returns:
        None if the bound holds, else the worst violation. Violations are compared in floating point.

    Raises:
        InputError: The numerators are not a channel, or the bound refers to secrets outside the channel.

    >>> from fractions import Fraction
    >>> import numpy as np
    >>> bound = PairBound.metric(Fraction(1), [[0, 1], [1, 0]])
    >>> check(np.array([[3, 1], [1, 3]]), 2, bound).excess > 0
    True
    """
    _require_channel(numerators, exponent, bound)
    tops, bottoms = bound.factors_below(exponent)
    slack = _slack(tops, bottoms)
    surely_kept, surely_broken = slack * (1 - 2.0**-50), slack * (1 + 2.0**-50)
    coarse = (1 + slack) * (1 - 2.0**-49)
    used = np.flatnonzero(numerators.any(axis=0))
    if not used.size:
        return None
    numbers = np.ascontiguousarray(numerators[:, used])
    floats = numbers.astype(np.float64)

    def worst_of(part: slice) -> tuple[float, int, int, int] | None:
        pairs = part.start + _find_undecided(floats, bound, part, coarse)
        if not len(pairs):
            return None
        sources, targets = bound.sources[pairs], bound.targets[pairs]
        difference = numbers[sources] - numbers[targets]
        allowed = floats[targets]
        rows, observables = np.nonzero(difference > surely_kept[pairs, None] * allowed)
        if not len(rows):
            return None
        gap, room = difference[rows, observables], allowed[rows, observables]
        here = pairs[rows]
        broken = gap > surely_broken[here] * room
        excess = np.zeros(len(rows))
        with np.errstate(divide="ignore", under="ignore"):
            excess[broken] = ((gap - slack[here] * room) / ((1 + slack[here]) * room))[broken]
        close = np.flatnonzero(~broken)
        left = numbers[sources[rows[close]], observables[close]].astype(object) * bottoms[here[close]]
        right = tops[here[close]] * numbers[targets[rows[close]], observables[close]].astype(object)
        over = left > right
        broken[close] = over
        # The right side is not 0 here: a row with a right side of 0 has already been marked as violated.
        excess[close[over]] = [(a - b) / b for a, b in zip(left[over], right[over], strict=True)]
        if not broken.any():
            return None
        # Infinite excesses are ordered by their numerators.
        best = np.lexsort((gap, np.where(broken, excess, -1.0)))[-1]
        row = rows[best]
        return float(excess[best]), int(sources[row]), int(targets[row]), int(used[observables[best]])

    worst: tuple[float, int, int, int] | None = None
    for found in _map_blocks(worst_of, len(bound), len(used)):
        if found is not None and (worst is None or found[0] > worst[0]):
            worst = found
    return None if worst is None else Violation(*worst[1:], worst[0], _sentence(numerators, bound, worst))


def _find_undecided(floats: Floats, bound: PairBound, part: slice, coarse: Floats) -> Integers:
    """Return the pairs of a block that the coarse test does not decide, as offsets from its start."""
    sources = bound.sources[part]
    allowed = floats[bound.targets[part]]
    allowed *= coarse[part, None]
    # Consecutive pairs mostly have the same source.
    above = floats[sources[0]] if (sources == sources[0]).all() else floats[sources]
    return np.flatnonzero((above > allowed).any(axis=1))


def _map_blocks(task: Callable[[slice], T], pairs: int, observables: int) -> Iterator[T]:
    """Yield the results of `task` for blocks of the pairs, in order; large tasks are shared among all processors."""
    parts = _blocks(pairs, observables)
    if pairs * observables < _MIN_SHARED_ENTRIES:
        yield from map(task, parts)
        return
    cores = count_threads(count_processors())
    if cores < 2:
        # There is one processor, or the system cannot start threads.
        yield from map(task, parts)
        return
    # Imported late, because few bundles are that large.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(cores) as pool:
        # Waiting tasks take memory and delay Ctrl-C, so only a limited number is submitted at a time.
        while some := list(itertools.islice(parts, 64 * cores)):
            shares = [some[core::cores] for core in range(cores)]
            done = list(pool.map(lambda share: [task(part) for part in share], shares))
            yield from (done[index % cores][index // cores] for index in range(len(some)))


def realised(numerators: Integers, exponent: int, bound: PairBound) -> float:
    """Return the least ε, or the least factor, for which a bound holds.

    The least factor is max N[s,o]·B / (N[t,o]·A), compared exactly. The least ε is max ln(N[s,o] / N[t,o]) / w over
    pairs and observables. The least ε is 0 if N[s,o] <= N[t,o] for all pairs. The least ε is infinite if
    N[t,o] = 0 < N[s,o], or if the two rows of a pair with weight 0 differ.

    Floats select the candidates for the maximum. X = D·fl(1/N[t,o]) approximates N[s,o]/N[t,o] - 1 with a relative
    error of 5u, even for ratios close to 1. log1p(X)/w is within 2**-48 of the corresponding ε. Candidates within
    2**-46 of the largest are compared exactly: as ratios if their weights are equal, and by rigorous logarithms
    otherwise. The result must pass `check`, so that an error in this analysis cannot make it too small.

    Args:
        numerators: The channel (n, m), int64; p(o|s) = numerators[s,o] / 2**exponent.
        exponent: An integer from 1 to 62.
        bound: The bound.

    Returns:
        The number, rounded up so that its printed decimal passes `check`; inf if no number does.

    >>> from fractions import Fraction
    >>> import numpy as np
    >>> realised(np.array([[3, 1], [1, 3]]), 2, PairBound.metric(Fraction(1), [[0, 1], [1, 0]]))
    1.0986122886681098
    """
    _require_channel(numerators, exponent, bound)
    if not len(bound):
        return 0.0
    if isinstance(bound, RatioBound):
        return _least_factor(numerators, bound)
    if isinstance(bound, ExponentBound):
        return _least_epsilon(numerators, exponent, bound)
    raise InputError("bound", "has an unknown type", value=type(bound).__name__, bound="ExponentBound or RatioBound")


def _least_factor(numerators: Integers, bound: RatioBound) -> float:
    """Return max N[s,o]·B / (N[t,o]·A), rounded up; floats with relative errors below 2**-48 select the candidates."""
    floats = numerators.astype(np.float64)
    inverse = np.where(numerators > 0, 1 / np.maximum(floats, 1), 0.0)
    scale = bound.denominators / bound.numerators
    largest = np.zeros(len(bound))
    for part in _blocks(len(bound), numerators.shape[1]):
        sources, targets = bound.sources[part], bound.targets[part]
        if ((numerators[sources] > 0) & (numerators[targets] == 0)).any():
            return math.inf
        largest[part] = (floats[sources] * inverse[targets]).max(axis=1) * scale[part]
    if largest.max() <= 0:
        return 0.0
    found: set[tuple[int, int, int, int]] = set()
    for pair in np.flatnonzero(largest >= largest.max() * (1 - 2.0**-46)).tolist():
        above, below = numerators[bound.sources[pair]], numerators[bound.targets[pair]]
        ratios = floats[bound.sources[pair]] * inverse[bound.targets[pair]] * scale[pair]
        chosen = np.flatnonzero(ratios >= largest.max() * (1 - 2.0**-46))
        terms = int(bound.denominators[pair]), int(bound.numerators[pair])
        found.update((a, b, *terms) for a, b in zip(above[chosen].tolist(), below[chosen].tolist(), strict=True))
    return float_up(max(Fraction(a * top, b * bottom) for a, b, top, bottom in found))


def _least_epsilon(numerators: Integers, exponent: int, bound: ExponentBound) -> float:
    used = np.ascontiguousarray(numerators[:, numerators.any(axis=0)])
    if not used.size:
        return 0.0
    kept = _steepest(used, bound)
    deciding = replace(bound, sources=bound.sources[kept], targets=bound.targets[kept], weights=bound.weights[kept])
    upper = _bound_least_epsilon(used, deciding)
    if upper is None:
        return math.inf
    found = float_up(upper)
    for tried in range(_MAX_TRIALS):
        if not found or not math.isfinite(found):
            return found
        if check(numerators, exponent, replace(bound, epsilon=exact(found))) is None:
            return found
        # Bounds of the exponential are rounded, so the first float that passes may be one or two floats larger.
        for _ in range(2**tried):
            found = math.nextafter(found, math.inf)
    raise CertificateError(f"the least epsilon was not found: the floats up to {found!r} do not pass the check")


def _steepest(numerators: Integers, bound: ExponentBound) -> Integers:
    """Return the pairs that may determine the least ε, including those of weight 0.

    Let q be the largest ratio of a pair. Floats approximate ln(q)/w to within (1 + ln q)/w times 2**-47. Quotients have
    a relative error of 4u, and logarithms have errors of a few units in the last place.
    """
    floats = numerators.astype(np.float64)
    # The inverse of a zero is set to 2**200, which exceeds every ratio.
    inverse = np.where(numerators > 0, 1 / np.maximum(floats, 1), 2.0**200)

    def largest(part: slice) -> Floats:
        ratios = inverse[bound.targets[part]]
        sources = bound.sources[part]
        ratios *= floats[sources[0]] if (sources == sources[0]).all() else floats[sources]
        found: Floats = ratios.max(axis=1)
        return found

    ratio = np.concatenate(list(_map_blocks(largest, len(bound), numerators.shape[1])))
    # If the target entry is zero, no finite ε suffices: keep the pair as a candidate.
    growth = np.where(ratio > 2.0**100, np.inf, np.log(np.maximum(ratio, 1.0)))
    # Weights may be 0, or so small that quotients overflow; a pair whose result is NaN is kept.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore", under="ignore"):
        margin = 2.0**-47 * (1 + growth) / bound.weights
        rate = growth / bound.weights
        lower = rate - margin
        least = lower[np.isfinite(lower)].max(initial=0.0)
        return np.flatnonzero(~(rate + margin < least))


def _bound_least_epsilon(numerators: Integers, bound: ExponentBound) -> Fraction | None:
    """Return an upper bound on the least ε of some pairs, as accurate as `ln_upper`; None if no ε suffices."""
    floats = numerators.astype(np.float64)
    # The inverse of a zero is set to 2**200, which exceeds every ratio and gives 0 for 0/0.
    inverse = np.where(numerators > 0, 1 / np.maximum(floats, 1), 2.0**200)
    growth = np.empty(len(bound))
    for part in _blocks(len(bound), numerators.shape[1]):
        growth[part] = _growth(numerators, inverse, bound, part).max(axis=1)
    if growth.max() <= 0:
        return Fraction(0)
    if growth.max() > 2.0**100 or (growth[bound.weights == 0] > 0).any():
        return None
    return max(ln_upper(a, b) / Fraction(weight) for weight, a, b in _candidates(numerators, inverse, bound, growth))


def _candidates(
    numerators: Integers, inverse: Floats, bound: ExponentBound, growth: Floats
) -> Iterator[tuple[float, int, int]]:
    """Yield each weight that may determine the least ε, with the largest ratio a/b of its pairs."""
    positive = np.flatnonzero(bound.weights > 0)
    weights, group = np.unique(bound.weights[positive], return_inverse=True)
    largest = np.zeros(len(weights))
    np.maximum.at(largest, group, growth[positive])
    with np.errstate(over="ignore", under="ignore"):
        rate = np.log1p(largest) / weights
    decisive = rate >= rate.max() * (1 - 2.0**-46)
    threshold = largest * (1 - 2.0**-48)
    chosen = decisive[group] & (growth[positive] >= threshold[group])
    pairs, group = positive[chosen], group[chosen]
    best: dict[int, tuple[int, int]] = {}
    for part in _blocks(len(pairs), numerators.shape[1]):
        ratios = _growth(numerators, inverse, bound, pairs[part])
        rows, observables = np.nonzero(ratios >= threshold[group[part], None])
        tops = numerators[bound.sources[pairs[part]][rows], observables]
        bottoms = numerators[bound.targets[pairs[part]][rows], observables]
        for key, a, b in zip(group[part][rows].tolist(), tops.tolist(), bottoms.tolist(), strict=True):
            known = best.get(key)
            if known is None or a * known[1] > known[0] * b:
                best[key] = a, b
    for key, (a, b) in best.items():
        yield float(weights[key]), a, b


def _growth(numerators: Integers, inverse: Floats, bound: ExponentBound, part: slice | Integers) -> Floats:
    """Return (N[s,o] - N[t,o]) / N[t,o] for some pairs, shape (pairs, m)."""
    sources, targets = bound.sources[part], bound.targets[part]
    growth: Floats = (numerators[sources] - numerators[targets]) * inverse[targets]
    return growth


def _blocks(pairs: int, observables: int) -> Iterator[slice]:
    size = max(1, _BLOCK_ENTRIES // observables)
    for start in range(0, pairs, size):
        yield slice(start, min(start + size, pairs))


def _slack(tops: NDArray[np.object_], bottoms: NDArray[np.object_]) -> Floats:
    """Return A/B - 1 for each pair, rounded once."""
    known: dict[tuple[int, int], float] = {}
    slack = np.empty(len(tops))
    for index, (a, b) in enumerate(zip(tops.tolist(), bottoms.tolist(), strict=True)):
        if (a, b) not in known:
            known[a, b] = (a - b) / b
        slack[index] = known[a, b]
    return slack


def _require_channel(numerators: Integers, exponent: int, bound: PairBound) -> None:
    if numerators.dtype != np.int64 or numerators.ndim != 2 or not numerators.size:
        raise InputError("numerators", "is not a channel", value=numerators.shape, bound="int64 of shape (n, m)")
    if not 1 <= exponent <= 62 or int(numerators.min()) < 0 or int(numerators.max()) > 1 << exponent:
        raise InputError("numerators", "has entries out of range", bound=f"between 0 and 2**{exponent}, at most 2**62")
    require_below(bound.sources, len(numerators), "sources")
    require_below(bound.targets, len(numerators), "targets")


def _sentence(numerators: Integers, bound: PairBound, worst: tuple[float, int, int, int]) -> str:
    excess, source, target, observable = worst
    if not numerators[target, observable]:
        return (
            f"secret {source} gives observable {observable} and secret {target} never does, "
            "so that this observable distinguishes them with certainty"
        )
    places = np.flatnonzero((bound.sources == source) & (bound.targets == target))
    factor = bound.sentence(int(places[bound.exponents[places].argmin()]))
    return f"p({observable} | {source}) exceeds {factor} · p({observable} | {target}) by a factor of 1 + {excess:.3g}"


def revealed(numerators: Integers | Floats) -> tuple[int, ...]:
    """Return the secrets s with an observable o such that N[s,o] > 0 and N[t,o] = 0 for all other t.

    Such an observable o identifies the secret s under every prior. A single secret is always revealed.

    Args:
        numerators: N (n, m), or any numbers that are positive exactly where N is positive.

    Returns:
        The secrets, ascending.

    >>> import numpy as np
    >>> revealed(np.array([[3, 1, 0], [2, 1, 1]]))
    (1,)
    """
    given = numerators > 0
    alone = np.count_nonzero(given, axis=0) == 1
    return tuple(np.flatnonzero(given[:, alone].any(axis=1)).tolist())
