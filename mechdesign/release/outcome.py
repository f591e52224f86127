"""One release of a trace: what became public, and what it tells."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import networkx as nx

from mechdesign.certify._certificate import Certificate
from mechdesign.graphs._geometry._hull import SensitivityHull
from mechdesign.graphs._repairs import Repair
from mechdesign.release.stage import Stage
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers

__all__ = ["Release"]


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """What was released at one time, and what the adversary makes of it. All of it may be public.

    Nothing here depends on the true state but through the output: whether a surrogate was released is not recorded. A
    release holds on to the channel of its stage, 8 bytes for each member and observable; stages of the same constrained
    domain share it.

    Attributes:
        output: the released state, an index into the domain; None where outputs are not snapped.
        coordinates: the released place, shape (d,), read-only.
        posterior: the belief p⁺ after the output, shape (n,), read-only.
        log_likelihood: ln Pr(output | s) for every state s, shape (n,), read-only.
        stage: what was settled before: time, constrained domain, graph, mechanism; with the ledger of the trace, which
            is not public.
        entry: the number of its entry in a ledger, random digits; None where none was charged.
    """

    output: int | None
    coordinates: Floats
    posterior: Floats
    log_likelihood: Floats
    stage: Stage
    entry: str | None = None

    def __repr__(self) -> str:
        """Say what was released when."""
        what = self.coordinates.tolist() if self.output is None else self.output
        return f"Release(time={self.time}, output={what})"

    @property
    def time(self) -> int:
        """The time, counted from 0."""
        return self.stage.time

    @property
    def epsilon(self) -> Fraction:
        """ε of this release in nats per edge, exact."""
        return self.stage.epsilon

    @property
    def prior(self) -> Floats:
        """The belief p⁻ before the output, shape (n,)."""
        return self.stage.prior

    @property
    def members(self) -> Integers:
        """The constrained domain."""
        return self.stage.members

    @property
    def graph(self) -> nx.Graph:
        """The policy graph that was kept, on the constrained domain and repaired."""
        return self.stage.graph

    @property
    def repair(self) -> Repair | None:
        """How the graph was repaired, None where it needed no repair."""
        return self.stage.repair

    @property
    def hull(self) -> SensitivityHull:
        """The sensitivity hull of `graph` as a whole."""
        return self.stage.hull

    @property
    def certificate(self) -> Certificate | None:
        """The exact proof that the channel keeps `graph` at ε; None where outputs are not snapped."""
        return self.stage.certificate
