"""Which secrets a channel reveals for certain: an answer that only one of them is ever given."""

from __future__ import annotations

import numpy as np

from mechdesign.base._arrays import Floats, Integers


def revealed(numerators: Integers | Floats) -> tuple[int, ...]:
    """Return the secrets s with an answer o such that N[s,o] > 0 and N[t,o] = 0 for all others t, ascending.

    `numerators` N, or other numbers that are above 0 where N is, have the shape (n, m). Whoever sees such an answer
    knows the secret, whatever they believed before. A single secret is always revealed.
    """
    given = numerators > 0
    alone = np.count_nonzero(given, axis=0) == 1
    return tuple(np.flatnonzero(given[:, alone].any(axis=1)).tolist())
