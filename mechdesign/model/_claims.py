"""An ordered list of claims: bounds on pairs, bounds on points between anchors, and floors."""

from __future__ import annotations

from collections.abc import Mapping

from mechdesign.base._values import ReadOnlyMapping, cached_property
from mechdesign.certify._claims import Claim, ExponentBound, Floor, PairBound
from mechdesign.certify._dithering import Dithered


class Claims(tuple[Claim, ...]):
    """The claims about a channel, in order; each property maps indices to the claims of one form.

    >>> claims = Claims([Floor(1, [[0, 1], [1, 0]]), PairBound.graph(1, 2, [(0, 1)])])
    >>> list(claims.floors), list(claims.pair_bounds), list(claims.point_bounds)
    ([0], [1], [])
    """

    @cached_property
    def pair_bounds(self) -> Mapping[int, PairBound]:
        """The bounds on pairs of secrets."""
        return ReadOnlyMapping({place: claim for place, claim in enumerate(self) if isinstance(claim, PairBound)})

    @cached_property
    def exponent_bounds(self) -> Mapping[int, ExponentBound]:
        """The bounds on pairs of secrets with factors exp(ε·w)."""
        found = self.pair_bounds.items()
        return ReadOnlyMapping({place: bound for place, bound in found if isinstance(bound, ExponentBound)})

    @cached_property
    def point_bounds(self) -> Mapping[int, Dithered]:
        """The bounds on all points between anchors."""
        return ReadOnlyMapping({place: claim for place, claim in enumerate(self) if isinstance(claim, Dithered)})

    @cached_property
    def floors(self) -> Mapping[int, Floor]:
        """The floors on the adversary's error."""
        return ReadOnlyMapping({place: claim for place, claim in enumerate(self) if isinstance(claim, Floor)})
