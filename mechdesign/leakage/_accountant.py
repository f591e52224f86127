"""An accountant for releases over time, which computes the leakage of each release and the largest next budget."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats
from mechdesign.base._errors import BudgetWarning, InputError, LeakageExceededError, LedgerError
from mechdesign.base._locks import ProcessLock
from mechdesign.base._warnings import warn
from mechdesign.certify._exact import as_decimal
from mechdesign.leakage._correlations import Correlation, functions_of_both
from mechdesign.leakage._series import Series
from mechdesign.leakage._transitions import as_not_negative, as_target, round_down
from mechdesign.leakage._upwards import Amount, add_up, decimal, total


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
        if on_excess not in ("refuse", "warn"):
            raise InputError("on_excess", "is not known", value=on_excess, bound='"refuse" or "warn"')
        self._alpha, self._on_excess = as_target(alpha), on_excess
        before, after = functions_of_both(backward, forward)
        self._series = Series(as_decimal(self._alpha), tuple(before), tuple(after), "others")
        self._epsilons: tuple[float, ...] = ()
        self._lock = ProcessLock()

    @property
    def alpha(self) -> float:
        """The largest leakage of each release, in nats."""
        return self._alpha

    @property
    def epsilons(self) -> Floats:
        """The budgets spent so far, shape (T,)."""
        return np.array(self._epsilons)

    @property
    def backward_leakage(self) -> Floats:
        """The backward leakage of every release, shape (T,), the largest over candidates."""
        epsilons = self._epsilons
        return np.array([*map(total, self._series.both_ways(epsilons)[0], itertools.repeat(0.0), epsilons)])

    @property
    def forward_leakage(self) -> Floats:
        """The present forward leakage of every release, shape (T,), the largest over candidates."""
        epsilons = self._epsilons
        return np.array([*map(total, itertools.repeat(0.0), self._series.both_ways(epsilons)[1], epsilons)])

    @property
    def leakage(self) -> Floats:
        """The present temporal leakage of every release, shape (T,)."""
        return self._leakages(self._epsilons)

    def __len__(self) -> int:
        return len(self._epsilons)

    def preview(self, epsilon: float) -> Floats:
        """Return the leakages of all releases if the next release spends `epsilon`, without recording it.

        Args:
            epsilon: Budget of the next release, in nats, at least 0.

        Returns:
            The leakage of every release, shape (T + 1,).
        """
        return self._leakages((*self._epsilons, as_not_negative(epsilon, "epsilon")))

    def largest(self) -> float:
        """Return the largest budget that the next release may spend, rounded down; it may be 0.0.

        The result is exact to the last digit if both loss functions are 0 or the identity. For other loss functions,
        the result is accurate to 2⁻⁵⁰ of α.
        """
        return self._largest(self._epsilons)

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
            grown = (*self._epsilons, epsilon)
            leakages = self._leakages(grown)
            worst = int(leakages.argmax())
            if leakages[worst] > self._alpha:
                self._refuse_or_warn(worst, float(leakages[worst]))
            self._epsilons = grown
            # Nothing follows the last release, so that its leakage is the backward leakage.
            return float(leakages[-1])

    def _refuse_or_warn(self, worst: int, leakage: float) -> None:
        if self._on_excess == "warn":
            message = f"step {worst} now leaks {leakage:.6g}, more than the promised {self._alpha:.6g}"
            warn(message, BudgetWarning, stacklevel=4)
            return
        remedy = f"Spend at most {self._largest(self._epsilons):.6g}"
        raise LeakageExceededError(worst, leakage, self._alpha, remedy)

    def _leakages(self, epsilons: tuple[float, ...]) -> Floats:
        return np.array([*map(total, *self._series.both_ways(epsilons), epsilons)])

    def _largest(self, epsilons: tuple[float, ...]) -> float:
        def leak(amount: Fraction) -> dict[int, Amount]:
            budgets = (*map(decimal, epsilons), amount)
            return dict(enumerate(map(add_up, *self._series.both_ways(budgets), budgets)))

        return round_down(self._series.largest(leak, Fraction(0)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Raise `LedgerError` for a copy, too: copies together could leak more than α."""
        raise LedgerError(
            "an accountant cannot be copied or pickled: each copy would spend the whole promise. Keep the promise in a "
            "ledger with a series"
        )

    def __repr__(self) -> str:
        leakages = self.leakage
        said = f", largest leakage {leakages.max():.6g}" if len(leakages) else ""
        return f"Accountant(alpha={self._alpha!r}, {len(leakages)} releases{said})"
