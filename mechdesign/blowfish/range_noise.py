"""The noise of a cumulative histogram, and how far off it may put what is estimated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np

from mechdesign.blowfish.range_tree import RangeTree
from mechdesign.blowfish.secret_graphs import require_room
from mechdesign.certify._exact import nearest
from mechdesign.base._errors import InputError
from mechdesign.mechanisms._discrete import DiscreteLaplace
from mechdesign.base._arrays import Floats

__all__ = ["RangeNoise", "interval_about"]


def __dir__() -> list[str]:
    return sorted(__all__)


_LEAST_VARIANCE = 1e-60


def _law(scale: Fraction) -> DiscreteLaplace:
    try:
        return DiscreteLaplace(scale)
    except InputError as error:
        problem = "is too small or too large: the noise has a scale that is out of range"
        raise InputError("epsilon", problem, value=f"{nearest(scale):.4g}", bound="a scale of at most 2^50") from error


# See `RangeNoise.half_widths`.
_MARGIN = 1.002


@dataclass(frozen=True)
class RangeNoise:
    """The scales of the two-sided geometric noise, exact; None where there is none.

    Attributes:
        node_scale: of the noise on the cumulative counts at the ends of blocks.
        tree_scale: of the noise on the nodes of the trees within blocks.
    """

    node_scale: Fraction | None
    tree_scale: Fraction | None

    def __bool__(self) -> bool:
        return self.node_scale is not None or self.tree_scale is not None

    def __str__(self) -> str:
        parts = [
            f"{law} on each {what}"
            for law, what in ((self.node_law, "cumulative count"), (self.tree_law, "node"))
            if law is not None
        ]
        return " and ".join(parts) or "no noise"

    @property
    def node_law(self) -> DiscreteLaplace | None:
        """Return the law of the noise on the cumulative counts at the ends of blocks."""
        return None if self.node_scale is None else _law(self.node_scale)

    @property
    def tree_law(self) -> DiscreteLaplace | None:
        """Return the law of the noise on the nodes of the trees."""
        return None if self.tree_scale is None else _law(self.tree_scale)

    def prepare(self) -> None:
        """Compute what every draw needs."""
        for law in (self.node_law, self.tree_law):
            if law is not None:
                law.prepare()

    def structure(self, size: int, block: int, fanout: int) -> RangeTree:
        """Return the structure with the variances of the noise.

        Raises:
            InputError: its arrays would fill the memory.
        """
        require_room(size, "ranges")
        # Weights are inverse variances; noise that is never drawn has any.
        laws = (self.node_law, self.tree_law)
        variances = [1.0 if law is None else max(law.variance, _LEAST_VARIANCE) for law in laws]
        return RangeTree(size, block, fanout, *variances)

    def half_widths(self, variances: Floats, counts: int, confidence: Fraction) -> Floats:
        """Return t for each variance of an unbiased estimate: it is off by at most t with the stated confidence.

        Without trees an estimate is one noisy count or the difference of two (`counts`), and t is exact. With trees it
        is a weighted sum of independent Laplace variables, and t is its standard deviation times the quantile, at unit
        variance, of a Laplace or a normal variable, whichever is larger, and 0.2 per cent more. That no such sum has a
        larger quantile is not proven: of all that were computed, the worst, two almost equal terms at 90.7 per cent,
        needs 0.05 per cent. The standard deviation is that of continuous noise, and half a step is added, because the
        noise is discrete.
        """
        if self.tree_scale is None:
            law = self.node_law
            width = 0.0 if law is None else float(law.half_width(confidence))
            if law is not None and counts == 2:
                width = half_width_of_two(law, float(1 - confidence))
            return np.where(variances > 0, width, 0.0)
        outside = float(1 - confidence)
        factor = max(-math.log(outside) / math.sqrt(2), -NormalDist().inv_cdf(outside / 2)) * _MARGIN
        laws = [law for law in (self.node_law, self.tree_law) if law is not None]
        continuous = max(2 * float(law.scale) ** 2 / max(law.variance, _LEAST_VARIANCE) for law in laws)
        return np.where(variances > 0, factor * np.sqrt(variances * continuous) + 0.5, 0.0)


def interval_about(linear: Any, width: Any, answer: Any, records: int) -> tuple[Any, Any]:
    """Return the ends of the intervals linear ± width within what is possible, widened to contain the answer."""
    low = np.minimum(np.clip(linear - width, 0, records), answer)
    high = np.maximum(np.clip(linear + width, 0, records), answer)
    return low, high


def half_width_of_two(law: DiscreteLaplace, outside: float) -> float:
    """Return the least integer t with P(|X − Y| > t) <= outside for two independent draws of the law.

    P(|X − Y| > t) = 2((1−q)/(1+q))² q^(t+1) ((t + 1 + c)/(1−q) + q/(1−q)²) with c = (1+q²)/(1−q²), from the convolution
    P(X − Y = k) = ((1−q)/(1+q))² q^k (k + c) for k >= 0.
    """
    rate = nearest(1 / law.scale)
    q, gap = math.exp(-rate), -math.expm1(-rate)
    c = (1 + q * q) / (gap * (1 + q))

    def beyond(t: int) -> float:
        return 2 / (1 + q) ** 2 * math.exp(-rate * (t + 1)) * ((t + 1 + c) * gap + q)

    # A little less than allowed, against rounding.
    allowed = outside * (1 - 1e-9)
    low, high = -1, 1
    while beyond(high) > allowed:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if beyond(middle) > allowed else (low, middle)
    return float(high)
