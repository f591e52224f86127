"""What the public files of a trace depend on beyond its outputs: the data that prior, chain and policy were counted in.

The channel of a step, and what it is expected to cost, follow from prior, chain and policy. Where these were counted in
the history of the person whose trace is released, public files tell of that history; where the trace itself is part of
it, they tell of the true states, without any noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["History"]


def __dir__() -> list[str]:
    return sorted(__all__)


_NOTHING = "nothing in this folder depends on the true states but through the outputs"


@dataclass(frozen=True)
class History:
    """Where prior, chain and policy of a trace come from, by keys of its specification, and what follows from that.

    Attributes:
        counted: what was counted in data.
        given: what stands in files or in the specification as numbers, of which nobody here knows where they are from.
        within: whether counted rows lie between the first and the last time of the trace; None where that is not known.
        others: whether the owner states that data and numbers are not of the person whose trace it is.

    >>> History().meaning
    'Nothing in this folder depends on the true states but through the outputs.'
    >>> History(("prior.checkins",), within=True).meaning
    'Costs and channels depend on the data that were counted for prior.checkins, and so on the true states.'
    """

    counted: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    within: bool | None = None
    others: bool = False

    @property
    def tells_prior(self) -> bool:
        """Whether public channels may hold the prior: nothing was counted, and what was given is stated."""
        return not self.counted and (not self.given or self.others)

    @property
    def meaning(self) -> str:
        """What the public files depend on, in sentences."""
        if not self.counted and not self.given:
            return f"{_NOTHING.capitalize()}."
        parts = [f"the data that were counted for {', '.join(self.counted)}"] * bool(self.counted)
        parts += [f"the numbers at {', '.join(self.given)}"] * bool(self.given)
        depends = f"Costs and channels depend on {' and on '.join(parts)}"
        if self.others:
            return f"{depends}. The owner states that these are not of this person: if so, {_NOTHING}."
        if not self.counted:
            return f"{depends}. Unless these come from data of this person, {_NOTHING}."
        if self.within:
            return f"{depends}, and so on the true states."
        if self.within is None:
            return f"{depends}. Whether the trace is among these is not known: if so, they depend on the true states."
        return f"{depends}. No row of these data lies between the first and the last time of the trace."

    def to_json(self) -> dict[str, Any]:
        """Return what the manifest says."""
        return {
            "counted": list(self.counted),
            "given": list(self.given),
            "stated": "others" if self.others else None,
            "meaning": self.meaning,
        }
