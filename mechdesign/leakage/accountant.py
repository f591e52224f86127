"""An accountant for releases as they happen: what each one leaks by now, and whether the next one may be made."""

from __future__ import annotations

import warnings
from os import PathLike

import numpy as np

from mechdesign.accounting.ledger import Ledger
from mechdesign.errors import BudgetWarning, InputError, LeakageExceededError, StateError
from mechdesign.leakage.accountant_file import read_state, write_state
from mechdesign.leakage.correlation import Correlation, candidate_functions
from mechdesign.leakage.lines import Floats
from mechdesign.leakage.loss import LossFunction
from mechdesign.leakage.numbers import as_not_negative, as_target
from mechdesign.leakage.pairing import check_directions

__all__ = ["Accountant"]


def __dir__() -> list[str]:
    return sorted(__all__)


class Accountant:
    """Keep every release at or below the promised leakage α, in nats.

    `backward` and `forward` are matrices, loss functions, `Candidates` or None. A release raises the leakage of all
    earlier ones through the forward correlation, so that each is judged by what all of them would leak after it. The
    promise covers the releases made so far: whatever comes later has to pass here too. With `on_excess` "refuse" a
    release that breaks the promise raises `LeakageExceededError` and is not recorded; with "warn" it is recorded, with
    a `BudgetWarning`. A `ledger` also records every budget ε, which add up to what the whole sequence leaks (user-level
    privacy, Theorem 3), and refuses beyond its own budget; it is a file of its own, which `save` leaves alone.

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
        ledger: Ledger | None = None,
    ) -> None:
        if ledger is not None and not isinstance(ledger, Ledger):
            raise InputError("ledger", "is not a Ledger", value=type(ledger).__name__)
        self._ledger = ledger
        self._alpha = as_target(alpha)
        if on_excess not in ("refuse", "warn"):
            raise InputError("on_excess", "is not known", value=on_excess, bound='"refuse" or "warn"')
        self._on_excess = on_excess
        self._losses = (candidate_functions(backward, "backward"), candidate_functions(forward, "forward"))
        known, following = ([[each] for each in functions] for functions in self._losses)
        check_directions(known, following, stacklevel=3)
        self._epsilons: list[float] = []
        # For each candidate, the leakage of every release so far.
        self._before: list[list[float]] = [[] for _ in self._losses[0]]
        self._after: list[list[float]] = [[] for _ in self._losses[1]]

    @property
    def alpha(self) -> float:
        """What each release may leak."""
        return self._alpha

    @property
    def epsilons(self) -> Floats:
        """The budgets spent so far, shape (T,)."""
        return np.array(self._epsilons)

    @property
    def backward_leakage(self) -> Floats:
        """The backward leakage of every release, shape (T,), the largest over candidates."""
        return _largest(self._before)

    @property
    def forward_leakage(self) -> Floats:
        """The forward leakage of every release by now, shape (T,), the largest over candidates."""
        return _largest(self._after)

    @property
    def leakage(self) -> Floats:
        """The temporal leakage of every release by now, shape (T,)."""
        return self.backward_leakage + (self.forward_leakage - self.epsilons)

    def __len__(self) -> int:
        return len(self._epsilons)

    def preview(self, epsilon: float) -> Floats:
        """Return what every release would leak, shape (T + 1,), if the next one spent `epsilon`; record nothing."""
        epsilon = as_not_negative(epsilon, "epsilon")
        before, after = self._extended(epsilon)
        return _total(before, after, [*self._epsilons, epsilon])

    def release(self, epsilon: float) -> float:
        """Record a release with budget `epsilon` and return what it leaks by itself and through the past.

        Raises `LeakageExceededError`, recording nothing, when some release would leak more than α, and
        `BudgetExceededError` when the ledger's budget would be passed.
        """
        epsilon = as_not_negative(epsilon, "epsilon")
        before, after = self._extended(epsilon)
        total = _total(before, after, [*self._epsilons, epsilon])
        worst = int(np.argmax(total))
        if total[worst] > self._alpha:
            if self._on_excess == "refuse":
                raise LeakageExceededError(worst, float(total[worst]), self._alpha, self._remedy(epsilon))
            message = f"release {worst} now leaks {total[worst]:.6g}, more than the promised {self._alpha:.6g}"
            warnings.warn(message, BudgetWarning, stacklevel=2)
        if self._ledger is not None and epsilon > 0:
            self._ledger.spend(f"release {len(self)} of a sequence", "any two values at that time", epsilon=epsilon)
        self._before, self._after = before, after
        self._epsilons.append(epsilon)
        return float(total[-1])

    def largest(self) -> float:
        """Return the largest budget that the next release may spend, rounded down; 0.0 if there is none."""
        if self._exceeds(0.0):
            return 0.0
        low, high = 0.0, self._alpha
        if not self._exceeds(high):
            return high
        while True:
            middle = low + (high - low) / 2
            if not low < middle < high or high - low <= 2.0**-50 * self._alpha:
                return low
            low, high = (low, middle) if self._exceeds(middle) else (middle, high)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything needed to go on to a JSON file, which is replaced as a whole or not at all.

        Loss functions are stored as their pieces, with the digests of the matrices, so that no matrix is needed later.
        """
        write_state(path, self._alpha, self._on_excess, self._epsilons, self._losses)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Accountant:
        """Read an accountant back; all leakages are computed anew.

        Raises `StateError` for a file that is damaged, was changed by hand, or is of another version.
        """
        alpha, on_excess, epsilons, losses = read_state(path)
        try:
            accountant = cls(alpha, on_excess=on_excess)
            accountant._losses = losses
            accountant._before, accountant._after = [[] for _ in losses[0]], [[] for _ in losses[1]]
            for epsilon in epsilons:
                accountant._record(as_not_negative(epsilon, "epsilon"))
            accountant._recompute()
        except InputError as error:
            raise StateError(f"{path}: {error}") from error
        if on_excess == "refuse" and len(epsilons) and accountant.leakage.max() > alpha:
            raise StateError(f"{path}: the releases leak more than the promised {alpha:.6g}")
        return accountant

    def _remedy(self, epsilon: float) -> str:
        if epsilon > self._alpha:
            return f"One release alone costs its budget {epsilon:.6g}: spend less, or promise a larger alpha"
        most = self.largest()
        return f"Spend at most {most:.6g}" if most > 0 else "Nothing more can be released from these data"

    def _record(self, epsilon: float) -> None:
        for loss, series in zip(self._losses[0], self._before, strict=True):
            series.append(_next(loss, series[-1] if series else 0.0, epsilon))
        self._epsilons.append(epsilon)

    def _recompute(self) -> None:
        self._after = []
        for loss in self._losses[1]:
            series: list[float] = []
            for epsilon in reversed(self._epsilons):
                series.append(_next(loss, series[-1] if series else 0.0, epsilon))
            self._after.append(series[::-1])

    def _extended(self, epsilon: float) -> tuple[list[list[float]], list[list[float]]]:
        before = [
            [*series, _next(loss, series[-1] if series else 0.0, epsilon)]
            for loss, series in zip(self._losses[0], self._before, strict=True)
        ]
        after = []
        for loss, series in zip(self._losses[1], self._after, strict=True):
            longer = [*series, epsilon]
            for step in range(len(series) - 1, -1, -1):
                value = _next(loss, longer[step + 1], self._epsilons[step])
                if value == longer[step]:
                    # Nothing changed here, so nothing changes before.
                    break
                longer[step] = value
            after.append(longer)
        return before, after

    def _exceeds(self, epsilon: float) -> bool:
        before, after = self._extended(epsilon)
        return bool(_total(before, after, [*self._epsilons, epsilon]).max() > self._alpha)

    def __repr__(self) -> str:
        worst = f", the worst leaks {self.leakage.max():.6g}" if self._epsilons else ""
        return f"Accountant(alpha={self._alpha!r}, {len(self)} releases{worst})"


def _next(loss: LossFunction | None, leakage: float, epsilon: float) -> float:
    return epsilon if loss is None else loss.at(leakage) + epsilon


def _largest(series: list[list[float]]) -> Floats:
    largest: Floats = np.array(series).max(axis=0)
    return largest


def _total(before: list[list[float]], after: list[list[float]], epsilons: list[float]) -> Floats:
    total: Floats = _largest(before) + (_largest(after) - np.array(epsilons))
    return total
