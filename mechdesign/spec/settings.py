"""How programs are solved, as one value."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType

from mechdesign.certify.exact import exact
from mechdesign.errors import InputError
from mechdesign.solvers import Report
from mechdesign.spec.document import Rows

__all__ = ["SolveSettings"]


@dataclass(frozen=True)
class SolveSettings:
    """How a problem is to be solved: the arguments of `mechdesign.design`.

    Args:
        solver: "auto" (chosen by size), or a name that `mechdesign info` lists.
        tolerance: Relative gap asked for.
        time_limit: Seconds, or None for no limit.
        rows: Which privacy rows the solver sees.
        threads: Most threads that the solver may use, or None for its own choice.
        options: Further options, under the solver's own names.
        progress: Called with a `Progress` now and then.

    Raises:
        InputError: A number is out of range; its path is the name of the argument.
    """

    solver: str = "auto"
    tolerance: float = 1e-9
    time_limit: float | None = None
    rows: Rows = "auto"
    threads: int | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    progress: Report | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", MappingProxyType(dict(self.options)))
        object.__setattr__(self, "tolerance", _positive("tolerance", self.tolerance))
        if self.time_limit is not None:
            object.__setattr__(self, "time_limit", _positive("time_limit", self.time_limit))
        if self.threads is not None and self.threads < 1:
            raise InputError("threads", "must be a number of threads", value=self.threads, bound="an integer >= 1")


def _positive(path: str, value: float) -> float:
    number = exact(value, path)
    if not number > 0:
        raise InputError(path, "must be positive", value=value, bound="greater than 0")
    return float(min(number, Fraction(sys.float_info.max)))
