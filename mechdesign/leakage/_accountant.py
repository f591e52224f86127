"""An accountant for releases over time, which computes the leakage of each release and the largest next budget."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats
from mechdesign.base._check import require_name
from mechdesign.base._errors import BudgetWarning, LeakageExceededError, LedgerError
from mechdesign.base._locks import ProcessLock
from mechdesign.base._warnings import warn
from mechdesign.certify._exact import as_decimal
from mechdesign.leakage._correlations import Correlation, functions_of_both
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._series import Series
from mechdesign.leakage._transitions import as_not_negative, as_target, round_down
from mechdesign.leakage._upwards import Amount, Budget, Step, add_up, as_float, carry_steps, decimal, that_count, total

_Steps = list[tuple[LossFunction, list[Step]]]


class _Releases(NamedTuple):
    """The budgets of releases, their steps for each candidate, forward ones from the last on, and the worst.

    `worst` is the largest leakage and the negative index of its release.
    """

    epsilons: tuple[Any, ...]
    spent: Fraction
    before: _Steps
    after: _Steps
    worst: tuple[Amount, int] = (0.0, 0)


class Accountant:
    """Compute the leakage of releases before they are made, and refuse a release that breaks a promised α.

    A release raises the leakage of all earlier releases through the forward correlation. Therefore a new release must
    keep the leakage of all releases below α. The promise covers the releases recorded here. Leakages are rounded up. If
    a loss function is 0 or the identity, the leakages are exact sums of the budgets as printed in decimals. For
    example, three budgets of 0.1 keep a promise of 0.3.

    An accountant is a calculation in the memory of one process. `mechdesign.Ledger.add_series` keeps the promise in a
    file that processes share.

    Args:
        alpha: Largest leakage of each release, in nats, greater than 0.
        backward: Pr(state before | state now): a matrix, a `LossFunction`, `Candidates` or None.
        forward: Pr(next state | state now), in the same forms as `backward`.
        on_excess: "refuse" raises `LeakageExceededError` and records nothing if a release breaks the promise. "warn"
            records the release with a `BudgetWarning`.

    Raises:
        InputError: An argument is not valid.

    >>> accountant = Accountant(1.0, backward=[[0.8, 0.2], [0.2, 0.8]])
    >>> round(accountant.release(0.5), 6)
    0.5
    >>> round(accountant.release(0.5), 6)
    0.796046
    >>> round(accountant.largest(), 6)
    0.538049
    """

    def __init__(
        self,
        alpha: float,
        backward: Correlation = None,
        forward: Correlation = None,
        on_excess: str = "refuse",
    ) -> None:
        self._alpha, self._on_excess = as_target(alpha), require_name(on_excess, ("refuse", "warn"), "on_excess")
        before, after = functions_of_both(backward, forward)
        self._series = Series(as_decimal(self._alpha), tuple(before), tuple(after), "others")
        # A forward loss that is the identity needs no steps.
        self._sums_ahead = any(loss.identity for loss in that_count(after))
        sides = that_count(before), [] if self._sums_ahead else that_count(after)
        back, ahead = ([(loss, list[Step]()) for loss in side] for side in sides)
        self._made = _Releases((), Fraction(0), back, ahead)
        self._lock = ProcessLock()

    @property
    def alpha(self) -> float:
        """The largest leakage of each release, in nats."""
        return self._alpha

    @property
    def epsilons(self) -> Floats:
        """The budgets spent so far, shape (T,)."""
        return np.array(self._made.epsilons)

    @property
    def backward_leakage(self) -> Floats:
        """The backward leakage of every release, shape (T,), the largest over candidates."""
        epsilons = self._made.epsilons
        return np.array([*map(total, self._series.both_ways(epsilons)[0], itertools.repeat(0.0), epsilons)])

    @property
    def forward_leakage(self) -> Floats:
        """The present forward leakage of every release, shape (T,), the largest over candidates."""
        epsilons = self._made.epsilons
        return np.array([*map(total, itertools.repeat(0.0), self._series.both_ways(epsilons)[1], epsilons)])

    @property
    def leakage(self) -> Floats:
        """The present temporal leakage of every release, shape (T,)."""
        return self._leakages(self._made.epsilons)

    def __len__(self) -> int:
        return len(self._made.epsilons)

    def preview(self, epsilon: float) -> Floats:
        """Return the leakages of all releases if the next release spends `epsilon`, without recording it.

        Args:
            epsilon: Budget of the next release, in nats, at least 0.

        Returns:
            The leakage of every release, shape (T + 1,).
        """
        return self._leakages((*self._made.epsilons, as_not_negative(epsilon, "epsilon")))

    def largest(self) -> float:
        """Return the largest budget that the next release may spend, rounded down; it may be 0.0.

        The result is exact to the last digit if both loss functions are 0 or the identity. For other loss functions,
        the result is accurate to 2⁻⁵⁰ of α.
        """
        made = self._made

        def leak(amount: Fraction) -> dict[int, Amount]:
            return dict(enumerate((made.worst[0], self._extended(made, amount).worst[0])))

        return round_down(self._series.largest(leak, Fraction(0)))

    @in_own_arithmetic
    def release(self, epsilon: float) -> float:
        """Record a release, and return its leakage through its own budget and through earlier releases.

        Args:
            epsilon: Budget of the release, in nats, at least 0.

        Returns:
            The leakage of the new release, in nats.

        Raises:
            LeakageExceededError: Some release would leak more than α. Nothing is recorded.
            LedgerError: The accountant belongs to another process.
        """
        epsilon = as_not_negative(epsilon, "epsilon")
        if not self._lock.is_at_home():
            raise LedgerError(
                "an accountant belongs to the process that created it: another process would spend the same budget "
                "again. Processes share a ledger with a series"
            )
        with self._lock:
            made = self._extended(self._made, epsilon)
            worst = max(self._made.worst, made.worst)
            if (leakage := as_float(worst[0])) > self._alpha:
                self._refuse_or_warn(-worst[1], leakage)
            self._made = made._replace(worst=worst)
            # Nothing follows the last release, so that its leakage is the backward leakage.
            return total(_most(made.before, -1), 0.0, epsilon)

    def _extended(self, old: _Releases, epsilon: Budget) -> _Releases:
        """Return the releases and a further one, with the worst of the releases that it changes."""
        chains = itertools.repeat
        grown = (*old.epsilons, epsilon)
        before = [(loss, carry_steps(chains(loss), grown, known=known)) for loss, known in old.before]
        after = [(loss, carry_steps(chains(loss), grown[::-1], rest=rest)) for loss, rest in old.after]
        made = _Releases(grown, old.spent + decimal(epsilon), before, after)
        if self._sums_ahead:
            # The first release leaks all budgets together, and no release leaks more (Theorem 3).
            return made._replace(worst=(made.spent, 0))
        worst: tuple[Amount, int] = (0.0, 0)
        # From one place on, all earlier releases leak what they leaked.
        pairs = [(new, rest) for (_, new), (_, rest) in zip(after, old.after, strict=True)]
        places = range(1, len(grown))
        ends = [next((place for place in places if new[place] is rest[place - 1]), len(grown)) for new, rest in pairs]
        for place in range(max(ends, default=1)):
            index = len(grown) - 1 - place
            if (leakage := add_up(_most(before, index), _most(after, place), grown[index])) >= worst[0]:
                worst = leakage, -index
        return made._replace(worst=worst)

    def _refuse_or_warn(self, worst: int, leakage: float) -> None:
        if self._on_excess == "warn":
            message = f"step {worst} now leaks {leakage:.6g}, more than the promised {self._alpha:.6g}"
            warn(message, BudgetWarning, stacklevel=4)
            return
        remedy = f"Spend at most {self.largest():.6g}"
        raise LeakageExceededError(worst, leakage, self._alpha, remedy)

    def _leakages(self, epsilons: tuple[float, ...]) -> Floats:
        return np.array([*map(total, *self._series.both_ways(epsilons), epsilons)])

    def __reduce__(self) -> tuple[Any, ...]:
        """Raise `LedgerError` for a copy, too: copies together could leak more than α."""
        raise LedgerError(
            "an accountant cannot be copied or pickled: each copy would spend the whole promise. Keep the promise in a "
            "ledger with a series"
        )

    def __repr__(self) -> str:
        made = self._made
        said = f", largest leakage {as_float(made.worst[0]):.6g}" if made.epsilons else ""
        return f"Accountant(alpha={self._alpha!r}, {len(made.epsilons)} releases{said})"


def _most(sides: _Steps, place: int) -> Amount:
    return max([steps[place].carried for _, steps in sides], default=0.0)
