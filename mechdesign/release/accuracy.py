"""How far off the outputs of a trace are, and the guesses of an adversary: what is expected, and what is true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mechdesign.model._domain import Domain
from mechdesign.release.adversary import Beliefs
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["Accuracy", "accuracy"]


class Measurable(Protocol):
    """What is measured of a released trace; see `mechdesign.release.released.ReleasedTrace`."""

    @property
    def domain(self) -> Domain: ...
    @property
    def places(self) -> Floats: ...
    @property
    def lengths(self) -> Floats: ...
    @property
    def beliefs(self) -> Beliefs: ...


@dataclass(frozen=True)
class Accuracy:
    """How far off something is, on average over the steps, in the unit of the domain.

    Attributes:
        name: What it is.
        expected: What whoever knows the transitions and the initial distribution expects after all outputs: public.
        true: How far it is from the true states, where they are given: for their owner only.
    """

    name: str
    expected: float
    true: float | None


def accuracy(found: Measurable, truth: Integers | None = None) -> tuple[Accuracy, ...]:
    """Return how useful the outputs are, and how well an adversary guesses at once and from the whole trace.

    Args:
        found: The released trace.
        truth: The true state of each step, shape (steps,); without it only what is public is returned.
    """
    beliefs, lengths = found.beliefs, found.lengths
    offsets = found.places[:, None, :] - found.domain.points[None, :, :]
    apart = np.sqrt((offsets**2).sum(axis=2))
    useful = None if truth is None else apart[np.arange(len(truth)), truth]
    rows = [("utility: the released place", (beliefs.smoothed * apart).sum(axis=1), useful)]
    for name, which in (("at once", "posteriors"), ("from the whole trace", "smoothed")):
        erred = None if truth is None else beliefs.errors(truth, lengths, which)
        rows.append((f"adversary: the best guess, {name}", beliefs.expected_error(lengths, which), erred))
    return tuple(
        Accuracy(name, float(expected.mean()), None if true is None else float(true.mean()))
        for name, expected, true in rows
    )
