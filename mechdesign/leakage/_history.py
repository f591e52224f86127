"""The releases of an accountant as one immutable value, with the leakage of each one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from mechdesign.base._arrays import Floats
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._transitions import round_down
from mechdesign.leakage._upwards import Amount, Step, advance, decimal, first, that_count, total


class Worst(NamedTuple):
    """The release with the largest leakage.

    Attributes:
        step: Index of the release, from 0.
        leakage: Its leakage in nats.
    """

    step: int
    leakage: float


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseHistory:
    """Releases under one promise. Adding a release creates a new history, so that readers see a consistent state.

    Create a history with `of`. If the forward loss is the identity, `after` and `peaks` are empty. With this forward
    loss, each release leaks the sum of all later budgets in addition to its backward leakage.

    Attributes:
        back: Backward loss functions of the candidates.
        ahead: Forward loss functions of the candidates.
        epsilons: Budgets of the releases in nats.
        spent: Exact sum of the budgets.
        before: Leakage that earlier releases add to each release.
        last: Backward step of the last release, for each candidate.
        after: Forward steps of each release, for each candidate.
        peaks: For each release, the release with the largest leakage up to and including it.
        key: If the forward loss is the identity, the largest share of a leakage that later releases do not change, with
            the index of its release.
    """

    back: tuple[LossFunction, ...]
    ahead: tuple[LossFunction, ...]
    epsilons: tuple[float, ...] = ()
    spent: Fraction = Fraction(0)
    before: tuple[Amount, ...] = ()
    last: tuple[Step, ...] = ()
    after: tuple[tuple[Step, ...], ...] = ()
    peaks: tuple[Worst, ...] = ()
    key: tuple[Fraction, int] = (Fraction(0), 0)

    @classmethod
    def of(cls, back: Sequence[LossFunction | None], ahead: Sequence[LossFunction | None]) -> ReleaseHistory:
        """Return the history without releases for the candidates of both directions."""
        following = tuple(that_count(ahead))
        return cls(tuple(that_count(back)), following, after=((),) * len(following))

    def __len__(self) -> int:
        return len(self.epsilons)

    @property
    def worst(self) -> Worst | None:
        """The release with the largest leakage so far; None without releases."""
        if not self.epsilons:
            return None
        if self._sums_ahead:
            return Worst(self.key[1], total(self.key[0] + self.spent, Fraction(0), 0.0))
        return self.peaks[-1]

    @property
    def latest(self) -> float:
        """The backward leakage of the last release."""
        return total(self.before[-1], 0.0, self.epsilons[-1])

    @property
    def leakages(self) -> Floats:
        """The temporal leakage of every release so far, shape (T,)."""
        pairs = zip(self.before, self._amounts_from_later(), self.epsilons, strict=True)
        return np.array([total(*each) for each in pairs])

    @property
    def backward(self) -> Floats:
        """The backward leakage of every release, shape (T,): the largest over all candidates."""
        return np.array([total(amount, 0.0, spent) for amount, spent in zip(self.before, self.epsilons, strict=True)])

    @property
    def forward(self) -> Floats:
        """The forward leakage of every release so far, shape (T,): the largest over all candidates."""
        pairs = zip(self._amounts_from_later(), self.epsilons, strict=True)
        return np.array([total(amount, 0.0, spent) for amount, spent in pairs])

    def extend(self, epsilon: float) -> ReleaseHistory:
        """Return the history with one more release of budget `epsilon`."""
        exact = decimal(epsilon)
        if self.epsilons:
            steps = zip(self.back, self.last, strict=True)
            last = tuple(advance(loss, step, self.epsilons[-1], epsilon) for loss, step in steps)
        else:
            last = (first(epsilon),) * len(self.back)
        carried = max((step.carried for step in last), default=0.0)
        before, epsilons = (*self.before, carried), (*self.epsilons, epsilon)
        spent = self.spent + exact
        if self._sums_ahead:
            # The leakage of release t is the sum of all ε plus this share.
            share = (Fraction(carried) if math.isfinite(carried) else self.spent) - self.spent
            key = self.key if self.epsilons and self.key[0] >= share else (share, len(self))
            return ReleaseHistory(self.back, self.ahead, epsilons, spent, before, last, self.after, (), key)
        after, changed = self._steps_after(epsilon)
        peaks = list(self.peaks[:changed])
        for index in range(changed, len(epsilons)):
            following = max((steps[index].carried for steps in after), default=0.0)
            now = Worst(index, total(before[index], following, epsilons[index]))
            peaks.append(now if not peaks or now.leakage > peaks[-1].leakage else peaks[-1])
        return ReleaseHistory(self.back, self.ahead, epsilons, spent, before, last, after, tuple(peaks))

    def largest(self, alpha: float) -> float:
        """Return the largest budget of a next release under which no release leaks more than `alpha`, or 0.0.

        The result is exact to the last digit if the forward loss is 0 or the identity. For other forward losses, the
        result is accurate to 2⁻⁵⁰ of α.
        """
        if self._exceeds(0.0, alpha):
            return 0.0
        if not self._exceeds(alpha, alpha):
            return alpha
        low, high = 0.0, alpha
        if not self.ahead or self._sums_ahead:
            spent = self.extend(0.0)
            most = spent.key[0] + spent.spent if self._sums_ahead else Fraction(spent.before[-1])
            high = round_down(decimal(alpha) - most)
            if not self._exceeds(high, alpha):
                return high
        while True:
            middle = low + (high - low) / 2
            if not low < middle < high or high - low <= 2.0**-50 * alpha:
                return low
            low, high = (low, middle) if self._exceeds(middle, alpha) else (middle, high)

    @property
    def _sums_ahead(self) -> bool:
        return bool(self.ahead) and self.ahead[0].identity

    def _exceeds(self, epsilon: float, alpha: float) -> bool:
        worst = self.extend(epsilon).worst
        return worst is not None and worst.leakage > alpha

    def _steps_after(self, epsilon: float) -> tuple[tuple[tuple[Step, ...], ...], int]:
        """Return the forward steps after a release of `epsilon`, and the index of the first changed step."""
        changed = len(self.epsilons)
        found = []
        for loss, steps in zip(self.ahead, self.after, strict=True):
            tail = [first(epsilon)]
            index = len(steps)
            while index > 0:
                spent = self.epsilons[index] if index < len(steps) else epsilon
                step = advance(loss, tail[-1], spent, self.epsilons[index - 1])
                if step == steps[index - 1]:
                    # This step and all earlier steps are unchanged.
                    break
                index -= 1
                tail.append(step)
            changed = min(changed, index)
            found.append((*steps[:index], *reversed(tail)))
        return tuple(found), changed

    def _amounts_from_later(self) -> list[Amount]:
        """Return the amount that later releases add to each release."""
        if self._sums_ahead:
            rest, amounts = Fraction(0), list[Amount]()
            for index, epsilon in enumerate(reversed(self.epsilons)):
                amounts.append(rest if index else 0.0)
                rest += decimal(epsilon)
            return amounts[::-1]
        return [max((steps[t].carried for steps in self.after), default=0.0) for t in range(len(self))]
