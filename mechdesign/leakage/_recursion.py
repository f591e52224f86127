"""Backward, forward and total leakage of single releases, of windows of releases, and of several users."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, Integers, as_budgets, read_only
from mechdesign.base._check import as_integer, as_list, require_kind, require_unmasked
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import as_decimal
from mechdesign.leakage._bounds import refuse_source
from mechdesign.leakage._correlations import Correlation, check_directions, functions_of_both, step_functions
from mechdesign.leakage._limits import PairLimits, supremum_of_pairs
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._matrices import bound_pairs, matrices_in
from mechdesign.leakage._transitions import as_not_negative, round_up
from mechdesign.leakage._upwards import Amount, carry, that_count, total


@in_own_arithmetic
def backward(epsilons: ArrayLike, P: Correlation, *, edges: Any = None) -> Floats:
    """Return the backward privacy leakage BPL_t = L(BPL_{t−1}) + ε_t, BPL_0 = ε_0, of every release.

    Equation (13) of Cao et al. (2019). The result is an upper bound, rounded up; the actual leakage may be smaller. If
    L is 0 or the identity, the result is the exact sum of the budgets as printed in decimals.

    A budget may be a matrix E_t that bounds each pair of states on its own, see `pairs`. The result is then
    B_t = E_t + T(B_{t−1}) with T(B)(s, s') = max ln (P_s·x)/(P_s'·x) over x ≥ 0 with x_j ≤ e^{B(j,k)} x_k, see
    `LossFunction.pairs`. It bounds what the releases until t reveal about the state at t. If all pairs have one bound
    ε, its largest entry is at most the number for ε, up to rounding.

    Args:
        epsilons: Budgets of the releases in nats, shape (T,); or a list of T matrices of shape (n, n).
        P: Pr(state before | state now): a matrix, a `LossFunction`, `Varying`, `Candidates` or None. With
            `Candidates` the result is the largest leakage over all of them, of each pair.
        edges: For matrices of many states: a networkx graph on the states, or a `GraphPrivacy`. Only its edges are
            bounded by programs, in both directions. Other pairs are bounded along paths, and all pairs by L(max B).
            Such bounds are looser, by up to 2.25 times in examples. None for all pairs.

    Returns:
        The backward leakage in nats, shape (T,); or the bounds of all pairs, shape (T, n, n).

    Raises:
        InputError: A budget or the correlation is invalid, or they have different numbers of states.
        SolverError: The programs of a pair of states do not determine its leakage within 1e-9 relative.

    >>> backward([0.1, 0.1, 0.1], [[0.8, 0.2], [0.0, 1.0]]).round(4).tolist()
    [0.1, 0.1808, 0.2471]
    >>> backward([0.1, 0.1, 0.1], [[1, 0], [0, 1]]).tolist()
    [0.1, 0.2, 0.3]
    >>> E = [[0, 0.1], [0.1, 0]]
    >>> backward([E, E, E], [[0.8, 0.2], [0.0, 1.0]])[2].round(4).tolist()
    [[0.0, 0.2471], [0.2407, 0.0]]
    """
    matrices = matrices_in(epsilons, edges)
    if matrices is not None:
        return bound_pairs(matrices, {"backward": P}, edges)
    budgets = as_budgets(epsilons)
    carried = _amounts_from_earlier(budgets.tolist(), step_functions(P, len(budgets), "backward"))
    return _totals(carried, [0.0] * len(budgets), budgets)


@in_own_arithmetic
def forward(epsilons: ArrayLike, P: Correlation, *, edges: Any = None) -> Floats:
    """Return the forward privacy leakage FPL_t = L(FPL_{t+1}) + ε_t of every release; the last release leaks its ε.

    Equation (15) of Cao et al. (2019). The result is rounded up, as in `backward`. For budgets that are matrices it is
    F_t = E_t + T(F_{t+1}), see `backward`.

    Args:
        epsilons: Budgets of the releases in nats, shape (T,); or a list of T matrices of shape (n, n).
        P: Pr(next state | state now), in any form that `backward` accepts.
        edges: For matrices: a graph as in `backward`, or None for all pairs.

    Returns:
        The forward leakage in nats, shape (T,); or the bounds of all pairs, shape (T, n, n).

    Raises:
        InputError: A budget or the correlation is invalid, or they have different numbers of states.
        SolverError: The programs of a pair of states do not determine its leakage within 1e-9 relative.

    >>> forward([0.1, 0.1, 0.1], [[1, 0], [0, 1]]).tolist()
    [0.3, 0.2, 0.1]
    """
    matrices = matrices_in(epsilons, edges)
    if matrices is not None:
        return bound_pairs(matrices, {"forward": P}, edges)
    budgets = as_budgets(epsilons)
    carried = _amounts_from_later(budgets.tolist(), step_functions(P, len(budgets), "forward"))
    return _totals([0.0] * len(budgets), carried, budgets)


@in_own_arithmetic
def temporal(
    epsilons: ArrayLike,
    backward: Correlation = None,
    forward: Correlation = None,
    *,
    edges: Any = None,
) -> Floats:
    """Return the temporal privacy leakage TPL_t = BPL_t + FPL_t − ε_t of every release.

    Equation (10) of Cao et al. (2019), for one user. With candidates in both directions the result is the largest over
    all combinations. It is rounded up. If each L is 0 or the identity, it is the exact sum of the budgets as printed in
    decimals.

    For budgets that are matrices it is E_t + T(B_{t−1}) + T(F_{t+1}), see the functions `backward` and `forward`: a
    bound for each pair of states at t, however the states before and after it differ.

    Args:
        epsilons: Budgets of the releases in nats, shape (T,); or a list of T matrices of shape (n, n).
        backward: Pr(state before | state now): a matrix, a `LossFunction`, `Varying`, `Candidates` or None.
        forward: Pr(next state | state now), in the same forms as `backward`.
        edges: For matrices: a graph as in the function `backward`, or None for all pairs.

    Returns:
        The leakage in nats, shape (T,); or the bounds of all pairs, shape (T, n, n).

    Raises:
        InputError: A budget or a correlation is invalid, or they have different numbers of states.
        SolverError: The programs of a pair of states do not determine its leakage within 1e-9 relative.

    >>> temporal([0.1, 0.1], backward=[[1, 0], [0, 1]]).tolist()
    [0.1, 0.2]
    >>> temporal([[[0, 1], [2, 0]]] * 2, backward=[[1, 0], [0, 1]])[1].tolist()
    [[0.0, 2.0], [4.0, 0.0]]
    """
    matrices = matrices_in(epsilons, edges)
    if matrices is not None:
        return bound_pairs(matrices, {"backward": backward, "forward": forward}, edges)
    budgets = as_budgets(epsilons)
    before, after = both_ways(budgets, backward, forward)
    return _totals(before, after, budgets)


@overload
def supremum(epsilon: float, backward: Correlation = None, forward: Correlation = None) -> float: ...
@overload
def supremum(
    epsilon: Sequence[Sequence[float]] | NDArray[Any], backward: Correlation = None, forward: Correlation = None
) -> PairLimits: ...


@in_own_arithmetic
def supremum(epsilon: Any, backward: Correlation = None, forward: Correlation = None) -> float | PairLimits:
    """Return the limit of a release's leakage if all releases before and after it spend ε.

    The limit is the supremum of the backward leakage plus that of the forward leakage, minus ε (Theorem 11).

    For a matrix E the result has a bound for each pair of states. The recursion B_t = E + T(B_{t−1}) of `backward` is
    bounded at every step by one matrix B with E + T(B) ≤ B, which is searched and checked; of `Candidates` B fulfils
    it for each matrix, so that it holds if they occur in any order. Where the recursion has no bound, which is proved,
    the leakage itself may have one: a power P^m bounds it by m·max E + max_j ln(P^m_sj / P^m_tj). The least counts.

    The limit is for the given matrices at every step. If a chain does not start in its stationary law, its backward
    matrices are those of `Varying.from_start`, whose leakage may exceed the limit of the stationary one.

    Args:
        epsilon: Budget of every release in nats, at least 0; or a matrix of bounds of pairs, shape (n, n).
        backward: Pr(state before | state now): a matrix, a `LossFunction`, `Candidates` or None.
        forward: Pr(next state | state now), in the same forms as `backward`.

    Returns:
        The limit in nats; `math.inf` if the leakage diverges. For a matrix the bounds of all pairs, and their reasons.

    Raises:
        InputError: The budget or a correlation is invalid, or a correlation varies with time.
        SolverError: For a matrix: it was not decided whether a pair has a bound.

    >>> round(supremum(0.1, backward=[[0.8, 0.2], [0.2, 0.8]]), 6)
    0.248772
    >>> limit = supremum([[0, 0.1], [0.1, 0]], backward=[[0.8, 0.2], [0.0, 1.0]])
    >>> limit.bounds.round(4).tolist()
    [[0.0, 0.6459], [0.4226, 0.0]]
    >>> limit.proved
    'backward: an invariant for 2 pairs, for the same matrix at every step'
    """
    refuse_source(epsilon, "epsilon")
    if isinstance(epsilon, list | tuple) or np.ndim(epsilon):
        return supremum_of_pairs(epsilon, *functions_of_both(backward, forward))
    spent = as_not_negative(epsilon, "epsilon")
    limit = 0.0
    for functions in functions_of_both(backward, forward):
        limit += max(spent if loss is None else loss.supremum(spent) for loss in functions)
    return limit - spent


def both_ways(budgets: Floats, backward: Correlation, forward: Correlation) -> tuple[list[Amount], list[Amount]]:
    """Return the leakage L_B(BPL_{t−1}) and L_F(FPL_{t+1}) that other releases add to release t, for every t.

    Both correlations must belong to the same chain. The sum of both amounts and ε_t is TPL_t.

    Args:
        budgets: Budgets of the releases in nats, shape (T,).
        backward: Pr(state before | state now): a matrix, a `LossFunction`, `Varying`, `Candidates` or None.
        forward: Pr(next state | state now), in the same forms as `backward`.

    Returns:
        Two lists of length T, in nats, with the amounts from earlier releases and the amounts from later releases.

    >>> import numpy as np
    >>> before, after = both_ways(np.array([0.1, 0.2]), [[1, 0], [0, 1]], None)
    >>> [float(amount) for amount in before], [float(amount) for amount in after]
    ([0.0, 0.1], [0.0, 0.0])
    """
    chains = [step_functions(backward, len(budgets), "backward"), step_functions(forward, len(budgets), "forward")]
    check_directions(chains[0], chains[1])
    values = budgets.tolist()
    return _amounts_from_earlier(values, chains[0]), _amounts_from_later(values, chains[1])


def _amounts_from_later(budgets: list[float], chains: list[list[LossFunction | None]]) -> list[Amount]:
    return _amounts_from_earlier(budgets[::-1], [chain[::-1] for chain in chains])[::-1]


def _amounts_from_earlier(budgets: list[float], chains: list[list[LossFunction | None]]) -> list[Amount]:
    """Return the largest amount, over all candidates, that the earlier releases add to each release."""
    if all(len(set(map(id, chain))) <= 1 for chain in chains) and len(budgets) > 1:
        steps = len(budgets) - 1
        chains = [[loss] * steps for loss in that_count(chain[0] for chain in chains)]
    return carry(chains, budgets)


def _totals(before: list[Amount], after: list[Amount], budgets: Floats) -> Floats:
    return np.array([total(*each) for each in zip(before, after, budgets.tolist(), strict=True)])


def window(
    epsilons: ArrayLike, start: int, stop: int, backward: Correlation = None, forward: Correlation = None
) -> float:
    """Return the joint leakage of the releases from `start` to `stop`, both included.

    A longer window leaks BPL_start + FPL_stop plus the budgets strictly between `start` and `stop` (Theorem 3). A
    window of one release leaks its temporal leakage TPL. The result is rounded up. The budgets are added exactly, as
    printed in decimals.

    Args:
        epsilons: Budgets of the releases in nats, shape (T,).
        start: Index of the first release of the window, from 0.
        stop: Index of the last release of the window, from `start` to T − 1.
        backward: Pr(state before | state now): a matrix, a `LossFunction`, `Varying`, `Candidates` or None.
        forward: Pr(next state | state now), in the same forms as `backward`.

    Returns:
        The joint leakage in nats.

    >>> round(window([0.1, 0.2, 0.3], 0, 2, backward=[[0.8, 0.2], [0.2, 0.8]]), 12)
    0.6
    """
    budgets = as_budgets(epsilons)
    start = as_integer(start, "start", 0, len(budgets) - 1)
    stop = as_integer(stop, "stop", start, len(budgets) - 1)
    return _windows(budgets, [start], stop - start, backward, forward)[0]


def windows(epsilons: ArrayLike, width: int, backward: Correlation = None, forward: Correlation = None) -> Floats:
    """Return the joint leakage of each window of `width` successive releases.

    The largest value is the w-event privacy. Width 1 gives the leakage of each release, and width T the sum of all
    budgets.

    Args:
        epsilons: Budgets of the releases in nats, shape (T,).
        width: Number of releases in a window, from 1 to T.
        backward: Pr(state before | state now): a matrix, a `LossFunction`, `Varying`, `Candidates` or None.
        forward: Pr(next state | state now), in the same forms as `backward`.

    Returns:
        The joint leakage in nats, shape (T − width + 1,).

    >>> windows([0.1, 0.2, 0.3], 2).tolist()
    [0.3, 0.5]
    """
    budgets = as_budgets(epsilons)
    width = as_integer(width, "width", 1, len(budgets))
    return np.array(_windows(budgets, range(len(budgets) - width + 1), width - 1, backward, forward))


def _windows(
    budgets: Floats, starts: Iterable[int], further: int, backward: Correlation, forward: Correlation
) -> list[float]:
    before, after = both_ways(budgets, backward, forward)
    each = budgets.tolist()
    if further == 0:
        return [total(before[start], after[start], each[start]) for start in starts]
    sums = [Fraction(0), *itertools.accumulate(map(as_decimal, each))]
    spent = [(start, round_up(sums[start + further + 1] - sums[start])) for start in starts]
    return [total(before[start], after[start + further], epsilon) for start, epsilon in spent]


@dataclass(frozen=True, eq=False)
class User:
    """A user, with the correlations that the adversary has and optional personal budgets.

    Attributes:
        backward: Pr(state before | state now) in any form that `temporal` accepts.
        forward: Pr(next state | state now), in the same forms as `backward`.
        epsilons: Budgets in nats, shape (T,), for personalised differential privacy (section 3.5 of Cao et al. 2019);
            None for the common budgets.
        name: Name of the user in messages.

    >>> User(name="first").epsilons is None
    True
    """

    backward: Correlation = None
    forward: Correlation = None
    epsilons: ArrayLike | None = None
    name: str = ""

    def __post_init__(self) -> None:
        """Refuse masked arrays."""
        for name in ("backward", "forward", "epsilons"):
            require_unmasked(getattr(self, name), name)


@dataclass(frozen=True, eq=False)
class UsersLeakage:
    """The leakage of several users, in nats. All arrays are read-only.

    Attributes:
        of_user: Leakage of each user at each release, shape (users, T).
        overall: Largest leakage over all users, shape (T,).
        worst: Index of a user with the largest leakage, shape (T,).

    >>> users([0.1, 0.2], [User(), User(backward=[[1, 0], [0, 1]])]).worst.tolist()
    [0, 1]
    """

    of_user: Floats
    overall: Floats
    worst: Integers


def users(epsilons: ArrayLike | None, population: Sequence[User]) -> UsersLeakage:
    """Return the leakage of each user by Equation (10), and the largest at every release.

    Equation (11) of the paper overstates the leakage: it adds the largest backward leakage of one user to the largest
    forward leakage of another user.

    Args:
        epsilons: Common budgets in nats, shape (T,); None if every user has personal budgets.
        population: The users, at least one.

    Returns:
        The leakage of each user, the largest leakage and the index of the worst user.

    >>> users([0.1, 0.2], [User(), User(backward=[[1, 0], [0, 1]])]).overall.tolist()
    [0.1, 0.3]
    """
    population = as_list(population, "users", "a list of User")
    for index, user in enumerate(population):
        require_kind(user, User, f"users[{index}]", "a User")
    if not population:
        raise InputError("users", "are empty", bound="at least one user")
    common = None if epsilons is None else as_budgets(epsilons)
    rows: list[Floats] = []
    for index, user in enumerate(population):
        where = f"users[{index}]" + (f" ({user.name})" if user.name else "")
        if user.epsilons is None and common is None:
            raise InputError(f"{where}.epsilons", "are missing", bound="budgets for the user or for everybody")
        budgets = common if user.epsilons is None else as_budgets(user.epsilons, f"{where}.epsilons")
        assert budgets is not None
        if rows and len(budgets) != len(rows[0]):
            raise InputError(
                f"{where}.epsilons", "differ in length", value=len(budgets), bound=f"{len(rows[0])} budgets"
            )
        rows.append(temporal(budgets, user.backward, user.forward))
    of_user = np.array(rows)
    worst = of_user.argmax(axis=0).astype(np.int64)
    return UsersLeakage(read_only(of_user), read_only(of_user.max(axis=0)), read_only(worst))
