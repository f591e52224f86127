"""Attacks on a channel, which guess the secret from the observable (Privacy Games, Shokri 2015, section 9).

Every attack takes the channel p(o|s) (n, m), the attacker's prior, and the error a(ŝ, s) (k, n) of the estimate ŝ for
the secret s. The result is a strategy q(ŝ|o). Given the secret s, the expected error is E_s = Σ_o,ŝ p(o|s) q(ŝ|o) a(ŝ,
s) (26). The numbers in parentheses are those of the equations in the paper.

- `optimal` minimises Σ_s π_s E_s (19),
- `bayes` draws the estimate from the posterior (25),
- `prior_free` minimises Σ_s E_s (27),
- `minimax` minimises max_s E_s (28),
- `pairwise_minimax` minimises the maximum of Pr(ŝ|s) a(ŝ, s) over pairs (29).

An attacker may have a wrong prior. The argument `truth` is the true prior, under which the error of the attack is
evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike

from mechdesign.base import _lazy
from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import SUM_TOLERANCE, Floats, Integers, as_nonnegative, read_only, require
from mechdesign.base._errors import InputError, SolverError, SolverInterruptedError, TimeLimitError
from mechdesign.base._names import Labels, Named, labels_of, opened, unless_numbers
from mechdesign.model._channel import Channel
from mechdesign.model._prior import Prior, as_prior
from mechdesign.solve._contract import Options, Status
from mechdesign.solve._linear import LinearProgram
from mechdesign.solve._solve import solve

__all__ = ["Attack", "bayes", "minimax", "optimal", "pairwise_minimax", "prior_free"]
__dir__ = _lazy.listing(__all__)


Belief = Prior | ArrayLike | None

# The largest gap between the value of a strategy and the lower bound, relative to the value. For values near 0, the gap
# is relative to the largest error.
_RELATIVE_GAP = 1e-6
_ABSOLUTE_GAP = 1e-8
# With this solver tolerance, the strategy and the multipliers usually prove the gap above.
_FEASIBILITY = 1e-10

# Two errors are equal if their relative difference is at most this bound, since rounding may cause it.
_TIE = 1e-12
_RAISES = {Status.TIME_LIMIT: TimeLimitError, Status.INTERRUPTED: SolverInterruptedError}


@dataclass(frozen=True, eq=False, repr=False)
class Attack:
    """A strategy against a channel, and its expected errors.

    Attributes:
        name: The name of the attack.
        distortion: The error of the attack as its function defines it, in the unit of `distance`.
        strategy: The probabilities q(ŝ|o) (m, k); each row sums to 1.
        per_secret: The expected error E_s of each secret (n,).

    >>> optimal([[1.0], [1.0]], [0.5, 0.5], [[0, 1], [1, 0]])
    Attack(optimal, distortion: 0.5, 2 secrets)
    """

    name: str
    distortion: float
    strategy: Floats
    per_secret: Floats

    def __repr__(self) -> str:
        return f"Attack({self.name}, distortion: {self.distortion:.6g}, {len(self.per_secret)} secrets)"


@in_own_arithmetic
def optimal(channel: Channel | ArrayLike, prior: Belief, distance: ArrayLike, *, truth: Belief = None) -> Attack:
    """Choose, for each observable, the estimate with the least expected error under the posterior (19).

    `distortion` is Σ_s E_s truth_s. If the attacker has the true prior, `distortion` equals Σ_o min_ŝ Σ_s π_s p(o|s)
    a(ŝ,s). If an observable has probability 0 under the attacker's prior, its estimate has the least expected error
    under this prior.

    Args:
        channel: The channel p(o|s) (n, m).
        prior: The attacker's prior (n,).
        distance: The errors a(ŝ, s) (k, n); rows are estimates.
        truth: The true prior (n,); by default, the attacker's prior.

    Returns:
        The attack.

    Raises:
        InputError: Shapes do not match, or values are out of range.

    >>> optimal([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5], [[0, 1], [1, 0]]).distortion
    0.25
    """
    game = _game(channel, distance)
    belief = game.belief(prior, "prior")
    return game.attack("optimal", game.best_estimates(belief), game.judge(truth, belief))


@in_own_arithmetic
def bayes(channel: Channel | ArrayLike, prior: Belief, distance: ArrayLike, *, truth: Belief = None) -> Attack:
    """Draw the estimate from the posterior (25), or from the prior if the observable has probability 0.

    Estimates are secrets, so `distance` must be square. `distortion` is Σ_s E_s truth_s.

    Args:
        channel: The channel p(o|s) (n, m).
        prior: The attacker's prior (n,).
        distance: The errors a(ŝ, s) (k, n); rows are estimates.
        truth: The true prior (n,); by default, the attacker's prior.

    Returns:
        The attack.

    Raises:
        InputError: Shapes do not match, or values are out of range.

    >>> bayes([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5], [[0, 1], [1, 0]]).distortion
    0.375
    """
    game = _game(channel, distance)
    if game.estimates != game.secrets:
        shape = (game.estimates, game.secrets)
        raise InputError("distance", "is not square, but the Bayes attack guesses secrets", value=shape, bound="(n, n)")
    belief = game.belief(prior, "prior")
    joint = (game.channel * belief[:, None]).T
    total = joint.sum(axis=1, keepdims=True)
    posterior = np.where(total > 0, joint / np.where(total > 0, total, 1.0), belief)
    return game.attack("bayes", posterior, game.judge(truth, belief))


@in_own_arithmetic
def prior_free(channel: Channel | ArrayLike, prior: Belief, distance: ArrayLike, *, truth: Belief = None) -> Attack:
    """Minimise the sum Σ_s E_s of the expected errors, with equal weights for all secrets (27).

    `distortion` is Σ_s E_s truth_s. Without `truth`, `distortion` uses `prior` instead. Without `truth` and `prior`,
    `distortion` is the mean of E_s.

    Args:
        channel: The channel p(o|s) (n, m).
        prior: The attacker's prior (n,), or None.
        distance: The errors a(ŝ, s) (k, n); rows are estimates.
        truth: The true prior (n,); by default, the attacker's prior.

    Returns:
        The attack.

    Raises:
        InputError: Shapes do not match, or values are out of range.

    >>> prior_free([[0.75, 0.25], [0.25, 0.75]], None, [[0, 1], [1, 0]]).distortion
    0.25
    """
    game = _game(channel, distance)
    belief = game.belief(prior, "prior") if prior is not None else np.full(game.secrets, 1 / game.secrets)
    strategy = game.best_estimates(np.ones(game.secrets))
    return game.attack("prior_free", strategy, game.judge(truth, belief))


@in_own_arithmetic
def minimax(
    channel: Channel | ArrayLike,
    prior: Belief = None,
    distance: ArrayLike | None = None,
    *,
    truth: Belief = None,
    solver: str = "highs",
    options: Options | None = None,
) -> Attack:
    """Minimise the largest expected error over the secrets with a linear program (28).

    `distortion` is max_s E_s of the returned strategy. The priors are validated, but do not affect the result.

    Args:
        channel: The channel p(o|s) (n, m).
        prior: The attacker's prior (n,), or None.
        distance: The errors a(ŝ, s) (k, n); rows are estimates.
        truth: The true prior (n,); by default, the attacker's prior.
        solver: The name of a solver of linear programs.
        options: The options of the solver.

    Returns:
        The attack.

    Raises:
        InputError: Shapes do not match, or values are out of range.
        SolverError: The solver fails, or its multipliers do not prove the value to a relative 1e-6.
        TimeLimitError: The time limit was reached.

    >>> round(minimax([[0.75, 0.25], [0.25, 0.75]], distance=[[0, 1], [1, 0]], solver="scipy").distortion, 9)
    0.25
    """
    game = _game(channel, _require_distance(distance))
    game.check(prior, truth)
    columns, group = game.merge_observables()
    # The program omits dominated estimates, which cannot improve the optimum.
    kept = _find_undominated(game.distance)
    scale, error = _unit(game.distance[kept])
    size, estimates, secrets = columns.shape[1], len(kept), game.secrets
    weights = columns.mean(axis=0)
    errors = np.einsum("so,es->soe", columns / weights, error).reshape(secrets, size * estimates)
    program = _program("minimax-attack", sparse.csr_array(errors), np.ones(secrets), weights, estimates)

    def bound(multipliers: Floats) -> float:
        # For any distribution w, Σ_s w_s E_s ≤ max_s E_s. The attack `optimal` minimises the left-hand side.
        return float((error @ (multipliers[:, None] * columns)).min(axis=0).sum())

    q, multipliers = _solve(program, size, estimates, solver, options)
    strategy = np.zeros((game.observables, game.estimates))
    strategy[:, kept] = q[group]
    attack = game.attack("minimax", game.fill(strategy, group), None)
    return _certify_value(attack, float(attack.per_secret.max()), scale, bound(multipliers))


@in_own_arithmetic
def pairwise_minimax(
    channel: Channel | ArrayLike,
    prior: Belief = None,
    distance: ArrayLike | None = None,
    *,
    truth: Belief = None,
    solver: str = "highs-ipx",
    options: Options | None = None,
) -> Attack:
    """Minimise the largest Pr(ŝ|s) a(ŝ,s) over pairs of a secret and an estimate with a linear program (29).

    `distortion` is this maximum for the returned strategy. The priors are validated, but do not affect the result. The
    program has a row for every pair, so 49 secrets take seconds and 100 secrets take minutes.

    Args:
        channel: The channel p(o|s) (n, m).
        prior: The attacker's prior (n,), or None.
        distance: The errors a(ŝ, s) (k, n); rows are estimates.
        truth: The true prior (n,); by default, the attacker's prior.
        solver: The name of a solver of linear programs.
        options: The options of the solver.

    Returns:
        The attack.

    Raises:
        InputError: Shapes do not match, or values are out of range.
        SolverError: The solver fails, or its multipliers do not prove the value to a relative 1e-6.
        TimeLimitError: The time limit was reached.

    >>> channel = [[0.75, 0.25], [0.25, 0.75]]
    >>> round(pairwise_minimax(channel, distance=[[0, 1], [1, 0]], solver="scipy").distortion, 6)
    0.25
    """
    game = _game(channel, _require_distance(distance))
    game.check(prior, truth)
    columns, group = game.merge_observables()
    scale, error = _unit(game.distance)
    size, estimates = columns.shape[1], game.estimates
    weights = columns.mean(axis=0)
    # The row of (s, ŝ) is Σ_o p(o|s) a(ŝ,s) q(ŝ|o) - y <= 0; it is omitted if the error a(ŝ,s) is zero.
    secret, estimate = np.nonzero(error.T)
    errors = sparse.csr_array((columns / weights)[secret] * error[estimate, secret][:, None]).tocoo()
    place = errors.col * estimates + estimate[errors.row]
    rows = sparse.csr_array((errors.data, (errors.row, place)), shape=(secret.size, size * estimates))
    program = _program("pairwise-minimax-attack", rows, np.ones(secret.size), weights, estimates)

    def bound(multipliers: Floats) -> float:
        of_pair = np.zeros((game.secrets, estimates))
        of_pair[secret, estimate] = multipliers
        return float(((of_pair.T * error) @ columns).min(axis=0).sum())

    q, multipliers = _solve(program, size, estimates, solver, options)
    strategy = game.fill(q[group], group)
    attack = game.attack("pairwise_minimax", strategy, None)
    largest = float(((game.channel @ strategy) * game.distance.T).max())
    return _certify_value(attack, largest, scale, bound(multipliers))


@dataclass(frozen=True, eq=False)
class _Game:
    """A channel (n, m) and a matrix of errors (k, n) that have passed all checks, and the labels of the secrets."""

    channel: Floats
    distance: Floats
    labels: Labels

    @property
    def secrets(self) -> int:
        return int(self.channel.shape[0])

    @property
    def observables(self) -> int:
        return int(self.channel.shape[1])

    @property
    def estimates(self) -> int:
        return int(self.distance.shape[0])

    def belief(self, given: Belief, path: str) -> Floats:
        """Return the probabilities of a prior after checking it."""
        if given is None:
            raise InputError(path, "is missing", bound=f"a prior of shape ({self.secrets},)")
        return as_prior(given, path, self.labels, self.secrets).probabilities

    def judge(self, truth: Belief, belief: Floats) -> Floats:
        """Return the prior under which an attack is evaluated."""
        return belief if truth is None else self.belief(truth, "truth")

    def check(self, prior: Belief, truth: Belief) -> None:
        """Check the priors of an attack that does not depend on them."""
        for given, path in ((prior, "prior"), (truth, "truth")):
            if given is not None:
                self.belief(given, path)

    def best_estimates(self, weights: Floats) -> Floats:
        """Choose argmin_ŝ Σ_s w_s p(o|s) a(ŝ,s) for each o, or argmin_ŝ Σ_s w_s a(ŝ,s) if o has weight 0."""
        joint = weights[:, None] * self.channel
        errors = self.distance @ joint
        # If errors differ only by rounding, the first estimate is chosen. The tolerance is relative, so the choice does
        # not depend on the unit.
        chosen = (errors <= (1 + _TIE) * errors.min(axis=0)).argmax(axis=0)
        chosen[joint.sum(axis=0) == 0] = (self.distance @ weights).argmin()
        strategy = np.zeros((self.observables, self.estimates))
        strategy[np.arange(self.observables), chosen] = 1.0
        return strategy

    def merge_observables(self) -> tuple[Floats, Integers]:
        """Merge proportional columns, and drop observables that never occur.

        Return the merged columns (n, g) and the merged column of each observable, or -1. Observables with proportional
        columns have the same posterior, so an optimal strategy can treat them equally.
        """
        total = self.channel.sum(axis=0)
        occurs = np.flatnonzero(total)
        shapes = self.channel[:, occurs] / total[occurs]
        _, where = np.unique(shapes, axis=1, return_inverse=True)
        group = np.full(self.observables, -1)
        group[occurs] = where.ravel()
        merged = np.zeros((self.secrets, int(group.max()) + 1))
        np.add.at(merged.T, group[occurs], self.channel.T[occurs])
        return merged, group

    def fill(self, strategy: Floats, group: Integers) -> Floats:
        """Assign the estimate with the least total error to observables that never occur."""
        strategy[group < 0] = 0.0
        strategy[group < 0, self.distance.sum(axis=1).argmin()] = 1.0
        return strategy

    def attack(self, name: str, strategy: Floats, weights: Floats | None) -> Attack:
        """Evaluate a strategy by the mean of E_s under `weights`, or by its maximum."""
        per_secret = ((self.channel @ strategy) * self.distance.T).sum(axis=1)
        distortion = float(per_secret.max() if weights is None else per_secret @ weights)
        return Attack(name, distortion, read_only(strategy), read_only(per_secret))


def _require_distance(distance: ArrayLike | None) -> ArrayLike:
    """Return the distance; raise `InputError` if it is missing."""
    if distance is None:
        raise InputError(
            "distance", "is missing", bound="an array of shape (estimates, secrets)", remedy="write distance=…"
        )
    return distance


def rows_of(channel: Channel | ArrayLike) -> Named:
    """Return p(o|s) of a channel or a matrix (n, m), with the labels of secrets and observables.

    Raises `InputError` for any other value.
    """
    if isinstance(channel, Channel):
        return Named(channel.matrix, unless_numbers(channel.secrets), unless_numbers(channel.observables))
    if isinstance(getattr(channel, "channel", None), Channel):
        raise InputError("channel", "is a design", bound="a Channel", remedy="use design.channel")
    given = opened(channel, "channel")
    labels = [labels_of(names, "channel") for names in (given.rows, given.columns)]
    matrix = as_nonnegative(given.arranged("channel", *labels), "channel", 2)
    if 0 in matrix.shape:
        raise InputError("channel", "is empty", value=matrix.shape, bound="at least one secret and one observable")
    sums = matrix.sum(axis=1)
    remedy = "rows are secrets: transpose the channel if its columns sum to 1"
    require(np.abs(sums - 1) <= SUM_TOLERANCE, sums, "channel", "a row that sums to 1", remedy)
    return Named(matrix, *labels)


def _game(channel: Channel | ArrayLike, distance: ArrayLike) -> _Game:
    rows = rows_of(channel)
    error = as_nonnegative(distance, "distance", 2, rows=rows.rows, columns=rows.rows)
    n = rows.values.shape[0]
    if error.shape[0] == 0 or error.shape[1] != n:
        raise InputError("distance", "does not match the channel", value=error.shape, bound=f"(k, {n})")
    return _Game(rows.values, error, rows.rows)


def _find_undominated(distance: Floats) -> Integers:
    """Return the undominated estimates, ascending; of estimates with equal errors, only the first."""
    kept: list[int] = []
    # Sorted by total error, a dominating estimate comes before the estimates that it dominates.
    for estimate in np.argsort(distance.sum(axis=1), kind="stable").tolist():
        if not (distance[kept] <= distance[estimate]).all(axis=1).any():
            kept.append(estimate)
    return np.sort(np.array(kept))


def _unit(distance: Floats) -> tuple[float, Floats]:
    """Return the largest error, and the errors divided by it, since the tolerances of solvers suit numbers near 1."""
    scale = float(distance.max())
    return (scale, distance / scale) if scale > 0 else (1.0, distance)


def _program(name: str, errors: sparse.csr_array, ones: Floats, weights: Floats, estimates: int) -> LinearProgram:
    """Return the program: minimise y subject to errors @ x - y <= 0 and x >= 0, where row o of x sums to w_o.

    The weight w_o is the probability of observable o under a uniform prior, so that x(o, ŝ) = w_o q(ŝ|o), and `errors`
    contains p(o|s)/w_o. Otherwise HiGHS would drop the entries below 1e-9 of rare observables. The tolerance of the
    reduced costs would also count once for each observable in the lower bound.
    """
    size = len(weights)
    sums = sparse.kron(sparse.eye_array(size), np.ones((1, estimates)))
    matrix = sparse.block_array([[errors, sparse.csr_array(-ones[:, None])], [sums, None]], format="csr")
    rows, columns = len(ones), size * estimates
    return LinearProgram(
        cost=np.append(np.zeros(columns), 1.0),
        matrix=matrix,
        row_lower=np.append(np.full(rows, -np.inf), weights),
        row_upper=np.append(np.zeros(rows), weights),
        lower=np.zeros(columns + 1),
        upper=np.full(columns + 1, np.inf),
        row_blocks={"error": slice(0, rows), "sum": slice(rows, rows + size)},
        column_blocks={"q": slice(0, columns), "y": slice(columns, columns + 1)},
        name=name,
    )


def _solve(
    program: LinearProgram, size: int, estimates: int, solver: str, options: Options | None
) -> tuple[Floats, Floats]:
    """Solve the program; return q and the multipliers of the errors, both normalised to remove rounding errors."""
    given = Options() if options is None else options
    solution = solve(program, solver, replace(given, feasibility=min(given.feasibility, _FEASIBILITY)))
    if solution.status is not Status.OPTIMAL:
        kind = _RAISES.get(solution.status, SolverError)
        raise kind(f"{program.name}: {solution.solver} {solution.status.value} ({solution.message})")
    x = np.clip(solution.x[:-1].reshape(size, estimates), 0.0, None)
    # A solver may answer 0 for an observable whose weight is below its tolerance; its estimate does not matter then.
    x[x.sum(axis=1) == 0] = 1.0
    multipliers = np.clip(-solution.row_dual[program.row_blocks["error"]], 0.0, None)
    total = multipliers.sum()
    return x / x.sum(axis=1, keepdims=True), multipliers / total if total > 0 else multipliers


def _certify_value(attack: Attack, value: float, scale: float, bound: float) -> Attack:
    """Set the value of the attack; raise `SolverError` unless the lower bound is within the tolerance."""
    lower = bound * scale
    if not value - lower <= _RELATIVE_GAP * value + _ABSOLUTE_GAP * scale:
        raise SolverError(
            f"{attack.name}: the solver's strategy has the error {value!r}, but its multipliers prove only the lower "
            f"bound {lower!r}; try another solver or a smaller tolerance"
        )
    return replace(attack, distortion=value)
